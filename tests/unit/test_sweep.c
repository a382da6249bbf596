/* What time and proof of death do to a row. */
#include "support/unit.h"

#include "support/rig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PROOF "{\"how\":\"pidfd\"}"

static struct hf_row swept(struct rig *rig, const struct hf_row *row, const char *proof,
                           enum hf_step_kind kind, enum hf_swept what)
{
    int rc = rig_sweep(rig, row, proof);
    if (rc != 0)
        fail_msg("%d %s", rc, rig->err.message);
    assert_int_equal(rig->step.kind, kind);
    assert_int_equal(rig->step.swept, what);
    return rig->step.row;
}

static void left_alone(struct rig *rig, const struct hf_row *row)
{
    struct hf_row now = swept(rig, row, NULL, HF_STEP_NOTHING, HF_SWEPT_NOTHING);
    assert_memory_equal(&now, row, sizeof(now));
}

static struct hf_row lapsed(struct rig *rig, enum hf_disposition disposition)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, disposition);
    rig->env.lease_now = row.lease_check_at;
    return row;
}

/* ---- leases ------------------------------------------------------------------------ */

static void peers_act_only_at_expiry(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    rig->env.now += 1000000000; /* the wall clock decides no lease */
    rig->env.lease_now = row.w.lease_expires_at - 1;
    left_alone(rig, &row);
    rig->env.lease_now = row.w.lease_expires_at;
    assert_int_equal(swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_REQUEUED).status,
                     HF_STATUS_QUEUED);

    row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    rig->env.lease_now = row.w.lease_expires_at + RIG_GRACE - 1;
    left_alone(rig, &row);
    rig->env.lease_now = row.w.lease_expires_at + RIG_GRACE;
    assert_int_equal(swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT).status,
                     HF_STATUS_TIMEOUT);
}

static void a_lapsed_expire_row_times_out(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_EXPIRE);
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_int_equal(now.status, HF_STATUS_TIMEOUT);
    assert_string_equal(now.event_type, "timeout_marked");
    assert_string_equal(now.w.status_reason, "heartbeat_timeout");
    assert_int_equal(now.w.finished_at, RIG_NOW);
    assert_int_equal(now.w.failures, 1);
    rig_no_lease(&now);
    assert_string_equal(
        now.note,
        "{\"error_class\":\"heartbeat_timeout\",\"failures\":1,\"lease_released\":{"
        "\"expires_at\":900045000,\"fence\":4,\"grace_ms\":30000,\"holder\":{\"pid\":1},"
        "\"incarnation\":\"i1\",\"owner\":\"ann\",\"ttl_ms\":45000},\"max_attempts\":3,"
        "\"reason\":\"heartbeat_timeout\"}");
}

static void a_dead_holders_expire_row_times_out_at_once(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE); /* live */
    struct hf_row now = swept(rig, &row, PROOF, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_int_equal(now.status, HF_STATUS_TIMEOUT);
    assert_string_equal(now.w.status_reason, "holder_dead");
    assert_non_null(now.note);
    assert_string_equal(
        now.note,
        "{\"error_class\":\"holder_dead\",\"failures\":1,\"lease_released\":{"
        "\"expires_at\":900045000,\"fence\":4,\"grace_ms\":30000,\"holder\":{\"pid\":1},"
        "\"incarnation\":\"i1\",\"owner\":\"ann\",\"ttl_ms\":45000},\"max_attempts\":3,"
        "\"proof\":{\"how\":\"pidfd\"},\"reason\":\"holder_dead\"}");
}

static void a_timeout_is_retried_only_where_the_policy_lists_it(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_EXPIRE);
    row.w.retry_policy = "{\"retry_on\":[\"heartbeat_timeout\"],\"jitter\":\"none\"}";
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_RETRIED);
    assert_int_equal(now.status, HF_STATUS_RETRY_SCHEDULED);
    assert_string_equal(now.event_type, "retry_scheduled");
    assert_string_equal(now.w.status_reason, "heartbeat_timeout");
    assert_int_equal(now.w.next_retry_at, RIG_NOW + 5000);
    assert_int_equal(now.w.failures, 1);
    row.w.failures = 2; /* the last execution */
    now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_int_equal(now.w.failures, 3);
    row.w.failures = 0;
    row.w.retry_policy = "{\"retry_on\":[\"exec_timeout\"]}";
    (void)swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    row.w.retry_policy = "[";
    assert_int_equal(rig_sweep(rig, &row, NULL), HF_ECORRUPT);
}

