/* Processes: the lines of durable-state.md 3.6, and 3.7 (waking a session). */

#include "conform/kit.h"

/* ---- short forms ------------------------------------------------------------------- */

static void drop_answer(void *at)
{
    hf_answer_free(at);
}

static void drop_processes(void *at)
{
    hf_processes_free(at);
}

static const struct hf_item *kit_register(struct hf_conform *t,
                                          struct hf_process_new wanted,
                                          struct hf_new unit)
{
    static const struct hf_item none;
    struct hf_answer *answer = NULL;
    if (t->failed)
        return &none;
    unit.size = sizeof(unit);
    unit.source = HF_SOURCE_MANUAL;
    unit.priority = -1;
    if (!unit.source_id)
        unit.source_id = kit_say(t, "p%lld", (long long)++t->made);
    wanted.size = sizeof(wanted);
    wanted.work = &unit;
    if (!wanted.identity_kind)
        wanted.identity_kind = "shell";
    t->code = kit_called(
        t, hf_process_register(t->store, &t->who, &wanted, &answer, kit_err(t)));
    if (t->code)
        return &none;
    kit_keep(t, answer, drop_answer);
    const struct hf_item *item = hf_answer_at(answer, 0);
    t->code = item->code;
    return item;
}

/* One of this disposition, with nothing else said. */
static const char *process_of(struct hf_conform *t, enum hf_disposition disposition)
{
    return kit_register(t, (struct hf_process_new){ 0 },
                        (struct hf_new){ .disposition = disposition })
        ->work.work_id;
}

static const struct hf_processes *kit_processes(struct hf_conform *t,
                                                struct hf_process_filter filter)
{
    struct hf_processes *found = NULL;
    if (t->failed)
        return NULL;
    filter.size = sizeof(filter);
    t->code = kit_called(t,
                         hf_process_list(t->store, &t->who, &filter, &found, kit_err(t)));
    if (t->code == 0)
        kit_keep(t, found, drop_processes);
    return t->code == 0 ? found : NULL;
}

static size_t how_many(const struct hf_processes *processes)
{
    return processes ? hf_processes_count(processes) : 0;
}

static const struct hf_process *kit_process(struct hf_conform *t, const char *id)
{
    static const struct hf_process none;
    const struct hf_processes *found = kit_processes(
        t, (struct hf_process_filter){ .id = id });
    return how_many(found) == 1 ? hf_processes_at(found, 0) : &none;
}

/* Told anew: true. */
static bool kit_tell(struct hf_conform *t, struct hf_process_tell tell)
{
    bool repeated = false;
    if (t->failed)
        return false;
    tell.size = sizeof(tell);
    t->code = kit_called(
        t, hf_process_tell(t->store, &t->who, &tell, &repeated, kit_err(t)));
    return t->code == 0 && !repeated;
}

/* The record in the tables is what the events give, byte for byte. */
static void kit_refold(struct hf_conform *t, const char *id)
{
    char *stored = NULL, *folded = NULL;
    if (t->failed)
        return;
    int code = kit_called(
        t, hf_process_records(t->store, &t->who, id, &stored, &folded, kit_err(t)));
    kit_code(t, "hf_process_records", 0, code);
    if (code)
        return;
    kit_text(t, "the record from its events", stored, folded);
    hf_text_free(t->store, stored);
    hf_text_free(t->store, folded);
}

#define enroll(unit, ...)                                                                \
    kit_register(AT(t), (struct hf_process_new){ __VA_ARGS__ }, (struct hf_new)unit)
#define UNIT(...)                                                                        \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }
#define processes(...) kit_processes(AT(t), (struct hf_process_filter){ __VA_ARGS__ })
#define process(id) kit_process(AT(t), (id))
#define tell(...) kit_tell(AT(t), (struct hf_process_tell){ __VA_ARGS__ })
#define REFOLDS(id) kit_refold(AT(t), (id))

