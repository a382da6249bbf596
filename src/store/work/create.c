/* Creating units: rule 15, create_is_idempotent.
 *
 * Every request of a call gets a row in memory (struct maker), and all rows that are still open go
 * into one transaction; what was not inserted is then looked up. A row that is in the way (the same
 * idempotency key, source or dedup key) answers its request: as that row if it was made of the same
 * request, otherwise as a conflict. A round is repeated while requests are open, since a row that
 * was in the way may be pruned in between. With an operation id the transaction also stores a
 * receipt, by which a repeated call is recognised. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "store/batch/gates.h"
#include "store/store.h"

#define SCOPE "work.create"

/* One request on its way into the ledger. */
struct maker {
    struct hf_row row;
    uint8_t hash[32];
    bool answered; /* its item is answered */
    bool held;     /* the same unit as an earlier one of its batch, which is made first */
};

int sql_make_row(struct sql_store *store, struct hf_arena *arena,
                 const struct hf_caller *who, struct hf_env *env,
                 const struct hf_work_spec *request, struct hf_row *ret_row,
                 uint8_t *ret_hash, struct hf_err *err)
{
    struct hf_policy policy;
    const char *kind = request->kind ? request->kind : "work";
    char *id = hf_arena_take(arena, HF_UUID_TEXT);
    int rc = id ? 0 : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = sql_policy(store, arena, request->source, kind, &policy, err);
    if (rc == 0)
        rc = hf_work_spec_hash(request, who, ret_hash, err);
    if (rc == 0)
        rc = sql_new_id(store, env->now, id, err);
    env->policy = &policy;
    if (rc == 0)
        rc = sql_kind_limited(store, kind, &env->kind_limited, err);
    if (rc == 0)
        rc = hf_step_create(arena, request, id, who, env, ret_row, err);
    env->policy = NULL;
    return rc;
}

/* What is next to the unit is a part of what was asked. */
static int mix_in(struct maker *maker, const struct sql_beside *beside,
                  struct hf_err *err)
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "work.extra", 1);
    hf_digest_bytes(&digest, maker->hash, sizeof maker->hash);
    hf_digest_bytes(&digest, beside->hash, HF_DIGEST_BYTES);
    return hf_digest_end(&digest, maker->hash) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* Wall time as it is now: a new row's times do not depend on what the store holds. */
static int creation_env(struct sql_store *store, const struct hf_caller *who,
                        struct hf_env *ret_env, struct hf_err *err)
{
    struct hf_batch moment = { .now = sql_wall(store) };
    return sql_env(store, who, &moment, ret_env, err);
}

/* The row that is in a request's way, if any: by idempotency key, source, dedup key. */
static int find_existing(struct hf_ops *ops, const struct hf_row *row, size_t *ret_call,
                         struct hf_err *err)
{
    const struct hf_work *w = &row->w;
    hf_ops_reset(ops);
    size_t calls[3];
    size_t n = 0;
    if (w->idempotency_key) {
        calls[n++] = hf_ops_call(ops, HF_SQL_WORK_BY_IDEMPOTENCY, HF_ANY_COUNT);
        hf_ops_text(ops, w->tenant);
        hf_ops_text(ops, w->idempotency_key);
    }
    calls[n++] = hf_ops_call(ops, HF_SQL_WORK_BY_SOURCE, HF_ANY_COUNT);
    hf_ops_text(ops, w->tenant);
    hf_ops_text(ops, w->source_system);
    hf_ops_text(ops, w->source_id);
    hf_ops_text(ops, w->source_run_id ? w->source_run_id : "");
    if (w->dedup_key) {
        calls[n++] = hf_ops_call(ops, HF_SQL_WORK_BY_DEDUP, HF_ANY_COUNT);
        hf_ops_text(ops, w->tenant);
        hf_ops_text(ops, w->dedup_key);
    }
    int rc = hf_ops_read(ops, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (hf_ops_result(ops, calls[i])->out_count > 0) {
            *ret_call = calls[i];
            return 0;
        }
    }
    return rc ? rc : HF_ENOTFOUND;
}

