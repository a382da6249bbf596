/* What can be typed after `holdfast trigger`. */
#include "cli/cli.h"
#include "cli/table/unit_options.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

static const char *const state_words[] = { "enabled", "disabled", "deleted", NULL };

#define KEY_OPTION                                                                       \
    {                                                                                    \
        "key", "KEY", CLI_TEXT, CLI_NEEDED | CLI_BARE,                                   \
            .help = "the subscription's key, its owner's own"                            \
    }
#define OWNER_OPTION                                                                     \
    {                                                                                    \
        "owner-scope", "SCOPE", CLI_TEXT, 0,                                             \
            .help = "whose it is: session:ID, host:BINDING or host (default: host)"      \
    }
#define REVISION_OPTION(flags)                                                           \
    {                                                                                    \
        "revision", "N", CLI_INT, (flags),                                               \
            .help = "only if it is still at this revision; else exit code 7", .min = 1,  \
            .max = INT64_MAX                                                             \
    }
#define SOURCE_OPTIONS(flags)                                                            \
    { "source-type", "TYPE", CLI_TEXT, (flags), .help = "what kind of source" },         \
    {                                                                                    \
        "source-key", "KEY", CLI_TEXT, (flags), .help = "which one of them"              \
    }

#define TARGET_OPTIONS                                                                   \
    { "template",                                                                        \
      "JSON",                                                                            \
      CLI_JSON,                                                                          \
      0,                                                                                 \
      .help = "payload of the target; {\"$event\":\"a.b\"} stands for a member of what " \
              "happened (default: its payload as it is)",                                \
      .limit = HF_LIMIT_PAYLOAD_BYTES },                                                 \
        { "kind", "K", CLI_TEXT, 0, .help = "kind of the target (default: work)" },      \
        { "queue", "Q", CLI_TEXT, 0, .help = "its queue (default: default)" },           \
        CLI_UNIT_OPTIONS,                                                                \
        { "wake-session", "ID", CLI_TEXT, 0,                                             \
          .help = "also wake this session: a unit of kind wake in the queue "            \
                  "session:ID, and a grant of the target's handle" },                    \
        { "process", "KIND", CLI_TEXT, 0,                                                \
          .help = "the target is a background process of this kind" },                   \
    {                                                                                    \
        "name", "N", CLI_TEXT, 0, .help = "name of that process"                         \
    }

static const struct cli_option subscribe_options[] = {
    KEY_OPTION, OWNER_OPTION, SOURCE_OPTIONS(CLI_NEEDED), TARGET_OPTIONS, END_OPTIONS,
};

static const struct cli_option update_options[] = {
    KEY_OPTION,     OWNER_OPTION, REVISION_OPTION(CLI_NEEDED), SOURCE_OPTIONS(CLI_NEEDED),
    TARGET_OPTIONS, END_OPTIONS,
};

static const struct cli_option change_options[] = { KEY_OPTION, OWNER_OPTION,
                                                    REVISION_OPTION(0), END_OPTIONS };
static const struct cli_option show_options[] = { KEY_OPTION, OWNER_OPTION, END_OPTIONS };