static struct held taken(struct hf_conform *t, const char *id, const char *owner,
                         const char *boot)
{
    const struct hf_item *item = claim(.owner = owner, .incarnation = boot, .id = id,
                                       .ttl_ms = SEC(30));
    return (struct held){ item->work.work_id, item->token };
}

static size_t wakes_of(struct hf_conform *t, const char *session, enum hf_status status)
{
    return count_of(list(.queue = say("session:%s", session), .statuses = &status,
                         .status_count = 1));
}

/* ---- registering ------------------------------------------------------------------- */

test_case(d36_a_disposition_must_be_declared)
{
    static const enum hf_disposition not_declared[] = { HF_DISPOSITION_NONE, HF_EXPIRE };
    for (size_t i = 0; i < 2; i++) {
        enroll(UNIT(.disposition = not_declared[i]), .identity_kind = "shell");
        CODE(HF_EINVAL, t->code);
        SAME("disposition", t->err.field);
    }
    EQ(0, how_many(processes(.all = true)));
}

test_case(d36_registration_and_observers_are_one_and_idempotent)
{
    static const char *const two[] = { "s2", "s1", "s2" }, *const one[] = { "s1" };
    const struct hf_item *first = enroll(
        UNIT(.disposition = HF_RERUNNABLE, .source_id = "a"), .observers = two,
        .observer_count = 3, .wake_session = "w",
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
    const struct hf_item *again = enroll(
        UNIT(.disposition = HF_RERUNNABLE, .source_id = "a"), .observers = two,
        .observer_count = 2, .wake_session = "w", .labels = "{\"a\":\"1\",\"b\":\"2\"}");
    TRUE(!again->created);
    SAME(first->work.work_id, again->work.work_id);
    const char *before = picture();
    enroll(UNIT(.disposition = HF_RERUNNABLE, .source_id = "a"), .observers = one,
           .observer_count = 1, .wake_session = "w",
           .labels = "{\"a\":\"1\",\"b\":\"2\"}");
    CODE(HF_ECONFLICT, t->code);
    UNCHANGED(before);
    SAME("[\"s1\",\"s2\"]", process(first->work.work_id)->observers);
    enroll(UNIT(.disposition = HF_RERUNNABLE), .labels = "{\"a\":1}");
    CODE(HF_EINVAL, t->code);
    SAME("labels", t->err.field);
    UNCHANGED(before);
}

/* ---- the log ----------------------------------------------------------------------- */

test_case(d36_an_event_is_told_once_by_its_key)
{
    const char *id = process_of(t, HF_RERUNNABLE);
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
    struct held h = taken(t, id, "alice", "b1");
    close_as(h, HF_DONE);
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
                                            "hf.x",           "external_ref_set" };
    static const char *const declared[] = { "step", "note" };
    const char *id = process_of(t, HF_RERUNNABLE);
    const char *before = picture();
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        tell(.what = HF_TELL_APPEND, .id = id, .name = reserved[i]);
        CODE(HF_EINVAL, t->code);
    }
    UNCHANGED(before);
    id = enroll(UNIT(.disposition = HF_RERUNNABLE), .event_types = declared,
                .event_type_count = 2)
             ->work.work_id;
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "note"));
    tell(.what = HF_TELL_APPEND, .id = id, .name = "not");
    CODE(HF_EINVAL, t->code);
    SAME("type", t->err.field);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go")); /* not its own */
}

