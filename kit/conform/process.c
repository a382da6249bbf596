/* Processes: the lines of durable-state.md 3.6. */

#include "conform/process_kit.h"

/* ---- registering ------------------------------------------------------------------- */

test_case(d36_a_disposition_must_be_declared)
{
    static const enum hf_disposition not_declared[] = { HF_DISPOSITION_NONE,
                                                        HF_DISPOSITION_EXPIRE };
    for (size_t i = 0; i < 2; i++) {
        registered(UNIT(.disposition = not_declared[i]), .identity_kind = "shell");
        CODE(HF_EINVAL, t->code);
        SAME("disposition", t->err.field);
    }
    EQ(0, how_many(processes(.all = true)));
}

test_case(d36_registration_and_observers_are_one_and_idempotent)
{
    static const char *const two[] = { "s2", "s1", "s2" }, *const one[] = { "s1" };
    const struct hf_item *first = registered(
        UNIT(.disposition = HF_DISPOSITION_RERUNNABLE, .source_id = "a"),
        .observers = two, .observer_count = 3, .wake_session = "w",
        .labels = "{ \"b\": \"2\", \"a\": \"1\" }");
    CODE(0, t->code);
    TRUE(first->created);
    const struct hf_process *p = process(first->work.work_id);
    SAME("[\"s1\",\"s2\"]", p->observers);
    SAME("{\"a\":\"1\",\"b\":\"2\"}", p->labels);
    SAME("w", p->wake_session);
    SAME("host", p->originator);
    EQ(0, how_many(processes(.observer = "w"))); /* to be woken is not to see */
    EQ(1, how_many(processes(.observer = "s2")));
    const struct hf_item *again = registered(
        UNIT(.disposition = HF_DISPOSITION_RERUNNABLE, .source_id = "a"),
        .observers = two, .observer_count = 2, .wake_session = "w",
        .labels = "{\"a\":\"1\",\"b\":\"2\"}");
    TRUE(!again->created);
    SAME(first->work.work_id, again->work.work_id);
    const char *before = picture();
    registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE, .source_id = "a"),
               .observers = one, .observer_count = 1, .wake_session = "w",
               .labels = "{\"a\":\"1\",\"b\":\"2\"}");
    CODE(HF_ECONFLICT, t->code);
    UNCHANGED(before);
    SAME("[\"s1\",\"s2\"]", process(first->work.work_id)->observers);
    registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE), .labels = "{\"a\":1}");
    CODE(HF_EINVAL, t->code);
    SAME("labels", t->err.field);
    UNCHANGED(before);
}

/* ---- the log ----------------------------------------------------------------------- */

test_case(d36_an_event_is_told_once_by_its_key)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
              .payload = "{\"a\":-0.0,\"b\":[1]}"));
    TRUE(!tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
               .payload = "{ \"b\":[1.0], \"a\":0 }"));
    CODE(0, t->code);
    EQ(1, count_events(id, "step"));
    tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k", .payload = "{}");
    CODE(HF_ECONFLICT, t->code);
    SAME("key", t->err.field);
    EQ(1, count_events(id, "step"));
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "step")); /* no key: each time */
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "step"));
    EQ(3, count_events(id, "step"));
    struct held h = kit_taken(t, id, "alice", "b1");
    close_as(h, HF_STATUS_DONE);
    TRUE(!tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
               .payload = "{\"a\":0,\"b\":[1]}"));
    CODE(0, t->code); /* a repeat is answered after the end too */
    tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "new");
    CODE(HF_ETRANSITION, t->code);
    REFOLDS(id);
}

test_case(d36_types_of_the_ledger_are_refused_and_declared_ones_kept)
{
    static const char *const reserved[] = { "claimed",        "close_out",
                                            "observer_added", "signal.go",
                                            "process_exited", "abandon_requested",
                                            "hf.x",           "external_ref_set",
                                            "signal_taken" };
    static const char *const declared[] = { "step", "note" };
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    const char *before = picture();
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        tell(.what = HF_TELL_APPEND, .id = id, .name = reserved[i]);
        CODE(HF_EINVAL, t->code);
    }
    UNCHANGED(before);
    id = registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE),
                    .event_types = declared, .event_type_count = 2)
             ->work.work_id;
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "note"));
    tell(.what = HF_TELL_APPEND, .id = id, .name = "not");
    CODE(HF_EINVAL, t->code);
    SAME("type", t->err.field);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go")); /* not its own */
}

