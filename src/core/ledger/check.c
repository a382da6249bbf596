/* Input checks that need no row. Each failure names the field and the rule. */

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/policy.h"
#include "core/ledger/step.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)

struct named {
    const char *value;
    const char *field;
};

struct named_ms {
    hf_ms value;
    const char *field;
};

static int check_keys(const struct named *keys, size_t count, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = hf_check_key_opt(keys[i].value, KEY_MAX, keys[i].field, err);
    return rc;
}

static int check_spans(const struct named_ms *spans, size_t count, struct hf_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (spans[i].value < 0 || spans[i].value > HF_MAX_DURATION_MAX_MS)
            return hf_fail(err, HF_EINVAL, spans[i].field, "%s must be 0 to %lld ms",
                           spans[i].field, (long long)HF_MAX_DURATION_MAX_MS);
    }
    return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int check_json(const char *text, int64_t max, const char *field,
                      struct hf_err *err)
{
    if (!text)
        return 0;
    return hf_json_check((struct hf_span){ text, strlen(text) }, (size_t)max, field, err);
}

static bool starts(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == 0;
}

/* A kind that a unit is created with. */
static int check_kind(const char *kind, const char *field, struct hf_err *err)
{
    int rc = hf_check_key_opt(kind, KEY_MAX, field, err);
    if (rc == 0 && kind && starts(kind, "hf."))
        rc = hf_fail(err, HF_EINVAL, field, "kinds that begin with hf. are reserved");
    return rc;
}

/* ---- create ------------------------------------------------------------------------ */

static int check_identity(const struct hf_work_spec *request, struct hf_err *err)
{
    if (!hf_source_word(request->source))
        return hf_fail(err, HF_EINVAL, "source",
                       "source must be conversation, control, scheduler or manual");
    int rc = hf_check_key(request->source_id, KEY_MAX, "source_id", err);
    if (rc)
        return rc;
    if (request->source == HF_SOURCE_SCHEDULER && !request->source_run_id)
        return hf_fail(err, HF_EINVAL, "source_run_id",
                       "source_run_id is required for source scheduler");
    const struct named keys[] = {
        { request->source_run_id, "source_run_id" },
        { request->queue, "queue" },
        { request->lane_key, "lane_key" },
        { request->limit_key, "limit_key" },
        { request->rate_key, "rate_key" },
        { request->fair_key, "fair_key" },
        { request->dedup_key, "dedup_key" },
        { request->idempotency_key, "idempotency_key" },
        { request->ref, "ref" },
        { request->parent_work_id, "parent_work_id" },
        { request->payload_ref, "payload_ref" },
        { request->reply_ref, "reply_ref" },
    };
    rc = check_keys(keys, COUNT(keys), err);
    return rc ? rc : check_kind(request->kind, "kind", err);
}

static int check_times(const struct hf_work_spec *request, struct hf_err *err)
{
    const struct named_ms spans[] = {
        { request->delay_ms, "delay_ms" },
        { request->start_timeout_ms, "start_timeout_ms" },
        { request->exec_timeout_ms, "exec_timeout_ms" },
    };
    int rc = check_spans(spans, COUNT(spans), err);
    if (rc)
        return rc;
    if (request->due_at < 0 || request->due_at > HF_TIME_MAX_MS)
        return hf_fail(err, HF_EINVAL, "due_at", "due_at must lie in 1970 to 9999");
    if (request->due_at != 0 && request->delay_ms != 0)
        return hf_fail(err, HF_EINVAL, "due_at",
                       "due_at and delay_ms exclude each other");
    if (request->detached && (request->due_at != 0 || request->delay_ms != 0))
        return hf_fail(
            err, HF_EINVAL, "detached",
            "a detached command is done when it is created: leave the delay out");
    return 0;
}

