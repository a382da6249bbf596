/* The lease rules, for any lane: the checklist of a session's lease as far as it is pure,
 * and both settings of the flag that says whether a late holder counts. */
#include "support/unit.h"

#include <string.h>

#include "base/text.h"
#include "core/ledger/lease.h"

#define NOW ((hf_ms)1000000)
#define TTL ((hf_ms)30000)
#define STORE 7

static const struct hf_lease never_held;

static struct hf_claimant claimant(const char *owner, const char *incarnation,
                                   const char *nonce)
{
    return (struct hf_claimant){ .owner = owner,
                                 .incarnation = incarnation,
                                 .nonce = nonce,
                                 .ttl_ms = TTL,
                                 .store = STORE };
}

static struct hf_lease taken(const struct hf_lease *row, const struct hf_claimant *who,
                             hf_ms now, bool proven_dead, enum hf_lease_outcome wanted)
{
    struct hf_lease lease;
    enum hf_lease_outcome outcome;
    struct hf_err err;
    assert_int_equal(hf_lease_claim(row, who, now, proven_dead, &lease, &outcome, &err),
                     0);
    assert_int_equal(outcome, wanted);
    return lease;
}

static int refused(const struct hf_lease *row, const struct hf_claimant *who, hf_ms now)
{
    struct hf_lease lease = { .fence = -5 };
    enum hf_lease_outcome outcome = HF_LEASE_REPEATED;
    struct hf_err err = { 0 };
    int rc = hf_lease_claim(row, who, now, false, &lease, &outcome, &err);
    assert_int_not_equal(rc, 0);
    assert_int_equal(err.code, rc);
    assert_int_equal(lease.fence, -5); /* out-parameters stay as they were */
    assert_int_equal(outcome, HF_LEASE_REPEATED);
    return rc;
}

static struct hf_lease anns(void)
{
    struct hf_claimant ann = claimant("ann", "i1", "n1");
    return taken(&never_held, &ann, NOW, false, HF_LEASE_ACQUIRED);
}

static struct hf_token token_of(const struct hf_lease *lease)
{
    struct hf_token token = { .store = lease->store, .fence = lease->fence };
    memcpy(token.nonce, lease->nonce, strlen(lease->nonce) + 1);
    return token;
}

static int check(const struct hf_lease *row, const struct hf_token *token, hf_ms now,
                 bool must_be_live)
{
    struct hf_err err;
    return hf_lease_check(row, token, now, STORE, must_be_live, &err);
}

static void the_first_claim_acquires_with_fence_one(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    assert_int_equal(lease.fence, 1);
    assert_int_equal(lease.store, STORE);
    assert_int_equal(lease.claimed_at, NOW);
    assert_int_equal(lease.expires_at, NOW + TTL);
    assert_int_equal(lease.ttl_ms, TTL);
    assert_string_equal(lease.owner, "ann");
    assert_string_equal(lease.incarnation, "i1");
    assert_string_equal(lease.nonce, "n1");
}

static void reentry(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant ann = claimant("ann", "i1", "n1");
    struct hf_lease same = taken(&lease, &ann, NOW + 5000, false, HF_LEASE_REPEATED);
    assert_memory_equal(&same, &lease, sizeof(lease));

    ann.nonce = "n2";
    struct hf_lease again = taken(&lease, &ann, NOW + 5000, false, HF_LEASE_REENTERED);
    assert_string_equal(again.nonce, "n2");
    assert_int_equal(again.fence, 1);
    assert_int_equal(again.claimed_at, NOW);
    assert_int_equal(again.expires_at, NOW + 5000 + TTL);

    struct hf_token old = token_of(&lease), fresh = token_of(&again);
    assert_int_equal(check(&again, &old, NOW, false), HF_ELEASELOST);
    assert_int_equal(check(&again, &fresh, NOW, false), 0);

    struct hf_claimant rebooted = claimant("ann", "i2", "n1");
    assert_int_equal(refused(&lease, &rebooted, NOW + 5000), HF_EHELD);
}

