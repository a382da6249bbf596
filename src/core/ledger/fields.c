/* The tables of fields. A column added to the structs is added here; tests/unit compares
 * both with the views. */
#include "core/ledger/fields.h"

#include <assert.h>

#include "base/text.h"

/* clang-format off */
#define TEXT(type, name) { #name, HF_FIELD_TEXT, offsetof(struct type, name), false }
#define JSON(type, name) { #name, HF_FIELD_JSON, offsetof(struct type, name), false }
#define I64(type, name)  { #name, HF_FIELD_I64,  offsetof(struct type, name), false }
#define MS(type, name)   { #name, HF_FIELD_I64,  offsetof(struct type, name), true  }

const struct hf_field hf_work_fields[] = {
    TEXT(hf_work, work_id),
    TEXT(hf_work, tenant),
    TEXT(hf_work, source_system),
    TEXT(hf_work, source_id),
    TEXT(hf_work, source_run_id),
    TEXT(hf_work, kind),
    TEXT(hf_work, queue),
    TEXT(hf_work, lane_key),
    TEXT(hf_work, dedup_key),
    TEXT(hf_work, limit_name),
    TEXT(hf_work, fair_key),
    TEXT(hf_work, idempotency_key),
    TEXT(hf_work, ref),
    TEXT(hf_work, parent_work_id),
    TEXT(hf_work, correlation_id),
    TEXT(hf_work, session_id),
    TEXT(hf_work, status),
    TEXT(hf_work, status_reason),
    TEXT(hf_work, gate),
    TEXT(hf_work, disposition),
    I64(hf_work, priority),
    I64(hf_work, generation),
    I64(hf_work, attempt_count),
    I64(hf_work, failures),
    I64(hf_work, max_attempts),
    MS(hf_work, due_at),
    MS(hf_work, next_retry_at),
    MS(hf_work, deadline_at),
    MS(hf_work, start_timeout_ms),
    MS(hf_work, exec_timeout_ms),
    TEXT(hf_work, owner),
    TEXT(hf_work, owner_incarnation),
    I64(hf_work, lease_fence),
    MS(hf_work, lease_ttl_ms),
    MS(hf_work, lease_expires_at),
    I64(hf_work, lease_remaining_ms),
    JSON(hf_work, holder),
    TEXT(hf_work, waiting_kind),
    TEXT(hf_work, waiting_ref),
    MS(hf_work, escalate_at),
    TEXT(hf_work, escalate),
    JSON(hf_work, resume_payload),
    TEXT(hf_work, error_class),
    JSON(hf_work, result),
    JSON(hf_work, payload),
    TEXT(hf_work, payload_ref),
    JSON(hf_work, retry_policy),
    TEXT(hf_work, close_rule),
    JSON(hf_work, cancel_request),
    JSON(hf_work, abandon_request),
    MS(hf_work, active_at),
    MS(hf_work, first_started_at),
    MS(hf_work, started_at),
    MS(hf_work, finished_at),
    MS(hf_work, created_at),
    MS(hf_work, updated_at),
};
/* clang-format on */
const size_t hf_work_field_count = sizeof(hf_work_fields) / sizeof(hf_work_fields[0]);

/* clang-format off */
const struct hf_field hf_event_fields[] = {
    I64(hf_event, event_id),
    TEXT(hf_event, work_id),
    TEXT(hf_event, event_type),
    TEXT(hf_event, from_status),
    TEXT(hf_event, to_status),
    I64(hf_event, generation),
    I64(hf_event, attempt),
    I64(hf_event, fence),
    TEXT(hf_event, actor_kind),
    TEXT(hf_event, actor),
    TEXT(hf_event, message),
    JSON(hf_event, payload),
    TEXT(hf_event, correlation_id),
    MS(hf_event, created_at),
};
/* clang-format on */
const size_t hf_event_field_count = sizeof(hf_event_fields) / sizeof(hf_event_fields[0]);

/* Every member of both structs has one of two shapes, so the two sizes say whether the
 * tables can be complete. */
static_assert(sizeof(hf_work_fields) / sizeof(hf_work_fields[0]) * 8 ==
                  sizeof(struct hf_work),
              "a member of struct hf_work is missing from its table");
static_assert(sizeof(hf_event_fields) / sizeof(hf_event_fields[0]) * 8 ==
                  sizeof(struct hf_event),
              "a member of struct hf_event is missing from its table");

const char *hf_field_text(const struct hf_field *field, const void *row)
{
    const char *at = (const char *)row + field->offset;
    return field->kind == HF_FIELD_I64 ? NULL : *(const char *const *)(const void *)at;
}

int64_t hf_field_i64(const struct hf_field *field, const void *row)
{
    const char *at = (const char *)row + field->offset;
    return field->kind == HF_FIELD_I64 ? *(const int64_t *)(const void *)at : 0;
}

bool hf_field_null(const struct hf_field *field, const void *row)
{
    if (field->kind == HF_FIELD_I64)
        return field->zero_is_null && hf_field_i64(field, row) == 0;
    return !hf_field_text(field, row);
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
