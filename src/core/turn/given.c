/* Names in a cell's reach: values and references that its host passes to it, how they are checked
 * and copied, and how they and the variables of earlier cells are shown to a model (given.h). */
#include "core/turn/given.h"

#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/code.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "core/turn/prompts.h"
#include "core/turn/schema.h"

#define PREVIEW_BYTES 64 /* of a value */
#define ABOUT_BYTES 160  /* of what is said about a reference */

/* What is given */

static bool has_name(struct hf_span object, struct hf_span name)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (object.len == 0 || !hf_walk_enter(&walk, '{'))
        return false;
    while (hf_walk_more(&walk)) {
        if (hf_turn_span_same(hf_walk_key(&walk), name))
            return true;
        (void)hf_walk_value(&walk); /* only names matter */
    }
    return false;
}

static int check_names(struct hf_span object, struct hf_span other, const char *field,
                       struct hf_err *err)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (!hf_walk_enter(&walk, '{'))
        return hf_fail(err, HF_EINVAL, field, "%s is a JSON object", field);
    while (hf_walk_more(&walk)) {
        struct hf_span raw = hf_walk_key(&walk);
        const char *name = (const char *)raw.at + 1;
        int shown = raw.len < 64 ? (int)raw.len - 2 : 62;
        if (!hf_text_is_word(name, raw.len - 2) || raw.len - 2 > (size_t)HF_MAX_KEY_BYTES)
            return hf_fail(
                err, HF_EINVAL, field,
                "'%.*s' is not a name: use letters, digits and _, at most %lld bytes",
                shown, name, (long long)HF_MAX_KEY_BYTES);
        if (has_name(other, raw))
            return hf_fail(err, HF_EINVAL, field, "'%.*s' is given twice", shown, name);
        (void)hf_walk_value(&walk); /* any JSON will do */
    }
    return 0;
}

/* A cell can read it, and a save can hold it. */
static int check_object(struct hf_span json, size_t max, const char *field,
                        struct hf_err *err)
{
    int rc = hf_json_check(json, max, field, err);
    return rc ? rc : hf_json_check_inner(json, max, HF_VALUE_LEVELS, field, err);
}

int hf_given_check(const struct hf_given *given, size_t max, struct hf_err *err)
{
    int rc = 0;
    if (given->values.len > 0)
        rc = check_object(given->values, max, "given", err);
    if (rc == 0 && given->refs.len > 0)
        rc = check_object(given->refs, max, "given_refs", err);
    if (rc == 0 && given->values.len + given->refs.len > max)
        rc = hf_fail(err, HF_ETOOBIG, "given",
                     "the values have over %zu bytes; pass references instead", max);
    if (rc == 0 && given->values.len > 0)
        rc = check_names(given->values, (struct hf_span){ 0 }, "given", err);
    if (rc == 0 && given->refs.len > 0)
        rc = check_names(given->refs, given->values, "given_refs", err);
    return rc;
}

static int copy_object(struct hf_arena *arena, struct hf_span json, size_t max,
                       struct hf_span *ret_json)
{
    struct hf_buf text;
    *ret_json = (struct hf_span){ 0 };
    if (json.len == 0)
        return 0;
    hf_buf_init(&text, arena->alloc, 2 * max); /* numbers may get longer */
    int rc = hf_json_canonical_text(&text, json);
    if (rc == 0 && text.len > 2) { /* more than {} */
        size_t len = text.len;
        const char *copy = hf_buf_keep(&text, arena);
        *ret_json = (struct hf_span){ copy, len };
        return copy ? 0 : HF_ENOMEM;
    }
    hf_buf_fini(&text);
    return rc;
}

int hf_given_copy(struct hf_arena *arena, const struct hf_given *given, size_t max,
                  struct hf_given *ret_given, struct hf_err *err)
{
    int rc = hf_given_check(given, max, err);
    if (rc)
        return rc;
    rc = copy_object(arena, given->values, max, &ret_given->values);
    if (rc == 0)
        rc = copy_object(arena, given->refs, max, &ret_given->refs);
    return rc ? hf_fail_plain(err, rc) : 0;
}

/* What a model is shown */

