/* The inputs of operations on processes. */
#include "core/inputs/inputs.h"

/* clang-format off */
#define END { .name = NULL }
#define ID(type, member)                                                                 \
    { "process_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                         \
      "the process: its id, or a unique prefix or suffix of it", .option = "id",         \
      HF_IN_AT(type, member) }
#define REASON(flags)                                                                    \
    { "reason", "TEXT", HF_IN_TEXT, flags, "why", .limit = HF_LIMIT_REASON_BYTES,        \
      HF_IN_AT(hf_change, reason) }

static const char *const complete_words[] = { "done", "failed", "cancelled", NULL };

const struct hf_input hf_process_events_inputs[] = {
    ID(hf_read_request, id),
    { "after", "N", HF_IN_INT, 0, "only events after this one", .max = INT64_MAX,
      HF_IN_AT(hf_read_request, after) },
    { "limit", "N", HF_IN_INT, 0, "at most this many (default: 1000)", .min = 1,
      .limit = HF_LIMIT_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_process_granted_inputs[] = {
    { "session_id", "SESSION", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "the session",
      .option = "session", HF_IN_AT(hf_read_request, id) },
    { "limit", "N", HF_IN_INT, 0, "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_process_cancel_inputs[] = {
    ID(hf_change, id),
    REASON(HF_IN_NEEDED),
    { "lease_token", "T", HF_IN_TEXT, 0, "the holder's, where the holder cancels",
      .option = "token", HF_IN_AT(hf_change, token) },
    END,
};

const struct hf_input hf_process_reason_inputs[] = {
    ID(hf_change, id),
    REASON(HF_IN_NEEDED),
    END,
};

const struct hf_input hf_complete_inputs[] = {
    ID(hf_change, id),
    { "authority", "NAME", HF_IN_TEXT, HF_IN_NEEDED, "who says so",
      HF_IN_AT(hf_change, authority) },
    { "status", "STATUS", HF_IN_WORD, HF_IN_NEEDED, "how it ended",
      .words = complete_words, HF_IN_AT(hf_complete_request, status) },
    REASON(0),
    { "error_class", "CLASS", HF_IN_TEXT, 0, "of a failure", .option = "class",
      HF_IN_AT(hf_change, error_class) },
    { "summary", "TEXT", HF_IN_TEXT, 0, "what came of it", .limit = HF_LIMIT_SUMMARY_BYTES,
      HF_IN_AT(hf_change, summary) },
    { "outputs", "REF", HF_IN_TEXTS, 0, "a reference to a result", .option = "output",
      HF_IN_AT(hf_change, outputs) },
    END,
};
/* clang-format on */
