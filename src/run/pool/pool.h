/* The inside of a pool. One lock for all of it; nothing that blocks is called under it.
 *
 * Threads: one claims, `threads` run, one settles, one renews. A job belongs to exactly one
 * list or thread at a time, as its state says. The settling thread frees it, and with the last
 * job of a batch the claim's answer. */
#ifndef HF_RUN_POOL_POOL_H
#define HF_RUN_POOL_POOL_H

#include <holdfast/job.h>
#include <holdfast/sys/store.h>
#include <stdatomic.h>

#include "base/ident.h"
#include "os/threads.h"

#define POOL_KINDS 32 /* as many as one claim can name */

enum job_state {
    JOB_READY,   /* claimed; in the list `ready` */
    JOB_RUNNING, /* on a thread */
    JOB_LATER,   /* left its thread; a process will complete it */
    JOB_ENDED    /* in the list `ended`, or being settled */
};

/* How a job ended. Texts are the job's own. */
struct job_end {
    int verdict;
    char *error_class;
    char *reason;
    char *summary;
    char **evidence; /* HF_MAX_REFS places, or NULL */
    size_t evidence_count;
};

struct pool_kind {
    struct hf_job_kind given;
    char *name;
    size_t busy; /* on threads or to be completed later */
    size_t ready;
};

struct job_batch {
    struct hf_answer *answer;
    size_t left;
    size_t unstarted;
    hf_ms claimed_at; /* monotonic */
};

struct hf_job {
    struct hf_pool *pool;
    struct job_batch *batch;
    const struct hf_item *item;
    struct pool_kind *kind;
    struct hf_job *next; /* of `ready` or `ended` */
    struct hf_job *all_next, *all_prev;
    enum job_state state;
    atomic_int stop;  /* enum hf_job_stop */
    hf_ms good_until; /* monotonic: when the lease lapses if it is not renewed */
    uint64_t asked;   /* the last renewal that should have met it */
    bool ended_early; /* completed before its function returned HF_JOB_LATER */
    struct job_end end;
};

struct job_list {
    struct hf_job *first, *last;
    size_t count;
};

struct settling;

/* The claim that is made next or is under way. Only the claiming thread uses it. */
struct pool_claiming {
    const char *kinds[POOL_KINDS];
    size_t kind_count;
    size_t want;
    char nonce[HF_NONCE_TEXT];
    bool asked; /* this nonce was used; its answer is not known */
};

struct hf_pool {
    struct hf_store *store;
    struct hf_caller who;
    char *owner, *queue, *tenant;
    size_t thread_max, batch_max, in_flight_max;
    hf_ms ttl_ms; /* 0: by policy */
    hf_pool_listener *listener;
    void *listener_user;
    struct pool_kind *kinds;
    size_t kind_count;
    struct pool_kind *any; /* the entry "*", or NULL */

    pthread_mutex_t lock; /* of all that follows */
    struct hf_threads claimer, workers, settler, renewer;
    pthread_t *worker_ids;
    pthread_cond_t for_idle; /* a drain */
    pthread_cond_t for_stop; /* jobs that sleep */
    bool started, draining;
    bool claiming; /* the claimer is there */
    struct pool_claiming claim;
    size_t idle, waking; /* workers that wait, and of these who have been called */
    size_t ahead;     /* how many jobs to keep ready beyond what the threads can start */
    hf_ms beat_every; /* a third of the least term among the jobs held */
    uint64_t beats;
    struct job_list ready, ended;
    struct hf_job *all;
    size_t in_flight; /* every job from claim to settled */
    size_t running, later;
    struct hf_pool_stats stats;
    struct settling *settling; /* the settler's */
};

/* The main functions of the threads; `arg` is the pool. */
void *pool_claim_main(void *arg);
void *pool_worker_main(void *arg);
void *pool_settle_main(void *arg);
void *pool_beat_main(void *arg);

/* The memory of the settler; freed by the store's allocator. NULL: no memory. */
struct settling *pool_settling_new(struct hf_pool *pool);

hf_ms pool_now(const struct hf_pool *pool); /* monotonic */

/* Without the lock. */
void pool_tell(struct hf_pool *pool, struct hf_pool_event event);
void pool_tell_error(struct hf_pool *pool, const struct hf_err *err);

/* With the lock: lists, and the end of a job's execution. The job's own end must be set. */
void pool_push(struct job_list *list, struct hf_job *job);
struct hf_job *pool_pop(struct job_list *list);
void pool_ended(struct hf_pool *pool, struct hf_job *job);
/* Wakes the claimer where it would find something to do. With the lock. */
void pool_tell_room(struct hf_pool *pool);
/* Calls a worker to a ready job, if one waits; the process that comes calls the next.
 * With the lock. */
void pool_call_worker(struct hf_pool *pool);
/* This many ends are settled without waiting for more. */
#define POOL_GATHERED 100
#define POOL_LINGER_MS 1 /* how long the settler waits for more of them */
/* Take a ready job off its list, which is anywhere in it. */
void pool_unready(struct hf_pool *pool, struct hf_job *before, struct hf_job *job);

/* Why a job should stop: the first reason is kept kept. With the lock. */
void pool_stop_job(struct hf_pool *pool, struct hf_job *job, enum hf_job_stop why);

/* Set how a job ended, with copies of the texts; what cannot be stored becomes a failure that
 * says so. With the lock, or before another process knows about the job's end. */
void job_set_end(struct hf_job *job, const struct hf_job_end *end);
void job_fini(struct hf_job *job);
/* The change that settles the job as it ended; texts are the job's. */
struct hf_change job_change(const struct hf_job *job);

#endif
