/* The save decoder. An input is the bytes between frame and digest, as
 *
 *   flags 1 | head length 2 | head | body
 *
 * and is given a right frame, so that the fuzzer reaches what is inside. What is accepted
 * must be written back to the same bytes, must be describable, and the turn must be usable:
 * it is polled, exported and failed. Raw input is tried as a whole save too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/ident.h"
#include "fuzz/fuzz.h"
#include "turn/cells.h"

static struct hf_setup *setups[FUZZ_SETUPS];
static struct hf_surface *surface;

static const struct hf_record *lend(void *user, uint64_t i)
{
    (void)i;
    return user;
}

/* Whatever base the save names. */
static void fill_base(const struct hf_save_info *info, struct hf_base *ret_base)
{
    static const struct hf_part part = { .content = { "past", 4 } };
    static struct hf_message message = { .id = "h", .parts = &part, .part_count = 1 };
    static struct hf_record record = { .message = &message };
    *ret_base =
        (struct hf_base){ .count = info->base_count, .user = &record, .get = lend };
    if (info->base_id[0] || info->base_count > 0)
        ret_base->id = info->base_id;
    memcpy(ret_base->digest, info->base_digest, 32);
}

static void use(struct hf_turn *turn, struct hf_span save)
{
    struct hf_bytes again = { 0 };
    struct hf_effect effect = { 0 };
    struct hf_err err = { 0 };
    const char *json = NULL;
    fuzz_require(hf_turn_save(turn, &again, &err) == 0);
    struct hf_save_info info;
    fuzz_require(hf_turn_peek(save, &info, &err) == 0);
    if (!info.exported)
        fuzz_require(again.len == save.len && memcmp(again.at, save.at, save.len) == 0);
    hf_bytes_free(&again);
    if (hf_code_history(turn, (struct hf_span){ "{\"step\":1}", 10 }, &again, &err) == 0)
        hf_bytes_free(&again);
    for (int i = 0; i < 50 && hf_turn_record_count(turn) < 1000; i++)
        if (hf_turn_poll_json(turn, &json, &err) || !json)
            break;
    fuzz_require(hf_turn_poll(turn, &effect, &err) <= 0); /* any answer will do */
    if (hf_turn_state(turn) != HF_TURN_FINISHED)
        fuzz_require(hf_turn_fail(turn, "fuzz", "enough", &err) == 0);
    fuzz_require(hf_turn_save(turn, &again, &err) == 0);
    hf_bytes_free(&again);
}

static void try_save(struct hf_span save)
{
    struct hf_err err = { 0 };
    struct hf_save_info info;
    struct hf_bytes text = { 0 };
    if (hf_turn_peek(save, &info, &err))
        return;
    int described = hf_turn_describe(NULL, save, &text, &err);
    hf_bytes_free(&text);
    if (hf_code_trajectory(NULL, save, &text, &err) == 0)
        fuzz_require(described == 0);
    hf_bytes_free(&text);
    for (int i = 0; i < FUZZ_SETUPS; i++) {
        struct hf_turn *turn = NULL;
        struct hf_base base;
        fill_base(&info, &base);
        struct hf_restore with = { .size = sizeof(with), .base = &base };
        if (hf_turn_restore(setups[i], save, &with, &turn, &err))
            continue;
        fuzz_require(described == 0);
        use(turn, save);
        hf_turn_free(turn);
    }
}

static void frame(const uint8_t *data, size_t size)
{
    static const uint8_t magic[8] = { 0x89, 'H', 'F', 'T', '\r', '\n', 0x1a, '\n' };
    size_t inside = size - 3;
    size_t head = (size_t)data[1] << 8 | data[2];
    uint8_t *save = calloc(1, 24 + inside + 32);
    head = head <= inside ? head : inside;
    memcpy(save, magic, 8);
    save[9] = 1;
    save[11] = data[0] & 1;
    save[14] = (uint8_t)(head >> 8);
    save[15] = (uint8_t)head;
    for (int i = 0; i < 4; i++)
        save[20 + i] = (uint8_t)((inside - head) >> (8 * (3 - i)));
    memcpy(save + 24, data + 3, inside);
    fuzz_require(hf_sha256(save, 24 + inside, save + 24 + inside) == 0);
    try_save((struct hf_span){ save, 24 + inside + 32 });
    free(save);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!surface)
        fuzz_setups(&surface, setups);
    try_save((struct hf_span){ data, size });
    if (size >= 3)
        frame(data, size);
    return 0;
}
