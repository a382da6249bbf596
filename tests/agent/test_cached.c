/* A provider of a host's own, with a session that it keeps between calls: its close talks to the
 * peer, may be repeated, and is told when the peer has answered. Free does not talk. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/loop.h>

#include "agent/kit.h"

/* The other side of a session: answers each byte, 'c' for a call and 'q' for a farewell, with the
 * same byte, and notes it. */
struct peer {
    int fd;
    pthread_t thread;
    char heard[16];
};

static void *answer(void *user)
{
    struct peer *peer = user;
    char byte = 0;
    for (size_t i = 0; i + 1 < sizeof(peer->heard) && read(peer->fd, &byte, 1) == 1;
         i++) {
        peer->heard[i] = byte;
        if (send(peer->fd, &byte, 1, MSG_NOSIGNAL) != 1)
            break;
    }
    close(peer->fd);
    return NULL;
}

struct waiting {
    struct hf_closed closed;
    struct waiting *next;
};

/* One session, made by the first call. One call at a time is enough here. */
struct cached {
    struct hf_provider handle;
    struct hf_loop *loop;
    struct peer peer;
    int fd; /* -1: no session */
    struct hf_watch *watch;
    struct hf_model_sink sink;
    uint64_t call; /* that runs; 0: none */
    uint64_t last;
    bool closed;
    struct waiting *waiting;
    struct hf_timer timer;
};

static void end_session(struct cached *cached)
{
    if (cached->fd < 0)
        return;
    hf_watch_free(cached->watch);
    close(cached->fd);
    cached->fd = -1;
    pthread_join(cached->peer.thread, NULL);
}

static void tell_closed(void *user)
{
    struct cached *cached = user;
    while (cached->waiting) {
        struct waiting *waiting = cached->waiting;
        cached->waiting = waiting->next;
        waiting->closed.closed(waiting->closed.user);
        free(waiting);
    }
}

static void on_byte(void *user, int events)
{
    struct cached *cached = user;
    char byte = 0;
    (void)events;
    assert_int_equal(read(cached->fd, &byte, 1), 1);
    if (byte == 'q') {
        end_session(cached);
        tell_closed(cached);
    } else if (cached->call) {
        struct hf_part part = { .content = span("hello") };
        struct hf_llm_response response = { .size = sizeof(response),
                                            .parts = &part,
                                            .part_count = 1 };
        struct hf_model_event event = { .kind = HF_MODEL_END, .response = &response };
        cached->call = 0;
        cached->sink.event(cached->sink.user, &event);
    }
}

static void send_byte(struct cached *cached, char byte)
{
    assert_int_equal(write(cached->fd, &byte, 1), 1);
}

static void begin_session(struct cached *cached)
{
    int pair[2];
    struct hf_watcher watcher = { cached, on_byte };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    cached->fd = pair[0];
    cached->peer.fd = pair[1];
    assert_int_equal(pthread_create(&cached->peer.thread, NULL, answer, &cached->peer),
                     0);
    assert_int_equal(hf_watch_new(cached->loop, cached->fd, HF_READABLE, &watcher,
                                  &cached->watch, NULL),
                     0);
}

static const char *cached_name(const struct hf_provider *provider)
{
    (void)provider;
    return "cached";
}

static int cached_start(struct hf_provider *provider, const struct hf_model_call *call,
                        const struct hf_model_sink *sink, uint64_t *ret_call,
                        struct hf_err *err)
{
    struct cached *cached = (struct cached *)provider;
    (void)call;
    (void)err;
    if (cached->closed)
        return HF_EFINISHED;
    if (cached->fd < 0)
        begin_session(cached);
    cached->sink = *sink;
    *ret_call = cached->call = ++cached->last;
    send_byte(cached, 'c');
    return 0;
}

static int cached_cancel(struct hf_provider *provider, uint64_t call)
{
    struct cached *cached = (struct cached *)provider;
    if (call == 0 || cached->call != call)
        return HF_ENOTFOUND;
    cached->call = 0; /* its answer will be dropped */
    return 0;
}

