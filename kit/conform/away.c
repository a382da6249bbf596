/* Waits of turns and the cancel of a turn: durable-state.md 2.11 and the lines of 3.9 about waits
 * and turn control, turn-and-runtime.md 7.5. */

#include <string.h>

#include "conform/session_kit.h"

/* ---- helpers ------------------------------------------------------------------------ */

static void drop_waits(void *at)
{
    hf_wait_answer_free(at);
}

static const struct hf_wait_answer *kept(struct hf_conform *t,
                                         struct hf_wait_answer *answer)
{
    static const struct hf_wait_answer nothing;
    if (!answer)
        return &nothing;
    kit_keep(t, answer, drop_waits);
    return answer;
}

static const struct hf_wait *first(const struct hf_wait_answer *answer)
{
    static const struct hf_wait nothing;
    return answer->wait_count ? answer->waits : &nothing;
}

/* An approval or tool call with this name that is due in an hour. */
static struct hf_wait_spec new_wait(const struct hf_conform *t, enum hf_wait_kind kind,
                                    const char *name)
{
    return (struct hf_wait_spec){ .size = sizeof(struct hf_wait_spec),
                                  .kind = kind,
                                  .name = name,
                                  .deadline_at = t->wall + 3600000,
                                  .policy = kind == HF_WAIT_TIMER
                                                ? HF_AT_DEADLINE_NONE
                                                : HF_AT_DEADLINE_RESULT };
}

/* A step with waits; moves the talk on when it was stored. */
static struct hf_session_stepped step_away(struct hf_conform *t, struct talk *talk,
                                           const struct hf_wait_spec *waits, size_t count,
                                           bool away)
{
    const char *save = kit_say(t, "save of %s after step %lld", talk->turn_id,
                               (long long)talk->step + 1);
    struct hf_session_stepped stepped = { .step = 0 };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = talk->session_id,
                                    .token = talk->token,
                                    .turn_id = talk->turn_id,
                                    .step = talk->step,
                                    .node_count = talk->node_count,
                                    .chain = talk->chain,
                                    .save = { save, strlen(save) },
                                    .waits = waits,
                                    .wait_count = count,
                                    .away = away };
    if (t->failed)
        return stepped;
    t->code = kit_called(t,
                         hf_session_step(t->store, &t->who, &step, &stepped, kit_err(t)));
    if (t->code == 0 && !stepped.repeated)
        talk->step = stepped.step;
    return stepped;
}
#define put_away(talk, ...)                                                              \
    step_away(AT(t), (talk), (struct hf_wait_spec[]){ __VA_ARGS__ },                     \
              sizeof((struct hf_wait_spec[]){ __VA_ARGS__ }) /                           \
                  sizeof(struct hf_wait_spec),                                           \
              true)

static const char *wait_id(struct hf_conform *t, const struct talk *talk,
                           enum hf_wait_kind kind, const char *name)
{
    char id[HF_WAIT_ID_TEXT] = "";
    if (!t->failed)
        CODE(0, hf_wait_id(talk->turn_id, kind, name, id, NULL));
    return say("%s", id);
}

static const struct hf_wait_answer *answer(struct hf_conform *t,
                                           struct hf_wait_resolve request)
{
    struct hf_wait_answer *got = NULL;
    request.size = sizeof(request);
    if (!t->failed)
        t->code = kit_called(
            t, hf_wait_resolve(t->store, &t->who, &request, &got, kit_err(t)));
    return kept(t, got);
}
#define resolve_by(...) answer(AT(t), (struct hf_wait_resolve){ __VA_ARGS__ })
#define approve(id) resolve_by(.wait_id = (id), .word = HF_ANSWER_APPROVE)
#define deny(id, why) resolve_by(.wait_id = (id), .word = HF_ANSWER_DENY, .reason = (why))
#define reply(id, json) resolve_by(.wait_id = (id), .word = HF_ANSWER_OK, .value = (json))

static const struct hf_wait_answer *revoke(struct hf_conform *t,
                                           struct hf_wait_revoke request)
{
    struct hf_wait_answer *got = NULL;
    request.size = sizeof(request);
    if (!t->failed)
        t->code = kit_called(
            t, hf_wait_revoke(t->store, &t->who, &request, &got, kit_err(t)));
    return kept(t, got);
}
#define revoke_by(...) revoke(AT(t), (struct hf_wait_revoke){ __VA_ARGS__ })

static const struct hf_wait *get_wait(struct hf_conform *t, const char *id)
{
    struct hf_wait_answer *got = NULL;
    if (!t->failed)
        t->code = kit_called(t, hf_wait_get(t->store, &t->who, id, &got, kit_err(t)));
    return first(kept(t, got));
}
#define wait_of(id) get_wait(AT(t), (id))

static size_t open_waits(struct hf_conform *t, const char *session_id)
{
    struct hf_wait_answer *got = NULL;
    struct hf_wait_filter filter = { .size = sizeof(filter), .session_id = session_id };
    if (!t->failed)
        t->code = kit_called(t,
                             hf_wait_list(t->store, &t->who, &filter, &got, kit_err(t)));
    return kept(t, got)->wait_count;
}

