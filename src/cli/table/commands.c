/* What can be typed: the global options, the groups, and the commands that are not about
 * one unit of work. */
#include "cli/cli.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

#define WORD(name, word) (word),
const char *const cli_source_words[] = { HF_SOURCES(WORD) NULL };
const char *const cli_disposition_words[] = { HF_DISPOSITIONS(WORD) NULL };
#undef WORD
const char *const cli_close_rule_words[] = { "evidence", "reviewer", NULL };

const struct cli_fact cli_exit_codes[] = {
    { "0",
      "done; also when the same call had been done before, and for a claim that found "
      "nothing" },
    { "1", "internal error, or the answer could not be written" },
    { "2", "usage or bad input; nothing was written" },
    { "3", "not found, or an id that several rows match" },
    { "4", "the row's status or its policy does not allow that" },
    { "5", "the lease is lost: stop the work" },
    { "6", "busy or unreachable: retry later" },
    { "7", "conflict: the same key was used with other content" },
    { "8", "the outcome is not known: read the row before doing anything again" },
    { "9", "the store is unusable: not a store, corrupt, newer schema, full, read-only" },
    { "10", "attention: something needs a human" },
    { "11", "`process await`: it ended as failed" },
    { "12", "`process await`: it ended as timeout" },
    { "13", "`process await`: it was cancelled" },
    { "14", "`process await`: it was abandoned" },
    { "125", "`holdfast run` itself failed; any other code of it is the command's, and "
             "128 + n where signal n ended it" },
    { NULL, NULL },
};

const struct cli_fact cli_variables[] = {
    { "HOLDFAST_DB", "the store, when --db is not given" },
    { "HOLDFAST_ACTOR", "who acts, as KIND:NAME, when --actor is not given" },
    { "XDG_STATE_HOME", "where the store is when neither names one: "
                        "$XDG_STATE_HOME/holdfast/holdfast.db, else "
                        "~/.local/state/holdfast/holdfast.db" },
    { "XDG_CONFIG_HOME", "where the configuration is when --config names none: "
                         "$XDG_CONFIG_HOME/holdfast/holdfast.toml, otherwise "
                         "~/.config/holdfast/holdfast.toml" },
    { "HOLDFAST_WORK_ID, HOLDFAST_LEASE_TOKEN",
      "set by `holdfast run` for its command: the unit and the token that `holdfast "
      "work` uses when --id and --token are not given" },
    { "NO_COLOR", "no colours, when set to anything" },
    { NULL, NULL },
};

const struct cli_fact cli_first_steps[] = {
    { "holdfast demo", "watch a worker die and its work go on; needs nothing" },
    { "holdfast run -- CMD...", "run a command as work that a crash does not lose" },
    { "holdfast attention", "what needs a human now, and what to do about it" },
    { "holdfast top", "watch what is running and waiting" },
    { NULL, NULL },
};

const struct cli_option cli_global_options[] = {
    { "db", "PATH|URL", CLI_PATH, 0,
      .help = "the store: a path, sqlite:PATH, sqlite::memory: or postgres://HOST/DB "
              "(default: HOLDFAST_DB, else a file in the user's state folder)" },
    { "json", NULL, CLI_FLAG, 0,
      .help =
          "print one JSON object: {\"ok\":true,...} or {\"ok\":false,\"error\":{...}}" },
    { "actor", "KIND:NAME", CLI_TEXT, 0,
      .help =
          "who acts, for the trail; KIND is human, worker, schedule, webhook or system" },
    { "tenant", "T", CLI_TEXT, 0, .help = "the tenant whose keys and rows are meant" },
    { "operation-id", "ID", CLI_TEXT, 0,
      .help =
          "make a create, or a change without a token, repeatable: it is applied once, "
          "and the same id gives its answer again" },
    { "correlation-id", "ID", CLI_TEXT, 0,
      .help = "kept with the events that this makes" },
    { "quiet", NULL, CLI_FLAG, 0, .help = "print only what was asked for and errors" },
    { "no-color", NULL, CLI_FLAG, 0, .help = "no colours on a terminal either" },
    { "help", NULL, CLI_FLAG, 0, .help = "print this" },
    { "version", NULL, CLI_FLAG, 0, .help = "print the version" },
    END_OPTIONS,
};

const struct cli_option cli_rows_options[] = {
    { "field", "NAME", CLI_TEXT, 0,
      .help = "print only this field of each row, plain, a line each (lease_token too)" },
    END_OPTIONS,
};

