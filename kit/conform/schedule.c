/* Schedules: T12, T31 to T40, G3 to G5. Every case begins at 2027-01-15T08:00:00Z. */

#include "conform/kit.h"

#define START ((hf_ms)1800000000000)

/* ---- short forms ------------------------------------------------------------------- */

static void drop_schedules(void *at)
{
    hf_schedules_free(at);
}

static void drop_skips(void *at)
{
    hf_schedule_skips_free(at);
}

static void drop_answer(void *at)
{
    hf_answer_free(at);
}

/* The one schedule of an answer, kept until the case ends; a zeroed one after a refusal. */
static const struct hf_schedule *kept(struct hf_conform *t, struct hf_schedules *made)
{
    static const struct hf_schedule none;
    if (t->code != 0 || !made)
        return &none;
    kit_keep(t, made, drop_schedules);
    const struct hf_schedule *schedule = hf_schedules_at(made, 0);
    return schedule ? schedule : &none;
}

static const struct hf_schedule *kit_add(struct hf_conform *t,
                                         struct hf_schedule_spec wanted)
{
    struct hf_schedules *made = NULL;
    wanted.size = sizeof(wanted);
    wanted.name = wanted.name ? wanted.name : "s";
    wanted.priority = -1;
    if (t->failed)
        return kept(t, NULL);
    t->code = kit_called(t,
                         hf_schedule_add(t->store, &t->who, &wanted, &made, kit_err(t)));
    return kept(t, made);
}

static const struct hf_schedule *kit_update(struct hf_conform *t, int64_t revision,
                                            struct hf_schedule_spec wanted)
{
    struct hf_schedules *made = NULL;
    wanted.size = sizeof(wanted);
    wanted.name = wanted.name ? wanted.name : "s";
    wanted.priority = -1;
    if (t->failed)
        return kept(t, NULL);
    t->code = kit_called(
        t, hf_schedule_update(t->store, &t->who, &wanted, revision, &made, kit_err(t)));
    return kept(t, made);
}

static const struct hf_schedule *kit_look(struct hf_conform *t, const char *name)
{
    struct hf_schedules *made = NULL;
    if (t->failed)
        return kept(t, NULL);
    t->code = kit_called(t, hf_schedule_get(t->store, &t->who, name, &made, kit_err(t)));
    return kept(t, made);
}

static const struct hf_schedule *kit_switch(struct hf_conform *t, bool on,
                                            int64_t revision)
{
    struct hf_schedules *made = NULL;
    if (t->failed)
        return kept(t, NULL);
    struct hf_err *err = kit_err(t);
    int rc = on ? hf_schedule_resume(t->store, &t->who, "s", revision, &made, err)
                : hf_schedule_pause(t->store, &t->who, "s", "holiday", revision, &made,
                                    err);
    t->code = kit_called(t, rc);
    return kept(t, made);
}

static struct hf_schedule_report kit_pass(struct hf_conform *t)
{
    struct hf_schedule_report report = { 0 };
    if (t->failed)
        return report;
    t->code = kit_called(t, hf_schedule_pass(t->store, &t->who, &report, kit_err(t)));
    CODE(0, t->code);
    return report;
}

static const struct hf_item *kit_trigger(struct hf_conform *t)
{
    static const struct hf_item none;
    struct hf_answer *answer = NULL;
    if (t->failed)
        return &none;
    t->code = kit_called(
        t, hf_schedule_run_now(t->store, &t->who, "s", &answer, kit_err(t)));
    if (t->code)
        return &none;
    kit_keep(t, answer, drop_answer);
    return hf_answer_at(answer, 0);
}

/* The i-th record, newest first; a zeroed one past the last. */
static const struct hf_schedule_skip *kit_skip(struct hf_conform *t, size_t i)
{
    static const struct hf_schedule_skip none;
    struct hf_schedule_skips *skips = NULL;
    if (t->failed)
        return &none;
    t->code = kit_called(
        t, hf_schedule_skips(t->store, &t->who, "s", 0, &skips, kit_err(t)));
    if (t->code)
        return &none;
    kit_keep(t, skips, drop_skips);
    const struct hf_schedule_skip *skip = hf_schedule_skips_at(skips, i);
    return skip ? skip : &none;
}

#define add(...) kit_add(AT(t), (struct hf_schedule_spec){ __VA_ARGS__ })
#define update(revision, ...)                                                            \
    kit_update(AT(t), (revision), (struct hf_schedule_spec){ __VA_ARGS__ })
#define look(name) kit_look(AT(t), (name))
#define pause_at(revision) kit_switch(AT(t), false, (revision))
#define resume_at(revision) kit_switch(AT(t), true, (revision))
#define pass() kit_pass(AT(t))
#define trigger() kit_trigger(AT(t))
#define skipped(i) kit_skip(AT(t), (i))

