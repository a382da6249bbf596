/* The changes to a row by time, or by proof of death, without a call about it.
 *
 * Lease columns are compared with the lease clock, deadlines with the wall clock. Equality
 * is "passed" on both: peers act when now >= expires_at. */

#include <holdfast/bounds.h>

#include "base/text.h"
#include "core/ledger/draft.h"

static int nothing(struct hf_draft *draft)
{
    draft->out = (struct hf_step){ .kind = HF_STEP_NOTHING, .row = *draft->old };
    return 0;
}

static bool passed(hf_ms at, hf_ms now)
{
    return at != 0 && at <= now;
}

static int push(struct hf_draft *draft, hf_ms check_at, enum hf_swept swept)
{
    draft->out.row.lease_check_at = check_at;
    draft->out.swept = swept;
    hf_draft_quiet(draft, NULL);
    return 0;
}

static int abandon(struct hf_draft *draft, const char *verb, const char *proof)
{
    struct hf_row *row = &draft->out.row;
    struct hf_note note = {
        .abandon_request = proof ? NULL : row->w.abandon_request,
        .lease_lost = draft->old,
        .proof = proof,
        .writer = proof ? "sweep" : "reconciled_request",
    };
    int rc = proof ? hf_draft_count(draft, &row->w.failures, "failures") : 0;
    if (rc)
        return rc;
    hf_draft_enter(draft, HF_STATUS_ABANDONED, verb);
    row->w.status_reason = note.writer;
    draft->out.swept = HF_SWEPT_ABANDONED;
    return hf_draft_note(draft, &note);
}

/* Whether this is one lost execution too many in too short a time: the unit may be what
 * kills its workers, and is held for an operator. */
static bool poisonous(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    hf_ms now = draft->env->now;
    if (row->crashed_at == 0 || now - row->crashed_at > HF_MAX_POISON_WINDOW_MS) {
        row->crashed_at = now;
        row->crashes = 0;
    }
    return ++row->crashes >= HF_MAX_POISON_CRASHES;
}

/* An execution that was lost: claimable again, or failed when none is left. */
static int rerun(struct hf_draft *draft, const char *reason, const char *proof)
{
    struct hf_row *row = &draft->out.row;
    int rc = hf_draft_count(draft, &row->w.failures, "failures");
    if (rc)
        return rc;
    bool left = row->w.failures < row->w.max_attempts;
    bool held = poisonous(draft) && left;
    hf_draft_enter(draft, left ? HF_STATUS_QUEUED : HF_STATUS_FAILED, "sweep");
    if (held) {
        row->w.gate = "held";
        row->w.deadline_at = 0; /* an operator has all the time there is */
    }
    row->w.error_class = reason;
    row->w.status_reason = held ? "poison" : left ? reason : "attempts_exhausted";
    draft->out.swept = held ? HF_SWEPT_HELD : left ? HF_SWEPT_REQUEUED : HF_SWEPT_FAILED;
    return hf_draft_note(draft, &(struct hf_note){
                                    .deadline_at = row->w.deadline_at,
                                    .error_class = reason,
                                    .failures = row->w.failures,
                                    .lease_lost = draft->old,
                                    .max_attempts = row->w.max_attempts,
                                    .proof = proof,
                                    .reason = row->w.status_reason,
                                });
}

/* A running row's timeout spends a failure, and becomes a retry where the row's policy
 * lists the reason. */
