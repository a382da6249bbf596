/* Jobs that do nothing, run by a pool: what the pool costs beside the ledger's own figures. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <holdfast/job.h>
#include <holdfast/submit.h>

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

double bench_cpu_seconds(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

#define KEY_MAX_RUNNING 50

struct making {
    struct hf_store *store;
    size_t first, count, a_call;
    size_t limits; /* keys of limits, 0: none */
    size_t fairs;  /* fair keys, 0: none */
    int rc;
    struct hf_err err;
    pthread_t thread;
};

static void *make_jobs(void *arg)
{
    struct making *m = arg;
    struct hf_new news[A_CALL];
    char ids[A_CALL][64], keys[A_CALL][24];
    for (size_t i = 0; m->rc == 0 && i < m->count; i += m->a_call) {
        struct hf_answer *answer;
        for (size_t k = 0; k < m->a_call; k++) {
            size_t number = m->first + i + k;
            size_t among = m->limits ? m->limits : m->fairs ? m->fairs : 1;
            news[k] = bench_job(ids[k], "j", number);
            (void)snprintf(keys[k], sizeof keys[k], "k%zu", number % among);
            news[k].limit_key = m->limits ? keys[k] : NULL;
            news[k].fair_key = m->fairs ? keys[k] : NULL;
        }
        m->rc = hf_work_create(m->store, NULL, news, m->a_call, HF_BRIEF, &answer,
                               &m->err);
        if (m->rc == 0)
            hf_answer_free(answer);
    }
    return NULL;
}

static int set_limits(struct bench *bench, struct hf_store *store, size_t keys)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < keys; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "key:k%zu", i);
        struct hf_quota limit = { .size = sizeof limit,
                                  .name = name,
                                  .max_running = KEY_MAX_RUNNING };
        rc = hf_quota_set(store, NULL, &limit, bench->err);
    }
    return rc;
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

int bench_pool_process(struct bench *bench, size_t keys, double *ret_rate)
{
    struct hf_store *store;
    struct hf_pool *pool;
    struct counting counting = { 0 };
    int rc = bench_open(bench, "jobs.db", &store);
    if (rc)
        return rc;
    struct making making = { .store = store,
                             .count = bench->jobs / A_CALL * A_CALL,
                             .a_call = A_CALL,
                             .limits = keys };
    rc = set_limits(bench, store, keys);
    if (rc == 0) {
        (void)make_jobs(&making);
        rc = making.rc;
        *bench->err = making.err;
    }
    double start = bench_seconds(), cpu = bench_cpu_seconds();
    if (rc == 0)
        rc = start_pool(bench, store, &counting, &pool);
    if (rc == 0) {
        rc = await_done(bench, store, pool, making.count);
        *ret_rate = (double)making.count / (bench_seconds() - start);
        bench->cpu_us = (bench_cpu_seconds() - cpu) * 1e6 / (double)making.count;
        hf_pool_free(pool);
    }
    hf_store_close(store);
    if (rc == 0 && atomic_load(&counting.ran) != making.count)
        rc = hf_fail(bench->err, HF_EINTERNAL, NULL, "%zu runs of %zu jobs",
                     atomic_load(&counting.ran), making.count);
    return rc;
}

/* ---- callers who enqueue one job at a time, each when the one before is stored ---------- */

#define CALLERS_MAX 64

/* As threads that wait. */
static int make_by_threads(struct bench *bench, struct making *makers, size_t n)
{
    size_t started = 0;
    int rc = 0;
    while (rc == 0 && started < n) {
        struct making *maker = &makers[started];
        if (pthread_create(&maker->thread, NULL, make_jobs, maker))
            rc = hf_fail(bench->err, HF_ENOMEM, NULL, "no thread could be had");
        started += rc == 0;
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(makers[i].thread, NULL);
        if (makers[i].rc && rc == 0) {
            rc = makers[i].rc;
            *bench->err = makers[i].err;
        }
    }
    return rc;
}

/* Or as callers without a thread, like those of bench_e2e. */
struct crowd {
    struct hf_submitter *submitter;
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t busy; /* callers that are not through */
};

struct submitting {
    struct crowd *crowd;
    struct making *making;
    size_t next;
    char id[64], key[24];
    struct hf_new job;
};

static void submit_next(struct submitting *caller);

static void leave_crowd(struct submitting *caller, int rc, const struct hf_err *err)
{
    struct crowd *crowd = caller->crowd;
    if (rc) {
        caller->making->rc = rc;
        caller->making->err = *err;
    }
    (void)pthread_mutex_lock(&crowd->lock);
    crowd->busy--;
    (void)pthread_cond_signal(&crowd->over);
    (void)pthread_mutex_unlock(&crowd->lock);
}

