/* Policies and retries: precedence, and the arithmetic of delays. */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "model/inside.h"

static struct json_t *parsed(const char *json)
{
    struct json_t *value = NULL;
    struct hf_span text = { json, json ? strlen(json) : 0 };
    if (!json || hf_json_parse(text, 1 << 20, "retry_policy", &value, NULL) != 0)
        return NULL;
    return value;
}

static hf_ms span_of(const struct json_t *all, const char *ms, const char *sec,
                     hf_ms none)
{
    if (hf_json_member(all, ms))
        return hf_json_as_i64(hf_json_member(all, ms));
    if (hf_json_member(all, sec))
        return (hf_ms)(hf_json_as_real(hf_json_member(all, sec)) * 1000.0);
    return none;
}

struct m_retry m_retry_read(const char *json)
{
    struct m_retry retry = { 0, 5000, 300000, 2.0, true };
    struct json_t *all = parsed(json);
    if (!all)
        return retry;
    retry.max_attempts = hf_json_as_i64(hf_json_member(all, "max_attempts"));
    retry.initial_ms = span_of(all, "initial_backoff_ms", "initial_backoff_sec", 5000);
    retry.max_ms = span_of(all, "max_backoff_ms", "max_backoff_sec", 300000);
    if (hf_json_member(all, "backoff_multiplier"))
        retry.multiplier = hf_json_as_real(hf_json_member(all, "backoff_multiplier"));
    const char *jitter = hf_json_as_text(hf_json_member(all, "jitter"));
    retry.jitter = !m_same(jitter, "none");
    hf_json_free(all);
    return retry;
}

bool m_retry_lists(const char *json, const char *key, const char *word)
{
    bool listed = false;
    struct json_t *all = parsed(json);
    const struct json_t *words = hf_json_member(all, key);
    for (size_t i = 0; i < hf_json_items(words); i++)
        listed |= m_same(hf_json_as_text(hf_json_item(words, i)), word);
    hf_json_free(all);
    return listed;
}

static const char *words_of(struct model_disk *disk, const char *json, const char *key)
{
    struct json_t *all = parsed(json);
    const struct json_t *words = hf_json_member(all, key);
    const char *text = "";
    if (words) {
        text = m_say(disk, ",\"%s\":[", key);
        for (size_t i = 0; i < hf_json_items(words); i++)
            text = m_say(disk, "%s%s\"%s\"", text, i ? "," : "",
                         hf_json_as_text(hf_json_item(words, i)));
        text = m_say(disk, "%s]", text);
    }
    hf_json_free(all);
    return text;
}

const char *m_retry_fixed(struct model_disk *disk, const char *json, int64_t attempts)
{
    struct m_retry retry = m_retry_read(json);
    return m_say(disk,
                 "{\"backoff_multiplier\":%g,\"initial_backoff_ms\":%lld,"
                 "\"jitter\":\"%s\",\"max_attempts\":%lld,\"max_backoff_ms\":%lld%s%s}",
                 retry.multiplier, (long long)retry.initial_ms,
                 retry.jitter ? "full" : "none", (long long)attempts,
                 (long long)retry.max_ms, words_of(disk, json, "never_on"),
                 words_of(disk, json, "retry_on"));
}

/* A failure's class is retried unless it is hopeless; a timeout only where it is listed. */
bool m_retry_allows(const char *json, const char *word, bool timeout)
{
    if (m_retry_lists(json, "never_on", word))
        return false;
    if (m_retry_lists(json, "retry_on", word))
        return true;
    bool hopeless = m_same(word, "validation") || m_same(word, "policy_denied") ||
                    m_same(word, "misconfigured");
    return !timeout && !hopeless;
}

hf_ms m_retry_delay(struct m_call *call, const char *json, int64_t failures)
{
    struct m_retry retry = m_retry_read(json);
    double delay = (double)retry.initial_ms;
    for (int64_t i = 1; i < failures && delay < (double)retry.max_ms; i++)
        delay *= retry.multiplier;
    hf_ms most = delay < (double)retry.max_ms ? (hf_ms)delay : retry.max_ms;
    if (!retry.jitter || most <= 0)
        return most > 0 ? most : 0;
    uint64_t chance = 0;
    const struct hf_random *random = call->m->handle.random;
    (void)random->fill(random->user, &chance, sizeof(chance)); /* a test's never fails */
    return (hf_ms)(chance % ((uint64_t)most + 1));
}

