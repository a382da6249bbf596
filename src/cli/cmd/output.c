/* holdfast work output: what the command of a unit wrote. */
#include "cli/cli.h"

#include <string.h>

#include <holdfast/process.h>

#include "base/text.h"

/* Text that JSON and terminals can show: bytes that are no UTF-8 become U+FFFD; for
 * terminals control characters too, but for line ends and tabs. */
static void put_shown(struct hf_buf *out, struct hf_span span, bool for_terminal)
{
    const char *at = span.at;
    size_t left = span.len;
    while (left > 0) {
        size_t len = hf_utf8_next(at, left);
        bool fine = !for_terminal || *at == '\n' || *at == '\t' ||
                    cli_is_harmless(at, len);
        if (len > 0 && fine)
            hf_buf_bytes(out, at, len);
        else
            hf_buf_bytes(out, "\xef\xbf\xbd", 3);
        len = len ? len : 1;
        at += len;
        left -= len;
    }
}

static int json_text(struct cli *cli, const char *key, struct hf_span span)
{
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), span.len * 3 + 1);
    put_shown(&text, span, false);
    int rc = hf_buf_state(&text);
    hf_json_key(&cli->writer, key);
    hf_json_strn(&cli->writer, hf_buf_str(&text), text.len);
    hf_buf_fini(&text);
    return rc ? hf_fail_plain(&cli->err, HF_ENOMEM) : 0;
}

int cli_json_output(struct cli *cli, const struct hf_output *output)
{
    int rc = 0;
    hf_json_key(&cli->writer, "output");
    hf_json_object(&cli->writer);
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++) {
        struct hf_output_view view = hf_output_view(output, (enum hf_stream)s);
        hf_json_key(&cli->writer, hf_stream_word((enum hf_stream)s));
        hf_json_object(&cli->writer);
        hf_json_put_i64(&cli->writer, "attempt", view.attempt);
        hf_json_put_i64(&cli->writer, "bytes", view.bytes);
        hf_json_put_i64(&cli->writer, "lost", view.lost);
        rc = json_text(cli, "head", view.head);
        if (rc == 0)
            rc = json_text(cli, "tail", view.tail);
        hf_json_end(&cli->writer);
    }
    hf_json_end(&cli->writer);
    return rc;
}

void cli_put_output(struct cli *cli, const struct hf_output *output)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        struct hf_output_view view = hf_output_view(output, (enum hf_stream)s);
        if (view.bytes == 0)
            continue;
        cli_putf(cli, "--- %s of attempt %lld, %lld bytes\n",
                 hf_stream_word((enum hf_stream)s), (long long)view.attempt,
                 (long long)view.bytes);
        put_shown(&cli->out, view.head, true);
        if (view.lost)
            cli_putf(cli, "\n--- %lld bytes in the middle were not kept\n",
                     (long long)view.lost);
        put_shown(&cli->out, view.tail, true);
    }
}

/* The bytes as they were written. What is missing is said where it does not get between. */
static void put_stream(struct cli *cli, const struct hf_output *output)
{
    bool is_err = strcmp(cli_text(cli, "stream"), hf_stream_word(HF_STDERR)) == 0;
    struct hf_output_view view = hf_output_view(output, is_err ? HF_STDERR : HF_STDOUT);
    hf_buf_bytes(&cli->out, view.head.at, view.head.len);
    hf_buf_bytes(&cli->out, view.tail.at, view.tail.len);
    if (view.lost)
        cli_note(cli, "%lld of %lld bytes were not kept: those after the first %zu",
                 (long long)view.lost, (long long)view.bytes, view.head.len);
}

int cmd_work_output(struct cli *cli)
{
    struct hf_output *output = NULL;
    int rc = hf_output_read(cli->store, cli_text(cli, "id"),
                            cli_number(cli, "attempt", 0), &output, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        rc = cli_json_output(cli, output);
        cli_ok_end(cli);
    } else if (cli_given(cli, "stream")) {
        put_stream(cli, output);
    } else {
        cli_put_output(cli, output);
    }
    hf_output_free(output);
    return rc;
}
