/* Time zones: the decoder, the rule of the footer, spans, gaps and folds. The system's own
 * library is the second opinion. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/civil.h"
#include "core/schedule/zone.h"
#include "store/schedule/zonefile.h"

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

static const struct hf_zone *zone_of(const char *name)
{
    const struct hf_zone *zone = NULL;
    struct hf_err err = { 0 };
    if (hf_zones_get(&zones, name, &zone, &err))
        fail_msg("%s: %s", name, err.message);
    return zone;
}

static int64_t at(const char *text)
{
    hf_ms ms = 0;
    struct hf_err err = { 0 };
    if (hf_parse_instant(text, "at", &ms, &err))
        fail_msg("%s: %s", text, err.message);
    return ms / 1000;
}

static int offset_at(const char *zone, const char *text)
{
    struct hf_zone_span span;
    hf_zone_at(zone_of(zone), at(text), &span);
    return span.offset;
}

/* ---- known instants ---------------------------------------------------------------- */

static void offsets_are_those_of_history_and_of_the_rule(void **state)
{
    (void)state;
    assert_int_equal(offset_at("UTC", "2026-06-01T00:00:00Z"), 0);
    assert_int_equal(offset_at("Europe/Berlin", "2026-03-29T00:59:59Z"), 3600);
    assert_int_equal(offset_at("Europe/Berlin", "2026-03-29T01:00:00Z"), 7200);
    assert_int_equal(offset_at("Europe/Berlin", "2026-10-25T00:59:59Z"), 7200);
    assert_int_equal(offset_at("Europe/Berlin", "2026-10-25T01:00:00Z"), 3600);
    /* Beyond the table, by the rule. */
    assert_int_equal(offset_at("Europe/Berlin", "2099-07-01T00:00:00Z"), 7200);
    assert_int_equal(offset_at("Europe/Berlin", "9999-12-31T00:00:00Z"), 3600);
    assert_int_equal(offset_at("America/New_York", "2026-03-08T06:59:59Z"), -18000);
    assert_int_equal(offset_at("America/New_York", "2026-03-08T07:00:00Z"), -14400);
    assert_int_equal(offset_at("America/New_York", "2026-11-01T06:00:00Z"), -18000);
    /* Half an hour, and south of the equator. */
    assert_int_equal(offset_at("Australia/Lord_Howe", "2026-04-04T14:59:59Z"), 39600);
    assert_int_equal(offset_at("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), 37800);
    assert_int_equal(offset_at("Australia/Lord_Howe", "2026-10-03T15:30:00Z"), 39600);
    assert_int_equal(offset_at("Australia/Lord_Howe", "2050-01-15T00:00:00Z"), 39600);
    /* Summer time until 2019, none since. */
    assert_int_equal(offset_at("America/Sao_Paulo", "2018-12-01T00:00:00Z"), -7200);
    assert_int_equal(offset_at("America/Sao_Paulo", "2019-12-01T00:00:00Z"), -10800);
    assert_int_equal(offset_at("America/Sao_Paulo", "2060-12-01T00:00:00Z"), -10800);
    assert_int_equal(offset_at("Asia/Kolkata", "2026-06-01T00:00:00Z"), 19800);
    assert_int_equal(offset_at("Asia/Kathmandu", "2026-06-01T00:00:00Z"), 20700);
    /* A day that was left out: 30 December 2011. */
    assert_int_equal(offset_at("Pacific/Apia", "2011-12-30T09:59:59Z"), -36000);
    assert_int_equal(offset_at("Pacific/Apia", "2011-12-30T10:00:00Z"), 50400);
    /* Summer time that is the standard, and below it in winter. */
    assert_int_equal(offset_at("Europe/Dublin", "2026-01-01T00:00:00Z"), 0);
    assert_int_equal(offset_at("Europe/Dublin", "2026-07-01T00:00:00Z"), 3600);
}

static void local_times_are_found_once_and_gaps_end_at_their_end(void **state)
{
    (void)state;
    const struct hf_zone *berlin = zone_of("Europe/Berlin");
    const struct hf_zone *lord_howe = zone_of("Australia/Lord_Howe");
    assert_int_equal(hf_zone_instant(berlin, at("2026-01-01T12:00:00Z")),
                     at("2026-01-01T11:00:00Z"));
    assert_int_equal(hf_zone_instant(berlin, at("2026-07-01T12:00:00Z")),
                     at("2026-07-01T10:00:00Z"));
    /* 02:30 does not exist: 03:00. */
    assert_int_equal(hf_zone_instant(berlin, at("2026-03-29T02:30:00Z")),
                     at("2026-03-29T01:00:00Z"));
    assert_int_equal(hf_zone_instant(berlin, at("2026-03-29T02:00:00Z")),
                     at("2026-03-29T01:00:00Z"));
    assert_int_equal(hf_zone_instant(berlin, at("2026-03-29T03:00:00Z")),
                     at("2026-03-29T01:00:00Z"));
    assert_int_equal(hf_zone_instant(berlin, at("2026-03-29T01:59:59Z")),
                     at("2026-03-29T00:59:59Z"));
    /* 02:30 comes twice: the first. */
    assert_int_equal(hf_zone_instant(berlin, at("2026-10-25T02:30:00Z")),
                     at("2026-10-25T00:30:00Z"));
    assert_int_equal(hf_zone_instant(berlin, at("2026-10-25T03:00:00Z")),
                     at("2026-10-25T02:00:00Z"));
    assert_int_equal(hf_zone_instant(lord_howe, at("2026-10-04T02:15:00Z")),
                     at("2026-10-03T15:30:00Z"));
    assert_int_equal(hf_zone_instant(lord_howe, at("2026-04-05T01:45:00Z")),
                     at("2026-04-04T14:45:00Z"));
    assert_int_equal(hf_zone_instant(&hf_zone_utc, at("2026-04-05T01:45:00Z")),
                     at("2026-04-05T01:45:00Z"));
}

/* ---- next to the system's library
 * --------------------------------------------------- */

static int libc_offset(int64_t utc)
{
    time_t seconds = utc;
    struct tm local;
    assert_non_null(localtime_r(&seconds, &local));
    return (int)local.tm_gmtoff;
}

static void compare_zone(const char *name)
{
    const struct hf_zone *zone = zone_of(name);
    assert_int_equal(setenv("TZ", name, 1), 0);
    tzset();
    struct hf_zone_span span = { 0 };
    int64_t end = at("2110-01-01T00:00:00Z");
    for (int64_t utc = at("1970-01-01T00:00:00Z"); utc < end; utc = span.until) {
        hf_zone_at(zone, utc, &span);
        if (libc_offset(utc) != span.offset)
            fail_msg("%s at %lld: %d, not %d", name, (long long)utc, span.offset,
                     libc_offset(utc));
        assert_true(span.from <= utc && utc < span.until);
        if (span.from > 0)
            assert_int_equal(libc_offset(span.from - 1), span.before);
        int64_t last = span.until < end ? span.until : end;
        for (int64_t look = utc; look < last; look += 5 * HF_DAY_S + 3607)
            assert_int_equal(libc_offset(look), span.offset);
        assert_int_equal(libc_offset(last - 1), span.offset);
    }
}

static void every_span_until_2110_is_as_the_system_has_it(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Europe/Berlin",       "America/New_York",
        "Australia/Lord_Howe", "America/Sao_Paulo",
        "Asia/Kolkata",        "Pacific/Apia",
        "Europe/Dublin",       "Africa/Casablanca",
        "America/Nuuk",        "Asia/Gaza",
        "Antarctica/Troll",    "Pacific/Kiritimati",
        "Asia/Tehran",         "America/Argentina/Buenos_Aires",
        "Etc/GMT+12",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        compare_zone(names[i]);
    assert_int_equal(unsetenv("TZ"), 0);
}

/* ---- the rule ---------------------------------------------------------------------- */

static int rule_of(const char *text, struct hf_zone_rule *rule)
{
    struct hf_err err = { 0 };
    return hf_zone_rule_read((struct hf_span){ text, strlen(text) }, rule, &err);
}

static void rules_of_every_form_are_read(void **state)
{
    (void)state;
    struct hf_zone_rule rule;
    assert_int_equal(rule_of("UTC0", &rule), 0);
    assert_int_equal(rule.standard, 0);
    assert_false(rule.has_summer);
    assert_int_equal(rule_of("<+0330>-3:30", &rule), 0);
    assert_int_equal(rule.standard, 12600);
    assert_int_equal(rule_of("CET-1CEST,M3.5.0,M10.5.0/3", &rule), 0);
    assert_int_equal(rule.standard, 3600);
    assert_int_equal(rule.summer, 7200);
    assert_int_equal(rule.begin.month, 3);
    assert_int_equal(rule.begin.second, 7200);
    assert_int_equal(rule.end.second, 10800);
    assert_int_equal(rule_of("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", &rule), 0);
    assert_int_equal(rule.summer, 39600);
    assert_int_equal(rule_of("IST-2IDT,M3.4.4/26,M10.5.0", &rule), 0);
    assert_int_equal(rule.begin.second, 26 * 3600);
    assert_int_equal(rule_of("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", &rule), 0);
    assert_int_equal(rule.begin.second, -3600);
    assert_int_equal(rule_of("AAA5BBB,J60/0,J300/1:30:15", &rule), 0);
    assert_int_equal(rule.begin.kind, HF_ZONE_JULIAN);
    assert_int_equal(rule.end.second, 5415);
    assert_int_equal(rule_of("AAA5BBB,59,300", &rule), 0);
    assert_int_equal(rule.begin.kind, HF_ZONE_ORDINAL);
}

static void rules_of_no_form_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "U0",
        "UTC",
        "UTC25",
        "UTC0x",
        "<+03-3",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J1",
        "CET-1CEST,J366,J1",
        "CET-1CEST,366,1",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/",
        "CET-1CEST,M3.5.0,M10.5.0,",
        "CET-1:60",
        "CET-1CEST,M3.5.0;M10.5.0",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_zone_rule rule;
        if (rule_of(bad[i], &rule) != HF_ECORRUPT)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

/* Julian days leave the leap day out, ordinal ones count it. */
static void julian_and_ordinal_days_differ_in_leap_years(void **state)
{
    (void)state;
    struct hf_zone zone = { .has_rule = true };
    struct hf_zone_span span;
    assert_int_equal(rule_of("AAA0BBB,J60/0,J300/0", &zone.rule), 0);
    hf_zone_at(&zone, at("2028-03-01T00:00:00Z"), &span);
    assert_int_equal(span.from, at("2028-03-01T00:00:00Z"));
    assert_int_equal(rule_of("AAA0BBB,59/0,300/0", &zone.rule), 0);
    hf_zone_at(&zone, at("2028-03-01T00:00:00Z"), &span);
    assert_int_equal(span.from, at("2028-02-29T00:00:00Z"));
}

/* RFC 8536, 3.3.1: all the year summer time. */
static void summer_time_without_end_has_no_gaps(void **state)
{
    (void)state;
    struct hf_zone zone = { .has_rule = true };
    assert_int_equal(rule_of("XXX3EDT4,0/0,J365/23", &zone.rule), 0);
    for (int64_t utc = at("2027-06-01T00:00:00Z"); utc < at("2031-01-01T00:00:00Z");
         utc += 3600) {
        struct hf_zone_span span;
        hf_zone_at(&zone, utc, &span);
        assert_int_equal(span.offset, -14400);
        assert_int_equal(span.before, -14400);
    }
}

/* ---- files ------------------------------------------------------------------------- */

/* T39: an unknown zone and a Windows name are refused, and no name leaves the folder. */
static void t39_names_that_are_no_zone_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        NULL,
        "",
        "Europe/Nowhere",
        "Mars/Olympus",
        "W. Europe Standard Time",
        "Eastern Standard Time",
        "../../../etc/passwd",
        "Europe/../Europe/Berlin",
        "/usr/share/zoneinfo/Europe/Berlin",
        "/etc/localtime",
        "Europe",
        "Europe/",
        "Europe//Berlin",
        "./Europe/Berlin",
        "tzdata.zi",
        "zone.tab",
        "leapseconds",
        "Europe/Berlin\n",
        "europe/berlin2",
        "Europe\\Berlin",
        "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/B",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct hf_zone *zone = NULL;
        struct hf_err err = { 0 };
        if (hf_zones_get(&zones, bad[i], &zone, &err) != HF_EINVAL)
            fail_msg("\"%s\" was taken", bad[i] ? bad[i] : "(null)");
        assert_string_equal(err.field, "zone");
        if (bad[i] && strlen(bad[i]) < 40 && !strchr(bad[i], '\n'))
            assert_non_null(strstr(err.message, bad[i]));
    }
}

