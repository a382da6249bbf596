/* holdfast trigger. */
#include "cli/cli.h"

#include <holdfast/trigger.h>
#include <stdio.h>

#include "base/civil.h"
#include "base/text.h"
#include "core/trigger/trigger.h"

/* ---- subscriptions ----------------------------------------------------------------- */

static struct hf_subscription_new wanted_of(struct cli *cli)
{
    return (struct hf_subscription_new){
        .size = sizeof(struct hf_subscription_new),
        .owner_scope = cli_text(cli, "owner-scope"),
        .key = cli_text(cli, "key"),
        .source_type = cli_text(cli, "source-type"),
        .source_key = cli_text(cli, "source-key"),
        .payload_template = cli_text(cli, "template"),
        .kind = cli_text(cli, "kind"),
        .queue = cli_text(cli, "queue"),
        .lane_key = cli_text(cli, "lane"),
        .priority = (int)cli_number(cli, "priority", -1),
        .max_attempts = (int)cli_number(cli, "max-attempts", 0),
        .retry_policy = cli_text(cli, "retry-policy"),
        .disposition = hf_disposition_of(cli_text(cli, "disposition")),
        .start_timeout_ms = cli_number(cli, "start-timeout", 0),
        .exec_timeout_ms = cli_number(cli, "exec-timeout", 0),
        .wake_session = cli_text(cli, "wake-session"),
        .process_kind = cli_text(cli, "process"),
        .process_name = cli_text(cli, "name"),
    };
}

int check_subscribe(struct cli *cli)
{
    struct hf_subscription_new wanted = wanted_of(cli);
    return hf_subscription_check(&wanted, &cli->err);
}

static int refused(struct cli *cli, int rc)
{
    if (rc == HF_ECONFLICT && hf_same(cli->err.field, "revision"))
        cli->action = "look at it with `trigger show`, then give its revision";
    else if (rc == HF_ECONFLICT && hf_same(cli->err.field, "key"))
        cli->action = "choose another key, or use `trigger update` or `trigger revive`";
    else if (rc == HF_ETRANSITION)
        cli->action = "look at it with `trigger show`";
    return rc;
}

static void json_subscription(struct cli *cli, const struct hf_subscription *one)
{
    hf_json_key(&cli->writer, "subscription");
    cli_json_fields(cli, hf_subscription_fields, hf_subscription_field_count, one);
}

/* The one of an answer, and what happened to it. */
static int print_changed(struct cli *cli, struct hf_subscriptions *found, const char *did)
{
    const struct hf_subscription *one = hf_subscriptions_at(found, 0);
    bool changed = hf_subscriptions_changed(found);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_bool(&cli->writer, "changed", changed);
        json_subscription(cli, one);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put_clean(cli, one->subscription_key);
        cli_putf(cli, " of ");
        cli_put_clean(cli, one->owner_scope);
        cli_putf(cli, " %s: %s, revision %lld\n", changed ? did : "unchanged", one->state,
                 (long long)one->revision);
    }
    hf_subscriptions_free(found);
    return 0;
}

int cmd_trigger_subscribe(struct cli *cli)
{
    struct hf_subscriptions *found = NULL;
    struct hf_subscription_new wanted = wanted_of(cli);
    int rc = hf_trigger_subscribe(cli->store, &cli->who, &wanted, &found, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, found, "subscribed");
}

int cmd_trigger_update(struct cli *cli)
{
    struct hf_subscriptions *found = NULL;
    struct hf_subscription_new wanted = wanted_of(cli);
    int rc = hf_trigger_update(cli->store, &cli->who, &wanted,
                               cli_number(cli, "revision", 0), &found, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, found, "updated");
}

static int alter(struct cli *cli, enum hf_trigger_verb verb, const char *did)
{
    struct hf_subscriptions *found = NULL;
    struct hf_trigger_change change = { .size = sizeof(change),
                                        .verb = verb,
                                        .owner_scope = cli_text(cli, "owner-scope"),
                                        .key = cli_text(cli, "key"),
                                        .revision = cli_number(cli, "revision", 0) };
    int rc = hf_trigger_change(cli->store, &cli->who, &change, &found, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, found, did);
}

int cmd_trigger_enable(struct cli *cli)
{
    return alter(cli, HF_TRIGGER_ENABLE, "enabled");
}

