/* What a cell costs: instructions a host call and a start, bytes of a suspended cell, and
 * 10,000 of these in one process; and what the stream mask does.
 *
 *   bench_cells                        all of it; needs valgrind for the instructions
 *   bench_cells count KIND BYTES N     only that, to be counted by callgrind
 *
 * Instructions are counted by callgrind, inside of measured() alone, so they are the same
 * every time on one machine; limits are ratios to bare Lua in the same run. Exits with 1
 * when a limit of the project is passed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <holdfast/exec.h>

#include "count.h"
#include "mask.h"

#define CALL_MAX 5.0   /* times a bare yield and resume */
#define BYTE_MAX 30.0  /* instructions a byte of arguments and of result */
#define FITS_FROM 128  /* bytes from which both together are checked of tables */
#define START_MAX 10.0 /* times a bare state with the same libraries */
#define HELD_MAX 65536
#define SUSPENDED 10000
#define BINDINGS 4096

static void must(int rc, const struct hf_err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_cells: %s\n", err->message);
    exit(1);
}

/* What is counted: one of these at a time. */
struct job {
    void (*run)(struct job *job);
    lua_State *state;
    lua_State *thread;
    struct hf_cell *cell;
    struct hf_cell_start start;
    const struct hf_op *op;
    struct hf_tool_result result; /* made beforehand: that is the host's */
    char *text;
    size_t bytes;
};

__attribute__((noinline)) static void measured(struct job *job)
{
    job->run(job);
}

static int yield_now(lua_State *L)
{
    return lua_yield(L, 0);
}

/* What any host must do to answer with {"t":""}: the table, by Lua's own functions. */
static int table_made(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, "t", 1);
    lua_pushlstring(L, "", 0);
    lua_rawset(L, -3);
    return 1;
}

static int yield_table(lua_State *L)
{
    return lua_yieldk(L, 0, 0, table_made);
}

static void run_yield(struct job *job)
{
    int results = 0;
    if (lua_resume(job->thread, NULL, 0, &results) != LUA_YIELD)
        exit(1);
    lua_pop(job->thread, results);
}

static void open_libraries(lua_State *L)
{
    luaL_requiref(L, "_G", luaopen_base, 1);
    luaL_requiref(L, "string", luaopen_string, 1);
    luaL_requiref(L, "table", luaopen_table, 1);
    luaL_requiref(L, "math", luaopen_math, 1);
    luaL_requiref(L, "utf8", luaopen_utf8, 1);
    lua_settop(L, 0);
}

static void run_state(struct job *job)
{
    job->state = luaL_newstate();
    open_libraries(job->state);
}

/* Answers what is out and runs to the next operation. */
static void run_value(struct job *job)
{
    struct hf_err err;
    must(hf_cell_value(job->cell, job->op->ordinal, (struct hf_span){ "1", 1 }, &err),
         &err);
    must(hf_cell_poll(job->cell, &job->op, &err), &err);
}

static void run_result(struct job *job)
{
    struct hf_err err;
    job->result.call_id = job->op->id;
    must(hf_cell_results(job->cell, job->op->ordinal, &job->result, 1, &err), &err);
    must(hf_cell_poll(job->cell, &job->op, &err), &err);
}

static void run_start(struct job *job)
{
    struct hf_err err = { 0 };
    must(hf_cell_new(hf_engine_lua(), &job->start, &job->cell, &err), &err);
}

static void start_cell(struct job *job, const char *code)
{
    struct hf_err err = { 0 };
    job->start = (struct hf_cell_start){ .size = sizeof(job->start),
                                         .id = "7",
                                         .code = { code, strlen(code) },
                                         .limits = { .ops = 65536 } };
    run_start(job);
    must(hf_cell_poll(job->cell, &job->op, &err), &err);
}

/* {"t":"xxx…"} of so many bytes. */
static void make_text(struct job *job, size_t bytes)
{
    bytes = bytes < 8 ? 8 : bytes;
    job->bytes = bytes;
    job->text = malloc(bytes + 1);
    memset(job->text, 'x', bytes);
    memcpy(job->text, "{\"t\":\"", 6);
    memcpy(job->text + bytes - 2, "\"}", 3);
}

