/* Claiming sessions: candidates are read, core decides what a claim does to one (a plan), and it is
 * written if the session is still as it was read.
 *
 * A claim takes the session's lease. With it, the open turn continues (its inputs run under the
 * lease), or a turn begins with the next input. A turn whose workers died too often is poison: its
 * inputs are held for an operator, and the turn is set aside with its journal, its save and its
 * nodes, until the operator releases them. A session without a turn and without inputs is idle, and
 * is marked so that no claim looks at it again. A claim names a session, or agents: then it tries
 * sessions whose lease has lapsed, and those that are ready, oldest first. It skips a session that
 * is damaged, and fails only if it gets no other one. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "os/liveness.h"
#include "store/session/session.h"

#define CANDIDATES 8 /* per agent, of those that are ready and of those to look at */
#define LAPSED 32
#define PUSHED 100
#define SWEPT 64

struct claiming {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_session_claim *request;
    struct hf_claimant claimant;
    struct hf_arena arena; /* of the whole call */
    struct hf_session_answer *answer;
    bool done;            /* a session was claimed */
    bool idle;            /* the last one tried had nothing to do */
    struct hf_err damage; /* why the first damaged candidate was skipped */
};

/* ---- writing a claim ---------------------------------------------------------------- */

/* The arguments that say how the session was read: it is written only if it is still so. */
static void put_seen(struct hf_ops *ops, const struct hf_session_row *row)
{
    hf_ops_text(ops, row->s.session_id);
    hf_ops_i64(ops, row->lease.fence);
    hf_ops_text(ops, row->lease.nonce);
    hf_ops_i64_opt(ops, row->lease.expires_at);
    hf_ops_i64_opt(ops, row->turn_key);
}

/* Who acts, for the events that a statement writes. */
static void put_event(struct claiming *c, struct hf_ops *ops)
{
    hf_ops_text(ops, c->who->actor_kind);
    hf_ops_text(ops, c->who->actor);
}

static void add_lease(struct hf_ops *ops, const struct hf_session_row *row,
                      const struct hf_lease *lease)
{
    hf_ops_call(ops, HF_SQL_SESSION_TAKE, 1);
    put_seen(ops, row);
    hf_ops_text(ops, lease->owner);
    hf_ops_text(ops, lease->incarnation);
    hf_ops_text(ops, lease->nonce);
    hf_ops_text(ops, lease->holder);
    hf_ops_i64(ops, lease->fence);
    hf_ops_i64(ops, lease->store);
    hf_ops_i64(ops, lease->ttl_ms);
    hf_ops_i64(ops, lease->claimed_at);
    hf_ops_i64(ops, lease->expires_at);
    ops->batch.holds |= lease->holder != NULL;
    hf_ops_call(ops, HF_SQL_LEASE_BEGIN_SESSION, 1);
    hf_ops_text(ops, row->s.session_id);
    hf_ops_i64(ops, lease->fence);
    hf_ops_text(ops, lease->nonce);
}

static void add_by_session(struct hf_ops *ops, enum hf_sql_id statement,
                           const struct hf_session_row *row)
{
    hf_ops_call(ops, statement, HF_ANY_COUNT);
    hf_ops_text(ops, row->s.session_id);
}

/* Inputs that are queued or wait run under the lease. */
static void add_start(struct claiming *c, struct hf_ops *ops,
                      const struct hf_session_row *row, const struct hf_lease *lease)
{
    bool waits = row->turn_key && row->input_status != HF_STATUS_QUEUED;
    if (row->turn_key) {
        hf_ops_call(ops, HF_SQL_WAITS_DUE, HF_ANY_COUNT);
        hf_ops_text(ops, row->s.session_id);
        hf_ops_text(ops, HF_WAIT_OUTCOME_TIMER);
        put_event(c, ops);
        hf_ops_text(ops, lease->nonce);
    }
    hf_ops_call(ops, HF_SQL_INPUTS_TAKE, HF_ANY_COUNT);
    hf_ops_text(ops, row->s.session_id);
    hf_ops_text(ops, lease->owner);
    hf_ops_text(ops, lease->incarnation);
    hf_ops_text(ops, lease->nonce);
    hf_ops_i64(ops, lease->fence);
    put_event(c, ops);
    hf_ops_text(ops, hf_session_input_note(&ops->arena, lease, NULL, 0));
    hf_ops_text(ops, c->who->correlation_id);
    hf_ops_text(ops, hf_status_word(waits ? row->input_status : HF_STATUS_QUEUED));
    hf_ops_text(ops, waits ? "resumed" : "claimed");
}

