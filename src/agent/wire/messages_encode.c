/* anthropic-messages: the request. The endpoint refuses empty texts, two messages of one
 * role in a row, and tool results that do not come first in their message. */
#include "agent/wire/messages.h"

#include <string.h>

#include "base/err.h"

/* What thinking may take for each word of `reasoning`; the endpoint's least is 1,024. */
static const int64_t budgets[] = { 0, 1024, 4096, 8192, 16384 };

/* The cache mark: the endpoint keeps the request up to here for later requests that begin alike. */
static void put_cache_mark(struct hf_json *json)
{
    hf_json_key(json, "cache_control");
    hf_json_object(json);
    hf_json_put_str(json, "type", "ephemeral");
    hf_json_end(json);
}

static int put_image(struct hf_encode *encode,
                     const struct hf_wire_attachment *attachment, struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    hf_json_put_str(json, "type", "image");
    hf_json_key(json, "source");
    hf_json_object(json);
    hf_json_put_str(json, "type", "base64");
    hf_json_put_str(json, "media_type", attachment->media_type);
    hf_json_key(json, "data");
    int rc = hf_encode_base64(encode, "", attachment->bytes, err);
    if (rc == 0)
        hf_json_end(json);
    return rc;
}

static int put_attachment(struct hf_encode *encode, const struct hf_block *block,
                          bool mark, struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    struct hf_wire_attachment attachment;
    int rc = hf_encode_attachment(encode, block, &attachment, err);
    if (rc)
        return rc;
    hf_json_object(json);
    rc = attachment.text ? hf_encode_attached_text(encode, &attachment, err)
                         : put_image(encode, &attachment, err);
    if (rc)
        return rc;
    if (mark)
        put_cache_mark(json);
    hf_json_end(json);
    return 0;
}

/* The arguments of a call must be an object; other text is wrapped. */
static void put_input(struct hf_encode *encode, struct hf_span args)
{
    struct hf_json *json = &encode->json;
    hf_json_key(json, "input");
    if (hf_wire_is_object(args)) {
        hf_json_rawn(json, args.at, args.len);
        return;
    }
    hf_json_object(json);
    if (!hf_blank(args))
        hf_encode_span(encode, "arguments", args);
    hf_json_end(json);
}

static int put_block(struct hf_encode *encode, const struct hf_block *block, bool mark,
                     struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    if (block->kind == HF_BLOCK_REASONING) {
        hf_json_rawn(json, block->replay.at, block->replay.len);
        return 0;
    }
    if (block->kind == HF_BLOCK_ATTACHMENT)
        return put_attachment(encode, block, mark, err);
    hf_json_object(json);
    if (block->kind == HF_BLOCK_TEXT) {
        hf_json_put_str(json, "type", "text");
        hf_encode_span(encode, "text", block->text);
    } else if (block->kind == HF_BLOCK_TOOL_CALL) {
        hf_json_put_str(json, "type", "tool_use");
        hf_json_put_str(json, "id", block->call_id);
        hf_json_put_str(json, "name", block->tool);
        put_input(encode, block->text);
    } else {
        hf_json_put_str(json, "type", "tool_result");
        hf_json_put_str(json, "tool_use_id", block->call_id);
        if (!hf_blank(block->text))
            hf_encode_span(encode, "content", block->text);
    }
    if (mark)
        put_cache_mark(json);
    hf_json_end(json);
    return 0;
}

static bool is_shown(const struct hf_block *block)
{
    if (block->kind == HF_BLOCK_REASONING)
        return block->replay.len > 0;
    return block->kind != HF_BLOCK_TEXT || !hf_blank(block->text);
}

/* The block that carries the cache mark of a message: its last, but none of thinking. */
static const struct hf_block *marked_block(const struct hf_rendered *message)
{
    for (size_t i = message->cache_breakpoint ? message->block_count : 0; i > 0; i--)
        if (is_shown(&message->blocks[i - 1]) &&
            message->blocks[i - 1].kind != HF_BLOCK_REASONING)
            return &message->blocks[i - 1];
    return NULL;
}

static bool has_blocks(const struct hf_rendered *message)
{
    for (size_t i = 0; i < message->block_count; i++)
        if (is_shown(&message->blocks[i]))
            return true;
    return false;
}

