/* holdfast work sweep, prune. */
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cmd/upkeep.h"

#define PRUNE_CHUNK 1000
#define ORPHAN_MS 20
#define ORPHAN_LOOKS (2 * HF_MONITOR_KILL_MS / ORPHAN_MS)

/* ---- sweep ------------------------------------------------------------------------- */

void cli_json_sweep(struct hf_json *json, const struct hf_sweep_report *report)
{
    hf_json_put_i64(json, "looked_at", report->looked_at);
    hf_json_put_i64(json, "requeued", report->requeued);
    hf_json_put_i64(json, "timed_out", report->timed_out);
    hf_json_put_i64(json, "failed", report->failed);
    hf_json_put_i64(json, "abandoned", report->abandoned);
    hf_json_put_i64(json, "promoted", report->promoted);
    hf_json_put_i64(json, "escalated", report->escalated);
    hf_json_put_i64(json, "pushed", report->pushed);
    hf_json_put_i64(json, "silent", report->silent);
    hf_json_put_i64(json, "proven_dead", report->proven_dead);
    hf_json_put_i64(json, "orphaned", report->orphaned);
    hf_json_put_i64(json, "held", report->held);
}

void cli_text_sweep(const struct hf_sweep_report *report, char *out, size_t room)
{
    const struct {
        int64_t count;
        const char *what;
    } parts[] = {
        { report->requeued, "requeued" },
        { report->timed_out, "timed out" },
        { report->failed, "failed" },
        { report->abandoned, "abandoned" },
        { report->held, "held as poison" },
        { report->promoted, "promoted" },
        { report->escalated, "escalated" },
        { report->silent, "left silent" },
        { report->proven_dead, "holders proven dead" },
        { report->orphaned, "left until their processes are gone" },
    };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].count == 0 || used + 64 > room)
            continue;
        int len = snprintf(out + used, room - used, "%s%lld %s", used ? ", " : "",
                           (long long)parts[i].count, parts[i].what);
        used += len > 0 ? (size_t)len : 0;
    }
}

/* Orphans go first: their units can be swept only when they have gone. What they wrote is
 * stored. */
static int end_orphans(struct cli *cli)
{
    struct hf_reaper *reaper = NULL;
    int64_t ending = 0;
    int rc = cli_reaper_new(cli, &reaper);
    if (rc || !reaper)
        return rc;
    for (int i = 0; rc == 0 && i < ORPHAN_LOOKS && (i == 0 || ending); i++) {
        if (ending)
            (void)poll(NULL, 0, ORPHAN_MS);
        rc = hf_reaper_pass(reaper, &cli->who, HF_MONITOR_KILL_MS, NULL, NULL, &ending,
                            &cli->err);
    }
    hf_reaper_free(reaper);
    return rc;
}

int cmd_work_sweep(struct cli *cli)
{
    struct hf_sweep_report report;
    char text[512];
    size_t limit = (size_t)cli_number(cli, "limit", 0);
    int rc = end_orphans(cli);
    if (rc)
        return rc;
    rc = limit ? hf_work_sweep(cli->store, &cli->who, limit, &report, &cli->err)
               : hf_sweep_all(cli->store, &cli->who, &report, &cli->err);
    if (rc == 0 && report.abandoned)
        rc = end_orphans(cli); /* their last output */
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        cli_json_sweep(&cli->writer, &report);
        hf_json_put_bool(&cli->writer, "more", report.more);
        hf_json_key(&cli->writer, "next_at");
        if (report.next_at)
            hf_json_i64(&cli->writer, report.next_at);
        else
            hf_json_null(&cli->writer);
        cli_ok_end(cli);
        return 0;
    }
    if (cli->quiet)
        return 0;
    cli_text_sweep(&report, text, sizeof(text));
    cli_putf(cli, "looked at %lld: %s%s\n", (long long)report.looked_at,
             *text ? text : "nothing to do", report.more ? "; there is more" : "");
    return 0;
}

/* ---- prune ------------------------------------------------------------------------- */

static void show_progress(const struct cli *cli, int64_t rows)
{
    if (!cli->quiet && !cli->json && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\rpruned %lld", (long long)rows); /* a courtesy */
}

/* Chunk by chunk, so that others can write in between and progress can be shown. */
static int prune(struct cli *cli, int64_t *ret_rows)
{
    hf_ms age = cli_number(cli, "older-than", 0);
    int64_t limit = cli_number(cli, "limit", 0), total = 0, got = 0;
    bool shown = false;
    do {
        int64_t chunk = PRUNE_CHUNK;
        if (limit && limit - total < chunk)
            chunk = limit - total;
        int rc = hf_work_prune(cli->store, &cli->who, age, (size_t)chunk, &got,
                               &cli->err);
        if (rc)
            return rc;
        total += got;
        if (got == chunk) {
            show_progress(cli, total);
            shown = true;
        }
        if (got < chunk)
            break;
    } while (!limit || total < limit);
    if (shown && !cli->quiet && !cli->json && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K"); /* the progress line goes */
    *ret_rows = total;
    return 0;
}

int check_prune(struct cli *cli)
{
    const char *tenant = cli_text(cli, "tenant");
    if (tenant && *tenant)
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "a prune takes what ended of all tenants: it takes no --tenant");
    return 0;
}

int cmd_work_prune(struct cli *cli)
{
    int64_t rows = 0;
    int rc = prune(cli, &rows);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "pruned", rows);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(cli, rows ? "pruned %lld\n" : "nothing to prune\n", (long long)rows);
    }
    return 0;
}
