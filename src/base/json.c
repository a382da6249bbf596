/* Reading and canonical form, over jansson.
 *
 * jansson takes its memory from malloc by way of its own, process-wide hooks; this file
 * neither uses nor changes those. Only the sorting of keys draws on the buffer's allocator.
 * Its error texts quote the input, which may hold secrets, so they are never passed on.
 *
 * An integer outside int64_t and a number past DBL_MAX are refused: to round them would
 * change the caller's data without a word.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <holdfast/limits.h>

#include "base/err.h"
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

static int fail_load(const json_error_t *error, const char *field, struct hf_err *err)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory)
        return hf_fail(err, HF_ENOMEM, field, "out of memory reading %s", name_of(field));
    return hf_fail(err, HF_EINVAL, field, "%s %s (byte %d)", name_of(field),
                   complaint(code), error->position);
}

int hf_json_parse(struct hf_span text, size_t max, const char *field,
                  struct json_t **ret_value, struct hf_err *err)
{
    if (text.len > max)
        return hf_fail(err, HF_ETOOBIG, field, "%s must be at most %zu bytes",
                       name_of(field), max);
    size_t at = 0;
    if (too_deep(text, &at))
        return hf_fail(err, HF_ETOOBIG, field,
                       "%s is nested deeper than %lld levels (byte %zu)", name_of(field),
                       (long long)HF_MAX_JSON_DEPTH, at);

    json_error_t error;
    json_t *value = json_loadb(text.at ? text.at : "", text.len,
                               JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return fail_load(&error, field, err);
    *ret_value = value;
    return 0;
}

int hf_json_check(struct hf_span text, size_t max, const char *field, struct hf_err *err)
{
    json_t *value = NULL;
    int rc = hf_json_parse(text, max, field, &value, err);
    if (rc == 0)
        json_decref(value);
    return rc;
}

/* A finite number as digits * 10^(point - count): "15" with point 1 is 1.5. */
struct decimal {
    char digits[24];
    int count;
    int point;
};

#define DIGITS_MAX 17 /* enough to tell any two doubles apart */

/* Reads jansson's "-0.0125", "1e-7", "1.5e300": that is how to learn the digits without a
 * <stdio.h> format and the locale's decimal point. */
static struct decimal decimal_of(const char *text, size_t len)
{
    struct decimal number = { .point = 0 };
    bool seen_point = false;
    size_t i = text[0] == '-' ? 1 : 0;
    for (; i < len && text[i] != 'e'; i++) {
        if (text[i] == '.') {
            seen_point = true;
        } else if (number.count > 0 || text[i] != '0') {
            if (number.count < (int)sizeof(number.digits))
                number.digits[number.count++] = text[i];
            number.point += seen_point ? 0 : 1;
        } else if (seen_point) {
            number.point--;
        }
    }
    if (i < len) {
        bool minus = text[++i] == '-';
        int exponent = 0;
        for (i += minus ? 1 : 0; i < len; i++)
            exponent = exponent * 10 + (text[i] - '0');
        number.point += minus ? -exponent : exponent;
    }
    while (number.count > 1 && number.digits[number.count - 1] == '0')
        number.count--;
    return number;
}

static void put_exponent(struct hf_buf *out, const struct decimal *number)
{
    hf_buf_char(out, number->digits[0]);
    if (number->count > 1) {
        hf_buf_char(out, '.');
        hf_buf_bytes(out, number->digits + 1, (size_t)number->count - 1);
    }
    hf_buf_char(out, 'e');
    hf_buf_i64(out, number->point - 1);
}

/* For numbers with a fraction: the point stands before or among the digits. */
static void put_plain(struct hf_buf *out, const struct decimal *number)
{
    if (number->point <= 0) {
        hf_buf_text(out, "0.");
        for (int i = number->point; i < 0; i++)
            hf_buf_char(out, '0');
        hf_buf_bytes(out, number->digits, (size_t)number->count);
    } else {
        hf_buf_bytes(out, number->digits, (size_t)number->point);
        hf_buf_char(out, '.');
        hf_buf_bytes(out, number->digits + number->point,
                     (size_t)(number->count - number->point));
    }
}

/* Whether the digits read back as exactly `value`. */
static bool reads_back(const struct decimal *number, double value)
{
    char text[48];
    size_t len = 0;
    text[len++] = number->digits[0];
    text[len++] = '.';
    for (int i = 1; i < number->count; i++)
        text[len++] = number->digits[i];
    if (number->count == 1)
        text[len++] = '0';
    text[len++] = 'e';
    int exponent = number->point - 1;
    if (exponent < 0)
        text[len++] = '-';
    exponent = abs(exponent);
    for (int power = 100; power > 0; power /= 10)
        text[len++] = (char)('0' + exponent / power % 10);

    json_t *read = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    double back = read ? json_real_value(read) : 0.0;
    json_decref(read);
    return back == value;
}

/* The next larger number with `digits` digits. */
static struct decimal stepped_up(struct decimal number, int digits)
{
    while (number.count < digits)
        number.digits[number.count++] = '0';
    int i = number.count - 1;
    while (i >= 0 && number.digits[i] == '9')
        i--;
    if (i < 0)
        return (struct decimal){ .digits = "1", .count = 1, .point = number.point + 1 };
    number.digits[i]++;
    number.count = i + 1;
    return number;
}

