/* openai-chat: the answer. A stream is a row of chunks and "[DONE]"; a body that is no
 * stream is one chunk whose choices have a message instead of a delta. */
#include "agent/wire/chat.h"

#include <string.h>

/* Slots of parts: a reply has one text and one reasoning; calls are numbered. */
#define THE_ONE 0

static const struct {
    const char *word;
    enum hf_reason reason;
} finishes[] = {
    { "stop", HF_REASON_STOP },
    { "tool_calls", HF_REASON_TOOL_USE },
    { "function_call", HF_REASON_TOOL_USE },
    { "length", HF_REASON_OUTPUT_LIMIT },
    { "max_tokens", HF_REASON_OUTPUT_LIMIT },
    { "content_filter", HF_REASON_CONTENT_FILTER },
    { "safety", HF_REASON_CONTENT_FILTER },
};

static int add_text(struct hf_decode *decode, enum hf_part_kind kind, struct hf_span raw)
{
    if (raw.len <= 2 || *(const char *)raw.at != '"')
        return 0; /* null, or nothing new */
    struct hf_reply_part *part = NULL;
    int rc = hf_reply_part(&decode->reply, kind, THE_ONE, &part);
    return rc ? rc : hf_reply_text(&decode->reply, part, raw);
}

/* Not so for null, a text, and an empty array. */
static bool has_items(struct hf_span raw)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, raw);
    return hf_walk_enter(&walk, '[') && hf_walk_more(&walk);
}

/* The items of a chunk's reasoning_details, which only the provider can read (sealed reasoning).
 * All items of a reply are one array, part->replay, which the next request sends back with the
 * reply. With them the answer has begun (`output`). */
static int add_details(struct hf_decode *decode, struct hf_span raw)
{
    if (!has_items(raw))
        return 0;
    struct hf_reply_part *part = NULL;
    int rc = hf_reply_part(&decode->reply, HF_PART_REASONING, THE_ONE, &part);
    if (rc)
        return rc;
    if (part->replay.len > 0) {
        part->replay.len--; /* the closing bracket */
        hf_buf_char(&part->replay, ',');
        hf_buf_bytes(&part->replay, (const char *)raw.at + 1, raw.len - 1);
    } else {
        hf_buf_bytes(&part->replay, raw.at, raw.len);
    }
    decode->reply.output = true;
    return hf_buf_state(&part->replay);
}

/* One item of "tool_calls", as it was found. */
struct call {
    int64_t index;
    struct hf_span id;
    struct hf_span name;
    struct hf_span arguments;
    struct hf_span extra;
};

static void read_function(struct hf_walk *walk, struct call *call)
{
    if (!hf_walk_enter(walk, '{')) {
        (void)hf_walk_value(walk);
        return;
    }
    while (hf_walk_more(walk)) {
        struct hf_span key = hf_walk_key(walk);
        struct hf_span value = hf_walk_value(walk);
        if (hf_walk_is(key, "name"))
            call->name = value;
        else if (hf_walk_is(key, "arguments"))
            call->arguments = value;
    }
}

static struct call read_call(struct hf_walk *walk, int64_t number)
{
    struct call call = { .index = number };
    if (!hf_walk_enter(walk, '{')) {
        (void)hf_walk_value(walk);
        return call;
    }
    while (hf_walk_more(walk)) {
        struct hf_span key = hf_walk_key(walk);
        if (hf_walk_is(key, "function")) {
            read_function(walk, &call);
            continue;
        }
        struct hf_span value = hf_walk_value(walk);
        if (hf_walk_is(key, "index"))
            (void)hf_walk_i64(value, &call.index); /* otherwise its place counts */
        else if (hf_walk_is(key, "id"))
            call.id = value;
        else if (hf_walk_is(key, "extra_content") && value.len > 4)
            call.extra = value;
    }
    return call;
}

/* A call is complete when the next one begins. */
static void complete_before(struct hf_reply *reply, const struct hf_reply_part *begun)
{
    for (size_t i = 0; i < reply->count; i++)
        if (&reply->parts[i] != begun)
            hf_reply_complete(reply, &reply->parts[i]);
}

