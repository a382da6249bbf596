/* Strict text: UTF-8, keys, numbers, durations, times. */
#include "support/unit.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/text.h"

struct bytes {
    const char *at;
    size_t len;
};
#define BYTES(literal)                                                                   \
    {                                                                                    \
        literal, sizeof(literal) - 1                                                     \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct bytes well_formed[] = {
    BYTES(""),
    BYTES("a"),
    BYTES("\0"),
    BYTES("\x7f"),
    BYTES("\xc2\x80"),         /* U+0080, the first of two bytes */
    BYTES("\xdf\xbf"),         /* U+07FF */
    BYTES("\xe0\xa0\x80"),     /* U+0800, the first of three */
    BYTES("\xed\x9f\xbf"),     /* U+D7FF, before the surrogates */
    BYTES("\xee\x80\x80"),     /* U+E000, after them */
    BYTES("\xef\xbf\xbf"),     /* U+FFFF */
    BYTES("\xf0\x90\x80\x80"), /* U+10000, the first of four */
    BYTES("\xf4\x8f\xbf\xbf"), /* U+10FFFF, the last */
};

static const struct bytes ill_formed[] = {
    BYTES("\x80"), /* a lone continuation byte */
    BYTES("\xbf"),
    BYTES("\xc0\x80"),         /* overlong NUL */
    BYTES("\xc0\xaf"),         /* overlong '/' */
    BYTES("\xc1\xbf"),         /* overlong U+007F */
    BYTES("\xe0\x80\xaf"),     /* overlong in three bytes */
    BYTES("\xe0\x9f\xbf"),     /* overlong U+07FF */
    BYTES("\xf0\x80\x80\xaf"), /* overlong in four bytes */
    BYTES("\xf0\x8f\xbf\xbf"), /* overlong U+FFFF */
    BYTES("\xed\xa0\x80"),     /* U+D800, a surrogate */
    BYTES("\xed\xbf\xbf"),     /* U+DFFF */
    BYTES("\xf4\x90\x80\x80"), /* U+110000 */
    BYTES("\xf5\x80\x80\x80"),
    BYTES("\xf8\x88\x80\x80\x80"),
    BYTES("\xfe"),
    BYTES("\xff"),
    BYTES("\xc2"), /* truncated */
    BYTES("\xe2\x82"),
    BYTES("\xf0\x9f\x98"),
    BYTES("\xc2\x41"), /* a character where a continuation byte must be */
    BYTES("\xe2\x82\x41"),
    BYTES("\xe2\x41\xac"),
    BYTES("\xf0\x9f\x98\x41"),
    BYTES("\xf0\x9f\x41\x80"),
};

static void utf8_accepts_the_edges_of_each_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(well_formed); i++) {
        assert_true(hf_utf8_valid(well_formed[i].at, well_formed[i].len));
        assert_int_equal(hf_utf8_next(well_formed[i].at, well_formed[i].len),
                         well_formed[i].len);
    }
}

static void utf8_refuses_overlong_surrogate_truncated(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ill_formed); i++) {
        assert_false(hf_utf8_valid(ill_formed[i].at, ill_formed[i].len));
        assert_int_equal(hf_utf8_next(ill_formed[i].at, ill_formed[i].len), 0);
    }
}

/* The check goes eight bytes a step: a fault must be found wherever it is. */
static void utf8_finds_a_fault_at_any_place(void **state)
{
    (void)state;
    for (size_t at = 0; at < 40; at++) {
        for (size_t i = 0; i < COUNT(ill_formed); i++) {
            char text[48];
            memset(text, 'x', sizeof(text));
            memcpy(text + at, ill_formed[i].at, ill_formed[i].len);
            assert_false(hf_utf8_valid(text, sizeof(text)));
        }
        for (size_t i = 0; i < COUNT(well_formed); i++) {
            char text[48];
            memset(text, 'x', sizeof(text));
            memcpy(text + at, well_formed[i].at, well_formed[i].len);
            assert_true(hf_utf8_valid(text, sizeof(text)));
        }
    }
}

