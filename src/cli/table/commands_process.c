/* What can be typed after `holdfast process`. */
#include "cli/cli.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

static const char *const disposition_words[] = { "rerunnable", "owner_bound",
                                                 "externally_owned", NULL };
static const char *const complete_words[] = { "done", "failed", "cancelled", NULL };
#define WORD(name, word) (word),
static const char *const status_words[] = { HF_STATUSES(WORD) NULL };
#undef WORD

#define ID_OPTION                                                                        \
    {                                                                                    \
        "id", "ID", CLI_TEXT, CLI_NEEDED | CLI_BARE,                                     \
            .help = "the process: its id, or a unique prefix or suffix of it"            \
    }

static const struct cli_option start_options[] = {
    { "command", "CMD", CLI_TEXT, CLI_BARE | CLI_MANY,
      .help = "a command to run in the background, after --" },
    { "disposition", "WORD", CLI_WORD, CLI_NEEDED,
      .help = "what becomes of it when its owner is lost; there is no default",
      .words = disposition_words },
    { "kind", "K", CLI_TEXT, 0,
      .help = "what sort of process (default: process, shell)" },
    { "name", "N", CLI_TEXT, 0, .help = "its name for people" },
    { "definition", "JSON", CLI_JSON, 0, .help = "what it was made from",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "label", "KEY=VALUE", CLI_TEXT, CLI_MANY, .help = "a label; several may be given" },
    { "input", "JSON", CLI_JSON, 0, .help = "what it works on",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "originator", "ID", CLI_TEXT, 0,
      .help = "who began it: a session, host or host:SCOPE (default: host)" },
    { "wake", "SESSION", CLI_TEXT, 0,
      .help = "the session that its end wakes: a unit in the queue session:SESSION" },
    { "observer", "SESSION", CLI_TEXT, CLI_MANY, .help = "a session that may see it" },
    { "parent", "ID", CLI_TEXT, 0, .help = "the unit that it belongs to" },
    { "ref", "REF", CLI_TEXT, 0, .help = "the reference of what is owned elsewhere" },
    { "queue", "Q", CLI_TEXT, 0, .help = "the queue (default: default, run)" },
    { "max-attempts", "N", CLI_INT, 0, .help = "executions before it fails for good",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "timeout", "DURATION", CLI_DURATION, 0, .help = "of the command", .min = 1 },
    { "idempotency-key", "K", CLI_TEXT, 0, .help = "start it once" },
    { "detached", NULL, CLI_FLAG, 0, .help = "born done: its hand-off is what was done" },
    { "no-run", NULL, CLI_FLAG, 0,
      .help = "leave the command to a `holdfast run --worker` or `monitor --run`" },
    END_OPTIONS,
};
static const struct cli_example start_examples[] = {
    { "a shell in the background",
      "holdfast process start --disposition owner_bound --name build -- make all" },
    { "what somebody else runs",
      "holdfast process start --disposition externally_owned --ref job-17" },
    END_EXAMPLES,
};

static const struct cli_option list_options[] = {
    { "all", NULL, CLI_FLAG, 0, .help = "finished ones too" },
    { "status", "STATUS", CLI_WORD, 0, .help = "only in this status",
      .words = status_words },
    { "waiting", NULL, CLI_FLAG, 0, .help = "only those that wait" },
    { "originator", "ID", CLI_TEXT, 0, .help = "only what it began" },
    { "kind", "K", CLI_TEXT, 0, .help = "only of this kind" },
    { "name", "N", CLI_TEXT, 0, .help = "only of this name" },
    { "label", "KEY=VALUE", CLI_TEXT, 0, .help = "only with this label" },
    { "definition", "JSON", CLI_JSON, 0, .help = "only of this definition",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "observer", "SESSION", CLI_TEXT, 0, .help = "only what it may see" },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", CLI_TEXT, 0, .help = "go on after an earlier page" },
    END_OPTIONS,
};
static const struct cli_example list_examples[] = {
    { "is anything stuck? compare lease and start yourself",
      "holdfast process list --json" },
    END_EXAMPLES,
};

static const struct cli_option show_options[] = {
    ID_OPTION,
    { "attempt", "N", CLI_INT, 0,
      .help = "the output of this attempt (default: the last)", .min = 1,
      .limit = HF_LIMIT_ATTEMPTS_MAX },
    END_OPTIONS,
};
static const struct cli_example show_examples[] = {
    { "facts and output", "holdfast process show 2753751b8369" },
    END_EXAMPLES,
};

