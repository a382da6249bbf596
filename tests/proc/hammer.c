/* hammer: several processes work on one store as hard as they can, and write down what they
 * were told.
 *
 *   hammer --folder DIR [--url URL] [--units N] [--processes N] [--threads N] [--kills N]
 *          [--seed N]
 *
 * A hand is a thread of a process; those of one process share a handle. DIR is made by the
 * caller; the store is DIR/ledger.db unless there is a URL, the logs are DIR/p0.log and so on,
 * one a hand, and DIR/hammer.json says what was asked for. check_hammer.py judges the result;
 * this program only ends with 1 when it could not finish. With --kills, that many processes are
 * killed in the middle of whatever they do, and started again.
 *
 * A log has one line a thing that the library acknowledged, written before the next call:
 *   C id source created      T id token attempt before after     (taken)
 *   R id token before after  S id token verb status before after (settled)
 *   U id before after        E verb code message                 (resumed; not expected)
 * Times are nanoseconds of CLOCK_MONOTONIC around the call. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/store.h>
#include <holdfast/work.h>

#define HANDS_MAX 64
#define CREATE_MAX 16
#define CLAIM_MAX 8
#define LANES 24
#define QUEUE "hammer"
#define LINES_MAX 65536
#define RETRY "{\"initial_backoff_ms\":1,\"jitter\":\"none\",\"max_attempts\":1000}"

/* Survives the processes. */
struct shared {
    _Atomic int64_t created[HANDS_MAX]; /* acknowledged, of each one's own */
    _Atomic int64_t settled;            /* close-outs acknowledged */
};

struct plan {
    const char *folder;
    const char *url; /* NULL: a file in the folder */
    int64_t units;
    int64_t processes;
    int64_t threads; /* of each */
    int64_t kills;
    int64_t seed;
};

struct hand {
    const struct plan *plan;
    struct shared *shared;
    struct hf_store *store;
    struct hf_caller who;
    struct hf_err err;
    int64_t index;
    int64_t most;
    char name[24];
    uint64_t random;
    int log;
    size_t len;
    char lines[LINES_MAX];
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* xorshift64*: any number of dice from one seed. */
static uint64_t dice(uint64_t *state, uint64_t sides)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 2685821657736338717u >> 33) % sides;
}

static uint64_t seeded(int64_t seed, int64_t n)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1) + (uint64_t)n * 7919 + 1;
    for (int i = 0; i < 8; i++)
        (void)dice(&state, 2);
    return state;
}

/* ---- the log ----------------------------------------------------------------------- */

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "hammer: %s: %s\n", what, why);
    _exit(1);
}

__attribute__((format(printf, 2, 3))) static void note(struct hand *hand,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(hand->lines + hand->len, sizeof(hand->lines) - hand->len, format,
                      args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(hand->lines) - hand->len)
        die("log", "too many lines for one call");
    hand->len += (size_t)n;
}

/* What a call told is in the file before the next call is made. */
static void write_notes(struct hand *hand)
{
    size_t at = 0;
    while (at < hand->len) {
        ssize_t n = write(hand->log, hand->lines + at, hand->len - at);
        if (n < 0 && errno != EINTR)
            die("log", strerror(errno));
        at += n > 0 ? (size_t)n : 0;
    }
    hand->len = 0;
}

static void complain(struct hand *hand, const char *verb, int code, const char *message)
{
    note(hand, "E %s %s %s\n", verb, hf_err_wire(code), message ? message : "");
}

/* ---- creating ---------------------------------------------------------------------- */

/* What unit n of this process is depends on n alone: a process that was killed before it
 * heard the answer asks again for the same. */
