/* The rows of operations that are not about units of work, and of local ones of one word. */
#include "core/ledger/reports.h"
#include "core/wait/shapes.h"
#include "op/attention.h"
#include "op/question.h"
#include "op/rows.h"
#include "op/store.h"
#include "op/wait.h"

/* ---- policy ------------------------------------------------------------------------ */

static const struct op_example policy_set_examples[] = {
    { "slow builds may stay silent for five minutes",
      "holdfast policy set kind:build --ttl 5m --max-attempts 5" },
    { "answers to people need a reviewer other than the owner",
      "holdfast policy set source:conversation --close-rule reviewer" },
    { .what = NULL },
};

static const struct op_example policy_show_examples[] = {
    { "what is in force for builds from the scheduler",
      "holdfast policy show --source scheduler --kind build" },
    { .what = NULL },
};

/* clang-format off */
const struct op op_policy_rows[] = {
    { "policy.set", "set the policy of a scope, all fields at once",
      "Precedence is the unit's own settings, then its kind, its source, the default. A "
      "field that is not given is not set in this scope. A retry policy is fixed when a "
      "unit is created, lease timings when it is claimed.",
      hf_policy_inputs, NULL,
      BLANK(hf_policy_request, .policy = { .size = sizeof(struct hf_policy), .grace_ms = -1 }),
      policy_set_examples, .facts = &hf_scope_shape, .errors = op_write_errors,
      .role = OP_OPERATOR, .route = "PUT /v1/policies/{scope}", .flags = OP_STORE,
      .actor_kind = "human", .run = op_run_policy },
    { "policy.show", "show the policy in force", NULL, hf_policy_show_inputs, NULL,
      BLANK(hf_filter, .source = HF_SOURCE_NONE), policy_show_examples, .answer = OP_ROW,
      .shape = &hf_policy_shape, .errors = op_read_errors, READER(0),
      .route = "GET /v1/policy", .run = op_run_policy_show },
    { .name = NULL },
};
/* clang-format on */

/* ---- store ------------------------------------------------------------------------- */

static const struct op_example bump_examples[] = {
    { "after a backup was put back", "holdfast --db work.db store bump" },
    { .what = NULL },
};

static const struct hf_input copy_options[] = {
    { "from", "URL", HF_IN_PATH, HF_IN_NEEDED, .help = "the store to copy" },
    { "to", "URL", HF_IN_PATH, HF_IN_NEEDED, .help = "an empty one, or one to be made" },
    { .name = NULL },
};

static const struct op_example copy_examples[] = {
    { "another file", "holdfast store copy --from work.db --to new.db" },
    { "from a file to a server",
      "holdfast store copy --from work.db --to postgres://db.example/agents" },
    { .what = NULL },
};

static const struct op_example facts_examples[] = {
    { "engine, schema and sizes", "holdfast store facts" },
    { .what = NULL },
};

static const struct op_example log_examples[] = {
    { "bumps, amnesties and copies, newest first", "holdfast store log" },
    { .what = NULL },
};

/* clang-format off */
const struct op op_store_rows[] = {
    { "store.bump", "begin a new history: earlier tokens are refused",
      "A step of a restore. Holders of the old history are refused at once; their work "
      "is "
      "taken by others only when its lease lapses or their death is proven.",
      op_no_inputs, .examples = bump_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "6 8 9" },
    { "store.copy", "move house: a store into an empty one, row by row",
      "Copies every table, on the same engine or another, then compares both row by row "
      "and "
      "says what it compared. Ids, numbers and fences are kept; the copy begins a "
      "history of "
      "its own, so no token of the source is good in it. Stop everything that writes to "
      "the "
      "source first, and let nothing wait on the target yet. A copy that was not "
      "finished is opened by no program: remove it.",
      copy_options, .examples = copy_examples, .actor_kind = "human",
      .exits = "6 7 8 9" },
    { "store.log", "show what happened to the store as a whole",
      "Bumps of its history, and amnesties: when a monitor saw the store stall and gave "
      "leases one more term for it.",
      hf_log_inputs, NULL, BLANK(hf_read_request, .id = NULL), log_examples,
      .answer = OP_LIST, .shape = &hf_log_shape, .errors = op_read_errors, READER(0),
      .route = "GET /v1/store/log", .run = op_run_log },
    { "store.facts", "print facts about the store", NULL, op_no_inputs, NULL,
      .examples = facts_examples, .shape = &hf_store_facts_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/store/facts",
      .run = op_run_facts },
    { .name = NULL },
};

