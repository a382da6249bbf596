/* Jobs: units of work that code runs by the name of their kind, and the pool that runs them.
 *
 * A job is a rerunnable unit of the ledger (work.h): the rules there for leases, retries
 * and events hold here. A pool claims jobs of one queue in batches, runs them on a bounded
 * number of threads, renews their leases meanwhile, and settles jobs that have ended in batches.
 *
 * A job runs at least once. Its outcome is recorded at most once, and only by the holder
 * of the lease. So the effects of a job outside the store must bear being repeated.
 */
#ifndef HOLDFAST_JOB_H
#define HOLDFAST_JOB_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- enqueue ----------------------------------------------------------------------- */

struct hf_job_spec {
    uint32_t size;
    const char *kind;    /* which code runs it; "hf." is reserved */
    const char *payload; /* JSON; NULL means null */
    const char *queue;   /* default "default" */
    hf_ms at;            /* not before this time; exclusive with delay_ms */
    hf_ms delay_ms;
    int priority;                /* 0 to 9; -1 for the default, 3 */
    const char *lane_key;        /* at most one running job a key */
    const char *dedup_key;       /* at most one unfinished job a key */
    hf_ms debounce_ms;           /* with dedup_key: see hf_job_enqueue */
    const char *idempotency_key; /* the same request again is the same job, for ever */
    int max_attempts;            /* 0: the policy's */
    const char *retry_policy;    /* JSON, see docs/ledger.md; NULL: the policy's */
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char *parent_work_id;
    const char *ref;
    const char *limit_key; /* these four as in struct hf_work_spec */
    const char *rate_key;
    const char *fair_key;
    int fair_weight;
};

/* The input check of hf_job_enqueue: needs no store. HF_EINVAL, HF_ETOOBIG and HF_ENOMEM, as
 * hf_work_create. */
HF_API HF_MUST_USE int hf_job_check(const struct hf_job_spec *job, struct hf_err *err);

/* Enqueue one job. The answer's one item is the row; `created` is false where there is
 * already a job with the same dedup or idempotency key, which is then the answer.
 *
 * With debounce_ms the job is due that long after the last such call: an unstarted job with
 * the same dedup key is put off instead of making a second one. It keeps the payload of the
 * first call. One that has become due meanwhile is left as it is.
 *
 * HF_EINVAL names the field; HF_ECONFLICT: the idempotency key was used with other content. */
HF_API HF_MUST_USE int hf_job_enqueue(struct hf_store *store, const struct hf_caller *who,
                                      const struct hf_job_spec *job,
                                      struct hf_answer **ret_answer, struct hf_err *err);

/* ---- a running job ------------------------------------------------------------------ */

/* One execution, lent to the function that runs it until it returns. */
struct hf_job;

/* Why the code should stop, if it should. */
enum hf_job_stop {
    HF_JOB_GO_ON,
    HF_JOB_CANCELLED, /* cancelled, or a cancel is requested */
    HF_JOB_LOST,      /* the lease is gone or may be: nothing it does counts any more */
    HF_JOB_DRAINED    /* the pool's time to drain is up: stop, and it is handed back */
};

/* The values that a job's function returns; or a negative HF_E* code: it failed, and the code's
 * word is the error class by which the retry policy decides (HF_EINVAL and HF_ETOOBIG:
 * "validation"; HF_EPOLICY: "policy_denied"; these two are not tried again by default). */
enum hf_job_verdict {
    HF_JOB_DONE = 0,
    HF_JOB_LATER = 1,    /* continues without this thread; hf_pool_complete ends it */
    HF_JOB_FAILED = 2,   /* as said with hf_job_fail; the retry policy decides */
    HF_JOB_STOPPED = 3,  /* because of hf_job_stop: cancelled where that was asked,
                            otherwise handed back: no attempt */
    HF_JOB_HAND_BACK = 4 /* another worker shall do it; spends no attempt */
};

/* The row as it was claimed, and the token of its lease. They live as long as the job does,
 * with HF_JOB_LATER until it is complete. */
HF_API const struct hf_work *hf_job_work(const struct hf_job *job);
HF_API const char *hf_job_token(const struct hf_job *job);

/* Ask whether to stop. Does not block. Told at the next renewal: within a third of the
 * lease's term. */
HF_API enum hf_job_stop hf_job_stop(const struct hf_job *job);

/* Sleep up to `ms`, or until there is a reason to stop; returns that reason. */
HF_API enum hf_job_stop hf_job_sleep(struct hf_job *job, hf_ms ms);

/* Say how it failed; the class names the kind of failure for the retry policy. Returns
 * HF_JOB_FAILED, for the job to return. Texts are copied; a reason may be NULL. */
HF_API int hf_job_fail(struct hf_job *job, const char *error_class, const char *reason);

/* Say what came of it, for the row's result. Copied; a later call replaces it. HF_EINVAL,
 * HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_job_summary(struct hf_job *job, const char *summary,
                                      struct hf_err *err);

/* Add a piece of evidence for the row's close rule: a hash or a reference, at most
 * HF_MAX_REFS of them. Copied. HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_job_evidence(struct hf_job *job, const char *evidence,
                                       struct hf_err *err);

/* ---- a pool ------------------------------------------------------------------------ */

