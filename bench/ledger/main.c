/* holdfast-bench: the speed of the ledger on this machine, as a share of what a raw program
 * written for the same engine reaches in the same run, next to the bar of each figure. */
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "bench.h"

#define ROUNDS_MAX 99

/* How a figure is held against its bar. */
enum rule {
    NO_BAR,
    SHARE_AT_LEAST, /* of raw */
    SHARE_AT_MOST,
    MORE_AT_MOST, /* beyond raw, in the figure's unit */
    AT_MOST       /* by itself */
};

struct bar {
    enum rule rule;
    double limit;
};

/* Bars and what raw is: on SQLite, on PostgreSQL. */
static const struct figure {
    const char *group;
    const char *name;
    const char *unit;
    bool once; /* measured in one round: it takes long, or does not vary */
    int (*measure)(struct bench *bench, struct bench_pair *ret);
    struct bar bars[2];
    const char *raw[2];
} figures[] = {
    { "create",
      "create, 1 caller",
      "/s",
      false,
      bench_create_one,
      { { SHARE_AT_LEAST, 0.60 }, { NO_BAR, 0 } },
      { "one row per transaction", "one row per transaction" } },
    { "create",
      "create, 16 callers",
      "/s",
      false,
      bench_create_many,
      { { NO_BAR, 0 }, { SHARE_AT_LEAST, 0.60 } },
      { "16 rows per statement", "16 connections, one row per transaction" } },
    { "process",
      "process",
      "/s",
      false,
      bench_process,
      { { SHARE_AT_LEAST, 0.17 }, { SHARE_AT_LEAST, 0.20 } },
      { "100 rows per statement", "100 rows per statement, pipelined" } },
    { "process",
      "process, pool",
      "/s",
      false,
      bench_pool_process,
      { { NO_BAR, 0 }, { NO_BAR, 0 } },
      { "100 rows per statement", "100 rows per statement, pipelined" } },
    { "e2e",
      "end to end, 16 callers",
      "/s",
      false,
      bench_end_to_end,
      { { SHARE_AT_LEAST, 0.12 }, { SHARE_AT_LEAST, 0.12 } },
      { "100 rows per statement", "100 rows per statement, producer and worker" } },
    { "e2e",
      "end to end, pool",
      "/s",
      false,
      bench_pool_end_to_end,
      { { NO_BAR, 0 }, { NO_BAR, 0 } },
      { "100 rows per statement", "100 rows per statement, producer and worker" } },
    { "pickup",
      "pick-up, pool",
      "ms",
      false,
      bench_pickup_pool,
      { { MORE_AT_MOST, 2 }, { SHARE_AT_MOST, 3 } },
      { "two syncs", "insert, notice, claim" } },
    { "pickup",
      "pick-up, waiting claim",
      "ms",
      false,
      bench_pickup_claim,
      { { NO_BAR, 0 }, { NO_BAR, 0 } },
      { "two syncs", "insert, notice, claim" } },
    { "reclaim",
      "kill to reclaim",
      "ms",
      false,
      bench_reclaim,
      { { AT_MOST, 50 }, { AT_MOST, 50 } },
      { "", "" } },
    { "kept",
      "kept per finished job",
      "B",
      true,
      bench_kept,
      { { NO_BAR, 0 }, { NO_BAR, 0 } },
      { "the file", "tables and indexes, after VACUUM FULL" } },
    { "growth",
      "claim of 100, large table",
      "us",
      true,
      bench_growth,
      { { SHARE_AT_MOST, 1.3 }, { SHARE_AT_MOST, 1.3 } },
      { "the same in an empty table", "the same in an empty table" } },
    { "sessions",
      "commit, 1 session",
      "/s",
      false,
      bench_commit_one,
      { { SHARE_AT_LEAST, 0.50 }, { NO_BAR, 0 } },
      { "one fenced row per transaction", "one fenced row per transaction" } },
    { "sessions",
      "commit, 16 sessions",
      "/s",
      false,
      bench_commit_many,
      { { SHARE_AT_LEAST, 2.00 }, { SHARE_AT_LEAST, 0.50 } },
      { "one fenced row per transaction", "16 connections, one fenced row each" } },
    { "steps",
      "step, 1 session",
      "/s",
      false,
      bench_step_one,
      { { SHARE_AT_LEAST, 0.40 }, { NO_BAR, 0 } },
      { "one fenced row per transaction", "one fenced row per transaction" } },
    { "steps",
      "step, 16 sessions",
      "/s",
      false,
      bench_step_many,
      { { NO_BAR, 0 }, { SHARE_AT_LEAST, 0.40 } },
      { "one fenced row per transaction", "16 connections, one fenced row each" } },
    { "sessions",
      "head of a session",
      "/s",
      false,
      bench_session_head,
      { { SHARE_AT_LEAST, 0.50 }, { SHARE_AT_LEAST, 0.50 } },
      { "get of one row", "get of one row" } },
    { "sessions",
      "commit on 10,000 nodes",
      "us",
      true,
      bench_commit_history,
      { { SHARE_AT_MOST, 1.2 }, { SHARE_AT_MOST, 1.2 } },
      { "the same on 10 nodes", "the same on 10 nodes" } },
    { "sessions",
      "claim, many idle sessions",
      "us",
      true,
      bench_session_claim,
      { { SHARE_AT_MOST, 1.3 }, { SHARE_AT_MOST, 1.3 } },
      { "the same without idle ones", "the same without idle ones" } },
    { "waits",
      "answer, 1 caller",
      "/s",
      false,
      bench_answer_one,
      { { SHARE_AT_LEAST, 0.40 }, { NO_BAR, 0 } },
      { "one fenced row per transaction", "one fenced row per transaction" } },
    { "waits",
      "answer, 16 callers",
      "/s",
      false,
      bench_answer_many,
      { { NO_BAR, 0 }, { SHARE_AT_LEAST, 0.40 } },
      { "one fenced row per transaction", "16 connections, one fenced row each" } },
    { "waits",
      "claim, many waiting turns",
      "us",
      true,
      bench_claim_waiting,
      { { SHARE_AT_MOST, 1.3 }, { SHARE_AT_MOST, 1.3 } },
      { "the same without them", "the same without them" } },
    { "waits",
      "heap of 300 claims",
      "KB",
      true,
      bench_claim_memory,
      { { SHARE_AT_MOST, 1.3 }, { SHARE_AT_MOST, 1.3 } },
      { "the same without them", "the same without them" } },
    { "sessions",
      "renewal of 10,000",
      "ms",
      true,
      bench_session_renew,
      { { NO_BAR, 0 }, { NO_BAR, 0 } },
      { "", "" } },
};
#define FIGURES (sizeof figures / sizeof figures[0])

