/* Limits, rates, fair shares, and what is held or moved to another time. */

#include "conform/kit.h"

static void set_limit(struct hf_conform *t, struct hf_limit limit)
{
    limit.size = sizeof limit;
    if (t->failed)
        return;
    t->code = kit_called(t, hf_limit_set(t->store, &t->who, &limit, kit_err(t)));
}
#define limit(...) set_limit(AT(t), (struct hf_limit){ __VA_ARGS__ })

/* How many of a queue can be claimed now. */
static size_t take_all(struct hf_conform *t, const char *owner)
{
    return count_of(kit_claim(t, (struct hf_claim){ .owner = owner, .limit = 100 }));
}

test_case(limit_lets_so_many_run_and_no_more)
{
    const char *ids[4];
    limit(.name = "key:acme", .max_running = 2);
    for (int i = 0; i < 4; i++)
        ids[i] = new_id(.limit_key = "acme");
    SAME(NULL, row(ids[1])->gate);
    SAME("limit", row(ids[2])->gate);
    SAME("key:acme", row(ids[2])->limit_name);
    EQ(2, take_all(AT(t), "w"));
    EQ(0, take_all(AT(t), "w"));
    CODE(HF_ETRANSITION, claim(.id = ids[3])->code);
}

test_case(limit_gives_the_place_of_what_ended_to_the_next)
{
    limit(.name = "key:acme", .max_running = 1);
    struct held first = running(.limit_key = "acme");
    const char *second = new_id(.limit_key = "acme", .priority = 5);
    const char *urgent = new_id(.limit_key = "acme", .priority = 1);
    close_as(first, HF_STATUS_DONE);
    SAME(NULL, row(urgent)->gate);
    SAME("limit", row(second)->gate);
    cancel(urgent); /* it held the place without running */
    SAME(NULL, row(second)->gate);
    EQ(1, take_all(AT(t), "w"));
}

test_case(limit_is_freed_by_every_way_out_of_running)
{
    limit(.name = "key:acme", .max_running = 1);
    struct held h = running(.limit_key = "acme", .disposition = HF_DISPOSITION_RERUNNABLE,
                            .max_attempts = 9);
    const char *next = new_id(.limit_key = "acme", .priority = 9);
    wait_for(h, HF_STATUS_WAITING_USER, "ask");
    SAME(NULL, row(next)->gate);
    cancel(next);
    resume(h.id);
    SAME(NULL, row(h.id)->gate);
    const struct hf_item *again = claim(.id = h.id, .ttl_ms = 1000);
    next = new_id(.limit_key = "acme", .priority = 9);
    SAME("limit", row(next)->gate);
    h.token = again->token;
    fail_as(h, "transient_network");
    IS("retry_scheduled", h.id);
    SAME(NULL, row(next)->gate);
    claim(.id = next, .ttl_ms = 1000);
    advance(SEC(2));
    sweep(); /* expired: after its grace it ends, and the retry may come */
    advance(MINUTE(10));
    sweep();
    IS("timeout", next);
    SAME(NULL, row(h.id)->gate);
}

test_case(limits_of_kinds_are_for_rows_without_a_key)
{
    limit(.name = "kind:mail", .max_running = 1);
    const char *one = new_id(.kind = "mail");
    const char *two = new_id(.kind = "mail");
    const char *keyed = new_id(.kind = "mail", .limit_key = "other");
    const char *lane = new_id(.kind = "mail", .lane_key = "l");
    SAME("kind:mail", row(one)->limit_name);
    SAME("limit", row(two)->gate);
    SAME(NULL, row(keyed)->gate);
    SAME(NULL, row(lane)->limit_name);
    EQ(3, take_all(AT(t), "w"));
}

test_case(limits_of_tenants_are_their_own)
{
    t->who.tenant = "a";
    limit(.name = "key:x", .max_running = 1);
    const char *first = new_id(.limit_key = "x");
    const char *second = new_id(.limit_key = "x");
    t->who.tenant = "b";
    const char *other = new_id(.limit_key = "x");
    SAME(NULL, row(first)->gate);
    SAME("limit", row(second)->gate);
    SAME(NULL, row(other)->gate);
    t->who.tenant = NULL;
}

