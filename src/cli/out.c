/* The output: built in a buffer, sent with every error noticed.
 *
 * Nothing is printed before a command is sure of its answer, so an invocation prints one
 * envelope or none. What comes from the ledger is shown to people without control
 * characters: a terminal must not obey a reason or a payload. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define OUT_BYTES_MAX (64u << 20)
#define FLUSH_BYTES 65536u

void cli_out_init(struct cli *cli)
{
    hf_buf_init(&cli->out, hf_alloc_system(), OUT_BYTES_MAX);
}

void cli_put(struct cli *cli, const char *text)
{
    hf_buf_text(&cli->out, text);
}

void cli_putf(struct cli *cli, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hf_assert(len >= 0);
    cli_put(cli, text);
}

bool cli_is_harmless(const char *at, size_t len)
{
    unsigned char first = (unsigned char)at[0];
    if (len == 1)
        return first >= 0x20 && first != 0x7f;
    return !(len == 2 && first == 0xc2 && (unsigned char)at[1] < 0xa0);
}

void cli_put_clean(struct cli *cli, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        size_t len = hf_utf8_next(text, left);
        if (len && cli_is_harmless(text, len))
            hf_buf_bytes(&cli->out, text, len);
        else
            hf_buf_char(&cli->out, *text == '\n' || *text == '\t' ? ' ' : '?');
        len = len ? len : 1;
        text += len;
        left -= len;
    }
}

void cli_ok_begin(struct cli *cli)
{
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_object(&cli->writer);
    hf_json_put_bool(&cli->writer, "ok", true);
}

void cli_ok_end(struct cli *cli)
{
    hf_json_end(&cli->writer);
    hf_buf_char(&cli->out, '\n');
}

/* 0, or an errno; `left` is what was not written. */
static int write_all(int fd, const char *at, size_t *left)
{
    while (*left) {
        ssize_t sent = write(fd, at, *left);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno;
        at += sent;
        *left -= (size_t)sent;
    }
    return 0;
}

int cli_write(int fd, const char *bytes, size_t len)
{
    return write_all(fd, bytes, &len);
}

static int unwritable(struct cli *cli, int errnum)
{
    hf_buf_reset(&cli->out);
    cli->stdout_closed = true;
    return hf_fail(&cli->err, HF_EINTERNAL, NULL,
                   "the answer could not be written to standard output: %s; the "
                   "operation itself may have been done",
                   strerror(errnum));
}

int cli_flush(struct cli *cli)
{
    if (hf_buf_state(&cli->out))
        return hf_fail_plain(&cli->err, hf_buf_state(&cli->out));
    size_t left = cli->out.len;
    if (left && cli->stdout_closed)
        return unwritable(cli, EBADF);
    int errnum = write_all(STDOUT_FILENO, hf_buf_str(&cli->out), &left);
    cli->wrote |= left < cli->out.len;
    if (errnum)
        return unwritable(cli, errnum);
    hf_buf_reset(&cli->out);
    return 0;
}

int cli_flush_some(struct cli *cli)
{
    return cli->out.len >= FLUSH_BYTES || hf_buf_state(&cli->out) ? cli_flush(cli) : 0;
}

void cli_put_error(struct cli *cli, int code)
{
    cli->err.code = code;
    op_put_error(&cli->writer, &cli->err, cli->action);
}

static void report_envelope(struct cli *cli, int code)
{
    hf_buf_reset(&cli->out);
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_object(&cli->writer);
    hf_json_put_bool(&cli->writer, "ok", false);
    cli_put_error(cli, code);
    cli_ok_end(cli);
}

int cli_report(struct cli *cli, int code)
{
    char message[OP_MESSAGE];
    bool says = code == HF_EINVAL &&
                !cli->action; /* the message itself says what to do */
    bool envelope = cli->json && !cli->stdout_closed && !cli->wrote;
    if (envelope && !cli->reported)
        report_envelope(cli, code);
    if ((envelope || cli->reported) && cli_flush(cli) == 0)
        return hf_err_exit(code);
    cli->err.code = code;
    /* Nowhere is left to say that stderr failed too; the exit code tells. */
    (void)fprintf(stderr, "holdfast: %s\n", op_message(&cli->err, message));
    if (!says)
        (void)fprintf(stderr, "  what to do: %s\n",
                      cli->action ? cli->action : hf_err_action(code));
    return hf_err_exit(code);
}

void cli_note(const struct cli *cli, const char *format, ...)
{
    char text[1024];
    va_list args;
    if (cli->quiet)
        return;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hf_assert(len >= 0);
    (void)fprintf(stderr, "holdfast: %s\n", text); /* a remark; none depends on it */
}
