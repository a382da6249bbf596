/* A pool on a stage: a store, counters of what was told, and waiting for them. */
#ifndef HF_TESTS_RUN_POOL_STAGE_H
#define HF_TESTS_RUN_POOL_STAGE_H

#include "support/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/job.h>
#include <holdfast/store.h>
#include <holdfast/sys/store.h>

#include "support/pg.h"

#define PATIENCE_MS 20000
#define SHORT_TTL 750

struct stage {
    struct hf_store *store;
    struct hf_pool *pool;
    struct pg_place *place; /* NULL: on SQLite */
    struct hf_err err;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* of the jobs and the listener, under the lock */
    int started, returned, open; /* open: jobs that wait may go on */
    int told[5];
    int stop_seen;
    int left_of_failures;
    int inside, most_inside;
    char token[200];
    char id[64];
};

/* ---- stage -------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->moved, &attr);
    (void)pthread_condattr_destroy(&attr);
    *state = s;
    return 0;
}

static int on_sqlite(void **state)
{
    (void)setup(state);
    struct stage *s = *state;
    return hf_store_open(":memory:", NULL, &s->store, &s->err);
}

static int on_postgres(void **state)
{
    struct pg_place *place = *state;
    struct hf_store_options options = { .size = sizeof options };
    (void)setup(state);
    struct stage *s = *state;
    s->place = place;
    return pg_place_open(place, &options, &s->store, &s->err);
}

static int teardown(void **state)
{
    struct stage *s = *state;
    hf_pool_free(s->pool);
    hf_store_close(s->store);
    if (s->place)
        pg_place_discard(s->place);
    (void)pthread_cond_destroy(&s->moved);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return 0;
}

static void on_event(void *user, const struct hf_pool_event *event)
{
    struct stage *s = user;
    (void)pthread_mutex_lock(&s->lock);
    s->told[event->type]++;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
}

static void make_pool(struct stage *s, struct hf_pool_options options)
{
    options.size = sizeof options;
    options.listener = on_event;
    options.listener_user = s;
    assert_int_equal(hf_pool_new(s->store, &options, &s->pool, &s->err), 0);
}

static void add_kind(struct stage *s, const char *name,
                     int (*run)(void *, struct hf_job *))
{
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = name, .run = run, .user = s
    };
    assert_int_equal(hf_pool_add(s->pool, &kind, &s->err), 0);
}

static void start(struct stage *s)
{
    assert_int_equal(hf_pool_start(s->pool, &s->err), 0);
}

static void enqueue(struct stage *s, const char *kind, struct hf_job_spec job,
                    char ret_id[64])
{
    struct hf_answer *answer;
    job.size = sizeof job;
    job.kind = kind;
    if (job.priority == 0)
        job.priority = -1;
    assert_int_equal(hf_job_enqueue(s->store, NULL, &job, &answer, &s->err), 0);
    if (ret_id)
        (void)snprintf(ret_id, 64, "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
}

/* Wait until *at is at least `least`. */
static void await_count(struct stage *s, const int *at, int least)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PATIENCE_MS / 1000;
    (void)pthread_mutex_lock(&s->lock);
    while (*at < least)
        assert_int_equal(pthread_cond_timedwait(&s->moved, &s->lock, &end), 0);
    (void)pthread_mutex_unlock(&s->lock);
}

static void bump(struct stage *s, int *at, int by)
{
    (void)pthread_mutex_lock(&s->lock);
    *at += by;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
}

struct seen {
    char status[24];
    char reason[64];
    char error_class[64];
    char owner[64];
    int64_t attempts, failures, fence;
    hf_ms next_retry_at, updated_at, lease_expires_at;
};

static struct seen look(struct stage *s, const char *id)
{
    struct hf_answer *answer;
    struct seen seen = { 0 };
    assert_int_equal(hf_work_get(s->store, NULL, id, &answer, &s->err), 0);
    const struct hf_work *work = &hf_answer_at(answer, 0)->work;
    (void)snprintf(seen.status, sizeof seen.status, "%s", work->status);
    (void)snprintf(seen.reason, sizeof seen.reason, "%s",
                   work->status_reason ? work->status_reason : "");
    (void)snprintf(seen.error_class, sizeof seen.error_class, "%s",
                   work->error_class ? work->error_class : "");
    (void)snprintf(seen.owner, sizeof seen.owner, "%s", work->owner ? work->owner : "");
    seen.attempts = work->attempt_count;
    seen.failures = work->failures;
    seen.fence = work->lease_fence;
    seen.next_retry_at = work->next_retry_at;
    seen.updated_at = work->updated_at;
    seen.lease_expires_at = work->lease_expires_at;
    hf_answer_free(answer);
    return seen;
}

static struct hf_pool_stats stats(struct stage *s)
{
    struct hf_pool_stats stats;
    hf_pool_stats(s->pool, &stats);
    return stats;
}

/* A change by an operator. */
static void change(struct stage *s, struct hf_change wanted)
{
    struct hf_answer *answer;
    wanted.size = sizeof wanted;
    assert_int_equal(
        hf_work_change(s->store, NULL, &wanted, 1, HF_ALL_OR_NONE, &answer, &s->err), 0);
    hf_answer_free(answer);
}

#endif
