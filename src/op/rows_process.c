/* The operations on `process` as rows of the table (struct op): their names, inputs, answers,
 * errors, help and examples, and the functions that run them. */
#include "op/process.h"

#include "op/rows.h"
#include "op/shapes/ledger.h"
#include "op/shapes/process.h"
#include "op/trigger.h"
#include "op/work.h"

static const struct op_example start_examples[] = {
    { "a shell in the background",
      "holdfast process start --disposition owner_bound --name build -- make all" },
    { "a process that another system runs",
      "holdfast process start --disposition externally_owned --ref job-17" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "find a stuck process: compare its lease and start",
      "holdfast process list --json" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "facts and output", "holdfast process show 2753751b8369" },
    { .what = NULL },
};

static const struct op_example events_examples[] = {
    { "all its events", "holdfast process events 2753751b8369" },
    { .what = NULL },
};

static const struct op_example signal_examples[] = {
    { "end a wait for the reference signal.go",
      "holdfast process signal 2753751b8369 go --payload '\"now\"'" },
    { .what = NULL },
};

static const struct op_example observe_examples[] = {
    { "grant it to a session", "holdfast process observe 2753751b8369 s2" },
    { "revoke the grant", "holdfast process observe 2753751b8369 s2 --end" },
    { .what = NULL },
};

static const struct op_example granted_examples[] = {
    { "processes and units that a session may see", "holdfast process granted s2" },
    { .what = NULL },
};

static const struct op_example retarget_examples[] = {
    { "another session takes over", "holdfast process retarget 2753751b8369 s2" },
    { "wake no session", "holdfast process retarget 2753751b8369 --none" },
    { .what = NULL },
};

static const struct op_example cancel_examples[] = {
    { "ask it to end", "holdfast process cancel 2753751b8369 --reason 'not needed'" },
    { .what = NULL },
};

static const struct op_example abandon_examples[] = {
    { "abandon it: its outcome stays unknown",
      "holdfast process request-abandon 2753751b8369 --reason 'host was lost'" },
    { .what = NULL },
};

static const struct op_example complete_examples[] = {
    { "report the end of a process that runs elsewhere",
      "holdfast process complete 2753751b8369 --authority ci --status done" },
    { .what = NULL },
};

static const struct op_example await_examples[] = {
    { "wait until it has ended", "holdfast process await 2753751b8369 --wait 1h" },
    { .what = NULL },
};

static const struct op_example prune_examples[] = {
    { "keep a week", "holdfast process prune --older-than 7d" },
    { .what = NULL },
};

static const struct op_example drain_examples[] = {
    { "before a host goes down",
      "holdfast process drain --owner host-1 --incarnation boot-8" },
    { .what = NULL },
};

