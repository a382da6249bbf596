/* The Lua engine: runs, their limits and their end. See exec/lua/run.h.
 *
 * Limits. Every HF_LUA_HOOK_STEPS instructions a hook compares what was used with what is
 * allowed; library functions charge for what they do, and the allocator for long strings,
 * so that no instruction is much more work than it counts for. Memory is what the state's
 * allocator handed out. */
#include "exec/lua/run.h"

#include <locale.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

const char hf_lua_list_key = 'l';
const char hf_lua_failure_key = 'f';
const char hf_lua_globals_key = 'g';
const char hf_lua_builtins_key = 'b';
const char hf_lua_privates_key = 'p';

/* Strings from here on cost steps when they are made. */
#define LONG_STRING ((size_t)512)

static void *refuse(struct hf_engine_run *run, bool gone)
{
    run->memory_gone |= gone;
    return NULL;
}

/* For a new block `had` is what it is for. */
void *hf_lua_alloc(void *user, void *old, size_t had, size_t bytes)
{
    struct hf_engine_run *run = user;
    size_t before = old ? had : 0;
    if (bytes == 0) {
        if (old)
            hf_lua_pool_release(&run->pool, old, before);
        run->memory -= before;
        return NULL;
    }
    if (bytes > before) {
        size_t limit = (size_t)run->limits.memory_bytes;
        if (run->memory > limit || bytes - before > limit - run->memory)
            return refuse(run, false);
        if (!old && had == LUA_TSTRING && bytes >= LONG_STRING) {
            if (bytes > HF_LUA_STRING_MAX)
                return refuse(run, false);
            run->steps += (int64_t)(bytes / HF_LUA_STEP_BYTES);
        }
    }
    void *at = hf_lua_pool_resize(&run->pool, old, before, bytes);
    if (!at)
        return bytes <= before ? old : refuse(run, true); /* Lua counts on shrinking */
    run->memory = run->memory - before + bytes;
    if (run->memory > run->memory_peak)
        run->memory_peak = run->memory;
    return at;
}

void hf_lua_end(lua_State *L, enum hf_cell_end end)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    if (run->end == HF_CELL_RUNNING)
        run->end = end;
    if (lua_isyieldable(L))
        lua_yield(L, 0);
    else
        luaL_error(L, "the cell was ended");
    __builtin_unreachable();
}

void hf_lua_charge(lua_State *L, size_t steps)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    int64_t left = run->limits.steps - run->steps;
    if (L == run->main)
        return; /* before and after the cell */
    if (left < 0 || steps > (uint64_t)left) {
        run->steps = run->limits.steps + 1;
        hf_lua_end(L, HF_CELL_OVER_STEPS);
    }
    run->steps += (int64_t)steps;
}

static hf_ms mono_now(const struct hf_engine_run *run)
{
    return run->clock ? run->clock->mono_ms(run->clock->user) : 0;
}

/* True once the cell must not continue. */
static bool over_limit(struct hf_engine_run *run)
{
    if (run->end != HF_CELL_RUNNING)
        return true;
    if (run->steps > run->limits.steps)
        run->end = HF_CELL_OVER_STEPS;
    else if (run->clock &&
             run->active_ms + (mono_now(run) - run->since_ms) > run->limits.active_ms)
        run->end = HF_CELL_OVER_TIME;
    return run->end != HF_CELL_RUNNING;
}

static void on_count(lua_State *L, lua_Debug *at)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    run->steps += HF_LUA_HOOK_STEPS;
    if (!over_limit(run)) {
        /* As Lua does at a million, which takes much memory, and makes errors slow. */
        if (lua_getstack(L, HF_LUA_CALLS_MAX, at))
            luaL_error(L, "stack overflow: functions call each other more than %d deep",
                       HF_LUA_CALLS_MAX);
        /* Lua resumes at the same instruction and with the same count. */
        if (run->steps >= run->slice_end && lua_isyieldable(L)) {
            run->stop.sliced = true;
            lua_yield(L, 0);
        }
        return;
    }
    if (lua_isyieldable(L))
        lua_yield(L, 0);
    else
        luaL_error(L, "the cell was ended");
}

