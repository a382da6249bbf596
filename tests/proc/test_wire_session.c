/* The verbs of sessions over a wire that is cut at every message of their exchange
 * (support/cuts.h), and over one that is held up until another worker has the session. Plain
 * SQL past all code of ours counts how often a verb happened. Answers are compared with values
 * that the test has computed itself, so that the repeat of a lost answer must say what the
 * first would have said.
 *
 * By itself it cuts the commit. `test_proc_wire_session all` cuts every verb (two minutes),
 * `test_proc_wire_session NAME` those whose names contain it. */
#include "support/unit.h"

#include <holdfast/session.h>
#include <holdfast/store.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cuts.h"
#include "support/pg.h"

#define PORT 5899
#define SAVE "the machine after its step"
#define MESSAGE                                                                          \
    "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\",\"parts\":"       \
    "[{\"kind\":\"text\",\"content\":\"hello\"}]}}"

#define SHA256_OF_ABC                                                                    \
    {                                                                                    \
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d,    \
            0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4,      \
            0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad                                     \
    }

static struct cut_rig rig;
static struct hf_store *cut;   /* through the proxy */
static struct hf_store *judge; /* past it */
static struct hf_store *late;  /* past it, and its clock is a day ahead */
static PGconn *outside;        /* plain SQL */
static const char *wanted_verb;

struct verb;

/* One session and what its holder remembers of it. */
struct talk {
    const struct verb *verb;
    char id[32]; /* of the session, its agent and the nonce of its claim */
    char token[200];
    char turn_id[40];
    int64_t head_revision;
    int64_t record_count;
};

struct verb {
    const char *name;
    void (*prepare)(struct talk *t);
    int (*call)(struct talk *t);
    const char *count; /* an expression over a row of session: how often it happened */
    int done_as;       /* as in struct cut_case */
    bool brief;        /* cut without an argument */
};

/* ---- records ------------------------------------------------------------------------- */

static const struct hf_part parts[] = { { .content = { "first", 5 } },
                                        { .content = { "second", 6 } } };
static const struct hf_message messages[] = {
    { .id = "m1", .role = HF_ROLE_ASSISTANT, .parts = &parts[0], .part_count = 1 },
    { .id = "m2", .role = HF_ROLE_ASSISTANT, .parts = &parts[1], .part_count = 1 },
};
static const struct hf_record records[] = {
    { .kind = HF_RECORD_MESSAGE, .message = &messages[0] },
    { .kind = HF_RECORD_MESSAGE, .message = &messages[1] },
};
static const uint8_t no_history[32];

/* The digest after so many of the records. */
static void chain_after(size_t count, uint8_t chain[32])
{
    memcpy(chain, no_history, 32);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(hf_record_chain(chain, &records[i], chain, NULL), 0);
}

/* ---- the verbs -------------------------------------------------------------------------- */

static int create(struct hf_store *store, struct talk *t)
{
    struct hf_session_spec wanted = { .size = sizeof(wanted),
                                      .session_id = t->id,
                                      .agent = t->id };
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_create(store, NULL, &wanted, &answer, NULL);
    if (rc == 0)
        assert_string_equal(answer->sessions->session_id, t->id);
    hf_session_answer_free(answer);
    return rc;
}

