/* Subscriptions and occurrences: their columns, checks and ids, and the unit that an
 * occurrence makes of a subscription. Pure. */
#include "core/trigger/trigger.h"

#include <holdfast/bounds.h>
#include <string.h>

#include "base/civil.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "core/process/process.h"
#include "core/trigger/template.h"

#define COMMAND_KIND "run" /* HF_RUN_KIND of run.h, which is above this */

#define PRIORITY_DEFAULT 3
#define SESSION "session:"

static const char *const state_words[] = { "enabled", "disabled", "deleted", NULL };

/* clang-format off */
#define TEXT(member, ...) HF_FIELD(TEXT, hf_subscription, member, false, __VA_ARGS__)
#define JSON(member, ...) HF_FIELD(JSON, hf_subscription, member, false, __VA_ARGS__)
#define I64(member, ...)  HF_FIELD(I64, hf_subscription, member, false, __VA_ARGS__)
#define MS(member, ...)   HF_FIELD(I64, hf_subscription, member, true, __VA_ARGS__)

const struct hf_field hf_subscription_fields[] = {
    TEXT(subscription_id, "id of the subscription, derived from tenant, owner scope "
                          "and key"),
    TEXT(tenant, "tenant"),
    TEXT(owner_scope, "the owner within the tenant"),
    TEXT(subscription_key, "key, unique for its owner"),
    /* what a change may write */
    TEXT(state, "state: enabled, disabled or deleted", .words = state_words),
    TEXT(incarnation, "generation, raised by each revival"),
    I64(revision, "raised by every change"),
    /* what defines it */
    TEXT(source_type, "type of the source"),
    TEXT(source_key, "key of the source within its type"),
    { "template", HF_FIELD_JSON, offsetof(struct hf_subscription, payload_template),
      .help = "payload of the target; null: the payload of the occurrence" },
    TEXT(kind, "kind of the target"),
    TEXT(queue, "its queue"),
    TEXT(lane_key, "lane key of the target"),
    I64(priority, "priority of the target; 0 is the most urgent"),
    I64(max_attempts, "executions of the target; 0: by policy"),
    JSON(retry_policy, "how failures are retried"),
    TEXT(disposition, "what happens to the target when its lease lapses", .words = hf_disposition_words),
    MS(start_timeout_ms, "longest time of the target in the queue"),
    MS(exec_timeout_ms, "longest time of one execution"),
    TEXT(wake_session, "session that each delivery wakes too"),
    TEXT(process_kind, "kind of the process that is started; null: the target is no "
                       "process"),
    TEXT(process_name, "name of that process"),
    TEXT(registrant, "actor of the last change, as KIND:NAME"),
    /* what became of it */
    I64(deliveries, "deliveries so far"),
    MS(last_at, "time of the last delivery"),
    MS(created_at, "time of its creation"),
    MS(updated_at, "time of its last change"),
};
/* clang-format on */
const size_t hf_subscription_field_count = sizeof(hf_subscription_fields) /
                                           sizeof(hf_subscription_fields[0]);
const struct hf_shape hf_subscription_shape = HF_SHAPE("subscription",
                                                       hf_subscription_fields);

#define FIRST_DEFINING 7
#define DEFINING_FIELDS 15

bool hf_subscription_same(const struct hf_subscription *a,
                          const struct hf_subscription *b)
{
    return hf_fields_same(&hf_subscription_fields[FIRST_DEFINING], DEFINING_FIELDS, a, b);
}

/* ---- ids --------------------------------------------------------------------------- */

static int id_text(struct hf_digest *digest, const char *prefix, char *ret_id)
{
    uint8_t hash[HF_DIGEST_BYTES];
    size_t len = strlen(prefix);
    if (hf_digest_end(digest, hash))
        return HF_ENOMEM;
    memcpy(ret_id, prefix, len);
    hf_hex(hash, sizeof(hash), ret_id + len);
    return 0;
}

int hf_subscription_id(const char *tenant, const char *owner_scope, const char *key,
                       char ret_id[HF_TRIGGER_ID])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "trigger.subscription", 1);
    hf_digest_text(&digest, tenant);
    hf_digest_text(&digest, owner_scope);
    hf_digest_text(&digest, key);
    return id_text(&digest, "sub:v1:", ret_id);
}

