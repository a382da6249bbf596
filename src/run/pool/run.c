/* The threads that run jobs, and completing one from elsewhere. */
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "run/pool/pool.h"

void pool_unready(struct hf_pool *pool, struct hf_job *before, struct hf_job *job)
{
    if (before)
        before->next = job->next;
    else
        pool->ready.first = job->next;
    if (pool->ready.last == job)
        pool->ready.last = before;
    job->next = NULL;
    pool->ready.count--;
    job->kind->ready--;
    job->batch->unstarted--;
}

/* Jobs that are quick are claimed ahead, those that are slow are left to other workers. */
#define QUICK_MS 20
#define SLOW_MS 100

static void adapt(struct hf_pool *pool, const struct job_batch *batch)
{
    if (batch->unstarted > 0)
        return;
    hf_ms took = pool_now(pool) - batch->claimed_at;
    if (took < QUICK_MS) {
        size_t more = pool->ahead ? pool->ahead * 2 : pool->thread_max;
        pool->ahead = more < pool->batch_max ? more : pool->batch_max;
    } else if (took > SLOW_MS) {
        pool->ahead /= 2;
    }
}

static bool has_room(const struct pool_kind *kind)
{
    return kind->given.concurrency == 0 || kind->busy < kind->given.concurrency;
}

/* The first ready job whose kind has room. */
static struct hf_job *next_ready(struct hf_pool *pool)
{
    struct hf_job *before = NULL;
    for (struct hf_job *job = pool->ready.first; job; before = job, job = job->next) {
        if (!has_room(job->kind))
            continue;
        pool_unready(pool, before, job);
        adapt(pool, job->batch);
        return job;
    }
    return NULL;
}

/* One call at a time, or a few where many wait: a quick job is done before its caller has
 * come, and a wake-up costs more than such a job. */
void pool_call_worker(struct hf_pool *pool)
{
    if (pool->ready.count == 0 || pool->idle <= pool->waking ||
        pool->waking > pool->idle / 8)
        return;
    pool->waking++;
    hf_threads_wake(&pool->workers);
}

static void await_call(struct hf_pool *pool)
{
    pool->idle++;
    (void)hf_threads_sleep(&pool->workers, HF_NO_END);
    pool->idle--;
    pool->waking -= pool->waking > 0;
}

/* Wakes the thread that settles for the first end, for as many as it gathers, and when no other
 * job is to start: between them it gathers, and a wake-up for each would cost more than the job. */
static void tell_end(struct hf_pool *pool)
{
    size_t count = pool->ended.count;
    if (count == 1 || count == POOL_GATHERED || pool->ready.count == 0)
        hf_threads_wake(&pool->settler);
}

static void run_one(struct hf_pool *pool, struct hf_job *job)
{
    job->state = JOB_RUNNING;
    job->kind->busy++;
    pool->running++;
    pool->stats.started++;
    pool_tell_room(pool);
    pool_call_worker(pool);
    hf_unlock(&pool->lock);
    pool_tell(pool, (struct hf_pool_event){ .type = HF_POOL_STARTED,
                                            .work = &job->item->work });
    int verdict = job->kind->given.run(job->kind->given.user, job);
    hf_lock(&pool->lock);
    pool->running--;
    if (verdict != HF_JOB_LATER) {
        job_set_end(job, &(struct hf_job_end){ .verdict = verdict });
        pool_ended(pool, job);
    } else if (job->ended_early) {
        pool_ended(pool, job);
    } else {
        job->state = JOB_LATER;
        pool->later++;
    }
}

void *pool_worker_main(void *arg)
{
    struct hf_pool *pool = arg;
    hf_lock(&pool->lock);
    for (;;) {
        struct hf_job *job = next_ready(pool);
        if (job)
            run_one(pool, job);
        else if (pool->workers.stopping)
            break;
        else
            await_call(pool);
    }
    hf_unlock(&pool->lock);
    return NULL;
}

void pool_ended(struct hf_pool *pool, struct hf_job *job)
{
    bool blocked = !has_room(job->kind);
    job->kind->busy--;
    job->state = JOB_ENDED;
    pool_push(&pool->ended, job);
    tell_end(pool);
    if (blocked)
        hf_threads_wake_all(&pool->workers);
    pool_tell_room(pool);
    (void)pthread_cond_broadcast(&pool->for_idle);
}

/* ---- completing later ---------------------------------------------------------------- */

static struct hf_job *find_open(struct hf_pool *pool, const char *work_id)
{
    for (struct hf_job *job = pool->all; job; job = job->all_next)
        if ((job->state == JOB_LATER ||
             (job->state == JOB_RUNNING && !job->ended_early)) &&
            hf_same(job->item->work.work_id, work_id))
            return job;
    return NULL;
}

/* With the lock. */
static int complete(struct hf_pool *pool, const char *work_id, const char *token,
                    const struct hf_job_end *end, struct hf_err *err)
{
    struct hf_job *job = find_open(pool, work_id);
    if (!job)
        return hf_fail(err, HF_ENOTFOUND, "work_id",
                       "this pool has no job %s that is to be completed", work_id);
    if (!hf_same(job->item->token, token))
        return hf_fail(err, HF_ELEASELOST, "token", "the token is not this job's");
    job_set_end(job, end);
    if (job->state == JOB_RUNNING) {
        job->ended_early = true;
        return 0;
    }
    pool->later--;
    pool_ended(pool, job);
    return 0;
}

int hf_pool_complete(struct hf_pool *pool, const char *work_id, const char *token,
                     const struct hf_job_end *given, struct hf_err *err)
{
    struct hf_job_end end;
    int rc = hf_sized_copy(given, sizeof end, sizeof end, &end, err);
    if (rc == 0 && end.verdict == HF_JOB_LATER)
        rc = hf_fail(err, HF_EINVAL, "verdict", "a job is completed only once");
    if (rc == 0 && (!work_id || !token))
        rc = hf_fail(err, HF_EINVAL, work_id ? "token" : "work_id",
                     "a job is named by its id and its token");
    if (rc == 0)
        rc = hf_sized_array(end.evidence, end.evidence_count, "evidence", err);
    if (rc)
        return rc;
    hf_lock(&pool->lock);
    rc = complete(pool, work_id, token, &end, err);
    hf_unlock(&pool->lock);
    return rc;
}