test_case(a_raised_limit_lets_the_waiting_go_on)
{
    const char *ids[3];
    limit(.name = "key:acme", .max_running = 1);
    for (int i = 0; i < 3; i++)
        ids[i] = new_id(.limit_key = "acme");
    limit(.name = "key:acme", .max_running = 2);
    SAME(NULL, row(ids[1])->gate);
    SAME("limit", row(ids[2])->gate);
    limit(.name = "key:acme");
    SAME(NULL, row(ids[2])->gate);
    EQ(3, take_all(AT(t), "w"));
}

test_case(a_lowered_limit_ends_nothing_and_lets_nobody_in)
{
    const char *ids[3];
    limit(.name = "key:acme", .max_running = 2);
    for (int i = 0; i < 3; i++)
        ids[i] = new_id(.limit_key = "acme");
    const struct hf_item *one = claim(.id = ids[0]);
    claim(.id = ids[1]);
    limit(.name = "key:acme", .max_running = 1);
    struct held h = { ids[0], one->token };
    close_as(h, HF_STATUS_DONE);
    IS("running", ids[1]);
    SAME("limit", row(ids[2])->gate);
}

/* 2 per second, 3 at once: what a stepped clock must show to the millisecond. */
test_case(rate_starts_exactly_as_many_as_its_bucket_has)
{
    limit(.name = "rate:api", .rate_count = 2, .rate_ms = 1000, .burst = 3);
    for (int i = 0; i < 10; i++)
        create(.rate_key = "api");
    EQ(3, take_all(AT(t), "w"));
    advance(MS(499));
    EQ(0, take_all(AT(t), "w"));
    advance(MS(1));
    EQ(1, take_all(AT(t), "w"));
    advance(MS(999));
    EQ(1, take_all(AT(t), "w"));
    advance(MS(1));
    EQ(1, take_all(AT(t), "w"));
    advance(HOUR(1)); /* the bucket holds three and no more */
    EQ(3, take_all(AT(t), "w"));
}

/* A unit that is not claimed keeps its token; no second burst builds up behind it. */
test_case(rate_saves_nothing_up_while_nobody_claims)
{
    limit(.name = "rate:api", .rate_count = 1, .rate_ms = 1000, .burst = 2);
    for (int i = 0; i < 8; i++)
        create(.rate_key = "api");
    for (int i = 0; i < 60; i++) {
        advance(SEC(1));
        sweep();
    }
    EQ(2, take_all(AT(t), "w"));
    EQ(0, take_all(AT(t), "w"));
    advance(SEC(1));
    EQ(1, take_all(AT(t), "w"));
}

/* Nor where it is claimed by its id. */
test_case(rate_begins_to_fill_when_a_unit_is_claimed_by_its_id)
{
    limit(.name = "rate:api", .rate_count = 1, .rate_ms = 2000, .burst = 1);
    const char *first = new_id(.rate_key = "api");
    create(.rate_key = "api");
    advance(MS(1500));
    claim(.id = first, .ttl_ms = HOUR(1));
    advance(MS(1999));
    EQ(0, take_all(AT(t), "w"));
    advance(MS(1));
    EQ(1, take_all(AT(t), "w"));
}

test_case(rate_gives_the_token_of_a_cancelled_row_to_the_next)
{
    limit(.name = "rate:api", .rate_count = 1, .rate_ms = 60000, .burst = 1);
    const char *first = new_id(.rate_key = "api");
    const char *second = new_id(.rate_key = "api");
    SAME("rate", row(second)->gate);
    cancel(first);
    SAME(NULL, row(second)->gate);
    EQ(1, take_all(AT(t), "w"));
}

test_case(a_sweep_says_when_the_rate_lets_the_next_go)
{
    limit(.name = "rate:api", .rate_count = 1, .rate_ms = 60000, .burst = 1);
    create(.rate_key = "api");
    create(.rate_key = "api");
    EQ(1, count_of(claim_many(.owner = "w", .limit = 9, .ttl_ms = HOUR(2))));
    EQ(t->wall + MINUTE(1), sweep().next_at);
    advance(MINUTE(1));
    EQ(1, sweep().promoted);
}

test_case(a_limit_may_have_both_a_most_and_a_rate)
{
    limit(.name = "key:api", .max_running = 1, .rate_count = 5, .rate_ms = 1000,
          .burst = 5);
    create(.limit_key = "api");
    create(.limit_key = "api");
    EQ(1, take_all(AT(t), "w"));
    advance(SEC(10));
    EQ(0, take_all(AT(t), "w"));
}

