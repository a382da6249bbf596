/* Sessions: creating, sending, claiming. The lines of durable-state.md 3.1 that are about what a
 * lease is for, and 2.4. The lease alone is in session.c. */

#include <string.h>

#include "conform/process_kit.h"
#include "conform/session_kit.h"

test_case(session_create_is_idempotent_and_the_first_meta_stands)
{
    const struct hf_session_answer *made =
        new_session(.session_id = "s", .config = "{\"b\":1,\"a\":2}",
                    .relation = HF_RELATION_CHILD, .parent_id = "p",
                    .cause = "{\"why\":\"asked\"}", .labels = "{\"team\":\"x\"}");
    CODE(0, t->code);
    TRUE(made->created);
    EQ(1, made->session_count);
    SAME("s", made->sessions->session_id);
    SAME("a", made->sessions->agent);
    SAME("{\"a\":2,\"b\":1}", made->sessions->config);
    SAME("child", made->sessions->relation);
    SAME("p", made->sessions->parent_id);
    SAME("{\"why\":\"asked\"}", made->sessions->cause);
    SAME("{\"team\":\"x\"}", made->sessions->labels);
    EQ(0, made->sessions->head_revision);
    EQ(0, made->sessions->record_count);
    const struct hf_session_answer *again =
        new_session(.session_id = "s", .config = "{\"a\":2,\"b\":1}",
                    .relation = HF_RELATION_CHILD, .parent_id = "p",
                    .cause = "{\"why\":\"asked\"}", .labels = "{\"team\":\"x\"}");
    CODE(0, t->code);
    TRUE(!again->created);
    new_session(.session_id = "s", .relation = HF_RELATION_CHILD, .parent_id = "q");
    CODE(HF_ECONFLICT, t->code);
    t->who.tenant = "other";
    new_session(.session_id = "s", .config = "{\"a\":2,\"b\":1}",
                .relation = HF_RELATION_CHILD, .parent_id = "p",
                .cause = "{\"why\":\"asked\"}", .labels = "{\"team\":\"x\"}");
    CODE(HF_ECONFLICT, t->code); /* ids are global, and the tenant is content */
    SAME("p", head("s")->parent_id);
    t->who.tenant = NULL;
    TRUE(new_session(.agent = "b")->sessions->session_id[0] != 0); /* a fresh id */
}

test_case(session_bad_input_names_the_field_and_writes_nothing)
{
    new_session(.session_id = "");
    CODE(HF_EINVAL, t->code);
    SAME("session_id", t->err.field);
    new_session(.session_id = "s", .agent = "");
    SAME("agent", t->err.field);
    new_session(.session_id = "s", .relation = (enum hf_relation)9);
    SAME("relation", t->err.field);
    new_session(.session_id = "s", .relation = HF_RELATION_FORK);
    SAME("parent_id", t->err.field);
    new_session(.session_id = "s", .config = "[1]");
    SAME("config", t->err.field);
    new_session(.session_id = "s", .labels = "{\"n\":1}");
    SAME("labels", t->err.field);
    head("s");
    CODE(HF_ENOTFOUND, t->code);
    send("s", "k", "hello");
    CODE(HF_ENOTFOUND, t->code);
    open_id("s");
    CODE(HF_ENOTFOUND, t->code);
    EQ(0, count_of(list(.queue = "session")));
}

test_case(session_send_makes_one_unit_that_no_queue_sees)
{
    kit_session(t, "s");
    const struct hf_item *sent = send("s", "k1", "hello");
    CODE(0, t->code);
    TRUE(sent->created);
    SAME("conversation", sent->work.source_system);
    SAME("input", sent->work.kind);
    SAME("session", sent->work.queue);
    SAME("lane", sent->work.gate);
    SAME("queued", sent->work.status);
    SAME("s", sent->work.session_id);
    SAME(NULL, sent->work.lane_key);
    SAME(NULL, sent->work.disposition);
    const struct hf_item *again = send("s", "k1", "hello");
    TRUE(!again->created);
    SAME(sent->work.work_id, again->work.work_id);
    send("s", "k1", "other");
    CODE(HF_ECONFLICT, t->code);
    SAME("source_key", t->err.field);
    EQ(0, count_of(claim_many(.owner = "w", .queue = "session", .limit = 9)));
    CODE(HF_ETRANSITION, claim(.owner = "w", .id = sent->work.work_id)->code);
    EQ(1, inputs("s")->input_count);
    TRUE(head("s")->ready_at > 0);
    TRUE(send("s", NULL, "hello")->created); /* without a key it is another message */
    TRUE(send("s", NULL, "hello")->created);
    EQ(3, inputs("s")->input_count);
}

