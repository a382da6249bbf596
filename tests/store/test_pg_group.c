/* Batches that wait for a transaction on PostgreSQL share one: creates, commits of sessions and
 * answers of waits, gathered into one statement each, and other batches next to them. */
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/wait.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

#define MAKERS 3

static struct pg_server server;

struct caller {
    struct hf_store *store;
    char name[32]; /* a unit's source, or a claim's nonce */
    const char *kind;
    char id[40], token[128];
    int rc;
    pthread_t thread;
};

static void *create(void *arg)
{
    struct caller *caller = arg;
    struct hf_work_spec unit = plain_unit(caller->name);
    struct hf_answer *answer = NULL;
    unit.kind = caller->kind;
    caller->rc = hf_work_create(caller->store, NULL, &unit, 1, HF_BRIEF, &answer, NULL);
    if (caller->rc == 0)
        caller->rc = hf_answer_at(answer, 0)->code;
    hf_answer_free(answer);
    return NULL;
}

static void *claim(void *arg)
{
    struct caller *caller = arg;
    struct hf_answer *answer = NULL;
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .nonce = caller->name, .queue = "other"
    };
    caller->rc = hf_work_claim(caller->store, NULL, &claim, &answer, NULL);
    hf_answer_free(answer);
    return NULL;
}

static void *finish(void *arg)
{
    struct caller *caller = arg;
    struct hf_answer *answer = NULL;
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = caller->id,
                                .token = caller->token,
                                .status = HF_STATUS_DONE };
    caller->rc = hf_work_change(caller->store, NULL, &change, 1, HF_BRIEF, &answer, NULL);
    hf_answer_free(answer);
    return NULL;
}

static void start(struct caller *caller, void *(*act)(void *))
{
    assert_int_equal(pthread_create(&caller->thread, NULL, act, caller), 0);
}

static int ended(struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    return caller->rc;
}

static void await_group(struct hf_store *store, uint32_t leaders, uint32_t queued)
{
    struct db_group *group = &pg_of(sql_store_of(store)->sql)->group;
    for (bool there = false; !there; (void)sched_yield()) {
        (void)pthread_mutex_lock(&group->lock);
        there = group->leaders == leaders && group->queued == queued;
        (void)pthread_mutex_unlock(&group->lock);
    }
}

/* Claims that wait for their nonces, so that all who may lead a transaction are busy. */
struct jam {
    PGconn *db;
    struct caller claims[PG_LEADERS_MAX];
};

static void jam_begin(struct jam *jam, struct hf_store *store)
{
    jam->db = PQconnectdb(server.url);
    assert_int_equal(PQstatus(jam->db), CONNECTION_OK);
    for (uint32_t i = 0; i < PG_LEADERS_MAX; i++) {
        char sql[120];
        struct caller *caller = &jam->claims[i];
        *caller = (struct caller){ .store = store };
        (void)snprintf(caller->name, sizeof(caller->name), "jam%u", i);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT pg_advisory_lock(hashtextextended('w %s', 0))",
                       caller->name);
        PQclear(PQexec(jam->db, sql));
        start(caller, claim);
        await_group(store, i + 1, 0);
    }
}

static void jam_end(struct jam *jam)
{
    PQclear(PQexec(jam->db, "SELECT pg_advisory_unlock_all()"));
    for (uint32_t i = 0; i < PG_LEADERS_MAX; i++)
        assert_int_equal(ended(&jam->claims[i]), 0);
    PQfinish(jam->db);
}

static void held(struct hf_store *store, struct caller *holder)
{
    struct hf_answer *answer = NULL;
    struct hf_claim wanted = { .size = sizeof(wanted), .owner = "w" };
    *holder = (struct caller){ .store = store };
    make_unit(store, "held");
    assert_int_equal(hf_work_claim(store, NULL, &wanted, &answer, NULL), 0);
    const struct hf_item *item = hf_answer_at(answer, 0);
    (void)snprintf(holder->id, sizeof(holder->id), "%s", item->work.work_id);
    (void)snprintf(holder->token, sizeof(holder->token), "%s", item->token);
    hf_answer_free(answer);
}