static enum hf_session_turn_cancel cancel_turn(struct hf_conform *t,
                                               const char *session_id,
                                               const char *turn_id)
{
    enum hf_session_turn_cancel got = HF_TURN_CANCEL_COUNT;
    struct hf_session_cancel request = { .size = sizeof(request),
                                         .session_id = session_id,
                                         .turn_id = turn_id,
                                         .reason = "stop" };
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_cancel_turn(t->store, &t->who, &request, &got, kit_err(t)));
    return got;
}

static const char *key_of(struct hf_conform *t, const char *id)
{
    char key[HF_WAIT_KEY_TEXT] = "";
    if (!t->failed)
        t->code = kit_called(t, hf_wait_key(t->store, id, key, kit_err(t)));
    return say("%s", key);
}

static int finish_as(struct hf_conform *t, const struct talk *talk, enum hf_status status)
{
    struct hf_session_commit commit = kit_commit_of(talk);
    commit.status = status;
    commit.release = true;
    return kit_commit(t, commit, NULL);
}

/* A session whose turn was put away over one approval; its talk. */
static struct talk waiting_talk(struct hf_conform *t, const char *session_id)
{
    kit_session(t, session_id);
    send(session_id, NULL, "go");
    struct talk talk = open_id(session_id);
    struct hf_session_stepped stepped = put_away(&talk,
                                                 new_wait(t, HF_WAIT_APPROVAL, "1/c/1"));
    CODE(0, t->code);
    TRUE(!stepped.ready);
    return talk;
}

/* ---- putting away and resolving ------------------------------------------------------ */

test_case(wait_puts_a_turn_away_and_its_answer_makes_it_ready)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const struct hf_work *unit = row(talk.turn_id);
    SAME("waiting_user", unit->status);
    SAME(id, unit->waiting_ref);
    EQ(t->wall + 3600000, unit->deadline_at);
    EQ(1, unit->attempt_count);
    SAME(NULL, head("s")->owner);
    EQ(0, head("s")->ready_at);
    SAME(talk.turn_id, head("s")->turn_id);
    EQ(0, open_any().answer->session_count); /* nothing is to do */
    EQ(1, open_waits(t, "s"));
    const struct hf_wait *wait = wait_of(id);
    SAME("open", wait->state);
    SAME("approval", wait->kind);
    SAME("1/c/1", wait->name);
    SAME("s", wait->session_id);
    SAME(talk.turn_id, wait->turn_id);
    SAME("result", wait->policy);

    t->who.actor_kind = "human";
    t->who.actor = "anna";
    const struct hf_wait_answer *first_answer = approve(id);
    CODE(0, t->code);
    TRUE(first_answer->accepted);
    SAME("resolved", first(first_answer)->state);
    SAME("{\"kind\":\"approve\"}", first(first_answer)->outcome);
    SAME("anna", first(first_answer)->actor);
    SAME("queued", row(talk.turn_id)->status);
    SAME("lane", row(talk.turn_id)->gate);
    SAME(NULL, row(talk.turn_id)->waiting_ref);
    EQ(0, row(talk.turn_id)->deadline_at);
    EQ(1, row(talk.turn_id)->attempt_count); /* an answer spends no attempt */
    EQ(t->wall, head("s")->ready_at);
    EQ(1, count_events(talk.turn_id, "waiting_set"));
    EQ(1, count_events(talk.turn_id, "resumed"));

    struct talk later = open_any();
    SAME("s", later.session_id);
    SAME(talk.turn_id, later.turn_id);
    EQ(1, later.step);
    EQ(1, later.answer->turn->wait_count);
    SAME("{\"kind\":\"approve\"}", later.answer->turn->waits[0].outcome);
    CODE(0, finish(&later, "done"));
    IS("done", talk.turn_id);
}

test_case(wait_the_first_answer_counts_and_later_ones_are_told_of_it)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    TRUE(deny(id, "too much")->accepted);
    const struct hf_wait_answer *later = approve(id);
    CODE(0, t->code);
    TRUE(!later->accepted);
    SAME("{\"kind\":\"deny\",\"reason\":\"too much\"}", first(later)->outcome);
    TRUE(!deny(id, "too much")->accepted);
    t->who.operation_id = "op1";
    struct talk other = waiting_talk(t, "s2");
    id = wait_id(t, &other, HF_WAIT_APPROVAL, "1/c/1");
    TRUE(approve(id)->accepted);
    TRUE(approve(id)->accepted); /* the same operation again */
    EQ(1, count_events(other.turn_id, "resumed"));
}

test_case(wait_a_repeated_answer_leaves_the_next_wait_of_its_turn_alone)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    t->who.operation_id = "op1";
    TRUE(approve(id)->accepted);
    t->who.operation_id = NULL;
    struct talk second = open_any();
    put_away(&second, new_wait(t, HF_WAIT_TOOL, "2/c/1"));
    CODE(0, t->code);
    IS("waiting_external", talk.turn_id);
    t->who.operation_id = "op1";
    TRUE(approve(id)->accepted); /* the same operation again */
    IS("waiting_external", talk.turn_id);
    EQ(1, count_events(talk.turn_id, "resumed"));
    EQ(0, head("s")->ready_at);
    TRUE(!deny(id, "no")->accepted); /* another answer under its id */
    SAME("{\"kind\":\"approve\"}", wait_of(id)->outcome);
}

