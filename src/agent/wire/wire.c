/* One attempt of a model call without I/O: what a transport heard comes in, and events of the
 * provider seam go out. It decides between a stream and a body, and between a response and an
 * error (wire.h). */
#include "agent/wire/wire.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/json_walk.h"
#include "base/text.h"

#define ERROR_BODY_MAX 65536 /* what is read of a body that only explains a status */

static int on_event(void *user, struct hf_span data);

void hf_wire_init(struct hf_wire *wire, const struct hf_alloc *alloc,
                  const struct hf_codec *codec, const char *route,
                  const struct hf_model_sink *sink)
{
    *wire = (struct hf_wire){ .codec = codec };
    hf_reply_init(&wire->decode.reply, alloc, route, sink);
    hf_sse_init(&wire->sse, alloc, (size_t)HF_MAX_MODEL_EVENT_BYTES);
    wire->sse.user = wire;
    wire->sse.event = on_event;
    hf_buf_init(&wire->body, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES);
    hf_arena_init_small(&wire->scratch, alloc, 512, 4096);
}

void hf_wire_fini(struct hf_wire *wire)
{
    hf_reply_fini(&wire->decode.reply);
    hf_sse_fini(&wire->sse);
    hf_buf_fini(&wire->body);
    hf_arena_fini(&wire->scratch);
}

void hf_wire_receipt(struct hf_wire *wire, const struct hf_encode *encode)
{
    wire->decode.reply.evidence.honoured = encode->honoured;
    wire->decode.reply.evidence.omitted = encode->omitted;
}

static enum hf_llm_position position_of(const struct hf_wire *wire)
{
    const struct hf_reply *reply = &wire->decode.reply;
    if (reply->terminal)
        return HF_LLM_AT_TERMINAL_OBSERVED;
    if (reply->output || reply->usage.output > 0)
        return HF_LLM_AT_OUTPUT_STARTED;
    return wire->head ? HF_LLM_AT_RESPONSE_OBSERVED : HF_LLM_AT_NO_RESPONSE;
}

/* Only the first fault counts. It is judged at once: what it points to is gone afterwards. */
static void fail(struct hf_wire *wire, enum hf_fault_source source)
{
    struct hf_fault *fault = &wire->decode.fault;
    if (wire->failed)
        return;
    fault->source = source;
    fault->position = position_of(wire);
    hf_fault_judge(fault, &wire->error);
    wire->failed = true;
    fault->type = fault->code = fault->text = (struct hf_span){ 0 };
}

/* What the decoders' codes mean. */
static enum hf_fault_source source_of(int code)
{
    switch (code) {
    case HF_EPROTOCOL: return HF_FAULT_SERVER;
    case HF_ECONFLICT: return HF_FAULT_IDENTITY;
    case HF_EOVERFLOW: return HF_FAULT_PARTS;
    case HF_ETOOBIG: return HF_FAULT_EVENT;
    case HF_ENOMEM: return HF_FAULT_MEMORY;
    default: return HF_FAULT_JSON;
    }
}

/* The last bytes of a stream, without the end of their event, are no JSON: the stream ended
 * early, unless its finish had been told. */
static bool was_cut(const struct hf_wire *wire, int code)
{
    return wire->ended && code == HF_EINVAL;
}

/* Feeding stops at the end of the answer: what follows it does not count. */
static int on_event(void *user, struct hf_span data)
{
    struct hf_wire *wire = user;
    struct hf_reply *reply = &wire->decode.reply;
    struct hf_span json = { 0 };
    int rc = 0;
    if (wire->codec->is_last(data)) {
        reply->terminal = true;
    } else {
        rc = hf_clean_json(&wire->scratch, data, &json, &reply->evidence.repaired);
        if (rc == 0)
            rc = wire->codec->event(&wire->decode, json);
        if (rc && !was_cut(wire, rc))
            fail(wire, source_of(rc));
        hf_arena_trim(&wire->scratch, 4096);
    }
    return rc ? rc : reply->terminal ? HF_EFINISHED : 0;
}

static bool is_stream(const char *content_type)
{
    return hf_starts_with(content_type, "text/event-stream");
}

/* A request id goes into logs, so it must be a key. */
static void take_request_id(struct hf_wire *wire, const char *value)
{
    struct hf_reply *reply = &wire->decode.reply;
    if (!reply->evidence.request_id &&
        hf_check_key(value, (size_t)HF_MAX_KEY_BYTES, "request_id", NULL) == 0)
        reply->evidence.request_id = hf_arena_text(&reply->arena, value);
}

void hf_wire_head(struct hf_wire *wire, int status, const struct hf_http_header *headers,
                  size_t count, hf_ms wall_ms)
{
    wire->head = true;
    wire->decode.fault.status = status;
    wire->decode.reply.evidence.status = status;
    for (size_t i = 0; i < count; i++) {
        const char *name = headers[i].name;
        if (hf_same(name, "content-type"))
            wire->streams = is_stream(headers[i].value);
        else if (hf_same(name, "retry-after"))
            wire->decode.fault.retry_after_ms = hf_wire_retry_after(headers[i].value,
                                                                    wall_ms);
        else if (hf_same(name, "x-request-id") || hf_same(name, "request-id"))
            take_request_id(wire, headers[i].value);
    }
    wire->streams = wire->streams && status >= 200 && status < 300;
    wire->decode.reply.evidence.streamed = wire->streams;
}

static bool is_success(const struct hf_wire *wire)
{
    return wire->decode.fault.status >= 200 && wire->decode.fault.status < 300;
}

