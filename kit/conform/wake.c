/* Waking a session: the lines of durable-state.md 3.7. */

#include "conform/process_kit.h"

static const char *waker(struct hf_conform *t, enum hf_disposition disposition)
{
    return registered(UNIT(.disposition = disposition, .max_attempts = 1),
                      .wake_session = "w")
        ->work.work_id;
}

test_case(d37_every_way_to_end_wakes_the_session_once)
{
    const char *ids[7];
    for (int i = 0; i < 7; i++)
        ids[i] = waker(t, i == 5   ? HF_DISPOSITION_EXTERNALLY_OWNED
                          : i == 6 ? HF_DISPOSITION_OWNER_BOUND
                                   : HF_DISPOSITION_RERUNNABLE);
    struct held h = kit_taken(t, ids[0], "alice", "b1");
    close_as(h, HF_STATUS_DONE);
    close_as(h, HF_STATUS_DONE); /* told again */
    fail_as(kit_taken(t, ids[1], "alice", "b1"), "broken");
    cancel(ids[2]);
    struct held late = kit_taken(t, ids[3], "alice", "b1");
    (void)late;
    advance(SEC(31));
    (void)sweep(); /* attempts exhausted */
    wait_for(kit_taken(t, ids[4], "alice", "b1"), HF_STATUS_WAITING_USER, "x");
    cancel(ids[4]);
    change(.verb = HF_VERB_CLOSE_OUT, .id = ids[5], .authority = "ci",
           .status = HF_STATUS_DONE);
    drain(kit_taken(t, ids[6], "alice", "b1"));
    EQ(7, kit_wakes(t, "w", HF_STATUS_QUEUED));
    for (int i = 0; i < 7; i++) { /* in order, one at a time: the session's own lane */
        const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
        TRUE(contains(wake->work.payload, "\"work_id\":"));
        SAME("wake", wake->work.kind);
        EQ(0, count_of(claim_many(.owner = "x", .queue = "session:w")));
        close_as(((struct held){ wake->work.work_id, wake->token }), HF_STATUS_DONE);
    }
    EQ(0, kit_wakes(t, "w", HF_STATUS_QUEUED));
    EQ(7, kit_wakes(t, "w", HF_STATUS_DONE));
}

test_case(d37_an_event_and_its_wake_are_one_transaction)
{
    const char *id = waker(t, HF_DISPOSITION_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
              .payload = "{\"n\":1}", .wake = true));
    TRUE(!tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
               .payload = "{\"n\":1}", .wake = true));
    EQ(1, kit_wakes(t, "w", HF_STATUS_QUEUED)); /* told once, woken once */
    const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
    TRUE(contains(wake->work.payload, "\"payload\":{\"n\":1}"));
    TRUE(contains(wake->work.payload, "\"event\":\"step\""));
    SAME(id, wake->work.parent_work_id);
    const char *before = picture();
    tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k", .wake = true);
    CODE(HF_ECONFLICT, t->code);
    UNCHANGED(before); /* neither */
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "quiet"));
    EQ(0, kit_wakes(t, "w", HF_STATUS_QUEUED));
    const char *nobody = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_APPEND, .id = nobody, .name = "step", .wake = true));
}

test_case(d37_a_session_that_is_not_there_finds_its_wakes_later)
{
    const char *id = waker(t, HF_DISPOSITION_RERUNNABLE);
    cancel(id);
    advance(HOUR(24) * 30);
    (void)sweep();
    EQ(1, kit_wakes(t, "w", HF_STATUS_QUEUED)); /* it is not given up */
    EQ(1, count_of(claim_many(.owner = "w", .queue = "session:w")));
}

test_case(d37_a_retarget_discards_what_nobody_took_and_keeps_what_was_taken)
{
    const char *id = waker(t, HF_DISPOSITION_RERUNNABLE);
    for (int i = 0; i < 3; i++)
        tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .wake = true);
    const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
    TRUE(tell(.what = HF_TELL_RETARGET, .id = id, .name = "v"));
    EQ(0, kit_wakes(t, "w", HF_STATUS_QUEUED));
    EQ(2, kit_wakes(t, "w", HF_STATUS_CANCELLED));
    const enum hf_status cancelled = HF_STATUS_CANCELLED;
    const struct hf_answer *gone = list(.queue = "session:w", .statuses = &cancelled,
                                        .status_count = 1);
    SAME("retargeted", item_of(gone, 0)->work.status_reason);
    IS("running", wake->work.work_id);
    EQ(0, kit_wakes(t, "v", HF_STATUS_QUEUED)); /* no wake is made up for the new one */
    cancel(id);
    EQ(1, kit_wakes(t, "v", HF_STATUS_QUEUED));
    EQ(0, kit_wakes(t, "w", HF_STATUS_QUEUED));
    tell(.what = HF_TELL_RETARGET, .id = id, .name = "u");
    CODE(HF_ETRANSITION, t->code); /* it has ended */
    REFOLDS(id);
}

test_case(d37_a_wake_whose_claimant_is_lost_is_taken_again_under_a_fresh_token)
{
    cancel(waker(t, HF_DISPOSITION_RERUNNABLE));
    const struct hf_item *first = claim(.owner = "a", .incarnation = "b1",
                                        .queue = "session:w", .ttl_ms = SEC(30));
    struct held old = { first->work.work_id, first->token };
    advance(SEC(30));
    const struct hf_item *second = claim(.owner = "b", .incarnation = "b1",
                                         .queue = "session:w");
    SAME(old.id, second->work.work_id);
    CODE(HF_ELEASELOST, close_as(old, HF_STATUS_DONE)->code);
    CODE(0,
         close_as(((struct held){ second->work.work_id, second->token }), HF_STATUS_DONE)
             ->code);
    EQ(0, kit_wakes(t, "w", HF_STATUS_QUEUED));
}

test_case(d37_a_process_registered_again_after_prune_wakes_anew)
{
    struct hf_prune_report report;
    for (int i = 0; i < 2; i++) {
        const struct hf_item *item = registered(
            UNIT(.disposition = HF_DISPOSITION_RERUNNABLE, .source_id = "same"),
            .wake_session = "w");
        TRUE(item->created);
        cancel(item->work.work_id);
        advance(SEC(1));
        CODE(0, hf_process_prune(t->store, &t->who, 0, &report, NULL));
        EQ(1, report.processes);
    }
    EQ(2,
       kit_wakes(t, "w", HF_STATUS_QUEUED)); /* wakes are units: they stay until taken */
}

test_case(d37_a_requeued_process_wakes_at_each_of_its_ends)
{
    const char *id = waker(t, HF_DISPOSITION_RERUNNABLE);
    cancel(id);
    requeue(id);
    cancel(id);
    EQ(2, kit_wakes(t, "w", HF_STATUS_QUEUED));
    REFOLDS(id);
}
