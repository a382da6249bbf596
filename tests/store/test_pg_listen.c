/* Who reads the connection that listens: a waiter that is alone, else the bell's thread. */
#include <holdfast/store.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"

#define ROUNDS 20
#define LONG_MS 20000
#define SLICE_MS 1000 /* after which whoever waits looks, rung or not */
#define PROMPT_MS 50  /* less than the thread keeps off */

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
        pg_bell_lock(&pair->pg->bell);
        heard = pair->pg->bell.heard;
        pg_bell_unlock(&pair->pg->bell);
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

static int64_t notices_waiting(struct pair *pair)
{
    return atomic_load(&pair->pg->counts.notices_waiting);
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

static bool is_read_by_waiter(const struct pg_ear *ear)
{
    return ear->asleep && !ear->watched;
}

static bool is_read_by_thread(const struct pg_ear *ear)
{
    return ear->watched;
}

static bool has_two_waiters(const struct pg_ear *ear)
{
    return ear->waiters == 2;
}

static bool has_one_waiter(const struct pg_ear *ear)
{
    return ear->waiters == 1;
}

static void until(struct pair *pair, bool (*is)(const struct pg_ear *))
{
    for (bool done = false; !done; (void)sched_yield()) {
        pg_bell_lock(&pair->pg->bell);
        done = is(&pair->pg->bell.ear);
        pg_bell_unlock(&pair->pg->bell);
    }
}

/* As the only one for a while: it reads. */
static void begin_reader(struct pair *pair, struct waiter *waiter, uint32_t topic)
{
    pg_bell_lock(&pair->pg->bell);
    pair->pg->bell.ear.shared_until = 0;
    pg_bell_unlock(&pair->pg->bell);
    begin(pair, waiter, topic);
    until(pair, is_read_by_waiter);
}

static void ring(struct hf_sql *sql, uint32_t topic)
{
    sql->methods->bell_ring(sql, topic, 1);
}

static int socket_of(struct pair *pair)
{
    pg_bell_lock(&pair->pg->bell);
    int fd = PQsocket(pair->pg->bell.ear.conn->db);
    pg_bell_unlock(&pair->pg->bell);
    return fd;
}

static int backend_of(struct pair *pair)
{
    pg_bell_lock(&pair->pg->bell);
    const struct pg_conn *conn = pair->pg->bell.ear.conn;
    int backend = conn ? (int)conn->process.pid : 0;
    pg_bell_unlock(&pair->pg->bell);
    return backend;
}

/* As if a reader had just left, for as long as the test likes. */
static void keep_thread_off(struct pair *pair)
{
    struct waiter waiter;
    begin_reader(pair, &waiter, 1);
    pg_bell_lock(&pair->pg->bell);
    pg_bell_hear(&pair->pg->bell, "somebody 1:1");
    pg_bell_unlock(&pair->pg->bell);
    assert_ends_rung(&waiter);
    pg_bell_lock(&pair->pg->bell);
    pair->pg->bell.ear.left_at = pg_mono_ms() + LONG_MS;
    pg_bell_unlock(&pair->pg->bell);
    pg_bell_nudge(&pair->pg->bell);
}

static void assert_readable(int fd, bool wanted)
{
    struct pollfd at = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&at, 1, wanted ? LONG_MS : 0), wanted);
}

static void a_lone_waiter_reads_what_wakes_it(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, "lone");
    hf_ms began = pg_mono_ms();
    for (int i = 0; i < ROUNDS; i++) {
        struct waiter waiter;
        begin_reader(&pair, &waiter, 7);
        int64_t all = notices(&pair), own = notices_waiting(&pair);
        ring(pair.far, 7);
        assert_ends_rung(&waiter);
        assert_int_equal(notices(&pair), all + 1);
        assert_int_equal(notices_waiting(&pair), own + 1);
    }
    assert_true(pg_mono_ms() - began < ROUNDS * SLICE_MS / 2);
    pair_close(&pair);
}

