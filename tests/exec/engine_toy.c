#include "exec/engine_toy.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct hf_engine_run {
    struct hf_alloc alloc;
    struct hf_cell_limits limits;
    struct hf_arena arena;
    const char *at; /* the line that comes next */
    int64_t line;
    int64_t steps;
    const char *last;
    struct hf_span bindings;
    struct hf_engine_call call;
};

static void toy_free(struct hf_engine_run *run)
{
    hf_arena_fini(&run->arena);
    run->alloc.free(run->alloc.user, run);
}

static int toy_start(const struct hf_engine *engine, const struct hf_engine_start *start,
                     struct hf_engine_run **ret_run, struct hf_err *err)
{
    (void)engine;
    struct hf_engine_run *run = start->alloc->realloc(start->alloc->user, NULL,
                                                      sizeof(*run));
    if (!run)
        return hf_fail_plain(err, HF_ENOMEM);
    *run = (struct hf_engine_run){ .alloc = *start->alloc,
                                   .limits = start->limits,
                                   .last = "null" };
    hf_arena_init(&run->arena, &run->alloc);
    run->at = hf_arena_copy(&run->arena, start->code.at, start->code.len);
    run->bindings = (struct hf_span){ hf_arena_copy(&run->arena, start->bindings.at,
                                                    start->bindings.len),
                                      start->bindings.len };
    if (!run->at || !run->bindings.at) {
        toy_free(run);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_run = run;
    return 0;
}

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* The next word of the line, cut off; what is left of it. */
static char *cut_word(char **rest)
{
    char *word = *rest;
    char *end = strchr(word, ' ');
    *rest = end ? end + 1 : word + strlen(word);
    if (end)
        *end = '\0';
    return word;
}

static int set_binding(struct hf_engine_run *run, const char *name, const char *json)
{
    struct hf_buf delta;
    struct hf_bytes after = { 0 };
    struct hf_err err = { 0 };
    hf_buf_init(&delta, &run->alloc, 4096);
    hf_buf_text(&delta, "{\"set\":{\"");
    hf_buf_text(&delta, name);
    hf_buf_text(&delta, "\":");
    hf_buf_text(&delta, strcmp(json, "last") == 0 ? run->last : json);
    hf_buf_text(&delta, "}}");
    int rc = hf_buf_state(&delta);
    if (rc == 0)
        rc = hf_bindings_apply(&run->alloc, run->bindings, span(hf_buf_str(&delta)),
                               &after, &err);
    if (rc == 0) {
        run->bindings.at = hf_arena_copy(&run->arena, after.at, after.len);
        run->bindings.len = after.len;
        rc = run->bindings.at ? 0 : HF_ENOMEM;
    }
    hf_bytes_free(&after);
    hf_buf_fini(&delta);
    return rc;
}

/* One line; true when the run stops there. */
static bool do_line(struct hf_engine_run *run, char *rest, struct hf_engine_stop *stop,
                    int *ret_rc)
{
    const char *verb = cut_word(&rest);
    run->line++;
    if (strcmp(verb, "set") == 0) {
        const char *name = cut_word(&rest);
        *ret_rc = set_binding(run, name, rest);
        return *ret_rc != 0;
    }
    if (strcmp(verb, "spin") == 0) {
        while (run->steps <= run->limits.steps)
            run->steps++;
        stop->end = HF_CELL_OVER_STEPS;
        stop->message = span("it went on for too long");
    } else if (strcmp(verb, "call") == 0) {
        run->call.tool = cut_word(&rest);
        run->call.args = span(*rest ? rest : "{}");
        *stop = (struct hf_engine_stop){ .kind = HF_OP_CALL,
                                         .name = run->call.tool,
                                         .calls = &run->call,
                                         .call_count = 1 };
    } else if (strcmp(verb, "print") == 0) {
        *stop = (struct hf_engine_stop){ .kind = HF_OP_PRINT, .args = span(rest) };
    } else if (strcmp(verb, "finish") == 0) {
        *stop = (struct hf_engine_stop){ .end = HF_CELL_FINISHED,
                                         .value = span(rest),
                                         .bindings = run->bindings };
    } else if (*verb) {
        stop->end = HF_CELL_SYNTAX;
        stop->line = run->line;
        stop->message = span("there are call, print, set, finish and spin");
    } else {
        return false;
    }
    return true;
}

static int toy_step(struct hf_engine_run *run, const struct hf_engine_answer *answer,
                    struct hf_engine_stop *ret_stop, struct hf_err *err)
{
    int rc = 0;
    *ret_stop = (struct hf_engine_stop){ .end = HF_CELL_RUNNING };
    if (answer && answer->result_count > 0)
        run->last = hf_arena_copy(&run->arena, answer->results[0].value.at,
                                  answer->results[0].value.len);
    while (rc == 0 && *run->at) {
        size_t len = strcspn(run->at, "\n");
        char *line = hf_arena_copy(&run->arena, run->at, len);
        if (!line || !run->last)
            return hf_fail_plain(err, HF_ENOMEM);
        run->at += run->at[len] ? len + 1 : len;
        run->steps++;
        if (do_line(run, line, ret_stop, &rc))
            return rc ? hf_fail_plain(err, rc) : 0;
    }
    ret_stop->end = HF_CELL_DONE;
    ret_stop->bindings = run->bindings;
    return 0;
}

static void toy_cost(const struct hf_engine_run *run, struct hf_cell_cost *ret_cost)
{
    ret_cost->steps = run->steps;
    ret_cost->memory_bytes = (int64_t)run->arena.held;
    ret_cost->held_bytes = (int64_t)(run->arena.held + sizeof(*run));
}

const struct hf_engine *engine_toy(void)
{
    static const struct hf_engine_ops ops = { .language = "toy",
                                              .version = "1",
                                              .start = toy_start,
                                              .step = toy_step,
                                              .cost = toy_cost,
                                              .free = toy_free };
    static const struct hf_engine engine = { .ops = &ops };
    return &engine;
}