/* Units of schedules, whatever became of them. */
static const struct hf_answer *units(struct hf_conform *t)
{
    static const enum hf_status all[] = { HF_STATUS_QUEUED,   HF_STATUS_RUNNING,
                                          HF_STATUS_DONE,     HF_STATUS_RETRY_SCHEDULED,
                                          HF_STATUS_FAILED,   HF_STATUS_TIMEOUT,
                                          HF_STATUS_CANCELLED };
    return kit_list(t, (struct hf_filter){ .source = HF_SOURCE_SCHEDULER,
                                           .statuses = all,
                                           .status_count = 7,
                                           .limit = 1000 });
}

static const char *run_of(struct hf_conform *t, size_t i)
{
    return item_of(units(t), i)->work.source_run_id;
}

/* ---- slots ------------------------------------------------------------------------- */

test_case(t31_a_due_slot_makes_one_unit_with_its_identity)
{
    const struct hf_schedule *s = add(.cron = "*/5 * * * *", .kind = "report",
                                      .queue = "q", .payload = "{\"a\":1}");
    SAME("active", s->state);
    EQ(START + MINUTE(5), s->next_at);
    EQ(0, pass().made);
    advance(MINUTE(5) - 1);
    EQ(0, pass().looked_at);
    advance(1);
    EQ(1, pass().made);
    EQ(0, pass().made);
    EQ(1, count_of(units(t)));
    const struct hf_work *w = &item_of(units(t), 0)->work;
    SAME("scheduler", w->source_system);
    SAME("s", w->source_id);
    SAME("2027-01-15T08:05:00Z", w->source_run_id);
    SAME("report", w->kind);
    SAME("q", w->queue);
    SAME("{\"a\":1}", w->payload);
    SAME("rerunnable", w->disposition);
    SAME("queued", w->status);
    SAME("schedule", last_event(w->work_id, "work_created")->actor_kind);
    SAME("s", last_event(w->work_id, "work_created")->actor);
    s = look("s");
    EQ(START + MINUTE(10), s->next_at);
    EQ(START + MINUTE(5), s->last_slot_at);
    SAME(w->work_id, s->last_work_id);
    EQ(1, s->made);
    EQ(1, s->revision);
}

test_case(intervals_and_single_times_have_slots_too)
{
    EQ(START + SEC(90), add(.every_ms = SEC(90))->next_at);
    const struct hf_schedule *once = add(.name = "once", .at = "2027-01-15T08:01:00Z");
    EQ(START + MINUTE(1), once->next_at);
    advance(SEC(90));
    EQ(2, pass().made);
    SAME("2027-01-15T08:01:00Z", run_of(t, 0));
    SAME("2027-01-15T08:01:30Z", run_of(t, 1));
    EQ(START + SEC(180), look("s")->next_at);
    once = look("once");
    SAME("finished", once->state);
    EQ(0, once->next_at);
    /* A local time in the gap of 14 March moves to its end, 03:00. */
    EQ(1805007600000,
       add(.name = "gap", .at = "2027-03-14T02:30:00", .zone = "America/New_York")
           ->next_at);
}

test_case(t45_slots_follow_the_clocks_of_their_zone)
{
    add(.cron = "0 9 * * *", .zone = "Europe/Berlin", .overlap = HF_OVERLAP_ALLOW);
    EQ(START + HOUR(24), look("s")->next_at); /* it is 09:00 there now */
    advance(HOUR(24));
    EQ(1, pass().made);
    SAME("2027-01-16T08:00:00Z", run_of(t, 0));
    advance(HOUR(24) * 100); /* into summer time: 26 April */
    EQ(1, pass().made);
    SAME("2027-04-26T07:00:00Z", run_of(t, 1));
}

/* ---- missed slots ------------------------------------------------------------------ */

test_case(t32_latest_makes_one_unit_after_an_outage_and_records_the_rest)
{
    add(.cron = "* * * * *");
    advance(MINUTE(10));
    EQ(1, pass().made);
    SAME("2027-01-15T08:10:00Z", run_of(t, 0));
    EQ(0, pass().looked_at);
    EQ(START + MINUTE(11), look("s")->next_at);
    EQ(9, look("s")->skipped);
    const struct hf_schedule_skip *skip = skipped(0);
    SAME("missed", skip->reason);
    EQ(9, skip->slots);
    EQ(START + MINUTE(1), skip->first_at);
    EQ(START + MINUTE(9), skip->last_at);
    TRUE(!skip->more);
    EQ(0, skipped(1)->slots);
}