static void utf8_cut_never_splits_a_character(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 + 2 + 3 + 4 + 1 */
    const size_t expected[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11 };
    for (size_t len = 0; len < COUNT(expected); len++)
        assert_int_equal(hf_utf8_cut(text, len), expected[len]);
    assert_int_equal(hf_utf8_cut("\x80\x80\x80\x80\x80", 5), 5); /* nothing to save */
}

static void keys_at_the_limit_pass_and_one_byte_more_does_not(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    char key[193];
    memset(key, 'k', sizeof(key));
    key[191] = '\0';
    assert_int_equal(hf_check_key(key, HF_MAX_KEY_BYTES, "queue", &err), 0);
    assert_int_equal(err.code, 0);
    key[191] = 'k';
    key[192] = '\0';
    assert_int_equal(hf_check_key(key, HF_MAX_KEY_BYTES, "queue", &err), HF_ETOOBIG);
    assert_string_equal(err.field, "queue");
    assert_string_equal(err.message, "queue must be at most 191 bytes");
}

static void keys_are_required_unless_optional(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(hf_check_key(NULL, 191, "kind", &err), HF_EINVAL);
    assert_string_equal(err.message, "kind is required");
    assert_int_equal(hf_check_key("", 191, "kind", &err), HF_EINVAL);
    assert_string_equal(err.message, "kind must not be empty");
    assert_int_equal(hf_check_key_opt(NULL, 191, "lane", NULL), 0);
    assert_int_equal(hf_check_key_opt("", 191, "lane", NULL), HF_EINVAL);
    assert_int_equal(hf_check_key_opt("l", 191, "lane", NULL), 0);
}

static void keys_have_no_control_bytes_and_are_utf8(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(hf_check_key("a b/\xc3\xa9\xf0\x9f\x98\x80", 191, "k", &err), 0);
    assert_int_equal(hf_check_key("ab\n", 191, "k", &err), HF_EINVAL);
    assert_string_equal(err.message,
                        "k must not contain control characters (byte 2 is 0x0a)");
    assert_int_equal(hf_check_key("a\x7f", 191, "k", &err), HF_EINVAL);
    assert_int_equal(hf_check_key("\x1f", 191, "k", &err), HF_EINVAL);
    assert_int_equal(hf_check_key("\xed\xa0\x80", 191, "k", &err), HF_EINVAL);
    assert_string_equal(err.message, "k must be UTF-8");
}

static void texts_may_have_lines_and_be_empty(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(hf_check_text(NULL, 10, "reason", &err), 0);
    assert_int_equal(hf_check_text("", 10, "reason", &err), 0);
    assert_int_equal(hf_check_text("a\r\n\tb", 5, "reason", &err), 0);
    assert_int_equal(hf_check_text("abcdef", 5, "reason", &err), HF_ETOOBIG);
    assert_int_equal(hf_check_text("a\x1b[0m", 10, "reason", &err), HF_EINVAL);
    assert_int_equal(hf_check_text("\xff", 10, "reason", &err), HF_EINVAL);
    assert_string_equal(err.field, "reason");
}

static void numbers_are_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        { "0", 0 },
        { "-0", 0 },
        { "42", 42 },
        { "-7", -7 },
        { "007", 7 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
        { "00000000000000000000000000000001", 1 },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t value = 99;
        assert_int_equal(
            hf_parse_i64(good[i].text, INT64_MIN, INT64_MAX, "n", &value, NULL), 0);
        assert_int_equal(value, good[i].value);
    }
}

