/* holdfast process: background processes. What is done to one is done to its unit. */
#include "cli/cli.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/reports.h"
#include "core/process/process.h"

extern char **environ;

/* ---- start ------------------------------------------------------------------------- */

struct starting {
    struct cli *cli;
    struct hf_new work;
    struct hf_process_new process;
    struct hf_command command;
    char nonce[HF_NONCE_TEXT];
    char *payload;
};

static int make_command(struct starting *s)
{
    struct cli *cli = s->cli;
    char cwd[PATH_MAX], path[PATH_MAX];
    size_t n = 0;
    const char *const *words = cli_texts(cli, "command", &n);
    const char **argv = hf_arena_array(&cli->arena, n + 1, sizeof(*argv));
    const char *folder = realpath(".", cwd) ? hf_arena_text(&cli->arena, cwd) : NULL;
    if (!argv || !folder)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    memcpy(argv, words, n * sizeof(*argv));
    s->command = (struct hf_command){ .size = sizeof(s->command),
                                      .argv = argv,
                                      .cwd = folder,
                                      .timeout_ms = cli_number(cli, "timeout", 0) };
    int rc = hf_command_write(&s->command, &s->payload, &cli->err);
    return rc ? rc
              : hf_command_find(argv[0], (const char *const *)(void *)environ, folder,
                                sizeof(path), path, &cli->err);
}

/* KEY=VALUE, … as an object of texts. */
static int read_labels(struct starting *s)
{
    struct cli *cli = s->cli;
    struct hf_buf text;
    struct hf_json json;
    size_t n = 0;
    const char *const *labels = cli_texts(cli, "label", &n);
    if (n == 0)
        return 0;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(labels[i], '=');
        char *key = equals && equals > labels[i]
                        ? hf_arena_copy(&cli->arena, labels[i],
                                        (size_t)(equals - labels[i]))
                        : NULL;
        if (!key) {
            hf_buf_fini(&text);
            return hf_fail(&cli->err, HF_EINVAL, "--label", "--label takes KEY=VALUE");
        }
        hf_json_put_str(&json, key, equals + 1);
    }
    hf_json_end(&json);
    s->process.labels = hf_buf_keep(&text, &cli->arena);
    return s->process.labels ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

static void read_unit(struct starting *s, bool command)
{
    struct cli *cli = s->cli;
    const char *key = cli_text(cli, "idempotency-key"), *queue = cli_text(cli, "queue");
    enum hf_disposition disposition = hf_disposition_of(cli_text(cli, "disposition"));
    bool bound = disposition == HF_OWNER_BOUND; /* never run again: one attempt */
    if (!queue && command)
        queue = "run";
    s->work = (struct hf_new){
        .size = sizeof(s->work),
        .source = HF_SOURCE_MANUAL,
        .source_id = key ? key : s->nonce,
        .kind = command ? HF_RUN_KIND : NULL,
        .queue = queue,
        .idempotency_key = key,
        .ref = cli_text(cli, "ref"),
        .parent_work_id = cli_text(cli, "parent"),
        .payload = command ? s->payload : cli_text(cli, "input"),
        .disposition = disposition,
        .priority = -1,
        .max_attempts = (int)cli_number(cli, "max-attempts", bound ? 1 : 0),
        .detached = cli_given(cli, "detached"),
    };
}

static int read_start(struct starting *s, struct cli *cli)
{
    bool command = cli_given(cli, "command");
    const char *kind = cli_text(cli, "kind");
    *s = (struct starting){ .cli = cli };
    int rc = hf_nonce(hf_random_system(), s->nonce, &cli->err);
    if (rc == 0 && command && cli_given(cli, "input"))
        rc = hf_fail(&cli->err, HF_EINVAL, "--input",
                     "a command is its own input: give one of both");
    if (rc == 0 && command)
        rc = make_command(s);
    if (rc)
        return rc;
    read_unit(s, command);
    s->process = (struct hf_process_new){
        .size = sizeof(s->process),
        .work = &s->work,
        .identity_kind = kind      ? kind
                         : command ? "shell"
                                   : "process",
        .identity_label = cli_text(cli, "name"),
        .definition = cli_text(cli, "definition"),
        .originator = cli_text(cli, "originator"),
        .wake_session = cli_text(cli, "wake"),
    };
    s->process.observers = cli_texts(cli, "observer", &s->process.observer_count);
    return read_labels(s);
}