/* ---- precedence -------------------------------------------------------------------------- */

static const struct hf_policy *of_scope(struct model_disk *disk, const char *scope)
{
    for (size_t i = 0; i < disk->policies.count; i++) {
        if (m_same(disk->policies.at[i].scope, scope))
            return &disk->policies.at[i].policy;
    }
    return NULL;
}

static void lay_over(struct hf_policy *all, const struct hf_policy *narrow)
{
    if (!narrow)
        return;
    if (narrow->ttl_ms) {
        all->ttl_ms = narrow->ttl_ms;
        all->renew_ms = narrow->renew_ms ? narrow->renew_ms : narrow->ttl_ms / 3;
    }
    if (narrow->grace_ms >= 0)
        all->grace_ms = narrow->grace_ms;
    if (narrow->wait_user_ms)
        all->wait_user_ms = narrow->wait_user_ms;
    if (narrow->wait_external_ms)
        all->wait_external_ms = narrow->wait_external_ms;
    if (narrow->start_timeout_ms)
        all->start_timeout_ms = narrow->start_timeout_ms;
    if (narrow->exec_timeout_ms)
        all->exec_timeout_ms = narrow->exec_timeout_ms;
    /* The retry policy of a scope may say how often, too. */
    int attempts = narrow->max_attempts;
    if (attempts == 0 && narrow->retry_policy)
        attempts = (int)m_retry_read(narrow->retry_policy).max_attempts;
    if (attempts)
        all->max_attempts = attempts;
    if (narrow->retry_policy)
        all->retry_policy = narrow->retry_policy;
    if (narrow->disposition)
        all->disposition = narrow->disposition;
    if (narrow->close_rule)
        all->close_rule = narrow->close_rule;
    if (narrow->wait_rule)
        all->wait_rule = narrow->wait_rule;
}

struct hf_policy m_policy_of(struct model_disk *disk, enum hf_source source,
                             const char *kind)
{
    return m_policy_over(disk, 45000, source, kind);
}

struct hf_policy m_policy_over(struct model_disk *disk, hf_ms last_ttl_ms,
                               enum hf_source source, const char *kind)
{
    struct hf_policy all = {
        .size = sizeof(all),
        .ttl_ms = last_ttl_ms,
        .renew_ms = last_ttl_ms / 3,
        .grace_ms = 30000,
        .wait_user_ms = 86400000,
        .wait_external_ms = 7200000,
        .max_attempts = 3,
        .disposition = HF_DISPOSITION_EXPIRE,
    };
    char scope[256];
    lay_over(&all, of_scope(disk, "default"));
    (void)snprintf(scope, sizeof(scope), "source:%s",
                   source ? hf_source_word(source) : "");
    lay_over(&all, of_scope(disk, scope));
    (void)snprintf(scope, sizeof(scope), "kind:%s", kind ? kind : "");
    lay_over(&all, of_scope(disk, scope));
    return all;
}

int m_policy_set(struct hf_store *store, const char *scope,
                 const struct hf_policy *policy, struct hf_err *err)
{
    struct model_disk *disk = ((struct model *)store)->disk;
    struct m_policy *entry = NULL;
    (void)err;
    for (size_t i = 0; i < disk->policies.count && !entry; i++) {
        if (m_same(disk->policies.at[i].scope, scope))
            entry = &disk->policies.at[i];
    }
    if (!entry)
        entry = m_add(disk->policies);
    entry->scope = m_text(disk, scope);
    entry->policy = *policy;
    entry->policy.retry_policy = m_text(disk, policy->retry_policy);
    entry->policy.close_rule = m_text(disk, policy->close_rule);
    entry->policy.wait_rule = m_text(disk, policy->wait_rule);
    return 0;
}

int m_policy_get(struct hf_store *store, enum hf_source source, const char *kind,
                 struct hf_policy_answer **ret_answer, struct hf_err *err)
{
    struct model_disk *disk = ((struct model *)store)->disk;
    struct hf_policy policy = m_policy_of(disk, source, kind);
    policy.retry_policy = m_retry_fixed(disk, policy.retry_policy, policy.max_attempts);
    *ret_answer = hf_policy_answer_new(store->alloc, &policy);
    return *ret_answer ? 0 : hf_fail_plain(err, HF_ENOMEM);
}