test_case(wait_of_a_held_turn_says_how_it_ended_until_the_turn_goes_on)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec asks = new_wait(t, HF_WAIT_APPROVAL, "1/b/1");
    asks.asked = "{\"question\":\"pay?\",\"edits\":true}";
    put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"), asks);
    CODE(0, t->code);
    const char *a = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1");
    const char *b = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/b/1");
    const char *never = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/d/1");
    TRUE(approve(a)->accepted);
    for (int64_t i = 0; i < HF_MAX_POISON_CRASHES; i++) {
        SAME(talk.turn_id, open_any().turn_id);
        advance(SEC(30));
    }
    EQ(0, open_any().answer->session_count);
    SAME("held", row(talk.turn_id)->gate);
    SAME("resolved", wait_of(a)->state); /* the answer is kept */
    SAME("{\"kind\":\"approve\"}", wait_of(a)->outcome);
    SAME("cancelled", wait_of(b)->state);
    EQ(0, open_waits(t, "s"));
    const struct hf_wait_answer *late =
        resolve_by(.wait_id = b, .word = HF_ANSWER_APPROVE, .value = "{\"n\":1}");
    CODE(0, t->code);
    TRUE(!late->accepted);
    SAME("{\"kind\":\"cancelled\"}", first(late)->outcome);
    resolve_by(.key = key_of(t, b), .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    approve(never);
    CODE(HF_ENOTFOUND, t->code);
    resolve_by(.wait_id = never, .word = HF_ANSWER_APPROVE, .value = "{\"n\":1}");
    CODE(HF_ENOTFOUND, t->code); /* the turn is not open, so it will not ask */
    CODE(0,
         change(.verb = HF_VERB_RELEASE, .id = talk.turn_id, .reason = "mended")->code);
    struct talk again = open_any();
    SAME(talk.turn_id, again.turn_id);
    EQ(1, again.answer->turn
              ->wait_count); /* the answer is known; the other is asked again */
    resolve_by(.wait_id = b, .word = HF_ANSWER_APPROVE, .value = "{\"n\":1}");
    CODE(HF_EINVAL, t->code); /* it has not asked yet */
    put_away(&again, asks);
    CODE(0, t->code);
    TRUE(approve(b)->accepted);
}

test_case(wait_an_early_answer_is_kept)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    const char *id = wait_id(t, &talk, HF_WAIT_TOOL, "1/c/1");
    const struct hf_wait_answer *early = reply(id, "{\"n\":1}");
    CODE(0, t->code);
    TRUE(early->accepted);
    EQ(0, first(early)->opened_at);
    struct hf_session_stepped stepped = put_away(&talk,
                                                 new_wait(t, HF_WAIT_TOOL, "1/c/1"));
    CODE(0, t->code);
    TRUE(stepped.ready);
    IS("queued", talk.turn_id);
    EQ(0, count_events(talk.turn_id, "waiting_set"));
    struct talk later = open_any();
    SAME("{\"kind\":\"ok\",\"value\":{\"n\":1}}", later.answer->turn->waits[0].outcome);
    SAME("1/c/1", later.answer->turn->waits[0].name);
    TRUE(!reply(id, "2")->accepted);
}

test_case(wait_an_early_answer_by_an_actor_that_may_not_answer_does_not_count)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    const char *a = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1");
    const char *b = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/b/1");
    struct hf_wait_spec asks[] = { new_wait(t, HF_WAIT_APPROVAL, "1/a/1"),
                                   new_wait(t, HF_WAIT_APPROVAL, "1/b/1") };
    asks[0].answerer = asks[1].answerer = "anna";
    asks[0].policy = HF_AT_DEADLINE_DENY;
    t->who.actor = "bob";
    TRUE(approve(a)->accepted); /* who may answer is not known yet */
    t->who.actor = "anna";
    TRUE(approve(b)->accepted);
    step_away(AT(t), &talk, asks, 2, false);
    CODE(0, t->code);
    SAME("resolved", wait_of(b)->state);
    SAME("open", wait_of(a)->state);
    SAME("bob", wait_of(a)->actor); /* whose answer does not count */
    t->who.actor = "bob";
    approve(a);
    CODE(HF_EANSWERER, t->code);
    TRUE(!put_away(&talk, asks[0]).ready);
    IS("waiting_user", talk.turn_id);
    advance(3600000);
    EQ(1, sweep().timed_out);
    SAME("{\"kind\":\"deny\",\"reason\":\"no answer came in time\"}",
         wait_of(a)->outcome);
}