/* Makers and a holder that ends its unit, all at once; returns how many transactions they
 * took. */
static long long transactions(struct hf_store *store, const char *schema,
                              struct caller makers[MAKERS], struct caller *holder)
{
    char sql[300];
    struct jam jam;
    jam_begin(&jam, store);
    for (uint32_t i = 0; i < MAKERS; i++) {
        start(&makers[i], create);
        await_group(store, PG_LEADERS_MAX, i + 1);
    }
    start(holder, finish);
    await_group(store, PG_LEADERS_MAX, MAKERS + 1);
    jam_end(&jam);
    for (int i = 0; i < MAKERS; i++)
        (void)ended(&makers[i]);
    (void)ended(holder);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(DISTINCT xid) FROM (SELECT xid FROM %s.work_spec WHERE"
                   " source_id LIKE 'new%%' UNION ALL SELECT xid FROM %s.work_event"
                   " WHERE to_status = 'done') AS t",
                   schema, schema);
    return strtoll(pg_server_sql(&server, sql), NULL, 10);
}

static void creates_and_a_close_out_are_one_transaction(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "one");
    struct caller makers[MAKERS], holder;
    held(store, &holder);
    for (int i = 0; i < MAKERS; i++) {
        makers[i] = (struct caller){ .store = store, .kind = "k" };
        (void)snprintf(makers[i].name, sizeof(makers[i].name), "new %d", i);
    }
    assert_int_equal(transactions(store, "one", makers, &holder), 1);
    assert_int_equal(holder.rc, 0);
    for (int i = 0; i < MAKERS; i++)
        assert_int_equal(makers[i].rc, 0);
    hf_store_close(store);
}

/* One of the makers asks for a name that another unit has: the others do not hear of it. */
static void who_is_refused_in_a_group_is_refused_alone(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "refused");
    struct caller makers[MAKERS], holder, first = { .store = store, .kind = "first" };
    held(store, &holder);
    (void)snprintf(first.name, sizeof(first.name), "new 1");
    assert_null(create(&first));
    assert_int_equal(first.rc, 0);
    for (int i = 0; i < MAKERS; i++) {
        makers[i] = (struct caller){ .store = store, .kind = "k" };
        (void)snprintf(makers[i].name, sizeof(makers[i].name), "new %d", i);
    }
    assert_true(transactions(store, "refused", makers, &holder) > 1);
    assert_int_equal(holder.rc, 0);
    assert_int_equal(makers[0].rc, 0);
    assert_int_equal(makers[1].rc, HF_ECONFLICT);
    assert_int_equal(makers[2].rc, 0);
    assert_string_equal(pg_server_sql(&server, "SELECT count(*) FROM refused.work_spec"),
                        "4"); /* held, and three new ones */
    hf_store_close(store);
}

/* A claim that returns its row by itself, as arrays. */
static void *claim_lone(void *arg)
{
    struct caller *caller = arg;
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w" };
    caller->rc = hf_work_claim(caller->store, NULL, &claim, &answer, NULL);
    if (caller->rc == 0 && hf_answer_count(answer) == 1)
        (void)snprintf(caller->name, sizeof(caller->name), "%s",
                       hf_answer_at(answer, 0)->work.source_id);
    hf_answer_free(answer);
    return NULL;
}