static void a_reader_that_leaves_leaves_nobody_deaf(void **state)
{
    (void)state;
    struct pair pair;
    int prompt = 0;
    pair_open(&pair, "others");
    for (int i = 0; i < ROUNDS; i++) {
        struct waiter reader, second, third;
        begin_reader(&pair, &reader, 7);
        begin(&pair, &second, 8);
        begin(&pair, &third, 9);
        until(&pair, has_two_waiters);
        ring(pair.far, 7);
        assert_ends_rung(&reader);
        hf_ms began = pg_mono_ms();
        ring(pair.far, 8);
        assert_ends_rung(&second);
        ring(pair.far, 9);
        assert_ends_rung(&third);
        prompt += pg_mono_ms() - began < PROMPT_MS;
    }
    assert_true(prompt > ROUNDS / 2); /* of a machine that is busy not each */
    pair_close(&pair);
}

static void where_several_wait_the_thread_reads(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter first, second, again;
    pair_open(&pair, "several");
    begin_reader(&pair, &first, 7);
    begin(&pair, &second, 8);
    until(&pair, has_one_waiter);
    ring(pair.far, 7);
    assert_ends_rung(&first);
    begin(&pair, &again, 7);
    until(&pair, has_two_waiters);
    until(&pair, is_read_by_thread);
    int64_t own = notices_waiting(&pair);
    ring(pair.far, 7);
    assert_ends_rung(&again);
    ring(pair.far, 8);
    assert_ends_rung(&second);
    pg_bell_lock(&pair.pg->bell);
    assert_true(pair.pg->bell.ear.shared_until > 0);
    pair.pg->bell.ear.shared_until += LONG_MS; /* however slow this machine is */
    pg_bell_unlock(&pair.pg->bell);
    begin(&pair, &again, 7); /* alone, but who knows for how long */
    until(&pair, has_one_waiter);
    until(&pair, is_read_by_thread);
    ring(pair.far, 7);
    assert_ends_rung(&again);
    assert_int_equal(notices_waiting(&pair), own);
    pair_close(&pair);
}

static void whoever_waits_and_does_not_read_calls_the_thread(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    pair_open(&pair, "called");
    keep_thread_off(&pair);
    pg_bell_lock(&pair.pg->bell);
    pair.pg->bell.ear.shared_until = pg_mono_ms() + LONG_MS;
    pg_bell_unlock(&pair.pg->bell);
    int64_t own = notices_waiting(&pair);
    begin(&pair, &waiter, 7);
    until(&pair, is_read_by_thread);
    ring(pair.far, 7);
    assert_ends_rung(&waiter);
    assert_int_equal(notices_waiting(&pair), own);
    pair_close(&pair);
}

static void a_reader_that_is_cut_off_has_it_connected_again(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    char cut[100];
    pair_open(&pair, "cut");
    begin_reader(&pair, &waiter, 7);
    int backend = backend_of(&pair), now = backend;
    (void)snprintf(cut, sizeof(cut), "SELECT pg_terminate_backend(%d)", backend);
    (void)pg_server_sql(&server, cut);
    assert_ends_rung(&waiter); /* after a gap everybody looks */
    while (now == 0 || now == backend)
        now = backend_of(&pair);
    begin_reader(&pair, &waiter, 7);
    int64_t own = notices_waiting(&pair);
    ring(pair.far, 7);
    assert_ends_rung(&waiter);
    assert_int_equal(notices_waiting(&pair), own + 1);
    pair_close(&pair);
}

static void what_comes_while_nobody_waits_is_read_by_the_thread(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    pair_open(&pair, "nobody");
    begin_reader(&pair, &waiter, 1);
    ring(pair.far, 1);
    assert_ends_rung(&waiter);
    uint32_t seen = seen_of(pair.sql, 7);
    int64_t all = notices(&pair), own = notices_waiting(&pair);
    ring(pair.far, 7);
    while (notices(&pair) == all)
        (void)sched_yield();
    assert_int_equal(notices_waiting(&pair), own);
    assert_readable(socket_of(&pair), false);
    assert_true(pair.sql->methods->bell_wait(pair.sql, 7, seen, LONG_MS));
    assert_int_equal(seen_of(pair.sql, 7), seen + 1); /* for that, and not for a slice */
    pair_close(&pair);
}

