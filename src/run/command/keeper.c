/* The output of an owner_bound command outlives its runner: it is moved from pipes into files, and
 * a second process, the keeper, continues with that when the runner has gone. keeper.h has the
 * whole of it. */
#include "run/command/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/sys/store.h>

#include "base/err.h"
#include "run/command/capture.h"
#include "store/api/work.h"

#define PUNCH_EVERY ((int64_t)1 << 20) /* bytes between two calls to the file system */
/* Chunks before the tail that stay for a while, for readers that saw a smaller file. */
#define PUNCH_MARGIN (PUNCH_EVERY / HF_OUTPUT_CHUNK)
#define MOVE_MAX ((size_t)65536)
#define KEEPER_FDS 5

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static int open_file(const char *lock_path, enum hf_stream stream, int flags)
{
    char path[HF_LOCK_PATH];
    return hf_lock_output(lock_path, stream, path)
               ? open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600)
               : -1;
}

void hf_keeper_remove(const char *lock_path)
{
    char path[HF_LOCK_PATH];
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        if (hf_lock_output(lock_path, (enum hf_stream)s, path))
            (void)unlink(path); /* most executions have none */
}

/* ---- moving ------------------------------------------------------------------------ */
/* Only what a signal handler may do: the keeper is forked from a process with threads. */

/* splice moves bytes and counts them in the file's size in one system call: a process that
 * is killed has either moved them or not. It cannot write to every file system. */
static ssize_t move_some(const struct hf_keeper_stream *kept, size_t most)
{
    char bytes[16384];
    off_t at = (off_t)kept->bytes;
    ssize_t moved = splice(kept->pipe, NULL, kept->file, &at, most, SPLICE_F_NONBLOCK);
    if (moved >= 0 || errno != EINVAL)
        return moved;
    ssize_t got = read(kept->pipe, bytes, most < sizeof bytes ? most : sizeof bytes);
    if (got <= 0)
        return got;
    ssize_t put = pwrite(kept->file, bytes, (size_t)got, (off_t)kept->bytes);
    if (put == got)
        return got;
    errno = EIO;
    return -1;
}

/* Returns the blocks between head and tail. False when the file has grown too
 * large. */
static bool punch(struct hf_keeper_stream *kept)
{
    if (kept->bytes - kept->punched < PUNCH_EVERY)
        return true;
    off_t from = (off_t)(HF_CAPTURE_HEAD * HF_OUTPUT_CHUNK);
    int64_t to = hf_capture_tail(kept->bytes) - PUNCH_MARGIN;
    if (to <= HF_CAPTURE_HEAD)
        return true;
    int rc = fallocate(kept->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
                       (off_t)(to * HF_OUTPUT_CHUNK) - from);
    if (rc == 0)
        kept->punched = kept->bytes;
    return rc == 0 || kept->bytes < HF_KEEPER_FILE_MAX;
}

/* Moves at most `most` bytes; returns how many, 0 at the end, -1 with errno. */
static ssize_t keep(struct hf_keeper_stream *kept, size_t most)
{
    ssize_t moved = move_some(kept, most);
    if (moved > 0)
        kept->bytes += moved;
    return moved;
}

/* ---- the keeper -------------------------------------------------------------------- */

static bool passes(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* A file that cannot be written must not stop the command: its output is read and dropped. */
static void drop_some(struct hf_keeper_stream *kept)
{
    char bytes[16384];
    ssize_t got = read(kept->pipe, bytes, sizeof bytes);
    if (got == 0 || (got < 0 && !passes(errno)))
        kept->pipe = -1;
}

static void keep_stream(struct hf_keeper_stream *kept)
{
    if (kept->file < 0) {
        drop_some(kept);
        return;
    }
    ssize_t moved = keep(kept, MOVE_MAX);
    if (moved == 0)
        kept->pipe = -1;
    if ((moved < 0 && !passes(errno)) || (moved > 0 && !punch(kept)))
        kept->file = -1; /* stays open: its lock says that this process reads */
}

static void await_runner_end(int alive)
{
    struct pollfd ask = { .fd = alive, .events = POLLIN };
    while (poll(&ask, 1, -1) != 1)
        if (errno != EINTR)
            return;
}

static _Noreturn void keep_on(struct hf_keeper_stream *kept, int alive)
{
    await_runner_end(alive);
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        struct stat at;
        if (fstat(kept[s].file, &at) != 0)
            _exit(1);
        kept[s].bytes = at.st_size;
        kept[s].punched = 0;
    }
    while (kept[0].pipe >= 0 || kept[1].pipe >= 0) {
        struct pollfd fds[HF_STREAM_COUNT];
        for (int s = 0; s < HF_STREAM_COUNT; s++)
            fds[s] = (struct pollfd){ .fd = kept[s].pipe, .events = POLLIN };
        if (poll(fds, HF_STREAM_COUNT, -1) < 0 && errno != EINTR)
            _exit(1);
        for (int s = 0; s < HF_STREAM_COUNT; s++)
            if (fds[s].fd >= 0 && fds[s].revents)
                keep_stream(&kept[s]);
    }
    _exit(0);
}

