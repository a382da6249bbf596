/* The row that a create request makes. */
#include "support/unit.h"

#include <string.h>

#include "support/rig.h"

static struct hf_row made(struct rig *rig, const struct hf_work_spec *request)
{
    struct hf_err err = { 0 };
    if (hf_work_spec_check(request, &err) != 0 || rig_create(rig, request) != 0)
        fail_msg("%s %s", err.message, rig->err.message);
    return rig->made;
}

static void not_made(struct rig *rig, const struct hf_work_spec *request,
                     const char *field)
{
    assert_int_equal(rig_create(rig, request), HF_EINVAL);
    assert_string_equal(rig->err.field, field);
}

static void the_least_request_gets_every_default(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.seq, 0);
    assert_string_equal(row.w.work_id, "w-1");
    assert_string_equal(row.w.tenant, "t1");
    assert_string_equal(row.w.source_system, "manual");
    assert_string_equal(row.w.source_id, "src-1");
    assert_null(row.w.source_run_id);
    assert_string_equal(row.w.kind, "work");
    assert_string_equal(row.w.queue, "default");
    assert_int_equal(row.w.priority, 3);
    assert_int_equal(row.status, HF_STATUS_QUEUED);
    assert_string_equal(row.w.status, "queued");
    assert_null(row.w.gate);
    assert_int_equal(row.disposition, HF_DISPOSITION_EXPIRE);
    assert_string_equal(row.w.disposition, "expire");
    assert_int_equal(row.w.max_attempts, 3);
    assert_int_equal(row.w.attempt_count, 0);
    assert_int_equal(row.w.failures, 0);
    assert_int_equal(row.w.generation, 0);
    assert_int_equal(row.w.lease_fence, 0);
    assert_int_equal(row.w.due_at, RIG_NOW);
    assert_int_equal(row.w.deadline_at, 0);
    assert_int_equal(row.w.created_at, RIG_NOW);
    assert_int_equal(row.w.updated_at, RIG_NOW);
    assert_int_equal(row.w.finished_at, 0);
    assert_string_equal(row.w.correlation_id, "corr-1");
    assert_string_equal(row.w.retry_policy,
                        "{\"backoff_multiplier\":2,\"initial_backoff_ms\":5000,"
                        "\"jitter\":\"full\",\"max_attempts\":3,"
                        "\"max_backoff_ms\":300000}");
    assert_string_equal(row.event_type, "work_created");
    assert_string_equal(row.actor_kind, "human");
    assert_string_equal(row.actor, "op");
    assert_string_equal(row.note, "{\"disposition\":\"expire\",\"from\":\"policy\","
                                  "\"max_attempts\":3}");
}

static void an_urgent_row_is_priority_zero(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.priority = 0;
    assert_int_equal(made(rig, &request).w.priority, 0);
}

static void the_actor_defaults_to_the_system(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    rig->env.actor_kind = NULL;
    rig->env.actor = NULL;
    struct hf_row row = made(rig, &request);
    assert_string_equal(row.actor_kind, "system");
    assert_string_equal(row.actor, "holdfast");
}

static void policy_fills_what_the_request_leaves_open(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    rig->policy.disposition = HF_DISPOSITION_RERUNNABLE;
    rig->policy.max_attempts = 5;
    rig->policy.start_timeout_ms = 1000;
    rig->policy.exec_timeout_ms = 2000;
    rig->policy.close_rule = "evidence";
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.disposition, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(row.w.max_attempts, 5);
    assert_int_equal(row.w.start_timeout_ms, 1000);
    assert_int_equal(row.w.exec_timeout_ms, 2000);
    assert_string_equal(row.w.close_rule, "evidence");
    assert_int_equal(row.w.deadline_at, RIG_NOW + 1000);

    request.disposition = HF_DISPOSITION_EXPIRE;
    request.max_attempts = 9;
    request.start_timeout_ms = 70;
    request.exec_timeout_ms = 80;
    request.close_rule = "reviewer";
    row = made(rig, &request);
    assert_int_equal(row.disposition, HF_DISPOSITION_EXPIRE);
    assert_int_equal(row.w.max_attempts, 9);
    assert_int_equal(row.w.start_timeout_ms, 70);
    assert_int_equal(row.w.exec_timeout_ms, 80);
    assert_string_equal(row.w.close_rule, "reviewer");
    assert_string_equal(row.note, "{\"deadline_at\":1700000000070,"
                                  "\"disposition\":\"expire\",\"exec_timeout_ms\":80,"
                                  "\"from\":\"request\",\"max_attempts\":9,"
                                  "\"start_timeout_ms\":70}");
}