static size_t count_items(struct hf_span raw, bool object)
{
    struct hf_walk walk;
    size_t count = 0;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, object ? '{' : '['))
        return 0;
    for (; hf_walk_more(&walk); count++) {
        if (object)
            (void)hf_walk_key(&walk); /* only counted */
        (void)hf_walk_value(&walk);
    }
    return count;
}

/* The only member of an object, if its key is one of the tags of docs/internals/cells.md. */
static bool is_tagged(struct hf_span raw, const char *tag, struct hf_span *ret_inner)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '{') || !hf_walk_more(&walk) ||
        !hf_walk_is(hf_walk_key(&walk), tag))
        return false;
    *ret_inner = hf_walk_value(&walk);
    return !hf_walk_more(&walk);
}

static void put_type(struct hf_buf *out, struct hf_span raw)
{
    struct hf_span inner = { 0 };
    char first = *(const char *)raw.at;
    switch (first) {
    case '"': hf_buf_text(out, "string"); return;
    case 't':
    case 'f': hf_buf_text(out, "boolean"); return;
    case 'n': hf_buf_text(out, "null"); return;
    case '[':
        hf_buf_text(out, "list of ");
        hf_buf_i64(out, (int64_t)count_items(raw, false));
        return;
    case '{': break;
    default: hf_buf_text(out, "number"); return;
    }
    if (is_tagged(raw, "$hex", &inner)) {
        hf_buf_text(out, "string of bytes");
    } else if (is_tagged(raw, "$num", &inner)) {
        hf_buf_text(out, "number");
    } else {
        bool map = is_tagged(raw, "$map", &inner);
        hf_buf_text(out, "table of ");
        hf_buf_i64(out, (int64_t)count_items(map ? inner : raw, !map));
    }
}

static struct hf_span unquoted(struct hf_span raw)
{
    return (struct hf_span){ (const char *)raw.at + 1, raw.len - 2 };
}

static int put_value(struct hf_buf *out, struct hf_span name, struct hf_span raw)
{
    struct hf_buf type;
    hf_buf_init(&type, out->alloc, 64);
    put_type(&type, raw);
    bool cut = raw.len > PREVIEW_BYTES;
    const struct hf_fill fills[] = {
        { .id = HF_FILL_NAME, .text = unquoted(name) },
        { .id = HF_FILL_TYPE, .text = { hf_buf_str(&type), type.len } },
        { .id = HF_FILL_VALUE,
          .text = { raw.at, cut ? hf_utf8_cut(raw.at, PREVIEW_BYTES) : raw.len } },
        { .id = HF_FILL_BYTES, .number = raw.len },
    };
    hf_prompt_put(out, cut ? HF_PROMPT_CODE_VARIABLE_CUT : HF_PROMPT_CODE_VARIABLE, fills,
                  sizeof(fills) / sizeof(fills[0]));
    int rc = hf_buf_state(&type);
    hf_buf_fini(&type);
    return rc;
}

/* What a reference says about itself: a text, in one line. */
static struct hf_span about(struct hf_span raw)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '{'))
        return (struct hf_span){ 0 };
    while (hf_walk_more(&walk)) {
        bool here = hf_walk_is(hf_walk_key(&walk), "about");
        bool text = hf_walk_next(&walk) == '"';
        struct hf_span value = hf_walk_value(&walk);
        if (here && text)
            return unquoted(value); /* its escapes keep it in one line */
    }
    return (struct hf_span){ 0 };
}

static int put_ref(struct hf_buf *out, struct hf_span name, struct hf_span raw)
{
    struct hf_span text = about(raw);
    const struct hf_fill fills[] = {
        { .id = HF_FILL_NAME, .text = unquoted(name) },
        { .id = HF_FILL_ABOUT,
          .text = { text.at, text.len > ABOUT_BYTES ? hf_utf8_cut(text.at, ABOUT_BYTES)
                                                    : text.len } },
    };
    hf_prompt_put(out,
                  text.len > 0 ? HF_PROMPT_CODE_GIVEN_ABOUT : HF_PROMPT_CODE_GIVEN_REF,
                  fills, 2);
    return 0;
}

