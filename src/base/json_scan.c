/* The check on the way of every enqueued payload: about a tenth of the cost of a parse,
 * and no memory. It never says no, so all verdicts and messages stay in one place, json.c,
 * and where this and jansson could differ it leaves the text to jansson.
 */
#include "base/json_scan.h"

#include <string.h>

#include <holdfast/limits.h>

#include "base/err.h"
#include "base/text.h"

#define LEVELS_MAX 64      /* one bit each in a word */
#define KEYS_MAX 128       /* of all objects that are open at one time */
#define INT_DIGITS_MAX 18  /* any such number fits int64_t */
#define REAL_DIGITS_MAX 60 /* with the exponents below, far under DBL_MAX */
#define EXPONENT_DIGITS_MAX 2

struct scan {
    const unsigned char *at;
    const unsigned char *end;
    int depth;
    uint64_t in_object; /* one bit a level */
    size_t key_count;   /* of `keys` */
    size_t first_key[LEVELS_MAX];
    uint64_t keys[KEYS_MAX]; /* hashes: equal keys have equal hashes */
};

static bool at_end(const struct scan *scan)
{
    return scan->at == scan->end;
}

static bool peek_is(const struct scan *scan, unsigned char c)
{
    return !at_end(scan) && *scan->at == c;
}

static bool take(struct scan *scan, unsigned char c)
{
    if (!peek_is(scan, c))
        return false;
    scan->at++;
    return true;
}

static void skip_space(struct scan *scan)
{
    while (!at_end(scan) && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' ||
                             *scan->at == '\r'))
        scan->at++;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Whether a byte of the word is zero, exactly. */
static bool has_zero(uint64_t word)
{
    return ((word - UINT64_C(0x0101010101010101)) & ~word &
            UINT64_C(0x8080808080808080)) != 0;
}

/* Whether all eight bytes are is_plain. */
static bool plain_word(const unsigned char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = 0;
    memcpy(&word, at, sizeof(word));
    bool high = (word & (0x80 * ones)) != 0;
    bool control = ((word - 0x20 * ones) & ~word & (0x80 * ones)) != 0;
    return !high && !control && !has_zero(word ^ '"' * ones) &&
           !has_zero(word ^ '\\' * ones);
}