test_case(session_send_of_a_blank_text_is_refused)
{
    kit_session(t, "s");
    send("s", "k", "");
    CODE(HF_EINVAL, t->code);
    SAME("message", t->err.field);
    TRUE(contains(t->err.message, "write a text"));
    send("s", "k", " \\t\\r\\n");
    CODE(HF_EINVAL, t->code);
    EQ(0, inputs("s")->input_count);
    send("s", "k", " .");
    CODE(0, t->code);
}

/* How many inputs of "s" a page after this one has. */
static size_t count_after(struct hf_conform *t, const char *after)
{
    struct hf_session_answer *page = NULL;
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_inputs(t->store, "s", after, 0, &page, kit_err(t)));
    size_t count = page ? page->input_count : 0;
    hf_session_answer_free(page);
    return count;
}

test_case(session_inputs_go_on_after_an_input_of_the_session)
{
    kit_session(t, "s");
    kit_session(t, "u");
    const char *one = send_id("s", "one"), *two = send_id("s", "two");
    const char *foreign = send_id("u", "three");
    EQ(2, count_after(t, NULL));
    EQ(1, count_after(t, one));
    EQ(0, count_after(t, two));
    CODE(0, t->code);
    EQ(0, count_after(t, foreign));
    CODE(HF_EINVAL, t->code);
    SAME("after", t->err.field);
    EQ(0, count_after(t, "absent"));
    CODE(HF_EINVAL, t->code);
}

test_case(session_a_message_may_have_input_bytes_and_no_more)
{
    static const char end[] = "\"}]}}"; /* after the text */
    const size_t most = 1048576, tail = sizeof(end) - 1;
    const char *empty = kit_message(t, "");
    struct hf_answer *answer = NULL;
    char *message = kit_memory(t, most + 2);
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = "s",
                                       .message = message };
    kit_session(t, "s");
    memset(message, 'x', most + 1);
    memcpy(message, empty, strlen(empty) - tail);
    memcpy(message + most + 1 - tail, end, sizeof(end));
    CODE(HF_ETOOBIG, hf_session_send(t->store, &t->who, &request, &answer, &t->err));
    SAME("message", t->err.field);
    TRUE(contains(t->err.message, "1048577 bytes; input_bytes allows 1048576"));
    EQ(0, inputs("s")->input_count);
    memcpy(message + most - tail, end, sizeof(end));
    CODE(0, hf_session_send(t->store, &t->who, &request, &answer, &t->err));
    hf_answer_free(answer);
    EQ(1, inputs("s")->input_count);
    SAME(message, open_any().answer->turn->inputs[0].payload);
}

test_case(session_claim_opens_a_turn_over_the_oldest_input)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one"), *two = send_id("s", "two");
    struct talk talk = open_any();
    CODE(0, t->code);
    SAME("s", talk.session_id);
    SAME(one, talk.turn_id);
    EQ(1, talk.answer->turn->input_count);
    SAME(one, talk.answer->turn->inputs[0].work_id);
    EQ(HF_INPUT_MESSAGE, talk.answer->turn->inputs[0].kind);
    SAME(kit_message(t, "one"), talk.answer->turn->inputs[0].payload);
    EQ(0, talk.answer->turn->base_revision);
    EQ(0, talk.step);
    EQ(1, talk.answer->sessions->lease_fence);
    EQ(30000, talk.answer->sessions->lease_remaining_ms);
    EQ(0, talk.answer->sessions->ready_at);
    IS("running", one);
    IS("queued", two);
    EQ(0, row(one)->lease_expires_at); /* it runs under the session's lease */
    EQ(1, row(one)->attempt_count);
    EQ(1, count_events(one, "claimed"));
    EQ(0, open_any().answer->session_count);
    open_id("s");
    CODE(HF_ESESSIONBUSY, t->code);
    CODE(0, finish(&talk, "answer to one"));
    IS("done", one);
    struct talk next = open_any();
    SAME(two, next.turn_id);
    EQ(1, next.head_revision);
    EQ(1, next.record_count);
    EQ(2, next.answer->sessions->lease_fence);
}

