/* Templates of payloads: a JSON value in which {"$event": "a.b.0"} means that member of another
 * value (the occurrence's payload), and {"$event": ""} all of it (template.h). Pure. */
#include "core/trigger/template.h"

#include <holdfast/bounds.h>
#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"

#define FIELD "template"
#define MARKER "$event"
#define FILLED_BYTES_MAX (4u << 20) /* the limit on payloads follows */

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static bool is_marker(const struct json_t *value)
{
    return hf_json_member(value, MARKER) != NULL;
}

/* ---- checking ---------------------------------------------------------------------- */

static int check_marker(const struct json_t *value, struct hf_err *err)
{
    static const char *const keys[] = { MARKER, "default" };
    const char *stranger = hf_json_stranger(value, keys, 2);
    if (stranger)
        return hf_fail(err, HF_EINVAL, FIELD,
                       "template: the only member allowed with \"$event\" is "
                       "\"default\", and not \"%s\"",
                       stranger);
    if (!hf_json_as_text(hf_json_member(value, MARKER)))
        return hf_fail(err, HF_EINVAL, FIELD, "template: \"$event\" must be a text");
    return 0;
}

/* The depth of JSON is bounded by its reader. */
static int check_value(const struct json_t *value, struct hf_err *err)
{
    int rc = 0;
    if (is_marker(value))
        return check_marker(value, err);
    for (size_t i = 0; rc == 0 && i < hf_json_items(value); i++)
        rc = check_value(hf_json_item(value, i), err);
    const char *key;
    const struct json_t *member;
    for (void *at = NULL; rc == 0 && hf_json_next(value, &at, &key, &member);)
        rc = check_value(member, err);
    return rc;
}

int hf_template_check(const char *text, struct hf_err *err)
{
    struct json_t *value = NULL;
    if (!text)
        return 0;
    int rc = hf_json_parse(span_of(text), (size_t)HF_MAX_PAYLOAD_BYTES, FIELD, &value,
                           err);
    if (rc)
        return rc;
    rc = check_value(value, err);
    hf_json_free(value);
    return rc;
}

static bool has_marker(const struct json_t *value)
{
    bool found = is_marker(value);
    for (size_t i = 0; !found && i < hf_json_items(value); i++)
        found = has_marker(hf_json_item(value, i));
    const char *key;
    const struct json_t *member;
    for (void *at = NULL; !found && hf_json_next(value, &at, &key, &member);)
        found = has_marker(member);
    return found;
}

int hf_template_within(const char *text, const char *only, struct hf_err *err)
{
    struct json_t *value = NULL;
    const char *key;
    const struct json_t *member;
    int rc = hf_json_parse(span_of(text ? text : "{\"$event\":\"\"}"),
                           (size_t)HF_MAX_PAYLOAD_BYTES, FIELD, &value, err);
    if (rc)
        return rc;
    bool outside = is_marker(value) || hf_json_type_of(value) != HF_JSON_OBJECT;
    for (void *at = NULL; !outside && hf_json_next(value, &at, &key, &member);)
        outside = !hf_same(key, only) && has_marker(member);
    hf_json_free(value);
    return outside ? hf_fail(err, HF_EINVAL, FIELD,
                             "template: a command is never taken from an occurrence: "
                             "\"$event\" is allowed in the member \"%s\" only",
                             only)
                   : 0;
}

/* ---- filling ----------------------------------------------------------------------- */

struct filling {
    const struct json_t *values;
    struct hf_json json;
    struct hf_buf part; /* one value on its way */
    struct hf_err *err;
};

