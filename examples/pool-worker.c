/* pool-worker STORE QUEUE
 *
 * A pool of four threads that runs jobs of three kinds from QUEUE:
 *
 *   print  prints its payload
 *   sleep  sleeps for its payload's milliseconds, or until it is told to stop
 *   shaky  fails at its first attempt, and is tried again by its policy
 *
 * SIGTERM and SIGINT drain it: what has not begun goes back at once, what runs has five
 * seconds, then it is told to stop. If the process dies instead, others prove its death by
 * its pid and go on at once.
 *
 *   cc pool-worker.c $(pkg-config --cflags --libs holdfast) -pthread -o pool-worker */
#define _POSIX_C_SOURCE 200809L /* also under -std=c11 */

#include <holdfast/job.h>
#include <holdfast/store.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DRAIN_MS 5000
#define GRACE_MS 1000

static int print_job(void *user, struct hf_job *job)
{
    const struct hf_work *work = hf_job_work(job);
    (void)user;
    (void)printf("print %s %s\n", work->work_id, work->payload ? work->payload : "null");
    return fflush(stdout) == 0 ? HF_JOB_DONE : HF_ESTOREIO;
}

static int sleep_job(void *user, struct hf_job *job)
{
    const struct hf_work *work = hf_job_work(job);
    (void)user;
    (void)printf("sleep %s\n", work->work_id);
    (void)fflush(stdout);
    if (!work->payload)
        return hf_job_fail(job, "validation", "a sleep needs its milliseconds");
    hf_ms ms = strtoll(work->payload, NULL, 10);
    return hf_job_sleep(job, ms) == HF_JOB_GO_ON ? HF_JOB_DONE : HF_JOB_STOPPED;
}

static int shaky_job(void *user, struct hf_job *job)
{
    (void)user;
    if (hf_job_work(job)->attempt_count == 1)
        return hf_job_fail(job, "transient_network", "it always fails at first");
    return HF_JOB_DONE;
}

/* Tells of what did not go well; what went well is in the ledger. */
static void listen_to(void *user, const struct hf_pool_event *event)
{
    (void)user;
    if (event->err)
        (void)fprintf(stderr, "pool-worker: %s\n", event->err->message);
}

static int add_all(struct hf_pool *pool, struct hf_err *err)
{
    const struct hf_policy soon = {
        .size = sizeof(soon),
        .grace_ms = -1,
        .retry_policy = "{\"initial_backoff_ms\":50,\"max_backoff_ms\":50}",
    };
    const struct hf_job_kind kinds[] = {
        { .size = sizeof(kinds[0]), .name = "print", .run = print_job },
        { .size = sizeof(kinds[0]), .name = "sleep", .run = sleep_job, .concurrency = 3 },
        { .size = sizeof(kinds[0]), .name = "shaky", .run = shaky_job, .policy = &soon },
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        rc = hf_pool_add(pool, &kinds[i], err);
    return rc;
}

int main(int argc, char **argv)
{
    struct hf_err err = { 0 };
    struct hf_store *store = NULL;
    struct hf_pool *pool = NULL;
    sigset_t ends;
    size_t left = 0;
    int signum;
    if (argc != 3) {
        (void)fprintf(stderr, "usage: pool-worker STORE QUEUE\n");
        return 2;
    }
    /* Before any thread is there, so that all leave these signals to sigwait. */
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    struct hf_pool_options options = { .size = sizeof(options),
                                       .queue = argv[2],
                                       .listener = listen_to };
    int rc = hf_store_open(argv[1], NULL, &store, &err);
    if (rc == 0)
        rc = hf_pool_new(store, &options, &pool, &err);
    if (rc == 0)
        rc = add_all(pool, &err);
    if (rc == 0)
        rc = hf_pool_start(pool, &err);
    if (rc == 0) {
        (void)sigwait(&ends, &signum);
        rc = hf_pool_drain(pool, DRAIN_MS, GRACE_MS, &left, &err);
    }
    if (rc)
        (void)fprintf(stderr, "pool-worker: %s\n", err.message);
    hf_pool_free(pool);
    hf_store_close(store);
    return hf_err_exit(rc);
}
