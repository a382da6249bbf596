/* Batches as one transaction.
 *
 * One trip: the pipeline up to its Sync is an implicit transaction. Expectations are checked
 * in SQL, where they raise, so no lock outlives a round trip. The first statement returns the
 * clocks and the incarnation, and leaves the row by which the transaction is found if its answer
 * is lost (db/pg/outcome.c).
 *
 * Two trips: a batch whose expectations SQL cannot check (of a SELECT, of RETURNING, of many
 * runs of one statement) runs alone between BEGIN and COMMIT.
 *
 * Company: many batches may share one transaction. A failure undoes them all; they run again
 * without the one that failed, and that one runs by itself. */
#include <string.h>

#include "base/text.h"
#include "db/batch.h"
#include "db/pg/pg.h"

#define REPEATS_MAX 8 /* of one batch, after deadlocks and lost connections */

/* One transaction on its way. */
struct running {
    struct pg *pg;
    struct pg_conn *conn;
    struct pg_pipe pipe;
    struct hf_arena arena;
    struct pg_member *const *members;
    size_t count;
    hf_ms now;
    hf_ms lease_now;
    int64_t incarnation;
    hf_ms began_at; /* monotonic */
    struct pg_trace trace;
    bool reads; /* it is a transaction that only reads */
    bool two_trips;
    bool ends;     /* what commits it was handed over to libpq: it may be committed */
    bool unkept;   /* a result could not be stored */
    bool resolved; /* its answer was lost, and it was found committed */
    int rc;        /* of the first that failed */
    struct hf_err err;
    bool transient;
    size_t culprit; /* a member, or `count`: the transaction as a whole */
};

/* Of what belongs to no member. */
#define NOBODY SIZE_MAX

bool pg_checked_in_sql(const struct pg *pg, const struct hf_batch *batch)
{
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct hf_call *call = &batch->calls[i];
        const struct hf_pg_text *one = pg_text_of(pg, call->statement);
        if (call->expect != HF_ANY_COUNT &&
            (!one->guarded || (call->rows > 1 && !one->sets)))
            return false;
    }
    return true;
}

/* ---- sending ----------------------------------------------------------------------- */

static void send_texts(struct pg_pipe *pipe, enum db_own which, const char *const *texts)
{
    struct pg_args args = { .count = db_own_pg[which].params,
                            .values = (const char **)(uintptr_t)texts };
    pg_pipe_send(pipe, pg_own(pipe->conn->pg, which), false, &args,
                 (struct pg_sent){ .kind = PG_SENT_OTHER, .member = NOBODY });
}

/* What this transaction needs to know before its first statement. */
static void send_settings(struct pg *pg, struct pg_pipe *pipe)
{
    if (pg->url.pooler == PG_POOLER_TRANSACTION) {
        const char *const texts[] = { pg->url.quoted, PG_STATEMENT_TIMEOUT,
                                      PG_LOCK_TIMEOUT };
        send_texts(pipe, DB_OWN_PG_TRANSACTION_SETTINGS, texts);
    }
    if (!pg->system_clock) {
        const struct hf_clock *clock = pg->clock;
        const char *now = pg_i64_text(pipe->arena, clock->wall_ms(clock->user));
        const char *lease = pg_i64_text(pipe->arena, clock->mono_ms(clock->user) +
                                                         pg->lease_offset_ms);
        const char *const texts[] = { now, lease };
        pipe->failed |= !now || !lease;
        send_texts(pipe, DB_OWN_PG_CLOCK, texts);
    }
}

static int send_call(struct running *run, size_t member, size_t at)
{
    struct hf_batch *batch = run->members[member]->batch;
    struct hf_call *call = &batch->calls[at];
    const struct hf_pg_text *one = pg_text_of(run->pg, call->statement);
    bool guarded = !run->two_trips && !run->reads && call->expect != HF_ANY_COUNT;
    struct pg_sent note = { .kind = PG_SENT_CALL, .member = member, .call = at };
    uint32_t runs = one->sets ? 1 : call->rows;
    int given = (int)(call->once + (one->sets ? strlen(one->sets) : call->width));
    if (!one->text || given != one->params)
        return hf_fail(&run->err, HF_EINTERNAL, NULL,
                       "statement %s takes %d arguments and was given %d", one->name,
                       one->params, given);
    int rc = 0;
    for (uint32_t set = 0; rc == 0 && set < runs; set++) {
        struct pg_args args;
        rc = one->sets ? pg_args_sets(&run->arena, call, one->sets, &args)
                       : pg_args_set(&run->arena, call, set, &args);
        if (rc == 0 && guarded)
            rc = pg_args_expect(&run->arena, call->expect, &args);
        if (rc == 0)
            pg_pipe_send(&run->pipe, call->statement, guarded, &args, note);
    }
    return rc ? hf_fail_plain(&run->err, rc) : 0;
}

