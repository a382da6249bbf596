#include "turn/code_kit.h"

#include <stdio.h>
#include <string.h>

void code_start_budget(struct code_kit *code, const char *options, int64_t turns,
                       int64_t no_progress)
{
    memset(code, 0, sizeof(*code));
    kit_init(&code->kit);
    code->kit.config.protocol = hf_protocol_code();
    code->kit.config.turn_budget = turns;
    code->kit.config.no_progress_budget = no_progress;
    if (options) {
        assert_int_equal(hf_code_new(&code->kit.memory.alloc, kit_span(options),
                                     &code->own, &code->kit.err),
                         0);
        code->kit.config.protocol = code->own;
    }
    kit_start(&code->kit);
    kit_next(&code->kit);
    kit_forget(&code->kit);
}

void code_start(struct code_kit *code, const char *options)
{
    code_start_budget(code, options, 8, 0);
}

void code_fini(struct code_kit *code)
{
    hf_turn_free(code->kit.turn);
    code->kit.turn = NULL;
    hf_setup_free(code->kit.setup);
    code->kit.setup = NULL;
    hf_code_free(code->own);
    kit_fini(&code->kit);
}

static void answer(struct code_kit *code, const struct hf_part *parts, size_t count,
                   enum hf_reason reason)
{
    struct hf_llm_response response = {
        .size = sizeof(response), .parts = parts, .part_count = count, .reason = reason
    };
    kit_forget(&code->kit);
    assert_int_equal(code->kit.effect.kind, HF_EFFECT_LLM_CALL);
    assert_int_equal(
        hf_turn_llm_done(code->kit.turn, code->kit.effect.id, &response, &code->kit.err),
        0);
    kit_next(&code->kit);
}

void code_reply_parts(struct code_kit *code, const struct hf_part *parts, size_t count)
{
    answer(code, parts, count, HF_REASON_STOP);
}

void code_reply(struct code_kit *code, const char *text)
{
    struct hf_part part = { .content = kit_span(text) };
    answer(code, &part, 1, HF_REASON_STOP);
}

void code_reply_cut(struct code_kit *code, const char *text)
{
    struct hf_part part = { .content = kit_span(text) };
    answer(code, &part, 1, HF_REASON_OUTPUT_LIMIT);
}

void code_result(struct code_kit *code, const struct hf_exec_result *result)
{
    struct hf_exec_result whole = *result;
    whole.size = sizeof(whole);
    kit_forget(&code->kit);
    assert_int_equal(code->kit.effect.kind, HF_EFFECT_EXEC_CODE);
    assert_int_equal(
        hf_turn_exec_done(code->kit.turn, code->kit.effect.id, &whole, &code->kit.err),
        0);
    kit_next(&code->kit);
}

void code_printed(struct code_kit *code, const char *text)
{
    struct hf_observation seen = { .text = kit_span(text) };
    code_result(
        code, &(struct hf_exec_result){ .observations = &seen, .observation_count = 1 });
}

void code_error(struct code_kit *code, const char *text)
{
    code_result(code, &(struct hf_exec_result){ .error = kit_span(text) });
}

void code_finished(struct code_kit *code, const char *json)
{
    code_result(code, &(struct hf_exec_result){ .finish = kit_span(json) });
}

void code_nothing(struct code_kit *code)
{
    assert_int_equal(code->kit.effect.kind, HF_EFFECT_CHECKPOINT);
    kit_forget(&code->kit);
    kit_nothing(&code->kit);
    kit_next(&code->kit);
}

static bool named(const struct hf_record *record, const char *name)
{
    return record->kind == HF_RECORD_EVENT && strcmp(record->name, name) == 0;
}

const char *code_fix(struct code_kit *code, size_t n)
{
    static char out[2][64];
    for (uint64_t i = hf_turn_record_count(code->kit.turn); i > 0; i--) {
        const struct hf_message *message = hf_turn_record(code->kit.turn, i - 1)->message;
        if (!message || !message->origin || strcmp(message->origin->id, "code") != 0)
            continue;
        assert_int_equal(message->role, HF_ROLE_SYSTEM);
        assert_true(message->origin->transient);
        if (n-- > 0)
            continue;
        char *text = out[i % 2];
        snprintf(text, sizeof(out[0]), "%s %s %d", message->origin->event_type,
                 message->origin->cause, (int)message->origin->sequence);
        return text;
    }
    fail_msg("no correction");
    return NULL;
}

const char *code_event(struct code_kit *code, const char *name, size_t n)
{
    for (uint64_t i = hf_turn_record_count(code->kit.turn); i > 0; i--) {
        const struct hf_record *record = hf_turn_record(code->kit.turn, i - 1);
        if (named(record, name) && n-- == 0)
            return record->data.at;
    }
    fail_msg("no event %s", name);
    return NULL;
}

static void put(char *out, size_t room, const char *text, size_t len)
{
    size_t used = strlen(out);
    assert_true(used + len < room);
    memcpy(out + used, text, len);
    out[used + len] = '\0';
}

const char *code_prompt(struct code_kit *code)
{
    static char out[65536];
    static const char *const kinds[] = { NULL, "[attachment]", "[call]", "[result]",
                                         "[reasoning]" };
    struct hf_render *render = NULL;
    const struct hf_rendered *message = NULL;
    out[0] = '\0';
    assert_int_equal(code->kit.effect.kind, HF_EFFECT_LLM_CALL);
    assert_int_equal(
        hf_render_new(code->kit.turn, code->kit.effect.request, &render, &code->kit.err),
        0);
    for (size_t i = 0; (message = hf_render_message(render, i)) != NULL; i++) {
        put(out, sizeof(out), hf_role_name(message->role),
            strlen(hf_role_name(message->role)));
        for (size_t b = 0; b < message->block_count; b++) {
            const struct hf_block *block = &message->blocks[b];
            put(out, sizeof(out), b > 0 ? " / " : ": ", b > 0 ? 3 : 2);
            if (kinds[block->kind])
                put(out, sizeof(out), kinds[block->kind], strlen(kinds[block->kind]));
            else
                put(out, sizeof(out), block->text.at, block->text.len);
        }
        put(out, sizeof(out), "\n", 1);
    }
    hf_render_free(render);
    return out;
}
