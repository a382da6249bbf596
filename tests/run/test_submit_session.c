/* Verbs over sessions, submitted: each answers as its blocking form, on both engines. */
#include "support/pg.h"
#include "support/unit.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/store.h>
#include <holdfast/submit.h>

#define MESSAGE                                                                          \
    "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","                 \
    "\"parts\":[{\"content\":\"hello\"}]}}"
#define MANY 24
#define OP(...)                                                                          \
    &(struct hf_operation)                                                               \
    {                                                                                    \
        .size = sizeof(struct hf_operation), __VA_ARGS__                                 \
    }

static struct pg_server server;
static const char *const agents[] = { "a" };

struct world {
    struct hf_store *store;
    struct hf_submitter *submitter;
    struct hf_err err;
};

/* What `done` was told, copied. */
struct told {
    sem_t done;
    int calls;
    int code;
    char field[64];
    char shape[8]; /* which answers there were */
    char id[200];  /* of the unit, the session or the wait */
    char token[200];
    char turn_id[64];
    bool fresh; /* created, or not repeated */
    bool held;  /* the session has an owner */
    int64_t revision;
    int64_t count; /* of items, sessions or nodes */
    int64_t step;
    uint8_t chain[32];
};

static void copy(char *to, size_t room, const char *text)
{
    (void)snprintf(to, room, "%s", text ? text : "");
}

static void keep_session(struct told *told, const struct hf_session_answer *answer)
{
    told->fresh = answer->created;
    told->count = answer->node_count ? (int64_t)answer->node_count
                                     : (int64_t)answer->session_count;
    copy(told->token, sizeof told->token, answer->token);
    if (answer->session_count > 0) {
        copy(told->id, sizeof told->id, answer->sessions->session_id);
        told->revision = answer->sessions->head_revision;
        told->held = answer->sessions->owner != NULL;
    }
    if (answer->turn) {
        copy(told->turn_id, sizeof told->turn_id, answer->turn->turn_id);
        memcpy(told->chain, answer->turn->chain, sizeof told->chain);
        told->step = answer->turn->step;
    }
}

static void keep(void *user, const struct hf_submitted *outcome)
{
    struct told *told = user;
    told->calls++;
    told->code = outcome->code;
    (void)snprintf(told->shape, sizeof told->shape, "%s%s%s%s",
                   outcome->answer ? "u" : "", outcome->session ? "s" : "",
                   outcome->stepped ? "t" : "", outcome->committed ? "c" : "");
    if (outcome->code)
        copy(told->field, sizeof told->field, outcome->err->field);
    if (outcome->answer && outcome->count == 1) {
        told->count = 1;
        told->fresh = hf_submitted_at(outcome, 0)->created;
        copy(told->id, sizeof told->id, hf_submitted_at(outcome, 0)->work.work_id);
    }
    if (outcome->session)
        keep_session(told, outcome->session);
    if (outcome->stepped) {
        told->fresh = !outcome->stepped->repeated;
        told->step = outcome->stepped->step;
        told->count = outcome->stepped->node_count;
        memcpy(told->chain, outcome->stepped->chain, sizeof told->chain);
    }
    if (outcome->committed) {
        told->fresh = !outcome->committed->repeated;
        told->revision = outcome->committed->head_revision;
        told->count = outcome->committed->record_count;
    }
    (void)sem_post(&told->done);
}

static void submit(struct world *world, const struct hf_operation *operation,
                   struct told *told)
{
    *told = (struct told){ .code = 1 };
    assert_int_equal(sem_init(&told->done, 0, 0), 0);
    if (hf_submit(world->submitter, operation, keep, told, &world->err))
        fail_msg("%s: %s", world->err.field, world->err.message);
}

static const struct told *await(struct told *told)
{
    while (sem_wait(&told->done))
        continue;
    assert_int_equal(told->calls, 1);
    return told;
}

/* One operation and its answer. */
static struct told did(struct world *world, const struct hf_operation *operation)
{
    struct told told;
    submit(world, operation, &told);
    return *await(&told);
}

/* The same, of one that succeeds with answers of this shape. */
static struct told done(struct world *world, const char *shape,
                        const struct hf_operation *operation)
{
    struct told told = did(world, operation);
    assert_int_equal(told.code, 0);
    assert_string_equal(told.shape, shape);
    return told;
}

static void opened(struct world *world, const char *url, unsigned threads)
{
    struct hf_submitter_options options = { .size = sizeof options, .threads = threads };
    *world = (struct world){ .store = NULL };
    if (hf_store_open(url, NULL, &world->store, &world->err))
        fail_msg("%s", world->err.message);
    assert_int_equal(
        hf_submitter_open(world->store, &options, &world->submitter, &world->err), 0);
}

