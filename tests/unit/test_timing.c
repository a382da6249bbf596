/* Slots in zones: T45, T47, and the same found by trying every minute. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/civil.h"
#include "core/schedule/timing.h"
#include "store/schedule/zonefile.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hf_zones zones;

static int open_zones(void **state)
{
    (void)state;
    hf_zones_init(&zones, hf_alloc_system());
    return 0;
}

static int close_zones(void **state)
{
    (void)state;
    hf_zones_fini(&zones);
    return 0;
}

static struct hf_timing timing_of(const char *cron, const char *zone)
{
    struct hf_timing timing = { .kind = HF_TIMING_CRON };
    struct hf_err err = { 0 };
    if (hf_cron_parse(cron, false, &timing.cron, &err) ||
        hf_zones_get(&zones, zone, &timing.zone, &err))
        fail_msg("%s in %s: %s", cron, zone, err.message);
    return timing;
}

static hf_ms at(const char *text)
{
    hf_ms ms = 0;
    struct hf_err err = { 0 };
    if (hf_parse_instant(text, "at", &ms, &err))
        fail_msg("%s: %s", text, err.message);
    return ms;
}

struct step {
    const char *zone;
    const char *cron;
    const char *from;
    const char *next[5];
};

static void check_steps(const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_timing timing = timing_of(steps[i].cron, steps[i].zone);
        hf_ms now = at(steps[i].from);
        for (size_t k = 0; k < 5 && steps[i].next[k]; k++) {
            char text[HF_INSTANT_TEXT];
            now = hf_timing_next(&timing, now);
            if (strcmp(hf_instant_text(now, text), steps[i].next[k]) != 0)
                fail_msg("%s in %s after %s: %zu. is %s, not %s", steps[i].cron,
                         steps[i].zone, steps[i].from, k + 1, text, steps[i].next[k]);
        }
    }
}

static void t45_the_same_local_time_is_another_instant_in_summer(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "America/New_York",
          "30 6 * * *",
          "2026-01-15T00:00:00Z",
          { "2026-01-15T11:30:00Z" } },
        { "America/New_York",
          "30 6 * * *",
          "2026-07-15T00:00:00Z",
          { "2026-07-15T10:30:00Z" } },
        { "Asia/Kolkata",
          "0 0 * * *",
          "2026-03-28T12:00:00Z",
          { "2026-03-28T18:30:00Z", "2026-03-29T18:30:00Z" } },
        { "UTC",
          "30 2 * * *",
          "2026-03-29T00:00:00Z",
          { "2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z" } },
        /* Beyond the tables. */
        { "Europe/Berlin",
          "0 12 * * *",
          "2050-07-01T00:00:00Z",
          { "2050-07-01T10:00:00Z" } },
        { "Europe/Berlin",
          "0 12 * * *",
          "2050-01-01T00:00:00Z",
          { "2050-01-01T11:00:00Z" } },
    };
    check_steps(steps, COUNT(steps));
}

static void t47_a_time_in_a_gap_moves_to_its_end(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "America/New_York",
          "30 2 * * *",
          "2026-03-07T12:00:00Z",
          { "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z" } },
        { "America/New_York",
          "0 2 * * *",
          "2026-03-07T12:00:00Z",
          { "2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z" } },
        { "Europe/Berlin",
          "30 2 * * *",
          "2026-03-28T12:00:00Z",
          { "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z" } },
        /* 02:30 and 03:00 are one instant, once. */
        { "Europe/Berlin",
          "0,30 2,3 * * *",
          "2026-03-28T12:00:00Z",
          { "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z" } },
        { "Europe/Berlin",
          "*/30 * * * *",
          "2026-03-29T00:00:00Z",
          { "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z",
            "2026-03-29T02:00:00Z" } },
        { "Europe/Berlin",
          "15 * * * *",
          "2026-03-29T00:00:00Z",
          { "2026-03-29T00:15:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z" } },
        /* Once a year, and only in the gap. */
        { "Europe/Berlin",
          "30 2 29 3 *",
          "2026-01-01T00:00:00Z",
          { "2026-03-29T01:00:00Z", "2027-03-29T00:30:00Z" } },
        /* The half-hour gap: 02:00 to 02:30. */
        { "Australia/Lord_Howe",
          "15 2 * * *",
          "2026-10-02T12:00:00Z",
          { "2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z" } },
        { "Australia/Lord_Howe",
          "45 2 * * *",
          "2026-10-03T12:00:00Z",
          { "2026-10-03T15:45:00Z" } },
        /* Midnight did not exist in Sao Paulo on 4 November 2018. */
        { "America/Sao_Paulo",
          "0 0 * * *",
          "2018-11-03T12:00:00Z",
          { "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z" } },
        /* Nor did all of 30 December 2011 in Samoa. */
        { "Pacific/Apia",
          "0 12 * * *",
          "2011-12-29T00:00:00Z",
          { "2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z" } },
    };
    check_steps(steps, COUNT(steps));
}

