/* The thread that settles jobs that have ended, many in one transaction.
 *
 * A settle that failed is done again until it is answered: the token makes a repeat
 * harmless. Only when the pool is freed, an outcome may stay unrecorded; then the lease
 * lapses and the job runs again. */
#include "base/err.h"
#include "run/pool/pool.h"

#define BACK_OFF_MS 100
#define LAST_TRIES 3
#define SETTLE_MAX 256

struct settling {
    struct hf_pool *pool;
    struct hf_job *jobs[SETTLE_MAX];
    struct hf_change changes[SETTLE_MAX];
    size_t count;
};

struct settling *pool_settling_new(struct hf_pool *pool)
{
    const struct hf_alloc *alloc = pool->store->alloc;
    struct settling *s = alloc->realloc(alloc->user, NULL, sizeof *s);
    if (s)
        s->pool = pool;
    return s;
}

static bool waits(enum hf_status status)
{
    return status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL;
}

static void count_status(struct hf_pool_stats *stats, enum hf_status status)
{
    if (status == HF_STATUS_DONE)
        stats->done++;
    else if (status == HF_STATUS_FAILED || status == HF_STATUS_TIMEOUT)
        stats->failed++;
    else if (status == HF_STATUS_RETRY_SCHEDULED)
        stats->retried++;
    else if (status == HF_STATUS_QUEUED)
        stats->handed_back++;
    else if (status == HF_STATUS_CANCELLED)
        stats->cancelled++;
    else if (waits(status))
        stats->waiting++;
}

/* The row's close rule asks for what the job lacks. A person can add it: the row waits for
 * one, and says for what. */
static enum hf_status wait_for_person(struct hf_pool *pool, const struct hf_job *job,
                                      const struct hf_err *rule)
{
    struct hf_change wait = { .size = sizeof wait,
                              .verb = HF_VERB_WAIT,
                              .id = job->item->work.work_id,
                              .token = job->item->token,
                              .status = HF_STATUS_WAITING_USER,
                              .ref = job->item->work.work_id,
                              .reason = rule->message,
                              .escalate_after_ms = 1 }; /* it needs a person now */
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    int rc = hf_work_change(pool->store, &pool->who, &wait, 1, HF_ALL_OR_NONE, &answer,
                            &err);
    if (rc)
        pool_tell_error(pool, &err); /* the lease lapses, and it is done again */
    hf_answer_free(answer);
    return rc ? HF_STATUS_NONE : HF_STATUS_WAITING_USER;
}

/* Refused, since the job's own code let its row wait? */
static enum hf_status waits_already(struct hf_pool *pool, const struct hf_job *job)
{
    struct hf_answer *answer = NULL;
    enum hf_status status = HF_STATUS_NONE;
    if (hf_work_get(pool->store, &pool->who, job->item->work.work_id, &answer, NULL))
        return HF_STATUS_NONE;
    const struct hf_work *now = &hf_answer_at(answer, 0)->work;
    if (now->attempt_count == job->item->work.attempt_count &&
        waits(hf_status_of(now->status)))
        status = hf_status_of(now->status);
    hf_answer_free(answer);
    return status;
}

/* An outcome that the store refused. Counted before it is told. */
static void tell_refused(struct hf_pool *pool, const struct hf_job *job,
                         const struct hf_item *item)
{
    struct hf_err why = { 0 };
    (void)hf_fail(&why, item->code, item->field, "%s", item->message);
    enum hf_status status = item->code == HF_EPOLICY ? wait_for_person(pool, job, &why)
                                                     : waits_already(pool, job);
    bool lost = status == HF_STATUS_NONE;
    hf_lock(&pool->lock);
    pool->stats.lost += lost;
    count_status(&pool->stats, status);
    hf_unlock(&pool->lock);
    pool_tell(pool,
              (struct hf_pool_event){ .type = lost ? HF_POOL_LOST : HF_POOL_ENDED,
                                      .work = &job->item->work,
                                      .status = lost ? NULL : hf_status_word(status),
                                      .err = lost ? &why : NULL });
}

/* First counted, then told: who is told may look at the counts. */
static void tell_items(struct hf_pool *pool, struct hf_job *const *jobs,
                       const struct hf_answer *answer, size_t n)
{
    hf_lock(&pool->lock);
    for (size_t i = 0; i < n; i++)
        if (!hf_answer_at(answer, i)->code)
            count_status(&pool->stats,
                         hf_status_of(hf_answer_at(answer, i)->work.status));
    hf_unlock(&pool->lock);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        if (item->code)
            tell_refused(pool, jobs[i], item);
        else
            pool_tell(pool, (struct hf_pool_event){ .type = HF_POOL_ENDED,
                                                    .work = &jobs[i]->item->work,
                                                    .status = item->work.status });
    }
}