/* The fewest digits of a positive number that read back equal. The nearest decimal of a
 * given length is not enough: above a power of two the gap is wider than below it, so the
 * decimal above may read back where the nearer one below does not (2^-44). */
static int shortest(double value, struct decimal *ret_number)
{
    json_t *real = json_real(value);
    if (!real)
        return HF_ENOMEM;
    struct decimal number = { .count = 0 };
    for (int digits = 1; digits <= DIGITS_MAX; digits++) {
        char text[48];
        size_t len = json_dumpb(real, text, sizeof(text),
                                JSON_ENCODE_ANY | JSON_REAL_PRECISION((size_t)digits));
        hf_assert(len > 0 && len <= sizeof(text));
        number = decimal_of(text, len);
        if (reads_back(&number, value))
            break;
        struct decimal up = stepped_up(number, digits);
        if (reads_back(&up, value)) {
            number = up;
            break;
        }
    }
    json_decref(real);
    *ret_number = number;
    return 0;
}

/* A real that is whole is written as the integer it equals, so that 1, 1.0 and 1e0 agree;
 * outside int64_t it keeps an exponent, for hf_json_parse would refuse the digits. */
static int put_real(struct hf_buf *out, double value)
{
    const double two_63 = 9223372036854775808.0;
    bool fits = value >= -two_63 && value < two_63;
    bool whole = !fits || (double)(int64_t)value == value;
    if (fits && whole) {
        hf_buf_i64(out, (int64_t)value);
        return hf_buf_state(out);
    }
    struct decimal number;
    int rc = shortest(value < 0 ? -value : value, &number);
    if (rc)
        return rc;
    if (value < 0)
        hf_buf_char(out, '-');
    if (whole || number.point < -5)
        put_exponent(out, &number);
    else
        put_plain(out, &number);
    return hf_buf_state(out);
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

static int put_value(struct hf_buf *out, json_t *value, int64_t depth);

static int put_array(struct hf_buf *out, json_t *array, int64_t depth)
{
    hf_buf_char(out, '[');
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++) {
        if (i > 0)
            hf_buf_char(out, ',');
        rc = put_value(out, json_array_get(array, i), depth);
    }
    hf_buf_char(out, ']');
    return rc ? rc : hf_buf_state(out);
}

struct member {
    const char *key;
    json_t *value;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *left = a;
    const struct member *right = b;
    return strcmp(left->key, right->key);
}

static int put_members(struct hf_buf *out, const struct member *members, size_t count,
                       int64_t depth)
{
    hf_buf_char(out, '{');
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (i > 0)
            hf_buf_char(out, ',');
        put_quoted(out, members[i].key, strlen(members[i].key));
        hf_buf_char(out, ':');
        rc = put_value(out, members[i].value, depth);
    }
    hf_buf_char(out, '}');
    return rc ? rc : hf_buf_state(out);
}

static int put_object(struct hf_buf *out, json_t *object, int64_t depth)
{
    size_t count = json_object_size(object);
    if (count == 0) {
        hf_buf_text(out, "{}");
        return hf_buf_state(out);
    }
    struct member *members = out->alloc->realloc(out->alloc->user, NULL,
                                                 count * sizeof(*members));
    if (!members)
        return HF_ENOMEM;

    size_t i = 0;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
        members[i++] = (struct member){ json_object_iter_key(at),
                                        json_object_iter_value(at) };
    qsort(members, count, sizeof(*members), compare_members);
    int rc = put_members(out, members, count, depth);
    out->alloc->free(out->alloc->user, members);
    return rc;
}

/* Values built by hand may be deeper than parsed ones: the limit holds for both. */
static int put_value(struct hf_buf *out, json_t *value, int64_t depth)
{
    if ((json_is_array(value) || json_is_object(value)) && depth == HF_MAX_JSON_DEPTH)
        return HF_ETOOBIG;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return put_object(out, value, depth + 1);
    case JSON_ARRAY: return put_array(out, value, depth + 1);
    case JSON_STRING:
        put_quoted(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER: hf_buf_i64(out, json_integer_value(value)); break;
    case JSON_REAL: return put_real(out, json_real_value(value));
    case JSON_TRUE: hf_buf_text(out, "true"); break;
    case JSON_FALSE: hf_buf_text(out, "false"); break;
    case JSON_NULL: hf_buf_text(out, "null"); break;
    }
    return hf_buf_state(out);
}

int hf_json_canonical(struct hf_buf *out, const struct json_t *value)
{
    /* jansson's iterators take a plain pointer, and change nothing. */
    return put_value(out, (json_t *)(uintptr_t)value, 0);
}

int hf_json_canonical_text(struct hf_buf *out, struct hf_span text)
{
    json_t *value = NULL;
    int rc = hf_json_parse(text, text.len, NULL, &value, NULL);
    if (rc)
        return rc;
    rc = hf_json_canonical(out, value);
    json_decref(value);
    return rc;
}

/* The writer. */

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
