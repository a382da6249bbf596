/* Sessions at work: one sender writes messages to each of them in order, and talkers claim a
 * session, store steps of its turn, and commit it or hand it back. Both repeat a request until
 * they have a certain answer. What must be true of it is in talks.c. */

#include <string.h>

#include "sim/inside.h"

#define TERM_MS 1500
#define AGENT "talk"

static const char *const ids[SIM_TALKS] = { "t0", "t1" };

bool sim_has_talks(const struct hf_sim *sim)
{
    return (sim->workloads & (1u << HF_SIM_OF_TALK)) != 0;
}

int sim_talk_of(const char *session_id)
{
    for (int i = 0; session_id && i < SIM_TALKS; i++) {
        if (sim_same(session_id, ids[i]))
            return i + 1;
    }
    return 0;
}

int sim_talks_start(struct hf_sim *sim, struct hf_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && sim_has_talks(sim) && i < SIM_TALKS; i++) {
        struct hf_session_answer *made = NULL;
        struct hf_session_spec new = { .size = sizeof(new),
                                       .session_id = ids[i],
                                       .agent = AGENT };
        rc = hf_session_create(sim->handles[0], NULL, &new, &made, err);
        if (rc == 0)
            hf_session_answer_free(made);
        sim->talks[i].messages = 1 + (int)sim_roll(&sim->dice, SIM_MESSAGES);
    }
    return rc;
}

/* ---- calls ----------------------------------------------------------------------- */

static void call_send(struct hf_store *store, const struct sim_op *op,
                      struct sim_answer *ret_answer)
{
    char key[SIM_NAME];
    char message[160];
    struct hf_answer *answer = NULL;
    struct hf_session_send send = { .size = sizeof(send), .session_id = ids[op->key] };
    sim_format(key, sizeof(key), "m%d", op->limit);
    sim_format(message, sizeof(message),
               "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
               "\"parts\":[{\"kind\":\"text\",\"content\":\"m%d\"}]}}",
               op->limit);
    send.source_key = key;
    send.message = message;
    ret_answer->code = hf_session_send(store, NULL, &send, &answer, NULL);
    if (ret_answer->code)
        return;
    const struct hf_item *item = hf_answer_at(answer, 0);
    ret_answer->count = 1;
    ret_answer->items[0] = (struct sim_told){ .unit = -1, .created = item->created };
    sim_copy(ret_answer->items[0].id, SIM_ID, item->work.work_id);
    hf_answer_free(answer);
}

/* Which message it is, by its text "m…". */
static int message_of(const struct hf_session_turn *turn)
{
    const char *text = turn->input_count ? turn->inputs[0].payload : NULL;
    const char *at = text ? strstr(text, "\"content\":\"m") : NULL;
    return at ? at[12] - '0' : -1;
}

static void take_claim(const struct hf_session_answer *claim,
                       struct sim_answer *ret_answer)
{
    const struct hf_session *session = claim->sessions;
    struct sim_told *told = &ret_answer->items[0];
    struct sim_place *place = &ret_answer->place;
    int64_t numbers[2] = { 0, 0 };
    const char *c = claim->token + 4; /* hf1.STORE.FENCE.NONCE */
    for (int i = 0; i < 2; i++) {
        for (; *c >= '0' && *c <= '9'; c++)
            numbers[i] = numbers[i] * 10 + (*c - '0');
        c += *c == '.';
    }
    ret_answer->count = 1;
    ret_answer->displaced = claim->displaced;
    *told = (struct sim_told){ .unit = sim_talk_of(session->session_id) - 1,
                               .fence = session->lease_fence,
                               .store = numbers[0],
                               .ttl_ms = session->lease_ttl_ms,
                               .expires_at = session->lease_expires_at };
    sim_copy(told->token, sizeof(told->token), claim->token);
    *place = (struct sim_place){ .head_revision = session->head_revision,
                                 .record_count = session->record_count,
                                 .message = -1 };
    if (!claim->turn)
        return;
    sim_copy(told->id, sizeof(told->id), claim->turn->turn_id);
    place->step = claim->turn->step;
    place->node_count = claim->turn->node_count;
    place->message = message_of(claim->turn);
    memcpy(place->chain, claim->turn->chain, sizeof(place->chain));
}

static void call_open(struct hf_store *store, const struct sim_op *op, const char *owner,
                      const char *incarnation, struct sim_answer *ret_answer)
{
    static const char *const agents[] = { AGENT };
    struct hf_session_answer *answer = NULL;
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .owner = owner,
                                      .incarnation = incarnation,
                                      .nonce = op->name,
                                      .pid = op->pid,
                                      .ttl_ms = op->ttl_ms };
    if (op->key >= 0) {
        claim.session_id = ids[op->key];
    } else {
        claim.agents = agents;
        claim.agent_count = 1;
    }
    ret_answer->code = hf_session_claim(store, NULL, &claim, &answer, NULL);
    if (ret_answer->code)
        return;
    if (answer->session_count)
        take_claim(answer, ret_answer);
    hf_session_answer_free(answer);
}

