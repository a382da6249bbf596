/* holdfast work create */
#include "cli/cli.h"

#include <holdfast/ingress.h>

#include "base/err.h"
#include "base/ident.h"
#include "core/ledger/policy.h"
#include "core/ledger/step.h"

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
        .reply_ref = cli_text(cli, "reply-to"),
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

/* Without the ledger a prefix cannot be told from an id. */
static int check_spool(struct cli *cli)
{
    const char *parent = cli_text(cli, "parent");
    if (cli_given(cli, "budget") && !cli_given(cli, "spool"))
        return hf_fail(&cli->err, HF_EINVAL, "--budget", "--budget needs --spool");
    if (cli_given(cli, "spool") && parent && !hf_uuid_valid(parent))
        return hf_fail(&cli->err, HF_EINVAL, "--parent",
                       "--parent must be a whole id where --spool is given");
    return 0;
}

int check_create(struct cli *cli)
{
    struct hf_new request = request_of(cli);
    int rc = hf_new_check(&request, &cli->err);
    if (rc == 0)
        rc = check_spool(cli);
    return rc == 0 && cli_store_absent(cli) ? try_on_nothing(cli, &request) : rc;
}

/* Prints the one item and frees the answer. */
static int print_created(struct cli *cli, struct hf_answer *answer, bool resumed)
{
    const struct hf_item *item = hf_answer_at(answer, 0);
    const char *did = item->created ? "created" : "exists already:";
    cli->resumed = resumed;
    if (resumed)
        did = item->repeated ? "resumed before:" : "resumed";
    int rc = cli_print_row(cli, item, did);
    hf_answer_free(answer);
    return rc;
}

/* ---- by way of a spool --------------------------------------------------------------- */

static void print_spooled(struct cli *cli, const struct hf_new *request,
                          const struct hf_err *why)
{
    const char *spool = cli_text(cli, "spool");
    cli_note(cli, "the ledger does not have %s %.190s yet: %s",
             hf_source_word(request->source), request->source_id, why->message);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_bool(&cli->writer, "spooled", true);
        hf_json_put_str(&cli->writer, "spool", spool);
        cli->err = *why;
        cli_put_error(cli, why->code);
        cli_ok_end(cli);
    } else if (!cli->quiet && !cli_wants_field(cli)) {
        cli_put(cli, "spooled in ");
        cli_put_clean(cli, spool);
        cli_put(cli, "\n");
    }
}

/* The state folder cannot even be made: straight into the spool. */
static int put_without_ledger(struct cli *cli, const struct hf_new *request)
{
    struct hf_err why = cli->err;
    struct hf_spool spool = { .size = sizeof(spool), .path = cli_text(cli, "spool") };
    int rc = hf_spool_append(&spool, &cli->who, request, &cli->err);
    if (rc == 0)
        print_spooled(cli, request, &why);
    return rc;
}

static int put_by_ingress(struct cli *cli, const char *url, const struct hf_new *request)
{
    struct hf_ingress *ingress = NULL;
    struct hf_ingress_result result;
    struct hf_ingress_options options = { .size = sizeof(options),
                                          .url = url,
                                          .spool = cli_text(cli, "spool"),
                                          .budget_ms = cli_number(cli, "budget", 0) };
    int rc = hf_ingress_open(&options, &ingress, &cli->err);
    if (rc)
        return rc;
    rc = hf_ingress_put(ingress, &cli->who, request, &result, &cli->err);
    if (rc == 0 && result.place == HF_INGRESS_LEDGER)
        rc = print_created(cli, result.answer, result.resumed);
    else if (rc == 0)
        print_spooled(cli, request, &result.why);
    hf_ingress_close(ingress);
    return rc;
}

int cmd_work_create(struct cli *cli)
{
    struct hf_new request = request_of(cli);
    const char *url = NULL;
    if (cli_given(cli, "spool")) {
        request.parent_work_id = cli_text(cli, "parent");
        int rc = cli_store_url(cli, &url);
        if (rc == HF_EREADONLY)
            return put_without_ledger(cli, &request);
        return rc ? rc : put_by_ingress(cli, url, &request);
    }
    int rc = cli_open_store(cli);
    if (rc == 0)
        rc = cli_full_id(cli, cli_text(cli, "parent"), &request.parent_work_id);
    if (rc)
        return rc;
    struct hf_answer *answer = NULL;
    bool resumed = false;
    rc = hf_work_deliver(cli->store, &cli->who, &request, &answer, &resumed, &cli->err);
    return rc ? rc : print_created(cli, answer, resumed);
}
