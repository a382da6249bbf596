/* From bytes to a turn. Blobs are found by their hash: in the setup, in an export, or by
 * the host's resolver; what was found elsewhere than in the setup is hashed before it is
 * believed. A base is compared with what the save names, and never read.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/sized.h"
#include "core/turn/image.h"

static void fill_text(char to[192], const char *text)
{
    size_t len = text ? strlen(text) : 0; /* at most 191: the table says so */
    memset(to, 0, 192);
    if (len > 0)
        memcpy(to, text, len);
}

int hf_turn_peek(struct hf_span save, struct hf_save_info *ret_info, struct hf_err *err)
{
    struct hf_frame frame;
    struct hf_save_head head = { 0 };
    struct hf_arena arena;
    int rc = hf_frame_open(save, &frame, err);
    if (rc)
        return rc;
    hf_arena_init(&arena, hf_alloc_system());
    struct hf_cbor cbor = { .stay = &arena, .keep = &arena, .step = &arena };
    cbor.at = frame.head.at;
    cbor.end = cbor.at + frame.head.len;
    rc = hf_cbor_read(&cbor, &hf_s_head, &head, err);
    if (rc == 0 && cbor.at != cbor.end)
        rc = hf_fail(err, HF_ECORRUPT, "head", "bytes after the head");
    if (rc == 0) {
        ret_info->version = frame.version;
        ret_info->exported = (frame.flags & HF_SAVE_EXPORT) != 0;
        fill_text(ret_info->session_id, head.session_id);
        fill_text(ret_info->turn_id, head.turn_id);
        fill_text(ret_info->protocol, head.protocol);
        fill_text(ret_info->base_id, head.base_id);
        ret_info->base_count = head.base_count;
        memcpy(ret_info->base_digest, head.base_digest, 32);
    }
    hf_arena_fini(&arena);
    return rc;
}

/* Where blobs may come from. */
struct sources {
    const struct hf_setup *setup;
    const struct hf_image *image;
    const struct hf_restore *restore;
    struct hf_arena *stay;
};

static bool same_hash(const uint8_t a[32], const uint8_t b[32])
{
    return memcmp(a, b, 32) == 0;
}

static bool find_in_setup(const struct sources *from, const uint8_t hash[32],
                          struct hf_span *ret_blob)
{
    const struct hf_face *face = &from->setup->config.surface->face;
    if (same_hash(hash, face->prompt_hash))
        *ret_blob = face->prompt;
    else if (same_hash(hash, face->tools_hash))
        *ret_blob = face->tools;
    else if (same_hash(hash, from->setup->options_hash))
        *ret_blob = from->setup->config.options;
    else
        return false;
    return true;
}

static int find_blob(const struct sources *from, const uint8_t hash[32], const char *what,
                     struct hf_span *ret_blob, struct hf_err *err)
{
    uint8_t digest[32];
    struct hf_span blob = { 0 };
    bool found = false;
    if (find_in_setup(from, hash, ret_blob))
        return 0;
    for (size_t i = 0; !found && i < from->image->blob_count; i++) {
        found = same_hash(hash, from->image->blobs[i].hash);
        if (found)
            blob = from->image->blobs[i].bytes;
    }
    if (!found && from->restore && from->restore->resolve) {
        int rc = from->restore->resolve(from->restore->user, hash, &blob);
        if (rc && rc != HF_EBLOB)
            return hf_fail_plain(err, rc);
        found = rc == 0;
    }
    if (!found)
        return hf_fail(err, HF_EBLOB, what, "the turn's %s cannot be found", what);
    if (hf_sha256(blob.at, blob.len, digest))
        return hf_fail_plain(err, HF_ENOMEM);
    if (!same_hash(hash, digest))
        return hf_fail(err, HF_EBLOB, what, "the turn's %s was changed", what);
    *ret_blob = blob;
    return 0;
}

static int find_json(const struct sources *from, const uint8_t hash[32], const char *what,
                     struct hf_span *ret_blob, struct hf_err *err)
{
    int rc = find_blob(from, hash, what, ret_blob, err);
    if (rc || ret_blob->len == 0)
        return rc;
    rc = hf_json_check_raw(*ret_blob, (size_t)HF_MAX_TURN_TEXT_BYTES, what, err);
    return rc == HF_EINVAL
               ? hf_fail(err, HF_EBLOB, what, "the turn's %s is not JSON", what)
               : rc;
}

static int resolve_face(const struct sources *from, struct hf_face *face,
                        struct hf_err *err)
{
    const struct hf_face *known = &from->setup->config.surface->face;
    int rc = find_blob(from, face->prompt_hash, "prompt", &face->prompt, err);
    if (rc == 0)
        rc = find_json(from, face->tools_hash, "tools", &face->tools, err);
    if (rc)
        return rc;
    if (!same_hash(face->tools_hash, known->tools_hash))
        return hf_turn_tool_names(from->stay, face->tools, &face->names, err);
    face->names = known->names;
    return 0;
}

static int resolve_request(const struct sources *from, struct hf_request *request,
                           struct hf_err *err)
{
    int rc = find_blob(from, request->prompt_hash, "prompt", &request->prompt, err);
    if (rc == 0)
        rc = find_json(from, request->tools_hash, "tools", &request->tools, err);
    if (rc == 0)
        rc = find_json(from, request->options_hash, "options", &request->options, err);
    return rc;
}

