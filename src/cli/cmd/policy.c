/* holdfast policy set, show. */
#include "cli/cli.h"

/* What is not set is null. */
static void put_ms(struct hf_json *json, const char *key, hf_ms ms)
{
    hf_json_key(json, key);
    if (ms > 0)
        hf_json_i64(json, ms);
    else
        hf_json_null(json);
}

static void json_policy(struct cli *cli, const struct hf_policy *policy)
{
    struct hf_json *json = &cli->writer;
    hf_json_key(json, "policy");
    hf_json_object(json);
    put_ms(json, "ttl_ms", policy->ttl_ms);
    put_ms(json, "renew_ms", policy->renew_ms);
    hf_json_put_i64(json, "grace_ms", policy->grace_ms);
    put_ms(json, "wait_user_ms", policy->wait_user_ms);
    put_ms(json, "wait_external_ms", policy->wait_external_ms);
    put_ms(json, "start_timeout_ms", policy->start_timeout_ms);
    put_ms(json, "exec_timeout_ms", policy->exec_timeout_ms);
    hf_json_put_i64(json, "max_attempts", policy->max_attempts);
    hf_json_put_raw(json, "retry_policy", policy->retry_policy);
    hf_json_put_str(json, "disposition", hf_disposition_word(policy->disposition));
    hf_json_put_str(json, "close_rule", policy->close_rule);
    hf_json_put_str(json, "wait_rule", policy->wait_rule);
    hf_json_end(json);
}

static void people_policy(struct cli *cli, const struct hf_policy *policy)
{
    char text[24];
    const char *disposition = hf_disposition_word(policy->disposition);
    cli_putf(cli, "lease term         %s\n", cli_duration(policy->ttl_ms, text));
    cli_putf(cli, "renewed every      %s\n", cli_duration(policy->renew_ms, text));
    cli_putf(cli, "grace              %s\n", cli_duration(policy->grace_ms, text));
    cli_putf(cli, "wait for a person  %s\n", cli_duration(policy->wait_user_ms, text));
    cli_putf(cli, "other waits        %s\n",
             cli_duration(policy->wait_external_ms, text));
    cli_putf(cli, "start timeout      %s\n",
             cli_duration(policy->start_timeout_ms, text));
    cli_putf(cli, "execution timeout  %s\n", cli_duration(policy->exec_timeout_ms, text));
    cli_putf(cli, "max attempts       %d\n", policy->max_attempts);
    cli_putf(cli, "disposition        %s\n", disposition ? disposition : "-");
    cli_put(cli, "close rule         ");
    cli_put_clean(cli, policy->close_rule ? policy->close_rule : "-");
    cli_put(cli, "\nwait rule          ");
    cli_put_clean(cli, policy->wait_rule ? policy->wait_rule : "-");
    cli_put(cli, "\nretry policy       ");
    cli_put_clean(cli, policy->retry_policy ? policy->retry_policy : "-");
    cli_put(cli, "\n");
}

int cmd_policy_set(struct cli *cli)
{
    const char *scope = cli_text(cli, "scope");
    struct hf_policy policy = {
        .size = sizeof(policy),
        .ttl_ms = cli_number(cli, "ttl", 0),
        .renew_ms = cli_number(cli, "renew", 0),
        .grace_ms = cli_number(cli, "grace", -1),
        .wait_user_ms = cli_number(cli, "wait-user", 0),
        .wait_external_ms = cli_number(cli, "wait-external", 0),
        .start_timeout_ms = cli_number(cli, "start-timeout", 0),
        .exec_timeout_ms = cli_number(cli, "exec-timeout", 0),
        .max_attempts = (int)cli_number(cli, "max-attempts", 0),
        .retry_policy = cli_text(cli, "retry-policy"),
        .disposition = hf_disposition_of(cli_text(cli, "disposition")),
        .close_rule = cli_text(cli, "close-rule"),
        .wait_rule = cli_text(cli, "wait-rule"),
    };
    int rc = hf_policy_set(cli->store, &cli->who, scope, &policy, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "scope", scope);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put(cli, "policy of ");
        cli_put_clean(cli, scope);
        cli_put(cli, " set\n");
    }
    return 0;
}

int cmd_policy_show(struct cli *cli)
{
    struct hf_policy_answer *answer = NULL;
    int rc = hf_policy_get(cli->store, hf_source_of(cli_text(cli, "source")),
                           cli_text(cli, "kind"), &answer, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        json_policy(cli, hf_policy_answer_get(answer));
        cli_ok_end(cli);
    } else {
        people_policy(cli, hf_policy_answer_get(answer));
    }
    hf_policy_answer_free(answer);
    return 0;
}
