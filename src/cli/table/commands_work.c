/* What can be typed after `holdfast work`. */
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
static const char *const status_words[] = { HF_STATUSES(WORD) NULL };
#undef WORD
static const char *const close_words[] = { "done", "failed", "timeout", "cancelled",
                                           NULL };
static const char *const wait_words[] = { "user", "external", NULL };
static const char *const class_words[] = { "transient_network",
                                           "rate_limit",
                                           "service_unavailable",
                                           "validation",
                                           "policy_denied",
                                           "misconfigured",
                                           NULL };

/* ---- options that several share ----------------------------------------------------- */

#define ID_OPTION(flags)                                                                 \
    {                                                                                    \
        "id", "ID", CLI_TEXT, (flags) | CLI_BARE,                                        \
            .help = "the unit: its id, or a unique prefix or suffix of it"               \
    }
#define TOKEN_OPTION(flags)                                                              \
    {                                                                                    \
        "token", "T", CLI_TEXT, (flags), .help = "the token that the claim gave"         \
    }
#define REASON_OPTION(flags, text)                                                       \
    {                                                                                    \
        "reason", "R", CLI_TEXT, (flags), .help = (text)                                 \
    }
#define OWNER_OPTION(flags, text)                                                        \
    {                                                                                    \
        "owner", "O", CLI_TEXT, (flags), .help = (text)                                  \
    }
#define INCARNATION_OPTION                                                               \
    {                                                                                    \
        "incarnation", "I", CLI_TEXT, 0,                                                 \
            .help = "one boot of the owner; give the same one to take a claim up again " \
                    "(default: a fresh one)"                                             \
    }
#define PID_OPTION                                                                       \
    {                                                                                    \
        "pid", "PID", CLI_INT, 0,                                                        \
            .help =                                                                      \
                "tie the lease to this local process, so that its death is provable; "   \
                "without it only time ends the lease",                                   \
            .min = 1, .max = INT32_MAX                                                   \
    }
#define NONCE_OPTION                                                                     \
    {                                                                                    \
        "nonce", "N", CLI_TEXT, 0,                                                       \
            .help = "a value of your own that makes the call repeatable: the same one "  \
                    "gives "                                                             \
                    "the same token"                                                     \
    }
#define TTL_OPTION                                                                       \
    {                                                                                    \
        "ttl", "DURATION", CLI_DURATION, 0,                                              \
            .help = "term of the lease (default: policy)", .min = 1                      \
    }

/* ---- create and claim -------------------------------------------------------------- */

