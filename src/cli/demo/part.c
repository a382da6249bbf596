/* The parts of the demonstration: a submitter and workers, each in a process of its own and
 * with a store handle of its own. What a worker does is decided by the unit it claimed and
 * by that unit's trail, never by who it is. */
#include "cli/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"

#define SLICE_MS 250 /* how long a worker may not hear that it is over */
#define REPORT_TEXT "Everything was checked once.\n"
#define STEP_EVENT "step"

#define ONCE_MORE "{\"initial_backoff_ms\":400,\"jitter\":\"none\"}"

/* The first two are there when the workers come; the others after the kill. */
static const struct hf_work_spec requests[DEMO_TASKS] = {
    { .source_id = "demo-crawl", .kind = "crawl", .payload = "{\"steps\":3}" },
    { .source_id = "demo-index", .kind = "index", .payload = "{\"pages\":12}" },
    { .source_id = "demo-approve", .kind = "approve", .payload = "{\"ask\":\"send?\"}" },
    { .source_id = "demo-fetch", .kind = "fetch", .retry_policy = ONCE_MORE },
    { .source_id = "demo-publish", .kind = "publish", .close_rule = "evidence" },
};

/* ---- talking to the director ------------------------------------------------------- */

static int say(struct demo_stage *stage, enum demo_report report,
               const struct hf_work *work, const char *text)
{
    struct demo_message message = { .who = stage->who, .report = report };
    if (work) {
        message.attempt = work->attempt_count;
        (void)snprintf(message.work_id, sizeof(message.work_id), "%s", work->work_id);
        (void)snprintf(message.task, sizeof(message.task), "%s", work->kind);
    }
    (void)snprintf(message.text, sizeof(message.text), "%.*s",
                   (int)sizeof(message.text) - 1, text);
    ssize_t sent = 0;
    do
        sent = write(stage->say, &message, sizeof(message));
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(message)
               ? 0
               : hf_fail(&stage->err, HF_EINTERNAL, NULL, "the demo itself has ended");
}

/* Waits for the word to continue. False when it is over. */
static bool go_on(const struct demo_stage *stage)
{
    char byte;
    ssize_t got = 0;
    do
        got = read(stage->hear, &byte, 1);
    while (got < 0 && errno == EINTR);
    return got == 1;
}

static bool over(const struct demo_stage *stage)
{
    struct pollfd fd = { .fd = stage->hear, .events = POLLIN };
    return poll(&fd, 1, 0) != 0;
}

/* The work itself. */
static void toil(const struct demo_stage *stage)
{
    (void)poll(NULL, 0, (int)stage->step_ms);
}

/* ---- the submitter ----------------------------------------------------------------- */

static int submit(struct demo_stage *stage, size_t first, size_t count)
{
    struct hf_work_spec news[DEMO_TASKS];
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < count; i++) {
        news[i] = requests[first + i];
        news[i].size = sizeof(news[i]);
        news[i].source = HF_SOURCE_MANUAL;
        news[i].queue = DEMO_QUEUE;
        news[i].disposition = HF_DISPOSITION_RERUNNABLE;
        news[i].priority = -1;
    }
    int rc = hf_work_create(stage->store, &stage->caller, news, count, HF_ALL_OR_NONE,
                            &answer, &stage->err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = say(stage, DEMO_CREATED, &hf_answer_at(answer, i)->work, "");
    hf_answer_free(answer);
    return rc;
}

static int play_submitter(struct demo_stage *stage)
{
    int rc = submit(stage, 0, 2);
    if (rc == 0 && go_on(stage))
        rc = submit(stage, 2, DEMO_TASKS - 2);
    return rc;
}

/* ---- a worker ---------------------------------------------------------------------- */

static int change(struct demo_stage *stage, const struct hf_item *unit,
                  struct hf_change *wanted, struct hf_answer **ret_answer)
{
    struct hf_answer *answer = NULL;
    wanted->size = sizeof(*wanted);
    wanted->id = unit->work.work_id;
    wanted->token = unit->token;
    int rc = hf_work_change(stage->store, &stage->caller, wanted, 1, HF_ALL_OR_NONE,
                            &answer, &stage->err);
    if (rc == 0 && ret_answer)
        *ret_answer = answer;
    else
        hf_answer_free(answer);
    return rc;
}

