/* Starting commands: what the child gets and does not get, and what is kept of its output. */
#include "support/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/child.h>
#include <holdfast/run.h>

#include "os/tree.h"
#include "run/command/capture.h"

static const char *const plain_env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };

static struct hf_child *started(const char *const *argv, int inherit_fd)
{
    struct hf_child_plan plan = { .size = sizeof(plan),
                                  .argv = argv,
                                  .env = plain_env,
                                  .cwd = "/",
                                  .stdin_fd = -1,
                                  .inherit_fd = inherit_fd };
    struct hf_child *child = NULL;
    struct hf_err err = { 0 };
    if (hf_child_start(hf_alloc_system(), &plan, &child, &err))
        fail_msg("%s", err.message);
    return child;
}

static struct hf_child *shell(const char *script)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    return started(argv, -1);
}

/* All that it writes, and how it ends. */
static struct hf_child_exit finished(struct hf_child *child, char *out, size_t room)
{
    struct hf_child_exit how = { 0 };
    size_t len = 0;
    while (hf_child_output_fd(child, HF_STDOUT) >= 0 ||
           hf_child_output_fd(child, HF_STDERR) >= 0) {
        struct pollfd fds[2];
        for (int s = 0; s < HF_STREAM_COUNT; s++)
            fds[s] = (struct pollfd){ .fd = hf_child_output_fd(child, (enum hf_stream)s),
                                      .events = POLLIN };
        assert_true(poll(fds, 2, 20000) > 0);
        for (int s = 0; s < HF_STREAM_COUNT; s++)
            len += hf_child_read(child, (enum hf_stream)s, out + len, room - 1 - len);
    }
    out[len] = '\0';
    struct pollfd end = { .fd = hf_child_pidfd(child), .events = POLLIN };
    assert_int_equal(poll(&end, 1, 20000), 1);
    assert_true(hf_child_exited(child, &how));
    assert_true(hf_child_exited(child, &how)); /* and from then on */
    return how;
}

static void a_command_gets_its_folder_and_environment_and_nothing_else(void **state)
{
    (void)state;
    char out[4096];
    struct hf_child *child = shell(
        "pwd; /usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= "
        "| sort; ls /proc/self/fd | wc -l; read x; echo $?");
    struct hf_child_exit how = finished(child, out, sizeof(out));
    assert_true(how.known && how.exit_code == 0 && how.signal == 0);
    /* 0, 1, 2 and the folder that ls itself reads; standard input is empty */
    assert_string_equal(out, "/\nA=b\nPATH=/usr/bin:/bin\n4\n1\n");
    hf_child_free(child);
}

static void a_descriptor_that_the_host_forgot_to_mark_stays_here(void **state)
{
    (void)state;
    char out[64];
    int open_fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    assert_true(open_fd > 2);
    struct hf_child *child = shell("ls /proc/self/fd | wc -l");
    (void)finished(child, out, sizeof(out));
    assert_string_equal(out, "4\n");
    hf_child_free(child);
    (void)close(open_fd);
}

static void a_command_leads_a_process_group_of_its_own(void **state)
{
    (void)state;
    char out[64];
    struct hf_child *child = shell("exec sleep 1000");
    assert_int_equal(getpgid(hf_child_pid(child)), hf_child_pid(child));
    hf_child_signal(child, SIGTERM);
    struct hf_child_exit how = finished(child, out, sizeof(out));
    assert_true(how.known && how.signal == SIGTERM);
    hf_child_signal(child, SIGKILL); /* reaped: no process is hit */
    hf_child_free(child);
}

