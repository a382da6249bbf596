/* The canonical form of a JSON value: what equal values have in common, so that they can
 * be hashed and compared as bytes. It is stored, so it may never change. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_read.h"

#define DIGITS_MAX 17 /* enough to tell any two doubles apart */
#define DIGITS_MIN 15 /* a normal double that has this few or fewer shows them here */

/* A positive number as digits and the place of the point: "15" with point 1 is 1.5. */
struct decimal {
    char digits[DIGITS_MAX];
    int count;
    int point;
};

/* The text of one number: at most a sign, 17 digits, a point, "0.00000" or "e-324". */
struct number {
    char text[48];
    size_t len;
};

/* Reads jansson's "0.0125", "1e-7", "1.5e300": that is how to learn the digits without a
 * <stdio.h> format and the locale's decimal point. */
static struct decimal decimal_of(const char *text, size_t len)
{
    struct decimal decimal = { .point = 0 };
    bool seen_point = false;
    size_t i = 0;
    for (; i < len && text[i] != 'e'; i++) {
        if (text[i] == '.') {
            seen_point = true;
        } else if (decimal.count > 0 || text[i] != '0') {
            if (decimal.count < DIGITS_MAX)
                decimal.digits[decimal.count++] = text[i];
            decimal.point += seen_point ? 0 : 1;
        } else if (seen_point) {
            decimal.point--;
        }
    }
    if (i < len) {
        bool minus = text[++i] == '-';
        int exponent = 0;
        for (i += minus ? 1 : 0; i < len; i++)
            exponent = exponent * 10 + (text[i] - '0');
        decimal.point += minus ? -exponent : exponent;
    }
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;
    return decimal;
}

static void put(struct number *to, const char *bytes, int len)
{
    hf_assert(len >= 0 && (size_t)len < sizeof(to->text) - to->len);
    memcpy(to->text + to->len, bytes, (size_t)len);
    to->len += (size_t)len;
    to->text[to->len] = '\0';
}

static void put_exponent(struct number *to, const struct decimal *decimal)
{
    put(to, decimal->digits, 1);
    if (decimal->count > 1) {
        put(to, ".", 1);
        put(to, decimal->digits + 1, decimal->count - 1);
    }
    int exponent = decimal->point - 1;
    put(to, "e-", exponent < 0 ? 2 : 1);
    exponent = abs(exponent);
    for (int power = 100; power > 0; power /= 10) {
        char digit = (char)('0' + exponent / power % 10);
        if (exponent >= power)
            put(to, &digit, 1);
    }
}

/* For numbers with a fraction: the point is before or among the digits. */
static void put_plain(struct number *to, const struct decimal *decimal)
{
    if (decimal->point <= 0) {
        put(to, "0.0000000", 2 - decimal->point);
        put(to, decimal->digits, decimal->count);
    } else {
        put(to, decimal->digits, decimal->point);
        put(to, ".", 1);
        put(to, decimal->digits + decimal->point, decimal->count - decimal->point);
    }
}

/* Whether the digits read back as exactly `value`. */
static bool reads_back(const struct decimal *decimal, double value)
{
    char digits[DIGITS_MAX + 32];
    memcpy(digits, decimal->digits, (size_t)decimal->count);
    digits[decimal->count] = '\0';
    return hf_json_real(digits, decimal->point - decimal->count) == value;
}

/* The next larger number with `digits` digits. */
static struct decimal stepped_up(struct decimal decimal, int digits)
{
    while (decimal.count < digits)
        decimal.digits[decimal.count++] = '0';
    int i = decimal.count - 1;
    while (i >= 0 && decimal.digits[i] == '9')
        i--;
    if (i < 0)
        return (struct decimal){ .digits = "1", .count = 1, .point = decimal.point + 1 };
    decimal.digits[i]++;
    decimal.count = i + 1;
    return decimal;
}

/* The fewest digits of a positive number that read back equal. The nearest decimal of a
 * given length is not enough: above a power of two the gap is wider than below it, so the
 * decimal above may read back where the nearer one below does not (2^-44). */
