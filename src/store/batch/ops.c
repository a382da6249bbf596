/* Building a batch: a verb appends calls of statements with their arguments (hf_ops_call,
 * hf_ops_text), and the batch runs as one transaction (hf_ops_write) or on one snapshot
 * (hf_ops_read). A failed append sticks, and the run reports it. */
#include "store/batch/ops.h"

#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "db/batch.h"
#include "store/batch/gates.h"
#include "store/batch/plan.h"

/* Of one unit, in one process. */
#define WAITERS_MOST 1024

/* The one place that asks for the engine's name. A driver that wraps another has its name. */
const struct hf_plan *hf_plan_of(const struct hf_sql *sql)
{
    return hf_same(sql->methods->name, "sqlite") ? &hf_plan_lite : &hf_plan_pg;
}

void hf_ops_init(struct hf_ops *ops, struct hf_sql *sql, const struct hf_alloc *alloc)
{
    *ops = (struct hf_ops){ .sql = sql, .plan = hf_plan_of(sql) };
    hf_arena_init(&ops->arena, alloc);
    ops->batch.alloc = alloc;
}

void hf_ops_fini(struct hf_ops *ops)
{
    ops->sql->methods->forget(ops->sql, &ops->batch);
    hf_arena_fini(&ops->arena);
}

void hf_ops_reset(struct hf_ops *ops)
{
    ops->sql->methods->forget(ops->sql, &ops->batch);
    hf_arena_reset(&ops->arena);
    const struct hf_alloc *alloc = ops->batch.alloc;
    ops->batch = (struct hf_batch){ .alloc = alloc };
    ops->args = NULL;
    ops->call_room = ops->arg_room = ops->arg_count = ops->ring_room = 0;
    ops->gates = NULL;
    ops->gate_count = ops->gate_room = 0;
    ops->state = 0;
}

/* A larger array in the arena; the old copy stays until the arena goes. */
static void *grow_to(struct hf_ops *ops, void *old, size_t each, size_t *room,
                     size_t more)
{
    void *bigger = hf_arena_room(&ops->arena, more, each);
    if (!bigger) {
        ops->state = HF_ENOMEM;
        return NULL;
    }
    if (old)
        memcpy(bigger, old, *room * each);
    *room = more;
    return bigger;
}

void *hf_ops_grow(struct hf_ops *ops, void *old, size_t each, size_t *room)
{
    return grow_to(ops, old, each, room, *room ? *room * 2 : 16);
}

void hf_ops_reserve(struct hf_ops *ops, size_t args)
{
    size_t need = ops->arg_count + args;
    struct hf_val *bigger = NULL;
    if (!ops->state && need > ops->arg_room)
        bigger = grow_to(ops, ops->args, sizeof(struct hf_val), &ops->arg_room, need);
    if (bigger)
        ops->args = bigger;
}

size_t hf_ops_call(struct hf_ops *ops, enum hf_sql_id statement, int64_t expect)
{
    struct hf_batch *batch = &ops->batch;
    if (!ops->state && batch->call_count == ops->call_room) {
        struct hf_call *calls = hf_ops_grow(ops, batch->calls, sizeof(struct hf_call),
                                            &ops->call_room);
        if (calls)
            batch->calls = calls;
    }
    if (ops->state)
        return 0;
    batch->calls[batch->call_count] =
        (struct hf_call){ .statement = (int)statement, .rows = 1, .expect = expect };
    return batch->call_count++;
}

static struct hf_call *last_call(struct hf_ops *ops)
{
    hf_assert(ops->batch.call_count > 0);
    return &ops->batch.calls[ops->batch.call_count - 1];
}

void hf_ops_bytes_max(struct hf_ops *ops, size_t bytes)
{
    if (!ops->state)
        last_call(ops)->bytes_max = bytes;
}

void hf_ops_sets(struct hf_ops *ops)
{
    if (ops->state)
        return;
    struct hf_call *call = last_call(ops);
    call->once = call->width;
    call->width = 0;
}

void hf_ops_only_if(struct hf_ops *ops, size_t call)
{
    if (!ops->state)
        last_call(ops)->only_if = (uint32_t)call + 1;
}

int hf_ops_counted(const struct hf_ops *ops, struct hf_err *err)
{
    return ops->batch.lost ? hf_fail(err, HF_EUNCERTAIN, NULL,
                                     "it was done, but the answer was lost: the number "
                                     "of changed rows is not known")
                           : 0;
}

void hf_ops_again(struct hf_ops *ops)
{
    if (ops->state)
        return;
    last_call(ops)->rows++;
}

