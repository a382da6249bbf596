/* The inputs of operations on waits. */
#include "core/inputs/inputs.h"

static const char *const kind_words[] = { "tool",  "approval", "signal",
                                          "timer", "custom",   NULL };
static const char *const answer_words[] = { "ok", "error", "approve", "deny", NULL };

/* clang-format off */
#define END { .name = NULL }
#define ID(type, flags_)                                                                 \
    { "wait_id", "WAIT", HF_IN_TEXT, HF_IN_BARE | (flags_), "id of the wait, or a "      \
                                                            "unique part of it",         \
      .bound = HF_BOUND_KEY_BYTES, .option = "wait", HF_IN_AT(type, wait_id) }
#define TEXT(name_, value_, type, member, help_)                                         \
    { name_, value_, HF_IN_TEXT, 0, help_, .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(type, member) }
#define REASON(type, help_)                                                              \
    { "reason", "TEXT", HF_IN_TEXT, 0, help_, .bound = HF_BOUND_REASON_BYTES,            \
      HF_IN_AT(type, reason) }

const struct hf_input hf_waits_list_inputs[] = {
    { "session_id", "SESSION", HF_IN_TEXT, 0, "only waits of this session",
      .bound = HF_BOUND_KEY_BYTES, .option = "session", HF_IN_AT(hf_wait_filter, session_id) },
    { "kind", "WORD", HF_IN_WORD, 0, "only waits of this kind", .words = kind_words,
      HF_IN_AT(hf_wait_filter, kind) },
    TEXT("answerer", "ACTOR", hf_wait_filter, answerer, "only waits that this actor "
                                                        "may answer"),
    { "closed", NULL, HF_IN_FLAG, 0, "list ended waits too; needs --session",
      HF_IN_AT(hf_wait_filter, closed) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_wait_filter, limit) },
    TEXT("after", "CURSOR", hf_wait_filter, after, "continue after this cursor, from "
                                                   "the previous page"),
    END,
};

const struct hf_input hf_waits_show_inputs[] = {
    ID(hf_wait_request, HF_IN_NEEDED),
    END,
};

const struct hf_input hf_waits_resolve_inputs[] = {
    ID(hf_wait_request, 0),
    TEXT("key", "KEY", hf_wait_request, key, "a key of the wait instead of its id"),
    { "answer", "WORD", HF_IN_WORD, 0, "the answer (default: ok)", .words = answer_words,
      HF_IN_AT(hf_wait_request, word) },
    { "value", "JSON", HF_IN_JSON, 0, "the value; of approve: the edited arguments",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_wait_request, value) },
    REASON(hf_wait_request, "reason for deny, or the failure for error"),
    END,
};

const struct hf_input hf_waits_approve_inputs[] = {
    ID(hf_wait_request, HF_IN_NEEDED),
    { "arguments", "JSON", HF_IN_JSON, 0, "edited arguments for the call, if the tool "
                                          "allows it",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_wait_request, value) },
    END,
};

const struct hf_input hf_waits_deny_inputs[] = {
    ID(hf_wait_request, HF_IN_NEEDED),
    REASON(hf_wait_request, "reason, which the model reads"),
    END,
};

const struct hf_input hf_waits_revoke_inputs[] = {
    ID(hf_wait_revoke, 0),
    { "session_id", "SESSION", HF_IN_TEXT, 0, "all waits of this session's open turn",
      .bound = HF_BOUND_KEY_BYTES, .option = "session", HF_IN_AT(hf_wait_revoke, session_id) },
    { "turn_id", "TURN", HF_IN_TEXT, 0, "with --session: the waits of this turn",
      .bound = HF_BOUND_KEY_BYTES, .option = "turn", HF_IN_AT(hf_wait_revoke, turn_id) },
    REASON(hf_wait_revoke, "why"),
    END,
};

const struct hf_input hf_waits_rotate_inputs[] = {
    { "valid_ms", "DURATION", HF_IN_MS, 0, "how long keys of the previous secret stay "
                                           "valid (default: 1d)",
      .bound = HF_BOUND_DURATION_MAX_MS, .option = "valid", HF_IN_AT(hf_wait_request, valid_ms) },
    END,
};

const struct hf_input hf_turn_cancel_inputs[] = {
    { "session_id", "SESSION", HF_IN_TEXT, HF_IN_BARE | HF_IN_NEEDED, "id of the session",
      .bound = HF_BOUND_KEY_BYTES, .option = "session", HF_IN_AT(hf_session_cancel, session_id) },
    { "turn_id", "TURN", HF_IN_TEXT, HF_IN_BARE, "the turn (default: the open one)",
      .bound = HF_BOUND_KEY_BYTES, .option = "turn", HF_IN_AT(hf_session_cancel, turn_id) },
    REASON(hf_session_cancel, "why"),
    END,
};
/* clang-format on */
