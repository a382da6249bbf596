/* A few threads for store calls, apart from the loop's executor: blocking tools must not keep
 * a worker from renewing its leases. */
#ifndef HF_AGENT_WORKER_THREADS_H
#define HF_AGENT_WORKER_THREADS_H

#include <holdfast/loop.h>

struct worker_threads;

/* A call, in the caller's memory until `done` was called. */
struct worker_job {
    struct worker_job *next;
    void *user;
    void (*run)(void *user);  /* on a thread */
    void (*done)(void *user); /* on the loop's thread */
};

/* HF_ENOMEM, HF_EINTERNAL when no thread can be started. */
HF_MUST_USE int worker_threads_new(struct hf_loop *loop, int64_t count,
                                   struct worker_threads **ret_threads,
                                   struct hf_err *err);
/* Runs what was handed over, without calling `done` for it, and ends the threads. NULL is fine. */
void worker_threads_free(struct worker_threads *threads);

/* Hands a call over. It cannot fail. */
void worker_threads_add(struct worker_threads *threads, struct worker_job *job);
/* Calls `done` of what has ended; the loop does so by itself, unless it had no memory for the
 * message. */
void worker_threads_collect(struct worker_threads *threads);

#endif