/* Running inputs pass to the lease. No status changes; an event reports a lost claim. */
static void add_pass(struct claiming *c, struct hf_ops *ops,
                     const struct hf_session_row *row, const struct hf_session_plan *plan)
{
    const struct hf_lease *lease = &plan->lease;
    hf_ops_call(ops, HF_SQL_INPUTS_RETAKE, HF_ANY_COUNT);
    hf_ops_text(ops, row->s.session_id);
    hf_ops_text(ops, lease->owner);
    hf_ops_text(ops, lease->incarnation);
    hf_ops_text(ops, lease->nonce);
    hf_ops_i64(ops, lease->fence);
    hf_ops_i64(ops, plan->crashes);
    hf_ops_i64_opt(ops, plan->crashed_at);
    if (plan->outcome == HF_LEASE_REENTERED)
        return;
    hf_ops_call(ops, HF_SQL_EVENT_APPEND, 1);
    hf_ops_i64(ops, row->turn_key);
    hf_ops_text(ops, "session_reclaimed");
    put_event(c, ops);
    hf_ops_null(ops);
    hf_ops_text(ops, hf_session_input_note(&ops->arena, lease, NULL, plan->crashes));
    hf_ops_text(ops, c->who->correlation_id);
}

static void add_turn(struct claiming *c, struct hf_ops *ops,
                     const struct hf_session_row *row, const struct hf_session_plan *plan)
{
    if (plan->move == HF_TURN_BEGIN) {
        if (!c->request->session_id) /* any: then one that has something to do */
            add_by_session(ops, HF_SQL_SESSION_HAS_TURN, row);
        add_by_session(ops, HF_SQL_SESSION_DROP_NODES, row);
        add_by_session(ops, HF_SQL_EFFECTS_LEAVE, row);
        hf_ops_text(ops, "{\"reason\":\"the turn was set aside, and began anew\"}");
        add_by_session(ops, HF_SQL_WAITS_DROP, row);
        add_by_session(ops, HF_SQL_TURN_BEGIN, row);
        add_by_session(ops, HF_SQL_TURN_TAKE_INPUT, row);
    } else {
        hf_ops_call(ops, HF_SQL_TURN_CLAIMED, 1);
        hf_ops_i64(ops, row->turn_key);
    }
    if (plan->move == HF_TURN_CLOSE) {
        hf_ops_call(ops, HF_SQL_INPUTS_CRASHED, HF_ANY_COUNT);
        hf_ops_text(ops, row->s.session_id);
        hf_ops_i64(ops, plan->crashes);
        hf_ops_i64_opt(ops, plan->crashed_at);
        return;
    }
    if (plan->move == HF_TURN_TAKE)
        add_pass(c, ops, row, plan);
    else
        add_start(c, ops, row, &plan->lease);
    add_by_session(ops, HF_SQL_INPUTS_RUN, row);
}

/* ---- answers ------------------------------------------------------------------------ */

