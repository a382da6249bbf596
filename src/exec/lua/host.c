/* The functions by which a cell reaches the world: each is an operation. It is put
 * together, the cell yields, and what the host answered is turned into Lua's values when it
 * continues. */
#include "exec/lua/run.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/text.h"
#include "core/turn/schema.h"

int hf_lua_suspend(lua_State *L, enum hf_op_kind kind, const char *name, lua_KFunction k)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (!lua_isyieldable(L))
        return luaL_error(L, "%s cannot be used inside of a metamethod",
                          hf_op_name(kind));
    run->stop.kind = kind;
    run->stop.name = name;
    return lua_yieldk(L, 0, 0, k);
}

int hf_lua_suspend_call(lua_State *L, enum hf_op_kind kind, const char *name,
                        lua_KFunction k)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    run->one_call = (struct hf_engine_call){
        .tool = name, .args = { hf_buf_str(&run->out), run->out.len }
    };
    run->stop.calls = &run->one_call;
    run->stop.call_count = 1;
    return hf_lua_suspend(L, kind, name, k);
}

/* The beginning of every operation: one that is ended does nothing any more. */
struct hf_engine_run *hf_lua_begin(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (run->end != HF_CELL_RUNNING)
        hf_lua_end(L, run->end);
    hf_buf_reset(&run->out);
    return run;
}

/* Raises what is wrong with a value that was written. */
void hf_lua_check_written(lua_State *L, int rc)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (rc == HF_EINVAL)
        luaL_error(L, "%s", hf_buf_str(&run->message));
    if (rc == HF_ETOOBIG || run->out.len > (size_t)HF_MAX_CELL_VALUE_BYTES)
        luaL_error(L, "the value is larger than %d bytes as JSON",
                   (int)HF_MAX_CELL_VALUE_BYTES);
    if (rc) {
        run->memory_gone = true;
        hf_lua_end(L, HF_CELL_OVER_MEMORY);
    }
}

static void write_plain(lua_State *L, int index, const char *root)
{
    hf_lua_check_written(
        L, hf_lua_write(L, index, HF_LUA_PLAIN, root, &hf_lua_run_of(L)->out));
}

/* A key at a glance, as most names are. */
static bool is_ascii_key(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] < 0x20 || name[i] > 0x7e)
            return false;
    return len > 0 && len <= HF_LUA_NAME_MAX;
}

static const char *check_name(lua_State *L, int index, const char *what)
{
    size_t len = 0;
    if (lua_type(L, index) != LUA_TSTRING)
        luaL_error(L, "%s must be a string, got %s", what, luaL_typename(L, index));
    const char *name = lua_tolstring(L, index, &len);
    if (is_ascii_key(name, len))
        return name;
    if (strlen(name) != len || hf_check_key(name, HF_LUA_NAME_MAX, what, NULL) != 0)
        luaL_error(L, "%s must be text of 1 to %d bytes", what, HF_LUA_NAME_MAX);
    return name;
}

bool hf_lua_has_tool(const struct hf_engine_run *run, const char *name)
{
    for (size_t i = 0; i < run->tool_count; i++)
        if (hf_same(run->tools[i], name))
            return true;
    return run->tools == NULL;
}

static const char *check_tool(lua_State *L, int index)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    const char *name = check_name(L, index, "the name of a tool");
    if (hf_lua_has_tool(run, name))
        return name;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (size_t i = 0; i < run->tool_count && i < 20; i++) {
        luaL_addstring(&text, i > 0 ? ", " : "");
        luaL_addstring(&text, run->tools[i]);
    }
    luaL_pushresult(&text);
    luaL_error(L, "there is no tool '%s'; the tools are: %s", name,
               run->tool_count ? lua_tostring(L, -1) : "none");
    return NULL;
}

/* Arguments of a tool: an object. */
static void write_args(lua_State *L, int index, const char *root)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    size_t before = run->out.len;
    if (lua_isnoneornil(L, index)) {
        hf_buf_text(&run->out, "{}");
        return;
    }
    if (lua_type(L, index) != LUA_TTABLE)
        luaL_error(L, "%s must be a table with named fields, got %s", root,
                   luaL_typename(L, index));
    write_plain(L, index, root);
    if (hf_buf_str(&run->out)[before] == '[')
        luaL_error(L, "%s must have named fields, such as {city = \"Rome\"}", root);
}

/* What the JSON says; null as nil. */
static void push_answer(lua_State *L, struct hf_span json)
{
    if (json.len == 0 || (json.len == 4 && memcmp(json.at, "null", 4) == 0))
        lua_pushnil(L);
    else
        hf_lua_read(L, json, HF_LUA_PLAIN);
}

