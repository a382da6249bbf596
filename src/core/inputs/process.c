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

static const char *const disposition_words[] = { "rerunnable", "owner_bound",
                                                 "externally_owned", NULL };

#define WORK(name_, value, help, member, ...)                                            \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_start_request, work.member), __VA_ARGS__ }
#define TEXT(name_, value, help, member, ...)                                            \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_process_new, member), __VA_ARGS__ }

const struct hf_input hf_process_start_inputs[] = {
    { "command", "CMD", HF_IN_TEXTS, HF_IN_BARE | HF_IN_LOCAL,
      "a command to run in the background, after --", HF_IN_AT(hf_start_request, command) },
    { "disposition", "WORD", HF_IN_WORD, HF_IN_NEEDED,
      "what becomes of it when its owner is lost; there is no default",
      .words = disposition_words, .min = HF_RERUNNABLE,
      HF_IN_AT(hf_start_request, work.disposition) },
    TEXT("identity_kind", "K", "what sort of process (default: process, run)",
         identity_kind, .option = "kind"),
    TEXT("identity_label", "N", "its name for people", identity_label, .option = "name"),
    { "definition", "JSON", HF_IN_JSON, 0, "what it was made from",
      .limit = HF_LIMIT_EVENT_BYTES, HF_IN_AT(hf_process_new, definition) },
    { "labels", "KEY=VALUE", HF_IN_JSON, HF_IN_PAIRS, "a label; several may be given",
      .limit = HF_LIMIT_EVENT_BYTES, .option = "label", HF_IN_AT(hf_process_new, labels) },
    { "payload", "JSON", HF_IN_JSON, 0, "what it works on", .limit = HF_LIMIT_PAYLOAD_BYTES,
      .option = "input", HF_IN_AT(hf_start_request, work.payload) },
    TEXT("originator", "ID", "who began it: a session, host or host:SCOPE (default: host)",
         originator, .option = NULL),
    TEXT("wake_session", "SESSION",
         "the session that its end wakes: a unit in the queue session:SESSION", wake_session,
         .option = "wake"),
    { "observers", "SESSION", HF_IN_TEXTS, 0, "a session that may see it",
      .option = "observer", HF_IN_AT(hf_process_new, observers) },
    WORK("parent_work_id", "ID", "the unit that it belongs to", parent_work_id,
         .option = "parent"),
    WORK("ref", "REF", "the reference of what is owned elsewhere", ref, .option = NULL),
    WORK("queue", "Q", "the queue (default: default, run)", queue, .option = NULL),
    { "max_attempts", "N", HF_IN_INT, 0, "executions before it fails for good", .min = 1,
      .limit = HF_LIMIT_ATTEMPTS_MAX, HF_IN_AT(hf_start_request, work.max_attempts) },
    { "timeout_ms", "DURATION", HF_IN_MS, HF_IN_LOCAL, "of the command", .min = 1,
      .option = "timeout", HF_IN_AT(hf_start_request, timeout_ms) },
    WORK("idempotency_key", "K", "start it once", idempotency_key, .option = NULL),
    { "detached", NULL, HF_IN_FLAG, 0, "born done: its hand-off is what was done",
      HF_IN_AT(hf_start_request, work.detached) },
    { "no_run", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      "leave the command to a `holdfast run --worker` or `monitor --run`",
      HF_IN_AT(hf_start_request, no_run) },
    END,
};

#define FILTER(name_, value, help, member, ...)                                          \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_process_filter, member), __VA_ARGS__ }

const struct hf_input hf_process_list_inputs[] = {
    { "all", NULL, HF_IN_FLAG, 0, "finished ones too", HF_IN_AT(hf_process_filter, all) },
    { "status", "STATUS", HF_IN_WORD, 0, "only in this status", .words = hf_status_words,
      .min = 1, HF_IN_AT(hf_process_filter, status) },
    { "waiting", NULL, HF_IN_FLAG, 0, "only those that wait",
      HF_IN_AT(hf_process_filter, waiting) },
    FILTER("originator", "ID", "only what it began", originator, .option = NULL),
    FILTER("identity_kind", "K", "only of this kind", identity_kind, .option = "kind"),
    FILTER("identity_label", "N", "only of this name", identity_label, .option = "name"),
    FILTER("label", "KEY=VALUE", "only with this label", label, .option = NULL),
    { "definition", "JSON", HF_IN_JSON, 0, "only of this definition",
      .limit = HF_LIMIT_EVENT_BYTES, HF_IN_AT(hf_process_filter, definition) },
    FILTER("observer", "SESSION", "only what it may see", observer, .option = NULL),
    { "limit", "N", HF_IN_INT, 0, "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE, HF_IN_AT(hf_process_filter, limit) },
    FILTER("after", "CURSOR", "go on after an earlier page", after, .option = NULL),
    END,
};

const struct hf_input hf_process_show_inputs[] = {
    ID(hf_read_request, id),
    { "attempt", "N", HF_IN_INT, 0, "the output of this attempt (default: the last)",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX, HF_IN_AT(hf_read_request, attempt) },
    END,
};

/* ---- what is told ------------------------------------------------------------------- */

const struct hf_input hf_process_signal_inputs[] = {
    ID(hf_process_tell, id),
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      "letters, digits, _ and -; the event is signal.NAME",
      HF_IN_AT(hf_process_tell, name) },
    { "payload", "JSON", HF_IN_JSON, 0, "what goes with it", .limit = HF_LIMIT_EVENT_BYTES,
      HF_IN_AT(hf_process_tell, payload) },
    { "key", "K", HF_IN_TEXT, 0, "the same key again is told once",
      HF_IN_AT(hf_process_tell, key) },
    END,
};

#define SESSION(flags, help)                                                             \
    { "session_id", "SESSION", HF_IN_TEXT, (flags) | HF_IN_BARE, help,                   \
      .option = "session", HF_IN_AT(hf_process_tell, name) }

const struct hf_input hf_process_observe_inputs[] = {
    ID(hf_process_tell, id),
    SESSION(HF_IN_NEEDED, "the session that may see it"),
    { "end", NULL, HF_IN_FLAG, 0, "it may not any more", HF_IN_AT(hf_tell_request, end) },
    END,
};

const struct hf_input hf_process_retarget_inputs[] = {
    ID(hf_process_tell, id),
    SESSION(0, "the session to wake from now on"),
    { "none", NULL, HF_IN_FLAG, 0, "wake no session", HF_IN_AT(hf_tell_request, none) },
    END,
};

const struct hf_input hf_process_await_inputs[] = {
    ID(hf_await_request, id),
    { "wait_ms", "DURATION", HF_IN_MS, 0, "at most so long (default: 30s)",
      .option = "wait", HF_IN_AT(hf_await_request, wait_ms) },
    END,
};

const struct hf_input hf_process_prune_inputs[] = {
    { "older_than_ms", "DURATION", HF_IN_MS, HF_IN_NEEDED, "ended at least so long ago",
      .option = "older-than", HF_IN_AT(hf_prune_request, older_than_ms) },
    END,
};

const struct hf_input hf_process_drain_inputs[] = {
    { "owner", "O", HF_IN_TEXT, HF_IN_NEEDED, "whose processes", HF_IN_AT(hf_drain, owner) },
    { "owner_incarnation", "I", HF_IN_TEXT, HF_IN_NEEDED, "of this incarnation",
      .option = "incarnation", HF_IN_AT(hf_drain, incarnation) },
    END,
};

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
    REASON(0),
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
