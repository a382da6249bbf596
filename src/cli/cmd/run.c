/* holdfast run: one command as leased work.
 *
 * A run makes a unit (or claims the one that --id names), executes its command under the unit's
 * lease, and settles the unit by how the command ended. A unit with a lane, a key of which at most
 * one unit runs, may have to wait before it runs; a failed one may wait for its retry, which the
 * same process executes. A second run with the same key does not execute the command: it waits for
 * the first one's unit and exits as that did. Signals are noted in runner.told, and each wait looks
 * there. */
#include "cli/cmd/runner.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"

extern char **environ;

#define RETRY_LOOK_MS 100
#define SWEEP_LOOKS 10 /* another run is looked at so often between two sweeps */
#define SWEPT 64

/* ---- before anything is opened ------------------------------------------------------ */

const char *const *run_environment(void)
{
    return (const char *const *)(void *)environ;
}

static int full_folder(struct cli *cli, const char **ret_cwd)
{
    char whole[PATH_MAX];
    struct stat at;
    const char *cwd = cli_text(cli, "cwd");
    if (!realpath(cwd ? cwd : ".", whole))
        return hf_fail(&cli->err, HF_EINVAL, "--cwd", "--cwd: %.120s: %s",
                       cwd ? cwd : ".", strerror(errno));
    if (stat(whole, &at) != 0 || !S_ISDIR(at.st_mode))
        return hf_fail(&cli->err, HF_EINVAL, "--cwd", "--cwd: %.120s is not a folder",
                       whole);
    *ret_cwd = hf_arena_text(&cli->arena, whole);
    return *ret_cwd ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* A list of the option's texts that ends in NULL. */
static int list_of(struct cli *cli, const char *name, const char *const **ret_list)
{
    size_t n = 0;
    const char *const *texts = cli_texts(cli, name, &n);
    const char **list = hf_arena_array(&cli->arena, n + 1, sizeof(*list));
    if (!list)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    if (n)
        memcpy(list, texts, n * sizeof(*list));
    *ret_list = list;
    return 0;
}

/* "NAME" becomes "NAME=value" from our own environment. */
static int complete_env(struct cli *cli, const char *const **ret_env)
{
    size_t n = 0;
    const char *const *texts = cli_texts(cli, "env", &n);
    const char **list = hf_arena_array(&cli->arena, n + 1, sizeof(*list));
    if (!list)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    for (size_t i = 0; i < n; i++) {
        const char *value = strchr(texts[i], '=') ? NULL : getenv(texts[i]);
        struct hf_buf whole;
        list[i] = texts[i];
        if (strchr(texts[i], '='))
            continue;
        if (!value)
            return hf_fail(
                &cli->err, HF_EINVAL, "--env",
                "--env: the variable %.80s is not set: set it, or write NAME=VALUE",
                texts[i]);
        hf_buf_init(&whole, hf_alloc_system(), (size_t)1 << 20);
        hf_buf_text(&whole, texts[i]);
        hf_buf_char(&whole, '=');
        hf_buf_text(&whole, value);
        list[i] = hf_buf_keep(&whole, &cli->arena);
        if (!list[i])
            return hf_fail_plain(&cli->err, HF_ENOMEM);
    }
    *ret_env = list;
    return 0;
}

static int check_secrets(struct cli *cli)
{
    size_t n = 0;
    const char *const *names = cli_texts(cli, "secret", &n);
    for (size_t i = 0; i < n; i++)
        if (!getenv(names[i]))
            return hf_fail(&cli->err, HF_EINVAL, "--secret",
                           "--secret: the variable %.80s is not set", names[i]);
    return 0;
}

int run_command(struct cli *cli, struct hf_command *ret_command)
{
    struct hf_command command = {
        .size = sizeof(command),
        .timeout_ms = cli_number(cli, "timeout", 0),
        .kill_after_ms = cli_number(cli, "kill-after", 0),
        .require_close_out = cli_given(cli, "require-close-out"),
    };
    int rc = full_folder(cli, &command.cwd);
    if (rc == 0)
        rc = list_of(cli, "command", &command.argv);
    if (rc == 0)
        rc = list_of(cli, "secret", &command.secrets);
    if (rc == 0)
        rc = list_of(cli, "evidence", &command.evidence);
    if (rc == 0)
        rc = complete_env(cli, &command.env);
    if (rc == 0)
        *ret_command = command;
    return rc;
}

static int check_worker(struct cli *cli)
{
    if (cli_given(cli, "command") || cli_given(cli, "id") || cli_given(cli, "detach"))
        return hf_fail(
            &cli->err, HF_EINVAL, "--worker",
            "--worker takes its commands from the queue: leave the command out");
    return 0;
}

/* What only a runner could do. */
static int check_detach(struct cli *cli)
{
    static const char *const needs_runner[] = {
        "disposition", "max-attempts",      "retry-policy", "timeout", "kill-after",
        "ttl",         "require-close-out", "lane",         "evidence"
    };
    size_t n = sizeof(needs_runner) / sizeof(needs_runner[0]);
    for (size_t i = 0; cli_given(cli, "detach") && i < n; i++)
        if (cli_given(cli, needs_runner[i]))
            return hf_fail(
                &cli->err, HF_EINVAL, "--detach",
                "--%s and --detach exclude each other: a detached command has no runner",
                needs_runner[i]);
    return 0;
}

int check_run(struct cli *cli)
{
    struct hf_command command;
    char path[PATH_MAX], *payload = NULL;
    const char *disposition = cli_text(cli, "disposition");
    bool rerunnable = disposition && strcmp(disposition, "rerunnable") == 0;
    if (cli_given(cli, "worker"))
        return check_worker(cli);
    if (cli_given(cli, "jobs") || cli_given(cli, "until-idle"))
        return hf_fail(&cli->err, HF_EINVAL, "--worker",
                       "--jobs and --until-idle need --worker");
    if (!cli_given(cli, "command"))
        return cli_given(cli, "id") && !cli_given(cli, "detach")
                   ? 0
                   : hf_fail(&cli->err, HF_EINVAL, "command",
                             "a command is needed: holdfast run [options] -- CMD ARGS");
    if (cli_number(cli, "max-attempts", 1) > 1 && !rerunnable)
        return hf_fail(&cli->err, HF_EINVAL, "--max-attempts",
                       "--max-attempts above 1 needs --disposition rerunnable: an "
                       "owner_bound unit is never run again");
    int rc = check_detach(cli);
    if (rc == 0)
        rc = check_secrets(cli);
    if (rc == 0)
        rc = run_command(cli, &command);
    if (rc == 0)
        rc = hf_command_write(&command, &payload, &cli->err);
    free(payload);
    return rc ? rc
              : hf_child_find(command.argv[0], run_environment(), command.cwd,
                              sizeof(path), path, &cli->err);
}

/* ---- signals ----------------------------------------------------------------------- */

/* Before the store starts its threads, so that all of them leave the signals to us. The
 * command gets a clean mask of its own. */
static int take_signals(struct runner *runner)
{
    sigset_t set;
    struct sigaction hangup;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP); /* one that is ignored, by nohup, stays so */
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        runner->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (runner->signals < 0)
        return hf_fail(&runner->cli->err, HF_EINTERNAL, NULL,
                       "cannot receive signals: %s", strerror(errno));
    return 0;
}

