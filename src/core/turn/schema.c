/* The tables, and nothing more. A key, once released, keeps its meaning for ever: saves
 * are read by it. New members take new keys at the end of their table. */
#include "core/turn/schema.h"

#include <stddef.h>

#include <holdfast/bounds.h>

#define X(name, word) #word,
static const char *const roles[] = { HF_ROLES(X) };
static const char *const parts[] = { HF_PARTS(X) };
static const char *const phases[] = { HF_PHASES(X) };
static const char *const origins[] = { HF_ORIGINS(X) };
static const char *const records[] = { HF_RECORDS(X) };
static const char *const tool_outcomes[] = { HF_TOOL_OUTCOMES(X) };
static const char *const controls[] = { HF_CONTROLS(X) };
static const char *const classes[] = { HF_FAILURE_CLASSES(X) };
static const char *const sources[] = { HF_FAILURE_SOURCES(X) };
static const char *const retries[] = { HF_FAILURE_RETRIES(X) };
static const char *const reasons[] = { HF_REASONS(X) };
static const char *const llm_failures[] = { HF_LLM_FAILURES(X) };
static const char *const llm_positions[] = { HF_LLM_POSITIONS(X) };
static const char *const outcomes[] = { HF_OUTCOMES(X) };
static const char *const checkpoints[] = { HF_CHECKPOINTS(X) };
static const char *const choices[] = { HF_TOOL_CHOICES(X) };
static const char *const emits[] = { HF_EMITS(X) };
static const char *const logs[] = { HF_LOGS(X) };
static const char *const effects[] = { HF_EFFECTS(X) };
static const char *const states[] = { HF_TURN_STATES(X) };
#undef X

/* clang-format off */
#define WORDS(array) { array, sizeof(array) / sizeof(array[0]) }
const struct hf_words hf_w_roles = WORDS(roles);
const struct hf_words hf_w_outcomes = WORDS(outcomes);
const struct hf_words hf_w_effects = WORDS(effects);
const struct hf_words hf_w_states = WORDS(states);
const struct hf_words hf_w_checkpoints = WORDS(checkpoints);
const struct hf_words hf_w_tool_outcomes = WORDS(tool_outcomes);
const struct hf_words hf_w_controls = WORDS(controls);
const struct hf_words hf_w_choices = WORDS(choices);
const struct hf_words hf_w_failures = WORDS(classes);
const struct hf_words hf_w_llm_failures = WORDS(llm_failures);
const struct hf_words hf_w_reasons = WORDS(reasons);
static const struct hf_words w_positions = WORDS(llm_positions);
static const struct hf_words w_parts = WORDS(parts);
static const struct hf_words w_phases = WORDS(phases);
static const struct hf_words w_origins = WORDS(origins);
static const struct hf_words w_records = WORDS(records);
static const struct hf_words w_sources = WORDS(sources);
static const struct hf_words w_retries = WORDS(retries);
static const struct hf_words w_emits = WORDS(emits);
static const struct hf_words w_logs = WORDS(logs);

#define NEED .flags = HF_M_REQUIRED
#define KEY .type = HF_M_TEXT, .max = 191
#define NOTE .type = HF_M_TEXT, .max = 1024
#define LONG .type = HF_M_SPAN, .max = 8388608
#define RAW .type = HF_M_JSON, .max = 8388608
#define ENUM(w) .type = HF_M_ENUM, .words = &(w)
#define BOOL .type = HF_M_BOOL
#define I64 .type = HF_M_I64
#define U64 .type = HF_M_U64
#define LIST(s, n) .type = HF_M_LIST, .of = &(s), .max = (n)
#define REF(s) .type = HF_M_REF, .of = &(s)

static const struct hf_member attachment[] = {
    { .key = 1, KEY, HF_AT(hf_attachment, ref), NEED },
    { .key = 2, KEY, HF_AT(hf_attachment, media_type) },
    { .key = 3, NOTE, HF_AT(hf_attachment, name) },
    { .key = 4, I64, HF_AT(hf_attachment, bytes) },
};
HF_SCHEMA(hf_s_attachment, hf_attachment, attachment);

