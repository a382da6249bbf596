/* The answer to a commit was lost: ask the server, by the transaction's id, what became of
 * it. What cannot be found out is said to be unknown, and nothing is ever guessed.
 */
#include "base/text.h"
#include "store/pg.h"

#define PAUSE_MS 20

/* One question on a connection of its own; true when it was answered. */
static bool ask(struct pg *pg, const char *const *args, enum pg_outcome *ret_outcome,
                bool *ret_open)
{
    struct pg_conn *conn;
    PGresult *result = NULL;
    if (pg_pool_take(pg, &conn, NULL))
        return false;
    int rc = pg_conn_ask(conn, HF_SQL_PG_OUTCOME, args, &result, NULL);
    pg_pool_give(conn);
    if (rc)
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
 * id to another one. So an answer counts only on the timeline that the transaction saw. */
enum pg_outcome pg_outcome_of(struct pg *pg, const char *xid, int64_t timeline)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = pg_mono_ms() + pg->busy_ms;
    enum pg_outcome outcome = PG_UNKNOWN;
    struct hf_buf seen;
    hf_buf_init(&seen, pg->alloc, 32);
    hf_buf_i64(&seen, timeline);
    const char *const args[] = { xid, hf_buf_str(&seen) };
    bool open = hf_buf_state(&seen) == 0;
    bool asked = open;
    while (open && pg_mono_ms() < until) {
        bool answered = ask(pg, args, &outcome, &open);
        if (!answered || open)
            clock->wait_ms(clock->user, PAUSE_MS);
        open |= !answered;
    }
    hf_buf_fini(&seen);
    return open || !asked ? PG_UNKNOWN : outcome;
}