void pg_run_forget(struct pg *pg, struct hf_batch *batch)
{
    hf_results_forget(&pg->sql, batch);
    batch->lost = false;
    for (size_t i = 0; i < batch->call_count; i++) {
        batch->calls[i].changed = 0;
        batch->calls[i].full = false;
        batch->calls[i].out = NULL;
        batch->calls[i].out_count = 0;
        batch->calls[i].out_width = 0;
    }
}

static int send_member(struct running *run, size_t member)
{
    struct hf_batch *batch = run->members[member]->batch;
    int rc = 0;
    pg_run_forget(run->pg, batch);
    for (size_t i = 0; rc == 0 && i < batch->call_count; i++)
        rc = send_call(run, member, i);
    if (rc) {
        run->rc = rc;
        run->culprit = member;
    }
    return rc;
}

/* Behind a pooler only the answer to the head tells which process runs the transaction: it is
 * asked for at once. */
static void send_head(struct running *run)
{
    bool pooled = run->pg->url.pooler == PG_POOLER_TRANSACTION;
    enum db_own head = pooled ? DB_OWN_PG_BEGIN_POOLED : DB_OWN_PG_BEGIN;
    const char *texts[] = { run->trace.nonce, pg_i64_text(&run->arena, run->trace.epoch),
                            pg_conn_sized(run->conn) };
    struct pg_args args = { .count = db_own_pg[head].params, .values = texts };
    run->pipe.failed |= !texts[1];
    pg_pipe_send(&run->pipe, pg_own(run->pg, head), false, &args,
                 (struct pg_sent){ .kind = PG_SENT_HEAD, .member = NOBODY });
    if (pooled)
        pg_pipe_flush_request(&run->pipe);
}

static int send_all(struct running *run)
{
    struct pg_pipe *pipe = &run->pipe;
    int rc = 0;
    if (run->two_trips)
        pg_pipe_plain(pipe, "BEGIN");
    send_settings(run->pg, pipe);
    send_head(run);
    for (size_t i = 0; rc == 0 && i < run->count; i++)
        rc = send_member(run, i);
    pg_pipe_sync(pipe);
    return rc;
}

/* ---- the server's clock ------------------------------------------------------------ */

#define CLOCK_TRIP_MS 200 /* an answer that took longer tells little */
#define CLOCK_APART_MS 100

/* How far the clocks are apart. Where it is next to nothing they count as one. */
static void note_clock(struct running *run)
{
    struct pg *pg = run->pg;
    hf_ms trip = pg_mono_ms() - run->began_at;
    if (!pg->system_clock || trip > CLOCK_TRIP_MS)
        return;
    hf_ms ahead = run->now - (pg->clock->wall_ms(pg->clock->user) - trip / 2);
    hf_ms off = ahead - atomic_load_explicit(&pg->ahead_ms, memory_order_relaxed);
    if (off > CLOCK_APART_MS || off < -CLOCK_APART_MS)
        atomic_store_explicit(&pg->ahead_ms, ahead, memory_order_relaxed);
}

/* ---- answers ----------------------------------------------------------------------- */

/* Null where it was not asked for. */
static void note_size(struct pg_conn *conn, const PGresult *result, int column)
{
    if (!PQgetisnull(result, 0, column))
        pg_conn_note_size(conn, pg_cell_i64(result, 0, column));
}

