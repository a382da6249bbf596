/* Batches as one transaction.
 *
 * One trip: the pipeline up to its Sync is an implicit transaction. Expectations are checked
 * in SQL, where they raise, so no lock outlives a round trip. The first statement gives the
 * transaction's id, the clocks and the incarnation; its answer is asked for at once, so that
 * a commit whose answer is lost can be asked about (db/pg/outcome.c).
 *
 * Lone: one statement that writes one unit, with nothing before it; if its answer is lost, what
 * it wrote is looked for.
 *
 * Two trips: a batch whose expectations SQL cannot check (of a SELECT, of RETURNING, of many
 * runs of one statement) runs alone between BEGIN and COMMIT.
 *
 * Company: many batches may share one transaction. A failure undoes them all; they run again
 * without the one that failed, and that one runs by itself.
 */
#include <string.h>

#include "base/text.h"
#include "db/batch.h"
#include "db/pg/pg.h"

#define REPEATS_MAX 8     /* of one batch, after deadlocks and lost connections */
#define HEAD_KEPT_MS 1000 /* as long as waiters wait before they look by themselves */

/* One transaction on its way. */
struct running {
    struct pg *pg;
    struct pg_conn *conn;
    struct pg_pipe pipe;
    struct hf_arena arena;
    struct pg_member *const *members;
    size_t count;
    int64_t xid; /* of the transaction, once it came */
    hf_ms now;
    hf_ms lease_now;
    int64_t incarnation;
    int64_t timeline;    /* of the server's history */
    hf_ms began_at;      /* monotonic */
    struct pg_gone gone; /* who runs it, for when it is lost without an id */
    bool light;          /* it began with pg_begin_light, */
    bool lone;           /* or with its one call that writes, */
    bool answered;       /* whose answer has come */
    bool idle;           /* and says that it wrote nothing */
    bool commits;        /* what ends it has gone out: it may be committed */
    bool fatal;          /* the server itself ended the connection, and said so */
    int rc;              /* of the first that failed */
    struct hf_err err;
    bool transient;
    size_t culprit; /* a member, or `count`: the transaction as a whole */
};

/* Of what belongs to no member. */
#define NOBODY SIZE_MAX

bool pg_checked_in_sql(const struct hf_batch *batch)
{
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct hf_call *call = &batch->calls[i];
        const struct hf_pg_text *one = &hf_sql_pg[call->statement];
        if (call->expect != HF_ANY_COUNT &&
            (!one->guarded || (call->rows > 1 && !one->sets)))
            return false;
    }
    return true;
}

/* ---- sending ----------------------------------------------------------------------- */

static void send_texts(struct pg_pipe *pipe, enum hf_sql_id id, const char *const *texts)
{
    struct pg_args args = { .count = hf_sql_pg[id].params,
                            .values = (const char **)(uintptr_t)texts };
    pg_pipe_send(pipe, id, false, &args,
                 (struct pg_sent){ .kind = PG_SENT_OTHER, .member = NOBODY });
}

/* What this transaction needs to know before its first statement. */
static void send_settings(struct pg *pg, struct pg_pipe *pipe)
{
    if (pg->url.pooler == PG_POOLER_TRANSACTION) {
        const char *const texts[] = { pg->url.quoted, PG_STATEMENT_TIMEOUT,
                                      PG_LOCK_TIMEOUT };
        send_texts(pipe, HF_SQL_PG_SETTINGS, texts);
    }
    if (!pg->system_clock) {
        const struct hf_clock *clock = pg->clock;
        const char *now = pg_i64_text(pipe->arena, clock->wall_ms(clock->user));
        const char *lease = pg_i64_text(pipe->arena, clock->mono_ms(clock->user) +
                                                         pg->lease_offset_ms);
        const char *const texts[] = { now, lease };
        pipe->failed |= !now || !lease;
        send_texts(pipe, HF_SQL_PG_CLOCK, texts);
    }
}

