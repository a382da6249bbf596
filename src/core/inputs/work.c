/* The inputs of operations on units of work. */
#include "core/inputs/inputs.h"

#include <assert.h>

/* A list is stored with its count, which must come next in the struct. */
#define NEXT(type, list, count)                                                          \
    static_assert(offsetof(struct type, count) ==                                        \
                      offsetof(struct type, list) + sizeof(void *),                      \
                  "the count of a list must be next to it")
NEXT(hf_claim, kinds, kind_count);
NEXT(hf_change, outputs, output_count);
NEXT(hf_change, evidence, evidence_count);
NEXT(hf_filter, statuses, status_count);

#define END                                                                              \
    {                                                                                    \
        .name = NULL                                                                     \
    }
/* In the order of enum hf_status, from the value that is the row's `min`. */
static const char *const close_words[] = { "done", "failed", "timeout", "cancelled",
                                           NULL };
static const char *const ended_words[] = { "failed", "timeout", "cancelled", "abandoned",
                                           NULL };
static const char *const wait_words[] = { "user", "external", NULL };
static const char *const stream_words[] = { "stdout", "stderr", NULL };
static const char *const class_words[] = { "transient_network",
                                           "rate_limit",
                                           "service_unavailable",
                                           "validation",
                                           "policy_denied",
                                           "misconfigured",
                                           NULL };

/* ---- rows that several share ------------------------------------------------------- */

/* clang-format off */
#define ID(type, member, flags)                                                          \
    { "work_id", "ID", HF_IN_TEXT, (flags) | HF_IN_BARE,                                 \
      "the unit: its id, or a unique prefix or suffix of it", .option = "id",            \
      HF_IN_AT(type, member) }
#define TOKEN(flags)                                                                     \
    { "lease_token", "T", HF_IN_TEXT, (flags), "token of the lease, as printed by the "  \
                                               "claim",                                  \
      .option = "token", HF_IN_AT(hf_change, token) }
#define REASON(flags, help)                                                              \
    { "reason", "R", HF_IN_TEXT, (flags), (help), .bound = HF_BOUND_REASON_BYTES,        \
      HF_IN_AT(hf_change, reason) }
#define OWNER(type, flags, help)                                                         \
    { "owner", "O", HF_IN_TEXT, (flags), (help), HF_IN_AT(type, owner) }
#define INCARNATION(type)                                                                \
    { "owner_incarnation", "I", HF_IN_TEXT, 0,                                           \
      "one boot of the owner; repeat a claim with the same one to get its lease back "   \
      "(default: a new one)", .option = "incarnation", HF_IN_AT(type, incarnation) }
#define PID(type)                                                                        \
    { "pid", "PID", HF_IN_INT, HF_IN_LOCAL,                                              \
      "tie the lease to this local process, so that its death is provable; "             \
      "without it only time ends the lease", .min = 1, .max = INT32_MAX,                 \
      HF_IN_AT(type, pid) }
#define NONCE(type)                                                                      \
    { "nonce", "N", HF_IN_TEXT, 0,                                                       \
      "a value that makes the call repeatable: the same value returns "                  \
      "the same token", HF_IN_AT(type, nonce) }
#define TTL(type)                                                                        \
    { "lease_ttl_ms", "DURATION", HF_IN_MS, 0, "term of the lease (default: policy)",    \
      .min = 1, .option = "ttl", HF_IN_AT(type, ttl_ms) }
#define CLASS(flags)                                                                     \
    { "error_class", "CLASS", HF_IN_TEXT, (flags), "the kind of failure",                \
      .words = class_words, .option = "class", HF_IN_AT(hf_change, error_class) }

/* ---- who calls --------------------------------------------------------------------- */

const struct hf_input hf_caller_inputs[] = {
    { "tenant", "T", HF_IN_TEXT, 0, "tenant of the keys and rows",
      HF_IN_AT(hf_caller, tenant) },
    { "actor_kind", "KIND", HF_IN_TEXT, 0, "human, worker, schedule, webhook or system",
      HF_IN_AT(hf_caller, actor_kind) },
    { "actor", "NAME", HF_IN_TEXT, 0, "name of the actor, stored with the events", HF_IN_AT(hf_caller, actor) },
    { "operation_id", "ID", HF_IN_TEXT, 0, "id that makes the call repeatable: it is "
                                           "applied once",
      HF_IN_AT(hf_caller, operation_id) },
    { "correlation_id", "ID", HF_IN_TEXT, 0, "stored with the events of this call",
      HF_IN_AT(hf_caller, correlation_id) },
    END,
};

