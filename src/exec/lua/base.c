/* The functions without a prefix: order, metatables, errors, texts. */
#include "exec/lua/run.h"

#include <lualib.h>

#include "base/text.h"

#define CAUGHT_STEPS 100 /* Lua looks at the whole stack when it catches an error */

/* Ends the cell once more where something would continue that must not. */
static void stay_ended(lua_State *L, int status)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (status == LUA_ERRMEM && run->end == HF_CELL_RUNNING)
        run->end = HF_CELL_OVER_MEMORY;
    if (run->end != HF_CELL_RUNNING)
        hf_lua_end(L, run->end);
    if (status != LUA_OK && status != LUA_YIELD)
        hf_lua_charge(L, CAUGHT_STEPS);
}

static bool went_well(int status)
{
    return status == LUA_OK || status == LUA_YIELD;
}

static int pcall_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    stay_ended(L, status);
    lua_pushboolean(L, went_well(status));
    lua_replace(L, 1);
    if (went_well(status))
        return lua_gettop(L);
    lua_pushvalue(L, 1);
    lua_insert(L, -2);
    return 2;
}

static int base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    return pcall_done(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, pcall_done),
                      0);
}

static int handler_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

/* The handler runs after the error, not inside of it: no caller here can see a
 * difference. */
static int xpcall_done(lua_State *L, int status, lua_KContext ctx)
{
    stay_ended(L, status);
    if (went_well(status)) {
        lua_pushboolean(L, 1);
        lua_replace(L, 1);
        return lua_gettop(L);
    }
    lua_pushvalue(L, 1);
    lua_insert(L, -2);
    lua_callk(L, 1, 1, ctx, handler_done);
    return handler_done(L, LUA_OK, ctx);
}

static int base_xpcall(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_replace(L, 1);
    lua_replace(L, 2);
    return xpcall_done(L, lua_pcallk(L, top - 2, LUA_MULTRET, 0, 0, xpcall_done), 0);
}

/* What a metatable may say. Not __gc and __mode, which would show when memory is
 * collected, and not __close. */
static const char *const metamethods[] = {
    "__add", "__band", "__bnot",     "__bor",      "__bxor",  "__call", "__concat",
    "__div", "__eq",   "__idiv",     "__index",    "__le",    "__len",  "__lt",
    "__mod", "__mul",  "__name",     "__newindex", "__pairs", "__pow",  "__shl",
    "__shr", "__sub",  "__tostring", "__unm",
};

static void refuse_field(lua_State *L, int index, const char *name)
{
    lua_pushstring(L, name);
    if (lua_rawget(L, index) != LUA_TNIL)
        luaL_error(L,
                   "%s is not available: nothing in a cell may depend on when memory "
                   "is collected",
                   name);
    lua_pop(L, 1);
}

/* Lua takes anything that can be called, and looks for ever into a table that is its own
 * __call; so only functions are methods. */
static void check_method(lua_State *L, const char *name, int type)
{
    bool may_be_table = hf_same(name, "__index") || hf_same(name, "__newindex");
    bool may_be_text = hf_same(name, "__name");
    if (type != LUA_TNIL && type != LUA_TFUNCTION &&
        !(may_be_table && type == LUA_TTABLE) && !(may_be_text && type == LUA_TSTRING))
        luaL_error(L, "%s must be a function, got %s", name, lua_typename(L, type));
}

/* Pushes the table that means the metatable at index 2: a copy of what is allowed,
 * so that nothing can be added to it later. The first item is the original. */
static void push_private(lua_State *L)
{
    refuse_field(L, 2, "__gc");
    refuse_field(L, 2, "__mode");
    refuse_field(L, 2, "__close");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_privates_key);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_createtable(L, 1, 4);
        lua_pushvalue(L, 2);
        lua_rawseti(L, -2, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    for (size_t i = 0; i < sizeof(metamethods) / sizeof(metamethods[0]); i++) {
        lua_pushstring(L, metamethods[i]);
        lua_pushvalue(L, -1);
        int type = lua_rawget(L, 2);
        check_method(L, metamethods[i], type);
        lua_rawset(L, -3);
    }
}

/* The metatable that the cell set on the table at index 1, pushed; false if none. */
static bool push_original(lua_State *L)
{
    if (!lua_getmetatable(L, 1))
        return false;
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
    if (lua_istable(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

static bool push_protection(lua_State *L)
{
    if (!push_original(L))
        return false;
    lua_pushliteral(L, "__metatable");
    lua_rawget(L, -2);
    lua_remove(L, -2);
    if (!lua_isnil(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

static bool is_globals(lua_State *L, int index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
    bool globals = lua_rawequal(L, index, -1);
    lua_pop(L, 1);
    return globals;
}

static int base_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    hf_lua_check_own(L, 1);
    hf_lua_charge(L, 8);
    lua_settop(L, 2);
    if (is_globals(L, 1) || push_protection(L))
        return luaL_error(L, "cannot change a protected metatable");
    if (type == LUA_TTABLE)
        push_private(L);
    lua_setmetatable(L, 1);
    lua_settop(L, 1);
    return 1;
}

static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_type(L, 1) == LUA_TTABLE && (push_protection(L) || push_original(L)))
        return 1;
    lua_pushnil(L);
    return 1;
}

/* upvalues: table, its keys as a list, their order, how many, the next. */
static int pairs_next(lua_State *L)
{
    const uint32_t *order = lua_touserdata(L, lua_upvalueindex(3));
    lua_Integer count = lua_tointeger(L, lua_upvalueindex(4));
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(5));
    for (; at < count; at++) {
        lua_settop(L, 0);
        lua_rawgeti(L, lua_upvalueindex(2), order[at]);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL) {
            hf_lua_charge(L, 1);
            continue; /* removed meanwhile */
        }
        lua_pushinteger(L, at + 1);
        lua_replace(L, lua_upvalueindex(5));
        return 2;
    }
    lua_pushinteger(L, count);
    lua_replace(L, lua_upvalueindex(5));
    return 0;
}

static int pairs_made(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 3;
}

static int base_pairs(lua_State *L)
{
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_callk(L, 1, 3, 0, pairs_made);
        return 3;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    hf_lua_see(L, 2); /* it is walked through, and not given out */
    lua_newtable(L);  /* the keys, which it keeps alive */
    size_t count = hf_lua_key_order(L, 2, 3);
    lua_pushinteger(L, (lua_Integer)count);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, pairs_next, 5);
    lua_insert(L, 1);
    lua_pushnil(L);
    return 3;
}