static void add(struct hf_ops *ops, struct hf_val value)
{
    if (!ops->state && ops->arg_count == ops->arg_room) {
        struct hf_val *args = hf_ops_grow(ops, ops->args, sizeof(struct hf_val),
                                          &ops->arg_room);
        if (args)
            ops->args = args;
    }
    if (ops->state)
        return;
    ops->args[ops->arg_count++] = value;
    struct hf_call *call = last_call(ops);
    if (call->rows == 1)
        call->width++;
}

void hf_ops_i64(struct hf_ops *ops, int64_t value)
{
    add(ops, (struct hf_val){ .type = HF_VAL_I64, .i = value });
}

void hf_ops_i64_opt(struct hf_ops *ops, int64_t value)
{
    if (value)
        hf_ops_i64(ops, value);
    else
        hf_ops_null(ops);
}

void hf_ops_text(struct hf_ops *ops, const char *text)
{
    if (text)
        add(ops, (struct hf_val){ .type = HF_VAL_TEXT, .at = text, .len = strlen(text) });
    else
        hf_ops_null(ops);
}

void hf_ops_bytes(struct hf_ops *ops, const void *bytes, size_t len)
{
    add(ops, (struct hf_val){ .type = HF_VAL_BYTES, .at = bytes, .len = len });
}

void hf_ops_null(struct hf_ops *ops)
{
    add(ops, (struct hf_val){ .type = HF_VAL_NULL });
}

uint32_t hf_topic_of_queue(const char *queue)
{
    return hf_crc32c(0, queue, strlen(queue));
}

uint32_t hf_topic_of_end(const char *work_id)
{
    static const char prefix[] = "ended:";
    return hf_crc32c(hf_crc32c(0, prefix, sizeof prefix - 1), work_id, strlen(work_id));
}

static void ring(struct hf_ops *ops, uint32_t topic, uint32_t count)
{
    struct hf_batch *batch = &ops->batch;
    for (size_t i = 0; i < batch->ring_count; i++) {
        if (batch->rings[i].topic == topic) {
            batch->rings[i].count += count;
            return;
        }
    }
    if (!ops->state && batch->ring_count == ops->ring_room) {
        struct hf_ring *rings = hf_ops_grow(ops, batch->rings, sizeof(struct hf_ring),
                                            &ops->ring_room);
        if (rings)
            batch->rings = rings;
    }
    if (!ops->state)
        batch->rings[batch->ring_count++] = (struct hf_ring){ topic, count };
}

void hf_ops_ring_queue(struct hf_ops *ops, const char *queue, uint32_t count)
{
    ring(ops, hf_topic_of_queue(queue), count);
}

void hf_ops_ring_ended(struct hf_ops *ops, const char *work_id)
{
    ring(ops, hf_topic_of_end(work_id), WAITERS_MOST);
}

static int run(struct hf_ops *ops, bool read_only, struct hf_err *err)
{
    if (ops->state)
        return hf_fail_plain(err, ops->state);
    size_t at = 0;
    for (size_t i = 0; i < ops->batch.call_count; i++) {
        struct hf_call *call = &ops->batch.calls[i];
        call->args = call->once + call->width ? &ops->args[at] : NULL;
        at += call->once + (size_t)call->rows * call->width;
    }
    hf_assert(at == ops->arg_count);
    ops->batch.read_only = read_only;
    return ops->sql->methods->run(ops->sql, &ops->batch, err);
}

int hf_ops_write(struct hf_ops *ops, struct hf_err *err)
{
    hf_gates_grant(ops);
    int rc = run(ops, false, err);
    if (rc == 0)
        hf_gates_ring(ops);
    return rc;
}

int hf_ops_read(struct hf_ops *ops, struct hf_err *err)
{
    return run(ops, true, err);
}

const struct hf_call *hf_ops_result(const struct hf_ops *ops, size_t call)
{
    hf_assert(call < ops->batch.call_count);
    return &ops->batch.calls[call];
}

const struct hf_val *hf_out(const struct hf_call *call, size_t row, size_t column)
{
    hf_assert(row < call->out_count && column < call->out_width);
    return &call->out[row * call->out_width + column];
}

int64_t hf_out_i64(const struct hf_call *call, size_t row, size_t column)
{
    const struct hf_val *cell = hf_out(call, row, column);
    return cell->type == HF_VAL_I64 ? cell->i : 0;
}

const char *hf_out_text(const struct hf_call *call, size_t row, size_t column)
{
    const struct hf_val *cell = hf_out(call, row, column);
    return cell->type == HF_VAL_TEXT ? cell->at : NULL;
}
