/* The lease rules on work rows: rules 1, 2, 3, 4, 7, 8, 12 and 14, R23 to R30. */

#include "conform/kit.h"

#define TERM SEC(45)
#define GRACE SEC(30)

test_case(peers_act_only_at_expiry)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM - 1);
    EQ(0, count_of(claim_many(.owner = "bob")));
    CODE(HF_EHELD, claim(.id = h.id, .owner = "bob")->code);
    EQ(0, sweep().requeued);
    SAME("alice", row(h.id)->owner);
    advance(1); /* now = expires_at */
    const struct hf_item *taken = claim(.owner = "bob");
    CODE(0, taken->code);
    SAME(h.id, taken->work.work_id);
    SAME("bob", row(h.id)->owner);
}

test_case(peers_act_only_at_expiry_plus_grace_where_the_row_expires)
{
    struct held h = running(.disposition = HF_DISPOSITION_EXPIRE);
    advance(TERM);
    EQ(0, sweep().timed_out);
    IS("running", h.id);
    CODE(HF_EHELD, claim(.id = h.id, .owner = "bob")->code);
    advance(GRACE - 1);
    EQ(0, sweep().timed_out);
    IS("running", h.id);
    advance(1);
    EQ(1, sweep().timed_out);
    IS("timeout", h.id);
}

test_case(peers_act_only_at_expiry_but_a_late_holder_may_settle)
{
    struct held a = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    struct held b = running();
    struct held c = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    struct held d = running();
    advance(HOUR(5));
    CODE(0, close_as(a, HF_STATUS_DONE)->code);
    CODE(0, fail_as(b, "rate_limit")->code);
    CODE(0, wait_for(c, HF_STATUS_WAITING_USER, "r")->code);
    CODE(0, renew(d)->code);
    EQ(45000, row(d.id)->lease_remaining_ms);
}

test_case(time_alone_never_ends_owner_bound)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    for (int i = 0; i < 5; i++) {
        advance(HOUR(24 * 30));
        sweep();
        EQ(0, count_of(claim_many(.owner = "bob")));
        CODE(HF_EHELD, claim(.id = h.id, .owner = "bob")->code);
    }
    IS("running", h.id);
    SAME("alice", row(h.id)->owner);
    EQ(1, row(h.id)->attempt_count);
    EQ(1, stats().silent);
    EQ(1, count_of(list(.silent = true)));
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    IS("done", h.id);
    CODE(HF_EINVAL,
         create(.disposition = HF_DISPOSITION_OWNER_BOUND, .exec_timeout_ms = SEC(5))
             ->code);
    SAME("exec_timeout_ms", t->err.field);
}

test_case(time_alone_never_ends_owner_bound_but_its_start_may_time_out)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_OWNER_BOUND,
                            .start_timeout_ms = SEC(5));
    advance(SEC(5));
    sweep();
    IS("timeout", id);
}

test_case(time_alone_never_ends_owner_bound_while_it_waits)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
           .status = HF_STATUS_WAITING_EXTERNAL, .ref = "r", .timeout_ms = SEC(10));
    advance(HOUR(10));
    sweep();
    sweep();
    IS("waiting_external", h.id);
    EQ(0, stats().by_status[HF_STATUS_TIMEOUT]);
}

test_case(token_carries_the_fence)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    const struct hf_item *taken = claim(.owner = "bob", .id = h.id);
    EQ(2, taken->work.lease_fence);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    CODE(HF_ELEASELOST, renew(h)->code);
    UNCHANGED(before);
    /* The store's incarnation is in it too. */
    struct held b = { h.id, taken->token };
    bump();
    CODE(HF_ELEASELOST, renew(b)->code);
}

test_case(token_carries_the_fence_and_garbage_is_no_token)
{
    struct held h = running();
    const char *before = picture();
    CODE(HF_EINVAL, renew(((struct held){ h.id, "abc" }))->code);
    CODE(HF_EINVAL, renew(((struct held){ h.id, "" }))->code);
    CODE(HF_EINVAL, renew(((struct held){ h.id, "hf1.1.x.n" }))->code);
    CODE(HF_EINVAL, renew(((struct held){ h.id, NULL }))->code);
    UNCHANGED(before);
}

