/* Names that the host passes: they can be read and not changed.
 *
 * A given table is shown by an empty one whose metatable reads from it and refuses to write,
 * and so is every table in it; functions of the library look behind it with hf_lua_see, or
 * refuse it with hf_lua_check_own. The given values lie next to the builtins, behind the
 * globals; a reference is an operation when its name is first read, and lies there from then
 * on. Variables of the same name are put aside, and are bindings again at the end; so are
 * those whose name the language has: it may have got it since they were kept. */
#include "exec/lua/run.h"

#include <string.h>

#include "base/json_walk.h"

static const char inner_key = 'i';  /* of a shown table: the one behind it */
static const char frozen_key = 'z'; /* of the registry: the metatable of shown tables */
static const char given_key = 'n';  /* name to true, or to a reference as JSON */
static const char aside_key = 'a';  /* variables whose names are taken */

/* Raised as a failed call is, so that pcall gets a code to go by. */
static _Noreturn void refuse_write(lua_State *L, const char *name)
{
    lua_createtable(L, 0, 2);
    hf_lua_mark_failure(L);
    lua_pushliteral(L, "read_only");
    lua_setfield(L, -2, "code");
    if (name)
        lua_pushfstring(L,
                        "`%s` is given by the host and can only be read; use another "
                        "name",
                        name);
    else
        lua_pushliteral(L, "this table is given by the host and can only be read; copy "
                           "what you need into a table of your own");
    lua_setfield(L, -2, "message");
    lua_error(L);
    __builtin_unreachable();
}

static bool is_frozen(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &frozen_key);
    bool frozen = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return frozen;
}

bool hf_lua_push_inner(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TTABLE || !is_frozen(L, index))
        return false;
    lua_rawgetp(L, index, &inner_key);
    return true;
}

void hf_lua_see(lua_State *L, int index)
{
    if (hf_lua_push_inner(L, index))
        lua_replace(L, index);
}

void hf_lua_check_own(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TTABLE && is_frozen(L, index))
        refuse_write(L, NULL);
}

static int frozen_index(lua_State *L)
{
    lua_rawgetp(L, 1, &inner_key);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    return 1;
}

static int frozen_newindex(lua_State *L)
{
    refuse_write(L, NULL);
}

static int frozen_len(lua_State *L)
{
    lua_rawgetp(L, 1, &inner_key);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

void hf_lua_freeze(lua_State *L)
{
    luaL_checkstack(L, 4, NULL);
    lua_createtable(L, 0, 1);
    lua_insert(L, -2);
    lua_rawsetp(L, -2, &inner_key);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &frozen_key) == LUA_TNIL) {
        static const luaL_Reg methods[] = { { "__index", frozen_index },
                                            { "__newindex", frozen_newindex },
                                            { "__len", frozen_len },
                                            { NULL, NULL } };
        lua_pop(L, 1);
        luaL_newlib(L, methods);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &frozen_key);
    }
    lua_setmetatable(L, -2);
}

/* What is given for the key at `index`, pushed: nil, true, or a reference. */
static int push_given(lua_State *L, int index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &given_key);
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        lua_pushnil(L);
        return LUA_TNIL;
    }
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_type(L, -1);
}

void hf_lua_check_name(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TSTRING)
        return;
    if (push_given(L, index) != LUA_TNIL)
        refuse_write(L, lua_tostring(L, index));
    lua_pop(L, 1);
}

static int global_newindex(lua_State *L)
{
    lua_settop(L, 3);
    hf_lua_check_name(L, 2);
    lua_rawset(L, 1);
    return 0;
}

static int read_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    const struct hf_tool_result *result = hf_lua_run_of(L)->answer->results;
    if (result->outcome != HF_TOOL_SUCCESS) {
        hf_lua_push_failure(L, result, "name");
        return lua_error(L);
    }
    struct hf_span json = result->value;
    if (json.len == 0)
        json = (struct hf_span){ "null", 4 };
    hf_lua_read(L, json, HF_LUA_GIVEN);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return 1;
}

