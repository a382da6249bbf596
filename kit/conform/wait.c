/* Waiting and resuming: R17, R39 to R43, A25. */

#include "conform/kit.h"

test_case(r17_entering_a_wait_releases_the_lease)
{
    struct held h = running();
    advance(SEC(1));
    CODE(0, wait_for(h, HF_STATUS_WAITING_USER, "chat-1")->code);
    const struct hf_work *w = row(h.id);
    SAME("waiting_user", w->status);
    SAME("user", w->waiting_kind);
    SAME("chat-1", w->waiting_ref);
    SAME(NULL, w->owner);
    EQ(0, w->lease_expires_at);
    SAME("waiting_set", last_change(h.id)->event_type);
    const char *before = picture();
    CODE(HF_ELEASELOST, renew(h)->code);
    CODE(HF_ETRANSITION,
         close_as(h, HF_STATUS_DONE)->code); /* its own wait settled the row */
    UNCHANGED(before);
}

test_case(r39_waits_have_a_deadline_by_kind)
{
    struct held user = running();
    wait_for(user, HF_STATUS_WAITING_USER, "u");
    struct held external = running();
    wait_for(external, HF_STATUS_WAITING_EXTERNAL, "e");
    EQ(1800000000000 + 86400000, row(user.id)->deadline_at);
    EQ(1800000000000 + 7200000, row(external.id)->deadline_at);
    struct held h = running();
    change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
           .status = HF_STATUS_WAITING_USER, .ref = "x", .timeout_ms = SEC(90));
    EQ(1800000090000, row(h.id)->deadline_at);
}

test_case(r39_a_wait_names_its_reference)
{
    struct held h = running();
    const char *before = picture();
    CODE(HF_EINVAL, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_WAITING_USER)
                        ->code);
    SAME("ref", t->err.field);
    UNCHANGED(before);
}

test_case(r40_resume_queues_the_row_with_its_payload)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    advance(SEC(5));
    const struct hf_item *woken = change(.verb = HF_VERB_RESUME, .id = h.id,
                                         .payload = "{\"answer\":42}");
    CODE(0, woken->code);
    SAME(NULL, woken->token);
    const struct hf_work *w = row(h.id);
    SAME("queued", w->status);
    SAME(NULL, w->waiting_kind);
    SAME(NULL, w->waiting_ref);
    EQ(0, w->deadline_at);
    const struct hf_event *event = last_change(h.id);
    SAME("resumed", event->event_type);
    SAME("waiting_user", event->from_status);
    SAME("queued", event->to_status);
    const struct hf_item *taken = claim(.owner = "bob");
    SAME(h.id, taken->work.work_id);
    SAME("{\"answer\":42}", taken->work.resume_payload);
}

test_case(r40_resume_with_an_owner_runs_under_a_fresh_lease)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "r");
    const struct hf_item *woken = change(.verb = HF_VERB_RESUME, .id = h.id,
                                         .owner = "bob", .incarnation = "b1",
                                         .ttl_ms = SEC(20), .payload = "1");
    CODE(0, woken->code);
    TRUE(woken->token != NULL);
    const struct hf_work *w = row(h.id);
    SAME("running", w->status);
    SAME("bob", w->owner);
    EQ(2, w->lease_fence);
    EQ(2, w->attempt_count);
    EQ(20000, w->lease_remaining_ms);
    EQ(20000, w->lease_ttl_ms);
    SAME("1", w->resume_payload);
    CODE(0, close_as(((struct held){ h.id, woken->token }), HF_STATUS_DONE)->code);
}

test_case(a_nonce_repeats_a_resume_with_its_token)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    struct hf_change taken = { .verb = HF_VERB_RESUME,
                               .id = h.id,
                               .owner = "bob",
                               .incarnation = "b1",
                               .nonce = "n" };
    const struct hf_item *first = kit_change(AT(t), taken);
    const char *before = picture();
    const struct hf_item *again = kit_change(AT(t), taken);
    CODE(0, again->code);
    TRUE(again->repeated);
    SAME(first->token, again->token);
    taken.nonce = "other";
    CODE(HF_ETRANSITION, kit_change(AT(t), taken)->code);
    UNCHANGED(before);
}

