/* Units under a cap and units under a rate, and jobs with a dedup key. At every look no more
 * rows hold a place than the cap allows, no more were started than the rate allows, and of
 * a dedup key at most one job is unfinished. */

#include <holdfast/job.h>

#include "sim/inside.h"

#define CAP_NAME "key:cap"
#define RATE_NAME "rate:pace"

static const char *const job_keys[SIM_JOB_KEYS] = { "job-0", "job-1" };

static bool has(const struct hf_sim *sim, enum hf_sim_workload workload)
{
    return (sim->workloads & (1u << workload)) != 0;
}

void sim_limits_plan(struct hf_sim *sim)
{
    struct sim_limits *l = &sim->limits;
    l->cap = l->cap_most = 1 + sim_roll(&sim->dice, 2);
    l->rate_count = 1 + sim_roll(&sim->dice, 2);
    l->rate_ms = 1000 * (1 + (int64_t)sim_roll(&sim->dice, 3));
    l->burst = 1 + sim_roll(&sim->dice, 2);
    l->level = l->burst * l->rate_ms;
    l->jobs_left = has(sim, HF_SIM_OF_JOB) ? 3 + (int)sim_roll(&sim->dice, 5) : 0;
}

int sim_limits_start(struct hf_sim *sim, struct hf_err *err)
{
    const struct sim_limits *l = &sim->limits;
    struct hf_limit cap = { .size = sizeof(cap), .name = CAP_NAME };
    struct hf_limit rate = { .size = sizeof(rate), .name = RATE_NAME };
    if (!has(sim, HF_SIM_OF_LIMIT))
        return 0;
    cap.max_running = l->cap;
    rate.rate_count = l->rate_count;
    rate.rate_ms = l->rate_ms;
    rate.burst = l->burst;
    int rc = hf_limit_set(sim->handles[0], NULL, &cap, err);
    return rc ? rc : hf_limit_set(sim->handles[0], NULL, &rate, err);
}

void sim_limits_fill(const struct sim_unit *unit, struct hf_work_spec *new)
{
    if (unit->chain % 2)
        new->rate_key = "pace";
    else
        new->limit_key = "cap";
}

/* ---- calls ----------------------------------------------------------------------- */

int sim_limits_call(struct hf_store *store, const struct sim_op *op)
{
    struct hf_limit cap = { .size = sizeof(cap), .name = CAP_NAME };
    cap.max_running = op->limit;
    return hf_limit_set(store, NULL, &cap, NULL);
}

int sim_job_call(struct hf_store *store, const struct sim_op *op, const char *actor,
                 struct hf_answer **ret_answer)
{
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "worker" };
    struct hf_job_spec job = { .size = sizeof(job), .kind = "plain", .priority = -1 };
    who.actor = actor;
    job.dedup_key = job_keys[op->key];
    job.debounce_ms = op->span_ms;
    job.max_attempts = 5;
    return hf_job_enqueue(store, &who, &job, ret_answer, NULL);
}

static void judge_job(struct hf_sim *sim, const struct sim_op *op,
                      const struct sim_told *told)
{
    const struct sim_shadow *s = sim_shadow_of(sim, told->id);
    if (told->code)
        sim_violate(sim, "a job of key %d is refused: %s", op->key,
                    hf_err_wire(told->code));
    if (!told->created && s && s->dedup && s->dedup != op->key + 1)
        sim_violate(sim, "key %d found the job of key %d in its way", op->key,
                    s->dedup - 1);
    if (!told->created && op->span_ms)
        sim_mark(sim, HF_SIM_MARK_JOB_PUT_OFF);
}

/* Whether it is the only one of its kind since the last look: otherwise it is unknown
 * which of them was the last. */
static bool alone(const struct hf_sim *sim, enum sim_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < sim->window_count; i++)
        count += sim->window[i].op.kind == kind;
    return count == 1;
}

void sim_limits_answer(struct hf_sim *sim, const struct sim_op *op,
                       const struct sim_answer *answer, bool known)
{
    struct sim_limits *l = &sim->limits;
    if (op->kind == SIM_OP_JOB && known && answer->code == 0 && answer->count)
        judge_job(sim, op, &answer->items[0]);
    if (op->kind != SIM_OP_LIMIT || (known && answer->code))
        return;
    if (op->limit > l->cap_most)
        l->cap_most = op->limit;
    if (op->limit > l->cap || (known && alone(sim, SIM_OP_LIMIT)))
        l->cap = op->limit;
}

/* ---- looking --------------------------------------------------------------------- */

void sim_limits_read(struct sim_shadow *s, const struct hf_work *work)
{
    s->limit = sim_same(work->limit_name, CAP_NAME)    ? SIM_CAPPED
               : sim_same(work->limit_name, RATE_NAME) ? SIM_PACED
                                                       : SIM_NO_LIMIT;
    s->dedup = 0;
    for (int i = 0; i < SIM_JOB_KEYS; i++) {
        if (sim_same(work->dedup_key, job_keys[i]))
            s->dedup = i + 1;
    }
}

/* The bucket as the promise has it. Where wall clocks jump it cannot be said. */
void sim_limits_start_of(struct hf_sim *sim, const struct sim_shadow *s, hf_ms at)
{
    struct sim_limits *l = &sim->limits;
    uint32_t jumps = (1u << HF_SIM_SKEW) | (1u << HF_SIM_JUMP);
    if (s->limit != SIM_PACED || (sim->may & jumps))
        return;
    int64_t full = l->burst * l->rate_ms;
    int64_t gained = l->level_at ? (at - l->level_at) * l->rate_count : full;
    l->level = l->level + gained < full ? l->level + gained : full;
    l->level -= l->rate_ms;
    l->level_at = at;
    if (l->level < 0)
        sim_violate(sim, "row %s began before the rate of %lld in %lld ms let it", s->id,
                    (long long)l->rate_count, (long long)l->rate_ms);
}

void sim_limits_look(struct hf_sim *sim)
{
    struct sim_limits *l = &sim->limits;
    int64_t places = 0;
    int unfinished[SIM_JOB_KEYS] = { 0 };
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *s = &sim->shadows[i];
        if (s->gone || hf_status_terminal(s->status))
            continue;
        bool waits = s->status == HF_STATUS_QUEUED && s->gated;
        if (s->limit && waits && s->gate_of_limit)
            sim_mark(sim, s->limit == SIM_CAPPED ? HF_SIM_MARK_LIMIT_WAITED
                                                 : HF_SIM_MARK_RATE_WAITED);
        places += s->limit == SIM_CAPPED && (s->status == HF_STATUS_RUNNING ||
                                             (s->status == HF_STATUS_QUEUED && !waits));
        if (s->dedup && ++unfinished[s->dedup - 1] > 1)
            sim_violate(sim, "two jobs of key %d are unfinished, the second is %s",
                        s->dedup - 1, s->id);
    }
    if (places > l->cap_most && places > l->places)
        sim_violate(sim, "%lld units hold a place under a cap of %lld", (long long)places,
                    (long long)l->cap_most);
    l->places = places;
    l->cap_most = l->cap;
}
