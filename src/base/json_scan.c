/* The grammar of JSON, once. See json_scan.h. */
#include "base/json_scan.h"

#include <endian.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

enum want {
    WANT_VALUE,
    WANT_FIRST, /* after an opening bracket: a value or key, or the end */
    WANT_REST   /* after a value: a comma, an end, or the end of the text */
};

static const char ends_early[] = "is JSON that ends too early";
static const char not_json[] = "is not valid JSON";

static enum hf_json_event bad(struct hf_json_scan *scan, int code, const char *fault)
{
    scan->code = code;
    scan->fault = fault;
    return HF_JSON_EV_BAD;
}

static bool at_end(const struct hf_json_scan *scan)
{
    return scan->at == scan->end;
}

static enum hf_json_event unexpected(struct hf_json_scan *scan)
{
    return bad(scan, HF_EINVAL, at_end(scan) ? ends_early : not_json);
}

static bool peek_is(const struct hf_json_scan *scan, char c)
{
    return !at_end(scan) && *scan->at == c;
}

static bool take(struct hf_json_scan *scan, char c)
{
    if (!peek_is(scan, c))
        return false;
    scan->at++;
    return true;
}

static void skip_space(struct hf_json_scan *scan)
{
    while (!at_end(scan) && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' ||
                             *scan->at == '\r'))
        scan->at++;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* A bit in each byte of the word that is zero. Above the lowest one there may be more. */
static uint64_t zeros(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return (word - ones) & ~word & (0x80 * ones);
}

/* How many of the eight bytes are is_plain, from the first on. */
static size_t plain_prefix(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = 0;
    memcpy(&word, at, sizeof(word));
    word = le64toh(word); /* the first byte is the lowest */
    uint64_t high = word & (0x80 * ones);
    uint64_t control = (word - 0x20 * ones) & ~word & (0x80 * ones);
    uint64_t odd = high | control | zeros(word ^ '"' * ones) | zeros(word ^ '\\' * ones);
    return odd ? (size_t)__builtin_ctzll(odd) / 8 : sizeof(word);
}

