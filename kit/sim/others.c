/* Submitters, sweepers, monitors, operators, and holders of sessions. */

#include "sim/inside.h"

static void rest(struct hf_sim *sim, int actor, unsigned most_ms)
{
    struct sim_actor *a = &sim->actors[actor];
    a->wake_at = sim->mono + sim_own_ms(a, 1 + sim_roll(&sim->dice, most_ms));
}

/* ---- submitters ------------------------------------------------------------------ */

/* Units that have no maker among the workers. */
static bool first_hand(const struct hf_sim *sim, size_t unit)
{
    const struct sim_unit *u = &sim->units[unit];
    if (u->parent >= 0)
        return false;
    for (size_t i = 0; i < sim->unit_count; i++) {
        if (sim->units[i].next == (int)unit)
            return false;
    }
    return true;
}

/* Emit a new one, or now and then one again. */
static bool emit(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_EMIT);
    bool again = sim_one_in(&sim->dice, 8);
    if (sim->occurrence_count == 0 || !sim_one_in(&sim->dice, 3))
        return false;
    size_t from = sim_roll(&sim->dice, (unsigned)sim->occurrence_count);
    for (size_t i = 0; i < sim->occurrence_count; i++) {
        op.key = (int)((from + i) % sim->occurrence_count);
        if (sim->occurrences[op.key].acked != again)
            continue;
        sim_send(sim, &op);
        return true;
    }
    return false;
}

static bool enqueue(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_JOB);
    if (sim->limits.jobs_left == 0 || sim->healing || !sim_one_in(&sim->dice, 3))
        return false;
    sim->limits.jobs_left--;
    op.key = (int)sim_roll(&sim->dice, SIM_JOB_KEYS);
    op.span_ms = sim_one_in(&sim->dice, 2) ? 500 + sim_roll(&sim->dice, 3000) : 0;
    sim_send(sim, &op);
    return true;
}

/* Some units in one batch; a process goes alone, by its own verb. */
static void choose(struct hf_sim *sim, struct sim_op *op)
{
    bool again = sim_one_in(&sim->dice, 12);
    size_t from = sim_roll(&sim->dice, (unsigned)sim->unit_count);
    for (size_t i = 0; i < sim->unit_count && op->count < 3; i++) {
        size_t unit = (from + i) % sim->unit_count;
        bool process = sim->units[unit].workload == HF_SIM_OF_PROCESS;
        if (sim->units[unit].acked != again || !first_hand(sim, unit) ||
            (process && op->count > 0))
            continue;
        op->units[op->count++] = (int)unit;
        if (process)
            op->kind = SIM_OP_REGISTER;
        if (process || sim_one_in(&sim->dice, 2))
            break;
    }
}

static void submit(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_CREATE);
    if (emit(sim, actor) || enqueue(sim, actor))
        return;
    op.limit = 1; /* as many rows as a claim with a registration takes */
    choose(sim, &op);
    if (op.count == 0) {
        rest(sim, actor, sim->occurrence_count || sim->limits.jobs_left ? 800 : 4000);
        return;
    }
    op.flags = sim_one_in(&sim->dice, 2) ? HF_ALL_OR_NONE : 0;
    sim_send(sim, &op);
}

void sim_hear_created(struct hf_sim *sim, const struct sim_op *op,
                      const struct sim_answer *answer)
{
    for (size_t i = 0; answer->code == 0 && i < answer->count && i < op->count; i++) {
        struct sim_unit *u = &sim->units[op->units[i]];
        if (answer->items[i].code && !sim_was_pruned(sim, op, answer->items[i].code))
            continue;
        u->acked = true;
        sim_copy(u->id, sizeof(u->id), answer->items[i].id);
    }
}

/* ---- sweepers and monitors ------------------------------------------------------- */

static void sweep(struct hf_sim *sim, int actor)
{
    bool passes = sim_has_cron(sim) && !sim->healing && sim_one_in(&sim->dice, 2);
    struct sim_op op = sim_request(sim, actor, passes ? SIM_OP_PASS : SIM_OP_SWEEP);
    rest(sim, actor, 1500);
    sim_send(sim, &op);
}

/* A monitor that keeps running. In the end it leaves schedules alone, as all do. */
static void watch(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_MONITOR);
    rest(sim, actor, 1500);
    sim_send(sim, &op);
}

