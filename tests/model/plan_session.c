/* Random operations on sessions. Afterwards heads, histories, open turns, usage and inputs of
 * all sessions are compared. Each session has an agent of its own, so that it is known which
 * one will be taken by a claim by agent. */

#include <stdio.h>
#include <string.h>

#include "model/dice.h"
#include "model/pair.h"

static const char *const ids[PAIR_SESSIONS] = { "c1", "c2", "c3" };

/* ---- comparing --------------------------------------------------------------------------- */

static void same_number(struct pair *pair, const char *what, int64_t model, int64_t other)
{
    if (model != other)
        pair_differ(pair, "%s: the model has %lld, the store %lld", what,
                    (long long)model, (long long)other);
}

static void same_text(struct pair *pair, const char *what, const char *model,
                      const char *other)
{
    if (!pair_same(pair, model, other))
        pair_differ(pair, "%s: the model has %.150s, the store %.150s", what,
                    model ? model : "null", other ? other : "null");
}

static void same_chain(struct pair *pair, const char *what, const uint8_t *model,
                       const uint8_t *other)
{
    if (memcmp(model, other, 32) != 0)
        pair_differ(pair, "%s: the chains differ", what);
}

static void compare_session(struct pair *pair, const struct hf_session *a,
                            const struct hf_session *b)
{
#define TEXT(field) same_text(pair, "session, " #field, a->field, b->field)
#define NUMBER(field) same_number(pair, "session, " #field, a->field, b->field)
    TEXT(session_id);
    TEXT(tenant);
    TEXT(agent);
    NUMBER(head_revision);
    NUMBER(record_count);
    same_chain(pair, "session", a->chain, b->chain);
    TEXT(config);
    TEXT(turn_id);
    NUMBER(ready_at);
    NUMBER(waiting_until);
    TEXT(owner);
    TEXT(owner_incarnation);
    TEXT(holder);
    NUMBER(lease_fence);
    NUMBER(lease_ttl_ms);
    NUMBER(lease_expires_at);
    NUMBER(lease_remaining_ms);
    same_number(pair, "session, a cancel was asked for", a->cancel_request != NULL,
                b->cancel_request != NULL); /* its text has a number of the store's own */
    TEXT(relation);
    TEXT(parent_id);
    TEXT(cause);
    TEXT(labels);
    NUMBER(deleted_at);
    NUMBER(created_at);
    NUMBER(updated_at);
#undef TEXT
#undef NUMBER
}

static void compare_inputs(struct pair *pair, const struct hf_session_input *a, size_t n,
                           const struct hf_session_input *b, size_t m)
{
    same_number(pair, "inputs", (int64_t)n, (int64_t)m);
    for (size_t i = 0; i < n && !pair->complaint[0]; i++) {
        same_number(pair, "input, kind", a[i].kind, b[i].kind);
        same_text(pair, "input, work_id", a[i].work_id, b[i].work_id);
        same_text(pair, "input, status", a[i].status, b[i].status);
        same_text(pair, "input, gate", a[i].gate, b[i].gate);
        same_text(pair, "input, payload", a[i].payload, b[i].payload);
        same_text(pair, "input, turn_id", a[i].turn_id, b[i].turn_id);
        same_number(pair, "input, attempts", a[i].attempt_count, b[i].attempt_count);
        same_number(pair, "input, crashes", a[i].crashes, b[i].crashes);
        same_number(pair, "input, created_at", a[i].created_at, b[i].created_at);
    }
}

static void compare_nodes(struct pair *pair, const struct hf_node *a, size_t n,
                          const struct hf_node *b, size_t m)
{
    same_number(pair, "nodes", (int64_t)n, (int64_t)m);
    for (size_t i = 0; i < n && !pair->complaint[0]; i++) {
        same_number(pair, "node, ordinal", a[i].ordinal, b[i].ordinal);
        same_number(pair, "node, provisional", a[i].provisional, b[i].provisional);
        same_text(pair, "node, turn_id", a[i].turn_id, b[i].turn_id);
        same_text(pair, "node, record", a[i].json, b[i].json);
        same_chain(pair, "node", a[i].chain, b[i].chain);
    }
}

