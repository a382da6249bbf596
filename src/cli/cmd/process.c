/* holdfast process start: the command that it runs, and the runner that is started for it on
 * this machine. */
#include "cli/cli.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* The texts, and the NULL that ends them; NULL: no memory. */
static const char **list_of(struct cli *cli, const char *const *texts, size_t n)
{
    const char **list = hf_arena_array(&cli->arena, n + 1, sizeof(*list));
    if (list && n)
        memcpy(list, texts, n * sizeof(*list));
    return list;
}

/* The command as the payload of its unit. */
static int put_command(struct cli *cli, struct hf_start_request *in)
{
    char cwd[PATH_MAX], path[PATH_MAX];
    char *payload = NULL;
    const char **argv = list_of(cli, in->command, in->command_count);
    const char **evidence = list_of(cli, in->evidence, in->evidence_count);
    if (!argv || !evidence || !realpath(".", cwd))
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    const struct hf_command command = { .size = sizeof(command),
                                        .argv = argv,
                                        .cwd = cwd,
                                        .timeout_ms = in->timeout_ms,
                                        .evidence = evidence };
    int rc = hf_command_write(&command, &payload, &cli->err);
    if (rc == 0)
        rc = hf_child_find(argv[0], (const char *const *)(void *)environ, cwd,
                           sizeof(path), path, &cli->err);
    if (rc == 0 && !(in->work.payload = hf_arena_text(&cli->arena, payload)))
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    free(payload);
    return rc;
}

int check_process_start(struct cli *cli)
{
    struct hf_start_request *in = cli->call.in;
    if (!in->command_count && in->evidence_count)
        return hf_fail(&cli->err, HF_EINVAL, "command",
                       "--evidence needs a command: write it after --");
    if (!in->command_count)
        return 0;
    if (in->work.payload)
        return hf_fail(&cli->err, HF_EINVAL, "--input",
                       "--input and a command exclude each other: leave one of them out");
    int rc = put_command(cli, in);
    if (rc == 0 && in->work.disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        rc = hf_fail(&cli->err, HF_EINVAL, "--disposition",
                     "an externally_owned process runs elsewhere: leave the command out, "
                     "or use `holdfast run --detach`");
    in->work.kind = HF_RUN_KIND;
    if (!in->work.queue)
        in->work.queue = "run";
    if (!in->process.identity_kind)
        in->process.identity_kind = HF_RUN_KIND;
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
    /* Not --db: any caller can read a command line, and the address may hold a
     * password. */
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
static void say_what_follows(const struct cli *cli, const struct hf_start_request *in)
{
    const char *who = "`holdfast monitor --run` or `holdfast run --worker`";
    const char *id = op_short_id(in->created_id);
    if (in->no_run)
        cli_note(cli, "no runner has it yet: it waits for %s", who);
    else
        cli_note(cli,
                 "it runs in the background; holdfast work output %s --follow shows its "
                 "output",
                 id);
    if (!in->no_run && in->work.disposition == HF_DISPOSITION_RERUNNABLE)
        cli_note(cli, "if its runner dies, %s runs it again", who);
}

int cmd_process_start(struct cli *cli)
{
    const struct hf_start_request *in = cli->call.in;
    int rc = cli_perform(cli);
    if (rc || !in->created_id || !in->command_count)
        return rc;
    if (!in->no_run)
        rc = start_runner(cli, in->created_id);
    if (rc == 0)
        say_what_follows(cli, in);
    return rc;
}
