/* The operations on `schedule` as rows of the table (struct op): their names, inputs, answers,
 * errors, help and examples, and the functions that run them. */
#include "op/rows.h"
#include "op/schedule.h"
#include "op/shapes/ledger.h"
#include "op/shapes/schedule.h"

static const struct op_example add_examples[] = {
    { "a command every night at three; `holdfast monitor --run` creates its units and "
      "runs them",
      "holdfast schedule add backup --cron '0 3 * * *' --timeout 1h -- ./backup.sh" },
    { "every working day at nine in Berlin, summer and winter",
      "holdfast schedule add report --cron '0 9 * * MON-FRI' --tz Europe/Berlin --kind "
      "report" },
    { "every ten minutes; if a unit takes longer, one more may wait",
      "holdfast schedule add poll --every 10m --overlap one_waiting --kind poll" },
    { "wake the agent of a session every morning",
      "holdfast schedule add morning --cron '0 7 * * *' --wake-session reports --payload "
      "'{\"task\":\"report\"}'" },
    { "once, by the clocks of New York",
      "holdfast schedule add launch --at 2027-03-14T09:00:00 --tz America/New_York "
      "--kind "
      "launch" },
    { .what = NULL },
};

static const struct op_example update_examples[] = {
    { "change the time, if its revision is still 1",
      "holdfast schedule update report --cron '30 8 * * MON-FRI' --revision 1" },
    { .what = NULL },
};

static const struct op_example pause_examples[] = {
    { "pause it", "holdfast schedule pause report --reason 'the mail server is down'" },
    { .what = NULL },
};

static const struct op_example resume_examples[] = {
    { "continue from now", "holdfast schedule resume report" },
    { .what = NULL },
};

static const struct op_example remove_examples[] = {
    { "remove one; its units stay", "holdfast schedule remove report" },
    { .what = NULL },
};

static const struct op_example run_now_examples[] = {
    { "create a unit now, in addition to the slots", "holdfast schedule run-now report" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "what is paused", "holdfast schedule list --state paused" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "one schedule: the next slots, and the skipped ones with the reason",
      "holdfast schedule show report" },
    { .what = NULL },
};

static const struct op_example preview_examples[] = {
    { "slots around the end of summer time",
      "holdfast schedule preview --cron '30 2 * * *' --tz Europe/Berlin --from "
      "2026-10-24T00:00:00Z --count 3" },
    { "the next slots of a schedule", "holdfast schedule preview report" },
    { .what = NULL },
};

static const struct op_example sync_examples[] = {
    { "from a file in the source repository", "holdfast schedule sync schedules.json" },
    { .what = NULL },
};

static const struct op_example run_examples[] = {
    { "create the due units, if no monitor runs", "holdfast schedule run" },
    { .what = NULL },
};

/* A conflict is about a revision or a rule here, not about a key. */
static const struct op_advice advice[] = {
    { HF_ECONFLICT, "revision", "read it with `schedule show`, then pass its revision" },
    { HF_ECONFLICT, "overlap",
      "wait until the unit has finished, or change the overlap rule" },
    { HF_ECONFLICT, NULL, "choose another name, or use `schedule update`" },
    { HF_ETRANSITION, NULL, "read it with `schedule show`" },
    { 0, NULL, NULL },
};

/* clang-format off */
#define REQUEST                                                                          \
    BLANK(hf_schedule_request,                                                           \
          .wanted = { .size = sizeof(struct hf_schedule_spec), .priority = -1 },          \
          .count = 5, .skips = 10)
#define CHANGES                                                                          \
    .answer = OP_ROW, .shape = &hf_schedule_shape, .facts = &hf_changed_shape,           \
    .role = OP_OPERATOR, .actor_kind = "human", .advice = advice