static const struct cli_option create_options[] = {
    { "source", "SYSTEM", CLI_WORD, CLI_NEEDED, .help = "where the unit comes from",
      .words = cli_source_words },
    { "source-id", "ID", CLI_TEXT, CLI_NEEDED, .help = "its id there" },
    { "source-run-id", "R", CLI_TEXT, 0,
      .help = "which run of it; needed for scheduler. The same source, id and run are "
              "one unit" },
    { "kind", "K", CLI_TEXT, 0, .help = "what kind of work it is (default: work)" },
    { "queue", "Q", CLI_TEXT, 0,
      .help = "where it waits to be claimed (default: default)" },
    { "lane", "KEY", CLI_TEXT, 0, .help = "at most one unit of a key runs at a time" },
    { "dedup-key", "KEY", CLI_TEXT, 0,
      .help = "at most one unit of a key is unfinished" },
    { "idempotency-key", "KEY", CLI_TEXT, 0, .help = "the same key gives the same unit" },
    { "priority", "N", CLI_INT, 0, .help = "0 is the most urgent (default: 3)", .min = 0,
      .limit = HF_LIMIT_PRIORITY_MAX },
    { "payload", "JSON", CLI_JSON, 0, .help = "what the worker is to know",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    { "payload-ref", "REF", CLI_TEXT, 0,
      .help = "where the payload is, instead of --payload" },
    { "disposition", "WORD", CLI_WORD, 0,
      .help = "what a lapsed lease does (default: policy, else expire)",
      .words = cli_disposition_words },
    { "ref", "R", CLI_TEXT, 0, .help = "a reference of your own" },
    { "parent", "ID", CLI_TEXT, 0, .help = "the unit that this one belongs to" },
    { "max-attempts", "N", CLI_INT, 0, .help = "executions before it fails for good",
      .min = 1, .limit = HF_LIMIT_ATTEMPTS_MAX },
    { "retry-policy", "JSON", CLI_JSON, 0, .help = "how failures are retried",
      .limit = HF_LIMIT_POLICY_BYTES },
    { "delay", "DURATION", CLI_DURATION, 0,
      .help = "not before this much time has passed" },
    { "due-at", "MS", CLI_INT, 0, .help = "not before this time, in epoch milliseconds",
      .min = 1, .max = 253402300799999 },
    { "start-timeout", "DURATION", CLI_DURATION, 0, .help = "longest time in the queue",
      .min = 1 },
    { "exec-timeout", "DURATION", CLI_DURATION, 0,
      .help = "longest time of one execution", .min = 1 },
    { "close-rule", "RULE", CLI_WORD, 0, .help = "what its close-out must bring",
      .words = cli_close_rule_words },
    { "detached", NULL, CLI_FLAG, 0,
      .help = "record it as done: its hand-off is what was done" },
    { "reply-to", "REF", CLI_TEXT, 0,
      .help = "where one unit waits for a user under this reference, resume it with the "
              "payload, and make no unit" },
    { "spool", "FILE", CLI_PATH, 0,
      .help = "answer within 50 ms: what the ledger does not take by then goes into this "
              "file, for work reconcile --from" },
    { "budget", "DURATION", CLI_DURATION, 0,
      .help = "with --spool: answer within this time instead of 50ms", .min = 1 },
    END_OPTIONS,
};

static const struct cli_example create_examples[] = {
    { "a message that somebody must answer",
      "holdfast work create --source conversation --source-id msg-17 "
      "--payload '{\"text\":\"hello\"}'" },
    { "a job that may be run again after a crash; keep its id",
      "id=$(holdfast work create --source manual --source-id build-9 --disposition "
      "rerunnable --field work_id)" },
    { "the payload from another program, five minutes from now",
      "make-payload | holdfast work create --source manual --source-id n1 --delay 5m "
      "--payload -" },
    { "from an adapter that must not wait for the ledger",
      "holdfast work create --source conversation --source-id msg-18 --spool "
      "ingress.spool" },
    END_EXAMPLES,
};

static const struct cli_option claim_options[] = {
    OWNER_OPTION(CLI_NEEDED, "who takes it"),
    INCARNATION_OPTION,
    PID_OPTION,
    NONCE_OPTION,
    { "id", "ID", CLI_TEXT, CLI_BARE, .help = "this unit and no other" },
    { "queue", "Q", CLI_TEXT, 0, .help = "from this queue (default: default)" },
    { "kind", "K", CLI_TEXT, CLI_MANY, .help = "only these kinds" },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 1)", .min = 1,
      .limit = HF_LIMIT_BATCH },
    TTL_OPTION,
    { "wait", "DURATION", CLI_DURATION, 0,
      .help = "wait up to this long until there is work" },
    END_OPTIONS,
};

static const struct cli_example claim_examples[] = {
    { "take one unit, waiting for it; the lease ends with this shell",
      "holdfast work claim --owner w1 --pid $$ --wait 30s" },
    { "in a script: take one into variables",
      "out=$(holdfast work claim --owner w1 --pid $$ --wait 30s --shell) && eval "
      "\"$out\"" },
    { "take ten of two kinds", "holdfast work claim --owner w1 --kind mail --kind page "
                               "--limit 10 --json" },
    END_EXAMPLES,
};

/* ---- what a holder does ------------------------------------------------------------- */

static const struct cli_option renew_options[] = {
    ID_OPTION(0),
    TOKEN_OPTION(0),
    TTL_OPTION,
    OWNER_OPTION(0, "renew all leases of this owner instead of one by its token"),
    { "incarnation", "I", CLI_TEXT, 0, .help = "with --owner: only this incarnation" },
    { "fresh", "DURATION", CLI_DURATION, 0,
      .help = "with --owner: only what was active so recently", .min = 1 },
    END_OPTIONS,
};

