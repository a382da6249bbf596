/* Processes: registered by their owner, with a claim in the same transaction, or by
 * another actor; and what a sweep must do with a row by its declared disposition. */

#include "sim/inside.h"

int sim_register_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                      const struct hf_work_spec *work, struct hf_answer **ret_answer)
{
    struct hf_process_spec new = { .size = sizeof(new), .identity_kind = "sim" };
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    struct hf_claim claim = { .size = sizeof(claim), .limit = 1 };
    char owner[SIM_NAME];
    char incarnation[SIM_NAME];
    (void)sim;
    sim_format(owner, sizeof(owner), "a%d", op->actor);
    sim_format(incarnation, sizeof(incarnation), "boot-%d", op->boot);
    who.actor = owner;
    claim.owner = owner;
    claim.incarnation = incarnation;
    claim.nonce = op->name;
    claim.pid = op->pid;
    claim.ttl_ms = op->ttl_ms;
    new.work = work;
    new.claim = op->name[0] ? &claim : NULL;
    return hf_process_register(store, &who, &new, ret_answer, NULL);
}

/* The table of docs/ledger.md: what becomes of a running row whose lease has lapsed. A
 * started owner_bound row stays, and what is owned outside has no lease. */
static bool must_leave(enum hf_disposition disposition)
{
    return disposition == HF_DISPOSITION_RERUNNABLE ||
           disposition == HF_DISPOSITION_EXPIRE;
}

/* One sweep since the last look, and no other call: what had lapsed before it has
 * left. */
void sim_judge_verdict(struct hf_sim *sim, const struct sim_shadow *s)
{
    const struct sim_did *did = &sim->window[0];
    bool swept = sim->window_count == 1 && did->known && did->code == 0 &&
                 (did->op.kind == SIM_OP_SWEEP || did->op.kind == SIM_OP_MONITOR);
    bool stayed = s->status == HF_STATUS_RUNNING && s->was_status == HF_STATUS_RUNNING &&
                  !s->fresh && s->fence == s->was_fence;
    if (!swept || !stayed || !must_leave(s->disposition))
        return;
    if (s->disposition == HF_DISPOSITION_EXPIRE && s->unit < 0 && !s->occurrence)
        return; /* of an escalation, say: its grace is the default's */
    hf_ms grace = s->disposition == HF_DISPOSITION_EXPIRE ? SIM_GRACE_MS : 0;
    if (s->expires_at + grace <= did->lease_at)
        sim_violate(sim, "row %s (%s): its lease has lapsed, and a sweep left it running",
                    s->id, hf_disposition_word(s->disposition));
}
