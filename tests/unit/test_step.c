/* What claims and a holder's verbs write, column by column where it matters, and the
 * numbered rules that core decides. Which verb is refused where is in test_verbs.c. */
#include "support/unit.h"

#include <string.h>

#include "support/rig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- claim ------------------------------------------------------------------------- */

static void a_claim_writes_lease_attempt_and_times(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_EXPIRE);
    row.w.lease_fence = 4;
    row.w.attempt_count = 2;
    row.w.exec_timeout_ms = 60000;
    row.w.status_reason = "retry_due";
    row.w.deadline_at = RIG_NOW + 5; /* of the start */
    row.w.error_class = "rate_limit";
    rig->env.holder = "{\"pid\":9}";
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), 0);
    const struct hf_row *now = &rig->step.row;
    assert_int_equal(rig->step.kind, HF_STEP_WRITE);
    assert_string_equal(now->event_type, "claimed");
    assert_string_equal(now->w.owner, "bob");
    assert_string_equal(now->w.owner_incarnation, "b1");
    assert_string_equal(now->claim_group, "m1");
    assert_string_equal(now->w.holder, "{\"pid\":9}");
    assert_int_equal(now->w.lease_fence, 5);
    assert_int_equal(now->lease_incarnation, RIG_STORE);
    assert_int_equal(now->w.attempt_count, 3);
    assert_int_equal(now->w.lease_ttl_ms, 45000);
    assert_int_equal(now->w.lease_expires_at, RIG_LEASE_NOW + 45000);
    assert_int_equal(now->w.lease_remaining_ms, 45000);
    assert_int_equal(now->grace_ms, 30000);
    assert_int_equal(now->lease_check_at, RIG_LEASE_NOW + 75000);
    assert_int_equal(now->w.deadline_at, RIG_NOW + 60000);
    assert_int_equal(now->w.started_at, RIG_NOW);
    assert_int_equal(now->w.first_started_at, RIG_NOW);
    assert_int_equal(now->w.active_at, RIG_NOW);
    assert_null(now->w.status_reason);
    assert_string_equal(now->w.error_class, "rate_limit"); /* of the last failure */
    assert_string_equal(now->note,
                        "{\"deadline_at\":1700000060000,\"from\":\"policy\",\"lease\":{"
                        "\"expires_at\":900045000,\"fence\":5,\"grace_ms\":30000,"
                        "\"holder\":{\"pid\":9},\"incarnation\":\"b1\",\"owner\":\"bob\","
                        "\"ttl_ms\":45000}}");
    assert_string_equal(now->event_correlation_id, "corr-1");
}

static void grace_is_for_expire_rows_only(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), 0);
    assert_int_equal(rig->step.row.lease_check_at, RIG_LEASE_NOW + 45000);
}

static void a_gated_row_is_not_claimed(void **state)
{
    struct rig *rig = *state;
    static const char *const gates[] = { "due", "lane", "limit", "rate", "held" };
    for (size_t i = 0; i < COUNT(gates); i++) {
        struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
        row.w.gate = gates[i];
        assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), HF_ETRANSITION);
        assert_string_equal(rig->err.field, "gate");
    }
}

static void reentry(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n1"), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    assert_string_equal(rig->step.row.claim_group, "n1");

    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n2"), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_string_equal(rig->step.extra_event, "lease_rotated");
    assert_string_equal(rig->step.row.claim_group, "n2");
    assert_int_equal(rig->step.row.w.lease_fence, 4);
    assert_int_equal(rig->step.row.w.attempt_count, 1);
    assert_int_equal(rig->step.row.w.started_at, row.w.started_at);

    assert_int_equal(rig_claim(rig, &row, "ann", "i2", "n1"), HF_EHELD);
    assert_int_equal(rig_claim(rig, &row, "bob", "i1", "n1"), HF_EHELD);
}