static void a_lapsed_rerunnable_row_is_claimable_at_once(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_RERUNNABLE);
    row.w.start_timeout_ms = 500;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_REQUEUED);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
    assert_string_equal(now.event_type, "transition");
    assert_string_equal(now.w.status_reason, "heartbeat_timeout");
    assert_string_equal(now.w.error_class, "heartbeat_timeout");
    assert_int_equal(now.w.failures, 1);
    assert_int_equal(now.w.due_at, RIG_NOW);
    assert_int_equal(now.w.deadline_at, RIG_NOW + 500);
    assert_null(now.w.gate);
    rig_no_lease(&now);
    assert_int_equal(rig_claim(rig, &now, "bob", "b1", "m1"), 0);
    assert_int_equal(rig->step.row.w.lease_fence, 5);
    assert_int_equal(rig->step.row.w.attempt_count, 2);

    row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    rig->env.lease_now = RIG_LEASE_NOW; /* live, but dead */
    now = swept(rig, &row, PROOF, HF_STEP_WRITE, HF_SWEPT_REQUEUED);
    assert_string_equal(now.w.status_reason, "holder_dead");
}

static void a_crash_spends_a_failure_until_none_is_left(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_RERUNNABLE);
    row.w.failures = 1;
    assert_int_equal(swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_REQUEUED).w.failures,
                     2);
    row.w.failures = 2;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_FAILED);
    assert_int_equal(now.status, HF_STATUS_FAILED);
    assert_string_equal(now.w.status_reason, "attempts_exhausted");
    assert_string_equal(now.w.error_class, "heartbeat_timeout");
    assert_int_equal(now.w.failures, 3);
    row.w.max_attempts = 1;
    row.w.failures = 0;
    (void)swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_FAILED);
}

static void time_alone_never_ends_owner_bound(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_OWNER_BOUND);
    row.w.deadline_at = RIG_NOW - 1; /* no deadline does, either */
    for (int i = 0; i < 100; i++) {
        row = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_SILENT);
        assert_int_equal(row.status, HF_STATUS_RUNNING);
        assert_int_equal(row.lease_check_at, rig->env.lease_now + RIG_TTL);
        assert_string_equal(row.claim_group, "n1");
        left_alone(rig, &row); /* until it is looked at again */
        rig->env.lease_now += RIG_TTL;
        rig->env.now += 86400000;
    }
    assert_int_equal(row.w.failures, 0);

    row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_OWNER_BOUND);
    rig->env.now = row.w.deadline_at;
    row = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_OVERDUE);
    assert_int_equal(row.status, HF_STATUS_WAITING_USER);
    assert_string_equal(row.w.status_reason, "wait_overdue");
    assert_string_equal(rig->step.extra_event, "wait_overdue");
    assert_int_equal(row.w.updated_at, rig->env.now);
    left_alone(rig, &row); /* reported once */
}

static void proof_of_death_abandons_what_is_bound(void **state)
{
    struct rig *rig = *state;
    static const enum hf_status from[] = { HF_STATUS_RUNNING, HF_STATUS_WAITING_USER,
                                           HF_STATUS_WAITING_EXTERNAL };
    for (size_t i = 0; i < COUNT(from); i++) {
        struct hf_row row = rig_row(from[i], HF_DISPOSITION_OWNER_BOUND);
        struct hf_row now = swept(rig, &row, PROOF, HF_STEP_WRITE, HF_SWEPT_ABANDONED);
        assert_int_equal(now.status, HF_STATUS_ABANDONED);
        assert_string_equal(now.event_type, "transition");
        assert_string_equal(now.w.status_reason, "sweep");
        assert_int_equal(now.w.failures, 1);
        rig_no_lease(&now);
    }
    assert_string_equal(rig->step.row.note,
                        "{\"proof\":{\"how\":\"pidfd\"},\"writer\":\"sweep\"}");
}

