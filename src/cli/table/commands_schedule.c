/* What can be typed after `holdfast schedule`. */
#include "cli/cli.h"

#include <holdfast/schedule.h>

#include "cli/table/unit_options.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

#define WORD(name, word) (word),
static const char *const overlap_words[] = { HF_OVERLAPS(WORD) NULL };
static const char *const catch_up_words[] = { HF_CATCH_UPS(WORD) NULL };
#undef WORD
static const char *const day_words[] = { "or", "and", NULL };
static const char *const state_words[] = { "active", "paused", "finished", NULL };

#define NAME_OPTION                                                                      \
    {                                                                                    \
        "name", "NAME", CLI_TEXT, CLI_NEEDED | CLI_BARE, .help = "the schedule"          \
    }
#define REVISION_OPTION                                                                  \
    {                                                                                    \
        "revision", "N", CLI_INT, 0,                                                     \
            .help = "only if it is still at this revision; else exit code 7", .min = 1,  \
            .max = INT64_MAX                                                             \
    }

/* When. */
#define TIMING_OPTIONS                                                                   \
    { "cron", "EXPR", CLI_TEXT, 0,                                                       \
      .help = "five fields (minute hour day month weekday), six with the second first, " \
              "or @daily and the like" },                                                \
        { "every", "DURATION", CLI_DURATION, 0,                                          \
          .help = "an interval, counted from --start" },                                 \
        { "start", "TIME", CLI_TEXT, 0,                                                  \
          .help = "where --every counts from, RFC 3339 (default: now)" },                \
        { "at", "TIME", CLI_TEXT, 0,                                                     \
          .help = "once, at this time, RFC 3339; without an offset a local time of "     \
                  "--tz" },                                                              \
        { "tz", "ZONE", CLI_TEXT, 0,                                                     \
          .help = "IANA time zone of --cron, --at and --start (default: UTC)" },         \
    {                                                                                    \
        "days", "RULE", CLI_WORD, 0,                                                     \
            .help =                                                                      \
                "whether one of day of month and day of week is enough, or both must "   \
                "match (default: or)",                                                   \
            .words = day_words                                                           \
    }

/* What. */
#define UNIT_OPTIONS                                                                     \
    { "kind", "K", CLI_TEXT, 0, .help = "kind of its units (default: work)" },           \
        { "queue", "Q", CLI_TEXT, 0, .help = "their queue (default: default)" },         \
        { "payload",                                                                     \
          "JSON",                                                                        \
          CLI_JSON,                                                                      \
          0,                                                                             \
          .help = "their payload",                                                       \
          .limit = HF_LIMIT_PAYLOAD_BYTES },                                             \
        CLI_UNIT_OPTIONS,                                                                \
        { "overlap",                                                                     \
          "RULE",                                                                        \
          CLI_WORD,                                                                      \
          0,                                                                             \
          .help = "a slot comes while an earlier unit is unfinished: skip it, let one "  \
                  "wait, allow both, or replace the earlier one (default: skip)",        \
          .words = overlap_words },                                                      \
        { "catch-up",                                                                    \
          "RULE",                                                                        \
          CLI_WORD,                                                                      \
          0,                                                                             \
          .help = "slots that were missed: make the latest, all or none (default: "      \
                  "latest)",                                                             \
          .words = catch_up_words },                                                     \
    {                                                                                    \
        "miss-threshold", "DURATION", CLI_DURATION, 0,                                   \
            .help = "how late a slot counts as missed (default: 60s)", .min = 1          \
    }

static const struct cli_option add_options[] = {
    NAME_OPTION,
    TIMING_OPTIONS,
    UNIT_OPTIONS,
    { "paused", NULL, CLI_FLAG, 0, .help = "make nothing until it is resumed" },
    END_OPTIONS,
};

static const struct cli_option update_options[] = {
    NAME_OPTION, TIMING_OPTIONS, UNIT_OPTIONS, REVISION_OPTION, END_OPTIONS,
};

static const struct cli_option pause_options[] = {
    NAME_OPTION,
    REVISION_OPTION,
    { "reason", "R", CLI_TEXT, 0, .help = "why, for those who look at it" },
    END_OPTIONS,
};

static const struct cli_option name_options[] = { NAME_OPTION, REVISION_OPTION,
                                                  END_OPTIONS };
static const struct cli_option trigger_options[] = { NAME_OPTION, END_OPTIONS };

static const struct cli_option show_options[] = {
    NAME_OPTION,
    { "count", "N", CLI_INT, 0, .help = "slots to come that are shown (default: 5)",
      .min = 0, .max = 1000 },
    { "skips", "N", CLI_INT, 0, .help = "records of skipped slots (default: 10)",
      .min = 1, .limit = HF_LIMIT_PAGE },
    END_OPTIONS,
};

static const struct cli_option list_options[] = {
    { "state", "STATE", CLI_WORD, 0, .help = "only those", .words = state_words },
    { "set", "SET", CLI_TEXT, 0, .help = "only those of a synced set" },
    { "limit", "N", CLI_INT, 0, .help = "at most so many (default: 100)", .min = 1,
      .limit = HF_LIMIT_PAGE },
    { "after", "CURSOR", CLI_TEXT, 0, .help = "go on after an earlier page" },
    END_OPTIONS,
};

static const struct cli_option preview_options[] = {
    { "name", "NAME", CLI_TEXT, CLI_BARE,
      .help = "a schedule of the store, instead of a timing" },
    TIMING_OPTIONS,
    { "from", "TIME", CLI_TEXT, 0, .help = "slots after this, RFC 3339 (default: now)" },
    { "count", "N", CLI_INT, 0, .help = "how many (default: 5)", .min = 1, .max = 1000 },
    END_OPTIONS,
};

