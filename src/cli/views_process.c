/* Processes for people. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "core/process/process.h"

#define TITLES 10
static const char *const process_titles[TITLES] = { "ID",      "STATUS", "DISPOSITION",
                                                    "KIND",    "NAME",   "ORIGINATOR",
                                                    "STARTED", "OWNER",  "LEASE",
                                                    "ABANDON" };

static void process_cells(struct cli_table *table, const void *row)
{
    const struct hf_process *p = row;
    const struct hf_work *w = &p->work;
    char lease[64] = "-", first[24] = "-", age[24];
    if (w->lease_expires_at)
        (void)snprintf(lease, sizeof(lease), "%s%s",
                       w->lease_remaining_ms > 0 ? "" : "lapsed ",
                       op_age(w->lease_remaining_ms, age));
    if (w->first_started_at)
        (void)snprintf(first, sizeof(first), "%s",
                       op_age(cli_store_now(table->cli) - w->first_started_at, age));
    size_t len = strlen(w->work_id);
    const char *const cells[TITLES] = { w->work_id + (len > 12 ? len - 12 : 0),
                                        w->status,
                                        w->disposition,
                                        p->identity_kind,
                                        p->identity_label,
                                        p->originator,
                                        first,
                                        w->owner,
                                        lease,
                                        w->abandon_request ? "asked" : "-" };
    cli_table_row(table, cells, 1, cli_status_colour(w->status));
}

static int process_detail(struct cli *cli, const struct op_row *row)
{
    struct cli_table table;
    cli_table_begin(&table, cli, process_titles, TITLES);
    process_cells(&table, row->at);
    return cli_table_end(&table);
}

static void deferred_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_deferred *left = row->at;
    cli_note(cli, "%s was left: %s", left->work_id, left->message);
}

const struct cli_view cli_process_views[] = {
    { &hf_process_shape, process_titles, TITLES, process_cells, NULL, process_detail },
    { .shape = &hf_deferred_shape, .line = deferred_line },
    { .shape = NULL },
};
