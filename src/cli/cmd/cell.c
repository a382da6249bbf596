/* holdfast cell run: one code cell from the shell, with a scripted host. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/exec.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/cmd/cell_script.h"

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text ? text : "", text ? strlen(text) : 0 };
}

/* "steps=1000" and so on into the limits. */
static int take_limit(struct cli *cli, const char *text, struct hf_cell_limits *limits)
{
    const struct {
        const char *name;
        int64_t *value;
    } names[] = { { "steps", &limits->steps },
                  { "active_ms", &limits->active_ms },
                  { "memory_bytes", &limits->memory_bytes },
                  { "ops", &limits->ops },
                  { "output_bytes", &limits->output_bytes } };
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (len == strlen(names[i].name) && memcmp(text, names[i].name, len) == 0)
            return hf_parse_i64(equals + 1, 1, INT64_MAX, "limit", names[i].value,
                                &cli->err);
    return hf_fail(
        &cli->err, HF_EINVAL, "limit",
        "--limit must be steps=N, active_ms=N, memory_bytes=N, ops=N or output_bytes=N");
}

/* The cell, ready to be polled. */
static int start(struct cli *cli, const struct cell_script *script,
                 struct hf_cell **ret_cell)
{
    struct hf_cell_start start = { .size = sizeof(start), .id = "cell" };
    struct hf_bytes bindings = { 0 };
    size_t limits = 0;
    const char *const *texts = cli_texts(cli, "limit", &limits);
    const char *json = cli_text(cli, "bindings");
    start.clock = hf_clock_system();
    start.given = span(cli_text(cli, "given"));
    start.given_refs = span(cli_text(cli, "given-refs"));
    int rc = 0;
    for (size_t i = 0; i < limits && rc == 0; i++)
        rc = take_limit(cli, texts[i], &start.limits);
    if (rc == 0)
        rc = cli_read_file(cli, cli_text(cli, "file"), (size_t)HF_MAX_CELL_BYTES,
                           &start.code);
    if (rc == 0)
        rc = cell_script_tools(cli, script, &start.tools, &start.tool_count);
    /* What this command printed is taken as it is; other JSON is made into bindings. */
    bool canonical = json && hf_bindings_check(span(json), NULL) == 0;
    if (rc == 0 && json && !canonical)
        rc = hf_bindings_import(NULL, span(json), &bindings, &cli->err);
    if (rc == 0) {
        start.bindings = bindings.at ? (struct hf_span){ bindings.at, bindings.len }
                                     : span(json);
        rc = hf_cell_new(hf_engine_lua(), &start, ret_cell, &cli->err);
    }
    hf_bytes_free(&bindings);
    return rc;
}

static void put_result(struct cli *cli, const struct hf_tool_result *result)
{
    bool ok = result->outcome == HF_TOOL_SUCCESS;
    if (cli->json && ok) {
        hf_json_put_raw(&cli->writer, "result", result->value.at);
    } else if (cli->json) {
        hf_json_put_str(&cli->writer, "error", result->failure->code);
    } else {
        cli_colour(cli, ok ? CLI_GREEN : CLI_RED);
        cli_put(cli, "    -> ");
        cli_put_clean(cli, ok ? result->value.at : result->failure->code);
        cli_colour(cli, CLI_PLAIN);
        cli_put(cli, "\n");
    }
}

/* One operation begins; in JSON its object stays open. */
static void put_op(struct cli *cli, const struct hf_op *op)
{
    const char *args = op->args.at;
    const char *text = hf_arena_copy(&cli->arena, args, op->args.len);
    if (!cli->json) {
        cli_putf(cli, "%llu  ", (unsigned long long)op->ordinal);
        cli_colour(cli, CLI_BOLD);
        cli_putf(cli, "%s", hf_op_name(op->kind));
        cli_colour(cli, CLI_PLAIN);
        cli_putf(cli, "%s%s ", op->name ? " " : "", op->name ? op->name : "");
        cli_put_clean(cli, text ? text : "");
        cli_put(cli, "\n");
        return;
    }
    hf_json_object(&cli->writer);
    hf_json_put_str(&cli->writer, "id", op->id);
    hf_json_put_str(&cli->writer, "kind", hf_op_name(op->kind));
    hf_json_opt_str(&cli->writer, "name", op->name);
    hf_json_key(&cli->writer, "args");
    if (op->kind == HF_OP_PRINT)
        hf_json_strn(&cli->writer, args, op->args.len);
    else
        hf_json_raw(&cli->writer, text);
}

