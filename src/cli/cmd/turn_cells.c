/* The cells of a saved turn, for people: source, calls, output, and how each ended. */
#include "cli/cmd/turn_cells.h"

#include <string.h>

#include <holdfast/code.h>

#include "base/json_get.h"

static void put_lines(struct cli *cli, const char *before, const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");
        cli_put(cli, before);
        hf_buf_bytes(&cli->out, text, len);
        cli_put(cli, "\n");
        text += len + (text[len] == '\n');
    }
}

static const char *text_of(const struct json_t *object, const char *key)
{
    return hf_json_as_text(hf_json_member(object, key));
}

/* JSON as it is in the step, cut where it is long. */
static void put_json(struct cli *cli, const char *name, const struct json_t *value)
{
    struct hf_buf text;
    if (!value)
        return;
    hf_buf_init(&text, hf_alloc_system(), 4 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    if (hf_json_canonical(&text, value) == 0)
        cli_putf(cli, "    %s: %.*s%s\n", name, text.len > 400 ? 400 : (int)text.len,
                 hf_buf_str(&text), text.len > 400 ? " …" : "");
    hf_buf_fini(&text);
}

static void put_calls(struct cli *cli, const struct json_t *step)
{
    const struct json_t *calls = hf_json_member(step, "calls");
    for (size_t i = 0; i < hf_json_items(calls); i++) {
        const struct json_t *call = hf_json_item(calls, i);
        const char *code = text_of(call, "code");
        cli_putf(cli, "    op %s: %s: %s%s%s, %lld ms\n", text_of(call, "id"),
                 text_of(call, "tool") ? text_of(call, "tool") : "?",
                 text_of(call, "outcome"), code ? ", " : "", code ? code : "",
                 (long long)hf_json_as_i64(hf_json_member(call, "duration_ms")));
    }
    int64_t omitted = hf_json_as_i64(hf_json_member(step, "calls_omitted"));
    if (omitted > 0)
        cli_putf(cli, "    (%lld earlier calls are not recorded)\n", (long long)omitted);
}

static void put_outputs(struct cli *cli, const struct json_t *step)
{
    const struct json_t *outputs = hf_json_member(step, "output");
    for (size_t i = 0; i < hf_json_items(outputs); i++) {
        const struct json_t *output = hf_json_item(outputs, i);
        cli_putf(cli, "    output %zu%s:\n", i + 1,
                 hf_json_member(output, "truncated") ? " (cut)" : "");
        put_lines(cli, "      ", text_of(output, "text"));
    }
}

static const char *ending(const struct json_t *step)
{
    return hf_json_member(step, "running")   ? "running"
           : hf_json_member(step, "unknown") ? "unknown"
           : hf_json_member(step, "failed")  ? "not run"
           : hf_json_member(step, "error")   ? "error"
           : hf_json_member(step, "final")   ? "finished"
                                             : "done";
}

static void put_step(struct cli *cli, const struct json_t *step)
{
    int64_t number = hf_json_as_i64(hf_json_member(step, "step"));
    const char *after = text_of(step, "after");
    cli_colour(cli, CLI_BOLD);
    if (number > 0)
        cli_putf(cli, "cell %lld: ", (long long)number);
    else
        cli_put(cli, "cell: ");
    cli_put(cli, ending(step));
    cli_colour(cli, CLI_PLAIN);
    cli_put(cli, "\n");
    put_lines(cli, "    | ", text_of(step, "code"));
    put_calls(cli, step);
    put_outputs(cli, step);
    if (text_of(step, "error")) {
        cli_put(cli, "    error:\n");
        put_lines(cli, "      ", text_of(step, "error"));
    }
    put_json(cli, "final", hf_json_member(step, "final"));
    put_json(cli, "bindings changed", hf_json_member(step, "delta"));
    if (after)
        cli_putf(cli, "    bindings: %s\n", after);
}

int cli_turn_cells(struct cli *cli, struct hf_span save)
{
    struct hf_bytes text = { 0 };
    struct json_t *steps = NULL;
    int rc = hf_code_trajectory(NULL, save, &text, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        hf_json_put_raw(&cli->writer, "cells", text.at);
    } else {
        rc = hf_json_parse((struct hf_span){ text.at, text.len },
                           (size_t)HF_MAX_TURN_SAVE_BYTES, "save", &steps, &cli->err);
        for (size_t i = 0; rc == 0 && i < hf_json_items(steps); i++)
            put_step(cli, hf_json_item(steps, i));
        hf_json_free(steps);
    }
    hf_bytes_free(&text);
    return rc;
}