static void t47_a_fixed_time_in_a_fold_fires_once_at_the_first(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "America/New_York",
          "30 1 * * *",
          "2026-10-31T12:00:00Z",
          { "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z" } },
        /* Asked between the copies, and in the second. */
        { "America/New_York",
          "30 1 * * *",
          "2026-11-01T05:30:00Z",
          { "2026-11-02T06:30:00Z" } },
        { "America/New_York",
          "30 1 * * *",
          "2026-11-01T06:10:00Z",
          { "2026-11-02T06:30:00Z" } },
        { "Europe/Berlin",
          "0,30 2 * * *",
          "2026-10-24T12:00:00Z",
          { "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z" } },
        { "Europe/Berlin",
          "0 3 * * *",
          "2026-10-24T12:00:00Z",
          { "2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z" } },
        /* 01:30 to 02:00 twice. */
        { "Australia/Lord_Howe",
          "45 1 * * *",
          "2026-04-04T12:00:00Z",
          { "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z" } },
        /* Midnight twice: Sao Paulo went back at 24:00 on 17 February 2018. */
        { "America/Sao_Paulo",
          "30 23 * * *",
          "2018-02-17T12:00:00Z",
          { "2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z" } },
    };
    check_steps(steps, COUNT(steps));
}

static void t47_a_repeating_one_fires_in_both_copies(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "America/New_York",
          "*/30 * * * *",
          "2026-11-01T04:45:00Z",
          { "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z",
            "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z" } },
        { "America/New_York",
          "*/30 1 * * *",
          "2026-11-01T05:45:00Z",
          { "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:00:00Z" } },
        /* Only that night: what follows the fold is a year away. */
        { "Europe/Berlin",
          "*/30 2 25 10 *",
          "2026-10-25T00:30:00Z",
          { "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2027-10-25T00:00:00Z" } },
        { "Australia/Lord_Howe",
          "*/15 1 * * *",
          "2026-04-04T14:30:00Z",
          { "2026-04-04T14:45:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:15:00Z",
            "2026-04-05T14:30:00Z" } },
    };
    check_steps(steps, COUNT(steps));
}

static void far_dates_are_found_in_zones_too(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "Europe/Berlin",
          "0 0 * 2 1#5",
          "2026-01-01T00:00:00Z",
          { "2044-02-28T23:00:00Z", "2072-02-28T23:00:00Z", "2112-02-28T23:00:00Z" } },
        { "America/New_York",
          "0 0 29 2 *",
          "2096-03-01T00:00:00Z",
          { "2104-02-29T05:00:00Z" } },
        { "Europe/Berlin",
          "8 14 4 19 1 *",
          "2038-01-19T03:14:07Z",
          { "2038-01-19T03:14:08Z" } },
    };
    check_steps(steps, COUNT(steps));
}

/* T42: a moment within a second does not repeat its slot. */
static void t42_parts_of_a_second_do_not_repeat_a_slot(void **state)
{
    (void)state;
    struct hf_timing timing = timing_of("*/5 * * * *", "UTC");
    assert_int_equal(hf_timing_next(&timing, at("2026-01-01T12:05:00.001Z")),
                     at("2026-01-01T12:10:00Z"));
    assert_int_equal(hf_timing_next(&timing, at("2026-01-01T12:04:59.999Z")),
                     at("2026-01-01T12:05:00Z"));
    assert_int_equal(hf_timing_next(&timing, at("2026-01-01T12:05:00.999Z")),
                     at("2026-01-01T12:10:00Z"));
}

