/* anthropic-messages: the answer. A stream is message_start, for each content block its
 * start, deltas and stop, then message_delta and message_stop; a body that is no stream is
 * the message. */
#include "agent/wire/messages.h"

#include <string.h>

#include "base/json_scan.h"

static const struct {
    const char *word;
    enum hf_reason reason;
} stops[] = {
    { "end_turn", HF_REASON_STOP },
    { "stop_sequence", HF_REASON_STOP },
    { "pause_turn", HF_REASON_STOP },
    { "tool_use", HF_REASON_TOOL_USE },
    { "max_tokens", HF_REASON_OUTPUT_LIMIT },
    { "model_context_window_exceeded", HF_REASON_CONTEXT_OVERFLOW },
    { "refusal", HF_REASON_CONTENT_FILTER },
    { "safety", HF_REASON_CONTENT_FILTER },
};

/* The members of the objects of this protocol that matter, wherever they are. */
#define MEMBERS(X)                                                                       \
    X(type)                                                                              \
    X(index)                                                                             \
    X(message)                                                                           \
    X(content_block)                                                                     \
    X(delta)                                                                             \
    X(usage)                                                                             \
    X(error)                                                                             \
    X(id)                                                                                \
    X(model)                                                                             \
    X(content)                                                                           \
    X(stop_reason)                                                                       \
    X(text)                                                                              \
    X(thinking)                                                                          \
    X(signature)                                                                         \
    X(data)                                                                              \
    X(partial_json)                                                                      \
    X(name)                                                                              \
    X(input)                                                                             \
    X(input_tokens)                                                                      \
    X(output_tokens)                                                                     \
    X(cache_read_input_tokens)                                                           \
    X(cache_creation_input_tokens)

/* One object, taken apart: raw values, empty where there are none. */
struct object {
#define X(name) struct hf_span name;
    MEMBERS(X)
#undef X
};

static const struct {
    const char *name;
    size_t offset;
} members[] = {
#define X(name) { #name, offsetof(struct object, name) },
    MEMBERS(X)
#undef X
};

static bool read_object(struct hf_span raw, struct object *ret_object)
{
    struct hf_walk walk;
    *ret_object = (struct object){ 0 };
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '{'))
        return false;
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span value = hf_walk_value(&walk);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            if (hf_walk_is(key, members[i].name)) {
                memcpy((char *)ret_object + members[i].offset, &value, sizeof(value));
                break;
            }
    }
    return true;
}

static void take_usage(struct hf_decode *decode, struct hf_span raw)
{
    struct hf_usage *usage = &decode->reply.usage;
    struct object counts;
    if (!read_object(raw, &counts))
        return;
    hf_reply_count(counts.input_tokens, &usage->input);
    hf_reply_count(counts.output_tokens, &usage->output);
    hf_reply_count(counts.cache_read_input_tokens, &usage->cache_read);
    hf_reply_count(counts.cache_creation_input_tokens, &usage->cache_write);
    hf_reply_tell_usage(&decode->reply);
}

static int take_identity(struct hf_decode *decode, const struct object *message)
{
    struct hf_reply *reply = &decode->reply;
    int rc = hf_reply_note(reply, message->id, &reply->evidence.response_id);
    return rc ? rc : hf_reply_note(reply, message->model, &reply->evidence.model);
}

static int take_stop(struct hf_decode *decode, struct hf_span raw)
{
    struct hf_reply *reply = &decode->reply;
    if (raw.len <= 2 || *(const char *)raw.at != '"')
        return 0; /* null */
    reply->reason = HF_REASON_PROVIDER_ERROR;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        if (hf_walk_is(raw, stops[i].word))
            reply->reason = stops[i].reason;
    return hf_reply_note(reply, raw, &reply->evidence.finish);
}

/* Thinking goes back as the block it was. Its signature is gathered in `replay`; here it
 * becomes the block. Without a signature it cannot go back. */
