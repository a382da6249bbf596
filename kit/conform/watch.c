/* Findings that need a person: each kind that a store without processes and schedules can have,
 * and acknowledging bad ends. */

#include <holdfast/attention.h>
#include <holdfast/job.h>
#include <holdfast/overview.h>

#include "conform/session_kit.h"

static void drop_attention(void *at)
{
    hf_attention_free(at);
}

static const struct hf_attention *kit_attention(struct hf_conform *t,
                                                struct hf_attention_query query)
{
    static const struct hf_attention none = { .now = 0 };
    struct hf_attention *found = NULL;
    if (t->failed)
        return &none;
    query.size = sizeof(query);
    t->code = kit_called(
        t, hf_attention_read(t->store, &t->who, &query, &found, kit_err(t)));
    if (t->code)
        return &none;
    kit_keep(t, found, drop_attention);
    return found;
}
#define attention(...) kit_attention(AT(t), (struct hf_attention_query){ __VA_ARGS__ })

static int64_t kit_ack(struct hf_conform *t, struct hf_ack ack)
{
    int64_t count = -1;
    if (t->failed)
        return 0;
    ack.size = sizeof(ack);
    t->code = kit_called(t,
                         hf_attention_ack(t->store, &t->who, &ack, &count, kit_err(t)));
    return t->code ? -1 : count;
}
#define ack(...) kit_ack(AT(t), (struct hf_ack){ __VA_ARGS__ })
#define ack_id(id_) ack(.ids = (const char *const[]){ id_ }, .id_count = 1)

/* The n-th finding of a kind; a zeroed one where there is none. */
static const struct hf_attention_item *nth(const struct hf_attention *found,
                                           enum hf_need what, size_t n)
{
    static const struct hf_attention_item none = { .id = NULL };
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].what == what && n-- == 0)
            return &found->items[i];
    return &none;
}

static size_t count_of_kind(const struct hf_attention *found, enum hf_need what)
{
    size_t count = 0;
    for (size_t i = 0; i < found->count; i++)
        count += found->items[i].what == what;
    return count;
}

static const struct hf_fact *fact_in(const struct hf_fact *facts, size_t count,
                                     const char *name)
{
    static const struct hf_fact none = { .name = NULL };
    for (size_t i = 0; i < count; i++)
        if (same(facts[i].name, name))
            return &facts[i];
    return &none;
}
/* An answer may wait for a ring of its own: times of two answers differ by that much. */
#define NEAR(expected, found)                                                            \
    TRUE((found) - (expected) <= SEC(1) && (expected) - (found) <= SEC(1))

#define fact(item, name) fact_in((item)->facts, (item)->fact_count, name)
#define input(item, name) fact_in((item)->act.inputs, (item)->act.count, name)

test_case(attention_of_an_empty_store_is_empty)
{
    EQ(0, attention()->count);
    CODE(0, t->code);
}

test_case(attention_finds_a_lease_that_lapses_soon_and_one_that_has_lapsed)
{
    struct held h = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    EQ(0, attention()->count);
    advance(SEC(31)); /* of 45 */
    const struct hf_attention *found = attention();
    EQ(1, found->count);
    SAME(h.id, nth(found, HF_NEED_LAPSING, 0)->id);
    EQ(HF_SEVERITY_SOON, nth(found, HF_NEED_LAPSING, 0)->severity);
    NEAR(SEC(14), fact(nth(found, HF_NEED_LAPSING, 0), "left_ms")->number);
    NEAR(found->now + SEC(14), nth(found, HF_NEED_LAPSING, 0)->until);
    advance(SEC(20));
    found = attention();
    const struct hf_attention_item *silent = nth(found, HF_NEED_SILENT, 0);
    EQ(1, found->count);
    SAME(h.id, silent->id);
    SAME("unit", silent->subject);
    SAME("alice", fact(silent, "owner")->text);
    SAME("no_pid", fact(silent, "missing_proof")->text);
    NEAR(SEC(6), fact(silent, "lapsed_ms")->number);
    NEAR(found->now - SEC(6), silent->since);
    SAME("work.request_abandon", silent->act.op);
    SAME(h.id, input(silent, "work_id")->text);
}

