/* What can be typed after `holdfast trigger`. */
#include "op/op.h"
#include "op/unit_inputs.h"

static const char *const state_words[] = { "enabled", "disabled", "deleted", NULL };

#define KEY_OPTION                                                                       \
    {                                                                                    \
        "key", "KEY", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                             \
            .help = "the subscription's key, its owner's own"                            \
    }
#define OWNER_OPTION                                                                     \
    {                                                                                    \
        "owner-scope", "SCOPE", HF_IN_TEXT, 0,                                           \
            .help = "whose it is: session:ID, host:BINDING or host (default: host)"      \
    }
#define REVISION_OPTION(flags)                                                           \
    {                                                                                    \
        "revision", "N", HF_IN_INT, (flags),                                             \
            .help = "only if it is still at this revision; else exit code 7", .min = 1,  \
            .max = INT64_MAX                                                             \
    }
#define SOURCE_OPTIONS(flags)                                                            \
    { "source-type", "TYPE", HF_IN_TEXT, (flags), .help = "what kind of source" },       \
    {                                                                                    \
        "source-key", "KEY", HF_IN_TEXT, (flags), .help = "which one of them"            \
    }

#define TARGET_OPTIONS                                                                   \
    { "template",                                                                        \
      "JSON",                                                                            \
      HF_IN_JSON,                                                                        \
      0,                                                                                 \
      .help = "payload of the target; {\"$event\":\"a.b\"} stands for a member of what " \
              "happened (default: its payload as it is)",                                \
      .limit = HF_LIMIT_PAYLOAD_BYTES },                                                 \
        { "kind", "K", HF_IN_TEXT, 0, .help = "kind of the target (default: work)" },    \
        { "queue", "Q", HF_IN_TEXT, 0, .help = "its queue (default: default)" },         \
        OP_UNIT_INPUTS,                                                                  \
        { "wake-session", "ID", HF_IN_TEXT, 0,                                           \
          .help = "also wake this session: a unit of kind wake in the queue "            \
                  "session:ID, and a grant of the target's handle" },                    \
        { "process", "KIND", HF_IN_TEXT, 0,                                              \
          .help = "the target is a background process of this kind" },                   \
    {                                                                                    \
        "name", "N", HF_IN_TEXT, 0, .help = "name of that process"                       \
    }

static const struct hf_input subscribe_options[] = {
    KEY_OPTION,     OWNER_OPTION,     SOURCE_OPTIONS(HF_IN_NEEDED),
    TARGET_OPTIONS, { .name = NULL },
};

static const struct hf_input update_options[] = {
    KEY_OPTION,
    OWNER_OPTION,
    REVISION_OPTION(HF_IN_NEEDED),
    SOURCE_OPTIONS(HF_IN_NEEDED),
    TARGET_OPTIONS,
    { .name = NULL },
};

static const struct hf_input change_options[] = {
    KEY_OPTION, OWNER_OPTION, REVISION_OPTION(0), { .name = NULL }
};
static const struct hf_input show_options[] = { KEY_OPTION,
                                                OWNER_OPTION,
                                                { .name = NULL } };