test_case(fair_keys_take_turns)
{
    for (int i = 0; i < 6; i++)
        create(.fair_key = "loud");
    create(.fair_key = "quiet");
    create(.fair_key = "quiet");
    const char *wanted[] = { "loud", "quiet", "loud", "quiet", "loud", "loud" };
    for (int i = 0; i < 6; i++)
        SAME(wanted[i], claim(.owner = "w")->work.fair_key);
}

/* The kinds lie across the fair keys, so the order of creation, of the kinds and of the fair
 * tags differ. */
test_case(claims_of_one_kind_go_by_fair_tag)
{
    static const char *const k[] = { "k" };
    for (int i = 0; i < 4; i++)
        create(.kind = "k", .fair_key = "loud");
    create(.kind = "other", .fair_key = "other");
    create(.kind = "k", .fair_key = "quiet");
    create(.kind = "k", .fair_key = "quiet");
    SAME("loud", claim(.kinds = k, .kind_count = 1)->work.fair_key);
    SAME("quiet", claim(.kinds = k, .kind_count = 1)->work.fair_key);
    const struct hf_answer *two = claim_many(.kinds = k, .kind_count = 1, .limit = 2);
    EQ(2, count_of(two));
    SAME("loud", item_of(two, 0)->work.fair_key);
    SAME("quiet", item_of(two, 1)->work.fair_key);
    EQ(2, count_of(claim_many(.kinds = k, .kind_count = 1, .limit = 10)));
}

test_case(claims_of_several_kinds_go_by_fair_tag)
{
    static const char *const kinds[] = { "k", "m" };
    for (int i = 0; i < 2; i++) {
        create(.kind = "k", .fair_key = "loud");
        create(.kind = "m", .fair_key = "loud");
    }
    create(.kind = "other", .fair_key = "other");
    create(.kind = "m", .fair_key = "quiet");
    create(.kind = "k", .fair_key = "quiet");
    static const char *const wanted[] = { "loud", "quiet", "loud", "quiet", "loud" };
    for (int i = 0; i < 5; i++)
        SAME(wanted[i], claim(.kinds = kinds, .kind_count = 2)->work.fair_key);
}

test_case(fair_keys_share_by_weight)
{
    for (int i = 0; i < 9; i++)
        create(.fair_key = "heavy", .fair_weight = 3);
    for (int i = 0; i < 9; i++)
        create(.fair_key = "light");
    int heavy = 0;
    for (int i = 0; i < 8; i++)
        heavy += same(claim(.owner = "w")->work.fair_key, "heavy");
    EQ(6, heavy);
}

/* While three keys have work, none is ahead of another by more than one unit of each, in
 * shares: |served a / weight a - served b / weight b| <= 1 / weight a + 1 / weight b. */
test_case(fair_shares_stay_within_a_unit_of_each_over_random_arrivals)
{
    static const char *const keys[] = { "a", "b", "c" };
    static const int weights[] = { 1, 2, 4 };
    int waiting[3] = { 0 }, served[3] = { 0 };
    uint32_t dice = 12345;
    for (int step = 0; step < 200 && !t->failed; step++) {
        dice = dice * 1664525u + 1013904223u;
        int more = (int)(dice >> 16) % 3;
        for (int k = 0; k < 3; k++) {
            for (; waiting[k] < 3 || (k == more && waiting[k] < 12); waiting[k]++)
                create(.fair_key = keys[k], .fair_weight = weights[k]);
        }
        const char *key = claim(.owner = "w", .ttl_ms = HOUR(1))->work.fair_key;
        int k = same(key, "a") ? 0 : same(key, "b") ? 1 : 2;
        waiting[k]--;
        served[k]++;
        for (int a = 0; a < 3; a++) {
            for (int b = 0; b < a; b++) {
                int ahead = served[a] * weights[b] - served[b] * weights[a];
                TRUE(ahead <= weights[a] + weights[b] &&
                     -ahead <= weights[a] + weights[b]);
            }
        }
    }
    TRUE(served[2] >= 4 * served[0] - 4);
}

test_case(a_key_that_was_idle_saved_nothing_up)
{
    for (int i = 0; i < 4; i++)
        create(.fair_key = "a");
    EQ(4, take_all(AT(t), "w")); /* b was not there; now both come */
    for (int i = 0; i < 3; i++) {
        create(.fair_key = "b");
        create(.fair_key = "a");
    }
    int b = 0;
    for (int i = 0; i < 4; i++)
        b += same(claim(.owner = "w")->work.fair_key, "b");
    EQ(2, b);
}