test_case(attention_sends_a_silent_unit_that_may_run_again_to_a_sweep)
{
    running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(SEC(50));
    SAME("work.sweep", nth(attention(), HF_NEED_SILENT, 0)->act.op);
}

test_case(attention_shows_a_question_at_once)
{
    struct held h = running(.source_id = "deploy");
    CODE(0, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_WAITING_USER, .ref = "r1",
                   .reason = "may I deploy?", .timeout_ms = HOUR(1))
                ->code);
    const struct hf_attention *found = attention();
    const struct hf_attention_item *asked = nth(found, HF_NEED_QUESTION, 0);
    EQ(1, found->count);
    SAME(h.id, asked->id);
    EQ(HF_SEVERITY_NOW, asked->severity);
    SAME("may I deploy?", fact(asked, "asked")->text);
    SAME("r1", fact(asked, "waiting_ref")->text);
    SAME("timeout", fact(asked, "then")->text);
    NEAR(found->now + HOUR(1), asked->until);
    SAME("deploy", asked->unit ? asked->unit->source_id : NULL);
    SAME("work.resume", asked->act.op);
    CODE(0, change(.verb = HF_VERB_RESUME, .id = input(asked, "work_id")->text,
                   .payload = input(asked, "payload")->text)
                ->code);
    EQ(0, attention()->count);
}

test_case(attention_shows_other_waits_past_half_of_their_time)
{
    struct held h = running();
    CODE(0,
         change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                .status = HF_STATUS_WAITING_EXTERNAL, .ref = "ci", .timeout_ms = SEC(100))
             ->code);
    advance(SEC(50));
    EQ(0, attention()->count);
    advance(SEC(1));
    const struct hf_attention *found = attention();
    EQ(1, found->count);
    SAME(h.id, nth(found, HF_NEED_WAIT, 0)->id);
    EQ(HF_SEVERITY_SOON, nth(found, HF_NEED_WAIT, 0)->severity);
}

test_case(attention_leaves_work_of_another_system_alone)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED, .ref = "ci");
    advance(HOUR(24 * 365));
    IS("waiting_external", id);
    EQ(0, row(id)->deadline_at);
    EQ(0, attention()->count);
}

/* A turn that is put away over one wait; its talk. */
static struct talk asking_turn(struct hf_conform *t, const char *session_id,
                               struct hf_wait_spec wait)
{
    new_session(.session_id = session_id, .agent = "a");
    send(session_id, NULL, "go");
    struct talk talk = open_id(session_id);
    struct hf_session_step step = kit_step_of(t, &talk);
    wait.size = sizeof(wait);
    step.waits = &wait;
    step.wait_count = 1;
    step.away = true;
    CODE(0, kit_store_step(t, &talk, step));
    return talk;
}
#define asking(id, ...) asking_turn(AT(t), (id), (struct hf_wait_spec){ __VA_ARGS__ })

test_case(attention_shows_what_a_turn_asks_at_once)
{
    hf_ms until = t->wall + 3600000; /* a call may move the clock */
    struct talk talk = asking(
        "s", .kind = HF_WAIT_APPROVAL, .name = "1/c/1", .deadline_at = until,
        .policy = HF_AT_DEADLINE_DENY, .answerer = "anna",
        .asked = "{\"call\":{\"arguments\":{\"n\":5},\"name\":\"pay\"},"
                 "\"question\":\"May I pay?\"}");
    const struct hf_attention *found = attention();
    const struct hf_attention_item *asked = nth(found, HF_NEED_QUESTION, 0);
    char id[HF_WAIT_ID_TEXT] = "";
    CODE(0, hf_wait_id(talk.turn_id, HF_WAIT_APPROVAL, "1/c/1", id, NULL));
    EQ(1, found->count); /* the turn's unit is no question of its own */
    EQ(HF_SEVERITY_NOW, asked->severity);
    SAME("wait", asked->subject);
    SAME(id, asked->id);
    SAME("approval", asked->kind);
    EQ(until, asked->until);
    SAME("May I pay?", fact(asked, "asked")->text);
    SAME("{\"arguments\":{\"n\":5},\"name\":\"pay\"}", fact(asked, "call")->text);
    SAME("agent:a", fact(asked, "asked_by")->text);
    SAME("s", fact(asked, "session_id")->text);
    SAME("anna", fact(asked, "answerer")->text);
    SAME("deny", fact(asked, "then")->text);
    SAME("approve", asked->act.op);
    SAME(id, input(asked, "wait_id")->text);
    t->who.actor = "anna";
    struct hf_wait_resolve answer = { .size = sizeof(answer),
                                      .wait_id = id,
                                      .word = HF_ANSWER_APPROVE };
    struct hf_wait_answer *got = NULL;
    CODE(0, kit_called(t, hf_wait_resolve(t->store, &t->who, &answer, &got, kit_err(t))));
    hf_wait_answer_free(got);
    EQ(0, attention()->count);
}