static int cached_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    struct cached *cached = (struct cached *)provider;
    struct hf_task task = { cached, tell_closed };
    bool first = !cached->closed;
    cached->closed = true;
    cached->call = 0;
    if (closed) {
        struct waiting *waiting = malloc(sizeof(*waiting));
        *waiting = (struct waiting){ *closed, cached->waiting };
        cached->waiting = waiting;
    }
    if (cached->fd < 0)
        return hf_timer_start(cached->loop, &cached->timer, 0, &task);
    if (first)
        send_byte(cached, 'q');
    return 0;
}

static void cached_free(struct hf_provider *provider)
{
    struct cached *cached = (struct cached *)provider;
    hf_timer_stop(cached->loop, &cached->timer);
    end_session(cached);
    while (cached->waiting) {
        struct waiting *next = cached->waiting->next;
        free(cached->waiting);
        cached->waiting = next;
    }
}

static const struct hf_provider_methods methods = { cached_name, cached_start,
                                                    cached_cancel, cached_close,
                                                    cached_free };

static void begin(struct cached *cached)
{
    *cached = (struct cached){ .handle = { &methods }, .fd = -1 };
    assert_int_equal(hf_loop_new(NULL, &cached->loop, NULL), 0);
}

static uint64_t call(struct cached *cached, struct heard *heard)
{
    struct asked asked;
    struct hf_model_sink sink = { heard, heard_event };
    uint64_t id = 0;
    memset(heard, 0, sizeof(*heard));
    asked_simply(&asked, "", "");
    assert_int_equal(hf_provider_start(&cached->handle, &asked.call, &sink, &id, NULL),
                     0);
    asked_fini(&asked);
    return id;
}

static void count(void *user)
{
    ++*(int *)user;
}

static void a_session_is_kept_between_calls(void **state)
{
    (void)state;
    static struct heard heard;
    struct cached cached;
    begin(&cached);
    for (int i = 0; i < 2; i++) {
        (void)call(&cached, &heard);
        while (heard.ends == 0)
            (void)hf_loop_step(cached.loop, -1);
    }
    hf_provider_free(&cached.handle);
    assert_string_equal(cached.peer.heard, "cc"); /* free said nothing */
    hf_loop_free(cached.loop);
}

static void close_talks_once_and_every_caller_hears_that_it_is_over(void **state)
{
    (void)state;
    static struct heard heard;
    struct cached cached;
    struct asked asked;
    struct hf_model_sink sink = { &heard, heard_event };
    uint64_t id = 0;
    int told = 0;
    struct hf_closed closed = { &told, count };
    begin(&cached);
    id = call(&cached, &heard);
    assert_int_equal(hf_provider_close(&cached.handle, &closed), 0);
    assert_int_equal(hf_provider_close(&cached.handle, NULL), 0);
    assert_int_equal(hf_provider_close(&cached.handle, &closed), 0);
    assert_int_equal(told, 0);
    while (told < 2)
        (void)hf_loop_step(cached.loop, -1);
    assert_int_equal(cached.fd, -1);
    assert_string_equal(cached.peer.heard, "cq");
    assert_int_equal(heard.ends, 0); /* the call was cancelled: its sink hears nothing */
    assert_int_equal(hf_provider_cancel(&cached.handle, id), HF_ENOTFOUND);
    assert_int_equal(hf_provider_close(&cached.handle, &closed),
                     0); /* after the end too */
    while (told < 3)
        (void)hf_loop_step(cached.loop, -1);
    asked_simply(&asked, "", "");
    assert_int_equal(hf_provider_start(&cached.handle, &asked.call, &sink, &id, NULL),
                     HF_EFINISHED);
    asked_fini(&asked);
    hf_provider_free(&cached.handle);
    assert_string_equal(cached.peer.heard, "cq");
    hf_loop_free(cached.loop);
}

static void free_in_the_middle_of_a_close_calls_nothing(void **state)
{
    (void)state;
    static struct heard heard;
    struct cached cached;
    int told = 0;
    struct hf_closed closed = { &told, count };
    begin(&cached);
    (void)call(&cached, &heard);
    assert_int_equal(hf_provider_close(&cached.handle, &closed), 0);
    hf_provider_free(&cached.handle);
    (void)hf_loop_step(cached.loop, 0);
    assert_int_equal(told, 0);
    assert_int_equal(heard.ends, 0);
    hf_loop_free(cached.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_kept_between_calls),
        cmocka_unit_test(close_talks_once_and_every_caller_hears_that_it_is_over),
        cmocka_unit_test(free_in_the_middle_of_a_close_calls_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
