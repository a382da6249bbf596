/* What can be typed after `holdfast job` and `holdfast limit`. */
#include "cli/cli.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

#define X(name, word) (word),
static const char *const status_words[] = { HF_STATUSES(X) NULL };
#undef X
const char *const cli_gate_words[] = { "due", "lane", "limit", "rate", "held", NULL };

#define ID_OPTION                                                                        \
    {                                                                                    \
        "id", "ID", CLI_TEXT, CLI_NEEDED | CLI_BARE,                                     \
            .help = "the job: its id, or a unique part of it at either end"              \
    }

static const struct cli_option enqueue_options[] = {
    { "kind", "K", CLI_TEXT, CLI_NEEDED | CLI_BARE, .help = "which code runs it" },
    { "payload", "JSON", CLI_JSON, 0, .help = "what it is given",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "queue", "Q", CLI_TEXT, 0, .help = "its queue (default: default)" },
    { "delay", "DURATION", CLI_DURATION, 0, .help = "not before this time has passed" },
    { "priority", "N", CLI_INT, 0, .help = "0, the most urgent, to 9 (default: 3)",
      .min = 0, .limit = HF_LIMIT_PRIORITY_MAX },
    { "lane", "KEY", CLI_TEXT, 0, .help = "at most one running job of this key" },
    { "dedup-key", "KEY", CLI_TEXT, 0, .help = "at most one unfinished job of this key" },
    { "debounce", "DURATION", CLI_DURATION, 0,
      .help = "due so long after the last such call with the same --dedup-key" },
    { "idempotency-key", "KEY", CLI_TEXT, 0,
      .help = "the same request again is the same job" },
    { "max-attempts", "N", CLI_INT, 0, .help = "executions (default: policy)", .min = 1,
      .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "retry-policy", "JSON", CLI_JSON, 0, .help = "delays and classes of its retries",
      .limit = HF_LIMIT_POLICY_BYTES },
    { "start-timeout", "DURATION", CLI_DURATION, 0, .help = "it must start within",
      .min = 1 },
    { "exec-timeout", "DURATION", CLI_DURATION, 0, .help = "an execution may take",
      .min = 1 },
    { "limit-key", "KEY", CLI_TEXT, 0, .help = "under the limit key:KEY" },
    { "rate-key", "KEY", CLI_TEXT, 0, .help = "under the limit rate:KEY" },
    { "fair-key", "KEY", CLI_TEXT, 0,
      .help = "keys of one queue and priority take turns" },
    { "fair-weight", "N", CLI_INT, 0, .help = "its share of the turns (default: 1)",
      .min = 1, .limit = HF_LIMIT_FAIR_WEIGHT_MAX },
    { "parent", "ID", CLI_TEXT, 0, .help = "the unit that made it" },
    { "ref", "REF", CLI_TEXT, 0, .help = "a reference of your own" },
    END_OPTIONS,
};
static const struct cli_example enqueue_examples[] = {
    { "run it as soon as a worker is free",
      "holdfast job enqueue mail --payload '{\"to\":\"ann\"}'" },
    { "once, five seconds after the last change",
      "holdfast job enqueue index --dedup-key customer-7 --debounce 5s" },
    { "no tenant keeps the others waiting",
      "holdfast job enqueue render --fair-key acme --limit-key acme" },
    END_EXAMPLES,
};

static const struct cli_option list_options[] = {
    { "status", "STATUS", CLI_WORD, CLI_MANY,
      .help = "only these (default: all that are not finished)", .words = status_words },
    { "all", NULL, CLI_FLAG, 0, .help = "finished ones too" },
    { "gate", "GATE", CLI_WORD, 0, .help = "only what waits behind it",
      .words = cli_gate_words },
    { "source", "SOURCE", CLI_WORD, 0, .help = "only of this source",
      .words = cli_source_words },
    { "queue", "Q", CLI_TEXT, 0, .help = "only of this queue" },
    { "kind", "K", CLI_TEXT, 0, .help = "only of this kind" },
    { "owner", "O", CLI_TEXT, 0, .help = "only what this owner holds" },
    { "ref", "REF", CLI_TEXT, 0, .help = "only what waits for it" },
    { "older-than", "DURATION", CLI_DURATION, 0, .help = "not changed for so long" },
    { "silent", NULL, CLI_FLAG, 0, .help = "running with a lapsed lease" },
    { "limit", "N", CLI_INT, 0, .help = "rows of a page (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", CLI_TEXT, 0, .help = "go on where the last page ended" },
    END_OPTIONS,
};
static const struct cli_example list_examples[] = {
    { "what is held for you", "holdfast job list --gate held" },
    { "mails that wait or run", "holdfast job list --kind mail" },
    END_EXAMPLES,
};

