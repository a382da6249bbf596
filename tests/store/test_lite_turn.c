/* Several processes on one file: they take turns, none starves, the dead block no
 * other. */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lite_kit.h"
#include "lite_vfs.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup_closed, kit_teardown)

#define PROCESSES 6
#define TOTAL 6000

/* What the processes share next to the store. */
struct board {
    _Atomic int64_t total;
    _Atomic int64_t by[PROCESSES];
    _Atomic int64_t failed;
    _Atomic int ready;
};

static struct board *new_board(void)
{
    void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

static pid_t start(void (*run)(struct kit *, struct board *, int), struct kit *kit,
                   struct board *board, int number)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run(kit, board, number);
        _exit(0);
    }
    return child;
}

static void wait_for(pid_t child, bool killed)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (killed)
        assert_true(WIFSIGNALED(status));
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int add_one(struct hf_sql *sql, int64_t id)
{
    struct kit_batch b;
    kit_begin(&b);
    kit_add(&b, id, 1);
    return kit_run(sql, &b, NULL);
}

static void hammer(struct kit *kit, struct board *board, int number)
{
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0) {
        (void)atomic_fetch_add(&board->failed, 1);
        return;
    }
    (void)atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->ready) < PROCESSES)
        (void)sched_yield();
    while (atomic_load(&board->total) < TOTAL) {
        if (add_one(sql, number % 2) != 0)
            (void)atomic_fetch_add(&board->failed, 1);
        (void)atomic_fetch_add(&board->by[number], 1);
        (void)atomic_fetch_add(&board->total, 1);
    }
    sql->methods->close(sql);
}

static void processes_share_a_file_and_none_starves(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    pid_t children[PROCESSES];
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 0, "even", 0), 0);
    assert_int_equal(kit_put_one(kit->sql, 1, "odd", 0), 0);
    kit_close(kit);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start(hammer, kit, board, i);
    for (int i = 0; i < PROCESSES; i++)
        wait_for(children[i], false);
    assert_int_equal(atomic_load(&board->failed), 0);
    kit_open(kit);
    int64_t rows;
    int64_t sum;
    kit_count(kit->sql, &rows, &sum);
    assert_int_equal(sum, atomic_load(&board->total));
    int64_t least = INT64_MAX;
    for (int i = 0; i < PROCESSES; i++) {
        int64_t by = atomic_load(&board->by[i]);
        print_message("# process %d wrote %lld\n", i, (long long)by);
        least = by < least ? by : least;
    }
    assert_true(least >= TOTAL / PROCESSES / 10);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

static void open_first(struct kit *kit, struct board *board, int number)
{
    struct hf_sql *sql = NULL;
    (void)atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->ready) < PROCESSES)
        (void)sched_yield();
    if (kit_try(kit, kit->path, NULL, &sql) != 0 ||
        kit_put_one(sql, number, "first", 1) != 0) {
        print_message("# process %d: %s\n", number, kit->err.message);
        (void)atomic_fetch_add(&board->failed, 1);
    }
    if (sql)
        sql->methods->close(sql);
}

static void processes_that_create_a_store_together_create_one(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start(open_first, kit, board, i);
    for (int i = 0; i < PROCESSES; i++)
        wait_for(children[i], false);
    assert_int_equal(atomic_load(&board->failed), 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), PROCESSES);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM hf_schema"), 2);
    assert_int_equal(kit_sql_int(kit->path, "SELECT incarnation FROM hf_store"), 1);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

static void hold_for_ever(struct kit *kit, struct board *board, int number)
{
    (void)number;
    int fd = kit_hold_turn(kit);
    (void)atomic_fetch_add(&board->ready, 1);
    for (;;)
        (void)poll(NULL, 0, -1);
    (void)close(fd);
}

static void a_killed_holder_of_the_turn_blocks_nobody(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    struct hf_sql_options options = { .size = sizeof(options), .busy_ms = 100 };
    assert_int_equal(kit_try(kit, kit->path, &options, &kit->sql), 0);
    pid_t child = start(hold_for_ever, kit, board, 0);
    while (atomic_load(&board->ready) == 0)
        (void)sched_yield();
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), HF_EBUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    wait_for(child, true);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

static void wait_for_a_bell(struct kit *kit, struct board *board, int number)
{
    (void)board;
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        _exit(1);
    uint32_t topic = (uint32_t)number;
    (void)lite_bell_wait(sql, topic, lite_bell_seen(sql, topic), 600000);
    _exit(1);
}