/* The member that a path names, or NULL. */
static const struct json_t *find(const struct json_t *value, const char *path)
{
    char name[256];
    while (value && *path) {
        size_t len = strcspn(path, ".");
        if (len == 0 || len >= sizeof(name))
            return NULL;
        memcpy(name, path, len);
        name[len] = '\0';
        if (hf_json_type_of(value) == HF_JSON_ARRAY) {
            size_t index = 0;
            bool digits = len < 7 && strspn(name, "0123456789") == len;
            for (size_t i = 0; digits && i < len; i++)
                index = index * 10 + (size_t)(name[i] - '0');
            value = digits ? hf_json_item(value, index) : NULL;
        } else {
            value = hf_json_member(value, name);
        }
        path += len + (path[len] == '.');
    }
    return value;
}

static int put_value(struct filling *f, const struct json_t *value)
{
    hf_buf_reset(&f->part);
    int rc = hf_json_canonical(&f->part, value);
    if (rc)
        return hf_fail_plain(f->err, rc);
    hf_json_raw(&f->json, hf_buf_str(&f->part));
    return 0;
}

static int put_marker(struct filling *f, const struct json_t *marker)
{
    const char *path = hf_json_as_text(hf_json_member(marker, MARKER));
    const struct json_t *value = find(f->values, path);
    if (!value)
        value = hf_json_member(marker, "default");
    if (!value)
        return hf_fail(f->err, HF_EINVAL, FIELD,
                       "template: the payload has no member \"%.80s\"", path);
    return put_value(f, value);
}

static int put(struct filling *f, const struct json_t *value)
{
    enum hf_json_type type = hf_json_type_of(value);
    int rc = 0;
    if (is_marker(value))
        return put_marker(f, value);
    if (type == HF_JSON_ARRAY) {
        hf_json_array(&f->json);
        for (size_t i = 0; rc == 0 && i < hf_json_items(value); i++)
            rc = put(f, hf_json_item(value, i));
    } else if (type == HF_JSON_OBJECT) {
        const char *key;
        const struct json_t *member;
        hf_json_object(&f->json);
        for (void *at = NULL; rc == 0 && hf_json_next(value, &at, &key, &member);) {
            hf_json_key(&f->json, key);
            rc = put(f, member);
        }
    } else {
        return put_value(f, value);
    }
    if (rc == 0)
        hf_json_end(&f->json);
    return rc;
}

static int fill(struct hf_arena *arena, const struct json_t *value,
                const struct json_t *values, const char **ret_json, struct hf_err *err)
{
    struct hf_buf filled;
    struct filling f = { .values = values, .err = err };
    hf_buf_init(&filled, arena->alloc, FILLED_BYTES_MAX);
    hf_buf_init(&f.part, arena->alloc, FILLED_BYTES_MAX);
    hf_json_begin(&f.json, &filled);
    int rc = put(&f, value);
    if (rc == 0 && hf_buf_state(&filled))
        rc = hf_fail_plain(err, hf_buf_state(&filled));
    if (rc == 0) {
        hf_buf_reset(&f.part);
        rc = hf_json_canonical_text(&f.part,
                                    (struct hf_span){ hf_buf_str(&filled), filled.len });
        if (rc)
            rc = hf_fail(err, rc, FIELD, "template: its result is not a valid payload");
    }
    if (rc == 0) {
        *ret_json = hf_arena_copy(arena, hf_buf_str(&f.part), f.part.len);
        rc = *ret_json ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_buf_fini(&f.part);
    hf_buf_fini(&filled);
    return rc;
}

int hf_template_fill(struct hf_arena *arena, const char *text, const char *values,
                     const char **ret_json, struct hf_err *err)
{
    struct json_t *value = NULL, *given = NULL;
    int rc = 0;
    if (!text) {
        *ret_json = values;
        return 0;
    }
    rc = hf_json_parse(span_of(text), (size_t)HF_MAX_PAYLOAD_BYTES, FIELD, &value, err);
    if (rc == 0)
        rc = hf_json_parse(span_of(values ? values : "null"),
                           (size_t)HF_MAX_PAYLOAD_BYTES, "payload", &given, err);
    if (rc == 0)
        rc = fill(arena, value, given, ret_json, err);
    hf_json_free(value);
    hf_json_free(given);
    return rc;
}
