/* Sessions where time is real: what each verb costs, waiting, a holder that dies, many threads. */

#include <holdfast/session.h>
#include <holdfast/store.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/mortal.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

#define MESSAGE                                                                          \
    "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","                 \
    "\"parts\":[{\"content\":\"%d\"}]}}"

static struct pg_server server;
static char folder[64];

static const char *const agents[] = { "a" };

/* ---- stores ------------------------------------------------------------------------------- */

static const char *place(const char *name, bool postgres, char url[400])
{
    if (postgres)
        return pg_server_schema(server.url, name, url);
    (void)snprintf(url, 400, "%s/%s", folder, name);
    return url;
}

static struct hf_store *opened(const char *url)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_store_options options = { .size = sizeof(options) };
    if (hf_store_open(url, &options, &store, &err))
        fail_msg("%s", err.message);
    return store;
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-session-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[100];
    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* ---- verbs -------------------------------------------------------------------------------- */

static int sent(struct hf_store *store, const char *session_id, int number)
{
    char message[200];
    struct hf_answer *answer = NULL;
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = session_id,
                                       .message = message };
    (void)snprintf(message, sizeof(message), MESSAGE, number);
    int rc = hf_session_send(store, NULL, &request, &answer, NULL);
    hf_answer_free(answer);
    return rc;
}

static struct hf_session_answer *claimed_under(struct hf_store *store, const char *nonce,
                                               hf_ms wait_ms)
{
    struct hf_session_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .agents = agents,
                                      .agent_count = 1,
                                      .nonce = nonce,
                                      .wait_ms = wait_ms };
    if (hf_session_claim(store, NULL, &claim, &answer, &err))
        fail_msg("%s", err.message);
    return answer;
}

static struct hf_session_answer *claimed(struct hf_store *store, hf_ms wait_ms)
{
    return claimed_under(store, NULL, wait_ms);
}

/* The commit of a claimed turn that adds its own input to the history, and makes units. */
static int committed_with(struct hf_store *store, const struct hf_session_answer *held,
                          const struct hf_work_spec *units, size_t count, bool release)
{
    struct hf_session_committed done;
    struct hf_message said = { .id = held->turn->turn_id, .role = HF_ROLE_ASSISTANT };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    struct hf_session_commit commit = { .size = sizeof(commit),
                                        .session_id = held->sessions->session_id,
                                        .token = held->token,
                                        .turn_id = held->turn->turn_id,
                                        .head_revision = held->sessions->head_revision,
                                        .record_count = held->sessions->record_count,
                                        .step = held->turn->step,
                                        .node_count = held->turn->node_count,
                                        .chain = held->turn->chain,
                                        .records = &record,
                                        .added_count = 1,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{}",
                                        .units = units,
                                        .unit_count = count,
                                        .release = release };
    return hf_session_commit(store, NULL, &commit, &done, NULL);
}

static int committed(struct hf_store *store, const struct hf_session_answer *held,
                     bool release)
{
    return committed_with(store, held, NULL, 0, release);
}

static int stepped(struct hf_store *store, struct hf_session_answer *held)
{
    struct hf_session_stepped done;
    struct hf_message said = { .id = "s", .role = HF_ROLE_ASSISTANT };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = held->sessions->session_id,
                                    .token = held->token,
                                    .turn_id = held->turn->turn_id,
                                    .chain = held->turn->chain,
                                    .records = &record,
                                    .record_count = 1,
                                    .save = { "save", 4 } };
    return hf_session_step(store, NULL, &step, &done, NULL);
}

static int handed_back(struct hf_store *store, const struct hf_session_answer *held)
{
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = held->sessions->session_id,
                                    .token = held->token };
    return hf_session_hand_back(store, NULL, &back, NULL);
}

/* ---- the time that owners spent ------------------------------------------------------------ */

static hf_ms active_of(struct hf_store *store)
{
    struct hf_session_answer *answer = NULL;
    assert_int_equal(hf_session_turn(store, "s", NULL, &answer, NULL), 0);
    hf_ms active = answer->turn->active_ms;
    hf_session_answer_free(answer);
    return active;
}

static int back_after(struct hf_store *store, const struct hf_session_answer *held,
                      hf_ms active)
{
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = held->sessions->session_id,
                                    .token = held->token,
                                    .active_ms = active };
    return hf_session_hand_back(store, NULL, &back, NULL);
}

