/* Schedules: their fields, and building one from a request. See schedule.h. */
#include "core/schedule/schedule.h"

#include <string.h>

#include "base/civil.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/step.h"

#define MISS_THRESHOLD_MS 60000
#define PRIORITY_DEFAULT 3

static const char *const state_words[] = { "active", "paused", "finished", NULL };
static const char *const timing_words[] = { "cron", "interval", "once", NULL };
static const char *const day_words[] = { "or", "and", NULL };

/* clang-format off */
#define TEXT(member, ...) HF_FIELD(TEXT, hf_schedule, member, false, __VA_ARGS__)
#define JSON(member, ...) HF_FIELD(JSON, hf_schedule, member, false, __VA_ARGS__)
#define I64(member, ...)  HF_FIELD(I64, hf_schedule, member, false, __VA_ARGS__)
#define MS(member, ...)   HF_FIELD(I64, hf_schedule, member, true, __VA_ARGS__)

const struct hf_field hf_schedule_fields[] = {
    TEXT(name, "its name"),
    TEXT(tenant, "tenant"),
    TEXT(state, "state: active, paused or finished", .words = state_words),
    TEXT(state_reason, "reason of the pause"),
    /* what defines it */
    TEXT(timing, "type of its timing: cron, interval or once", .words = timing_words),
    TEXT(cron, "cron expression"),
    MS(every_ms, "interval between slots"),
    MS(start_at, "interval: slots are counted from here; once: the slot"),
    TEXT(zone, "IANA time zone"),
    TEXT(days, "cron: day of month or day of week, or both", .words = day_words),
    TEXT(overlap, "what a slot does while an earlier unit is unfinished", .words = hf_overlap_words),
    TEXT(catch_up, "which missed slots are created later", .words = hf_catch_up_words),
    MS(miss_threshold_ms, "how late a slot counts as missed"),
    TEXT(kind, "kind of its units"),
    TEXT(queue, "their queue"),
    TEXT(lane_key, "lane key: at most one of its units runs at a time"),
    JSON(payload, "their payload"),
    I64(priority, "priority of its units; 0 is the most urgent"),
    I64(max_attempts, "executions of a unit; 0: by policy"),
    JSON(retry_policy, "how failures are retried"),
    TEXT(disposition, "what happens to a unit when its lease lapses", .words = hf_disposition_words),
    MS(start_timeout_ms, "longest time of a unit in the queue"),
    MS(exec_timeout_ms, "longest time of one execution"),
    TEXT(wake_session, "the session that its units wake, as inputs"),
    /* what became of it */
    TEXT(origin, "the synced set that declares it"),
    I64(revision, "raised by every change of its definition or state"),
    MS(next_at, "its next slot"),
    MS(last_slot_at, "newest slot that became a unit"),
    TEXT(last_work_id, "the unit of that slot"),
    I64(made, "slots that became units"),
    I64(skipped, "slots that were skipped"),
    I64(failures, "passes in a row that could not handle it"),
    TEXT(last_error, "error of the last pass"),
    MS(created_at, "time of its creation"),
    MS(updated_at, "time of its last change"),
};
/* clang-format on */
const size_t hf_schedule_field_count = sizeof(hf_schedule_fields) /
                                       sizeof(hf_schedule_fields[0]);
const struct hf_shape hf_schedule_shape = HF_SHAPE("schedule", hf_schedule_fields);

#define FIRST_DEFINING 4
#define TIMING_FIELDS 6 /* the first of the defining ones */
#define DEFINING_FIELDS 20

bool hf_schedule_same(const struct hf_schedule *a, const struct hf_schedule *b)
{
    return hf_fields_same(&hf_schedule_fields[FIRST_DEFINING], DEFINING_FIELDS, a, b);
}

bool hf_schedule_same_timing(const struct hf_schedule *a, const struct hf_schedule *b)
{
    return hf_fields_same(&hf_schedule_fields[FIRST_DEFINING], TIMING_FIELDS, a, b);
}

/* ---- checks ------------------------------------------------------------------------ */

static struct hf_work_spec unit_of(const struct hf_schedule_spec *wanted,
                                   const char *name)
{
    return (struct hf_work_spec){
        .size = sizeof(struct hf_work_spec),
        .source = HF_SOURCE_SCHEDULER,
        .source_id = name,
        .source_run_id = "slot",
        .payload = wanted->payload,
        HF_NEW_WISHES(wanted),
    };
}

static int check_timing(const struct hf_schedule_spec *wanted, struct hf_err *err)
{
    int given = (wanted->cron != NULL) + (wanted->every_ms != 0) + (wanted->at != NULL);
    if (given != 1)
        return hf_fail(err, HF_EINVAL, "cron",
                       "a schedule needs one of cron, every and at, and no more");
    if (wanted->start && !wanted->every_ms)
        return hf_fail(err, HF_EINVAL, "start", "start is for a schedule with every");
    if (wanted->both_days && !wanted->cron)
        return hf_fail(err, HF_EINVAL, "days", "days is for a schedule with cron");
    if (wanted->every_ms && (wanted->every_ms < HF_MAX_EVERY_MIN_MS ||
                             wanted->every_ms > HF_MAX_DURATION_MAX_MS))
        return hf_fail(err, HF_EINVAL, "every", "every must be 1s to 36525d");
    struct hf_cron cron;
    return wanted->cron ? hf_cron_parse(wanted->cron, wanted->both_days, &cron, err) : 0;
}

