/* Values that are read from a file or from standard input. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where a value comes from, for messages: "--payload @FILE". */
struct origin {
    const struct hf_input *option;
    const char *path; /* NULL: standard input */
    char name[HF_INPUT_NAME];
};

static int unreadable(struct cli *cli, const struct origin *from, int errnum)
{
    if (!from->path)
        return hf_fail(&cli->err, HF_EINVAL, from->name,
                       "--%s: cannot read standard input: %s", from->name,
                       strerror(errnum));
    return hf_fail(&cli->err, HF_EINVAL, from->name, "--%s: cannot read %.120s: %s",
                   from->name, from->path, strerror(errnum));
}

/* All of a file, up to one byte more than is allowed, so that too much can be told. */
static int read_all(struct cli *cli, const struct origin *from, int fd,
                    struct hf_buf *into)
{
    char block[16384];
    size_t max = (size_t)hf_input_max(from->option);
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return unreadable(cli, from, errno);
        if (got == 0)
            return hf_buf_state(into) ? hf_fail_plain(&cli->err, hf_buf_state(into)) : 0;
        if (into->len + (size_t)got > max)
            return hf_fail(&cli->err, HF_ETOOBIG, from->name,
                           "--%s must be at most %zu bytes", from->name, max);
        hf_buf_bytes(into, block, (size_t)got);
    }
}

static int read_file(struct cli *cli, const struct origin *from, struct hf_buf *into)
{
    int fd = open(from->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return unreadable(cli, from, errno);
    int rc = read_all(cli, from, fd, into);
    (void)close(fd); /* it was only read */
    return rc;
}

static int read_stdin(struct cli *cli, const struct origin *from, struct hf_buf *into)
{
    if (cli->stdin_taken)
        return hf_fail(&cli->err, HF_EINVAL, from->name,
                       "--%s: standard input is read by another option: use @FILE for "
                       "one of the two",
                       from->name);
    cli->stdin_taken = true;
    if (cli->stdin_closed)
        return unreadable(cli, from, EBADF);
    return read_all(cli, from, STDIN_FILENO, into);
}

/* Checks the bytes and keeps them. */
static int keep_json(struct cli *cli, const struct hf_input *option, struct hf_span bytes,
                     const char **ret_text)
{
    char field[HF_INPUT_NAME + 2] = "--";
    (void)hf_input_option(option, field + 2);
    int rc = hf_json_check(bytes, (size_t)hf_input_max(option), field, &cli->err);
    if (rc)
        return rc;
    const char *text = hf_arena_copy(&cli->arena, bytes.at, bytes.len);
    if (!text)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    *ret_text = text;
    return 0;
}

/* "use '"yes"'" for a plain word, which is no JSON; NULL: nothing is sure to help. */
static const char *quoted_json(struct cli *cli, const char *value)
{
    size_t room = strlen(value) + 16;
    bool plain = *value && !strpbrk(value, "\"'\\{}[]\n");
    char *text = plain && room < 80 ? hf_arena_take(&cli->arena, room) : NULL;
    if (text)
        (void)snprintf(text, room, "use '\"%s\"'", value);
    return text;
}

int cli_read_json(struct cli *cli, const struct hf_input *option, const char *value,
                  const char **ret_text)
{
    struct origin from = { option, value[0] == '@' ? value + 1 : NULL, "" };
    (void)hf_input_option(option, from.name);
    bool is_stdin = strcmp(value, "-") == 0;
    if (!is_stdin && !from.path) {
        int rc = keep_json(cli, option, (struct hf_span){ value, strlen(value) },
                           ret_text);
        if (rc == HF_EINVAL)
            cli->action = quoted_json(cli, value);
        return rc;
    }

    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)hf_input_max(option));
    int rc = is_stdin ? read_stdin(cli, &from, &text) : read_file(cli, &from, &text);
    if (rc == 0)
        rc = keep_json(cli, option, (struct hf_span){ hf_buf_str(&text), text.len },
                       ret_text);
    hf_buf_fini(&text);
    return rc;
}
