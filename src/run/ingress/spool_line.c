/* See run/ingress/spool_line.h. One table names the keys, for both ways. */
#include "run/ingress/spool_line.h"

#include <holdfast/limits.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"

enum part_kind {
    PART_TEXT,
    PART_EXACT, /* a text that holds JSON */
    PART_VALUE, /* a JSON value, which is kept as text; never written */
    PART_SOURCE,
    PART_DISPOSITION,
    PART_INT,
    PART_I64,
    PART_BOOL,
    PART_IGNORED /* for people */
};

struct part {
    const char *key;
    enum part_kind kind;
    size_t offset; /* in struct hf_spool_line */
    int64_t none;  /* INT: what "not given" is */
};

#define WHO(field) offsetof(struct hf_spool_line, who.field)
#define NEW(field) offsetof(struct hf_spool_line, request.field)

/* clang-format off */
static const struct part parts[] = {
    { "source_system",     PART_SOURCE,      NEW(source),          0 },
    { "source_id",         PART_TEXT,        NEW(source_id),       0 },
    { "source_run_id",     PART_TEXT,        NEW(source_run_id),   0 },
    { "kind",              PART_TEXT,        NEW(kind),            0 },
    { "queue",             PART_TEXT,        NEW(queue),           0 },
    { "lane_key",          PART_TEXT,        NEW(lane_key),        0 },
    { "dedup_key",         PART_TEXT,        NEW(dedup_key),       0 },
    { "limit_key",         PART_TEXT,        NEW(limit_key),       0 },
    { "rate_key",          PART_TEXT,        NEW(rate_key),        0 },
    { "fair_key",          PART_TEXT,        NEW(fair_key),        0 },
    { "fair_weight",       PART_INT,         NEW(fair_weight),     0 },
    { "idempotency_key",   PART_TEXT,        NEW(idempotency_key), 0 },
    { "ref",               PART_TEXT,        NEW(ref),             0 },
    { "reply_ref",         PART_TEXT,        NEW(reply_ref),       0 },
    { "parent_work_id",    PART_TEXT,        NEW(parent_work_id),  0 },
    { "payload",           PART_VALUE,       NEW(payload),         0 },
    { "payload_text",      PART_EXACT,       NEW(payload),         0 },
    { "payload_ref",       PART_TEXT,        NEW(payload_ref),     0 },
    { "disposition",       PART_DISPOSITION, NEW(disposition),     0 },
    { "priority",          PART_INT,         NEW(priority),       -1 },
    { "max_attempts",      PART_INT,         NEW(max_attempts),    0 },
    { "retry_policy",      PART_VALUE,       NEW(retry_policy),    0 },
    { "retry_policy_text", PART_EXACT,       NEW(retry_policy),    0 },
    { "delay_ms",          PART_I64,         NEW(delay_ms),        0 },
    { "due_at",            PART_I64,         NEW(due_at),          0 },
    { "start_timeout_ms",  PART_I64,         NEW(start_timeout_ms), 0 },
    { "exec_timeout_ms",   PART_I64,         NEW(exec_timeout_ms), 0 },
    { "close_rule",        PART_TEXT,        NEW(close_rule),      0 },
    { "detached",          PART_BOOL,        NEW(detached),        0 },
    { "tenant",            PART_TEXT,        WHO(tenant),          0 },
    { "actor_kind",        PART_TEXT,        WHO(actor_kind),      0 },
    { "actor",             PART_TEXT,        WHO(actor),           0 },
    { "operation_id",      PART_TEXT,        WHO(operation_id),    0 },
    { "correlation_id",    PART_TEXT,        WHO(correlation_id),  0 },
    { "spooled_at",        PART_IGNORED,     0,                    0 },
};
/* clang-format on */

#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* ---- writing ----------------------------------------------------------------------- */

static void put_part(struct hf_json *json, const struct part *part, const void *at)
{
    switch (part->kind) {
    case PART_TEXT:
    case PART_EXACT: hf_json_opt_str(json, part->key, *(const char *const *)at); break;
    case PART_SOURCE:
        hf_json_put_str(json, part->key, hf_source_word(*(const enum hf_source *)at));
        break;
    case PART_DISPOSITION:
        hf_json_opt_str(json, part->key,
                        hf_disposition_word(*(const enum hf_disposition *)at));
        break;
    case PART_INT:
        if (*(const int *)at != part->none)
            hf_json_put_i64(json, part->key, *(const int *)at);
        break;
    case PART_I64: hf_json_opt_i64(json, part->key, *(const int64_t *)at); break;
    case PART_BOOL:
        if (*(const bool *)at)
            hf_json_put_bool(json, part->key, true);
        break;
    case PART_VALUE:
    case PART_IGNORED: break;
    }
}

void hf_spool_encode(const struct hf_caller *who, const struct hf_new *request,
                     hf_ms spooled_at, struct hf_buf *out)
{
    struct hf_spool_line line = { .request = *request };
    struct hf_json json;
    if (who)
        line.who = *who;
    hf_json_begin(&json, out);
    hf_json_object(&json);
    for (size_t i = 0; i < PARTS; i++)
        put_part(&json, &parts[i], (const char *)&line + parts[i].offset);
    hf_json_put_i64(&json, "spooled_at", spooled_at);
    hf_json_end(&json);
    hf_buf_char(out, '\n');
}

/* ---- reading ----------------------------------------------------------------------- */