test_case(token_carries_the_fence_and_names_one_row)
{
    struct held one = running();
    struct held two = running();
    const char *before = picture();
    CODE(HF_ELEASELOST, renew(((struct held){ one.id, two.token }))->code);
    CODE(HF_ENOTFOUND, renew(((struct held){ "no-such-row", one.token }))->code);
    UNCHANGED(before);
}

test_case(reentry)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    const struct hf_item *first = claim(.id = id, .nonce = "n1");
    advance(SEC(10));
    const struct hf_item *repeated = claim(.id = id, .nonce = "n1");
    TRUE(repeated->repeated);
    SAME(first->token, repeated->token);
    EQ(35000, row(id)->lease_remaining_ms);
    const struct hf_item *rotated = claim(.id = id, .nonce = "n2");
    CODE(0, rotated->code);
    TRUE(!same(first->token, rotated->token));
    const struct hf_work *w = row(id);
    EQ(1, w->lease_fence);
    EQ(1, w->attempt_count);
    EQ(1800000000000, w->started_at);
    EQ(45000, w->lease_remaining_ms);
    CODE(HF_ELEASELOST, renew(((struct held){ id, first->token }))->code);
    CODE(0, renew(((struct held){ id, rotated->token }))->code);
}

test_case(reentry_not_by_another_incarnation)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    const struct hf_item *first = claim(.id = id, .incarnation = "boot-1", .nonce = "n");
    CODE(HF_EHELD, claim(.id = id, .incarnation = "boot-2", .nonce = "n")->code);
    CODE(HF_EHELD, claim(.id = id, .incarnation = "boot-2")->code);
    CODE(0, renew(((struct held){ id, first->token }))->code);
}

test_case(a_fence_never_falls_and_survives_release)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    EQ(1, row(h.id)->lease_fence);
    hand_back(h);
    EQ(1, row(h.id)->lease_fence);
    h.token = claim(.id = h.id)->token;
    EQ(2, row(h.id)->lease_fence);
    close_as(h, HF_STATUS_FAILED);
    EQ(2, row(h.id)->lease_fence);
    requeue(h.id);
    EQ(2, row(h.id)->lease_fence);
    h.token = claim(.id = h.id)->token;
    EQ(3, row(h.id)->lease_fence);
    EQ(3, row(h.id)->attempt_count);
}

test_case(attempts_and_failures)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE, .max_attempts = 10,
                            .retry_policy = "{\"jitter\":\"none\"}");
    EQ(1, row(h.id)->attempt_count);
    EQ(0, row(h.id)->failures);
    hand_back(h); /* spends none */
    EQ(0, row(h.id)->failures);
    h.token = claim(.id = h.id)->token;
    EQ(2, row(h.id)->attempt_count);
    wait_for(h, HF_STATUS_WAITING_USER, "r"); /* nor does a wait */
    resume(h.id);
    EQ(0, row(h.id)->failures);
    h.token = claim(.id = h.id)->token;
    EQ(3, row(h.id)->attempt_count);
    fail_as(h, "rate_limit"); /* a failure does */
    EQ(1, row(h.id)->failures);
    EQ(3, row(h.id)->attempt_count);
    advance(SEC(5));
    h.token = claim(.owner = "alice")->token;
    EQ(4, row(h.id)->attempt_count);
    advance(TERM); /* a lapse does */
    sweep();
    IS("queued", h.id);
    EQ(2, row(h.id)->failures);
    EQ(4, row(h.id)->attempt_count);
}

test_case(renewal_touches_no_index)
{
    struct held h = running();
    const struct hf_work *before = row(h.id);
    advance(SEC(20));
    const struct hf_item *renewed = renew(h);
    CODE(0, renewed->code);
    EQ(45000, renewed->work.lease_remaining_ms);
    const struct hf_work *after = row(h.id);
    EQ(before->updated_at, after->updated_at);
    EQ(before->active_at, after->active_at);
    EQ(before->lease_fence, after->lease_fence);
    EQ(before->lease_ttl_ms, after->lease_ttl_ms);
    EQ(before->lease_expires_at + 20000, after->lease_expires_at);
    EQ(0, count_events(h.id, "transition"));
}

struct check_at {
    hf_ms found;
};

