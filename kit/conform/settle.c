/* Ending and giving back: close-out, fail, hand-back, cancel, requeue, abandon; repeats. */

#include "conform/kit.h"

test_case(r36_close_out_stores_what_was_said)
{
    struct held h = running();
    const char *const outputs[] = { "file:a", "file:b" };
    const char *const evidence[] = { "file:log" };
    advance(SEC(3));
    const struct hf_item *closed =
        change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
               .status = HF_STATUS_FAILED, .reason = "no luck",
               .error_class = "validation", .summary = "tried twice", .outputs = outputs,
               .output_count = 2, .evidence = evidence, .evidence_count = 1);
    CODE(0, closed->code);
    const struct hf_work *w = row(h.id);
    SAME("failed", w->status);
    SAME("no luck", w->status_reason);
    SAME("validation", w->error_class);
    TRUE(contains(w->result, "\"summary\":\"tried twice\""));
    TRUE(contains(w->result, "\"outputs\":[\"file:a\",\"file:b\"]"));
    TRUE(contains(w->result, "\"evidence\":[\"file:log\"]"));
    EQ(1800000003000, w->finished_at);
    const struct hf_event *event = last_change(h.id);
    SAME("close_out", event->event_type);
    SAME("running", event->from_status);
    SAME("failed", event->to_status);
    EQ(1, count_events(h.id, "lease_released"));
}

test_case(r38_a_repeated_close_out_answers_as_the_first)
{
    struct held h = running();
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    const char *before = picture();
    advance(SEC(1));
    const struct hf_item *again = close_as(h, HF_STATUS_DONE);
    CODE(0, again->code);
    TRUE(again->repeated);
    SAME("done", again->work.status);
    CODE(HF_ETRANSITION, close_as(h, HF_STATUS_FAILED)->code);
    UNCHANGED(before);
    EQ(1, count_events(h.id, "close_out"));
}

test_case(repeated_settles_answer_as_the_first)
{
    struct held back = running(.priority = 1);
    CODE(0, hand_back(back)->code);
    struct held failed = running(.priority = 1);
    CODE(0, fail_as(failed, "rate_limit")->code);
    struct held waits = running(.priority = 1);
    CODE(0, wait_for(waits, HF_STATUS_WAITING_USER, "r")->code);
    struct held bound = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    CODE(0, drain(bound)->code);
    const char *before = picture();
    TRUE(hand_back(back)->repeated);
    TRUE(fail_as(failed, "rate_limit")->repeated);
    TRUE(wait_for(waits, HF_STATUS_WAITING_USER, "r")->repeated);
    CODE(HF_ETRANSITION, wait_for(waits, HF_STATUS_WAITING_USER, "other")->code);
    TRUE(drain(bound)->repeated);
    UNCHANGED(before);
    /* It stays so after the wait is over. */
    CODE(0, resume(waits.id)->code);
    TRUE(wait_for(waits, HF_STATUS_WAITING_USER, "r")->repeated);
    CODE(HF_ETRANSITION, wait_for(waits, HF_STATUS_WAITING_USER, "other")->code);
    CODE(HF_ETRANSITION, wait_for(waits, HF_STATUS_WAITING_EXTERNAL, "r")->code);
    IS("queued", waits.id);
}

test_case(a_repeated_completion_by_an_authority_answers_as_the_first)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    struct hf_change done = { .verb = HF_VERB_CLOSE_OUT,
                              .id = id,
                              .authority = "engine",
                              .status = HF_STATUS_DONE,
                              .summary = "shipped" };
    TRUE(!kit_change(AT(t), done)->repeated);
    const char *before = picture();
    TRUE(kit_change(AT(t), done)->repeated);
    IS("done", id);
    done.summary = "lost";
    CODE(HF_ETRANSITION, kit_change(AT(t), done)->code);
    done.summary = "shipped";
    done.authority = "another";
    CODE(HF_ETRANSITION, kit_change(AT(t), done)->code);
    done.authority = "engine";
    done.status = HF_STATUS_FAILED;
    CODE(HF_ETRANSITION, kit_change(AT(t), done)->code);
    UNCHANGED(before);
}

test_case(a_completion_after_a_cancel_is_no_repeat)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    CODE(0, change(.verb = HF_VERB_CANCEL, .id = id, .reason = "r")->code);
    const char *before = picture();
    CODE(HF_ETRANSITION,
         change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "engine",
                .status = HF_STATUS_CANCELLED, .reason = "r")
             ->code);
    UNCHANGED(before);
}

