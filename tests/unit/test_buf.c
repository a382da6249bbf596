/* The growing buffer: limits, sticky errors, and every allocation failing once. */
#include "support/unit.h"

#include <string.h>

#include "base/buf.h"
#include "support/fail_alloc.h"

static void an_empty_buffer_is_an_empty_string(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 10);
    assert_string_equal(hf_buf_str(&buf), "");
    assert_int_equal(hf_buf_state(&buf), 0);
    hf_buf_text(&buf, "");
    hf_buf_bytes(&buf, NULL, 0);
    assert_string_equal(hf_buf_str(&buf), "");
    assert_int_equal(buf.len, 0);
    hf_buf_fini(&buf);
}

static void appends_follow_each_other(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 1000);
    hf_buf_text(&buf, "a=");
    hf_buf_i64(&buf, -12);
    hf_buf_char(&buf, ';');
    hf_buf_hex(&buf, "\x00\x7f\xff", 3);
    hf_buf_bytes(&buf, "\0z", 2);
    assert_int_equal(buf.len, 14);
    assert_memory_equal(hf_buf_str(&buf), "a=-12;007fff\0z", 15);
    hf_buf_fini(&buf);
}

static void integers_are_written_at_their_ends(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 1000);
    const int64_t values[] = { 0, 7, -1, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        hf_buf_i64(&buf, values[i]);
        hf_buf_char(&buf, ' ');
    }
    assert_string_equal(hf_buf_str(&buf),
                        "0 7 -1 9223372036854775807 -9223372036854775808 ");
    hf_buf_fini(&buf);
}

static void the_maximum_fits_and_one_more_does_not(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 5);
    hf_buf_text(&buf, "12345");
    assert_int_equal(hf_buf_state(&buf), 0);
    assert_string_equal(hf_buf_str(&buf), "12345");
    hf_buf_char(&buf, '6');
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    hf_buf_fini(&buf);

    hf_buf_init(&buf, hf_alloc_system(), 0);
    hf_buf_text(&buf, "");
    assert_int_equal(hf_buf_state(&buf), 0);
    hf_buf_char(&buf, 'x');
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    hf_buf_fini(&buf);
}

static void hex_counts_two_bytes_each(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 6);
    hf_buf_hex(&buf, "abc", 3);
    assert_string_equal(hf_buf_str(&buf), "616263");
    hf_buf_reset(&buf);
    hf_buf_hex(&buf, "abcd", 4);
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    hf_buf_reset(&buf);
    hf_buf_hex(&buf, "", SIZE_MAX / 2 + 1);
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    hf_buf_fini(&buf);
}

static void errors_stick_and_empty_the_buffer(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 4);
    hf_buf_text(&buf, "abc");
    hf_buf_text(&buf, "de");
    hf_buf_text(&buf, "f"); /* would fit */
    hf_buf_hex(&buf, "", 0);
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    assert_string_equal(hf_buf_str(&buf), "");
    assert_int_equal(buf.len, 0);

    hf_buf_reset(&buf);
    assert_int_equal(hf_buf_state(&buf), 0);
    hf_buf_text(&buf, "wxyz");
    assert_string_equal(hf_buf_str(&buf), "wxyz");
    hf_buf_fini(&buf);
}

static void reset_keeps_the_memory(void **state)
{
    (void)state;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    struct hf_buf buf;
    hf_buf_init(&buf, &fail.alloc, 10000);
    for (int i = 0; i < 9000; i++)
        hf_buf_char(&buf, 'x');
    int64_t calls = fail.calls;
    assert_true(calls < 10); /* it doubles */
    hf_buf_reset(&buf);
    assert_string_equal(hf_buf_str(&buf), "");
    for (int i = 0; i < 9000; i++)
        hf_buf_char(&buf, 'y');
    assert_int_equal(fail.calls, calls);
    assert_int_equal(strlen(hf_buf_str(&buf)), 9000);
    hf_buf_fini(&buf);
    assert_int_equal(fail.live, 0);
}

static void a_finished_buffer_may_be_used_again(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 3);
    hf_buf_text(&buf, "toolong");
    hf_buf_fini(&buf);
    hf_buf_fini(&buf);
    hf_buf_text(&buf, "abc");
    assert_string_equal(hf_buf_str(&buf), "abc");
    hf_buf_fini(&buf);
}

static int64_t fill_buffer(int64_t fail_at)
{
    struct fail_alloc fail;
    fail_alloc_init(&fail, fail_at);
    struct hf_buf buf;
    hf_buf_init(&buf, &fail.alloc, 100000);
    for (int i = 0; i < 500; i++) {
        hf_buf_text(&buf, "item ");
        hf_buf_i64(&buf, i);
        hf_buf_hex(&buf, "ab", 2);
    }
    assert_int_equal(hf_buf_state(&buf), fail_at > 0 ? HF_ENOMEM : 0);
    assert_int_equal(hf_buf_str(&buf)[0], fail_at > 0 ? '\0' : 'i');
    hf_buf_fini(&buf);
    assert_int_equal(fail.live, 0);
    return fail.calls;
}

static void every_failed_allocation_sticks(void **state)
{
    (void)state;
    int64_t calls = fill_buffer(0);
    assert_true(calls >= 5);
    for (int64_t i = 1; i <= calls; i++)
        (void)fill_buffer(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_string),
        cmocka_unit_test(appends_follow_each_other),
        cmocka_unit_test(integers_are_written_at_their_ends),
        cmocka_unit_test(the_maximum_fits_and_one_more_does_not),
        cmocka_unit_test(hex_counts_two_bytes_each),
        cmocka_unit_test(errors_stick_and_empty_the_buffer),
        cmocka_unit_test(reset_keeps_the_memory),
        cmocka_unit_test(a_finished_buffer_may_be_used_again),
        cmocka_unit_test(every_failed_allocation_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
