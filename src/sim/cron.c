/* Schedules: passes by anybody, at clocks that jump; each slot is made once or recorded. */

#include "sim/inside.h"

#define NAMES SIM_SCHEDULES

static const char *const names[NAMES] = { "ticks", "minutes" };

static struct hf_schedule_new definition(int i)
{
    struct hf_schedule_new new = { .size = sizeof(new),
                                   .name = names[i],
                                   .kind = "plain",
                                   .overlap = HF_OVERLAP_ALLOW,
                                   .priority = -1,
                                   .max_attempts = 5 };
    if (i == 0) {
        new.every_ms = 7000;
    } else {
        new.cron = "* * * * *";
        new.zone = "Europe/Berlin"; /* the schedule's night has a change of the clocks */
    }
    return new;
}

bool sim_has_cron(const struct hf_sim *sim)
{
    return (sim->workloads & (1u << HF_SIM_OF_CRON)) &&
           sim->handles[0]->methods->schedules;
}

int sim_cron_start(struct hf_sim *sim, struct hf_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < NAMES && sim_has_cron(sim); i++) {
        struct hf_schedules *schedules = NULL;
        struct hf_schedule_new new = definition(i);
        rc = hf_schedule_add(sim->handles[0], NULL, &new, &schedules, err);
        if (rc == 0)
            hf_schedules_free(schedules);
    }
    return rc;
}

void sim_cron_stop(struct hf_sim *sim)
{
    for (int i = 0; i < NAMES && sim_has_cron(sim); i++) {
        struct hf_schedules *schedules = NULL;
        struct hf_err err = { 0 };
        if (hf_schedule_pause(sim->handles[0], NULL, names[i], "the end", 0, &schedules,
                              &err))
            sim_violate(sim, "schedule %s cannot be paused: %s", names[i], err.message);
        else
            hf_schedules_free(schedules);
    }
}

/* An interval's slots are counted from its start: each is made or skipped, none twice. */
void sim_cron_judge(struct hf_sim *sim)
{
    struct hf_schedules *schedules = NULL;
    struct hf_err err = { 0 };
    if (!sim_has_cron(sim))
        return;
    if (hf_schedule_get(sim->handles[0], NULL, names[0], &schedules, &err)) {
        sim_violate(sim, "schedule %s is lost: %s", names[0], err.message);
        return;
    }
    const struct hf_schedule *s = hf_schedules_at(schedules, 0);
    int64_t passed = (s->next_at - s->start_at) / s->every_ms - 1;
    if (s->next_at && s->made + s->skipped != passed)
        sim_violate(
            sim, "schedule %s: %lld slots passed, %lld were made and %lld skipped",
            names[0], (long long)passed, (long long)s->made, (long long)s->skipped);
    hf_schedules_free(schedules);
}

/* FNV-1a of schedule and slot. */
uint64_t sim_slot_of(const struct hf_work *work)
{
    uint64_t hash = 1469598103934665603u;
    const char *const texts[] = { work->source_id, work->source_run_id };
    if (!work->source_run_id || hf_source_of(work->source_system) != HF_SOURCE_SCHEDULER)
        return 0;
    for (int i = 0; i < 2; i++) {
        for (const char *c = texts[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    }
    return hash | 1;
}
