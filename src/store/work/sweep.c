/* The sweep: one pass that acts on what is due, on behalf of its caller.
 *
 * Candidates are rows whose timer has passed (deadlines, delays, retries, and lease_check_at for
 * leases), rows whose holder is proven dead, and limits whose rate has room again. Core decides
 * what is done to each (hf_step_sweep); every write is guarded by what was read, so any number of
 * sweeps may run. A row that has moved on meanwhile is read and judged anew. */
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "os/liveness.h"
#include "store/batch/gates.h"
#include "store/store.h"

#define HOLDERS_MAX 256
#define CHUNK 100
#define JUDGED_MAX                                                                       \
    4 /* times that one row is judged anew; the next sweep sees to it then */
#define LOOK_AGAIN_MS 60000
#define ORPHAN_AGAIN_MS 500

struct sweeping {
    struct sql_store *store;
    const struct hf_caller *who;
    struct hf_sweep_report report;
    struct hf_arena arena;
};

struct candidate {
    struct hf_row was;
    struct hf_step step;
    const char *proof;
    hf_ms now, lease_now; /* by which it was judged */
};

/* ---- deciding ---------------------------------------------------------------------- */

static int decide(struct sweeping *s, const struct hf_batch *seen, struct candidate *one,
                  struct hf_err *err)
{
    struct hf_env env;
    struct hf_policy policy;
    int rc = sql_env(s->store, s->who, seen, &env, err);
    one->now = seen->now;
    one->lease_now = seen->lease_now;
    if (rc == 0)
        rc = sql_policy(s->store, &s->arena, one->was.source, one->was.w.kind, &policy,
                        err);
    if (rc)
        return rc;
    env.policy = &policy;
    env.busy = !one->proof && hf_life_busy(one->was.w.holder);
    return hf_step_sweep(&s->arena, &one->was, one->proof, &env, &one->step, err);
}

static void count(struct hf_sweep_report *report, const struct candidate *one)
{
    int64_t *const counters[] = {
        [HF_SWEPT_NOTHING] = NULL,
        [HF_SWEPT_REQUEUED] = &report->requeued,
        [HF_SWEPT_RETRIED] = &report->timed_out,
        [HF_SWEPT_TIMED_OUT] = &report->timed_out,
        [HF_SWEPT_FAILED] = &report->failed,
        [HF_SWEPT_ABANDONED] = &report->abandoned,
        [HF_SWEPT_PROMOTED] = &report->promoted,
        [HF_SWEPT_ESCALATED] = &report->escalated,
        [HF_SWEPT_PUSHED] = &report->pushed,
        [HF_SWEPT_SILENT] = &report->silent,
        [HF_SWEPT_OVERDUE] = &report->silent,
        [HF_SWEPT_HELD] = &report->held,
        [HF_SWEPT_ORPHANED] = &report->orphaned,
    };
    if (one->proof)
        report->proven_dead++;
    if (counters[one->step.swept])
        ++*counters[one->step.swept];
}

/* ---- writing ----------------------------------------------------------------------- */

