/* PostgreSQL under a fleet: histories, wake-ups, renewals, plans. */
#include <holdfast/feed.h>
#include <holdfast/lease.h>
#include <holdfast/store.h>
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

static struct pg_server server;

static struct hf_store *opened(const char *base, const char *schema, bool inline_mode)
{
    char url[400];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_store_options options = { .size = sizeof(options),
                                        .inline_mode = inline_mode };
    if (hf_store_open(pg_server_schema(base, schema, url), &options, &store, &err))
        fail_msg("%s", err.message);
    return store;
}

struct held {
    char id[64];
    char token[300];
};

static struct held claimed(struct hf_store *store, hf_ms wait_ms)
{
    struct held held;
    struct hf_err err = { 0 };
    struct hf_answer *answer = NULL;
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .ttl_ms = 30000, .wait_ms = wait_ms
    };
    if (hf_work_claim(store, NULL, &claim, &answer, &err) || hf_answer_count(answer) != 1)
        fail_msg("nothing was claimed: %s", err.message);
    (void)snprintf(held.id, sizeof(held.id), "%s", hf_answer_at(answer, 0)->work.work_id);
    (void)snprintf(held.token, sizeof(held.token), "%s", hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
    return held;
}

static int changed(struct hf_store *store, const struct held *held, enum hf_verb verb)
{
    struct hf_answer *answer = NULL;
    struct hf_change change = { .size = sizeof(change),
                                .verb = verb,
                                .id = held->id,
                                .token = held->token,
                                .status = verb == HF_VERB_CLOSE_OUT ? HF_STATUS_DONE
                                                                    : HF_STATUS_NONE };
    int rc = hf_work_change(store, NULL, &change, 1, 0, &answer, NULL);
    if (rc == 0) {
        rc = hf_answer_at(answer, 0)->code;
        hf_answer_free(answer);
    }
    return rc;
}

/* ---- histories ------------------------------------------------------------------------------ */

/* Rule 12: after a failover old tokens are refused at once, and peers still wait. */
static void incarnation_refuses_holders_not_patience_after_a_failover(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "failing", true);
    make_unit(store, "before");
    struct held held = claimed(store, 0);
    hf_store_close(store);
    pg_server_standby(&server);
    pg_server_promote(&server);
    store = opened(server.standby, "failing", true);
    int rc = changed(store, &held, HF_VERB_CLOSE_OUT);
    if (rc != HF_ELEASELOST)
        fail_msg("a lease of the old history: %d", rc);
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "x", .id = held.id };
    assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, NULL), HF_EHELD);
    hf_store_close(store);
}

/* A handle that was open all the time, as behind a pooler: the transaction notices. */
static void a_history_that_changes_under_an_open_handle_is_noticed(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "moving", true);
    make_unit(store, "before");
    struct held held = claimed(store, 0);
    (void)pg_server_sql(&server, "UPDATE moving.hf_store SET timeline = timeline - 1");
    assert_int_equal(changed(store, &held, HF_VERB_CLOSE_OUT), HF_EBUSY);
    assert_int_equal(changed(store, &held, HF_VERB_CLOSE_OUT), HF_ELEASELOST);
    assert_string_equal(pg_server_sql(&server, "SELECT what FROM moving.hf_store_log"),
                        "new_history");
    make_unit(store, "after");
    hf_store_close(store);
}

/* ---- wake-ups ------------------------------------------------------------------------------- */

static bool facts_say(struct hf_store *store, const char *what)
{
    char *facts = NULL;
    assert_int_equal(hf_store_facts(store, &facts, NULL), 0);
    bool said = strstr(facts, what) != NULL;
    hf_store_text_free(store, facts);
    return said;
}

static void *create_one(void *arg)
{
    make_unit(arg, "rung");
    return NULL;
}

struct waiting {
    struct hf_store *waiter, *maker;
    const char *bell; /* what the waiter's facts say once it waits */
};

static void *create_once_waited_for(void *arg)
{
    struct waiting *waiting = arg;
    while (!facts_say(waiting->waiter, waiting->bell))
        (void)sched_yield();
    return create_one(waiting->maker);
}

