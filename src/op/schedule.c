/* The operations on schedules. A schedule creates a unit at set times, its slots; checks of
 * its timing come first, so that no store is created for one that cannot be right. */
#include "op/schedule.h"

#include <string.h>

#include <holdfast/run.h>

#include "base/civil.h"
#include "base/json_get.h"
#include "base/text.h"
#include "op/shapes/schedule.h"

/* ---- checks ------------------------------------------------------------------------ */

static hf_ms system_now(void)
{
    return hf_clock_system()->wall_ms(hf_clock_system()->user);
}

/* Timings are checked before a store is made or opened. */
static int check_timing(struct op_call *call, bool needed)
{
    const struct hf_schedule_spec *wanted = call->in;
    bool every = op_given(call, "every_ms");
    hf_ms slot = 0;
    size_t count = 0;
    if (!wanted->cron && !wanted->at && !every)
        return needed
                   ? op_fail(
                         call, HF_EINVAL, "{cron}",
                         "one of {cron}, {every_ms} and {at} is required, and only one")
                   : 0;
    if (every && (wanted->every_ms < HF_MAX_EVERY_MIN_MS ||
                  wanted->every_ms > HF_MAX_DURATION_MAX_MS))
        return op_fail(call, HF_EINVAL, "{every_ms}", "{every_ms} must be 1s to 36525d");
    return hf_schedule_preview(wanted, system_now(), 1, &slot, &count, call->err);
}

int op_check_schedule_add(struct op_call *call)
{
    const struct hf_schedule_spec *wanted = call->in;
    int rc = check_timing(call, true);
    if (rc == 0)
        rc = op_check_kind(call, wanted->kind);
    if (rc || wanted->kind || wanted->queue || wanted->payload || wanted->wake_session)
        return rc;
    return op_fail(
        call, HF_EINVAL, "{kind}",
        "the schedule needs a target: {kind} for units that your own workers take, "
        "{wake_session} for an agent, or in the shell a command after --");
}

int op_check_schedule_update(struct op_call *call)
{
    const struct hf_schedule_spec *wanted = call->in;
    int rc = op_check_kind(call, wanted->kind);
    return rc ? rc : check_timing(call, false);
}

int op_check_preview(struct op_call *call)
{
    const struct hf_schedule_spec *wanted = call->in;
    if (wanted->name && (wanted->cron || wanted->at || op_given(call, "every_ms")))
        return op_fail(call, HF_EINVAL, "{cron}",
                       "a schedule's name and a timing exclude each other");
    return check_timing(call, !wanted->name);
}

/* ---- changes ----------------------------------------------------------------------- */

/* The one schedule of an answer, which is freed, or the failure `rc`. */
static int say_changed(struct op_call *call, int rc, struct hf_schedules *schedules)
{
    if (rc == 0)
        rc = op_changed(call, hf_schedules_changed(schedules),
                        hf_schedules_at(schedules, 0));
    hf_schedules_free(schedules);
    return rc;
}

int op_run_schedule_add(struct op_call *call)
{
    struct hf_schedules *schedules = NULL;
    int rc = hf_schedule_add(call->store, &call->who, call->in, &schedules, call->err);
    return say_changed(call, rc, schedules);
}

/* What is not given stays. Of the timing all is replaced when any of its kinds is given. */
static void keep_timing(const struct op_call *call, const struct hf_schedule *was,
                        struct hf_schedule_spec *wanted, char start[HF_INSTANT_TEXT])
{
    bool timed = wanted->cron || wanted->every_ms || wanted->at;
    if (!wanted->zone)
        wanted->zone = was->zone;
    if (!op_given(call, "days") && (wanted->cron || !timed))
        wanted->both_days = hf_same(was->days, "and");
    if (timed)
        return;
    wanted->cron = was->cron;
    wanted->every_ms = was->every_ms;
    if (was->cron)
        return;
    (void)hf_instant_text(was->start_at, start); /* fills `start` */
    if (was->every_ms && !wanted->start)
        wanted->start = start;
    else if (!was->every_ms)
        wanted->at = start;
}

/* One that begins to run a command goes to those who run commands. */
static void begin_command(const struct hf_schedule *was, struct hf_schedule_spec *wanted)
{
    if (!hf_same(wanted->kind, HF_RUN_KIND) || hf_same(was->kind, HF_RUN_KIND))
        return;
    wanted->queue = wanted->queue ? wanted->queue : HF_RUN_KIND;
    if (!wanted->disposition)
        wanted->disposition = HF_DISPOSITION_OWNER_BOUND;
    if (wanted->disposition == HF_DISPOSITION_OWNER_BOUND)
        wanted->max_attempts = 1;
}