int check_process_start(struct cli *cli)
{
    struct starting s;
    int rc = read_start(&s, cli);
    free(s.payload);
    if (rc == 0 && s.command.argv && s.work.disposition == HF_EXTERNALLY_OWNED)
        rc = hf_fail(
            &cli->err, HF_EINVAL, "--disposition",
            "what is externally_owned is run elsewhere: give no command; `holdfast run "
            "--detach` hands one off");
    if (rc == 0 && s.work.max_attempts > 1 && s.work.disposition != HF_RERUNNABLE)
        rc = hf_fail(&cli->err, HF_EINVAL, "--max-attempts",
                     "--max-attempts above 1 needs --disposition rerunnable: anything "
                     "else is never run again");
    return rc;
}

/* A runner of its own in a session of its own: it outlives this command and its terminal.
 * If it cannot claim the unit, any `holdfast run --worker` can. */
static int start_runner(struct cli *cli, const char *id)
{
    struct cli_place place;
    int rc = cli_store_place(cli, &place);
    if (rc)
        return rc;
    /* Not --db: anybody can read a command line, and the address may hold a password. */
    const char *const argv[] = { "holdfast", "run", "--quiet", "--id", id, NULL };
    if (setenv("HOLDFAST_DB", place.url, 1) != 0)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    sigset_t none;
    pid_t pid;
    (void)sigemptyset(&none);
    int failed = posix_spawnattr_init(&how);
    if (failed == 0)
        failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    failed = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    if (failed == 0)
        failed = posix_spawnattr_setsigmask(&how, &none);
    for (int fd = 0; failed == 0 && fd < 3; fd++)
        failed = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    if (failed ==
        0) /* the lock of a command in which this runs would make it that command's */
        failed = posix_spawn_file_actions_addclosefrom_np(&files, 3);
    if (failed == 0)
        failed = posix_spawn(&pid, "/proc/self/exe", &files, &how,
                             (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files); /* nothing of either is kept */
    (void)posix_spawnattr_destroy(&how);
    return failed == 0 ? 0
                       : hf_fail(&cli->err, HF_EINTERNAL, NULL,
                                 "process %s is registered, but no runner could be "
                                 "started: %s",
                                 id, strerror(failed));
}

/* What happens next, and what does not happen by itself. */
static void say_what_follows(struct cli *cli, const struct starting *s, bool runs)
{
    const char *who = "`holdfast monitor --run` or `holdfast run --worker`";
    if (!s->command.argv)
        return;
    if (!runs)
        cli_note(cli, "nothing runs it yet: it waits for %s", who);
    else if (s->work.disposition == HF_RERUNNABLE)
        cli_note(cli, "it runs in the background; if its runner dies, %s runs it again",
                 who);
}

int cmd_process_start(struct cli *cli)
{
    struct starting s;
    struct hf_answer *answer = NULL;
    int rc = read_start(&s, cli);
    if (rc == 0)
        rc = hf_process_register(cli->store, &cli->who, &s.process, &answer, &cli->err);
    free(s.payload);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    bool runs = item->code == 0 && item->created && s.command.argv &&
                !cli_given(cli, "no-run");
    if (runs)
        rc = start_runner(cli, item->work.work_id);
    if (rc == 0)
        rc = cli_print_row(cli, item, item->created ? "started" : "exists already:");
    if (rc == 0 && item->created)
        say_what_follows(cli, &s, runs);
    hf_answer_free(answer);
    return rc;
}

/* ---- list, show -------------------------------------------------------------------- */

static void json_holder(struct cli *cli, const struct hf_work *w)
{
    struct hf_json *json = &cli->writer;
    hf_json_key(json, "lease_holder");
    if (!w->owner) {
        hf_json_null(json);
        return;
    }
    hf_json_object(json);
    hf_json_put_str(json, "owner", w->owner);
    hf_json_put_str(json, "incarnation", w->owner_incarnation);
    hf_json_key(json, "process");
    hf_json_raw(json, w->holder);
    hf_json_end(json);
}

static void json_time(struct cli *cli, const char *key, hf_ms at)
{
    hf_json_key(&cli->writer, key);
    if (at)
        hf_json_i64(&cli->writer, at);
    else
        hf_json_null(&cli->writer);
}

/* The raw facts first, then what is its own, then its whole unit. */
static void json_process(struct cli *cli, const struct hf_process *p)
{
    struct hf_json *json = &cli->writer;
    const struct hf_work *w = &p->work;
    hf_json_object(json);
    hf_json_put_str(json, "process_id", w->work_id);
    hf_json_put_str(json, "status", w->status);
    hf_json_put_str(json, "disposition", w->disposition);
    json_time(cli, "first_started", w->first_started_at);
    json_holder(cli, w);
    json_time(cli, "lease_expires_at", w->lease_expires_at);
    hf_json_key(json, "lease_remaining_ms");
    if (w->lease_expires_at)
        hf_json_i64(json, w->lease_remaining_ms);
    else
        hf_json_null(json);
    hf_json_put_raw(json, "abandon_request", w->abandon_request);
    hf_json_put_raw(json, "cancel_request", w->cancel_request);
    for (size_t i = 0; i < hf_process_field_count; i++) {
        const struct hf_field *field = &hf_process_fields[i];
        hf_json_key(json, field->name);
        if (field->kind == HF_FIELD_JSON)
            hf_json_raw(json, hf_field_text(field, p));
        else
            hf_json_str(json, hf_field_text(field, p));
    }
    hf_json_key(json, "work");
    cli_json_fields(cli, hf_work_fields, hf_work_field_count, w);
    hf_json_end(json);
}

static void table_row(struct cli_table *table, const struct hf_process *p)
{
    const struct hf_work *w = &p->work;
    char lease[64] = "-", first[24] = "-", age[24];
    if (w->lease_expires_at)
        (void)snprintf(lease, sizeof(lease), "%s%s",
                       w->lease_remaining_ms > 0 ? "" : "lapsed ",
                       op_age(w->lease_remaining_ms, age));
    if (w->first_started_at)
        (void)snprintf(first, sizeof(first), "%s",
                       op_age(cli_store_now(table->cli) - w->first_started_at, age));
    size_t len = strlen(w->work_id);
    const char *const cells[] = { w->work_id + (len > 12 ? len - 12 : 0),
                                  w->status,
                                  w->disposition,
                                  p->identity_kind,
                                  p->identity_label,
                                  p->originator,
                                  first,
                                  w->owner,
                                  lease,
                                  w->abandon_request ? "asked" : "-" };
    cli_table_row(table, cells, 1, cli_status_colour(w->status));
}

static int print_processes(struct cli *cli, const struct hf_processes *processes)
{
    static const char *const titles[] = { "ID",    "STATUS",     "DISPOSITION", "KIND",
                                          "NAME",  "ORIGINATOR", "STARTED",     "OWNER",
                                          "LEASE", "ABANDON" };
    const char *next = hf_processes_next(processes);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "items");
        hf_json_array(&cli->writer);
        for (size_t i = 0; i < hf_processes_count(processes); i++)
            json_process(cli, hf_processes_at(processes, i));
        hf_json_end(&cli->writer);
        hf_json_put_str(&cli->writer, "next", next);
        cli_ok_end(cli);
        return 0;
    }
    if (hf_processes_count(processes) == 0) {
        cli_note(cli, cli_given(cli, "all")
                          ? "no such process"
                          : "no process that has not ended; --all shows others");
        return 0;
    }
    struct cli_table table;
    cli_table_begin(&table, cli, titles, 10);
    for (size_t i = 0; i < hf_processes_count(processes); i++)
        table_row(&table, hf_processes_at(processes, i));
    int rc = cli_table_end(&table);
    if (rc == 0 && next)
        cli_note(cli, "there is more: --after %s", next);
    return rc;
}

