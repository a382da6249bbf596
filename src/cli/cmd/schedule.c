/* holdfast schedule: the commands that change schedules. */
#include "cli/cli.h"

#include <holdfast/schedule.h>
#include <stdio.h>
#include <string.h>

#include "base/civil.h"
#include "base/text.h"
#include "cli/cmd/file.h"
#include "cli/cmd/schedule.h"
#include "cli/cmd/upkeep.h"

#define SET_BYTES_MAX ((size_t)8 << 20)

/* ---- what was asked for ------------------------------------------------------------ */

void cli_schedule_timing(struct cli *cli, struct hf_schedule_new *wanted)
{
    wanted->cron = cli_text(cli, "cron");
    wanted->every_ms = cli_number(cli, "every", 0);
    wanted->start = cli_text(cli, "start");
    wanted->at = cli_text(cli, "at");
    wanted->zone = cli_text(cli, "tz");
    wanted->both_days = hf_same(cli_text(cli, "days"), "and");
}

static struct hf_schedule_new wanted_of(struct cli *cli)
{
    struct hf_schedule_new wanted = {
        .size = sizeof(wanted),
        .name = cli_text(cli, "name"),
        .overlap = hf_overlap_of(cli_text(cli, "overlap")),
        .catch_up = hf_catch_up_of(cli_text(cli, "catch-up")),
        .miss_threshold_ms = cli_number(cli, "miss-threshold", 0),
        .kind = cli_text(cli, "kind"),
        .queue = cli_text(cli, "queue"),
        .lane_key = cli_text(cli, "lane"),
        .payload = cli_text(cli, "payload"),
        .priority = (int)cli_number(cli, "priority", -1),
        .max_attempts = (int)cli_number(cli, "max-attempts", 0),
        .retry_policy = cli_text(cli, "retry-policy"),
        .disposition = hf_disposition_of(cli_text(cli, "disposition")),
        .start_timeout_ms = cli_number(cli, "start-timeout", 0),
        .exec_timeout_ms = cli_number(cli, "exec-timeout", 0),
    };
    cli_schedule_timing(cli, &wanted);
    return wanted;
}

/* Timings are checked before a store is made or opened. */
static int check_timing(struct cli *cli, bool needed)
{
    struct hf_schedule_new wanted = { .size = sizeof(wanted) };
    hf_ms slot = 0;
    size_t count = 0;
    cli_schedule_timing(cli, &wanted);
    bool given = wanted.cron || wanted.at || cli_given(cli, "every");
    if (!given && !needed)
        return 0;
    if (!given)
        return hf_fail(&cli->err, HF_EINVAL, "--cron",
                       "give one of --cron, --every and --at");
    if (cli_given(cli, "every") && wanted.every_ms == 0)
        return hf_fail(&cli->err, HF_EINVAL, "--every", "--every must be 1s to 36525d");
    return hf_schedule_preview(&wanted, cli_now(), 1, &slot, &count, &cli->err);
}

int check_schedule(struct cli *cli)
{
    return check_timing(cli, strcmp(cli->op->name, "schedule.add") == 0);
}

int check_preview(struct cli *cli)
{
    hf_ms from = 0;
    const char *text = cli_text(cli, "from");
    bool named = cli_given(cli, "name");
    if (named &&
        (cli_given(cli, "cron") || cli_given(cli, "every") || cli_given(cli, "at")))
        return hf_fail(&cli->err, HF_EINVAL, "--cron",
                       "give a schedule's name or a timing, not both");
    int rc = check_timing(cli, !named);
    if (rc == 0 && text)
        rc = hf_parse_instant(text, "--from", &from, &cli->err);
    return rc;
}

/* ---- answers ----------------------------------------------------------------------- */

/* The one schedule of an answer, and what happened to it. */
static int print_changed(struct cli *cli, struct hf_schedules *schedules, const char *did)
{
    char next[HF_INSTANT_TEXT];
    const struct hf_schedule *schedule = hf_schedules_at(schedules, 0);
    bool changed = hf_schedules_changed(schedules);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_bool(&cli->writer, "changed", changed);
        cli_json_schedule(cli, schedule);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put_clean(cli, schedule->name);
        cli_putf(cli, " %s: %s, revision %lld, next slot %s\n",
                 changed ? did : "unchanged", schedule->state,
                 (long long)schedule->revision,
                 schedule->next_at ? hf_instant_text(schedule->next_at, next) : "none");
    }
    hf_schedules_free(schedules);
    return 0;
}

