/* holdfast bench ledger: the ledger's speed beside the engine's own, in one run. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench.h"
#include "os/fileio.h"

struct figure {
    const char *work;
    double value;
    const char *unit;
    double raw; /* 0: none */
    const char *of;
};

/* One line a figure, as it comes: a table for people, or one JSON object. */
static int show_share(struct bench *bench, struct figure f, double share)
{
    struct cli *cli = bench->cli;
    int digits = f.value < 100 ? 2 : 0;
    if (bench->jsonl)
        cli_putf(cli,
                 "{\"store\":\"%s\",\"peer\":\"%s\",\"work\":\"%s\","
                 "\"value\":%.2f,\"unit\":\"%s\",\"raw\":%.2f,\"of_raw\":%.3f,"
                 "\"note\":\"%s\"}\n",
                 bench->url ? "pg" : "sqlite", bench->url ? "holdfast" : "holdfast FULL",
                 f.work, f.value, f.unit, f.raw, share, f.of);
    else if (f.raw > 0)
        cli_putf(cli, "%-34s %12.*f %-6s %5.0f %% of %.*f, %s\n", f.work, digits, f.value,
                 f.unit, share * 100, digits, f.raw, f.of);
    else
        cli_putf(cli, "%-34s %12.*f %-6s %s\n", f.work, digits, f.value, f.unit, f.of);
    return cli_flush(cli);
}

static int show(struct bench *bench, struct figure f)
{
    return show_share(bench, f, f.raw > 0 ? f.value / f.raw : 0);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof values[0], bench_by_value);
    return values[n / 2];
}

/* The machine's speed drifts within seconds. So raw and ours take turns, and a share is the
 * median of the rounds' own shares. */
#define ROUNDS 5

/* `f` has its name, unit and what it stands beside; the figures are filled in. */
static int show_rounds(struct bench *bench, struct figure f, const double *ours,
                       const double *raw)
{
    double values[ROUNDS], limits[ROUNDS], shares[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        values[i] = ours[i];
        limits[i] = raw[i];
        shares[i] = ours[i] / raw[i];
    }
    f.value = median(values, ROUNDS);
    f.raw = median(limits, ROUNDS);
    return show_share(bench, f, median(shares, ROUNDS));
}

static int enqueue_lone(struct bench *bench, double *ret_rate)
{
    return bench_enqueue(bench, 1, 1, ret_rate);
}

static int enqueue_64_callers(struct bench *bench, double *ret_rate)
{
    return bench_submit(bench, 64, ret_rate);
}

static int enqueue_64_threads(struct bench *bench, double *ret_rate)
{
    return bench_enqueue(bench, 64, 1, ret_rate);
}

static int enqueue_bulk(struct bench *bench, double *ret_rate)
{
    return bench_enqueue(bench, 1, 100, ret_rate);
}

static int e2e_16_callers(struct bench *bench, double *ret_rate)
{
    return bench_e2e(bench, 16, ret_rate);
}

/* Raw of one job per transaction, or of 100 by one statement. */
#define RAW_ONE 1
#define RAW_MANY 100

static const struct rate {
    const char *work;
    int (*run)(struct bench *bench, double *ret_rate);
    size_t raw_batch;
    size_t part; /* of struct bench_raw */
    const char *of;
} rates[] = {
    { "enqueue", enqueue_lone, RAW_ONE, offsetof(struct bench_raw, enqueue),
      "raw, one per transaction" },
    { "enqueue, 64 callers", enqueue_64_callers, RAW_MANY,
      offsetof(struct bench_raw, enqueue), "raw, 100 per statement" },
    { "enqueue, 64 threads", enqueue_64_threads, RAW_MANY,
      offsetof(struct bench_raw, enqueue), "raw, 100 per statement" },
    { "enqueue bulk", enqueue_bulk, RAW_MANY, offsetof(struct bench_raw, enqueue),
      "raw, 100 per statement" },
    { "process", bench_process, RAW_MANY, offsetof(struct bench_raw, process),
      "raw, 100 per statement" },
    { "e2e", e2e_16_callers, RAW_MANY, offsetof(struct bench_raw, e2e),
      "raw, 100 per statement; 16 callers" },
};
#define RATES (sizeof rates / sizeof rates[0])