test_case(latest_makes_the_newest_missed_slot_when_none_is_on_time)
{
    add(.cron = "0 * * * *");
    advance(HOUR(3) + MINUTE(30));
    EQ(1, pass().made);
    SAME("2027-01-15T11:00:00Z", run_of(t, 0));
    EQ(2, skipped(0)->slots);
    EQ(START + HOUR(4), look("s")->next_at);
}

test_case(slots_within_the_threshold_are_late_and_not_missed)
{
    add(.every_ms = SEC(1), .overlap = HF_OVERLAP_ALLOW, .miss_threshold_ms = SEC(5));
    advance(SEC(5));
    EQ(5, pass().made); /* 4 s late is not missed */
    advance(SEC(6));
    struct hf_schedule_report report = pass();
    EQ(5, report.made);
    EQ(1, report.skipped); /* 5 s late is */
    SAME("missed", skipped(0)->reason);
    EQ(START + SEC(6), skipped(0)->first_at);
    EQ(10, look("s")->made);
    EQ(1, look("s")->skipped);
}

test_case(t33_all_makes_every_missed_slot_in_order)
{
    add(.cron = "* * * * *", .catch_up = HF_CATCH_UP_ALL, .overlap = HF_OVERLAP_ALLOW);
    advance(MINUTE(250));
    EQ(250, pass().made); /* by hundreds */
    EQ(250, count_of(units(t)));
    SAME("2027-01-15T08:01:00Z", run_of(t, 0));
    SAME("2027-01-15T12:10:00Z", run_of(t, 249));
    EQ(0, look("s")->skipped);
    EQ(START + MINUTE(251), look("s")->next_at);
}

test_case(none_skips_what_was_missed_and_makes_what_is_on_time)
{
    add(.cron = "*/10 * * * *", .catch_up = HF_CATCH_UP_NONE);
    advance(MINUTE(25));
    EQ(0, pass().made);
    EQ(2, skipped(0)->slots);
    EQ(START + MINUTE(30), look("s")->next_at);
    advance(MINUTE(5) + SEC(30));
    EQ(1, pass().made);
    SAME("2027-01-15T08:30:00Z", run_of(t, 0));
}

test_case(g5_a_month_of_missed_seconds_is_one_short_step)
{
    add(.cron = "* * * * * *");
    advance(HOUR(24) * 30);
    EQ(1, count_of(units(t)) + (size_t)pass().made);
    SAME("overlap", skipped(0)->reason); /* of those on time one is enough */
    EQ(59, skipped(0)->slots);
    const struct hf_schedule_skip *skip = skipped(1);
    SAME("missed", skip->reason);
    EQ(START + SEC(1), skip->first_at);
    EQ(START + HOUR(24) * 30 - MINUTE(1), skip->last_at);
    TRUE(skip->more);
}

test_case(a_single_time_that_passed_is_made_late_or_skipped_by_its_rule)
{
    add(.at = "2027-01-15T07:00:00Z");
    EQ(1, pass().made);
    SAME("2027-01-15T07:00:00Z", run_of(t, 0));
    add(.name = "n", .at = "2027-01-15T07:00:00Z", .catch_up = HF_CATCH_UP_NONE);
    struct hf_schedule_report report = pass();
    EQ(0, report.made);
    EQ(1, report.skipped);
    SAME("finished", look("n")->state);
}

/* ---- overlap ----------------------------------------------------------------------- */

test_case(t34_skip_leaves_a_slot_out_while_a_unit_is_unfinished)
{
    add(.cron = "* * * * *");
    advance(MINUTE(1));
    EQ(1, pass().made);
    const char *first = item_of(units(t), 0)->work.work_id;
    advance(MINUTE(1));
    EQ(0, pass().made); /* the queued one is in the way */
    const struct hf_item *taken = claim(.limit = 1);
    SAME(first, taken->work.work_id);
    advance(MINUTE(1));
    EQ(0, pass().made); /* running too */
    SAME("overlap", skipped(0)->reason);
    SAME(first, skipped(0)->work_id);
    EQ(START + MINUTE(3), skipped(0)->first_at);
    EQ(1, skipped(0)->slots);
    EQ(2, look("s")->skipped);
    struct held h = { first, taken->token };
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    advance(MINUTE(1));
    EQ(1, pass().made);
    EQ(2, count_of(units(t)));
}

test_case(t35_one_waiting_lets_one_unit_wait_behind_a_running_one)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_ONE_WAITING);
    advance(MINUTE(1));
    EQ(1, pass().made);
    advance(MINUTE(1));
    EQ(0, pass().made); /* one waits already */
    SAME("waiting", skipped(0)->reason);
    const struct hf_item *first = claim(.limit = 10, .ttl_ms = HOUR(1));
    SAME("2027-01-15T08:01:00Z", first->work.source_run_id);
    advance(MINUTE(1));
    EQ(1, pass().made); /* behind the running one */
    EQ(0, count_of(kit_claim(t, (struct hf_claim){ .limit = 10 })));
    advance(MINUTE(1));
    EQ(0, pass().made);
    EQ(2, look("s")->skipped);
    struct held h = { first->work.work_id, first->token };
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    SAME("2027-01-15T08:03:00Z", claim(.limit = 10)->work.source_run_id);
}