static void set_text(lua_State *L, const char *key, const char *text, size_t len)
{
    lua_pushlstring(L, text, len);
    lua_setfield(L, -2, key);
}

void hf_lua_push_failure(lua_State *L, const struct hf_tool_result *result,
                         const char *who)
{
    const struct hf_failure *failure = result->failure;
    bool failed = result->outcome == HF_TOOL_FAILURE && failure;
    const char *code = failed                                 ? failure->code
                       : result->outcome == HF_TOOL_CANCELLED ? "cancelled"
                                                              : "unknown";
    struct hf_span said = failed ? failure->message : result->reason;
    lua_createtable(L, 0, 5);
    hf_lua_mark_failure(L);
    set_text(L, who, result->tool ? result->tool : "?",
             strlen(result->tool ? result->tool : "?"));
    set_text(L, "code", code, strlen(code));
    set_text(L, "message", said.len ? said.at : "", said.len);
    if (failed && failure->raw.len > 0) {
        hf_lua_read(L, failure->raw, HF_LUA_PLAIN);
        lua_setfield(L, -2, "data");
    }
}

static int call_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    const struct hf_tool_result *result = hf_lua_run_of(L)->answer->results;
    if (result->outcome == HF_TOOL_SUCCESS) {
        push_answer(L, result->value);
        return 1;
    }
    hf_lua_push_failure(L, result, "tool");
    return lua_error(L);
}

static int host_call(lua_State *L)
{
    hf_lua_begin(L);
    const char *tool = check_tool(L, 1);
    write_args(L, 2, "args");
    return hf_lua_suspend_call(L, HF_OP_CALL, tool, call_done);
}

static int batch_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    const struct hf_engine_answer *answer = hf_lua_run_of(L)->answer;
    lua_createtable(L, (int)answer->result_count, 0);
    hf_lua_mark_list(L);
    for (size_t i = 0; i < answer->result_count; i++) {
        const struct hf_tool_result *result = &answer->results[i];
        bool ok = result->outcome == HF_TOOL_SUCCESS;
        lua_createtable(L, 0, 2);
        lua_pushboolean(L, ok);
        lua_setfield(L, -2, "ok");
        if (ok)
            push_answer(L, result->value);
        else
            hf_lua_push_failure(L, result, "tool");
        lua_setfield(L, -2, ok ? "value" : "error");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* The item by its place, otherwise by its name. */
static void push_item(lua_State *L, int index, lua_Integer place, const char *name)
{
    if (lua_rawgeti(L, index, place) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_pushstring(L, name);
    lua_rawget(L, index);
}

/* Call `i` of the list at index 1, whose item is pushed and stays on the stack, which
 * keeps its name alive. The arguments begin at *ret_at. */
static const char *write_batch_call(lua_State *L, lua_Integer i, size_t *ret_at)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (lua_rawgeti(L, 1, i) != LUA_TTABLE)
        luaL_error(L, "item %d of call_batch must be a table {name, args}", (int)i);
    int item = lua_gettop(L);
    hf_lua_see(L, item);
    push_item(L, item, 1, "tool");
    const char *tool = check_tool(L, item + 1);
    lua_replace(L, item); /* only its name and its arguments are needed */
    lua_rawgeti(L, 1, i);
    hf_lua_see(L, item + 1);
    push_item(L, item + 1, 2, "args");
    *ret_at = run->out.len;
    write_args(L, lua_gettop(L), "args");
    lua_settop(L, item);
    return tool;
}

static int host_call_batch(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_begin(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    hf_lua_see(L, 1);
    size_t count = lua_rawlen(L, 1);
    if (count == 0) {
        lua_newtable(L);
        hf_lua_mark_list(L);
        return 1;
    }
    if (count > (size_t)HF_MAX_TURN_CALLS)
        return luaL_error(L, "call_batch takes at most %d calls, got %d",
                          (int)HF_MAX_TURN_CALLS, (int)count);
    luaL_checkstack(L, (int)count + 8, NULL);
    struct hf_engine_call *calls = hf_arena_array(&run->arena, count, sizeof(*calls));
    size_t *starts = hf_arena_array(&run->arena, count + 1, sizeof(*starts));
    if (!calls || !starts)
        hf_lua_check_written(L, HF_ENOMEM);
    for (size_t i = 0; i < count; i++)
        calls[i].tool = write_batch_call(L, (lua_Integer)i + 1, &starts[i]);
    starts[count] = run->out.len;
    for (size_t i = 0; i < count; i++)
        calls[i].args = (struct hf_span){ hf_buf_str(&run->out) + starts[i],
                                          starts[i + 1] - starts[i] };
    run->stop.calls = calls;
    run->stop.call_count = count;
    return hf_lua_suspend(L, HF_OP_CALL_BATCH, NULL, batch_done);
}

static int print_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 0;
}

static void put_printed(lua_State *L, int index)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (lua_istable(L, index)) {
        hf_lua_check_written(L, hf_lua_write(L, index, HF_LUA_VIEW, "value", &run->out));
        return;
    }
    size_t len = 0;
    hf_lua_push_text(L, index);
    const char *text = lua_tolstring(L, -1, &len);
    hf_buf_bytes(&run->out, text, len);
    lua_pop(L, 1);
    hf_lua_check_written(L, hf_buf_state(&run->out));
}

