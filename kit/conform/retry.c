/* Retries and the four timeouts. The cases are named by the rules of the ledger that they check,
 * R44 to R58, A1, A2 and A18 to A20 (docs/internals/conformance.md). The test's clock starts at
 * 1800000000000 in each case, and only advance() moves it. */

#include "conform/kit.h"

#define EXACT "{\"jitter\":\"none\"}"

static struct held retried(struct hf_conform *t, struct held h, hf_ms after)
{
    advance(after);
    const struct hf_item *taken = claim(.id = NULL, .limit = 1);
    CODE(0, taken->code);
    SAME(h.id, taken->work.work_id);
    return (struct held){ h.id, taken->token };
}

test_case(r45_transient_classes_are_retried)
{
    static const char *const classes[] = { "transient_network", "rate_limit",
                                           "service_unavailable" };
    for (size_t i = 0; i < 3; i++) {
        struct held h = running();
        CODE(0, fail_as(h, classes[i])->code);
        IS("retry_scheduled", h.id);
        SAME(classes[i], row(h.id)->error_class);
    }
}

test_case(r45_hopeless_classes_fail_at_once)
{
    static const char *const classes[] = { "validation", "policy_denied",
                                           "misconfigured" };
    for (size_t i = 0; i < 3; i++) {
        struct held h = running();
        CODE(0, fail_as(h, classes[i])->code);
        IS("failed", h.id);
        SAME(classes[i], row(h.id)->error_class);
        EQ(1, row(h.id)->failures);
    }
}

test_case(a19_an_unknown_class_is_retried_within_the_bound)
{
    struct held h = running(.max_attempts = 2, .retry_policy = EXACT);
    fail_as(h, "gremlins");
    IS("retry_scheduled", h.id);
    h = retried(t, h, SEC(5));
    fail_as(h, "gremlins");
    IS("failed", h.id);
}

test_case(a20_backoff_doubles_from_five_seconds)
{
    struct held h = running(.max_attempts = 10, .retry_policy = EXACT);
    static const hf_ms delays[] = { 5000,   10000,  20000,  40000, 80000,
                                    160000, 300000, 300000, 300000 };
    for (size_t i = 0; i < 9; i++) {
        fail_as(h, "rate_limit");
        EQ(t->wall + delays[i], row(h.id)->next_retry_at);
        EQ(i + 1, row(h.id)->failures);
        h = retried(t, h, delays[i]);
    }
    fail_as(h, "rate_limit");
    IS("failed", h.id);
}

test_case(a02_max_attempts_counts_executions)
{
    struct held h = running(.retry_policy = EXACT);
    fail_as(h, "rate_limit");
    h = retried(t, h, SEC(5));
    fail_as(h, "rate_limit");
    h = retried(t, h, SEC(10));
    EQ(3, row(h.id)->attempt_count);
    fail_as(h, "rate_limit");
    IS("failed", h.id);
    EQ(3, row(h.id)->attempt_count);
    EQ(3, row(h.id)->failures);
}

test_case(r48_no_retry_beyond_max_attempts)
{
    struct held h = running(.max_attempts = 1);
    fail_as(h, "rate_limit");
    const struct hf_work *w = row(h.id);
    SAME("failed", w->status);
    SAME("rate_limit", w->error_class);
    EQ(0, w->next_retry_at);
    TRUE(w->status_reason != NULL);
}

test_case(r47_a_retry_is_queued_when_due_and_not_before)
{
    struct held h = running(.retry_policy = EXACT);
    fail_as(h, "rate_limit");
    advance(SEC(5) - 1);
    EQ(0, sweep().promoted);
    EQ(0, count_of(claim_many()));
    IS("retry_scheduled", h.id);
    advance(1);
    EQ(1, sweep().promoted);
    IS("queued", h.id);
    EQ(0, row(h.id)->next_retry_at);
    SAME("retry_scheduled", last_change(h.id)->from_status);
    SAME("queued", last_change(h.id)->to_status);
    SAME(h.id, claim()->work.work_id);
}