static void closed(struct world *world)
{
    hf_submitter_close(world->submitter);
    hf_store_close(world->store);
}

/* A case on both engines, with so many threads. */
static void on_both(void (*run)(struct world *world), const char *schema,
                    unsigned threads)
{
    char url[400];
    struct world world;
    opened(&world, "sqlite::memory:", threads);
    run(&world);
    closed(&world);
    opened(&world, pg_server_schema(server.url, schema, url), threads);
    run(&world);
    closed(&world);
}

static struct hf_session_spec spec(const char *session_id)
{
    return (struct hf_session_spec){ .size = sizeof(struct hf_session_spec),
                                     .session_id = session_id,
                                     .agent = "a" };
}

static struct hf_session_send message(const char *session_id)
{
    return (struct hf_session_send){ .size = sizeof(struct hf_session_send),
                                     .session_id = session_id,
                                     .source_key = "k",
                                     .message = MESSAGE };
}

/* The commit of a turn without records, as the claim's answer has it. */
static struct hf_session_commit commit_of(const struct told *held)
{
    return (struct hf_session_commit){ .size = sizeof(struct hf_session_commit),
                                       .session_id = held->id,
                                       .token = held->token,
                                       .turn_id = held->turn_id,
                                       .step = held->step,
                                       .node_count = held->step,
                                       .chain = held->chain,
                                       .status = HF_STATUS_DONE,
                                       .outcome = "{}" };
}

/* ---- each verb ------------------------------------------------------------------------- */

static struct told begin_turn(struct world *world)
{
    struct hf_session_spec new = spec("s");
    struct hf_session_send send = message("s");
    struct hf_session_claim any = { .size = sizeof any,
                                    .agents = agents,
                                    .agent_count = 1 };
    struct told told = done(world, "s", OP(.session_create = &new));
    assert_true(told.fresh);
    assert_string_equal(told.id, "s");
    assert_false(done(world, "s", OP(.session_create = &new)).fresh);
    struct told sent = done(world, "u", OP(.session_send = &send));
    assert_true(sent.fresh);
    assert_false(done(world, "u", OP(.session_send = &send)).fresh);
    struct told held = done(world, "s", OP(.session_claim = &any));
    assert_string_equal(held.id, "s");
    assert_string_equal(held.turn_id, sent.id);
    assert_int_equal(done(world, "s", OP(.session_claim = &any)).count, 0);
    return held;
}

static void store_a_step(struct world *world, struct told *held)
{
    struct hf_message said = { .id = "r", .role = HF_ROLE_ASSISTANT };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    struct hf_session_step step = { .size = sizeof step,
                                    .session_id = held->id,
                                    .token = held->token,
                                    .turn_id = held->turn_id,
                                    .chain = held->chain,
                                    .records = &record,
                                    .record_count = 1,
                                    .save = { "save", 4 } };
    struct told stored = done(world, "t", OP(.session_step = &step));
    assert_true(stored.fresh);
    assert_int_equal(stored.step, 1);
    assert_int_equal(stored.count, 1);
    assert_false(done(world, "t", OP(.session_step = &step)).fresh);
}

static void each_verb(struct world *world)
{
    struct told held = begin_turn(world);
    store_a_step(world, &held);
    struct hf_session_renewal renewals[] = { { .session_id = "s", .token = held.token },
                                             { .session_id = "s",
                                               .token = "hf1.1.9.other" } };
    (void)done(world, "", OP(.session_renew_all = renewals, .n = 2));
    assert_int_equal(renewals[0].code, 0);
    assert_true(renewals[0].lease_remaining_ms > 0);
    assert_int_equal(renewals[1].code, HF_ESESSIONLOST);

    struct hf_session_back back = { .size = sizeof back,
                                    .session_id = "s",
                                    .token = held.token };
    struct hf_session_claim by_id = { .size = sizeof by_id, .session_id = "s" };
    (void)done(world, "", OP(.session_hand_back = &back));
    held = done(world, "s", OP(.session_claim = &by_id));
    assert_int_equal(held.step, 1);

    struct hf_session_commit commit = commit_of(&held);
    struct told committed = done(world, "c", OP(.session_commit = &commit));
    assert_true(committed.fresh);
    assert_int_equal(committed.revision, 1);
    assert_int_equal(committed.count, 1);
    committed = done(world, "c", OP(.session_commit = &commit));
    assert_false(committed.fresh);
    assert_int_equal(committed.revision, 1);

    struct hf_session_release release = { .size = sizeof release,
                                          .session_id = "s",
                                          .token = held.token };
    assert_true(done(world, "s", OP(.session_head = "s")).held);
    (void)done(world, "", OP(.session_release = &release));
    (void)done(world, "", OP(.session_release = &release)); /* its answer was lost */
    struct told head = done(world, "s", OP(.session_head = "s"));
    assert_false(head.held);
    assert_int_equal(head.revision, 1);

    struct hf_session_load load = { .size = sizeof load, .session_id = "s" };
    assert_int_equal(done(world, "s", OP(.session_load = &load)).count, 1);
    struct hf_session_filter filter = { .size = sizeof filter, .agent = "a" };
    struct told listed = done(world, "s", OP(.session_list = &filter));
    assert_int_equal(listed.count, 1);
    assert_string_equal(listed.id, "s");
}

