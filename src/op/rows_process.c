/* What can be typed after `holdfast process`. */
#include "op/process.h"
#include "op/rows.h"
#include "op/trigger.h"

static const char *const disposition_words[] = { "rerunnable", "owner_bound",
                                                 "externally_owned", NULL };
#define WORD(name, word) (word),
static const char *const status_words[] = { HF_STATUSES(WORD) NULL };
#undef WORD

#define ID_OPTION                                                                        \
    {                                                                                    \
        "id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,                               \
            .help = "the process: its id, or a unique prefix or suffix of it"            \
    }

static const struct hf_input start_options[] = {
    { "command", "CMD", HF_IN_TEXTS, HF_IN_BARE,
      .help = "a command to run in the background, after --" },
    { "disposition", "WORD", HF_IN_WORD, HF_IN_NEEDED,
      .help = "what becomes of it when its owner is lost; there is no default",
      .words = disposition_words },
    { "kind", "K", HF_IN_TEXT, 0,
      .help = "what sort of process (default: process, shell)" },
    { "name", "N", HF_IN_TEXT, 0, .help = "its name for people" },
    { "definition", "JSON", HF_IN_JSON, 0, .help = "what it was made from",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "label", "KEY=VALUE", HF_IN_TEXTS, 0, .help = "a label; several may be given" },
    { "input", "JSON", HF_IN_JSON, 0, .help = "what it works on",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "originator", "ID", HF_IN_TEXT, 0,
      .help = "who began it: a session, host or host:SCOPE (default: host)" },
    { "wake", "SESSION", HF_IN_TEXT, 0,
      .help = "the session that its end wakes: a unit in the queue session:SESSION" },
    { "observer", "SESSION", HF_IN_TEXTS, 0, .help = "a session that may see it" },
    { "parent", "ID", HF_IN_TEXT, 0, .help = "the unit that it belongs to" },
    { "ref", "REF", HF_IN_TEXT, 0, .help = "the reference of what is owned elsewhere" },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "the queue (default: default, run)" },
    { "max-attempts", "N", HF_IN_INT, 0, .help = "executions before it fails for good",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "timeout", "DURATION", HF_IN_MS, 0, .help = "of the command", .min = 1 },
    { "idempotency-key", "K", HF_IN_TEXT, 0, .help = "start it once" },
    { "detached", NULL, HF_IN_FLAG, 0,
      .help = "born done: its hand-off is what was done" },
    { "no-run", NULL, HF_IN_FLAG, 0,
      .help = "leave the command to a `holdfast run --worker` or `monitor --run`" },
    { .name = NULL },
};
static const struct op_example start_examples[] = {
    { "a shell in the background",
      "holdfast process start --disposition owner_bound --name build -- make all" },
    { "what somebody else runs",
      "holdfast process start --disposition externally_owned --ref job-17" },
    { .what = NULL },
};

static const struct hf_input list_options[] = {
    { "all", NULL, HF_IN_FLAG, 0, .help = "finished ones too" },
    { "status", "STATUS", HF_IN_WORD, 0, .help = "only in this status",
      .words = status_words },
    { "waiting", NULL, HF_IN_FLAG, 0, .help = "only those that wait" },
    { "originator", "ID", HF_IN_TEXT, 0, .help = "only what it began" },
    { "kind", "K", HF_IN_TEXT, 0, .help = "only of this kind" },
    { "name", "N", HF_IN_TEXT, 0, .help = "only of this name" },
    { "label", "KEY=VALUE", HF_IN_TEXT, 0, .help = "only with this label" },
    { "definition", "JSON", HF_IN_JSON, 0, .help = "only of this definition",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "observer", "SESSION", HF_IN_TEXT, 0, .help = "only what it may see" },
    { "limit", "N", HF_IN_INT, 0, .help = "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", HF_IN_TEXT, 0, .help = "go on after an earlier page" },
    { .name = NULL },
};
static const struct op_example list_examples[] = {
    { "is anything stuck? compare lease and start yourself",
      "holdfast process list --json" },
    { .what = NULL },
};