/* One record that says which message it is for, under which fence, and by which request. */
struct said {
    char text[64];
    struct hf_part part;
    struct hf_message message;
    struct hf_record record;
};

static void say(const struct sim_op *op, struct said *said)
{
    sim_format(said->text, sizeof(said->text), "m%d f%lld %s", op->place.message,
               (long long)op->fence, op->name);
    said->part = (struct hf_part){ .content = { said->text, strlen(said->text) } };
    said->message = (struct hf_message){
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &said->part, .part_count = 1
    };
    said->record = (struct hf_record){ .kind = HF_RECORD_MESSAGE,
                                       .message = &said->message };
}

static void call_step(struct hf_store *store, const struct sim_op *op,
                      struct sim_answer *ret_answer)
{
    struct said said;
    struct hf_session_stepped stepped = { .step = 0 };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = ids[op->key],
                                    .token = op->token,
                                    .turn_id = op->id,
                                    .step = op->place.step,
                                    .node_count = op->place.node_count,
                                    .chain = op->place.chain,
                                    .record_count = 1 };
    say(op, &said);
    step.records = &said.record;
    step.save = (struct hf_span){ said.text, strlen(said.text) };
    ret_answer->code = hf_session_step(store, NULL, &step, &stepped, NULL);
    ret_answer->place = op->place;
    ret_answer->place.step = stepped.step;
    ret_answer->place.node_count = stepped.node_count;
    ret_answer->items[0].repeated = stepped.repeated;
    memcpy(ret_answer->place.chain, stepped.chain, sizeof(stepped.chain));
}

static void call_commit(struct hf_store *store, const struct sim_op *op,
                        struct sim_answer *ret_answer)
{
    struct said said;
    struct hf_session_committed done = { .head_revision = 0 };
    struct hf_session_commit commit = { .size = sizeof(commit),
                                        .session_id = ids[op->key],
                                        .token = op->token,
                                        .turn_id = op->id,
                                        .head_revision = op->place.head_revision,
                                        .record_count = op->place.record_count,
                                        .step = op->place.step,
                                        .node_count = op->place.node_count,
                                        .chain = op->place.chain,
                                        .added_count = 1,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{\"kind\":\"assistant_message\"}",
                                        .release = op->limit != 0 };
    say(op, &said);
    commit.records = &said.record;
    ret_answer->code = hf_session_commit(store, NULL, &commit, &done, NULL);
    ret_answer->place = (struct sim_place){ .head_revision = done.head_revision,
                                            .record_count = done.record_count,
                                            .message = -1 };
    ret_answer->items[0].repeated = done.repeated;
}

static void call_back(struct hf_store *store, const struct sim_op *op,
                      struct sim_answer *ret_answer)
{
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = ids[op->key],
                                    .token = op->token,
                                    .delay_ms = op->span_ms };
    ret_answer->code = hf_session_hand_back(store, NULL, &back, NULL);
}

void sim_talk_call(struct hf_store *store, const struct sim_op *op, const char *owner,
                   const char *incarnation, struct sim_answer *ret_answer)
{
    if (op->kind == SIM_OP_SEND)
        call_send(store, op, ret_answer);
    else if (op->kind == SIM_OP_OPEN)
        call_open(store, op, owner, incarnation, ret_answer);
    else if (op->kind == SIM_OP_STEP)
        call_step(store, op, ret_answer);
    else if (op->kind == SIM_OP_COMMIT)
        call_commit(store, op, ret_answer);
    else
        call_back(store, op, ret_answer);
}

/* ---- the sender ------------------------------------------------------------------ */

static void rest(struct hf_sim *sim, int actor, unsigned most_ms)
{
    struct sim_actor *a = &sim->actors[actor];
    a->wake_at = sim->mono + sim_own_ms(a, 1 + sim_roll(&sim->dice, most_ms));
}

/* The next message of a session when the one before is acknowledged; at times an old one. */
void sim_sender_act(struct hf_sim *sim, int actor)
{
    struct sim_op op = sim_request(sim, actor, SIM_OP_SEND);
    op.key = (int)sim_roll(&sim->dice, SIM_TALKS);
    const struct sim_talk *talk = &sim->talks[op.key];
    op.limit = talk->acked;
    if (op.limit > 0 && !sim->healing && sim_one_in(&sim->dice, 8))
        op.limit = (int)sim_roll(&sim->dice, (unsigned)talk->acked);
    rest(sim, actor, 600);
    if (op.limit < talk->messages)
        sim_send(sim, &op);
}

