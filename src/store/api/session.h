/* What run/ needs of the public verbs over sessions. */
#ifndef HF_STORE_API_SESSION_H
#define HF_STORE_API_SESSION_H

#include <holdfast/sys/store.h>

/* Check a claim and copy it. */
int hf_session_claim_check(const struct hf_session_claim *wanted,
                           struct hf_session_claim *ret_claim, struct hf_err *err);

/* One try of a claim that has been checked. */
int hf_session_claim_once(struct hf_store *store, const struct hf_caller *given,
                          const struct hf_session_claim *checked,
                          struct hf_session_answer **ret_answer, struct hf_err *err);

#endif