static void compare_entries(struct pair *pair, const struct hf_session_turn *a,
                            const struct hf_session_turn *b)
{
    same_number(pair, "entries", (int64_t)a->entry_count, (int64_t)b->entry_count);
    for (size_t i = 0; i < a->entry_count && !pair->complaint[0]; i++) {
        const struct hf_effect_entry *x = &a->entries[i], *y = &b->entries[i];
        same_text(pair, "entry, key", x->key, y->key);
        same_text(pair, "entry, kind", x->kind, y->kind);
        same_number(pair, "entry, recovery", x->recovery, y->recovery);
        same_number(pair, "entry, status", x->status, y->status);
        same_number(pair, "entry, attempt", x->attempt, y->attempt);
        same_number(pair, "entry, due_at", x->due_at, y->due_at);
        same_number(pair, "entry, fence", x->fence, y->fence);
        same_text(pair, "entry, envelope", x->envelope.at, y->envelope.at);
        same_text(pair, "entry, outcome", x->outcome.at, y->outcome.at);
    }
}

static void compare_effects(struct pair *pair, const struct hf_session_answer *a,
                            const struct hf_session_answer *b)
{
    same_number(pair, "effects", (int64_t)a->effect_count, (int64_t)b->effect_count);
    for (size_t i = 0; i < a->effect_count && !pair->complaint[0]; i++) {
        const struct hf_session_effect *x = &a->effects[i], *y = &b->effects[i];
        same_text(pair, "effect, session", x->session_id, y->session_id);
        same_text(pair, "effect, turn", x->turn_id, y->turn_id);
        same_text(pair, "effect, key", x->key, y->key);
        same_text(pair, "effect, outcome", x->outcome, y->outcome);
        same_number(pair, "effect, started_at", x->started_at, y->started_at);
        same_number(pair, "effect, settled_at", x->settled_at, y->settled_at);
    }
}

static void compare_turn(struct pair *pair, const struct hf_session_turn *a,
                         const struct hf_session_turn *b)
{
    same_number(pair, "an open turn", a != NULL, b != NULL);
    if (!a || !b)
        return;
    same_text(pair, "turn, turn_id", a->turn_id, b->turn_id);
    same_number(pair, "turn, base_revision", a->base_revision, b->base_revision);
    same_number(pair, "turn, step", a->step, b->step);
    same_number(pair, "turn, node_count", a->node_count, b->node_count);
    same_number(pair, "turn, effects_past", a->effects_past, b->effects_past);
    same_number(pair, "turn, started_at", a->started_at, b->started_at);
    same_chain(pair, "turn", a->chain, b->chain);
    same_text(pair, "turn, save", a->save.at, b->save.at);
    compare_inputs(pair, a->inputs, a->input_count, b->inputs, b->input_count);
    compare_nodes(pair, a->nodes, a->stored_count, b->nodes, b->stored_count);
    compare_entries(pair, a, b);
}

static void compare_usage(struct pair *pair, const struct hf_session_answer *a,
                          const struct hf_session_answer *b)
{
    same_number(pair, "usage", (int64_t)a->usage_count, (int64_t)b->usage_count);
    for (size_t i = 0; i < a->usage_count && !pair->complaint[0]; i++) {
        same_text(pair, "usage, source", a->usage[i].source, b->usage[i].source);
        same_text(pair, "usage, model", a->usage[i].model, b->usage[i].model);
        same_number(pair, "usage, input", a->usage[i].usage.input,
                    b->usage[i].usage.input);
    }
}

static void compare_answers(struct pair *pair, const struct hf_session_answer *a,
                            const struct hf_session_answer *b)
{
    same_number(pair, "sessions", (int64_t)a->session_count, (int64_t)b->session_count);
    for (size_t i = 0; i < a->session_count && !pair->complaint[0]; i++)
        compare_session(pair, &a->sessions[i], &b->sessions[i]);
    same_number(pair, "created", a->created, b->created);
    same_text(pair, "token", a->token, b->token);
    same_number(pair, "displaced", a->displaced, b->displaced);
    same_text(pair, "displaced_owner", a->displaced_owner, b->displaced_owner);
    same_number(pair, "displaced_fence", a->displaced_fence, b->displaced_fence);
    compare_turn(pair, a->turn, b->turn);
    compare_inputs(pair, a->inputs, a->input_count, b->inputs, b->input_count);
    compare_nodes(pair, a->nodes, a->node_count, b->nodes, b->node_count);
    same_number(pair, "next_ordinal", a->next_ordinal, b->next_ordinal);
    compare_usage(pair, a, b);
    compare_effects(pair, a, b);
}

