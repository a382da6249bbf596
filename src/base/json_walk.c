/* A cursor over checked JSON text. It counts brackets and knows strings, no more. */
#include "base/json_walk.h"

#include <string.h>

#include "base/json_scan.h"
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

/* Past the quote that no backslash precedes, or that an even number of them does. */
static void skip_string(struct hf_walk *walk)
{
    const char *start = walk->at + 1;
    const char *at = start;
    while (at < walk->end) {
        const char *quote = memchr(at, '"', (size_t)(walk->end - at));
        if (!quote)
            break;
        const char *before = quote;
        while (before > start && before[-1] == '\\')
            before--;
        at = quote + 1;
        if ((quote - before) % 2 == 0) {
            walk->at = at;
            return;
        }
    }
    walk->at = walk->end;
}

struct hf_span hf_walk_value(struct hf_walk *walk)
{
    skip_blank(walk);
    const char *start = walk->at;
    size_t depth = 0;
    if (start < walk->end && *start == '"') { /* as every key and most values are */
        skip_string(walk);
        return (struct hf_span){ start, (size_t)(walk->at - start) };
    }
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

int hf_walk_text(struct hf_arena *arena, struct hf_span raw, struct hf_span *ret_text)
{
    const char *at = raw.at;
    if (raw.len < 2 || at[0] != '"')
        return HF_EINVAL;
    char *out = hf_arena_take(arena, raw.len);
    if (!out)
        return HF_ENOMEM;
    size_t len = hf_json_unescape(at + 1, raw.len - 2, out);
    out[len] = '\0';
    *ret_text = (struct hf_span){ out, len };
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
    const char *at = raw.at;
    if (raw.len < 2 || at[0] != '"' || (raw.len > 2 && at[1] != word[0]))
        return false; /* most are told apart by their first letter */
    return strlen(word) == raw.len - 2 && memcmp(at + 1, word, raw.len - 2) == 0;
}