test_case(a_settled_token_repeats_until_somebody_else_settles)
{
    struct held h = running();
    hand_back(h);
    TRUE(hand_back(h)->repeated);
    struct held next = { h.id, claim(.id = h.id, .owner = "bob")->token };
    const char *before = picture();
    TRUE(hand_back(h)->repeated); /* its answer was lost; the row continued */
    CODE(HF_ELEASELOST, renew(h)->code);
    UNCHANGED(before);
    CODE(0, close_as(next, HF_STATUS_DONE)->code);
    CODE(HF_ELEASELOST, hand_back(h)->code);
}

test_case(t09_fail_with_a_retry_clears_the_lease)
{
    struct held h = running(.retry_policy = "{\"jitter\":\"none\"}");
    CODE(0, fail_as(h, "transient_network")->code);
    const struct hf_work *w = row(h.id);
    SAME("retry_scheduled", w->status);
    SAME("transient_network", w->error_class);
    EQ(1800000005000, w->next_retry_at);
    SAME(NULL, w->owner);
    EQ(0, w->finished_at);
    SAME("retry_scheduled", last_change(h.id)->event_type);
    advance(SEC(5));
    h.token = claim()->token;
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    IS("done", h.id);
}

test_case(hand_back_queues_the_row_again_and_spends_nothing)
{
    struct held h = running();
    advance(SEC(1));
    const struct hf_item *back = change(.verb = HF_VERB_HAND_BACK, .id = h.id,
                                        .token = h.token, .reason = "busy");
    CODE(0, back->code);
    const struct hf_work *w = row(h.id);
    SAME("queued", w->status);
    SAME(NULL, w->gate);
    EQ(0, w->failures);
    EQ(1, w->attempt_count);
    SAME("running", last_change(h.id)->from_status);
    SAME("queued", last_change(h.id)->to_status);
    SAME(h.id, claim(.owner = "bob")->work.work_id);
}

test_case(t07_cancel_while_leased_stays_cancelled)
{
    struct held h = running();
    CODE(0, cancel(h.id)->code);
    const struct hf_work *w = row(h.id);
    SAME("cancelled", w->status);
    SAME("not wanted", w->status_reason);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    CODE(HF_ELEASELOST, renew(h)->code);
    UNCHANGED(before);
}

test_case(a06_cancel_ends_what_is_not_running_at_once)
{
    const char *queued = new_id();
    const char *gated = new_id(.delay_ms = SEC(9));
    struct held waits = running(.priority = 1);
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    struct held later = running(.priority = 1);
    fail_as(later, "rate_limit");
    CODE(0, cancel(queued)->code);
    CODE(0, cancel(gated)->code);
    CODE(0, cancel(waits.id)->code);
    CODE(0, cancel(later.id)->code);
    IS("cancelled", queued);
    IS("cancelled", gated);
    IS("cancelled", waits.id);
    IS("cancelled", later.id);
    SAME(NULL, row(gated)->gate);
    CODE(HF_EINVAL, change(.verb = HF_VERB_CANCEL, .id = new_id())->code);
    SAME("reason", t->err.field);
}

test_case(cancel_of_owner_bound_is_a_request_that_its_owner_sees)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    CODE(0, cancel(h.id)->code);
    IS("running", h.id);
    const struct hf_item *renewed = renew(h);
    CODE(0, renewed->code);
    TRUE(contains(renewed->work.cancel_request, "not wanted"));
    CODE(0, close_as(h, HF_STATUS_CANCELLED)->code);
    IS("cancelled", h.id);
}

test_case(abandon_is_only_for_started_owner_bound_rows)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    CODE(0, drain(h)->code);
    const struct hf_work *w = row(h.id);
    SAME("abandoned", w->status);
    SAME("owner_drain", w->status_reason);
    struct held other = running();
    CODE(HF_ETRANSITION, drain(other)->code);
}

test_case(a10_close_out_never_abandons)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    const char *before = picture();
    int code = close_as(h, HF_STATUS_ABANDONED)->code;
    TRUE(code == HF_EINVAL || code == HF_ETRANSITION);
    UNCHANGED(before);
}

