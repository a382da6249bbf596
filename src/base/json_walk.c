/* A cursor over checked JSON text. It counts brackets and knows strings, no more. */
#include "base/json_walk.h"

#include <string.h>

#include "base/text.h"

void hf_walk_begin(struct hf_walk *walk, struct hf_span text)
{
    walk->at = text.len ? text.at : "";
    walk->end = walk->at + text.len;
}

static void skip_blank(struct hf_walk *walk)
{
    while (walk->at < walk->end && (*walk->at == ' ' || *walk->at == '\n' ||
                                    *walk->at == '\t' || *walk->at == '\r'))
        walk->at++;
}

char hf_walk_next(struct hf_walk *walk)
{
    skip_blank(walk);
    if (walk->at == walk->end)
        return '\0';
    return *walk->at >= '0' && *walk->at <= '9' ? '0' : *walk->at;
}

bool hf_walk_enter(struct hf_walk *walk, char bracket)
{
    if (hf_walk_next(walk) != bracket)
        return false;
    walk->at++;
    return true;
}

bool hf_walk_more(struct hf_walk *walk)
{
    char next = hf_walk_next(walk);
    if (next == ',') {
        walk->at++;
        next = hf_walk_next(walk);
    }
    if (next != '}' && next != ']')
        return next != '\0';
    walk->at++;
    return false;
}

static void skip_string(struct hf_walk *walk)
{
    for (walk->at++; walk->at < walk->end && *walk->at != '"'; walk->at++)
        if (*walk->at == '\\' && walk->end - walk->at > 1)
            walk->at++;
    if (walk->at < walk->end)
        walk->at++;
}

struct hf_span hf_walk_value(struct hf_walk *walk)
{
    skip_blank(walk);
    const char *start = walk->at;
    size_t depth = 0;
    while (walk->at < walk->end) {
        char c = *walk->at;
        if (c == '"') {
            skip_string(walk);
        } else if (c == '{' || c == '[') {
            depth++;
            walk->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                break;
            depth--;
            walk->at++;
        } else {
            if (depth == 0 &&
                (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r'))
                break;
            walk->at++;
            continue;
        }
        if (depth == 0)
            break;
    }
    return (struct hf_span){ start, (size_t)(walk->at - start) };
}

struct hf_span hf_walk_key(struct hf_walk *walk)
{
    struct hf_span key = hf_walk_value(walk);
    if (hf_walk_next(walk) == ':')
        walk->at++;
    return key;
}

static unsigned hex_at(const char *at)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)at[i];
        unsigned digit = c <= '9' ? c - 48u : (c | 32u) - 87u; /* '0', and 'a' - 10 */
        code = code << 4 | (digit & 15);
    }
    return code;
}

static size_t put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* After "\u": the character, of one escape or two. Returns the bytes read. */
static size_t read_unicode(const char *at, size_t left, unsigned *ret_code)
{
    *ret_code = 0xfffd;
    if (left < 4)
        return left;
    unsigned code = hex_at(at);
    if (code >= 0xd800 && code < 0xdc00 && left >= 10 && at[4] == '\\' && at[5] == 'u') {
        *ret_code = 0x10000 + ((code & 0x3ff) << 10 | (hex_at(at + 6) & 0x3ff));
        return 10;
    }
    if (code < 0xd800 || code > 0xdfff)
        *ret_code = code;
    return 4;
}

int hf_walk_text(struct hf_arena *arena, struct hf_span raw, struct hf_span *ret_text)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    const char *at = raw.at;
    if (raw.len < 2 || at[0] != '"')
        return HF_EINVAL;
    char *out = hf_arena_take(arena, raw.len + 1); /* no escape says more than it takes */
    if (!out)
        return HF_ENOMEM;
    size_t used = 0;
    size_t end = raw.len - 1;
    for (size_t i = 1; i < end; i++) {
        if (at[i] != '\\' || i + 1 == end) {
            out[used++] = at[i];
            continue;
        }
        char kind = at[++i];
        const char *known = kind ? strchr(from, kind) : NULL;
        if (kind == 'u') {
            unsigned code = 0;
            i += read_unicode(at + i + 1, end - i - 1, &code);
            used += put_utf8(out + used, code);
        } else {
            out[used++] = known ? to[known - from] : kind;
        }
    }
    out[used] = '\0';
    *ret_text = (struct hf_span){ out, used };
    return 0;
}

bool hf_walk_i64(struct hf_span raw, int64_t *ret_value)
{
    char digits[24];
    if (raw.len == 0 || raw.len >= sizeof(digits))
        return false;
    memcpy(digits, raw.at, raw.len);
    digits[raw.len] = '\0';
    return hf_parse_i64(digits, INT64_MIN, INT64_MAX, NULL, ret_value, NULL) == 0;
}

bool hf_walk_is(struct hf_span raw, const char *word)
{
    size_t len = strlen(word);
    const char *at = raw.at;
    return raw.len == len + 2 && at[0] == '"' && memcmp(at + 1, word, len) == 0;
}