test_case(allow_makes_units_beside_each_other)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_ALLOW);
    for (int i = 0; i < 3; i++) {
        advance(MINUTE(1));
        EQ(1, pass().made);
    }
    EQ(3, count_of(kit_claim(t, (struct hf_claim){ .limit = 10 })));
}

/* In whatever status it is: queued, running, waiting, between two tries. */
test_case(replace_cancels_the_unfinished_unit_as_it_makes_the_new_one)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_REPLACE);
    advance(MINUTE(1));
    EQ(1, pass().made);
    const char *queued = item_of(units(t), 0)->work.work_id;
    advance(MINUTE(1));
    EQ(1, pass().made);
    IS("cancelled", queued);
    SAME("replaced by 2027-01-15T08:02:00Z", row(queued)->status_reason);
    const struct hf_item *taken = claim(.limit = 10, .ttl_ms = HOUR(1));
    SAME("2027-01-15T08:02:00Z", taken->work.source_run_id);
    struct held h = { taken->work.work_id, taken->token };
    advance(MINUTE(1));
    EQ(1, pass().made);
    IS("cancelled", h.id);
    CODE(HF_ELEASELOST, close_as(h, HF_STATUS_DONE)->code); /* its holder is told */
    taken = claim(.limit = 10, .ttl_ms = HOUR(1));
    SAME("2027-01-15T08:03:00Z", taken->work.source_run_id);
    h = (struct held){ taken->work.work_id, taken->token };
    wait_for(h, HF_STATUS_WAITING_USER, "ann");
    advance(MINUTE(1));
    EQ(1, pass().made);
    IS("cancelled", h.id);
    taken = claim(.limit = 10, .ttl_ms = HOUR(1));
    h = (struct held){ taken->work.work_id, taken->token };
    fail_as(h, "flaky");
    advance(MINUTE(1));
    EQ(1, pass().made);
    IS("cancelled", h.id);
    EQ(0, look("s")->skipped);
    EQ(1, count_of(kit_claim(t, (struct hf_claim){ .limit = 10 })));
}

test_case(replace_makes_the_newest_of_many_due_slots)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_REPLACE, .catch_up = HF_CATCH_UP_ALL);
    advance(MINUTE(5));
    EQ(1, pass().made);
    SAME("2027-01-15T08:05:00Z", run_of(t, 0));
    SAME("replaced", skipped(0)->reason);
    EQ(4, skipped(0)->slots);
    SAME(NULL, skipped(0)->work_id);
}

test_case(a_unit_that_is_run_now_replaces_too)
{
    add(.cron = "@yearly", .overlap = HF_OVERLAP_REPLACE);
    const char *first = trigger()->work.work_id;
    const struct hf_item *second = trigger();
    CODE(0, t->code);
    TRUE(second->created);
    IS("cancelled", first);
    IS("queued", second->work.work_id);
}

/* A started owner_bound unit may have done its work: only its owner ends it. */
test_case(replace_leaves_started_owner_bound_work_to_its_owner)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_REPLACE,
        .disposition = HF_DISPOSITION_OWNER_BOUND);
    CODE(HF_EINVAL, t->code);
    SAME("overlap", t->err.field);
    add(.cron = "* * * * *", .disposition = HF_DISPOSITION_OWNER_BOUND);
    advance(MINUTE(1));
    EQ(1, pass().made);
    const struct hf_item *taken = claim(.limit = 1, .ttl_ms = HOUR(1));
    struct held h = { taken->work.work_id, taken->token };
    update(0, .cron = "* * * * *", .overlap = HF_OVERLAP_REPLACE);
    advance(MINUTE(1));
    struct hf_schedule_report report = pass();
    EQ(0, report.made);
    EQ(1, report.failed);
    TRUE(contains(look("s")->last_error, "cannot be replaced at once"));
    IS("running", h.id);
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    advance(MINUTE(2));
    EQ(1, pass().made); /* the slot was not lost */
}

test_case(a_lane_of_its_own_is_kept)
{
    add(.cron = "* * * * *", .overlap = HF_OVERLAP_ONE_WAITING, .lane_key = "disk");
    struct held other = running(.lane_key = "disk");
    advance(MINUTE(1));
    EQ(1, pass().made);
    SAME("disk", item_of(units(t), 0)->work.lane_key);
    advance(MINUTE(1));
    EQ(0, pass().made);
    SAME("waiting", skipped(0)->reason);
    CODE(0, close_as(other, HF_STATUS_DONE)->code);
}