/* Nothing of the runner may stay open here: neither its terminal and pipes, for whose end
 * others wait, nor the lock of the execution, which says that the command runs. */
static bool take_descriptors(const int wanted[KEEPER_FDS])
{
    int high[KEEPER_FDS];
    bool good = true;
    for (int i = 0; i < KEEPER_FDS; i++)
        high[i] = fcntl(wanted[i], F_DUPFD, KEEPER_FDS);
    for (int i = 0; i < KEEPER_FDS; i++)
        good = good && high[i] >= 0 && dup2(high[i], i) == i;
    return good && syscall(SYS_close_range, (unsigned)KEEPER_FDS, ~0U, 0U) == 0;
}

/* One line of /proc/self/maps: "FROM-TO rwxs …", in hexadecimal. */
static void unmap_if_shared(const char *line, const char *end)
{
    uintptr_t bounds[2] = { 0, 0 };
    int at = 0;
    for (; line < end && at < 2; line++) {
        int digit = *line <= '9' ? *line - '0' : *line - 'a' + 10;
        if (*line == '-' || *line == ' ')
            at++;
        else
            bounds[at] = bounds[at] * 16 + (uintptr_t)digit;
    }
    if (end - line >= 4 && line[3] == 's')
        (void)munmap((void *)bounds[0], bounds[1] - bounds[0]);
}

/* A mapping of a file keeps the locks of the descriptor that it was made of, though that is
 * closed: the store's own, for one, if the runner is killed while it has its turn there. */
static void drop_shared_memory(void)
{
    char text[65536];
    size_t kept = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, text + kept, sizeof text - kept)) > 0) {
        char *line = text, *end = text + kept + (size_t)got, *next;
        while ((next = memchr(line, '\n', (size_t)(end - line)))) {
            unmap_if_shared(line, next);
            line = next + 1;
        }
        kept = (size_t)(end - line);
        memmove(text, line, kept);
    }
    if (fd >= 0)
        (void)close(fd);
}

static void ignore_stops(void)
{
    static const int stops[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ };
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL); /* KILL and STOP refuse, and need nothing */
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
        (void)signal(stops[i], SIG_IGN);
}

static _Noreturn void become_keeper(const struct hf_keeper *keeper, int alive)
{
    const int wanted[KEEPER_FDS] = { keeper->kept[0].pipe, keeper->kept[1].pipe,
                                     keeper->kept[0].file, keeper->kept[1].file, alive };
    struct hf_keeper_stream kept[HF_STREAM_COUNT] = { { .pipe = 0, .file = 2 },
                                                      { .pipe = 1, .file = 3 } };
    (void)setsid();
    ignore_stops();
    /* Before the runner continues: a keeper that still had the command's lock open would be
     * counted, and ended, as a process of the command. */
    if (!take_descriptors(wanted) || chdir("/") != 0)
        _exit(1);
    if (fork() != 0) /* the other is adopted by init: the host has no child to reap */
        _exit(0);
    (void)prctl(PR_SET_NAME, "hf-keeper");
    drop_shared_memory();
    keep_on(kept, 4);
}

/* ---- the runner -------------------------------------------------------------------- */

static int cannot(struct hf_err *err, const char *what)
{
    int code = errno == ENOSPC || errno == EDQUOT ? HF_EFULL : HF_ESTOREIO;
    return hf_fail(err, code, "output", "cannot make %s for the command's output: %s",
                   what, strerror(errno));
}

static int open_kept(struct hf_keeper_stream *kept, const char *lock_path,
                     enum hf_stream stream, int *ret_write, struct hf_err *err)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int ends[2];
    kept->file = open_file(lock_path, stream, O_RDWR | O_CREAT | O_EXCL);
    if (kept->file < 0 || fcntl(kept->file, F_OFD_SETLK, &whole) != 0)
        return cannot(err, "a file");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cannot(err, "a pipe");
    kept->pipe = ends[0];
    *ret_write = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : cannot(err, "a pipe");
}