int cmd_process_list(struct cli *cli)
{
    struct hf_processes *processes = NULL;
    struct hf_process_filter filter = {
        .size = sizeof(filter),
        .all = cli_given(cli, "all"),
        .status = hf_status_of(cli_text(cli, "status")),
        .waiting = cli_given(cli, "waiting"),
        .originator = cli_text(cli, "originator"),
        .identity_kind = cli_text(cli, "kind"),
        .identity_label = cli_text(cli, "name"),
        .definition = cli_text(cli, "definition"),
        .label = cli_text(cli, "label"),
        .observer = cli_text(cli, "observer"),
        .limit = (size_t)cli_number(cli, "limit", 0),
        .after = cli_text(cli, "after"),
    };
    int rc = hf_process_list(cli->store, &cli->who, &filter, &processes, &cli->err);
    if (rc == 0)
        rc = print_processes(cli, processes);
    hf_processes_free(processes);
    return rc;
}

int cmd_process_show(struct cli *cli)
{
    struct hf_processes *processes = NULL;
    struct hf_output *output = NULL;
    struct hf_process_filter filter = { .size = sizeof(filter),
                                        .id = cli_text(cli, "id"),
                                        .limit = 1 };
    int rc = hf_process_list(cli->store, &cli->who, &filter, &processes, &cli->err);
    const struct hf_process *one = rc == 0 ? hf_processes_at(processes, 0) : NULL;
    if (rc == 0)
        rc = hf_output_read(cli->store, one->work.work_id, cli_number(cli, "attempt", 0),
                            &output, &cli->err);
    struct hf_output_streams streams;
    for (int i = 0; rc == 0 && i < HF_STREAM_COUNT; i++)
        streams.of[i] = hf_output_view(output, (enum hf_stream)i);
    if (rc == 0 && cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "process");
        json_process(cli, one);
        hf_json_key(&cli->writer, "output");
        op_put_shape(&cli->writer, &hf_output_shape, &streams);
        cli_ok_end(cli);
    } else if (rc == 0) {
        rc = print_processes(cli, processes);
        if (rc == 0)
            cli_put_output(cli, &streams);
    }
    hf_output_free(output);
    hf_processes_free(processes);
    return rc;
}