const struct cli_option cli_row_options[] = {
    { "shell", NULL, CLI_FLAG, 0,
      .help = "print HF_WORK_ID='...' and so on for every field, safe to eval in a "
              "shell; all "
              "are "
              "empty when there is no row" },
    END_OPTIONS,
};

/* ---- policy ------------------------------------------------------------------------ */

static const struct cli_option policy_set_options[] = {
    { "scope", "SCOPE", CLI_TEXT, CLI_NEEDED | CLI_BARE,
      .help = "default, source:NAME or kind:NAME" },
    { "ttl", "DURATION", CLI_DURATION, 0,
      .help = "term of a lease; at least three times --renew", .min = 1 },
    { "renew", "DURATION", CLI_DURATION, 0,
      .help = "how often a lease is renewed (default: ttl / 3)", .min = 1 },
    { "grace", "DURATION", CLI_DURATION, 0,
      .help = "how long an expired lease is spared (expire only)" },
    { "wait-user", "DURATION", CLI_DURATION, 0, .help = "budget of a wait for a person",
      .min = 1 },
    { "wait-external", "DURATION", CLI_DURATION, 0,
      .help = "budget of a wait for anything else", .min = 1 },
    { "start-timeout", "DURATION", CLI_DURATION, 0, .help = "longest time in the queue",
      .min = 1 },
    { "exec-timeout", "DURATION", CLI_DURATION, 0,
      .help = "longest time of one execution", .min = 1 },
    { "max-attempts", "N", CLI_INT, 0, .help = "executions before it fails for good",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "retry-policy", "JSON", CLI_JSON, 0, .help = "how failures are retried",
      .limit = HF_LIMIT_POLICY_BYTES },
    { "disposition", "WORD", CLI_WORD, 0, .help = "what a lapsed lease does",
      .words = cli_disposition_words },
    { "close-rule", "RULE", CLI_WORD, 0, .help = "what a close-out must bring",
      .words = cli_close_rule_words },
    END_OPTIONS,
};

static const struct cli_option policy_show_options[] = {
    { "source", "SYSTEM", CLI_WORD, 0, .help = "for units of this source",
      .words = cli_source_words },
    { "kind", "K", CLI_TEXT, 0, .help = "for units of this kind" },
    END_OPTIONS,
};

static const struct cli_example policy_set_examples[] = {
    { "slow builds may stay silent for five minutes",
      "holdfast policy set kind:build --ttl 5m --max-attempts 5" },
    { "answers to people need a reviewer other than the owner",
      "holdfast policy set source:conversation --close-rule reviewer" },
    END_EXAMPLES,
};

static const struct cli_example policy_show_examples[] = {
    { "what is in force for builds from the scheduler",
      "holdfast policy show --source scheduler --kind build" },
    END_EXAMPLES,
};

const struct cli_command cli_policy_commands[] = {
    { "policy set", "set the policy of a scope, all fields at once",
      "Precedence is the unit's own settings, then its kind, its source, the default. A "
      "field that is not given is not set in this scope. A retry policy is fixed when a "
      "unit is created, lease timings when it is claimed.",
      policy_set_options, policy_set_examples, CLI_STORE, "human", "6 8 9",
      cmd_policy_set, NULL },
    { "policy show", "show the policy in force", NULL, policy_show_options,
      policy_show_examples, CLI_READS, "human", "6 9", cmd_policy_show, NULL },
    { .path = NULL },
};

/* ---- store ------------------------------------------------------------------------- */

static const struct cli_option no_options[] = { END_OPTIONS };

static const struct cli_example bump_examples[] = {
    { "after a backup was put back", "holdfast --db work.db store bump" },
    END_EXAMPLES,
};

static const struct cli_option copy_options[] = {
    { "from", "URL", CLI_PATH, CLI_NEEDED, .help = "the store to copy" },
    { "to", "URL", CLI_PATH, CLI_NEEDED, .help = "an empty one, or one to be made" },
    END_OPTIONS,
};

static const struct cli_example copy_examples[] = {
    { "another file", "holdfast store copy --from work.db --to new.db" },
    { "from a file to a server",
      "holdfast store copy --from work.db --to postgres://db.example/agents" },
    END_EXAMPLES,
};

static const struct cli_option log_options[] = {
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};

