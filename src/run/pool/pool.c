/* A pool: making it, starting it, draining it, ending it. See pool.h for its inside. */
#include "run/pool/pool.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/bounds.h>
#include <holdfast/store.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

#define THREADS_DEFAULT 4
#define BATCH_DEFAULT 100
#define IN_FLIGHT_DEFAULT 1000
#define IN_FLIGHT_MAX 100000
#define THREADS_MAX 1024

/* ---- what its threads share ---------------------------------------------------------- */

hf_ms pool_now(const struct hf_pool *pool)
{
    const struct hf_clock *clock = pool->store->clock;
    return clock->mono_ms(clock->user);
}

void pool_tell(struct hf_pool *pool, struct hf_pool_event event)
{
    if (pool->listener)
        pool->listener(pool->listener_user, &event);
}

void pool_tell_error(struct hf_pool *pool, const struct hf_err *err)
{
    hf_lock(&pool->lock);
    pool->stats.errors++;
    hf_unlock(&pool->lock);
    pool_tell(pool, (struct hf_pool_event){ .type = HF_POOL_ERROR, .err = err });
}

void pool_push(struct job_list *list, struct hf_job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

struct hf_job *pool_pop(struct job_list *list)
{
    struct hf_job *job = list->first;
    list->first = job->next;
    if (!list->first)
        list->last = NULL;
    list->count--;
    job->next = NULL;
    return job;
}

/* ---- making -------------------------------------------------------------------------- */

static int check_options(const struct hf_pool_options *o, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key_opt(o->owner, max, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(o->queue, max, "queue", err);
    if (rc == 0)
        rc = hf_check_key_opt(o->tenant, max, "tenant", err);
    if (rc == 0 && o->threads > THREADS_MAX)
        rc = hf_fail(err, HF_ETOOBIG, "threads", "threads must be at most %d",
                     THREADS_MAX);
    if (rc == 0 && o->batch > (size_t)HF_MAX_BATCH)
        rc = hf_fail(err, HF_ETOOBIG, "batch", "a claim takes at most %lld jobs",
                     (long long)HF_MAX_BATCH);
    if (rc == 0 && o->in_flight > IN_FLIGHT_MAX)
        rc = hf_fail(err, HF_ETOOBIG, "in_flight", "a pool holds at most %d jobs",
                     IN_FLIGHT_MAX);
    if (rc == 0 && o->ttl_ms != 0 &&
        (o->ttl_ms < HF_MAX_TTL_MIN_MS || o->ttl_ms > HF_MAX_TTL_MAX_MS))
        rc = hf_fail(err, HF_EINVAL, "ttl_ms", "ttl_ms must be %lld to %lld",
                     (long long)HF_MAX_TTL_MIN_MS, (long long)HF_MAX_TTL_MAX_MS);
    return rc;
}

static size_t or_else(size_t given, size_t otherwise)
{
    return given ? given : otherwise;
}

/* Before the first failure: free_pool undoes all of it. */
static void init_threads(struct hf_pool *pool)
{
    hf_lock_init(&pool->lock);
    hf_threads_init(&pool->claimer, &pool->lock, NULL);
    hf_threads_init(&pool->workers, &pool->lock, pool->worker_ids);
    hf_threads_init(&pool->settler, &pool->lock, NULL);
    hf_threads_init(&pool->renewer, &pool->lock, NULL);
    hf_cond_init(&pool->for_idle);
    hf_cond_init(&pool->for_stop);
}

static int name_pool(struct hf_pool *pool, const struct hf_pool_options *o)
{
    char host[65] = "";
    struct hf_buf owner;
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = 0;
    hf_buf_init(&owner, pool->store->alloc, (size_t)HF_MAX_KEY_BYTES);
    hf_buf_text(&owner, "pool-");
    hf_buf_text(&owner, host);
    hf_buf_char(&owner, '-');
    hf_buf_i64(&owner, getpid());
    if (hf_buf_state(&owner) == 0)
        pool->owner = hf_text_copy(pool->store->alloc,
                                   o->owner ? o->owner : hf_buf_str(&owner));
    hf_buf_fini(&owner);
    pool->queue = hf_text_copy(pool->store->alloc, o->queue ? o->queue : "default");
    pool->tenant = hf_text_copy(pool->store->alloc, o->tenant ? o->tenant : "");
    pool->who = (struct hf_caller){ .size = sizeof pool->who,
                                    .actor_kind = "worker",
                                    .actor = pool->owner,
                                    .tenant = pool->tenant };
    return pool->owner && pool->queue && pool->tenant ? 0 : HF_ENOMEM;
}

static void free_pool(struct hf_pool *pool)
{
    const struct hf_alloc *alloc = pool->store->alloc;
    hf_threads_fini(&pool->claimer);
    hf_threads_fini(&pool->workers);
    hf_threads_fini(&pool->settler);
    hf_threads_fini(&pool->renewer);
    hf_cond_fini(&pool->for_idle);
    hf_cond_fini(&pool->for_stop);
    hf_lock_fini(&pool->lock);
    for (size_t i = 0; i < pool->kind_count; i++)
        alloc->free(alloc->user, pool->kinds[i].name);
    alloc->free(alloc->user, pool->kinds);
    alloc->free(alloc->user, pool->worker_ids);
    alloc->free(alloc->user, pool->settling);
    alloc->free(alloc->user, pool->owner);
    alloc->free(alloc->user, pool->queue);
    alloc->free(alloc->user, pool->tenant);
    alloc->free(alloc->user, pool);
}

int hf_pool_new(struct hf_store *store, const struct hf_pool_options *given,
                struct hf_pool **ret_pool, struct hf_err *err)
{
    struct hf_pool_options o = { .size = sizeof o };
    int rc = given ? hf_sized_copy(given, sizeof o, sizeof o, &o, err) : 0;
    if (rc == 0)
        rc = check_options(&o, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = store->alloc;
    struct hf_pool *pool = alloc->realloc(alloc->user, NULL, sizeof *pool);
    if (!pool)
        return hf_fail_plain(err, HF_ENOMEM);
    *pool = (struct hf_pool){
        .store = store,
        .thread_max = or_else(o.threads, THREADS_DEFAULT),
        .batch_max = or_else(o.batch, BATCH_DEFAULT),
        .in_flight_max = or_else(o.in_flight, IN_FLIGHT_DEFAULT),
        .ttl_ms = o.ttl_ms,
        .listener = o.listener,
        .listener_user = o.listener_user,
    };
    pool->kinds = alloc->realloc(alloc->user, NULL, POOL_KINDS * sizeof *pool->kinds);
    pool->worker_ids = alloc->realloc(alloc->user, NULL,
                                      pool->thread_max * sizeof(pthread_t));
    init_threads(pool);
    pool->settling = pool_settling_new(pool);
    if (name_pool(pool, &o) || !pool->kinds || !pool->worker_ids || !pool->settling) {
        free_pool(pool);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_pool = pool;
    return 0;
}

static int check_kind(const struct hf_pool *pool, const struct hf_job_kind *kind,
                      struct hf_err *err)
{
    int rc = hf_check_key(kind->name, (size_t)HF_MAX_KEY_BYTES, "name", err);
    if (rc)
        return rc;
    if (hf_starts_with(kind->name, "hf."))
        return hf_fail(err, HF_EINVAL, "name", "kinds that begin with hf. are reserved");
    if (!kind->run)
        return hf_fail(err, HF_EINVAL, "run", "kind %s has no function", kind->name);
    if (kind->max_attempts < 0 || kind->max_attempts > HF_MAX_ATTEMPTS_MAX)
        return hf_fail(err, HF_EINVAL, "max_attempts", "max_attempts must be 1 to %lld",
                       (long long)HF_MAX_ATTEMPTS_MAX);
    for (size_t i = 0; i < pool->kind_count; i++)
        if (hf_same(pool->kinds[i].name, kind->name))
            return hf_fail(err, HF_EINVAL, "name", "kind %s is there already",
                           kind->name);
    if (pool->kind_count == POOL_KINDS)
        return hf_fail(err, HF_ETOOBIG, "name", "a pool knows at most %d kinds",
                       POOL_KINDS);
    return pool->started ? hf_fail(err, HF_EINVAL, "pool", "the pool has been started")
                         : 0;
}

/* The policy that code declares for its kind becomes the kind's in the store. */
static int write_policy(struct hf_pool *pool, const struct hf_job_kind *kind,
                        struct hf_err *err)
{
    struct hf_policy policy = { .size = sizeof policy, .grace_ms = -1 };
    struct hf_buf scope;
    if (!kind->policy && kind->max_attempts == 0)
        return 0;
    if (kind->policy)
        policy = *kind->policy;
    if (kind->max_attempts)
        policy.max_attempts = kind->max_attempts;
    hf_buf_init(&scope, pool->store->alloc, 2 * (size_t)HF_MAX_KEY_BYTES);
    hf_buf_text(&scope, "kind:");
    hf_buf_text(&scope, kind->name);
    int rc = hf_buf_state(&scope) ? hf_fail_plain(err, hf_buf_state(&scope))
                                  : hf_policy_set(pool->store, &pool->who,
                                                  hf_buf_str(&scope), &policy, err);
    hf_buf_fini(&scope);
    return rc;
}

int hf_pool_add(struct hf_pool *pool, const struct hf_job_kind *given, struct hf_err *err)
{
    struct hf_job_kind kind;
    int rc = hf_sized_copy(given, sizeof kind, sizeof kind, &kind, err);
    if (rc == 0)
        rc = check_kind(pool, &kind, err);
    if (rc == 0)
        rc = write_policy(pool, &kind, err);
    if (rc)
        return rc;
    char *name = hf_text_copy(pool->store->alloc, kind.name);
    if (!name)
        return hf_fail_plain(err, HF_ENOMEM);
    struct pool_kind *entry = &pool->kinds[pool->kind_count++];
    *entry = (struct pool_kind){ .given = kind, .name = name };
    entry->given.name = name;
    entry->given.policy = NULL; /* borrowed until now only */
    if (hf_same(name, "*"))
        pool->any = entry;
    return 0;
}

/* ---- starting and ending ------------------------------------------------------------- */

/* The settler ends after the workers, since what they end is settled. */
static void stop_threads(struct hf_pool *pool)
{
    hf_threads_stop(&pool->claimer);
    hf_threads_stop(&pool->workers);
    hf_threads_stop(&pool->settler);
    hf_threads_stop(&pool->renewer);
}

/* The claimer comes last: before it nothing can have been claimed. */
static int start_threads(struct hf_pool *pool)
{
    int rc = hf_threads_start(&pool->settler, pool_settle_main, pool);
    if (rc == 0)
        rc = hf_threads_start(&pool->renewer, pool_beat_main, pool);
    for (size_t i = 0; rc == 0 && i < pool->thread_max; i++)
        rc = hf_threads_start(&pool->workers, pool_worker_main, pool);
    pool->claiming = true;
    if (rc == 0)
        rc = hf_threads_start(&pool->claimer, pool_claim_main, pool);
    if (rc) {
        pool->claiming = false;
        stop_threads(pool);
    }
    return rc;
}

int hf_pool_start(struct hf_pool *pool, struct hf_err *err)
{
    if (pool->started)
        return hf_fail(err, HF_EINVAL, "pool", "the pool has been started");
    if (pool->kind_count == 0)
        return hf_fail(err, HF_EINVAL, "pool", "the pool has no kind to run");
    if (start_threads(pool))
        return hf_fail(err, HF_ENOMEM, "threads", "no thread could be started");
    pool->started = true;
    return 0;
}

static bool idle(const struct hf_pool *pool)
{
    return !pool->claiming && pool->in_flight == 0;
}

/* Until the pool is idle or the time is up. With the lock. */
static void await_idle(struct hf_pool *pool, hf_ms ms)
{
    hf_ms end = pool_now(pool) + ms;
    for (hf_ms left = ms; !idle(pool) && left > 0; left = end - pool_now(pool))
        (void)hf_cond_wait(&pool->for_idle, &pool->lock, left);
}

/* Only what runs or completes later may outlast its time: the settling of what has ended and
 * a claim that is under way are waited for, as long as a store may take. With the lock. */
static void await_settled(struct hf_pool *pool)
{
    hf_ms end = pool_now(pool) + HF_MAX_STORE_WAIT_MS;
    while (pool->claiming || pool->in_flight > pool->running + pool->later) {
        hf_ms left = end - pool_now(pool);
        if (left <= 0)
            break;
        (void)hf_cond_wait(&pool->for_idle, &pool->lock, left);
    }
}

/* A claim that waits must end first: otherwise it would take the units that the jobs hand
 * back. */
static size_t drain(struct hf_pool *pool, hf_ms deadline_ms, hf_ms grace_ms)
{
    hf_lock(&pool->lock);
    hf_ms begun = pool_now(pool);
    pool->draining = true;
    hf_threads_wake(&pool->claimer);
    while (pool->claiming && pool_now(pool) - begun < HF_MAX_STORE_WAIT_MS)
        (void)hf_cond_wait(&pool->for_idle, &pool->lock, HF_MAX_STORE_WAIT_MS);
    await_idle(pool, deadline_ms - (pool_now(pool) - begun));
    for (struct hf_job *job = pool->all; job; job = job->all_next)
        if (job->state == JOB_RUNNING || job->state == JOB_LATER)
            pool_stop_job(pool, job, HF_JOB_DRAINED);
    await_idle(pool, grace_ms);
    await_settled(pool);
    size_t left = pool->in_flight;
    hf_unlock(&pool->lock);
    return left;
}

int hf_pool_drain(struct hf_pool *pool, hf_ms deadline_ms, hf_ms grace_ms,
                  size_t *ret_left, struct hf_err *err)
{
    if (deadline_ms < 0 || grace_ms < 0 || deadline_ms > HF_MAX_DURATION_MAX_MS ||
        grace_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL,
                       deadline_ms < 0 || deadline_ms > HF_MAX_DURATION_MAX_MS
                           ? "deadline_ms"
                           : "grace_ms",
                       "a time to drain is 0 to 100 years");
    *ret_left = pool->started ? drain(pool, deadline_ms, grace_ms) : 0;
    return 0;
}

void hf_pool_stats(struct hf_pool *pool, struct hf_pool_stats *ret_stats)
{
    hf_lock(&pool->lock);
    *ret_stats = pool->stats;
    ret_stats->ready = (int64_t)pool->ready.count;
    ret_stats->running = (int64_t)pool->running;
    ret_stats->later = (int64_t)pool->later;
    hf_unlock(&pool->lock);
}

/* What was to complete later keeps its lease, and goes from memory. */
static void forget_later(struct hf_pool *pool)
{
    const struct hf_alloc *alloc = pool->store->alloc;
    while (pool->all) {
        struct hf_job *job = pool->all;
        struct job_batch *batch = job->batch;
        pool->all = job->all_next;
        job_fini(job);
        if (--batch->left > 0)
            continue;
        hf_answer_free(batch->answer);
        alloc->free(alloc->user, batch);
    }
}

void hf_pool_free(struct hf_pool *pool)
{
    if (!pool)
        return;
    if (pool->started) {
        (void)drain(pool, 0, 0); /* what is left is waited for below */
        stop_threads(pool);
        forget_later(pool);
    }
    free_pool(pool);
}