test_case(d36_long_cancel_reasons_are_kept_whole)
{
    const char *id = process_of(t, HF_OWNER_BOUND);
    struct held h = taken(t, id, "alice", "b1");
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
    const char *id = process_of(t, HF_EXTERNALLY_OWNED);
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
    const char *id = process_of(t, HF_RERUNNABLE);
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
    { .verb = HF_VERB_WAIT, .status = HF_WAITING_USER, .ref = "x", .token = "" },
    { .verb = HF_VERB_WAIT, .status = HF_WAITING_EXTERNAL, .ref = "x", .token = "" },
    { .verb = HF_VERB_RESUME, .payload = "[1]" },
    { .verb = HF_VERB_RESUME, .owner = "alice", .incarnation = "b1" },
    { .verb = HF_VERB_HAND_BACK, .token = "" },
    { .verb = HF_VERB_FAIL, .error_class = "broken", .token = "" },
    { .verb = HF_VERB_CANCEL, .reason = "not wanted" },
    { .verb = HF_VERB_REQUEST_ABANDON, .reason = "gone" },
    { .verb = HF_VERB_REQUEUE, .reason = "once more" },
    { .verb = HF_VERB_ABANDON, .token = "" },
    { .verb = HF_VERB_CLOSE_OUT, .status = HF_DONE, .token = "" },
    { .verb = HF_VERB_CLOSE_OUT, .status = HF_DONE, .authority = "ci" },
    { .verb = HF_VERB_CLOSE_OUT, .status = HF_FAILED, .error_class = "c", .token = "" },
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
    static const enum hf_disposition all[] = { HF_RERUNNABLE, HF_OWNER_BOUND,
                                               HF_EXTERNALLY_OWNED };
    static const char *const observers[] = { "b" };
    uint64_t state = 88172645463325252u;
    for (int life = 0; life < 9; life++) {
        struct held h = { 0 };
        const char *id = enroll(UNIT(.disposition = all[life % 3], .max_attempts = 4,
                                     .ref = "r"),
                                .observers = observers, .observer_count = 1,
                                .wake_session = "w", .definition = "{\"z\":1,\"a\":[]}")
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
    const char *id = process_of(t, HF_RERUNNABLE);
    struct held first = taken(t, id, "alice", "b1");
    claim(.owner = "bob", .incarnation = "b1", .id = id);
    CODE(HF_EHELD, t->code);
    claim(.owner = "alice", .incarnation = "b2", .id = id);
    CODE(HF_EHELD, t->code); /* another boot is another owner */
    EQ(1, row(id)->lease_fence);
    struct held again = taken(t, id, "alice", "b1");
    EQ(1, row(id)->lease_fence);
    CODE(HF_ELEASELOST, renew(first)->code);
    CODE(0, renew(again)->code);
    advance(SEC(31));
    (void)sweep();
    struct held bob = taken(t, id, "bob", "b1");
    EQ(2, row(id)->lease_fence);
    REFOLDS(id);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(again, HF_DONE)->code); /* a revenant */
    CODE(HF_ELEASELOST, hand_back(again)->code);
    UNCHANGED(before);
    SAME("bob", row(id)->owner);
    CODE(0, close_as(bob, HF_DONE)->code);
    CODE(0, close_as(bob, HF_DONE)->code); /* told again, applied once */
    EQ(1, count_events(id, "close_out"));
    REFOLDS(id);
}

test_case(d36_completion_needs_the_authority_of_its_disposition)
{
    static const enum hf_disposition inside[] = { HF_RERUNNABLE, HF_OWNER_BOUND };
    for (size_t i = 0; i < 2; i++) {
        const char *id = process_of(t, inside[i]);
        CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id,
                                    .authority = "ci", .status = HF_DONE)
                                 ->code);
        struct held h = taken(t, id, "alice", "b1");
        CODE(HF_ETRANSITION, change(.verb = HF_VERB_CLOSE_OUT, .id = id,
                                    .authority = "ci", .status = HF_DONE)
                                 ->code);
        CODE(HF_EINVAL,
             change(.verb = HF_VERB_CLOSE_OUT, .id = id, .status = HF_DONE)->code);
        CODE(0, close_as(h, HF_DONE)->code);
    }
    const char *id = process_of(t, HF_EXTERNALLY_OWNED);
    CODE(HF_EINVAL, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .status = HF_DONE)->code);
    claim(.owner = "alice", .id = id);
    CODE(HF_ETRANSITION, t->code); /* never claimed */
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci",
                   .status = HF_FAILED, .error_class = "broken")
                ->code);
    TRUE(contains(last_change(id)->payload, "\"authority\":\"ci\""));
    CODE(HF_ETRANSITION,
         change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci", .status = HF_DONE)
             ->code);
    IS("failed", id);
    REFOLDS(id);
}

