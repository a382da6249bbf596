/* Common parts of the encoders. */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/wire/codec.h"
#include "base/err.h"
#include "base/json_walk.h"
#include "base/repair.h"
#include "base/text.h"

/* In place of an image, for a model that takes none. */
#define NO_IMAGES "(an image; it cannot be shown to this model)"

bool hf_encode_wants(struct hf_encode *encode, enum hf_model_option option)
{
    uint32_t bit = UINT32_C(1) << option;
    if (encode->options.value[option].len == 0)
        return false;
    if (encode->dialect->omit & bit) {
        encode->omitted |= bit;
        return false;
    }
    encode->honoured |= bit;
    return true;
}

void hf_encode_raw(struct hf_encode *encode, const char *key, struct hf_span raw)
{
    hf_json_key(&encode->json, key);
    hf_json_rawn(&encode->json, raw.at, raw.len);
}

void hf_encode_span(struct hf_encode *encode, const char *key, struct hf_span text)
{
    hf_json_key(&encode->json, key);
    hf_json_strn(&encode->json, text.len ? text.at : "", text.len);
}

void hf_encode_option(struct hf_encode *encode, const char *key,
                      enum hf_model_option option)
{
    if (hf_encode_wants(encode, option))
        hf_encode_raw(encode, key, encode->options.value[option]);
}

static void put_base64(char *out, const unsigned char *at, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (; len >= 3; len -= 3, at += 3) {
        uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = digits[bits >> 6 & 63];
        *out++ = digits[bits & 63];
    }
    if (len == 0)
        return;
    uint32_t bits = (uint32_t)at[0] << 16 | (len > 1 ? (uint32_t)at[1] << 8 : 0);
    *out++ = digits[bits >> 18];
    *out++ = digits[bits >> 12 & 63];
    *out++ = len > 1 ? digits[bits >> 6 & 63] : '=';
    *out++ = '=';
}

int hf_encode_base64(struct hf_encode *encode, const char *before, struct hf_span bytes,
                     struct hf_err *err)
{
    struct hf_buf text;
    size_t len = (bytes.len + 2) / 3 * 4;
    hf_buf_init(&text, encode->alloc, (size_t)HF_MAX_MODEL_REQUEST_BYTES);
    hf_buf_char(&text, '"');
    hf_buf_text(&text, before);
    char *at = hf_buf_room(&text, len + 1);
    if (at) {
        put_base64(at, bytes.at, bytes.len);
        at[len] = '"';
        hf_buf_grew(&text, len + 1);
        hf_json_rawn(&encode->json, hf_buf_str(&text), text.len);
    }
    int rc = hf_buf_state(&text);
    hf_buf_fini(&text);
    return rc ? hf_encode_fail(rc, err) : 0;
}

int hf_encode_fail(int code, struct hf_err *err)
{
    if (code != HF_ETOOBIG)
        return hf_fail_plain(err, code);
    return hf_fail(err, code, "request", "the request is over %lld bytes",
                   (long long)HF_MAX_MODEL_REQUEST_BYTES);
}

int hf_encode_attachment(struct hf_encode *encode, const struct hf_block *block,
                         struct hf_wire_attachment *ret_attachment, struct hf_err *err)
{
    const struct hf_model_call *call = encode->call;
    const struct hf_attachment *attachment = hf_render_attachment(call->render,
                                                                  block->attachment);
    const char *type = attachment && attachment->media_type ? attachment->media_type
                                                            : "(none)";
    struct hf_wire_attachment found = { .media_type = type,
                                        .text = hf_starts_with(type, "text/") };
    if (!found.text && !hf_starts_with(type, "image/"))
        return hf_fail(err, HF_EINVAL, "attachment",
                       "an attachment of type %.60s cannot be sent: only image/* and "
                       "text/* can",
                       type);
    found.name = attachment && attachment->name ? attachment->name : "attachment";
    if (!found.text && hf_encode_wants(encode, HF_OPTION_IMAGES) &&
        !hf_options_images(&encode->options)) {
        found.text = true;
        found.bytes = (struct hf_span){ NO_IMAGES, sizeof(NO_IMAGES) - 1 };
        *ret_attachment = found;
        return 0;
    }
    if (!call->attachment)
        return hf_fail(err, HF_EINVAL, "attachment",
                       "the request has an attachment, and the host lends none");
    int rc = call->attachment(call->user, attachment, &found.bytes, err);
    if (rc)
        return rc;
    if (found.text && !hf_text_clean(found.bytes.at, found.bytes.len))
        return hf_fail(err, HF_EINVAL, "attachment",
                       "the attachment %.60s is no UTF-8 text",
                       attachment->name ? attachment->name : attachment->ref);
    *ret_attachment = found;
    return 0;
}

int hf_encode_attached_text(struct hf_encode *encode,
                            const struct hf_wire_attachment *attachment,
                            struct hf_err *err)
{
    struct hf_buf text;
    hf_buf_init(&text, encode->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_text(&text, "File ");
    hf_buf_text(&text, attachment->name);
    hf_buf_text(&text, ":\n");
    hf_buf_bytes(&text, attachment->bytes.at, attachment->bytes.len);
    int rc = hf_buf_state(&text);
    hf_json_put_str(&encode->json, "type", "text");
    hf_json_key(&encode->json, "text");
    hf_json_strn(&encode->json, hf_buf_str(&text), text.len);
    hf_buf_fini(&text);
    return rc ? hf_encode_fail(rc, err) : 0;
}

static struct hf_wire_tool read_tool(struct hf_walk *walk)
{
    struct hf_wire_tool tool = { 0 };
    if (!hf_walk_enter(walk, '{')) {
        (void)hf_walk_value(walk); /* a surface refuses what is no object */
        return tool;
    }
    while (hf_walk_more(walk)) {
        struct hf_span key = hf_walk_key(walk);
        struct hf_span value = hf_walk_value(walk);
        if (hf_walk_is(key, "name"))
            tool.name = value;
        else if (hf_walk_is(key, "description"))
            tool.description = value;
        else if (hf_walk_is(key, "parameters") || hf_walk_is(key, "input_schema"))
            tool.schema = value;
        else if (hf_walk_is(key, "strict"))
            tool.strict = value;
    }
    if (tool.schema.len == 0)
        tool.schema = (struct hf_span){ "{\"type\":\"object\",\"properties\":{}}", 33 };
    return tool;
}

bool hf_encode_tools(const struct hf_encode *encode, struct hf_walk *ret_tools)
{
    hf_walk_begin(ret_tools, encode->call->request->tools);
    return hf_walk_enter(ret_tools, '[') && hf_walk_more(ret_tools);
}

bool hf_encode_tool(struct hf_walk *tools, struct hf_wire_tool *ret_tool)
{
    if (!tools->at)
        return false;
    *ret_tool = read_tool(tools);
    ret_tool->last = !hf_walk_more(tools);
    if (ret_tool->last)
        tools->at = NULL;
    return true;
}

bool hf_blank(struct hf_span text)
{
    const char *at = text.at;
    for (size_t i = 0; i < text.len; i++)
        if (at[i] != ' ' && at[i] != '\n' && at[i] != '\t' && at[i] != '\r')
            return false;
    return true;
}
