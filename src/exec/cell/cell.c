/* Cells: starting, polling, answering. See cell.h. */
#include "exec/cell/cell.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/turn/given.h"
#include "core/turn/schema.h"
#include "exec/cell/bindings.h"

/* What a cell gets when its host does not say. docs/cells.md lists them. */
static const struct hf_cell_limits defaults = { .steps = 10000000,
                                                .active_ms = 10000,
                                                .memory_bytes = 33554432,
                                                .ops = 1000,
                                                .output_bytes = 262144 };

const char *hf_op_name(enum hf_op_kind kind)
{
#define X(name, word) #word,
    static const char *const words[] = { HF_OPS(X) };
#undef X
    return (unsigned)kind < HF_OP_COUNT ? words[kind] : "?";
}

const char *hf_cell_end_name(enum hf_cell_end end)
{
#define X(name, word) #word,
    static const char *const words[] = { HF_CELL_ENDS(X) };
#undef X
    return (unsigned)end < HF_CELL_END_COUNT ? words[end] : "?";
}

static int limit(int64_t given, int64_t usual, int64_t most, const char *field,
                 int64_t *ret_value, struct hf_err *err)
{
    if (given < 0 || given > most)
        return hf_fail(err, given < 0 ? HF_EINVAL : HF_ETOOBIG, field,
                       "a cell's %s must be 1 to %lld", field, (long long)most);
    *ret_value = given ? given : usual;
    return 0;
}

static int check_limits(const struct hf_cell_limits *given, struct hf_cell_limits *ret,
                        struct hf_err *err)
{
    int rc = limit(given->steps, defaults.steps, HF_MAX_CELL_STEPS, "steps", &ret->steps,
                   err);
    if (rc == 0)
        rc = limit(given->active_ms, defaults.active_ms, HF_MAX_DURATION_MAX_MS,
                   "active_ms", &ret->active_ms, err);
    if (rc == 0)
        rc = limit(given->memory_bytes, defaults.memory_bytes, HF_MAX_CELL_MEMORY_BYTES,
                   "memory_bytes", &ret->memory_bytes, err);
    if (rc == 0)
        rc = limit(given->ops, defaults.ops, HF_MAX_CELL_OPS, "ops", &ret->ops, err);
    if (rc == 0)
        rc = limit(given->output_bytes, defaults.output_bytes, HF_MAX_CELL_OUTPUT_BYTES,
                   "output_bytes", &ret->output_bytes, err);
    return rc;
}

static int check_start(const struct hf_cell_start *start, struct hf_err *err)
{
    int rc = hf_sized_check(start ? start->size : 0, sizeof(*start), sizeof(*start), err);
    if (rc == 0)
        rc = hf_check_key(start->id, (size_t)HF_MAX_KEY_BYTES, "id", err);
    if (rc == 0 && start->code.len > (size_t)HF_MAX_CELL_BYTES)
        rc = hf_fail(err, HF_ETOOBIG, "code", "a cell must have at most %lld bytes",
                     (long long)HF_MAX_CELL_BYTES);
    if (rc == 0)
        rc = hf_bindings_look(start->bindings, err);
    if (rc == 0)
        rc = hf_sized_array(start->tools, start->tool_count, "tools", err);
    for (size_t i = 0; i < start->tool_count && rc == 0; i++)
        rc = hf_check_key(start->tools[i], (size_t)HF_MAX_KEY_BYTES, "tools", err);
    return rc;
}

void hf_cell_free(struct hf_cell *cell)
{
    if (!cell)
        return;
    if (cell->run)
        cell->engine->ops->free(cell->run);
    hf_buf_fini(&cell->batch);
    hf_buf_fini(&cell->delta);
    hf_arena_fini(&cell->arena);
    cell->alloc->free(cell->alloc->user, cell);
}