test_case(d36_long_cancel_reasons_are_kept_whole)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    struct held h = kit_taken(t, id, "alice", "b1");
    const char *reason = kit_filled(t, 'x', 1000);
    change(.verb = HF_VERB_CANCEL, .id = id, .reason = reason);
    CODE(0, t->code);
    TRUE(contains(row(id)->cancel_request, reason));
    IS("running", id); /* it is asked */
    change(.verb = HF_VERB_CANCEL, .id = id, .reason = "other");
    TRUE(contains(row(id)->cancel_request, reason));
    REFOLDS(id);
    change(.verb = HF_VERB_CANCEL, .id = id, .token = h.token, .reason = "as asked");
    IS("cancelled", id);
    REFOLDS(id);
}

test_case(d36_an_external_reference_is_written_once)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    TRUE(tell(.what = HF_TELL_EXTERNAL_REF, .id = id, .name = "job/7"));
    TRUE(!tell(.what = HF_TELL_EXTERNAL_REF, .id = id, .name = "job/7"));
    CODE(0, t->code);
    tell(.what = HF_TELL_EXTERNAL_REF, .id = id, .name = "job/8");
    CODE(HF_ECONFLICT, t->code);
    SAME("job/7", process(id)->external_ref);
    EQ(1, count_events(id, "external_ref_set"));
    REFOLDS(id);
}

test_case(d36_observers_come_and_go_with_an_event_each)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_OBSERVE, .id = id, .name = "s2"));
    TRUE(tell(.what = HF_TELL_OBSERVE, .id = id, .name = "s1"));
    TRUE(!tell(.what = HF_TELL_OBSERVE, .id = id, .name = "s1"));
    SAME("[\"s1\",\"s2\"]", process(id)->observers);
    REFOLDS(id);
    TRUE(tell(.what = HF_TELL_UNOBSERVE, .id = id, .name = "s2"));
    TRUE(!tell(.what = HF_TELL_UNOBSERVE, .id = id, .name = "s2"));
    SAME("[\"s1\"]", process(id)->observers);
    EQ(2, count_events(id, "observer_added"));
    EQ(1, count_events(id, "observer_removed"));
    EQ(0, how_many(processes(.observer = "s2")));
    REFOLDS(id);
}

/* One step of a random life; refusals are steps too. Changes carry the last token, where
 * they may. */
static const struct hf_change random_changes[] = {
    { .verb = HF_VERB_WAIT, .status = HF_STATUS_WAITING_USER, .ref = "x", .token = "" },
    { .verb = HF_VERB_WAIT,
      .status = HF_STATUS_WAITING_EXTERNAL,
      .ref = "x",
      .token = "" },
    { .verb = HF_VERB_WAIT,
      .status = HF_STATUS_WAITING_EXTERNAL,
      .ref = "signal.go",
      .token = "" },
    { .verb = HF_VERB_RESUME, .payload = "[1]" },
    { .verb = HF_VERB_RESUME, .owner = "alice", .incarnation = "b1" },
    { .verb = HF_VERB_HAND_BACK, .token = "" },
    { .verb = HF_VERB_FAIL, .error_class = "broken", .token = "" },
    { .verb = HF_VERB_CANCEL, .reason = "not wanted" },
    { .verb = HF_VERB_REQUEST_ABANDON, .reason = "gone" },
    { .verb = HF_VERB_REQUEUE, .reason = "once more" },
    { .verb = HF_VERB_ABANDON, .token = "" },
    { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE, .token = "" },
    { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE, .authority = "ci" },
    { .verb = HF_VERB_CLOSE_OUT,
      .status = HF_STATUS_FAILED,
      .error_class = "c",
      .token = "" },
};
static const struct hf_process_tell random_tells[] = {
    { .what = HF_TELL_OBSERVE, .name = "a" },
    { .what = HF_TELL_OBSERVE, .name = "c" },
    { .what = HF_TELL_UNOBSERVE, .name = "a" },
    { .what = HF_TELL_UNOBSERVE, .name = "b" },
    { .what = HF_TELL_RETARGET, .name = "v" },
    { .what = HF_TELL_RETARGET },
    { .what = HF_TELL_EXTERNAL_REF, .name = "e" },
    { .what = HF_TELL_EXTERNAL_REF, .name = "f" },
    { .what = HF_TELL_SIGNAL, .name = "go" },
    { .what = HF_TELL_APPEND, .name = "step", .payload = "{\"n\":1}", .wake = true },
    { .what = HF_TELL_APPEND, .name = "step", .key = "k", .payload = "[]" },
};
#define CHANGES (sizeof(random_changes) / sizeof(random_changes[0]))
#define TELLS (sizeof(random_tells) / sizeof(random_tells[0]))

