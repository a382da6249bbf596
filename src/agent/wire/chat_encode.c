/* openai-chat: the request. */
#include "agent/wire/chat.h"

#include <string.h>

#include "base/err.h"

static void put_text_part(struct hf_json *json, struct hf_span text)
{
    hf_json_object(json);
    hf_json_put_str(json, "type", "text");
    hf_json_key(json, "text");
    hf_json_strn(json, text.at, text.len);
    hf_json_end(json);
}

static int put_image(struct hf_encode *encode,
                     const struct hf_wire_attachment *attachment, struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    struct hf_buf before;
    hf_buf_init(&before, encode->alloc, 512);
    hf_buf_text(&before, "data:");
    hf_buf_text(&before, attachment->media_type);
    hf_buf_text(&before, ";base64,");
    hf_json_put_str(json, "type", "image_url");
    hf_json_key(json, "image_url");
    hf_json_object(json);
    hf_json_key(json, "url");
    int rc = hf_buf_state(&before);
    rc = rc ? hf_encode_fail(rc, err)
            : hf_encode_base64(encode, hf_buf_str(&before), attachment->bytes, err);
    hf_buf_fini(&before);
    if (rc == 0)
        hf_json_end(json);
    return rc;
}

static int put_attachment(struct hf_encode *encode, const struct hf_block *block,
                          struct hf_err *err)
{
    struct hf_wire_attachment attachment;
    int rc = hf_encode_attachment(encode, block, &attachment, err);
    if (rc)
        return rc;
    hf_json_object(&encode->json);
    rc = attachment.text ? hf_encode_attached_text(encode, &attachment, err)
                         : put_image(encode, &attachment, err);
    if (rc == 0)
        hf_json_end(&encode->json);
    return rc;
}

static bool is_result(const struct hf_block *block)
{
    return block->kind == HF_BLOCK_TOOL_RESULT;
}

/* Each result is a message of its own. */
static size_t put_results(struct hf_encode *encode, const struct hf_rendered *message)
{
    struct hf_json *json = &encode->json;
    size_t count = 0;
    for (size_t i = 0; i < message->block_count; i++) {
        const struct hf_block *block = &message->blocks[i];
        if (!is_result(block))
            continue;
        hf_json_object(json);
        hf_json_put_str(json, "role", "tool");
        hf_json_put_str(json, "tool_call_id", block->call_id);
        hf_encode_span(encode, "content", block->text);
        hf_json_end(json);
        count++;
    }
    return count;
}

/* The text of a message that shows exactly one text, or NULL. */
static const struct hf_block *only_text(const struct hf_rendered *message, size_t shown)
{
    const struct hf_block *found = NULL;
    for (size_t i = 0; shown == 1 && i < message->block_count; i++)
        if (!is_result(&message->blocks[i]))
            found = &message->blocks[i];
    return found && found->kind == HF_BLOCK_TEXT ? found : NULL;
}

static int put_user_content(struct hf_encode *encode, const struct hf_rendered *message,
                            size_t shown, struct hf_err *err)
{
    const struct hf_block *only = only_text(message, shown);
    int rc = 0;
    if (only) {
        hf_encode_span(encode, "content", only->text);
        return 0;
    }
    hf_json_key(&encode->json, "content");
    hf_json_array(&encode->json);
    for (size_t i = 0; rc == 0 && i < message->block_count; i++) {
        const struct hf_block *block = &message->blocks[i];
        if (block->kind == HF_BLOCK_ATTACHMENT)
            rc = put_attachment(encode, block, err);
        else if (block->kind == HF_BLOCK_TEXT)
            put_text_part(&encode->json, block->text);
    }
    if (rc == 0)
        hf_json_end(&encode->json);
    return rc;
}

static int put_user(struct hf_encode *encode, const struct hf_rendered *message,
                    struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    size_t shown = message->block_count - put_results(encode, message);
    if (shown == 0)
        return 0;
    hf_json_object(json);
    hf_json_put_str(json, "role", message->role == HF_ROLE_SYSTEM ? "system" : "user");
    int rc = put_user_content(encode, message, shown, err);
    if (rc == 0)
        hf_json_end(json);
    return rc;
}