test_case(attention_shows_other_waits_of_turns_past_half_of_their_time)
{
    asking("s", .kind = HF_WAIT_TIMER, .name = "2", .deadline_at = t->wall + SEC(200));
    asking("s2", .kind = HF_WAIT_SIGNAL, .name = "paid", .policy = HF_AT_DEADLINE_RESULT,
           .deadline_at = t->wall + SEC(200));
    EQ(0, attention()->count);
    advance(SEC(101));
    const struct hf_attention *found = attention();
    EQ(1, found->count); /* a timer ends by itself */
    SAME("s2", fact(nth(found, HF_NEED_WAIT, 0), "session_id")->text);
    SAME("wait.resolve", nth(found, HF_NEED_WAIT, 0)->act.op);
    EQ(HF_SEVERITY_SOON, nth(found, HF_NEED_WAIT, 0)->severity);
}

test_case(attention_counts_questions_of_units_and_turns_together)
{
    for (int i = 0; i < 3; i++) {
        struct held h = running();
        wait_for(h, HF_STATUS_WAITING_USER, say("r%d", i));
        asking(say("s%d", i), .kind = HF_WAIT_APPROVAL, .name = "1/c/1",
               .policy = HF_AT_DEADLINE_DENY);
    }
    const struct hf_attention *found = attention(.limit = 4);
    EQ(4, count_of_kind(found, HF_NEED_QUESTION));
    EQ(1, found->more_count);
    if (t->failed)
        return;
    EQ(2, found->more[0].count);
    SAME("wait.list", found->more[0].act.op);
    found = attention(.limit = 2);
    EQ(2, count_of_kind(found, HF_NEED_QUESTION));
    EQ(2, found->more_count); /* units and waits are in two lists */
    if (t->failed)
        return;
    EQ(1, found->more[0].count);
    SAME("work.list", found->more[0].act.op);
    EQ(3, found->more[1].count);
    SAME("wait.list", found->more[1].act.op);
}

test_case(attention_counts_silent_units_and_sessions_apart)
{
    for (int i = 0; i < 3; i++) {
        running(.disposition = HF_DISPOSITION_OWNER_BOUND);
        new_session(.session_id = say("s%d", i), .agent = "a");
        send(say("s%d", i), NULL, "go");
        open_id(say("s%d", i));
    }
    advance(HOUR(1));
    const struct hf_attention *found = attention(.limit = 2);
    EQ(2, count_of_kind(found, HF_NEED_SILENT));
    EQ(2, found->more_count);
    if (t->failed)
        return;
    EQ(1, found->more[0].count);
    SAME("work.list", found->more[0].act.op);
    EQ(3, found->more[1].count);
    SAME("session.list", found->more[1].act.op);
}

test_case(attention_counts_bad_ends_of_many_classes_to_the_last)
{
    for (int i = 0; i < 55; i++) {
        struct held h = running(.max_attempts = 1);
        fail_as(h, say("class-%02d", i));
    }
    const struct hf_attention *found = attention(.limit = 2);
    int64_t rest = 0;
    EQ(2, count_of_kind(found, HF_NEED_ENDED_BADLY));
    EQ(51, found->more_count); /* fifty of one class each, and three of others */
    for (size_t i = 0; i < found->more_count; i++)
        rest += found->more[i].count;
    EQ(53, rest);
    if (t->failed)
        return;
    EQ(3, found->more[50].count);
    SAME(NULL, found->more[50].kind);
    SAME("work.list", found->more[50].act.op);
}