struct options {
    const char *db;
    const char *folder;
    size_t rounds;
    bool json;
    char *const *groups; /* NULL-terminated; none: all */
};

/* A signal ends the run after the round that is under way, so that what it made is removed. */
static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

bool bench_stopped(void)
{
    return stopped;
}

double bench_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void bench_pause(double seconds)
{
    struct timespec pause = { (time_t)seconds,
                              (long)((seconds - (double)(time_t)seconds) * 1e9) };
    (void)nanosleep(&pause, NULL);
}

void bench_rest(const struct bench *bench)
{
    bench_pause(bench->postgres ? 0.010 : 0.005);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof values[0], by_value);
    return values[n / 2];
}

/* ---- figures ---------------------------------------------------------------------------- */

static bool met(struct bar bar, double ours, double raw, double share)
{
    switch (bar.rule) {
    case SHARE_AT_LEAST: return share >= bar.limit;
    case SHARE_AT_MOST: return share <= bar.limit;
    case MORE_AT_MOST: return ours - raw <= bar.limit;
    case AT_MOST: return ours <= bar.limit;
    case NO_BAR: break;
    }
    return true;
}

static const char *bar_text(struct bar bar, char out[64])
{
    out[0] = '\0';
    switch (bar.rule) {
    case SHARE_AT_LEAST: (void)snprintf(out, 64, "at least %.2f", bar.limit); break;
    case SHARE_AT_MOST: (void)snprintf(out, 64, "at most %.1f", bar.limit); break;
    case MORE_AT_MOST: (void)snprintf(out, 64, "at most %.0f ms more", bar.limit); break;
    case AT_MOST: (void)snprintf(out, 64, "at most %.0f ms", bar.limit); break;
    case NO_BAR: break;
    }
    return out;
}

/* The figure's medians; `share` is the median of the rounds' shares, 0 where raw is none. */
static void show(const struct bench *bench, const struct figure *f, bool json,
                 struct bench_pair at, double share)
{
    char text[64];
    const struct bar bar = f->bars[bench->postgres];
    const char *said = bar.rule == NO_BAR                 ? ""
                       : met(bar, at.ours, at.raw, share) ? "met"
                                                          : "missed";
    (void)bar_text(bar, text);
    if (json)
        (void)printf("{\"engine\":\"%s\",\"figure\":\"%s\",\"unit\":\"%s\","
                     "\"ours\":%.3f,\"raw\":%.3f,\"share\":%.3f,\"raw_is\":\"%s\","
                     "\"bar\":\"%s\",\"verdict\":\"%s\"}\n",
                     bench->postgres ? "postgres" : "sqlite", f->name, f->unit, at.ours,
                     at.raw, share, f->raw[bench->postgres], text, said);
    else if (at.raw > 0)
        (void)printf("%-26s %10.*f %-2s %6.2f of %.*f %s%s%s%s%s\n", f->name,
                     at.ours < 100 ? 2 : 0, at.ours, f->unit, share, at.raw < 100 ? 2 : 0,
                     at.raw, f->raw[bench->postgres], *text ? "; bar: " : "", text,
                     *text ? ": " : "", said);
    else
        (void)printf("%-26s %10.2f %-2s%s%s%s%s\n", f->name, at.ours, f->unit,
                     *text ? " bar: " : "", text, *text ? ": " : "", said);
    (void)fflush(stdout);
}