/* A name that is no variable: what there is behind the globals, or a reference. */
static int global_index(lua_State *L)
{
    lua_settop(L, 2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) != LUA_TNIL || lua_type(L, 2) != LUA_TSTRING)
        return 1;
    lua_settop(L, 2);
    if (push_given(L, 2) != LUA_TSTRING) {
        lua_pushnil(L);
        return 1;
    }
    struct hf_engine_run *run = hf_lua_begin(L);
    size_t len = 0;
    const char *ref = lua_tolstring(L, 3, &len);
    hf_buf_bytes(&run->out, ref, len);
    hf_lua_check_written(L, hf_buf_state(&run->out));
    return hf_lua_suspend_call(L, HF_OP_READ, lua_tostring(L, 2), read_done);
}

/* A name that is there without the bindings. */
static bool is_taken(lua_State *L, int name)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    lua_pushvalue(L, name);
    bool builtin = lua_rawget(L, -2) != LUA_TNIL;
    bool taken = builtin || push_given(L, name) != LUA_TNIL;
    lua_settop(L, name + 1);
    return taken;
}

bool hf_lua_put_aside(lua_State *L)
{
    int name = lua_gettop(L) - 1;
    if (!is_taken(L, name))
        return false;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &aside_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &aside_key);
    }
    lua_pushvalue(L, name);
    lua_pushvalue(L, name + 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return true;
}

void hf_lua_bring_back(lua_State *L, int globals)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &aside_key) == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, globals);
        }
    }
    lua_pop(L, 1);
}

bool hf_lua_is_aside(lua_State *L, const char *name)
{
    int type = LUA_TNIL;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &aside_key) == LUA_TTABLE) {
        type = lua_getfield(L, -1, name);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return type != LUA_TNIL;
}

/* Notes the name at the top, which stays there. One of the language cannot be given. */
static void note_name(lua_State *L, struct hf_engine_run *run)
{
    int name = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    lua_pushvalue(L, name);
    if (lua_rawget(L, -2) != LUA_TNIL) {
        hf_buf_reset(&run->message);
        hf_buf_text(&run->message, "`");
        hf_buf_text(&run->message, lua_tostring(L, name));
        hf_buf_text(&run->message, "` is a name of the language and cannot be given");
        luaL_error(L, "a name of the language");
    }
    lua_settop(L, name);
}

/* Each name into the table at `index`: with true, or with its reference as JSON. */
static void note_names(lua_State *L, struct hf_span object, bool refs, int index)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (object.len == 0 || !hf_walk_enter(&walk, '{'))
        return;
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        struct hf_span value = hf_walk_value(&walk);
        lua_pushlstring(L, (const char *)key.at + 1, key.len - 2); /* it is a word */
        note_name(L, hf_lua_run_of(L));
        if (refs)
            lua_pushlstring(L, value.at, value.len);
        else
            lua_pushboolean(L, 1);
        lua_rawset(L, index);
    }
}

static void set_method(lua_State *L, const char *name, lua_CFunction method)
{
    lua_pushcfunction(L, method);
    lua_setfield(L, -2, name);
}

void hf_lua_open_given(lua_State *L, const struct hf_engine_start *start)
{
    if (start->given.len + start->given_refs.len == 0)
        return;
    int top = lua_gettop(L);
    lua_newtable(L);
    int names = top + 1;
    note_names(L, start->given, false, names);
    note_names(L, start->given_refs, true, names);
    lua_pushvalue(L, names);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &given_key);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    if (start->given.len > 0)
        hf_lua_read_members(L, start->given, HF_LUA_GIVEN, lua_gettop(L));
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
    lua_getmetatable(L, -1);
    set_method(L, "__newindex", global_newindex);
    if (start->given_refs.len > 0)
        set_method(L, "__index", global_index);
    lua_settop(L, top);
}
