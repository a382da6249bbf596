/* The tables of fields. A column added to the structs is added here; tests/unit compares
 * both with the views. */
#include "core/ledger/fields.h"

#include <assert.h>

#include "base/text.h"

const char *const hf_close_rule_words[] = { "evidence", "reviewer", NULL };
const char *const hf_wait_rule_words[] = { "escalation", NULL };
const char *const hf_gate_words[] = { "due", "lane", "limit", "rate", "held", NULL };

/* clang-format off */
#define TEXT(type, member, ...) HF_FIELD(TEXT, type, member, false, __VA_ARGS__)
#define JSON(type, member, ...) HF_FIELD(JSON, type, member, false, __VA_ARGS__)
#define I64(type, member, ...)  HF_FIELD(I64, type, member, false, __VA_ARGS__)
#define MS(type, member, ...)   HF_FIELD(I64, type, member, true, __VA_ARGS__)

const struct hf_field hf_work_fields[] = {
    TEXT(hf_work, work_id, "its id"),
    TEXT(hf_work, tenant, "tenant"),
    TEXT(hf_work, source_system, "source system", .words = hf_source_words),
    TEXT(hf_work, source_id, "id in the source system"),
    TEXT(hf_work, source_run_id, "run of that id"),
    TEXT(hf_work, kind, "kind of work"),
    TEXT(hf_work, queue, "queue"),
    TEXT(hf_work, lane_key, "at most one unit of a key runs at a time"),
    TEXT(hf_work, dedup_key, "at most one unit of a key is unfinished"),
    TEXT(hf_work, limit_name, "limit key: the limit key:KEY applies"),
    TEXT(hf_work, fair_key, "fairness key: keys of one queue and priority start in turn"),
    TEXT(hf_work, idempotency_key, "idempotency key: the same key is the same unit"),
    TEXT(hf_work, ref, "reference that the caller chose"),
    TEXT(hf_work, parent_work_id, "id of the unit that it belongs to"),
    TEXT(hf_work, correlation_id, "correlation id, stored with its events"),
    TEXT(hf_work, session_id, "id of the session that it belongs to"),
    TEXT(hf_work, status, "status", .words = hf_status_words),
    TEXT(hf_work, status_reason, "reason of the status"),
    TEXT(hf_work, gate, "why a queued unit cannot be claimed now", .words = hf_gate_words),
    TEXT(hf_work, disposition, "what happens when its lease lapses", .words = hf_disposition_words),
    I64(hf_work, priority, "priority; 0 is the most urgent"),
    I64(hf_work, generation, "how often it was requeued"),
    I64(hf_work, attempt_count, "executions that have begun"),
    I64(hf_work, failures, "failures that count against max_attempts"),
    I64(hf_work, max_attempts, "executions before it fails for good"),
    MS(hf_work, due_at, "earliest start"),
    MS(hf_work, next_retry_at, "time of the next retry"),
    MS(hf_work, deadline_at, "deadline of its present status"),
    MS(hf_work, start_timeout_ms, "longest time in the queue"),
    MS(hf_work, exec_timeout_ms, "longest time of one execution"),
    TEXT(hf_work, owner, "owner of its lease"),
    TEXT(hf_work, owner_incarnation, "incarnation of the owner"),
    I64(hf_work, lease_fence, "fence: number of its lease"),
    MS(hf_work, lease_ttl_ms, "term of its lease"),
    MS(hf_work, lease_expires_at, "end of its lease, on the lease clock"),
    I64(hf_work, lease_remaining_ms, "time left on its lease; negative after it lapsed",
        .null_by = offsetof(struct hf_work, lease_expires_at)),
    JSON(hf_work, holder, "identity of the holder's process"),
    TEXT(hf_work, waiting_kind, "what it waits for"),
    TEXT(hf_work, waiting_ref, "what it waits for"),
    MS(hf_work, escalate_at, "time of the escalation of its wait"),
    TEXT(hf_work, escalate, "form of the escalation of its wait"),
    JSON(hf_work, resume_payload, "payload of the last resume"),
    TEXT(hf_work, error_class, "error class of its last failure"),
    JSON(hf_work, result, "summary, outputs, evidence and reviewer of its close-out"),
    JSON(hf_work, payload, "input of the worker"),
    TEXT(hf_work, payload_ref, "reference to the payload"),
    JSON(hf_work, retry_policy, "retry policy"),
    TEXT(hf_work, close_rule, "what its close-out must contain", .words = hf_close_rule_words),
    JSON(hf_work, cancel_request, "request to cancel it: actor, time and reason"),
    JSON(hf_work, abandon_request, "request to abandon it: actor, time and reason"),
    MS(hf_work, active_at, "time of its last reported activity"),
    MS(hf_work, first_started_at, "start of its first execution"),
    MS(hf_work, started_at, "start of its last execution"),
    MS(hf_work, finished_at, "time of its end"),
    MS(hf_work, acked_at, "time at which a person acknowledged its bad end"),
    MS(hf_work, created_at, "time of its creation"),
    MS(hf_work, updated_at, "time of its last change"),
};
/* clang-format on */
const size_t hf_work_field_count = sizeof(hf_work_fields) / sizeof(hf_work_fields[0]);