/* Compares, and frees what there is. */
static void take(struct pair *pair, const char *what, const int codes[SIDES],
                 struct hf_session_answer *const answers[SIDES])
{
    pair_codes(pair, what, codes[MODEL], codes[OTHER]);
    if (codes[MODEL] == 0 && codes[OTHER] == 0)
        compare_answers(pair, answers[MODEL], answers[OTHER]);
    for (int side = 0; side < SIDES; side++) {
        if (codes[side] == 0)
            hf_session_answer_free(answers[side]);
    }
}

static void reach(struct pair *pair, enum pair_reach what, bool really)
{
    if (really)
        pair->reached |= 1ull << what;
}

static void compare_all(struct pair *pair)
{
    for (size_t i = 0; i < PAIR_SESSIONS && !pair->complaint[0]; i++) {
        struct hf_session_load request = { .size = sizeof(request),
                                           .session_id = ids[i] };
        struct hf_session_answer *answers[SIDES];
        int codes[SIDES];
        for (int side = 0; side < SIDES; side++)
            codes[side] = hf_session_load(pair->store[side], &request, &answers[side],
                                          NULL);
        take(pair, "load", codes, answers);
        for (int side = 0; side < SIDES; side++)
            codes[side] = hf_session_inputs(pair->store[side], ids[i], NULL, 0,
                                            &answers[side], NULL);
        take(pair, "inputs", codes, answers);
    }
    struct hf_session_answer *unknown[SIDES] = { NULL, NULL };
    int codes[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_session_unknown(pair->store[side], NULL, NULL, 0, &unknown[side],
                                         NULL);
    reach(pair, PAIR_EFFECT_UNKNOWN, codes[MODEL] == 0 && unknown[MODEL]->effect_count);
    take(pair, "unknown", codes, unknown);
}

static void reach_code(struct pair *pair, int code)
{
    reach(pair, PAIR_BUSY, code == HF_ESESSIONBUSY);
    reach(pair, PAIR_LOST, code == HF_ESESSIONLOST);
    reach(pair, PAIR_HEAD_MOVED, code == HF_EHEADMOVED);
    reach(pair, PAIR_SUPERSEDED, code == HF_ESUPERSEDED);
    reach(pair, PAIR_NO_BLOB, code == HF_EBLOB);
}

/* ---- create, send -------------------------------------------------------------------------- */

static void do_create(struct pair *pair, struct dice *dice, size_t at)
{
    bool other = one_in(dice, 6);
    struct hf_session_spec request = { .size = sizeof(request),
                                       .session_id = ids[at],
                                       .agent = ids[at],
                                       .config = other ? "{\"m\":2}" : "{\"m\":1}" };
    struct hf_session_answer *answers[SIDES];
    int codes[SIDES];
    pair_say(pair, "session create %s config %d", ids[at], other);
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_session_create(pair->store[side], NULL, &request, &answers[side],
                                        NULL);
    reach(pair, PAIR_CREATED, codes[MODEL] == 0 && answers[MODEL]->created);
    reach(pair, PAIR_CREATE_CONFLICT, codes[MODEL] == HF_ECONFLICT);
    take(pair, "create", codes, answers);
}

static void do_send(struct pair *pair, struct dice *dice, size_t at)
{
    static const char *const keys[] = { NULL, NULL, "k-1", "k-2", "k-3", "k-4" };
    static const char *const tenants[] = { NULL, NULL, NULL, "acme" };
    struct hf_caller who = { .size = sizeof(who), .tenant = PICK(dice, tenants) };
    char message[200];
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = ids[at],
                                       .source_key = PICK(dice, keys),
                                       .message = message };
    unsigned text = roll(dice, 2);
    (void)snprintf(message, sizeof(message),
                   "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"t%u\"}]}}",
                   text);
    pair_say(pair, "session send %s key=%s tenant=%s text %u", ids[at],
             request.source_key ? request.source_key : "-", who.tenant ? who.tenant : "-",
             text);
    struct hf_answer *answers[SIDES];
    int codes[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_session_send(pair->store[side], &who, &request, &answers[side],
                                      NULL);
    pair_answers(pair, codes, answers, 0);
}

/* ---- claim ---------------------------------------------------------------------------------- */

static void learn(struct pair *pair, size_t at,
                  struct hf_session_answer *const answers[SIDES])
{
    struct pair_talk *talks = pair->talks[at];
    const struct hf_session_answer *model = answers[MODEL];
    if (model->session_count == 0 || answers[OTHER]->session_count == 0)
        return;
    memmove(&talks[1], &talks[0], (PAIR_TALKS - 1) * sizeof(talks[0]));
    talks[0] = (struct pair_talk){ .head_revision = model->sessions->head_revision,
                                   .record_count = model->sessions->record_count };
    for (int side = 0; side < SIDES; side++) {
        const struct hf_session_turn *turn = answers[side]->turn;
        talks[0].token[side] = pair_text(pair, answers[side]->token);
        talks[0].turn_id[side] = turn ? pair_text(pair, turn->turn_id) : NULL;
    }
    if (!model->turn)
        return;
    talks[0].step = model->turn->step;
    talks[0].node_count = model->turn->node_count;
    memcpy(talks[0].chain, model->turn->chain, sizeof(talks[0].chain));
}

static void do_claim(struct pair *pair, struct dice *dice, size_t at)
{
    static const char *const owners[] = { NULL, "dora", "emil" };
    static const char *const nonces[] = { NULL, NULL, "s-1", "s-2" };
    static const hf_ms terms[] = { 0, 0, 2000, 60000 };
    static const size_t pages[] = { 0, 1, 3, 100 };
    bool by_id = one_in(dice, 2);
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .session_id = by_id ? ids[at] : NULL,
                                      .agents = &ids[at],
                                      .agent_count = by_id ? 0 : 1 };
    claim.owner = PICK(dice, owners);
    claim.incarnation = claim.owner ? "boot-1" : NULL;
    claim.nonce = PICK(dice, nonces);
    claim.ttl_ms = PICK(dice, terms);
    claim.records = PICK(dice, pages);
    pair_say(pair, "session claim %s %s owner=%s nonce=%s ttl=%lld",
             by_id ? "id" : "agent", ids[at], claim.owner ? claim.owner : "-",
             claim.nonce ? claim.nonce : "-", (long long)claim.ttl_ms);
    struct hf_session_answer *answers[SIDES] = { NULL, NULL };
    int codes[SIDES];
    pair->wall++, pair->mono++; /* a fresh owner's id is no unit's */
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_session_claim(pair->store[side], NULL, &claim, &answers[side],
                                       NULL);
    pair->wall++, pair->mono++;
    reach_code(pair, codes[MODEL]);
    if (codes[MODEL] == 0) {
        reach(pair, PAIR_NO_SESSION, answers[MODEL]->session_count == 0);
        reach(pair, PAIR_TURN_BEGUN, answers[MODEL]->turn);
        reach(pair, PAIR_TURN_DISPLACED,
              answers[MODEL]->turn && answers[MODEL]->displaced);
    }
    if (codes[MODEL] == 0 && codes[OTHER] == 0)
        learn(pair, at, answers);
    take(pair, "claim", codes, answers);
}

