/* Describing a process and proving its death: rule 5 (liveness.h says what proves a death). A
 * holder is the process that has a lease, as JSON: boot, namespaces, pid and start time, and the
 * lock file of its commands, if it has one. */
#include "os/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#define HOLDER_MAX 8192 /* bytes of a description */

struct place {
    char boot[40];
    int64_t pid_ns;
    int64_t time_ns;
};

/* The file whose lock the work's own processes inherit (rule 6). */
struct lock_name {
    char path[HF_LOCK_PATH]; /* "": none */
    int64_t dev;
    int64_t ino;
};

struct holder {
    struct place place;
    int64_t pid;
    int64_t start;
    struct lock_name lock;
};

static bool read_small(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t len = 0;
    while (len + 1 < room) {
        ssize_t got = read(fd, out + len, room - 1 - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    (void)close(fd);
    out[len] = '\0';
    return len > 0;
}

/* /proc shows the namespace that it was mounted from, which need not be this process's: the
 * same number is then another process there. */
static bool proc_is_ours(void)
{
    char name[24];
    int64_t pid;
    ssize_t len = readlink("/proc/self", name, sizeof name - 1);
    if (len <= 0)
        return false;
    name[len] = '\0';
    return hf_parse_i64(name, 1, INT32_MAX, "pid", &pid, NULL) == 0 && pid == getpid();
}

static bool here(struct place *ret_place)
{
    struct place place = { 0 };
    struct stat pid_ns, time_ns;
    if (!proc_is_ours())
        return false;
    if (!read_small("/proc/sys/kernel/random/boot_id", place.boot, sizeof place.boot))
        return false;
    place.boot[strcspn(place.boot, "\n")] = '\0';
    if (stat("/proc/self/ns/pid", &pid_ns) || stat("/proc/self/ns/time", &time_ns))
        return false;
    place.pid_ns = (int64_t)pid_ns.st_ino;
    place.time_ns = (int64_t)time_ns.st_ino;
    *ret_place = place;
    return true;
}

/* "/proc/PID/WHAT" without stdio. */
static void proc_path(int64_t pid, const char *what, char out[64])
{
    char digits[24];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + pid % 10);
        pid /= 10;
    } while (pid > 0);
    memcpy(out, "/proc/", 6);
    size_t at = 6;
    while (n > 0)
        out[at++] = digits[--n];
    out[at++] = '/';
    memcpy(out + at, what, strlen(what) + 1);
}

/* Field 22 of stat, counted after the last ')': a command's name may hold parentheses.
 * -1 when it cannot be read. */
static int64_t start_time(int64_t pid)
{
    char path[64], text[2048];
    proc_path(pid, "stat", path);
    if (!read_small(path, text, sizeof text))
        return -1;
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (!at)
            return -1;
    }
    if (!at)
        return -1;
    char *end = strchr(at + 1, ' ');
    if (!end)
        return -1;
    *end = '\0';
    int64_t value;
    if (hf_parse_i64(at + 1, 0, INT64_MAX, "starttime", &value, NULL))
        return -1;
    return value;
}

