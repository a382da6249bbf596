/* A NOTIFY behind a commit: when it goes, who hears it, and that no caller waits for it. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "db/pg/pg.h"
#include "store/batch/ops.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

static struct pg_server server;

static struct hf_store *opened(const char *base, const char *schema, const char *more)
{
    char url[400], whole[500];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    (void)snprintf(whole, sizeof(whole), "%s%s", pg_server_schema(base, schema, url),
                   more);
    if (hf_store_open(whole, NULL, &store, &err))
        fail_msg("%s", err.message);
    return store;
}

static struct pg *pg_under(struct hf_store *store)
{
    return pg_of(sql_store_of(store)->sql);
}

static void assert_units(const char *schema, const char *count)
{
    char sql[100];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.work_state", schema);
    assert_string_equal(pg_server_sql(&server, sql), count);
}

static PGconn *outsider(const char *first_sql)
{
    PGconn *db = PQconnectdb(server.url);
    PGresult *result = PQexec(db, first_sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    return db;
}

/* What comes next on a connection that listens, without the sender's tag. */
static void heard(PGconn *db, char *out, size_t room)
{
    PGnotify *notice = PQnotifies(db);
    while (!notice) {
        struct pollfd at = { .fd = PQsocket(db), .events = POLLIN };
        assert_int_equal(poll(&at, 1, 20000), 1);
        assert_true(PQconsumeInput(db));
        notice = PQnotifies(db);
    }
    const char *topics = strchr(notice->extra, ' ');
    assert_non_null(topics);
    (void)snprintf(out, room, "%s", topics + 1);
    PQfreemem(notice);
}

static void assert_rung_once(PGconn *listener)
{
    char wanted[64], got[64];
    (void)snprintf(wanted, sizeof(wanted), "%u:1", hf_topic_of_queue("default"));
    heard(listener, got, sizeof(got));
    assert_string_equal(got, wanted);
}

static void a_lone_ring_goes_behind_its_commit(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "behind", "");
    PGconn *listener = outsider("LISTEN hf_behind");
    make_unit(store, "first");
    assert_int_equal(pg_under(store)->bell.thread.count,
                     0); /* no other process could have sent it */
    assert_rung_once(listener);
    /* On connections with answers to be read, and without. */
    for (int i = 0; i < 50; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "more %d", i);
        make_unit(store, name);
    }
    assert_units("behind", "51");
    assert_int_equal(pg_under(store)->bell.apart_until, 0); /* all were read in time */
    assert_int_equal(pg_under(store)->counts.lost, 0);
    PQfinish(listener);
    hf_store_close(store);
}

/* The next user of the connection would take its answers for its own, if this process went. */
static void through_a_pooler_no_answer_is_left_unread(void **state)
{
    (void)state;
    pg_server_pooler(&server);
    struct hf_store *store = opened(server.pooled, "pooled", "");
    PGconn *listener = outsider("LISTEN hf_pooled");
    make_unit(store, "first");
    struct pg_pool *pool = &pg_under(store)->pool;
    (void)pthread_mutex_lock(&pool->lock); /* the bell's thread may take one */
    for (struct pg_conn *conn = pool->free; conn; conn = conn->next)
        assert_false(conn->ringing);
    (void)pthread_mutex_unlock(&pool->lock);
    assert_rung_once(listener);
    PQfinish(listener);
    hf_store_close(store);
}

/* It comes back to the process that sent it, where it has woken one waiter already. */
static void a_ring_of_our_own_is_not_heard_again(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "own", "");
    struct hf_sql *sql = sql_store_of(store)->sql;
    uint32_t topic = hf_topic_of_queue("default"), other = topic + 1;
    while (!pg_of(sql)->bell.heard) /* the first wait begins to listen */
        (void)sql->methods->bell_wait(sql, topic, sql->methods->bell_seen(sql, topic),
                                      100);
    PGconn *listener = outsider("LISTEN hf_own");
    uint32_t seen = sql->methods->bell_seen(sql, topic);
    uint32_t seen_other = sql->methods->bell_seen(sql, other);
    make_unit(store, "one");
    assert_rung_once(listener); /* so that the next comes after it, here as there */
    char text[64];
    (void)snprintf(text, sizeof(text), "NOTIFY hf_own, 'another %u:1'", other);
    PQclear(PQexec(listener, text));
    while (sql->methods->bell_seen(sql, other) == seen_other)
        (void)sql->methods->bell_wait(sql, other, seen_other, 1000);
    assert_int_equal(sql->methods->bell_seen(sql, topic), seen + 1);
    PQfinish(listener);
    hf_store_close(store);
}

