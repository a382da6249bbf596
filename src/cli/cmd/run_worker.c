/* holdfast run --worker: claims units of kind "run" (commands that were stored by schedules,
 * triggers and process starts), and runs each as `holdfast run` does, several at a time. */
#include "cli/cmd/runner.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"

#define SLOTS_MAX 64
#define CLAIM_MS 200 /* how long a claim waits, and a signal may go unseen */
#define REAP_MS 1000
#define REAP_BUSY_MS 50

struct slot {
    struct hf_run *run; /* NULL: free */
    struct hf_answer *answer;
    struct hf_command_text *command;
    const char
        *unrun; /* it could not be run: the class of that failure, still to be told */
    struct hf_err why;
};

struct worker {
    struct runner *runner;
    struct slot slots[SLOTS_MAX];
    size_t jobs;
    size_t busy;
    struct hf_run *next;       /* prepared for the next claim */
    char nonce[HF_NONCE_TEXT]; /* of a claim that was not answered yet; "" */
    struct hf_reaper *reaper;
    hf_ms reap_at, claim_at;
    int64_t orphans; /* being ended */
    int64_t ran, failed;
    bool idle;           /* the last claim found nothing */
    struct hf_err fault; /* why nothing more is taken, while commands still run */
};

/* "c0ffee12 ./backup.sh": a unit in the log. */
#define UNIT_TEXT (OP_WHAT + 40)
static const char *unit_text(const struct hf_work *work, char out[UNIT_TEXT])
{
    char what[OP_WHAT];
    (void)snprintf(out, UNIT_TEXT, "%s %s", op_short_id(work->work_id),
                   op_what(work, what));
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' '; /* an entry is one line */
    return out;
}

static void say(const struct worker *worker, const char *what, const char *unit,
                const char *more)
{
    char when[25];
    if (!worker->runner->cli->quiet && !worker->runner->cli->json)
        (void)fprintf(stderr, "%s %s: %s%s%s\n", hf_time_text(cli_now(), when), what,
                      unit, *more ? ", " : "", more); /* a courtesy */
}

/* A store that is busy, full or slow to answer is tried again. */
static bool passes(int code)
{
    return hf_err_class(code) != HF_CLASS_TERMINAL || code == HF_EFULL;
}

/* ---- slots ------------------------------------------------------------------------- */

static void free_slot(struct worker *worker, struct slot *slot)
{
    hf_run_free(slot->run);
    hf_answer_free(slot->answer);
    hf_command_free(slot->command);
    *slot = (struct slot){ 0 };
    worker->busy--;
}

static void finish(struct worker *worker, struct slot *slot)
{
    const struct hf_run_result *result = hf_run_result(slot->run);
    char more[160], unit[UNIT_TEXT];
    (void)snprintf(more, sizeof(more), "exit code %d", result->exit_code);
    if (result->end == HF_RUN_TAKEN)
        (void)snprintf(more, sizeof(more), "lease lost");
    if (result->end == HF_RUN_UNRECORDED)
        (void)snprintf(more, sizeof(more), "not recorded: %.100s", result->err.message);
    say(worker, result->status ? result->status : "ended",
        unit_text(&hf_answer_at(slot->answer, 0)->work, unit), more);
    worker->ran++;
    worker->failed += result->exit_code != 0;
    free_slot(worker, slot);
}

/* Reports that a unit could not be run, until the store has recorded it. Otherwise the
 * unit would be renewed with the others for as long as this worker lives, and no worker
 * would run it. */
static void fail_unrun(struct worker *worker, struct slot *slot)
{
    struct cli *cli = worker->runner->cli;
    const struct hf_item *item = hf_answer_at(slot->answer, 0);
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_FAIL,
                                .id = item->work.work_id,
                                .token = item->token,
                                .error_class = slot->unrun,
                                .reason = slot->why.message };
    struct hf_answer *done = NULL;
    struct hf_err ignored;
    int rc = hf_work_change(cli->store, &cli->who, &change, 1, 0, &done, &ignored);
    hf_answer_free(done);
    if (rc == 0 || !passes(rc))
        free_slot(worker, slot);
}

