/* The inputs of operations on processes. */
#include "core/inputs/inputs.h"

/* clang-format off */
#define END { .name = NULL }
#define ID(type, member)                                                                 \
    { "process_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                         \
      "the process: its id, or a unique prefix or suffix of it", .option = "id",         \
      HF_IN_AT(type, member) }
#define REASON(flags)                                                                    \
    { "reason", "TEXT", HF_IN_TEXT, flags, "why", .bound = HF_BOUND_REASON_BYTES,        \
      HF_IN_AT(hf_change, reason) }

static const char *const complete_words[] = { "done", "failed", "cancelled", NULL };

static const char *const disposition_words[] = { "rerunnable", "owner_bound",
                                                 "externally_owned", NULL };

#define WORK(name_, value, help, member, ...)                                            \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_start_request, work.member), __VA_ARGS__ }
#define TEXT(name_, value, help, member, ...)                                            \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_process_spec, member), __VA_ARGS__ }

const struct hf_input hf_process_start_inputs[] = {
    { "command", "CMD", HF_IN_TEXTS, HF_IN_BARE | HF_IN_LOCAL,
      "a command to run in the background, after --", HF_IN_AT(hf_start_request, command) },
    { "disposition", "WORD", HF_IN_WORD, HF_IN_NEEDED,
      "what happens to the process when its owner is lost; required, no default",
      .words = disposition_words, .min = HF_DISPOSITION_RERUNNABLE,
      HF_IN_AT(hf_start_request, work.disposition) },
    TEXT("identity_kind", "K", "kind of process (default: process, or run with a "
                               "command)",
         identity_kind, .option = "kind"),
    TEXT("identity_label", "N", "name that lists show", identity_label, .option = "name"),
    { "definition", "JSON", HF_IN_JSON, 0, "definition that the process was created from",
      .bound = HF_BOUND_EVENT_BYTES, HF_IN_AT(hf_process_spec, definition) },
    { "labels", "KEY=VALUE", HF_IN_JSON, HF_IN_PAIRS, "a label; several may be given",
      .bound = HF_BOUND_EVENT_BYTES, .option = "label", HF_IN_AT(hf_process_spec, labels) },
    { "payload", "JSON", HF_IN_JSON, 0, "subject of the process", .bound = HF_BOUND_PAYLOAD_BYTES,
      .option = "input", HF_IN_AT(hf_start_request, work.payload) },
    TEXT("originator", "ID", "owner of the process: session:ID, host or host:SCOPE "
                             "(default: host)",
         originator, .option = NULL),
    TEXT("wake_session", "SESSION",
         "session that the end of the process wakes, by a unit in the queue "
         "session:SESSION", wake_session,
         .option = "wake"),
    { "observers", "SESSION", HF_IN_TEXTS, 0, "session that may see the process",
      .option = "observer", HF_IN_AT(hf_process_spec, observers) },
    WORK("parent_work_id", "ID", "id of the unit that the process belongs to", parent_work_id,
         .option = "parent"),
    WORK("ref", "REF", "reference of an externally owned process in its own system", ref, .option = NULL),
    WORK("queue", "Q", "queue (default: default, or run with a command)", queue, .option = NULL),
    { "max_attempts", "N", HF_IN_INT, 0, "executions before the process fails for good", .min = 1,
      .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(hf_start_request, work.max_attempts) },
    { "timeout_ms", "DURATION", HF_IN_MS, HF_IN_LOCAL, "longest time of the command", .min = 1,
      .option = "timeout", HF_IN_AT(hf_start_request, timeout_ms) },
    { "evidence", "FILE", HF_IN_TEXTS, HF_IN_LOCAL,
      "on exit code 0 close the unit with the SHA-256 of this file as evidence; if the file "
      "is missing, the process fails",
      HF_IN_AT(hf_start_request, evidence) },
    WORK("idempotency_key", "K", "key that makes the call repeatable: the process is "
                                 "started once", idempotency_key, .option = NULL),
    { "detached", NULL, HF_IN_FLAG, 0, "record the process as done when it is "
                                       "created: the hand-off was the work",
      HF_IN_AT(hf_start_request, work.detached) },
    { "no_run", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      "do not start a runner: a `holdfast run --worker` or `monitor --run` runs the "
      "command",
      HF_IN_AT(hf_start_request, no_run) },
    END,
};

#define FILTER(name_, value, help, member, ...)                                          \
    { name_, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_process_filter, member), __VA_ARGS__ }

