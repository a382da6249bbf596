/* Whether a pooler that is said to keep sessions (pooler=session) does.
 *
 * A pooler in transaction mode would pass a connection, with the schema and the statements
 * that are in it, to the process that comes next: what was written under one store's
 * address went into another store. A connection that keeps its session has one process
 * behind it, and no other process has that process. */
#include "db/pg/pg.h"

#define ROUNDS 3
#define ANSWER_MS 1000

/* Only asks who answers, so nothing is set up; and the address is known to be good. */
static PGconn *connect_too(const struct pg *pg)
{
    static const char *const keys[] = { "connect_timeout", "fallback_application_name",
                                        "dbname", NULL };
    const char *const values[] = { "10", "holdfast", pg->url.conninfo, NULL };
    return PQconnectdbParams(keys, values, 1);
}

/* The process that answers; 0: none does within the time. */
static int64_t process_behind(PGconn *db)
{
    const struct hf_pg_text *ask = &db_own_pg[DB_OWN_PG_BACKEND];
    int64_t process = 0;
    if (!PQsendQueryParams(db, ask->text, 0, NULL, NULL, NULL, NULL, 0) ||
        !pg_await_answer(db, pg_mono_ms() + ANSWER_MS))
        return 0;
    for (PGresult *result; (result = PQgetResult(db)); PQclear(result))
        if (PQresultStatus(result) == PGRES_TUPLES_OK)
            process = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_PID);
    return process;
}

/* Whether both always have a process of their own behind them. A pool without a second
 * connection to return tells nothing. */
static int compare(struct pg_conn *conn, PGconn *other, bool *ret_own, struct hf_err *err)
{
    int64_t theirs = 0;
    *ret_own = true;
    for (int i = 0; *ret_own && i < ROUNDS; i++) {
        PGresult *result = NULL;
        int64_t before = theirs;
        theirs = process_behind(other);
        if (theirs == 0)
            return 0;
        int rc = pg_conn_ask(conn, DB_OWN_PG_BACKEND, NULL, &result, err);
        if (rc)
            return rc;
        int64_t ours = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_PID);
        PQclear(result);
        *ret_own = ours == conn->process.pid && theirs != ours &&
                   (before == 0 || theirs == before);
    }
    return 0;
}

int pg_check_pooler(struct pg_conn *conn, struct hf_err *err)
{
    PGconn *other = connect_too(conn->pg);
    bool own = true;
    int rc = 0;
    if (PQstatus(other) == CONNECTION_OK)
        rc = compare(conn, other, &own, err);
    PQfinish(other);
    if (rc || own)
        return rc;
    /* The process that gets it next is not to find our settings. */
    if (pg_conn_exec(conn, "RESET ALL", "RESET ALL", NULL, NULL))
        conn->lost = true; /* no process continues with it */
    return hf_fail(
        err, HF_EUNREACHABLE, "db",
        "the pooler's pool_mode is transaction: add pooler=transaction to the address");
}
