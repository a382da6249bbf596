#include "exec/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define OPS_MAX 4096

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text ? text : "", text ? strlen(text) : 0 };
}

static void must(int rc, const struct hf_err *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "# kit: %d %s %s\n", rc, err->field, err->message);
    abort();
}

static struct hf_cell_start start_of(const struct cellkit *kit)
{
    return (struct hf_cell_start){
        .size = sizeof(struct hf_cell_start),
        .alloc = kit->alloc,
        .id = "7",
        .code = { kit->code, kit->code_len ? kit->code_len : strlen(kit->code) },
        .bindings = span(kit->bindings),
        .given = span(kit->given),
        .given_refs = span(kit->given_refs),
        .tools = kit->tools,
        .tool_count = kit->tool_count,
        .limits = kit->limits,
        .clock = kit->clock,
    };
}

struct hf_cell *cellkit_new(const struct cellkit *kit, const struct hf_op_record *journal,
                            size_t count)
{
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    struct hf_cell_start start = start_of(kit);
    start.journal = journal;
    start.journal_count = count;
    must(hf_cell_new(kit->engine ? kit->engine : hf_engine_lua(), &start, &cell, &err),
         &err);
    return cell;
}

static void put_line(struct hf_buf *out, const char *name, struct hf_span text)
{
    hf_buf_text(out, name);
    hf_buf_bytes(out, text.len ? text.at : "", text.len);
    hf_buf_char(out, '\n');
}

void cellkit_describe_op(const struct hf_op *op, struct hf_buf *transcript)
{
    hf_buf_i64(transcript, (int64_t)op->ordinal);
    hf_buf_char(transcript, ' ');
    hf_buf_text(transcript, hf_op_name(op->kind));
    hf_buf_char(transcript, ' ');
    if (op->name) {
        hf_buf_text(transcript, op->name);
        hf_buf_char(transcript, ' ');
    }
    put_line(transcript, "", op->args);
}

void cellkit_describe_end(const struct hf_cell *cell, struct hf_buf *transcript)
{
    int64_t line = 0;
    const struct hf_exec_result *result = hf_cell_result(cell);
    enum hf_cell_end end = hf_cell_end(cell, &line);
    hf_buf_text(transcript, hf_cell_end_name(end));
    hf_buf_char(transcript, ' ');
    put_line(transcript, "", result->failed ? result->message : result->error);
    if (result->finish.len > 0)
        put_line(transcript, "finish ", result->finish);
    for (size_t i = 0; hf_cell_note(cell, i); i++)
        put_line(transcript, "note ", span(hf_cell_note(cell, i)));
    put_line(transcript, "bindings ", hf_cell_bindings(cell));
    put_line(transcript, "delta ", result->bindings_delta);
}

static struct hf_tool_result result_of(const struct hf_op_call *call)
{
    static const struct hf_failure nope = { .class_ = HF_FAILURE_EXECUTION,
                                            .code = "nope",
                                            .message = { "it said no", 10 } };
    struct hf_tool_result result = { .call_id = call->id, .value = span("\"ok\"") };
    if (hf_same(call->tool, "echo"))
        result.value = call->args;
    else if (hf_same(call->tool, "list"))
        result.value = span("[1,2,3]");
    else if (hf_same(call->tool, "none"))
        result.value = span("null");
    if (hf_same(call->tool, "fail") || hf_same(call->tool, "broken")) {
        result.outcome = HF_TOOL_FAILURE;
        result.value = span("");
        result.failure = &nope;
    }
    return result;
}

static struct hf_span value_of(const struct hf_op *op)
{
    switch ((int)op->kind) {
    case HF_OP_START_PROCESS: return span("{\"id\":\"p1\"}");
    case HF_OP_WAIT_SIGNAL: return span("{\"signal\":\"go\"}");
    case HF_OP_NOW: return span("1700000000000");
    case HF_OP_RANDOM: return span("42");
    default: return span("null");
    }
}

