/* c-worker STORE QUEUE
 *
 * A worker: takes units from QUEUE, one at a time, and does work() for each. A second thread
 * renews the lease meanwhile. SIGTERM and SIGINT end it: the unit at hand is returned. If
 * the process dies instead, its pid in the claim lets others prove that, and go on at once.
 *
 *   cc c-worker.c $(pkg-config --cflags --libs holdfast) -pthread -o c-worker */
#define _POSIX_C_SOURCE 200809L /* also under -std=c11 */

#include <holdfast/store.h>
#include <holdfast/work.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 1000 /* how long a signal may go unseen while there is no work */

static volatile sig_atomic_t ended; /* by a signal */

/* One unit, as long as it is ours. */
struct job {
    struct hf_store *store;
    const struct hf_item *unit; /* the row, and the token that only we have */
    atomic_bool lost;           /* the lease: stop, and settle nothing */
    pthread_mutex_t mutex;
    pthread_cond_t over;
    bool done;
};

/* The work itself: yours to write. It looks at `ended` and `lost` where it can stop.
 * Returns NULL when all is done, otherwise the class of its failure. */
static const char *work(struct job *job)
{
    const struct hf_work *unit = &job->unit->work;
    if (ended || atomic_load(&job->lost))
        return "stopped";
    (void)printf("%s attempt %lld: %s\n", unit->work_id, (long long)unit->attempt_count,
                 unit->payload ? unit->payload : "null");
    return fflush(stdout) == 0 ? NULL : "service_unavailable";
}

/* Applies one change of the unit. Busy, or not known whether it was done: the same again,
 * which is never done twice. */
static int change(const struct job *job, struct hf_change wanted)
{
    struct hf_err err = { 0 };
    int rc = 0;
    wanted.size = sizeof(wanted);
    wanted.id = job->unit->work.work_id;
    wanted.token = job->unit->token;
    for (int tries = 0; tries < 10; tries++) {
        struct hf_answer *answer = NULL;
        rc = hf_work_change(job->store, NULL, &wanted, 1, HF_ALL_OR_NONE, &answer, &err);
        hf_answer_free(answer);
        if (rc == 0 || hf_err_class(rc) == HF_CLASS_TERMINAL)
            break;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    if (rc)
        (void)fprintf(stderr, "%s %s: %s\n", hf_verb_word(wanted.verb), wanted.id,
                      err.message);
    return rc;
}

/* The renewing thread: every third of the term, until the job is over or lost. */
static void *renew(void *user)
{
    struct job *job = user;
    hf_ms every = job->unit->work.lease_ttl_ms / 3;
    (void)pthread_mutex_lock(&job->mutex);
    while (!job->done && !atomic_load(&job->lost)) {
        struct timespec next;
        (void)clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += (long)(every % 1000) * 1000000;
        next.tv_sec += every / 1000 + next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!job->done && !pthread_cond_timedwait(&job->over, &job->mutex, &next)) {}
        if (job->done)
            break;
        (void)pthread_mutex_unlock(&job->mutex);
        if (change(job, (struct hf_change){ .verb = HF_VERB_RENEW }))
            atomic_store(&job->lost, true); /* or soon: no caller answers */
        (void)pthread_mutex_lock(&job->mutex);
    }
    (void)pthread_mutex_unlock(&job->mutex);
    return NULL;
}

/* Does the unit under its renewed lease, and settles it. */
static int do_unit(struct hf_store *store, const struct hf_item *unit)
{
    struct job job = { .store = store, .unit = unit };
    pthread_condattr_t attr;
    pthread_t renewer;
    (void)pthread_mutex_init(&job.mutex, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&job.over, &attr);
    const char *failure = "out_of_threads";
    if (pthread_create(&renewer, NULL, renew, &job) == 0) {
        failure = work(&job);
        (void)pthread_mutex_lock(&job.mutex);
        job.done = true;
        (void)pthread_cond_signal(&job.over);
        (void)pthread_mutex_unlock(&job.mutex);
        (void)pthread_join(renewer, NULL);
    }
    (void)pthread_cond_destroy(&job.over);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_destroy(&job.mutex);
    if (atomic_load(&job.lost))
        return 0; /* another caller's now; nothing of ours counts */
    if (!failure)
        return change(&job, (struct hf_change){ .verb = HF_VERB_CLOSE_OUT,
                                                .status = HF_STATUS_DONE,
                                                .summary = "printed" });
    if (ended)
        return change(&job, (struct hf_change){ .verb = HF_VERB_HAND_BACK,
                                                .reason = "the worker was ended" });
    return change(&job,
                  (struct hf_change){ .verb = HF_VERB_FAIL, .error_class = failure });
}

static void end(int signum)
{
    (void)signum;
    ended = 1;
}

int main(int argc, char **argv)
{
    struct hf_err err = { 0 };
    struct hf_store *store = NULL;
    char owner[64];
    if (argc != 3) {
        (void)fprintf(stderr, "usage: c-worker STORE QUEUE\n");
        return 2;
    }
    (void)signal(SIGTERM, end);
    (void)signal(SIGINT, end);
    (void)snprintf(owner, sizeof(owner), "c-worker-%d", (int)getpid());
    int rc = hf_store_open(argv[1], NULL, &store, &err);
    while (rc == 0 && !ended) {
        struct hf_claim claim = { .size = sizeof(claim),
                                  .owner = owner,
                                  .pid = getpid(),
                                  .queue = argv[2],
                                  .wait_ms = LOOK_MS };
        struct hf_answer *answer = NULL;
        rc = hf_work_claim(store, NULL, &claim, &answer, &err);
        if (rc == 0 && hf_answer_count(answer) > 0)
            (void)do_unit(store,
                          hf_answer_at(answer, 0)); /* it has said what went wrong */
        hf_answer_free(answer);
        /* Not known whether a unit is ours: to end is the proof that it is not. */
        if (hf_err_class(rc) == HF_CLASS_RETRYABLE)
            rc = 0;
    }
    if (rc)
        (void)fprintf(stderr, "c-worker: %s\n", err.message);
    hf_store_close(store);
    return hf_err_exit(rc);
}
