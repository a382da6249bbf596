/* What passes between processes: from a create in one until another has the unit, and from
 * the kill of a holder until a peer has its unit. A handle of a store does not outlive a
 * fork, so the children are forked before this process opens the store. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/job.h>

#include "base/err.h"
#include "bench.h"

#define SAMPLES 40         /* of ours and of raw, per round */
#define CHECK_SECONDS 0.01 /* between two looks at the pool's counters */
#define KILLS 5            /* per round */
#define HOLD_TTL_MS 600000 /* longer than any run: only a proof of death ends it */
#define WAIT_MS 20000

static bool send_time(int fd)
{
    double now = bench_seconds();
    return write(fd, &now, sizeof now) == (ssize_t)sizeof now;
}

static bool read_time(int fd, double *ret_time)
{
    return read(fd, ret_time, sizeof *ret_time) == (ssize_t)sizeof *ret_time;
}

static int claim_one(struct hf_store *store, const char *owner, hf_ms ttl_ms,
                     struct hf_answer **ret_claimed, struct hf_err *err)
{
    struct hf_claim claim = { .size = sizeof claim,
                              .owner = owner,
                              .pid = (int)getpid(),
                              .ttl_ms = ttl_ms,
                              .wait_ms = WAIT_MS };
    int rc = hf_work_claim(store, NULL, &claim, ret_claimed, err);
    if (rc == 0 && hf_answer_count(*ret_claimed) != 1) {
        hf_answer_free(*ret_claimed);
        rc = hf_fail(err, HF_EINTERNAL, NULL, "no unit came to the waiting claim");
    }
    return rc;
}

static int close_one(struct hf_store *store, struct hf_answer *claimed,
                     struct hf_err *err)
{
    const struct hf_item *item = hf_answer_at(claimed, 0);
    struct hf_change change = { .size = sizeof change,
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = item->work.work_id,
                                .token = item->token,
                                .status = HF_STATUS_DONE };
    struct hf_answer *closed;
    int rc = hf_work_change(store, NULL, &change, 1, HF_BRIEF, &closed, err);
    if (rc == 0)
        hf_answer_free(closed);
    hf_answer_free(claimed);
    return rc;
}

static int create_one(struct bench *bench, struct hf_store *store, const char *prefix,
                      size_t i)
{
    char id[64];
    struct hf_work_spec job = bench_job(id, prefix, i);
    struct hf_answer *answer;
    int rc = hf_work_create(store, NULL, &job, 1, HF_BRIEF, &answer, &bench->err);
    if (rc == 0)
        hf_answer_free(answer);
    return rc;
}

/* ---- the process that picks up -------------------------------------------------------- */

static int serve_claims(struct hf_store *store, int fd)
{
    struct hf_err err;
    struct hf_answer *claimed;
    for (int i = 0; i < SAMPLES; i++)
        if (claim_one(store, "other", 30000, &claimed, &err) || !send_time(fd) ||
            close_one(store, claimed, &err))
            return 1;
    return 0;
}

static int tell_start(void *user, struct hf_job *job)
{
    const int *fd = user;
    (void)job;
    return send_time(*fd) ? HF_JOB_DONE : HF_EINTERNAL;
}

static int serve_jobs(struct hf_store *store, int fd)
{
    struct hf_err err;
    struct hf_pool *pool;
    struct hf_pool_stats stats = { 0 };
    if (bench_pool_start(store, tell_start, &fd, &pool, &err))
        return 1;
    for (; stats.done < SAMPLES; hf_pool_stats(pool, &stats))
        bench_pause(CHECK_SECONDS);
    hf_pool_free(pool);
    return 0;
}

typedef int serve_fn(struct hf_store *store, int fd);

static _Noreturn void be_the_other(const struct bench *bench, serve_fn *serve, int fd)
{
    struct hf_store *store;
    struct hf_err err;
    if (hf_store_open(bench->url[BENCH_OURS], NULL, &store, &err) || !send_time(fd))
        _exit(1);
    int rc = serve(store, fd);
    hf_store_close(store);
    _exit(rc);
}

/* ---- the process that creates ---------------------------------------------------------- */

/* Each unit is created when the other process has closed out the one before and waits. */
static int pick_ups(struct bench *bench, struct hf_store *store, int fd,
                    struct bench_pair *ret)
{
    double ours[SAMPLES], raw[SAMPLES], at;
    bool good = read_time(fd, &at);
    int rc = good ? bench_raw(bench)->pickup(bench, SAMPLES, raw) : 0;
    for (size_t i = 0; rc == 0 && good && i < SAMPLES; i++) {
        bench_rest(bench);
        double start = bench_seconds();
        rc = create_one(bench, store, "pick-", i);
        good = rc == 0 && read_time(fd, &at);
        ours[i] = (at - start) * 1e3;
    }
    if (rc == 0 && !good)
        rc = hf_fail(&bench->err, HF_EINTERNAL, NULL, "the other process ended");
    if (rc == 0)
        *ret = (struct bench_pair){ .ours = bench_median(ours, SAMPLES),
                                    .raw = bench_median(raw, SAMPLES) };
    return rc;
}