static void the_event_says_whether_the_request_set_anything(void **state)
{
    struct rig *rig = *state;
    const struct hf_work_spec plain = rig_new();
#define SETS(member, value)                                                              \
    do {                                                                                 \
        struct hf_work_spec request = plain;                                             \
        request.member = value;                                                          \
        assert_non_null(strstr(made(rig, &request).note, "\"from\":\"request\""));       \
    } while (0)
    SETS(disposition, HF_DISPOSITION_EXPIRE);
    SETS(max_attempts, 3);
    SETS(retry_policy, "{}");
    SETS(start_timeout_ms, 1);
    SETS(exec_timeout_ms, 1);
    SETS(close_rule, "evidence");
#undef SETS
}

static void max_attempts_by_request_then_its_policy_then_ours(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    rig->policy.max_attempts = 5;
    rig->policy.retry_policy = "{\"max_attempts\":5,\"jitter\":\"none\"}";
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.w.max_attempts, 5);
    assert_string_equal(row.w.retry_policy,
                        "{\"backoff_multiplier\":2,\"initial_backoff_ms\":5000,"
                        "\"jitter\":\"none\",\"max_attempts\":5,"
                        "\"max_backoff_ms\":300000}");
    request.retry_policy = "{\"initial_backoff_sec\":1}";
    row = made(rig, &request);
    assert_int_equal(row.w.max_attempts, 5); /* not said there: the policy in force */
    request.retry_policy = "{\"max_attempts\":6,\"initial_backoff_sec\":1}";
    row = made(rig, &request);
    assert_int_equal(row.w.max_attempts, 6);
    assert_string_equal(row.w.retry_policy,
                        "{\"backoff_multiplier\":2,\"initial_backoff_ms\":1000,"
                        "\"jitter\":\"full\",\"max_attempts\":6,"
                        "\"max_backoff_ms\":300000}");
    request.max_attempts = 7;
    assert_int_equal(made(rig, &request).w.max_attempts, 7);
}

static void a_future_row_is_gated_until_due(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.delay_ms = 5000;
    request.start_timeout_ms = 1000;
    struct hf_row row = made(rig, &request);
    assert_string_equal(row.w.gate, "due");
    assert_int_equal(row.w.due_at, RIG_NOW + 5000);
    assert_int_equal(row.w.deadline_at, RIG_NOW + 6000); /* from the due time */
    request.lane_key = "chat-1";
    assert_string_equal(made(rig, &request).w.gate, "due"); /* the lane comes after */
    request.delay_ms = 0;
    assert_string_equal(made(rig, &request).w.gate, "lane");
    request.due_at = RIG_NOW;
    assert_string_equal(made(rig, &request).w.gate, "lane");
    request.due_at = RIG_NOW + 1;
    assert_string_equal(made(rig, &request).w.gate, "due");
    request.due_at = RIG_NOW - 9;
    row = made(rig, &request);
    assert_string_equal(row.w.gate, "lane");
    assert_int_equal(row.w.due_at, RIG_NOW - 9);
}

static void an_externally_owned_row_is_born_waiting(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.disposition = HF_DISPOSITION_EXTERNALLY_OWNED;
    rig->policy.start_timeout_ms = 1000;
    rig->policy.exec_timeout_ms = 1000;
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.status, HF_STATUS_WAITING_EXTERNAL);
    assert_string_equal(row.w.waiting_kind, "external");
    assert_null(row.w.waiting_ref);
    assert_int_equal(row.w.deadline_at, 0);
    assert_int_equal(row.w.start_timeout_ms, 0);
    assert_int_equal(row.w.exec_timeout_ms, 0);
    assert_null(row.w.gate);
    assert_string_equal(row.event_type, "work_created");
    request.ref = "pr-17";
    row = made(rig, &request);
    assert_string_equal(row.w.waiting_ref, "pr-17");
    assert_string_equal(row.w.ref, "pr-17");
}