static void numbers_refuse_anything_else(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "-",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1.0",
                                       "1e3",
                                       "0x",
                                       "--",
                                       "1_",
                                       "\xd9\xa1",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "99999999999999999999999" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t value = 99;
        struct hf_err err = { 0 };
        assert_int_equal(hf_parse_i64(bad[i], INT64_MIN, INT64_MAX, "n", &value, &err),
                         HF_EINVAL);
        assert_string_equal(err.field, "n");
        assert_int_equal(value, 99);
    }
    assert_int_equal(hf_parse_i64(NULL, 0, 1, "n", &(int64_t){ 0 }, NULL), HF_EINVAL);
}

static void numbers_keep_to_their_range(void **state)
{
    (void)state;
    int64_t value = 99;
    struct hf_err err = { 0 };
    assert_int_equal(hf_parse_i64("0", 0, 9, "priority", &value, &err), 0);
    assert_int_equal(value, 0);
    assert_int_equal(hf_parse_i64("9", 0, 9, "priority", &value, &err), 0);
    assert_int_equal(value, 9);
    assert_int_equal(hf_parse_i64("10", 0, 9, "priority", &value, &err), HF_EINVAL);
    assert_string_equal(err.message, "priority must be from 0 to 9");
    assert_int_equal(hf_parse_i64("-1", 0, 9, "priority", &value, &err), HF_EINVAL);
    assert_int_equal(value, 9);
}

static void durations_are_read_in_every_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_ms ms;
    } good[] = {
        { "250ms", 250 },
        { "45s", 45000 },
        { "5m", 300000 },
        { "2h", 7200000 },
        { "7d", 604800000 },
        { "30", 30000 },
        { "0", 0 },
        { "0.25", 250 },
        { "1.5h", 5400000 },
        { "0.001s", 1 },
        { "1.000ms", 1 },
        { "1.50000000000000000000h", 5400000 },
        { "0.0009765625d", 84375 }, /* ten digits, and still a whole number */
        { "36525d", 3155760000000 },
        { "3155760000000ms", 3155760000000 },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        hf_ms ms = -1;
        assert_int_equal(hf_parse_duration(good[i].text, "ttl", &ms, NULL), 0);
        assert_int_equal(ms, good[i].ms);
    }
}

static void refuses_duration(const char *text, const char *message)
{
    hf_ms ms = -1;
    struct hf_err err = { 0 };
    assert_int_equal(hf_parse_duration(text, "ttl", &ms, &err), HF_EINVAL);
    assert_string_equal(err.field, "ttl");
    assert_string_equal(err.message, message);
    assert_int_equal(ms, -1);
}

static void duration_refuses_other_forms(void **state)
{
    (void)state;
    static const char *const bad[] = { "",    "s",     "-1s",    "+1s",  " 1s", "1s ",
                                       "1 s", "1.s",   ".5s",    "1S",   "1w",  "1us",
                                       "1e3", "1m30s", "1.5.5s", "1,5s", "inf", "1y" };
    for (size_t i = 0; i < COUNT(bad); i++)
        refuses_duration(bad[i],
                         "ttl must be a duration such as 250ms, 45s, 5m, 2h or 7d");
    refuses_duration(NULL, "ttl is required");
}

static void duration_refuses_overflow(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "36526d",
        "3155760000001ms",
        "36525.001d",
        "9223372036854775807",
        "18446744073709551616d",
        "99999999999999999999999999999999999999ms",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        refuses_duration(bad[i], "ttl must be at most 36525d");
}

static void duration_refuses_parts_of_a_millisecond(void **state)
{
    (void)state;
    static const char *const bad[] = { "0.5ms", "1.0005s", "0.00000000001d",
                                       "0.3333333333d" };
    for (size_t i = 0; i < COUNT(bad); i++)
        refuses_duration(bad[i], "ttl is finer than a millisecond");
}

