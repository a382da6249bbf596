/* Opening files below a folder, without a way out of it: paths with ".." and links that lead out
 * are refused, also while another process moves folders (contracts: beneath.h). */
#include "agent/tool/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 32 /* a rename elsewhere can make the kernel say EAGAIN */

static bool is_plain(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

static int open_below(int root, const char *path, int flags, mode_t mode)
{
    struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC,
                            .mode = flags & O_CREAT ? mode : 0,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    for (int i = 0; i < TRIES; i++) {
        int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0)
            return fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

/* The next part of the path, or false at its end. */
static bool next_part(const char **at, char part[256], int *ret_error)
{
    while (**at == '/')
        (*at)++;
    size_t len = strcspn(*at, "/");
    *ret_error = len > 255 ? -ENAMETOOLONG : 0;
    if (len == 0 || *ret_error)
        return false;
    memcpy(part, *at, len);
    part[len] = '\0';
    *at += len;
    return true;
}

int beneath_walk(int root, const char *path, int flags, mode_t mode)
{
    char part[256], next[256];
    const char *at = path;
    int error = 0;
    if (!is_plain(path))
        return -EXDEV;
    int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (folder < 0)
        return -errno;
    bool more = next_part(&at, part, &error);
    while (more && error == 0) {
        more = next_part(&at, next, &error);
        bool last = !more && !*at;
        int way = last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW;
        int fd = error ? -1 : openat(folder, part, way | O_CLOEXEC, mode);
        int failed = error ? -error : errno;
        (void)close(folder);
        if (fd < 0)
            return -failed;
        folder = fd;
        if (last)
            return folder;
        memcpy(part, next, sizeof part);
    }
    (void)close(folder);
    return error ? error : -ENOENT;
}

int beneath_open(int root, const char *path, int flags, mode_t mode)
{
    if (!is_plain(path))
        return -EXDEV;
    int fd = open_below(root, path, flags, mode);
    if (fd != -ENOSYS && fd != -EPERM)
        return fd;
    int known = open_below(root, ".", O_PATH,
                           0); /* a filter may refuse the call itself */
    if (known >= 0)
        (void)close(known);
    return known >= 0 ? fd : beneath_walk(root, path, flags, mode);
}