static const struct cli_example log_examples[] = {
    { "bumps, amnesties and copies, newest first", "holdfast store log" },
    END_EXAMPLES,
};

const struct cli_command cli_store_commands[] = {
    { "store bump", "begin a new history: earlier tokens are refused",
      "A step of a restore. Holders of the old history are refused at once; their work "
      "is "
      "taken by others only when its lease lapses or their death is proven.",
      no_options, bump_examples, CLI_MUST_EXIST, "human", "6 8 9", cmd_store_bump, NULL },
    { "store copy", "move house: a store into an empty one, row by row",
      "Copies every table, on the same engine or another, then compares both row by row "
      "and "
      "says what it compared. Ids, numbers and fences are kept; the copy begins a "
      "history of "
      "its own, so no token of the source is good in it. Stop everything that writes to "
      "the "
      "source first, and let nothing wait on the target yet. A copy that was not "
      "finished is opened by no program: remove it.",
      copy_options, copy_examples, 0, "human", "6 7 8 9", cmd_store_copy, NULL },
    { "store log", "show what happened to the store as a whole",
      "Bumps of its history, and amnesties: when a monitor saw the store stall and gave "
      "leases one more term for it.",
      log_options, log_examples, CLI_READS, "human", "6 9", cmd_store_log, NULL },
    { .path = NULL },
};

/* ---- turn --------------------------------------------------------------------------- */

static const struct cli_option inspect_options[] = {
    { "save", "FILE", CLI_PATH, CLI_NEEDED | CLI_BARE,
      .help = "a turn's save; - is stdin" },
    { "other", "FILE", CLI_PATH, CLI_BARE, .help = "another one, to compare it with" },
    END_OPTIONS,
};

static const struct cli_example inspect_examples[] = {
    { "what a turn waits for", "holdfast turn inspect turn.save" },
    { "what an hour changed", "holdfast turn inspect before.save after.save" },
    END_EXAMPLES,
};

const struct cli_command cli_turn_commands[] = {
    { "turn inspect", "print a turn's save, or the difference of two",
      "One line for each thing in it: session and turn, state, the effect that is out, "
      "messages, usage. Then, of a turn in which the model writes code, each cell with "
      "its calls, output and how it ended. Needs no store, no history and no prompt. "
      "Damaged bytes are refused with exit code 9.",
      inspect_options, inspect_examples, 0, NULL, "3 9", cmd_turn_inspect, NULL },
    { .path = NULL },
};

/* ---- cell --------------------------------------------------------------------------- */

static const struct cli_option cell_options[] = {
    { "file", "FILE", CLI_PATH, CLI_NEEDED | CLI_BARE,
      .help = "the text of the cell; - is stdin" },
    { "bindings", "JSON", CLI_JSON, 0,
      .help = "values from before: bindings that a cell left, or any JSON object",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "given", "JSON", CLI_JSON, 0,
      .help = "an object of values that the cell can only read",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "given-refs", "JSON", CLI_JSON, 0,
      .help = "the same by reference: read when the cell first uses the name, and "
              "answered by \"reads\" of the script",
      .limit = HF_LIMIT_CELL_BINDINGS_BYTES },
    { "tools", "JSON", CLI_JSON, 0,
      .help = "what the host answers: {\"tools\": {NAME: {\"result\": ...}}}; "
              "without it every call fails",
      .limit = HF_LIMIT_TURN_TEXT_BYTES },
    { "limit", "NAME=N", CLI_TEXT, CLI_MANY,
      .help = "steps, active_ms, memory_bytes, ops or output_bytes" },
    { "show-bindings", NULL, CLI_FLAG, 0, .help = "print all bindings after the cell" },
    END_OPTIONS,
};

static const struct cli_example cell_examples[] = {
    { "try a cell with scripted tools",
      "holdfast cell run cell.lua --tools '{\"tools\": {\"add\": {\"result\": 5}}}'" },
    { "how much does it cost", "holdfast cell run cell.lua --limit steps=100000 --json" },
    END_EXAMPLES,
};

const struct cli_command cli_cell_commands[] = {
    { "cell run", "run one code cell with a scripted host",
      "Prints every operation of the cell with its answer, how it ended, what it changed "
      "in the bindings and what it cost. Sleeps are not slept. Time and random numbers "
      "are the machine's, unless the script has \"now\" and \"random\". A cell that does "
      "not end well is exit code 2.",
      cell_options, cell_examples, 0, NULL, "3", cmd_cell_run, NULL },
    { .path = NULL },
};

