/* The effect journal: the lines of durable-state.md 3.9 and turn-and-runtime.md 7.5 that a store
 * answers for. */

#include "conform/session_kit.h"

#include <string.h>

#define SPAN(text) ((struct hf_span){ (text), sizeof(text) - 1 })

static struct talk begun(struct hf_conform *t, const char *session_id)
{
    kit_session(t, session_id);
    send(session_id, NULL, "question");
    return open_any();
}

static struct hf_effect_entry intent(const char *key, enum hf_recovery recovery)
{
    bool call = strchr(key, '/') != NULL;
    return (struct hf_effect_entry){ .key = key,
                                     .kind = call ? "tool_call" : "llm_call",
                                     .recovery = recovery,
                                     .attempt = call ? 1 : 0,
                                     .envelope = SPAN("{\"kind\":\"tool_call\"}") };
}

static struct hf_effect_settled outcome(const char *key, enum hf_entry_status status)
{
    return (struct hf_effect_settled){ .key = key,
                                       .status = status,
                                       .outcome = SPAN("{\"ok\":1}") };
}

/* A step with one intent, one outcome, or both. */
static int store_effect(struct hf_conform *t, struct talk *talk,
                        const struct hf_effect_entry *begin,
                        const struct hf_effect_settled *settle)
{
    struct hf_session_step step = kit_step_of(t, talk);
    step.begun = begin;
    step.begun_count = begin ? 1 : 0;
    step.settled = settle;
    step.settled_count = settle ? 1 : 0;
    return kit_store_step(t, talk, step);
}

static int begin_effect(struct hf_conform *t, struct talk *talk, const char *key)
{
    struct hf_effect_entry entry = intent(key, HF_RECOVERY_KEYED);
    return store_effect(t, talk, &entry, NULL);
}

static int settle_effect(struct hf_conform *t, struct talk *talk, const char *key,
                         enum hf_entry_status status)
{
    struct hf_effect_settled settled = outcome(key, status);
    return store_effect(t, talk, NULL, &settled);
}

static size_t open_count(struct hf_conform *t)
{
    const struct hf_session_answer *loaded = load(.session_id = "s");
    return loaded->turn ? loaded->turn->entry_count : 0;
}

test_case(d39_an_effect_is_begun_once_and_settled_once)
{
    struct talk talk = begun(t, "s");
    CODE(HF_EEFFECT, settle_effect(AT(t), &talk, "1", HF_ENTRY_DONE)); /* never begun */
    SAME("effects", t->err.field);
    CODE(0, begin_effect(AT(t), &talk, "1"));
    CODE(HF_EEFFECT, begin_effect(AT(t), &talk, "1"));
    CODE(0, settle_effect(AT(t), &talk, "1", HF_ENTRY_DONE));
    CODE(HF_EEFFECT, settle_effect(AT(t), &talk, "1", HF_ENTRY_FAILED));
    CODE(HF_EEFFECT, begin_effect(AT(t), &talk, "1")); /* a settled key is used up */
    EQ(2, load(.session_id = "s")->turn->step);        /* refused steps wrote nothing */
    struct hf_effect_entry twice[] = { intent("2", HF_RECOVERY_SAFE),
                                       intent("2", HF_RECOVERY_SAFE) };
    struct hf_session_step step = kit_step_of(t, &talk);
    step.begun = twice;
    step.begun_count = 2;
    CODE(HF_EEFFECT, kit_store_step(AT(t), &talk, step));
    EQ(0, open_count(t));
}

test_case(d39_a_repeated_step_begins_and_settles_nothing_again)
{
    struct talk talk = begun(t, "s");
    struct talk before = talk;
    CODE(0, begin_effect(AT(t), &talk, "1"));
    CODE(0, begin_effect(AT(t), &before, "1")); /* its answer was lost */
    before = talk;
    CODE(0, settle_effect(AT(t), &talk, "1", HF_ENTRY_DONE));
    CODE(0, settle_effect(AT(t), &before, "1", HF_ENTRY_DONE));
    EQ(2, load(.session_id = "s")->turn->step);
    EQ(0, open_count(t));
}