static int conflict(struct hf_err *err, const struct hf_call *call)
{
    bool by_key = call->statement == HF_SQL_WORK_BY_IDEMPOTENCY;
    return hf_fail(err, HF_ECONFLICT, by_key ? "idempotency_key" : "source_id",
                   "the same %s was used earlier with other content (unit %s)",
                   by_key ? "idempotency key" : "source id and run id",
                   hf_row_id(call, 0));
}

/* Answers a request that made no row: with the row that is in its way, or with a conflict on its
 * item. HF_ENOTFOUND: no row is in the way now, as it was pruned; nothing is answered. */
static int answer_existing(struct sql_store *store, struct maker *maker, bool brief,
                           struct hf_answer *answer, struct hf_item *item)
{
    struct hf_err why;
    struct hf_ops ops;
    size_t at;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    int rc = find_existing(&ops, &maker->row, &at, &why);
    if (rc == 0) {
        const struct hf_call *call = hf_ops_result(&ops, at);
        const struct hf_val *hash = hf_out(call, 0, HF_COL_WORK_BY_SOURCE_REQUEST_HASH);
        bool same = hash->type == HF_VAL_BYTES && hash->len == 32 &&
                    memcmp(hash->at, maker->hash, 32) == 0;
        struct hf_row row;
        if (!same && call->statement != HF_SQL_WORK_BY_DEDUP) {
            (void)conflict(&why, call);
            rc = hf_item_fail(answer, item, &why);
        } else {
            rc = hf_row_read(call, 0, &row, &why);
            if (rc == 0)
                rc = hf_item_show(answer, item, &row, brief);
        }
        if (rc == 0)
            maker->answered = true;
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Did this id become a row? */
static bool was_made(const struct hf_call *read_back, const char *id, size_t *ret_row)
{
    for (size_t i = 0; i < read_back->out_count; i++) {
        if (hf_same(hf_row_id(read_back, i), id)) {
            *ret_row = i;
            return true;
        }
    }
    return false;
}

static bool goes_now(const struct maker *maker)
{
    return !maker->answered && !maker->held;
}

/* One call that reads back every row just made. */
static size_t add_read_back(struct hf_ops *ops, const struct maker *makers, size_t n)
{
    size_t call = hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (!goes_now(&makers[i]))
            continue;
        if (!first)
            hf_ops_again(ops);
        hf_ops_text(ops, makers[i].row.w.work_id);
        first = false;
    }
    return call;
}

struct creation {
    struct sql_store *store;
    const struct hf_caller *who;
    struct maker *makers;
    size_t n;
    unsigned flags;
    struct hf_answer *answer;
    struct hf_item **items;
    bool noted; /* the operation's receipt is in the store, and need not be written */
    bool
        one_by_one; /* some key exists: one statement per row, so that the others are made */
    bool rated;     /* some limit has a rate */
    bool placed;    /* rows were given places of their limits (hf_gates_admit) */
    bool unplaced; /* not again: not all of them came to be made */
    const struct sql_beside *beside;
};

static void add_calls(struct creation *c, struct hf_ops *ops)
{
    struct hf_making *makings = hf_arena_array(&ops->arena, c->n, sizeof *makings);
    size_t count = 0;
    bool limited = false;
    for (size_t i = 0; makings && i < c->n; i++) {
        const struct maker *maker = &c->makers[i];
        if (!goes_now(maker))
            continue;
        makings[count++] = (struct hf_making){ .row = &maker->row, .hash = maker->hash };
        limited |= maker->row.w.limit_name != NULL;
        if (maker->row.status == HF_STATUS_QUEUED)
            hf_ops_ring_queue(ops, maker->row.w.queue, 1);
    }
    if (!makings)
        ops->state = HF_ENOMEM;
    c->placed = makings && limited && !c->rated && !c->one_by_one && !c->unplaced;
    if (c->placed)
        hf_gates_admit(ops, makings, count);
    if (c->one_by_one)
        hf_rows_insert(ops, makings, count);
    else
        hf_rows_insert_many(ops, makings, count);
    hf_gates_grant(ops);
    if ((c->flags & HF_ALL_OR_NONE) || c->placed)
        hf_rows_expect_all(ops);
}

static bool brief(const struct creation *c)
{
    return (c->flags & HF_BRIEF) != 0;
}

/* All rows were made and no caller wants to see them: no reading back. */
static int answer_all_made(struct creation *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!goes_now(&c->makers[i]))
            continue;
        c->items[i]->created = true;
        if (hf_item_show(c->answer, c->items[i], &c->makers[i].row, true))
            return HF_ENOMEM;
        c->makers[i].answered = true;
    }
    return 0;
}