static void a_late_holder_may_come_in_again_while_nobody_acted(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    row.w.lease_expires_at = RIG_LEASE_NOW - 1;
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n1"), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n2"), 0);
    assert_int_equal(rig->step.row.w.lease_expires_at, RIG_LEASE_NOW + 45000);
    /* another caller leaves a lapsed row to the sweep */
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), HF_EHELD);
    assert_non_null(strstr(rig->err.message, "sweep"));
}

static void exhausted_counters_are_typed(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    row.w.attempt_count = INT64_MAX;
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), HF_EOVERFLOW);
    assert_string_equal(rig->err.field, "attempt_count");
    row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_RERUNNABLE);
    row.w.lease_fence = INT64_MAX;
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), HF_EOVERFLOW);
    assert_string_equal(rig->err.field, "lease_fence");

    row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    row.w.failures = INT64_MAX;
    struct hf_change fail = rig_held(HF_VERB_FAIL);
    fail.error_class = "rate_limit";
    rig_refused(rig, &row, &fail, HF_EOVERFLOW, "failures");
    row = rig_row(HF_STATUS_DONE, HF_DISPOSITION_RERUNNABLE);
    row.w.generation = INT64_MAX;
    struct hf_change requeue = rig_change(HF_VERB_REQUEUE);
    requeue.reason = "again";
    rig_refused(rig, &row, &requeue, HF_EOVERFLOW, "generation");
    row.w.generation = -1;
    rig_refused(rig, &row, &requeue, HF_ECORRUPT, "generation");
}

/* ---- tokens ------------------------------------------------------------------------ */

static void token_carries_the_fence(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    static const char *const stale[] = { "hf1.7.3.n1", "hf1.7.5.n1", "hf1.7.4.n2",
                                         "hf1.6.4.n1", "hf1.8.4.n1" };
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    for (size_t i = 0; i < COUNT(stale); i++) {
        change.token = stale[i];
        rig_refused(rig, &row, &change, HF_ELEASELOST, "token");
    }
    change.token = "n1";
    rig_refused(rig, &row, &change, HF_EINVAL, "token");
}

static void the_lease_is_checked_before_anything_else(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_DONE,
                                HF_DISPOSITION_EXPIRE); /* the status is wrong as well */
    row.w.close_rule = "evidence";
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_ABANDONED; /* and so is the target */
    rig_refused(rig, &row, &change, HF_ELEASELOST, "token");
    change = rig_held(HF_VERB_CANCEL);
    change.reason = "r";
    rig_refused(rig, &row, &change, HF_ELEASELOST, "token");
}

static void incarnation_refuses_holders_not_patience(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    rig->env.store = RIG_STORE + 1; /* the store was restored or bumped */
    struct hf_change change = rig_held(HF_VERB_RENEW);
    rig_refused(rig, &row, &change, HF_ELEASELOST, "token");
    assert_int_equal(rig_claim(rig, &row, "ann", "i1", "n1"), HF_EHELD);
    assert_int_equal(rig_claim(rig, &row, "bob", "b1", "m1"), HF_EHELD);
    assert_int_equal(rig_sweep(rig, &row, NULL), 0);
    assert_int_equal(rig->step.kind, HF_STEP_NOTHING);
    rig->env.lease_now = row.w.lease_expires_at;
    assert_int_equal(rig_sweep(rig, &row, NULL), 0);
    assert_int_equal(rig->step.row.status, HF_STATUS_QUEUED);
}

static void a_late_close_out_is_accepted_while_nobody_acted(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    rig->env.lease_now = row.w.lease_expires_at + 1000000;
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    struct hf_row done = rig_written(rig, &row, &change);
    assert_int_equal(done.status, HF_STATUS_DONE);
    /* the sweep came first: no third outcome */
    assert_int_equal(rig_sweep(rig, &row, NULL), 0);
    struct hf_row swept = rig->step.row;
    assert_int_equal(swept.status, HF_STATUS_TIMEOUT);
    rig_refused(rig, &swept, &change, HF_ELEASELOST, "token");
}

