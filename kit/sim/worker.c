/* Workers: claim, work, renew, settle. What a unit's work is, its workload says. A worker
 * never drops a request before it had a certain answer, and never sends another in its
 * place; but it may die, sleep, or forget. */

#include "sim/inside.h"

static struct sim_op change_of(const struct hf_sim *sim, int actor, int hold,
                               enum hf_verb verb)
{
    const struct sim_hold *h = &sim->actors[actor].holds[hold];
    struct sim_op op = sim_request(sim, actor, SIM_OP_CHANGE);
    op.verb = verb;
    op.hold = hold;
    op.fence = h->fence;
    op.store = h->store;
    sim_copy(op.id, sizeof(op.id), h->id);
    sim_copy(op.token, sizeof(op.token), h->token);
    return op;
}

static void settle(struct hf_sim *sim, int actor, int hold, const struct sim_op *op)
{
    struct sim_hold *h = &sim->actors[actor].holds[hold];
    h->settling = true;
    h->last = *op;
    sim_send(sim, op);
}

static void close_out(struct hf_sim *sim, int actor, int hold, enum hf_status status)
{
    struct sim_op op = change_of(sim, actor, hold, HF_VERB_CLOSE_OUT);
    op.status = status;
    settle(sim, actor, hold, &op);
}

static void plain_verb(struct hf_sim *sim, int actor, int hold, enum hf_verb verb)
{
    struct sim_op op = change_of(sim, actor, hold, verb);
    settle(sim, actor, hold, &op);
}

static void fail(struct hf_sim *sim, int actor, int hold, const char *why)
{
    struct sim_op op = change_of(sim, actor, hold, HF_VERB_FAIL);
    op.why = why;
    settle(sim, actor, hold, &op);
}

static void wait_for(struct hf_sim *sim, int actor, int hold, hf_ms span_ms)
{
    const struct sim_hold *h = &sim->actors[actor].holds[hold];
    struct sim_op op = change_of(sim, actor, hold, HF_VERB_WAIT);
    bool family = h->unit >= 0 && sim->units[h->unit].workload == HF_SIM_OF_FAN;
    op.status = family ? HF_STATUS_WAITING_EXTERNAL : HF_STATUS_WAITING_USER;
    op.span_ms = span_ms;
    op.limit = family ? 0 : (int)sim_roll(&sim->dice, 3); /* how it escalates */
    sim_format(op.name, sizeof(op.name), "ref-%d", h->unit);
    settle(sim, actor, hold, &op);
}

static void forget(struct sim_hold *h)
{
    *h = (struct sim_hold){ 0 };
}

/* ---- what work is ---------------------------------------------------------------- */

/* Ask for units before continuing; true when that is under way. */
static bool first_create(struct hf_sim *sim, int actor, int hold, const int *units,
                         size_t count)
{
    struct sim_hold *h = &sim->actors[actor].holds[hold];
    if (h->progress > 0)
        return false;
    struct sim_op op = sim_request(sim, actor, SIM_OP_CREATE);
    op.hold = hold;
    op.count = count;
    op.flags = count > 1 ? HF_ALL_OR_NONE : 0;
    for (size_t i = 0; i < count; i++)
        op.units[i] = units[i];
    if (count > 1)
        sim_format(op.name, sizeof(op.name), "fan-%d", h->unit);
    sim_send(sim, &op);
    return true;
}

/* The next link of a chain or hop of a ring. */
static int next_of(struct hf_sim *sim, int unit)
{
    struct sim_unit *u = &sim->units[unit];
    if (u->left == 0)
        return -1;
    if (u->next < 0) {
        int next = sim_add_unit(sim, u->workload);
        if (next < 0)
            return -1;
        sim->units[next].chain = u->chain;
        sim->units[next].left = u->left - 1;
        u->next = next;
    }
    return u->next;
}

static void work_link(struct hf_sim *sim, int actor, int hold)
{
    int next = next_of(sim, sim->actors[actor].holds[hold].unit);
    if (next < 0 || !first_create(sim, actor, hold, &next, 1))
        close_out(sim, actor, hold, HF_STATUS_DONE);
}