/* ---- create and claim -------------------------------------------------------------- */

const struct hf_work_spec hf_work_spec_blank = { .size = sizeof(struct hf_work_spec), .priority = -1 };

const struct hf_input hf_work_spec_inputs[] = {
    { "source_system", "SYSTEM", HF_IN_WORD, HF_IN_NEEDED, "source system of the unit",
      .words = hf_source_words, .min = 1, .option = "source", HF_IN_AT(hf_work_spec, source) },
    { "source_id", "ID", HF_IN_TEXT, HF_IN_NEEDED, "id of the unit in its source system",
      HF_IN_AT(hf_work_spec, source_id) },
    { "source_run_id", "R", HF_IN_TEXT, 0,
      "run of that id; required for scheduler. One source, id and run name one unit",
      HF_IN_AT(hf_work_spec, source_run_id) },
    { "kind", "K", HF_IN_TEXT, 0, "kind of the unit (default: work)",
      HF_IN_AT(hf_work_spec, kind) },
    { "queue", "Q", HF_IN_TEXT, 0, "queue of the unit (default: default)",
      HF_IN_AT(hf_work_spec, queue) },
    { "lane_key", "KEY", HF_IN_TEXT, 0, "at most one unit of a key runs at a time",
      .option = "lane", HF_IN_AT(hf_work_spec, lane_key) },
    { "dedup_key", "KEY", HF_IN_TEXT, 0, "at most one unit of a key is unfinished",
      HF_IN_AT(hf_work_spec, dedup_key) },
    { "idempotency_key", "KEY", HF_IN_TEXT, 0, "a repeated request with the same key "
                                               "returns the same unit",
      HF_IN_AT(hf_work_spec, idempotency_key) },
    { "priority", "N", HF_IN_INT, 0, "priority from 0 (most urgent) to 9 (default: 3)",
      .bound = HF_BOUND_PRIORITY_MAX, HF_IN_AT(hf_work_spec, priority) },
    { "payload", "JSON", HF_IN_JSON, 0, "input of the worker, as JSON",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_work_spec, payload) },
    { "payload_ref", "REF", HF_IN_TEXT, 0, "reference to the payload, instead of "
                                           "--payload",
      HF_IN_AT(hf_work_spec, payload_ref) },
    { "disposition", "WORD", HF_IN_WORD, 0,
      "what happens to the unit when its lease lapses (default: policy, otherwise "
      "expire)",
      .words = hf_disposition_words, .min = 1, HF_IN_AT(hf_work_spec, disposition) },
    { "ref", "R", HF_IN_TEXT, 0, "a reference that the caller chooses", HF_IN_AT(hf_work_spec, ref) },
    { "parent_work_id", "ID", HF_IN_TEXT, 0, "id of the unit that this one belongs to",
      .option = "parent", HF_IN_AT(hf_work_spec, parent_work_id) },
    { "max_attempts", "N", HF_IN_INT, 0, "executions before it fails for good", .min = 1,
      .bound = HF_BOUND_ATTEMPTS_MAX, HF_IN_AT(hf_work_spec, max_attempts) },
    { "retry_policy", "JSON", HF_IN_JSON, 0, "how failures are retried",
      .bound = HF_BOUND_POLICY_BYTES, HF_IN_AT(hf_work_spec, retry_policy) },
    { "delay_ms", "DURATION", HF_IN_MS, 0, "earliest start, as a time from now",
      .option = "delay", HF_IN_AT(hf_work_spec, delay_ms) },
    { "due_at", "MS", HF_IN_INT, 0, "earliest start, in epoch milliseconds",
      .min = 1, .max = 253402300799999, HF_IN_AT(hf_work_spec, due_at) },
    { "start_timeout_ms", "DURATION", HF_IN_MS, 0, "longest time in the queue", .min = 1,
      .option = "start-timeout", HF_IN_AT(hf_work_spec, start_timeout_ms) },
    { "exec_timeout_ms", "DURATION", HF_IN_MS, 0, "longest time of one execution",
      .min = 1, .option = "exec-timeout", HF_IN_AT(hf_work_spec, exec_timeout_ms) },
    { "close_rule", "RULE", HF_IN_WORD, 0, "what the close-out must contain: evidence "
                                           "or reviewer",
      .words = hf_close_rule_words, HF_IN_AT(hf_work_spec, close_rule) },
    { "detached", NULL, HF_IN_FLAG, 0, "record the unit as done when it is created: "
                                       "the hand-off was the work",
      HF_IN_AT(hf_work_spec, detached) },
    { "reply_ref", "REF", HF_IN_TEXT, 0,
      "if one unit waits for a user under this reference, resume it with the payload "
      "instead of creating a unit", .option = "reply-to", HF_IN_AT(hf_work_spec, reply_ref) },
    END,
};

