/* What can be typed after `holdfast schedule`. */
#include "op/op.h"

#include <holdfast/schedule.h>

#include "op/unit_inputs.h"

#define WORD(name, word) (word),
static const char *const overlap_words[] = { HF_OVERLAPS(WORD) NULL };
static const char *const catch_up_words[] = { HF_CATCH_UPS(WORD) NULL };
#undef WORD
static const char *const day_words[] = { "or", "and", NULL };
static const char *const state_words[] = { "active", "paused", "finished", NULL };

#define NAME_OPTION                                                                      \
    {                                                                                    \
        "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE, .help = "the schedule"    \
    }
#define REVISION_OPTION                                                                  \
    {                                                                                    \
        "revision", "N", HF_IN_INT, 0,                                                   \
            .help = "only if it is still at this revision; else exit code 7", .min = 1,  \
            .max = INT64_MAX                                                             \
    }

/* When. */
#define TIMING_OPTIONS                                                                   \
    { "cron", "EXPR", HF_IN_TEXT, 0,                                                     \
      .help = "five fields (minute hour day month weekday), six with the second first, " \
              "or @daily and the like" },                                                \
        { "every", "DURATION", HF_IN_MS, 0,                                              \
          .help = "an interval, counted from --start" },                                 \
        { "start", "TIME", HF_IN_TEXT, 0,                                                \
          .help = "where --every counts from, RFC 3339 (default: now)" },                \
        { "at", "TIME", HF_IN_TEXT, 0,                                                   \
          .help = "once, at this time, RFC 3339; without an offset a local time of "     \
                  "--tz" },                                                              \
        { "tz", "ZONE", HF_IN_TEXT, 0,                                                   \
          .help = "IANA time zone of --cron, --at and --start (default: UTC)" },         \
    {                                                                                    \
        "days", "RULE", HF_IN_WORD, 0,                                                   \
            .help =                                                                      \
                "whether one of day of month and day of week is enough, or both must "   \
                "match (default: or)",                                                   \
            .words = day_words                                                           \
    }

/* What. */
#define UNIT_OPTIONS                                                                     \
    { "kind", "K", HF_IN_TEXT, 0, .help = "kind of its units (default: work)" },         \
        { "queue", "Q", HF_IN_TEXT, 0, .help = "their queue (default: default)" },       \
        { "payload",                                                                     \
          "JSON",                                                                        \
          HF_IN_JSON,                                                                    \
          0,                                                                             \
          .help = "their payload",                                                       \
          .limit = HF_LIMIT_PAYLOAD_BYTES },                                             \
        OP_UNIT_INPUTS,                                                                  \
        { "overlap",                                                                     \
          "RULE",                                                                        \
          HF_IN_WORD,                                                                    \
          0,                                                                             \
          .help = "a slot comes while an earlier unit is unfinished: skip it, let one "  \
                  "wait, allow both, or replace the earlier one (default: skip)",        \
          .words = overlap_words },                                                      \
        { "catch-up",                                                                    \
          "RULE",                                                                        \
          HF_IN_WORD,                                                                    \
          0,                                                                             \
          .help = "slots that were missed: make the latest, all or none (default: "      \
                  "latest)",                                                             \
          .words = catch_up_words },                                                     \
    {                                                                                    \
        "miss-threshold", "DURATION", HF_IN_MS, 0,                                       \
            .help = "how late a slot counts as missed (default: 60s)", .min = 1          \
    }

static const struct hf_input add_options[] = {
    NAME_OPTION,
    TIMING_OPTIONS,
    UNIT_OPTIONS,
    { "paused", NULL, HF_IN_FLAG, 0, .help = "make nothing until it is resumed" },
    { .name = NULL },
};

static const struct hf_input update_options[] = {
    NAME_OPTION, TIMING_OPTIONS, UNIT_OPTIONS, REVISION_OPTION, { .name = NULL },
};

static const struct hf_input pause_options[] = {
    NAME_OPTION,
    REVISION_OPTION,
    { "reason", "R", HF_IN_TEXT, 0, .help = "why, for those who look at it" },
    { .name = NULL },
};

static const struct hf_input name_options[] = { NAME_OPTION,
                                                REVISION_OPTION,
                                                { .name = NULL } };
static const struct hf_input trigger_options[] = { NAME_OPTION, { .name = NULL } };

static const struct hf_input show_options[] = {
    NAME_OPTION,
    { "count", "N", HF_IN_INT, 0, .help = "slots to come that are shown (default: 5)",
      .min = 0, .max = 1000 },
    { "skips", "N", HF_IN_INT, 0, .help = "records of skipped slots (default: 10)",
      .min = 1, .limit = HF_LIMIT_PAGE },
    { .name = NULL },
};

static const struct hf_input list_options[] = {
    { "state", "STATE", HF_IN_WORD, 0, .help = "only those", .words = state_words },
    { "set", "SET", HF_IN_TEXT, 0, .help = "only those of a synced set" },
    { "limit", "N", HF_IN_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", HF_IN_TEXT, 0, .help = "go on after an earlier page" },
    { .name = NULL },
};

static const struct hf_input preview_options[] = {
    { "name", "NAME", HF_IN_TEXT, HF_IN_BARE,
      .help = "a schedule of the store, instead of a timing" },
    TIMING_OPTIONS,
    { "from", "TIME", HF_IN_TEXT, 0,
      .help = "slots after this, RFC 3339 (default: now)" },
    { "count", "N", HF_IN_INT, 0, .help = "how many (default: 5)", .min = 1,
      .max = 1000 },
    { .name = NULL },
};

static const struct hf_input sync_options[] = {
    { "file", "FILE", HF_IN_PATH, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the set, as JSON; - is stdin" },
    { .name = NULL },
};

static const struct hf_input run_options[] = { { .name = NULL } };

static const struct op_example add_examples[] = {
    { "every working day at nine in Berlin, summer and winter",
      "holdfast schedule add report --cron '0 9 * * MON-FRI' --tz Europe/Berlin --kind "
      "report" },
    { "every ten minutes; if one takes longer, one more may wait",
      "holdfast schedule add poll --every 10m --overlap one_waiting" },
    { "once, by the clocks of New York",
      "holdfast schedule add launch --at 2027-03-14T09:00:00 --tz America/New_York" },
    { .what = NULL },
};

static const struct op_example update_examples[] = {
    { "another time, if nobody changed it meanwhile",
      "holdfast schedule update report --cron '30 8 * * MON-FRI' --revision 1" },
    { .what = NULL },
};

static const struct op_example pause_examples[] = {
    { "stop for now",
      "holdfast schedule pause report --reason 'the mail server is down'" },
    { .what = NULL },
};

static const struct op_example resume_examples[] = {
    { "go on from now", "holdfast schedule resume report" },
    { .what = NULL },
};

static const struct op_example remove_examples[] = {
    { "remove one; its units stay", "holdfast schedule remove report" },
    { .what = NULL },
};

static const struct op_example trigger_examples[] = {
    { "a unit now, beside the slots", "holdfast schedule trigger report" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "what is paused", "holdfast schedule list --state paused" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "all about one: the next slots, and which were skipped and why",
      "holdfast schedule show report" },
    { .what = NULL },
};

static const struct op_example preview_examples[] = {
    { "when this would fire around the end of summer time",
      "holdfast schedule preview --cron '30 2 * * *' --tz Europe/Berlin --from "
      "2026-10-24T00:00:00Z --count 3" },
    { "the next slots of a schedule", "holdfast schedule preview report" },
    { .what = NULL },
};

static const struct op_example sync_examples[] = {
    { "from a file kept beside the code", "holdfast schedule sync schedules.json" },
    { .what = NULL },
};

static const struct op_example run_examples[] = {
    { "make what is due, where no monitor runs", "holdfast schedule run" },
    { .what = NULL },
};

const struct op op_schedule_rows[] = {
    { "schedule.add", "add a schedule",
      "Needs one of --cron, --every and --at. Each slot makes one unit of work: source "
      "scheduler, source id the name, run id the slot. Adding the same again changes "
      "nothing; another definition under the same name is refused with 7. `holdfast "
      "monitor` makes the units.",
      add_options, .examples = add_examples, .flags = OP_STORE, .actor_kind = "human",
      .exits = "4 6 7 8 9" },
    { "schedule.update", "change a schedule",
      "What is not given stays. Its next slot stays too, unless its timing changes.",
      update_options, .examples = update_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "human", .exits = "3 6 7 8 9" },
    { "schedule.pause", "make nothing until it is resumed", NULL, pause_options,
      .examples = pause_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "schedule.resume", "go on from now",
      "Slots that passed meanwhile are recorded as skipped.", name_options,
      .examples = resume_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 4 6 7 8 9" },
    { "schedule.trigger", "make a unit now, beside the slots",
      "Where the overlap rule forbids one: exit code 7. The next slot stays.",
      trigger_options, .examples = trigger_examples,
      .flags = OP_CREATES | OP_MUST_EXIST | OP_SHELL, .actor_kind = "human",
      .exits = "3 6 7 8 9" },
    { "schedule.remove", "remove a schedule; its units stay", NULL, name_options,
      .examples = remove_examples, .flags = OP_MUST_EXIST, .actor_kind = "human",
      .exits = "3 6 7 8 9" },
    { "schedule.list", "list schedules and their next slots", NULL, list_options,
      .examples = list_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "6 9" },
    { "schedule.show", "show one with its next slots and those that were skipped", NULL,
      show_options, .examples = show_examples, .flags = OP_READS, .actor_kind = "human",
      .exits = "3 6 9" },
    { "schedule.preview", "print the next slots of a timing",
      "As instants of UTC. Needs no store unless it is asked by name.", preview_options,
      .examples = preview_examples, .flags = OP_READS | OP_OPENS, .exits = "3 6 9" },
    { "schedule.sync", "bring a set of schedules in line with a file",
      "One transaction: what the file names is added or updated; what the set has beside "
      "is kept, paused or removed, as the file says (default: paused).",
      sync_options, .examples = sync_examples, .flags = OP_STORE, .actor_kind = "human",
      .exits = "3 6 7 8 9" },
    { "schedule.run", "make what is due now, once",
      "One pass, as `holdfast monitor` makes it again and again. Any number may run.",
      run_options, .examples = run_examples, .flags = OP_MUST_EXIST,
      .actor_kind = "system", .exits = "6 8 9" },
    { .name = NULL },
};
