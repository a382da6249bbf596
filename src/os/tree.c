/* The processes of a unit's work on this machine, a tree: all that hold the lock of one lock file
 * (tree.h). Here a lock file is made, looked at and removed, and the processes of a tree are found
 * and signalled. */
#include "os/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"

#define FACTS_MAX 16384
#define SUFFIX ".lock"
#define ENVIRON_MAX                                                                      \
    ((size_t)4 << 20) /* what is longer is looked through as far as that */

/* ---- lock files -------------------------------------------------------------------- */

/* FOLDER/NAME SUFFIX, or "" when it is too long. */
static void join(char out[HF_LOCK_PATH], const char *folder, const char *before,
                 const char *name, const char *after)
{
    size_t at = 0;
    const char *const parts[] = { folder, "/", before, name, after };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t len = strlen(parts[i]);
        if (at + len >= HF_LOCK_PATH) {
            out[0] = '\0';
            return;
        }
        memcpy(out + at, parts[i], len);
        at += len;
    }
    out[at] = '\0';
}

static int open_locked(const char *path, struct hf_err *err)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        int failed = errno;
        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(path); /* ours, and nothing is in it */
        }
        return hf_fail(err, failed == ENOSPC || failed == EDQUOT ? HF_EFULL : HF_ESTOREIO,
                       "lock", "cannot make the lock file %.120s: %s", path,
                       strerror(failed));
    }
    return fd;
}

int hf_lock_new(const char *folder, const struct hf_random *random,
                struct hf_lockfile *ret_lock, struct hf_err *err)
{
    char name[HF_NONCE_TEXT], fresh[HF_LOCK_PATH];
    struct hf_lockfile lock = { .fd = -1 };
    if (folder[0] != '/')
        return hf_fail(err, HF_EINVAL, "lock_folder",
                       "lock_folder must be an absolute path");
    int rc = hf_nonce(random, name, err);
    if (rc)
        return rc;
    join(fresh, folder, ".", name, SUFFIX);
    join(lock.path, folder, "", name, SUFFIX);
    if (!lock.path[0] || !fresh[0])
        return hf_fail(err, HF_ETOOBIG, "lock_folder",
                       "the path of the locks is too long");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return hf_fail(err, HF_EREADONLY, "lock_folder", "cannot make %.120s: %s", folder,
                       strerror(errno));
    int fd = open_locked(fresh, err);
    if (fd < 0)
        return fd;
    if (rename(fresh, lock.path) != 0) {
        rc = hf_fail(err, HF_ESTOREIO, "lock", "cannot name the lock file: %s",
                     strerror(errno));
        (void)close(fd);
        (void)unlink(fresh); /* ours, and nothing is in it */
        return rc;
    }
    lock.fd = fd;
    *ret_lock = lock;
    return 0;
}

int hf_lock_write(const struct hf_lockfile *lock, const struct hf_lock_facts *facts,
                  const struct hf_alloc *alloc, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, alloc, FACTS_MAX);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "attempt", facts->attempt);
    hf_json_opt_str(&json, "call", facts->call);
    hf_json_opt_str(&json, "disposition", facts->disposition);
    hf_json_opt_i64(&json, "fence", facts->fence);
    hf_json_opt_i64(&json, "group", facts->group);
    hf_json_put_raw(&json, "holder", facts->holder);
    hf_json_opt_str(&json, "session", facts->session);
    hf_json_opt_str(&json, "work_id", facts->work_id);
    hf_json_end(&json);
    int rc = hf_buf_state(&text);
    /* Who reads it half written reads bad JSON, which says nothing. */
    if (rc == 0 && (pwrite(lock->fd, text.at, text.len, 0) != (ssize_t)text.len ||
                    ftruncate(lock->fd, (off_t)text.len) != 0))
        rc = HF_ESTOREIO;
    hf_buf_fini(&text);
    return rc ? hf_fail(err, rc, "lock", "cannot write the lock file %.120s", lock->path)
              : 0;
}

