/* holdfast work claim */
#include "cli/cmd/change.h"

#include <errno.h>
#include <signal.h>

/* The library proves more of the process; this names the option when there is none. */
int cli_check_pid(struct cli *cli, int *ret_pid)
{
    int pid = (int)cli_number(cli, "pid", 0);
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
        return hf_fail(&cli->err, HF_EINVAL, "--pid", "--pid: there is no process %d",
                       pid);
    *ret_pid = pid;
    return 0;
}

int check_claim(struct cli *cli)
{
    if (cli_given(cli, "shell") && cli_number(cli, "limit", 1) != 1)
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--shell prints one unit: leave --limit out");
    return 0;
}

static int claim(struct cli *cli, const struct hf_claim *wanted)
{
    struct hf_answer *answer = NULL;
    int rc = hf_work_claim(cli->store, &cli->who, wanted, &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_claimed(cli, answer);
    hf_answer_free(answer);
    return rc;
}

int cmd_work_claim(struct cli *cli)
{
    int pid = 0;
    const char *id = NULL;
    int64_t limit = cli_number(cli, "limit", 1);
    int rc = cli_check_pid(cli, &pid);
    if (rc == 0)
        rc = cli_full_id(cli, cli_text(cli, "id"), &id);
    if (rc)
        return rc;
    struct hf_claim wanted = {
        .size = sizeof(wanted),
        .owner = cli_text(cli, "owner"),
        .incarnation = cli_text(cli, "incarnation"),
        .nonce = cli_text(cli, "nonce"),
        .pid = pid,
        .id = id,
        .queue = cli_text(cli, "queue"),
        .limit = (size_t)limit,
        .ttl_ms = cli_number(cli, "ttl", 0),
        .wait_ms = cli_number(cli, "wait", 0),
    };
    wanted.kinds = cli_texts(cli, "kind", &wanted.kind_count);
    return claim(cli, &wanted);
}