/* clang-format on */

/* ---- turn --------------------------------------------------------------------------- */

static const struct hf_input inspect_options[] = {
    { "save", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "a turn's save; - is stdin" },
    { "other", "FILE", HF_IN_PATH, HF_IN_BARE,
      .help = "another one, to compare it with" },
    { .name = NULL },
};

static const struct op_example inspect_examples[] = {
    { "what a turn waits for", "holdfast turn inspect turn.save" },
    { "what an hour changed", "holdfast turn inspect before.save after.save" },
    { .what = NULL },
};

const struct op op_turn_rows[] = {
    { "turn.inspect", "print a turn's save, or the difference of two",
      "One line for each thing in it: session and turn, state, the effect that is out, "
      "messages, usage. Then, of a turn in which the model writes code, each cell with "
      "its calls, output and how it ended. Needs no store, no history and no prompt. "
      "Damaged bytes are refused with exit code 9.",
      inspect_options, .examples = inspect_examples, .exits = "3 9" },
    { .name = NULL },
};

/* ---- cell --------------------------------------------------------------------------- */

static const struct hf_input cell_options[] = {
    { "file", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the text of the cell; - is stdin" },
    { "bindings", "JSON", HF_IN_JSON, 0,
      .help = "values from before: bindings that a cell left, or any JSON object",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "given", "JSON", HF_IN_JSON, 0,
      .help = "an object of values that the cell can only read",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "given-refs", "JSON", HF_IN_JSON, 0,
      .help = "the same by reference: read when the cell first uses the name, and "
              "answered by \"reads\" of the script",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "tools", "JSON", HF_IN_JSON, 0,
      .help = "what the host answers: {\"tools\": {NAME: {\"result\": ...}}}; "
              "without it every call fails",
      .limit = HF_LIMIT_TURN_TEXT_BYTES },
    { "limit", "NAME=N", HF_IN_TEXTS, 0,
      .help = "steps, active_ms, memory_bytes, ops or output_bytes" },
    { "show-bindings", NULL, HF_IN_FLAG, 0, .help = "print all bindings after the cell" },
    { .name = NULL },
};

static const struct op_example cell_examples[] = {
    { "try a cell with scripted tools",
      "holdfast cell run cell.lua --tools '{\"tools\": {\"add\": {\"result\": 5}}}'" },
    { "how much does it cost", "holdfast cell run cell.lua --limit steps=100000 --json" },
    { .what = NULL },
};

const struct op op_cell_rows[] = {
    { "cell.run", "run one code cell with a scripted host",
      "Prints every operation of the cell with its answer, how it ended, what it changed "
      "in the bindings and what it cost. Sleeps are not slept. Time and random numbers "
      "are the machine's, unless the script has \"now\" and \"random\". A cell that does "
      "not end well is exit code 2.",
      cell_options, .examples = cell_examples, .exits = "3" },
    { .name = NULL },
};

/* ---- one-word commands ------------------------------------------------------------- */

static const struct hf_input monitor_options[] = {
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "renew what this owner runs, while it is active" },
    { "incarnation", "I", HF_IN_TEXT, 0, .help = "only this incarnation of the owner" },
    { "pointer", "FILE", HF_IN_PATH, 0,
      .help = "keep this file naming the owner's newest running unit (needs --owner)" },
    { "interval", "DURATION", HF_IN_MS, 0,
      .help = "longest time between two passes (default: 1s)" },
    { "fresh", "DURATION", HF_IN_MS, 0,
      .help = "how recent the last activity must be for a renewal (default: 120s)",
      .min = 1 },
    { "once", NULL, HF_IN_FLAG, 0, .help = "one pass, then end" },
    { "run", NULL, HF_IN_FLAG, 0,
      .help =
          "also run queued commands, as `holdfast run --worker` does: rerunnable ones "
          "whose runner died, and those that were left to a worker" },
    { "jobs", "N", HF_IN_INT, 0, .help = "with --run: commands at a time (default: 1)",
      .min = 1, .max = 64 },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "with --run: the queue (default: run)" },
    { .name = NULL },
};

