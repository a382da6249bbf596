/* The shapes of sessions, their turns and their records: which fields an operation shows, in their
 * order, with the text that documents each. JSON and tables are made from them. */
#include "op/shapes/session.h"

/* clang-format off */
#define TEXT(member, ...)  HF_FIELD(TEXT, hf_session, member, false, __VA_ARGS__)
#define JSON(member, ...)  HF_FIELD(JSON, hf_session, member, false, __VA_ARGS__)
#define COUNT(member, ...) HF_FIELD(I64, hf_session, member, false, __VA_ARGS__)
#define MS(member, ...)    HF_FIELD(I64, hf_session, member, true, __VA_ARGS__)
#define FACT(name_, kind_, help_) { .name = name_, .kind = HF_FIELD_##kind_, .help = help_ }
/* A field under another name than the member's. */
#define AS(name_, kind_, type, member, ...)                                              \
    { .name = name_, .kind = HF_FIELD_##kind_, .offset = offsetof(struct type, member),  \
      .help = __VA_ARGS__ }

static const char *const relation_words[] = { "root", "child", "fork", "caused", NULL };

static const struct hf_field session_fields[] = {
    TEXT(session_id, "id of the session"),
    TEXT(tenant, "tenant; empty: none"),
    TEXT(agent, "agent whose workers may claim it"),
    COUNT(head_revision, "commits so far"),
    COUNT(record_count, "committed records"),
    HF_FIELD(DIGEST, hf_session, chain, false, "digest over the committed records"),
    JSON(config, "configuration, as the creator or a commit set it"),
    TEXT(turn_id, "the open turn; null: none"),
    MS(ready_at, "time since which a worker may claim it; null: held, or nothing to do"),
    MS(waiting_until, "time at which the open turn continues; null: at once"),
    TEXT(owner, "holder of the lease"),
    TEXT(owner_incarnation, "incarnation of the holder"),
    JSON(holder, "identity of the holder's process"),
    COUNT(lease_fence, "fence: number of the lease, raised by each claim"),
    MS(lease_ttl_ms, "term of the lease"),
    MS(lease_expires_at, "end of the lease, on the lease clock"),
    { .name = "lease_remaining_ms", .kind = HF_FIELD_I64,
      .offset = offsetof(struct hf_session, lease_remaining_ms),
      .help = "time left on the lease; negative after it lapsed",
      .null_by = offsetof(struct hf_session, owner) },
    JSON(cancel_request, "a cancellation of the running input that was asked for"),
    TEXT(relation, "relation to its parent or cause", .words = relation_words),
    TEXT(parent_id, "id of the parent session"),
    JSON(cause, "cause of the session"),
    JSON(labels, "labels, an object of texts"),
    MS(deleted_at, "time of its deletion"),
    MS(created_at, "time of its creation"),
    MS(updated_at, "time of the last commit"),
};
const struct hf_shape hf_session_shape = HF_SHAPE("session", session_fields);

#define TURN(kind, member, null, ...)                                                    \
    HF_FIELD(kind, hf_session_turn, member, null, __VA_ARGS__)
static const struct hf_field turn_fields[] = {
    TURN(TEXT, turn_id, false, "id of the turn: that of its first input"),
    TURN(I64, base_revision, false, "head revision that it began with"),
    TURN(I64, step, false, "steps that are stored"),
    TURN(I64, node_count, false, "provisional records that are stored"),
    TURN(I64, started_at, true, "time of its first claim"),
    TURN(I64, finished_at, true, "time of its end; null: it is open"),
    TURN(I64, active_ms, false, "time that its owners spent on it, as far as it was "
                                "read"),
    TURN(JSON, outcome, false, "outcome; null: it is open"),
};
const struct hf_shape hf_session_turn_shape = HF_SHAPE("turn", turn_fields);

#define SPENT(kind, member, ...) HF_FIELD(kind, hf_session_usage, member, false, __VA_ARGS__)
#define TOKENS(name, member, ...) AS(name, I64, hf_session_usage, usage.member, __VA_ARGS__)
static const struct hf_field usage_fields[] = {
    SPENT(TEXT, source, "source of the usage"),
    SPENT(TEXT, model, "model of the usage"),
    TOKENS("input", input, "uncached input tokens"),
    TOKENS("output", output, "output tokens"),
    TOKENS("cache_read", cache_read, "input tokens read from a cache"),
    TOKENS("cache_write", cache_write, "input tokens written to a cache"),
    TOKENS("reasoning", reasoning, "reasoning tokens, a part of output"),
};
const struct hf_shape hf_session_usage_shape = HF_SHAPE("usage", usage_fields);

