/* Many callers' small batches as one: the same call of many threads becomes one statement.
 *
 * A batch fits if each of its calls
 * - has one set and a form for many (`-- many:` in sql/), and expects nothing; the gathered call
 *   expects that every set changes one row, or
 * - takes only sets, and says how many rows it changes; the gathered call has all
 *   of them, and expects the sum.
 * If a gathered batch is refused, it is undone and its members run as they are.
 */
#include <string.h>

#include "db/pg/pg.h"

static bool has_form_for_many(const struct hf_pg_text *one, const struct hf_call *call)
{
    return one->many >= 0 && call->rows == 1 && call->expect == HF_ANY_COUNT &&
           (one->unless < 0 || ((uint32_t)one->unless < call->width &&
                                call->args[one->unless].type == HF_VAL_NULL));
}

static bool takes_only_sets(const struct hf_pg_text *one, const struct hf_call *call)
{
    return one->sets && one->guarded && call->once == 0 && call->expect != HF_ANY_COUNT;
}

static bool call_fits(const struct pg *pg, const struct hf_call *call,
                      const struct hf_call *first)
{
    const struct hf_pg_text *one = pg_text_of(pg, call->statement);
    return call->statement == first->statement && call->width == first->width &&
           (has_form_for_many(one, call) || takes_only_sets(one, call));
}

bool pg_gather_fits(const struct pg *pg, const struct hf_batch *batch,
                    const struct hf_batch *first)
{
    size_t count = batch->call_count;
    bool fits = count > 0 && count <= PG_GATHER_CALLS && count == first->call_count;
    for (size_t i = 0; fits && i < count; i++)
        fits = call_fits(pg, &batch->calls[i], &first->calls[i]);
    return fits;
}

/* Call `at` of all of them. */
static int gather_call(const struct pg *pg, struct pg_member *const *members,
                       size_t count, size_t at, struct hf_arena *arena,
                       struct hf_call *ret_call)
{
    const struct hf_call *first = &members[0]->batch->calls[at];
    int many = pg_text_of(pg, first->statement)->many;
    struct hf_call all = { .statement = many >= 0 ? many : first->statement,
                           .width = first->width };
    for (size_t k = 0; k < count; k++) {
        const struct hf_call *one = &members[k]->batch->calls[at];
        all.rows += one->rows;
        all.expect += many >= 0 ? 1 : one->expect;
    }
    struct hf_val *args = hf_arena_array(arena, (size_t)all.rows * all.width,
                                         sizeof(*args));
    all.args = args;
    for (size_t k = 0; args && k < count; k++) {
        const struct hf_call *one = &members[k]->batch->calls[at];
        size_t values = (size_t)one->rows * one->width;
        memcpy(args, one->args, values * sizeof(*args));
        args += values;
    }
    *ret_call = all;
    return args ? 0 : HF_ENOMEM;
}

int pg_gather(const struct pg *pg, struct pg_gathered *all,
              struct pg_member *const *members, size_t count, struct hf_arena *arena)
{
    const struct hf_batch *first = members[0]->batch;
    int rc = 0;
    all->batch = (struct hf_batch){ .alloc = arena->alloc,
                                    .calls = all->calls,
                                    .call_count = first->call_count };
    all->member =
        (struct pg_member){ .batch = &all->batch, .parts = members, .part_count = count };
    for (size_t i = 0; rc == 0 && i < all->batch.call_count; i++)
        rc = gather_call(pg, members, count, i, arena, &all->calls[i]);
    return rc;
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
            batch->calls[i].changed = batch->calls[i].expect == HF_ANY_COUNT
                                          ? 1
                                          : batch->calls[i].expect;
    }
}