test_case(session_claim_is_by_agent)
{
    new_session(.session_id = "s", .agent = "writer");
    send("s", "k", "hello");
    EQ(0, open_any().answer->session_count);
    static const char *const names[] = { "a", "writer" };
    struct talk talk = open_by(.agents = names, .agent_count = 2);
    SAME("s", talk.session_id);
    open_by(.agents = names, .agent_count = 0);
    CODE(HF_EINVAL, t->code);
    SAME("agents", t->err.field);
}

test_case(session_claim_by_id_takes_one_with_nothing_to_do)
{
    kit_session(t, "s");
    EQ(0, open_any().answer->session_count);
    struct talk talk = open_id("s");
    CODE(0, t->code);
    TRUE(talk.answer->turn == NULL);
    const char *one = send_id("s", "one"); /* comes while it is held */
    EQ(0, head("s")->ready_at);
    EQ(0, open_any().answer->session_count);
    CODE(0, release(&talk));
    SAME(one, open_any().turn_id); /* the release has looked for it */
}

test_case(session_head_is_the_revision_the_count_and_the_digest)
{
    fresh("s");
    CODE(HF_ENOTFOUND, t->code);
    kit_session(t, "s");
    send("s", "k", "one");
    struct talk talk = open_any();
    CODE(0, finish(&talk, "answer"));
    const struct hf_session *seen = fresh("s");
    SAME("s", seen->session_id);
    EQ(1, seen->head_revision);
    EQ(1, seen->record_count);
    EQ(0, memcmp(seen->chain, head("s")->chain, sizeof(seen->chain)));
    SAME("a", seen->agent);
    SAME(NULL, seen->turn_id);
    EQ(0, seen->ready_at);
    SAME(NULL, seen->relation); /* the other members are zero */
    send("s", "k2", "two");
    TRUE(fresh("s")->ready_at > 0);
    struct talk next = open_by(.session_id = "s", .owner = "w");
    SAME(next.turn_id, fresh("s")->turn_id);
    SAME("w", fresh("s")->owner);
}

test_case(session_a_message_that_is_refused_or_repeated_makes_nothing_ready)
{
    kit_session(t, "s");
    send("s", "k", "one");
    struct talk talk = open_any();
    CODE(0, finish(&talk, "answer"));
    EQ(0, head("s")->ready_at);
    TRUE(!send("s", "k", "one")->created);
    EQ(0, head("s")->ready_at);
    send("s", "k", "two");
    CODE(HF_ECONFLICT, t->code);
    EQ(0, head("s")->ready_at);
    TRUE(send("s", "k2", "two")->created);
    TRUE(head("s")->ready_at > 0);
}

test_case(session_a_lease_that_was_ended_is_told_so_again)
{
    kit_session(t, "s");
    struct talk first = open_id("s");
    CODE(0, release(&first));
    CODE(0, release(&first)); /* as after a lost answer */
    CODE(HF_ESESSIONLOST, back(&first));
    send("s", "k", "one");
    struct talk second = open_any();
    CODE(0, release(&first)); /* still the last end, although another owner has it */
    CODE(0, back(&second));
    CODE(0, back(&second));
    CODE(HF_ESESSIONLOST, release(&second));
    CODE(HF_ESESSIONLOST, release(&first)); /* another lease has ended since */
    struct talk third = open_any();
    EQ(2, row(third.turn_id)->attempt_count); /* handed back once */
    CODE(0, finish(&third, "answer"));
    CODE(HF_ESESSIONLOST, back(&second));
    CODE(HF_ESESSIONLOST, release(&third)); /* its commit is the receipt */
}

