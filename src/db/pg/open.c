/* Opening and closing a handle on PostgreSQL. */
#include <string.h>
#include <unistd.h>

#include "base/sized.h"
#include "db/batch.h"
#include "db/pg/pg.h"

static int run(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err)
{
    struct pg *pg = pg_of(sql);
    if (pg->pid != getpid())
        return hf_fail(err, HF_EINVAL, "db",
                       "the store was opened before a fork: the child opens its own");
    if (batch->read_only)
        return pg_run_read(pg, batch, err);
    if (pg->read_only)
        return hf_fail_plain(err, HF_EREADONLY);
    return db_group_run(&pg->group, batch, err);
}

static void close_handle(struct hf_sql *sql)
{
    struct pg *pg = pg_of(sql);
    const struct hf_alloc *alloc = pg->alloc;
    pg_bell_stop(pg);
    pg_pool_fini(pg);
    pg_bell_fini(pg);
    db_group_fini(&pg->group);
    pg_local_close(pg);
    pg_url_free(alloc, &pg->url);
    alloc->free(alloc->user, pg);
}

static hf_ms pg_ahead_ms(struct hf_sql *sql)
{
    return atomic_load_explicit(&pg_of(sql)->ahead_ms, memory_order_relaxed);
}

static const struct hf_sql_methods methods = {
    .name = "postgres",
    .run = run,
    .forget = hf_results_forget,
    .ahead_ms = pg_ahead_ms,
    .bell_seen = pg_bell_seen,
    .bell_wait = pg_bell_wait,
    .bell_ring = pg_bell_ring,
    .taken_here = pg_local_taken,
    .facts = pg_facts,
    .close = close_handle,
};

static struct pg *new_handle(const struct hf_sql_options *options,
                             const struct db_schema *schema)
{
    const struct hf_alloc *alloc = options->alloc;
    struct pg *pg = alloc->realloc(alloc->user, NULL, sizeof(*pg));
    if (!pg)
        return NULL;
    memset(pg, 0, sizeof(*pg));
    pg->sql.methods = &methods;
    pg->schema = schema;
    pg->alloc = alloc;
    pg->clock = options->clock;
    pg->random = options->random;
    pg->system_clock = pg->clock == hf_clock_system();
    pg->inline_mode = options->inline_mode;
    pg->read_only = options->read_only;
    pg->busy_ms = options->busy_ms;
    pg->pid = getpid();
    pg_pool_init(pg);
    hf_assert(pg_bell_init(pg) == 0);
    pg_group_init(pg);
    return pg;
}

/* A pooler that takes its connection back after every statement keeps no transaction together. */
static int check_pooling(struct pg_conn *conn, struct hf_err *err)
{
    if (conn->pg->url.pooler == PG_POOLER_NONE)
        return 0;
    int rc = pg_conn_exec(conn, "BEGIN", "BEGIN", NULL, NULL);
    if (rc == 0)
        rc = pg_conn_exec(conn, "COMMIT", "COMMIT", NULL, NULL);
    if (rc)
        return hf_fail(err, HF_EUNREACHABLE, "db",
                       "the pooler keeps no transaction together: its pool_mode must be "
                       "transaction or session");
    return conn->pg->url.pooler == PG_POOLER_SESSION ? pg_check_pooler(conn, err) : 0;
}

/* The first connection fails at once and says why: an address that is wrong stays wrong. */
static int open_store(struct pg *pg, const struct hf_sql_options *options,
                      struct hf_err *err)
{
    struct pg_conn *conn = NULL;
    int rc = pg_conn_open(pg, pg->url.conninfo, &conn, err);
    if (rc)
        return rc;
    rc = check_pooling(conn, err);
    if (rc == 0)
        rc = pg_migrate(pg, conn, options, err);
    pg->pool.open++;
    pg_pool_give(conn);
    return rc;
}

int pg_open(const char *url, const struct hf_sql_options *options,
            const struct db_schema *schema, struct hf_sql **ret_sql, struct hf_err *err)
{
    struct hf_sql_options known;
    int rc = db_options_read(options, &known, err);
    if (rc)
        return rc;
    if (!url || !url[0])
        return hf_fail(err, HF_EINVAL, "db", "an address is needed");
    struct pg *pg = new_handle(&known, schema);
    if (!pg)
        return hf_fail_plain(err, HF_ENOMEM);
    rc = pg_url_read(pg->alloc, url, &pg->url, err);
    if (rc == 0)
        rc = open_store(pg, &known, err);
    if (rc) {
        close_handle(&pg->sql);
        return rc;
    }
    pg_local_open(pg);
    *ret_sql = &pg->sql;
    return 0;
}