test_case(an_abandon_request_is_carried_out_only_after_the_lapse)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    CODE(0, ask_abandon(h.id)->code);
    TRUE(contains(row(h.id)->abandon_request, "gone"));
    sweep();
    IS("running", h.id);
    advance(SEC(45) - 1);
    sweep();
    IS("running", h.id);
    advance(1);
    EQ(1, sweep().abandoned);
    const struct hf_work *w = row(h.id);
    SAME("abandoned", w->status);
    SAME("reconciled_request", w->status_reason);
    CODE(HF_ELEASELOST, renew(h)->code);
}

test_case(an_abandon_request_ends_a_waiting_owner_bound_row)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "r");
    CODE(0, ask_abandon(h.id)->code);
    sweep();
    IS("abandoned", h.id);
}

test_case(a03_requeue_keeps_the_row_and_starts_a_generation)
{
    struct held h = running(.max_attempts = 1, .payload = "7");
    const char *const outputs[] = { "o" };
    change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
           .status = HF_STATUS_FAILED, .error_class = "x", .reason = "bad",
           .outputs = outputs, .output_count = 1);
    advance(SEC(2));
    CODE(0, requeue(h.id)->code);
    const struct hf_work *w = row(h.id);
    SAME("queued", w->status);
    EQ(1, w->generation);
    EQ(0, w->failures);
    EQ(1, w->attempt_count);
    EQ(0, w->finished_at);
    SAME(NULL, w->result);
    SAME(NULL, w->error_class);
    SAME("7", w->payload);
    const struct hf_event *event = last_change(h.id);
    SAME("requeued", event->event_type);
    SAME("failed", event->from_status);
    SAME("queued", event->to_status);
    EQ(1, event->generation);
    TRUE(contains(last_event(h.id, "close_out")->payload, "\"o\""));
    SAME(h.id, claim()->work.work_id);
    EQ(2, row(h.id)->attempt_count);
}

test_case(a03_requeue_starts_the_count_of_failures_again)
{
    struct held h = running(.max_attempts = 2, .disposition = HF_DISPOSITION_RERUNNABLE,
                            .retry_policy = "{\"jitter\":\"none\"}");
    fail_as(h, "rate_limit");
    advance(SEC(5));
    h.token = claim()->token;
    fail_as(h, "rate_limit");
    IS("failed", h.id);
    EQ(2, row(h.id)->failures);
    requeue(h.id);
    h.token = claim()->token;
    fail_as(h, "rate_limit");
    IS("retry_scheduled", h.id);
    EQ(1, row(h.id)->failures);
    EQ(3, row(h.id)->attempt_count);
}

test_case(requeue_respects_a_live_dedup_key)
{
    struct held h = running(.dedup_key = "d");
    close_as(h, HF_STATUS_FAILED);
    const char *next = new_id(.dedup_key = "d");
    const char *before = picture();
    CODE(HF_ECONFLICT, requeue(h.id)->code);
    UNCHANGED(before);
    cancel(next);
    CODE(0, requeue(h.id)->code);
    IS("queued", h.id);
}

test_case(r13_terminal_rows_change_only_by_requeue)
{
    struct held h = running();
    close_as(h, HF_STATUS_DONE);
    advance(HOUR(1000));
    const char *before = picture();
    sweep();
    CODE(HF_ETRANSITION, cancel(h.id)->code);
    CODE(HF_ETRANSITION, resume(h.id)->code);
    CODE(HF_ETRANSITION, ask_abandon(h.id)->code);
    EQ(0, count_of(claim_many(.limit = 10)));
    UNCHANGED(before);
}

test_case(close_rule_evidence_asks_for_evidence)
{
    struct held h = running(.close_rule = "evidence");
    const char *before = picture();
    CODE(HF_EPOLICY, close_as(h, HF_STATUS_DONE)->code);
    UNCHANGED(before);
    CODE(HF_EINVAL, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_DONE, .evidence_count = 1,
                           .evidence = (const char *const[]){ "sha256:12" })
                        ->code);
    const char *const good[] = { "file:report" };
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_DONE, .evidence = good, .evidence_count = 1)
                ->code);
    IS("done", h.id);
    /* A failure needs no proof. */
    struct held other = running(.close_rule = "evidence");
    CODE(0, close_as(other, HF_STATUS_FAILED)->code);
}

test_case(close_rule_reviewer_asks_for_somebody_else)
{
    struct held h = running(.close_rule = "reviewer");
    CODE(HF_EPOLICY, close_as(h, HF_STATUS_DONE)->code);
    CODE(HF_EPOLICY, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                            .status = HF_STATUS_DONE, .reviewer = "alice")
                         ->code);
    IS("running", h.id);
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_DONE, .reviewer = "carol")
                ->code);
    TRUE(contains(row(h.id)->result, "carol"));
}