test_case(wait_several_of_a_turn_are_independent_and_the_first_wakes_it)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec soon = new_wait(t, HF_WAIT_TOOL, "1/b/1");
    soon.deadline_at = t->wall + 60000;
    put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"), soon,
             new_wait(t, HF_WAIT_APPROVAL, "1/c/1"));
    CODE(0, t->code);
    const char *a = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1");
    const char *b = wait_id(t, &talk, HF_WAIT_TOOL, "1/b/1");
    const char *c = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    SAME("waiting_external", row(talk.turn_id)->status); /* the most urgent */
    SAME(b, row(talk.turn_id)->waiting_ref);
    EQ(3, open_waits(t, "s"));
    TRUE(approve(c)->accepted);
    IS("queued", talk.turn_id);
    EQ(2, open_waits(t, "s"));
    struct talk second = open_any();
    SAME(talk.turn_id, second.turn_id);
    EQ(3, second.answer->turn->wait_count);
    TRUE(approve(a)->accepted); /* while a worker holds the session */
    IS("running", talk.turn_id);
    struct hf_session_stepped stepped = put_away(
        &second, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"), soon);
    CODE(0, t->code);
    TRUE(stepped.ready); /* the answer is seen by the put-away */
    struct talk third = open_any();
    EQ(t->wall + 60000, wait_of(b)->deadline_at);
    stepped = put_away(&third, soon);
    TRUE(!stepped.ready);
    EQ(0, open_any().answer->session_count);
    TRUE(reply(b, NULL)->accepted);
    struct talk last = open_any();
    CODE(0, finish(&last, "all answered"));
    EQ(0, open_waits(t, "s"));
}

test_case(wait_a_timer_is_the_sessions_ready_time_and_never_begins_again)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec timer = new_wait(t, HF_WAIT_TIMER, "2");
    hf_ms due = timer.deadline_at;
    put_away(&talk, timer);
    CODE(0, t->code);
    SAME("waiting_external", row(talk.turn_id)->status);
    EQ(due, head("s")->ready_at);
    advance(1800000);
    EQ(0, sweep().timed_out);
    EQ(0, open_any().answer->session_count);
    struct talk early = open_id("s"); /* by id it is taken up before its time */
    SAME("open", early.answer->turn->waits[0].state);
    timer.deadline_at = t->wall + 3600000;
    put_away(&early, timer);
    EQ(due, head("s")->ready_at); /* the first due time counts */
    advance(1800000);
    struct talk later = open_any();
    SAME(talk.turn_id, later.turn_id);
    SAME("resolved", later.answer->turn->waits[0].state);
    IS("running", talk.turn_id);
    CODE(0, finish(&later, "awake"));
}

test_case(wait_a_message_does_not_wake_a_turn_that_waits)
{
    struct talk talk = waiting_talk(t, "s");
    const char *next = send_id("s", "more");
    EQ(0, head("s")->ready_at);
    EQ(0, open_any().answer->session_count);
    approve(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1"));
    struct talk later = open_any();
    CODE(0, finish(&later, "first"));
    SAME(next, open_any().turn_id);
}

test_case(wait_put_away_repeats_without_a_lease)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct talk before = talk;
    put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/c/1"));
    CODE(0, t->code);
    struct hf_session_stepped again = put_away(&before,
                                               new_wait(t, HF_WAIT_APPROVAL, "1/c/1"));
    CODE(0, t->code);
    TRUE(again.repeated);
    EQ(1, count_events(talk.turn_id, "waiting_set"));
    put_away(&talk,
             new_wait(t, HF_WAIT_APPROVAL, "2/c/1")); /* another step needs the lease */
    CODE(HF_ESESSIONLOST, t->code);
}

/* ---- deadlines ----------------------------------------------------------------------- */

test_case(wait_a_deadline_does_what_its_wait_says)
{
    static const struct {
        enum hf_wait_policy policy;
        const char *outcome;
        const char *unit;
    } rows[] = {
        { HF_AT_DEADLINE_RESULT, "{\"kind\":\"timeout\"}", "queued" },
        { HF_AT_DEADLINE_APPROVE, "{\"kind\":\"approve\"}", "queued" },
        { HF_AT_DEADLINE_DENY,
          "{\"kind\":\"deny\",\"reason\":\"no answer came in time\"}", "queued" },
        { HF_AT_DEADLINE_FAIL_TURN, "{\"kind\":\"timeout\"}", "timeout" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *session = say("s%zu", i);
        kit_session(t, session);
        send(session, NULL, "go");
        struct talk talk = open_id(session);
        struct hf_wait_spec wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
        wait.policy = rows[i].policy;
        put_away(&talk, wait);
        advance(3599999);
        EQ(0, sweep().timed_out);
        IS("waiting_user", talk.turn_id);
        advance(1);
        EQ(1, sweep().timed_out);
        EQ(0, sweep().timed_out);
        const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
        SAME("timed_out", wait_of(id)->state);
        SAME(rows[i].outcome, wait_of(id)->outcome);
        IS(rows[i].unit, talk.turn_id);
        TRUE(!approve(id)->accepted);
        struct talk later = open_any();
        SAME(session, later.session_id);
        CODE(0, finish_as(t, &later,
                          same(rows[i].unit, "timeout") ? HF_STATUS_TIMEOUT
                                                        : HF_STATUS_DONE));
    }
}

test_case(wait_a_turn_that_failed_at_a_deadline_is_ended_by_its_next_owner)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    const char *next = send_id("s", "next");
    struct talk talk = open_any();
    step_with(&talk, record("asked"));
    struct hf_wait_spec wait = new_wait(t, HF_WAIT_TOOL, "1/c/1");
    wait.policy = HF_AT_DEADLINE_FAIL_TURN;
    put_away(&talk, wait, new_wait(t, HF_WAIT_APPROVAL, "1/d/1"));
    wait_id(t, &talk, HF_WAIT_APPROVAL, "1/d/1");
    advance(3600000);
    sweep();
    IS("timeout", talk.turn_id);
    EQ(0, open_waits(t, "s"));
    struct talk later = open_any();
    SAME(talk.turn_id, later.turn_id); /* before any other turn */
    EQ(2, later.step);
    SAME("timeout", later.answer->turn->inputs[0].status);
    CODE(HF_ESUPERSEDED, finish(&later, "as if nothing were"));
    CODE(0, step_with(&later, record("the call got no answer")));
    CODE(0, finish_as(t, &later, HF_STATUS_TIMEOUT));
    IS("timeout", talk.turn_id);
    EQ(2, head("s")->record_count);
    SAME(next, open_any().turn_id);
}