static void start(struct worker *worker, struct hf_answer *answer)
{
    struct slot *slot = worker->slots;
    while (slot->run)
        slot++;
    *slot = (struct slot){ .run = worker->next, .answer = answer };
    worker->next = NULL;
    worker->busy++;
    const struct hf_item *item = hf_answer_at(answer, 0);
    char unit[UNIT_TEXT];
    (void)unit_text(&item->work, unit);
    int rc = hf_command_read(item->work.payload, &slot->command, &slot->why);
    if (rc) { /* what is no command will be none tomorrow: it fails for good */
        slot->unrun = "misconfigured";
        say(worker, "refused", unit, slot->why.message);
        fail_unrun(worker, slot);
        return;
    }
    struct hf_run_plan plan = runner_plan(worker->runner, item,
                                          hf_command_of(slot->command));
    say(worker, "running", unit, "");
    rc = hf_run_begin(slot->run, &plan, &slot->why);
    if (rc == 0)
        return;
    say(worker, "not started", unit, slot->why.message);
    worker->failed++;
    if (hf_run_result(slot->run)->end == HF_RUN_UNRECORDED)
        slot->unrun = "spawn_failed";
    else
        free_slot(worker, slot);
}

/* ---- taking work ------------------------------------------------------------------- */

/* A claim whose answer was lost is repeated under its nonce and takes nothing twice.
 * Otherwise its unit would be renewed with the others, and no worker would run it. */
static int prepare_claim(struct worker *worker)
{
    struct cli *cli = worker->runner->cli;
    int rc = worker->next ? 0
                          : hf_run_new(cli->store, worker->runner->place.locks,
                                       &worker->next, &cli->err);
    if (rc == 0 && !worker->nonce[0])
        rc = hf_nonce(hf_random_system(), worker->nonce, &cli->err);
    return rc;
}

static int claim(struct worker *worker)
{
    static const char *const kinds[] = { HF_RUN_KIND };
    struct cli *cli = worker->runner->cli;
    int rc = prepare_claim(worker);
    if (rc)
        return rc;
    struct hf_claim wanted = {
        .size = sizeof(wanted),
        .owner = worker->runner->owner,
        .pid = getpid(),
        .queue = cli_text(cli, "queue") ? cli_text(cli, "queue") : RUN_QUEUE,
        .kinds = kinds,
        .kind_count = 1,
        .nonce = worker->nonce,
        .ttl_ms = cli_number(cli, "ttl", 0),
        .wait_ms = worker->busy ? 0 : CLAIM_MS,
        .lock = hf_run_lock(worker->next),
        .ttl_default_ms = HF_RUN_TTL_MS,
    };
    struct hf_answer *answer = NULL;
    rc = hf_work_claim(cli->store, &cli->who, &wanted, &answer, &cli->err);
    if (rc)
        return rc;
    worker->nonce[0] = '\0';
    worker->idle = hf_answer_count(answer) == 0;
    if (worker->idle)
        hf_answer_free(answer);
    else
        start(worker, answer);
    return 0;
}

static int reap(struct worker *worker, hf_ms now)
{
    struct cli *cli = worker->runner->cli;
    if (now < worker->reap_at)
        return 0;
    int rc = hf_reaper_pass(worker->reaper, &cli->who, 2000, NULL, NULL, &worker->orphans,
                            &cli->err);
    worker->reap_at = now + (worker->orphans ? REAP_BUSY_MS : REAP_MS);
    return rc;
}

/* A fault that does not pass ends the worker, but not before what it runs: no other
 * caller could tell how those commands end. */
static int bear(struct worker *worker, int rc)
{
    if (rc == 0 || passes(rc))
        return 0;
    if (worker->busy == 0)
        return rc;
    if (!worker->fault.code)
        say(worker, "ending", "no more units are taken",
            worker->runner->cli->err.message);
    worker->fault = worker->runner->cli->err;
    return 0;
}

static bool nothing_on(const struct hf_answer *page)
{
    bool nothing = true;
    for (size_t i = 0; nothing && i < hf_answer_count(page); i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        bool bound = hf_disposition_of(work->disposition) == HF_DISPOSITION_OWNER_BOUND;
        bool held = work->gate && hf_same(work->gate, "held"); /* until it is released */
        nothing = held || (hf_status_of(work->status) == HF_STATUS_RUNNING && bound);
    }
    return nothing;
}

/* Anything that could still come to be run? Its own retries count; what a person must release, and
 * what is bound to another owner, is not for us. */
