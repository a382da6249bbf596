/* The rows of operations that are not about units of work, and of local ones of one word. */
#include "op/attention.h"
#include "op/question.h"
#include "op/rows.h"
#include "op/shapes/ledger.h"
#include "op/shapes/wait.h"
#include "op/store.h"
#include "op/wait.h"

/* ---- policy ------------------------------------------------------------------------ */

static const struct op_example policy_set_examples[] = {
    { "builds whose workers may be silent for five minutes",
      "holdfast policy set kind:build --ttl 5m --max-attempts 5" },
    { "answers to people need a reviewer other than the owner",
      "holdfast policy set source:conversation --close-rule reviewer" },
    { .what = NULL },
};

static const struct op_example policy_show_examples[] = {
    { "the policy of builds from the scheduler",
      "holdfast policy show --source scheduler --kind build" },
    { .what = NULL },
};

/* clang-format off */
const struct op op_policy_rows[] = {
    { "policy.set", "set the policy of a scope, all fields at once",
      "A setting is taken from the unit, otherwise from the policy of its kind, its "
      "source or the default, in this order. A field that is not given is not set in "
      "this scope. The retry policy of a unit is fixed when it is created, its lease "
      "timings when it is claimed.",
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
    { "after a backup was restored", "holdfast --db work.db store bump" },
    { .what = NULL },
};

static const struct hf_input copy_options[] = {
    { "from", "URL", HF_IN_PATH, HF_IN_NEEDED, .help = "the store to copy" },
    { "to", "URL", HF_IN_PATH, HF_IN_NEEDED,
      .help = "the target: an empty store, or one that is created" },
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
    { "store.bump", "raise the incarnation, so that earlier tokens are refused",
      "A step of a restore. Holders with tokens of an earlier incarnation are refused "
      "at once. Their units can be claimed again when the lease has lapsed or the "
      "death of the holder is proven.",
      op_no_inputs, .examples = bump_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "6 8 9" },
    { "store.copy", "copy a store into an empty one, row by row",
      "Copies every table, to the same engine or another, then compares both stores "
      "row by row and prints what it compared. Ids, numbers and fences are kept. The "
      "copy has a new incarnation, so tokens of the source are refused in it. Before "
      "the copy, stop all programs that write to the source, and start none on the "
      "target. No program opens an unfinished copy: remove it and copy again.",
      copy_options, .examples = copy_examples, .actor_kind = "human",
      .exits = "6 7 8 9" },
    { "store.log", "show the log of the store",
      "Entries are bumps of the incarnation, copies, and amnesties: a monitor noticed "
      "that the store stalled, and extended all leases by one term.",
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
      .help = "a second save, to compare it with" },
    { .name = NULL },
};

static const struct op_example inspect_examples[] = {
    { "the effect that a turn waits for", "holdfast turn inspect turn.save" },
    { "the difference of two saves", "holdfast turn inspect before.save after.save" },
    { .what = NULL },
};

const struct op op_turn_rows[] = {
    { "turn.inspect", "print a saved turn, or the difference between two",
      "Prints session and turn, state, the effect that is out, messages and usage, one "
      "per line. For a turn in which the model writes code it also prints each cell with "
      "its calls, its output and its end. Needs no store, no history and no prompt. A "
      "damaged save is refused with exit code 9.",
      inspect_options, .examples = inspect_examples, .exits = "3 9" },
    { .name = NULL },
};

/* ---- cell --------------------------------------------------------------------------- */

static const struct hf_input cell_options[] = {
    { "file", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the text of the cell; - is stdin" },
    { "bindings", "JSON", HF_IN_JSON, 0,
      .help =
          "values from earlier cells: the bindings that a cell left, or any JSON object",
      .bound = HF_BOUND_CELL_BINDINGS_BYTES },
    { "given", "JSON", HF_IN_JSON, 0,
      .help = "an object of values that the cell can only read",
      .bound = HF_BOUND_CELL_BINDINGS_BYTES },
    { "given-refs", "JSON", HF_IN_JSON, 0,
      .help = "an object of values that are read when the cell first uses the name; "
              "\"reads\" of the script answers",
      .bound = HF_BOUND_CELL_BINDINGS_BYTES },
    { "tools", "JSON", HF_IN_JSON, 0,
      .help = "answers of the host: {\"tools\": {NAME: {\"result\": ...}}}; without it "
              "every call fails",
      .bound = HF_BOUND_TURN_TEXT_BYTES },
    { "limit", "NAME=N", HF_IN_TEXTS, 0,
      .help = "steps, active_ms, memory_bytes, ops or output_bytes" },
    { "show-bindings", NULL, HF_IN_FLAG, 0, .help = "print all bindings after the cell" },
    { .name = NULL },
};

static const struct op_example cell_examples[] = {
    { "try a cell with scripted tools",
      "holdfast cell run cell.lua --tools '{\"tools\": {\"add\": {\"result\": 5}}}'" },
    { "measure its cost", "holdfast cell run cell.lua --limit steps=100000 --json" },
    { .what = NULL },
};

const struct op op_cell_rows[] = {
    { "cell.run", "run one code cell with a scripted host",
      "Prints every operation of the cell with its answer, how the cell ended, the "
      "bindings that it changed and its cost. Sleeps return at once. Time and random "
      "numbers come from the machine, unless the script has \"now\" and \"random\". "
      "Exits with 2 if the cell fails.",
      cell_options, .examples = cell_examples, .exits = "3" },
    { .name = NULL },
};

/* ---- one-word commands ------------------------------------------------------------- */

static const struct hf_input monitor_options[] = {
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "renew the leases of this owner's units while they report activity" },
    { "incarnation", "I", HF_IN_TEXT, 0, .help = "with --owner: only this incarnation" },
    { "pointer", "FILE", HF_IN_PATH, 0,
      .help = "with --owner: keep the owner's newest running unit in this pointer file" },
    { "interval", "DURATION", HF_IN_MS, 0,
      .help = "longest time between two passes (default: 1s)" },
    { "fresh", "DURATION", HF_IN_MS, 0,
      .help =
          "with --owner: renew only units with activity within this time (default: 120s)",
      .min = 1 },
    { "once", NULL, HF_IN_FLAG, 0, .help = "one pass, then end" },
    { "run", NULL, HF_IN_FLAG, 0,
      .help = "also run queued commands, as `holdfast run --worker` does: rerunnable "
              "commands whose runner died, and commands that were queued for a worker" },
    { "jobs", "N", HF_IN_INT, 0, .help = "with --run: commands at a time (default: 1)",
      .min = 1, .max = 64 },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "with --run: the queue (default: run)" },
    { .name = NULL },
};