test_case(session_amnesty_is_for_its_lease_too)
{
    kit_session(t, "s");
    send("s", "k", "one");
    struct talk talk = open_any();
    advance(SEC(30)); /* lapsed at this moment */
    EQ(0, kit_amnesty(AT(t), SEC(10)));
    EQ(1, kit_amnesty(AT(t), SEC(10) + 1));
    EQ(30000, head("s")->lease_remaining_ms);
    EQ(0, open_any().answer->session_count);
    EQ(0, kit_amnesty(AT(t), SEC(10) + 1)); /* it has time */
    CODE(0, finish(&talk, "answer"));
    EQ(1, head("s")->lease_fence);
}

test_case(session_claim_under_a_nonce_is_repeatable)
{
    kit_session(t, "s");
    send("s", "k", "one");
    struct talk first = open_by(.session_id = "s", .owner = "w", .incarnation = "b",
                                .nonce = "n");
    advance(SEC(5));
    struct talk again = open_by(.session_id = "s", .owner = "w", .incarnation = "b",
                                .nonce = "n");
    CODE(0, t->code);
    SAME(first.token, again.token);
    SAME(first.turn_id, again.turn_id);
    EQ(1, row(first.turn_id)->attempt_count);
    struct talk other = open_by(.session_id = "s", .owner = "w", .incarnation = "b",
                                .nonce = "m");
    CODE(0, t->code);
    TRUE(!same(first.token, other.token)); /* rotated; the fence stays */
    EQ(1, other.answer->sessions->lease_fence);
    SAME(first.turn_id, other.turn_id);
    EQ(0, other.answer->turn->inputs[0].crashes);
    CODE(HF_ESESSIONLOST, finish(&first, "x"));
    CODE(0, finish(&other, "x"));
    open_by(.session_id = "s", .owner = "w", .incarnation = "other");
    CODE(0, t->code); /* it is free */
}

test_case(session_claim_by_agents_under_a_nonce_is_repeatable)
{
    static const char *const a[] = { "a" };
    kit_session(t, "s1");
    kit_session(t, "s2");
    kit_session(t, "s3");
    for (int i = 1; i <= 3; i++) {
        send(say("s%d", i), "k", "one");
        advance(1);
    }
    struct talk first = open_by(.agents = a, .agent_count = 1, .owner = "w",
                                .incarnation = "b", .nonce = "n");
    SAME("s1", first.session_id);
    struct talk again = open_by(.agents = a, .agent_count = 1, .owner = "w",
                                .incarnation = "b", .nonce = "n");
    SAME(first.token, again.token);
    SAME(first.turn_id, again.turn_id);
    EQ(1, row(first.turn_id)->attempt_count);
    /* The nonce of another owner is another claim. */
    struct talk other = open_by(.agents = a, .agent_count = 1, .owner = "v",
                                .incarnation = "b", .nonce = "n");
    SAME("s2", other.session_id);
    /* Without an owner the nonce is the owner, too. */
    struct talk alone = open_by(.agents = a, .agent_count = 1, .nonce = "m");
    SAME("s3", alone.session_id);
    SAME(alone.token, open_by(.agents = a, .agent_count = 1, .nonce = "m").token);
    EQ(0, open_any().answer->session_count);
    CODE(0, finish(&first, "answer"));
    EQ(0, open_by(.agents = a, .agent_count = 1, .owner = "w", .incarnation = "b",
                  .nonce = "n")
              .answer->session_count); /* it was used up */
}

test_case(session_lapsed_lease_passes_the_very_turn_on)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one");
    send("s", "k", "two");
    struct talk old = open_any();
    CODE(0, step_with(&old, record("thought")));
    advance(SEC(30) - 1);
    EQ(0, open_any().answer->session_count);
    advance(1);
    struct talk talk = open_any();
    SAME(one, talk.turn_id);
    TRUE(talk.answer->displaced);
    EQ(1, talk.answer->displaced_fence);
    EQ(2, talk.answer->sessions->lease_fence);
    EQ(1, talk.step);
    EQ(1, talk.node_count);
    SAME(say("save of %s after step 1", one), talk.answer->turn->save.at);
    EQ(1, row(one)->attempt_count); /* the same execution continues */
    EQ(1, count_events(one, "session_reclaimed"));
    CODE(HF_ESESSIONLOST, step_with(&old, record("more")));
    CODE(HF_ESESSIONLOST, finish(&old, "late"));
    CODE(0, finish(&talk, "in time"));
    EQ(2, head("s")->record_count);
}

