/* One schedule: the world it happens in, its steps, and the drain after the faults. */

#include <string.h>

#include "sim/inside.h"

#define WALL_MS 1800000000000
#define SIGNED_32_MS 2147483640000 /* 8 s before 32 bits of seconds run over */
#define MONO_MS 7000000
#define DRAIN_STEPS 6000
#define STEPS 200

void sim_note(struct hf_sim *sim, uint64_t what)
{
    sim->hash = sim_mix(sim->hash ^ what) + (uint64_t)sim->mono;
}

void sim_mark(struct hf_sim *sim, enum hf_sim_mark mark)
{
    sim->report->marks[mark]++;
}

void sim_count_fault(struct hf_sim *sim, enum hf_sim_fault fault)
{
    sim->report->faults++;
    sim->fired |= 1u << fault;
    sim_note(sim, 0xfa000000u + (uint64_t)fault);
}

bool sim_fault(struct hf_sim *sim, enum hf_sim_fault fault)
{
    if (sim->healing || !(sim->may & (1u << fault)) ||
        !sim_one_in(&sim->dice, sim->odds[fault]))
        return false;
    sim_count_fault(sim, fault);
    return true;
}

hf_ms sim_lease_now(const struct hf_sim *sim)
{
    return sim->mono + sim->lease_offset;
}

/* ---- the seams ------------------------------------------------------------------- */

static hf_ms wall_ms(void *user)
{
    struct hf_sim *sim = user;
    hf_ms now = sim->wall + sim->actors[sim->current].skew_ms;
    if (now > sim->wall_most)
        sim->wall_most = now;
    return now;
}

static hf_ms mono_ms(void *user)
{
    struct hf_sim *sim = user;
    if (sim->mono > sim->mono_most)
        sim->mono_most = sim->mono;
    return sim->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user; /* a call takes no time */
    (void)ms;
}

static int fill(void *user, void *out, size_t bytes)
{
    struct hf_sim *sim = user;
    unsigned char *at = out;
    while (bytes > 0) {
        uint64_t value = sim_draw(&sim->noise);
        size_t n = bytes < sizeof(value) ? bytes : sizeof(value);
        memcpy(at, &value, n);
        at += n;
        bytes -= n;
    }
    return 0;
}

static void *allocate(void *user, void *old, size_t bytes)
{
    struct hf_sim *sim = user;
    const struct hf_alloc *alloc = hf_alloc_system();
    if (sim->fail_alloc > 0 && --sim->fail_alloc == 0)
        return NULL;
    return alloc->realloc(alloc->user, old, bytes);
}

static void release(void *user, void *old)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    (void)user;
    alloc->free(alloc->user, old);
}

/* ---- units ----------------------------------------------------------------------- */

int sim_add_unit(struct hf_sim *sim, enum hf_sim_workload workload)
{
    if (sim->unit_count == SIM_UNITS)
        return -1;
    static const enum hf_disposition dispositions[HF_SIM_WORKLOAD_COUNT] = {
        [HF_SIM_OF_PLAIN] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_CHAIN] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_FAN] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_RING] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_CANCEL] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_WAIT] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_BOUND] = HF_DISPOSITION_OWNER_BOUND,
        [HF_SIM_OF_EXPIRE] = HF_DISPOSITION_EXPIRE,
        [HF_SIM_OF_BUDGET] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_EXTERNAL] = HF_DISPOSITION_EXTERNALLY_OWNED,
        [HF_SIM_OF_SESSION] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_CRON] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_LIMIT] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_PROCESS] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_TURN] = HF_DISPOSITION_RERUNNABLE,
        [HF_SIM_OF_EXTRA] = HF_DISPOSITION_RERUNNABLE,
    };
    struct sim_unit *u = &sim->units[sim->unit_count];
    bool links = workload == HF_SIM_OF_RING || workload == HF_SIM_OF_CHAIN;
    *u = (struct sim_unit){ .workload = workload, .next = -1, .parent = -1 };
    u->disposition = dispositions[workload];
    bool lasts = links || workload == HF_SIM_OF_FAN || workload == HF_SIM_OF_TURN;
    u->attempts = lasts ? 1000 : workload == HF_SIM_OF_BUDGET ? 3 : 5;
    return (int)sim->unit_count++;
}

