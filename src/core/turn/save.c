/* Saving, exporting, rebasing, and the frame around the bytes.
 *
 *   magic 8 | version 2 | flags 2 | head length 4 | body length 8 | head | body | SHA-256 32
 *
 * Numbers are big-endian; the digest covers everything before it and is checked before
 * anything but the magic and the lengths is believed. This frame is the same in all
 * versions, so a newer save is told from a damaged one.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "core/turn/image.h"

static const uint8_t magic[8] = { 0x89, 'H', 'F', 'T', '\r', '\n', 0x1a, '\n' };

#define FIXED_BYTES ((size_t)24)
#define DIGEST_BYTES ((size_t)32)

static void put_be(uint8_t *out, size_t bytes, uint64_t value)
{
    for (size_t i = bytes; i > 0; i--) {
        out[i - 1] = (uint8_t)value;
        value >>= 8;
    }
}

static uint64_t get_be(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

int hf_frame_open(struct hf_span save, struct hf_frame *ret_frame, struct hf_err *err)
{
    const uint8_t *at = save.at;
    if (save.len < sizeof(magic) || memcmp(at, magic, sizeof(magic)) != 0)
        return hf_fail_plain(err, HF_ENOTSAVE);
    if (save.len < FIXED_BYTES + DIGEST_BYTES)
        return hf_fail(err, HF_ECORRUPT, "save", "the save is cut off");
    if (save.len > (size_t)HF_MAX_TURN_SAVE_BYTES)
        return hf_fail(err, HF_ETOOBIG, "save", "a save has at most %lld bytes",
                       (long long)HF_MAX_TURN_SAVE_BYTES);

    size_t inside = save.len - FIXED_BYTES - DIGEST_BYTES;
    uint64_t head_len = get_be(at + 12, 4);
    uint64_t body_len = get_be(at + 16, 8);
    if (head_len > inside || body_len != inside - head_len)
        return hf_fail(err, HF_ECORRUPT, "save",
                       "the save is cut off or longer than it says");
    uint8_t digest[DIGEST_BYTES];
    if (hf_sha256(at, save.len - DIGEST_BYTES, digest))
        return hf_fail_plain(err, HF_ENOMEM);
    if (memcmp(digest, at + save.len - DIGEST_BYTES, DIGEST_BYTES) != 0)
        return hf_fail(err, HF_ECORRUPT, "save", "the save's digest does not match");

    struct hf_frame frame = { .version = (uint16_t)get_be(at + 8, 2),
                              .flags = (uint16_t)get_be(at + 10, 2),
                              .head = { at + FIXED_BYTES, (size_t)head_len },
                              .body = { at + FIXED_BYTES + head_len, (size_t)body_len } };
    if (frame.version > HF_SAVE_VERSION || (frame.flags & ~HF_SAVE_EXPORT) != 0)
        return hf_fail(err, HF_ENEWER, "version", "the save is of version %u",
                       (unsigned)frame.version);
    if (frame.version == 0)
        return hf_fail(err, HF_ECORRUPT, "version", "there is no version 0");
    *ret_frame = frame;
    return 0;
}

static int write_frame(const struct hf_turn *turn, const struct hf_image *image,
                       uint16_t flags, struct hf_bytes *ret_save, struct hf_err *err)
{
    struct hf_save_head head = { .session_id = turn->session_id,
                                 .turn_id = turn->turn_id,
                                 .protocol = turn->setup->config.protocol->ops->id,
                                 .base_id = turn->base.id,
                                 .base_count = turn->base.count };
    memcpy(head.base_digest, turn->base.digest, sizeof(head.base_digest));
    struct hf_buf out;
    uint8_t fixed[FIXED_BYTES] = { 0 };
    hf_buf_init(&out, turn->alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    hf_buf_bytes(&out, fixed, sizeof(fixed));
    hf_cbor_write(&out, &hf_s_head, &head);
    size_t head_end = out.len;
    hf_cbor_write(&out, &hf_s_image, image);

    uint8_t digest[DIGEST_BYTES] = { 0 };
    int rc = hf_buf_state(&out);
    if (rc == 0) {
        memcpy(fixed, magic, sizeof(magic));
        put_be(fixed + 8, 2, HF_SAVE_VERSION);
        put_be(fixed + 10, 2, flags);
        put_be(fixed + 12, 4, head_end - FIXED_BYTES);
        put_be(fixed + 16, 8, out.len - head_end);
        memcpy(out.at, fixed, sizeof(fixed));
        rc = hf_sha256(out.at, out.len, digest);
        hf_buf_bytes(&out, digest, sizeof(digest));
    }
    if (rc == 0)
        rc = hf_buf_state(&out);
    if (rc) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_save = (struct hf_bytes){ turn->alloc, out.at, out.len };
    return 0;
}

int hf_turn_save(const struct hf_turn *turn, struct hf_bytes *ret_save,
                 struct hf_err *err)
{
    struct hf_image image = { .body = turn->now };
    return write_frame(turn, &image, 0, ret_save, err);
}

/* Each blob once, in the order in which it is met. */
static void add_blob(struct hf_blob *blobs, size_t *count, const uint8_t hash[32],
                     struct hf_span bytes)
{
    for (size_t i = 0; i < *count; i++)
        if (memcmp(blobs[i].hash, hash, 32) == 0)
            return;
    memcpy(blobs[*count].hash, hash, 32);
    blobs[*count].bytes = bytes;
    ++*count;
}