test_case(d39_the_next_owner_is_shown_what_is_open_and_what_waits_for_a_retry)
{
    struct talk talk = begun(t, "s");
    struct hf_effect_entry begin[] = { intent("2/c/1", HF_RECOVERY_ASK),
                                       intent("2/b/1", HF_RECOVERY_SAFE),
                                       intent("2/a/1", HF_RECOVERY_PROBE) };
    struct hf_session_step step = kit_step_of(t, &talk);
    step.begun = begin;
    step.begun_count = 3;
    CODE(0, kit_store_step(AT(t), &talk, step));
    CODE(0, settle_effect(AT(t), &talk, "2/a/1", HF_ENTRY_DONE));
    struct hf_effect_settled failed = outcome("2/b/1", HF_ENTRY_FAILED);
    failed.due_at = t->wall + SEC(5);
    CODE(0, store_effect(AT(t), &talk, NULL, &failed));
    advance(SEC(31));
    struct talk next = open_any(); /* the lease has lapsed */
    EQ(2, next.answer->sessions[0].lease_fence);
    const struct hf_session_answer *loaded = load(.session_id = "s");
    EQ(2, loaded->turn->entry_count);
    const struct hf_effect_entry *entries = loaded->turn->entries;
    SAME("2/b/1", entries[0].key);
    EQ(HF_ENTRY_FAILED, entries[0].status);
    EQ(failed.due_at, entries[0].due_at); /* the takeover did not move it */
    SAME("{\"ok\":1}", entries[0].outcome.at);
    SAME("2/c/1", entries[1].key);
    EQ(HF_ENTRY_STARTED, entries[1].status);
    EQ(HF_RECOVERY_ASK, entries[1].recovery);
    SAME("tool_call", entries[1].kind);
    SAME("{\"kind\":\"tool_call\"}", entries[1].envelope.at);
    EQ(1, entries[1].attempt);
    EQ(1, entries[1].fence); /* of the claim that began it */
}

test_case(d39_a_lost_or_lapsed_lease_settles_nothing)
{
    struct talk old = begun(t, "s");
    CODE(0, begin_effect(AT(t), &old, "1"));
    advance(SEC(30)); /* lapsed, though no other claim came */
    CODE(HF_ESESSIONLOST, settle_effect(AT(t), &old, "1", HF_ENTRY_DONE));
    struct talk next = open_any();
    CODE(HF_ESESSIONLOST, settle_effect(AT(t), &old, "1", HF_ENTRY_DONE));
    EQ(1, open_count(t));
    CODE(0, settle_effect(AT(t), &next, "1", HF_ENTRY_DONE)); /* under the same key */
    EQ(0, open_count(t));
}

test_case(d39_a_renewed_lease_keeps_a_long_effect)
{
    struct talk talk = begun(t, "s");
    CODE(0, begin_effect(AT(t), &talk, "1"));
    for (int i = 0; i < 6; i++) {
        struct hf_session_renewal renewal = { .session_id = "s", .token = talk.token };
        advance(SEC(20));
        CODE(0, hf_session_renew_all(t->store, &renewal, 1, NULL));
        CODE(0, renewal.code);
        EQ(0, open_any().answer->session_count); /* others find it busy */
    }
    CODE(0, settle_effect(AT(t), &talk, "1", HF_ENTRY_DONE));
}

test_case(d39_an_effect_is_of_its_turn_alone)
{
    struct talk one = begun(t, "s");
    CODE(0, begin_effect(AT(t), &one, "1"));
    struct talk other = begun(t, "other");
    CODE(HF_EEFFECT, settle_effect(AT(t), &other, "1", HF_ENTRY_DONE));
    CODE(0, begin_effect(AT(t), &other, "1")); /* the same key in another turn */
    EQ(1, open_count(t));
    CODE(0, settle_effect(AT(t), &one, "1", HF_ENTRY_DONE));
    EQ(1, load(.session_id = "other")->turn->entry_count);
    CODE(0, finish(&one, "answer"));
    send("s", NULL, "again");
    struct talk next = open_any();
    EQ(0, open_count(t)); /* a new turn begins with an empty journal */
    CODE(0, begin_effect(AT(t), &next, "1"));
}