static const struct cli_option events_options[] = {
    ID_OPTION,
    { "after", "N", CLI_INT, 0, .help = "only events after this one", .min = 0,
      .max = INT64_MAX },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 1000)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};
static const struct cli_example events_examples[] = {
    { "all that happened", "holdfast process events 2753751b8369" },
    END_EXAMPLES,
};

static const struct cli_option signal_options[] = {
    ID_OPTION,
    { "name", "NAME", CLI_TEXT, CLI_NEEDED | CLI_BARE,
      .help = "letters, digits, _ and -; the event is signal.NAME" },
    { "payload", "JSON", CLI_JSON, 0, .help = "what goes with it",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "key", "K", CLI_TEXT, 0, .help = "the same key again is told once" },
    END_OPTIONS,
};
static const struct cli_example signal_examples[] = {
    { "end a wait for the reference signal.go",
      "holdfast process signal 2753751b8369 go --payload '\"now\"'" },
    END_EXAMPLES,
};

static const struct cli_option observe_options[] = {
    ID_OPTION,
    { "session", "SESSION", CLI_TEXT, CLI_NEEDED | CLI_BARE,
      .help = "the session that may see it" },
    { "end", NULL, CLI_FLAG, 0, .help = "it may not any more" },
    END_OPTIONS,
};
static const struct cli_example observe_examples[] = {
    { "let a session see it", "holdfast process observe 2753751b8369 s2" },
    { "and no longer", "holdfast process observe 2753751b8369 s2 --end" },
    END_EXAMPLES,
};

static const struct cli_option granted_options[] = {
    { "session", "SESSION", CLI_TEXT, CLI_NEEDED | CLI_BARE, .help = "the session" },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};
static const struct cli_example granted_examples[] = {
    { "what a session may see", "holdfast process granted s2" },
    END_EXAMPLES,
};

static const struct cli_option retarget_options[] = {
    ID_OPTION,
    { "session", "SESSION", CLI_TEXT, CLI_BARE,
      .help = "the session to wake from now on" },
    { "none", NULL, CLI_FLAG, 0, .help = "wake nobody" },
    END_OPTIONS,
};
static const struct cli_example retarget_examples[] = {
    { "another session takes over", "holdfast process retarget 2753751b8369 s2" },
    { "nobody is to be woken", "holdfast process retarget 2753751b8369 --none" },
    END_EXAMPLES,
};

static const struct cli_option cancel_options[] = {
    ID_OPTION,
    { "reason", "TEXT", CLI_TEXT, CLI_NEEDED, .help = "why" },
    { "token", "T", CLI_TEXT, 0, .help = "the holder's, where the holder cancels" },
    END_OPTIONS,
};
static const struct cli_example cancel_examples[] = {
    { "ask it to end", "holdfast process cancel 2753751b8369 --reason 'not needed'" },
    END_EXAMPLES,
};

static const struct cli_option reason_options[] = {
    ID_OPTION,
    { "reason", "TEXT", CLI_TEXT, CLI_NEEDED, .help = "why" },
    END_OPTIONS,
};
static const struct cli_example abandon_examples[] = {
    { "its outcome will stay unknown",
      "holdfast process request-abandon 2753751b8369 --reason 'host was lost'" },
    END_EXAMPLES,
};

static const struct cli_option complete_options[] = {
    ID_OPTION,
    { "authority", "NAME", CLI_TEXT, CLI_NEEDED, .help = "who says so" },
    { "status", "STATUS", CLI_WORD, CLI_NEEDED, .help = "how it ended",
      .words = complete_words },
    { "reason", "TEXT", CLI_TEXT, 0, .help = "why" },
    { "class", "CLASS", CLI_TEXT, 0, .help = "of a failure" },
    { "summary", "TEXT", CLI_TEXT, 0, .help = "what came of it" },
    { "output", "REF", CLI_TEXT, CLI_MANY, .help = "a reference to a result" },
    END_OPTIONS,
};
static const struct cli_example complete_examples[] = {
    { "what runs elsewhere has ended there",
      "holdfast process complete 2753751b8369 --authority ci --status done" },
    END_EXAMPLES,
};

static const struct cli_option await_options[] = {
    ID_OPTION,
    { "wait", "DURATION", CLI_DURATION, 0, .help = "at most so long (default: 30s)" },
    END_OPTIONS,
};
static const struct cli_example await_examples[] = {
    { "until it has ended", "holdfast process await 2753751b8369 --wait 1h" },
    END_EXAMPLES,
};

