/* The built-in file tools. They block, and run on threads of the loop's executor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "agent/tool/beneath.h"
#include "agent/tool/tools.h"
#include "base/err.h"
#include "base/json_get.h"
#include "base/repair.h"
#include "base/text.h"

#define FILE_MAX ((size_t)HF_MAX_TURN_TEXT_BYTES)
#define LIST_MAX 2000
#define LOCK_LOOK_MS 5

int files_check_root(const char *root, struct hf_err *err)
{
    struct stat at;
    if (root[0] != '/')
        return hf_fail(err, HF_EINVAL, "root", "root must be an absolute path");
    if (stat(root, &at) != 0 || !S_ISDIR(at.st_mode))
        return hf_fail(err, HF_EINVAL, "root", "root: %.200s is not a folder", root);
    return 0;
}

/* ---- one call ---------------------------------------------------------------------- */

/* A call's arguments and what it has open. */
struct job {
    const struct hf_tools *tools;
    struct hf_invocation *call;
    struct hf_arena arena;
    struct json_t *args;
    const char *path;
    int root;
    int folder;       /* of the file; -1: not open */
    const char *base; /* its name in that folder */
};

static void fail_path(struct job *job, enum hf_failure_class class_, const char *code,
                      const char *what)
{
    struct hf_buf text;
    hf_buf_init(&text, job->arena.alloc, 8192);
    hf_buf_bytes(&text, job->path, strnlen(job->path, 400));
    hf_buf_text(&text, ": ");
    hf_buf_text(&text, what);
    tool_fail(job->call, class_, code, hf_buf_str(&text));
    hf_buf_fini(&text);
}

/* What errors mean to a model. */
static const struct {
    int error;
    enum hf_failure_class class_;
    const char *code;
    const char *what;
} meanings[] = {
    { EXDEV, HF_FAILURE_PERMISSION_DENIED, "outside_root",
      "the path leads out of the root folder; use a relative path without .." },
    { ELOOP, HF_FAILURE_PERMISSION_DENIED, "outside_root",
      "the path leads through a link that is not followed" },
    { ENOENT, HF_FAILURE_INVALID_REQUEST, "not_found", "there is no such file" },
    { ENOTDIR, HF_FAILURE_INVALID_REQUEST, "not_found",
      "a part of the path is no folder" },
    { EISDIR, HF_FAILURE_INVALID_REQUEST, "is_folder", "this is a folder" },
    { EACCES, HF_FAILURE_PERMISSION_DENIED, "denied", "access is denied" },
    { EPERM, HF_FAILURE_PERMISSION_DENIED, "denied", "access is denied" },
    { EROFS, HF_FAILURE_PERMISSION_DENIED, "denied", "the folder cannot be written" },
    { ENAMETOOLONG, HF_FAILURE_INVALID_REQUEST, "not_found", "the name is too long" },
    { ENOSPC, HF_FAILURE_RESOURCE_LIMIT, "full", "the disk is full" },
    { EDQUOT, HF_FAILURE_RESOURCE_LIMIT, "full", "the quota is used up" },
};

static void fail_errno(struct job *job, int error)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].error != error)
            continue;
        fail_path(job, meanings[i].class_, meanings[i].code, meanings[i].what);
        return;
    }
    fail_path(job, HF_FAILURE_IO, "io", strerror(error));
}