/* A conflict is about a revision or a rule here, not about a key. */
static int refused(struct cli *cli, int rc)
{
    if (rc == HF_ECONFLICT && hf_same(cli->err.field, "revision"))
        cli->action = "look at it with `schedule show`, then give its revision";
    else if (rc == HF_ECONFLICT && hf_same(cli->err.field, "overlap"))
        cli->action = "wait until the unit has finished, or change the overlap rule";
    else if (rc == HF_ECONFLICT)
        cli->action = "choose another name, or use `schedule update`";
    else if (rc == HF_ETRANSITION)
        cli->action = "look at it with `schedule show`";
    return rc;
}

int cmd_schedule_add(struct cli *cli)
{
    struct hf_schedules *schedules = NULL;
    struct hf_schedule_new wanted = wanted_of(cli);
    wanted.paused = cli_given(cli, "paused");
    int rc = hf_schedule_add(cli->store, &cli->who, &wanted, &schedules, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, schedules, "added");
}

/* ---- update ------------------------------------------------------------------------ */

/* What is not given stays. Of the timing all is replaced when any of its kinds is given. */
static void keep_timing(struct cli *cli, const struct hf_schedule *was,
                        struct hf_schedule_new *wanted, char start[HF_INSTANT_TEXT])
{
    if (!wanted->zone)
        wanted->zone = was->zone;
    if (wanted->cron || wanted->every_ms || wanted->at) {
        if (!cli_given(cli, "days") && wanted->cron)
            wanted->both_days = hf_same(was->days, "and");
        return;
    }
    wanted->cron = was->cron;
    wanted->every_ms = was->every_ms;
    if (!cli_given(cli, "days"))
        wanted->both_days = hf_same(was->days, "and");
    if (was->cron)
        return;
    (void)hf_instant_text(was->start_at, start); /* gives `start` */
    if (was->every_ms && !wanted->start)
        wanted->start = start;
    else if (!was->every_ms)
        wanted->at = start;
}

static void keep_unit(const struct hf_schedule *was, struct hf_schedule_new *wanted)
{
    wanted->kind = wanted->kind ? wanted->kind : was->kind;
    wanted->queue = wanted->queue ? wanted->queue : was->queue;
    wanted->lane_key = wanted->lane_key ? wanted->lane_key : was->lane_key;
    wanted->payload = wanted->payload ? wanted->payload : was->payload;
    wanted->retry_policy = wanted->retry_policy ? wanted->retry_policy
                                                : was->retry_policy;
    if (wanted->priority < 0)
        wanted->priority = (int)was->priority;
    if (!wanted->max_attempts)
        wanted->max_attempts = (int)was->max_attempts;
    if (!wanted->disposition)
        wanted->disposition = hf_disposition_of(was->disposition);
    if (!wanted->start_timeout_ms)
        wanted->start_timeout_ms = was->start_timeout_ms;
    if (!wanted->exec_timeout_ms)
        wanted->exec_timeout_ms = was->exec_timeout_ms;
    if (!wanted->overlap)
        wanted->overlap = hf_overlap_of(was->overlap);
    if (!wanted->catch_up)
        wanted->catch_up = hf_catch_up_of(was->catch_up);
    if (!wanted->miss_threshold_ms)
        wanted->miss_threshold_ms = was->miss_threshold_ms;
}

int cmd_schedule_update(struct cli *cli)
{
    struct hf_schedules *before = NULL, *after = NULL;
    struct hf_schedule_new wanted = wanted_of(cli);
    char start[HF_INSTANT_TEXT];
    int rc = hf_schedule_get(cli->store, &cli->who, wanted.name, &before, &cli->err);
    if (rc)
        return rc;
    const struct hf_schedule *was = hf_schedules_at(before, 0);
    keep_timing(cli, was, &wanted, start);
    keep_unit(was, &wanted);
    rc = hf_schedule_update(cli->store, &cli->who, &wanted,
                            cli_number(cli, "revision", was->revision), &after,
                            &cli->err);
    hf_schedules_free(before);
    return rc ? refused(cli, rc) : print_changed(cli, after, "updated");
}