static int answer_made(struct creation *c, const struct hf_call *read_back,
                       struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at;
        struct hf_row row;
        if (c->makers[i].answered ||
            !was_made(read_back, c->makers[i].row.w.work_id, &at))
            continue;
        int rc = hf_row_read(read_back, at, &row, err);
        if (rc == 0 && (hf_item_show(c->answer, c->items[i], &row, brief(c)) ||
                        (row.claim_group && /* taken in the same transaction */
                         sql_item_token(c->answer, c->items[i], &row))))
            rc = hf_fail_plain(err, HF_ENOMEM);
        if (rc)
            return rc;
        c->items[i]->created = true;
        c->makers[i].answered = true;
    }
    return 0;
}

/* Requests that made no row. Under HF_ALL_OR_NONE a conflict ends the call. */
static int answer_rest(struct creation *c, struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->makers[i].answered)
            continue;
        int rc = answer_existing(c->store, &c->makers[i], brief(c), c->answer,
                                 c->items[i]);
        if (rc == HF_ENOTFOUND)
            continue; /* made again in the next round */
        if (rc)
            return hf_fail_plain(err, rc);
        if (c->items[i]->code && (c->flags & HF_ALL_OR_NONE))
            return hf_fail(err, c->items[i]->code, c->items[i]->field, "%s",
                           c->items[i]->message);
    }
    return 0;
}

static size_t open_count(const struct creation *c)
{
    size_t open = 0;
    for (size_t i = 0; i < c->n; i++)
        open += !c->makers[i].answered;
    return open;
}

static bool same_key(const char *a, const char *b)
{
    return a && hf_same(a, b);
}

/* In a batch that is made whole a unit may be named twice; the second waits for the first. Two
 * requests for one unit with different content refuse the batch. */
static int hold_repeats(struct creation *c, struct hf_err *err)
{
    for (size_t k = 1; k < c->n; k++) {
        struct maker *later = &c->makers[k];
        const struct hf_work *b = &later->row.w;
        for (size_t i = 0; i < k && !later->answered && !later->held; i++) {
            const struct maker *first = &c->makers[i];
            const struct hf_work *a = &first->row.w;
            bool unit = same_key(a->idempotency_key, b->idempotency_key) ||
                        (first->row.source == later->row.source &&
                         hf_same(a->source_id, b->source_id) &&
                         hf_same(a->source_run_id, b->source_run_id));
            if (first->answered || first->held)
                continue;
            if (unit && memcmp(first->hash, later->hash, sizeof first->hash) != 0)
                return hf_fail(
                    err, HF_ECONFLICT, "source_id",
                    "items %zu and %zu request one unit with different content", i, k);
            later->held = unit || same_key(a->dedup_key, b->dedup_key);
        }
    }
    return 0;
}

/* Some row was not made, so none was: find out which, and why. */
static int sort_out(struct creation *c, struct hf_err *err)
{
    size_t open = open_count(c);
    int rc = answer_rest(c, err);
    if (rc == 0 && open_count(c) == open)
        rc = hold_repeats(c, err);
    return rc;
}

/* ---- operation ids ----------------------------------------------------------------- */

static int content_hash(const struct creation *c, uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, SCOPE, 1);
    for (size_t i = 0; i < c->n; i++)
        hf_digest_bytes(&digest, c->makers[i].hash, sizeof c->makers[i].hash);
    return hf_digest_end(&digest, ret_hash);
}