/* Renews what a worker holds, as `monitor --owner` does. */
static void renew_all(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_RENEW_ALL);
    op.hold = (int)sim_roll(&sim->dice, (unsigned)sim->worker_count);
    op.boot = sim->actors[op.hold].boot;
    rest(sim, actor, 6000);
    if (!sim->healing)
        sim_send(sim, &op);
}

/* ---- operators ------------------------------------------------------------------- */

static struct sim_op verb_on(const struct hf_sim *sim, int actor, enum hf_verb verb,
                             const struct sim_shadow *s)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_CHANGE);
    op.verb = verb;
    sim_copy(op.id, sizeof(op.id), s->id);
    sim_format(op.name, sizeof(op.name), "op-%d-%d-%d", actor, sim->actors[actor].boot,
               sim->actors[actor].nonces);
    return op;
}

static bool family_done(struct hf_sim *sim, const struct sim_shadow *s)
{
    const struct sim_unit *u = s->unit >= 0 ? &sim->units[s->unit] : NULL;
    for (int i = 0; u && u->workload == HF_SIM_OF_FAN && u->parent < 0 && i < 3; i++) {
        const struct sim_unit *child = &sim->units[u->children[i]];
        const struct sim_shadow *c = child->acked ? sim_shadow_of(sim, child->id) : NULL;
        bool pruned = child->acked && !child->id[0];
        if (!pruned && (!c || (!c->gone && !hf_status_terminal(c->status))))
            return false;
    }
    return true;
}

/* A bound row whose owner will not come back, or that no other actor may move. */
static bool orphaned(const struct hf_sim *sim, const struct sim_shadow *s)
{
    return s->bound && s->status != HF_STATUS_QUEUED && !hf_status_terminal(s->status) &&
           (sim->healing || !sim->has_processes);
}

/* What an operator would do to this row, if anything. */
static enum hf_verb remedy(struct hf_sim *sim, const struct sim_shadow *s)
{
    bool waits = s->status == HF_STATUS_WAITING_USER ||
                 s->status == HF_STATUS_WAITING_EXTERNAL;
    enum hf_sim_workload workload = s->unit < 0 ? HF_SIM_OF_PLAIN
                                                : sim->units[s->unit].workload;
    if (s->gone)
        return HF_VERB_NONE;
    if (s->held)
        return HF_VERB_RELEASE;
    if (s->disposition == HF_DISPOSITION_EXTERNALLY_OWNED && waits)
        return sim_one_in(&sim->dice, 4) && !sim->healing ? HF_VERB_REQUEST_ABANDON
                                                          : HF_VERB_CLOSE_OUT;
    if (waits && !s->bound && family_done(sim, s))
        return HF_VERB_RESUME;
    if (orphaned(sim, s) && (waits || s->expires_at < sim_lease_now(sim)))
        return HF_VERB_REQUEST_ABANDON;
    if (workload == HF_SIM_OF_BOUND && s->status == HF_STATUS_RUNNING && !sim->healing &&
        sim_one_in(&sim->dice, 4))
        return HF_VERB_CANCEL; /* recorded, for the owner to see */
    if (workload == HF_SIM_OF_CANCEL && !sim->healing)
        return hf_status_terminal(s->status) ? HF_VERB_REQUEUE : HF_VERB_CANCEL;
    return HF_VERB_NONE;
}

static bool can_adjust(const struct hf_sim *sim, enum sim_kind kind)
{
    if (kind == SIM_OP_LIMIT)
        return (sim->workloads & (1u << HF_SIM_OF_LIMIT)) != 0;
    return kind == SIM_OP_SCHEDULE ? sim_has_cron(sim)
                                   : sim_has_triggers(sim) && sim->turning;
}