static void what_never_runs_takes_no_timing(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec base = rig_new();
    rig->policy.disposition =
        HF_DISPOSITION_EXTERNALLY_OWNED; /* by policy, so only core can tell */
    struct hf_work_spec request = base;
    request.delay_ms = 1;
    not_made(rig, &request, "delay_ms");
    request = base;
    request.due_at = 1;
    not_made(rig, &request, "due_at");
    request = base;
    request.lane_key = "l";
    not_made(rig, &request, "lane_key");
    request = base;
    request.start_timeout_ms = 1;
    not_made(rig, &request, "start_timeout_ms");
    request = base;
    request.exec_timeout_ms = 1;
    not_made(rig, &request, "exec_timeout_ms");
}

static void time_alone_never_ends_owner_bound(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.disposition = HF_DISPOSITION_OWNER_BOUND;
    request.exec_timeout_ms = 1000;
    not_made(rig, &request, "exec_timeout_ms");
    request.exec_timeout_ms = 0;
    rig->policy.exec_timeout_ms = 1000; /* a general policy does not reach it */
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.w.exec_timeout_ms, 0);
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n1"), 0);
    assert_int_equal(rig->step.row.w.deadline_at, 0);
}

static void a_detached_command_is_born_done(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.detached = true;
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.status, HF_STATUS_DONE);
    assert_int_equal(row.w.finished_at, RIG_NOW);
    assert_string_equal(row.w.status_reason, "detached");
    assert_string_equal(row.event_type, "work_created");
    assert_string_equal(row.note, "{\"detached\":true,\"disposition\":\"expire\","
                                  "\"from\":\"policy\",\"max_attempts\":3}");
    request.disposition =
        HF_DISPOSITION_EXTERNALLY_OWNED; /* nothing here will ever run it */
    row = made(rig, &request);
    assert_int_equal(row.status, HF_STATUS_DONE);
    assert_int_equal(row.disposition, HF_DISPOSITION_EXTERNALLY_OWNED);
}

static void everything_asked_for_is_in_the_row(void **state)
{
    struct rig *rig = *state;
    struct hf_work_spec request = rig_new();
    request.source = HF_SOURCE_SCHEDULER;
    request.source_run_id = "slot-1";
    request.kind = "report";
    request.queue = "night";
    request.dedup_key = "d";
    request.idempotency_key = "i";
    request.ref = "r";
    request.parent_work_id = "p";
    request.payload = "{\"a\": 1}";
    struct hf_row row = made(rig, &request);
    assert_int_equal(row.source, HF_SOURCE_SCHEDULER);
    assert_string_equal(row.w.source_system, "scheduler");
    assert_string_equal(row.w.source_run_id, "slot-1");
    assert_string_equal(row.w.kind, "report");
    assert_string_equal(row.w.queue, "night");
    assert_string_equal(row.w.dedup_key, "d");
    assert_string_equal(row.w.idempotency_key, "i");
    assert_string_equal(row.w.ref, "r");
    assert_string_equal(row.w.parent_work_id, "p");
    assert_string_equal(row.w.payload, "{\"a\": 1}"); /* as it was given */
    request.payload = NULL;
    request.payload_ref = "blob:1";
    assert_string_equal(made(rig, &request).w.payload_ref, "blob:1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_least_request_gets_every_default),
        TEST(an_urgent_row_is_priority_zero),
        TEST(the_actor_defaults_to_the_system),
        TEST(policy_fills_what_the_request_leaves_open),
        TEST(the_event_says_whether_the_request_set_anything),
        TEST(max_attempts_by_request_then_its_policy_then_ours),
        TEST(a_future_row_is_gated_until_due),
        TEST(an_externally_owned_row_is_born_waiting),
        TEST(what_never_runs_takes_no_timing),
        TEST(time_alone_never_ends_owner_bound),
        TEST(a_detached_command_is_born_done),
        TEST(everything_asked_for_is_in_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