test_case(attention_answers_a_question_with_one_of_its_choices)
{
    struct held h =
        running(.kind = "question",
                .payload = "{\"choices\":[\"ship\",\"hold\"],\"question\":\"?\"}");
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    const struct hf_attention_item *asked = nth(attention(), HF_NEED_QUESTION, 0);
    SAME("[\"ship\",\"hold\"]", fact(asked, "choices")->text);
    SAME("answer", asked->act.op);
    SAME("ship", input(asked, "answer")->text);
}

test_case(attention_shows_bad_ends_until_they_are_acknowledged)
{
    struct held good = running();
    close_as(good, HF_STATUS_DONE);
    struct held bad = running(.kind = "report");
    close_as(bad, HF_STATUS_FAILED);
    advance(SEC(1));
    struct held worse = running(.kind = "report");
    close_as(worse, HF_STATUS_FAILED);
    const char *cancelled = new_id();
    cancel(cancelled);
    const struct hf_attention *found = attention();
    EQ(2, found->count);
    SAME(worse.id, nth(found, HF_NEED_ENDED_BADLY, 0)->id); /* the newest first */
    SAME(bad.id, nth(found, HF_NEED_ENDED_BADLY, 1)->id);
    SAME("failed", fact(nth(found, HF_NEED_ENDED_BADLY, 0), "status")->text);
    SAME("attention.ack", nth(found, HF_NEED_ENDED_BADLY, 0)->act.op);
    EQ(1, ack_id(bad.id));
    EQ(0, ack_id(bad.id)); /* it is so already */
    EQ(1, count_events(bad.id, "work_acknowledged"));
    SAME(t->who.actor ? t->who.actor : "holdfast",
         last_event(bad.id, "work_acknowledged")->actor);
    TRUE(row(bad.id)->acked_at > 0);
    EQ(1, attention()->count);
    EQ(1, ack(.all = true));
    EQ(0, attention()->count);
}

test_case(attention_shows_a_unit_again_that_ends_badly_again)
{
    struct held h = running();
    close_as(h, HF_STATUS_FAILED);
    EQ(1, ack_id(h.id));
    requeue(h.id);
    EQ(0, row(h.id)->acked_at);
    EQ(0, attention()->count);
    struct held again = { h.id, claim(.id = h.id)->token };
    close_as(again, HF_STATUS_FAILED);
    EQ(1, count_of_kind(attention(), HF_NEED_ENDED_BADLY));
}

test_case(ack_marks_bad_ends_of_a_kind_and_no_other)
{
    struct held one = running(.kind = "a");
    close_as(one, HF_STATUS_FAILED);
    struct held two = running(.kind = "b");
    close_as(two, HF_STATUS_FAILED);
    EQ(0, ack(.kind = "none"));
    EQ(1, ack(.kind = "a", .reason = "known"));
    SAME("known", last_event(one.id, "work_acknowledged")->message);
    SAME(two.id, nth(attention(), HF_NEED_ENDED_BADLY, 0)->id);
}

test_case(ack_refuses_what_did_not_end_badly_and_marks_nothing)
{
    struct held bad = running();
    close_as(bad, HF_STATUS_FAILED);
    const char *open = new_id();
    const char *before = picture();
    EQ(-1, ack(.ids = (const char *const[]){ bad.id, open }, .id_count = 2));
    CODE(HF_ETRANSITION, t->code);
    EQ(-1, ack(.ids = (const char *const[]){ bad.id, "ffffffff" }, .id_count = 2));
    CODE(HF_ENOTFOUND, t->code);
    EQ(-1, ack(.all = true, .kind = "work"));
    CODE(HF_EINVAL, t->code);
    EQ(-1, ack(.all = false));
    CODE(HF_EINVAL, t->code);
    UNCHANGED(before);
}

test_case(attention_counts_what_it_does_not_show)
{
    for (int i = 0; i < 5; i++) {
        struct held h = running(.kind = i < 4 ? "a" : "b", .max_attempts = 1);
        fail_as(h, i < 2 ? "oom" : "net");
        advance(SEC(1));
    }
    const struct hf_attention *found = attention(.limit = 2);
    EQ(2, count_of_kind(found, HF_NEED_ENDED_BADLY)); /* b net, a net */
    EQ(2, found->more_count);
    if (t->failed)
        return;
    SAME("a", found->more[0].kind);
    SAME("oom", found->more[0].error_class);
    EQ(2, found->more[0].count);
    SAME("net", found->more[1].error_class);
    EQ(1, found->more[1].count);
    SAME("work.list", found->more[0].act.op);
    EQ(5, count_of_kind(attention(), HF_NEED_ENDED_BADLY));
    CODE(HF_ETOOBIG, (attention(.limit = 201), t->code));
}

