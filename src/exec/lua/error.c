/* Why a cell ended, in words for the model that wrote it: the line of its own text, what
 * happened, and what to do instead where that is known.
 *
 * run->message is both input and output: the code that ended the cell has put the bare reason (the
 * name of a tool, a variable's path) there, and hf_lua_explain replaces it by the sentence. */
#include "exec/lua/run.h"

#include <string.h>

#include "base/text.h"
#include "core/turn/schema.h"

#define MESSAGE_MAX 4000

/* Names that people expect and that are not here. */
static const struct {
    const char *name;
    const char *advice;
} advice[] = {
    { "(global 'os')", "there is no `os`; now() returns the time in seconds" },
    { "(global 'io')", "there are no files; use the tools through call(name, args)" },
    { "(global 'debug')", "there is no `debug`" },
    { "(global 'package')", "there are no modules; every function is built in" },
    { "(global 'require')", "there are no modules; every function is built in" },
    { "(global 'load')", "code cannot be made at run time; write it into the cell" },
    { "(global 'loadstring')",
      "code cannot be made at run time; write it into the cell" },
    { "(global 'loadfile')",
      "there are no files; use the tools through call(name, args)" },
    { "(global 'dofile')", "there are no files; use the tools through call(name, args)" },
    { "(global 'coroutine')",
      "there are no coroutines; call_batch runs several calls at once" },
    { "(global 'collectgarbage')", "memory is collected without your doing" },
    { "(global '_G')", "the globals are in `_ENV`" },
    { "(global 'unpack')", "it is table.unpack" },
    { "(field 'randomseed')", "random numbers need no seed here" },
    { "(field 'dump')", "there is no bytecode" },
    { "(field 'pack')", "string.pack is not available; table.pack is" },
    { "(field 'gfind')", "it is string.gmatch" },
    { "(field 'getn')", "the length of a list is #list" },
};

static const char *advice_for(const char *message)
{
    for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
        if (strstr(message, advice[i].name))
            return advice[i].advice;
    return NULL;
}

/* The line that the cell is in, or was when it failed: the innermost of its own. */
static int64_t line_of(lua_State *L)
{
    lua_Debug at;
    for (int level = 0; lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && at.currentline > 0)
            return at.currentline;
    return 0;
}

/* "cell:12: text" becomes "text", and the line is told. */
static const char *split_line(const char *text, int64_t *ret_line)
{
    static const char prefix[] = HF_LUA_CHUNK ":";
    if (!hf_starts_with(text, prefix))
        return text;
    const char *at = text + sizeof(prefix) - 1;
    int64_t line = 0;
    while (*at >= '0' && *at <= '9' && line < INT32_MAX)
        line = line * 10 + (*at++ - '0');
    if (at[0] != ':' || at[1] != ' ' || line == 0)
        return text;
    *ret_line = line;
    return at + 2;
}

/* The field of the table at 1 as text, pushed; "?" when it is none. */
static const char *push_field(lua_State *L, const char *key)
{
    lua_pushstring(L, key);
    if (lua_rawget(L, 1) != LUA_TSTRING) {
        lua_pop(L, 1);
        lua_pushliteral(L, "?");
    }
    return lua_tostring(L, -1);
}

static bool has_field(lua_State *L, const char *key)
{
    lua_pushstring(L, key);
    bool has = lua_rawget(L, 1) == LUA_TSTRING;
    lua_pop(L, 1);
    return has;
}

/* Of a call that failed, a name that could not be read, or what more has a message. */
static int failure_text(lua_State *L)
{
    lua_settop(L, 1);
    const char *code = push_field(L, "code");
    const char *message = push_field(L, "message");
    if (has_field(L, "name"))
        lua_pushfstring(L, "`%s` cannot be read (%s): %s", push_field(L, "name"), code,
                        message);
    else if (!has_field(L, "tool") && has_field(L, "message"))
        lua_pushstring(L, message);
    else
        lua_pushfstring(L, "the call of '%s' failed (%s): %s", push_field(L, "tool"),
                        code, message);
    return 1;
}

static int failure_concat(lua_State *L)
{
    lua_settop(L, 2);
    for (int i = 1; i <= 2; i++) {
        if (lua_istable(L, i)) {
            lua_pushcfunction(L, failure_text);
            lua_pushvalue(L, i);
            lua_call(L, 1, 1);
            lua_replace(L, i);
        }
        if (!lua_isstring(L, i))
            return luaL_error(L, "attempt to concatenate a %s value",
                              luaL_typename(L, i));
    }
    lua_concat(L, 2);
    return 1;
}

void hf_lua_mark_failure(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_failure_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, failure_text);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, failure_concat);
        lua_setfield(L, -2, "__concat");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_failure_key);
    }
    lua_setmetatable(L, -2);
}

/* Protected: the error value at 1 as text, which is its only result. */
static int error_text(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING)
        return 1;
    if (lua_getmetatable(L, 1)) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_failure_key);
        bool failure = lua_rawequal(L, -1, -2);
        lua_settop(L, 1);
        if (failure)
            return failure_text(L);
    }
    hf_buf_reset(&run->out);
    if (hf_lua_write(L, 1, HF_LUA_VIEW, "error", &run->out))
        lua_pushliteral(L, "an error value that cannot be shown");
    else
        lua_pushlstring(L, hf_buf_str(&run->out), run->out.len);
    return 1;
}

