/* Another time for a row that waits for its time, and the release of one that is held. */

#include "core/ledger/draft.h"
#include "core/ledger/lifecycle.h"

static void set_due(struct hf_row *row, hf_ms now, hf_ms at)
{
    row->w.due_at = at;
    row->w.gate = at > now ? "due" : hf_row_first_gate(row);
    row->w.deadline_at = row->w.start_timeout_ms ? hf_later(at, row->w.start_timeout_ms)
                                                 : 0;
    row->w.updated_at = now;
}

int hf_draft_reschedule(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    hf_ms now = draft->env->now;
    hf_ms at = hf_later(now, draft->change->timeout_ms);
    bool due = row->status == HF_STATUS_QUEUED && hf_row_gated(row, "due");
    if (row->status != HF_STATUS_RETRY_SCHEDULED && !due)
        return hf_draft_refuse(draft, HF_STATUS_QUEUED, "reschedule",
                               "the row waits for neither its start time nor its retry");
    if (due) {
        set_due(row, now, at);
        hf_draft_quiet(draft, "rescheduled");
    } else if (at > now) {
        row->w.next_retry_at = at;
        row->w.updated_at = now;
        hf_draft_quiet(draft, "rescheduled");
    } else {
        hf_draft_enter(draft, HF_STATUS_QUEUED, "reschedule");
        row->w.status_reason = "rescheduled";
    }
    row->message = draft->change->reason;
    return hf_draft_note(draft, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                                   .due_at = at,
                                                   .reason = draft->change->reason });
}

int hf_draft_release(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (row->status != HF_STATUS_QUEUED || !hf_row_gated(row, "held"))
        return hf_draft_refuse(draft, HF_STATUS_QUEUED, "release", "the row is not held");
    set_due(row, draft->env->now, draft->env->now);
    row->crashes = 0;
    row->crashed_at = 0;
    row->w.status_reason = "released";
    row->message = draft->change->reason;
    hf_draft_quiet(draft, "released");
    return hf_draft_note(draft, &(struct hf_note){ .anew = draft->change->anew,
                                                   .deadline_at = row->w.deadline_at,
                                                   .reason = draft->change->reason });
}
