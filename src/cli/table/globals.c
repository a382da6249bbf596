/* What the shell alone has: global options, exit codes, variables, first steps. */
#include "cli/cli.h"

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
    { "11", "`process await`, `chat`: it ended as failed" },
    { "12", "`process await`: it ended as timeout" },
    { "13", "`process await`, `chat`: it was cancelled" },
    { "14", "`process await`: it was abandoned" },
    { "124", "`holdfast ask`: no answer came in time" },
    { "125",
      "`holdfast run` or `ask` itself failed; any other code of it is the command's, and "
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
    { "run -- CMD [ARG...]", "run a command, and keep what became of it" },
    { "work list [--all]", "what is running, waiting and queued; with --all what ended" },
    { "work output ID", "what a command printed; --follow while it runs" },
    { "work cancel ID", "stop something" },
    { "schedule add NAME", "run a command at set times" },
    { "monitor --run",
      "what makes scheduled work, runs it and cleans up; keep one running" },
    { "ask 'TEXT'", "ask a person in a script, and wait for the answer" },
    { "answer ID WORD", "answer such a question" },
    { "chat", "talk to an agent; with --scripted without a key" },
    { "attention", "what needs a person now, and what to do about it" },
    { "top", "watch it live" },
    { "demo", "see in some seconds what happens when a worker is killed" },
    { NULL, NULL },
};

const struct hf_input cli_global_options[] = {
    { "db", "PATH|URL", HF_IN_PATH, 0,
      .help = "the store: a path, sqlite:PATH, sqlite::memory: or postgres://HOST/DB "
              "(default: HOLDFAST_DB, else a file in the user's state folder)" },
    { "json", NULL, HF_IN_FLAG, 0,
      .help =
          "print one JSON object: {\"ok\":true,...} or {\"ok\":false,\"error\":{...}}" },
    { "actor", "KIND:NAME", HF_IN_TEXT, 0,
      .help =
          "who acts, for the trail; KIND is human, worker, schedule, webhook or system" },
    { "tenant", "T", HF_IN_TEXT, 0, .help = "the tenant whose keys and rows are meant" },
    { "operation-id", "ID", HF_IN_TEXT, 0,
      .help =
          "make a create, or a change without a token, repeatable: it is applied once, "
          "and the same id gives its answer again" },
    { "correlation-id", "ID", HF_IN_TEXT, 0,
      .help = "kept with the events that this makes" },
    { "quiet", NULL, HF_IN_FLAG, 0, .help = "print only what was asked for and errors" },
    { "wide", NULL, HF_IN_FLAG, 0,
      .help = "all columns of a table, however narrow the terminal is" },
    { "no-color", NULL, HF_IN_FLAG, 0, .help = "no colours on a terminal either" },
    { "help", NULL, HF_IN_FLAG, 0, .help = "print this" },
    { "version", NULL, HF_IN_FLAG, 0, .help = "print the version" },
    { .name = NULL },
};

const struct hf_input cli_rows_options[] = {
    { "field", "NAME", HF_IN_TEXT, 0,
      .help = "print only this field of each row, plain, a line each (lease_token too)" },
    { .name = NULL },
};

const struct hf_input cli_row_options[] = {
    { "shell", NULL, HF_IN_FLAG, 0,
      .help = "print HF_WORK_ID='...' and so on for every field, safe to eval in a "
              "shell; all "
              "are "
              "empty when there is no row" },
    { .name = NULL },
};
