/* Messages from other threads, and blocking work on libuv's threads. */
#include "net/loop.h"

#include "base/err.h"

int hf_loop_post(struct hf_loop *loop, const struct hf_task *task)
{
    struct hf_post *post = loop->alloc->realloc(loop->alloc->user, NULL, sizeof(*post));
    if (!post)
        return HF_ENOMEM;
    *post = (struct hf_post){ .task = *task };
    pthread_mutex_lock(&loop->lock);
    if (loop->last)
        loop->last->next = post;
    else
        loop->first = post;
    loop->last = post;
    pthread_mutex_unlock(&loop->lock);
    (void)uv_async_send(&loop->async); /* fails only for a closed handle */
    return 0;
}

static struct hf_post *take_all(struct hf_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct hf_post *first = loop->first;
    loop->first = loop->last = NULL;
    pthread_mutex_unlock(&loop->lock);
    return first;
}

bool hf_post_run(struct hf_loop *loop)
{
    struct hf_post *post = take_all(loop);
    bool any = post != NULL;
    while (post) {
        struct hf_post *next = post->next;
        struct hf_task task = post->task;
        loop->alloc->free(loop->alloc->user, post);
        task.run(task.user);
        post = next;
    }
    return any;
}

bool hf_post_waits(struct hf_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    bool waits = loop->first != NULL;
    pthread_mutex_unlock(&loop->lock);
    return waits;
}

void hf_post_drop(struct hf_loop *loop)
{
    for (struct hf_post *post = take_all(loop); post;) {
        struct hf_post *next = post->next;
        loop->alloc->free(loop->alloc->user, post);
        post = next;
    }
}

struct work {
    uv_work_t request;
    struct hf_loop *loop;
    struct hf_task work;
    struct hf_task done;
};

static void on_thread(uv_work_t *request)
{
    struct work *work = request->data;
    work->work.run(work->work.user);
}

static void on_done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    struct hf_loop *loop = work->loop;
    struct hf_task done = work->done;
    loop->work_count--;
    loop->active--;
    loop->alloc->free(loop->alloc->user, work);
    if (status == 0)
        done.run(done.user);
}

int hf_loop_work(struct hf_loop *loop, const struct hf_task *work,
                 const struct hf_task *done, struct hf_err *err)
{
    if (loop->work_count >= loop->work_max)
        return hf_fail(err, HF_EBUSY, "work", "%lld blocking calls wait or run already",
                       (long long)loop->work_count);
    struct work *made = loop->alloc->realloc(loop->alloc->user, NULL, sizeof(*made));
    if (!made)
        return hf_fail_plain(err, HF_ENOMEM);
    *made = (struct work){ .loop = loop, .work = *work, .done = *done };
    made->request.data = made;
    if (uv_queue_work(&loop->uv, &made->request, on_thread, on_done)) {
        loop->alloc->free(loop->alloc->user, made);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    loop->work_count++;
    loop->active++;
    return 0;
}