static void random_step(struct hf_conform *t, const char *id, struct held *h,
                        uint64_t dice)
{
    const struct hf_item *item = NULL;
    uint64_t which = dice % (CHANGES + TELLS + 6);
    if (which < CHANGES) {
        struct hf_change change = random_changes[which];
        change.id = id;
        if (change.token)
            change.token = h->token;
        item = kit_change(t, change);
    } else if (which < CHANGES + TELLS) {
        struct hf_process_tell one = random_tells[which - CHANGES];
        one.id = id;
        (void)kit_tell(t, one);
    } else if (dice & 1 << 20) {
        item = claim(.owner = dice & 1 << 21 ? "alice" : "bob", .incarnation = "b1",
                     .id = id, .ttl_ms = SEC(3));
    } else {
        advance(SEC(2));
        (void)sweep();
    }
    if (item && item->token)
        *h = (struct held){ id, item->token };
}

test_case(d36_every_record_is_the_fold_of_its_log_after_every_step)
{
    static const enum hf_disposition all[] = { HF_DISPOSITION_RERUNNABLE,
                                               HF_DISPOSITION_OWNER_BOUND,
                                               HF_DISPOSITION_EXTERNALLY_OWNED };
    static const char *const observers[] = { "b" };
    uint64_t state = 88172645463325252u;
    for (int life = 0; life < 9; life++) {
        struct held h = { 0 };
        const char *id =
            registered(UNIT(.disposition = all[life % 3], .max_attempts = 4, .ref = "r"),
                       .observers = observers, .observer_count = 1, .wake_session = "w",
                       .definition = "{\"z\":1,\"a\":[]}")
                ->work.work_id;
        for (int i = 0; i < 40 && !t->failed; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            random_step(t, id, &h, state >> 20);
            REFOLDS(id);
        }
    }
}

/* ---- leases ------------------------------------------------------------------------ */

test_case(d36_a_process_lease_is_busy_reentered_renewed_and_fenced)
{
    claim(.owner = "alice", .id = "00000000-0000-7000-8000-000000000000");
    CODE(HF_ENOTFOUND, t->code); /* and no lease was made of it */
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    struct held first = kit_taken(t, id, "alice", "b1");
    claim(.owner = "bob", .incarnation = "b1", .id = id);
    CODE(HF_EHELD, t->code);
    claim(.owner = "alice", .incarnation = "b2", .id = id);
    CODE(HF_EHELD, t->code); /* another boot is another owner */
    EQ(1, row(id)->lease_fence);
    struct held again = kit_taken(t, id, "alice", "b1");
    EQ(1, row(id)->lease_fence);
    CODE(HF_ELEASELOST, renew(first)->code);
    CODE(0, renew(again)->code);
    advance(SEC(31));
    (void)sweep();
    struct held bob = kit_taken(t, id, "bob", "b1");
    EQ(2, row(id)->lease_fence);
    REFOLDS(id);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(again, HF_STATUS_DONE)->code); /* a revenant */
    CODE(HF_ELEASELOST, hand_back(again)->code);
    UNCHANGED(before);
    SAME("bob", row(id)->owner);
    CODE(0, close_as(bob, HF_STATUS_DONE)->code);
    CODE(0, close_as(bob, HF_STATUS_DONE)->code); /* told again, applied once */
    EQ(1, count_events(id, "close_out"));
    REFOLDS(id);
}

