/* Performing what drives ask for: model calls, tool calls, and asking the sources of tools which
 * tools there are. The answers are fed to the drive of the seat. A set of tools that has changed
 * becomes a new surface (the prompt and the tools that the model is shown), which lives as long as
 * the worker. */
#include "agent/worker/worker.h"

#include <string.h>

#include "base/text.h"

/* ---- model calls ------------------------------------------------------------------- */

static void on_model(void *user, const struct hf_model_event *event)
{
    struct seat *seat = user;
    struct hf_worker *worker = seat->worker;
    struct hf_worker_event told = { .kind = HF_WORKER_TEXT, .text = event->text };
    worker_enter(worker);
    if (event->kind == HF_MODEL_REASONING)
        told.kind = HF_WORKER_REASONING;
    if (event->kind == HF_MODEL_RESET)
        told.kind = HF_WORKER_RESET;
    if (event->kind == HF_MODEL_TEXT || told.kind != HF_WORKER_TEXT)
        worker_tell(worker, seat, told);
    if (event->kind == HF_MODEL_END) {
        seat->model_call = 0;
        seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_REPLY,
                                                 .id = seat->model_id,
                                                 .response = event->response,
                                                 .error = event->error });
    }
    worker_leave(worker);
}

/* The call could not be made at all. What the request or the set-up is to blame for is the
 * call's error; any other failure says nothing about the call. */
void seat_refuse_model(struct seat *seat, uint64_t id, const struct hf_err *why)
{
    struct hf_llm_error error = { .size = sizeof(error),
                                  .kind = HF_LLM_VALIDATION,
                                  .charge_safe = true,
                                  .code = hf_err_wire(why->code),
                                  .message = { why->message, strlen(why->message) } };
    bool fact = why->code == HF_EINVAL || why->code == HF_ENOTFOUND ||
                why->code == HF_ETOOBIG || why->code == HF_EBASE || why->code == HF_EBLOB;
    seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_REPLY,
                                             .id = id,
                                             .error = fact ? &error : NULL,
                                             .code = fact ? 0 : why->code });
}

void seat_call_model(struct seat *seat, struct hf_model_call *call)
{
    struct hf_err err = { 0 };
    struct hf_model_sink sink = { seat, on_model };
    uint64_t id = seat->model_id;
    int rc = hf_provider_start(seat->agent->provider, call, &sink, &seat->model_call,
                               &err);
    if (rc == 0)
        return;
    err.code = rc;
    seat_refuse_model(seat, id, &err);
}

void seat_start_model(struct seat *seat, const struct hf_drive_action *action)
{
    struct hf_err err = { 0 };
    struct hf_render *render = NULL;
    int rc = hf_render_new(action->turn, action->request, &render, &err);
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = action->request,
                                  .render = render };
    seat->model_id = action->id;
    if (rc == 0 && hf_render_attachment(render, 0)) {
        seat_fetch_start(seat, action, render);
        return;
    }
    err.code = rc;
    if (rc == 0)
        seat_call_model(seat, &call);
    else
        seat_refuse_model(seat, action->id, &err);
    hf_render_free(render);
}

void seat_stop_model(struct seat *seat, uint64_t id)
{
    if (seat->model_call && seat->model_id == id)
        (void)hf_provider_cancel(seat->agent->provider,
                                 seat->model_call); /* or it ended */
    seat->model_call = 0;
    seat_fetch_stop(seat, id);
}

/* ---- tools ------------------------------------------------------------------------- */

static void tell_ended(const struct seat_call *call,
                       const struct hf_invocation_result *result)
{
    struct hf_drive_call shown = { .tool = call->tool, .probe = call->probe };
    struct hf_worker_event event = { .kind = HF_WORKER_TOOL_ENDED,
                                     .call = &shown,
                                     .result = result->result };
    shown.key.call_id = call->call_id;
    shown.key.attempt = call->attempt;
    if (result->deferred || (call->probe && !result->result))
        return; /* it ends later, the call itself follows, or its end is unknown */
    if (!result->result)
        event.message = result->timed_out ? "out of time" : "stopped";
    worker_tell(call->seat->worker, call->seat, event);
}

static void on_tool(void *user, const struct hf_invocation_result *result)
{
    struct seat_call *call = user;
    struct seat *seat = call->seat;
    struct hf_worker *worker = seat->worker;
    struct seat_call **at = &seat->calls;
    worker_enter(worker);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    tell_ended(call, result);
    seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_ANSWER,
                                             .call_id = call->call_id,
                                             .result = result });
    worker->alloc->free(worker->alloc->user, call);
    worker_leave(worker);
}

