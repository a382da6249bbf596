/* Tool values: JSON in which {"$attachment": {…}} means bytes kept elsewhere, and the
 * parts that a model sees of an answer.
 *
 * A value is cut at its attachments: text, attachment, text. So each attachment is shown
 * where it is in the value. */
#include "core/turn/view.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_walk.h"
#include "base/text.h"

/* One level of a walk through a value: an open object or array. */
struct finder {
    struct hf_walk walk;
    size_t depth;
    uint64_t in_object;
};

static bool in_object(const struct finder *finder)
{
    return (finder->in_object >> (finder->depth - 1) & 1) != 0;
}

/* The attachment that starts at a value, or false. A key of that name makes an object an
 * attachment; it must then be the only one. */
static bool is_attachment(struct hf_span value, struct hf_span *ret_inner,
                          bool *ret_sound)
{
    struct hf_walk walk;
    bool found = false;
    size_t keys = 0;
    hf_walk_begin(&walk, value);
    if (!hf_walk_enter(&walk, '{'))
        return false;
    while (hf_walk_more(&walk)) {
        bool here = hf_walk_is(hf_walk_key(&walk), HF_ATTACHMENT_KEY);
        struct hf_span inner = hf_walk_value(&walk);
        keys++;
        if (here)
            *ret_inner = inner;
        found = found || here;
    }
    *ret_sound = keys == 1;
    return found;
}

static int read_attachment(struct hf_arena *arena, struct hf_span inner,
                           struct hf_attachment *ret_attachment, bool *ret_sound)
{
    struct hf_walk walk;
    *ret_sound = false;
    hf_walk_begin(&walk, inner);
    if (!hf_walk_enter(&walk, '{'))
        return 0;
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span raw = hf_walk_value(&walk);
        const char **text = hf_walk_is(key, "ref")          ? &ret_attachment->ref
                            : hf_walk_is(key, "media_type") ? &ret_attachment->media_type
                            : hf_walk_is(key, "name")       ? &ret_attachment->name
                                                            : NULL;
        struct hf_span said = { 0 };
        if (!text) {
            if (!hf_walk_is(key, "bytes") || !hf_walk_i64(raw, &ret_attachment->bytes))
                return 0;
            continue;
        }
        int rc = hf_walk_text(arena, raw, &said);
        if (rc == HF_ENOMEM)
            return rc;
        if (rc || said.len == 0 || said.len > (size_t)HF_MAX_KEY_BYTES)
            return 0;
        *text = said.at;
    }
    *ret_sound = ret_attachment->ref != NULL;
    return 0;
}

/* The next attachment object of the value, from the finder's place on. Depth is bounded by
 * the check that the value passed. */
static bool next_attachment(struct finder *finder, struct hf_span *ret_object,
                            struct hf_span *ret_inner, bool *ret_sound)
{
    for (;;) {
        if (finder->depth > 0) {
            if (!hf_walk_more(&finder->walk)) {
                finder->depth--;
                if (finder->walk.at == finder->walk.end)
                    return false;
                continue;
            }
            if (in_object(finder))
                (void)hf_walk_key(&finder->walk); /* only its value matters */
        }
        char next = hf_walk_next(&finder->walk);
        if (next == '{' || next == '[') {
            struct hf_walk ahead = finder->walk;
            struct hf_span whole = hf_walk_value(&ahead);
            if (next == '{' && is_attachment(whole, ret_inner, ret_sound)) {
                finder->walk = ahead;
                *ret_object = whole;
                return true;
            }
            uint64_t bit = UINT64_C(1) << finder->depth;
            finder->in_object = next == '{' ? finder->in_object | bit
                                            : finder->in_object & ~bit;
            finder->depth++;
            finder->walk.at++;
        } else {
            (void)hf_walk_value(&finder->walk); /* a scalar */
        }
        if (finder->depth == 0)
            return false;
    }
}

static bool may_hold_attachment(struct hf_span value)
{
    static const char key[] = "\"" HF_ATTACHMENT_KEY "\"";
    return value.len > 0 &&
           memchr(value.at, '$', value.len) && /* rare, and fast to see */
           memmem(value.at, value.len, key, sizeof(key) - 1) != NULL;
}

/* After an attachment at the top of the value there is nothing to look at. */
static bool finder_done(const struct finder *finder)
{
    return finder->depth == 0;
}

