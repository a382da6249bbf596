/* A call on its way: lost, late, twice or failed; and executed on the store. */

#include <string.h>

#include "sim/inside.h"

#define LATE_MS 4000

bool sim_retryable(int code)
{
    return code == HF_EUNCERTAIN || code == HF_EBUSY || code == HF_ESTOREIO ||
           code == HF_ENOMEM || code == HF_EUNREACHABLE || code == HF_EFULL;
}

/* ---- faults of the store --------------------------------------------------------- */

static int armed_code(const struct hf_sim *sim)
{
    if (sim->armed == HF_SIM_BUSY)
        return HF_EBUSY;
    return sim->armed == HF_SIM_STORE_ERROR ? HF_ESTOREIO : HF_EUNCERTAIN;
}

static int strike(struct hf_sim *sim)
{
    int code = armed_code(sim);
    sim_count_fault(sim, (enum hf_sim_fault)sim->armed);
    sim_trace(sim, "  fault %s", hf_sim_fault_word((enum hf_sim_fault)sim->armed));
    sim->armed = -1;
    sim->struck = true;
    return code;
}

/* A read is never uncertain. */
static bool fits(const struct hf_sim *sim, bool writes)
{
    return sim->armed >= 0 &&
           (writes || sim->armed == HF_SIM_BUSY || sim->armed == HF_SIM_STORE_ERROR);
}

int sim_before(void *user, bool writes)
{
    struct hf_sim *sim = user;
    bool first = sim->first_transaction && sim->nesting == 0;
    sim->first_transaction = false;
    /* A stall is for monitors to see. */
    bool watched = sim->executing && sim->executing->kind == SIM_OP_MONITOR;
    int chances = watched ? 8 : 1;
    for (int i = 0; first && i < chances; i++) {
        if (sim_fault(sim, HF_SIM_STALL)) {
            sim_stall(sim);
            break;
        }
    }
    if (sim->nesting == 0 && writes && sim_fault(sim, HF_SIM_MEANWHILE))
        sim_meanwhile(sim);
    if (!fits(sim, writes) || sim->armed_in-- > 0 || sim->armed == HF_SIM_UNCERTAIN_DONE)
        return 0;
    return strike(sim);
}

int sim_after(void *user, bool writes)
{
    struct hf_sim *sim = user;
    if (!fits(sim, writes) || sim->armed != HF_SIM_UNCERTAIN_DONE || sim->armed_in >= 0)
        return 0;
    return strike(sim);
}

void sim_power_failed(void *user)
{
    ((struct hf_sim *)user)->power_out = true;
}

static void arm(struct hf_sim *sim)
{
    static const enum hf_sim_fault kinds[] = { HF_SIM_BUSY, HF_SIM_STORE_ERROR,
                                               HF_SIM_UNCERTAIN_DONE,
                                               HF_SIM_UNCERTAIN_NOT };
    sim->armed = -1;
    sim->struck = false;
    sim->fail_alloc = 0;
    if (sim->healing)
        return;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        unsigned odds = sim->odds[kinds[i]];
        if ((sim->may & (1u << kinds[i])) && sim_one_in(&sim->dice, odds))
            sim->armed = (int)kinds[i];
    }
    sim->armed_in = sim->factory->hooked ? (int)sim_roll(&sim->dice, 3) : 0;
    if ((sim->may & (1u << HF_SIM_NOMEM)) &&
        sim_one_in(&sim->dice, sim->odds[HF_SIM_NOMEM]))
        sim->fail_alloc = 1 + sim_roll(&sim->dice, 80);
}

/* ---- requests -------------------------------------------------------------------- */

struct names {
    char owner[SIM_NAME];
    char incarnation[SIM_NAME];
    char source[4][SIM_NAME];
    char lane[4][SIM_NAME];
    char dedup[4][SIM_NAME];
};

