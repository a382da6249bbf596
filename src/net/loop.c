/* The loop over libuv: descriptors are libuv's, time is the clock's. libuv's own timer only
 * ends a wait. */
#include "net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

#define WORK_MAX 64

static void wake(uv_async_t *async)
{
    (void)async; /* the step looks for messages itself */
}

static void on_waker(uv_timer_t *waker)
{
    (void)waker;
}

int hf_loop_new(const struct hf_loop_config *config, struct hf_loop **ret_loop,
                struct hf_err *err)
{
    struct hf_loop_config full = { .size = sizeof(full) };
    if (config && config->size != sizeof(full))
        return hf_fail(err, HF_EINVAL, "size",
                       "struct hf_loop_config has another size: set size to its sizeof");
    if (config)
        full = *config;
    const struct hf_alloc *alloc = full.alloc ? full.alloc : hf_alloc_system();
    struct hf_loop *loop = alloc->realloc(alloc->user, NULL, sizeof(*loop));
    if (!loop)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(loop, 0, sizeof(*loop));
    loop->alloc = alloc;
    loop->clock = full.clock ? full.clock : hf_clock_system();
    loop->own_clock = full.clock && full.clock != hf_clock_system();
    loop->work_max = full.work_max > 0 ? full.work_max : WORK_MAX;
    int rc = uv_loop_init(&loop->uv);
    if (rc == 0)
        rc = uv_async_init(&loop->uv, &loop->async, wake);
    if (rc) {
        alloc->free(alloc->user, loop);
        return hf_fail(err, HF_EINTERNAL, "loop", "no event loop: %s", uv_strerror(rc));
    }
    uv_timer_init(&loop->uv, &loop->waker);
    pthread_mutex_init(&loop->lock, NULL);
    *ret_loop = loop;
    return 0;
}

struct hf_watch {
    struct hf_loop *loop;
    uv_poll_t poll;
    int events;
    int own_fd; /* a pidfd of ours, or -1 */
    bool freed;
    struct hf_watcher watcher;
};

static void on_closed(uv_handle_t *handle)
{
    struct hf_watch *watch = handle->data;
    const struct hf_alloc *alloc = watch->loop->alloc;
    if (watch->own_fd >= 0)
        close(watch->own_fd);
    alloc->free(alloc->user, watch);
}

/* What the host has left: watches that it did not free. */
static void close_handle(uv_handle_t *handle, void *user)
{
    struct hf_loop *loop = user;
    if (uv_is_closing(handle))
        return;
    bool ours = handle == (uv_handle_t *)&loop->async ||
                handle == (uv_handle_t *)&loop->waker;
    uv_close(handle, ours ? NULL : on_closed);
}

void hf_loop_free(struct hf_loop *loop)
{
    if (!loop)
        return;
    while (loop->work_count > 0)
        uv_run(&loop->uv, UV_RUN_ONCE);
    (void)hf_post_run(loop); /* the message may be the last that owns something */
    uv_walk(&loop->uv, close_handle, loop);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&loop->uv);
    hf_assert(rc == 0);
    hf_post_drop(loop);
    pthread_mutex_destroy(&loop->lock);
    loop->alloc->free(loop->alloc->user, loop->heap);
    loop->alloc->free(loop->alloc->user, loop);
}

static hf_ms now_of(const struct hf_loop *loop)
{
    return loop->clock->mono_ms(loop->clock->user);
}

static bool has_more(struct hf_loop *loop)
{
    return loop->active > 0 || loop->timers > 0 || hf_post_waits(loop);
}

/* How long the step may wait: no longer than to the next timer. */
static hf_ms longest_wait(struct hf_loop *loop, hf_ms wait_ms)
{
    hf_ms next = hf_timer_next(loop);
    if (next < 0)
        return wait_ms;
    hf_ms left = next - now_of(loop);
    left = left > 0 ? left : 0;
    return wait_ms < 0 || left < wait_ms ? left : wait_ms;
}

/* Waits in libuv for `ms` milliseconds at most, -1 for as long as it takes. */
static void poll_for(struct hf_loop *loop, hf_ms ms)
{
    if (ms == 0) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        return;
    }
    uv_update_time(&loop->uv);
    if (ms > 0)
        (void)uv_timer_start(&loop->waker, on_waker, (uint64_t)ms, 0); /* cannot fail */
    uv_run(&loop->uv, UV_RUN_ONCE);
    uv_timer_stop(&loop->waker);
}

