/* Limits: how many rows of one name may run at once, and how many may start in a time. Here are
 * the names of limits and their checks; the counting is the store's (sql/limit.sql). */
#include "core/ledger/limit.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

#define NAME_MAX_BYTES 512

int hf_limit_full_name(struct hf_arena *arena, const char *prefix, const char *key,
                       const char *tenant, const char **ret_name, struct hf_err *err)
{
    struct hf_buf name;
    hf_buf_init(&name, arena->alloc, NAME_MAX_BYTES);
    hf_buf_text(&name, prefix);
    hf_buf_text(&name, key);
    if (tenant && *tenant) {
        hf_buf_char(&name, HF_LIMIT_TENANT);
        hf_buf_text(&name, tenant);
    }
    *ret_name = hf_buf_keep(&name, arena);
    return *ret_name ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

int hf_limit_name_of(struct hf_arena *arena, const char *given, const char *tenant,
                     const char **ret_name, struct hf_err *err)
{
    static const char *const prefixes[] = { "key:", "rate:", "kind:" };
    for (size_t i = 0; given && i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (!hf_starts_with(given, prefixes[i]))
            continue;
        const char *key = given + strlen(prefixes[i]);
        int rc = hf_check_key(key, (size_t)HF_MAX_KEY_BYTES, "name", err);
        if (rc)
            return rc;
        return hf_limit_full_name(arena, prefixes[i], key, i < 2 ? tenant : NULL,
                                  ret_name, err);
    }
    return hf_fail(err, HF_EINVAL, "name",
                   "a limit is named key:NAME, rate:NAME or kind:NAME");
}

static int check_count(int64_t value, const char *field, struct hf_err *err)
{
    if (value < 0 || value > HF_MAX_LIMIT_COUNT)
        return hf_fail(err, HF_EINVAL, field, "%s must be 0 to %lld", field,
                       (long long)HF_MAX_LIMIT_COUNT);
    return 0;
}

int hf_limit_check(const struct hf_limit *limit, struct hf_err *err)
{
    int rc = hf_sized_check(limit->size, sizeof(*limit), sizeof(*limit), err);
    if (rc == 0)
        rc = check_count(limit->max_running, "max_running", err);
    if (rc == 0)
        rc = check_count(limit->rate_count, "rate_count", err);
    if (rc == 0)
        rc = check_count(limit->burst, "burst", err);
    if (rc)
        return rc;
    if ((limit->rate_count == 0) != (limit->rate_ms == 0))
        return hf_fail(err, HF_EINVAL, limit->rate_ms ? "rate_count" : "rate_ms",
                       "a rate is a count and a time: rate_count in rate_ms");
    if (limit->rate_ms < 0 || limit->rate_ms > HF_MAX_TTL_MAX_MS)
        return hf_fail(err, HF_EINVAL, "rate_ms", "rate_ms must be 1 to %lld",
                       (long long)HF_MAX_TTL_MAX_MS);
    if (limit->burst != 0 && limit->rate_count == 0)
        return hf_fail(err, HF_EINVAL, "burst", "a burst needs a rate");
    return 0;
}
