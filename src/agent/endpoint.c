/* The provider for one HTTP endpoint: a codec over a transport. A call is one exchange. */
#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/model.h>

#include "agent/check.h"
#include "agent/wire/wire.h"
#include "base/err.h"
#include "base/text.h"

struct endpoint;

/* One call. Its number becomes 0 when no more events of it may be reported. */
struct call {
    struct endpoint *endpoint;
    struct call *next;
    uint64_t id;
    uint64_t exchange;
    struct hf_model_sink sink;
    struct hf_wire wire;
    char *route;
    bool busy; /* the codec is at work, and the sink may be called */
};

/* Who is to hear that the endpoint is closed. */
struct waiting {
    struct waiting *next;
    struct hf_closed closed;
};

struct endpoint {
    struct hf_provider handle;
    struct hf_arena arena; /* the endpoint is in it */
    struct hf_loop *loop;
    struct hf_transport *transport;
    const struct hf_codec *codec;
    const struct hf_secret *key;
    struct hf_dialect dialect;
    const char *name;
    const char *url;
    struct call *calls;
    uint64_t last_id;
    struct waiting *waiting;
    struct hf_timer timer;
    bool closed;
};

static const struct hf_codec *const codecs[] = { &hf_codec_chat, &hf_codec_messages };

static const struct hf_alloc *alloc_of(const struct endpoint *endpoint)
{
    return endpoint->arena.alloc;
}

static void release(struct call *call)
{
    struct endpoint *endpoint = call->endpoint;
    const struct hf_alloc *alloc = alloc_of(endpoint);
    struct call **link = &endpoint->calls;
    call->id = 0;
    if (call->busy)
        return; /* released when the codec is done */
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    hf_wire_fini(&call->wire);
    alloc->free(alloc->user, call->route);
    alloc->free(alloc->user, call);
}

/* What the codec says, as long as the caller listens. */
static void on_event(void *user, const struct hf_model_event *event)
{
    struct call *call = user;
    if (call->id == 0)
        return;
    if (event->kind == HF_MODEL_END)
        call->id = 0; /* it cannot be cancelled any more */
    call->sink.event(call->sink.user, event);
}

static void end_call(struct call *call, enum hf_http_fault fault)
{
    call->busy = true;
    hf_wire_end(&call->wire, fault);
    call->busy = false;
    release(call);
}

static void on_head(void *user, int status, const struct hf_http_header *headers,
                    size_t count)
{
    struct call *call = user;
    const struct hf_clock *clock = hf_loop_clock(call->endpoint->loop);
    hf_wire_head(&call->wire, status, headers, count, clock->wall_ms(clock->user));
}

/* A whole answer leaves the connection usable; a failed one does not need it. */
static void on_body(void *user, const void *bytes, size_t len)
{
    struct call *call = user;
    struct hf_transport *transport = call->endpoint->transport;
    call->busy = true;
    hf_wire_body(&call->wire, bytes, len);
    call->busy = false;
    if (call->id == 0) {
        release(call);
    } else if (hf_wire_is_over(&call->wire)) {
        if (hf_wire_is_whole(&call->wire))
            (void)transport->methods->finish(transport, call->exchange); /* it runs */
        else
            (void)transport->methods->cancel(transport, call->exchange); /* likewise */
        end_call(call, HF_HTTP_NONE);
    }
}

static void on_end(void *user, enum hf_http_fault fault)
{
    end_call(user, fault);
}

static int encode(struct endpoint *endpoint, const struct hf_model_call *given,
                  struct hf_buf *out, struct hf_encode *ret_encode, struct hf_err *err)
{
    struct hf_encode encode = { .call = given,
                                .dialect = &endpoint->dialect,
                                .alloc = alloc_of(endpoint) };
    int rc = hf_options_read(given->request->options, &encode.options, err);
    if (rc)
        return rc;
    hf_json_begin(&encode.json, out);
    rc = endpoint->codec->encode(&encode, err);
    if (rc == 0 && hf_buf_state(out))
        rc = hf_encode_fail(hf_buf_state(out), err);
    *ret_encode = encode;
    return rc;
}

static int send(struct endpoint *endpoint, struct call *call, const struct hf_buf *body,
                struct hf_err *err)
{
    bool chat = endpoint->codec == &hf_codec_chat;
    struct hf_http_header headers[4] = {
        { "Content-Type", "application/json", NULL },
        { "Accept", "text/event-stream, application/json", NULL },
    };
    size_t count = 2;
    if (!chat)
        headers[count++] = (struct hf_http_header){ "anthropic-version", "2023-06-01",
                                                    NULL };
    if (endpoint->key)
        headers[count++] = (struct hf_http_header){ chat ? "Authorization" : "x-api-key",
                                                    chat ? "Bearer " : "",
                                                    endpoint->key };
    struct hf_http_request request = { .size = sizeof(request),
                                       .url = endpoint->url,
                                       .headers = headers,
                                       .header_count = count,
                                       .body = { hf_buf_str(body), body->len } };
    struct hf_http_sink sink = { call, on_head, on_body, on_end };
    struct hf_transport *transport = endpoint->transport;
    return transport->methods->start(transport, &request, &sink, &call->exchange, err);
}

