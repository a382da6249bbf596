/* The JSON form: lines of responses to a turn that is polled between them. Refused or not,
 * the turn must stay usable, and a save taken at any point must restore to itself. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

static struct hf_setup *setups[FUZZ_SETUPS];
static struct hf_surface *surface;

static struct hf_turn *cut(const struct hf_setup *setup, struct hf_turn *turn)
{
    struct hf_bytes save = { 0 };
    struct hf_bytes again = { 0 };
    struct hf_turn *next = NULL;
    struct hf_err err = { 0 };
    /* The turn's own surface is only in an export. */
    fuzz_require(hf_turn_export(turn, &save, &err) == 0);
    fuzz_require(hf_turn_restore(setup, (struct hf_span){ save.at, save.len }, NULL,
                                 &next, &err) == 0);
    fuzz_require(hf_turn_export(next, &again, &err) == 0);
    fuzz_require(again.len == save.len && memcmp(again.at, save.at, save.len) == 0);
    hf_bytes_free(&save);
    hf_bytes_free(&again);
    hf_turn_free(turn);
    return next;
}

static void poll_all(struct hf_turn *turn)
{
    struct hf_err err = { 0 };
    const char *json = NULL;
    do
        fuzz_require(hf_turn_poll_json(turn, &json, &err) == 0);
    while (json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_err err = { 0 };
    struct hf_turn *turn = NULL;
    if (!surface)
        fuzz_setups(&surface, setups);
    struct hf_part part = { .content = { "hi", 2 } };
    struct hf_message message = { .id = "m", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s",
                                   .turn_id = "t",
                                   .inputs = &input,
                                   .input_count = 1 };
    const struct hf_setup *setup = setups[size % FUZZ_SETUPS];
    fuzz_require(hf_turn_new(setup, &start, &turn, &err) == 0);
    const char *at = (const char *)data;
    const char *end = at + size;
    for (int line = 0; at < end && line < 30; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t len = next ? (size_t)(next - at) : (size_t)(end - at);
        poll_all(turn);
        /* Any answer will do: most lines are refused. */
        int rc = hf_turn_respond_json(turn, (struct hf_span){ at, len }, &err);
        fuzz_require(rc <= 0);
        turn = cut(setup, turn);
        at = next ? next + 1 : end;
    }
    hf_turn_free(turn);
    struct hf_replay *replay = NULL;
    if (hf_replay_new(NULL, (struct hf_span){ data, size }, NULL, &replay, &err) == 0)
        hf_replay_free(replay);
    return 0;
}
