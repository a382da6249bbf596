/* What failing, waiting, cancelling, requeueing and abandoning write. Which verb is refused
 * where is in test_verbs.c. */
#include "support/unit.h"

#include <string.h>

#include "support/rig.h"

/* ---- failing and going back -------------------------------------------------------- */

static void attempts_and_failures(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    struct hf_change fail = rig_held(HF_VERB_FAIL);
    struct hf_change back = rig_held(HF_VERB_HAND_BACK);
    fail.error_class = "rate_limit";
    back.reason = "drain";
    row.w.max_attempts = 2;

    /* claim, hand back: an attempt, no failure */
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n1"), 0);
    back.token = "hf1.7.1.n1";
    row = rig_written(rig, &rig->step.row, &back);
    assert_int_equal(row.w.attempt_count, 1);
    assert_int_equal(row.w.failures, 0);

    /* claim, fail: both; one execution is left */
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n2"), 0);
    fail.token = "hf1.7.2.n2";
    row = rig_written(rig, &rig->step.row, &fail);
    assert_int_equal(row.status, HF_STATUS_RETRY_SCHEDULED);
    assert_int_equal(row.w.attempt_count, 2);
    assert_int_equal(row.w.failures, 1);

    /* promoted, claimed, failed: none is left, and attempts go on counting */
    rig->env.now = row.w.next_retry_at;
    assert_int_equal(rig_sweep(rig, &row, NULL), 0);
    row = rig->step.row;
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n3"), 0);
    fail.token = "hf1.7.3.n3";
    row = rig_written(rig, &rig->step.row, &fail);
    assert_int_equal(row.status, HF_STATUS_FAILED);
    assert_string_equal(row.w.status_reason, "attempts_exhausted");
    assert_string_equal(row.w.error_class, "rate_limit");
    assert_int_equal(row.w.attempt_count, 3);
    assert_int_equal(row.w.failures, 2);
}

static void a_failure_waits_by_the_rows_own_policy(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.w.retry_policy = "{\"initial_backoff_ms\":1000,\"jitter\":\"none\","
                         "\"backoff_multiplier\":3}";
    row.w.failures = 1;
    struct hf_change change = rig_held(HF_VERB_FAIL);
    change.error_class = "rate_limit";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.event_type, "retry_scheduled");
    assert_int_equal(now.w.next_retry_at, RIG_NOW + 3000);
    assert_string_equal(now.w.status_reason, "rate_limit");
    assert_string_equal(now.w.error_class, "rate_limit");
    assert_int_equal(now.w.failures, 2);
    rig_no_lease(&now);
    assert_string_equal(
        now.note, "{\"delay_ms\":3000,\"error_class\":\"rate_limit\",\"failures\":2,"
                  "\"lease_released\":{\"fence\":4},\"max_attempts\":3,"
                  "\"next_retry_at\":1700000003000,\"reason\":\"rate_limit\"}");
    change.reason = "429 from upstream";
    assert_string_equal(rig_written(rig, &row, &change).w.status_reason,
                        "429 from upstream");
    row.w.retry_policy = "{";
    rig_refused(rig, &row, &change, HF_ECORRUPT, "retry_policy");
}

static void a_class_that_is_not_retried_fails_at_once(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_FAIL);
    change.error_class = "validation";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_FAILED);
    assert_string_equal(now.w.status_reason, "validation");
    assert_int_equal(now.w.finished_at, RIG_NOW);
    assert_int_equal(now.w.failures, 1);
}

static void a_row_that_goes_back_is_due_now_and_gated_by_its_lane(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    row.w.start_timeout_ms = 7000;
    struct hf_change change = rig_held(HF_VERB_HAND_BACK);
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.event_type, "transition");
    assert_int_equal(now.w.due_at, RIG_NOW);
    assert_int_equal(now.w.deadline_at, RIG_NOW + 7000);
    assert_null(now.w.gate);
    assert_string_equal(now.w.status_reason, "handed_back");
    assert_int_equal(now.w.failures, 0);
    rig_no_lease(&now);
    row.w.lane_key = "chat-1";
    assert_string_equal(rig_written(rig, &row, &change).w.gate, "lane");
}

