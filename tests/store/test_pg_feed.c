/* The feed on PostgreSQL, where a transaction that began first may write last. */
#include <holdfast/feed.h>
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

/* What the feed returns from its start, as "type:to type:to ". */
static const char *told(struct hf_store *store)
{
    static char text[400];
    struct hf_feed *feed = NULL;
    struct hf_feed_query query = { .size = sizeof(query) };
    assert_int_equal(hf_work_feed(store, NULL, &query, &feed, NULL), 0);
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < hf_feed_count(feed); i++) {
        const struct hf_event *event = &hf_feed_at(feed, i)->event;
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s:%s ", event->event_type,
                               event->to_status ? event->to_status : "-");
    }
    hf_feed_free(feed);
    return text;
}

static PGconn *connected(void)
{
    PGconn *db = PQconnectdb(server.url);
    assert_int_equal(PQstatus(db), CONNECTION_OK);
    return db;
}

/* Runs it and returns the first number that it answers, or -1. */
static long long said(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(db));
    long long number = PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10)
                                         : -1;
    PQclear(result);
    return number;
}

/* A transaction that has its id and has written nothing yet. */
static PGconn *begun(long long *ret_xid)
{
    PGconn *db = connected();
    *ret_xid = said(db, "BEGIN; SELECT txid_current()");
    return db;
}

static void *claim_and_finish(void *arg)
{
    struct hf_store *store = arg;
    struct hf_answer *answer = NULL, *closed = NULL;
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .ttl_ms = 30000, .nonce = "once"
    };
    int rc = hf_work_claim(store, NULL, &claim, &answer, NULL);
    if (rc || hf_answer_count(answer) != 1)
        return arg;
    const struct hf_item *item = hf_answer_at(answer, 0);
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = item->work.work_id,
                                .token = item->token,
                                .status = HF_STATUS_DONE };
    rc = hf_work_change(store, NULL, &change, 1, 0, &closed, NULL);
    hf_answer_free(answer);
    if (rc == 0)
        hf_answer_free(closed);
    return rc ? arg : NULL;
}

/* The claim's transaction begins, waits for its nonce, and takes a unit that was made since. */
static void a_claim_comes_after_the_birth_that_it_saw(void **state)
{
    (void)state;
    pthread_t thread;
    void *failure = NULL;
    struct hf_store *claimer = pg_server_store(&server, "birth"),
                    *maker = pg_server_store(&server, "birth");
    PGconn *other = connected();
    (void)said(other, "SELECT pg_advisory_lock(hashtextextended('w once', 0))");
    assert_int_equal(pthread_create(&thread, NULL, claim_and_finish, claimer), 0);
    long long claiming = -1;
    while (claiming < 0)
        claiming = said(other, "SELECT backend_xid::text FROM pg_stat_activity"
                               " WHERE wait_event = 'advisory'");
    make_unit(maker, "unit");
    assert_true(claiming < said(other, "SELECT xid FROM birth.work_spec"));
    (void)said(other, "SELECT pg_advisory_unlock(hashtextextended('w once', 0))");
    assert_int_equal(pthread_join(thread, &failure), 0);
    assert_null(failure);
    assert_string_equal(told(maker),
                        "work_created:queued claimed:running close_out:done ");
    PQfinish(other);
    hf_store_close(maker);
    hf_store_close(claimer);
}

/* Three transactions begin; the store makes a unit in a fourth; the third ends it, the first brings
 * it back. The second still runs, so what is above it is not given yet; and what the first wrote
 * is. */
static void later_events_of_earlier_transactions_wait_their_turn(void **state)
{
    (void)state;
    long long first = 0, second = 0, third = 0;
    struct hf_store *store = pg_server_store(&server, "chain");
    PGconn *requeuer = begun(&first), *slow = begun(&second), *ender = begun(&third);
    assert_true(first < second && second < third);
    make_unit(store, "unit");
    assert_true(third < said(slow, "SELECT xid FROM chain.work_spec"));
    (void)said(ender, "UPDATE chain.work_state SET status = 'cancelled', finished_at = 1,"
                      " updated_at = 1; COMMIT");
    (void)said(requeuer,
               "UPDATE chain.work_state SET status = 'queued', finished_at = NULL,"
               " generation = generation + 1; COMMIT");
    assert_string_equal(told(store), "");
    (void)said(slow, "COMMIT");
    assert_string_equal(told(store),
                        "work_created:queued transition:cancelled transition:queued ");
    PQfinish(requeuer);
    PQfinish(slow);
    PQfinish(ender);
    hf_store_close(store);
}

/* ---- followers ------------------------------------------------------------------------------ */

/* How often it was rung here; waits would also end by looks. */
static uint32_t rings(struct hf_store *store)
{
    return store->methods->bell_seen(store, HF_TOPIC_ANY);
}

static bool owes(struct hf_store *store)
{
    struct pg_bell *bell = &pg_of(sql_store_of(store)->sql)->bell;
    (void)pthread_mutex_lock(&bell->lock);
    bool owes = bell->due.count > 0 || bell->due.all;
    (void)pthread_mutex_unlock(&bell->lock);
    return owes;
}

