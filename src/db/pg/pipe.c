/* Messages on their way. libpq queues them; what was queued is remembered in order, since
 * its answers come in that order.
 *
 * The connection never blocks in a send: while its messages go out, answers that come
 * already are read in, otherwise both sides could wait for each other. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "db/pg/pg.h"

void pg_pipe_begin(struct pg_pipe *pipe, struct pg_conn *conn, struct hf_arena *arena)
{
    *pipe = (struct pg_pipe){ .conn = conn, .arena = arena };
    pipe->last = &pipe->first;
    pipe->failed = !PQenterPipelineMode(conn->db);
}

static void note(struct pg_pipe *pipe, struct pg_sent what)
{
    struct pg_sent *sent = hf_arena_new(pipe->arena, struct pg_sent);
    if (!sent) {
        pipe->failed = true;
        return;
    }
    *sent = what;
    sent->next = NULL;
    *pipe->last = sent;
    pipe->last = &sent->next;
}

/* "hf123", "hf123g". */
static const char *name_of(struct pg_pipe *pipe, int statement)
{
    struct hf_buf buf;
    hf_buf_init(&buf, pipe->arena->alloc, 32);
    hf_buf_text(&buf, "hf");
    hf_buf_i64(&buf, statement / 2);
    hf_buf_text(&buf, statement % 2 ? "g" : "");
    return hf_buf_keep(&buf, pipe->arena);
}

static void sent_or_failed(struct pg_pipe *pipe, int taken, struct pg_sent what)
{
    if (taken)
        note(pipe, what);
    else
        pipe->failed = true;
}

void pg_pipe_send(struct pg_pipe *pipe, int statement, bool guarded,
                  const struct pg_args *args, struct pg_sent what)
{
    struct pg_conn *conn = pipe->conn;
    const struct hf_pg_text *one = pg_text_of(conn->pg, statement);
    const char *text = guarded ? one->guarded : one->text;
    what.statement = 2 * statement + guarded;
    if (pipe->failed)
        return;
    if (conn->pg->url.pooler == PG_POOLER_TRANSACTION) {
        sent_or_failed(pipe,
                       PQsendQueryParams(conn->db, text, args->count, NULL, args->values,
                                         args->lengths, args->formats, 0),
                       what);
        return;
    }
    const char *name = name_of(pipe, what.statement);
    if (!name) {
        pipe->failed = true;
        return;
    }
    unsigned char *prepared = &conn->prepared[what.statement];
    if (!*prepared) {
        struct pg_sent first = { .kind = PG_SENT_PREPARE,
                                 .statement = what.statement,
                                 .member = what.member,
                                 .call = what.call };
        sent_or_failed(pipe, PQsendPrepare(conn->db, name, text, 0, NULL), first);
        *prepared = 1; /* taken back if its answer never comes or is an error */
    }
    if (!pipe->failed)
        sent_or_failed(pipe,
                       PQsendQueryPrepared(conn->db, name, args->count, args->values,
                                           args->lengths, args->formats, 0),
                       what);
}

void pg_pipe_plain(struct pg_pipe *pipe, const char *sql)
{
    if (!pipe->failed)
        sent_or_failed(
            pipe, PQsendQueryParams(pipe->conn->db, sql, 0, NULL, NULL, NULL, NULL, 0),
            (struct pg_sent){ .kind = PG_SENT_OTHER });
}

void pg_pipe_flush_request(struct pg_pipe *pipe)
{
    if (!pipe->failed && !PQsendFlushRequest(pipe->conn->db))
        pipe->failed = true;
}

void pg_pipe_sync(struct pg_pipe *pipe)
{
    if (!pipe->failed)
        sent_or_failed(pipe, PQpipelineSync(pipe->conn->db),
                       (struct pg_sent){ .kind = PG_SENT_SYNC });
}

/* Waits until the socket can be used; false when it cannot any more. */
static bool wait_for(PGconn *db, short events)
{
    struct pollfd at = { .fd = PQsocket(db), .events = events };
    int ready;
    do
        ready = poll(&at, 1, PG_SILENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && at.fd >= 0;
}

bool pg_pipe_flush(struct pg_pipe *pipe)
{
    PGconn *db = pipe->conn->db;
    int left = pipe->failed ? -1 : PQflush(db);
    while (left > 0) {
        if (!wait_for(db, POLLIN | POLLOUT) || !PQconsumeInput(db))
            left = -1;
        else
            left = PQflush(db);
    }
    pipe->flushed = left == 0;
    pipe->conn->lost |= left != 0;
    return left == 0;
}

/* NULL both at the end of a query's answers and when the connection is gone; the latter
 * sets `lost`. */
static PGresult *next_result(struct pg_conn *conn)
{
    while (PQisBusy(conn->db)) {
        if (!wait_for(conn->db, POLLIN) || !PQconsumeInput(conn->db)) {
            conn->lost = true;
            return NULL;
        }
    }
    PGresult *result = PQgetResult(conn->db);
    if (PQstatus(conn->db) != CONNECTION_OK)
        conn->lost = true;
    return result;
}

PGresult *pg_pipe_answer(struct pg_pipe *pipe, const struct pg_sent *sent)
{
    struct pg_conn *conn = pipe->conn;
    PGresult *result = conn->lost ? NULL : next_result(conn);
    if (!result || conn->lost) {
        conn->lost = true;
        if (result && PQresultErrorField(result, PG_DIAG_SQLSTATE))
            return result; /* the server's last words */
        PQclear(result);
        return NULL;
    }
    if (sent->kind == PG_SENT_PREPARE && PQresultStatus(result) != PGRES_COMMAND_OK)
        conn->prepared[sent->statement] = 0;
    if (sent->kind != PG_SENT_SYNC)
        PQclear(next_result(conn)); /* the end of this query's answers */
    return result;
}

void pg_pipe_end(struct pg_pipe *pipe)
{
    struct pg_conn *conn = pipe->conn;
    if (!conn->lost && !conn->ringing && !PQexitPipelineMode(conn->db))
        conn->lost = true; /* something is left to be read: it cannot be used again */
}
