#include "turn/lua_cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/exec.h>

#include "core/turn/code/code.h"
#include "support/unit.h"

#define OPS 64

static const char *const replies[LUA_CELL_COUNT] = {
    "<lua>\nx = (x or 0) + 1\nt = x % 2 == 1 and {x} or nil\nprint('x is', x)\n"
    "local ok, d = pcall(function() return doc.n end)\nprint(ok, ok or d.code)\n"
    "print(env.user, pcall(function() env.user = 1 end))\n</lua>",
    "Both.\n<lua>\nlocal r = call_batch{{'add', {a = 1}}, {'sub', {b = 2}}, {'add'}}\n"
    "seen = seen or {}\nfor i, one in ipairs(r) do\n"
    "  seen[#seen + 1] = one.ok and one.value or "
    "one.error.code\nend\nprint(seen)\n</lua>",
    "<lua>\nfor i = 1, 3 do\n  print(i, pcall(call, 'add', {n = i, was = "
    "x}))\nend\n</lua>",
    "<lua>\nt = {now = now(), r = math.random(1000), list = {1, 2, {deep = true}}}\n"
    "print(t)\n</lua>",
    "<lua>finish(7)</lua>",
    "<lua>\nt = nil\nlocal v = call('sub', {x = x})\nif v == 2 then finish({v = v, x = "
    "x}) end\n"
    "y = v\n</lua>",
    "<lua>\ncall('none', {})\n</lua>",
    "<lua>\nthis is no program\n</lua>",
    "<lua>\nx = 99\nerror('it raised')\n</lua>",
    "<lua>\nwhile true do x = 1 end\n</lua>",
    "<lua>\nfail({why = 'no', x = x})\n</lua>",
    "<lua>\nf = function() end\nprint(wait_signal('go', 2), #print)\n</lua>",
    "<lua>\nsleep(1)\nprint(('x'):rep(5000))\nfinish({seen = seen, x = x})\n</lua>",
};

const char *lua_cell_reply(size_t n)
{
    return replies[n < LUA_CELL_COUNT ? n : n % 5];
}

