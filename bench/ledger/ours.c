/* The ledger through the public library, as a host would measure it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/submit.h>

#include "base/err.h"
#include "bench.h"

const struct bench_raw *bench_raw(const struct bench *bench)
{
    return bench->postgres ? &bench_raw_pg : &bench_raw_lite;
}

static void remove_files(const char *path)
{
    static const char *const tails[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        char file[600];
        (void)snprintf(file, sizeof file, "%s%s", path, tails[i]);
        (void)unlink(file); /* it need not exist */
    }
}

/* A new store: what was there before is removed. */
int bench_open(struct bench *bench, enum bench_place place, struct hf_store **ret_store)
{
    int rc = bench->postgres ? bench_pg_drop(bench, place) : 0;
    if (rc)
        return rc;
    if (!bench->postgres)
        remove_files(bench->url[place]);
    return hf_store_open(bench->url[place], NULL, ret_store, &bench->err);
}

struct hf_work_spec bench_job(char id[64], const char *prefix, size_t i)
{
    (void)snprintf(id, 64, "%s%zu", prefix, i);
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = id,
                                  .kind = "bench",
                                  .payload = "{\"n\":1}",
                                  .disposition = HF_DISPOSITION_RERUNNABLE,
                                  .priority = -1 };
}

/* Creates units `first` to `first + n - 1` of the prefix by one call. */
static int create(struct hf_store *store, const char *prefix, size_t first, size_t n,
                  bool finished, struct hf_err *err)
{
    struct hf_work_spec news[BENCH_BATCH];
    char ids[BENCH_BATCH][64];
    struct hf_answer *answer;
    for (size_t i = 0; i < n; i++) {
        news[i] = bench_job(ids[i], prefix, first + i);
        news[i].detached = finished;
    }
    int rc = hf_work_create(store, NULL, news, n, HF_BRIEF, &answer, err);
    if (rc == 0)
        hf_answer_free(answer);
    return rc;
}

int bench_fill(struct bench *bench, struct hf_store *store, const char *prefix,
               size_t count, bool finished)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count && !bench_stopped(); i += BENCH_BATCH)
        rc = create(store, prefix, i, BENCH_BATCH, finished, &bench->err);
    return rc;
}

static int close_all(struct hf_store *store, const struct hf_answer *claimed,
                     struct hf_err *err)
{
    struct hf_change changes[BENCH_BATCH];
    struct hf_answer *closed;
    size_t n = hf_answer_count(claimed);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(claimed, i);
        changes[i] = (struct hf_change){ .size = sizeof changes[0],
                                         .verb = HF_VERB_CLOSE_OUT,
                                         .id = item->work.work_id,
                                         .token = item->token,
                                         .status = HF_STATUS_DONE };
    }
    int rc = hf_work_change(store, NULL, changes, n, HF_BRIEF, &closed, err);
    if (rc)
        return rc;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = hf_answer_at(closed, i)->code;
    hf_answer_free(closed);
    return rc ? hf_fail(err, rc, NULL, "a close-out was refused") : 0;
}

int bench_take(struct hf_store *store, size_t *ret_count, double took[2],
               struct hf_err *err)
{
    struct hf_claim claim = {
        .size = sizeof claim, .owner = "bench", .limit = BENCH_BATCH, .ttl_ms = 30000
    };
    struct hf_answer *claimed;
    double start = bench_seconds();
    int rc = hf_work_claim(store, NULL, &claim, &claimed, err);
    if (rc)
        return rc;
    double middle = bench_seconds();
    *ret_count = hf_answer_count(claimed);
    if (*ret_count > 0)
        rc = close_all(store, claimed, err);
    if (took) {
        took[0] = middle - start;
        took[1] = bench_seconds() - middle;
    }
    hf_answer_free(claimed);
    return rc;
}

/* ---- create: threads with one create in flight each ---------------------------------- */

struct caller {
    struct hf_store *store;
    size_t jobs;
    char prefix[32];
    int rc;
    struct hf_err err;
    pthread_t thread;
};

static void *create_each(void *arg)
{
    struct caller *caller = arg;
    for (size_t i = 0; caller->rc == 0 && i < caller->jobs; i++)
        caller->rc = create(caller->store, caller->prefix, i, 1, false, &caller->err);
    return NULL;
}

