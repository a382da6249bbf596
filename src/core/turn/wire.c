/* The JSON form of effects and responses. An effect is one object with "effect" and what
 * its kind carries; a response is one object with "response". docs/internals/turn.md lists
 * them.
 */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "core/turn/json.h"
#include "core/turn/machine.h"
#include "core/turn/wire.h"

/* Effects */

static const char *const block_words[] = {
    [HF_BLOCK_TEXT] = "text",           [HF_BLOCK_ATTACHMENT] = "attachment",
    [HF_BLOCK_TOOL_CALL] = "tool_call", [HF_BLOCK_TOOL_RESULT] = "tool_result",
    [HF_BLOCK_REASONING] = "reasoning",
};

static void put_block(struct hf_turn_json_out *out, const struct hf_block *block)
{
    hf_json_object(&out->json);
    hf_json_put_str(&out->json, "kind", block_words[block->kind]);
    if (block->kind == HF_BLOCK_ATTACHMENT)
        hf_json_put_i64(&out->json, "attachment", (int64_t)block->attachment);
    else
        hf_turn_json_put_span(out, "text", block->text);
    hf_json_opt_str(&out->json, "call_id", block->call_id);
    hf_json_opt_str(&out->json, "tool", block->tool);
    hf_json_opt_str(&out->json, "provider_id", block->provider_id);
    if (block->replay.len > 0)
        hf_turn_json_put_span(out, "replay", block->replay);
    hf_json_end(&out->json);
}

static void put_rendered(struct hf_turn_json_out *out, const struct hf_render *render)
{
    const struct hf_rendered *message = NULL;
    const struct hf_attachment *attachment = NULL;
    hf_json_key(&out->json, "messages");
    hf_json_array(&out->json);
    for (size_t i = 0; (message = hf_render_message(render, i)) != NULL; i++) {
        hf_json_object(&out->json);
        hf_json_put_str(&out->json, "role", hf_role_name(message->role));
        hf_json_key(&out->json, "blocks");
        hf_json_array(&out->json);
        for (size_t b = 0; b < message->block_count; b++)
            put_block(out, &message->blocks[b]);
        hf_json_end(&out->json);
        if (message->cache_breakpoint)
            hf_json_put_bool(&out->json, "cache_breakpoint", true);
        hf_json_end(&out->json);
    }
    hf_json_end(&out->json);
    hf_json_key(&out->json, "attachments");
    hf_json_array(&out->json);
    for (size_t i = 0; (attachment = hf_render_attachment(render, i)) != NULL; i++) {
        hf_json_object(&out->json);
        hf_turn_json_members(out, &hf_s_attachment, attachment);
        hf_json_end(&out->json);
    }
    hf_json_end(&out->json);
}

static int put_request(struct hf_turn_json_out *out, struct hf_turn *turn,
                       const struct hf_request *request, struct hf_err *err)
{
    struct hf_render *render = NULL;
    int rc = hf_render_new(turn, request, &render, err);
    if (rc)
        return rc;
    hf_json_key(&out->json, "request");
    hf_json_object(&out->json);
    hf_turn_json_members(out, &hf_s_request, request);
    hf_turn_json_put_json(out, "options", request->options);
    hf_turn_json_put_json(out, "tools",
                          request->tools.len > 0 ? request->tools : hf_text_of("[]"));
    put_rendered(out, render);
    hf_json_end(&out->json);
    hf_render_free(render);
    return 0;
}

static int put_records(struct hf_turn_json_out *out, struct hf_turn *turn,
                       const struct hf_effect *effect, struct hf_err *err)
{
    hf_json_put_i64(&out->json, "from", (int64_t)effect->from);
    hf_json_put_i64(&out->json, "to", (int64_t)effect->to);
    hf_json_key(&out->json, "records");
    hf_json_array(&out->json);
    for (uint64_t i = effect->from; i < effect->to; i++) {
        struct hf_pin pin;
        const struct hf_record *record = hf_turn_pin(turn, i, &pin);
        if (!record)
            return hf_fail_plain(err, HF_EBASE);
        hf_json_object(&out->json);
        hf_turn_json_members(out, &hf_s_record, record);
        hf_json_end(&out->json);
        hf_pin_drop(&pin);
    }
    hf_json_end(&out->json);
    return 0;
}

