/* Jobs that do nothing, run by a pool: what the pool costs beside the ledger's own figures. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <holdfast/job.h>

#include "cli/bench.h"

#define A_CALL 100
#define POOL_THREADS 4

struct counting {
    atomic_size_t ran;
};

static int nothing(void *user, struct hf_job *job)
{
    struct counting *counting = user;
    (void)job;
    (void)atomic_fetch_add(&counting->ran, 1);
    return HF_JOB_DONE;
}

struct making {
    struct hf_store *store;
    size_t first, count, a_call;
    int rc;
    struct hf_err err;
    pthread_t thread;
};

static void *make_jobs(void *arg)
{
    struct making *m = arg;
    struct hf_new news[A_CALL];
    char ids[A_CALL][64];
    for (size_t i = 0; m->rc == 0 && i < m->count; i += m->a_call) {
        struct hf_answer *answer;
        for (size_t k = 0; k < m->a_call; k++)
            news[k] = bench_job(ids[k], "j", m->first + i + k);
        m->rc = hf_work_create(m->store, NULL, news, m->a_call, HF_BRIEF, &answer,
                               &m->err);
        if (m->rc == 0)
            hf_answer_free(answer);
    }
    return NULL;
}

static int start_pool(struct bench *bench, struct hf_store *store,
                      struct counting *counting, struct hf_pool **ret_pool)
{
    struct hf_pool_options options = { .size = sizeof options, .threads = POOL_THREADS };
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "bench", .run = nothing, .user = counting
    };
    struct hf_pool *pool;
    int rc = hf_pool_new(store, &options, &pool, bench->err);
    if (rc)
        return rc;
    rc = hf_pool_add(pool, &kind, bench->err);
    if (rc == 0)
        rc = hf_pool_start(pool, bench->err);
    if (rc)
        hf_pool_free(pool);
    else
        *ret_pool = pool;
    return rc;
}

/* Until so many are settled. */
static int await_done(struct bench *bench, struct hf_store *store, struct hf_pool *pool,
                      size_t jobs)
{
    int rc = 0;
    for (;;) {
        struct hf_pool_stats stats;
        hf_pool_stats(pool, &stats);
        if (rc || stats.done >= (int64_t)jobs)
            return rc;
        rc = hf_work_await(store, 2, bench->err);
    }
}

int bench_pool_process(struct bench *bench, double *ret_rate)
{
    struct hf_store *store;
    struct hf_pool *pool;
    struct counting counting = { 0 };
    int rc = bench_open(bench, "jobs.db", &store);
    if (rc)
        return rc;
    struct making making = { .store = store,
                             .count = bench->jobs / A_CALL * A_CALL,
                             .a_call = A_CALL };
    (void)make_jobs(&making);
    rc = making.rc;
    *bench->err = making.err;
    double start = bench_seconds();
    if (rc == 0)
        rc = start_pool(bench, store, &counting, &pool);
    if (rc == 0) {
        rc = await_done(bench, store, pool, making.count);
        *ret_rate = (double)making.count / (bench_seconds() - start);
        hf_pool_free(pool);
    }
    hf_store_close(store);
    if (rc == 0 && atomic_load(&counting.ran) != making.count)
        rc = hf_fail(bench->err, HF_EINTERNAL, NULL, "%zu runs of %zu jobs",
                     atomic_load(&counting.ran), making.count);
    return rc;
}

int bench_pool_e2e(struct bench *bench, size_t callers, double *ret_rate)
{
    struct hf_store *store;
    struct hf_pool *pool;
    struct making makers[64];
    struct counting counting = { 0 };
    size_t each = bench->jobs / callers, started = 0;
    int rc = bench_open(bench, "jobs.db", &store);
    if (rc)
        return rc;
    rc = start_pool(bench, store, &counting, &pool);
    double start = bench_seconds();
    for (; rc == 0 && started < callers; started++) {
        makers[started] = (struct making){
            .store = store, .first = started * each, .count = each, .a_call = 1
        };
        if (pthread_create(&makers[started].thread, NULL, make_jobs, &makers[started]))
            rc = hf_fail(bench->err, HF_ENOMEM, NULL, "no thread could be had");
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(makers[i].thread, NULL);
        if (makers[i].rc && rc == 0) {
            rc = makers[i].rc;
            *bench->err = makers[i].err;
        }
    }
    if (rc == 0)
        rc = await_done(bench, store, pool, each * callers);
    *ret_rate = (double)(each * callers) / (bench_seconds() - start);
    hf_pool_free(pool);
    hf_store_close(store);
    return rc;
}
