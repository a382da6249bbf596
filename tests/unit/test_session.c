/* What a claim does to a session, and the forms in which a turn's records are stored. */

#include <string.h>

#include <holdfast/bounds.h>

#include "core/session/session.h"
#include "support/unit.h"

#define NOW 1000000
#define LEASE_NOW 500000

static const struct hf_env env = { .now = NOW, .lease_now = LEASE_NOW, .store = 1 };
static const struct hf_claimant bob = {
    .owner = "bob", .incarnation = "b1", .nonce = "n2", .ttl_ms = 30000, .store = 1
};

static struct hf_session_row free_row(void)
{
    return (struct hf_session_row){ .s = { .session_id = "s" }, .lease = { .fence = 3 } };
}

static struct hf_session_row held_by(const char *owner, hf_ms expires_at)
{
    struct hf_session_row row = free_row();
    row.lease = (struct hf_lease){ .owner = owner,
                                   .incarnation = "b1",
                                   .nonce = "n1",
                                   .fence = 3,
                                   .store = 1,
                                   .ttl_ms = 30000,
                                   .expires_at = expires_at };
    row.turn_key = 7;
    row.input_status = HF_STATUS_RUNNING;
    return row;
}

static struct hf_session_plan planned(const struct hf_session_row *row, bool dead)
{
    struct hf_session_plan plan;
    assert_int_equal(hf_session_plan(row, &bob, &env, dead, &plan, NULL), 0);
    return plan;
}

static void a_free_session_is_claimed_under_the_next_fence(void **state)
{
    (void)state;
    struct hf_session_row row = free_row();
    struct hf_session_plan plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_BEGIN);
    assert_int_equal(plan.lease.fence, 4);
    row.turn_key = 7; /* it was handed back */
    row.input_status = HF_STATUS_QUEUED;
    row.crashes = 2;
    plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_RESUME);
    assert_int_equal(plan.crashes, 0);
    row.input_status = HF_STATUS_CANCELLED;
    assert_int_equal(planned(&row, false).move, HF_TURN_VOID);
    row.input_status = HF_STATUS_NONE; /* pruned */
    assert_int_equal(planned(&row, false).move, HF_TURN_VOID);
}

static void a_live_lease_of_another_is_busy_unless_its_holder_is_dead(void **state)
{
    (void)state;
    struct hf_session_plan plan;
    struct hf_err err;
    struct hf_session_row row = held_by("alice", LEASE_NOW + 1);
    assert_int_equal(hf_session_plan(&row, &bob, &env, false, &plan, &err),
                     HF_ESESSIONBUSY);
    assert_non_null(strstr(err.message, "alice"));
    plan = planned(&row, true);
    assert_int_equal(plan.move, HF_TURN_TAKE);
    assert_int_equal(plan.outcome, HF_LEASE_RECLAIMED);
    assert_int_equal(plan.crashes, 1);
    row.lease.expires_at = LEASE_NOW; /* equality is lapsed */
    assert_int_equal(planned(&row, false).outcome, HF_LEASE_ACQUIRED);
}

static void the_same_owner_keeps_its_turn_and_counts_no_crash(void **state)
{
    (void)state;
    struct hf_session_row row = held_by("bob", LEASE_NOW + 1);
    row.crashes = 2;
    struct hf_session_plan plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_TAKE);
    assert_int_equal(plan.lease.fence, 3);
    assert_int_equal(plan.crashes, 2);
    row.lease.nonce = "n2";
    assert_int_equal(planned(&row, false).move, HF_TURN_LEAVE);
    row.turn_key =
        0; /* it has committed since: the next turn begins under the same lease */
    assert_int_equal(planned(&row, false).move, HF_TURN_BEGIN);
}

static void crashes_count_in_a_row_and_within_their_window(void **state)
{
    (void)state;
    struct hf_session_row row = held_by("alice", LEASE_NOW);
    row.crashes = HF_MAX_POISON_CRASHES - 1;
    row.crashed_at = NOW - HF_MAX_POISON_WINDOW_MS;
    struct hf_session_plan plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_HOLD);
    assert_int_equal(plan.crashes, HF_MAX_POISON_CRASHES);
    row.crashed_at--; /* the window is over: it begins anew */
    plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_TAKE);
    assert_int_equal(plan.crashes, 1);
    assert_int_equal(plan.crashed_at, NOW);
    row.crashed_at = NOW;
    row.step = 5;
    row.claimed_step = 4; /* a step was stored since the last claim */
    plan = planned(&row, false);
    assert_int_equal(plan.move, HF_TURN_TAKE);
    assert_int_equal(plan.crashes, 0);
}