static int measure(struct bench *bench, const struct rate *rate, double *ret_ours,
                   double *ret_raw)
{
    struct bench_raw raw = { 0 };
    int rc = bench_raw(bench, rate->raw_batch, &raw);
    memcpy(ret_raw, (const char *)&raw + rate->part, sizeof *ret_raw);
    return rc ? rc : rate->run(bench, ret_ours);
}

static int bench_rates(struct bench *bench)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < RATES; i++) {
        double ours[ROUNDS], raw[ROUNDS];
        cli_note(bench->cli, "%s: %d rounds of the engine itself and ours", rates[i].work,
                 ROUNDS);
        for (size_t round = 0; rc == 0 && round < ROUNDS; round++)
            rc = measure(bench, &rates[i], &ours[round], &raw[round]);
        if (rc == 0)
            rc = show_rounds(bench,
                             (struct figure){ .work = rates[i].work,
                                              .unit = "ops/s",
                                              .of = rates[i].of },
                             ours, raw);
    }
    return rc;
}

static int show_kept(struct bench *bench)
{
    return show(bench, (struct figure){ "kept per finished job", bench->kept, "B", 0,
                                        "of the file, with indexes and free space" });
}

static int bench_latencies(struct bench *bench)
{
    double sync = 0;
    struct bench_latency latency = { 0 }, raw = { 0 };
    int rc = bench_fsync(bench, &sync);
    if (rc == 0)
        rc = bench_pickup(bench, &latency, &raw);
    if (rc == 0)
        rc = show(bench, (struct figure){ "fdatasync", sync * 1e3, "ms", 0,
                                          "4 KiB in place, without rest, median" });
    if (rc == 0)
        rc = show(bench, (struct figure){ "latency p50", latency.p50_ms, "ms", raw.p50_ms,
                                          "two fdatasync, as idle" });
    if (rc == 0)
        rc = show(bench, (struct figure){ "latency p99", latency.p99_ms, "ms", raw.p99_ms,
                                          "two fdatasync, as idle" });
    return rc;
}

static int bench_large(struct bench *bench, size_t finished)
{
    struct bench_cost empty = { 0 }, full = { 0 };
    cli_note(bench->cli, "filling a table with %zu finished rows", finished);
    int rc = bench_growth(bench, finished, &empty, &full);
    if (rc == 0)
        rc = show(bench, (struct figure){ "claim of 100, large table", full.claim_us,
                                          "us", empty.claim_us, "an empty table" });
    if (rc == 0)
        rc = show(bench, (struct figure){ "close-out of 100, large table", full.close_us,
                                          "us", empty.close_us, "an empty table" });
    return rc;
}

/* 500 a call, as the peers of the reference were measured; and as few as raw has. */
static int bench_postgres_bulk(struct bench *bench)
{
    double rows[ROUNDS], best[ROUNDS], many[ROUNDS], few[ROUNDS];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ROUNDS; i++) {
        rc = bench_pg_bulk(bench, false, &rows[i]);
        if (rc == 0)
            rc = bench_enqueue(bench, 1, 500, &many[i]);
        if (rc == 0)
            rc = bench_pg_bulk(bench, true, &best[i]);
        if (rc == 0)
            rc = bench_enqueue(bench, 1, 100, &few[i]);
    }
    static const char of_rows[] = "raw, 100 inserts a transaction, pipelined";
    if (rc == 0)
        rc = show_rounds(bench, (struct figure){ "enqueue bulk", 0, "ops/s", 0, of_rows },
                         many, rows);
    if (rc == 0)
        rc = show_rounds(
            bench, (struct figure){ "enqueue bulk, 100 a call", 0, "ops/s", 0, of_rows },
            few, rows);
    if (rc == 0)
        rc = show_rounds(bench,
                         (struct figure){ "enqueue bulk, best raw", 0, "ops/s", 0,
                                          "raw, 100 rows by one statement" },
                         many, best);
    return rc;
}