/* A claim that waits is ended by work of the maker's, and both are closed. */
static void claim_ends_a_wait(struct waiting waiting)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, create_once_waited_for, &waiting), 0);
    (void)claimed(waiting.waiter, 20000);
    assert_int_equal(pthread_join(thread, NULL), 0);
    hf_store_close(waiting.maker);
    hf_store_close(waiting.waiter);
}

static void a_waiting_claim_is_woken_by_another_handle(void **state)
{
    (void)state;
    claim_ends_a_wait((struct waiting){ opened(server.url, "ringing", false),
                                        opened(server.url, "ringing", false),
                                        "\"bell\":\"listening\"" });
}

static void behind_a_pooler_waiting_claims_look_by_themselves_and_say_so(void **state)
{
    (void)state;
    pg_server_pooler(&server);
    claim_ends_a_wait((struct waiting){ opened(server.pooled, "polling", false),
                                        opened(server.pooled, "polling", false),
                                        "\"bell\":\"polling\"" });
}

/* `text` as the value of a parameter. */
static void escaped(const char *text, char *out, size_t room)
{
    size_t at = 0;
    for (; *text && at + 4 < room; text++) {
        bool plain = strchr("/?&=:%", *text) == NULL;
        at += (size_t)snprintf(out + at, room - at, plain ? "%c" : "%%%02X",
                               (unsigned char)*text);
    }
    out[at] = '\0';
}

static void a_listen_url_leads_past_the_pooler(void **state)
{
    (void)state;
    char url[700], past[400];
    if (!server.pooled[0])
        pg_server_pooler(&server);
    escaped(server.url, past, sizeof(past));
    (void)snprintf(url, sizeof(url), "%s&schema=past&listen_url=%s", server.pooled, past);
    struct hf_store *waiter = NULL;
    assert_int_equal(hf_store_open(url, NULL, &waiter, NULL), 0);
    assert_true(facts_say(waiter, "\"pooler\":\"transaction\""));
    claim_ends_a_wait((struct waiting){ waiter, opened(server.pooled, "past", false),
                                        "\"bell\":\"listening\"" });
}

/* It would hear itself there, and no other caller. */
static void a_listen_url_to_another_database_is_no_bell(void **state)
{
    (void)state;
    char url[700], other[400], escaped_other[400];
    (void)snprintf(other, sizeof(other), "postgres:///postgres?host=%s&port=%d&user=hf",
                   server.folder, server.port);
    escaped(other, escaped_other, sizeof(escaped_other));
    (void)snprintf(url, sizeof(url), "%s&schema=elsewhere&listen_url=%s", server.url,
                   escaped_other);
    struct hf_store *waiter = NULL;
    assert_int_equal(hf_store_open(url, NULL, &waiter, NULL), 0);
    claim_ends_a_wait((struct waiting){ waiter, opened(server.url, "elsewhere", false),
                                        "\"bell\":\"polling\"" });
}

/* A reader of the feed of all queues hears of work in any of them. */
static void a_feed_of_all_queues_is_woken(void **state)
{
    (void)state;
    pthread_t thread;
    struct hf_feed *feed = NULL;
    struct hf_store *reader = opened(server.url, "feed", false);
    struct hf_store *maker = opened(server.url, "feed", false);
    struct hf_sql *sql = sql_store_of(reader)->sql;
    uint32_t topic = hf_topic_of_queue("");
    while (!pg_of(sql)->bell.heard) /* the first wait begins to listen */
        (void)sql->methods->bell_wait(sql, topic, sql->methods->bell_seen(sql, topic),
                                      100);
    uint32_t seen = sql->methods->bell_seen(sql, topic);
    assert_int_equal(pthread_create(&thread, NULL, create_one, maker), 0);
    hf_ms left = 20000;
    while (left > 0 && sql->methods->bell_seen(sql, topic) == seen) {
        (void)sql->methods->bell_wait(sql, topic, seen, 1000);
        left -= 1000;
    }
    assert_true(left > 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct hf_feed_query query = { .size = sizeof(query), .wait_ms = 20000 };
    assert_int_equal(hf_work_feed(reader, NULL, &query, &feed, NULL), 0);
    assert_int_equal(hf_feed_count(feed), 1);
    hf_feed_free(feed);
    hf_store_close(maker);
    hf_store_close(reader);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rule 8 on PostgreSQL: no index entry, so the new version stays on its page. */
static void renewals_are_hot(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "hot", true);
    make_unit(store, "one");
    struct held held = claimed(store, 0);
    static const char counts[] =
        "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname "
        "= 'hot' AND relname = 'work_state'";
    for (int i = 0; i < 20; i++)
        assert_int_equal(changed(store, &held, HF_VERB_RENEW), 0);
    hf_store_close(store); /* a backend tells its counts at its end */
    long hot = 0;
    for (int i = 0; hot < 20 && i < 100; i++) {
        (void)pg_server_sql(&server, "SELECT pg_sleep(0.05)");
        hot = strtol(pg_server_sql(&server, counts), NULL, 10);
    }
    assert_int_equal(hot, 20);
}

/* A row that a caller has locked keeps no caller waiting, and is told as not renewed. */
/* A second trip holds the row's lock for as long as the client takes. */
static void a_holders_verbs_take_one_trip(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "one_trip", false);
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    make_unit(store, "held");
    struct held held = claimed(store, 0);
    assert_int_equal(changed(store, &held, HF_VERB_RENEW), 0);
    assert_int_equal(changed(store, &held, HF_VERB_CLOSE_OUT), 0);
    assert_int_equal(pg->counts.two_trips, 0);
    hf_store_close(store);
}

