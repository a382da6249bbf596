/* What time, and proof of death, do to a row that nobody acts on.
 *
 * Lease columns are compared with the lease clock, deadlines with the wall clock. Equality
 * is "passed" on both: peers act when now >= expires_at.
 */

#include <holdfast/limits.h>

#include "base/text.h"
#include "core/ledger/act.h"

static int nothing(struct hf_act *act)
{
    act->out = (struct hf_step){ .kind = HF_STEP_NOTHING, .row = *act->old };
    return 0;
}

static bool passed(hf_ms at, hf_ms now)
{
    return at != 0 && at <= now;
}

static int push(struct hf_act *act, hf_ms check_at, enum hf_swept swept)
{
    act->out.row.lease_check_at = check_at;
    act->out.swept = swept;
    hf_act_quiet(act, NULL);
    return 0;
}

static int abandon(struct hf_act *act, const char *verb, const char *proof)
{
    struct hf_row *row = &act->out.row;
    struct hf_note note = {
        .abandon_request = proof ? NULL : row->w.abandon_request,
        .lease_lost = act->old,
        .proof = proof,
        .writer = proof ? "sweep" : "reconciled_request",
    };
    int rc = proof ? hf_act_count(act, &row->w.failures, "failures") : 0;
    if (rc)
        return rc;
    hf_act_enter(act, HF_ABANDONED, verb);
    row->w.status_reason = note.writer;
    act->out.swept = HF_SWEPT_ABANDONED;
    return hf_act_note(act, &note);
}

/* Whether this is one lost execution too many in too short a time: the unit may be what
 * kills its workers, and is held for an operator. */
static bool poisonous(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    hf_ms now = act->env->now;
    if (row->crashed_at == 0 || now - row->crashed_at > HF_MAX_POISON_WINDOW_MS) {
        row->crashed_at = now;
        row->crashes = 0;
    }
    return ++row->crashes >= HF_MAX_POISON_CRASHES;
}

/* An execution that was lost: claimable again, or failed when none is left. */
static int rerun(struct hf_act *act, const char *reason, const char *proof)
{
    struct hf_row *row = &act->out.row;
    int rc = hf_act_count(act, &row->w.failures, "failures");
    if (rc)
        return rc;
    bool left = row->w.failures < row->w.max_attempts;
    bool held = poisonous(act) && left;
    hf_act_enter(act, left ? HF_QUEUED : HF_FAILED, "sweep");
    if (held) {
        row->w.gate = "held";
        row->w.deadline_at = 0; /* an operator has all the time there is */
    }
    row->w.error_class = reason;
    row->w.status_reason = held ? "poison" : left ? reason : "attempts_exhausted";
    act->out.swept = held ? HF_SWEPT_HELD : left ? HF_SWEPT_REQUEUED : HF_SWEPT_FAILED;
    return hf_act_note(act, &(struct hf_note){
                                .deadline_at = row->w.deadline_at,
                                .error_class = reason,
                                .failures = row->w.failures,
                                .lease_lost = act->old,
                                .max_attempts = row->w.max_attempts,
                                .proof = proof,
                                .reason = row->w.status_reason,
                            });
}

/* A running row's timeout spends a failure, and becomes a retry where the row's policy
 * lists the reason. */
static int time_out_running(struct hf_act *act, const char *reason, const char *proof)
{
    struct hf_row *row = &act->out.row;
    struct hf_retry retry;
    int rc = hf_act_policy(act, &retry);
    if (rc == 0)
        rc = hf_act_count(act, &row->w.failures, "failures");
    if (rc)
        return rc;
    struct hf_note note = {
        .deadline_at = act->old->w.deadline_at,
        .error_class = reason,
        .failures = row->w.failures,
        .lease_lost = act->old,
        .max_attempts = row->w.max_attempts,
        .proof = proof,
        .reason = reason,
    };
    if (row->w.failures < row->w.max_attempts && hf_retry_allows(&retry, reason, true)) {
        hf_act_retry(act, &retry, "sweep", &note);
        act->out.swept = HF_SWEPT_RETRIED;
    } else {
        hf_act_enter(act, HF_TIMEOUT, "sweep");
        act->out.swept = HF_SWEPT_TIMED_OUT;
    }
    row->w.error_class = reason;
    row->w.status_reason = reason;
    return hf_act_note(act, &note);
}

/* queued and waiting_*: no execution was lost, so no failure is spent. */
static int time_out_idle(struct hf_act *act, const char *reason)
{
    hf_act_enter(act, HF_TIMEOUT, "sweep");
    act->out.row.w.status_reason = reason;
    act->out.swept = HF_SWEPT_TIMED_OUT;
    return hf_act_note(act, &(struct hf_note){
                                .deadline_at = act->old->w.deadline_at,
                                .reason = reason,
                                .ref = act->old->w.waiting_ref,
                                .start_timeout_ms = act->old->status == HF_QUEUED
                                                        ? act->old->w.start_timeout_ms
                                                        : 0,
                            });
}

/* Lapsed, or proven dead. Time alone never ends it. */
static int sweep_bound(struct hf_act *act, const char *proof)
{
    const struct hf_row *old = act->old;
    if (proof)
        return abandon(act, "sweep", proof);
    if (old->w.abandon_request)
        return abandon(act, "reconcile", NULL);
    if (old->lease_check_at > act->env->lease_now)
        return nothing(act);
    return push(act, hf_later(act->env->lease_now, old->w.lease_ttl_ms), HF_SWEPT_SILENT);
}