static void add_family(struct hf_sim *sim)
{
    int parent = sim_add_unit(sim, HF_SIM_OF_FAN);
    for (int i = 0; parent >= 0 && i < 3; i++) {
        int child = sim_add_unit(sim, HF_SIM_OF_FAN);
        if (child < 0)
            return;
        sim->units[child].parent = parent;
        sim->units[parent].children[i] = child;
    }
}

static void add_links(struct hf_sim *sim, enum hf_sim_workload workload, int number)
{
    int unit = sim_add_unit(sim, workload);
    if (unit < 0)
        return;
    sim->units[unit].chain = number;
    sim->units[unit].left = 2 + (int)sim_roll(&sim->dice, 4);
}

static void add_some(struct hf_sim *sim, enum hf_sim_workload workload)
{
    static const enum hf_disposition processes[] = { HF_DISPOSITION_RERUNNABLE,
                                                     HF_DISPOSITION_OWNER_BOUND,
                                                     HF_DISPOSITION_EXTERNALLY_OWNED };
    int count = 1 + (int)sim_roll(&sim->dice, 3);
    if (workload == HF_SIM_OF_LIMIT)
        count += 3;
    for (int i = 0; i < count; i++) {
        int unit = sim_add_unit(sim, workload);
        if (unit < 0)
            return;
        struct sim_unit *u = &sim->units[unit];
        u->chain = i; /* of those under limits: which */
        if (workload == HF_SIM_OF_PROCESS)
            u->disposition = processes[sim_roll(&sim->dice, 3)];
        if (workload != HF_SIM_OF_PLAIN)
            continue;
        u->delay_ms = sim_one_in(&sim->dice, 3) ? 1 + sim_roll(&sim->dice, 3000) : 0;
        u->start_timeout_ms = sim_one_in(&sim->dice, 4) ? 20000 : 0;
        u->exec_timeout_ms = sim_one_in(&sim->dice, 4) ? 2500 : 0;
    }
}

/* What the store can do, and units of which are planned here. */
static bool can_have(const struct hf_sim *sim, enum hf_sim_workload w)
{
    bool whole = w == HF_SIM_OF_CRON || w == HF_SIM_OF_TRIGGER || w == HF_SIM_OF_PROCESS;
    return !(sim->options->without_workloads & (1u << w)) &&
           (w != HF_SIM_OF_EXTRA || sim->factory->extra) &&
           (!whole || sim->factory->whole);
}

static bool has_units(enum hf_sim_workload w)
{
    return w != HF_SIM_OF_SESSION && w != HF_SIM_OF_EXTRA && w != HF_SIM_OF_CRON &&
           w != HF_SIM_OF_JOB && w != HF_SIM_OF_TRIGGER && w != HF_SIM_OF_TALK;
}

static void plan_units(struct hf_sim *sim)
{
    int lanes = 0;
    int wanted = 2 + (int)sim_roll(&sim->dice, 4);
    for (int tries = 0; tries < 40 && wanted > 0; tries++) {
        enum hf_sim_workload w = (enum hf_sim_workload)sim_roll(&sim->dice,
                                                                HF_SIM_WORKLOAD_COUNT);
        if (!can_have(sim, w))
            continue;
        wanted--;
        sim->workloads |= 1u << w;
        if (w == HF_SIM_OF_FAN)
            add_family(sim);
        else if (w == HF_SIM_OF_TURN)
            (void)sim_add_unit(sim, w); /* there may be no room for one more */
        else if (w == HF_SIM_OF_CHAIN || w == HF_SIM_OF_RING)
            add_links(sim, w, lanes++);
        else if (has_units(w))
            add_some(sim, w);
    }
}

/* ---- faults of the schedule ------------------------------------------------------ */

