/* The row of `holdfast run`. */
#include "op/op.h"

static const char *const run_disposition_words[] = { "owner_bound", "rerunnable", NULL };

/* A command, wherever one can be given. It means something on this machine only. */
const struct hf_input op_command_inputs[] = {
    { "command", "CMD", HF_IN_TEXTS, HF_IN_BARE | HF_IN_LOCAL,
      .help = "the command and its arguments, after --" },
    { "cwd", "DIR", HF_IN_PATH, HF_IN_LOCAL,
      .help = "folder to run in (default: the current one)" },
    { "env", "NAME[=VALUE]", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "store this variable with the unit, so that a run by another worker has it "
              "too" },
    { "secret", "NAME", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "variable that the command needs; its value is never stored, and another "
              "worker takes it from its own environment" },
    { "timeout", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "end the command after this time: TERM, then KILL", .min = 1 },
    { "kill_after", "DURATION", HF_IN_MS, HF_IN_LOCAL,
      .help = "time from TERM to KILL (default: 5s)", .min = 1 },
    { "require_close_out", NULL, HF_IN_FLAG, HF_IN_LOCAL,
      .help = "do not close the unit as done on exit code 0: the command must close it "
              "out itself" },
    { "evidence", "FILE", HF_IN_TEXTS, HF_IN_LOCAL,
      .help = "on exit code 0 close the unit with the SHA-256 of this file as evidence; "
              "if the file is missing, the unit fails" },
    { .name = NULL },
};

const struct hf_input op_run_inputs[] = {
    { "name", "NAME", HF_IN_TEXT, 0,
      .help = "name that lists show (default: the command); wherever an id is expected, "
              "the name means its newest unit" },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "the queue of the unit (default: run)" },
    { "disposition", "WORD", HF_IN_WORD, 0,
      .help = "whether it may run again when its runner is lost (default: owner_bound, "
              "never)",
      .words = run_disposition_words },
    { "max-attempts", "N", HF_IN_INT, 0,
      .help = "executions before it fails for good (default: 1); above 1 needs "
              "--disposition rerunnable",
      .min = 1, .bound = HF_BOUND_ATTEMPTS_MAX },
    { "retry-policy", "JSON", HF_IN_JSON, 0, .help = "how failures are retried",
      .bound = HF_BOUND_POLICY_BYTES },
    { "ttl", "DURATION", HF_IN_MS, 0,
      .help = "term of the lease (default: by policy, otherwise 30s)", .min = 1 },
    { "idempotency-key", "K", HF_IN_TEXT, 0,
      .help = "run it once: a repeated call with the same key waits for the end of the "
              "first run and exits with its outcome" },
    { "detach", NULL, HF_IN_FLAG, 0,
      .help = "start the command as an independent process and end: the unit is "
              "externally_owned and done, no output is captured" },
    { "lane", "KEY", HF_IN_TEXT, 0,
      .help = "at most one unit of this key runs at a time" },
    { "id", "ID", HF_IN_TEXT, 0,
      .help = "claim this unit instead of creating one; without a command after --, run "
              "the unit's own" },
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "owner name of the lease (default: run:HOST:PID)" },
    { "worker", NULL, HF_IN_FLAG, 0,
      .help = "take units of kind \"run\" from the queue, until ended by a signal" },
    { "jobs", "N", HF_IN_INT, 0, .help = "with --worker: commands at a time (default: 1)",
      .min = 1, .max = 64 },
    { "until-idle", NULL, HF_IN_FLAG, 0,
      .help = "with --worker: end when the queue has no unit left to run" },
    { .name = NULL },
};

const struct op_example op_run_examples[] = {
    { "run a build, and record its outcome", "holdfast run -- make -j2 all" },
    { "try a fetch three times, here or elsewhere",
      "holdfast run --disposition rerunnable --max-attempts 3 --env URL -- ./fetch.sh" },
    { "at most ten minutes, and then 30 seconds to clean up",
      "holdfast run --timeout 10m --kill-after 30s -- ./import.sh" },
    { "start a server that this program does not supervise",
      "holdfast run --detach -- ./serve" },
    { "take over the work of other runners", "holdfast run --worker --jobs 4" },
    { .what = NULL },
};
