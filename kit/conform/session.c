/* The lease checklist on the session lane: leases whose holder must be live (rule 1). */

#include "conform/kit.h"

#define TERM SEC(30)

static struct hf_lease_info take_as(struct hf_conform *t, struct hf_lease_claim request)
{
    struct hf_lease_info info = { .fence = 0 };
    request.size = sizeof(request);
    request.leased = HF_LEASED_SESSION;
    if (!request.key)
        request.key = "s1";
    if (!t->failed && hf_lease_look(t->store, HF_LEASED_SESSION, request.key, &info,
                                    NULL) == HF_ENOTFOUND)
        (void)kit_session(t, request.key);
    if (!request.owner)
        request.owner = "alice";
    if (!request.incarnation)
        request.incarnation = "boot-1";
    if (!t->failed)
        t->code = kit_called(t, hf_lease_take(t->store, &request, &info, kit_err(t)));
    return info;
}

static struct hf_lease_info look_at(struct hf_conform *t, const char *key)
{
    struct hf_lease_info info = { .fence = 0 };
    if (!t->failed)
        t->code = kit_called(
            t, hf_lease_look(t->store, HF_LEASED_SESSION, key, &info, kit_err(t)));
    return info;
}

static struct hf_lease_info renew_lease(struct hf_conform *t, const char *key,
                                        const char *token)
{
    struct hf_lease_info info = { .fence = 0 };
    if (!t->failed)
        t->code = kit_called(t, hf_lease_renew(t->store, HF_LEASED_SESSION, key, token,
                                               &info, kit_err(t)));
    return info;
}

static int release_lease(struct hf_conform *t, const char *key, const char *token)
{
    if (!t->failed)
        t->code = kit_called(
            t, hf_lease_release(t->store, HF_LEASED_SESSION, key, token, kit_err(t)));
    return t->code;
}

#define take(...) take_as(AT(t), (struct hf_lease_claim){ __VA_ARGS__ })
#define look(key) look_at(AT(t), (key))

test_case(lease_first_claim_acquires_and_displaces_nobody)
{
    struct hf_lease_info info = take();
    CODE(0, t->code);
    EQ(1, info.fence);
    TRUE(info.held);
    TRUE(!info.displaced);
    SAME("alice", info.owner);
    SAME("boot-1", info.incarnation);
    TRUE(info.token[0] != 0);
    EQ(30000, info.ttl_ms);
    EQ(30000, info.remaining_ms);
}

test_case(lease_retry_of_a_claim_gives_the_same_lease)
{
    struct hf_lease_info first = take(.nonce = "n");
    advance(SEC(5));
    struct hf_lease_info again = take(.nonce = "n");
    CODE(0, t->code);
    SAME(first.token, again.token);
    EQ(1, again.fence);
    EQ(first.claimed_at, again.claimed_at);
    EQ(25000, again.remaining_ms);
}

test_case(lease_retry_of_a_takeover_bumps_once)
{
    take(.nonce = "n");
    advance(TERM);
    struct hf_lease_info first = take(.owner = "bob", .nonce = "m");
    struct hf_lease_info again = take(.owner = "bob", .nonce = "m");
    EQ(2, first.fence);
    EQ(2, again.fence);
    SAME(first.token, again.token);
}

test_case(lease_reentry_rotates_the_token_and_keeps_the_fence)
{
    struct hf_lease_info first = take(.nonce = "n1");
    advance(SEC(10));
    struct hf_lease_info again = take(.nonce = "n2");
    CODE(0, t->code);
    TRUE(!same(first.token, again.token));
    EQ(1, again.fence);
    EQ(first.claimed_at, again.claimed_at);
    EQ(30000, again.remaining_ms);
    TRUE(!again.displaced);
    renew_lease(AT(t), "s1", first.token);
    CODE(HF_ELEASELOST, t->code);
}

test_case(lease_of_another_incarnation_is_busy_while_live)
{
    take(.nonce = "n");
    struct hf_lease_info info = take(.incarnation = "boot-2", .nonce = "n");
    CODE(HF_EHELD, t->code);
    (void)info;
    advance(TERM - 1);
    take(.incarnation = "boot-2");
    CODE(HF_EHELD, t->code);
}

test_case(lease_busy_shows_the_holder_without_its_token)
{
    take();
    struct hf_lease_info info = take(.owner = "bob");
    CODE(HF_EHELD, t->code);
    SAME("alice", info.owner);
    EQ(1, info.fence);
    SAME("", info.token);
    TRUE(info.held);
    EQ(30000, info.remaining_ms);
}