/* ---- what is done to it ------------------------------------------------------------- */

/* Tells it, and prints its row: `did`, or `before` where it stood so already. */
static int tell_and_print(struct cli *cli, struct hf_process_tell tell, const char *did,
                          const char *before)
{
    bool repeated = false;
    struct hf_answer *answer = NULL;
    tell.size = sizeof(tell);
    tell.id = cli_text(cli, "id");
    int rc = hf_process_tell(cli->store, &cli->who, &tell, &repeated, &cli->err);
    if (rc == 0)
        rc = hf_work_get(cli->store, &cli->who, tell.id, &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_row(cli, hf_answer_at(answer, 0), repeated ? before : did);
    hf_answer_free(answer);
    return rc;
}

int cmd_process_signal(struct cli *cli)
{
    struct hf_process_tell tell = { .what = HF_TELL_SIGNAL,
                                    .name = cli_text(cli, "name"),
                                    .payload = cli_text(cli, "payload"),
                                    .key = cli_text(cli, "key") };
    return tell_and_print(cli, tell, "signalled", "signalled before:");
}

int cmd_process_observe(struct cli *cli)
{
    bool ends = cli_given(cli, "end");
    struct hf_process_tell tell = { .what = ends ? HF_TELL_UNOBSERVE : HF_TELL_OBSERVE,
                                    .name = cli_text(cli, "session") };
    return ends ? tell_and_print(cli, tell, "no longer observed:", "was not observed:")
                : tell_and_print(cli, tell, "observed:", "observed before:");
}

int check_process_retarget(struct cli *cli)
{
    if (cli_given(cli, "session") != cli_given(cli, "none"))
        return 0;
    return hf_fail(&cli->err, HF_EINVAL, "session",
                   "give the session that is to be woken, or --none");
}

int cmd_process_retarget(struct cli *cli)
{
    struct hf_process_tell tell = { .what = HF_TELL_RETARGET,
                                    .name = cli_text(cli, "session") };
    return tell_and_print(cli, tell, "retargeted:", "stood so before:");
}

/* As the table of exit codes has it: a script need not read the row to know that it is done. */
static int outcome_code(enum hf_status status)
{
    static const int codes[HF_STATUS_COUNT] = {
        [HF_FAILED] = 11, [HF_TIMEOUT] = 12, [HF_CANCELLED] = 13, [HF_ABANDONED] = 14
    };
    return codes[status];
}

int cmd_process_await(struct cli *cli)
{
    struct hf_answer *answer = NULL;
    int rc = hf_process_await(cli->store, &cli->who, cli_text(cli, "id"),
                              cli_number(cli, "wait", 30000), &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_row(cli, hf_answer_at(answer, 0), "ended:");
    if (rc == 0)
        cli->exit_code = outcome_code(hf_status_of(hf_answer_at(answer, 0)->work.status));
    hf_answer_free(answer);
    return rc;
}

int check_process_prune(struct cli *cli)
{
    const char *tenant = cli_text(cli, "tenant");
    if (tenant && *tenant)
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "a prune takes what ended of all tenants: it takes no --tenant");
    return 0;
}

int cmd_process_prune(struct cli *cli)
{
    struct hf_prune_report report = { 0 };
    int rc = hf_process_prune(cli->store, &cli->who, cli_number(cli, "older-than", 0),
                              &report, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "processes", report.processes);
        hf_json_put_i64(&cli->writer, "events", report.events);
        hf_json_put_i64(&cli->writer, "grants", report.grants);
        hf_json_put_i64(&cli->writer, "chunks", report.chunks);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(cli, "pruned %lld processes, %lld events, %lld grants, %lld chunks\n",
                 (long long)report.processes, (long long)report.events,
                 (long long)report.grants, (long long)report.chunks);
    }
    return 0;
}

