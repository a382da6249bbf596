/* The connections of a handle: made when first needed, kept, given to one caller at a time.
 *
 * A connection that broke is closed; the next taker makes a new one, and tries again with
 * growing pauses for as long as callers wait for a store.
 */
#include <string.h>

#include "db/pg/pg.h"

#define PAUSE_FIRST_MS 20
#define PAUSE_MOST_MS 1000

void pg_pool_init(struct pg *pg)
{
    pg->pool.most = PG_POOL_MAX;
    hf_lock_init(&pg->pool.lock);
    hf_cond_init(&pg->pool.freed);
}

void pg_pool_fini(struct pg *pg)
{
    while (pg->pool.free) {
        struct pg_conn *conn = pg->pool.free;
        pg->pool.free = conn->next;
        pg_conn_close(conn);
    }
    hf_cond_fini(&pg->pool.freed);
    hf_lock_fini(&pg->pool.lock);
}

/* A free connection, or the right to make one (NULL); HF_EBUSY when none comes in time. */
static int take_place(struct pg *pg, hf_ms until, struct pg_conn **ret_conn,
                      struct hf_err *err)
{
    struct pg_pool *pool = &pg->pool;
    int rc = 0;
    hf_lock(&pool->lock);
    while (rc == 0 && !pool->free && pool->open >= pool->most)
        if (!hf_cond_wait(&pool->freed, &pool->lock, until - pg_mono_ms()))
            rc = hf_fail(err, HF_EBUSY, "db", "all %u connections are in use",
                         pool->most);
    if (rc == 0) {
        *ret_conn = pool->free;
        if (pool->free)
            pool->free = pool->free->next;
        else
            pool->open++;
    }
    hf_unlock(&pool->lock);
    return rc;
}

static void leave_place(struct pg *pg)
{
    hf_lock(&pg->pool.lock);
    pg->pool.open--;
    (void)pthread_cond_signal(&pg->pool.freed); /* cannot fail on a live condition */
    hf_unlock(&pg->pool.lock);
}

/* Would another try help? A wrong password will not become right. */
static bool passing(int rc)
{
    return rc == HF_EUNREACHABLE || rc == HF_EBUSY;
}

static int make(struct pg *pg, hf_ms until, struct pg_conn **ret_conn, struct hf_err *err)
{
    hf_ms pause = PAUSE_FIRST_MS;
    int rc = pg_conn_open(pg, pg->url.conninfo, ret_conn, err);
    while (passing(rc) && pg_mono_ms() + pause < until) {
        const struct hf_clock *clock = hf_clock_system();
        clock->wait_ms(clock->user, pause);
        pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS;
        rc = pg_conn_open(pg, pg->url.conninfo, ret_conn, err);
    }
    return rc;
}

int pg_pool_take(struct pg *pg, struct pg_conn **ret_conn, struct hf_err *err)
{
    hf_ms until = pg_mono_ms() + pg->busy_ms;
    struct pg_conn *conn = NULL;
    int rc = take_place(pg, until, &conn, err);
    if (rc)
        return rc;
    if (conn && (!pg_ring_done(conn) || pg_conn_stale(conn) || !pg_conn_replan(conn))) {
        pg_conn_close(conn); /* its place is still ours */
        conn = NULL;
    }
    if (!conn)
        rc = make(pg, until, &conn, err);
    if (rc)
        leave_place(pg);
    else
        *ret_conn = conn;
    return rc;
}

void pg_pool_give(struct pg_conn *conn)
{
    struct pg *pg = conn->pg;
    if (conn->lost || conn->spoiled || PQstatus(conn->db) != CONNECTION_OK ||
        (!conn->ringing && PQtransactionStatus(conn->db) != PQTRANS_IDLE)) {
        pg_conn_close(conn);
        leave_place(pg);
        return;
    }
    hf_lock(&pg->pool.lock);
    /* The last that is taken again is one that still rings. */
    struct pg_conn **at = &pg->pool.free;
    while (conn->ringing && *at)
        at = &(*at)->next;
    conn->next = *at;
    *at = conn;
    (void)pthread_cond_signal(&pg->pool.freed); /* cannot fail on a live condition */
    hf_unlock(&pg->pool.lock);
}