/* Waiters are counted, so that others need not call the kernel in vain. */
static void one_who_died_waiting_is_counted_until_the_store_is_opened_alone(void **state)
{
    enum { TOPIC = 7 };
    struct kit *kit = *state;
    struct board *board = new_board();
    kit_open(kit);
    struct lite_page *page = lite_of(kit->sql)->side.page;
    pid_t child = start(wait_for_a_bell, kit, board, TOPIC);
    while (atomic_load(&page->bell_waiters[TOPIC]) == 0)
        (void)sched_yield();
    assert_int_equal(kill(child, SIGKILL), 0);
    wait_for(child, true);
    assert_int_equal(atomic_load(&page->bell_waiters[TOPIC]), 1);
    atomic_store(&page->turnstile_waiters,
                 1); /* as one who died at the turnstile leaves it */
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(atomic_load(&page->turnstile_waiters), 1);
    kit_close(kit);
    kit_open(kit);
    page = lite_of(kit->sql)->side.page;
    assert_int_equal(atomic_load(&page->bell_waiters[TOPIC]), 0);
    assert_int_equal(atomic_load(&page->turnstile_waiters), 0);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

static void write_until_killed(struct kit *kit, struct board *board, int number)
{
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        _exit(1);
    for (int64_t id = 0;; id++) {
        if (kit_put_one(sql, number * 1000000LL + id, "victim", 1) != 0)
            _exit(1);
        (void)atomic_fetch_add(&board->by[0], 1);
    }
}

static void what_a_killed_writer_was_told_is_kept(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    kit_open(kit);
    for (int round = 1; round <= 20; round++) {
        kit_close(kit); /* no handle survives a fork */
        int64_t until = atomic_load(&board->by[0]) + 17 * round;
        pid_t child = start(write_until_killed, kit, board, round);
        while (atomic_load(&board->by[0]) < until)
            (void)sched_yield();
        assert_int_equal(kill(child, SIGKILL), 0);
        kit_open(kit); /* while it may be dying */
        wait_for(child, true);
        int64_t told = atomic_load(&board->by[0]);
        assert_int_equal(kit_put_one(kit->sql, -round, "ann", 0), 0);
        /* Each victim may have written one row that it was not told of. */
        int64_t rows = kit_rows(kit->sql) - round;
        assert_true(rows >= told && rows <= told + round);
    }
    kit_close(kit);
    assert_int_equal(
        kit_sql_int(kit->path,
                    "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
        1);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

/* ---- processes that are stopped -------------------------------------------------------- */

static int stop_in_commit(void *user)
{
    (void)user;
    (void)raise(SIGSTOP);
    return 0;
}

static void stop_in_its_turn(struct kit *kit, struct board *board, int number)
{
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        _exit(1);
    (void)sqlite3_commit_hook(lite_of(sql)->writer.db, stop_in_commit, NULL);
    if (kit_put_one(sql, number, "stopped", 1) != 0)
        _exit(1);
    (void)atomic_fetch_add(&board->by[0], 1);
    sql->methods->close(sql);
}

static void wait_until_stopped(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
}

/* The error names the process, says that it is stopped, and how to let it go on. */
static void assert_names(const struct hf_err *err, pid_t child)
{
    char text[80];
    int n = snprintf(text, sizeof(text), "process %d (test_store_lite) is stopped",
                     (int)child);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    print_message("# %s\n", err->message);
    assert_non_null(strstr(err->message, text));
    n = snprintf(text, sizeof(text), "kill -CONT %d", (int)child);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    assert_non_null(strstr(err->message, text));
}

static void a_writer_that_is_stopped_blocks_no_reader_and_is_named(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    struct hf_sql *reader = NULL;
    struct hf_sql_options reads = { .size = sizeof(reads),
                                    .busy_ms = 100,
                                    .read_only = true };
    struct hf_sql_options writes = { .size = sizeof(writes), .busy_ms = 100 };
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    kit_close(kit);
    pid_t child = start(stop_in_its_turn, kit, board, 2);
    wait_until_stopped(child);
    assert_int_equal(kit_try(kit, kit->path, &reads, &reader), 0);
    assert_int_equal(kit_rows(reader), 1);
    assert_int_equal(kit_try(kit, kit->path, &writes, &kit->sql), HF_EBUSY);
    assert_names(&kit->err, child);
    assert_int_equal(kill(child, SIGCONT), 0);
    wait_for(child, false);
    assert_int_equal(kit_rows(reader), 2);
    reader->methods->close(reader);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

/* The first to read the WAL is the one that recovers it. */
static void stop_once(void)
{
    static bool stopped;
    if (!stopped) {
        stopped = true;
        (void)raise(SIGSTOP);
    }
}

static void stop_in_recovery(struct kit *kit, struct board *board, int number)
{
    (void)board;
    (void)number;
    static struct fault fault;
    struct hf_sql *sql = NULL;
    if (fault_register(&fault, "stops", SQLITE_OPEN_WAL) != SQLITE_OK)
        _exit(1);
    fault.on_read = stop_once;
    kit->under.vfs = "stops";
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        _exit(1);
    sql->methods->close(sql);
}

static void put_and_die(struct kit *kit, struct board *board, int number)
{
    (void)board;
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0 ||
        kit_put_one(sql, number, "ann", 1) != 0)
        _exit(1);
    (void)raise(SIGKILL); /* its WAL is left for the next one to recover */
}

static void a_process_that_is_stopped_while_it_recovers_the_wal_is_named(void **state)
{
    struct kit *kit = *state;
    struct board *board = new_board();
    struct hf_sql_options reads = { .size = sizeof(reads),
                                    .busy_ms = 100,
                                    .read_only = true };
    wait_for(start(put_and_die, kit, board, 1), true);
    pid_t child = start(stop_in_recovery, kit, board, 0);
    wait_until_stopped(child);
    assert_int_equal(kit_try(kit, kit->path, &reads, &kit->sql), HF_EBUSY);
    assert_names(&kit->err, child);
    assert_non_null(strstr(kit->err.message, "recovering the write-ahead log"));
    assert_int_equal(kill(child, SIGCONT), 0);
    wait_for(child, false);
    assert_int_equal(kit_try(kit, kit->path, &reads, &kit->sql), 0);
    assert_int_equal(kit_rows(kit->sql), 1);
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(processes_share_a_file_and_none_starves),
        CASE(processes_that_create_a_store_together_create_one),
        CASE(a_killed_holder_of_the_turn_blocks_nobody),
        CASE(one_who_died_waiting_is_counted_until_the_store_is_opened_alone),
        CASE(what_a_killed_writer_was_told_is_kept),
        CASE(a_writer_that_is_stopped_blocks_no_reader_and_is_named),
        CASE(a_process_that_is_stopped_while_it_recovers_the_wal_is_named),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
