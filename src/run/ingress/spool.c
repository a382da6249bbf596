/* The spool: a file in which requests wait while the ledger does not answer; a first line that
 * says what it is, then one line per request. Writers take the file's lock, so that lines never
 * mix (spool.h). */
#include "run/ingress/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sized.h"
#include "core/ledger/step.h"
#include "os/fileio.h"
#include "run/ingress/spool_line.h"

#define TRIES 8
#define FIRST_BYTES (sizeof(HF_SPOOL_FIRST) - 1)

int hf_spool_failed(struct hf_err *err, const char *what, const char *path, int errnum)
{
    int code = HF_ESTOREIO;
    if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
        code = HF_EFULL;
    if (errnum == EACCES || errnum == EPERM || errnum == EROFS)
        code = HF_EREADONLY;
    if (errnum == ENOENT || errnum == ENOTDIR || errnum == EISDIR || errnum == ELOOP)
        code = HF_EINVAL;
    return hf_fail(err, code, "spool", "cannot %s the spool %.100s: %s", what, path,
                   strerror(errnum));
}

int hf_spool_lock(int fd, const char *path, hf_ms wait_ms, struct hf_err *err)
{
    const struct hf_clock *clock = hf_clock_system();
    hf_ms end = clock->mono_ms(clock->user) + wait_ms;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return hf_spool_failed(err, "lock", path, errno);
        if (clock->mono_ms(clock->user) >= end)
            return hf_fail(err, HF_EBUSY, "spool",
                           "the spool %.100s is being written by another process", path);
        clock->wait_ms(clock->user, 1);
    }
    return 0;
}

static int open_regular(const char *path, int *ret_fd, struct hf_err *err)
{
    struct stat at;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  0600);
    if (fd < 0)
        return hf_spool_failed(err, "open", path, errno);
    if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode)) {
        (void)close(fd); /* nothing was written */
        return hf_fail(err, HF_EINVAL, "spool", "%.100s is not a file", path);
    }
    *ret_fd = fd;
    return 0;
}

/* Open and locked, and still under its name. */
static int open_alone(const struct hf_spool *spool, int *ret_fd, struct hf_err *err)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = -1;
        int rc = open_regular(spool->path, &fd, err);
        if (rc)
            return rc;
        rc = hf_spool_lock(fd, spool->path, spool->wait_ms, err);
        if (rc == 0 && hf_file_same(fd, spool->path)) {
            *ret_fd = fd;
            return 0;
        }
        (void)close(fd); /* nothing was written */
        if (rc)
            return rc;
    }
    return hf_fail(err, HF_EBUSY, "spool", "the spool %.100s is replaced all the time",
                   spool->path);
}

/* Where the next line begins. The file gets its first line if it has none, also where that
 * was torn; a file that begins otherwise is another process's. */
static int find_end(int fd, const char *path, off_t *ret_end, bool *ret_torn,
                    struct hf_err *err)
{
    char first[FIRST_BYTES];
    struct stat at;
    char last = '\n';
    if (fstat(fd, &at) != 0)
        return hf_spool_failed(err, "read", path, errno);
    size_t want = (size_t)at.st_size < FIRST_BYTES ? (size_t)at.st_size : FIRST_BYTES;
    if (pread(fd, first, want, 0) != (ssize_t)want)
        return hf_spool_failed(err, "read", path, errno ? errno : EIO);
    if (memcmp(first, HF_SPOOL_FIRST, want) != 0)
        return hf_fail(err, HF_EINVAL, "spool",
                       "%.100s is not a spool: it does not begin as one", path);
    if (want < FIRST_BYTES) {
        int errnum = ftruncate(fd, 0) != 0 ? errno : 0;
        if (errnum == 0)
            errnum = hf_file_write(fd, HF_SPOOL_FIRST, FIRST_BYTES);
        if (errnum == 0)
            errnum = hf_file_sync_folder(path);
        if (errnum)
            return hf_spool_failed(err, "begin", path, errnum);
        at.st_size = (off_t)FIRST_BYTES;
    } else if (pread(fd, &last, 1, at.st_size - 1) != 1) {
        return hf_spool_failed(err, "read", path, errno ? errno : EIO);
    }
    *ret_torn = last != '\n';
    *ret_end = at.st_size;
    return 0;
}

static int append(int fd, const struct hf_spool *spool, struct hf_span line,
                  struct hf_err *err)
{
    int64_t most = spool->bytes_max ? spool->bytes_max : HF_MAX_SPOOL_BYTES;
    off_t end = 0;
    bool torn = false;
    int rc = find_end(fd, spool->path, &end, &torn, err);
    if (rc)
        return rc;
    if (end + (off_t)line.len + (torn ? 1 : 0) > most)
        return hf_fail(err, HF_EFULL, "spool",
                       "the spool %.100s is full: %lld bytes; bring it into the ledger "
                       "with `holdfast work reconcile --from`",
                       spool->path, (long long)most);
    int errnum = torn ? hf_file_write(fd, "\n", 1) : 0;
    if (errnum == 0)
        errnum = hf_file_write(fd, line.at, line.len);
    if (errnum && ftruncate(fd, end) != 0)
        errnum = errno; /* half a line stays, and the next writer ends it */
    if (errnum == 0 && fdatasync(fd) != 0)
        errnum = errno;
    return errnum ? hf_spool_failed(err, "write", spool->path, errnum) : 0;
}

int hf_spool_write(const struct hf_spool *spool, struct hf_span line, struct hf_err *err)
{
    int fd = -1;
    int rc = open_alone(spool, &fd, err);
    if (rc)
        return rc;
    rc = append(fd, spool, line, err);
    (void)close(fd); /* synced, or failed already; the lock ends with it */
    return rc;
}

int hf_spool_append(const struct hf_spool *given, const struct hf_caller *who,
                    const struct hf_work_spec *request, struct hf_err *err)
{
    struct hf_spool spool;
    struct hf_buf line;
    const struct hf_clock *clock = hf_clock_system();
    int rc = hf_sized_copy(given, sizeof(spool), sizeof(spool), &spool, err);
    if (rc == 0 && (!spool.path || !*spool.path))
        rc = hf_fail(err, HF_EINVAL, "spool", "a spool needs a path");
    if (rc == 0 && spool.bytes_max < 0)
        rc = hf_fail(err, HF_EINVAL, "bytes_max", "bytes_max must not be negative");
    if (rc == 0)
        rc = hf_caller_check(who, err);
    if (rc == 0)
        rc = hf_work_spec_check(request, err);
    if (rc)
        return rc;
    hf_buf_init(&line, hf_alloc_system(), (size_t)HF_MAX_SPOOL_LINE_BYTES);
    hf_spool_encode(who, request, clock->wall_ms(clock->user), &line);
    rc = hf_buf_state(&line);
    if (rc)
        rc = hf_fail_plain(err, rc);
    else
        rc = hf_spool_write(&spool, (struct hf_span){ hf_buf_str(&line), line.len }, err);
    hf_buf_fini(&line);
    return rc;
}
