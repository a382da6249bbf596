/* Threads that work for an owner: started, woken, asleep, stopped and joined. They share a lock
 * with their owner, which also guards the work that waits (threads.h). */
#include "os/threads.h"

#include <errno.h>
#include <time.h>

#include "base/err.h"

void hf_lock_init(pthread_mutex_t *lock)
{
    int rc = pthread_mutex_init(lock, NULL);
    hf_assert(rc == 0);
}

void hf_lock_fini(pthread_mutex_t *lock)
{
    int rc = pthread_mutex_destroy(lock);
    hf_assert(rc == 0);
}

void hf_lock(pthread_mutex_t *lock)
{
    int rc = pthread_mutex_lock(lock);
    hf_assert(rc == 0);
}

void hf_unlock(pthread_mutex_t *lock)
{
    int rc = pthread_mutex_unlock(lock);
    hf_assert(rc == 0);
}

void hf_cond_init(pthread_cond_t *cond)
{
    int rc = pthread_cond_init(cond, NULL);
    hf_assert(rc == 0);
}

void hf_cond_fini(pthread_cond_t *cond)
{
    int rc = pthread_cond_destroy(cond);
    hf_assert(rc == 0);
}

bool hf_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, hf_ms most_ms)
{
    struct timespec end;
    if (most_ms == HF_NO_END) {
        int rc = pthread_cond_wait(cond, lock);
        hf_assert(rc == 0);
        return true;
    }
    if (most_ms <= 0)
        return false;
    (void)clock_gettime(CLOCK_MONOTONIC, &end); /* it is always there */
    end.tv_nsec += (long)(most_ms % 1000) * 1000000;
    end.tv_sec += (time_t)(most_ms / 1000) + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    int rc = pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &end);
    hf_assert(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void hf_threads_init(struct hf_threads *threads, pthread_mutex_t *lock, pthread_t *many)
{
    *threads = (struct hf_threads){ .lock = lock };
    threads->ids = many ? many : &threads->single;
    hf_cond_init(&threads->wake);
}

void hf_threads_fini(struct hf_threads *threads)
{
    hf_assert(threads->count == 0);
    hf_cond_fini(&threads->wake);
}

int hf_threads_start(struct hf_threads *threads, hf_thread_fn *body, void *user)
{
    hf_assert(threads->ids != &threads->single || threads->count == 0);
    if (threads->count == 0)
        threads->stopping = false;
    if (pthread_create(&threads->ids[threads->count], NULL, body, user))
        return HF_ENOMEM;
    threads->count++;
    return 0;
}

void hf_threads_wake(struct hf_threads *threads)
{
    int rc = pthread_cond_signal(&threads->wake);
    hf_assert(rc == 0);
}

void hf_threads_wake_all(struct hf_threads *threads)
{
    int rc = pthread_cond_broadcast(&threads->wake);
    hf_assert(rc == 0);
}

bool hf_threads_sleep(struct hf_threads *threads, hf_ms most_ms)
{
    return hf_cond_wait(&threads->wake, threads->lock, most_ms);
}

void hf_threads_stop(struct hf_threads *threads)
{
    hf_lock(threads->lock);
    threads->stopping = true;
    hf_threads_wake_all(threads);
    size_t count = threads->count;
    threads->count = 0;
    hf_unlock(threads->lock);
    for (size_t i = 0; i < count; i++) {
        int rc = pthread_join(threads->ids[i], NULL);
        hf_assert(rc == 0);
    }
}
