/* A connection: its settings, who is at the other end, single statements.
 *
 * A connection of our own keeps the schema and the timeouts for as long as it lasts. Behind a
 * transaction pooler there is nothing to keep them in, and every pipeline brings them along
 * (db/pg/run.c). */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/text.h"
#include "db/pg/pg.h"

#define IDLE_TIMEOUT "10000"
/* Before a connection is ready nothing takes long; the process that is silent for this long
 * (a pooler that has no server) is as good as away. */
#define READY_LEAST_MS 1000
#define READY_MOST_MS 10000
#define MIGRATION_MS INT32_MAX /* a script takes its time */

char *pg_schema_text(const struct pg *pg, const char *text)
{
    static const char mark[] = "@schema@";
    struct hf_buf out;
    hf_buf_init(&out, pg->alloc, 1 << 20);
    for (const char *at = strstr(text, mark); at; at = strstr(text, mark)) {
        hf_buf_bytes(&out, text, (size_t)(at - text));
        hf_buf_text(&out, pg->url.quoted);
        text = at + sizeof mark - 1;
    }
    hf_buf_text(&out, text);
    if (hf_buf_state(&out) == 0)
        return out.at;
    hf_buf_fini(&out);
    return NULL;
}

static bool fine(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

static hf_ms patience_of(const struct pg_conn *conn, hf_ms when_ready)
{
    if (conn->ready)
        return when_ready;
    hf_ms ms = conn->pg->busy_ms;
    return ms < READY_LEAST_MS ? READY_LEAST_MS : ms > READY_MOST_MS ? READY_MOST_MS : ms;
}

bool pg_await_answer(PGconn *db, hf_ms until)
{
    while (PQisBusy(db)) {
        int unsent = PQflush(db);
        struct pollfd at = { .fd = PQsocket(db),
                             .events = (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN) };
        hf_ms left = until - pg_mono_ms();
        int ready = unsent < 0 ? 0 : poll(&at, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || !PQconsumeInput(db))
            return false;
    }
    return true;
}

/* The answer to a statement by itself, as PQexec would return it; NULL: none came, or not
 * in time. */
static PGresult *answer_of(struct pg_conn *conn, int sent, hf_ms when_ready)
{
    hf_ms until = pg_mono_ms() + patience_of(conn, when_ready);
    PGresult *last = NULL;
    for (PGresult *next = NULL; sent; last = next) {
        conn->lost = conn->lost || !pg_await_answer(conn->db, until);
        next = conn->lost ? NULL : PQgetResult(conn->db);
        if (!next)
            break;
        PQclear(last);
    }
    if (conn->lost && !PQresultErrorField(last, PG_DIAG_SQLSTATE)) {
        PQclear(last); /* without a code: last words of the server */
        last = NULL;
    }
    return last;
}

/* Takes the result over unless it is wanted. */
static int judge(struct pg_conn *conn, PGresult *result, const char *what,
                 PGresult **ret_result, struct hf_err *err)
{
    int rc = 0;
    bool said = result && PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!result || PQstatus(conn->db) != CONNECTION_OK || (!fine(result) && !said)) {
        conn->lost = true; /* or libpq has words of its own, which are of nothing more */
        rc = said ? pg_fail(result, what, err) : pg_fail_lost(what, err);
    } else if (!fine(result)) {
        rc = pg_fail(result, what, err);
    }
    if (rc == 0 && ret_result)
        *ret_result = result;
    else
        PQclear(result);
    return rc;
}

int pg_conn_exec(struct pg_conn *conn, const char *sql, const char *what,
                 PGresult **ret_result, struct hf_err *err)
{
    PGresult *result = answer_of(conn, PQsendQuery(conn->db, sql), MIGRATION_MS);
    return judge(conn, result, what, ret_result, err);
}

