/* Reading a whole file, or all of standard input. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int read_all(struct cli *cli, int fd, const char *path, struct hf_buf *into)
{
    char block[16384];
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hf_fail(&cli->err, HF_EINVAL, "path", "cannot read %.120s: %s", path,
                           strerror(errno));
        if (got == 0)
            return 0;
        hf_buf_bytes(into, block, (size_t)got);
        if (hf_buf_state(into))
            return hf_fail(&cli->err, hf_buf_state(into), "path",
                           "%.120s is too large to be read", path);
    }
}

int cli_read_file(struct cli *cli, const char *path, size_t max,
                  struct hf_span *ret_bytes)
{
    struct hf_buf bytes;
    bool standard = strcmp(path, "-") == 0;
    if (standard && cli->stdin_taken)
        return hf_fail(
            &cli->err, HF_EINVAL, "path",
            "standard input is read by another option: use @FILE for one of the two");
    cli->stdin_taken |= standard;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hf_fail(&cli->err, errno == ENOENT ? HF_ENOTFOUND : HF_EINVAL, "path",
                       "cannot open %.120s: %s", path, strerror(errno));
    hf_buf_init(&bytes, hf_alloc_system(), max);
    int rc = read_all(cli, fd, path, &bytes);
    if (!standard)
        (void)close(fd); /* it was only read */
    char *copy = rc == 0 ? hf_arena_copy(&cli->arena, bytes.at, bytes.len) : NULL;
    size_t len = bytes.len;
    hf_buf_fini(&bytes);
    if (rc)
        return rc;
    if (!copy)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    *ret_bytes = (struct hf_span){ copy, len };
    return 0;
}