int hf_occurrence_id(const char *tenant, const struct hf_occurrence_spec *occurrence,
                     char ret_id[HF_TRIGGER_ID])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "trigger.occurrence", 1);
    hf_digest_text(&digest, tenant);
    hf_digest_text(&digest, occurrence->source_type);
    hf_digest_text(&digest, occurrence->source_key);
    hf_digest_text(&digest, occurrence->idempotency_key);
    return id_text(&digest, "occ:v1:", ret_id);
}

int hf_delivery_id(const char *occurrence_id, const char *subscription_id,
                   char ret_id[HF_TRIGGER_ID])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "trigger.delivery", 1);
    hf_digest_text(&digest, occurrence_id);
    hf_digest_text(&digest, subscription_id);
    return id_text(&digest, "dlv:v1:", ret_id);
}

int hf_occurrence_hash(const struct hf_occurrence_spec *occurrence, uint8_t *ret_hash)
{
    struct hf_digest digest;
    struct hf_buf payload;
    const char *json = occurrence->payload ? occurrence->payload : "null";
    hf_buf_init(&payload, hf_alloc_system(), 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = hf_json_canonical_text(&payload, (struct hf_span){ json, strlen(json) });
    hf_digest_begin(&digest, "trigger.content", 1);
    hf_digest_bytes(&digest, hf_buf_str(&payload), payload.len);
    hf_digest_text(&digest, occurrence->scope);
    hf_digest_i64(&digest, occurrence->occurred_at);
    int ended = hf_digest_end(&digest, ret_hash);
    hf_buf_fini(&payload);
    return rc ? rc : ended;
}

/* ---- checks ------------------------------------------------------------------------ */

static struct hf_work_spec unit_of(const struct hf_subscription_spec *wanted)
{
    return (struct hf_work_spec){
        .size = sizeof(struct hf_work_spec),
        .source = HF_SOURCE_CONTROL,
        .source_id = "subscription",
        .source_run_id = "occurrence",
        HF_NEW_WISHES(wanted),
    };
}

/* A target that is a process declares what becomes of it, as every process does. */
static int check_process(const struct hf_subscription_spec *wanted, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key_opt(wanted->process_kind, max, "process_kind", err);
    if (rc == 0)
        rc = hf_check_key_opt(wanted->process_name, max, "process_name", err);
    if (rc == 0 && wanted->process_name && !wanted->process_kind)
        rc = hf_fail(err, HF_EINVAL, "process_kind",
                     "only a target that is a process has a name: set process_kind too");
    if (rc == 0 && wanted->process_kind && wanted->disposition == HF_DISPOSITION_EXPIRE)
        rc = hf_fail(err, HF_EINVAL, "disposition",
                     "a process is rerunnable, owner_bound or externally_owned");
    return rc;
}

int hf_owner_scope_check(const char *scope, struct hf_err *err)
{
    static const char *const owners[] = { "session:", "host:" };
    int rc = hf_check_key_opt(scope, (size_t)HF_MAX_KEY_BYTES, "owner_scope", err);
    if (rc || !scope || hf_same(scope, "host"))
        return rc;
    for (size_t i = 0; i < 2; i++)
        if (hf_starts_with(scope, owners[i]) && scope[strlen(owners[i])])
            return 0;
    return hf_fail(err, HF_EINVAL, "owner_scope",
                   "owner_scope must be host, host:BINDING or session:ID");
}

int hf_subscription_check(const struct hf_subscription_spec *wanted, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    struct hf_work_spec unit = unit_of(wanted);
    int rc = hf_owner_scope_check(wanted->owner_scope, err);
    if (rc == 0)
        rc = hf_check_key(wanted->key, max, "key", err);
    if (rc == 0)
        rc = hf_check_key(wanted->source_type, max, "source_type", err);
    if (rc == 0)
        rc = hf_check_key(wanted->source_key, max, "source_key", err);
    if (rc == 0) /* it becomes a queue and a lane */
        rc = hf_check_key_opt(wanted->wake_session, max - sizeof(SESSION) + 1,
                              "wake_session", err);
    if (rc == 0)
        rc = hf_template_check(wanted->payload_template, err);
    if (rc == 0 && hf_same(wanted->kind, COMMAND_KIND))
        rc = hf_template_within(wanted->payload_template, "input", err);
    if (rc == 0)
        rc = check_process(wanted, err);
    return rc ? rc : hf_work_spec_check(&unit, err);
}

int hf_occurrence_check(const struct hf_occurrence_spec *occurrence, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key(occurrence->source_type, max, "source_type", err);
    if (rc == 0)
        rc = hf_check_key(occurrence->source_key, max, "source_key", err);
    if (rc == 0)
        rc = hf_check_key(occurrence->idempotency_key, max, "idempotency_key", err);
    if (rc == 0)
        rc = hf_check_key_opt(occurrence->scope, max, "scope", err);
    if (rc == 0 && occurrence->payload)
        rc = hf_json_check(
            (struct hf_span){ occurrence->payload, strlen(occurrence->payload) },
            (size_t)HF_MAX_PAYLOAD_BYTES, "payload", err);
    if (rc == 0 &&
        (occurrence->occurred_at < 0 || occurrence->occurred_at >= HF_TIME_END_MS))
        rc = hf_fail(err, HF_EINVAL, "occurred_at",
                     "occurred_at must be in the years 1970 to 9999");
    return rc;
}

/* ---- building ---------------------------------------------------------------------- */

void hf_subscription_build(const struct hf_subscription_spec *wanted, hf_ms now,
                           struct hf_subscription *ret_subscription)
{
    struct hf_work_spec unit = unit_of(wanted);
    *ret_subscription = (struct hf_subscription){
        .owner_scope = wanted->owner_scope ? wanted->owner_scope : "host",
        .subscription_key = wanted->key,
        .state = "enabled",
        .revision = 1,
        .source_type = wanted->source_type,
        .source_key = wanted->source_key,
        .payload_template = wanted->payload_template,
        .kind = unit.kind              ? unit.kind
                : wanted->process_kind ? "process"
                                       : "work",
        .queue = unit.queue ? unit.queue : "default",
        .lane_key = unit.lane_key,
        .priority = unit.priority < 0 ? PRIORITY_DEFAULT : unit.priority,
        .max_attempts = unit.max_attempts,
        .retry_policy = unit.retry_policy,
        .disposition = hf_disposition_word(unit.disposition),
        .start_timeout_ms = unit.start_timeout_ms,
        .exec_timeout_ms = unit.exec_timeout_ms,
        .wake_session = wanted->wake_session,
        .process_kind = wanted->process_kind,
        .process_name = wanted->process_name,
        .created_at = now,
        .updated_at = now,
    };
}

void hf_subscription_unit(const struct hf_subscription *subscription,
                          const char *occurrence_id, const char *payload,
                          struct hf_work_spec *ret_new)
{
    *ret_new = (struct hf_work_spec){
        .size = sizeof(*ret_new),
        .source = HF_SOURCE_CONTROL,
        .source_id = subscription->subscription_id,
        .source_run_id = occurrence_id,
        .kind = subscription->kind,
        .queue = subscription->queue,
        .lane_key = subscription->lane_key,
        .payload = payload,
        .priority = (int)subscription->priority,
        .max_attempts = (int)subscription->max_attempts,
        .retry_policy = subscription->retry_policy,
        .disposition = hf_disposition_of(subscription->disposition),
        .start_timeout_ms = subscription->start_timeout_ms,
        .exec_timeout_ms = subscription->exec_timeout_ms,
    };
}

int hf_subscription_wake(struct hf_arena *arena,
                         const struct hf_subscription *subscription,
                         const char *occurrence_id, const char *work_id,
                         struct hf_work_spec *ret_new, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "key", subscription->subscription_key);
    hf_json_put_str(&json, "occurrence_id", occurrence_id);
    hf_json_put_str(&json, "owner_scope", subscription->owner_scope);
    hf_json_put_str(&json, "work_id", work_id);
    hf_json_end(&json);
    struct hf_waking waking = {
        .session_id = subscription->wake_session,
        .source_id = subscription->subscription_id,
        .run_id = hf_arena_join(arena, occurrence_id, ":wake"),
        .work_id = work_id,
        .payload = hf_buf_keep(&text, arena),
    };
    return hf_wake_unit(arena, &waking, ret_new, err);
}

const char *hf_subscription_json(struct hf_arena *arena,
                                 const struct hf_subscription *subscription)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (size_t i = 0; i < hf_subscription_field_count; i++) {
        const struct hf_field *field = &hf_subscription_fields[i];
        hf_json_key(&json, field->name);
        if (hf_field_null(field, subscription))
            hf_json_null(&json);
        else if (field->kind == HF_FIELD_I64)
            hf_json_i64(&json, hf_field_i64(field, subscription));
        else if (field->kind == HF_FIELD_JSON)
            hf_json_raw(&json, hf_field_text(field, subscription));
        else
            hf_json_str(&json, hf_field_text(field, subscription));
    }
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}
