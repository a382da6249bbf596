/* The connections of a handle: made when first needed, kept, given to one caller at a time.
 *
 * A connection that broke is closed; the next taker makes a new one, and tries again with
 * growing pauses for as long as callers wait for a store.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "db/pg/pg.h"

#define PAUSE_FIRST_MS 20
#define PAUSE_MOST_MS 1000

static void lock(struct pg_pool *pool)
{
    int rc = pthread_mutex_lock(&pool->lock);
    hf_assert(rc == 0);
}

static void unlock(struct pg_pool *pool)
{
    int rc = pthread_mutex_unlock(&pool->lock);
    hf_assert(rc == 0);
}

static struct timespec at_ms(hf_ms at)
{
    return (struct timespec){ .tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 };
}

int pg_pool_init(struct pg *pg)
{
    pthread_condattr_t attr;
    pg->pool.most = PG_POOL_MAX;
    int rc = pthread_mutex_init(&pg->pool.lock, NULL);
    if (rc == 0)
        rc = pthread_condattr_init(&attr);
    if (rc == 0)
        rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(&pg->pool.freed, &attr);
    (void)pthread_condattr_destroy(&attr); /* nothing of it is kept */
    return rc ? HF_ENOMEM : 0;
}

void pg_pool_fini(struct pg *pg)
{
    while (pg->pool.free) {
        struct pg_conn *conn = pg->pool.free;
        pg->pool.free = conn->next;
        pg_conn_close(conn);
    }
    (void)pthread_cond_destroy(&pg->pool.freed);
    (void)pthread_mutex_destroy(&pg->pool.lock);
}

/* A free connection, or the right to make one (NULL); HF_EBUSY when none comes in time. */
static int take_place(struct pg *pg, hf_ms until, struct pg_conn **ret_conn,
                      struct hf_err *err)
{
    struct pg_pool *pool = &pg->pool;
    int rc = 0;
    lock(pool);
    while (rc == 0 && !pool->free && pool->open >= pool->most) {
        struct timespec at = at_ms(until);
        if (pthread_cond_timedwait(&pool->freed, &pool->lock, &at) == ETIMEDOUT)
            rc = hf_fail(err, HF_EBUSY, "db", "all %u connections are in use",
                         pool->most);
    }
    if (rc == 0) {
        *ret_conn = pool->free;
        if (pool->free)
            pool->free = pool->free->next;
        else
            pool->open++;
    }
    unlock(pool);
    return rc;
}

static void leave_place(struct pg *pg)
{
    lock(&pg->pool);
    pg->pool.open--;
    (void)pthread_cond_signal(&pg->pool.freed); /* cannot fail on a live condition */
    unlock(&pg->pool);
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
    lock(&pg->pool);
    /* The last that is taken again is one that still rings. */
    struct pg_conn **at = &pg->pool.free;
    while (conn->ringing && *at)
        at = &(*at)->next;
    conn->next = *at;
    *at = conn;
    (void)pthread_cond_signal(&pg->pool.freed); /* cannot fail on a live condition */
    unlock(&pg->pool);
}
