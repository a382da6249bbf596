/* Days, dates and instants. */
#include "support/unit.h"

#include <string.h>

#include "base/civil.h"

static void every_day_of_1600_years_goes_there_and_back(void **state)
{
    (void)state;
    struct hf_date before = { 1199, 12, 31 };
    for (int64_t days = hf_days_of(1200, 1, 1); days < hf_days_of(2800, 1, 1); days++) {
        struct hf_date date = hf_date_of(days);
        assert_int_equal(hf_days_of(date.year, date.month, date.day), days);
        bool next_day = date.year == before.year && date.month == before.month &&
                        date.day == before.day + 1;
        bool month_begins = date.day == 1 &&
                            before.day == hf_month_days(before.year, before.month);
        assert_true(next_day || month_begins);
        before = date;
    }
}

static void known_days_have_their_weekday(void **state)
{
    (void)state;
    assert_int_equal(hf_days_of(1970, 1, 1), 0);
    assert_int_equal(hf_weekday_of(0), 4);                        /* Thursday */
    assert_int_equal(hf_weekday_of(hf_days_of(2000, 2, 29)), 2);  /* Tuesday */
    assert_int_equal(hf_weekday_of(hf_days_of(2026, 11, 15)), 0); /* Sunday */
    assert_int_equal(hf_weekday_of(hf_days_of(1969, 7, 20)), 0);  /* Sunday */
    assert_int_equal(hf_month_days(1900, 2), 28);
    assert_int_equal(hf_month_days(2000, 2), 29);
    assert_int_equal(hf_day_of_seconds(-1), -1);
    assert_int_equal(hf_second_of_day(-1), 86399);
}

static void instants_are_written_without_needless_digits(void **state)
{
    (void)state;
    char out[HF_INSTANT_TEXT];
    assert_string_equal(hf_instant_text(0, out), "1970-01-01T00:00:00Z");
    assert_string_equal(hf_instant_text(1774747800000, out), "2026-03-29T01:30:00Z");
    assert_string_equal(hf_instant_text(1774747800250, out), "2026-03-29T01:30:00.250Z");
    assert_string_equal(hf_instant_text(HF_TIME_END_MS - 1, out),
                        "9999-12-31T23:59:59.999Z");
    assert_string_equal(hf_instant_text(HF_TIME_END_MS, out), "-");
    assert_string_equal(hf_instant_text(-1, out), "-");
}

static hf_ms instant(const char *text)
{
    hf_ms ms = -1;
    struct hf_err err = { 0 };
    return hf_parse_instant(text, "from", &ms, &err) ? -1 : ms;
}

static void rfc_3339_is_read_with_its_offset(void **state)
{
    (void)state;
    assert_int_equal(instant("2026-03-29T01:30:00Z"), 1774747800000);
    assert_int_equal(instant("2026-03-29t01:30:00z"), 1774747800000);
    assert_int_equal(instant("2026-03-29 03:30:00+02:00"), 1774747800000);
    assert_int_equal(instant("2026-03-28T20:00:00-05:30"), 1774747800000);
    assert_int_equal(instant("2026-03-29T01:30:00.25Z"), 1774747800250);
    assert_int_equal(instant("2026-03-29T01:30:00.2509999Z"), 1774747800250);
    assert_int_equal(instant("1970-01-01T00:00:00Z"), 0);
}

static void a_time_that_is_none_is_refused_naming_the_field(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "2026",
        "2026-03-29",
        "2026-03-29T01:30Z",
        "2026-3-29T01:30:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-04-30T24:00:00Z",
        "2026-04-30T23:60:00Z",
        "2026-04-30T23:59:60Z",
        "2026-04-30T23:59:59",
        "2026-04-30T23:59:59.Z",
        "2026-04-30T23:59:59Zx",
        "2026-04-30T23:59:59+1:00",
        "2026-04-30T23:59:59+24:00",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+01:00",
        "99999-01-01T00:00:00Z",
        " 2026-03-29T01:30:00Z",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        hf_ms ms;
        struct hf_err err = { 0 };
        if (hf_parse_instant(bad[i], "from", &ms, &err) != HF_EINVAL)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_string_equal(err.field, "from");
        assert_non_null(strstr(err.message, "from"));
    }
}

static void a_time_without_an_offset_is_told_apart(void **state)
{
    (void)state;
    struct hf_typed_time time;
    struct hf_err err = { 0 };
    assert_int_equal(hf_parse_time("2026-03-29T02:30:00", "at", &time, &err), 0);
    assert_false(time.has_offset);
    assert_int_equal(time.local_ms, 1774751400000);
    assert_int_equal(hf_parse_time("2026-03-29T02:30:00-00:30", "at", &time, &err), 0);
    assert_true(time.has_offset);
    assert_int_equal(time.offset_minutes, -30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_of_1600_years_goes_there_and_back),
        cmocka_unit_test(known_days_have_their_weekday),
        cmocka_unit_test(instants_are_written_without_needless_digits),
        cmocka_unit_test(rfc_3339_is_read_with_its_offset),
        cmocka_unit_test(a_time_that_is_none_is_refused_naming_the_field),
        cmocka_unit_test(a_time_without_an_offset_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