/* Who has the token needs to read nothing first. */
static void a_sessions_renewal_is_one_statement(void **state)
{
    (void)state;
    struct hf_lease_info info = { 0 };
    struct hf_store *owner = opened(server.url, "one_trip", true);
    struct hf_store *other = opened(server.url, "one_trip", true);
    struct hf_lease_claim claim = {
        .size = sizeof(claim), .leased = HF_LEASED_SESSION, .key = "s", .owner = "o"
    };
    make_session(owner, "s");
    assert_int_equal(hf_lease_take(owner, &claim, &info, NULL), 0);
    hf_ms expires_at = info.expires_at;
    assert_int_equal(
        hf_lease_renew(other, HF_LEASED_SESSION, "s", info.token, &info, NULL), 0);
    assert_true(info.held && info.expires_at >= expires_at);
    assert_string_equal(info.owner, "o");
    const struct pg *pg = pg_of(sql_store_of(other)->sql);
    assert_true(pg->pool.free->prepared[2 * HF_SQL_LEASE_RENEW_SESSION]);
    assert_false(pg->pool.free->prepared[2 * HF_SQL_LEASE_READ_SESSION]);
    assert_null(pg->pool.free->next);
    hf_store_close(other);
    hf_store_close(owner);
}

static void renew_all_skips_what_is_locked(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "locked", true);
    make_unit(store, "one");
    make_unit(store, "two");
    struct held first = claimed(store, 0);
    (void)claimed(store, 0);
    PGconn *other = PQconnectdb(server.url);
    char sql[300];
    (void)snprintf(
        sql, sizeof(sql),
        "BEGIN; SELECT 1 FROM locked.work_state w JOIN locked.work_spec s ON s.seq = "
        "w.seq WHERE s.work_id = '%s' FOR UPDATE OF w",
        first.id);
    PQclear(PQexec(other, sql));
    struct hf_answer *answer = NULL;
    struct hf_renew_all all = { .size = sizeof(all), .owner = "w" };
    assert_int_equal(hf_work_renew_all(store, NULL, &all, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        bool locked = strcmp(item->work.work_id, first.id) == 0;
        assert_int_equal(item->code, locked ? HF_EBUSY : 0);
    }
    hf_answer_free(answer);
    PQfinish(other);
    hf_store_close(store);
}

/* ---- leases that had to wait --------------------------------------------------------------- */

#define SHORT_MS 1000

struct taking {
    struct hf_store *store;
    const char *id; /* NULL: by queue */
    hf_ms expires_at;
    int rc;
};

static void *take_unit(void *arg)
{
    struct taking *taking = arg;
    struct hf_answer *answer = NULL;
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .id = taking->id, .ttl_ms = SHORT_MS
    };
    taking->rc = hf_work_claim(taking->store, NULL, &claim, &answer, NULL);
    if (taking->rc == 0 && hf_answer_count(answer) == 1)
        taking->expires_at = hf_answer_at(answer, 0)->work.lease_expires_at;
    if (taking->rc == 0)
        hf_answer_free(answer);
    return NULL;
}

