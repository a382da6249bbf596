#include "turn/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/code.h>

#include "core/turn/wire.h"
#include "support/unit.h"
#include "turn/cells.h"
#include "turn/lua_cells.h"
#include "turn/twin.h"

#define BASE_RECORDS 3

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number below n for this seed, effect and question. */
static uint64_t pick(const struct world *world, uint64_t id, uint64_t question,
                     uint64_t n)
{
    return mix(mix(world->seed * 1000 + id) + question) % n;
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

static int resolve(void *user, const uint8_t hash[32], struct hf_span *ret_blob)
{
    struct world *world = user;
    for (int i = 0; i < 2; i++) {
        const struct hf_face *face = &world->surfaces[i]->face;
        if (memcmp(hash, face->prompt_hash, 32) == 0)
            *ret_blob = face->prompt;
        else if (memcmp(hash, face->tools_hash, 32) == 0)
            *ret_blob = face->tools;
        else
            continue;
        return 0;
    }
    return HF_EBLOB;
}

/* Half of the seeds write code, by the protocol or by the tests' own. */
static const struct hf_protocol *protocol_of(struct world *world)
{
    struct hf_err err = { 0 };
    world->writes_code = world->seed % 4 == 3;
    world->runs_lua = world->writes_code && world->seed % 16 < 8;
    if (world->seed % 4 == 2)
        return cells_protocol();
    if (!world->writes_code)
        return hf_protocol_standard();
    if (world->seed % 8 == 3)
        return hf_protocol_code();
    must(hf_code_new(NULL,
                     span("{\"finish\":\"required\",\"schema\":{\"type\":\"object\"}}"),
                     &world->code, &err),
         &err);
    return world->code;
}

void world_open(struct world *world, uint64_t seed, const struct hf_alloc *alloc)
{
    struct hf_err err = { 0 };
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->alloc = alloc;
    pages_open(&world->pages);
    world->pages.tells_steps = pick(world, 0, 6, 2) == 1;
    hf_buf_init(&world->log, hf_alloc_system(), 1 << 26);
    must(hf_surface_new(NULL, span("Be brief."), span("[{\"name\":\"add\"}]"),
                        &world->surfaces[0], &err),
         &err);
    must(hf_surface_new(NULL, span("Be long."),
                        span("[{\"name\":\"add\"},{\"name\":\"sub\"}]"),
                        &world->surfaces[1], &err),
         &err);
    const struct hf_protocol *protocol = protocol_of(world);
    struct hf_turn_config config = {
        .size = sizeof(config),
        .alloc = alloc,
        .protocol = protocol,
        .surface = world->surfaces[0],
        .model = "m",
        .route = "r",
        .options = span("{\"temperature\": 0.10}"),
        .turn_budget = 1 + (int64_t)pick(world, 0, 1, world->runs_lua ? 12 : 6),
        .no_progress_budget = 2,
        .sync = pick(world, 0, 2, 2) == 1,
        .trace = pick(world, 0, 3, 4) == 1
    };
    int rc = HF_ENOMEM;
    while (rc == HF_ENOMEM)
        rc = hf_setup_new(&config, &world->setup, &err);
    must(rc, &err);
    for (int i = 0; i < BASE_RECORDS; i++) {
        struct hf_part part = { .content = span("from before") };
        struct hf_message message = { .id = i == 0   ? "h0"
                                            : i == 1 ? "h1"
                                                     : "h2",
                                      .parts = &part,
                                      .part_count = 1 };
        struct hf_record record = { .message = &message };
        if (i == 1)
            record = (struct hf_record){ .kind = HF_RECORD_EVENT,
                                         .name = "hf.code.step",
                                         .data = span("{\"step\":3,\"cell\":\"h\"}") };
        pages_store(&world->pages, &record);
    }
}

void world_close(struct world *world)
{
    hf_turn_free(world->turn);
    hf_turn_free(world->twin);
    hf_setup_free(world->setup);
    hf_code_free(world->code);
    hf_surface_free(world->surfaces[0]);
    hf_surface_free(world->surfaces[1]);
    hf_bytes_free(&world->end);
    hf_buf_fini(&world->log);
    pages_close(&world->pages);
}

int world_begin(struct world *world)
{
    struct hf_err err = { 0 };
    struct hf_base base = pages_base(&world->pages, BASE_RECORDS);
    struct hf_part part = { .content = span("do it") };
    struct hf_message message = { .id = "in", .parts = &part, .part_count = 1 };
    struct hf_record input = { .message = &message };
    struct hf_cause cause = { .id = "cause-1",
                              .event_type = "timer",
                              .text = span("tick") };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "session",
                                   .turn_id = "turn",
                                   .base = &base,
                                   .inputs = &input,
                                   .input_count = 1,
                                   .causes = &cause,
                                   .cause_count = pick(world, 0, 4, 2),
                                   .run_offset = pick(world, 0, 5, 3) };
    if (world->writes_code) {
        start.given = span("{\"env\":{\"user\":\"ada\"}}");
        start.given_refs = span("{\"doc\": {\"about\": \"a text\", \"id\": 1}}");
    }
    int rc = hf_turn_new(world->setup, &start, &world->turn, &err);
    if (rc != HF_ENOMEM)
        must(rc, &err);
    if (rc == 0)
        twin_begin(world, &start);
    return rc;
}