/* Makes an empty store that no handle is open to. */
static int make_store(struct bench *bench)
{
    struct hf_store *store;
    int rc = bench_open(bench, BENCH_OURS, &store);
    if (rc == 0)
        hf_store_close(store);
    return rc;
}

static int pickup(struct bench *bench, serve_fn *serve, struct bench_pair *ret)
{
    int fds[2];
    struct hf_store *store;
    int rc = make_store(bench);
    if (rc)
        return rc;
    if (pipe(fds))
        return hf_fail(&bench->err, HF_EINTERNAL, NULL, "no pipe could be made");
    pid_t child = fork();
    if (child == 0)
        be_the_other(bench, serve, fds[1]);
    (void)close(fds[1]);
    rc = child < 0 ? hf_fail(&bench->err, HF_EINTERNAL, NULL, "no process could be made")
                   : hf_store_open(bench->url[BENCH_OURS], NULL, &store, &bench->err);
    if (rc == 0) {
        rc = pick_ups(bench, store, fds[0], ret);
        hf_store_close(store);
    }
    (void)close(fds[0]);
    if (rc && child > 0)
        (void)kill(child, SIGKILL);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    return rc;
}

int bench_pickup_claim(struct bench *bench, struct bench_pair *ret)
{
    return pickup(bench, serve_claims, ret);
}

int bench_pickup_pool(struct bench *bench, struct bench_pair *ret)
{
    return pickup(bench, serve_jobs, ret);
}

/* ---- kill to reclaim -------------------------------------------------------------------- */

/* A process that claims a unit once it is told to, says so, and holds it until it is killed. */
struct holder {
    pid_t pid;
    int go[2];
    int have[2];
    double killed_at;
};

static _Noreturn void hold(const struct bench *bench, const struct holder *holder)
{
    struct hf_store *store;
    struct hf_answer *claimed;
    struct hf_err err;
    double at;
    (void)close(holder->go[1]); /* so that the end of the parent is seen */
    if (!read_time(holder->go[0], &at) ||
        hf_store_open(bench->url[BENCH_OURS], NULL, &store, &err) ||
        claim_one(store, "holder", HOLD_TTL_MS, &claimed, &err) ||
        !send_time(holder->have[1]))
        _exit(1);
    (void)read_time(holder->go[0], &at); /* nothing comes any more */
    _exit(1);
}

static int start_holder(struct bench *bench, struct holder *holder)
{
    if (pipe(holder->go) || pipe(holder->have))
        return hf_fail(&bench->err, HF_EINTERNAL, NULL, "no pipe could be made");
    holder->pid = fork();
    if (holder->pid == 0)
        hold(bench, holder);
    (void)close(holder->go[0]);
    (void)close(holder->have[1]);
    return holder->pid > 0
               ? 0
               : hf_fail(&bench->err, HF_EINTERNAL, NULL, "no process could be made");
}

static void end_holder(struct holder *holder)
{
    if (holder->pid > 0) {
        (void)kill(holder->pid, SIGKILL);
        (void)waitpid(holder->pid, NULL, 0);
    }
    holder->pid = 0;
}

/* Kills the holder while the peer waits in its claim. */
static void *killer(void *arg)
{
    struct holder *holder = arg;
    bench_pause(0.05);
    holder->killed_at = bench_seconds();
    end_holder(holder);
    return NULL;
}

static int reclaim_once(struct bench *bench, struct hf_store *store,
                        struct holder *holder, size_t i, double *ret_ms)
{
    pthread_t thread;
    double at;
    struct hf_answer *claimed;
    int rc = create_one(bench, store, "kill-", i);
    if (rc == 0 && !(send_time(holder->go[1]) && read_time(holder->have[0], &at)))
        rc = hf_fail(&bench->err, HF_EINTERNAL, NULL, "the holder ended");
    if (rc == 0 && pthread_create(&thread, NULL, killer, holder))
        rc = hf_fail(&bench->err, HF_ENOMEM, NULL, "no thread could be started");
    if (rc)
        return rc;
    rc = claim_one(store, "peer", HOLD_TTL_MS, &claimed, &bench->err);
    double had = bench_seconds();
    (void)pthread_join(thread, NULL);
    *ret_ms = (had - holder->killed_at) * 1e3;
    return rc ? rc : close_one(store, claimed, &bench->err);
}

int bench_reclaim(struct bench *bench, struct bench_pair *ret)
{
    struct holder holders[KILLS] = { 0 };
    struct hf_store *store = NULL;
    double took[KILLS];
    int rc = make_store(bench);
    for (size_t i = 0; rc == 0 && i < KILLS; i++)
        rc = start_holder(bench, &holders[i]);
    if (rc == 0)
        rc = hf_store_open(bench->url[BENCH_OURS], NULL, &store, &bench->err);
    for (size_t i = 0; rc == 0 && i < KILLS; i++)
        rc = reclaim_once(bench, store, &holders[i], i, &took[i]);
    for (size_t i = 0; i < KILLS; i++) {
        end_holder(&holders[i]);
        if (holders[i].have[0]) {
            (void)close(holders[i].go[1]);
            (void)close(holders[i].have[0]);
        }
    }
    hf_store_close(store);
    if (rc == 0)
        *ret = (struct bench_pair){ .ours = bench_median(took, KILLS) };
    return rc;
}
