/* The matcher. Lua's own runs without looking at any limit, for hours on forty letters; this
 * one counts every comparison, and how deep it is. Classes are those of ASCII, whatever the
 * locale. */
#include "exec/lua/match.h"

#include <string.h>

#define DEPTH_MAX 200
#define PAY_EVERY 1024u

void hf_lua_match_init(struct hf_lua_match *match, lua_State *L, struct hf_span text,
                       struct hf_span pattern)
{
    match->L = L;
    match->text = text.at;
    match->text_end = match->text + text.len;
    match->pattern_end = (const char *)pattern.at + pattern.len;
    match->captures = 0;
    match->depth = 0;
    match->steps = 0;
}

void hf_lua_match_pay(struct hf_lua_match *match)
{
    uint32_t steps = match->steps;
    match->steps = 0;
    hf_lua_charge(match->L, steps);
}

static void count_step(struct hf_lua_match *m)
{
    if (++m->steps >= PAY_EVERY)
        hf_lua_match_pay(m);
}

static bool in_class(unsigned char c, char name)
{
    bool upper = c >= 'A' && c <= 'Z';
    bool lower = c >= 'a' && c <= 'z';
    bool digit = c >= '0' && c <= '9';
    bool graph = c > ' ' && c < 0x7f;
    switch (name | 0x20) {
    case 'a': return upper || lower;
    case 'c': return c < ' ' || c == 0x7f;
    case 'd': return digit;
    case 'g': return graph;
    case 'l': return lower;
    case 'p': return graph && !upper && !lower && !digit;
    case 's': return c == ' ' || (c >= '\t' && c <= '\r');
    case 'u': return upper;
    case 'w': return upper || lower || digit;
    case 'x': return digit || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
    default: return false;
    }
}