test_case(attention_counts_questions_beyond_its_limit)
{
    for (int i = 0; i < 5; i++) {
        struct held h = running();
        wait_for(h, HF_STATUS_WAITING_USER, say("r%d", i));
    }
    const struct hf_attention *found = attention(.limit = 2);
    EQ(2, count_of_kind(found, HF_NEED_QUESTION));
    EQ(1, found->more_count);
    if (t->failed)
        return;
    EQ(3, found->more[0].count);
    TRUE(!found->more[0].at_least);
}

test_case(attention_is_of_one_tenant_or_of_all)
{
    t->who.tenant = "t1";
    struct held one = running();
    close_as(one, HF_STATUS_FAILED);
    t->who.tenant = "t2";
    struct held two = running();
    wait_for(two, HF_STATUS_WAITING_USER, "r");
    EQ(1, attention()->count);
    SAME(two.id, nth(attention(), HF_NEED_QUESTION, 0)->id);
    SAME("t2", nth(attention(), HF_NEED_QUESTION, 0)->tenant);
    EQ(0, ack(.all = true));
    t->who.tenant = NULL;
    EQ(2, attention()->count);
}

test_case(attention_finds_units_that_no_worker_claims)
{
    create(.queue = "mail", .kind = "send");
    create(.queue = "mail", .kind = "send");
    create(.queue = "mail", .kind = "later", .delay_ms = HOUR(1));
    EQ(0, attention()->count);
    advance(MINUTE(5));
    const struct hf_attention *found = attention();
    const struct hf_attention_item *unserved = nth(found, HF_NEED_UNSERVED, 0);
    EQ(1, found->count);
    SAME("queue", unserved->subject);
    SAME("mail", unserved->id);
    SAME("send", unserved->kind);
    EQ(2, fact(unserved, "units")->number);
    NEAR(found->now - MINUTE(5), unserved->since);
    EQ(0, attention(.unserved_ms = MINUTE(6))->count);
    claim(.queue = "mail"); /* a worker is there */
    EQ(0, count_of_kind(attention(), HF_NEED_UNSERVED));
}

test_case(attention_finds_sessions_that_no_worker_takes)
{
    new_session(.session_id = "s1", .agent = "helper");
    new_session(.session_id = "s2", .agent = "helper");
    new_session(.session_id = "idle", .agent = "other");
    send("s1", NULL, "go");
    send("s2", NULL, "go");
    EQ(0, attention()->count);
    advance(MINUTE(5) + 1);
    const struct hf_attention *found = attention();
    const struct hf_attention_item *unserved = nth(found, HF_NEED_UNSERVED, 0);
    EQ(1, found->count);
    SAME("agent", unserved->subject);
    SAME("helper", unserved->id);
    EQ(2, fact(unserved, "sessions")->number);
    NEAR(found->now - MINUTE(5), unserved->since);
    SAME("session.list", unserved->act.op);
    SAME("helper", input(unserved, "agent")->text);
    EQ(0, attention(.unserved_ms = MINUTE(6))->count);
    open_id("s1"); /* a worker is there, and has not come to the other one */
    EQ(0, count_of_kind(attention(), HF_NEED_UNSERVED));
    advance(HOUR(1)); /* its lease has lapsed; it was there */
    EQ(0, count_of_kind(attention(), HF_NEED_UNSERVED));
}