/* ---- one-word commands ------------------------------------------------------------- */

static const struct cli_option monitor_options[] = {
    { "owner", "O", CLI_TEXT, 0,
      .help = "renew what this owner runs, while it is active" },
    { "incarnation", "I", CLI_TEXT, 0, .help = "only this incarnation of the owner" },
    { "pointer", "FILE", CLI_PATH, 0,
      .help = "keep this file naming the owner's newest running unit (needs --owner)" },
    { "interval", "DURATION", CLI_DURATION, 0,
      .help = "longest time between two passes (default: 1s)" },
    { "fresh", "DURATION", CLI_DURATION, 0,
      .help = "how recent the last activity must be for a renewal (default: 120s)",
      .min = 1 },
    { "once", NULL, CLI_FLAG, 0, .help = "one pass, then end" },
    { "run", NULL, CLI_FLAG, 0,
      .help =
          "also run queued commands, as `holdfast run --worker` does: rerunnable ones "
          "whose runner died, and those that were left to a worker" },
    { "jobs", "N", CLI_INT, 0, .help = "with --run: commands at a time (default: 1)",
      .min = 1, .max = 64 },
    { "queue", "Q", CLI_TEXT, 0, .help = "with --run: the queue (default: run)" },
    END_OPTIONS,
};

static const struct cli_example monitor_examples[] = {
    { "look after a ledger", "holdfast --db work.db monitor" },
    { "and run again what lost its runner", "holdfast --db work.db monitor --run" },
    { "also renew what the agent \"main\" runs, and keep its pointer",
      "holdfast --db work.db monitor --owner main --pointer active-work.json" },
    END_EXAMPLES,
};

static const struct cli_option migrate_options[] = {
    { "dump-sql", NULL, CLI_FLAG, 0,
      .help =
          "print the schema as SQL of the engine that --db names; no store is opened" },
    END_OPTIONS,
};

static const struct cli_example migrate_examples[] = {
    { "bring a store to this version's schema", "holdfast --db work.db migrate" },
    { "read the schema", "holdfast migrate --dump-sql" },
    END_EXAMPLES,
};

static const struct cli_example doctor_examples[] = {
    { "check a store and every trail in it", "holdfast --db work.db doctor" },
    END_EXAMPLES,
};

static const struct cli_example limits_examples[] = {
    { "one limit, in a script", "holdfast limits --json" },
    END_EXAMPLES,
};

static const struct cli_example version_examples[] = {
    { "which version, schema and SQLite", "holdfast version --json" },
    END_EXAMPLES,
};

static const struct cli_option demo_options[] = {
    { "folder", "DIR", CLI_PATH, 0,
      .help = "make the ledger there; an empty folder, or one that is not there yet "
              "(default: a fresh one under TMPDIR)" },
    { "remove", NULL, CLI_FLAG, 0,
      .help = "remove the folder at the end (default: it is kept)" },
    END_OPTIONS,
};

static const struct cli_example demo_examples[] = {
    { "see the point in a few seconds", "holdfast demo" },
    { "only the facts, and leave nothing behind", "holdfast demo --json --remove" },
    END_EXAMPLES,
};

static const struct cli_option replay_options[] = {
    { "recording", "FILE", CLI_PATH, CLI_NEEDED | CLI_BARE,
      .help = "the recording, a JSON text a line; - is stdin" },
    END_OPTIONS,
};

static const struct cli_example replay_examples[] = {
    { "in CI, before a release", "holdfast replay turns/checkout.jsonl" },
    END_EXAMPLES,
};

static const struct cli_option man_options[] = {
    { "page", "GROUP", CLI_TEXT, CLI_BARE, .help = "the group; none: holdfast(1)" },
    END_OPTIONS,
};

static const struct cli_option top_options[] = {
    { "once", NULL, CLI_FLAG, 0, .help = "print it once and end" },
    { "interval", "DURATION", CLI_DURATION, 0,
      .help = "between two looks (default: 1s, at least 100ms)", .min = 100,
      .max = 3600000 },
    { .name = NULL },
};
static const struct cli_example top_examples[] = {
    { "watch", "holdfast top" },
    { "for a script", "holdfast top --json" },
    { .what = NULL },
};
static const struct cli_example attention_examples[] = {
    { "what needs me?", "holdfast attention" },
    { "in a cron job that mails its output", "holdfast attention || true" },
    { .what = NULL },
};

