/* One execution of a command for a tool call, under the lock of the call (execution.h). It is a
 * machine that is stepped: it first ends what is left of an earlier execution (clearing), then
 * starts the command, reads its output, and ends what it left behind. It is over when no process
 * of the call is left. */
#include "agent/tool/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

#define CLEAR_MS 10000 /* how long a start waits for other executions to end */
#define KILL_MS 5000
#define AGAIN_MS 1000
#define LOOK_MS 20 /* processes without a descriptor to wait for are looked at so often */
#define ROUNDS 64  /* reads of a stream per step */

static hf_ms now_of(const struct tool_execution *run)
{
    return run->clock->mono_ms(run->clock->user);
}

/* ---- output ------------------------------------------------------------------------ */

static bool capture_init(struct tool_capture *capture, const struct hf_alloc *alloc,
                         size_t room)
{
    *capture = (struct tool_capture){ .head_room = room / 2,
                                      .tail_room = room - room / 2 };
    capture->memory = alloc->realloc(alloc->user, NULL, room + 1);
    return capture->memory != NULL;
}

static void capture_add(struct tool_capture *capture, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t at = (size_t)capture->bytes;
        size_t room = capture->head_room - at;
        if (at >= capture->head_room) {
            size_t round = (at - capture->head_room) % capture->tail_room;
            at = capture->head_room + round;
            room = capture->tail_room - round;
        }
        size_t now = len < room ? len : room;
        memcpy(capture->memory + at, bytes, now);
        capture->bytes += (int64_t)now;
        bytes += now;
        len -= now;
    }
}

static void put_cut(struct hf_buf *out, int64_t left_out, int64_t all)
{
    hf_buf_text(out, "\n[cut: ");
    hf_buf_i64(out, left_out);
    hf_buf_text(out, " of ");
    hf_buf_i64(out, all);
    hf_buf_text(out, " bytes are left out]\n");
}

/* Characters that the cut divides are left out too. */
static void capture_put(const struct tool_capture *capture, struct hf_buf *out)
{
    int64_t most = (int64_t)(capture->head_room + capture->tail_room);
    const char *tail = capture->memory + capture->head_room;
    if (capture->bytes <= most) {
        hf_buf_bytes(out, capture->memory, (size_t)capture->bytes);
        return;
    }
    size_t head = hf_utf8_cut(capture->memory, capture->head_room);
    size_t from = (size_t)(capture->bytes - (int64_t)capture->head_room) %
                  capture->tail_room;
    size_t skip = 0;
    while (skip < 4 &&
           ((unsigned char)tail[(from + skip) % capture->tail_room] & 0xC0) == 0x80)
        skip++;
    size_t kept = capture->tail_room - skip;
    hf_buf_bytes(out, capture->memory, head);
    put_cut(out, capture->bytes - (int64_t)(head + kept), capture->bytes);
    from = (from + skip) % capture->tail_room;
    size_t first = capture->tail_room - from < kept ? capture->tail_room - from : kept;
    hf_buf_bytes(out, tail + from, first);
    hf_buf_bytes(out, tail, kept - first);
}

void tool_put_output(const struct tool_execution *run, struct hf_buf *out)
{
    const struct tool_capture *errors = &run->capture[HF_STDERR];
    capture_put(&run->capture[HF_STDOUT], out);
    if (errors->bytes == 0)
        return;
    if (out->len > 0 && out->at[out->len - 1] != '\n')
        hf_buf_char(out, '\n');
    hf_buf_text(out, "[standard error]\n");
    capture_put(errors, out);
}

static void read_output(struct tool_execution *run, enum hf_stream stream)
{
    char bytes[16384];
    for (int i = 0; i < ROUNDS && !run->at_end[stream]; i++) {
        ssize_t got = read(run->output[stream], bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got > 0)
            capture_add(&run->capture[stream], bytes, (size_t)got);
        else
            run->at_end[stream] = true;
    }
}

static void read_both(struct tool_execution *run)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        read_output(run, (enum hf_stream)s);
}

/* ---- starting ---------------------------------------------------------------------- */

int tool_begin(struct tool_execution *run, const struct hf_alloc *alloc,
               const struct hf_clock *clock, const struct tool_command *command,
               struct hf_err *err)
{
    size_t room = command->output_bytes;
    *run = (struct tool_execution){
        .alloc = alloc, .clock = clock, .command = command, .output = { -1, -1 }
    };
    hf_arena_init_small(&run->arena, alloc, 1024, 8192);
    run->begun = run->term_at = now_of(run);
    int rc = capture_init(&run->capture[HF_STDOUT], alloc, room - room / 4) &&
                     capture_init(&run->capture[HF_STDERR], alloc, room / 4)
                 ? 0
                 : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = hf_child_lock_new(alloc, &command->lock, &run->lock, err);
    if (rc)
        tool_fini(run);
    return rc;
}

/* The environment with the path of the lock. */
static const char *const *make_env(struct tool_execution *run)
{
    size_t count = 0;
    while (run->command->env[count])
        count++;
    const char **env = hf_arena_array(&run->arena, count + 2, sizeof(*env));
    char *mark = hf_arena_join(&run->arena, HF_CHILD_LOCK_VARIABLE "=",
                               hf_child_lock_path(run->lock));
    if (!env || !mark)
        return NULL;
    memcpy(env, run->command->env, count * sizeof(*env));
    env[count] = mark;
    env[count + 1] = NULL;
    return env;
}

/* A file and no pipe: writing to it can neither block nor raise SIGPIPE. */
static int make_input(const struct tool_execution *run)
{
    const char *at = run->command->input.at;
    size_t left = run->command->input.len;
    int fd = memfd_create("holdfast-input", MFD_CLOEXEC);
    while (fd >= 0 && left > 0) {
        ssize_t put = write(fd, at, left);
        if (put <= 0) {
            (void)close(fd);
            return -1;
        }
        at += put;
        left -= (size_t)put;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET); /* a file of this process: it cannot fail */
    return fd;
}