static const struct op_example monitor_examples[] = {
    { "look after a ledger", "holdfast --db work.db monitor" },
    { "and run again what lost its runner", "holdfast --db work.db monitor --run" },
    { "also renew what the agent \"main\" runs, and keep its pointer",
      "holdfast --db work.db monitor --owner main --pointer active-work.json" },
    { .what = NULL },
};

static const struct hf_input migrate_options[] = {
    { "dump-sql", NULL, HF_IN_FLAG, 0,
      .help =
          "print the schema as SQL of the engine that --db names; no store is opened" },
    { .name = NULL },
};

static const struct op_example migrate_examples[] = {
    { "bring a store to this version's schema", "holdfast --db work.db migrate" },
    { "read the schema", "holdfast migrate --dump-sql" },
    { .what = NULL },
};

static const struct op_example doctor_examples[] = {
    { "check a store and every trail in it", "holdfast --db work.db doctor" },
    { .what = NULL },
};

static const struct op_example limits_examples[] = {
    { "one limit, in a script", "holdfast limits --json" },
    { .what = NULL },
};

static const struct op_example version_examples[] = {
    { "which version, schema and SQLite", "holdfast version --json" },
    { .what = NULL },
};

static const struct hf_input demo_options[] = {
    { "folder", "DIR", HF_IN_PATH, 0,
      .help = "make the ledger there; an empty folder, or one that is not there yet "
              "(default: a fresh one under TMPDIR)" },
    { "remove", NULL, HF_IN_FLAG, 0,
      .help = "remove the folder at the end (default: it is kept)" },
    { .name = NULL },
};

static const struct op_example demo_examples[] = {
    { "see the point in a few seconds", "holdfast demo" },
    { "only the facts, and leave nothing behind", "holdfast demo --json --remove" },
    { .what = NULL },
};