static void put_clean(struct hf_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = hf_utf8_next(text + i, len - i);
        if (step == 0 || text[i] == '\0')
            hf_buf_text(out, "\xef\xbf\xbd");
        else
            hf_buf_bytes(out, text + i, step);
        i += step ? step : 1;
    }
}

static void put_line(struct hf_engine_run *run)
{
    if (run->end_line == 0)
        return;
    hf_buf_text(&run->message, "line ");
    hf_buf_i64(&run->message, run->end_line);
    hf_buf_text(&run->message, ": ");
}

/* The message of an error that the cell raised, or of text that does not parse. */
static void put_error(struct hf_engine_run *run)
{
    lua_State *L = run->main;
    size_t len = 0;
    lua_settop(L, 0);
    lua_pushcfunction(L, error_text);
    lua_xmove(run->cell, L, 1);
    int status = lua_pcall(L, 1, 1, 0);
    const char *text = status == LUA_OK ? lua_tolstring(L, -1, &len) : NULL;
    if (!text) {
        text = "an error, and no memory to show it";
        len = strlen(text);
    }
    int64_t line = 0;
    const char *said = split_line(text, &line);
    run->end_line = line > 0 ? line : line_of(run->cell);
    const char *help = advice_for(said);
    len -= (size_t)(said - text);
    hf_buf_reset(&run->message);
    put_line(run);
    put_clean(&run->message, said,
              len > MESSAGE_MAX ? hf_utf8_cut(said, MESSAGE_MAX) : len);
    if (help) {
        hf_buf_text(&run->message, "; ");
        hf_buf_text(&run->message, help);
    }
    lua_settop(L, 0);
}

static void put_limit(struct hf_engine_run *run, const char *what, int64_t limit,
                      const char *unit, const char *then)
{
    hf_buf_text(&run->message, what);
    hf_buf_i64(&run->message, limit);
    hf_buf_text(&run->message, unit);
    hf_buf_text(&run->message, then);
}

static void put_unknown_tool(struct hf_engine_run *run)
{
    char name[HF_LUA_NAME_MAX + 1] = "";
    size_t len = run->message.len < HF_LUA_NAME_MAX ? run->message.len : HF_LUA_NAME_MAX;
    memcpy(name, hf_buf_str(&run->message), len);
    name[hf_utf8_cut(name, len)] = '\0';
    hf_buf_reset(&run->message);
    put_line(run);
    hf_buf_text(&run->message, "there is no tool '");
    put_clean(&run->message, name, strlen(name));
    hf_buf_text(&run->message, "'; nothing was run. The tools are: ");
    for (size_t i = 0; i < run->tool_count && i < 50; i++) {
        hf_buf_text(&run->message, i > 0 ? ", " : "");
        hf_buf_text(&run->message, run->tools[i]);
    }
    hf_buf_text(&run->message, run->tool_count == 0 ? "none" : "");
}

/* A cell's global variables are kept for the next cell, as data; one of them cannot be (a function,
 * say). The message names it. The cell itself had ended well, so there is no line to name. */
static void put_unkeepable_variable(struct hf_engine_run *run)
{
    char why[1024] = "";
    size_t len = run->message.len < sizeof(why) - 1 ? run->message.len : sizeof(why) - 1;
    memcpy(why, hf_buf_str(&run->message), len);
    hf_buf_reset(&run->message);
    put_clean(&run->message, why, strlen(why));
    hf_buf_text(&run->message, ". Use `local` for what need not last");
}

int hf_lua_explain(struct hf_engine_run *run)
{
    bool limit = run->end >= HF_CELL_OVER_STEPS && run->end <= HF_CELL_OVER_MEMORY;
    if (limit) {
        run->end_line = line_of(run->cell);
        hf_buf_reset(&run->message);
        put_line(run);
    }
    switch ((int)run->end) {
    case HF_CELL_ERROR:
    case HF_CELL_SYNTAX: put_error(run); break;
    case HF_CELL_UNKNOWN_TOOL: put_unknown_tool(run); break;
    case HF_CELL_UNKEEPABLE: put_unkeepable_variable(run); break;
    case HF_CELL_FAILED:
        hf_buf_reset(&run->message);
        run->end_line = line_of(run->cell);
        hf_buf_text(&run->message, "the cell called fail");
        break;
    case HF_CELL_OVER_STEPS:
        put_limit(run, "the cell ran for more than ", run->limits.steps, " steps",
                  "; make its loops shorter, or leave the work to a tool");
        break;
    case HF_CELL_OVER_TIME:
        put_limit(run, "the cell was running for more than ", run->limits.active_ms,
                  " ms", "; make its loops shorter, or leave the work to a tool");
        break;
    case HF_CELL_OVER_MEMORY:
        put_limit(run, "the cell needed more than ", run->limits.memory_bytes,
                  " bytes of memory, or a string of more than 4194304",
                  "; keep less of it at a time");
        break;
    default: break;
    }
    return hf_buf_state(&run->message) == HF_ENOMEM ? HF_ENOMEM : 0;
}