test_case(d36_completion_needs_the_authority_of_its_disposition)
{
    static const enum hf_disposition inside[] = { HF_DISPOSITION_RERUNNABLE,
                                                  HF_DISPOSITION_OWNER_BOUND };
    for (size_t i = 0; i < 2; i++) {
        const char *id = kit_process_of(t, inside[i]);
        CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id,
                                    .authority = "ci", .status = HF_STATUS_DONE)
                                 ->code);
        struct held h = kit_taken(t, id, "alice", "b1");
        CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id,
                                    .authority = "ci", .status = HF_STATUS_DONE)
                                 ->code);
        CODE(HF_EINVAL,
             change(.verb = HF_VERB_CLOSE_OUT, .id = id, .status = HF_STATUS_DONE)->code);
        CODE(0, close_as(h, HF_STATUS_DONE)->code);
    }
    const char *id = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    CODE(HF_EINVAL,
         change(.verb = HF_VERB_CLOSE_OUT, .id = id, .status = HF_STATUS_DONE)->code);
    claim(.owner = "alice", .id = id);
    CODE(HF_ETRANSITION, t->code); /* never claimed */
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci",
                   .status = HF_STATUS_FAILED, .error_class = "broken")
                ->code);
    TRUE(contains(last_change(id)->payload, "\"authority\":\"ci\""));
    CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci",
                                .status = HF_STATUS_DONE)
                             ->code);
    IS("failed", id);
    REFOLDS(id);
}

test_case(d36_the_first_start_is_recorded_once_and_an_owner_bound_one_never_repeated)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    EQ(0, row(id)->first_started_at);
    struct held h = kit_taken(t, id, "alice", "b1");
    hf_ms first = row(id)->first_started_at;
    TRUE(first != 0);
    advance(SEC(1));
    (void)kit_taken(t, id, "alice", "b1"); /* again, as the same */
    EQ(first, row(id)->first_started_at);
    EQ(1, row(id)->attempt_count);
    advance(SEC(60));
    (void)sweep();
    claim(.owner = "bob", .incarnation = "b1", .id = id);
    CODE(HF_EHELD, t->code);
    CODE(HF_ELEASELOST, hand_back(h)->code);
    EQ(1, row(id)->attempt_count);
    REFOLDS(id);
}

test_case(d36_the_budget_of_attempts_ends_a_rerunnable_process)
{
    const char *id = registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE,
                                     .max_attempts = 2),
                                .identity_kind = "shell")
                         ->work.work_id;
    for (int i = 1; i <= 2; i++) {
        (void)kit_taken(t, id, "alice", "b1");
        EQ(i, row(id)->attempt_count);
        advance(SEC(31));
        (void)sweep();
    }
    IS("failed", id);
    SAME("attempts_exhausted", row(id)->status_reason);
    REFOLDS(id);
}

/* ---- lists ------------------------------------------------------------------------- */

test_case(d36_waiting_processes_stay_listed_and_pages_are_exact)
{
    const char *ids[7];
    for (int i = 0; i < 7; i++)
        ids[i] = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    struct held h = kit_taken(t, ids[4], "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_USER, "x");
    EQ(7, how_many(processes(.identity_kind = "shell")));
    EQ(1, how_many(processes(.waiting = true)));
    const struct hf_processes *page = processes(.limit = 3);
    EQ(3, how_many(page));
    SAME(ids[2], how_many(page) == 3 ? hf_processes_at(page, 2)->work.work_id : NULL);
    cancel(ids[3]); /* what ends or begins between two pages moves nothing */
    (void)kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    page = processes(.limit = 3, .after = page ? hf_processes_next(page) : NULL);
    EQ(3, how_many(page));
    SAME(ids[4], how_many(page) == 3 ? hf_processes_at(page, 0)->work.work_id : NULL);
    page = processes(.limit = 3, .after = page ? hf_processes_next(page) : NULL);
    EQ(1, how_many(page));
    TRUE(page && !hf_processes_next(page));
    processes(.after = "x");
    CODE(HF_EINVAL, t->code);
}

test_case(d36_filters_go_together_and_time_is_half_open)
{
    const char *a = registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE),
                               .identity_kind = "shell", .identity_label = "one",
                               .originator = "s1", .definition = "{\"a\":1,\"b\":2}",
                               .labels = "{\"k\":\"v\"}", .env_ref = "env:1",
                               .cause_occurrence = "occ", .cause_subscription = "sub")
                        ->work.work_id;
    hf_ms from = row(a)->created_at;
    advance(SEC(1));
    (void)kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    hf_ms before = from + SEC(1);
    EQ(1, how_many(processes(.identity_label = "one")));
    EQ(1, how_many(processes(.originator = "s1", .identity_kind = "shell")));
    EQ(0, how_many(processes(.originator = "s1", .identity_kind = "other")));
    EQ(1, how_many(processes(.originator = "host")));
    EQ(1, how_many(processes(.definition = "{ \"b\": 2, \"a\": 1.0 }")));
    EQ(1, how_many(processes(.label = "k=v")));
    EQ(0, how_many(processes(.label = "k=w")));
    EQ(1, how_many(processes(.cause_occurrence = "occ", .cause_subscription = "sub")));
    EQ(2, how_many(processes(.created_from = from)));
    EQ(1, how_many(processes(.created_from = from, .created_before = before)));
    EQ(1, how_many(processes(.created_from = before)));
    cancel(a);
    EQ(0, how_many(processes(.identity_label = "one")));
    EQ(1, how_many(processes(.identity_label = "one", .all = true)));
    EQ(1, how_many(processes(.status = HF_STATUS_CANCELLED)));
    processes(.label = "k");
    CODE(HF_EINVAL, t->code);
}

