/* The thread that renews: all leases of the pool's owner by one call, every third of the
 * least term. Nothing more waits in it, so that a slow job or a slow commit stops no
 * heartbeat. A renewal that failed is tried again soon and changes no job's outcome; a job
 * whose lease must have lapsed meanwhile is told. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "run/pool/pool.h"

#define AGAIN_MS 250

/* A job that a renewal did not meet. */
struct missing {
    const char *work_id;
    const char *token;
    int64_t fence;
};

struct round {
    struct hf_pool *pool;
    struct hf_arena arena;
    uint64_t number;
    hf_ms at; /* when it was asked: what is renewed is good from here on */
    const struct hf_work **met; /* sorted by id */
    size_t met_count;
    struct missing *missing;
    size_t missing_count;
};

static bool held(const struct hf_job *job)
{
    return job->state != JOB_ENDED;
}

void pool_stop_job(struct hf_pool *pool, struct hf_job *job, enum hf_job_stop why)
{
    int go_on = HF_JOB_GO_ON;
    if (atomic_compare_exchange_strong(&job->stop, &go_on, why))
        (void)pthread_cond_broadcast(&pool->for_stop);
}

static int by_id(const void *a, const void *b)
{
    const struct hf_work *const *one = a;
    const struct hf_work *const *other = b;
    return memcmp((*one)->work_id, (*other)->work_id, HF_UUID_TEXT);
}

static int sort_met(struct round *r, const struct hf_answer *answer)
{
    r->met_count = hf_answer_count(answer);
    r->met = hf_arena_array(&r->arena, r->met_count, sizeof(const struct hf_work *));
    if (!r->met)
        return HF_ENOMEM;
    for (size_t i = 0; i < r->met_count; i++)
        r->met[i] = &hf_answer_at(answer, i)->work;
    if (r->met_count > 0)
        qsort(r->met, r->met_count, sizeof(const struct hf_work *), by_id);
    return 0;
}

static const struct hf_work *met(const struct round *r, const struct hf_work *work)
{
    if (r->met_count == 0)
        return NULL;
    const struct hf_work *const *at = bsearch(&work, r->met, r->met_count,
                                              sizeof(const struct hf_work *), by_id);
    return at ? *at : NULL;
}

static int note_missing(struct round *r, const struct hf_job *job)
{
    struct missing *one = &r->missing[r->missing_count];
    one->work_id = hf_arena_text(&r->arena, job->item->work.work_id);
    one->token = hf_arena_text(&r->arena, job->item->token);
    one->fence = job->item->work.lease_fence;
    if (!one->work_id || !one->token)
        return HF_ENOMEM;
    r->missing_count++;
    return 0;
}

/* The answer of the renewal about each job that it should have met. With the lock. */
static int compare(struct round *r)
{
    struct hf_pool *pool = r->pool;
    r->missing = hf_arena_array(&r->arena, pool->in_flight, sizeof *r->missing);
    int rc = r->missing ? 0 : HF_ENOMEM;
    for (struct hf_job *job = pool->all; rc == 0 && job; job = job->all_next) {
        if (!held(job) || job->asked != r->number)
            continue;
        const struct hf_work *now = met(r, &job->item->work);
        if (!now || now->lease_fence != job->item->work.lease_fence) {
            rc = note_missing(r, job);
            continue;
        }
        job->good_until = r->at + now->lease_ttl_ms;
        pool->stats.renewals++;
        if (now->cancel_request)
            pool_stop_job(pool, job, HF_JOB_CANCELLED);
    }
    return rc;
}

/* A job that was not met may just have been skipped, or its row is another process's. */
static int look_at(struct round *r, const struct missing *one, enum hf_job_stop *ret_why,
                   struct hf_err *err)
{
    struct hf_answer *answer = NULL;
    int rc = hf_work_get(r->pool->store, &r->pool->who, one->work_id, &answer, err);
    if (rc && rc != HF_ENOTFOUND)
        return rc;
    *ret_why = HF_JOB_LOST;
    if (rc == 0) {
        const struct hf_work *now = &hf_answer_at(answer, 0)->work;
        enum hf_status status = hf_status_of(now->status);
        if (status == HF_STATUS_RUNNING && now->lease_fence == one->fence &&
            now->lease_remaining_ms > 0)
            *ret_why = HF_JOB_GO_ON;
        else if (status == HF_STATUS_CANCELLED)
            *ret_why = HF_JOB_CANCELLED;
        hf_answer_free(answer);
    }
    return 0;
}

