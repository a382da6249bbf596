/* Schedules for people. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/civil.h"
#include "base/text.h"
#include "op/shapes/schedule.h"

/* "cron 0 9 * * * (Europe/Berlin)", "every 10m", "once". */
static const char *timing_text(const struct hf_schedule *schedule, char *out, size_t room)
{
    char text[24];
    if (schedule->cron)
        (void)snprintf(out, room, "%s%s (%s)", schedule->cron,
                       hf_same(schedule->days, "and") ? ", both days" : "",
                       schedule->zone);
    else if (schedule->every_ms)
        (void)snprintf(out, room, "every %s", cli_duration(schedule->every_ms, text));
    else
        (void)snprintf(out, room, "once (%s)", schedule->zone);
    return out;
}

static const char *when(hf_ms at, char out[HF_INSTANT_TEXT])
{
    return at ? hf_instant_text(at, out) : NULL;
}

static const struct cli_column schedule_columns[] = {
    { .title = "NAME", .least = 12 },
    { .title = "TENANT", .rank = 5 },
    { .title = "STATE" },
    { .title = "TIMING", .least = 10 },
    { .title = "RUNS", .rank = 1, .least = 12 },
    { .title = "NEXT", .least = 16 },
    { .title = "LAST", .rank = 3, .least = 16 },
    { .title = ">MADE", .rank = 2 },
    { .title = ">SKIPPED", .rank = 4 },
};

static void schedule_cells(struct cli_table *table, const void *row)
{
    const struct hf_schedule *schedule = row;
    char timing[512], runs[OP_WHAT], next[HF_INSTANT_TEXT], last[HF_INSTANT_TEXT],
        made[24], skipped[24];
    bool active = hf_same(schedule->state, "active");
    (void)snprintf(made, sizeof(made), "%lld", (long long)schedule->made);
    (void)snprintf(skipped, sizeof(skipped), "%lld", (long long)schedule->skipped);
    const char *cells[] = { schedule->name,
                            *schedule->tenant ? schedule->tenant : NULL,
                            schedule->last_error ? "failing" : schedule->state,
                            timing_text(schedule, timing, sizeof(timing)),
                            op_command_text(schedule->payload, runs) ? runs
                                                                     : schedule->kind,
                            active ? when(schedule->next_at, next) : NULL,
                            when(schedule->last_slot_at, last),
                            made,
                            skipped };
    cli_table_row(table, cells, 2,
                  schedule->last_error ? CLI_RED
                  : active             ? CLI_GREEN
                                       : CLI_YELLOW);
}

static void schedule_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_schedule *schedule = row->at;
    char next[HF_INSTANT_TEXT];
    bool active = hf_same(schedule->state, "active") && schedule->next_at;
    cli_put_clean(cli, schedule->name);
    cli_putf(cli, " %s: %s, revision %lld%s%s\n", row->did, schedule->state,
             (long long)schedule->revision, active ? ", next slot " : "",
             active ? hf_instant_text(schedule->next_at, next) : "");
}

/* ---- slots ---------------------------------------------------------------------------- */

static int slots_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_times *slots = row->at;
    char text[HF_INSTANT_TEXT];
    for (size_t i = 0; i < slots->count; i++)
        cli_putf(cli, "%s\n", hf_instant_text(slots->at[i], text));
    return 0;
}

static int upcoming_detail(struct cli *cli, const struct op_row *row)
{
    const struct hf_times *slots = row->at;
    char text[HF_INSTANT_TEXT];
    for (size_t i = 0; i < slots->count; i++)
        cli_putf(cli, "%-18s %s\n", i ? "" : "upcoming",
                 hf_instant_text(slots->at[i], text));
    return 0;
}

static void skip_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_schedule_skip *skip = row->at;
    char first[HF_INSTANT_TEXT], last[HF_INSTANT_TEXT];
    cli_putf(cli, "%-18s %s", row->did, hf_instant_text(skip->first_at, first));
    if (skip->last_at != skip->first_at)
        cli_putf(cli, " to %s, %lld%s slots", hf_instant_text(skip->last_at, last),
                 (long long)skip->slots, skip->more ? " or more" : "");
    cli_putf(cli, ": %s%s%s\n", skip->reason, skip->work_id ? ", " : "",
             skip->work_id ? skip->work_id : "");
}

/* ---- reports -------------------------------------------------------------------------- */

/* The counts of `schedule sync`: row->at is a struct hf_sync_report. */
static int show_sync_report(struct cli *cli, const struct op_row *row)
{
    const struct hf_shape *shape = row->shape;
    for (size_t i = 0; !cli->quiet && i < shape->count; i++)
        cli_putf(cli, "%s%lld %s", i ? ", " : "",
                 (long long)hf_field_i64(&shape->fields[i], row->at),
                 shape->fields[i].name);
    cli_put(cli, cli->quiet ? "" : "\n");
    return 0;
}

void cli_text_pass(const struct hf_schedule_report *report, char *out, size_t room)
{
    (void)snprintf(out, room, "%lld made, %lld skipped%s", (long long)report->made,
                   (long long)report->skipped,
                   report->failed ? "; some cannot be handled: see last_error" : "");
}

/* The report of one pass of the scheduler over all schedules that are due: how many units it made
 * and how many slots it skipped. row->at is a struct hf_schedule_report. */
static int show_pass_report(struct cli *cli, const struct op_row *row)
{
    char text[256];
    cli_text_pass(row->at, text, sizeof(text));
    if (!cli->quiet)
        cli_putf(cli, "%s\n", text);
    return 0;
}

const struct cli_view cli_schedule_views[] = {
    { &hf_schedule_shape, schedule_columns, 9, schedule_cells, schedule_line,
      cli_any_detail },
    { .shape = &hf_slots_shape, .detail = slots_detail },
    { .shape = &hf_upcoming_shape, .detail = upcoming_detail },
    { .shape = &hf_skip_shape, .line = skip_line },
    { .shape = &hf_sync_shape, .detail = show_sync_report },
    { .shape = &hf_schedule_report_shape, .detail = show_pass_report },
    { .shape = NULL },
};