static void describe(const struct hand *hand, int64_t n, char source[40], char lane[16],
                     struct hf_work_spec *ret_new)
{
    uint64_t random = seeded(hand->plan->seed, hand->index * 1000003 + n);
    (void)snprintf(source, 40, "%s-%06lld", hand->name, (long long)n);
    (void)snprintf(lane, 16, "lane-%d", (int)dice(&random, LANES));
    *ret_new = (struct hf_work_spec){ .size = sizeof(*ret_new),
                                      .source = HF_SOURCE_MANUAL,
                                      .source_id = source,
                                      .queue = QUEUE,
                                      .lane_key = dice(&random, 10) == 0 ? lane : NULL,
                                      .payload = "{\"text\":\"a unit of the hammer\"}",
                                      .disposition = HF_DISPOSITION_RERUNNABLE,
                                      .priority = (int)dice(&random, 10),
                                      .max_attempts = 1000,
                                      .retry_policy = RETRY };
}

static void create_some(struct hand *hand)
{
    int64_t first = atomic_load(&hand->shared->created[hand->index]);
    int64_t left = hand->most - first;
    int64_t n = 1 + (int64_t)dice(&hand->random, CREATE_MAX);
    struct hf_work_spec news[CREATE_MAX] = { { 0 } };
    char sources[CREATE_MAX][40], lanes[CREATE_MAX][16];
    struct hf_answer *answer = NULL;
    n = n < left ? n : left;
    for (int64_t i = 0; i < n; i++)
        describe(hand, first + i, sources[i], lanes[i], &news[i]);
    int rc = hf_work_create(hand->store, &hand->who, news, (size_t)n, 0, &answer,
                            &hand->err);
    if (rc)
        complain(hand, "create", rc, hand->err.message);
    for (size_t i = 0; rc == 0 && i < (size_t)n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        if (item->code)
            complain(hand, "create", item->code, item->message);
        else
            note(hand, "C %s %s %d\n", item->work.work_id, sources[i], item->created);
    }
    write_notes(hand);
    if (rc == 0)
        atomic_fetch_add(&hand->shared->created[hand->index], n);
    hf_answer_free(answer);
}

/* ---- working ----------------------------------------------------------------------- */

/* Applies the changes and notes what came of each. */
static void apply(struct hand *hand, const struct hf_change *changes, size_t n)
{
    struct hf_answer *answer = NULL;
    unsigned flags = dice(&hand->random, 2) ? HF_BRIEF : 0;
    int64_t before = now_ns(), closed = 0;
    int rc = hf_work_change(hand->store, &hand->who, changes, n, flags, &answer,
                            &hand->err);
    int64_t after = now_ns();
    if (rc)
        complain(hand, hf_verb_word(changes[0].verb), rc, hand->err.message);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        const struct hf_change *change = &changes[i];
        const char *verb = hf_verb_word(change->verb);
        if (item->code)
            complain(hand, verb, item->code, item->message);
        else if (change->verb == HF_VERB_RENEW)
            note(hand, "R %s %s %lld %lld\n", change->id, change->token,
                 (long long)before, (long long)after);
        else if (change->verb != HF_VERB_APPEND)
            note(hand, "S %s %s %s %s %lld %lld\n", change->id, change->token, verb,
                 item->work.status, (long long)before, (long long)after);
        closed += !item->code && change->verb == HF_VERB_CLOSE_OUT;
    }
    write_notes(hand);
    atomic_fetch_add(&hand->shared->settled, closed);
    hf_answer_free(answer);
}

/* Renews or adds to the trail, and holds on. */
static void keep(struct hand *hand, const struct hf_answer *held)
{
    struct hf_change changes[CLAIM_MAX];
    size_t n = hf_answer_count(held);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(held, i);
        bool renew = dice(&hand->random, 2);
        changes[i] = (struct hf_change){ .size = sizeof(changes[i]),
                                         .verb = renew ? HF_VERB_RENEW : HF_VERB_APPEND,
                                         .id = item->work.work_id,
                                         .token = item->token,
                                         .type = renew ? NULL : "progress",
                                         .payload = renew ? NULL : "{\"at\":1}" };
    }
    apply(hand, changes, n);
}

