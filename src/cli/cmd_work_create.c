/* holdfast work create */
#include "cli/cli.h"

#include "base/err.h"
#include "base/ident.h"
#include "core/policy.h"
#include "core/step.h"

static struct hf_new request_of(struct cli *cli)
{
    return (struct hf_new){
        .size = sizeof(struct hf_new),
        .source = hf_source_of(cli_text(cli, "source")),
        .source_id = cli_text(cli, "source-id"),
        .source_run_id = cli_text(cli, "source-run-id"),
        .kind = cli_text(cli, "kind"),
        .queue = cli_text(cli, "queue"),
        .lane_key = cli_text(cli, "lane"),
        .dedup_key = cli_text(cli, "dedup-key"),
        .idempotency_key = cli_text(cli, "idempotency-key"),
        .ref = cli_text(cli, "ref"),
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
}

/* Where there is no store yet, a request that the ledger would refuse makes none: a new
 * store has no policies, so the built-in one decides, and no unit to be a parent. */
static int try_on_nothing(struct cli *cli, const struct hf_new *request)
{
    const char *parent = cli_text(cli, "parent");
    struct hf_row row;
    struct hf_env env = { .now = cli_now(), .policy = &hf_policy_builtin };
    const struct hf_caller nobody = { .size = sizeof(nobody), .tenant = "" };
    if (parent && !hf_uuid_valid(parent))
        return hf_fail(&cli->err, HF_ENOTFOUND, "--parent",
                       "no unit's id begins or ends with %s: there is no store yet",
                       parent);
    return hf_step_create(&cli->arena, request, "", &nobody, &env, &row, &cli->err);
}

int check_create(struct cli *cli)
{
    struct hf_new request = request_of(cli);
    int rc = hf_new_check(&request, &cli->err);
    return rc == 0 && cli_store_absent(cli) ? try_on_nothing(cli, &request) : rc;
}

int cmd_work_create(struct cli *cli)
{
    struct hf_new request = request_of(cli);
    int rc = cli_full_id(cli, cli_text(cli, "parent"), &request.parent_work_id);
    if (rc)
        return rc;
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
