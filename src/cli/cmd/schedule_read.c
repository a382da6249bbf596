/* holdfast schedule: the commands that only look. */
#include "cli/cli.h"

#include <holdfast/schedule.h>
#include <stdio.h>

#include "base/civil.h"
#include "base/text.h"
#include "cli/cmd/schedule.h"
#include "core/schedule/schedule.h"

#define SLOTS_MAX 1000

void cli_json_schedule(struct cli *cli, const struct hf_schedule *schedule)
{
    hf_json_key(&cli->writer, "schedule");
    cli_json_fields(cli, hf_schedule_fields, hf_schedule_field_count, schedule);
}

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
    return at ? hf_instant_text(at, out) : "-";
}

/* ---- list -------------------------------------------------------------------------- */

static int json_list(struct cli *cli, const struct hf_schedules *schedules)
{
    int rc = 0;
    cli_ok_begin(cli);
    hf_json_key(&cli->writer, "items");
    hf_json_array(&cli->writer);
    for (size_t i = 0; rc == 0 && i < hf_schedules_count(schedules); i++) {
        cli_json_fields(cli, hf_schedule_fields, hf_schedule_field_count,
                        hf_schedules_at(schedules, i));
        rc = cli_flush_some(cli);
    }
    if (rc)
        return rc;
    hf_json_end(&cli->writer);
    hf_json_put_str(&cli->writer, "next", hf_schedules_next(schedules));
    cli_ok_end(cli);
    return 0;
}

static int table_list(struct cli *cli, const struct hf_schedules *schedules)
{
    static const char *const titles[] = { "NAME", "TENANT", "STATE", "TIMING",
                                          "NEXT", "LAST",   ">MADE", ">SKIPPED" };
    if (hf_schedules_count(schedules) == 0) {
        cli_put(cli, "no schedules\n");
        return 0;
    }
    struct cli_table table;
    cli_table_begin(&table, cli, titles, sizeof(titles) / sizeof(titles[0]));
    for (size_t i = 0; i < hf_schedules_count(schedules); i++) {
        const struct hf_schedule *schedule = hf_schedules_at(schedules, i);
        char timing[512], next[HF_INSTANT_TEXT], last[HF_INSTANT_TEXT], made[24],
            skipped[24];
        (void)snprintf(made, sizeof(made), "%lld", (long long)schedule->made);
        (void)snprintf(skipped, sizeof(skipped), "%lld", (long long)schedule->skipped);
        const char *cells[] = { schedule->name,
                                *schedule->tenant ? schedule->tenant : "-",
                                schedule->last_error ? "failing" : schedule->state,
                                timing_text(schedule, timing, sizeof(timing)),
                                when(schedule->next_at, next),
                                when(schedule->last_slot_at, last),
                                made,
                                skipped };
        cli_table_row(&table, cells, 2,
                      schedule->last_error                 ? CLI_RED
                      : hf_same(schedule->state, "active") ? CLI_GREEN
                                                           : CLI_YELLOW);
    }
    return cli_table_end(&table);
}

int cmd_schedule_list(struct cli *cli)
{
    struct hf_schedules *schedules = NULL;
    struct hf_schedule_filter filter = { .size = sizeof(filter),
                                         .state = cli_text(cli, "state"),
                                         .origin = cli_text(cli, "set"),
                                         .limit = (size_t)cli_number(cli, "limit", 0),
                                         .after = cli_text(cli, "after") };
    int rc = hf_schedule_list(cli->store, &cli->who, &filter, &schedules, &cli->err);
    if (rc)
        return rc;
    rc = cli->json ? json_list(cli, schedules) : table_list(cli, schedules);
    if (rc == 0 && !cli->json && hf_schedules_next(schedules)) {
        rc = cli_flush(cli);
        cli_note(cli, "there is more: --after %s", hf_schedules_next(schedules));
    }
    hf_schedules_free(schedules);
    return rc;
}

/* ---- slots to come ----------------------------------------------------------------- */

static void json_slots(struct cli *cli, const char *key, const hf_ms *slots, size_t count)
{
    char text[HF_INSTANT_TEXT];
    hf_json_key(&cli->writer, key);
    hf_json_array(&cli->writer);
    for (size_t i = 0; i < count; i++)
        hf_json_str(&cli->writer, hf_instant_text(slots[i], text));
    hf_json_end(&cli->writer);
}