static void renewal_touches_no_index(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    rig->env.lease_now += 15000;
    rig->env.now += 15000;
    struct hf_change change = rig_held(HF_VERB_RENEW);
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_null(rig->step.extra_event);
    const struct hf_row *now = &rig->step.row;
    assert_int_equal(now->w.lease_expires_at, RIG_LEASE_NOW + 15000 + 45000);
    assert_int_equal(now->lease_check_at, row.lease_check_at);
    assert_int_equal(now->w.lease_ttl_ms, row.w.lease_ttl_ms);
    assert_int_equal(now->w.updated_at, row.w.updated_at);
    assert_int_equal(now->w.active_at, row.w.active_at);
    assert_int_equal(now->w.lease_fence, 4);
    assert_string_equal(now->claim_group, "n1");

    change.ttl_ms = 90000; /* this once */
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    assert_int_equal(rig->step.row.w.lease_expires_at, RIG_LEASE_NOW + 15000 + 90000);
    assert_int_equal(rig->step.row.w.lease_ttl_ms, 45000);
    change.ttl_ms = 749;
    rig_refused(rig, &row, &change, HF_EINVAL, "ttl_ms");
}

static void a_late_renewal_saves_the_lease(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    rig->env.lease_now = row.w.lease_expires_at + RIG_GRACE + 5;
    struct hf_change change = rig_held(HF_VERB_RENEW);
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    struct hf_row saved = rig->step.row;
    assert_int_equal(rig_sweep(rig, &saved, NULL), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET); /* looked at again later */
    assert_int_equal(rig->step.swept, HF_SWEPT_PUSHED);
}

static void a_touch_is_activity_and_no_renewal(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_TOUCH);
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_null(rig->step.extra_event);
    assert_int_equal(rig->step.row.w.active_at, RIG_NOW);
    assert_int_equal(rig->step.row.w.lease_expires_at, row.w.lease_expires_at);
    assert_int_equal(rig->step.row.w.updated_at, row.w.updated_at);
}

static void an_appended_event_changes_no_column(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_APPEND);
    change.type = "progress";
    change.payload = "{\"done\":3}";
    change.reason = "half way";
    assert_int_equal(rig_apply(rig, &row, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_QUIET);
    assert_string_equal(rig->step.extra_event, "progress");
    assert_string_equal(rig->step.row.note, "{\"done\":3}");
    assert_string_equal(rig->step.row.message, "half way");
    assert_memory_equal(&rig->step.row.w, &row.w, sizeof(row.w));
}

/* ---- close-out --------------------------------------------------------------------- */

static void a_close_out_keeps_everything_it_was_given(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    static const char *const outputs[] = { "file:/out/a", "blob:b" };
    static const char *const evidence[] = { "https://ci/7" };
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_FAILED;
    change.reason = "tests red";
    change.error_class = "validation";
    change.summary = "two \"red\" tests";
    change.outputs = outputs;
    change.output_count = 2;
    change.evidence = evidence;
    change.evidence_count = 1;
    change.reviewer = "eve";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.event_type, "close_out");
    assert_string_equal(now.w.status_reason, "tests red");
    assert_string_equal(now.w.error_class, "validation");
    assert_string_equal(now.message, "tests red");
    assert_int_equal(now.w.finished_at, RIG_NOW);
    assert_string_equal(now.settled_token, RIG_TOKEN);
    assert_string_equal(now.settled_verb, "close_out");
    rig_no_lease(&now);
    assert_string_equal(now.w.result, "{\"evidence\":[\"https://ci/7\"],"
                                      "\"outputs\":[\"file:/out/a\",\"blob:b\"],"
                                      "\"reviewer\":\"eve\","
                                      "\"summary\":\"two \\\"red\\\" tests\"}");
    assert_string_equal(
        now.note, "{\"error_class\":\"validation\",\"evidence\":[\"https://ci/7\"],"
                  "\"lease_released\":{\"fence\":4},"
                  "\"outputs\":[\"file:/out/a\",\"blob:b\"],\"reason\":\"tests red\","
                  "\"reviewer\":\"eve\",\"status\":\"failed\","
                  "\"summary\":\"two \\\"red\\\" tests\"}");
}