/* ---- under the lease ------------------------------------------------------------- */

/* Mostly the last claim's, at times one that was lost. */
static struct pair_talk *some_talk(struct pair *pair, struct dice *dice, size_t at)
{
    return &pair->talks[at][one_in(dice, 6) ? roll(dice, PAIR_TALKS) : 0];
}

static const char *token_of(const struct pair_talk *talk, int side)
{
    return talk->token[side] ? talk->token[side] : "hf1.1.1.x";
}

static const char *turn_of(const struct pair_talk *talk, int side)
{
    return talk->turn_id[side] ? talk->turn_id[side] : "none";
}

#define RECORDS 2

struct records {
    struct hf_part parts[RECORDS];
    struct hf_message messages[RECORDS];
    struct hf_origin origin;
    struct hf_record all[RECORDS];
    size_t count;
    char save[16];
};

static void draw_records(struct dice *dice, struct records *r)
{
    static const char *const texts[] = { "one", "two", "three" };
    memset(r, 0, sizeof(*r));
    r->count = roll(dice, RECORDS + 1);
    r->origin = (struct hf_origin){ .id = "o", .transient = true };
    for (size_t i = 0; i < r->count; i++) {
        const char *text = PICK(dice, texts);
        r->parts[i] = (struct hf_part){ .content = { text, strlen(text) } };
        r->messages[i] = (struct hf_message){ .id = "m",
                                              .role = HF_ROLE_ASSISTANT,
                                              .parts = &r->parts[i],
                                              .part_count = 1,
                                              .origin = one_in(dice, 4) ? &r->origin
                                                                        : NULL };
        r->all[i] = (struct hf_record){ .kind = HF_RECORD_MESSAGE,
                                        .message = &r->messages[i] };
    }
    (void)snprintf(r->save, sizeof(r->save), "save %u", roll(dice, 3));
}