static const struct cli_option prune_options[] = {
    { "older-than", "DURATION", CLI_DURATION, CLI_NEEDED,
      .help = "ended at least so long ago" },
    END_OPTIONS,
};
static const struct cli_example prune_examples[] = {
    { "keep a week", "holdfast process prune --older-than 7d" },
    END_EXAMPLES,
};

static const struct cli_option drain_options[] = {
    { "owner", "O", CLI_TEXT, CLI_NEEDED, .help = "whose processes" },
    { "incarnation", "I", CLI_TEXT, CLI_NEEDED, .help = "of this incarnation" },
    END_OPTIONS,
};
static const struct cli_example drain_examples[] = {
    { "before a host goes down",
      "holdfast process drain --owner host-1 --incarnation boot-8" },
    END_EXAMPLES,
};

#define CHANGE (CLI_MUST_EXIST | CLI_ROW)

const struct cli_command cli_process_commands[] = {
    { "process start", "register a process, and run its command in the background",
      "The disposition must be declared. With a command after -- a runner of its own is "
      "started, which outlives this command and its terminal.",
      start_options, start_examples, CLI_STORE | CLI_ROW, "human", "6 7 8 9",
      cmd_process_start, check_process_start },
    { "process list",
      "list processes, with the raw facts for whoever asks if one is stuck",
      "Nothing is called stuck: compare disposition, start, holder and lease with a "
      "budget of your own.",
      list_options, list_examples, CLI_READS, "human", "6 9", cmd_process_list, NULL },
    { "process show", "show one process and what it wrote", NULL, show_options,
      show_examples, CLI_READS, "human", "3 6 9", cmd_process_show, NULL },
    { "process events", "show everything that happened to it", NULL, events_options,
      events_examples, CLI_READS, "human", "3 6 9", cmd_process_events, NULL },
    { "process signal", "tell it something, and end a wait for it",
      "Appends the event signal.NAME. A process that waits for the reference signal.NAME "
      "is resumed in the same transaction; one that is owner_bound and started finds the "
      "event and goes on by itself.",
      signal_options, signal_examples, CHANGE, "human", "3 4 6 7 8 9", cmd_process_signal,
      NULL },
    { "process observe", "let a session see it, or no longer",
      "Grants the session the process's handle. It wakes nobody, and keeps nothing "
      "alive.",
      observe_options, observe_examples, CHANGE, "human", "3 4 6 7 8 9",
      cmd_process_observe, NULL },
    { "process granted", "list what a session may see",
      "Units that it was granted by a trigger, and processes that it observes.",
      granted_options, granted_examples, CLI_READS | CLI_ROWS, "human", "6 9",
      cmd_trigger_granted, NULL },
    { "process retarget", "change the session that its end wakes",
      "Wakes that nobody has taken yet are cancelled as retargeted.", retarget_options,
      retarget_examples, CHANGE, "human", "3 4 6 7 8 9", cmd_process_retarget,
      check_process_retarget },
    { "process cancel", "end it, or ask its owner to",
      "A running owner_bound process is only asked: its owner sees the request.",
      cancel_options, cancel_examples, CHANGE, "human", "3 4 5 6 7 8 9",
      cmd_process_cancel, NULL },
    { "process request-abandon", "accept that its outcome stays unknown",
      "A recorded request: who, when, why; the first stands. A sweep acts on it once the "
      "lease has lapsed.",
      reason_options, abandon_examples, CHANGE, "human", "3 4 6 7 8 9",
      cmd_process_request_abandon, NULL },
    { "process complete", "say how an externally_owned process ended", NULL,
      complete_options, complete_examples, CHANGE, "human", "3 4 6 7 8 9",
      cmd_process_complete, NULL },
    { "process await", "wait until it has ended, and exit with its outcome",
      "Exits with 0 only when it is done.", await_options, await_examples, CHANGE,
      "human", "3 6 9 11 12 13 14", cmd_process_await, NULL },
    { "process prune", "delete processes that ended long ago, and say what went", NULL,
      prune_options, prune_examples, CLI_MUST_EXIST, "human", "6 8 9", cmd_process_prune,
      check_prune },
    { "process drain", "end an owner's own owner_bound processes, as abandoned",
      "What is rerunnable, never started or somebody else's stays as it is.",
      drain_options, drain_examples, CLI_MUST_EXIST, "human", "6 8 9", cmd_process_drain,
      NULL },
    { .path = NULL },
};