static void reentry_with_a_shorter_term_does_not_move_the_expiry_back(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant ann = claimant("ann", "i1", "n2");
    ann.ttl_ms = 750;
    struct hf_lease again = taken(&lease, &ann, NOW + 1, false, HF_LEASE_REENTERED);
    assert_int_equal(again.expires_at, NOW + TTL);
    assert_int_equal(again.ttl_ms, 750);
}

static void a_retried_takeover_does_not_raise_the_fence_twice(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant bob = claimant("bob", "b1", "m1");
    struct hf_lease over = taken(&lease, &bob, NOW + TTL, false, HF_LEASE_ACQUIRED);
    assert_int_equal(over.fence, 2);
    struct hf_lease again = taken(&over, &bob, NOW + TTL + 5, false, HF_LEASE_REPEATED);
    assert_int_equal(again.fence, 2);
    assert_int_equal(again.claimed_at, NOW + TTL);
}

static void anybody_else_is_refused_while_the_lease_lives(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant bob = claimant("bob", "i1", "n1"); /* same nonce, other owner */
    struct hf_err err;
    struct hf_lease out;
    enum hf_lease_outcome outcome;
    assert_int_equal(hf_lease_claim(&lease, &bob, NOW, false, &out, &outcome, &err),
                     HF_EHELD);
    assert_non_null(strstr(err.message, "ann")); /* names the holder */
}

static void peers_act_only_at_expiry(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant bob = claimant("bob", "b1", "m1");
    assert_int_equal(refused(&lease, &bob, NOW + TTL - 1), HF_EHELD);
    struct hf_lease over = taken(&lease, &bob, NOW + TTL, false, HF_LEASE_ACQUIRED);
    assert_int_equal(over.fence, 2);
    assert_true(hf_lease_live(&lease, NOW + TTL - 1));
    assert_false(hf_lease_live(&lease, NOW + TTL));
}

static void late_holders_count_by_the_lanes_flag(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_token token = token_of(&lease);
    assert_int_equal(check(&lease, &token, NOW + TTL - 1, true), 0);
    assert_int_equal(check(&lease, &token, NOW + TTL, true), HF_ELEASELOST);
    assert_int_equal(check(&lease, &token, NOW + TTL, false), 0);
    assert_int_equal(check(&lease, &token, NOW + 1000 * TTL, false), 0);
}

static void a_fence_survives_release_and_rises_at_the_next_claim(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_token token = token_of(&lease);
    struct hf_lease free_row = hf_lease_released(&lease);
    assert_int_equal(free_row.fence, 1);
    assert_null(free_row.nonce);
    assert_null(free_row.owner);
    assert_false(hf_lease_live(&free_row, NOW));
    assert_int_equal(check(&free_row, &token, NOW, false), HF_ELEASELOST);

    struct hf_claimant ann = claimant("ann", "i1", "n1"); /* the very same claimant */
    struct hf_lease next = taken(&free_row, &ann, NOW + 1, false, HF_LEASE_ACQUIRED);
    assert_int_equal(next.fence, 2);
    assert_int_equal(check(&next, &token, NOW + 1, false), HF_ELEASELOST);
}

static void a_lapsed_lease_is_acquired_anew_even_by_its_own_holder(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant ann = claimant("ann", "i1", "n1");
    struct hf_lease next = taken(&lease, &ann, NOW + TTL, false, HF_LEASE_ACQUIRED);
    assert_int_equal(next.fence, 2);
}

static void a_proof_of_death_reclaims_before_expiry(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_claimant bob = claimant("bob", "b1", "m1");
    assert_int_equal(refused(&lease, &bob, NOW + 1), HF_EHELD);
    struct hf_lease over = taken(&lease, &bob, NOW + 1, true, HF_LEASE_RECLAIMED);
    assert_int_equal(over.fence, 2);
    assert_int_equal(over.claimed_at, NOW + 1);
}

static void renewal_extends_and_changes_nothing_else(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_lease longer = hf_lease_renewed(&lease, NOW + 10000, 0);
    struct hf_lease wanted = lease;
    wanted.expires_at = NOW + 10000 + TTL;
    assert_memory_equal(&longer, &wanted, sizeof(wanted));
    assert_int_equal(hf_lease_renewed(&lease, NOW, 60000).expires_at, NOW + 60000);
    assert_int_equal(hf_lease_renewed(&lease, NOW, 60000).ttl_ms, TTL);
    /* never back, not even when the clock did or the term given is short */
    assert_int_equal(hf_lease_renewed(&lease, NOW - 5, 750).expires_at, NOW + TTL);
    assert_int_equal(hf_lease_renewed(&lease, INT64_MAX, 0).expires_at, INT64_MAX);
}

