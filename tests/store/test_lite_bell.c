/* Wake-ups: prompt between processes, bounded when lost, none for what did not happen. */
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "lite_kit.h"
#include "store/batch/ops.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup_closed, kit_teardown)

#define ROUNDS 200
#define LONG_MS 20000

static int64_t now_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The waiter and the ringer take turns; each notes when. */
struct board {
    _Atomic int waiting; /* rounds in which the waiter has its ticket */
    _Atomic int woken;
    _Atomic int64_t rung_at;
    _Atomic int64_t lag[ROUNDS];
    _Atomic int failed;
};

static void wait_rounds(struct kit *kit, struct board *board)
{
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        _exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t seen = sql->methods->bell_seen(sql, 70);
        (void)atomic_fetch_add(&board->waiting, 1);
        if (!sql->methods->bell_wait(sql, 70, seen, LONG_MS))
            (void)atomic_fetch_add(&board->failed, 1);
        int64_t rung = atomic_load(&board->rung_at);
        atomic_store(&board->lag[i], now_ns() - rung);
        (void)atomic_fetch_add(&board->woken, 1);
    }
    sql->methods->close(sql);
    _exit(0);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int put_and_ring(struct hf_sql *sql, int64_t id, uint32_t topic)
{
    struct kit_batch b;
    struct hf_ring ring = { .topic = topic, .count = 1 };
    kit_begin(&b);
    kit_put(&b, id, "ann", 1);
    b.batch.rings = &ring;
    b.batch.ring_count = 1;
    return kit_run(sql, &b, NULL);
}

/* Until the child sleeps in the kernel, or the rounds would measure its way there. */
static void wait_until_asleep(pid_t child)
{
    char path[64];
    char line[512] = "";
    assert_true(snprintf(path, sizeof(path), "/proc/%d/stat", (int)child) > 0);
    while (!strstr(line, ") S")) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof(line), file));
        (void)fclose(file);
    }
}

static void a_commit_wakes_another_process(void **state)
{
    struct kit *kit = *state;
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    kit_open(kit);
    kit_close(kit);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        wait_rounds(kit, board);
    kit_open(kit);
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&board->waiting) <= i)
            (void)sched_yield();
        wait_until_asleep(child);
        atomic_store(&board->rung_at, now_ns());
        assert_int_equal(put_and_ring(kit->sql, i, 70), 0);
        while (atomic_load(&board->woken) <= i)
            (void)sched_yield();
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&board->failed), 0);
    int64_t lag[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        lag[i] = atomic_load(&board->lag[i]);
    qsort(lag, ROUNDS, sizeof(lag[0]), by_value);
    print_message("# commit to wake in another process: p50 %.3f ms, p99 %.3f ms\n",
                  (double)lag[ROUNDS / 2] / 1e6, (double)lag[ROUNDS * 99 / 100] / 1e6);
    /* Far below the fallback, so it was the bell. */
    assert_true(lag[ROUNDS / 2] < LITE_BELL_SLICE_MS * 1000000LL / 5);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

static void a_change_without_a_bell_is_noticed_within_slices(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, 5);
    kit_sql(kit->path, "INSERT INTO item VALUES (1, 'foreign', 1)");
    int64_t start = now_ns();
    assert_true(kit->sql->methods->bell_wait(kit->sql, 5, seen, LONG_MS));
    int64_t ms = (now_ns() - start) / 1000000;
    print_message("# noticed after %lld ms\n", (long long)ms);
    assert_true(ms < LONG_MS / 4);
}

static void a_wait_ends_when_nothing_happens(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, 5);
    int64_t start = now_ns();
    assert_false(kit->sql->methods->bell_wait(kit->sql, 5, seen, 300));
    int64_t ms = (now_ns() - start) / 1000000;
    assert_true(ms >= 298);
    assert_false(kit->sql->methods->bell_wait(kit->sql, 5, seen, 0));
}

static void a_ring_before_the_wait_is_not_lost(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, 5);
    assert_int_equal(put_and_ring(kit->sql, 1, 5), 0);
    assert_true(kit->sql->methods->bell_wait(kit->sql, 5, seen, LONG_MS));
}

static void a_refused_batch_rings_nothing(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    assert_int_equal(put_and_ring(kit->sql, 1, 5), 0);
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, 5);
    assert_int_equal(put_and_ring(kit->sql, 1, 5), HF_ECONFLICT);
    assert_int_equal(kit->sql->methods->bell_seen(kit->sql, 5), seen);
    assert_false(kit->sql->methods->bell_wait(kit->sql, 5, seen, 10));
}

struct waiter {
    struct hf_sql *sql;
    uint32_t topic;
    uint32_t seen;
    _Atomic int *woken;
    pthread_t thread;
};