const struct hf_input hf_process_list_inputs[] = {
    { "all", NULL, HF_IN_FLAG, 0, "list finished processes too", HF_IN_AT(hf_process_filter, all) },
    { "status", "STATUS", HF_IN_WORD, 0, "only processes with this status", .words = hf_status_words,
      .min = 1, HF_IN_AT(hf_process_filter, status) },
    { "waiting", NULL, HF_IN_FLAG, 0, "only processes that wait for this kind of answer",
      HF_IN_AT(hf_process_filter, waiting) },
    FILTER("originator", "ID", "only processes that this session started", originator, .option = NULL),
    FILTER("identity_kind", "K", "only processes of this kind", identity_kind, .option =
    "kind"),
    FILTER("identity_label", "N", "only processes with this name", identity_label, .option =
    "name"),
    FILTER("label", "KEY=VALUE", "only processes with this label, as KEY=VALUE", label, .option = NULL),
    { "definition", "JSON", HF_IN_JSON, 0, "only processes with this definition",
      .bound = HF_BOUND_EVENT_BYTES, HF_IN_AT(hf_process_filter, definition) },
    FILTER("observer", "SESSION", "only processes that this session may see", observer, .option = NULL),
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_process_filter, limit) },
    { "newest", NULL, HF_IN_FLAG, 0, "newest first",
      HF_IN_AT(hf_process_filter, newest) },
    { "brief", NULL, HF_IN_FLAG, 0, "without payloads, results and other long fields",
      HF_IN_AT(hf_process_filter, brief) },
    FILTER("after", "CURSOR", "continue after this cursor, from the previous page", after, .option = NULL),
    END,
};

const struct hf_input hf_process_show_inputs[] = {
    ID(hf_read_request, id),
    { "attempt", "N", HF_IN_INT, 0, "show the output of this attempt (default: the last)",
      .min = 1, .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(hf_read_request, attempt) },
    END,
};

/* ---- what is told ------------------------------------------------------------------- */

const struct hf_input hf_process_signal_inputs[] = {
    ID(hf_process_tell, id),
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      "letters, digits, _ and -; the event is signal.NAME",
      HF_IN_AT(hf_process_tell, name) },
    { "payload", "JSON", HF_IN_JSON, 0, "payload of the signal, as JSON", .bound = HF_BOUND_EVENT_BYTES,
      HF_IN_AT(hf_process_tell, payload) },
    { "key", "K", HF_IN_TEXT, 0, "key that makes the call repeatable: the signal is "
                                 "sent once",
      HF_IN_AT(hf_process_tell, key) },
    END,
};

#define SESSION(flags, help)                                                             \
    { "session_id", "SESSION", HF_IN_TEXT, (flags) | HF_IN_BARE, help,                   \
      .option = "session", HF_IN_AT(hf_process_tell, name) }

const struct hf_input hf_process_observe_inputs[] = {
    ID(hf_process_tell, id),
    SESSION(HF_IN_NEEDED, "session that may see the process"),
    { "end", NULL, HF_IN_FLAG, 0, "revoke the grant instead", HF_IN_AT(hf_tell_request, end) },
    END,
};

const struct hf_input hf_process_retarget_inputs[] = {
    ID(hf_process_tell, id),
    SESSION(0, "session that the end of the process wakes from now on"),
    { "none", NULL, HF_IN_FLAG, 0, "wake no session", HF_IN_AT(hf_tell_request, none) },
    END,
};

const struct hf_input hf_process_await_inputs[] = {
    ID(hf_await_request, id),
    { "wait_ms", "DURATION", HF_IN_MS, 0, "longest time to wait (default: 30s)",
      .option = "wait", HF_IN_AT(hf_await_request, wait_ms) },
    END,
};

const struct hf_input hf_process_prune_inputs[] = {
    { "older_than_ms", "DURATION", HF_IN_MS, HF_IN_NEEDED, "delete processes that "
                                                           "ended at least this long ago",
      .option = "older-than", HF_IN_AT(hf_prune_request, older_than_ms) },
    END,
};

const struct hf_input hf_process_drain_inputs[] = {
    { "owner", "O", HF_IN_TEXT, HF_IN_NEEDED, "owner of the processes", HF_IN_AT(hf_drain, owner) },
    { "owner_incarnation", "I", HF_IN_TEXT, HF_IN_NEEDED, "incarnation of the owner",
      .option = "incarnation", HF_IN_AT(hf_drain, incarnation) },
    END,
};

const struct hf_input hf_process_events_inputs[] = {
    ID(hf_read_request, id),
    { "after", "N", HF_IN_INT, 0, "continue after the event with this number", .max = INT64_MAX,
      HF_IN_AT(hf_read_request, after) },
    { "limit", "N", HF_IN_INT, 0, "events per page (default: 1000)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_process_granted_inputs[] = {
    { "session_id", "SESSION", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "id of the session",
      .option = "session", HF_IN_AT(hf_read_request, id) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_process_cancel_inputs[] = {
    ID(hf_change, id),
    REASON(0),
    { "lease_token", "T", HF_IN_TEXT, 0, "token of the holder, if the holder itself "
                                         "cancels",
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
    { "authority", "NAME", HF_IN_TEXT, HF_IN_NEEDED, "system that reports the end",
      HF_IN_AT(hf_change, authority) },
    { "status", "STATUS", HF_IN_WORD, HF_IN_NEEDED, "how it ended",
      .words = complete_words, HF_IN_AT(hf_complete_request, status) },
    REASON(0),
    { "error_class", "CLASS", HF_IN_TEXT, 0, "of a failure", .option = "class",
      HF_IN_AT(hf_change, error_class) },
    { "summary", "TEXT", HF_IN_TEXT, 0, "result of the process, as JSON", .bound = HF_BOUND_SUMMARY_BYTES,
      HF_IN_AT(hf_change, summary) },
    { "outputs", "REF", HF_IN_TEXTS, 0, "a reference to a result", .option = "output",
      HF_IN_AT(hf_change, outputs) },
    END,
};
/* clang-format on */
