/* The effect of a claim on a session, the records that a step and a commit add to it, and the units
 * that are its inputs: pure functions. The store reads, asks, and writes under a guard. */
#ifndef HF_CORE_SESSION_SESSION_H
#define HF_CORE_SESSION_SESSION_H

#include <holdfast/session.h>

#include "base/arena.h"
#include "core/ledger/lease.h"
#include "core/ledger/step.h"

/* Words that are read; false for one that is unknown. */
bool hf_relation_of(const char *word, enum hf_relation *ret_relation);
bool hf_session_input_kind_of(const char *word, enum hf_session_input_kind *ret_kind);

/* A session's row. The members after `lease` are of the open turn. */
struct hf_session_row {
    struct hf_session s;
    int64_t turn_key; /* 0: no turn is open */
    hf_ms check_at;   /* 0 with a nonce in the lease: the holder is proven dead */
    struct hf_lease lease;
    int64_t step;
    int64_t claimed_step;        /* the step at the last claim */
    enum hf_status input_status; /* of the first input's unit; NONE: it is gone */
    int64_t crashes;
    hf_ms crashed_at;
};

/* The effect of a claim on the turn. */
enum hf_session_move {
    HF_TURN_BEGIN,  /* none is open: begin one over the first input, if there is one */
    HF_TURN_RESUME, /* it was handed back or put away: its inputs run again */
    HF_TURN_TAKE,   /* its inputs run already, and pass to this lease */
    HF_TURN_LEAVE,  /* this very claim again: nothing is written */
    HF_TURN_HOLD,   /* it lost too many claims in a row: its input is held */
    HF_TURN_CLOSE,  /* its input ended while it waited: the owner ends the turn */
    HF_TURN_VOID    /* its input has ended without it */
};

struct hf_session_plan {
    enum hf_session_move move;
    enum hf_lease_outcome outcome;
    struct hf_lease lease; /* to write; not of HOLD and VOID, which free the session */
    int64_t crashes;       /* of the turn's inputs */
    hf_ms crashed_at;
};

/* HF_ESESSIONBUSY for a live lease of another owner; other errors as hf_lease_claim. */
int hf_session_plan(const struct hf_session_row *row, const struct hf_claimant *who,
                    const struct hf_env *env, bool dead, struct hf_session_plan *ret_plan,
                    struct hf_err *err);

/* The JSON of the event with which an input's unit passes to a lease, or leaves it. NULL: no
 * memory. */
const char *hf_session_input_note(struct hf_arena *arena, const struct hf_lease *lease,
                                  const char *reason, int64_t crashes);

/* A message that is sent must say something: no provider accepts an empty text. */
int hf_session_message_check(const struct hf_message *message, struct hf_err *err);

/* The unit of an input: queued behind the gate `lane` without a lane, so that no claim by queue
 * sees it. `request` has source, source_id, source_run_id, kind and payload. */
struct hf_session_input_spec {
    const struct hf_work_spec *request;
    const char *session_id;
    const char *work_id;
};
int hf_session_input_row(struct hf_arena *arena,
                         const struct hf_session_input_spec *input,
                         const struct hf_caller *who, const struct hf_env *env,
                         struct hf_row *ret_row, struct hf_err *err);
#define HF_SESSION_QUEUE "session"

/* Records as a session stores them. */
struct hf_packed_node {
    const char *json;
    uint8_t chain[32]; /* after it */
};
struct hf_packed {
    struct hf_packed_node *nodes;
    size_t count;
    uint8_t chain[32];      /* after all of them */
    const char *transients; /* those that are no nodes, as text; NULL: there are none */
    size_t bytes;
};

/* Encode records that follow `node_count` nodes of the turn, whose chain is `chain`. Transient
 * records are put apart, each with the number of the turn's node that it comes before.
 * HF_EINVAL or HF_ETOOBIG naming "records". */
int hf_records_pack(struct hf_arena *arena, const struct hf_record *records, size_t count,
                    int64_t node_count, const uint8_t chain[32],
                    struct hf_packed *ret_packed, struct hf_err *err);

/* The next of such records; moves *at behind it. 1, 0 at the end, HF_ECORRUPT. */
int hf_transient_next(const char **at, int64_t *ret_before, struct hf_span *ret_json,
                      struct hf_err *err);

/* The content of a commit: what a repeat is compared by. */
int hf_commit_hash(const struct hf_session_commit *commit, const struct hf_caller *who,
                   const struct hf_packed *packed, uint8_t ret_hash[32],
                   struct hf_err *err);

/* The reason of inputs that do not end as done, for people: "KIND: TEXT" of the outcome, cut at
 * `reason_bytes`; the status where it has neither. NULL for DONE. HF_ENOMEM; HF_EINVAL: no JSON. */
int hf_commit_reason(struct hf_arena *arena, const struct hf_session_commit *commit,
                     const char **ret_reason, struct hf_err *err);

/* The result that a turn's row keeps, and back. */
const char *hf_commit_result(struct hf_arena *arena, int64_t revision, int64_t records,
                             const uint8_t chain[32]);
int hf_commit_result_read(const char *json, struct hf_session_committed *ret_committed,
                          struct hf_err *err);

/* The records that a commit stores, without numbers and digests. */
size_t hf_commit_bytes(const struct hf_session_commit *commit,
                       const struct hf_packed *packed);

/* Bytes and rows of a commit or step against the limits; HF_ETOOBIG says limit and size. */
int hf_commit_budget(size_t bytes, size_t rows, struct hf_err *err);

#endif
