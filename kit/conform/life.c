/* Whole lives: what each disposition, event type and source does from birth to end; and two
 * handles at the same thing. */

#include "conform/kit.h"

test_case(r02_the_ten_statuses_have_their_words)
{
    static const char *const words[] = {
        "queued", "running", "waiting_user", "waiting_external", "retry_scheduled",
        "done",   "failed",  "timeout",      "cancelled",        "abandoned"
    };
    EQ(HF_STATUS_COUNT - 1, sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        SAME(words[i], hf_status_word((enum hf_status)(i + 1)));
        EQ(i + 1, hf_status_of(words[i]));
        EQ(i >= 5, hf_status_terminal((enum hf_status)(i + 1)));
    }
    EQ(HF_STATUS_NONE, hf_status_of("sleeping"));
}

test_case(r03_an_event_has_all_its_columns)
{
    t->who = (struct hf_caller){ .size = sizeof(t->who),
                                 .actor_kind = "human",
                                 .actor = "ada",
                                 .correlation_id = "c-1" };
    struct held h = running();
    advance(SEC(2));
    change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
           .status = HF_STATUS_FAILED, .reason = "no luck");
    const struct hf_event *event = last_change(h.id);
    TRUE(event->event_id > 0);
    SAME(h.id, event->work_id);
    SAME("close_out", event->event_type);
    SAME("running", event->from_status);
    SAME("failed", event->to_status);
    EQ(0, event->generation);
    EQ(1, event->attempt);
    EQ(1, event->fence);
    SAME("human", event->actor_kind);
    SAME("ada", event->actor);
    SAME("no luck", event->message);
    TRUE(begins(event->payload, "{"));
    SAME("c-1", event->correlation_id);
    EQ(1800000002000, event->created_at);
}

test_case(a04_each_transition_has_its_event_type)
{
    struct held h = running(.retry_policy = "{\"jitter\":\"none\"}");
    SAME("claimed", last_change(h.id)->event_type);
    hand_back(h);
    SAME("transition", last_change(h.id)->event_type);
    h.token = claim(.id = h.id)->token;
    fail_as(h, "rate_limit");
    SAME("retry_scheduled", last_change(h.id)->event_type);
    advance(SEC(5));
    h.token = claim(.id = h.id)->token;
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    SAME("waiting_set", last_change(h.id)->event_type);
    resume(h.id);
    SAME("resumed", last_change(h.id)->event_type);
    h.token = claim(.id = h.id)->token;
    close_as(h, HF_STATUS_DONE);
    SAME("close_out", last_change(h.id)->event_type);
    requeue(h.id);
    SAME("requeued", last_change(h.id)->event_type);
    h.token = claim(.id = h.id)->token;
    advance(SEC(75));
    sweep();
    SAME("timeout_marked", last_change(h.id)->event_type);
    requeue(h.id);
    cancel(h.id);
    SAME("transition", last_change(h.id)->event_type);
}

test_case(a04_a_lease_is_shown_where_it_was_taken_and_let_go)
{
    struct held h = running();
    EQ(1, count_events(h.id, "lease_acquired"));
    EQ(0, count_events(h.id, "lease_released"));
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    EQ(1, count_events(h.id, "lease_released"));
    resume(h.id);
    EQ(1, count_events(h.id, "lease_acquired"));
    h.token = claim(.id = h.id)->token;
    EQ(2, count_events(h.id, "lease_acquired"));
    close_as(h, HF_STATUS_DONE);
    EQ(2, count_events(h.id, "lease_released"));
    SAME(NULL, last_event(h.id, "lease_acquired")->to_status);
    SAME(NULL, last_event(h.id, "lease_released")->from_status);
}

test_case(a07_what_never_started_is_cancelled_or_times_out_but_never_fails)
{
    const char *one = new_id();
    const char *two = new_id(.start_timeout_ms = SEC(1));
    cancel(one);
    advance(SEC(1));
    sweep();
    IS("cancelled", one);
    IS("timeout", two);
    EQ(0, row(two)->failures);
}

/* What a lapsed lease does is the row's declared disposition: the design's second table. */
test_case(a08_a_lapse_does_what_the_row_declared)
{
    struct held rerun = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    struct held bound = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    struct held expire = running(.disposition = HF_DISPOSITION_EXPIRE);
    const char *unstarted = new_id(.disposition = HF_DISPOSITION_OWNER_BOUND,
                                   .priority = 9);
    const char *external = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    advance(SEC(45));
    sweep();
    IS("queued", rerun.id);
    IS("running", bound.id);
    IS("running", expire.id);
    advance(SEC(30));
    sweep();
    IS("timeout", expire.id);
    IS("running", bound.id);
    SAME(rerun.id, claim(.owner = "bob")->work.work_id);
    SAME(unstarted, claim(.owner = "bob")->work.work_id);
    IS("waiting_external", external);
}