/* All records of the base at once, since the bytes hold them all. *ret_image counts those
 * that were pinned, also after a failure. */
static int pin_base(const struct hf_turn *turn, struct hf_arena *arena,
                    struct hf_image *ret_image, struct hf_pin **ret_pins,
                    struct hf_err *err)
{
    uint8_t digest[32] = { 0 };
    size_t count = (size_t)turn->base.count;
    struct hf_pin *pins = hf_arena_array(arena, count, sizeof(*pins));
    ret_image->base = hf_arena_array(arena, count, sizeof(*ret_image->base));
    if (!pins || !ret_image->base)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_pins = pins;
    for (size_t i = 0; i < count; i++) {
        ret_image->base[i] = hf_pin_take(&pins[i], &turn->base, i);
        if (!ret_image->base[i])
            return hf_fail(err, HF_EBASE, "base", "the base cannot lend record %zu", i);
        ret_image->base_count++;
        int rc = hf_record_check(ret_image->base[i], err);
        if (rc == 0)
            rc = hf_record_chain_on(turn->alloc, digest, ret_image->base[i], digest, err);
        if (rc)
            return rc;
    }
    if (memcmp(digest, turn->base.digest, sizeof(digest)) != 0)
        return hf_fail(err, HF_EBASE, "digest", "the base lends other records");
    return 0;
}

int hf_turn_export(const struct hf_turn *turn, struct hf_bytes *ret_save,
                   struct hf_err *err)
{
    struct hf_blob blobs[5];
    struct hf_arena arena;
    struct hf_pin *pins = NULL;
    struct hf_image image = { .body = turn->now, .blobs = blobs };
    const struct hf_request *request = turn->now.wait.request;
    if (turn->now.state != HF_TURN_FINISHED) {
        const struct hf_face *face = &turn->now.face;
        add_blob(blobs, &image.blob_count, face->prompt_hash, face->prompt);
        add_blob(blobs, &image.blob_count, face->tools_hash, face->tools);
    }
    if (request) {
        add_blob(blobs, &image.blob_count, request->prompt_hash, request->prompt);
        add_blob(blobs, &image.blob_count, request->tools_hash, request->tools);
        add_blob(blobs, &image.blob_count, request->options_hash, request->options);
    }
    hf_arena_init(&arena, turn->alloc);
    int rc = pin_base(turn, &arena, &image, &pins, err);
    if (rc == 0)
        rc = write_frame(turn, &image, HF_SAVE_EXPORT, ret_save, err);
    for (size_t i = 0; i < image.base_count; i++)
        hf_pin_drop(&pins[i]);
    hf_arena_fini(&arena);
    return rc;
}

/* Chain digests */

