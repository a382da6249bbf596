/* holdfast-sim: schedules of the simulator, from the command line.
 *
 *   holdfast-sim --seed N --schedules M [--store model|sqlite]
 *                [--without NAME]… [--only WORKLOAD] [--steps N] [--workers N]
 *                [--trace] [--go-on] [--quiet] [--coverage] [--no-shrink]
 *   holdfast-sim --drives …              turns that drives drive (drives.h), over SQLite
 *   holdfast-sim-planted --plant BUG …   with one of the planted bugs (kit/sim/plants)
 *   holdfast-sim-planted --plants        what can be planted, and on which store it shows
 *   holdfast-sim-planted --rare …        fail when a rare path (kit/sim/rare) is not taken
 *
 * The last line is `schedules=… steps=… faults=… violations=… hash=…`. Exit code 0, or 1 when
 * there was a violation or a floor of coverage was not reached. A failing schedule is made
 * smaller and printed as a command. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/drives.h"
#include "sim/plants.h"
#include "sim/stores.h"

struct told {
    bool quiet;
    uint64_t wanted;
    double began;
    double last;
};

struct asked {
    struct hf_sim_options options;
    const struct hf_sim_factory *factory;
    const char *store;
    const char *plant;
    bool coverage;
    bool rare;
    bool as_it_is;
    bool drives;
    uint32_t without_drives; /* bits of enum drives_fault */
    struct told told;
};

static double now_s(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static bool progress(void *user, const struct hf_sim_report *r)
{
    struct told *told = user;
    double now = now_s();
    if (told->quiet || now - told->last < 2)
        return true;
    told->last = now;
    fprintf(stderr,
            "%llu of %llu schedules, %.0f steps/s, %llu faults, %llu violations\n",
            (unsigned long long)r->schedules, (unsigned long long)told->wanted,
            (double)r->steps / (now - told->began), (unsigned long long)r->faults,
            (unsigned long long)r->violations);
    return true;
}

static void trace(void *user, const char *line)
{
    (void)user;
    (void)puts(line);
}

static int usage(const char *what)
{
    fprintf(stderr,
            "holdfast-sim: %s: not understood, or without what it takes; "
            "holdfast-sim --help\n",
            what);
    return 2;
}

static int help(void)
{
    (void)puts(
        "holdfast-sim: a fleet in virtual time on one thread, by seeds\n\n"
        "usage: holdfast-sim [--seed N] [--schedules N] [--store model|sqlite|disk] …\n\n"
        "  --seed N        the first schedule's (default 1); the others follow it\n"
        "  --schedules N   how many (default 1000)\n"
        "  --store S       the reference model (default), SQLite in memory, or SQLite on "
        "a\n"
        "                  disk that fails\n"
        "  --drives        turns with tools and waits, driven by the driver itself\n"
        "  --only W        one workload; --without W or F: not that workload or fault\n"
        "  --steps N, --workers N   of each schedule, where the seed is not to decide\n"
        "  --plant BUG     (holdfast-sim-planted) with a planted bug, which is to be "
        "found;\n"
        "                  --plants lists them\n"
        "  --trace         every call; --no-shrink: a failing schedule as it is\n"
        "  --go-on         after a violation; --quiet: no progress\n"
        "  --coverage      in how many schedules each fault and path was met; --rare: "
        "and\n"
        "                  the library's own rare paths\n\n"
        "Ends with `schedules=… steps=… faults=… violations=… hash=…`. Exit code 0; 1 "
        "after a\n"
        "violation, which is printed as a command that shows it again, or when a floor "
        "of\n"
        "coverage was not reached; 2 for a usage error. docs/internals/simulation.md\n");
    printf("workloads:");
    for (int i = 0; i < HF_SIM_WORKLOAD_COUNT; i++)
        printf(" %s", hf_sim_workload_word((enum hf_sim_workload)i));
    printf("\nfaults:");
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++)
        printf(" %s", hf_sim_fault_word((enum hf_sim_fault)i));
    printf("\nfaults of --drives:");
    for (int i = 0; i < DRIVES_FAULT_COUNT; i++)
        printf(" %s", drives_fault_word((enum drives_fault)i));
    printf("\n");
    return 0;
}

static bool number(const char *text, uint64_t *ret_value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || errno || end == text || *end)
        return false;
    *ret_value = value;
    return true;
}