static const struct op_example monitor_examples[] = {
    { "keep a ledger in order", "holdfast --db work.db monitor" },
    { "the same, and run commands again whose runner died",
      "holdfast --db work.db monitor --run" },
    { "also renew the units of the agent \"main\", and keep its pointer file",
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

static const struct op_example bounds_examples[] = {
    { "the bounds, for a script", "holdfast bounds --json" },
    { .what = NULL },
};

static const struct op_example version_examples[] = {
    { "versions as JSON", "holdfast version --json" },
    { .what = NULL },
};

static const struct hf_input demo_options[] = {
    { "folder", "DIR", HF_IN_PATH, 0,
      .help = "folder of the ledger, empty or not yet existing (default: a new one under "
              "TMPDIR)" },
    { "remove", NULL, HF_IN_FLAG, 0,
      .help = "remove the folder at the end (default: keep it)" },
    { .name = NULL },
};

static const struct op_example demo_examples[] = {
    { "run it", "holdfast demo" },
    { "print only the facts as JSON, and remove the folder",
      "holdfast demo --json --remove" },
    { .what = NULL },
};

static const struct hf_input replay_options[] = {
    { "recording", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the recording, one JSON text per line; - is stdin" },
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
      .help = "id of the conversation; - is a new one, with the message on standard "
              "input (default: the one of this user with the agent)" },
    { "agent", "NAME", HF_IN_TEXT, 0,
      .help = "an [agent.NAME] of the configuration (default: the session's, or the only "
              "one)" },
    { "model", "NAME", HF_IN_TEXT, 0,
      .help = "a [model.NAME] instead of the agent's own" },
    { "new", NULL, HF_IN_FLAG, 0, .help = "begin a new conversation" },
    { "scripted", NULL, HF_IN_FLAG, 0,
      .help = "talk to the scripted model of this program, which needs no configuration "
              "and no key" },
    { "config", "FILE", HF_IN_PATH, 0,
      .help = "the configuration (default: holdfast/holdfast.toml in XDG_CONFIG_HOME, or "
              "in ~/.config)" },
    { .name = NULL },
};
static const struct op_example chat_examples[] = {
    { "continue the last conversation", "holdfast chat" },
    { "try it without a key", "holdfast chat --scripted" },
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
    { "everything as JSON", "holdfast overview --json" },
    { .what = NULL },
};
static const struct op_example approve_examples[] = {
    { "by the id that `attention` and `wait list` print", "holdfast approve 4c1f" },
    { "with other arguments", "holdfast approve 4c1f --arguments '{\"amount\":10}'" },
    { .what = NULL },
};

static const struct op_example deny_examples[] = {
    { "with a reason, which the model reads",
      "holdfast deny 4c1f --reason 'too expensive'" },
    { .what = NULL },
};

static const struct op_example attention_examples[] = {
    { "list the findings", "holdfast attention" },
    { "in a cron table", "holdfast attention || page-me" },
    { "the simplest pager", "holdfast attention --watch --exec ./page.sh" },
    { .what = NULL },
};
static const struct op_example ack_examples[] = {
    { "one unit", "holdfast attention ack 8b1c9d04 --reason 'the disk was full'" },
    { "all bad ends of one kind", "holdfast attention ack --kind report" },
    { .what = NULL },
};

static const struct hf_input call_inputs[] = {
    { "op", "OP", HF_IN_TEXT, HF_IN_BARE, .help = "the operation, such as work.create" },
    { "in", "JSON", HF_IN_JSON, HF_IN_BARE, .help = "its inputs (default: {})",
      .bound = HF_BOUND_CALL_LINE_BYTES },
    { "lines", NULL, HF_IN_FLAG, 0,
      .help = "read one call per line from standard input" },
    { "list", NULL, HF_IN_FLAG, 0, .help = "print the table of operations as JSON" },
    { .name = NULL },
};
static const struct op_example call_examples[] = {
    { "one call",
      "holdfast call work.create '{\"source_system\":\"manual\",\"source_id\":\"n1\"}'" },
    { "many calls through one process", "holdfast call --lines < calls.jsonl" },
    { "list the operations", "holdfast call --list" },
    { .what = NULL },
};

static const struct hf_input ask_inputs[] = {
    { "question", "TEXT", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "text of the question" },
    { "choices", "A,B", HF_IN_TEXT, 0,
      .help = "the answers that are taken, with commas between (default: yes,no)" },
    { "text", NULL, HF_IN_FLAG, 0, .help = "take any text as the answer" },
    { "timeout", "DURATION", HF_IN_MS, 0,
      .help = "longest time to wait for an answer (default: by policy, otherwise a day)",
      .min = 1 },
    { "idempotency-key", "K", HF_IN_TEXT, 0,
      .help = "ask once: a repeated call with the same key waits for the answer to the "
              "same question" },
    { "owner", "O", HF_IN_TEXT, 0, .help = "name of the asker (default: run:HOST:PID)" },
    { .name = NULL },
};
static const struct op_example ask_examples[] = {
    { "deploy only if a person agrees",
      "holdfast ask 'Deploy?' --timeout 1h && ./deploy.sh" },
    { "three ways to continue, in a script",
      "case $(holdfast ask 'The tests failed' --choices retry,skip,stop) in retry) ;; "
      "esac" },
    { .what = NULL },
};
static const struct hf_input answer_inputs[] = {
    { "work_id", "ID", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the question: its id or a part of it", .option = "id",
      HF_IN_AT(op_answer_request, id) },
    { "answer", "WORD", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "one of its choices, or any text where it has none",
      HF_IN_AT(op_answer_request, answer) },
    { "reason", "TEXT", HF_IN_TEXT, 0, .help = "reason, stored with the events",
      .bound = HF_BOUND_REASON_BYTES, HF_IN_AT(op_answer_request, reason) },
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
      "The question is a unit that waits for a person: `attention` and `top` show it, "
      "and `holdfast answer` ends the wait. The answer is printed. The exit code is "
      "the position of the answer among the choices: 0 for the first, 1 for the "
      "second. Exits with 124 if no answer came in time, with 125 if the command "
      "itself failed. SIGINT and SIGTERM cancel the question, unless it has an "
      "--idempotency-key: then the question stays open, and the same command "
      "continues with it.",
      ask_inputs, .examples = ask_examples, .flags = OP_WRAPS, .actor_kind = "human",
      .exits = "124 125" },
    { "answer", "answer a question of `ask` or a unit that waits for a person",
      "The first answer is final. The same answer again changes nothing; another "
      "answer is refused with exit code 7.",
      answer_inputs, NULL, BLANK(op_answer_request, .reason = NULL), answer_examples, UNIT,
      .role = OP_OPERATOR, .errors = op_change_errors, .actor_kind = "human",
      .route = "POST /v1/work/{work_id}/answer", .flags = OP_MUST_EXIST | OP_SHELL,
      .advice = answer_advice, .run = op_run_answer },
    { "run", "run a command as leased work",
      "Everything after -- is the command. It becomes a unit of kind \"run\": its "
      "lease is renewed while the command runs, its output is shown and captured, and "
      "its exit code is passed through. Exit code 0 closes the unit as done unless "
      "the command closed it itself. The command finds HOLDFAST_DB, HOLDFAST_WORK_ID "
      "and HOLDFAST_LEASE_TOKEN in its environment, so that it can call `holdfast "
      "work wait`, append-event and close-out. By default the unit is owner_bound: it "
      "is never run a second time. With --disposition rerunnable it is tried "
      "--max-attempts times, here or by any `holdfast run --worker`, which gets the "
      "command, the folder and the variables named with --env; the values of "
      "variables named with --secret are never stored. SIGINT ends the command and "
      "cancels the unit. SIGTERM ends the command and hands the unit back, or "
      "abandons it if it is owner_bound.",
      op_command_inputs, op_run_inputs, .examples = op_run_examples, .flags = OP_WRAPS,
      .actor_kind = "worker", .exits = "125" },
    { "monitor", "sweep, create scheduled units and renew leases",
      "Acts on lapsed leases, deadlines and the ends of waits as each unit declares "
      "it, makes due units claimable, and creates the units of schedules whose slot "
      "has come. With --owner it renews the leases of that owner's running units that "
      "reported activity. Any number of monitors may run on one store. SIGTERM and "
      "SIGINT end it cleanly. It writes one line per action to standard error; with "
      "--json the lines are JSON, and the totals are printed at the end. Choose an "
      "interval of at most a third of the shortest lease that it renews.",
      monitor_options, .examples = monitor_examples, .exits = "6 8 9" },
    { "chat", "talk to an agent in the terminal, or in a pipe",
      "A conversation is a session: each step is stored, and the same command "
      "continues it, also after this process was killed. What a turn asks is answered "
      "there. Ctrl-C cancels the turn, a second Ctrl-C leaves; /help lists the "
      "commands. Without a terminal one message is read from standard input: the "
      "answer is printed, tools and usage go to standard error, and with --json every "
      "event is one line. Exits with 11 if the turn failed, with 13 if it was "
      "cancelled.",
      chat_options, .examples = chat_examples, .flags = OP_STORE | OP_OPENS,
      .actor_kind = "human", .exits = "3 6 7 8 9 11 13" },
    { "worker", "drive the sessions of the configured agents",
      "Claims sessions with an open turn, calls their models and tools, and commits "
      "their turns. Any number of workers may run on one store. Sessions of a killed "
      "worker are taken over at once on the same machine, on other machines when the "
      "lease has lapsed. SIGTERM and SIGINT drain the worker: it claims no more "
      "sessions, running turns may end within --grace, and the others are handed back "
      "at their last stored step; a second signal skips the wait. One line per event "
      "is written to standard error; with --json the lines are JSON, and the totals "
      "are printed at the end.",
      op_worker_inputs, .examples = op_worker_examples, .actor_kind = "worker",
      .exits = "3 6 8 9" },
    { "top", "watch the ledger: running, waiting, silent, leases about to lapse",
      "Shows a live view in the terminal; q, SIGTERM and SIGINT end it. Without a "
      "terminal, and with --once or --json, it is printed once.",
      top_options, .examples = top_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "6 9" },
    { "attention",
      "list what needs a person, with the command that resolves it",
      "The findings are: silent holders and leases that lapse soon, questions to a "
      "person and long waits, held units, bad ends that were not acknowledged, queues "
      "without a worker, schedules that fail or are late, workers that share a name, "
      "limits that are stuck, effects with an unknown outcome, and faults of the "
      "store itself. Exits with 0 if there is no finding, with 10 if there is one. "
      "With --watch it repeats until SIGTERM or SIGINT, and prints changes only.",
      hf_attention_inputs, NULL,
      BLANK(hf_attention_request, .query = { .size = sizeof(struct hf_attention_query) }),
      .examples = attention_examples, .answer = OP_LIST, .shape = &hf_attention_shape,
      .facts = &hf_attention_facts_shape, .errors = op_read_errors, .exits = "10", READER(0),
      .route = "GET /v1/attention", .run = op_run_attention },
    { "approve", "approve a call that waits for approval",
      "The first answer is final: \"accepted\" tells whether it was this one.",
      hf_waits_approve_inputs, NULL, BLANK(hf_wait_request, .wait_id = NULL),
      approve_examples, .answer = OP_ROW, .shape = &hf_wait_shape,
      .facts = &hf_wait_resolved_shape, .errors = op_answer_errors, .role = OP_OPERATOR,
      .route = "POST /v1/waits/{wait_id}/approve", .flags = OP_MUST_EXIST | OP_SHELL,
      .actor_kind = "human", .run = op_run_approve },
    { "deny", "deny a call that waits for approval", NULL, hf_waits_deny_inputs, NULL,
      BLANK(hf_wait_request, .wait_id = NULL), deny_examples, .answer = OP_ROW,
      .shape = &hf_wait_shape, .facts = &hf_wait_resolved_shape,
      .errors = op_answer_errors, .role = OP_OPERATOR,
      .route = "POST /v1/waits/{wait_id}/deny", .flags = OP_MUST_EXIST | OP_SHELL,
      .actor_kind = "human", .run = op_run_deny },
    { "attention.ack", "acknowledge units that ended badly",
      "Units that ended as failed, timeout or abandoned are findings until they are "
      "acknowledged or requeued. The event work_acknowledged in the unit's trail "
      "records the actor.",
      hf_ack_inputs, NULL, BLANK(hf_ack, .size = sizeof(struct hf_ack)),
      .examples = ack_examples, .facts = &hf_acked_shape, .errors = op_operator_errors,
      .role = OP_OPERATOR, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .route = "POST /v1/attention/ack", .check = op_check_ack, .run = op_run_ack },
    { "overview", "show what is running, waiting, silent and held, in one answer",
      "The same data as `top`. Each list has at most 200 rows; \"more\" names the "
      "lists that have further rows.",
      op_no_inputs, NULL, .examples = overview_examples, .shape = &hf_overview_shape,
      .facts = &hf_overview_facts_shape, .errors = op_read_errors, READER(OP_HIDDEN),
      .route = "GET /v1/overview", .run = op_run_overview },
    { "migrate", "bring the store to this version's schema",
      "Every command does this when it opens a store; this command does only this.",
      migrate_options, .examples = migrate_examples, .exits = "6 8 9" },
    { "doctor", "check store, schema, clock, disk, leases and trails",
      "Replays the trail of every unit and compares the result with its row. Prints a "
      "remedy for each fault. Exits with 9 if it found one.",
      op_no_inputs, NULL, .examples = doctor_examples, .shape = &hf_store_facts_shape,
      .facts = &hf_doctor_shape, .errors = op_read_errors, .role = OP_OPERATOR,
      .flags = OP_READS, .route = "GET /v1/doctor", .run = op_run_doctor },
    { "demo", "kill a worker, and show how its work continues",
      "Creates a ledger in a new folder and starts a submitter, two workers and a "
      "monitor on it. One worker is killed in the middle of a unit; the other "
      "continues that unit, and the proof of the death is stored in its trail. Then "
      "one unit waits for a user, one is retried, and one is closed with evidence. "
      "The summary at the end is read from the events of the ledger; if they do not "
      "confirm it, the command fails. It uses no other store and takes a few seconds.",
      demo_options, .examples = demo_examples, .actor_kind = "human", .exits = "9" },
    { "replay", "replay a recorded turn with this build",
      "Passes the recorded responses to the turn machine of this build and compares "
      "every effect with the recorded one. The first difference is printed to "
      "standard error, and the exit code is 7.",
      replay_options, .examples = replay_examples, .exits = "3 4 7 9" },
    { "bounds", "list every bound of an input", NULL, op_no_inputs, NULL, .examples = bounds_examples,
      .answer = OP_LIST, .shape = &hf_bound_shape, .role = OP_READ,
      .flags = OP_PAGED, .route = "GET /v1/bounds", .run = op_run_bounds },
    { "version", "print the versions of program, schema and SQLite", NULL, op_no_inputs,
      NULL, .examples = version_examples, .shape = &hf_version_shape, .role = OP_READ,
      .route = "GET /v1/version", .run = op_run_version },
    { "call", "perform an operation with its inputs as JSON",
      "Every operation of the table (--list) can be called: OP is its name, such as "
      "work.create, and its inputs are one JSON object, whose members have the names "
      "of the columns. The answer is the same as with --json. With --lines each line "
      "of standard input is {\"op\":...,\"in\":{...}}, and may also have id, tenant, "
      "actor, operation_id and correlation_id; each is answered by one line, in "
      "order. A refused line is answered by its error, and the following lines are "
      "still served.",
      call_inputs, .examples = call_examples, .exits = "3 4 5 6 7 8 9 10",
      .flags = OP_JSON },
    { "__man", "print a manual page", NULL, man_options, .flags = OP_HIDDEN,
      .exits = "3" },
    { "__completion", "print the completion for a shell", NULL, completion_inputs,
      .flags = OP_HIDDEN },
    { "__complete", "print the completions of the last word", NULL, complete_inputs,
      .flags = OP_HIDDEN | OP_OPENS },
    { .name = NULL },
};
/* clang-format on */
