/* Time itself: clocks that differ, jump and sleep, and the end of 32 bits of seconds. (Gaps and
 * folds of civil time are the schedules' cases.) */

#include "conform/kit.h"

#define TERM SEC(45) /* of a lease, by default */
#define LAST_32_BIT_MS (INT64_C(2147483647) * 1000)

/* Two callers whose wall clocks are hours apart meet at one lease clock. */
test_case(time_a_skewed_caller_takes_no_lease_early_and_none_late)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    t->wall += HOUR(3);
    CODE(HF_EHELD, claim(.id = h.id, .owner = "fast")->code);
    t->wall -= HOUR(6);
    CODE(HF_EHELD, claim(.id = h.id, .owner = "slow")->code);
    advance(TERM - 1);
    CODE(HF_EHELD, claim(.id = h.id, .owner = "slow")->code);
    advance(1);
    CODE(0, claim(.id = h.id, .owner = "slow")->code);
}

/* A clock that was set back delays what is due by that much; nothing is due twice. */
test_case(time_set_back_delays_what_is_due_and_repeats_nothing)
{
    const char *id = new_id(.delay_ms = MINUTE(1),
                            .disposition = HF_DISPOSITION_RERUNNABLE);
    t->wall -= HOUR(1);
    advance(MINUTE(2));
    EQ(0, sweep().promoted);
    advance(HOUR(1));
    EQ(1, sweep().promoted);
    t->wall -= HOUR(2);
    EQ(0, sweep().promoted);
    CODE(0, claim(.id = id)->code);
    EQ(1, row(id)->attempt_count);
}

/* The machine slept for ten minutes: all clocks continued. Each lease has lapsed, each unit
 * is requeued once, and its holder is told so. */
test_case(time_a_machine_that_slept_requeues_each_unit_once)
{
    struct held held[5];
    for (int i = 0; i < 5; i++)
        held[i] = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(MINUTE(10));
    CODE(0, close_as(held[0], HF_STATUS_DONE)->code); /* no peer has acted on it yet */
    EQ(4, sweep().requeued);
    EQ(0, sweep().requeued);
    for (int i = 1; i < 5; i++) {
        EQ(1, row(held[i].id)->failures);
        CODE(HF_ELEASELOST, close_as(held[i], HF_STATUS_DONE)->code);
        IS("queued", held[i].id);
    }
}

/* Leases, delays, retries and deadlines that begin in January 2038 and end beyond. */
test_case(time_passes_the_end_of_32_bits_of_seconds)
{
    t->wall = LAST_32_BIT_MS - SEC(2);
    const char *late = new_id(.delay_ms = SEC(5),
                              .disposition = HF_DISPOSITION_RERUNNABLE);
    EQ(LAST_32_BIT_MS + SEC(3), row(late)->due_at);
    struct held fails =
        running(.disposition = HF_DISPOSITION_RERUNNABLE,
                .retry_policy = "{\"jitter\":\"none\",\"initial_backoff_ms\":4000}");
    CODE(0, fail_as(fails, "transient_network")->code);
    EQ(LAST_32_BIT_MS + SEC(2), row(fails.id)->next_retry_at);
    struct held waits = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    CODE(0, change(.verb = HF_VERB_WAIT, .id = waits.id, .token = waits.token,
                   .status = HF_STATUS_WAITING_USER, .ref = "r", .timeout_ms = SEC(3))
                ->code);
    struct held runs = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(SEC(2) + 1); /* past the last of them */
    EQ(0, sweep().promoted);
    CODE(0, renew(runs)->code);
    EQ(TERM, row(runs.id)->lease_remaining_ms);
    advance(SEC(3));
    sweep();
    IS("queued", fails.id);
    IS("timeout", waits.id);
    SAME(NULL, row(late)->gate);
    IS("running", runs.id);
    CODE(0, close_as(runs, HF_STATUS_DONE)->code);
    TRUE(row(runs.id)->finished_at > LAST_32_BIT_MS);
}