static int seal_thinking(struct hf_reply_part *part)
{
    struct hf_buf block;
    struct hf_json json;
    hf_buf_init(&block, part->replay.alloc, part->replay.max);
    hf_json_begin(&json, &block);
    hf_json_object(&json);
    hf_json_put_str(&json, "type", "thinking");
    hf_json_key(&json, "thinking");
    hf_json_strn(&json, hf_buf_str(&part->text), part->text.len);
    hf_json_put_str(&json, "signature", hf_buf_str(&part->replay));
    hf_json_end(&json);
    hf_buf_fini(&part->replay);
    part->replay = block;
    part->sealed = true;
    return hf_buf_state(&block);
}

static int add_signature(struct hf_reply_part *part, struct hf_span raw)
{
    const char *at = raw.at;
    if (raw.len <= 2 || at[0] != '"' || part->sealed)
        return 0;
    char *to = hf_buf_room(&part->replay, raw.len - 2);
    if (to)
        hf_buf_grew(&part->replay, hf_json_unescape(at + 1, raw.len - 2, to));
    return hf_buf_state(&part->replay);
}

/* Thinking that is hidden goes back as the block it is. */
static int keep_redacted(struct hf_reply_part *part, struct hf_span raw)
{
    hf_buf_bytes(&part->replay, raw.at, raw.len);
    part->sealed = true;
    return hf_buf_state(&part->replay);
}

/* A call's input comes whole here, or in pieces later; then it is {} here. */
static int begin_call(struct hf_reply *reply, struct hf_reply_part *part,
                      const struct object *block)
{
    int rc = hf_reply_note(reply, block->id, &part->call_id);
    if (rc == 0)
        rc = hf_reply_note(reply, block->name, &part->tool);
    if (rc == 0 && block->input.len > 2)
        hf_buf_bytes(&part->text, block->input.at, block->input.len);
    return rc ? rc : hf_buf_state(&part->text);
}

/* A content block begins; a block of a kind that is not known is left out. */
static int begin_block(struct hf_decode *decode, int64_t slot, struct hf_span raw)
{
    struct hf_reply *reply = &decode->reply;
    struct hf_reply_part *part = NULL;
    struct object block;
    if (!read_object(raw, &block))
        return HF_EINVAL;
    bool redacted = hf_walk_is(block.type, "redacted_thinking");
    bool thinking = redacted || hf_walk_is(block.type, "thinking");
    bool call = hf_walk_is(block.type, "tool_use");
    if (!thinking && !call && !hf_walk_is(block.type, "text"))
        return 0;
    int rc = hf_reply_part(reply,
                           thinking ? HF_PART_REASONING
                           : call   ? HF_PART_TOOL_CALL
                                    : HF_PART_TEXT,
                           slot, &part);
    if (rc)
        return rc;
    reply->output |= call || redacted;
    if (redacted)
        return keep_redacted(part, raw);
    if (call)
        return begin_call(reply, part, &block);
    rc = hf_reply_text(reply, part, thinking ? block.thinking : block.text);
    return rc ? rc : add_signature(part, block.signature);
}

/* The part of that slot, or NULL for a block that is left out. */
static struct hf_reply_part *part_at(struct hf_reply *reply, int64_t slot)
{
    for (size_t i = reply->count; i > 0; i--)
        if (reply->parts[i - 1].slot == slot)
            return &reply->parts[i - 1];
    return NULL;
}

static int take_delta(struct hf_decode *decode, int64_t slot, struct hf_span raw)
{
    struct hf_reply *reply = &decode->reply;
    struct hf_reply_part *part = part_at(reply, slot);
    struct object delta;
    if (!part || !read_object(raw, &delta))
        return part ? HF_EINVAL : 0;
    if (part->kind == HF_PART_TOOL_CALL)
        return hf_reply_text(reply, part, delta.partial_json);
    if (part->kind == HF_PART_TEXT)
        return hf_reply_text(reply, part, delta.text);
    int rc = hf_reply_text(reply, part, delta.thinking);
    return rc ? rc : add_signature(part, delta.signature);
}