static const char *const kind_words[] = { "message", "wake", NULL };
#define INPUT(name, kind, member, ...) AS(name, kind, hf_input_shown, input.member, __VA_ARGS__)
static const struct hf_field input_fields[] = {
    AS("kind", TEXT, hf_input_shown, kind, "kind of input", .words = kind_words),
    INPUT("work_id", TEXT, work_id, "id of its unit"),
    INPUT("status", TEXT, status, "status of its unit", .words = hf_status_words),
    INPUT("gate", TEXT, gate, "gate of a queued unit", .words = hf_gate_words),
    INPUT("payload", JSON, payload, "the message, or what woke the session"),
    INPUT("turn_id", TEXT, turn_id, "turn that took it; null: none yet"),
    INPUT("attempt_count", I64, attempt_count, "executions so far"),
    INPUT("crashes", I64, crashes, "claims lost in a row without a new step"),
    INPUT("created_at", I64, created_at, "time at which it was sent"),
};
const struct hf_shape hf_session_input_shape = HF_SHAPE("input", input_fields);

#define NODE(name, kind, member, ...) AS(name, kind, hf_node, member, __VA_ARGS__)
static const struct hf_field node_fields[] = {
    NODE("ordinal", I64, ordinal, "position in the history; -1: transient"),
    NODE("turn_id", TEXT, turn_id, "turn that wrote it"),
    NODE("provisional", BOOL, provisional, "true: a record of the open turn, not "
                                           "committed"),
    NODE("chain", DIGEST, chain, "digest over the history up to it"),
    NODE("record", JSON, json, "the record"),
};
const struct hf_shape hf_node_shape = HF_SHAPE("node", node_fields);

static const struct hf_field made_fields[] = {
    FACT("created", BOOL, "false: the session existed already"),
};
const struct hf_shape hf_session_made_shape = HF_SHAPE("session_made", made_fields);

#define ANSWER(kind, member, ...) HF_FIELD(kind, hf_turn_answer, member, false, __VA_ARGS__)
static const struct hf_field answer_fields[] = {
    ANSWER(TEXT, turn_id, "the turn"),
    ANSWER(TEXT, outcome, "outcome; null: the turn is open"),
    ANSWER(TEXT, text, "the answer, or the reason why there is none"),
    ANSWER(I64, input, "input tokens"),
    ANSWER(I64, output, "output tokens"),
};
const struct hf_shape hf_turn_answer_shape = HF_SHAPE("answer", answer_fields);

#define EFFECT(kind, member, null, ...)                                                  \
    HF_FIELD(kind, hf_session_effect, member, null, __VA_ARGS__)
static const char *const entry_words[] = { "started", "done", "failed", "unknown", NULL };
static const char *const recovery_words[] = { "safe", "keyed", "probe", "ask", NULL };
static const struct hf_field effect_fields[] = {
    EFFECT(TEXT, key, false, "number of the effect; of a tool call with its id and "
                             "attempt"),
    EFFECT(TEXT, kind, false, "llm_call or tool_call"),
    EFFECT(TEXT, status, false, "its status", .words = entry_words),
    EFFECT(TEXT, recovery, false, "what may be done after a worker is lost",
           .words = recovery_words),
    EFFECT(I64, attempt, false, "attempt of a tool call, from 1"),
    EFFECT(BOOL, taken_over, false, "performed again after a worker was lost"),
    EFFECT(I64, fence, false, "fence of the claim that began it"),
    EFFECT(I64, started_at, true, "time at which its intent was stored"),
    EFFECT(I64, settled_at, true, "time at which its outcome was stored; null: it is "
                                  "open"),
    EFFECT(I64, due_at, true, "time of the retry of a failure"),
    EFFECT(JSON, envelope, false, "hashes of the request"),
    EFFECT(JSON, outcome, false, "outcome"),
    EFFECT(JSON, usage, false, "tokens"),
};
const struct hf_shape hf_session_effect_shape = HF_SHAPE("effect", effect_fields);

static const struct hf_field sent_fields[] = {
    FACT("created", BOOL, "false: the unit existed already"),
    FACT("repeated", BOOL, "true: the same call was applied earlier; otherwise left out"),
    { .name = "answer", .kind = HF_FIELD_ROW, .of = &hf_turn_answer_shape,
      .help = "how its turn ended; left out without wait" },
};
const struct hf_shape hf_session_sent_shape = HF_SHAPE("session_sent", sent_fields);

static const struct hf_field turned_fields[] = {
    { .name = "effects", .kind = HF_FIELD_ROW, .of = &hf_session_effect_shape,
      .help = "an array: its model calls and tool calls in their order" },
    { .name = "usage", .kind = HF_FIELD_ROW, .of = &hf_session_usage_shape,
      .help = "an array: tokens that it spent" },
    { .name = "answer", .kind = HF_FIELD_ROW, .of = &hf_turn_answer_shape,
      .help = "outcome" },
};
const struct hf_shape hf_session_turned_shape = HF_SHAPE("session_turned", turned_fields);

static const struct hf_field shown_fields[] = {
    { .name = "turn", .kind = HF_FIELD_ROW, .of = &hf_session_turn_shape,
      .help = "the open turn; left out where there is none" },
    { .name = "usage", .kind = HF_FIELD_ROW, .of = &hf_session_usage_shape,
      .help = "an array: tokens of all committed turns" },
};
const struct hf_shape hf_session_shown_shape = HF_SHAPE("session_shown", shown_fields);
