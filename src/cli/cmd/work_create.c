/* holdfast work create --spool: by way of an ingress on this machine; and the --shell form of a
 * claim. */
#include "cli/cli.h"

#include <holdfast/ingress.h>

#include "base/ident.h"
#include "op/work.h"

int check_claim(struct cli *cli)
{
    const struct hf_claim *in = cli->call.in;
    if (cli_given(cli, "shell") && in->limit != 1)
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--shell prints one unit: leave --limit out");
    return 0;
}

/* Without the ledger a prefix cannot be told from an id. */
int check_create(struct cli *cli)
{
    const struct hf_create_request *in = cli->call.in;
    const char *parent = in->work.parent_work_id;
    if (in->budget_ms && !in->spool)
        return hf_fail(&cli->err, HF_EINVAL, "--budget", "--budget needs --spool");
    if (in->spool && parent && !hf_uuid_valid(parent))
        return hf_fail(&cli->err, HF_EINVAL, "--parent",
                       "--parent must be a whole id where --spool is given");
    return 0;
}

static void print_spooled(struct cli *cli, const struct hf_create_request *in,
                          const struct hf_err *why)
{
    cli_note(cli, "%s %.190s is not in the ledger yet: %s",
             hf_source_word(in->work.source), in->work.source_id, why->message);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_bool(&cli->writer, "spooled", true);
        hf_json_put_str(&cli->writer, "spool", in->spool);
        op_put_error(&cli->writer, why, NULL);
        cli_ok_end(cli);
    } else if (!cli->quiet && !cli_wants_field(cli)) {
        cli_put(cli, "spooled in ");
        cli_put_clean(cli, in->spool);
        cli_put(cli, "\n");
    }
}

/* The state folder cannot even be made: straight into the spool. */
static int put_without_ledger(struct cli *cli, const struct hf_create_request *in)
{
    struct hf_err why = cli->err;
    struct hf_spool spool = { .size = sizeof(spool), .path = in->spool };
    int rc = hf_spool_append(&spool, &cli->who, &in->work, &cli->err);
    if (rc == 0)
        print_spooled(cli, in, &why);
    return rc;
}

static int print_created(struct cli *cli, const struct hf_ingress_result *result)
{
    struct cli_out out;
    cli_out_begin(&out, cli);
    int rc = op_created(&cli->call, result->answer, result->resumed);
    if (rc == 0)
        cli_out_end(&out);
    hf_answer_free(result->answer);
    return rc;
}

static int put_by_ingress(struct cli *cli, const char *url,
                          const struct hf_create_request *in)
{
    struct hf_ingress *ingress = NULL;
    struct hf_ingress_result result;
    struct hf_ingress_options options = { .size = sizeof(options),
                                          .url = url,
                                          .spool = in->spool,
                                          .budget_ms = in->budget_ms };
    int rc = hf_ingress_open(&options, &ingress, &cli->err);
    if (rc)
        return rc;
    rc = hf_ingress_put(ingress, &cli->who, &in->work, &result, &cli->err);
    if (rc == 0 && result.place == HF_INGRESS_LEDGER)
        rc = print_created(cli, &result);
    else if (rc == 0)
        print_spooled(cli, in, &result.why);
    hf_ingress_close(ingress);
    return rc;
}

int cmd_work_create(struct cli *cli)
{
    const struct hf_create_request *in = cli->call.in;
    const char *url = NULL;
    if (!in->spool)
        return cli_perform(cli);
    int rc = op_check_create(&cli->call);
    if (rc == 0)
        rc = op_check_caller(&cli->call);
    if (rc == 0)
        rc = cli_store_url(cli, &url);
    if (rc == HF_EREADONLY)
        return put_without_ledger(cli, in);
    return rc ? rc : put_by_ingress(cli, url, in);
}
