/* JSON as Lua's values. An array is a table marked as a list, so that it stays one when it
 * is empty; null is the value `null`, since a table cannot hold nil.
 */
#include "exec/lua/run.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "exec/cell/bindings.h"

#define LEVELS 64 /* of the scanner */
#define NUMBER_BYTES 64
#define FEW 4 /* items that a table has room for at first: growing it costs more */

struct level {
    bool object;
    bool tag; /* a key that is the name of a tag */
    lua_Integer count;
};

struct reader {
    lua_State *L;
    struct hf_json_scan scan;
    bool tags;
    bool frozen;
    struct level levels[LEVELS];
};

void hf_lua_mark_list(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_list_key);
    lua_setmetatable(L, -2);
}

static void push_text(struct reader *r)
{
    const struct hf_json_scan *scan = &r->scan;
    if (!scan->token_escaped) {
        lua_pushlstring(r->L, scan->token, scan->token_len);
        return;
    }
    luaL_Buffer text;
    char *room = luaL_buffinitsize(r->L, &text, scan->token_len);
    luaL_pushresultsize(&text, hf_json_unescape(scan->token, scan->token_len, room));
}

/* A whole number without a sign that cannot overflow, as most are. */
static bool few_digits(const struct hf_json_scan *scan, lua_Integer *ret_value)
{
    lua_Integer value = 0;
    if (scan->token_real || scan->token_len > 18 || scan->token[0] == '-')
        return false;
    for (size_t i = 0; i < scan->token_len; i++)
        value = value * 10 + (scan->token[i] - '0');
    *ret_value = value;
    return true;
}

static void push_number(struct reader *r)
{
    const struct hf_json_scan *scan = &r->scan;
    int64_t whole = 0;
    lua_Integer small = 0;
    if (few_digits(scan, &small)) {
        lua_pushinteger(r->L, small);
        return;
    }
    if (!scan->token_real &&
        hf_walk_i64((struct hf_span){ scan->token, scan->token_len }, &whole)) {
        lua_pushinteger(r->L, whole);
        return;
    }
    char few[NUMBER_BYTES];
    char *room = few;
    luaL_Buffer many;
    bool is_long = scan->token_len + 1 > sizeof(few);
    if (is_long)
        room = luaL_buffinitsize(r->L, &many, scan->token_len + 1);
    memcpy(room, scan->token, scan->token_len);
    room[scan->token_len] = '\0';
    double value = strtod(room, NULL); /* the C locale */
    if (is_long) {
        luaL_pushresultsize(&many, 0);
        lua_pop(r->L, 1);
    }
    if (!scan->token_real || value > DBL_MAX || value < -DBL_MAX)
        luaL_error(r->L,
                   "the value has a number that is out of range"); /* never rounded */
    lua_pushnumber(r->L, value);
}

