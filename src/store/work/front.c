#include "store/work/front.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/store.h"

static hf_ms mono_ms(const struct sql_store *store)
{
    return store->base.clock->mono_ms(store->base.clock->user);
}

/* Under the lock: the queue's, or the one whose next look is the longest ago. */
static struct sql_front *front_of(struct sql_store *store, const char *queue)
{
    struct sql_front *oldest = &store->fronts[0];
    for (size_t i = 0; i < FRONT_QUEUES; i++) {
        if (hf_same(store->fronts[i].queue, queue))
            return &store->fronts[i];
        if (store->fronts[i].look_at < oldest->look_at)
            oldest = &store->fronts[i];
    }
    return oldest;
}

void sql_march_begin(struct sql_store *store, const char *queue, bool from_start,
                     struct sql_march *ret_march)
{
    struct sql_march march = { .began_at = mono_ms(store) };
    if (store->plan->claims[0].from_key == HF_SQL_NONE || !queue[0] ||
        strlen(queue) >= sizeof(march.from.queue)) {
        *ret_march = march;
        return;
    }
    hf_lock(&store->lock);
    const struct sql_front *front = front_of(store, queue);
    bool known = hf_same(front->queue, queue);
    march.looks = from_start || !known || march.began_at >= front->look_at;
    if (!march.looks)
        march.from = *front;
    hf_unlock(&store->lock);
    memcpy(march.from.queue, queue, strlen(queue) + 1);
    *ret_march = march;
}

static int64_t walked(const struct sql_march *march, const struct hf_ops *ops,
                      size_t column)
{
    return hf_cell_i64(hf_ops_result(ops, march->reads_after), 0, column) -
           hf_cell_i64(hf_ops_result(ops, march->reads_before), 0, column);
}

static void judge(struct sql_front *front, const struct sql_march *march,
                  const struct hf_ops *ops, hf_ms now)
{
    hf_ms took = now - march->began_at;
    hf_ms rest = took * FRONT_PATIENCE;
    front->worn = walked(march, ops, HF_COL_CLAIM_READS_QUEUES) > FRONT_WORN;
    front->leases_worn = walked(march, ops, HF_COL_CLAIM_READS_TIMERS) > FRONT_WORN;
    front->look_at = now + (rest > FRONT_LOOK_MS ? rest : FRONT_LOOK_MS);
}

void sql_march_end(struct sql_store *store, const struct sql_march *march,
                   const struct hf_ops *ops, const struct hf_call *rows, bool attention)
{
    struct sql_front front = march->from;
    struct hf_row last;
    if (!front.queue[0])
        return;
    if (march->looks)
        judge(&front, march, ops, mono_ms(store));
    front.long_way |= march->missed && rows->out_count > 0;
    if (!attention) {
        front.leases_seen = ops->batch.lease_now;
        front.wakes_seen = ops->batch.now;
    }
    if (rows->out_count && hf_row_read(rows, rows->out_count - 1, &last, NULL) == 0 &&
        (march->looks || last.w.priority >= front.priority)) {
        front.priority = last.w.priority;
        front.fair_tag = last.fair_tag;
        front.seq = last.seq;
    }
    hf_lock(&store->lock);
    *front_of(store, front.queue) = front;
    hf_unlock(&store->lock);
}
