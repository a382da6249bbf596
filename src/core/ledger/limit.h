/* Limits: how many rows of one name may run at once, and how many may start in a time.
 *
 * A row's limit has a name: "key:K" or "rate:K" by the row's own key, with the tenant after
 * it where there is one, otherwise "kind:K" of all tenants. The counting itself is the
 * store's, in one statement under the lock of the name (sql/limit.sql). */
#ifndef HF_CORE_LEDGER_LIMIT_H
#define HF_CORE_LEDGER_LIMIT_H

#include <holdfast/work.h>

#include "base/arena.h"

/* The name that rows carry, in the arena, for a name as people write it. */
int hf_limit_full_name(struct hf_arena *arena, const char *prefix, const char *key,
                       const char *tenant, const char **ret_name, struct hf_err *err);

/* The same for "key:K", "rate:K" or "kind:K"; HF_EINVAL for another type. */
int hf_limit_name_of(struct hf_arena *arena, const char *given, const char *tenant,
                     const char **ret_name, struct hf_err *err);

/* Input check; the name is checked by hf_limit_name_of. */
int hf_limit_check(const struct hf_limit *limit, struct hf_err *err);

/* The byte between key and tenant: none that a key may hold. */
#define HF_LIMIT_TENANT '\x1f'

/* Distance between the tags of two rows of one fair key with weight 1. */
#define HF_FAIR_STRIDE ((int64_t)1 << 20)

#endif
