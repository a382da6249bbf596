/* Cron expressions: T42 to T44, T46 and the day rules, without zones. */
#include "support/unit.h"

#include <string.h>

#include "base/civil.h"
#include "core/schedule/cron.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hf_cron parse_with(const char *text, bool both)
{
    struct hf_cron cron;
    struct hf_err err = { 0 };
    if (hf_cron_parse(text, both, &cron, &err))
        fail_msg("%s: %s", text, err.message);
    return cron;
}

static int64_t seconds_of(const char *text)
{
    hf_ms ms = 0;
    struct hf_err err = { 0 };
    if (hf_parse_instant(text, "from", &ms, &err))
        fail_msg("%s: %s", text, err.message);
    return ms / 1000;
}

struct step {
    const char *cron;
    const char *from;
    const char *next[4]; /* strictly after it, in order */
};

static void check_steps(const struct step *steps, size_t count, bool both)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_cron cron = parse_with(steps[i].cron, both);
        int64_t at = seconds_of(steps[i].from);
        for (size_t k = 0; k < 4 && steps[i].next[k]; k++) {
            char text[HF_INSTANT_TEXT];
            at = hf_cron_match(&cron, at + 1);
            if (strcmp(hf_instant_text(at * 1000, text), steps[i].next[k]) != 0)
                fail_msg("%s after %s: %zu. is %s, not %s", steps[i].cron, steps[i].from,
                         k + 1, text, steps[i].next[k]);
        }
    }
}