static void plan_faults(struct hf_sim *sim)
{
    /* One in so many: boots, steps of an actor, calls, steps of the world. */
    static const unsigned usual[HF_SIM_FAULT_COUNT] = {
        [HF_SIM_CRASH] = 60,         [HF_SIM_PAUSE] = 60,
        [HF_SIM_LOST_REQUEST] = 25,  [HF_SIM_LOST_ANSWER] = 25,
        [HF_SIM_LATE_REQUEST] = 25,  [HF_SIM_LATE_ANSWER] = 25,
        [HF_SIM_DUPLICATE] = 25,     [HF_SIM_BUSY] = 25,
        [HF_SIM_STORE_ERROR] = 40,   [HF_SIM_UNCERTAIN_DONE] = 25,
        [HF_SIM_UNCERTAIN_NOT] = 25, [HF_SIM_SKEW] = 3,
        [HF_SIM_JUMP] = 120,         [HF_SIM_RATE] = 3,
        [HF_SIM_SUSPEND] = 150,      [HF_SIM_SWIZZLE] = 120,
        [HF_SIM_PRUNE] = 80,         [HF_SIM_POLICY] = 80,
        [HF_SIM_BUMP] = 120,         [HF_SIM_REOPEN] = 80,
        [HF_SIM_NOMEM] = 30,         [HF_SIM_POWER] = 150,
        [HF_SIM_MEANWHILE] = 6,      [HF_SIM_STALL] = 60,
    };
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++) {
        sim->odds[i] = usual[i];
        if (sim_one_in(&sim->dice, 2))
            sim->may |= 1u << i;
    }
    sim->may &= ~sim->options->without_faults;
    if (!sim->factory->again)
        sim->may &= ~(1u << HF_SIM_REOPEN);
    if (!sim->factory->power)
        sim->may &= ~(1u << HF_SIM_POWER);
    if (!sim->factory->memory)
        sim->may &= ~(1u << HF_SIM_NOMEM);
    if (!sim->factory->hooked)
        sim->may &= ~((1u << HF_SIM_MEANWHILE) | (1u << HF_SIM_STALL));
}

void sim_stall(struct hf_sim *sim)
{
    hf_ms by = 100 + (hf_ms)sim_roll(&sim->dice, 4000);
    sim->mono += by;
    sim->wall += by;
    sim_trace(sim, "  the store stalls for %lld ms", (long long)by);
}

static void swizzle(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->actor_count; i++) {
        if (sim_one_in(&sim->dice, 2) && !sim->actors[i].down)
            sim_actor_crash(sim, (int)i, 200 + sim_roll(&sim->dice, 6000));
    }
}

static void jump(struct hf_sim *sim)
{
    sim->wall += (hf_ms)sim_roll(&sim->dice, 7200000) - 3600000;
    sim_trace(sim, "the wall clock jumps");
}

static void suspend(struct hf_sim *sim)
{
    hf_ms by = 1000 + (hf_ms)sim_roll(&sim->dice, 120000);
    sim->mono += by;
    sim->wall += by;
    sim_trace(sim, "everything sleeps for %lld ms", (long long)by);
}

static void upkeep(struct hf_sim *sim, enum sim_kind kind)
{
    struct sim_op op = { .kind = kind, .actor = (int)sim->actor_count - 1 };
    struct sim_answer answer;
    op.span_ms = kind == SIM_OP_PRUNE ? 1 + (hf_ms)sim_roll(&sim->dice, 20000) : 3000;
    op.ttl_ms = 900 + 300 * (hf_ms)sim_roll(&sim->dice, 20);
    sim_execute(sim, &op, &answer);
}

/* ---- handles --------------------------------------------------------------------- */

static int open_first(struct hf_sim *sim, struct hf_err *err)
{
    int rc = sim->factory->open(sim->factory->user, &sim->store_options, &sim->hooks,
                                &sim->handles[0], err);
    sim->handle_count = rc ? 0 : 1;
    return rc;
}

static int open_more(struct hf_sim *sim, size_t count, struct hf_err *err)
{
    int rc = 0;
    while (rc == 0 && sim->factory->again && sim->handle_count < count) {
        rc = sim->factory->again(sim->factory->user, &sim->store_options, &sim->hooks,
                                 &sim->handles[sim->handle_count], err);
        if (rc == 0)
            sim->handle_count++;
    }
    return rc;
}

static void close_all(struct hf_sim *sim)
{
    while (sim->handle_count > 0)
        hf_store_close(sim->handles[--sim->handle_count]);
}