static const struct cli_option holder_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(CLI_NEEDED),
    END_OPTIONS,
};

static const struct cli_option hand_back_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(CLI_NEEDED),
    REASON_OPTION(0, "why"),
    END_OPTIONS,
};

static const struct cli_option wait_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(CLI_NEEDED),
    { "kind", "KIND", CLI_WORD, CLI_NEEDED, .help = "for whom it waits",
      .words = wait_words },
    { "ref", "R", CLI_TEXT, CLI_NEEDED,
      .help = "what it waits for; a resume may name it" },
    REASON_OPTION(0, "why"),
    { "timeout", "DURATION", CLI_DURATION, 0,
      .help = "how long (default: policy; 24h for user, 2h for external)", .min = 1 },
    { "escalate-after", "DURATION", CLI_DURATION, 0, .help = "speak up after this long",
      .min = 1 },
    { "escalate", "HOW", CLI_TEXT, 0, .help = "event, or work:KIND to create a unit" },
    END_OPTIONS,
};

static const struct cli_option close_out_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(0),
    { "authority", "A", CLI_TEXT, 0,
      .help = "who says so, for an externally owned unit; instead of --token" },
    { "status", "STATUS", CLI_WORD, CLI_NEEDED, .help = "how it ended",
      .words = close_words },
    REASON_OPTION(0, "why"),
    { "class", "CLASS", CLI_TEXT, 0, .help = "the kind of failure",
      .words = class_words },
    { "summary", "S", CLI_TEXT, 0, .help = "what was done, for people" },
    { "output", "REF", CLI_TEXT, CLI_MANY, .help = "where a result is" },
    { "evidence", "REF", CLI_TEXT, CLI_MANY, .help = "a hash or file that proves it" },
    { "reviewer", "NAME", CLI_TEXT, 0, .help = "who looked at it" },
    END_OPTIONS,
};

static const struct cli_option fail_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(CLI_NEEDED),
    { "class", "CLASS", CLI_TEXT, CLI_NEEDED, .help = "the kind of failure",
      .words = class_words },
    REASON_OPTION(0, "why"),
    END_OPTIONS,
};

static const struct cli_option append_options[] = {
    ID_OPTION(CLI_NEEDED),
    TOKEN_OPTION(CLI_NEEDED),
    { "type", "TYPE", CLI_TEXT, CLI_NEEDED,
      .help = "a type of your own, not of the ledger's" },
    { "payload", "JSON", CLI_JSON, 0, .help = "what happened",
      .limit = HF_LIMIT_EVENT_BYTES },
    REASON_OPTION(0, "what happened, in words"),
    END_OPTIONS,
};

