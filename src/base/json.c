/* Reading, over jansson, and the writer.
 *
 * jansson takes its memory from malloc by way of its own, process-wide hooks, and not from
 * a handle's allocator; the hooks are the host's to change, never ours. Its error texts
 * quote the input, which may hold secrets, so they are never passed on.
 *
 * An integer outside int64_t and a number past DBL_MAX are refused: to round them would
 * change the caller's data without a word.
 */
#include "base/json.h"

#include <string.h>

#include <jansson.h>

#include <holdfast/limits.h>

#include "base/err.h"
#include "base/json_scan.h"
#include "base/text.h"

static const char *name_of(const char *field)
{
    return field ? field : "JSON";
}

/* Finds the first bracket that opens a level too many. jansson recurses, so this comes
 * before it. Ill-formed text is jansson's to refuse; here it only must not be misread as
 * shallower than jansson will find it, and both see the same strings. */
static bool too_deep(struct hf_span text, size_t *ret_at)
{
    const char *at = text.at;
    int64_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = at[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > HF_MAX_JSON_DEPTH) {
                *ret_at = i;
                return true;
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return false;
}

static const char *complaint(enum json_error_code code)
{
    if (code == json_error_invalid_utf8)
        return "is not valid UTF-8";
    if (code == json_error_premature_end_of_input)
        return "is JSON that ends too early";
    if (code == json_error_end_of_input_expected)
        return "has something after its JSON value";
    if (code == json_error_duplicate_key)
        return "has a duplicate key";
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        return "has a NUL in a string";
    if (code == json_error_numeric_overflow)
        return "has a number that is out of range";
    return "is not valid JSON";
}

/* jansson does not always say that memory ran out: it may leave the text empty, or take a
 * string it had no room for as a syntax error. (That last is still believed for the rare
 * texts of which the scan is not sure.) */
static bool ran_out(const json_error_t *error, struct hf_span text)
{
    return json_error_code(error) == json_error_out_of_memory || error->text[0] == '\0' ||
           hf_json_plain(text);
}

static int fail_load(const json_error_t *error, struct hf_span text, const char *field,
                     struct hf_err *err)
{
    if (ran_out(error, text))
        return hf_fail(err, HF_ENOMEM, field, "out of memory reading %s", name_of(field));
    return hf_fail(err, HF_EINVAL, field, "%s %s (byte %d)", name_of(field),
                   complaint(json_error_code(error)), error->position);
}

static int check_size(struct hf_span text, size_t max, const char *field,
                      struct hf_err *err)
{
    if (text.len > max)
        return hf_fail(err, HF_ETOOBIG, field, "%s must be at most %zu bytes",
                       name_of(field), max);
    return 0;
}

static int load(struct hf_span text, const char *field, json_t **ret_value,
                struct hf_err *err)
{
    size_t at = 0;
    if (too_deep(text, &at))
        return hf_fail(err, HF_ETOOBIG, field,
                       "%s is nested deeper than %lld levels (byte %zu)", name_of(field),
                       (long long)HF_MAX_JSON_DEPTH, at);

    json_error_t error;
    json_t *value = json_loadb(text.at ? text.at : "", text.len,
                               JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return fail_load(&error, text, field, err);
    *ret_value = value;
    return 0;
}

int hf_json_parse(struct hf_span text, size_t max, const char *field,
                  struct json_t **ret_value, struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    return rc ? rc : load(text, field, ret_value, err);
}

int hf_json_check(struct hf_span text, size_t max, const char *field, struct hf_err *err)
{
    int rc = check_size(text, max, field, err);
    if (rc || hf_json_plain(text))
        return rc;
    json_t *value = NULL;
    rc = load(text, field, &value, err);
    if (rc == 0)
        json_decref(value);
    return rc;
}

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