static void see_check_at(void *user, const struct hf_work *work, const char *settled_verb,
                         hf_ms lease_check_at, int64_t lease_incarnation)
{
    (void)work;
    (void)settled_verb;
    (void)lease_incarnation;
    ((struct check_at *)user)->found = lease_check_at;
}

static void see_event(void *user, const struct hf_event *event)
{
    (void)user;
    (void)event;
}

static hf_ms lease_check_at(struct hf_conform *t)
{
    struct check_at seen = { 0 };
    struct hf_dump dump = { &seen, see_check_at, see_event };
    if (!t->failed)
        t->code = kit_called(t, t->store->methods->dump(t->store, &dump, kit_err(t)));
    return seen.found;
}

test_case(renewal_touches_no_index_and_the_sweep_pushes_the_look)
{
    struct held h = running();
    hf_ms first = lease_check_at(t);
    EQ(row(h.id)->lease_expires_at + GRACE, first);
    advance(SEC(44));
    renew(h);
    EQ(first, lease_check_at(t));
    advance(SEC(31)); /* expiry of the first term, and its grace */
    EQ(1, sweep().pushed);
    IS("running", h.id);
    EQ(row(h.id)->lease_expires_at + GRACE, lease_check_at(t));
    EQ(0, sweep().looked_at);
}

test_case(r25_renewals_are_recorded_sparsely)
{
    struct held h = running();
    for (int i = 0; i < 30; i++) {
        advance(SEC(15));
        CODE(0, renew(h)->code);
    }
    TRUE(count_events(h.id, "lease_renewed") < 30);
    EQ(45000, row(h.id)->lease_remaining_ms);
}

test_case(a_renewal_never_shortens_a_lease)
{
    const char *id = new_id();
    struct held h = { id, claim(.id = id, .ttl_ms = SEC(60))->token };
    const struct hf_item *renewed = change(.verb = HF_VERB_RENEW, .id = id,
                                           .token = h.token, .ttl_ms = SEC(10));
    CODE(0, renewed->code);
    EQ(60000, row(id)->lease_remaining_ms);
    advance(SEC(30));
    CODE(0, renew(h)->code); /* by the claim's term again */
    EQ(60000, row(id)->lease_remaining_ms);
    EQ(60000, row(id)->lease_ttl_ms);
}

test_case(r26_a_stale_token_changes_nothing)
{
    struct held old = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    claim(.id = old.id, .owner = "bob");
    const char *before = picture();
    CODE(HF_ELEASELOST, renew(old)->code);
    CODE(HF_ELEASELOST, touch(old)->code);
    CODE(HF_ELEASELOST, close_as(old, HF_STATUS_DONE)->code);
    CODE(HF_ELEASELOST, fail_as(old, "rate_limit")->code);
    CODE(HF_ELEASELOST, wait_for(old, HF_STATUS_WAITING_USER, "r")->code);
    CODE(HF_ELEASELOST, hand_back(old)->code);
    CODE(HF_ELEASELOST, drain(old)->code);
    CODE(HF_ELEASELOST, change(.verb = HF_VERB_APPEND, .id = old.id, .token = old.token,
                               .type = "progress", .payload = "1")
                            ->code);
    UNCHANGED(before);
}

test_case(refused_writes_nothing)
{
    struct held h = running();
    const char *waiting = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    const char *queued = new_id();
    struct held ended = running();
    close_as(ended, HF_STATUS_DONE);
    const char *before = picture();
    CODE(HF_ETRANSITION, resume(h.id)->code);
    CODE(HF_ETRANSITION, resume(queued)->code);
    CODE(HF_ETRANSITION, resume(waiting)->code);
    CODE(HF_ETRANSITION, requeue(h.id)->code);
    CODE(HF_ETRANSITION, requeue(queued)->code);
    CODE(HF_ETRANSITION, cancel(ended.id)->code);
    CODE(HF_ETRANSITION, ask_abandon(queued)->code);
    CODE(HF_ENOTFOUND, cancel("no-such-row")->code);
    UNCHANGED(before);
}

