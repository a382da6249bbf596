/* holdfast work wait, resume, close-out, fail: how an execution ends, or stops for now. */
#include "cli/cmd/change.h"

#include <string.h>

int check_resume(struct cli *cli)
{
    if (cli_given(cli, "id") == cli_given(cli, "ref"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "give --id or --ref, and not both (holdfast work resume --help)");
    return 0;
}

int check_close_out(struct cli *cli)
{
    if (cli_given(cli, "token") == cli_given(cli, "authority"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "give --token, or --authority for an externally owned unit");
    return 0;
}

static enum hf_status waiting_status(struct cli *cli)
{
    const char *kind = cli_text(cli, "kind");
    if (!kind)
        return HF_STATUS_NONE;
    return strcmp(kind, "user") == 0 ? HF_WAITING_USER : HF_WAITING_EXTERNAL;
}

int cmd_work_wait(struct cli *cli)
{
    struct hf_change change = {
        .verb = HF_VERB_WAIT,
        .id = cli_text(cli, "id"),
        .token = cli_text(cli, "token"),
        .status = waiting_status(cli),
        .ref = cli_text(cli, "ref"),
        .reason = cli_text(cli, "reason"),
        .timeout_ms = cli_number(cli, "timeout", 0),
        .escalate_after_ms = cli_number(cli, "escalate-after", 0),
        .escalate = cli_text(cli, "escalate"),
    };
    return cli_apply(cli, &change, "waiting:");
}

int cmd_work_resume(struct cli *cli)
{
    int pid = 0;
    int rc = cli_check_pid(cli, &pid);
    if (rc)
        return rc;
    struct hf_change change = {
        .verb = HF_VERB_RESUME,
        .id = cli_text(cli, "id"),
        .ref = cli_text(cli, "ref"),
        .status = waiting_status(cli),
        .payload = cli_text(cli, "payload"),
        .owner = cli_text(cli, "owner"),
        .incarnation = cli_text(cli, "incarnation"),
        .nonce = cli_text(cli, "nonce"),
        .pid = pid,
        .ttl_ms = cli_number(cli, "ttl", 0),
    };
    rc = cli_apply(cli, &change, "resumed");
    if (rc == HF_EAMBIGUOUS && change.ref)
        cli->action = "name one of them with --id; `holdfast work list --ref` shows them";
    return rc;
}

int cmd_work_close_out(struct cli *cli)
{
    struct hf_change change = {
        .verb = HF_VERB_CLOSE_OUT,
        .id = cli_text(cli, "id"),
        .token = cli_text(cli, "token"),
        .authority = cli_text(cli, "authority"),
        .status = hf_status_of(cli_text(cli, "status")),
        .reason = cli_text(cli, "reason"),
        .error_class = cli_text(cli, "class"),
        .summary = cli_text(cli, "summary"),
        .reviewer = cli_text(cli, "reviewer"),
    };
    change.outputs = cli_texts(cli, "output", &change.output_count);
    change.evidence = cli_texts(cli, "evidence", &change.evidence_count);
    return cli_apply(cli, &change, "closed");
}

int cmd_work_fail(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_FAIL,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .error_class = cli_text(cli, "class"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "failure of");
}
