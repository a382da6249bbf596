/* The answer to a transaction was lost: what became of it is established by evidence only.
 *
 * Every transaction that writes leaves a row of hf_commit with a nonce of its own. If that row is
 * found, the transaction was committed. If it is not found although the server process that ran
 * the transaction had ended before, nothing was written. In every other case the outcome is
 * unknown. Transaction ids prove nothing, since a server that crashed assigns them again; and no
 * clocks are compared.
 */
#include <string.h>

#include "base/ident.h"
#include "db/pg/pg.h"

#define PAUSE_MS 20

int pg_trace_begin(struct pg *pg, const struct pg_conn *conn, struct pg_trace *ret_trace,
                   struct hf_err *err)
{
    *ret_trace = (struct pg_trace){
        .epoch = atomic_load_explicit(&pg->epoch, memory_order_relaxed),
    };
    if (pg->url.pooler != PG_POOLER_TRANSACTION)
        ret_trace->process = conn->process;
    /* Not from the handle's source, which a test may seed: two equal nonces would prove each
     * other's transactions. */
    return hf_nonce(hf_random_system(), ret_trace->nonce, err);
}

bool pg_trace_forgets(const struct pg_trace *trace)
{
    return memcmp(trace->nonce, "0000", 4) == 0;
}

/* What one look has found. */
struct found {
    bool ended;         /* the process that ran it */
    bool other_history; /* this is another server, or a promoted or restored one */
    bool committed;
    bool kept; /* the row would still be there */
};

static int ask_ended(struct pg_conn *conn, const struct pg_process *process,
                     struct hf_arena *arena, struct found *found)
{
    const char *const args[] = { pg_i64_text(arena, process->pid),
                                 pg_i64_text(arena, process->began),
                                 pg_i64_text(arena, process->timeline),
                                 pg_i64_text(arena, process->system_id) };
    PGresult *result = NULL;
    if (!process->pid)
        return 0; /* it is not known */
    if (!args[0] || !args[1] || !args[2] || !args[3])
        return HF_ENOMEM;
    int rc = pg_conn_ask(conn, DB_OWN_PG_ENDED, args, &result, NULL);
    if (rc == 0) {
        found->other_history = PQgetisnull(result, 0, DB_COL_PG_ENDED_ENDED);
        found->ended = !found->other_history &&
                       pg_cell_i64(result, 0, DB_COL_PG_ENDED_ENDED) != 0;
    }
    PQclear(result);
    return rc;
}

static int ask_committed(struct pg_conn *conn, const struct pg_trace *trace,
                         struct hf_arena *arena, struct found *found)
{
    const char *const args[] = { trace->nonce, pg_i64_text(arena, trace->epoch) };
    PGresult *result = NULL;
    int rc = args[1] ? pg_conn_ask(conn, DB_OWN_PG_COMMITTED, args, &result, NULL)
                     : HF_ENOMEM;
    if (rc == 0 && PQntuples(result) != 1)
        rc = HF_ENOTSTORE;
    if (rc == 0) {
        found->committed = pg_cell_i64(result, 0, DB_COL_PG_COMMITTED_COMMITTED) != 0;
        found->kept = pg_cell_i64(result, 0, DB_COL_PG_COMMITTED_KEPT) != 0;
    }
    PQclear(result);
    return rc;
}

static int begin(struct pg_conn *conn, const char *sql)
{
    const struct pg_url *url = &conn->pg->url;
    const char *const args[] = { url->quoted, PG_STATEMENT_TIMEOUT, PG_LOCK_TIMEOUT };
    int rc = pg_conn_exec(conn, sql, "BEGIN", NULL, NULL);
    if (rc == 0 && url->pooler == PG_POOLER_TRANSACTION)
        rc = pg_conn_ask(conn, DB_OWN_PG_TRANSACTION_SETTINGS, args, NULL, NULL);
    return rc;
}

/* A transaction that failed ends with its connection. */
static int finish(struct pg_conn *conn, int rc)
{
    if (rc == 0)
        rc = pg_conn_exec(conn, "COMMIT", "COMMIT", NULL, NULL);
    conn->lost |= rc != 0;
    return rc;
}

/* The process first, then the row, each with a snapshot of its own: what the process committed
 * before it ended is seen. In one transaction, so that a pooler has both answered by one server. */
static int look(struct pg *pg, const struct pg_trace *trace, struct found *ret_found)
{
    struct pg_conn *conn;
    struct hf_arena arena;
    *ret_found = (struct found){ 0 };
    int rc = pg_pool_take(pg, &conn, NULL);
    if (rc)
        return rc;
    hf_arena_init(&arena, pg->alloc);
    rc = begin(conn, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY");
    if (rc == 0)
        rc = ask_ended(conn, &trace->process, &arena, ret_found);
    if (rc == 0)
        rc = ask_committed(conn, trace, &arena, ret_found);
    rc = finish(conn, rc);
    hf_arena_fini(&arena);
    pg_pool_give(conn);
    return rc;
}

void pg_forget_commits(struct pg_conn *conn)
{
    int rc = begin(conn, "BEGIN");
    if (rc == 0)
        rc = pg_conn_ask(conn, DB_OWN_PG_FORGET_COMMITS, NULL, NULL, NULL);
    (void)finish(conn, rc); /* the next one that comes to it does it */
}

/* A process that waits for a lock, or for a standby, notices late that its client is gone. */
enum pg_outcome pg_outcome_of(struct pg *pg, const struct pg_trace *trace)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = pg_mono_ms() + pg->busy_ms;
    do {
        struct found found;
        int rc = look(pg, trace, &found);
        if (rc == 0 && found.committed)
            return PG_COMMITTED;
        if (rc == 0 && (found.other_history || !found.kept))
            return PG_UNKNOWN;
        if (rc == 0 && found.ended)
            return PG_NOTHING;
        clock->wait_ms(clock->user, PAUSE_MS);
    } while (pg_mono_ms() < until);
    return PG_UNKNOWN;
}