/* Two owners: the first reports time by a hand-back without a step, and repeats the call. */
static void a_hand_back_counts_its_owners_time_once(void **state)
{
    (void)state;
    for (int postgres = 0; postgres < 2; postgres++) {
        char url[400];
        struct hf_store *store = opened(place("active", postgres, url));
        make_session(store, "s");
        assert_int_equal(sent(store, "s", 1), 0);
        struct hf_session_answer *held = claimed(store, 0);
        assert_int_equal(back_after(store, held, -1), HF_EINVAL);
        assert_int_equal(back_after(store, held, 2100), 0);
        assert_int_equal(back_after(store, held, 2100), 0);
        hf_session_answer_free(held);
        assert_int_equal(active_of(store), 2100);
        held = claimed(store, 0);
        assert_int_equal(back_after(store, held, 400), 0);
        hf_session_answer_free(held);
        assert_int_equal(active_of(store), 2500);
        hf_store_close(store);
    }
}

/* ---- what each verb costs ----------------------------------------------------------------- */

struct cost {
    const char *verb;
    int64_t reads;
    int64_t writes;
    int64_t statements; /* of the writes */
};

/* docs/internals/sessions.md has the same numbers. */
static const struct cost costs[] = {
    { "create", 0, 1, 3 },         { "send", 0, 1, 5 },
    { "claim any", 1, 1, 13 },     { "step", 0, 1, 3 },
    { "hand_back", 0, 1, 3 },      { "claim a turn again", 1, 1, 10 },
    { "head", 1, 0, 0 },           { "load", 1, 0, 0 },
    { "renew_all", 0, 1, 2 },      { "commit", 0, 1, 5 },
    { "claim by id", 1, 1, 12 },   { "release", 0, 1, 2 },
    { "commit refused", 1, 1, 5 }, { "release again", 1, 1, 2 },
    { "list", 2, 0, 0 },           { "send", 0, 1, 5 },
    { "claim any", 1, 1, 13 },     { "claim repeated", 2, 0, 0 },
};

struct counting {
    struct hf_store *store;
    struct mortal_plan plan;
    struct hf_session_answer *held;
    int64_t step; /* of the turn that is held */
};

static void run_verb(struct counting *c, size_t verb)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    struct hf_session_filter filter = { .size = sizeof(filter) };
    struct hf_session_claim by_id = { .size = sizeof(by_id), .session_id = "s" };
    struct hf_session_renewal renewal = { .session_id = "s" };
    int rc = 0;
    switch (verb) {
    case 0: make_session(c->store, "s"); break;
    case 1: rc = sent(c->store, "s", 1); break;
    case 2: c->held = claimed(c->store, 0); break;
    case 3: rc = stepped(c->store, c->held); break;
    case 4: rc = handed_back(c->store, c->held); break;
    case 5:
        hf_session_answer_free(c->held);
        c->held = claimed(c->store, 0);
        break;
    case 6: rc = hf_session_head(c->store, "s", &answer, NULL); break;
    case 7: rc = hf_session_load(c->store, &load, &answer, NULL); break;
    case 8:
        renewal.token = c->held->token;
        rc = hf_session_renew_all(c->store, &renewal, 1, NULL);
        break;
    case 9: rc = committed(c->store, c->held, true); break;
    case 10:
        hf_session_answer_free(c->held);
        c->held = NULL;
        rc = hf_session_claim(c->store, NULL, &by_id, &c->held, NULL);
        break;
    case 11: rc = hf_session_release(c->store, NULL, "s", c->held->token, NULL); break;
    case 12: {
        struct hf_session_turn none = { .turn_id = "none" };
        c->held->turn = &none;
        assert_int_equal(committed(c->store, c->held, true), HF_ESESSIONLOST);
        c->held->turn = NULL;
        break;
    }
    case 13: rc = hf_session_release(c->store, NULL, "s", c->held->token, NULL); break;
    case 14: rc = hf_session_list(c->store, NULL, &filter, &answer, NULL); break;
    case 15: rc = sent(c->store, "s", 2); break;
    default:
        hf_session_answer_free(c->held);
        c->held = claimed_under(c->store, "nonce", 0);
        assert_non_null(c->held->turn);
        break;
    }
    assert_int_equal(rc, 0);
    hf_session_answer_free(answer);
}

