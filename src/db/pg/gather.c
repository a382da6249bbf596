/* Many callers' small batches as one: single creates of many threads become one statement.
 *
 * A batch fits if each of its calls has one set and a form for many (`-- many:` in sql/),
 * and expects nothing. The gathered batch expects that every set changes one row; if one does
 * not, it is undone and its members run as they are.
 */
#include <string.h>

#include "db/pg/pg.h"

static bool call_fits(const struct pg *pg, const struct hf_call *call)
{
    const struct hf_pg_text *one = pg_text_of(pg, call->statement);
    return one->many >= 0 && call->rows == 1 && call->expect == HF_ANY_COUNT &&
           (one->unless < 0 || ((uint32_t)one->unless < call->width &&
                                call->args[one->unless].type == HF_VAL_NULL));
}

bool pg_gather_fits(const struct pg *pg, const struct hf_batch *batch,
                    const struct hf_batch *first)
{
    size_t count = batch->call_count;
    bool fits = count > 0 && count <= PG_GATHER_CALLS && count == first->call_count;
    for (size_t i = 0; fits && i < count; i++)
        fits = call_fits(pg, &batch->calls[i]) &&
               batch->calls[i].statement == first->calls[i].statement;
    return fits;
}

int pg_gather(const struct pg *pg, struct pg_gathered *all,
              struct pg_member *const *members, size_t count, struct hf_arena *arena)
{
    const struct hf_batch *first = members[0]->batch;
    all->batch = (struct hf_batch){ .alloc = arena->alloc,
                                    .calls = all->calls,
                                    .call_count = first->call_count };
    all->member =
        (struct pg_member){ .batch = &all->batch, .parts = members, .part_count = count };
    for (size_t i = 0; i < all->batch.call_count; i++) {
        uint32_t width = first->calls[i].width;
        struct hf_val *args = hf_arena_array(arena, count * width, sizeof(*args));
        if (!args)
            return HF_ENOMEM;
        for (size_t k = 0; k < count; k++)
            memcpy(args + k * width, members[k]->batch->calls[i].args,
                   width * sizeof(*args));
        all->calls[i] = (struct hf_call){
            .statement = pg_text_of(pg, first->calls[i].statement)->many,
            .width = width,
            .rows = (uint32_t)count,
            .args = args,
            .expect = (int64_t)count
        };
    }
    return 0;
}

void pg_gather_answer(const struct pg_gathered *all, struct pg_member *const *members,
                      size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct hf_batch *batch = members[k]->batch;
        members[k]->rc = all->member.rc;
        if (all->member.rc) {
            members[k]->err = all->member.err;
            continue;
        }
        batch->now = all->batch.now;
        batch->lease_now = all->batch.lease_now;
        batch->incarnation = all->batch.incarnation;
        for (size_t i = 0; i < all->batch.call_count; i++)
            batch->calls[i].changed = 1;
    }
}
