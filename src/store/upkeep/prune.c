/* Upkeep: pruning. */
#include "base/err.h"
#include "store/store.h"

#define PRUNE_CHUNK 200
#define RECEIPT_KEEP_MS (30LL * 24 * 3600 * 1000)
#define FAIR_KEEP_MS (24LL * 3600 * 1000)

static void for_each_seq(struct hf_ops *ops, const struct hf_call *picked,
                         enum hf_sql_id statement, hf_ms before)
{
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    for (size_t i = 0; i < picked->out_count; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_i64(ops, hf_out_i64(picked, i, HF_COL_PRUNE_PICK_SEQ));
        if (before)
            hf_ops_i64(ops, before);
    }
}

/* Which rows to look for, and what became of them. */
struct pruning {
    struct hf_store *handle;
    enum hf_sql_id pick;
    hf_ms older_than_ms;
    hf_ms now;     /* by the store's clock, which wrote when the rows finished */
    hf_ms before;  /* what finished earlier goes */
    int64_t after; /* the last row that was looked at */
    struct hf_prune_report report;
    int64_t rows;
};

static size_t drop_rows(struct pruning *p, struct hf_ops *drop,
                        const struct hf_call *picked)
{
    hf_ops_call(drop, HF_SQL_PRUNE_MARK, 1);
    hf_ops_call(drop, HF_SQL_PRUNE_OLD_MARKS, HF_ANY_COUNT);
    for_each_seq(drop, picked, HF_SQL_FEED_PRUNED, p->before);
    for_each_seq(drop, picked, HF_SQL_PRUNE_TOMBS, p->before);
    size_t events = drop->batch.call_count;
    for_each_seq(drop, picked, HF_SQL_PRUNE_EVENTS, p->before);
    for_each_seq(drop, picked, HF_SQL_PRUNE_STATE, p->before);
    for_each_seq(drop, picked, HF_SQL_PRUNE_OBSERVERS, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_PROCESS, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_OUTPUT, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_KEYS, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_SIGNALS, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_SCOPE_EFFECTS, 0);
    for_each_seq(drop, picked, HF_SQL_PRUNE_SPEC, 0);
    return events;
}

static void add_report(struct pruning *p, const struct hf_ops *drop, size_t events)
{
    p->rows = hf_ops_result(drop, events + 1)->changed;
    p->report.events += hf_ops_result(drop, events)->changed;
    p->report.grants += hf_ops_result(drop, events + 2)->changed;
    p->report.processes += hf_ops_result(drop, events + 3)->changed;
    p->report.chunks += hf_ops_result(drop, events + 4)->changed;
}

/* Rule 16. One chunk: rows, their events and their requests in one transaction. */
static int prune_chunk(struct pruning *p, size_t limit, struct hf_err *err)
{
    struct hf_ops pick, drop;
    p->rows = 0;
    hf_ops_init(&pick, sql_store_of(p->handle)->sql, p->handle->alloc);
    hf_ops_init(&drop, sql_store_of(p->handle)->sql, p->handle->alloc);
    hf_ops_call(&pick, p->pick, HF_ANY_COUNT);
    hf_ops_i64(&pick, p->older_than_ms);
    hf_ops_i64(&pick, p->after);
    hf_ops_i64(&pick, (int64_t)(limit < PRUNE_CHUNK ? limit : PRUNE_CHUNK));
    int rc = hf_ops_read(&pick, err);
    const struct hf_call *picked = rc == 0 ? hf_ops_result(&pick, 0) : NULL;
    p->now = pick.batch.now;
    p->before = p->now - p->older_than_ms;
    if (rc == 0 && picked->out_count > 0) {
        size_t events = drop_rows(p, &drop, picked);
        rc = hf_ops_write(&drop, err);
        if (rc == 0)
            rc = hf_ops_counted(&drop, err);
        if (rc == 0)
            add_report(p, &drop, events);
        p->after = hf_out_i64(picked, picked->out_count - 1, HF_COL_PRUNE_PICK_SEQ);
    }
    bool last = rc == 0 && picked->out_count == 0;
    hf_ops_fini(&drop);
    hf_ops_fini(&pick);
    return last ? HF_ENOTFOUND : rc;
}

/* Receipts, and occurrences, which are receipts of emissions, by an age of their own; what was
 * kept next to units that are gone, and records of skipped slots, as old as the rows. */
static int prune_beside(const struct pruning *p, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ms now = p->now;
    hf_ops_init(&ops, sql_store_of(p->handle)->sql, p->handle->alloc);
    hf_ops_call(&ops, HF_SQL_RECEIPT_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - RECEIPT_KEEP_MS);
    hf_ops_call(&ops, HF_SQL_LIMIT_PRUNE, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_FAIR_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - FAIR_KEEP_MS);
    hf_ops_call(&ops, HF_SQL_OCCURRENCE_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - RECEIPT_KEEP_MS);
    hf_ops_call(&ops, HF_SQL_TOMB_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - RECEIPT_KEEP_MS);
    static const enum hf_sql_id by_age[] = { HF_SQL_SCHEDULE_SKIP_PRUNE,
                                             HF_SQL_DELIVERY_PRUNE, HF_SQL_GRANT_PRUNE,
                                             HF_SQL_WAIT_PRUNE };
    for (size_t i = 0; i < sizeof by_age / sizeof by_age[0]; i++) {
        hf_ops_call(&ops, by_age[i], HF_ANY_COUNT);
        hf_ops_i64(&ops, p->before);
    }
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_prune(struct hf_store *handle, hf_ms older_than_ms, size_t limit,
              int64_t *ret_rows, struct hf_err *err)
{
    struct pruning p = { .handle = handle,
                         .pick = HF_SQL_PRUNE_PICK,
                         .older_than_ms = older_than_ms };
    int64_t total = 0;
    size_t left = limit ? limit : SIZE_MAX;
    int rc = 0;
    while (rc == 0 && left > 0) {
        rc = prune_chunk(&p, left, err);
        total += p.rows;
        left -= (size_t)p.rows < left ? (size_t)p.rows : left;
    }
    if (rc == HF_ENOTFOUND)
        rc = 0;
    if (rc == 0)
        rc = prune_beside(&p, err);
    if (rc == 0)
        *ret_rows = total;
    return rc;
}

int sql_process_prune(struct hf_store *handle, hf_ms older_than_ms,
                      struct hf_prune_report *ret_report, struct hf_err *err)
{
    struct pruning p = { .handle = handle,
                         .pick = HF_SQL_PRUNE_PICK_PROCESSES,
                         .older_than_ms = older_than_ms };
    int rc = 0;
    while (rc == 0)
        rc = prune_chunk(&p, SIZE_MAX, err);
    if (rc != HF_ENOTFOUND)
        return rc;
    *ret_report = p.report;
    return 0;
}
