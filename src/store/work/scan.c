/* Where the claims of a queue continue, on PostgreSQL (the reasons are in scan.h).
 *
 * A claim reads the queue's index from its start. While some transaction keeps an old snapshot,
 * that start is full of entries of rows that are gone, and each claim reads them all. So a store
 * handle remembers for up to SCAN_QUEUES queues where the last claim ended. Such a memory is a scan
 * start. It is `worn` if the last claim from the queue's start read many entries for nothing: only
 * then do claims begin at the remembered key. At `look_at` a claim begins at the queue's start
 * again, and decides anew whether it is worn. */
#include "store/work/scan.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/store.h"

static hf_ms mono_ms(const struct sql_store *store)
{
    return store->handle.clock->mono_ms(store->handle.clock->user);
}

/* The scan start of the queue, or, if there is none, the one to use for it: the one whose look_at
 * is the earliest. That one may be another queue's, so the caller compares `queue`. Under
 * store->lock. */
static struct sql_scan_start *find_start(struct sql_store *store, const char *queue)
{
    struct sql_scan_start *oldest = &store->scan_starts[0];
    for (size_t i = 0; i < SCAN_QUEUES; i++) {
        if (hf_same(store->scan_starts[i].queue, queue))
            return &store->scan_starts[i];
        if (store->scan_starts[i].look_at < oldest->look_at)
            oldest = &store->scan_starts[i];
    }
    return oldest;
}

void sql_scan_begin(struct sql_store *store, const char *queue, bool from_start,
                    struct sql_scan *ret_scan)
{
    struct sql_scan scan = { .began_at = mono_ms(store) };
    if (store->plan->claims[0].from_key == HF_SQL_NONE || !queue[0] ||
        strlen(queue) >= sizeof(scan.from.queue)) {
        *ret_scan = scan;
        return;
    }
    hf_lock(&store->lock);
    const struct sql_scan_start *start = find_start(store, queue);
    bool known = hf_same(start->queue, queue);
    scan.looks = from_start || !known || scan.began_at >= start->look_at;
    if (!scan.looks)
        scan.from = *start;
    hf_unlock(&store->lock);
    memcpy(scan.from.queue, queue, strlen(queue) + 1);
    *ret_scan = scan;
}

/* The index entries that the claim read without taking a row, by the server's counter before and
 * after it. */
static int64_t entries_walked(const struct sql_scan *scan, const struct hf_ops *ops,
                              size_t column)
{
    return hf_out_i64(hf_ops_result(ops, scan->reads_after), 0, column) -
           hf_out_i64(hf_ops_result(ops, scan->reads_before), 0, column);
}

/* After a look from the start. The next look comes after SCAN_PATIENCE times as long as this one
 * took, at least after SCAN_LOOK_MS. */
static void measure_wear(struct sql_scan_start *start, const struct sql_scan *scan,
                         const struct hf_ops *ops, hf_ms now)
{
    hf_ms took = now - scan->began_at;
    hf_ms rest = took * SCAN_PATIENCE;
    start->worn = entries_walked(scan, ops, HF_COL_CLAIM_READS_QUEUES) > SCAN_WORN;
    start->leases_worn = entries_walked(scan, ops, HF_COL_CLAIM_READS_TIMERS) > SCAN_WORN;
    start->look_at = now + (rest > SCAN_LOOK_MS ? rest : SCAN_LOOK_MS);
}

void sql_scan_end(struct sql_store *store, const struct sql_scan *scan,
                  const struct hf_ops *ops, const struct hf_call *rows, bool attention)
{
    struct sql_scan_start start = scan->from;
    struct hf_row last;
    if (!start.queue[0])
        return;
    if (scan->looks)
        measure_wear(&start, scan, ops, mono_ms(store));
    start.long_way |= scan->missed && rows->out_count > 0;
    if (!attention) {
        start.leases_seen = ops->batch.lease_now;
        start.wakes_seen = ops->batch.now;
    }
    if (rows->out_count && hf_row_read(rows, rows->out_count - 1, &last, NULL) == 0 &&
        (scan->looks || last.w.priority >= start.priority)) {
        start.priority = last.w.priority;
        start.fair_tag = last.fair_tag;
        start.seq = last.seq;
    }
    hf_lock(&store->lock);
    *find_start(store, start.queue) = start;
    hf_unlock(&store->lock);
}
