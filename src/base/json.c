/* The writer. */
#include "base/json.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* The escape of one control byte, quote or backslash; 0 length for other bytes. */
static size_t escape_of(unsigned char byte, char out[6])
{
    static const char short_form[] = "\b\t\n\f\r\"\\";
    static const char short_name[] = "btnfr\"\\";
    const char *found = byte ? strchr(short_form, byte) : NULL;
    if (found) {
        out[0] = '\\';
        out[1] = short_name[found - short_form];
        return 2;
    }
    if (byte >= 0x20)
        return 0;
    memcpy(out, "\\u00", 4);
    out[4] = byte >= 0x10 ? '1' : '0';
    out[5] = "0123456789abcdef"[byte & 15];
    return 6;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* What is not UTF-8 becomes U+FFFD: the writer's output is always valid JSON. */
static void put_quoted(struct hf_buf *out, const char *text, size_t len)
{
    hf_buf_char(out, '"');
    size_t i = 0;
    while (i < len) {
        size_t run = i;
        while (run < len && is_plain((unsigned char)text[run]))
            run++;
        hf_buf_bytes(out, text + i, run - i);
        i = run;
        if (i == len)
            break;

        char escape[6];
        size_t escape_len = escape_of((unsigned char)text[i], escape);
        size_t step = hf_utf8_next(text + i, len - i);
        if (escape_len > 0)
            hf_buf_bytes(out, escape, escape_len);
        else if (step > 0)
            hf_buf_bytes(out, text + i, step);
        else
            hf_buf_text(out, "\xef\xbf\xbd");
        i += step > 0 ? step : 1;
    }
    hf_buf_char(out, '"');
}

#define DEPTH_DONE (-1) /* the one value is complete */

static uint64_t level_bit(const struct hf_json *json)
{
    return UINT64_C(1) << (json->depth - 1);
}

static bool in_object(const struct hf_json *json)
{
    return json->depth > 0 && (json->in_object & level_bit(json)) != 0;
}

static void put_comma(struct hf_json *json)
{
    if (json->depth == 0)
        return;
    if (json->has_item & level_bit(json))
        hf_buf_char(json->out, ',');
    json->has_item |= level_bit(json);
}

static void before_value(struct hf_json *json)
{
    hf_assert(json->depth != DEPTH_DONE);
    hf_assert(json->key_open == in_object(json));
    if (!json->key_open)
        put_comma(json);
    json->key_open = false;
}

static void after_value(struct hf_json *json)
{
    if (json->depth == 0)
        json->depth = DEPTH_DONE;
}

void hf_json_begin(struct hf_json *json, struct hf_buf *out)
{
    *json = (struct hf_json){ .out = out };
}

static void open_level(struct hf_json *json, bool object)
{
    before_value(json);
    hf_assert(json->depth < 64);
    json->depth++;
    json->has_item &= ~level_bit(json);
    json->in_object &= ~level_bit(json);
    if (object)
        json->in_object |= level_bit(json);
    hf_buf_char(json->out, object ? '{' : '[');
}

void hf_json_object(struct hf_json *json)
{
    open_level(json, true);
}

void hf_json_array(struct hf_json *json)
{
    open_level(json, false);
}

void hf_json_end(struct hf_json *json)
{
    hf_assert(json->depth > 0);
    hf_assert(!json->key_open);
    hf_buf_char(json->out, in_object(json) ? '}' : ']');
    json->depth--;
    after_value(json);
}

void hf_json_key(struct hf_json *json, const char *key)
{
    hf_assert(in_object(json));
    hf_assert(!json->key_open);
    put_comma(json);
    put_quoted(json->out, key, strlen(key));
    hf_buf_char(json->out, ':');
    json->key_open = true;
}

void hf_json_strn(struct hf_json *json, const char *text, size_t len)
{
    before_value(json);
    put_quoted(json->out, text, len);
    after_value(json);
}

void hf_json_str(struct hf_json *json, const char *text)
{
    if (text)
        hf_json_strn(json, text, strlen(text));
    else
        hf_json_null(json);
}

void hf_json_i64(struct hf_json *json, int64_t value)
{
    before_value(json);
    hf_buf_i64(json->out, value);
    after_value(json);
}

void hf_json_bool(struct hf_json *json, bool value)
{
    hf_json_raw(json, value ? "true" : "false");
}

void hf_json_null(struct hf_json *json)
{
    hf_json_raw(json, "null");
}

void hf_json_raw(struct hf_json *json, const char *text)
{
    before_value(json);
    hf_buf_text(json->out, text && text[0] ? text : "null");
    after_value(json);
}

void hf_json_put_str(struct hf_json *json, const char *key, const char *text)
{
    hf_json_key(json, key);
    hf_json_str(json, text);
}

void hf_json_put_i64(struct hf_json *json, const char *key, int64_t value)
{
    hf_json_key(json, key);
    hf_json_i64(json, value);
}

void hf_json_put_bool(struct hf_json *json, const char *key, bool value)
{
    hf_json_key(json, key);
    hf_json_bool(json, value);
}

void hf_json_put_raw(struct hf_json *json, const char *key, const char *text)
{
    hf_json_key(json, key);
    hf_json_raw(json, text);
}

void hf_json_opt_str(struct hf_json *json, const char *key, const char *text)
{
    if (text)
        hf_json_put_str(json, key, text);
}

void hf_json_opt_i64(struct hf_json *json, const char *key, int64_t value)
{
    if (value != 0)
        hf_json_put_i64(json, key, value);
}
