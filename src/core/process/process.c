/* The columns of a process next to its unit, its record as a fold of its events (what they come to,
 * taken in order), and the unit with which it wakes a session. Pure. */
#include "core/process/process.h"

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"

/* clang-format off */
#define FACT(kind_, member, ...) HF_FIELD(kind_, hf_process, member, false, __VA_ARGS__)
#define OF_UNIT(name_, kind_, member, ...)                                               \
    { .name = name_, .kind = HF_FIELD_##kind_,                                           \
      .offset = offsetof(struct hf_process, work.member), .help = __VA_ARGS__ }

#define PROCESS_FIELDS                                                                   \
    FACT(TEXT, identity_kind, "kind of process"),                                        \
    FACT(TEXT, identity_label, "name that lists show"),                                  \
    FACT(JSON, definition, "definition that it was created from"),                       \
    FACT(JSON, labels, "an object of texts"),                                            \
    FACT(TEXT, originator, "owner: session:ID, host or host:SCOPE"),                     \
    FACT(TEXT, wake_session, "the session that its end wakes"),                          \
    FACT(TEXT, cause_occurrence, "the occurrence that started it"),                      \
    FACT(TEXT, cause_subscription, "the subscription that started it"),                  \
    FACT(TEXT, env_ref, "the environment that it runs in"),                              \
    FACT(TEXT, external_ref, "reference in the system that runs it"),                    \
    FACT(JSON, event_types, "the events that it may append; null: any"),                 \
    FACT(JSON, observers, "the sessions that may see it")

const struct hf_field hf_process_fields[] = { PROCESS_FIELDS };

static const struct hf_field holder_fields[] = {
    HF_FIELD(TEXT, hf_work, owner, false, "owner of its lease"),
    { "incarnation", HF_FIELD_TEXT, offsetof(struct hf_work, owner_incarnation),
      .help = "incarnation of the owner" },
    { "process", HF_FIELD_JSON, offsetof(struct hf_work, holder),
      .help = "identity of the holder's process" },
};
static const struct hf_shape holder_shape = HF_SHAPE("lease_holder", holder_fields);

/* The raw facts first, then what is its own, then its whole unit. */
static const struct hf_field shown_fields[] = {
    OF_UNIT("process_id", TEXT, work_id, "its id, which is that of its unit"),
    OF_UNIT("status", TEXT, status, "status", .words = hf_status_words),
    OF_UNIT("disposition", TEXT, disposition, "what happens when its owner is lost",
            .words = hf_disposition_words),
    OF_UNIT("first_started", I64, first_started_at, "start of its first execution",
            .zero_is_null = true),
    OF_UNIT("first_started_at", I64, first_started_at, "the same time under the name "
                                                       "that its unit has for it",
            .zero_is_null = true),
    { "lease_holder", HF_FIELD_ROW, 0, .help = "owner of its lease", .of = &holder_shape,
      .null_by = offsetof(struct hf_process, work.owner) },
    OF_UNIT("lease_expires_at", I64, lease_expires_at,
            "end of its lease, on the lease clock", .zero_is_null = true),
    OF_UNIT("lease_remaining_ms", I64, lease_remaining_ms,
            "time left on its lease; negative after it lapsed",
            .null_by = offsetof(struct hf_process, work.lease_expires_at)),
    OF_UNIT("abandon_request", JSON, abandon_request, "request to abandon it: actor, "
                                                      "time and reason"),
    OF_UNIT("cancel_request", JSON, cancel_request, "request to cancel it: actor, "
                                                    "time and reason"),
    PROCESS_FIELDS,
    { "work", HF_FIELD_ROW, 0, .help = "its unit", .of = &hf_work_shape },
};
const struct hf_shape hf_process_shape = HF_SHAPE("process", shown_fields);

#define TEXT(type, name) { #name, HF_FIELD_TEXT, offsetof(struct type, name), .zero_is_null = false }
#define JSON(type, name) { #name, HF_FIELD_JSON, offsetof(struct type, name), .zero_is_null = false }
#define I64(type, name) { #name, HF_FIELD_I64, offsetof(struct type, name), .zero_is_null = false }