static int fill(struct hf_cell *cell, const struct hf_cell_start *start,
                struct hf_err *err)
{
    struct hf_span bindings = { 0 };
    int rc = hf_cell_find_bindings(cell->engine, start, &bindings, err);
    if (rc)
        return rc;
    if (bindings.len == 0)
        bindings = hf_text_of("{}");
    cell->id = hf_arena_text(&cell->arena, start->id);
    char *copy = hf_arena_copy(&cell->arena, bindings.at, bindings.len);
    if (!cell->id || !copy)
        return hf_fail_plain(err, HF_ENOMEM);
    cell->id_len = strlen(cell->id);
    cell->before = (struct hf_span){ copy, bindings.len };
    cell->after = cell->before;
    struct hf_given given = { start->given, start->given_refs };
    rc = hf_given_copy(&cell->arena, &given, (size_t)HF_MAX_CELL_BINDINGS_BYTES, &given,
                       err);
    if (rc == 0)
        rc = hf_cell_keep_journal(cell, start, err);
    if (rc)
        return rc;
    struct hf_engine_start run = { .alloc = cell->alloc,
                                   .code = start->code,
                                   .bindings = cell->before,
                                   .given = given.values,
                                   .given_refs = given.refs,
                                   .tools = start->tools,
                                   .tool_count = start->tool_count,
                                   .limits = cell->limits,
                                   .clock = start->clock };
    return cell->engine->ops->start(cell->engine, &run, &cell->run, err);
}