static void a_zone_is_read_once(void **state)
{
    (void)state;
    assert_ptr_equal(zone_of("Asia/Kolkata"), zone_of("Asia/Kolkata"));
    assert_ptr_equal(zone_of("UTC"), &hf_zone_utc);
}

/* A made file: two types, one change, a rule. */
static size_t make_file(uint8_t *out, const char *footer)
{
    static const uint8_t header[20] = { 'T', 'Z', 'i', 'f', '2' };
    static const uint8_t counts[24] = { [11] = 0, [15] = 1, [19] = 2, [23] = 4 };
    static const uint8_t no_counts[24] = { [19] = 1, [23] = 1 };
    static const uint8_t old_body[7] = { 0 };
    static const uint8_t body[] = { 0,   0,   0,    0,    0x10, 0, 0, 0, /* the change */
                                    1,                             /* to the second */
                                    0,   0,   0,    0,    0,    0, /* UTC */
                                    0,   0,   0x0e, 0x10, 0,    0, /* one hour east */
                                    'A', 'A', 'A',  0 };
    size_t len = 0;
    const struct {
        const void *at;
        size_t len;
    } parts[] = {
        { header, 20 },
        { no_counts, 24 },
        { old_body, 7 },
        { header, 20 },
        { counts, 24 },
        { body, sizeof(body) },
        { footer, strlen(footer) },
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        memcpy(out + len, parts[i].at, parts[i].len);
        len += parts[i].len;
    }
    return len;
}

