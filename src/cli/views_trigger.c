/* Subscriptions and deliveries for people. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/text.h"
#include "op/shapes/trigger.h"

static const struct cli_column subscription_columns[] = {
    { .title = "OWNER", .rank = 4, .least = 8 },
    { .title = "KEY", .least = 12 },
    { .title = "STATE" },
    { .title = "SOURCE", .least = 12 },
    { .title = "RUNS", .rank = 1, .least = 12 },
    { .title = "KIND", .rank = 2 },
    { .title = "QUEUE", .rank = 5 },
    { .title = ">REV", .rank = 6 },
    { .title = ">DELIVERED", .rank = 3 },
};

static void subscription_cells(struct cli_table *table, const void *row)
{
    const struct hf_subscription *one = row;
    char source[400], runs[OP_WHAT], revision[24], delivered[24];
    (void)snprintf(source, sizeof(source), "%s %s", one->source_type, one->source_key);
    (void)snprintf(revision, sizeof(revision), "%lld", (long long)one->revision);
    (void)snprintf(delivered, sizeof(delivered), "%lld", (long long)one->deliveries);
    const char *cells[] = {
        one->owner_scope,
        one->subscription_key,
        one->state,
        source,
        op_command_text(one->payload_template, runs) ? runs : NULL,
        one->kind,
        one->queue,
        revision,
        delivered,
    };
    cli_table_row(table, cells, 2,
                  hf_same(one->state, "enabled") ? CLI_GREEN : CLI_YELLOW);
}

static void subscription_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_subscription *one = row->at;
    cli_put_clean(cli, one->subscription_key);
    cli_put(cli, " of ");
    cli_put_clean(cli, one->owner_scope);
    cli_putf(cli, " %s: %s, revision %lld\n", row->did, one->state,
             (long long)one->revision);
}

static const struct cli_column delivery_columns[] = {
    { .title = "OWNER", .rank = 2, .least = 8 },
    { .title = "KEY", .least = 12 },
    { .title = "UNIT" },
    { .title = "WAKE", .rank = 1 },
};

static void delivery_cells(struct cli_table *table, const void *row)
{
    const struct hf_delivery *one = row;
    const char *cells[] = { one->owner_scope, one->subscription_key, one->work_id,
                            one->wake_work_id };
    cli_table_row(table, cells, 0, CLI_PLAIN);
}

const struct cli_view cli_trigger_views[] = {
    { &hf_subscription_shape, subscription_columns, 9, subscription_cells,
      subscription_line, cli_any_detail },
    { &hf_delivery_shape, delivery_columns, 4, delivery_cells, NULL, NULL },
    { .shape = NULL },
};