static const struct hf_member part[] = {
    { .key = 1, ENUM(w_parts), HF_AT(hf_part, kind), NEED },
    { .key = 2, ENUM(w_phases), HF_AT(hf_part, phase) },
    { .key = 3, BOOL, HF_AT(hf_part, pruned) },
    { .key = 4, LONG, HF_AT(hf_part, content) },
    { .key = 5, NOTE, HF_AT(hf_part, call_id) },
    { .key = 6, KEY, HF_AT(hf_part, tool) },
    { .key = 7, NOTE, HF_AT(hf_part, route) },
    { .key = 8, LONG, HF_AT(hf_part, replay) },
    { .key = 9, REF(hf_s_attachment), HF_AT(hf_part, attachment) },
    { .key = 10, NOTE, HF_AT(hf_part, provider_id) },
};
HF_SCHEMA(hf_s_part, hf_part, part);

static const struct hf_member origin[] = {
    { .key = 1, ENUM(w_origins), HF_AT(hf_origin, kind), NEED },
    { .key = 2, BOOL, HF_AT(hf_origin, transient) },
    { .key = 3, KEY, HF_AT(hf_origin, id), NEED },
    { .key = 4, KEY, HF_AT(hf_origin, event_type) },
    { .key = 5, NOTE, HF_AT(hf_origin, cause) },
    { .key = 6, I64, HF_AT(hf_origin, sequence) },
};
HF_SCHEMA(hf_s_origin, hf_origin, origin);

#define MESSAGE(id_flags)                                                                \
    { .key = 1, .type = HF_M_TEXT, .max = 1024, HF_AT(hf_message, id), .flags = id_flags }, \
    { .key = 2, ENUM(hf_w_roles), HF_AT(hf_message, role), NEED },                       \
    { .key = 3, LIST(hf_s_part, 262144), HF_AT_LIST(hf_message, parts, part_count) },    \
    { .key = 4, REF(hf_s_origin), HF_AT(hf_message, origin) },                           \
    { .key = 5, NOTE, HF_AT(hf_message, response_id) },                                  \
    { .key = 6, NOTE, HF_AT(hf_message, model) }
static const struct hf_member message[] = { MESSAGE(HF_M_REQUIRED) };
HF_SCHEMA(hf_s_message, hf_message, message);
static const struct hf_member draft[] = { MESSAGE(0) };
HF_SCHEMA(hf_s_draft, hf_message, draft);

static const struct hf_member record[] = {
    { .key = 1, ENUM(w_records), HF_AT(hf_record, kind), NEED },
    { .key = 2, REF(hf_s_message), HF_AT(hf_record, message) },
    { .key = 3, KEY, HF_AT(hf_record, name) },
    { .key = 4, RAW, HF_AT(hf_record, data), .flags = HF_M_DEEP },
};
HF_SCHEMA(hf_s_record, hf_record, record);

static const struct hf_member cause[] = {
    { .key = 1, KEY, HF_AT(hf_cause, id), NEED },
    { .key = 2, KEY, HF_AT(hf_cause, event_type) },
    { .key = 3, NOTE, HF_AT(hf_cause, origin) },
    { .key = 4, LONG, HF_AT(hf_cause, text) },
};
HF_SCHEMA(hf_s_cause, hf_cause, cause);

static const struct hf_member usage[] = {
    { .key = 1, I64, HF_AT(hf_usage, input) },
    { .key = 2, I64, HF_AT(hf_usage, output) },
    { .key = 3, I64, HF_AT(hf_usage, cache_read) },
    { .key = 4, I64, HF_AT(hf_usage, cache_write) },
    { .key = 5, I64, HF_AT(hf_usage, reasoning) },
};
const struct hf_schema hf_s_usage = { "hf_usage", sizeof(struct hf_usage), usage, 5, true };

static const struct hf_member evidence[] = {
    { .key = 1, NOTE, HF_AT(hf_evidence, request_id), NEED },
    { .key = 2, NOTE, HF_AT(hf_evidence, origin) },
    { .key = 3, NOTE, HF_AT(hf_evidence, reason) },
};
HF_SCHEMA(hf_s_evidence, hf_evidence, evidence);