/* Every catch-up rule under every overlap rule: five slots are due, four of them missed. */
test_case(catch_up_and_overlap_in_every_combination)
{
    static const struct {
        enum hf_catch_up catch_up;
        enum hf_overlap overlap;
        int64_t made;
        int64_t skipped;
    } expected[] = {
        { HF_CATCH_UP_LATEST, HF_OVERLAP_SKIP, 1, 4 },
        { HF_CATCH_UP_LATEST, HF_OVERLAP_ONE_WAITING, 1, 4 },
        { HF_CATCH_UP_LATEST, HF_OVERLAP_ALLOW, 1, 4 },
        { HF_CATCH_UP_ALL, HF_OVERLAP_SKIP, 1, 4 },
        { HF_CATCH_UP_ALL, HF_OVERLAP_ONE_WAITING, 1, 4 },
        { HF_CATCH_UP_ALL, HF_OVERLAP_ALLOW, 5, 0 },
        { HF_CATCH_UP_NONE, HF_OVERLAP_SKIP, 1, 4 },
        { HF_CATCH_UP_NONE, HF_OVERLAP_ONE_WAITING, 1, 4 },
        { HF_CATCH_UP_NONE, HF_OVERLAP_ALLOW, 1, 4 },
        { HF_CATCH_UP_LATEST, HF_OVERLAP_REPLACE, 1, 4 },
        { HF_CATCH_UP_ALL, HF_OVERLAP_REPLACE, 1, 4 },
        { HF_CATCH_UP_NONE, HF_OVERLAP_REPLACE, 1, 4 },
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        add(.name = say("m%zu", i), .cron = "* * * * *", .catch_up = expected[i].catch_up,
            .overlap = expected[i].overlap);
    advance(MINUTE(5));
    pass();
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct hf_schedule *s = look(say("m%zu", i));
        EQ(expected[i].made, s->made);
        EQ(expected[i].skipped, s->skipped);
        EQ(START + MINUTE(6), s->next_at);
    }
}

/* ---- once and only once ------------------------------------------------------------ */

test_case(t12_two_handles_make_each_slot_once)
{
    for (int i = 0; i < 20; i++)
        add(.name = say("n%d", i), .cron = "* * * * *", .overlap = HF_OVERLAP_ALLOW);
    struct hf_store *first = t->store, *second = kit_second(AT(t));
    int64_t made = 0;
    for (int i = 0; i < 4; i++) {
        advance(MINUTE(1));
        kit_use(t, i % 2 ? second : first);
        made += pass().made;
        kit_use(t, i % 2 ? first : second);
        made += pass().made;
    }
    kit_use(t, first);
    EQ(80, made);
    EQ(80, count_of(units(t)));
}

test_case(g3_a_slot_that_exists_already_never_stalls_its_schedule)
{
    add(.cron = "* * * * *");
    const char *before = create(.source = HF_SOURCE_SCHEDULER, .source_id = "s",
                                .source_run_id = "2027-01-15T08:01:00Z")
                             ->work.work_id;
    advance(MINUTE(1));
    struct hf_schedule_report report = pass();
    EQ(0, report.made);
    EQ(1, report.skipped);
    SAME("duplicate", skipped(0)->reason);
    SAME(before, skipped(0)->work_id);
    EQ(START + MINUTE(2), look("s")->next_at);
    advance(MINUTE(1));
    EQ(1, pass().made);
}

test_case(a_clock_that_goes_back_makes_no_slot_twice)
{
    add(.cron = "*/10 * * * *");
    advance(MINUTE(10));
    EQ(1, pass().made);
    CODE(0, cancel(item_of(units(t), 0)->work.work_id)->code);
    advance(-HOUR(2));
    EQ(0, pass().looked_at);
    pause_at(0);
    EQ(START + MINUTE(20), resume_at(0)->next_at); /* not 08:00 once more */
    EQ(0, pass().looked_at);
    update(0, .cron = "*/5 * * * *");
    EQ(START + MINUTE(15), look("s")->next_at);
    advance(HOUR(2) + MINUTE(5));
    EQ(1, pass().made);
    SAME("2027-01-15T08:15:00Z", run_of(t, 1));
}

/* ---- changes ----------------------------------------------------------------------- */

test_case(adding_the_same_again_changes_nothing)
{
    add(.cron = "@daily", .kind = "k");
    advance(MINUTE(1));
    const struct hf_schedule *again = add(.cron = "@daily", .kind = "k");
    CODE(0, t->code);
    EQ(1, again->revision);
    EQ(START, again->created_at);
    add(.cron = "@hourly", .kind = "k");
    CODE(HF_ECONFLICT, t->code);
    SAME("name", t->err.field);
    SAME("@daily", look("s")->cron);
    add(.name = "e", .every_ms = HOUR(1));
    advance(MINUTE(1));
    add(.name = "e", .every_ms = HOUR(1)); /* without a start: as it was */
    CODE(0, t->code);
    EQ(START + MINUTE(1) + HOUR(1), look("e")->next_at);
}