static int create_by(struct bench *bench, struct hf_store *store, size_t callers,
                     size_t each)
{
    struct caller all[BENCH_CALLERS];
    size_t started = 0;
    int rc = 0;
    for (; rc == 0 && started < callers; started += rc == 0) {
        struct caller *one = &all[started];
        *one = (struct caller){ .store = store, .jobs = each };
        (void)snprintf(one->prefix, sizeof one->prefix, "c%zu-", started);
        if (pthread_create(&one->thread, NULL, create_each, one))
            rc = hf_fail(&bench->err, HF_ENOMEM, NULL, "no thread could be started");
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(all[i].thread, NULL);
        if (rc == 0 && all[i].rc)
            rc = hf_fail_as(&bench->err, all[i].rc, &all[i].err);
    }
    return rc;
}

static int create_rate(struct bench *bench, size_t callers, struct bench_pair *ret)
{
    struct hf_store *store;
    size_t each = bench->jobs / (callers == 1 ? 5 : callers);
    int rc = bench_raw(bench)->create(bench, callers, &ret->raw);
    if (rc == 0)
        rc = bench_open(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    for (size_t i = 0; rc == 0 && i < BENCH_WARM_UP; i++)
        rc = create(store, "w", i, 1, false, &bench->err);
    double start = bench_seconds();
    if (rc == 0)
        rc = create_by(bench, store, callers, each);
    ret->ours = (double)(each * callers) / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

int bench_create_one(struct bench *bench, struct bench_pair *ret)
{
    return create_rate(bench, 1, ret);
}

int bench_create_many(struct bench *bench, struct bench_pair *ret)
{
    return create_rate(bench, BENCH_CALLERS, ret);
}

/* ---- process: claim 100, close out 100 ----------------------------------------------- */

static int drain(struct bench *bench, struct hf_store *store, double *ret_rate)
{
    size_t done = 0, n = 1;
    int rc = 0;
    double start = bench_seconds();
    for (; rc == 0 && n > 0; done += n)
        rc = bench_take(store, &n, NULL, &bench->err);
    *ret_rate = (double)done / (bench_seconds() - start);
    if (rc == 0 && done != bench->jobs)
        rc = hf_fail(&bench->err, HF_EINTERNAL, NULL, "%zu of %zu units were processed",
                     done, bench->jobs);
    return rc;
}

static int file_bytes(struct bench *bench, double *ret_bytes)
{
    struct stat at;
    if (stat(bench->url[BENCH_OURS], &at))
        return hf_fail(&bench->err, HF_ESTOREIO, NULL, "the scratch file is gone");
    *ret_bytes = (double)at.st_size;
    return 0;
}

/* Both figures of one run. */
static int process(struct bench *bench, struct bench_pair *ret_rate,
                   struct bench_pair *ret_kept)
{
    struct hf_store *store;
    int rc = bench_raw(bench)->process(bench, &ret_rate->raw, &ret_kept->raw);
    if (rc == 0)
        rc = bench_open(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    rc = bench_fill(bench, store, "p", bench->jobs, false);
    if (rc == 0)
        rc = drain(bench, store, &ret_rate->ours);
    hf_store_close(store); /* from here on a file is complete without its log */
    if (rc == 0)
        rc = bench->postgres ? bench_pg_kept(bench, BENCH_OURS, &ret_kept->ours)
                             : file_bytes(bench, &ret_kept->ours);
    ret_kept->ours /= (double)bench->jobs;
    return rc;
}

int bench_process(struct bench *bench, struct bench_pair *ret)
{
    struct bench_pair kept;
    return process(bench, ret, &kept);
}

int bench_kept(struct bench *bench, struct bench_pair *ret)
{
    struct bench_pair rate;
    return process(bench, &rate, ret);
}

/* ---- callers that submit -------------------------------------------------------------- */

struct submitting {
    struct bench_crowd *crowd;
    size_t jobs, next;
    char prefix[32], id[64];
    struct hf_work_spec job;
};

struct bench_crowd {
    struct hf_submitter *submitter;
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t busy; /* callers that are not through */
    int rc;      /* of the first that failed */
    struct hf_err err;
    struct submitting callers[BENCH_CALLERS];
};

static void leave(struct bench_crowd *crowd, int rc, const struct hf_err *err)
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

static void submit_next(struct submitting *caller);

static void submitted(void *user, const struct hf_submitted *outcome)
{
    struct submitting *caller = user;
    if (outcome->code == 0 && caller->next < caller->jobs)
        submit_next(caller);
    else
        leave(caller->crowd, outcome->code, outcome->err);
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
        leave(caller->crowd, rc, &err);
}

int bench_crowd_start(struct bench *bench, struct hf_store *store, size_t callers,
                      size_t each, struct bench_crowd **ret_crowd)
{
    struct bench_crowd *crowd = calloc(1, sizeof *crowd);
    if (!crowd)
        return hf_fail_plain(&bench->err, HF_ENOMEM);
    crowd->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    crowd->over = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    crowd->busy = callers;
    int rc = hf_submitter_open(store, NULL, &crowd->submitter, &bench->err);
    if (rc) {
        free(crowd);
        return rc;
    }
    for (size_t i = 0; i < callers; i++) {
        struct submitting *caller = &crowd->callers[i];
        *caller = (struct submitting){ .crowd = crowd, .jobs = each };
        (void)snprintf(caller->prefix, sizeof caller->prefix, "s%zu-", i);
        submit_next(caller);
    }
    *ret_crowd = crowd;
    return 0;
}

bool bench_crowd_failed(struct bench_crowd *crowd)
{
    (void)pthread_mutex_lock(&crowd->lock);
    bool failed = crowd->rc != 0;
    (void)pthread_mutex_unlock(&crowd->lock);
    return failed;
}

int bench_crowd_end(struct bench *bench, struct bench_crowd *crowd)
{
    (void)pthread_mutex_lock(&crowd->lock);
    while (crowd->busy > 0)
        (void)pthread_cond_wait(&crowd->over, &crowd->lock);
    (void)pthread_mutex_unlock(&crowd->lock);
    hf_submitter_close(crowd->submitter);
    int rc = hf_fail_as(&bench->err, crowd->rc, &crowd->err);
    free(crowd);
    return rc;
}

/* One of the 16 callers takes and finishes batches, the others submit a unit at a time. */
int bench_end_to_end(struct bench *bench, struct bench_pair *ret)
{
    struct bench_crowd *crowd;
    struct hf_store *store;
    size_t each = bench->jobs / (BENCH_CALLERS - 1), done = 0, n = 0;
    size_t total = each * (BENCH_CALLERS - 1);
    int rc = bench_raw(bench)->end_to_end(bench, &ret->raw);
    if (rc == 0)
        rc = bench_open(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    double start = bench_seconds();
    rc = bench_crowd_start(bench, store, BENCH_CALLERS - 1, each, &crowd);
    if (rc == 0) {
        struct hf_err err = { 0 };
        for (; rc == 0 && done < total && !bench_crowd_failed(crowd); done += n)
            rc = bench_take(store, &n, NULL, &err);
        int submit_rc = bench_crowd_end(bench, crowd);
        rc = rc ? hf_fail_as(&bench->err, rc, &err) : submit_rc;
    }
    ret->ours = (double)total / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

/* ---- a claim next to many finished rows ------------------------------------------------ */

enum { CLAIMS = 31 };

/* A claim of 100 in both stores in turn, so that a disturbance of the machine meets both. */
static int claim_in_turn(struct bench *bench, struct hf_store *const stores[2],
                         struct bench_pair *ret)
{
    double took[2][CLAIMS], each[2];
    size_t n;
    int rc = 0;
    for (size_t i = 0; i < CLAIMS; i++)
        for (size_t s = 0; rc == 0 && s < 2; s++) {
            rc = bench_take(stores[s], &n, each, &bench->err);
            took[s][i] = each[0] * 1e6;
        }
    if (rc == 0)
        *ret = (struct bench_pair){ .raw = bench_median(took[0], CLAIMS),
                                    .ours = bench_median(took[1], CLAIMS) };
    return rc;
}

int bench_growth(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *stores[2] = { NULL, NULL };
    size_t n;
    int rc = bench_open(bench, BENCH_OURS, &stores[0]);
    if (rc == 0)
        rc = bench_open(bench, BENCH_LARGE, &stores[1]);
    if (rc == 0)
        rc = bench_fill(bench, stores[1], "f", bench->finished, true);
    for (size_t s = 0; rc == 0 && s < 2; s++) {
        rc = bench_fill(bench, stores[s], "r", (CLAIMS + 1) * BENCH_BATCH, false);
        if (rc == 0) /* the first claim of a session plans and is not counted */
            rc = bench_take(stores[s], &n, NULL, &bench->err);
    }
    if (rc == 0)
        rc = claim_in_turn(bench, stores, ret);
    hf_store_close(stores[0]);
    hf_store_close(stores[1]);
    return rc;
}