static const struct cli_example renew_examples[] = {
    { "one lease", "holdfast work renew --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    { "all of an owner", "holdfast work renew --owner w1" },
    END_EXAMPLES,
};
static const struct cli_example touch_examples[] = {
    { "say that it is alive",
      "holdfast work touch --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    END_EXAMPLES,
};
static const struct cli_example hand_back_examples[] = {
    { "give it to somebody else",
      "holdfast work hand-back --id $HF_WORK_ID --token $HF_LEASE_TOKEN --reason "
      "shutdown" },
    END_EXAMPLES,
};
static const struct cli_example wait_examples[] = {
    { "wait for an answer, a day at most; after an hour create a reminder",
      "holdfast work wait --id $HF_WORK_ID --token $HF_LEASE_TOKEN --kind user --ref "
      "chat-7 --timeout 24h --escalate-after 1h --escalate work:reminder" },
    END_EXAMPLES,
};
static const struct cli_example close_out_examples[] = {
    { "it worked", "holdfast work close-out --id $HF_WORK_ID --token $HF_LEASE_TOKEN "
                   "--status done --summary 'sent' --output mail:17" },
    { "somebody else's process ended",
      "holdfast work close-out --id 3f2a9c01 --authority ci --status failed --reason "
      "'exit 1'" },
    END_EXAMPLES,
};
static const struct cli_example fail_examples[] = {
    { "the network was down: the policy decides on a retry",
      "holdfast work fail --id $HF_WORK_ID --token $HF_LEASE_TOKEN --class "
      "transient_network" },
    END_EXAMPLES,
};
static const struct cli_example append_examples[] = {
    { "note a step in the trail",
      "holdfast work append-event --id $HF_WORK_ID --token $HF_LEASE_TOKEN --type step "
      "--payload '{\"n\":3}'" },
    END_EXAMPLES,
};
static const struct cli_example abandon_examples[] = {
    { "a worker that ends and cannot finish it",
      "holdfast work abandon --id $HF_WORK_ID --token $HF_LEASE_TOKEN --reason drain" },
    END_EXAMPLES,
};

/* ---- what an operator does ---------------------------------------------------------- */

static const struct cli_option resume_options[] = {
    ID_OPTION(0),
    { "ref", "R", CLI_TEXT, 0,
      .help = "the one that waits for this reference, instead of --id" },
    { "kind", "KIND", CLI_WORD, 0, .help = "with --ref: only one that waits for a KIND",
      .words = wait_words },
    { "payload", "JSON", CLI_JSON, 0, .help = "the answer; the next claimer gets it",
      .limit = HF_LIMIT_PAYLOAD_BYTES },
    OWNER_OPTION(0, "straight into running under a lease of this owner"),
    INCARNATION_OPTION,
    PID_OPTION,
    NONCE_OPTION,
    TTL_OPTION,
    END_OPTIONS,
};

static const struct cli_option reason_options[] = {
    ID_OPTION(CLI_NEEDED),
    REASON_OPTION(CLI_NEEDED, "why"),
    END_OPTIONS,
};

static const struct cli_option cancel_options[] = {
    ID_OPTION(CLI_NEEDED),
    REASON_OPTION(CLI_NEEDED, "why"),
    TOKEN_OPTION(0),
    END_OPTIONS,
};

static const struct cli_example resume_examples[] = {
    { "an answer came in",
      "holdfast work resume --ref chat-7 --payload '{\"text\":\"yes\"}'" },
    { "go on with it at once",
      "holdfast work resume 3f2a9c01 --owner w1 --pid $$ --shell" },
    END_EXAMPLES,
};
static const struct cli_example cancel_examples[] = {
    { "it is not wanted any more",
      "holdfast work cancel 3f2a9c01 --reason 'asked by ann'" },
    END_EXAMPLES,
};
static const struct cli_example requeue_examples[] = {
    { "run a finished unit again",
      "holdfast work requeue 3f2a9c01 --reason 'fixed the key'" },
    END_EXAMPLES,
};
static const char *const ended_words[] = { "failed", "timeout", "cancelled", "abandoned",
                                           NULL };
static const struct cli_option redrive_options[] = {
    REASON_OPTION(CLI_NEEDED, "why"),
    { "status", "STATUS", CLI_WORD, CLI_MANY,
      .help = "what ended so; several may be named (default: failed, timeout)",
      .words = ended_words },
    { "class", "CLASS", CLI_TEXT, 0, .help = "only what failed with this class" },
    { "kind", "K", CLI_TEXT, 0, .help = "only of this kind" },
    { "queue", "Q", CLI_TEXT, 0, .help = "only of this queue" },
    { "source", "SYSTEM", CLI_WORD, 0, .help = "only from there",
      .words = cli_source_words },
    { "older-than", "DURATION", CLI_DURATION, 0,
      .help = "only what has not changed for so long" },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: all)", .min = 1,
      .max = INT64_MAX },
    { "dry-run", NULL, CLI_FLAG, 0,
      .help = "say what would be requeued, and do nothing" },
    END_OPTIONS,
};
static const struct cli_example redrive_examples[] = {
    { "look first",
      "holdfast work redrive --kind fetch --reason 'the proxy is back' --dry-run" },
    { "then run again all fetches that failed",
      "holdfast work redrive --kind fetch --reason 'the proxy is back'" },
    END_EXAMPLES,
};
static const struct cli_example request_examples[] = {
    { "accept that nobody will ever know how it ended",
      "holdfast work request-abandon 3f2a9c01 --reason 'host was scrapped'" },
    END_EXAMPLES,
};

/* ---- reading and upkeep ------------------------------------------------------------- */