/* Its inputs are queued when the deadline passes: its next owner learns it from the wait. */
test_case(wait_a_deadline_fails_a_turn_that_another_answer_has_queued)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec fails = new_wait(t, HF_WAIT_APPROVAL, "1/b/1");
    struct hf_wait_spec later = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    fails.policy = HF_AT_DEADLINE_FAIL_TURN;
    later.deadline_at = t->wall + 86400000;
    put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"), fails, later);
    TRUE(approve(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1"))->accepted);
    advance(3600000);
    EQ(1, sweep().timed_out);
    EQ(0, open_waits(t, "s"));
    IS("queued", talk.turn_id);
    const struct hf_wait *wait = wait_of(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/b/1"));
    SAME("timed_out", wait->state);
    SAME("fail_turn", wait->policy);
    struct talk next = open_any();
    EQ(3, next.answer->turn->wait_count);
    CODE(0, finish_as(t, &next, HF_STATUS_TIMEOUT));
    IS("timeout", talk.turn_id);
}

test_case(wait_a_deadline_passes_to_the_next_answerer)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    wait.answerer = "anna";
    wait.policy = HF_AT_DEADLINE_NEXT;
    wait.next_answerer = "boss";
    wait.next_ms = 60000;
    wait.next_policy = HF_AT_DEADLINE_DENY;
    put_away(&talk, wait);
    CODE(0, t->code);
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    t->who.actor = "boss";
    approve(id);
    CODE(HF_EANSWERER, t->code);
    advance(3600000);
    EQ(1, sweep().escalated);
    SAME("open", wait_of(id)->state);
    SAME("boss", wait_of(id)->answerer);
    SAME("deny", wait_of(id)->policy);
    EQ(t->wall + 60000, wait_of(id)->deadline_at);
    EQ(t->wall + 60000, row(talk.turn_id)->deadline_at);
    EQ(1, count_events(talk.turn_id, "escalated"));
    t->who.actor = "anna";
    approve(id);
    CODE(HF_EANSWERER, t->code);
    IS("waiting_user", talk.turn_id);
    t->who.actor = "boss";
    TRUE(approve(id)->accepted);
}

test_case(wait_escalates_once_and_stays_open)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    wait.escalate_at = t->wall + 600000;
    wait.escalate = "work:page";
    put_away(&talk, wait);
    advance(600000);
    EQ(1, sweep().escalated);
    EQ(0, sweep().escalated);
    IS("waiting_user", talk.turn_id);
    EQ(1, count_events(talk.turn_id, "escalated"));
    EQ(1, count_of(list(.kind = "page")));
    advance(3000000);
    EQ(1, sweep().timed_out);
    IS("queued", talk.turn_id);
}

test_case(wait_rows_of_sessions_are_never_due_by_themselves)
{
    struct talk talk = waiting_talk(t, "s");
    struct hf_sweep_report report = sweep();
    EQ(0, report.looked_at);
    EQ(t->wall + 3600000, report.next_at);
    advance(3600000);
    report = sweep();
    EQ(1, report.looked_at); /* the wait, and not its unit */
    EQ(0, report.next_at);
    EQ(0, sweep().looked_at);
    IS("queued", talk.turn_id);
}

/* ---- revoking ------------------------------------------------------------------------ */

test_case(wait_revocation_is_for_good)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const char *unopened = wait_id(t, &talk, HF_WAIT_TOOL, "9/x/1");
    const char *key = key_of(t, id), *other = key_of(t, unopened);
    EQ(1, revoke_by(.session_id = "s")->revoked);
    CODE(0, t->code);
    EQ(0, revoke_by(.session_id = "s", .turn_id = talk.turn_id)->revoked);
    SAME("cancelled", wait_of(id)->state);
    SAME("{\"kind\":\"cancelled\"}", wait_of(id)->outcome);
    IS("queued", talk.turn_id); /* the turn continues with that outcome */
    resolve_by(.key = key, .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    resolve_by(.key = other, .word = HF_ANSWER_OK);
    CODE(HF_EWAITKEY, t->code);
    TRUE(!approve(id)->accepted); /* by id an operator is told of it */
    struct talk later = open_any();
    struct hf_session_stepped stepped = put_away(&later,
                                                 new_wait(t, HF_WAIT_TOOL, "9/x/1"));
    TRUE(stepped.ready); /* opened as cancelled */
    SAME("cancelled", wait_of(unopened)->state);
    revoke_by(.session_id = "none");
    CODE(HF_ENOTFOUND, t->code);
    revoke_by(.session_id = "s", .turn_id = "none");
    CODE(HF_ENOTFOUND, t->code);
}

