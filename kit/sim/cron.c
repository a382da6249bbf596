/* Schedules in a night when the clocks change: passes by any actor, at clocks that jump,
 * while an operator pauses and resumes. Each slot is made once or recorded as skipped. */

#include "sim/inside.h"

#define SPRING_MS                                                                        \
    1806194400000 /* 2027-03-28 00:40 UTC: in Berlin 01:40, at 2:00 it is 3:00 */
#define AUTUMN_MS                                                                        \
    1824943200000 /* 2027-10-31 00:40 UTC: in Berlin 02:40, at 3:00 it is 2:00 */
#define DAY_MS 86400000

/* "at night" fires when the gap of spring has passed, and then daily; in autumn the second
 * half past two is none. Written down from docs/schedules.md, not computed by the library. */
#define SPRING_FIRST_MS 1806195600000 /* 2027-03-28 01:00 UTC */
#define SPRING_DAILY_MS 1806280200000 /* 2027-03-29 00:30 UTC */
#define AUTUMN_DAILY_MS 1825032600000 /* 2027-11-01 01:30 UTC */

enum { TICKS, MINUTES, HALVES, AT_NIGHT };

static const struct {
    const char *name;
    hf_ms every_ms;
    const char *cron;
    enum hf_overlap overlap;
    enum hf_catch_up catch_up;
    hf_ms period_ms; /* of its slots, through all changes of the clocks; 0: not even */
} schedules[SIM_SCHEDULES] = {
    [TICKS] = { "ticks", 7000, NULL, HF_OVERLAP_ALLOW, HF_CATCH_UP_LATEST, 7000 },
    [MINUTES] = { "minutes", 0, "* * * * *", HF_OVERLAP_REPLACE, HF_CATCH_UP_LATEST,
                  60000 },
    [HALVES] = { "halves", 0, "*/30 * * * *", HF_OVERLAP_SKIP, HF_CATCH_UP_ALL, 1800000 },
    [AT_NIGHT] = { "at-night", 0, "30 2 * * *", HF_OVERLAP_ONE_WAITING, HF_CATCH_UP_ALL,
                   0 },
};

static struct hf_schedule_spec definition(int i)
{
    struct hf_schedule_spec new = { .size = sizeof(new),
                                    .kind = "plain",
                                    .zone = "Europe/Berlin",
                                    .priority = -1,
                                    .max_attempts = 5 };
    new.name = schedules[i].name;
    new.every_ms = schedules[i].every_ms;
    new.cron = schedules[i].cron;
    new.overlap = schedules[i].overlap;
    new.catch_up = schedules[i].catch_up;
    return new;
}

bool sim_has_cron(const struct hf_sim *sim)
{
    return (sim->workloads & (1u << HF_SIM_OF_CRON)) &&
           sim->handles[0]->methods->schedules;
}

void sim_cron_plan(struct hf_sim *sim)
{
    sim->autumn = sim_one_in(&sim->dice, 2);
    sim->wall = sim->autumn ? AUTUMN_MS : SPRING_MS;
}

int sim_cron_start(struct hf_sim *sim, struct hf_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < SIM_SCHEDULES && sim_has_cron(sim); i++) {
        struct hf_schedules *made = NULL;
        struct hf_schedule_spec new = definition(i);
        rc = hf_schedule_add(sim->handles[0], NULL, &new, &made, err);
        if (rc == 0)
            hf_schedules_free(made);
    }
    return rc;
}

static int stop(struct hf_sim *sim, const char *name, struct hf_err *err)
{
    struct hf_schedules *paused = NULL;
    int rc = hf_schedule_pause(sim->handles[0], NULL, name, "the end", 0, &paused, err);
    if (rc == 0)
        hf_schedules_free(paused);
    return rc;
}

/* The last faults may be on their way: the power, or one I/O, fails in the next transaction
 * that writes. */
void sim_cron_stop(struct hf_sim *sim)
{
    for (int i = 0; i < SIM_SCHEDULES && sim_has_cron(sim); i++) {
        struct hf_err err = { 0 };
        int rc = stop(sim, schedules[i].name, &err);
        for (int tries = 0; rc && tries < 2; tries++) {
            if (sim->power_out)
                sim_boot(sim);
            rc = stop(sim, schedules[i].name, &err);
        }
        if (rc)
            sim_violate(sim, "schedule %s cannot be paused: %s", schedules[i].name,
                        err.message);
    }
}