static void *wait_once(void *arg)
{
    struct waiter *waiter = arg;
    if (waiter->sql->methods->bell_wait(waiter->sql, waiter->topic, waiter->seen,
                                        LONG_MS))
        (void)atomic_fetch_add(waiter->woken, 1);
    return NULL;
}

/* Threads of one handle, on topics that share a word: 5 and 69. */
static void threads_of_one_handle_are_woken_too(void **state)
{
    struct kit *kit = *state;
    struct waiter waiters[8];
    _Atomic int woken = 0;
    kit_open(kit);
    for (size_t i = 0; i < 8; i++) {
        uint32_t topic = i % 2 ? 5 : 69;
        waiters[i] = (struct waiter){ .sql = kit->sql,
                                      .topic = topic,
                                      .seen = kit->sql->methods->bell_seen(kit->sql,
                                                                           topic),
                                      .woken = &woken };
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_once, &waiters[i]),
                         0);
    }
    kit->sql->methods->bell_ring(kit->sql, 5, 4);
    kit->sql->methods->bell_ring(kit->sql, 69, UINT32_MAX);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
    assert_int_equal(atomic_load(&woken), 8);
}

struct onlooker {
    pthread_t thread;
    struct kit *kit;
    uint32_t seen;
    int64_t rows; /* that it finds when it is woken */
};

static void *look_when_rung(void *user)
{
    struct onlooker *onlooker = user;
    struct hf_sql *sql = onlooker->kit->sql;
    (void)sql->methods->bell_wait(sql, 5, onlooker->seen, 10000);
    onlooker->rows = kit_sql_int(onlooker->kit->path, "SELECT count(*) FROM item");
    return NULL;
}

/* Rule 10: the caller that is woken finds what the bell was rung for. */
static void bell_outside_the_transaction(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    for (int64_t id = 1; id <= 50; id++) {
        struct onlooker onlooker = { .kit = kit,
                                     .seen = kit->sql->methods->bell_seen(kit->sql, 5) };
        assert_int_equal(
            pthread_create(&onlooker.thread, NULL, look_when_rung, &onlooker), 0);
        assert_int_equal(put_and_ring(kit->sql, id, 5), 0);
        assert_int_equal(pthread_join(onlooker.thread, NULL), 0);
        assert_int_equal(onlooker.rows, id);
    }
}

/* The word itself is looked at, not a wait, which would end by a look at the file too. */
static void a_follower_is_rung_by_the_next_commit_and_asks_for_each(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *other = NULL;
    kit_open(kit);
    assert_int_equal(kit_try(kit, kit->path, NULL, &other), 0);
    _Atomic uint32_t *word = &lite_of(kit->sql)->side.page->bells[HF_TOPIC_ANY];
    assert_int_equal(put_and_ring(other, 1, 5), 0);
    uint32_t before = atomic_load(word); /* no caller had asked */
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, HF_TOPIC_ANY);
    assert_int_equal(atomic_load(word), before);
    assert_int_equal(put_and_ring(other, 1, 5), HF_ECONFLICT); /* nothing was written */
    assert_int_equal(atomic_load(word), before);
    assert_int_equal(put_and_ring(other, 2, 5), 0);
    assert_int_equal(atomic_load(word), before + 1);
    assert_true(kit->sql->methods->bell_wait(kit->sql, HF_TOPIC_ANY, seen, LONG_MS));
    assert_int_equal(put_and_ring(other, 3, 5), 0);
    assert_int_equal(atomic_load(word), before + 1); /* once for each time */
    other->methods->close(other);
}

static void a_memory_store_has_bells(void **state)
{
    struct kit *kit = *state;
    assert_int_equal(kit_try(kit, ":memory:", NULL, &kit->sql), 0);
    uint32_t seen = kit->sql->methods->bell_seen(kit->sql, 5);
    assert_false(kit->sql->methods->bell_wait(kit->sql, 5, seen, 5));
    assert_int_equal(put_and_ring(kit->sql, 1, 5), 0);
    assert_true(kit->sql->methods->bell_wait(kit->sql, 5, seen, LONG_MS));
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_commit_wakes_another_process),
        CASE(a_change_without_a_bell_is_noticed_within_slices),
        CASE(a_wait_ends_when_nothing_happens),
        CASE(a_ring_before_the_wait_is_not_lost),
        CASE(a_refused_batch_rings_nothing),
        CASE(threads_of_one_handle_are_woken_too),
        CASE(bell_outside_the_transaction),
        CASE(a_follower_is_rung_by_the_next_commit_and_asks_for_each),
        CASE(a_memory_store_has_bells),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