static void put_calls(struct hf_turn_json_out *out, const struct hf_effect *effect)
{
    hf_json_key(&out->json, "calls");
    hf_json_array(&out->json);
    for (size_t i = 0; i < effect->call_count; i++) {
        hf_json_object(&out->json);
        hf_turn_json_members(out, &hf_s_tool_call, &effect->calls[i]);
        hf_json_end(&out->json);
    }
    hf_json_end(&out->json);
}

static int put_effect(struct hf_turn_json_out *out, struct hf_turn *turn,
                      const struct hf_effect *effect, struct hf_err *err)
{
    switch (effect->kind) {
    case HF_EFFECT_NONE:
    case HF_EFFECT_CANCEL_LLM:
    case HF_EFFECT_CANCEL_TOOLS:
    case HF_EFFECT_CANCEL_EXEC: return 0;
    case HF_EFFECT_SYNC: hf_json_put_bool(&out->json, "update", effect->update); return 0;
    case HF_EFFECT_LLM_CALL: return put_request(out, turn, effect->request, err);
    case HF_EFFECT_TOOL_CALLS: put_calls(out, effect); return 0;
    case HF_EFFECT_EXEC_CODE:
        hf_json_put_str(&out->json, "language", effect->language);
        hf_turn_json_put_span(out, "code", effect->code);
        hf_json_opt_str(&out->json, "bindings", effect->bindings);
        hf_turn_json_put_struct(out, "driver", &hf_s_driver, effect->driver);
        if (effect->given.len > 0)
            hf_turn_json_put_json(out, "given", effect->given);
        if (effect->given_refs.len > 0)
            hf_turn_json_put_json(out, "given_refs", effect->given_refs);
        return 0;
    case HF_EFFECT_CHECKPOINT:
        hf_json_put_str(&out->json, "checkpoint",
                        hf_turn_word(&hf_w_checkpoints, effect->checkpoint));
        hf_turn_json_put_struct(out, "outcome", &hf_s_outcome, effect->outcome);
        return 0;
    case HF_EFFECT_SLEEP:
        hf_json_put_i64(&out->json, "duration_ms", effect->duration_ms);
        hf_json_opt_i64(&out->json, "due_ms", effect->due_ms);
        return 0;
    case HF_EFFECT_LOG:
        hf_turn_json_put_struct(out, "log", &hf_s_log, effect->log);
        return 0;
    case HF_EFFECT_EMIT:
        hf_turn_json_put_struct(out, "emit", &hf_s_emit, effect->emit);
        return 0;
    case HF_EFFECT_PROGRESS: return put_records(out, turn, effect, err);
    case HF_EFFECT_DONE:
        hf_turn_json_put_struct(out, "outcome", &hf_s_outcome, effect->outcome);
        return put_records(out, turn, effect, err);
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}

int hf_turn_write_effect(struct hf_turn *turn, const struct hf_effect *effect,
                         struct hf_err *err)
{
    struct hf_arena scratch;
    struct hf_turn_json_out out = { .scratch = &scratch };
    hf_arena_init(&scratch, turn->alloc);
    hf_buf_reset(&turn->json);
    hf_json_begin(&out.json, &turn->json);
    hf_json_object(&out.json);
    hf_json_put_str(&out.json, "effect", hf_effect_name(effect->kind));
    hf_json_opt_i64(&out.json, "id", (int64_t)effect->id);
    hf_json_put_i64(&out.json, "iteration", (int64_t)effect->iteration);
    int rc = put_effect(&out, turn, effect, err);
    if (rc == 0) {
        hf_json_end(&out.json);
        rc = out.out_of_memory ? HF_ENOMEM : hf_buf_state(&turn->json);
        rc = rc ? hf_fail_plain(err, rc) : 0;
    }
    hf_arena_fini(&scratch);
    return rc;
}

/* An effect that could not be written was not yielded. */
static void take_back(struct hf_turn *turn, const struct hf_effect *effect)
{
    if (effect->kind == HF_EFFECT_DONE || hf_effect_takes_response(effect->kind)) {
        turn->delivered = false;
        return;
    }
    if (effect->emit && effect->emit == turn->reset) {
        turn->reset_due = true;
        return;
    }
    turn->now.queue--;
    turn->now.queue_count++;
    turn->now.queue_room++;
}

int hf_turn_poll_json(struct hf_turn *turn, const char **ret_json, struct hf_err *err)
{
    struct hf_effect effect;
    int rc = hf_turn_poll(turn, &effect, err);
    if (rc)
        return rc;
    if (effect.kind == HF_EFFECT_NONE) {
        hf_buf_fini(&turn->json); /* a waiting turn holds no text */
        *ret_json = NULL;
        return 0;
    }
    rc = hf_turn_write_effect(turn, &effect, err);
    if (rc)
        take_back(turn, &effect);
    else
        *ret_json = hf_buf_str(&turn->json);
    return rc;
}

/* Responses */

#define RESPONSES(X)                                                                     \
    X(SYNCED, synced)                                                                    \
    X(SYNC_FAILED, sync_failed)                                                          \
    X(LLM_DONE, llm_done)                                                                \
    X(LLM_FAILED, llm_failed)                                                            \
    X(TOOL_RESULTS, tool_results)                                                        \
    X(EXEC_DONE, exec_done)                                                              \
    X(CHECKPOINT_DONE, checkpoint_done)                                                  \
    X(SLEEP_NOTED, sleep_noted)                                                          \
    X(SLEEP_OVER, sleep_over)                                                            \
    X(CANCEL, cancel)                                                                    \
    X(FAIL, fail)                                                                        \
    X(FINISH, finish)                                                                    \
    X(ACCOUNT, account)

#define X(name, word) SAYS_##name,
enum says { RESPONSES(X) };
#undef X
#define X(name, word) #word,
static const char *const says_words[] = { RESPONSES(X) };
#undef X
static const struct hf_words w_says = { says_words,
                                        sizeof(says_words) / sizeof(says_words[0]) };

struct said {
    uint32_t response;
    uint64_t id;
    const struct hf_new_surface *surface;
    const struct hf_llm_response *reply;
    const struct hf_llm_error *error;
    const struct hf_tool_result *results;
    size_t result_count;
    const struct hf_exec_result *result;
    const struct hf_turn_delivery *delivery;
    hf_ms due_ms;
    const struct hf_evidence *evidence;
    const char *code;
    const char *message;
    const struct hf_outcome *outcome;
    const struct hf_usage *usage;
};

/* clang-format off */
static const struct hf_member new_surface[] = {
    { .key = 1, .type = HF_M_SPAN, .max = 8388608, HF_AT(hf_new_surface, prompt) },
    { .key = 2, .type = HF_M_JSON, .max = 8388608, HF_AT(hf_new_surface, tools) },
};
HF_SCHEMA(hf_s_new_surface, hf_new_surface, new_surface);

#define REF(s) .type = HF_M_REF, .of = &(s)
static const struct hf_member said_members[] = {
    { .key = 1, .type = HF_M_ENUM, .words = &w_says, HF_AT(said, response), .flags = HF_M_REQUIRED },
    { .key = 2, .type = HF_M_U64, HF_AT(said, id) },
    { .key = 3, REF(hf_s_new_surface), HF_AT(said, surface) },
    { .key = 4, REF(hf_s_llm_response), HF_AT(said, reply) },
    { .key = 5, REF(hf_s_llm_error), HF_AT(said, error) },
    { .key = 6, .type = HF_M_LIST, .of = &hf_s_tool_result, .max = 1024, HF_AT_LIST(said, results, result_count) },
    { .key = 7, REF(hf_s_exec_result), HF_AT(said, result) },
    { .key = 8, REF(hf_s_delivery), HF_AT(said, delivery) },
    { .key = 9, .type = HF_M_I64, HF_AT(said, due_ms) },
    { .key = 10, REF(hf_s_evidence), HF_AT(said, evidence) },
    { .key = 11, .type = HF_M_TEXT, .max = 191, HF_AT(said, code) },
    { .key = 12, .type = HF_M_TEXT, .max = 8192, HF_AT(said, message) },
    { .key = 13, REF(hf_s_outcome), HF_AT(said, outcome) },
    { .key = 14, REF(hf_s_usage), HF_AT(said, usage) },
};
static HF_SCHEMA(s_said, said, said_members);
/* clang-format on */

/* The surface of a JSON host belongs to the turn. One that says the same as the last is
 * not kept again. */
static int respond_synced(struct hf_turn *turn, const struct said *said,
                          struct hf_err *err)
{
    struct hf_surface *surface = NULL;
    int rc = hf_turn_expect(turn, HF_ON_SYNCED, said->id, err);
    if (rc || !said->surface)
        return rc ? rc : hf_turn_synced(turn, said->id, NULL, err);
    rc = hf_surface_new(turn->alloc, said->surface->prompt, said->surface->tools,
                        &surface, err);
    if (rc)
        return rc;
    struct hf_face face = surface->face;
    const struct hf_face *now = &turn->now.face;
    bool same = memcmp(face.prompt_hash, now->prompt_hash, 32) == 0 &&
                memcmp(face.tools_hash, now->tools_hash, 32) == 0;
    struct hf_surface kept = { .face = face };
    if (!same) {
        kept.face.prompt.at = hf_arena_copy(&turn->stay, face.prompt.at, face.prompt.len);
        kept.face.tools.at = hf_arena_copy(&turn->stay, face.tools.at, face.tools.len);
        kept.face.names.at = hf_arena_copy(&turn->stay, face.names.at, face.names.len);
        if (!kept.face.prompt.at || !kept.face.tools.at || !kept.face.names.at)
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_surface_free(surface);
    return rc ? rc : hf_turn_synced(turn, said->id, same ? NULL : &kept, err);
}

static int missing(struct hf_err *err, const char *member)
{
    return hf_fail(err, HF_EINVAL, member, "the response has no %s", member);
}

static int respond_llm(struct hf_turn *turn, const struct said *said, struct hf_err *err)
{
    if (said->response == SAYS_LLM_DONE) {
        if (!said->reply)
            return missing(err, "reply");
        struct hf_llm_response reply = *said->reply;
        reply.size = sizeof(reply);
        return hf_turn_llm_done(turn, said->id, &reply, err);
    }
    if (!said->error)
        return missing(err, "error");
    struct hf_llm_error error = *said->error;
    error.size = sizeof(error);
    return hf_turn_llm_failed(turn, said->id, &error, err);
}

static int respond_exec(struct hf_turn *turn, const struct said *said, struct hf_err *err)
{
    if (!said->result)
        return missing(err, "result");
    struct hf_exec_result result = *said->result;
    result.size = sizeof(result);
    return hf_turn_exec_done(turn, said->id, &result, err);
}

static int respond_checkpoint(struct hf_turn *turn, const struct said *said,
                              struct hf_err *err)
{
    if (!said->delivery)
        return hf_turn_checkpoint_done(turn, said->id, NULL, err);
    struct hf_turn_delivery delivery = *said->delivery;
    delivery.size = sizeof(delivery);
    return hf_turn_checkpoint_done(turn, said->id, &delivery, err);
}

static int respond(struct hf_turn *turn, const struct said *said, struct hf_err *err)
{
    uint64_t id = said->id;
    switch ((enum says)said->response) {
    case SAYS_SYNCED: return respond_synced(turn, said, err);
    case SAYS_SYNC_FAILED: return hf_turn_sync_failed(turn, id, said->message, err);
    case SAYS_LLM_DONE:
    case SAYS_LLM_FAILED: return respond_llm(turn, said, err);
    case SAYS_TOOL_RESULTS:
        return hf_turn_tool_results(turn, id, said->results, said->result_count, err);
    case SAYS_EXEC_DONE: return respond_exec(turn, said, err);
    case SAYS_CHECKPOINT_DONE: return respond_checkpoint(turn, said, err);
    case SAYS_SLEEP_NOTED: return hf_turn_sleep_noted(turn, id, said->due_ms, err);
    case SAYS_SLEEP_OVER: return hf_turn_sleep_over(turn, id, err);
    case SAYS_CANCEL: return hf_turn_cancel(turn, said->evidence, err);
    case SAYS_FAIL: return hf_turn_fail(turn, said->code, said->message, err);
    case SAYS_FINISH: return hf_turn_finish(turn, said->outcome, err);
    case SAYS_ACCOUNT: return hf_turn_account(turn, id, said->usage, err);
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}

int hf_turn_respond_json(struct hf_turn *turn, struct hf_span json, struct hf_err *err)
{
    struct hf_arena arena;
    struct said said = { .response = UINT32_MAX };
    size_t max = (size_t)HF_MAX_TURN_SAVE_BYTES;
    bool foul = false;
    int rc = hf_json_check_said(json, max, "response", &foul, err);
    if (rc)
        return rc;
    hf_arena_init(&arena, turn->alloc);
    rc = hf_turn_json_take(&arena, &s_said, json, &said, err);
    if (rc == 0 && said.response == UINT32_MAX)
        rc = missing(err, "response");
    /* What a model wrote is repaired; of a host it is an error, which the strict check names. */
    if (rc == 0 && foul && said.response != SAYS_LLM_DONE &&
        said.response != SAYS_LLM_FAILED)
        rc = hf_json_check(json, max, "response", err);
    if (rc == 0)
        rc = respond(turn, &said, err);
    hf_arena_fini(&arena);
    return rc;
}