test_case(d36_live_references_are_counted_by_a_list)
{
    const char *id = registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE),
                                .env_ref = "env:1", .definition = "{\"m\":1}")
                         ->work.work_id;
    registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE), .env_ref = "env:1");
    EQ(2, how_many(processes(.env_ref = "env:1")));
    EQ(1, how_many(processes(.definition = "{\"m\":1}")));
    cancel(id);
    EQ(1, how_many(processes(.env_ref = "env:1"))); /* what ended keeps nothing alive */
    EQ(0, how_many(processes(.definition = "{\"m\":1}")));
}

test_case(d36_the_feed_has_every_fact_in_order_and_says_what_was_pruned)
{
    static const char *const expected[] = { "work_created",     "process_registered",
                                            "observer_added",   "signal.go",
                                            "external_ref_set", "close_out" };
    struct hf_feed_query query = { .size = sizeof(query) };
    struct hf_feed *feed = NULL;
    const char *id = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    tell(.what = HF_TELL_OBSERVE, .id = id, .name = "s");
    tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go");
    tell(.what = HF_TELL_EXTERNAL_REF, .id = id, .name = "r");
    change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci",
           .status = HF_STATUS_DONE);
    CODE(0, hf_work_feed(t->store, &t->who, &query, &feed, NULL));
    EQ(6, feed ? hf_feed_count(feed) : 0);
    for (size_t i = 0; feed && !t->failed && i < 6; i++)
        SAME(expected[i], hf_feed_at(feed, i)->event.event_type);
    query.after = feed ? hf_feed_at(feed, 1)->cursor
                       : NULL; /* a reader that came so far */
    advance(SEC(10));
    (void)prune(SEC(5), 0);
    struct hf_feed *rest = NULL;
    CODE(0, hf_work_feed(t->store, &t->who, &query, &rest, NULL));
    TRUE(rest && hf_feed_notices(rest) == HF_FEED_GAP);
    EQ(0, rest ? hf_feed_count(rest) : 1);
    hf_feed_free(rest);
    hf_feed_free(feed);
}

/* ---- what ends ---------------------------------------------------------------------- */

test_case(d36_prune_takes_what_ended_before_the_cutoff_and_leaves_its_end)
{
    static const char *const observers[] = { "s" };
    struct hf_prune_report report = { 0 };
    const char *old = registered(UNIT(.disposition = HF_DISPOSITION_RERUNNABLE),
                                 .observers = observers, .observer_count = 1)
                          ->work.work_id;
    const char *open = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    const char *job = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    cancel(old);
    cancel(job);
    advance(SEC(10));
    const char *young = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    cancel(young);
    t->code = kit_called(
        t, hf_process_prune(t->store, &t->who, SEC(10), &report, kit_err(t)));
    EQ(0, report.processes); /* ended at the cutoff: not before it */
    t->code = kit_called(
        t, hf_process_prune(t->store, &t->who, SEC(9), &report, kit_err(t)));
    EQ(1, report.processes);
    EQ(1, report.grants);
    EQ(2, report.events);
    process(old);
    CODE(HF_ENOTFOUND, t->code);
    SAME("retained", t->err.field);
    TRUE(contains(t->err.message, "cancelled"));
    process("00000000-0000-7000-8000-000000000000");
    CODE(HF_ENOTFOUND, t->code);
    SAME("id", t->err.field);
    IS("waiting_external", open);
    IS("cancelled", young);
    IS("cancelled", job); /* no process */
    CODE(HF_EINVAL, hf_process_prune(t->store, &t->who, -1, &report, NULL));
}