static void durations_are_shown_in_two_units_at_most(void **state)
{
    (void)state;
    static const struct {
        hf_ms ms;
        const char *text;
    } cases[] = {
        { 0, "0s" },
        { 1, "1ms" },
        { 250, "250ms" },
        { 1500, "1s 500ms" },
        { 45000, "45s" },
        { 90000, "1m 30s" },
        { 90500, "1m 30s" },
        { 60001, "1m" },
        { 7200000, "2h" },
        { 273600000, "3d 4h" },
        { 273900000, "3d 4h" },
        { 86459000, "1d" },
        { -45000, "-45s" },
        { INT64_MAX, "106751991167d 7h" },
        { INT64_MIN, "-106751991167d 7h" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[24];
        assert_ptr_equal(hf_duration_text(cases[i].ms, out, sizeof(out)), out);
        assert_string_equal(out, cases[i].text);
    }
}

static void duration_text_keeps_to_its_room(void **state)
{
    (void)state;
    char out[8] = "#######";
    assert_string_equal(hf_duration_text(90000, out, 5), "1m 3");
    assert_string_equal(out + 5, "##");
    assert_string_equal(hf_duration_text(90000, out, 1), "");
    out[0] = '#';
    (void)hf_duration_text(90000, out, 0);
    assert_int_equal(out[0], '#');
}

static void times_are_utc_with_milliseconds(void **state)
{
    (void)state;
    static const struct {
        hf_ms ms;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { 946684799000, "1999-12-31T23:59:59.000Z" },
        { 951782400000, "2000-02-29T00:00:00.000Z" },
        { 1735646400001, "2024-12-31T12:00:00.001Z" },
        { 1794735373250, "2026-11-15T09:36:13.250Z" },
        { 4107542399999, "2100-02-28T23:59:59.999Z" }, /* 2100 has no leap day */
        { 4107542400000, "2100-03-01T00:00:00.000Z" },
        { 253402300799999, "9999-12-31T23:59:59.999Z" },
        { 253402300800000, "-" },
        { -1, "-" },
        { INT64_MIN, "-" },
        { INT64_MAX, "-" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[25];
        assert_string_equal(hf_time_text(cases[i].ms, out), cases[i].text);
    }
}

static void null_is_the_same_only_as_null(void **state)
{
    (void)state;
    assert_true(hf_same(NULL, NULL));
    assert_false(hf_same(NULL, ""));
    assert_false(hf_same("", NULL));
    assert_true(hf_same("", ""));
    assert_true(hf_same("lane", "lane"));
    assert_false(hf_same("lane", "Lane"));
    assert_false(hf_same("lane", "lanes"));
}

static void hex_is_lower_case(void **state)
{
    (void)state;
    char out[9];
    hf_hex("\x00\x1f\xa0\xff", 4, out);
    assert_string_equal(out, "001fa0ff");
    hf_hex("", 0, out);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_accepts_the_edges_of_each_length),
        cmocka_unit_test(utf8_refuses_overlong_surrogate_truncated),
        cmocka_unit_test(utf8_finds_a_fault_at_any_place),
        cmocka_unit_test(utf8_cut_never_splits_a_character),
        cmocka_unit_test(keys_at_the_limit_pass_and_one_byte_more_does_not),
        cmocka_unit_test(keys_are_required_unless_optional),
        cmocka_unit_test(keys_have_no_control_bytes_and_are_utf8),
        cmocka_unit_test(texts_may_have_lines_and_be_empty),
        cmocka_unit_test(numbers_are_read_whole),
        cmocka_unit_test(numbers_refuse_anything_else),
        cmocka_unit_test(numbers_keep_to_their_range),
        cmocka_unit_test(durations_are_read_in_every_unit),
        cmocka_unit_test(duration_refuses_other_forms),
        cmocka_unit_test(duration_refuses_overflow),
        cmocka_unit_test(duration_refuses_parts_of_a_millisecond),
        cmocka_unit_test(durations_are_shown_in_two_units_at_most),
        cmocka_unit_test(duration_text_keeps_to_its_room),
        cmocka_unit_test(times_are_utc_with_milliseconds),
        cmocka_unit_test(null_is_the_same_only_as_null),
        cmocka_unit_test(hex_is_lower_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