static int finish(struct demo_stage *stage, const struct hf_item *unit,
                  const char *summary, const char *evidence)
{
    struct hf_change wanted = { .verb = HF_VERB_CLOSE_OUT,
                                .status = HF_STATUS_DONE,
                                .summary = summary,
                                .evidence = &evidence,
                                .evidence_count = evidence ? 1 : 0 };
    char text[160];
    (void)snprintf(text, sizeof(text), "%s%.23s%s", evidence ? ", evidence " : "",
                   evidence ? evidence : "", evidence ? "..." : "");
    int rc = change(stage, unit, &wanted, NULL);
    return rc ? rc : say(stage, DEMO_DONE, &unit->work, text);
}

/* How many steps the trail holds: what an earlier attempt did is not done again. */
static int steps_done(struct demo_stage *stage, const struct hf_item *unit,
                      int *ret_steps)
{
    struct hf_events *events = NULL;
    int rc = hf_work_events(stage->store, &stage->caller, unit->work.work_id, 0, 100,
                            &events, &stage->err);
    if (rc)
        return rc;
    *ret_steps = 0;
    for (size_t i = 0; i < hf_events_count(events); i++)
        *ret_steps += hf_same(hf_events_at(events, i)->event_type, STEP_EVENT);
    hf_events_free(events);
    return 0;
}

static int note_step(struct demo_stage *stage, const struct hf_item *unit, int step)
{
    char payload[32], text[64];
    (void)snprintf(payload, sizeof(payload), "{\"step\":%d}", step);
    (void)snprintf(text, sizeof(text), "step %d of %d, noted in its trail", step,
                   DEMO_STEPS);
    struct hf_change wanted = { .verb = HF_VERB_APPEND,
                                .type = STEP_EVENT,
                                .payload = payload };
    toil(stage);
    int rc = change(stage, unit, &wanted, NULL);
    return rc ? rc : say(stage, DEMO_STEP, &unit->work, text);
}

static int do_crawl(struct demo_stage *stage, const struct hf_item *unit)
{
    int done = 0;
    int rc = steps_done(stage, unit, &done);
    bool again = unit->work.attempt_count > 1;
    if (rc == 0 && again) {
        char text[64];
        (void)snprintf(text, sizeof(text), "its trail holds %d steps: not repeated",
                       done);
        rc = say(stage, DEMO_STEP, &unit->work, text);
    }
    for (int step = done + 1; rc == 0 && step <= DEMO_STEPS; step++) {
        if (step == DEMO_STEPS && !again) {
            rc = say(stage, DEMO_MIDDLE, &unit->work, "in the middle of step 3");
            if (rc == 0 && !go_on(stage)) /* it never is told to */
                return 0;
        }
        if (rc == 0)
            rc = note_step(stage, unit, step);
    }
    return rc ? rc : finish(stage, unit, "crawled", NULL);
}

static int do_index(struct demo_stage *stage, const struct hf_item *unit)
{
    int rc = say(stage, DEMO_MIDDLE, &unit->work, "working");
    if (rc || !go_on(stage))
        return rc;
    toil(stage);
    return finish(stage, unit, "indexed", NULL);
}

static int do_approve(struct demo_stage *stage, const struct hf_item *unit)
{
    if (unit->work.resume_payload)
        return finish(stage, unit, unit->work.resume_payload, NULL);
    struct hf_change wanted = { .verb = HF_VERB_WAIT,
                                .status = HF_STATUS_WAITING_USER,
                                .ref = DEMO_APPROVAL,
                                .timeout_ms = 3600000 };
    int rc = change(stage, unit, &wanted, NULL);
    return rc ? rc : say(stage, DEMO_WAITING, &unit->work, DEMO_APPROVAL);
}

static int do_fetch(struct demo_stage *stage, const struct hf_item *unit)
{
    if (unit->work.attempt_count > 1)
        return finish(stage, unit, "fetched", NULL);
    struct hf_change wanted = { .verb = HF_VERB_FAIL,
                                .error_class = "transient_network",
                                .reason = "connection reset" };
    struct hf_answer *answer = NULL;
    int rc = change(stage, unit, &wanted, &answer);
    if (rc)
        return rc;
    const struct hf_work *now = &hf_answer_at(answer, 0)->work;
    char text[80];
    (void)snprintf(text, sizeof(text), "its policy retries it in %lld ms",
                   (long long)(now->next_retry_at - now->updated_at));
    rc = say(stage, DEMO_RETRY, &unit->work, text);
    hf_answer_free(answer);
    return rc;
}