bool hf_loop_step(struct hf_loop *loop, hf_ms wait_ms)
{
    bool any = hf_post_run(loop);
    any |= hf_timer_fire(loop, now_of(loop));
    hf_ms wait = any || hf_post_waits(loop) ? 0 : longest_wait(loop, wait_ms);
    if (wait != 0 && !has_more(loop))
        return false;
    if (loop->own_clock && loop->active == 0 && wait > 0) {
        loop->clock->wait_ms(loop->clock->user, wait);
        wait = 0;
    }
    poll_for(loop, wait);
    (void)hf_timer_fire(loop, now_of(loop)); /* has_more says what is left */
    return has_more(loop);
}

void hf_loop_run(struct hf_loop *loop)
{
    bool more = true;
    bool stop = false;
    while (more && !stop) {
        more = hf_loop_step(loop, -1);
        pthread_mutex_lock(&loop->lock);
        stop = loop->stop;
        loop->stop = false;
        pthread_mutex_unlock(&loop->lock);
    }
}

void hf_loop_stop(struct hf_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->stop = true;
    pthread_mutex_unlock(&loop->lock);
    (void)uv_async_send(&loop->async); /* fails only for a closed handle */
}

int hf_loop_fd(const struct hf_loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

hf_ms hf_loop_timeout(struct hf_loop *loop)
{
    return hf_post_waits(loop) ? 0 : longest_wait(loop, -1);
}

const struct hf_clock *hf_loop_clock(const struct hf_loop *loop)
{
    return loop->clock;
}

const struct hf_alloc *hf_loop_alloc(const struct hf_loop *loop)
{
    return loop->alloc;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct hf_watch *watch = poll->data;
    int ready = status < 0 ? watch->events : 0;
    if (events & UV_READABLE)
        ready |= HF_READABLE;
    if (events & UV_WRITABLE)
        ready |= HF_WRITABLE;
    watch->watcher.ready(watch->watcher.user, ready);
}

void hf_watch_change(struct hf_watch *watch, int events)
{
    int wanted = (events & HF_READABLE ? UV_READABLE : 0) |
                 (events & HF_WRITABLE ? UV_WRITABLE : 0);
    watch->events = events;
    if (wanted)
        (void)uv_poll_start(&watch->poll, wanted, on_poll); /* fails only when closed */
    else
        (void)uv_poll_stop(&watch->poll);
}

int hf_watch_new(struct hf_loop *loop, int fd, int events,
                 const struct hf_watcher *watcher, struct hf_watch **ret_watch,
                 struct hf_err *err)
{
    struct hf_watch *watch = loop->alloc->realloc(loop->alloc->user, NULL,
                                                  sizeof(*watch));
    if (!watch)
        return hf_fail_plain(err, HF_ENOMEM);
    *watch = (struct hf_watch){ .loop = loop, .own_fd = -1, .watcher = *watcher };
    int rc = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (rc) {
        loop->alloc->free(loop->alloc->user, watch);
        return hf_fail(err, HF_EINVAL, "fd", "the descriptor cannot be watched: %s",
                       uv_strerror(rc));
    }
    watch->poll.data = watch;
    loop->active++;
    hf_watch_change(watch, events);
    *ret_watch = watch;
    return 0;
}

void hf_watch_free(struct hf_watch *watch)
{
    if (!watch || watch->freed)
        return;
    watch->freed = true;
    watch->loop->active--;
    uv_close((uv_handle_t *)&watch->poll, on_closed);
}

int hf_watch_child(struct hf_loop *loop, pid_t pid, const struct hf_watcher *watcher,
                   struct hf_watch **ret_watch, struct hf_err *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return hf_fail(err, errno == ESRCH ? HF_ENOTFOUND : HF_EINVAL, "pid",
                       "process %ld cannot be watched", (long)pid);
    int rc = hf_watch_new(loop, fd, HF_READABLE, watcher, ret_watch, err);
    if (rc)
        close(fd);
    else
        (*ret_watch)->own_fd = fd;
    return rc;
}