/* A kind of job and the code that runs it. */
struct hf_job_kind {
    uint32_t size;
    const char *name; /* of the kind; "*" runs every kind that has no entry of its own */
    /* Called on a thread of the pool's, several at once. Returns an hf_job_verdict or a
     * negative HF_E* code. */
    int (*run)(void *user, struct hf_job *job);
    void *user;
    size_t concurrency; /* of this kind in this pool at once, those that complete later
                           included; 0: no bound of its own */
    int max_attempts;   /* of jobs enqueued from now on; 0: by policy */
    const struct hf_policy
        *policy; /* stored by hf_pool_add as that of the kind; NULL: left */
};

/* Notifications of the pool. The truth is in the ledger. */
enum hf_pool_event_type {
    HF_POOL_CLAIMED,
    HF_POOL_STARTED,
    HF_POOL_ENDED, /* settled, or it waits: `status` is the row's. A job waits because its
                      code let it wait (HF_VERB_WAIT with hf_job_token), or because it is
                      done and its close rule asks for what it lacks. */
    HF_POOL_LOST,  /* the lease was lost, or its outcome refused */
    HF_POOL_ERROR  /* a call to the store failed; it is tried again */
};
struct hf_pool_event {
    enum hf_pool_event_type type;
    const struct hf_work *work; /* NULL for ERROR */
    const char *status; /* ENDED: done, failed, retry_scheduled, waiting_user, … */
    const struct hf_err *err; /* LOST and ERROR */
};
typedef void hf_pool_listener(void *user, const struct hf_pool_event *event);

#define HF_JOB_TTL_MS 30000 /* of leases, where no policy says */

struct hf_pool_options {
    uint32_t size;
    const char *owner;  /* NULL: "pool-HOST-PID"; one a pool */
    const char *queue;  /* default "default" */
    const char *tenant; /* actor's; NULL: "" */
    size_t threads;     /* 0: 4 */
    size_t batch; /* most jobs claimed at once and kept ready; 0: 100. A pool whose jobs
                          are slow claims no more than it can start. */
    size_t
        in_flight; /* most jobs held at once, those that complete later included; 0: 1000 */
    hf_ms ttl_ms; /* of leases; 0: by policy, HF_JOB_TTL_MS where there is none */
    hf_pool_listener
        *listener; /* called on the pool's threads, without locks; NULL: none */
    void *listener_user;
};

struct hf_pool_stats {
    int64_t claims; /* calls */
    int64_t claimed;
    int64_t started;
    int64_t done;
    int64_t failed; /* ended so */
    int64_t retried;
    int64_t handed_back;
    int64_t cancelled;
    int64_t lost;     /* leases lost and outcomes refused */
    int64_t renewals; /* leases renewed */
    int64_t errors;   /* failed calls to the store */
    int64_t ready;    /* claimed, not started */
    int64_t running;
    int64_t later;   /* to be completed by hf_pool_complete */
    int64_t waiting; /* ended so: their units wait for a person or an event */
};

struct hf_pool;

/* A pool over an open store, which must outlive it. Starts nothing. HF_EINVAL and HF_ETOOBIG
 * name the option; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_pool_new(struct hf_store *store,
                                   const struct hf_pool_options *options,
                                   struct hf_pool **ret_pool, struct hf_err *err);

/* Add a kind, before the start, and store its policy. HF_EINVAL: a reserved or bad name, or one
 * that is there already; HF_ETOOBIG: more kinds than one claim can name; HF_ENOMEM; and the errors
 * of a store for a policy. */
HF_API HF_MUST_USE int hf_pool_add(struct hf_pool *pool, const struct hf_job_kind *kind,
                                   struct hf_err *err);

/* Start claiming and running. HF_EINVAL: it was started before, or has no kind; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_pool_start(struct hf_pool *pool, struct hf_err *err);

/* How a job that returned HF_JOB_LATER ended: `verdict` as its function's, except LATER.
 * error_class, reason and summary may be NULL. All of it is copied. */
struct hf_job_end {
    uint32_t size;
    int verdict;
    const char *error_class;
    const char *reason;
    const char *summary;
    const char *const *evidence; /* added to what the job has */
    size_t evidence_count;
};
/* End such a job, from any thread. HF_EINVAL: the verdict is LATER, the id or the token is NULL, or
 * evidence is NULL with a count above 0; HF_ENOTFOUND: the pool has no such job that is still to be
 * completed; HF_ELEASELOST: the token is not this job's. An end that the ledger would refuse, such
 * as text over its bound, makes the job fail with the error class "invalid_result". */
HF_API HF_MUST_USE int hf_pool_complete(struct hf_pool *pool, const char *work_id,
                                        const char *token, const struct hf_job_end *end,
                                        struct hf_err *err);

/* Stop claiming, hand back jobs that have not been started, and let running ones end, renewing
 * their leases. After deadline_ms jobs that still run are asked to stop (HF_JOB_DRAINED), and
 * have grace_ms more. Returns how many did not end: they keep their leases, which others
 * take over when they lapse or this process has ended. The pool does not start again.
 * HF_EINVAL for a time that is negative or over the limit `duration_max_ms`. */
HF_API HF_MUST_USE int hf_pool_drain(struct hf_pool *pool, hf_ms deadline_ms,
                                     hf_ms grace_ms, size_t *ret_left,
                                     struct hf_err *err);

/* Reads the counters since hf_pool_new, and how many jobs the pool holds now. */
HF_API void hf_pool_stats(struct hf_pool *pool, struct hf_pool_stats *ret_stats);

/* Drains with no time given, waits for the functions that still run (they are asked to stop),
 * and frees the pool. Jobs that were to complete later keep their leases until these lapse.
 * NULL is fine. */
HF_API void hf_pool_free(struct hf_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