/* At most one intent and one outcome; keys are few, so that some do not fit. */
struct effects {
    struct hf_effect_entry begun;
    struct hf_effect_settled settled;
    size_t begun_count;
    size_t settled_count;
};

static void draw_effects(struct pair *pair, const struct pair_talk *talk,
                         struct dice *dice, struct effects *e)
{
    static const char *const keys[] = { "1", "2/a/1", "2/b/1", "2/b/2" };
    static const enum hf_entry_status ends[] = { HF_ENTRY_DONE, HF_ENTRY_FAILED,
                                                 HF_ENTRY_UNKNOWN, HF_ENTRY_UNKNOWN };
    static const char envelope[] = "{\"kind\":\"tool_call\"}", outcome[] = "{\"n\":1}";
    memset(e, 0, sizeof(*e));
    e->begun = (struct hf_effect_entry){ .key = PICK(dice, keys),
                                         .recovery = HF_RECOVERY_ASK,
                                         .envelope = { envelope, sizeof(envelope) - 1 } };
    size_t len = strlen(e->begun.key);
    e->begun.kind = len > 1 ? "tool_call" : "llm_call";
    e->begun.attempt = len > 1 ? e->begun.key[len - 1] - '0' : 0;
    e->settled = (struct hf_effect_settled){ .key = PICK(dice, keys),
                                             .status = PICK(dice, ends),
                                             .outcome = { outcome,
                                                          sizeof(outcome) - 1 } };
    if (talk->begun && !one_in(dice, 3))
        e->settled.key = talk->begun;
    if (e->settled.status == HF_ENTRY_FAILED && one_in(dice, 2))
        e->settled.due_at = pair->wall + 1000;
    static const struct hf_usage spent = { .input = 7, .output = 3 };
    if (one_in(dice, 2))
        e->settled.usage = &spent;
    e->begun_count = one_in(dice, 2);
    e->settled_count = one_in(dice, 3);
}

/* What one step stores. */
struct drawn_step {
    int64_t number;
    struct records r;
    struct effects e;
};