const struct hf_input hf_work_spec_limit_inputs[] = {
    { "limit_key", "KEY", HF_IN_TEXT, 0, "put the unit under the limit key:KEY",
      HF_IN_AT(hf_work_spec, limit_key) },
    { "rate_key", "KEY", HF_IN_TEXT, 0, "put the unit under the limit rate:KEY",
      HF_IN_AT(hf_work_spec, rate_key) },
    { "fair_key", "KEY", HF_IN_TEXT, 0, "units of one queue and priority start in "
                                        "turn, one key after another",
      HF_IN_AT(hf_work_spec, fair_key) },
    { "fair_weight", "N", HF_IN_INT, 0, "share of the key in these turns (default: 1)", .min = 1,
      .bound = HF_BOUND_FAIR_WEIGHT_MAX, HF_IN_AT(hf_work_spec, fair_weight) },
    END,
};

const struct hf_input hf_spool_inputs[] = {
    { "spool", "FILE", HF_IN_PATH, HF_IN_LOCAL,
      "answer within 50 ms: a request that the ledger has not stored by then is "
      "appended to this file, for `work reconcile --from`", HF_IN_AT(hf_create_request, spool) },
    { "budget_ms", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      "with --spool: answer within this time instead of 50ms", .min = 1,
      .option = "budget", HF_IN_AT(hf_create_request, budget_ms) },
    END,
};

const struct hf_input hf_claim_inputs[] = {
    OWNER(hf_claim, HF_IN_NEEDED, "name of the owner that takes the lease"),
    INCARNATION(hf_claim),
    PID(hf_claim),
    NONCE(hf_claim),
    { "work_id", "ID", HF_IN_TEXT, HF_IN_BARE, "claim this unit only", .option = "id",
      HF_IN_AT(hf_claim, id) },
    { "queue", "Q", HF_IN_TEXT, 0, "claim from this queue (default: default)",
      HF_IN_AT(hf_claim, queue) },
    { "kinds", "K", HF_IN_TEXTS, 0, "claim units of these kinds only", .option = "kind",
      HF_IN_AT(hf_claim, kinds) },
    { "limit", "N", HF_IN_INT, 0, "most units to claim (default: 1)", .min = 1,
      .bound = HF_BOUND_BATCH, HF_IN_AT(hf_claim, limit) },
    TTL(hf_claim),
    { "wait_ms", "DURATION", HF_IN_MS, 0, "longest time to wait for work",
      .option = "wait", HF_IN_AT(hf_claim, wait_ms) },
    END,
};

/* ---- the verbs of struct hf_change ------------------------------------------------- */

const struct hf_input hf_renew_inputs[] = {
    ID(hf_change, id, 0),
    TOKEN(0),
    TTL(hf_change),
    OWNER(hf_change, 0, "renew all leases of this owner instead of one by its token"),
    { "owner_incarnation", "I", HF_IN_TEXT, 0, "with --owner: only this incarnation",
      .option = "incarnation", HF_IN_AT(hf_change, incarnation) },
    { "fresh_within_ms", "DURATION", HF_IN_MS, 0,
      "with --owner: only units with activity within this time", .min = 1, .option =
      "fresh",
      HF_IN_AT(hf_renew_request, fresh_within_ms) },
    END,
};

