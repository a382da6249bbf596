/* Views of limits, policies, the store, and of what needs a human. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "op/op.h"
#include "op/shapes/ledger.h"

/* ---- limits ------------------------------------------------------------------------- */

static const char *count_text(int64_t count, char out[24])
{
    (void)snprintf(out, 24, count ? "%lld" : "-", (long long)count);
    return out;
}

static const struct cli_column limit_columns[] = {
    { .title = "NAME", .least = 16 },
    { .title = "TENANT", .rank = 1 },
    { .title = ">MAX" },
    { .title = ">RATE" },
    { .title = ">PER" },
    { .title = ">USED" },
    { .title = ">WAITING" },
};

static void limit_cells(struct cli_table *table, const void *row)
{
    const struct hf_limit_state *state = row;
    char max[24], rate[24], per[24], used[24], waiting[24];
    const char *cells[] = { state->limit.name,
                            state->tenant[0] ? state->tenant : "-",
                            count_text(state->limit.max_running, max),
                            count_text(state->limit.rate_count, rate),
                            cli_duration(state->limit.rate_ms, per),
                            count_text(state->used, used),
                            count_text(state->waiting, waiting) };
    cli_table_row(table, cells, 6, state->waiting ? CLI_YELLOW : CLI_PLAIN);
}

static const struct cli_column info_columns[] = {
    { .title = "LIMIT" },
    { .title = ">VALUE" },
    { .title = "UNIT" },
    { .title = "OF", .least = 16 },
};

static void info_cells(struct cli_table *table, const void *row)
{
    const struct hf_bound_info *bound = row;
    char value[24];
    (void)snprintf(value, sizeof(value), "%lld", (long long)bound->value);
    const char *cells[] = { bound->name, value, bound->unit, bound->what };
    cli_table_row(table, cells, 0, CLI_PLAIN);
}

/* ---- policies ----------------------------------------------------------------------- */

static int policy_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_policy *policy = row->at;
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
    return 0;
}

/* ---- the store ---------------------------------------------------------------------- */

static void log_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_store_log_entry *entry = row->at;
    char when[25];
    cli_putf(cli, "%s  %-10s ", hf_time_text(entry->at, when), entry->what);
    cli_put_clean(cli, entry->detail ? entry->detail : "");
    cli_put(cli, "\n");
}

static void finding_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_finding *finding = row->at;
    bool advice = finding->advice && *finding->advice;
    cli_colour(cli, finding->bad ? CLI_RED : advice ? CLI_YELLOW : CLI_GREEN);
    cli_put(cli, finding->bad ? "BAD   " : advice ? "note  " : "ok    ");
    cli_colour(cli, CLI_PLAIN);
    cli_put_clean(cli, finding->what);
    cli_put(cli, ": ");
    cli_put_clean(cli, finding->detail);
    cli_put(cli, "\n");
    if (advice) {
        cli_put(cli, "      what to do: ");
        cli_put_clean(cli, finding->advice);
        cli_put(cli, "\n");
    }
}

/* The facts are one flat object: a line each, without the quotes. */
static int facts_detail(struct cli *cli, const struct op_row *row)
{
    const char *facts = ((const struct hf_store_facts_row *)row->at)->facts;
    char line[512];
    size_t len = 0;
    bool in_string = false;
    for (const char *at = facts; *at; at++) {
        bool ends = !in_string && (*at == ',' || *at == '}');
        in_string = (*at == '"') != in_string;
        if (ends || len == sizeof(line) - 1) {
            line[len] = '\0';
            cli_put(cli, len ? "fact  " : "");
            cli_put_clean(cli, line);
            cli_put(cli, len ? "\n" : "");
            len = 0;
        } else if (*at == ':' && !in_string) {
            line[len++] = ' ';
        } else if (*at != '"' && (in_string || *at != '{')) {
            line[len++] = *at;
        }
    }
    return 0;
}

static int version_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_version_row *version = row->at;
    cli_putf(cli, "holdfast %s (schema %d, SQLite %s)\n", version->version,
             version->schema_version, version->sqlite);
    return 0;
}

/* ---- what needs a human --------------------------------------------------------------- */

static void attention_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_attention_row *finding = row->at;
    bool short_id = hf_same(finding->subject, "unit") ||
                    hf_same(finding->subject, "wait");
    /* A question is told by what was asked. */
    bool named = finding->name && !hf_same(finding->kind, OP_QUESTION_KIND);
    cli_colour(cli, hf_same(finding->severity, "now") ? CLI_RED : CLI_YELLOW);
    cli_putf(cli, "%-17s", finding->what);
    cli_colour(cli, CLI_PLAIN);
    cli_put_clean(cli, short_id ? op_short_id(finding->id) : finding->id);
    if (named) {
        cli_put(cli, "  ");
        cli_put_clean(cli, finding->name);
    }
    cli_put(cli, ": ");
    cli_put_clean(cli, finding->detail);
    cli_put(cli, "\n                 ");
    cli_put_clean(cli, finding->command);
    cli_put(cli, "\n");
}

static void attention_more_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_attention_more_row *more = row->at;
    if (more->count)
        cli_putf(cli, "%-17sand %s%lld more", more->what,
                 more->at_least ? "at least " : "", (long long)more->count);
    else
        cli_putf(cli, "%-17sand maybe more: not all units were looked at", more->what);
    cli_put(cli, more->kind ? " of kind " : "");
    cli_put_clean(cli, more->kind ? more->kind : "");
    cli_put(cli, more->error_class ? ", " : "");
    cli_put_clean(cli, more->error_class ? more->error_class : "");
    cli_put(cli, "\n                 ");
    cli_put_clean(cli, more->command);
    cli_put(cli, "\n");
}

const struct cli_view cli_store_views[] = {
    { &hf_limit_shape, limit_columns, 7, limit_cells, NULL, NULL },
    { &hf_bound_shape, info_columns, 4, info_cells, NULL, NULL },
    { .shape = &hf_policy_shape, .detail = policy_detail },
    { .shape = &hf_log_shape, .line = log_line },
    { .shape = &hf_finding_shape, .line = finding_line },
    { .shape = &hf_store_facts_shape, .detail = facts_detail },
    { .shape = &hf_version_shape, .detail = version_detail },
    { .shape = &hf_attention_shape, .line = attention_line },
    { .shape = &hf_attention_more_shape, .line = attention_more_line },
    { .shape = NULL },
};