static void submitted(void *user, const struct hf_submitted *outcome)
{
    struct submitting *caller = user;
    if (outcome->code == 0 && caller->next < caller->making->count)
        submit_next(caller);
    else
        leave_crowd(caller, outcome->code, outcome->err);
}

static void submit_next(struct submitting *caller)
{
    struct hf_err err;
    const struct making *m = caller->making;
    size_t number = m->first + caller->next++;
    caller->job = bench_job(caller->id, "j", number);
    (void)snprintf(caller->key, sizeof caller->key, "k%zu",
                   number % (m->limits ? m->limits : 1));
    caller->job.limit_key = m->limits ? caller->key : NULL;
    struct hf_operation operation = {
        .size = sizeof operation, .create = &caller->job, .n = 1, .flags = HF_BRIEF
    };
    int rc = hf_submit(caller->crowd->submitter, &operation, submitted, caller, &err);
    if (rc)
        leave_crowd(caller, rc, &err);
}

static int make_by_crowd(struct bench *bench, struct making *makers, size_t n)
{
    struct submitting callers[CALLERS_MAX];
    struct crowd crowd = { .busy = n,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .over = PTHREAD_COND_INITIALIZER };
    int rc = hf_submitter_open(makers[0].store, NULL, &crowd.submitter, bench->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        callers[i] = (struct submitting){ .crowd = &crowd, .making = &makers[i] };
        submit_next(&callers[i]);
    }
    (void)pthread_mutex_lock(&crowd.lock);
    while (crowd.busy > 0)
        (void)pthread_cond_wait(&crowd.over, &crowd.lock);
    (void)pthread_mutex_unlock(&crowd.lock);
    hf_submitter_close(crowd.submitter);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = makers[i].rc;
        *bench->err = makers[i].err;
    }
    return rc;
}

int bench_pool_e2e(struct bench *bench, size_t callers, size_t keys, bool threads,
                   double *ret_rate)
{
    struct hf_store *store;
    struct hf_pool *pool;
    struct making makers[CALLERS_MAX];
    struct counting counting = { 0 };
    size_t each = bench->jobs / callers;
    int rc = bench_open(bench, "jobs.db", &store);
    if (rc)
        return rc;
    rc = set_limits(bench, store, keys);
    if (rc == 0)
        rc = start_pool(bench, store, &counting, &pool);
    if (rc) {
        hf_store_close(store);
        return rc;
    }
    for (size_t i = 0; i < callers; i++)
        makers[i] = (struct making){
            .store = store, .first = i * each, .count = each, .a_call = 1, .limits = keys
        };
    double start = bench_seconds(), cpu = bench_cpu_seconds();
    rc = threads ? make_by_threads(bench, makers, callers)
                 : make_by_crowd(bench, makers, callers);
    if (rc == 0)
        rc = await_done(bench, store, pool, each * callers);
    *ret_rate = (double)(each * callers) / (bench_seconds() - start);
    bench->cpu_us = (bench_cpu_seconds() - cpu) * 1e6 / (double)(each * callers);
    hf_pool_free(pool);
    hf_store_close(store);
    return rc;
}

#define CLAIMS 50

int bench_fair_claim(struct bench *bench, size_t keys, double *ret_us)
{
    struct hf_store *store;
    double took[CLAIMS];
    int rc = bench_open(bench, "jobs.db", &store);
    if (rc)
        return rc;
    struct making making = {
        .store = store, .count = 20000, .a_call = A_CALL, .fairs = keys
    };
    (void)make_jobs(&making);
    rc = making.rc;
    *bench->err = making.err;
    for (size_t i = 0; rc == 0 && i < CLAIMS; i++) {
        struct hf_claim claim = {
            .size = sizeof claim, .owner = "bench", .limit = A_CALL, .ttl_ms = 600000
        };
        struct hf_answer *answer;
        double start = bench_seconds();
        rc = hf_work_claim(store, NULL, &claim, &answer, bench->err);
        took[i] = (bench_seconds() - start) * 1e6;
        if (rc == 0 && hf_answer_count(answer) != A_CALL)
            rc = hf_fail(bench->err, HF_EINTERNAL, NULL, "a claim took less than %d",
                         A_CALL);
        if (rc == 0)
            hf_answer_free(answer);
    }
    hf_store_close(store);
    if (rc)
        return rc;
    qsort(took, CLAIMS, sizeof took[0], bench_by_value);
    *ret_us = took[CLAIMS / 2];
    return 0;
}