int hf_value_check(struct hf_arena *arena, struct hf_span value, struct hf_err *err)
{
    if (!may_hold_attachment(value))
        return 0;
    struct finder finder = { .depth = 0 };
    struct hf_span object = { 0 };
    struct hf_span inner = { 0 };
    bool sound = false;
    int rc = 0;
    hf_walk_begin(&finder.walk, value);
    while (rc == 0 && next_attachment(&finder, &object, &inner, &sound)) {
        struct hf_attachment attachment = { 0 };
        if (sound)
            rc = read_attachment(arena, inner, &attachment, &sound);
        if (rc == 0 && !sound)
            rc = hf_fail(err, HF_EINVAL, "value",
                         "an attachment that is not well formed");
        if (finder_done(&finder))
            break;
    }
    return rc == HF_ENOMEM ? hf_fail_plain(err, rc) : rc;
}

/* The view */

struct view {
    struct hf_move *move;
    const struct hf_tool_call *call;
    struct hf_part *parts;
    size_t count;
    size_t room;
};

static int add_part(struct view *view, const struct hf_part *part, struct hf_err *err)
{
    if (view->count == view->room) {
        size_t room = view->room ? view->room * 2 : 2;
        struct hf_part *parts = hf_arena_array(view->move->arena, room, sizeof(*parts));
        if (!parts)
            return hf_fail_plain(err, HF_ENOMEM);
        if (view->count > 0)
            memcpy(parts, view->parts, view->count * sizeof(*parts));
        view->parts = parts;
        view->room = room;
    }
    struct hf_part *last = &view->parts[view->count++];
    *last = *part;
    last->call_id = view->call->call_id;
    last->tool = view->call->tool;
    return 0;
}

static int add_text(struct view *view, struct hf_span text, struct hf_err *err)
{
    struct hf_part part = { .kind = HF_PART_TOOL_RESULT, .content = text };
    return add_part(view, &part, err);
}

static int add_attachment(struct view *view, const struct hf_attachment *attachment,
                          struct hf_err *err)
{
    struct hf_part part = { .kind = HF_PART_ATTACHMENT, .attachment = attachment };
    return add_part(view, &part, err);
}

static int view_attachments(struct view *view, struct hf_span value, struct hf_err *err)
{
    struct finder finder = { .depth = 0 };
    struct hf_span object = { 0 };
    struct hf_span inner = { 0 };
    const char *from = value.at;
    bool sound = false;
    hf_walk_begin(&finder.walk, value);
    while (next_attachment(&finder, &object, &inner, &sound)) {
        struct hf_attachment *attachment = hf_arena_new(view->move->arena,
                                                        struct hf_attachment);
        int rc = attachment
                     ? read_attachment(view->move->arena, inner, attachment, &sound)
                     : HF_ENOMEM;
        if (rc)
            return hf_fail_plain(err, rc);
        struct hf_span before = { from, (size_t)((const char *)object.at - from) };
        rc = before.len > 0 || view->count == 0 ? add_text(view, before, err) : 0;
        if (rc == 0)
            rc = add_attachment(view, attachment, err);
        if (rc)
            return rc;
        from = (const char *)object.at + object.len;
        if (finder_done(&finder))
            break;
    }
    const char *end = (const char *)value.at + value.len;
    return from < end
               ? add_text(view, (struct hf_span){ from, (size_t)(end - from) }, err)
               : 0;
}

/* A string is shown without its quotes and escapes, any other value as it was written. */
static int view_value(struct view *view, struct hf_span value, struct hf_err *err)
{
    struct hf_span text = value;
    if (may_hold_attachment(value))
        return view_attachments(view, value, err);
    if (value.len > 0 && *(const char *)value.at == '"') {
        int rc = hf_walk_text(view->move->arena, value, &text);
        if (rc == HF_ENOMEM)
            return hf_fail_plain(err, rc);
        if (!hf_text_clean(text.at, text.len))
            text = value;
    }
    return add_text(view, text, err);
}

static int view_parts(struct view *view, const struct hf_tool_result *result,
                      struct hf_err *err)
{
    int rc = 0;
    if (result->parts[0].kind != HF_PART_TEXT)
        rc = add_text(view, (struct hf_span){ "", 0 }, err);
    for (size_t i = 0; rc == 0 && i < result->part_count; i++)
        rc = result->parts[i].kind == HF_PART_TEXT
                 ? add_text(view, result->parts[i].content, err)
                 : add_attachment(view, result->parts[i].attachment, err);
    return rc;
}

