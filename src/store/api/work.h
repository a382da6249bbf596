/* The parts of the public verbs that run/ needs. */
#ifndef HF_STORE_API_WORK_H
#define HF_STORE_API_WORK_H

#include <holdfast/sys/store.h>

/* Check a caller and fill in who acts when it does not say. `given` may be NULL. */
int hf_caller_complete(const struct hf_caller *given, const char *actor_kind,
                       const char *actor, struct hf_caller *ret_who, struct hf_err *err);

/* The input checks of the public verbs, and the verbs for what has passed them. */
int hf_flags_check(unsigned flags, struct hf_err *err);
int hf_create_check(const struct hf_work_spec *news, size_t n, struct hf_err *err);
int hf_changes_check(const struct hf_change *changes, size_t n, struct hf_err *err);
int hf_renew_all_check(const struct hf_renew_all *wanted, struct hf_renew_all *ret_renew,
                       struct hf_err *err);

/* hf_work_create of requests that have passed hf_work_spec_check and are no replies. */
int hf_work_create_checked(struct hf_store *store, const struct hf_caller *who,
                           const struct hf_work_spec *news, size_t n, unsigned flags,
                           struct hf_answer **ret_answer, struct hf_err *err);

/* Whether this very message, by its source, made a unit that is still kept. */
int hf_work_known(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_work_spec *request, bool *ret_known,
                  struct hf_err *err);

/* One try of a claim that has been checked, by a complete caller. */
int hf_work_claim_once(struct hf_store *store, const struct hf_caller *who,
                       const struct hf_claim *claim, struct hf_answer **ret_answer,
                       struct hf_err *err);

/* What is kept of a stream is of this attempt, and empty: other chunks are put now. */
void hf_output_forget(struct hf_output *output, enum hf_stream stream, int64_t attempt);

/* The monotonic clock of the store. */
hf_ms hf_store_mono(const struct hf_store *store);

#endif