static void put_call(struct hf_encode *encode, const struct hf_block *block)
{
    struct hf_json *json = &encode->json;
    hf_json_object(json);
    hf_json_put_str(json, "id", block->call_id);
    hf_json_put_str(json, "type", "function");
    hf_json_key(json, "function");
    hf_json_object(json);
    hf_json_put_str(json, "name", block->tool);
    hf_encode_span(encode, "arguments", block->text);
    hf_json_end(json);
    if (block->replay.len > 0)
        hf_encode_raw(encode, "extra_content", block->replay);
    hf_json_end(json);
}

/* The texts of an assistant's message as one, or null. */
static void put_texts(struct hf_encode *encode, const struct hf_rendered *message)
{
    struct hf_buf text;
    bool any = false;
    hf_buf_init(&text, encode->alloc, encode->json.out->max);
    for (size_t i = 0; i < message->block_count; i++)
        if (message->blocks[i].kind == HF_BLOCK_TEXT) {
            if (any)
                hf_buf_char(&text, '\n');
            hf_buf_bytes(&text, message->blocks[i].text.at, message->blocks[i].text.len);
            any = true;
        }
    hf_json_key(&encode->json, "content");
    if (hf_buf_state(&text))
        encode->json.out->state = hf_buf_state(&text);
    if (any)
        hf_json_strn(&encode->json, hf_buf_str(&text), text.len);
    else
        hf_json_null(&encode->json);
    hf_buf_fini(&text);
}

/* Reasoning items of all reasoning blocks, joined: each replay is an array of items. */
static void put_reasoning(struct hf_encode *encode, const struct hf_rendered *message)
{
    struct hf_json *json = &encode->json;
    bool any = false;
    for (size_t i = 0; i < message->block_count; i++) {
        struct hf_span replay = message->blocks[i].replay;
        if (message->blocks[i].kind != HF_BLOCK_REASONING || replay.len <= 2)
            continue;
        if (!any) {
            hf_json_key(json, "reasoning_details");
            hf_json_array(json);
        }
        any = true;
        hf_json_rawn(json, (const char *)replay.at + 1, replay.len - 2);
    }
    if (any)
        hf_json_end(json);
}

static void put_assistant(struct hf_encode *encode, const struct hf_rendered *message)
{
    struct hf_json *json = &encode->json;
    bool open = false;
    hf_json_object(json);
    hf_json_put_str(json, "role", "assistant");
    put_texts(encode, message);
    put_reasoning(encode, message);
    for (size_t i = 0; i < message->block_count; i++) {
        if (message->blocks[i].kind != HF_BLOCK_TOOL_CALL)
            continue;
        if (!open) {
            hf_json_key(json, "tool_calls");
            hf_json_array(json);
        }
        open = true;
        put_call(encode, &message->blocks[i]);
    }
    if (open)
        hf_json_end(json);
    hf_json_end(json);
}

static int put_messages(struct hf_encode *encode, struct hf_err *err)
{
    int rc = 0;
    const struct hf_rendered *message = NULL;
    hf_json_key(&encode->json, "messages");
    hf_json_array(&encode->json);
    for (size_t i = 0; rc == 0; i++) {
        message = hf_render_message(encode->call->render, i);
        if (!message)
            break;
        if (message->role == HF_ROLE_ASSISTANT)
            put_assistant(encode, message);
        else
            rc = put_user(encode, message, err);
    }
    if (rc == 0)
        hf_json_end(&encode->json);
    return rc;
}

static void put_tool(struct hf_encode *encode, const struct hf_wire_tool *tool)
{
    struct hf_json *json = &encode->json;
    hf_json_object(json);
    hf_json_put_str(json, "type", "function");
    hf_json_key(json, "function");
    hf_json_object(json);
    hf_encode_raw(encode, "name", tool->name);
    if (tool->description.len > 0)
        hf_encode_raw(encode, "description", tool->description);
    hf_encode_raw(encode, "parameters", tool->schema);
    if (tool->strict.len > 0)
        hf_encode_raw(encode, "strict", tool->strict);
    hf_json_end(json);
    hf_json_end(json);
}