static const struct cli_option show_options[] = { ID_OPTION, END_OPTIONS };
static const struct cli_example show_examples[] = {
    { "by the end of its id", "holdfast job show 3f2a9c01" },
    END_EXAMPLES,
};

static const struct cli_option reason_options[] = {
    ID_OPTION,
    { "reason", "TEXT", CLI_TEXT, CLI_NEEDED, .help = "why" },
    END_OPTIONS,
};
static const struct cli_example cancel_examples[] = {
    { "it is not wanted any more",
      "holdfast job cancel 3f2a9c01 --reason 'sent by hand'" },
    END_EXAMPLES,
};
static const struct cli_example release_examples[] = {
    { "the code was mended", "holdfast job release 3f2a9c01 --reason 'fixed in 1.4.2'" },
    END_EXAMPLES,
};

static const struct cli_option now_options[] = {
    ID_OPTION,
    { "reason", "TEXT", CLI_TEXT, 0, .help = "why" },
    END_OPTIONS,
};
static const struct cli_example now_examples[] = {
    { "do not wait for the retry", "holdfast job run-now 3f2a9c01" },
    END_EXAMPLES,
};

#define CHANGE (CLI_MUST_EXIST | CLI_ROW)

const struct cli_command cli_job_commands[] = {
    { "job enqueue", "enqueue a job",
      "A job is a unit of work that code runs by the name of its kind; it may run again "
      "after a crash. With --debounce an unstarted job of the same --dedup-key is put "
      "off "
      "instead of making a second one.",
      enqueue_options, enqueue_examples, CLI_STORE | CLI_ROW, "human", "6 7 8 9",
      cmd_job_enqueue, check_enqueue },
    { "job list", "list jobs", NULL, list_options, list_examples, CLI_READS | CLI_ROWS,
      "human", "6 9", cmd_work_list, check_list },
    { "job show", "show all of one job", NULL, show_options, show_examples,
      CLI_READS | CLI_ROW, "human", "3 6 9", cmd_work_show, NULL },
    { "job cancel", "end a job that has not ended",
      "One that runs is told at its next renewal; what it does after that counts for "
      "nothing.",
      reason_options, cancel_examples, CHANGE, "human", "3 4 6 7 8 9", cmd_job_cancel,
      NULL },
    { "job run-now", "let a job start that waits for its time or its retry", NULL,
      now_options, now_examples, CHANGE, "human", "3 4 6 7 8 9", cmd_job_run_now, NULL },
    { "job release", "let a held job run again",
      "A job that lost its worker five times in a row within an hour is held, since it "
      "may be what kills them.",
      reason_options, release_examples, CHANGE, "human", "3 4 6 7 8 9", cmd_job_release,
      NULL },
    { .path = NULL },
};

static const struct cli_option set_options[] = {
    { "name", "NAME", CLI_TEXT, CLI_NEEDED | CLI_BARE,
      .help = "key:K, rate:K (both of the tenant) or kind:K" },
    { "max", "N", CLI_INT, 0, .help = "claimable or running at once", .min = 1,
      .limit = HF_LIMIT_LIMIT_COUNT },
    { "rate", "N", CLI_INT, 0, .help = "starts in the time of --per", .min = 1,
      .limit = HF_LIMIT_LIMIT_COUNT },
    { "per", "DURATION", CLI_DURATION, 0, .help = "the time of --rate, at most a day" },
    { "burst", "N", CLI_INT, 0, .help = "starts at once (default: --rate)", .min = 1,
      .limit = HF_LIMIT_LIMIT_COUNT },
    { "none", NULL, CLI_FLAG, 0, .help = "lift the limit" },
    END_OPTIONS,
};
static const struct cli_example set_examples[] = {
    { "two at a time for acme", "holdfast limit set key:acme --max 2" },
    { "ten calls a minute", "holdfast limit set rate:openai --rate 10 --per 1m" },
    { "at most 50 mails at once", "holdfast limit set kind:mail --max 50" },
    END_EXAMPLES,
};

static const struct cli_option no_options[] = { END_OPTIONS };
static const struct cli_example limits_examples[] = {
    { "who waits for what", "holdfast limit list" },
    END_EXAMPLES,
};

const struct cli_command cli_limit_commands[] = {
    { "limit set", "bound what runs or starts under a name",
      "Limits of keys and rates hold at once. That of a kind is for units without a key "
      "or lane that are created from now on.",
      set_options, set_examples, CLI_STORE, "human", "6 8 9", cmd_limit_set,
      check_limit },
    { "limit list", "show limits and how they stand", NULL, no_options, limits_examples,
      CLI_READS, "human", "6 9", cmd_limit_list, NULL },
    { .path = NULL },
};