static uint64_t mix(uint64_t seed, const char *id)
{
    uint64_t hash = seed * UINT64_C(0x9e3779b97f4a7c15);
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static void must(int rc, const struct hf_err *err)
{
    if (rc)
        print_error("%s: %s (%s)\n", hf_err_wire(rc), err->message, err->field);
    assert_int_equal(rc, 0);
}

/* The bindings of that hash, by the deltas of the steps so far. */
static struct hf_bytes bindings_of(struct hf_turn *turn, const char *hash)
{
    struct hf_bytes now = { 0 };
    struct hf_err err = { 0 };
    struct hf_arena arena;
    char found[65] = "";
    hf_arena_init(&arena, hf_alloc_system());
    for (uint64_t i = 0; hash && i < hf_turn_record_count(turn); i++) {
        struct hf_code_step step;
        struct hf_bytes next = { 0 };
        bool is_step = false;
        must(hf_code_read_step(&arena, hf_turn_record(turn, i), &step, &is_step, &err),
             &err);
        if (!is_step || step.delta.len == 0)
            continue;
        must(hf_bindings_apply(NULL, (struct hf_span){ now.at, now.len }, step.delta,
                               &next, &err),
             &err);
        hf_bytes_free(&now);
        now = next;
    }
    must(hf_bindings_hash((struct hf_span){ now.at, now.len }, found, &err), &err);
    if (hash)
        assert_string_equal(found, hash);
    hf_arena_fini(&arena);
    return now;
}

/* What was answered, as a host would have recorded it. */
struct journal {
    struct hf_op_record records[OPS];
    struct hf_tool_result results[OPS];
    size_t count;
    size_t answered;
    struct hf_arena arena;
};

static struct hf_span keep(struct journal *journal, struct hf_span text)
{
    return (struct hf_span){
        hf_arena_copy(&journal->arena, text.len ? text.at : "", text.len), text.len
    };
}

static struct hf_op_record *record_of(struct journal *journal, const struct hf_op *op)
{
    if (journal->count > 0 && journal->records[journal->count - 1].ordinal == op->ordinal)
        return &journal->records[journal->count - 1];
    assert_true(journal->count < OPS);
    struct hf_op_record *record = &journal->records[journal->count++];
    *record = (struct hf_op_record){ .ordinal = op->ordinal,
                                     .kind = op->kind,
                                     .name = hf_arena_text(&journal->arena, op->name),
                                     .args = keep(journal, op->args),
                                     .results = &journal->results[journal->answered] };
    return record;
}

static void answer_call(struct hf_cell *cell, struct journal *journal,
                        const struct hf_op *op, const struct hf_op_call *call,
                        uint64_t seed)
{
    static const struct hf_failure failure = { .code = "disk", .message = { "full", 4 } };
    struct hf_err err = { 0 };
    struct hf_op_record *record = record_of(journal, op);
    assert_true(journal->answered < OPS);
    struct hf_tool_result *result = &journal->results[journal->answered++];
    uint64_t what = mix(seed, call->id) % 5;
    *result = (struct hf_tool_result){ .call_id = hf_arena_text(&journal->arena,
                                                                call->id) };
    if (what == 0) {
        result->outcome = HF_TOOL_FAILURE;
        result->failure = &failure;
    } else if (what == 1) {
        result->outcome = HF_TOOL_CANCELLED;
        result->reason = span("not now");
    } else {
        result->value = span(what == 2 ? "2" : what == 3 ? "{\"n\":[1,2.5]}" : "null");
    }
    record->result_count++;
    must(hf_cell_results(cell, op->ordinal, result, 1, &err), &err);
}

static void answer_value(struct hf_cell *cell, struct journal *journal,
                         const struct hf_op *op)
{
    struct hf_err err = { 0 };
    struct hf_op_record *record = record_of(journal, op);
    record->answered = true;
    record->value = span(op->kind == HF_OP_NOW           ? "1700000000000"
                         : op->kind == HF_OP_RANDOM      ? "-42"
                         : op->kind == HF_OP_WAIT_SIGNAL ? "{\"go\":true}"
                                                         : "null");
    must(hf_cell_value(cell, op->ordinal, record->value, &err), &err);
}

/* One answer to the operation, from its last open call backwards. */
static void answer_op(struct hf_cell *cell, struct journal *journal,
                      const struct hf_op *op, uint64_t seed)
{
    if (op->call_count == 0) {
        answer_value(cell, journal, op);
        return;
    }
    for (size_t i = op->call_count; i > 0; i--)
        if (!op->calls[i - 1].answered) {
            answer_call(cell, journal, op, &op->calls[i - 1], seed);
            return;
        }
}

static struct hf_cell *start_cell(const struct hf_effect *effect,
                                  const struct hf_bytes *bindings,
                                  const struct hf_op_record *ops, size_t count)
{
    static const char *const tools[] = { "add", "sub", "history" };
    struct hf_cell *cell = NULL;
    struct hf_err err = { 0 };
    char id[32];
    snprintf(id, sizeof(id), "%llu", (unsigned long long)effect->id);
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = id,
                                   .code = effect->code,
                                   .bindings = { bindings->at, bindings->len },
                                   .given = effect->given,
                                   .given_refs = effect->given_refs,
                                   .tools = tools,
                                   .tool_count = 3,
                                   .limits = { .steps = 200000 },
                                   .journal = ops,
                                   .journal_count = count };
    must(hf_cell_new(hf_engine_lua(), &start, &cell, &err), &err);
    return cell;
}

/* From the journal as a store would have kept it. */
static struct hf_cell *start_stored(const struct hf_effect *effect,
                                    const struct hf_bytes *bindings,
                                    const struct journal *journal)
{
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_op_record *ops = NULL;
    size_t count = 0;
    must(hf_op_records_encode(NULL, journal->records, journal->count, &json, &err), &err);
    must(hf_op_records_decode(NULL, (struct hf_span){ json.at, json.len }, &owner, &ops,
                              &count, &err),
         &err);
    struct hf_cell *cell = start_cell(effect, bindings, ops, count);
    hf_decoded_free(owner);
    hf_bytes_free(&json);
    return cell;
}

struct hf_cell *lua_cell_run(struct hf_turn *turn, const struct hf_effect *effect,
                             uint64_t seed, bool cut)
{
    struct hf_err err = { 0 };
    static struct journal journal;
    struct hf_bytes bindings = bindings_of(turn, effect->bindings);
    const struct hf_op *op = NULL;
    memset(&journal, 0, sizeof(journal));
    hf_arena_init(&journal.arena, hf_alloc_system());
    struct hf_cell *cell = start_cell(effect, &bindings, NULL, 0);
    for (;;) {
        must(hf_cell_poll(cell, &op, &err), &err);
        if (!op)
            break;
        if (op->kind == HF_OP_PRINT)
            continue;
        answer_op(cell, &journal, op, seed);
        if (cut) {
            hf_cell_free(cell);
            cell = start_stored(effect, &bindings, &journal);
        }
    }
    hf_bytes_free(&bindings);
    hf_arena_fini(&journal.arena);
    return cell;
}