/* One end of a unit among those that its holder may choose. After some attempts only the
 * last: every run comes to an end. */
static struct hf_change choose_end(struct hand *hand, const struct hf_item *item)
{
    struct hf_change change = { .size = sizeof(change),
                                .id = item->work.work_id,
                                .token = item->token };
    uint64_t side = item->work.attempt_count > 3 ? 99 : dice(&hand->random, 100);
    if (side < 12) {
        change.verb = HF_VERB_FAIL;
        change.error_class = "transient_network";
    } else if (side < 24) {
        change.verb = HF_VERB_WAIT;
        change.status = HF_STATUS_WAITING_USER;
        change.ref = item->work.work_id;
    } else if (side < 30) {
        change.verb = HF_VERB_HAND_BACK;
    } else {
        static const enum hf_status ends[] = { HF_STATUS_DONE, HF_STATUS_DONE,
                                               HF_STATUS_DONE, HF_STATUS_FAILED,
                                               HF_STATUS_CANCELLED };
        change.verb = HF_VERB_CLOSE_OUT;
        change.status = ends[dice(&hand->random, sizeof(ends) / sizeof(ends[0]))];
    }
    return change;
}

/* Takes some units and settles them, all in one call or each in its own. */
static bool work_some(struct hand *hand, hf_ms wait_ms)
{
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = hand->name,
                              .pid = getpid(),
                              .queue = QUEUE,
                              .limit = 1 + (size_t)dice(&hand->random, CLAIM_MAX),
                              .wait_ms = wait_ms };
    struct hf_answer *held = NULL;
    struct hf_change changes[CLAIM_MAX];
    int64_t before = now_ns();
    int rc = hf_work_claim(hand->store, &hand->who, &claim, &held, &hand->err);
    int64_t after = now_ns();
    if (rc)
        complain(hand, "claim", rc, hand->err.message);
    size_t n = rc ? 0 : hf_answer_count(held);
    for (size_t i = 0; i < n; i++) {
        const struct hf_item *item = hf_answer_at(held, i);
        note(hand, "T %s %s %lld %lld %lld\n", item->work.work_id, item->token,
             (long long)item->work.attempt_count, (long long)before, (long long)after);
    }
    write_notes(hand);
    if (n > 0 && dice(&hand->random, 5) == 0)
        keep(hand, held);
    for (size_t i = 0; i < n; i++)
        changes[i] = choose_end(hand, hf_answer_at(held, i));
    bool together = dice(&hand->random, 4) != 0;
    for (size_t i = 0; i < n; i += together ? n : 1)
        apply(hand, changes + i, together ? n : 1);
    hf_answer_free(held);
    return n > 0;
}

/* Resumes what waits. Several processes may choose the same: one wins, the others are told
 * so, which is as it should be. */
static void resume_some(struct hand *hand)
{
    enum hf_status waiting = HF_STATUS_WAITING_USER;
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = &waiting,
                                .status_count = 1,
                                .limit = 1 + (size_t)dice(&hand->random, CLAIM_MAX) };
    struct hf_answer *rows = NULL;
    int rc = hf_work_list(hand->store, &hand->who, &filter, &rows, &hand->err);
    if (rc)
        complain(hand, "list", rc, hand->err.message);
    for (size_t i = 0; rc == 0 && i < hf_answer_count(rows); i++) {
        const struct hf_work *work = &hf_answer_at(rows, i)->work;
        bool by_id = dice(&hand->random, 2);
        struct hf_change change = { .size = sizeof(change),
                                    .verb = HF_VERB_RESUME,
                                    .id = by_id ? work->work_id : NULL,
                                    .ref = by_id ? NULL : work->waiting_ref,
                                    .payload = "{\"go\":\"on\"}" };
        struct hf_answer *answer = NULL;
        int64_t before = now_ns();
        int code = hf_work_change(hand->store, &hand->who, &change, 1, HF_ALL_OR_NONE,
                                  &answer, &hand->err);
        if (code == 0)
            note(hand, "U %s %lld %lld\n", work->work_id, (long long)before,
                 (long long)now_ns());
        else if (code != HF_ETRANSITION && code != HF_ENOTFOUND)
            complain(hand, "resume", code, hand->err.message);
        hf_answer_free(answer);
    }
    write_notes(hand);
    hf_answer_free(rows);
}

