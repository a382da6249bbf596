/* The connection that listens: what other processes ring ends the waits of this one. */
#include <holdfast/store.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"

#define LONG_MS 20000

static struct pg_server server;

/* Two handles on one schema: one waits, the other rings. */
struct pair {
    struct hf_store *store, *peer;
    struct hf_sql *sql, *far;
    struct pg *pg;
};

static uint32_t seen_of(struct hf_sql *sql, uint32_t topic)
{
    return sql->methods->bell_seen(sql, topic);
}

static void pair_open(struct pair *pair, const char *schema)
{
    pair->store = pg_server_store(&server, schema);
    pair->peer = pg_server_store(&server, schema);
    pair->sql = sql_store_of(pair->store)->sql;
    pair->far = sql_store_of(pair->peer)->sql;
    pair->pg = pg_of(pair->sql);
    bool heard = false;
    while (!heard) { /* the first wait begins to listen */
        (void)pair->sql->methods->bell_wait(pair->sql, 1, seen_of(pair->sql, 1), 100);
        hf_lock(&pair->pg->bell.lock);
        heard = pair->pg->bell.heard;
        hf_unlock(&pair->pg->bell.lock);
    }
}

static void pair_close(struct pair *pair)
{
    hf_store_close(pair->peer);
    hf_store_close(pair->store);
}

static int64_t notices(struct pair *pair)
{
    return atomic_load(&pair->pg->counts.notices);
}

/* The thread of a waiter, which waits once. */
struct waiter {
    pthread_t thread;
    struct hf_sql *sql;
    uint32_t topic, seen;
    bool rung; /* its word is another by now */
};

static void *wait_once(void *arg)
{
    struct waiter *waiter = arg;
    (void)waiter->sql->methods->bell_wait(waiter->sql, waiter->topic, waiter->seen,
                                          LONG_MS);
    waiter->rung = seen_of(waiter->sql, waiter->topic) != waiter->seen;
    return NULL;
}

static void begin(struct pair *pair, struct waiter *waiter, uint32_t topic)
{
    *waiter = (struct waiter){ .sql = pair->sql,
                               .topic = topic,
                               .seen = seen_of(pair->sql, topic) };
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_once, waiter), 0);
}

static void assert_ends_rung(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_true(waiter->rung);
}

static void ring(struct hf_sql *sql, uint32_t topic)
{
    sql->methods->bell_ring(sql, topic, 1);
}

static void a_ring_of_another_process_ends_each_wait_that_it_is_for(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter seven, eight, any;
    pair_open(&pair, "others");
    begin(&pair, &seven, 7);
    begin(&pair, &eight, 8);
    begin(&pair, &any, HF_TOPIC_ANY);
    ring(pair.far, 7);
    assert_ends_rung(&seven);
    assert_ends_rung(&any);
    ring(pair.far, 8);
    assert_ends_rung(&eight);
    pair_close(&pair);
}

static void what_comes_while_no_thread_waits_is_read(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, "unwaited");
    uint32_t seen = seen_of(pair.sql, 7);
    int64_t before = notices(&pair);
    ring(pair.far, 7);
    while (notices(&pair) == before)
        (void)sched_yield();
    assert_true(pair.sql->methods->bell_wait(pair.sql, 7, seen, LONG_MS));
    assert_int_equal(seen_of(pair.sql, 7), seen + 1); /* for that, and not for a slice */
    pair_close(&pair);
}

static void a_listener_that_is_cut_off_connects_again(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    pair_open(&pair, "cut");
    begin(&pair, &waiter, 7);
    (void)pg_server_sql(&server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                 "WHERE query LIKE 'LISTEN hf_cut%'");
    assert_ends_rung(&waiter); /* after a gap everything is looked at */
    pg_server_await(
        &server,
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN hf_cut%'", "1");
    begin(&pair, &waiter, 7);
    ring(pair.far, 7);
    assert_ends_rung(&waiter);
    pair_close(&pair);
}

static void a_bell_that_is_stopped_ends_the_wait(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    pair_open(&pair, "stopped");
    begin(&pair, &waiter, 7);
    pg_bell_stop(pair.pg); /* what closing does first; then no thread may be in a call */
    assert_ends_rung(&waiter);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_of_another_process_ends_each_wait_that_it_is_for),
        cmocka_unit_test(what_comes_while_no_thread_waits_is_read),
        cmocka_unit_test(a_listener_that_is_cut_off_connects_again),
        cmocka_unit_test(a_bell_that_is_stopped_ends_the_wait),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("the listener", tests, NULL, NULL);
}