/* ---- waiting ----------------------------------------------------------------------- */

static void a_wait_has_a_reference_a_budget_and_no_lease(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.w.resume_payload = "{\"old\":1}";
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_USER;
    change.ref = "ask-7";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.event_type, "waiting_set");
    assert_string_equal(now.w.waiting_kind, "user");
    assert_string_equal(now.w.waiting_ref, "ask-7");
    assert_string_equal(now.w.status_reason, "waiting_user");
    assert_int_equal(now.w.deadline_at, RIG_NOW + 86400000);
    assert_int_equal(now.w.escalate_at, 0);
    assert_int_equal(now.w.failures, 0);
    assert_null(now.w.resume_payload);
    assert_string_equal(now.settled_verb, "wait user ask-7");
    rig_no_lease(&now);
    assert_string_equal(
        now.note, "{\"deadline_at\":1700086400000,\"from\":\"policy\",\"kind\":\"user\","
                  "\"lease_released\":{\"fence\":4},\"reason\":\"waiting_user\","
                  "\"ref\":\"ask-7\",\"timeout_ms\":86400000}");
    change.status = HF_STATUS_WAITING_EXTERNAL;
    change.reason = "build runs";
    now = rig_written(rig, &row, &change);
    assert_string_equal(now.message, "build runs");
    assert_string_equal(now.w.status_reason, "build runs");
    assert_string_equal(now.w.waiting_kind, "external");
    assert_int_equal(now.w.deadline_at, RIG_NOW + 7200000);
}

static void a_wait_may_escalate_before_its_end(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_USER;
    change.ref = "ask-7";
    change.timeout_ms = 60000;
    change.escalate_after_ms = 60000;
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.w.deadline_at, RIG_NOW + 60000);
    assert_int_equal(now.w.escalate_at, RIG_NOW + 60000);
    assert_string_equal(now.w.escalate, "event");
    change.escalate = "work:page";
    assert_string_equal(rig_written(rig, &row, &change).w.escalate, "work:page");
    change.escalate_after_ms = 60001;
    rig_refused(rig, &row, &change, HF_EINVAL, "escalate_after_ms");
}

static void a_bound_row_that_waits_remembers_its_owner(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_USER;
    change.ref = "ask-7";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.w.owner, "ann");
    assert_string_equal(now.w.owner_incarnation, "i1");
    assert_string_equal(now.w.holder, "{\"pid\":1}");
    assert_null(now.claim_group);
    assert_int_equal(now.w.lease_expires_at, 0);
    /* its owner may drain it with the token of the wait */
    struct hf_change drain = rig_held(HF_VERB_ABANDON);
    struct hf_row gone = rig_written(rig, &now, &drain);
    assert_int_equal(gone.status, HF_STATUS_ABANDONED);
    assert_string_equal(gone.w.status_reason, "owner_drain");
    rig_no_lease(&gone);
    drain.token = "hf1.7.3.n0";
    rig_refused(rig, &now, &drain, HF_ELEASELOST, "token");
}