int pg_conn_ask(struct pg_conn *conn, enum db_own which, const char *const *args,
                PGresult **ret_result, struct hf_err *err)
{
    const struct hf_pg_text *one = &db_own_pg[which];
    int sent = PQsendQueryParams(conn->db, one->text, one->params, NULL, args, NULL, NULL,
                                 0);
    PGresult *result = answer_of(conn, sent, PG_SILENCE_MS);
    return judge(conn, result, one->name, ret_result, err);
}

/* Statements are planned once. For a table that was all but empty when it was last
 * analyzed, to read an index from end to end costs no more than to look one row up, and
 * such a plan stays: with 60,000 rows, claims took 40 ms and close-outs 400, until a
 * process analyzed. A plan for many rows is good for few. So while the table is small,
 * each time that it has grown fourfold they are made anew. */
#define PAGE_BYTES 8192
#define SMALL_BYTES (1024 * PAGE_BYTES)

#define SIZED_EVERY 16 /* transactions: to ask costs as much as to read a row */

const char *pg_conn_sized(struct pg_conn *conn)
{
    bool due = conn->planned_bytes < SMALL_BYTES && conn->begun++ % SIZED_EVERY == 0;
    return due ? conn->pg->schema->grows : NULL;
}

void pg_conn_note_size(struct pg_conn *conn, int64_t bytes)
{
    conn->bytes = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
    if (conn->planned_bytes == 0)
        conn->planned_bytes = conn->bytes;
}

bool pg_conn_replan(struct pg_conn *conn)
{
    if (conn->pg->url.pooler == PG_POOLER_TRANSACTION || /* where nothing is kept */
        conn->planned_bytes >= SMALL_BYTES || conn->bytes <= 4 * conn->planned_bytes)
        return true;
    conn->planned_bytes = conn->bytes;
    return pg_conn_exec(conn, "DISCARD PLANS", "DISCARD PLANS", NULL, NULL) == 0;
}

static void no_notice(void *user, const PGresult *result)
{
    (void)user; /* a library prints nothing */
    (void)result;
}

static PGconn *connect_to(const char *conninfo)
{
    /* What is before dbname are defaults, which the address may override. */
    static const char *const keys[] = {
        "connect_timeout",  "keepalives_idle",  "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "fallback_application_name",
        "dbname",           "client_encoding",  NULL
    };
    const char *const values[] = { "10",       "30",     "5",    "3", "30000",
                                   "holdfast", conninfo, "UTF8", NULL };
    return PQconnectdbParams(keys, values, 1);
}

/* PgBouncer hands its clients keys of its own, so the process that libpq knows is not
 * the one that answers. */
static int check_pooler(struct pg_conn *conn, struct hf_err *err)
{
    const struct pg *pg = conn->pg;
    if (pg->url.pooler != PG_POOLER_NONE || conn->process.pid == PQbackendPID(conn->db))
        return 0;
    return hf_fail(err, HF_EUNREACHABLE, "db",
                   "the address leads to a pooler: add pooler=transaction (or "
                   "pooler=session) to it, or connect directly");
}

/* What the database must be, and what cannot be set for each transaction behind a pooler. */
static int check_database(const struct pg *pg, const PGresult *result, struct hf_err *err)
{
    const char *encoding = PQgetvalue(result, 0, DB_COL_PG_BACKEND_ENCODING);
    const char *isolation = PQgetvalue(result, 0, DB_COL_PG_BACKEND_ISOLATION);
    if (!hf_same(encoding, "UTF8"))
        return hf_fail(err, HF_EINVAL, "db",
                       "the database's encoding is %s: name one that was made with "
                       "ENCODING 'UTF8'",
                       encoding);
    if (pg->url.pooler == PG_POOLER_TRANSACTION && !hf_same(isolation, "read committed"))
        return hf_fail(err, HF_EINVAL, "db",
                       "default_transaction_isolation is %s, which cannot be changed "
                       "behind a pooler: set it to "
                       "'read committed' for the role or the database",
                       isolation);
    return 0;
}