/* Answers */

static const char *reply_text(const struct world *world, uint64_t id)
{
    static const char *const texts[] = {
        "Done.",      "run: x = 1", "stall", "", "odd \xff bytes \xf0\x9f\x8c\xb1",
        "run: fail()"
    };
    static const char *const cells[] = {
        "Done.",
        "Hm.\n<lua>\nx = 1\n</lua>\nthen",
        "<lua>\nx = 1\n</lua>",
        "<lua>print(1)</lua>",
        "<lua>\nfinish({})\n</lua>",
        "See:\n<lua>\nx = ",
        "<python>\nx\n</python>",
        "odd \xff <lua>\n<lua>\ny \xf0\x9f\x8c\xb1\n</lua>",
        "```lua\nx\n```",
    };
    if (world->runs_lua && pick(world, id, 19, 3))
        return lua_cell_reply(pick(world, id, 11, 2 * LUA_CELL_COUNT));
    return world->writes_code ? cells[pick(world, id, 11, 9)]
                              : texts[pick(world, id, 11, 6)];
}

static int reply(struct world *world, uint64_t id, struct hf_err *err)
{
    static const char *const ids[] = { "a", "a", "", "b" };
    static const char *const args[] = { "{}", "{\"n\": 1.50}", "{oops",
                                        "[1, \"\\u00e9\"]" };
    struct hf_part parts[6];
    char call_id[8];
    size_t count = 0;
    size_t calls = pick(world, id, 10, 5);
    if (world->writes_code && pick(world, id, 17, 9))
        calls = 0;
    snprintf(call_id, sizeof(call_id), "c%d", (int)id);
    parts[count++] = (struct hf_part){ .content = span(reply_text(world, id)) };
    if (pick(world, id, 12, 3) == 0)
        parts[count++] = (struct hf_part){ .kind = HF_PART_REASONING,
                                           .content = span("because"),
                                           .route = "r",
                                           .replay = span("sig") };
    for (size_t i = 0; i < calls; i++)
        parts[count++ % 6] = (struct hf_part){
            .kind = HF_PART_TOOL_CALL,
            .call_id = pick(world, id, 20 + i, 2) ? call_id
                                                  : ids[pick(world, id, 30 + i, 4)],
            .tool = pick(world, id, 40 + i, 9) ? "add" : NULL,
            .content = span(args[pick(world, id, 50 + i, 4)])
        };
    struct hf_llm_response response = {
        .size = sizeof(response),
        .parts = parts,
        .part_count = count < 6 ? count : 6,
        .reason = pick(world, id, 13, 12) ? HF_REASON_STOP
                                          : (enum hf_reason)pick(world, id, 14, 8),
        .text_streamed = pick(world, id, 15, 2) == 1,
        .usage = { .input = (int64_t)pick(world, id, 16, 1000), .output = 7 },
        .response_id = "resp",
        .raw = span("raw reply"),
    };
    if (world->writes_code && pick(world, id, 18, 5) == 0)
        response.reason = HF_REASON_OUTPUT_LIMIT;
    return twin_llm_done(world, id, &response, err);
}

