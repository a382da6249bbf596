/* The inputs of operations on triggers. */
#include "core/inputs/inputs.h"
#include "core/inputs/unit_inputs.h"

static const char *const state_words[] = { "enabled", "disabled", "deleted", NULL };

/* clang-format off */
#define END { .name = NULL }
#define KEY(type)                                                                        \
    { "subscription_key", "KEY", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                  \
      "the subscription's key, its owner's own", .option = "key", HF_IN_AT(type, key) }
#define OWNER(type)                                                                      \
    { "owner_scope", "SCOPE", HF_IN_TEXT, 0,                                             \
      "whose it is: session:ID, host:BINDING or host (default: host)",                   \
      HF_IN_AT(type, owner_scope) }
#define REVISION(flags, type)                                                            \
    { "revision", "N", HF_IN_INT, (flags),                                               \
      "only if it is still at this revision; else exit code 7", .min = 1,                \
      .max = INT64_MAX, HF_IN_AT(type, revision) }
#define SOURCE(flags, type)                                                              \
    { "source_type", "TYPE", HF_IN_TEXT, (flags), "what kind of source",                 \
      HF_IN_AT(type, source_type) },                                                     \
    { "source_key", "KEY", HF_IN_TEXT, (flags), "which one of them",                     \
      HF_IN_AT(type, source_key) }
#define LIMIT(type)                                                                      \
    { "limit", "N", HF_IN_INT, 0, "at most so many (default: 100)", .min = 1,            \
      .limit = HF_LIMIT_PAGE, HF_IN_AT(type, limit) }

/* What a subscription starts. */
#define TEXT(name, member, value, help, ...)                                             \
    { name, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_subscription_new, member),           \
      __VA_ARGS__ }
#define TARGET                                                                           \
    { "template", "JSON", HF_IN_JSON, 0,                                                 \
      "payload of the target; {\"$event\":\"a.b\"} stands for a member of what "         \
      "happened (default: its payload as it is)", .limit = HF_LIMIT_PAYLOAD_BYTES,       \
      HF_IN_AT(hf_subscription_new, payload_template) },                                 \
    TEXT("kind", kind, "K", "kind of the target (default: work)", .option = NULL),       \
    TEXT("queue", queue, "Q", "its queue (default: default)", .option = NULL),           \
    HF_UNIT_INPUTS(hf_subscription_new),                                                 \
    TEXT("wake_session", wake_session, "ID",                                             \
         "also wake this session: a unit of kind wake in the queue session:ID, and a "   \
         "grant of the target's handle", .option = NULL),                                \
    TEXT("process_kind", process_kind, "KIND",                                           \
         "the target is a background process of this kind", .option = "process"),        \
    TEXT("process_name", process_name, "N", "name of that process", .option = "name")

const struct hf_input hf_subscribe_inputs[] = {
    KEY(hf_subscription_new), OWNER(hf_subscription_new),
    SOURCE(HF_IN_NEEDED, hf_subscription_new), TARGET, END,
};

const struct hf_input hf_trigger_update_inputs[] = {
    KEY(hf_subscription_new), OWNER(hf_subscription_new),
    REVISION(HF_IN_NEEDED, hf_subscribe_request), SOURCE(HF_IN_NEEDED, hf_subscription_new),
    TARGET, END,
};

const struct hf_input hf_trigger_change_inputs[] = {
    KEY(hf_trigger_change), OWNER(hf_trigger_change), REVISION(0, hf_trigger_change), END,
};
const struct hf_input hf_trigger_show_inputs[] = {
    KEY(hf_trigger_change), OWNER(hf_trigger_change), END,
};

const struct hf_input hf_trigger_list_inputs[] = {
    OWNER(hf_trigger_filter),
    SOURCE(0, hf_trigger_filter),
    { "state", "STATE", HF_IN_WORD, 0, "only those (default: all that were not removed)",
      .words = state_words, HF_IN_AT(hf_trigger_filter, state) },
    LIMIT(hf_trigger_filter),
    { "after", "CURSOR", HF_IN_TEXT, 0, "go on after an earlier page",
      HF_IN_AT(hf_trigger_filter, after) },
    END,
};

const struct hf_input hf_emit_inputs[] = {
    SOURCE(HF_IN_NEEDED, hf_occurrence_new),
    { "idempotency_key", "KEY", HF_IN_TEXT, HF_IN_NEEDED,
      "what makes it this occurrence and no other of its source",
      HF_IN_AT(hf_occurrence_new, idempotency_key) },
    { "payload", "JSON", HF_IN_JSON, 0, "what happened", .limit = HF_LIMIT_PAYLOAD_BYTES,
      HF_IN_AT(hf_occurrence_new, payload) },
    { "scope", "SCOPE", HF_IN_TEXT, 0, "reach only subscriptions of this owner",
      HF_IN_AT(hf_occurrence_new, scope) },
    { "occurred_at", "TIME", HF_IN_INSTANT, 0, "when, RFC 3339 (default: now)",
      HF_IN_AT(hf_occurrence_new, occurred_at) },
    END,
};

const struct hf_input hf_deliveries_inputs[] = {
    { "occurrence_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "the occurrence",
      .option = "occurrence", HF_IN_AT(hf_read_request, id) },
    END,
};

const struct hf_input hf_granted_inputs[] = {
    { "session_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "the session",
      .option = "session", HF_IN_AT(hf_read_request, id) },
    LIMIT(hf_read_request),
    END,
};
/* clang-format on */