static const struct hf_input show_options[] = {
    ID_OPTION,
    { "attempt", "N", HF_IN_INT, 0,
      .help = "the output of this attempt (default: the last)", .min = 1,
      .limit = HF_LIMIT_ATTEMPTS_MAX },
    { .name = NULL },
};
static const struct op_example show_examples[] = {
    { "facts and output", "holdfast process show 2753751b8369" },
    { .what = NULL },
};

static const struct op_example events_examples[] = {
    { "all that happened", "holdfast process events 2753751b8369" },
    { .what = NULL },
};

static const struct hf_input signal_options[] = {
    ID_OPTION,
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "letters, digits, _ and -; the event is signal.NAME" },
    { "payload", "JSON", HF_IN_JSON, 0, .help = "what goes with it",
      .limit = HF_LIMIT_EVENT_BYTES },
    { "key", "K", HF_IN_TEXT, 0, .help = "the same key again is told once" },
    { .name = NULL },
};
static const struct op_example signal_examples[] = {
    { "end a wait for the reference signal.go",
      "holdfast process signal 2753751b8369 go --payload '\"now\"'" },
    { .what = NULL },
};

static const struct hf_input observe_options[] = {
    ID_OPTION,
    { "session", "SESSION", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the session that may see it" },
    { "end", NULL, HF_IN_FLAG, 0, .help = "it may not any more" },
    { .name = NULL },
};
static const struct op_example observe_examples[] = {
    { "let a session see it", "holdfast process observe 2753751b8369 s2" },
    { "and no longer", "holdfast process observe 2753751b8369 s2 --end" },
    { .what = NULL },
};

static const struct op_example granted_examples[] = {
    { "what a session may see", "holdfast process granted s2" },
    { .what = NULL },
};

static const struct hf_input retarget_options[] = {
    ID_OPTION,
    { "session", "SESSION", HF_IN_TEXT, HF_IN_BARE,
      .help = "the session to wake from now on" },
    { "none", NULL, HF_IN_FLAG, 0, .help = "wake nobody" },
    { .name = NULL },
};
static const struct op_example retarget_examples[] = {
    { "another session takes over", "holdfast process retarget 2753751b8369 s2" },
    { "nobody is to be woken", "holdfast process retarget 2753751b8369 --none" },
    { .what = NULL },
};

static const struct op_example cancel_examples[] = {
    { "ask it to end", "holdfast process cancel 2753751b8369 --reason 'not needed'" },
    { .what = NULL },
};

static const struct op_example abandon_examples[] = {
    { "its outcome will stay unknown",
      "holdfast process request-abandon 2753751b8369 --reason 'host was lost'" },
    { .what = NULL },
};

static const struct op_example complete_examples[] = {
    { "what runs elsewhere has ended there",
      "holdfast process complete 2753751b8369 --authority ci --status done" },
    { .what = NULL },
};

static const struct hf_input await_options[] = {
    ID_OPTION,
    { "wait", "DURATION", HF_IN_MS, 0, .help = "at most so long (default: 30s)" },
    { .name = NULL },
};
static const struct op_example await_examples[] = {
    { "until it has ended", "holdfast process await 2753751b8369 --wait 1h" },
    { .what = NULL },
};

static const struct hf_input prune_options[] = {
    { "older-than", "DURATION", HF_IN_MS, HF_IN_NEEDED,
      .help = "ended at least so long ago" },
    { .name = NULL },
};
static const struct op_example prune_examples[] = {
    { "keep a week", "holdfast process prune --older-than 7d" },
    { .what = NULL },
};

static const struct hf_input drain_options[] = {
    { "owner", "O", HF_IN_TEXT, HF_IN_NEEDED, .help = "whose processes" },
    { "incarnation", "I", HF_IN_TEXT, HF_IN_NEEDED, .help = "of this incarnation" },
    { .name = NULL },
};
static const struct op_example drain_examples[] = {
    { "before a host goes down",
      "holdfast process drain --owner host-1 --incarnation boot-8" },
    { .what = NULL },
};

#define CHANGE (OP_MUST_EXIST | OP_SHELL)

/* clang-format off */
const struct op op_process_rows[] = {
    { "process.start", "register a process, and run its command in the background",
      "The disposition must be declared. With a command after -- a runner of its own is "
      "started, which outlives this command and its terminal.", start_options,
      .examples = start_examples, .flags = OP_CREATES | OP_STORE | OP_SHELL,
      .actor_kind = "human", .exits = "6 7 8 9" },
    { "process.list", "list processes, with the raw facts for whoever asks if one is stuck",
      "Nothing is called stuck: compare disposition, start, holder and lease with a "
      "budget of your own.", list_options, .examples = list_examples, .flags = OP_READS,
      .actor_kind = "human", .exits = "6 9" },
    { "process.show", "show one process and what it wrote",
      NULL, show_options, .examples = show_examples, .flags = OP_READS,
      .actor_kind = "human", .exits = "3 6 9" },
    { "process.events", "show everything that happened to it", NULL,
      hf_process_events_inputs, NULL, BLANK(hf_read_request, .id = NULL), events_examples,
      .answer = OP_LIST, .shape = &hf_event_shape, .errors = op_get_errors,
      READER(OP_PAGED), .route = "GET /v1/processes/{process_id}/events",
      .run = op_run_process_events },
    { "process.signal", "tell it something, and end a wait for it",
      "Appends the event signal.NAME. A process that waits for the reference signal.NAME "
      "is resumed in the same transaction; one that is owner_bound and started finds the "
      "event and goes on by itself.", signal_options, .examples = signal_examples,
      .flags = CHANGE, .actor_kind = "human", .exits = "3 4 6 7 8 9" },
    { "process.observe", "let a session see it, or no longer",
      "Grants the session the process's handle. It wakes nobody, and keeps nothing "
      "alive.", observe_options, .examples = observe_examples, .flags = CHANGE,
      .actor_kind = "human", .exits = "3 4 6 7 8 9" },
    { "process.granted", "list what a session may see",
      "Units that it was granted by a trigger, and processes that it observes.",
      hf_process_granted_inputs, NULL, BLANK(hf_read_request, .id = NULL),
      granted_examples, UNITS, .errors = op_read_errors,
      READER(OP_FIELD | OP_PAGED | OP_ALIAS), .run = op_run_granted },
    { "process.retarget", "change the session that its end wakes",
      "Wakes that nobody has taken yet are cancelled as retargeted.", retarget_options,
      .examples = retarget_examples, .flags = CHANGE, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "process.cancel", "end it, or ask its owner to",
      "A running owner_bound process is only asked: its owner sees the request.",
      hf_process_cancel_inputs, NULL, VERB(CANCEL), cancel_examples, UNIT,
      .role = OP_OPERATOR, .errors = op_settle_errors, .actor_kind = "human",
      .flags = OP_MUST_EXIST | OP_SHELL | OP_REPEATABLE,
      .route = "POST /v1/processes/{process_id}/cancel", .did = "cancel of",
      .run = op_run_process_change },
    { "process.request_abandon", "accept that its outcome stays unknown",
      "A recorded request: who, when, why; the first stands. A sweep acts on it once the "
      "lease has lapsed.",
      hf_process_reason_inputs, NULL, VERB(REQUEST_ABANDON), abandon_examples, UNIT,
      OPERATOR, .route = "POST /v1/processes/{process_id}/request-abandon",
      .did = "request recorded for", .run = op_run_process_change },
    { "process.complete", "say how an externally_owned process ended", NULL,
      hf_complete_inputs, NULL,
      BLANK(hf_complete_request,
            .change = { .size = sizeof(struct hf_change), .verb = HF_VERB_CLOSE_OUT }),
      complete_examples, UNIT, OPERATOR,
      .route = "POST /v1/processes/{process_id}/complete", .did = "completed",
      .run = op_run_complete },
    { "process.await", "wait until it has ended, and exit with its outcome",
      "Exits with 0 only when it is done.", await_options, .examples = await_examples,
      .flags = CHANGE, .actor_kind = "human", .exits = "3 6 9 11 12 13 14" },
    { "process.prune", "delete processes that ended long ago, and say what went",
      NULL, prune_options, .examples = prune_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "6 8 9" },
    { "process.drain", "end an owner's own owner_bound processes, as abandoned",
      "What is rerunnable, never started or somebody else's stays as it is.", drain_options,
      .examples = drain_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "6 8 9" },
    { .name = NULL },
};
/* clang-format on */