test_case(d36_the_first_start_is_recorded_once_and_an_owner_bound_one_never_repeated)
{
    const char *id = process_of(t, HF_OWNER_BOUND);
    EQ(0, row(id)->first_started_at);
    struct held h = taken(t, id, "alice", "b1");
    hf_ms first = row(id)->first_started_at;
    TRUE(first != 0);
    advance(SEC(1));
    (void)taken(t, id, "alice", "b1"); /* again, as the same */
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
    const char *id = enroll(UNIT(.disposition = HF_RERUNNABLE, .max_attempts = 2),
                            .identity_kind = "shell")
                         ->work.work_id;
    for (int i = 1; i <= 2; i++) {
        (void)taken(t, id, "alice", "b1");
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
        ids[i] = process_of(t, HF_RERUNNABLE);
    struct held h = taken(t, ids[4], "alice", "b1");
    wait_for(h, HF_WAITING_USER, "x");
    EQ(7, how_many(processes(.identity_kind = "shell")));
    EQ(1, how_many(processes(.waiting = true)));
    const struct hf_processes *page = processes(.limit = 3);
    EQ(3, how_many(page));
    SAME(ids[2], how_many(page) == 3 ? hf_processes_at(page, 2)->work.work_id : NULL);
    cancel(ids[3]); /* what ends or begins between two pages moves nothing */
    (void)process_of(t, HF_RERUNNABLE);
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
    const char *a = enroll(UNIT(.disposition = HF_RERUNNABLE), .identity_kind = "shell",
                           .identity_label = "one", .originator = "s1",
                           .definition = "{\"a\":1,\"b\":2}", .labels = "{\"k\":\"v\"}",
                           .env_ref = "env:1", .cause_occurrence = "occ",
                           .cause_subscription = "sub")
                        ->work.work_id;
    hf_ms from = row(a)->created_at;
    advance(SEC(1));
    (void)process_of(t, HF_OWNER_BOUND);
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
    EQ(1, how_many(processes(.status = HF_CANCELLED)));
    processes(.label = "k");
    CODE(HF_EINVAL, t->code);
}

test_case(d36_live_references_are_counted_by_a_list)
{
    const char *id = enroll(UNIT(.disposition = HF_RERUNNABLE), .env_ref = "env:1",
                            .definition = "{\"m\":1}")
                         ->work.work_id;
    enroll(UNIT(.disposition = HF_RERUNNABLE), .env_ref = "env:1");
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
    const char *id = process_of(t, HF_EXTERNALLY_OWNED);
    tell(.what = HF_TELL_OBSERVE, .id = id, .name = "s");
    tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go");
    tell(.what = HF_TELL_EXTERNAL_REF, .id = id, .name = "r");
    change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci", .status = HF_DONE);
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
    const char *old = enroll(UNIT(.disposition = HF_RERUNNABLE), .observers = observers,
                             .observer_count = 1)
                          ->work.work_id;
    const char *open = process_of(t, HF_EXTERNALLY_OWNED);
    const char *job = new_id(.disposition = HF_RERUNNABLE);
    cancel(old);
    cancel(job);
    advance(SEC(10));
    const char *young = process_of(t, HF_RERUNNABLE);
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
    const char *id = process_of(t, HF_OWNER_BOUND);
    CODE(HF_ETRANSITION, ask_abandon(id)->code); /* never started: anybody may run it */
    struct held h = taken(t, id, "alice", "b1");
    t->who.actor_kind = "human";
    t->who.actor = "ann";
    CODE(0, change(.verb = HF_VERB_REQUEST_ABANDON, .id = id, .reason = "lost")->code);
    t->who.actor = "ben";
    CODE(0, change(.verb = HF_VERB_REQUEST_ABANDON, .id = id, .reason = "me too")->code);
    TRUE(contains(process(id)->work.abandon_request, "\"by\":\"human:ann\""));
    TRUE(contains(process(id)->work.abandon_request, "\"reason\":\"lost\""));
    EQ(1, count_events(id, "abandon_requested"));
    (void)sweep();
    IS("running", id); /* it fences nobody off */
    CODE(0, renew(h)->code);
    CODE(0, close_as(h, HF_DONE)->code);
    CODE(HF_ETRANSITION, ask_abandon(id)->code);
    REFOLDS(id);
}

/* The verdicts, by disposition; those that need a proof of death are in tests/proc. */

test_case(d36_sweep_rerunnable_is_claimed_again)
{
    const char *id = process_of(t, HF_RERUNNABLE);
    (void)taken(t, id, "alice", "b1");
    advance(SEC(30));
    (void)sweep();
    IS("queued", id);
    (void)taken(t, id, "bob", "b1");
    EQ(2, row(id)->attempt_count);
    REFOLDS(id);
}

test_case(d36_sweep_owner_bound_never_started_is_anybodys)
{
    const char *id = process_of(t, HF_OWNER_BOUND);
    advance(HOUR(48));
    (void)sweep();
    IS("queued", id);
    (void)taken(t, id, "bob", "b1");
    IS("running", id);
}

test_case(d36_sweep_owner_bound_and_silent_is_left)
{
    const char *id = process_of(t, HF_OWNER_BOUND);
    struct held h = taken(t, id, "alice", "b1");
    advance(HOUR(48));
    EQ(1, sweep().silent);
    IS("running", id);
    TRUE(process(id)->work.lease_remaining_ms < 0);
    SAME("alice", process(id)->work.owner);
    CODE(0, close_as(h, HF_DONE)->code); /* it was only slow */
}

test_case(d36_sweep_reconciles_a_request_once_the_lease_has_lapsed)
{
    const char *id = process_of(t, HF_OWNER_BOUND);
    struct held h = taken(t, id, "alice", "b1");
    ask_abandon(id);
    advance(SEC(30) - 1);
    (void)sweep();
    IS("running", id);
    advance(1);
    (void)sweep();
    IS("abandoned", id);
    SAME("reconciled_request", row(id)->status_reason);
    const char *before = picture();
    CODE(HF_ELEASELOST, close_as(h, HF_DONE)->code); /* a revenant */
    UNCHANGED(before);
    REFOLDS(id);
}

test_case(d36_sweep_externally_owned_is_never_claimed_and_ends_by_request)
{
    const char *id = process_of(t, HF_EXTERNALLY_OWNED);
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
    const char *own = process_of(t, HF_OWNER_BOUND),
               *waits = process_of(t, HF_OWNER_BOUND);
    const char *other_boot = process_of(t, HF_OWNER_BOUND);
    const char *rerun = process_of(t, HF_RERUNNABLE);
    const char *never = process_of(t, HF_OWNER_BOUND);
    const char *outside = process_of(t, HF_EXTERNALLY_OWNED);
    struct held h = taken(t, own, "alice", "b1");
    wait_for(taken(t, waits, "alice", "b1"), HF_WAITING_USER, "x");
    (void)taken(t, other_boot, "alice", "b2");
    (void)taken(t, rerun, "alice", "b1");
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
    CODE(HF_ELEASELOST, close_as(h, HF_DONE)->code);
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
    const char *id = enroll(UNIT(.disposition = HF_OWNER_BOUND, .lane_key = "l"),
                            .identity_kind = "shell")
                         ->work.work_id;
    wait_for(taken(t, id, "alice", "b1"), HF_WAITING_USER, "x");
    struct held other = running(.lane_key = "l"); /* has the lane meanwhile */
    const char *own = process_of(t, HF_OWNER_BOUND);
    (void)taken(t, own, "alice", "b1");
    CODE(0, hf_process_drain(t->store, &t->who, &alice, &report, NULL));
    EQ(1, report.ended); /* one that cannot keeps no other from its end */
    EQ(1, report.deferred);
    close_as(other, HF_DONE);
    CODE(0, hf_process_drain(t->store, &t->who, &alice, &report, NULL));
    EQ(1, report.ended);
    EQ(0, report.deferred);
    IS("abandoned", id);
}

test_case(d36_await_gives_the_end_and_says_when_there_is_none_yet)
{
    struct hf_answer *answer = NULL;
    const char *id = process_of(t, HF_EXTERNALLY_OWNED);
    t->code = kit_called(
        t, hf_process_await(t->store, &t->who, id, MS(10), &answer, kit_err(t)));
    CODE(HF_EBUSY, t->code);
    change(.verb = HF_VERB_CLOSE_OUT, .id = id, .authority = "ci", .status = HF_DONE,
           .summary = "fine");
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
    const char *id = process_of(t, HF_RERUNNABLE);
    struct held h = taken(t, id, "alice", "b1");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "1"));
    IS("running", id); /* nobody waited */
    wait_for(h, HF_WAITING_EXTERNAL, "signal.go");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "stop"));
    IS("waiting_external", id);
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = id, .name = "go", .payload = "2"));
    IS("queued", id);
    SAME("2", row(id)->resume_payload);
    const char *bound = process_of(t, HF_OWNER_BOUND);
    wait_for(taken(t, bound, "alice", "b1"), HF_WAITING_EXTERNAL, "signal.go");
    TRUE(tell(.what = HF_TELL_SIGNAL, .id = bound, .name = "go"));
    IS("waiting_external", bound); /* its owner goes on with it */
    EQ(1, count_events(bound, "signal.go"));
    REFOLDS(id);
    REFOLDS(bound);
}

