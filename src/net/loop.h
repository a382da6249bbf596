/* The loop's parts. loop.c is libuv and the steps, timer.c the heap, work.c the executor and
 * messages. */
#ifndef HF_NET_LOOP_H
#define HF_NET_LOOP_H

#include <pthread.h>
#include <uv.h>

#include <holdfast/loop.h>

struct hf_post {
    struct hf_post *next;
    struct hf_task task;
};

struct hf_loop {
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    uv_loop_t uv;
    uv_async_t async;
    uv_timer_t waker;
    bool own_clock; /* the caller's: waiting moves it on */
    size_t active;  /* watches, and work that is not done */
    int64_t work_max;
    int64_t work_count;

    struct hf_timer **heap; /* by due time; heap[0] is the next */
    size_t timers;
    size_t timer_room;
    uint64_t timer_order;

    pthread_mutex_t lock; /* of the next three */
    struct hf_post *first;
    struct hf_post *last;
    bool stop;
};

/* When the next timer is due, or -1. */
hf_ms hf_timer_next(const struct hf_loop *loop);
/* Calls what is due at `now`, of the timers that are there. True when there was one. */
bool hf_timer_fire(struct hf_loop *loop, hf_ms now);

/* Calls the messages that are there. True when there was one. */
bool hf_post_run(struct hf_loop *loop);
bool hf_post_waits(struct hf_loop *loop);
void hf_post_drop(struct hf_loop *loop);

#endif
