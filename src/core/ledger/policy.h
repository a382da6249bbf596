/* Policy precedence: work > kind > source > default. */
#ifndef HF_CORE_LEDGER_POLICY_H
#define HF_CORE_LEDGER_POLICY_H

#include <holdfast/work.h>

#include "base/arena.h"

/* 45 s / 15 s + 30 s grace; waits 24 h and 2 h; 3 executions; expire. */
extern const struct hf_policy hf_policy_builtin;

/* Where `narrow` leaves a field unset, `wide` decides. */
struct hf_policy hf_policy_merge(const struct hf_policy *narrow,
                                 const struct hf_policy *wide);

/* The retry policy that a unit under this complete policy gets when it asks for none, as
 * canonical JSON in `arena`. */
int hf_policy_retry_text(struct hf_arena *arena, const struct hf_policy *policy,
                         const char **ret_json, struct hf_err *err);

/* Field names, ranges, ttl >= 3 * renew, retry policy text, close and wait rule. */
int hf_policy_check(const struct hf_policy *policy, struct hf_err *err);

/* NULL, "evidence" or "reviewer". */
bool hf_close_rule_known(const char *rule);

/* "default", "source:conversation", "kind:NAME"; otherwise HF_EINVAL naming "scope". */
int hf_policy_scope_check(const char *scope, struct hf_err *err);

#endif
