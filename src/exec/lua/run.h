/* The Lua engine from inside: one run is one Lua state, one coroutine, one cell.
 *
 * Lua is entered only by step() and by the start of a run, both in the C locale. Errors of
 * Lua are long jumps: what C code holds meanwhile belongs to the run or to Lua, never to a
 * stack frame. A cell is ended by `hf_lua_end`: it yields and is never resumed, or where it
 * cannot yield it raises an error that the cells' own pcall lets no caller catch. */
#ifndef HF_EXEC_LUA_RUN_H
#define HF_EXEC_LUA_RUN_H

#include <lua.h>

#include <lauxlib.h>

#include <holdfast/sys/exec.h>

#include "base/arena.h"
#include "base/buf.h"
#include "exec/lua/pool.h"

#define HF_LUA_HOOK_STEPS 1000 /* instructions between two looks at the limits */
#define HF_LUA_STEP_BYTES 64   /* bytes that are copied or compared in one step */
#define HF_LUA_CALLS_MAX 8000  /* functions that wait for one another */
#define HF_LUA_LEVELS 48       /* nesting of a value as JSON; leaves room around it */
#define HF_LUA_STRING_MAX ((size_t)4 << 20)
#define HF_LUA_NAME_MAX 191
#define HF_LUA_CHUNK "cell"

struct hf_engine_run {
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    struct hf_cell_limits limits;
    void *locale;            /* the C locale, a locale_t */
    struct hf_lua_pool pool; /* the state's memory */
    lua_State *main;
    lua_State *cell; /* the coroutine; anchored in the registry */

    int64_t steps;
    int64_t slice_end; /* steps at which the step stops; INT64_MAX: never */
    hf_ms active_ms;
    hf_ms since_ms; /* when the step that runs began */
    size_t memory;
    size_t memory_peak;
    bool memory_gone; /* the allocator failed, not the limit */

    enum hf_cell_end end;
    int64_t end_line;
    bool parsed;
    struct hf_engine_stop stop; /* being put together */
    struct hf_engine_call one_call;
    const struct hf_engine_answer *answer;
    bool seeded;
    uint64_t random[4];

    struct hf_buf out;      /* arguments, printed text, values */
    struct hf_buf message;  /* what went wrong */
    struct hf_buf bindings; /* at the end */
    struct hf_arena arena;  /* calls of a batch; reset at each step */
    struct hf_arena fixed;  /* tool names, notes */
    const char *const *tools;
    size_t tool_count;
    struct hf_span code; /* until it is parsed */
};

/* The run of a state or coroutine. */
static inline struct hf_engine_run *hf_lua_run_of(lua_State *L)
{
    return *(struct hf_engine_run **)lua_getextraspace(L);
}

/* Ends the cell; does not return. Not for hooks. */
_Noreturn void hf_lua_end(lua_State *L, enum hf_cell_end end);

/* Counts work that is done outside of Lua's instructions; may end the cell. */
void hf_lua_charge(lua_State *L, size_t steps);
/* The same for work on bytes, which is faster. */
static inline void hf_lua_charge_bytes(lua_State *L, size_t bytes)
{
    hf_lua_charge(L, 1 + bytes / HF_LUA_STEP_BYTES);
}

/* The allocator of a state. */
void *hf_lua_alloc(void *user, void *old, size_t had, size_t bytes);

/* exec/lua/write.c, exec/lua/read.c: Lua's values as JSON, and back.
 *   PLAIN     for tools and results: what JSON has; the rest is refused
 *   GIVEN     as PLAIN, for reading only: tables that the cell cannot change
 *   BINDINGS  all plain data comes back as it was
 *   VIEW      for people: anything is shown somehow                                     */
enum hf_lua_form { HF_LUA_PLAIN, HF_LUA_GIVEN, HF_LUA_BINDINGS, HF_LUA_VIEW };

/* Appends the value at `index`. Raises when Lua's memory runs out: only in protected mode.
 * 0, HF_ENOMEM, HF_ETOOBIG (more than `out` takes), or HF_EINVAL with what is wrong in
 * `run->message`, beginning with the path, whose first part is `root`. */
HF_MUST_USE int hf_lua_write(lua_State *L, int index, enum hf_lua_form form,
                             const char *root, struct hf_buf *out);

/* Pushes the value of a JSON text that was checked. May raise. VIEW is not for reading. A
 * text that the form cannot hold raises an error that says so. */
void hf_lua_read(lua_State *L, struct hf_span json, enum hf_lua_form form);

/* Copies each member of a JSON object into the table at `index`, which is absolute. */
void hf_lua_read_members(lua_State *L, struct hf_span json, enum hf_lua_form form,
                         int index);

/* Marks the table at the top as a list, so that it is one also when empty. */
void hf_lua_mark_list(lua_State *L);

/* exec/lua/order.c: the order of a table's keys: numbers, texts by their bytes, false, true,
 * null. */