/* The heads begin with the same columns. */
static void read_head(struct running *run, const PGresult *result)
{
    if (PQntuples(result) != 1) {
        run->rc = hf_fail(&run->err, HF_ENOTSTORE, "db",
                          "the row of hf_store is missing");
        return;
    }
    run->now = pg_cell_i64(result, 0, DB_COL_PG_BEGIN_NOW);
    run->lease_now = pg_cell_i64(result, 0, DB_COL_PG_BEGIN_LEASE_NOW);
    run->incarnation = pg_cell_i64(result, 0, DB_COL_PG_BEGIN_INCARNATION);
    atomic_store_explicit(&run->pg->epoch, pg_cell_i64(result, 0, DB_COL_PG_BEGIN_EPOCH),
                          memory_order_relaxed);
    note_clock(run);
    if (run->reads) {
        note_size(run->conn, result, DB_COL_PG_LOOK_BYTES);
        return;
    }
    atomic_store_explicit(&run->pg->bell.followed,
                          pg_cell_i64(result, 0, DB_COL_PG_BEGIN_FOLLOWED_UNTIL) >
                              run->now,
                          memory_order_relaxed);
    run->conn->process.timeline = pg_cell_i64(result, 0, DB_COL_PG_BEGIN_TIMELINE);
    note_size(run->conn, result, DB_COL_PG_BEGIN_BYTES);
    if (run->pg->url.pooler == PG_POOLER_TRANSACTION)
        run->trace.process = (struct pg_process){
            pg_cell_i64(result, 0, DB_COL_PG_BEGIN_POOLED_PID),
            pg_cell_i64(result, 0, DB_COL_PG_BEGIN_POOLED_BEGAN),
            pg_cell_i64(result, 0, DB_COL_PG_BEGIN_TIMELINE),
            pg_cell_i64(result, 0, DB_COL_PG_BEGIN_POOLED_SYSTEM_ID)
        };
}

static int read_call(struct running *run, const struct pg_sent *sent,
                     const PGresult *result)
{
    struct hf_batch *batch = run->members[sent->member]->batch;
    struct hf_call *call = &batch->calls[sent->call];
    const struct hf_pg_text *one = pg_text_of(run->pg, sent->statement / 2);
    if (sent->statement % 2) { /* guarded: its one cell is the count */
        call->changed += pg_cell_i64(result, 0, 0);
        return 0;
    }
    if (!one->reads) {
        const char *tuples = PQcmdTuples((PGresult *)(uintptr_t)result);
        int64_t changed = 0;
        if (tuples[0] && hf_parse_i64(tuples, 0, INT64_MAX, NULL, &changed, NULL) == 0)
            call->changed += changed;
    }
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return 0;
    return pg_rows_add(batch, call, result);
}

static void note_error(struct running *run, const struct pg_sent *sent,
                       const PGresult *result)
{
    bool of_call = sent->kind == PG_SENT_CALL || sent->kind == PG_SENT_PREPARE;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (run->rc)
        return;
    if (!severity) {
        /* Every server says how grave it is; so these are a pooler's own words, that its
         * connection to the server broke. The server may have committed by then. */
        run->conn->lost = true;
        return;
    }
    if (hf_same(severity, "FATAL") || hf_same(severity, "PANIC"))
        return; /* the connection ends: evidence tells what became of the transaction */
    run->rc = pg_fail(result, pg_text_of(run->pg, sent->statement / 2)->name, &run->err);
    run->transient = pg_is_transient(result);
    run->culprit = of_call && sent->member < run->count ? sent->member : run->count;
    if (of_call && sent->member < run->count)
        run->members[sent->member]->batch->failed_call = sent->call;
}

static void take_answer(struct running *run, const struct pg_sent *sent,
                        const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_FATAL_ERROR)
        note_error(run, sent, result);
    if (run->rc || (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK))
        return;
    if (sent->kind == PG_SENT_HEAD)
        read_head(run, result);
    else if (sent->kind == PG_SENT_CALL && read_call(run, sent, result)) {
        run->unkept = true;
        if (run->reads || run->two_trips) /* otherwise it may be committed */
            run->rc = hf_fail(&run->err, HF_ENOMEM, NULL, "results cannot be stored");
        run->culprit = sent->member;
    }
}

/* Until the Sync's own answer; false when the connection broke before. */
static bool take_answers(struct running *run, const struct pg_sent *sent)
{
    for (; sent; sent = sent->next) {
        PGresult *result = pg_pipe_answer(&run->pipe, sent);
        /* An error of the commit itself comes before the Sync's answer. */
        while (result && sent->kind == PG_SENT_SYNC && !run->conn->lost &&
               PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
            take_answer(run, sent, result);
            PQclear(result);
            result = pg_pipe_answer(&run->pipe, sent);
        }
        if (result)
            take_answer(run, sent, result);
        PQclear(result);
        if (run->conn->lost)
            return false;
    }
    return true;
}

/* ---- expectations that only we can check ------------------------------------------- */

static int check_expectations(const struct pg *pg, struct hf_batch *batch,
                              struct hf_err *err)
{
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct hf_call *call = &batch->calls[i];
        const struct hf_pg_text *one = pg_text_of(pg, call->statement);
        int64_t count = one->reads ? (int64_t)call->out_count : call->changed;
        if (call->expect == HF_ANY_COUNT || count == call->expect)
            continue;
        batch->failed_call = i;
        return hf_fail(err, HF_EGUARD, NULL, "statement %s met %lld rows, not %lld",
                       one->name, (long long)count, (long long)call->expect);
    }
    return 0;
}