test_case(d36_an_abandon_request_is_the_first_writers_and_none_after_the_end)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    CODE(HF_ETRANSITION, ask_abandon(id)->code); /* never started: free to be run */
    struct held h = kit_taken(t, id, "alice", "b1");
    t->who.actor_kind = "human";
    t->who.actor = "ann";
    CODE(0, change(.verb = HF_VERB_REQUEST_ABANDON, .id = id, .reason = "lost")->code);
    t->who.actor = "ben";
    CODE(0, change(.verb = HF_VERB_REQUEST_ABANDON, .id = id, .reason = "me too")->code);
    TRUE(contains(process(id)->work.abandon_request, "\"by\":\"human:ann\""));
    TRUE(contains(process(id)->work.abandon_request, "\"reason\":\"lost\""));
    EQ(1, count_events(id, "abandon_requested"));
    (void)sweep();
    IS("running", id); /* it ends no lease */
    CODE(0, renew(h)->code);
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    CODE(HF_ETRANSITION, ask_abandon(id)->code);
    REFOLDS(id);
}

/* The verdicts, by disposition; those that need a proof of death are in tests/proc. */

test_case(d36_sweep_rerunnable_is_claimed_again)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    (void)kit_taken(t, id, "alice", "b1");
    advance(SEC(30));
    (void)sweep();
    IS("queued", id);
    (void)kit_taken(t, id, "bob", "b1");
    EQ(2, row(id)->attempt_count);
    REFOLDS(id);
}

test_case(d36_sweep_owner_bound_never_started_is_anybodys)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    advance(HOUR(48));
    (void)sweep();
    IS("queued", id);
    (void)kit_taken(t, id, "bob", "b1");
    IS("running", id);
}

test_case(d36_sweep_owner_bound_and_silent_is_left)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    struct held h = kit_taken(t, id, "alice", "b1");
    advance(HOUR(48));
    EQ(1, sweep().silent);
    IS("running", id);
    TRUE(process(id)->work.lease_remaining_ms < 0);
    SAME("alice", process(id)->work.owner);
    CODE(0, close_as(h, HF_STATUS_DONE)->code); /* it was only slow */
}

test_case(d36_sweep_reconciles_a_request_once_the_lease_has_lapsed)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    struct held h = kit_taken(t, id, "alice", "b1");
    ask_abandon(id);
    advance(SEC(30) - 1);
    (void)sweep();
    IS("running", id);
    advance(1);
    (void)sweep();
    IS("abandoned", id);
    SAME("reconciled_request", row(id)->status_reason);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code); /* a revenant */
    UNCHANGED(before);
    REFOLDS(id);
}

test_case(d36_sweep_externally_owned_is_never_claimed_and_ends_by_request)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    advance(HOUR(48));
    (void)sweep();
    IS("waiting_external", id);
    EQ(0, count_of(claim_many(.owner = "bob", .limit = 10)));
    ask_abandon(id);
    (void)sweep();
    IS("abandoned", id);
    SAME("reconciled_request", row(id)->status_reason);
    REFOLDS(id);
}

test_case(d36_a_drain_ends_only_its_own)
{
    struct hf_drain_report report = { 0 };
    const char *own = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND),
               *waits = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    const char *other_boot = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    const char *rerun = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    const char *never = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    const char *outside = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    struct held h = kit_taken(t, own, "alice", "b1");
    wait_for(kit_taken(t, waits, "alice", "b1"), HF_STATUS_WAITING_USER, "x");
    (void)kit_taken(t, other_boot, "alice", "b2");
    (void)kit_taken(t, rerun, "alice", "b1");
    const struct hf_drain alice = { .size = sizeof(alice),
                                    .owner = "alice",
                                    .incarnation = "b1" };
    t->code = kit_called(
        t, hf_process_drain(t->store, &t->who, &alice, &report, kit_err(t)));
    EQ(2, report.ended);
    EQ(0, report.deferred);
    IS("abandoned", own);
    SAME("owner_drain", row(own)->status_reason);
    IS("abandoned", waits);
    IS("running", other_boot);
    IS("running", rerun);
    IS("queued", never);
    IS("waiting_external", outside);
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code);
    REFOLDS(own);
    REFOLDS(waits);
}

static void note_deferred(void *user, const char *work_id, const struct hf_err *why)
{
    struct hf_conform *t = user;
    SAME("HF_EHELD", why->code == HF_EHELD ? "HF_EHELD" : why->message);
    IS("waiting_user", work_id);
}