/* ---- 3.7: waking -------------------------------------------------------------------- */

static const char *waker(struct hf_conform *t, enum hf_disposition disposition)
{
    return enroll(UNIT(.disposition = disposition, .max_attempts = 1),
                  .wake_session = "w")
        ->work.work_id;
}

test_case(d37_every_way_to_end_wakes_the_session_once)
{
    const char *ids[7];
    for (int i = 0; i < 7; i++)
        ids[i] = waker(t, i == 5   ? HF_EXTERNALLY_OWNED
                          : i == 6 ? HF_OWNER_BOUND
                                   : HF_RERUNNABLE);
    struct held h = taken(t, ids[0], "alice", "b1");
    close_as(h, HF_DONE);
    close_as(h, HF_DONE); /* told again */
    fail_as(taken(t, ids[1], "alice", "b1"), "broken");
    cancel(ids[2]);
    struct held late = taken(t, ids[3], "alice", "b1");
    (void)late;
    advance(SEC(31));
    (void)sweep(); /* attempts exhausted */
    wait_for(taken(t, ids[4], "alice", "b1"), HF_WAITING_USER, "x");
    cancel(ids[4]);
    change(.verb = HF_VERB_CLOSE_OUT, .id = ids[5], .authority = "ci", .status = HF_DONE);
    drain(taken(t, ids[6], "alice", "b1"));
    EQ(7, wakes_of(t, "w", HF_QUEUED));
    for (int i = 0; i < 7; i++) { /* in order, one at a time: the session's own lane */
        const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
        TRUE(contains(wake->work.payload, "\"work_id\":"));
        SAME("wake", wake->work.kind);
        EQ(0, count_of(claim_many(.owner = "x", .queue = "session:w")));
        close_as(((struct held){ wake->work.work_id, wake->token }), HF_DONE);
    }
    EQ(0, wakes_of(t, "w", HF_QUEUED));
    EQ(7, wakes_of(t, "w", HF_DONE));
}