/* The second trip. */
static bool end_two_trips(struct running *run)
{
    if (run->rc == 0) {
        run->rc = check_expectations(run->pg, run->members[0]->batch, &run->err);
        run->culprit = 0;
    }
    struct pg_sent **before = run->pipe.last;
    pg_pipe_plain(&run->pipe, run->rc ? "ROLLBACK" : "COMMIT");
    pg_pipe_sync(&run->pipe);
    pg_count(&run->pg->counts.two_trips);
    run->ends = run->rc == 0;
    return pg_pipe_flush(&run->pipe) && take_answers(run, *before);
}

/* ---- one transaction --------------------------------------------------------------- */

/* What a committed batch would have returned: its reads, as they are now; its counts, where SQL
 * has vouched for them. */
static int read_again(struct pg *pg, struct hf_batch *batch, struct hf_err *err);

static void take_committed(struct running *run)
{
    pg_count(&run->pg->counts.resolved);
    run->resolved = true;
    run->rc = 0;
    for (size_t i = 0; run->rc == 0 && i < run->count; i++)
        run->rc = read_again(run->pg, run->members[i]->batch, &run->err);
    if (run->rc)
        run->rc = hf_fail(&run->err, HF_EUNCERTAIN, NULL,
                          "it was committed, but what it returned cannot be read");
}

/* The answer did not come. Was it committed? */
static void resolve_lost(struct running *run)
{
    pg_count(&run->pg->counts.lost);
    run->culprit = run->count;
    pg_ring_mark(run->members, run->count, false); /* it may not have got through */
    switch (run->ends ? pg_outcome_of(run->pg, &run->trace) : PG_NOTHING) {
    case PG_COMMITTED: take_committed(run); break;
    case PG_NOTHING:
        run->rc = pg_fail_lost("nothing was written", &run->err);
        run->transient = true;
        break;
    case PG_UNKNOWN:
        pg_count(&run->pg->counts.uncertain);
        run->rc = hf_fail(&run->err, HF_EUNCERTAIN, NULL,
                          "the connection broke while it was being committed");
        break;
    }
}

/* Sends it and takes the answers; false when the connection broke. */
static bool converse(struct running *run)
{
    if (send_all(run))
        return false;
    run->ends = !run->two_trips;
    bool out = pg_pipe_flush(&run->pipe);
    /* Only now: the ring is for a transaction of which all has left. */
    if (out && !run->two_trips)
        pg_ring_behind(run->conn, run->members, run->count);
    if (!out || !take_answers(run, run->pipe.first))
        return false;
    return !run->two_trips || end_two_trips(run);
}

static void raise_history(struct running *run)
{
    int rc = pg_raise_history(run->conn, &run->err);
    run->rc =
        rc ? rc
           : hf_fail(&run->err, HF_EBUSY, NULL,
                     "the server began a new history (a failover or a restore), and the "
                     "store a new incarnation: leases from before are refused");
    run->culprit = run->count;
}

/* It could not be asked for its history: again, on another connection. */
static void lose(struct running *run)
{
    run->conn->lost = true;
    run->rc = pg_fail_lost("a new history", &run->err);
    run->transient = true;
    run->culprit = run->count;
}

/* Of a transaction that ended on this connection. */
static void finish_whole(struct running *run)
{
    pg_pipe_end(&run->pipe);
    if (run->rc == 0 && run->unkept) {
        run->rc = hf_fail(
            &run->err, HF_EUNCERTAIN, NULL,
            "it was committed, but there is no memory for what it returned");
        run->culprit = run->count;
    }
    if (run->rc == PG_NEW_HISTORY && pg_ring_done(run->conn))
        raise_history(run);
    else if (run->rc == PG_NEW_HISTORY)
        lose(run);
    else if (run->rc == 0 && pg_trace_forgets(&run->trace) && pg_ring_done(run->conn))
        pg_forget_commits(run->conn);
}