test_case(r50_full_jitter_stays_within_its_bounds)
{
    hf_ms least = 5000;
    hf_ms most = 0;
    for (int i = 0; i < 60; i++) {
        struct held h = running();
        fail_as(h, "rate_limit");
        hf_ms delay = row(h.id)->next_retry_at - t->wall;
        TRUE(delay >= 0 && delay <= 5000);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    TRUE(least < 1000); /* it is spread, not a constant */
    TRUE(most > 4000);
}

test_case(r44_a_retry_policy_of_its_own_is_obeyed)
{
    struct held h = running(
            .retry_policy =
                "{\"max_attempts\":3,\"initial_backoff_ms\":100,"
                "\"backoff_multiplier\":3,\"max_backoff_ms\":200,\"jitter\":\"none\"}");
    EQ(3, row(h.id)->max_attempts);
    fail_as(h, "rate_limit");
    EQ(t->wall + 100, row(h.id)->next_retry_at);
    h = retried(t, h, MS(100));
    fail_as(h, "rate_limit");
    EQ(t->wall + 200, row(h.id)->next_retry_at);
    h = retried(t, h, MS(200));
    fail_as(h, "rate_limit");
    IS("failed", h.id);
}

test_case(r44_seconds_are_understood_too)
{
    struct held h = running(
            .retry_policy =
                "{\"initial_backoff_sec\":2,\"max_backoff_sec\":3,\"jitter\":\"none\"}");
    fail_as(h, "rate_limit");
    EQ(t->wall + 2000, row(h.id)->next_retry_at);
    h = retried(t, h, SEC(2));
    fail_as(h, "rate_limit");
    EQ(t->wall + 3000, row(h.id)->next_retry_at);
}

test_case(never_on_and_retry_on_override_the_classes)
{
    struct held h = running(.retry_policy = "{\"never_on\":[\"rate_limit\"]}");
    fail_as(h, "rate_limit");
    IS("failed", h.id);
    h = running(.retry_policy = "{\"retry_on\":[\"validation\"]}");
    fail_as(h, "validation");
    IS("retry_scheduled", h.id);
}

test_case(the_retry_policy_is_fixed_at_creation)
{
    struct held h = running();
    CODE(0, policy("default", .grace_ms = -1,
                   .retry_policy = "{\"initial_backoff_ms\":1,\"jitter\":\"none\"}",
                   .max_attempts = 1));
    fail_as(h, "rate_limit");
    IS("retry_scheduled", h.id);
    EQ(3, row(h.id)->max_attempts);
}

test_case(r49_every_source_is_retried_alike)
{
    static const enum hf_source sources[] = { HF_SOURCE_CONVERSATION, HF_SOURCE_CONTROL,
                                              HF_SOURCE_SCHEDULER, HF_SOURCE_MANUAL };
    for (size_t i = 0; i < 4; i++) {
        struct held h = running(.source = sources[i], .source_run_id = "1",
                                .retry_policy = EXACT);
        fail_as(h, "rate_limit");
        EQ(t->wall + 5000, row(h.id)->next_retry_at);
    }
}

test_case(a01_an_observer_of_a_scheduled_retry_sees_one_attempt)
{
    struct held h = running();
    fail_as(h, "rate_limit");
    EQ(1, row(h.id)->attempt_count);
    EQ(1, row(h.id)->failures);
}

test_case(a_started_owner_bound_row_is_never_retried)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    fail_as(h, "rate_limit");
    IS("failed", h.id);
}

/* ---- timeouts ------------------------------------------------------------------------------ */

test_case(r51_start_timeout)
{
    const char *id = new_id(.start_timeout_ms = SEC(10), .delay_ms = SEC(5));
    EQ(1800000015000, row(id)->deadline_at);
    advance(SEC(15) - 1);
    sweep();
    IS("queued", id);
    advance(1);
    CODE(HF_ETRANSITION, claim(.id = id)->code); /* no claim starts it, swept or not */
    SAME("queued", row(id)->status);
    EQ(1, sweep().timed_out);
    SAME("timeout", row(id)->status);
    SAME("start_timeout", row(id)->status_reason);
    SAME("timeout_marked", last_change(id)->event_type);
    id = new_id(.start_timeout_ms = SEC(10));
    advance(SEC(10));
    EQ(0, count_of(claim_many(.limit = 5)));
    SAME("timeout", row(id)->status); /* it has swept */
}

test_case(r51_a_started_row_has_no_start_timeout)
{
    struct held h = running(.start_timeout_ms = SEC(10));
    EQ(0, row(h.id)->deadline_at);
    advance(SEC(10));
    renew(h);
    sweep();
    IS("running", h.id);
}