/* Its execution has ended in order: the death of its holder takes nothing from it. */
static void proof_of_death_leaves_a_wait_for_the_close_rule(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_OWNER_BOUND);
    row.w.waiting_ref = row.w.work_id;
    row.w.close_rule = "reviewer";
    (void)swept(rig, &row, PROOF, HF_STEP_NOTHING, HF_SWEPT_NOTHING);
    row.w.close_rule = NULL;
    (void)swept(rig, &row, PROOF, HF_STEP_WRITE, HF_SWEPT_ABANDONED);
}

/* Rule 6: processes of the work still run, so no second copy may start yet. What is bound
 * is silent as ever. */
static void dead_wrapper_is_not_dead_work(void **state)
{
    struct rig *rig = *state;
    const enum hf_disposition again[] = { HF_DISPOSITION_RERUNNABLE,
                                          HF_DISPOSITION_EXPIRE };
    rig->env.busy = true;
    for (size_t i = 0; i < COUNT(again); i++) {
        struct hf_row row = lapsed(rig, again[i]);
        struct hf_row now = swept(rig, &row, NULL, HF_STEP_NOTHING, HF_SWEPT_ORPHANED);
        assert_memory_equal(&now, &row, sizeof(now));
        row = rig_row(HF_STATUS_RUNNING, again[i]); /* a live lease, its time is up */
        row.w.deadline_at = rig->env.now;
        (void)swept(rig, &row, NULL, HF_STEP_NOTHING, HF_SWEPT_ORPHANED);
    }
    struct hf_row bound = lapsed(rig, HF_DISPOSITION_OWNER_BOUND);
    (void)swept(rig, &bound, NULL, HF_STEP_QUIET, HF_SWEPT_SILENT);
    rig->env.busy = false;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_REQUEUED).status,
                     HF_STATUS_QUEUED);
}

static void an_abandon_request_takes_effect_after_the_lapse(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    row.w.abandon_request = "{\"by\":\"human:op\"}";
    row.lease_check_at = RIG_LEASE_NOW; /* as the request sets it */
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_PUSHED);
    assert_int_equal(now.lease_check_at, row.w.lease_expires_at);
    rig->env.lease_now = row.w.lease_expires_at;
    now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_ABANDONED);
    assert_string_equal(now.w.status_reason, "reconciled_request");
    assert_int_equal(now.w.failures, 0);

    /* where there is no lease, at once */
    row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_OWNER_BOUND);
    row.w.abandon_request = "{\"by\":\"human:op\"}";
    (void)swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_ABANDONED);
    row = rig_row(HF_STATUS_WAITING_EXTERNAL, HF_DISPOSITION_EXTERNALLY_OWNED);
    left_alone(rig, &row);
    row.w.abandon_request = "{\"by\":\"human:op\"}";
    now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_ABANDONED);
    assert_int_equal(now.status, HF_STATUS_ABANDONED);
    assert_string_equal(now.note, "{\"abandon_request\":{\"by\":\"human:op\"},"
                                  "\"writer\":\"reconciled_request\"}");
}

static void a_bound_row_that_never_started_is_claimable_again(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = lapsed(rig, HF_DISPOSITION_OWNER_BOUND);
    row.w.first_started_at = 0;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_REQUEUED);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
    rig->env.lease_now = RIG_LEASE_NOW;
    now = swept(rig, &row, PROOF, HF_STEP_WRITE, HF_SWEPT_REQUEUED);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
}

static void a_live_lease_is_looked_at_again_when_it_ends(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    left_alone(rig, &row);
    row.w.lease_expires_at += 40000; /* renewed since */
    rig->env.lease_now = row.lease_check_at;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_PUSHED);
    assert_int_equal(now.lease_check_at, row.w.lease_expires_at + RIG_GRACE);
    assert_int_equal(now.w.updated_at, row.w.updated_at);
    assert_null(rig->step.extra_event);
}

