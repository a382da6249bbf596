/* An actor's life: it boots, acts, waits for answers, pauses, crashes. */

#include "sim/inside.h"

hf_ms sim_own_ms(const struct sim_actor *actor, hf_ms ms)
{
    return ms * 100 / actor->rate;
}

struct sim_op sim_request(const struct hf_sim *sim, int actor, enum sim_kind kind)
{
    const struct sim_actor *a = &sim->actors[actor];
    return (
        struct sim_op){ .kind = kind, .actor = actor, .boot = a->boot, .pid = a->pid };
}

static int spawn(struct hf_sim *sim)
{
    if (sim->process_count == SIM_PROCESSES)
        return 0;
    int pid = sim->factory->spawn(sim->factory->user);
    if (pid > 0)
        sim->processes[sim->process_count++] = (struct sim_process){ .pid = pid };
    return pid;
}

static void end_process(struct hf_sim *sim, int pid)
{
    for (size_t i = 0; i < sim->process_count; i++) {
        if (sim->processes[i].pid != pid || sim->processes[i].dead)
            continue;
        sim->factory->kill(sim->factory->user, pid);
        sim->processes[i].dead = true;
    }
}

bool sim_is_dead(const struct hf_sim *sim, int pid)
{
    for (size_t i = 0; i < sim->process_count; i++) {
        if (sim->processes[i].pid == pid && sim->processes[i].dead)
            return true;
    }
    return false;
}

void sim_actor_begin(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    int boot = a->boot + 1;
    int nonces = a->nonces;
    enum sim_role role = a->role;
    *a = (struct sim_actor){ .role = role, .boot = boot, .nonces = nonces, .rate = 100 };
    if (sim->has_processes &&
        (role == SIM_WORKER || role == SIM_LEASER || role == SIM_TALKER))
        a->pid = spawn(sim);
    if (sim_fault(sim, HF_SIM_SKEW))
        a->skew_ms = (hf_ms)sim_roll(&sim->dice, 7200000) - 3600000;
    if (sim_fault(sim, HF_SIM_RATE))
        a->rate = sim_one_in(&sim->dice, 2) ? 50 : 200;
    a->wake_at = sim->mono;
}

void sim_actor_crash(struct hf_sim *sim, int actor, hf_ms back_in_ms)
{
    struct sim_actor *a = &sim->actors[actor];
    /* What was sent may arrive though its sender is gone. */
    if (a->pending.out && !a->pending.executed)
        sim_add_ghost(sim, &a->pending);
    if (a->pid)
        end_process(sim, a->pid);
    a->pid = 0;
    a->pending.out = false;
    a->down = true;
    a->wake_at = sim->mono + back_in_ms;
    sim_trace(sim, "a%d/%d dies", actor, a->boot);
    sim_note(sim, 0xdead0000u + (uint64_t)actor);
}

static void hear(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_op op = a->pending.op;
    struct sim_answer answer = a->pending.answer;
    a->pending.out = false;
    if (op.kind == SIM_OP_CREATE || op.kind == SIM_OP_REGISTER)
        sim_hear_created(sim, &op, &answer);
    if (a->role == SIM_WORKER)
        sim_worker_hear(sim, actor, &op, &answer);
    else
        sim_other_hear(sim, actor, &op, &answer);
}

static void carry(struct hf_sim *sim, int actor)
{
    struct sim_pending *p = &sim->actors[actor].pending;
    if (!p->executed) {
        if (p->execute_at > sim->mono)
            return;
        p->executed = true;
        sim_execute(sim, &p->op, &p->answer);
        if (sim_fault(sim, HF_SIM_LOST_ANSWER))
            p->answer = (struct sim_answer){ .code = HF_EUNCERTAIN };
    }
    if (p->out && p->answer_at <= sim->mono)
        hear(sim, actor);
}

void sim_actor_step(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    if (a->wake_at > sim->mono)
        return;
    if (a->down)
        sim_actor_begin(sim, actor);
    if (sim_fault(sim, HF_SIM_CRASH)) {
        sim_actor_crash(sim, actor, sim_roll(&sim->dice, 5000));
        return;
    }
    if (sim_fault(sim, HF_SIM_PAUSE)) {
        a->wake_at = sim->mono + 500 + sim_roll(&sim->dice, 20000);
        sim_trace(sim, "a%d sleeps until %lld", actor, (long long)a->wake_at);
        return;
    }
    if (!a->pending.out) {
        if (a->role == SIM_WORKER)
            sim_worker_act(sim, actor);
        else
            sim_other_act(sim, actor);
    }
    if (a->pending.out)
        carry(sim, actor);
}