static int read_bytes(const uint8_t *bytes, size_t len, const struct hf_zone **ret_zone)
{
    struct hf_err err = { 0 };
    return hf_zone_read(&zones.arena, (struct hf_span){ bytes, len }, ret_zone, &err);
}

static void a_made_file_is_read_and_every_cut_of_it_is_damage(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const struct hf_zone *zone = NULL;
    size_t len = make_file(bytes, "\nAAA-1\n");
    assert_int_equal(read_bytes(bytes, len, &zone), 0);
    assert_int_equal(zone->count, 1);
    assert_int_equal(zone->at[0], 0x10000000);
    assert_int_equal(zone->first_offset, 0);
    assert_int_equal(zone->offset[0], 3600);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(read_bytes(bytes, cut, &zone), HF_ECORRUPT);
    len = make_file(bytes, "\n\n"); /* no rule: the last offset stays */
    assert_int_equal(read_bytes(bytes, len, &zone), 0);
    assert_false(zone->has_rule);
}

/* Where in the file a byte is changed, to what, and what that does. */
static void damage_is_found_where_it_matters(void **state)
{
    (void)state;
    enum { SECOND = 51, BODY = SECOND + 44 };
    static const struct {
        size_t at;
        uint8_t byte;
        int rc;
    } faults[] = {
        { 0, 'X', HF_ECORRUPT },            /* no TZif */
        { 4, 0, HF_ECORRUPT },              /* version 1 */
        { 20, 0xff, HF_ECORRUPT },          /* a count beyond the file */
        { SECOND, 'X', HF_ECORRUPT },       /* the second header */
        { SECOND + 31, 1, HF_EINVAL },      /* leap seconds */
        { SECOND + 33, 0xff, HF_ECORRUPT }, /* too many changes */
        { SECOND + 39, 0, HF_ECORRUPT },    /* no types */
        { SECOND + 38, 2, HF_ECORRUPT },    /* more than 256 of them */
        { BODY, 0x7f, HF_ECORRUPT },        /* a change beyond all time */
        { BODY + 8, 2, HF_ECORRUPT },       /* to a type that is none */
        { BODY + 15, 0x7f, HF_ECORRUPT },   /* an offset of many days */
        { BODY + 25, 'x', HF_ECORRUPT },    /* the footer's first line end */
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        uint8_t bytes[256];
        const struct hf_zone *zone = NULL;
        size_t len = make_file(bytes, "\nAAA-1\n");
        bytes[faults[i].at] = faults[i].byte;
        if (read_bytes(bytes, len, &zone) != faults[i].rc)
            fail_msg("byte %zu as %02x was not refused", faults[i].at, faults[i].byte);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_those_of_history_and_of_the_rule),
        cmocka_unit_test(local_times_are_found_once_and_gaps_end_at_their_end),
        cmocka_unit_test(every_span_until_2110_is_as_the_system_has_it),
        cmocka_unit_test(rules_of_every_form_are_read),
        cmocka_unit_test(rules_of_no_form_are_refused),
        cmocka_unit_test(julian_and_ordinal_days_differ_in_leap_years),
        cmocka_unit_test(summer_time_without_end_has_no_gaps),
        cmocka_unit_test(t39_names_that_are_no_zone_are_refused_by_name),
        cmocka_unit_test(a_zone_is_read_once),
        cmocka_unit_test(a_made_file_is_read_and_every_cut_of_it_is_damage),
        cmocka_unit_test(damage_is_found_where_it_matters),
    };
    return cmocka_run_group_tests(tests, open_zones, close_zones);
}
