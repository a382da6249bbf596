/* Policy: defaults, precedence, checks.
 *
 * A policy is set for a scope: default (all units), a source, or a kind. A narrower scope wins,
 * field by field, in this order: kind, source, default, built-in. A field is unset as 0, NULL or
 * NONE; grace_ms is unset as -1, since a grace of 0 is a setting. */
#include "core/ledger/policy.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/lease.h"
#include "core/ledger/retry.h"

const struct hf_policy hf_policy_builtin = {
    .size = sizeof(struct hf_policy),
    .ttl_ms = 45000,
    .renew_ms = 15000,
    .grace_ms = 30000,
    .wait_user_ms = 24 * 3600 * 1000,
    .wait_external_ms = 2 * 3600 * 1000,
    .max_attempts = 3,
    .disposition = HF_DISPOSITION_EXPIRE,
};

/* The number of executions that a scope asks for, in max_attempts or in its retry policy; 0: it
 * asks for none. */
static int attempts_of(const struct hf_policy *policy)
{
    struct hf_retry retry;
    if (policy->max_attempts != 0 || !policy->retry_policy)
        return policy->max_attempts;
    if (hf_retry_read(policy->retry_policy, &retry, NULL) != 0)
        return 0; /* refused when it was set; a damaged one must not stop every create */
    return (int)retry.max_attempts;
}

/* `narrow`, with its unset fields from `wide`. The number of executions that `narrow` asks for, in
 * either form, wins over that of `wide`. `wide` is built in or was merged, so its number is in its
 * max_attempts. */
struct hf_policy hf_policy_merge(const struct hf_policy *narrow,
                                 const struct hf_policy *wide)
{
    struct hf_policy all = *narrow;
    all.size = sizeof(all);
    /* Term and renewal are one setting: half of a pair would break ttl >= 3 * renew. */
    if (all.ttl_ms == 0) {
        all.ttl_ms = wide->ttl_ms;
        all.renew_ms = wide->renew_ms;
    }
    if (all.renew_ms == 0 && all.ttl_ms != 0)
        all.renew_ms = hf_lease_renew_every(all.ttl_ms);
    if (all.grace_ms < 0)
        all.grace_ms = wide->grace_ms;
    if (all.wait_user_ms == 0)
        all.wait_user_ms = wide->wait_user_ms;
    if (all.wait_external_ms == 0)
        all.wait_external_ms = wide->wait_external_ms;
    if (all.start_timeout_ms == 0)
        all.start_timeout_ms = wide->start_timeout_ms;
    if (all.exec_timeout_ms == 0)
        all.exec_timeout_ms = wide->exec_timeout_ms;
    all.max_attempts = attempts_of(narrow);
    if (all.max_attempts == 0)
        all.max_attempts = wide->max_attempts;
    if (!all.retry_policy)
        all.retry_policy = wide->retry_policy;
    if (all.disposition == HF_DISPOSITION_NONE)
        all.disposition = wide->disposition;
    if (!all.close_rule)
        all.close_rule = wide->close_rule;
    if (!all.wait_rule)
        all.wait_rule = wide->wait_rule;
    return all;
}

int hf_policy_retry_text(struct hf_arena *arena, const struct hf_policy *policy,
                         const char **ret_json, struct hf_err *err)
{
    struct hf_retry retry;
    struct hf_buf text;
    int rc = hf_retry_read(policy->retry_policy, &retry, err);
    if (rc)
        return rc;
    if (policy->max_attempts)
        retry.max_attempts = policy->max_attempts;
    hf_buf_init(&text, arena->alloc, 65536);
    rc = hf_retry_write(&text, &retry);
    const char *copy = rc ? NULL : hf_arena_copy(arena, hf_buf_str(&text), text.len);
    hf_buf_fini(&text);
    if (!copy)
        return hf_fail_plain(err, rc ? rc : HF_ENOMEM);
    *ret_json = copy;
    return 0;
}

static int check_span(hf_ms value, const char *field, struct hf_err *err)
{
    if (value < 0 || value > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, field, "%s must be 0 to %lld ms", field,
                       (long long)HF_MAX_DURATION_MAX_MS);
    return 0;
}

static int check_timing(const struct hf_policy *policy, struct hf_err *err)
{
    if (policy->ttl_ms == 0 && policy->renew_ms != 0)
        return hf_fail(err, HF_EINVAL, "renew_ms", "renew_ms needs ttl_ms");
    if (policy->ttl_ms != 0) {
        int rc = hf_lease_timing(policy->ttl_ms, policy->renew_ms, err);
        if (rc)
            return rc;
    }
    if (policy->grace_ms == -1)
        return 0;
    return check_span(policy->grace_ms, "grace_ms", err);
}

bool hf_close_rule_known(const char *rule)
{
    return !rule || hf_same(rule, "evidence") || hf_same(rule, "reviewer");
}

int hf_policy_check(const struct hf_policy *policy, struct hf_err *err)
{
    int rc = hf_sized_check(policy->size, sizeof(*policy), sizeof(*policy), err);
    if (rc == 0)
        rc = check_timing(policy, err);
    if (rc == 0)
        rc = check_span(policy->wait_user_ms, "wait_user_ms", err);
    if (rc == 0)
        rc = check_span(policy->wait_external_ms, "wait_external_ms", err);
    if (rc == 0)
        rc = check_span(policy->start_timeout_ms, "start_timeout_ms", err);
    if (rc == 0)
        rc = check_span(policy->exec_timeout_ms, "exec_timeout_ms", err);
    if (rc)
        return rc;
    if (policy->max_attempts < 0 || policy->max_attempts > HF_MAX_ATTEMPTS_MAX)
        return hf_fail(err, HF_EINVAL, "max_attempts", "max_attempts must be 0 to %lld",
                       (long long)HF_MAX_ATTEMPTS_MAX);
    if (policy->disposition != HF_DISPOSITION_NONE &&
        !hf_disposition_word(policy->disposition))
        return hf_fail(
            err, HF_EINVAL, "disposition",
            "disposition must be expire, rerunnable, owner_bound or externally_owned");
    if (!hf_close_rule_known(policy->close_rule))
        return hf_fail(err, HF_EINVAL, "close_rule",
                       "close_rule must be evidence or reviewer");
    if (policy->wait_rule && !hf_same(policy->wait_rule, "escalation"))
        return hf_fail(err, HF_EINVAL, "wait_rule", "wait_rule must be escalation");
    struct hf_retry retry;
    return hf_retry_read(policy->retry_policy, &retry, err);
}

static const char *after(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != prefix[i])
            return NULL;
    }
    return text + len;
}

int hf_policy_scope_check(const char *scope, struct hf_err *err)
{
    const char *name = NULL;
    if (scope && hf_same(scope, "default"))
        return 0;
    if (scope && (name = after(scope, "source:")) && hf_source_of(name))
        return 0;
    if (scope && (name = after(scope, "kind:")))
        return hf_check_key(name, (size_t)HF_MAX_KEY_BYTES, "scope", err);
    return hf_fail(err, HF_EINVAL, "scope",
                   "scope must be default, source:NAME or kind:NAME");
}
