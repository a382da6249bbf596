/* A simulated turn in which the model writes code (code.h). The real turn machine is the driver: it
 * asks for effects, and this file answers them. A model call is answered from a script; code is
 * run as a cell, by the real Lua engine.
 *
 * Each answer to a model, a tool or a reference is bought once and journaled. When a host is lost,
 * the next one restores the turn, starts the cell of the open effect again, and the cell gets the
 * journaled answers instead of new ones. Bindings are the variables that a cell leaves for the
 * next one; they are kept under the hash of their bytes.
 *
 * Everything that the world answers follows from a script's number and the id of what is asked, so
 * two runs of one script can differ only if the machine, the cells or their journal do. */
#include "sim/code.h"

#include <string.h>

#include "sim/inside.h"

#define REPLIES 5

static const char *const scripts[CODE_SCRIPTS][REPLIES] = {
    { "Both at once.\n<lua>\nlocal r = call_batch{{'add', {a = 1}}, {'sub', {b = 2}}, "
      "{'add'}}\n"
      "seen = {}\nfor i, one in ipairs(r) do seen[i] = one.ok and one.value or "
      "one.error.code "
      "end\nprint(seen)\n</lua>",
      "<lua>\nfor i = 1, 3 do print(i, pcall(call, 'add', {n = i, was = seen[i]})) end\n"
      "at = now() draw = random(100)\n</lua>",
      "<lua>\nfinish({seen = seen, at = at, draw = draw})\n</lua>" },
    { "<lua>\nx = 1 call('sub') error('no')\n</lua>", "Hm.\n<lua>\nx = ",
      "<lua>\nx = (x or 40) + 2 print(x, env.user, doc)\ntitle = doc and "
      "doc.title\n</lua>",
      "<lua>\nprint(x, title, call('add', {x = x}))\nx = nil\n</lua>", "That is all." },
    { "<lua>\nenv.user = 'me'\n</lua>",
      "<lua>\nlocal s = wait_signal('go', 5) sleep(1)\nkept = {s, start_process('job', "
      "{n = 1})}\n"
      "print(kept)\n</lua>",
      "<lua>\ncall('none', {})\n</lua>",
      "<lua>\nfor i = 1, 4 do t = {i, call_batch{{'add', {i = i}}, {'sub', {i = i}}}} "
      "end\n"
      "print(t, kept)\n</lua>",
      "<lua>fail({why = 'done with it', t = t})</lua>" },
    { "<lua>\nlist = {} for i = 1, 5 do list[i] = call('add', {i = i}) end "
      "print(#list)\n</lua>",
      "<lua>\ntable.sort(list, function(a, b) return tostring(a) < tostring(b) end)\n"
      "print(list, call_batch{{'sub'}, {'sub', {again = true}}})\n</lua>",
      "<lua>\nprint(call('history', {step = 1})) list = nil\n</lua>",
      "Nothing more to do." },
};

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static int wrong(struct code_turn *turn, const char *what, const char *id)
{
    if (!turn->wrong[0])
        sim_format(turn->wrong, sizeof(turn->wrong), "%.90s: %.100s", what, id);
    return HF_EINTERNAL;
}

int code_kit_open(struct code_kit *kit)
{
    int rc = hf_code_surface(NULL, hf_protocol_code(), span("You are simulated."),
                             span("[{\"name\":\"add\"},{\"name\":\"sub\"}]"),
                             &kit->surface, NULL);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .protocol = hf_protocol_code(),
                                     .surface = kit->surface,
                                     .model = "scripted",
                                     .turn_budget = 12 };
    return rc ? rc : hf_setup_new(&config, &kit->setup, NULL);
}

void code_kit_close(struct code_kit *kit)
{
    hf_setup_free(kit->setup);
    hf_surface_free(kit->surface);
    *kit = (struct code_kit){ 0 };
}

/* ---- the world: every answer is bought once, and is journaled as it is ------------- */