static void skip_plain(struct scan *scan)
{
    while (scan->end - scan->at >= 8 && plain_word(scan->at))
        scan->at += 8;
    while (!at_end(scan) && is_plain(*scan->at))
        scan->at++;
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits of \uXXXX, or -1. */
static int take_code_unit(struct scan *scan)
{
    if (scan->end - scan->at < 4)
        return -1;
    int code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(*scan->at++);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* After the backslash. NUL is refused, and surrogates come in pairs. */
static bool take_escape(struct scan *scan)
{
    if (at_end(scan))
        return false;
    unsigned char kind = *scan->at++;
    if (kind != 'u')
        return kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL;
    int code = take_code_unit(scan);
    if (code < 0xd800 || code > 0xdfff)
        return code > 0;
    if (code > 0xdbff || !take(scan, '\\') || !take(scan, 'u'))
        return false;
    int second = take_code_unit(scan);
    return second >= 0xdc00 && second <= 0xdfff;
}

static bool take_string(struct scan *scan, bool escapes)
{
    if (!take(scan, '"'))
        return false;
    for (;;) {
        skip_plain(scan);
        if (take(scan, '"'))
            return true;
        if (take(scan, '\\')) {
            if (!escapes || !take_escape(scan))
                return false;
            continue;
        }
        /* Control bytes are one byte long to hf_utf8_next, and not allowed here. */
        size_t step = hf_utf8_next(scan->at, (size_t)(scan->end - scan->at));
        if (step < 2)
            return false;
        scan->at += step;
    }
}

static uint64_t hash_of(const unsigned char *at, const unsigned char *end)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; at < end; at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

/* The key, if the object has none like it, and the colon. */
static bool take_key(struct scan *scan)
{
    skip_space(scan);
    const unsigned char *start = scan->at;
    if (scan->key_count == KEYS_MAX || !take_string(scan, false))
        return false;
    uint64_t hash = hash_of(start, scan->at);
    for (size_t i = scan->first_key[scan->depth - 1]; i < scan->key_count; i++)
        if (scan->keys[i] == hash)
            return false;
    scan->keys[scan->key_count++] = hash;
    skip_space(scan);
    return take(scan, ':');
}

static size_t take_digits(struct scan *scan)
{
    const unsigned char *start = scan->at;
    while (!at_end(scan) && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return (size_t)(scan->at - start);
}

static bool take_number(struct scan *scan)
{
    (void)take(scan, '-'); /* may be there */
    bool zero = peek_is(scan, '0');
    size_t whole = take_digits(scan);
    if (whole == 0 || whole > INT_DIGITS_MAX || (zero && whole > 1))
        return false;
    if (take(scan, '.')) {
        size_t fraction = take_digits(scan);
        if (fraction == 0 || fraction > REAL_DIGITS_MAX)
            return false;
    }
    if (take(scan, 'e') || take(scan, 'E')) {
        bool minus = take(scan, '-');
        if (!minus)
            (void)take(scan, '+');           /* may be there */
        size_t exponent = take_digits(scan); /* too small is 0, too large is an error */
        if (exponent == 0 || exponent > (minus ? 3 : EXPONENT_DIGITS_MAX))
            return false;
    }
    return true;
}

static bool take_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
        return false;
    scan->at += len;
    return true;
}

static bool take_scalar(struct scan *scan)
{
    if (at_end(scan))
        return false;
    switch (*scan->at) {
    case '"': return take_string(scan, true);
    case 't': return take_word(scan, "true");
    case 'f': return take_word(scan, "false");
    case 'n': return take_word(scan, "null");
    default: return take_number(scan);
    }
}

static bool in_object(const struct scan *scan)
{
    return (scan->in_object >> (scan->depth - 1) & 1) != 0;
}

static bool take_close(struct scan *scan)
{
    if (!take(scan, in_object(scan) ? '}' : ']'))
        return false;
    scan->depth--;
    scan->key_count = scan->first_key[scan->depth];
    return true;
}

/* A scalar or an empty container, or the brackets (and first key) that lead to a value:
 * then *ret_open is true. */
static bool take_value(struct scan *scan, bool *ret_open)
{
    skip_space(scan);
    *ret_open = false;
    bool object = peek_is(scan, '{');
    if (!object && !peek_is(scan, '['))
        return take_scalar(scan);
    if (scan->depth == HF_MAX_JSON_DEPTH)
        return false;

    scan->at++;
    uint64_t bit = UINT64_C(1) << scan->depth;
    scan->in_object = object ? scan->in_object | bit : scan->in_object & ~bit;
    scan->first_key[scan->depth] = scan->key_count;
    scan->depth++;
    skip_space(scan);
    if (take_close(scan))
        return true;
    *ret_open = true;
    return !object || take_key(scan);
}

/* After a value: closes what ends here, up to the next comma or the end of the text. */
static bool take_rest(struct scan *scan)
{
    for (;;) {
        skip_space(scan);
        if (scan->depth == 0)
            return at_end(scan);
        if (take(scan, ','))
            return !in_object(scan) || take_key(scan);
        if (!take_close(scan))
            return false;
    }
}

bool hf_json_plain(struct hf_span text)
{
    hf_assert(HF_MAX_JSON_DEPTH <= LEVELS_MAX);
    struct scan scan;
    scan.at = text.len ? text.at : (const void *)""; /* no arithmetic on NULL */
    scan.end = scan.at + text.len;
    scan.depth = 0;
    scan.in_object = 0;
    scan.key_count = 0;

    for (;;) {
        bool open = false;
        if (!take_value(&scan, &open))
            return false;
        if (open)
            continue;
        if (!take_rest(&scan))
            return false;
        if (scan.depth == 0)
            return true;
    }
}