static void a_bound_row_that_takes_its_signal_keeps_its_lease(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change wait = rig_held(HF_VERB_WAIT), renew = rig_held(HF_VERB_RENEW);
    wait.status = HF_STATUS_WAITING_EXTERNAL;
    wait.ref = "signal.go";
    assert_int_equal(rig_signal(rig, &row, &wait, "{ \"n\" : 1 }"), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_string_equal(rig->step.extra_event, "signal_taken");
    struct hf_row now = rig->step.row;
    assert_int_equal(now.status, HF_STATUS_RUNNING);
    assert_string_equal(now.w.resume_payload, "{ \"n\" : 1 }");
    assert_string_equal(now.claim_group, "n1");
    assert_int_equal(now.w.lease_expires_at, row.w.lease_expires_at);
    assert_string_equal(now.settled_verb, "wait external signal.go");
    assert_string_equal(now.message, "signal.go");
    assert_string_equal(now.note, "{\"payload\":{\"n\":1},\"ref\":\"signal.go\"}");
    /* Only that wait repeats, and only without an operation id. */
    assert_int_equal(rig_apply(rig, &now, &wait), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    rig->env.operation = true;
    assert_int_equal(rig_written(rig, &now, &wait).status, HF_STATUS_WAITING_EXTERNAL);
    rig->env.operation = false;
    wait.ref = "signal.stop";
    assert_int_equal(rig_written(rig, &now, &wait).status, HF_STATUS_WAITING_EXTERNAL);
    assert_int_equal(rig_apply(rig, &now, &renew), 0);
    /* A token that its owner has rotated since is lost as any other. */
    struct hf_change done = rig_held(HF_VERB_CLOSE_OUT);
    done.status = HF_STATUS_DONE;
    now.claim_group = "n2";
    rig_refused(rig, &now, &done, HF_ELEASELOST, "token");
}

static void a_wait_brings_the_escalation_that_its_policy_asks_for(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_USER;
    change.ref = "ask-7";
    rig->policy.wait_rule = "escalation";
    rig_refused(rig, &row, &change, HF_EPOLICY, "escalate_after_ms");
    change.escalate_after_ms = 1;
    assert_int_equal(rig_written(rig, &row, &change).status, HF_STATUS_WAITING_USER);
}

static void a_resume_queues_the_row_with_its_answer(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_EXPIRE);
    row.w.escalate_at = RIG_NOW + 5;
    row.w.escalate = "event";
    struct hf_change change = rig_change(HF_VERB_RESUME);
    change.payload = "{ \"yes\" : true, \"a\":1 }";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
    assert_string_equal(now.event_type, "resumed");
    assert_string_equal(now.w.resume_payload, "{ \"yes\" : true, \"a\":1 }");
    assert_string_equal(now.w.status_reason, "resumed");
    assert_null(now.w.waiting_kind);
    assert_null(now.w.waiting_ref);
    assert_null(now.w.escalate);
    assert_int_equal(now.w.escalate_at, 0);
    assert_int_equal(now.w.deadline_at, 0);
    assert_int_equal(now.w.due_at, RIG_NOW);
    assert_null(now.w.gate);
    assert_int_equal(now.w.attempt_count, 1);
    assert_string_equal(now.message, "ask-1");
    assert_string_equal(now.note, "{\"payload\":{\"a\":1,\"yes\":true},"
                                  "\"reason\":\"resumed\",\"ref\":\"ask-1\"}");
    /* it reaches the next claimer */
    assert_int_equal(rig_claim(rig, &now, "bob", "b1", "m1"), 0);
    assert_string_equal(rig->step.row.w.resume_payload, "{ \"yes\" : true, \"a\":1 }");
    row.w.lane_key = "chat-1";
    assert_string_equal(rig_written(rig, &row, &change).w.gate, "lane");
}

static void a_resume_with_an_owner_runs_under_a_fresh_lease(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_change(HF_VERB_RESUME);
    change.owner = "bob";
    change.incarnation = "b1";
    change.nonce = "m1";
    change.ttl_ms = 9000;
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_RUNNING);
    assert_string_equal(now.event_type, "resumed");
    assert_string_equal(now.w.owner, "bob");
    assert_string_equal(now.claim_group, "m1");
    assert_int_equal(now.w.lease_fence, 5);
    assert_int_equal(now.w.attempt_count, 2);
    assert_int_equal(now.w.failures, 0);
    assert_int_equal(now.w.lease_expires_at, RIG_LEASE_NOW + 9000);
    assert_int_equal(now.lease_check_at, RIG_LEASE_NOW + 9000 + 30000);
    assert_int_equal(now.w.deadline_at, 0);
    assert_null(now.w.waiting_kind);
    /* the same call again finds its own lease */
    assert_int_equal(rig_apply(rig, &now, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    /* and two resumes have one winner */
    change.owner = "eve";
    rig_refused(rig, &now, &change, HF_ETRANSITION, "status");
    change.nonce = NULL;
    rig_refused(rig, &row, &change, HF_EINVAL, "nonce");
}

static void a_bound_row_goes_on_only_with_the_same_incarnation(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_change(HF_VERB_RESUME);
    change.owner = "ann";
    change.incarnation = "i2"; /* she was restarted */
    change.nonce = "n2";
    rig_refused(rig, &row, &change, HF_ETRANSITION, "status");
    change.incarnation = "i1";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_RUNNING);
    assert_int_equal(now.w.first_started_at, row.w.first_started_at);
}

static void an_answer_longer_than_an_event_is_named_by_its_size(void **state)
{
    struct rig *rig = *state;
    char *payload = test_malloc(70001);
    memset(payload, ' ', 70000);
    payload[0] = '1';
    payload[70000] = 0;
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_change(HF_VERB_RESUME);
    change.payload = payload;
    struct hf_row now = rig_written(rig, &row, &change);
    assert_ptr_equal(now.w.resume_payload, payload);
    assert_string_equal(now.note, "{\"payload_bytes\":70000,\"reason\":\"resumed\","
                                  "\"ref\":\"ask-1\"}");
    test_free(payload);
}

/* ---- cancel, requeue, abandon ------------------------------------------------------ */

static void a_cancel_takes_the_lease_from_its_holder(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.settled_token = "hf1.7.3.n0";
    struct hf_change change = rig_change(HF_VERB_CANCEL);
    change.reason = "not needed";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_CANCELLED);
    assert_string_equal(now.event_type, "transition");
    assert_string_equal(now.w.status_reason, "not needed");
    assert_string_equal(now.message, "not needed");
    assert_string_equal(now.settled_token,
                        "hf1.7.3.n0"); /* no caller's token settled it */
    rig_no_lease(&now);
    assert_string_equal(
        now.note, "{\"lease_released\":{\"expires_at\":900045000,\"fence\":4,"
                  "\"grace_ms\":30000,\"holder\":{\"pid\":1},\"incarnation\":\"i1\","
                  "\"owner\":\"ann\",\"ttl_ms\":45000},\"reason\":\"not needed\"}");
    struct hf_change close_out = rig_held(HF_VERB_CLOSE_OUT);
    close_out.status = HF_STATUS_DONE;
    rig_refused(rig, &now, &close_out, HF_ELEASELOST, "token");
}