static const struct hf_input list_options[] = {
    OWNER_OPTION,
    SOURCE_OPTIONS(0),
    { "state", "STATE", HF_IN_WORD, 0,
      .help = "only those (default: all that were not removed)", .words = state_words },
    { "limit", "N", HF_IN_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", HF_IN_TEXT, 0, .help = "go on after an earlier page" },
    { .name = NULL },
};

static const struct hf_input emit_options[] = {
    SOURCE_OPTIONS(HF_IN_NEEDED),
    { "idempotency-key", "KEY", HF_IN_TEXT, HF_IN_NEEDED,
      .help = "what makes it this occurrence and no other of its source" },
    { "payload", "JSON", HF_IN_JSON, 0, .help = "what happened",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "scope", "SCOPE", HF_IN_TEXT, 0, .help = "reach only subscriptions of this owner" },
    { "occurred-at", "TIME", HF_IN_TEXT, 0, .help = "when, RFC 3339 (default: now)" },
    { .name = NULL },
};

static const struct hf_input deliveries_options[] = {
    { "occurrence", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the occurrence" },
    { .name = NULL },
};

static const struct hf_input granted_options[] = {
    { "session", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, .help = "the session" },
    { "limit", "N", HF_IN_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { .name = NULL },
};

static const struct op_example subscribe_examples[] = {
    { "a triage job for every mail, and wake the session that asked for it",
      "holdfast trigger subscribe new-mail --source-type mail --source-key inbox --kind "
      "triage --template '{\"from\":{\"$event\":\"from\"}}' --wake-session s1" },
    { .what = NULL },
};
static const struct op_example update_examples[] = {
    { "another kind of target, if nobody changed it meanwhile",
      "holdfast trigger update new-mail --revision 1 --source-type mail --source-key "
      "inbox --kind sort" },
    { .what = NULL },
};
static const struct op_example enable_examples[] = {
    { "deliver again", "holdfast trigger enable new-mail" },
    { .what = NULL },
};
static const struct op_example disable_examples[] = {
    { "deliver nothing for now", "holdfast trigger disable new-mail" },
    { .what = NULL },
};
static const struct op_example remove_examples[] = {
    { "deliver nothing any more; the history stays", "holdfast trigger remove new-mail" },
    { .what = NULL },
};
static const struct op_example revive_examples[] = {
    { "after all", "holdfast trigger revive new-mail" },
    { .what = NULL },
};
static const struct op_example show_examples[] = {
    { "one, with what it starts", "holdfast trigger show new-mail" },
    { .what = NULL },
};
static const struct op_example list_examples[] = {
    { "who waits for mail", "holdfast trigger list --source-type mail" },
    { .what = NULL },
};
static const struct op_example emit_examples[] = {
    { "a mail came; sent twice it starts nothing twice",
      "holdfast trigger emit --source-type mail --source-key inbox --idempotency-key "
      "msg-17 --payload '{\"from\":\"ann\"}'" },
    { .what = NULL },
};
static const struct op_example deliveries_examples[] = {
    { "what became of it", "holdfast trigger deliveries \"$OCCURRENCE\"" },
    { .what = NULL },
};
static const struct op_example granted_examples[] = {
    { "what a session was given to see", "holdfast trigger granted s1" },
    { .what = NULL },
};

const struct op op_trigger_rows[] = {
    { "trigger.subscribe", "start a target whenever something happens",
      "Every occurrence of the source, from now on, makes one unit of work: source "
      "control, source id the subscription, run id the occurrence. The same definition "
      "again changes nothing.",
      subscribe_options, .examples = subscribe_examples, .flags = OP_STORE,
      .actor_kind = "human", .exits = "6 7 8 9" },
    { "trigger.update", "replace what a subscription waits for and starts",
      "All of it, at the revision that you have seen. It stays enabled or disabled.",
      update_options, .examples = update_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "3 4 6 7 8 9" },
    { "trigger.enable", "deliver to a subscription again", NULL, change_options,
      .examples = enable_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "trigger.disable", "deliver nothing to a subscription", NULL, change_options,
      .examples = disable_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "trigger.remove", "end a subscription; its history stays",
      "What it started goes on. The key can be revived, and used for nothing else.",
      change_options, .examples = remove_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "3 4 6 7 8 9" },
    { "trigger.revive", "begin a removed subscription anew", NULL, change_options,
      .examples = revive_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "trigger.list", "list subscriptions", NULL, list_options, .examples = list_examples,
      .flags = OP_READS, .actor_kind = "human", .exits = "6 9" },
    { "trigger.show", "show a subscription", NULL, show_options,
      .examples = show_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "3 6 9" },
    { "trigger.emit", "say that something happened",
      "One transaction stores the occurrence and starts the target of every enabled "
      "subscription that matches. The same key again starts nothing and shows what the "
      "first did; with other content it is refused with 7. A template that names a "
      "member that the payload does not have refuses it whole, with 2.",
      emit_options, .examples = emit_examples, .flags = OP_STORE, .actor_kind = "webhook",
      .exits = "6 7 8 9" },
    { "trigger.deliveries", "what an occurrence started", NULL, deliveries_options,
      .examples = deliveries_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "3 6 9" },
    { "trigger.granted", "the units that a session was granted", NULL, granted_options,
      .examples = granted_examples, .flags = OP_READS | OP_FIELD, .actor_kind = "human",
      .exits = "6 9" },
    { .name = NULL },
};
