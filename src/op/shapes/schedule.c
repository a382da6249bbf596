/* The shapes of schedules, and of the answers of their operations: which fields are shown, in
 * their order, with the text that documents each. JSON and tables are made from them. */
#include "op/shapes/schedule.h"

static const char *const reason_words[] = { "missed", "overlap", "waiting", "duplicate",
                                            "paused", "updated", NULL };

/* clang-format off */
#define COUNT(type, member, ...) HF_FIELD(I64, type, member, false, __VA_ARGS__)
#define FACT(name_, kind_, ...) { .name = name_, .kind = HF_FIELD_##kind_, .help = __VA_ARGS__ }

static const struct hf_field gone_fields[] = { FACT("removed", TEXT, "its name") };
const struct hf_shape hf_schedule_gone_shape = HF_SHAPE("removed", gone_fields);

static const struct hf_field slots_fields[] = { FACT("items", TIMES, "the next slots") };
const struct hf_shape hf_slots_shape = HF_SHAPE("slots", slots_fields);
static const struct hf_field upcoming_fields[] = { FACT("upcoming", TIMES,
"the next slots") };
const struct hf_shape hf_upcoming_shape = HF_SHAPE("upcoming", upcoming_fields);

static const struct hf_field skip_fields[] = {
    { "first", HF_FIELD_TIME, offsetof(struct hf_schedule_skip, first_at),
      .help = "first slot that was skipped" },
    { "last", HF_FIELD_TIME, offsetof(struct hf_schedule_skip, last_at),
      .help = "last slot that was skipped" },
    COUNT(hf_schedule_skip, slots, "number of skipped slots"),
    HF_FIELD(BOOL, hf_schedule_skip, more, false, "counting stopped at this number"),
    HF_FIELD(TEXT, hf_schedule_skip, reason, false, "why", .words = reason_words),
    HF_FIELD(TEXT, hf_schedule_skip, work_id, false, "unit that the overlap rule "
                                                     "waited for"),
    COUNT(hf_schedule_skip, created_at, "time at which this was recorded"),
};
const struct hf_shape hf_skip_shape = HF_SHAPE("skip", skip_fields);

static const struct hf_field shown_fields[] = {
    FACT("upcoming", TIMES, "the next slots"),
    FACT("skips", ROW, "an array: skipped slots, newest first", .of = &hf_skip_shape),
};
const struct hf_shape hf_schedule_shown_shape = HF_SHAPE("schedule_shown", shown_fields);

static const struct hf_field sync_fields[] = {
    COUNT(hf_sync_report, added, "schedules that were added"),
    COUNT(hf_sync_report, updated, "schedules that were changed"),
    COUNT(hf_sync_report, unchanged, "schedules that needed no change"),
    COUNT(hf_sync_report, kept, "schedules that differ from the set and were not "
                                "changed"),
    COUNT(hf_sync_report, paused, "schedules that the set does not name, now paused"),
    COUNT(hf_sync_report, removed, "schedules that the set does not name, now removed"),
};
const struct hf_shape hf_sync_shape = HF_SHAPE("sync", sync_fields);

static const struct hf_field report_fields[] = {
    COUNT(hf_schedule_report, looked_at, "schedules that were read"),
    COUNT(hf_schedule_report, made, "units that were created"),
    COUNT(hf_schedule_report, skipped, "slots that were skipped"),
    COUNT(hf_schedule_report, failed, "schedules that could not be handled"),
    COUNT(hf_schedule_report, races, "batches that another pass changed first"),
    HF_FIELD(I64, hf_schedule_report, next_at, true,
             "time of the next slot; left out if there is none",
             .optional = true),
};
const struct hf_shape hf_schedule_report_shape = HF_SHAPE("schedule_report", report_fields);
/* clang-format on */