/* A unit that was started, failed at second 0, and has not been retried at second 12: its retry was
 * due at second 5, and a start deadline counted from its creation would have ended at second 10.
 * Callers promote it now, by a sweep or a claim. */
static struct held late_retry(struct hf_conform *t)
{
    struct held h = running(.start_timeout_ms = SEC(10), .exec_timeout_ms = SEC(20),
                            .retry_policy = EXACT);
    EQ(1800000020000, row(h.id)->deadline_at); /* of the execution */
    fail_as(h, "rate_limit");
    IS("retry_scheduled", h.id);
    EQ(1800000005000, row(h.id)->next_retry_at);
    EQ(0, row(h.id)->deadline_at);
    advance(SEC(12));
    return h;
}

test_case(r51_a_promoted_retry_has_its_whole_start_timeout)
{
    struct held h = late_retry(t);
    struct hf_sweep_report swept = sweep();
    EQ(1, swept.promoted);
    EQ(0, swept.timed_out);
    IS("queued", h.id);
    EQ(1800000012000, row(h.id)->due_at);
    EQ(1800000022000, row(h.id)->deadline_at);
    advance(SEC(10) - 1);
    EQ(0, sweep().timed_out);
    IS("queued", h.id);
    advance(1);
    CODE(HF_ETRANSITION, claim(.id = h.id)->code);
    EQ(1, sweep().timed_out);
    SAME("start_timeout", row(h.id)->status_reason);
    IS("timeout", h.id);
}

test_case(r52_a_promoted_retry_that_starts_has_its_whole_execution_timeout)
{
    struct held h = late_retry(t);
    EQ(1, sweep().promoted);
    advance(SEC(10) - 1);
    CODE(0, claim()->code);
    IS("running", h.id);
    EQ(1800000041999, row(h.id)->deadline_at);
}

test_case(r52_a_retry_that_a_claim_promotes_has_its_whole_execution_timeout)
{
    struct held h = late_retry(t);
    CODE(0, claim()->code);
    IS("running", h.id);
    EQ(1800000032000, row(h.id)->deadline_at);
}

test_case(r52_a_retry_that_is_claimed_by_id_has_its_whole_execution_timeout)
{
    struct held h = late_retry(t);
    CODE(0, claim(.id = h.id)->code);
    IS("running", h.id);
    EQ(1800000032000, row(h.id)->deadline_at);
}

test_case(r51_a_retry_that_is_brought_forward_has_its_whole_start_timeout)
{
    struct held h = running(.start_timeout_ms = SEC(10), .retry_policy = EXACT);
    fail_as(h, "rate_limit");
    advance(SEC(2));
    CODE(0, change(.verb = HF_VERB_RESCHEDULE, .id = h.id)->code);
    IS("queued", h.id);
    EQ(1800000012000, row(h.id)->deadline_at);
}

test_case(r52_execution_timeout)
{
    struct held h = running(.exec_timeout_ms = SEC(20));
    EQ(1800000020000, row(h.id)->deadline_at);
    advance(SEC(20) - 1);
    sweep();
    IS("running", h.id);
    advance(1);
    EQ(1, sweep().timed_out);
    SAME("timeout", row(h.id)->status);
    SAME("exec_timeout", row(h.id)->status_reason);
    CODE(HF_ELEASELOST, renew(h)->code);
}

test_case(r55_execution_timeout_fires_though_the_lease_is_renewed)
{
    struct held h = running(.exec_timeout_ms = SEC(30),
                            .disposition = HF_DISPOSITION_RERUNNABLE);
    advance(SEC(20));
    CODE(0, renew(h)->code);
    advance(SEC(10));
    CODE(0, renew(h)->code);
    sweep();
    SAME("exec_timeout", row(h.id)->status_reason);
    IS("timeout", h.id);
}

test_case(r52_each_execution_has_its_own_time)
{
    struct held h = running(.exec_timeout_ms = SEC(20));
    advance(SEC(15));
    hand_back(h);
    EQ(0, row(h.id)->deadline_at);
    claim(.id = h.id);
    EQ(1800000035000, row(h.id)->deadline_at);
}

test_case(r53_wait_timeout)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "r");
    advance(HOUR(2));
    sweep();
    SAME("wait_timeout", row(h.id)->status_reason);
    IS("timeout", h.id);
}