static void signals_that_the_host_ignores_or_blocks_are_the_commands_again(void **state)
{
    (void)state;
    char out[64];
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    struct hf_child *child = shell("grep -E 'Sig(Blk|Ign)' /proc/self/status | "
                                   "tr -d '\\t' | sort -u");
    (void)finished(child, out, sizeof(out));
    assert_string_equal(out, "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
    hf_child_free(child);
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static int refused(const char *name, const char *cwd, struct hf_err *err)
{
    const char *const argv[] = { name, NULL };
    struct hf_child_plan plan = { .size = sizeof(plan),
                                  .argv = argv,
                                  .env = plain_env,
                                  .cwd = cwd,
                                  .stdin_fd = -1,
                                  .inherit_fd = -1 };
    struct hf_child *child = NULL;
    return hf_child_start(hf_alloc_system(), &plan, &child, err);
}

static void what_cannot_be_run_is_an_error_of_the_start(void **state)
{
    (void)state;
    struct hf_err err;
    assert_int_equal(refused("no-such-command", "/", &err), HF_EINVAL);
    assert_string_equal(err.field, "command");
    assert_int_equal(refused("/etc/passwd", "/", &err), HF_EINVAL);
    assert_string_equal(err.field, "command");
    assert_int_equal(refused("/usr", "/", &err), HF_EINVAL);
    assert_int_equal(refused("", "/", &err), HF_EINVAL);
    assert_int_equal(refused("true", "/no/such/folder", &err), HF_EINVAL);
    assert_string_equal(err.field, "cwd");
    assert_int_equal(refused("true", "relative", &err), HF_EINVAL);
    assert_string_equal(err.field, "cwd");
}

/* ---- locks ------------------------------------------------------------------------- */

struct folder {
    char path[64];
    struct hf_arena arena;
};

static int set_up(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    assert_non_null(folder);
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/hf-child-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    hf_arena_init(&folder->arena, hf_alloc_system());
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    hf_arena_fini(&folder->arena);
    assert_int_equal(rmdir(folder->path), 0); /* every lock was removed */
    free(folder);
    return 0;
}

static void a_lock_is_held_until_the_last_of_the_tree_has_gone(void **state)
{
    struct folder *folder = *state;
    struct hf_lockfile lock;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    char out[64];
    assert_int_equal(hf_lock_new(folder->path, hf_random_system(), &lock, NULL), 0);
    /* The shell ends at once; what it left in the background holds the lock. */
    const char *const argv[] = { "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &",
                                 NULL };
    struct hf_child *child = started(argv, lock.fd);
    char path[HF_LOCK_PATH];
    memcpy(path, lock.path, sizeof(path));
    hf_lock_close(&lock);
    (void)finished(child, out, sizeof(out));
    assert_int_equal(hf_lock_look(&folder->arena, path, &facts, &tree), HF_LOCK_HELD);
    assert_int_equal(hf_tree_signal(&tree, 0), 1);
    assert_int_equal(hf_tree_signal(&tree, SIGKILL), 1);
    while (hf_lock_look(&folder->arena, path, &facts, &tree) == HF_LOCK_HELD)
        (void)poll(NULL, 0, 1);
    assert_int_equal(hf_tree_signal(&tree, 0), 0);
    hf_lock_remove(&lock);
    assert_int_equal(hf_lock_look(&folder->arena, path, &facts, &tree), HF_LOCK_GONE);
    hf_child_free(child);
}

static void who_only_looks_at_a_lock_is_not_of_its_tree(void **state)
{
    struct folder *folder = *state;
    struct hf_lockfile lock;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    char out[64];
    int ready[2];
    assert_int_equal(hf_lock_new(folder->path, hf_random_system(), &lock, NULL), 0);
    const char *const argv[] = { "sleep", "1000", NULL };
    struct hf_child *child = started(argv, lock.fd);
    hf_lock_close(&lock);
    assert_int_equal(pipe(ready), 0);
    pid_t peer = fork();
    if (peer == 0) { /* as a monitor does, for a moment; this one takes its time */
        int fd = open(lock.path, O_RDWR);
        if (fd < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        (void)pause();
    }
    assert_int_equal(read(ready[0], out, 1), 1);
    assert_int_equal(hf_lock_look(&folder->arena, lock.path, &facts, &tree),
                     HF_LOCK_HELD);
    assert_int_equal(hf_tree_signal(&tree, SIGKILL), 1);
    struct hf_child_exit how = finished(child, out, sizeof(out));
    assert_int_equal(how.signal, SIGKILL);
    assert_int_equal(waitpid(peer, NULL, WNOHANG), 0); /* it lives */
    assert_int_equal(kill(peer, SIGKILL), 0);
    assert_int_equal(waitpid(peer, NULL, 0), peer);
    (void)close(ready[0]);
    (void)close(ready[1]);
    hf_child_free(child);
    hf_lock_remove(&lock);
}

static void a_lock_file_says_whose_it_is(void **state)
{
    struct folder *folder = *state;
    struct hf_lockfile lock;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    const char *holder = NULL;
    assert_int_equal(hf_lock_new(folder->path, hf_random_system(), &lock, NULL), 0);
    assert_int_equal(hf_lock_look(&folder->arena, lock.path, &facts, &tree),
                     HF_LOCK_HELD);
    assert_null(facts.work_id);
    assert_int_equal(hf_life_describe(&folder->arena, getpid(), NULL, &holder, NULL), 0);
    const struct hf_lock_facts said = { .work_id = "unit",
                                        .attempt = 3,
                                        .disposition = "rerunnable",
                                        .holder = holder,
                                        .group = 77 };
    assert_int_equal(hf_lock_write(&lock, &said, hf_alloc_system(), NULL), 0);
    assert_int_equal(hf_lock_look(&folder->arena, lock.path, &facts, &tree),
                     HF_LOCK_HELD);
    assert_string_equal(facts.work_id, "unit");
    assert_string_equal(facts.disposition, "rerunnable");
    assert_string_equal(facts.holder, holder);
    assert_int_equal(facts.attempt, 3);
    assert_int_equal(facts.group, 77);
    assert_false(hf_life_dead(facts.holder));
    hf_lock_remove(&lock);
}

/* ---- output ------------------------------------------------------------------------ */

/* What the store would hold after every flush, chunk by chunk. */
struct shelf {
    char data[64][HF_OUTPUT_CHUNK];
    size_t len[64];
};

/* Returns how many bytes had been written by then. */
static int64_t collect(struct hf_capture *capture, struct shelf *shelf)
{
    struct hf_output_chunk chunks[HF_CAPTURE_SLOTS];
    struct hf_output_add add = { 0 };
    size_t n = hf_capture_collect(capture, HF_STDERR, chunks, &add);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(chunks[i].stream, HF_STDERR);
        memcpy(shelf->data[chunks[i].chunk], chunks[i].data.at, chunks[i].data.len);
        shelf->len[chunks[i].chunk] = chunks[i].data.len;
    }
    for (int64_t c = add.drop_from[HF_STDERR]; c < add.drop_before[HF_STDERR]; c++)
        shelf->len[c] = 0;
    return capture->bytes;
}

static char byte_at(int64_t i)
{
    return (char)('a' + (i / 7 + i / HF_OUTPUT_CHUNK) % 26);
}

/* `step` bytes at a time, flushed every `every` steps; the store has them only when the next
 * ones are written already. */
static void write_and_check(int64_t total, int64_t step, int every)
{
    struct hf_capture capture;
    struct shelf *shelf = calloc(1, sizeof(*shelf));
    assert_non_null(shelf);
    assert_int_equal(hf_capture_init(&capture, hf_alloc_system(), NULL), 0);
    int64_t at = 0, out = -1;
    for (int n = 1; at < total; n++) {
        char bytes[40000];
        int64_t len = total - at < step ? total - at : step;
        for (int64_t i = 0; i < len; i++)
            bytes[i] = byte_at(at + i);
        hf_capture_add(&capture, bytes, (size_t)len);
        at += len;
        if (out >= 0)
            hf_capture_stored(&capture, out);
        assert_true(hf_capture_dirty(&capture));
        out = n % every == 0 ? collect(&capture, shelf) : -1;
    }
    hf_capture_stored(&capture, collect(&capture, shelf));
    assert_false(hf_capture_dirty(&capture));
    assert_int_equal(capture.bytes, total);
    int64_t last = (total - 1) / HF_OUTPUT_CHUNK;
    for (int64_t c = 0; c < 64; c++) {
        bool kept = c <= last && (c < 4 || c >= last - 4);
        int64_t want = kept ? (c == last ? total - c * HF_OUTPUT_CHUNK : HF_OUTPUT_CHUNK)
                            : 0;
        if ((int64_t)shelf->len[c] != want)
            fail_msg("%lld bytes by %lld: chunk %lld has %zu bytes, not %lld",
                     (long long)total, (long long)step, (long long)c, shelf->len[c],
                     (long long)want);
        for (int64_t i = 0; i < want; i++)
            assert_int_equal(shelf->data[c][i], byte_at(c * HF_OUTPUT_CHUNK + i));
    }
    hf_capture_fini(&capture, hf_alloc_system());
    free(shelf);
}

static void the_head_and_the_tail_of_output_are_kept_whatever_its_length(void **state)
{
    (void)state;
    const int64_t chunk = HF_OUTPUT_CHUNK;
    const int64_t totals[] = { 1,          chunk - 1,      chunk,     chunk + 1,
                               4 * chunk,  8 * chunk,      9 * chunk, 9 * chunk + 1,
                               10 * chunk, 33 * chunk + 5, 60 * chunk };
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        write_and_check(totals[i], 40000, 1000); /* flushed only at the end */
        write_and_check(totals[i], 40000, 1);
        write_and_check(totals[i], 5000, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_gets_its_folder_and_environment_and_nothing_else),
        cmocka_unit_test(a_descriptor_that_the_host_forgot_to_mark_stays_here),
        cmocka_unit_test(a_command_leads_a_process_group_of_its_own),
        cmocka_unit_test(signals_that_the_host_ignores_or_blocks_are_the_commands_again),
        cmocka_unit_test(what_cannot_be_run_is_an_error_of_the_start),
        cmocka_unit_test_setup_teardown(
            a_lock_is_held_until_the_last_of_the_tree_has_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_only_looks_at_a_lock_is_not_of_its_tree,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lock_file_says_whose_it_is, set_up, tear_down),
        cmocka_unit_test(the_head_and_the_tail_of_output_are_kept_whatever_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