/* Claims without a step until the input is held. The session continues with its other inputs. */
static void hold_input(struct hf_conform *t, struct talk *talk)
{
    const char *id = talk->turn_id;
    for (int64_t i = 0; i < HF_MAX_POISON_CRASHES;
         i++) { /* the step forgives the first */
        advance(SEC(30));
        *talk = open_any();
        SAME(id, talk->turn_id);
    }
    advance(SEC(30));
    *talk = open_any();
    SAME("held", row(id)->gate);
}

static int free_input(struct hf_conform *t, const char *id, bool anew)
{
    return change(.verb = HF_VERB_RELEASE, .id = id, .reason = "mended", .anew = anew)
        ->code;
}

test_case(d39_a_released_turn_goes_on_with_its_journal_if_its_session_did_not)
{
    struct talk talk = begun(t, "s");
    const char *id = talk.turn_id;
    struct hf_effect_entry pay = intent("2/pay/1", HF_RECOVERY_ASK);
    CODE(0, step_with(&talk, record("thought")));
    CODE(0, begin_effect(AT(t), &talk, "1"));
    CODE(0, store_effect(AT(t), &talk, &pay, NULL));
    CODE(0, settle_effect(AT(t), &talk, "2/pay/1", HF_ENTRY_DONE));
    hold_input(AT(t), &talk);
    EQ(0, talk.answer->session_count);
    EQ(0, head("s")->ready_at);
    CODE(0, free_input(AT(t), id, false));
    SAME("lane", row(id)->gate);
    SAME(id, head("s")->turn_id);
    send("s", NULL, "later");
    talk = open_any();
    SAME(id, talk.turn_id);
    EQ(4, talk.step);
    EQ(1, talk.node_count);
    EQ(0, talk.answer->turn->effects_past);
    EQ(1, open_count(t)); /* as it was: one is done, one is under way */
    EQ(1, load(.session_id = "s")->turn->stored_count);
    CODE(HF_EEFFECT, store_effect(AT(t), &talk, &pay, NULL));
    CODE(0, settle_effect(AT(t), &talk, "1", HF_ENTRY_DONE));
    CODE(0, finish(&talk, "answer"));
    EQ(2, head("s")->record_count);
}

test_case(d39_a_turn_that_is_set_aside_is_no_damage)
{
    struct talk talk = begun(t, "s");
    CODE(0, step_with(&talk, record("thought")));
    CODE(0, begin_effect(AT(t), &talk, "1"));
    hold_input(AT(t), &talk);
    EQ(0, load(.session_id = "s")->node_count);
} /* the store is checked after each case */

test_case(d39_a_released_turn_repeats_no_effect_that_asks_unless_the_operator_says_so)
{
    struct talk talk = begun(t, "s");
    const char *id = talk.turn_id, *next = send_id("s", "next");
    struct hf_effect_entry pay = intent("2/pay/1", HF_RECOVERY_ASK);
    CODE(0, step_with(&talk, record("thought")));
    CODE(0, begin_effect(AT(t), &talk, "1"));
    CODE(0, store_effect(AT(t), &talk, &pay, NULL));
    hold_input(AT(t), &talk);
    SAME(next, talk.turn_id); /* the session continues */
    CODE(HF_ETRANSITION, free_input(AT(t), id, false));
    CODE(0, step_with(&talk, record("of the next")));
    CODE(0, finish(&talk, "answer"));
    CODE(HF_ETRANSITION, free_input(AT(t), id, false));
    SAME("held", row(id)->gate);
    EQ(0, count_events(id, "released"));
    CODE(0, free_input(AT(t), id, true));
    EQ(1, count_events(id, "released"));
    talk = open_any();
    SAME(id, talk.turn_id);
    EQ(0, talk.step);
    EQ(0, talk.node_count);
    EQ(1, talk.answer->turn->base_revision);
    EQ(2, talk.answer->turn->effects_past); /* the next effect is number 3 */
    EQ(0, open_count(t));
    CODE(HF_EEFFECT, begin_effect(AT(t), &talk, "1")); /* the journal is kept */
    CODE(HF_EEFFECT, store_effect(AT(t), &talk, &pay, NULL));
    EQ(0, unknown(NULL, 10)->effect_count); /* a later turn has begun */
    CODE(0, begin_effect(AT(t), &talk, "3"));
    CODE(0, settle_effect(AT(t), &talk, "3", HF_ENTRY_DONE));
    CODE(0, finish(&talk, "at last"));
    IS("done", id);
}