const struct cli_command cli_top_commands[] = {
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
      cli_run_options, cli_run_examples, CLI_WRAPS, "worker", "125", cmd_run, check_run },
    { "monitor", "sweep, renew, make what is scheduled, until told to end",
      "Ends what was declared to end (lapsed leases, deadlines, waits), promotes what is "
      "due, makes the slots of schedules that have come, and with --owner renews what "
      "that owner runs and reported activity for. Any "
      "number of monitors may run on one store. SIGTERM and SIGINT end it cleanly. One "
      "line an action is written to standard error; with --json they are JSON lines, and "
      "the totals are printed at the end. Choose an interval of at most a third of the "
      "shortest lease that it renews.",
      monitor_options, monitor_examples, 0, NULL, "6 8 9", cmd_monitor, NULL },
    { "top", "watch the ledger: running, waiting, silent, leases about to lapse",
      "A live view of the terminal; q, SIGTERM and SIGINT end it. Without a terminal, "
      "and "
      "with --once or --json, it is printed once.",
      top_options, top_examples, CLI_READS, "human", "6 9", cmd_top, NULL },
    { "attention",
      "list what needs a human now, each with the command that deals with it",
      "Silent holders, waits past half of their time, held work, schedules that fail or "
      "were missed. Exits with 0 when there is nothing, with 10 when there is something.",
      no_options, attention_examples, CLI_READS, "human", "6 9 10", cmd_attention, NULL },
    { "migrate", "bring the store to this version's schema",
      "Every command does so when it opens a store; this one does nothing else.",
      migrate_options, migrate_examples, 0, NULL, "6 8 9", cmd_migrate, NULL },
    { "doctor", "check store, schema, clock, disk, leases and trails",
      "Folds every trail of events again and compares it with its row. Says what to do "
      "about each finding; exits with 9 when something is wrong.",
      no_options, doctor_examples, CLI_READS, NULL, "6 9", cmd_doctor, NULL },
    { "demo", "show what a ledger does when a worker is killed",
      "Makes a ledger in a fresh folder and starts a submitter, two workers and a "
      "monitor "
      "on it. One worker is killed in the middle of a unit; the other goes on with that "
      "unit, and the proof of the death stands in its trail. Then a unit waits for a "
      "user, one is retried, and one is closed with evidence. The summary at the end is "
      "read from the ledger's events; when they do not bear it out the command fails. It "
      "needs no store of yours and takes a few seconds.",
      demo_options, demo_examples, 0, "human", "9", cmd_demo, check_demo },
    { "replay", "drive a recorded turn with this build",
      "Feeds the recorded responses to this build's turn machine and compares every "
      "effect with the recorded one. The first that differs is shown on standard error, "
      "and the exit code is 7.",
      replay_options, replay_examples, 0, NULL, "3 4 7 9", cmd_replay, NULL },
    { "limits", "list every limit", NULL, no_options, limits_examples, 0, NULL, NULL,
      cmd_limits, NULL },
    { "version", "print the versions of program, schema and SQLite", NULL, no_options,
      version_examples, 0, NULL, NULL, cmd_version, NULL },
    { "__man", "print a manual page", NULL, man_options, NULL, CLI_HIDDEN, NULL, "3",
      cmd_man, NULL },
    { "__completion", "print the completion for bash", NULL, no_options, NULL, CLI_HIDDEN,
      NULL, NULL, cmd_completion, NULL },
    { .path = NULL },
};

const struct cli_group cli_groups[] = {
    { "work", "create, claim, settle and look at units of work", cli_work_commands },
    { "job", "work that code runs by the name of its kind", cli_job_commands },
    { "limit", "how much of something runs or starts at once", cli_limit_commands },
    { "policy", "timings, retries and rules for kinds and sources of work",
      cli_policy_commands },
    { "schedule", "work that is made at set times", cli_schedule_commands },
    { "process", "background processes", cli_process_commands },
    { "store", "what an operator does to a store as a whole", cli_store_commands },
    { "trigger", "start work when something happens", cli_trigger_commands },
    { "turn", "look at turns that were saved", cli_turn_commands },
    { "cell", "run code cells from the shell", cli_cell_commands },
    { "provider", "the models that can be called", cli_provider_commands },
    { "config", "the configuration file", cli_config_commands },
    { "", "a durable ledger of work for long-running agents", cli_top_commands },
    { NULL, NULL, NULL },
};
