/* Pick-up by another process, and what a claim costs in a large table. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench.h"

#define SAMPLES 200
#define A_ROUND 20 /* pick-ups of one kind, before the other's turn */
#define BATCH 100

/* ---- pick-up ----------------------------------------------------------------------- */

static bool send_time(int fd)
{
    double now = bench_seconds();
    return write(fd, &now, sizeof now) == (ssize_t)sizeof now;
}

/* The other process: waits for work, says when it had it, finishes it. */
static int serve(const char *path, int fd)
{
    struct hf_store *store;
    struct hf_err err;
    if (hf_store_open(path, NULL, &store, &err) || !send_time(fd))
        return 1;
    for (int i = 0; i < SAMPLES; i++) {
        struct hf_claim claim = {
            .size = sizeof claim, .owner = "other", .ttl_ms = 30000, .wait_ms = 10000
        };
        struct hf_answer *answer, *closed;
        if (hf_work_claim(store, NULL, &claim, &answer, &err) ||
            hf_answer_count(answer) != 1 || !send_time(fd))
            return 1;
        const struct hf_item *item = hf_answer_at(answer, 0);
        struct hf_change change = { .size = sizeof change,
                                    .verb = HF_VERB_CLOSE_OUT,
                                    .id = item->work.work_id,
                                    .token = item->token,
                                    .status = HF_DONE };
        if (hf_work_change(store, NULL, &change, 1, HF_BRIEF, &closed, &err))
            return 1;
        hf_answer_free(closed);
        hf_answer_free(answer);
        if (!send_time(fd)) /* idle again: the next sample may come */
            return 1;
    }
    hf_store_close(store);
    return 0;
}

static bool read_time(int fd, double *ret_time)
{
    return read(fd, ret_time, sizeof *ret_time) == (ssize_t)sizeof *ret_time;
}

/* One unit at a time, each when the other process is idle and waiting. */
static int sample_round(struct bench *bench, struct hf_store *store, int fd, size_t first,
                        double *took)
{
    double at;
    bool good = true;
    for (size_t i = first; good && i < first + A_ROUND; i++) {
        char id[64];
        struct hf_new job = bench_job(id, "pick-", i);
        struct hf_answer *answer;
        /* Until the other has fallen asleep; a server's bell rings at most every 5 ms. */
        struct timespec pause = { 0, bench->url ? BENCH_PG_IDLE_NS : BENCH_IDLE_NS };
        (void)nanosleep(&pause, NULL);
        double start = bench_seconds();
        int rc = hf_work_create(store, NULL, &job, 1, HF_BRIEF, &answer, bench->err);
        if (rc)
            return rc;
        hf_answer_free(answer);
        good = read_time(fd, &at);
        took[i] = (at - start) * 1e3;
        good = good && read_time(fd, &at);
    }
    return good ? 0 : hf_fail(bench->err, HF_EINTERNAL, NULL, "the other process ended");
}

/* In turn with the raw program, or with the two syncs that it takes, since the machine's speed
 * drifts. */
static int sample_all(struct bench *bench, struct hf_store *store, int fd, double *took,
                      double *raw)
{
    double at;
    struct bench_pg_picker *picker = NULL;
    int rc = read_time(fd, &at)
                 ? 0
                 : hf_fail(bench->err, HF_EINTERNAL, NULL, "the other process ended");
    if (rc == 0 && bench->url)
        rc = bench_pg_picker_new(bench, &picker);
    for (size_t i = 0; rc == 0 && i < SAMPLES; i += A_ROUND) {
        rc = bench->url ? bench_pg_pick(picker, A_ROUND, raw + i)
                        : bench_sync_pairs(bench, A_ROUND, raw + i);
        if (rc == 0)
            rc = sample_round(bench, store, fd, i, took);
    }
    bench_pg_picker_free(picker);
    return rc;
}

static struct bench_latency latency_of(double *took)
{
    qsort(took, SAMPLES, sizeof took[0], bench_by_value);
    return (struct bench_latency){ took[SAMPLES / 2], took[SAMPLES * 99 / 100] };
}