test_case(d36_a_drain_says_what_it_could_not_end_and_why)
{
    struct hf_drain_report report = { 0 };
    const struct hf_drain alice = { .size = sizeof(alice),
                                    .owner = "alice",
                                    .incarnation = "b1",
                                    .deferred = note_deferred,
                                    .user = t };
    const char *id = registered(
                         UNIT(.disposition = HF_DISPOSITION_OWNER_BOUND, .lane_key = "l"),
                         .identity_kind = "shell")
                         ->work.work_id;
    wait_for(kit_taken(t, id, "alice", "b1"), HF_STATUS_WAITING_USER, "x");
    struct held other = running(.lane_key = "l"); /* has the lane meanwhile */
    const char *own = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    (void)kit_taken(t, own, "alice", "b1");
    CODE(0, hf_process_drain(t->store, &t->who, &alice, &report, NULL));
    EQ(1, report.ended); /* one that cannot keeps no other from its end */
    EQ(1, report.deferred);
    close_as(other, HF_STATUS_DONE);
    CODE(0, hf_process_drain(t->store, &t->who, &alice, &report, NULL));
    EQ(1, report.ended);
    EQ(0, report.deferred);
    IS("abandoned", id);
}

test_case(d36_await_gives_the_end_and_says_when_there_is_none_yet)
{
    struct hf_answer *answer = NULL;
    const char *id = kit_process_of(t, HF_DISPOSITION_EXTERNALLY_OWNED);
    t->code = kit_called(
        t, hf_process_await(t->store, &t->who, id, MS(10), &answer, kit_err(t)));
    CODE(HF_EBUSY, t->code);
    change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci",
           .status = HF_STATUS_DONE, .summary = "fine");
    t->code = kit_called(
        t, hf_process_await(t->store, &t->who, id, HOUR(1), &answer, kit_err(t)));
    CODE(0, t->code);
    if (t->code == 0)
        SAME("{\"summary\":\"fine\"}", hf_answer_at(answer, 0)->work.result);
    hf_answer_free(answer);
    advance(SEC(1));
    struct hf_prune_report report;
    CODE(0, hf_process_prune(t->store, &t->who, 0, &report, NULL));
    answer = NULL;
    t->code = kit_called(
        t, hf_process_await(t->store, &t->who, id, HOUR(1), &answer, kit_err(t)));
    CODE(HF_ENOTFOUND, t->code);
    SAME("retained", t->err.field);
}

/* ---- signals ------------------------------------------------------------------------ */

test_case(d36_a_signal_resumes_who_waits_for_it_in_its_transaction)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    struct held h = kit_taken(t, id, "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "stop"));
    IS("waiting_external", id);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    IS("queued", id);
    SAME("2", row(id)->resume_payload);
    const char *bound = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    wait_for(kit_taken(t, bound, "alice", "b1"), HF_STATUS_WAITING_EXTERNAL, "signal.go");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = bound, .name = "go"));
    IS("waiting_external", bound); /* its owner continues with it */
    EQ(1, count_events(bound, "signal.go"));
    REFOLDS(id);
    REFOLDS(bound);
}

