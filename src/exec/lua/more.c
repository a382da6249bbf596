/* The tables `math`, `utf8` and `json`, and the function random. */
#include "exec/lua/run.h"

#include <lualib.h>

#include <holdfast/bounds.h>

#include "base/json.h"

static void open_math(lua_State *L)
{
    static const char *const names[] = {
        "abs",  "acos",      "asin", "atan",       "ceil",       "cos", "deg",
        "exp",  "floor",     "fmod", "huge",       "log",        "max", "min",
        "modf", "pi",        "rad",  "maxinteger", "mininteger", "sin", "sqrt",
        "tan",  "tointeger", "type", "ult",
    };
    lua_createtable(L, 0, 32);
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        lua_getfield(L, -1, names[i]);
        lua_setfield(L, -3, names[i]);
    }
    lua_pop(L, 1);
    hf_lua_open_random(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "random");
    lua_setfield(L, -3, "random");
    lua_setfield(L, -2, "math");
}

static void open_utf8(lua_State *L)
{
    static const char *const functions[] = { "char", "codepoint", "codes",
                                             "len",  "offset",    NULL };
    lua_createtable(L, 0, 8);
    lua_pushcfunction(L, luaopen_utf8);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "charpattern");
    lua_setfield(L, -3, "charpattern");
    hf_lua_take_charged(L, functions);
    lua_setfield(L, -2, "utf8");
}

static int json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    struct hf_engine_run *run = hf_lua_begin(L);
    lua_settop(L, 1);
    hf_lua_check_written(L, hf_lua_write(L, 1, HF_LUA_PLAIN, "value", &run->out));
    lua_pushlstring(L, hf_buf_str(&run->out), run->out.len);
    return 1;
}

static int json_decode(lua_State *L)
{
    struct hf_span text = { NULL, 0 };
    struct hf_err err = { 0 };
    text.at = luaL_checklstring(L, 1, &text.len);
    hf_lua_charge_bytes(L, 8 * text.len);
    int rc = hf_json_check(text, (size_t)HF_MAX_CELL_VALUE_BYTES, "the text", &err);
    if (rc == HF_ENOMEM)
        hf_lua_check_written(L, rc);
    if (rc)
        return luaL_error(L, "%s", err.message);
    hf_lua_read(L, text, HF_LUA_PLAIN);
    return 1;
}

static void open_json(lua_State *L)
{
    static const luaL_Reg functions[] = { { "decode", json_decode },
                                          { "encode", json_encode },
                                          { NULL, NULL } };
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "json");
}

void hf_lua_open_more(lua_State *L)
{
    open_math(L);
    open_utf8(L);
    open_json(L);
}