/* The child's end of the pipe is its own; the parent's is closed here. */
static int with_child(struct bench *bench, int fds[2], double *took, double *raw)
{
    char path[320];
    struct hf_store *store;
    bench_path(bench, "ledger.db", path);
    pid_t child = fork();
    if (child == 0) {
        (void)close(fds[0]);
        _exit(serve(path, fds[1]));
    }
    (void)close(fds[1]);
    int rc = child < 0
                 ? hf_fail(bench->err, HF_EINTERNAL, NULL, "no process could be had")
                 : hf_store_open(path, NULL, &store, bench->err);
    if (rc == 0) {
        rc = sample_all(bench, store, fds[0], took, raw);
        hf_store_close(store);
    }
    (void)close(fds[0]);
    if (child > 0) {
        if (rc)
            (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return rc;
}

int bench_pickup(struct bench *bench, struct bench_latency *ret_latency,
                 struct bench_latency *ret_raw)
{
    double took[SAMPLES], raw[SAMPLES];
    int fds[2];
    struct hf_store *store;
    int rc = bench_open(bench, "ledger.db", &store);
    if (rc)
        return rc;
    hf_store_close(store); /* a fork must not share a handle */
    if (pipe(fds))
        return hf_fail(bench->err, HF_EINTERNAL, NULL, "no pipe could be had");
    rc = with_child(bench, fds, took, raw);
    if (rc == 0)
        *ret_latency = latency_of(took);
    if (rc == 0)
        *ret_raw = latency_of(raw);
    return rc;
}

/* ---- growth ------------------------------------------------------------------------ */

enum fill { READY, FINISHED, FUTURE, BLOCKED };

static int fill(struct bench *bench, struct hf_store *store, enum fill what, size_t count)
{
    static const char *const prefixes[] = { "r-", "f-", "u-", "b-" };
    for (size_t i = 0; i < count; i += BATCH) {
        struct hf_new news[BATCH];
        char ids[BATCH][64];
        struct hf_answer *answer;
        for (size_t k = 0; k < BATCH; k++) {
            news[k] = bench_job(ids[k], prefixes[what], i + k);
            news[k].detached = what == FINISHED;
            news[k].delay_ms = what == FUTURE ? 86400000 : 0;
            news[k].lane_key = what == BLOCKED ? "one lane" : NULL;
        }
        int rc = hf_work_create(store, NULL, news, BATCH, HF_BRIEF, &answer, bench->err);
        if (rc)
            return rc;
        hf_answer_free(answer);
        if (i % 100000 == 0 && i > 0)
            cli_note(bench->cli, "  %zu of %zu rows", i, count);
    }
    return 0;
}

enum { ROUNDS = 31 };

struct sample {
    double claims[ROUNDS];
    double closes[ROUNDS];
};

/* One claim of 100 and its close-out, each timed. */
static int measure_once(struct bench *bench, struct hf_store *store, int round,
                        struct sample *sample)
{
    struct hf_claim claim = {
        .size = sizeof claim, .owner = "bench", .limit = BATCH, .ttl_ms = 30000
    };
    struct hf_change changes[BATCH];
    struct hf_answer *claimed, *closed;
    double start = bench_seconds();
    int rc = hf_work_claim(store, NULL, &claim, &claimed, bench->err);
    if (rc)
        return rc;
    sample->claims[round] = (bench_seconds() - start) * 1e6;
    size_t n = hf_answer_count(claimed);
    for (size_t k = 0; k < n; k++)
        changes[k] = (struct hf_change){ .size = sizeof changes[0],
                                         .verb = HF_VERB_CLOSE_OUT,
                                         .id = hf_answer_at(claimed, k)->work.work_id,
                                         .token = hf_answer_at(claimed, k)->token,
                                         .status = HF_DONE };
    start = bench_seconds();
    rc = hf_work_change(store, NULL, changes, n, HF_BRIEF, &closed, bench->err);
    sample->closes[round] = (bench_seconds() - start) * 1e6;
    if (rc == 0)
        hf_answer_free(closed);
    hf_answer_free(claimed);
    return rc;
}

static struct bench_cost medians(struct sample *sample)
{
    qsort(sample->claims, ROUNDS, sizeof(double), bench_by_value);
    qsort(sample->closes, ROUNDS, sizeof(double), bench_by_value);
    return (struct bench_cost){ sample->claims[ROUNDS / 2], sample->closes[ROUNDS / 2] };
}

static int fill_large(struct bench *bench, struct hf_store *store, size_t finished)
{
    int rc = fill(bench, store, FINISHED, finished);
    if (rc == 0)
        rc = fill(bench, store, FUTURE, finished / 10);
    return rc ? rc : fill(bench, store, BLOCKED, finished / 10);
}

/* Both tables in turn, so that a disturbance of the machine meets both. The first round,
 * which also takes the lane's head, is not counted. */
int bench_growth(struct bench *bench, size_t finished, struct bench_cost *ret_empty,
                 struct bench_cost *ret_full)
{
    struct hf_store *stores[2] = { NULL, NULL };
    struct sample samples[2], warm;
    int rc = bench_open(bench, "ledger.db", &stores[0]);
    if (rc == 0)
        rc = bench_open(bench, "large.db", &stores[1]);
    if (rc == 0)
        rc = fill_large(bench, stores[1], finished);
    for (int s = 0; rc == 0 && s < 2; s++) {
        rc = fill(bench, stores[s], READY, (ROUNDS + 1) * BATCH);
        if (rc == 0)
            rc = measure_once(bench, stores[s], 0, &warm);
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int s = 0; rc == 0 && s < 2; s++)
            rc = measure_once(bench, stores[s], i, &samples[s]);
    if (rc == 0) {
        *ret_empty = medians(&samples[0]);
        *ret_full = medians(&samples[1]);
    }
    hf_store_close(stores[0]);
    hf_store_close(stores[1]);
    return rc;
}