static void work_family(struct hf_sim *sim, int actor, int hold)
{
    const struct sim_hold *h = &sim->actors[actor].holds[hold];
    const struct sim_unit *u = &sim->units[h->unit];
    if (u->parent >= 0 || h->resumed)
        close_out(sim, actor, hold, HF_STATUS_DONE);
    else if (!first_create(sim, actor, hold, u->children, 3))
        wait_for(sim, actor, hold, 3600000);
}

static void work_plain(struct hf_sim *sim, int actor, int hold)
{
    unsigned roll = sim_roll(&sim->dice, 100);
    if (roll < 70 || sim->healing)
        close_out(sim, actor, hold, HF_STATUS_DONE);
    else if (roll < 78)
        fail(sim, actor, hold, "transient_network");
    else if (roll < 82)
        fail(sim, actor, hold, "validation");
    else if (roll < 90)
        plain_verb(sim, actor, hold, HF_VERB_HAND_BACK);
    else if (roll < 96)
        wait_for(sim, actor, hold, 2000);
    else
        close_out(sim, actor, hold, roll < 98 ? HF_STATUS_FAILED : HF_STATUS_CANCELLED);
}

static void work_wait(struct hf_sim *sim, int actor, int hold)
{
    if (sim->actors[actor].holds[hold].resumed || sim->healing)
        close_out(sim, actor, hold, HF_STATUS_DONE);
    else
        wait_for(sim, actor, hold, 500 + sim_roll(&sim->dice, 8000));
}

static void work_bound(struct hf_sim *sim, int actor, int hold)
{
    unsigned roll = sim_roll(&sim->dice, 10);
    if (roll < 5 || sim->healing)
        close_out(sim, actor, hold, HF_STATUS_DONE);
    else if (roll == 5)
        plain_verb(sim, actor, hold, HF_VERB_ABANDON);
    else if (roll == 6)
        wait_for(sim, actor, hold, 2000);
    else if (roll == 7)
        fail(sim, actor, hold, "transient_network");
    else
        forget(&sim->actors[actor].holds[hold]);
}

static void work_expire(struct hf_sim *sim, int actor, int hold)
{
    if (sim_one_in(&sim->dice, 3))
        forget(&sim->actors[actor].holds[hold]);
    else
        close_out(sim, actor, hold, HF_STATUS_DONE);
}

static void work_budget(struct hf_sim *sim, int actor, int hold)
{
    if (sim_one_in(&sim->dice, 4))
        close_out(sim, actor, hold, HF_STATUS_DONE);
    else
        fail(sim, actor, hold, "transient_network");
}

static void work_turn(struct hf_sim *sim, int actor, int hold)
{
    struct sim_hold *h = &sim->actors[actor].holds[hold];
    switch (sim_turn_work(sim, actor, hold)) {
    case SIM_WORK_DONE: close_out(sim, actor, hold, HF_STATUS_DONE); break;
    case SIM_WORK_LOST: forget(h); break;
    case SIM_WORK_MORE: h->done_at = sim->mono + 1 + sim_roll(&sim->dice, 700); break;
    }
}