static int nothing_left(struct worker *worker, bool *ret_nothing)
{
    static const enum hf_status statuses[] = { HF_STATUS_QUEUED, HF_STATUS_RUNNING,
                                               HF_STATUS_RETRY_SCHEDULED };
    struct cli *cli = worker->runner->cli;
    const char *queue = cli_text(cli, "queue");
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = statuses,
                                .status_count = 3,
                                .queue = queue ? queue : RUN_QUEUE,
                                .kind = HF_RUN_KIND,
                                .limit = (size_t)HF_MAX_PAGE };
    struct hf_answer *page = NULL;
    bool nothing = worker->orphans == 0;
    int rc = 0;
    do {
        struct hf_answer *before = page; /* whose cursor it continues from */
        page = NULL;
        filter.after = before ? hf_answer_next(before) : NULL;
        rc = hf_work_list(cli->store, &cli->who, &filter, &page, &cli->err);
        hf_answer_free(before);
        nothing = nothing && rc == 0 && nothing_on(page);
    } while (nothing && hf_answer_next(page));
    hf_answer_free(page);
    if (rc)
        return rc;
    *ret_nothing = nothing;
    return 0;
}

/* ---- the loop ---------------------------------------------------------------------- */

static void step_all(struct worker *worker)
{
    for (size_t i = 0; i < worker->jobs; i++) {
        struct slot *slot = &worker->slots[i];
        if (slot->run && slot->unrun)
            fail_unrun(worker, slot);
        else if (slot->run && hf_run_step(slot->run))
            finish(worker, slot);
    }
}

static void wait_all(struct worker *worker)
{
    struct pollfd fds[SLOTS_MAX * HF_RUN_FDS + 1];
    size_t n = 0;
    hf_ms least = CLAIM_MS;
    for (size_t i = 0; i < worker->jobs; i++) {
        hf_ms wait = 0;
        if (!worker->slots[i].run || worker->slots[i].unrun)
            continue;
        n += hf_run_poll(worker->slots[i].run, fds + n, &wait);
        least = wait < least ? wait : least;
    }
    if (worker->orphans && least > REAP_BUSY_MS)
        least = REAP_BUSY_MS;
    runner_wait(worker->runner, fds, n, least);
}

/* What was not even started needs no caller to stay: our death tells enough. */
static void stop_all(struct worker *worker)
{
    for (size_t i = 0; i < worker->jobs; i++) {
        if (worker->slots[i].unrun)
            free_slot(worker, &worker->slots[i]);
        else if (worker->slots[i].run)
            hf_run_stop(worker->slots[i].run, HF_RUN_DRAIN);
    }
}

static int loop(struct worker *worker)
{
    const struct hf_clock *clock = hf_clock_system();
    bool draining = false;
    int rc = 0;
    while (rc == 0) {
        hf_ms now = clock->mono_ms(clock->user);
        if (worker->runner->told) {
            worker->runner->told = 0;
            draining = true;
            stop_all(worker);
        }
        step_all(worker);
        draining |= worker->fault.code != 0;
        if (draining && worker->busy == 0)
            break;
        rc = bear(worker, reap(worker, now));
        bool room = !draining && worker->busy < worker->jobs;
        if (rc == 0 && room && (worker->busy == 0 || now >= worker->claim_at)) {
            worker->claim_at = now + CLAIM_MS;
            int claimed = claim(worker);
            if (claimed == 0 && !worker->idle)
                worker->claim_at = now; /* there may be more */
            rc = bear(worker, claimed);
        }
        if (rc == 0 && !draining && worker->busy == 0 && worker->idle &&
            cli_given(worker->runner->cli, "until-idle")) {
            bool nothing = false;
            rc = bear(worker, nothing_left(worker, &nothing));
            if (nothing)
                break;
        }
        if (rc == 0)
            wait_all(worker);
    }
    if (rc || !worker->fault.code)
        return rc;
    worker->runner->cli->err = worker->fault;
    return worker->fault.code;
}

int run_worker(struct runner *runner)
{
    struct cli *cli = runner->cli;
    struct worker *worker = hf_arena_new(&cli->arena, struct worker);
    if (!worker)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    worker->runner = runner;
    worker->jobs = (size_t)cli_number(cli, "jobs", 1);
    int rc = hf_reaper_new(cli->store, runner->place.locks, &worker->reaper, &cli->err);
    if (rc == 0)
        rc = loop(worker);
    for (size_t i = 0; i < worker->jobs; i++)
        if (worker->slots[i].run)
            free_slot(worker, &worker->slots[i]);
    if (worker->nonce[0])
        hf_run_leave(worker->next); /* its last claim was not answered */
    else
        hf_run_free(worker->next);
    hf_reaper_free(worker->reaper);
    if (rc == 0 && cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "ran", worker->ran);
        hf_json_put_i64(&cli->writer, "failed", worker->failed);
        cli_ok_end(cli);
    }
    return rc;
}