static void stop_missing(struct round *r, const struct missing *one, enum hf_job_stop why)
{
    struct hf_pool *pool = r->pool;
    hf_lock(&pool->lock);
    for (struct hf_job *job = pool->all; job; job = job->all_next)
        if (held(job) && hf_same(job->item->token, one->token) &&
            hf_same(job->item->work.work_id, one->work_id))
            pool_stop_job(pool, job, why);
    hf_unlock(&pool->lock);
}

static int judge_missing(struct round *r, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->missing_count; i++) {
        enum hf_job_stop why = HF_JOB_GO_ON;
        rc = look_at(r, &r->missing[i], &why, err);
        if (rc == 0 && why != HF_JOB_GO_ON)
            stop_missing(r, &r->missing[i], why);
    }
    return rc;
}

/* No process has answered for a whole term: others may have acted. With the lock. */
static void stop_lapsed(struct hf_pool *pool)
{
    hf_ms now = pool_now(pool);
    for (struct hf_job *job = pool->all; job; job = job->all_next)
        if (held(job) && now >= job->good_until)
            pool_stop_job(pool, job, HF_JOB_LOST);
}

static int renew(struct round *r, struct hf_err *err)
{
    struct hf_pool *pool = r->pool;
    struct hf_renew_all wanted = { .size = sizeof wanted,
                                   .owner = pool->owner,
                                   .incarnation = hf_store_incarnation(pool->store) };
    struct hf_answer *answer = NULL;
    int rc = hf_work_renew_all(pool->store, &pool->who, &wanted, &answer, err);
    if (rc)
        return rc;
    rc = sort_met(r, answer);
    hf_lock(&pool->lock);
    if (rc == 0)
        rc = compare(r);
    hf_unlock(&pool->lock);
    if (rc)
        rc = hf_fail_plain(err, rc);
    else
        rc = judge_missing(r, err);
    hf_answer_free(answer);
    return rc;
}

/* With the lock, which is given up meanwhile. */
static int beat(struct hf_pool *pool)
{
    struct round r = { .pool = pool, .number = ++pool->beats, .at = pool_now(pool) };
    struct hf_err err = { 0 };
    for (struct hf_job *job = pool->all; job; job = job->all_next)
        job->asked = r.number;
    hf_unlock(&pool->lock);
    hf_arena_init(&r.arena, pool->store->alloc);
    int rc = renew(&r, &err);
    hf_arena_fini(&r.arena);
    if (rc)
        pool_tell_error(pool, &err);
    hf_lock(&pool->lock);
    if (rc)
        stop_lapsed(pool);
    return rc;
}

/* A third of the least term of the leases that are held now. With the lock. */
static hf_ms least_third(const struct hf_pool *pool)
{
    hf_ms every = 0;
    for (const struct hf_job *job = pool->all; job; job = job->all_next) {
        hf_ms third = job->item->work.lease_ttl_ms / 3;
        if (every == 0 || third < every)
            every = third;
    }
    return every;
}

void *pool_beat_main(void *arg)
{
    struct hf_pool *pool = arg;
    hf_lock(&pool->lock);
    hf_ms last = pool_now(pool);
    int rc = 0;
    while (!pool->renewer.stopping) {
        if (pool->in_flight == 0) {
            pool->beat_every = 0;
            (void)hf_threads_sleep(&pool->renewer, HF_NO_END);
            last = pool_now(pool); /* the first lease is as old as this wake-up */
            continue;
        }
        hf_ms wait = last + (rc ? AGAIN_MS : pool->beat_every) - pool_now(pool);
        if (wait > 0 && hf_threads_sleep(&pool->renewer, wait))
            continue; /* a lease with a shorter term, or the end */
        last = pool_now(pool);
        rc = beat(pool);
        pool->beat_every = least_third(pool);
    }
    hf_unlock(&pool->lock);
    return NULL;
}
