/* Claiming: order, filters, gates, lanes, repeats. */

#include "conform/kit.h"

test_case(r23_a_claim_gives_owner_token_and_term)
{
    const char *id = new_id();
    advance(SEC(1));
    const struct hf_item *taken = claim(.owner = "w1", .incarnation = "i1");
    CODE(0, taken->code);
    TRUE(taken->token != NULL);
    const struct hf_work *w = row(id);
    SAME("running", w->status);
    SAME("w1", w->owner);
    SAME("i1", w->owner_incarnation);
    EQ(1, w->lease_fence);
    EQ(1, w->attempt_count);
    EQ(0, w->failures);
    EQ(45000, w->lease_ttl_ms);
    EQ(45000, w->lease_remaining_ms);
    EQ(1800000001000, w->started_at);
    EQ(1800000001000, w->first_started_at);
    EQ(1800000001000, w->active_at);
    const struct hf_event *event = last_change(id);
    SAME("claimed", event->event_type);
    SAME("queued", event->from_status);
    SAME("running", event->to_status);
    EQ(1, event->attempt);
    EQ(1, count_events(id, "lease_acquired"));
}

test_case(r23_every_acquisition_has_another_token)
{
    struct held one = running();
    struct held two = running();
    TRUE(!same(one.token, two.token));
    hand_back(one);
    const struct hf_item *again = claim(.id = one.id);
    TRUE(again->token && !same(one.token, again->token));
}

test_case(nobody_sees_a_token_but_the_claimant)
{
    struct held h = running();
    const struct hf_answer *all = list(.limit = 10);
    SAME(NULL, item_of(all, 0)->token);
    SAME(NULL, renew(h)->token);
}

test_case(nothing_to_claim_is_no_failure)
{
    const struct hf_answer *none = claim_many(.limit = 5);
    CODE(0, t->code);
    TRUE(none != NULL);
    EQ(0, count_of(none));
}

test_case(t01_one_unit_is_claimed_once)
{
    create();
    EQ(1, count_of(claim_many(.owner = "a", .limit = 10)));
    EQ(0, count_of(claim_many(.owner = "b", .limit = 10)));
    EQ(0, count_of(claim_many(.owner = "c", .limit = 10)));
}

test_case(t02_a_second_claimer_finds_nothing)
{
    const char *id = new_id();
    claim(.owner = "a");
    for (int i = 0; i < 3; i++)
        EQ(0, count_of(claim_many(.owner = "b")));
    EQ(1, row(id)->attempt_count);
    SAME("a", row(id)->owner);
}

test_case(claim_order_is_priority_then_age)
{
    const char *late = new_id(.priority = 5);
    const char *first = new_id(.priority = 3);
    const char *urgent = new_id(.priority = MOST_URGENT);
    const char *second = new_id();
    const char *last = new_id(.priority = 9);
    const struct hf_answer *all = claim_many(.limit = 10);
    EQ(5, count_of(all));
    SAME(urgent, item_of(all, 0)->work.work_id);
    SAME(first, item_of(all, 1)->work.work_id);
    SAME(second, item_of(all, 2)->work.work_id);
    SAME(late, item_of(all, 3)->work.work_id);
    SAME(last, item_of(all, 4)->work.work_id);
}

test_case(claim_takes_at_most_its_limit)
{
    for (int i = 0; i < 7; i++)
        create();
    EQ(1, count_of(claim_many()));
    EQ(4, count_of(claim_many(.limit = 4)));
    EQ(2, count_of(claim_many(.limit = 100)));
}

test_case(claim_takes_large_batches_whole)
{
    for (int i = 0; i < 137; i++)
        create();
    const struct hf_answer *all = claim_many(.limit = 1000, .nonce = "big");
    EQ(137, count_of(all));
    EQ(137, count_of(claim_many(.limit = 1000, .nonce = "big")));
}

test_case(claim_keeps_to_its_queue)
{
    const char *mail = new_id(.queue = "mail");
    create();
    const struct hf_answer *taken = claim_many(.queue = "mail", .limit = 10);
    EQ(1, count_of(taken));
    SAME(mail, item_of(taken, 0)->work.work_id);
    EQ(0, count_of(claim_many(.queue = "none", .limit = 10)));
}