static int shortest(double value, struct decimal *ret_decimal)
{
    json_t *real = json_real(value);
    int rc = real ? 0 : HF_ENOMEM;
    bool same = false;
    int digits = value < DBL_MIN ? 1 : DIGITS_MIN;
    for (; rc == 0 && !same; digits++) {
        hf_assert(digits <= DIGITS_MAX);
        char text[48];
        size_t len = json_dumpb(real, text, sizeof(text),
                                JSON_ENCODE_ANY | JSON_REAL_PRECISION((size_t)digits));
        hf_assert(len <= sizeof(text));
        *ret_decimal = decimal_of(text, len);
        rc = len > 0 ? 0 : HF_ENOMEM;
        same = rc == 0 && reads_back(ret_decimal, value);
        if (rc == 0 && !same) {
            *ret_decimal = stepped_up(*ret_decimal, digits);
            same = reads_back(ret_decimal, value);
        }
    }
    json_decref(real);
    return rc;
}

/* A real that is whole is written as the integer it equals, so that 1, 1.0 and 1e0 agree;
 * outside int64_t it keeps an exponent, for hf_json_parse would refuse the digits. */
static int put_real(struct hf_json *out, double value)
{
    const double two_63 = 9223372036854775808.0;
    bool fits = value >= -two_63 && value < two_63;
    bool whole = !fits || (double)(int64_t)value == value;
    if (fits && whole) {
        hf_json_i64(out, (int64_t)value);
        return 0;
    }
    struct decimal decimal = { .count = 0 };
    int rc = shortest(value < 0 ? -value : value, &decimal);
    if (rc)
        return rc;
    struct number number = { .len = 0 };
    if (value < 0)
        put(&number, "-", 1);
    if (whole || decimal.point < -5)
        put_exponent(&number, &decimal);
    else
        put_plain(&number, &decimal);
    hf_json_raw(out, number.text);
    return 0;
}

static int put_value(struct hf_json *out, json_t *value);

static int put_array(struct hf_json *out, json_t *array)
{
    int rc = 0;
    hf_json_array(out);
    for (size_t i = 0; rc == 0 && i < json_array_size(array); i++)
        rc = put_value(out, json_array_get(array, i));
    if (rc == 0)
        hf_json_end(out);
    return rc;
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

static void sort_members(json_t *object, struct member *members)
{
    size_t count = 0;
    for (void *at = json_object_iter(object); at;
         at = json_object_iter_next(object, at)) {
        members[count].key = json_object_iter_key(at);
        members[count++].value = json_object_iter_value(at);
    }
    qsort(members, count, sizeof(*members), compare_members);
}

static int put_object(struct hf_json *out, json_t *object)
{
    const struct hf_alloc *alloc = out->out->alloc;
    size_t count = json_object_size(object);
    struct member *members = NULL;
    int rc = 0;
    if (count > 0) {
        members = alloc->realloc(alloc->user, NULL, count * sizeof(*members));
        if (!members)
            return HF_ENOMEM;
        sort_members(object, members);
    }
    hf_json_object(out);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        hf_json_key(out, members[i].key);
        rc = put_value(out, members[i].value);
    }
    if (rc == 0)
        hf_json_end(out);
    if (members)
        alloc->free(alloc->user, members);
    return rc;
}

/* Values built by hand may be deeper than parsed ones: the limit holds for both. */
static int put_value(struct hf_json *out, json_t *value)
{
    bool nests = json_is_array(value) || json_is_object(value);
    if (nests && out->depth == HF_MAX_JSON_DEPTH)
        return HF_ETOOBIG;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return put_object(out, value);
    case JSON_ARRAY: return put_array(out, value);
    case JSON_REAL: return put_real(out, json_real_value(value));
    case JSON_STRING:
        hf_json_strn(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER: hf_json_i64(out, json_integer_value(value)); break;
    case JSON_TRUE: hf_json_bool(out, true); break;
    case JSON_FALSE: hf_json_bool(out, false); break;
    case JSON_NULL: hf_json_null(out); break;
    }
    return hf_buf_state(out->out);
}

int hf_json_canonical(struct hf_buf *out, const struct json_t *value)
{
    struct hf_json json;
    hf_json_begin(&json, out);
    /* jansson's iterators take a plain pointer, and change nothing. */
    int rc = put_value(&json, (json_t *)(uintptr_t)value);
    return rc ? rc : hf_buf_state(out);
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
