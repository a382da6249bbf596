/* Commands on a schedule and on a trigger: what is typed after -- becomes the payload of the
 * units that they make. Workers on this machine, or on machines that have the folder, run it. */
#include "cli/cmd/runner.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The members of a request that a command fills: pointers into the request. */
struct unit {
    const char **kind;
    const char **queue;
    const char **payload;
    enum hf_disposition *disposition;
    int *max_attempts;
    const char *payload_option;
};

/* Options that say something about a command need one. */
static int check_no_command(struct cli *cli)
{
    static const char *const names[] = { "cwd",     "env",        "secret",
                                         "timeout", "kill-after", "require-close-out",
                                         "evidence" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (cli_given(cli, names[i]))
            return hf_fail(&cli->err, HF_EINVAL, "command",
                           "--%s needs a command: write it after --", names[i]);
    return 0;
}

/* The command is looked for now: one that does not exist would fail at night. */
static int write_command(struct cli *cli, const char *input, const char **ret_payload)
{
    struct hf_command command;
    char path[PATH_MAX], *payload = NULL;
    int rc = run_command(cli, &command);
    if (rc)
        return rc;
    command.input = input;
    rc = hf_command_write(&command, &payload, &cli->err);
    if (rc == 0)
        rc = hf_child_find(command.argv[0], run_environment(), command.cwd, sizeof(path),
                           path, &cli->err);
    if (rc == 0 && !(*ret_payload = hf_arena_text(&cli->arena, payload)))
        rc = hf_fail_plain(&cli->err, HF_ENOMEM);
    free(payload);
    return rc;
}

/* Fills the unit in the request from the command after --, with the defaults of `holdfast run`: a
 * command is never run a second time, unless it was said to be rerunnable. Without a command the
 * unit is as its options say. `input` is the JSON that becomes the command's input; NULL: none. */
static int fill_unit(struct cli *cli, const struct unit *unit, const char *input)
{
    if (!cli_given(cli, "command"))
        return check_no_command(cli);
    if (*unit->kind || *unit->payload)
        return hf_fail(&cli->err, HF_EINVAL, unit->payload_option,
                       "a command sets %s itself: leave out --kind and --%s",
                       unit->payload_option, unit->payload_option);
    if (*unit->max_attempts > 1 && *unit->disposition != HF_DISPOSITION_RERUNNABLE)
        return hf_fail(&cli->err, HF_EINVAL, "--max-attempts",
                       "--max-attempts above 1 needs --disposition rerunnable: an "
                       "owner_bound unit is never run again");
    *unit->kind = HF_RUN_KIND;
    *unit->queue = *unit->queue ? *unit->queue : RUN_QUEUE;
    if (*unit->disposition == HF_DISPOSITION_NONE)
        *unit->disposition = HF_DISPOSITION_OWNER_BOUND;
    if (*unit->disposition == HF_DISPOSITION_OWNER_BOUND)
        *unit->max_attempts = 1;
    return write_command(cli, input, unit->payload);
}

static int fill_schedule(struct cli *cli)
{
    struct hf_schedule_spec *wanted =
        &((struct hf_schedule_request *)cli->call.in)->wanted;
    return fill_unit(cli,
                     &(struct unit){ &wanted->kind, &wanted->queue, &wanted->payload,
                                     &wanted->disposition, &wanted->max_attempts,
                                     "payload" },
                     NULL);
}

int check_schedule_add(struct cli *cli)
{
    return fill_schedule(cli);
}

/* Fills the request of a schedule's update from the command after --, if there is one. What was not
 * given stays as the schedule has it. So the defaults that fill_unit sets for the queue, the
 * disposition and the attempts of a command are taken back. */
int check_schedule_update(struct cli *cli)
{
    struct hf_schedule_spec *wanted =
        &((struct hf_schedule_request *)cli->call.in)->wanted;
    const struct hf_schedule_spec given = *wanted;
    int rc = fill_schedule(cli);
    wanted->queue = given.queue;
    wanted->disposition = given.disposition;
    wanted->max_attempts = given.max_attempts;
    return rc;
}

/* What happened is the command's input, and never a part of the command. */
int check_subscribe(struct cli *cli)
{
    struct hf_subscription_spec *wanted = cli->call.in; /* comes first in an update too */
    return fill_unit(cli,
                     &(struct unit){ &wanted->kind, &wanted->queue,
                                     &wanted->payload_template, &wanted->disposition,
                                     &wanted->max_attempts, "template" },
                     "{\"$event\":\"\"}");
}
