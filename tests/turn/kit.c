#include "turn/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_span kit_span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

void kit_init(struct kit *kit)
{
    memset(kit, 0, sizeof(*kit));
    fail_alloc_init(&kit->memory, 0);
    kit->config = (struct hf_turn_config){ .size = sizeof(kit->config),
                                           .alloc = &kit->memory.alloc,
                                           .protocol = hf_protocol_standard(),
                                           .model = "model-1",
                                           .route = "prov/model-1",
                                           .turn_budget = 8 };
}

struct hf_message kit_message(const char *id, enum hf_role role,
                              const struct hf_part *part)
{
    return (struct hf_message){ .id = id, .role = role, .parts = part, .part_count = 1 };
}

void kit_start_with(struct kit *kit, const struct hf_turn_start *start)
{
    assert_int_equal(hf_surface_new(&kit->memory.alloc, kit_span("You help."),
                                    kit_span(KIT_TOOLS), &kit->surface, &kit->err),
                     0);
    kit->config.surface = kit->surface;
    assert_int_equal(hf_setup_new(&kit->config, &kit->setup, &kit->err), 0);
    assert_int_equal(hf_turn_new(kit->setup, start, &kit->turn, &kit->err), 0);
}

void kit_start(struct kit *kit)
{
    struct hf_part part = { .kind = HF_PART_TEXT, .content = kit_span("hi") };
    struct hf_message message = kit_message("m1", HF_ROLE_USER, &part);
    struct hf_record input = { .kind = HF_RECORD_MESSAGE, .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_start_with(kit, &start);
}

void kit_fini(struct kit *kit)
{
    hf_turn_free(kit->turn);
    hf_setup_free(kit->setup);
    hf_surface_free(kit->surface);
    assert_int_equal(kit->memory.live, 0);
}

static void put(struct kit *kit, const char *text)
{
    size_t len = strlen(text);
    assert_true(kit->used + len < sizeof(kit->log));
    memcpy(kit->log + kit->used, text, len + 1);
    kit->used += len;
}

static void put_n(struct kit *kit, const char *before, uint64_t number)
{
    char text[64];
    snprintf(text, sizeof(text), "%s%llu", before, (unsigned long long)number);
    put(kit, text);
}

static void put_span(struct kit *kit, struct hf_span text)
{
    char *copy = strndup(text.len ? text.at : "", text.len);
    put(kit, copy);
    free(copy);
}

/* The call that has this id, or this provider's id; the last one of those. */
static const struct hf_part *find_call(const struct kit *kit, const char *id)
{
    for (uint64_t i = hf_turn_record_count(kit->turn); i > 0; i--) {
        const struct hf_record *record = hf_turn_record(kit->turn, i - 1);
        if (!record || record->kind != HF_RECORD_MESSAGE)
            continue;
        for (size_t p = 0; p < record->message->part_count; p++) {
            const struct hf_part *part = &record->message->parts[p];
            if (part->kind == HF_PART_TOOL_CALL &&
                (strcmp(part->call_id, id) == 0 ||
                 (part->provider_id && strcmp(part->provider_id, id) == 0)))
                return part;
        }
    }
    return NULL;
}

const char *kit_id(const struct kit *kit, const char *provider_id)
{
    const struct hf_part *part = find_call(kit, provider_id);
    return part ? part->call_id : provider_id;
}

static const char *short_id(const struct kit *kit, const char *id)
{
    const struct hf_part *part = find_call(kit, id);
    return part && part->provider_id ? part->provider_id : id;
}

static void put_emit(struct kit *kit, const struct hf_emit *emit)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_EMITS(X)
#undef X
    };
    static const char *const outcomes[] = { "success", "failure", "cancelled",
                                            "unknown" };
    put(kit, "emit ");
    put(kit, words[emit->kind]);
    if (emit->kind == HF_EMIT_TOOL_CALL) {
        put(kit, " ");
        put(kit, short_id(kit, emit->call_id));
        put(kit, " ");
        put(kit, outcomes[emit->outcome]);
    } else if (emit->kind == HF_EMIT_ERROR) {
        put(kit, " ");
        put(kit, emit->name);
        put(kit, " ");
        put(kit, emit->code ? emit->code : "-");
    } else if (emit->kind == HF_EMIT_TOKEN_USAGE) {
        put_n(kit, " ", (uint64_t)emit->usage->input);
        put_n(kit, " of ", (uint64_t)emit->cumulative->input);
    } else if (emit->kind == HF_EMIT_TURN_OUTCOME) {
        put(kit, " ");
        put(kit, hf_outcome_name(emit->turn_outcome->kind));
    } else if (emit->text.len > 0) {
        put(kit, " ");
        put_span(kit, emit->text);
    }
}

static void put_calls(struct kit *kit, const struct hf_effect *effect)
{
    put_n(kit, "tools ", effect->id);
    for (size_t i = 0; i < effect->call_count; i++) {
        put(kit, " ");
        put(kit, short_id(kit, effect->calls[i].call_id));
        put(kit, ":");
        put(kit, effect->calls[i].tool);
        put(kit, effect->calls[i].answered ? "*" : "");
    }
}