static void work_on(struct hf_sim *sim, int actor, int hold)
{
    const struct sim_hold *h = &sim->actors[actor].holds[hold];
    enum hf_sim_workload workload = h->unit < 0 ? HF_SIM_OF_PLAIN
                                                : sim->units[h->unit].workload;
    switch (workload) {
    case HF_SIM_OF_CHAIN:
    case HF_SIM_OF_RING: work_link(sim, actor, hold); break;
    case HF_SIM_OF_FAN: work_family(sim, actor, hold); break;
    case HF_SIM_OF_WAIT: work_wait(sim, actor, hold); break;
    case HF_SIM_OF_BOUND: work_bound(sim, actor, hold); break;
    case HF_SIM_OF_EXPIRE: work_expire(sim, actor, hold); break;
    case HF_SIM_OF_BUDGET: work_budget(sim, actor, hold); break;
    case HF_SIM_OF_PROCESS:
        if (sim->units[h->unit].disposition == HF_DISPOSITION_OWNER_BOUND)
            work_bound(sim, actor, hold);
        else
            work_plain(sim, actor, hold);
        break;
    case HF_SIM_OF_TURN: work_turn(sim, actor, hold); break;
    case HF_SIM_OF_PLAIN:
    case HF_SIM_OF_CANCEL:
    case HF_SIM_OF_EXTERNAL:
    case HF_SIM_OF_SESSION:
    case HF_SIM_OF_TALK:
    case HF_SIM_OF_CRON:
    case HF_SIM_OF_LIMIT:
    case HF_SIM_OF_JOB:
    case HF_SIM_OF_TRIGGER:
    case HF_SIM_OF_EXTRA:
    case HF_SIM_WORKLOAD_COUNT: work_plain(sim, actor, hold); break;
    }
}

/* ---- acting ---------------------------------------------------------------------- */

/* A process that it runs itself: registered and claimed in one. */
static bool register_one(struct hf_sim *sim, struct sim_op *op)
{
    if (!(sim->workloads & (1u << HF_SIM_OF_PROCESS)) || !sim_one_in(&sim->dice, 3))
        return false;
    for (size_t i = 0; i < sim->unit_count; i++) {
        const struct sim_unit *u = &sim->units[i];
        if (u->workload != HF_SIM_OF_PROCESS || u->acked ||
            u->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
            continue;
        op->kind = SIM_OP_REGISTER;
        op->units[0] = (int)i;
        op->count = 1;
        op->limit = 1;
        return true;
    }
    return false;
}

/* At most as many as it has room for, under a nonce of its own. */
static void claim(struct hf_sim *sim, int actor, int room)
{
    static const hf_ms terms[] = { 750, 1500, 3000, 3000 };
    struct sim_actor *a = &sim->actors[actor];
    struct sim_op op = sim_request(sim, actor, SIM_OP_CLAIM);
    op.limit = 1 + (int)sim_roll(&sim->dice, (unsigned)room);
    op.ttl_ms = terms[sim_roll(&sim->dice, 4)];
    sim_format(op.name, sizeof(op.name), "n-%d-%d", actor, a->nonces++);
    if (register_one(sim, &op)) {
        a->claim = op;
        a->has_claim = true;
        sim_send(sim, &op);
        return;
    }
    if (sim_one_in(&sim->dice, 8) && sim->unit_count > 0) {
        const struct sim_unit *u =
            &sim->units[sim_roll(&sim->dice, (unsigned)sim->unit_count)];
        sim_copy(op.id, sizeof(op.id), u->acked ? u->id : "");
        op.limit = 1;
    }
    a->claim = op;
    a->has_claim = true;
    sim_send(sim, &op);
}

/* A row that it holds is claimed again, with a new nonce: the token rotates. */
static void enter_again(struct hf_sim *sim, int actor, int hold)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_op op = sim_request(sim, actor, SIM_OP_CLAIM);
    op.limit = 1;
    op.ttl_ms = a->holds[hold].ttl_ms;
    sim_copy(op.id, sizeof(op.id), a->holds[hold].id);
    sim_format(op.name, sizeof(op.name), "n-%d-%d", actor, a->nonces++);
    a->claim = op;
    a->has_claim = true;
    sim_send(sim, &op);
}

/* True when something was sent or is to be forgotten. */
static bool tend(struct hf_sim *sim, int actor, int hold)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_hold *h = &a->holds[hold];
    if (!h->used)
        return false;
    if (h->settling) {
        sim_send(sim, &h->last);
        return true;
    }
    if (h->done_at <= sim->mono) {
        work_on(sim, actor, hold);
        return true;
    }
    if (h->renew_at > sim->mono)
        return false;
    if (sim_one_in(&sim->dice, 12)) {
        enter_again(sim, actor, hold);
        return true;
    }
    struct sim_op op = change_of(sim, actor, hold, HF_VERB_RENEW);
    sim_send(sim, &op);
    return true;
}