/* All that a cell can reach: its own globals, and behind them what there is. */
static void open_globals(lua_State *L)
{
    lua_newtable(L); /* globals: the bindings */
    lua_createtable(L, 0, 2);
    lua_createtable(L, 0, 64); /* builtins */
    hf_lua_open_base(L);
    hf_lua_open_host(L);
    hf_lua_open_string(L);
    hf_lua_open_table(L);
    hf_lua_open_more(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
}

/* Protected: everything that a start does in Lua. */
static int open_state(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    const struct hf_engine_start *start = lua_touserdata(L, 1);
    lua_settop(L, 0);
    open_globals(L);
    hf_lua_open_given(L, start);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
    if (start->bindings.len > 0)
        hf_lua_read_members(L, start->bindings, HF_LUA_BINDINGS, 1);
    lua_settop(L, 0);
    run->cell = lua_newthread(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, run);
    lua_sethook(run->cell, on_count, LUA_MASKCOUNT, HF_LUA_HOOK_STEPS);
    return 0;
}

static int keep_tools(struct hf_engine_run *run, const struct hf_engine_start *start)
{
    if (!start->tools)
        return 0;
    const char **tools = hf_arena_array(&run->fixed, start->tool_count + 1,
                                        sizeof(*tools));
    if (!tools)
        return HF_ENOMEM;
    for (size_t i = 0; i < start->tool_count; i++) {
        tools[i] = hf_arena_text(&run->fixed, start->tools[i]);
        if (!tools[i])
            return HF_ENOMEM;
    }
    run->tools = tools;
    run->tool_count = start->tool_count;
    return 0;
}

static void run_free(struct hf_engine_run *run)
{
    if (run->main)
        lua_close(run->main);
    hf_lua_pool_fini(&run->pool);
    if (run->locale)
        freelocale(run->locale);
    hf_buf_fini(&run->out);
    hf_buf_fini(&run->message);
    hf_buf_fini(&run->bindings);
    hf_arena_fini(&run->arena);
    hf_arena_fini(&run->fixed);
    run->alloc->free(run->alloc->user, run);
}

/* Lua's own start, in the C locale, since it reads and writes numbers. */
static int enter_lua(struct hf_engine_run *run, const struct hf_engine_start *start)
{
    run->main = lua_newstate(hf_lua_alloc, run);
    if (!run->main)
        return run->memory_gone ? HF_ENOMEM : HF_ETOOBIG;
    *(struct hf_engine_run **)lua_getextraspace(run->main) = run;
    lua_pushcfunction(run->main, open_state);
    lua_pushlightuserdata(run->main, (void *)(uintptr_t)start);
    locale_t before = uselocale(run->locale);
    int status = lua_pcall(run->main, 1, 0, 0);
    uselocale(before);
    if (status == LUA_OK)
        return 0;
    if (status != LUA_ERRMEM)
        return HF_EINVAL;
    return run->memory_gone ? HF_ENOMEM : HF_ETOOBIG;
}

static int run_start(const struct hf_engine *engine, const struct hf_engine_start *start,
                     struct hf_engine_run **ret_run, struct hf_err *err)
{
    (void)engine;
    const struct hf_alloc *alloc = start->alloc;
    struct hf_engine_run *run = alloc->realloc(alloc->user, NULL, sizeof(*run));
    if (!run)
        return hf_fail_plain(err, HF_ENOMEM);
    *run = (struct hf_engine_run){ .alloc = alloc,
                                   .clock = start->clock,
                                   .limits = start->limits,
                                   .slice_end = INT64_MAX };
    hf_lua_pool_init(&run->pool, alloc);
    hf_buf_init(&run->out, alloc, HF_LUA_STRING_MAX);
    hf_buf_init(&run->message, alloc, 1 << 16);
    hf_buf_init(&run->bindings, alloc, (size_t)HF_MAX_CELL_BINDINGS_BYTES);
    hf_arena_init_small(&run->arena, alloc, 512, 65536);
    hf_arena_init_small(&run->fixed, alloc, 512, 65536);
    run->locale = newlocale(LC_ALL_MASK, "C", NULL);
    const char *code = hf_arena_copy(&run->fixed, start->code.at, start->code.len);
    run->code = (struct hf_span){ code, start->code.len };
    int rc = run->locale && code ? keep_tools(run, start) : HF_ENOMEM;
    if (rc == 0)
        rc = enter_lua(run, start);
    if (rc == 0) {
        *ret_run = run;
        return 0;
    }
    bool alone = start->bindings.len <= 2 && start->given.len == 0;
    if (rc == HF_ETOOBIG && alone)
        rc = hf_fail(err, HF_EINVAL, "memory_bytes",
                     "a cell needs more than %lld bytes of memory before it begins",
                     (long long)start->limits.memory_bytes);
    else if (rc == HF_ETOOBIG)
        rc = hf_fail(err, rc, "bindings",
                     "the bindings and what is given take more than the cell's limit of "
                     "%lld bytes of memory",
                     (long long)start->limits.memory_bytes);
    else if (rc == HF_EINVAL && run->message.len > 0)
        rc = hf_fail(err, rc, "given", "%s", hf_buf_str(&run->message));
    else if (rc == HF_EINVAL)
        rc = hf_fail(err, rc, "bindings", "these are no bindings");
    else
        rc = hf_fail_plain(err, rc);
    run_free(run);
    return rc;
}

/* Text only: a chunk of bytecode is refused by its first byte. */
static int parse_code(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    int status = luaL_loadbufferx(L, run->code.at, run->code.len, "=" HF_LUA_CHUNK, "t");
    if (status == LUA_ERRMEM)
        run->end = HF_CELL_OVER_MEMORY;
    if (status != LUA_OK)
        return lua_error(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
    if (!lua_setupvalue(L, -2, 1))
        lua_pop(L, 1);
    return 1;
}

/* Puts the parsed cell onto its coroutine. LUA_OK, or a status and the error there. */
static int parse(struct hf_engine_run *run)
{
    int64_t line = 0;
    const char *tool = run->tools
                           ? hf_lua_unknown_tool(run->code, run->tools, run->tool_count,
                                                 &run->fixed, &line)
                           : NULL;
    if (!tool && line > 0) { /* there is one, and no memory for its name */
        run->memory_gone = true;
        return LUA_ERRMEM;
    }
    lua_pushcfunction(run->main, parse_code);
    int status = lua_pcall(run->main, 0, 1, 0);
    lua_xmove(run->main, run->cell, 1);
    if (status == LUA_ERRRUN && run->end == HF_CELL_RUNNING) {
        run->end = HF_CELL_SYNTAX;
    } else if (status == LUA_OK && tool) {
        run->end = HF_CELL_UNKNOWN_TOOL;
        run->end_line = line;
        hf_buf_text(&run->message, tool);
        status = LUA_ERRRUN;
    }
    run->parsed = true;
    return status;
}

#define NOTES_MAX 20

static void note(struct hf_engine_run *run, const char *name, const char *why)
{
    const char **notes = hf_arena_array(&run->fixed, NOTES_MAX, sizeof(*notes));
    size_t count = run->stop.note_count;
    struct hf_buf text;
    if (count == NOTES_MAX)
        return; /* the last one said that there are more */
    hf_buf_init(&text, run->alloc, 1024);
    hf_buf_char(&text, '`');
    hf_buf_text(&text, name);
    hf_buf_text(&text, "` ");
    hf_buf_text(&text, why);
    hf_buf_text(&text, count + 1 == NOTES_MAX ? "; there are more like it" : "");
    const char *said = hf_buf_keep(&text, &run->fixed);
    if (!said || !notes) {
        run->memory_gone = true;
        return;
    }
    if (count > 0)
        memcpy(notes, run->stop.notes, count * sizeof(*notes));
    notes[count] = said;
    run->stop.notes = notes;
    run->stop.note_count = count + 1;
}

/* The value is at the top of the stack. What is wrong with it is in the message. */
static int keep_global(lua_State *L, const struct hf_lua_key *key, bool *first)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    hf_buf_reset(&run->message);
    if (key->kind != HF_LUA_KEY_TEXT || !hf_text_is_word(key->text, key->len) ||
        key->len > HF_LUA_NAME_MAX) {
        hf_buf_text(&run->message,
                    "a global's name must be a word (letters, digits and _)");
        return HF_EINVAL;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_builtins_key);
    int builtin = lua_getfield(L, -1, key->text);
    lua_pop(L, 2);
    if (builtin != LUA_TNIL && !hf_lua_is_aside(L, key->text)) {
        note(run, key->text,
             "is a name of the language: what the cell assigned to it was not kept");
        return 0;
    }
    if (lua_isfunction(L, -1)) {
        note(run, key->text,
             "is a function and was not kept: only data lasts until the next cell");
        return 0;
    }
    if (!*first)
        hf_buf_char(&run->bindings, ',');
    *first = false;
    hf_buf_char(&run->bindings, '"');
    hf_buf_bytes(&run->bindings, key->text, key->len);
    hf_buf_text(&run->bindings, "\":");
    int rc = hf_lua_write(L, -1, HF_LUA_BINDINGS, key->text, &run->bindings);
    if (rc != HF_ETOOBIG)
        return rc;
    hf_buf_char(&run->message, '`');
    hf_buf_bytes(&run->message, key->text, key->len);
    hf_buf_text(&run->message, "` makes the bindings larger than ");
    hf_buf_i64(&run->message, HF_MAX_CELL_BINDINGS_BYTES);
    hf_buf_text(&run->message, " bytes");
    return HF_EINVAL;
}

/* Protected. The globals that are plain data, in run->bindings; the result is a code. */
static int keep_bindings(lua_State *L)
{
    struct hf_engine_run *run = hf_lua_run_of(L);
    bool first = true;
    int rc = 0;
    hf_buf_reset(&run->bindings);
    hf_buf_char(&run->bindings, '{');
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hf_lua_globals_key);
    hf_lua_bring_back(L, lua_gettop(L));
    size_t count = 0;
    const struct hf_lua_key *keys = hf_lua_keys(L, -1, true, &count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        hf_lua_push_key(L, &keys[i]);
        lua_rawget(L, 1);
        rc = keep_global(L, &keys[i], &first);
        lua_pop(L, 1);
    }
    hf_buf_char(&run->bindings, '}');
    lua_pushinteger(L, rc ? rc : hf_buf_state(&run->bindings));
    return 1;
}

