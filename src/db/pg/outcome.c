/* The answer to a commit was lost: ask the server, by the transaction's id, what became of
 * it; or look for what it would have written, when it can write no more. What cannot be found out
 * is said to be unknown, and nothing is ever guessed.
 */
#include "base/text.h"
#include "db/pg/pg.h"

#define PAUSE_MS 20

/* One question on a connection of its own; NULL: no answer. */
static PGresult *ask_server(struct pg *pg, enum hf_sql_id id, const int64_t numbers[3])
{
    struct pg_conn *conn;
    struct hf_arena arena;
    PGresult *result = NULL;
    if (pg_pool_take(pg, &conn, NULL))
        return NULL;
    hf_arena_init(&arena, pg->alloc);
    const char *const args[] = { pg_i64_text(&arena, numbers[0]),
                                 pg_i64_text(&arena, numbers[1]),
                                 pg_i64_text(&arena, numbers[2]) };
    if (args[0] && args[1] && args[2] && pg_conn_ask(conn, id, args, &result, NULL))
        result = NULL;
    hf_arena_fini(&arena);
    pg_pool_give(conn);
    return result;
}

/* True when it was answered. */
static bool ask(struct pg *pg, const struct pg_past *past, enum pg_outcome *ret_outcome,
                bool *ret_open)
{
    const int64_t numbers[] = { past->xid, past->timeline,
                                pg_mono_ms() - past->began_at };
    PGresult *result = ask_server(pg, HF_SQL_PG_OUTCOME, numbers);
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

/* ---- without an id ------------------------------------------------------------------ */

enum end { ENDED, GOES_ON, OTHER_HISTORY };

static enum end ask_end(struct pg *pg, const struct pg_gone *gone)
{
    const int64_t numbers[] = { gone->backend, gone->backend_began, gone->timeline };
    PGresult *result = ask_server(pg, HF_SQL_PG_ENDED, numbers);
    enum end end = GOES_ON;
    if (result && PQgetisnull(result, 0, 0))
        end = OTHER_HISTORY;
    else if (result && pg_cell_i64(result, 0, 0))
        end = ENDED;
    PQclear(result);
    return end;
}

static bool seen(const struct hf_batch *batch)
{
    for (size_t i = 1; i < batch->call_count; i++)
        if (batch->calls[i].out_count > 0)
            return true;
    return false;
}

/* Asked first, and looked then: what it wrote before it ended is seen. In another history it may
 * have been written and lost. */
enum pg_outcome pg_outcome_seen(struct pg *pg, const struct pg_gone *gone,
                                struct hf_batch *batch)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = pg_mono_ms() + pg->busy_ms;
    while (pg_mono_ms() < until) {
        enum end end = ask_end(pg, gone);
        int rc = pg_read_lost(pg, batch, NULL);
        if (rc == 0 && seen(batch))
            return PG_COMMITTED;
        if (rc == 0 && end == ENDED)
            return PG_ABORTED;
        if (rc == 0 && end == OTHER_HISTORY)
            return PG_UNKNOWN;
        clock->wait_ms(clock->user, PAUSE_MS);
    }
    return PG_UNKNOWN;
}