test_case(wait_one_is_revoked_alone)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"),
             new_wait(t, HF_WAIT_APPROVAL, "1/b/1"));
    const char *a = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1");
    EQ(1, revoke_by(.wait_id = a, .reason = "by mistake")->revoked);
    EQ(0, revoke_by(.wait_id = a)->revoked);
    SAME("{\"kind\":\"cancelled\",\"reason\":\"by mistake\"}", wait_of(a)->outcome);
    EQ(1, open_waits(t, "s"));
    TRUE(approve(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/b/1"))->accepted);
}

test_case(wait_a_timer_is_not_revoked)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec pause = new_wait(t, HF_WAIT_TIMER, "2");
    put_away(&talk, pause, new_wait(t, HF_WAIT_APPROVAL, "1/a/1"));
    const char *timer = wait_id(t, &talk, HF_WAIT_TIMER, "2");
    const char *before = picture();
    revoke_by(.wait_id = timer);
    CODE(HF_EINVAL, t->code);
    SAME("wait_id", t->err.field);
    UNCHANGED(before);
    EQ(1, revoke_by(.session_id = "s", .reason = "all")->revoked); /* the approval */
    SAME("{\"kind\":\"cancelled\",\"reason\":\"all\"}",
         wait_of(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/a/1"))->outcome);
    SAME("open", wait_of(timer)->state);
    struct talk second = open_any();
    TRUE(!put_away(&second, pause)
              .ready); /* otherwise workers would spin until it is due */
    EQ(pause.deadline_at, head("s")->ready_at);
    EQ(0, revoke_by(.session_id = "s", .turn_id = talk.turn_id)->revoked);
    struct talk third = open_any();
    struct hf_wait_spec next = new_wait(t, HF_WAIT_TIMER, "3"); /* after the revocation */
    next.deadline_at = t->wall + 60000;
    TRUE(!put_away(&third, next, pause).ready);
    SAME("open", wait_of(wait_id(t, &talk, HF_WAIT_TIMER, "3"))->state);
    EQ(t->wall + 60000, head("s")->ready_at);
    advance(60000);
    struct talk last = open_any();
    CODE(0, finish(&last, "done"));
    SAME("cancelled", wait_of(timer)->state); /* with its turn */
}

test_case(wait_a_revocation_holds_in_a_store_that_was_reopened)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const char *key = key_of(t, id);
    EQ(1, revoke_by(.session_id = "s")->revoked);
    reopen();
    resolve_by(.key = key, .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    TRUE(!approve(id)->accepted);
    SAME("cancelled", open_any().answer->turn->waits[0].state);
}

test_case(wait_a_revocation_leaves_a_cancel_that_is_pending)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    step_away(AT(t), &talk,
              (struct hf_wait_spec[]){ new_wait(t, HF_WAIT_APPROVAL, "1/c/1") }, 1,
              false);
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s", talk.turn_id));
    EQ(1, revoke_by(.session_id = "s")->revoked);
    IS("running", talk.turn_id);
    TRUE(head("s")->cancel_request != NULL);
    TRUE(put_away(&talk, new_wait(t, HF_WAIT_APPROVAL, "1/c/1")).ready);
    struct talk later = open_any();
    CODE(HF_ECANCELASKED, finish(&later, "done all the same"));
    CODE(0, finish_as(t, &later, HF_STATUS_CANCELLED));
    struct talk waits = waiting_talk(t, "s2");
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s2", waits.turn_id));
    EQ(0, revoke_by(.session_id = "s2")->revoked); /* the cancel has closed it */
    IS("cancelled", waits.turn_id);
}

/* ---- keys ---------------------------------------------------------------------------- */

test_case(wait_keys_are_stable_and_answer_from_a_cold_process)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const char *key = key_of(t, id);
    TRUE(begins(key, "hfw1."));
    reopen();
    SAME(key, key_of(t, id));
    const struct hf_wait_answer *got = resolve_by(.key = key, .word = HF_ANSWER_APPROVE);
    CODE(0, t->code);
    TRUE(got->accepted);
    TRUE(!resolve_by(.key = key, .word = HF_ANSWER_DENY)->accepted);
    reopen();
    struct talk later = open_any();
    SAME("{\"kind\":\"approve\"}", later.answer->turn->waits[0].outcome);
}