/* The end of a cell that ended well, unless its bindings cannot be kept. */
static int end_well(struct hf_engine_run *run, enum hf_cell_end end)
{
    lua_State *L = run->main;
    lua_settop(L, 0);
    lua_pushcfunction(L, keep_bindings);
    int status = lua_pcall(L, 0, 1, 0);
    int rc = status == LUA_OK ? (int)lua_tointeger(L, -1) : HF_ENOMEM;
    lua_settop(L, 0);
    if (run->memory_gone)
        return HF_ENOMEM;
    run->end = end;
    run->stop.bindings = (struct hf_span){ hf_buf_str(&run->bindings),
                                           run->bindings.len };
    if (status != LUA_OK) {
        run->end = HF_CELL_OVER_MEMORY;
    } else if (rc == HF_EINVAL) {
        run->end = HF_CELL_UNKEEPABLE;
    }
    return rc == HF_EINVAL ? 0 : rc;
}

/* What a resume came to. */
static int conclude(struct hf_engine_run *run, int status)
{
    int rc = 0;
    bool out = status == LUA_ERRMEM || run->end == HF_CELL_OVER_MEMORY;
    if (out && run->memory_gone)
        return HF_ENOMEM; /* the machine's memory, not the cell's */
    if (status == LUA_ERRMEM && run->end == HF_CELL_RUNNING)
        run->end = HF_CELL_OVER_MEMORY;
    if (status == LUA_OK && run->end == HF_CELL_RUNNING)
        rc = end_well(run, HF_CELL_DONE);
    else if (run->end == HF_CELL_FINISHED)
        rc = end_well(run, HF_CELL_FINISHED);
    else if (status != LUA_YIELD && run->end == HF_CELL_RUNNING)
        run->end = HF_CELL_ERROR;
    if (rc == 0 && run->end != HF_CELL_RUNNING)
        rc = hf_lua_explain(run);
    return rc;
}