static void keep_unit(const struct hf_schedule *was, struct hf_schedule_spec *wanted)
{
    begin_command(was, wanted);
    wanted->queue = wanted->queue ? wanted->queue : was->queue;
    wanted->kind = wanted->kind ? wanted->kind : was->kind;
    wanted->lane_key = wanted->lane_key ? wanted->lane_key : was->lane_key;
    wanted->payload = wanted->payload ? wanted->payload : was->payload;
    wanted->wake_session = wanted->wake_session ? wanted->wake_session
                                                : was->wake_session;
    wanted->retry_policy = wanted->retry_policy ? wanted->retry_policy
                                                : was->retry_policy;
    if (wanted->priority < 0)
        wanted->priority = (int)was->priority;
    if (!wanted->max_attempts)
        wanted->max_attempts = (int)was->max_attempts;
    if (!wanted->disposition)
        wanted->disposition = hf_disposition_of(was->disposition);
    if (!wanted->start_timeout_ms)
        wanted->start_timeout_ms = was->start_timeout_ms;
    if (!wanted->exec_timeout_ms)
        wanted->exec_timeout_ms = was->exec_timeout_ms;
    if (!wanted->overlap)
        wanted->overlap = hf_overlap_of(was->overlap);
    if (!wanted->catch_up)
        wanted->catch_up = hf_catch_up_of(was->catch_up);
    if (!wanted->miss_threshold_ms)
        wanted->miss_threshold_ms = was->miss_threshold_ms;
}

int op_run_schedule_update(struct op_call *call)
{
    struct hf_schedule_request *in = call->in;
    struct hf_schedules *before = NULL, *after = NULL;
    char start[HF_INSTANT_TEXT];
    int rc = hf_schedule_get(call->store, &call->who, in->wanted.name, &before,
                             call->err);
    if (rc)
        return rc;
    const struct hf_schedule *was = hf_schedules_at(before, 0);
    keep_timing(call, was, &in->wanted, start);
    keep_unit(was, &in->wanted);
    rc = hf_schedule_update(call->store, &call->who, &in->wanted,
                            in->revision ? in->revision : was->revision, &after,
                            call->err);
    rc = say_changed(call, rc, after);
    hf_schedules_free(before);
    return rc;
}

int op_run_schedule_pause(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    struct hf_schedules *schedules = NULL;
    int rc = hf_schedule_pause(call->store, &call->who, in->wanted.name, in->reason,
                               in->revision, &schedules, call->err);
    return say_changed(call, rc, schedules);
}

int op_run_schedule_resume(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    struct hf_schedules *schedules = NULL;
    int rc = hf_schedule_resume(call->store, &call->who, in->wanted.name, in->revision,
                                &schedules, call->err);
    return say_changed(call, rc, schedules);
}

int op_run_schedule_remove(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    int rc = hf_schedule_remove(call->store, &call->who, in->wanted.name, in->revision,
                                call->err);
    if (rc)
        return rc;
    op_text(call, "removed", in->wanted.name);
    op_say(call, "%s removed", in->wanted.name);
    return 0;
}

int op_run_schedule_run_now(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    struct hf_answer *answer = NULL;
    int rc = hf_schedule_run_now(call->store, &call->who, in->wanted.name, &answer,
                                 call->err);
    const struct hf_item *item = rc ? NULL : hf_answer_at(answer, 0);
    if (rc == 0)
        rc = op_unit(call, item, item->created ? "created" : "existed");
    hf_answer_free(answer);
    return rc;
}

/* ---- sets and passes --------------------------------------------------------------- */

/* No entry of a set that did not come from this machine may hold a command. */
int op_check_sync(struct op_call *call)
{
    const struct hf_sync_request *in = call->in;
    struct json_t *all = NULL;
    struct hf_span text = { in->set, strlen(in->set) };
    int rc = hf_json_parse(text, (size_t)HF_MAX_CALL_LINE_BYTES, "set", &all, call->err);
    const struct json_t *list = rc ? NULL : hf_json_member(all, "schedules");
    for (size_t i = 0; rc == 0 && list && i < hf_json_items(list); i++)
        rc = op_check_kind(
            call, hf_json_as_text(hf_json_member(hf_json_item(list, i), "kind")));
    hf_json_free(all);
    return rc;
}

int op_run_sync(struct op_call *call)
{
    const struct hf_sync_request *in = call->in;
    struct hf_sync_report report = { 0 };
    int rc = hf_schedule_sync(call->store, &call->who, in->set, &report, call->err);
    return rc ? rc : op_row(call, &report);
}

int op_run_schedule_pass(struct op_call *call)
{
    struct hf_schedule_report report;
    int rc = hf_schedule_pass(call->store, &call->who, &report, call->err);
    return rc ? rc : op_row(call, &report);
}