/* "word: text", or "word (class, code): text" for a failure. */
static int view_words(struct view *view, const char *word,
                      const struct hf_failure *failure, struct hf_span text,
                      struct hf_err *err)
{
    struct hf_buf buf;
    hf_buf_init(&buf, view->move->turn->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_text(&buf, word);
    if (failure) {
        hf_buf_text(&buf, " (");
        hf_buf_text(&buf, hf_turn_word(&hf_w_failures, failure->class_));
        hf_buf_text(&buf, ", ");
        hf_buf_text(&buf, failure->code);
        hf_buf_char(&buf, ')');
    }
    if (text.len > 0) {
        size_t room = buf.max - buf.len - 2;
        hf_buf_text(&buf, ": ");
        hf_buf_bytes(&buf, text.at,
                     text.len <= room ? text.len : hf_utf8_cut(text.at, room));
    }
    char *copy = hf_buf_state(&buf) == 0
                     ? hf_arena_copy(view->move->arena, buf.at, buf.len)
                     : NULL;
    struct hf_span said = { copy, buf.len };
    hf_buf_fini(&buf);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    return add_text(view, said, err);
}

static int view_result(struct view *view, const struct hf_tool_result *result,
                       struct hf_err *err)
{
    if (result->part_count > 0)
        return view_parts(view, result, err);
    switch (result->outcome) {
    case HF_TOOL_SUCCESS: return view_value(view, result->value, err);
    case HF_TOOL_FAILURE:
        return view_words(view, "error", result->failure, result->failure->message, err);
    case HF_TOOL_CANCELLED:
        return view_words(view, "cancelled", NULL, result->reason, err);
    case HF_TOOL_UNKNOWN: break;
    }
    return view_words(view, "outcome unknown", NULL, result->reason, err);
}

int hf_move_view(struct hf_move *move, const struct hf_tool_call *call,
                 const struct hf_part **ret_parts, size_t *ret_count, struct hf_err *err)
{
    struct view view = { .move = move, .call = call };
    const struct hf_tool_result *result = call->result;
    int rc = view_result(&view, result, err);
    for (size_t i = 0; rc == 0 && i < result->intent_count; i++) {
        const struct hf_intent *intent = &result->intents[i];
        const char *word = hf_join_id(move->arena, intent->failed ? "failed" : "done",
                                      i + 1, intent->name);
        rc = word ? view_words(&view, word, NULL, intent->text, err)
                  : hf_fail_plain(err, HF_ENOMEM);
    }
    if (rc)
        return rc;
    *ret_parts = view.parts;
    *ret_count = view.count;
    return 0;
}

/* Escaping */

/* A key "$attachment", with any number of further "$" before it. */
static bool reserved(struct hf_span raw)
{
    const char *at = raw.at;
    size_t i = 1;
    while (i < raw.len && at[i] == '$')
        i++;
    struct hf_span rest = { at + i, raw.len - i };
    return i > 1 && hf_turn_span_same(rest, hf_text_of("attachment\""));
}

int hf_value_escape(const struct hf_alloc *alloc, struct hf_span json,
                    struct hf_bytes *ret_value, struct hf_err *err)
{
    const struct hf_alloc *own = alloc ? alloc : hf_alloc_system();
    int rc = hf_turn_text_json(json, (size_t)HF_MAX_TURN_TEXT_BYTES, "value", err);
    if (rc)
        return rc;
    struct hf_buf out;
    struct hf_walk walk;
    hf_buf_init(&out, own, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_walk_begin(&walk, json);
    while (walk.at < walk.end) {
        if (*walk.at != '"') {
            hf_buf_char(&out, *walk.at++);
            continue;
        }
        struct hf_span string = hf_walk_value(&walk);
        struct hf_walk ahead = walk;
        hf_buf_char(&out, '"');
        if (hf_walk_next(&ahead) == ':' && reserved(string))
            hf_buf_char(&out, '$');
        hf_buf_bytes(&out, (const char *)string.at + 1, string.len - 1);
    }
    rc = hf_buf_state(&out);
    if (rc) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_value = (struct hf_bytes){ own, out.at, out.len };
    return 0;
}