test_case(d37_an_event_and_its_wake_are_one_transaction)
{
    const char *id = waker(t, HF_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
              .payload = "{\"n\":1}", .wake = true));
    TRUE(!tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k",
               .payload = "{\"n\":1}", .wake = true));
    EQ(1, wakes_of(t, "w", HF_QUEUED)); /* told once, woken once */
    const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
    TRUE(contains(wake->work.payload, "\"payload\":{\"n\":1}"));
    TRUE(contains(wake->work.payload, "\"event\":\"step\""));
    SAME(id, wake->work.parent_work_id);
    const char *before = picture();
    tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .key = "k", .wake = true);
    CODE(HF_ECONFLICT, t->code);
    UNCHANGED(before); /* neither */
    TRUE(tell(.what = HF_TELL_APPEND, .id = id, .name = "quiet"));
    EQ(0, wakes_of(t, "w", HF_QUEUED));
    const char *nobody = process_of(t, HF_RERUNNABLE);
    TRUE(tell(.what = HF_TELL_APPEND, .id = nobody, .name = "step", .wake = true));
}

test_case(d37_a_session_that_is_not_there_finds_its_wakes_later)
{
    const char *id = waker(t, HF_RERUNNABLE);
    cancel(id);
    advance(HOUR(24) * 30);
    (void)sweep();
    EQ(1, wakes_of(t, "w", HF_QUEUED)); /* nobody gave up on it */
    EQ(1, count_of(claim_many(.owner = "w", .queue = "session:w")));
}

