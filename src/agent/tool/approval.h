/* Rules: which calls of a tool need an approval. */
#ifndef HF_AGENT_TOOL_APPROVAL_H
#define HF_AGENT_TOOL_APPROVAL_H

#include <holdfast/tool.h>

#include "base/arena.h"
#include "base/json_schema.h"

/* "always", or one condition per JSON pointer. NULL: never. */
struct approval_rule;

/* *ret_rule is NULL for a rule that is NULL or "never". HF_EINVAL with the field "approval",
 * HF_ENOMEM. */
HF_MUST_USE int approval_rule_new(const struct hf_alloc *alloc, const char *text,
                                  struct approval_rule **ret_rule, struct hf_err *err);
void approval_rule_free(struct approval_rule *rule); /* NULL is fine */

/* Replaces the texts of an approval by copies in the arena. HF_ENOMEM. */
HF_MUST_USE int approval_copy(struct hf_arena *arena, struct hf_approval *approval);

/* Whether a call with these arguments needs an approval. A check that cannot be made says yes. */
bool approval_needed(const struct approval_rule *rule, const struct json_t *args);

#endif