static void put_effect(struct kit *kit, const struct hf_effect *effect)
{
    switch (effect->kind) {
    case HF_EFFECT_NONE: put(kit, "none"); break;
    case HF_EFFECT_SYNC:
        put_n(kit, "sync ", effect->id);
        put_n(kit, " update=", effect->update);
        break;
    case HF_EFFECT_LLM_CALL:
        put_n(kit, "llm ", effect->id);
        put_n(kit, " records=", effect->request->records);
        break;
    case HF_EFFECT_TOOL_CALLS: put_calls(kit, effect); break;
    case HF_EFFECT_EXEC_CODE:
        put_n(kit, "exec ", effect->id);
        put(kit, " ");
        put(kit, effect->language);
        break;
    case HF_EFFECT_CHECKPOINT:
        put_n(kit, "checkpoint ", effect->id);
        put(kit, effect->checkpoint == HF_CHECKPOINT_AFTER_WORK ? " after_work"
                                                                : " before_completion");
        break;
    case HF_EFFECT_SLEEP:
        put_n(kit, "sleep ", effect->id);
        put_n(kit, " ", (uint64_t)effect->duration_ms);
        if (effect->due_ms)
            put_n(kit, " due=", (uint64_t)effect->due_ms);
        break;
    case HF_EFFECT_CANCEL_LLM: put_n(kit, "cancel_llm ", effect->id); break;
    case HF_EFFECT_CANCEL_TOOLS: put_n(kit, "cancel_tools ", effect->id); break;
    case HF_EFFECT_CANCEL_EXEC: put_n(kit, "cancel_exec ", effect->id); break;
    case HF_EFFECT_LOG: put(kit, "log"); break;
    case HF_EFFECT_EMIT: put_emit(kit, effect->emit); break;
    case HF_EFFECT_PROGRESS:
        put_n(kit, "progress ", effect->from);
        put_n(kit, "-", effect->to);
        break;
    case HF_EFFECT_DONE:
        put(kit, "done ");
        put(kit, hf_outcome_name(effect->outcome->kind));
        put_n(kit, " ", effect->from);
        put_n(kit, "-", effect->to);
        if (effect->outcome->text.len > 0) {
            put(kit, " ");
            put_span(kit, effect->outcome->text);
        }
        break;
    }
    put(kit, "\n");
}

uint64_t kit_next(struct kit *kit)
{
    for (;;) {
        assert_int_equal(hf_turn_poll(kit->turn, &kit->effect, &kit->err), 0);
        put_effect(kit, &kit->effect);
        bool ends = kit->effect.kind == HF_EFFECT_NONE ||
                    kit->effect.kind == HF_EFFECT_DONE ||
                    hf_effect_takes_response(kit->effect.kind);
        if (ends)
            return kit->effect.id;
    }
}

void kit_forget(struct kit *kit)
{
    kit->used = 0;
    kit->log[0] = '\0';
}

void kit_expect(struct kit *kit, const char *lines)
{
    (void)kit_next(kit);
    assert_string_equal(kit->log, lines);
    kit_forget(kit);
}

void kit_reply_parts(struct kit *kit, const struct hf_part *parts, size_t count)
{
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = count,
                                        .reason = HF_REASON_STOP,
                                        .usage = { .input = 10, .output = 2 } };
    assert_int_equal(hf_turn_llm_done(kit->turn, kit->effect.id, &response, &kit->err),
                     0);
}

void kit_reply_text(struct kit *kit, const char *text)
{
    struct hf_part part = { .kind = HF_PART_TEXT, .content = kit_span(text) };
    kit_reply_parts(kit, &part, 1);
}

void kit_reply_calls(struct kit *kit, const char *id1, const char *id2)
{
    struct hf_part parts[2] = { { .kind = HF_PART_TOOL_CALL,
                                  .call_id = id1,
                                  .tool = "add",
                                  .content = kit_span("{\"a\":1}") },
                                { .kind = HF_PART_TOOL_CALL,
                                  .call_id = id2,
                                  .tool = "sub",
                                  .content = kit_span("{\"b\":2.50}") } };
    kit_reply_parts(kit, parts, id2 ? 2 : 1);
}

int kit_results(struct kit *kit, uint64_t id, const struct hf_tool_result *results,
                size_t count)
{
    struct hf_tool_result named[16];
    assert_in_range(count, 0, 16);
    for (size_t i = 0; i < count; i++) {
        named[i] = results[i];
        named[i].call_id = kit_id(kit, results[i].call_id);
    }
    return hf_turn_tool_results(kit->turn, id, named, count, &kit->err);
}

void kit_success(struct kit *kit, const char *call_id, const char *json)
{
    struct hf_tool_result result = { .call_id = call_id, .value = kit_span(json) };
    assert_int_equal(kit_results(kit, kit->effect.id, &result, 1), 0);
}

void kit_nothing(struct kit *kit)
{
    assert_int_equal(hf_turn_checkpoint_done(kit->turn, kit->effect.id, NULL, &kit->err),
                     0);
}

void kit_save(struct kit *kit, struct hf_bytes *ret_save)
{
    assert_int_equal(hf_turn_save(kit->turn, ret_save, &kit->err), 0);
}

void kit_cut(struct kit *kit)
{
    struct hf_bytes save = { 0 };
    struct hf_bytes again = { 0 };
    kit_save(kit, &save);
    hf_turn_free(kit->turn);
    kit->turn = NULL;
    struct hf_span bytes = { save.at, save.len };
    int rc = hf_turn_restore(kit->setup, bytes, NULL, &kit->turn, &kit->err);
    if (rc)
        print_error("restore: %s\n", kit->err.message);
    assert_int_equal(rc, 0);
    kit_save(kit, &again);
    assert_int_equal(save.len, again.len);
    assert_memory_equal(save.at, again.at, save.len);
    hf_bytes_free(&save);
    hf_bytes_free(&again);
}

const char *kit_part(struct kit *kit, uint64_t i, size_t p)
{
    const struct hf_record *record = hf_turn_record(kit->turn, i);
    assert_non_null(record);
    assert_non_null(record->message);
    assert_true(p < record->message->part_count);
    return record->message->parts[p].content.at;
}
