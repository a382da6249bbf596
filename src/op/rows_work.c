/* The rows of `work`: what can be asked of units of work. */
#include "op/overview.h"
#include "op/rows.h"
#include "op/work.h"

#include "core/ledger/reports.h"

/* ---- examples ----------------------------------------------------------------------- */

static const struct op_example create_examples[] = {
    { "a message that must be answered",
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
    { .what = NULL },
};
static const struct op_example claim_examples[] = {
    { "take one unit, waiting for it; the lease ends with this shell",
      "holdfast work claim --owner w1 --pid $$ --wait 30s" },
    { "in a script: take one into variables",
      "out=$(holdfast work claim --owner w1 --pid $$ --wait 30s --shell) && eval "
      "\"$out\"" },
    { "take ten of two kinds", "holdfast work claim --owner w1 --kind mail --kind page "
                               "--limit 10 --json" },
    { .what = NULL },
};
static const struct op_example renew_examples[] = {
    { "one lease", "holdfast work renew --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    { "all of an owner", "holdfast work renew --owner w1" },
    { .what = NULL },
};
static const struct op_example touch_examples[] = {
    { "say that it is alive",
      "holdfast work touch --id $HF_WORK_ID --token $HF_LEASE_TOKEN" },
    { .what = NULL },
};
static const struct op_example hand_back_examples[] = {
    { "give it to another owner",
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
    { "another system's process ended",
      "holdfast work close-out --id 3f2a9c01 --authority ci --status failed --reason "
      "'exit 1'" },
    { .what = NULL },
};
static const struct op_example fail_examples[] = {
    { "the network was down: the policy decides on a retry",
      "holdfast work fail --id $HF_WORK_ID --token $HF_LEASE_TOKEN --class "
      "transient_network" },
    { .what = NULL },
};
static const struct op_example append_examples[] = {
    { "note a step in the trail",
      "holdfast work append-event --id $HF_WORK_ID --token $HF_LEASE_TOKEN --type step "
      "--payload '{\"n\":3}'" },
    { .what = NULL },
};
static const struct op_example abandon_examples[] = {
    { "a worker that ends and cannot finish it",
      "holdfast work abandon --id $HF_WORK_ID --token $HF_LEASE_TOKEN --reason drain" },
    { .what = NULL },
};
static const struct op_example resume_examples[] = {
    { "an answer came in",
      "holdfast work resume --ref chat-7 --payload '{\"text\":\"yes\"}'" },
    { "go on with it at once",
      "holdfast work resume 3f2a9c01 --owner w1 --pid $$ --shell" },
    { .what = NULL },
};
static const struct op_example cancel_examples[] = {
    { "it is not wanted any more",
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
    { "then run again all fetches that failed",
      "holdfast work redrive --kind fetch --reason 'the proxy is back'" },
    { .what = NULL },
};
static const struct op_example request_examples[] = {
    { "accept that its end will never be known",
      "holdfast work request-abandon 3f2a9c01 --reason 'host was scrapped'" },
    { .what = NULL },
};
static const struct op_example list_examples[] = {
    { "what is open", "holdfast work list" },
    { "what failed, as ids for a loop",
      "holdfast work list --status failed --status timeout --field work_id" },
    { "the runs of one schedule", "holdfast work list --all --source-id nightly" },
    { "who went silent", "holdfast work list --silent" },
    { .what = NULL },
};
static const struct op_example show_examples[] = {
    { "by the end of its id, as lists print it", "holdfast work show 3f2a9c01d7e4" },
    { .what = NULL },
};
static const struct op_example events_examples[] = {
    { "how it came to this", "holdfast work events 3f2a9c01d7e4" },
    { .what = NULL },
};
static const struct op_example output_examples[] = {
    { "what the newest run of a name prints, while it runs",
      "holdfast work output nightly --follow" },
    { "what the command wrote", "holdfast work output 3f2a9c01d7e4" },
    { "one stream, into a file",
      "holdfast work output 3f2a9c01d7e4 --stream stdout > out.txt" },
    { .what = NULL },
};
static const struct op_example tail_examples[] = {
    { "watch what happens from now on", "holdfast work tail" },
    { "copy everything that is kept into a file, and go on from there later",
      "holdfast work tail --after start --no-follow --json >> events.jsonl" },
    { .what = NULL },
};
static const struct op_example stats_examples[] = {
    { "counts and ages of what is open", "holdfast work stats" },
    { .what = NULL },
};
static const struct op_example sweep_examples[] = {
    { "what a monitor does, once", "holdfast work sweep" },
    { .what = NULL },
};
static const struct op_example ages_examples[] = {
    { "what is getting old", "holdfast work ages" },
    { .what = NULL },
};

static const struct op_example prune_examples[] = {
    { "forget what ended a month ago", "holdfast work prune --older-than 30d" },
    { .what = NULL },
};
static const struct op_example reconcile_examples[] = {
    { "when the agent \"main\" starts again",
      "holdfast work reconcile --owner main --incarnation boot-8 --pointer "
      "active-work.json" },
    { "what an adapter spooled while the ledger was away",
      "holdfast work reconcile --from ingress.spool" },
    { .what = NULL },
};

/* ---- inputs of local operations ----------------------------------------------------- */

static const struct hf_input reconcile_inputs[] = {
    { "owner", "O", HF_IN_TEXT, 0,
      .help = "whose pointer file it is (default: as the file says)" },
    { "incarnation", "I", HF_IN_TEXT, 0,
      .help =
          "the owner's present incarnation; what an older one holds is treated as left "
          "behind" },
    { "pointer", "FILE", HF_IN_PATH, HF_IN_LOCAL,
      .help = "the pointer file to bring in line" },
    { "from", "FILE", HF_IN_PATH, HF_IN_LOCAL,
      .help = "JSON lines of create requests, from a spool or a source's export" },
    { .name = NULL },
};

static const struct hf_input tail_inputs[] = {
    { "after", "CURSOR", HF_IN_TEXT, HF_IN_BARE,
      .help =
          "go on after this cursor; start: from the oldest that is kept (default: end)" },
    { "queue", "Q", HF_IN_TEXT, 0, .help = "only of this queue" },
    { "kind", "K", HF_IN_TEXT, 0, .help = "only of this kind" },
    { "type", "TYPE", HF_IN_TEXT, 0, .help = "only events of this type" },
    { "no_follow", NULL, HF_IN_FLAG, 0, .help = "end where the feed ends now" },
    { .name = NULL },
};

/* ---- the rows ----------------------------------------------------------------------- */

/* clang-format off */
static const struct op_advice resume_advice[] = {
    { HF_EAMBIGUOUS, "ref", "name one of them with --id; `holdfast work list --ref` shows them" },
    { 0, NULL, NULL },
};

const struct op op_work_rows[] = {
    { "work.create", "create a unit of work",
      "Repeating a source triple or an idempotency key with the same content gives the "
      "unit that is there (\"created\" is false); with other content it is a conflict. A "
      "dedup key gives the unfinished unit that has it.",
      hf_new_inputs, hf_spool_inputs,
      BLANK(hf_create_request, .work = { .size = sizeof(struct hf_new), .priority = -1 }),
      create_examples, UNIT, .facts = &hf_created_shape, .errors = op_create_errors,
      .role = OP_WORKER, .route = "POST /v1/work", .actor_kind = "human",
      .flags = OP_STORE | OP_SHELL | OP_CREATES | OP_REPEATABLE,
      .check = op_check_create, .run = op_run_create },
    { "work.claim", "take work under a lease",
      "Prints each unit with its token, which every further step needs. Finding nothing "
      "is no failure.",
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
    { "work.hand_back", "give a unit back to its queue; costs no attempt", NULL,
      hf_hand_back_inputs, NULL, VERB(HAND_BACK), hand_back_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/hand-back", .did = "handed back",
      .run = op_run_change },
    { "work.wait", "let a unit wait for an answer or an event",
      "Gives the lease back. A resume ends the wait; its deadline ends the unit.",
      hf_wait_inputs, NULL, VERB(WAIT), wait_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/wait", .did = "waiting:", .run = op_run_change },
    { "work.waiting", "the same as wait", NULL, hf_wait_inputs, NULL, VERB(WAIT),
      wait_examples, UNIT, .role = OP_WORKER, .errors = op_holder_errors,
      .actor_kind = "worker", .flags = OP_MUST_EXIST | OP_SHELL | OP_ALIAS,
      .did = "waiting:", .run = op_run_change },
    { "work.resume", "end a wait, by id or by reference",
      "Into the queue; with --owner straight into running, and the token is printed.",
      hf_resume_inputs, NULL, VERB(RESUME), resume_examples, UNIT, OPERATOR,
      .route = "POST /v1/work/resume", .did = "resumed", .advice = resume_advice,
      .check = op_check_resume, .run = op_run_change },
    { "work.close_out", "say how a unit ended", NULL, hf_close_out_inputs, NULL,
      VERB(CLOSE_OUT), close_out_examples, UNIT, .role = OP_WORKER,
      .errors = op_settle_errors, .actor_kind = "worker",
      .flags = OP_MUST_EXIST | OP_SHELL, .route = "POST /v1/work/{work_id}/close-out",
      .did = "closed", .check = op_check_close_out, .run = op_run_change },
    { "work.fail", "report a failure; the policy decides on a retry", NULL,
      hf_fail_inputs, NULL, VERB(FAIL), fail_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/fail", .did = "failure of",
      .run = op_run_change },
    { "work.abandon", "leave a started owner_bound unit, its outcome unknown", NULL,
      hf_hand_back_inputs, NULL, VERB(ABANDON), abandon_examples, UNIT, HOLDER,
      .route = "POST /v1/work/{work_id}/abandon", .did = "abandoned",
      .run = op_run_change },
    { "work.append_event", "add an event to a unit's trail",
      "It cannot forge a change of status.", hf_append_inputs, NULL, VERB(APPEND),
      append_examples, UNIT, HOLDER, .route = "POST /v1/work/{work_id}/events",
      .did = "noted in", .run = op_run_change },
    { "work.cancel", "end a unit that is not wanted any more",
      "A running owner_bound unit is only asked to end: its owner sees the request at its "
      "next renewal.",
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
      "Each is requeued by itself: one that cannot be is named and left.",
      hf_redrive_inputs, NULL,
      BLANK(hf_redrive_request, .filter = { .size = sizeof(struct hf_filter) },
            .most = INT64_MAX),
      redrive_examples, .facts = &hf_redrive_shape, .errors = op_write_errors,
      .role = OP_OPERATOR, .route = "POST /v1/work/redrive", .flags = OP_MUST_EXIST,
      .actor_kind = "human", .run = op_run_redrive },
    { "work.request_abandon", "accept that a unit's outcome stays unknown",
      "A recorded request. It takes effect only once the lease has lapsed.",
      hf_reason_inputs, NULL, VERB(REQUEST_ABANDON), request_examples, UNIT, OPERATOR,
      .route = "POST /v1/work/{work_id}/request-abandon", .did = "request recorded for",
      .run = op_run_change },
    { "work.list", "list units", NULL, hf_list_inputs, NULL,
      BLANK(hf_list_request, .filter = { .size = sizeof(struct hf_filter) }),
      list_examples, UNITS, .errors = op_read_errors, READER(OP_FIELD | OP_PAGED),
      .route = "GET /v1/work", .run = op_run_list },
    { "work.show", "show all of one unit", NULL, hf_id_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), show_examples, UNIT, .errors = op_get_errors,
      READER(OP_SHELL), .route = "GET /v1/work/{work_id}", .run = op_run_show },
    { "work.events", "show the trail of one unit, oldest first", NULL, hf_events_inputs,
      NULL, BLANK(hf_read_request, .id = NULL), events_examples, .answer = OP_LIST,
      .shape = &hf_event_shape, .errors = op_get_errors, READER(OP_PAGED),
      .route = "GET /v1/work/{work_id}/events", .run = op_run_events },
    { "work.output", "show what the command of a unit wrote",
      "The beginning and the end of each stream are kept (`holdfast limits`), the middle "
      "is "
      "counted. With --json, bytes that are no UTF-8 are replaced.",
      hf_output_inputs, NULL, BLANK(hf_read_request, .id = NULL), output_examples,
      .answer = OP_ROW, .shape = &hf_output_shape, .errors = op_get_errors, READER(0),
      .route = "GET /v1/work/{work_id}/output", .run = op_run_output },
    { "work.tail", "follow the events of all units",
      "Every event once, in one order, from any point on: a cursor names where to go on, "
      "also after a restart. With --json each event is a line with its cursor. What was "
      "pruned before it was read is said (gap), and so is a new history of the store. "
      "SIGINT and SIGTERM end it; the last line is the cursor to go on from.",
      tail_inputs, .examples = tail_examples, .errors = op_read_errors,
      .flags = OP_READS, .actor_kind = "human" },
    { "work.stats", "count what is not finished", NULL, op_no_inputs, NULL,
      .examples = stats_examples, .shape = &hf_stats_shape, .errors = op_read_errors,
      READER(0), .route = "GET /v1/stats", .run = op_run_stats },
    { "work.sweep", "end what lapsed, promote what is due",
      "Any number of processes may sweep at the same time.", hf_sweep_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), sweep_examples, .shape = &hf_sweep_shape,
      .errors = op_write_errors, .role = OP_OPERATOR, .route = "POST /v1/work/sweep",
      .flags = OP_MUST_EXIST, .run = op_run_sweep },
    { "work.ages", "count open units by status and age",
      "And leases by what is left of their term. Finished units are not counted.",
      op_no_inputs, NULL, .examples = ages_examples, .answer = OP_LIST, .shape = &hf_age_shape,
      .facts = &hf_lease_parts_shape, .errors = op_read_errors, READER(0),
      .route = "GET /v1/work/ages", .run = op_run_ages },
    { "work.prune", "delete finished units with their trails",
      "Those of all tenants, in small chunks, so that others can write in between.",
      hf_prune_inputs, NULL, BLANK(hf_prune_request, .limit = 0), prune_examples,
      .facts = &hf_pruned_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "POST /v1/work/prune", .flags = OP_MUST_EXIST | OP_DESTROYS,
      .check = op_check_prune, .run = op_run_prune },
    { "work.reconcile", "bring the pointer file and what was spooled in line",
      "Sweeps, then compares the pointer. The ledger wins in every disagreement: the "
      "file "
      "is written, replaced or cleared, and one that cannot be read is renamed aside. "
      "With --from it first makes the units of a file: those that are there with the "
      "same "
      "content are found again, others are conflicts, and lines that are no requests are "
      "named. What is durable is then taken out of a spool; an export is never touched.",
      reconcile_inputs, .examples = reconcile_examples, .exits = "3 6 7 8 9",
      .flags = OP_STORE },
    { .name = NULL },
};
/* clang-format on */