test_case(r54_heartbeat_timeout)
{
    struct held h = running();
    advance(SEC(75));
    sweep();
    SAME("heartbeat_timeout", row(h.id)->status_reason);
    IS("timeout", h.id);
}

test_case(r12_rerunnable_work_leaves_running_when_its_lease_lapses)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(SEC(45));
    EQ(1, sweep().requeued);
    const struct hf_work *w = row(h.id);
    SAME("queued", w->status);
    EQ(1, w->failures);
    TRUE(w->status_reason != NULL);
    CODE(HF_ELEASELOST, renew(h)->code);
}

test_case(a18_a_timeout_is_retried_only_where_the_policy_lists_it)
{
    struct held plain = running(.exec_timeout_ms = SEC(5));
    struct held listed =
        running(.exec_timeout_ms = SEC(5),
                .retry_policy = "{\"retry_on\":[\"exec_timeout\"],\"jitter\":\"none\"}");
    advance(SEC(5));
    sweep();
    IS("timeout", plain.id);
    IS("retry_scheduled", listed.id);
    EQ(t->wall + 5000, row(listed.id)->next_retry_at);
    EQ(1, row(listed.id)->failures);
}

test_case(r07_every_delay_and_every_bad_end_has_a_reason)
{
    struct held failed = running();
    close_as(failed, HF_STATUS_FAILED);
    struct held later = running();
    fail_as(later, "rate_limit");
    struct held cancelled = running();
    cancel(cancelled.id);
    struct held lapsed = running();
    advance(SEC(75));
    sweep();
    TRUE(row(failed.id)->status_reason != NULL);
    TRUE(row(later.id)->status_reason != NULL || row(later.id)->error_class != NULL);
    TRUE(row(cancelled.id)->status_reason != NULL);
    TRUE(row(lapsed.id)->status_reason != NULL);
}

/* ---- policies ------------------------------------------------------------------------------- */

test_case(r56_the_defaults_are_the_designs)
{
    struct hf_policy_answer *answer = NULL;
    if (t->failed)
        return;
    t->code = kit_called(
        t, hf_policy_get(t->store, HF_SOURCE_NONE, NULL, &answer, kit_err(t)));
    CODE(0, t->code);
    if (t->code)
        return;
    const struct hf_policy *p = hf_policy_answer_get(answer);
    EQ(45000, p->ttl_ms);
    EQ(15000, p->renew_ms);
    EQ(30000, p->grace_ms);
    EQ(86400000, p->wait_user_ms);
    EQ(7200000, p->wait_external_ms);
    EQ(0, p->start_timeout_ms);
    EQ(0, p->exec_timeout_ms);
    EQ(3, p->max_attempts);
    EQ(HF_DISPOSITION_EXPIRE, p->disposition);
    SAME(NULL, p->close_rule);
    SAME(NULL, p->wait_rule);
    SAME(row(new_id())->retry_policy, p->retry_policy);
    TRUE(contains(p->retry_policy, "\"max_attempts\":3"));
    hf_policy_answer_free(answer);
}

test_case(r57_policy_precedence_is_work_kind_source_default)
{
    CODE(0, policy("default", .grace_ms = -1, .max_attempts = 4, .ttl_ms = SEC(10),
                   .exec_timeout_ms = SEC(40)));
    CODE(0,
         policy("source:control", .grace_ms = -1, .max_attempts = 5, .ttl_ms = SEC(20)));
    CODE(0, policy("kind:k", .grace_ms = -1, .max_attempts = 6));
    EQ(4, row(new_id())->max_attempts);
    EQ(5, row(new_id(.source = HF_SOURCE_CONTROL))->max_attempts);
    struct held h = running(.source = HF_SOURCE_CONTROL, .kind = "k");
    EQ(6, row(h.id)->max_attempts);
    EQ(20000, row(h.id)->lease_ttl_ms);
    EQ(40000, row(h.id)->exec_timeout_ms);
    EQ(7, row(new_id(.kind = "k", .max_attempts = 7))->max_attempts);
    const char *id = new_id(.kind = "k");
    claim(.id = id, .ttl_ms = SEC(33));
    EQ(33000, row(id)->lease_ttl_ms);
}

