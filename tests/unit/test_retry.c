/* Retry policies: reading, writing, which failures are retried, how long to wait. */
#include "support/unit.h"

#include <string.h>

#include "core/ledger/retry.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hf_retry read_policy(const char *json)
{
    struct hf_retry retry;
    struct hf_err err = { 0 };
    if (hf_retry_read(json, &retry, &err) != 0)
        fail_msg("%s: %s", json, err.message);
    return retry;
}

static void the_default_is_three_executions_from_five_seconds(void **state)
{
    (void)state;
    struct hf_retry retry = read_policy(NULL);
    assert_int_equal(retry.max_attempts, 3);
    assert_int_equal(retry.initial_ms, 5000);
    assert_true(retry.multiplier == 2.0);
    assert_int_equal(retry.max_ms, 300000);
    assert_int_equal(retry.jitter, HF_JITTER_FULL);
}

static void every_field_may_be_given(void **state)
{
    (void)state;
    struct hf_retry retry = read_policy(
        "{\"max_attempts\":7,\"initial_backoff_ms\":100,\"backoff_multiplier\":1.5,"
        "\"max_backoff_ms\":9000,\"jitter\":\"none\",\"retry_on\":[\"heartbeat_timeout\"]"
        ","
        "\"never_on\":[\"quota\"]}");
    assert_int_equal(retry.max_attempts, 7);
    assert_int_equal(retry.initial_ms, 100);
    assert_true(retry.multiplier == 1.5);
    assert_int_equal(retry.max_ms, 9000);
    assert_int_equal(retry.jitter, HF_JITTER_NONE);
}

static void what_is_left_out_is_the_default_but_attempts_stay_open(void **state)
{
    (void)state;
    struct hf_retry retry = read_policy("{}");
    assert_int_equal(retry.max_attempts, 0); /* for the policy in force to decide */
    assert_int_equal(retry.initial_ms, 5000);
    retry = read_policy("{\"initial_backoff_sec\":2,\"max_backoff_sec\":1.5}");
    assert_int_equal(retry.initial_ms, 2000);
    assert_int_equal(retry.max_ms, 1500);
}

static void bad_policies_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "3",
        "{",
        "{\"max_attempts\":0}",
        "{\"max_attempts\":-1}",
        "{\"max_attempts\":1000001}",
        "{\"max_attempts\":2.5}",
        "{\"max_attempts\":\"3\"}",
        "{\"initial_backoff_ms\":-1}",
        "{\"initial_backoff_ms\":1.5}",
        "{\"initial_backoff_ms\":3155760000001}",
        "{\"initial_backoff_ms\":1,\"initial_backoff_sec\":1}",
        "{\"max_backoff_sec\":-0.5}",
        "{\"max_backoff_sec\":1e300}",
        "{\"max_backoff_sec\":\"5\"}",
        "{\"backoff_multiplier\":0.5}",
        "{\"backoff_multiplier\":1001}",
        "{\"backoff_multiplier\":\"2\"}",
        "{\"jitter\":\"some\"}",
        "{\"jitter\":true}",
        "{\"retry_on\":\"heartbeat_timeout\"}",
        "{\"retry_on\":[1]}",
        "{\"retry_on\":[\"\"]}",
        "{\"never_on\":{}}",
        "{\"attempts\":3}",
        "{\"max_attempts\":3,\"max_attempts\":4}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_retry retry = { .max_attempts = 99 };
        struct hf_err err = { 0 };
        if (hf_retry_read(bad[i], &retry, &err) != HF_EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(err.field, "retry_policy");
        assert_int_equal(retry.max_attempts, 99);
    }
    char big[4200];
    memset(big, ' ', sizeof(big));
    big[0] = '{';
    big[4198] = '}';
    big[4199] = 0;
    struct hf_retry retry;
    assert_int_equal(hf_retry_read(big, &retry, NULL), HF_ETOOBIG);
}

static void assert_written(const char *json, const char *wanted)
{
    struct hf_retry retry = read_policy(json);
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 65536);
    assert_int_equal(hf_retry_write(&text, &retry), 0);
    assert_string_equal(hf_buf_str(&text), wanted);
    /* what was written reads back as the same policy */
    struct hf_retry again = read_policy(hf_buf_str(&text));
    assert_int_equal(again.max_attempts, retry.max_attempts);
    assert_int_equal(again.initial_ms, retry.initial_ms);
    assert_int_equal(again.max_ms, retry.max_ms);
    assert_true(again.multiplier == retry.multiplier);
    assert_int_equal(again.jitter, retry.jitter);
    hf_buf_fini(&text);
}

static void the_written_form_is_canonical_and_complete(void **state)
{
    (void)state;
    assert_written(NULL, "{\"backoff_multiplier\":2,\"initial_backoff_ms\":5000,"
                         "\"jitter\":\"full\",\"max_attempts\":3,"
                         "\"max_backoff_ms\":300000}");
    assert_written(" { \"retry_on\" : [\"exec_timeout\", \"b\"], \"never_on\":[\"c\"],"
                   "\"backoff_multiplier\": 1.50, \"max_backoff_sec\": 60 } ",
                   "{\"backoff_multiplier\":1.5,\"initial_backoff_ms\":5000,"
                   "\"jitter\":\"full\",\"max_backoff_ms\":60000,\"never_on\":[\"c\"],"
                   "\"retry_on\":[\"exec_timeout\",\"b\"]}");
}

