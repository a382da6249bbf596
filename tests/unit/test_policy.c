/* Policy: what is built in, who wins, what is refused. */
#include "support/unit.h"

#include <string.h>

#include "core/ledger/policy.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Nothing set. */
static struct hf_policy unset(void)
{
    return (struct hf_policy){ .size = sizeof(struct hf_policy), .grace_ms = -1 };
}

static void the_built_in_policy_is_the_design(void **state)
{
    (void)state;
    const struct hf_policy *policy = &hf_policy_builtin;
    assert_int_equal(policy->ttl_ms, 45000);
    assert_int_equal(policy->renew_ms, 15000);
    assert_int_equal(policy->grace_ms, 30000);
    assert_int_equal(policy->wait_user_ms, 86400000);
    assert_int_equal(policy->wait_external_ms, 7200000);
    assert_int_equal(policy->start_timeout_ms, 0);
    assert_int_equal(policy->exec_timeout_ms, 0);
    assert_int_equal(policy->max_attempts, 3);
    assert_null(policy->retry_policy);
    assert_int_equal(policy->disposition, HF_DISPOSITION_EXPIRE);
    assert_null(policy->close_rule);
    struct hf_err err;
    assert_int_equal(hf_policy_check(policy, &err), 0);
}

static void the_narrower_scope_wins_field_by_field(void **state)
{
    (void)state;
    struct hf_policy source = unset(), kind = unset();
    source.wait_user_ms = 1000;
    source.max_attempts = 9;
    source.close_rule = "evidence";
    kind.max_attempts = 5;
    kind.exec_timeout_ms = 60000;
    source.start_timeout_ms = 70;
    kind.disposition = HF_DISPOSITION_RERUNNABLE;
    struct hf_policy all = hf_policy_merge(&source, &hf_policy_builtin);
    all = hf_policy_merge(&kind, &all);
    assert_int_equal(all.max_attempts, 5);        /* kind   */
    assert_int_equal(all.exec_timeout_ms, 60000); /* kind   */
    assert_int_equal(all.disposition, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(all.wait_user_ms, 1000); /* source */
    assert_int_equal(all.start_timeout_ms, 70);
    assert_string_equal(all.close_rule, "evidence");
    assert_int_equal(all.wait_external_ms, 7200000); /* built in */
    assert_int_equal(all.ttl_ms, 45000);
}

static void nothing_set_is_the_wider_policy(void **state)
{
    (void)state;
    struct hf_policy none = unset();
    struct hf_policy all = hf_policy_merge(&none, &hf_policy_builtin);
    assert_int_equal(all.ttl_ms, 45000);
    assert_int_equal(all.renew_ms, 15000);
    assert_int_equal(all.grace_ms, 30000);
    assert_int_equal(all.wait_user_ms, 86400000);
    assert_int_equal(all.wait_external_ms, 7200000);
    assert_int_equal(all.max_attempts, 3);
    assert_int_equal(all.disposition, HF_DISPOSITION_EXPIRE);
    assert_null(all.retry_policy);
    assert_null(all.close_rule);
}

static void a_grace_of_zero_is_set(void **state)
{
    (void)state;
    struct hf_policy narrow = unset();
    narrow.grace_ms = 0;
    assert_int_equal(hf_policy_merge(&narrow, &hf_policy_builtin).grace_ms, 0);
}

static void term_and_renewal_move_together(void **state)
{
    (void)state;
    struct hf_policy narrow = unset();
    narrow.ttl_ms = 9000; /* the built-in renewal of 15 s would break the rule */
    struct hf_policy all = hf_policy_merge(&narrow, &hf_policy_builtin);
    assert_int_equal(all.ttl_ms, 9000);
    assert_int_equal(all.renew_ms, 3000);
    struct hf_err err;
    assert_int_equal(hf_policy_check(&all, &err), 0);
}

static void attempts_in_a_scopes_retry_policy_beat_the_wider_scope(void **state)
{
    (void)state;
    struct hf_policy narrow = unset();
    narrow.retry_policy = "{\"max_attempts\":8}";
    assert_int_equal(hf_policy_merge(&narrow, &hf_policy_builtin).max_attempts, 8);
    narrow.max_attempts = 2;
    assert_int_equal(hf_policy_merge(&narrow, &hf_policy_builtin).max_attempts, 2);
    narrow.max_attempts = 0;
    narrow.retry_policy = "{\"jitter\":\"none\"}";
    assert_int_equal(hf_policy_merge(&narrow, &hf_policy_builtin).max_attempts, 3);
}

struct bad_policy {
    struct hf_policy policy;
    const char *field;
};

static void bad_policies_name_the_field(void **state)
{
    (void)state;
#define P(...)                                                                           \
    {                                                                                    \
        .size = sizeof(struct hf_policy), __VA_ARGS__                                    \
    }
    static const struct bad_policy bad[] = {
        { { .size = 4 }, "size" },
        { P(.ttl_ms = 749), "ttl_ms" },
        { P(.ttl_ms = -1), "ttl_ms" },
        { P(.ttl_ms = 45000, .renew_ms = 15001), "ttl_ms" },
        { P(.renew_ms = 15000), "renew_ms" },
        { P(.grace_ms = -2), "grace_ms" },
        { P(.wait_user_ms = -1), "wait_user_ms" },
        { P(.wait_external_ms = 3155760000001), "wait_external_ms" },
        { P(.start_timeout_ms = -1), "start_timeout_ms" },
        { P(.exec_timeout_ms = INT64_MAX), "exec_timeout_ms" },
        { P(.max_attempts = -1), "max_attempts" },
        { P(.max_attempts = 1000001), "max_attempts" },
        { P(.retry_policy = "{\"x\":1}"), "retry_policy" },
        { P(.disposition = HF_DISPOSITION_COUNT), "disposition" },
        { P(.close_rule = "both"), "close_rule" },
        { P(.wait_rule = "patience"), "wait_rule" },
    };
#undef P
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_err err = { 0 };
        if (hf_policy_check(&bad[i].policy, &err) != HF_EINVAL)
            fail_msg("accepted: %s (%zu)", bad[i].field, i);
        assert_string_equal(err.field, bad[i].field);
    }
}

static void scopes_are_default_a_source_or_a_kind(void **state)
{
    (void)state;
    static const char *const good[] = { "default", "source:conversation",
                                        "source:scheduler", "kind:report",
                                        "kind:source:manual" };
    static const char *const bad[] = { "",         "Default", "defaults", "source:",
                                       "source:x", "kind:",   "work:1",   "kind:\n" };
    struct hf_err err;
    for (size_t i = 0; i < COUNT(good); i++)
        assert_int_equal(hf_policy_scope_check(good[i], &err), 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (hf_policy_scope_check(bad[i], &err) != HF_EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(err.field, "scope");
    }
    assert_int_equal(hf_policy_scope_check(NULL, &err), HF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_policy_is_the_design),
        cmocka_unit_test(the_narrower_scope_wins_field_by_field),
        cmocka_unit_test(nothing_set_is_the_wider_policy),
        cmocka_unit_test(a_grace_of_zero_is_set),
        cmocka_unit_test(term_and_renewal_move_together),
        cmocka_unit_test(attempts_in_a_scopes_retry_policy_beat_the_wider_scope),
        cmocka_unit_test(bad_policies_name_the_field),
        cmocka_unit_test(scopes_are_default_a_source_or_a_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