test_case(r21_rejections_may_be_noted_but_never_as_transitions)
{
    struct held h = running();
    close_as(h, HF_STATUS_DONE);
    for (int i = 0; i < 20; i++)
        CODE(HF_ETRANSITION, cancel(h.id)->code);
    TRUE(count_events(h.id, "transition_rejected") <= 1);
    const struct hf_event *note = last_event(h.id, "transition_rejected");
    SAME(NULL, note->from_status);
    SAME(NULL, note->to_status);
}

test_case(incarnation_refuses_holders_not_patience)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    bump();
    const char *before = picture();
    CODE(HF_ELEASELOST, renew(h)->code);
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    EQ(0, count_of(claim_many(.owner = "bob")));
    CODE(HF_EHELD, claim(.id = h.id, .owner = "bob")->code);
    UNCHANGED(before);
    advance(TERM - 1);
    EQ(0, count_of(claim_many(.owner = "bob")));
    advance(1);
    const struct hf_item *taken = claim(.owner = "bob");
    SAME(h.id, taken->work.work_id);
    CODE(0, renew(((struct held){ h.id, taken->token }))->code);
}

test_case(incarnation_refuses_holders_not_patience_even_by_the_same_nonce)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    claim(.id = id, .nonce = "n");
    bump();
    CODE(HF_EHELD, claim(.id = id, .nonce = "n")->code);
    EQ(0, count_of(renew_all(.incarnation = "boot-1")));
}

/* Two first claims by the same nonce, one before and one after a bump. Their tokens differ in
 * the store incarnation only, as after a restore the token of a lost claim differs from that
 * of the claim in its place. */
struct eras {
    struct held before;
    struct held after;
};

static struct eras claims_around_a_bump(struct hf_conform *t, const char *close_rule)
{
    struct eras two;
    two.before.id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE,
                           .close_rule = close_rule);
    two.after.id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE,
                          .close_rule = close_rule);
    two.before.token = claim(.id = two.before.id, .nonce = "n")->token;
    bump();
    const struct hf_item *later = claim(.id = two.after.id, .nonce = "n");
    CODE(0, later->code);
    two.after.token = later->token;
    EQ(1, row(two.before.id)->lease_fence);
    EQ(1, row(two.after.id)->lease_fence);
    TRUE(!same(two.before.token, two.after.token));
    return two;
}

static void refuses_every_verb(struct hf_conform *t, struct held h)
{
    CODE(HF_ELEASELOST, renew(h)->code);
    CODE(HF_ELEASELOST, touch(h)->code);
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    CODE(HF_ELEASELOST, fail_as(h, "rate_limit")->code);
    CODE(HF_ELEASELOST, hand_back(h)->code);
    CODE(HF_ELEASELOST, wait_for(h, HF_STATUS_WAITING_USER, "r")->code);
}

test_case(incarnation_of_a_token_counts_though_nonce_and_fence_match)
{
    struct eras two = claims_around_a_bump(t, NULL);
    const char *before = picture();
    refuses_every_verb(t, (struct held){ two.after.id, two.before.token });
    UNCHANGED(before);
    CODE(0, renew(two.after)->code);
    CODE(0, close_as(two.after, HF_STATUS_DONE)->code);
}

test_case(incarnation_of_a_lease_counts_though_nonce_and_fence_match)
{
    struct eras two = claims_around_a_bump(t, NULL);
    const char *before = picture();
    refuses_every_verb(t, (struct held){ two.before.id, two.after.token });
    UNCHANGED(before);
}

/* A close rule has to be read, so such a close-out is decided by another way. */
test_case(incarnation_counts_for_close_outs_under_a_close_rule)
{
    const char *const evidence[] = { "file:log" };
    struct eras two = claims_around_a_bump(t, "evidence");
    const struct held crossed[] = { { two.after.id, two.before.token },
                                    { two.before.id, two.after.token } };
    const char *before = picture();
    for (int i = 0; i < 2; i++)
        CODE(HF_ELEASELOST, change(.verb = HF_VERB_CLOSE_OUT, .id = crossed[i].id,
                                   .token = crossed[i].token, .status = HF_STATUS_DONE,
                                   .evidence = evidence, .evidence_count = 1)
                                ->code);
    UNCHANGED(before);
}

test_case(a_store_bump_rises_by_one)
{
    int64_t one = bump();
    EQ(one + 1, bump());
}