/* True if both sides have stored it. */
static bool step_once(struct pair *pair, struct pair_talk *talk, size_t at,
                      const struct drawn_step *drawn, struct hf_session_stepped *ret)
{
    const struct records *r = &drawn->r;
    const struct effects *e = &drawn->e;
    struct hf_session_stepped stepped[SIDES];
    int codes[SIDES];
    memset(stepped, 0, sizeof(stepped));
    pair_say(pair, "session step %s %lld, %zu records, %s, begin %s, settle %s", ids[at],
             (long long)drawn->number, r->count, r->save,
             e->begun_count ? e->begun.key : "-",
             e->settled_count ? e->settled.key : "-");
    for (int side = 0; side < SIDES; side++) {
        struct hf_session_step step = { .size = sizeof(step),
                                        .session_id = ids[at],
                                        .token = token_of(talk, side),
                                        .turn_id = turn_of(talk, side),
                                        .step = drawn->number,
                                        .node_count = talk->node_count,
                                        .chain = talk->chain,
                                        .records = r->all,
                                        .record_count = r->count,
                                        .save = { r->save, strlen(r->save) + 1 },
                                        .begun = &e->begun,
                                        .begun_count = e->begun_count,
                                        .settled = &e->settled,
                                        .settled_count = e->settled_count };
        codes[side] = hf_session_step(pair->store[side], NULL, &step, &stepped[side],
                                      NULL);
    }
    pair_codes(pair, "step", codes[MODEL], codes[OTHER]);
    reach(pair, PAIR_EFFECT_REFUSED, codes[MODEL] == HF_EEFFECT);
    if (codes[MODEL] || pair->complaint[0])
        return false;
    reach(pair, PAIR_EFFECT_BEGUN, !stepped[0].repeated && e->begun_count);
    reach(pair, PAIR_EFFECT_SETTLED, !stepped[0].repeated && e->settled_count);
    reach(pair, stepped[0].repeated ? PAIR_STEP_REPEATED : PAIR_STEPPED, true);
    same_number(pair, "stepped, step", stepped[0].step, stepped[1].step);
    same_number(pair, "stepped, nodes", stepped[0].node_count, stepped[1].node_count);
    same_number(pair, "stepped, repeated", stepped[0].repeated, stepped[1].repeated);
    same_chain(pair, "stepped", stepped[0].chain, stepped[1].chain);
    *ret = stepped[0];
    return !pair->complaint[0];
}

static void do_step(struct pair *pair, struct dice *dice, size_t at)
{
    struct drawn_step drawn;
    struct hf_session_stepped stepped;
    struct pair_talk *talk = some_talk(pair, dice, at);
    drawn.number = talk->step + (one_in(dice, 10) ? 1 : 0);
    draw_records(dice, &drawn.r);
    draw_effects(pair, talk, dice, &drawn.e);
    if (!step_once(pair, talk, at, &drawn, &stepped))
        return;
    /* Its answer is lost: the step is repeated, or another one follows. */
    if (one_in(dice, 4) &&
        (one_in(dice, 2) || !step_once(pair, talk, at, &drawn, &stepped)))
        return;
    if (drawn.e.begun_count)
        talk->begun = drawn.e.begun.key;
    talk->step = stepped.step;
    talk->node_count = stepped.node_count;
    memcpy(talk->chain, stepped.chain, sizeof(talk->chain));
}

/* SHA-256 of "abc". */
static const struct hf_session_blob abc = {
    .hash = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
              0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
              0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad }
};

/* What a commit brings in addition to its records. */
struct extras {
    struct hf_session_blob blob;
    struct hf_session_spent spent;
    struct hf_work_spec unit;
    char name[24];
};

static void draw_extras(struct dice *dice, struct extras *extras,
                        struct hf_session_commit *commit)
{
    static const enum hf_status ends[] = { HF_STATUS_DONE, HF_STATUS_DONE,
                                           HF_STATUS_FAILED, HF_STATUS_CANCELLED };
    extras->blob = abc;
    if (one_in(dice, 2))
        extras->blob.bytes = (struct hf_span){ "abc", 3 };
    extras->spent = (struct hf_session_spent){ "model",
                                               one_in(dice, 2) ? "m1" : NULL,
                                               { .input = roll(dice, 9) } };
    (void)snprintf(extras->name, sizeof(extras->name), "out-%u", roll(dice, 20));
    extras->unit = (struct hf_work_spec){ .size = sizeof(extras->unit),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = extras->name,
                                          .kind = "mail",
                                          .priority = -1 };
    commit->blobs = &extras->blob;
    commit->blob_count = one_in(dice, 6);
    commit->spent = &extras->spent;
    commit->spent_count = one_in(dice, 3);
    commit->units = &extras->unit;
    commit->unit_count = one_in(dice, 4);
    commit->status = PICK(dice, ends);
    commit->outcome = "{\"kind\":\"assistant_message\"}";
    commit->config = one_in(dice, 6) ? "{\"m\":3}" : NULL;
    commit->release = one_in(dice, 2);
}