static void *take_session(void *arg)
{
    struct taking *taking = arg;
    struct hf_lease_info info = { 0 };
    struct hf_lease_claim claim = { .size = sizeof(claim),
                                    .leased = HF_LEASED_SESSION,
                                    .key = taking->id,
                                    .owner = "w",
                                    .ttl_ms = SHORT_MS };
    taking->rc = hf_lease_take(taking->store, &claim, &info, NULL);
    taking->expires_at = info.expires_at;
    if (taking->rc == 0)
        assert_int_equal(info.remaining_ms, SHORT_MS);
    return NULL;
}

/* Runs `take` while another session has locked what it writes, for longer than the term: the
 * lease has its whole term left after the lock was released. */
static void take_locked(const char *lock, void *(*take)(void *), struct taking *taking)
{
    pthread_t thread;
    PGconn *other = PQconnectdb(server.url);
    PQclear(PQexec(other, "BEGIN"));
    PGresult *locked = PQexec(other, lock);
    assert_true(PQresultStatus(locked) == PGRES_COMMAND_OK ||
                PQresultStatus(locked) == PGRES_TUPLES_OK);
    PQclear(locked);
    assert_int_equal(pthread_create(&thread, NULL, take, taking), 0);
    pg_server_await(
        &server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        "1");
    PGresult *now = PQexec(other, "SELECT pg_sleep(1.2), "
                                  "floor(extract(epoch FROM clock_timestamp()) * 1000)");
    hf_ms released = strtoll(PQgetvalue(now, 0, 1), NULL, 10);
    PQclear(now);
    PQclear(PQexec(other, "COMMIT"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    PQfinish(other);
    assert_int_equal(taking->rc, 0);
    if (taking->expires_at < released + SHORT_MS)
        fail_msg("the lease ends %lld ms after the lock was released",
                 (long long)(taking->expires_at - released));
}

static void a_claim_that_waited_has_its_whole_term_left(void **state)
{
    (void)state;
    char id[64];
    struct hf_store *store = opened(server.url, "waited", true);
    make_unit(store, "by queue");
    struct taking by_queue = { .store = store };
    take_locked("LOCK TABLE waited.work_state IN SHARE MODE", take_unit, &by_queue);
    make_unit(store, "by id");
    (void)snprintf(id, sizeof(id), "%s",
                   pg_server_sql(&server, "SELECT work_id FROM waited.work_spec WHERE "
                                          "source_id = 'by id'"));
    struct taking by_id = { .store = store, .id = id };
    take_locked("SELECT 1 FROM waited.work_state WHERE status = 'queued' FOR UPDATE",
                take_unit, &by_id);
    hf_store_close(store);
}

static void a_session_that_waited_has_its_whole_term_left(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "waited_s", true);
    struct hf_lease_info info = { 0 };
    struct hf_lease_claim first = {
        .size = sizeof(first), .leased = HF_LEASED_SESSION, .key = "s", .owner = "w"
    };
    make_session(store, "s");
    assert_int_equal(hf_lease_take(store, &first, &info, NULL), 0);
    assert_int_equal(hf_lease_release(store, HF_LEASED_SESSION, "s", info.token, NULL),
                     0);
    struct taking taking = { .store = store, .id = "s" };
    take_locked("SELECT 1 FROM waited_s.session FOR UPDATE", take_session, &taking);
    hf_store_close(store);
}

struct crowd {
    struct hf_store *store;
    int number;
    int rc;
};

static void *crowd_a_lane(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; crowd->rc == 0 && i < 20; i++) {
        char name[32];
        struct hf_answer *answer = NULL;
        (void)snprintf(name, sizeof(name), "%d-%d", crowd->number, i);
        struct hf_work_spec request = { .size = sizeof(request),
                                        .source = HF_SOURCE_MANUAL,
                                        .source_id = name,
                                        .lane_key = "narrow",
                                        .priority = 9 - i % 10,
                                        .disposition = HF_DISPOSITION_RERUNNABLE };
        crowd->rc = hf_work_create(crowd->store, NULL, &request, 1, 0, &answer, NULL);
        if (crowd->rc == 0)
            hf_answer_free(answer);
    }
    return NULL;
}