const struct op op_schedule_rows[] = {
    { "schedule.add", "add a schedule",
      "Needs one of --cron, --every and --at, and one of: a command after --, --kind "
      "for units that your own workers take, or --wake-session for an agent. Each "
      "slot creates one unit of work: its source is scheduler, its source id the "
      "name, its run id the slot. A command is owner_bound, never run a second time, "
      "unless --disposition is given. Adding the same schedule again changes nothing; "
      "another definition under the same name is refused with exit code 7. `holdfast "
      "monitor` creates the units, and with --run it runs their commands.",
      hf_schedule_inputs, op_command_inputs, REQUEST, add_examples, CHANGES,
      .errors = op_change_errors,
      .exits = "4", .route = "POST /v1/schedules", .flags = OP_STORE, .did = "added",
      .check = op_check_schedule_add, .run = op_run_schedule_add },
    { "schedule.update", "change a schedule",
      "Fields that are not given keep their values. The next slot changes only if the "
      "timing does.",
      hf_schedule_update_inputs, op_command_inputs, REQUEST, update_examples, CHANGES,
      .errors = op_change_errors, .route = "PATCH /v1/schedules/{name}",
      .flags = OP_MUST_EXIST, .did = "updated", .check = op_check_schedule_update,
      .run = op_run_schedule_update },
    { "schedule.pause", "create no units until the schedule is resumed", NULL,
      hf_schedule_pause_inputs, NULL, REQUEST, pause_examples, CHANGES,
      .errors = op_operator_errors, .route = "POST /v1/schedules/{name}/pause",
      .flags = OP_MUST_EXIST, .did = "paused", .run = op_run_schedule_pause },
    { "schedule.resume", "continue from now",
      "Slots of the pause are recorded as skipped.", hf_schedule_name_inputs, NULL,
      REQUEST, resume_examples, CHANGES, .errors = op_operator_errors,
      .route = "POST /v1/schedules/{name}/resume", .flags = OP_MUST_EXIST,
      .did = "resumed", .run = op_run_schedule_resume },
    { "schedule.run_now", "create a unit now, in addition to the slots",
      "Exits with 7 if the overlap rule forbids a unit now. The next slot does not "
      "change.",
      hf_schedule_run_now_inputs, NULL, REQUEST, run_now_examples, UNIT,
      .facts = &hf_created_shape, .errors = op_change_errors, .role = OP_OPERATOR,
      .route = "POST /v1/schedules/{name}/run-now",
      .flags = OP_CREATES | OP_MUST_EXIST | OP_SHELL | OP_REPEATABLE,
      .actor_kind = "human", .advice = advice, .run = op_run_schedule_run_now },
    { "schedule.remove", "remove a schedule; its units stay", NULL,
      hf_schedule_name_inputs, NULL, REQUEST, remove_examples,
      .facts = &hf_schedule_gone_shape, .errors = op_change_errors, .role = OP_OPERATOR,
      .route = "DELETE /v1/schedules/{name}", .flags = OP_MUST_EXIST | OP_DESTROYS,
      .actor_kind = "human", .advice = advice, .run = op_run_schedule_remove },
    { "schedule.list", "list schedules and their next slots", NULL,
      hf_schedule_list_inputs, NULL,
      BLANK(hf_schedule_filter, .size = sizeof(struct hf_schedule_filter)), list_examples,
      .answer = OP_LIST, .shape = &hf_schedule_shape, .errors = op_read_errors,
      READER(OP_PAGED), .route = "GET /v1/schedules", .run = op_run_schedule_list },
    { "schedule.show", "show a schedule with its next slots and its skipped ones", NULL,
      hf_schedule_show_inputs, NULL, REQUEST, show_examples, .answer = OP_ROW,
      .shape = &hf_schedule_shape, .facts = &hf_schedule_shown_shape,
      .errors = op_get_errors, READER(0), .route = "GET /v1/schedules/{name}",
      .run = op_run_schedule_show },
    { "schedule.preview", "print the next slots of a timing",
      "Slots are printed in UTC. A store is needed only for a schedule's name.", hf_preview_inputs,
      NULL, REQUEST, preview_examples, .shape = &hf_slots_shape, .errors = op_get_errors,
      READER(OP_OPENS), .route = "GET /v1/schedule-preview", .check = op_check_preview,
      .run = op_run_preview },
    { "schedule.sync", "bring a set of schedules in line with a file",
      "In one transaction, schedules of the file are added or updated, and other "
      "schedules of the set are kept, paused or removed as the file says (default: "
      "paused).",
      hf_sync_inputs, NULL, BLANK(hf_sync_request, .set = NULL), sync_examples,
      .shape = &hf_sync_shape, .errors = op_change_errors, .role = OP_OPERATOR,
      .route = "POST /v1/schedule-sets", .flags = OP_STORE, .actor_kind = "human",
      .check = op_check_sync, .run = op_run_sync },
    { "schedule.run", "create the units that are due now",
      "Makes one pass, as `holdfast monitor` does repeatedly. Any number of passes "
      "may run at the same time.",
      op_no_inputs, NULL, .examples = run_examples, .shape = &hf_schedule_report_shape,
      .errors = op_write_errors, .role = OP_OPERATOR, .route = "POST /v1/schedule-passes",
      .flags = OP_MUST_EXIST, .actor_kind = "system", .run = op_run_schedule_pass },
    { .name = NULL },
};
/* clang-format on */