static void run_once(struct running *run)
{
    run->two_trips = run->count == 1 &&
                     !pg_checked_in_sql(run->pg, run->members[0]->batch);
    run->culprit = run->count;
    pg_ring_mark(run->members, run->count, false);
    run->rc = pg_pool_take(run->pg, &run->conn, &run->err);
    if (run->rc)
        return;
    run->began_at = pg_mono_ms();
    run->rc = pg_trace_begin(run->pg, run->conn, &run->trace, &run->err);
    if (run->rc) {
        pg_pool_give(run->conn);
        return;
    }
    hf_arena_init(&run->arena, run->pg->alloc);
    pg_pipe_begin(&run->pipe, run->conn, &run->arena);
    bool whole = converse(run);
    if (whole)
        finish_whole(run);
    else
        run->conn->lost = true; /* what was queued and not sent must never go out */
    if (!whole && run->rc == PG_NEW_HISTORY)
        lose(run);
    hf_arena_fini(&run->arena);
    pg_pool_give(run->conn);
    if (!whole && run->rc == 0)
        resolve_lost(run);
}

static void stamp(const struct running *run, struct hf_batch *batch)
{
    batch->now = run->now;
    batch->lease_now = run->lease_now;
    batch->incarnation = run->incarnation;
}

static void answer(struct pg_member *member, int rc, const struct hf_err *err)
{
    member->rc = rc;
    if (rc)
        member->err = *err;
}

enum verdict { ANSWERED, CULPRIT, AGAIN };

/* Runs these in one transaction. */
static enum verdict run_some(struct pg *pg, struct pg_member *const *members,
                             size_t count, size_t *ret_culprit)
{
    struct running run = { .pg = pg, .members = members, .count = count };
    run_once(&run);
    for (size_t i = 0; i < count; i++) {
        answer(members[i], run.rc, &run.err);
        if (run.rc == 0 && !run.resolved) /* otherwise stamped by what was read again */
            stamp(&run, members[i]->batch);
    }
    *ret_culprit = run.culprit;
    if (run.rc && count > 1 && run.culprit < count)
        return CULPRIT;
    return run.rc && run.transient ? AGAIN : ANSWERED;
}

static void run_alone(struct pg *pg, struct pg_member *member)
{
    size_t culprit;
    for (int i = 0; i < REPEATS_MAX && run_some(pg, &member, 1, &culprit) == AGAIN; i++)
        pg_count(&pg->counts.replays);
}

/* These in one transaction; the process that failed there runs again alone, or, where it
 * was gathered of many, is left as it failed. */
static void run_together(struct pg *pg, struct pg_member **left, size_t lefts)
{
    struct pg_member *alone[PG_GROUP_MAX];
    size_t alones = 0;
    for (int repeats = 0; lefts > 1 && repeats < REPEATS_MAX;) {
        size_t culprit;
        enum verdict verdict = run_some(pg, left, lefts, &culprit);
        if (verdict == ANSWERED)
            lefts = 0;
        repeats += verdict == AGAIN;
        if (verdict != CULPRIT)
            continue;
        pg_count(&pg->counts.replays);
        if (!left[culprit]->parts)
            alone[alones++] = left[culprit];
        lefts--;
        memmove(&left[culprit], &left[culprit + 1], (lefts - culprit) * sizeof(left[0]));
    }
    if (lefts == 1)
        run_alone(pg, left[0]);
    for (size_t i = 0; i < alones; i++)
        run_alone(pg, alone[i]);
}

/* Some set changed nothing, or was refused: each must hear so for itself. */
static bool refused(int rc)
{
    return rc == HF_EGUARD || rc == HF_ECONFLICT || rc == HF_EINTERNAL ||
           rc == HF_ETRANSITION || rc == HF_ENOMEM;
}

/* Many small batches as one statement each, and the others next to them, in one
 * transaction. */
static void run_gathered(struct pg *pg, struct pg_member **gather, size_t gathers,
                         struct pg_member **left, size_t lefts)
{
    struct pg_gathered all;
    struct hf_arena arena;
    hf_arena_init(&arena, pg->alloc);
    int rc = pg_gather(pg, &all, gather, gathers, &arena);
    if (rc == 0)
        left[lefts++] = &all.member;
    run_together(pg, left, lefts);
    rc = rc ? rc : all.member.rc;
    if (refused(rc)) {
        pg_count(&pg->counts.replays);
        run_together(pg, gather, gathers);
    } else {
        (void)atomic_fetch_add_explicit(&pg->counts.gathered, (int64_t)gathers,
                                        memory_order_relaxed);
        pg_gather_answer(pg, &all, gather, gathers);
    }
    hf_results_forget(&pg->sql, &all.batch);
    hf_arena_fini(&arena);
}