static void open_again(struct hf_sim *sim, size_t count)
{
    struct hf_err err = { 0 };
    close_all(sim);
    if (open_more(sim, count, &err) || sim->handle_count == 0)
        sim_violate(sim, "the store cannot be opened again: %s", err.message);
    else
        sim_look(sim);
}

void sim_boot(struct hf_sim *sim)
{
    sim_trace(sim, "the power fails");
    sim->power_out = false;
    for (size_t i = 0; i < sim->actor_count; i++) {
        if (!sim->actors[i].down)
            sim_actor_crash(sim, (int)i, sim_roll(&sim->dice, 2000));
    }
    sim->ghost_count = 0;
    open_again(sim, sim->handle_count);
}

static void cut_power(struct hf_sim *sim)
{
    uint64_t chance = sim_draw(&sim->dice);
    sim_look(sim);
    if (sim->factory->power(sim->factory->user, chance))
        sim_boot(sim);
}

static void reopen(struct hf_sim *sim)
{
    sim_look(sim);
    open_again(sim, sim->handle_count);
}

/* ---- steps ----------------------------------------------------------------------- */

static void world_faults(struct hf_sim *sim)
{
    if (sim_fault(sim, HF_SIM_SWIZZLE))
        swizzle(sim);
    if (sim_fault(sim, HF_SIM_JUMP))
        jump(sim);
    if (sim_fault(sim, HF_SIM_SUSPEND))
        suspend(sim);
    if (sim_fault(sim, HF_SIM_PRUNE))
        upkeep(sim, SIM_OP_PRUNE);
    if (sim_fault(sim, HF_SIM_POLICY))
        upkeep(sim, SIM_OP_POLICY);
    if (sim_fault(sim, HF_SIM_BUMP))
        upkeep(sim, SIM_OP_BUMP);
    if (sim_fault(sim, HF_SIM_REOPEN))
        reopen(sim);
    if (sim_fault(sim, HF_SIM_POWER))
        cut_power(sim);
}

static hf_ms ready_at(const struct sim_actor *a)
{
    hf_ms at = a->wake_at;
    if (a->pending.out && !a->down) {
        hf_ms next = a->pending.executed ? a->pending.answer_at : a->pending.execute_at;
        at = next > at ? next : at;
    }
    return at;
}

/* The virtual time of the next event: of an actor that is ready, or of a ghost. A ghost is a
 * request of an actor that died before it was executed; the store executes it all the
 * same. */
static hf_ms next_at(const struct hf_sim *sim)
{
    hf_ms next = INT64_MAX;
    for (size_t i = 0; i < sim->actor_count; i++) {
        hf_ms at = ready_at(&sim->actors[i]);
        next = at < next ? at : next;
    }
    for (size_t i = 0; i < sim->ghost_count; i++)
        next = sim->ghosts[i].execute_at < next ? sim->ghosts[i].execute_at : next;
    return next;
}

static void pass_time(struct hf_sim *sim)
{
    hf_ms by = sim_roll(&sim->dice, sim_one_in(&sim->dice, 4) ? 200 : 12);
    hf_ms next = next_at(sim);
    if (next != INT64_MAX && next > sim->mono + by)
        by = next - sim->mono;
    sim->mono += by;
    sim->wall += by;
}

/* Lets one thing happen: the first ghost that is due is executed; without one, an actor drawn from
 * those that are ready takes a step. If there is none either, nothing happens. */
static void act(struct hf_sim *sim)
{
    int ready[SIM_ACTORS];
    size_t count = 0;
    for (size_t i = 0; i < sim->ghost_count; i++) {
        if (sim->ghosts[i].execute_at <= sim->mono) {
            sim_run_ghost(sim, i);
            return;
        }
    }
    for (size_t i = 0; i < sim->actor_count; i++) {
        if (ready_at(&sim->actors[i]) <= sim->mono)
            ready[count++] = (int)i;
    }
    if (count > 0)
        sim_actor_step(sim, ready[sim_roll(&sim->dice, (unsigned)count)]);
}

/* Executes the same request once more, while it is being executed. */
static void act_twice(struct hf_sim *sim)
{
    struct sim_op twin = *sim->executing;
    struct sim_answer answer;
    sim_execute(sim, &twin, &answer);
}

