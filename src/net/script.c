/* The scripted transport: plays recorded exchanges. Time is the loop's clock. */
#include "net/script.h"

#include <string.h>

#include <holdfast/http.h>

#include "base/err.h"

struct script;

/* One exchange that is played. */
struct playing {
    struct script *script;
    struct playing *next;
    uint64_t id; /* 0: cancelled */
    struct hf_http_sink sink;
    size_t at;
    bool busy;
    struct hf_timer timer;
};

struct script {
    struct hf_transport handle;
    struct hf_loop *loop;
    struct hf_arena arena;
    struct hf_script_step *steps;
    size_t count;
    size_t at; /* the next exchange */
    uint64_t last_id;
    struct playing *all;
};

static const struct hf_alloc *alloc_of(const struct script *script)
{
    return hf_loop_alloc(script->loop);
}

static void drop(struct playing *playing)
{
    struct script *script = playing->script;
    hf_timer_stop(script->loop, &playing->timer);
    playing->id = 0;
    if (playing->busy)
        return; /* play comes back to it */
    struct playing **link = &script->all;
    while (*link != playing)
        link = &(*link)->next;
    *link = playing->next;
    alloc_of(script)->free(alloc_of(script)->user, playing);
}

static void play(void *user);

/* One step; false when the exchange waits or is over. */
static bool play_step(struct playing *playing, const struct hf_script_step *step)
{
    struct hf_http_sink *sink = &playing->sink;
    struct hf_task again = { playing, play };
    switch (step->kind) {
    case HF_SCRIPT_HEAD:
        sink->head(sink->user, step->status, step->headers, step->header_count);
        return playing->id != 0;
    case HF_SCRIPT_BODY:
        sink->body(sink->user, step->body.at, step->body.len);
        return playing->id != 0;
    case HF_SCRIPT_WAIT:
        if (hf_timer_start(playing->script->loop, &playing->timer, step->wait_ms,
                           &again) == 0)
            return false;
        playing->id = 0;
        sink->end(sink->user, HF_HTTP_NOMEM);
        return false;
    case HF_SCRIPT_END:
        playing->id = 0;
        sink->end(sink->user, step->fault);
        return false;
    }
    return false;
}

static void play(void *user)
{
    struct playing *playing = user;
    playing->busy = true;
    while (play_step(playing, &playing->script->steps[playing->at++]))
        continue;
    playing->busy = false;
    if (playing->id == 0)
        drop(playing);
}

static int script_start(struct hf_transport *transport,
                        const struct hf_http_request *request,
                        const struct hf_http_sink *sink, uint64_t *ret_exchange,
                        struct hf_err *err)
{
    struct script *script = (struct script *)transport;
    const struct hf_alloc *alloc = alloc_of(script);
    (void)request;
    if (script->at == script->count)
        return hf_fail(err, HF_ENOTFOUND, "script", "the script has no further exchange");
    struct playing *playing = alloc->realloc(alloc->user, NULL, sizeof(*playing));
    if (!playing)
        return hf_fail_plain(err, HF_ENOMEM);
    *playing = (struct playing){ .script = script, .sink = *sink, .at = script->at };
    struct hf_task task = { playing, play };
    if (hf_timer_start(script->loop, &playing->timer, 0, &task)) {
        alloc->free(alloc->user, playing);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    while (script->steps[script->at].kind != HF_SCRIPT_END)
        script->at++;
    script->at++;
    playing->id = ++script->last_id;
    playing->next = script->all;
    script->all = playing;
    *ret_exchange = playing->id;
    return 0;
}

static int script_cancel(struct hf_transport *transport, uint64_t id)
{
    struct playing *playing = ((struct script *)transport)->all;
    while (playing && (id == 0 || playing->id != id))
        playing = playing->next;
    if (!playing)
        return HF_ENOTFOUND;
    drop(playing);
    return 0;
}

static void script_free(struct hf_transport *transport)
{
    struct script *script = (struct script *)transport;
    const struct hf_alloc *alloc = alloc_of(script);
    while (script->all)
        drop(script->all);
    hf_arena_fini(&script->arena);
    alloc->free(alloc->user, script);
}

static const struct hf_transport_methods methods = {
    .start = script_start,
    .cancel = script_cancel,
    .finish = script_cancel,
    .free = script_free,
};

int hf_script_new(struct hf_loop *loop, struct hf_span text,
                  struct hf_transport **ret_transport, struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct script *script = alloc->realloc(alloc->user, NULL, sizeof(*script));
    if (!script)
        return hf_fail_plain(err, HF_ENOMEM);
    *script = (struct script){ .handle = { &methods }, .loop = loop };
    hf_arena_init(&script->arena, alloc);
    int rc = hf_script_read(&script->arena, text, &script->steps, &script->count, err);
    if (rc)
        script_free(&script->handle);
    else
        *ret_transport = &script->handle;
    return rc;
}