/* Each handle writes in transactions of its own, all to one lane. */
static void a_lane_that_many_crowd_has_one_slot(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct crowd crowds[4];
    for (int i = 0; i < 4; i++) {
        crowds[i] = (struct crowd){ opened(server.url, "lanes", true), i, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_a_lane, &crowds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowds[i].rc, 0);
        hf_store_close(crowds[i].store);
    }
    assert_string_equal(
        pg_server_sql(&server,
                      "SELECT count(*) FROM lanes.work_state WHERE gate IS NULL"),
        "1");
}

static void *want_one(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; crowd->rc == 0 && i < 3; i++) {
        char name[32];
        struct hf_answer *answer = NULL;
        (void)snprintf(name, sizeof(name), "one-%d-%d", crowd->number, i);
        struct hf_work_spec request = { .size = sizeof(request),
                                        .source = HF_SOURCE_MANUAL,
                                        .source_id = name,
                                        .dedup_key = "one",
                                        .priority = -1,
                                        .disposition = HF_DISPOSITION_RERUNNABLE };
        crowd->rc = hf_work_create(crowd->store, NULL, &request, 1, 0, &answer, NULL);
        if (crowd->rc == 0)
            hf_answer_free(answer);
    }
    return NULL;
}

/* T11, G2: look and insert are one, whatever another caller does. */
static void t11_a_dedup_key_that_sixteen_want_at_once_is_one_unit(void **state)
{
    (void)state;
    pthread_t threads[16];
    struct crowd crowds[16];
    for (int i = 0; i < 16; i++)
        crowds[i] = (struct crowd){ opened(server.url, "dedup", true), i, 0 };
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, want_one, &crowds[i]), 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowds[i].rc, 0);
        hf_store_close(crowds[i].store);
    }
    assert_string_equal(pg_server_sql(&server, "SELECT count(*) FROM dedup.work_state"),
                        "1");
}

/* ---- plans ----------------------------------------------------------------------------------- */

#define ROWS "100000"

static const char fill_sql[] =
    "SET search_path = plans;"
    "INSERT INTO work_spec (seq, work_id, source_system, source_id, request_hash, "
    "first_status,"
    " actor_kind, actor, created_at) SELECT g, 'id' || g, 'manual', 's' || g, '\\x00', "
    "'queued',"
    " 'system', 'x', 1 FROM generate_series(1, " ROWS ") g;"
    "INSERT INTO work_state (seq, source_system, kind, queue, priority, disposition, "
    "status,"
    " max_attempts, due_at, finished_at, updated_at) SELECT g, 'manual', 'k', 'q', 3,"
    " 'rerunnable', CASE WHEN g % 10 = 0 THEN 'queued' ELSE 'done' END, 3, 1,"
    " CASE WHEN g % 10 = 0 THEN NULL ELSE 1 END, 1 FROM generate_series(1, " ROWS ") g;"
    "INSERT INTO work_event (event_id, seq, event_type, to_status, generation, attempt, "
    "fence,"
    " actor_kind, actor, created_at) SELECT 200000 + g, g, 'close_out', 'done', 0, 1, 1,"
    " 'system', 'x', 1 FROM generate_series(1, " ROWS ") g;"
    "ANALYZE work_spec; ANALYZE work_state; ANALYZE work_event";

/* The step of a plan that reads a table of ours whole, or one of units by its key from end to end;
 * "": it does not. */
static const char *reads_whole(const PGresult *plan, int i)
{
    const char *line = PQgetvalue(plan, i, 0);
    const char *next = i + 1 < PQntuples(plan) ? PQgetvalue(plan, i + 1, 0) : "";
    bool of_units = strstr(line, "_pkey on work_s") ||
                    strstr(line, "_pkey on work_event");
    bool whole = (strstr(line, "Seq Scan on work_") && !strstr(line, "work_policy")) ||
                 (of_units && !strstr(next, "Index Cond"));
    return whole ? line : "";
}