static int model(struct world *world, uint64_t id, struct hf_err *err)
{
    if (pick(world, id, 6, 4) != 0)
        return reply(world, id, err);
    struct hf_part begun[] = { { .kind = HF_PART_REASONING, .replay = span("half") },
                               { .content = span("It may be") } };
    struct hf_llm_error error = { .size = sizeof(error),
                                  .parts = begun,
                                  .part_count = pick(world, id, 10, 2) ? 2 : 0,
                                  .position = HF_LLM_AT_OUTPUT_STARTED,
                                  .request_id = "req",
                                  .kind = HF_LLM_TIMEOUT,
                                  .transient = pick(world, id, 7, 5) != 0,
                                  .charge_safe = pick(world, id, 8, 5) != 0,
                                  .cancelled = pick(world, id, 9, 15) == 0,
                                  .text_streamed = id % 2 == 0,
                                  .message = span("no answer"),
                                  .usage = { .input = 3 } };
    return twin_llm_failed(world, id, &error, err);
}

static int answer_call(struct world *world, uint64_t id, const struct hf_tool_call *call,
                       struct hf_err *err)
{
    uint64_t what = mix(world->seed + id * 7 + (uint64_t)call->call_id[5]) % 8;
    struct hf_failure failure = { .class_ = HF_FAILURE_IO,
                                  .code = "disk",
                                  .message = span("no space"),
                                  .raw = span("{\"errno\": 28}") };
    struct hf_intent intent = { .name = "note", .text = span("kept") };
    struct hf_attachment image = { .ref = "blob" };
    struct hf_part part = { .kind = HF_PART_ATTACHMENT, .attachment = &image };
    struct hf_tool_result result = { .call_id = call->call_id, .duration_ms = 12 };
    if (what == 0) {
        result.outcome = HF_TOOL_FAILURE;
        result.failure = &failure;
    } else if (what == 1) {
        result.outcome = HF_TOOL_CANCELLED;
        result.reason = span("not now");
    } else if (what == 2) {
        result.parts = &part;
        result.part_count = 1;
    } else {
        result.value = span(what == 3 ? "{\"$attachment\":{\"ref\":\"b\"}}"
                                      : "\"ok\\n\"");
        result.intents = &intent;
        result.intent_count = what == 4;
        if (what == 5 && world->seed % 5 == 0) {
            result.control = HF_CONTROL_FINISH;
            result.control_value = span("true");
        }
    }
    return twin_tool_result(world, id, &result, err);
}

/* The next open call, in an order of its own; the last one of a batch ends it. */
static int tools(struct world *world, const struct hf_effect *effect, struct hf_err *err)
{
    size_t start = pick(world, effect->id, 60, effect->call_count);
    for (size_t i = 0; i < effect->call_count; i++) {
        const struct hf_tool_call *call =
            &effect->calls[(start + i) % effect->call_count];
        if (!call->answered)
            return answer_call(world, effect->id, call, err);
    }
    return 0;
}

static int cell(struct world *world, const struct hf_effect *effect, struct hf_err *err)
{
    uint64_t id = effect->id;
    if (world->runs_lua) {
        struct hf_cell *run = lua_cell_run(world->turn, effect, world->seed,
                                           world->cut_cells);
        int rc = twin_exec_done(world, id, hf_cell_result(run), err);
        hf_cell_free(run);
        return rc;
    }
    struct hf_failure failure = { .code = "disk" };
    struct hf_tool_result calls[2] = {
        { .call_id = "1", .tool = "add", .value = span("1") },
        { .call_id = "2", .tool = "sub", .outcome = HF_TOOL_FAILURE, .failure = &failure }
    };
    struct hf_observation seen[2] = { { .text = span("printed"), .truncated = true },
                                      { .text = span("tw\xc3\xb6\nlines") } };
    struct hf_attachment image = { .ref = "blob" };
    struct hf_exec_result result = { .size = sizeof(result),
                                     .failed = pick(world, id, 70, 6) == 0,
                                     .message = span("no engine"),
                                     .calls = calls,
                                     .call_count = 1 + pick(world, id, 72, 2),
                                     .observations = seen,
                                     .observation_count = pick(world, id, 73, 3),
                                     .images = &image,
                                     .image_count = pick(world, id, 74, 4) == 0,
                                     .duration_ms = 5 };
    if (pick(world, id, 71, 4) == 0)
        result.finish = span(pick(world, id, 75, 2) ? "{\"v\": 1}" : "1");
    if (pick(world, id, 76, 4) == 0)
        result.error = span("it raised");
    if (pick(world, id, 77, 2) == 0) {
        result.bindings_after = pick(world, id, 78, 2) ? "hash-1" : "hash-2";
        result.bindings_delta = span("{\"x\": [1, 2]}");
    }
    if (pick(world, id, 79, 12) == 0) {
        calls[0].control = HF_CONTROL_FINISH;
        calls[0].control_value = span("true");
    }
    return twin_exec_done(world, id, &result, err);
}

