/* The event loop: timers, descriptors, child processes, messages from other threads, and
 * blocking work on a few threads. It is the only loop of the project.
 *
 * Threads: one thread uses a loop; hf_loop_post and hf_loop_stop may be called from any.
 * Every callback runs on the thread that is in hf_loop_step or hf_loop_run. A callback may
 * call anything of its loop except step, run and free. The loop installs no signal handler.
 *
 * Time: timers follow the monotonic time of the loop's clock. With a clock of the caller's
 * own, a step that has nothing to wait for except a timer calls that clock's wait_ms, which
 * a simulator answers by moving its time on.
 *
 * Store calls block and stay on the store's threads; a host learns that they ended by
 * hf_loop_post.
 */
#ifndef HOLDFAST_LOOP_H
#define HOLDFAST_LOOP_H

#include <sys/types.h>

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_loop;

struct hf_loop_config {
    size_t size;
    const struct hf_alloc
        *alloc; /* NULL: the system's; libuv's own memory is not from it */
    const struct hf_clock *clock; /* NULL: the system's */
    int64_t work_max;             /* blocking calls that may wait or run; 0: 64 */
};

/* Makes a loop; config NULL: all defaults. HF_EINVAL, HF_ENOMEM, HF_EINTERNAL (no descriptors
 * left). */
HF_API HF_MUST_USE int hf_loop_new(const struct hf_loop_config *config,
                                   struct hf_loop **ret_loop, struct hf_err *err);
/* Waits for blocking work that runs, calls what was posted before, and ends all watches and timers
 * without calling them. What is posted meanwhile is dropped. NULL is fine. */
HF_API void hf_loop_free(struct hf_loop *loop);

/* One step: waits up to wait_ms (-1: as long as it takes) until something is due, and calls
 * what is. Returns whether anything may still happen: a timer, a watch, work or a message. */
HF_API bool hf_loop_step(struct hf_loop *loop, hf_ms wait_ms);
/* Steps until hf_loop_stop, or until nothing can happen any more. */
HF_API void hf_loop_run(struct hf_loop *loop);
/* hf_loop_run returns after the current step. From any thread. */
HF_API void hf_loop_stop(struct hf_loop *loop);

/* For a host with a loop of its own: when the descriptor is readable, or the time has
 * passed (-1: none), call hf_loop_step(loop, 0). */
HF_API int hf_loop_fd(const struct hf_loop *loop);
HF_API hf_ms hf_loop_timeout(struct hf_loop *loop);

/* What the loop was made with. */
HF_API const struct hf_clock *hf_loop_clock(const struct hf_loop *loop);
/* Its allocator, for what lives with it. */
HF_API const struct hf_alloc *hf_loop_alloc(const struct hf_loop *loop);

/* What is called. */
struct hf_task {
    void *user;
    void (*run)(void *user);
};

/* Calls the task on the loop's thread, soon, in the order of the posts. From any thread.
 * HF_ENOMEM. */
HF_API HF_MUST_USE int hf_loop_post(struct hf_loop *loop, const struct hf_task *task);

/* A timer, in the caller's memory, zeroed at first. It calls its task once, `after_ms` from
 * now. Starting one that runs moves it. stop may be repeated. Timers of one moment fire in
 * the order in which they were started. HF_ENOMEM. */
struct hf_timer {
    hf_ms due;
    uint64_t order;
    size_t place; /* in the loop's heap, from 1; 0: not running */
    struct hf_task task;
};
HF_API HF_MUST_USE int hf_timer_start(struct hf_loop *loop, struct hf_timer *timer,
                                      hf_ms after_ms, const struct hf_task *task);
HF_API void hf_timer_stop(struct hf_loop *loop, struct hf_timer *timer);

/* A descriptor that is watched: `ready` is called again and again while it can be read
 * (HF_READABLE) or written (HF_WRITABLE), or has failed (then both that were asked for). The
 * descriptor stays the caller's, and must be open until the watch has ended. */
#define HF_READABLE 1
#define HF_WRITABLE 2
struct hf_watch;
struct hf_watcher {
    void *user;
    void (*ready)(void *user, int events);
};
/* Begins a watch. HF_EINVAL for a descriptor that cannot be watched, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_watch_new(struct hf_loop *loop, int fd, int events,
                                    const struct hf_watcher *watcher,
                                    struct hf_watch **ret_watch, struct hf_err *err);
/* Other events from now on; 0 for none. */
HF_API void hf_watch_change(struct hf_watch *watch, int events);
HF_API void hf_watch_free(struct hf_watch *watch); /* NULL is fine */

/* A child process, by its pidfd: `ready` is called with HF_READABLE once it has ended. The
 * caller collects it (waitid) and then frees the watch. HF_ENOTFOUND when there is no such
 * process, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_watch_child(struct hf_loop *loop, pid_t pid,
                                      const struct hf_watcher *watcher,
                                      struct hf_watch **ret_watch, struct hf_err *err);

/* Blocking work on a thread of libuv's pool: `work.run` there, then `done.run` on the loop's
 * thread. HF_EBUSY when as much waits or runs as may; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_loop_work(struct hf_loop *loop, const struct hf_task *work,
                                    const struct hf_task *done, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
