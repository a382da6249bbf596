/* The rows of `work`: operations on units of work. */
#include "op/overview.h"
#include "op/rows.h"
#include "op/work.h"

#include "op/shapes/ledger.h"

/* ---- examples ----------------------------------------------------------------------- */

static const struct op_example create_examples[] = {
    { "a message", "holdfast work create --source conversation --source-id msg-17 "
                   "--payload '{\"text\":\"hello\"}'" },
    { "a job that may run again after a crash; keep its id",
      "id=$(holdfast work create --source manual --source-id build-9 --disposition "
      "rerunnable --field work_id)" },
    { "the payload from another program, five minutes from now",
      "make-payload | holdfast work create --source manual --source-id n1 --delay 5m "
      "--payload -" },
    { "from an adapter that must not wait for the ledger",
      "holdfast work create --source conversation --source-id msg-18 --spool "
      "ingress.spool" },
    { .what = NULL },
};
static const struct op_example claim_examples[] = {
    { "claim one unit, and wait for one; the lease ends with this shell",
      "holdfast work claim --owner w1 --pid $$ --wait 30s" },
    { "in a script: claim one into shell variables",
      "out=$(holdfast work claim --owner w1 --pid $$ --wait 30s --shell) && eval "
      "\"$out\"" },
    { "claim ten units of two kinds",
      "holdfast work claim --owner w1 --kind mail --kind page "
      "--limit 10 --json" },
    { .what = NULL },
};
static const struct op_example renew_examples[] = {
    { "one lease", "holdfast work renew --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    { "all leases of an owner", "holdfast work renew --owner w1" },
    { .what = NULL },
};
static const struct op_example touch_examples[] = {
    { "report activity", "holdfast work touch --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    { .what = NULL },
};
static const struct op_example hand_back_examples[] = {
    { "return it to the queue",
      "holdfast work hand-back --id $HF_WORK_ID --token $HF_LEASE_TOKEN --reason "
      "shutdown" },
    { .what = NULL },
};
static const struct op_example wait_examples[] = {
    { "wait for an answer, a day at most; after an hour create a reminder",
      "holdfast work wait --id $HF_WORK_ID --token $HF_LEASE_TOKEN --kind user --ref "
      "chat-7 --timeout 24h --escalate-after 1h --escalate work:reminder" },
    { .what = NULL },
};
static const struct op_example close_out_examples[] = {
    { "it worked", "holdfast work close-out --id $HF_WORK_ID --token $HF_LEASE_TOKEN "
                   "--status done --summary 'sent' --output mail:17" },
    { "report the end of work that another system ran",
      "holdfast work close-out --id 3f2a9c01 --authority ci --status failed --reason "
      "'exit 1'" },
    { "end a unit that waits for a reviewer",
      "holdfast work close-out --id 3f2a9c01 --authority ann --status done --reviewer "
      "ann" },
    { .what = NULL },
};
static const struct op_example fail_examples[] = {
    { "the network was down: the policy decides on a retry",
      "holdfast work fail --id $HF_WORK_ID --token $HF_LEASE_TOKEN --class "
      "transient_network" },
    { .what = NULL },
};
static const struct op_example append_examples[] = {
    { "record a step in the trail",
      "holdfast work append-event --id $HF_WORK_ID --token $HF_LEASE_TOKEN --type step "
      "--payload '{\"n\":3}'" },
    { .what = NULL },
};
static const struct op_example abandon_examples[] = {
    { "end a worker that cannot finish it",
      "holdfast work abandon --id $HF_WORK_ID --token $HF_LEASE_TOKEN --reason drain" },
    { .what = NULL },
};
static const struct op_example resume_examples[] = {
    { "pass an answer on",
      "holdfast work resume --ref chat-7 --payload '{\"text\":\"yes\"}'" },
    { "continue with it at once",
      "holdfast work resume 3f2a9c01 --owner w1 --pid $$ --shell" },
    { .what = NULL },
};
static const struct op_example cancel_examples[] = {
    { "cancel a unit that is no longer needed",
      "holdfast work cancel 3f2a9c01 --reason 'asked by ann'" },
    { .what = NULL },
};
static const struct op_example requeue_examples[] = {
    { "run a finished unit again",
      "holdfast work requeue 3f2a9c01 --reason 'fixed the key'" },
    { .what = NULL },
};
static const struct op_example redrive_examples[] = {
    { "look first",
      "holdfast work redrive --kind fetch --reason 'the proxy is back' --dry-run" },
    { "run all failed fetches again",
      "holdfast work redrive --kind fetch --reason 'the proxy is back'" },
    { .what = NULL },
};
static const struct op_example request_examples[] = {
    { "abandon it: its outcome stays unknown",
      "holdfast work request-abandon 3f2a9c01 --reason 'host was scrapped'" },
    { .what = NULL },
};
static const struct op_example list_examples[] = {
    { "open units", "holdfast work list" },
    { "ids of failed units, for a loop",
      "holdfast work list --status failed --status timeout --field work_id" },
    { "the runs of one schedule", "holdfast work list --all --source-id nightly" },
    { "running units with a lapsed lease", "holdfast work list --silent" },
    { .what = NULL },
};
static const struct op_example show_examples[] = {
    { "by the end of its id, as lists print it", "holdfast work show 3f2a9c01d7e4" },
    { .what = NULL },
};
static const struct op_example events_examples[] = {
    { "its trail", "holdfast work events 3f2a9c01d7e4" },
    { .what = NULL },
};
static const struct op_example output_examples[] = {
    { "follow the output of the newest run of a name",
      "holdfast work output nightly --follow" },
    { "the output of a command", "holdfast work output 3f2a9c01d7e4" },
    { "one stream, into a file",
      "holdfast work output 3f2a9c01d7e4 --stream stdout > out.txt" },
    { .what = NULL },
};
static const struct op_example tail_examples[] = {
    { "watch what happens from now on", "holdfast work tail" },
    { "copy all kept events into a file; a later call continues after its last cursor",
      "holdfast work tail --after start --no-follow --json >> events.jsonl" },
    { .what = NULL },
};
static const struct op_example stats_examples[] = {
    { "counts and ages of open units", "holdfast work stats" },
    { .what = NULL },
};
static const struct op_example sweep_examples[] = {
    { "one sweep, as a monitor does it", "holdfast work sweep" },
    { .what = NULL },
};
static const struct op_example ages_examples[] = {
    { "ages of open units", "holdfast work ages" },
    { .what = NULL },
};

static const struct op_example prune_examples[] = {
    { "delete units that ended more than a month ago",
      "holdfast work prune --older-than 30d" },
    { .what = NULL },
};
static const struct op_example reconcile_examples[] = {
    { "when the agent \"main\" starts again",
      "holdfast work reconcile --owner main --incarnation boot-8 --pointer "
      "active-work.json" },
    { "store the requests that an adapter spooled",
      "holdfast work reconcile --from ingress.spool" },
    { .what = NULL },
};

/* ---- inputs of local operations ----------------------------------------------------- */

static const struct hf_input reconcile_inputs[] = {
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "owner of the pointer file (default: the owner that the file names)" },
    { "incarnation", "I", HF_IN_TEXT, 0,
      .help = "present incarnation of the owner; units of an older one count as left "
              "behind" },
    { "pointer", "FILE", HF_IN_PATH, HF_IN_LOCAL,
      .help = "pointer file to bring in line with the ledger" },
    { "from", "FILE", HF_IN_PATH, HF_IN_LOCAL,
      .help = "create requests as JSON lines, from a spool or the export of a source" },
    { .name = NULL },
};

static const struct hf_input tail_inputs[] = {
    { "after", "CURSOR", HF_IN_TEXT, HF_IN_BARE,
      .help = "continue after this cursor; start: from the oldest kept event (default: "
              "end)" },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "only events of units of this queue" },
    { "kind", "K", HF_IN_TEXT, 0, .help = "only events of units of this kind" },
    { "type", "TYPE", HF_IN_TEXT, 0, .help = "only events of this type" },
    { "no_follow", NULL, HF_IN_FLAG, 0, .help = "end at the present end of the feed" },
    { .name = NULL },
};