static int set_up(struct pg_conn *conn, struct hf_err *err)
{
    struct pg *pg = conn->pg;
    PQsetNoticeReceiver(conn->db, no_notice, NULL);
    PGresult *result = NULL;
    int rc = pg_conn_ask(conn, DB_OWN_PG_BACKEND, NULL, &result, err);
    if (rc)
        return rc;
    conn->process = (struct pg_process){
        .pid = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_PID),
        .began = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_BEGAN),
        .timeline = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_TIMELINE),
        .system_id = pg_cell_i64(result, 0, DB_COL_PG_BACKEND_SYSTEM_ID)
    };
    rc = check_database(pg, result, err);
    PQclear(result);
    if (rc == 0)
        rc = check_pooler(conn, err);
    if (rc || pg->url.pooler == PG_POOLER_TRANSACTION)
        return rc;
    const char *const args[] = { pg->url.quoted, PG_STATEMENT_TIMEOUT, PG_LOCK_TIMEOUT,
                                 IDLE_TIMEOUT };
    return pg_conn_ask(conn, DB_OWN_PG_CONNECTION_SETTINGS, args, NULL, err);
}

int pg_conn_open(struct pg *pg, const char *conninfo, struct pg_conn **ret_conn,
                 struct hf_err *err)
{
    const struct hf_alloc *alloc = pg->alloc;
    size_t forms = 2 * (pg->schema->statement_count + DB_OWN_COUNT);
    struct pg_conn *conn = alloc->realloc(alloc->user, NULL, sizeof(*conn) + forms);
    if (!conn)
        return hf_fail_plain(err, HF_ENOMEM);
    *conn = (struct pg_conn){ .pg = pg, .prepared = (unsigned char *)(conn + 1) };
    memset(conn->prepared, 0, forms);
    conn->db = connect_to(conninfo);
    pg_count(&pg->counts.connects);
    int rc = PQstatus(conn->db) == CONNECTION_OK ? 0 : pg_fail_connect(conn->db, err);
    if (rc == 0)
        rc = set_up(conn, err);
    if (rc == 0 && PQsetnonblocking(conn->db, 1))
        rc = hf_fail(err, HF_EINTERNAL, NULL, "libpq keeps blocking");
    conn->ready = true;
    if (rc)
        pg_conn_close(conn);
    else
        *ret_conn = conn;
    return rc;
}

void pg_conn_close(struct pg_conn *conn)
{
    const struct hf_alloc *alloc = conn->pg->alloc;
    PQfinish(conn->db);
    alloc->free(alloc->user, conn);
}

bool pg_conn_stale(struct pg_conn *conn)
{
    struct pollfd at = { .fd = PQsocket(conn->db), .events = POLLIN };
    return conn->lost || PQstatus(conn->db) != CONNECTION_OK || at.fd < 0 ||
           poll(&at, 1, 0) != 0;
}

int pg_conn_identity(struct pg_conn *conn, struct pg_identity *ret_identity,
                     struct hf_err *err)
{
    const char *const args[] = { conn->pg->url.schema };
    PGresult *result = NULL;
    int rc = pg_conn_ask(conn, DB_OWN_PG_IDENTITY, args, &result, err);
    if (rc)
        return rc;
    struct pg_identity made = {
        .standby = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_STANDBY) != 0,
        .version = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_VERSION),
        .schema_exists = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_SCHEMA_EXISTS) != 0,
        .objects = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_OBJECTS),
        .ours = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_OURS) != 0,
        .may_create = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_MAY_CREATE) != 0,
        .may_create_schema = pg_cell_i64(result, 0,
                                         DB_COL_PG_IDENTITY_MAY_CREATE_SCHEMA) != 0,
        .max_connections = pg_cell_i64(result, 0, DB_COL_PG_IDENTITY_MAX_CONNECTIONS),
    };
    size_t len = (size_t)PQgetlength(result, 0, DB_COL_PG_IDENTITY_SYSTEM_ID);
    if (len < sizeof made.system_id)
        memcpy(made.system_id, PQgetvalue(result, 0, DB_COL_PG_IDENTITY_SYSTEM_ID),
               len + 1);
    PQclear(result);
    *ret_identity = made;
    return 0;
}