int sim_cron_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op)
{
    struct hf_schedules *changed = NULL;
    const char *name = schedules[op->key].name;
    if (sim->healing)
        return 0; /* a request from before: all schedules have been stopped */
    sim->resumed |= op->limit != 0;
    int rc = op->limit ? hf_schedule_resume(store, NULL, name, 0, &changed, NULL)
                       : hf_schedule_pause(store, NULL, name, "sim", 0, &changed, NULL);
    if (rc == 0)
        hf_schedules_free(changed);
    return rc;
}

/* ---- judging --------------------------------------------------------------------- */

/* Slots after `from` and before `next`. */
static int64_t slots_between(const struct hf_sim *sim, int i, hf_ms from, hf_ms next)
{
    hf_ms period = schedules[i].period_ms;
    if (i == TICKS)
        return (next - from) / period - 1;
    if (period)
        return next / period - from / period - 1;
    hf_ms daily = sim->autumn ? AUTUMN_DAILY_MS : SPRING_DAILY_MS;
    int64_t first = !sim->autumn && next > SPRING_FIRST_MS;
    return first + (next > daily ? (next - daily + DAY_MS - 1) / DAY_MS : 0);
}

/* Rows of its slots that were ever seen. */
static int64_t rows_of(const struct hf_sim *sim, int i)
{
    int64_t rows = 0;
    for (size_t k = 0; k < sim->shadow_count; k++)
        rows += sim->shadows[k].schedule == i + 1;
    return rows;
}

static void judge_one(struct hf_sim *sim, int i, const struct hf_schedule *s)
{
    hf_ms from = i == TICKS ? s->start_at : s->created_at;
    int64_t passed = slots_between(sim, i, from, s->next_at);
    /* Resumed at a clock that went back, it continues with the first slot after that. */
    bool went_back = sim->resumed &&
                     (sim->may & ((1u << HF_SIM_SKEW) | (1u << HF_SIM_JUMP)));
    if (s->made + s->skipped != passed && !went_back)
        sim_violate(
            sim, "schedule %s: %lld slots passed, %lld were made and %lld skipped",
            s->name, (long long)passed, (long long)s->made, (long long)s->skipped);
    if (sim->shadow_count < SIM_SHADOWS && rows_of(sim, i) != s->made)
        sim_violate(sim, "schedule %s: %lld slots were made, %lld units are there",
                    s->name, (long long)s->made, (long long)rows_of(sim, i));
}

/* A unit that is replaced ends with the one that replaces it. */
static void judge_replaced(struct hf_sim *sim)
{
    int open = 0;
    for (size_t k = 0; k < sim->shadow_count; k++)
        open += sim->shadows[k].schedule == MINUTES + 1 && !sim->shadows[k].gone &&
                !hf_status_terminal(sim->shadows[k].status);
    if (open > 1)
        sim_violate(sim, "schedule %s has %d units at once", schedules[MINUTES].name,
                    open);
}

void sim_cron_look(struct hf_sim *sim)
{
    if (sim_has_cron(sim))
        judge_replaced(sim);
}

void sim_cron_judge(struct hf_sim *sim)
{
    for (int i = 0; i < SIM_SCHEDULES && sim_has_cron(sim); i++) {
        struct hf_schedules *found = NULL;
        struct hf_err err = { 0 };
        if (hf_schedule_get(sim->handles[0], NULL, schedules[i].name, &found, &err)) {
            sim_violate(sim, "schedule %s is lost: %s", schedules[i].name, err.message);
            return;
        }
        judge_one(sim, i, hf_schedules_at(found, 0));
        hf_schedules_free(found);
    }
}

bool sim_cron_replaced(const struct sim_shadow *s, const struct hf_event *event)
{
    return s->schedule == MINUTES + 1 && sim_same(event->actor_kind, "schedule") &&
           sim_same(event->to_status, hf_status_word(HF_STATUS_CANCELLED));
}

int sim_schedule_of(const char *name)
{
    for (int i = 0; i < SIM_SCHEDULES; i++) {
        if (sim_same(schedules[i].name, name))
            return i + 1;
    }
    return 0;
}

/* FNV-1a. */
uint64_t sim_text_hash(const char *one, const char *two)
{
    uint64_t hash = 1469598103934665603u;
    const char *const texts[] = { one, two ? two : "" };
    for (int i = 0; i < 2; i++) {
        for (const char *c = texts[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    }
    return hash | 1;
}