/* What of the unit is told by events, and so belongs to the record. */
static const struct hf_field told_fields[] = {
    TEXT(hf_work, work_id), TEXT(hf_work, status), TEXT(hf_work, disposition),
    I64(hf_work, generation), I64(hf_work, attempt_count), I64(hf_work, lease_fence),
    TEXT(hf_work, owner), TEXT(hf_work, owner_incarnation), TEXT(hf_work, waiting_kind),
    TEXT(hf_work, waiting_ref), TEXT(hf_work, error_class), JSON(hf_work, cancel_request),
    JSON(hf_work, abandon_request), I64(hf_work, first_started_at),
    I64(hf_work, finished_at),
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
const size_t hf_process_field_count = COUNT(hf_process_fields);

/* As much as all facts can be, with escapes. */
#define FACTS_BYTES (8 * (size_t)HF_MAX_EVENT_BYTES)

/* ---- writing ----------------------------------------------------------------------- */

static void put_field(struct hf_json *json, const struct hf_field *field, const void *row)
{
    hf_json_key(json, field->name);
    if (hf_field_null(field, row))
        hf_json_null(json);
    else if (field->kind == HF_FIELD_I64)
        hf_json_i64(json, hf_field_i64(field, row));
    else if (field->kind == HF_FIELD_JSON)
        hf_json_raw(json, hf_field_text(field, row));
    else
        hf_json_str(json, hf_field_text(field, row));
}

/* Keys in order, as of every note. */
static const char *sorted(struct hf_buf *text, struct hf_arena *arena)
{
    struct hf_buf out;
    hf_buf_init(&out, arena->alloc, FACTS_BYTES);
    int rc = hf_buf_state(text);
    if (rc == 0)
        rc = hf_json_canonical_text(&out,
                                    (struct hf_span){ hf_buf_str(text), text->len });
    hf_buf_fini(text);
    if (rc)
        out.state = rc;
    return hf_buf_keep(&out, arena);
}

const char *hf_process_facts(struct hf_arena *arena, const struct hf_process *process)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, FACTS_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (size_t i = 0; i < hf_process_field_count; i++)
        if (!hf_field_null(&hf_process_fields[i], process))
            put_field(&json, &hf_process_fields[i], process);
    hf_json_end(&json);
    return sorted(&text, arena);
}

const char *hf_texts_json(struct hf_arena *arena, const char *const *texts, size_t count)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, FACTS_BYTES);
    hf_json_begin(&json, &text);
    hf_json_array(&json);
    for (size_t i = 0; i < count; i++)
        hf_json_str(&json, texts[i]);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

const char *hf_process_record(struct hf_arena *arena, const struct hf_process *process)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 2 * FACTS_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (size_t i = 0; i < COUNT(told_fields); i++)
        put_field(&json, &told_fields[i], &process->work);
    for (size_t i = 0; i < hf_process_field_count; i++)
        put_field(&json, &hf_process_fields[i], process);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

/* ---- waking ------------------------------------------------------------------------ */

int hf_wake_unit(struct hf_arena *arena, const struct hf_waking *waking,
                 struct hf_work_spec *ret_new, struct hf_err *err)
{
    const char *queue = hf_arena_join(arena, "session:", waking->session_id);
    if (!queue || !waking->run_id || !waking->payload)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_new = (struct hf_work_spec){
        .size = sizeof(*ret_new),
        .source = HF_SOURCE_CONTROL,
        .source_id = waking->source_id,
        .source_run_id = waking->run_id,
        .kind = "wake",
        .queue = queue,
        .lane_key = queue,
        .parent_work_id = waking->work_id,
        .payload = waking->payload,
        .priority = -1,
        .disposition = HF_DISPOSITION_RERUNNABLE,
    };
    return 0;
}

int hf_wake_of_row(struct hf_arena *arena, const struct hf_row *row,
                   const struct hf_wake_cause *cause, struct hf_work_spec *ret_new,
                   struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, FACTS_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "event", cause->event);
    if (cause->payload)
        hf_json_put_raw(&json, "payload", cause->payload);
    hf_json_put_str(&json, "status", cause->status);
    hf_json_put_str(&json, "work_id", row->w.work_id);
    hf_json_end(&json);
    struct hf_waking waking = {
        .session_id = row->wake_session,
        .source_id = row->w.work_id,
        .run_id = hf_arena_join(arena, "wake:", cause->run_id),
        .work_id = row->w.work_id,
        .payload = hf_buf_keep(&text, arena),
    };
    return hf_wake_unit(arena, &waking, ret_new, err);
}