static int answer_calls(struct cli *cli, const struct cell_script *script,
                        struct hf_cell *cell, const struct hf_op *op)
{
    bool batch = op->kind == HF_OP_CALL_BATCH;
    int rc = 0;
    if (cli->json && batch) {
        hf_json_key(&cli->writer, "calls");
        hf_json_array(&cli->writer);
    }
    size_t count = op->call_count;
    uint64_t ordinal = op->ordinal;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct hf_tool_result result;
        rc = cell_script_call(cli, script, op->kind, &op->calls[i], &result);
        if (rc)
            break;
        if (cli->json && batch) {
            hf_json_object(&cli->writer);
            hf_json_put_str(&cli->writer, "id", op->calls[i].id);
        }
        put_result(cli, &result);
        if (cli->json && batch)
            hf_json_end(&cli->writer);
        rc = hf_cell_results(cell, ordinal, &result, 1, &cli->err);
    }
    if (rc == 0 && cli->json && batch)
        hf_json_end(&cli->writer);
    return rc;
}

static int answer(struct cli *cli, const struct cell_script *script, struct hf_cell *cell,
                  const struct hf_op *op)
{
    const char *json = NULL;
    int rc = 0;
    put_op(cli, op);
    if (op->call_count > 0) {
        rc = answer_calls(cli, script, cell, op);
    } else if (op->kind != HF_OP_PRINT) {
        rc = cell_script_value(cli, script, op, &json);
        struct hf_tool_result shown = { .value = span(json) };
        if (rc == 0 && op->kind != HF_OP_SLEEP)
            put_result(cli, &shown);
        if (rc == 0)
            rc = hf_cell_value(cell, op->ordinal, span(json), &cli->err);
    }
    if (rc == 0 && cli->json)
        hf_json_end(&cli->writer);
    return rc;
}

static int run(struct cli *cli, const struct cell_script *script, struct hf_cell *cell)
{
    const struct hf_op *op = NULL;
    int rc = hf_cell_poll(cell, &op, &cli->err);
    while (rc == 0 && op) {
        rc = answer(cli, script, cell, op);
        if (rc == 0)
            rc = hf_cell_poll(cell, &op, &cli->err);
    }
    return rc;
}

static void put_cost(struct cli *cli, const struct hf_cell *cell)
{
    struct hf_cell_cost cost;
    hf_cell_cost(cell, &cost);
    if (!cli->json) {
        cli_putf(cli,
                 "cost  %lld steps, %lld ms, %lld bytes of memory, %lld operations, "
                 "%lld bytes of output\n",
                 (long long)cost.steps, (long long)cost.active_ms,
                 (long long)cost.memory_bytes, (long long)cost.ops,
                 (long long)cost.output_bytes);
        return;
    }
    hf_json_key(&cli->writer, "cost");
    hf_json_object(&cli->writer);
    hf_json_put_i64(&cli->writer, "steps", cost.steps);
    hf_json_put_i64(&cli->writer, "active_ms", cost.active_ms);
    hf_json_put_i64(&cli->writer, "memory_bytes", cost.memory_bytes);
    hf_json_put_i64(&cli->writer, "ops", cost.ops);
    hf_json_put_i64(&cli->writer, "output_bytes", cost.output_bytes);
    hf_json_end(&cli->writer);
}

static void put_end_json(struct cli *cli, const struct hf_cell *cell)
{
    const struct hf_exec_result *result = hf_cell_result(cell);
    struct hf_json *json = &cli->writer;
    int64_t line = 0;
    hf_json_put_str(json, "end", hf_cell_end_name(hf_cell_end(cell, &line)));
    hf_json_opt_i64(json, "line", line);
    if (result->error.len > 0)
        hf_json_put_str(json, "message", result->error.at);
    if (result->finish.len > 0)
        hf_json_put_raw(json, "finish", result->finish.at);
    hf_json_key(json, "notes");
    hf_json_array(json);
    for (size_t i = 0; hf_cell_note(cell, i); i++)
        hf_json_str(json, hf_cell_note(cell, i));
    hf_json_end(json);
    hf_json_put_raw(json, "bindings", hf_cell_bindings(cell).at);
    hf_json_put_raw(json, "delta", result->bindings_delta.at);
    hf_json_put_str(json, "bindings_before", result->bindings_before);
    hf_json_put_str(json, "bindings_after", result->bindings_after);
}

