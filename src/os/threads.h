/* Threads that work for an owner: started, woken, asleep, stopped and joined.
 *
 * The threads of one struct run the same function and share a lock with their owner. Under
 * the lock the owner changes what there is to do and wakes a thread. A thread looks for
 * something to do under the lock, does it without the lock, and otherwise sleeps. The work that
 * waits to be done is in a structure of the owner's.
 *
 * The function returns once it finds `stopping` set; whether it finishes first what waits is
 * its owner's decision. The calls below cannot fail where their contract is kept; a broken one
 * aborts. */
#ifndef HF_OS_THREADS_H
#define HF_OS_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/types.h>

#define HF_NO_END INT64_MAX /* of a wait */

typedef void *hf_thread_fn(void *user); /* returns NULL */

struct hf_threads {
    pthread_mutex_t *lock; /* the owner's; of what follows */
    pthread_cond_t wake;
    pthread_t single;
    pthread_t *ids; /* &single, or an array of the owner's */
    size_t count;   /* started and not yet joined */
    bool stopping;
};

/* `many` is room for the ids of several threads; NULL: there is at most one. Neither the struct
 * nor the room may move. */
void hf_threads_init(struct hf_threads *threads, pthread_mutex_t *lock, pthread_t *many);
/* Once none is left. */
void hf_threads_fini(struct hf_threads *threads);

/* Adds a thread, with or without the lock; the first one after a stop begins anew. HF_ENOMEM:
 * none can be started. */
HF_MUST_USE int hf_threads_start(struct hf_threads *threads, hf_thread_fn *body,
                                 void *user);

/* With the lock: wakes one that sleeps, or all that do. */
void hf_threads_wake(struct hf_threads *threads);
void hf_threads_wake_all(struct hf_threads *threads);
/* In a thread, as hf_cond_wait. */
bool hf_threads_sleep(struct hf_threads *threads, hf_ms most_ms);

/* Sets `stopping`, wakes all and joins them. Without the lock, and not in one of the threads.
 * May be called where none was started, and again. */
void hf_threads_stop(struct hf_threads *threads);

void hf_lock_init(pthread_mutex_t *lock);
void hf_lock_fini(pthread_mutex_t *lock); /* nothing holds it or waits for it */
void hf_lock(pthread_mutex_t *lock);
void hf_unlock(pthread_mutex_t *lock);

void hf_cond_init(pthread_cond_t *cond);
void hf_cond_fini(pthread_cond_t *cond); /* nothing waits for it */
/* With the lock, which is released meanwhile: until a signal, or by chance. Times are of the
 * system's monotonic clock. False once `most_ms` have passed. */
bool hf_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, hf_ms most_ms);

#endif