static void skip_plain(struct hf_json_scan *scan)
{
    while (scan->end - scan->at >= 8) {
        size_t plain = plain_prefix(scan->at);
        scan->at += plain;
        if (plain < 8)
            return;
    }
    while (!at_end(scan) && is_plain((unsigned char)*scan->at))
        scan->at++;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Four hex digits as a number, or -1. */
static int32_t code_unit(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* After "\u": the character, -1 where there is none, LONE for a surrogate without the other
 * one of its pair, which alone is taken. */
#define LONE (-2)
static int32_t take_code_point(const char **at, const char *end)
{
    int32_t first = code_unit(*at, end);
    if (first < 0)
        return -1;
    *at += 4;
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (first > 0xdbff || end - *at < 2 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return LONE;
    int32_t second = code_unit(*at + 2, end);
    if (second < 0xdc00 || second > 0xdfff)
        return LONE;
    *at += 6;
    return 0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00);
}

/* The byte that a two-character escape means, or NUL. */
static char short_escape(char name)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    const char *found = name ? strchr(names, name) : NULL;
    return found ? bytes[found - names] : '\0';
}

/* After the backslash. */
static bool take_escape(struct hf_json_scan *scan)
{
    scan->token_escaped = true;
    if (!at_end(scan) && short_escape(*scan->at) != '\0') {
        scan->at++;
        return true;
    }
    if (!take(scan, 'u')) {
        (void)unexpected(scan);
        return false;
    }
    int32_t point = take_code_point(&scan->at, scan->end);
    if (scan->any_text && (point == 0 || point == LONE)) {
        scan->foul = true;
        return true;
    }
    if (point < 0)
        (void)unexpected(scan);
    else if (point == 0)
        (void)bad(scan, HF_EINVAL, "has a NUL in a string");
    return point > 0;
}

/* What is in a string and is neither plain, quote nor backslash. */
static bool take_character(struct hf_json_scan *scan)
{
    size_t step = hf_utf8_next(scan->at, (size_t)(scan->end - scan->at));
    if (step > 1) {
        scan->at += step;
        return true;
    }
    if (peek_is(scan, '\0'))
        (void)bad(scan, HF_EINVAL, "has a NUL in a string");
    else if (step == 1 || at_end(scan))
        (void)unexpected(scan);
    else
        (void)bad(scan, HF_EINVAL, "is not valid UTF-8");
    return false;
}

static bool take_string(struct hf_json_scan *scan)
{
    scan->at++; /* the quote, seen by the caller */
    scan->token = scan->at;
    scan->token_escaped = false;
    for (;;) {
        skip_plain(scan);
        scan->token_len = (size_t)(scan->at - scan->token);
        if (take(scan, '"'))
            return true;
        if (take(scan, '\\') ? !take_escape(scan) : !take_character(scan))
            return false;
    }
}

static bool take_digits(struct hf_json_scan *scan)
{
    const char *start = scan->at;
    while (!at_end(scan) && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > start;
}

static enum hf_json_event take_number(struct hf_json_scan *scan)
{
    scan->token = scan->at;
    (void)take(scan, '-'); /* may be there */
    /* No digit may follow a leading zero. */
    if (!take(scan, '0') && !take_digits(scan))
        return unexpected(scan);
    bool fraction = take(scan, '.');
    if (fraction && !take_digits(scan))
        return unexpected(scan);
    bool exponent = take(scan, 'e') || take(scan, 'E');
    if (exponent && !take(scan, '-'))
        (void)take(scan, '+'); /* may be there */
    if (exponent && !take_digits(scan))
        return unexpected(scan);
    scan->token_len = (size_t)(scan->at - scan->token);
    scan->token_real = fraction || exponent;
    return HF_JSON_EV_NUMBER;
}

static enum hf_json_event take_word(struct hf_json_scan *scan, const char *word,
                                    enum hf_json_event event)
{
    for (; *word; word++)
        if (!take(scan, *word))
            return unexpected(scan);
    return event;
}

static bool in_object(const struct hf_json_scan *scan)
{
    return (scan->in_object >> (scan->depth - 1) & 1) != 0;
}

static enum hf_json_event take_open(struct hf_json_scan *scan, bool object)
{
    if (scan->depth == scan->most)
        return bad(scan, HF_ETOOBIG, "is nested too deep");
    scan->at++;
    uint64_t bit = UINT64_C(1) << scan->depth;
    scan->in_object = object ? scan->in_object | bit : scan->in_object & ~bit;
    scan->depth++;
    scan->want = WANT_FIRST;
    return object ? HF_JSON_EV_OBJECT : HF_JSON_EV_ARRAY;
}

static enum hf_json_event take_value(struct hf_json_scan *scan)
{
    skip_space(scan);
    scan->want = WANT_REST;
    switch (at_end(scan) ? '\0' : *scan->at) {
    case '{': return take_open(scan, true);
    case '[': return take_open(scan, false);
    case '"': return take_string(scan) ? HF_JSON_EV_STRING : HF_JSON_EV_BAD;
    case 't': return take_word(scan, "true", HF_JSON_EV_TRUE);
    case 'f': return take_word(scan, "false", HF_JSON_EV_FALSE);
    case 'n': return take_word(scan, "null", HF_JSON_EV_NULL);
    default: return take_number(scan);
    }
}

static enum hf_json_event take_key(struct hf_json_scan *scan)
{
    skip_space(scan);
    if (!peek_is(scan, '"'))
        return unexpected(scan);
    if (!take_string(scan))
        return HF_JSON_EV_BAD;
    skip_space(scan);
    if (!take(scan, ':'))
        return unexpected(scan);
    scan->want = WANT_VALUE;
    return HF_JSON_EV_KEY;
}

static enum hf_json_event take_item(struct hf_json_scan *scan)
{
    return in_object(scan) ? take_key(scan) : take_value(scan);
}

void hf_json_scan_begin(struct hf_json_scan *scan, struct hf_span text)
{
    hf_assert(HF_MAX_JSON_DEPTH <= 64); /* bits of in_object */
    const char *start = text.len > 0 ? text.at : "";
    *scan = (struct hf_json_scan){
        .most = HF_MAX_JSON_DEPTH,
        .start = start,
        .at = start,
        .end = start + text.len,
        .want = WANT_VALUE,
    };
}

enum hf_json_event hf_json_scan_next(struct hf_json_scan *scan)
{
    if (scan->fault)
        return HF_JSON_EV_BAD;
    if (scan->want == WANT_VALUE)
        return take_value(scan);

    skip_space(scan);
    if (scan->depth == 0)
        return at_end(scan)
                   ? HF_JSON_EV_DONE
                   : bad(scan, HF_EINVAL, "has further text after its JSON value");
    if (take(scan, in_object(scan) ? '}' : ']')) {
        scan->depth--;
        scan->want = WANT_REST;
        return HF_JSON_EV_CLOSE;
    }
    if (scan->want == WANT_FIRST || take(scan, ','))
        return take_item(scan);
    return unexpected(scan);
}

static size_t put_utf8(int32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    static const int first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(first[len] | point);
    return len;
}

size_t hf_json_unescape(const char *token, size_t len, char *out)
{
    const char *end = token + len;
    char *to = out;
    while (token < end) {
        if (*token != '\\') {
            *to++ = *token++;
        } else if (token[1] != 'u') {
            *to++ = short_escape(token[1]);
            token += 2;
        } else {
            token += 2;
            int32_t point = take_code_point(&token, end);
            to += put_utf8(point > 0 ? point : 0xfffd, to);
        }
    }
    return (size_t)(to - out);
}