void hf_lock_touch(const struct hf_lockfile *lock)
{
    if (lock->fd >= 0)
        (void)futimens(lock->fd, NULL); /* ours and open: it cannot be refused */
}

void hf_lock_close(struct hf_lockfile *lock)
{
    if (lock->fd >= 0)
        (void)close(lock->fd);
    lock->fd = -1;
}

void hf_lock_remove(struct hf_lockfile *lock)
{
    if (lock->path[0])
        (void)unlink(
            lock->path); /* one that stays is found and removed by an orphan pass */
    hf_lock_close(lock);
}

static const char *text_of(struct hf_arena *arena, const json_t *value, const char *key)
{
    return hf_arena_text(arena, json_string_value(json_object_get(value, key)));
}

static bool read_facts(struct hf_arena *arena, int fd, struct hf_lock_facts *ret_facts)
{
    char text[FACTS_MAX];
    json_t *value = NULL;
    ssize_t got = pread(fd, text, sizeof text, 0);
    if (got <= 0 || hf_json_parse((struct hf_span){ text, (size_t)got }, sizeof text,
                                  "lock", &value, NULL))
        return false;
    struct hf_buf holder;
    hf_buf_init(&holder, arena->alloc, FACTS_MAX);
    int rc = hf_json_canonical(&holder, json_object_get(value, "holder"));
    struct hf_lock_facts facts = {
        .work_id = text_of(arena, value, "work_id"),
        .session = text_of(arena, value, "session"),
        .call = text_of(arena, value, "call"),
        .fence = json_integer_value(json_object_get(value, "fence")),
        .attempt = json_integer_value(json_object_get(value, "attempt")),
        .disposition = text_of(arena, value, "disposition"),
        .group = json_integer_value(json_object_get(value, "group")),
        .holder = rc ? NULL : hf_buf_keep(&holder, arena),
    };
    if (rc)
        hf_buf_fini(&holder);
    json_decref(value);
    *ret_facts = facts;
    return facts.holder != NULL;
}

enum hf_lock_look hf_lock_look(struct hf_arena *arena, const char *path,
                               struct hf_lock_facts *ret_facts, struct hf_tree *ret_tree)
{
    struct stat at;
    struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *ret_facts = (struct hf_lock_facts){ 0 };
    if (fd < 0)
        return HF_LOCK_GONE;
    enum hf_lock_look look = HF_LOCK_GONE;
    if (fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && fcntl(fd, F_OFD_GETLK, &ask) == 0) {
        look = ask.l_type == F_UNLCK ? HF_LOCK_FREE : HF_LOCK_HELD;
        if (!read_facts(arena, fd, ret_facts))
            *ret_facts = (struct hf_lock_facts){ 0 };
        *ret_tree = (struct hf_tree){
            .path = path,
            .dev = at.st_dev,
            .ino = at.st_ino,
            .group = ret_facts->group,
            .touched = at.st_mtim.tv_sec * 1000 + at.st_mtim.tv_nsec / 1000000,
        };
    }
    (void)close(fd);
    return look;
}

void hf_lock_each(const char *folder, hf_each_lock *each, void *user)
{
    DIR *all = opendir(folder);
    if (!all)
        return;
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[HF_LOCK_PATH];
        size_t len = strlen(entry->d_name), end = sizeof SUFFIX - 1;
        if (len <= end || !hf_same(entry->d_name + len - end, SUFFIX))
            continue;
        join(path, folder, "", entry->d_name, "");
        if (path[0])
            each(user, path);
    }
    (void)closedir(all);
}

/* ---- processes --------------------------------------------------------------------- */

/* A folder of /proc by the descriptor of its process's. */
static DIR *open_folder(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder && fd >= 0)
        (void)close(fd);
    return folder;
}

/* Does the lock belong to this descriptor's open file? Who only looks at the file has opened
 * it too, for a moment, and must not be taken for one of the tree. */
