/* The inputs of operations on sessions. */
#include "core/inputs/inputs.h"

static const char *const relation_words[] = { "root", "child", "fork", "caused", NULL };

/* clang-format off */
#define END { .name = NULL }
#define ID(type, flags_, help_)                                                          \
    { "session_id", "SESSION", HF_IN_TEXT, HF_IN_BARE | (flags_), help_,                 \
      .bound = HF_BOUND_KEY_BYTES, .option = "session", HF_IN_AT(type, session_id) }
#define LIMIT(type)                                                                      \
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,              \
      .bound = HF_BOUND_PAGE, HF_IN_AT(type, limit) }

const struct hf_input hf_session_spec_inputs[] = {
    ID(hf_session_spec, 0, "id of the session (default: a new one)"),
    { "agent", "NAME", HF_IN_TEXT, HF_IN_NEEDED, "agent whose workers may claim the "
                                                 "session",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_session_spec, agent) },
    { "config", "JSON", HF_IN_JSON, 0, "configuration of the session, a JSON object",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_session_spec, config) },
    { "relation", "WORD", HF_IN_WORD, 0, "relation to its parent or cause (default: "
                                         "root)",
      .words = relation_words, HF_IN_AT(hf_session_spec, relation) },
    { "parent_id", "SESSION", HF_IN_TEXT, 0, "id of the parent session",
      .bound = HF_BOUND_KEY_BYTES, .option = "parent", HF_IN_AT(hf_session_spec, parent_id) },
    { "cause", "JSON", HF_IN_JSON, 0, "cause of the session", .bound = HF_BOUND_EVENT_BYTES,
      HF_IN_AT(hf_session_spec, cause) },
    { "labels", "JSON", HF_IN_JSON, 0, "labels, an object of texts",
      .bound = HF_BOUND_EVENT_BYTES, HF_IN_AT(hf_session_spec, labels) },
    END,
};

const struct hf_input hf_session_send_inputs[] = {
    ID(hf_say_request, HF_IN_NEEDED, "id of the session"),
    { "text", "TEXT", HF_IN_TEXT, HF_IN_BARE, "text of the user's message",
      .bound = HF_BOUND_INPUT_BYTES, HF_IN_AT(hf_say_request, text) },
    { "message", "JSON", HF_IN_JSON, 0, "complete message record as JSON, instead of "
                                        "a text",
      .bound = HF_BOUND_INPUT_BYTES, HF_IN_AT(hf_say_request, message) },
    { "attach", "FILE", HF_IN_TEXTS, HF_IN_LOCAL,
      "an image (PNG, JPEG, GIF, WebP) or a text file that goes with the text",
      .max = 4095, HF_IN_AT(hf_say_request, attach) },
    { "source_key", "KEY", HF_IN_TEXT, 0,
      "names this message: the same key and content are sent once",
      .bound = HF_BOUND_KEY_BYTES, .option = "key", HF_IN_AT(hf_say_request, source_key) },
    { "wait", NULL, HF_IN_FLAG, 0, "wait until the turn ends, and print the answer",
      HF_IN_AT(hf_say_request, wait) },
    { "timeout_ms", "DURATION", HF_IN_MS, 0, "with --wait: longest time to wait",
      .min = 1, .max = 86400000, .option = "timeout", HF_IN_AT(hf_say_request, timeout_ms) },
    END,
};

const struct hf_input hf_session_list_inputs[] = {
    { "agent", "NAME", HF_IN_TEXT, 0, "only sessions of this agent",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_session_filter, agent) },
    { "parent_id", "SESSION", HF_IN_TEXT, 0, "only sessions whose parent is this session",
      .bound = HF_BOUND_KEY_BYTES, .option = "parent",
      HF_IN_AT(hf_session_filter, parent_id) },
    { "open", NULL, HF_IN_FLAG, 0, "only sessions with an open turn",
      HF_IN_AT(hf_session_filter, open) },
    { "newest", NULL, HF_IN_FLAG, 0, "newest first",
      HF_IN_AT(hf_session_filter, newest) },
    LIMIT(hf_session_filter),
    { "after", "CURSOR", HF_IN_TEXT, 0, "continue after this cursor, from the "
                                        "previous page",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_session_filter, after) },
    END,
};

const struct hf_input hf_session_show_inputs[] = {
    ID(hf_session_page, HF_IN_NEEDED, "id of the session"),
    END,
};

const struct hf_input hf_session_turn_inputs[] = {
    ID(hf_session_turn_request, HF_IN_NEEDED, "id of the session"),
    { "turn", "ID", HF_IN_TEXT, HF_IN_BARE,
      "the turn, or an input of it (default: the last turn)", .bound = HF_BOUND_KEY_BYTES,
      HF_IN_AT(hf_session_turn_request, name) },
    END,
};

const struct hf_input hf_session_log_inputs[] = {
    ID(hf_session_page, HF_IN_NEEDED, "id of the session"),
    { "after", "N", HF_IN_INT, 0, "continue after the record with this ordinal", .max = INT64_MAX,
      HF_IN_AT(hf_session_page, ordinal) },
    LIMIT(hf_session_page),
    END,
};

const struct hf_input hf_session_inputs_inputs[] = {
    ID(hf_session_page, HF_IN_NEEDED, "id of the session"),
    { "after", "WORK_ID", HF_IN_TEXT, 0, "continue after the input with this work_id",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_session_page, after) },
    LIMIT(hf_session_page),
    END,
};
/* clang-format on */
