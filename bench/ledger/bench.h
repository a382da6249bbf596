/* The parts of holdfast-bench: each figure of the ledger next to the same work done by a raw
 * program, which is written for its engine in statements of 100 rows. Both are measured in
 * the same run.
 *
 * Every call returns 0 or a code with bench->err filled. Figures are never tests. */
#ifndef HF_BENCH_LEDGER_H
#define HF_BENCH_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include <holdfast/store.h>
#include <holdfast/work.h>

#define BENCH_CALLERS 16
#define BENCH_BATCH 100 /* rows of one statement, units of one call */
/* Commits of a lone caller before the clock starts, until the log of SQLite has its size. */
#define BENCH_WARM_UP 1000

/* Rows that the raw program puts and gets in turn, and the bytes of one. */
#define BENCH_ROWS 1000
#define BENCH_PUT 2048

/* Where ours and raw are stored: a file each, or a schema each. */
enum bench_place { BENCH_OURS, BENCH_LARGE, BENCH_RAW, BENCH_PLACES };

/* One measurement of ours and of raw, in the figure's unit. raw 0: there is none. */
struct bench_pair {
    double ours;
    double raw;
};

struct bench {
    bool postgres;
    char folder[256];              /* of the SQLite files; removed at the end */
    char url[BENCH_PLACES][512];   /* BENCH_RAW: for sqlite3_open, or for libpq */
    size_t jobs;                   /* of each measurement */
    size_t finished;               /* rows of the large table */
    struct bench_pair waiting_kib; /* memory that bench_claim_waiting has measured */
    void *guard;                   /* the connection that holds the lock of the schemas */
    struct hf_err err;
};

/* main.c */
bool bench_stopped(void);                      /* by a signal: long loops end */
double bench_seconds(void);                    /* monotonic */
double bench_median(double *values, size_t n); /* sorts them */
void bench_pause(double seconds);
/* Before a pick-up, ours and raw: the other side is idle and waits. A server's bell rings
 * at most every 5 ms. */
void bench_rest(const struct bench *bench);

/* ours.c: the ledger through the public library. */
int bench_open(struct bench *bench, enum bench_place place, struct hf_store **ret_store);
struct hf_work_spec bench_job(char id[64], const char *prefix, size_t i);
int bench_fill(struct bench *bench, struct hf_store *store, const char *prefix,
               size_t count, bool finished);
/* Claims up to 100 units and closes them out; each step in seconds where `took` is given. */
int bench_take(struct hf_store *store, size_t *ret_count, double took[2],
               struct hf_err *err);
int bench_create_one(struct bench *bench, struct bench_pair *ret);
int bench_create_many(struct bench *bench, struct bench_pair *ret);
int bench_process(struct bench *bench, struct bench_pair *ret);
int bench_end_to_end(struct bench *bench, struct bench_pair *ret);
int bench_kept(struct bench *bench, struct bench_pair *ret);
int bench_growth(struct bench *bench, struct bench_pair *ret);
/* Callers that have one create in flight each and wait in no thread of their own. */
struct bench_crowd;
int bench_crowd_start(struct bench *bench, struct hf_store *store, size_t callers,
                      size_t each, struct bench_crowd **ret_crowd);
bool bench_crowd_failed(struct bench_crowd *crowd);
int bench_crowd_end(struct bench *bench, struct bench_crowd *crowd); /* waits; frees */

/* pool.c: jobs that do nothing, run by a pool of four threads. */
struct hf_job;
struct hf_pool;
int bench_pool_start(struct hf_store *store, int (*run)(void *user, struct hf_job *job),
                     void *user, struct hf_pool **ret_pool, struct hf_err *err);
int bench_pool_process(struct bench *bench, struct bench_pair *ret);
int bench_pool_end_to_end(struct bench *bench, struct bench_pair *ret);

/* pickup.c: from the create in one process until another one has the unit, in
 * milliseconds; and from the kill of a holder until a waiting peer has its unit. */
int bench_pickup_claim(struct bench *bench, struct bench_pair *ret);
int bench_pickup_pool(struct bench *bench, struct bench_pair *ret);
int bench_reclaim(struct bench *bench, struct bench_pair *ret);

/* sessions.c: commits and steps of 2 KiB, heads, claims and renewals. */
int bench_commit_one(struct bench *bench, struct bench_pair *ret);
int bench_commit_many(struct bench *bench, struct bench_pair *ret);
int bench_step_one(struct bench *bench, struct bench_pair *ret);
int bench_step_many(struct bench *bench, struct bench_pair *ret);
int bench_commit_history(struct bench *bench, struct bench_pair *ret);
int bench_session_head(struct bench *bench, struct bench_pair *ret);
int bench_session_claim(struct bench *bench, struct bench_pair *ret);
int bench_session_renew(struct bench *bench, struct bench_pair *ret);

/* waits.c: answers to waits, and claims next to turns that wait. */
int bench_answer_one(struct bench *bench, struct bench_pair *ret);
int bench_answer_many(struct bench *bench, struct bench_pair *ret);
int bench_claim_waiting(struct bench *bench, struct bench_pair *ret);
int bench_claim_memory(struct bench *bench, struct bench_pair *ret); /* after it */

/* fill_pg.c: so many copies of the only session of the large store, whose turn waits. */
int bench_pg_copy_waiting(struct bench *bench, size_t count);

/* The raw program of each engine. Rates are jobs per second. */
struct bench_raw {
    /* `callers` with one row in flight each: one row per transaction, or a row of each. */
    int (*create)(struct bench *bench, size_t callers, double *ret_rate);
    /* Claim 100 and finish 100, of a full table; then the bytes kept per row. */
    int (*process)(struct bench *bench, double *ret_rate, double *ret_kept);
    /* Insert 100, claim 100, finish 100. */
    int (*end_to_end)(struct bench *bench, double *ret_rate);
    /* So many pick-ups, in milliseconds each; on SQLite the two syncs that one takes. */
    int (*pickup)(struct bench *bench, size_t count, double *took);
    /* A row of BENCH_PUT bytes is replaced if its fence is the caller's, one per transaction. */
    int (*put)(struct bench *bench, size_t callers, double *ret_rate);
    /* The revision, fence and owner of such a row are read by its key. */
    int (*get)(struct bench *bench, double *ret_rate);
};
extern const struct bench_raw bench_raw_lite, bench_raw_pg;
const struct bench_raw *bench_raw(const struct bench *bench);

/* raw_pg.c: what the program needs of a server beyond it. */
/* Makes the schemas this run's own until bench_pg_end. HF_EREADONLY: a privilege is missing;
 * HF_EBUSY: another run has them. */
int bench_pg_begin(struct bench *bench);
void bench_pg_end(struct bench *bench);
int bench_pg_drop(struct bench *bench, enum bench_place place);
int bench_pg_kept(struct bench *bench, enum bench_place place, double *ret_bytes);

#endif