static bool leave_out(struct asked *asked, const char *name)
{
    struct hf_sim_options *options = &asked->options;
    for (int i = 0; name && asked->drives && i < DRIVES_FAULT_COUNT; i++) {
        if (strcmp(name, drives_fault_word((enum drives_fault)i)) == 0) {
            asked->without_drives |= 1u << i;
            return true;
        }
    }
    for (int i = 0; name && i < HF_SIM_FAULT_COUNT; i++) {
        if (strcmp(name, hf_sim_fault_word((enum hf_sim_fault)i)) == 0) {
            options->without_faults |= 1u << i;
            return true;
        }
    }
    for (int i = 0; name && i < HF_SIM_WORKLOAD_COUNT; i++) {
        if (strcmp(name, hf_sim_workload_word((enum hf_sim_workload)i)) == 0) {
            options->without_workloads |= 1u << i;
            return true;
        }
    }
    return false;
}

/* All other workloads are left out. */
static bool keep_only(struct hf_sim_options *options, const char *name)
{
    bool found = false;
    for (int i = 0; name && i < HF_SIM_WORKLOAD_COUNT; i++) {
        bool here = strcmp(name, hf_sim_workload_word((enum hf_sim_workload)i)) == 0;
        found = found || here;
        if (!here)
            options->without_workloads |= 1u << i;
    }
    return found;
}

/* 0: neither of these. 1: taken. -1: wrong. */
static int read_switch(struct asked *asked, const char *name)
{
    if (strcmp(name, "--trace") == 0)
        asked->options.trace = trace;
    else if (strcmp(name, "--go-on") == 0)
        asked->options.go_on = true;
    else if (strcmp(name, "--coverage") == 0)
        asked->coverage = true;
    else if (strcmp(name, "--rare") == 0)
        asked->rare = true;
    else if (strcmp(name, "--no-shrink") == 0)
        asked->as_it_is = true;
    else if (strcmp(name, "--quiet") == 0)
        asked->told.quiet = true;
    else if (strcmp(name, "--drives") == 0)
        asked->drives = true;
    else
        return 0;
    return 1;
}

static bool read_value(struct asked *asked, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--store") == 0) {
        asked->store = value;
        return value != NULL;
    }
    if (strcmp(name, "--plant") == 0) {
        asked->plant = value;
        return value != NULL;
    }
    if (strcmp(name, "--without") == 0)
        return leave_out(asked, value);
    if (strcmp(name, "--only") == 0)
        return keep_only(&asked->options, value);
    if (!number(value, &n))
        return false;
    if (strcmp(name, "--seed") == 0)
        asked->options.seed = n;
    else if (strcmp(name, "--schedules") == 0)
        asked->options.schedules = n;
    else if (strcmp(name, "--steps") == 0)
        asked->options.steps = (uint32_t)n;
    else if (strcmp(name, "--workers") == 0)
        asked->options.workers = (uint32_t)n;
    else
        return false;
    return true;
}

static void show_coverage(const struct hf_sim_report *r)
{
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++)
        printf("fault %-18s in %llu schedules\n", hf_sim_fault_word((enum hf_sim_fault)i),
               (unsigned long long)r->fault_schedules[i]);
    for (int i = 0; i < HF_SIM_MARK_COUNT; i++)
        printf("mark  %-18s %llu times\n", hf_sim_mark_word((enum hf_sim_mark)i),
               (unsigned long long)r->marks[i]);
}

static void show_smaller(const struct asked *asked, const struct hf_sim_report *r)
{
    struct hf_sim_options small = asked->options;
    small.seed = r->first_seed;
    printf("violation, seed %llu, step %llu: %s\n", (unsigned long long)r->first_seed,
           (unsigned long long)r->first_step, r->first);
    if (asked->as_it_is || hf_sim_shrink(asked->factory, &small, NULL))
        return;
    printf("again: build/holdfast-sim --store %s --seed %llu --schedules 1", asked->store,
           (unsigned long long)small.seed);
    if (small.steps)
        printf(" --steps %u", small.steps);
    if (small.workers)
        printf(" --workers %u", small.workers);
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++) {
        if (small.without_faults & (1u << i))
            printf(" --without %s", hf_sim_fault_word((enum hf_sim_fault)i));
    }
    for (int i = 0; i < HF_SIM_WORKLOAD_COUNT; i++) {
        if (small.without_workloads & (1u << i))
            printf(" --without %s", hf_sim_workload_word((enum hf_sim_workload)i));
    }
    printf(" --trace\n");
}

static int show_rare(const struct asked *asked);