/* clang-format off */
#define TELL(what_)                                                                      \
    BLANK(hf_tell_request,                                                               \
          .tell = { .size = sizeof(struct hf_process_tell), .what = HF_TELL_##what_ })
#define CHANGER                                                                          \
    .role = OP_OPERATOR, .errors = op_operator_errors, .actor_kind = "human",            \
    .flags = OP_MUST_EXIST | OP_SHELL

const struct op op_process_rows[] = {
    { "process.start", "register a background process, and start its command",
      "If a command follows --, a runner is started for it, which outlives this command "
      "and its terminal. --disposition is required: if the runner dies, "
      "`holdfast monitor --run` runs a rerunnable process again; an owner_bound one is "
      "never run twice, and an unknown outcome is reported as unknown; an "
      "externally_owned one runs elsewhere and is completed from there.",
      hf_process_start_inputs,
      NULL,
      BLANK(hf_start_request, .process = { .size = sizeof(struct hf_process_spec) },
            .work = { .size = sizeof(struct hf_work_spec), .source = HF_SOURCE_MANUAL,
                      .priority = -1 }),
      start_examples, UNIT, .facts = &hf_created_shape, .errors = op_create_errors,
      .role = OP_WORKER, .route = "POST /v1/processes",
      .flags = OP_CREATES | OP_STORE | OP_SHELL, .actor_kind = "human",
      .check = op_check_process_start, .run = op_run_process_start },
    { "process.list", "list processes, with facts that show whether one is stuck",
      "The program calls no process stuck: compare disposition, start, holder and "
      "lease with your own budget.", hf_process_list_inputs, NULL,
      BLANK(hf_process_filter, .size = sizeof(struct hf_process_filter)), list_examples,
      .answer = OP_LIST, .shape = &hf_process_shape, .errors = op_read_errors,
      READER(OP_FIELD | OP_PAGED), .route = "GET /v1/processes", .run = op_run_process_list },
    { "process.show", "show one process and its output", NULL, hf_process_show_inputs,
      NULL, BLANK(hf_read_request, .id = NULL), show_examples, .answer = OP_ROW,
      .shape = &hf_process_shape, .facts = &hf_output_facts_shape,
      .errors = op_get_errors, READER(0), .route = "GET /v1/processes/{process_id}",
      .run = op_run_process_show },
    { "process.events", "show the events of one process", NULL,
      hf_process_events_inputs, NULL, BLANK(hf_read_request, .id = NULL), events_examples,
      .answer = OP_LIST, .shape = &hf_event_shape, .errors = op_get_errors,
      READER(OP_PAGED), .route = "GET /v1/processes/{process_id}/events",
      .run = op_run_process_events },
    { "process.signal", "send a signal to a process, and end its wait for it",
      "Appends the event signal.NAME. A process that waits for the reference "
      "signal.NAME is resumed in the same transaction. A signal that comes earlier is "
      "kept, and ends the next wait for it. A started owner_bound process that waits "
      "is not resumed: its owner's work resume takes the signal.", hf_process_signal_inputs, NULL, TELL(SIGNAL),
      signal_examples, UNIT, CHANGER, .route = "POST /v1/processes/{process_id}/signal",
      .run = op_run_tell },
    { "process.observe", "grant a process to a session, or revoke the grant",
      "Grants the handle of the process to the session. A grant wakes no session and "
      "keeps no process alive.", hf_process_observe_inputs, NULL, TELL(OBSERVE), observe_examples, UNIT,
      CHANGER, .route = "POST /v1/processes/{process_id}/observe", .run = op_run_tell },
    { "process.granted", "list the units and processes that a session may see",
      "Units that a trigger granted to it, and processes that it observes.",
      hf_process_granted_inputs, NULL, BLANK(hf_read_request, .id = NULL),
      granted_examples, UNITS, .errors = op_read_errors,
      READER(OP_FIELD | OP_PAGED | OP_ALIAS), .run = op_run_granted },
    { "process.retarget", "change the session that the end of a process wakes",
      "Wakes that no turn has taken are cancelled as retargeted.",
      hf_process_retarget_inputs, NULL, TELL(RETARGET), retarget_examples, UNIT, CHANGER,
      .route = "POST /v1/processes/{process_id}/retarget", .check = op_check_retarget,
      .run = op_run_tell },
    { "process.cancel", "cancel a process, or ask its owner to end it",
      "For a running owner_bound process only a request is recorded: its owner sees "
      "it and ends the process.",
      hf_process_cancel_inputs, NULL, VERB(CANCEL), cancel_examples, UNIT,
      .role = OP_OPERATOR, .errors = op_settle_errors, .actor_kind = "human",
      .flags = OP_MUST_EXIST | OP_SHELL | OP_REPEATABLE,
      .route = "POST /v1/processes/{process_id}/cancel", .did = "cancel of",
      .run = op_run_process_change },
    { "process.request_abandon", "request that a process is abandoned",
      "Records a request with actor, time and reason. The first request is kept. A "
      "sweep acts on it after the lease has lapsed.",
      hf_process_reason_inputs, NULL, VERB(REQUEST_ABANDON), abandon_examples, UNIT,
      OPERATOR, .route = "POST /v1/processes/{process_id}/request-abandon",
      .did = "request recorded for", .run = op_run_process_change },
    { "process.complete", "report how an externally_owned process ended", NULL,
      hf_complete_inputs, NULL,
      BLANK(hf_complete_request,
            .change = { .size = sizeof(struct hf_change), .verb = HF_VERB_CLOSE_OUT }),
      complete_examples, UNIT, OPERATOR,
      .route = "POST /v1/processes/{process_id}/complete", .did = "completed",
      .run = op_run_complete },
    { "process.await", "wait until a process ends, and exit with its outcome",
      "Exits with 0 only if it ended as done.", hf_process_await_inputs, NULL,
      BLANK(hf_await_request, .wait_ms = 30000), await_examples, UNIT, .role = OP_READ,
      .errors = op_get_errors, .exits = "11 12 13 14", .actor_kind = "human",
      .flags = OP_MUST_EXIST | OP_SHELL | OP_WAITS,
      .route = "POST /v1/processes/{process_id}/await", .did = "ended:",
      .run = op_run_await },
    { "process.prune", "delete processes that ended long ago", NULL,
      hf_process_prune_inputs, NULL, BLANK(hf_prune_request, .limit = 0), prune_examples,
      .facts = &hf_process_prune_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "POST /v1/processes/prune", .flags = OP_MUST_EXIST | OP_DESTROYS,
      .actor_kind = "human", .check = op_check_prune, .run = op_run_process_prune },
    { "process.drain", "end the owner_bound processes of an owner, as abandoned",
      "Processes that are rerunnable, externally owned or never started are not changed.",
      hf_process_drain_inputs, NULL, BLANK(hf_drain, .size = sizeof(struct hf_drain)),
      drain_examples, .answer = OP_LIST, .shape = &hf_process_deferred_shape,
      .facts = &hf_drain_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "POST /v1/processes/drain", .flags = OP_MUST_EXIST, .actor_kind = "human",
      .run = op_run_drain },
    { .name = NULL },
};
/* clang-format on */
