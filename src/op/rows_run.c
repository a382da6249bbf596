/* What can be typed after `holdfast run`. */
#include "op/op.h"

static const char *const run_disposition_words[] = { "owner_bound", "rerunnable", NULL };

/* A command, wherever one can be given. It means something on this machine only. */
const struct hf_input op_command_inputs[] = {
    { "command", "CMD", HF_IN_TEXTS, HF_IN_BARE | HF_IN_LOCAL,
      .help = "the command and its arguments, after --" },
    { "cwd", "DIR", HF_IN_PATH, HF_IN_LOCAL,
      .help = "the folder to run in (default: this one)" },
    { "env", "NAME[=VALUE]", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "store this variable with the unit, so that a peer's run has it too" },
    { "secret", "NAME", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "the command needs this variable; its value is never stored, and a peer "
              "takes it from its own environment" },
    { "timeout", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "end the command when it runs longer: TERM, then KILL", .min = 1 },
    { "kill_after", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "from TERM to KILL (default: 5s)", .min = 1 },
    { "require_close_out", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      .help = "infer nothing from exit code 0: the command must close the unit out" },
    { "evidence", "FILE", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "when the command ended with 0, close the unit with the SHA-256 of this "
              "file as evidence; a file that is missing then is a failure" },
    { .name = NULL },
};

const struct hf_input op_run_inputs[] = {
    { "name", "NAME", HF_IN_TEXT, 0,
      .help =
          "what lists call it (default: the command); the name is taken for its newest "
          "unit wherever an id is asked for" },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "the queue of the unit (default: run)" },
    { "disposition", "WORD", HF_IN_WORD, 0,
      .help = "may it run again when its runner is lost (default: owner_bound, never)",
      .words = run_disposition_words },
    { "max-attempts", "N", HF_IN_INT, 0,
      .help = "executions before it fails for good (default: 1); above 1 it must be "
              "rerunnable",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "retry-policy", "JSON", HF_IN_JSON, 0, .help = "how failures are retried",
      .limit = HF_LIMIT_POLICY_BYTES },
    { "ttl", "DURATION", HF_IN_MS, 0,
      .help = "term of the lease (default: by policy, 30s where there is none)",
      .min = 1 },
    { "idempotency-key", "K", HF_IN_TEXT, 0,
      .help = "run it once: the same key again starts nothing, waits for the end of the "
              "first run and exits with its outcome" },
    { "detach", NULL, HF_IN_FLAG, 0,
      .help = "hand the command over to a process of its own and end: the unit is "
              "externally_owned and done, nothing is captured" },
    { "lane", "KEY", HF_IN_TEXT, 0,
      .help = "at most one unit of this key runs at a time" },
    { "id", "ID", HF_IN_TEXT, 0,
      .help = "claim this unit instead of making one; without a command, run its own" },
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "who holds the lease (default: run:HOST:PID)" },
    { "worker", NULL, HF_IN_FLAG, 0,
      .help = "take units of kind \"run\" from the queue, until told to end" },
    { "jobs", "N", HF_IN_INT, 0, .help = "of a worker: commands at a time (default: 1)",
      .min = 1, .max = 64 },
    { "until-idle", NULL, HF_IN_FLAG, 0,
      .help = "of a worker: end when the queue holds nothing more to run" },
    { .name = NULL },
};

const struct op_example op_run_examples[] = {
    { "run a build, and keep what became of it", "holdfast run -- make -j2 all" },
    { "try a fetch three times, here or elsewhere",
      "holdfast run --disposition rerunnable --max-attempts 3 --env URL -- ./fetch.sh" },
    { "at most ten minutes, and then 30 seconds to clean up",
      "holdfast run --timeout 10m --kill-after 30s -- ./import.sh" },
    { "start a server that this program does not look after",
      "holdfast run --detach -- ./serve" },
    { "take over what other runners left", "holdfast run --worker --jobs 4" },
    { .what = NULL },
};