void sim_worker_act(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    int room = 0;
    hf_ms next = sim->mono + 1000;
    if (a->has_claim) {
        sim_send(sim, &a->claim);
        return;
    }
    for (int i = 0; i < SIM_HOLDS; i++) {
        const struct sim_hold *h = &a->holds[i];
        if (tend(sim, actor, i))
            return;
        room += !h->used;
        if (h->used && h->renew_at < next)
            next = h->renew_at;
        if (h->used && h->done_at < next)
            next = h->done_at;
    }
    if (room > 0 && (room == SIM_HOLDS || sim_one_in(&sim->dice, 3)))
        claim(sim, actor, room);
    else
        a->wake_at = next;
}

/* ---- hearing --------------------------------------------------------------------- */

static struct sim_hold *place_for(struct sim_actor *a, const char *id)
{
    struct sim_hold *found = NULL;
    for (int i = 0; i < SIM_HOLDS; i++) {
        if (a->holds[i].used && sim_same(a->holds[i].id, id))
            return &a->holds[i];
        if (!a->holds[i].used)
            found = &a->holds[i];
    }
    return found;
}

static void hold_row(struct hf_sim *sim, int actor, const struct sim_told *told)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_hold *h = place_for(a, told->id);
    if (!h || !told->token[0])
        return; /* no room: its lease will lapse */
    bool again = h->used && h->fence == told->fence;
    hf_ms done_at = again ? h->done_at
                          : sim->mono + sim_own_ms(a, sim_roll(&sim->dice, 4000));
    bool lazy = sim_one_in(&sim->dice, 6);
    *h = (struct sim_hold){
        .used = true,
        .resumed = told->resumed,
        .unit = told->unit,
        .progress = again ? h->progress : 0,
        .fence = told->fence,
        .store = told->store,
        .ttl_ms = told->ttl_ms,
        .done_at = done_at,
        .renew_at = lazy ? INT64_MAX : sim->mono + sim_own_ms(a, told->ttl_ms / 3),
    };
    sim_copy(h->id, sizeof(h->id), told->id);
    sim_copy(h->token, sizeof(h->token), told->token);
}

static void hear_claim(struct hf_sim *sim, int actor, const struct sim_answer *answer)
{
    struct sim_actor *a = &sim->actors[actor];
    a->has_claim = sim_retryable(answer->code);
    for (size_t i = 0; answer->code == 0 && i < answer->count; i++)
        hold_row(sim, actor, &answer->items[i]);
    if (answer->code || answer->count == 0)
        a->wake_at = sim->mono + sim_own_ms(a, 20 + sim_roll(&sim->dice, 400));
}

static void hear_change(struct hf_sim *sim, int actor, const struct sim_op *op,
                        const struct sim_answer *answer)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_hold *h = &a->holds[op->hold];
    int code = answer->code ? answer->code : answer->items[0].code;
    if (!h->used || !sim_same(h->token, op->token))
        return; /* of a row that it has let go meanwhile */
    if (sim_retryable(code)) {
        a->wake_at = sim->mono + sim_own_ms(a, 1 + sim_roll(&sim->dice, 200));
        return;
    }
    if (op->verb == HF_VERB_RENEW && code == 0)
        h->renew_at = sim->mono + sim_own_ms(a, h->ttl_ms / 3);
    else
        forget(h); /* settled, lost, or refused for good */
}

void sim_worker_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer)
{
    struct sim_actor *a = &sim->actors[actor];
    if (op->kind == SIM_OP_CLAIM || op->kind == SIM_OP_REGISTER)
        hear_claim(sim, actor, answer);
    else if (op->kind == SIM_OP_CHANGE)
        hear_change(sim, actor, op, answer);
    else if (op->kind == SIM_OP_CREATE && answer->code == 0 && a->holds[op->hold].used)
        a->holds[op->hold].progress++;
}
