/* Another time for a row that waits for its time, and the release of one that is held. */

#include "core/ledger/act.h"
#include "core/ledger/lifecycle.h"

static void set_due(struct hf_row *row, hf_ms now, hf_ms at)
{
    row->w.due_at = at;
    row->w.gate = at > now ? "due" : hf_row_first_gate(row);
    row->w.deadline_at = row->w.start_timeout_ms ? hf_later(at, row->w.start_timeout_ms)
                                                 : 0;
    row->w.updated_at = now;
}

int hf_act_reschedule(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    hf_ms now = act->env->now;
    hf_ms at = hf_later(now, act->change->timeout_ms);
    bool due = row->status == HF_QUEUED && hf_row_gated(row, "due");
    if (row->status != HF_RETRY_SCHEDULED && !due)
        return hf_act_refuse(act, HF_QUEUED, "reschedule",
                             "only what waits for its time or its retry can be moved");
    if (due) {
        set_due(row, now, at);
        hf_act_quiet(act, "rescheduled");
    } else if (at > now) {
        row->w.next_retry_at = at;
        row->w.updated_at = now;
        hf_act_quiet(act, "rescheduled");
    } else {
        hf_act_enter(act, HF_QUEUED, "reschedule");
        row->w.status_reason = "rescheduled";
    }
    row->message = act->change->reason;
    return hf_act_note(act, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                               .due_at = at,
                                               .reason = act->change->reason });
}

int hf_act_release(struct hf_act *act)
{
    struct hf_row *row = &act->out.row;
    if (row->status != HF_QUEUED || !hf_row_gated(row, "held"))
        return hf_act_refuse(act, HF_QUEUED, "release", "the row is not held");
    set_due(row, act->env->now, act->env->now);
    row->crashes = 0;
    row->crashed_at = 0;
    row->w.status_reason = "released";
    row->message = act->change->reason;
    hf_act_quiet(act, "released");
    return hf_act_note(act, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                               .reason = act->change->reason });
}