void pg_run_group(struct pg *pg, struct pg_member *const *members, size_t count)
{
    struct pg_member *gather[PG_GROUP_MAX], *left[PG_GROUP_MAX], *alone[PG_GROUP_MAX];
    size_t gathers = 0, lefts = 0, alones = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hf_batch *batch = members[i]->batch;
        if (count > 1 && pg_gather_fits(pg, batch, gathers ? gather[0]->batch : batch))
            gather[gathers++] = members[i];
        else if (count > 1 && !pg_checked_in_sql(pg, batch))
            alone[alones++] = members[i];
        else
            left[lefts++] = members[i];
    }
    if (gathers > 1) {
        run_gathered(pg, gather, gathers, left, lefts);
    } else {
        memcpy(left + lefts, gather, gathers * sizeof(left[0]));
        run_together(pg, left, lefts + gathers);
    }
    for (size_t i = 0; i < alones; i++)
        run_alone(pg, alone[i]);
}

/* ---- reading ----------------------------------------------------------------------- */

/* `again`: of a batch that is committed. What it wrote is not written again, and what it asserted
 * or locked before it wrote no longer matters. */
static void send_read(struct running *run, bool again)
{
    struct hf_batch *batch = run->members[0]->batch;
    bool snapshot = batch->call_count > 1;
    if (snapshot)
        pg_pipe_plain(&run->pipe, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    send_settings(run->pg, &run->pipe);
    const char *texts[] = { pg_conn_sized(run->conn) };
    struct pg_args args = { .count = 1, .values = texts };
    pg_pipe_send(&run->pipe, pg_own(run->pg, DB_OWN_PG_LOOK), false, &args,
                 (struct pg_sent){ .kind = PG_SENT_HEAD, .member = NOBODY });
    for (size_t i = 0; run->rc == 0 && i < batch->call_count; i++) {
        const struct hf_pg_text *one = pg_text_of(run->pg, batch->calls[i].statement);
        if (again && (!one->reads || one->before))
            continue;
        if (one->reads)
            run->rc = send_call(run, 0, i);
        else
            run->rc = hf_fail(&run->err, HF_EREADONLY, NULL,
                              "statement %s writes, in a batch to read", one->name);
    }
    if (snapshot)
        pg_pipe_plain(&run->pipe, "COMMIT");
    pg_pipe_sync(&run->pipe);
}

static int read_once(struct pg *pg, struct hf_batch *batch, bool again, bool *ret_repeat,
                     struct hf_err *err)
{
    struct pg_member member = { .batch = batch };
    struct pg_member *members[] = { &member };
    struct running run = { .pg = pg, .members = members, .count = 1, .reads = true };
    *ret_repeat = false;
    int rc = pg_pool_take(pg, &run.conn, err);
    if (rc)
        return rc;
    pg_run_forget(pg, batch);
    hf_arena_init(&run.arena, pg->alloc);
    run.began_at = pg_mono_ms();
    pg_pipe_begin(&run.pipe, run.conn, &run.arena);
    send_read(&run, again);
    if (run.rc || !pg_pipe_flush(&run.pipe) || !take_answers(&run, run.pipe.first)) {
        run.conn->lost = true;
        if (!run.rc) {
            run.rc = pg_fail_lost("reading", &run.err);
            *ret_repeat = true;
        }
    } else {
        pg_pipe_end(&run.pipe);
    }
    hf_arena_fini(&run.arena);
    pg_pool_give(run.conn);
    if (run.rc == 0 && !again)
        run.rc = check_expectations(pg, batch, &run.err);
    stamp(&run, batch);
    return hf_fail_as(err, run.rc, &run.err);
}

int pg_run_read(struct pg *pg, struct hf_batch *batch, struct hf_err *err)
{
    bool repeat = true;
    int rc = HF_EUNREACHABLE;
    for (int i = 0; repeat && i < REPEATS_MAX; i++)
        rc = read_once(pg, batch, false, &repeat, err);
    return rc;
}

static int read_again(struct pg *pg, struct hf_batch *batch, struct hf_err *err)
{
    bool repeat = true;
    int rc = HF_EUNREACHABLE;
    for (int i = 0; repeat && i < REPEATS_MAX; i++)
        rc = read_once(pg, batch, true, &repeat, err);
    for (size_t i = 0; rc == 0 && i < batch->call_count; i++)
        if (!pg_text_of(pg, batch->calls[i].statement)->reads &&
            batch->calls[i].expect != HF_ANY_COUNT)
            batch->calls[i].changed = batch->calls[i].expect;
    batch->lost = true;
    return rc;
}