int cmd_trigger_disable(struct cli *cli)
{
    return alter(cli, HF_TRIGGER_DISABLE, "disabled");
}

int cmd_trigger_remove(struct cli *cli)
{
    return alter(cli, HF_TRIGGER_REMOVE, "removed");
}

int cmd_trigger_revive(struct cli *cli)
{
    return alter(cli, HF_TRIGGER_REVIVE, "revived");
}

/* ---- looking ----------------------------------------------------------------------- */

static int json_list(struct cli *cli, const struct hf_subscriptions *found)
{
    int rc = 0;
    cli_ok_begin(cli);
    hf_json_key(&cli->writer, "items");
    hf_json_array(&cli->writer);
    for (size_t i = 0; rc == 0 && i < hf_subscriptions_count(found); i++) {
        cli_json_fields(cli, hf_subscription_fields, hf_subscription_field_count,
                        hf_subscriptions_at(found, i));
        rc = cli_flush_some(cli);
    }
    if (rc)
        return rc;
    hf_json_end(&cli->writer);
    hf_json_put_str(&cli->writer, "next", hf_subscriptions_next(found));
    cli_ok_end(cli);
    return 0;
}

static int table_list(struct cli *cli, const struct hf_subscriptions *found)
{
    static const char *const titles[] = { "OWNER", "KEY",   "STATE", "SOURCE",
                                          "KIND",  "QUEUE", ">REV",  ">DELIVERED" };
    struct cli_table table;
    if (hf_subscriptions_count(found) == 0) {
        cli_put(cli, "no subscriptions\n");
        return 0;
    }
    cli_table_begin(&table, cli, titles, sizeof(titles) / sizeof(titles[0]));
    for (size_t i = 0; i < hf_subscriptions_count(found); i++) {
        const struct hf_subscription *one = hf_subscriptions_at(found, i);
        char source[400], revision[24], delivered[24];
        (void)snprintf(source, sizeof(source), "%s %s", one->source_type,
                       one->source_key);
        (void)snprintf(revision, sizeof(revision), "%lld", (long long)one->revision);
        (void)snprintf(delivered, sizeof(delivered), "%lld", (long long)one->deliveries);
        const char *cells[] = { one->owner_scope, one->subscription_key,
                                one->state,       source,
                                one->kind,        one->queue,
                                revision,         delivered };
        cli_table_row(&table, cells, 2,
                      hf_same(one->state, "enabled") ? CLI_GREEN : CLI_YELLOW);
    }
    return cli_table_end(&table);
}

int cmd_trigger_list(struct cli *cli)
{
    struct hf_subscriptions *found = NULL;
    struct hf_trigger_filter filter = { .size = sizeof(filter),
                                        .owner_scope = cli_text(cli, "owner-scope"),
                                        .source_type = cli_text(cli, "source-type"),
                                        .source_key = cli_text(cli, "source-key"),
                                        .state = cli_text(cli, "state"),
                                        .limit = (size_t)cli_number(cli, "limit", 0),
                                        .after = cli_text(cli, "after") };
    int rc = hf_trigger_list(cli->store, &cli->who, &filter, &found, &cli->err);
    if (rc)
        return rc;
    rc = cli->json ? json_list(cli, found) : table_list(cli, found);
    if (rc == 0 && !cli->json && hf_subscriptions_next(found))
        cli_note(cli, "there is more: --limit, or --json for its cursor");
    hf_subscriptions_free(found);
    return rc;
}

int cmd_trigger_show(struct cli *cli)
{
    struct hf_subscriptions *found = NULL;
    int rc = hf_trigger_get(cli->store, &cli->who, cli_text(cli, "owner-scope"),
                            cli_text(cli, "key"), &found, &cli->err);
    if (rc)
        return rc;
    const struct hf_subscription *one = hf_subscriptions_at(found, 0);
    if (cli->json) {
        cli_ok_begin(cli);
        json_subscription(cli, one);
        cli_ok_end(cli);
    } else {
        cli_put_facts(cli, hf_subscription_fields, hf_subscription_field_count, one);
    }
    hf_subscriptions_free(found);
    return 0;
}

/* ---- emitting ---------------------------------------------------------------------- */