/* %a and so on; an upper-case name is the opposite; other characters mean themselves. */
static bool matches_class(unsigned char c, char name)
{
    bool is_letter = (name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z');
    if (!is_letter || !strchr("acdglpsuwx", name | 0x20))
        return (unsigned char)name == c;
    return in_class(c, name) != (name >= 'A' && name <= 'Z');
}

/* Just past the item that begins at `p`: a character, a class or a set. */
static const char *item_end(struct hf_lua_match *m, const char *p)
{
    if (*p == '%') {
        if (p + 1 == m->pattern_end)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 2;
    }
    if (*p != '[')
        return p + 1;
    p++;
    if (p < m->pattern_end && *p == '^')
        p++;
    do { /* a bracket right at the start is an item of the set */
        if (p >= m->pattern_end)
            luaL_error(m->L, "malformed pattern (missing ']')");
        p += *p == '%' ? 2 : 1;
        count_step(m);
    } while (p >= m->pattern_end || *p != ']');
    return p + 1;
}

/* The set from its '[' to its ']' at `last`. */
static bool matches_set(struct hf_lua_match *m, unsigned char c, const char *p,
                        const char *last)
{
    bool wanted = true;
    p++;
    if (*p == '^') {
        wanted = false;
        p++;
    }
    while (p < last) {
        count_step(m);
        if (*p == '%') {
            if (matches_class(c, p[1]))
                return wanted;
            p += 2;
        } else if (p + 2 < last && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                return wanted;
            p += 3;
        } else {
            if ((unsigned char)*p == c)
                return wanted;
            p++;
        }
    }
    return !wanted;
}

static bool matches_item(struct hf_lua_match *m, const char *s, const char *p,
                         const char *end)
{
    count_step(m);
    if (s >= m->text_end)
        return false;
    switch (*p) {
    case '.': return true;
    case '%': return matches_class((unsigned char)*s, p[1]);
    case '[': return matches_set(m, (unsigned char)*s, p, end - 1);
    default: return *p == *s;
    }
}

static const char *match_from(struct hf_lua_match *m, const char *s, const char *p);

static const char *match_most(struct hf_lua_match *m, const char *s, const char *p,
                              const char *end)
{
    ptrdiff_t count = 0;
    while (matches_item(m, s + count, p, end))
        count++;
    for (; count >= 0; count--) {
        const char *found = match_from(m, s + count, end + 1);
        if (found)
            return found;
    }
    return NULL;
}

static const char *match_least(struct hf_lua_match *m, const char *s, const char *p,
                               const char *end)
{
    for (;; s++) {
        const char *found = match_from(m, s, end + 1);
        if (found)
            return found;
        if (!matches_item(m, s, p, end))
            return NULL;
    }
}

static const char *open_capture(struct hf_lua_match *m, const char *s, const char *p,
                                ptrdiff_t kind)
{
    if (m->captures >= HF_LUA_CAPTURES)
        luaL_error(m->L, "too many captures");
    m->capture[m->captures].at = s;
    m->capture[m->captures].len = kind;
    m->captures++;
    const char *found = match_from(m, s, p);
    if (!found)
        m->captures--;
    return found;
}

static const char *close_capture(struct hf_lua_match *m, const char *s, const char *p)
{
    int i = m->captures - 1;
    while (i >= 0 && m->capture[i].len != HF_LUA_CAPTURE_OPEN)
        i--;
    if (i < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[i].len = s - m->capture[i].at;
    const char *found = match_from(m, s, p);
    if (!found)
        m->capture[i].len = HF_LUA_CAPTURE_OPEN;
    return found;
}

/* %b(): from an opening character to the one that closes it. */
static const char *match_balance(struct hf_lua_match *m, const char *s, const char *p)
{
    if (m->pattern_end - p < 4)
        luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    char opens = p[2];
    char closes = p[3];
    if (s >= m->text_end || *s != opens)
        return NULL;
    int64_t depth = 1;
    for (s++; s < m->text_end; s++) {
        count_step(m);
        if (*s == closes && --depth == 0)
            return s + 1;
        if (*s == opens && opens != closes)
            depth++;
    }
    return NULL;
}

/* %f[set]: here the set begins to match. */
static bool at_frontier(struct hf_lua_match *m, const char *s, const char *p,
                        const char *end)
{
    unsigned char before = s == m->text ? '\0' : (unsigned char)s[-1];
    unsigned char here = s < m->text_end ? (unsigned char)*s : '\0';
    return !matches_set(m, before, p, end - 1) && matches_set(m, here, p, end - 1);
}

static const char *match_again(struct hf_lua_match *m, const char *s, char digit)
{
    int i = digit - '1';
    if (i < 0 || i >= m->captures || m->capture[i].len == HF_LUA_CAPTURE_OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    size_t len = m->capture[i].len < 0 ? 0 : (size_t)m->capture[i].len;
    m->steps += (uint32_t)(len / HF_LUA_STEP_BYTES);
    count_step(m);
    if ((size_t)(m->text_end - s) < len || memcmp(m->capture[i].at, s, len) != 0)
        return NULL;
    return s + len;
}

/* One item with what follows it, where that needs a choice; otherwise moves on by one
 * item.
 * *ret_p is NULL when `s` already is the answer. */
static const char *match_item(struct hf_lua_match *m, const char *s, const char *p,
                              const char **ret_p)
{
    const char *end = item_end(m, p);
    char suffix = end < m->pattern_end ? *end : '\0';
    *ret_p = NULL;
    if (suffix == '*')
        return match_most(m, s, p, end);
    if (suffix == '-')
        return match_least(m, s, p, end);
    bool fits = matches_item(m, s, p, end);
    if (suffix == '+')
        return fits ? match_most(m, s + 1, p, end) : NULL;
    if (suffix == '?') {
        const char *found = fits ? match_from(m, s + 1, end + 1) : NULL;
        if (found)
            return found;
        *ret_p = end + 1;
        return s;
    }
    if (!fits)
        return NULL;
    *ret_p = end;
    return s + 1;
}

/* A '%' with a meaning of its own; false: it is a class. */
static bool match_special(struct hf_lua_match *m, const char **s, const char **p)
{
    char kind = m->pattern_end - *p > 1 ? (*p)[1] : '\0';
    if (kind == 'b') {
        *s = match_balance(m, *s, *p);
        *p += 4;
        return true;
    }
    if (kind == 'f') {
        const char *set = *p + 2;
        if (set >= m->pattern_end || *set != '[')
            luaL_error(m->L, "missing '[' after '%%f' in pattern");
        const char *end = item_end(m, set);
        if (!at_frontier(m, *s, set, end))
            *s = NULL;
        *p = end;
        return true;
    }
    if (kind >= '0' && kind <= '9') {
        *s = match_again(m, *s, kind);
        *p += 2;
        return true;
    }
    return false;
}

static const char *match_here(struct hf_lua_match *m, const char *s, const char *p)
{
    while (s && p < m->pattern_end) {
        count_step(m);
        if (*p == '(') {
            bool place = p + 1 < m->pattern_end && p[1] == ')';
            return open_capture(m, s, p + (place ? 2 : 1),
                                place ? HF_LUA_CAPTURE_PLACE : HF_LUA_CAPTURE_OPEN);
        }
        if (*p == ')')
            return close_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == m->text_end ? s : NULL;
        if (*p == '%' && match_special(m, &s, &p))
            continue;
        const char *next = NULL;
        s = match_item(m, s, p, &next);
        if (!next)
            return s;
        p = next;
    }
    return s;
}

static const char *match_from(struct hf_lua_match *m, const char *s, const char *p)
{
    if (++m->depth > DEPTH_MAX)
        luaL_error(m->L, "pattern too complex");
    const char *found = match_here(m, s, p);
    m->depth--;
    return found;
}

const char *hf_lua_match_at(struct hf_lua_match *match, const char *at,
                            const char *pattern)
{
    match->captures = 0;
    match->depth = 0;
    return match_from(match, at, pattern);
}

void hf_lua_push_capture(const struct hf_lua_match *match, int i, const char *from,
                         const char *to)
{
    if (i >= match->captures) {
        if (i != 0)
            luaL_error(match->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(match->L, from, (size_t)(to - from));
        return;
    }
    ptrdiff_t len = match->capture[i].len;
    if (len == HF_LUA_CAPTURE_OPEN)
        luaL_error(match->L, "unfinished capture");
    if (len == HF_LUA_CAPTURE_PLACE)
        lua_pushinteger(match->L, match->capture[i].at - match->text + 1);
    else
        lua_pushlstring(match->L, match->capture[i].at, (size_t)len);
}

int hf_lua_push_captures(const struct hf_lua_match *match, const char *from,
                         const char *to)
{
    int count = match->captures == 0 && from ? 1 : match->captures;
    luaL_checkstack(match->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        hf_lua_push_capture(match, i, from, to);
    return count;
}