static void counters_that_are_negative_or_full_are_told(void **state)
{
    (void)state;
    struct hf_session_plan plan;
    struct hf_session_row row = free_row();
    row.lease.fence = -1;
    assert_int_equal(hf_session_plan(&row, &bob, &env, false, &plan, NULL), HF_ECORRUPT);
    row.lease.fence = INT64_MAX;
    assert_int_equal(hf_session_plan(&row, &bob, &env, false, &plan, NULL), HF_EOVERFLOW);
}

static int sent(const struct hf_part *parts, size_t count)
{
    struct hf_message message = { .parts = parts, .part_count = count };
    return hf_session_message_check(&message, NULL);
}

static void a_message_has_a_text_or_another_part(void **state)
{
    (void)state;
    struct hf_attachment file = { .ref = "sha256:0" };
    const struct hf_part blank = { .content = { " \t\r\n", 4 } };
    const struct hf_part empty = { .content = { NULL, 0 } };
    const struct hf_part parts[] = { blank, empty, { .content = { " x", 2 } } };
    const struct hf_part with_file[] = {
        empty, { .kind = HF_PART_ATTACHMENT, .attachment = &file }
    };
    assert_int_equal(sent(NULL, 0), HF_EINVAL);
    assert_int_equal(sent(parts, 1), HF_EINVAL);
    assert_int_equal(sent(parts, 2), HF_EINVAL);
    assert_int_equal(sent(parts, 3), 0);
    assert_int_equal(sent(with_file, 2), 0);
}

static void transient_records_are_read_as_they_were_stored(void **state)
{
    (void)state;
    const char *at = "0 2 {}\n12 8 {\"a\":\n1}\n";
    int64_t before = 0;
    struct hf_span json;
    assert_int_equal(hf_transient_next(&at, &before, &json, NULL), 1);
    assert_int_equal(before, 0);
    assert_int_equal(json.len, 2);
    assert_int_equal(hf_transient_next(&at, &before, &json, NULL), 1);
    assert_int_equal(before, 12);
    assert_memory_equal(json.at, "{\"a\":\n1}", 8);
    assert_int_equal(hf_transient_next(&at, &before, &json, NULL), 0);
    static const char *const broken[] = { "x",         "1",
                                          "1 2",       "1 2 {}",
                                          "1 3 {}\n",  "1 1 {}\n",
                                          " 1 2 {}\n", "1 99999999999999999999 {}\n" };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        at = broken[i];
        assert_int_equal(hf_transient_next(&at, &before, &json, NULL), HF_ECORRUPT);
    }
}

static void a_commit_s_result_round_trips(void **state)
{
    (void)state;
    struct hf_arena arena;
    uint8_t chain[32];
    struct hf_session_committed read = { .repeated = false };
    hf_arena_init(&arena, hf_alloc_system());
    for (int i = 0; i < 32; i++)
        chain[i] = (uint8_t)(i * 8 + 3);
    const char *json = hf_commit_result(&arena, 7, 12, chain);
    assert_int_equal(hf_commit_result_read(json, &read, NULL), 0);
    assert_int_equal(read.head_revision, 7);
    assert_int_equal(read.record_count, 12);
    assert_memory_equal(read.chain, chain, 32);
    assert_int_equal(hf_commit_result_read(NULL, &read, NULL), HF_ECORRUPT);
    assert_int_equal(hf_commit_result_read("{\"chain\":\"0g\"}", &read, NULL),
                     HF_ECORRUPT);
    hf_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_session_is_claimed_under_the_next_fence),
        cmocka_unit_test(a_live_lease_of_another_is_busy_unless_its_holder_is_dead),
        cmocka_unit_test(the_same_owner_keeps_its_turn_and_counts_no_crash),
        cmocka_unit_test(crashes_count_in_a_row_and_within_their_window),
        cmocka_unit_test(counters_that_are_negative_or_full_are_told),
        cmocka_unit_test(a_message_has_a_text_or_another_part),
        cmocka_unit_test(transient_records_are_read_as_they_were_stored),
        cmocka_unit_test(a_commit_s_result_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