static int send_call(struct running *run, size_t member, size_t at, bool two_trips)
{
    struct hf_batch *batch = run->members[member]->batch;
    struct hf_call *call = &batch->calls[at];
    const struct hf_pg_text *one = &hf_sql_pg[call->statement];
    bool guarded = !two_trips && !run->lone && call->expect != HF_ANY_COUNT;
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
            pg_pipe_send(&run->pipe, (enum hf_sql_id)call->statement, guarded, &args,
                         note);
    }
    return rc ? hf_fail_plain(&run->err, rc) : 0;
}

static int send_member(struct running *run, size_t member, bool two_trips)
{
    struct hf_batch *batch = run->members[member]->batch;
    int rc = 0;
    hf_results_forget(&run->pg->sql, batch);
    for (size_t i = 0; rc == 0 && i < batch->call_count; i++) {
        batch->calls[i].changed = 0;
        batch->calls[i].out = NULL;
        batch->calls[i].out_count = 0;
        batch->calls[i].out_width = 0;
        if (!batch->calls[i].if_lost)
            rc = send_call(run, member, i, two_trips);
    }
    if (rc) {
        run->rc = rc;
        run->culprit = member;
    }
    return rc;
}

/* Followers of the feed, and how far the clocks are apart, are known as of the last whole one. */
static enum hf_sql_id head_of(struct running *run)
{
    if (run->pg->url.pooler == PG_POOLER_TRANSACTION)
        return HF_SQL_PG_BEGIN_POOLED;
    run->light = run->conn->headed_at &&
                 run->began_at - run->conn->headed_at < HEAD_KEPT_MS;
    for (size_t i = 0; i < run->count; i++)
        run->light = run->light && run->members[i]->batch->unstamped;
    return run->light ? HF_SQL_PG_BEGIN_LIGHT : HF_SQL_PG_BEGIN;
}

/* One call that writes, and others that read what it has written: if the answers are lost, they
 * tell what became of it. So it needs no id, and nothing goes before it. (That is 30 to 40 us; and
 * an early answer for the id would be sent, and wake us, in the middle.) Whether it did what is
 * expected we see ourselves: if not it wrote nothing. A pooler's server process lives on without
 * us. */
static bool goes_lone(const struct running *run)
{
    const struct hf_batch *batch = run->members[0]->batch;
    const struct hf_call *first = batch->calls;
    bool lone = run->light && run->pg->url.pooler == PG_POOLER_NONE && run->count == 1 &&
                batch->call_count > 1 && hf_sql_pg[first->statement].lone &&
                first->rows == 1 && (first->expect == HF_ANY_COUNT || first->expect == 1);
    for (size_t i = 1; lone && i < batch->call_count; i++)
        lone = hf_sql_pg[batch->calls[i].statement].reads;
    return lone;
}