struct reading {
    struct hf_arena *arena;
    const struct json_t *object;
    struct hf_spool_line line;
    struct hf_err *err;
};

static int wrong(struct reading *reading, const char *key, const char *must)
{
    return hf_fail(reading->err, HF_EINVAL, key, "%s must be %s", key, must);
}

static int read_text(struct reading *reading, const struct part *part,
                     const struct json_t *value, void *at)
{
    if (hf_json_type_of(value) != HF_JSON_TEXT)
        return wrong(reading, part->key, "a text");
    const char *copy = hf_arena_text(reading->arena, hf_json_as_text(value));
    if (!copy)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    *(const char **)at = copy;
    return 0;
}

/* Both forms of one field exclude each other. */
static int read_exact(struct reading *reading, const struct part *part,
                      const struct json_t *value, void *at)
{
    if (*(const char **)at)
        return hf_fail(reading->err, HF_EINVAL, part->key,
                       "%s: the line has this field in its other form too", part->key);
    return read_text(reading, part, value, at);
}

static int read_value(struct reading *reading, const struct part *part,
                      const struct json_t *value, void *at)
{
    struct hf_buf text;
    hf_buf_init(&text, reading->arena->alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = hf_json_canonical(&text, value);
    if (rc) {
        hf_buf_fini(&text);
        return hf_fail(reading->err, rc, part->key, "%s: %s", part->key, hf_err_text(rc));
    }
    const char *copy = hf_buf_keep(&text, reading->arena);
    if (!copy)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    *(const char **)at = copy;
    return 0;
}

static int read_word(struct reading *reading, const struct part *part,
                     const struct json_t *value, void *at)
{
    const char *word = NULL;
    int rc = read_text(reading, part, value, &word);
    if (rc)
        return rc;
    if (part->kind == PART_SOURCE) {
        reading->line.source = word;
        *(enum hf_source *)at = hf_source_of(word);
        return hf_source_of(word) ? 0
                                  : wrong(reading, part->key,
                                          "conversation, control, scheduler or manual");
    }
    *(enum hf_disposition *)at = hf_disposition_of(word);
    return hf_disposition_of(word)
               ? 0
               : wrong(reading, part->key,
                       "expire, rerunnable, owner_bound or externally_owned");
}

static int read_number(struct reading *reading, const struct part *part,
                       const struct json_t *value, void *at)
{
    int64_t number = hf_json_as_i64(value);
    if (hf_json_type_of(value) != HF_JSON_INT)
        return wrong(reading, part->key, "a whole number");
    if (part->kind == PART_I64) {
        *(int64_t *)at = number;
        return 0;
    }
    /* A priority that is given is never "not given". */
    if (number < 0 || number > INT32_MAX)
        return wrong(reading, part->key, "0 or above, and within its limit");
    *(int *)at = (int)number;
    return 0;
}

static int read_part(struct reading *reading, const struct part *part,
                     const struct json_t *value)
{
    void *at = (char *)&reading->line + part->offset;
    switch (part->kind) {
    case PART_TEXT: return read_text(reading, part, value, at);
    case PART_EXACT: return read_exact(reading, part, value, at);
    case PART_VALUE: return read_value(reading, part, value, at);
    case PART_SOURCE:
    case PART_DISPOSITION: return read_word(reading, part, value, at);
    case PART_INT:
    case PART_I64: return read_number(reading, part, value, at);
    case PART_BOOL:
        if (hf_json_type_of(value) != HF_JSON_BOOL)
            return wrong(reading, part->key, "true or false");
        *(bool *)at = hf_json_as_bool(value);
        return 0;
    case PART_IGNORED: return 0;
    }
    return 0;
}

static int refuse_strangers(struct reading *reading)
{
    const char *names[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        names[i] = parts[i].key;
    const char *stranger = hf_json_stranger(reading->object, names, PARTS);
    if (!stranger)
        return 0;
    return hf_fail(reading->err, HF_EINVAL, stranger,
                   "%.60s is no key of a request (holdfast/ingress.h lists them)",
                   stranger);
}

int hf_spool_decode(struct hf_span text, struct hf_arena *arena,
                    struct hf_spool_line *ret_line, struct hf_err *err)
{
    struct json_t *object = NULL;
    struct reading reading = { .arena = arena, .err = err };
    reading.line.request.size = sizeof(reading.line.request);
    reading.line.request.priority = -1;
    reading.line.who.size = sizeof(reading.line.who);
    int rc = hf_json_parse(text, (size_t)HF_MAX_SPOOL_LINE_BYTES, "line", &object, err);
    if (rc == 0 && hf_json_type_of(object) != HF_JSON_OBJECT)
        rc = wrong(&reading, "line", "one JSON object");
    reading.object = object;
    for (size_t i = 0; rc == 0 && i < PARTS; i++) {
        const struct json_t *value = hf_json_member(object, parts[i].key);
        if (hf_json_type_of(value) != HF_JSON_NULL) /* as good as leaving it out */
            rc = read_part(&reading, &parts[i], value);
    }
    if (rc == 0)
        rc = refuse_strangers(&reading);
    if (rc == 0 && !reading.line.request.source)
        rc = wrong(&reading, "source_system",
                   "given: conversation, control, scheduler or manual");
    hf_json_free(object);
    *ret_line =
        reading.line; /* also a part of it, so that a problem can name its source */
    return rc;
}