test_case(attention_looks_for_workers_beyond_the_most_urgent_thousand)
{
    struct hf_work_spec served[500];
    for (size_t part = 0; part < 3; part++) {
        for (size_t i = 0; i < 500; i++)
            served[i] = (struct hf_work_spec){
                .size = sizeof(served[i]),
                .source = HF_SOURCE_MANUAL,
                .source_id = say("s%zu", 500 * part + i),
                .kind = "served",
                .priority = 0,
            };
        struct hf_answer *made = NULL;
        CODE(0, kit_called(t, hf_work_create(t->store, &t->who, served, 500, HF_BRIEF,
                                             &made, kit_err(t))));
        hf_answer_free(made);
    }
    create(.kind = "lonely", .priority = 9);
    claim();
    advance(MINUTE(6));
    const struct hf_attention *found = attention();
    EQ(1, count_of_kind(found, HF_NEED_UNSERVED));
    SAME("lonely", nth(found, HF_NEED_UNSERVED, 0)->kind);
}

test_case(attention_finds_a_limit_whose_holders_are_all_silent)
{
    struct hf_limit limit = { .size = sizeof(limit),
                              .name = "kind:slow",
                              .max_running = 1 };
    CODE(0, kit_called(t, hf_limit_set(t->store, &t->who, &limit, kit_err(t))));
    running(.kind = "slow", .disposition = HF_DISPOSITION_OWNER_BOUND);
    create(.kind = "slow");
    EQ(0, attention()->count);
    advance(SEC(50));
    const struct hf_attention_item *stuck = nth(attention(), HF_NEED_LIMIT_STUCK, 0);
    SAME("kind:slow", stuck->id);
    EQ(1, fact(stuck, "max_running")->number);
    EQ(1, fact(stuck, "waiting")->number);
    SAME("work.list", stuck->act.op);
    SAME("kind:slow", input(stuck, "limit_name")->text);
}

/* ---- counts ------------------------------------------------------------------------------ */

struct queues {
    struct hf_conform *t;
    struct hf_queue at[4];
    const char *kinds[4];
    size_t count;
};

static void each_queue(void *user, const struct hf_queue *queue)
{
    struct queues *queues = user;
    struct hf_conform *t = queues->t;
    if (queues->count == 4)
        return;
    queues->at[queues->count] = *queue;
    queues->at[queues->count].queue = say("%s", queue->queue);
    queues->kinds[queues->count++] = say("%s", queue->kinds);
}

test_case(queues_are_counted_by_name)
{
    struct queues queues = { .t = t };
    create(.queue = "b", .kind = "y", .delay_ms = MINUTE(2));
    create(.queue = "a", .kind = "y");
    create(.queue = "a", .kind = "x", .lane_key = "l");
    create(.queue = "a", .kind = "x", .lane_key = "l");
    struct held runs = running(.queue = "a");
    struct held waits = running(.queue = "b");
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    struct held over = running(.queue = "c");
    close_as(over, HF_STATUS_FAILED);
    (void)runs;
    advance(SEC(50));
    CODE(0, kit_called(
                t, hf_queue_list(t->store, &t->who, each_queue, &queues, kit_err(t))));
    EQ(2, queues.count);
    if (t->failed)
        return;
    SAME("a", queues.at[0].queue);
    EQ(2, queues.at[0].claimable);
    EQ(1, queues.at[0].lane);
    EQ(1, queues.at[0].running);
    EQ(1, queues.at[0].silent);
    EQ(SEC(50), queues.at[0].oldest_claimable_ms);
    TRUE(contains(queues.kinds[0], "\"x\"") && contains(queues.kinds[0], "\"y\""));
    SAME("b", queues.at[1].queue);
    EQ(0, queues.at[1].claimable);
    EQ(1, queues.at[1].due);
    EQ(1, queues.at[1].waiting);
    TRUE(queues.at[1].next_due_at > t->wall);
}

struct holders {
    struct hf_conform *t;
    struct hf_holder at[4];
    size_t count;
};

static void each_holder(void *user, const struct hf_holder *holder)
{
    struct holders *holders = user;
    struct hf_conform *t = holders->t;
    if (holders->count == 4)
        return;
    holders->at[holders->count] = *holder;
    holders->at[holders->count].owner = say("%s", holder->owner);
    holders->at[holders->count++].incarnation = say("%s", holder->incarnation);
}

static struct holders kit_holders(struct hf_conform *t, const char *owner)
{
    struct holders holders = { .t = t };
    if (!t->failed)
        t->code = kit_called(t, hf_holder_list(t->store, &t->who, owner, each_holder,
                                               &holders, kit_err(t)));
    return holders;
}