static void each_verb_answers_as_its_blocking_form(void **state)
{
    (void)state;
    on_both(each_verb, "each", 1);
}

/* ---- several at once ------------------------------------------------------------------- */

static void several(struct world *world)
{
    static struct told told[MANY];
    static struct hf_session_spec news[MANY];
    static struct hf_session_send sends[MANY];
    static struct hf_session_claim claims[MANY];
    static struct hf_session_commit commits[MANY];
    char ids[MANY][16];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "s%d", i);
        news[i] = spec(ids[i]);
        sends[i] = message(ids[i]);
        claims[i] = (struct hf_session_claim){ .size = sizeof claims[i],
                                               .session_id = ids[i] };
        submit(world, OP(.session_create = &news[i]), &told[i]);
    }
    for (int i = 0; i < MANY; i++)
        assert_string_equal(await(&told[i])->id, ids[i]);
    for (int i = 0; i < MANY; i++)
        submit(world, OP(.session_send = &sends[i]), &told[i]);
    for (int i = 0; i < MANY; i++)
        assert_true(await(&told[i])->fresh);
    for (int i = 0; i < MANY; i++)
        submit(world, OP(.session_claim = &claims[i]), &told[i]);
    static struct told held[MANY];
    for (int i = 0; i < MANY; i++) {
        held[i] = *await(&told[i]);
        assert_string_equal(held[i].id, ids[i]);
        commits[i] = commit_of(&held[i]);
        commits[i].release = true;
    }
    for (int i = 0; i < MANY; i++)
        submit(world, OP(.session_commit = &commits[i]), &told[i]);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(await(&told[i])->code, 0);
        assert_int_equal(told[i].revision, 1);
    }
    assert_int_equal(done(world, "s", OP(.session_head = "s23")).revision, 1);
}

static void several_at_once_each_get_their_own_answers(void **state)
{
    (void)state;
    on_both(several, "several", 4);
}

/* ---- errors ---------------------------------------------------------------------------- */

static void refusals(struct world *world)
{
    struct told held = begin_turn(world);
    struct hf_session_spec other = spec("s");
    other.labels = "{\"x\":\"y\"}";
    struct hf_session_send nowhere = message("none");
    struct hf_session_claim busy = { .size = sizeof busy, .session_id = "s" };
    struct hf_session_commit moved = commit_of(&held), superseded = moved;
    moved.head_revision = 7;
    superseded.turn_id = "another";
    struct hf_session_release foreign = { .size = sizeof foreign,
                                          .session_id = "s",
                                          .token = "hf1.1.9.other" };
    struct hf_session_release with_turn = foreign;
    with_turn.token = held.token;
    struct hf_session_load absent = { .size = sizeof absent, .session_id = "none" };
    const struct {
        const struct hf_operation *operation;
        int code;
    } cases[] = {
        { OP(.session_create = &other), HF_ECONFLICT },
        { OP(.session_send = &nowhere), HF_ENOTFOUND },
        { OP(.session_claim = &busy), HF_ESESSIONBUSY },
        { OP(.session_commit = &moved), HF_EHEADMOVED },
        { OP(.session_commit = &superseded), HF_ESUPERSEDED },
        { OP(.session_release = &foreign), HF_ESESSIONLOST },
        { OP(.session_release = &with_turn), HF_ETRANSITION },
        { OP(.session_head = "none"), HF_ENOTFOUND },
        { OP(.session_load = &absent), HF_ENOTFOUND },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told told = did(world, cases[i].operation);
        assert_int_equal(told.code, cases[i].code);
        assert_string_equal(told.shape, "");
    }
    assert_int_equal(done(world, "s", OP(.session_head = "s")).revision, 0);
}