static const struct cli_option sync_options[] = {
    { "file", "FILE", CLI_PATH, CLI_NEEDED | CLI_BARE,
      .help = "the set, as JSON; - is stdin" },
    END_OPTIONS,
};

static const struct cli_option run_options[] = { END_OPTIONS };

static const struct cli_example add_examples[] = {
    { "every working day at nine in Berlin, summer and winter",
      "holdfast schedule add report --cron '0 9 * * MON-FRI' --tz Europe/Berlin --kind "
      "report" },
    { "every ten minutes; if one takes longer, one more may wait",
      "holdfast schedule add poll --every 10m --overlap one_waiting" },
    { "once, by the clocks of New York",
      "holdfast schedule add launch --at 2027-03-14T09:00:00 --tz America/New_York" },
    END_EXAMPLES,
};

static const struct cli_example update_examples[] = {
    { "another time, if nobody changed it meanwhile",
      "holdfast schedule update report --cron '30 8 * * MON-FRI' --revision 1" },
    END_EXAMPLES,
};

static const struct cli_example pause_examples[] = {
    { "stop for now",
      "holdfast schedule pause report --reason 'the mail server is down'" },
    END_EXAMPLES,
};

static const struct cli_example resume_examples[] = {
    { "go on from now", "holdfast schedule resume report" },
    END_EXAMPLES,
};

static const struct cli_example remove_examples[] = {
    { "remove one; its units stay", "holdfast schedule remove report" },
    END_EXAMPLES,
};

static const struct cli_example trigger_examples[] = {
    { "a unit now, beside the slots", "holdfast schedule trigger report" },
    END_EXAMPLES,
};

static const struct cli_example list_examples[] = {
    { "what is paused", "holdfast schedule list --state paused" },
    END_EXAMPLES,
};

static const struct cli_example show_examples[] = {
    { "all about one: the next slots, and which were skipped and why",
      "holdfast schedule show report" },
    END_EXAMPLES,
};

static const struct cli_example preview_examples[] = {
    { "when this would fire around the end of summer time",
      "holdfast schedule preview --cron '30 2 * * *' --tz Europe/Berlin --from "
      "2026-10-24T00:00:00Z --count 3" },
    { "the next slots of a schedule", "holdfast schedule preview report" },
    END_EXAMPLES,
};

static const struct cli_example sync_examples[] = {
    { "from a file kept beside the code", "holdfast schedule sync schedules.json" },
    END_EXAMPLES,
};

static const struct cli_example run_examples[] = {
    { "make what is due, where no monitor runs", "holdfast schedule run" },
    END_EXAMPLES,
};

const struct cli_command cli_schedule_commands[] = {
    { "schedule add", "add a schedule",
      "Needs one of --cron, --every and --at. Each slot makes one unit of work: source "
      "scheduler, source id the name, run id the slot. Adding the same again changes "
      "nothing; another definition under the same name is refused with 7. `holdfast "
      "monitor` makes the units.",
      add_options, add_examples, CLI_STORE, "human", "4 6 7 8 9", cmd_schedule_add,
      check_schedule },
    { "schedule update", "change a schedule",
      "What is not given stays. Its next slot stays too, unless its timing changes.",
      update_options, update_examples, CLI_MUST_EXIST, "human", "3 6 7 8 9",
      cmd_schedule_update, check_schedule },
    { "schedule pause", "make nothing until it is resumed", NULL, pause_options,
      pause_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9", cmd_schedule_pause, NULL },
    { "schedule resume", "go on from now",
      "Slots that passed meanwhile are recorded as skipped.", name_options,
      resume_examples, CLI_MUST_EXIST, "human", "3 4 6 7 8 9", cmd_schedule_resume,
      NULL },
    { "schedule trigger", "make a unit now, beside the slots",
      "Where the overlap rule forbids one: exit code 7. The next slot stays.",
      trigger_options, trigger_examples, CLI_MUST_EXIST | CLI_ROW, "human", "3 6 7 8 9",
      cmd_schedule_trigger, NULL },
    { "schedule remove", "remove a schedule; its units stay", NULL, name_options,
      remove_examples, CLI_MUST_EXIST, "human", "3 6 7 8 9", cmd_schedule_remove, NULL },
    { "schedule list", "list schedules and their next slots", NULL, list_options,
      list_examples, CLI_READS, "human", "6 9", cmd_schedule_list, NULL },
    { "schedule show", "show one with its next slots and those that were skipped", NULL,
      show_options, show_examples, CLI_READS, "human", "3 6 9", cmd_schedule_show, NULL },
    { "schedule preview", "print the next slots of a timing",
      "As instants of UTC. Needs no store unless it is asked by name.", preview_options,
      preview_examples, CLI_READS | CLI_OPENS, NULL, "3 6 9", cmd_schedule_preview,
      check_preview },
    { "schedule sync", "bring a set of schedules in line with a file",
      "One transaction: what the file names is added or updated; what the set has beside "
      "is kept, paused or removed, as the file says (default: paused).",
      sync_options, sync_examples, CLI_STORE, "human", "3 6 7 8 9", cmd_schedule_sync,
      NULL },
    { "schedule run", "make what is due now, once",
      "One pass, as `holdfast monitor` makes it again and again. Any number may run.",
      run_options, run_examples, CLI_MUST_EXIST, "system", "6 8 9", cmd_schedule_run,
      NULL },
    { .path = NULL },
};
