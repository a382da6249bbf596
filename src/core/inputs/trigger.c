/* The inputs of operations on triggers. */
#include "core/inputs/inputs.h"
#include "core/inputs/unit_inputs.h"

static const char *const state_words[] = { "enabled", "disabled", "deleted", NULL };

/* clang-format off */
#define END { .name = NULL }
#define KEY(type)                                                                        \
    { "subscription_key", "KEY", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                  \
      "key of the subscription, unique for its owner", .option = "key", HF_IN_AT(type, key) }
#define OWNER(type)                                                                      \
    { "owner_scope", "SCOPE", HF_IN_TEXT, 0,                                             \
      "owner of the subscription: session:ID, host:BINDING or host (default: host)",     \
      HF_IN_AT(type, owner_scope) }
#define REVISION(flags, type)                                                            \
    { "revision", "N", HF_IN_INT, (flags),                                               \
      "change the subscription only if it still has this revision; otherwise exit "      \
      "code 7", .min = 1,                                                                \
      .max = INT64_MAX, HF_IN_AT(type, revision) }
#define SOURCE(flags, type)                                                              \
    { "source_type", "TYPE", HF_IN_TEXT, (flags), "type of the source, such as mail",    \
      HF_IN_AT(type, source_type) },                                                     \
    { "source_key", "KEY", HF_IN_TEXT, (flags), "key of the source within its type, "    \
                                                "such as inbox",                         \
      HF_IN_AT(type, source_key) }
#define LIMIT(type)                                                                      \
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,              \
      .bound = HF_BOUND_PAGE, HF_IN_AT(type, limit) }

/* What a subscription starts. */
#define TEXT(name, member, value, help, ...)                                             \
    { name, value, HF_IN_TEXT, 0, help, HF_IN_AT(hf_subscription_spec, member),           \
      __VA_ARGS__ }
#define TARGET                                                                           \
    { "template", "JSON", HF_IN_JSON, 0,                                                 \
      "payload of the target; {\"$event\":\"a.b\"} is replaced by a member of the "      \
      "occurrence's payload (default: that payload as it is)",                           \
      .bound = HF_BOUND_PAYLOAD_BYTES,                                                   \
      HF_IN_AT(hf_subscription_spec, payload_template) },                                 \
    TEXT("kind", kind, "K", "kind of the target (default: work)", .option = NULL),       \
    TEXT("queue", queue, "Q", "queue of the target (default: default)", .option = NULL), \
    HF_UNIT_INPUTS(hf_subscription_spec),                                                 \
    TEXT("wake_session", wake_session, "ID",                                             \
         "also wake this session: a unit of kind wake in the queue session:ID, and a "   \
         "grant of the target's handle", .option = NULL),                                \
    TEXT("process_kind", process_kind, "KIND",                                           \
         "the target is a background process of this kind", .option = "process"),        \
    TEXT("process_name", process_name, "N", "name of that process", .option = "name")

const struct hf_input hf_subscribe_inputs[] = {
    KEY(hf_subscription_spec), OWNER(hf_subscription_spec),
    SOURCE(HF_IN_NEEDED, hf_subscription_spec), TARGET, END,
};

const struct hf_input hf_trigger_update_inputs[] = {
    KEY(hf_subscription_spec), OWNER(hf_subscription_spec),
    REVISION(HF_IN_NEEDED, hf_subscribe_request), SOURCE(HF_IN_NEEDED, hf_subscription_spec),
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
    { "state", "STATE", HF_IN_WORD, 0, "only subscriptions in this state (default: "
                                       "all that are not removed)",
      .words = state_words, HF_IN_AT(hf_trigger_filter, state) },
    LIMIT(hf_trigger_filter),
    { "after", "CURSOR", HF_IN_TEXT, 0, "continue after this cursor, from the "
                                        "previous page",
      HF_IN_AT(hf_trigger_filter, after) },
    { "newest", NULL, HF_IN_FLAG, 0, "newest first, instead of by owner and key",
      HF_IN_AT(hf_trigger_filter, newest) },
    END,
};

const struct hf_input hf_emit_inputs[] = {
    SOURCE(HF_IN_NEEDED, hf_occurrence_spec),
    { "idempotency_key", "KEY", HF_IN_TEXT, HF_IN_NEEDED,
      "key of the occurrence, unique within its source: the same key is emitted once",
      HF_IN_AT(hf_occurrence_spec, idempotency_key) },
    { "payload", "JSON", HF_IN_JSON, 0, "data of the occurrence, as JSON", .bound = HF_BOUND_PAYLOAD_BYTES,
      HF_IN_AT(hf_occurrence_spec, payload) },
    { "scope", "SCOPE", HF_IN_TEXT, 0, "deliver only to subscriptions of this owner",
      HF_IN_AT(hf_occurrence_spec, scope) },
    { "occurred_at", "TIME", HF_IN_INSTANT, 0, "time of the occurrence, RFC 3339 "
                                               "(default: now)",
      HF_IN_AT(hf_occurrence_spec, occurred_at) },
    END,
};

const struct hf_input hf_deliveries_inputs[] = {
    { "occurrence_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      "id of the occurrence",
      .option = "occurrence", HF_IN_AT(hf_read_request, id) },
    END,
};

const struct hf_input hf_granted_inputs[] = {
    { "session_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "id of the session",
      .option = "session", HF_IN_AT(hf_read_request, id) },
    LIMIT(hf_read_request),
    END,
};
/* clang-format on */