test_case(t40_a_paused_schedule_makes_nothing_and_goes_on_from_now)
{
    add(.cron = "* * * * *");
    const struct hf_schedule *s = pause_at(1);
    SAME("paused", s->state);
    SAME("holiday", s->state_reason);
    EQ(2, s->revision);
    EQ(2, pause_at(0)->revision); /* again: nothing */
    advance(MINUTE(5));
    EQ(0, pass().looked_at);
    s = resume_at(2);
    SAME("active", s->state);
    TRUE(s->state_reason == NULL);
    EQ(START + MINUTE(6), s->next_at);
    SAME("paused", skipped(0)->reason);
    EQ(5, skipped(0)->slots);
    EQ(5, s->skipped);
    advance(MINUTE(1));
    EQ(1, pass().made);
}

test_case(t40_an_update_moves_the_next_slot_only_with_its_timing)
{
    add(.cron = "*/10 * * * *");
    advance(MINUTE(12)); /* a slot is due */
    const struct hf_schedule *s = update(1, .cron = "*/10 * * * *", .payload = "7");
    EQ(2, s->revision);
    EQ(START + MINUTE(10), s->next_at);
    SAME("7", s->payload);
    s = update(2, .cron = "*/7 * * * *", .payload = "7");
    EQ(3, s->revision);
    EQ(START + MINUTE(14), s->next_at);
    SAME("updated", skipped(0)->reason);
    EQ(START + MINUTE(10), skipped(0)->first_at);
    EQ(3, update(3, .cron = "*/7 * * * *", .payload = "7")->revision); /* nothing new */
    s = update(3, .at = "2027-01-15T09:00:00Z", .payload = "7");
    SAME("once", s->timing);
    EQ(START + HOUR(1), s->next_at);
}

test_case(a_stale_revision_changes_nothing)
{
    add(.cron = "@daily");
    update(1, .cron = "@hourly");
    update(1, .cron = "@weekly");
    CODE(HF_ECONFLICT, t->code);
    SAME("revision", t->err.field);
    pause_at(1);
    CODE(HF_ECONFLICT, t->code);
    struct hf_err err = { 0 };
    CODE(HF_ECONFLICT, hf_schedule_remove(t->store, &t->who, "s", 1, &err));
    SAME("@hourly", look("s")->cron);
    SAME("active", look("s")->state);
}

test_case(t40_a_unit_on_request_leaves_the_schedule_as_it_is)
{
    add(.cron = "*/10 * * * *");
    const struct hf_item *item = trigger();
    TRUE(item->created);
    TRUE(begins(item->work.source_run_id, "manual:"));
    EQ(START + MINUTE(10), look("s")->next_at);
    EQ(1, look("s")->revision);
    EQ(1, look("s")->made);
    trigger(); /* one is under way, and the rule is skip */
    CODE(HF_ECONFLICT, t->code);
    SAME("overlap", t->err.field);
    advance(MINUTE(10));
    EQ(0, pass().made); /* it is in the way of the slot too */
    SAME(item->work.work_id, skipped(0)->work_id);
    CODE(0, cancel(item->work.work_id)->code);
    t->who.operation_id = "op-1";
    item = trigger();
    SAME("manual:op-1", item->work.source_run_id);
    TRUE(!trigger()->created); /* the same request again: the same unit */
    CODE(0, t->code);
    EQ(2, count_of(units(t)));
}

test_case(t40_on_request_several_may_run_where_that_is_allowed)
{
    add(.cron = "@daily", .overlap = HF_OVERLAP_ALLOW, .paused = true);
    SAME("paused", look("s")->state);
    for (int i = 0; i < 3; i++)
        TRUE(trigger()->created);
    EQ(3, count_of(kit_claim(t, (struct hf_claim){ .limit = 10 })));
}

test_case(a_removed_schedule_leaves_its_units)
{
    add(.cron = "* * * * *");
    advance(MINUTE(5));
    pass();
    struct hf_err err = { 0 };
    CODE(0, hf_schedule_remove(t->store, &t->who, "s", 0, &err));
    look("s");
    CODE(HF_ENOTFOUND, t->code);
    EQ(1, count_of(units(t)));
    CODE(HF_ENOTFOUND, hf_schedule_remove(t->store, &t->who, "s", 0, &err));
    add(.cron = "* * * * *"); /* the same name once more, from now on */
    EQ(0, look("s")->skipped);
    EQ(0, skipped(0)->slots);
    EQ(START + MINUTE(6), look("s")->next_at);
}