test_case(d37_a_retarget_discards_what_nobody_took_and_keeps_what_was_taken)
{
    const char *id = waker(t, HF_RERUNNABLE);
    for (int i = 0; i < 3; i++)
        tell(.what = HF_TELL_APPEND, .id = id, .name = "step", .wake = true);
    const struct hf_item *wake = claim(.owner = "w", .queue = "session:w");
    TRUE(tell(.what = HF_TELL_RETARGET, .id = id, .name = "v"));
    EQ(0, wakes_of(t, "w", HF_QUEUED));
    EQ(2, wakes_of(t, "w", HF_CANCELLED));
    const enum hf_status cancelled = HF_CANCELLED;
    const struct hf_answer *gone = list(.queue = "session:w", .statuses = &cancelled,
                                        .status_count = 1);
    SAME("retargeted", item_of(gone, 0)->work.status_reason);
    IS("running", wake->work.work_id);
    EQ(0, wakes_of(t, "v", HF_QUEUED)); /* no wake is made up for the new one */
    cancel(id);
    EQ(1, wakes_of(t, "v", HF_QUEUED));
    EQ(0, wakes_of(t, "w", HF_QUEUED));
    tell(.what = HF_TELL_RETARGET, .id = id, .name = "u");
    CODE(HF_ETRANSITION, t->code); /* it has ended */
    REFOLDS(id);
}

test_case(d37_a_wake_whose_claimant_is_lost_is_taken_again_under_a_fresh_token)
{
    cancel(waker(t, HF_RERUNNABLE));
    const struct hf_item *first = claim(.owner = "a", .incarnation = "b1",
                                        .queue = "session:w", .ttl_ms = SEC(30));
    struct held old = { first->work.work_id, first->token };
    advance(SEC(30));
    const struct hf_item *second = claim(.owner = "b", .incarnation = "b1",
                                         .queue = "session:w");
    SAME(old.id, second->work.work_id);
    CODE(HF_ELEASELOST, close_as(old, HF_DONE)->code);
    CODE(0,
         close_as(((struct held){ second->work.work_id, second->token }), HF_DONE)->code);
    EQ(0, wakes_of(t, "w", HF_QUEUED));
}

test_case(d37_a_process_registered_again_after_prune_wakes_anew)
{
    struct hf_prune_report report;
    for (int i = 0; i < 2; i++) {
        const struct hf_item *item = enroll(
            UNIT(.disposition = HF_RERUNNABLE, .source_id = "same"), .wake_session = "w");
        TRUE(item->created);
        cancel(item->work.work_id);
        advance(SEC(1));
        CODE(0, hf_process_prune(t->store, &t->who, 0, &report, NULL));
        EQ(1, report.processes);
    }
    EQ(2, wakes_of(t, "w", HF_QUEUED)); /* wakes are units: they stay until taken */
}

test_case(d37_a_requeued_process_wakes_at_each_of_its_ends)
{
    const char *id = waker(t, HF_RERUNNABLE);
    cancel(id);
    requeue(id);
    cancel(id);
    EQ(2, wakes_of(t, "w", HF_QUEUED));
    REFOLDS(id);
}