static const struct hf_member failure[] = {
    { .key = 1, ENUM(hf_w_failures), .offset = offsetof(struct hf_failure, class_),
      .name = "class", NEED },
    { .key = 2, ENUM(w_sources), HF_AT(hf_failure, source), NEED },
    { .key = 3, ENUM(w_retries), HF_AT(hf_failure, retry), NEED },
    { .key = 4, I64, HF_AT(hf_failure, after_ms) },
    { .key = 5, I64, HF_AT(hf_failure, attempts) },
    { .key = 6, KEY, HF_AT(hf_failure, code), NEED },
    { .key = 7, LONG, HF_AT(hf_failure, message) },
    { .key = 8, RAW, HF_AT(hf_failure, raw) },
};
HF_SCHEMA(hf_s_failure, hf_failure, failure);

static const struct hf_member intent[] = {
    { .key = 1, KEY, HF_AT(hf_intent, name), NEED },
    { .key = 2, BOOL, HF_AT(hf_intent, failed) },
    { .key = 3, LONG, HF_AT(hf_intent, text) },
};
static HF_SCHEMA(s_intent, hf_intent, intent);

static const struct hf_member tool_result[] = {
    { .key = 1, NOTE, HF_AT(hf_tool_result, call_id), NEED },
    { .key = 2, KEY, HF_AT(hf_tool_result, tool) },
    { .key = 3, ENUM(hf_w_tool_outcomes), HF_AT(hf_tool_result, outcome), NEED },
    { .key = 4, ENUM(hf_w_controls), HF_AT(hf_tool_result, control) },
    { .key = 5, RAW, HF_AT(hf_tool_result, value) },
    { .key = 6, REF(hf_s_failure), HF_AT(hf_tool_result, failure) },
    { .key = 7, LONG, HF_AT(hf_tool_result, reason) },
    { .key = 8, RAW, HF_AT(hf_tool_result, control_value) },
    { .key = 9, KEY, HF_AT(hf_tool_result, frame_key) },
    { .key = 10, LONG, HF_AT(hf_tool_result, task) },
    { .key = 11, LIST(hf_s_part, 1024), HF_AT_LIST(hf_tool_result, parts, part_count) },
    { .key = 12, LIST(s_intent, 64), HF_AT_LIST(hf_tool_result, intents, intent_count) },
    { .key = 13, I64, HF_AT(hf_tool_result, duration_ms) },
};
HF_SCHEMA(hf_s_tool_result, hf_tool_result, tool_result);

static const struct hf_member tool_call[] = {
    { .key = 1, NOTE, HF_AT(hf_tool_call, call_id), NEED },
    { .key = 2, KEY, HF_AT(hf_tool_call, tool), NEED },
    { .key = 3, LONG, HF_AT(hf_tool_call, args) },
    { .key = 4, NOTE, HF_AT(hf_tool_call, route) },
    { .key = 5, LONG, HF_AT(hf_tool_call, replay) },
    { .key = 6, BOOL, HF_AT(hf_tool_call, answered) },
    { .key = 7, REF(hf_s_tool_result), HF_AT(hf_tool_call, result) },
};
HF_SCHEMA(hf_s_tool_call, hf_tool_call, tool_call);

static const struct hf_member outcome[] = {
    { .key = 1, ENUM(hf_w_outcomes), HF_AT(hf_outcome, kind), NEED },
    { .key = 2, LONG, HF_AT(hf_outcome, text) },
    { .key = 3, RAW, HF_AT(hf_outcome, value) },
    { .key = 4, KEY, HF_AT(hf_outcome, tool) },
    { .key = 5, KEY, HF_AT(hf_outcome, frame_key) },
    { .key = 6, LONG, HF_AT(hf_outcome, task) },
    { .key = 7, REF(hf_s_evidence), HF_AT(hf_outcome, evidence) },
    { .key = 8, REF(hf_s_message), HF_AT(hf_outcome, message) },
};
HF_SCHEMA(hf_s_outcome, hf_outcome, outcome);