/* ---- pause, resume, remove, trigger ------------------------------------------------ */

int cmd_schedule_pause(struct cli *cli)
{
    struct hf_schedules *schedules = NULL;
    int rc = hf_schedule_pause(cli->store, &cli->who, cli_text(cli, "name"),
                               cli_text(cli, "reason"), cli_number(cli, "revision", 0),
                               &schedules, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, schedules, "paused");
}

int cmd_schedule_resume(struct cli *cli)
{
    struct hf_schedules *schedules = NULL;
    int rc = hf_schedule_resume(cli->store, &cli->who, cli_text(cli, "name"),
                                cli_number(cli, "revision", 0), &schedules, &cli->err);
    return rc ? refused(cli, rc) : print_changed(cli, schedules, "resumed");
}

int cmd_schedule_remove(struct cli *cli)
{
    const char *name = cli_text(cli, "name");
    int rc = hf_schedule_remove(cli->store, &cli->who, name,
                                cli_number(cli, "revision", 0), &cli->err);
    if (rc)
        return refused(cli, rc);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "removed", name);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put_clean(cli, name);
        cli_put(cli, " removed\n");
    }
    return 0;
}

int cmd_schedule_trigger(struct cli *cli)
{
    struct hf_answer *answer = NULL;
    int rc = hf_schedule_trigger(cli->store, &cli->who, cli_text(cli, "name"), &answer,
                                 &cli->err);
    if (rc)
        return refused(cli, rc);
    const struct hf_item *item = hf_answer_at(answer, 0);
    rc = cli_print_row(cli, item, item->created ? "created" : "existed");
    hf_answer_free(answer);
    return rc;
}

/* ---- sets and passes --------------------------------------------------------------- */

int cmd_schedule_sync(struct cli *cli)
{
    struct hf_sync_report report = { 0 };
    struct hf_span file = { 0 };
    int rc = cli_read_file(cli, cli_text(cli, "file"), SET_BYTES_MAX, &file);
    if (rc == 0)
        rc = hf_schedule_sync(cli->store, &cli->who, file.at, &report, &cli->err);
    if (rc)
        return rc;
    const struct {
        const char *name;
        int64_t count;
    } counts[] = {
        { "added", report.added },         { "updated", report.updated },
        { "unchanged", report.unchanged }, { "kept", report.kept },
        { "paused", report.paused },       { "removed", report.removed },
    };
    if (cli->json)
        cli_ok_begin(cli);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (cli->json)
            hf_json_put_i64(&cli->writer, counts[i].name, counts[i].count);
        else if (!cli->quiet)
            cli_putf(cli, "%s%lld %s", i ? ", " : "", (long long)counts[i].count,
                     counts[i].name);
    }
    if (cli->json)
        cli_ok_end(cli);
    else if (!cli->quiet)
        cli_put(cli, "\n");
    return 0;
}

void cli_json_pass(struct hf_json *json, const struct hf_schedule_report *report)
{
    hf_json_put_i64(json, "looked_at", report->looked_at);
    hf_json_put_i64(json, "made", report->made);
    hf_json_put_i64(json, "skipped", report->skipped);
    hf_json_put_i64(json, "failed", report->failed);
    hf_json_put_i64(json, "races", report->races);
}

void cli_text_pass(const struct hf_schedule_report *report, char *out, size_t room)
{
    (void)snprintf(out, room, "%lld made, %lld skipped%s", (long long)report->made,
                   (long long)report->skipped,
                   report->failed ? "; some cannot be handled: see last_error" : "");
}

int cmd_schedule_run(struct cli *cli)
{
    char text[256];
    struct hf_schedule_report report;
    int rc = hf_schedule_pass(cli->store, &cli->who, &report, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        cli_json_pass(&cli->writer, &report);
        hf_json_opt_i64(&cli->writer, "next_at", report.next_at);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_text_pass(&report, text, sizeof(text));
        cli_putf(cli, "%s\n", text);
    }
    return 0;
}