test_case(claim_keeps_to_its_kinds)
{
    create(.kind = "a", .priority = 1);
    const char *b = new_id(.kind = "b");
    const char *c = new_id(.kind = "c");
    const char *const kinds[] = { "c", "b", "z" };
    const struct hf_answer *taken = claim_many(.kinds = kinds, .kind_count = 3,
                                               .limit = 10);
    EQ(2, count_of(taken));
    SAME(b, item_of(taken, 0)->work.work_id);
    SAME(c, item_of(taken, 1)->work.work_id);
}

test_case(claim_by_id_takes_that_row_and_no_other)
{
    create(.priority = 1);
    const char *id = new_id(.queue = "elsewhere");
    SAME(id, claim(.id = id)->work.work_id);
    EQ(1, row(id)->lease_fence);
    CODE(HF_ENOTFOUND, claim(.id = "no-such-row")->code);
    CODE(HF_EHELD, claim(.id = id, .owner = "bob")->code);
}

test_case(t03_a_delayed_row_is_claimed_when_due_and_not_before)
{
    const char *id = new_id(.delay_ms = SEC(10));
    SAME("due", row(id)->gate);
    EQ(1800000010000, row(id)->due_at);
    advance(MS(9999));
    EQ(0, count_of(claim_many()));
    SAME("due", row(id)->gate);
    advance(MS(1));
    EQ(1, count_of(claim_many()));
    IS("running", id);
}

test_case(a_due_row_is_promoted_by_a_sweep)
{
    const char *id = new_id(.due_at = 1800000010000);
    advance(MS(9999));
    sweep();
    SAME("due", row(id)->gate);
    advance(MS(1));
    EQ(1, sweep().promoted);
    SAME(NULL, row(id)->gate);
    SAME("queued", row(id)->status);
    EQ(1, count_events(id, "work_created"));
    SAME("work_created", last_change(id)->event_type);
}

test_case(a_due_time_in_the_past_is_no_gate)
{
    const char *id = new_id(.due_at = 1700000000000);
    SAME(NULL, row(id)->gate);
    SAME(id, claim()->work.work_id);
}

test_case(the_same_nonce_gives_the_same_claim_again)
{
    create();
    create();
    const struct hf_answer *first = claim_many(.nonce = "n1", .limit = 1);
    const char *before = picture();
    const struct hf_answer *again = claim_many(.nonce = "n1", .limit = 1);
    EQ(1, count_of(first));
    EQ(1, count_of(again));
    TRUE(item_of(again, 0)->repeated);
    TRUE(!item_of(first, 0)->repeated);
    SAME(item_of(first, 0)->token, item_of(again, 0)->token);
    SAME(item_of(first, 0)->work.work_id, item_of(again, 0)->work.work_id);
    UNCHANGED(before);
    EQ(1, count_of(claim_many(.nonce = "n2", .limit = 5)));
}

test_case(a_nonce_repeats_only_for_its_own_incarnation)
{
    create();
    create();
    const struct hf_answer *mine = claim_many(.nonce = "n", .incarnation = "i1");
    const struct hf_answer *other = claim_many(.nonce = "n", .incarnation = "i2");
    EQ(1, count_of(other));
    TRUE(!item_of(other, 0)->repeated);
    TRUE(!same(item_of(mine, 0)->work.work_id, item_of(other, 0)->work.work_id));
}

test_case(a_claim_skips_what_is_not_queued)
{
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    struct held ended = running();
    close_as(ended, HF_STATUS_DONE);
    struct held later = running();
    fail_as(later, "rate_limit");
    EQ(0, count_of(claim_many(.limit = 100)));
}

/* ---- lanes ------------------------------------------------------------------------------ */

test_case(lane_has_one_running_row)
{
    const char *one = new_id(.lane_key = "L");
    const char *two = new_id(.lane_key = "L");
    const char *free_one = new_id();
    const struct hf_answer *taken = claim_many(.limit = 10);
    EQ(2, count_of(taken));
    SAME(one, item_of(taken, 0)->work.work_id);
    SAME(free_one, item_of(taken, 1)->work.work_id);
    SAME("lane", row(two)->gate);
    EQ(0, count_of(claim_many(.limit = 10)));
}