static void take_body(struct hf_wire *wire, const void *bytes, size_t len)
{
    size_t max = is_success(wire) ? (size_t)HF_MAX_MODEL_RESPONSE_BYTES : ERROR_BODY_MAX;
    size_t room = max - wire->body.len;
    hf_buf_bytes(&wire->body, bytes, len < room ? len : room);
    if (hf_buf_state(&wire->body))
        fail(wire, HF_FAULT_MEMORY);
}

void hf_wire_body(struct hf_wire *wire, const void *bytes, size_t len)
{
    if (hf_wire_is_over(wire))
        return;
    size_t room = (size_t)HF_MAX_MODEL_RESPONSE_BYTES - wire->received;
    bool large = len > room;
    len = large ? room : len;
    wire->received += len;
    if (wire->streams) {
        int rc = hf_sse_feed(&wire->sse, bytes, len);
        if (rc && rc != HF_EFINISHED)
            fail(wire, source_of(rc));
    } else {
        take_body(wire, bytes, len);
    }
    if (large && is_success(wire) && !hf_wire_is_over(wire))
        fail(wire, HF_FAULT_RESPONSE);
}

bool hf_wire_is_whole(const struct hf_wire *wire)
{
    return !wire->failed && wire->decode.reply.terminal;
}

bool hf_wire_is_over(const struct hf_wire *wire)
{
    return wire->failed || wire->decode.reply.terminal;
}

/* The error object of a body: under "error", or the body itself. */
static struct hf_span error_object(struct hf_span json)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, json);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, "error"))
                return value;
        }
    return json;
}

static void end_status(struct hf_wire *wire)
{
    struct hf_span body = { hf_buf_str(&wire->body), wire->body.len };
    struct hf_span json = { 0 };
    bool repaired = false;
    if (hf_clean_json(&wire->scratch, body, &json, &repaired) == 0)
        hf_fault_read(&wire->decode.fault, error_object(json));
    else
        wire->decode.fault.text = body;
    fail(wire, HF_FAULT_STATUS);
}

static void end_body(struct hf_wire *wire)
{
    struct hf_reply *reply = &wire->decode.reply;
    struct hf_span body = { hf_buf_str(&wire->body), wire->body.len };
    struct hf_span json = { 0 };
    int rc = hf_clean_json(&wire->scratch, body, &json, &reply->evidence.repaired);
    if (rc == 0)
        rc = wire->codec->whole(&wire->decode, json);
    if (rc)
        fail(wire, source_of(rc));
    else if (!reply->terminal)
        fail(wire, HF_FAULT_JSON);
}

/* Only "[DONE]" can still be missing; the end of the connection replaces it. */
static bool told_finish(const struct hf_wire *wire)
{
    return wire->streams && wire->codec->finish_ends &&
           wire->decode.reply.evidence.finish;
}

static void end_stream(struct hf_wire *wire)
{
    struct hf_reply *reply = &wire->decode.reply;
    wire->ended = true;
    int rc = hf_sse_end(&wire->sse);
    if (rc && rc != HF_EFINISHED && !was_cut(wire, rc))
        fail(wire, source_of(rc));
    reply->terminal |= told_finish(wire);
    if (!reply->terminal)
        fail(wire, HF_FAULT_ENDED);
}

/* The transport is done, and the answer was not over before. A status that is an error is
 * one even when the body that explains it was cut. */
static void end_answer(struct hf_wire *wire, enum hf_http_fault fault)
{
    wire->decode.fault.http = fault;
    if (wire->head && !is_success(wire))
        end_status(wire);
    else if (fault != HF_HTTP_NONE && told_finish(wire))
        wire->decode.reply.terminal = true;
    else if (fault != HF_HTTP_NONE || !wire->head)
        fail(wire, HF_FAULT_TRANSPORT);
    else if (wire->streams)
        end_stream(wire);
    else
        end_body(wire);
}

static void tell(struct hf_wire *wire, const struct hf_model_event *event)
{
    wire->decode.reply.sink.event(wire->decode.reply.sink.user, event);
}

/* What had come of the reply goes with the error, where there is memory for it. */
static void tell_error(struct hf_wire *wire)
{
    struct hf_reply *reply = &wire->decode.reply;
    struct hf_llm_response partial = { 0 };
    if (reply->output && hf_reply_response(reply, &partial) == 0) {
        wire->error.parts = partial.parts;
        wire->error.part_count = partial.part_count;
    }
    wire->error.text_streamed = reply->streamed;
    wire->error.usage = reply->usage;
    wire->error.request_id = reply->evidence.request_id;
    tell(wire, &(struct hf_model_event){ .kind = HF_MODEL_END, .error = &wire->error });
}

void hf_wire_end(struct hf_wire *wire, enum hf_http_fault fault)
{
    struct hf_reply *reply = &wire->decode.reply;
    struct hf_llm_response response = { 0 };
    if (!hf_wire_is_over(wire))
        end_answer(wire, fault);
    if (!wire->failed)
        hf_reply_complete_all(reply);
    if (!wire->failed && hf_reply_response(reply, &response))
        fail(wire, HF_FAULT_MEMORY);
    if (wire->head)
        tell(wire, &(struct hf_model_event){ .kind = HF_MODEL_EVIDENCE,
                                             .evidence = &reply->evidence });
    if (wire->failed)
        tell_error(wire);
    else
        tell(wire,
             &(struct hf_model_event){ .kind = HF_MODEL_END, .response = &response });
}