static int add_call(struct hf_decode *decode, const struct call *call)
{
    struct hf_reply *reply = &decode->reply;
    size_t before = reply->count;
    struct hf_reply_part *part = NULL;
    int rc = hf_reply_part(reply, HF_PART_TOOL_CALL, call->index, &part);
    if (rc)
        return rc;
    if (reply->count > before)
        complete_before(reply, part);
    reply->output = true;
    rc = hf_reply_note(reply, call->id, &part->call_id);
    if (rc == 0)
        rc = hf_reply_note(reply, call->name, &part->tool);
    if (rc == 0)
        rc = hf_reply_text(reply, part, call->arguments);
    if (rc == 0 && call->extra.len > 0 && part->replay.len == 0) {
        hf_buf_bytes(&part->replay, call->extra.at, call->extra.len);
        rc = hf_buf_state(&part->replay);
    }
    return rc;
}

static int read_calls(struct hf_decode *decode, struct hf_walk *walk)
{
    int rc = 0;
    if (!hf_walk_enter(walk, '[')) {
        (void)hf_walk_value(walk); /* null */
        return 0;
    }
    for (int64_t number = 0; hf_walk_more(walk); number++) {
        struct call call = read_call(walk, number);
        if (rc == 0)
            rc = add_call(decode, &call);
    }
    return rc;
}

/* A delta or a message. The reasoning field has three names; one chunk may use two for the
 * same text, of which the first counts. */
static int read_delta(struct hf_decode *decode, struct hf_walk *walk)
{
    static const char *const reasonings[] = { "reasoning_content", "reasoning",
                                              "reasoning_text" };
    struct hf_span reasoning = { 0 };
    struct hf_span content = { 0 };
    struct hf_span details = { 0 };
    struct hf_walk calls = { 0 };
    int rc = 0;
    if (!hf_walk_enter(walk, '{')) {
        (void)hf_walk_value(walk);
        return 0;
    }
    while (hf_walk_more(walk)) {
        struct hf_span key = hf_walk_key(walk);
        struct hf_walk at = *walk;
        struct hf_span value = hf_walk_value(walk);
        if (hf_walk_is(key, "content") || (hf_walk_is(key, "refusal") && value.len > 4))
            content = value;
        else if (hf_walk_is(key, "tool_calls"))
            calls = at;
        else if (hf_walk_is(key, "reasoning_details"))
            details = value;
        else if (reasoning.len <= 4 && hf_wire_word_of(key, reasonings, 3) >= 0)
            reasoning = value;
    }
    rc = add_text(decode, HF_PART_REASONING, reasoning);
    if (rc == 0)
        rc = add_details(decode, details);
    if (rc == 0)
        rc = add_text(decode, HF_PART_TEXT, content);
    if (rc == 0 && calls.at)
        rc = read_calls(decode, &calls);
    return rc;
}

static int take_finish(struct hf_decode *decode, struct hf_span raw)
{
    struct hf_reply *reply = &decode->reply;
    if (raw.len <= 2 || *(const char *)raw.at != '"')
        return 0; /* null: there is more */
    reply->reason = HF_REASON_PROVIDER_ERROR;
    for (size_t i = 0; i < sizeof(finishes) / sizeof(finishes[0]); i++)
        if (hf_walk_is(raw, finishes[i].word))
            reply->reason = finishes[i].reason;
    hf_reply_complete_all(reply);
    return hf_reply_note(reply, raw, &reply->evidence.finish);
}

static int read_choice(struct hf_decode *decode, struct hf_walk *walk)
{
    struct hf_walk said = { 0 };
    struct hf_span finish = { 0 };
    int64_t index = 0;
    int rc = 0;
    if (!hf_walk_enter(walk, '{')) {
        (void)hf_walk_value(walk);
        return HF_EINVAL;
    }
    while (hf_walk_more(walk)) {
        struct hf_span key = hf_walk_key(walk);
        struct hf_walk at = *walk;
        struct hf_span value = hf_walk_value(walk);
        if (hf_walk_is(key, "delta") || hf_walk_is(key, "message"))
            said = at;
        else if (hf_walk_is(key, "finish_reason"))
            finish = value;
        else if (hf_walk_is(key, "index"))
            (void)hf_walk_i64(value, &index); /* otherwise it is 0 */
    }
    if (index != 0)
        return 0; /* one answer was asked for */
    if (said.at)
        rc = read_delta(decode, &said);
    return rc ? rc : take_finish(decode, finish);
}