static void token_carries_the_fence(void **state)
{
    (void)state;
    struct hf_lease lease = anns();
    struct hf_token good = token_of(&lease);
    assert_int_equal(check(&lease, &good, NOW, true), 0);
    struct hf_token bad = good;
    bad.fence = 2;
    assert_int_equal(check(&lease, &bad, NOW, false), HF_ELEASELOST);
    bad = good;
    bad.fence = 0;
    assert_int_equal(check(&lease, &bad, NOW, false), HF_ELEASELOST);
    bad = good;
    bad.nonce[0] = 'x';
    assert_int_equal(check(&lease, &bad, NOW, false), HF_ELEASELOST);
    bad = good;
    bad.store = STORE - 1;
    assert_int_equal(check(&lease, &bad, NOW, false), HF_ELEASELOST);
    assert_int_equal(check(&never_held, &good, NOW, false), HF_ELEASELOST);
}

static void incarnation_refuses_holders_not_patience(void **state)
{
    (void)state;
    struct hf_lease lease = anns(); /* of store incarnation 7 */
    struct hf_token token = token_of(&lease);
    struct hf_err err;
    assert_int_equal(hf_lease_check(&lease, &token, NOW, STORE + 1, false, &err),
                     HF_ELEASELOST);
    struct hf_claimant bob = claimant("bob", "b1", "m1");
    bob.store = STORE + 1;
    assert_int_equal(refused(&lease, &bob, NOW + TTL - 1), HF_EHELD);
    struct hf_lease over = taken(&lease, &bob, NOW + TTL, false, HF_LEASE_ACQUIRED);
    assert_int_equal(over.store, STORE + 1);
    assert_int_equal(over.fence, 2);
    /* the holder itself may not slip back in under the new history */
    struct hf_claimant ann = claimant("ann", "i1", "n2");
    ann.store = STORE + 1;
    assert_int_equal(refused(&lease, &ann, NOW + 1), HF_EHELD);
    assert_false(hf_lease_mine(&lease, &ann));
}

static void damaged_fences_are_typed(void **state)
{
    (void)state;
    struct hf_claimant ann = claimant("ann", "i1", "n1");
    struct hf_lease row = { .fence = INT64_MAX };
    assert_int_equal(refused(&row, &ann, NOW), HF_EOVERFLOW);
    row.fence = -1;
    assert_int_equal(refused(&row, &ann, NOW), HF_ECORRUPT);
    row.fence = INT64_MAX - 1;
    assert_int_equal(taken(&row, &ann, NOW, false, HF_LEASE_ACQUIRED).fence, INT64_MAX);
}

static void terms_are_three_renewals_within_limits(void **state)
{
    (void)state;
    struct hf_err err;
    assert_int_equal(hf_lease_timing(750, 250, &err), 0);
    assert_int_equal(hf_lease_timing(749, 0, &err), HF_EINVAL);
    assert_string_equal(err.field, "ttl_ms");
    assert_int_equal(hf_lease_timing(86400000, 0, &err), 0);
    assert_int_equal(hf_lease_timing(86400001, 0, &err), HF_EINVAL);
    assert_int_equal(hf_lease_timing(-1, 0, &err), HF_EINVAL);
    assert_int_equal(hf_lease_timing(45000, 15000, &err), 0);
    assert_int_equal(hf_lease_timing(45000, 15001, &err), HF_EINVAL);
    assert_non_null(strstr(err.message, "3 * renew"));
    assert_int_equal(hf_lease_timing(45000, 249, &err), HF_EINVAL);
    assert_string_equal(err.field, "renew_ms");
    assert_int_equal(hf_lease_timing(45000, INT64_MAX, &err), HF_EINVAL);
    assert_int_equal(hf_lease_renew_every(45000), 15000);
    assert_int_equal(hf_lease_renew_every(750), 250);
    assert_int_equal(hf_lease_renew_every(0), 250);

    struct hf_claimant ann = claimant("ann", "i1", "n1");
    ann.ttl_ms = 749;
    assert_int_equal(refused(&never_held, &ann, NOW), HF_EINVAL);
}