const struct hf_input hf_holder_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(HF_IN_NEEDED),
    END,
};

const struct hf_input hf_hand_back_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(HF_IN_NEEDED),
    REASON(0, "why"),
    END,
};

const struct hf_input hf_wait_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(HF_IN_NEEDED),
    { "waiting_kind", "KIND", HF_IN_WORD, HF_IN_NEEDED, "what it waits for",
      .words = wait_words, .min = HF_STATUS_WAITING_USER, .option = "kind",
      HF_IN_AT(hf_change, status) },
    { "waiting_ref", "R", HF_IN_TEXT, HF_IN_NEEDED,
      "what it waits for; a resume may name it", .option = "ref",
      HF_IN_AT(hf_change, ref) },
    REASON(0, "why"),
    { "timeout_ms", "DURATION", HF_IN_MS, 0,
      "how long (default: policy; 24h for user, 2h for external)", .min = 1,
      .option = "timeout", HF_IN_AT(hf_change, timeout_ms) },
    { "escalate_after_ms", "DURATION", HF_IN_MS, 0, "escalate the wait after this long", .min = 1,
      .option = "escalate-after", HF_IN_AT(hf_change, escalate_after_ms) },
    { "escalate", "HOW", HF_IN_TEXT, 0, "event, or work:KIND to create a unit",
      HF_IN_AT(hf_change, escalate) },
    END,
};

const struct hf_input hf_close_out_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(0),
    { "authority", "A", HF_IN_TEXT, 0,
      "who reports the end of an externally owned unit, or of one that waits for what its close "
      "rule asks; instead of --token",
      HF_IN_AT(hf_change, authority) },
    { "status", "STATUS", HF_IN_WORD, HF_IN_NEEDED, "how it ended", .words = close_words,
      .min = HF_STATUS_DONE, HF_IN_AT(hf_change, status) },
    REASON(0, "why"),
    CLASS(0),
    { "summary", "S", HF_IN_TEXT, 0, "summary of the result, for people",
      .bound = HF_BOUND_SUMMARY_BYTES, HF_IN_AT(hf_change, summary) },
    { "outputs", "REF", HF_IN_TEXTS, 0, "reference to a result", .option = "output",
      HF_IN_AT(hf_change, outputs) },
    { "evidence", "REF", HF_IN_TEXTS, 0, "a hash or reference that proves the result",
      HF_IN_AT(hf_change, evidence) },
    { "reviewer", "NAME", HF_IN_TEXT, 0, "reviewer of the result",
      HF_IN_AT(hf_change, reviewer) },
    END,
};

const struct hf_input hf_fail_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(HF_IN_NEEDED),
    CLASS(HF_IN_NEEDED),
    REASON(0, "why"),
    END,
};

const struct hf_input hf_append_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    TOKEN(HF_IN_NEEDED),
    { "event_type", "TYPE", HF_IN_TEXT, HF_IN_NEEDED,
      "type of the event; types of the ledger are refused", .option = "type",
      HF_IN_AT(hf_change, type) },
    { "payload", "JSON", HF_IN_JSON, 0, "data of the event, as JSON", .bound = HF_BOUND_EVENT_BYTES,
      HF_IN_AT(hf_change, payload) },
    REASON(0, "text of the event"),
    END,
};

const struct hf_input hf_resume_inputs[] = {
    ID(hf_change, id, 0),
    { "waiting_ref", "R", HF_IN_TEXT, 0,
      "resume the unit that waits for this reference, instead of --id", .option = "ref",
      HF_IN_AT(hf_change, ref) },
    { "waiting_kind", "KIND", HF_IN_WORD, 0,
      "with --ref: only one that waits for a KIND", .words = wait_words,
      .min = HF_STATUS_WAITING_USER, .option = "kind", HF_IN_AT(hf_change, status) },
    { "payload", "JSON", HF_IN_JSON, 0, "the answer; the next claimer gets it",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_change, payload) },
    OWNER(hf_change, 0, "start the unit at once under a lease of this owner"),
    INCARNATION(hf_change),
    PID(hf_change),
    NONCE(hf_change),
    TTL(hf_change),
    END,
};