test_case(a_finished_schedule_is_neither_paused_nor_resumed)
{
    add(.at = "2027-01-15T08:00:01Z");
    advance(SEC(1));
    EQ(1, pass().made);
    pause_at(0);
    CODE(HF_ETRANSITION, t->code);
    resume_at(0);
    CODE(HF_ETRANSITION, t->code);
    SAME("active", update(0, .at = "2027-01-15T09:00:00Z")->state);
}

test_case(tenants_share_no_schedules)
{
    t->who.tenant = "a";
    add(.cron = "* * * * *");
    t->who.tenant = "b";
    look("s");
    CODE(HF_ENOTFOUND, t->code);
    add(.cron = "*/2 * * * *");
    CODE(0, t->code);
    advance(MINUTE(2));
    EQ(2, pass().made);
    SAME("*/2 * * * *", look("s")->cron);
    EQ(1, look("s")->made);
    t->who.tenant = "a";
    EQ(1, look("s")->skipped);
}

/* ---- sets -------------------------------------------------------------------------- */

static struct hf_sync_report kit_sync(struct hf_conform *t, const char *json)
{
    struct hf_sync_report report = { 0 };
    if (t->failed)
        return report;
    t->code = kit_called(t,
                         hf_schedule_sync(t->store, &t->who, json, &report, kit_err(t)));
    return report;
}
#define sync_set(json) kit_sync(AT(t), (json))

#define ENTRY_A "{\"name\":\"a\",\"cron\":\"@daily\"}"
#define ENTRY_B "{\"name\":\"b\",\"every\":\"5m\",\"payload\":{\"x\":1},\"paused\":true}"

test_case(t36_a_set_is_added_updated_and_left_alone)
{
    struct hf_sync_report r = sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_A
                                       "," ENTRY_B "]}");
    CODE(0, t->code);
    EQ(2, r.added);
    SAME("active", look("a")->state);
    SAME("paused", look("b")->state); /* as it is asked for at first */
    SAME("c", look("b")->origin);
    SAME("{\"x\":1}", look("b")->payload);
    advance(MINUTE(1));
    r = sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_A "," ENTRY_B "]}");
    EQ(2, r.unchanged);
    EQ(1, look("b")->revision);
    r = sync_set("{\"set\":\"c\",\"existing\":\"keep\",\"schedules\":["
                 "{\"name\":\"a\",\"cron\":\"@hourly\"}," ENTRY_B "]}");
    EQ(1, r.kept);
    SAME("@daily", look("a")->cron);
    r = sync_set("{\"set\":\"c\",\"schedules\":["
                 "{\"name\":\"a\",\"cron\":\"@hourly\"}," ENTRY_B "]}");
    EQ(1, r.updated);
    SAME("@hourly", look("a")->cron);
    EQ(2, look("a")->revision);
}

test_case(t36_orphans_of_a_set_are_paused_kept_or_removed)
{
    add(.name = "by-hand", .cron = "@daily");
    sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_A "," ENTRY_B "]}");
    EQ(1,
       sync_set("{\"set\":\"c\",\"orphans\":\"keep\",\"schedules\":[" ENTRY_B "]}").kept);
    SAME("active", look("a")->state);
    EQ(1, sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_B "]}").paused);
    SAME("paused", look("a")->state);
    SAME("orphan", look("a")->state_reason);
    /* Named again it continues; what people had paused stays so. */
    EQ(1, sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_A "," ENTRY_B "]}").updated);
    SAME("active", look("a")->state);
    SAME("paused", look("b")->state);
    EQ(2, sync_set("{\"set\":\"c\",\"orphans\":\"remove\",\"schedules\":[]}").removed);
    look("a");
    CODE(HF_ENOTFOUND, t->code);
    SAME("active", look("by-hand")->state);
}