/* 4 KB of bindings: lists of numbers and texts under forty names. */
static char *make_bindings(void)
{
    char *text = malloc(2 * BINDINGS);
    size_t len = 1;
    text[0] = '{';
    for (int i = 10; len < BINDINGS - 100; i++)
        len += (size_t)snprintf(text + len, 200,
                                "%s\"name%d\":{\"items\":[%d,2.5,true],\"note\":"
                                "\"a text of some length, as notes are\"}",
                                i > 10 ? "," : "", i, i);
    memcpy(text + len, "}", 2);
    return text;
}

static void prepare(struct job *job, const char *kind, size_t bytes)
{
    char code[256];
    make_text(job, bytes);
    bool table = strcmp(kind, "yield_table") == 0;
    if (table || strcmp(kind, "yield") == 0) {
        job->state = luaL_newstate();
        job->thread = lua_newthread(job->state);
        lua_pushcfunction(job->thread, table ? yield_table : yield_now);
        lua_setglobal(job->thread, "y");
        (void)luaL_loadstring(job->thread, "while true do y() end");
        job->run = run_yield;
        run_yield(job);
    } else if (strcmp(kind, "now") == 0) {
        start_cell(job, "while true do now() end");
        job->run = run_value;
    } else if (strcmp(kind, "args") == 0) {
        snprintf(code, sizeof(code),
                 "local a = {t = ('x'):rep(%zu)} while true do call('t', a) end",
                 job->bytes - 8);
        start_cell(job, code);
        job->text[0] = '1';
        job->bytes = 1;
        job->run = run_result;
    } else if (strcmp(kind, "result") == 0) {
        start_cell(job, "while true do call('t') end");
        job->run = run_result;
    } else if (strcmp(kind, "scalar") == 0) {
        start_cell(job, "while true do call('t') end");
        job->text[0] = '1';
        job->bytes = 1;
        job->run = run_result;
    } else if (strcmp(kind, "state") == 0) {
        job->run = run_state;
    } else {
        char *bindings = make_bindings();
        job->start = (struct hf_cell_start){ .size = sizeof(job->start),
                                             .id = "7",
                                             .code = { "", 0 },
                                             .bindings = { bindings, strlen(bindings) } };
        job->run = run_start;
    }
}

static int run_count(const char *kind, size_t bytes, long count)
{
    struct job job = { 0 };
    prepare(&job, kind, bytes);
    job.result.value = (struct hf_span){ job.text, job.bytes };
    for (long i = 0; i < count; i++) {
        measured(&job);
        if (job.run == run_state)
            lua_close(job.state);
        if (job.run == run_start)
            hf_cell_free(job.cell);
    }
    return 0;
}

/* Instructions of one round. */
static double counted(const char *kind, size_t bytes)
{
    char bytes_text[24];
    snprintf(bytes_text, sizeof(bytes_text), "%zu", bytes);
    const char *const args[] = { "count", kind, bytes_text, "20", NULL };
    return bench_instructions("measured", args) / 20;
}

static void host_calls(void)
{
    double bare = counted("yield", 0);
    double now = counted("now", 0);
    printf("a host call, in instructions\n");
    printf("  bare yield and resume    %6.0f\n", bare);
    printf("  now()                    %6.0f = %.2f times (limit %.0f)", now, now / bare,
           CALL_MAX);
    bench_check(now / bare <= CALL_MAX);
    double scalar = counted("scalar", 8);
    /* {} and 1 are three bytes */
    printf("  call('t') and 1          %6.0f = %.2f times (limit %.0f, and %.0f a byte)",
           scalar, scalar / bare, CALL_MAX, BYTE_MAX);
    bench_check(scalar <= CALL_MAX * bare + BYTE_MAX * 3);
    const double span = 65536 - 1024;
    double args = (counted("args", 65536) - counted("args", 1024)) / span;
    double result = (counted("result", 65536) - counted("result", 1024)) / span;
    printf("  a byte of arguments      %6.2f (limit %.0f)", args, BYTE_MAX);
    bench_check(args <= BYTE_MAX);
    printf("  a byte of result         %6.2f (limit %.0f)", result, BYTE_MAX);
    bench_check(result <= BYTE_MAX);
}