/* The unit that an escalation makes: one a wait, the caller that sweeps. */
static int add_escalation(struct sweeping *s, struct hf_ops *ops, struct candidate *one,
                          struct hf_err *err)
{
    char *id = hf_arena_take(&ops->arena, 37);
    uint8_t *hash = hf_arena_take(&ops->arena, 32);
    struct hf_env env;
    struct hf_policy policy;
    struct hf_buf run, payload;
    struct hf_json json;
    hf_buf_init(&run, ops->arena.alloc, 128);
    hf_buf_text(&run, "escalation:");
    hf_buf_i64(&run, one->was.w.attempt_count);
    hf_buf_init(&payload, ops->arena.alloc, 4096);
    hf_json_begin(&json, &payload);
    hf_json_object(&json);
    hf_json_opt_str(&json, "waiting_kind", one->was.w.waiting_kind);
    hf_json_opt_str(&json, "waiting_ref", one->was.w.waiting_ref);
    hf_json_put_str(&json, "work_id", one->was.w.work_id);
    hf_json_end(&json);
    struct hf_work_spec request = {
        .size = sizeof request,
        .source = HF_SOURCE_CONTROL,
        .source_id = one->was.w.work_id,
        .source_run_id = hf_buf_keep(&run, &ops->arena),
        .kind = one->step.escalate_kind,
        .queue = one->was.w.queue,
        .parent_work_id = one->was.w.work_id,
        .payload = hf_buf_keep(&payload, &ops->arena),
        .priority = -1,
    };
    struct hf_caller who = *s->who;
    who.tenant = one->was.w.tenant; /* not the sweeper's */
    struct hf_batch moment = { .now = one->step.row.w.updated_at };
    struct hf_row *row = hf_arena_new(&ops->arena, struct hf_row);
    if (!id || !hash || !row || !request.source_run_id || !request.payload)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = sql_env(s->store, s->who, &moment, &env, err);
    if (rc == 0)
        rc = sql_policy(s->store, &ops->arena, request.source, request.kind, &policy,
                        err);
    env.policy = &policy;
    if (rc == 0)
        rc = sql_kind_limited(s->store, request.kind, &env.kind_limited, err);
    if (rc == 0)
        rc = sql_new_id(s->store, env.now, id, err);
    if (rc == 0)
        rc = hf_work_spec_hash(&request, &who, hash, err);
    if (rc == 0)
        rc = hf_step_create(&ops->arena, &request, id, &who, &env, row, err);
    if (rc == 0)
        hf_rows_insert(ops, &(struct hf_making){ .row = row, .hash = hash }, 1);
    return rc;
}

static int add_write(struct sweeping *s, struct hf_ops *ops, struct candidate *one,
                     struct hf_err *err)
{
    if (one->step.kind == HF_STEP_NOTHING) {
        /* Nothing to do now, and nothing will change by looking: come back later. */
        hf_ops_call(ops, HF_SQL_SWEEP_LATER, HF_ANY_COUNT);
        hf_ops_i64(ops, one->was.seq);
        hf_ops_i64(ops, one->was.revision);
        hf_ops_i64(ops, one->step.swept == HF_SWEPT_ORPHANED ? ORPHAN_AGAIN_MS
                                                             : LOOK_AGAIN_MS);
        hf_ops_i64(ops, one->now);
        hf_ops_i64(ops, one->lease_now);
        return 0;
    }
    hf_row_write(ops, &one->was, &one->step.row);
    if (one->step.extra_event)
        hf_event_append(ops, &one->step.row, one->step.extra_event);
    if (one->step.row.status == HF_STATUS_QUEUED || one->was.w.lane_key)
        hf_ops_ring_queue(ops, one->was.w.queue, 1);
    int rc = sql_wake_ended(s->store, s->who, ops, &one->was, &one->step.row, err);
    return rc || !one->step.escalate_kind ? rc : add_escalation(s, ops, one, err);
}

/* Write some candidates in one transaction. HF_EGUARD: another caller acted on one. */
static int write_some(struct sweeping *s, struct candidate *some, size_t n,
                      struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_write(s, &ops, &some[i], err);
    if (rc == 0 && ops.batch.call_count > 0)
        rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = hf_gates_promoted(&ops, &s->report.promoted, err);
    hf_ops_fini(&ops);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (some[i].step.kind != HF_STEP_NOTHING ||
            some[i].step.swept == HF_SWEPT_ORPHANED)
            count(&s->report, &some[i]);
    return rc;
}

/* The row is not as it was read any more, or another row was in the way of a unique key. */
static bool moved(int rc)
{
    return rc == HF_EGUARD || rc == HF_ECONFLICT;
}

/* Read and judge one row anew. A proof is of that holder only: of a row that another holds
 * by now it says nothing, while one that was only renewed is still a dead holder's. */
static int judge_now(struct sweeping *s, const char *id, const char *holder,
                     struct candidate *one, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    int rc = sql_find(&ops, id, &one->was, err);
    bool may = !one->proof || (one->was.w.owner && hf_same(one->was.w.holder, holder));
    if (rc == 0 && may)
        rc = decide(s, &ops.batch, one, err);
    if (rc == 0 && may && one->step.kind != HF_STEP_NOTHING)
        rc = write_some(s, one, 1, err);
    hf_ops_fini(&ops);
    return rc == HF_ENOTFOUND ? 0 : rc;
}