/* Once with reads counted and once without; each verb follows those before it. */
static void count_all(struct hf_sql *sql, bool reads_too, int64_t counts[],
                      int64_t statements[])
{
    struct counting c = { .plan = { .reads_too = reads_too } };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = hf_alloc_system(),
                                        .clock = hf_clock_system(),
                                        .random = hf_random_system() };
    struct hf_sql *mortal = mortal_over(sql, &c.plan);
    assert_int_equal(hf_sql_store_new(mortal, &options, &c.store, NULL), 0);
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        int64_t before = c.plan.calls, statements_before = c.plan.statements;
        run_verb(&c, i);
        counts[i] = c.plan.calls - before;
        statements[i] = c.plan.statements - statements_before;
    }
    hf_session_answer_free(c.held);
    hf_store_close(c.store);
}

static void check_costs(bool postgres)
{
    int64_t all[20], writes[20], statements[20];
    for (int round = 0; round < 2; round++) {
        char url[400];
        struct hf_sql *sql = NULL;
        struct hf_sql_options options = { .size = sizeof(options) };
        const char *at = place(round ? "cost1" : "cost0", postgres, url);
        assert_int_equal(postgres ? hf_postgres_open(at, &options, &sql, NULL)
                                  : hf_sqlite_open(at, &options, &sql, NULL),
                         0);
        count_all(sql, round == 0, round == 0 ? all : writes, statements);
    }
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
        if (writes[i] != costs[i].writes || all[i] - writes[i] != costs[i].reads ||
            statements[i] != costs[i].statements)
            fail_msg(
                "%s: %lld reads, %lld writes of %lld statements, not %lld, %lld of %lld",
                costs[i].verb, (long long)(all[i] - writes[i]), (long long)writes[i],
                (long long)statements[i], (long long)costs[i].reads,
                (long long)costs[i].writes, (long long)costs[i].statements);
}

static void each_verb_has_its_number_of_transactions(void **state)
{
    (void)state;
    check_costs(false);
    check_costs(true);
}

#define RENEWALS 10000

/* Each transaction is two statements: of 10,000 leases, 20. */
static void check_renewals(bool postgres)
{
    char url[400];
    static struct hf_session_renewal all[RENEWALS];
    struct hf_store *store = NULL;
    struct hf_sql *sql = NULL;
    struct mortal_plan plan = { .calls = 0 };
    struct hf_sql_options options = { .size = sizeof(options) };
    struct hf_store_options given = { .size = sizeof(given),
                                      .alloc = hf_alloc_system(),
                                      .clock = hf_clock_system(),
                                      .random = hf_random_system() };
    const char *at = place("renew", postgres, url);
    assert_int_equal(postgres ? hf_postgres_open(at, &options, &sql, NULL)
                              : hf_sqlite_open(at, &options, &sql, NULL),
                     0);
    assert_int_equal(hf_sql_store_new(mortal_over(sql, &plan), &given, &store, NULL), 0);
    make_session(store, "s");
    assert_int_equal(sent(store, "s", 1), 0);
    struct hf_session_answer *held = claimed(store, 0);
    for (size_t i = 0; i < RENEWALS; i++)
        all[i] = (struct hf_session_renewal){ "s", "hf1.1.1.another", .code = 0 };
    all[RENEWALS - 1].token = held->token;
    int64_t before = plan.calls, statements = plan.statements;
    assert_int_equal(hf_session_renew_all(store, all, RENEWALS, NULL), 0);
    assert_int_equal(plan.calls - before, 10);
    assert_int_equal(plan.statements - statements, 20);
    assert_int_equal(all[RENEWALS - 2].code, HF_ESESSIONLOST);
    assert_int_equal(all[RENEWALS - 1].code, 0);
    hf_session_answer_free(held);
    hf_store_close(store);
}

static void ten_thousand_leases_are_renewed_by_twenty_statements(void **state)
{
    (void)state;
    check_renewals(false);
    check_renewals(true);
}

/* ---- bells -------------------------------------------------------------------------------- */

#define QUEUES 12

