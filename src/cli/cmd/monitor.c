/* holdfast monitor: the process that acts on what is due. It runs one pass after another (leases
 * and deadlines that ended, slots of schedules, what dead runners left behind), prints what a pass
 * did, and waits until something is due or a bell is rung. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cmd/monitor_worker.h"
#include "cli/cmd/upkeep.h"
#include "op/shapes/ledger.h"
#include "op/shapes/schedule.h"

#define INTERVAL_MS 1000
#define SLICE_MS 100 /* how long a signal may go unseen */
#define REST_MS 20   /* least time between two passes */
#define ORPHAN_MS 50 /* and the most while orphans are being ended */

struct watch {
    struct cli *cli;
    struct hf_monitor_plan plan;
    struct hf_monitor_witness witness; /* of this monitor's own calls */
    struct monitor_worker worker;
    hf_ms interval_ms;
    struct cli_stop stop;
    int64_t passes;
    int64_t failures; /* in a row */
    int64_t renewed;
    int64_t changed;
    int64_t made;   /* units, of schedules */
    int64_t ending; /* orphans that were told to end */
};

/* ---- the log ----------------------------------------------------------------------- */

/* One line on stderr: {"at":…,"event":…, …} or "TIME event …". */
static void log_line(const struct watch *watch, const char *event, const char *text,
                     const struct hf_monitor_report *report)
{
    char when[25];
    struct hf_buf line;
    struct hf_json json;
    hf_ms now = cli_now();
    if (watch->cli->quiet)
        return;
    if (!watch->cli->json) {
        (void)fprintf(stderr, "%s %s: %s\n", hf_time_text(now, when), event, text);
        return; /* a log that cannot be written stops no monitor */
    }
    hf_buf_init(&line, hf_alloc_system(), 65536);
    hf_json_begin(&json, &line);
    hf_json_object(&json);
    hf_json_put_i64(&json, "at", now);
    hf_json_put_str(&json, "event", event);
    hf_json_put_str(&json, "message", text);
    if (report && strcmp(event, "swept") == 0)
        cli_json_counts(&json, &hf_sweep_shape, &report->sweep);
    if (report && strcmp(event, "scheduled") == 0)
        cli_json_counts(&json, &hf_schedule_report_shape, &report->schedules);
    if (report && strcmp(event, "pointer") == 0) {
        hf_json_key(&json, "pointer");
        cli_json_pointer(&json, &report->pointer);
    }
    hf_json_end(&json);
    (void)fprintf(stderr, "%s\n", hf_buf_str(&line));
    hf_buf_fini(&line);
}

static void log_pass(const struct watch *watch, const struct hf_monitor_report *report)
{
    char text[1024];
    if (report->renewed) {
        (void)snprintf(text, sizeof(text), "%lld of %s", (long long)report->renewed,
                       watch->plan.owner);
        log_line(watch, "renewed", text, report);
    }
    if (report->stalled_ms && report->spared) {
        (void)snprintf(
            text, sizeof(text),
            "the store stalled for %lld ms; %lld leases were extended by one term",
            (long long)report->stalled_ms, (long long)report->spared);
        log_line(watch, "amnesty", text, report);
    }
    if (hf_sweep_changes(&report->sweep)) {
        cli_text_sweep(&report->sweep, text, sizeof(text));
        log_line(watch, "swept", text, report);
    }
    if (report->schedules.looked_at) {
        cli_text_pass(&report->schedules, text, sizeof(text));
        log_line(watch, "scheduled", text, report);
    }
    if (report->has_pointer && report->pointer.action != HF_POINTER_NOTHING &&
        report->pointer.action != HF_POINTER_KEPT) {
        cli_text_pointer(&report->pointer, text, sizeof(text));
        log_line(watch, "pointer", text, report);
    }
}

/* ---- passes ------------------------------------------------------------------------ */

/* A store that is busy, full or slow to answer may recover; other failures would only
 * repeat themselves. */
static bool may_pass(int code)
{
    return hf_err_class(code) != HF_CLASS_TERMINAL || code == HF_EFULL;
}

static int pass(struct watch *watch, hf_ms *ret_wait_ms)
{
    struct cli *cli = watch->cli;
    struct hf_monitor_report report;
    int rc = hf_monitor_pass(cli->store, &cli->who, &watch->plan, &report, &cli->err);
    if (rc && (!may_pass(rc) || cli_given(cli, "once")))
        return rc;
    *ret_wait_ms = watch->interval_ms;
    watch->passes++;
    if (rc) {
        watch->failures++;
        log_line(watch, "failed", cli->err.message, NULL);
        return 0;
    }
    watch->failures = 0;
    watch->renewed += report.renewed;
    watch->changed += hf_sweep_changes(&report.sweep);
    watch->made += report.schedules.made;
    log_pass(watch, &report);
    watch->ending = report.ending;
    if (report.renew_in_ms >= 0 && report.renew_in_ms < *ret_wait_ms)
        *ret_wait_ms = report.renew_in_ms;
    return 0;
}