/* The row has changed since it was read, by another caller or by what this sweep did to
 * its lane; and may do so again. The texts of the first reading stay. */
static int judge_again(struct sweeping *s, struct candidate *one, struct hf_err *err)
{
    const char *id = one->was.w.work_id, *holder = one->was.w.holder;
    int rc = HF_EGUARD;
    for (int tries = 0; moved(rc) && tries < JUDGED_MAX; tries++)
        rc = judge_now(s, id, holder, one, err);
    return rc;
}

static int write_chunk(struct sweeping *s, struct candidate *some, size_t n,
                       struct hf_err *err)
{
    int rc = write_some(s, some, n, err);
    if (!moved(rc))
        return rc;
    /* One row has moved on: the others are still ours to judge, and so may it be. */
    for (size_t i = 0; i < n; i++) {
        rc = write_some(s, &some[i], 1, err);
        if (moved(rc))
            rc = judge_again(s, &some[i], err);
        if (rc && !moved(rc))
            return rc;
    }
    return 0;
}

/* ---- candidates -------------------------------------------------------------------- */

static int sweep_rows(struct sweeping *s, const struct hf_ops *seen, const char *proof,
                      struct hf_err *err)
{
    const struct hf_call *rows = hf_ops_result(seen, 0);
    struct candidate *all = hf_arena_array(&s->arena, rows->out_count, sizeof *all);
    if (!all)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        all[i].proof = proof;
        rc = hf_row_read(rows, i, &all[i].was, err);
        if (rc == 0)
            rc = decide(s, &seen->batch, &all[i], err);
    }
    s->report.looked_at += (int64_t)rows->out_count;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i += CHUNK) {
        size_t left = rows->out_count - i;
        rc = write_chunk(s, &all[i], left < CHUNK ? left : CHUNK, err);
    }
    return rc;
}

static int sweep_timers(struct sweeping *s, size_t limit, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_SWEEP_CANDIDATES, HF_ANY_COUNT);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        s->report.more = hf_ops_result(&ops, 0)->out_count >= limit;
        rc = sweep_rows(s, &ops, NULL, err);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* Limits whose rate lets a caller continue by now. */
static int sweep_limits(struct sweeping *s, size_t limit, struct hf_err *err)
{
    struct hf_ops due, write;
    hf_ops_init(&due, s->store->sql, s->store->handle.alloc);
    hf_ops_init(&write, s->store->sql, s->store->handle.alloc);
    hf_ops_call(&due, HF_SQL_LIMIT_DUE, HF_ANY_COUNT);
    hf_ops_i64(&due, (int64_t)limit);
    int rc = hf_ops_read(&due, err);
    size_t names = rc == 0 ? hf_ops_result(&due, 0)->out_count : 0;
    for (size_t i = 0; i < names; i++)
        hf_gates_note_name(&write,
                           hf_out_text(hf_ops_result(&due, 0), i, HF_COL_LIMIT_DUE_NAME));
    if (rc == 0 && names > 0)
        rc = hf_ops_write(&write, err);
    if (rc == 0)
        rc = hf_gates_promoted(&write, &s->report.promoted, err);
    s->report.more |= names >= limit;
    hf_ops_fini(&write);
    hf_ops_fini(&due);
    return rc;
}

static int sweep_dead_holder(struct sweeping *s, const char *holder, const char *proof,
                             size_t limit, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_SWEEP_HELD_BY, HF_ANY_COUNT);
    hf_ops_text(&ops, holder);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        rc = sweep_rows(s, &ops, proof, err);
    hf_ops_reset(&ops);
    hf_ops_call(&ops, HF_SQL_SESSION_HOLDER_DEAD, HF_ANY_COUNT);
    hf_ops_text(&ops, holder);
    hf_ops_ring_queue(&ops, "session", 64);
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

