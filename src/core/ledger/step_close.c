/* The verbs that end an execution or a row: close-out, fail, hand-back, cancel, requeue,
 * abandon. A token, where given, has been checked. */

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/draft.h"
#include "core/ledger/lifecycle.h"

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a ? a : b ? b : c;
}

/* The evidence that the row requires from the caller that closes it as done. */
static int check_rule(struct hf_draft *draft, const char *closer)
{
    const struct hf_change *change = draft->change;
    const char *rule = draft->old->w.close_rule;
    if (!rule || change->status != HF_STATUS_DONE)
        return 0;
    if (hf_same(rule, "evidence") && change->evidence_count == 0)
        return hf_fail(draft->err, HF_EPOLICY, "evidence",
                       "done needs evidence for this row: add a hash or a reference");
    if (!hf_same(rule, "reviewer"))
        return 0;
    if (!change->reviewer)
        return hf_fail(draft->err, HF_EPOLICY, "reviewer",
                       "done needs a reviewer for this row");
    if (hf_same(change->reviewer, closer))
        return hf_fail(draft->err, HF_EPOLICY, "reviewer",
                       "the reviewer must not be the owner");
    return 0;
}

static struct hf_note result_of(const struct hf_change *change)
{
    return (struct hf_note){
        .evidence = change->evidence,
        .evidence_count = change->evidence_count,
        .outputs = change->outputs,
        .output_count = change->output_count,
        .reviewer = change->reviewer,
        .summary = change->summary,
    };
}

/* The row's result as JSON in the arena; NULL where the change has none. */
static int result_text(struct hf_draft *draft, const char **ret_text)
{
    const struct hf_change *change = draft->change;
    struct hf_note result = result_of(change);
    *ret_text = NULL;
    bool has_result = change->evidence_count > 0 || change->output_count > 0 ||
                      change->reviewer || change->summary;
    return has_result ? hf_note_text(draft, &result, ret_text) : 0;
}

static const char *reason_of(const struct hf_change *change)
{
    if (change->status == HF_STATUS_DONE)
        return change->reason;
    return first_of(change->reason, change->error_class, hf_status_word(change->status));
}

/* What the row keeps of the authority that ended it. NULL: no memory. */
static const char *completed_as(const struct hf_draft *draft)
{
    return hf_arena_join(draft->arena, "complete ", draft->change->authority);
}

/* An authority has no token by which its repeat is known: the same authority says the same of a
 * row that it ended. */
static int completed_before(struct hf_draft *draft, bool *ret_before)
{
    const struct hf_change *change = draft->change;
    const struct hf_row *old = draft->old;
    const char *text = NULL;
    const char *as = completed_as(draft);
    if (!as)
        return hf_fail_plain(draft->err, HF_ENOMEM);
    int rc = old->status == change->status ? result_text(draft, &text) : 0;
    *ret_before = rc == 0 && old->status == change->status &&
                  hf_same(old->settled_verb, as) && hf_same(old->w.result, text) &&
                  hf_same(old->w.error_class, change->error_class) &&
                  hf_same(old->w.status_reason, reason_of(change));
    return rc;
}

static int close_row(struct hf_draft *draft, const char *verb)
{
    const struct hf_change *change = draft->change;
    struct hf_row *row = &draft->out.row;
    const char *text = NULL;
    int rc = result_text(draft, &text);
    if (rc)
        return rc;

    hf_draft_enter(draft, change->status, verb);
    row->w.result = text;
    row->w.error_class = change->error_class;
    row->w.status_reason = reason_of(change);
    row->message = change->reason;
    if (!change->token) {
        row->settled_token = NULL;
        row->settled_verb = completed_as(draft);
        if (!row->settled_verb)
            return hf_fail_plain(draft->err, HF_ENOMEM);
    }

    struct hf_note note = result_of(change);
    note.authority = change->authority;
    note.error_class = change->error_class;
    note.released_fence = hf_draft_released_fence(draft);
    note.reason = row->w.status_reason;
    note.status = row->w.status;
    return hf_draft_note(draft, &note);
}

int hf_draft_close_out(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    const struct hf_row *old = draft->old;
    const char *verb = change->token ? "close_out" : "complete";
    if (!change->token && !change->authority)
        return hf_fail(draft->err, HF_EINVAL, "token",
                       "a close-out needs the holder's token, or an authority");
    bool before = false;
    int rc = change->token ? 0 : completed_before(draft, &before);
    if (rc || before)
        return rc ? rc : hf_draft_repeat(draft);
    bool external = old->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    if (!change->token && !external && !hf_row_waits_for_rule(old))
        return hf_draft_refuse(draft, change->status, "an authority",
                               "only a row that is externally_owned, or that waits for "
                               "what its close rule asks, takes an authority");
    if (!hf_edge_legal(old->status, change->status, verb))
        return hf_draft_refuse(draft, change->status, verb, NULL);
    rc = check_rule(draft, external ? change->authority : old->w.owner);
    return rc ? rc : close_row(draft, verb);
}