int hf_cell_new(const struct hf_engine *engine, const struct hf_cell_start *start,
                struct hf_cell **ret_cell, struct hf_err *err)
{
    struct hf_cell_limits limits;
    int rc = check_start(start, err);
    if (rc == 0)
        rc = check_limits(&start->limits, &limits, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = start->alloc ? start->alloc : hf_alloc_system();
    struct hf_cell *cell = alloc->realloc(alloc->user, NULL, sizeof(*cell));
    if (!cell)
        return hf_fail_plain(err, HF_ENOMEM);
    *cell = (struct hf_cell){ .alloc = alloc, .engine = engine, .limits = limits };
    hf_arena_init_small(&cell->arena, alloc, 512, 65536);
    hf_buf_init(&cell->batch, alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_buf_init(&cell->delta, alloc, (size_t)HF_MAX_CELL_BINDINGS_BYTES * 3);
    rc = fill(cell, start, err);
    if (rc == 0)
        *ret_cell = cell;
    else
        hf_cell_free(cell);
    return rc;
}

static size_t put_number(char *out, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    return count;
}

size_t hf_cell_put_id(const struct hf_cell *cell, uint64_t ordinal, size_t child,
                      char ret_id[HF_OP_ID_BYTES])
{
    size_t len = cell->id_len;
    memcpy(ret_id, cell->id, len);
    ret_id[len++] = ':';
    len += put_number(ret_id + len, ordinal);
    if (child > 0) {
        ret_id[len++] = ':';
        len += put_number(ret_id + len, child);
    }
    ret_id[len] = '\0';
    return len;
}

/* The calls of a batch as one JSON value: what the operation's arguments are. */
static int join_batch(struct hf_cell *cell)
{
    struct hf_json json;
    hf_buf_reset(&cell->batch);
    hf_json_begin(&json, &cell->batch);
    hf_json_array(&json);
    for (size_t i = 0; i < cell->stop.call_count; i++) {
        const struct hf_engine_call *call = &cell->stop.calls[i];
        if (i > 0)
            hf_buf_char(&cell->batch, ',');
        hf_buf_text(&cell->batch, "{\"args\":");
        hf_buf_bytes(&cell->batch, call->args.at, call->args.len);
        hf_buf_text(&cell->batch, ",\"tool\":");
        struct hf_json name;
        hf_json_begin(&name, &cell->batch);
        hf_json_str(&name, call->tool);
        hf_buf_char(&cell->batch, '}');
    }
    hf_json_end(&json);
    cell->op.args = (struct hf_span){ hf_buf_str(&cell->batch), cell->batch.len };
    return hf_buf_state(&cell->batch);
}

static int open_batch(struct hf_cell *cell)
{
    size_t count = cell->stop.call_count;
    struct hf_arena *arena = &cell->arena;
    cell->calls = hf_arena_array(arena, count, sizeof(*cell->calls));
    cell->results = hf_arena_array(arena, count, sizeof(*cell->results));
    if (!cell->calls || !cell->results)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        char id[HF_OP_ID_BYTES];
        size_t len = hf_cell_put_id(cell, cell->ordinal, i + 1, id);
        cell->calls[i] = (struct hf_op_call){ .id = hf_arena_copy(arena, id, len),
                                              .tool = cell->stop.calls[i].tool,
                                              .args = cell->stop.calls[i].args };
        if (!cell->calls[i].id)
            return HF_ENOMEM;
    }
    return join_batch(cell);
}

static int open_op(struct hf_cell *cell)
{
    const struct hf_engine_stop *stop = &cell->stop;
    hf_cell_put_id(cell, cell->ordinal, 0, cell->op_id);
    cell->op = (struct hf_op){ .kind = stop->kind,
                               .ordinal = cell->ordinal,
                               .id = cell->op_id,
                               .name = stop->name,
                               .args = stop->args };
    cell->is_out = true;
    cell->open = 1;
    cell->calls = NULL;
    cell->results = NULL;
    if (stop->kind == HF_OP_CALL || stop->kind == HF_OP_READ) {
        cell->one = (struct hf_op_call){ .id = cell->op_id,
                                         .tool = stop->calls[0].tool,
                                         .args = stop->calls[0].args };
        cell->calls = &cell->one;
        cell->results = &cell->one_result;
        cell->op.args = stop->calls[0].args;
    } else if (stop->kind == HF_OP_CALL_BATCH) {
        int rc = open_batch(cell);
        if (rc)
            return rc;
        cell->open = stop->call_count;
    }
    cell->op.calls = cell->calls;
    cell->op.call_count = cell->calls ? cell->open : 0;
    return 0;
}

static int over(struct hf_cell *cell, enum hf_cell_end end, const char *what,
                int64_t most)
{
    struct hf_buf text;
    hf_buf_init(&text, cell->alloc, 256);
    hf_buf_text(&text, what);
    hf_buf_i64(&text, most);
    hf_buf_text(&text, end == HF_CELL_OVER_OPS ? " operations" : " bytes of output");
    const char *said = hf_buf_keep(&text, &cell->arena);
    return said ? hf_cell_close(cell, end, hf_turn_span_of(said)) : HF_ENOMEM;
}

/* An operation came out of the engine. */
static int begin_op(struct hf_cell *cell, struct hf_err *err)
{
    const struct hf_engine_stop *stop = &cell->stop;
    cell->ordinal++;
    cell->ops += stop->call_count > 0 ? (int64_t)stop->call_count : 1;
    if (cell->ops > cell->limits.ops)
        return over(cell, HF_CELL_OVER_OPS, "the cell asked for more than ",
                    cell->limits.ops);
    if (stop->kind == HF_OP_PRINT) {
        cell->output += (int64_t)stop->args.len;
        if (cell->output > cell->limits.output_bytes)
            return over(cell, HF_CELL_OVER_OUTPUT, "the cell printed more than ",
                        cell->limits.output_bytes);
    }
    int rc = open_op(cell);
    if (rc == 0 && stop->kind == HF_OP_PRINT)
        rc = hf_cell_saw(cell, stop->args);
    if (rc)
        return hf_fail_plain(err, rc);
    return hf_cell_replay(cell, err);
}

/* Runs the engine once, with the answer to what was out. */
static int step(struct hf_cell *cell, struct hf_err *err)
{
    struct hf_engine_answer answer = { .results = cell->results,
                                       .result_count = cell->op.call_count,
                                       .value = cell->value };
    bool print = cell->op.kind == HF_OP_PRINT;
    bool answered = cell->is_out && !print;
    cell->is_out = false;
    int rc = cell->engine->ops->step(cell->run, answered ? &answer : NULL, &cell->stop,
                                     err);
    if (rc == 0 && cell->stop.sliced)
        return 0;
    if (rc == 0 && cell->stop.end == HF_CELL_RUNNING)
        return begin_op(cell, err);
    if (rc == 0) {
        cell->line = cell->stop.line;
        rc = hf_cell_close(cell, cell->stop.end, cell->stop.message);
        if (rc)
            rc = hf_fail_plain(err, rc);
    }
    return rc;
}

/* Whether the host has to see the operation that is out. */
static bool needs_host(const struct hf_cell *cell)
{
    if (cell->op.kind == HF_OP_PRINT)
        return !hf_cell_was_shown(cell, cell->op.ordinal);
    return cell->open > 0;
}

static int64_t steps_of(const struct hf_cell *cell)
{
    struct hf_cell_cost cost = { 0 };
    cell->engine->ops->cost(cell->run, &cost);
    return cost.steps;
}

/* slice 0: no bound. */
static int poll_cell(struct hf_cell *cell, int64_t slice, const struct hf_op **ret_op,
                     struct hf_err *err)
{
    if (cell->broken)
        return hf_fail_plain(err, HF_ENOMEM);
    if (cell->end == HF_CELL_RUNNING && cell->is_out && cell->open > 0 &&
        cell->op.kind != HF_OP_PRINT) {
        *ret_op = &cell->op;
        return 0;
    }
    bool sliced = slice > 0 && cell->engine->ops->slice;
    int64_t begun = sliced ? steps_of(cell) : 0;
    while (cell->end == HF_CELL_RUNNING) {
        int64_t left = sliced ? slice - (steps_of(cell) - begun) : 1;
        if (left <= 0)
            break;
        if (sliced)
            cell->engine->ops->slice(cell->run, left);
        int rc = step(cell, err);
        if (rc) {
            cell->broken = true;
            return rc;
        }
        if (cell->end == HF_CELL_RUNNING && cell->stop.sliced)
            break;
        if (cell->end == HF_CELL_RUNNING && needs_host(cell)) {
            *ret_op = &cell->op;
            return 0;
        }
    }
    *ret_op = NULL;
    return 0;
}

int hf_cell_poll(struct hf_cell *cell, const struct hf_op **ret_op, struct hf_err *err)
{
    return poll_cell(cell, 0, ret_op, err);
}

int hf_cell_poll_steps(struct hf_cell *cell, int64_t steps, const struct hf_op **ret_op,
                       struct hf_err *err)
{
    if (steps < 1)
        return hf_fail(err, HF_EINVAL, "steps", "a slice is of one step at least");
    return poll_cell(cell, steps, ret_op, err);
}

/* The calls of the operation that is out, answered or not: they are kept for the result when
 * the last one is answered, which now does not come. */
static int leave_calls(struct hf_cell *cell)
{
    static const char reason[] = "the cell was cancelled before the tool answered";
    bool calls = cell->is_out && cell->open > 0 && cell->calls &&
                 cell->op.kind != HF_OP_READ;
    for (size_t i = 0; calls && i < cell->op.call_count; i++) {
        struct hf_tool_result result = { .call_id = cell->calls[i].id,
                                         .tool = cell->calls[i].tool,
                                         .outcome = HF_TOOL_UNKNOWN,
                                         .reason = { reason, sizeof(reason) - 1 } };
        if (cell->calls[i].answered)
            result = cell->results[i];
        int rc = hf_cell_did(cell, &result, 0);
        if (rc)
            return rc;
    }
    return 0;
}

int hf_cell_cancel(struct hf_cell *cell, struct hf_err *err)
{
    if (cell->broken)
        return hf_fail_plain(err, HF_ENOMEM);
    if (cell->end != HF_CELL_RUNNING)
        return hf_fail(err, HF_EFINISHED, NULL, "the cell has ended (%s)",
                       hf_cell_end_name(cell->end));
    int rc = leave_calls(cell);
    if (rc == 0)
        rc = hf_cell_close(cell, HF_CELL_CANCELLED, hf_text_of("the cell was cancelled"));
    if (rc) {
        cell->broken = true;
        cell->end = HF_CELL_RUNNING;
    }
    return rc ? hf_fail_plain(err, rc) : 0;
}

static int expect(const struct hf_cell *cell, uint64_t ordinal, bool calls,
                  struct hf_err *err)
{
    bool out = cell->is_out && cell->open > 0 && cell->op.kind != HF_OP_PRINT;
    if (cell->end != HF_CELL_RUNNING || cell->broken || !out ||
        cell->op.ordinal != ordinal)
        return hf_fail(err, HF_ESTALE, "ordinal", "this operation is not out");
    if (calls != (cell->calls != NULL))
        return hf_fail(err, HF_ERESPONSE, "ordinal", "operation %llu takes %s",
                       (unsigned long long)ordinal, calls ? "a value" : "results");
    return 0;
}

static size_t find_call(const struct hf_cell *cell, const char *id)
{
    size_t i = 0;
    if (id == cell->calls[0].id) /* as it was handed out */
        return 0;
    while (i < cell->op.call_count && !hf_same(cell->calls[i].id, id))
        i++;
    return i;
}

/* A value and nothing more, as most answers are. */
static bool is_plain(const struct hf_tool_result *result)
{
    return result->outcome == HF_TOOL_SUCCESS && result->control == HF_CONTROL_NONE &&
           !result->failure && !result->frame_key && result->value.len > 0 &&
           (result->reason.len | result->control_value.len | result->task.len |
            result->part_count | result->intent_count) == 0;
}

static int keep_plain(struct hf_cell *cell, const struct hf_tool_result *result,
                      struct hf_tool_result *to, struct hf_err *err)
{
    struct hf_span value = result->value;
    int rc = hf_json_check_raw(value, (size_t)HF_MAX_CELL_VALUE_BYTES, "value", err);
    if (rc)
        return rc;
    *to = (struct hf_tool_result){
        .value = { hf_arena_copy(&cell->arena, value.at, value.len), value.len },
        .reason = { "", 0 },
        .control_value = { "", 0 },
        .task = { "", 0 },
        .duration_ms = result->duration_ms,
    };
    return to->value.at ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* A copy of the answer to call `i`, which lasts as long as the cell. */
static int keep_result(struct hf_cell *cell, size_t i,
                       const struct hf_tool_result *result, struct hf_err *err)
{
    struct hf_tool_result *to = &cell->results[i];
    const char *tool = cell->calls[i].tool;
    if (result->value.len > (size_t)HF_MAX_CELL_VALUE_BYTES)
        return hf_fail(err, HF_ETOOBIG, "value", "an answer is at most %lld bytes",
                       (long long)HF_MAX_CELL_VALUE_BYTES);
    int rc = is_plain(result) ? keep_plain(cell, result, to, err)
                              : hf_value_copy(&cell->arena, &hf_s_tool_result,
                                              HF_COPY_STRICT, result, to, err);
    if (rc)
        return rc;
    if (!cell->done_tool || !hf_same(cell->done_tool, tool))
        cell->done_tool = hf_arena_text(&cell->arena, tool);
    to->tool = cell->done_tool;
    to->call_id = cell->calls[i].id;
    return to->tool ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* Nothing counts unless all do: `taken` first, then the marks. */
int hf_cell_take_results(struct hf_cell *cell, const struct hf_tool_result *results,
                         size_t count, struct hf_err *err)
{
    if (hf_sized_array(results, count, "results", err))
        return HF_EINVAL;
    for (size_t n = 0; n < count; n++) {
        size_t i = find_call(cell, results[n].call_id);
        if (i == cell->op.call_count)
            return hf_fail(err, HF_ENOCALL, "call_id", "the operation has no such call");
        bool again = cell->calls[i].answered;
        for (size_t m = 0; m < n; m++)
            again |= hf_same(results[m].call_id, results[n].call_id);
        if (again)
            return hf_fail(err, HF_EANSWERED, "call_id", "the call is answered already");
    }
    for (size_t n = 0; n < count; n++) {
        int rc = keep_result(cell, find_call(cell, results[n].call_id), &results[n], err);
        if (rc)
            return rc;
    }
    for (size_t n = 0; n < count; n++) {
        size_t i = find_call(cell, results[n].call_id);
        cell->calls[i].answered = true;
        cell->calls[i].result = &cell->results[i];
        cell->open--;
    }
    if (cell->open > 0)
        return 0;
    if (cell->op.kind == HF_OP_READ)
        return 0; /* no call of the model's */
    uint64_t alone = cell->calls == &cell->one ? cell->op.ordinal : 0;
    for (size_t i = 0; i < cell->op.call_count; i++)
        if (hf_cell_did(cell, &cell->results[i], alone)) {
            cell->broken = true;
            return hf_fail_plain(err, HF_ENOMEM);
        }
    return 0;
}

int hf_cell_take_value(struct hf_cell *cell, struct hf_span json, struct hf_err *err)
{
    struct hf_span value = json.len ? json : hf_text_of("null");
    int rc = hf_json_check_raw(value, (size_t)HF_MAX_CELL_VALUE_BYTES, "value", err);
    if (rc)
        return rc;
    const char *at = value.at;
    bool number = cell->op.kind == HF_OP_NOW || cell->op.kind == HF_OP_RANDOM;
    if (number && at[0] != '-' && (at[0] < '0' || at[0] > '9'))
        return hf_fail(err, HF_EINVAL, "value", "%s is answered by a number",
                       hf_op_name(cell->op.kind));
    char *copy = hf_arena_copy(&cell->arena, value.at, value.len);
    if (!copy)
        return hf_fail_plain(err, HF_ENOMEM);
    cell->value = (struct hf_span){ copy, value.len };
    cell->open = 0;
    return 0;
}

int hf_cell_results(struct hf_cell *cell, uint64_t ordinal,
                    const struct hf_tool_result *results, size_t count,
                    struct hf_err *err)
{
    int rc = expect(cell, ordinal, true, err);
    return rc ? rc : hf_cell_take_results(cell, results, count, err);
}

int hf_cell_value(struct hf_cell *cell, uint64_t ordinal, struct hf_span json,
                  struct hf_err *err)
{
    int rc = expect(cell, ordinal, false, err);
    return rc ? rc : hf_cell_take_value(cell, json, err);
}

enum hf_cell_end hf_cell_end(const struct hf_cell *cell, int64_t *ret_line)
{
    if (ret_line)
        *ret_line = cell->line;
    return cell->end;
}

struct hf_span hf_cell_bindings(const struct hf_cell *cell)
{
    return cell->after;
}

const char *hf_cell_note(const struct hf_cell *cell, size_t n)
{
    return n < cell->stop.note_count ? cell->stop.notes[n] : NULL;
}

void hf_cell_cost(const struct hf_cell *cell, struct hf_cell_cost *ret_cost)
{
    *ret_cost = (struct hf_cell_cost){ .ops = cell->ops, .output_bytes = cell->output };
    cell->engine->ops->cost(cell->run, ret_cost);
    ret_cost->held_bytes += (int64_t)(sizeof(*cell) + cell->arena.held +
                                      cell->batch.room + cell->delta.room);
}