static bool make_pipes(struct tool_execution *run, int ret_write[HF_STREAM_COUNT])
{
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        run->output[s] = ends[0];
        ret_write[s] = ends[1];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* a pipe takes this flag */
    }
    return true;
}

static int start_child(struct tool_execution *run)
{
    int write_ends[HF_STREAM_COUNT] = { -1, -1 };
    const char *const *env = make_env(run);
    int input = env ? make_input(run) : -1;
    int rc = env ? 0 : hf_fail_plain(&run->err, HF_ENOMEM);
    if (rc == 0 && (input < 0 || !make_pipes(run, write_ends)))
        rc = hf_fail(&run->err, HF_EBUSY, NULL, "cannot start a process: %s",
                     strerror(errno));
    struct hf_child_plan plan = { .size = sizeof plan,
                                  .argv = run->command->argv,
                                  .env = env,
                                  .cwd = run->command->folder,
                                  .stdin_fd = input,
                                  .inherit_fd = hf_child_lock_fd(run->lock),
                                  .output_fds = write_ends };
    if (rc == 0)
        rc = hf_child_start(run->alloc, &plan, &run->child, &run->err);
    if (input >= 0)
        (void)close(input);
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        if (write_ends[s] >= 0)
            (void)close(write_ends[s]); /* the command has them */
    return rc;
}

static void give_up(struct tool_execution *run, int code)
{
    run->code = code;
    run->phase = TOOL_OVER;
}

/* Ends other executions, then starts the command. */
static void clear_way(struct tool_execution *run, hf_ms now)
{
    size_t left = 0;
    int signal = now - run->begun >= KILL_MS ? SIGKILL
                 : now >= run->term_at       ? SIGTERM
                                             : 0;
    if (signal)
        run->term_at = now + AGAIN_MS;
    int rc = hf_child_lock_clear(run->lock, signal, &left, &run->err);
    if (rc == 0 && left > 0 && now - run->begun >= CLEAR_MS)
        rc = hf_fail(&run->err, HF_EHELD, "call",
                     "processes of an earlier execution still run on this machine");
    if (rc == 0 && left > 0)
        return;
    if (rc == 0)
        rc = start_child(run);
    if (rc) {
        give_up(run, rc);
        return;
    }
    hf_child_lock_pass(run->lock, run->child);
    run->deadline = now_of(run) + run->command->timeout_ms;
    run->phase = TOOL_RUNNING;
}

/* ---- ending ------------------------------------------------------------------------ */

static void end_processes(struct tool_execution *run, hf_ms now)
{
    if (run->kill_at)
        return;
    run->kill_at = now + KILL_MS;
    (void)hf_child_lock_signal(run->lock, SIGTERM);
    hf_child_signal(run->child, SIGTERM);
    hf_child_signal(run->child, SIGCONT); /* a stopped process takes no other signal */
}

void tool_stop(struct tool_execution *run)
{
    run->stopped = true;
    if (run->phase == TOOL_CLEARING)
        run->phase = TOOL_OVER;
    else if (run->phase == TOOL_RUNNING)
        end_processes(run, now_of(run));
}

static void kill_processes(struct tool_execution *run, hf_ms now)
{
    if (!run->kill_at || now < run->kill_at)
        return;
    hf_child_signal(run->child, SIGKILL);
    (void)hf_child_lock_signal(run->lock, SIGKILL);
    run->kill_at = now + AGAIN_MS;
}

/* The lock and the group tell cheaply that nothing is left. */
static bool processes_left(const struct tool_execution *run)
{
    pid_t group = hf_child_pid(run->child);
    bool grouped = kill(-group, 0) == 0 || errno == EPERM;
    if (!grouped && !hf_child_lock_held(run->lock))
        return false;
    return hf_child_lock_signal(run->lock, 0) > 0;
}

static void tend_child(struct tool_execution *run, hf_ms now)
{
    if (!run->exited && hf_child_exited(run->child, &run->exit)) {
        run->exited = true;
        run->phase = TOOL_ENDING;
        run->kill_at = 0;
    }
    if (!run->exited && now >= run->deadline && !run->kill_at) {
        run->timed_out = true;
        end_processes(run, now);
    }
    kill_processes(run, now);
    if (!run->exited)
        return;
    if (processes_left(run)) {
        end_processes(run, now);
        return;
    }
    read_both(run);
    run->phase = TOOL_OVER;
}

bool tool_step(struct tool_execution *run)
{
    hf_ms now = now_of(run);
    if (run->phase == TOOL_CLEARING)
        clear_way(run, now);
    if (run->phase == TOOL_RUNNING || run->phase == TOOL_ENDING) {
        read_both(run);
        tend_child(run, now);
    }
    return run->phase == TOOL_OVER;
}

hf_ms tool_wait(const struct tool_execution *run)
{
    if (run->phase != TOOL_RUNNING)
        return LOOK_MS;
    hf_ms due = run->kill_at ? run->kill_at : run->deadline;
    hf_ms left = due - now_of(run);
    return left > 0 ? left : 0;
}

void tool_fini(struct tool_execution *run)
{
    if (run->child && run->phase != TOOL_OVER) {
        hf_child_signal(run->child, SIGKILL);
        (void)hf_child_lock_signal(run->lock, SIGKILL);
    }
    hf_child_free(run->child);
    hf_child_lock_free(run->lock);
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        if (run->output[s] >= 0)
            (void)close(run->output[s]);
        run->alloc->free(run->alloc->user, run->capture[s].memory);
    }
    hf_arena_fini(&run->arena);
}
