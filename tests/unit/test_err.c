/* Errors, limits and the system's seams. */
#include "support/unit.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

static void codes_say_what_the_table_says(void **state)
{
    (void)state;
    assert_int_equal(HF_ELEASELOST, -9);
    assert_string_equal(hf_err_wire(HF_ELEASELOST), "lease_lost");
    assert_string_equal(hf_err_text(HF_ELEASELOST), "the lease is no longer yours");
    assert_string_equal(hf_err_action(HF_ELEASELOST),
                        "stop this work; claim again to continue");
    assert_int_equal(hf_err_class(HF_ELEASELOST), HF_CLASS_TERMINAL);
    assert_int_equal(hf_err_exit(HF_ELEASELOST), 5);
    assert_int_equal(hf_err_http(HF_ELEASELOST), 409);
    assert_int_equal(hf_err_class(HF_EBUSY), HF_CLASS_RETRYABLE);
    assert_int_equal(hf_err_class(HF_EUNCERTAIN), HF_CLASS_UNKNOWN);
    assert_int_equal(hf_err_exit(HF_EUNCERTAIN), 8);
}

static void ok_is_success_everywhere(void **state)
{
    (void)state;
    assert_string_equal(hf_err_wire(HF_OK), "ok");
    assert_int_equal(hf_err_exit(HF_OK), 0);
    assert_int_equal(hf_err_http(HF_OK), 200);
}

static void unknown_codes_are_internal_errors(void **state)
{
    (void)state;
    const int unknown[] = { 1, -1000, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_string_equal(hf_err_wire(unknown[i]), "internal");
        assert_int_equal(hf_err_exit(unknown[i]), 1);
        assert_int_equal(hf_err_http(unknown[i]), 500);
    }
}

static void every_code_is_complete_and_has_its_own_wire_code(void **state)
{
    (void)state;
    for (int code = HF_EINTERNAL - 1; code >= HF_ESCHEMAOLD; code--) {
        assert_string_not_equal(hf_err_wire(code), "internal");
        assert_true(hf_err_text(code)[0] != '\0');
        assert_true(hf_err_action(code)[0] != '\0');
        assert_in_range(hf_err_exit(code), 1, 9);
        assert_in_range(hf_err_http(code), 400, 599);
        for (int other = HF_EINTERNAL; other > code; other--)
            assert_string_not_equal(hf_err_wire(code), hf_err_wire(other));
    }
}

static void classes_have_names(void **state)
{
    (void)state;
    assert_string_equal(hf_class_name(HF_CLASS_TERMINAL), "terminal");
    assert_string_equal(hf_class_name(HF_CLASS_RETRYABLE), "retryable");
    assert_string_equal(hf_class_name(HF_CLASS_UNKNOWN), "unknown");
}

static void fail_records_and_returns_the_code(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(hf_fail(&err, HF_EINVAL, "queue", "%s has %d faults", "it", 3), -3);
    assert_int_equal(err.code, HF_EINVAL);
    assert_string_equal(err.field, "queue");
    assert_string_equal(err.message, "it has 3 faults");

    assert_int_equal(hf_fail_plain(&err, HF_ENOTFOUND), HF_ENOTFOUND);
    assert_string_equal(err.field, "");
    assert_string_equal(err.message, "not found");
}

static void fail_without_a_record_only_returns(void **state)
{
    (void)state;
    assert_int_equal(hf_fail(NULL, HF_EBUSY, "f", "x"), HF_EBUSY);
    assert_int_equal(hf_fail_plain(NULL, HF_EBUSY), HF_EBUSY);
}

static void fail_replaces_control_bytes_and_bad_utf8(void **state)
{
    (void)state;
    struct hf_err err;
    (void)hf_fail(&err, HF_EINVAL, "a\nb", "%s",
                  "\x1b[31m\tred\x7f \xc3\xa9 \xff \xc0\xaf");
    assert_string_equal(err.field, "a?b");
    assert_string_equal(err.message, "?[31m?red? \xc3\xa9 ? ??");
}

static void fail_keeps_a_message_that_just_fits(void **state)
{
    (void)state;
    struct hf_err err;
    char text[260];
    memset(text, 'x', sizeof(text));
    text[239] = '\0';
    (void)hf_fail(&err, HF_EINVAL, NULL, "%s", text);
    assert_string_equal(err.message, text);
}

static void fail_cuts_at_the_end_of_a_character(void **state)
{
    (void)state;
    struct hf_err err;
    char text[400];
    memset(text, 'x', 238);
    memcpy(text + 238, "\xe2\x82\xac tail", 9); /* the euro sign at bytes 238 to 240 */
    (void)hf_fail(&err, HF_EINVAL, text, "%s", text);
    assert_int_equal(strlen(err.message), 238);
    assert_int_equal(strlen(err.field), 39);
}

static void fail_may_wrap_its_own_record(void **state)
{
    (void)state;
    struct hf_err err;
    (void)hf_fail(&err, HF_EINVAL, "ttl", "too short");
    (void)hf_fail(&err, HF_EPOLICY, err.field, "claim: %s", err.message);
    assert_int_equal(err.code, HF_EPOLICY);
    assert_string_equal(err.field, "ttl");
    assert_string_equal(err.message, "claim: too short");
}