/* On a thread of the executor. */
static int make_key(void *user, const struct hf_invocation_key *call,
                    char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err)
{
    char name[HF_EFFECT_KEY_ROOM], wait_id[HF_WAIT_ID_TEXT];
    hf_effect_key(call->effect, call->call_id, call->attempt, name);
    int rc = hf_wait_id(call->turn_id, HF_WAIT_TOOL, name, wait_id, err);
    return rc ? rc : hf_wait_key(user, wait_id, ret_key, err);
}

void seat_start_tool(struct seat *seat, const struct hf_drive_call *shown)
{
    struct hf_worker *worker = seat->worker;
    struct hf_err err = { 0 };
    struct seat_call *call = worker->alloc->realloc(worker->alloc->user, NULL,
                                                    sizeof(*call));
    int rc = call ? 0 : HF_ENOMEM;
    if (call) {
        *call = (struct seat_call){ .seat = seat, .probe = shown->probe };
        call->attempt = shown->key.attempt;
        memcpy(call->call_id, shown->key.call_id, strlen(shown->key.call_id) + 1);
        memcpy(call->tool, shown->tool, strlen(shown->tool) + 1);
        struct hf_invocation_request request = { .size = sizeof(request),
                                                 .tools = shown->tools,
                                                 .tool = shown->tool,
                                                 .key = shown->key,
                                                 .args = shown->args,
                                                 .probe = shown->probe,
                                                 .keys = { worker->config.store,
                                                           make_key },
                                                 .user = call,
                                                 .done = on_tool };
        rc = hf_invocation_start(worker->config.loop, &request, &call->invocation, &err);
    }
    if (rc == 0) {
        call->next = seat->calls;
        seat->calls = call;
        return;
    }
    worker->alloc->free(worker->alloc->user, call);
    seat_feed(seat, (struct hf_drive_event){ .kind = HF_DRIVEN_ANSWER,
                                             .call_id = shown->key.call_id,
                                             .code = rc });
}

void seat_stop_tool(struct seat *seat, const struct hf_drive_call *shown)
{
    for (struct seat_call *call = seat->calls; call; call = call->next)
        if (hf_same(call->call_id, shown->key.call_id)) {
            hf_invocation_stop(call->invocation);
            return;
        }
}

/* ---- sources ----------------------------------------------------------------------- */

static const struct worker_surface *newest(const struct seat *seat)
{
    for (const struct worker_surface *at = seat->worker->surfaces; at; at = at->next)
        if (at->agent == seat->agent)
            return at;
    return NULL;
}

static int ask_sources(const struct seat *seat, struct hf_toolset **ret_tools,
                       struct hf_err *err)
{
    struct hf_toolset *tools = NULL;
    int rc = hf_toolset_new(seat->worker->alloc, &tools, err);
    for (size_t i = 0; rc == 0 && i < seat->agent->source_count; i++)
        rc = hf_toolset_ask(tools, &seat->agent->sources[i], err);
    if (rc == 0)
        *ret_tools = tools;
    else
        hf_toolset_unref(tools);
    return rc;
}

static bool same_tools(const struct hf_toolset *a, const struct hf_toolset *b)
{
    struct hf_span one = hf_toolset_json(a), two = hf_toolset_json(b);
    return one.len == two.len && memcmp(one.at, two.at, one.len) == 0;
}

/* Keeps a surface with these tools, and takes them over. */
static int keep_surface(const struct seat *seat, struct hf_toolset *tools,
                        struct worker_surface **ret_kept, struct hf_err *err)
{
    struct hf_worker *worker = seat->worker;
    struct worker_surface *kept = worker->alloc->realloc(worker->alloc->user, NULL,
                                                         sizeof(*kept));
    if (!kept)
        return hf_fail_plain(err, HF_ENOMEM);
    *kept = (struct worker_surface){ .next = worker->surfaces, .agent = seat->agent };
    int rc = hf_surface_new(worker->alloc, seat->agent->prompt, hf_toolset_json(tools),
                            &kept->surface, err);
    if (rc) {
        worker->alloc->free(worker->alloc->user, kept);
        return rc;
    }
    kept->tools = tools;
    worker->surfaces = kept;
    *ret_kept = kept;
    return 0;
}

void seat_sync(struct seat *seat)
{
    const struct worker_surface *now = newest(seat);
    struct hf_drive_event event = { .kind = HF_DRIVEN_SYNCED };
    struct hf_toolset *tools = NULL;
    struct worker_surface *kept = NULL;
    struct hf_err err = { 0 };
    if (seat->agent->source_count > 0)
        event.code = ask_sources(seat, &tools, &err);
    const struct hf_toolset *old = now ? now->tools : seat->agent->tools;
    if (tools && (!old || !same_tools(tools, old)))
        event.code = keep_surface(seat, tools, &kept, &err);
    if (tools && !kept)
        hf_toolset_unref(tools);
    now = kept ? kept : now;
    if (event.code == 0 && now) {
        event.surface = now->surface;
        event.tools = now->tools;
    }
    seat_feed(seat, event);
}