static void a_plain_close_out_is_short(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.w.error_class = "rate_limit"; /* of an earlier failure */
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    struct hf_row now = rig_written(rig, &row, &change);
    assert_null(now.w.result);
    assert_null(now.w.status_reason);
    assert_null(now.w.error_class);
    assert_string_equal(now.note,
                        "{\"lease_released\":{\"fence\":4},\"status\":\"done\"}");
}

static void a_result_is_whatever_part_was_given(void **state)
{
    struct rig *rig = *state;
    static const char *const refs[] = { "file:/a" };
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    change.outputs = refs;
    change.output_count = 1;
    assert_string_equal(rig_written(rig, &row, &change).w.result,
                        "{\"outputs\":[\"file:/a\"]}");
    change.output_count = 0;
    change.evidence = refs;
    change.evidence_count = 1;
    assert_string_equal(rig_written(rig, &row, &change).w.result,
                        "{\"evidence\":[\"file:/a\"]}");
    change.evidence_count = 0;
    change.reviewer = "eve";
    assert_string_equal(rig_written(rig, &row, &change).w.result,
                        "{\"reviewer\":\"eve\"}");
    change.reviewer = NULL;
    change.summary = "";
    assert_string_equal(rig_written(rig, &row, &change).w.result, "{\"summary\":\"\"}");
}

static void every_end_that_is_no_success_has_a_reason(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_FAILED;
    assert_string_equal(rig_written(rig, &row, &change).w.status_reason, "failed");
    change.error_class = "quota";
    assert_string_equal(rig_written(rig, &row, &change).w.status_reason, "quota");
    change.error_class = NULL;
    change.status = HF_STATUS_TIMEOUT;
    assert_string_equal(rig_written(rig, &row, &change).w.status_reason, "timeout");
    change.status = HF_STATUS_CANCELLED;
    assert_string_equal(rig_written(rig, &row, &change).w.status_reason, "cancelled");
}

