/* The rows of sessions, between C and SQL, and what the verbs over them share. */
#ifndef HF_STORE_SESSION_SESSION_H
#define HF_STORE_SESSION_SESSION_H

#include "core/session/session.h"
#include "core/wait/wait.h"
#include "store/store.h"

/* One row of the fragment `session`; texts stay in the result. HF_ECORRUPT for counters that are
 * negative and for words that are unknown. */
int session_read(const struct hf_call *call, size_t i, struct hf_session_row *ret_row,
                 struct hf_err *err);
int session_chain_read(const struct hf_val *cell, uint8_t ret_chain[32],
                       struct hf_err *err);
/* The same with the columns of the fragment `session_seen`. */
int session_read_seen(const struct hf_call *call, size_t i,
                      struct hf_session_row *ret_row, struct hf_err *err);

/* A text or bytes of a result, copied into the answer; NULL for any other value. *failed is set
 * when there is no memory. */
const char *session_copied(struct hf_session_answer *answer, const struct hf_val *cell,
                           bool *failed);
/* Copy rows of a result into the answer as its sessions. */
int session_show(struct hf_session_answer *answer, const struct hf_call *call,
                 size_t count, struct hf_err *err);

/* Append the reads of the open turn and its inputs; show them. */
struct session_turn_reads {
    size_t turn;
    size_t inputs;
    size_t waits; /* 0: not read */
};
struct session_turn_reads session_turn_add(struct hf_ops *ops, const char *session_id,
                                           bool waits);
int session_turn_show(struct hf_session_answer *answer, const struct hf_ops *ops,
                      struct session_turn_reads reads, struct hf_session_turn **ret_turn,
                      struct hf_err *err);
/* Inputs of a result. */
int session_inputs_show(struct hf_session_answer *answer, const struct hf_call *call,
                        const struct hf_session_input **ret_inputs, size_t *ret_count,
                        struct hf_err *err);

/* Append the reads of a page of the history, and with the first page those of the open turn; show
 * them, except the session and its usage. */
struct session_load_reads {
    size_t session;
    size_t nodes;
    size_t turn_nodes;
    size_t effects;
    struct session_turn_reads turn;
};
struct session_load_reads session_load_add(struct hf_ops *ops,
                                           const struct hf_session_load *request);
int session_load_show(const struct hf_session_load *request, struct hf_ops *ops,
                      const struct session_load_reads *reads,
                      struct hf_session_answer *answer, struct hf_err *err);

/* The facts about a call that was refused. */
struct session_facts {
    struct hf_session_row row;
    const char *ended_token; /* of the last release or hand-back */
    const char *ended_verb;
    bool turn_found;
    int64_t step;
    int64_t node_count;
    hf_ms finished_at;
    size_t save_bytes;
    const struct hf_val *chain;
    const struct hf_val *commit_hash;
    const char *result;
    const struct hf_val *save_end; /* at most its last 32 bytes */
    int64_t open_waits;
    enum hf_status input_status; /* of the turn's first input */
};

/* Read the session and the turn (NULL: none) into `ops`. HF_ENOTFOUND, HF_ESESSIONDELETED. */
int session_facts_read(struct hf_ops *ops, const char *session_id, const char *turn_id,
                       struct session_facts *ret_facts, struct hf_err *err);
/* Does the token hold the session? HF_ESESSIONLOST says what differs. After
 * session_facts_read. */
int session_lease_check(const struct hf_ops *ops, const struct session_facts *facts,
                        const struct hf_token *token, struct hf_err *err);
bool session_bytes_same(const struct hf_val *cell, const void *bytes, size_t len);

/* HF_EINVAL naming "token". */
int session_token(const char *text, struct hf_token *ret_token, struct hf_err *err);
/* Append the token's four arguments: session_id, store, fence, nonce. */
void session_put_token(struct hf_ops *ops, const char *session_id,
                       const struct hf_token *token);

/* Wake a worker that waits for a session. */
void session_ring(struct hf_ops *ops);
/* Append what makes a unit of the batch an input, and its session ready. Refuses the batch
 * where there is no session. */
void session_input_add(struct hf_ops *ops, const char *session_id, const char *work_id,
                       enum hf_session_input_kind kind);
/* How a lease ends. */
struct session_end {
    const char *token; /* with the verb, what a repeat is known by; NULL: of a commit */
    const char *verb;
    hf_ms delay_ms; /* of an open turn */
};
/* Append the end of a lease. */
void session_free_add(struct hf_ops *ops, const char *session_id,
                      const struct hf_token *token, const struct session_end *end);