void sim_meanwhile(struct hf_sim *sim)
{
    int current = sim->current, armed = sim->armed, armed_in = sim->armed_in;
    bool struck = sim->struck;
    int64_t fail_alloc = sim->fail_alloc;
    int other = -1;
    for (int tries = 0; tries < 6 && other < 0; tries++) {
        int drawn = (int)sim_roll(&sim->dice, (unsigned)sim->actor_count);
        /* Actors of one kind meet at the same rows. */
        bool alike = sim->actors[drawn].role == sim->actors[current].role;
        if (drawn != current && ready_at(&sim->actors[drawn]) <= sim->mono &&
            (alike || sim_one_in(&sim->dice, 2)))
            other = drawn;
    }
    bool twin = sim->executing && sim_can_race_itself(sim->executing->kind) &&
                sim_one_in(&sim->dice, sim->executing->kind < SIM_OP_PASS ? 4 : 2);
    bool turns = sim->executing && sim->executing->kind == SIM_OP_EMIT && sim->turning &&
                 !sim->healing && sim_one_in(&sim->dice, 2);
    if (other < 0 && !twin && !turns)
        return;
    sim_trace(sim, "  meanwhile:");
    sim->nesting++;
    sim->fail_alloc = 0;
    if (turns)
        sim_turn_subscription(sim);
    else if (twin)
        act_twice(sim);
    else
        sim_actor_step(sim, other);
    sim->nesting--;
    sim->current = current;
    sim->armed = armed;
    sim->armed_in = armed_in;
    sim->struck = struck;
    sim->fail_alloc = fail_alloc;
}

static void extra(struct hf_sim *sim)
{
    if (!(sim->workloads & (1u << HF_SIM_OF_EXTRA)) || !sim_one_in(&sim->dice, 20))
        return;
    const char *wrong = sim->factory->extra(sim->factory->user, sim_draw(&sim->dice));
    if (wrong)
        sim_violate(sim, "%s", wrong);
}

static void step(struct hf_sim *sim)
{
    sim->step++;
    sim->report->steps++;
    pass_time(sim);
    act(sim);
    if (sim->healing)
        return;
    world_faults(sim);
    extra(sim);
}

static void heal(struct hf_sim *sim)
{
    sim->healing = true;
    sim_trace(sim, "the faults stop");
    for (size_t i = 0; i < sim->actor_count; i++) {
        struct sim_actor *a = &sim->actors[i];
        a->wake_at = a->wake_at > sim->mono + 5000 ? sim->mono + 5000 : a->wake_at;
        a->skew_ms = 0;
        a->rate = 100;
    }
}

static void drain(struct hf_sim *sim)
{
    hf_ms began = sim->mono;
    heal(sim);
    sim_cron_stop(sim);
    for (int i = 0; i < DRAIN_STEPS && !sim->violation[0]; i++) {
        step(sim);
        if (i % 16 == 0) {
            sim_look(sim);
            if (sim_ended(sim))
                return;
        }
        /* Nothing is due for long: go there. Wall clocks may have jumped by an hour. */
        if (i % 256 == 255) {
            sim->mono += 60000;
            sim->wall += 3600000;
        }
    }
    for (size_t i = 0; i < sim->shadow_count && !sim->violation[0]; i++) {
        const struct sim_shadow *s = &sim->shadows[i];
        if (!s->gone && !hf_status_terminal(s->status))
            sim_violate(sim, "%lld ms after the last fault row %s (unit u%d) is still %s",
                        (long long)(sim->mono - began), s->id, s->unit,
                        hf_status_word(s->status));
    }
    sim_violate(sim, "after the last fault a unit was never acknowledged");
}

/* ---- one schedule ---------------------------------------------------------------- */

static void add_actors(struct hf_sim *sim, enum sim_role role, int count)
{
    for (int i = 0; i < count && sim->actor_count < SIM_ACTORS; i++) {
        int actor = (int)sim->actor_count++;
        sim->actors[actor].role = role;
        sim_actor_begin(sim, actor);
        sim->actors[actor].wake_at += sim_roll(&sim->dice, 300);
    }
}