enum hf_lua_key_kind {
    HF_LUA_KEY_NUMBER,
    HF_LUA_KEY_TEXT,
    HF_LUA_KEY_BOOLEAN,
    HF_LUA_KEY_NULL,
    HF_LUA_KEY_OTHER /* a table or a function: there is no order among these */
};
struct hf_lua_key {
    enum hf_lua_key_kind kind;
    bool whole; /* of a number: `integer` is it */
    bool flag;
    uint32_t at; /* which of the table's keys, from 1, as Lua returns them */
    size_t len;
    union {
        lua_Integer integer;
        lua_Number number;
        const char *text; /* lives as long as the table has it */
    };
};
void hf_lua_key_of(lua_State *L, int index, struct hf_lua_key *ret_key);
int hf_lua_key_compare(const void *a, const void *b);
/* Not for HF_LUA_KEY_OTHER, for which it pushes nil. */
void hf_lua_push_key(lua_State *L, const struct hf_lua_key *key);
/* All keys of the table at `index`, sorted; they live in a userdata that is pushed. With
 * `any`, keys without an order come last; otherwise they are an error of the cell. */
const struct hf_lua_key *hf_lua_keys(lua_State *L, int index, bool any,
                                     size_t *ret_count);
/* Raises for a table with a key that has no order. */
_Noreturn void hf_lua_refuse_key(lua_State *L);
/* Puts the keys of the table at `index` into the table at `list`, both absolute, as Lua
 * returns them, and pushes a userdata with their order as uint32_t. How many. */
size_t hf_lua_key_order(lua_State *L, int index, int list);

/* Libraries: each adds its functions to the table at the top of the stack. */
void hf_lua_open_base(lua_State *L);
void hf_lua_open_host(lua_State *L);
void hf_lua_open_string(lua_State *L);
void hf_lua_open_pattern(lua_State *L); /* into the table `string` at the top */
void hf_lua_open_table(lua_State *L);
void hf_lua_open_more(lua_State *L); /* math, utf8, json */

/* Moves the named functions of the library at the top, charged by what they are given, into
 * the table under it, and pops the library. They must have no upvalues. */
void hf_lua_take_charged(lua_State *L, const char *const *names);

/* tostring without addresses, pushed: for values without a __tostring. */
void hf_lua_push_text(lua_State *L, int index);
/* If the value has a __tostring, calls it, whose result is then pushed: true. Where the cell
 * yields meanwhile, `k` continues with `ctx`. */
bool hf_lua_text_method(lua_State *L, int index, lua_KContext ctx, lua_KFunction k);

/* exec/lua/given.c: what the host passes. open: in the state of a start. freeze: in
 * place of the table at the top one that shows it and cannot be changed. see: puts the
 * table behind it at
 * `index`, for functions that read and do not pass it on; push_inner: pushes it, true
 * if there is one. check_own: raises for a table that cannot be changed; check_name: for
 * a key that is a given name. put_aside: a variable, name and value at the top, whose
 * name is given or of the language, is put out of sight: true; bring_back: all of these
 * into the table of globals. */
void hf_lua_open_given(lua_State *L, const struct hf_engine_start *start);
void hf_lua_freeze(lua_State *L);
void hf_lua_see(lua_State *L, int index);
bool hf_lua_push_inner(lua_State *L, int index);
void hf_lua_check_own(lua_State *L, int index);
void hf_lua_check_name(lua_State *L, int index);
bool hf_lua_put_aside(lua_State *L);
void hf_lua_bring_back(lua_State *L, int globals);
bool hf_lua_is_aside(lua_State *L, const char *name);

/* exec/lua/host.c: the beginning and the end of an operation. `begin` empties run->out, where
 * the arguments go; it does not return to a cell that is ended. */
struct hf_engine_run *hf_lua_begin(lua_State *L);
int hf_lua_suspend(lua_State *L, enum hf_op_kind kind, const char *name, lua_KFunction k);
/* The same for one that is answered as a call is; its arguments are run->out. */
int hf_lua_suspend_call(lua_State *L, enum hf_op_kind kind, const char *name,
                        lua_KFunction k);
/* Pushes a failed result as an error of the cell; `who` is the field for what failed. */
void hf_lua_push_failure(lua_State *L, const struct hf_tool_result *result,
                         const char *who);
/* Raises what is wrong with a value that was written into run->out. */
void hf_lua_check_written(lua_State *L, int rc);
void hf_lua_open_random(lua_State *L); /* pushes the function */

/* exec/lua/names.c: a tool that the code names and that there is not, or NULL. */
const char *hf_lua_unknown_tool(struct hf_span code, const char *const *tools,
                                size_t tool_count, struct hf_arena *arena,
                                int64_t *ret_line);
bool hf_lua_has_tool(const struct hf_engine_run *run, const char *name);

/* exec/lua/error.c: why the cell ended, in `run->message`, and its line; with a word on what to
 * do instead. 0 or HF_ENOMEM. */
HF_MUST_USE int hf_lua_explain(struct hf_engine_run *run);
/* Marks the table at the top as the failure of a call: tostring shows its message. */
void hf_lua_mark_failure(lua_State *L);

/* Keys of the registry, by their addresses. */
extern const char hf_lua_list_key;
extern const char hf_lua_failure_key;
extern const char hf_lua_globals_key;
extern const char hf_lua_builtins_key;
extern const char hf_lua_privates_key;

#endif
