/* Strict reading and plain writing of text. Nothing here looks at the locale, and nothing
 * uses <stdio.h>, whose number formats do. */
#include "base/text.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"

size_t hf_utf8_next(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    if (len == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;

    /* The second byte's range is what excludes overlong forms (E0, F0), surrogates (ED)
     * and values past U+10FFFF (F4); the others may be any continuation byte. */
    size_t need = 2;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        need = 2;
    } else if (at[0] >= 0xe0 && at[0] <= 0xef) {
        need = 3;
        low = at[0] == 0xe0 ? 0xa0 : 0x80;
        high = at[0] == 0xed ? 0x9f : 0xbf;
    } else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        need = 4;
        low = at[0] == 0xf0 ? 0x90 : 0x80;
        high = at[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if (len < need || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return need;
}

bool hf_utf8_valid(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    size_t i = 0;
    while (i < len) {
        /* Payloads are mostly ASCII: eight bytes a step. */
        uint64_t word = 0;
        if (len - i >= sizeof(word)) {
            memcpy(&word, at + i, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t step = hf_utf8_next(at + i, len - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

size_t hf_utf8_cut(const char *text, size_t len)
{
    /* Back over at most three continuation bytes to the last character's first byte. */
    size_t back = 1;
    while (back <= 4 && back <= len) {
        unsigned char byte = (unsigned char)text[len - back];
        if (byte < 0x80)
            return len;
        if (byte >= 0xc0) {
            size_t need = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return need > back ? len - back : len;
        }
        back++;
    }
    return len;
}

/* The name of the input in a message. */
static const char *name_of(const char *field)
{
    return field ? field : "value";
}

static int check_chars(const char *value, size_t len, bool lines, const char *field,
                       struct hf_err *err)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)value[i];
        if (lines && (byte == '\n' || byte == '\r' || byte == '\t'))
            continue;
        if (byte < 0x20 || byte == 0x7f)
            return hf_fail(err, HF_EINVAL, field,
                           "%s must not contain control characters (byte %zu is 0x%02x)",
                           name_of(field), i, (unsigned)byte);
    }
    if (!hf_utf8_valid(value, len))
        return hf_fail(err, HF_EINVAL, field, "%s must be UTF-8", name_of(field));
    return 0;
}

static int check_length(const char *value, size_t max, const char *field, size_t *ret_len,
                        struct hf_err *err)
{
    size_t len = strnlen(value, max < SIZE_MAX ? max + 1 : max);
    if (len > max)
        return hf_fail(err, HF_ETOOBIG, field, "%s must be at most %zu bytes",
                       name_of(field), max);
    *ret_len = len;
    return 0;
}

int hf_check_key(const char *value, size_t max, const char *field, struct hf_err *err)
{
    if (!value)
        return hf_fail(err, HF_EINVAL, field, "%s is required", name_of(field));
    size_t len = 0;
    int rc = check_length(value, max, field, &len, err);
    if (rc == 0 && len == 0)
        rc = hf_fail(err, HF_EINVAL, field, "%s must not be empty", name_of(field));
    if (rc == 0)
        rc = check_chars(value, len, false, field, err);
    return rc;
}

int hf_check_key_opt(const char *value, size_t max, const char *field, struct hf_err *err)
{
    return value ? hf_check_key(value, max, field, err) : 0;
}

int hf_check_text(const char *value, size_t max, const char *field, struct hf_err *err)
{
    if (!value)
        return 0;
    size_t len = 0;
    int rc = check_length(value, max, field, &len, err);
    if (rc == 0)
        rc = check_chars(value, len, true, field, err);
    return rc;
}

/* Reads digits up to the first other byte. False when there are none or they exceed
 * `ceiling`; *at then points at the digit that was one too many. */
static bool take_digits(const char **at, uint64_t ceiling, uint64_t *ret_value)
{
    const char *start = *at;
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (value > ceiling / 10 || value * 10 > ceiling - digit)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return *at > start;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int hf_parse_i64(const char *text, int64_t min, int64_t max, const char *field,
                 int64_t *ret_value, struct hf_err *err)
{
    if (!text)
        return hf_fail(err, HF_EINVAL, field, "%s is required", name_of(field));

    const char *at = text;
    bool minus = *at == '-';
    if (minus)
        at++;
    const char *rest = at;
    while (is_digit(*rest))
        rest++;
    if (rest == at || *rest != '\0')
        return hf_fail(err, HF_EINVAL, field, "%s must be a whole number",
                       name_of(field));

    uint64_t size = 0;
    int64_t value = 0;
    bool fits = take_digits(&at, (uint64_t)INT64_MAX + (minus ? 1 : 0), &size);
    if (fits) /* by way of size - 1, so that INT64_MIN needs no signed overflow */
        value = minus && size > 0 ? -(int64_t)(size - 1) - 1 : (int64_t)size;
    if (!fits || value < min || value > max)
        return hf_fail(err, HF_EINVAL, field, "%s must be from %lld to %lld",
                       name_of(field), (long long)min, (long long)max);
    *ret_value = value;
    return 0;
}

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};
#define UNITS (sizeof(units) / sizeof(units[0]))

/* Milliseconds of one unit, 0 for a name that is none. A bare number is in seconds. */
static int64_t unit_ms(const char *name)
{
    if (*name == '\0')
        return 1000;
    for (size_t i = 0; i < UNITS; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ms;
    return 0;
}

struct decimal {
    uint64_t whole;
    uint64_t fraction; /* over `scale` */
    uint64_t scale;
    bool too_large;
    bool too_fine;
};

/* A day is 2^10 * 27 * 5^5 ms: a fraction with more than ten digits (after its trailing
 * zeros) is not a whole number of milliseconds in any unit. */
#define FRACTION_DIGITS_MAX 10

/* Reads "12" or "12.5" and returns what follows, or NULL where no number is. */
static const char *take_decimal(const char *at, struct decimal *ret_number)
{
    struct decimal number = { .scale = 1 };
    if (!is_digit(*at))
        return NULL;
    number.too_large = !take_digits(&at, (uint64_t)HF_MAX_DURATION_MAX_MS, &number.whole);
    while (is_digit(*at))
        at++;
    if (*at == '.') {
        const char *start = ++at;
        while (is_digit(*at))
            at++;
        const char *end = at;
        if (end == start)
            return NULL;
        while (end > start && end[-1] == '0')
            end--;
        number.too_fine = end - start > FRACTION_DIGITS_MAX;
        for (; start < end && !number.too_fine; start++) {
            number.fraction = number.fraction * 10 + (uint64_t)(*start - '0');
            number.scale *= 10;
        }
    }
    *ret_number = number;
    return at;
}

int hf_parse_duration(const char *text, const char *field, hf_ms *ret_ms,
                      struct hf_err *err)
{
    if (!text)
        return hf_fail(err, HF_EINVAL, field, "%s is required", name_of(field));

    struct decimal number = { 0 };
    const char *rest = take_decimal(text, &number);
    uint64_t unit = rest ? (uint64_t)unit_ms(rest) : 0;
    if (unit == 0)
        return hf_fail(err, HF_EINVAL, field,
                       "%s must be a duration such as 250ms, 45s, 5m, 2h or 7d",
                       name_of(field));
    /* Cannot overflow: a fraction is under 10^10 and a day under 10^8. */
    if (number.too_fine || number.fraction * unit % number.scale != 0)
        return hf_fail(err, HF_EINVAL, field, "%s is finer than a millisecond",
                       name_of(field));

    uint64_t max = (uint64_t)HF_MAX_DURATION_MAX_MS;
    uint64_t part = number.fraction * unit / number.scale;
    if (number.too_large || number.whole > (max - part) / unit)
        return hf_fail(err, HF_EINVAL, field, "%s must be at most %llud", name_of(field),
                       (unsigned long long)(max / 86400000));
    *ret_ms = (hf_ms)(number.whole * unit + part);
    return 0;
}

struct writer {
    char *out;
    size_t room;
    size_t len;
};

static void put(struct writer *to, const char *text)
{
    for (; *text && to->len + 1 < to->room; text++)
        to->out[to->len++] = *text;
}

static void put_number(struct writer *to, uint64_t value)
{
    char digits[21];
    char *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put(to, at);
}

const char *hf_duration_text(hf_ms ms, char *out, size_t room)
{
    struct writer to = { .out = out, .room = room };
    uint64_t rest = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    if (ms < 0)
        put(&to, "-");

    size_t first = 0;
    while (first < UNITS && rest < (uint64_t)units[first].ms)
        first++;
    if (first == UNITS)
        put(&to, "0s");
    for (size_t i = first; i < UNITS && i < first + 2; i++) {
        uint64_t count = rest / (uint64_t)units[i].ms;
        rest %= (uint64_t)units[i].ms;
        if (count == 0)
            continue;
        if (i > first)
            put(&to, " ");
        put_number(&to, count);
        put(&to, units[i].name);
    }
    if (room > 0)
        out[to.len] = '\0';
    return out;
}

bool hf_same(const char *a, const char *b)
{
    if (a == b || !a || !b) /* words and defaults are often one text */
        return a == b;
    return strcmp(a, b) == 0;
}

bool hf_text_is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return len > 0;
}

bool hf_word_find(const char *const *words, unsigned count, const char *word,
                  unsigned *ret_at)
{
    for (unsigned i = 0; i < count; i++) {
        if (hf_same(words[i], word)) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

int hf_text_order(const char *a, const char *b)
{
    return strcmp(a, b);
}

void hf_hex(const void *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[at[i] >> 4];
        out[2 * i + 1] = digits[at[i] & 15];
    }
    out[2 * len] = '\0';
}

bool hf_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

char *hf_text_copy(const struct hf_alloc *alloc, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    char *copy = text ? alloc->realloc(alloc->user, NULL, bytes) : NULL;
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