static int end_block(struct hf_decode *decode, int64_t slot)
{
    struct hf_reply *reply = &decode->reply;
    struct hf_reply_part *part = part_at(reply, slot);
    int rc = 0;
    if (!part || part->complete)
        return 0;
    if (part->kind == HF_PART_REASONING && part->replay.len > 0 && !part->sealed)
        rc = seal_thinking(part);
    if (part->kind == HF_PART_TOOL_CALL && part->text.len == 0)
        hf_buf_text(&part->text, "{}");
    if (rc == 0)
        rc = hf_buf_state(&part->text);
    if (rc == 0)
        hf_reply_complete(reply, part);
    return rc;
}

static int take_error(struct hf_decode *decode, struct hf_span raw)
{
    decode->fault.source = HF_FAULT_SERVER;
    hf_fault_read(&decode->fault, raw);
    return HF_EPROTOCOL;
}

static int on_message_start(struct hf_decode *decode, const struct object *event)
{
    struct object message;
    if (!read_object(event->message, &message))
        return HF_EINVAL;
    int rc = take_identity(decode, &message);
    if (rc == 0)
        take_usage(decode, message.usage);
    return rc;
}

static int on_message_delta(struct hf_decode *decode, const struct object *event)
{
    struct object delta;
    if (!read_object(event->delta, &delta))
        return HF_EINVAL;
    int rc = take_stop(decode, delta.stop_reason);
    if (rc == 0)
        take_usage(decode, event->usage);
    return rc;
}

static int read_event(struct hf_decode *decode, struct hf_span json)
{
    static const char *const types[] = { "content_block_delta",
                                         "content_block_start",
                                         "content_block_stop",
                                         "message_start",
                                         "message_delta",
                                         "message_stop",
                                         "error" };
    struct object event;
    int64_t slot = 0;
    if (!read_object(json, &event))
        return HF_EINVAL;
    int type = hf_wire_word_of(event.type, types, sizeof(types) / sizeof(types[0]));
    if (type >= 0 && type <= 2 && !hf_walk_i64(event.index, &slot))
        return HF_EINVAL;
    switch (type) {
    case 0: return take_delta(decode, slot, event.delta);
    case 1: return begin_block(decode, slot, event.content_block);
    case 2: return end_block(decode, slot);
    case 3: return on_message_start(decode, &event);
    case 4: return on_message_delta(decode, &event);
    case 5: decode->reply.terminal = true; return 0;
    case 6: return take_error(decode, event.error);
    default: return 0; /* ping, and what later versions add */
    }
}

static int read_content(struct hf_decode *decode, struct hf_span raw)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, raw);
    if (!hf_walk_enter(&walk, '['))
        return HF_EINVAL;
    int rc = 0;
    for (int64_t slot = 0; hf_walk_more(&walk); slot++) {
        struct hf_span block = hf_walk_value(&walk);
        if (rc == 0)
            rc = begin_block(decode, slot, block);
        if (rc == 0)
            rc = end_block(decode, slot);
    }
    return rc;
}

static int read_whole(struct hf_decode *decode, struct hf_span json)
{
    struct object message;
    if (!read_object(json, &message))
        return HF_EINVAL;
    if (hf_walk_is(message.type, "error"))
        return take_error(decode, message.error);
    int rc = take_identity(decode, &message);
    if (rc == 0)
        rc = read_content(decode, message.content);
    if (rc == 0)
        rc = take_stop(decode, message.stop_reason);
    if (rc == 0)
        take_usage(decode, message.usage);
    if (rc == 0)
        decode->reply.terminal = decode->reply.evidence.finish != NULL;
    return rc;
}

static bool never_last(struct hf_span event)
{
    (void)event;
    return false;
}

const struct hf_codec hf_codec_messages = {
    .name = "anthropic-messages",
    .path = "/v1/messages",
    .encode = hf_messages_encode,
    .is_last = never_last,
    .event = read_event,
    .whole = read_whole,
};