test_case(d39_a_released_turn_begins_anew_where_repetitions_do_no_harm)
{
    struct talk talk = begun(t, "s");
    const char *id = talk.turn_id;
    struct hf_effect_entry model = intent("1", HF_RECOVERY_KEYED);
    struct hf_effect_entry add = intent("2/add/1", HF_RECOVERY_SAFE);
    model.kind = "llm_call";
    CODE(0, store_effect(AT(t), &talk, &model, NULL));
    CODE(0, store_effect(AT(t), &talk, &add, NULL));
    CODE(0, settle_effect(AT(t), &talk, "2/add/1", HF_ENTRY_DONE));
    send("s", NULL, "next");
    hold_input(AT(t), &talk);
    CODE(0, finish(&talk, "answer"));
    CODE(0, free_input(AT(t), id, false));
    talk = open_any();
    SAME(id, talk.turn_id);
    EQ(0, talk.step);
    EQ(2, talk.answer->turn->effects_past);
}

static int64_t input_tokens(struct hf_conform *t)
{
    const struct hf_session_answer *loaded = load(.session_id = "s");
    return loaded->usage_count == 1 ? loaded->usage[0].usage.input
                                    : -(int64_t)loaded->usage_count;
}

/* A model call that used 10 tokens. */
static void buy(struct hf_conform *t, struct talk *talk, const char *key)
{
    const struct hf_usage usage = { .input = 10, .output = 5 };
    struct hf_effect_entry model = intent(key, HF_RECOVERY_KEYED);
    struct hf_effect_settled settled = outcome(key, HF_ENTRY_DONE);
    model.kind = "llm_call";
    model.envelope = SPAN("{\"kind\":\"llm_call\",\"model\":\"m1\"}");
    settled.usage = &usage;
    CODE(0, store_effect(AT(t), talk, &model, NULL));
    CODE(0, store_effect(AT(t), talk, NULL, &settled));
}

test_case(d39_what_a_turn_used_is_counted_once_whether_or_not_it_is_committed)
{
    struct talk talk = begun(t, "s");
    const char *id = talk.turn_id;
    struct hf_session_spent spent = { "model", "m1", { .input = 10, .output = 5 } };
    buy(AT(t), &talk, "1");
    EQ(10, input_tokens(AT(t)));
    SAME("m1", load(.session_id = "s")->usage[0].model);
    send("s", NULL, "next");
    hold_input(AT(t), &talk);
    EQ(10, input_tokens(AT(t))); /* of the turn that was set aside */
    buy(AT(t), &talk, "1");
    EQ(20, input_tokens(AT(t)));
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.spent = &spent;
    commit.spent_count = 1;
    commit.release = true;
    CODE(0, kit_commit(AT(t), commit, NULL));
    EQ(20, input_tokens(AT(t)));
    CODE(0, free_input(AT(t), id, false));
    talk = open_any();
    SAME(id, talk.turn_id);
    EQ(20, input_tokens(AT(t)));
    buy(AT(t), &talk, "2");
    commit = kit_commit_of(&talk);
    commit.spent = &spent;
    commit.spent_count = 1;
    CODE(0, kit_commit(AT(t), commit, NULL));
    EQ(30,
       input_tokens(AT(t))); /* the call before it began anew, and that of the commit */
    EQ(15, load(.session_id = "s")->usage[0].usage.output);
}

test_case(d39_bad_effects_are_refused_by_field_and_write_nothing)
{
    struct talk talk = begun(t, "s");
    struct hf_effect_entry entry = intent("x", HF_RECOVERY_SAFE);
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    SAME("begun", t->err.field);
    entry = intent("1", HF_RECOVERY_NONE);
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    TRUE(contains(t->err.message, "must declare its class"));
    entry = intent("1", HF_RECOVERY_SAFE);
    entry.kind = NULL;
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    entry = intent("1/c/1", HF_RECOVERY_SAFE);
    entry.attempt = 2; /* not that of its key */
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    entry = intent("1/c/1", HF_RECOVERY_SAFE);
    entry.kind = "llm_call"; /* which is no part of an effect */
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    entry = intent("1", HF_RECOVERY_SAFE);
    entry.envelope = SPAN("{");
    CODE(HF_EINVAL, store_effect(AT(t), &talk, &entry, NULL));
    CODE(HF_EINVAL, settle_effect(AT(t), &talk, "1", HF_ENTRY_STARTED));
    SAME("settled", t->err.field);
    struct hf_effect_settled settled = outcome("1", HF_ENTRY_DONE);
    settled.outcome = SPAN("");
    CODE(HF_EINVAL, store_effect(AT(t), &talk, NULL, &settled));
    EQ(0, load(.session_id = "s")->turn->step);
}