static int put_blocks(struct hf_encode *encode, const struct hf_rendered *message,
                      bool results, struct hf_err *err)
{
    const struct hf_block *marked = marked_block(message);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < message->block_count; i++) {
        const struct hf_block *block = &message->blocks[i];
        if (is_shown(block) && (block->kind == HF_BLOCK_TOOL_RESULT) == results)
            rc = put_block(encode, block, block == marked, err);
    }
    return rc;
}

static bool is_assistant(const struct hf_rendered *message)
{
    return message->role == HF_ROLE_ASSISTANT;
}

/* Past the last message that merges with message `from`; ones that show nothing merge with
 * anything. */
static size_t group_end(const struct hf_render *render, size_t from)
{
    const struct hf_rendered *first = hf_render_message(render, from);
    const struct hf_rendered *next = NULL;
    size_t end = from + 1;
    while ((next = hf_render_message(render, end)) &&
           (!has_blocks(next) || is_assistant(next) == is_assistant(first)))
        end++;
    return end;
}

static int put_group(struct hf_encode *encode, size_t from, size_t end,
                     struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    const struct hf_render *render = encode->call->render;
    int rc = 0;
    hf_json_object(json);
    hf_json_put_str(json, "role",
                    is_assistant(hf_render_message(render, from)) ? "assistant" : "user");
    hf_json_key(json, "content");
    hf_json_array(json);
    for (int results = 1; results >= 0; results--)
        for (size_t i = from; rc == 0 && i < end; i++)
            rc = put_blocks(encode, hf_render_message(render, i), results, err);
    if (rc)
        return rc;
    hf_json_end(json);
    hf_json_end(json);
    return 0;
}

/* The first message, if it is the system's. Later ones are user turns. */
static const struct hf_rendered *hoisted(const struct hf_render *render)
{
    const struct hf_rendered *first = hf_render_message(render, 0);
    return first && first->role == HF_ROLE_SYSTEM ? first : NULL;
}

/* The system text, whose last block has the cache mark. The endpoint reads tools, system text and
 * messages in this order, and the first two seldom change from one request to the next. */
static int put_system(struct hf_encode *encode, struct hf_err *err)
{
    const struct hf_rendered *system = hoisted(encode->call->render);
    size_t last = 0;
    int rc = 0;
    if (!system || !has_blocks(system))
        return 0;
    for (size_t i = 0; i < system->block_count; i++)
        last = is_shown(&system->blocks[i]) ? i : last;
    hf_json_key(&encode->json, "system");
    hf_json_array(&encode->json);
    for (size_t i = 0; rc == 0 && i < system->block_count; i++)
        if (is_shown(&system->blocks[i]))
            rc = put_block(encode, &system->blocks[i], i == last, err);
    if (rc == 0)
        hf_json_end(&encode->json);
    return rc;
}

static int put_messages(struct hf_encode *encode, struct hf_err *err)
{
    const struct hf_render *render = encode->call->render;
    const struct hf_rendered *message = NULL;
    size_t at = hoisted(render) ? 1 : 0;
    int rc = 0;
    hf_json_key(&encode->json, "messages");
    hf_json_array(&encode->json);
    while (rc == 0 && (message = hf_render_message(render, at))) {
        size_t end = group_end(render, at);
        if (has_blocks(message))
            rc = put_group(encode, at, end, err);
        else
            end = at + 1;
        at = end;
    }
    if (rc == 0)
        hf_json_end(&encode->json);
    return rc;
}

/* One tool. Without a system text the last tool has the cache mark instead (put_system). */
static void put_tool(struct hf_encode *encode, const struct hf_wire_tool *tool)
{
    struct hf_json *json = &encode->json;
    const struct hf_rendered *system = hoisted(encode->call->render);
    hf_json_object(json);
    hf_encode_raw(encode, "name", tool->name);
    if (tool->description.len > 0)
        hf_encode_raw(encode, "description", tool->description);
    hf_encode_raw(encode, "input_schema", tool->schema);
    if (tool->last && !(system && has_blocks(system)))
        put_cache_mark(json);
    hf_json_end(json);
}

