/* holdfast run --detach: a command that no caller here looks after.
 *
 * The process that becomes the command records its own hand-off and then executes it, so
 * there is no moment in which the one is true and the other is not: before the record
 * nothing runs, and after it there is the process that the record names. */
#include "cli/cmd/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ident.h"

/* What the process tells the one that started it; two at most. */
struct news {
    int code;
    bool exists; /* the idempotency key was used before: nothing is run */
    char work_id[192];
    struct hf_err err;
};

static bool tell(int fd, const struct news *news)
{
    return write(fd, news, sizeof(*news)) == (ssize_t)sizeof(*news);
}

static int record(struct cli *cli, const struct hf_command *command, struct news *news)
{
    char *payload = NULL, nonce[HF_NONCE_TEXT];
    const char *key = cli_text(cli, "idempotency-key");
    struct hf_answer *answer = NULL;
    int rc = cli_open_store(cli);
    if (rc == 0)
        rc = hf_nonce(hf_random_system(), nonce, &cli->err);
    if (rc == 0)
        rc = hf_command_write(command, &payload, &cli->err);
    if (rc)
        return rc;
    struct hf_work_spec work = run_unit(cli, key ? key : nonce, payload);
    cli->who.actor = run_owner(cli); /* names this process, which will be the command */
    work.disposition = HF_DISPOSITION_EXTERNALLY_OWNED;
    work.detached = true;
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &work,
                                       .identity_kind = HF_RUN_KIND,
                                       .identity_label = cli_text(cli, "name") };
    rc = hf_process_register(cli->store, &cli->who, &process, &answer, &cli->err);
    free(payload);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    news->exists = !item->created;
    (void)snprintf(news->work_id, sizeof(news->work_id), "%s", item->work.work_id);
    hf_answer_free(answer);
    return 0;
}

/* Its environment has the unit, but no lease: there is none, and that of a unit in which this
 * runs is not for it. */
static int prepare_environment(struct cli *cli, const struct hf_command *command,
                               const char *work_id)
{
    static const char *const others[] = {
        "HOLDFAST_LEASE_TOKEN", "HOLDFAST_OWNER",          "HOLDFAST_INCARNATION",
        "HOLDFAST_ATTEMPT",     "HOLDFAST_RESUME_PAYLOAD", "HOLDFAST_INPUT",
        "HOLDFAST_LOCK"
    };
    struct cli_place place;
    int rc = cli_store_place(cli, &place);
    if (rc)
        return rc;
    bool good = setenv("HOLDFAST_DB", place.url, 1) == 0 &&
                setenv("HOLDFAST_WORK_ID", work_id, 1) == 0;
    for (size_t i = 0; good && i < sizeof(others) / sizeof(others[0]); i++)
        good = unsetenv(others[i]) == 0;
    for (size_t i = 0; good && command->env[i]; i++) {
        char *entry = hf_arena_text(&cli->arena, command->env[i]);
        good = entry && putenv(entry) == 0;
    }
    return good ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* What the kernel would refuse must not be recorded as handed over: under its idempotency key it
 * could never be run. */
static int try_first(struct cli *cli, const struct hf_command *command)
{
    struct hf_child_plan plan = { .size = sizeof(plan),
                                  .argv = command->argv,
                                  .env = run_environment(),
                                  .cwd = command->cwd };
    return hf_child_try(&plan, &cli->err);
}

/* In the new process; returns only when there is nothing to become. */
static void be_the_command(struct cli *cli, int fd)
{
    struct news news = { 0 };
    struct hf_command command;
    news.code = run_command(cli, &command);
    if (news.code == 0)
        news.code = try_first(cli, &command);
    if (news.code == 0)
        news.code = record(cli, &command, &news);
    if (news.code == 0)
        news.code = prepare_environment(cli, &command, news.work_id);
    news.err = cli->err;
    if (!tell(fd, &news) || news.code || news.exists)
        return;
    hf_store_close(cli->store);
    cli->store = NULL;
    struct hf_child_plan plan = { .size = sizeof(plan),
                                  .argv = command.argv,
                                  .env = run_environment(),
                                  .cwd = command.cwd,
                                  .stdin_fd = -1,
                                  .inherit_fd = -1 };
    news.code = hf_child_become(&plan, &news.err);
    (void)tell(fd, &news); /* no other caller could be told */
}

/* The last that was told: of the record, or of a failure after it. */
static bool hear(int fd, struct news *ret_news)
{
    bool heard = false;
    struct news news;
    for (;;) {
        ssize_t got = read(fd, &news, sizeof(news));
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof(news))
            return heard;
        *ret_news = news;
        heard = true;
    }
}

static int answer(struct cli *cli, const struct news *news, pid_t pid)
{
    if (news->code)
        return hf_fail(&cli->err, news->code, news->err.field, "%s", news->err.message);
    if (news->exists)
        cli_note(cli, "unit %s exists: nothing was run", news->work_id);
    else
        cli_note(cli, "handed over to process %d as unit %s", (int)pid, news->work_id);
    if (!cli->json)
        return 0;
    cli_ok_begin(cli);
    hf_json_put_str(&cli->writer, "work_id", news->work_id);
    hf_json_put_bool(&cli->writer, "ran", !news->exists);
    hf_json_put_str(&cli->writer, "status", news->exists ? "exists" : "done");
    hf_json_key(&cli->writer, "pid");
    if (news->exists)
        hf_json_null(&cli->writer);
    else
        hf_json_i64(&cli->writer, pid);
    cli_ok_end(cli);
    return 0;
}

int run_detached(struct cli *cli)
{
    struct news news = { 0 };
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return hf_fail(&cli->err, HF_EINTERNAL, NULL, "pipe: %s", strerror(errno));
    pid_t pid = fork(); /* before there is a store: a handle does not survive it */
    if (pid == 0) {
        (void)close(pipes[0]);
        be_the_command(cli, pipes[1]);
        _exit(125);
    }
    (void)close(pipes[1]);
    bool heard = pid > 0 && hear(pipes[0], &news);
    (void)close(pipes[0]);
    if (pid < 0)
        return hf_fail(&cli->err, HF_EBUSY, NULL, "cannot start a process: %s",
                       strerror(errno));
    if (!heard)
        return hf_fail(&cli->err, HF_EUNCERTAIN, NULL,
                       "process %d ended before it reported whether it was recorded",
                       (int)pid);
    if (news.code || news.exists)
        (void)waitpid(pid, NULL, 0); /* it ends by itself */
    return answer(cli, &news, pid);
}
