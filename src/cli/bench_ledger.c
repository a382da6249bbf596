/* The ledger through the public library: what a host would measure. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/submit.h>

#include "cli/bench.h"

#define A_CLAIM 100
#define A_CALL_MOST 500 /* that one call creates */

void bench_path(const struct bench *bench, const char *name, char out[320])
{
    if (bench->url)
        (void)snprintf(out, 320, "%s", bench->url);
    else
        (void)snprintf(out, 320, "%s/%s", bench->folder, name);
}

static void remove_store(const struct bench *bench, const char *name)
{
    static const char *const tails[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        char file[64], path[320];
        (void)snprintf(file, sizeof file, "%s%s", name, tails[i]);
        bench_path(bench, file, path);
        (void)unlink(path);
    }
}

int bench_open(struct bench *bench, const char *name, struct hf_store **ret_store)
{
    char path[320];
    int rc = bench->url ? bench_pg_scratch(bench) : 0;
    if (rc)
        return rc;
    if (!bench->url)
        remove_store(bench, name);
    bench_path(bench, name, path);
    return hf_store_open(path, NULL, ret_store, bench->err);
}

struct hf_new bench_job(char id[64], const char *prefix, size_t i)
{
    (void)snprintf(id, 64, "%s%zu", prefix, i);
    return (struct hf_new){ .size = sizeof(struct hf_new),
                            .source = HF_SOURCE_MANUAL,
                            .source_id = id,
                            .kind = "bench",
                            .payload = "{\"n\":1}",
                            .disposition = HF_RERUNNABLE,
                            .priority = -1 };
}

/* ---- callers: threads with one operation in flight each ------------------------------ */

struct run {
    struct hf_store *store;
    size_t a_call;
    size_t jobs; /* of this caller */
    int number;
    struct e2e *e2e;
    int rc;
    struct hf_err err;
    pthread_t thread;
};

static int create_some(struct run *run, size_t first, size_t n)
{
    struct hf_new news[A_CALL_MOST];
    char ids[A_CALL_MOST][64], prefix[16];
    struct hf_answer *answer;
    (void)snprintf(prefix, sizeof prefix, "c%d-", run->number);
    for (size_t i = 0; i < n; i++)
        news[i] = bench_job(ids[i], prefix, first + i);
    int rc = hf_work_create(run->store, NULL, news, n, HF_BRIEF, &answer, &run->err);
    if (rc == 0)
        hf_answer_free(answer);
    return rc;
}

static void *producer(void *arg)
{
    struct run *run = arg;
    for (size_t i = 0; run->rc == 0 && i < run->jobs; i += run->a_call)
        run->rc = create_some(run, i, run->a_call);
    return NULL;
}

/* Claim up to 100 and close them out, in one batch each. Gives how many. */
static int process_some(struct run *run, size_t *ret_count)
{
    struct hf_claim claim = {
        .size = sizeof claim, .owner = "bench", .limit = A_CLAIM, .ttl_ms = 30000
    };
    struct hf_change changes[A_CLAIM];
    struct hf_answer *claimed, *closed;
    int rc = hf_work_claim(run->store, NULL, &claim, &claimed, &run->err);
    if (rc)
        return rc;
    size_t n = hf_answer_count(claimed);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(claimed, i);
        changes[i] = (struct hf_change){ .size = sizeof changes[0],
                                         .verb = HF_VERB_CLOSE_OUT,
                                         .id = item->work.work_id,
                                         .token = item->token,
                                         .status = HF_DONE };
    }
    if (n > 0)
        rc = hf_work_change(run->store, NULL, changes, n, HF_BRIEF, &closed, &run->err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (hf_answer_at(closed, i)->code)
            rc = hf_answer_at(closed, i)->code;
    if (rc == 0 && n > 0)
        hf_answer_free(closed);
    hf_answer_free(claimed);
    *ret_count = n;
    return rc;
}

static int start_all(struct bench *bench, struct run *runs, size_t n,
                     void *(*main)(void *))
{
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&runs[i].thread, NULL, main, &runs[i]))
            return hf_fail(bench->err, HF_ENOMEM, NULL, "no thread could be had");
    return 0;
}

static int join_all(struct bench *bench, struct run *runs, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        (void)pthread_join(runs[i].thread, NULL);
        if (runs[i].rc && !rc) {
            rc = runs[i].rc;
            *bench->err = runs[i].err;
        }
    }
    return rc;
}