/* Its rows are found by their keys, so there is no result to keep. */
static void add_receipt(struct creation *c, struct hf_ops *ops)
{
    uint8_t hash[HF_DIGEST_BYTES];
    if (!c->who->operation_id || c->noted)
        return;
    if (content_hash(c, hash))
        ops->state = HF_ENOMEM;
    else
        sql_receipt_add(ops, c->who, SCOPE, hash, NULL);
}

/* 0, or 1 if the same operation was applied before; with other content a conflict. */
static int applied_before(struct creation *c, struct hf_err *err)
{
    uint8_t hash[HF_DIGEST_BYTES];
    const char *result;
    if (!c->who->operation_id || c->noted)
        return 0;
    if (content_hash(c, hash))
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = sql_receipt_find(&ops, c->who, SCOPE, hash, &result, err);
    hf_ops_fini(&ops);
    return rc;
}

/* The call made no row, but its id is used up all the same. */
static int note_alone(struct creation *c, struct hf_ops *ops, struct hf_err *err)
{
    if (!c->who->operation_id || c->noted)
        return 0;
    hf_ops_reset(ops);
    add_receipt(c, ops);
    int rc = hf_ops_write(ops, err);
    return rc == HF_ECONFLICT ? 0 : rc; /* noted at the same moment */
}

/* An earlier call with this operation id was applied, and its receipt is in the store: nothing is
 * made. Every request is answered with its row as it is now, marked as repeated; one whose row was
 * pruned since gets an error on its item. */
static int answer_repeated(struct creation *c, struct hf_err *err)
{
    c->noted = true;
    for (size_t i = 0; i < c->n; i++) {
        c->items[i]->repeated = true;
        int rc = answer_existing(c->store, &c->makers[i], brief(c), c->answer,
                                 c->items[i]);
        if (rc == HF_ENOTFOUND) {
            struct hf_err why;
            (void)hf_fail(&why, rc, "operation_id",
                          "this operation was applied, and its unit was pruned later");
            rc = hf_item_fail(c->answer, c->items[i], &why);
        }
        if (rc)
            return hf_fail_plain(err, rc);
        c->makers[i].answered = true;
    }
    return 0;
}

/* A row with this dedup key, made meanwhile, is seen by the index alone. */
static bool any_dedup(const struct creation *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (goes_now(&c->makers[i]) && c->makers[i].row.w.dedup_key)
            return true;
    return false;
}

/* One transaction for all requests that are open and not held back, and their answers. 0 with
 * requests still open means: again, in the other way that was noted in `c`. */
static int round_trip(struct creation *c, struct hf_ops *ops, struct hf_err *err)
{
    size_t open = 0;
    for (size_t i = 0; i < c->n; i++)
        open += goes_now(&c->makers[i]);
    bool whole = (c->flags & HF_ALL_OR_NONE) != 0;
    hf_ops_reset(ops);
    add_calls(c, ops);
    int rc = 0;
    for (size_t i = 0; c->beside && rc == 0 && i < c->n; i++)
        if (goes_now(&c->makers[i]))
            rc = c->beside->add(c->beside->user, ops, c->makers[i].row.w.work_id, err);
    if (rc)
        return rc;
    size_t receipt = ops->batch.call_count;
    add_receipt(c, ops);
    size_t read_back = brief(c) ? SIZE_MAX : add_read_back(ops, c->makers, c->n);
    rc = hf_ops_write(ops, err);
    if (rc == HF_ECONFLICT && c->who->operation_id && ops->batch.failed_call == receipt)
        return 0; /* the same operation at the same moment: look again */
    if (rc == HF_EGUARD && c->placed && !whole) {
        c->unplaced = true;
        return 0;
    }
    if (rc == HF_EGUARD || (rc == HF_ECONFLICT && whole))
        return sort_out(c, err);
    if (rc == HF_ECONFLICT && open > 1 && !c->one_by_one) {
        c->one_by_one = true;
        return 0;
    }
    if (rc == HF_ECONFLICT && any_dedup(c))
        return answer_rest(c, err); /* a caller made that row at the same moment */
    if (rc)
        return rc;
    c->noted = true;
    if (read_back != SIZE_MAX) {
        rc = answer_made(c, hf_ops_result(ops, read_back), err);
    } else if (hf_rows_inserted(ops) == (int64_t)open) {
        rc = answer_all_made(c) ? hf_fail_plain(err, HF_ENOMEM) : 0;
    } else {
        hf_ops_reset(ops);
        read_back = add_read_back(ops, c->makers, c->n);
        rc = hf_ops_read(ops, err);
        if (rc == 0)
            rc = answer_made(c, hf_ops_result(ops, read_back), err);
    }
    if (rc == 0)
        rc = answer_rest(c, err);
    for (size_t i = 0; i < c->n; i++)
        c->makers[i].held = false; /* what they waited for is made */
    return sql_answered(rc, err);
}