static _Noreturn void bad_tag(lua_State *L)
{
    luaL_error(L, "these are no bindings");
    __builtin_unreachable();
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void push_hex(lua_State *L, const char *digits, size_t len)
{
    luaL_Buffer bytes;
    char *room = luaL_buffinitsize(L, &bytes, len / 2);
    for (size_t i = 0; i < len / 2; i++) {
        int high = hex_digit(digits[2 * i]);
        int low = hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            bad_tag(L);
        room[i] = (char)(high * 16 + low);
    }
    luaL_pushresultsize(&bytes, len / 2);
}

/* From a list of pairs at the top of the stack: a table, pushed. */
static void push_map(lua_State *L)
{
    int pairs = lua_gettop(L);
    luaL_checkstack(L, 6, NULL);
    lua_newtable(L);
    lua_Integer count = (lua_Integer)lua_rawlen(L, pairs);
    for (lua_Integer i = 1; i <= count; i++) {
        if (lua_rawgeti(L, pairs, i) != LUA_TTABLE || lua_rawlen(L, -1) != 2)
            bad_tag(L);
        int key = lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        bool nan = key == LUA_TNUMBER && lua_tonumber(L, -2) != lua_tonumber(L, -2);
        if (key == LUA_TNIL || key == LUA_TTABLE || nan)
            bad_tag(L);
        lua_rawset(L, pairs + 1);
        lua_pop(L, 1);
    }
}

static void push_special(lua_State *L, const char *word)
{
    const double inf = __builtin_inf();
    if (hf_same(word, "nan"))
        lua_pushnumber(L, __builtin_nan(""));
    else if (hf_same(word, "inf"))
        lua_pushnumber(L, inf);
    else if (hf_same(word, "-inf"))
        lua_pushnumber(L, -inf);
    else
        bad_tag(L);
}

/* An object with one member whose key is a tag is at the top: puts what it means there. */
static void open_tag(lua_State *L)
{
    int object = lua_gettop(L);
    luaL_checkstack(L, 6, NULL);
    lua_pushnil(L);
    lua_next(L, object);
    const char *tag = lua_tostring(L, -2);
    size_t len = 0;
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
    if (hf_same(tag, "$map") && lua_istable(L, -1))
        push_map(L);
    else if (hf_same(tag, "$hex") && text && len % 2 == 0)
        push_hex(L, text, len);
    else if (hf_same(tag, "$num") && text)
        push_special(L, text);
    else
        bad_tag(L);
    lua_replace(L, object);
    lua_settop(L, object);
}

/* The value at the top goes into what is open. */
static void attach(struct reader *r)
{
    if (r->scan.depth == 0)
        return;
    struct level *level = &r->levels[r->scan.depth - 1];
    level->count++;
    if (level->object)
        lua_rawset(r->L, -3);
    else
        lua_rawseti(r->L, -2, level->count);
}

static void open_level(struct reader *r, bool object)
{
    r->levels[r->scan.depth - 1] = (struct level){ .object = object };
    luaL_checkstack(r->L, 8, NULL);
    lua_createtable(r->L, object ? 0 : FEW, object ? FEW : 0);
    if (!object)
        hf_lua_mark_list(r->L);
}

static void close_level(struct reader *r)
{
    const struct level *level = &r->levels[r->scan.depth];
    if (r->tags && level->object && level->tag && level->count == 1)
        open_tag(r->L);
    if (r->frozen)
        hf_lua_freeze(r->L);
    attach(r);
}

/* False at the end. */
static bool read_event(struct reader *r, enum hf_json_event event)
{
    switch (event) {
    case HF_JSON_EV_OBJECT: open_level(r, true); return true;
    case HF_JSON_EV_ARRAY: open_level(r, false); return true;
    case HF_JSON_EV_CLOSE: close_level(r); return true;
    case HF_JSON_EV_KEY:
        r->levels[r->scan.depth - 1].tag |= hf_bindings_is_tag(r->scan.token,
                                                               r->scan.token_len);
        push_text(r);
        return true;
    case HF_JSON_EV_STRING: push_text(r); break;
    case HF_JSON_EV_NUMBER: push_number(r); break;
    case HF_JSON_EV_TRUE: lua_pushboolean(r->L, 1); break;
    case HF_JSON_EV_FALSE: lua_pushboolean(r->L, 0); break;
    case HF_JSON_EV_NULL: lua_pushlightuserdata(r->L, NULL); break;
    case HF_JSON_EV_DONE: return false;
    case HF_JSON_EV_BAD: luaL_error(r->L, "this text %s", r->scan.fault); return false;
    }
    attach(r);
    return true;
}

void hf_lua_read(lua_State *L, struct hf_span json, enum hf_lua_form form)
{
    struct reader r;
    r.L = L;
    r.tags = form == HF_LUA_BINDINGS;
    r.frozen = form == HF_LUA_GIVEN;
    hf_lua_charge_bytes(L, json.len);
    luaL_checkstack(L, 8, NULL);
    hf_json_scan_begin(&r.scan, json);
    while (read_event(&r, hf_json_scan_next(&r.scan))) {}
}

void hf_lua_read_members(lua_State *L, struct hf_span json, enum hf_lua_form form,
                         int index)
{
    hf_lua_read(L, json, form);
    if (form == HF_LUA_GIVEN) /* of the whole only its members are to be shown */
        hf_lua_see(L, lua_gettop(L));
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (form != HF_LUA_BINDINGS || !hf_lua_put_aside(L))
            lua_rawset(L, index);
        else
            lua_pop(L, 2);
    }
    lua_pop(L, 1);
}