void sim_sender_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer)
{
    struct sim_talk *talk = &sim->talks[op->key];
    rest(sim, actor, 900);
    if (answer->code || op->limit != talk->acked)
        return;
    sim_copy(talk->ids[talk->acked++], SIM_ID, answer->items[0].id);
}

/* ---- talkers --------------------------------------------------------------------- */

/* Half of the claims of an actor have one nonce, so that only the fence tells them apart. */
static void open_some(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_op op = sim_request(sim, actor, SIM_OP_OPEN);
    bool by_id = !sim->healing && sim_one_in(&sim->dice, 3);
    op.key = by_id ? (int)sim_roll(&sim->dice, SIM_TALKS) : -1;
    op.ttl_ms = TERM_MS;
    if (sim_one_in(&sim->dice, 2))
        sim_format(op.name, sizeof(op.name), "same-%d", actor);
    else
        sim_format(op.name, sizeof(op.name), "t-%d-%d", actor, a->nonces++);
    sim_send(sim, &op);
}

static struct sim_op under_lease(struct hf_sim *sim, int actor, enum sim_kind kind)
{
    struct sim_actor *a = &sim->actors[actor];
    const struct sim_hold *h = &a->holds[0];
    struct sim_op op = sim_request(sim, actor, kind);
    op.key = h->unit;
    op.fence = h->fence;
    op.store = h->store;
    op.place = a->place;
    sim_copy(op.id, sizeof(op.id), h->id);
    sim_copy(op.token, sizeof(op.token), h->token);
    sim_format(op.name, sizeof(op.name), "n%d-%d", actor, a->nonces++);
    return op;
}

static void go_on(struct hf_sim *sim, int actor)
{
    struct sim_hold *h = &sim->actors[actor].holds[0];
    bool backs = !h->id[0] || (!sim->healing && sim_one_in(&sim->dice, 8));
    enum sim_kind kind = backs                              ? SIM_OP_BACK
                         : h->progress > 0 && !sim->healing ? SIM_OP_STEP
                                                            : SIM_OP_COMMIT;
    struct sim_op op = under_lease(sim, actor, kind);
    h->progress--;
    op.limit = sim->healing || sim_one_in(&sim->dice, 2); /* release */
    if (kind == SIM_OP_BACK && !sim->healing && sim_one_in(&sim->dice, 3))
        op.span_ms = 500;
    h->settling = true;
    h->last = op;
    sim_send(sim, &op);
}

void sim_talker_act(struct hf_sim *sim, int actor)
{
    struct sim_actor *a = &sim->actors[actor];
    if (a->has_claim)
        sim_send(sim, &a->claim);
    else if (!a->holds[0].used)
        open_some(sim, actor);
    else if (a->holds[0].settling)
        sim_send(sim, &a->holds[0].last);
    else
        go_on(sim, actor);
}

static void hear_open(struct hf_sim *sim, int actor, const struct sim_op *op,
                      const struct sim_answer *answer)
{
    struct sim_actor *a = &sim->actors[actor];
    const struct sim_told *told = &answer->items[0];
    a->has_claim = sim_retryable(answer->code);
    a->claim = *op;
    if (answer->code || answer->count == 0)
        return;
    a->holds[0] = (struct sim_hold){ .used = true,
                                     .unit = told->unit,
                                     .fence = told->fence,
                                     .store = told->store,
                                     .progress = (int)sim_roll(&sim->dice, 3) };
    a->place = answer->place;
    sim_copy(a->holds[0].id, SIM_ID, told->id);
    sim_copy(a->holds[0].token, SIM_TOKEN, told->token);
}

void sim_talker_hear(struct hf_sim *sim, int actor, const struct sim_op *op,
                     const struct sim_answer *answer)
{
    struct sim_actor *a = &sim->actors[actor];
    struct sim_hold *h = &a->holds[0];
    rest(sim, actor, 300);
    if (op->kind == SIM_OP_OPEN) {
        hear_open(sim, actor, op, answer);
        return;
    }
    if (sim_retryable(answer->code))
        return; /* the same again */
    bool keeps = op->kind == SIM_OP_STEP || (op->kind == SIM_OP_COMMIT && !op->limit);
    if (answer->code || !keeps) {
        *h = (struct sim_hold){ 0 };
        return;
    }
    h->settling = false;
    a->place = answer->place;
    if (op->kind == SIM_OP_STEP)
        return;
    h->id[0] = '\0';
    if (!sim_one_in(&sim->dice, 2))
        return;
    /* On to the next message under the lease that is held. */
    a->claim = sim_request(sim, actor, SIM_OP_OPEN);
    a->claim.key = op->key;
    a->claim.ttl_ms = TERM_MS;
    sim_format(a->claim.name, sizeof(a->claim.name), "t-%d-%d", actor, a->nonces++);
    a->has_claim = true;
    *h = (struct sim_hold){ 0 };
}