/* The holder could not meet the rule: the unit waits under its own id, and a person ends it. */
static void close_waiting(struct hf_conform *t, enum hf_disposition disposition)
{
    struct held h = running(.close_rule = "reviewer", .disposition = disposition);
    CODE(HF_EPOLICY, close_as(h, HF_STATUS_DONE)->code);
    wait_for(h, HF_STATUS_WAITING_USER, h.id);
    struct hf_change by_ann = { .verb = HF_VERB_CLOSE_OUT,
                                .id = h.id,
                                .authority = "ann",
                                .status = HF_STATUS_DONE };
    const char *before = picture();
    CODE(HF_EPOLICY, kit_change(AT(t), by_ann)->code);
    UNCHANGED(before);
    by_ann.reviewer = "ann";
    CODE(0, kit_change(AT(t), by_ann)->code);
    IS("done", h.id);
    SAME("{\"reviewer\":\"ann\"}", row(h.id)->result);
    SAME(NULL, row(h.id)->owner);
    before = picture();
    TRUE(kit_change(AT(t), by_ann)->repeated);
    by_ann.authority = "bob";
    CODE(HF_ETRANSITION, kit_change(AT(t), by_ann)->code);
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    UNCHANGED(before);
}

test_case(a_wait_for_the_close_rule_is_ended_by_a_person)
{
    close_waiting(t, HF_DISPOSITION_RERUNNABLE);
    close_waiting(t, HF_DISPOSITION_EXPIRE);
    close_waiting(t, HF_DISPOSITION_OWNER_BOUND);
}

test_case(another_wait_takes_no_authority)
{
    struct held rule = running(.close_rule = "evidence");
    wait_for(rule, HF_STATUS_WAITING_USER, "a-question");
    struct held plain = running();
    wait_for(plain, HF_STATUS_WAITING_USER, plain.id);
    const char *before = picture();
    const char *const ids[] = { rule.id, plain.id };
    for (size_t i = 0; i < 2; i++)
        CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = ids[i],
                                    .authority = "ann", .status = HF_STATUS_FAILED)
                                 ->code);
    UNCHANGED(before);
}

test_case(externally_owned_is_closed_by_an_authority)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "e",
                                .status = HF_STATUS_TIMEOUT)
                             ->code);
    CODE(HF_EINVAL,
         change(.verb = HF_VERB_CLOSE_OUT, .id = id, .status = HF_STATUS_DONE)->code);
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "engine",
                   .status = HF_STATUS_DONE, .summary = "ok")
                ->code);
    IS("done", id);
    TRUE(contains(last_change(id)->payload, "engine"));
}

test_case(r64_append_event_cannot_forge_a_transition)
{
    struct held h = running();
    advance(SEC(1));
    CODE(0, change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token,
                   .type = "progress", .payload = "{\"pct\":40}")
                ->code);
    const struct hf_event *event = last_event(h.id, "progress");
    SAME("{\"pct\":40}", event->payload);
    SAME(NULL, event->from_status);
    SAME(NULL, event->to_status);
    static const char *const forged[] = {
        "close_out",   "claimed",         "work_created",   "transition",
        "waiting_set", "retry_scheduled", "timeout_marked", "resumed",
        "requeued",    "lease_acquired",  "lease_released"
    };
    const char *before = picture();
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
        CODE(HF_EINVAL, change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token,
                               .type = forged[i], .payload = "1")
                            ->code);
    UNCHANGED(before);
}

/* ---- batches and operation ids --------------------------------------------------------------- */

test_case(change_answers_each_item_of_a_batch)
{
    struct held one = running();
    struct held two = running();
    const char *three = new_id();
    struct hf_change batch[] = {
        { .verb = HF_VERB_CLOSE_OUT,
          .id = one.id,
          .token = one.token,
          .status = HF_STATUS_DONE },
        { .verb = HF_VERB_RENEW, .id = two.id, .token = one.token },
        { .verb = HF_VERB_CANCEL, .id = three, .reason = "no" },
        { .verb = HF_VERB_CANCEL, .id = "no-such-row", .reason = "no" },
    };
    const struct hf_answer *answer = kit_change_many(AT(t), batch, 4, 0);
    CODE(0, t->code);
    EQ(4, count_of(answer));
    CODE(0, item_of(answer, 0)->code);
    CODE(HF_ELEASELOST, item_of(answer, 1)->code);
    CODE(0, item_of(answer, 2)->code);
    CODE(HF_ENOTFOUND, item_of(answer, 3)->code);
    SAME("done", item_of(answer, 0)->work.status);
    IS("done", one.id);
    IS("running", two.id);
    IS("cancelled", three);
}