/* clang-format off */
const struct hf_field hf_event_fields[] = {
    I64(hf_event, event_id, "number of the event"),
    TEXT(hf_event, work_id, "the unit"),
    TEXT(hf_event, event_type, "what happened"),
    TEXT(hf_event, from_status, "status before; null unless the event is a transition", .words = hf_status_words),
    TEXT(hf_event, to_status, "status after; null unless the event is a transition", .words = hf_status_words),
    I64(hf_event, generation, "generation of the unit"),
    I64(hf_event, attempt, "attempt that it belongs to"),
    I64(hf_event, fence, "fence of the lease that was taken, held or returned"),
    TEXT(hf_event, actor_kind, "kind of the actor"),
    TEXT(hf_event, actor, "who acted"),
    TEXT(hf_event, message, "reason"),
    JSON(hf_event, payload, "data of the event"),
    TEXT(hf_event, correlation_id, "correlation id of the call"),
    MS(hf_event, created_at, "time of the event"),
};
/* clang-format on */
const size_t hf_event_field_count = sizeof(hf_event_fields) / sizeof(hf_event_fields[0]);

const struct hf_shape hf_work_shape = HF_SHAPE("work", hf_work_fields);
const struct hf_shape hf_event_shape = HF_SHAPE("event", hf_event_fields);

/* Every member of both structs has one of two shapes, so the two sizes say whether the
 * tables can be complete. */
static_assert(sizeof(hf_work_fields) / sizeof(hf_work_fields[0]) * 8 ==
                  sizeof(struct hf_work),
              "a member of struct hf_work is missing from its table");
static_assert(sizeof(hf_event_fields) / sizeof(hf_event_fields[0]) * 8 ==
                  sizeof(struct hf_event),
              "a member of struct hf_event is missing from its table");

static const void *at(const struct hf_field *field, const void *row)
{
    return (const char *)row + field->offset;
}

const char *hf_field_text(const struct hf_field *field, const void *row)
{
    bool is_text = field->kind == HF_FIELD_TEXT || field->kind == HF_FIELD_JSON;
    if (field->kind == HF_FIELD_WORD && *(const int *)at(field, row) > 0)
        return field->words[*(const int *)at(field, row) - 1];
    return is_text ? *(const char *const *)at(field, row) : NULL;
}

int64_t hf_field_i64(const struct hf_field *field, const void *row)
{
    switch (field->kind) {
    case HF_FIELD_I64:
    case HF_FIELD_TIME: return *(const int64_t *)at(field, row);
    case HF_FIELD_INT: return *(const int *)at(field, row);
    case HF_FIELD_BOOL: return *(const bool *)at(field, row);
    case HF_FIELD_TEXT:
    case HF_FIELD_JSON:
    case HF_FIELD_WORD:
    case HF_FIELD_BYTES:
    case HF_FIELD_ROW:
    case HF_FIELD_DIGEST:
    case HF_FIELD_TIMES: return 0;
    }
    return 0;
}

bool hf_field_null(const struct hf_field *field, const void *row)
{
    const char *by = (const char *)row + field->null_by;
    if (field->null_by && *(const int64_t *)(const void *)by == 0)
        return true;
    switch (field->kind) {
    case HF_FIELD_TEXT:
    case HF_FIELD_JSON:
    case HF_FIELD_WORD: return !hf_field_text(field, row);
    case HF_FIELD_I64:
    case HF_FIELD_INT:
    case HF_FIELD_TIME: return field->zero_is_null && hf_field_i64(field, row) == 0;
    case HF_FIELD_BOOL:
    case HF_FIELD_BYTES:
    case HF_FIELD_ROW:
    case HF_FIELD_DIGEST:
    case HF_FIELD_TIMES: return false;
    }
    return false;
}

bool hf_fields_same(const struct hf_field *fields, size_t count, const void *a,
                    const void *b)
{
    for (size_t i = 0; i < count; i++) {
        const struct hf_field *field = &fields[i];
        bool same = field->kind == HF_FIELD_I64
                        ? hf_field_i64(field, a) == hf_field_i64(field, b)
                        : hf_same(hf_field_text(field, a), hf_field_text(field, b));
        if (!same)
            return false;
    }
    return true;
}