/* The least key after the given one, or the first: a look at all of them. */
static int base_next(lua_State *L)
{
    struct hf_lua_key after = { .kind = HF_LUA_KEY_OTHER };
    struct hf_lua_key best = { .kind = HF_LUA_KEY_OTHER };
    bool first = lua_isnoneornil(L, 2);
    bool found = false;
    size_t count = 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    hf_lua_see(L, 1);
    if (!first)
        hf_lua_key_of(L, 2, &after);
    lua_settop(L, 2);
    lua_pushnil(L);
    lua_pushnil(L); /* 3: the best so far */
    while (lua_next(L, 1)) {
        struct hf_lua_key key;
        hf_lua_key_of(L, -2, &key);
        if (key.kind == HF_LUA_KEY_OTHER)
            hf_lua_refuse_key(L);
        bool later = first || hf_lua_key_compare(&key, &after) > 0;
        if (later && (!found || hf_lua_key_compare(&key, &best) < 0)) {
            best = key;
            found = true;
            lua_pushvalue(L, -2);
            lua_replace(L, 3);
        }
        count++;
        lua_pop(L, 1);
    }
    hf_lua_charge(L, 1 + count / 2);
    lua_settop(L, 3); /* nil, when there is none */
    if (!found)
        return 1;
    lua_pushvalue(L, 3);
    lua_rawget(L, 1);
    return 2;
}

void hf_lua_push_text(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    switch (lua_type(L, index)) {
    case LUA_TNIL: lua_pushliteral(L, "nil"); break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNUMBER:
    case LUA_TSTRING:
        lua_pushvalue(L, index);
        lua_tolstring(L, -1, NULL);
        break;
    case LUA_TLIGHTUSERDATA: lua_pushliteral(L, "null"); break;
    default: lua_pushstring(L, luaL_typename(L, index)); break; /* no address */
    }
}

bool hf_lua_text_method(lua_State *L, int index, lua_KContext ctx, lua_KFunction k)
{
    index = lua_absindex(L, index);
    if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
        return false;
    lua_pushvalue(L, index);
    lua_callk(L, 1, 1, ctx, k);
    return true;
}

static int tostring_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    if (lua_type(L, -1) != LUA_TSTRING)
        return luaL_error(L, "'__tostring' must return a string");
    return 1;
}

static int base_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!hf_lua_text_method(L, 1, 0, tostring_done))
        hf_lua_push_text(L, 1);
    return tostring_done(L, LUA_OK, 0);
}

static int base_list(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    hf_lua_check_own(L, 1);
    lua_settop(L, 1);
    if (is_globals(L, 1) || push_original(L))
        return luaL_error(L, "a table with a metatable cannot be made a list");
    hf_lua_mark_list(L);
    return 1;
}

static int base_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    hf_lua_see(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int base_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    hf_lua_check_own(L, 1);
    if (is_globals(L, 1))
        hf_lua_check_name(L, 2);
    lua_rawset(L, 1);
    return 1;
}

static int base_rawlen(lua_State *L)
{
    int type = lua_type(L, 1);
    luaL_argexpected(L, type == LUA_TTABLE || type == LUA_TSTRING, 1, "table or string");
    hf_lua_see(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
    return 1;
}

static void take_stock(lua_State *L)
{
    static const char *const names[] = { "assert", "error",    "ipairs", "rawequal",
                                         "select", "tonumber", "type" };
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        lua_getfield(L, -1, names[i]);
        lua_setfield(L, -3, names[i]);
    }
    lua_pop(L, 1);
    lua_newtable(L); /* the others are out of reach, also for the parser */
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

void hf_lua_open_base(lua_State *L)
{
    static const luaL_Reg functions[] = { { "getmetatable", base_getmetatable },
                                          { "list", base_list },
                                          { "next", base_next },
                                          { "pairs", base_pairs },
                                          { "pcall", base_pcall },
                                          { "rawget", base_rawget },
                                          { "rawlen", base_rawlen },
                                          { "rawset", base_rawset },
                                          { "setmetatable", base_setmetatable },
                                          { "tostring", base_tostring },
                                          { "xpcall", base_xpcall },
                                          { NULL, NULL } };
    take_stock(L);
    luaL_setfuncs(L, functions, 0);
    lua_pushliteral(L, "Lua 5.4");
    lua_setfield(L, -2, "_VERSION");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");

    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_list_key);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_privates_key);
}