static void check_rings(bool postgres)
{
    char url[400], names[QUEUES][8];
    uint32_t seen[QUEUES];
    struct hf_work_spec units[QUEUES];
    struct hf_store *store = opened(place("rings", postgres, url));
    struct hf_sql *sql = sql_store_of(store)->sql;
    make_session(store, "s");
    assert_int_equal(sent(store, "s", 1), 0);
    struct hf_session_answer *held = claimed(store, 0);
    for (size_t i = 0; i < QUEUES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "q%zu", i);
        units[i] = (struct hf_work_spec){ .size = sizeof(units[i]),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = names[i],
                                          .kind = "mail",
                                          .queue = names[i],
                                          .priority = -1 };
        seen[i] = sql->methods->bell_seen(sql, hf_topic_of_queue(names[i]));
    }
    assert_int_equal(committed_with(store, held, units, QUEUES, true), 0);
    for (size_t i = 0; i < QUEUES; i++)
        if (sql->methods->bell_seen(sql, hf_topic_of_queue(names[i])) == seen[i])
            fail_msg("queue %s was not rung", names[i]);
    hf_session_answer_free(held);
    hf_store_close(store);
}

static void a_commit_rings_every_queue_that_it_feeds(void **state)
{
    (void)state;
    check_rings(false);
    check_rings(true);
}

/* All expectations of a write are checked in SQL, so that it is one round trip. */
static void no_write_takes_a_second_round_trip(void **state)
{
    char url[400];
    (void)state;
    struct hf_store *store = opened(place("trips", true, url));
    const struct pg *pg = pg_of(sql_store_of(store)->sql);
    make_session(store, "s");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sent(store, "s", i), 0);
        struct hf_session_answer *held = claimed(store, 0);
        assert_int_equal(stepped(store, held), 0);
        assert_int_equal(handed_back(store, held), 0);
        hf_session_answer_free(held);
        held = claimed(store, 0);
        assert_int_equal(committed(store, held, i == 0), 0);
        if (i == 1)
            assert_int_equal(hf_session_release(store, NULL, "s", held->token, NULL), 0);
        hf_session_answer_free(held);
    }
    assert_int_equal(pg->counts.two_trips, 0);
    assert_int_equal(pg->counts.replays, 0);
    hf_store_close(store);
}

/* ---- waiting ------------------------------------------------------------------------------ */

static void *send_later(void *store)
{
    assert_int_equal(sent(store, "s", 1), 0);
    return NULL;
}