/* ---- deadlines --------------------------------------------------------------------- */

static void an_execution_deadline_fires_even_if_renewed(void **state)
{
    struct rig *rig = *state;
    static const enum hf_disposition dispositions[] = { HF_DISPOSITION_EXPIRE,
                                                        HF_DISPOSITION_RERUNNABLE };
    for (size_t i = 0; i < COUNT(dispositions); i++) {
        struct hf_row row = rig_row(HF_STATUS_RUNNING, dispositions[i]);
        row.w.deadline_at = RIG_NOW + 1;
        left_alone(rig, &row);
        row.w.deadline_at = RIG_NOW;
        struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
        assert_int_equal(now.status, HF_STATUS_TIMEOUT);
        assert_string_equal(now.w.status_reason, "exec_timeout");
        assert_int_equal(now.w.deadline_at, 0);
        row.w.retry_policy = "{\"retry_on\":[\"exec_timeout\"]}";
        (void)swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_RETRIED);
    }
}

static void a_start_deadline_ends_a_queued_row(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    left_alone(rig, &row);
    row.w.start_timeout_ms = 1000;
    row.w.deadline_at = RIG_NOW + 1;
    left_alone(rig, &row);
    row.w.deadline_at = RIG_NOW;
    row.w.gate = "lane";
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_int_equal(now.status, HF_STATUS_TIMEOUT);
    assert_string_equal(now.event_type, "timeout_marked");
    assert_string_equal(now.w.status_reason, "start_timeout");
    assert_null(now.w.gate);
    assert_int_equal(now.w.failures, 0);
    assert_string_equal(now.note, "{\"deadline_at\":1700000000000,"
                                  "\"reason\":\"start_timeout\","
                                  "\"start_timeout_ms\":1000}");
}

static void a_due_row_is_let_through_its_gate(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    row.w.gate = "due";
    row.w.due_at = RIG_NOW + 1;
    left_alone(rig, &row);
    row.w.due_at = RIG_NOW;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_PROMOTED);
    assert_null(now.w.gate);
    assert_int_equal(now.w.due_at, RIG_NOW);
    row.w.lane_key = "chat-1";
    now = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_PROMOTED);
    assert_string_equal(now.w.gate, "lane");
    static const char *const others[] = { "lane", "limit", "rate", "held" };
    for (size_t i = 0; i < COUNT(others); i++) {
        row.w.gate = others[i];
        left_alone(rig, &row);
    }
}

static void a_retry_is_promoted_when_due_and_not_before(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RETRY_SCHEDULED, HF_DISPOSITION_EXPIRE);
    rig->env.now = row.w.next_retry_at - 1;
    left_alone(rig, &row);
    rig->env.now = row.w.next_retry_at;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_PROMOTED);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
    assert_string_equal(now.event_type, "retry_promoted");
    assert_string_equal(now.w.status_reason, "retry_due");
    assert_int_equal(now.w.next_retry_at, 0);
    assert_int_equal(now.w.due_at, rig->env.now);
    assert_int_equal(now.w.failures, 1);
    assert_string_equal(now.w.error_class, "transient_network");
    row.w.lane_key = "chat-1";
    assert_string_equal(swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_PROMOTED).w.gate,
                        "lane");
}

static void a_wait_ends_at_its_deadline(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_EXTERNAL, HF_DISPOSITION_RERUNNABLE);
    rig->env.now = row.w.deadline_at - 1;
    left_alone(rig, &row);
    rig->env.now = row.w.deadline_at;
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_int_equal(now.status, HF_STATUS_TIMEOUT);
    assert_string_equal(now.w.status_reason, "wait_timeout");
    assert_int_equal(now.w.failures, 0); /* waiting is no error */
    assert_null(now.w.waiting_kind);
    assert_string_equal(now.note, "{\"deadline_at\":1700003600000,"
                                  "\"reason\":\"wait_timeout\",\"ref\":\"ask-1\"}");
}

