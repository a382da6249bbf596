/* Tables that only the shell has: global options, exit codes, variables, first steps. */
#include "cli/cli.h"

const struct cli_fact cli_exit_codes[] = {
    { "0", "success; also if the same call was applied earlier, and for a claim that "
           "found nothing" },
    { "1", "internal error, or the answer could not be written" },
    { "2", "usage or bad input; nothing was written" },
    { "3", "not found, or an id that several rows match" },
    { "4", "the status or the policy of the row does not allow the change" },
    { "5", "the lease is lost: stop the work" },
    { "6", "busy or unreachable: retry later" },
    { "7", "conflict: the same key was used with other content" },
    { "8", "the outcome is not known: read the row before you repeat the call" },
    { "9", "the store is unusable: not a store, corrupt, newer schema, full, read-only" },
    { "10", "attention: something needs a human" },
    { "11", "`process await`, `chat`: the process or turn failed" },
    { "12", "`process await`: the process timed out" },
    { "13", "`process await`, `chat`: the process or turn was cancelled" },
    { "14", "`process await`: the process was abandoned" },
    { "124", "`holdfast ask`: no answer came in time" },
    { "125", "`holdfast run` or `ask` itself failed. Other codes of `run` are those of "
             "the command, or 128 + n if signal n ended it" },
    { NULL, NULL },
};

const struct cli_fact cli_variables[] = {
    { "HOLDFAST_DB", "address of the store, if --db is not given" },
    { "HOLDFAST_ACTOR", "the actor, as KIND:NAME, if --actor is not given" },
    { "XDG_STATE_HOME",
      "folder of the default store: $XDG_STATE_HOME/holdfast/holdfast.db, otherwise "
      "~/.local/state/holdfast/holdfast.db" },
    { "XDG_CONFIG_HOME",
      "folder of the default configuration: $XDG_CONFIG_HOME/holdfast/holdfast.toml, "
      "otherwise ~/.config/holdfast/holdfast.toml" },
    { "HOLDFAST_WORK_ID, HOLDFAST_LEASE_TOKEN",
      "set by `holdfast run` for its command: the unit and the token that `holdfast "
      "work` uses if --id and --token are not given" },
    { "NO_COLOR", "if set, no colours" },
    { NULL, NULL },
};

const struct cli_fact cli_first_steps[] = {
    { "run -- CMD [ARG...]", "run a command, and record its outcome" },
    { "work list [--all]", "list open units; --all lists ended ones too" },
    { "work output ID", "print the output of a command; --follow while it runs" },
    { "work cancel ID", "stop something" },
    { "schedule add NAME", "run a command at set times" },
    { "monitor --run", "create scheduled work, run it, clean up; keep one" },
    { "ask 'TEXT'", "ask a person in a script, and wait for the answer" },
    { "answer ID WORD", "answer a question of `ask`" },
    { "chat", "talk to an agent; --scripted needs no key" },
    { "worker", "drive the conversations of agents, as a service" },
    { "attention", "list what needs a person now" },
    { "top", "show a live view of the ledger" },
    { "demo", "kill a worker, and show how its work continues" },
    { NULL, NULL },
};

const struct hf_input cli_global_options[] = {
    { "db", "PATH|URL", HF_IN_PATH, 0,
      .help = "the store: a path, sqlite:PATH, sqlite::memory: or postgres://HOST/DB "
              "(default: HOLDFAST_DB, otherwise a file in the user's state folder)" },
    { "json", NULL, HF_IN_FLAG, 0,
      .help =
          "print one JSON object: {\"ok\":true,...} or {\"ok\":false,\"error\":{...}}" },
    { "actor", "KIND:NAME", HF_IN_TEXT, 0,
      .help = "the actor, stored with the events; KIND is human, worker, schedule, "
              "webhook or system" },
    { "tenant", "T", HF_IN_TEXT, 0, .help = "tenant of the keys and rows" },
    { "operation-id", "ID", HF_IN_TEXT, 0,
      .help = "make a create, or a change without a token, repeatable: the call is "
              "applied once, and a repeated call with the same id returns its answer" },
    { "correlation-id", "ID", HF_IN_TEXT, 0,
      .help = "stored with the events of this call" },
    { "quiet", NULL, HF_IN_FLAG, 0, .help = "print only the answer and errors" },
    { "wide", NULL, HF_IN_FLAG, 0,
      .help = "all columns of a table, however narrow the terminal is" },
    { "no-color", NULL, HF_IN_FLAG, 0, .help = "no colours on a terminal" },
    { "help", NULL, HF_IN_FLAG, 0, .help = "print this" },
    { "version", NULL, HF_IN_FLAG, 0, .help = "print the version" },
    { .name = NULL },
};

const struct hf_input cli_rows_options[] = {
    { "field", "NAME", HF_IN_TEXT, 0,
      .help = "print only this field of each row, one per line (lease_token too)" },
    { .name = NULL },
};

const struct hf_input cli_row_options[] = {
    { "shell", NULL, HF_IN_FLAG, 0,
      .help = "print HF_WORK_ID='...' and so on for every field, safe to eval in a "
              "shell; all are empty if there is no row" },
    { .name = NULL },
};