test_case(a_fault_in_one_entry_changes_nothing_and_is_named)
{
    static const struct {
        const char *json;
        const char *says;
    } bad[] = {
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A
          ",{\"name\":\"z\",\"cron\":\"0 0 30 2 *\"}]}",
          "schedules[1] (z): cron" },
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A
          ",{\"name\":\"z\",\"cron\":\"@daily\",\"zone\":\"Mars/X\"}]}",
          "schedules[1] (z): zone" },
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A
          ",{\"name\":\"z\",\"cron\":\"@daily\",\"crom\":1}]}",
          "no key crom" },
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A "," ENTRY_A "]}", "the same name" },
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A ",{\"name\":\"z\"}]}", "one of cron" },
        { "{\"set\":\"c\",\"schedules\":[" ENTRY_A ",7]}", "object" },
        { "{\"schedules\":[" ENTRY_A "]}", "set" },
        { "{\"set\":\"c\"}", "schedules must be a list" },
        { "[]", "object" },
        { "{", "file" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sync_set(bad[i].json);
        CODE(HF_EINVAL, t->code);
        if (!contains(t->err.message, bad[i].says))
            kit_fail(t, "\"%s\" does not say \"%s\"", t->err.message, bad[i].says);
        look("a");
        CODE(HF_ENOTFOUND, t->code);
    }
    add(.name = "a", .cron = "@hourly");
    sync_set("{\"set\":\"c\",\"schedules\":[" ENTRY_A "]}"); /* by hand: taken over */
    CODE(0, t->code);
    SAME("c", look("a")->origin);
    sync_set("{\"set\":\"d\",\"schedules\":[" ENTRY_A "]}");
    CODE(HF_ECONFLICT, t->code);
    TRUE(contains(t->err.message, "belongs to the set c"));
}

test_case(prune_takes_records_of_skipped_slots_and_no_schedule)
{
    add(.cron = "* * * * *");
    advance(MINUTE(5));
    EQ(1, pass().made);
    CODE(0, cancel(item_of(units(t), 0)->work.work_id)->code);
    advance(HOUR(48));
    kit_prune(AT(t), HOUR(24), 0);
    EQ(0, skipped(0)->slots);
    EQ(0, count_of(units(t)));
    EQ(4, look("s")->skipped);
    EQ(1, look("s")->made);
}

/* ---- reading and input ------------------------------------------------------------- */

test_case(t38_bad_schedules_are_refused_by_field_and_write_nothing)
{
    static const struct {
        struct hf_schedule_spec wanted;
        int code;
        const char *field;
    } bad[] = {
        { { .cron = "61 * * * *" }, HF_EINVAL, "cron" },
        { { .cron = "0 0 30 2 *" }, HF_EINVAL, "cron" },
        { { .cron = NULL }, HF_EINVAL, "cron" },
        { { .cron = "@daily", .every_ms = 1000 }, HF_EINVAL, "cron" },
        { { .every_ms = 999 }, HF_EINVAL, "every" },
        { { .every_ms = -5 }, HF_EINVAL, "every" },
        { { .at = "tomorrow" }, HF_EINVAL, "at" },
        { { .cron = "@daily", .start = "2027-01-15T08:00:00Z" }, HF_EINVAL, "start" },
        { { .every_ms = 1000, .start = "x" }, HF_EINVAL, "start" },
        { { .every_ms = 1000, .both_days = true }, HF_EINVAL, "days" },
        { { .cron = "@daily", .zone = "Europe/Nowhere" }, HF_EINVAL, "zone" },
        { { .cron = "@daily", .zone = "../../etc/passwd" }, HF_EINVAL, "zone" },
        { { .cron = "@daily", .payload = "{" }, HF_EINVAL, "payload" },
        { { .cron = "@daily", .kind = "hf.x" }, HF_EINVAL, "kind" },
        { { .cron = "@daily", .max_attempts = -1 }, HF_EINVAL, "max_attempts" },
        { { .cron = "@daily", .retry_policy = "7" }, HF_EINVAL, "retry_policy" },
        { { .cron = "@daily", .miss_threshold_ms = -1 }, HF_EINVAL, "miss_threshold" },
        { { .cron = "@daily", .overlap = (enum hf_overlap)9 }, HF_EINVAL, "overlap" },
        { { .cron = "@daily",
            .disposition = HF_DISPOSITION_OWNER_BOUND,
            .exec_timeout_ms = 5 },
          HF_EINVAL,
          "exec_timeout_ms" },
        { { .cron = "@daily", .name = "" }, HF_EINVAL, "name" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kit_add(AT(t), bad[i].wanted);
        if (t->code != bad[i].code || !same(t->err.field, bad[i].field))
            kit_fail(t, "number %zu: %d %s: %s", i, t->code, t->err.field,
                     t->err.message);
        look("s");
        CODE(HF_ENOTFOUND, t->code);
    }
    add(.name = kit_filled(t, 'n', 160), .cron = "@daily");
    CODE(0, t->code);
    add(.name = kit_filled(t, 'n', 161), .cron = "@daily");
    CODE(HF_ETOOBIG, t->code);
    SAME("name", t->err.field);
    char *large = kit_memory(t, (size_t)HF_MAX_PAYLOAD_BYTES + 2);
    for (int64_t i = 0; large && i < HF_MAX_PAYLOAD_BYTES; i++)
        large[i] = ' ';
    if (large)
        large[HF_MAX_PAYLOAD_BYTES] = '7';
    add(.cron = "@daily", .payload = large);
    CODE(HF_ETOOBIG, t->code);
    SAME("payload", t->err.field);
}
