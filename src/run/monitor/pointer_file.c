/* The pointer as a file. The temporary name is always the same, so that a crash leaves at
 * most one behind, which the next writer takes over; a lock on it keeps two writers apart
 * and ends with its process. */
#include "run/monitor/pointer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/text.h"
#include "os/fileio.h"

#define POINTER_BYTES_MAX 65536
#define TRIES 8

static int failed(struct hf_err *err, const char *what, const char *path, int errnum)
{
    return hf_fail(err, HF_ESTOREIO, "pointer", "cannot %s the pointer file %.100s: %s",
                   what, path, strerror(errnum));
}

/* ---- reading ----------------------------------------------------------------------- */

static const char *text_of(struct hf_arena *arena, const struct json_t *object,
                           const char *key)
{
    return hf_arena_text(arena, hf_json_as_text(hf_json_member(object, key)));
}

static int64_t number_of(const struct json_t *object, const char *key)
{
    return hf_json_as_i64(hf_json_member(object, key));
}

/* False for anything that this version would not have written. */
static bool decode(const struct json_t *object, struct hf_arena *arena,
                   struct hf_pointer *out)
{
    if (number_of(object, "version") != HF_POINTER_VERSION)
        return false;
    *out = (struct hf_pointer){
        .work_id = text_of(arena, object, "work_id"),
        .source_system = text_of(arena, object, "source_system"),
        .source_id = text_of(arena, object, "source_id"),
        .source_run_id = text_of(arena, object, "source_run_id"),
        .owner = text_of(arena, object, "owner"),
        .owner_incarnation = text_of(arena, object, "owner_incarnation"),
        .lease_expires_at = number_of(object, "lease_expires_at"),
        .started_at = number_of(object, "started_at"),
        .updated_at = number_of(object, "updated_at"),
        .running = number_of(object, "running"),
    };
    return hf_check_key(out->work_id, (size_t)HF_MAX_KEY_BYTES, "work_id", NULL) == 0 &&
           hf_check_key(out->owner, (size_t)HF_MAX_KEY_BYTES, "owner", NULL) == 0;
}

/* A byte more than a pointer may have, so that too much can be told. */
static int read_bytes(int fd, const char *path, struct hf_buf *into, struct hf_err *err)
{
    char block[4096];
    while (into->len <= POINTER_BYTES_MAX) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(err, "read", path, errno);
        if (got == 0)
            break;
        hf_buf_bytes(into, block, (size_t)got);
    }
    return hf_buf_state(into) == HF_ENOMEM ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

static int open_file(const char *path, int *ret_fd, struct hf_err *err)
{
    struct stat at;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ELOOP)
        return hf_fail(err, HF_EINVAL, "pointer", "the pointer file %.100s is a link",
                       path);
    if (fd < 0)
        return errno == ENOENT ? HF_ENOTFOUND : failed(err, "read", path, errno);
    if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode)) {
        (void)close(fd); /* nothing was written */
        return hf_fail(err, HF_EINVAL, "pointer", "%.100s is not a file", path);
    }
    *ret_fd = fd;
    return 0;
}

int hf_pointer_read(const char *path, struct hf_arena *arena,
                    enum hf_pointer_state *ret_state, struct hf_pointer *ret_pointer,
                    struct hf_err *err)
{
    int fd = -1;
    struct hf_buf text;
    struct json_t *object = NULL;
    int rc = open_file(path, &fd, err);
    if (rc) {
        if (rc == HF_ENOTFOUND)
            *ret_state = HF_POINTER_NONE;
        return rc == HF_ENOTFOUND ? 0 : rc;
    }
    hf_buf_init(&text, arena->alloc, POINTER_BYTES_MAX + 4096);
    rc = read_bytes(fd, path, &text, err);
    (void)close(fd); /* nothing was written */
    if (rc == 0) {
        struct hf_span bytes = { hf_buf_str(&text), text.len };
        bool good = hf_json_parse(bytes, POINTER_BYTES_MAX, "pointer", &object, NULL) ==
                        0 &&
                    decode(object, arena, ret_pointer);
        *ret_state = good ? HF_POINTER_GOOD : HF_POINTER_CORRUPT;
    }
    hf_json_free(object);
    hf_buf_fini(&text);
    return rc;
}

/* ---- writing ----------------------------------------------------------------------- */