struct deferral {
    struct cli *cli;
    struct hf_buf text;
    struct hf_json items; /* an array that is open, over `text` */
};

static void note_deferred(void *user, const char *work_id, const struct hf_err *why)
{
    struct deferral *d = user;
    if (!d->cli->json)
        cli_note(d->cli, "%s was left: %s", work_id, why->message);
    hf_json_object(&d->items);
    hf_json_put_str(&d->items, "work_id", work_id);
    hf_json_put_str(&d->items, "code", hf_err_wire(why->code));
    hf_json_put_str(&d->items, "message", why->message);
    hf_json_end(&d->items);
}

static void print_drained(struct cli *cli, const struct hf_drain_report *report,
                          const struct deferral *d)
{
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "ended", report->ended);
        hf_json_put_i64(&cli->writer, "deferred", report->deferred);
        hf_json_put_raw(&cli->writer, "items", hf_buf_str(&d->text));
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(cli, "abandoned %lld, left %lld\n", (long long)report->ended,
                 (long long)report->deferred);
    }
}

int cmd_process_drain(struct cli *cli)
{
    struct hf_drain_report report = { 0 };
    struct deferral d = { .cli = cli };
    struct hf_drain drain = { .size = sizeof(drain),
                              .owner = cli_text(cli, "owner"),
                              .incarnation = cli_text(cli, "incarnation"),
                              .deferred = note_deferred,
                              .user = &d };
    hf_buf_init(&d.text, hf_alloc_system(), (size_t)64 << 20);
    hf_json_begin(&d.items, &d.text);
    hf_json_array(&d.items);
    int rc = hf_process_drain(cli->store, &cli->who, &drain, &report, &cli->err);
    hf_json_end(&d.items);
    if (rc == 0 && hf_buf_state(&d.text))
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    if (rc == 0)
        print_drained(cli, &report, &d);
    hf_buf_fini(&d.text);
    return rc;
}