static void each_of_many_claims_in_a_group_has_its_own_row(void **state)
{
    (void)state;
    static const char *const names[MAKERS] = { "first", "second", "third" };
    struct hf_store *store = pg_server_store(&server, "own");
    struct caller takers[MAKERS], before;
    struct jam jam;
    held(store, &before); /* it looked, so the next ones need not */
    for (int i = 0; i < MAKERS; i++)
        make_unit(store, names[i]);
    jam_begin(&jam, store);
    for (uint32_t i = 0; i < MAKERS; i++) {
        takers[i] = (struct caller){ .store = store };
        start(&takers[i], claim_lone);
        await_group(store, PG_LEADERS_MAX, i + 1);
    }
    jam_end(&jam);
    for (int i = 0; i < MAKERS; i++) {
        assert_int_equal(ended(&takers[i]), 0);
        assert_string_equal(takers[i].name, names[i]);
    }
    hf_store_close(store);
}

/* ---- commits of sessions ------------------------------------------------------------------ */

struct talker {
    struct hf_store *store;
    struct hf_session_answer *held;
    const char *token;
    size_t records;
    int rc;
    pthread_t thread;
};

static void open_talk(struct hf_store *store, const char *session_id, size_t records,
                      struct talker *talker)
{
    struct hf_answer *answer = NULL;
    struct hf_session_send input = {
        .size = sizeof(input),
        .session_id = session_id,
        .message = "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"content\":\"go on\"}]}}"
    };
    struct hf_session_claim claim = { .size = sizeof(claim), .session_id = session_id };
    *talker = (struct talker){ .store = store, .records = records };
    make_session(store, session_id);
    assert_int_equal(hf_session_send(store, NULL, &input, &answer, NULL), 0);
    hf_answer_free(answer);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &talker->held, NULL), 0);
    assert_non_null(talker->held->turn);
    talker->token = talker->held->token;
}

static void *commit_talk(void *arg)
{
    struct talker *talker = arg;
    const struct hf_session_answer *held = talker->held;
    struct hf_message said = { .id = "m", .role = HF_ROLE_ASSISTANT };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    struct hf_record records[] = { record, record };
    struct hf_session_committed done;
    struct hf_session_commit commit = { .size = sizeof(commit),
                                        .session_id = held->sessions->session_id,
                                        .token = talker->token,
                                        .turn_id = held->turn->turn_id,
                                        .chain = held->turn->chain,
                                        .records = records,
                                        .added_count = talker->records,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{}",
                                        .release = true };
    talker->rc = hf_session_commit(talker->store, NULL, &commit, &done, NULL);
    return NULL;
}

/* All commit at once. Returns how many batches were gathered, and closes the store. */
static int64_t commit_all(struct hf_store *store, struct talker talkers[MAKERS])
{
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    int64_t before = pg->counts.gathered;
    struct jam jam;
    jam_begin(&jam, store);
    for (uint32_t i = 0; i < MAKERS; i++) {
        assert_int_equal(
            pthread_create(&talkers[i].thread, NULL, commit_talk, &talkers[i]), 0);
        await_group(store, PG_LEADERS_MAX, i + 1);
    }
    jam_end(&jam);
    for (uint32_t i = 0; i < MAKERS; i++) {
        assert_int_equal(pthread_join(talkers[i].thread, NULL), 0);
        hf_session_answer_free(talkers[i].held);
    }
    int64_t gathered = pg->counts.gathered - before;
    hf_store_close(store);
    return gathered;
}

/* Each with as many records as it has; each unit has its own event. */
static void commits_of_many_sessions_are_one_statement_each(void **state)
{
    (void)state;
    struct talker talkers[MAKERS];
    struct hf_store *store = pg_server_store(&server, "talks");
    open_talk(store, "a", 1, &talkers[0]);
    open_talk(store, "b", 2, &talkers[1]);
    open_talk(store, "c", 1, &talkers[2]);
    assert_int_equal(commit_all(store, talkers), 3);
    for (int i = 0; i < MAKERS; i++)
        assert_int_equal(talkers[i].rc, 0);
    assert_string_equal(
        pg_server_sql(
            &server, "SELECT string_agg(s.session_id || s.head_revision || s.record_count"
                     " || count || (s.owner IS NULL), ' ' ORDER BY s.session_id)"
                     " FROM talks.session s, LATERAL (SELECT count(*) FROM talks.node n"
                     " WHERE n.session_key = s.session_key) AS nodes"),
        "a111true b122true c111true");
    assert_string_equal(
        pg_server_sql(&server,
                      "SELECT count(*) || ' ' || count(DISTINCT e.seq) || ' ' ||"
                      " count(DISTINCT e.xid) FROM talks.work_event e"
                      " WHERE e.event_type = 'close_out' AND e.to_status = 'done'"),
        "3 3 1");
}