int cellkit_answer(struct hf_cell *cell, const struct hf_op *op)
{
    struct hf_err err = { 0 };
    int rc = 0;
    if (op->kind == HF_OP_PRINT)
        return 0;
    if (op->call_count == 0)
        rc = hf_cell_value(cell, op->ordinal, value_of(op), &err);
    /* The last first, to see that order does not matter. */
    size_t count = op->call_count;
    for (size_t i = count; i > 0 && rc == 0; i--) {
        struct hf_tool_result result = result_of(&op->calls[i - 1]);
        if (!op->calls[i - 1].answered)
            rc = hf_cell_results(cell, op->ordinal, &result, 1, &err);
    }
    if (rc != HF_ENOMEM)
        must(rc, &err);
    return rc;
}

enum hf_cell_end cellkit_run(const struct cellkit *kit, struct hf_buf *transcript)
{
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct hf_cell *cell = cellkit_new(kit, NULL, 0);
    must(hf_cell_poll(cell, &op, &err), &err);
    while (op) {
        cellkit_describe_op(op, transcript);
        must(cellkit_answer(cell, op), &err);
        must(hf_cell_poll(cell, &op, &err), &err);
    }
    cellkit_describe_end(cell, transcript);
    enum hf_cell_end end = hf_cell_end(cell, NULL);
    hf_cell_free(cell);
    return end;
}

/* What a host would have written down. */
struct journal {
    struct hf_arena arena;
    struct hf_op_record records[OPS_MAX];
    size_t count;
    uint64_t described;
};

static struct hf_span keep(struct journal *journal, struct hf_span text)
{
    char *copy = hf_arena_copy(&journal->arena, text.len ? text.at : "", text.len);
    return (struct hf_span){ copy, text.len };
}

static void record(struct journal *journal, const struct hf_op *op)
{
    struct hf_op_record *to = &journal->records[journal->count++];
    struct hf_tool_result *results = hf_arena_array(&journal->arena, op->call_count,
                                                    sizeof(*results));
    *to = (struct hf_op_record){ .ordinal = op->ordinal,
                                 .kind = op->kind,
                                 .name = hf_arena_text(&journal->arena, op->name),
                                 .args = keep(journal, op->args),
                                 .results = results,
                                 .result_count = op->call_count,
                                 .answered = op->call_count == 0,
                                 .value = keep(journal, value_of(op)) };
    for (size_t i = 0; i < op->call_count; i++) {
        results[i] = result_of(&op->calls[i]);
        results[i].call_id = hf_arena_text(&journal->arena, op->calls[i].id);
        results[i].value = keep(journal, results[i].value);
    }
}

/* One life of the cell: up to the first operation that no caller has answered, which is
 * then recorded with its answer. False when the cell came to its end. */
static bool live_once(const struct cellkit *kit, struct journal *journal,
                      struct hf_buf *transcript, enum hf_cell_end *ret_end)
{
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct hf_cell *cell = cellkit_new(kit, journal->records, journal->count);
    must(hf_cell_poll(cell, &op, &err), &err);
    while (op && op->kind == HF_OP_PRINT) {
        if (op->ordinal > journal->described) {
            cellkit_describe_op(op, transcript);
            journal->described = op->ordinal;
        }
        must(hf_cell_poll(cell, &op, &err), &err);
    }
    if (op) {
        cellkit_describe_op(op, transcript);
        journal->described = op->ordinal;
        record(journal, op);
    } else {
        cellkit_describe_end(cell, transcript);
        *ret_end = hf_cell_end(cell, NULL);
    }
    hf_cell_free(cell);
    return op != NULL;
}

enum hf_cell_end cellkit_run_cut(const struct cellkit *kit, struct hf_buf *transcript)
{
    static struct journal journal;
    enum hf_cell_end end = HF_CELL_RUNNING;
    journal.count = 0;
    journal.described = 0;
    hf_arena_init(&journal.arena, hf_alloc_system());
    while (live_once(kit, &journal, transcript, &end) && journal.count < OPS_MAX) {}
    hf_arena_fini(&journal.arena);
    return end;
}