static int send_all(struct running *run, bool two_trips)
{
    struct pg_pipe *pipe = &run->pipe;
    if (two_trips)
        pg_pipe_plain(pipe, "BEGIN");
    send_settings(run->pg, pipe);
    enum hf_sql_id head = head_of(run);
    run->lone = !two_trips && goes_lone(run);
    if (run->lone) {
        run->gone = (struct pg_gone){ run->conn->backend, run->conn->backend_began,
                                      run->conn->timeline };
    } else {
        pg_pipe_send(pipe, head, false, &(struct pg_args){ 0 },
                     (struct pg_sent){ .kind = PG_SENT_HEAD, .member = NOBODY });
        pg_pipe_flush_request(pipe);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < run->count; i++)
        rc = send_member(run, i, two_trips);
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

static void read_head(struct running *run, const PGresult *result)
{
    if (PQntuples(result) != 1) {
        run->rc = hf_fail(&run->err, HF_ENOTSTORE, "db",
                          "the store's own row is missing");
        return;
    }
    run->xid = pg_cell_i64(result, 0, 0);
    if (run->light) {
        run->timeline = run->conn->timeline;
        return;
    }
    run->now = pg_cell_i64(result, 0, 1);
    run->lease_now = pg_cell_i64(result, 0, 2);
    run->incarnation = pg_cell_i64(result, 0, 3);
    run->timeline = pg_cell_i64(result, 0, 4);
    run->conn->timeline = run->timeline;
    run->conn->headed_at = run->began_at;
    note_clock(run);
    pg_conn_note_size(run->conn, pg_cell_i64(result, 0, 6));
    atomic_store_explicit(&run->pg->bell.followed, pg_cell_i64(result, 0, 5) > run->now,
                          memory_order_relaxed);
}

static int read_call(struct running *run, const struct pg_sent *sent,
                     const PGresult *result)
{
    struct hf_batch *batch = run->members[sent->member]->batch;
    struct hf_call *call = &batch->calls[sent->call];
    const struct hf_pg_text *one = &hf_sql_pg[sent->statement / 2];
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
    if (run->lone && sent->call == 0) {
        run->answered = true;
        run->idle = call->changed == 0;
    }
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return 0;
    return one->packed ? pg_rows_add_packed(batch, call, result)
                       : pg_rows_add(batch, call, result);
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
    if (hf_same(severity, "FATAL") || hf_same(severity, "PANIC")) {
        run->fatal = true; /* what became of the transaction is to be asked */
        return;
    }
    run->rc = pg_fail(result, hf_sql_pg[sent->statement / 2].name, &run->err);
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
    else if (sent->kind == PG_SENT_CALL) {
        int rc = read_call(run, sent, result);
        if (rc) {
            run->rc = hf_fail(&run->err, rc, NULL, "results cannot be kept");
            run->culprit = sent->member;
        }
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

static int check_expectations(struct hf_batch *batch, struct hf_err *err)
{
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct hf_call *call = &batch->calls[i];
        const struct hf_pg_text *one = &hf_sql_pg[call->statement];
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
        run->rc = check_expectations(run->members[0]->batch, &run->err);
        run->culprit = 0;
    }
    struct pg_sent **before = run->pipe.last;
    pg_pipe_plain(&run->pipe, run->rc ? "ROLLBACK" : "COMMIT");
    pg_pipe_sync(&run->pipe);
    pg_count(&run->pg->counts.two_trips);
    bool out = pg_pipe_flush(&run->pipe);
    run->commits = out && run->rc == 0;
    return out && take_answers(run, *before);
}

/* ---- one transaction --------------------------------------------------------------- */

/* What was not ended ends with the connection; and what ended with the server's last words before
 * the first answer was not begun. */
static enum pg_outcome outcome_of(struct running *run)
{
    if (!run->commits || run->idle || (run->fatal && !run->xid && !run->answered))
        return PG_ABORTED;
    if (run->lone)
        return pg_outcome_seen(run->pg, &run->gone, run->members[0]->batch);
    if (!run->xid)
        return PG_UNKNOWN;
    return pg_outcome_of(run->pg,
                         &(struct pg_past){ run->xid, run->timeline, run->began_at });
}

/* The answer did not come. Was it committed? */
static void settle_lost(struct running *run)
{
    pg_count(&run->pg->counts.lost);
    run->culprit = run->count;
    pg_ring_mark(run->members, run->count, false); /* it may not have got through */
    enum pg_outcome outcome = outcome_of(run);
    if (outcome == PG_COMMITTED) {
        pg_count(&run->pg->counts.resolved);
        run->rc = 0;
        if (run->lone) /* it was found by its results */
            run->members[0]->batch->calls[0].changed = 1;
        for (size_t i = 0; !run->lone && run->rc == 0 && i < run->count; i++)
            run->rc = pg_read_lost(run->pg, run->members[i]->batch, &run->err);
        if (run->rc)
            run->rc = hf_fail(&run->err, HF_EUNCERTAIN, NULL,
                              "it was committed, but what it gave cannot be read");
        return;
    }
    if (outcome == PG_ABORTED) {
        run->rc = pg_fail_lost("nothing was written", &run->err);
        run->transient = true;
        return;
    }
    pg_count(&run->pg->counts.uncertain);
    run->rc = hf_fail(&run->err, HF_EUNCERTAIN, NULL,
                      "the connection broke while it was being committed");
}

/* Sends it and takes the answers; false when the connection broke. */
static bool converse(struct running *run, bool two_trips)
{
    if (send_all(run, two_trips))
        return false;
    bool out = pg_pipe_flush(&run->pipe);
    run->commits = out && !two_trips;
    /* Only now: if not all of a transaction has left, it must be sure not to be committed. */
    if (run->commits)
        pg_ring_behind(run->conn, run->members, run->count);
    if (!out || !take_answers(run, run->pipe.first))
        return false;
    if (run->lone && run->rc == 0) {
        run->rc = check_expectations(run->members[0]->batch, &run->err);
        run->culprit = 0;
    }
    return !two_trips || end_two_trips(run);
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

static void run_once(struct running *run)
{
    bool two_trips = run->count == 1 && !pg_checked_in_sql(run->members[0]->batch);
    run->culprit = run->count;
    pg_ring_mark(run->members, run->count, false);
    run->rc = pg_pool_take(run->pg, &run->conn, &run->err);
    if (run->rc)
        return;
    run->began_at = pg_mono_ms();
    hf_arena_init(&run->arena, run->pg->alloc);
    pg_pipe_begin(&run->pipe, run->conn, &run->arena);
    bool whole = converse(run, two_trips);
    if (whole)
        pg_pipe_end(&run->pipe);
    else
        run->conn->lost = true; /* what was queued and not sent must never go out */
    hf_arena_fini(&run->arena);
    if (run->rc == PG_NEW_HISTORY && whole && pg_ring_done(run->conn))
        raise_history(run);
    else if (run->rc == PG_NEW_HISTORY)
        lose(run);
    pg_pool_give(run->conn);
    if (!whole && run->rc == 0)
        settle_lost(run);
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
        if (run.rc == 0)
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

/* These in one transaction; whoever failed there gets a turn alone, or, where it was gathered of
 * many, is left as it failed. */
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

/* Many small batches as one statement each, and the others beside them, in one transaction. */
static void run_gathered(struct pg *pg, struct pg_member **gather, size_t gathers,
                         struct pg_member **left, size_t lefts)
{
    struct pg_gathered all;
    struct hf_arena arena;
    hf_arena_init(&arena, pg->alloc);
    int rc = pg_gather(&all, gather, gathers, &arena);
    if (rc == 0)
        left[lefts++] = &all.member;
    run_together(pg, left, lefts);
    if (rc == 0) {
        rc = all.member.rc;
        hf_results_forget(&pg->sql, &all.batch);
    }
    if (refused(rc)) {
        pg_count(&pg->counts.replays);
        run_together(pg, gather, gathers);
    } else {
        pg_gather_answer(&all, gather, gathers);
    }
    hf_arena_fini(&arena);
}

void pg_run_group(struct pg *pg, struct pg_member *const *members, size_t count)
{
    struct pg_member *gather[PG_GROUP_MAX], *left[PG_GROUP_MAX], *alone[PG_GROUP_MAX];
    size_t gathers = 0, lefts = 0, alones = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hf_batch *batch = members[i]->batch;
        if (count > 1 && pg_gather_fits(batch, gathers ? gather[0]->batch : batch))
            gather[gathers++] = members[i];
        else if (count > 1 && !pg_checked_in_sql(batch))
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

/* `lost`: of a batch that is committed. What it wrote is not written again, and what it asked
 * for before it wrote no longer holds. */
static void send_read(struct running *run, bool lost)
{
    struct hf_batch *batch = run->members[0]->batch;
    bool snapshot = batch->call_count > 1;
    if (snapshot)
        pg_pipe_plain(&run->pipe, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    send_settings(run->pg, &run->pipe);
    pg_pipe_send(&run->pipe, HF_SQL_PG_LOOK, false, &(struct pg_args){ 0 },
                 (struct pg_sent){ .kind = PG_SENT_HEAD, .member = NOBODY });
    for (size_t i = 0; run->rc == 0 && i < batch->call_count; i++) {
        const struct hf_pg_text *one = &hf_sql_pg[batch->calls[i].statement];
        batch->calls[i].changed = 0;
        batch->calls[i].out = NULL;
        batch->calls[i].out_count = 0;
        batch->calls[i].out_width = 0;
        if (lost ? !one->reads || one->asserts : batch->calls[i].if_lost)
            continue;
        if (one->reads)
            run->rc = send_call(run, 0, i, true);
        else
            run->rc = hf_fail(&run->err, HF_EREADONLY, NULL,
                              "statement %s writes, in a batch to read", one->name);
    }
    if (snapshot)
        pg_pipe_plain(&run->pipe, "COMMIT");
    pg_pipe_sync(&run->pipe);
}

static void take_read(struct running *run, const PGresult *result)
{
    if (PQntuples(result) != 1) {
        run->rc = hf_fail(&run->err, HF_ENOTSTORE, "db",
                          "the store's own row is missing");
        return;
    }
    run->now = pg_cell_i64(result, 0, 0);
    run->lease_now = pg_cell_i64(result, 0, 1);
    run->incarnation = pg_cell_i64(result, 0, 2);
    note_clock(run);
    pg_conn_note_size(run->conn, pg_cell_i64(result, 0, 3));
}

static bool take_reads(struct running *run)
{
    for (const struct pg_sent *sent = run->pipe.first; sent; sent = sent->next) {
        PGresult *result = pg_pipe_answer(&run->pipe, sent);
        if (!result)
            return false;
        if (sent->kind == PG_SENT_HEAD && PQresultStatus(result) == PGRES_TUPLES_OK)
            take_read(run, result);
        else
            take_answer(run, sent, result);
        PQclear(result);
        if (run->conn->lost)
            return false;
    }
    return true;
}

static int read_once(struct pg *pg, struct hf_batch *batch, bool lost, bool *ret_again,
                     struct hf_err *err)
{
    struct pg_member member = { .batch = batch };
    struct pg_member *members[] = { &member };
    struct running run = { .pg = pg, .members = members, .count = 1 };
    *ret_again = false;
    int rc = pg_pool_take(pg, &run.conn, err);
    if (rc)
        return rc;
    hf_results_forget(&pg->sql, batch);
    hf_arena_init(&run.arena, pg->alloc);
    run.began_at = pg_mono_ms();
    pg_pipe_begin(&run.pipe, run.conn, &run.arena);
    send_read(&run, lost);
    if (run.rc || !pg_pipe_flush(&run.pipe) || !take_reads(&run)) {
        run.conn->lost = true;
        if (!run.rc) {
            run.rc = pg_fail_lost("reading", &run.err);
            *ret_again = true;
        }
    } else {
        pg_pipe_end(&run.pipe);
    }
    hf_arena_fini(&run.arena);
    pg_pool_give(run.conn);
    if (run.rc == 0 && !lost)
        run.rc = check_expectations(batch, &run.err);
    stamp(&run, batch);
    return hf_fail_as(err, run.rc, &run.err);
}

int pg_run_read(struct pg *pg, struct hf_batch *batch, struct hf_err *err)
{
    bool again = true;
    int rc = HF_EUNREACHABLE;
    for (int i = 0; again && i < REPEATS_MAX; i++)
        rc = read_once(pg, batch, false, &again, err);
    return rc;
}

/* What a committed batch would have given: its reads, as they are now; its counts, where
 * they were vouched for, and 0 where nobody can know. */
int pg_read_lost(struct pg *pg, struct hf_batch *batch, struct hf_err *err)
{
    bool again = true;
    int rc = HF_EUNREACHABLE;
    for (int i = 0; again && i < REPEATS_MAX; i++)
        rc = read_once(pg, batch, true, &again, err);
    for (size_t i = 0; rc == 0 && i < batch->call_count; i++)
        if (!hf_sql_pg[batch->calls[i].statement].reads &&
            batch->calls[i].expect != HF_ANY_COUNT)
            batch->calls[i].changed = batch->calls[i].expect;
    return rc;
}