/* Twelve at once, every third of a lane, every third under a limit: each is answered in its
 * place, and lets one other continue. */
test_case(close_outs_of_plain_rows_and_rows_of_lanes_and_limits_go_together)
{
    static const char *const lanes[] = { "L0", "L1", "L2", "L3" };
    struct held held[12];
    const char *next[12] = { NULL };
    struct hf_change batch[12];
    struct hf_limit four = { .size = sizeof four, .name = "key:acme", .max_running = 4 };
    CODE(0, hf_limit_set(t->store, &t->who, &four, NULL));
    for (int i = 0; i < 12; i++) {
        const char *lane = i % 3 == 1 ? lanes[i / 3] : NULL;
        const char *key = i % 3 == 2 ? "acme" : NULL;
        held[i] = running(.lane_key = lane, .limit_key = key);
        batch[i] = (struct hf_change){ .verb = HF_VERB_CLOSE_OUT,
                                       .id = held[i].id,
                                       .token = held[i].token,
                                       .status = HF_STATUS_DONE };
    }
    for (int i = 0; i < 12; i++) /* behind the last of each no row waits */
        if (i % 3 != 0 && i < 9)
            next[i] = new_id(.lane_key = i % 3 == 1 ? lanes[i / 3] : NULL,
                             .limit_key = i % 3 == 2 ? "acme" : NULL);
    for (int i = 0; i < 9; i++)
        if (next[i])
            SAME(i % 3 == 1 ? "lane" : "limit", row(next[i])->gate);
    for (int round = 0; round < 2; round++) { /* the second finds all settled */
        const struct hf_answer *answer = kit_change_many(AT(t), batch, 12, 0);
        CODE(0, t->code);
        for (size_t i = 0; i < 12; i++) {
            CODE(0, item_of(answer, i)->code);
            SAME(held[i].id, item_of(answer, i)->work.work_id);
            SAME("done", item_of(answer, i)->work.status);
            EQ(round == 1, item_of(answer, i)->repeated);
        }
    }
    for (int i = 0; i < 9; i++)
        if (next[i])
            SAME(NULL, row(next[i])->gate);
    EQ(6, count_of(kit_claim(AT(t), (struct hf_claim){ .owner = "w", .limit = 100 })));
    SAME(NULL, row(new_id(.lane_key = "L3"))->gate);
    SAME(NULL,
         row(new_id(.limit_key = "acme"))->gate); /* the fourth place is free again */
    SAME("limit", row(new_id(.limit_key = "acme"))->gate);
}

test_case(change_all_or_none_refuses_the_whole_batch)
{
    struct held one = running();
    struct held two = running();
    struct hf_change batch[] = {
        { .verb = HF_VERB_CLOSE_OUT,
          .id = one.id,
          .token = one.token,
          .status = HF_STATUS_DONE },
        { .verb = HF_VERB_RENEW, .id = two.id, .token = one.token },
    };
    const char *before = picture();
    kit_change_many(AT(t), batch, 2, HF_ALL_OR_NONE);
    CODE(HF_ELEASELOST, t->code);
    UNCHANGED(before);
    batch[1].token = two.token;
    kit_change_many(AT(t), batch, 2, HF_ALL_OR_NONE);
    CODE(0, t->code);
    IS("done", one.id);
}

test_case(a_batch_names_a_row_only_once)
{
    struct held h = running();
    struct hf_change batch[] = {
        { .verb = HF_VERB_TOUCH, .id = h.id, .token = h.token },
        { .verb = HF_VERB_CLOSE_OUT,
          .id = h.id,
          .token = h.token,
          .status = HF_STATUS_DONE },
    };
    const char *before = picture();
    kit_change_many(AT(t), batch, 2, 0);
    CODE(HF_EINVAL, t->code);
    UNCHANGED(before);
}

