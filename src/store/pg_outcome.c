/* The answer to a commit was lost: ask the server, by the transaction's id, what became of
 * it. What cannot be found out is said to be unknown, and nothing is ever guessed.
 */
#include "base/text.h"
#include "store/pg.h"

#define PAUSE_MS 20

static PGresult *ask_server(struct pg *pg, const struct pg_past *past)
{
    struct pg_conn *conn;
    struct hf_buf timeline, ago;
    PGresult *result = NULL;
    if (pg_pool_take(pg, &conn, NULL))
        return NULL;
    hf_buf_init(&timeline, pg->alloc, 32);
    hf_buf_init(&ago, pg->alloc, 32);
    hf_buf_i64(&timeline, past->timeline);
    hf_buf_i64(&ago, pg_mono_ms() - past->began_at);
    if (hf_buf_state(&timeline) == 0 && hf_buf_state(&ago) == 0) {
        const char *const args[] = { past->xid, hf_buf_str(&timeline), hf_buf_str(&ago) };
        if (pg_conn_ask(conn, HF_SQL_PG_OUTCOME, args, &result, NULL))
            result = NULL;
    }
    pg_pool_give(conn);
    hf_buf_fini(&timeline);
    hf_buf_fini(&ago);
    return result;
}

/* One question on a connection of its own; true when it was answered. */
static bool ask(struct pg *pg, const struct pg_past *past, enum pg_outcome *ret_outcome,
                bool *ret_open)
{
    PGresult *result = ask_server(pg, past);
    if (!result)
        return false;
    bool known = PQntuples(result) == 1 && !PQgetisnull(result, 0, 0);
    const char *word = known ? PQgetvalue(result, 0, 0) : NULL;
    *ret_open = hf_same(word, "in progress");
    if (hf_same(word, "committed"))
        *ret_outcome = PG_COMMITTED;
    else if (hf_same(word, "aborted"))
        *ret_outcome = PG_ABORTED;
    else
        *ret_outcome = PG_UNKNOWN;
    PQclear(result);
    return true;
}

/* The server may need a moment to notice that its client is gone. A transaction id of
 * another history says nothing: a standby that was promoted without this transaction gives its
 * id to another one. So an answer counts only on the timeline that the transaction saw. A server
 * that crashed does the same, on the same timeline: then "committed" says nothing. */
enum pg_outcome pg_outcome_of(struct pg *pg, const struct pg_past *past)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = pg_mono_ms() + pg->busy_ms;
    enum pg_outcome outcome = PG_UNKNOWN;
    bool open = true;
    while (open && pg_mono_ms() < until) {
        bool answered = ask(pg, past, &outcome, &open);
        if (!answered || open)
            clock->wait_ms(clock->user, PAUSE_MS);
        open |= !answered;
    }
    return open ? PG_UNKNOWN : outcome;
}
