/* The verbs over waits, and what other verbs append to their batches to resolve one. */
#ifndef HF_STORE_WAIT_WAIT_H
#define HF_STORE_WAIT_WAIT_H

#include "core/wait/wait.h"
#include "store/session/session.h"

/* The end of a wait.
 *   answerer   the actor that must be the wait's answerer; NULL: any may close it
 *   closed_by  names this call: a nonce
 *   check_at   as it was read; 0: any */
struct wait_closing {
    const char *wait_id;
    const char *answerer;
    enum hf_wait_state state;
    const char *outcome;
    const char *closed_by;
    hf_ms check_at;
};

/* Append the end of a wait: its outcome, and the session made ready. The batch is refused
 * (HF_EGUARD) where the wait is not open or not there. The changes of the units are appended after
 * it. */
void wait_close_add(struct hf_ops *ops, const struct hf_caller *who,
                    const struct wait_closing *closing);
/* After it: the units that wait are queued again; or they end, and the other waits with them. */
void wait_resume_add(struct hf_ops *ops, const struct hf_caller *who,
                     const struct wait_closing *closing);
void wait_fail_add(struct hf_ops *ops, const struct hf_caller *who,
                   const struct wait_closing *closing);

/* Show the rows of a result in the answer. */
int wait_show(struct hf_wait_answer *answer, const struct hf_call *found,
              struct hf_err *err);

extern const struct hf_wait_methods sql_wait_methods;
int sql_wait_resolve(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_wait_resolve *request, bool by_key,
                     struct hf_wait_answer *answer, struct hf_err *err);
int sql_wait_revoke(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_wait_revoke *request, struct hf_wait_answer *answer,
                    struct hf_err *err);
int sql_wait_list(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_wait_filter *filter, struct hf_wait_answer *answer,
                  struct hf_err *err);
int sql_wait_get(struct hf_store *store, const char *wait_id,
                 struct hf_wait_answer *answer, struct hf_err *err);
int sql_wait_key(struct hf_store *store, const char *wait_id,
                 char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err);
int sql_wait_key_check(struct hf_store *store, const char *key,
                       char ret_wait_id[HF_WAIT_ID_TEXT], bool *ret_holds,
                       struct hf_err *err);
int sql_wait_rotate(struct hf_store *store, hf_ms valid_ms, struct hf_err *err);

#endif
