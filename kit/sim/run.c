/* Schedules one after the other, what they amount to, and making a failing one small. */

#include <string.h>

#include "sim/inside.h"

#define FLOOR_SCHEDULES 1000
#define FLOOR_PERCENT 1
#define IDLE_SCHEDULES 16
#define PROGRESS_EVERY 64

static void add_up(struct hf_sim_report *report, const struct hf_sim *sim)
{
    report->schedules++;
    report->hash = sim_mix(report->hash ^ sim->hash);
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++)
        report->fault_schedules[i] += (sim->fired >> i) & 1;
    if (!sim->violation[0])
        return;
    if (report->violations++ == 0) {
        report->first_seed = sim->seed;
        report->first_step = sim->step;
        sim_copy(report->first, sizeof(report->first), sim->violation);
    }
}

static bool cannot(const struct hf_sim_factory *factory,
                   const struct hf_sim_options *options, int fault)
{
    return (options->without_faults & (1u << fault)) ||
           (fault == HF_SIM_REOPEN && !factory->again) ||
           (fault == HF_SIM_POWER && !factory->power) ||
           (fault == HF_SIM_NOMEM && !factory->memory) ||
           ((fault == HF_SIM_MEANWHILE || fault == HF_SIM_STALL) && !factory->hooked);
}

static bool out_of_reach(const struct hf_sim_factory *factory, enum hf_sim_mark mark)
{
    if (mark == HF_SIM_MARK_SPARED)
        return !factory->monitor;
    return mark >= HF_SIM_MARK_SLOT_MADE && mark < HF_SIM_MARK_SPARED && !factory->whole;
}

/* A run that did little has shown nothing. */
static void judge_floors(const struct hf_sim_factory *factory,
                         const struct hf_sim_options *options,
                         struct hf_sim_report *report)
{
    if (report->schedules == 0)
        sim_format(report->low, sizeof(report->low), "no schedule was run");
    else if (report->schedules >= IDLE_SCHEDULES && !options->without_workloads &&
             report->marks[HF_SIM_MARK_CLAIMED] == 0)
        sim_format(report->low, sizeof(report->low), "nothing was ever claimed");
    if (report->schedules < FLOOR_SCHEDULES || options->without_workloads ||
        options->workers)
        return;
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++) {
        if (!cannot(factory, options, i) &&
            report->fault_schedules[i] * 100 < report->schedules * FLOOR_PERCENT)
            sim_format(report->low, sizeof(report->low),
                       "fault %s fired in %llu of %llu schedules",
                       hf_sim_fault_word((enum hf_sim_fault)i),
                       (unsigned long long)report->fault_schedules[i],
                       (unsigned long long)report->schedules);
    }
    for (int i = 0; i < HF_SIM_MARK_COUNT; i++) {
        bool none = out_of_reach(factory, (enum hf_sim_mark)i);
        if (report->marks[i] == 0 && !options->without_faults && !none)
            sim_format(report->low, sizeof(report->low), "mark %s was never reached",
                       hf_sim_mark_word((enum hf_sim_mark)i));
    }
}

static int run_one(const struct hf_sim_factory *factory,
                   const struct hf_sim_options *options, uint64_t seed,
                   struct hf_sim_report *report, struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    struct hf_sim *sim = alloc->realloc(alloc->user, NULL, sizeof(*sim));
    if (!sim)
        return HF_ENOMEM;
    memset(sim, 0, sizeof(*sim));
    sim->factory = factory;
    sim->options = options;
    sim->report = report;
    sim->seed = seed;
    int rc = sim_play(sim, err);
    if (rc == 0)
        add_up(report, sim);
    alloc->free(alloc->user, sim);
    return rc;
}

int hf_sim_run(const struct hf_sim_factory *factory, const struct hf_sim_options *options,
               struct hf_sim_report *ret_report, struct hf_err *err)
{
    struct hf_sim_report report = { 0 };
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < options->schedules; i++) {
        rc = run_one(factory, options, options->seed + i, &report, err);
        if (report.violations && !options->go_on)
            break;
        if (i % PROGRESS_EVERY == 0 && options->progress &&
            !options->progress(options->user, &report))
            break;
    }
    if (rc)
        return rc;
    judge_floors(factory, options, &report);
    *ret_report = report;
    return 0;
}

/* ---- shrinking ------------------------------------------------------------------- */

static bool fails(const struct hf_sim_factory *factory,
                  const struct hf_sim_options *options, struct hf_sim_report *ret_report)
{
    struct hf_sim_options quiet = *options;
    quiet.trace = NULL;
    quiet.progress = NULL;
    quiet.schedules = 1;
    return hf_sim_run(factory, &quiet, ret_report, NULL) == 0 &&
           ret_report->violations > 0;
}

/* Leave each bit out that the failure does not need. */
static void drop_bits(const struct hf_sim_factory *factory, struct hf_sim_options *io,
                      bool faults)
{
    struct hf_sim_report report;
    int count = faults ? HF_SIM_FAULT_COUNT : HF_SIM_WORKLOAD_COUNT;
    for (int i = 0; i < count; i++) {
        struct hf_sim_options less = *io;
        uint32_t *mask = faults ? &less.without_faults : &less.without_workloads;
        *mask |= 1u << i;
        if (fails(factory, &less, &report))
            *io = less;
    }
}

int hf_sim_shrink(const struct hf_sim_factory *factory, struct hf_sim_options *io_options,
                  struct hf_err *err)
{
    struct hf_sim_report report;
    struct hf_sim_options best = *io_options;
    (void)err;
    best.schedules = 1;
    if (!fails(factory, &best, &report))
        return HF_ENOTFOUND;
    drop_bits(factory, &best, true);
    drop_bits(factory, &best, false);
    for (uint32_t workers = 1; workers < 5; workers++) {
        struct hf_sim_options less = best;
        less.workers = workers;
        if (fails(factory, &less, &report)) {
            best = less;
            break;
        }
    }
    /* Where it is seen before the drain, no more steps are needed. */
    for (uint32_t steps = best.steps ? best.steps : 200; steps > 1;
         steps -= (steps + 9) / 10) {
        struct hf_sim_options less = best;
        less.steps = steps;
        if (fails(factory, &less, &report))
            best = less;
        else
            break;
    }
    *io_options = best;
    return 0;
}