static void plan_actors(struct hf_sim *sim)
{
    unsigned workers = sim->options->workers;
    if (workers == 0 || workers > 8)
        workers = 2 + sim_roll(&sim->dice, 4);
    sim->worker_count = workers;
    add_actors(sim, SIM_WORKER, (int)workers);
    add_actors(sim, SIM_SUBMITTER, 2);
    add_actors(sim, SIM_SWEEPER, 1 + (int)sim_roll(&sim->dice, 2));
    add_actors(sim, SIM_OPERATOR, 1);
    if (sim_one_in(&sim->dice, 3))
        add_actors(sim, SIM_RENEWER, 1);
    if (sim->workloads & (1u << HF_SIM_OF_SESSION))
        add_actors(sim, SIM_LEASER, 2);
    if (sim_has_talks(sim)) {
        add_actors(sim, SIM_SENDER, 1);
        add_actors(sim, SIM_TALKER, 2);
    }
    if (sim->factory->monitor && sim_one_in(&sim->dice, 2))
        add_actors(sim, SIM_MONITOR, 1);
}

static void set_up(struct hf_sim *sim)
{
    sim->dice.state = sim_mix(sim->seed);
    sim->noise.state = sim_mix(sim->seed ^ 0x5eed);
    sim->mono = MONO_MS;
    sim->wall = WALL_MS;
    sim->wall_most = sim->mono_most = INT64_MIN;
    sim->incarnation = 1;
    sim->armed = -1;
    sim->clock = (struct hf_clock){ sim, wall_ms, mono_ms, wait_ms };
    sim->random = (struct hf_random){ sim, fill };
    sim->alloc = (struct hf_alloc){ sim, allocate, release };
    sim->hooks = (struct hf_sim_hooks){ sim, sim_before, sim_after, sim_power_failed };
    sim->store_options = (struct hf_store_options){ .size = sizeof(sim->store_options),
                                                    .alloc = &sim->alloc,
                                                    .clock = &sim->clock,
                                                    .random = &sim->random,
                                                    .inline_mode = true };
    plan_faults(sim);
    plan_units(sim);
    if (sim_one_in(&sim->dice, 8))
        sim->wall = SIGNED_32_MS;
    if (sim->workloads & (1u << HF_SIM_OF_CRON))
        sim_cron_plan(sim);
    sim_limits_plan(sim);
    sim->lease_offset = sim->wall - sim->mono;
    sim->look_every = sim->factory->look_every && !sim_one_in(&sim->dice, 3)
                          ? sim->factory->look_every
                          : 1;
    sim->has_processes = sim->factory->spawn && sim_one_in(&sim->dice, 3);
}

static int start(struct hf_sim *sim, struct hf_err *err)
{
    struct hf_policy policy = { .size = sizeof(policy), .grace_ms = SIM_GRACE_MS };
    size_t handles = 1 + sim_roll(&sim->dice, SIM_HANDLES);
    int rc = open_first(sim, err);
    if (rc == 0)
        rc = open_more(sim, handles, err);
    if (rc == 0)
        rc = hf_policy_set(sim->handles[0], NULL, "kind:expire", &policy, err);
    if (rc == 0)
        rc = sim_cron_start(sim, err);
    if (rc == 0)
        rc = sim_limits_start(sim, err);
    if (rc == 0)
        rc = sim_triggers_start(sim, err);
    if (rc == 0)
        rc = sim_talks_start(sim, err);
    plan_actors(sim);
    return rc;
}

int sim_play(struct hf_sim *sim, struct hf_err *err)
{
    uint32_t steps = sim->options->steps ? sim->options->steps : STEPS;
    set_up(sim);
    int rc = start(sim, err);
    for (uint32_t i = 0; rc == 0 && i < steps && !sim->violation[0]; i++)
        step(sim);
    if (rc == 0 && !sim->violation[0])
        sim_look(sim);
    if (rc == 0 && !sim->violation[0])
        drain(sim);
    if (rc == 0 && !sim->violation[0])
        sim_judge_end(sim);
    close_all(sim);
    sim_turns_free(sim);
    for (size_t i = 0; i < sim->process_count; i++) {
        if (!sim->processes[i].dead)
            sim->factory->kill(sim->factory->user, sim->processes[i].pid);
    }
    if (sim->factory->discard)
        sim->factory->discard(sim->factory->user);
    return rc;
}