test_case(lease_renewal_extends_and_rotates_nothing)
{
    struct hf_lease_info first = take();
    advance(SEC(20));
    struct hf_lease_info renewed = renew_lease(AT(t), "s1", first.token);
    CODE(0, t->code);
    EQ(30000, renewed.remaining_ms);
    EQ(1, renewed.fence);
    EQ(first.claimed_at, renewed.claimed_at);
    advance(TERM - 1);
    renew_lease(AT(t), "s1", first.token);
    CODE(0, t->code);
}

/* As callers like to write it: the token comes from the struct that is filled. */
test_case(lease_renewal_may_be_told_into_its_own_lease)
{
    struct hf_lease_info info = take();
    if (!t->failed)
        t->code = kit_called(t, hf_lease_renew(t->store, HF_LEASED_SESSION, "s1",
                                               info.token, &info, kit_err(t)));
    CODE(0, t->code);
    EQ(1, info.fence);
    CODE(0, release_lease(AT(t), "s1", info.token));
}

test_case(peers_act_only_at_expiry_and_a_session_holder_must_be_live)
{
    struct hf_lease_info info = take();
    advance(TERM);
    renew_lease(AT(t), "s1", info.token);
    CODE(HF_ELEASELOST, t->code);
    struct hf_lease_info other = take(.owner = "bob");
    CODE(0, t->code);
    EQ(2, other.fence);
}

test_case(lease_renewal_by_a_stale_token_is_refused)
{
    struct hf_lease_info old = take();
    advance(TERM);
    struct hf_lease_info now = take(.owner = "bob");
    renew_lease(AT(t), "s1", old.token);
    CODE(HF_ELEASELOST, t->code);
    EQ(30000, look("s1").remaining_ms);
    renew_lease(AT(t), "s1", now.token);
    CODE(0, t->code);
    renew_lease(AT(t), "s2", now.token);
    CODE(HF_ELEASELOST, t->code);
}

test_case(lease_release_by_a_stale_token_frees_nobody)
{
    struct hf_lease_info old = take();
    advance(TERM);
    take(.owner = "bob");
    CODE(HF_ELEASELOST, release_lease(AT(t), "s1", old.token));
    SAME("bob", look("s1").owner);
    TRUE(look("s1").held);
}

test_case(lease_release_twice_is_refused)
{
    struct hf_lease_info info = take();
    CODE(0, release_lease(AT(t), "s1", info.token));
    CODE(HF_ELEASELOST, release_lease(AT(t), "s1", info.token));
}

test_case(lease_claim_after_release_or_lapse_has_a_higher_fence)
{
    struct hf_lease_info one = take();
    release_lease(AT(t), "s1", one.token);
    struct hf_lease_info two = take(.owner = "bob");
    EQ(2, two.fence);
    advance(TERM);
    struct hf_lease_info three = take();
    EQ(3, three.fence);
    /* Its own lapsed lease is no re-entry either. */
    advance(TERM);
    EQ(4, take().fence);
}

test_case(lease_is_free_exactly_at_its_term)
{
    take(.ttl_ms = SEC(7));
    advance(SEC(7) - 1);
    take(.owner = "bob");
    CODE(HF_EHELD, t->code);
    advance(1);
    take(.owner = "bob");
    CODE(0, t->code);
}

test_case(lease_displacement_names_the_lapsed_holder)
{
    struct hf_lease_info old = take();
    advance(TERM + SEC(3));
    struct hf_lease_info now = take(.owner = "bob");
    TRUE(now.displaced);
    SAME("alice", now.displaced_owner);
    EQ(1, now.displaced_fence);
    EQ(old.expires_at, now.displaced_expires_at);
    release_lease(AT(t), "s1", now.token);
    struct hf_lease_info free_one = take(.owner = "carol");
    TRUE(!free_one.displaced);
}

test_case(lease_of_an_opaque_holder_is_never_proven_dead)
{
    take();
    take(.owner = "bob", .reclaim = true);
    CODE(HF_EHELD, t->code);
}

test_case(lease_keys_are_apart)
{
    EQ(1, take(.key = "a").fence);
    EQ(1, take(.key = "b", .owner = "bob").fence);
    SAME("alice", look("a").owner);
    SAME("bob", look("b").owner);
}

