/* holdfast work sweep, prune, reconcile. */
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/upkeep.h"

#define PRUNE_CHUNK 1000

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
}

void cli_text_sweep(const struct hf_sweep_report *report, char *out, size_t room)
{
    const struct {
        int64_t count;
        const char *what;
    } parts[] = {
        { report->requeued, "requeued" },  { report->timed_out, "timed out" },
        { report->failed, "failed" },      { report->abandoned, "abandoned" },
        { report->promoted, "promoted" },  { report->escalated, "escalated" },
        { report->silent, "left silent" }, { report->proven_dead, "holders proven dead" },
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

int cmd_work_sweep(struct cli *cli)
{
    struct hf_sweep_report report;
    char text[512];
    size_t limit = (size_t)cli_number(cli, "limit", 0);
    int rc = limit ? hf_work_sweep(cli->store, &cli->who, limit, &report, &cli->err)
                   : hf_sweep_all(cli->store, &cli->who, &report, &cli->err);
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

/* ---- reconcile --------------------------------------------------------------------- */

void cli_json_pointer(struct hf_json *json, const struct hf_pointer_report *report)
{
    hf_json_object(json);
    hf_json_put_str(json, "action", hf_pointer_word(report->action));
    hf_json_put_str(json, "named", *report->named ? report->named : NULL);
    hf_json_put_str(json, "names", *report->names ? report->names : NULL);
    hf_json_put_i64(json, "running", report->running);
    hf_json_put_bool(json, "corrupt", report->corrupt);
    hf_json_put_str(json, "aside", *report->aside ? report->aside : NULL);
    hf_json_put_bool(json, "row_missing", report->row_missing);
    hf_json_put_bool(json, "older_incarnation", report->older_incarnation);
    hf_json_end(json);
}

void cli_text_pointer(const struct hf_pointer_report *report, char *out, size_t room)
{
    const char *unit = *report->names ? report->names : report->named;
    (void)snprintf(
        out, room, "pointer %s%s%s%s%s%s%s", hf_pointer_word(report->action),
        *unit ? " " : "", unit,
        report->corrupt ? "; the old file was corrupt and is now " : "",
        report->corrupt ? report->aside : "",
        report->row_missing ? "; it named a unit that the ledger lacks" : "",
        report->older_incarnation
            ? "; it named a unit of an older incarnation, which its lease or a "
              "proof of death ends (see work show)"
            : "");
}

static void print_reconciled(struct cli *cli, const struct hf_sweep_report *sweep,
                             const struct hf_pointer_report *pointer)
{
    char text[1024];
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "sweep");
        hf_json_object(&cli->writer);
        cli_json_sweep(&cli->writer, sweep);
        hf_json_end(&cli->writer);
        hf_json_key(&cli->writer, "pointer");
        if (pointer)
            cli_json_pointer(&cli->writer, pointer);
        else
            hf_json_null(&cli->writer);
        cli_ok_end(cli);
        return;
    }
    if (cli->quiet)
        return;
    cli_text_sweep(sweep, text, sizeof(text));
    cli_putf(cli, "swept: %s\n", *text ? text : "nothing to do");
    if (pointer) {
        cli_text_pointer(pointer, text, sizeof(text));
        cli_putf(cli, "%s\n", text);
    }
}

int check_reconcile(struct cli *cli)
{
    bool whose = cli_given(cli, "owner") || cli_given(cli, "incarnation");
    if (whose && !cli_given(cli, "pointer"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--owner and --incarnation say whose pointer it is: --pointer is "
                       "missing");
    return 0;
}

int cmd_work_reconcile(struct cli *cli)
{
    struct hf_sweep_report sweep;
    struct hf_pointer_report report;
    struct hf_pointer_plan plan = { .path = cli_text(cli, "pointer"),
                                    .owner = cli_text(cli, "owner"),
                                    .incarnation = cli_text(cli, "incarnation") };
    int rc = hf_sweep_all(cli->store, &cli->who, &sweep, &cli->err);
    if (rc == 0 && plan.path)
        rc = hf_pointer_reconcile(cli->store, &cli->who, &plan, &report, &cli->err);
    if (rc == 0)
        print_reconciled(cli, &sweep, plan.path ? &report : NULL);
    return rc;
}