/* Bad input is told at once and would fail for ever. All the rest may get better. */
static bool hopeless(int rc)
{
    return rc == HF_EINVAL || rc == HF_ETOOBIG;
}

/* Settle some jobs by one call. Returns the store's answer. */
static int settle_once(struct hf_pool *pool, struct hf_job *const *jobs,
                       const struct hf_change *changes, size_t n)
{
    struct hf_err err = { 0 };
    struct hf_answer *answer = NULL;
    int rc = hf_work_change(pool->store, &pool->who, changes, n, HF_BRIEF, &answer, &err);
    if (rc) {
        pool_tell_error(pool, &err);
        return rc;
    }
    tell_items(pool, jobs, answer, n);
    hf_answer_free(answer);
    return 0;
}

static void settle(struct hf_pool *pool, struct hf_job *const *jobs,
                   const struct hf_change *changes, size_t n)
{
    int last = 0;
    while (n > 0) {
        int rc = settle_once(pool, jobs, changes, n);
        if (rc == 0)
            return;
        if (hopeless(rc)) {
            for (size_t i = 0; n > 1 && i < n; i++)
                (void)settle_once(pool, &jobs[i], &changes[i], 1); /* it told why */
            return;
        }
        hf_lock(&pool->lock);
        bool quit = pool->settler.stopping;
        if (!quit)
            (void)hf_threads_sleep(&pool->settler, BACK_OFF_MS);
        hf_unlock(&pool->lock);
        if (quit && ++last == LAST_TRIES)
            return;
    }
}

static bool closes(const struct hf_change *change)
{
    return change->verb == HF_VERB_CLOSE_OUT;
}

/* Close-outs first, in a call of their own: the ledger has a shorter way for them. */
static void settle_all(struct settling *s)
{
    size_t firsts = 0;
    for (size_t i = 0; i < s->count; i++)
        s->changes[i] = job_change(s->jobs[i]);
    for (size_t i = 0; i < s->count; i++) {
        if (!closes(&s->changes[i]))
            continue;
        struct hf_change change = s->changes[i];
        struct hf_job *job = s->jobs[i];
        s->changes[i] = s->changes[firsts];
        s->jobs[i] = s->jobs[firsts];
        s->changes[firsts] = change;
        s->jobs[firsts++] = job;
    }
    settle(s->pool, s->jobs, s->changes, firsts);
    settle(s->pool, s->jobs + firsts, s->changes + firsts, s->count - firsts);
}

/* With the lock. */
static void leave(struct hf_pool *pool, struct hf_job *job)
{
    const struct hf_alloc *alloc = pool->store->alloc;
    struct job_batch *batch = job->batch;
    if (job->all_prev)
        job->all_prev->all_next = job->all_next;
    else
        pool->all = job->all_next;
    if (job->all_next)
        job->all_next->all_prev = job->all_prev;
    pool->in_flight--;
    job_fini(job);
    if (--batch->left > 0)
        return;
    hf_answer_free(batch->answer);
    alloc->free(alloc->user, batch);
}

/* Returns false when nothing has ended and nothing will. With the lock. */
static bool await_ends(struct hf_pool *pool)
{
    while (pool->ended.count == 0 && !pool->settler.stopping)
        (void)hf_threads_sleep(&pool->settler, HF_NO_END);
    return pool->ended.count > 0;
}

/* Whether to wait for more ends: while there are few, and some jobs run or are about to. With
 * the lock. */
static bool gathers(const struct hf_pool *pool)
{
    return pool->ended.count < POOL_GATHERED && !pool->settler.stopping &&
           (pool->ready.count > 0 || pool->running > 0);
}

/* A few more may end while the first wait. With the lock. */
static void gather(struct hf_pool *pool)
{
    hf_ms end = pool_now(pool) + POOL_LINGER_MS;
    while (gathers(pool) && pool_now(pool) < end)
        if (!hf_threads_sleep(&pool->settler, POOL_LINGER_MS))
            break;
}

void *pool_settle_main(void *arg)
{
    struct hf_pool *pool = arg;
    struct settling *s = pool->settling;
    hf_lock(&pool->lock);
    while (await_ends(pool)) {
        gather(pool);
        s->count = 0;
        while (s->count < SETTLE_MAX && pool->ended.first)
            s->jobs[s->count++] = pool_pop(&pool->ended);
        hf_unlock(&pool->lock);
        settle_all(s);
        hf_lock(&pool->lock);
        for (size_t i = 0; i < s->count; i++)
            leave(pool, s->jobs[i]);
        pool_tell_room(pool);
        (void)pthread_cond_broadcast(&pool->for_idle);
    }
    hf_unlock(&pool->lock);
    return NULL;
}