/* The speed of a machine drifts within seconds: ours and raw take turns, and a share is the
 * median of the rounds' own shares. */
static int run_figure(struct bench *bench, const struct figure *f,
                      const struct options *options)
{
    double ours[ROUNDS_MAX], raw[ROUNDS_MAX], shares[ROUNDS_MAX];
    size_t rounds = f->once ? 1 : options->rounds;
    for (size_t i = 0; i < rounds; i++) {
        struct bench_pair pair = { 0 };
        int rc = f->measure(bench, &pair);
        if (stopped)
            rc = hf_fail(&bench->err, HF_EBUSY, NULL, "a signal has stopped the run");
        if (rc)
            return rc;
        ours[i] = pair.ours;
        raw[i] = pair.raw;
        shares[i] = pair.raw > 0 ? pair.ours / pair.raw : 0;
    }
    struct bench_pair at = { bench_median(ours, rounds), bench_median(raw, rounds) };
    show(bench, f, options->json, at, bench_median(shares, rounds));
    return 0;
}

static bool wanted(const struct options *options, const char *group)
{
    if (!options->groups[0])
        return true;
    for (size_t i = 0; options->groups[i]; i++)
        if (strcmp(options->groups[i], group) == 0)
            return true;
    return false;
}

static int run_all(struct bench *bench, const struct options *options)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < FIGURES; i++)
        if (wanted(options, figures[i].group))
            rc = run_figure(bench, &figures[i], options);
    return rc;
}

/* ---- the scratch places ------------------------------------------------------------------ */

static int begin_postgres(struct bench *bench, const char *db)
{
    static const char *const schemas[] = { "holdfast_bench", "holdfast_bench_large" };
    if (strlen(db) > 400 || strstr(db, "schema="))
        return hf_fail(&bench->err, HF_EINVAL, "db",
                       "an address of at most 400 characters, without schema=");
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(bench->url[i], sizeof bench->url[i], "%s%cschema=%s", db,
                       strchr(db, '?') ? '&' : '?', schemas[i]);
    (void)snprintf(bench->url[BENCH_RAW], sizeof bench->url[BENCH_RAW], "%s", db);
    return bench_pg_begin(bench);
}

static int begin_files(struct bench *bench, const char *base)
{
    static const char *const names[] = { "ledger.db", "large.db", "raw.db" };
    const char *tmp = getenv("TMPDIR");
    base = base ? base : tmp && *tmp ? tmp : "/tmp";
    (void)snprintf(bench->folder, sizeof bench->folder, "%.200s/holdfast-bench-XXXXXX",
                   base);
    if (!mkdtemp(bench->folder)) {
        bench->folder[0] = '\0';
        return hf_fail(&bench->err, HF_EINVAL, "folder",
                       "no scratch folder can be made in %s", base);
    }
    for (size_t i = 0; i < BENCH_PLACES; i++)
        (void)snprintf(bench->url[i], sizeof bench->url[i], "%s/%s", bench->folder,
                       names[i]);
    return 0;
}

static int remove_one(const char *path, const struct stat *at, int kind,
                      struct FTW *place)
{
    (void)at;
    (void)kind;
    (void)place;
    return remove(path);
}

static int end(struct bench *bench)
{
    int rc = 0;
    if (bench->postgres)
        for (int place = 0; rc == 0 && place < BENCH_PLACES; place++)
            rc = bench_pg_drop(bench, (enum bench_place)place);
    else if (bench->folder[0] && nftw(bench->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS))
        rc = hf_fail(&bench->err, HF_ESTOREIO, "folder", "%s cannot be removed",
                     bench->folder);
    return rc;
}

/* ---- the command line -------------------------------------------------------------------- */