static const struct hf_member driver[] = {
    { .key = 1, KEY, HF_AT(hf_driver_state, owner), NEED },
    { .key = 2, LONG, HF_AT(hf_driver_state, data) },
};
HF_SCHEMA(hf_s_driver, hf_driver_state, driver);

/* Without the blobs, which the hashes mean. */
static const struct hf_member request[] = {
    { .key = 1, KEY, HF_AT(hf_request, model), NEED },
    { .key = 2, NOTE, HF_AT(hf_request, route) },
    { .key = 3, .type = HF_M_HASH, HF_AT(hf_request, prompt_hash) },
    { .key = 4, .type = HF_M_HASH, HF_AT(hf_request, tools_hash) },
    { .key = 5, .type = HF_M_HASH, HF_AT(hf_request, options_hash) },
    { .key = 6, U64, HF_AT(hf_request, records) },
    { .key = 7, U64, HF_AT(hf_request, causes) },
    { .key = 8, U64, HF_AT(hf_request, iteration) },
    { .key = 9, ENUM(hf_w_choices), HF_AT(hf_request, tool_choice), NEED },
    { .key = 10, .type = HF_M_U32, HF_AT(hf_request, render_version) },
    { .key = 11, .type = HF_M_U32, HF_AT(hf_request, attempt) },
    { .key = 12, REF(hf_s_driver), HF_AT(hf_request, driver) },
};
HF_SCHEMA(hf_s_request, hf_request, request);

static const struct hf_member llm_response[] = {
    { .key = 1, LIST(hf_s_part, 1024), HF_AT_LIST(hf_llm_response, parts, part_count) },
    { .key = 2, ENUM(hf_w_reasons), HF_AT(hf_llm_response, reason), NEED },
    { .key = 3, BOOL, HF_AT(hf_llm_response, text_streamed) },
    { .key = 4, .type = HF_M_STRUCT, .of = &hf_s_usage, HF_AT(hf_llm_response, usage) },
    { .key = 5, NOTE, HF_AT(hf_llm_response, response_id) },
    { .key = 6, NOTE, HF_AT(hf_llm_response, model) },
    { .key = 7, LONG, HF_AT(hf_llm_response, raw) },
};
HF_SCHEMA(hf_s_llm_response, hf_llm_response, llm_response);

static const struct hf_member llm_error[] = {
    { .key = 1, ENUM(hf_w_llm_failures), HF_AT(hf_llm_error, kind), NEED },
    { .key = 2, BOOL, HF_AT(hf_llm_error, transient) },
    { .key = 3, BOOL, HF_AT(hf_llm_error, charge_safe) },
    { .key = 4, BOOL, HF_AT(hf_llm_error, cancelled) },
    { .key = 5, BOOL, HF_AT(hf_llm_error, text_streamed) },
    { .key = 6, I64, HF_AT(hf_llm_error, retry_after_ms) },
    { .key = 7, NOTE, HF_AT(hf_llm_error, code) },
    { .key = 8, LONG, HF_AT(hf_llm_error, message) },
    { .key = 9, LONG, HF_AT(hf_llm_error, raw) },
    { .key = 10, .type = HF_M_STRUCT, .of = &hf_s_usage, HF_AT(hf_llm_error, usage) },
    { .key = 11, LIST(hf_s_part, 1024), HF_AT_LIST(hf_llm_error, parts, part_count) },
    { .key = 12, ENUM(w_positions), HF_AT(hf_llm_error, position) },
    { .key = 13, NOTE, HF_AT(hf_llm_error, request_id) },
};
HF_SCHEMA(hf_s_llm_error, hf_llm_error, llm_error);

static const struct hf_member observation[] = {
    { .key = 1, LONG, HF_AT(hf_observation, text) },
    { .key = 2, BOOL, HF_AT(hf_observation, truncated) },
};
HF_SCHEMA(hf_s_observation, hf_observation, observation);

