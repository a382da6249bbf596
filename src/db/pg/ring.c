/* A NOTIFY behind a commit, on its connection.
 *
 * It is a transaction of its own, sent when all of the one before it has left, and no
 * process waits for it: the caller has its answer when the commit's has come, and the
 * connection goes back to the pool with the ring's answers still to be read. The process
 * that takes it next reads them; if they do not come soon, or are an error, it makes
 * another connection, and for a while the bell's thread does all the ringing. A hint that
 * is lost is made good by the waiters' own looks.
 *
 * A ring behind a transaction that failed is one too many, and wakes a process in vain.
 *
 * Not behind a pooler. PgBouncer holds a connection to be free when the first of two transactions
 * has been answered: if its client goes then (a command that ends, a process that is killed), the
 * next one is given the connection, and with it the second one's answers as its own. */
#include "db/pg/pg.h"

/* All commits with a NOTIFY of a server wait for each other. A ring that takes longer is left
 * to itself. */
#define PATIENCE_MS 250
#define ANSWERS_MAX 5 /* a Prepare, its end, a statement, its end, the Sync */

static const char name[] = "hf_ring";

/* As one pipeline behind another. */
static bool queue(struct pg_conn *conn, const char *const *args)
{
    const struct hf_pg_text *one = &db_own_pg[DB_OWN_PG_RING];
    return (conn->ring_prepared || PQsendPrepare(conn->db, name, one->text, 0, NULL)) &&
           PQsendQueryPrepared(conn->db, name, one->params, args, NULL, NULL, 0) &&
           PQpipelineSync(conn->db);
}

void pg_ring_mark(struct pg_member *const *members, size_t count, bool told)
{
    for (size_t i = 0; i < count; i++) {
        members[i]->told = told;
        for (size_t k = 0; k < members[i]->part_count; k++)
            members[i]->parts[k]->told = told;
    }
}

void pg_ring_behind(struct pg_conn *conn, struct pg_member *const *members, size_t count)
{
    struct pg *pg = conn->pg;
    struct hf_buf channel, message;
    if (pg->url.pooler != PG_POOLER_NONE)
        return; /* the bell's thread sends it */
    hf_buf_init(&channel, pg->alloc, 64);
    hf_buf_init(&message, pg->alloc, 2048);
    if (pg_bell_carry(pg, members, count, &message) && pg_bell_channel(pg, &channel)) {
        const char *const args[] = { hf_buf_str(&channel), hf_buf_str(&message) };
        conn->ringing = queue(conn, args);
        conn->spoiled = !conn->ringing;
        (void)PQflush(conn->db); /* what is left goes out while answers are read */
        pg_ring_mark(members, count, true);
        pg_count(&pg->counts.rings);
    }
    hf_buf_fini(&channel);
    hf_buf_fini(&message);
}

/* The next of its answers; false: it was the last, or the last that will come. */
static bool take_answer(struct pg_conn *conn, hf_ms until, bool *ret_fine)
{
    if (!pg_await_answer(conn->db, until))
        return false;
    PGresult *result = PQgetResult(conn->db); /* NULL: the end of a statement's */
    ExecStatusType status = result ? PQresultStatus(result) : PGRES_EMPTY_QUERY;
    PQclear(result);
    conn->ring_prepared |= status == PGRES_COMMAND_OK; /* only a Prepare says so */
    *ret_fine = status == PGRES_PIPELINE_SYNC;
    return PQstatus(conn->db) == CONNECTION_OK && status != PGRES_FATAL_ERROR &&
           status != PGRES_PIPELINE_SYNC;
}

bool pg_ring_done(struct pg_conn *conn)
{
    hf_ms until = pg_mono_ms() + PATIENCE_MS;
    bool fine = false;
    if (!conn->ringing)
        return true;
    for (int i = 0; i < ANSWERS_MAX && take_answer(conn, until, &fine); i++)
        continue;
    conn->ringing = !fine || !PQexitPipelineMode(conn->db);
    if (conn->ringing)
        pg_bell_apart(conn->pg);
    return !conn->ringing;
}

int pg_ring_alone(struct pg *pg, const char *channel, const char *message)
{
    const char *const args[] = { channel, message };
    struct pg_conn *conn = NULL;
    int rc = pg_pool_take(pg, &conn, NULL);
    if (rc)
        return rc;
    rc = pg_conn_ask(conn, DB_OWN_PG_RING, args, NULL, NULL);
    pg_pool_give(conn);
    return rc;
}
