/* The rows of `job` and `limit`. */
#include "core/ledger/reports.h"
#include "op/overview.h"
#include "op/rows.h"
#include "op/store.h"
#include "op/work.h"

static const struct op_example enqueue_examples[] = {
    { "run it as soon as a worker is free",
      "holdfast job enqueue mail --payload '{\"to\":\"ann\"}'" },
    { "once, five seconds after the last change",
      "holdfast job enqueue index --dedup-key customer-7 --debounce 5s" },
    { "no tenant keeps the others waiting",
      "holdfast job enqueue render --fair-key acme --limit-key acme" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "what is held for you", "holdfast job list --gate held" },
    { "mails that wait or run", "holdfast job list --kind mail" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "by the end of its id", "holdfast job show 3f2a9c01" },
    { .what = NULL },
};

static const struct op_example cancel_examples[] = {
    { "it is not wanted any more",
      "holdfast job cancel 3f2a9c01 --reason 'sent by hand'" },
    { .what = NULL },
};
static const struct op_example release_examples[] = {
    { "the code was mended", "holdfast job release 3f2a9c01 --reason 'fixed in 1.4.2'" },
    { .what = NULL },
};

static const struct op_example now_examples[] = {
    { "do not wait for the retry", "holdfast job run-now 3f2a9c01" },
    { .what = NULL },
};

/* clang-format off */
const struct op op_job_rows[] = {
    { "job.enqueue", "enqueue a job",
      "A job is a unit of work that code runs by the name of its kind; it may run again "
      "after a crash. With --debounce an unstarted job of the same --dedup-key is put "
      "off "
      "instead of making a second one.",
      hf_job_inputs, NULL,
      BLANK(hf_job_new, .size = sizeof(struct hf_job_new), .priority = -1),
      enqueue_examples, UNIT, .facts = &hf_created_shape, .errors = op_create_errors,
      .role = OP_WORKER, .route = "POST /v1/jobs", .actor_kind = "human",
      .flags = OP_STORE | OP_SHELL | OP_CREATES | OP_REPEATABLE,
      .check = op_check_enqueue, .run = op_run_enqueue },
    { "job.list", "list jobs", NULL, hf_job_list_inputs, NULL,
      BLANK(hf_list_request, .filter = { .size = sizeof(struct hf_filter) }),
      list_examples, UNITS, .errors = op_read_errors, READER(OP_FIELD | OP_PAGED),
      .route = "GET /v1/jobs", .run = op_run_list },
    { "job.show", "show all of one job", NULL, hf_job_id_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), show_examples, UNIT, .errors = op_get_errors,
      READER(OP_SHELL), .route = "GET /v1/jobs/{work_id}", .run = op_run_show },
    { "job.cancel", "end a job that has not ended",
      "One that runs is told at its next renewal; what it does after that counts for "
      "nothing.",
      hf_job_reason_inputs, NULL, VERB(CANCEL), cancel_examples, UNIT, OPERATOR,
      .route = "POST /v1/jobs/{work_id}/cancel", .did = "cancelled",
      .run = op_run_change },
    { "job.run_now", "let a job start that waits for its time or its retry", NULL,
      hf_job_now_inputs, NULL, VERB(RESCHEDULE), now_examples, UNIT, OPERATOR,
      .route = "POST /v1/jobs/{work_id}/run-now", .did = "due now",
      .run = op_run_change },
    { "job.release", "let a held job run again",
      "A job that lost its worker five times in a row within an hour is held, since it "
      "may be what kills them.",
      hf_job_reason_inputs, NULL, VERB(RELEASE), release_examples, UNIT, OPERATOR,
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
    { "who waits for what", "holdfast limit list" },
    { .what = NULL },
};

/* clang-format off */
static const struct op_example queue_examples[] = {
    { "what waits where", "holdfast queue list" },
    { .what = NULL },
};
static const struct op_example holder_examples[] = {
    { "who holds what", "holdfast holder list" },
    { "the processes of one name", "holdfast holder list worker-7" },
    { .what = NULL },
};

const struct op op_queue_rows[] = {
    { "queue.list", "count open units by queue",
      "How many can be claimed, wait behind which gate, run, wait, are retried or are silent; since "
      "when the oldest can be claimed, and when the next falls due. Finished units are not counted.",
      op_no_inputs, NULL, .examples = queue_examples, .answer = OP_LIST, .shape = &hf_queue_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/queues", .run = op_run_queues },
    { .name = NULL },
};

const struct op op_holder_rows[] = {
    { "holder.list", "list who holds work",
      "One row per owner and incarnation. A twin is an incarnation that holds work while another one "
      "of the same name does: names must be unique.",
      hf_holder_list_inputs, NULL, BLANK(hf_filter, .size = sizeof(struct hf_filter)),
      .examples = holder_examples, .answer = OP_LIST, .shape = &hf_holder_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/holders", .run = op_run_holders },
    { .name = NULL },
};

const struct op op_limit_rows[] = {
    { "limit.set", "bound what runs or starts under a name",
      "Limits of keys and rates hold at once. That of a kind is for units without a key "
      "or lane that are created from now on.",
      hf_limit_inputs, NULL,
      BLANK(hf_limit_request, .quota = { .size = sizeof(struct hf_quota) }), set_examples,
      .facts = &hf_name_shape, .errors = op_write_errors, .role = OP_OPERATOR,
      .route = "PUT /v1/limits/{name}", .flags = OP_STORE, .actor_kind = "human",
      .check = op_check_limit, .run = op_run_limit },
    { "limit.list", "show limits and how they stand", NULL, op_no_inputs, NULL,
      .examples = limits_examples, .answer = OP_LIST, .shape = &hf_limit_shape,
      .errors = op_read_errors, READER(0), .route = "GET /v1/limits",
      .run = op_run_limit_list },
    { .name = NULL },
};
/* clang-format on */