/* How many units the hand makes. */
static int64_t limit_of(const struct plan *plan, int64_t index)
{
    int64_t hands = plan->processes * plan->threads;
    return plan->units / hands + (index < plan->units % hands);
}

static bool all_finished(struct hand *hand)
{
    struct hf_stats stats;
    int64_t open = 0;
    for (int64_t i = 0; i < hand->plan->processes * hand->plan->threads; i++)
        open += limit_of(hand->plan, i) - atomic_load(&hand->shared->created[i]);
    if (open > 0)
        return false;
    int rc = hf_work_stats(hand->store, &hand->who, &stats, &hand->err);
    if (rc) {
        complain(hand, "stats", rc, hand->err.message);
        write_notes(hand);
        return false;
    }
    for (size_t i = 0; i < HF_STATUS_COUNT; i++)
        open += stats.by_status[i];
    return open == 0;
}

static void *be_hand(void *user)
{
    struct hand *hand = user;
    for (bool idle = false; !idle || !all_finished(hand);) {
        if (atomic_load(&hand->shared->created[hand->index]) < hand->most &&
            (idle || dice(&hand->random, 3) == 0))
            create_some(hand);
        idle = !work_some(hand, idle ? 50 : 0);
        if (idle || dice(&hand->random, 8) == 0)
            resume_some(hand);
    }
    return NULL;
}

static void init_hand(struct hand *hand, const struct plan *plan, int64_t index,
                      int64_t life)
{
    char path[512];
    hand->plan = plan;
    hand->index = index;
    hand->most = limit_of(plan, index);
    hand->random = seeded(plan->seed, (index + 1) * 1000 + life);
    (void)snprintf(hand->name, sizeof(hand->name), "p%lld", (long long)index);
    hand->who = (struct hf_caller){ .size = sizeof(hand->who),
                                    .actor_kind = "worker",
                                    .actor = hand->name };
    (void)snprintf(path, sizeof(path), "%s/%s.log", plan->folder, hand->name);
    hand->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (hand->log < 0)
        die(path, strerror(errno));
    /* A kill may cut a line short where it crosses a page: mark it, or the next goes on it. */
    char last = '\n';
    off_t end = lseek(hand->log, 0, SEEK_END);
    if (end > 0 && pread(hand->log, &last, 1, end - 1) == 1 && last != '\n' &&
        write(hand->log, " ~\n", 3) != 3)
        die(path, strerror(errno));
}

static _Noreturn void be_process(const struct plan *plan, struct shared *shared,
                                 int64_t process, int64_t life)
{
    char path[512];
    struct hf_store *store = NULL;
    pthread_t threads[HANDS_MAX];
    struct hand *hands = calloc((size_t)plan->threads, sizeof(*hands));
    if (!hands)
        die("memory", strerror(errno));
    for (int64_t i = 0; i < plan->threads; i++)
        init_hand(&hands[i], plan, process * plan->threads + i, life);
    (void)snprintf(path, sizeof(path), "%s/ledger.db", plan->folder);
    int rc = hf_store_open(plan->url ? plan->url : path, NULL, &store, &hands[0].err);
    if (rc) {
        complain(&hands[0], "open", rc, hands[0].err.message);
        write_notes(&hands[0]);
        _exit(1);
    }
    for (int64_t i = 0; i < plan->threads; i++) {
        hands[i].store = store;
        hands[i].shared = shared;
        if (pthread_create(&threads[i], NULL, be_hand, &hands[i]) != 0)
            die("thread", "cannot be made");
    }
    for (int64_t i = 0; i < plan->threads; i++)
        (void)pthread_join(threads[i], NULL);
    hf_store_close(store);
    free(hands);
    _exit(0);
}