static int send(struct hf_store *store, struct talk *t)
{
    struct hf_session_send wanted = { .size = sizeof(wanted),
                                      .session_id = t->id,
                                      .source_key = "key",
                                      .message = MESSAGE };
    struct hf_answer *answer = NULL;
    int rc = hf_session_send(store, NULL, &wanted, &answer, NULL);
    if (rc == 0)
        (void)snprintf(t->turn_id, sizeof(t->turn_id), "%s",
                       hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return rc;
}

static void remember(struct talk *t, const struct hf_session_answer *answer)
{
    (void)snprintf(t->token, sizeof(t->token), "%s", answer->token);
    t->head_revision = answer->sessions->head_revision;
    t->record_count = answer->sessions->record_count;
}

static int claim(struct hf_store *store, struct talk *t, const char *owner)
{
    struct hf_session_claim wanted = { .size = sizeof(wanted),
                                       .session_id = t->id,
                                       .owner = owner,
                                       .incarnation = "boot",
                                       .nonce = store == late ? NULL : t->id };
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_claim(store, NULL, &wanted, &answer, NULL);
    if (rc == 0)
        remember(t, answer);
    hf_session_answer_free(answer);
    return rc;
}

static int step(struct hf_store *store, struct talk *t)
{
    struct hf_session_step wanted = { .size = sizeof(wanted),
                                      .session_id = t->id,
                                      .token = t->token,
                                      .turn_id = t->turn_id,
                                      .chain = no_history,
                                      .records = records,
                                      .record_count = 1,
                                      .save = { SAVE, sizeof(SAVE) - 1 } };
    struct hf_session_stepped stepped = { .step = 0 };
    uint8_t chain[32];
    int rc = hf_session_step(store, NULL, &wanted, &stepped, NULL);
    if (rc)
        return rc;
    chain_after(1, chain);
    assert_int_equal(stepped.step, 1);
    assert_int_equal(stepped.node_count, 1);
    assert_memory_equal(stepped.chain, chain, 32);
    return 0;
}

/* A commit with all that one can have: a step before it, records, a blob, usage, a unit. */
static int commit(struct hf_store *store, struct talk *t, bool *ret_repeated)
{
    const struct hf_session_blob blob = { .hash = SHA256_OF_ABC, .bytes = { "abc", 3 } };
    struct hf_session_spent spent = { "model", "m", { .input = 3, .output = 2 } };
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = t->id,
                                 .disposition = HF_DISPOSITION_RERUNNABLE,
                                 .priority = -1 };
    uint8_t before[32], after[32];
    chain_after(1, before);
    chain_after(2, after);
    struct hf_session_commit wanted = { .size = sizeof(wanted),
                                        .session_id = t->id,
                                        .token = t->token,
                                        .turn_id = t->turn_id,
                                        .step = 1,
                                        .node_count = 1,
                                        .chain = before,
                                        .records = &records[1],
                                        .added_count = 1,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{\"kind\":\"assistant_message\"}",
                                        .blobs = &blob,
                                        .blob_count = 1,
                                        .spent = &spent,
                                        .spent_count = 1,
                                        .units = &unit,
                                        .unit_count = 1,
                                        .release = true };
    struct hf_session_committed committed = { .head_revision = 0 };
    int rc = hf_session_commit(store, NULL, &wanted, &committed, NULL);
    if (rc)
        return rc;
    assert_int_equal(committed.head_revision, 1);
    assert_int_equal(committed.record_count, 2);
    assert_memory_equal(committed.chain, after, 32);
    *ret_repeated = committed.repeated;
    return 0;
}

static int renew(struct hf_store *store, struct talk *t)
{
    struct hf_session_renewal one = { .session_id = t->id, .token = t->token };
    int rc = hf_session_renew_all(store, &one, 1, NULL);
    return rc ? rc : one.code;
}

static int release(struct hf_store *store, struct talk *t)
{
    return hf_session_release(store, NULL, t->id, t->token, NULL);
}

static int hand_back(struct hf_store *store, struct talk *t)
{
    struct hf_session_back wanted = { .size = sizeof(wanted),
                                      .session_id = t->id,
                                      .token = t->token };
    return hf_session_hand_back(store, NULL, &wanted, NULL);
}

/* ---- preparing ----------------------------------------------------------------------- */

static void none(struct talk *t)
{
    (void)t;
}

static void made(struct talk *t)
{
    assert_int_equal(create(judge, t), 0);
}

static void sent(struct talk *t)
{
    made(t);
    assert_int_equal(send(judge, t), 0);
}

static void held_idle(struct talk *t)
{
    made(t);
    assert_int_equal(claim(judge, t, "w"), 0);
}

static void held(struct talk *t)
{
    sent(t);
    assert_int_equal(claim(judge, t, "w"), 0);
}

static void stepped(struct talk *t)
{
    held(t);
    assert_int_equal(step(judge, t), 0);
}

/* ---- calling -------------------------------------------------------------------------- */

static int do_create(struct talk *t)
{
    return create(cut, t);
}

static int do_send(struct talk *t)
{
    return send(cut, t);
}

/* The same nonce again keeps the token. */
static int do_claim(struct talk *t)
{
    char before[200];
    memcpy(before, t->token, sizeof(before));
    int rc = claim(cut, t, "w");
    if (rc == 0 && before[0])
        assert_string_equal(t->token, before);
    return rc;
}

static int do_step(struct talk *t)
{
    return step(cut, t);
}

static int do_commit(struct talk *t)
{
    bool repeated;
    return commit(cut, t, &repeated);
}

static int do_renew(struct talk *t)
{
    return renew(cut, t);
}

static int do_release(struct talk *t)
{
    return release(cut, t);
}

static int do_hand_back(struct talk *t)
{
    return hand_back(cut, t);
}

/* Counts of one session. A lease that was given up cannot be given up again: the repeat of a
 * release or a hand-back says that the lease is not the caller's any more. */
#define INPUTS                                                                           \
    "(SELECT count(*) FROM wires.session_input i WHERE i.session_key = s.session_key)"
#define STEPS "(SELECT t.step FROM wires.session_turn t WHERE t.turn_key = s.turn_key)"
#define FREE "(s.claim_group IS NULL)::int"
#define BACK                                                                             \
    "(SELECT count(*) FROM wires.runtime_work_event e JOIN wires.session_turn t ON"      \
    " t.turn_id = e.work_id WHERE t.session_key = s.session_key"                         \
    " AND e.from_status = 'running' AND e.to_status = 'queued')"
/* Every part of the commit must be there once: then the sum of the counts is 6. */
#define COMMITS                                                                          \
    "(s.head_revision + (SELECT count(*) FROM wires.node n"                              \
    " WHERE n.session_key = s.session_key AND n.ordinal < s.record_count)"               \
    " + (SELECT count(*) FROM wires.usage u WHERE u.session_key = s.session_key)"        \
    " + (SELECT count(*) FROM wires.runtime_work w WHERE w.source_id = s.session_id"     \
    " AND w.source_system = 'manual')"                                                   \
    " + (SELECT count(*) FROM wires.runtime_work_event e JOIN wires.session_turn t ON"   \
    " t.turn_id = e.work_id WHERE t.session_key = s.session_key"                         \
    " AND e.to_status = 'done'))"
#define COMMIT_PARTS 6

/* clang-format off */
static const struct verb verbs[] = {
    { "create",    none,      do_create,    "count(s.session_key)", 0,               false },
    { "send",      made,      do_send,      INPUTS,                 0,               false },
    { "claim",     sent,      do_claim,     "s.lease_fence",        0,               false },
    { "step",      held,      do_step,      STEPS,                  0,               false },
    { "commit",    stepped,   do_commit,    COMMITS,                0,               true },
    { "renew",     held,      do_renew,     NULL,                   0,               false },
    { "release",   held_idle, do_release,   FREE,                   HF_ESESSIONLOST, false },
    { "hand_back", held,      do_hand_back, BACK,                   HF_ESESSIONLOST, false },
};
/* clang-format on */
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* ---- cut ------------------------------------------------------------------------------ */

static void prepare_talk(void *user, int number)
{
    struct talk *t = user;
    *t = (struct talk){ .verb = t->verb };
    (void)snprintf(t->id, sizeof(t->id), "s%d", number);
    t->verb->prepare(t);
}

static int call_talk(void *user)
{
    struct talk *t = user;
    return t->verb->call(t);
}

static int64_t number_of(const char *expression, const char *session_id)
{
    char sql[1500];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT %s FROM wires.session s WHERE session_id = '%s'", expression,
                   session_id);
    PGresult *result = PQexec(outside, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        fail_msg("%s: %s", sql, PQerrorMessage(outside));
    int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

static int64_t times_talk(void *user)
{
    const struct talk *t = user;
    return t->verb->count ? number_of(t->verb->count, t->id) : -1;
}

static bool is_wanted(const struct verb *verb)
{
    if (!wanted_verb)
        return verb->brief;
    return strcmp(wanted_verb, "all") == 0 || strstr(verb->name, wanted_verb);
}

static void every_message_of_every_verb_can_be_the_last(void **state)
{
    (void)state;
    for (size_t v = 0; v < VERBS; v++) {
        struct talk t = { .verb = &verbs[v] };
        if (is_wanted(&verbs[v]))
            cut_everywhere(rig.proxy,
                           &(struct cut_case){
                               .name = verbs[v].name,
                               .prepare = prepare_talk,
                               .call = call_talk,
                               .times = times_talk,
                               .once = verbs[v].call == do_commit ? COMMIT_PARTS : 1,
                               .done_as = verbs[v].done_as,
                           },
                           &t);
    }
}

/* ---- held up past the lease --------------------------------------------------------------- */

static struct talk paused_talk;
static int paused_code;

static void *call_paused(void *user)
{
    (void)user;
    paused_code = paused_talk.verb->call(&paused_talk);
    return NULL;
}

/* The verb waits at the first message of that kind until `late` has claimed the session. */
static int paused(const struct verb *verb, enum wire_way way, struct talk *ret_late)
{
    static int number = 100000;
    pthread_t thread;
    paused_talk = (struct talk){ .verb = verb };
    prepare_talk(&paused_talk, ++number);
    assert_int_equal(verb->call(&paused_talk), 0); /* connected, statements prepared */
    prepare_talk(&paused_talk, ++number);
    *ret_late = paused_talk;
    wire_proxy_arm(rig.proxy, 1, WIRE_HOLD, way);
    assert_int_equal(pthread_create(&thread, NULL, call_paused, NULL), 0);
    if (!wire_proxy_await(rig.proxy))
        fail_msg("%s: nothing passed", verb->name);
    int rc = claim(late, ret_late, "late");
    if (rc)
        fail_msg("%s: it cannot be taken over: %s", verb->name, hf_err_wire(rc));
    (void)wire_proxy_disarm(rig.proxy);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return paused_code;
}

static bool by_holder(const struct verb *verb)
{
    return verb->prepare == held || verb->prepare == held_idle ||
           verb->prepare == stepped;
}

static void a_holder_paused_past_its_lease_is_refused_in_every_verb(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t v = 0; v < VERBS; v++) {
        struct talk taken;
        bool repeated;
        if (!by_holder(&verbs[v]))
            continue;
        int rc = paused(&verbs[v], WIRE_TO_SERVER, &taken);
        if (rc != HF_ESESSIONLOST)
            fail_msg("%s: paused past its lease it was told %s", verbs[v].name,
                     rc ? hf_err_wire(rc) : "done");
        assert_int_equal(number_of("s.head_revision", taken.id), 0);
        if (verbs[v].prepare == held) /* the new holder goes on from where it was */
            assert_int_equal(step(late, &taken), 0);
        if (verbs[v].prepare != held_idle) {
            assert_int_equal(commit(late, &taken, &repeated), 0);
            assert_false(repeated);
        }
        tried++;
    }
    assert_int_equal(tried, 5);
}

/* The commit was made in time: another worker that claims the session since finds it, and the
 * caller hears of it, now and when it asks again. */
static void a_commit_that_is_heard_of_late_is_made_once(void **state)
{
    (void)state;
    struct talk taken;
    bool repeated = false;
    const struct verb *verb = NULL;
    for (size_t v = 0; v < VERBS; v++)
        if (verbs[v].call == do_commit)
            verb = &verbs[v];
    assert_int_equal(paused(verb, WIRE_READY, &taken), 0);
    assert_int_equal(taken.head_revision, 1);
    assert_int_equal(taken.record_count, 2);
    assert_int_equal(commit(cut, &paused_talk, &repeated), 0);
    assert_true(repeated);
    assert_int_equal(number_of(COMMITS, taken.id), COMMIT_PARTS);
    assert_int_equal(release(late, &taken), 0);
}

static int setup(void **state)
{
    (void)state;
    cut_rig_start(&rig, "wires", PORT);
    cut = rig.cut;
    judge = rig.judge;
    late = rig.late;
    outside = rig.outside;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cut_rig_stop(&rig);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_of_every_verb_can_be_the_last),
        cmocka_unit_test(a_holder_paused_past_its_lease_is_refused_in_every_verb),
        cmocka_unit_test(a_commit_that_is_heard_of_late_is_made_once),
    };
    wanted_verb = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, setup, teardown);
}