static void put_choice(struct hf_encode *encode)
{
    struct hf_json *json = &encode->json;
    struct hf_span choice = encode->options.value[HF_OPTION_TOOL_CHOICE];
    if (encode->call->request->tool_choice == HF_TOOLS_NONE) {
        hf_json_put_str(json, "tool_choice", "none");
    } else if (hf_encode_wants(encode, HF_OPTION_TOOL_CHOICE)) {
        hf_json_key(json, "tool_choice");
        if (*(const char *)choice.at == '"') {
            hf_json_rawn(json, choice.at, choice.len);
            return;
        }
        hf_json_object(json);
        hf_json_put_str(json, "type", "function");
        hf_encode_raw(encode, "function", choice);
        hf_json_end(json);
    }
}

static void put_tools(struct hf_encode *encode)
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
    put_choice(encode);
    hf_encode_option(encode, "parallel_tool_calls", HF_OPTION_PARALLEL_TOOLS);
}

/* {"type":"json_schema", …} becomes {"type":"json_schema","json_schema":{…}}. */
static void put_output(struct hf_encode *encode)
{
    struct hf_json *json = &encode->json;
    struct hf_span output = encode->options.value[HF_OPTION_OUTPUT];
    struct hf_walk walk;
    if (!hf_encode_wants(encode, HF_OPTION_OUTPUT))
        return;
    bool schema = false;
    hf_json_key(json, "response_format");
    hf_json_object(json);
    hf_walk_begin(&walk, output);
    (void)hf_walk_enter(&walk, '{'); /* hf_options_read saw to it */
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        schema |= hf_walk_is(hf_walk_value(&walk), "json_schema") &&
                  hf_walk_is(key, "type");
    }
    hf_json_put_str(json, "type", schema ? "json_schema" : "json_object");
    if (schema) {
        hf_json_key(json, "json_schema");
        hf_json_object(json);
        hf_walk_begin(&walk, output);
        (void)hf_walk_enter(&walk, '{');
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, "name"))
                hf_encode_raw(encode, "name", value);
            else if (hf_walk_is(key, "schema"))
                hf_encode_raw(encode, "schema", value);
            else if (hf_walk_is(key, "strict"))
                hf_encode_raw(encode, "strict", value);
        }
        hf_json_end(json);
    }
    hf_json_end(json);
}

static void put_stream(struct hf_encode *encode)
{
    struct hf_json *json = &encode->json;
    (void)hf_encode_wants(encode, HF_OPTION_STREAM); /* for the receipt */
    if (!hf_options_stream(&encode->options) ||
        (encode->dialect->omit & (1u << HF_OPTION_STREAM)))
        return;
    hf_json_put_bool(json, "stream", true);
    if (encode->dialect->no_stream_usage)
        return;
    hf_json_key(json, "stream_options");
    hf_json_object(json);
    hf_json_put_bool(json, "include_usage", true);
    hf_json_end(json);
}

int hf_chat_encode(struct hf_encode *encode, struct hf_err *err)
{
    struct hf_json *json = &encode->json;
    const char *cap = encode->dialect->token_field;
    hf_json_object(json);
    hf_json_put_str(json, "model", encode->call->request->model);
    int rc = put_messages(encode, err);
    if (rc)
        return rc;
    put_tools(encode);
    hf_encode_option(encode, cap ? cap : "max_tokens", HF_OPTION_MAX_OUTPUT_TOKENS);
    hf_encode_option(encode, "temperature", HF_OPTION_TEMPERATURE);
    hf_encode_option(encode, "seed", HF_OPTION_SEED);
    hf_encode_option(encode, "stop", HF_OPTION_STOP);
    hf_encode_option(encode, "reasoning_effort", HF_OPTION_REASONING);
    put_output(encode);
    put_stream(encode);
    hf_json_end(json);
    return 0;
}