static void a_bound_rows_cancel_is_a_request_that_the_owner_sees(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change cancel = rig_change(HF_VERB_CANCEL);
    cancel.reason = "stop it";
    assert_int_equal(rig_apply(rig, &row, &cancel), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_string_equal(rig->step.extra_event, "cancel_requested");
    struct hf_row asked = rig->step.row;
    assert_string_equal(asked.w.cancel_request,
                        "{\"at\":1700000000000,\"by\":\"human:op\","
                        "\"reason\":\"stop it\"}");
    assert_string_equal(asked.note, asked.w.cancel_request);
    assert_string_equal(asked.message, "stop it");
    assert_string_equal(asked.claim_group, "n1");
    assert_int_equal(asked.w.updated_at, RIG_NOW);

    cancel.reason = "me too"; /* the first writer wins */
    assert_int_equal(rig_apply(rig, &asked, &cancel), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    assert_string_equal(rig->step.row.w.cancel_request, asked.w.cancel_request);

    struct hf_change renew = rig_held(HF_VERB_RENEW);
    assert_int_equal(rig_apply(rig, &asked, &renew), 0);
    assert_non_null(rig->step.row.w.cancel_request);
    struct hf_change close_out = rig_held(HF_VERB_CLOSE_OUT);
    close_out.status = HF_STATUS_CANCELLED;
    assert_int_equal(rig_written(rig, &asked, &close_out).status, HF_STATUS_CANCELLED);
}

static void a_requeue_starts_a_new_generation(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_ABANDONED, HF_DISPOSITION_OWNER_BOUND);
    row.w.failures = 3;
    row.w.attempt_count = 9;
    row.w.generation = 1;
    row.w.result = "{}";
    row.w.error_class = "quota";
    row.w.started_at = 5;
    row.w.active_at = 5;
    row.w.resume_payload = "1";
    row.w.cancel_request = "{}";
    row.w.abandon_request = "{}";
    row.settled_token = RIG_TOKEN;
    row.settled_verb = "close_out";
    struct hf_change change = rig_change(HF_VERB_REQUEUE);
    change.reason = "fixed upstream";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_QUEUED);
    assert_string_equal(now.event_type, "requeued");
    assert_string_equal(now.w.status_reason, "fixed upstream");
    assert_string_equal(now.message, "fixed upstream");
    assert_int_equal(now.w.generation, 2);
    assert_int_equal(now.w.failures, 0);
    assert_int_equal(now.w.attempt_count, 9);
    assert_int_equal(now.w.lease_fence, 4);
    assert_int_equal(now.w.finished_at, 0);
    assert_int_equal(now.w.started_at, 0);
    assert_int_equal(now.w.first_started_at, 0);
    assert_int_equal(now.w.active_at, 0);
    assert_null(now.w.result);
    assert_null(now.w.error_class);
    assert_null(now.w.resume_payload);
    assert_null(now.w.cancel_request);
    assert_null(now.w.abandon_request);
    assert_null(now.settled_token);
    assert_null(now.settled_verb);
    assert_string_equal(now.note, "{\"generation\":2,\"reason\":\"fixed upstream\"}");
}