static int preview(struct cli *cli, hf_ms *slots, size_t *ret_count)
{
    struct hf_schedules *schedules = NULL;
    hf_ms from = cli_now();
    size_t want = (size_t)cli_number(cli, "count", 5);
    const char *name = cli_text(cli, "name");
    int rc = cli_given(cli, "from")
                 ? hf_parse_instant(cli_text(cli, "from"), "--from", &from, &cli->err)
                 : 0;
    if (rc == 0 && !name) {
        struct hf_schedule_new wanted = { .size = sizeof(wanted) };
        cli_schedule_timing(cli, &wanted);
        return hf_schedule_preview(&wanted, from, want, slots, ret_count, &cli->err);
    }
    if (rc == 0)
        rc = cli_open_store(cli);
    if (rc == 0)
        rc = hf_schedule_get(cli->store, &cli->who, name, &schedules, &cli->err);
    if (rc == 0 && !cli_given(cli, "from"))
        from = cli_store_now(cli);
    if (rc == 0)
        rc = hf_schedule_upcoming(hf_schedules_at(schedules, 0), from, want, slots,
                                  ret_count, &cli->err);
    hf_schedules_free(schedules);
    return rc;
}

int cmd_schedule_preview(struct cli *cli)
{
    hf_ms slots[SLOTS_MAX];
    size_t count = 0;
    char text[HF_INSTANT_TEXT];
    int rc = preview(cli, slots, &count);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        json_slots(cli, "items", slots, count);
        cli_ok_end(cli);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        cli_putf(cli, "%s\n", hf_instant_text(slots[i], text));
    return 0;
}

/* ---- show -------------------------------------------------------------------------- */

struct shown {
    const struct hf_schedule *schedule;
    const struct hf_schedule_skips *skips;
    hf_ms slots[SLOTS_MAX];
    size_t count;
};

static void json_shown(struct cli *cli, const struct shown *shown)
{
    struct hf_json *json = &cli->writer;
    cli_ok_begin(cli);
    cli_json_schedule(cli, shown->schedule);
    json_slots(cli, "upcoming", shown->slots, shown->count);
    hf_json_key(json, "skips");
    hf_json_array(json);
    for (size_t i = 0; i < hf_schedule_skips_count(shown->skips); i++) {
        const struct hf_schedule_skip *skip = hf_schedule_skips_at(shown->skips, i);
        char text[HF_INSTANT_TEXT];
        hf_json_object(json);
        hf_json_put_str(json, "first", hf_instant_text(skip->first_at, text));
        hf_json_put_str(json, "last", hf_instant_text(skip->last_at, text));
        hf_json_put_i64(json, "slots", skip->slots);
        hf_json_put_bool(json, "more", skip->more);
        hf_json_put_str(json, "reason", skip->reason);
        hf_json_put_str(json, "work_id", skip->work_id);
        hf_json_put_i64(json, "created_at", skip->created_at);
        hf_json_end(json);
    }
    hf_json_end(json);
    cli_ok_end(cli);
}

static void people_shown(struct cli *cli, const struct shown *shown)
{
    char first[HF_INSTANT_TEXT], last[HF_INSTANT_TEXT];
    cli_put_facts(cli, hf_schedule_fields, hf_schedule_field_count, shown->schedule);
    for (size_t i = 0; i < shown->count; i++)
        cli_putf(cli, "%-18s %s\n", i ? "" : "upcoming",
                 hf_instant_text(shown->slots[i], first));
    for (size_t i = 0; i < hf_schedule_skips_count(shown->skips); i++) {
        const struct hf_schedule_skip *skip = hf_schedule_skips_at(shown->skips, i);
        cli_putf(cli, "%-18s %s", i ? "" : "skipped",
                 hf_instant_text(skip->first_at, first));
        if (skip->last_at != skip->first_at)
            cli_putf(cli, " to %s, %lld%s slots", hf_instant_text(skip->last_at, last),
                     (long long)skip->slots, skip->more ? " or more" : "");
        cli_putf(cli, ": %s%s%s\n", skip->reason, skip->work_id ? ", " : "",
                 skip->work_id ? skip->work_id : "");
    }
}

int cmd_schedule_show(struct cli *cli)
{
    struct shown shown = { 0 };
    struct hf_schedules *schedules = NULL;
    struct hf_schedule_skips *skips = NULL;
    const char *name = cli_text(cli, "name");
    int rc = hf_schedule_get(cli->store, &cli->who, name, &schedules, &cli->err);
    if (rc == 0)
        rc = hf_schedule_skips(cli->store, &cli->who, name,
                               (size_t)cli_number(cli, "skips", 10), &skips, &cli->err);
    if (rc == 0) {
        struct hf_err ignored; /* a zone that is gone stands in last_error */
        shown.schedule = hf_schedules_at(schedules, 0);
        shown.skips = skips;
        if (shown.schedule->next_at &&
            hf_schedule_upcoming(shown.schedule, shown.schedule->next_at - 1,
                                 (size_t)cli_number(cli, "count", 5), shown.slots,
                                 &shown.count, &ignored))
            shown.count = 0;
        if (cli->json)
            json_shown(cli, &shown);
        else
            people_shown(cli, &shown);
    }
    hf_schedule_skips_free(skips);
    hf_schedules_free(schedules);
    return rc;
}