test_case(priority_comes_before_fairness)
{
    create(.fair_key = "a", .priority = 5);
    create(.fair_key = "a", .priority = 5);
    const char *urgent = new_id(.fair_key = "a", .priority = 1);
    SAME(urgent, claim(.owner = "w")->work.work_id);
}

test_case(poison_is_held_and_released)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE,
                            .max_attempts = 100);
    for (int i = 0; i < 5; i++) {
        TRUE(claim(.id = id, .ttl_ms = 1000)->token != NULL);
        advance(SEC(2));
        EQ(i == 4, sweep().held);
    }
    SAME("held", row(id)->gate);
    SAME("poison", row(id)->status_reason);
    EQ(0, take_all(AT(t), "w"));
    CODE(HF_EINVAL, change(.verb = HF_VERB_RELEASE, .id = id)->code);
    CODE(0, change(.verb = HF_VERB_RELEASE, .id = id, .reason = "mended")->code);
    EQ(1, count_events(id, "released"));
    EQ(1, take_all(AT(t), "w"));
    CODE(HF_ETRANSITION,
         change(.verb = HF_VERB_RELEASE, .id = id, .reason = "again")->code);
}

test_case(poison_counts_only_what_is_lost_in_a_row_and_in_its_window)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_RERUNNABLE,
                            .max_attempts = 100);
    for (int i = 0; i < 12; i++) {
        const struct hf_item *taken = claim(.id = id, .ttl_ms = 1000);
        if (i % 4 == 3) { /* an execution that ends in order */
            struct held h = { id, taken->token };
            hand_back(h);
            continue;
        }
        advance(SEC(2));
        sweep();
    }
    SAME(NULL, row(id)->gate);
    for (int i = 0; i < 9; i++) {
        claim(.id = id, .ttl_ms = 1000);
        advance(MINUTE(16));
        sweep();
    }
    SAME(NULL, row(id)->gate);
}

test_case(reschedule_moves_what_waits_for_its_time)
{
    const char *id = new_id(.delay_ms = HOUR(1), .start_timeout_ms = SEC(30));
    CODE(0, change(.verb = HF_VERB_RESCHEDULE, .id = id, .timeout_ms = HOUR(2))->code);
    EQ(t->wall + HOUR(2), row(id)->due_at);
    EQ(t->wall + HOUR(2) + SEC(30), row(id)->deadline_at);
    EQ(1, count_events(id, "rescheduled"));
    CODE(0, change(.verb = HF_VERB_RESCHEDULE, .id = id)->code);
    SAME(NULL, row(id)->gate);
    EQ(1, take_all(AT(t), "w"));
    CODE(HF_ETRANSITION, change(.verb = HF_VERB_RESCHEDULE, .id = id)->code);
}

test_case(reschedule_brings_a_retry_forward)
{
    struct held h = running(.retry_policy = "{\"initial_backoff_ms\":60000,"
                                            "\"jitter\":\"none\"}");
    fail_as(h, "transient_network");
    CODE(0, change(.verb = HF_VERB_RESCHEDULE, .id = h.id, .timeout_ms = SEC(5))->code);
    EQ(t->wall + SEC(5), row(h.id)->next_retry_at);
    CODE(0, change(.verb = HF_VERB_RESCHEDULE, .id = h.id)->code);
    IS("queued", h.id);
    SAME("rescheduled", last_change(h.id)->event_type);
    EQ(1, row(h.id)->failures);
}

test_case(bad_limits_and_keys_are_refused)
{
    limit(.name = "acme", .max_running = 1);
    CODE(HF_EINVAL, t->code);
    SAME("name", t->err.field);
    limit(.name = "key:acme", .rate_count = 5);
    CODE(HF_EINVAL, t->code);
    SAME("rate_ms", t->err.field);
    limit(.name = "key:acme", .burst = 5);
    CODE(HF_EINVAL, t->code);
    SAME("burst", t->err.field);
    limit(.name = "key:acme", .max_running = -1);
    CODE(HF_EINVAL, t->code);
    SAME("max_running", t->err.field);
    CODE(HF_EINVAL, create(.lane_key = "l", .limit_key = "k")->code);
    SAME("limit_key", t->err.field);
    CODE(HF_EINVAL, create(.fair_weight = 2)->code);
    SAME("fair_weight", t->err.field);
    CODE(HF_EINVAL, create(.fair_key = "a", .fair_weight = 1001)->code);
    CODE(HF_EINVAL,
         create(.limit_key = "k", .disposition = HF_DISPOSITION_EXTERNALLY_OWNED)->code);
}
