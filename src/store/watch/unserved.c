/* Units that are claimable for long and that no worker claims, and sessions that are ready for long
 * and that no worker takes. A queue and a kind count as served while such a unit runs, or was
 * claimed within the last events; an agent does while a lease on one of its sessions holds, or a
 * session of it was claimed within them.
 *
 * At most HF_LOOK_BOUND units are looked at, the most urgent ones of each queue; whether there are
 * more is said (cut). */
#include "base/err.h"
#include "base/text.h"
#include "store/watch/watch.h"

#define QUEUES 1000
#define LAST_EVENTS 20000

/* Units by queue, tenant and kind: of all queues by one statement, or by one per queue. */
struct fronts {
    struct watch_look *look;
    struct hf_ops fronts;
    struct hf_ops served; /* queue and kind, of one or two calls */
};

static void ask_front(struct fronts *f, enum hf_sql_id statement, int64_t rows)
{
    hf_ops_call(&f->fronts, statement, HF_ANY_COUNT);
    hf_ops_text(&f->fronts, f->look->tenant);
    hf_ops_i64(&f->fronts, rows);
    hf_ops_i64(&f->fronts, f->look->asked->unserved_ms);
}

static int64_t units_in(const struct hf_call *rows)
{
    int64_t units = 0;
    for (size_t i = 0; i < rows->out_count; i++)
        units += hf_out_i64(rows, i, HF_COL_SEEN_CLAIMABLE_UNITS);
    return units;
}

/* There are more claimable units than are looked at: each queue gets an equal share. */
static int read_shares(struct fronts *f)
{
    struct hf_ops queues;
    hf_ops_init(&queues, sql_store_of(f->look->handle)->sql, f->look->handle->alloc);
    hf_ops_call(&queues, HF_SQL_SEEN_QUEUES, HF_ANY_COUNT);
    hf_ops_i64(&queues, QUEUES);
    int rc = hf_ops_read(&queues, f->look->err);
    size_t count = rc == 0 ? hf_ops_result(&queues, 0)->out_count : 0;
    hf_ops_reset(&f->fronts);
    for (size_t i = 0; i < count; i++) {
        ask_front(f, HF_SQL_SEEN_FRONT, HF_LOOK_BOUND / (int64_t)count);
        hf_ops_text(&f->fronts, hf_out_text(hf_ops_result(&queues, 0), i, 0));
    }
    if (rc == 0 && count > 0)
        rc = hf_ops_read(&f->fronts, f->look->err);
    hf_ops_fini(&queues);
    return rc;
}

static int read_fronts(struct fronts *f)
{
    ask_front(f, HF_SQL_SEEN_CLAIMABLE, HF_LOOK_BOUND + 1);
    int rc = hf_ops_read(&f->fronts, f->look->err);
    if (rc || units_in(hf_ops_result(&f->fronts, 0)) <= HF_LOOK_BOUND)
        return rc;
    f->look->found.cut = true;
    return read_shares(f);
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

/* Counts what is late and not served, and shows it if asked. */
static int go_through(struct fronts *f, bool show, size_t *ret_count)
{
    size_t count = 0;
    int rc = 0;
    for (size_t q = 0; rc == 0 && q < f->fronts.batch.call_count; q++) {
        const struct hf_call *rows = hf_ops_result(&f->fronts, q);
        for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
            const struct hf_look_row seen = {
                .id = hf_out_text(rows, i, HF_COL_SEEN_CLAIMABLE_QUEUE),
                .tenant = hf_out_text(rows, i, HF_COL_SEEN_CLAIMABLE_TENANT),
                .kind = hf_out_text(rows, i, HF_COL_SEEN_CLAIMABLE_KIND),
                .since = hf_out_i64(rows, i, HF_COL_SEEN_CLAIMABLE_SINCE),
                .count = hf_out_i64(rows, i, HF_COL_SEEN_CLAIMABLE_UNITS),
            };
            if (!hf_out_i64(rows, i, HF_COL_SEEN_CLAIMABLE_LATE) ||
                is_served(f, seen.id, seen.kind))
                continue;
            count++;
            rc = show ? watch_show(f->look, &f->look->found.units, &seen) : 0;
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

static int look_queues(struct watch_look *look)
{
    struct fronts f = { .look = look };
    struct hf_sql *sql = sql_store_of(look->handle)->sql;
    hf_ops_init(&f.fronts, sql, look->handle->alloc);
    hf_ops_init(&f.served, sql, look->handle->alloc);
    int rc = read_fronts(&f);
    if (rc == 0)
        rc = go_on(&f);
    hf_ops_fini(&f.served);
    hf_ops_fini(&f.fronts);
    return rc;
}

/* ---- sessions ------------------------------------------------------------------------------ */

static bool is_taken(const struct hf_call *taken, const char *agent)
{
    for (size_t i = 0; i < taken->out_count; i++)
        if (hf_same(agent, hf_out_text(taken, i, HF_COL_SEEN_TAKEN_AGENT)))
            return true;
    return false;
}

static int show_agents(struct watch_look *look, const struct hf_call *ready,
                       const struct hf_call *taken)
{
    int64_t sessions = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ready->out_count; i++) {
        const struct hf_look_row seen = {
            .id = hf_out_text(ready, i, HF_COL_SEEN_READY_AGENT),
            .tenant = hf_out_text(ready, i, HF_COL_SEEN_READY_TENANT),
            .since = hf_out_i64(ready, i, HF_COL_SEEN_READY_SINCE),
            .count = hf_out_i64(ready, i, HF_COL_SEEN_READY_SESSIONS),
        };
        sessions += seen.count;
        if (!is_taken(taken, seen.id))
            rc = watch_show(look, &look->found.others, &seen);
    }
    look->found.cut = look->found.cut || sessions >= HF_LOOK_BOUND;
    return rc;
}

static int look_agents(struct watch_look *look)
{
    struct hf_ops ready, taken;
    struct hf_sql *sql = sql_store_of(look->handle)->sql;
    hf_ops_init(&ready, sql, look->handle->alloc);
    hf_ops_init(&taken, sql, look->handle->alloc);
    hf_ops_call(&ready, HF_SQL_SEEN_READY, HF_ANY_COUNT);
    hf_ops_text(&ready, look->tenant);
    hf_ops_i64(&ready, HF_LOOK_BOUND);
    hf_ops_i64(&ready, look->asked->unserved_ms);
    int rc = hf_ops_read(&ready, look->err);
    if (rc == 0 && hf_ops_result(&ready, 0)->out_count) {
        hf_ops_call(&taken, HF_SQL_SEEN_TAKEN, HF_ANY_COUNT);
        hf_ops_i64(&taken, LAST_EVENTS);
        rc = hf_ops_read(&taken, look->err);
        if (rc == 0)
            rc = show_agents(look, hf_ops_result(&ready, 0), hf_ops_result(&taken, 0));
    }
    hf_ops_fini(&taken);
    hf_ops_fini(&ready);
    return rc;
}

int watch_unserved(struct watch_look *look)
{
    int rc = look_queues(look);
    return rc ? rc : look_agents(look);
}
