/* The event loop. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/loop.h>

#include "support/unit.h"

struct log {
    struct hf_loop *loop;
    struct hf_timer timers[4];
    char text[256];
};

/* A clock that only waiting moves on. */
struct still {
    struct hf_clock clock;
    hf_ms now;
};

static hf_ms still_now(void *user)
{
    return ((struct still *)user)->now;
}

static void still_wait(void *user, hf_ms ms)
{
    ((struct still *)user)->now += ms;
}

static void still_init(struct still *still)
{
    *still = (struct still){ .clock = { still, still_now, still_now, still_wait } };
}

static void note(struct log *log, const char *word)
{
    size_t used = strlen(log->text);
    if (used + strlen(word) < sizeof(log->text))
        memcpy(log->text + used, word, strlen(word) + 1);
}

static void say_a(void *user)
{
    note(user, "a");
}

static void say_b(void *user)
{
    note(user, "b");
}

static void say_c_and_stop_a(void *user)
{
    struct log *log = user;
    note(log, "c");
    hf_timer_stop(log->loop, &log->timers[0]);
}

static void timers_fire_in_order_and_stop_when_told(void **state)
{
    (void)state;
    struct still still;
    struct log log = { 0 };
    struct hf_err err = { 0 };
    still_init(&still);
    struct hf_loop_config config = { .size = sizeof(config), .clock = &still.clock };
    assert_int_equal(hf_loop_new(&config, &log.loop, &err), 0);
    struct hf_task a = { &log, say_a };
    struct hf_task b = { &log, say_b };
    struct hf_task c = { &log, say_c_and_stop_a };
    assert_int_equal(hf_timer_start(log.loop, &log.timers[0], 86400000, &a), 0);
    assert_int_equal(hf_timer_start(log.loop, &log.timers[1], 500, &b), 0);
    assert_int_equal(hf_timer_start(log.loop, &log.timers[2], 200, &b), 0);
    assert_int_equal(hf_timer_start(log.loop, &log.timers[2], 500, &a), 0); /* moved */
    assert_int_equal(hf_timer_start(log.loop, &log.timers[3], 700, &c), 0);
    assert_int_equal(hf_loop_timeout(log.loop), 500);
    hf_loop_run(log.loop);
    assert_string_equal(log.text, "bac");
    assert_int_equal(still.now, 700); /* and no real time passed */
    hf_timer_stop(log.loop, &log.timers[0]);
    assert_false(hf_loop_step(log.loop, -1));
    hf_loop_free(log.loop);
}

static void a_thousand_timers_fire_sorted(void **state)
{
    (void)state;
    static struct hf_timer timers[1000];
    struct still still;
    struct hf_loop *loop = NULL;
    struct hf_err err = { 0 };
    struct log log = { 0 };
    still_init(&still);
    struct hf_loop_config config = { .size = sizeof(config), .clock = &still.clock };
    assert_int_equal(hf_loop_new(&config, &loop, &err), 0);
    struct hf_task a = { &log, say_a };
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(hf_timer_start(loop, &timers[i], (hf_ms)(i * 7919 % 1000), &a),
                         0);
    for (size_t i = 0; i < 1000; i += 3)
        hf_timer_stop(loop, &timers[i]);
    hf_ms last = 0;
    while (hf_loop_timeout(loop) >= 0) {
        (void)hf_loop_step(loop, -1);
        assert_true(still.now >= last);
        last = still.now;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(timers[i].place, 0);
    hf_loop_free(loop);
}

static void *post_from_thread(void *user)
{
    struct log *log = user;
    struct hf_task a = { log, say_a };
    struct hf_task b = { log, say_b };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_loop_post(log->loop, &a), 0);
        assert_int_equal(hf_loop_post(log->loop, &b), 0);
    }
    hf_loop_stop(log->loop);
    return NULL;
}

static void messages_of_another_thread_arrive_in_order(void **state)
{
    (void)state;
    struct log log = { 0 };
    struct hf_err err = { 0 };
    pthread_t thread;
    assert_int_equal(hf_loop_new(NULL, &log.loop, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, post_from_thread, &log), 0);
    while (strlen(log.text) < 6)
        (void)hf_loop_step(log.loop, 1000);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(log.text, "ababab");
    hf_loop_free(log.loop);
}