test_case(lane_gives_its_place_to_the_next_when_a_row_ends)
{
    struct held one = running(.lane_key = "L");
    const char *two = new_id(.lane_key = "L");
    const char *three = new_id(.lane_key = "L");
    SAME("lane", row(two)->gate);
    close_as(one, HF_STATUS_DONE);
    SAME(NULL, row(two)->gate);
    SAME("lane", row(three)->gate);
    struct held next = { two, claim()->token };
    IS("running", two);
    close_as(next, HF_STATUS_FAILED);
    SAME(NULL, row(three)->gate);
}

test_case(lane_is_freed_by_every_way_out_of_running)
{
    struct held h = running(.lane_key = "L");
    const char *next = new_id(.lane_key = "L", .priority = 1);
    SAME("lane", row(next)->gate);
    fail_as(h, "rate_limit");
    SAME(NULL, row(next)->gate);
    cancel(h.id);
    h = (struct held){ next, claim(.id = next)->token };
    const char *more = new_id(.lane_key = "L", .priority = 1);
    hand_back(h);
    SAME(NULL, row(next)->gate); /* older, and as urgent */
    SAME("lane", row(more)->gate);
    claim(.id = next);
    cancel(next);
    SAME(NULL, row(more)->gate);
    h = (struct held){ more, claim(.id = more, .ttl_ms = SEC(10))->token };
    const char *last = new_id(.lane_key = "L");
    SAME("lane", row(last)->gate);
    advance(SEC(10) + SEC(30));
    sweep();
    IS("timeout", more);
    SAME(NULL, row(last)->gate);
}

test_case(lane_prefers_the_urgent_among_the_waiting)
{
    const char *plain = new_id(.lane_key = "L");
    SAME(NULL, row(plain)->gate);
    const char *urgent = new_id(.lane_key = "L", .priority = 1);
    SAME("lane", row(plain)->gate);
    SAME(NULL, row(urgent)->gate);
    SAME(urgent, claim()->work.work_id);
    EQ(0, count_of(claim_many()));
}

test_case(lane_place_of_a_cancelled_row_goes_to_the_next)
{
    const char *one = new_id(.lane_key = "L");
    const char *two = new_id(.lane_key = "L");
    cancel(one);
    SAME(NULL, row(two)->gate);
    SAME(two, claim()->work.work_id);
}

test_case(a24_waiting_does_not_keep_the_lane)
{
    struct held one = running(.lane_key = "L");
    const char *two = new_id(.lane_key = "L");
    wait_for(one, HF_STATUS_WAITING_USER, "r");
    SAME(NULL, row(two)->gate);
    SAME(two, claim()->work.work_id);
    resume(one.id);
    SAME("lane", row(one.id)->gate);
    IS("queued", one.id);
}

test_case(a_due_row_does_not_keep_the_lane)
{
    const char *later = new_id(.lane_key = "L", .delay_ms = SEC(60));
    const char *now = new_id(.lane_key = "L");
    SAME("due", row(later)->gate);
    SAME(NULL, row(now)->gate);
    struct held h = { now, claim()->token };
    advance(SEC(60));
    CODE(0, renew(h)->code);
    sweep();
    SAME("lane", row(later)->gate);
    close_as(h, HF_STATUS_DONE);
    SAME(NULL, row(later)->gate);
}

test_case(a_promoted_row_takes_its_place_in_the_lane_by_urgency)
{
    const char *later = new_id(.lane_key = "L", .delay_ms = SEC(5), .priority = 1);
    const char *now = new_id(.lane_key = "L");
    SAME(NULL, row(now)->gate);
    advance(SEC(5));
    sweep();
    SAME(NULL, row(later)->gate);
    SAME("lane", row(now)->gate);
}