/* SHA-256 of "abc". */
#define ABC                                                                              \
    {                                                                                    \
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d,    \
            0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4,      \
            0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad                                     \
    }

test_case(d39_blobs_of_a_step_are_stored_once_and_read_by_their_hash)
{
    struct talk talk = begun(t, "s");
    struct hf_effect_blob blob = { .hash = ABC, .bytes = SPAN("abc") };
    struct hf_session_answer *found = NULL;
    CODE(HF_EBLOB, hf_session_blob_get(t->store, blob.hash, &found, NULL));
    for (int i = 0; i < 2; i++) {
        struct hf_session_step step = kit_step_of(t, &talk);
        step.blobs = &blob;
        step.blob_count = 1;
        CODE(0, kit_store_step(AT(t), &talk, step));
    }
    CODE(0, hf_session_blob_get(t->store, blob.hash, &found, NULL));
    if (t->failed)
        return;
    EQ(3, found->blob.len);
    TRUE(memcmp(found->blob.at, "abc", 3) == 0);
    hf_session_answer_free(found);
}

/* A turn that leaves two effects of unknown outcome. */
static struct talk left_unknown(struct hf_conform *t, const char *session_id)
{
    struct talk talk = begun(t, session_id);
    CODE(0, begin_effect(AT(t), &talk, "2/a/1"));
    CODE(0, begin_effect(AT(t), &talk, "2/b/1"));
    CODE(0, settle_effect(AT(t), &talk, "2/b/1", HF_ENTRY_UNKNOWN));
    CODE(0, settle_effect(AT(t), &talk, "2/a/1", HF_ENTRY_UNKNOWN));
    return talk;
}

test_case(d39_unknown_effects_are_listed_until_the_session_goes_on)
{
    struct talk talk = left_unknown(t, "s");
    advance(SEC(1));
    struct talk other = left_unknown(t, "other");
    const struct hf_session_answer *page = unknown(NULL, 3);
    EQ(3, page->effect_count);
    SAME("s", page->effects[0].session_id);
    SAME(talk.turn_id, page->effects[0].turn_id);
    SAME("2/a/1", page->effects[0].key);
    SAME("tool_call", page->effects[0].kind);
    SAME("keyed", page->effects[0].recovery);
    SAME("{\"ok\":1}", page->effects[0].outcome);
    EQ(t->wall - SEC(1), page->effects[0].settled_at);
    SAME("2/b/1", page->effects[1].key);
    SAME("other", page->effects[2].session_id);
    page = unknown(page->next, 3);
    EQ(1, page->effect_count);
    SAME("2/b/1", page->effects[0].key);
    TRUE(page->next == NULL);
    CODE(0, finish(&talk, "I do not know"));
    EQ(4, unknown(NULL, 0)->effect_count); /* nothing came after the turn yet */
    send("s", NULL, "next");
    talk = open_any();
    page = unknown(NULL, 0);
    EQ(2, page->effect_count);
    SAME("other", page->effects[0].session_id);
    t->who.tenant = "acme"; /* has none */
    EQ(0, unknown(NULL, 0)->effect_count);
    t->who.tenant = NULL;
    unknown("nonsense", 0);
    CODE(HF_EINVAL, t->code);
    SAME("after", t->err.field);
    CODE(0, finish(&other, "either"));
}

test_case(d39_the_journal_survives_a_reopen)
{
    struct talk talk = begun(t, "s");
    CODE(0, begin_effect(AT(t), &talk, "1"));
    reopen();
    EQ(1, open_count(t));
    CODE(0, settle_effect(AT(t), &talk, "1", HF_ENTRY_UNKNOWN));
    reopen();
    EQ(0, open_count(t));
    EQ(1, unknown(NULL, 0)->effect_count);
}