static void break_a_promise(void)
{
    int one = 1;
    hf_assert(one == 2);
}

static void keep_a_promise(void)
{
    int one = 1;
    hf_assert(one == 1);
}

static void broken_promises_abort(void **state)
{
    (void)state;
    assert_true(unit_aborts(break_a_promise));
    assert_false(unit_aborts(keep_a_promise));
}

static void limits_can_be_listed(void **state)
{
    (void)state;
    const struct hf_bound_info *key = hf_bound_at(HF_BOUND_KEY_BYTES);
    assert_string_equal(key->name, "key_bytes");
    assert_int_equal(key->value, 191);
    assert_string_equal(key->unit, "bytes");
    assert_string_equal(hf_bound_at(HF_BOUND_STORE_WAIT_MS)->name, "store_wait_ms");
    assert_int_equal(HF_MAX_DURATION_MAX_MS, INT64_C(3155760000000));
    assert_non_null(hf_bound_at(HF_BOUND_COUNT - 1));
    assert_null(hf_bound_at(HF_BOUND_COUNT));
    assert_null(hf_bound_at(SIZE_MAX));
}

static void system_memory_grows_and_a_size_of_zero_is_no_failure(void **state)
{
    (void)state;
    const struct hf_alloc *alloc = hf_alloc_system();
    char *at = alloc->realloc(alloc->user, NULL, 4);
    assert_non_null(at);
    memcpy(at, "abc", 4);
    at = alloc->realloc(alloc->user, at, 100000);
    assert_non_null(at);
    assert_string_equal(at, "abc");
    at = alloc->realloc(alloc->user, at, 0);
    assert_non_null(at);
    alloc->free(alloc->user, at);
    alloc->free(alloc->user, NULL);
}

static void system_clock_is_after_2025_and_does_not_go_back(void **state)
{
    (void)state;
    const struct hf_clock *clock = hf_clock_system();
    assert_true(clock->wall_ms(clock->user) > INT64_C(1735689600000));
    hf_ms before = clock->mono_ms(clock->user);
    clock->wait_ms(clock->user, 2);
    clock->wait_ms(clock->user, 0);
    clock->wait_ms(clock->user, -1);
    assert_true(clock->mono_ms(clock->user) > before);
}

static void system_randomness_fills_exactly(void **state)
{
    (void)state;
    const struct hf_random *source = hf_random_system();
    unsigned char a[66] = { 0 };
    unsigned char b[66] = { 0 };
    assert_int_equal(source->fill(source->user, a + 1, 64), 0);
    assert_int_equal(source->fill(source->user, b + 1, 64), 0);
    assert_memory_not_equal(a, b, sizeof(a));
    assert_int_equal(a[0] + a[65], 0);
}

static void only_a_failure_reaches_the_callers_record(void **state)
{
    (void)state;
    struct hf_err why = { 0 }, err = { 1, "mine", "not yours" };
    (void)hf_fail(&why, HF_EGUARD, "row", "tried and done again");
    assert_int_equal(hf_fail_as(&err, 0, &why), 0);
    assert_int_equal(err.code, 1);
    assert_string_equal(err.field, "mine");
    assert_string_equal(err.message, "not yours");
    /* The record tells of an earlier failure: it does not speak for this one. */
    assert_int_equal(hf_fail_as(&err, HF_EBUSY, &why), HF_EBUSY);
    assert_int_equal(err.code, HF_EBUSY);
    assert_string_equal(err.message, hf_err_text(HF_EBUSY));
    assert_int_equal(hf_fail_as(&err, HF_EGUARD, &why), HF_EGUARD);
    assert_string_equal(err.field, "row");
    assert_int_equal(hf_fail_as(NULL, HF_EGUARD, &why), HF_EGUARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_say_what_the_table_says),
        cmocka_unit_test(ok_is_success_everywhere),
        cmocka_unit_test(only_a_failure_reaches_the_callers_record),
        cmocka_unit_test(unknown_codes_are_internal_errors),
        cmocka_unit_test(every_code_is_complete_and_has_its_own_wire_code),
        cmocka_unit_test(classes_have_names),
        cmocka_unit_test(fail_records_and_returns_the_code),
        cmocka_unit_test(fail_without_a_record_only_returns),
        cmocka_unit_test(fail_replaces_control_bytes_and_bad_utf8),
        cmocka_unit_test(fail_keeps_a_message_that_just_fits),
        cmocka_unit_test(fail_cuts_at_the_end_of_a_character),
        cmocka_unit_test(fail_may_wrap_its_own_record),
        cmocka_unit_test(broken_promises_abort),
        cmocka_unit_test(limits_can_be_listed),
        cmocka_unit_test(system_memory_grows_and_a_size_of_zero_is_no_failure),
        cmocka_unit_test(system_clock_is_after_2025_and_does_not_go_back),
        cmocka_unit_test(system_randomness_fills_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