static int64_t sent_after(struct pg_counts *counts, int64_t before)
{
    while (atomic_load(&counts->rings) == before)
        (void)sched_yield();
    return atomic_load(&counts->rings);
}

/* Claiming and closing out make nothing claimable, so they ring for followers alone. */
static void a_follower_hears_of_every_commit(void **state)
{
    (void)state;
    struct hf_store *reader = pg_server_store(&server, "followed"),
                    *worker = pg_server_store(&server, "followed");
    struct pg_counts *counts = &pg_of(sql_store_of(worker)->sql)->counts;
    int64_t sent = 0;
    for (int i = 0; i < 4; i++) {
        make_unit(worker, (const char *[]){ "a", "b", "c", "d" }[i]);
        sent = sent_after(counts, sent); /* work that can be claimed */
    }
    assert_null(claim_and_finish(worker));
    assert_false(owes(worker)); /* no caller follows: nothing is sent */
    assert_int_equal(atomic_load(&counts->rings), sent);
    while (strcmp(pg_server_sql(&server, "SELECT followed_until > 0 FROM"
                                         " followed.hf_store"),
                  "t") != 0)
        (void)reader->methods->bell_wait(reader, HF_TOPIC_ANY, rings(reader), 100);
    for (int i = 0; i < 3; i++) {
        uint32_t seen = rings(reader);
        assert_null(claim_and_finish(worker));
        sent = sent_after(counts, sent);
        while (rings(reader) == seen)
            (void)reader->methods->bell_wait(reader, HF_TOPIC_ANY, seen, 100);
    }
    hf_store_close(worker);
    hf_store_close(reader);
}

/* Reads after `after`; returns the code and stores the cursor to go on from. */
static int read_after(struct hf_store *store, const char *after, char *ret_next,
                      size_t room, struct hf_err *err)
{
    struct hf_feed *feed = NULL;
    struct hf_feed_query query = { .size = sizeof(query), .after = after };
    int rc = hf_work_feed(store, NULL, &query, &feed, err);
    if (rc == 0)
        (void)snprintf(ret_next, room, "%s", hf_feed_next(feed));
    hf_feed_free(feed);
    return rc;
}

static void a_cursor_ahead_of_the_end_is_refused(void **state)
{
    (void)state;
    char next[100], ahead[100];
    struct hf_err err = { 0 };
    struct hf_store *store = pg_server_store(&server, "ahead");
    make_unit(store, "one");
    assert_null(claim_and_finish(store));
    assert_int_equal(read_after(store, "end", next, sizeof(next), NULL), 0);
    /* It names the last event: a crash may assign a transaction id again. */
    (void)snprintf(ahead, sizeof(ahead), "hf1.1.%s.0.0",
                   pg_server_sql(&server, "SELECT xid || '.' || event_id FROM"
                                          " ahead.work_event ORDER BY xid DESC,"
                                          " event_id DESC LIMIT 1"));
    assert_string_equal(next, ahead);
    assert_int_equal(read_after(store, next, next, sizeof(next), NULL), 0);
    (void)snprintf(ahead, sizeof(ahead), "hf1.1.%s.0.0",
                   pg_server_sql(&server, "SELECT xid || '.' || event_id + 1 FROM"
                                          " ahead.work_event ORDER BY xid DESC,"
                                          " event_id DESC LIMIT 1"));
    assert_int_equal(read_after(store, ahead, ahead, sizeof(ahead), &err), HF_EINVAL);
    assert_string_equal(err.field, "after");
    assert_non_null(strstr(err.message, "past the end of the feed"));
    hf_store_close(store);
}

/* The event that a cursor names may be pruned, and a new history may begin behind it. */
static void a_cursor_outlives_its_event(void **state)
{
    (void)state;
    char next[100];
    int64_t pruned = 0, now = 0;
    struct hf_store *store = pg_server_store(&server, "outlived");
    make_unit(store, "one");
    assert_null(claim_and_finish(store));
    assert_int_equal(read_after(store, "end", next, sizeof(next), NULL), 0);
    while (pruned == 0) /* what ended within this millisecond is not older */
        assert_int_equal(hf_work_prune(store, NULL, 0, 0, &pruned, NULL), 0);
    assert_int_equal(read_after(store, next, next, sizeof(next), NULL), 0);
    assert_int_equal(hf_store_bump(store, &now, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_after(store, next, next, sizeof(next), NULL), 0);
    hf_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_comes_after_the_birth_that_it_saw),
        cmocka_unit_test(a_cursor_ahead_of_the_end_is_refused),
        cmocka_unit_test(a_cursor_outlives_its_event),
        cmocka_unit_test(a_follower_hears_of_every_commit),
        cmocka_unit_test(later_events_of_earlier_transactions_wait_their_turn),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("the feed on PostgreSQL", tests, NULL, NULL);
}
