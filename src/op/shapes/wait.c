/* The shapes of waits, and of the answers of their operations: which fields are shown, in their
 * order, with the text that documents each. JSON and tables are made from them. */
#include "op/shapes/wait.h"

/* clang-format off */
#define TEXT(member, ...) HF_FIELD(TEXT, hf_wait, member, false, __VA_ARGS__)
#define JSON(member, ...) HF_FIELD(JSON, hf_wait, member, false, __VA_ARGS__)
#define MS(member, ...)   HF_FIELD(I64, hf_wait, member, true, __VA_ARGS__)
#define FACT(name_, kind_, help_) { .name = name_, .kind = HF_FIELD_##kind_, .help = help_ }

static const char *const kind_words[] = { "tool", "approval", "signal", "timer",
"custom", NULL };
static const char *const state_words[] = { "open", "resolved", "cancelled", "timed_out", NULL };
static const char *const policy_words[] = { "result", "fail_turn", "deny", "approve",
"next",
                                            NULL };
static const char *const cancel_words[] = { "requested", "already_requested",
                                            "completed_before", NULL };

static const struct hf_field wait_fields[] = {
    TEXT(wait_id, "id of the wait"),
    TEXT(session_id, "session whose turn waits"),
    TEXT(turn_id, "turn that waits"),
    TEXT(tenant, "tenant; empty: none"),
    TEXT(agent, "workers of this agent continue the turn"),
    TEXT(kind, "what is waited for", .words = kind_words),
    TEXT(name, "id of the effect that waits, or name of the signal"),
    TEXT(state, "state: open, or how it ended", .words = state_words),
    JSON(asked, "question, call and allowed edits"),
    TEXT(answerer, "the actor that may answer; null: any"),
    TEXT(policy, "what the deadline does; null: a timer", .words = policy_words),
    TEXT(next_answerer, "who may answer after the deadline"),
    TEXT(next_policy, "what the next answerer's deadline does", .words = policy_words),
    TEXT(escalate, "form of the escalation: event or work:KIND"),
    JSON(outcome, "outcome; null: it is open"),
    TEXT(actor_kind, "kind of the actor that ended it"),
    TEXT(actor, "the actor that ended it"),
    MS(deadline_at, "time at which its policy applies; for a timer its due time"),
    MS(escalate_at, "time of its escalation; null: none, or escalated"),
    MS(opened_at, "time at which the turn began to wait; null: it was answered earlier"),
    MS(closed_at, "time of its end"),
};
const struct hf_shape hf_wait_shape = HF_SHAPE("wait", wait_fields);

static const struct hf_field resolved_fields[] = {
    FACT("accepted", BOOL, "this answer is the outcome; false: an earlier one is"),
};
const struct hf_shape hf_wait_resolved_shape = HF_SHAPE("resolved", resolved_fields);

static const struct hf_field revoked_fields[] = {
    FACT("revoked", I64, "waits that became cancelled"),
};
const struct hf_shape hf_wait_revoked_shape = HF_SHAPE("revoked", revoked_fields);

static const struct hf_field key_fields[] = {
    FACT("key", TEXT, "answers the wait, without access to the store"),
};
const struct hf_shape hf_wait_key_shape = HF_SHAPE("key", key_fields);

static const struct hf_field rotated_fields[] = {
    FACT("rotated", BOOL, "new keys are made with another secret"),
};
const struct hf_shape hf_wait_rotated_shape = HF_SHAPE("rotated", rotated_fields);

static const struct hf_field cancel_fields[] = {
    { .name = "answer", .kind = HF_FIELD_TEXT, .help = "outcome of the request",
      .words = cancel_words },
};
const struct hf_shape hf_turn_cancel_shape = HF_SHAPE("cancel", cancel_fields);
/* clang-format on */