/* Puts the text of an argument in its place. */
static void put_back(lua_State *L, int at)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "'__tostring' must return a string");
    lua_replace(L, at + 1);
}

static int print_next(lua_State *L, int status, lua_KContext ctx);

/* The count of the arguments is at 1, they follow. Those with a __tostring are converted
 * one by one. */
static int print_from(lua_State *L, int at)
{
    int count = (int)lua_tointeger(L, 1);
    for (; at <= count; at++)
        if (hf_lua_text_method(L, at + 1, at, print_next))
            put_back(L, at);
    struct hf_engine_run *run = hf_lua_begin(L);
    for (int i = 2; i <= count + 1; i++) {
        if (i > 2)
            hf_buf_char(&run->out, '\t');
        put_printed(L, i);
    }
    return hf_lua_suspend(L, HF_OP_PRINT, NULL, print_done);
}

static int print_next(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    put_back(L, (int)ctx);
    return print_from(L, (int)ctx + 1);
}

static int host_print(lua_State *L)
{
    hf_lua_begin(L);
    luaL_checkstack(L, 8, NULL);
    lua_pushinteger(L, lua_gettop(L));
    lua_insert(L, 1);
    return print_from(L, 1);
}

static int value_done(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    push_answer(L, hf_lua_run_of(L)->answer->value);
    return 1;
}

static int host_start_process(lua_State *L)
{
    hf_lua_begin(L);
    const char *kind = check_name(L, 1, "the kind of a process");
    write_args(L, 2, "args");
    return hf_lua_suspend(L, HF_OP_START_PROCESS, kind, value_done);
}

static void write_seconds(lua_State *L, int index)
{
    const lua_Number most = (lua_Number)HF_MAX_DURATION_MAX_MS / 1000;
    lua_Number seconds = luaL_checknumber(L, index);
    if (!(seconds >= 0) || seconds > most)
        luaL_argerror(L, index, "seconds from 0 on are expected");
    hf_buf_i64(&hf_lua_run_of(L)->out, (int64_t)(seconds * 1000 + 0.5));
}

static int host_sleep(lua_State *L)
{
    hf_lua_begin(L);
    write_seconds(L, 1);
    return hf_lua_suspend(L, HF_OP_SLEEP, NULL, print_done);
}

static int host_wait_signal(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_begin(L);
    const char *name = check_name(L, 1, "the name of a signal");
    if (lua_isnoneornil(L, 2))
        hf_buf_text(&run->out, "null");
    else
        write_seconds(L, 2);
    return hf_lua_suspend(L, HF_OP_WAIT_SIGNAL, name, value_done);
}

/* The host says milliseconds; the cell counts seconds, as sleep does. */
static int now_done(lua_State *L, int status, lua_KContext ctx)
{
    value_done(L, status, ctx);
    lua_pushnumber(L, lua_tonumber(L, -1) / 1000);
    return 1;
}

static int host_now(lua_State *L)
{
    hf_buf_text(&hf_lua_begin(L)->out, "null");
    return hf_lua_suspend(L, HF_OP_NOW, NULL, now_done);
}

static int end_with_value(lua_State *L, enum hf_cell_end end)
{
    hf_lua_begin(L);
    lua_settop(L, 1);
    write_plain(L, 1, "value");
    hf_lua_end(L, end);
}

static int host_finish(lua_State *L)
{
    return end_with_value(L, HF_CELL_FINISHED);
}

static int host_fail(lua_State *L)
{
    return end_with_value(L, HF_CELL_FAILED);
}

void hf_lua_open_host(lua_State *L)
{
    static const luaL_Reg functions[] = { { "call", host_call },
                                          { "call_batch", host_call_batch },
                                          { "fail", host_fail },
                                          { "finish", host_finish },
                                          { "now", host_now },
                                          { "print", host_print },
                                          { "sleep", host_sleep },
                                          { "start_process", host_start_process },
                                          { "wait_signal", host_wait_signal },
                                          { NULL, NULL } };
    luaL_setfuncs(L, functions, 0);
}