static int fork_keeper(struct hf_keeper *keeper, struct hf_err *err)
{
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) != 0)
        return cannot(err, "a pipe");
    pid_t pid = fork();
    if (pid == 0)
        become_keeper(keeper, alive[0]);
    (void)close(alive[0]);
    keeper->alive = alive[1];
    if (pid < 0)
        return hf_fail(err, HF_EBUSY, NULL, "cannot start a process: %s",
                       strerror(errno));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

int hf_keeper_start(struct hf_keeper *keeper, const struct hf_lockfile *lock,
                    int ret_write[HF_STREAM_COUNT], struct hf_err *err)
{
    int rc = 0;
    *keeper = (struct hf_keeper){ .started = true, .alive = -1 };
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        keeper->kept[s] = (struct hf_keeper_stream){ .pipe = -1, .file = -1 };
        ret_write[s] = -1;
    }
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++)
        rc = open_kept(&keeper->kept[s], lock->path, (enum hf_stream)s, &ret_write[s],
                       err);
    if (rc == 0)
        rc = fork_keeper(keeper, err);
    if (rc == 0)
        return 0;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        close_fd(&ret_write[s]);
    hf_keeper_end(keeper);
    hf_keeper_remove(lock->path);
    return rc;
}

void hf_keeper_end(struct hf_keeper *keeper)
{
    if (!keeper->started)
        return;
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        close_fd(&keeper->kept[s].pipe);
        close_fd(&keeper->kept[s].file);
    }
    close_fd(&keeper->alive);
    keeper->started = false;
}

static size_t read_pipe(struct hf_keeper_stream *kept, char *ret_bytes, size_t room)
{
    ssize_t got = read(kept->pipe, ret_bytes, room);
    if (got == 0 || (got < 0 && !passes(errno)))
        close_fd(&kept->pipe);
    return got > 0 ? (size_t)got : 0;
}

size_t hf_keeper_read(struct hf_keeper *keeper, enum hf_stream stream, char *ret_bytes,
                      size_t room)
{
    struct hf_keeper_stream *kept = &keeper->kept[stream];
    if (kept->pipe < 0 || room == 0)
        return 0;
    if (kept->file < 0)
        return read_pipe(kept, ret_bytes, room);
    ssize_t moved = keep(kept, room);
    if (moved < 0 && passes(errno))
        return 0;
    if (moved == 0) {
        close_fd(&kept->pipe);
        return 0;
    }
    ssize_t got = moved < 0 ? -1
                            : pread(kept->file, ret_bytes, (size_t)moved,
                                    (off_t)(kept->bytes - moved));
    if (got == moved && punch(kept))
        return (size_t)got;
    /* The file is full, broken or too large: the rest goes without it. */
    close_fd(&kept->file);
    return got > 0 ? (size_t)got : read_pipe(kept, ret_bytes, room);
}

/* ---- after the runner's death ------------------------------------------------------- */

bool hf_keeper_left(const char *lock_path)
{
    char path[HF_LOCK_PATH];
    struct stat at;
    bool left = false;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        left |= hf_lock_output(lock_path, (enum hf_stream)s, path) &&
                stat(path, &at) == 0;
    return left;
}

struct collected {
    struct hf_output_chunk chunks[HF_STREAM_COUNT * HF_CAPTURE_SLOTS];
    char *memory; /* HF_OUTPUT_CHUNK bytes for each of them */
    struct hf_output_add add;
};

static bool read_chunk(struct collected *all, int fd, enum hf_stream stream,
                       int64_t chunk, int64_t bytes)
{
    int64_t at = chunk * HF_OUTPUT_CHUNK, left = bytes - at;
    size_t n = all->add.chunk_count;
    size_t len = (size_t)(left < HF_OUTPUT_CHUNK ? left : HF_OUTPUT_CHUNK);
    char *room = all->memory + n * HF_OUTPUT_CHUNK;
    all->chunks[n] = (struct hf_output_chunk){ .stream = stream,
                                               .chunk = chunk,
                                               .data = { room, len } };
    all->add.chunk_count++;
    return pread(fd, room, len, (off_t)at) == (ssize_t)len;
}

/* The chunks that are kept of a stream of `bytes` bytes, from `since` on. False when the
 * keeper released one of them meanwhile: then there is a later tail to be read. */