static const char *answer_to(const struct code_answer *what, int script)
{
    static const char *const values[] = { "2", "{\"n\":[1,2.5]}", "null", "\"text\"" };
    uint64_t hash = 1469598103934665603u + (uint64_t)script;
    for (const char *at = what->id; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    switch ((int)what->kind) {
    case HF_OP_NOW: return "1800000000000";
    case HF_OP_RANDOM: return hash % 2 ? "-42" : "4242424242";
    case HF_OP_SLEEP: return "null";
    case HF_OP_WAIT_SIGNAL: return "{\"go\":true}";
    case HF_OP_READ: return "{\"title\":\"Tides\"}";
    default: return values[(hash >> 9) % 4];
    }
}

static bool same_answer(const struct code_answer *a, const struct code_answer *b)
{
    return a->effect == b->effect && a->ordinal == b->ordinal && a->child == b->child;
}

/* The world does what is asked: if it has done so before, that is what must not happen. */
static int buy(struct code_turn *turn, const struct code_answer *wanted,
               struct code_answer **ret_answer)
{
    for (size_t i = 0; i < turn->answer_count; i++)
        if (same_answer(&turn->answers[i], wanted))
            return wrong(turn, "it was done a second time", wanted->id);
    if (turn->answer_count == CODE_ANSWERS)
        return wrong(turn, "more answers than there is room for", wanted->id);
    struct code_answer *answer = &turn->answers[turn->answer_count++];
    *answer = *wanted;
    answer->answer = answer_to(wanted, turn->script);
    answer->failed = wanted->kind == HF_OP_CALL && wanted->ordinal > 0 &&
                     sim_same(wanted->name, "sub") && wanted->effect % 3 == 0;
    *ret_answer = answer;
    return 0;
}

/* ---- what was bought, as a journal of the cell ------------------------------------- */

static const struct hf_failure failure = { .code = "disk", .message = { "full", 4 } };

static struct hf_tool_result result_of(const struct code_answer *answer)
{
    return (struct hf_tool_result){
        .call_id = answer->id,
        .outcome = answer->failed ? HF_TOOL_FAILURE : HF_TOOL_SUCCESS,
        .failure = answer->failed ? &failure : NULL,
        .value = answer->failed ? (struct hf_span){ "", 0 } : span(answer->answer),
    };
}

struct journal {
    struct hf_op_record records[CODE_ANSWERS];
    struct hf_tool_result results[CODE_ANSWERS];
    size_t count;
};

static bool is_call(enum hf_op_kind kind)
{
    return kind == HF_OP_CALL || kind == HF_OP_CALL_BATCH || kind == HF_OP_READ;
}

/* The answers of one operation are next to each other: no other is asked before it is
 * answered. */
static void read_journal(const struct code_turn *turn, uint64_t effect,
                         struct journal *ret_journal)
{
    struct journal *journal = ret_journal;
    size_t used = 0;
    journal->count = 0;
    for (size_t i = 0; i < turn->answer_count; i++) {
        const struct code_answer *answer = &turn->answers[i];
        if (answer->effect != effect || answer->ordinal == 0)
            continue;
        struct hf_op_record *last = &journal->records[journal->count];
        if (journal->count == 0 || last[-1].ordinal != answer->ordinal) {
            *last = (struct hf_op_record){ .ordinal = answer->ordinal,
                                           .kind = answer->kind,
                                           .name = answer->name[0] ? answer->name : NULL,
                                           .args = span(answer->args),
                                           .results = &journal->results[used] };
            journal->count++;
        }
        struct hf_op_record *record = &journal->records[journal->count - 1];
        if (is_call(answer->kind)) {
            journal->results[used++] = result_of(answer);
            record->result_count++;
        } else {
            record->answered = true;
            record->value = span(answer->answer);
        }
    }
}

/* The kept bytes of that hash; empty where there are none. */
static struct hf_span find_bindings(const struct code_turn *turn, const char *hash)
{
    for (size_t i = 0; hash && i < turn->binding_count; i++)
        if (sim_same(turn->bindings[i].hash, hash))
            return (struct hf_span){ turn->bindings[i].bytes.at,
                                     turn->bindings[i].bytes.len };
    return (struct hf_span){ "", 0 };
}

static int keep_bindings(struct code_turn *turn, const char *hash, struct hf_span bytes)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    if (find_bindings(turn, hash).len > 0)
        return 0;
    if (turn->binding_count == CODE_BINDINGS)
        return wrong(turn, "more bindings than there is room for", hash);
    struct code_bindings *kept = &turn->bindings[turn->binding_count];
    char *copy = alloc->realloc(alloc->user, NULL, bytes.len);
    if (!copy)
        return HF_ENOMEM;
    memcpy(copy, bytes.at, bytes.len);
    memcpy(kept->hash, hash, sizeof(kept->hash));
    kept->bytes = (struct hf_bytes){ alloc, copy, bytes.len };
    turn->binding_count++;
    return 0;
}