test_case(session_lapsed_lease_with_nothing_to_do_hides_no_other)
{
    kit_session(t, "s");
    kit_session(t, "u");
    open_id("s"); /* its holder is never heard of again */
    advance(SEC(30));
    EQ(0, open_any().answer->session_count);
    CODE(0, t->code);
    SAME(NULL, head("s")->owner);
    EQ(1, head("s")->lease_fence);
    const char *one = send_id("s", "one");
    SAME(one, open_any().turn_id);
}

test_case(session_hand_back_keeps_the_turn_and_spends_nothing)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one");
    struct talk talk = open_any();
    CODE(0, step_with(&talk, record("thought")));
    CODE(HF_ETRANSITION, release(&talk)); /* a turn is open */
    CODE(0, kit_back(AT(t), &talk, SEC(60)));
    IS("queued", one);
    SAME("lane", row(one)->gate);
    EQ(0, row(one)->failures);
    EQ(0, open_any().answer->session_count); /* the turn waits */
    advance(SEC(60));
    struct talk again = open_any();
    SAME(one, again.turn_id);
    EQ(1, again.step);
    EQ(0, again.answer->turn->inputs[0].crashes);
    TRUE(!again.answer->displaced);
    EQ(2, row(one)->attempt_count);
    CODE(0, finish(&again, "done"));
}

test_case(session_crashes_without_a_step_hold_the_input_and_the_session_goes_on)
{
    kit_session(t, "s");
    const char *one = send_id("s", "poison"), *two = send_id("s", "fine");
    struct talk silent = { .step = 0 };
    for (int64_t i = 0; i < HF_MAX_POISON_CRASHES; i++) {
        silent = open_any();
        SAME(one, silent.turn_id);
        EQ(i, silent.answer->turn->inputs[0].crashes);
        advance(SEC(30));
    }
    struct talk talk = open_any();
    SAME(two, talk.turn_id);
    CODE(HF_ESESSIONLOST, finish(&silent, "late")); /* its input was taken from it */
    silent.token = talk.token;
    CODE(HF_ESUPERSEDED, finish(&silent, "late"));
    IS("queued", one);
    SAME("held", row(one)->gate);
    SAME("poison", row(one)->status_reason);
    EQ(1, count_of(list(.gate = "held")));
    CODE(0, finish(&talk, "answer"));
    EQ(0, open_any().answer->session_count);
    CODE(0, change(.verb = HF_VERB_RELEASE, .id = one, .reason = "mended")->code);
    SAME("lane", row(one)->gate);
    struct talk again = open_any();
    SAME(one, again.turn_id);
    EQ(1, again.head_revision);
    EQ(1, again.answer->turn->base_revision); /* on the head as it is now */
    EQ(0, again.answer->turn->inputs[0].crashes);
    CODE(0, finish(&again, "at last"));
    IS("done", one);
    EQ(2, head("s")->record_count);
}

test_case(session_a_new_step_forgets_the_crashes)
{
    kit_session(t, "s");
    const char *one = send_id("s", "slow");
    for (int64_t i = 0; i < 2 * HF_MAX_POISON_CRASHES; i++) {
        struct talk talk = open_any();
        SAME(one, talk.turn_id);
        CODE(0, step_with(&talk, record("a little")));
        advance(SEC(30));
    }
    struct talk talk = open_any();
    EQ(2 * HF_MAX_POISON_CRASHES, talk.step);
    EQ(0, talk.answer->turn->inputs[0].crashes);
}

