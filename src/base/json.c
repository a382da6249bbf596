/* The writer. */
#include "base/json.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* The escape of one control byte, quote or backslash; 0 length for other bytes. */
static size_t escape_of(unsigned char byte, char out[6])
{
    char name = 0;
    switch (byte) {
    case '\b': name = 'b'; break;
    case '\t': name = 't'; break;
    case '\n': name = 'n'; break;
    case '\f': name = 'f'; break;
    case '\r': name = 'r'; break;
    case '"':
    case '\\': name = (char)byte; break;
    default: break;
    }
    if (name) {
        out[0] = '\\';
        out[1] = name;
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

/* Bytes from the start that need no escape; eight are looked at at once. */
static size_t plain_run(const char *text, size_t len)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i = 0;
    for (; len - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, sizeof(word));
        uint64_t quote = word ^ ones * '"';
        uint64_t slash = word ^ ones * '\\';
        uint64_t odd = word | (word - ones * 0x20) | (quote - ones) | (slash - ones);
        if ((odd & ones * 0x80) != 0)
            break;
    }
    while (i < len && is_plain((unsigned char)text[i]))
        i++;
    return i;
}

/* Text without anything to escape, which most of it is, in one step. */
static bool put_plain(struct hf_buf *out, const char *text, size_t len)
{
    char *at = len <= SIZE_MAX - 2 && plain_run(text, len) == len
                   ? hf_buf_room(out, len + 2)
                   : NULL;
    if (!at)
        return false;
    at[0] = '"';
    memcpy(at + 1, text, len);
    at[len + 1] = '"';
    hf_buf_grew(out, len + 2);
    return true;
}

/* What replaces the byte that a run of plain ones ended at; how many bytes of text it is
 * for. What is not UTF-8 becomes U+FFFD: the writer's output is always valid JSON. */
static size_t put_odd(struct hf_buf *out, const char *text, size_t len)
{
    char escape[6];
    size_t escape_len = escape_of((unsigned char)*text, escape);
    if (escape_len > 0) {
        hf_buf_bytes(out, escape, escape_len);
        return 1;
    }
    size_t step = hf_utf8_next(text, len);
    if (step > 0)
        hf_buf_bytes(out, text, step);
    else
        hf_buf_text(out, "\xef\xbf\xbd");
    return step > 0 ? step : 1;
}

static void put_quoted(struct hf_buf *out, const char *text, size_t len)
{
    size_t i = 0;
    if (put_plain(out, text, len))
        return;
    hf_buf_char(out, '"');
    while (i < len) {
        size_t run = plain_run(text + i, len - i);
        if (run > 0)
            hf_buf_bytes(out, text + i, run);
        i += run;
        if (i < len)
            i += put_odd(out, text + i, len - i);
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

/* Comma, quotes and colon in one step, unless the key has something to escape. */
void hf_json_key(struct hf_json *json, const char *key)
{
    hf_assert(in_object(json));
    hf_assert(!json->key_open);
    size_t len = strlen(key);
    size_t comma = (json->has_item & level_bit(json)) != 0;
    bool plain = plain_run(key, len) == len;
    char *at = plain ? hf_buf_room(json->out, comma + len + 3) : NULL;
    if (at) {
        *at = ',';
        at += comma;
        *at = '"';
        memcpy(at + 1, key, len);
        memcpy(at + 1 + len, "\":", 2);
        hf_buf_grew(json->out, comma + len + 3);
        json->has_item |= level_bit(json);
    } else {
        put_comma(json);
        put_quoted(json->out, key, len);
        hf_buf_char(json->out, ':');
    }
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

void hf_json_rawn(struct hf_json *json, const char *text, size_t len)
{
    before_value(json);
    hf_buf_bytes(json->out, text, len);
    after_value(json);
}

void hf_json_raw(struct hf_json *json, const char *text)
{
    const char *value = text && text[0] ? text : "null";
    hf_json_rawn(json, value, strlen(value));
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

void hf_json_pointer_part(struct hf_buf *out, const char *key)
{
    for (; *key; key++)
        if (*key == '~' || *key == '/')
            hf_buf_text(out, *key == '~' ? "~0" : "~1");
        else
            hf_buf_char(out, *key);
}