test_case(wait_a_bad_key_gets_one_answer_and_writes_nothing)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const char *unopened = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/d/1");
    const char *key = key_of(t, id), *good = key_of(t, unopened);
    const char *before = picture();
    size_t len = strlen(key);
    char *text = kit_memory(t, len + 2);
    const char *message = NULL;
    for (size_t i = 0; i < len && !t->failed; i++) {
        memcpy(text, key, len + 1);
        text[i] = text[i] == '1' ? '2' : '1';
        resolve_by(.key = text, .word = HF_ANSWER_APPROVE);
        CODE(HF_EWAITKEY, t->code);
        message = message ? message : say("%s", t->err.message);
        SAME(message, t->err.message);
    }
    /* The MAC of one wait does not answer another. */
    memcpy(text, key, len + 1);
    memcpy(text + len - 64, good + len - 64, 64);
    resolve_by(.key = text, .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    resolve_by(.key = "", .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    UNCHANGED(before);
    SAME("open", wait_of(id)->state);
    wait_of(unopened);
    CODE(HF_ENOTFOUND, t->code);
}

test_case(wait_two_secrets_may_be_valid)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    const char *old = key_of(t, id);
    CODE(0, hf_wait_rotate(t->store, &t->who, 600000, NULL));
    const char *new_key = key_of(t, id);
    TRUE(!same(old, new_key));
    TRUE(resolve_by(.key = old, .word = HF_ANSWER_APPROVE)->accepted);
    TRUE(!resolve_by(.key = new_key, .word = HF_ANSWER_APPROVE)->accepted);
    CODE(0, t->code);
    advance(600000);
    resolve_by(.key = old, .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
    CODE(0, hf_wait_rotate(t->store, &t->who, 0, NULL));
    resolve_by(.key = new_key, .word = HF_ANSWER_APPROVE);
    CODE(HF_EWAITKEY, t->code);
}

/* ---- bad input ----------------------------------------------------------------------- */

test_case(wait_bad_input_names_the_field_and_writes_nothing)
{
    struct talk talk = waiting_talk(t, "s");
    kit_session(t, "s2");
    send("s2", NULL, "go");
    struct talk other = open_id("s2");
    const char *before = picture();
    struct hf_wait_spec wait = new_wait(t, HF_WAIT_TOOL, "1/c/1");
    wait.policy = HF_AT_DEADLINE_NONE;
    put_away(&other, wait);
    CODE(HF_EINVAL, t->code);
    SAME("policy", t->err.field);
    wait.policy = HF_AT_DEADLINE_DENY;
    put_away(&other, wait);
    SAME("policy", t->err.field);
    wait = new_wait(t, HF_WAIT_SIGNAL, "no spaces");
    put_away(&other, wait);
    SAME("name", t->err.field);
    wait = new_wait(t, HF_WAIT_TIMER, "1");
    wait.deadline_at = 0;
    put_away(&other, wait);
    SAME("deadline_at", t->err.field);
    wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    wait.policy = HF_AT_DEADLINE_NEXT;
    put_away(&other, wait);
    SAME("next_policy", t->err.field);
    wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    wait.asked = "[1]";
    put_away(&other, wait);
    SAME("asked", t->err.field);
    step_away(AT(t), &other, NULL, 0, true);
    SAME("waits", t->err.field);
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    reply(id, NULL);
    CODE(HF_EINVAL, t->code);
    SAME("answer", t->err.field);
    resolve_by(.wait_id = id, .word = HF_ANSWER_APPROVE, .value = "{\"n\":1}");
    CODE(HF_EINVAL, t->code); /* no edits were allowed */
    SAME("value", t->err.field);
    resolve_by(.wait_id = "nothing", .word = HF_ANSWER_APPROVE);
    CODE(HF_ENOTFOUND, t->code);
    resolve_by(.word = HF_ANSWER_APPROVE);
    SAME("wait_id", t->err.field);
    UNCHANGED(before);
    SAME("open", wait_of(id)->state);
}

test_case(wait_edited_arguments_must_fit)
{
    kit_session(t, "s");
    send("s", NULL, "go");
    struct talk talk = open_any();
    struct hf_wait_spec wait = new_wait(t, HF_WAIT_APPROVAL, "1/c/1");
    wait.asked = "{\"question\":\"pay?\",\"edits\":{\"type\":\"object\",\"properties\":"
                 "{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}}";
    put_away(&talk, wait);
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    resolve_by(.wait_id = id, .word = HF_ANSWER_APPROVE, .value = "{\"n\":\"x\"}");
    CODE(HF_EINVAL, t->code);
    SAME("value", t->err.field);
    SAME("open", wait_of(id)->state);
    const struct hf_wait_answer *got =
        resolve_by(.wait_id = id, .word = HF_ANSWER_APPROVE, .value = "{ \"n\": 2 }");
    CODE(0, t->code);
    SAME("{\"arguments\":{\"n\":2},\"kind\":\"approve\"}", first(got)->outcome);
}

/* ---- turn control -------------------------------------------------------------------- */

test_case(turn_cancel_before_it_begins_cancels_its_input)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one"), *two = send_id("s", "two");
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s", one));
    CODE(0, t->code);
    IS("cancelled", one);
    EQ(HF_TURN_CANCEL_ALREADY, cancel_turn(t, "s", one));
    SAME(two, open_any().turn_id);
    cancel_turn(t, "s", "00000000-0000-7000-8000-000000000000");
    CODE(HF_ENOTFOUND, t->code);
    kit_session(t, "s2");
    cancel_turn(t, "s2", two); /* of another session */
    CODE(HF_ENOTFOUND, t->code);
}

