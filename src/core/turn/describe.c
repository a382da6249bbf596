/* The save of a turn (the machine's stored state) as lines "path: value", for people and for diffs.
 * A line is, for example, "wait.calls[2].tool: search". It reads a save on its own: without the
 * setup, the earlier history and the blobs that a turn needs to continue. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"
#include "core/turn/image.h"

/* One step of a path, and the steps around it: a member by its name, or an item of a list by its
 * number. The outermost step is the whole save, which has neither. */
struct path {
    const struct path *outer; /* NULL: this is the whole */
    const char *name;
    size_t number;
    bool item; /* `number` counts, and there is no name */
};

static bool is_whole(const struct path *path)
{
    return !path->outer;
}

/* Writes the path from the outermost step to this one. */
static void put_path(struct hf_buf *out, const struct path *path)
{
    if (is_whole(path))
        return;
    put_path(out, path->outer);
    if (!path->item && !is_whole(path->outer))
        hf_buf_char(out, '.');
    if (path->item) {
        hf_buf_char(out, '[');
        hf_buf_i64(out, (int64_t)path->number);
        hf_buf_char(out, ']');
    } else {
        hf_buf_text(out, path->name);
    }
}

/* One line whatever the text holds. */
static void put_text(struct hf_buf *out, struct hf_span text)
{
    const char *at = text.at;
    for (size_t i = 0; i < text.len; i++) {
        if (at[i] == '\n')
            hf_buf_text(out, "\\n");
        else if (at[i] == '\\')
            hf_buf_text(out, "\\\\");
        else if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f)
            hf_buf_char(out, '?');
        else
            hf_buf_char(out, at[i]);
    }
}

static void put_struct(struct hf_buf *out, const struct path *path,
                       const struct hf_schema *schema, const void *from);

static void put_list(struct hf_buf *out, const struct path *path,
                     const struct hf_member *member, const void *from)
{
    for (size_t i = 0; i < hf_member_count(member, from); i++) {
        struct path item = { .outer = path, .number = i, .item = true };
        put_struct(out, &item, member->of, hf_member_item(member, from, i));
    }
}

static void put_leaf(struct hf_buf *out, const struct hf_member *member, const void *from)
{
    switch ((enum hf_member_type)member->type) {
    case HF_M_BOOL:
        hf_buf_text(out, hf_member_number(member, from) ? "true" : "false");
        break;
    case HF_M_ENUM:
        hf_buf_text(
            out, hf_turn_word(member->words, (uint32_t)hf_member_number(member, from)));
        break;
    case HF_M_U32:
    case HF_M_U64:
    case HF_M_I64: hf_buf_i64(out, (int64_t)hf_member_number(member, from)); break;
    case HF_M_TEXT: put_text(out, hf_turn_span_of(hf_member_text(member, from))); break;
    case HF_M_SPAN:
    case HF_M_JSON: put_text(out, hf_member_span(member, from)); break;
    case HF_M_HASH: hf_buf_hex(out, (const char *)from + member->offset, 32); break;
    case HF_M_STRUCT:
    case HF_M_REF:
    case HF_M_LIST:
    case HF_M_REFS: break;
    }
}

static void put_member(struct hf_buf *out, const struct path *path,
                       const struct hf_member *member, const void *from)
{
    struct path here = { .outer = path, .name = member->name };
    bool shown = (member->flags & HF_M_REQUIRED) != 0 && member->type == HF_M_ENUM;
    if (hf_member_absent(member, from) && !shown)
        return;
    if (member->type == HF_M_STRUCT) {
        put_struct(out, &here, member->of, (const char *)from + member->offset);
    } else if (member->type == HF_M_REF) {
        put_struct(out, &here, member->of, hf_member_ptr(member, from));
    } else if (member->type == HF_M_LIST || member->type == HF_M_REFS) {
        put_list(out, &here, member, from);
    } else {
        put_path(out, &here);
        hf_buf_text(out, ": ");
        put_leaf(out, member, from);
        hf_buf_char(out, '\n');
    }
}

static void put_struct(struct hf_buf *out, const struct path *path,
                       const struct hf_schema *schema, const void *from)
{
    for (size_t i = 0; i < schema->count; i++)
        put_member(out, path, &schema->members[i], from);
}

int hf_turn_describe(const struct hf_alloc *alloc, struct hf_span save,
                     struct hf_bytes *ret_text, struct hf_err *err)
{
    struct hf_frame frame;
    struct hf_save_head head;
    struct hf_image image;
    struct hf_arena arena;
    struct hf_buf out;
    const struct path whole = { 0 };
    int rc = hf_frame_open(save, &frame, err);
    if (rc)
        return rc;
    if (!alloc)
        alloc = hf_alloc_system();
    hf_arena_init(&arena, alloc);
    hf_buf_init(&out, alloc, 4 * (size_t)HF_MAX_TURN_SAVE_BYTES);
    rc = hf_image_read(&frame, &arena, &arena, &arena, &head, &image, err);
    if (rc == 0) {
        hf_buf_text(&out, "save: ");
        hf_buf_hex(&out, (const char *)save.at + save.len - 32, 32);
        hf_buf_text(&out, "\nversion: ");
        hf_buf_i64(&out, frame.version);
        hf_buf_text(&out, image.base_count > 0 || (frame.flags & HF_SAVE_EXPORT) != 0
                              ? "\nform: export\n"
                              : "\nform: save\n");
        put_struct(&out, &whole, &hf_s_head, &head);
        put_struct(&out, &whole, &hf_s_image, &image);
        rc = hf_buf_state(&out) ? hf_fail_plain(err, hf_buf_state(&out)) : 0;
    }
    hf_arena_fini(&arena);
    if (rc) {
        hf_buf_fini(&out);
        return rc;
    }
    *ret_text = (struct hf_bytes){ alloc, out.at, out.len };
    return 0;
}