const struct hf_input hf_reason_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    REASON(HF_IN_NEEDED, "why"),
    END,
};

const struct hf_input hf_requeue_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    REASON(0, "why"),
    END,
};

const struct hf_input hf_cancel_inputs[] = {
    ID(hf_change, id, HF_IN_NEEDED),
    REASON(0, "why"),
    TOKEN(0),
    END,
};

/* ---- reading and upkeep ------------------------------------------------------------ */

#define FILTER(name, value, help, member)                                                \
    { name, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_filter, member) }
#define OLDER_THAN(help)                                                                 \
    { "older_than_ms", "DURATION", HF_IN_MS, 0, help, .option = "older-than",            \
      HF_IN_AT(hf_filter, older_than_ms) }
#define SOURCE(help)                                                                     \
    { "source_system", "SYSTEM", HF_IN_WORD, 0, help, .words = hf_source_words,          \
      .min = 1, .option = "source", HF_IN_AT(hf_filter, source) }

const struct hf_input hf_redrive_inputs[] = {
    { "reason", "R", HF_IN_TEXT, HF_IN_NEEDED, "why", .bound = HF_BOUND_REASON_BYTES,
      HF_IN_AT(hf_redrive_request, reason) },
    { "statuses", "STATUS", HF_IN_WORDS, 0,
      "only units with this status; may be repeated (default: failed, timeout)",
      .words = ended_words, .min = HF_STATUS_FAILED, .option = "status",
      HF_IN_AT(hf_filter, statuses) },
    { "error_class", "CLASS", HF_IN_TEXT, 0, "only units that failed with this class",
      .option = "class", HF_IN_AT(hf_redrive_request, error_class) },
    FILTER("kind", "K", "only units of this kind", kind),
    FILTER("queue", "Q", "only units of this queue", queue),
    SOURCE("only units from this source"),
    OLDER_THAN("only units that have not changed for this long"),
    { "limit", "N", HF_IN_INT, 0, "most units to requeue (default: all)", .min = 1,
      .max = INT64_MAX, HF_IN_AT(hf_redrive_request, most) },
    { "dry_run", NULL, HF_IN_FLAG, 0, "print the units that would be requeued, and "
                                      "change nothing",
      HF_IN_AT(hf_redrive_request, dry_run) },
    END,
};

