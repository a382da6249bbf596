/* The evidence of a run: what the files that its command names hold when it has ended. */
#include "run/command/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/ident.h"

#define PIECE 65536
#define HASH "sha256:"

static int cannot_read(const char *path, const char *why, struct hf_err *err)
{
    return hf_fail(err, HF_EINVAL, "evidence", "the evidence %.120s cannot be read: %s",
                   path, why);
}

static int hash_open_file(int fd, const char *path, uint8_t ret_bytes[HF_DIGEST_BYTES],
                          struct hf_err *err)
{
    char piece[PIECE];
    struct hf_digest digest;
    struct stat at;
    ssize_t got;
    if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode))
        return cannot_read(path, "it is not a plain file", err);
    hf_sha256_begin(&digest);
    while ((got = read(fd, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            hf_sha256_more(&digest, piece, (size_t)got);
    if (got < 0)
        return cannot_read(path, strerror(errno), err);
    return hf_digest_end(&digest, ret_bytes) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* A path that is not absolute begins in the folder of the command. */
static int open_evidence(const char *cwd, const char *path)
{
    int folder = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int failed = errno;
    (void)close(folder);
    errno = failed;
    return fd;
}

/* "sha256:" and 64 digits, in the arena. */
static int hash_of(struct hf_run *run, const char *path, const char **ret_text,
                   struct hf_err *err)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[HF_DIGEST_BYTES];
    size_t at = sizeof HASH - 1;
    int fd = open_evidence(run->command->cwd, path);
    if (fd < 0)
        return cannot_read(path, strerror(errno), err);
    int rc = hash_open_file(fd, path, bytes, err);
    (void)close(fd);
    if (rc)
        return rc;
    char *text = hf_arena_take(&run->arena, at + 2 * (size_t)HF_DIGEST_BYTES + 1);
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(text, HASH, at);
    for (size_t i = 0; i < HF_DIGEST_BYTES; i++) {
        text[at++] = digits[bytes[i] >> 4];
        text[at++] = digits[bytes[i] & 15];
    }
    text[at] = '\0';
    *ret_text = text;
    return 0;
}

int hf_run_evidence(struct hf_run *run, struct hf_err *err)
{
    const char *const *paths = run->command->evidence;
    size_t n = 0;
    while (paths && paths[n])
        n++;
    if (n == 0 || run->evidence)
        return 0;
    const char **list = hf_arena_array(&run->arena, n, sizeof *list);
    int rc = list ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = hash_of(run, paths[i], &list[i], err);
    if (rc == 0) {
        run->evidence = list;
        run->evidence_count = n;
    }
    return rc;
}