/* ---- a host at work ----------------------------------------------------------------- */

int code_open(const struct code_kit *kit, struct code_turn *durable,
              struct code_live *ret_live)
{
    struct hf_part part = { .content = span("do it") };
    struct hf_message message = { .id = "in", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "session",
                                   .turn_id = "turn",
                                   .inputs = &input,
                                   .input_count = 1,
                                   .given = span("{\"env\":{\"user\":\"ada\"}}"),
                                   .given_refs = span("{\"doc\":{\"id\":1}}") };
    struct hf_err err = { 0 };
    *ret_live = (struct code_live){ .durable = durable };
    int rc = durable->save.at ? hf_turn_restore(kit->setup,
                                                (struct hf_span){ durable->save.at,
                                                                  durable->save.len },
                                                NULL, &ret_live->turn, &err)
                              : hf_turn_new(kit->setup, &start, &ret_live->turn, &err);
    return rc ? wrong(durable, "a turn cannot be taken up", err.message) : 0;
}

void code_close(struct code_live *live)
{
    hf_cell_free(live->cell);
    hf_turn_free(live->turn);
    *live = (struct code_live){ 0 };
}

int code_save(struct code_live *live)
{
    struct hf_bytes save = { 0 };
    int rc = hf_turn_save(live->turn, &save, NULL);
    if (rc == 0) {
        hf_bytes_free(&live->durable->save);
        live->durable->save = save;
    }
    return rc;
}

static int finish(struct code_live *live)
{
    struct code_end end = { .outcome = live->effect.outcome->kind,
                            .records = hf_turn_record_count(live->turn),
                            .answers = live->durable->answer_count };
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < end.records; i++)
        rc = hf_record_chain(end.digest, hf_turn_record(live->turn, i), end.digest, NULL);
    live->durable->end = end;
    live->durable->finished = rc == 0;
    return rc;
}

/* The model is asked once for each call, too; its answer is journaled. */
static int ask_model(struct code_live *live)
{
    struct code_turn *turn = live->durable;
    struct code_answer wanted = { .effect = live->effect.id, .kind = HF_OP_CALL };
    struct code_answer *answer = NULL;
    sim_format(wanted.id, sizeof(wanted.id), "model %llu",
               (unsigned long long)live->effect.id);
    for (size_t i = 0; i < turn->answer_count && !answer; i++)
        if (same_answer(&turn->answers[i], &wanted))
            answer = &turn->answers[i];
    int rc = answer ? 0 : buy(turn, &wanted, &answer);
    if (rc)
        return rc;
    uint64_t i = live->effect.iteration;
    const char *said = i < REPLIES ? scripts[turn->script][i] : NULL;
    struct hf_part part = { .content = span(said ? said : "Enough.") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &part,
                                        .part_count = 1,
                                        .reason = HF_REASON_STOP };
    if (turn->script == 2 && live->effect.id == 1) {
        struct hf_llm_error busy = { .size = sizeof(busy),
                                     .kind = HF_LLM_TIMEOUT,
                                     .transient = true,
                                     .charge_safe = true };
        return hf_turn_llm_failed(live->turn, live->effect.id, &busy, NULL);
    }
    return hf_turn_llm_done(live->turn, live->effect.id, &response, NULL);
}

/* Starts the cell of the open effect, with the answers that an earlier host bought for it. The cell
 * copies all that it is given. `history` is the tool that the code protocol itself has. */
static int start_cell(struct code_live *live)
{
    static const char *const tools[] = { "add", "sub", "history" };
    struct journal journal;
    struct hf_err err = { 0 };
    char id[24];
    read_journal(live->durable, live->effect.id, &journal);
    sim_format(id, sizeof(id), "%llu", (unsigned long long)live->effect.id);
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = id,
                                   .code = live->effect.code,
                                   .bindings = find_bindings(live->durable,
                                                             live->effect.bindings),
                                   .given = live->effect.given,
                                   .given_refs = live->effect.given_refs,
                                   .tools = tools,
                                   .tool_count = 3,
                                   .journal = journal.records,
                                   .journal_count = journal.count };
    int rc = hf_cell_new(hf_engine_lua(), &start, &live->cell, &err);
    return rc ? wrong(live->durable, "a cell cannot be started", err.message) : 0;
}