test_case(r41_resume_by_reference)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "invoice-7");
    const struct hf_item *woken = change(.verb = HF_VERB_RESUME, .ref = "invoice-7");
    CODE(0, woken->code);
    SAME(h.id, woken->work.work_id);
    IS("queued", h.id);
    CODE(HF_ENOTFOUND, change(.verb = HF_VERB_RESUME, .ref = "no-such-wait")->code);
}

test_case(r41_a_wait_of_a_turn_is_no_reference_of_a_unit)
{
    const char *id = "a01a1e691-b025-7000-a2d6-2acac0bb86ad-31dfc743939ce493876eeeec";
    const char *before = picture();
    CODE(HF_EINVAL, change(.verb = HF_VERB_RESUME, .ref = id)->code);
    SAME("ref", t->err.field);
    UNCHANGED(before);
}

test_case(r41_resume_by_an_ambiguous_reference_is_refused)
{
    struct held one = running();
    struct held two = running();
    wait_for(one, HF_STATUS_WAITING_USER, "same");
    wait_for(two, HF_STATUS_WAITING_USER, "same");
    const char *before = picture();
    CODE(HF_EAMBIGUOUS, change(.verb = HF_VERB_RESUME, .ref = "same")->code);
    UNCHANGED(before);
    CODE(0, resume(one.id)->code);
    CODE(0, change(.verb = HF_VERB_RESUME, .ref = "same")->code);
    IS("queued", two.id);
}

test_case(r41_a_status_narrows_a_resume_by_reference)
{
    struct held asks = running();
    struct held calls = running();
    wait_for(asks, HF_STATUS_WAITING_USER, "same");
    wait_for(calls, HF_STATUS_WAITING_EXTERNAL, "same");
    CODE(HF_EAMBIGUOUS, change(.verb = HF_VERB_RESUME, .ref = "same")->code);
    CODE(0, change(.verb = HF_VERB_RESUME, .ref = "same",
                   .status = HF_STATUS_WAITING_EXTERNAL)
                ->code);
    IS("queued", calls.id);
    IS("waiting_user", asks.id);
    const char *before = picture();
    CODE(HF_ENOTFOUND, change(.verb = HF_VERB_RESUME, .ref = "same",
                              .status = HF_STATUS_WAITING_EXTERNAL)
                           ->code);
    UNCHANGED(before);
    CODE(0,
         change(.verb = HF_VERB_RESUME, .ref = "same", .status = HF_STATUS_WAITING_USER)
             ->code);
    IS("queued", asks.id);
}

test_case(r41_of_two_resumes_one_wins)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    CODE(0, change(.verb = HF_VERB_RESUME, .id = h.id, .payload = "1")->code);
    CODE(HF_ETRANSITION,
         change(.verb = HF_VERB_RESUME, .id = h.id, .payload = "2")->code);
    SAME("1", row(h.id)->resume_payload);
    EQ(1, count_events(h.id, "resumed"));
}

test_case(r41_a_wait_survives_a_reopened_store)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    reopen();
    IS("waiting_user", h.id);
    CODE(0, change(.verb = HF_VERB_RESUME, .ref = "r")->code);
    IS("queued", h.id);
}

test_case(r42_a_wait_past_its_deadline_times_out)
{
    struct held h = running();
    change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
           .status = HF_STATUS_WAITING_USER, .ref = "x", .timeout_ms = SEC(10));
    advance(SEC(10) - 1);
    sweep();
    IS("waiting_user", h.id);
    advance(1);
    EQ(1, sweep().timed_out);
    const struct hf_work *w = row(h.id);
    SAME("timeout", w->status);
    SAME("wait_timeout", w->status_reason);
    SAME("timeout_marked", last_change(h.id)->event_type);
    CODE(HF_ETRANSITION, resume(h.id)->code);
}

test_case(r42_escalation_by_event_comes_before_the_deadline_and_once)
{
    struct held h = running();
    CODE(0, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_WAITING_USER, .ref = "x", .timeout_ms = HOUR(1),
                   .escalate_after_ms = MINUTE(10), .escalate = "event")
                ->code);
    EQ(1800000600000, row(h.id)->escalate_at);
    advance(MINUTE(10) - 1);
    EQ(0, sweep().escalated);
    advance(1);
    EQ(1, sweep().escalated);
    EQ(1, count_events(h.id, "escalated"));
    EQ(0, sweep().escalated);
    advance(MINUTE(20));
    EQ(0, sweep().escalated);
    EQ(1, count_events(h.id, "escalated"));
    IS("waiting_user", h.id);
    advance(MINUTE(30));
    sweep();
    IS("timeout", h.id);
}

