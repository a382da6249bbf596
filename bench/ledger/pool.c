/* Jobs that do nothing, run by a pool of four threads: what a pool costs. */
#include <holdfast/job.h>

#include "base/err.h"
#include "bench.h"

#define POOL_THREADS 4
#define PATIENCE_SECONDS 600
#define CHECK_SECONDS 0.002 /* between two looks at the pool's counters */

static int do_nothing(void *user, struct hf_job *job)
{
    (void)user;
    (void)job;
    return HF_JOB_DONE;
}

int bench_pool_start(struct hf_store *store, int (*run)(void *user, struct hf_job *job),
                     void *user, struct hf_pool **ret_pool, struct hf_err *err)
{
    struct hf_pool_options options = { .size = sizeof options, .threads = POOL_THREADS };
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "bench", .run = run, .user = user
    };
    struct hf_pool *pool;
    int rc = hf_pool_new(store, &options, &pool, err);
    if (rc)
        return rc;
    rc = hf_pool_add(pool, &kind, err);
    if (rc == 0)
        rc = hf_pool_start(pool, err);
    if (rc)
        hf_pool_free(pool);
    else
        *ret_pool = pool;
    return rc;
}

static int await_done(struct bench *bench, struct hf_pool *pool, size_t jobs)
{
    struct hf_pool_stats stats = { 0 };
    double end = bench_seconds() + PATIENCE_SECONDS;
    while (hf_pool_stats(pool, &stats), stats.done < (int64_t)jobs) {
        if (bench_seconds() > end)
            return hf_fail(&bench->err, HF_EINTERNAL, NULL,
                           "the pool has run %lld of %zu jobs after %d s",
                           (long long)stats.done, jobs, PATIENCE_SECONDS);
        bench_pause(CHECK_SECONDS);
    }
    return 0;
}

int bench_pool_process(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *store;
    struct hf_pool *pool;
    double raw_kept;
    int rc = bench_raw(bench)->process(bench, &ret->raw, &raw_kept);
    if (rc == 0)
        rc = bench_open(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    rc = bench_fill(bench, store, "p", bench->jobs, false);
    double start = bench_seconds();
    if (rc == 0)
        rc = bench_pool_start(store, do_nothing, NULL, &pool, &bench->err);
    if (rc == 0) {
        rc = await_done(bench, pool, bench->jobs);
        ret->ours = (double)bench->jobs / (bench_seconds() - start);
        hf_pool_free(pool);
    }
    hf_store_close(store);
    return rc;
}

int bench_pool_end_to_end(struct bench *bench, struct bench_pair *ret)
{
    struct bench_crowd *crowd;
    struct hf_store *store;
    struct hf_pool *pool;
    size_t callers = BENCH_CALLERS - 1, each = bench->jobs / callers;
    int rc = bench_raw(bench)->end_to_end(bench, &ret->raw);
    if (rc == 0)
        rc = bench_open(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    double start = bench_seconds();
    rc = bench_pool_start(store, do_nothing, NULL, &pool, &bench->err);
    if (rc == 0) {
        rc = bench_crowd_start(bench, store, callers, each, &crowd);
        if (rc == 0)
            rc = bench_crowd_end(bench, crowd);
        if (rc == 0)
            rc = await_done(bench, pool, each * callers);
        ret->ours = (double)(each * callers) / (bench_seconds() - start);
        hf_pool_free(pool);
    }
    hf_store_close(store);
    return rc;
}