static int checkpoint(struct world *world, uint64_t id, struct hf_err *err)
{
    struct hf_part part = { .content = span("and this") };
    struct hf_message message = { .id = "committed",
                                  .role = pick(world, id, 80, 2) ? HF_ROLE_USER
                                                                 : HF_ROLE_SYSTEM,
                                  .parts = &part,
                                  .part_count = 1 };
    struct hf_cause cause = { .id = "cause-1",
                              .event_type = "signal",
                              .text = span("now") };
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = pick(world, id, 81, 2),
                                         .transient = &message,
                                         .transient_count = pick(world, id, 82, 2),
                                         .causes = &cause,
                                         .cause_count = pick(world, id, 83, 2) };
    bool any = pick(world, id, 84, 3) == 0;
    return twin_checkpoint_done(world, id, any ? &delivery : NULL, err);
}

static int lever(struct world *world, uint64_t id, bool *ret_pulled, struct hf_err *err)
{
    uint64_t which = world->seed % 2 ? pick(world, id, 90, 30) : 99;
    *ret_pulled = which < 3;
    if (which == 0) {
        int rc = twin_cancel(world, err);
        *ret_pulled = rc != HF_EANSWERED; /* cancelled before: go on answering */
        return rc == HF_EANSWERED ? 0 : rc;
    }
    if (which == 1)
        return twin_fail(world, err);
    return which == 2 ? twin_finish(world, err) : 0;
}

/* A stored PROGRESS may become the base; the records are kept in any case. */
static int progress(struct world *world, const struct hf_effect *effect,
                    struct hf_err *err)
{
    for (uint64_t i = world->pages.stored; i < effect->to; i++)
        pages_store(&world->pages, hf_turn_record(world->turn, i));
    bool now = world->rebase == WORLD_REBASE_ALWAYS ||
               (world->rebase == WORLD_REBASE_SEED &&
                pick(world, effect->to, 95, 2) == 1) ||
               (world->rebase == WORLD_REBASE_SALT &&
                pick(world, effect->to, 100 + world->salt, 2) == 1);
    if (!now)
        return 0;
    struct hf_base base = pages_base(&world->pages, effect->to);
    int rc = hf_turn_rebase(world->turn, &base, err);
    if (rc == 0) {
        twin_rebase(world, &base);
        world->rebased++;
    }
    return rc;
}

void world_save_bare(struct world *world, struct hf_bytes *ret_save)
{
    struct hf_err err = { 0 };
    uint64_t count = world->turn->now.reported; /* the tail went out with DONE */
    for (uint64_t i = world->pages.stored; i < count; i++)
        pages_store(&world->pages, hf_turn_record(world->turn, i));
    struct hf_base base = pages_base(&world->pages, count);
    must(hf_turn_rebase(world->turn, &base, &err), &err);
    must(hf_turn_save(world->turn, ret_save, &err), &err);
}

static int answer(struct world *world, const struct hf_effect *effect, struct hf_err *err)
{
    bool pulled = false;
    uint64_t id = effect->id;
    if (effect->kind == HF_EFFECT_PROGRESS)
        return progress(world, effect, err);
    if (!hf_effect_takes_response(effect->kind))
        return 0;
    int rc = lever(world, id, &pulled, err);
    if (rc || (pulled && hf_turn_outstanding(world->turn) != id))
        return rc;
    switch (effect->kind) {
    case HF_EFFECT_SYNC:
        return pick(world, id, 96, 12)
                   ? twin_synced(world, id,
                                 pick(world, id, 97, 2) ? world->surfaces[1] : NULL, err)
                   : twin_sync_failed(world, id, "gone", err);
    case HF_EFFECT_LLM_CALL: return model(world, id, err);
    case HF_EFFECT_TOOL_CALLS: return tools(world, effect, err);
    case HF_EFFECT_EXEC_CODE: return cell(world, effect, err);
    case HF_EFFECT_CHECKPOINT: return checkpoint(world, id, err);
    case HF_EFFECT_SLEEP:
        return effect->due_ms == 0 ? twin_sleep_noted(world, id, 1000 + (hf_ms)id, err)
                                   : twin_sleep_over(world, id, err);
    case HF_EFFECT_NONE:
    case HF_EFFECT_CANCEL_LLM:
    case HF_EFFECT_CANCEL_TOOLS:
    case HF_EFFECT_CANCEL_EXEC:
    case HF_EFFECT_LOG:
    case HF_EFFECT_EMIT:
    case HF_EFFECT_PROGRESS:
    case HF_EFFECT_DONE: break;
    }
    return 0;
}