static void compare_committed(struct pair *pair, const struct hf_session_committed *a,
                              const struct hf_session_committed *b)
{
    same_number(pair, "committed, head", a->head_revision, b->head_revision);
    same_number(pair, "committed, records", a->record_count, b->record_count);
    same_number(pair, "committed, repeated", a->repeated, b->repeated);
    same_chain(pair, "committed", a->chain, b->chain);
}

static void do_commit(struct pair *pair, struct dice *dice, size_t at)
{
    struct records r;
    struct extras extras;
    const struct pair_talk *talk = some_talk(pair, dice, at);
    struct hf_session_committed done[SIDES];
    struct hf_session_commit commit = { .size = sizeof(commit),
                                        .session_id = ids[at],
                                        .head_revision = talk->head_revision,
                                        .record_count = talk->record_count,
                                        .step = talk->step,
                                        .node_count = talk->node_count,
                                        .chain = talk->chain };
    int codes[SIDES];
    draw_records(dice, &r);
    draw_extras(dice, &extras, &commit);
    commit.records = r.all;
    commit.added_count = r.count;
    commit.head_revision += one_in(dice, 12);
    commit.step += one_in(dice, 12);
    pair_say(pair, "session commit %s head=%lld step=%lld %zu records%s%s%s", ids[at],
             (long long)commit.head_revision, (long long)commit.step, r.count,
             commit.blob_count ? " blob" : "", commit.unit_count ? " unit" : "",
             commit.release ? " release" : "");
    memset(done, 0, sizeof(done));
    for (int side = 0; side < SIDES; side++) {
        commit.token = token_of(talk, side);
        commit.turn_id = turn_of(talk, side);
        codes[side] = hf_session_commit(pair->store[side], NULL, &commit, &done[side],
                                        NULL);
    }
    pair_codes(pair, "commit", codes[MODEL], codes[OTHER]);
    reach_code(pair, codes[MODEL]);
    reach(pair, PAIR_COMMIT_CONFLICT, codes[MODEL] == HF_ECONFLICT);
    reach(pair, PAIR_COMMITTED, codes[MODEL] == 0 && !done[MODEL].repeated);
    reach(pair, PAIR_COMMIT_REPEATED, done[MODEL].repeated);
    reach(pair, PAIR_COMMIT_STEPPED,
          codes[MODEL] == 0 && !done[MODEL].repeated && talk->node_count > 0);
    if (codes[MODEL] == 0 && !pair->complaint[0])
        compare_committed(pair, &done[MODEL], &done[OTHER]);
}

static void do_renew(struct pair *pair, struct dice *dice, size_t at)
{
    const struct pair_talk *talk = some_talk(pair, dice, at);
    struct hf_session_renewal renewals[SIDES];
    int codes[SIDES];
    pair_say(pair, "session renew %s", ids[at]);
    for (int side = 0; side < SIDES; side++) {
        renewals[side] = (struct hf_session_renewal){ .session_id = ids[at],
                                                      .token = token_of(talk, side) };
        codes[side] = hf_session_renew_all(pair->store[side], &renewals[side], 1, NULL);
    }
    pair_codes(pair, "renew", codes[MODEL], codes[OTHER]);
    pair_codes(pair, "renewal", renewals[MODEL].code, renewals[OTHER].code);
    same_number(pair, "renewal, remaining", renewals[MODEL].lease_remaining_ms,
                renewals[OTHER].lease_remaining_ms);
    same_number(pair, "renewal, cancel", renewals[MODEL].cancel_requested,
                renewals[OTHER].cancel_requested);
}