static void a_repeated_settle_answers_as_the_first_did(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    struct hf_row done = rig_written(rig, &row, &change);
    assert_int_equal(rig_apply(rig, &done, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    assert_memory_equal(&rig->step.row, &done, sizeof(done));
    rig->env.store++; /* applied is applied, whatever became of the store since */
    assert_int_equal(rig_apply(rig, &done, &change), 0);
    rig->env.store--;

    change.status = HF_STATUS_FAILED; /* another status is another wish */
    rig_refused(rig, &done, &change, HF_ETRANSITION, "status");
    struct hf_change wait = rig_held(HF_VERB_WAIT);
    wait.status = HF_STATUS_WAITING_USER;
    wait.ref = "r";
    rig_refused(rig, &done, &wait, HF_ETRANSITION, "status");
    struct hf_change renew = rig_held(HF_VERB_RENEW);
    rig_refused(rig, &done, &renew, HF_ELEASELOST, "token");
    change.token = "hf1.7.4.n2"; /* another token never settled anything */
    rig_refused(rig, &done, &change, HF_ELEASELOST, "token");
}

static void repeats_are_known_for_every_settling_verb(void **state)
{
    struct rig *rig = *state;
    static const enum hf_verb verbs[] = { HF_VERB_WAIT, HF_VERB_FAIL, HF_VERB_HAND_BACK,
                                          HF_VERB_CANCEL };
    for (size_t i = 0; i < COUNT(verbs); i++) {
        struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
        struct hf_change change = rig_held(verbs[i]);
        change.status = HF_STATUS_WAITING_USER;
        change.ref = "ask-1";
        change.error_class = "rate_limit";
        change.reason = "r";
        struct hf_row now = rig_written(rig, &row, &change);
        assert_int_equal(rig_apply(rig, &now, &change), 0);
        assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    }
}

static void a_hand_back_is_repeatable_after_the_next_claim(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_RERUNNABLE);
    struct hf_change change = rig_held(HF_VERB_HAND_BACK);
    struct hf_row back = rig_written(rig, &row, &change);
    assert_int_equal(rig_claim(rig, &back, "bob", "b1", "m1"), 0);
    struct hf_row bobs = rig->step.row;
    assert_int_equal(rig_apply(rig, &bobs, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
}

static void evidence_where_the_row_asks_for_it(void **state)
{
    struct rig *rig = *state;
    static const char *const evidence[] = { "file:/tmp/log" };
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.w.close_rule = "evidence";
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    rig_refused(rig, &row, &change, HF_EPOLICY, "evidence");
    change.evidence = evidence;
    change.evidence_count = 1;
    assert_int_equal(rig_written(rig, &row, &change).status, HF_STATUS_DONE);
    change.evidence_count = 0;
    change.status = HF_STATUS_FAILED; /* only success must be shown */
    assert_int_equal(rig_written(rig, &row, &change).status, HF_STATUS_FAILED);
}

static void a_reviewer_is_somebody_else(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    row.w.close_rule = "reviewer";
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    rig_refused(rig, &row, &change, HF_EPOLICY, "reviewer");
    change.reviewer = "ann"; /* the owner */
    rig_refused(rig, &row, &change, HF_EPOLICY, "reviewer");
    change.reviewer = "eve";
    assert_int_equal(rig_written(rig, &row, &change).status, HF_STATUS_DONE);
}

static void an_authority_completes_what_is_owned_outside(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_EXTERNAL,
                                HF_DISPOSITION_EXTERNALLY_OWNED);
    struct hf_change change = rig_change(HF_VERB_CLOSE_OUT);
    change.authority = "github";
    change.status = HF_STATUS_DONE;
    change.summary = "merged";
    struct hf_row now = rig_written(rig, &row, &change);
    assert_string_equal(now.event_type, "close_out");
    assert_string_equal(now.note, "{\"authority\":\"github\",\"status\":\"done\","
                                  "\"summary\":\"merged\"}");
    assert_null(now.settled_token);
    row.w.close_rule = "reviewer";
    change.reviewer = "github";
    rig_refused(rig, &row, &change, HF_EPOLICY, "reviewer");
}

static void an_authority_repeats_only_what_it_did(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_WAITING_EXTERNAL,
                                HF_DISPOSITION_EXTERNALLY_OWNED);
    struct hf_change change = rig_change(HF_VERB_CLOSE_OUT);
    change.authority = "github";
    change.status = HF_STATUS_CANCELLED;
    change.reason = "not wanted";
    struct hf_row ended = rig_written(rig, &row, &change);
    assert_int_equal(rig_apply(rig, &ended, &change), 0);
    assert_int_equal(rig->step.kind, HF_STEP_REPEAT);
    change.authority = "jenkins";
    rig_refused(rig, &ended, &change, HF_ETRANSITION, "status");
    /* A person's cancel looks the same, and is not the authority's. */
    struct hf_change cancel = rig_change(HF_VERB_CANCEL);
    cancel.reason = "not wanted";
    ended = rig_written(rig, &row, &cancel);
    rig_refused(rig, &ended, &change, HF_ETRANSITION, "status");
}

static void a_person_ends_a_wait_for_the_close_rule(void **state)
{
    struct rig *rig = *state;
    static const enum hf_disposition all[] = { HF_DISPOSITION_RERUNNABLE,
                                               HF_DISPOSITION_EXPIRE,
                                               HF_DISPOSITION_OWNER_BOUND };
    for (size_t i = 0; i < COUNT(all); i++) {
        struct hf_row row = rig_row(HF_STATUS_WAITING_USER, all[i]);
        struct hf_change change = rig_change(HF_VERB_CLOSE_OUT);
        change.authority = "eve";
        change.status = HF_STATUS_DONE;
        change.reviewer = "eve";
        row.w.close_rule = "reviewer";
        rig_refused(rig, &row, &change, HF_ETRANSITION, "status"); /* another wait */
        row.w.waiting_ref = row.w.work_id;
        row.settled_token = RIG_TOKEN;
        row.settled_verb = "wait user w-1";
        change.reviewer = NULL;
        rig_refused(rig, &row, &change, HF_EPOLICY, "reviewer");
        change.reviewer = "eve";
        struct hf_row now = rig_written(rig, &row, &change);
        assert_int_equal(now.status, HF_STATUS_DONE);
        assert_string_equal(now.event_type, "close_out");
        assert_string_equal(now.w.result, "{\"reviewer\":\"eve\"}");
        assert_null(now.settled_token);
        rig_no_lease(&now);
        change.status = HF_STATUS_CANCELLED; /* by the verb for that */
        rig_refused(rig, &row, &change, HF_ETRANSITION, "status");
        row.w.close_rule = NULL; /* a wait whose reference happens to be the id */
        change.status = HF_STATUS_DONE;
        rig_refused(rig, &row, &change, HF_ETRANSITION, "status");
    }
    struct hf_row bound = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_change(HF_VERB_CLOSE_OUT);
    bound.w.waiting_ref = bound.w.work_id;
    bound.w.close_rule = "reviewer";
    change.authority = "eve";
    change.status = HF_STATUS_DONE;
    change.reviewer = "ann"; /* the owner */
    rig_refused(rig, &bound, &change, HF_EPOLICY, "reviewer");
}

static void unknown_verbs_are_refused(void **state)
{
    struct rig *rig = *state;
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_change(HF_VERB_NONE);
    rig_refused(rig, &row, &change, HF_EINVAL, "verb");
    change.verb = (enum hf_verb)77;
    rig_refused(rig, &row, &change, HF_EINVAL, "verb");
    static const enum hf_verb holders[] = { HF_VERB_RENEW,     HF_VERB_TOUCH,
                                            HF_VERB_APPEND,    HF_VERB_WAIT,
                                            HF_VERB_CLOSE_OUT, HF_VERB_FAIL,
                                            HF_VERB_HAND_BACK, HF_VERB_ABANDON };
    for (size_t i = 0; i < COUNT(holders); i++) {
        change = rig_change(holders[i]); /* and a holder's verb without a token */
        change.status = HF_STATUS_DONE;
        rig_refused(rig, &row, &change, HF_EINVAL, "token");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_claim_writes_lease_attempt_and_times),
        TEST(grace_is_for_expire_rows_only),
        TEST(a_gated_row_is_not_claimed),
        TEST(reentry),
        TEST(a_late_holder_may_come_in_again_while_nobody_acted),
        TEST(exhausted_counters_are_typed),
        TEST(token_carries_the_fence),
        TEST(the_lease_is_checked_before_anything_else),
        TEST(incarnation_refuses_holders_not_patience),
        TEST(a_late_close_out_is_accepted_while_nobody_acted),
        TEST(renewal_touches_no_index),
        TEST(a_late_renewal_saves_the_lease),
        TEST(a_touch_is_activity_and_no_renewal),
        TEST(an_appended_event_changes_no_column),
        TEST(a_close_out_keeps_everything_it_was_given),
        TEST(a_plain_close_out_is_short),
        TEST(a_result_is_whatever_part_was_given),
        TEST(every_end_that_is_no_success_has_a_reason),
        TEST(a_repeated_settle_answers_as_the_first_did),
        TEST(repeats_are_known_for_every_settling_verb),
        TEST(a_hand_back_is_repeatable_after_the_next_claim),
        TEST(evidence_where_the_row_asks_for_it),
        TEST(a_reviewer_is_somebody_else),
        TEST(an_authority_completes_what_is_owned_outside),
        TEST(an_authority_repeats_only_what_it_did),
        TEST(a_person_ends_a_wait_for_the_close_rule),
        TEST(unknown_verbs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