static void fill_answer(struct code_answer *wanted, const struct hf_op *op,
                        const struct hf_op_call *call, size_t child)
{
    wanted->ordinal = op->ordinal;
    wanted->kind = op->kind;
    wanted->child = child;
    sim_format(wanted->id, sizeof(wanted->id), "%s", call ? call->id : op->id);
    sim_format(wanted->name, sizeof(wanted->name), "%s", op->name ? op->name : "");
    memcpy(wanted->args, op->args.at, op->args.len);
}

/* One answer to the operation that is out, from its last open call backwards. */
static int answer_op(struct code_live *live, const struct hf_op *op)
{
    struct code_answer wanted = { .effect = live->effect.id };
    struct code_answer *answer = NULL;
    size_t i = op->call_count;
    if (op->args.len >= CODE_TEXT)
        return wrong(live->durable, "arguments longer than there is room for", op->id);
    while (i > 0 && op->calls[i - 1].answered)
        i--;
    fill_answer(&wanted, op, i > 0 ? &op->calls[i - 1] : NULL, i);
    int rc = buy(live->durable, &wanted, &answer);
    if (rc)
        return rc;
    struct hf_tool_result result = result_of(answer);
    return i > 0 ? hf_cell_results(live->cell, op->ordinal, &result, 1, NULL)
                 : hf_cell_value(live->cell, op->ordinal, span(answer->answer), NULL);
}

/* To the next answer, or past the end of the cell. */
static int run_cell(struct code_live *live, bool *ret_saves)
{
    const struct hf_op *op = NULL;
    int rc = live->cell ? 0 : start_cell(live);
    do {
        if (rc == 0)
            rc = hf_cell_poll(live->cell, &op, NULL);
    } while (rc == 0 && op && op->kind == HF_OP_PRINT);
    if (rc || op)
        return rc ? rc : answer_op(live, op);
    const struct hf_exec_result *result = hf_cell_result(live->cell);
    if (hf_cell_end(live->cell, NULL) == HF_CELL_DIVERGED)
        return wrong(live->durable, "a cell does other things when it is run again",
                     result->message.at);
    rc = keep_bindings(live->durable, result->bindings_after,
                       hf_cell_bindings(live->cell));
    if (rc == 0)
        rc = hf_turn_exec_done(live->turn, live->effect.id, result, NULL);
    hf_cell_free(live->cell);
    live->cell = NULL;
    live->has_effect = false;
    *ret_saves = true;
    return rc;
}

static int next_effect(struct code_live *live)
{
    int rc = 0;
    while (rc == 0 && !live->has_effect) {
        rc = hf_turn_poll(live->turn, &live->effect, NULL);
        live->has_effect = live->effect.kind == HF_EFFECT_DONE ||
                           hf_effect_takes_response(live->effect.kind);
        if (rc == 0 && live->effect.kind == HF_EFFECT_NONE)
            rc = wrong(live->durable, "a turn has nothing to do", "and is not done");
    }
    return rc;
}

int code_advance(struct code_live *live, bool *ret_saves)
{
    int rc = next_effect(live);
    *ret_saves = false;
    if (rc)
        return rc;
    switch ((int)live->effect.kind) {
    case HF_EFFECT_DONE: return finish(live);
    case HF_EFFECT_EXEC_CODE: return run_cell(live, ret_saves);
    case HF_EFFECT_LLM_CALL: rc = ask_model(live); break;
    case HF_EFFECT_CHECKPOINT:
        rc = hf_turn_checkpoint_done(live->turn, live->effect.id, NULL, NULL);
        break;
    case HF_EFFECT_SLEEP:
        rc = hf_turn_sleep_over(live->turn, live->effect.id, NULL);
        break;
    default: rc = wrong(live->durable, "an effect that was not asked for", "?"); break;
    }
    live->has_effect = false;
    *ret_saves = true;
    return rc;
}

int code_run_whole(const struct code_kit *kit, struct code_turn *durable)
{
    struct code_live live;
    bool saves = false;
    int rc = code_open(kit, durable, &live);
    while (rc == 0 && !durable->finished)
        rc = code_advance(&live, &saves);
    code_close(&live);
    return rc;
}

void code_drop(struct code_turn *durable)
{
    hf_bytes_free(&durable->save);
    for (size_t i = 0; i < durable->binding_count; i++)
        hf_bytes_free(&durable->bindings[i].bytes);
    *durable = (struct code_turn){ 0 };
}