static void all_classes_retry_but_three(void **state)
{
    (void)state;
    static const char *const yes[] = { "transient_network", "rate_limit",
                                       "service_unavailable", "never_heard_of" };
    static const char *const no[] = { "validation", "policy_denied", "misconfigured" };
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(hf_retry_allows(&hf_retry_default, yes[i], false));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(hf_retry_allows(&hf_retry_default, no[i], false));
}

static void the_lists_override_the_classes(void **state)
{
    (void)state;
    struct hf_retry retry = read_policy("{\"retry_on\":[\"validation\",\"both\"],\"never_"
                                        "on\":[\"rate_limit\",\"both\"]}");
    assert_true(hf_retry_allows(&retry, "validation", false));
    assert_false(hf_retry_allows(&retry, "policy_denied", false));
    assert_false(hf_retry_allows(&retry, "rate_limit", false));
    assert_true(hf_retry_allows(&retry, "transient_network", false));
    assert_false(hf_retry_allows(&retry, "both", false)); /* the careful answer */
}

static void timeouts_retry_only_when_listed(void **state)
{
    (void)state;
    assert_false(hf_retry_allows(&hf_retry_default, "heartbeat_timeout", true));
    struct hf_retry retry = read_policy("{\"retry_on\":[\"heartbeat_timeout\"]}");
    assert_true(hf_retry_allows(&retry, "heartbeat_timeout", true));
    assert_false(hf_retry_allows(&retry, "exec_timeout", true));
}

static void the_default_is_written_as_its_text_says(void **state)
{
    (void)state;
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 1000);
    assert_int_equal(hf_retry_write(&text, &hf_retry_default), 0);
    assert_string_equal(hf_buf_str(&text), hf_retry_default_text);
    hf_buf_fini(&text);
}

static void delays_double_up_to_the_cap(void **state)
{
    (void)state;
    struct hf_retry retry = hf_retry_default;
    retry.jitter = HF_JITTER_NONE;
    static const hf_ms wanted[] = { 5000,  10000,  20000,  40000,
                                    80000, 160000, 300000, 300000 };
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_int_equal(hf_retry_delay(&retry, (int64_t)i + 1, 12345), wanted[i]);
    assert_int_equal(hf_retry_delay(&retry, INT64_MAX, 0), 300000);
    retry.initial_ms = 600000; /* above the cap from the start */
    assert_int_equal(hf_retry_delay(&retry, 1, 0), 300000);
}

static void full_jitter_is_uniform_from_nothing_to_the_whole(void **state)
{
    (void)state;
    const struct hf_retry *retry = &hf_retry_default;
    assert_int_equal(hf_retry_delay(retry, 1, 0), 0);
    assert_int_equal(hf_retry_delay(retry, 1, 5000), 5000);
    assert_int_equal(hf_retry_delay(retry, 1, 5001), 0);
    assert_int_equal(hf_retry_delay(retry, 2, 10000), 10000);
    uint64_t random = 88172645463325252u;
    int64_t sum = 0;
    for (int i = 0; i < 10000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        hf_ms delay = hf_retry_delay(retry, 3, random);
        assert_in_range(delay, 0, 20000);
        sum += delay;
    }
    assert_in_range(sum / 10000, 9700, 10300);
}

static void no_input_overflows_a_delay(void **state)
{
    (void)state;
    static const int64_t failures[] = { 1, 2, 63, 64, 1000, INT64_MAX };
    static const hf_ms spans[] = { 0, 1, 5000, 3155760000000 };
    static const double factors[] = { 1.0, 1.000001, 2.0, 1000.0 };
    static const uint64_t randoms[] = { 0, 1, UINT64_MAX };
    for (size_t f = 0; f < COUNT(failures); f++)
        for (size_t i = 0; i < COUNT(spans); i++)
            for (size_t m = 0; m < COUNT(spans); m++)
                for (size_t x = 0; x < COUNT(factors); x++)
                    for (size_t r = 0; r < COUNT(randoms); r++) {
                        struct hf_retry retry = { 3,        spans[i],       factors[x],
                                                  spans[m], HF_JITTER_FULL, NULL };
                        hf_ms delay = hf_retry_delay(&retry, failures[f], randoms[r]);
                        assert_true(delay >= 0 && delay <= spans[m]);
                    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_three_executions_from_five_seconds),
        cmocka_unit_test(every_field_may_be_given),
        cmocka_unit_test(what_is_left_out_is_the_default_but_attempts_stay_open),
        cmocka_unit_test(bad_policies_are_refused_by_name),
        cmocka_unit_test(the_written_form_is_canonical_and_complete),
        cmocka_unit_test(all_classes_retry_but_three),
        cmocka_unit_test(the_lists_override_the_classes),
        cmocka_unit_test(timeouts_retry_only_when_listed),
        cmocka_unit_test(the_default_is_written_as_its_text_says),
        cmocka_unit_test(delays_double_up_to_the_cap),
        cmocka_unit_test(full_jitter_is_uniform_from_nothing_to_the_whole),
        cmocka_unit_test(no_input_overflows_a_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