static void do_release(struct pair *pair, struct dice *dice, size_t at)
{
    static const hf_ms delays[] = { 0, 0, 1000, 60000 };
    const struct pair_talk *talk = some_talk(pair, dice, at);
    bool back = one_in(dice, 2);
    hf_ms delay_ms = PICK(dice, delays);
    int codes[SIDES];
    pair_say(pair, "session %s %s delay=%lld", back ? "hand back" : "release", ids[at],
             (long long)delay_ms);
    for (int side = 0; side < SIDES; side++) {
        struct hf_session_back request = { .size = sizeof(request),
                                           .session_id = ids[at],
                                           .token = token_of(talk, side),
                                           .reason = delay_ms ? "later" : NULL,
                                           .delay_ms = delay_ms };
        codes[side] = back ? hf_session_hand_back(pair->store[side], NULL, &request, NULL)
                           : hf_session_release(pair->store[side], NULL, ids[at],
                                                token_of(talk, side), NULL);
    }
    pair_codes(pair, "release", codes[MODEL], codes[OTHER]);
    reach(pair, back ? PAIR_HANDED_BACK : PAIR_RELEASED, codes[MODEL] == 0);
}

/* ---- lists -------------------------------------------------------------------------- */

/* Up to three pages; the sessions of both have the same ids. */
static void list_sessions(struct pair *pair, struct dice *dice)
{
    struct hf_session_filter filters[SIDES];
    bool more = true;
    filters[MODEL] = (struct hf_session_filter){ .size = sizeof(filters[MODEL]),
                                                 .agent = one_in(dice, 4) ? ids[0] : NULL,
                                                 .parent_id = one_in(dice, 8) ? ids[0]
                                                                              : NULL,
                                                 .open = one_in(dice, 3),
                                                 .newest = one_in(dice, 2),
                                                 .limit = 1 + roll(dice, 3) };
    filters[OTHER] = filters[MODEL];
    pair_say(pair, "session list limit=%zu open=%d newest=%d", filters[MODEL].limit,
             filters[MODEL].open, filters[MODEL].newest);
    for (int page = 0; page < 3 && more && !pair->complaint[0]; page++) {
        struct hf_session_answer *found[SIDES] = { NULL, NULL };
        int codes[SIDES];
        for (int side = 0; side < SIDES; side++)
            codes[side] = hf_session_list(pair->store[side], NULL, &filters[side],
                                          &found[side], NULL);
        pair_codes(pair, "session list", codes[MODEL], codes[OTHER]);
        more = false;
        if (codes[MODEL] == 0 && codes[OTHER] == 0) {
            same_number(pair, "sessions of a page", (int64_t)found[MODEL]->session_count,
                        (int64_t)found[OTHER]->session_count);
            for (size_t i = 0; i < found[MODEL]->session_count && !pair->complaint[0];
                 i++)
                compare_session(pair, &found[MODEL]->sessions[i],
                                &found[OTHER]->sessions[i]);
            if (!found[MODEL]->next != !found[OTHER]->next)
                pair_differ(pair, "session list: only one of them has a next page");
            more = found[MODEL]->next != NULL && found[OTHER]->next != NULL;
            for (int side = 0; side < SIDES && more; side++)
                filters[side].after = pair_text(pair, found[side]->next);
        }
        for (int side = 0; side < SIDES; side++)
            hf_session_answer_free(found[side]);
    }
}

/* ---- all of them ----------------------------------------------------------------- */

void pair_session(struct pair *pair, struct dice *dice)
{
    static void (*const acts[])(struct pair * pair, struct dice * dice, size_t at) = {
        do_create, do_send, do_send,   do_send,   do_claim,  do_claim, do_claim,
        do_step,   do_step, do_commit, do_commit, do_commit, do_renew, do_release
    };
    static void (*const waits[])(struct pair * pair, struct dice * dice, const char *id,
                                 size_t at) = { pair_wait_step,    pair_wait_step,
                                                pair_wait_resolve, pair_wait_resolve,
                                                pair_wait_revoke,  pair_wait_cancel };
    size_t at = roll(dice, PAIR_SESSIONS);
    if (one_in(dice, 4))
        PICK(dice, waits)(pair, dice, ids[at], at);
    else
        PICK(dice, acts)(pair, dice, at);
    compare_all(pair);
    if (one_in(dice, 8))
        list_sessions(pair, dice);
}