test_case(t04_a_lapsed_lease_goes_to_another_owner)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    const struct hf_item *taken = claim(.owner = "bob", .incarnation = "b1");
    SAME(h.id, taken->work.work_id);
    EQ(2, taken->work.attempt_count);
    EQ(1, taken->work.failures);
    SAME("bob", taken->work.owner);
}

test_case(t05_a_zombie_cannot_settle)
{
    struct held a = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    struct held b = { a.id, claim(.owner = "bob")->token };
    CODE(HF_ELEASELOST, fail_as(a, "rate_limit")->code);
    CODE(HF_ELEASELOST, close_as(a, HF_STATUS_DONE)->code);
    IS("running", a.id);
    SAME("bob", row(a.id)->owner);
    CODE(0, close_as(b, HF_STATUS_DONE)->code);
    IS("done", a.id);
}

test_case(t06_only_the_new_holder_renews)
{
    struct held a = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    struct held b = { a.id, claim(.owner = "bob")->token };
    CODE(HF_ELEASELOST, renew(a)->code);
    CODE(0, renew(b)->code);
}

test_case(t08_poison_work_ends_when_its_failures_are_used_up)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE, .max_attempts = 2);
    advance(TERM);
    claim(.owner = "bob");
    advance(TERM);
    EQ(0, count_of(claim_many(.owner = "carol")));
    const struct hf_work *w = row(h.id);
    SAME("failed", w->status);
    SAME("attempts_exhausted", w->status_reason);
    EQ(2, w->attempt_count);
    EQ(2, w->failures);
    TRUE(w->finished_at != 0);
}

test_case(r27_expire_ends_as_timeout_with_its_reason)
{
    struct held h = running();
    advance(TERM + GRACE);
    sweep();
    const struct hf_work *w = row(h.id);
    SAME("timeout", w->status);
    SAME("heartbeat_timeout", w->status_reason);
    SAME(NULL, w->owner);
    EQ(0, w->lease_expires_at);
    SAME("timeout_marked", last_change(h.id)->event_type);
}

test_case(r29_sweeping_twice_does_the_same_once)
{
    struct held h = running();
    advance(TERM + GRACE);
    EQ(1, sweep().timed_out);
    const char *before = picture();
    EQ(0, sweep().timed_out);
    UNCHANGED(before);
    IS("timeout", h.id);
}

test_case(r30_a_late_renewal_before_the_sweep_saves_the_lease)
{
    struct held h = running();
    advance(TERM + GRACE);
    CODE(0, renew(h)->code);
    EQ(0, sweep().timed_out);
    IS("running", h.id);
    advance(TERM + GRACE);
    EQ(1, sweep().timed_out);
    CODE(HF_ELEASELOST, renew(h)->code);
    IS("timeout", h.id);
}

test_case(a23_a_late_result_after_the_sweep_is_refused)
{
    struct held h = running();
    advance(TERM + GRACE);
    sweep();
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    UNCHANGED(before);
    IS("timeout", h.id);
    TRUE(count_events(h.id, "late_result") <= 1);
}

/* It may be all that is left of the work. A store need not note it (rule 14). */
test_case(a23_a_late_result_is_kept_whole_where_it_is_kept)
{
    static const char *const outputs[] = { "file:out/1", "file:out/2" };
    static const char *const evidence[] = { "https://example.org/proof" };
    struct held h = running();
    advance(TERM + GRACE);
    sweep();
    CODE(HF_ELEASELOST, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                               .status = HF_STATUS_DONE, .summary = "it went \"well\"",
                               .outputs = outputs, .output_count = 2,
                               .evidence = evidence, .evidence_count = 1)
                            ->code);
    if (count_events(h.id, "late_result") == 0)
        return;
    const char *kept = last_event(h.id, "late_result")->payload;
    TRUE(contains(kept, "\"outputs\":[\"file:out/1\",\"file:out/2\"]"));
    TRUE(contains(kept, "\"evidence\":[\"https://example.org/proof\"]"));
    TRUE(contains(kept, "\"summary\":\"it went \\\"well\\\"\""));
    TRUE(contains(kept, "\"status\":\"done\""));
}