/* Lines for three quarters of the room, then names, then only how many there are. */
#define ROOM ((size_t)HF_MAX_CODE_VARIABLES_BYTES)
#define LINES_END (ROOM - ROOM / 4)
#define LINE_BYTES ((size_t)512) /* one line takes less, whatever it shows */
#define NAMES_BYTES (ROOM / 4 - LINE_BYTES - 64)

struct listing {
    struct hf_buf *out;
    size_t from; /* where this listing begins */
    size_t left; /* members that have no line */
    bool cut;    /* names were left out too */
    struct hf_buf names;
};

static void begin_listing(struct listing *listing, struct hf_buf *out)
{
    *listing = (struct listing){ .out = out, .from = out->len };
    hf_buf_init(&listing->names, out->alloc, NAMES_BYTES + 8);
}

static void add_name(struct listing *listing, struct hf_span name)
{
    listing->left++;
    listing->cut = listing->cut || listing->names.len + name.len + 2 > NAMES_BYTES;
    if (listing->cut)
        return;
    hf_buf_text(&listing->names, listing->names.len > 0 ? ", " : "");
    hf_buf_bytes(&listing->names, name.at, name.len);
}

static int put_members(struct listing *listing, struct hf_span object,
                       int (*put)(struct hf_buf *, struct hf_span, struct hf_span))
{
    struct hf_walk walk;
    int rc = 0;
    hf_walk_begin(&walk, object);
    if (object.len == 0 || !hf_walk_enter(&walk, '{'))
        return 0;
    while (rc == 0 && hf_walk_more(&walk)) {
        struct hf_span name = hf_walk_key(&walk);
        struct hf_span raw = hf_walk_value(&walk);
        if (listing->left == 0 && listing->out->len - listing->from < LINES_END) {
            hf_buf_text(listing->out, listing->out->len > 0 ? "\n" : "");
            rc = put(listing->out, name, raw);
        } else {
            add_name(listing, unquoted(name));
        }
    }
    return rc;
}

static int end_listing(struct listing *listing, int rc)
{
    hf_buf_text(&listing->names, listing->cut ? ", ..." : "");
    const struct hf_fill fills[] = {
        { .id = HF_FILL_LEFT, .number = listing->left },
        { .id = HF_FILL_NAMES,
          .text = { hf_buf_str(&listing->names), listing->names.len } },
    };
    if (rc == 0)
        rc = hf_buf_state(&listing->names);
    if (rc == 0 && listing->left > 0) {
        hf_buf_char(listing->out, '\n');
        hf_prompt_put(listing->out, HF_PROMPT_CODE_VARIABLES_MORE, fills, 2);
    }
    hf_buf_fini(&listing->names);
    return rc ? rc : hf_buf_state(listing->out);
}

int hf_given_put_variables(struct hf_buf *out, struct hf_span object)
{
    struct listing listing;
    begin_listing(&listing, out);
    return end_listing(&listing, put_members(&listing, object, put_value));
}

int hf_given_put(struct hf_buf *out, const struct hf_given *given)
{
    struct listing listing;
    if (given->values.len + given->refs.len == 0)
        return 0;
    hf_prompt_put(out, HF_PROMPT_CODE_GIVEN, NULL, 0);
    begin_listing(&listing, out);
    int rc = put_members(&listing, given->values, put_value);
    if (rc == 0)
        rc = put_members(&listing, given->refs, put_ref);
    return end_listing(&listing, rc);
}

int hf_code_variables(const struct hf_alloc *alloc, struct hf_span bindings,
                      struct hf_bytes *ret_text, struct hf_err *err)
{
    struct hf_buf out;
    alloc = alloc ? alloc : hf_alloc_system();
    struct hf_span object = bindings.len > 0 ? bindings : hf_text_of("{}");
    int rc = hf_json_check(object, (size_t)HF_MAX_CELL_BINDINGS_BYTES, "bindings", err);
    if (rc)
        return rc;
    hf_buf_init(&out, alloc, ROOM);
    rc = hf_given_put_variables(&out, object);
    if (rc) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_text = (struct hf_bytes){ .alloc = alloc, .at = out.at, .len = out.len };
    return 0;
}