const struct hf_input hf_list_inputs[] = {
    { "statuses", "STATUS", HF_IN_WORDS, 0,
      "only units with this status (default: all that are not finished)",
      .words = hf_status_words, .min = 1, .option = "status",
      HF_IN_AT(hf_filter, statuses) },
    { "all", NULL, HF_IN_FLAG, 0, "list finished units too", HF_IN_AT(hf_list_request, all) },
    SOURCE("only units from this source"),
    FILTER("queue", "Q", "only units of this queue", queue),
    FILTER("kind", "K", "only units of this kind", kind),
    FILTER("owner", "O", "only units that this owner holds", owner),
    { "waiting_ref", "R", HF_IN_TEXT, 0, "only units that wait for this reference", .option =
      "ref",
      HF_IN_AT(hf_filter, ref) },
    OLDER_THAN("only units that have not changed for this long"),
    { "silent", NULL, HF_IN_FLAG, 0, "only running units with a lapsed lease",
      HF_IN_AT(hf_filter, silent) },
    { "gate", "GATE", HF_IN_WORD, 0, "only queued units behind this gate", .words = hf_gate_words,
      HF_IN_AT(hf_filter, gate) },
    FILTER("source_id", "ID", "only units with this id in their source system", source_id),
    FILTER("source_run_id", "RUN", "with --source-id: only units of this run", source_run_id),
    { "parent_work_id", "ID", HF_IN_TEXT, 0, "only units that belong to this unit", .option =
      "parent",
      HF_IN_AT(hf_filter, parent_work_id) },
    { "session_id", "SESSION", HF_IN_TEXT, 0, "only units of this session", .option =
      "session",
      HF_IN_AT(hf_filter, session_id) },
    { "lane_key", "L", HF_IN_TEXT, 0, "only units of this lane", .option = "lane",
      HF_IN_AT(hf_filter, lane_key) },
    { "of_correlation_id", "C", HF_IN_TEXT, 0, "only units created with this "
                                               "correlation id",
      .option = "of-correlation", HF_IN_AT(hf_filter, correlation_id) },
    { "error_class", "CLASS", HF_IN_TEXT, 0, "only units that failed with this class", .option =
      "class",
      HF_IN_AT(hf_filter, error_class) },
    { "disposition", "WORD", HF_IN_WORD, 0, "only units with this disposition",
      .words = hf_disposition_words, .min = 1, HF_IN_AT(hf_filter, disposition) },
    { "unacked", NULL, HF_IN_FLAG, 0, "only bad ends that were not acknowledged",
      HF_IN_AT(hf_filter, unacked) },
    FILTER("limit_name", "NAME", "only units under this limit", limit_name),
    { "since_ms", "DURATION", HF_IN_MS, 0, "only units created within this time", .option =
      "since",
      HF_IN_AT(hf_filter, since_ms) },
    { "from", "TIME", HF_IN_INSTANT, 0, "only units created at this time or later",
      HF_IN_AT(hf_filter, from) },
    { "before", "TIME", HF_IN_INSTANT, 0, "only units created before this time",
      HF_IN_AT(hf_filter, before) },
    { "finished", NULL, HF_IN_FLAG, 0, "--since, --from and --before compare the time "
                                       "of the end",
      HF_IN_AT(hf_filter, finished) },
    FILTER("find", "TEXT",
           "only units whose id, source id or waiting reference is, begins or ends with this text",
           find),
    { "newest", NULL, HF_IN_FLAG, 0, "newest first", HF_IN_AT(hf_filter, newest) },
    { "brief", NULL, HF_IN_FLAG, 0, "without payloads, results and other long fields",
      HF_IN_AT(hf_filter, brief) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_filter, limit) },
    FILTER("after", "CURSOR", "continue after this cursor, from the previous page", after),
    END,
};

const struct hf_input hf_id_inputs[] = {
    ID(hf_read_request, id, HF_IN_NEEDED),
    END,
};

const struct hf_input hf_events_inputs[] = {
    ID(hf_read_request, id, HF_IN_NEEDED),
    { "after", "EVENT", HF_IN_INT, 0, "continue after the event with this number", .max = INT64_MAX,
      HF_IN_AT(hf_read_request, after) },
    { "limit", "N", HF_IN_INT, 0, "events per page (default: 1000)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_output_inputs[] = {
    ID(hf_read_request, id, HF_IN_NEEDED),
    { "stream", "STREAM", HF_IN_WORD, HF_IN_LOCAL,
      "print this stream only, byte by byte", .words = stream_words,
      HF_IN_AT(hf_read_request, stream) },
    { "attempt", "N", HF_IN_INT, 0,
      "print the output of this attempt (default: the last with output)", .min = 1,
      .max = INT32_MAX, HF_IN_AT(hf_read_request, attempt) },
    { "follow", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      "print further output until the unit has ended",
      HF_IN_AT(hf_read_request, follow) },
    END,
};

const struct hf_input hf_sweep_inputs[] = {
    { "limit", "N", HF_IN_INT, 0,
      "one sweep of at most this many rows (default: repeat until nothing is left to "
      "do)", .min = 1, .bound = HF_BOUND_SWEEP, HF_IN_AT(hf_read_request, limit) },
    END,
};

const struct hf_input hf_prune_inputs[] = {
    { "older_than_ms", "DURATION", HF_IN_MS, HF_IN_NEEDED,
      "delete units that finished at least this long ago", .option = "older-than",
      HF_IN_AT(hf_prune_request, older_than_ms) },
    { "limit", "N", HF_IN_INT, 0, "most units to delete (default: all)", .min = 1,
      .max = INT32_MAX, HF_IN_AT(hf_prune_request, limit) },
    END,
};
/* clang-format on */
