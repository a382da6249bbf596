/* The inputs of operations on schedules. */
#include "core/inputs/inputs.h"
#include "core/inputs/unit_inputs.h"

static const char *const day_words[] = { "or", "and", NULL };
static const char *const state_words[] = { "active", "paused", "finished", NULL };

/* clang-format off */
#define END { .name = NULL }
#define NAME                                                                             \
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, "name of the schedule",     \
      .bound = HF_BOUND_SCHEDULE_NAME_BYTES, HF_IN_AT(hf_schedule_spec, name) }
#define REVISION                                                                         \
    { "revision", "N", HF_IN_INT, 0,                                                     \
      "change the schedule only if it still has this revision; otherwise exit code 7", .min = 1,                \
      .max = INT64_MAX, HF_IN_AT(hf_schedule_request, revision) }

/* When. */
#define TIMING                                                                           \
    { "cron", "EXPR", HF_IN_TEXT, 0,                                                     \
      "five fields (minute hour day month weekday), six with the second first, "         \
      "or @daily and the like", .bound = HF_BOUND_CRON_BYTES,                            \
      HF_IN_AT(hf_schedule_spec, cron) },                                                 \
    { "every_ms", "DURATION", HF_IN_MS, 0, "an interval, counted from --start",          \
      .option = "every", HF_IN_AT(hf_schedule_spec, every_ms) },                          \
    { "start", "TIME", HF_IN_TEXT, 0,                                                    \
      "where --every counts from, RFC 3339 (default: now)",                              \
      HF_IN_AT(hf_schedule_spec, start) },                                                \
    { "at", "TIME", HF_IN_TEXT, 0,                                                       \
      "once, at this time, RFC 3339; without an offset a local time of --tz",            \
      HF_IN_AT(hf_schedule_spec, at) },                                                   \
    { "zone", "ZONE", HF_IN_TEXT, 0,                                                     \
      "IANA time zone of --cron, --at and --start (default: UTC)", .option = "tz",       \
      HF_IN_AT(hf_schedule_spec, zone) },                                                 \
    { "days", "RULE", HF_IN_WORD, 0,                                                     \
      "whether one of day of month and day of week is enough, or both must "             \
      "match (default: or)", .words = day_words, HF_IN_AT(hf_schedule_spec, both_days) }

/* What. */
#define UNIT                                                                             \
    { "kind", "K", HF_IN_TEXT, 0, "kind of the units (default: work)",                   \
      HF_IN_AT(hf_schedule_spec, kind) },                                                 \
    { "queue", "Q", HF_IN_TEXT, 0, "queue of the units (default: default)",              \
      HF_IN_AT(hf_schedule_spec, queue) },                                                \
    { "payload", "JSON", HF_IN_JSON, 0, "payload of the units, as JSON",                 \
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_schedule_spec, payload) },             \
    { "wake_session", "SESSION", HF_IN_TEXT, 0,                                          \
      "create inputs of this session, which wake its agent, instead of units",           \
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_schedule_spec, wake_session) },            \
    HF_UNIT_INPUTS(hf_schedule_spec),                                                     \
    { "overlap", "RULE", HF_IN_WORD, 0,                                                  \
      "a slot comes while an earlier unit is unfinished: skip it, let one "              \
      "wait, allow both, or replace the earlier one (default: skip)",                    \
      .words = hf_overlap_words, .min = 1,                                               \
      HF_IN_AT(hf_schedule_spec, overlap) },                                              \
    { "catch_up", "RULE", HF_IN_WORD, 0,                                                 \
      "slots that were missed: make the latest, all or none (default: latest)",          \
      .words = hf_catch_up_words, .min = 1, HF_IN_AT(hf_schedule_spec, catch_up) },       \
    { "miss_threshold_ms", "DURATION", HF_IN_MS, 0,                                      \
      "how late a slot counts as missed (default: 60s)", .min = 1,                       \
      .option = "miss-threshold", HF_IN_AT(hf_schedule_spec, miss_threshold_ms) }

const struct hf_input hf_schedule_inputs[] = {
    NAME,
    TIMING,
    UNIT,
    { "paused", NULL, HF_IN_FLAG, 0, "create the schedule paused: no units until it "
                                     "is resumed",
      HF_IN_AT(hf_schedule_spec, paused) },
    END,
};

const struct hf_input hf_schedule_update_inputs[] = { NAME, TIMING, UNIT, REVISION, END };

const struct hf_input hf_schedule_pause_inputs[] = {
    NAME,
    REVISION,
    { "reason", "R", HF_IN_TEXT, 0, "reason, which `schedule show` prints",
      .bound = HF_BOUND_REASON_BYTES, HF_IN_AT(hf_schedule_request, reason) },
    END,
};

const struct hf_input hf_schedule_name_inputs[] = { NAME, REVISION, END };
const struct hf_input hf_schedule_run_now_inputs[] = { NAME, END };

const struct hf_input hf_schedule_show_inputs[] = {
    NAME,
    { "count", "N", HF_IN_INT, 0, "slots to come that are shown (default: 5)",
      .max = HF_SLOTS_MAX, HF_IN_AT(hf_schedule_request, count) },
    { "skips", "N", HF_IN_INT, 0, "records of skipped slots (default: 10)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_schedule_request, skips) },
    END,
};

const struct hf_input hf_schedule_list_inputs[] = {
    { "state", "STATE", HF_IN_WORD, 0, "only schedules in this state", .words = state_words,
      HF_IN_AT(hf_schedule_filter, state) },
    { "origin", "SET", HF_IN_TEXT, 0, "only schedules of this synced set", .option =
      "set",
      HF_IN_AT(hf_schedule_filter, origin) },
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_schedule_filter, limit) },
    { "after", "CURSOR", HF_IN_TEXT, 0, "continue after this cursor, from the "
                                        "previous page",
      HF_IN_AT(hf_schedule_filter, after) },
    { "newest", NULL, HF_IN_FLAG, 0, "newest first, instead of by name",
      HF_IN_AT(hf_schedule_filter, newest) },
    END,
};

const struct hf_input hf_preview_inputs[] = {
    { "name", "NAME", HF_IN_TEXT, HF_IN_BARE,
      "a schedule of the store, instead of a timing", .bound = HF_BOUND_SCHEDULE_NAME_BYTES,
      HF_IN_AT(hf_schedule_spec, name) },
    TIMING,
    { "from", "TIME", HF_IN_INSTANT, 0, "show slots after this time, RFC 3339 "
                                        "(default: now)",
      HF_IN_AT(hf_schedule_request, from) },
    { "count", "N", HF_IN_INT, 0, "number of slots (default: 5)", .min = 1, .max = HF_SLOTS_MAX,
      HF_IN_AT(hf_schedule_request, count) },
    END,
};

const struct hf_input hf_sync_inputs[] = {
    { "set", "FILE", HF_IN_JSON, HF_IN_NEEDED | HF_IN_BARE | HF_IN_FILE,
      "the set, as JSON; - is stdin", .bound = HF_BOUND_CALL_LINE_BYTES, .option = "file",
      HF_IN_AT(hf_sync_request, set) },
    END,
};
/* clang-format on */