static void intervals_keep_to_their_anchor(void **state)
{
    (void)state;
    struct hf_timing timing = { .kind = HF_TIMING_INTERVAL,
                                .every_ms = 90000,
                                .anchor_at = 1000000 };
    assert_int_equal(hf_timing_next(&timing, 0), 1000000);
    assert_int_equal(hf_timing_next(&timing, 999999), 1000000);
    assert_int_equal(hf_timing_next(&timing, 1000000), 1090000);
    assert_int_equal(hf_timing_next(&timing, 1090001), 1180000);
    assert_int_equal(hf_timing_last(&timing, 0, 1000000000000), 1000000000000);
    assert_int_equal(hf_timing_last(&timing, 0, 999999999999), 999999910000);
    assert_int_equal(hf_timing_next(&timing, HF_TIME_END_MS - 1), 0);
    timing.kind = HF_TIMING_ONCE;
    assert_int_equal(hf_timing_next(&timing, 999999), 1000000);
    assert_int_equal(hf_timing_next(&timing, 1000000), 0);
    assert_int_equal(hf_timing_last(&timing, 0, 2000000), 1000000);
    assert_int_equal(hf_timing_last(&timing, 0, 999999), 0);
}

static void the_last_slot_of_a_stretch_is_the_last_by_walking(void **state)
{
    (void)state;
    static const char *const crons[] = { "*/7 * * * *", "15 3 * * *", "*/10 * * * * *",
                                         "30 1,2 * * 0", "0 0 1 * *" };
    uint64_t seed = 5;
    for (size_t i = 0; i < COUNT(crons); i++) {
        struct hf_timing timing = timing_of(crons[i], "Europe/Berlin");
        for (int round = 0; round < 20; round++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            hf_ms from = at("2026-10-20T00:00:00Z") + (hf_ms)(seed >> 33) % 86400000;
            hf_ms until = from + (hf_ms)(seed >> 20) % (6 * 86400000);
            hf_ms last = 0;
            int64_t count = 0;
            for (hf_ms slot = hf_timing_next(&timing, from); slot && slot <= until;
                 slot = hf_timing_next(&timing, slot), count++)
                last = slot;
            assert_int_equal(hf_timing_last(&timing, from, until), last);
            assert_int_equal(hf_timing_count(&timing, from, until, 1000000), count);
            assert_int_equal(hf_timing_count(&timing, from, until, 3),
                             count < 3 ? count : 3);
        }
    }
}

/* ---- by trying every minute -------------------------------------------------------- */

#define FIRST_MINUTE (INT64_C(1735689600) / 60) /* 2025-01-01 */
#define MINUTES (60 * 24 * (365 * 3 + 1))       /* three years and a day */

/* What the system's library says the clocks show, in minutes of a zoneless calendar. */
static int64_t shown[MINUTES + 1];

static void fill_shown(const char *zone)
{
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
    for (int64_t i = 0; i <= MINUTES; i++) {
        time_t utc = (time_t)((FIRST_MINUTE + i) * 60);
        struct tm tm;
        assert_non_null(localtime_r(&utc, &tm));
        shown[i] = FIRST_MINUTE + i + tm.tm_gmtoff / 60;
    }
    assert_int_equal(unsetenv("TZ"), 0);
}

/* A pattern as plain lists, matched by division. */
struct pattern {
    const char *cron;
    int minute_step, minute; /* every `step`, or that one */
    int hour_step, hour;
    int day;     /* 0: any */
    int weekday; /* -1: any; with a day either is enough */
};

static bool shows(const struct pattern *p, int64_t local)
{
    int64_t days = local / 1440;
    int minute = (int)(local % 60), hour = (int)(local / 60 % 24);
    if (p->minute_step ? minute % p->minute_step : minute != p->minute)
        return false;
    if (p->hour_step ? hour % p->hour_step : hour != p->hour)
        return false;
    bool day = hf_date_of(days).day == p->day;
    bool weekday = (days + 4) % 7 == p->weekday;
    if (p->day && p->weekday >= 0)
        return day || weekday;
    return (!p->day || day) && (p->weekday < 0 || weekday);
}

static bool fires(const struct pattern *p, int64_t i)
{
    int64_t jump = i > 0 ? shown[i] - shown[i - 1] - 1 : 0;
    for (int64_t missing = 1; missing <= jump; missing++)
        if (shows(p, shown[i - 1] + missing))
            return true; /* the end of a gap counts for what was in it */
    if (!shows(p, shown[i]))
        return false;
    if (p->minute_step || p->hour_step)
        return true;
    for (int64_t back = 1; back <= 180 && back <= i; back++)
        if (shown[i - back] == shown[i])
            return false; /* shown before */
    return true;
}