static int time_out_running(struct hf_draft *draft, const char *reason, const char *proof)
{
    struct hf_row *row = &draft->out.row;
    struct hf_retry retry;
    int rc = hf_draft_policy(draft, &retry);
    if (rc == 0)
        rc = hf_draft_count(draft, &row->w.failures, "failures");
    if (rc)
        return rc;
    struct hf_note note = {
        .deadline_at = draft->old->w.deadline_at,
        .error_class = reason,
        .failures = row->w.failures,
        .lease_lost = draft->old,
        .max_attempts = row->w.max_attempts,
        .proof = proof,
        .reason = reason,
    };
    if (row->w.failures < row->w.max_attempts && hf_retry_allows(&retry, reason, true)) {
        hf_draft_retry(draft, &retry, "sweep", &note);
        draft->out.swept = HF_SWEPT_RETRIED;
    } else {
        hf_draft_enter(draft, HF_STATUS_TIMEOUT, "sweep");
        draft->out.swept = HF_SWEPT_TIMED_OUT;
    }
    row->w.error_class = reason;
    row->w.status_reason = reason;
    return hf_draft_note(draft, &note);
}

/* queued and waiting_*: no execution was lost, so no failure is spent. */
static int time_out_idle(struct hf_draft *draft, const char *reason)
{
    hf_draft_enter(draft, HF_STATUS_TIMEOUT, "sweep");
    draft->out.row.w.status_reason = reason;
    draft->out.swept = HF_SWEPT_TIMED_OUT;
    return hf_draft_note(draft,
                         &(struct hf_note){
                             .deadline_at = draft->old->w.deadline_at,
                             .reason = reason,
                             .ref = draft->old->w.waiting_ref,
                             .start_timeout_ms = draft->old->status == HF_STATUS_QUEUED
                                                     ? draft->old->w.start_timeout_ms
                                                     : 0,
                         });
}

/* Lapsed, or proven dead. Time alone never ends it. */
static int sweep_bound(struct hf_draft *draft, const char *proof)
{
    const struct hf_row *old = draft->old;
    if (proof)
        return abandon(draft, "sweep", proof);
    if (old->w.abandon_request)
        return abandon(draft, "reconcile", NULL);
    if (old->lease_check_at > draft->env->lease_now)
        return nothing(draft);
    return push(draft, hf_later(draft->env->lease_now, old->w.lease_ttl_ms),
                HF_SWEPT_SILENT);
}

/* A second copy may start only when the first has gone; the caller that can ends it
 * meanwhile. */
static int leave_to_orphan(struct hf_draft *draft)
{
    int rc = nothing(draft);
    draft->out.swept = HF_SWEPT_ORPHANED;
    return rc;
}

static int sweep_running(struct hf_draft *draft, const char *proof)
{
    const struct hf_row *old = draft->old;
    hf_ms now = draft->env->lease_now;
    hf_ms act_at = hf_row_act_at(old);
    bool lapsed = now >= act_at;
    bool expire = old->disposition == HF_DISPOSITION_EXPIRE;
    bool overran = old->disposition != HF_DISPOSITION_OWNER_BOUND &&
                   passed(old->w.deadline_at, draft->env->now);

    if (!lapsed && !proof && !overran)
        return old->lease_check_at <= now ? push(draft, act_at, HF_SWEPT_PUSHED)
                                          : nothing(draft);
    if (hf_row_bound(old))
        return sweep_bound(draft, proof);
    if (draft->env->busy)
        return leave_to_orphan(draft);
    if (proof)
        return expire ? time_out_running(draft, "holder_dead", proof)
                      : rerun(draft, "holder_dead", proof);
    if (overran) /* also where the lease was renewed all the time */
        return time_out_running(draft, "exec_timeout", NULL);
    return expire ? time_out_running(draft, "heartbeat_timeout", NULL)
                  : rerun(draft, "heartbeat_timeout", NULL);
}

static int sweep_queued(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (passed(row->w.deadline_at, draft->env->now))
        return time_out_idle(draft, "start_timeout");
    if (!hf_same(row->w.gate, "due") || row->w.due_at > draft->env->now)
        return nothing(draft);
    row->w.gate = hf_row_first_gate(row);
    draft->out.swept = HF_SWEPT_PROMOTED;
    hf_draft_quiet(draft, NULL);
    return 0;
}