static int check_sharing(const struct hf_work_spec *request, struct hf_err *err)
{
    const char *second = request->rate_key ? "rate_key" : "limit_key";
    int keys = (request->lane_key != NULL) + (request->limit_key != NULL) +
               (request->rate_key != NULL);
    if (keys > 1)
        return hf_fail(err, HF_EINVAL, second,
                       "lane_key, limit_key and rate_key exclude each other: one limit "
                       "can have a maximum and a rate");
    if (request->fair_weight < 0 || request->fair_weight > HF_MAX_FAIR_WEIGHT_MAX)
        return hf_fail(err, HF_EINVAL, "fair_weight", "fair_weight must be 1 to %lld",
                       (long long)HF_MAX_FAIR_WEIGHT_MAX);
    if (request->fair_weight != 0 && !request->fair_key)
        return hf_fail(err, HF_EINVAL, "fair_weight", "a weight needs a fair_key");
    return 0;
}

static int check_wishes(const struct hf_work_spec *request, struct hf_err *err)
{
    if (request->disposition != HF_DISPOSITION_NONE &&
        !hf_disposition_word(request->disposition))
        return hf_fail(err, HF_EINVAL, "disposition",
                       "disposition must be expire, rerunnable, owner_bound or "
                       "externally_owned");
    if (request->priority < -1 || request->priority > HF_MAX_PRIORITY_MAX)
        return hf_fail(err, HF_EINVAL, "priority", "priority must be 0 to %lld",
                       (long long)HF_MAX_PRIORITY_MAX);
    if (request->max_attempts < 0 || request->max_attempts > HF_MAX_ATTEMPTS_MAX)
        return hf_fail(err, HF_EINVAL, "max_attempts", "max_attempts must be 1 to %lld",
                       (long long)HF_MAX_ATTEMPTS_MAX);
    if (!hf_close_rule_known(request->close_rule))
        return hf_fail(err, HF_EINVAL, "close_rule",
                       "close_rule must be evidence or reviewer");
    struct hf_retry retry;
    return hf_retry_read(request->retry_policy, &retry, err);
}

int hf_work_spec_check(const struct hf_work_spec *request, struct hf_err *err)
{
    if (!request)
        return hf_fail(err, HF_EINVAL, "request", "a request is needed");
    int rc = hf_sized_check(request->size, sizeof(*request), sizeof(*request), err);
    if (rc == 0)
        rc = check_identity(request, err);
    if (rc == 0)
        rc = check_times(request, err);
    if (rc == 0)
        rc = check_wishes(request, err);
    if (rc == 0)
        rc = check_sharing(request, err);
    if (rc)
        return rc;
    if (request->payload && request->payload_ref)
        return hf_fail(err, HF_EINVAL, "payload_ref",
                       "payload and payload_ref exclude each other");
    if (request->reply_ref && request->payload_ref)
        return hf_fail(
            err, HF_EINVAL, "reply_ref",
            "reply_ref and payload_ref exclude each other: a reply needs its payload");
    return check_json(request->payload, HF_MAX_PAYLOAD_BYTES, "payload", err);
}

#define TEXTS 16

/* The texts of a request, in the order of its hash. */
static void texts_of(const struct hf_work_spec *request, const char *ret_texts[TEXTS])
{
    const char *const texts[TEXTS] = {
        request->source_id,
        request->source_run_id,
        request->kind,
        request->queue,
        request->lane_key,
        request->dedup_key,
        request->ref,
        request->parent_work_id,
        request->payload,
        request->payload_ref,
        request->retry_policy,
        request->close_rule,
        request->idempotency_key,
        request->limit_key,
        request->rate_key,
        request->fair_key,
    };
    memcpy(ret_texts, texts, sizeof(texts));
}

size_t hf_work_spec_bytes(const struct hf_work_spec *request)
{
    const char *texts[TEXTS];
    size_t bytes = 0;
    texts_of(request, texts);
    for (size_t i = 0; i < TEXTS; i++)
        bytes += texts[i] ? strlen(texts[i]) : 0;
    return bytes;
}

int hf_work_spec_hash(const struct hf_work_spec *request, const struct hf_caller *who,
                      uint8_t ret_hash[32], struct hf_err *err)
{
    struct hf_digest digest;
    const char *texts[TEXTS];
    texts_of(request, texts);
    hf_digest_begin(&digest, "work.create", 1);
    hf_digest_text(&digest, who && who->tenant ? who->tenant : "");
    hf_digest_i64(&digest, request->source);
    for (size_t i = 0; i < TEXTS; i++)
        hf_digest_text(&digest, texts[i]);
    const int64_t numbers[] = {
        request->disposition,     request->priority, request->max_attempts,
        request->delay_ms,        request->due_at,   request->start_timeout_ms,
        request->exec_timeout_ms, request->detached, request->fair_weight,
    };
    for (size_t i = 0; i < COUNT(numbers); i++)
        hf_digest_i64(&digest, numbers[i]);
    int rc = hf_digest_end(&digest, ret_hash);
    return rc ? hf_fail_plain(err, rc) : 0;
}

