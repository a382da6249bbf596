/* Effects of processes and operations, for people. */
#include "cli/cli.h"

#include <string.h>

#include "base/civil.h"
#include "base/text.h"
#include "op/shapes/effect.h"

static const struct cli_column effect_columns[] = {
    { .title = "SCOPE" },
    { .title = "ID", .least = 12 },
    { .title = "KEY", .least = 8 },
    { .title = "KIND", .rank = 2 },
    { .title = "CLASS", .rank = 3 },
    { .title = "STATUS" },
    { .title = "HOLDER", .rank = 4, .least = 8 },
    { .title = "BEGUN", .rank = 1 },
};

static void effect_cells(struct cli_table *table, const void *row)
{
    const struct hf_journal_effect *effect = row;
    char begun[HF_INSTANT_TEXT];
    const char *cells[] = {
        effect->scope,    effect->scope_id,
        effect->key,      effect->kind,
        effect->recovery, effect->status,
        effect->owner,    hf_instant_text(effect->started_at, begun)
    };
    cli_table_row(table, cells, 5, CLI_RED);
}

static void effect_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_journal_effect *effect = row->at;
    cli_putf(cli, "%s %s ", row->did, effect->scope);
    cli_put_clean(cli, effect->scope_id);
    cli_put(cli, " ");
    cli_put_clean(cli, effect->key);
    cli_putf(cli, ": %s, ", effect->status);
    cli_put_clean(cli, effect->outcome ? effect->outcome : "a long outcome");
    cli_put(cli, ", by ");
    cli_put_clean(cli, effect->actor ? effect->actor : effect->owner);
    cli_put(cli, "\n");
}

const struct cli_view cli_effect_views[] = {
    { &hf_effect_shape, effect_columns, 8, effect_cells, effect_line, cli_any_detail },
    { .shape = NULL },
};