test_case(r42_escalation_by_work_creates_a_unit_beside)
{
    struct held h = running();
    CODE(0, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_WAITING_USER, .ref = "x", .timeout_ms = HOUR(1),
                   .escalate_after_ms = MINUTE(10), .escalate = "work:page-person")
                ->code);
    advance(MINUTE(10));
    EQ(1, sweep().escalated);
    const char *const kinds[] = { "page-person" };
    const struct hf_item *page = claim(.kinds = kinds, .kind_count = 1);
    SAME("page-person", page->work.kind);
    SAME(h.id, page->work.parent_work_id);
    EQ(0, sweep().escalated);
    IS("waiting_user", h.id);
}

test_case(a_resumed_wait_escalates_no_more)
{
    struct held h = running();
    change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
           .status = HF_STATUS_WAITING_USER, .ref = "x", .escalate_after_ms = MINUTE(10),
           .escalate = "event");
    resume(h.id);
    EQ(0, row(h.id)->escalate_at);
    advance(MINUTE(10));
    EQ(0, sweep().escalated);
}

test_case(escalation_needs_a_time_and_a_way)
{
    struct held h = running();
    CODE(HF_EINVAL,
         change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                .status = HF_STATUS_WAITING_USER, .ref = "x", .escalate = "event")
             ->code);
    CODE(HF_EINVAL, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_WAITING_USER, .ref = "x",
                           .escalate_after_ms = 5, .escalate = "phone")
                        ->code);
    IS("running", h.id);
}

test_case(a_policy_may_ask_for_an_escalation_of_every_wait)
{
    CODE(0, policy("kind:ask", .wait_rule = "escalation"));
    struct held h = running(.kind = "ask"), other = running(.kind = "other");
    CODE(HF_EPOLICY, wait_for(h, HF_STATUS_WAITING_USER, "x")->code);
    IS("running", h.id);
    CODE(0, wait_for(other, HF_STATUS_WAITING_USER, "x")->code);
    CODE(0,
         change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                .status = HF_STATUS_WAITING_USER, .ref = "x", .escalate_after_ms = SEC(5))
             ->code);
    IS("waiting_user", h.id);
    CODE(HF_EINVAL, policy("default", .wait_rule = "patience"));
    SAME("wait_rule", t->err.field);
}

test_case(r43_waiting_spends_nothing_and_no_lease_sweep_sees_it)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    advance(HOUR(3));
    struct hf_sweep_report report = sweep();
    EQ(0, report.requeued);
    EQ(0, report.timed_out);
    EQ(0, row(h.id)->failures);
    EQ(1, row(h.id)->attempt_count);
    EQ(0, stats().silent);
}

test_case(a25_the_owner_of_a_waiting_row_may_go)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "r");
    advance(HOUR(2) - 1);
    sweep();
    IS("waiting_external", h.id);
    CODE(0, resume(h.id)->code);
    IS("queued", h.id);
}

test_case(a_started_owner_bound_row_is_resumed_only_by_its_owner)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    const char *before = picture();
    CODE(HF_ETRANSITION, resume(h.id)->code);
    CODE(HF_ETRANSITION, change(.verb = HF_VERB_RESUME, .id = h.id, .owner = "bob",
                                .incarnation = "boot-1")
                             ->code);
    UNCHANGED(before);
    const struct hf_item *woken = change(.verb = HF_VERB_RESUME, .id = h.id,
                                         .owner = "alice", .incarnation = "boot-1");
    CODE(0, woken->code);
    IS("running", h.id);
    TRUE(woken->token != NULL);
}

test_case(a_second_wait_forgets_the_first_answer)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "one");
    change(.verb = HF_VERB_RESUME, .id = h.id, .payload = "1");
    h.token = claim()->token;
    wait_for(h, HF_STATUS_WAITING_USER, "two");
    resume(h.id);
    SAME(NULL, row(h.id)->resume_payload);
}
