/* The operations on `job` and `limit` as rows of the table (struct op): their names, inputs,
 * answers, errors, help and examples, and the functions that run them. */
#include "op/overview.h"
#include "op/rows.h"
#include "op/shapes/ledger.h"
#include "op/store.h"
#include "op/work.h"

static const struct op_example enqueue_examples[] = {
    { "run it as soon as a worker is free",
      "holdfast job enqueue mail --payload '{\"to\":\"ann\"}'" },
    { "once, five seconds after the last change",
      "holdfast job enqueue index --dedup-key customer-7 --debounce 5s" },
    { "tenants take turns",
      "holdfast job enqueue render --fair-key acme --limit-key acme" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "jobs that are held for an operator", "holdfast job list --gate held" },
    { "mails that wait or run", "holdfast job list --kind mail" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "by the end of its id", "holdfast job show 3f2a9c01" },
    { .what = NULL },
};

static const struct op_example cancel_examples[] = {
    { "end a job that is no longer needed",
      "holdfast job cancel 3f2a9c01 --reason 'sent by hand'" },
    { .what = NULL },
};
static const struct op_example release_examples[] = {
    { "run it again after the code was fixed",
      "holdfast job release 3f2a9c01 --reason 'fixed in 1.4.2'" },
    { .what = NULL },
};

static const struct op_example now_examples[] = {
    { "start it without waiting for the retry", "holdfast job run-now 3f2a9c01" },
    { .what = NULL },
};

/* clang-format off */
const struct op op_job_rows[] = {
    { "job.enqueue", "enqueue a job",
      "A job is a unit of work that a worker runs with the code registered for its "
      "kind; it may run again after a crash. With --debounce, an unstarted job with "
      "the same --dedup-key is postponed, and no second job is created.",
      hf_job_inputs, NULL,
      BLANK(hf_job_spec, .size = sizeof(struct hf_job_spec), .priority = -1),
      enqueue_examples, UNIT, .facts = &hf_created_shape, .errors = op_create_errors,
      .role = OP_WORKER, .route = "POST /v1/jobs", .actor_kind = "human",
      .flags = OP_STORE | OP_SHELL | OP_CREATES | OP_REPEATABLE,
      .check = op_check_enqueue, .run = op_run_enqueue },
    { "job.list", "list jobs", NULL, hf_job_list_inputs, NULL,
      BLANK(hf_list_request, .filter = { .size = sizeof(struct hf_filter) }),
      list_examples, UNITS, .errors = op_read_errors, READER(OP_FIELD | OP_PAGED),
      .route = "GET /v1/jobs", .run = op_run_list },
    { "job.show", "show one job", NULL, hf_job_id_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), show_examples, UNIT, .errors = op_get_errors,
      READER(OP_SHELL), .route = "GET /v1/jobs/{work_id}", .run = op_run_show },
    { "job.cancel", "cancel a job",
      "A running job sees it at its next renewal. Its later close-out is refused.",
      hf_job_reason_inputs, NULL, VERB(CANCEL), cancel_examples, UNIT, OPERATOR,
      .route = "POST /v1/jobs/{work_id}/cancel", .did = "cancelled",
      .run = op_run_change },
    { "job.run_now", "start a job now that waits for its time or its retry", NULL,
      hf_job_now_inputs, NULL, VERB(RESCHEDULE), now_examples, UNIT, OPERATOR,
      .route = "POST /v1/jobs/{work_id}/run-now", .did = "due now",
      .run = op_run_change },
    { "job.release", "release a held job, so that it can run again",
      "A job that lost its worker five times in a row within an hour is held, because "
      "it may be the cause of the crashes. So is an input of a session: its turn "
      "continues from its last step if the session has begun no other turn since, and begins "
      "anew otherwise. --anew permits this even if the turn has called a tool that is "
      "not safe to call again.",
      hf_job_release_inputs, NULL, VERB(RELEASE), release_examples, UNIT, OPERATOR,
      .route = "POST /v1/jobs/{work_id}/release", .did = "released",
      .run = op_run_change },
    { .name = NULL },
};
/* clang-format on */

static const struct op_example set_examples[] = {
    { "two at a time for acme", "holdfast limit set key:acme --max 2" },
    { "ten calls a minute", "holdfast limit set rate:openai --rate 10 --per 1m" },
    { "at most 50 mails at once", "holdfast limit set kind:mail --max 50" },
    { .what = NULL },
};

static const struct op_example limits_examples[] = {
    { "limits and the units that wait for them", "holdfast limit list" },
    { .what = NULL },
};

/* clang-format off */
static const struct op_example queue_examples[] = {
    { "open units of each queue", "holdfast queue list" },
    { .what = NULL },
};
static const struct op_example holder_examples[] = {
    { "owners and the units that they hold", "holdfast holder list" },
    { "the processes of one name", "holdfast holder list worker-7" },
    { .what = NULL },
};

const struct op op_queue_rows[] = {
    { "queue.list", "count open units per queue",
      "For each queue: units that can be claimed, units behind each gate, running, "
      "waiting, retried and silent units, the age of the oldest claimable unit, and "
      "the time at which the next falls due. Finished units are not counted.",
      op_no_inputs, NULL, .examples = queue_examples, .answer = OP_LIST, .shape = &hf_queue_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/queues", .run = op_run_queues },
    { .name = NULL },
};

const struct op op_holder_rows[] = {
    { "holder.list", "list the owners that hold work",
      "One row per owner and incarnation. A twin is an incarnation that holds work at "
      "the same time as another one with the same owner name; each worker needs its "
      "own name.",
      hf_holder_list_inputs, NULL, BLANK(hf_filter, .size = sizeof(struct hf_filter)),
      .examples = holder_examples, .answer = OP_LIST, .shape = &hf_holder_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/holders", .run = op_run_holders },
    { .name = NULL },
};

const struct op op_limit_rows[] = {
    { "limit.set", "set how many units of a name may run or start",
      "A limit on a key or rate applies at once. A limit on a kind applies to units "
      "without a key or lane that are created later.",
      hf_limit_inputs, NULL,
      BLANK(hf_limit_request, .limit = { .size = sizeof(struct hf_limit) }), set_examples,
      .facts = &hf_name_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "PUT /v1/limits/{name}", .flags = OP_STORE, .actor_kind = "human",
      .check = op_check_limit, .run = op_run_limit },
    { "limit.list", "show limits and their use", NULL, op_no_inputs, NULL,
      .examples = limits_examples, .answer = OP_LIST, .shape = &hf_limit_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/limits",
      .run = op_run_limit_list },
    { .name = NULL },
};
/* clang-format on */
