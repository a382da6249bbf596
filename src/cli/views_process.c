/* Processes for people. */
#include "cli/cli.h"

#include <stdio.h>

#include "op/shapes/process.h"

static const struct cli_column process_columns[] = {
    { .title = "ID" },
    { .title = "STATUS" },
    { .title = "WHAT", .least = 18 },
    { .title = "KIND", .rank = 4, .least = 6 },
    { .title = ">STARTED" },
    { .title = "OWNER", .rank = 2, .least = 8 },
    { .title = "LEASE", .rank = 1 },
    { .title = "DISPOSITION", .rank = 3 },
    { .title = "ORIGINATOR", .rank = 5, .least = 8 },
    { .title = "ABANDON", .rank = 1 },
};
#define PROCESS_COLUMNS (sizeof(process_columns) / sizeof(process_columns[0]))

static void process_cells(struct cli_table *table, const void *row)
{
    const struct hf_process *p = row;
    const struct hf_work *w = &p->work;
    char lease[64] = "", first[24] = "", age[24], what[OP_WHAT];
    if (w->lease_expires_at)
        (void)snprintf(lease, sizeof(lease), "%s%s",
                       w->lease_remaining_ms > 0 ? "" : "silent for ",
                       op_age(w->lease_remaining_ms, age));
    if (w->first_started_at)
        (void)snprintf(first, sizeof(first), "%s",
                       op_age(cli_store_now(table->cli) - w->first_started_at, age));
    const char *const cells[PROCESS_COLUMNS] = {
        op_short_id(w->work_id),
        w->status,
        p->identity_label ? p->identity_label : op_what(w, what),
        w->kind,
        first,
        w->owner,
        lease,
        w->disposition,
        p->originator,
        w->abandon_request ? "asked" : NULL,
    };
    cli_table_row(table, cells, 1, cli_status_colour(w->status));
}

static int process_detail(struct cli *cli, const struct op_row *row)
{
    struct cli_table table;
    cli_table_begin(&table, cli, process_columns, PROCESS_COLUMNS);
    process_cells(&table, row->at);
    return cli_table_end(&table);
}

static void deferred_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_process_deferred *left = row->at;
    cli_note(cli, "%s was left: %s", left->work_id, left->message);
}

const struct cli_view cli_process_views[] = {
    { &hf_process_shape, process_columns, PROCESS_COLUMNS, process_cells, NULL,
      process_detail },
    { .shape = &hf_process_deferred_shape, .line = deferred_line },
    { .shape = NULL },
};