int check_emit(struct cli *cli)
{
    hf_ms at = 0;
    const char *text = cli_text(cli, "occurred-at");
    return text ? hf_parse_instant(text, "--occurred-at", &at, &cli->err) : 0;
}

static void json_emission(struct cli *cli, const struct hf_emission *emission)
{
    struct hf_json *json = &cli->writer;
    cli_ok_begin(cli);
    hf_json_put_str(json, "occurrence_id", hf_emission_occurrence(emission));
    hf_json_put_bool(json, "created", hf_emission_created(emission));
    hf_json_key(json, "items");
    hf_json_array(json);
    for (size_t i = 0; i < hf_emission_count(emission); i++) {
        const struct hf_delivery *d = hf_emission_at(emission, i);
        hf_json_object(json);
        hf_json_put_str(json, "delivery_id", d->delivery_id);
        hf_json_put_str(json, "subscription_id", d->subscription_id);
        hf_json_put_str(json, "owner_scope", d->owner_scope);
        hf_json_put_str(json, "key", d->subscription_key);
        hf_json_put_str(json, "incarnation", d->incarnation);
        hf_json_put_i64(json, "revision", d->revision);
        hf_json_put_str(json, "work_id", d->work_id);
        hf_json_put_str(json, "wake_work_id", d->wake_work_id);
        hf_json_put_raw(json, "snapshot", d->snapshot);
        hf_json_put_i64(json, "created_at", d->created_at);
        hf_json_end(json);
    }
    hf_json_end(json);
    cli_ok_end(cli);
}

static int print_emission(struct cli *cli, struct hf_emission *emission)
{
    static const char *const titles[] = { "OWNER", "KEY", "UNIT", "WAKE" };
    int rc = 0;
    if (cli->json) {
        json_emission(cli, emission);
    } else if (!cli->quiet) {
        struct cli_table table;
        size_t count = hf_emission_count(emission);
        cli_putf(cli, "%s: %zu %s%s\n", hf_emission_occurrence(emission), count,
                 count == 1 ? "delivery" : "deliveries",
                 hf_emission_created(emission) ? "" : ", made before");
        cli_table_begin(&table, cli, titles, sizeof(titles) / sizeof(titles[0]));
        for (size_t i = 0; i < hf_emission_count(emission); i++) {
            const struct hf_delivery *d = hf_emission_at(emission, i);
            const char *cells[] = { d->owner_scope, d->subscription_key, d->work_id,
                                    d->wake_work_id };
            cli_table_row(&table, cells, 0, CLI_PLAIN);
        }
        rc = hf_emission_count(emission) ? cli_table_end(&table) : 0;
    }
    hf_emission_free(emission);
    return rc;
}

int cmd_trigger_emit(struct cli *cli)
{
    struct hf_emission *emission = NULL;
    struct hf_occurrence_new occurrence = {
        .size = sizeof(occurrence),
        .source_type = cli_text(cli, "source-type"),
        .source_key = cli_text(cli, "source-key"),
        .idempotency_key = cli_text(cli, "idempotency-key"),
        .payload = cli_text(cli, "payload"),
        .scope = cli_text(cli, "scope"),
    };
    const char *at = cli_text(cli, "occurred-at");
    int rc = at ? hf_parse_instant(at, "--occurred-at", &occurrence.occurred_at,
                                   &cli->err)
                : 0;
    if (rc == 0)
        rc = hf_trigger_emit(cli->store, &cli->who, &occurrence, &emission, &cli->err);
    return rc ? rc : print_emission(cli, emission);
}

int cmd_trigger_deliveries(struct cli *cli)
{
    struct hf_emission *emission = NULL;
    int rc = hf_trigger_deliveries(cli->store, &cli->who, cli_text(cli, "occurrence"),
                                   &emission, &cli->err);
    return rc ? rc : print_emission(cli, emission);
}

int cmd_trigger_granted(struct cli *cli)
{
    struct hf_answer *answer = NULL;
    int rc = hf_trigger_granted(cli->store, &cli->who, cli_text(cli, "session"),
                                (size_t)cli_number(cli, "limit", 0), &answer, &cli->err);
    if (rc == 0)
        rc = cli_print_list(cli, answer, "no units");
    hf_answer_free(answer);
    return rc;
}