/* The most that a close-out can say, in characters that take the most room. */
test_case(a23_a_late_result_beyond_an_event_is_named_as_such)
{
    const char *refs[64];
    const char *summary = kit_filled(t, '"', 8192);
    struct held h = running();
    for (size_t i = 0; i < 64; i++)
        refs[i] = kit_filled(t, '"', 191);
    advance(TERM + GRACE);
    sweep();
    CODE(HF_ELEASELOST,
         change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                .status = HF_STATUS_DONE, .summary = summary, .outputs = refs,
                .output_count = 64, .evidence = refs, .evidence_count = 64)
             ->code);
    if (count_events(h.id, "late_result") == 0)
        return;
    TRUE(contains(last_event(h.id, "late_result")->payload, "\"too_large\":true"));
}

test_case(r11_only_running_rows_have_a_lease)
{
    struct held h = running();
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    const struct hf_work *w = row(h.id);
    SAME(NULL, w->owner);
    EQ(0, w->lease_expires_at);
    resume(h.id);
    SAME(NULL, row(h.id)->owner);
    h.token = claim(.id = h.id)->token;
    SAME("alice", row(h.id)->owner);
    fail_as(h, "rate_limit");
    SAME(NULL, row(h.id)->owner);
}

test_case(r28_a_term_is_at_least_three_renewals)
{
    CODE(HF_EINVAL, policy("default", .grace_ms = -1, .ttl_ms = 2999, .renew_ms = 1000));
    CODE(0, policy("default", .grace_ms = -1, .ttl_ms = 3000, .renew_ms = 1000));
    CODE(HF_EINVAL, policy("default", .grace_ms = -1, .ttl_ms = 749));
    const char *id = new_id();
    CODE(HF_EINVAL, claim(.id = id, .ttl_ms = 749)->code);
    CODE(HF_EINVAL, claim(.id = id, .ttl_ms = 86400001)->code);
    IS("queued", id);
    CODE(0, claim(.id = id, .ttl_ms = 750)->code);
    EQ(750, row(id)->lease_remaining_ms);
}

test_case(a_wall_clock_that_jumps_ends_no_lease)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    t->wall += HOUR(100); /* the lease clock does not move */
    EQ(0, sweep().requeued);
    EQ(45000, row(h.id)->lease_remaining_ms);
    t->wall -= HOUR(200);
    advance(TERM - 1);
    EQ(0, sweep().requeued);
    advance(1);
    EQ(1, sweep().requeued);
    IS("queued", h.id);
}

/* ---- renewal of many ---------------------------------------------------------------------- */

test_case(r24_renew_all_renews_what_runs_is_owned_and_fresh)
{
    struct held mine = running();
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    const char *theirs = new_id();
    claim(.id = theirs, .owner = "bob");
    struct held stale = running();
    advance(SEC(40));
    touch(mine);
    const struct hf_answer *renewed = renew_all(.fresh_within_ms = SEC(30));
    CODE(0, t->code);
    EQ(1, count_of(renewed));
    SAME(mine.id, item_of(renewed, 0)->work.work_id);
    EQ(45000, row(mine.id)->lease_remaining_ms);
    EQ(5000, row(stale.id)->lease_remaining_ms);
    EQ(5000, row(theirs)->lease_remaining_ms);
    EQ(2, count_of(renew_all()));
    EQ(45000, row(stale.id)->lease_remaining_ms);
}

test_case(renew_all_keeps_to_an_incarnation_when_one_is_given)
{
    const char *one = new_id();
    const char *two = new_id();
    claim(.id = one, .incarnation = "i1");
    claim(.id = two, .incarnation = "i2");
    advance(SEC(10));
    EQ(1, count_of(renew_all(.incarnation = "i2")));
    EQ(35000, row(one)->lease_remaining_ms);
    EQ(45000, row(two)->lease_remaining_ms);
    EQ(0, count_of(renew_all(.owner = "bob")));
}

test_case(touch_reports_activity_and_renews_nothing)
{
    struct held h = running();
    advance(SEC(10));
    CODE(0, touch(h)->code);
    const struct hf_work *w = row(h.id);
    EQ(1800000010000, w->active_at);
    EQ(35000, w->lease_remaining_ms);
    IS("running", h.id);
}