/* ---- callers and claims ------------------------------------------------------------ */

int hf_caller_check(const struct hf_caller *who, struct hf_err *err)
{
    static const char *const kinds[] = { "human", "worker", "schedule", "webhook",
                                         "system" };
    if (!who)
        return 0;
    int rc = hf_sized_check(who->size, sizeof(*who), sizeof(*who), err);
    if (rc)
        return rc;
    size_t i = 0;
    while (who->actor_kind && i < COUNT(kinds) && !hf_same(kinds[i], who->actor_kind))
        i++;
    if (i == COUNT(kinds))
        return hf_fail(err, HF_EINVAL, "actor_kind",
                       "actor kind must be human, worker, schedule, webhook or system");
    const struct named keys[] = {
        { who->actor, "actor" },
        { who->tenant && *who->tenant ? who->tenant : NULL, "tenant" },
        { who->operation_id, "operation_id" },
        { who->correlation_id, "correlation_id" },
    };
    return check_keys(keys, COUNT(keys), err);
}

static int check_term(hf_ms ttl_ms, struct hf_err *err)
{
    return ttl_ms ? hf_lease_timing(ttl_ms, 0, err) : 0;
}

static int check_pid(int pid, struct hf_err *err)
{
    return pid < 0 ? hf_fail(err, HF_EINVAL, "pid", "pid must be 0 or above") : 0;
}

/* The kinds that a claim asks for; none means any. Reserved kinds may be claimed, only not
 * created. */
static int check_wanted_kinds(const struct hf_claim *claim, struct hf_err *err)
{
    int rc = 0;
    if (claim->kind_count > (size_t)HF_MAX_KINDS)
        return hf_fail(err, HF_ETOOBIG, "kinds", "a claim can name at most %lld kinds",
                       (long long)HF_MAX_KINDS);
    rc = hf_sized_array(claim->kinds, claim->kind_count, "kinds", err);
    for (size_t i = 0; rc == 0 && i < claim->kind_count; i++)
        rc = hf_check_key(claim->kinds[i], KEY_MAX, "kinds", err);
    return rc;
}

int hf_claim_check(const struct hf_claim *claim, struct hf_err *err)
{
    if (!claim)
        return hf_fail(err, HF_EINVAL, "claim", "a claim is needed");
    int rc = hf_sized_check(claim->size, sizeof(*claim), sizeof(*claim), err);
    if (rc == 0)
        rc = hf_check_key(claim->owner, KEY_MAX, "owner", err);
    const struct named keys[] = {
        { claim->incarnation, "incarnation" },
        { claim->nonce, "nonce" },
        { claim->id, "id" },
        { claim->queue, "queue" },
    };
    if (rc == 0)
        rc = check_keys(keys, COUNT(keys), err);
    if (rc == 0)
        rc = check_wanted_kinds(claim, err);
    if (rc == 0 && claim->limit > (size_t)HF_MAX_BATCH)
        rc = hf_fail(err, HF_ETOOBIG, "limit", "a claim takes at most %lld rows",
                     (long long)HF_MAX_BATCH);
    if (rc == 0 && claim->ttl_default_ms)
        rc = hf_lease_timing(claim->ttl_default_ms, 0, err);
    if (rc == 0)
        rc = check_pid(claim->pid, err);
    if (rc == 0 && claim->lock && !claim->pid)
        rc = hf_fail(err, HF_EINVAL, "lock", "a lock needs the pid of its starter");
    if (rc == 0)
        rc = check_term(claim->ttl_ms, err);
    const struct named_ms spans[] = { { claim->wait_ms, "wait_ms" } };
    return rc ? rc : check_spans(spans, COUNT(spans), err);
}
