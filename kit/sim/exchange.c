/* A close-out and the next claim as one transaction, as a pool does it. To the checker they are
 * two calls: whatever is promised of each holds of both. */

#include "sim/inside.h"

struct sim_op sim_exchange_settles(const struct sim_op *op)
{
    struct sim_op settles = *op;
    settles.kind = SIM_OP_CHANGE;
    settles.name[0] = '\0';
    settles.limit = 0;
    settles.ttl_ms = 0;
    return settles;
}

struct sim_op sim_exchange_claims(const struct sim_op *op)
{
    struct sim_op claims = *op;
    claims.kind = SIM_OP_CLAIM;
    claims.verb = HF_VERB_NONE;
    claims.status = HF_STATUS_NONE;
    claims.fence = claims.store = 0;
    claims.id[0] = claims.token[0] = '\0';
    return claims;
}

/* The first item is of the close-out, the others of the claim. */
struct sim_answer sim_exchange_part(const struct sim_answer *answer, bool claimed)
{
    struct sim_answer part = { .code = answer->code };
    if (answer->code || answer->count == 0)
        return part;
    part.count = claimed ? answer->count - 1 : 1;
    for (size_t i = 0; i < part.count; i++)
        part.items[i] = answer->items[i + claimed];
    return part;
}

void sim_exchange_judge(struct hf_sim *sim, const struct sim_op *op,
                        const struct sim_answer *answer, bool known)
{
    struct sim_op settles = sim_exchange_settles(op);
    struct sim_op claims = sim_exchange_claims(op);
    struct sim_answer settled = sim_exchange_part(answer, false);
    struct sim_answer claimed = sim_exchange_part(answer, true);
    if (known && answer->code == 0)
        sim_mark(sim, HF_SIM_MARK_EXCHANGED);
    if (known && answer->code == HF_EGUARD)
        sim_mark(sim, HF_SIM_MARK_EXCHANGE_SPLIT);
    sim_judge_answer(sim, &settles, &settled, known);
    sim_judge_answer(sim, &claims, &claimed, known);
}

int sim_exchange_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                      struct hf_exchange *io_exchange)
{
    char owner[SIM_NAME], incarnation[SIM_NAME];
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    struct hf_change change = { .size = sizeof(change), .verb = op->verb };
    struct hf_claim claim = { .size = sizeof(claim) };
    sim_format(owner, sizeof(owner), "a%d", op->actor);
    sim_format(incarnation, sizeof(incarnation), "boot-%d", op->boot);
    who.actor = owner;
    change.id = op->id;
    change.token = op->token;
    change.status = op->status;
    change.reason = "sim";
    claim.owner = owner;
    claim.incarnation = incarnation;
    claim.nonce = op->name;
    claim.pid = op->pid;
    claim.limit = (size_t)op->limit;
    claim.ttl_ms = op->ttl_ms;
    io_exchange->changes = &change;
    io_exchange->n = 1;
    io_exchange->claim = &claim;
    return sim->factory->exchange(sim->factory->user, store, &who, io_exchange);
}