/* Whoever takes a ticket and then looks has seen what was told before: it is no news. */
static void a_ticket_counts_what_was_told_before(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, "ticket");
    keep_thread_off(&pair);
    uint32_t before = seen_of(pair.sql, 7);
    int64_t own = notices_waiting(&pair);
    ring(pair.far, 7);
    assert_readable(socket_of(&pair), true);
    uint32_t seen = seen_of(pair.sql, 7);
    while (seen == before) /* it does not read twice a millisecond */
        seen = seen_of(pair.sql, 7);
    assert_int_equal(seen, before + 1);
    assert_int_equal(notices_waiting(&pair), own + 1);
    assert_readable(socket_of(&pair), false);
    pair_close(&pair);
}

/* It is told so when it looks; until then it has no part in the connection. */
static void a_child_takes_nothing_from_its_parent(void **state)
{
    (void)state;
    struct pair pair;
    int status = 0;
    pair_open(&pair, "child");
    keep_thread_off(&pair);
    ring(pair.far, 7);
    assert_readable(socket_of(&pair), true);
    pid_t child = fork();
    if (child == 0) {
        hf_ms began = pg_mono_ms();
        while (pg_mono_ms() - began < 3) /* not twice a millisecond */
            (void)seen_of(pair.sql, 7);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_readable(socket_of(&pair), true);
    pair_close(&pair);
}

static void what_is_told_after_the_ticket_ends_the_wait(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, "news");
    keep_thread_off(&pair);
    uint32_t seen = seen_of(pair.sql, 7);
    int64_t own = notices_waiting(&pair);
    ring(pair.far, 7);
    assert_readable(socket_of(&pair), true);
    assert_true(pair.sql->methods->bell_wait(pair.sql, 7, seen, LONG_MS));
    assert_int_equal(notices_waiting(&pair), own + 1);
    assert_int_equal(seen_of(pair.sql, 7), seen + 1);
    pair_close(&pair);
}

static void a_bell_that_is_stopped_ends_the_readers_wait(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter waiter;
    pair_open(&pair, "stopped");
    begin_reader(&pair, &waiter, 7);
    pg_bell_stop(pair.pg); /* what closing does first; then nobody may be in a call */
    assert_ends_rung(&waiter);
    pair_close(&pair);
}

static void a_ring_of_its_own_process_ends_the_readers_wait(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, "local");
    pair.pg->bell.follow_due = INT64_MAX; /* nor has the thread that to say */
    hf_ms began = pg_mono_ms();
    for (int i = 0; i < ROUNDS; i++) {
        struct waiter waiter;
        int64_t told = atomic_load(&pair.pg->counts.rings);
        begin_reader(&pair, &waiter, i % 2 ? 7 : HF_TOPIC_ANY);
        ring(pair.sql, 7);
        assert_ends_rung(&waiter);
        while (atomic_load(&pair.pg->counts.rings) == told)
            (void)sched_yield(); /* whoever waits meanwhile does not read */
    }
    assert_true(pg_mono_ms() - began < ROUNDS * SLICE_MS / 2);
    pair_close(&pair);
}

static void the_reader_is_one_of_those_that_a_ring_feeds(void **state)
{
    (void)state;
    struct pair pair;
    struct waiter reader, other;
    pair_open(&pair, "fed");
    begin_reader(&pair, &reader, 7);
    begin(&pair, &other, 7);
    until(&pair, has_one_waiter);
    ring(pair.sql, 7);
    assert_ends_rung(&reader);
    until(&pair, has_one_waiter);
    ring(pair.sql, 7);
    assert_ends_rung(&other);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_waiter_reads_what_wakes_it),
        cmocka_unit_test(a_reader_that_leaves_leaves_nobody_deaf),
        cmocka_unit_test(where_several_wait_the_thread_reads),
        cmocka_unit_test(whoever_waits_and_does_not_read_calls_the_thread),
        cmocka_unit_test(a_reader_that_is_cut_off_has_it_connected_again),
        cmocka_unit_test(what_comes_while_nobody_waits_is_read_by_the_thread),
        cmocka_unit_test(a_ticket_counts_what_was_told_before),
        cmocka_unit_test(a_child_takes_nothing_from_its_parent),
        cmocka_unit_test(what_is_told_after_the_ticket_ends_the_wait),
        cmocka_unit_test(a_bell_that_is_stopped_ends_the_readers_wait),
        cmocka_unit_test(a_ring_of_its_own_process_ends_the_readers_wait),
        cmocka_unit_test(the_reader_is_one_of_those_that_a_ring_feeds),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("who reads notices", tests, NULL, NULL);
}