static int new_call(struct endpoint *endpoint, const struct hf_model_call *given,
                    const struct hf_model_sink *sink, struct call **ret_call)
{
    const struct hf_alloc *alloc = alloc_of(endpoint);
    const char *route = given->request->route ? given->request->route : "";
    struct call *call = alloc->realloc(alloc->user, NULL, sizeof(*call));
    char *copy = alloc->realloc(alloc->user, NULL, strlen(route) + 1);
    if (!call || !copy) {
        alloc->free(alloc->user, call);
        alloc->free(alloc->user, copy);
        return HF_ENOMEM;
    }
    memcpy(copy, route, strlen(route) + 1);
    *call = (struct call){
        .endpoint = endpoint, .next = endpoint->calls, .sink = *sink, .route = copy
    };
    struct hf_model_sink tap = { call, on_event };
    hf_wire_init(&call->wire, alloc, endpoint->codec, call->route, &tap);
    endpoint->calls = call;
    *ret_call = call;
    return 0;
}

static int endpoint_start(struct hf_provider *provider, const struct hf_model_call *given,
                          const struct hf_model_sink *sink, uint64_t *ret_call,
                          struct hf_err *err)
{
    struct endpoint *endpoint = (struct endpoint *)provider;
    struct hf_encode made;
    struct hf_buf body;
    struct call *call = NULL;
    if (endpoint->closed)
        return hf_fail(err, HF_EFINISHED, "provider", "the provider %.100s is closed",
                       endpoint->name);
    if (given->size != sizeof(*given))
        return hf_fail(err, HF_EINVAL, "size",
                       "struct hf_model_call has another size: set size to its sizeof");
    hf_buf_init(&body, alloc_of(endpoint), (size_t)HF_MAX_MODEL_REQUEST_BYTES);
    int rc = encode(endpoint, given, &body, &made, err);
    if (rc == 0) {
        rc = new_call(endpoint, given, sink, &call);
        rc = rc ? hf_fail_plain(err, rc) : send(endpoint, call, &body, err);
    }
    hf_buf_fini(&body);
    if (rc && call)
        release(call);
    if (rc)
        return rc;
    hf_wire_receipt(&call->wire, &made);
    call->id = ++endpoint->last_id;
    *ret_call = call->id;
    return 0;
}

static void cancel_call(struct call *call)
{
    struct hf_transport *transport = call->endpoint->transport;
    (void)transport->methods->cancel(transport, call->exchange); /* it may have ended */
    release(call);
}

static int endpoint_cancel(struct hf_provider *provider, uint64_t id)
{
    struct call *call = ((struct endpoint *)provider)->calls;
    while (call && (id == 0 || call->id != id))
        call = call->next;
    if (!call)
        return HF_ENOTFOUND;
    cancel_call(call);
    return 0;
}

/* Calls whose number is 0 are on their way out already. */
static void cancel_all(struct endpoint *endpoint)
{
    for (struct call *call = endpoint->calls; call;) {
        struct call *next = call->next;
        if (call->id)
            cancel_call(call);
        call = next;
    }
}

static void tell_closed(void *user)
{
    struct endpoint *endpoint = user;
    const struct hf_alloc *alloc = alloc_of(endpoint);
    struct waiting *waiting = endpoint->waiting;
    endpoint->waiting = NULL;
    while (waiting) {
        struct waiting *next = waiting->next;
        struct hf_closed closed = waiting->closed;
        alloc->free(alloc->user, waiting);
        waiting = next;
        closed.closed(closed.user);
    }
}

static int endpoint_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    struct endpoint *endpoint = (struct endpoint *)provider;
    const struct hf_alloc *alloc = alloc_of(endpoint);
    struct hf_task task = { endpoint, tell_closed };
    endpoint->closed = true;
    cancel_all(endpoint);
    if (!closed)
        return 0;
    struct waiting *waiting = alloc->realloc(alloc->user, NULL, sizeof(*waiting));
    if (!waiting || hf_timer_start(endpoint->loop, &endpoint->timer, 0, &task)) {
        alloc->free(alloc->user, waiting);
        return HF_ENOMEM;
    }
    *waiting = (struct waiting){ endpoint->waiting, *closed };
    endpoint->waiting = waiting;
    return 0;
}