static const struct cli_option list_options[] = {
    OWNER_OPTION,
    SOURCE_OPTIONS(0),
    { "state", "STATE", CLI_WORD, 0,
      .help = "only those (default: all that were not removed)", .words = state_words },
    { "limit", "N", CLI_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", CLI_TEXT, 0, .help = "go on after an earlier page" },
    END_OPTIONS,
};

static const struct cli_option emit_options[] = {
    SOURCE_OPTIONS(CLI_NEEDED),
    { "idempotency-key", "KEY", CLI_TEXT, CLI_NEEDED,
      .help = "what makes it this occurrence and no other of its source" },
    { "payload", "JSON", CLI_JSON, 0, .help = "what happened",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "scope", "SCOPE", CLI_TEXT, 0, .help = "reach only subscriptions of this owner" },
    { "occurred-at", "TIME", CLI_TEXT, 0, .help = "when, RFC 3339 (default: now)" },
    END_OPTIONS,
};

static const struct cli_option deliveries_options[] = {
    { "occurrence", "ID", CLI_TEXT, CLI_NEEDED | CLI_BARE, .help = "the occurrence" },
    END_OPTIONS,
};

static const struct cli_option granted_options[] = {
    { "session", "ID", CLI_TEXT, CLI_NEEDED | CLI_BARE, .help = "the session" },
    { "limit", "N", CLI_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};

static const struct cli_example subscribe_examples[] = {
    { "a triage job for every mail, and wake the session that asked for it",
      "holdfast trigger subscribe new-mail --source-type mail --source-key inbox --kind "
      "triage --template '{\"from\":{\"$event\":\"from\"}}' --wake-session s1" },
    END_EXAMPLES,
};
static const struct cli_example update_examples[] = {
    { "another kind of target, if nobody changed it meanwhile",
      "holdfast trigger update new-mail --revision 1 --source-type mail --source-key "
      "inbox --kind sort" },
    END_EXAMPLES,
};
static const struct cli_example enable_examples[] = {
    { "deliver again", "holdfast trigger enable new-mail" },
    END_EXAMPLES,
};
static const struct cli_example disable_examples[] = {
    { "deliver nothing for now", "holdfast trigger disable new-mail" },
    END_EXAMPLES,
};
static const struct cli_example remove_examples[] = {
    { "deliver nothing any more; the history stays", "holdfast trigger remove new-mail" },
    END_EXAMPLES,
};
static const struct cli_example revive_examples[] = {
    { "after all", "holdfast trigger revive new-mail" },
    END_EXAMPLES,
};
static const struct cli_example show_examples[] = {
    { "one, with what it starts", "holdfast trigger show new-mail" },
    END_EXAMPLES,
};
static const struct cli_example list_examples[] = {
    { "who waits for mail", "holdfast trigger list --source-type mail" },
    END_EXAMPLES,
};
static const struct cli_example emit_examples[] = {
    { "a mail came; sent twice it starts nothing twice",
      "holdfast trigger emit --source-type mail --source-key inbox --idempotency-key "
      "msg-17 --payload '{\"from\":\"ann\"}'" },
    END_EXAMPLES,
};
static const struct cli_example deliveries_examples[] = {
    { "what became of it", "holdfast trigger deliveries \"$OCCURRENCE\"" },
    END_EXAMPLES,
};
static const struct cli_example granted_examples[] = {
    { "what a session was given to see", "holdfast trigger granted s1" },
    END_EXAMPLES,
};

const struct cli_command cli_trigger_commands[] = {
    { "trigger subscribe", "start a target whenever something happens",
      "Every occurrence of the source, from now on, makes one unit of work: source "
      "control, source id the subscription, run id the occurrence. The same definition "
      "again changes nothing.",
      subscribe_options, subscribe_examples, CLI_STORE, "human", "6 7 8 9",
      cmd_trigger_subscribe, check_subscribe },
    { "trigger update", "replace what a subscription waits for and starts",
      "All of it, at the revision that you have seen. It stays enabled or disabled.",
      update_options, update_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9",
      cmd_trigger_update, check_subscribe },
    { "trigger enable", "deliver to a subscription again", NULL, change_options,
      enable_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9", cmd_trigger_enable, NULL },
    { "trigger disable", "deliver nothing to a subscription", NULL, change_options,
      disable_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9", cmd_trigger_disable,
      NULL },
    { "trigger remove", "end a subscription; its history stays",
      "What it started goes on. The key can be revived, and used for nothing else.",
      change_options, remove_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9",
      cmd_trigger_remove, NULL },
    { "trigger revive", "begin a removed subscription anew", NULL, change_options,
      revive_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9", cmd_trigger_revive, NULL },
    { "trigger list", "list subscriptions", NULL, list_options, list_examples, CLI_READS,
      "human", "6 9", cmd_trigger_list, NULL },
    { "trigger show", "show a subscription", NULL, show_options, show_examples, CLI_READS,
      "human", "3 6 9", cmd_trigger_show, NULL },
    { "trigger emit", "say that something happened",
      "One transaction stores the occurrence and starts the target of every enabled "
      "subscription that matches. The same key again starts nothing and shows what the "
      "first did; with other content it is refused with 7. A template that names a "
      "member that the payload does not have refuses it whole, with 2.",
      emit_options, emit_examples, CLI_STORE, "webhook", "6 7 8 9", cmd_trigger_emit,
      check_emit },
    { "trigger deliveries", "what an occurrence started", NULL, deliveries_options,
      deliveries_examples, CLI_READS, "human", "3 6 9", cmd_trigger_deliveries, NULL },
    { "trigger granted", "the units that a session was granted", NULL, granted_options,
      granted_examples, CLI_READS | CLI_ROWS, "human", "6 9", cmd_trigger_granted, NULL },
    { .path = NULL },
};