void runner_wait(struct runner *runner, struct pollfd *fds, size_t count, hf_ms ms)
{
    struct signalfd_siginfo info;
    fds[count] = (struct pollfd){ .fd = runner->signals, .events = POLLIN };
    (void)poll(fds, count + 1, (int)(ms < 60000 ? ms : 60000));
    while (read(runner->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        runner->told = (int)info.ssi_signo;
}

enum hf_run_stop runner_why(int signal)
{
    return signal == SIGINT ? HF_RUN_INTERRUPT : HF_RUN_DRAIN;
}

const char *run_owner(struct cli *cli)
{
    char host[128] = "";
    const char *given = cli_text(cli, "owner");
    if (given)
        return given;
    (void)gethostname(host, sizeof(host) - 1); /* without one it is run::PID */
    char *name = hf_arena_take(&cli->arena, 192);
    if (name)
        (void)snprintf(name, 192, "run:%s:%d", host, (int)getpid());
    return name;
}

int runner_begin(struct runner *runner, struct cli *cli)
{
    *runner = (struct runner){ .cli = cli, .signals = -1, .owner = run_owner(cli) };
    if (!runner->owner)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    if (!cli_text(cli, "actor") && !getenv("HOLDFAST_ACTOR"))
        cli->who.actor = runner->owner;
    int rc = take_signals(runner);
    if (rc == 0)
        rc = cli_open_store(cli);
    return rc ? rc : cli_store_place(cli, &runner->place);
}

void runner_end(struct runner *runner)
{
    if (runner->signals >= 0)
        (void)close(runner->signals); /* a descriptor of the kernel's */
}

struct hf_run_plan runner_plan(const struct runner *runner, const struct hf_item *item,
                               const struct hf_command *command)
{
    return (struct hf_run_plan){
        .size = sizeof(struct hf_run_plan),
        .who = &runner->cli->who,
        .item = item,
        .command = command,
        .db = runner->place.url,
        .base_env = run_environment(),
        .stdin_fd = -1,
        .show = { -1, -1 },
    };
}

/* ---- one unit ---------------------------------------------------------------------- */

struct job {
    struct runner runner;
    struct hf_command command;
    struct hf_command_text *stored; /* of a unit that was claimed by its id */
    const char *work_id;
    struct hf_run *run;
    struct hf_answer *answer; /* as claimed */
    struct hf_run_result result;
    int64_t attempts;
    int told;          /* a signal that came while a command was followed */
    bool first_exists; /* the idempotency key was used before: nothing was run */
    bool first_known;  /* how that run's command ended is in `result` */
    bool first_unmet;  /* that run exited with 125 though its command had ended with 0 */
};

static struct hf_claim claim_of(struct job *job)
{
    return (struct hf_claim){ .size = sizeof(struct hf_claim),
                              .owner = job->runner.owner,
                              .pid = getpid(),
                              .id = job->work_id,
                              .ttl_ms = cli_number(job->runner.cli, "ttl", 0),
                              .lock = hf_run_lock(job->run),
                              .ttl_default_ms = HF_RUN_TTL_MS };
}

struct hf_work_spec run_unit(struct cli *cli, const char *run_id, const char *payload)
{
    const char *name = cli_text(cli, "name");
    const char *disposition = cli_text(cli, "disposition");
    const char *queue = cli_text(cli, "queue");
    const char *parent = getenv("HOLDFAST_WORK_ID");
    return (struct hf_work_spec){
        .size = sizeof(struct hf_work_spec),
        .source = HF_SOURCE_MANUAL,
        .source_id = name ? name : run_id,
        .source_run_id = name ? run_id : NULL,
        .kind = HF_RUN_KIND,
        .queue = queue ? queue : RUN_QUEUE,
        .lane_key = cli_text(cli, "lane"),
        .idempotency_key = cli_text(cli, "idempotency-key"),
        .parent_work_id = parent && *parent ? parent : NULL,
        .payload = payload,
        .disposition = disposition ? hf_disposition_of(disposition)
                                   : HF_DISPOSITION_OWNER_BOUND,
        .priority = -1,
        .max_attempts = (int)cli_number(cli, "max-attempts", 1),
        .retry_policy = cli_text(cli, "retry-policy"),
    };
}

/* Made and claimed in one transaction: no other caller can come between. */
static int make_unit(struct job *job)
{
    struct cli *cli = job->runner.cli;
    char *payload = NULL, nonce[HF_NONCE_TEXT];
    const char *key = cli_text(cli, "idempotency-key");
    int rc = hf_nonce(hf_random_system(), nonce, &cli->err);
    if (rc == 0)
        rc = hf_command_write(&job->command, &payload, &cli->err);
    if (rc)
        return rc;
    struct hf_claim claim = claim_of(job);
    struct hf_work_spec work = run_unit(cli, key ? key : nonce, payload);
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &work,
                                       .identity_kind = HF_RUN_KIND,
                                       .identity_label = cli_text(cli, "name"),
                                       .claim = &claim };
    rc = hf_process_register(cli->store, &cli->who, &process, &job->answer, &cli->err);
    free(payload);
    return rc;
}

static int claim_unit(struct job *job)
{
    struct cli *cli = job->runner.cli;
    struct hf_claim claim = claim_of(job);
    int rc = hf_work_claim(cli->store, &cli->who, &claim, &job->answer, &cli->err);
    if (rc == 0 && hf_answer_count(job->answer) == 0)
        rc = hf_fail(&cli->err, HF_EHELD, "--id", "unit %s cannot be claimed now",
                     job->work_id);
    const struct hf_item *item = rc ? NULL : hf_answer_at(job->answer, 0);
    if (rc || job->command.argv)
        return rc;
    rc = hf_command_read(item->work.payload, &job->stored, &cli->err);
    if (rc == 0) {
        job->command = *hf_command_of(job->stored);
        return 0;
    }
    struct hf_change back = { .size = sizeof(back), /* it is not ours to run */
                              .verb = HF_VERB_HAND_BACK,
                              .id = item->work.work_id,
                              .token = item->token,
                              .reason = "not a command" };
    struct hf_answer *done = NULL;
    struct hf_err ignored;
    if (hf_work_change(cli->store, &cli->who, &back, 1, 0, &done, &ignored) == 0)
        hf_answer_free(done);
    return rc;
}

/* Does the unit wait to be executed, with no holder? Also false if the store does not answer. */
static bool waits_to_run(struct job *job)
{
    struct cli *cli = job->runner.cli;
    struct hf_answer *found = NULL;
    struct hf_err ignored;
    if (hf_work_get(cli->store, &cli->who, job->work_id, &found, &ignored))
        return false;
    enum hf_status status = hf_status_of(hf_answer_at(found, 0)->work.status);
    hf_answer_free(found);
    return status == HF_STATUS_RETRY_SCHEDULED || status == HF_STATUS_QUEUED;
}

/* Interrupted while nothing of the unit runs: cancels it, as if its command had been interrupted,
 * and sets the status of the result to cancelled. A unit that another caller executes by now, or
 * that has ended, is left as it is: 0, and the status stays. */
static int cancel_waiting_unit(struct job *job, const char *reason)
{
    struct cli *cli = job->runner.cli;
    struct hf_answer *done = NULL;
    struct hf_change cancel = { .size = sizeof(cancel),
                                .verb = HF_VERB_CANCEL,
                                .id = job->work_id,
                                .reason = reason };
    if (!waits_to_run(job))
        return 0;
    int rc = hf_work_change(cli->store, &cli->who, &cancel, 1, HF_ALL_OR_NONE, &done,
                            &cli->err);
    if (rc == 0)
        job->result.status = hf_status_word(HF_STATUS_CANCELLED);
    hf_answer_free(done);
    return rc;
}

/* A signal came while the unit waited for its lane, so its command never ran: HF_EHELD, which says
 * what becomes of the unit. SIGINT cancels it; after any other signal it stays in the queue. */
static int stop_before_run(struct job *job)
{
    bool cancelled = false;
    if (job->runner.told == SIGINT) {
        int rc = cancel_waiting_unit(job, "interrupted before it ran");
        if (rc)
            return rc;
        cancelled = job->result.status != NULL;
    }
    const char *fate = cancelled           ? "it was cancelled"
                       : waits_to_run(job) ? "it stays in the queue"
                                           : "it does not wait any more";
    return hf_fail(&job->runner.cli->err, HF_EHELD, "--lane",
                   "stopped while unit %s waited for its lane: %s", job->work_id, fate);
}

/* The lane of the unit is taken: claims the unit again and again, until it is ours, or a signal
 * says to stop, or the unit has ended (HF_ETRANSITION). */
static int wait_for_lane(struct job *job)
{
    struct pollfd fds[1];
    bool waits;
    int rc;
    do {
        hf_answer_free(job->answer);
        job->answer = NULL;
        if (job->runner.told)
            return stop_before_run(job);
        runner_wait(&job->runner, fds, 0, RETRY_LOOK_MS);
        waits = waits_to_run(
            job); /* before the claim: its error then says how the unit ended */
        rc = claim_unit(job);
    } while (rc == HF_EHELD || (rc == HF_ETRANSITION && waits));
    return rc;
}

static int take_unit(struct job *job)
{
    struct cli *cli = job->runner.cli;
    int rc = hf_run_new(cli->store, job->runner.place.locks, &job->run, &cli->err);
    if (rc)
        return rc;
    rc = job->work_id ? claim_unit(job) : make_unit(job);
    if (hf_err_class(rc) == HF_CLASS_UNKNOWN) {
        hf_run_leave(job->run); /* it may have been made all the same */
        job->run = NULL;
    }
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(job->answer, 0);
    bool created = item->created;
    job->first_exists = !item->token && !created;
    job->work_id = hf_arena_text(&cli->arena, item->work.work_id);
    if (!job->work_id)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    return created && !item->token ? wait_for_lane(job) : 0;
}

static bool has_terminal(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* With --json standard output is for the envelope. */
static void follow(struct job *job)
{
    struct pollfd fds[HF_RUN_FDS + 1];
    for (;;) {
        hf_ms wait = 0;
        int before = job->runner.told;
        job->runner.told = 0;
        if (before) {
            job->told = before;
            hf_run_stop(job->run, runner_why(before));
        }
        if (hf_run_step(job->run))
            return;
        size_t n = hf_run_poll(job->run, fds, &wait);
        runner_wait(&job->runner, fds, n, wait);
    }
}

static int execute(struct job *job)
{
    struct cli *cli = job->runner.cli;
    bool terminal = has_terminal();
    struct hf_run_plan plan = runner_plan(&job->runner, hf_answer_at(job->answer, 0),
                                          &job->command);
    plan.stdin_fd = cli->stdin_closed ? -1 : STDIN_FILENO;
    plan.terminal = terminal;
    plan.show[HF_STDOUT] = cli->json ? STDERR_FILENO : STDOUT_FILENO;
    plan.show[HF_STDERR] = STDERR_FILENO;
    if (terminal) /* or showing output, and taking the terminal back, could stop us */
        (void)signal(SIGTTOU, SIG_IGN);
    int rc = hf_run_begin(job->run, &plan, &cli->err);
    if (rc == 0)
        follow(job);
    if (terminal)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
    job->result = *hf_run_result(job->run);
    job->attempts++;
    hf_answer_free(job->answer);
    job->answer = NULL;
    hf_run_free(job->run);
    job->run = NULL;
    return rc;
}

/* Until the unit's retry is due. False when a signal says to stop. */
static bool wait_for_retry(struct job *job)
{
    struct pollfd fds[1];
    while (!job->runner.told && !job->told) {
        hf_ms left = job->result.next_retry_at - cli_store_now(job->runner.cli);
        if (left <= 0)
            return true;
        runner_wait(&job->runner, fds, 0, left < RETRY_LOOK_MS ? left : RETRY_LOOK_MS);
    }
    return false;
}

/* The server's clock may be behind ours, and the lane may be taken: then it is waited for. */
static int take_again(struct job *job)
{
    struct pollfd fds[1];
    int rc = take_unit(job);
    while ((rc == HF_EHELD || rc == HF_ETRANSITION) && !job->runner.told &&
           waits_to_run(job)) {
        hf_run_free(job->run);
        job->run = NULL;
        runner_wait(&job->runner, fds, 0, RETRY_LOOK_MS);
        rc = take_unit(job);
    }
    return rc;
}

/* Another caller may have taken it up meanwhile: then it is theirs. */
static int run_again(struct job *job)
{
    struct cli *cli = job->runner.cli;
    int rc = take_again(job);
    if (rc != HF_EHELD && rc != HF_ETRANSITION)
        return rc ? rc : execute(job);
    if (!job->runner.told)
        cli_note(cli, "another runner took over unit %s", job->work_id);
    return 0;
}

/* ---- the key was used before --------------------------------------------------------- */

/* {"exit_code":3,…} or {"signal":15,…}. A command that was ended since its run had lost the lease
 * did not decide that run's exit code. */
static bool parse_exit(const char *payload, struct hf_run_result *ret_result)
{
    struct json_t *all = NULL;
    struct hf_span text = { payload ? payload : "", payload ? strlen(payload) : 0 };
    if (hf_json_parse(text, (size_t)HF_MAX_EVENT_BYTES, "payload", &all, NULL))
        return false;
    const struct json_t *code = hf_json_member(all, "exit_code");
    const struct json_t *signal = hf_json_member(all, "signal");
    ret_result->exit = (struct hf_child_exit){
        .known = (code || signal) &&
                 !hf_same(hf_json_as_text(hf_json_member(all, "stopped_by")),
                          "lease_lost"),
        .exit_code = code ? (int)hf_json_as_i64(code) : 0,
        .signal = signal ? (int)hf_json_as_i64(signal) : 0,
    };
    ret_result->exit_code = signal ? 128 + ret_result->exit.signal
                                   : ret_result->exit.exit_code;
    hf_json_free(all);
    return ret_result->exit.known;
}

/* How the command of a unit's last attempt ended, from the last such event of its trail. That of
 * an attempt whose runner died is not known. */
static int read_exit(struct job *job)
{
    struct cli *cli = job->runner.cli;
    struct hf_events *trail = NULL;
    int rc = hf_work_events(cli->store, &cli->who, job->work_id, 0, 0, &trail, &cli->err);
    for (size_t i = rc ? 0 : hf_events_count(trail); i > 0; i--) {
        const struct hf_event *event = hf_events_at(trail, i - 1);
        if (hf_same(event->event_type, "process_started"))
            break;
        if (!hf_same(event->event_type, "process_exited"))
            continue;
        job->first_known = parse_exit(event->payload, &job->result);
        break;
    }
    hf_events_free(trail);
    return rc;
}

/* Did its run report a fault of ours instead of the command's exit code 0? */
static bool was_unmet(const struct hf_work *work)
{
    enum hf_status status = hf_status_of(work->status);
    if (status == HF_STATUS_WAITING_USER)
        return work->close_rule && hf_same(work->waiting_ref, work->work_id);
    return status == HF_STATUS_FAILED && (hf_same(work->error_class, HF_RUN_NOT_CLOSED) ||
                                          hf_same(work->error_class, HF_RUN_NO_EVIDENCE));
}

/* Is it still to run, or running? */
static int first_is_open(struct job *job, bool *ret_open)
{
    struct cli *cli = job->runner.cli;
    struct hf_answer *found = NULL;
    int rc = hf_work_get(cli->store, &cli->who, job->work_id, &found, &cli->err);
    if (rc)
        return rc;
    enum hf_status status = hf_status_of(hf_answer_at(found, 0)->work.status);
    job->result.status = hf_status_word(status);
    job->first_unmet = was_unmet(&hf_answer_at(found, 0)->work);
    hf_answer_free(found);
    *ret_open = status == HF_STATUS_QUEUED || status == HF_STATUS_RUNNING ||
                status == HF_STATUS_RETRY_SCHEDULED;
    return 0;
}

/* The runner of the first run may be dead and no monitor may run: then only a sweep ends it. */
static int sweep_some(struct job *job)
{
    struct cli *cli = job->runner.cli;
    struct hf_sweep_report report;
    int rc = hf_work_sweep(cli->store, &cli->who, SWEPT, &report, &cli->err);
    return hf_err_class(rc) == HF_CLASS_RETRYABLE ? 0 : rc;
}

/* The outcome of a repeat is that of the first run: it is waited for. */
static int follow_first(struct job *job)
{
    struct pollfd fds[1];
    struct cli *cli = job->runner.cli;
    bool open = true, told = false;
    int looks = 0;
    int rc = first_is_open(job, &open);
    while (rc == 0 && open) {
        if (!told)
            cli_note(cli, "unit %s exists, with status %s: waiting for its end",
                     job->work_id, job->result.status);
        told = true;
        if (job->runner.told)
            return hf_fail(&cli->err, HF_EHELD, NULL,
                           "stopped while unit %s, which has the same key, was %s",
                           job->work_id, job->result.status);
        if (looks++ % SWEEP_LOOKS == 0)
            rc = sweep_some(job);
        else
            runner_wait(&job->runner, fds, 0, RETRY_LOOK_MS);
        if (rc == 0)
            rc = first_is_open(job, &open);
    }
    return rc ? rc : read_exit(job);
}

static bool wants_retry(const struct job *job)
{
    const struct hf_run_result *result = &job->result;
    return result->end == HF_RUN_SETTLED && result->next_retry_at &&
           hf_status_of(result->status) == HF_STATUS_RETRY_SCHEDULED;
}

static int run_all(struct job *job)
{
    int rc = take_unit(job);
    if (rc == 0 && job->first_exists)
        return follow_first(job);
    if (rc == 0)
        rc = execute(job);
    while (rc == 0 && wants_retry(job) && wait_for_retry(job)) {
        int64_t before = job->attempts;
        rc = run_again(job);
        if (job->attempts == before)
            break;
    }
    if (rc == 0 && wants_retry(job) &&
        (job->runner.told == SIGINT || job->told == SIGINT))
        rc = cancel_waiting_unit(job, "interrupted before its retry");
    return rc;
}

/* ---- the answer -------------------------------------------------------------------- */

static int print_json(struct job *job)
{
    struct cli *cli = job->runner.cli;
    const struct hf_child_exit *how = &job->result.exit;
    cli_ok_begin(cli);
    hf_json_put_str(&cli->writer, "work_id", job->work_id);
    hf_json_put_bool(&cli->writer, "ran", !job->first_exists);
    hf_json_put_str(&cli->writer, "status", job->result.status);
    if (!job->first_exists)
        hf_json_put_i64(&cli->writer, "attempts", job->attempts);
    if (!job->first_exists || job->first_known) {
        hf_json_key(&cli->writer, "exit_code");
        if (how->known && !how->signal)
            hf_json_i64(&cli->writer, how->exit_code);
        else
            hf_json_null(&cli->writer);
        hf_json_key(&cli->writer, "signal");
        if (how->known && how->signal)
            hf_json_i64(&cli->writer, how->signal);
        else
            hf_json_null(&cli->writer);
    }
    cli_ok_end(cli);
    return 0;
}

/* The command ended with 0, and the unit waits for a person all the same. */
static void tell_unmet(struct job *job)
{
    struct cli *cli = job->runner.cli;
    cli_note(cli,
             "the command ended with exit code 0, but unit %s waits for a person: %s",
             job->work_id, job->result.err.message);
    cli_note(
        cli,
        "to continue: holdfast work close-out %s --status done --authority NAME --%s",
        job->work_id,
        hf_same(job->result.err.field, "evidence") ? "evidence REF" : "reviewer NAME");
    cli->exit_code = 125;
}

/* As the first run exited: with its command's code, unless something of ours went wrong. Where
 * that code is not known, the status decides. */
static int code_of_first(const struct job *job)
{
    if (!job->first_known)
        return hf_status_of(job->result.status) == HF_STATUS_DONE ? 0 : 125;
    return job->result.exit_code == 0 && job->first_unmet ? 125 : job->result.exit_code;
}

/* What the caller learns: the command's own code, unless something of ours went wrong. */
static int answer(struct job *job)
{
    struct cli *cli = job->runner.cli;
    struct hf_run_result *result = &job->result;
    if (job->first_exists) {
        cli_note(cli, "unit %s exists, with status %s: nothing was run", job->work_id,
                 result->status);
        cli->exit_code = code_of_first(job);
        return cli->json ? print_json(job) : 0;
    }
    if (result->end == HF_RUN_UNRECORDED)
        return hf_fail(
            &cli->err, result->err.code, result->err.field,
            "the command ended (exit code %d), but its end could not be recorded: %.120s",
            result->exit_code, result->err.message);
    if (result->end == HF_RUN_TAKEN)
        return hf_fail(&cli->err, HF_ELEASELOST, NULL,
                       "the lease of unit %s was lost, so the command was ended",
                       job->work_id);
    enum hf_status status = hf_status_of(result->status);
    cli->exit_code = result->exit_code;
    if (result->end == HF_RUN_UNMET)
        tell_unmet(job);
    if (job->command.require_close_out && result->exit_code == 0 &&
        result->end == HF_RUN_SETTLED) {
        cli_note(cli, "the command ended without closing unit %s out", job->work_id);
        cli->exit_code = 125;
    } else if (result->exit_code == 0 && result->end == HF_RUN_SETTLED &&
               (status == HF_STATUS_FAILED || status == HF_STATUS_RETRY_SCHEDULED)) {
        cli_note(cli,
                 "the command ended with exit code 0, but not all of its evidence "
                 "is there: unit %s is %s",
                 job->work_id, result->status);
        cli->exit_code = 125;
    }
    return cli->json ? print_json(job) : 0;
}

static int run_one(struct job *job)
{
    struct cli *cli = job->runner.cli;
    int rc = op_full_id(&cli->call, cli_text(cli, "id"), &job->work_id);
    if (rc == 0 && cli_given(cli, "command"))
        rc = run_command(cli, &job->command);
    if (rc == 0)
        rc = run_all(job);
    hf_answer_free(job->answer);
    hf_run_free(job->run);
    if (rc == 0)
        rc = answer(job);
    hf_command_free(job->stored);
    return rc;
}

int cmd_run(struct cli *cli)
{
    struct job job = { 0 };
    if (cli_given(cli, "detach"))
        return run_detached(cli);
    int rc = runner_begin(&job.runner, cli);
    if (rc == 0)
        rc = cli_given(cli, "worker") ? run_worker(&job.runner) : run_one(&job);
    runner_end(&job.runner);
    return rc;
}
