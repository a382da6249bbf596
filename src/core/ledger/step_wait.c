/* The steps by which a row waits for an answer, and by which it continues. */

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/draft.h"
#include "core/ledger/lifecycle.h"

int hf_draft_wait(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    const struct hf_env *env = draft->env;
    struct hf_row *row = &draft->out.row;
    bool user = change->status == HF_STATUS_WAITING_USER;
    if (!hf_edge_legal(row->status, change->status, "wait"))
        return hf_draft_refuse(draft, change->status, "wait", NULL);
    hf_ms budget = change->timeout_ms;
    if (budget == 0)
        budget = user ? env->policy->wait_user_ms : env->policy->wait_external_ms;
    if (env->policy->wait_rule && change->escalate_after_ms == 0)
        return hf_fail(draft->err, HF_EPOLICY, "escalate_after_ms",
                       "the policy asks for an escalation of every wait: add "
                       "escalate_after_ms (--escalate-after), at most %lld ms",
                       (long long)budget);
    if (change->escalate_after_ms > budget)
        return hf_fail(draft->err, HF_EINVAL, "escalate_after_ms",
                       "the escalation must come before the end of the wait (%lld ms)",
                       (long long)budget);

    hf_draft_enter(draft, change->status, "wait");
    row->w.waiting_kind = user ? "user" : "external";
    row->w.waiting_ref = change->ref;
    row->w.deadline_at = hf_later(env->now, budget);
    row->w.resume_payload = NULL; /* the last wait's answer has been used */
    if (change->escalate_after_ms > 0) {
        row->w.escalate_at = hf_later(env->now, change->escalate_after_ms);
        row->w.escalate = change->escalate ? change->escalate : "event";
    }
    row->w.status_reason = change->reason ? change->reason : row->w.status;
    row->message = change->reason;
    return hf_draft_note(draft, &(struct hf_note){
                                    .deadline_at = row->w.deadline_at,
                                    .escalate = row->w.escalate,
                                    .escalate_at = row->w.escalate_at,
                                    .from = change->timeout_ms ? "request" : "policy",
                                    .kind = row->w.waiting_kind,
                                    .released_fence = hf_draft_released_fence(draft),
                                    .reason = row->w.status_reason,
                                    .ref = change->ref,
                                    .timeout_ms = budget,
                                });
}

/* The answer goes into the trail too, since the next wait clears it from the row; what is
 * longer than an event may be is named by its size. */
static int note_resumed(struct hf_draft *draft, struct hf_note *note)
{
    const char *payload = draft->change->payload;
    size_t len = payload ? strlen(payload) : 0;
    if (len > (size_t)HF_MAX_EVENT_BYTES) {
        note->payload_bytes = (int64_t)len;
        return hf_draft_note(draft, note);
    }
    struct hf_buf text;
    hf_buf_init(&text, draft->arena->alloc, 8 * (size_t)HF_MAX_EVENT_BYTES);
    int rc = 0;
    if (payload) {
        rc = hf_json_canonical_text(&text, (struct hf_span){ payload, len });
        note->payload = hf_buf_str(&text);
    }
    rc = rc ? hf_fail(draft->err, rc, "payload", "the payload cannot be read")
            : hf_draft_note(draft, note);
    hf_buf_fini(&text);
    return rc;
}

static int resume_running(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    const struct hf_row *old = draft->old;
    struct hf_claimant who = {
        .owner = change->owner,
        .incarnation = change->incarnation,
        .nonce = change->nonce,
        .holder = draft->env->holder,
        .ttl_ms = change->ttl_ms,
        .store = draft->env->store,
    };
    /* The owner continues in the same process: what can prove its death stays. */
    if (!who.holder && hf_row_bound(old))
        who.holder = old->w.holder;
    if (!who.incarnation || !who.nonce)
        return hf_fail(draft->err, HF_EINVAL, who.nonce ? "incarnation" : "nonce",
                       "a resume under a lease needs an incarnation and a nonce");
    /* A new incarnation of the owner has not got what the old one had in its hands. */
    if (hf_row_bound(old) && (!hf_same(old->w.owner, who.owner) ||
                              !hf_same(old->w.owner_incarnation, who.incarnation)))
        return hf_draft_refuse(
            draft, HF_STATUS_RUNNING, "resume",
            "only the same owner and incarnation can continue a started owner_bound row");
    int rc = hf_draft_acquire(draft, &who, "resume");
    if (rc)
        return rc;
    draft->out.row.w.resume_payload = change->payload;
    return note_resumed(draft, &(struct hf_note){
                                   .deadline_at = draft->out.row.w.deadline_at,
                                   .from = change->ttl_ms ? "request" : "policy",
                                   .lease = &draft->out.row,
                                   .reason = change->reason,
                                   .ref = old->w.waiting_ref,
                               });
}

static int resume_queued(struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    struct hf_row *row = &draft->out.row;
    if (hf_row_bound(row))
        return hf_draft_refuse(
            draft, HF_STATUS_QUEUED, "resume",
            "a started owner_bound row can be resumed only by its owner");
    hf_draft_enter(draft, HF_STATUS_QUEUED, "resume");
    row->w.resume_payload = change->payload;
    row->w.status_reason = change->reason ? change->reason : "resumed";
    return note_resumed(draft, &(struct hf_note){ .deadline_at = row->w.deadline_at,
                                                  .reason = row->w.status_reason,
                                                  .ref = draft->old->w.waiting_ref });
}

/* The same claimant with the same nonce has resumed it before: its answer was lost. */
static bool resumed_before(const struct hf_draft *draft)
{
    const struct hf_change *change = draft->change;
    struct hf_lease lease = hf_row_lease(draft->old);
    struct hf_claimant who = { .owner = change->owner,
                               .incarnation = change->incarnation,
                               .store = draft->env->store };
    return draft->old->status == HF_STATUS_RUNNING && change->owner && change->nonce &&
           hf_lease_mine(&lease, &who) && hf_same(lease.nonce, change->nonce);
}

int hf_draft_resume(struct hf_draft *draft)
{
    const struct hf_row *old = draft->old;
    enum hf_status to = draft->change->owner ? HF_STATUS_RUNNING : HF_STATUS_QUEUED;
    if (resumed_before(draft))
        return hf_draft_repeat(draft);
    if (!hf_edge_legal(old->status, to, "resume"))
        return hf_draft_refuse(draft, to, "resume", "the row does not wait");
    if (old->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return hf_draft_refuse(
            draft, to, "resume",
            "an externally_owned row cannot be resumed: close it out with an authority");
    draft->out.row.message = old->w.waiting_ref; /* for the caller that reads the trail */
    return to == HF_STATUS_RUNNING ? resume_running(draft) : resume_queued(draft);
}

int hf_draft_signal(struct hf_draft *draft)
{
    struct hf_row *row = &draft->out.row;
    row->w.resume_payload = draft->change->payload;
    row->w.updated_at = draft->env->now;
    row->message = draft->change->ref;
    hf_draft_quiet(draft, "signal_taken");
    return note_resumed(draft, &(struct hf_note){ .reason = draft->change->reason,
                                                  .ref = draft->change->ref });
}
