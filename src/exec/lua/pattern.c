/* find, match, gmatch and gsub over the counted matcher. */
#include <string.h>

#include "exec/lua/match.h"

/* The place from which to search, from 0; past the end: none. */
static size_t start_of(lua_State *L, int index, size_t len)
{
    lua_Integer at = luaL_optinteger(L, index, 1);
    if (at > 0)
        return (size_t)at - 1;
    if (at == 0 || (size_t)-at > len)
        return 0;
    return len - (size_t)-at;
}

static bool is_plain(const char *pattern, size_t len)
{
    static const char special[] = "^$*+?.([%-";
    for (size_t i = 0; i < len; i++)
        if (pattern[i] && strchr(special, pattern[i]))
            return false;
    return true;
}

static struct hf_span check_text(lua_State *L, int index)
{
    struct hf_span text = { NULL, 0 };
    text.at = luaL_checklstring(L, index, &text.len);
    return text;
}

static int find_plain(lua_State *L, struct hf_span text, struct hf_span wanted, size_t at)
{
    const char *whole = text.at;
    hf_lua_charge_bytes(L, text.len - at + wanted.len);
    const char *found = memmem(whole + at, text.len - at, wanted.at, wanted.len);
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - whole + 1);
    lua_pushinteger(L, found - whole + (lua_Integer)wanted.len);
    return 2;
}

static int search(lua_State *L, bool find)
{
    struct hf_span text = check_text(L, 1);
    struct hf_span pattern = check_text(L, 2);
    size_t at = start_of(L, 3, text.len);
    if (at > text.len) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || is_plain(pattern.at, pattern.len)))
        return find_plain(L, text, pattern, at);

    struct hf_lua_match match;
    hf_lua_match_init(&match, L, text, pattern);
    const char *from = match.text + at;
    const char *p = pattern.at;
    bool anchored = pattern.len > 0 && *p == '^';
    p += anchored ? 1 : 0;
    const char *to = hf_lua_match_at(&match, from, p);
    while (!to && !anchored && from < match.text_end)
        to = hf_lua_match_at(&match, ++from, p);
    hf_lua_match_pay(&match);
    if (!to) {
        lua_pushnil(L);
        return 1;
    }
    if (!find)
        return hf_lua_push_captures(&match, from, to);
    lua_pushinteger(L, from - match.text + 1);
    lua_pushinteger(L, to - match.text);
    return 2 + hf_lua_push_captures(&match, NULL, NULL);
}

static int string_find(lua_State *L)
{
    return search(L, true);
}

static int string_match(lua_State *L)
{
    return search(L, false);
}

/* upvalues: text, pattern, where to continue, the end of the last match (or -1). */
static int gmatch_next(lua_State *L)
{
    struct hf_span text = check_text(L, lua_upvalueindex(1));
    struct hf_span pattern = check_text(L, lua_upvalueindex(2));
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    struct hf_lua_match match;
    hf_lua_match_init(&match, L, text, pattern);
    for (; (size_t)at <= text.len; at++) {
        const char *to = hf_lua_match_at(&match, match.text + at, pattern.at);
        if (!to || to - match.text == last)
            continue;
        hf_lua_match_pay(&match);
        lua_pushinteger(L, to - match.text);
        lua_pushvalue(L, -1);
        lua_replace(L, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return hf_lua_push_captures(&match, match.text + at, to);
    }
    hf_lua_match_pay(&match);
    lua_pushinteger(L, (lua_Integer)text.len + 1);
    lua_replace(L, lua_upvalueindex(3));
    return 0;
}

static int string_gmatch(lua_State *L)
{
    struct hf_span text = check_text(L, 1);
    check_text(L, 2);
    size_t at = start_of(L, 3, text.len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)(at > text.len ? text.len + 1 : at));
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_next, 4);
    return 1;
}

/* gsub: a state that survives a yield, since a replacement may call the cell.
 *   1 text, 2 pattern, 3 replacement, 4 the result so far, 5 this state                  */
struct gsub {
    size_t at;
    size_t from; /* of the match that is being replaced */
    size_t to;
    size_t last; /* where the last match ended; text.len + 1: none */
    lua_Integer count;
    lua_Integer most;
    bool anchored;
};

struct result {
    size_t len;
    size_t room;
    char bytes[];
};

static void append(lua_State *L, const char *bytes, size_t len)
{
    struct result *result = lua_touserdata(L, 4);
    if (len > result->room - result->len) {
        if (result->len + len > HF_LUA_STRING_MAX)
            luaL_error(L, "resulting string too large (at most %d bytes)",
                       (int)HF_LUA_STRING_MAX);
        size_t room = (result->len + len) * 2;
        hf_lua_charge_bytes(L, room);
        struct result *larger = lua_newuserdatauv(L, sizeof(*larger) + room, 0);
        larger->len = result->len;
        larger->room = room;
        memcpy(larger->bytes, result->bytes, result->len);
        lua_replace(L, 4);
        result = larger;
    }
    memcpy(result->bytes + result->len, bytes, len);
    result->len += len;
}

