/* A monitor that keeps running, on a store that may stall: it extends, by one term, the
 * leases that the stall may have kept from being renewed, and no others (rule 13,
 * amnesty_only_for_a_witnessed_stall). */

#include "sim/inside.h"

int sim_monitor_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                     hf_ms *ret_stalled_ms)
{
    struct sim_actor *a = &sim->actors[op->actor];
    hf_ms forgotten = 0; /* a pass of a boot that is over */
    hf_ms *since = a->boot == op->boot ? &a->since : &forgotten;
    hf_ms from = *since ? *since : sim->mono;
    int rc = sim->factory->monitor(sim->factory->user, store, since, NULL);
    *ret_stalled_ms = sim->mono - from;
    return rc;
}

/* The lease lived when the stall began, and the stall took more than a third of its term. */
static bool qualifies(const struct sim_shadow *s, const struct sim_did *did)
{
    return s->was_ttl_ms < 3 * did->stalled_ms &&
           s->was_expires_at >= did->lease_at - did->stalled_ms;
}

static bool may_move(const struct sim_shadow *s, const struct sim_did *did)
{
    const struct sim_op *op = &did->op;
    if (op->kind == SIM_OP_MONITOR)
        return !did->known || (qualifies(s, did) &&
                               (!did->store || s->was_lease_incarnation == did->store));
    if (op->kind == SIM_OP_CHANGE)
        return op->verb == HF_VERB_RENEW && op->fence == s->fence &&
               sim_same(op->id, s->id);
    return op->kind == SIM_OP_RENEW_ALL || op->kind == SIM_OP_CLAIM ||
           op->kind == SIM_OP_REGISTER; /* the last two enter again */
}

void sim_judge_expiry(struct hf_sim *sim, const struct sim_shadow *s)
{
    bool moved = s->status == HF_STATUS_RUNNING && s->was_status == HF_STATUS_RUNNING &&
                 !s->fresh && s->fence == s->was_fence &&
                 s->expires_at > s->was_expires_at;
    bool spared = false;
    for (size_t i = 0; moved && i < sim->window_count; i++) {
        const struct sim_did *did = &sim->window[i];
        spared |= did->op.kind == SIM_OP_MONITOR;
        if (!may_move(s, did))
            continue;
        if (did->op.kind == SIM_OP_MONITOR && did->known)
            sim_mark(sim, HF_SIM_MARK_SPARED);
        return;
    }
    if (moved)
        sim_violate(sim, "row %s: its expiry moved from %lld to %lld, %s", s->id,
                    (long long)s->was_expires_at, (long long)s->expires_at,
                    spared ? "by a monitor that saw no such stall" : "by no monitor");
}

bool sim_spares(const struct hf_sim *sim, const struct sim_shadow *s)
{
    const struct sim_did *did = &sim->window[0];
    return sim->window_count == 1 && did->op.kind == SIM_OP_MONITOR && did->known &&
           did->code == 0 && s->was_lease_incarnation == did->store && qualifies(s, did);
}