static void tokens_read_back_as_written(void **state)
{
    (void)state;
    struct hf_buf text;
    struct hf_token token;
    struct hf_err err;
    hf_buf_init(&text, hf_alloc_system(), HF_TOKEN_TEXT);
    assert_int_equal(hf_token_write(&text, 7, 4, "n1"), 0);
    assert_string_equal(hf_buf_str(&text), "hf1.7.4.n1");
    assert_int_equal(hf_token_read("hf1.7.4.n1", &token, &err), 0);
    assert_int_equal(token.store, 7);
    assert_int_equal(token.fence, 4);
    assert_string_equal(token.nonce, "n1");
    /* a nonce may hold dots */
    assert_int_equal(hf_token_read("hf1.0.1.a.b.c", &token, &err), 0);
    assert_string_equal(token.nonce, "a.b.c");
    hf_buf_fini(&text);
}

static void the_longest_token_fits(void **state)
{
    (void)state;
    char nonce[192];
    memset(nonce, 'n', 191);
    nonce[191] = 0;
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), HF_TOKEN_TEXT - 1);
    assert_int_equal(hf_token_write(&text, INT64_MAX, INT64_MAX, nonce), 0);
    struct hf_token token;
    struct hf_err err;
    assert_int_equal(hf_token_read(hf_buf_str(&text), &token, &err), 0);
    assert_int_equal(token.fence, INT64_MAX);
    assert_string_equal(token.nonce, nonce);
    hf_buf_fini(&text);
}

static void anything_else_is_no_token(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "h",
        "hf1",
        "hf1.",
        "hf2.7.4.n1",
        "hf1.7.4.",
        "hf1.7.4",
        "hf1..4.n1",
        "hf1.7..n1",
        "hf1.-7.4.n1",
        "hf1.07.4.n",
        "hf1. 7.4.n1",
        "hf1.7.4x.n1",
        "HF1.7.4.n1",
        " hf1.7.4.n1",
        "hf1.7.4.\n",
        "hf1.7.4.\xff",
        "hf1.9223372036854775808.1.n",
        "hf1.7.+4.n1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_token token = { .fence = 99 };
        struct hf_err err = { 0 };
        if (hf_token_read(bad[i], &token, &err) != HF_EINVAL)
            fail_msg("read: %s", bad[i]);
        assert_string_equal(err.field, "token");
        assert_int_equal(token.fence, 99);
    }
    struct hf_token token;
    assert_int_equal(hf_token_read(NULL, &token, NULL), HF_EINVAL);
    char nonce[8 + 193] = "hf1.7.4.";
    memset(nonce + 8, 'n', 192); /* one more than a nonce may have */
    nonce[200] = 0;
    assert_int_equal(hf_token_read(nonce, &token, NULL), HF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_claim_acquires_with_fence_one),
        cmocka_unit_test(reentry),
        cmocka_unit_test(reentry_with_a_shorter_term_does_not_move_the_expiry_back),
        cmocka_unit_test(a_retried_takeover_does_not_raise_the_fence_twice),
        cmocka_unit_test(anybody_else_is_refused_while_the_lease_lives),
        cmocka_unit_test(peers_act_only_at_expiry),
        cmocka_unit_test(late_holders_count_by_the_lanes_flag),
        cmocka_unit_test(a_fence_survives_release_and_rises_at_the_next_claim),
        cmocka_unit_test(a_lapsed_lease_is_acquired_anew_even_by_its_own_holder),
        cmocka_unit_test(a_proof_of_death_reclaims_before_expiry),
        cmocka_unit_test(renewal_extends_and_changes_nothing_else),
        cmocka_unit_test(token_carries_the_fence),
        cmocka_unit_test(incarnation_refuses_holders_not_patience),
        cmocka_unit_test(damaged_fences_are_typed),
        cmocka_unit_test(terms_are_three_renewals_within_limits),
        cmocka_unit_test(tokens_read_back_as_written),
        cmocka_unit_test(the_longest_token_fits),
        cmocka_unit_test(anything_else_is_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