static int show_wal(struct bench *bench, const struct bench_pg_raw *raw)
{
    int rc = show(bench, (struct figure){ "WAL bytes a job, creation", bench->wal_create,
                                          "B", raw->wal_create, "raw: inserted" });
    if (rc == 0)
        rc = show(bench, (struct figure){ "WAL bytes a job, drain", bench->wal_drain, "B",
                                          raw->wal_drain, "raw: claimed and finished" });
    if (rc == 0)
        rc = show(bench, (struct figure){ "WAL bytes a job",
                                          bench->wal_create + bench->wal_drain, "B",
                                          raw->wal_create + raw->wal_drain,
                                          "raw: inserted, claimed and finished" });
    return rc;
}

/* Also in turn. */
static int bench_postgres_pickup(struct bench *bench)
{
    struct bench_latency ours = { 0 }, raw = { 0 };
    int rc = bench_pickup(bench, &ours, &raw);
    if (rc == 0)
        rc = show(bench, (struct figure){ "latency p50", ours.p50_ms, "ms", raw.p50_ms,
                                          "raw: insert, notify, claim" });
    if (rc == 0)
        rc = show(bench,
                  (struct figure){ "latency p99", ours.p99_ms, "ms", raw.p99_ms, "raw" });
    return rc;
}

/* On PostgreSQL, with its own raw limits. */
static int bench_postgres(struct bench *bench)
{
    struct bench_pg_raw raw = { 0 };
    double rate = 0, one = 0;
    cli_note(bench->cli, "measuring the engine itself");
    int rc = bench_pg_raw(bench, &raw);
    if (rc == 0)
        rc = bench_enqueue(bench, 16, 1, &rate);
    if (rc == 0)
        rc = show(bench,
                  (struct figure){ "enqueue, 16 callers", rate, "ops/s", raw.enqueue,
                                   "raw, 16 connections, one a transaction" });
    if (rc == 0)
        rc = bench_postgres_bulk(bench);
    if (rc == 0)
        rc = bench_process(bench, &one);
    if (rc == 0)
        rc = show(bench, (struct figure){ "process", one, "ops/s", raw.process,
                                          "raw, pipelined, 100 a transaction" });
    if (rc == 0)
        rc = show_wal(bench, &raw);
    if (rc == 0)
        rc = bench_e2e(bench, 16, &rate);
    if (rc == 0)
        rc = show(bench, (struct figure){ "e2e", rate, "ops/s", raw.e2e,
                                          "raw batched, computed; 16 callers" });
    if (rc == 0)
        rc = bench_workers(bench, 8, &rate);
    if (rc == 0)
        rc = show(bench, (struct figure){ "process, 8 processes", rate, "ops/s", one,
                                          "one process" });
    return rc ? rc : bench_postgres_pickup(bench);
}

/* The address with the scratch schema in it. */
static const char *scratch_url(struct cli *cli, const char *url)
{
    struct hf_buf out;
    hf_buf_init(&out, hf_alloc_system(), 300);
    hf_buf_text(&out, url);
    hf_buf_text(&out, strchr(url, '?') ? "&" : "?");
    hf_buf_text(&out, "schema=holdfast_bench");
    return hf_buf_keep(&out, &cli->arena);
}

static void end(struct bench *bench)
{
    struct hf_err why = *bench->err; /* the first failure is the one to tell */
    if (bench->url)
        (void)bench_pg_scratch(bench);
    else
        (void)hf_folder_remove(bench->folder); /* a scratch folder */
    *bench->err = why;
}