static void t47_every_minute_of_three_years_agrees_with_a_plain_search(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata",
        "UTC",           "Africa/Casablanca"
    };
    static const struct pattern patterns[] = {
        { "*/30 * * * *", 30, 0, 1, 0, 0, -1 },  { "30 2 * * *", 0, 30, 0, 2, 0, -1 },
        { "30 1 * * *", 0, 30, 0, 1, 0, -1 },    { "0 3 * * *", 0, 0, 0, 3, 0, -1 },
        { "45 * * * *", 0, 45, 1, 0, 0, -1 },    { "15 2 * * 0", 0, 15, 0, 2, 0, 0 },
        { "*/20 */3 1 * 0", 20, 0, 3, 0, 1, 0 }, { "0 0 31 * *", 0, 0, 0, 0, 31, -1 },
        { "*/7 1 * * *", 7, 0, 0, 1, 0, -1 },
    };
    for (size_t z = 0; z < COUNT(names); z++) {
        fill_shown(names[z]);
        for (size_t k = 0; k < COUNT(patterns); k++) {
            struct hf_timing timing = timing_of(patterns[k].cron, names[z]);
            hf_ms next = hf_timing_next(&timing, FIRST_MINUTE * 60000);
            for (int64_t i = 1; i < MINUTES; i++) {
                hf_ms now = (FIRST_MINUTE + i) * 60000;
                if (fires(&patterns[k], i) != (next == now))
                    fail_msg("%s in %s: minute %lld, next %lld", patterns[k].cron,
                             names[z], (long long)now, (long long)next);
                if (next == now)
                    next = hf_timing_next(&timing, now);
            }
        }
    }
}

/* Random expressions: the next slot is later, matches what the clocks then show or ends a
 * gap, and asking from anywhere before it returns the same. */
static void next_is_strictly_later_and_the_same_from_anywhere_before(void **state)
{
    (void)state;
    static const char *const names[] = { "Europe/Berlin", "America/New_York",
                                         "Australia/Lord_Howe", "America/Sao_Paulo",
                                         "Pacific/Apia" };
    static const char *const crons[] = {
        "*/13 */5 * * * *", "7 11-14/2 2 * * 0,6", "0 0 0 L * *",  "0 30 1-3 * 3,10 7",
        "5 59 23 31 12 *",  "0 0 2 1W * *",        "30 * 2 * * *", "0 15 2 * * 0#5",
    };
    uint64_t seed = 11;
    for (size_t i = 0; i < COUNT(names) * COUNT(crons); i++) {
        struct hf_timing timing = timing_of(crons[i / COUNT(names)],
                                            names[i % COUNT(names)]);
        for (int round = 0; round < 200; round++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            hf_ms from = (hf_ms)(seed >> 20) % 4000000000000;
            hf_ms next = hf_timing_next(&timing, from);
            assert_true(next > from);
            hf_ms between = from + (hf_ms)((seed >> 8) % (uint64_t)(next - from));
            assert_int_equal(hf_timing_next(&timing, between), next);
            assert_int_equal(hf_timing_next(&timing, next - 1), next);
            struct hf_zone_span span;
            hf_zone_at(timing.zone, next / 1000, &span);
            int64_t local = next / 1000 + span.offset;
            assert_true(hf_cron_match(&timing.cron, local) == local ||
                        (span.from == next / 1000 && span.before < span.offset));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t45_the_same_local_time_is_another_instant_in_summer),
        cmocka_unit_test(t47_a_time_in_a_gap_moves_to_its_end),
        cmocka_unit_test(t47_a_fixed_time_in_a_fold_fires_once_at_the_first),
        cmocka_unit_test(t47_a_repeating_one_fires_in_both_copies),
        cmocka_unit_test(far_dates_are_found_in_zones_too),
        cmocka_unit_test(t42_parts_of_a_second_do_not_repeat_a_slot),
        cmocka_unit_test(intervals_keep_to_their_anchor),
        cmocka_unit_test(the_last_slot_of_a_stretch_is_the_last_by_walking),
        cmocka_unit_test(t47_every_minute_of_three_years_agrees_with_a_plain_search),
        cmocka_unit_test(next_is_strictly_later_and_the_same_from_anywhere_before),
    };
    return cmocka_run_group_tests(tests, open_zones, close_zones);
}
