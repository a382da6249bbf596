/* The effect of a verb on a row: a pure function from (row, request, moment) to the new row and
 * its event, or to a typed refusal. The store reads the row, calls one of these, and writes
 * the result under a compare-and-set on what it read; so every backend and every path
 * (single, batch, sweep) decides alike. */
#ifndef HF_CORE_LEDGER_STEP_H
#define HF_CORE_LEDGER_STEP_H

#include "base/arena.h"
#include "core/ledger/lease.h"
#include "core/ledger/retry.h"
#include "core/ledger/row.h"

/* The note that most creates of one call have, and what it says. */
struct hf_note_kept {
    const char *disposition;
    const char *from;
    int64_t max_attempts;
    const char *text; /* NULL: none yet */
};

/* The moment and the circumstances of a call. Time and chance are values. */
struct hf_env {
    hf_ms now;       /* wall */
    hf_ms lease_now; /* lease clock */
    int64_t store;   /* store incarnation */
    uint64_t random; /* for jitter */
    const char *actor_kind;
    const char *actor;
    const char *correlation_id;
    const struct hf_policy *policy; /* in force for the row's source and kind, complete */
    const char *holder; /* JSON of the process that a claim or resume ties to */
    bool operation; /* the call has an operation id, so its receipt says what repeats */
    bool kind_limited; /* create: a limit is set for the kind */
    bool busy;         /* sweep: processes of the row's work still run (rule 6) */
    struct hf_note_kept
        *kept; /* create: for requests of one call; NULL: nothing is kept */
};

enum hf_step_kind {
    HF_STEP_WRITE,  /* write the row: its status changed, one event goes with it */
    HF_STEP_QUIET,  /* write the row: no transition (renew, touch, recorded request) */
    HF_STEP_REPEAT, /* applied before: answer with the row, write nothing */
    HF_STEP_NOTHING /* sweep: nothing is due */
};

/* The findings of a sweep, for its report. */
enum hf_swept {
    HF_SWEPT_NOTHING,
    HF_SWEPT_REQUEUED,  /* lapsed or dead, rerunnable: queued again */
    HF_SWEPT_RETRIED,   /* a timeout that the retry policy turns into a retry */
    HF_SWEPT_TIMED_OUT, /* by lease, start, execution or wait */
    HF_SWEPT_FAILED,    /* attempts exhausted */
    HF_SWEPT_ABANDONED,
    HF_SWEPT_PROMOTED, /* due or retry time reached */
    HF_SWEPT_ESCALATED,
    HF_SWEPT_PUSHED,  /* a live lease, looked at again later */
    HF_SWEPT_SILENT,  /* a started owner_bound row with a lapsed lease, left alone */
    HF_SWEPT_OVERDUE, /* a started owner_bound row past its wait, reported once */
    HF_SWEPT_HELD,    /* lost too often: held for an operator */
    HF_SWEPT_ORPHANED /* due, but its processes must be gone first */
};

struct hf_step {
    enum hf_step_kind kind;
    struct hf_row row;       /* the new row, with its event */
    const char *extra_event; /* QUIET: type of a non-transition event to append, or NULL;
                                  the row's actor, message and note are its own */
    const char *escalate_kind; /* sweep: create a unit of this kind too, or NULL */
    enum hf_swept swept;       /* sweep only */
};

/* Apply one change (any verb of hf_work_change) to a row that was found. Input has been
 * validated (hf_change_check). Refusals: HF_ELEASELOST is checked first when a token is
 * given; then HF_ETRANSITION, HF_EPOLICY, HF_EINVAL. New texts come from the arena. */
int hf_step_change(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_change *change, const struct hf_env *env,
                   struct hf_step *ret_step, struct hf_err *err);

/* A wait (accepted by hf_step_change) of a started owner_bound row whose signal was sent before:
 * the row keeps its status and its lease, has the signal's payload, and appends the event
 * signal_taken. HF_ENOMEM, HF_EINVAL for a payload that is no JSON. */
int hf_step_signal(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_change *wait, const char *payload,
                   const struct hf_env *env, struct hf_step *ret_step,
                   struct hf_err *err);

/* Claim one given row (by id; also what a set-based claim does to each row). */
int hf_step_claim(struct hf_arena *arena, const struct hf_row *row,
                  const struct hf_claimant *who, const struct hf_env *env,
                  struct hf_step *ret_step, struct hf_err *err);

/* The effect of a sweep on this row now. `proof` is a JSON proof of the holder's death, NULL
 * without one; it is stored in the event. A live lease that is merely due for a look
 * yields QUIET with lease_check_at pushed. */
int hf_step_sweep(struct hf_arena *arena, const struct hf_row *row, const char *proof,
                  const struct hf_env *env, struct hf_step *ret_step, struct hf_err *err);

/* The row that a create request makes (seq 0, work_id as given): policy applied, first
 * status, gate, deadlines, retry policy fixed. Input has been validated (hf_work_spec_check). */
int hf_step_create(struct hf_arena *arena, const struct hf_work_spec *request,
                   const char *work_id, const struct hf_caller *who,
                   const struct hf_env *env, struct hf_row *ret_row, struct hf_err *err);

/* Input checks that need no row: limits, UTF-8, JSON, required fields, exclusive fields. */
#define HF_TIME_MAX_MS 253402300799999 /* the end of the year 9999 */
int hf_work_spec_check(const struct hf_work_spec *request, struct hf_err *err);

/* The members of a schedule, and of a subscription, for the units that they create. */
#define HF_NEW_WISHES(wanted)                                                            \
    .kind = (wanted)->kind, .queue = (wanted)->queue, .lane_key = (wanted)->lane_key,    \
    .priority = (wanted)->priority, .max_attempts = (wanted)->max_attempts,              \
    .retry_policy = (wanted)->retry_policy,                                              \
    .disposition = (wanted)->disposition ? (wanted)->disposition                         \
                                         : HF_DISPOSITION_RERUNNABLE,                    \
    .start_timeout_ms = (wanted)->start_timeout_ms,                                      \
    .exec_timeout_ms = (wanted)->exec_timeout_ms
int hf_claim_check(const struct hf_claim *claim, struct hf_err *err);
int hf_change_check(const struct hf_change *change, struct hf_err *err);
/* Is this type of event the ledger's own? */
bool hf_event_reserved(const char *type);
int hf_caller_check(const struct hf_caller *who, struct hf_err *err);

/* The length of all texts of a create request. */
size_t hf_work_spec_bytes(const struct hf_work_spec *request);

/* SHA-256 of the request as typed (not as completed by policy): rule 15. */
int hf_work_spec_hash(const struct hf_work_spec *request, const struct hf_caller *who,
                      uint8_t ret_hash[32], struct hf_err *err);

#endif