static void show_stop(struct hf_engine_run *run, struct hf_engine_stop *ret_stop)
{
    struct hf_engine_stop *stop = &run->stop;
    stop->end = run->end;
    bool value = run->end == HF_CELL_FINISHED || run->end == HF_CELL_FAILED;
    bool well = run->end == HF_CELL_FINISHED || run->end == HF_CELL_DONE;
    struct hf_span out = { hf_buf_str(&run->out), run->out.len };
    if (run->end == HF_CELL_RUNNING)
        stop->args = out;
    else if (value)
        stop->value = out;
    if (run->end != HF_CELL_RUNNING && !well) {
        stop->message = (struct hf_span){ hf_buf_str(&run->message), run->message.len };
        stop->line = run->end_line;
    }
    *ret_stop = *stop;
}

static int run_step(struct hf_engine_run *run, const struct hf_engine_answer *answer,
                    struct hf_engine_stop *ret_stop, struct hf_err *err)
{
    locale_t before = uselocale(run->locale);
    int results = 0;
    int status = LUA_OK;
    run->since_ms = mono_now(run);
    run->stop = (struct hf_engine_stop){ .end = HF_CELL_RUNNING };
    run->answer = answer;
    hf_buf_reset(&run->out);
    hf_arena_reset(&run->arena);
    if (!run->parsed)
        status = parse(run);
    if (status == LUA_OK)
        status = lua_resume(run->cell, NULL, 0, &results);
    if (status == LUA_YIELD)
        lua_pop(run->cell, results);
    int rc = conclude(run, status);
    run->slice_end = INT64_MAX;
    run->answer = NULL;
    run->active_ms += mono_now(run) - run->since_ms;
    uselocale(before);
    if (rc)
        return hf_fail_plain(err, rc);
    show_stop(run, ret_stop);
    return 0;
}

static void run_slice(struct hf_engine_run *run, int64_t steps)
{
    if (__builtin_add_overflow(run->steps, steps, &run->slice_end))
        run->slice_end = INT64_MAX;
}

static void run_cost(const struct hf_engine_run *run, struct hf_cell_cost *ret_cost)
{
    ret_cost->steps = run->steps;
    ret_cost->active_ms = run->active_ms;
    ret_cost->memory_bytes = (int64_t)run->memory_peak;
    ret_cost->held_bytes = (int64_t)(sizeof(*run) + run->pool.held + run->out.room +
                                     run->message.room + run->bindings.room +
                                     run->arena.held + run->fixed.held);
}

const struct hf_engine *hf_engine_lua(void)
{
    static const struct hf_engine_ops ops = { .language = "lua",
                                              .version = LUA_RELEASE ", cells 1",
                                              .start = run_start,
                                              .step = run_step,
                                              .slice = run_slice,
                                              .cost = run_cost,
                                              .free = run_free };
    static const struct hf_engine engine = { .ops = &ops };
    return &engine;
}
