/* The threads on which a worker's store calls run. A job goes to a list, a thread runs it, and its
 * `done` is called on the loop's thread, by a message to the loop. Blocking tools have threads of
 * their own, so that they never keep a lease from being renewed. */
#include "agent/worker/threads.h"

#include <pthread.h>

#include "base/err.h"

#define THREADS_MAX 64

struct list {
    struct worker_job *first;
    struct worker_job *last;
};

struct worker_threads {
    struct hf_loop *loop;
    const struct hf_alloc *alloc;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list waiting;
    struct list ended;
    int posted; /* messages to the loop that were not received yet */
    bool stopping;
    bool freed; /* the last message releases it */
    pthread_t threads[THREADS_MAX];
    int count;
};

static void push(struct list *list, struct worker_job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

static struct worker_job *pop(struct list *list)
{
    struct worker_job *job = list->first;
    if (job)
        list->first = job->next;
    if (!list->first)
        list->last = NULL;
    return job;
}

static struct worker_job *take_ended(struct worker_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    struct worker_job *job = pop(&threads->ended);
    pthread_mutex_unlock(&threads->lock);
    return job;
}

void worker_threads_collect(struct worker_threads *threads)
{
    for (struct worker_job *job = take_ended(threads); job; job = take_ended(threads))
        job->done(job->user);
}

static void release(struct worker_threads *threads)
{
    pthread_cond_destroy(&threads->more);
    pthread_mutex_destroy(&threads->lock);
    threads->alloc->free(threads->alloc->user, threads);
}

static void on_post(void *user)
{
    struct worker_threads *threads = user;
    pthread_mutex_lock(&threads->lock);
    threads->posted--;
    bool last = threads->freed && threads->posted == 0;
    pthread_mutex_unlock(&threads->lock);
    if (last)
        release(threads);
    else if (!threads->freed)
        worker_threads_collect(threads);
}

/* Without memory for the message the next one, or the worker's timer, collects what ended. */
static void post(struct worker_threads *threads)
{
    struct hf_task task = { threads, on_post };
    pthread_mutex_lock(&threads->lock);
    threads->posted++;
    pthread_mutex_unlock(&threads->lock);
    if (hf_loop_post(threads->loop, &task) == 0)
        return;
    pthread_mutex_lock(&threads->lock);
    threads->posted--;
    pthread_mutex_unlock(&threads->lock);
}

static void *run_thread(void *user)
{
    struct worker_threads *threads = user;
    pthread_mutex_lock(&threads->lock);
    for (;;) {
        struct worker_job *job = pop(&threads->waiting);
        if (!job && threads->stopping)
            break;
        if (!job) {
            pthread_cond_wait(&threads->more, &threads->lock);
            continue;
        }
        pthread_mutex_unlock(&threads->lock);
        job->run(job->user);
        pthread_mutex_lock(&threads->lock);
        push(&threads->ended, job);
        pthread_mutex_unlock(&threads->lock);
        post(threads);
        pthread_mutex_lock(&threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

int worker_threads_new(struct hf_loop *loop, int64_t count,
                       struct worker_threads **ret_threads, struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct worker_threads *threads = alloc->realloc(alloc->user, NULL, sizeof(*threads));
    if (!threads)
        return hf_fail_plain(err, HF_ENOMEM);
    *threads = (struct worker_threads){ .loop = loop, .alloc = alloc };
    if (pthread_mutex_init(&threads->lock, NULL) ||
        pthread_cond_init(&threads->more, NULL)) {
        alloc->free(alloc->user, threads);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    for (int64_t i = 0; i < count && i < THREADS_MAX; i++)
        if (pthread_create(&threads->threads[threads->count], NULL, run_thread,
                           threads) == 0)
            threads->count++;
    if (threads->count == 0) {
        worker_threads_free(threads);
        return hf_fail(err, HF_EINTERNAL, "store_threads", "no thread can be started");
    }
    *ret_threads = threads;
    return 0;
}

void worker_threads_free(struct worker_threads *threads)
{
    if (!threads)
        return;
    pthread_mutex_lock(&threads->lock);
    threads->stopping = true;
    pthread_cond_broadcast(&threads->more);
    pthread_mutex_unlock(&threads->lock);
    for (int i = 0; i < threads->count; i++)
        pthread_join(threads->threads[i], NULL);
    threads->freed = threads->posted > 0;
    if (!threads->freed)
        release(threads);
}

void worker_threads_add(struct worker_threads *threads, struct worker_job *job)
{
    pthread_mutex_lock(&threads->lock);
    push(&threads->waiting, job);
    pthread_cond_signal(&threads->more);
    pthread_mutex_unlock(&threads->lock);
}