/* With thinking the endpoint takes no forced choice. */
static void put_choice(struct hf_encode *encode, bool thinking)
{
    struct hf_json *json = &encode->json;
    struct hf_span choice = encode->options.value[HF_OPTION_TOOL_CHOICE];
    struct hf_span parallel = encode->options.value[HF_OPTION_PARALLEL_TOOLS];
    bool none = encode->call->request->tool_choice == HF_TOOLS_NONE;
    if (thinking && choice.len > 0) {
        encode->omitted |= UINT32_C(1) << HF_OPTION_TOOL_CHOICE;
        choice.len = 0;
    }
    bool forced = !none && choice.len > 0 &&
                  hf_encode_wants(encode, HF_OPTION_TOOL_CHOICE);
    bool serial = hf_encode_wants(encode, HF_OPTION_PARALLEL_TOOLS) && !none &&
                  *(const char *)parallel.at == 'f';
    if (!none && !forced && !serial)
        return;
    hf_json_key(json, "tool_choice");
    hf_json_object(json);
    if (!forced) {
        hf_json_put_str(json, "type", none ? "none" : "auto");
    } else if (*(const char *)choice.at == '"') {
        hf_json_put_str(json, "type", "any");
    } else {
        struct hf_walk walk;
        hf_json_put_str(json, "type", "tool");
        hf_walk_begin(&walk, choice);
        (void)hf_walk_enter(&walk, '{'); /* hf_options_read saw to it */
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, "name"))
                hf_encode_raw(encode, "name", value);
        }
    }
    if (serial)
        hf_json_put_bool(json, "disable_parallel_tool_use", true);
    hf_json_end(json);
}

static void put_tools(struct hf_encode *encode, bool thinking)
{
    struct hf_walk tools;
    struct hf_wire_tool tool;
    if (!hf_encode_tools(encode, &tools))
        return;
    hf_json_key(&encode->json, "tools");
    hf_json_array(&encode->json);
    while (hf_encode_tool(&tools, &tool))
        put_tool(encode, &tool);
    hf_json_end(&encode->json);
    put_choice(encode, thinking);
}

/* Thinking must leave room below the cap. */
static bool put_thinking(struct hf_encode *encode, int64_t cap)
{
    struct hf_json *json = &encode->json;
    int effort = hf_options_effort(&encode->options);
    if (effort < 0 || !hf_encode_wants(encode, HF_OPTION_REASONING) || effort == 0)
        return false;
    int64_t budget = budgets[effort] < cap ? budgets[effort] : cap - 1;
    if (budget < budgets[1]) {
        encode->honoured &= ~(UINT32_C(1) << HF_OPTION_REASONING);
        encode->omitted |= UINT32_C(1) << HF_OPTION_REASONING;
        return false;
    }
    hf_json_key(json, "thinking");
    hf_json_object(json);
    hf_json_put_str(json, "type", "enabled");
    hf_json_put_i64(json, "budget_tokens", budget);
    hf_json_end(json);
    return true;
}

/* What the endpoint does not have, or not together with thinking. */
static void leave_out(struct hf_encode *encode, enum hf_model_option option)
{
    if (encode->options.value[option].len > 0)
        encode->omitted |= UINT32_C(1) << option;
}

static int64_t put_cap(struct hf_encode *encode)
{
    int64_t cap = encode->dialect->max_tokens;
    if (cap == 0)
        cap = HF_MESSAGES_MAX_TOKENS;
    if (hf_encode_wants(encode, HF_OPTION_MAX_OUTPUT_TOKENS))
        (void)hf_walk_i64(encode->options.value[HF_OPTION_MAX_OUTPUT_TOKENS],
                          &cap); /* hf_options_read saw to it */
    hf_json_put_i64(&encode->json, "max_tokens", cap);
    return cap;
}

int hf_messages_encode(struct hf_encode *encode, struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    hf_json_object(json);
    hf_json_put_str(json, "model", encode->call->request->model);
    bool thinking = put_thinking(encode, put_cap(encode));
    int rc = put_system(encode, err);
    if (rc == 0)
        rc = put_messages(encode, err);
    if (rc)
        return rc;
    put_tools(encode, thinking);
    if (thinking)
        leave_out(encode, HF_OPTION_TEMPERATURE);
    else
        hf_encode_option(encode, "temperature", HF_OPTION_TEMPERATURE);
    hf_encode_option(encode, "stop_sequences", HF_OPTION_STOP);
    leave_out(encode, HF_OPTION_SEED);
    leave_out(encode, HF_OPTION_OUTPUT);
    (void)hf_encode_wants(encode, HF_OPTION_STREAM); /* for the receipt */
    if (hf_options_stream(&encode->options) &&
        !(encode->dialect->omit & (1u << HF_OPTION_STREAM)))
        hf_json_put_bool(json, "stream", true);
    hf_json_end(json);
    return 0;
}