/* Writes the report and says what is evidence of it: its hash. */
static int write_report(struct demo_stage *stage, char ret_evidence[80])
{
    char path[512];
    uint8_t hash[HF_DIGEST_BYTES];
    (void)snprintf(path, sizeof(path), "%s/report.txt", stage->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t sent = fd < 0 ? -1 : write(fd, REPORT_TEXT, strlen(REPORT_TEXT));
    if (fd >= 0 && close(fd) != 0)
        sent = -1;
    if (sent != (ssize_t)strlen(REPORT_TEXT))
        return hf_fail(&stage->err, HF_EREADONLY, NULL, "%.120s: %s", path,
                       strerror(errno));
    int rc = hf_sha256(REPORT_TEXT, strlen(REPORT_TEXT), hash);
    if (rc)
        return hf_fail_plain(&stage->err, rc);
    memcpy(ret_evidence, "sha256:", 7);
    hf_hex(hash, sizeof(hash), ret_evidence + 7);
    return 0;
}

static int do_publish(struct demo_stage *stage, const struct hf_item *unit)
{
    char evidence[80];
    struct hf_change bare = { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE };
    int rc = write_report(stage, evidence);
    if (rc)
        return rc;
    rc = change(stage, unit, &bare, NULL);
    if (rc != HF_EPOLICY)
        return rc ? rc
                  : hf_fail(&stage->err, HF_EINTERNAL, NULL,
                            "a close-out without evidence was accepted");
    rc = say(stage, DEMO_REFUSED, &unit->work, hf_err_wire(rc));
    return rc ? rc : finish(stage, unit, "published", evidence);
}

static const struct {
    const char *kind;
    int (*act)(struct demo_stage *stage, const struct hf_item *unit);
} tasks[DEMO_TASKS] = {
    { "crawl", do_crawl }, { "index", do_index },     { "approve", do_approve },
    { "fetch", do_fetch }, { "publish", do_publish },
};

static int work_on(struct demo_stage *stage, const struct hf_item *unit)
{
    char text[200];
    const char *told = unit->work.resume_payload;
    (void)snprintf(text, sizeof(text), "attempt %lld%s%.120s",
                   (long long)unit->work.attempt_count, told ? ", answered with " : "",
                   told ? told : "");
    int rc = say(stage, DEMO_CLAIMED, &unit->work, text);
    for (size_t i = 0; rc == 0 && i < DEMO_TASKS; i++)
        if (hf_same(tasks[i].kind, unit->work.kind))
            return tasks[i].act(stage, unit);
    return rc;
}

static int play_worker(struct demo_stage *stage)
{
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = stage->name,
                              .pid = getpid(),
                              .queue = DEMO_QUEUE,
                              .wait_ms = SLICE_MS };
    int rc = 0;
    while (rc == 0 && !over(stage)) {
        struct hf_answer *answer = NULL;
        rc = hf_work_claim(stage->store, &stage->caller, &claim, &answer, &stage->err);
        if (rc == 0 && hf_answer_count(answer) > 0)
            rc = work_on(stage, hf_answer_at(answer, 0));
        hf_answer_free(answer);
    }
    return rc;
}

/* ---- all of them ------------------------------------------------------------------- */

static int play_monitor(struct demo_stage *stage)
{
    char log[512];
    (void)snprintf(log, sizeof(log), "%s/monitor.log", stage->folder);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        return hf_fail(&stage->err, HF_EREADONLY, NULL, "%.120s: %s", log,
                       strerror(errno));
    (void)execl("/proc/self/exe", "holdfast", "--db", stage->ledger, "--actor",
                "system:monitor", "monitor", "--interval", "200ms", (char *)NULL);
    return hf_fail(&stage->err, HF_EINTERNAL, NULL, "exec: %s", strerror(errno));
}

int demo_play(struct demo_stage *stage)
{
    struct hf_store_options options = { .size = sizeof(options), .must_exist = true };
    if (!go_on(stage))
        return 0;
    int rc = 0;
    if (stage->who != DEMO_MONITOR)
        rc = hf_store_open(stage->ledger, &options, &stage->store, &stage->err);
    if (rc == 0 && stage->who == DEMO_MONITOR)
        rc = play_monitor(stage);
    else if (rc == 0 && stage->who == DEMO_SUBMITTER)
        rc = play_submitter(stage);
    else if (rc == 0)
        rc = play_worker(stage);
    if (rc)
        (void)say(stage, DEMO_BROKEN, NULL, stage->err.message); /* or the code tells */
    hf_store_close(stage->store);
    return hf_err_exit(rc);
}
