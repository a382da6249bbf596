/* Units that are claimable for long and that no worker claims. A queue and a kind count as
 * served while such a unit runs, or was claimed within the last events. */
#include "base/err.h"
#include "base/text.h"
#include "store/watch/watch.h"

#define QUEUES 1000
#define FRONT_ROWS 1000 /* of a queue that are looked at */
#define LAST_EVENTS 20000

/* Each result of `fronts` is the front of the queue of the same row of `queues`. */
struct fronts {
    struct watch_look *look;
    struct hf_ops queues;
    struct hf_ops fronts;
    struct hf_ops served; /* queue and kind, of one or two calls */
};

static int read_fronts(struct fronts *f)
{
    hf_ops_call(&f->queues, HF_SQL_SEEN_QUEUES, HF_ANY_COUNT);
    hf_ops_i64(&f->queues, QUEUES);
    int rc = hf_ops_read(&f->queues, f->look->err);
    size_t count = rc == 0 ? hf_ops_result(&f->queues, 0)->out_count : 0;
    for (size_t i = 0; i < count; i++) {
        hf_ops_call(&f->fronts, HF_SQL_SEEN_FRONT, HF_ANY_COUNT);
        hf_ops_text(&f->fronts, hf_out_text(hf_ops_result(&f->queues, 0), i, 0));
        hf_ops_text(&f->fronts, f->look->tenant);
        hf_ops_i64(&f->fronts, FRONT_ROWS);
        hf_ops_i64(&f->fronts, f->look->asked->unserved_ms);
    }
    return rc || count == 0 ? rc : hf_ops_read(&f->fronts, f->look->err);
}

static bool is_served(const struct fronts *f, const char *queue, const char *kind)
{
    for (size_t c = 0; c < f->served.batch.call_count; c++) {
        const struct hf_call *rows = hf_ops_result(&f->served, c);
        for (size_t i = 0; i < rows->out_count; i++)
            if (hf_same(queue, hf_out_text(rows, i, HF_COL_SEEN_RUNNING_QUEUE)) &&
                hf_same(kind, hf_out_text(rows, i, HF_COL_SEEN_RUNNING_KIND)))
                return true;
    }
    return false;
}

/* Counts what is not served, and shows it if asked. */
static int go_through(struct fronts *f, bool show, size_t *ret_count)
{
    size_t count = 0;
    int rc = 0;
    for (size_t q = 0; rc == 0 && q < f->fronts.batch.call_count; q++) {
        const struct hf_call *rows = hf_ops_result(&f->fronts, q);
        const char *queue = hf_out_text(hf_ops_result(&f->queues, 0), q, 0);
        for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
            const struct hf_look_row seen = {
                .id = queue,
                .tenant = hf_out_text(rows, i, HF_COL_SEEN_FRONT_TENANT),
                .kind = hf_out_text(rows, i, HF_COL_SEEN_FRONT_KIND),
                .since = hf_out_i64(rows, i, HF_COL_SEEN_FRONT_SINCE),
                .count = hf_out_i64(rows, i, HF_COL_SEEN_FRONT_UNITS),
            };
            if (is_served(f, queue, seen.kind))
                continue;
            count++;
            rc = show ? watch_show(f->look, &seen) : 0;
        }
    }
    *ret_count = count;
    return rc;
}

/* What runs is cheap to read; the last events are read only if something is left over. */
static int go_on(struct fronts *f)
{
    size_t left = 0;
    int rc = go_through(f, false, &left);
    if (rc || left == 0)
        return rc;
    hf_ops_call(&f->served, HF_SQL_SEEN_RUNNING, HF_ANY_COUNT);
    rc = hf_ops_read(&f->served, f->look->err);
    if (rc == 0)
        rc = go_through(f, false, &left);
    if (rc || left == 0)
        return rc;
    hf_ops_reset(&f->served);
    hf_ops_call(&f->served, HF_SQL_SEEN_RUNNING, HF_ANY_COUNT);
    hf_ops_call(&f->served, HF_SQL_SEEN_CLAIMED, HF_ANY_COUNT);
    hf_ops_i64(&f->served, LAST_EVENTS);
    rc = hf_ops_read(&f->served, f->look->err);
    return rc ? rc : go_through(f, true, &left);
}

int watch_unserved(struct watch_look *look)
{
    struct fronts f = { .look = look };
    struct hf_sql *sql = sql_store_of(look->handle)->sql;
    hf_ops_init(&f.queues, sql, look->handle->alloc);
    hf_ops_init(&f.fronts, sql, look->handle->alloc);
    hf_ops_init(&f.served, sql, look->handle->alloc);
    int rc = read_fronts(&f);
    if (rc == 0)
        rc = go_on(&f);
    hf_ops_fini(&f.served);
    hf_ops_fini(&f.fronts);
    hf_ops_fini(&f.queues);
    return rc;
}