/* One has lost its lease: the others do not hear of it, and it writes nothing. */
static void a_commit_that_is_refused_is_refused_alone(void **state)
{
    (void)state;
    struct talker talkers[MAKERS];
    struct hf_store *store = pg_server_store(&server, "fenced");
    open_talk(store, "a", 1, &talkers[0]);
    open_talk(store, "b", 1, &talkers[1]);
    open_talk(store, "c", 1, &talkers[2]);
    talkers[1].token = "hf1.1.1.another";
    assert_int_equal(commit_all(store, talkers), 0);
    assert_int_equal(talkers[0].rc, 0);
    assert_int_equal(talkers[1].rc, HF_ESESSIONLOST);
    assert_int_equal(talkers[2].rc, 0);
    assert_string_equal(pg_server_sql(&server,
                                      "SELECT string_agg(session_id || head_revision, ' '"
                                      " ORDER BY session_id) FROM fenced.session"),
                        "a1 b0 c1");
}

/* ---- answers of waits ---------------------------------------------------------------------- */

struct answerer {
    struct hf_store *store;
    struct hf_wait_resolve request;
    char wait_id[HF_WAIT_ID_TEXT];
    struct hf_wait_answer *answer;
    int rc;
    pthread_t thread;
};

/* A turn of that session that waits for an approval, and the answer to it. */
static void asked(struct hf_store *store, const char *session_id, enum hf_wait_word word,
                  struct answerer *one)
{
    static const char save[] = "a save of thirty-two bytes or more";
    struct talker talker;
    struct hf_session_stepped stepped;
    open_talk(store, session_id, 0, &talker);
    const struct hf_session_turn *turn = talker.held->turn;
    struct hf_wait_spec wait = { .size = sizeof(wait),
                                 .kind = HF_WAIT_APPROVAL,
                                 .name = "1",
                                 .policy = HF_AT_DEADLINE_DENY };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = session_id,
                                    .token = talker.token,
                                    .turn_id = turn->turn_id,
                                    .chain = turn->chain,
                                    .save = { save, sizeof(save) },
                                    .waits = &wait,
                                    .wait_count = 1,
                                    .away = true };
    assert_int_equal(hf_session_step(store, NULL, &step, &stepped, NULL), 0);
    *one = (struct answerer){ .store = store };
    assert_int_equal(hf_wait_id(turn->turn_id, HF_WAIT_APPROVAL, "1", one->wait_id, NULL),
                     0);
    one->request = (struct hf_wait_resolve){ .size = sizeof(one->request),
                                             .wait_id = one->wait_id,
                                             .word = word };
    hf_session_answer_free(talker.held);
}

static void *answer_wait(void *arg)
{
    struct answerer *one = arg;
    one->rc = hf_wait_resolve(one->store, NULL, &one->request, &one->answer, NULL);
    return NULL;
}

