/* Random operations on waits of sessions: a turn that is put away, answers, revocations, cancels of
 * turns. Afterwards the waits of the session are compared. */

#include <stdio.h>
#include <string.h>

#include "model/dice.h"
#include "model/pair.h"

/* Of each kind two names, so that several waits of a turn are open. */
struct which {
    enum hf_wait_kind kind;
    const char *name;
};

static struct which draw_which(struct dice *dice)
{
    static const enum hf_wait_kind kinds[] = { HF_WAIT_APPROVAL, HF_WAIT_CUSTOM,
                                               HF_WAIT_TIMER };
    static const char *const names[] = { "one", "two" };
    return (struct which){ PICK(dice, kinds), PICK(dice, names) };
}

static const char *turn_of(const struct pair_talk *talk, int side)
{
    return talk->turn_id[side] ? talk->turn_id[side]
                               : "01234567-89ab-7cde-8f01-23456789abcd";
}

static const char *token_of(const struct pair_talk *talk, int side)
{
    return talk->token[side] ? talk->token[side] : "hf1.1.1.x";
}

static void reach(struct pair *pair, enum pair_reach what, bool reached)
{
    if (reached)
        pair->reached |= 1ull << what;
}

/* ---- comparing ----------------------------------------------------------------------- */

static const struct hf_wait *find(struct pair *pair, const struct hf_wait_answer *answer,
                                  const struct hf_wait *wait)
{
    for (size_t i = 0; i < answer->wait_count; i++)
        if (pair_same(pair, wait->wait_id, answer->waits[i].wait_id))
            return &answer->waits[i];
    return NULL;
}

static void compare_wait(struct pair *pair, const struct hf_wait *a,
                         const struct hf_wait *b)
{
    if (!b)
        pair_differ(pair, "wait %s: the store has none", a->wait_id);
    else if (!pair_same(pair, a->wait_id, b->wait_id) ||
             !pair_same(pair, a->turn_id, b->turn_id) ||
             !pair_same(pair, a->name, b->name) || !pair_same(pair, a->kind, b->kind) ||
             !pair_same(pair, a->state, b->state) ||
             !pair_same(pair, a->outcome, b->outcome) ||
             !pair_same(pair, a->actor, b->actor) || a->deadline_at != b->deadline_at ||
             a->opened_at != b->opened_at || a->closed_at != b->closed_at)
        pair_differ(
            pair,
            "wait %s: the model has %s %s until %lld by %s, the store %s: %s %s until "
            "%lld by %s",
            a->wait_id, a->state, a->outcome ? a->outcome : "", (long long)a->deadline_at,
            a->actor ? a->actor : "", b->wait_id, b->state, b->outcome ? b->outcome : "",
            (long long)b->deadline_at, b->actor ? b->actor : "");
}