int hf_draft_fail(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    struct hf_row *row = &draft->out.row;
    struct hf_retry retry;
    int rc = hf_draft_policy(draft, &retry);
    if (rc == 0)
        rc = hf_draft_count(draft, &row->w.failures, "failures");
    if (rc)
        return rc;

    struct hf_note note = {
        .error_class = change->error_class,
        .failures = row->w.failures,
        .released_fence = hf_draft_released_fence(draft),
        .max_attempts = row->w.max_attempts,
    };
    bool retryable = !hf_row_bound(row) &&
                     hf_retry_allows(&retry, change->error_class, false);
    if (retryable && row->w.failures < row->w.max_attempts)
        hf_draft_retry(draft, &retry, "fail", &note);
    else
        hf_draft_enter(draft, HF_STATUS_FAILED, "fail");
    row->w.error_class = change->error_class;
    row->w.status_reason = retryable && row->status == HF_STATUS_FAILED
                               ? "attempts_exhausted"
                               : first_of(change->reason, change->error_class, NULL);
    row->message = change->reason;
    note.reason = row->w.status_reason;
    return hf_draft_note(draft, &note);
}

int hf_draft_hand_back(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (hf_row_bound(row))
        return hf_draft_refuse(draft, HF_STATUS_QUEUED, "hand_back",
                               "only its owner can end a started owner_bound row");
    hf_draft_enter(draft, HF_STATUS_QUEUED, "hand_back");
    row->w.status_reason = first_of(draft->change->reason, "handed_back", NULL);
    row->message = draft->change->reason;
    return hf_draft_note(
        draft, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                  .released_fence = hf_draft_released_fence(draft),
                                  .reason = row->w.status_reason });
}

/* First writer wins: a later request is answered as the first was. */
static int record(struct hf_draft *draft, const char **column, const char *event)
{
    if (*column)
        return hf_draft_repeat(draft);
    int rc = hf_draft_request(draft, column);
    if (rc)
        return rc;
    draft->out.row.w.updated_at = draft->env->now;
    draft->out.row.message = draft->change->reason;
    draft->out.row.note = *column;
    hf_draft_quiet(draft, event);
    return 0;
}

int hf_draft_cancel(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (!hf_edge_legal(row->status, HF_STATUS_CANCELLED, "cancel"))
        return hf_draft_refuse(draft, HF_STATUS_CANCELLED, "cancel", NULL);
    /* The holder's own token cancels at once. The turn of a session ends by its commit. */
    bool asks = row->w.session_id ||
                (row->disposition == HF_DISPOSITION_OWNER_BOUND && !draft->change->token);
    if (row->status == HF_STATUS_RUNNING && asks)
        return record(draft, &row->w.cancel_request, "cancel_requested");

    hf_draft_enter(draft, HF_STATUS_CANCELLED, "cancel");
    row->w.status_reason = first_of(draft->change->reason, row->w.status, NULL);
    row->message = draft->change->reason;
    struct hf_note note = { .reason = row->w.status_reason };
    if (draft->change->token)
        note.released_fence = hf_draft_released_fence(draft);
    else
        note.lease_lost = draft->old;
    return hf_draft_note(draft, &note);
}

int hf_draft_requeue(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (!hf_edge_legal(row->status, HF_STATUS_QUEUED, "requeue"))
        return hf_draft_refuse(draft, HF_STATUS_QUEUED, "requeue", NULL);
    /* No caller here could run it; the caller that owns it outside starts a new unit. */
    if (row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return hf_draft_refuse(
            draft, HF_STATUS_QUEUED, "requeue",
            "an externally_owned row cannot be claimed: it runs elsewhere");
    int rc = hf_draft_count(draft, &row->w.generation, "generation");
    if (rc)
        return rc;
    hf_draft_enter(draft, HF_STATUS_QUEUED, "requeue");
    row->w.status_reason = first_of(draft->change->reason, "requeued", NULL);
    row->message = draft->change->reason;
    row->w.failures = 0;
    row->w.result = NULL;
    row->w.error_class = NULL;
    row->w.resume_payload = NULL;
    row->w.cancel_request = NULL;
    row->w.abandon_request = NULL;
    row->w.active_at = 0;
    row->w.first_started_at = 0;
    row->w.started_at = 0;
    row->w.finished_at = 0;
    row->crashes = 0;
    row->crashed_at = 0;
    row->settled_token = NULL;
    row->settled_verb = NULL;
    return hf_draft_note(draft, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                                   .generation = row->w.generation,
                                                   .reason = row->w.status_reason });
}

int hf_draft_request_abandon(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    bool external = row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    if (hf_status_terminal(row->status) || (!external && !hf_row_bound(row)))
        return hf_draft_refuse(
            draft, HF_STATUS_ABANDONED, "request_abandon",
            "only a started owner_bound or an externally_owned row that "
            "has not ended can be abandoned");
    int rc = record(draft, &row->w.abandon_request, "abandon_requested");
    if (rc || draft->out.kind != HF_STEP_QUIET)
        return rc;
    /* Let the next sweep look at the lease; a row without one is found by its request. */
    if (row->status == HF_STATUS_RUNNING)
        row->lease_check_at = draft->env->lease_now;
    return 0;
}

int hf_draft_abandon(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    if (!hf_row_bound(row) || !hf_edge_legal(row->status, HF_STATUS_ABANDONED, "drain"))
        return hf_draft_refuse(draft, HF_STATUS_ABANDONED, "abandon",
                               "only its owner can drain a started owner_bound row");
    hf_draft_enter(draft, HF_STATUS_ABANDONED, "drain");
    row->w.status_reason = "owner_drain";
    row->message = draft->change->reason;
    return hf_draft_note(
        draft, &(struct hf_note){ .released_fence = hf_draft_released_fence(draft),
                                  .reason = draft->change->reason,
                                  .writer = "owner_drain" });
}
