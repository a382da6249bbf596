/* Timers: a binary heap of the callers' structs, ordered by due time and start. */
#include "net/loop.h"

static bool is_before(const struct hf_timer *a, const struct hf_timer *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void put(struct hf_loop *loop, size_t i, struct hf_timer *timer)
{
    loop->heap[i] = timer;
    timer->place = i + 1;
}

static void rise(struct hf_loop *loop, size_t i, struct hf_timer *timer)
{
    while (i > 0 && is_before(timer, loop->heap[(i - 1) / 2])) {
        put(loop, i, loop->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(loop, i, timer);
}

static void sink(struct hf_loop *loop, size_t i, struct hf_timer *timer)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < loop->timers &&
            is_before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (child >= loop->timers || !is_before(loop->heap[child], timer))
            break;
        put(loop, i, loop->heap[child]);
        i = child;
    }
    put(loop, i, timer);
}

void hf_timer_stop(struct hf_loop *loop, struct hf_timer *timer)
{
    if (timer->place == 0)
        return;
    size_t i = timer->place - 1;
    struct hf_timer *last = loop->heap[--loop->timers];
    timer->place = 0;
    if (last == timer)
        return;
    rise(loop, i, last);
    sink(loop, last->place - 1, last);
}

int hf_timer_start(struct hf_loop *loop, struct hf_timer *timer, hf_ms after_ms,
                   const struct hf_task *task)
{
    struct hf_task run = *task; /* it may be the timer's own */
    if (timer->place == 0 && loop->timers == loop->timer_room) {
        size_t room = loop->timer_room ? loop->timer_room * 2 : 16;
        void *grown = loop->alloc->realloc(loop->alloc->user, loop->heap,
                                           room * sizeof(struct hf_timer *));
        if (!grown)
            return HF_ENOMEM;
        loop->heap = grown;
        loop->timer_room = room;
    }
    hf_timer_stop(loop, timer);
    timer->task = run;
    timer->due = loop->clock->mono_ms(loop->clock->user) + (after_ms > 0 ? after_ms : 0);
    timer->order = ++loop->timer_order;
    rise(loop, loop->timers++, timer);
    return 0;
}

hf_ms hf_timer_next(const struct hf_loop *loop)
{
    return loop->timers > 0 ? loop->heap[0]->due : -1;
}

/* One that a task starts now waits for the next step, so that a step always ends. */
bool hf_timer_fire(struct hf_loop *loop, hf_ms now)
{
    uint64_t newest = loop->timer_order;
    bool any = false;
    while (loop->timers > 0 && loop->heap[0]->due <= now &&
           loop->heap[0]->order <= newest) {
        struct hf_timer *timer = loop->heap[0];
        struct hf_task task = timer->task;
        hf_timer_stop(loop, timer);
        task.run(task.user); /* the timer may be gone afterwards */
        any = true;
    }
    return any;
}