/* All waits of the session, by their ids. */
static void compare_waits(struct pair *pair, const char *session_id)
{
    struct hf_wait_answer *answers[SIDES] = { NULL };
    struct hf_wait_filter filter = {
        .size = sizeof(filter), .session_id = session_id, .closed = true, .limit = 1000
    };
    int codes[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_wait_list(pair->store[side], NULL, &filter, &answers[side],
                                   NULL);
    pair_codes(pair, "waits", codes[MODEL], codes[OTHER]);
    if (!codes[MODEL] && !codes[OTHER] &&
        answers[MODEL]->wait_count != answers[OTHER]->wait_count)
        pair_differ(pair, "%s: the model has %zu waits, the store %zu", session_id,
                    answers[MODEL]->wait_count, answers[OTHER]->wait_count);
    for (size_t i = 0; !codes[MODEL] && !codes[OTHER] && !pair->complaint[0] &&
                       i < answers[MODEL]->wait_count;
         i++) {
        const struct hf_wait *wait = &answers[MODEL]->waits[i];
        compare_wait(pair, wait, find(pair, answers[OTHER], wait));
    }
    for (int side = 0; side < SIDES; side++)
        hf_wait_answer_free(answers[side]);
}

/* ---- operations ---------------------------------------------------------------------- */

static void fill_wait(struct pair *pair, struct dice *dice, struct hf_wait_spec *wait)
{
    static const hf_ms spans[] = { 1000, 30000, 600000 };
    static const enum hf_wait_policy policies[] = { HF_AT_DEADLINE_RESULT,
                                                    HF_AT_DEADLINE_RESULT,
                                                    HF_AT_DEADLINE_FAIL_TURN };
    static const enum hf_wait_policy approvals[] = { HF_AT_DEADLINE_DENY,
                                                     HF_AT_DEADLINE_APPROVE,
                                                     HF_AT_DEADLINE_FAIL_TURN };
    struct which which = draw_which(dice);
    *wait = (struct hf_wait_spec){ .size = sizeof(*wait),
                                   .kind = which.kind,
                                   .name = which.name,
                                   .deadline_at = pair->wall + PICK(dice, spans) };
    if (which.kind == HF_WAIT_APPROVAL)
        wait->policy = PICK(dice, approvals);
    else if (which.kind == HF_WAIT_CUSTOM)
        wait->policy = PICK(dice, policies);
}

void pair_wait_step(struct pair *pair, struct dice *dice, const char *id, size_t at)
{
    struct pair_talk *talk = &pair->talks[at][0];
    struct hf_wait_spec waits[2];
    struct hf_session_stepped stepped[SIDES] = { { .step = 0 } };
    int codes[SIDES];
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = id,
                                    .step = talk->step,
                                    .node_count = talk->node_count,
                                    .chain = talk->chain,
                                    .save = { "waits", 6 },
                                    .waits = waits,
                                    .wait_count = 1,
                                    .away = !one_in(dice, 4) };
    fill_wait(pair, dice, &waits[0]);
    fill_wait(pair, dice, &waits[1]);
    step.wait_count += waits[0].kind != waits[1].kind && one_in(dice, 2);
    pair_say(pair, "session step %s waits=%zu away=%d", id, step.wait_count, step.away);
    for (int side = 0; side < SIDES; side++) {
        step.token = token_of(talk, side);
        step.turn_id = turn_of(talk, side);
        codes[side] = hf_session_step(pair->store[side], NULL, &step, &stepped[side],
                                      NULL);
    }
    pair_codes(pair, "step with waits", codes[MODEL], codes[OTHER]);
    if (codes[MODEL] || pair->complaint[0])
        return;
    if (stepped[MODEL].ready != stepped[OTHER].ready ||
        stepped[MODEL].repeated != stepped[OTHER].repeated ||
        stepped[MODEL].step != stepped[OTHER].step)
        pair_differ(pair, "stepped: the model says ready %d repeated %d, the store %d %d",
                    stepped[MODEL].ready, stepped[MODEL].repeated, stepped[OTHER].ready,
                    stepped[OTHER].repeated);
    reach(pair, PAIR_PUT_AWAY, step.away && !stepped[MODEL].repeated);
    talk->step = stepped[MODEL].step;
    talk->node_count = stepped[MODEL].node_count;
    memcpy(talk->chain, stepped[MODEL].chain, sizeof(talk->chain));
    compare_waits(pair, id);
}

static enum hf_wait_word draw_word(struct dice *dice, enum hf_wait_kind kind)
{
    static const enum hf_wait_word approvals[] = { HF_ANSWER_APPROVE, HF_ANSWER_DENY };
    static const enum hf_wait_word others[] = { HF_ANSWER_OK, HF_ANSWER_ERROR };
    return kind == HF_WAIT_APPROVAL ? PICK(dice, approvals) : PICK(dice, others);
}