int hf_record_chain_on(const struct hf_alloc *alloc, const uint8_t previous[32],
                       const struct hf_record *record, uint8_t ret_digest[32],
                       struct hf_err *err)
{
    struct hf_buf out;
    struct hf_digest digest;
    if (record->kind == HF_RECORD_MESSAGE && record->message->origin &&
        record->message->origin->transient) {
        memmove(ret_digest, previous, 32); /* the same place, mostly */
        return 0;
    }
    hf_buf_init(&out, alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    hf_cbor_write(&out, &hf_s_record, record);
    int rc = hf_buf_state(&out);
    if (rc == 0) {
        hf_digest_begin(&digest, "holdfast.record", 1);
        hf_digest_bytes(&digest, previous, 32);
        hf_digest_bytes(&digest, out.at, out.len);
        rc = hf_digest_end(&digest, ret_digest);
    }
    hf_buf_fini(&out);
    return rc ? hf_fail_plain(err, rc) : 0;
}

int hf_record_chain(const uint8_t previous[32], const struct hf_record *record,
                    uint8_t ret_digest[32], struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_record copy;
    hf_arena_init(&arena, hf_alloc_system());
    int rc = hf_record_check(record, err);
    if (rc == 0)
        rc = hf_value_copy(&arena, &hf_s_record, HF_COPY_STRICT, record, &copy, err);
    if (rc == 0)
        rc = hf_record_chain_on(hf_alloc_system(), previous, &copy, ret_digest, err);
    hf_arena_fini(&arena);
    return rc;
}

/* Rebasing */

static int check_rebase(const struct hf_turn *turn, const struct hf_base *base,
                        struct hf_err *err)
{
    uint8_t digest[32];
    if (!base || !base->get || base->count < turn->base.count)
        return hf_fail(err, HF_EBASE, "base", "the new base has fewer records");
    if (base->count > turn->now.reported)
        return hf_fail(err, HF_EBASE, "base",
                       "the new base has records not yet reported");
    memcpy(digest, turn->base.digest, sizeof(digest));
    for (uint64_t i = turn->base.count; i < base->count; i++) {
        int rc = hf_record_chain_on(turn->alloc, digest,
                                    turn->now.own[i - turn->base.count], digest, err);
        if (rc)
            return rc;
    }
    if (memcmp(digest, base->digest, sizeof(digest)) != 0)
        return hf_fail(err, HF_EBASE, "digest", "the new base holds other records");
    return 0;
}

/* Own records [moved, own_count), copied into a fresh arena, so that those before them are
 * freed; `own` is where the pointers to the copies go. */
static int copy_left(struct hf_turn *to, size_t moved, const struct hf_record **own,
                     struct hf_err *err)
{
    for (size_t i = moved; i < to->now.own_count; i++) {
        const void *copy = NULL;
        int rc = hf_value_copy_ref(&to->keep, &hf_s_record, HF_COPY_TRUST, to->now.own[i],
                                   &copy, err);
        if (rc)
            return rc;
        own[i - moved] = copy;
    }
    return 0;
}

int hf_turn_rebase(struct hf_turn *turn, const struct hf_base *base, struct hf_err *err)
{
    int rc = check_rebase(turn, base, err);
    if (rc)
        return rc;
    struct hf_turn next = *turn;
    size_t moved = (size_t)(base->count - turn->base.count);
    size_t left = turn->now.own_count - moved;
    struct hf_arena scratch; /* for the pointers until all is copied */
    hf_arena_init_small(&scratch, turn->alloc, 512, 4096);
    hf_arena_init_small(&next.keep, turn->alloc, turn->keep.first, turn->keep.largest);
    const struct hf_record **own = hf_arena_array(&scratch, left, sizeof(*own));
    rc = own ? hf_turn_set_base(&next, base, err) : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = hf_body_take_last_step(&next.now, &next.base, err);
    if (rc == 0)
        rc = copy_left(&next, moved, own, err);
    if (rc == 0) {
        if (left > 0)
            memcpy(turn->now.own, own, left * sizeof(*own));
        hf_pin_drop(&turn->shown);
        hf_turn_leave_records(turn);
        turn->keep = next.keep;
        turn->base = next.base;
        turn->now.own_count = left;
        turn->now.last_step_known = next.now.last_step_known;
        turn->now.last_step = next.now.last_step;
    } else {
        hf_arena_fini(&next.keep);
    }
    hf_arena_fini(&scratch);
    return rc;
}