static void an_escalation_comes_before_the_end(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_EXPIRE);
    row.w.escalate_at = row.w.deadline_at;
    row.w.escalate = "work:page";
    rig->env.now = row.w.deadline_at - 1;
    left_alone(rig, &row);
    rig->env.now = row.w.deadline_at; /* both are due */
    struct hf_row now = swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_ESCALATED);
    assert_int_equal(now.status, HF_STATUS_WAITING_USER);
    assert_int_equal(now.w.escalate_at, 0);
    assert_string_equal(rig->step.extra_event, "escalated");
    assert_string_equal(rig->step.escalate_kind, "page");
    assert_string_equal(now.note, "{\"deadline_at\":1700003600000,"
                                  "\"escalate\":\"work:page\","
                                  "\"escalate_at\":1700003600000,\"kind\":\"user\","
                                  "\"ref\":\"ask-1\"}");
    now = swept(rig, &now, NULL, HF_STEP_WRITE, HF_SWEPT_TIMED_OUT);
    assert_null(rig->step.escalate_kind);
    row.w.escalate = "event";
    (void)swept(rig, &row, NULL, HF_STEP_QUIET, HF_SWEPT_ESCALATED);
    assert_null(rig->step.escalate_kind);
}

static void an_externally_owned_row_has_no_deadline(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_EXTERNAL,
                                HF_DISPOSITION_EXTERNALLY_OWNED);
    rig->env.now += 3155760000000;
    left_alone(rig, &row);
    row.w.deadline_at = RIG_NOW; /* not even if a caller wrote one */
    left_alone(rig, &row);
}

static void nothing_happens_to_what_has_ended_or_belongs_to_a_session(void **state)
{
    struct rig *rig = *state;
    rig->env.now += 3155760000000;
    rig->env.lease_now += 3155760000000;
    for (int s = HF_STATUS_DONE; s < HF_STATUS_COUNT; s++) {
        struct hf_row row = rig_row((enum hf_status)s, HF_DISPOSITION_EXPIRE);
        row.w.deadline_at = RIG_NOW;
        left_alone(rig, &row);
    }
    for (int s = 1; s < HF_STATUS_COUNT; s++) {
        struct hf_row row = rig_row((enum hf_status)s, HF_DISPOSITION_NONE);
        left_alone(rig, &row);
    }
}

static void a_second_sweep_finds_nothing(void **state)
{
    struct rig *rig = *state;
    static const enum hf_disposition dispositions[] = { HF_DISPOSITION_EXPIRE,
                                                        HF_DISPOSITION_RERUNNABLE };
    for (size_t i = 0; i < COUNT(dispositions); i++) {
        struct hf_row row = lapsed(rig, dispositions[i]);
        assert_int_equal(rig_sweep(rig, &row, NULL), 0);
        struct hf_row now = rig->step.row;
        left_alone(rig, &now);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peers_act_only_at_expiry),
        TEST(a_lapsed_expire_row_times_out),
        TEST(a_dead_holders_expire_row_times_out_at_once),
        TEST(a_timeout_is_retried_only_where_the_policy_lists_it),
        TEST(a_lapsed_rerunnable_row_is_claimable_at_once),
        TEST(a_crash_spends_a_failure_until_none_is_left),
        TEST(time_alone_never_ends_owner_bound),
        TEST(proof_of_death_abandons_what_is_bound),
        TEST(proof_of_death_leaves_a_wait_for_the_close_rule),
        TEST(dead_wrapper_is_not_dead_work),
        TEST(an_abandon_request_takes_effect_after_the_lapse),
        TEST(a_bound_row_that_never_started_is_claimable_again),
        TEST(a_live_lease_is_looked_at_again_when_it_ends),
        TEST(an_execution_deadline_fires_even_if_renewed),
        TEST(a_start_deadline_ends_a_queued_row),
        TEST(a_due_row_is_let_through_its_gate),
        TEST(a_retry_is_promoted_when_due_and_not_before),
        TEST(a_wait_ends_at_its_deadline),
        TEST(an_escalation_comes_before_the_end),
        TEST(an_externally_owned_row_has_no_deadline),
        TEST(nothing_happens_to_what_has_ended_or_belongs_to_a_session),
        TEST(a_second_sweep_finds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