test_case(lease_timings_are_fixed_at_claim)
{
    struct held h = running();
    CODE(0, policy("default", .grace_ms = SEC(1), .ttl_ms = SEC(3)));
    advance(SEC(40));
    renew(h);
    EQ(45000, row(h.id)->lease_remaining_ms);
    struct held fresh = running();
    EQ(3000, row(fresh.id)->lease_remaining_ms);
    advance(SEC(4));
    sweep();
    IS("timeout", fresh.id);
    advance(SEC(41));
    sweep();
    IS("running", h.id); /* its grace is still 30 s */
    advance(SEC(30));
    sweep();
    IS("timeout", h.id);
}

test_case(a_claims_own_default_term_gives_way_to_any_policy)
{
    const char *id = new_id();
    claim(.id = id, .ttl_default_ms = SEC(30));
    EQ(30000, row(id)->lease_ttl_ms);
    id = new_id();
    claim(.ttl_default_ms = SEC(30));
    EQ(30000, row(id)->lease_ttl_ms);
    id = new_id();
    claim(.ttl_default_ms = SEC(30), .ttl_ms = SEC(5));
    EQ(5000, row(id)->lease_ttl_ms);
    CODE(0, policy("default", .grace_ms = -1, .ttl_ms = SEC(60)));
    id = new_id();
    claim(.ttl_default_ms = SEC(30));
    EQ(60000, row(id)->lease_ttl_ms);
    id = new_id();
    claim(.id = id, .ttl_default_ms = SEC(30));
    EQ(60000, row(id)->lease_ttl_ms);
    CODE(HF_EINVAL, claim(.id = id, .ttl_default_ms = 100)->code);
}

test_case(a_policy_can_set_every_field)
{
    CODE(0, policy("kind:k", .grace_ms = 0, .ttl_ms = SEC(9), .renew_ms = SEC(3),
                   .wait_user_ms = SEC(60), .wait_external_ms = SEC(61),
                   .start_timeout_ms = SEC(62), .exec_timeout_ms = SEC(63),
                   .max_attempts = 2, .disposition = HF_DISPOSITION_EXPIRE,
                   .close_rule = "evidence"));
    struct held h = running(.kind = "k");
    const struct hf_work *w = row(h.id);
    EQ(9000, w->lease_ttl_ms);
    EQ(62000, w->start_timeout_ms);
    EQ(63000, w->exec_timeout_ms);
    EQ(2, w->max_attempts);
    SAME("expire", w->disposition);
    SAME("evidence", w->close_rule);
    advance(SEC(9)); /* no grace */
    sweep();
    IS("timeout", h.id);
    h = running(.kind = "k");
    wait_for(h, HF_STATUS_WAITING_USER, "u");
    EQ(t->wall + 60000, row(h.id)->deadline_at);
    h = running(.kind = "k");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "e");
    EQ(t->wall + 61000, row(h.id)->deadline_at);
}

test_case(a_policy_is_replaced_whole)
{
    CODE(0, policy("kind:k", .grace_ms = -1, .max_attempts = 9));
    CODE(0, policy("kind:k", .grace_ms = -1, .ttl_ms = SEC(9)));
    struct held h = running(.kind = "k");
    EQ(3, row(h.id)->max_attempts);
    EQ(9000, row(h.id)->lease_ttl_ms);
}

test_case(bad_policies_are_refused)
{
    CODE(HF_EINVAL, policy("everything", .grace_ms = -1, .max_attempts = 2));
    SAME("scope", t->err.field);
    CODE(HF_EINVAL, policy("source:mail", .grace_ms = -1, .max_attempts = 2));
    CODE(HF_EINVAL, policy("default", .grace_ms = -2));
    CODE(HF_EINVAL, policy("default", .grace_ms = -1, .wait_user_ms = -5));
    CODE(HF_EINVAL, policy("default", .grace_ms = -1, .retry_policy = "[]"));
    EQ(3, row(new_id())->max_attempts);
}

test_case(r58_the_effective_values_stand_in_the_event)
{
    struct held h = running(.max_attempts = 8);
    TRUE(contains(last_event(h.id, "work_created")->payload, "\"max_attempts\":8"));
    TRUE(contains(last_event(h.id, "claimed")->payload, "45000"));
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    TRUE(contains(last_event(h.id, "waiting_set")->payload, "86400000"));
    const char *id = new_id();
    SAME(id, claim()->work.work_id);
    TRUE(contains(last_event(id, "claimed")->payload, "45000"));
}