/* All answer at once. Returns how many batches were gathered. */
static int64_t answer_all(struct hf_store *store, struct answerer all[MAKERS])
{
    const struct pg *pg = pg_of(sql_store_of(store)->sql);
    int64_t before = pg->counts.gathered;
    struct jam jam;
    jam_begin(&jam, store);
    for (uint32_t i = 0; i < MAKERS; i++) {
        assert_int_equal(pthread_create(&all[i].thread, NULL, answer_wait, &all[i]), 0);
        await_group(store, PG_LEADERS_MAX, i + 1);
    }
    jam_end(&jam);
    for (uint32_t i = 0; i < MAKERS; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    return pg->counts.gathered - before;
}

static void is_answer(struct answerer *one, const char *session_id, bool accepted,
                      const char *outcome)
{
    assert_int_equal(one->rc, 0);
    assert_int_equal(one->answer->wait_count, 1);
    assert_string_equal(one->answer->waits->wait_id, one->wait_id);
    assert_string_equal(one->answer->waits->session_id, session_id);
    assert_string_equal(one->answer->waits->outcome, outcome);
    assert_int_equal(one->answer->accepted, accepted);
    hf_wait_answer_free(one->answer);
}

/* Each is told of its own wait, and each unit has its own event. */
static void answers_of_many_are_one_statement_each(void **state)
{
    (void)state;
    struct answerer all[MAKERS];
    struct hf_store *store = pg_server_store(&server, "answers");
    asked(store, "a", HF_ANSWER_APPROVE, &all[0]);
    asked(store, "b", HF_ANSWER_DENY, &all[1]);
    asked(store, "c", HF_ANSWER_APPROVE, &all[2]);
    assert_int_equal(answer_all(store, all), 3);
    is_answer(&all[0], "a", true, "{\"kind\":\"approve\"}");
    is_answer(&all[1], "b", true, "{\"kind\":\"deny\"}");
    is_answer(&all[2], "c", true, "{\"kind\":\"approve\"}");
    hf_store_close(store);
    assert_string_equal(
        pg_server_sql(&server, "SELECT string_agg(s.session_id || w.state || u.status ||"
                               " (s.ready_at IS NOT NULL), ' ' ORDER BY s.session_id)"
                               " FROM answers.session s JOIN answers.wait w USING"
                               " (session_key) JOIN answers.work_state u ON u.seq ="
                               " w.turn_key"),
        "aresolvedqueuedtrue bresolvedqueuedtrue cresolvedqueuedtrue");
    assert_string_equal(
        pg_server_sql(&server,
                      "SELECT count(*) || ' ' || count(DISTINCT e.seq) || ' ' ||"
                      " count(DISTINCT e.xid) || ' ' || count(DISTINCT e.message)"
                      " FROM answers.work_event e"
                      " WHERE e.event_type = 'resumed'"
                      " AND e.from_status = 'waiting_user'"),
        "3 3 1 3");
}

/* Two of the same wait and one of another: the first is the outcome. */
static void an_answer_that_comes_second_is_told_so_alone(void **state)
{
    (void)state;
    struct answerer all[MAKERS];
    struct hf_store *store = pg_server_store(&server, "twice");
    asked(store, "a", HF_ANSWER_APPROVE, &all[0]);
    asked(store, "b", HF_ANSWER_APPROVE, &all[2]);
    all[1] = all[0];
    all[1].request.wait_id = all[1].wait_id;
    all[1].request.word = HF_ANSWER_DENY;
    assert_int_equal(answer_all(store, all), 0);
    is_answer(&all[0], "a", true, "{\"kind\":\"approve\"}");
    is_answer(&all[1], "a", false, "{\"kind\":\"approve\"}");
    is_answer(&all[2], "b", true, "{\"kind\":\"approve\"}");
    hf_store_close(store);
    assert_string_equal(pg_server_sql(&server, "SELECT count(*) FROM twice.work_event e"
                                               " WHERE e.event_type = 'resumed'"),
                        "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_of_many_sessions_are_one_statement_each),
        cmocka_unit_test(a_commit_that_is_refused_is_refused_alone),
        cmocka_unit_test(answers_of_many_are_one_statement_each),
        cmocka_unit_test(an_answer_that_comes_second_is_told_so_alone),
        cmocka_unit_test(each_of_many_claims_in_a_group_has_its_own_row),
        cmocka_unit_test(creates_and_a_close_out_are_one_transaction),
        cmocka_unit_test(who_is_refused_in_a_group_is_refused_alone),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("groups on PostgreSQL", tests, NULL, NULL);
}