static int open_pidfd(int64_t pid)
{
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/* ---- the lock that work inherits --------------------------------------------------- */

enum lock_state {
    LOCK_UNKNOWN, /* cannot be looked at from here */
    LOCK_FREE,
    LOCK_HELD
};

/* Asks without taking it, so that two who ask do not see each other. */
static enum lock_state lock_state(const struct lock_name *lock)
{
    struct stat at;
    int fd = open(lock->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return LOCK_UNKNOWN;
    struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    enum lock_state state = LOCK_UNKNOWN;
    if (fstat(fd, &at) == 0 && (int64_t)at.st_dev == lock->dev &&
        (int64_t)at.st_ino == lock->ino && fcntl(fd, F_OFD_GETLK, &ask) == 0)
        state = ask.l_type == F_UNLCK ? LOCK_FREE : LOCK_HELD;
    (void)close(fd);
    return state;
}

bool hf_lock_output(const char *lock, enum hf_stream stream, char ret_path[HF_LOCK_PATH])
{
    const char *suffix = stream == HF_STDOUT ? ".stdout" : ".stderr";
    size_t len = strlen(lock), more = strlen(suffix) + 1;
    if (len + more > HF_LOCK_PATH)
        return false;
    memcpy(ret_path, lock, len);
    memcpy(ret_path + len, suffix, more);
    return true;
}

bool hf_lock_output_busy(const char *lock)
{
    char path[HF_LOCK_PATH];
    struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (!hf_lock_output(lock, HF_STDOUT, path))
        return false;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool busy = fd >= 0 && fcntl(fd, F_OFD_GETLK, &ask) == 0 && ask.l_type != F_UNLCK;
    if (fd >= 0)
        (void)close(fd);
    return busy;
}

static int describe_lock(struct hf_json *json, const char *path, struct hf_err *err)
{
    struct stat at;
    if (strlen(path) >= HF_LOCK_PATH)
        return hf_fail(err, HF_ETOOBIG, "lock", "lock must be shorter than %d bytes",
                       HF_LOCK_PATH);
    if (path[0] != '/' || !hf_utf8_valid(path, strlen(path)))
        return hf_fail(err, HF_EINVAL, "lock", "lock must be an absolute path in UTF-8");
    if (stat(path, &at))
        return hf_fail(err, HF_EINVAL, "lock", "the lock %.120s cannot be read", path);
    hf_json_key(json, "lock");
    hf_json_object(json);
    hf_json_put_i64(json, "dev", (int64_t)at.st_dev);
    hf_json_put_i64(json, "ino", (int64_t)at.st_ino);
    hf_json_put_str(json, "path", path);
    hf_json_end(json);
    return 0;
}

/* ---- describing and judging -------------------------------------------------------- */

int hf_life_describe(struct hf_arena *arena, int pid, const char *lock,
                     const char **ret_json, struct hf_err *err)
{
    if (pid <= 0)
        return hf_fail(err, HF_EINVAL, "pid", "pid must be a positive number");
    struct place place;
    if (!here(&place))
        return hf_fail(err, HF_EINVAL, "pid",
                       "/proc cannot be read or shows another pid namespace, so no death "
                       "could be proven");
    int64_t start = start_time(pid);
    if (start < 0)
        return hf_fail(err, HF_EINVAL, "pid", "there is no process %d on this machine",
                       pid);
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, HOLDER_MAX);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_put_str(&json, "boot", place.boot);
    int rc = lock ? describe_lock(&json, lock, err) : 0;
    if (rc) {
        hf_buf_fini(&buf);
        return rc;
    }
    hf_json_put_i64(&json, "pid", pid);
    hf_json_put_i64(&json, "pid_ns", place.pid_ns);
    hf_json_put_i64(&json, "start", start);
    hf_json_put_i64(&json, "time_ns", place.time_ns);
    hf_json_end(&json);
    const char *text = hf_buf_keep(&buf, arena);
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_json = text;
    return 0;
}

static bool parse_holder(const char *text, struct holder *ret_holder)
{
    json_t *value = NULL;
    struct hf_span span = { text, strlen(text) };
    if (hf_json_parse(span, HOLDER_MAX, "holder", &value, NULL))
        return false;
    const json_t *lock = json_object_get(value, "lock");
    const char *path = json_string_value(json_object_get(lock, "path"));
    const char *boot = json_string_value(json_object_get(value, "boot"));
    struct holder holder = {
        .place.pid_ns = json_integer_value(json_object_get(value, "pid_ns")),
        .place.time_ns = json_integer_value(json_object_get(value, "time_ns")),
        .pid = json_integer_value(json_object_get(value, "pid")),
        .start = json_integer_value(json_object_get(value, "start")),
        .lock.dev = json_integer_value(json_object_get(lock, "dev")),
        .lock.ino = json_integer_value(json_object_get(lock, "ino")),
    };
    bool good = boot && strlen(boot) < sizeof holder.place.boot && holder.pid > 0 &&
                holder.pid <= INT32_MAX && (!path || strlen(path) < HF_LOCK_PATH);
    if (good)
        memcpy(holder.place.boot, boot, strlen(boot) + 1);
    if (good && path)
        memcpy(holder.lock.path, path, strlen(path) + 1);
    json_decref(value);
    if (good)
        *ret_holder = holder;
    return good;
}

/* Can this process judge that holder at all? */
static bool ours_to_judge(const char *text, struct holder *ret_holder)
{
    struct place place;
    return text && parse_holder(text, ret_holder) && here(&place) &&
           hf_same(place.boot, ret_holder->place.boot) &&
           place.pid_ns == ret_holder->place.pid_ns &&
           place.time_ns == ret_holder->place.time_ns;
}

static const char *how_dead(const struct holder *holder)
{
    int fd = open_pidfd(holder->pid);
    if (fd < 0)
        return errno == ESRCH ? "pidfd_open: no such process" : NULL;
    const char *how = NULL;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    if (poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN)) {
        how = "pidfd: exited";
    } else {
        /* Read after opening: the process behind the descriptor cannot be replaced, so a
         * different start time means that the number was given to another process. */
        int64_t start = start_time(holder->pid);
        if (start >= 0 && start != holder->start)
            how = "start time differs: the pid was reused";
    }
    (void)close(fd);
    return how;
}