static int warm_up(struct bench *bench, struct hf_store *store)
{
    struct run run = { .store = store, .a_call = 1, .jobs = BENCH_WARM_UP, .number = -1 };
    (void)producer(&run);
    *bench->err = run.err;
    return run.rc;
}

int bench_enqueue(struct bench *bench, size_t callers, size_t a_call, double *ret_rate)
{
    struct run runs[64];
    struct hf_store *store;
    size_t jobs = callers == 1 && a_call == 1 ? bench->jobs / 5 : bench->jobs;
    size_t each = jobs / callers / a_call * a_call;
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    for (size_t i = 0; i < callers; i++)
        runs[i] = (struct run){
            .store = store, .a_call = a_call, .jobs = each, .number = (int)i
        };
    if (callers == 1 && a_call == 1 && !bench->url)
        rc = warm_up(bench, store);
    double start = bench_seconds();
    if (rc == 0 && callers == 1) {
        (void)producer(&runs[0]);
        rc = runs[0].rc;
        *bench->err = runs[0].err;
    } else if (rc == 0) {
        rc = start_all(bench, runs, callers, producer);
        if (rc == 0)
            rc = join_all(bench, runs, callers);
    }
    *ret_rate = (double)(each * callers) / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

static double file_bytes(const struct bench *bench, const char *name)
{
    char path[320];
    struct stat at;
    bench_path(bench, name, path);
    return stat(path, &at) == 0 ? (double)at.st_size : 0;
}

int bench_process(struct bench *bench, double *ret_rate)
{
    struct hf_store *store;
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    struct run run = { .store = store, .a_call = A_CLAIM, .jobs = bench->jobs };
    double wal[3] = { 0 };
    if (bench->url) /* from here on, as the raw program does: tables are made before */
        run.rc = bench_pg_wal(bench, &wal[0]);
    (void)producer(&run);
    if (run.rc == 0 && bench->url)
        run.rc = bench_pg_wal(bench, &wal[1]);
    size_t done = 0, n = 1;
    double start = bench_seconds();
    while (run.rc == 0 && n > 0) {
        run.rc = process_some(&run, &n);
        done += n;
    }
    *ret_rate = (double)done / (bench_seconds() - start);
    if (run.rc == 0 && bench->url)
        run.rc = bench_pg_wal(bench, &wal[2]);
    bench->wal_create = (wal[1] - wal[0]) / (double)bench->jobs;
    bench->wal_drain = (wal[2] - wal[1]) / (double)bench->jobs;
    hf_store_close(store); /* a file has all of it now */
    bench->kept = file_bytes(bench, "ledger.db") / (double)bench->jobs;
    *bench->err = run.err;
    if (run.rc == 0 && done != bench->jobs / A_CLAIM * A_CLAIM)
        return hf_fail(bench->err, HF_EINTERNAL, NULL, "%zu of %zu jobs were processed",
                       done, bench->jobs);
    return run.rc;
}

/* ---- several processes -------------------------------------------------------------- */

static int work_in_child(const char *path)
{
    struct run run = { 0 };
    size_t n = 1;
    if (hf_store_open(path, NULL, &run.store, NULL))
        return 1;
    while (run.rc == 0 && n > 0)
        run.rc = process_some(&run, &n);
    hf_store_close(run.store);
    return run.rc ? 1 : 0;
}

int bench_workers(struct bench *bench, size_t workers, double *ret_rate)
{
    struct hf_store *store;
    pid_t children[64];
    char path[320];
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    struct run run = { .store = store, .a_call = A_CLAIM, .jobs = bench->jobs };
    (void)producer(&run);
    hf_store_close(store); /* a fork must not share a handle */
    bench_path(bench, "ledger.db", path);
    double start = bench_seconds();
    for (size_t i = 0; i < workers; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(work_in_child(path));
    }
    bool good = run.rc == 0;
    for (size_t i = 0; i < workers; i++) {
        int status = 0;
        good = children[i] > 0 && waitpid(children[i], &status, 0) == children[i] &&
               status == 0 && good;
    }
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    return good ? 0 : hf_fail(bench->err, HF_EINTERNAL, NULL, "a worker failed");
}

/* ---- submitting callers: one operation in flight each, no thread of their own ---------- */

struct crowd {
    struct hf_submitter *submitter;
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t busy; /* callers that are not through */
    int rc;
    struct hf_err err;
};

struct submitting {
    struct crowd *crowd;
    size_t jobs, next;
    char prefix[32], id[64];
    struct hf_new job;
};

static void submit_next(struct submitting *caller);

static void leave_crowd(struct crowd *crowd, int rc, const struct hf_err *err)
{
    (void)pthread_mutex_lock(&crowd->lock);
    if (rc && !crowd->rc) {
        crowd->rc = rc;
        crowd->err = *err;
    }
    crowd->busy--;
    (void)pthread_cond_signal(&crowd->over);
    (void)pthread_mutex_unlock(&crowd->lock);
}

static void submitted(void *user, const struct hf_submitted *outcome)
{
    struct submitting *caller = user;
    if (outcome->code == 0 && caller->next < caller->jobs)
        submit_next(caller);
    else
        leave_crowd(caller->crowd, outcome->code, outcome->err);
}

static void submit_next(struct submitting *caller)
{
    struct hf_err err;
    caller->job = bench_job(caller->id, caller->prefix, caller->next++);
    struct hf_operation operation = {
        .size = sizeof operation, .create = &caller->job, .n = 1, .flags = HF_BRIEF
    };
    int rc = hf_submit(caller->crowd->submitter, &operation, submitted, caller, &err);
    if (rc)
        leave_crowd(caller->crowd, rc, &err);
}

static int crowd_start(struct crowd *crowd, struct hf_store *store,
                       struct submitting *callers, size_t n, size_t each)
{
    *crowd = (struct crowd){ .busy = n };
    if (pthread_mutex_init(&crowd->lock, NULL) || pthread_cond_init(&crowd->over, NULL))
        return hf_fail(&crowd->err, HF_ENOMEM, NULL, "no lock could be had");
    int rc = hf_submitter_open(store, NULL, &crowd->submitter, &crowd->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        callers[i] = (struct submitting){ .crowd = crowd, .jobs = each };
        (void)snprintf(callers[i].prefix, sizeof callers[i].prefix, "s%zu-", i);
        submit_next(&callers[i]);
    }
    return rc;
}

static int crowd_wait(struct bench *bench, struct crowd *crowd)
{
    (void)pthread_mutex_lock(&crowd->lock);
    while (crowd->busy > 0)
        (void)pthread_cond_wait(&crowd->over, &crowd->lock);
    (void)pthread_mutex_unlock(&crowd->lock);
    hf_submitter_close(crowd->submitter);
    (void)pthread_cond_destroy(&crowd->over);
    (void)pthread_mutex_destroy(&crowd->lock);
    if (crowd->rc)
        *bench->err = crowd->err;
    return crowd->rc;
}

int bench_submit(struct bench *bench, size_t callers, double *ret_rate)
{
    struct submitting all[64];
    struct crowd crowd;
    struct hf_store *store;
    size_t each = bench->jobs / callers;
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    double start = bench_seconds();
    rc = crowd_start(&crowd, store, all, callers, each);
    if (rc == 0)
        rc = crowd_wait(bench, &crowd);
    else
        *bench->err = crowd.err;
    *ret_rate = (double)(each * callers) / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

/* ---- end to end: producers and a worker at once ----------------------------------------- */

struct e2e {
    atomic_size_t finished;
    size_t total;
};

static void *worker(void *arg)
{
    struct run *run = arg;
    while (run->rc == 0 && atomic_load(&run->e2e->finished) < run->e2e->total) {
        size_t n = 0;
        run->rc = process_some(run, &n);
        (void)atomic_fetch_add(&run->e2e->finished, n);
    }
    return NULL;
}

/* One caller takes and finishes batches, as the dispatcher of a process would; the others
 * submit one job at a time each. */
int bench_e2e(struct bench *bench, size_t callers, double *ret_rate)
{
    struct submitting producers[64];
    struct crowd crowd;
    struct hf_store *store;
    size_t each = bench->jobs / (callers - 1);
    struct e2e e2e = { .total = each * (callers - 1) };
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    struct run run = { .store = store, .e2e = &e2e };
    double start = bench_seconds();
    rc = crowd_start(&crowd, store, producers, callers - 1, each);
    if (rc)
        *bench->err = crowd.err;
    if (rc == 0) {
        (void)worker(&run);
        rc = crowd_wait(bench, &crowd);
    }
    *ret_rate = (double)e2e.total / (bench_seconds() - start);
    hf_store_close(store);
    if (rc == 0 && run.rc)
        *bench->err = run.err;
    return rc ? rc : run.rc;
}