test_case(session_an_input_is_cancelled_while_queued_and_asked_to_while_it_runs)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one"), *two = send_id("s", "two");
    cancel(one);
    IS("cancelled", one);
    struct talk talk = open_any();
    SAME(two, talk.turn_id);
    CODE(0, cancel(two)->code);
    IS("running", two); /* its holder is told, and ends it */
    struct hf_session_renewal renewal = { .session_id = "s", .token = talk.token };
    CODE(0, hf_session_renew_all(t->store, &renewal, 1, kit_err(t)));
    TRUE(renewal.cancel_requested);
    CODE(0, renewal.code);
    CODE(0, back(&talk));
    CODE(0, cancel(two)->code); /* it is held no more */
    IS("cancelled", two);
    const char *three = send_id("s", "three");
    SAME(three, open_any().turn_id); /* the turn over it is void */
    EQ(0, head("s")->record_count);
}

test_case(session_renewal_is_by_token_and_tells_what_is_lost)
{
    kit_session(t, "s");
    kit_session(t, "u");
    struct talk s = open_id("s"), u = open_id("u");
    advance(SEC(20));
    struct hf_session_renewal both[] = { { .session_id = "s", .token = s.token },
                                         { .session_id = "u", .token = s.token },
                                         { .session_id = "none", .token = u.token },
                                         { .session_id = "u", .token = u.token } };
    CODE(0, hf_session_renew_all(t->store, both, 4, kit_err(t)));
    CODE(0, both[0].code);
    EQ(30000, both[0].lease_remaining_ms);
    CODE(HF_ESESSIONLOST, both[1].code);
    CODE(HF_ESESSIONLOST, both[2].code);
    CODE(0, both[3].code);
    advance(SEC(30));
    CODE(0, hf_session_renew_all(t->store, both, 1, kit_err(t)));
    CODE(HF_ESESSIONLOST, both[0].code); /* it lapsed, though no other claim came */
}

test_case(session_tokens_of_an_older_history_are_refused)
{
    kit_session(t, "s");
    send("s", "k", "one");
    struct talk talk = open_any();
    bump();
    CODE(HF_ESESSIONLOST, step_with(&talk, record("x")));
    CODE(HF_ESESSIONLOST, finish(&talk, "x"));
    EQ(0, open_any().answer->session_count); /* peers wait for the term all the same */
    advance(SEC(30));
    struct talk next = open_any();
    CODE(0, finish(&next, "x"));
}

test_case(session_wakes_are_inputs_and_begin_turns_in_order)
{
    kit_session(t, "s");
    const char *one = send_id("s", "one");
    struct hf_process_spec process = { .identity_kind = "p", .wake_session = "s" };
    struct hf_work_spec unit = { .disposition = HF_DISPOSITION_RERUNNABLE };
    const char *job = kit_register(AT(t), process, unit)->work.work_id;
    cancel(job); /* its end wakes the session */
    EQ(2, inputs("s")->input_count);
    const struct hf_session_input *wake = &inputs("s")->inputs[1];
    EQ(HF_INPUT_WAKE, wake->kind);
    SAME("queued", wake->status);
    SAME("lane", wake->gate);
    SAME("wake", row(wake->work_id)->kind);
    SAME("control", row(wake->work_id)->source_system);
    SAME(job, row(wake->work_id)->parent_work_id);
    EQ(0, count_of(claim_many(.owner = "w", .queue = "session:s")));
    struct talk talk = open_any();
    SAME(one, talk.turn_id);
    CODE(0, finish(&talk, "answer"));
    talk = open_any();
    SAME(wake->work_id, talk.turn_id);
    EQ(HF_INPUT_WAKE, talk.answer->turn->inputs[0].kind);
    TRUE(contains(talk.answer->turn->inputs[0].payload, job));
    CODE(0, finish(&talk, "noted"));
    IS("done", wake->work_id);
}

test_case(session_a_wake_while_it_is_held_is_seen_by_the_release)
{
    kit_session(t, "s");
    struct talk talk = open_id("s");
    struct hf_process_spec process = { .identity_kind = "p", .wake_session = "s" };
    struct hf_work_spec unit = { .disposition = HF_DISPOSITION_RERUNNABLE };
    cancel(kit_register(AT(t), process, unit)->work.work_id);
    EQ(0, open_any().answer->session_count);
    CODE(0, release(&talk));
    EQ(HF_INPUT_WAKE, open_any().answer->turn->inputs[0].kind);
}
