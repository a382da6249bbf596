/* The memory of a batch's results, for both drivers: an arena of the batch's own allocator, which
 * is dropped when the batch runs again. */
#include "db/batch.h"

#include <string.h>

struct results {
    struct hf_arena arena;
};

void hf_results_forget(struct hf_sql *sql, struct hf_batch *batch)
{
    (void)sql;
    struct results *results = batch->results;
    if (!results)
        return;
    for (size_t i = 0; i < batch->call_count; i++) {
        batch->calls[i].out = NULL;
        batch->calls[i].out_count = 0;
    }
    batch->results = NULL;
    hf_arena_fini(&results->arena);
    batch->alloc->free(batch->alloc->user, results);
}

struct hf_arena *hf_results_of(struct hf_batch *batch)
{
    struct results *results = batch->results;
    if (!results) {
        results = batch->alloc->realloc(batch->alloc->user, NULL, sizeof(*results));
        if (!results)
            return NULL;
        hf_arena_init(&results->arena, batch->alloc);
        batch->results = results;
    }
    return &results->arena;
}

/* The least power of two that is not less: the room of that many rows. */
static size_t room_of(size_t rows)
{
    size_t room = rows ? 1 : 0;
    while (room < rows)
        room *= 2;
    return room;
}

int hf_results_grow(struct hf_batch *batch, struct hf_call *call, size_t more)
{
    size_t room = room_of(call->out_count + more);
    if (room == room_of(call->out_count))
        return 0;
    struct hf_arena *arena = hf_results_of(batch);
    struct hf_val *out = arena
                             ? hf_arena_room(arena, room, call->out_width * sizeof(*out))
                             : NULL;
    if (!out)
        return HF_ENOMEM;
    if (call->out_count > 0)
        memcpy(out, call->out, call->out_count * call->out_width * sizeof(*out));
    call->out = out;
    return 0;
}

bool hf_results_full(struct hf_call *call, size_t *bytes)
{
    if (call->bytes_max == 0)
        return false;
    const struct hf_val *row = call->out + (call->out_count - 1) * call->out_width;
    for (size_t i = 0; i < call->out_width; i++)
        *bytes += row[i].len;
    call->full = *bytes >= call->bytes_max;
    return call->full;
}