/* Settings that an operator changes while everything runs. */
static bool adjust(struct hf_sim *sim, int actor)
{
    static const enum sim_kind kinds[] = { SIM_OP_LIMIT, SIM_OP_SUBSCRIPTION,
                                           SIM_OP_SCHEDULE };
    struct sim_op op = sim_request(sim, actor, SIM_OP_NONE);
    unsigned from = sim_roll(&sim->dice, 3);
    for (unsigned i = 0; i < 3 && op.kind == SIM_OP_NONE; i++) {
        if (can_adjust(sim, kinds[(from + i) % 3]))
            op.kind = kinds[(from + i) % 3];
    }
    if (sim->healing || op.kind == SIM_OP_NONE || !sim_one_in(&sim->dice, 2))
        return false;
    op.key = (int)sim_roll(&sim->dice, op.kind == SIM_OP_SCHEDULE ? SIM_SCHEDULES
                                                                  : SIM_SUBSCRIPTIONS);
    op.limit = op.kind == SIM_OP_LIMIT ? 1 + (int)sim_roll(&sim->dice, 3)
                                       : (int)sim_roll(&sim->dice, 2);
    sim_format(op.name, sizeof(op.name), "set-%d-%d", actor, sim->actors[actor].nonces++);
    sim_send(sim, &op);
    return true;
}

static void operate(struct hf_sim *sim, int actor)
{
    rest(sim, actor, 2500);
    if (adjust(sim, actor) || sim->shadow_count == 0)
        return;
    size_t from = sim_roll(&sim->dice, (unsigned)sim->shadow_count);
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *s = &sim->shadows[(from + i) % sim->shadow_count];
        enum hf_verb verb = remedy(sim, s);
        if (verb == HF_VERB_NONE)
            continue;
        struct sim_op op = verb_on(sim, actor, verb, s);
        sim->actors[actor].nonces++;
        if (verb == HF_VERB_CLOSE_OUT) {
            op.status = sim_one_in(&sim->dice, 4) ? HF_STATUS_FAILED : HF_STATUS_DONE;
            op.name[0] = '\0';
        }
        sim_send(sim, &op);
        return;
    }
}

/* ---- sessions -------------------------------------------------------------------- */

static void lease(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_hold *h = &a->holds[0];
    struct sim_op op = sim_request(sim, actor, SIM_OP_TAKE);
    op.ttl_ms = 1500;
    op.key = h->used ? h->unit : (int)sim_roll(&sim->dice, SIM_KEYS);
    if (sim->healing) {
        rest(sim, actor, 4000);
        return;
    }
    if (h->used) {
        op.kind = sim_one_in(&sim->dice, 5)    ? SIM_OP_RELEASE
                  : sim_one_in(&sim->dice, 10) ? SIM_OP_TAKE
                                               : SIM_OP_KEEP;
        op.fence = h->fence;
        sim_copy(op.token, sizeof(op.token), h->token);
    }
    sim_format(op.name, sizeof(op.name), "l-%d-%d", actor, a->nonces++);
    sim_send(sim, &op);
}

static void hear_lease(struct hf_sim *sim, int actor, const struct sim_op *op,
                       const struct sim_answer *answer)
{
    struct sim_hold *h = &sim->actors[actor].holds[0];
    rest(sim, actor, 700);
    if (sim_retryable(answer->code))
        return; /* a release or a renewal is tried again, a take with another nonce */
    if (answer->code || op->kind == SIM_OP_RELEASE) {
        *h = (struct sim_hold){ 0 };
        return;
    }
    h->used = true;
    h->unit = op->key;
    h->fence = answer->items[0].fence;
    sim_copy(h->token, sizeof(h->token), answer->items[0].token);
}

/* ---- all of them ----------------------------------------------------------------- */

void sim_other_act(struct hf_sim *sim, int actor)
{
    switch (sim->actors[actor].role) {
    case SIM_SUBMITTER: submit(sim, actor); break;
    case SIM_SWEEPER: sweep(sim, actor); break;
    case SIM_RENEWER: renew_all(sim, actor); break;
    case SIM_OPERATOR: operate(sim, actor); break;
    case SIM_LEASER: lease(sim, actor); break;
    case SIM_MONITOR: watch(sim, actor); break;
    case SIM_SENDER: sim_sender_act(sim, actor); break;
    case SIM_TALKER: sim_talker_act(sim, actor); break;
    case SIM_WORKER: break;
    }
}

void sim_other_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                    const struct sim_answer *answer)
{
    if (sim->actors[actor].role == SIM_LEASER)
        hear_lease(sim, actor, op, answer);
    if (sim->actors[actor].role == SIM_SENDER)
        sim_sender_hear(sim, actor, op, answer);
    if (sim->actors[actor].role == SIM_TALKER)
        sim_talker_hear(sim, actor, op, answer);
    if (op->kind == SIM_OP_EMIT && answer->code == 0)
        sim->occurrences[op->key].acked = true;
}
