/* holdfast store copy: copies a store into another file, or into another engine. */
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "base/text.h"

struct move {
    struct cli *cli;
    bool shown;          /* a line of progress */
    struct hf_buf items; /* as JSON, or as lines for people */
    struct hf_json json;
};

static void show_progress(void *user, const struct hf_copy_progress *progress)
{
    struct move *move = user;
    if (move->cli->quiet || move->cli->json || !isatty(STDERR_FILENO))
        return;
    move->shown = true;
    (void)fprintf(stderr, "\r\033[K%s %s: %lld of %lld", /* a courtesy */
                  progress->verifying ? "comparing" : "copying", progress->table,
                  (long long)progress->rows, (long long)progress->of);
}

static void add_table(void *user, const struct hf_copied_table *table)
{
    struct move *move = user;
    char line[200];
    if (move->cli->json) {
        hf_json_object(&move->json);
        hf_json_put_str(&move->json, "table", table->name);
        hf_json_put_i64(&move->json, "rows", table->rows);
        hf_json_put_str(&move->json, "sha256", table->sha256);
        hf_json_end(&move->json);
    } else if (table->rows) {
        (void)snprintf(line, sizeof(line), "%-20s %10lld rows equal  %.16s\n",
                       table->name, (long long)table->rows, table->sha256);
        hf_buf_text(&move->items, line);
    }
}

static int print_copied(struct move *move, const struct hf_copy_report *report)
{
    struct cli *cli = move->cli;
    if (hf_buf_state(&move->items))
        return hf_fail_plain(&cli->err, hf_buf_state(&move->items));
    if (cli->json) {
        hf_json_end(&move->json);
        cli_ok_begin(cli);
        hf_json_put_raw(&cli->writer, "tables", hf_buf_str(&move->items));
        hf_json_put_i64(&cli->writer, "rows", report->rows);
        hf_json_put_i64(&cli->writer, "incarnation", report->incarnation);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put(cli, hf_buf_str(&move->items));
        cli_putf(cli,
                 "copied %lld rows and compared each; the copy has incarnation %lld\n",
                 (long long)report->rows, (long long)report->incarnation);
    }
    return 0;
}

int cmd_store_copy(struct cli *cli)
{
    struct move move = { .cli = cli };
    struct hf_copy_report report;
    struct hf_copy_options options = { .size = sizeof(options),
                                       .from = cli_text(cli, "from"),
                                       .to = cli_text(cli, "to"),
                                       .user = &move,
                                       .progress = show_progress,
                                       .copied = add_table };
    hf_buf_init(&move.items, hf_alloc_system(), 1u << 20);
    hf_json_begin(&move.json, &move.items);
    if (cli->json)
        hf_json_array(&move.json);
    int rc = hf_store_copy(&options, &report, &cli->err);
    if (move.shown)
        (void)fprintf(stderr, "\r\033[K"); /* the progress line goes */
    if (rc == HF_ECONFLICT)
        cli->action = hf_same(cli->err.field, "to")
                          ? "name a target that is empty or does not exist"
                          : "stop all programs that use either store, remove the target, "
                            "and copy again";
    if (rc == 0)
        rc = print_copied(&move, &report);
    hf_buf_fini(&move.items);
    return rc;
}