static int show_token(struct claiming *c, const struct hf_lease *lease,
                      struct hf_err *err)
{
    struct hf_buf token;
    hf_buf_init(&token, c->store->handle.alloc, HF_TOKEN_TEXT);
    int rc = hf_token_write(&token, lease->store, lease->fence, lease->nonce);
    if (rc == 0)
        c->answer->token = hf_session_answer_copy(
            c->answer, (struct hf_span){ hf_buf_str(&token), token.len });
    hf_buf_fini(&token);
    return rc || !c->answer->token ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* The holder that lost the session; a released or re-entered lease has none. */
static int show_displaced(struct claiming *c, const struct hf_session_row *row,
                          const struct hf_session_plan *plan, struct hf_err *err)
{
    const char *owner = row->lease.owner;
    bool taken = plan->outcome == HF_LEASE_ACQUIRED ||
                 plan->outcome == HF_LEASE_RECLAIMED;
    if (!row->lease.nonce || !taken)
        return 0;
    c->answer->displaced = true;
    c->answer->displaced_fence = row->lease.fence;
    c->answer->displaced_owner = hf_session_answer_copy(
        c->answer, (struct hf_span){ owner, strlen(owner) });
    return c->answer->displaced_owner ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static struct hf_session_load load_of(const struct claiming *c,
                                      const struct hf_session_row *row)
{
    return (struct hf_session_load){ .size = sizeof(struct hf_session_load),
                                     .session_id = row->s.session_id,
                                     .limit = c->request->records };
}

static struct session_load_reads add_reads(const struct claiming *c, struct hf_ops *ops,
                                           const struct hf_session_row *row)
{
    struct hf_session_load load = load_of(c, row);
    if (load.limit > 0)
        return session_load_add(ops, &load);
    struct session_load_reads reads = { .session = hf_ops_call(ops, HF_SQL_SESSION_GET,
                                                               HF_ANY_COUNT) };
    hf_ops_text(ops, row->s.session_id);
    reads.turn = session_turn_add(ops, row->s.session_id, row->turn_key != 0);
    return reads;
}

/* The session was claimed, whatever its history is like: where that cannot be shown, the answer has
 * the turn alone. */
static int show_turn(struct claiming *c, struct hf_ops *ops,
                     const struct session_load_reads *reads,
                     const struct hf_session_row *row, struct hf_err *err)
{
    struct hf_session_answer *answer = c->answer;
    struct hf_session_load load = load_of(c, row);
    struct hf_session_turn *turn;
    answer->loaded = load.limit > 0 &&
                     session_load_show(&load, ops, reads, answer, NULL) == 0;
    if (answer->loaded)
        return 0;
    answer->nodes = NULL;
    answer->node_count = 0;
    answer->next_ordinal = 0;
    return session_turn_show(answer, ops, reads->turn, &turn, err);
}

static int show_claimed(struct claiming *c, struct hf_ops *ops,
                        const struct session_load_reads *reads,
                        const struct hf_session_row *row,
                        const struct hf_session_plan *plan, struct hf_err *err)
{
    const struct hf_call *found = hf_ops_result(ops, reads->session);
    struct hf_session_row now;
    int rc = found->out_count ? session_read(found, 0, &now, err)
                              : hf_fail_plain(err, HF_EINTERNAL);
    if (rc == 0 && !hf_same(now.lease.nonce, plan->lease.nonce))
        rc = hf_fail(
            err, HF_EUNCERTAIN, "session_id",
            "it was claimed, but the answer was lost, and the session was claimed again");
    if (rc == 0)
        rc = session_show(c->answer, found, 1, err);
    if (rc == 0)
        rc = show_turn(c, ops, reads, row, err);
    if (rc == 0)
        rc = show_token(c, &plan->lease, err);
    if (rc == 0)
        rc = show_displaced(c, row, plan, err);
    c->done = rc == 0;
    return sql_answered(rc, err);
}

/* ---- one candidate ------------------------------------------------------------------ */

static int write_claim(struct claiming *c, const struct hf_session_row *row,
                       const struct hf_session_plan *plan, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    bool writes = plan->move != HF_TURN_LEAVE;
    if (writes) {
        add_lease(&ops, row, &plan->lease);
        add_turn(c, &ops, row, plan);
    }
    struct session_load_reads reads = add_reads(c, &ops, row);
    int rc = writes ? hf_ops_write(&ops, err) : hf_ops_read(&ops, err);
    /* The first two calls are the lease's. */
    c->idle = rc == HF_EGUARD && ops.batch.failed_call > 1 && plan->move == HF_TURN_BEGIN;
    if (rc == 0)
        rc = show_claimed(c, &ops, &reads, row, plan, err);
    hf_ops_fini(&ops);
    return rc;
}

/* The open turn ends without a commit, or is set aside, and the session is free. */
static int end_turn(struct claiming *c, const struct hf_session_row *row,
                    const struct hf_session_plan *plan, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_LOCKED, 1);
    put_seen(&ops, row);
    if (plan->move == HF_TURN_HOLD) {
        hf_ops_call(&ops, HF_SQL_INPUTS_BACK, HF_ANY_COUNT);
        hf_ops_text(&ops, row->s.session_id);
        hf_ops_text(&ops, row->lease.nonce);
        hf_ops_i64(&ops, row->lease.fence);
        hf_ops_text(&ops, "held");
        hf_ops_text(&ops, "poison");
        hf_ops_i64(&ops, plan->crashes);
        hf_ops_i64_opt(&ops, plan->crashed_at);
        hf_ops_text(&ops, "transition");
        put_event(c, &ops);
        hf_ops_null(&ops);
        hf_ops_text(&ops, hf_session_input_note(&ops.arena, &row->lease, "poison",
                                                plan->crashes));
        hf_ops_text(&ops, c->who->correlation_id);
        add_by_session(&ops, HF_SQL_INPUTS_LOOSE, row);
    } else {
        hf_ops_call(&ops, HF_SQL_TURN_VOID, 1);
        hf_ops_text(&ops, row->s.session_id);
        hf_ops_text(&ops, HF_WAIT_OUTCOME_CANCELLED);
    }
    session_waits_end(&ops, c->who, row->s.session_id, row->s.turn_id);
    if (plan->move == HF_TURN_VOID)
        add_by_session(&ops, HF_SQL_SESSION_DROP_NODES, row);
    hf_ops_call(&ops, HF_SQL_SESSION_TURN_OFF, 1);
    hf_ops_text(&ops, row->s.session_id);
    session_ring(&ops);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

/* A session that was ready, or whose lease lapsed, has nothing to do. */
static int mark_idle(struct claiming *c, const struct hf_session_row *row,
                     struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    add_by_session(&ops, HF_SQL_LEASE_LOCK_SESSION, row);
    hf_ops_call(&ops, HF_SQL_SESSION_IDLE, HF_ANY_COUNT);
    hf_ops_text(&ops, row->s.session_id);
    hf_ops_i64_opt(&ops, row->s.ready_at);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

static bool proven_dead(struct claiming *c, const struct hf_session_row *row, hf_ms now)
{
    const char *proof = NULL;
    if (!row->lease.nonce)
        return false;
    return row->check_at == 0 ||
           (row->lease.holder &&
            hf_life_judge(&c->arena, row->lease.holder, now, &proof) == HF_LIFE_DEAD);
}

/* HF_EGUARD: the session is another one by now, or its turn was ended: look again. */
static int try_one(struct claiming *c, const struct hf_batch *seen,
                   const struct hf_session_row *row, struct hf_err *err)
{
    struct hf_env env;
    struct hf_session_plan plan;
    int rc = sql_env(c->store, c->who, seen, &env, err);
    c->idle = false;
    c->claimant.store = seen->incarnation;
    bool live = hf_lease_live(&row->lease, seen->lease_now);
    if (rc == 0)
        rc = hf_session_plan(row, &c->claimant, &env,
                             live && proven_dead(c, row, seen->now), &plan, err);
    if (rc)
        return rc;
    if (plan.move == HF_TURN_HOLD || plan.move == HF_TURN_VOID) {
        rc = end_turn(c, row, &plan, err);
        return rc ? rc : HF_EGUARD;
    }
    return write_claim(c, row, &plan, err);
}

/* ---- by id -------------------------------------------------------------------------- */

/* A claim of the session that the request names. HF_EGUARD: it has changed meanwhile, try again. */
static int claim_once(struct claiming *c, struct hf_err *err)
{
    struct hf_ops look;
    struct hf_session_row row;
    const char *id = c->request->session_id;
    hf_ops_init(&look, c->store->sql, c->store->handle.alloc);
    hf_ops_call(&look, HF_SQL_SESSION_LOOK, HF_ANY_COUNT);
    hf_ops_text(&look, id);
    int rc = hf_ops_read(&look, err);
    if (rc == 0 && hf_ops_result(&look, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "session_id", "there is no session %.100s", id);
    if (rc == 0)
        rc = session_read_seen(hf_ops_result(&look, 0), 0, &row, err);
    if (rc == 0 && row.s.deleted_at)
        rc = hf_fail(err, HF_ESESSIONDELETED, "session_id", "session %.100s was deleted",
                     id);
    if (rc == 0)
        rc = try_one(c, &look.batch, &row, err);
    hf_ops_fini(&look);
    return rc;
}

/* ---- any that is ready --------------------------------------------------------------- */

static int by_ready(const void *a, const void *b)
{
    const struct hf_session_row *x = a, *y = b;
    return (x->s.ready_at > y->s.ready_at) - (x->s.ready_at < y->s.ready_at);
}

/* True: the error is about one session, which is damaged; others can still be claimed. */
static bool skips(struct claiming *c, int rc, const struct hf_err *why)
{
    if (rc != HF_ECORRUPT && rc != HF_EOVERFLOW)
        return false;
    if (!c->damage.code)
        (void)hf_fail_as(&c->damage, rc, why); /* the code comes back */
    return true;
}

/* Rows of a result that a claim could take, behind those that are there. True: leases of others
 * are live. */
static bool add_candidates(struct claiming *c, const struct hf_ops *look, size_t call,
                           struct hf_session_row *rows, size_t *count)
{
    const struct hf_call *found = hf_ops_result(look, call);
    bool any_live = false;
    for (size_t i = 0; i < found->out_count; i++) {
        struct hf_err why = { 0 };
        struct hf_session_row *row = &rows[*count];
        int rc = session_read_seen(found, i, row, &why);
        if (rc) {
            (void)skips(c, rc, &why); /* a row is unreadable only if it is damaged */
            continue;
        }
        bool live = hf_lease_live(&row->lease, look->batch.lease_now) &&
                    row->check_at > 0;
        any_live |= live;
        *count += !live;
    }
    return any_live;
}

/* Sets the time of the next look at sessions whose lease is live behind the lease's end, so that
 * claims do not read them again before. */
static int push_live(struct claiming *c, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    for (size_t i = 0; i < c->request->agent_count; i++) {
        hf_ops_call(&ops, HF_SQL_SESSION_PUSH, HF_ANY_COUNT);
        hf_ops_text(&ops, c->request->agents[i]);
        hf_ops_i64(&ops, PUSHED);
    }
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

static void add_look(struct claiming *c, struct hf_ops *look, enum hf_sql_id statement,
                     int64_t limit)
{
    hf_ops_call(look, statement, HF_ANY_COUNT);
    for (size_t i = 0; i < c->request->agent_count; i++) {
        if (i > 0)
            hf_ops_again(look);
        hf_ops_text(look, c->request->agents[i]);
        hf_ops_i64(look, limit);
    }
}

/* A claim that is repeated finds what it took. */
static void add_claimed(struct claiming *c, struct hf_ops *look)
{
    hf_ops_call(look, HF_SQL_SESSION_CLAIMED, HF_ANY_COUNT);
    for (size_t i = 0; i < c->request->agent_count; i++) {
        if (i > 0)
            hf_ops_again(look);
        hf_ops_text(look, c->request->agents[i]);
        hf_ops_text(look, c->claimant.nonce);
        hf_ops_text(look, c->claimant.owner);
        hf_ops_text(look, c->claimant.incarnation);
    }
}

/* Which candidate comes after the first. Claims at the same time read the same list; one that
 * lost a race continues where its nonce says, so that they do not meet again at the next. */
static size_t nth_candidate(const struct claiming *c, size_t i, size_t count)
{
    uint32_t chance = hf_crc32c(0, c->claimant.nonce, strlen(c->claimant.nonce));
    return i == 0 ? 0 : 1 + (chance + i) % (count - 1);
}

/* Try candidates in turn. HF_EGUARD: there were some, and none could be had. */
static int try_candidates(struct claiming *c, const struct hf_batch *seen,
                          const struct hf_session_row *rows, size_t count,
                          struct hf_err *err)
{
    int answer = 0;
    for (size_t i = 0; i < count && !c->done; i++) {
        struct hf_err why = { 0 };
        const struct hf_session_row *row = &rows[nth_candidate(c, i, count)];
        int rc = try_one(c, seen, row, &why);
        if (rc == HF_EGUARD && c->idle)
            rc = mark_idle(c, row, &why);
        if (rc == HF_EGUARD || rc == 0)
            answer = HF_EGUARD;
        else if (rc != HF_ESESSIONBUSY && !skips(c, rc, &why))
            return hf_fail_as(err, rc, &why);
    }
    return c->done ? 0 : answer;
}

/* What a claim by agents reads, by number of the call. */
enum { CLAIMED, LAPSED_LEASES, READY };

/* Lapsed leases, then those that are ready, oldest first. */
static int try_looked(struct claiming *c, struct hf_ops *look, struct hf_err *err)
{
    size_t count = 0;
    size_t room = hf_ops_result(look, LAPSED_LEASES)->out_count +
                  hf_ops_result(look, READY)->out_count;
    struct hf_session_row *rows = hf_arena_array(&look->arena, room + 1, sizeof *rows);
    if (!rows)
        return hf_fail_plain(err, HF_ENOMEM);
    bool live = add_candidates(c, look, LAPSED_LEASES, rows, &count);
    size_t lapsed = count;
    (void)add_candidates(c, look, READY, rows, &count); /* none has a lease */
    if (count > lapsed)
        qsort(rows + lapsed, count - lapsed, sizeof *rows, by_ready);
    int rc = live ? push_live(c, err) : 0;
    return rc ? rc : try_candidates(c, &look->batch, rows, count, err);
}

static int claim_any(struct claiming *c, struct hf_err *err)
{
    struct hf_ops look;
    struct hf_session_row row;
    hf_ops_init(&look, c->store->sql, c->store->handle.alloc);
    add_claimed(c, &look);
    add_look(c, &look, HF_SQL_SESSION_LAPSED, LAPSED);
    add_look(c, &look, HF_SQL_SESSION_READY, CANDIDATES);
    int rc = hf_ops_read(&look, err);
    bool again = rc == 0 && hf_ops_result(&look, CLAIMED)->out_count > 0;
    if (again)
        rc = session_read_seen(hf_ops_result(&look, CLAIMED), 0, &row, err);
    if (rc == 0)
        rc = again ? try_one(c, &look.batch, &row, err) : try_looked(c, &look, err);
    hf_ops_fini(&look);
    return rc;
}

/* Nothing is ready: a sweep may find a holder that died. */
static int claim_swept(struct claiming *c, struct hf_err *err)
{
    struct hf_sweep_report report;
    int rc = claim_any(c, err);
    if (rc || c->done)
        return rc;
    rc = sql_sweep(&c->store->handle, c->who, SWEPT, &report, err);
    if (rc == 0)
        rc = claim_any(c, err);
    return rc || c->done ? rc : hf_fail_as(err, c->damage.code, &c->damage);
}

int sql_session_claim(struct hf_store *handle, const struct hf_caller *who,
                      const struct hf_session_claim *request,
                      struct hf_session_answer *answer, struct hf_err *err)
{
    struct claiming c = { .store = sql_store_of(handle),
                          .who = who,
                          .request = request,
                          .answer = answer,
                          .claimant = { .owner = request->owner,
                                        .incarnation = request->incarnation,
                                        .nonce = request->nonce,
                                        .ttl_ms = request->ttl_ms } };
    hf_arena_init(&c.arena, handle->alloc);
    int rc = request->pid
                 ? hf_life_describe(&c.arena, request->pid, NULL, &c.claimant.holder, err)
                 : 0;
    rc = rc ? rc : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = request->session_id ? claim_once(&c, err) : claim_swept(&c, err);
    hf_arena_fini(&c.arena);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

static hf_ms sooner(hf_ms a, hf_ms b)
{
    return !a || (b && b < a) ? b : a;
}

int sql_session_next(struct hf_store *handle, const struct hf_session_claim *claim,
                     hf_ms *ret_at, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ms at = 0;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_NEXT, HF_ANY_COUNT);
    for (size_t i = 0; i < claim->agent_count; i++) {
        if (i > 0)
            hf_ops_again(&ops);
        hf_ops_text(&ops, claim->agents[i]);
    }
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *next = hf_ops_result(&ops, 0);
        hf_ms lease = hf_out_i64(next, i, HF_COL_SESSION_NEXT_LEASE_CHECK_AT);
        at = sooner(at, hf_out_i64(next, i, HF_COL_SESSION_NEXT_READY_AT));
        at = sooner(at, hf_out_i64(next, i, HF_COL_SESSION_NEXT_WAIT_CHECK_AT));
        /* Of the lease clock only the distance carries over to the wall clock. */
        at = sooner(at, lease ? ops.batch.now + (lease - ops.batch.lease_now) : 0);
    }
    if (rc == 0)
        *ret_at = sql_by_caller(handle, at, ops.batch.now);
    hf_ops_fini(&ops);
    return rc;
}