static void what_was_posted_is_called_when_the_loop_is_freed(void **state)
{
    (void)state;
    struct log log = { 0 };
    struct hf_err err = { 0 };
    assert_int_equal(hf_loop_new(NULL, &log.loop, &err), 0);
    struct hf_task a = { &log, say_a };
    assert_int_equal(hf_loop_post(log.loop, &a), 0);
    hf_loop_free(log.loop);
    assert_string_equal(log.text, "a");
}

struct reader {
    struct hf_watch *watch;
    int fd;
    int got;
};

static void on_ready(void *user, int events)
{
    struct reader *reader = user;
    char byte = 0;
    assert_int_equal(events, HF_READABLE);
    reader->got += (int)read(reader->fd, &byte, 1);
    if (reader->got == 2) {
        hf_watch_free(reader->watch);
        reader->watch = NULL;
    }
}

static void a_descriptor_is_watched_until_the_watch_is_freed(void **state)
{
    (void)state;
    struct hf_loop *loop = NULL;
    struct hf_err err = { 0 };
    struct reader reader = { 0 };
    struct hf_watcher watcher = { &reader, on_ready };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(hf_loop_new(NULL, &loop, &err), 0);
    reader.fd = ends[0];
    assert_int_equal(
        hf_watch_new(loop, ends[0], HF_READABLE, &watcher, &reader.watch, &err), 0);
    assert_int_equal(write(ends[1], "xyz", 3), 3);
    hf_loop_run(loop); /* ends with the watch */
    assert_int_equal(reader.got, 2);
    assert_int_equal(hf_watch_new(loop, 999, HF_READABLE, &watcher, &reader.watch, &err),
                     HF_EINVAL);
    hf_loop_free(loop);
    close(ends[0]);
    close(ends[1]);
}

static void on_child(void *user, int events)
{
    struct reader *child = user;
    (void)events;
    child->got++;
    hf_watch_free(child->watch);
}

static void a_child_that_ends_is_noticed_without_a_signal_handler(void **state)
{
    (void)state;
    struct hf_loop *loop = NULL;
    struct hf_err err = { 0 };
    struct reader child = { 0 };
    struct hf_watcher watcher = { &child, on_child };
    struct sigaction action;
    int status = 0;
    assert_int_equal(hf_loop_new(NULL, &loop, &err), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    assert_int_equal(hf_watch_child(loop, pid, &watcher, &child.watch, &err), 0);
    hf_loop_run(loop);
    assert_int_equal(child.got, 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(sigaction(SIGCHLD, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
    assert_int_equal(hf_watch_child(loop, pid, &watcher, &child.watch, &err),
                     HF_ENOTFOUND);
    hf_loop_free(loop);
}

static void wait_for_byte(void *user)
{
    char byte = 0;
    assert_int_equal(read(*(int *)user, &byte, 1), 1);
}

static void blocking_work_is_bounded_and_its_end_is_told(void **state)
{
    (void)state;
    struct log log = { 0 };
    struct hf_err err = { 0 };
    struct hf_loop_config config = { .size = sizeof(config), .work_max = 2 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(hf_loop_new(&config, &log.loop, &err), 0);
    struct hf_task work = { &ends[0], wait_for_byte };
    struct hf_task done = { &log, say_a };
    assert_int_equal(hf_loop_work(log.loop, &work, &done, &err), 0);
    assert_int_equal(hf_loop_work(log.loop, &work, &done, &err), 0);
    assert_int_equal(hf_loop_work(log.loop, &work, &done, &err), HF_EBUSY);
    assert_string_equal(log.text, "");
    assert_int_equal(write(ends[1], "xy", 2), 2);
    hf_loop_run(log.loop);
    assert_string_equal(log.text, "aa");
    hf_loop_free(log.loop);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_and_stop_when_told),
        cmocka_unit_test(a_thousand_timers_fire_sorted),
        cmocka_unit_test(messages_of_another_thread_arrive_in_order),
        cmocka_unit_test(what_was_posted_is_called_when_the_loop_is_freed),
        cmocka_unit_test(a_descriptor_is_watched_until_the_watch_is_freed),
        cmocka_unit_test(a_child_that_ends_is_noticed_without_a_signal_handler),
        cmocka_unit_test(blocking_work_is_bounded_and_its_end_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