void pair_wait_resolve(struct pair *pair, struct dice *dice, const char *id, size_t at)
{
    const struct pair_talk *talk = &pair->talks[at][0];
    struct which which = draw_which(dice);
    char wait_id[HF_WAIT_ID_TEXT];
    struct hf_wait_answer *answers[SIDES] = { NULL };
    struct hf_wait_resolve request = { .size = sizeof(request), .wait_id = wait_id };
    int codes[SIDES];
    if (which.kind == HF_WAIT_TIMER)
        which.kind = HF_WAIT_CUSTOM;
    request.word = draw_word(dice, which.kind);
    if (request.word == HF_ANSWER_DENY || request.word == HF_ANSWER_ERROR)
        request.reason = "no";
    pair_say(pair, "resolve %s %s of %s", hf_wait_kind_word(which.kind), which.name, id);
    for (int side = 0; side < SIDES; side++) {
        codes[side] = hf_wait_id(turn_of(talk, side), which.kind, which.name, wait_id,
                                 NULL);
        if (codes[side] == 0)
            codes[side] = hf_wait_resolve(pair->store[side], NULL, &request,
                                          &answers[side], NULL);
    }
    pair_codes(pair, "resolve", codes[MODEL], codes[OTHER]);
    if (!codes[MODEL] && !codes[OTHER]) {
        reach(pair, PAIR_ANSWERED, answers[MODEL]->accepted);
        reach(pair, PAIR_ANSWERED_AGAIN, !answers[MODEL]->accepted);
        if (answers[MODEL]->accepted != answers[OTHER]->accepted)
            pair_differ(pair, "resolve, accepted: the model says %d, the store %d",
                        answers[MODEL]->accepted, answers[OTHER]->accepted);
        compare_wait(pair, &answers[MODEL]->waits[0], &answers[OTHER]->waits[0]);
    }
    for (int side = 0; side < SIDES; side++)
        hf_wait_answer_free(answers[side]);
    compare_waits(pair, id);
}

void pair_wait_revoke(struct pair *pair, struct dice *dice, const char *id, size_t at)
{
    const struct pair_talk *talk = &pair->talks[at][0];
    struct which which = draw_which(dice);
    char wait_id[HF_WAIT_ID_TEXT];
    struct hf_wait_answer *answers[SIDES] = { NULL };
    bool one = one_in(dice, 2), turn = one_in(dice, 2);
    int codes[SIDES];
    pair_say(pair, "revoke %s of %s", one ? "a wait" : turn ? "a turn" : "all", id);
    for (int side = 0; side < SIDES; side++) {
        struct hf_wait_revoke request = { .size = sizeof(request) };
        codes[side] = hf_wait_id(turn_of(talk, side), which.kind, which.name, wait_id,
                                 NULL);
        if (one)
            request.wait_id = wait_id;
        else
            request.session_id = id;
        if (!one && turn)
            request.turn_id = turn_of(talk, side);
        if (codes[side] == 0)
            codes[side] = hf_wait_revoke(pair->store[side], NULL, &request,
                                         &answers[side], NULL);
    }
    pair_codes(pair, "revoke", codes[MODEL], codes[OTHER]);
    if (!codes[MODEL] && !codes[OTHER]) {
        reach(pair, PAIR_REVOKED, answers[MODEL]->revoked > 0);
        if (answers[MODEL]->revoked != answers[OTHER]->revoked)
            pair_differ(pair, "revoke: the model says %lld, the store %lld",
                        (long long)answers[MODEL]->revoked,
                        (long long)answers[OTHER]->revoked);
    }
    for (int side = 0; side < SIDES; side++)
        hf_wait_answer_free(answers[side]);
    compare_waits(pair, id);
}

void pair_wait_cancel(struct pair *pair, struct dice *dice, const char *id, size_t at)
{
    const struct pair_talk *talk = &pair->talks[at][roll(dice, PAIR_TALKS)];
    enum hf_session_turn_cancel told[SIDES] = { HF_TURN_CANCEL_COUNT,
                                                HF_TURN_CANCEL_COUNT };
    int codes[SIDES];
    pair_say(pair, "cancel a turn of %s", id);
    for (int side = 0; side < SIDES; side++) {
        struct hf_session_cancel request = { .size = sizeof(request),
                                             .session_id = id,
                                             .turn_id = turn_of(talk, side),
                                             .reason = "enough" };
        codes[side] = hf_session_cancel_turn(pair->store[side], NULL, &request,
                                             &told[side], NULL);
    }
    pair_codes(pair, "cancel", codes[MODEL], codes[OTHER]);
    if (told[MODEL] != told[OTHER])
        pair_differ(pair, "cancel: the model says %d, the store %d", (int)told[MODEL],
                    (int)told[OTHER]);
    reach(pair, PAIR_CANCEL_ASKED, told[MODEL] == HF_TURN_CANCEL_REQUESTED);
    compare_waits(pair, id);
}
