/* holdfast work reconcile: the pointer file in line with the ledger, and the ledger in line
 * with what a spool or an export holds. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/ingress.h>

#include "cli/cmd/upkeep.h"
#include "op/shapes/ledger.h"

#define PROBLEMS_SHOWN 100

/* ---- the pointer --------------------------------------------------------------------- */

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
        report->row_missing ? "; it named a unit that is not in the ledger" : "",
        report->older_incarnation
            ? "; it named a unit of an older incarnation, which its lease or a "
              "proof of death ends (see work show)"
            : "");
}

/* ---- lines that made a problem --------------------------------------------------------- */

struct arrival {
    struct cli *cli;
    struct hf_buf problems; /* as JSON items, or as lines for people */
    struct hf_json json;
    int64_t shown;
    int64_t torn;
    int worst; /* code of the first problem that is no conflict, otherwise of a conflict */
    char first[200];
    struct hf_spool_report report;
};

static void json_problem(struct arrival *arrival, const struct hf_spool_problem *problem)
{
    struct hf_json *json = &arrival->json;
    hf_json_object(json);
    hf_json_put_i64(json, "line", problem->line);
    hf_json_put_str(json, "code", hf_err_wire(problem->code));
    hf_json_put_str(json, "field", *problem->field ? problem->field : NULL);
    hf_json_put_str(json, "message", problem->message);
    hf_json_put_bool(json, "torn", problem->torn);
    hf_json_put_str(json, "source_system", problem->source_system);
    hf_json_put_str(json, "source_id", problem->source_id);
    hf_json_end(json);
}

static void text_problem(struct arrival *arrival, const char *text)
{
    hf_buf_text(&arrival->problems, text);
    hf_buf_char(&arrival->problems, '\n');
}

static void found(void *user, const struct hf_spool_problem *problem)
{
    struct arrival *arrival = user;
    char text[320];
    bool named = !*problem->field || strstr(problem->message, problem->field);
    (void)snprintf(text, sizeof(text), "line %lld: %s%s%s%s", (long long)problem->line,
                   problem->torn ? "torn: " : "", named ? "" : problem->field,
                   named ? "" : ": ", problem->message);
    arrival->torn += problem->torn;
    if (!*arrival->first)
        (void)snprintf(arrival->first, sizeof(arrival->first), "%.199s", text);
    if (!arrival->worst || arrival->worst == HF_ECONFLICT)
        arrival->worst = problem->code;
    if (arrival->shown++ >= PROBLEMS_SHOWN)
        return; /* all are counted */
    if (arrival->cli->json)
        json_problem(arrival, problem);
    else
        text_problem(arrival, text);
}

static int arrive(struct arrival *arrival, const char *path)
{
    struct cli *cli = arrival->cli;
    hf_buf_init(&arrival->problems, hf_alloc_system(), 1u << 20);
    hf_json_begin(&arrival->json, &arrival->problems);
    if (cli->json)
        hf_json_array(&arrival->json);
    int rc = hf_spool_reconcile(cli->store, &cli->who, path, found, arrival,
                                &arrival->report, &cli->err);
    if (rc)
        return rc;
    if (cli->json)
        hf_json_end(&arrival->json);
    return hf_buf_state(&arrival->problems)
               ? hf_fail_plain(&cli->err, hf_buf_state(&arrival->problems))
               : 0;
}

static void json_arrival(struct hf_json *json, const struct arrival *arrival)
{
    const struct hf_spool_report *report = &arrival->report;
    hf_json_object(json);
    hf_json_put_i64(json, "lines", report->lines);
    hf_json_put_i64(json, "created", report->created);
    hf_json_put_i64(json, "existing", report->existing);
    hf_json_put_i64(json, "resumed", report->resumed);
    hf_json_put_i64(json, "conflicting", report->conflicting);
    hf_json_put_i64(json, "malformed", report->malformed);
    hf_json_put_i64(json, "torn", arrival->torn);
    hf_json_put_i64(json, "refused", report->refused);
    hf_json_put_bool(json, "spool", report->spool);
    hf_json_put_bool(json, "trimmed", report->trimmed);
    hf_json_put_i64(json, "left", report->left);
    hf_json_put_raw(json, "problems", hf_buf_str(&arrival->problems));
    hf_json_end(json);
}