static void check_waiting(bool postgres)
{
    char url[400];
    pthread_t thread;
    struct hf_store *store = opened(place("wait", postgres, url));
    make_session(store, "s");
    struct hf_session_answer *none = claimed(store, 20);
    assert_int_equal(none->session_count, 0);
    hf_session_answer_free(none);
    assert_int_equal(pthread_create(&thread, NULL, send_later, store), 0);
    struct hf_session_answer *held = claimed(store, 20000);
    assert_int_equal(held->session_count, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    hf_session_answer_free(held);
    hf_store_close(store);
}

static void a_claim_waits_until_there_is_a_message(void **state)
{
    (void)state;
    check_waiting(false);
    check_waiting(true);
}

/* Claims with its own process as the holder, says so, and waits to be killed. */
static void hold_until_killed(const char *url, int told)
{
    struct hf_store *store = NULL;
    struct hf_store_options options = { .size = sizeof(options) };
    struct hf_session_answer *held = NULL;
    struct hf_session_claim claim = {
        .size = sizeof(claim), .session_id = "s", .pid = (int)getpid(), .ttl_ms = 3600000
    };
    if (hf_store_open(url, &options, &store, NULL) ||
        hf_session_claim(store, NULL, &claim, &held, NULL) || write(told, "x", 1) != 1)
        _exit(1);
    for (;;)
        (void)pause(); /* until it is killed */
}

static void check_death(bool postgres)
{
    char url[400], byte;
    int told[2];
    struct hf_store *store = opened(place("death", postgres, url));
    make_session(store, "s");
    assert_int_equal(sent(store, "s", 1), 0);
    hf_store_close(store); /* a handle does not survive a fork */
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        hold_until_killed(url, told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    store = opened(url);
    struct hf_session_answer *none = claimed(store, 0);
    assert_int_equal(none->session_count, 0); /* its holder lives */
    hf_session_answer_free(none);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct hf_session_answer *held = claimed(store,
                                             20000); /* the lease has an hour left */
    assert_int_equal(held->session_count, 1);
    assert_true(held->displaced);
    assert_int_equal(held->sessions->lease_fence, 2);
    assert_int_equal(held->turn->inputs[0].crashes, 1);
    assert_int_equal(committed(store, held, true), 0);
    hf_session_answer_free(held);
    hf_store_close(store);
    assert_int_equal(close(told[0]), 0);
    assert_int_equal(close(told[1]), 0);
}

static void a_dead_holder_loses_its_session_before_the_term(void **state)
{
    (void)state;
    check_death(false);
    check_death(true);
}

/* ---- many threads -------------------------------------------------------------------------- */

#define SESSIONS 5
#define SENDERS 4
#define WORKERS 4
#define MESSAGES 8 /* per sender and session */

static struct crowd {
    struct hf_store *store;
    _Atomic int left;
    _Atomic int failed;
} crowd;

static void name_of(int i, char out[8])
{
    (void)snprintf(out, 8, "s%d", i);
}

static void *send_many(void *user)
{
    (void)user;
    for (int i = 0; i < MESSAGES * SESSIONS; i++) {
        char name[8];
        name_of(i % SESSIONS, name);
        crowd.failed |= sent(crowd.store, name, i) != 0;
    }
    return NULL;
}

static void *work_many(void *user)
{
    (void)user;
    while (crowd.left > 0 && !crowd.failed) {
        struct hf_session_answer *held = claimed(crowd.store, 200);
        if (held->session_count > 0) {
            crowd.failed |= !held->turn || committed(crowd.store, held, true) != 0;
            crowd.left--;
        }
        hf_session_answer_free(held);
    }
    return NULL;
}

/* Each input has one record, in the order in which the inputs came. */
static void check_history(const char *name)
{
    struct hf_session_answer *loaded = NULL, *inputs = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = name };
    assert_int_equal(hf_session_load(crowd.store, &load, &loaded, NULL), 0);
    assert_int_equal(hf_session_inputs(crowd.store, name, NULL, 1000, &inputs, NULL), 0);
    assert_int_equal(inputs->input_count, SENDERS * MESSAGES);
    assert_int_equal(loaded->node_count, SENDERS * MESSAGES);
    for (size_t i = 0; i < loaded->node_count; i++)
        assert_string_equal(loaded->nodes[i].record->message->id,
                            inputs->inputs[i].work_id);
    hf_session_answer_free(inputs);
    hf_session_answer_free(loaded);
}

static void check_crowd(bool postgres)
{
    char url[400];
    pthread_t threads[SENDERS + WORKERS];
    crowd.store = opened(place("crowd", postgres, url));
    crowd.left = SENDERS * MESSAGES * SESSIONS;
    crowd.failed = 0;
    for (int i = 0; i < SESSIONS; i++) {
        char name[8];
        name_of(i, name);
        make_session(crowd.store, name);
    }
    for (int i = 0; i < SENDERS + WORKERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < SENDERS ? send_many : work_many, NULL),
            0);
    for (int i = 0; i < SENDERS + WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(crowd.failed);
    for (int i = 0; i < SESSIONS; i++) {
        char name[8];
        name_of(i, name);
        check_history(name);
    }
    hf_store_close(crowd.store);
}

static void every_message_is_in_its_history_once_and_in_order(void **state)
{
    (void)state;
    check_crowd(false);
    check_crowd(true);
}

/* ---- at the same moment --------------------------------------------------------------------- */

#define RACERS 4
#define ROUNDS 10

/* One of the threads that do the same at once. */
struct racer {
    pthread_t thread;
    pthread_barrier_t *start;
    struct hf_store *store;
    const struct hf_session_commit *commit;
    bool by_id;
    int code;
    struct hf_session_committed committed;
    struct hf_session_answer *held;
};

static void race(struct racer *racers, void *(*run)(void *))
{
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, RACERS), 0);
    for (int i = 0; i < RACERS; i++) {
        racers[i].start = &start;
        assert_int_equal(pthread_create(&racers[i].thread, NULL, run, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&start), 0);
}

static void *commit_at_once(void *user)
{
    struct racer *racer = user;
    (void)pthread_barrier_wait(racer->start);
    racer->code = hf_session_commit(racer->store, NULL, racer->commit, &racer->committed,
                                    NULL);
    return NULL;
}

