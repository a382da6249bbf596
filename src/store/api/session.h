/* The parts of the public verbs over sessions that run/ needs. */
#ifndef HF_STORE_API_SESSION_H
#define HF_STORE_API_SESSION_H

#include <holdfast/sys/store.h>

#include "base/arena.h"

/* The input checks of the verbs. Each checks a request and copies it with all its fields; what is
 * put in canonical form is in `arena`. */
int hf_session_id_check(const char *session_id, struct hf_err *err);
int hf_session_create_check(struct hf_arena *arena, const struct hf_session_spec *wanted,
                            struct hf_session_spec *ret_request, struct hf_err *err);
int hf_session_send_check(struct hf_arena *arena, const struct hf_session_send *wanted,
                          struct hf_session_send *ret_request, struct hf_err *err);
int hf_session_step_check(const struct hf_session_step *wanted,
                          struct hf_session_step *ret_step, struct hf_err *err);
int hf_session_commit_check(struct hf_arena *arena,
                            const struct hf_session_commit *wanted,
                            struct hf_session_commit *ret_commit, struct hf_err *err);
int hf_session_renewals_check(const struct hf_session_renewal *renewals, size_t count,
                              struct hf_err *err);
int hf_session_back_check(const struct hf_session_back *wanted,
                          struct hf_session_back *ret_back, struct hf_err *err);
int hf_session_load_check(const struct hf_session_load *wanted,
                          struct hf_session_load *ret_request, struct hf_err *err);
int hf_session_filter_check(const struct hf_session_filter *wanted,
                            struct hf_session_filter *ret_filter, struct hf_err *err);
int hf_session_claim_check(const struct hf_session_claim *wanted,
                           struct hf_session_claim *ret_claim, struct hf_err *err);

/* One try of a claim that has been checked. */
int hf_session_claim_once(struct hf_store *store, const struct hf_caller *given,
                          const struct hf_session_claim *checked,
                          struct hf_session_answer **ret_answer, struct hf_err *err);

#endif