/* Each once: when it was found and told to end. What is left alone is a matter for
 * `holdfast attention` and `process list`, not for a log. */
static void log_orphan(void *user, const struct hf_orphan *orphan)
{
    const struct watch *watch = user;
    char text[512];
    if (!orphan->ending || watch->ending || orphan->processes == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "%lld processes of unit %s outlived their runner: sent TERM",
                   (long long)orphan->processes, op_short_id(orphan->work_id));
    log_line(watch, "orphan", text, NULL);
}

/* Until there is something to sweep, a signal comes, or `ms` have passed. */
static void rest(struct watch *watch, hf_ms ms)
{
    struct cli *cli = watch->cli;
    const struct hf_clock *clock = hf_clock_system();
    hf_ms begun = clock->mono_ms(clock->user), spent = 0;
    ms = watch->ending && ms > ORPHAN_MS ? ORPHAN_MS : ms;
    bool told = cli_stop_told(&watch->stop, REST_MS);
    spent = clock->mono_ms(clock->user) - begun;
    while (!told && spent < ms) {
        hf_ms slice = ms - spent < SLICE_MS ? ms - spent : SLICE_MS;
        hf_ms before = spent;
        int rc = watch->failures ? HF_EBUSY : hf_work_await(cli->store, slice, &cli->err);
        told = cli_stop_told(&watch->stop, rc ? slice : 0);
        spent = clock->mono_ms(clock->user) - begun;
        if (rc == 0 && spent - before < slice - 1)
            break; /* woken early */
    }
}

static int loop(struct watch *watch)
{
    bool once = cli_given(watch->cli, "once");
    for (;;) {
        hf_ms wait_ms = 0;
        int rc = pass(watch, &wait_ms);
        if (rc == 0 && cli_given(watch->cli, "run"))
            rc = monitor_worker_tend(&watch->worker);
        if (rc || once || cli_stop_told(&watch->stop, 0))
            return rc;
        rest(watch, wait_ms);
        if (watch->stop.by)
            return 0;
    }
}

static int check_options(struct watch *watch)
{
    struct cli *cli = watch->cli;
    if (!watch->plan.owner &&
        (watch->plan.pointer || watch->plan.incarnation || cli_given(cli, "fresh")))
        return hf_fail(&cli->err, HF_EINVAL, "--owner",
                       "--pointer, --incarnation and --fresh need --owner");
    if (cli_given(cli, "once") && cli_given(cli, "run"))
        return hf_fail(&cli->err, HF_EINVAL, "--run",
                       "--run and --once exclude each other: leave --once out, or use "
                       "`holdfast run --worker --until-idle`");
    if (!cli_given(cli, "run") && (cli_given(cli, "jobs") || cli_given(cli, "queue")))
        return hf_fail(&cli->err, HF_EINVAL, "--run", "--jobs and --queue need --run");
    if (watch->interval_ms < REST_MS)
        return hf_fail(&cli->err, HF_EINVAL, "--interval",
                       "--interval must be at least %dms", REST_MS);
    return 0;
}

int cmd_monitor(struct cli *cli)
{
    struct watch watch = {
        .cli = cli,
        .plan = { .size = sizeof(watch.plan),
                  .owner = cli_text(cli, "owner"),
                  .incarnation = cli_text(cli, "incarnation"),
                  .fresh_ms = cli_number(cli, "fresh", 0),
                  .pointer = cli_text(cli, "pointer") },
        .worker = { .cli = cli },
        .interval_ms = cli_number(cli, "interval", INTERVAL_MS),
        .stop = { .fd = -1 },
    };
    int rc = check_options(&watch);
    if (!cli_given(cli, "once"))
        watch.plan.witness = &watch.witness;
    if (rc == 0)
        rc = cli_stop_take(cli, &watch.stop);
    if (rc == 0)
        rc = cli_open_store(cli);
    if (rc == 0)
        rc = cli_reaper_new(cli, &watch.plan.reaper);
    watch.plan.orphan = log_orphan;
    watch.plan.user = &watch;
    if (rc == 0)
        rc = loop(&watch);
    monitor_worker_end(&watch.worker);
    hf_reaper_free(watch.plan.reaper);
    cli_stop_end(&watch.stop);
    if (rc == 0 && watch.stop.by)
        log_line(&watch, "ended", watch.stop.by, NULL);
    if (rc == 0 && cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "passes", watch.passes);
        hf_json_put_i64(&cli->writer, "changed", watch.changed);
        hf_json_put_i64(&cli->writer, "scheduled", watch.made);
        hf_json_put_i64(&cli->writer, "renewed", watch.renewed);
        cli_ok_end(cli);
    }
    return rc;
}