static void encode(const struct hf_pointer *pointer, struct hf_buf *out)
{
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_object(&json);
    hf_json_put_i64(&json, "version", HF_POINTER_VERSION);
    hf_json_put_str(&json, "work_id", pointer->work_id);
    hf_json_put_str(&json, "source_system", pointer->source_system);
    hf_json_put_str(&json, "source_id", pointer->source_id);
    hf_json_put_str(&json, "source_run_id", pointer->source_run_id);
    hf_json_put_str(&json, "owner", pointer->owner);
    hf_json_put_str(&json, "owner_incarnation", pointer->owner_incarnation);
    hf_json_put_i64(&json, "lease_expires_at", pointer->lease_expires_at);
    hf_json_put_i64(&json, "started_at", pointer->started_at);
    hf_json_put_i64(&json, "updated_at", pointer->updated_at);
    hf_json_put_i64(&json, "running", pointer->running);
    hf_json_end(&json);
    hf_buf_char(out, '\n');
}

static int sync_folder(const char *path, struct hf_err *err)
{
    int errnum = hf_file_sync_folder(path);
    return errnum ? failed(err, "sync the folder of", path, errnum) : 0;
}

/* Opens the temporary file alone: locked, and still under its name (another writer may have
 * renamed it between the open and the lock). */
static int open_temporary(const char *path, const char *temporary, int *ret_fd,
                          struct hf_err *err)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return failed(err, "write", path, errno);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            (void)close(fd); /* another process's */
            return hf_fail(err, HF_EBUSY, "pointer",
                           "the pointer file %.100s is being written by another process",
                           path);
        }
        if (hf_file_same(fd, temporary)) {
            *ret_fd = fd;
            return 0;
        }
        (void)close(fd); /* it is the pointer itself by now */
    }
    return hf_fail(err, HF_EBUSY, "pointer",
                   "the pointer file %.100s changes all the time", path);
}

static void tell(const struct hf_pointer_hook *hook, enum hf_pointer_moment moment)
{
    if (hook->at)
        hook->at(hook->user, moment);
}

static int replace(const char *path, const char *temporary, const struct hf_buf *text,
                   const struct hf_pointer_hook *hook, struct hf_err *err)
{
    int fd = -1;
    int rc = open_temporary(path, temporary, &fd, err);
    if (rc)
        return rc;
    int errnum = fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0 ? errno : 0;
    if (errnum == 0)
        errnum = hf_file_write(fd, hf_buf_str(text), text->len);
    if (errnum == 0 && fsync(fd) != 0)
        errnum = errno;
    if (errnum)
        rc = failed(err, "write", path, errnum);
    if (rc == 0) {
        tell(hook, HF_POINTER_WRITTEN);
        if (rename(temporary, path) != 0)
            rc = failed(err, "replace", path, errno);
    }
    if (rc)
        (void)unlink(temporary); /* half of it helps no process; the lock is still ours */
    (void)close(fd);             /* synced before; the lock ends with it */
    if (rc)
        return rc;
    tell(hook, HF_POINTER_RENAMED);
    return sync_folder(path, err);
}

int hf_pointer_write(const char *path, const struct hf_pointer *pointer,
                     const struct hf_pointer_hook *hook, struct hf_err *err)
{
    struct hf_buf text, temporary;
    hf_buf_init(&text, hf_alloc_system(), POINTER_BYTES_MAX);
    hf_buf_init(&temporary, hf_alloc_system(), PATH_MAX);
    encode(pointer, &text);
    hf_buf_text(&temporary, path);
    hf_buf_text(&temporary, ".tmp");
    int rc = hf_buf_state(&text) ? hf_buf_state(&text) : hf_buf_state(&temporary);
    if (rc)
        rc = hf_fail(err, rc, "pointer", "%s", hf_err_text(rc));
    else
        rc = replace(path, hf_buf_str(&temporary), &text, hook, err);
    hf_buf_fini(&text);
    hf_buf_fini(&temporary);
    return rc;
}

int hf_pointer_remove(const char *path, struct hf_err *err)
{
    if (unlink(path) != 0)
        return errno == ENOENT ? 0 : failed(err, "remove", path, errno);
    return sync_folder(path, err);
}

int hf_pointer_set_aside(const char *path, hf_ms now, struct hf_buf *aside,
                         struct hf_err *err)
{
    hf_buf_text(aside, path);
    hf_buf_text(aside, ".corrupt-");
    hf_buf_i64(aside, now);
    if (hf_buf_state(aside))
        return hf_fail(err, hf_buf_state(aside), "pointer", "the path is too long");
    if (rename(path, hf_buf_str(aside)) != 0 && errno != ENOENT)
        return failed(err, "rename", path, errno);
    return sync_folder(path, err);
}
