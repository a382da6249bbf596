/* The fleet of the kill soak: workers, submitters and tenders, over the public API alone.
 *
 *   soak-worker work URL NAME FOLDER TTL_MS     claim, do, settle, until SIGTERM
 *   soak-worker submit URL NAME FOLDER COUNT    create COUNT units
 *   soak-worker tend URL NAME FOLDER            sweep, and resume what waits
 *
 * Each process writes what it did and what it was told to FOLDER/NAME.log, a line at a time,
 * and effects to FOLDER/NAME.sink, synced. The process that judges the run reads those
 * and the public views, nothing more. It sleeps: work takes time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/err.h>
#include <holdfast/store.h>
#include <holdfast/work.h>

static volatile sig_atomic_t stopping;

struct self {
    struct hf_store *store;
    const char *name;
    hf_ms ttl_ms;
    int log;
    int sink;
    unsigned dice;
};

static void stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void pause_ms(long ms)
{
    struct timespec span = { ms / 1000, ms % 1000 * 1000000 };
    (void)nanosleep(&span, NULL);
}

static unsigned roll(struct self *self, unsigned n)
{
    self->dice = self->dice * 1103515245u + 12345u;
    return (self->dice >> 16) % n;
}

/* One write: a line is there whole or not at all. */
static void say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(int fd, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len <= 0 || write(fd, line, (size_t)len) != len)
        _exit(3);
}

static int open_log(const char *folder, const char *name, const char *kind, int flags)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s.%s", folder, name, kind);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0600);
    if (fd < 0) {
        perror(path);
        _exit(3);
    }
    return fd;
}

/* ---- work ---------------------------------------------------------------------------- */

struct held {
    char id[64];
    char token[256];
    long long fence;
    bool resumed;
};

/* The same change until its outcome is certain: a repeat answers as the first did. */
static int change(struct self *self, struct hf_change *change, const struct held *held)
{
    struct hf_answer *answer = NULL;
    int rc = HF_EBUSY;
    change->size = sizeof(*change);
    change->id = held->id;
    change->token = held->token;
    for (int i = 0;
         i < 200 && (rc == HF_EBUSY || rc == HF_EUNCERTAIN || rc == HF_EUNREACHABLE);
         i++) {
        rc = hf_work_change(self->store, NULL, change, 1, 0, &answer, NULL);
        if (rc == 0) {
            rc = hf_answer_at(answer, 0)->code;
            hf_answer_free(answer);
        } else {
            pause_ms(10);
        }
    }
    return rc;
}

static void settle(struct self *self, const struct held *held)
{
    struct hf_change c = { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE };
    unsigned fate = roll(self, 100);
    if (stopping || fate >= 95) {
        c = (struct hf_change){ .verb = HF_VERB_HAND_BACK };
    } else if (fate >= 90) {
        c = (struct hf_change){ .verb = HF_VERB_FAIL,
                                .error_class = "transient_network" };
    } else if (fate >= 84 && !held->resumed) {
        c = (struct hf_change){ .verb = HF_VERB_WAIT,
                                .status = HF_STATUS_WAITING_USER,
                                .ref = held->id,
                                .timeout_ms = 600000 };
    }
    int rc = change(self, &c, held);
    say(self->log, "S %s %lld %s %s\n", held->id, held->fence, hf_verb_word(c.verb),
        hf_err_wire(rc));
}

static void work_on(struct self *self, const struct hf_item *item)
{
    struct held held = { .fence = item->work.lease_fence,
                         .resumed = item->work.resume_payload != NULL };
    (void)snprintf(held.id, sizeof(held.id), "%s", item->work.work_id);
    (void)snprintf(held.token, sizeof(held.token), "%s", item->token);
    say(self->log, "T %s %lld %lld\n", held.id, held.fence,
        (long long)item->work.attempt_count);
    say(self->sink, "%s %lld %lld %lld\n", held.id, (long long)item->work.generation,
        (long long)item->work.attempt_count, held.fence);
    for (unsigned slices = roll(self, 4); slices > 0 && !stopping; slices--) {
        struct hf_change renew = { .verb = HF_VERB_RENEW };
        pause_ms(20 + (long)roll(self, 60));
        int rc = change(self, &renew, &held);
        if (rc) {
            say(self->log, "L %s %lld %s\n", held.id, held.fence, hf_err_wire(rc));
            return;
        }
    }
    settle(self, &held);
}

static int work(struct self *self)
{
    struct hf_claim claim = { .size = sizeof(claim), .limit = 1, .wait_ms = 500 };
    claim.owner = self->name;
    claim.pid = getpid();
    claim.ttl_ms = self->ttl_ms;
    while (!stopping) {
        struct hf_answer *answer = NULL;
        int rc = hf_work_claim(self->store, NULL, &claim, &answer, NULL);
        if (rc) {
            pause_ms(20);
            continue;
        }
        for (size_t i = 0; i < hf_answer_count(answer); i++)
            work_on(self, hf_answer_at(answer, i));
        hf_answer_free(answer);
    }
    return 0;
}

/* ---- submit -------------------------------------------------------------------------- */

