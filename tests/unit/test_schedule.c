/* What a pass makes of due slots, as a pure function: nothing is lost, nothing is both made
 * and skipped. */
#include "support/unit.h"

#include <string.h>

#include "core/schedule/schedule.h"

#define NOW ((hf_ms)1800000000000)

static struct hf_schedule rules(const char *catch_up, const char *overlap, hf_ms next_at)
{
    return (struct hf_schedule){ .name = "s",
                                 .tenant = "",
                                 .catch_up = catch_up,
                                 .overlap = overlap,
                                 .miss_threshold_ms = 60000,
                                 .next_at = next_at };
}

static const char *const catch_ups[] = { "latest", "all", "none" };
static const char *const overlaps[] = { "skip", "one_waiting", "allow", "replace" };

/* In no record, or in exactly one. */
static int times_skipped(const struct hf_slot_plan *plan, hf_ms slot)
{
    int times = 0;
    for (size_t i = 0; i < plan->skip_count; i++)
        times += plan->skips[i].first_at <= slot && slot <= plan->skips[i].last_at;
    return times;
}

static int times_made(const struct hf_slot_plan *plan, hf_ms slot)
{
    int times = 0;
    for (size_t i = 0; i < plan->made_count; i++)
        times += plan->made[i] == slot;
    return times;
}

static void check_plan(const struct hf_schedule *schedule, const struct hf_timing *timing,
                       bool blocked)
{
    struct hf_slot_plan plan;
    int64_t made = 0, skipped = 0;
    hf_schedule_plan(schedule, timing, blocked, NOW, &plan);
    hf_ms slot = schedule->next_at;
    for (; slot != 0 && slot <= NOW && slot != plan.next_at;
         slot = hf_timing_next(timing, slot)) {
        assert_int_equal(times_made(&plan, slot) + times_skipped(&plan, slot), 1);
        made += times_made(&plan, slot);
        skipped += times_skipped(&plan, slot);
    }
    assert_int_equal(plan.next_at, slot); /* what is not handled stays due */
    assert_int_equal(made, plan.made_count);
    assert_int_equal(skipped, plan.skipped);
    bool allow = strcmp(schedule->overlap, "allow") == 0;
    bool replace = strcmp(schedule->overlap, "replace") == 0;
    assert_true(allow || made <= (blocked && !replace ? 0 : 1));
    /* What is made is the newest: it would have replaced the others. */
    if (replace && made == 1)
        assert_int_equal(plan.made[0],
                         hf_timing_last(timing, schedule->next_at - 1, NOW));
    if (strcmp(schedule->catch_up, "all") != 0)
        assert_true(plan.next_at == 0 || plan.next_at > NOW || made == 100);
}

static void every_due_slot_is_made_or_skipped_once(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 3000; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct hf_timing timing = { .kind = HF_TIMING_INTERVAL,
                                    .every_ms = 1000 + (hf_ms)(seed >> 40) % 200000,
                                    .anchor_at = NOW - (hf_ms)(seed >> 24) % 3000000 };
        if (round % 7 == 0)
            timing.kind = HF_TIMING_ONCE;
        struct hf_schedule schedule = rules(
            catch_ups[round % 3], overlaps[round / 3 % 4],
            hf_timing_next(&timing, timing.anchor_at - 1));
        check_plan(&schedule, &timing, round % 2 == 0);
    }
}

static void one_transaction_makes_a_hundred_slots_and_no_more(void **state)
{
    (void)state;
    struct hf_timing timing = { .kind = HF_TIMING_INTERVAL,
                                .every_ms = 1000,
                                .anchor_at = NOW - 99000 };
    struct hf_schedule schedule = rules("all", "allow", NOW - 99000);
    struct hf_slot_plan plan;
    hf_schedule_plan(&schedule, &timing, false, NOW, &plan);
    assert_int_equal(plan.made_count, 100);
    assert_int_equal(plan.next_at, NOW + 1000);
    timing.anchor_at = schedule.next_at = NOW - 100000;
    hf_schedule_plan(&schedule, &timing, false, NOW, &plan);
    assert_int_equal(plan.made_count, 100);
    assert_int_equal(plan.next_at, NOW); /* still due */
}

static void what_fails_is_looked_at_again_within_the_hour(void **state)
{
    (void)state;
    static const hf_ms waits[] = {
        60000, 120000, 240000, 480000, 960000, 1920000, 3600000
    };
    for (int64_t i = 0; i < 7; i++)
        assert_int_equal(hf_schedule_retry_at(i, NOW), NOW + waits[i]);
    assert_int_equal(hf_schedule_retry_at(INT64_MAX, NOW), NOW + 3600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_due_slot_is_made_or_skipped_once),
        cmocka_unit_test(one_transaction_makes_a_hundred_slots_and_no_more),
        cmocka_unit_test(what_fails_is_looked_at_again_within_the_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
