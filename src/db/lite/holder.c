/* Which process holds a lock that a caller waited for in vain.
 *
 * The holder of the turnstile writes its process id into the sidecar. SQLite's own locks are POSIX
 * locks on the file -shm, and /proc/locks lists them with their process. That file is never
 * opened here: to close a descriptor of it would drop the locks of this process.
 *
 * Everything here is for an error's text. What cannot be found out is left out.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "db/lite/lite.h"

/* The bytes of -shm that SQLite locks (its file format fixes them). */
#define SHM_LOCK_FIRST 120
#define SHM_LOCK_LAST 128

int64_t lite_pid_namespace(void)
{
    struct stat ns;
    return stat("/proc/self/ns/pid", &ns) == 0 ? (int64_t)ns.st_ino : 0;
}

enum {
    LOCK_NUMBER,
    LOCK_KIND,
    LOCK_FORCE,
    LOCK_MODE,
    LOCK_PID,
    LOCK_FILE,
    LOCK_FIRST,
    LOCK_FIELDS
};

/* Cuts "1: POSIX ADVISORY WRITE 4711 fe:01:1050 120 127" into its fields. */
static bool cut_line(char *line, char *fields[LOCK_FIELDS])
{
    char *at = line;
    for (size_t i = 0; i < LOCK_FIELDS; i++) {
        at += strspn(at, " ");
        fields[i] = at;
        at += strcspn(at, " \n");
        if (*at == '\0')
            return false;
        *at++ = '\0';
    }
    return true;
}

/* The process of an exclusive lock on SQLite's bytes of the file, or 0. */
static pid_t owner_in(char *line, int64_t inode)
{
    char *fields[LOCK_FIELDS];
    int64_t pid;
    int64_t file;
    int64_t first;
    if (!cut_line(line, fields) || !hf_same(fields[LOCK_KIND], "POSIX") ||
        !hf_same(fields[LOCK_MODE], "WRITE"))
        return 0;
    const char *colon = strrchr(fields[LOCK_FILE], ':');
    bool ours = colon &&
                hf_parse_i64(colon + 1, 0, INT64_MAX, "inode", &file, NULL) == 0 &&
                hf_parse_i64(fields[LOCK_FIRST], SHM_LOCK_FIRST, SHM_LOCK_LAST, "first",
                             &first, NULL) == 0 &&
                hf_parse_i64(fields[LOCK_PID], 1, INT32_MAX, "pid", &pid, NULL) == 0;
    return ours && file == inode && pid != getpid() ? (pid_t)pid : 0;
}

static pid_t shm_owner(const struct lite *lite)
{
    struct hf_buf path;
    struct stat at;
    hf_buf_init(&path, lite->alloc, strlen(lite->path) + sizeof("-shm"));
    hf_buf_text(&path, lite->path);
    hf_buf_text(&path, "-shm");
    bool found = hf_buf_state(&path) == 0 && stat(hf_buf_str(&path), &at) == 0;
    hf_buf_fini(&path);
    FILE *locks = found ? fopen("/proc/locks", "re") : NULL;
    if (!locks)
        return 0;
    pid_t pid = 0;
    char line[256];
    while (pid == 0 && fgets(line, sizeof line, locks))
        pid = owner_in(line, (int64_t)at.st_ino);
    (void)fclose(locks); /* it was only read */
    return pid;
}

static pid_t turnstile_owner(const struct lite *lite)
{
    const struct lite_page *page = lite->side.page;
    int64_t ns = atomic_load_explicit(&page->turnstile_pid_ns, memory_order_relaxed);
    bool here = ns != 0 && ns == lite->side.pid_ns;
    return here ? atomic_load_explicit(&page->turnstile_pid, memory_order_relaxed) : 0;
}

struct process {
    pid_t pid; /* 0: not known */
    char name[32];
    bool stopped;
};

/* /proc/PID/stat is "PID (name) STATE …", and the name may hold anything. */
static struct process look_at(const struct lite *lite, pid_t pid)
{
    struct process seen = { .pid = pid, .name = "?" };
    struct hf_buf path;
    char text[256];
    hf_buf_init(&path, lite->alloc, 32);
    hf_buf_text(&path, "/proc/");
    hf_buf_i64(&path, pid);
    hf_buf_text(&path, "/stat");
    bool named = pid > 0 && hf_buf_state(&path) == 0;
    FILE *file = named ? fopen(hf_buf_str(&path), "re") : NULL;
    hf_buf_fini(&path);
    if (!file)
        return seen;
    size_t len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file); /* it was only read */
    text[len] = '\0';
    const char *begin = strchr(text, '(');
    const char *end = strrchr(text, ')');
    if (!begin || !end || end <= begin || end[1] == '\0')
        return seen;
    size_t bytes = (size_t)(end - begin) - 1;
    bytes = bytes < sizeof seen.name ? bytes : sizeof seen.name - 1;
    memcpy(seen.name, begin + 1, bytes);
    seen.name[bytes] = '\0';
    seen.stopped = end[2] == 'T' || end[2] == 't';
    return seen;
}

static int fail_held(const struct lite *lite, const char *what, hf_ms waited, pid_t owner,
                     struct hf_err *err)
{
    struct process by = look_at(lite, owner);
    if (by.pid == 0)
        return hf_fail(
            err, HF_EBUSY, "db",
            "another process held %s for %lld ms (`fuser -v %.80s` lists those "
            "that have it open)",
            what, (long long)waited, lite->path);
    if (by.stopped)
        return hf_fail(err, HF_EBUSY, "db",
                       "process %d (%s) is stopped and holds %s: resume it (kill -CONT "
                       "%d) or end it (kill -KILL %d), then repeat",
                       (int)by.pid, by.name, what, (int)by.pid, (int)by.pid);
    return hf_fail(err, HF_EBUSY, "db",
                   "process %d (%s) held %s for %lld ms: wait for it or end it, then "
                   "repeat",
                   (int)by.pid, by.name, what, (long long)waited);
}

int lite_fail_turnstile(const struct lite *lite, struct hf_err *err)
{
    return fail_held(lite, "the store's turnstile", lite->busy_ms, turnstile_owner(lite),
                     err);
}

int lite_fail_locked(const struct lite *lite, const char *what, struct hf_err *err)
{
    pid_t owner = lite->memory ? 0 : shm_owner(lite);
    return fail_held(lite, what, lite_locked_ms(lite), owner, err);
}
