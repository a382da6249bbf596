/* What run/ needs of the public verbs' workings. */
#ifndef HF_STORE_API_H
#define HF_STORE_API_H

#include <holdfast/sys/store.h>

/* Check a caller and fill in who acts when it does not say. `given` may be NULL. */
int hf_caller_complete(const struct hf_caller *given, const char *actor_kind,
                       const char *actor, struct hf_caller *ret_who, struct hf_err *err);

/* One try of a claim that has been checked, by a complete caller. */
int hf_work_claim_once(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_claim *claim, struct hf_answer **ret_answer,
                       struct hf_err *err);

#endif