test_case(lease_look_shows_lapsed_leases_and_changes_nothing)
{
    look("s1");
    CODE(HF_ENOTFOUND, t->code);
    struct hf_lease_info info = take();
    advance(TERM + 5);
    struct hf_lease_info seen = look("s1");
    CODE(0, t->code);
    SAME("alice", seen.owner);
    SAME("", seen.token);
    EQ(-5, seen.remaining_ms);
    EQ(1, look("s1").fence);
    EQ(info.expires_at, look("s1").expires_at);
    struct hf_lease_info next = take(.owner = "bob");
    release_lease(AT(t), "s1", next.token);
    TRUE(!look("s1").held);
    EQ(2, look("s1").fence);
}

test_case(lease_terms_have_bounds)
{
    take(.ttl_ms = 749);
    CODE(HF_EINVAL, t->code);
    take(.ttl_ms = 86400001);
    CODE(HF_EINVAL, t->code);
    take(.ttl_ms = 750);
    CODE(0, t->code);
    take(.key = "s2", .ttl_ms = 86400000);
    CODE(0, t->code);
}

test_case(lease_tokens_are_refused_after_a_bump_but_peers_wait)
{
    struct hf_lease_info info = take();
    bump();
    renew_lease(AT(t), "s1", info.token);
    CODE(HF_ELEASELOST, t->code);
    CODE(HF_ELEASELOST, release_lease(AT(t), "s1", info.token));
    take(.owner = "bob");
    CODE(HF_EHELD, t->code);
    advance(TERM);
    struct hf_lease_info next = take(.owner = "bob");
    CODE(0, t->code);
    EQ(2, next.fence);
}

test_case(lease_incarnation_counts_though_nonce_and_fence_match)
{
    struct hf_lease_info old = take(.key = "s1", .nonce = "n");
    bump();
    struct hf_lease_info now = take(.key = "s2", .nonce = "n");
    EQ(1, old.fence);
    EQ(1, now.fence);
    renew_lease(AT(t), "s2", old.token);
    CODE(HF_ELEASELOST, t->code);
    CODE(HF_ELEASELOST, release_lease(AT(t), "s2", old.token));
    renew_lease(AT(t), "s1", now.token);
    CODE(HF_ELEASELOST, t->code);
    CODE(HF_ELEASELOST, release_lease(AT(t), "s1", now.token));
    renew_lease(AT(t), "s2", now.token);
    CODE(0, t->code);
}

test_case(lease_survives_a_reopened_store)
{
    struct hf_lease_info info = take();
    reopen();
    advance(SEC(29));
    take(.owner = "bob");
    CODE(HF_EHELD, t->code);
    renew_lease(AT(t), "s1", info.token);
    CODE(0, t->code);
    EQ(30000, look("s1").remaining_ms);
}

test_case(lease_has_one_winner_between_two_handles)
{
    struct hf_store *second = kit_second(AT(t));
    take(.owner = "a");
    CODE(0, t->code);
    struct hf_store *first = kit_use(t, second);
    take(.owner = "b");
    CODE(HF_EHELD, t->code);
    SAME("a", look("s1").owner);
    kit_use(t, first);
}

test_case(sessions_are_listed_in_both_directions)
{
    for (int i = 0; i < 3; i++)
        kit_session(t, say("s%d", i));
    const char *after = NULL;
    for (int newest = 0; newest < 2; newest++) {
        struct hf_session_filter filter = {
            .size = sizeof(filter), .agent = "a", .limit = 1, .newest = newest
        };
        struct hf_session_answer *found = NULL;
        for (int i = 0; i < 2 && !t->failed; i++) {
            CODE(0, kit_called(t, hf_session_list(t->store, &t->who, &filter, &found,
                                                  kit_err(t))));
            if (t->failed)
                return;
            EQ(1, found->session_count);
            SAME(say("s%d", newest ? 2 - i : i), found->sessions[0].session_id);
            filter.after = after = say("%s", found->next);
            hf_session_answer_free(found);
        }
    }
    struct hf_session_filter other = { .size = sizeof(other),
                                       .agent = "a",
                                       .after = after };
    struct hf_session_answer *found = NULL;
    CODE(HF_EINVAL,
         kit_called(t, hf_session_list(t->store, &t->who, &other, &found, kit_err(t))));
    SAME("after", t->err.field);
}

test_case(a_handle_has_an_incarnation_of_its_own)
{
    const char *one = say("%s", hf_store_incarnation(t->store));
    reopen();
    if (t->failed)
        return;
    TRUE(!same(one, hf_store_incarnation(t->store)));
}