/* ---- the rows ----------------------------------------------------------------------- */

/* clang-format off */
static const struct op_advice resume_advice[] = {
    { HF_EAMBIGUOUS, "ref", "name one of them with --id; `holdfast work list --ref` "
                            "shows them" },
    { 0, NULL, NULL },
};

const struct op op_work_rows[] = {
    { "work.create", "create a unit of work",
      "Repeating a source triple or an idempotency key with the same content returns "
      "the existing unit (\"created\" is false); with other content it is a conflict. "
      "A dedup key returns the unfinished unit that has it.",
      hf_work_spec_inputs, hf_spool_inputs,
      BLANK(hf_create_request, .work = { .size = sizeof(struct hf_work_spec), .priority = -1 }),
      create_examples, UNIT, .facts = &hf_created_shape, .errors = op_create_errors,
      .role = OP_WORKER, .route = "POST /v1/work", .actor_kind = "human",
      .flags = OP_STORE | OP_SHELL | OP_CREATES | OP_REPEATABLE,
      .check = op_check_create, .run = op_run_create },
    { "work.claim", "claim units under a lease",
      "Prints each unit with its token, which every later command on it needs. Exits "
      "with 0 also if there is nothing to claim.",
      hf_claim_inputs, NULL, BLANK(hf_claim, .size = sizeof(struct hf_claim), .limit = 1),
      claim_examples, UNITS, .errors = op_claim_errors, .role = OP_WORKER,
      .route = "POST /v1/work/claim", .actor_kind = "worker",
      .flags = OP_STORE | OP_SHELL | OP_PAGED | OP_WAITS, .run = op_run_claim },
    { "work.renew", "renew a lease, or all leases of an owner", NULL, hf_renew_inputs, NULL,
      BLANK(hf_renew_request,
            .change = { .size = sizeof(struct hf_change), .verb = HF_VERB_RENEW }),
      renew_examples, UNIT, HOLDER, .route = "POST /v1/work/renew", .did = "renewed",
      .check = op_check_renew, .run = op_run_renew },
    { "work.touch", "report activity, without renewing the lease", NULL, hf_holder_inputs,
      NULL, VERB(TOUCH), touch_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/touch", .did = "touched", .run = op_run_change },
    { "work.release", "the same as hand-back", NULL, hf_hand_back_inputs, NULL,
      VERB(HAND_BACK), hand_back_examples, UNIT, .role = OP_WORKER,
      .errors = op_holder_errors, .actor_kind = "worker",
      .flags = OP_MUST_EXIST | OP_SHELL | OP_ALIAS, .did = "handed back",
      .run = op_run_change },
    { "work.hand_back", "return a unit to its queue, without counting an attempt", NULL,
      hf_hand_back_inputs, NULL, VERB(HAND_BACK), hand_back_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/hand-back", .did = "handed back",
      .run = op_run_change },
    { "work.wait", "let a unit wait for an answer or an event",
      "Releases the lease. A resume ends the wait; at its deadline the unit ends.",
      hf_wait_inputs, NULL, VERB(WAIT), wait_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/wait", .did = "waiting:", .run = op_run_change },
    { "work.waiting", "the same as wait", NULL, hf_wait_inputs, NULL, VERB(WAIT),
      wait_examples, UNIT, .role = OP_WORKER, .errors = op_holder_errors,
      .actor_kind = "worker", .flags = OP_MUST_EXIST | OP_SHELL | OP_ALIAS,
      .did = "waiting:", .run = op_run_change },
    { "work.resume", "end a wait, by id or by reference",
      "The unit goes back to its queue. With --owner it is claimed at once, and the "
      "token is printed.",
      hf_resume_inputs, NULL, VERB(RESUME), resume_examples, UNIT, OPERATOR,
      .route = "POST /v1/work/resume", .did = "resumed", .advice = resume_advice,
      .check = op_check_resume, .run = op_run_resume },
    { "work.close_out", "close a unit out with its outcome", NULL, hf_close_out_inputs, NULL,
      VERB(CLOSE_OUT), close_out_examples, UNIT, .role = OP_WORKER,
      .errors = op_settle_errors, .actor_kind = "worker",
      .flags = OP_MUST_EXIST | OP_SHELL, .route = "POST /v1/work/{work_id}/close-out",
      .did = "closed", .check = op_check_close_out, .run = op_run_change },
    { "work.fail", "report a failure; the policy decides on a retry", NULL,
      hf_fail_inputs, NULL, VERB(FAIL), fail_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/fail", .did = "failure of",
      .run = op_run_change },
    { "work.abandon", "abandon a started owner_bound unit", NULL,
      hf_hand_back_inputs, NULL, VERB(ABANDON), abandon_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/abandon", .did = "abandoned",
      .run = op_run_change },
    { "work.append_event", "add an event to a unit's trail",
      "An event never changes the status.", hf_append_inputs, NULL, VERB(APPEND),
      append_examples, UNIT, HOLDER, .route = "POST /v1/work/{work_id}/events",
      .did = "noted in", .run = op_run_change },
    { "work.cancel", "cancel a unit",
      "For a running owner_bound unit only a request is recorded: its owner sees it "
      "at its next renewal.",
      hf_cancel_inputs, NULL, VERB(CANCEL), cancel_examples, UNIT, .role = OP_OPERATOR,
      .errors = op_settle_errors, .actor_kind = "human",
      .flags = OP_MUST_EXIST | OP_SHELL | OP_REPEATABLE,
      .route = "POST /v1/work/{work_id}/cancel", .did = "cancel of",
      .run = op_run_change },
    { "work.requeue", "run a finished unit again", NULL, hf_requeue_inputs, NULL,
      VERB(REQUEUE), requeue_examples, UNIT, OPERATOR,
      .route = "POST /v1/work/{work_id}/requeue", .did = "requeued",
      .run = op_run_change },
    { "work.redrive", "run again all finished units that match a filter",
      "Each unit is requeued in a transaction of its own; a unit that cannot be "
      "requeued is reported and not changed.",
      hf_redrive_inputs, NULL,
      BLANK(hf_redrive_request, .filter = { .size = sizeof(struct hf_filter) },
            .most = INT64_MAX),
      redrive_examples, .facts = &hf_redrive_shape, .errors = op_write_errors,
      .role = OP_OPERATOR, .route = "POST /v1/work/redrive", .flags = OP_MUST_EXIST,
      .actor_kind = "human", .run = op_run_redrive },
    { "work.request_abandon", "request that a unit is abandoned",
      "Records a request, which takes effect when the lease has lapsed.",
      hf_reason_inputs, NULL, VERB(REQUEST_ABANDON), request_examples, UNIT, OPERATOR,
      .route = "POST /v1/work/{work_id}/request-abandon", .did = "request recorded for",
      .run = op_run_change },
    { "work.list", "list units", NULL, hf_list_inputs, NULL,
      BLANK(hf_list_request, .filter = { .size = sizeof(struct hf_filter) }),
      list_examples, UNITS, .errors = op_read_errors, READER(OP_FIELD | OP_PAGED),
      .route = "GET /v1/work", .run = op_run_list },
    { "work.show", "show one unit", NULL, hf_id_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), show_examples, UNIT, .errors = op_get_errors,
      READER(OP_SHELL), .route = "GET /v1/work/{work_id}", .run = op_run_show },
    { "work.events", "show the trail of one unit, oldest first", NULL, hf_events_inputs,
      NULL, BLANK(hf_read_request, .id = NULL), events_examples, .answer = OP_LIST,
      .shape = &hf_event_shape, .errors = op_get_errors, READER(OP_PAGED),
      .route = "GET /v1/work/{work_id}/events", .run = op_run_events },
    { "work.output", "show the output of a unit's command",
      "The beginning and the end of each stream are kept (`holdfast bounds`); bytes "
      "in the middle are only counted. With --json, bytes that are not UTF-8 are "
      "replaced.",
      hf_output_inputs, NULL, BLANK(hf_read_request, .id = NULL), output_examples,
      .answer = OP_ROW, .shape = &hf_output_shape, .errors = op_get_errors, READER(0),
      .route = "GET /v1/work/{work_id}/output", .run = op_run_output },
    { "work.tail", "follow the events of all units",
      "Prints every event once, in one order. A cursor names the point to continue "
      "from, also after a restart. With --json each event is one line with its "
      "cursor. Lines report events that were pruned before they were read (gap), and "
      "a new incarnation of the store. SIGINT and SIGTERM end the command; the last "
      "line is the cursor to continue from.",
      tail_inputs, .examples = tail_examples, .errors = op_read_errors,
      .flags = OP_READS, .actor_kind = "human" },
    { "work.stats", "count open units", NULL, op_no_inputs, NULL,
      .examples = stats_examples, .shape = &hf_stats_shape, .errors = op_read_errors,
      READER(0), .route = "GET /v1/stats", .run = op_run_stats },
    { "work.sweep", "act on lapsed leases, deadlines and due times",
      "Any number of processes may sweep at the same time.", hf_sweep_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), sweep_examples, .shape = &hf_sweep_shape,
      .errors = op_write_errors, .role = OP_OPERATOR, .route = "POST /v1/work/sweep",
      .flags = OP_MUST_EXIST, .run = op_run_sweep },
    { "work.ages", "count open units by status and age",
      "Leases of units, and of sessions whose turn is open, are also counted by the time "
      "left of their term. Finished units are not counted.",
      op_no_inputs, NULL, .examples = ages_examples, .answer = OP_LIST, .shape = &hf_age_shape,
      .facts = &hf_lease_parts_shape, .errors = op_read_errors, READER(0),
      .route = "GET /v1/work/ages", .run = op_run_ages },
    { "work.prune", "delete finished units with their trails",
      "Deletes units of all tenants, in small chunks, so that other programs can "
      "write in between.",
      hf_prune_inputs, NULL, BLANK(hf_prune_request, .limit = 0), prune_examples,
      .facts = &hf_pruned_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "POST /v1/work/prune", .flags = OP_MUST_EXIST | OP_DESTROYS,
      .check = op_check_prune, .run = op_run_prune },
    { "work.reconcile", "bring the pointer file and spooled requests in line",
      "Sweeps, then compares the pointer file with the ledger. The ledger wins in "
      "every disagreement: the file is written, replaced or cleared, and an "
      "unreadable file is renamed. With --from it first creates the units of the "
      "requests in a file: a request whose unit exists with the same content returns "
      "it, one with other content is a conflict, and lines that are not requests are "
      "reported. Stored requests are then removed from a spool; an export is never "
      "changed.",
      reconcile_inputs, .examples = reconcile_examples, .exits = "3 6 7 8 9",
      .flags = OP_STORE },
    { .name = NULL },
};
/* clang-format on */