static const struct hf_input replay_options[] = {
    { "recording", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the recording, a JSON text a line; - is stdin" },
    { .name = NULL },
};

static const struct op_example replay_examples[] = {
    { "in CI, before a release", "holdfast replay turns/checkout.jsonl" },
    { .what = NULL },
};

static const struct hf_input man_options[] = {
    { "page", "GROUP", HF_IN_TEXT, HF_IN_BARE, .help = "the group; none: holdfast(1)" },
    { .name = NULL },
};

static const struct hf_input chat_options[] = {
    { "session", "SESSION", HF_IN_TEXT, HF_IN_BARE,
      .help =
          "the conversation; - is a fresh one whose message is standard input (default: "
          "the one of this user with the agent)" },
    { "agent", "NAME", HF_IN_TEXT, 0,
      .help = "an [agent.NAME] of the configuration (default: the session's, or the only "
              "one)" },
    { "model", "NAME", HF_IN_TEXT, 0,
      .help = "a [model.NAME] instead of the agent's own" },
    { "new", NULL, HF_IN_FLAG, 0, .help = "begin a fresh conversation" },
    { "scripted", NULL, HF_IN_FLAG, 0,
      .help =
          "talk to a model that is a part of this program: no configuration, no key" },
    { "config", "FILE", HF_IN_PATH, 0,
      .help = "the configuration (default: holdfast/holdfast.toml in XDG_CONFIG_HOME, or "
              "in ~/.config)" },
    { .name = NULL },
};
static const struct op_example chat_examples[] = {
    { "go on where the last conversation ended", "holdfast chat" },
    { "see what it is, without a key", "holdfast chat --scripted" },
    { "one question in a pipe", "echo 'What is new?' | holdfast chat -" },
    { "every event as a line of JSON", "holdfast chat support-17 --json < question.txt" },
    { .what = NULL },
};
static const char *const shell_words[] = { "bash", "zsh", "fish", NULL };
static const struct hf_input completion_inputs[] = {
    { "shell", "SHELL", HF_IN_WORD, HF_IN_BARE, .help = "for which (default: bash)",
      .words = shell_words },
    { .name = NULL },
};
static const struct hf_input complete_inputs[] = {
    { "words", "WORD", HF_IN_TEXTS, HF_IN_BARE, .help = "the command line so far" },
    { .name = NULL },
};

static const struct hf_input top_options[] = {
    { "once", NULL, HF_IN_FLAG, 0, .help = "print it once and end" },
    { "interval", "DURATION", HF_IN_MS, 0,
      .help = "between two looks (default: 1s, at least 100ms)", .min = 100,
      .max = 3600000 },
    { .name = NULL },
};
static const struct op_example top_examples[] = {
    { "watch", "holdfast top" },
    { "for a script", "holdfast top --json" },
    { .what = NULL },
};
static const struct op_example overview_examples[] = {
    { "all of it, as JSON", "holdfast overview --json" },
    { .what = NULL },
};
static const struct op_example approve_examples[] = {
    { "what `attention` and `wait list` show", "holdfast approve 4c1f" },
    { "with other arguments", "holdfast approve 4c1f --arguments '{\"amount\":10}'" },
    { .what = NULL },
};

static const struct op_example deny_examples[] = {
    { "the model is told why", "holdfast deny 4c1f --reason 'too expensive'" },
    { .what = NULL },
};

static const struct op_example attention_examples[] = {
    { "what needs me?", "holdfast attention" },
    { "in a cron table", "holdfast attention || page-me" },
    { "the simplest pager", "holdfast attention --watch --exec ./page.sh" },
    { .what = NULL },
};
static const struct op_example ack_examples[] = {
    { "one unit", "holdfast attention ack 8b1c9d04 --reason 'the disk was full'" },
    { "all of a kind", "holdfast attention ack --kind report" },
    { .what = NULL },
};

static const struct hf_input call_inputs[] = {
    { "op", "OP", HF_IN_TEXT, HF_IN_BARE, .help = "the operation, such as work.create" },
    { "in", "JSON", HF_IN_JSON, HF_IN_BARE, .help = "its inputs (default: {})",
      .limit = HF_LIMIT_CALL_LINE_BYTES },
    { "lines", NULL, HF_IN_FLAG, 0,
      .help = "read one call per line from standard input" },
    { "list", NULL, HF_IN_FLAG, 0, .help = "print the table of operations as JSON" },
    { .name = NULL },
};
static const struct op_example call_examples[] = {
    { "one call",
      "holdfast call work.create '{\"source_system\":\"manual\",\"source_id\":\"n1\"}'" },
    { "many calls by one process, for any language that can start a program",
      "holdfast call --lines < calls.jsonl" },
    { "what can be called", "holdfast call --list" },
    { .what = NULL },
};

static const struct hf_input ask_inputs[] = {
    { "question", "TEXT", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "what is asked" },
    { "choices", "A,B", HF_IN_TEXT, 0,
      .help = "the answers that are taken, with commas between (default: yes,no)" },
    { "text", NULL, HF_IN_FLAG, 0, .help = "take any text as the answer" },
    { "timeout", "DURATION", HF_IN_MS, 0,
      .help = "how long an answer is waited for (default: by policy, a day)", .min = 1 },
    { "idempotency-key", "K", HF_IN_TEXT, 0,
      .help = "ask once: the same key again waits for the answer of the same question" },
    { "owner", "O", HF_IN_TEXT, 0, .help = "who asks (default: run:HOST:PID)" },
    { .name = NULL },
};
static const struct op_example ask_examples[] = {
    { "deploy only if a person agrees",
      "holdfast ask 'Deploy?' --timeout 1h && ./deploy.sh" },
    { "three ways to go on, in a script",
      "case $(holdfast ask 'The tests failed' --choices retry,skip,stop) in retry) ;; "
      "esac" },
    { .what = NULL },
};
static const struct hf_input answer_inputs[] = {
    { "work_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the question: its id or a part of it", .option = "id",
      HF_IN_AT(hf_answer_request, id) },
    { "answer", "WORD", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "one of its choices, or any text where it has none",
      HF_IN_AT(hf_answer_request, answer) },
    { "reason", "TEXT", HF_IN_TEXT, 0, .help = "why, for the trail",
      .limit = HF_LIMIT_REASON_BYTES, HF_IN_AT(hf_answer_request, reason) },
    { .name = NULL },
};
static const struct op_example answer_examples[] = {
    { "agree", "holdfast answer 1f3c9a77 yes" },
    { .what = NULL },
};
static const struct op_advice answer_advice[] = {
    { HF_ECONFLICT, NULL, "look at it with `holdfast work show`" },
    { 0, NULL, NULL },
};

/* clang-format off */
const struct op op_top_rows[] = {
    { "ask", "ask a person, and wait for the answer",
      "The question is a unit that waits for a person: `attention` and `top` show it, and "
      "`holdfast answer` ends the wait. The answer is printed. The exit code is the place "
      "of the answer among the choices: 0 for the first, 1 for the second. 124 says that no "
      "answer came in time, 125 that the command itself failed. SIGINT and SIGTERM cancel "
      "the question, unless it has an --idempotency-key: then it goes on waiting, and the "
      "same command continues with it.",
      ask_inputs, .examples = ask_examples, .flags = OP_WRAPS, .actor_kind = "human",
      .exits = "124 125" },
    { "answer", "answer a question that `ask` asked, or a unit that waits for a person",
      "The first answer is the one that counts. The same word again changes nothing; "
      "another word is refused with exit code 7.",
      answer_inputs, NULL, BLANK(hf_answer_request, .reason = NULL), answer_examples, UNIT,
      .role = OP_OPERATOR, .errors = op_change_errors, .actor_kind = "human",
      .route = "POST /v1/work/{work_id}/answer", .flags = OP_MUST_EXIST | OP_SHELL,
      .advice = answer_advice, .run = op_run_answer },
    { "run", "run a command as leased work",
      "Everything after -- is the command. It becomes a unit of kind \"run\": its lease "
      "is "
      "renewed while it lives, its output is shown and captured, and its exit code is "
      "passed through. Exit code 0 closes the unit as done unless the command closed it "
      "itself; it finds HOLDFAST_DB, HOLDFAST_WORK_ID and HOLDFAST_LEASE_TOKEN in its "
      "environment, so that it can call `holdfast work wait`, append-event and "
      "close-out. "
      "By default the unit is owner_bound: it is never run a second time. With "
      "--disposition rerunnable it is tried --max-attempts times, here or by any "
      "`holdfast run --worker`, which gets the command, the folder and the variables "
      "named "
      "with --env; the values of those named with --secret are never stored. SIGINT ends "
      "the command and cancels the unit; SIGTERM ends it and hands the unit back, or "
      "abandons it where it is owner_bound.",
      op_command_inputs, op_run_inputs, .examples = op_run_examples, .flags = OP_WRAPS,
      .actor_kind = "worker", .exits = "125" },
    { "monitor", "sweep, renew, make what is scheduled, until told to end",
      "Ends what was declared to end (lapsed leases, deadlines, waits), promotes what is "
      "due, makes the slots of schedules that have come, and with --owner renews what "
      "that owner runs and reported activity for. Any "
      "number of monitors may run on one store. SIGTERM and SIGINT end it cleanly. One "
      "line an action is written to standard error; with --json they are JSON lines, and "
      "the totals are printed at the end. Choose an interval of at most a third of the "
      "shortest lease that it renews.",
      monitor_options, .examples = monitor_examples, .exits = "6 8 9" },
    { "chat", "talk to an agent in the terminal, or in a pipe",
      "A conversation is a session: it is stored as it goes, and the same command goes on "
      "with it, also after this process was killed. What a turn asks is answered there. "
      "Ctrl-C cancels the turn, a second one leaves; /help lists what can be typed. "
      "Without a terminal one message is read from standard input: the answer is printed, tools and usage go to standard error, "
      "and with --json every event is a line. Exits with 11 if the turn failed, with 13 if "
      "it was cancelled.",
      chat_options, .examples = chat_examples, .flags = OP_STORE | OP_OPENS,
      .actor_kind = "human", .exits = "3 6 7 8 9 11 13" },
    { "worker", "drive sessions of the configured agents, until told to end",
      "Takes sessions that have something to do, calls their models and tools, and commits "
      "their turns. Any number of workers may run on one store; what a killed worker held "
      "is taken over at once on its machine, and otherwise when its lease has lapsed. "
      "SIGTERM and SIGINT drain it: nothing new begins, what runs may end within --grace, "
      "the rest is handed back as its last step left it; a second signal does not wait. "
      "One line per event is written to standard error; with --json they are JSON lines, "
      "and the totals are printed at the end.",
      op_worker_inputs, .examples = op_worker_examples, .actor_kind = "worker",
      .exits = "3 6 8 9" },
    { "top", "watch the ledger: running, waiting, silent, leases about to lapse",
      "A live view of the terminal; q, SIGTERM and SIGINT end it. Without a terminal, "
      "and "
      "with --once or --json, it is printed once.",
      top_options, .examples = top_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "6 9" },
    { "attention",
      "list what needs a person, each with the command that deals with it",
      "Silent holders and leases that lapse soon, questions to a person and long waits, held "
      "units, bad ends that were not acknowledged, queues without a worker, schedules that "
      "fail or are late, workers that share a name, limits that are stuck, effects of which it "
      "is not known whether they happened, and the store itself. Exits with 0 "
      "when there is nothing, with 10 when there is something. With --watch it looks again "
      "and again until SIGTERM or SIGINT and prints changes only.",
      hf_attention_inputs, NULL,
      BLANK(hf_attention_request, .query = { .size = sizeof(struct hf_attention_query) }),
      .examples = attention_examples, .answer = OP_LIST, .shape = &hf_attention_shape,
      .facts = &hf_attention_facts_shape, .errors = op_read_errors, .exits = "10", READER(0),
      .route = "GET /v1/attention", .run = op_run_attention },
    { "approve", "approve a call that a turn asks about",
      "The first answer counts: accepted says whether it was this one.",
      hf_waits_approve_inputs, NULL, BLANK(hf_wait_request, .wait_id = NULL),
      approve_examples, .answer = OP_ROW, .shape = &hf_wait_shape,
      .facts = &hf_wait_resolved_shape, .errors = op_answer_errors, .role = OP_OPERATOR,
      .route = "POST /v1/waits/{wait_id}/approve", .flags = OP_MUST_EXIST | OP_SHELL,
      .actor_kind = "human", .run = op_run_approve },
    { "deny", "deny a call that a turn asks about", NULL, hf_waits_deny_inputs, NULL,
      BLANK(hf_wait_request, .wait_id = NULL), deny_examples, .answer = OP_ROW,
      .shape = &hf_wait_shape, .facts = &hf_wait_resolved_shape,
      .errors = op_answer_errors, .role = OP_OPERATOR,
      .route = "POST /v1/waits/{wait_id}/deny", .flags = OP_MUST_EXIST | OP_SHELL,
      .actor_kind = "human", .run = op_run_deny },
    { "attention.ack", "say that a person has seen bad ends",
      "Units that ended failed, timeout or abandoned are findings until they are acknowledged or "
      "requeued. An event work_acknowledged in the unit's trail says who did it.",
      hf_ack_inputs, NULL, BLANK(hf_ack, .size = sizeof(struct hf_ack)),
      .examples = ack_examples, .facts = &hf_acked_shape, .errors = op_operator_errors,
      .role = OP_OPERATOR, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .route = "POST /v1/attention/ack", .check = op_check_ack, .run = op_run_ack },
    { "overview", "show what is running, waiting, silent and held, in one answer",
      "What `top` shows. The lists have at most 200 rows each; \"more\" says which go on.",
      op_no_inputs, NULL, .examples = overview_examples, .shape = &hf_overview_shape,
      .facts = &hf_overview_facts_shape, .errors = op_read_errors, READER(OP_HIDDEN),
      .route = "GET /v1/overview", .run = op_run_overview },
    { "migrate", "bring the store to this version's schema",
      "Every command does so when it opens a store; this one does nothing else.",
      migrate_options, .examples = migrate_examples, .exits = "6 8 9" },
    { "doctor", "check store, schema, clock, disk, leases and trails",
      "Folds every trail of events again and compares it with its row. Says what to do "
      "about each finding; exits with 9 when something is wrong.",
      op_no_inputs, NULL, .examples = doctor_examples, .shape = &hf_store_facts_shape,
      .facts = &hf_doctor_shape, .errors = op_read_errors, .role = OP_OPERATOR,
      .flags = OP_READS, .route = "GET /v1/doctor", .run = op_run_doctor },
    { "demo", "show what a ledger does when a worker is killed",
      "Makes a ledger in a fresh folder and starts a submitter, two workers and a "
      "monitor "
      "on it. One worker is killed in the middle of a unit; the other goes on with that "
      "unit, and the proof of the death stands in its trail. Then a unit waits for a "
      "user, one is retried, and one is closed with evidence. The summary at the end is "
      "read from the ledger's events; when they do not bear it out the command fails. It "
      "needs no store of yours and takes a few seconds.",
      demo_options, .examples = demo_examples, .actor_kind = "human", .exits = "9" },
    { "replay", "drive a recorded turn with this build",
      "Feeds the recorded responses to this build's turn machine and compares every "
      "effect with the recorded one. The first that differs is shown on standard error, "
      "and the exit code is 7.",
      replay_options, .examples = replay_examples, .exits = "3 4 7 9" },
    { "limits", "list every limit", NULL, op_no_inputs, NULL, .examples = limits_examples,
      .answer = OP_LIST, .shape = &hf_limit_info_shape, .role = OP_READ,
      .flags = OP_PAGED, .route = "GET /v1/limit-values", .run = op_run_limits },
    { "version", "print the versions of program, schema and SQLite", NULL, op_no_inputs,
      NULL, .examples = version_examples, .shape = &hf_version_shape, .role = OP_READ,
      .route = "GET /v1/version", .run = op_run_version },
    { "call", "perform an operation with its inputs as JSON",
      "Every operation of the table (--list) can be called: OP is its name, such as "
      "work.create, and its inputs are one JSON object, whose members are named as the "
      "columns are. The answer is that of --json. With --lines each line of standard "
      "input is {\"op\":...,\"in\":{...}}, and may have id, tenant, actor, operation_id "
      "and correlation_id; each is answered by one line, in order. A line that is "
      "refused is answered by its error, and the next one is served.",
      call_inputs, .examples = call_examples, .exits = "3 4 5 6 7 8 9 10",
      .flags = OP_JSON },
    { "__man", "print a manual page", NULL, man_options, .flags = OP_HIDDEN,
      .exits = "3" },
    { "__completion", "print the completion for a shell", NULL, completion_inputs,
      .flags = OP_HIDDEN },
    { "__complete", "print what the last word can become", NULL, complete_inputs,
      .flags = OP_HIDDEN | OP_OPENS },
    { .name = NULL },
};
/* clang-format on */