static const struct cli_option list_options[] = {
    { "status", "STATUS", CLI_WORD, CLI_MANY,
      .help = "rows in this status (default: all that are not finished)",
      .words = status_words },
    { "all", NULL, CLI_FLAG, 0, .help = "finished rows too" },
    { "source", "SYSTEM", CLI_WORD, 0, .help = "from this source",
      .words = cli_source_words },
    { "queue", "Q", CLI_TEXT, 0, .help = "in this queue" },
    { "kind", "K", CLI_TEXT, 0, .help = "of this kind" },
    OWNER_OPTION(0, "held by this owner"),
    { "ref", "R", CLI_TEXT, 0, .help = "waiting for this reference" },
    { "older-than", "DURATION", CLI_DURATION, 0, .help = "not changed for this long" },
    { "silent", NULL, CLI_FLAG, 0, .help = "running with a lapsed lease" },
    { "gate", "GATE", CLI_WORD, 0, .help = "queued behind this gate",
      .words = cli_gate_words },
    { "limit", "N", CLI_INT, 0, .help = "rows of a page (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", CLI_TEXT, 0, .help = "go on after an earlier page" },
    END_OPTIONS,
};

static const struct cli_option id_options[] = { ID_OPTION(CLI_NEEDED), END_OPTIONS };