static int begin(struct cli *cli, bool postgres, struct bench *ret_bench)
{
    const char *base = cli_text(cli, "folder");
    struct bench bench = { .cli = cli,
                           .jobs = (size_t)cli_number(cli, "jobs", 20000),
                           .jsonl = cli_given(cli, "jsonl"),
                           .err = &cli->err };
    if (postgres) {
        bench.raw_url = cli_text(cli, "db");
        bench.url = scratch_url(cli, bench.raw_url);
        *ret_bench = bench;
        return bench.url ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
    }
    if (!base)
        base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    (void)snprintf(bench.folder, sizeof bench.folder, "%.200s/holdfast-bench-XXXXXX",
                   base);
    if (!mkdtemp(bench.folder))
        return hf_fail(&cli->err, HF_EINVAL, "folder",
                       "no scratch folder can be made in %s", base);
    *ret_bench = bench;
    return 0;
}

static int cmd_bench_ledger(struct cli *cli)
{
    struct bench bench;
    int64_t growth = cli_number(cli, "growth", 0);
    const char *db = cli_text(cli, "db");
    int rc = begin(cli, db && strncmp(db, "postgres", 8) == 0, &bench);
    if (rc)
        return rc;
    rc = bench.url ? bench_postgres(&bench) : bench_rates(&bench);
    if (rc == 0 && !bench.url)
        rc = show_kept(&bench);
    if (rc == 0 && !bench.url)
        rc = bench_latencies(&bench);
    if (rc == 0 && growth)
        rc = bench_large(&bench, (size_t)growth);
    end(&bench);
    return rc;
}

#define LIMIT_KEYS 100
#define FAIR_KEYS 10000

/* What takes turns, each round, and what of it is told: the share of another. */
enum { RAW, LEDGER, POOL, WAITING, LIMITED, TURNS };

struct turns {
    double rate[TURNS][ROUNDS];
    double cpu_us[TURNS][ROUNDS];
};

static const struct told {
    const char *process, *e2e;
    int what, beside;
    bool cpu;
    const char *of;
} told[] = {
    { "process, ledger", "e2e, ledger", LEDGER, RAW, false, "raw, 100 a transaction" },
    { "process, pool", "e2e, pool", POOL, RAW, false, "raw, 100 a transaction" },
    { NULL, "e2e, pool, threads wait", WAITING, RAW, false, "raw, 100 a transaction" },
    { "process, pool, 100 limits", "e2e, pool, 100 limits", LIMITED, POOL, false,
      "without limits" },
    { "process, pool, 100 limits, cpu", "e2e, pool, 100 limits, cpu", LIMITED, POOL, true,
      "without limits" }, /* on a busy machine the steadier figure */
};

static int take_turn(struct bench *bench, bool e2e, int what, double *ret_rate)
{
    struct bench_raw raw = { 0 };
    int rc = 0;
    switch (what) {
    case RAW:
        rc = bench_raw(bench, 100, &raw);
        *ret_rate = e2e ? raw.e2e : raw.process;
        return rc;
    case LEDGER:
        return e2e ? bench_e2e(bench, 16, ret_rate) : bench_process(bench, ret_rate);
    case WAITING: return e2e ? bench_pool_e2e(bench, 15, 0, true, ret_rate) : 0;
    default: break;
    }
    size_t keys = what == LIMITED ? LIMIT_KEYS : 0;
    return e2e ? bench_pool_e2e(bench, 15, keys, false, ret_rate)
               : bench_pool_process(bench, keys, ret_rate);
}

