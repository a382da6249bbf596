/* Common operations on files that must survive a crash: writing all bytes, syncing a folder, and
 * whether an open file is still the one under its path. */
#include "os/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hf_file_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len) {
        ssize_t sent = write(fd, at, len);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno;
        at += sent;
        len -= (size_t)sent;
    }
    return 0;
}

int hf_file_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof(folder))
        return ENAMETOOLONG;
    memcpy(folder, path, len);
    folder[len] = '\0';
    const char *name = slash ? (len ? folder : "/") : ".";
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int failed = fsync(fd) == 0 ? 0 : errno;
    (void)close(fd); /* a folder holds no unwritten bytes of ours */
    return failed;
}

bool hf_file_same(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}