/* A second copy may start only when the first has gone; whoever can ends it meanwhile. */
static int leave_to_orphan(struct hf_act *act)
{
    int rc = nothing(act);
    act->out.swept = HF_SWEPT_ORPHANED;
    return rc;
}

static int sweep_running(struct hf_act *act, const char *proof)
{
    const struct hf_row *old = act->old;
    hf_ms now = act->env->lease_now;
    hf_ms act_at = hf_row_act_at(old);
    bool lapsed = now >= act_at;
    bool expire = old->disposition == HF_EXPIRE;
    bool overran = old->disposition != HF_OWNER_BOUND &&
                   passed(old->w.deadline_at, act->env->now);

    if (!lapsed && !proof && !overran)
        return old->lease_check_at <= now ? push(act, act_at, HF_SWEPT_PUSHED)
                                          : nothing(act);
    if (hf_row_bound(old))
        return sweep_bound(act, proof);
    if (act->env->busy)
        return leave_to_orphan(act);
    if (proof)
        return expire ? time_out_running(act, "holder_dead", proof)
                      : rerun(act, "holder_dead", proof);
    if (overran) /* also where the lease was renewed all the time */
        return time_out_running(act, "exec_timeout", NULL);
    return expire ? time_out_running(act, "heartbeat_timeout", NULL)
                  : rerun(act, "heartbeat_timeout", NULL);
}

static int sweep_queued(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    if (passed(row->w.deadline_at, act->env->now))
        return time_out_idle(act, "start_timeout");
    if (!hf_same(row->w.gate, "due") || row->w.due_at > act->env->now)
        return nothing(act);
    row->w.gate = hf_row_first_gate(row);
    act->out.swept = HF_SWEPT_PROMOTED;
    hf_act_quiet(act, NULL);
    return 0;
}

static int escalate(struct hf_act *act)
{
    static const char work[] = "work:";
    struct hf_row *row = &act->out.row;
    const char *how = row->w.escalate ? row->w.escalate : "event";
    size_t i = 0;
    while (i < sizeof(work) - 1 && how[i] == work[i])
        i++;
    if (i == sizeof(work) - 1)
        act->out.escalate_kind = how + i;
    row->w.escalate_at = 0;
    row->w.updated_at = act->env->now;
    act->out.swept = HF_SWEPT_ESCALATED;
    hf_act_quiet(act, "escalated");
    return hf_act_note(act, &(struct hf_note){
                                .deadline_at = row->w.deadline_at,
                                .escalate = how,
                                .escalate_at = act->old->w.escalate_at,
                                .kind = row->w.waiting_kind,
                                .ref = row->w.waiting_ref,
                            });
}

/* Reported once and left waiting. The deadline goes, so that no sweep finds it again. */
static int overdue(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    row->w.deadline_at = 0;
    row->w.status_reason = "wait_overdue";
    row->w.updated_at = act->env->now;
    act->out.swept = HF_SWEPT_OVERDUE;
    hf_act_quiet(act, "wait_overdue");
    return hf_act_note(act, &(struct hf_note){ .deadline_at = act->old->w.deadline_at,
                                               .kind = row->w.waiting_kind,
                                               .ref = row->w.waiting_ref });
}

static int sweep_waiting(struct hf_act *act, const char *proof)
{
    const struct hf_row *old = act->old;
    bool external = old->disposition == HF_EXTERNALLY_OWNED;
    bool bound = hf_row_bound(old);
    if (bound && proof)
        return abandon(act, "sweep", proof);
    if ((bound || external) && old->w.abandon_request)
        return abandon(act, "reconcile", NULL);
    if (passed(old->w.escalate_at, act->env->now))
        return escalate(act);
    if (!passed(old->w.deadline_at, act->env->now) || external)
        return nothing(act);
    return bound ? overdue(act) : time_out_idle(act, "wait_timeout");
}

static int sweep_retry(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    if (row->w.next_retry_at > act->env->now)
        return nothing(act);
    hf_act_enter(act, HF_QUEUED, "sweep");
    row->w.status_reason = "retry_due";
    act->out.swept = HF_SWEPT_PROMOTED;
    return hf_act_note(act, &(struct hf_note){
                                .deadline_at = row->w.deadline_at,
                                .failures = row->w.failures,
                                .max_attempts = row->w.max_attempts,
                                .next_retry_at = act->old->w.next_retry_at,
                                .reason = row->w.status_reason,
                            });
}

static int sweep(struct hf_act *act, const char *proof)
{
    if (act->old->w.session_id)
        return nothing(act); /* the session's next lease generation takes it up again */
    switch (act->old->status) {
    case HF_RUNNING: return sweep_running(act, proof);
    case HF_QUEUED: return sweep_queued(act);
    case HF_WAITING_USER:
    case HF_WAITING_EXTERNAL: return sweep_waiting(act, proof);
    case HF_RETRY_SCHEDULED: return sweep_retry(act);
    case HF_DONE:
    case HF_FAILED:
    case HF_TIMEOUT:
    case HF_CANCELLED:
    case HF_ABANDONED:
    case HF_STATUS_NONE:
    case HF_STATUS_COUNT: break;
    }
    return nothing(act);
}

int hf_step_sweep(struct hf_arena *arena, const struct hf_row *row, const char *proof,
                  const struct hf_env *env, struct hf_step *ret_step, struct hf_err *err)
{
    struct hf_act act = hf_act_begin(arena, row, env, err);
    int rc = sweep(&act, proof);
    if (rc == 0)
        *ret_step = act.out;
    return rc;
}
