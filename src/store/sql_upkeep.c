/* Upkeep: pruning. */
#include "base/err.h"
#include "store/sqlstore.h"

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
        hf_ops_i64(ops, hf_cell_i64(picked, i, 0));
        if (before)
            hf_ops_i64(ops, before);
    }
}

/* Rule 16. One chunk: rows, their events and their requests in one transaction. */
static int prune_chunk(struct hf_store *base, hf_ms before, size_t limit, int64_t *after,
                       int64_t *ret_rows, struct hf_err *err)
{
    struct hf_ops pick, drop;
    *ret_rows = 0;
    hf_ops_init(&pick, sql_store_of(base)->sql, base->alloc);
    hf_ops_init(&drop, sql_store_of(base)->sql, base->alloc);
    hf_ops_call(&pick, HF_SQL_PRUNE_PICK, HF_ANY_COUNT);
    hf_ops_i64(&pick, before);
    hf_ops_i64(&pick, *after);
    hf_ops_i64(&pick, (int64_t)(limit < PRUNE_CHUNK ? limit : PRUNE_CHUNK));
    int rc = hf_ops_read(&pick, err);
    const struct hf_call *picked = rc == 0 ? hf_ops_result(&pick, 0) : NULL;
    if (rc == 0 && picked->out_count > 0) {
        hf_ops_call(&drop, HF_SQL_PRUNE_MARK, 1);
        hf_ops_call(&drop, HF_SQL_PRUNE_OLD_MARKS, HF_ANY_COUNT);
        for_each_seq(&drop, picked, HF_SQL_FEED_PRUNED, before);
        for_each_seq(&drop, picked, HF_SQL_PRUNE_EVENTS, before);
        for_each_seq(&drop, picked, HF_SQL_PRUNE_STATE, before);
        for_each_seq(&drop, picked, HF_SQL_PRUNE_SPEC, 0);
        for_each_seq(&drop, picked, HF_SQL_PRUNE_OUTPUT, 0);
        for_each_seq(&drop, picked, HF_SQL_PRUNE_PROCESS, 0);
        rc = hf_ops_write(&drop, err);
    }
    if (rc == 0 && picked->out_count > 0) {
        *ret_rows = hf_ops_result(&drop, 4)->changed;
        *after = hf_cell_i64(picked, picked->out_count - 1, 0);
    }
    bool last = rc == 0 && picked->out_count == 0;
    hf_ops_fini(&drop);
    hf_ops_fini(&pick);
    return last ? HF_ENOTFOUND : rc;
}

/* Receipts, and occurrences, which are receipts of emissions, by an age of their own; what was
 * kept beside units that are gone, and records of skipped slots, as old as the rows. */
static int prune_beside(struct hf_store *base, hf_ms now, hf_ms before,
                        struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(base)->sql, base->alloc);
    hf_ops_call(&ops, HF_SQL_RECEIPT_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - RECEIPT_KEEP_MS);
    hf_ops_call(&ops, HF_SQL_LIMIT_PRUNE, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_FAIR_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - FAIR_KEEP_MS);
    hf_ops_call(&ops, HF_SQL_OCCURRENCE_PRUNE, HF_ANY_COUNT);
    hf_ops_i64(&ops, now - RECEIPT_KEEP_MS);
    static const enum hf_sql_id by_age[] = { HF_SQL_SCHEDULE_SKIP_PRUNE,
                                             HF_SQL_DELIVERY_PRUNE, HF_SQL_GRANT_PRUNE };
    for (size_t i = 0; i < sizeof by_age / sizeof by_age[0]; i++) {
        hf_ops_call(&ops, by_age[i], HF_ANY_COUNT);
        hf_ops_i64(&ops, before);
    }
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_prune(struct hf_store *base, hf_ms older_than_ms, size_t limit, int64_t *ret_rows,
              struct hf_err *err)
{
    hf_ms now = base->clock->wall_ms(base->clock->user);
    int64_t total = 0, after = 0;
    size_t left = limit ? limit : SIZE_MAX;
    int rc = 0;
    while (rc == 0 && left > 0) {
        int64_t rows;
        rc = prune_chunk(base, now - older_than_ms, left, &after, &rows, err);
        total += rows;
        left -= (size_t)rows < left ? (size_t)rows : left;
    }
    if (rc == HF_ENOTFOUND)
        rc = 0;
    if (rc == 0)
        rc = prune_beside(base, now, now - older_than_ms, err);
    if (rc == 0)
        *ret_rows = total;
    return rc;
}