static int check_identity(const struct hf_setup *setup, const struct hf_save_head *head,
                          const struct hf_restore *restore, struct hf_err *err)
{
    const char *id = setup->config.protocol->ops->id;
    if (restore && restore->session_id &&
        !hf_turn_span_same(hf_turn_span_of(restore->session_id),
                           hf_turn_span_of(head->session_id)))
        return hf_fail(err, HF_EFOREIGN, "session_id", "the save is of session %s",
                       head->session_id);
    if (restore && restore->turn_id &&
        !hf_turn_span_same(hf_turn_span_of(restore->turn_id),
                           hf_turn_span_of(head->turn_id)))
        return hf_fail(err, HF_EFOREIGN, "turn_id", "the save is of turn %s",
                       head->turn_id);
    if (!hf_turn_span_same(hf_turn_span_of(id), hf_turn_span_of(head->protocol)))
        return hf_fail(err, HF_EPROTOCOL, "protocol",
                       "the save is of protocol %s, not %s", head->protocol, id);
    return 0;
}

static int check_base(const struct hf_save_head *head, const struct hf_base *base,
                      struct hf_err *err)
{
    static const struct hf_base none = { 0 };
    if (!base)
        base = &none;
    if (head->base_count == 0 && !head->base_id && base->count == 0 && !base->id)
        return 0;
    if (!base->id ||
        !hf_turn_span_same(hf_turn_span_of(head->base_id), hf_turn_span_of(base->id)))
        return hf_fail(err, HF_EBASE, "base", "the save was made over base %s",
                       head->base_id ? head->base_id : "(none)");
    if (head->base_count != base->count)
        return hf_fail(
            err, HF_EBASE, "base", "the save was made over %llu records, not %llu",
            (unsigned long long)head->base_count, (unsigned long long)base->count);
    if (!same_hash(head->base_digest, base->digest))
        return hf_fail(err, HF_EBASE, "base", "the base holds other records");
    return 0;
}

static const struct hf_record *get_embedded(void *user, uint64_t i)
{
    const struct hf_record **records = user;
    return records[i];
}

/* The base that an export brought; its records live as long as the handle. */
static void embed_base(const struct hf_save_head *head, const struct hf_image *image,
                       struct hf_base *ret_base)
{
    *ret_base = (struct hf_base){ .id = head->base_id,
                                  .count = head->base_count,
                                  .user = (void *)image->base,
                                  .get = get_embedded };
    memcpy(ret_base->digest, head->base_digest, 32);
}

/* The body into the handle; own records move to an array that can grow. */
static int adopt(struct hf_turn *turn, const struct hf_image *image, struct hf_err *err)
{
    size_t count = image->body.own_count;
    struct hf_record **own = image->body.own;
    if (hf_turn_room_for_own(turn, count))
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_record **array = turn->now.own;
    if (count > 0)
        memcpy(array, own, count * sizeof(*array));
    turn->now = image->body;
    turn->now.own = array;
    turn->now.queue_room = turn->now.queue_count;
    turn->reset_due = turn->now.state == HF_TURN_WAITING_LLM;
    return 0;
}

static int load(struct hf_turn *turn, const struct hf_frame *frame,
                const struct hf_restore *restore, struct hf_err *err)
{
    struct hf_save_head head;
    struct hf_image image;
    struct hf_base base = { 0 };
    int rc = hf_image_read(frame, &turn->stay, &turn->keep, &turn->step[0], &head, &image,
                           err);
    if (rc == 0)
        rc = check_identity(turn->setup, &head, restore, err);
    if (rc)
        return rc;
    turn->session_id = hf_arena_text(&turn->stay, head.session_id);
    turn->turn_id = hf_arena_text(&turn->stay, head.turn_id);
    if (!turn->session_id || !turn->turn_id)
        return hf_fail_plain(err, HF_ENOMEM);

    bool export = (frame->flags & HF_SAVE_EXPORT) != 0;
    if (restore && restore->base)
        base = *restore->base;
    if (export)
        embed_base(&head, &image, &base);
    else
        rc = check_base(&head, restore ? restore->base : NULL, err);
    if (rc == 0)
        rc = hf_turn_set_base(turn, &base, err);
    if (rc == 0)
        rc = adopt(turn, &image, err);
    if (rc == 0)
        rc = hf_body_take_last_step(&turn->now, &turn->base, err);
    if (rc)
        return rc;

    struct sources from = { turn->setup, &image, restore, &turn->stay };
    struct hf_request *request = NULL; /* ours, in the arena: it may be completed */
    memcpy(&request, &turn->now.wait.request, sizeof(request));
    if (turn->now.state != HF_TURN_FINISHED)
        rc = resolve_face(&from, &turn->now.face, err);
    if (rc == 0 && request)
        rc = resolve_request(&from, request, err);
    return rc;
}

int hf_turn_restore(const struct hf_setup *setup, struct hf_span save,
                    const struct hf_restore *restore, struct hf_turn **ret_turn,
                    struct hf_err *err)
{
    struct hf_frame frame;
    struct hf_turn *turn = NULL;
    int rc = restore
                 ? hf_sized_check(restore->size, sizeof(*restore), sizeof(*restore), err)
                 : 0;
    if (rc == 0)
        rc = hf_frame_open(save, &frame, err);
    if (rc == 0)
        rc = hf_turn_alloc(setup, NULL, NULL, &turn, err);
    if (rc)
        return rc;
    rc = load(turn, &frame, restore, err);
    if (rc) {
        hf_turn_free(turn);
        return rc;
    }
    *ret_turn = turn;
    return 0;
}
