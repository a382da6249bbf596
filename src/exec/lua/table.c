/* The table `table`: as Lua's, over raw items, charged for what it does; sort is stable. */
#include "exec/lua/run.h"

#include <stdint.h>

/* How many items; a table with holes has a border anywhere, as `#` has. */
static lua_Integer length_of(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    hf_lua_see(L, index);
    return (lua_Integer)lua_rawlen(L, index);
}

static void charge_range(lua_State *L, lua_Integer from, lua_Integer to)
{
    if (to >= from)
        hf_lua_charge(L, 1 + (uint64_t)to - (uint64_t)from);
}

static int table_insert(lua_State *L)
{
    hf_lua_check_own(L, 1);
    lua_Integer last = length_of(L, 1) + 1;
    lua_Integer at = last;
    int count = lua_gettop(L);
    if (count != 2 && count != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    if (count == 3) {
        at = luaL_checkinteger(L, 2);
        luaL_argcheck(L, at >= 1 && at <= last, 2, "position out of bounds");
        charge_range(L, at, last);
        for (lua_Integer i = last; i > at; i--) {
            lua_rawgeti(L, 1, i - 1);
            lua_rawseti(L, 1, i);
        }
    }
    lua_rawseti(L, 1, at);
    return 0;
}

static int table_remove(lua_State *L)
{
    hf_lua_check_own(L, 1);
    lua_Integer last = length_of(L, 1);
    lua_Integer at = luaL_optinteger(L, 2, last);
    if (lua_gettop(L) > 1)
        luaL_argcheck(L, (at >= 1 && at <= last + 1) || (last == 0 && at == 0), 2,
                      "position out of bounds");
    lua_rawgeti(L, 1, at);
    charge_range(L, at, last);
    for (; at < last; at++) {
        lua_rawgeti(L, 1, at + 1);
        lua_rawseti(L, 1, at);
    }
    if (at <= last) {
        lua_pushnil(L);
        lua_rawseti(L, 1, at);
    }
    return 1;
}

static int table_concat(lua_State *L)
{
    lua_Integer last = length_of(L, 1);
    size_t gap_len = 0;
    const char *gap = luaL_optlstring(L, 2, "", &gap_len);
    lua_Integer at = luaL_optinteger(L, 3, 1);
    last = luaL_optinteger(L, 4, last);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    while (at <= last) {
        int type = lua_rawgeti(L, 1, at);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
            return luaL_error(L, "invalid value (%s at index %d) in table for 'concat'",
                              luaL_typename(L, -1), (int)at);
        luaL_addvalue(&out);
        hf_lua_charge(L, 1);
        if (at == last) /* the largest integer may be the last */
            break;
        at++;
        luaL_addlstring(&out, gap, gap_len);
        if (out.n > HF_LUA_STRING_MAX)
            return luaL_error(L, "resulting string too large (at most %d bytes)",
                              (int)HF_LUA_STRING_MAX);
    }
    luaL_pushresult(&out);
    return 1;
}

static int table_pack(lua_State *L)
{
    int count = lua_gettop(L);
    hf_lua_charge(L, 1 + (size_t)count);
    lua_createtable(L, count, 1);
    lua_insert(L, 1);
    for (int i = count; i >= 1; i--)
        lua_rawseti(L, 1, i);
    lua_pushinteger(L, count);
    lua_setfield(L, 1, "n");
    return 1;
}

#define UNPACK_MAX 8000 /* each copy of this many arguments is one instruction */

static int table_unpack(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    hf_lua_see(L, 1);
    lua_Integer from = luaL_optinteger(L, 2, 1);
    lua_Integer to = lua_isnoneornil(L, 3) ? length_of(L, 1) : luaL_checkinteger(L, 3);
    if (from > to)
        return 0;
    if ((uint64_t)to - (uint64_t)from >= UNPACK_MAX)
        return luaL_error(L, "too many results to unpack (at most %d)", UNPACK_MAX);
    charge_range(L, from, to);
    luaL_checkstack(L, (int)(to - from) + 1, "too many results to unpack");
    for (lua_Integer i = from; i < to; i++)
        lua_rawgeti(L, 1, i);
    lua_rawgeti(L, 1, to);
    return (int)(to - from) + 1;
}

static int table_move(lua_State *L)
{
    lua_Integer from = luaL_checkinteger(L, 2);
    lua_Integer end = luaL_checkinteger(L, 3);
    lua_Integer to = luaL_checkinteger(L, 4);
    int target = lua_isnoneornil(L, 5) ? 1 : 5;
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, target, LUA_TTABLE);
    hf_lua_check_own(L, target);
    hf_lua_see(L, 1);
    if (end >= from) {
        luaL_argcheck(L, from > 0 || end < LUA_MAXINTEGER + from, 3,
                      "too many elements to move");
        luaL_argcheck(L, to <= LUA_MAXINTEGER - (end - from), 4,
                      "destination wrap around");
        charge_range(L, from, end);
        bool upwards = to > end || to <= from || target != 1;
        for (lua_Integer i = 0; i <= end - from; i++) {
            lua_Integer step = upwards ? i : end - from - i;
            lua_rawgeti(L, 1, from + step);
            lua_rawseti(L, target, to + step);
        }
    }
    lua_pushvalue(L, target);
    return 1;
}