static bool carries_lock(int proc, const char *fd_name)
{
    char text[2048];
    DIR *infos = open_folder(proc, "fdinfo");
    int fd = infos ? openat(dirfd(infos), fd_name, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    if (infos)
        (void)closedir(infos);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return strstr(text, "\nlock:") != NULL;
}

static bool has_lock(const struct hf_tree *tree, int proc)
{
    DIR *fds = open_folder(proc, "fd");
    bool found = false;
    for (struct dirent *entry; fds && !found && (entry = readdir(fds));) {
        struct stat at;
        found = entry->d_name[0] != '.' &&
                fstatat(dirfd(fds), entry->d_name, &at, 0) == 0 &&
                at.st_dev == tree->dev && at.st_ino == tree->ino &&
                carries_lock(proc, entry->d_name);
    }
    if (fds)
        (void)closedir(fds);
    return found;
}

/* The process group: the third field after the name, which may hold anything. */
static int64_t group_of(int proc)
{
    char text[1024];
    int fd = openat(proc, "stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    if (got <= 0)
        return -1;
    text[got] = '\0';
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 5; field++)
        at = strchr(at + 1, ' ');
    char *end = at ? strchr(at + 1, ' ') : NULL;
    int64_t group;
    if (!end)
        return -1;
    *end = '\0';
    return hf_parse_i64(at + 1, 0, INT32_MAX, "pgrp", &group, NULL) ? -1 : group;
}

/* Does the environment hold HOLDFAST_LOCK=path? Read in pieces that overlap. */
static bool has_mark(const struct hf_tree *tree, int proc)
{
    char mark[sizeof HF_LOCK_VARIABLE + HF_LOCK_PATH + 1];
    char text[8192];
    size_t name = sizeof HF_LOCK_VARIABLE - 1, path = strlen(tree->path);
    memcpy(mark, HF_LOCK_VARIABLE "=", name + 1);
    memcpy(mark + name + 1, tree->path, path + 1);
    size_t want = name + 1 + path + 1, kept = 0; /* its NUL too */
    int fd = openat(proc, "environ", O_RDONLY | O_CLOEXEC);
    bool found = false;
    for (size_t seen = 0; fd >= 0 && !found && seen < ENVIRON_MAX;) {
        ssize_t got = read(fd, text + kept, sizeof text - kept);
        if (got <= 0)
            break;
        size_t len = kept + (size_t)got;
        found = memmem(text, len, mark, want) != NULL;
        kept = len < want ? len : want;
        memmove(text, text + len - kept, kept);
        seen += (size_t)got;
    }
    if (fd >= 0)
        (void)close(fd);
    return found;
}

static bool is_member(const struct hf_tree *tree, int proc)
{
    return has_lock(tree, proc) ||
           (tree->group > 0 && group_of(proc) == tree->group && has_mark(tree, proc));
}

/* Everything is asked behind the pidfd: while it is open, what the folder of /proc shows
 * is that process or nothing. */
static bool signal_one(const struct hf_tree *tree, DIR *all, const char *name,
                       int64_t pid, int signal)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    int proc = fd < 0 ? -1 : openat(dirfd(all), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool member = proc >= 0 && is_member(tree, proc) &&
                  syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
    if (proc >= 0)
        (void)close(proc);
    if (fd >= 0)
        (void)close(fd);
    return member;
}

size_t hf_tree_signal(const struct hf_tree *tree, int signal)
{
    DIR *all = opendir("/proc");
    size_t count = 0;
    for (struct dirent *entry; all && (entry = readdir(all));) {
        int64_t pid;
        if (hf_parse_i64(entry->d_name, 1, INT32_MAX, "pid", &pid, NULL) == 0 &&
            pid != getpid() && pid != tree->spare)
            count += signal_one(tree, all, entry->d_name, pid, signal);
    }
    if (all)
        (void)closedir(all);
    return count;
}