/* Cutting */

static int restore(struct world *world, struct hf_span save, struct hf_turn **ret_turn,
                   struct hf_err *err)
{
    struct hf_save_info info;
    int rc = hf_turn_peek(save, &info, err);
    if (rc)
        return rc;
    struct hf_base base = pages_base(&world->pages, info.base_count);
    struct hf_restore with = {
        .size = sizeof(with), .session_id = "session", .turn_id = "turn", .base = &base
    };
    struct hf_bytes json = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_restore *said = NULL;
    must(hf_restore_encode(NULL, &with, &json, err), err);
    must(hf_restore_decode(NULL, (struct hf_span){ json.at, json.len }, &owner, &said,
                           err),
         err);
    struct hf_base stored = *said->base;
    stored.user = base.user;
    stored.get = base.get;
    stored.put = base.put;
    with = *said;
    with.base = &stored;
    with.user = world;
    with.resolve = resolve;
    rc = hf_turn_restore(world->setup, save, &with, ret_turn, err);
    hf_decoded_free(owner);
    hf_bytes_free(&json);
    return rc;
}

/* The turn is replaced by what its save returns; on failure it is as it was. */
static int cut_turn(struct world *world, struct hf_err *err)
{
    struct hf_bytes save = { 0 };
    struct hf_bytes again = { 0 };
    struct hf_turn *turn = NULL;
    int rc = hf_turn_save(world->turn, &save, err);
    if (rc == 0)
        rc = restore(world, (struct hf_span){ save.at, save.len }, &turn, err);
    if (rc == 0)
        rc = hf_turn_save(turn, &again, err);
    if (rc == 0) {
        assert_int_equal(save.len, again.len);
        assert_memory_equal(save.at, again.at, save.len);
        hf_turn_free(world->turn);
        world->turn = turn;
        world->restores++;
    } else {
        hf_turn_free(turn);
    }
    hf_bytes_free(&again);
    hf_bytes_free(&save);
    return rc;
}

static bool comes_again(const struct hf_effect *effect)
{
    return effect->kind == HF_EFFECT_DONE || hf_effect_takes_response(effect->kind);
}

/* Whether to do it again. */
static bool again(struct world *world, int rc, const struct hf_err *err,
                  int64_t *patience)
{
    if (rc != HF_ENOMEM) {
        must(rc, err);
        return false;
    }
    world->refused++;
    return --*patience > 0;
}

#define PATIENTLY(call)                                                                  \
    do                                                                                   \
        rc = (call);                                                                     \
    while (again(world, rc, &err, &patience));                                           \
    if (rc)                                                                              \
    return rc

static int write_line(struct world *world, const struct hf_effect *effect,
                      int64_t patience)
{
    struct hf_err err = { 0 };
    int rc = 0;
    PATIENTLY(hf_turn_write_effect(world->turn, effect, &err));
    hf_buf_text(&world->log, hf_buf_str(&world->turn->json));
    hf_buf_char(&world->log, '\n');
    twin_poll(world, hf_buf_str(&world->turn->json));
    return 0;
}

/* The next effect, without what only a restored turn says: that what was shown of the model
 * call that is out is retracted. */
static int poll_effect(struct world *world, struct hf_effect *effect, struct hf_err *err)
{
    static const char why[] = "the turn was restored";
    int rc = hf_turn_poll(world->turn, effect, err);
    if (rc == 0 && effect->kind == HF_EFFECT_EMIT &&
        effect->emit->kind == HF_EMIT_ATTEMPT_RESET &&
        effect->emit->text.len == sizeof(why) - 1 &&
        memcmp(effect->emit->text.at, why, sizeof(why) - 1) == 0)
        rc = hf_turn_poll(world->turn, effect, err);
    return rc;
}

/* An effect that takes a response comes again, after what was not polled yet. */
static int cut_and_poll(struct world *world, struct hf_effect *effect, int64_t patience)
{
    struct hf_err err = { 0 };
    int rc = 0;
    bool same = comes_again(effect);
    uint64_t id = effect->id;
    PATIENTLY(cut_turn(world, &err));
    for (bool found = !same; !found; found = comes_again(effect)) {
        PATIENTLY(poll_effect(world, effect, &err));
        assert_int_not_equal(effect->kind, HF_EFFECT_NONE); /* it must come again */
        if (comes_again(effect))
            continue;
        world->effects++;
        rc = write_line(world, effect, patience);
        if (rc)
            return rc;
    }
    assert_int_equal(effect->id, id);
    return 0;
}