/* T42: strictly after; five fields fire at second 0. T43: six fields. */
static void t42_t43_next_is_strictly_after_at_second_zero_or_as_named(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "*/5 * * * *",
          "2026-01-01T12:00:00Z",
          { "2026-01-01T12:05:00Z", "2026-01-01T12:10:00Z" } },
        { "*/5 * * * *", "2026-01-01T11:59:59Z", { "2026-01-01T12:00:00Z" } },
        { "*/5 * * * *", "2026-01-01T12:04:59Z", { "2026-01-01T12:05:00Z" } },
        { "*/30 * * * * *",
          "2026-01-01T12:00:05Z",
          { "2026-01-01T12:00:30Z", "2026-01-01T12:01:00Z" } },
        { "15,45 30 9 * * *",
          "2026-01-01T09:30:15Z",
          { "2026-01-01T09:30:45Z", "2026-01-02T09:30:15Z" } },
        { "59 59 23 31 12 *", "2026-12-31T23:59:59Z", { "2027-12-31T23:59:59Z" } },
        { "* * * * * *", "2026-12-31T23:59:59Z", { "2027-01-01T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

/* T44: ranges, steps on ranges, names, Sunday as 0 and 7. */
static void t44_ranges_steps_names_and_lists(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "0 9-17/4 * * MON-FRI",
          "2026-11-13T17:00:00Z", /* a Friday */
          { "2026-11-16T09:00:00Z", "2026-11-16T13:00:00Z", "2026-11-16T17:00:00Z",
            "2026-11-17T09:00:00Z" } },
        { "0 0 * * 0", "2026-11-15T00:00:00Z", { "2026-11-22T00:00:00Z" } },
        { "0 0 * * 7", "2026-11-15T00:00:00Z", { "2026-11-22T00:00:00Z" } },
        { "0 0 * * sun", "2026-11-14T00:00:00Z", { "2026-11-15T00:00:00Z" } },
        { "0 0 * * 5-7",
          "2026-11-12T00:00:00Z",
          { "2026-11-13T00:00:00Z", "2026-11-14T00:00:00Z", "2026-11-15T00:00:00Z",
            "2026-11-20T00:00:00Z" } },
        { "0 0 * * FRI-MON",
          "2026-11-14T00:00:00Z",
          { "2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-20T00:00:00Z" } },
        { "0 22-2/2 * * *",
          "2026-11-14T12:00:00Z",
          { "2026-11-14T22:00:00Z", "2026-11-15T00:00:00Z", "2026-11-15T02:00:00Z",
            "2026-11-15T22:00:00Z" } },
        { "10/20 * * * *",
          "2026-11-14T12:00:00Z",
          { "2026-11-14T12:10:00Z", "2026-11-14T12:30:00Z", "2026-11-14T12:50:00Z",
            "2026-11-14T13:10:00Z" } },
        { "0 0 1 JAN,jul *",
          "2026-01-01T00:00:00Z",
          { "2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z" } },
        { "0 12 * * 1-5/2",
          "2026-11-15T00:00:00Z",
          { "2026-11-16T12:00:00Z", "2026-11-18T12:00:00Z", "2026-11-20T12:00:00Z" } },
        { "  0\t0  1 1 *  ", "2026-05-05T00:00:00Z", { "2027-01-01T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

static void t44_days_of_month_and_week_are_joined_by_or(void **state)
{
    (void)state;
    static const struct step steps[] = {
        /* The 13th, and every Friday. */
        { "0 0 13 * 5",
          "2026-11-01T00:00:00Z",
          { "2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z",
            "2026-11-27T00:00:00Z" } },
        { "0 0 13 12 5", "2026-12-12T00:00:00Z", { "2026-12-13T00:00:00Z" } },
        { "0 0 ? * 5", "2026-11-13T00:00:00Z", { "2026-11-20T00:00:00Z" } },
        { "0 0 13 * ?", "2026-11-13T00:00:00Z", { "2026-12-13T00:00:00Z" } },
        /* A step is a restriction, also one of *. */
        { "0 0 */10 * 1",
          "2026-11-01T00:00:00Z",
          { "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z", "2026-11-11T00:00:00Z",
            "2026-11-16T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

static void t44_with_the_option_both_days_must_match(void **state)
{
    (void)state;
    static const struct step steps[] = {
        /* Friday the 13th. */
        { "0 0 13 * 5",
          "2026-01-01T00:00:00Z",
          { "2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z", "2026-11-13T00:00:00Z",
            "2027-08-13T00:00:00Z" } },
        /* 29 February on a Monday; 2100 is no leap year. */
        { "0 0 29 2 1",
          "2026-01-01T00:00:00Z",
          { "2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z", "2112-02-29T00:00:00Z" } },
        { "0 0 13 * *", "2026-11-13T00:00:00Z", { "2026-12-13T00:00:00Z" } },
        { "0 0 * * 5", "2026-11-13T00:00:00Z", { "2026-11-20T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), true);
}

static void the_last_the_nearest_and_the_nth_day(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "0 0 L * *",
          "2027-12-31T00:00:00Z",
          { "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z",
            "2028-04-30T00:00:00Z" } },
        { "0 0 L-2 * *",
          "2026-01-31T00:00:00Z",
          { "2026-02-26T00:00:00Z", "2026-03-29T00:00:00Z" } },
        { "0 0 1,L * *",
          "2026-11-01T00:00:00Z",
          { "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z" } },
        /* 15 November 2026 is a Sunday, 15 August a Saturday. */
        { "0 0 15W * *",
          "2026-11-01T00:00:00Z",
          { "2026-11-16T00:00:00Z", "2026-12-15T00:00:00Z" } },
        { "0 0 15W * *", "2026-08-01T00:00:00Z", { "2026-08-14T00:00:00Z" } },
        /* Within the month: 1 August 2026 is a Saturday, 31 May a Sunday. */
        { "0 0 1W * *", "2026-07-31T00:00:00Z", { "2026-08-03T00:00:00Z" } },
        { "0 0 31W 5 *", "2026-05-01T00:00:00Z", { "2026-05-29T00:00:00Z" } },
        { "0 0 LW * *",
          "2026-05-01T00:00:00Z",
          { "2026-05-29T00:00:00Z", "2026-06-30T00:00:00Z" } },
        { "0 0 * * 5L",
          "2026-11-01T00:00:00Z",
          { "2026-11-27T00:00:00Z", "2026-12-25T00:00:00Z", "2027-01-29T00:00:00Z" } },
        { "0 0 * * FRIL", "2026-11-01T00:00:00Z", { "2026-11-27T00:00:00Z" } },
        { "0 0 * * 2#1",
          "2026-11-01T00:00:00Z",
          { "2026-11-03T00:00:00Z", "2026-12-01T00:00:00Z" } },
        { "0 0 * * MON#5",
          "2026-11-01T00:00:00Z",
          { "2026-11-30T00:00:00Z", "2027-03-29T00:00:00Z" } },
        { "0 0 * 2 1#5", "2026-01-01T00:00:00Z", { "2044-02-29T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

static void macros_are_their_five_fields(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "@yearly", "2026-01-01T00:00:00Z", { "2027-01-01T00:00:00Z" } },
        { "@annually", "2026-01-01T00:00:00Z", { "2027-01-01T00:00:00Z" } },
        { "@monthly", "2026-01-01T00:00:00Z", { "2026-02-01T00:00:00Z" } },
        { "@weekly", "2026-11-15T00:00:00Z", { "2026-11-22T00:00:00Z" } },
        { "@daily", "2026-02-28T00:00:00Z", { "2026-03-01T00:00:00Z" } },
        { "@midnight", "2026-02-28T00:00:00Z", { "2026-03-01T00:00:00Z" } },
        { "@hourly", "2026-02-28T23:00:00Z", { "2026-03-01T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

static void leap_days_are_found_over_centuries(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { "0 0 29 2 *",
          "2026-01-01T00:00:00Z",
          { "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z" } },
        { "0 0 29 2 *", "2096-02-29T00:00:00Z", { "2104-02-29T00:00:00Z" } },
        { "0 0 29 2 *", "2399-03-01T00:00:00Z", { "2400-02-29T00:00:00Z" } },
        { "0 0 31 * *",
          "2026-01-31T00:00:00Z",
          { "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z" } },
        { "8 14 3 19 1 *", "2038-01-19T03:14:07Z", { "2038-01-19T03:14:08Z" } },
        { "0 0 1 1 *", "2038-01-19T03:14:08Z", { "2039-01-01T00:00:00Z" } },
    };
    check_steps(steps, COUNT(steps), false);
}

static void refused(const char *text, bool both, const char *says)
{
    struct hf_cron cron;
    struct hf_err err = { 0 };
    if (hf_cron_parse(text, both, &cron, &err) == 0)
        fail_msg("\"%s\" was taken", text ? text : "(null)");
    assert_string_equal(err.field, "cron");
    if (!strstr(err.message, says))
        fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, err.message, says);
}

/* T43: 4 or 7 fields, minute 61, weekday 8. T38 at its source. */
static void t43_t38_bad_expressions_say_which_field_is_wrong(void **state)
{
    (void)state;
    refused(NULL, false, "empty");
    refused("", false, "empty");
    refused("   ", false, "empty");
    refused("* * * *", false, "it has 4");
    refused("* * * * * * *", false, "it has 7");
    refused("61 * * * *", false, "minute must be 0 to 59, not \"61\"");
    refused("60 * * * * *", false, "second must be 0 to 59");
    refused("* 24 * * *", false, "hour must be 0 to 23");
    refused("* * 0 * *", false, "day of month must be 1 to 31");
    refused("* * 32 * *", false, "day of month must be 1 to 31");
    refused("* * * 13 *", false, "month must be 1 to 12");
    refused("* * * 0 *", false, "month must be 1 to 12");
    refused("* * * * 8", false, "day of week must be 0 to 7");
    refused("99999999999999999999 * * * *", false, "minute must be 0 to 59");
    refused("*/0 * * * *", false, "a step of minute must be 1 to 60");
    refused("*/61 * * * *", false, "a step of minute must be 1 to 60");
    refused("*/ * * * *", false, "a step of minute");
    refused("1- * * * *", false, "minute");
    refused("1,,2 * * * *", false, "minute");
    refused(", * * * *", false, "minute");
    refused("1-2-3 * * * *", false, "not understood");
    refused("a * * * *", false, "minute \"a\" is not understood");
    refused("* * * foo *", false, "month \"foo\" is not understood");
    refused("* * * * fr", false, "day of week \"fr\" is not understood");
    refused("? * * * *", false, "minute");
    refused("* L * * *", false, "hour");
    refused("* * L-31 * *", false, "0 to 30 days");
    refused("* * * * 5#6", false, "1 to 5");
    refused("* * * * 5#", false, "1 to 5");
    refused("* * * * L", false, "day of week");
    refused("*\n* * * * *", false, "not understood");
    refused("-1 * * * *", false, "minute");
    refused("1.5 * * * *", false, "not understood");
    refused("@reboot", false, "not a macro");
    refused("@every 5m", false, "not a macro");
    refused("\xff * * * *", false, "cron");
}

/* T46: 30 February. */
static void t46_what_never_fires_is_refused(void **state)
{
    (void)state;
    refused("0 0 30 2 *", false, "never fires");
    refused("0 0 31 2,4,6,9,11 *", false, "never fires");
    refused("0 0 L-30 2,4 *", false, "never fires");
    refused("0 0 30W 2 *", false, "never fires");
    refused("0 0 1 1 2#2", true, "never fires"); /* both: the 1st is a first Tuesday */
    /* With OR the weekday saves it. */
    (void)parse_with("0 0 30 2 1", false);
    refused("0 0 30 2 1", true, "never fires");
}

static void an_expression_of_256_bytes_is_read_and_one_more_is_not(void **state)
{
    (void)state;
    char text[260];
    memset(text, ' ', sizeof(text));
    memcpy(text, "* * * * *", 9);
    text[256] = '\0';
    (void)parse_with(text, false);
    text[256] = ' ';
    text[257] = '\0';
    struct hf_cron cron;
    struct hf_err err = { 0 };
    assert_int_equal(hf_cron_parse(text, false, &cron, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "cron");
}

static void repeating_is_said_by_star_range_or_step_in_the_time(void **state)
{
    (void)state;
    static const char *const repeats[] = { "* 1 * * *",    "0 * * * *",    "1-5 1 * * *",
                                           "*/30 1 * * *", "5/10 1 * * *", "0 1-2 * * *",
                                           "* 0 1 * * *",  "@hourly" };
    static const char *const fixed[] = { "30 1 * * *", "0,30 1,2 * * *", "0 0 1 * *",
                                         "0 30 1 */2 1-6 1-5", "@daily" };
    for (size_t i = 0; i < COUNT(repeats); i++)
        assert_true(parse_with(repeats[i], false).repeats);
    for (size_t i = 0; i < COUNT(fixed); i++)
        assert_false(parse_with(fixed[i], false).repeats);
}

static void nothing_lies_beyond_the_year_9999(void **state)
{
    (void)state;
    struct hf_cron cron = parse_with("0 0 1 1 *", false);
    assert_int_equal(hf_cron_match(&cron, seconds_of("9999-01-01T00:00:01Z")), -1);
    assert_int_equal(hf_cron_match(&cron, seconds_of("9998-01-01T00:00:01Z")),
                     seconds_of("9999-01-01T00:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t42_t43_next_is_strictly_after_at_second_zero_or_as_named),
        cmocka_unit_test(t44_ranges_steps_names_and_lists),
        cmocka_unit_test(t44_days_of_month_and_week_are_joined_by_or),
        cmocka_unit_test(t44_with_the_option_both_days_must_match),
        cmocka_unit_test(the_last_the_nearest_and_the_nth_day),
        cmocka_unit_test(macros_are_their_five_fields),
        cmocka_unit_test(leap_days_are_found_over_centuries),
        cmocka_unit_test(t43_t38_bad_expressions_say_which_field_is_wrong),
        cmocka_unit_test(t46_what_never_fires_is_refused),
        cmocka_unit_test(an_expression_of_256_bytes_is_read_and_one_more_is_not),
        cmocka_unit_test(repeating_is_said_by_star_range_or_step_in_the_time),
        cmocka_unit_test(nothing_lies_beyond_the_year_9999),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