/* One page of holders after `after`; the last of them, or NULL when there are no more. */
static int sweep_dead_page(struct sweeping *s, const char *after, size_t limit,
                           const char **ret_last, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_SWEEP_HOLDERS, HF_ANY_COUNT);
    hf_ops_i64(&ops, HOLDERS_MAX);
    hf_ops_text(&ops, after);
    int rc = hf_ops_read(&ops, err);
    size_t count = rc == 0 ? hf_ops_result(&ops, 0)->out_count : 0;
    const char *holder = NULL;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *proof = NULL;
        holder = hf_out_text(hf_ops_result(&ops, 0), i, HF_COL_SWEEP_HOLDERS_HOLDER);
        if (hf_life_judge(&s->arena, holder, ops.batch.now, &proof) == HF_LIFE_DEAD)
            rc = sweep_dead_holder(s, holder, proof, limit, err);
    }
    *ret_last = NULL;
    if (rc == 0 && count == HOLDERS_MAX) {
        *ret_last = hf_arena_text(&s->arena, holder);
        rc = *ret_last ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int sweep_dead(struct sweeping *s, size_t limit, struct hf_err *err)
{
    const char *after = "";
    int rc = 0;
    while (rc == 0 && after)
        rc = sweep_dead_page(s, after, limit, &after, err);
    return rc;
}

int sql_holders(struct hf_store *handle, hf_each_holder *each, void *user,
                struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SWEEP_HOLDERS, HF_ANY_COUNT);
    hf_ops_i64(&ops, HOLDERS_MAX);
    hf_ops_text(&ops, "");
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        each(user, hf_out_text(hf_ops_result(&ops, 0), i, HF_COL_SWEEP_HOLDERS_HOLDER));
    hf_ops_fini(&ops);
    return rc;
}

static hf_ms sooner(hf_ms a, hf_ms b)
{
    return !a || (b && b < a) ? b : a;
}

/* By the store's clock, and what that said when it was asked. */
static int next_due(struct hf_store *handle, hf_ms *ret_at, hf_ms *ret_now,
                    struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SWEEP_NEXT, 1);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        hf_ms at = sooner(
            hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SWEEP_NEXT_WAKE_AT),
            hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SWEEP_NEXT_LIMIT_WAKE_AT));
        at = sooner(
            at, hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SWEEP_NEXT_WAIT_CHECK_AT));
        hf_ms lease = hf_out_i64(hf_ops_result(&ops, 0), 0,
                                 HF_COL_SWEEP_NEXT_LEASE_CHECK_AT);
        /* The lease clock runs next to the wall clock: only the distance carries over. */
        hf_ms lease_at = lease ? ops.batch.now + (lease - ops.batch.lease_now) : 0;
        *ret_at = sooner(at, lease_at);
        *ret_now = ops.batch.now;
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_next_due(struct hf_store *handle, hf_ms *ret_at, struct hf_err *err)
{
    hf_ms now = 0;
    int rc = next_due(handle, ret_at, &now, err);
    if (rc == 0)
        *ret_at = sql_by_caller(handle, *ret_at, now);
    return rc;
}

int sql_sweep(struct hf_store *handle, const struct hf_caller *who, size_t limit,
              struct hf_sweep_report *ret_report, struct hf_err *err)
{
    struct sweeping s = { .store = sql_store_of(handle), .who = who };
    struct hf_err why = { 0 }; /* a row that has moved on is no failure of the sweep */
    hf_ms now = 0;
    hf_arena_init(&s.arena, handle->alloc);
    int rc = sweep_dead(&s, limit, &why);
    if (rc == 0)
        rc = sweep_timers(&s, limit, &why);
    if (rc == 0)
        rc = sweep_limits(&s, limit, &why);
    if (rc == 0)
        rc = sql_waits_sweep(s.store, who, limit, &s.report, &why);
    if (rc == 0)
        rc = next_due(handle, &s.report.next_at, &now, &why);
    if (rc == 0)
        *ret_report = s.report;
    hf_arena_fini(&s.arena);
    return hf_fail_as(err, rc, &why);
}