test_case(a21_times_are_milliseconds_of_the_given_clock)
{
    struct held h = running(.delay_ms = 0);
    advance(MS(1));
    close_as(h, HF_STATUS_DONE);
    const struct hf_work *w = row(h.id);
    EQ(1800000000000, w->created_at);
    EQ(1800000000001, w->finished_at);
    EQ(1800000000001, last_change(h.id)->created_at);
}

test_case(a22_smaller_is_more_urgent_and_three_is_the_default)
{
    EQ(3, row(new_id())->priority);
    EQ(0, row(new_id(.priority = MOST_URGENT))->priority);
    EQ(9, row(new_id(.priority = 9))->priority);
    SAME("0", say("%lld", (long long)claim()->work.priority));
}

test_case(r46_a_retry_counts_one_execution_and_lets_go)
{
    struct held h = running();
    advance(SEC(1));
    fail_as(h, "rate_limit");
    const struct hf_work *w = row(h.id);
    EQ(1, w->attempt_count);
    EQ(1, w->failures);
    TRUE(w->next_retry_at >= 1800000001000);
    SAME(NULL, w->owner);
    EQ(0, w->lease_expires_at);
}

test_case(r68_what_is_active_now_is_one_list)
{
    static const enum hf_status active[] = { HF_STATUS_RUNNING };
    create();
    struct held one = running();
    struct held two = running();
    wait_for(two, HF_STATUS_WAITING_USER, "r");
    const struct hf_answer *now = list(.statuses = active, .status_count = 1);
    EQ(1, count_of(now));
    SAME(one.id, item_of(now, 0)->work.work_id);
    SAME("alice", item_of(now, 0)->work.owner);
    EQ(45000, item_of(now, 0)->work.lease_remaining_ms);
}

static void live_once(struct hf_conform *t, enum hf_source source)
{
    struct held h = running(.source = source, .source_run_id = "run", .source_id = "it",
                            .payload = "1", .disposition = HF_DISPOSITION_RERUNNABLE,
                            .retry_policy = "{\"jitter\":\"none\"}");
    fail_as(h, "service_unavailable");
    advance(SEC(5));
    h.token = claim()->token;
    advance(SEC(45)); /* this worker is gone */
    h.token = claim(.owner = "bob")->token;
    wait_for(h, HF_STATUS_WAITING_USER, "a word");
    change(.verb = HF_VERB_RESUME, .ref = "a word", .payload = "\"yes\"");
    const struct hf_item *taken = claim(.owner = "carol");
    SAME(h.id, taken->work.work_id);
    SAME("\"yes\"", taken->work.resume_payload);
    h.token = taken->token;
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    const struct hf_work *w = row(h.id);
    SAME("done", w->status);
    SAME(hf_source_word(source), w->source_system);
    EQ(4, w->attempt_count);
    EQ(2, w->failures);
}

test_case(r69_the_whole_life_of_each_source)
{
    live_once(t, HF_SOURCE_CONVERSATION);
    live_once(t, HF_SOURCE_CONTROL);
    live_once(t, HF_SOURCE_SCHEDULER);
    live_once(t, HF_SOURCE_MANUAL);
}

/* ---- two handles ------------------------------------------------------------------------- */

test_case(t01_two_handles_never_claim_one_unit_twice)
{
    struct hf_store *second = kit_second(AT(t));
    for (int i = 0; i < 20; i++)
        create();
    size_t taken = 0;
    for (int i = 0; i < 20; i++) {
        struct hf_store *first = kit_use(t, i % 2 ? second : t->store);
        const struct hf_answer *some = claim_many(.owner = i % 2 ? "a" : "b", .limit = 2);
        taken += count_of(some);
        for (size_t k = 0; k < count_of(some); k++)
            EQ(1, item_of(some, k)->work.attempt_count);
        kit_use(t, first);
    }
    EQ(20, taken);
}

test_case(t11_dedup_holds_between_two_handles)
{
    struct hf_store *second = kit_second(AT(t));
    const char *one = new_id(.dedup_key = "d");
    struct hf_store *first = kit_use(t, second);
    const struct hf_item *again = create(.dedup_key = "d");
    TRUE(!again->created);
    SAME(one, again->work.work_id);
    const struct hf_item *same_unit = create(.source_id = "s");
    kit_use(t, first);
    TRUE(!create(.source_id = "s")->created);
    CODE(0, same_unit->code);
}

test_case(r29_two_sweepers_act_once)
{
    struct hf_store *second = kit_second(AT(t));
    struct held h = running();
    advance(SEC(75));
    EQ(1, sweep().timed_out);
    struct hf_store *first = kit_use(t, second);
    EQ(0, sweep().timed_out);
    EQ(1, count_events(h.id, "timeout_marked"));
    kit_use(t, first);
}