test_case(a_batch_names_a_row_only_once_by_whatever_way)
{
    struct held h = running();
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "here");
    struct hf_change by_suffix[] = {
        { .verb = HF_VERB_TOUCH, .id = h.id, .token = h.token },
        { .verb = HF_VERB_TOUCH, .id = h.id + 24, .token = h.token },
    };
    struct hf_change suffix_first[] = { by_suffix[1], by_suffix[0] };
    struct hf_change closing[] = {
        { .verb = HF_VERB_CLOSE_OUT,
          .id = h.id,
          .token = h.token,
          .status = HF_STATUS_DONE },
        { .verb = HF_VERB_CLOSE_OUT,
          .id = h.id + 24,
          .token = h.token,
          .status = HF_STATUS_DONE },
    };
    struct hf_change by_ref[] = {
        { .verb = HF_VERB_RESUME, .ref = "here" },
        { .verb = HF_VERB_CANCEL, .id = waits.id, .reason = "not wanted" },
    };
    struct hf_change *const batches[] = { by_suffix, suffix_first, closing, by_ref };
    const char *before = picture();
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        kit_change_many(AT(t), batches[i], 2, 0);
        CODE(HF_EINVAL, t->code);
        SAME("id", t->err.field);
        UNCHANGED(before);
    }
    /* One that names nothing does not count. */
    by_suffix[1].id = "0000-missing";
    const struct hf_answer *answer = kit_change_many(AT(t), by_suffix, 2, 0);
    CODE(0, t->code);
    CODE(0, item_of(answer, 0)->code);
    CODE(HF_ENOTFOUND, item_of(answer, 1)->code);
}

test_case(brief_answers_carry_code_id_and_status)
{
    struct held h = running(.payload = "{\"big\":true}");
    struct hf_change batch[] = { { .verb = HF_VERB_CLOSE_OUT,
                                   .id = h.id,
                                   .token = h.token,
                                   .status = HF_STATUS_DONE } };
    const struct hf_answer *answer = kit_change_many(AT(t), batch, 1, HF_BRIEF);
    CODE(0, item_of(answer, 0)->code);
    SAME(h.id, item_of(answer, 0)->work.work_id);
    SAME("done", item_of(answer, 0)->work.status);
    IS("done", h.id);
}

test_case(operation_id_gives_the_first_answer_again)
{
    const char *id = new_id();
    t->who.operation_id = "op-1";
    const struct hf_item *first = cancel(id);
    CODE(0, first->code);
    TRUE(!first->repeated);
    const char *before = picture();
    const struct hf_item *again = cancel(id);
    CODE(0, again->code);
    TRUE(again->repeated);
    SAME(id, again->work.work_id);
    UNCHANGED(before);
    /* Other content under the same id. */
    const struct hf_item *other = change(.verb = HF_VERB_CANCEL, .id = id,
                                         .reason = "another reason");
    CODE(HF_ECONFLICT, other->code);
    UNCHANGED(before);
    t->who.operation_id = NULL;
    CODE(HF_ETRANSITION, cancel(id)->code);
}

test_case(operation_id_of_a_unit_that_was_pruned_says_so)
{
    t->who.operation_id = "make-1";
    const struct hf_item *first = create(.source_id = "gone");
    CODE(0, first->code);
    const char *id = first->work.work_id;
    t->who.operation_id = NULL;
    CODE(0, cancel(id)->code);
    advance(1);
    EQ(1, prune(0, 0));
    const char *before = picture();
    t->who.operation_id = "make-1";
    const struct hf_item *again = create(.source_id = "gone");
    CODE(HF_ENOTFOUND, again->code);
    TRUE(again->repeated);
    UNCHANGED(before);
}

test_case(operation_id_repeats_a_requeue_once)
{
    struct held h = running();
    close_as(h, HF_STATUS_FAILED);
    t->who.operation_id = "again";
    CODE(0, requeue(h.id)->code);
    TRUE(requeue(h.id)->repeated);
    EQ(1, row(h.id)->generation);
    t->who.operation_id = "and again";
    CODE(HF_ETRANSITION, requeue(h.id)->code);
}

test_case(operation_ids_of_tenants_are_apart)
{
    const char *one = new_id();
    const char *two = new_id();
    t->who.operation_id = "op";
    CODE(0, cancel(one)->code);
    t->who.tenant = "acme";
    CODE(0, cancel(two)->code);
    IS("cancelled", two);
}

test_case(operation_id_of_a_create_gives_the_same_row)
{
    t->who.operation_id = "op";
    const struct hf_item *first = create(.source_id = "a");
    const struct hf_item *again = create(.source_id = "a");
    CODE(0, again->code);
    TRUE(again->repeated);
    SAME(first->work.work_id, again->work.work_id);
    CODE(HF_ECONFLICT, create(.source_id = "b")->code);
}