/* ---- the one who starts and kills -------------------------------------------------- */

static pid_t start(const struct plan *plan, struct shared *shared, int64_t index,
                   int64_t life)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        be_process(plan, shared, index, life);
    }
    return pid;
}

/* Waits until that many close-outs were acknowledged. False when the process has come to
 * the end of all work before: what was acknowledged to the killed is not all counted. */
static bool comes_to(const struct shared *shared, int64_t settled, pid_t pid)
{
    while (atomic_load(&shared->settled) < settled) {
        siginfo_t info = { 0 };
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            die("waitid", strerror(errno));
        if (info.si_pid)
            return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

/* Kills spread over the run: the n-th comes when the n-th part of the units is closed. */
static int64_t kill_some(const struct plan *plan, struct shared *shared, pid_t *pids)
{
    uint64_t random = seeded(plan->seed, -1);
    int64_t killed = 0;
    while (killed < plan->kills) {
        int64_t victim = (int64_t)dice(&random, (uint64_t)plan->processes);
        if (!comes_to(shared, (killed + 1) * plan->units / (plan->kills + 1),
                      pids[victim]))
            break;
        (void)kill(pids[victim], SIGKILL);
        (void)waitpid(pids[victim], NULL, 0);
        killed++;
        pids[victim] = start(plan, shared, victim, killed);
    }
    return killed;
}

static void write_plan(const struct plan *plan, int64_t ns)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/hammer.json", plan->folder);
    FILE *file = fopen(path, "w");
    if (!file)
        die(path, strerror(errno));
    (void)fprintf(file,
                  "{\"units\":%lld,\"processes\":%lld,\"threads\":%lld,\"kills\":%lld,"
                  "\"seed\":%lld,\"seconds\":%.3f}\n",
                  (long long)plan->units, (long long)plan->processes,
                  (long long)plan->threads, (long long)plan->kills, (long long)plan->seed,
                  (double)ns / 1e9);
    if (fclose(file) != 0)
        die(path, strerror(errno));
}

static int64_t number(const char *name, const char *text, int64_t most)
{
    char *end = NULL;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : -1;
    if (!text || errno || *end || value < 0 || value > most)
        die(name, "wants a number");
    return value;
}

int main(int argc, char **argv)
{
    struct plan plan = { .units = 8000, .processes = 8, .threads = 1, .seed = 1 };
    pid_t pids[HANDS_MAX];
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--folder") == 0)
            plan.folder = value;
        else if (strcmp(name, "--url") == 0)
            plan.url = value;
        else if (strcmp(name, "--units") == 0)
            plan.units = number(name, value, 10000000);
        else if (strcmp(name, "--processes") == 0)
            plan.processes = number(name, value, HANDS_MAX);
        else if (strcmp(name, "--threads") == 0)
            plan.threads = number(name, value, HANDS_MAX);
        else if (strcmp(name, "--kills") == 0)
            plan.kills = number(name, value, 100000);
        else if (strcmp(name, "--seed") == 0)
            plan.seed = number(name, value, INT32_MAX);
        else
            die(name, "is no option");
    }
    if (!plan.folder || plan.processes < 1 || plan.threads < 1 ||
        plan.processes * plan.threads > HANDS_MAX)
        die("usage", "hammer --folder DIR, and at most 64 hands in all");
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap", strerror(errno));
    int64_t began = now_ns();
    int failed = 0;
    for (int64_t i = 0; i < plan.processes; i++)
        pids[i] = start(&plan, shared, i, 0);
    plan.kills = kill_some(&plan, shared, pids);
    for (int64_t i = 0; i < plan.processes; i++) {
        int status = 0;
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            failed++;
    }
    write_plan(&plan, now_ns() - began);
    return failed ? 1 : 0;
}
