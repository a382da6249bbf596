/* holdfast call: operations with their inputs as JSON; one, or (--lines) one per line of standard
 * input, each answered by a line. Every answer is the envelope that --json prints. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- one call ------------------------------------------------------------------------ */

static int open_call(struct op_call *call)
{
    struct cli *cli = (struct cli *)(void *)((char *)call - offsetof(struct cli, call));
    int rc = cli_open_store(cli);
    call->action = cli->action;
    return rc;
}

/* The answer, or the failure, is in the buffer when it returns. */
static int perform(struct cli *cli, struct op_json_out *json, const struct op_line *line)
{
    struct op_call *call = &cli->call;
    const struct cli_caller who = { line->tenant, line->actor, line->operation_id,
                                    line->correlation_id };
    int rc = op_line_begin(call, line);
    if (rc == 0)
        cli->op = call->op;
    if (rc == 0)
        rc = cli_set_caller(cli, &who, op_owner(call), &call->who);
    if (rc == 0 && !call->store && call->op->flags & OP_STORE)
        call->absent = cli_store_absent(cli);
    if (rc == 0)
        rc = op_perform(call);
    if (rc)
        op_json_fail(json, rc);
    else
        op_json_end(json);
    return rc ? rc : call->verdict;
}

/* What the command line says for every call. */
static struct op_line defaults(const struct cli *cli)
{
    const struct cli_caller who = cli_caller_given(cli);
    return (struct op_line){ .tenant = who.tenant,
                             .actor = who.actor,
                             .operation_id = who.operation_id,
                             .correlation_id = who.correlation_id };
}

static void begin(struct cli *cli, struct op_json_out *json)
{
    cli->action = NULL;
    cli->err = (struct hf_err){ 0 };
    cli->call = (struct op_call){ .arena = &cli->arena,
                                  .store = cli->store,
                                  .err = &cli->err,
                                  .out = &json->out,
                                  .open = open_call,
                                  .locks = cli_locks };
    op_json_init(json, &cli->call, &cli->out);
}

/* ---- lines --------------------------------------------------------------------------- */

#define READ_BYTES 65536
#define KEEP_BYTES ((size_t)1 << 20)

struct call_lines {
    struct cli *cli;
    const struct op *call; /* the row of `call` itself */
    struct hf_buf text;    /* what was read and not served */
    size_t at;             /* of the next line in it */
    bool ended;
    bool skipping; /* the rest of a line that is too long */
};

static int serve(struct call_lines *lines, struct hf_span text)
{
    struct cli *cli = lines->cli;
    struct op_json_out json;
    struct op_line line = defaults(cli);
    begin(cli, &json);
    int rc = op_line_read(&cli->call, text, &line);
    if (line.id)
        json.id = (struct hf_span){ line.id, strlen(line.id) };
    if (rc)
        op_json_fail(&json, rc);
    else
        rc = perform(cli, &json, &line); /* said in the answer */
    cli->op = lines->call;
    hf_arena_trim(&cli->arena, KEEP_BYTES);
    return hf_buf_state(&cli->out) ? hf_fail_plain(&cli->err, hf_buf_state(&cli->out))
                                   : 0;
}

static int read_more(struct call_lines *lines)
{
    struct hf_buf *text = &lines->text;
    size_t left = text->len - lines->at;
    if (lines->at) {
        memmove(text->at, text->at + lines->at, left);
        text->len = left;
        lines->at = 0;
    }
    if (left == 0 && text->room > KEEP_BYTES)
        hf_buf_fini(text);
    char *room = hf_buf_room(text, READ_BYTES);
    if (!room)
        return hf_fail_plain(&lines->cli->err, hf_buf_state(text));
    ssize_t got = read(STDIN_FILENO, room, READ_BYTES);
    if (got < 0 && errno != EINTR)
        return hf_fail(&lines->cli->err, HF_EINVAL, NULL,
                       "cannot read standard input: %s", strerror(errno));
    lines->ended = got == 0;
    hf_buf_grew(text, got > 0 ? (size_t)got : 0);
    return 0;
}

static int too_long(struct call_lines *lines)
{
    struct op_json_out json;
    begin(lines->cli, &json);
    op_json_fail(&json, hf_fail(&lines->cli->err, HF_ETOOBIG, "line",
                                "line must be at most %lld bytes",
                                (long long)HF_MAX_CALL_LINE_BYTES));
    return 0;
}

/* Serves the lines that were read, and drops what belongs to one that is too long. */
static int serve_read(struct call_lines *lines)
{
    struct hf_buf *text = &lines->text;
    int rc = 0;
    while (rc == 0 && lines->at < text->len) {
        const char *at = hf_buf_str(text) + lines->at;
        size_t left = text->len - lines->at;
        const char *end = memchr(at, '\n', left);
        size_t len = end ? (size_t)(end - at) : left;
        if (!end && !lines->ended && len <= (size_t)HF_MAX_CALL_LINE_BYTES)
            return 0; /* the rest of it is to come */
        if (!lines->skipping)
            rc = len > (size_t)HF_MAX_CALL_LINE_BYTES
                     ? too_long(lines)
                     : serve(lines, (struct hf_span){ at, len });
        lines->skipping = !end && !lines->ended;
        lines->at += end ? len + 1 : len;
        if (rc == 0)
            rc = cli_flush(lines->cli); /* the buffer holds one answer at a time */
    }
    return rc;
}

static int call_lines(struct cli *cli)
{
    struct call_lines lines = { .cli = cli, .call = cli->op };
    hf_buf_init(&lines.text, hf_alloc_system(),
                (size_t)HF_MAX_CALL_LINE_BYTES + 2 * READ_BYTES);
    int rc = 0;
    while (rc == 0 && !lines.ended) {
        rc = read_more(&lines);
        if (rc == 0)
            rc = serve_read(&lines);
    }
    hf_buf_fini(&lines.text);
    return rc;
}

/* ---- the command --------------------------------------------------------------------- */

int check_call(struct cli *cli)
{
    bool lines = cli_given(cli, "lines"), list = cli_given(cli, "list");
    if (lines + list + cli_given(cli, "op") != 1)
        return hf_fail(
            &cli->err, HF_EINVAL, NULL,
            "name an operation, or use --lines or --list (holdfast call --help)");
    if (lines && cli_given(cli, "operation-id"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--operation-id belongs to one call: with --lines write "
                       "operation_id into the line");
    return 0;
}

int cmd_call(struct cli *cli)
{
    struct op_json_out json;
    struct op_line line = defaults(cli);
    line.op = cli_text(cli, "op");
    line.in = cli_text(cli, "in");
    if (cli_given(cli, "lines"))
        return call_lines(cli);
    if (cli_given(cli, "list")) {
        cli_ok_begin(cli);
        op_put_list(&cli->writer);
        cli_ok_end(cli);
        return 0;
    }
    begin(cli, &json);
    int rc = perform(cli, &json, &line);
    cli->reported = rc != 0; /* in the envelope */
    cli->exit_code = cli->call.exit_code;
    return rc;
}
