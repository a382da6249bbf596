/* The thread that claims. Each claim has a nonce of its own, which is kept until an answer is
 * there: so a claim whose answer was lost is asked again, and takes nothing twice. */
#include <unistd.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "run/pool/pool.h"

/* How long a claim waits for work before it looks whether the pool drains. */
#define WAIT_MS 100
#define BACK_OFF_MS 250

/* Which kinds may be claimed now; all where "*" is there. No more jobs than the narrowest of
 * them has room for, since they may all be of that kind. With the lock. */
static void choose_kinds(struct hf_pool *pool)
{
    struct pool_claiming *c = &pool->claim;
    c->kind_count = 0;
    for (size_t i = 0; i < pool->kind_count && !pool->any; i++) {
        const struct pool_kind *kind = &pool->kinds[i];
        size_t most = kind->given.concurrency;
        size_t have = kind->busy + kind->ready;
        if (most > 0 && have >= most)
            continue;
        if (most > 0 && c->want > most - have)
            c->want = most - have;
        c->kinds[c->kind_count++] = kind->name;
    }
}

/* Large batches cost less a job: where jobs are claimed ahead, wait until half of them are
 * gone. */
static size_t room(const struct hf_pool *pool)
{
    size_t target = pool->thread_max + pool->ahead;
    size_t have = pool->running + pool->ready.count;
    size_t want = target > have ? target - have : 0;
    size_t free = pool->in_flight_max - pool->in_flight;
    if (pool->ready.count > 0 && want * 2 < target)
        return 0;
    want = want < pool->batch_max ? want : pool->batch_max;
    return want < free ? want : free;
}

/* Whether there is something to claim for, and what. With the lock. */
static bool wants_more(struct hf_pool *pool)
{
    pool->claim.want = room(pool);
    choose_kinds(pool);
    return pool->claim.want > 0 && (pool->any || pool->claim.kind_count > 0);
}

void pool_tell_room(struct hf_pool *pool)
{
    if (room(pool) > 0)
        hf_threads_wake(&pool->claimer);
}

static struct pool_kind *kind_of(struct hf_pool *pool, const char *name)
{
    for (size_t i = 0; i < pool->kind_count; i++)
        if (hf_same(pool->kinds[i].name, name))
            return &pool->kinds[i];
    return pool->any;
}

static void enter(struct hf_pool *pool, struct hf_job *job)
{
    job->all_next = pool->all;
    if (pool->all)
        pool->all->all_prev = job;
    pool->all = job;
    pool->in_flight++;
    pool->stats.claimed++;
    hf_ms every = job->item->work.lease_ttl_ms / 3;
    if (pool->beat_every == 0 || every < pool->beat_every) {
        pool->beat_every = every;
        hf_threads_wake(&pool->renewer);
    }
    job->kind->ready++;
    pool_push(&pool->ready, job);
}

/* What was claimed while the pool began to drain goes back. With the lock. */
static void hand_back_ready(struct hf_pool *pool)
{
    while (pool->ready.first) {
        struct hf_job *job = pool->ready.first;
        pool_unready(pool, NULL, job);
        job_set_end(job, &(struct hf_job_end){ .verdict = HF_JOB_HAND_BACK,
                                               .reason = "drained before it started" });
        job->kind->busy++; /* pool_ended takes it off */
        pool_ended(pool, job);
    }
}

/* Take over an answer; it is freed with the last of its jobs. */
static int take_in(struct hf_pool *pool, struct hf_answer *answer, struct hf_err *err)
{
    const struct hf_alloc *alloc = pool->store->alloc;
    size_t n = hf_answer_count(answer);
    size_t bytes = sizeof(struct job_batch) + n * sizeof(struct hf_job);
    struct job_batch *batch = alloc->realloc(alloc->user, NULL, bytes);
    if (!batch)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_job *jobs = (struct hf_job *)(void *)(batch + 1);
    hf_ms now = pool_now(pool);
    *batch = (struct job_batch){
        .answer = answer, .left = n, .unstarted = n, .claimed_at = now
    };
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        jobs[i] = (struct hf_job){ .pool = pool,
                                   .batch = batch,
                                   .item = item,
                                   .kind = kind_of(pool, item->work.kind),
                                   .good_until = now + item->work.lease_ttl_ms };
        pool_tell(pool,
                  (struct hf_pool_event){ .type = HF_POOL_CLAIMED, .work = &item->work });
    }
    hf_lock(&pool->lock);
    for (size_t i = 0; i < n; i++)
        enter(pool, &jobs[i]);
    if (pool->draining)
        hand_back_ready(pool);
    else
        pool_call_worker(pool);
    hf_unlock(&pool->lock);
    return 0;
}

/* The claim that is made next. */
static struct hf_claim request(const struct hf_pool *pool)
{
    const struct pool_claiming *c = &pool->claim;
    return (struct hf_claim){
        .size = sizeof(struct hf_claim),
        .owner = pool->owner,
        .nonce = c->nonce,
        .pid = (int)getpid(),
        .queue = pool->queue,
        .kinds = c->kinds,
        .kind_count = c->kind_count,
        .limit = c->want,
        .ttl_ms = pool->ttl_ms,
        .ttl_default_ms = HF_JOB_TTL_MS,
    };
}

/* The answer of a claim is there. A failure keeps the nonce. */
static int take_answer(struct hf_pool *pool, struct hf_answer *answer, struct hf_err *err)
{
    int rc = 0;
    bool some = hf_answer_count(answer) > 0;
    if (some)
        rc = take_in(pool, answer, err); /* which may be freed by now */
    if (rc || !some)
        hf_answer_free(answer);
    pool->claim.asked = rc != 0;
    return rc;
}

/* One claim. A failure keeps the nonce. */
static int claim_some(struct hf_pool *pool, hf_ms wait_ms, struct hf_err *err)
{
    struct pool_claiming *c = &pool->claim;
    int rc = c->asked ? 0 : hf_nonce(pool->store->random, c->nonce, err);
    struct hf_claim claim = request(pool);
    claim.wait_ms = c->asked ? 0 : wait_ms;
    struct hf_answer *answer = NULL;
    c->asked = true;
    if (rc == 0)
        rc = hf_work_claim(pool->store, &pool->who, &claim, &answer, err);
    return rc ? rc : take_answer(pool, answer, err);
}

/* With the lock, which is given up meanwhile. */
static int claim_out(struct hf_pool *pool, hf_ms wait_ms)
{
    struct hf_err err = { 0 };
    pool->stats.claims++;
    hf_unlock(&pool->lock);
    int rc = claim_some(pool, wait_ms, &err);
    if (rc)
        pool_tell_error(pool, &err);
    hf_lock(&pool->lock);
    return rc;
}

void *pool_claim_main(void *arg)
{
    struct hf_pool *pool = arg;
    const struct pool_claiming *c = &pool->claim;
    hf_lock(&pool->lock);
    while (!pool->draining || c->asked) {
        if (!c->asked && !wants_more(pool)) {
            (void)hf_threads_sleep(&pool->claimer, HF_NO_END);
            continue;
        }
        int rc = claim_out(pool, WAIT_MS);
        if (rc && pool->draining)
            break; /* what it may have taken lapses */
        if (rc)
            (void)hf_threads_sleep(&pool->claimer, BACK_OFF_MS);
    }
    hand_back_ready(pool);
    pool->claiming = false;
    (void)pthread_cond_broadcast(&pool->for_idle);
    hf_unlock(&pool->lock);
    return NULL;
}
