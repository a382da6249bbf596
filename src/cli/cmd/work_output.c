/* holdfast work output --follow: what a command writes, while it writes it. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "op/work.h"

#define LOOK_MS 300

struct following {
    struct cli *cli;
    const char *id;
    const char *stream;             /* NULL: both */
    int64_t attempt;                /* of what was shown */
    int64_t shown[HF_STREAM_COUNT]; /* bytes of it */
};

static int put_bytes(struct following *f, int s, struct hf_span span, int64_t first)
{
    int64_t skip = f->shown[s] - first; /* of the span, which begins at byte `first` */
    if (skip >= (int64_t)span.len)
        return 0;
    if (skip < 0) {
        cli_note(f->cli, "%lld bytes in the middle were not kept", (long long)-skip);
        skip = 0;
    }
    span.at = (const char *)span.at + skip;
    span.len -= (size_t)skip;
    f->shown[s] = first + skip + (int64_t)span.len;
    if (s == HF_STDERR && !f->stream) {
        (void)fwrite(span.at, 1, span.len, stderr); /* as any program's messages */
        return 0;
    }
    hf_buf_bytes(&f->cli->out, span.at, span.len);
    return cli_flush(f->cli);
}

/* What was written since the last look. Another attempt begins from its start. */
static int show_new(struct following *f, const struct hf_output *output)
{
    int rc = 0;
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++) {
        struct hf_output_view view = hf_output_view(output, (enum hf_stream)s);
        if (f->stream && !hf_same(f->stream, hf_stream_word((enum hf_stream)s)))
            continue;
        if (view.attempt > f->attempt) {
            f->attempt = view.attempt;
            memset(f->shown, 0, sizeof(f->shown));
        }
        if (view.attempt < f->attempt)
            continue;
        rc = put_bytes(f, s, view.head, 0);
        if (rc == 0 && view.tail.len)
            rc = put_bytes(f, s, view.tail, view.bytes - (int64_t)view.tail.len);
    }
    return rc;
}

/* The status is read before the output, so that the last look sees all of it. */
static int look(struct following *f, bool *ret_ended)
{
    struct cli *cli = f->cli;
    struct hf_answer *found = NULL;
    struct hf_output *output = NULL;
    int rc = hf_work_get(cli->store, &cli->who, f->id, &found, &cli->err);
    if (rc == 0)
        *ret_ended = hf_status_terminal(
            hf_status_of(hf_answer_at(found, 0)->work.status));
    hf_answer_free(found);
    if (rc == 0)
        rc = op_output(&cli->call, f->id, 0, &output);
    if (rc == 0)
        rc = show_new(f, output);
    hf_output_free(output);
    return rc;
}

int check_output(struct cli *cli)
{
    const struct hf_read_request *in = cli->call.in;
    if (!in->follow)
        return 0;
    if (cli->json || in->attempt)
        return hf_fail(&cli->err, HF_EINVAL, "--follow",
                       "--follow goes with neither --json nor --attempt");
    return cli_stop_take(cli, &cli->stop);
}

int cmd_work_output(struct cli *cli)
{
    const struct hf_read_request *in = cli->call.in;
    struct following f = { .cli = cli, .stream = in->stream };
    bool ended = false;
    if (!in->follow)
        return cli_perform(cli);
    int rc = cli_open_store(cli);
    cli->call.store = cli->store;
    if (rc == 0)
        rc = op_full_id(&cli->call, in->id, &f.id);
    while (rc == 0 && !ended) {
        rc = look(&f, &ended);
        if (rc && hf_err_class(rc) == HF_CLASS_RETRYABLE)
            rc = 0;
        if (!ended && cli_stop_told(&cli->stop, LOOK_MS))
            break;
    }
    cli_stop_end(&cli->stop);
    return rc;
}
