/* The step of a claim, for one row that was found by its id or by a queue's order. */

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/draft.h"
#include "core/ledger/lifecycle.h"

/* A row that runs already: its own holder may come in again, late too, as long as no
 * caller acted; otherwise a lost answer would lock an owner_bound row for ever. */
static int reenter(struct hf_draft *draft, const struct hf_claimant *who)
{
    struct hf_lease lease = hf_row_lease(draft->old);
    if (!hf_lease_mine(&lease, who))
        return hf_fail(
            draft->err, HF_EHELD, "owner", "held by %s%s",
            lease.owner ? lease.owner : "an owner without a name",
            hf_lease_live(&lease, draft->env->lease_now)
                ? ""
                : ", whose lease has lapsed: a sweep decides how it continues");
    if (hf_same(lease.nonce, who->nonce))
        return hf_draft_repeat(draft);

    struct hf_claimant with = *who;
    if (with.ttl_ms == 0)
        with.ttl_ms = lease.ttl_ms;
    int rc = hf_lease_timing(with.ttl_ms, 0, draft->err);
    if (rc)
        return rc;
    struct hf_lease again = hf_lease_reentered(&lease, &with, draft->env->lease_now);
    hf_draft_put_lease(draft, &again);
    hf_draft_quiet(draft, "lease_rotated");
    return hf_draft_note(draft, &(struct hf_note){ .lease = &draft->out.row });
}

static int claim(struct hf_draft *draft, const struct hf_claimant *who)
{
    const struct hf_row *old = draft->old;
    if (old->w.session_id)
        return hf_draft_refuse(draft, HF_STATUS_RUNNING, "claim",
                               "the row is claimed under its session's lease");
    if (old->status == HF_STATUS_RUNNING)
        return reenter(draft, who);
    if (!hf_edge_legal(old->status, HF_STATUS_RUNNING, "claim"))
        return hf_draft_refuse(draft, HF_STATUS_RUNNING, "claim", NULL);
    if (old->w.gate)
        return hf_fail(draft->err, HF_ETRANSITION, "gate",
                       "the row cannot be claimed now: gate is %s", old->w.gate);
    if (old->w.deadline_at && old->w.deadline_at <= draft->env->now)
        return hf_fail(draft->err, HF_ETRANSITION, "deadline_at",
                       "its start deadline has passed: a sweep ends it");
    int rc = hf_draft_acquire(draft, who, "claim");
    if (rc)
        return rc;
    return hf_draft_note(draft, &(struct hf_note){
                                    .deadline_at = draft->out.row.w.deadline_at,
                                    .from = who->ttl_ms ? "request" : "policy",
                                    .lease = &draft->out.row,
                                });
}

int hf_step_claim(struct hf_arena *arena, const struct hf_row *row,
                  const struct hf_claimant *who, const struct hf_env *env,
                  struct hf_step *ret_step, struct hf_err *err)
{
    struct hf_draft draft = hf_draft_begin(arena, row, env, err);
    struct hf_claimant with = *who;
    if (!with.holder)
        with.holder = env->holder;
    int rc = claim(&draft, &with);
    if (rc == 0)
        *ret_step = draft.out;
    return rc;
}