test_case(r30_a_renewal_and_a_sweep_have_two_outcomes_only)
{
    struct hf_store *second = kit_second(AT(t));
    struct held saved = running();
    struct held lost = running();
    advance(SEC(75));
    CODE(0, renew(saved)->code);
    struct hf_store *first = kit_use(t, second);
    sweep();
    kit_use(t, first);
    IS("running", saved.id);
    CODE(HF_ELEASELOST, renew(lost)->code);
    IS("timeout", lost.id);
}

/* Each of these looks, fails inside, and continues to succeed. The kit's own check around
 * every call says the same of all cases. */
test_case(a_call_that_succeeds_leaves_err_untouched)
{
    struct hf_err err = { 1, "mine", "not yours" };
    struct hf_lease_info info;
    struct hf_lease_claim take = { .size = sizeof(take),
                                   .leased = HF_LEASED_SESSION,
                                   .key = "never-leased",
                                   .owner = "alice" };
    kit_session(t, take.key);
    CODE(0, hf_lease_take(t->store, &take, &info, &err));
    EQ(1, err.code);

    const char *due = new_id(.delay_ms = SEC(5));
    struct hf_answer *answer = NULL;
    struct hf_claim by_id = { .size = sizeof(by_id), .owner = "alice", .id = due };
    advance(SEC(6));
    CODE(0, hf_work_claim(t->store, &t->who, &by_id, &answer, &err));
    EQ(1, count_of(answer));
    EQ(1, err.code);
    hf_answer_free(answer);

    CODE(0, create(.source_id = "once")->code);
    struct hf_work_spec again = { .size = sizeof(again),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = "once",
                                  .priority = -1 };
    CODE(0, hf_work_create(t->store, &t->who, &again, 1, HF_ALL_OR_NONE, &answer, &err));
    EQ(1, err.code);
    SAME("mine", err.field);
    SAME("not yours", err.message);
    hf_answer_free(answer);
}

/* One call for each struct that a caller fills; its other inputs are right. */
static int sized_call(struct hf_conform *t, int which, int64_t more)
{
    struct hf_caller who = { .size = sizeof(who) };
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = "sized",
                                    .priority = -1 };
    struct hf_claim claim = { .size = sizeof(claim), .owner = "alice" };
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CANCEL,
                                .status = HF_STATUS_DONE,
                                .id = "0000-missing",
                                .reason = "why" };
    struct hf_renew_all renew = { .size = sizeof(renew), .owner = "alice" };
    struct hf_filter filter = { .size = sizeof(filter) };
    struct hf_policy policy = { .size = sizeof(policy), .grace_ms = -1 };
    struct hf_lease_claim lease = { .size = sizeof(lease), .key = "k", .owner = "alice" };
    struct hf_lease_info info;
    (void)kit_session(t, "k");
    struct hf_answer *answer = NULL;
    uint32_t *const sizes[] = { &who.size,   &request.size, &claim.size,  &change.size,
                                &renew.size, &filter.size,  &policy.size, &lease.size };
    uint32_t *size = sizes[which];
    *size = more == INT64_MIN ? 0 : (uint32_t)((int64_t)*size + more);
    struct hf_err *err = kit_err(t);
    int rc = 0;
    switch (which) {
    case 0: rc = hf_work_get(t->store, &who, "0000-missing", &answer, err); break;
    case 1: rc = hf_work_create(t->store, &who, &request, 1, 0, &answer, err); break;
    case 2: rc = hf_work_claim(t->store, &who, &claim, &answer, err); break;
    case 3: rc = hf_work_change(t->store, &who, &change, 1, 0, &answer, err); break;
    case 4: rc = hf_work_renew_all(t->store, &who, &renew, &answer, err); break;
    case 5: rc = hf_work_list(t->store, &who, &filter, &answer, err); break;
    case 6: rc = hf_policy_set(t->store, &who, "default", &policy, err); break;
    default: rc = hf_lease_take(t->store, &lease, &info, err); break;
    }
    if (rc == 0 && answer)
        hf_answer_free(answer);
    return rc;
}

test_case(structs_that_a_caller_fills_tell_their_size)
{
    static const int64_t wrong[] = { INT64_MIN, -1, 1, 64, -8 };
    const char *before = picture();
    for (int which = 0; which < 8; which++) {
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            CODE(HF_EINVAL, sized_call(t, which, wrong[i]));
            SAME("size", t->err.field);
        }
        UNCHANGED(before);
    }
    for (int which = 0; which < 8; which++)
        CODE(which == 0 ? HF_ENOTFOUND : 0, sized_call(t, which, 0));
    struct hf_change to = { .size = 0, .id = "0000-missing", .status = HF_STATUS_DONE };
    struct hf_answer *answer = NULL;
    CODE(HF_EINVAL, hf_work_transition(t->store, NULL, &to, &answer, kit_err(t)));
    SAME("size", t->err.field);
}