static int escalate(struct hf_draft *draft)
{
    static const char work[] = "work:";
    struct hf_row *row = &draft->out.row;
    const char *how = row->w.escalate ? row->w.escalate : "event";
    size_t i = 0;
    while (i < sizeof(work) - 1 && how[i] == work[i])
        i++;
    if (i == sizeof(work) - 1)
        draft->out.escalate_kind = how + i;
    row->w.escalate_at = 0;
    row->w.updated_at = draft->env->now;
    draft->out.swept = HF_SWEPT_ESCALATED;
    hf_draft_quiet(draft, "escalated");
    return hf_draft_note(draft, &(struct hf_note){
                                    .deadline_at = row->w.deadline_at,
                                    .escalate = how,
                                    .escalate_at = draft->old->w.escalate_at,
                                    .kind = row->w.waiting_kind,
                                    .ref = row->w.waiting_ref,
                                });
}

/* Reported once and left waiting. The deadline goes, so that no sweep finds it again. */
static int overdue(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    row->w.deadline_at = 0;
    row->w.status_reason = "wait_overdue";
    row->w.updated_at = draft->env->now;
    draft->out.swept = HF_SWEPT_OVERDUE;
    hf_draft_quiet(draft, "wait_overdue");
    return hf_draft_note(draft,
                         &(struct hf_note){ .deadline_at = draft->old->w.deadline_at,
                                            .kind = row->w.waiting_kind,
                                            .ref = row->w.waiting_ref });
}

static int sweep_waiting(struct hf_draft *draft, const char *proof)
{
    const struct hf_row *old = draft->old;
    bool external = old->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    bool bound = hf_row_bound(old);
    if (bound && proof && !hf_row_waits_for_rule(old))
        return abandon(draft, "sweep", proof);
    if ((bound || external) && old->w.abandon_request)
        return abandon(draft, "reconcile", NULL);
    if (passed(old->w.escalate_at, draft->env->now))
        return escalate(draft);
    if (!passed(old->w.deadline_at, draft->env->now) || external)
        return nothing(draft);
    return bound ? overdue(draft) : time_out_idle(draft, "wait_timeout");
}

static int sweep_retry(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (row->w.next_retry_at > draft->env->now)
        return nothing(draft);
    hf_draft_enter(draft, HF_STATUS_QUEUED, "sweep");
    row->w.status_reason = "retry_due";
    draft->out.swept = HF_SWEPT_PROMOTED;
    return hf_draft_note(draft, &(struct hf_note){
                                    .deadline_at = row->w.deadline_at,
                                    .failures = row->w.failures,
                                    .max_attempts = row->w.max_attempts,
                                    .next_retry_at = draft->old->w.next_retry_at,
                                    .reason = row->w.status_reason,
                                });
}

static int sweep(struct hf_draft *draft, const char *proof)
{
    if (draft->old->w.session_id)
        return nothing(draft); /* the session's next lease generation takes it up again */
    switch (draft->old->status) {
    case HF_STATUS_RUNNING: return sweep_running(draft, proof);
    case HF_STATUS_QUEUED: return sweep_queued(draft);
    case HF_STATUS_WAITING_USER:
    case HF_STATUS_WAITING_EXTERNAL: return sweep_waiting(draft, proof);
    case HF_STATUS_RETRY_SCHEDULED: return sweep_retry(draft);
    case HF_STATUS_DONE:
    case HF_STATUS_FAILED:
    case HF_STATUS_TIMEOUT:
    case HF_STATUS_CANCELLED:
    case HF_STATUS_ABANDONED:
    case HF_STATUS_NONE:
    case HF_STATUS_COUNT: break;
    }
    return nothing(draft);
}

int hf_step_sweep(struct hf_arena *arena, const struct hf_row *row, const char *proof,
                  const struct hf_env *env, struct hf_step *ret_step, struct hf_err *err)
{
    struct hf_draft draft = hf_draft_begin(arena, row, env, err);
    int rc = sweep(&draft, proof);
    if (rc == 0)
        *ret_step = draft.out;
    return rc;
}