static const struct hf_member exec_result[] = {
    { .key = 1, BOOL, HF_AT(hf_exec_result, failed) },
    { .key = 2, BOOL, HF_AT(hf_exec_result, unknown) },
    { .key = 3, LONG, HF_AT(hf_exec_result, message) },
    { .key = 4, LONG, HF_AT(hf_exec_result, error) },
    { .key = 5, LIST(hf_s_observation, 65536), HF_AT_LIST(hf_exec_result, observations, observation_count) },
    { .key = 6, LIST(hf_s_tool_result, 65536), HF_AT_LIST(hf_exec_result, calls, call_count) },
    { .key = 7, LIST(hf_s_attachment, 1024), HF_AT_LIST(hf_exec_result, images, image_count) },
    { .key = 8, RAW, HF_AT(hf_exec_result, finish) },
    { .key = 9, RAW, HF_AT(hf_exec_result, bindings_delta) },
    { .key = 10, KEY, HF_AT(hf_exec_result, bindings_before) },
    { .key = 11, KEY, HF_AT(hf_exec_result, bindings_after) },
    { .key = 12, I64, HF_AT(hf_exec_result, duration_ms) },
    { .key = 13, .type = HF_M_SPAN, .max = 4096, HF_AT(hf_exec_result, variables) },
    { .key = 14, BOOL, HF_AT(hf_exec_result, cancelled) },
};
HF_SCHEMA(hf_s_exec_result, hf_exec_result, exec_result);

static const struct hf_member delivery[] = {
    { .key = 1, LIST(hf_s_message, 1024), HF_AT_LIST(hf_turn_delivery, committed, committed_count) },
    { .key = 2, LIST(hf_s_draft, 1024), HF_AT_LIST(hf_turn_delivery, messages, message_count) },
    { .key = 3, LIST(hf_s_draft, 1024), HF_AT_LIST(hf_turn_delivery, transient, transient_count) },
    { .key = 4, LIST(hf_s_cause, 1024), HF_AT_LIST(hf_turn_delivery, causes, cause_count) },
};
HF_SCHEMA(hf_s_delivery, hf_turn_delivery, delivery);

static const struct hf_member emit[] = {
    { .key = 1, ENUM(w_emits), HF_AT(hf_emit, kind), NEED },
    { .key = 2, U64, HF_AT(hf_emit, iteration) },
    { .key = 3, LONG, HF_AT(hf_emit, text) },
    { .key = 4, KEY, HF_AT(hf_emit, name) },
    { .key = 5, NOTE, HF_AT(hf_emit, code) },
    { .key = 6, KEY, HF_AT(hf_emit, failure) },
    { .key = 7, NOTE, HF_AT(hf_emit, call_id) },
    { .key = 8, KEY, HF_AT(hf_emit, tool) },
    { .key = 9, LONG, HF_AT(hf_emit, tools) },
    { .key = 10, RAW, HF_AT(hf_emit, data) },
    { .key = 11, U64, HF_AT(hf_emit, records) },
    { .key = 12, U64, HF_AT(hf_emit, attempt) },
    { .key = 13, I64, HF_AT(hf_emit, duration_ms) },
    { .key = 14, BOOL, HF_AT(hf_emit, retryable) },
    { .key = 15, ENUM(hf_w_tool_outcomes), HF_AT(hf_emit, outcome) },
    { .key = 16, REF(hf_s_usage), HF_AT(hf_emit, usage) },
    { .key = 17, REF(hf_s_usage), HF_AT(hf_emit, cumulative) },
    { .key = 18, REF(hf_s_outcome), HF_AT(hf_emit, turn_outcome) },
    { .key = 19, ENUM(w_positions), HF_AT(hf_emit, position) },
    { .key = 20, NOTE, HF_AT(hf_emit, request_id) },
};
HF_SCHEMA(hf_s_emit, hf_emit, emit);

static const struct hf_member log_line[] = {
    { .key = 1, ENUM(w_logs), HF_AT(hf_log, kind), NEED },
    { .key = 2, U64, HF_AT(hf_log, iteration) },
    { .key = 3, U64, HF_AT(hf_log, effect_id) },
    { .key = 4, LONG, HF_AT(hf_log, text) },
};
HF_SCHEMA(hf_s_log, hf_log, log_line);
/* clang-format on */