static const struct cli_option events_options[] = {
    ID_OPTION(CLI_NEEDED),
    { "after", "EVENT", CLI_INT, 0, .help = "events after this one", .min = 0,
      .max = INT64_MAX },
    { "limit", "N", CLI_INT, 0, .help = "at most this many (default: 1000)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};

static const char *const stream_words[] = { "stdout", "stderr", NULL };
static const struct cli_option output_options[] = {
    ID_OPTION(CLI_NEEDED),
    { "stream", "STREAM", CLI_WORD, 0, .help = "the bytes of this one alone, as written",
      .words = stream_words },
    { "attempt", "N", CLI_INT, 0,
      .help = "of this attempt (default: the last that wrote anything)", .min = 1,
      .max = INT32_MAX },
    END_OPTIONS,
};

static const struct cli_option no_options[] = { END_OPTIONS };

static const struct cli_option sweep_options[] = {
    { "limit", "N", CLI_INT, 0,
      .help = "one sweep of at most this many rows (default: sweeps "
              "until there is nothing more to do)",
      .min = 1, .limit = HF_LIMIT_SWEEP },
    END_OPTIONS,
};

static const struct cli_option prune_options[] = {
    { "older-than", "DURATION", CLI_DURATION, CLI_NEEDED,
      .help = "finished at least this long ago" },
    { "limit", "N", CLI_INT, 0, .help = "at most this many rows (default: all)", .min = 1,
      .max = INT32_MAX },
    END_OPTIONS,
};

static const struct cli_option reconcile_options[] = {
    OWNER_OPTION(0, "whose pointer file it is (default: as the file says)"),
    { "incarnation", "I", CLI_TEXT, 0,
      .help =
          "the owner's present incarnation; what an older one holds is treated as left "
          "behind" },
    { "pointer", "FILE", CLI_PATH, 0, .help = "the pointer file to bring in line" },
    { "from", "FILE", CLI_PATH, 0,
      .help = "JSON lines of create requests, from a spool or a source's export" },
    END_OPTIONS,
};

static const struct cli_example list_examples[] = {
    { "what is open", "holdfast work list" },
    { "what failed, as ids for a loop",
      "holdfast work list --status failed --status timeout --field work_id" },
    { "who went silent", "holdfast work list --silent" },
    END_EXAMPLES,
};
static const struct cli_example show_examples[] = {
    { "by the end of its id, as lists print it", "holdfast work show 3f2a9c01d7e4" },
    END_EXAMPLES,
};
static const struct cli_example events_examples[] = {
    { "how it came to this", "holdfast work events 3f2a9c01d7e4" },
    END_EXAMPLES,
};
static const struct cli_example output_examples[] = {
    { "what the command wrote", "holdfast work output 3f2a9c01d7e4" },
    { "one stream, into a file",
      "holdfast work output 3f2a9c01d7e4 --stream stdout > out.txt" },
    END_EXAMPLES,
};
static const struct cli_example tail_examples[] = {
    { "watch what happens from now on", "holdfast work tail" },
    { "copy everything that is kept into a file, and go on from there later",
      "holdfast work tail --after start --no-follow --json >> events.jsonl" },
    END_EXAMPLES,
};
static const struct cli_example stats_examples[] = {
    { "counts and ages of what is open", "holdfast work stats" },
    END_EXAMPLES,
};
static const struct cli_example sweep_examples[] = {
    { "what a monitor does, once", "holdfast work sweep" },
    END_EXAMPLES,
};
static const struct cli_example prune_examples[] = {
    { "forget what ended a month ago", "holdfast work prune --older-than 30d" },
    END_EXAMPLES,
};
static const struct cli_example reconcile_examples[] = {
    { "when the agent \"main\" starts again",
      "holdfast work reconcile --owner main --incarnation boot-8 --pointer "
      "active-work.json" },
    { "what an adapter spooled while the ledger was away",
      "holdfast work reconcile --from ingress.spool" },
    END_EXAMPLES,
};

static const struct cli_option tail_options[] = {
    { "after", "CURSOR", CLI_TEXT, CLI_BARE,
      .help =
          "go on after this cursor; start: from the oldest that is kept (default: end)" },
    { "queue", "Q", CLI_TEXT, 0, .help = "only of this queue" },
    { "kind", "K", CLI_TEXT, 0, .help = "only of this kind" },
    { "type", "TYPE", CLI_TEXT, 0, .help = "only events of this type" },
    { "no-follow", NULL, CLI_FLAG, 0, .help = "end where the feed ends now" },
    END_OPTIONS,
};

/* ---- the commands ------------------------------------------------------------------- */

#define CHANGE (CLI_MUST_EXIST | CLI_ROW)
#define HOLDER_EXITS "3 4 5 6 8 9"
#define OPERATOR_EXITS "3 4 6 7 8 9"

const struct cli_command cli_work_commands[] = {
    { "work create", "create a unit of work",
      "Repeating a source triple or an idempotency key with the same content gives the "
      "unit that is there (\"created\" is false); with other content it is a conflict. A "
      "dedup key gives the unfinished unit that has it.",
      create_options, create_examples, CLI_ROW, "human", "6 7 8 9", cmd_work_create,
      check_create },
    { "work claim", "take work under a lease",
      "Prints each unit with its token, which every further step needs. Finding nothing "
      "is no failure.",
      claim_options, claim_examples, CLI_STORE | CLI_ROW, "worker", "3 4 6 8 9",
      cmd_work_claim, check_claim },
    { "work renew", "renew a lease, or all leases of an owner", NULL, renew_options,
      renew_examples, CHANGE, "worker", HOLDER_EXITS, cmd_work_renew, check_renew },
    { "work touch", "report activity, without renewing the lease", NULL, holder_options,
      touch_examples, CHANGE, "worker", HOLDER_EXITS, cmd_work_touch, NULL },
    { "work release", "the same as hand-back", NULL, hand_back_options,
      hand_back_examples, CHANGE, "worker", HOLDER_EXITS, cmd_work_hand_back, NULL },
    { "work hand-back", "give a unit back to its queue; costs no attempt", NULL,
      hand_back_options, hand_back_examples, CHANGE, "worker", HOLDER_EXITS,
      cmd_work_hand_back, NULL },
    { "work wait", "let a unit wait for somebody or something",
      "Gives the lease back. A resume ends the wait; its deadline ends the unit.",
      wait_options, wait_examples, CHANGE, "worker", HOLDER_EXITS, cmd_work_wait, NULL },
    { "work waiting", "the same as wait", NULL, wait_options, wait_examples, CHANGE,
      "worker", HOLDER_EXITS, cmd_work_wait, NULL },
    { "work resume", "end a wait, by id or by reference",
      "Into the queue; with --owner straight into running, and the token is printed.",
      resume_options, resume_examples, CHANGE, "human", OPERATOR_EXITS, cmd_work_resume,
      check_resume },
    { "work close-out", "say how a unit ended", NULL, close_out_options,
      close_out_examples, CHANGE, "worker", "3 4 5 6 7 8 9", cmd_work_close_out,
      check_close_out },
    { "work fail", "report a failure; the policy decides on a retry", NULL, fail_options,
      fail_examples, CHANGE, "worker", HOLDER_EXITS, cmd_work_fail, NULL },
    { "work abandon", "leave a started owner_bound unit, its outcome unknown", NULL,
      hand_back_options, abandon_examples, CHANGE, "worker", HOLDER_EXITS,
      cmd_work_abandon, NULL },
    { "work append-event", "add an event to a unit's trail",
      "It cannot forge a change of status.", append_options, append_examples, CHANGE,
      "worker", HOLDER_EXITS, cmd_work_append_event, NULL },
    { "work cancel", "end a unit that is not wanted any more",
      "A running owner_bound unit is only asked to end: its owner sees the request at "
      "its "
      "next renewal.",
      cancel_options, cancel_examples, CHANGE, "human", "3 4 5 6 7 8 9", cmd_work_cancel,
      NULL },
    { "work requeue", "run a finished unit again", NULL, reason_options, requeue_examples,
      CHANGE, "human", OPERATOR_EXITS, cmd_work_requeue, NULL },
    { "work redrive", "run again all finished units that match a filter",
      "Each is requeued by itself: one that cannot be is named and left.",
      redrive_options, redrive_examples, CLI_MUST_EXIST, "human", "6 8 9",
      cmd_work_redrive, NULL },
    { "work request-abandon", "accept that a unit's outcome stays unknown",
      "A recorded request. It takes effect only once the lease has lapsed.",
      reason_options, request_examples, CHANGE, "human", OPERATOR_EXITS,
      cmd_work_request_abandon, NULL },
    { "work list", "list units", NULL, list_options, list_examples, CLI_READS | CLI_ROWS,
      "human", "6 9", cmd_work_list, check_list },
    { "work show", "show all of one unit", NULL, id_options, show_examples,
      CLI_READS | CLI_ROW, "human", "3 6 9", cmd_work_show, NULL },
    { "work events", "show the trail of one unit, oldest first", NULL, events_options,
      events_examples, CLI_READS, "human", "3 6 9", cmd_work_events, NULL },
    { "work output", "show what the command of a unit wrote",
      "The beginning and the end of each stream are kept (`holdfast limits`), the middle "
      "is "
      "counted. With --json, bytes that are no UTF-8 are replaced.",
      output_options, output_examples, CLI_READS, "human", "3 6 9", cmd_work_output,
      NULL },
    { "work tail", "follow the events of all units",
      "Every event once, in one order, from any point on: a cursor names where to go on, "
      "also after a restart. With --json each event is a line with its cursor. What was "
      "pruned before it was read is said (gap), and so is a new history of the store. "
      "SIGINT and SIGTERM end it; the last line is the cursor to go on from.",
      tail_options, tail_examples, CLI_READS, "human", "6 9", cmd_work_tail, check_tail },
    { "work stats", "count what is not finished", NULL, no_options, stats_examples,
      CLI_READS, "human", "6 9", cmd_work_stats, NULL },
    { "work sweep", "end what lapsed, promote what is due",
      "Any number of processes may sweep at the same time.", sweep_options,
      sweep_examples, CLI_MUST_EXIST, NULL, "6 8 9", cmd_work_sweep, NULL },
    { "work prune", "delete finished units with their trails",
      "Those of all tenants, in small chunks, so that others can write in between.",
      prune_options, prune_examples, CLI_MUST_EXIST, NULL, "6 8 9", cmd_work_prune,
      check_prune },
    { "work reconcile", "bring the pointer file and what was spooled in line",
      "Sweeps, then compares the pointer. The ledger wins in every disagreement: the "
      "file "
      "is written, replaced or cleared, and one that cannot be read is renamed aside. "
      "With --from it first makes the units of a file: those that are there with the "
      "same "
      "content are found again, others are conflicts, and lines that are no requests are "
      "named. What is durable is then taken out of a spool; an export is never touched.",
      reconcile_options, reconcile_examples, CLI_STORE, NULL, "3 6 7 8 9",
      cmd_work_reconcile, check_reconcile },
    { .path = NULL },
};