/* By two handles, so that some share a group and some do not. */
static void check_equal_commits(bool postgres)
{
    char url[400];
    const char *at = place("equal", postgres, url);
    struct hf_store *stores[] = { opened(at), opened(at) };
    make_session(stores[0], "s");
    for (int round = 0; round < ROUNDS; round++) {
        struct racer racers[RACERS] = { { .code = 1 } };
        assert_int_equal(sent(stores[0], "s", round), 0);
        struct hf_session_answer *held = claimed(stores[0], 0);
        const struct hf_session_commit commit = {
            .size = sizeof(commit),
            .session_id = "s",
            .token = held->token,
            .turn_id = held->turn->turn_id,
            .head_revision = held->sessions->head_revision,
            .record_count = held->sessions->record_count,
            .chain = held->turn->chain,
            .status = HF_STATUS_DONE,
            .outcome = "{}",
            .release = true,
        };
        for (int i = 0; i < RACERS; i++) {
            racers[i].store = stores[i % 2];
            racers[i].commit = &commit;
        }
        race(racers, commit_at_once);
        int first = 0;
        for (int i = 0; i < RACERS; i++) {
            assert_int_equal(racers[i].code, 0);
            assert_int_equal(racers[i].committed.head_revision, round + 1);
            first += !racers[i].committed.repeated;
        }
        assert_int_equal(first, 1);
        hf_session_answer_free(held);
    }
    hf_store_close(stores[1]);
    hf_store_close(stores[0]);
}

static void of_equal_commits_at_once_one_is_made_and_the_others_are_repeats(void **state)
{
    (void)state;
    check_equal_commits(false);
    check_equal_commits(true);
}

static void *claim_at_once(void *user)
{
    struct racer *racer = user;
    struct hf_session_claim claim = { .size = sizeof(claim) };
    if (racer->by_id) {
        claim.session_id = "s";
    } else {
        claim.agents = agents;
        claim.agent_count = 1;
    }
    (void)pthread_barrier_wait(racer->start);
    racer->code = hf_session_claim(racer->store, NULL, &claim, &racer->held, NULL);
    return NULL;
}

static void check_first_claim(const char *name, bool postgres, bool by_id)
{
    char url[400];
    const char *at = place(name, postgres, url);
    struct hf_store *store = opened(at);
    struct racer racers[RACERS] = { { .code = 1 } };
    int won = 0;
    make_session(store, "s");
    assert_int_equal(sent(store, "s", 1), 0);
    hf_store_close(store);
    struct hf_store *stores[] = { opened(at), opened(at) };
    for (int i = 0; i < RACERS; i++) {
        racers[i].store = stores[i % 2];
        racers[i].by_id = by_id;
    }
    race(racers, claim_at_once);
    for (int i = 0; i < RACERS; i++) {
        bool wins = racers[i].code == 0 && racers[i].held->session_count == 1;
        won += wins;
        assert_int_equal(racers[i].code, wins || !by_id ? 0 : HF_ESESSIONBUSY);
        if (wins)
            assert_int_equal(racers[i].held->sessions->lease_fence, 1);
        hf_session_answer_free(racers[i].held);
    }
    assert_int_equal(won, 1);
    hf_store_close(stores[1]);
    hf_store_close(stores[0]);
}

static void the_first_claim_of_a_reopened_store_has_one_winner(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "first%d", i);
        check_first_claim(name, false, i % 2 == 0);
        if (i < 4)
            check_first_claim(name, true, i % 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hand_back_counts_its_owners_time_once),
        cmocka_unit_test(each_verb_has_its_number_of_transactions),
        cmocka_unit_test(ten_thousand_leases_are_renewed_by_twenty_statements),
        cmocka_unit_test(a_commit_rings_every_queue_that_it_feeds),
        cmocka_unit_test(no_write_takes_a_second_round_trip),
        cmocka_unit_test(a_claim_waits_until_there_is_a_message),
        cmocka_unit_test(a_dead_holder_loses_its_session_before_the_term),
        cmocka_unit_test(every_message_is_in_its_history_once_and_in_order),
        cmocka_unit_test(of_equal_commits_at_once_one_is_made_and_the_others_are_repeats),
        cmocka_unit_test(the_first_claim_of_a_reopened_store_has_one_winner),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("session", tests, set_up, tear_down);
}