static void a_refusal_is_that_of_the_blocking_form(void **state)
{
    (void)state;
    on_both(refusals, "refusals", 2);
}

static void never(void *user, const struct hf_submitted *outcome)
{
    (void)user;
    (void)outcome;
    fail();
}

static void bad_input_is_answered_at_once(void **state)
{
    struct world world;
    uint8_t chain[32] = { 0 };
    struct told none = { .id = "s", .token = "t", .turn_id = "w" };
    struct hf_session_spec new = spec("s"), agentless = spec("s");
    struct hf_session_send send = message("s");
    struct hf_session_claim claim = { .size = sizeof claim,
                                      .session_id = "s",
                                      .wait_ms = 5 };
    struct hf_session_claim nothing = { .size = sizeof nothing };
    struct hf_session_step step = { .size = sizeof step,
                                    .session_id = "s",
                                    .token = "t",
                                    .turn_id = "w",
                                    .chain = chain };
    struct hf_session_commit commit = commit_of(&none);
    struct hf_session_renewal renewal = { .session_id = "s" };
    struct hf_session_release release = { .size = sizeof release, .token = "t" };
    struct hf_session_back back = { .size = sizeof back, .session_id = "s" };
    struct hf_session_load load = { .size = sizeof load, .session_id = "s" };
    struct hf_session_filter filter = { .size = sizeof filter, .limit = 100000 };
    struct hf_operation first_version = { .session_create = &new };
    (void)state;
    agentless.agent = NULL;
    send.message = "{}";
    commit.outcome = "[]";
    back.delay_ms = -1;
    load.from_ordinal = -1;
    first_version.size = offsetof(struct hf_operation, session_create);
    const struct {
        const struct hf_operation *operation;
        int code;
        const char *field;
    } cases[] = {
        { OP(.session_create = &new, .session_send = &send), HF_EINVAL, "operation" },
        { &first_version, HF_EINVAL, "operation" }, /* its caller has set nothing */
        { OP(.session_create = &agentless), HF_EINVAL, "agent" },
        { OP(.session_send = &send), HF_EINVAL, "message" },
        { OP(.session_claim = &claim), HF_EINVAL, "wait_ms" },
        { OP(.session_claim = &nothing), HF_EINVAL, "agents" },
        { OP(.session_step = &step), HF_EINVAL, "save" },
        { OP(.session_commit = &commit), HF_EINVAL, "outcome" },
        { OP(.session_renew_all = &renewal, .n = 1), HF_EINVAL, "token" },
        { OP(.session_release = &release), HF_EINVAL, "session_id" },
        { OP(.session_hand_back = &back), HF_EINVAL, "delay_ms" },
        { OP(.session_head = ""), HF_EINVAL, "session_id" },
        { OP(.session_load = &load), HF_EINVAL, "from_ordinal" },
        { OP(.session_list = &filter), HF_ETOOBIG, "limit" },
    };
    opened(&world, "sqlite::memory:", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            hf_submit(world.submitter, cases[i].operation, never, NULL, &world.err),
            cases[i].code);
        assert_string_equal(world.err.field, cases[i].field);
    }
    closed(&world);
}

static void closing_waits_for_what_was_taken(void **state)
{
    static struct told told[MANY];
    struct hf_session_spec new = spec("s");
    struct hf_session_send send = message("s");
    struct hf_session_answer *answer = NULL;
    struct world world;
    (void)state;
    opened(&world, "sqlite::memory:", 2);
    (void)done(&world, "s", OP(.session_create = &new));
    send.source_key = NULL;
    for (int i = 0; i < MANY; i++)
        submit(&world, OP(.session_send = &send), &told[i]);
    hf_submitter_close(world.submitter);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(told[i].calls, 1);
        assert_int_equal(told[i].code, 0);
    }
    assert_int_equal(hf_session_inputs(world.store, "s", NULL, 0, &answer, &world.err),
                     0);
    assert_int_equal(answer->input_count, MANY);
    hf_session_answer_free(answer);
    hf_store_close(world.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verb_answers_as_its_blocking_form),
        cmocka_unit_test(several_at_once_each_get_their_own_answers),
        cmocka_unit_test(a_refusal_is_that_of_the_blocking_form),
        cmocka_unit_test(bad_input_is_answered_at_once),
        cmocka_unit_test(closing_waits_for_what_was_taken),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("submit_session", tests, NULL, NULL);
}