static int read_choices(struct hf_decode *decode, struct hf_walk *walk)
{
    int rc = 0;
    if (!hf_walk_enter(walk, '[')) {
        (void)hf_walk_value(walk);
        return 0;
    }
    while (hf_walk_more(walk)) {
        int one = read_choice(decode, walk);
        rc = rc ? rc : one;
    }
    return rc;
}

/* A member of a member: usage has its details one level down. */
static struct hf_span detail(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, name))
                return value;
        }
    return (struct hf_span){ 0 };
}

/* Prompt tokens count cached ones too; here `input` is what is not cached. */
static void take_usage(struct hf_decode *decode, struct hf_span raw)
{
    struct hf_usage *usage = &decode->reply.usage;
    struct hf_span prompt = detail(raw, "prompt_tokens_details");
    int64_t all = 0;
    if (raw.len <= 4)
        return; /* null */
    hf_reply_count(detail(raw, "prompt_tokens"), &all);
    hf_reply_count(detail(raw, "completion_tokens"), &usage->output);
    hf_reply_count(detail(prompt, "cached_tokens"), &usage->cache_read);
    hf_reply_count(detail(prompt, "cache_write_tokens"), &usage->cache_write);
    hf_reply_count(detail(detail(raw, "completion_tokens_details"), "reasoning_tokens"),
                   &usage->reasoning);
    if (all > 0) {
        int64_t cached = usage->cache_read < all ? usage->cache_read : all;
        int64_t written = usage->cache_write < all - cached ? usage->cache_write
                                                            : all - cached;
        usage->input = all - cached - written;
    }
    hf_reply_tell_usage(&decode->reply);
}

static int take_error(struct hf_decode *decode, struct hf_span raw)
{
    if (raw.len <= 4 && *(const char *)raw.at == 'n')
        return 0; /* null */
    decode->fault.source = HF_FAULT_SERVER;
    hf_fault_read(&decode->fault, raw);
    return HF_EPROTOCOL;
}

/* Identity comes before content, whatever the order of the members. */
static int read_chunk(struct hf_decode *decode, struct hf_span json)
{
    struct hf_reply *reply = &decode->reply;
    struct hf_span id = { 0 };
    struct hf_span model = { 0 };
    struct hf_span usage = { 0 };
    struct hf_span error = { 0 };
    struct hf_walk choices = { 0 };
    struct hf_walk walk;
    hf_walk_begin(&walk, json);
    if (!hf_walk_enter(&walk, '{'))
        return HF_EINVAL;
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_walk at = walk;
        struct hf_span value = hf_walk_value(&walk);
        if (hf_walk_is(key, "choices"))
            choices = at;
        else if (hf_walk_is(key, "id"))
            id = value;
        else if (hf_walk_is(key, "model"))
            model = value;
        else if (hf_walk_is(key, "usage"))
            usage = value;
        else if (hf_walk_is(key, "error"))
            error = value;
    }
    int rc = error.len > 0 ? take_error(decode, error) : 0;
    if (rc == 0)
        rc = hf_reply_note(reply, id, &reply->evidence.response_id);
    if (rc == 0)
        rc = hf_reply_note(reply, model, &reply->evidence.model);
    if (rc == 0 && choices.at)
        rc = read_choices(decode, &choices);
    if (rc == 0)
        take_usage(decode, usage);
    return rc;
}

static bool is_done(struct hf_span event)
{
    return event.len == 6 && memcmp(event.at, "[DONE]", 6) == 0;
}

static int read_whole(struct hf_decode *decode, struct hf_span json)
{
    int rc = read_chunk(decode, json);
    if (rc == 0)
        decode->reply.terminal = decode->reply.evidence.finish != NULL;
    return rc;
}

const struct hf_codec hf_codec_chat = {
    .name = "openai-chat",
    .path = "/chat/completions",
    .encode = hf_chat_encode,
    .finish_ends = true,
    .is_last = is_done,
    .event = read_chunk,
    .whole = read_whole,
};