static int check_rules(const struct hf_schedule_spec *wanted, struct hf_err *err)
{
    if (wanted->overlap && !hf_overlap_word(wanted->overlap))
        return hf_fail(err, HF_EINVAL, "overlap",
                       "overlap must be skip, one_waiting, allow or replace");
    if (wanted->catch_up && !hf_catch_up_word(wanted->catch_up))
        return hf_fail(err, HF_EINVAL, "catch_up",
                       "catch_up must be latest, all or none");
    if (wanted->miss_threshold_ms < 0 ||
        wanted->miss_threshold_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "miss_threshold",
                       "miss_threshold must not be negative or beyond 100 years");
    if (wanted->overlap == HF_OVERLAP_ONE_WAITING &&
        wanted->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return hf_fail(err, HF_EINVAL, "overlap",
                       "overlap one_waiting is not allowed for externally_owned work: it "
                       "never waits here");
    if (wanted->overlap == HF_OVERLAP_REPLACE &&
        wanted->disposition == HF_DISPOSITION_OWNER_BOUND)
        return hf_fail(err, HF_EINVAL, "overlap",
                       "replace cannot end owner_bound work at once: use disposition "
                       "rerunnable or expire, or overlap skip or one_waiting");
    return 0;
}

/* A session takes its inputs one after another, in its own order. */
static int check_wake(const struct hf_schedule_spec *wanted, struct hf_err *err)
{
    bool plain = wanted->overlap == HF_OVERLAP_DEFAULT ||
                 wanted->overlap == HF_OVERLAP_SKIP ||
                 wanted->overlap == HF_OVERLAP_ALLOW;
    if (wanted->wake_session && !plain)
        return hf_fail(err, HF_EINVAL, "overlap",
                       "a schedule that wakes a session must have overlap skip or allow");
    if (wanted->wake_session && wanted->lane_key)
        return hf_fail(err, HF_EINVAL, "lane_key",
                       "a schedule that wakes a session must not have a lane");
    return hf_check_key_opt(wanted->wake_session, (size_t)HF_MAX_KEY_BYTES,
                            "wake_session", err);
}

int hf_schedule_check(const struct hf_schedule_spec *wanted, bool named,
                      struct hf_err *err)
{
    int rc = check_timing(wanted, err);
    if (rc || !named)
        return rc;
    rc = hf_check_key(wanted->name, (size_t)HF_MAX_SCHEDULE_NAME_BYTES, "name", err);
    if (rc == 0)
        rc = check_rules(wanted, err);
    if (rc == 0)
        rc = check_wake(wanted, err);
    if (rc == 0) {
        struct hf_work_spec unit = unit_of(wanted, wanted->name);
        rc = hf_work_spec_check(&unit, err);
    }
    return rc;
}

/* ---- building ---------------------------------------------------------------------- */

/* A time as typed: an instant, or a local time of the zone. */
static int read_time(const char *text, const char *field, const struct hf_zone *zone,
                     hf_ms *ret_ms, struct hf_err *err)
{
    struct hf_typed_time typed;
    int rc = hf_parse_time(text, field, &typed, err);
    if (rc)
        return rc;
    hf_ms ms = typed.local_ms - (hf_ms)typed.offset_minutes * 60000;
    if (!typed.has_offset)
        ms = hf_zone_instant(zone, typed.local_ms / 1000) * 1000 + typed.local_ms % 1000;
    if (ms <= 0 || ms >= HF_TIME_END_MS)
        return hf_fail(err, HF_EINVAL, field, "%s must be in the years 1970 to 9999",
                       field);
    *ret_ms = ms;
    return 0;
}

static int build_timing(const struct hf_schedule_spec *wanted, const struct hf_zone *zone,
                        hf_ms now, struct hf_schedule *schedule, struct hf_err *err)
{
    schedule->timing = wanted->cron ? "cron" : wanted->every_ms ? "interval" : "once";
    schedule->cron = wanted->cron;
    schedule->every_ms = wanted->every_ms;
    schedule->zone = wanted->zone ? wanted->zone : "UTC";
    schedule->days = wanted->both_days ? "and" : "or";
    if (wanted->at)
        return read_time(wanted->at, "at", zone, &schedule->start_at, err);
    if (wanted->start)
        return read_time(wanted->start, "start", zone, &schedule->start_at, err);
    schedule->start_at = wanted->every_ms ? now : 0;
    return 0;
}

int hf_schedule_build(const struct hf_schedule_spec *wanted, const struct hf_zone *zone,
                      hf_ms now, struct hf_schedule *ret_schedule, struct hf_err *err)
{
    struct hf_work_spec unit = unit_of(wanted, wanted->name);
    struct hf_schedule schedule = {
        .name = wanted->name,
        .tenant = "",
        .state = wanted->paused ? "paused" : "active",
        .overlap = hf_overlap_word(wanted->overlap ? wanted->overlap : HF_OVERLAP_SKIP),
        .catch_up = hf_catch_up_word(wanted->catch_up ? wanted->catch_up
                                                      : HF_CATCH_UP_LATEST),
        .miss_threshold_ms = wanted->miss_threshold_ms ? wanted->miss_threshold_ms
                                                       : MISS_THRESHOLD_MS,
        .kind = unit.kind ? unit.kind : "work",
        .queue = unit.queue ? unit.queue : "default",
        .lane_key = unit.lane_key,
        .payload = unit.payload,
        .priority = unit.priority < 0 ? PRIORITY_DEFAULT : unit.priority,
        .max_attempts = unit.max_attempts,
        .retry_policy = unit.retry_policy,
        .disposition = hf_disposition_word(unit.disposition),
        .start_timeout_ms = unit.start_timeout_ms,
        .exec_timeout_ms = unit.exec_timeout_ms,
        .wake_session = wanted->wake_session,
        .revision = 1,
        .created_at = now,
        .updated_at = now,
    };
    int rc = build_timing(wanted, zone, now, &schedule, err);
    if (rc == 0)
        *ret_schedule = schedule;
    return rc;
}

int hf_schedule_timing(const struct hf_schedule *schedule, const struct hf_zone *zone,
                       struct hf_timing *ret_timing, struct hf_err *err)
{
    struct hf_timing timing = { .kind = HF_TIMING_ONCE,
                                .zone = zone,
                                .every_ms = schedule->every_ms,
                                .anchor_at = schedule->start_at };
    int rc = 0;
    if (schedule->cron) {
        timing.kind = HF_TIMING_CRON;
        rc = hf_cron_parse(schedule->cron, hf_same(schedule->days, "and"), &timing.cron,
                           err);
    } else if (schedule->every_ms) {
        timing.kind = HF_TIMING_INTERVAL;
    }
    if (rc == 0)
        *ret_timing = timing;
    return rc;
}

hf_ms hf_schedule_first(const struct hf_schedule *schedule,
                        const struct hf_timing *timing, hf_ms now)
{
    hf_ms after = schedule->last_slot_at;
    if (timing->kind != HF_TIMING_ONCE && now > after)
        after = now; /* once: its slot may lie in the past and is still to be made */
    return hf_timing_next(timing, after);
}

/* "schedule:NAME": a dedup key, or a lane of its own. */
static const char *own_key(struct hf_arena *arena, const char *name)
{
    static const char prefix[] = "schedule:";
    size_t len = strlen(name);
    char *key = hf_arena_take(arena, sizeof(prefix) + len);
    if (key) {
        memcpy(key, prefix, sizeof(prefix) - 1);
        memcpy(key + sizeof(prefix) - 1, name, len + 1);
    }
    return key;
}

/* What the woken session is told: the payload, and which slot it is. */
static const char *wake_payload(struct hf_arena *arena,
                                const struct hf_schedule *schedule, const char *run_id)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    if (schedule->payload) {
        hf_json_key(&json, "payload");
        hf_json_raw(&json, schedule->payload);
    }
    hf_json_put_str(&json, "schedule", schedule->name);
    hf_json_put_str(&json, "slot", run_id);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

int hf_schedule_unit(struct hf_arena *arena, const struct hf_schedule *schedule,
                     const char *run_id, struct hf_work_spec *ret_new, struct hf_err *err)
{
    enum hf_overlap overlap = hf_overlap_of(schedule->overlap);
    struct hf_work_spec unit = {
        .size = sizeof(unit),
        .source = HF_SOURCE_SCHEDULER,
        .source_id = schedule->name,
        .source_run_id = run_id,
        .kind = schedule->kind,
        .queue = schedule->queue,
        .lane_key = schedule->lane_key,
        .payload = schedule->payload,
        .priority = (int)schedule->priority,
        .max_attempts = (int)schedule->max_attempts,
        .retry_policy = schedule->retry_policy,
        .disposition = hf_disposition_of(schedule->disposition),
        .start_timeout_ms = schedule->start_timeout_ms,
        .exec_timeout_ms = schedule->exec_timeout_ms,
    };
    const char *key = overlap == HF_OVERLAP_ALLOW ? NULL : own_key(arena, schedule->name);
    if (overlap != HF_OVERLAP_ALLOW && !key)
        return hf_fail_plain(err, HF_ENOMEM);
    if (overlap == HF_OVERLAP_SKIP || overlap == HF_OVERLAP_REPLACE)
        unit.dedup_key = key;
    else if (overlap == HF_OVERLAP_ONE_WAITING && !unit.lane_key)
        unit.lane_key = key;
    if (schedule->wake_session) {
        unit.kind = "wake";
        unit.payload = wake_payload(arena, schedule, run_id);
        if (!unit.payload)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    *ret_new = unit;
    return 0;
}