test_case(turn_cancel_of_a_running_turn_is_seen_by_every_owner_and_wins_over_completion)
{
    kit_session(t, "s");
    const char *turn = send_id("s", "go");
    struct talk talk = open_any();
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s", turn));
    EQ(HF_TURN_CANCEL_ALREADY, cancel_turn(t, "s", turn));
    IS("running", turn);
    struct hf_session_stepped stepped = step_away(AT(t), &talk, NULL, 0, false);
    TRUE(stepped.cancel_requested);
    CODE(HF_ECANCELASKED, finish(&talk, "done all the same"));
    advance(60000);
    struct talk later = open_any(); /* a later owner */
    SAME(turn, later.turn_id);
    TRUE(later.answer->sessions->cancel_request != NULL);
    TRUE(contains(later.answer->sessions->cancel_request, "\"reason\":\"stop\""));
    CODE(0, finish_as(t, &later, HF_STATUS_CANCELLED));
    IS("cancelled", turn);
    SAME(NULL, head("s")->cancel_request);
    EQ(HF_TURN_CANCEL_COMPLETED, cancel_turn(t, "s", turn));
}

test_case(turn_cancel_after_completion_says_so)
{
    kit_session(t, "s");
    const char *turn = send_id("s", "go");
    struct talk talk = open_any();
    CODE(0, finish(&talk, "done"));
    EQ(HF_TURN_CANCEL_COMPLETED, cancel_turn(t, "s", turn));
    IS("done", turn);
    send("s", NULL, "next");
    struct talk next = open_any(); /* the gate of one turn is not that of the next */
    SAME(NULL, next.answer->sessions->cancel_request);
    EQ(HF_TURN_CANCEL_COMPLETED, cancel_turn(t, "s", turn));
    CODE(0, finish(&next, "done"));
}

test_case(turn_cancel_of_a_waiting_turn_ends_its_waits_and_units_at_once)
{
    struct talk talk = waiting_talk(t, "s");
    const char *next = send_id("s", "next");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s", talk.turn_id));
    IS("cancelled", talk.turn_id);
    SAME("cancelled", wait_of(id)->state);
    EQ(t->wall, head("s")->ready_at);
    TRUE(!approve(id)->accepted);
    EQ(HF_TURN_CANCEL_ALREADY, cancel_turn(t, "s", talk.turn_id));
    struct talk later = open_any();
    SAME(talk.turn_id, later.turn_id); /* the turn is ended before the next one */
    SAME("cancelled", later.answer->turn->inputs[0].status);
    EQ(1, later.step);
    CODE(HF_ECANCELASKED, finish(&later, "no"));
    CODE(0, finish_as(t, &later, HF_STATUS_CANCELLED));
    EQ(1, head("s")->head_revision);
    SAME(next, open_any().turn_id);
}

test_case(turn_cancel_by_the_unit_cancels_a_waiting_turn_too)
{
    struct talk talk = waiting_talk(t, "s");
    const char *id = wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1");
    CODE(0, cancel(talk.turn_id)->code);
    IS("cancelled", talk.turn_id);
    SAME("cancelled", wait_of(id)->state);
    struct talk later = open_any();
    SAME(talk.turn_id, later.turn_id);
    const char *before = picture();
    CODE(HF_ECANCELASKED, finish(&later, "as if nothing were"));
    CODE(HF_ESUPERSEDED, finish_as(t, &later, HF_STATUS_FAILED));
    UNCHANGED(before);
    CODE(0, finish_as(t, &later, HF_STATUS_CANCELLED));
    EQ(0, open_any().answer->session_count);
}

test_case(turn_cancel_while_it_runs_is_kept_by_a_put_away)
{
    kit_session(t, "s");
    const char *turn = send_id("s", "go");
    struct talk talk = open_any();
    EQ(HF_TURN_CANCEL_REQUESTED, cancel_turn(t, "s", turn));
    struct hf_session_stepped stepped = put_away(&talk,
                                                 new_wait(t, HF_WAIT_APPROVAL, "1/c/1"));
    CODE(0, t->code);
    TRUE(stepped.ready);
    struct talk later = open_any();
    TRUE(later.answer->sessions->cancel_request != NULL);
    CODE(0, finish_as(t, &later, HF_STATUS_CANCELLED));
    SAME("cancelled", wait_of(wait_id(t, &talk, HF_WAIT_APPROVAL, "1/c/1"))->state);
}

test_case(wait_an_owner_that_dies_while_it_ends_a_turn_is_replaced)
{
    struct talk talk = waiting_talk(t, "s");
    cancel_turn(t, "s", talk.turn_id);
    for (int i = 0; i < 4; i++) {
        struct talk dies = open_any();
        SAME(talk.turn_id, dies.turn_id);
        advance(60000);
    }
    open_any();
    advance(60000);
    EQ(0, open_any().answer->session_count); /* poison: the turn is given up */
    EQ(0, head("s")->head_revision);
    SAME(NULL, head("s")->turn_id);
    send("s", NULL, "next");
    struct talk next = open_any();
    CODE(0, finish(&next, "done"));
}