test_case(a_signal_that_comes_before_the_wait_ends_it)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    struct held h = kit_taken(t, id, "alice", "b1");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "stop"));
    IS("running", id);
    /* Each signal ends one wait, the first sent first, and each wait is in the trail. */
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    IS("queued", id);
    SAME("1", row(id)->resume_payload);
    SAME("signal.go", row(id)->status_reason);
    EQ(1, count_events(id, "waiting_set"));
    EQ(1, count_events(id, "resumed"));
    h = kit_taken(t, id, "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    SAME("2", row(id)->resume_payload);
    h = kit_taken(t, id, "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    IS("waiting_external", id);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "3"));
    SAME("3", row(id)->resume_payload);
    h = kit_taken(t, id, "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.stop");
    IS("queued", id);
    REFOLDS(id);
}

test_case(a_signal_that_comes_before_the_wait_of_a_bound_process_ends_it)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    struct held h = kit_taken(t, id, "alice", "b1");
    const struct hf_item *item = wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    CODE(0, item->code);
    TRUE(!item->repeated);
    SAME("running", item->work.status);
    SAME("1", item->work.resume_payload);
    SAME("1", row(id)->resume_payload);
    SAME("alice", row(id)->owner);
    EQ(1, row(id)->lease_fence);
    EQ(1, row(id)->attempt_count);
    EQ(0, count_events(id, "waiting_set"));
    EQ(0, count_events(id, "resumed"));
    EQ(1, count_events(id, "signal_taken"));
    REFOLDS(id);
    /* The token is still the holder's: what follows is no second settling of the row. */
    CODE(0, renew(h)->code);
    CODE(0,
         change(.verb = HF_VERB_APPEND, .id = id, .token = h.token, .type = "t")->code);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.stop");
    IS("waiting_external", id);
    TRUE(!row(id)->resume_payload);
    TRUE(wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.stop")->repeated);
    CODE(HF_ETRANSITION, wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go")->code);
    CODE(HF_ELEASELOST, renew(h)->code);
    REFOLDS(id);
}

test_case(a_bound_process_that_took_its_signal_is_ended_by_its_token)
{
    static const struct hf_change ends[] = {
        { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE },
        { .verb = HF_VERB_FAIL, .error_class = "broken" },
        { .verb = HF_VERB_CANCEL, .reason = "not wanted" },
        { .verb = HF_VERB_ABANDON },
    };
    static const char *const ended[] = { "done", "failed", "cancelled", "abandoned" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
        struct held h = kit_taken(t, id, "alice", "b1");
        TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go"));
        wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
        EQ(1, count_events(id, "signal_taken"));
        struct hf_change end = ends[i];
        end.id = id;
        end.token = h.token;
        CODE(0, kit_change(t, end)->code);
        IS(ended[i], id);
        TRUE(kit_change(t, end)->repeated);
        CODE(HF_ETRANSITION, wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go")->code);
        REFOLDS(id);
    }
}

test_case(a_repeated_wait_of_a_bound_process_takes_no_second_signal)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    struct held h = kit_taken(t, id, "alice", "b1");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "3"));
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    /* The answer was lost. */
    TRUE(wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go")->repeated);
    SAME("1", row(id)->resume_payload);
    EQ(1, count_events(id, "signal_taken"));
    /* Operation ids tell the next wait from a repeat of the last one. */
    t->who.operation_id = "second";
    TRUE(!wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go")->repeated);
    SAME("2", row(id)->resume_payload);
    TRUE(wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go")->repeated);
    SAME("2", row(id)->resume_payload);
    t->who.operation_id = "third";
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    SAME("3", row(id)->resume_payload);
    EQ(3, count_events(id, "signal_taken"));
    t->who.operation_id = "fourth";
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    IS("waiting_external", id);
    t->who.operation_id = NULL;
    REFOLDS(id);
}

test_case(a_signal_that_comes_while_a_bound_process_waits_goes_with_its_owners_resume)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change resume = { .verb = HF_VERB_RESUME,
                                .id = id,
                                .owner = "alice",
                                .incarnation = "b1",
                                .nonce = "n1" };
    wait_for(kit_taken(t, id, "alice", "b1"), HF_STATUS_WAITING_EXTERNAL, "signal.go");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    IS("waiting_external", id);
    const struct hf_item *item = change(.verb = HF_VERB_RESUME, .id = id, .owner = "bob",
                                        .incarnation = "b1");
    CODE(HF_ETRANSITION, item->code);
    item = kit_change(t, resume);
    CODE(0, item->code);
    SAME("1", item->work.resume_payload);
    struct held h = { id, item->token };
    TRUE(kit_change(t, resume)->repeated); /* the answer was lost */
    SAME("1", row(id)->resume_payload);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    IS("running", id);
    SAME("2", row(id)->resume_payload);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.stop");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "stop", .payload = "3"));
    /* A payload of the owner's own replaces the signal's, which is taken too. */
    resume.id = NULL;
    resume.ref = "signal.stop";
    resume.nonce = "n2";
    resume.payload = "4";
    item = kit_change(t, resume);
    h.token = item->token;
    SAME("4", row(id)->resume_payload);
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.stop");
    IS("waiting_external", id);
    EQ(2, count_events(id, "resumed"));
    REFOLDS(id);
}

test_case(a_repeated_wait_takes_no_second_signal)
{
    const char *id = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    struct held h = kit_taken(t, id, "alice", "b1");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go"); /* the answer was lost */
    SAME("1", row(id)->resume_payload);
    EQ(1, count_events(id, "waiting_set"));
    /* A cancelled and requeued process has the signal that it did not take. */
    cancel(id);
    requeue(id);
    h = kit_taken(t, id, "alice", "b1");
    wait_for(h, HF_STATUS_WAITING_EXTERNAL, "signal.go");
    SAME("2", row(id)->resume_payload);
}