static void text_arrival(struct cli *cli, const struct arrival *arrival)
{
    const struct hf_spool_report *report = &arrival->report;
    cli_put(cli, hf_buf_str(&arrival->problems));
    if (arrival->shown > PROBLEMS_SHOWN)
        cli_putf(cli, "… and %lld more\n", (long long)arrival->shown - PROBLEMS_SHOWN);
    cli_putf(cli,
             "read %lld: %lld created, %lld already there, %lld conflicting, %lld "
             "malformed, %lld refused\n",
             (long long)report->lines, (long long)report->created,
             (long long)report->existing, (long long)report->conflicting,
             (long long)report->malformed, (long long)report->refused);
    if (report->resumed)
        cli_putf(cli, "%lld resumed units that waited for them\n",
                 (long long)report->resumed);
    if (report->spool && !report->trimmed)
        cli_put(cli, "the spool was not changed: another process trimmed it, or its path "
                     "is a link\n");
    else if (report->left)
        cli_putf(cli, "%lld stay in the spool\n", (long long)report->left);
}

/* ---- the answer ------------------------------------------------------------------------ */

struct reconciled {
    const struct hf_sweep_report *sweep;
    const struct hf_pointer_report *pointer; /* NULL: none was asked for */
    const struct arrival *arrival;           /* likewise */
};

static void json_reconciled(struct cli *cli, const struct reconciled *all, int code)
{
    struct hf_json *json = &cli->writer;
    hf_json_begin(json, &cli->out);
    hf_json_object(json);
    hf_json_put_bool(json, "ok", code == 0);
    if (code)
        cli_put_error(cli, code);
    if (all->arrival) {
        hf_json_key(json, "from");
        json_arrival(json, all->arrival);
    }
    hf_json_key(json, "sweep");
    hf_json_object(json);
    cli_json_counts(json, &hf_sweep_shape, all->sweep);
    hf_json_end(json);
    hf_json_key(json, "pointer");
    if (all->pointer)
        cli_json_pointer(json, all->pointer);
    else
        hf_json_null(json);
    cli_ok_end(cli);
    cli->reported = code != 0;
}

static void text_reconciled(struct cli *cli, const struct reconciled *all)
{
    char text[1024];
    if (cli->quiet)
        return;
    if (all->arrival)
        text_arrival(cli, all->arrival);
    cli_text_sweep(all->sweep, text, sizeof(text));
    cli_putf(cli, "swept: %s\n", *text ? text : "nothing to do");
    if (all->pointer) {
        cli_text_pointer(all->pointer, text, sizeof(text));
        cli_putf(cli, "%s\n", text);
    }
}

/* What was brought in is kept, and the answer shows it, also where lines were not. */
static int print_reconciled(struct cli *cli, const struct reconciled *all)
{
    int code = all->arrival ? all->arrival->worst : 0;
    if (code) {
        cli->action = "correct the lines and run the command again: stored requests are "
                      "not stored twice";
        (void)hf_fail(&cli->err, code, "--from",
                      "%lld of %lld lines made no unit; %.180s",
                      (long long)all->arrival->shown,
                      (long long)all->arrival->report.lines, all->arrival->first);
    }
    if (cli->json) {
        json_reconciled(cli, all, code);
        return code;
    }
    text_reconciled(cli, all);
    int rc = code ? cli_flush(cli) : 0;
    return rc ? rc : code;
}

int check_reconcile(struct cli *cli)
{
    bool whose = cli_given(cli, "owner") || cli_given(cli, "incarnation");
    if (whose && !cli_given(cli, "pointer"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--owner and --incarnation need --pointer");
    const char *from = cli_text(cli, "from");
    if (from && access(from, R_OK) != 0) {
        cli->action = "check the path";
        return hf_fail(&cli->err, errno == ENOENT ? HF_ENOTFOUND : HF_EINVAL, "--from",
                       "--from: cannot read %.120s: %s", from, strerror(errno));
    }
    return 0;
}

int cmd_work_reconcile(struct cli *cli)
{
    struct hf_sweep_report sweep;
    struct hf_pointer_report report;
    struct arrival arrival = { .cli = cli };
    const char *from = cli_text(cli, "from");
    struct hf_pointer_plan plan = { .size = sizeof(plan),
                                    .path = cli_text(cli, "pointer"),
                                    .owner = cli_text(cli, "owner"),
                                    .incarnation = cli_text(cli, "incarnation") };
    int rc = from ? arrive(&arrival, from) : 0;
    if (rc == 0)
        rc = hf_sweep_all(cli->store, &cli->who, &sweep, &cli->err);
    if (rc == 0 && plan.path)
        rc = hf_pointer_reconcile(cli->store, &cli->who, &plan, &report, &cli->err);
    if (rc == 0)
        rc = print_reconciled(cli,
                              &(struct reconciled){ &sweep, plan.path ? &report : NULL,
                                                    from ? &arrival : NULL });
    hf_buf_fini(&arrival.problems);
    return rc;
}