static void put_end(struct cli *cli, const struct hf_cell *cell)
{
    const struct hf_exec_result *result = hf_cell_result(cell);
    enum hf_cell_end end = hf_cell_end(cell, NULL);
    bool well = end == HF_CELL_DONE || end == HF_CELL_FINISHED;
    cli_colour(cli, well ? CLI_GREEN : CLI_RED);
    cli_put(cli, hf_cell_end_name(end));
    cli_colour(cli, CLI_PLAIN);
    if (result->finish.len > 0) {
        cli_put(cli, "  ");
        cli_put_clean(cli, result->finish.at);
    }
    cli_put(cli, "\n");
    if (result->error.len > 0) {
        cli_put_clean(cli, result->error.at);
        cli_put(cli, "\n");
    }
    for (size_t i = 0; hf_cell_note(cell, i); i++) {
        cli_put(cli, "note  ");
        cli_put_clean(cli, hf_cell_note(cell, i));
        cli_put(cli, "\n");
    }
    cli_put(cli, "delta  ");
    cli_put_clean(cli, result->bindings_delta.at);
    cli_put(cli, "\n");
    if (cli_given(cli, "show-bindings")) {
        cli_put(cli, "bindings  ");
        cli_put_clean(cli, hf_cell_bindings(cell).at);
        cli_put(cli, "\n");
    }
}

/* The code for the program: 0 for a cell that ended well. */
static int judge(struct cli *cli, const struct hf_cell *cell)
{
    enum hf_cell_end end = hf_cell_end(cell, NULL);
    if (end == HF_CELL_DONE || end == HF_CELL_FINISHED)
        return 0;
    return hf_fail(&cli->err, HF_ECELL, NULL, "%s: %s", hf_cell_end_name(end),
                   (const char *)hf_cell_result(cell)->error.at);
}

static void put_envelope(struct cli *cli, const struct hf_cell *cell, const char *ops,
                         int code)
{
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_object(&cli->writer);
    hf_json_put_bool(&cli->writer, "ok", code == 0);
    if (code)
        cli_put_error(cli, code);
    hf_json_put_raw(&cli->writer, "operations", ops);
    put_end_json(cli, cell);
    put_cost(cli, cell);
    cli_ok_end(cli);
}

/* Runs the cell and prints; operations go to a buffer of their own, since what they came to
 * is before them. */
static int show(struct cli *cli, const struct cell_script *script, struct hf_cell *cell)
{
    struct hf_buf ops;
    hf_buf_init(&ops, hf_alloc_system(), (size_t)HF_MAX_TURN_SAVE_BYTES);
    if (cli->json) {
        hf_json_begin(&cli->writer, &ops);
        hf_json_array(&cli->writer);
    }
    int rc = run(cli, script, cell);
    if (rc == 0 && cli->json)
        hf_json_end(&cli->writer);
    if (rc == 0 && hf_buf_state(&ops))
        rc = hf_fail_plain(&cli->err, hf_buf_state(&ops));
    if (rc == 0) {
        rc = judge(cli, cell);
        cli->reported = rc != 0;
        if (cli->json) {
            put_envelope(cli, cell, hf_buf_str(&ops), rc);
        } else {
            put_end(cli, cell);
            put_cost(cli, cell);
        }
    }
    hf_buf_fini(&ops);
    return rc;
}

int cmd_cell_run(struct cli *cli)
{
    struct cell_script *script = NULL;
    struct hf_cell *cell = NULL;
    int rc = cell_script_new(cli, cli_text(cli, "tools"), &script);
    if (rc == 0)
        rc = start(cli, script, &cell);
    if (rc == 0)
        rc = show(cli, script, cell);
    hf_cell_free(cell);
    cell_script_free(script);
    return rc;
}