static void fill_new(const struct hf_sim *sim, int unit, struct names *names, size_t i,
                     struct hf_work_spec *new)
{
    const struct sim_unit *u = &sim->units[unit];
    sim_format(names->source[i], SIM_NAME, "u%d", unit);
    *new = (struct hf_work_spec){
        .size = sizeof(*new),
        .source = HF_SOURCE_MANUAL,
        .source_id = names->source[i],
        .kind = hf_sim_workload_word(u->workload),
        .disposition = u->disposition,
        .priority = -1,
        .max_attempts = u->attempts,
        .delay_ms = u->delay_ms,
        .start_timeout_ms = u->start_timeout_ms,
        .exec_timeout_ms = u->exec_timeout_ms,
        .retry_policy = u->workload == HF_SIM_OF_BUDGET
                            ? "{\"initial_backoff_ms\":500,\"max_backoff_sec\":2}"
                            : NULL,
    };
    if (u->workload == HF_SIM_OF_CHAIN) {
        sim_format(names->lane[i], SIM_NAME, "lane-%d", u->chain);
        new->lane_key = names->lane[i];
    }
    if (u->workload == HF_SIM_OF_RING) {
        sim_format(names->dedup[i], SIM_NAME, "hop-%d", unit);
        new->idempotency_key = names->dedup[i];
    }
    if (u->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        new->ref = names->source[i];
    if (u->workload == HF_SIM_OF_LIMIT)
        sim_limits_fill(u, new);
}

static int call_create(struct hf_sim *sim, struct hf_store *store,
                       const struct sim_op *op, struct names *names,
                       struct hf_answer **ret_answer)
{
    struct hf_work_spec news[4];
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    for (size_t i = 0; i < op->count; i++)
        fill_new(sim, op->units[i], names, i, &news[i]);
    who.actor = names->owner;
    who.operation_id = op->name[0] ? op->name : NULL;
    return hf_work_create(store, &who, news, op->count, op->flags, ret_answer, NULL);
}

static int call_register(struct hf_sim *sim, struct hf_store *store,
                         const struct sim_op *op, struct hf_answer **ret_answer)
{
    struct names names;
    struct hf_work_spec work;
    fill_new(sim, op->units[0], &names, 0, &work);
    return sim_register_call(sim, store, op, &work, ret_answer);
}

static int call_claim(struct hf_store *store, const struct sim_op *op,
                      const struct names *names, struct hf_answer **ret_answer)
{
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    struct hf_claim claim = { .size = sizeof(claim) };
    who.actor = names->owner;
    claim.owner = names->owner;
    claim.incarnation = names->incarnation;
    claim.nonce = op->name[0] ? op->name : NULL;
    claim.id = op->id[0] ? op->id : NULL;
    claim.pid = op->pid;
    claim.limit = (size_t)op->limit;
    claim.ttl_ms = op->ttl_ms;
    return hf_work_claim(store, &who, &claim, ret_answer, NULL);
}

static int call_change(struct hf_store *store, const struct sim_op *op,
                       const struct names *names, struct hf_answer **ret_answer)
{
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    struct hf_change change = { .size = sizeof(change), .verb = op->verb };
    bool waits = op->verb == HF_VERB_WAIT;
    who.actor = names->owner;
    change.id = op->id;
    change.token = op->token[0] ? op->token : NULL;
    change.status = op->status;
    change.reason = op->verb == HF_VERB_RENEW ? NULL : "sim";
    change.timeout_ms = waits ? op->span_ms : 0;
    change.ref = waits ? op->name : NULL;
    if (waits && op->limit) {
        change.escalate = op->limit > 1 ? "work:page" : "event";
        change.escalate_after_ms = op->span_ms / 2;
    }
    if (op->verb == HF_VERB_FAIL)
        change.error_class = op->why;
    if (op->verb == HF_VERB_CLOSE_OUT && !change.token)
        change.authority = "engine";
    if (op->verb == HF_VERB_RESUME)
        change.payload = "{\"go\":1}";
    if (!change.token && op->verb != HF_VERB_CLOSE_OUT)
        who.operation_id = op->name[0] ? op->name : NULL;
    return hf_work_change(store, &who, &change, 1, op->flags, ret_answer, NULL);
}

static int call_renew_all(struct hf_store *store, const struct names *names,
                          struct hf_answer **ret_answer)
{
    struct hf_renew_all renew = { .size = sizeof(renew) };
    renew.owner = names->owner;
    renew.incarnation = names->incarnation;
    return hf_work_renew_all(store, NULL, &renew, ret_answer, NULL);
}

static int call_policy(struct hf_store *store, const struct sim_op *op)
{
    struct hf_policy policy = { .size = sizeof(policy), .grace_ms = -1 };
    policy.ttl_ms = op->ttl_ms;
    policy.wait_user_ms = op->span_ms;
    return hf_policy_set(store, NULL, "kind:plain", &policy, NULL);
}

/* ---- answers --------------------------------------------------------------------- */

/* "hf1.<store>.<fence>.<nonce>" */
static void read_token(const char *token, int64_t *ret_store, int64_t *ret_fence)
{
    int64_t numbers[2] = { 0, 0 };
    const char *c = token + (token[0] ? 4 : 0);
    for (int i = 0; i < 2; i++) {
        for (; *c >= '0' && *c <= '9'; c++)
            numbers[i] = numbers[i] * 10 + (*c - '0');
        c += *c == '.';
    }
    *ret_store = numbers[0];
    *ret_fence = numbers[1];
}

static void take_item(struct hf_sim *sim, const struct hf_item *item,
                      struct sim_told *told)
{
    *told = (struct sim_told){
        .code = item->code,
        .created = item->created,
        .repeated = item->repeated,
        .resumed = item->work.resume_payload != NULL,
        .status = hf_status_of(item->work.status ? item->work.status : ""),
        .unit = sim_unit_of(sim, item->work.source_id),
        .fence = item->work.lease_fence,
        .ttl_ms = item->work.lease_ttl_ms,
        .expires_at = item->work.lease_expires_at,
    };
    sim_copy(told->id, sizeof(told->id), item->work.work_id);
    sim_copy(told->token, sizeof(told->token), item->token);
    if (item->token)
        read_token(item->token, &told->store, &told->fence);
}

static void take_answer(struct hf_sim *sim, int code, struct hf_answer *given,
                        struct sim_answer *ret_answer)
{
    ret_answer->code = code;
    if (code || !given)
        return;
    size_t count = hf_answer_count(given);
    ret_answer->count = count < 4 ? count : 4;
    for (size_t i = 0; i < ret_answer->count; i++)
        take_item(sim, hf_answer_at(given, i), &ret_answer->items[i]);
    hf_answer_free(given);
}

/* A session is created by the first that wants its lease. */
static int take_session(struct hf_store *store, const struct hf_lease_claim *claim,
                        struct hf_lease_info *ret_info)
{
    struct hf_session_answer *made = NULL;
    struct hf_session_spec wanted = { .size = sizeof(wanted),
                                      .session_id = claim->key,
                                      .agent = "sim" };
    int rc = hf_lease_take(store, claim, ret_info, NULL);
    if (rc != HF_ENOTFOUND)
        return rc;
    rc = hf_session_create(store, NULL, &wanted, &made, NULL);
    if (rc)
        return rc;
    hf_session_answer_free(made);
    return hf_lease_take(store, claim, ret_info, NULL);
}

static void call_lease(struct hf_sim *sim, struct hf_store *store,
                       const struct sim_op *op, const struct names *names,
                       struct sim_answer *ret_answer)
{
    static const char *const keys[SIM_KEYS] = { "s1", "s2" };
    struct hf_lease_info info = { 0 };
    const char *key = keys[op->key];
    struct sim_told *told = &ret_answer->items[0];
    if (op->kind == SIM_OP_TAKE) {
        struct hf_lease_claim claim = { .size = sizeof(claim),
                                        .leased = HF_LEASED_SESSION };
        claim.key = key;
        claim.owner = names->owner;
        claim.incarnation = names->incarnation;
        claim.nonce = op->name;
        claim.pid = op->pid;
        claim.reclaim = op->pid != 0;
        claim.ttl_ms = op->ttl_ms;
        ret_answer->code = take_session(store, &claim, &info);
    } else if (op->kind == SIM_OP_KEEP) {
        ret_answer->code = hf_lease_renew(store, HF_LEASED_SESSION, key, op->token, &info,
                                          NULL);
    } else {
        ret_answer->code = hf_lease_release(store, HF_LEASED_SESSION, key, op->token,
                                            NULL);
    }
    ret_answer->displaced = info.displaced;
    (void)sim;
    if (ret_answer->code)
        return;
    ret_answer->count = 1;
    *told = (struct sim_told){ .fence = info.fence,
                               .ttl_ms = info.ttl_ms,
                               .unit = -1,
                               .expires_at = info.expires_at };
    sim_copy(told->token, sizeof(told->token), info.token);
}

static void call_store(struct hf_sim *sim, const struct sim_op *op,
                       struct sim_answer *ret_answer)
{
    struct hf_store *store = sim->handles[(size_t)op->actor % sim->handle_count];
    struct hf_answer *given = NULL;
    struct hf_sweep_report swept;
    struct hf_schedule_report made;
    struct names names;
    int64_t number = 0;
    hf_ms stalled_ms = 0;
    int code = 0;
    *ret_answer = (struct sim_answer){ 0 };
    sim_format(names.owner, SIM_NAME, "a%d",
               op->kind == SIM_OP_RENEW_ALL ? op->hold : op->actor);
    sim_format(names.incarnation, SIM_NAME, "boot-%d", op->boot);
    switch (op->kind) {
    case SIM_OP_NONE: break;
    case SIM_OP_CREATE: code = call_create(sim, store, op, &names, &given); break;
    case SIM_OP_CLAIM: code = call_claim(store, op, &names, &given); break;
    case SIM_OP_CHANGE: code = call_change(store, op, &names, &given); break;
    case SIM_OP_RENEW_ALL: code = call_renew_all(store, &names, &given); break;
    case SIM_OP_SWEEP: code = hf_work_sweep(store, NULL, 64, &swept, NULL); break;
    case SIM_OP_PRUNE:
        code = hf_work_prune(store, NULL, op->span_ms, 2, &number, NULL);
        break;
    case SIM_OP_POLICY: code = call_policy(store, op); break;
    case SIM_OP_BUMP: code = hf_store_bump(store, &number, NULL); break;
    case SIM_OP_PASS: code = hf_schedule_pass(store, NULL, &made, NULL); break;
    case SIM_OP_SCHEDULE: code = sim_cron_call(sim, store, op); break;
    case SIM_OP_LIMIT: code = sim_limits_call(store, op); break;
    case SIM_OP_JOB: code = sim_job_call(store, op, names.owner, &given); break;
    case SIM_OP_EMIT: code = sim_emit_call(sim, store, op, ret_answer); break;
    case SIM_OP_SUBSCRIPTION: code = sim_subscription_call(sim, store, op); break;
    case SIM_OP_REGISTER: code = call_register(sim, store, op, &given); break;
    case SIM_OP_MONITOR: code = sim_monitor_call(sim, store, op, &stalled_ms); break;
    case SIM_OP_TAKE:
    case SIM_OP_KEEP:
    case SIM_OP_RELEASE: call_lease(sim, store, op, &names, ret_answer); return;
    case SIM_OP_SEND:
    case SIM_OP_OPEN:
    case SIM_OP_STEP:
    case SIM_OP_COMMIT:
    case SIM_OP_BACK:
        sim_talk_call(store, op, names.owner, names.incarnation, ret_answer);
        return;
    }
    take_answer(sim, code, given, ret_answer);
    ret_answer->stalled_ms = stalled_ms;
    ret_answer->items[0].fence = op->kind == SIM_OP_BUMP ? number
                                                         : ret_answer->items[0].fence;
}

/* ---- executing ------------------------------------------------------------------- */

static bool store_fault_instead(struct hf_sim *sim, struct sim_answer *ret_answer)
{
    if (sim->factory->hooked || sim->armed < 0 || sim->armed == HF_SIM_UNCERTAIN_DONE)
        return false;
    *ret_answer = (struct sim_answer){ .code = strike(sim) };
    return true;
}

/* The call may do something from now on. */
static struct sim_did *remember(struct hf_sim *sim, const struct sim_op *op)
{
    if (sim->window_count >= SIM_WINDOW - 5 && sim->nesting == 0)
        sim_look(sim);
    if (sim->window_count == SIM_WINDOW)
        sim->window_count--;
    struct sim_did *did = &sim->window[sim->window_count++];
    *did = (struct sim_did){ .op = *op };
    return did;
}

static void note_answer(struct hf_sim *sim, struct sim_did *did,
                        const struct sim_answer *answer, bool known)
{
    did->known = known;
    did->code = answer->code;
    did->stalled_ms = answer->stalled_ms;
    did->lease_at = sim_lease_now(sim);
    did->store = sim->bumped ? 0 : sim->incarnation;
}

static void trace_call(struct hf_sim *sim, const struct sim_op *op,
                       const struct sim_answer *answer)
{
    if (!sim->options->trace)
        return;
    const struct sim_told *first = &answer->items[0];
    sim_trace(sim, "a%d/%d %s %s %s -> %s %zu [%s unit %d %s fence %lld%s%s]", op->actor,
              op->boot, sim_op_word(op), op->id[0] ? op->id + 24 : op->name, op->token,
              hf_err_wire(answer->code), answer->count,
              first->id[0] ? first->id + 24 : "-", first->unit,
              answer->count && first->code ? hf_err_wire(first->code)
                                           : hf_status_word(first->status),
              (long long)first->fence, first->repeated ? " repeated" : "",
              first->created ? " created" : "");
}

bool sim_can_race_itself(enum sim_kind kind)
{
    return kind != SIM_OP_PRUNE && kind != SIM_OP_POLICY && kind != SIM_OP_BUMP &&
           kind != SIM_OP_MONITOR;
}

void sim_execute(struct hf_sim *sim, const struct sim_op *op,
                 struct sim_answer *ret_answer)
{
    bool known = true;
    /* Prune takes the events with the rows; a monitor is judged by what was before it. */
    bool alone = op->kind == SIM_OP_PRUNE || op->kind == SIM_OP_MONITOR;
    if (alone)
        sim_look(sim);
    sim->current = op->actor;
    sim->report->calls++;
    sim->first_transaction = true;
    arm(sim);
    if (!store_fault_instead(sim, ret_answer)) {
        bool lies = !sim->factory->hooked && sim->armed == HF_SIM_UNCERTAIN_DONE;
        bool may_fail = sim->fail_alloc > 0;
        struct sim_did *did = remember(sim, op);
        if (sim->nesting == 0)
            sim->executing = op;
        call_store(sim, op, ret_answer);
        if (sim->nesting == 0)
            sim->executing = NULL;
        if (may_fail && sim->fail_alloc == 0) {
            sim_count_fault(sim, HF_SIM_NOMEM);
            sim->struck =
                true; /* a sweep, say, may have passed over what it had no memory for */
        }
        sim->fail_alloc = 0;
        known = ret_answer->code != HF_EUNCERTAIN && ret_answer->code != HF_ENOMEM &&
                !sim->struck && !sim->power_out;
        sim_judge_answer(sim, op, ret_answer, known);
        note_answer(sim, did, ret_answer, known);
        if (lies)
            *ret_answer = (struct sim_answer){ .code = strike(sim) };
    }
    sim->armed = -1;
    trace_call(sim, op, ret_answer);
    sim_note(sim, ((uint64_t)op->kind << 56) ^ ((uint64_t)op->verb << 48) ^
                      ((uint64_t)op->actor << 40) ^ (uint64_t)(uint32_t)ret_answer->code ^
                      ((uint64_t)ret_answer->count << 36) ^
                      ((uint64_t)ret_answer->items[0].status << 33));
    if (sim->power_out && sim->nesting == 0) {
        *ret_answer = (struct sim_answer){ .code = HF_EUNCERTAIN };
        sim_boot(sim);
        return;
    }
    if ((++sim->calls_since_look >= sim->look_every || alone) && sim->nesting == 0)
        sim_look(sim);
}

/* ---- on the way ------------------------------------------------------------------ */

void sim_add_ghost(struct hf_sim *sim, const struct sim_pending *pending)
{
    if (sim->ghost_count == SIM_GHOSTS)
        return;
    sim->ghosts[sim->ghost_count++] = *pending;
}

void sim_run_ghost(struct hf_sim *sim, size_t i)
{
    struct sim_pending ghost = sim->ghosts[i];
    sim->ghosts[i] = sim->ghosts[--sim->ghost_count];
    sim_trace(sim, "from no actor:");
    sim_execute(sim, &ghost.op, &ghost.answer);
    /* No actor hears it; but what the store told must remain true. */
}

void sim_send(struct hf_sim *sim, const struct sim_op *op)
{
    struct sim_pending *p = &sim->actors[op->actor].pending;
    hf_ms now = sim->mono;
    p->op = *op;
    p->out = true;
    p->executed = false;
    p->execute_at = p->answer_at = now;
    p->answer = (struct sim_answer){ 0 };
    for (size_t i = 0; i < op->count; i++)
        sim->units[op->units[i]].asked = true;
    if (sim_fault(sim, HF_SIM_DUPLICATE)) {
        struct sim_pending twin = *p;
        twin.execute_at = now + sim_roll(&sim->dice, LATE_MS);
        sim_add_ghost(sim, &twin);
    }
    if (sim_fault(sim, HF_SIM_LOST_REQUEST)) {
        p->executed = true;
        p->answer.code = HF_EUNCERTAIN;
        sim_trace(sim, "a%d %s is lost", op->actor, sim_op_word(op));
        return;
    }
    if (sim_fault(sim, HF_SIM_LATE_REQUEST))
        p->execute_at = p->answer_at = now + sim_roll(&sim->dice, LATE_MS);
    if (sim_fault(sim, HF_SIM_LATE_ANSWER))
        p->answer_at = p->execute_at + sim_roll(&sim->dice, LATE_MS);
}