test_case(resume_into_running_needs_a_free_lane)
{
    struct held one = running(.lane_key = "L");
    wait_for(one, HF_STATUS_WAITING_USER, "r");
    struct held two = running(.lane_key = "L");
    const char *before = picture();
    CODE(HF_EHELD, change(.verb = HF_VERB_RESUME, .id = one.id, .owner = "alice")->code);
    UNCHANGED(before);
    close_as(two, HF_STATUS_DONE);
    const char *three = new_id(.lane_key = "L");
    SAME(NULL, row(three)->gate);
    CODE(0, change(.verb = HF_VERB_RESUME, .id = one.id, .owner = "alice")->code);
    IS("running", one.id);
    SAME("lane", row(three)->gate);
}

test_case(a_requeued_row_queues_up_in_its_lane)
{
    struct held one = running(.lane_key = "L");
    close_as(one, HF_STATUS_FAILED);
    struct held two = running(.lane_key = "L");
    requeue(one.id);
    SAME("lane", row(one.id)->gate);
    close_as(two, HF_STATUS_DONE);
    SAME(NULL, row(one.id)->gate);
}

/* ---- the same lane key of two tenants ------------------------------------------------------ */

static const char *new_in_lane(struct hf_conform *t, const char *tenant, int priority)
{
    t->who.tenant = tenant;
    const char *id = new_id(.lane_key = "L", .priority = priority);
    t->who.tenant = NULL;
    return id;
}

test_case(lane_slots_of_tenants_are_their_own)
{
    const char *ours = new_in_lane(t, NULL, 1);
    const char *theirs = new_in_lane(t, "acme", 1);
    SAME(NULL, row(ours)->gate);
    SAME(NULL, row(theirs)->gate);
    const struct hf_answer *both = claim_many(.limit = 10);
    EQ(2, count_of(both));
    SAME(ours, item_of(both, 0)->work.work_id);
    SAME(theirs, item_of(both, 1)->work.work_id);
    IS("running", ours);
    IS("running", theirs);
    SAME("lane", row(new_in_lane(t, NULL, 1))->gate);
    SAME("lane", row(new_in_lane(t, "acme", 1))->gate);
}

/* The other tenant's row has waited for longer and is more urgent. */
test_case(lane_place_goes_to_the_next_of_the_same_tenant)
{
    new_in_lane(t, NULL, 3);
    new_in_lane(t, "acme", 3);
    const struct hf_answer *both = claim_many(.limit = 10);
    struct held ours = { item_of(both, 0)->work.work_id, item_of(both, 0)->token };
    const char *their_next = new_in_lane(t, "acme", 1);
    const char *our_next = new_in_lane(t, NULL, 2);
    const char *our_last = new_in_lane(t, NULL, 3);
    CODE(0, close_as(ours, HF_STATUS_DONE)->code);
    SAME(NULL, row(our_next)->gate);
    SAME("lane", row(their_next)->gate);
    cancel(our_next);
    SAME(NULL, row(our_last)->gate);
    SAME("lane", row(their_next)->gate);
}

test_case(lane_urgency_displaces_only_rows_of_the_same_tenant)
{
    const char *ours = new_in_lane(t, NULL, 5);
    const char *theirs = new_in_lane(t, "acme", 5);
    const char *urgent = new_in_lane(t, "acme", 1);
    SAME(NULL, row(ours)->gate);
    SAME("lane", row(theirs)->gate);
    SAME(NULL, row(urgent)->gate);
}

static struct held resumed_by_alice(struct hf_conform *t, struct held h)
{
    CODE(0, wait_for(h, HF_STATUS_WAITING_USER, "r")->code);
    const struct hf_item *item = change(.verb = HF_VERB_RESUME, .id = h.id,
                                        .owner = "alice");
    CODE(0, item->code);
    IS("running", h.id);
    return (struct held){ h.id, item->token };
}

test_case(lane_of_another_tenant_neither_stops_nor_yields_to_a_resume)
{
    struct held ours = { new_in_lane(t, NULL, 1), NULL };
    ours.token = claim(.id = ours.id)->token;
    const char *theirs = new_in_lane(t, "acme", 1);
    ours = resumed_by_alice(t, ours);
    SAME(NULL, row(theirs)->gate);
    CODE(0, claim(.id = theirs)->code);
    (void)resumed_by_alice(t, ours);
    IS("running", theirs);
}