/* The line of an effect that came again must be the last line of the log. */
static void check_same_line(struct world *world, const struct hf_effect *effect)
{
    struct hf_err err = { 0 };
    int rc = hf_turn_write_effect(world->turn, effect, &err);
    if (rc == HF_ENOMEM)
        rc = hf_turn_write_effect(world->turn, effect, &err);
    must(rc, &err);
    const char *line = hf_buf_str(&world->turn->json);
    size_t len = strlen(line);
    assert_true(world->log.len > len);
    assert_memory_equal(world->log.at + world->log.len - 1 - len, line, len);
}

static int handle(struct world *world, struct hf_effect *effect, bool partly,
                  int64_t patience)
{
    struct hf_err err = { 0 };
    int rc = 0;
    uint64_t id = effect->id;
    bool batch = effect->kind == HF_EFFECT_TOOL_CALLS;
    bool sleeps = effect->kind == HF_EFFECT_SLEEP;
    PATIENTLY(answer(world, effect, &err));
    while ((batch || sleeps) && hf_turn_outstanding(world->turn) == id) {
        if (partly) {
            rc = cut_and_poll(world, effect, patience);
            if (rc)
                return rc;
        }
        if (sleeps && partly)
            assert_int_equal(effect->due_ms, 1000 + (hf_ms)id);
        if (sleeps) {
            PATIENTLY(twin_sleep_over(world, id, &err));
        } else {
            PATIENTLY(tools(world, effect, &err));
        }
    }
    return 0;
}

int world_run(struct world *world, enum world_cut cut, size_t at, int64_t patience)
{
    struct hf_err err = { 0 };
    struct hf_effect effect = { 0 };
    int rc = 0;
    while (!hf_turn_is_done(world->turn)) {
        assert_true(world->effects < 2000); /* every such turn ends */
        PATIENTLY(poll_effect(world, &effect, &err));
        assert_int_not_equal(effect.kind, HF_EFFECT_NONE);
        bool here = ++world->effects == at || at == SIZE_MAX;
        rc = write_line(world, &effect, patience);
        if (rc == 0 && here && cut == WORLD_CUT_POLLED) {
            rc = cut_and_poll(world, &effect, patience);
            if (rc == 0 && comes_again(&effect))
                check_same_line(world, &effect);
        }
        if (rc)
            return rc;
        world->cut_cells = here && cut == WORLD_CUT_PARTLY;
        rc = handle(world, &effect, here && cut == WORLD_CUT_PARTLY, patience);
        if (rc)
            return rc;
        if (here && cut == WORLD_CUT_ANSWERED) {
            effect.kind = HF_EFFECT_NONE;
            effect.id = 0;
            bool done = hf_turn_is_done(world->turn);
            rc = cut_and_poll(world, &effect, patience);
            if (rc == 0 && done) {
                PATIENTLY(hf_turn_poll(world->turn, &effect, &err));
            }
            if (rc)
                return rc;
        }
    }
    PATIENTLY(hf_turn_save(world->turn, &world->end, &err));
    twin_end(world);
    return 0;
}

/* Other processes */

void world_export_at(struct world *world, size_t at, struct hf_bytes *ret_save)
{
    struct hf_err err = { 0 };
    struct hf_effect effect = { 0 };
    while (world->effects < at) {
        must(hf_turn_poll(world->turn, &effect, &err), &err);
        world->effects++;
        assert_int_equal(write_line(world, &effect, 1), 0);
        assert_int_equal(handle(world, &effect, false, 1), 0);
    }
    must(hf_turn_export(world->turn, ret_save, &err), &err);
}

void world_resume(struct world *world, struct hf_span save)
{
    struct hf_err err = { 0 };
    must(hf_turn_restore(world->setup, save, NULL, &world->turn, &err), &err);
    bool tells_steps = world->pages.tells_steps;
    pages_close(&world->pages);
    pages_open(&world->pages);
    world->pages.tells_steps = tells_steps;
    for (uint64_t i = 0; i < hf_turn_base_count(world->turn); i++)
        pages_store(&world->pages, hf_turn_record(world->turn, i));
}