/* The pool beside the ledger it stands on, beside the raw engine; and with limits. */
static int bench_pool_rates(struct bench *bench, bool e2e)
{
    struct turns t = { 0 };
    int rc = 0;
    cli_note(bench->cli, "%s: %d rounds of the engine itself and ours",
             e2e ? "e2e" : "process", ROUNDS);
    for (size_t round = 0; rc == 0 && round < ROUNDS; round++)
        for (int what = 0; rc == 0 && what < TURNS; what++) {
            rc = take_turn(bench, e2e, what, &t.rate[what][round]);
            t.cpu_us[what][round] = bench->cpu_us;
        }
    for (size_t i = 0; rc == 0 && i < sizeof told / sizeof told[0]; i++) {
        const char *work = e2e ? told[i].e2e : told[i].process;
        double(*of)[ROUNDS] = told[i].cpu ? t.cpu_us : t.rate;
        if (work)
            rc = show_rounds(bench,
                             (struct figure){ .work = work,
                                              .unit = told[i].cpu ? "us/job" : "ops/s",
                                              .of = told[i].of },
                             of[told[i].what], of[told[i].beside]);
    }
    return rc;
}

static int bench_pool(struct bench *bench)
{
    double one = 0, many = 0;
    int rc = bench_pool_rates(bench, false);
    if (rc == 0)
        rc = bench_pool_rates(bench, true);
    if (rc == 0)
        rc = bench_fair_claim(bench, 1, &one);
    if (rc == 0)
        rc = bench_fair_claim(bench, FAIR_KEYS, &many);
    if (rc == 0)
        rc = show(bench, (struct figure){ "claim of 100, 10,000 fair keys", many, "us",
                                          one, "one fair key" });
    return rc;
}

static int cmd_bench_jobs(struct cli *cli)
{
    struct bench bench;
    int rc = begin(cli, false, &bench);
    if (rc)
        return rc;
    rc = bench_pool(&bench);
    end(&bench);
    return rc;
}

static const struct cli_option bench_options[] = {
    { "jsonl", NULL, CLI_FLAG, 0, .help = "print one JSON object a figure and line" },
    { "jobs", "N", CLI_INT, 0, .help = "jobs of each measurement (default: 20000)",
      .min = 1000, .max = 10000000 },
    { "growth", "N", CLI_INT, 0,
      .help =
          "also measure a claim beside N finished rows and a tenth of it each of future "
          "and lane-blocked rows",
      .min = 1000, .max = 100000000 },
    { "folder", "DIR", CLI_PATH, 0,
      .help = "where the scratch files are made (default: TMPDIR, else /tmp)" },
    { .name = NULL },
};

static const struct cli_example bench_examples[] = {
    { "all figures but the large table", "holdfast bench ledger" },
    { "the large table too", "holdfast bench ledger --growth 1000000" },
    { "on PostgreSQL, in a scratch schema",
      "holdfast --db postgres://host/db bench ledger" },
    { NULL, NULL },
};

static const struct cli_option jobs_options[] = {
    { "jsonl", NULL, CLI_FLAG, 0, .help = "print one JSON object a figure and line" },
    { "jobs", "N", CLI_INT, 0, .help = "jobs of each measurement (default: 20000)",
      .min = 1000, .max = 10000000 },
    { "folder", "DIR", CLI_PATH, 0,
      .help = "where the scratch files are made (default: TMPDIR, else /tmp)" },
    { .name = NULL },
};

static const struct cli_example jobs_examples[] = {
    { "all figures", "holdfast bench jobs" },
    { NULL, NULL },
};

const struct cli_command cli_bench_commands[] = {
    { "bench jobs", "measure a pool that runs jobs, beside the raw engine",
      "Jobs that do nothing, run by a pool of four threads, beside the ledger's own "
      "figures and the raw engine, in one run. Works in scratch files of its own.",
      jobs_options, jobs_examples, 0, NULL, "9", cmd_bench_jobs, NULL },
    { "bench ledger", "measure the ledger beside the raw engine, in one run",
      "Works in scratch files of its own, which it removes, or, with --db "
      "postgres://..., in "
      "the schema holdfast_bench, which it drops. Full sync and every "
      "transition "
      "logged on our side; the raw side writes one narrow row a job with hand-written "
      "prepared statements and full sync. Each figure stands beside its raw limit.",
      bench_options, bench_examples, 0, NULL, "9", cmd_bench_ledger, NULL },
    { .path = NULL },
};