/* Of the one backend that listens for handles of ours; otherwise "". */
static const char *listening_backend(void)
{
    return pg_server_sql(&server,
                         "SELECT pid FROM pg_stat_activity WHERE application_name = "
                         "'holdfast' AND query LIKE 'LISTEN %'");
}

static void a_listener_that_was_cut_off_listens_again(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "again", "");
    struct hf_sql *sql = sql_store_of(store)->sql;
    uint32_t topic = hf_topic_of_queue("default");
    while (!pg_of(sql)->bell.heard)
        (void)sql->methods->bell_wait(sql, topic, sql->methods->bell_seen(sql, topic),
                                      100);
    for (int i = 0; i < 5; i++) /* until its thread has nothing more to wake up for */
        (void)sql->methods->bell_wait(sql, topic, sql->methods->bell_seen(sql, topic),
                                      100);
    char first[32], cut[100];
    (void)snprintf(first, sizeof(first), "%s", listening_backend());
    (void)snprintf(cut, sizeof(cut), "SELECT pg_terminate_backend(%s)", first);
    (void)pg_server_sql(&server, cut);
    const char *now = first;
    for (int i = 0; i < 100 && (!now[0] || strcmp(now, first) == 0); i++) {
        (void)sql->methods->bell_wait(sql, topic, sql->methods->bell_seen(sql, topic),
                                      100);
        now = listening_backend();
    }
    assert_string_not_equal(now, "");
    assert_string_not_equal(now, first);
    hf_store_close(store);
}

static void an_error_of_a_ring_harms_no_later_transaction(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "refused", "");
    struct pg *pg = pg_under(store);
    make_unit(store, "warm"); /* the first behind which one goes prepares it */
    assert_true(pg->pool.free->ringing);
    assert_true(pg_ring_done(pg->pool.free));
    PGresult *gone = PQexec(pg->pool.free->db, "DEALLOCATE hf_ring");
    assert_int_equal(PQresultStatus(gone), PGRES_COMMAND_OK);
    PQclear(gone);
    pg->bell.told_at = 0; /* another may go out now */
    int64_t connects = pg->counts.connects;
    make_unit(store, "with an error behind it");
    assert_true(pg->pool.free->ringing);
    make_unit(store, "after it");
    assert_int_equal(pg->counts.connects, connects + 1);
    assert_true(pg->bell.apart_until > 0);
    assert_units("refused", "3");
    assert_int_equal(pg->counts.lost + pg->counts.uncertain, 0);
    hf_store_close(store);
}

/* A commit that waits for a standby, with a NOTIFY in it, keeps every other NOTIFY waiting. */
static void a_ring_that_is_stuck_holds_up_no_commit(void **state)
{
    (void)state;
    struct hf_store *store = opened(server.url, "stuck",
                                    "&options=-csynchronous_commit%3Dlocal");
    struct pg *pg = pg_under(store);
    PGconn *blocker = outsider("CREATE TABLE stuck.any_table (a int)");
    pg_server_stick(
        &server, blocker,
        "BEGIN; INSERT INTO stuck.any_table VALUES (1); NOTIFY any_channel; COMMIT");
    make_unit(store, "with a ring that waits");
    pg_server_await(&server,
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND query LIKE '%pg_notify%'",
                    "1");
    make_unit(store, "without"); /* on another connection */
    make_unit(store, "and again");
    assert_units("stuck", "3");
    assert_true(pg->bell.apart_until > 0);
    assert_int_equal(pg->counts.lost + pg->counts.uncertain, 0);
    pg_server_unstick(&server, blocker);
    PQfinish(blocker);
    hf_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* The first: a pooler keeps connections that look like a listener's. */
        cmocka_unit_test(a_listener_that_was_cut_off_listens_again),
        cmocka_unit_test(a_lone_ring_goes_behind_its_commit),
        cmocka_unit_test(through_a_pooler_no_answer_is_left_unread),
        cmocka_unit_test(a_ring_of_our_own_is_not_heard_again),
        cmocka_unit_test(an_error_of_a_ring_harms_no_later_transaction),
        cmocka_unit_test(a_ring_that_is_stuck_holds_up_no_commit),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("rings behind commits", tests, NULL, NULL);
}