static int prepare_all(struct creation *c, struct hf_arena *arena,
                       const struct hf_caller *who, const struct hf_work_spec *news,
                       struct hf_err *err)
{
    struct hf_env env;
    struct hf_note_kept kept = { .text = NULL };
    int rc = sql_limits_rated(c->store, &c->rated,
                              err); /* and the store's clock is known */
    if (rc == 0)
        rc = creation_env(c->store, who, &env, err);
    env.kept = &kept;
    c->makers = hf_arena_room(arena, c->n,
                              sizeof *c->makers); /* large, and filled below */
    c->items = hf_arena_array(arena, c->n, sizeof(struct hf_item *));
    if (rc == 0 && (!c->makers || !c->items))
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        c->makers[i].answered = c->makers[i].held = false;
        c->items[i] = hf_answer_add(c->answer);
        rc = c->items[i] ? sql_make_row(c->store, arena, who, &env, &news[i],
                                        &c->makers[i].row, c->makers[i].hash, err)
                         : hf_fail_plain(err, HF_ENOMEM);
        if (rc == 0 && c->beside)
            rc = mix_in(&c->makers[i], c->beside, err);
    }
    return rc;
}

static int create_all(struct hf_store *handle, const struct hf_work_spec *news,
                      const struct creation *wanted, struct hf_err *err)
{
    struct creation c = *wanted;
    const struct hf_caller *who = c.who;
    struct hf_arena arena;
    struct hf_ops ops;
    hf_arena_init(&arena, handle->alloc);
    hf_ops_init(&ops, c.store->sql, handle->alloc);
    int rc = prepare_all(&c, &arena, who, news, err);
    for (int i = 0; rc == 0 && open_count(&c) > 0; i++) {
        rc = i < HF_TRIES ? applied_before(&c, err) : hf_fail_plain(err, HF_EBUSY);
        if (rc == 1)
            rc = answer_repeated(&c, err);
        else if (rc == 0)
            rc = round_trip(&c, &ops, err);
    }
    if (rc == 0)
        rc = note_alone(&c, &ops, err);
    hf_ops_fini(&ops);
    hf_arena_fini(&arena);
    return rc;
}

int sql_create(struct hf_store *handle, const struct hf_caller *who,
               const struct hf_work_spec *news, size_t n, unsigned flags,
               struct hf_answer *ret_answer, struct hf_err *err)
{
    struct creation c = { .store = sql_store_of(handle),
                          .who = who,
                          .n = n,
                          .flags = flags,
                          .answer = ret_answer };
    return create_all(handle, news, &c, err);
}

int sql_create_with(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_work_spec *request, const struct sql_beside *beside,
                    struct hf_answer *ret_answer, struct hf_err *err)
{
    struct creation c = { .store = sql_store_of(handle),
                          .who = who,
                          .n = 1,
                          .flags = HF_ALL_OR_NONE,
                          .answer = ret_answer,
                          .beside = beside };
    return create_all(handle, request, &c, err);
}