static int run(struct asked *asked)
{
    struct hf_sim_report report;
    struct hf_err err = { 0 };
    asked->told.wanted = asked->options.schedules;
    asked->told.began = asked->told.last = now_s();
    if (hf_sim_run(asked->factory, &asked->options, &report, &err)) {
        fprintf(stderr, "holdfast-sim: no store: %s\n", err.message);
        return 2;
    }
    double took = now_s() - asked->told.began;
    if (asked->coverage)
        show_coverage(&report);
    int missed = asked->rare ? show_rare(asked) : 0;
    if (report.violations && !asked->options.trace)
        show_smaller(asked, &report);
    if (report.low[0])
        printf("too little was shown: %s\n", report.low);
    if (!asked->told.quiet)
        fprintf(stderr, "%.1f s, %.0f steps/s\n", took, (double)report.steps / took);
    printf("schedules=%llu steps=%llu faults=%llu violations=%llu hash=%016llx\n",
           (unsigned long long)report.schedules, (unsigned long long)report.steps,
           (unsigned long long)report.faults, (unsigned long long)report.violations,
           (unsigned long long)report.hash);
    return report.violations || report.low[0] || missed ? 1 : 0;
}

/* ---- drives ------------------------------------------------------------------- */

static int run_drives(const struct asked *asked)
{
    struct drives_report r;
    struct drives_options options = { .seed = asked->options.seed,
                                      .schedules = asked->options.schedules,
                                      .without = asked->without_drives,
                                      .trace = asked->options.trace != NULL,
                                      .go_on = asked->options.go_on };
    if (drives_run(&options, &r))
        return 2;
    for (int i = 0; asked->coverage && i < DRIVES_FAULT_COUNT; i++)
        printf("fault %-18s in %llu schedules\n", drives_fault_word((enum drives_fault)i),
               (unsigned long long)r.fault_schedules[i]);
    for (int i = 0; asked->coverage && i < DRIVES_MARK_COUNT; i++)
        printf("mark  %-18s %llu times\n", drives_mark_word((enum drives_mark)i),
               (unsigned long long)r.marks[i]);
    if (r.violations) {
        printf("violation, seed %llu, step %llu: %s\n", (unsigned long long)r.first_seed,
               (unsigned long long)r.first_step, r.first);
        printf("again: build/holdfast-sim --drives --seed %llu --schedules 1 --trace\n",
               (unsigned long long)r.first_seed);
    }
    if (r.low[0])
        printf("too little was shown: %s\n", r.low);
    printf("schedules=%llu steps=%llu faults=%llu violations=%llu hash=%016llx\n",
           (unsigned long long)r.schedules, (unsigned long long)r.steps,
           (unsigned long long)r.faults, (unsigned long long)r.violations,
           (unsigned long long)r.hash);
    return r.violations || r.low[0] ? 1 : 0;
}

/* ---- rare paths --------------------------------------------------------------- */

/* How often each mark was reached. 1 when one that this store leads to never was. */
static int show_rare(const struct asked *asked)
{
    int rc = 0;
    for (size_t i = 0; i < sim_rare_count; i++) {
        unsigned long long hits = hf_rare_hits[i];
        bool missed = hits == 0 && strcmp(sim_rares[i].store, asked->store) == 0;
        printf("rare  %-18s %llu times%s\n", sim_rares[i].name, hits,
               missed ? ": NEVER" : "");
        rc |= missed;
    }
    return rc;
}

/* ---- planted bugs ------------------------------------------------------------- */

static int not_planted(void)
{
    fprintf(stderr, "holdfast-sim: no planted bugs and marks are in this program; "
                    "holdfast-sim-planted has them\n");
    return 2;
}

static int list_plants(void)
{
    if (sim_plant_count == 0)
        return not_planted();
    for (size_t i = 0; i < sim_plant_count; i++)
        printf("%-20s %-8s %s\n", sim_plants[i].name, sim_plants[i].store,
               sim_plants[i].what);
    return 0;
}

/* 0, or the exit code of a usage error. */
static int plant(const char *name)
{
    if (sim_plant_count == 0)
        return not_planted();
    for (size_t i = 0; i < sim_plant_count; i++) {
        if (strcmp(sim_plants[i].name, name) == 0) {
            hf_planted = (int)i + 1;
            return 0;
        }
    }
    fprintf(stderr, "holdfast-sim: there is no bug %s; --plants lists them\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    struct asked asked = { .store = "model" };
    asked.options = (struct hf_sim_options){ .size = sizeof(asked.options),
                                             .seed = 1,
                                             .schedules = 1000,
                                             .user = &asked.told,
                                             .progress = progress };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return help();
        if (strcmp(argv[i], "--plants") == 0)
            return list_plants();
        if (read_switch(&asked, argv[i]))
            continue;
        if (!read_value(&asked, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            return usage(argv[i]);
        i++;
    }
    int rc = asked.plant ? plant(asked.plant) : 0;
    if (rc)
        return rc;
    if (asked.rare && sim_rare_count == 0)
        return not_planted();
    if (asked.drives)
        return run_drives(&asked);
    asked.factory = sim_store(asked.store);
    if (!asked.factory)
        return usage("--store");
    return run(&asked);
}