/* Append what queues the running inputs of the open turn again; reason NULL: handed_back. */
void session_back_add(struct hf_ops *ops, const struct hf_caller *who,
                      const char *session_id, const struct hf_token *token,
                      const char *reason);

/* Append the nodes of a step or a commit. */
void session_nodes_add(struct hf_ops *ops, const char *session_id, const char *turn_id,
                       int64_t node_count, const struct hf_packed *packed);

/* Append what a step does to the effect journal. Returns the first of its calls. */
size_t session_effects_add(struct hf_ops *ops, const struct hf_session_step *step,
                           int64_t fence);
/* The entries of a result, as those of the turn. */
int session_effects_show(struct hf_session_answer *answer, const struct hf_call *found,
                         struct hf_session_turn *turn, struct hf_err *err);

/* Rows of waits, copied by `copy` into an answer. HF_ECORRUPT for words that are unknown. */
struct session_wait_keeper {
    void *answer;
    void *(*memory)(void *answer, size_t bytes);
    const char *(*copy)(void *answer, struct hf_span bytes);
};
int session_waits_show(const struct session_wait_keeper *keeper,
                       const struct hf_call *found, const struct hf_wait **ret_waits,
                       struct hf_err *err);
/* One row of the fragment `wait`; texts stay in the result. */
int session_wait_read(const struct hf_call *found, size_t i, struct hf_wait *ret_wait,
                      struct hf_err *err);
#define SESSION_WAIT_NEXT_MS 4 /* columns of the fragment that are not shown */
#define SESSION_WAIT_CHECK_AT 5
#define SESSION_WAIT_CLOSED_BY 23

/* Append the opening of a step's waits; with `away` what puts the turn away, after which
 * HF_SQL_SESSION_PUT_AWAY is read. Returns that call, 0 if there is none. */
int session_waits_add(struct sql_store *store, struct hf_ops *ops,
                      const struct hf_caller *who, const struct hf_session_step *step,
                      const struct hf_token *token, size_t *ret_call, struct hf_err *err);
/* Append the end of all open waits of a turn that ends. */
void session_waits_end(struct hf_ops *ops, const struct hf_caller *who,
                       const char *session_id, const char *turn_id);

extern const struct hf_journal_methods sql_journal_methods;
int sql_journal_unknown(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_journal_key *after, size_t limit,
                        struct hf_journal_effects *effects, struct hf_err *err);
int sql_journal_resolve(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_journal_resolve *request,
                        struct hf_journal_effects *effects, struct hf_err *err);
extern const struct hf_session_methods sql_session_methods;
int sql_session_create(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_session_spec *request,
                       struct hf_session_answer *answer, struct hf_err *err);
int sql_session_send(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_send *request, struct hf_answer *answer,
                     struct hf_err *err);
int sql_session_claim(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_session_claim *claim,
                      struct hf_session_answer *answer, struct hf_err *err);
int sql_session_head(struct hf_store *store, const char *session_id,
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_load(struct hf_store *store, const struct hf_session_load *request,
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_node(struct hf_store *store, const char *session_id, int64_t ordinal,
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_turn(struct hf_store *store, const char *session_id, const char *name,
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_blob_put(struct hf_store *store, const uint8_t hash[32],
                         struct hf_span bytes, struct hf_err *err);
int sql_session_blob(struct hf_store *store, const uint8_t hash[32],
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_unknown(struct hf_store *store, const struct hf_caller *who,
                        const char *after, size_t limit, struct hf_session_answer *answer,
                        struct hf_err *err);
int sql_session_list(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_filter *filter,
                     struct hf_session_answer *answer, struct hf_err *err);
int sql_session_inputs(struct hf_store *store, const char *session_id, const char *after,
                       size_t limit, struct hf_session_answer *answer,
                       struct hf_err *err);
int sql_session_step(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_step *step,
                     struct hf_session_stepped *ret_stepped, struct hf_err *err);
int sql_session_commit(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_session_commit *commit,
                       struct hf_session_committed *ret_committed, struct hf_err *err);
int sql_session_renew_all(struct hf_store *store, struct hf_session_renewal *renewals,
                          size_t count, struct hf_err *err);
int sql_session_release(struct hf_store *store, const struct hf_caller *who,
                        const char *session_id, const char *token, struct hf_err *err);
int sql_session_hand_back(struct hf_store *store, const struct hf_caller *who,
                          const struct hf_session_back *back, struct hf_err *err);
int sql_session_cancel_turn(struct hf_store *store, const struct hf_caller *who,
                            const struct hf_session_cancel *request,
                            enum hf_session_turn_cancel *ret_answer, struct hf_err *err);
int sql_session_next(struct hf_store *store, const struct hf_session_claim *claim,
                     hf_ms *ret_at, struct hf_err *err);

#endif
