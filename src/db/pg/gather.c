/* Many callers' small batches as one: the same call of many threads becomes one statement.
 *
 * A batch fits if each of its calls
 * - has one set and a form for many (`-- many:` in sql/), and expects nothing; the gathered call
 *   expects that every set changes one row, or
 * - takes only sets and returns nothing; the gathered call has all of them, and expects the sum.
 *   Where they expect nothing, their callers are not told how many rows they changed; or
 * - takes only sets and reads, and its last column says which set a row is of (`a.place`).
 * If a gathered batch is refused, it is undone and its members run as they are.
 */
#include <string.h>

#include "db/batch.h"
#include "db/pg/pg.h"

static bool has_form_for_many(const struct hf_pg_text *one, const struct hf_call *call)
{
    return one->many >= 0 && call->rows == 1 && call->expect == HF_ANY_COUNT &&
           (one->unless < 0 || ((uint32_t)one->unless < call->width &&
                                call->args[one->unless].type == HF_VAL_NULL));
}

static bool takes_only_sets(const struct hf_pg_text *one, const struct hf_call *call)
{
    return one->sets && one->guarded && call->once == 0;
}

static bool reads_by_set(const struct hf_pg_text *one, const struct hf_call *call)
{
    return one->places && call->once == 0 && call->expect == HF_ANY_COUNT &&
           call->bytes_max == 0 && call->only_if == 0;
}

static bool call_fits(const struct pg *pg, const struct hf_call *call,
                      const struct hf_call *first)
{
    const struct hf_pg_text *one = pg_text_of(pg, call->statement);
    return call->statement == first->statement && call->width == first->width &&
           (call->expect == HF_ANY_COUNT) == (first->expect == HF_ANY_COUNT) &&
           (has_form_for_many(one, call) || takes_only_sets(one, call) ||
            reads_by_set(one, call));
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
    if (many < 0 && first->expect == HF_ANY_COUNT)
        all.expect = HF_ANY_COUNT;
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

/* The rows of the sets behind `before`, as the results of the batch that has these sets. */
static int keep_rows(const struct hf_call *all, int64_t before, struct hf_batch *batch,
                     struct hf_call *call)
{
    int rc = 0;
    call->out_width = all->out_width;
    for (size_t row = 0; rc == 0 && row < all->out_count; row++) {
        const struct hf_val *from = all->out + row * all->out_width;
        int64_t place = from[all->out_width - 1].i - before;
        if (place < 1 || place > call->rows)
            continue;
        rc = hf_results_grow(batch, call, 1);
        struct hf_val *to = rc ? NULL : call->out + call->out_count++ * all->out_width;
        for (size_t i = 0; rc == 0 && i < all->out_width; i++) {
            to[i] = from[i];
            if (from[i].at)
                to[i].at = hf_arena_copy(hf_results_of(batch), from[i].at, from[i].len);
            rc = from[i].at && !to[i].at ? HF_ENOMEM : 0;
        }
    }
    return rc;
}

/* `befores`: how many sets of each call the members before this one have. */
static int answer_member(const struct pg_gathered *all, struct hf_batch *batch,
                         int64_t befores[PG_GATHER_CALLS])
{
    int rc = 0;
    batch->now = all->batch.now;
    batch->lease_now = all->batch.lease_now;
    batch->incarnation = all->batch.incarnation;
    batch->lost = all->batch.lost;
    for (size_t i = 0; rc == 0 && i < all->batch.call_count; i++) {
        struct hf_call *call = &batch->calls[i];
        call->changed = call->expect == HF_ANY_COUNT ? 1 : call->expect;
        if (all->batch.calls[i].out_count > 0)
            rc = keep_rows(&all->batch.calls[i], befores[i], batch, call);
        befores[i] += call->rows;
    }
    return rc;
}

void pg_gather_answer(struct pg *pg, const struct pg_gathered *all,
                      struct pg_member *const *members, size_t count)
{
    int64_t befores[PG_GATHER_CALLS] = { 0 };
    for (size_t k = 0; k < count; k++) {
        members[k]->rc = all->member.rc;
        members[k]->err = all->member.err;
        if (all->member.rc)
            continue;
        pg_run_forget(pg, members[k]->batch);
        if (answer_member(all, members[k]->batch, befores))
            members[k]->rc = hf_fail(
                &members[k]->err, HF_EUNCERTAIN, NULL,
                "it was committed, but there is no memory for what it returned");
    }
}