/* The replacement text with its %0 to %9. */
static void append_template(lua_State *L, const struct hf_lua_match *match,
                            const struct gsub *gsub)
{
    struct hf_span template = check_text(L, 3);
    const char *at = template.at;
    const char *end = at + template.len;
    while (at < end) {
        const char *mark = memchr(at, '%', (size_t)(end - at));
        append(L, at, (size_t)((mark ? mark : end) - at));
        if (!mark)
            return;
        char kind = mark + 1 < end ? mark[1] : '\0';
        at = mark + 2;
        if (kind == '%') {
            append(L, "%", 1);
        } else if (kind == '0') {
            append(L, match->text + gsub->from, gsub->to - gsub->from);
        } else if (kind >= '1' && kind <= '9') {
            size_t len = 0;
            hf_lua_push_capture(match, kind - '1', match->text + gsub->from,
                                match->text + gsub->to);
            const char *text = lua_tolstring(L, -1, &len);
            append(L, text, len);
            lua_pop(L, 1);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
}

/* What a table or a function returned is at the top. */
static void append_value(lua_State *L, const struct gsub *gsub)
{
    const char *text = lua_tostring(L, 1);
    if (!lua_toboolean(L, -1)) {
        append(L, text + gsub->from, gsub->to - gsub->from);
    } else if (lua_isstring(L, -1)) {
        size_t len = 0;
        const char *value = lua_tolstring(L, -1, &len);
        append(L, value, len);
    } else {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    lua_settop(L, 5);
}

static int gsub_next(lua_State *L, int status, lua_KContext ctx);

static void replace(lua_State *L, const struct hf_lua_match *match,
                    const struct gsub *gsub)
{
    const char *from = match->text + gsub->from;
    const char *to = match->text + gsub->to;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION: {
        lua_pushvalue(L, 3);
        int count = hf_lua_push_captures(match, from, to);
        lua_callk(L, count, 1, 0, gsub_next);
        append_value(L, gsub);
        break;
    }
    case LUA_TTABLE:
        hf_lua_push_capture(match, 0, from, to);
        lua_gettable(L, 3);
        append_value(L, gsub);
        break;
    default: append_template(L, match, gsub); break;
    }
}

/* Finds the next match and copies what is before it. False at the end. */
static bool next_match(lua_State *L, struct hf_lua_match *match, struct gsub *gsub,
                       const char *pattern)
{
    size_t len = (size_t)(match->text_end - match->text);
    size_t copied = gsub->at;
    bool found = false;
    while (!found && gsub->count < gsub->most) {
        const char *to = hf_lua_match_at(match, match->text + gsub->at, pattern);
        found = to && (size_t)(to - match->text) != gsub->last;
        if (found) {
            gsub->from = gsub->at;
            gsub->to = (size_t)(to - match->text);
        } else if (gsub->at < len && !gsub->anchored) {
            gsub->at++;
        } else {
            break;
        }
    }
    append(L, match->text + copied, gsub->at - copied);
    return found;
}

static int gsub_on(lua_State *L)
{
    struct hf_span text = check_text(L, 1);
    struct hf_span pattern = check_text(L, 2);
    struct gsub *gsub = lua_touserdata(L, 5);
    const char *p = (const char *)pattern.at + (gsub->anchored ? 1 : 0);
    struct hf_lua_match match;
    hf_lua_match_init(&match, L, text, pattern);
    while (!(gsub->anchored && gsub->count > 0) && next_match(L, &match, gsub, p)) {
        gsub->count++;
        gsub->at = gsub->last = gsub->to;
        hf_lua_match_pay(&match);
        replace(L, &match, gsub);
    }
    hf_lua_match_pay(&match);
    append(L, match.text + gsub->at, text.len - gsub->at);
    const struct result *result = lua_touserdata(L, 4);
    lua_pushlstring(L, result->bytes, result->len);
    lua_pushinteger(L, gsub->count);
    return 2;
}

static int gsub_next(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    append_value(L, lua_touserdata(L, 5));
    return gsub_on(L);
}

static int string_gsub(lua_State *L)
{
    struct hf_span text = check_text(L, 1);
    struct hf_span pattern = check_text(L, 2);
    int type = lua_type(L, 3);
    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING ||
                         type == LUA_TFUNCTION || type == LUA_TTABLE,
                     3, "string/function/table");
    if (type == LUA_TNUMBER)
        lua_tolstring(L, 3, NULL);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)text.len + 1);
    lua_settop(L, 3);
    struct result *result = lua_newuserdatauv(L, sizeof(*result) + 128, 0);
    result->len = 0;
    result->room = 128;
    struct gsub *gsub = lua_newuserdatauv(L, sizeof(*gsub), 0);
    *gsub = (struct gsub){ .most = most,
                           .last = text.len + 1,
                           .anchored = pattern.len > 0 &&
                                       *(const char *)pattern.at == '^' };
    return gsub_on(L);
}

void hf_lua_open_pattern(lua_State *L)
{
    static const luaL_Reg functions[] = { { "find", string_find },
                                          { "gmatch", string_gmatch },
                                          { "gsub", string_gsub },
                                          { "match", string_match },
                                          { NULL, NULL } };
    luaL_setfuncs(L, functions, 0);
}