static const char *endpoint_name(const struct hf_provider *provider)
{
    return ((const struct endpoint *)provider)->name;
}

static void endpoint_free(struct hf_provider *provider)
{
    struct endpoint *endpoint = (struct endpoint *)provider;
    const struct hf_alloc *alloc = alloc_of(endpoint);
    cancel_all(endpoint);
    hf_assert(!endpoint->calls); /* not from inside a callback */
    hf_timer_stop(endpoint->loop, &endpoint->timer);
    while (endpoint->waiting) {
        struct waiting *next = endpoint->waiting->next;
        alloc->free(alloc->user, endpoint->waiting);
        endpoint->waiting = next;
    }
    hf_transport_free(endpoint->transport);
    struct hf_arena arena = endpoint->arena;
    hf_arena_fini(&arena);
}

static const struct hf_provider_methods methods = {
    .name = endpoint_name,
    .start = endpoint_start,
    .cancel = endpoint_cancel,
    .close = endpoint_close,
    .free = endpoint_free,
};

static int check_endpoint(const struct hf_endpoint *given,
                          const struct hf_codec **ret_codec, struct hf_err *err)
{
    if (given->size != sizeof(*given))
        return hf_fail(err, HF_EINVAL, "size",
                       "struct hf_endpoint has another size: set size to its sizeof");
    int rc = hf_check_key(given->name, (size_t)HF_MAX_KEY_BYTES, "name", err);
    if (rc == 0)
        rc = hf_http_check_url(given->base_url, "base_url", err);
    if (rc == 0)
        rc = hf_check_key_opt(given->token_field, (size_t)HF_MAX_KEY_BYTES, "token_field",
                              err);
    if (rc)
        return rc;
    if (strpbrk(given->base_url, "?#"))
        return hf_fail(err, HF_EINVAL, "base_url",
                       "base_url must have no ? and no #: a path is appended to it");
    if (given->max_tokens < 0)
        return hf_fail(err, HF_EINVAL, "max_tokens", "max_tokens must be above 0");
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (given->kind && hf_same(given->kind, codecs[i]->name)) {
            *ret_codec = codecs[i];
            return 0;
        }
    return hf_fail(err, HF_EINVAL, "kind",
                   "a provider is of kind openai-chat or anthropic-messages");
}

/* The address without slashes at its end, and the codec's path. */
static const char *join_url(struct hf_arena *arena, const char *base, const char *path)
{
    size_t len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        len--;
    char *front = hf_arena_copy(arena, base, len);
    return front ? hf_arena_join(arena, front, path) : NULL;
}

static int fill(struct endpoint *endpoint, const struct hf_endpoint *given)
{
    struct hf_arena *arena = &endpoint->arena;
    endpoint->key = given->key;
    endpoint->dialect = (struct hf_dialect){ .omit = given->omit,
                                             .no_stream_usage = given->no_stream_usage,
                                             .max_tokens = given->max_tokens };
    endpoint->name = hf_arena_text(arena, given->name);
    endpoint->url = join_url(arena, given->base_url, endpoint->codec->path);
    if (given->token_field)
        endpoint->dialect.token_field = hf_arena_text(arena, given->token_field);
    bool lacks = !endpoint->name || !endpoint->url ||
                 (given->token_field && !endpoint->dialect.token_field);
    return lacks ? HF_ENOMEM : 0;
}

int hf_endpoint_check(const struct hf_endpoint *endpoint, struct hf_err *err)
{
    const struct hf_codec *codec = NULL;
    return check_endpoint(endpoint, &codec, err);
}

int hf_endpoint_new(struct hf_loop *loop, const struct hf_endpoint *given,
                    struct hf_transport *transport, struct hf_provider **ret_provider,
                    struct hf_err *err)
{
    const struct hf_codec *codec = NULL;
    struct endpoint *endpoint = NULL;
    struct hf_arena arena;
    int rc = check_endpoint(given, &codec, err);
    hf_arena_init_small(&arena, hf_loop_alloc(loop), 512, 4096);
    if (rc == 0) {
        endpoint = hf_arena_new(&arena, struct endpoint);
        rc = endpoint ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    if (rc) {
        hf_transport_free(transport);
        return rc;
    }
    *endpoint = (struct endpoint){ .handle = { &methods },
                                   .arena = arena,
                                   .loop = loop,
                                   .transport = transport,
                                   .codec = codec };
    rc = fill(endpoint, given);
    if (rc) {
        endpoint_free(&endpoint->handle);
        return hf_fail_plain(err, rc);
    }
    *ret_provider = &endpoint->handle;
    return 0;
}
