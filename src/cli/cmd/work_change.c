/* The verbs of a holder and of an operator that change one row: each fills in what it
 * takes, and one function applies and prints it. */
#include "cli/cmd/change.h"

int cli_apply(struct cli *cli, struct hf_change *change, const char *did)
{
    struct hf_answer *answer = NULL;
    int rc = cli_full_id(cli, change->id, &change->id);
    if (rc)
        return rc;
    change->size = sizeof(*change);
    rc = hf_work_change(cli->store, &cli->who, change, 1, HF_ALL_OR_NONE, &answer,
                        &cli->err);
    if (rc == 0)
        rc = cli_print_row(cli, hf_answer_at(answer, 0), did);
    hf_answer_free(answer);
    return rc;
}

int check_renew(struct cli *cli)
{
    bool one = cli_given(cli, "id") && cli_given(cli, "token");
    bool some = cli_given(cli, "id") || cli_given(cli, "token") || cli_given(cli, "ttl");
    if (cli_given(cli, "owner"))
        return some ? hf_fail(&cli->err, HF_EINVAL, NULL,
                              "--owner renews all leases of the owner: it takes no --id, "
                              "--token or --ttl")
                    : 0;
    if (cli_given(cli, "incarnation") || cli_given(cli, "fresh"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--incarnation and --fresh go with --owner");
    return one ? 0
               : hf_fail(&cli->err, HF_EINVAL, NULL,
                         "--id and --token are required, or --owner (holdfast work renew "
                         "--help)");
}

/* Every lease of an owner, which takes no token: whoever can open the file may do it. */
static int renew_all(struct cli *cli)
{
    struct hf_renew_all renew = { .size = sizeof(renew),
                                  .owner = cli_text(cli, "owner"),
                                  .incarnation = cli_text(cli, "incarnation"),
                                  .fresh_within_ms = cli_number(cli, "fresh", 0) };
    struct hf_answer *answer = NULL;
    int rc = hf_work_renew_all(cli->store, &cli->who, &renew, &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_list(cli, answer, "no lease to renew");
    hf_answer_free(answer);
    return rc;
}

int cmd_work_renew(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_RENEW,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .ttl_ms = cli_number(cli, "ttl", 0) };
    return cli_given(cli, "owner") ? renew_all(cli) : cli_apply(cli, &change, "renewed");
}

int cmd_work_touch(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_TOUCH,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token") };
    return cli_apply(cli, &change, "touched");
}

int cmd_work_hand_back(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_HAND_BACK,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "handed back");
}

int cmd_work_abandon(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_ABANDON,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "abandoned");
}

int cmd_work_append_event(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_APPEND,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .type = cli_text(cli, "type"),
                                .payload = cli_text(cli, "payload"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "noted in");
}

int cmd_work_cancel(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_CANCEL,
                                .id = cli_text(cli, "id"),
                                .token = cli_text(cli, "token"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "cancel of");
}

int cmd_work_requeue(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_REQUEUE,
                                .id = cli_text(cli, "id"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "requeued");
}

int cmd_work_request_abandon(struct cli *cli)
{
    struct hf_change change = { .verb = HF_VERB_REQUEST_ABANDON,
                                .id = cli_text(cli, "id"),
                                .reason = cli_text(cli, "reason") };
    return cli_apply(cli, &change, "request recorded for");
}