/* ---- looking ----------------------------------------------------------------------- */

/* The first page that has a row. */
static int schedules_page(struct op_call *call, struct hf_schedules **ret)
{
    struct hf_schedule_filter filter = *(const struct hf_schedule_filter *)call->in;
    struct hf_schedules *page = NULL;
    int rc = 0;
    do {
        struct hf_schedules *before = page; /* whose cursor it continues */
        page = NULL;
        filter.after = before ? hf_schedules_next(before) : filter.after;
        rc = hf_schedule_list(call->store, &call->who, &filter, &page, call->err);
        hf_schedules_free(before);
    } while (rc == 0 && hf_schedules_count(page) == 0 && hf_schedules_next(page));
    if (rc == 0)
        *ret = page;
    return rc;
}

int op_run_schedule_list(struct op_call *call)
{
    const struct op_sink *sink = call->out->sink;
    struct op_list list = {
        .key = "items", .shape = &hf_schedule_shape, .none = "no schedules", .paged = true
    };
    struct hf_schedules *schedules = NULL;
    int rc = schedules_page(call, &schedules);
    if (rc)
        return rc;
    list.next = hf_schedules_next(schedules);
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_schedules_count(schedules); i++) {
        const struct op_row row = { .shape = list.shape,
                                    .at = hf_schedules_at(schedules, i) };
        rc = sink->item(call->out, &row);
    }
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_schedules_free(schedules);
    return rc;
}

static int upcoming_by_name(struct op_call *call, hf_ms *slots, size_t *ret_count)
{
    const struct hf_schedule_request *in = call->in;
    struct hf_schedules *schedules = NULL;
    int rc = call->open(call);
    if (rc == 0)
        rc = hf_schedule_get(call->store, &call->who, in->wanted.name, &schedules,
                             call->err);
    if (rc == 0)
        rc = hf_schedule_upcoming(hf_schedules_at(schedules, 0),
                                  op_given(call, "from") ? in->from
                                                         : hf_store_now(call->store),
                                  (size_t)in->count, slots, ret_count, call->err);
    hf_schedules_free(schedules);
    return rc;
}

int op_run_preview(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    hf_ms slots[HF_SLOTS_MAX];
    struct hf_times times = { .at = slots };
    int rc = in->wanted.name
                 ? upcoming_by_name(call, slots, &times.count)
                 : hf_schedule_preview(&in->wanted,
                                       op_given(call, "from") ? in->from : system_now(),
                                       (size_t)in->count, slots, &times.count, call->err);
    return rc ? rc : op_row(call, &times);
}

static int say_skips(struct op_call *call, const struct hf_schedule_skips *skips)
{
    const struct op_sink *sink = call->out->sink;
    const struct op_list list = { .key = "skips",
                                  .shape = &hf_skip_shape,
                                  .did = "skipped" };
    int rc = 0;
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_schedule_skips_count(skips); i++) {
        const struct op_row row = { .shape = &hf_skip_shape,
                                    .at = hf_schedule_skips_at(skips, i),
                                    .did = i ? "" : list.did };
        rc = sink->item(call->out, &row);
    }
    return rc ? rc : sink->end(call->out, &list);
}

/* The schedule, its slots to come, and those that were not made. */
static int say_shown(struct op_call *call, const struct hf_schedule *schedule,
                     const struct hf_schedule_skips *skips)
{
    const struct hf_schedule_request *in = call->in;
    hf_ms slots[HF_SLOTS_MAX];
    struct hf_times times = { .at = slots };
    struct hf_err ignored; /* a zone that is gone is named in last_error */
    if (schedule->next_at &&
        hf_schedule_upcoming(schedule, schedule->next_at - 1, (size_t)in->count, slots,
                             &times.count, &ignored))
        times.count = 0;
    const struct op_row upcoming = { .shape = &hf_upcoming_shape, .at = &times };
    int rc = op_row(call, schedule);
    if (rc == 0)
        rc = call->out->sink->row(call->out, &upcoming);
    return rc ? rc : say_skips(call, skips);
}

int op_run_schedule_show(struct op_call *call)
{
    const struct hf_schedule_request *in = call->in;
    struct hf_schedules *schedules = NULL;
    struct hf_schedule_skips *skips = NULL;
    const char *name = in->wanted.name;
    int rc = hf_schedule_get(call->store, &call->who, name, &schedules, call->err);
    if (rc == 0)
        rc = hf_schedule_skips(call->store, &call->who, name, (size_t)in->skips, &skips,
                               call->err);
    if (rc == 0)
        rc = say_shown(call, hf_schedules_at(schedules, 0), skips);
    hf_schedule_skips_free(skips);
    hf_schedules_free(schedules);
    return rc;
}