/* Arguments or an answer that are a table. The limit that is checked is that of a call
 * without, and so much a byte, from FITS_FROM bytes on. What is less is shown as it is: the
 * table alone, made by Lua's own functions, takes most of what the limit has for it. */
static void tables(void)
{
    static const size_t sizes[] = { 8, 64, FITS_FROM, 1024 };
    static const char *const kinds[] = { "result", "args" };
    double bare = counted("yield", 0);
    double floor = counted("yield_table", 0);
    printf("a call with an object, in instructions (limit %.0f times the bare yield, and "
           "%.0f a byte)\n",
           CALL_MAX, BYTE_MAX);
    printf("  bare yield that makes one %5.0f = %.2f times\n", floor, floor / bare);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < 4; i++) {
            double cost = counted(kinds[k], sizes[i]);
            /* {} or 1 is on the other side */
            double limit = CALL_MAX * bare + BYTE_MAX * ((double)sizes[i] + 1 + (k == 0));
            printf("  %-6s of %4zu bytes     %6.0f = %5.2f times, %.2f of the limit",
                   kinds[k], sizes[i], cost, cost / bare, cost / limit);
            if (sizes[i] >= FITS_FROM)
                bench_check(cost <= limit);
            else
                printf("  %s\n", cost <= limit ? "ok" : "over, not checked");
        }
}

static void starting(void)
{
    double bare = counted("state", 0);
    double start = counted("start", 0);
    printf("a start, in instructions\n");
    printf("  bare state and libraries %6.0f\n", bare);
    printf("  from 4 KB of bindings    %6.0f = %.2f times (limit %.0f)", start,
           start / bare, START_MAX);
    bench_check(start / bare <= START_MAX);
}

static void suspended(void)
{
    static const char code[] = "local t = {} for i = 1, 20 do t[i] = {n = i} end\n"
                               "local r = call('search', {q = 'some words'})\n"
                               "print(#r)\n";
    struct job *jobs = calloc(SUSPENDED, sizeof(*jobs));
    struct hf_cell_cost cost = { 0 };
    char *bindings = make_bindings();
    long before = bench_resident_kb();
    size_t done = 0;
    for (size_t i = 0; i < SUSPENDED; i++) {
        struct hf_err err = { 0 };
        jobs[i].start = (struct hf_cell_start){ .size = sizeof(jobs[i].start),
                                                .id = "7",
                                                .code = { code, sizeof(code) - 1 },
                                                .bindings = { bindings,
                                                              strlen(bindings) } };
        run_start(&jobs[i]);
        must(hf_cell_poll(jobs[i].cell, &jobs[i].op, &err), &err);
    }
    long after = bench_resident_kb();
    hf_cell_cost(jobs[0].cell, &cost);
    for (size_t i = 0; i < SUSPENDED; i++) {
        make_text(&jobs[i], 8);
        jobs[i].text[0] = '[';
        memcpy(jobs[i].text, "[1]", 4);
        jobs[i].result.value = (struct hf_span){ jobs[i].text, 3 };
        run_result(&jobs[i]);
        done += jobs[i].op && jobs[i].op->kind == HF_OP_PRINT;
        free(jobs[i].text);
        hf_cell_free(jobs[i].cell);
    }
    printf("suspended cells, with 4 KB of bindings\n");
    printf("  one                      %6lld bytes (limit %d)",
           (long long)cost.held_bytes, HELD_MAX);
    bench_check(cost.held_bytes <= HELD_MAX);
    printf("  %d at once            %6ld MB resident, %ld bytes each; all went on",
           SUSPENDED, (after - before) / 1024, (after - before) * 1024 / SUSPENDED);
    bench_check(done == SUSPENDED);
    free(bindings);
    free(jobs);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "count") == 0)
        return run_count(argv[2], strtoul(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    host_calls();
    tables();
    starting();
    suspended();
    return bench_mask() && bench_passed() ? 0 : 1;
}