/* The fleet has enough to do: more would only lengthen the drain. */
static bool too_much(struct self *self)
{
    struct hf_stats stats;
    return hf_work_stats(self->store, NULL, &stats, NULL) == 0 &&
           stats.by_status[HF_STATUS_QUEUED] > 40;
}

static int submit(struct self *self, long count)
{
    for (long n = 0; n < count && !stopping; n++) {
        struct hf_answer *answer = NULL;
        char source[96];
        (void)snprintf(source, sizeof(source), "%s-%06ld", self->name, n);
        struct hf_work_spec new = { .size = sizeof(new),
                                    .source = HF_SOURCE_MANUAL,
                                    .priority = -1,
                                    .disposition = HF_DISPOSITION_RERUNNABLE,
                                    .max_attempts = 1000 };
        new.source_id = source;
        new.retry_policy = "{\"initial_backoff_ms\":50,\"max_backoff_sec\":1}";
        new.lane_key = n % 7 == 0 ? self->name : NULL;
        int rc = HF_EBUSY;
        while (rc && !stopping) {
            rc = hf_work_create(self->store, NULL, &new, 1, 0, &answer, NULL);
            if (rc)
                pause_ms(20);
        }
        if (rc)
            break;
        say(self->sink, "A %s %s\n", hf_answer_at(answer, 0)->work.work_id, source);
        hf_answer_free(answer);
        pause_ms(1 + (long)roll(self, 8));
        while (n % 16 == 0 && !stopping && too_much(self))
            pause_ms(50);
    }
    return 0;
}

/* ---- tend ---------------------------------------------------------------------------- */

static void resume_some(struct self *self)
{
    static const enum hf_status waiting = HF_STATUS_WAITING_USER;
    struct hf_filter filter = {
        .size = sizeof(filter), .statuses = &waiting, .status_count = 1, .limit = 50
    };
    struct hf_answer *page = NULL;
    if (hf_work_list(self->store, NULL, &filter, &page, NULL))
        return;
    for (size_t i = 0; i < hf_answer_count(page); i++) {
        struct hf_answer *answer = NULL;
        struct hf_change resume = { .size = sizeof(resume),
                                    .verb = HF_VERB_RESUME,
                                    .payload = "1" };
        resume.id = hf_answer_at(page, i)->work.work_id;
        if (hf_work_change(self->store, NULL, &resume, 1, 0, &answer, NULL) == 0)
            hf_answer_free(answer);
    }
    hf_answer_free(page);
}

/* What crashed too often is held for an operator: here everything crashes often. */
static void release_some(struct self *self)
{
    static const enum hf_status queued = HF_STATUS_QUEUED;
    struct hf_filter filter = {
        .size = sizeof(filter), .statuses = &queued, .status_count = 1, .limit = 200
    };
    struct hf_answer *page = NULL;
    if (hf_work_list(self->store, NULL, &filter, &page, NULL))
        return;
    for (size_t i = 0; i < hf_answer_count(page); i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        struct hf_answer *answer = NULL;
        struct hf_change release = { .size = sizeof(release),
                                     .verb = HF_VERB_RELEASE,
                                     .reason = "the soak" };
        release.id = work->work_id;
        if (work->gate && strcmp(work->gate, "held") == 0 &&
            hf_work_change(self->store, NULL, &release, 1, 0, &answer, NULL) == 0)
            hf_answer_free(answer);
    }
    hf_answer_free(page);
}

static int tend(struct self *self)
{
    while (!stopping) {
        struct hf_sweep_report report;
        /* What fails now is tried again at the next look. */
        if (hf_work_await(self->store, 100, NULL) == 0 &&
            hf_work_sweep(self->store, NULL, 0, &report, NULL) == 0) {
            resume_some(self);
            release_some(self);
        } else
            pause_ms(20);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct hf_err err = { 0 };
    struct self self = { .ttl_ms = 750 };
    if (argc < 5) {
        fprintf(stderr, "usage: soak-worker work|submit|tend URL NAME FOLDER [N]\n");
        return 2;
    }
    struct sigaction act = { .sa_handler = stop };
    (void)sigaction(SIGTERM, &act, NULL);
    self.name = argv[3];
    self.dice = (unsigned)getpid();
    self.log = open_log(argv[4], argv[3], "log", 0);
    self.sink = open_log(argv[4], argv[3], "sink", O_DSYNC);
    int rc = HF_EBUSY;
    for (int i = 0; i < 500 && rc && !stopping; i++) {
        rc = hf_store_open(argv[2], NULL, &self.store, &err);
        if (rc)
            pause_ms(20);
    }
    if (rc) {
        fprintf(stderr, "soak-worker: %s\n", err.message);
        return 1;
    }
    long n = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
    if (strcmp(argv[1], "work") == 0) {
        self.ttl_ms = n ? n : self.ttl_ms;
        rc = work(&self);
    } else if (strcmp(argv[1], "submit") == 0) {
        rc = submit(&self, n);
    } else {
        rc = tend(&self);
    }
    hf_store_close(self.store);
    return rc;
}