static bool read_kept(struct collected *all, int fd, enum hf_stream stream, int64_t since,
                      int64_t bytes)
{
    struct stat at;
    int64_t tail = hf_capture_tail(bytes), last = (bytes - 1) / HF_OUTPUT_CHUNK;
    bool good = true;
    for (int64_t c = since / HF_OUTPUT_CHUNK; good && c < HF_CAPTURE_HEAD && c <= last;
         c++)
        good = read_chunk(all, fd, stream, c, bytes);
    int64_t from = since / HF_OUTPUT_CHUNK > tail ? since / HF_OUTPUT_CHUNK : tail;
    for (int64_t c = from; good && c <= last; c++)
        good = read_chunk(all, fd, stream, c, bytes);
    all->add.drop_from[stream] = HF_CAPTURE_HEAD;
    all->add.drop_before[stream] = tail;
    return good && fstat(fd, &at) == 0 &&
           hf_capture_tail(at.st_size) - PUNCH_MARGIN <= tail;
}

static bool collect_stream(struct collected *all, const char *lock_path,
                           enum hf_stream stream, int64_t *bytes)
{
    struct stat at;
    bool good = false;
    int fd = open_file(lock_path, stream, O_RDONLY);
    size_t before = all->add.chunk_count;
    if (fd < 0)
        return errno == ENOENT; /* another process has collected it */
    for (int tries = 0; !good && tries < 8 && fstat(fd, &at) == 0; tries++) {
        all->add.chunk_count = before;
        good = at.st_size <= *bytes ||
               read_kept(all, fd, stream, *bytes, (int64_t)at.st_size);
    }
    (void)close(fd);
    if (good && at.st_size > *bytes)
        *bytes = at.st_size;
    else
        all->add.chunk_count = before;
    return good;
}

static char *chunk_memory(const struct hf_alloc *alloc)
{
    return alloc->realloc(alloc->user, NULL,
                          (size_t)HF_STREAM_COUNT * HF_CAPTURE_SLOTS * HF_OUTPUT_CHUNK);
}

static int show_stream(struct collected *all, const char *lock_path,
                       enum hf_stream stream, struct hf_output *output)
{
    struct hf_output_view stored = hf_output_view(output, stream);
    int64_t bytes = 0;
    int rc = 0;
    all->add.chunk_count = 0;
    if (!collect_stream(all, lock_path, stream, &bytes) || bytes <= stored.bytes)
        return 0;
    hf_output_forget(output, stream, all->add.attempt);
    for (size_t i = 0; rc == 0 && i < all->add.chunk_count; i++)
        rc = hf_output_put(output, stream, all->add.attempt, all->chunks[i].chunk,
                           all->chunks[i].data);
    return rc;
}

int hf_keeper_show(const struct hf_alloc *alloc, const char *lock_path, int64_t attempt,
                   struct hf_output *output)
{
    struct collected all = { .add = { .attempt = attempt } };
    int64_t stored = hf_output_view(output, HF_STDOUT).attempt;
    int rc = 0;
    if (attempt < stored)
        return 0;
    all.memory = chunk_memory(alloc);
    if (!all.memory)
        return HF_ENOMEM;
    for (int s = 0; s < HF_STREAM_COUNT && attempt > stored; s++)
        hf_output_forget(output, (enum hf_stream)s, attempt);
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++)
        rc = show_stream(&all, lock_path, (enum hf_stream)s, output);
    alloc->free(alloc->user, all.memory);
    return rc;
}

int hf_keeper_collect(struct hf_store *store, const struct hf_caller *who,
                      const char *lock_path, const struct hf_lock_facts *facts,
                      int64_t bytes[HF_STREAM_COUNT], struct hf_err *err)
{
    const struct hf_alloc *alloc = store->alloc;
    int64_t now[HF_STREAM_COUNT];
    struct collected all = { .add = { .size = sizeof all.add,
                                      .id = facts->work_id,
                                      .attempt = facts->attempt,
                                      .chunks = all.chunks } };
    all.memory = chunk_memory(alloc);
    if (!all.memory)
        return hf_fail_plain(err, HF_ENOMEM);
    bool whole = true;
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        now[s] = bytes[s];
        whole = collect_stream(&all, lock_path, (enum hf_stream)s, &now[s]) && whole;
    }
    int rc = all.add.chunk_count ? hf_output_add(store, who, &all.add, err) : 0;
    if (rc == 0)
        memcpy(bytes, now, sizeof now);
    if (rc == 0 && !whole)
        rc = hf_fail(err, HF_EBUSY, "output", "the output of %s could not be read",
                     facts->work_id);
    alloc->free(alloc->user, all.memory);
    return rc;
}