test_case(holders_are_listed_and_two_at_once_are_twins)
{
    const char *one = new_id(), *two = new_id(), *three = new_id();
    struct held a = { one, claim(.id = one, .owner = "w", .incarnation = "a")->token };
    advance(SEC(10));
    claim(.id = two, .owner = "w", .incarnation = "b");
    claim(.id = three, .owner = "v", .incarnation = "c");
    struct holders holders = kit_holders(AT(t), NULL);
    EQ(3, holders.count);
    if (t->failed)
        return;
    SAME("v", holders.at[0].owner);
    SAME("a", holders.at[1].incarnation);
    SAME("b", holders.at[2].incarnation);
    EQ(SEC(35), holders.at[1].least_left_ms);
    EQ(1, holders.at[1].running);
    TRUE(!holders.at[1].twin); /* it may have been replaced by the other one */
    EQ(0, count_of_kind(attention(), HF_NEED_TWINS));
    advance(SEC(1));
    renew(a);
    holders = kit_holders(AT(t), "w");
    EQ(2, holders.count);
    TRUE(holders.at[0].twin && holders.at[1].twin);
    SAME("w", nth(attention(), HF_NEED_TWINS, 0)->id);
    EQ(2, fact(nth(attention(), HF_NEED_TWINS, 0), "incarnations")->number);
}

test_case(holders_of_sessions_have_the_leases_of_those)
{
    kit_session(t, "s");
    send("s", NULL, "question");
    open_by(.session_id = "s", .owner = "w", .incarnation = "a", .ttl_ms = SEC(40));
    advance(SEC(10));
    struct holders holders = kit_holders(AT(t), NULL);
    EQ(1, holders.count);
    SAME("w", holders.at[0].owner);
    EQ(1, holders.at[0].running);
    EQ(0, holders.at[0].silent);
    EQ(SEC(30), holders.at[0].least_left_ms);
    EQ(SEC(30), holders.at[0].most_left_ms);
    claim(.id = new_id(), .owner = "w", .incarnation = "a");
    holders = kit_holders(AT(t), "w");
    EQ(2, holders.at[0].running);
    EQ(SEC(30), holders.at[0].least_left_ms);
    EQ(SEC(45), holders.at[0].most_left_ms);
    advance(SEC(30));
    holders = kit_holders(AT(t), "w");
    EQ(1, holders.at[0].silent);
    EQ(0, holders.at[0].least_left_ms);
    EQ(SEC(15), holders.at[0].most_left_ms);
}

test_case(ages_are_of_open_units_and_of_what_is_left_of_leases)
{
    struct hf_age_table ages;
    create();
    struct held over = running();
    close_as(over, HF_STATUS_DONE);
    advance(MINUTE(1));
    running();
    advance(SEC(16)); /* of 45 */
    running();
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(1, ages.open[HF_STATUS_QUEUED][1]);
    EQ(2, ages.open[HF_STATUS_RUNNING][0]);
    EQ(0, ages.open[HF_STATUS_DONE][1]);
    EQ(1, ages.leases[0]);
    EQ(1, ages.leases[1]);
    advance(SEC(25));
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(1, ages.leases[2]);
    advance(SEC(10));
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(1, ages.leases[3]);
}

test_case(ages_count_the_lease_of_an_open_turn_once)
{
    struct hf_age_table ages;
    kit_session(t, "s");
    send("s", NULL, "question");
    kit_session(t, "idle"); /* no lease, no turn */
    open_by(.session_id = "s", .owner = "w", .incarnation = "a", .ttl_ms = SEC(60));
    claim(.id = new_id()); /* for 45 s */
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(2, ages.open[HF_STATUS_RUNNING][0]);
    EQ(2, ages.leases[0]);
    advance(SEC(31)); /* 29 s and 14 s are left */
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(0, ages.leases[0]);
    EQ(1, ages.leases[1]);
    EQ(1, ages.leases[2]);
    advance(SEC(29)); /* both have lapsed, one to the millisecond */
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(0, ages.leases[2]);
    EQ(2, ages.leases[3]);
    t->who.tenant = "other";
    CODE(0, kit_called(t, hf_work_ages(t->store, &t->who, &ages, kit_err(t))));
    EQ(0, ages.leases[3]);
}