/* Reads the arguments and opens the root. False: the call is answered. */
static bool begin(struct job *job, void *user, struct hf_invocation *call)
{
    struct hf_err err = { 0 };
    *job = (struct job){ .tools = user, .call = call, .root = -1, .folder = -1 };
    hf_arena_init_small(&job->arena, job->tools->alloc, 1024, 8192);
    if (hf_json_parse(hf_invocation_args(call), FILE_MAX, "args", &job->args, &err)) {
        tool_fail(call, HF_FAILURE_INVALID_REQUEST, "args", err.message);
        return false;
    }
    job->path = hf_json_as_text(hf_json_member(job->args, "path"));
    if (!job->path)
        job->path = ".";
    job->root = open(job->tools->config.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (job->root >= 0)
        return true;
    tool_fail(call, HF_FAILURE_UNAVAILABLE, "no_root", "the root folder is not there");
    return false;
}

static void end(struct job *job)
{
    hf_json_free(job->args);
    if (job->root >= 0)
        (void)close(job->root);
    if (job->folder >= 0)
        (void)close(job->folder); /* with its lock */
    hf_arena_fini(&job->arena);
}

/* ---- reading ----------------------------------------------------------------------- */

/* The whole of an open file, without its end's NUL in len. 0 or an errno; EFBIG. */
static int read_all(struct job *job, int fd, struct hf_span *ret_text)
{
    struct stat at;
    if (fstat(fd, &at) != 0)
        return errno;
    if (S_ISDIR(at.st_mode))
        return EISDIR;
    if (!S_ISREG(at.st_mode))
        return ENXIO;
    if (at.st_size > (off_t)FILE_MAX)
        return EFBIG;
    size_t room = (size_t)at.st_size + 1, len = 0;
    char *text = hf_arena_take(&job->arena, room);
    while (text && len < room) {
        ssize_t got = read(fd, text + len, room - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    if (!text)
        return ENOMEM;
    if (len == room)
        return EFBIG; /* it grows while it is read */
    *ret_text = (struct hf_span){ text, len };
    return 0;
}

/* Reads a text file relative to a folder. False: the call is answered. */
static bool read_text(struct job *job, int folder, const char *name,
                      struct hf_span *ret_text)
{
    int fd = beneath_open(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    int error = fd < 0 ? -fd : read_all(job, fd, ret_text);
    if (fd >= 0)
        (void)close(fd);
    if (error == EFBIG)
        fail_path(job, HF_FAILURE_RESOURCE_LIMIT, "too_large",
                  "the file is over 8 MiB: it is too large for this tool");
    else if (error == ENXIO)
        fail_path(job, HF_FAILURE_INVALID_REQUEST, "no_file", "this is no regular file");
    else if (error)
        fail_errno(job, error);
    else if (!hf_text_clean(ret_text->at, ret_text->len))
        fail_path(job, HF_FAILURE_INVALID_REQUEST, "not_text",
                  "the file is not UTF-8 text");
    else
        return true;
    return false;
}

/* `count` lines from line `from` on. */
static struct hf_span lines_of(struct hf_span text, int64_t from, int64_t count)
{
    const char *at = text.at, *stop = at + text.len;
    for (; from > 1 && at < stop; from--) {
        const char *end_of = memchr(at, '\n', (size_t)(stop - at));
        at = end_of ? end_of + 1 : stop;
    }
    const char *last = at;
    for (; count > 0 && last < stop; count--) {
        const char *end_of = memchr(last, '\n', (size_t)(stop - last));
        last = end_of ? end_of + 1 : stop;
    }
    return (struct hf_span){ at, (size_t)(last - at) };
}

void files_read(void *user, struct hf_invocation *call)
{
    struct job job;
    struct hf_span text;
    if (begin(&job, user, call) && read_text(&job, job.root, job.path, &text)) {
        int64_t from = hf_json_as_i64(hf_json_member(job.args, "from_line"));
        int64_t count = hf_json_as_i64(hf_json_member(job.args, "lines"));
        tool_say(call, lines_of(text, from, count ? count : INT64_MAX));
    }
    end(&job);
}

/* ---- listing ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return hf_text_order(*(const char *const *)a, *(const char *const *)b);
}

static void put_entry(struct hf_buf *text, int folder, const char *name)
{
    struct stat at;
    hf_buf_text(text, name);
    if (fstatat(folder, name, &at, AT_SYMLINK_NOFOLLOW) != 0)
        hf_buf_text(text, " (gone)");
    else if (S_ISDIR(at.st_mode))
        hf_buf_char(text, '/');
    else if (S_ISLNK(at.st_mode))
        hf_buf_text(text, " (link)");
    else if (S_ISREG(at.st_mode)) {
        hf_buf_text(text, " (");
        hf_buf_i64(text, at.st_size);
        hf_buf_text(text, " bytes)");
    } else {
        hf_buf_text(text, " (special)");
    }
    hf_buf_char(text, '\n');
}

static void list_folder(struct job *job, DIR *all)
{
    const char **names = hf_arena_array(&job->arena, LIST_MAX, sizeof(*names));
    size_t count = 0, more = 0;
    struct hf_buf text;
    for (struct dirent *entry; names && (entry = readdir(all));) {
        if (hf_same(entry->d_name, ".") || hf_same(entry->d_name, ".."))
            continue;
        if (count < LIST_MAX &&
            (names[count] = hf_arena_text(&job->arena, entry->d_name)))
            count++;
        else
            more++;
    }
    hf_buf_init(&text, job->arena.alloc, (size_t)HF_MAX_PAYLOAD_BYTES);
    if (count > 0)
        qsort(names, count, sizeof(*names), by_name);
    for (size_t i = 0; i < count; i++)
        put_entry(&text, dirfd(all), names[i]);
    if (more > 0) {
        hf_buf_text(&text, "[cut: ");
        hf_buf_i64(&text, (int64_t)more);
        hf_buf_text(&text, " more entries]\n");
    }
    if (count == 0)
        hf_buf_text(&text, "(the folder is empty)\n");
    if (hf_buf_state(&text) == 0)
        tool_say(job->call, (struct hf_span){ hf_buf_str(&text), text.len });
    hf_buf_fini(&text);
}

void files_list(void *user, struct hf_invocation *call)
{
    struct job job;
    if (begin(&job, user, call)) {
        int fd = beneath_open(job.root, job.path, O_RDONLY | O_DIRECTORY, 0);
        DIR *all = fd < 0 ? NULL : fdopendir(fd);
        if (all)
            list_folder(&job, all);
        else
            fail_errno(&job, fd < 0 ? -fd : errno);
        if (all)
            (void)closedir(all);
        else if (fd >= 0)
            (void)close(fd);
    }
    end(&job);
}

/* ---- writing ----------------------------------------------------------------------- */

/* Makes the last folder of a path; those before it are there. 0 or an errno. */
static int make_folder(const struct job *job, char *path)
{
    char *slash = strrchr(path, '/');
    int parent = -1;
    if (slash && !slash[1])
        return 0;
    if (slash)
        *slash = '\0';
    parent = beneath_open(job->root, slash ? path : ".", O_PATH | O_DIRECTORY, 0);
    if (slash)
        *slash = '/';
    if (parent < 0)
        return -parent;
    int made = mkdirat(parent, slash ? slash + 1 : path, 0777);
    int error = made != 0 && errno != EEXIST ? errno : 0;
    (void)close(parent);
    return error;
}

static int make_folders(const struct job *job, char *path)
{
    int error = 0;
    for (char *at = path; at && error == 0;) {
        at = strchr(at, '/');
        if (at)
            *at = '\0';
        error = make_folder(job, path);
        if (at)
            *at++ = '/';
    }
    return error;
}

/* Opens the folder of the path; `make` makes what is missing of it. 0 or an errno. */
static int open_folder(struct job *job, bool make)
{
    const char *slash = strrchr(job->path, '/');
    job->base = slash ? slash + 1 : job->path;
    if (job->path[0] == '/' || hf_same(job->base, ".."))
        return EXDEV;
    if (!job->base[0] || hf_same(job->base, "."))
        return EISDIR;
    char *path = hf_arena_copy(&job->arena, slash ? job->path : ".",
                               slash ? (size_t)(slash - job->path) : 1);
    if (!path)
        return ENOMEM;
    int fd = beneath_open(job->root, path, O_RDONLY | O_DIRECTORY, 0);
    int error = fd == -ENOENT && make ? make_folders(job, path) : 0;
    if (error)
        return error;
    if (fd == -ENOENT && make)
        fd = beneath_open(job->root, path, O_RDONLY | O_DIRECTORY, 0);
    job->folder = fd < 0 ? -1 : fd;
    return fd < 0 ? -fd : 0;
}

/* Files of a folder are changed one after the other, by all processes that use these tools: an
 * edit reads, then writes. False: out of time. */
static bool lock_folder(const struct job *job)
{
    while (flock(job->folder, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return true; /* a file system without locks */
        if (hf_invocation_stopped(job->call))
            return false;
        (void)poll(NULL, 0, LOCK_LOOK_MS);
    }
    return true;
}

static int write_all(int fd, struct hf_span text)
{
    const char *at = text.at;
    for (size_t left = text.len; left > 0;) {
        ssize_t put = write(fd, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        at += put;
        left -= (size_t)put;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

/* A name that no file has: ".NONCE.holdfast". */
static int make_name(char ret_name[32])
{
    unsigned char bytes[8];
    const struct hf_random *random = hf_random_system();
    if (random->fill(random->user, bytes, sizeof bytes))
        return EIO;
    ret_name[0] = '.';
    hf_hex(bytes, sizeof bytes, ret_name + 1);
    memcpy(ret_name + 1 + 2 * sizeof bytes, ".holdfast", sizeof ".holdfast");
    return 0;
}

/* The file has the old content or the new one, at any moment. 0 or an errno. */
static int replace_file(const struct job *job, struct hf_span text)
{
    char name[32];
    struct stat at;
    bool there = fstatat(job->folder, job->base, &at, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISLNK(at.st_mode))
        return ELOOP;
    if (there && S_ISDIR(at.st_mode))
        return EISDIR;
    if (there && !S_ISREG(at.st_mode))
        return EACCES;
    int error = make_name(name);
    if (error)
        return error;
    int fd = openat(job->folder, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    error = there && fchmod(fd, at.st_mode & 0777) != 0 ? errno : 0;
    if (error == 0)
        error = write_all(fd, text);
    (void)close(fd);
    if (error == 0 && renameat(job->folder, name, job->folder, job->base) != 0)
        error = errno;
    if (error)
        (void)unlinkat(job->folder, name, 0); /* ours; one that stays is hidden */
    else
        (void)fsync(job->folder); /* the rename is seen; a crash may still undo it */
    return error;
}

static void say_written(struct job *job, const char *verb, size_t bytes)
{
    struct hf_buf text;
    hf_buf_init(&text, job->arena.alloc, 8192);
    hf_buf_text(&text, verb);
    hf_buf_bytes(&text, job->path, strnlen(job->path, 4000));
    hf_buf_text(&text, " (");
    hf_buf_i64(&text, (int64_t)bytes);
    hf_buf_text(&text, " bytes)");
    tool_say(job->call, (struct hf_span){ hf_buf_str(&text), text.len });
    hf_buf_fini(&text);
}

void files_write(void *user, struct hf_invocation *call)
{
    struct job job;
    if (begin(&job, user, call)) {
        const char *content = hf_json_as_text(hf_json_member(job.args, "content"));
        struct hf_span text = { content ? content : "", content ? strlen(content) : 0 };
        int error = open_folder(&job, true);
        if (error == 0)
            error = lock_folder(&job) ? replace_file(&job, text) : ETIMEDOUT;
        if (error)
            fail_errno(&job, error);
        else
            say_written(&job, "wrote ", text.len);
    }
    end(&job);
}

/* ---- editing ----------------------------------------------------------------------- */

struct edit {
    struct hf_span file;
    struct hf_span old;
    struct hf_span new;
    size_t olds; /* how often they occur */
    size_t news;
    const char *at; /* the first old one */
};

static size_t count_of(struct hf_span text, struct hf_span part, const char **ret_first)
{
    const char *at = text.at, *stop = at + text.len;
    size_t count = 0;
    while (part.len > 0 && (at = memmem(at, (size_t)(stop - at), part.at, part.len))) {
        if (count++ == 0 && ret_first)
            *ret_first = at;
        at++;
    }
    return count;
}

static struct hf_span text_arg(const struct job *job, const char *key)
{
    const char *text = hf_json_as_text(hf_json_member(job->args, key));
    return (struct hf_span){ text ? text : "", text ? strlen(text) : 0 };
}

/* Opens, locks and reads. False: the call is answered. */
static bool begin_edit(struct job *job, struct edit *ret_edit)
{
    struct edit edit = { .old = text_arg(job, "old"), .new = text_arg(job, "new") };
    int error = open_folder(job, false);
    if (error == 0 && !lock_folder(job))
        error = ETIMEDOUT;
    if (error) {
        fail_errno(job, error);
        return false;
    }
    if (!read_text(job, job->folder, job->base, &edit.file))
        return false;
    edit.olds = count_of(edit.file, edit.old, &edit.at);
    edit.news = count_of(edit.file, edit.new, NULL);
    *ret_edit = edit;
    return true;
}

static void apply_edit(struct job *job, const struct edit *edit)
{
    const char *file = edit->file.at;
    size_t before = (size_t)(edit->at - file);
    struct hf_buf text;
    hf_buf_init(&text, job->arena.alloc, 2 * FILE_MAX);
    hf_buf_bytes(&text, file, before);
    hf_buf_bytes(&text, edit->new.at, edit->new.len);
    hf_buf_bytes(&text, edit->at + edit->old.len,
                 edit->file.len - before - edit->old.len);
    int error = hf_buf_state(&text) ? ENOMEM : 0;
    if (error == 0)
        error = replace_file(job, (struct hf_span){ hf_buf_str(&text), text.len });
    if (error)
        fail_errno(job, error);
    else
        say_written(job, "edited ", text.len);
    hf_buf_fini(&text);
}

void files_edit(void *user, struct hf_invocation *call)
{
    struct job job;
    struct edit edit;
    if (begin(&job, user, call) && begin_edit(&job, &edit)) {
        if (edit.olds == 0)
            fail_path(&job, HF_FAILURE_INVALID_REQUEST, "not_found",
                      "the text `old` is not in the file");
        else if (edit.olds > 1)
            fail_path(&job, HF_FAILURE_INVALID_REQUEST, "ambiguous",
                      "the text `old` occurs more than once: quote more of it");
        else
            apply_edit(&job, &edit);
    }
    end(&job);
}

/* Before the edit `old` occurs once, after it `new` occurs. What fits both cannot be told. */
enum hf_probe files_edit_probe(void *user, struct hf_invocation *call)
{
    struct job job;
    struct edit edit;
    enum hf_probe happened = HF_PROBE_CANNOT_TELL;
    if (begin(&job, user, call) && begin_edit(&job, &edit) && edit.new.len > 0) {
        if (edit.olds == 1 && edit.news == 0)
            happened = HF_PROBE_NOT_HAPPENED;
        else if (edit.olds == 0 && edit.news > 0)
            happened = HF_PROBE_HAPPENED;
        if (happened == HF_PROBE_HAPPENED)
            say_written(&job, "edited ", edit.file.len);
    }
    end(&job);
    return happened;
}