/* Rule 6: the death of a wrapper is not the death of its work. The lock is asked for after
 * the death was seen: the dead start nothing more. Output is asked for last: what has gone
 * writes nothing more. */
static bool work_is_gone(const struct holder *holder)
{
    return !holder->lock.path[0] || (lock_state(&holder->lock) == LOCK_FREE &&
                                     !hf_lock_output_busy(holder->lock.path));
}

bool hf_life_dead(const char *holder_text)
{
    struct holder holder;
    return ours_to_judge(holder_text, &holder) && how_dead(&holder);
}

int64_t hf_life_living(const char *holder_text)
{
    struct holder holder;
    return ours_to_judge(holder_text, &holder) && !how_dead(&holder) ? holder.pid : 0;
}

bool hf_life_busy(const char *holder_text)
{
    struct holder holder;
    return ours_to_judge(holder_text, &holder) && holder.lock.path[0] &&
           lock_state(&holder.lock) == LOCK_HELD;
}

enum hf_life hf_life_judge(struct hf_arena *arena, const char *holder_text, hf_ms now,
                           const char **ret_proof)
{
    struct holder holder;
    if (!ours_to_judge(holder_text, &holder))
        return HF_LIFE_UNKNOWN;
    const char *how = how_dead(&holder);
    if (!how || !work_is_gone(&holder))
        return HF_LIFE_UNKNOWN;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, 2 * HOLDER_MAX);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_put_i64(&json, "checked_at", now);
    hf_json_put_i64(&json, "checked_by_pid", getpid());
    hf_json_put_raw(&json, "holder", holder_text);
    hf_json_put_str(&json, "how", how);
    if (holder.lock.path[0])
        hf_json_put_str(&json, "lock", "free: nothing of the work runs");
    hf_json_end(&json);
    const char *proof = hf_buf_keep(&buf, arena);
    if (!proof)
        return HF_LIFE_UNKNOWN;
    *ret_proof = proof;
    return HF_LIFE_DEAD;
}

bool hf_life_names(const char *holder_text, const char *lock)
{
    struct holder holder;
    return holder_text && parse_holder(holder_text, &holder) &&
           hf_same(holder.lock.path, lock);
}

int hf_life_pidfd(const char *holder_text, bool *ret_gone)
{
    struct holder holder;
    *ret_gone = false;
    if (!ours_to_judge(holder_text, &holder))
        return -1;
    int fd = open_pidfd(holder.pid);
    bool dead = how_dead(&holder) != NULL;
    /* Dead, but its work continues: nothing to wait for that a pidfd could tell. */
    *ret_gone = dead && work_is_gone(&holder);
    if (dead && fd >= 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}
