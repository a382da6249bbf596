/* holdfast work create */
#include "cli/cli.h"

int cmd_work_create(struct cli *cli)
{
    const char *parent = NULL;
    int rc = cli_full_id(cli, cli_text(cli, "parent"), &parent);
    if (rc)
        return rc;
    struct hf_new request = {
        .size = sizeof(request),
        .source = hf_source_of(cli_text(cli, "source")),
        .source_id = cli_text(cli, "source-id"),
        .source_run_id = cli_text(cli, "source-run-id"),
        .kind = cli_text(cli, "kind"),
        .queue = cli_text(cli, "queue"),
        .lane_key = cli_text(cli, "lane"),
        .dedup_key = cli_text(cli, "dedup-key"),
        .idempotency_key = cli_text(cli, "idempotency-key"),
        .ref = cli_text(cli, "ref"),
        .parent_work_id = parent,
        .payload = cli_text(cli, "payload"),
        .payload_ref = cli_text(cli, "payload-ref"),
        .disposition = hf_disposition_of(cli_text(cli, "disposition")),
        .priority = (int)cli_number(cli, "priority", -1),
        .max_attempts = (int)cli_number(cli, "max-attempts", 0),
        .retry_policy = cli_text(cli, "retry-policy"),
        .delay_ms = cli_number(cli, "delay", 0),
        .due_at = cli_number(cli, "due-at", 0),
        .start_timeout_ms = cli_number(cli, "start-timeout", 0),
        .exec_timeout_ms = cli_number(cli, "exec-timeout", 0),
        .close_rule = cli_text(cli, "close-rule"),
        .detached = cli_given(cli, "detached"),
    };
    struct hf_answer *answer = NULL;
    rc = hf_work_create(cli->store, &cli->who, &request, 1, HF_ALL_OR_NONE, &answer,
                        &cli->err);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    rc = cli_print_row(cli, item, item->created ? "created" : "exists already:");
    hf_answer_free(answer);
    return rc;
}