static const char usage[] =
    "Usage: holdfast-bench [OPTION]... [GROUP]...\n"
    "Prints what the ledger reaches on this machine, as a share of a raw program that\n"
    "is written for the same engine and runs in turn with it, and the bar of each "
    "figure.\n"
    "Groups: create process e2e pickup reclaim kept growth sessions steps waits;\n"
    "without one, all.\n\n"
    "  --db URL        a PostgreSQL server (postgres://...), in the scratch schemas\n"
    "                  holdfast_bench, _large and _raw, which are dropped; without it,\n"
    "                  SQLite files\n"
    "  --folder DIR    where the scratch files are made (default: TMPDIR, or /tmp)\n"
    "  --jobs N        jobs of each measurement (default: 20000)\n"
    "  --rounds N      rounds of ours and raw in turn (default: 5, at most 99)\n"
    "  --finished N    finished rows of the large table (default: 1000000); idle\n"
    "                  sessions and waiting turns are a tenth of it\n"
    "  --json          one JSON object per figure and line\n"
    "  --help          this text\n\n"
    "Exit codes: 0 measured, whether bars are met or missed; otherwise as of holdfast.\n";

/* A multiple of 100 between 1,000 and 100,000,000; for rounds any number up to the most. */
static int read_count(struct bench *bench, const char *name, const char *text,
                      size_t least, size_t most, size_t *ret_count)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);
    if (*rest || rest == text || text[0] == '-' || value < least || value > most)
        return hf_fail(&bench->err, HF_EINVAL, name, "a number from %zu to %zu", least,
                       most);
    *ret_count = least == 1 ? value : value / BENCH_BATCH * BENCH_BATCH;
    return 0;
}

static int check_groups(struct bench *bench, char *const *groups)
{
    for (; *groups; groups++) {
        bool known = false;
        for (size_t i = 0; i < FIGURES; i++)
            known = known || strcmp(*groups, figures[i].group) == 0;
        if (!known)
            return hf_fail(&bench->err, HF_EINVAL, "GROUP",
                           "there is no group \"%s\" (see --help)", *groups);
    }
    return 0;
}

static int parse(int argc, char **argv, struct bench *bench, struct options *options)
{
    static const struct option names[] = {
        { "db", 1, NULL, 'd' },       { "folder", 1, NULL, 'f' },
        { "jobs", 1, NULL, 'j' },     { "rounds", 1, NULL, 'r' },
        { "finished", 1, NULL, 'n' }, { "json", 0, NULL, 'o' },
        { "help", 0, NULL, 'h' },     { NULL, 0, NULL, 0 }
    };
    int c, rc = 0;
    while (rc == 0 && (c = getopt_long(argc, argv, "h", names, NULL)) >= 0)
        switch (c) {
        case 'd': options->db = optarg; break;
        case 'f': options->folder = optarg; break;
        case 'j':
            rc = read_count(bench, "jobs", optarg, 1000, 10000000, &bench->jobs);
            break;
        case 'r':
            rc = read_count(bench, "rounds", optarg, 1, ROUNDS_MAX, &options->rounds);
            break;
        case 'n':
            rc = read_count(bench, "finished", optarg, 1000, 100000000, &bench->finished);
            break;
        case 'o': options->json = true; break;
        case 'h': (void)fputs(usage, stdout); exit(0);
        default: rc = hf_fail(&bench->err, HF_EINVAL, NULL, "see holdfast-bench --help");
        }
    options->groups = argv + optind;
    if (rc == 0 && options->db && strncmp(options->db, "postgres", 8) != 0)
        rc = hf_fail(&bench->err, HF_EINVAL, "db",
                     "must be postgres://...; SQLite files are made with --folder");
    return rc ? rc : check_groups(bench, options->groups);
}

static int run(int argc, char **argv, struct bench *bench)
{
    struct options options = { .rounds = 5 };
    int rc = parse(argc, argv, bench, &options);
    if (rc)
        return rc;
    bench->postgres = options.db != NULL;
    rc = bench->postgres ? begin_postgres(bench, options.db)
                         : begin_files(bench, options.folder);
    if (rc == 0) {
        rc = run_all(bench, &options);
        struct hf_err why = bench->err; /* the first failure is the one to tell */
        int ended = end(bench);
        rc = rc ? hf_fail_as(&bench->err, rc, &why) : ended;
    }
    bench_pg_end(bench);
    return rc;
}

int main(int argc, char **argv)
{
    struct bench bench = { .jobs = 20000, .finished = 1000000 };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, stop);
    (void)signal(SIGTERM, stop);
    int rc = run(argc, argv, &bench);
    if (rc)
        (void)fprintf(stderr, "holdfast-bench: %s%s%s (%s): %s\n", bench.err.field,
                      bench.err.field[0] ? ": " : "", bench.err.message, hf_err_wire(rc),
                      hf_err_action(rc));
    return hf_err_exit(rc);
}