static void an_abandon_request_is_recorded_once_and_looked_at_soon(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_change(HF_VERB_REQUEST_ABANDON);
    change.reason = "machine is gone";
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_string_equal(rig->step.extra_event, "abandon_requested");
    assert_string_equal(rig->step.row.w.abandon_request,
                        "{\"at\":1700000000000,\"by\":\"human:op\","
                        "\"reason\":\"machine is gone\"}");
    assert_int_equal(rig->step.row.lease_check_at, RIG_LEASE_NOW);
    assert_int_equal(rig->step.row.w.lease_expires_at, row.w.lease_expires_at);
    struct hf_row asked = rig->step.row;
    assert_int_equal(rig_apply(rig, &asked, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    /* a row that has not begun is cancelled instead */
    row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_OWNER_BOUND);
    rig_refused(rig, &row, &change, HF_ETRANSITION, "status");
}

static void a_drain_says_that_the_owner_wrote_it(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_held(HF_VERB_ABANDON);
    change.reason = "shutting down";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_int_equal(now.status, HF_STATUS_ABANDONED);
    assert_string_equal(now.w.status_reason, "owner_drain");
    assert_string_equal(now.message, "shutting down");
    assert_string_equal(now.note, "{\"lease_released\":{\"fence\":4},"
                                  "\"reason\":\"shutting down\","
                                  "\"writer\":\"owner_drain\"}");
    rig_no_lease(&now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(attempts_and_failures),
        TEST(a_failure_waits_by_the_rows_own_policy),
        TEST(a_class_that_is_not_retried_fails_at_once),
        TEST(a_row_that_goes_back_is_due_now_and_gated_by_its_lane),
        TEST(a_wait_has_a_reference_a_budget_and_no_lease),
        TEST(a_wait_may_escalate_before_its_end),
        TEST(a_bound_row_that_waits_remembers_its_owner),
        TEST(a_bound_row_that_takes_its_signal_keeps_its_lease),
        TEST(a_wait_brings_the_escalation_that_its_policy_asks_for),
        TEST(a_resume_queues_the_row_with_its_answer),
        TEST(a_resume_with_an_owner_runs_under_a_fresh_lease),
        TEST(a_bound_row_goes_on_only_with_the_same_incarnation),
        TEST(an_answer_longer_than_an_event_is_named_by_its_size),
        TEST(a_cancel_takes_the_lease_from_its_holder),
        TEST(a_bound_rows_cancel_is_a_request_that_the_owner_sees),
        TEST(a_requeue_starts_a_new_generation),
        TEST(an_abandon_request_is_recorded_once_and_looked_at_soon),
        TEST(a_drain_says_that_the_owner_wrote_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