/* Sorting: merges of doubling width between the items and a second list, as a state that
 * survives a yield, since comparing may call the cell and the cell its host.
 *   1 the table, 2 the comparing function or nil, 3 source, 4 target, 5 this state        */
struct sort {
    lua_Integer count;
    lua_Integer width;
    lua_Integer start; /* of the pair of runs that is being merged */
    lua_Integer left;
    lua_Integer right;
    lua_Integer out;
};

static lua_Integer least(lua_Integer a, lua_Integer b)
{
    return a < b ? a : b;
}

static void copy_item(lua_State *L, int from, lua_Integer i, int to, lua_Integer j)
{
    lua_rawgeti(L, from, i);
    lua_rawseti(L, to, j);
}

static void begin_pair(struct sort *sort, lua_Integer start)
{
    sort->start = start;
    sort->left = start;
    sort->right = least(start + sort->width, sort->count + 1);
    sort->out = start;
}

/* Takes the right item if it belongs before the left one, otherwise the left. */
static void take_item(lua_State *L, struct sort *sort, bool right)
{
    copy_item(L, 3, right ? sort->right++ : sort->left++, 4, sort->out++);
}

/* Moves on without comparing as far as that goes. False when all is sorted. */
static bool advance(lua_State *L, struct sort *sort)
{
    for (;;) {
        lua_Integer middle = least(sort->start + sort->width, sort->count + 1);
        lua_Integer end = least(sort->start + 2 * sort->width, sort->count + 1);
        if (sort->left < middle && sort->right < end)
            return true;
        hf_lua_charge(L, 1);
        while (sort->left < middle)
            take_item(L, sort, false);
        while (sort->right < end)
            take_item(L, sort, true);
        if (end <= sort->count) {
            begin_pair(sort, end);
            continue;
        }
        sort->width *= 2;
        lua_pushvalue(L, 3); /* source and target change places */
        lua_pushvalue(L, 4);
        lua_replace(L, 3);
        lua_replace(L, 4);
        if (sort->width >= sort->count)
            return false;
        begin_pair(sort, 1);
    }
}

static int sort_next(lua_State *L, int status, lua_KContext ctx);

static int sort_on(lua_State *L)
{
    struct sort *sort = lua_touserdata(L, 5);
    while (advance(L, sort)) {
        hf_lua_charge(L, 2);
        bool right = false;
        if (lua_isnil(L, 2)) {
            lua_rawgeti(L, 3, sort->right);
            lua_rawgeti(L, 3, sort->left);
            right = lua_compare(L, -2, -1, LUA_OPLT);
        } else {
            lua_pushvalue(L, 2);
            lua_rawgeti(L, 3, sort->right);
            lua_rawgeti(L, 3, sort->left);
            lua_callk(L, 2, 1, 0, sort_next);
            right = lua_toboolean(L, -1);
        }
        lua_settop(L, 5);
        take_item(L, sort, right);
    }
    for (lua_Integer i = 1; i <= sort->count; i++)
        copy_item(L, 3, i, 1, i);
    return 0;
}

static int sort_next(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    struct sort *sort = lua_touserdata(L, 5);
    bool right = lua_toboolean(L, -1);
    lua_settop(L, 5);
    take_item(L, sort, right);
    return sort_on(L);
}

static int table_sort(lua_State *L)
{
    hf_lua_check_own(L, 1);
    lua_Integer count = length_of(L, 1);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    if (count < 2)
        return 0;
    luaL_argcheck(L, count < INT32_MAX, 1, "table too big");
    hf_lua_charge(L, (size_t)count);
    lua_createtable(L, (int)count, 0);
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 1; i <= count; i++)
        copy_item(L, 1, i, 3, i);
    struct sort *sort = lua_newuserdatauv(L, sizeof(*sort), 0);
    *sort = (struct sort){ .count = count, .width = 1 };
    begin_pair(sort, 1);
    return sort_on(L);
}

void hf_lua_open_table(lua_State *L)
{
    static const luaL_Reg functions[] = {
        { "concat", table_concat }, { "insert", table_insert },
        { "move", table_move },     { "pack", table_pack },
        { "remove", table_remove }, { "sort", table_sort },
        { "unpack", table_unpack }, { NULL, NULL }
    };
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "table");
}
