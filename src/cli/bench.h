/* The parts of `holdfast bench ledger`. Figures are programs' figures, never tests: they are
 * printed beside the raw limit of the engine, measured in the same run. */
#ifndef HF_CLI_BENCH_H
#define HF_CLI_BENCH_H

#include "cli/cli.h"

/* Commits of a lone caller before the clock starts, ours and raw: until the log has its size,
 * and is written in place, as it is from then on. */
#define BENCH_WARM_UP 1000
#define BENCH_IDLE_NS 2000000 /* between two pick-ups from a file, or pairs of syncs */
#define BENCH_PG_IDLE_NS 10000000 /* between two pick-ups from a server, ours and raw */

struct bench {
    struct cli *cli;
    char folder[256];    /* scratch; removed at the end */
    const char *url;     /* of PostgreSQL, in the scratch schema; NULL: SQLite files */
    const char *raw_url; /* the same for libpq */
    size_t jobs;
    bool jsonl;
    struct hf_err *err;
    double cpu_us;     /* of the last measurement of jobs: processor time a job */
    double wal_create; /* of the last bench_process on PostgreSQL: bytes of log a job */
    double wal_drain;
    double
        kept; /* of the last bench_process on SQLite: bytes of the file per finished job */
};

double bench_seconds(void);                       /* monotonic */
double bench_cpu_seconds(void);                   /* of this process */
int bench_by_value(const void *a, const void *b); /* doubles, for qsort */
void bench_path(const struct bench *bench, const char *name, char out[320]);

/* Pick-up by another process. */
struct bench_latency {
    double p50_ms;
    double p99_ms;
};

/* bench_raw.c: hand-written prepared statements on one narrow row per job, full sync. A
 * transaction is of `batch` jobs, by one statement. */
struct bench_raw {
    double enqueue; /* jobs a second */
    double process;
    double e2e;
};
int bench_raw(struct bench *bench, size_t batch, struct bench_raw *ret_raw);
/* Median seconds of a 4 KiB write in place and its fdatasync. */
int bench_fsync(struct bench *bench, double *ret_seconds);
/* Two syncs, one after the other, each time after a pause, as a pick-up has them: so many,
 * milliseconds each. A disk that has rested takes twice as long as one that is kept busy. */
int bench_sync_pairs(struct bench *bench, size_t count, double *took);

/* bench_pg.c: the same on PostgreSQL. */
struct bench_pg_raw {
    double enqueue;    /* 16 connections, one a transaction */
    double process;    /* one connection, pipelined */
    double e2e;        /* in bulk and process, computed */
    double wal_create; /* bytes a job: inserted in bulk */
    double wal_drain;  /* claimed and finished */
};
int bench_pg_raw(struct bench *bench, struct bench_pg_raw *ret_raw);
/* In bulk, 100 a transaction, into a new table: pipelined, a prepared statement a row as
 * everywhere on the raw side, or all of them by one statement. */
int bench_pg_bulk(struct bench *bench, bool one_statement, double *ret_rate);
/* Drops the scratch schema. */
int bench_pg_scratch(struct bench *bench);
/* Where the server's log has come to. */
int bench_pg_wal(struct bench *bench, double *ret_bytes);
/* Raw pick-ups: so many, milliseconds each. What was begun is freed also after a failure. */
struct bench_pg_picker;
int bench_pg_picker_new(struct bench *bench, struct bench_pg_picker **ret_picker);
int bench_pg_pick(struct bench_pg_picker *picker, size_t count, double *took);
void bench_pg_picker_free(struct bench_pg_picker *picker);

/* bench_ledger.c: the same through the library. */
int bench_enqueue(struct bench *bench, size_t callers, size_t a_call, double *ret_rate);
int bench_process(struct bench *bench, double *ret_rate);
/* `workers` processes share the jobs of bench_process. */
int bench_workers(struct bench *bench, size_t workers, double *ret_rate);
int bench_submit(struct bench *bench, size_t callers, double *ret_rate);
int bench_e2e(struct bench *bench, size_t callers, double *ret_rate);

/* bench_jobs.c: jobs that do nothing, run by a pool of four threads; enqueued before, or by
 * `callers` meanwhile, who submit as those of bench_e2e do, or are threads that wait. With
 * `keys` above 0 the jobs are under so many limits. */
int bench_pool_process(struct bench *bench, size_t keys, double *ret_rate);
int bench_pool_e2e(struct bench *bench, size_t callers, size_t keys, bool threads,
                   double *ret_rate);
/* Median microseconds of a claim of 100 while jobs of so many fair keys wait. */
int bench_fair_claim(struct bench *bench, size_t keys, double *ret_us);

/* bench_more.c */
/* `ret_raw`, on PostgreSQL: the raw program's, measured in turn with ours. */
int bench_pickup(struct bench *bench, struct bench_latency *ret_latency,
                 struct bench_latency *ret_raw);
/* Medians of one claim of 100 rows and of its close-out. */
struct bench_cost {
    double claim_us;
    double close_us;
};
/* On an empty table; and beside `finished` finished, and a tenth of it each of future and
 * lane-blocked rows. */
int bench_growth(struct bench *bench, size_t finished, struct bench_cost *ret_empty,
                 struct bench_cost *ret_full);

/* Shared by the library's figures. */
int bench_open(struct bench *bench, const char *name, struct hf_store **ret_store);
struct hf_new bench_job(char id[64], const char *prefix, size_t i);

#endif