static const char *uses_wait_open(const PGresult *plan, int i)
{
    const char *line = PQgetvalue(plan, i, 0);
    return strstr(line, "using wait_open") ? line : "";
}

/* Of a prepared statement: the first step that `finds` finds. The result lives until the next
 * call. */
static const char *found_step(PGconn *db, const char *name, int params,
                              const char *(*finds)(const PGresult *plan, int i))
{
    static char found[400];
    char sql[400];
    size_t at = (size_t)snprintf(sql, sizeof(sql), "EXPLAIN EXECUTE %s", name);
    for (int i = 0; i < params; i++)
        at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%sNULL", i ? ", " : "(");
    (void)snprintf(sql + at, sizeof(sql) - at, "%s", params ? ")" : "");
    PGresult *plan = PQexec(db, sql);
    if (PQresultStatus(plan) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", name, PQerrorMessage(db));
    found[0] = '\0';
    for (int i = 0; found[0] == '\0' && i < PQntuples(plan); i++)
        (void)snprintf(found, sizeof(found), "%s", finds(plan, i));
    PQclear(plan);
    return found;
}

static const char *plan_step(PGconn *db, const struct hf_pg_text *one,
                             const char *(*finds)(const PGresult *plan, int i))
{
    PGresult *made = PQprepare(db, "plan", one->text, 0, NULL);
    if (PQresultStatus(made) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", one->name, PQerrorMessage(db));
    PQclear(made);
    const char *found = found_step(db, "plan", one->params, finds);
    PQclear(PQexec(db, "DEALLOCATE plan"));
    return found;
}

/* `wait_open` is for lists: a statement about one wait, or one turn, would read it from end to
 * end. */
static void answers_do_not_look_through_all_open_waits(void **state)
{
    (void)state;
    static const enum hf_sql_id of_one[] = {
        HF_SQL_WAIT_WAKE,        HF_SQL_WAIT_CLOSE,  HF_SQL_INPUTS_RESUME,
        HF_SQL_WAIT_GET,         HF_SQL_INPUTS_WAIT, HF_SQL_WAITS_OPEN,
        HF_SQL_WAITS_CLOSE_TURN, HF_SQL_TURN_COMMIT,
    };
    char url[400];
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL;
    assert_int_equal(hf_postgres_open(pg_server_schema(server.url, "answers", url),
                                      &options, &sql, NULL),
                     0);
    PGconn *db = pg_of(sql)->pool.free->db;
    for (size_t i = 0; i < sizeof(of_one) / sizeof(of_one[0]); i++) {
        const struct hf_pg_text *one = &hf_sql_pg[of_one[i]];
        const char *found = plan_step(db, one, uses_wait_open);
        if (found[0])
            fail_msg("%s: %s", one->name, found);
    }
    sql->methods->close(sql);
}

static void hot_statements_never_read_a_table_whole(void **state)
{
    (void)state;
    static const enum hf_sql_id hot[] = {
        HF_SQL_WORK_BY_ID,
        HF_SQL_WORK_BY_SOURCE,
        HF_SQL_WORK_BY_IDEMPOTENCY,
        HF_SQL_WORK_BY_DEDUP,
        HF_SQL_WORK_INSERT_SPEC,
        HF_SQL_WORK_INSERT_STATE,
        HF_SQL_WORK_INSERT_SPECS,
        HF_SQL_WORK_INSERT_STATES,
        HF_SQL_WORK_WRITE,
        HF_SQL_WORK_SETTLE,
        HF_SQL_WORK_RENEW,
        HF_SQL_WORK_RENEW_ALL,
        HF_SQL_WORK_OWNED,
        HF_SQL_WORK_CLAIM_1,
        HF_SQL_WORK_CLAIM_10,
        HF_SQL_WORK_CLAIM_100,
        HF_SQL_WORK_CLAIM_KINDS_100,
        HF_SQL_WORK_CLAIMED,
        HF_SQL_WORK_ATTENTION,
        HF_SQL_EVENT_TRAIL,
        HF_SQL_EVENT_RENEWED,
        HF_SQL_SWEEP_CANDIDATES,
        HF_SQL_SWEEP_NEXT,
        HF_SQL_LANE_PROMOTE,
        HF_SQL_LANE_DISPLACE,
        HF_SQL_LANE_YIELD,
        HF_SQL_FEED_PAGE,
        HF_SQL_FEED_END,
        HF_SQL_WORK_CLAIM_ON_1,
        HF_SQL_WORK_CLAIM_ON_100,
        HF_SQL_WORK_CLAIM_LONE,
        HF_SQL_WORK_INSERT_UNIT,
        HF_SQL_WORK_INSERT_UNITS_APART,
        HF_SQL_COPY_NEXT_WORK_EVENT,
    };
    char url[400];
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL;
    assert_int_equal(hf_postgres_open(pg_server_schema(server.url, "plans", url),
                                      &options, &sql, NULL),
                     0);
    (void)pg_server_sql(&server, fill_sql);
    PGconn *db = pg_of(sql)->pool.free->db;
    for (size_t i = 0; i < sizeof(hot) / sizeof(hot[0]); i++) {
        const char *whole = plan_step(db, &hf_sql_pg[hot[i]], reads_whole);
        if (whole[0])
            fail_msg("%s reads a table whole: %s", hf_sql_pg[hot[i]].name, whole);
    }
    sql->methods->close(sql);
}

/* Of the statement that claims one, as this connection has planned it. */
static const char *whole_read_of_claims(PGconn *db)
{
    char name[64];
    PGresult *known = PQexec(db,
                             "SELECT name FROM pg_prepared_statements WHERE statement "
                             "LIKE 'WITH picked %'");
    assert_int_equal(PQntuples(known), 1);
    (void)snprintf(name, sizeof(name), "%s", PQgetvalue(known, 0, 0));
    PQclear(known);
    return found_step(db, name, 12, reads_whole);
}

static void made_and_claimed(struct hf_store *store, const char *unit)
{
    make_unit(store, unit);
    struct held held = claimed(store, 0);
    assert_int_equal(changed(store, &held, HF_VERB_CLOSE_OUT), 0);
}

static void a_plan_for_a_few_rows_is_made_anew_for_many(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "grown", true);
    make_unit(store, "first");
    (void)pg_server_sql(&server, "ANALYZE grown.work_state");
    (void)pg_server_sql(&server, "ANALYZE grown.work_spec");
    made_and_claimed(store, "second");
    made_and_claimed(store, "third"); /* the short way */
    struct pg_conn *conn = pg_of(sql_store_of(store)->sql)->pool.free;
    assert_string_not_equal(whole_read_of_claims(conn->db), "");
    for (int i = 0; i < 100; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "more %d", i);
        make_unit(store, name);
    }
    made_and_claimed(store, "last");
    assert_ptr_equal(pg_of(sql_store_of(store)->sql)->pool.free, conn);
    assert_string_equal(whole_read_of_claims(conn->db), "");
    hf_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_that_changes_under_an_open_handle_is_noticed),
        cmocka_unit_test(answers_do_not_look_through_all_open_waits),
        cmocka_unit_test(a_waiting_claim_is_woken_by_another_handle),
        cmocka_unit_test(a_feed_of_all_queues_is_woken),
        cmocka_unit_test(renewals_are_hot),
        cmocka_unit_test(a_holders_verbs_take_one_trip),
        cmocka_unit_test(a_sessions_renewal_is_one_statement),
        cmocka_unit_test(renew_all_skips_what_is_locked),
        cmocka_unit_test(a_claim_that_waited_has_its_whole_term_left),
        cmocka_unit_test(a_session_that_waited_has_its_whole_term_left),
        cmocka_unit_test(a_lane_that_many_crowd_has_one_slot),
        cmocka_unit_test(t11_a_dedup_key_that_sixteen_want_at_once_is_one_unit),
        cmocka_unit_test(hot_statements_never_read_a_table_whole),
        cmocka_unit_test(a_plan_for_a_few_rows_is_made_anew_for_many),
        cmocka_unit_test(behind_a_pooler_waiting_claims_look_by_themselves_and_say_so),
        cmocka_unit_test(a_listen_url_leads_past_the_pooler),
        cmocka_unit_test(a_listen_url_to_another_database_is_no_bell),
        cmocka_unit_test(incarnation_refuses_holders_not_patience_after_a_failover),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("a fleet on PostgreSQL", tests, NULL, NULL);
}
