/* Group commit: many batches, one transaction, each answered as if it had been alone. */
#include <pthread.h>
#include <sys/stat.h>

#include "lite_kit.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

#define CALLERS 64
#define EACH 200

static int thread_count(void)
{
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *at = readdir(dir); at; at = readdir(dir))
        count += at->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static void a_lone_caller_commits_inline(void **state)
{
    struct kit *kit = *state;
    int before = thread_count();
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 1);
    assert_int_equal(thread_count(), before);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->group.groups), 1);
}

struct caller {
    struct kit *kit;
    int number;
    int acknowledged;
    pthread_t thread;
};

static void *put_many(void *arg)
{
    struct caller *caller = arg;
    for (int i = 0; i < EACH; i++)
        caller->acknowledged += kit_put_one(caller->kit->sql, caller->number * EACH + i,
                                            "caller", 1) == 0;
    return NULL;
}

static void what_64_callers_were_told_is_what_the_file_holds(void **state)
{
    struct kit *kit = *state;
    struct caller callers[CALLERS];
    int acknowledged = 0;
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .kit = kit, .number = i };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, put_many, &callers[i]),
                         0);
    }
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        acknowledged += callers[i].acknowledged;
    }
    const struct db_group *group = &lite_of(kit->sql)->group;
    assert_int_equal(acknowledged, CALLERS * EACH);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), CALLERS * EACH);
    assert_int_equal(kit_counted(&group->members), CALLERS * EACH);
    assert_true(kit_counted(&group->groups) < CALLERS * EACH);
    /* One commit at open, then one per group. */
    assert_int_equal(kit_sql_int(kit->path, "SELECT commit_seq FROM hf_store"),
                     kit_counted(&group->groups) + 1);
}

/* Runs all as one group, in their order. */
static void run_together(struct kit *kit, struct sent *sent, size_t count)
{
    int held = kit_hold_turn(kit);
    for (size_t i = 0; i < count; i++)
        kit_send(kit, &sent[i], i);
    assert_int_equal(close(held), 0);
    for (size_t i = 0; i < count; i++)
        kit_sent_end(kit, &sent[i]);
}

static struct sent *new_sent(size_t count)
{
    struct sent *sent = calloc(count, sizeof(*sent));
    assert_non_null(sent);
    for (size_t i = 0; i < count; i++)
        kit_begin(&sent[i].b);
    return sent;
}

static void a_culprit_that_changed_rows_harms_nobody_else(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(5);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_put(&sent[1].b, 2, "bob", 1);
    kit_put(&sent[1].b, 1, "bob", 1); /* taken by the member before */
    kit_put(&sent[2].b, 3, "cid", 1);
    kit_put(&sent[3].b, 4, "dan", 1);
    kit_add(&sent[3].b, 99, 1); /* a guard unmet after a change */
    kit_put(&sent[4].b, 5, "eve", 1);
    run_together(kit, sent, 5);
    assert_int_equal(sent[0].rc, 0);
    assert_int_equal(sent[1].rc, HF_ECONFLICT);
    assert_int_equal(sent[1].b.batch.failed_call, 1);
    assert_int_equal(sent[2].rc, 0);
    assert_int_equal(sent[3].rc, HF_EGUARD);
    assert_int_equal(sent[4].rc, 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 3);
    assert_int_equal(kit_sql_int(kit->path, "SELECT sum(id) FROM item"), 1 + 3 + 5);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->group.groups), 1);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.replays), 1);
    free(sent);
}

/* Its first row stays, and SQLite counts no change. */
static void a_statement_that_fails_half_way_harms_nobody_else(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(3);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_puts(&sent[1].b, "bob",
             (struct hf_val[]){ kit_i(2), kit_i(1), kit_i(3), kit_t("no number") }, 2);
    kit_put(&sent[2].b, 4, "cid", 1);
    run_together(kit, sent, 3);
    assert_int_equal(sent[0].rc, 0);
    assert_int_equal(sent[1].rc, HF_EINTERNAL);
    assert_int_equal(sent[2].rc, 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT sum(id) FROM item"), 1 + 4);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.replays), 1);
    free(sent);
}

static void a_member_refused_before_it_changed_anything_costs_no_replay(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(3);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_add(&sent[1].b, 99, 1);
    kit_put(&sent[2].b, 3, "cid", 1);
    run_together(kit, sent, 3);
    assert_int_equal(sent[0].rc, 0);
    assert_int_equal(sent[1].rc, HF_EGUARD);
    assert_int_equal(sent[2].rc, 0);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.replays), 0);
    free(sent);
}

static void a_group_that_is_refused_whole_commits_nothing(void **state)
{
    struct kit *kit = *state;
    int64_t before = kit_sql_int(kit->path, "SELECT commit_seq FROM hf_store");
    struct sent *sent = new_sent(3);
    for (int i = 0; i < 3; i++)
        kit_add(&sent[i].b, 99, 1);
    run_together(kit, sent, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sent[i].rc, HF_EGUARD);
    assert_int_equal(kit_sql_int(kit->path, "SELECT commit_seq FROM hf_store"), before);
    free(sent);
}

static void a_member_that_ends_the_transaction_harms_nobody_else(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(3);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_put(&sent[1].b, 2, "bob", 1);
    kit_call(&sent[1].b, KIT_ENDS_TX, 1, (struct hf_val[]){ kit_i(1) }, 1);
    kit_put(&sent[2].b, 3, "cid", 1);
    run_together(kit, sent, 3);
    assert_int_equal(sent[0].rc, 0);
    assert_int_equal(sent[1].rc, HF_EINTERNAL);
    assert_int_equal(sent[2].rc, 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 2);
    free(sent);
}

static void a_constraint_that_waits_for_commit_finds_its_member(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(3);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_put(&sent[1].b, 2, "bob", 1);
    kit_call(&sent[1].b, KIT_CHILD, 2, (struct hf_val[]){ kit_i(1), kit_i(77) }, 1);
    kit_call(&sent[2].b, KIT_CHILD, 2, (struct hf_val[]){ kit_i(2), kit_i(1) }, 1);
    run_together(kit, sent, 3);
    assert_int_equal(sent[0].rc, 0);
    assert_int_equal(sent[1].rc, HF_ECONFLICT);
    assert_int_equal(sent[2].rc, 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 1);
    assert_int_equal(kit_sql_int(kit->path, "SELECT sum(id) FROM child"), 2);
    free(sent);
}

static void the_lead_without_a_batch_waits_for_the_leader(void **state)
{
    struct kit *kit = *state;
    struct lite *lite = lite_of(kit->sql);
    struct sent sent;
    kit_begin(&sent.b);
    kit_put(&sent.b, 1, "ann", 1);
    assert_int_equal(lite_group_enter(lite, NULL), 0);
    kit_send(kit, &sent, 1);
    assert_int_equal(kit_rows(kit->sql), 0);
    lite_group_leave(lite);
    kit_sent_end(kit, &sent);
    assert_int_equal(sent.rc, 0);
    assert_int_equal(kit_rows(kit->sql), 1);
}

static void a_wait_for_the_turn_is_bounded(void **state)
{
    struct kit *kit = *state;
    kit_close(kit);
    struct hf_sql_options options = { .size = sizeof(options), .busy_ms = 50 };
    assert_int_equal(kit_try(kit, kit->path, &options, &kit->sql), 0);
    int held = kit_hold_turn(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), HF_EBUSY);
    /* Reads need no turn. */
    assert_int_equal(kit_rows(kit->sql), 0);
    struct hf_sql *second = NULL;
    assert_int_equal(kit_try(kit, kit->path, &options, &second), HF_EBUSY);
    assert_int_equal(close(held), 0);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
}

static void a_foreign_writer_is_waited_for_and_then_busy(void **state)
{
    struct kit *kit = *state;
    kit_close(kit);
    struct hf_sql_options options = { .size = sizeof(options), .busy_ms = 50 };
    assert_int_equal(kit_try(kit, kit->path, &options, &kit->sql), 0);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(kit->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), HF_EBUSY);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_reader_that_pins_the_wal_stops_no_commit(void **state)
{
    struct kit *kit = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(kit->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "BEGIN; SELECT count(*) FROM item", NULL, NULL, NULL),
        SQLITE_OK);
    const struct lite *lite = lite_of(kit->sql);
    int64_t id = 0;
    int64_t due = atomic_load(&lite->checkpoint.due_pages);
    /* Until the thread has come to nothing twice. */
    while (kit_counted(&lite->counts.checkpoints_in_turnstile) < 2)
        assert_int_equal(kit_put_one(kit->sql, id++, "ann", 1), 0);
    assert_true(atomic_load(&lite->checkpoint.wal_pages) > due);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    /* No caller pins it now: the WAL starts over by itself. */
    while (atomic_load(&lite->checkpoint.wal_pages) > due)
        assert_int_equal(kit_put_one(kit->sql, id++, "ann", 1), 0);
    assert_int_equal(kit_rows(kit->sql), id);
}

static void short_lived_handles_keep_the_wal_short(void **state)
{
    struct kit *kit = *state;
    char wal[160];
    struct stat at;
    assert_true(snprintf(wal, sizeof(wal), "%s-wal", kit->path) > 0);
    for (int64_t id = 0; id < 1500; id++) {
        assert_int_equal(kit_put_one(kit->sql, id, "ann", 1), 0);
        kit_close(kit);
        kit_open(kit);
        assert_int_equal(stat(wal, &at), 0);
        assert_true(at.st_size < 2 * 1024 * 1024);
    }
    assert_int_equal(kit_rows(kit->sql), 1500);
}

struct crossing {
    pthread_t thread;
    struct kit *kit;
    int64_t first, second;
    int rc;
};

static void *cross(void *user)
{
    struct crossing *crossing = user;
    struct hf_sql *sql = NULL;
    crossing->rc = lite_open(crossing->kit->path, NULL, &crossing->kit->under, &sql,
                             NULL);
    for (int i = 0; crossing->rc == 0 && i < 100; i++) {
        struct kit_batch b;
        kit_begin(&b);
        kit_add(&b, crossing->first, 1);
        kit_add(&b, crossing->second, 1);
        crossing->rc = kit_run(sql, &b, NULL);
    }
    if (sql)
        sql->methods->close(sql);
    return NULL;
}

#define ROUNDS_MOST 100000

/* A batch that takes a while, and meanwhile another is queued: one transaction for both. */
#define LONG_ROWS 1000

static void *put_long(void *arg)
{
    struct caller *caller = arg;
    struct hf_val args[LONG_ROWS * 3];
    for (int i = 0; i < LONG_ROWS; i++) {
        args[3 * i] = kit_i(caller->number + i);
        args[3 * i + 1] = kit_t("long");
        args[3 * i + 2] = kit_i(1);
    }
    struct kit_batch b;
    kit_begin(&b);
    struct hf_call *call = kit_call(&b, KIT_PUT, 3, args, LONG_ROWS);
    call->rows = LONG_ROWS;
    call->args = args;
    caller->acknowledged = kit_run(caller->kit->sql, &b, NULL) == 0 ? LONG_ROWS : 0;
    caller->kit->sql->methods->forget(caller->kit->sql, &b.batch);
    return NULL;
}

static void who_comes_before_the_commit_goes_with_it(void **state)
{
    struct kit *kit = *state;
    const struct db_group *group = &lite_of(kit->sql)->group;
    int made = 0;
    for (int i = 0; kit_counted(&group->late) == 0 && i < ROUNDS_MOST; i++) {
        struct caller caller = { .kit = kit, .number = made };
        assert_int_equal(pthread_create(&caller.thread, NULL, put_long, &caller), 0);
        int other = 100000000 + i;
        assert_int_equal(kit_put_one(kit->sql, other, "late", 1), 0);
        assert_int_equal(pthread_join(caller.thread, NULL), 0);
        assert_int_equal(caller.acknowledged, LONG_ROWS);
        made += LONG_ROWS;
        assert_int_equal(kit_rows(kit->sql), made + i + 1);
    }
    assert_true(kit_counted(&group->late) > 0);
    assert_true(kit_counted(&group->groups) < kit_counted(&group->members));
}

/* Rule 11. With SQLite a transaction has the whole store, so rows that two batches touch in
 * opposite order cannot lock each other out. */
static void locks_in_key_order(void **state)
{
    struct kit *kit = *state;
    struct crossing two[2] = { { .kit = kit, .first = 1, .second = 2 },
                               { .kit = kit, .first = 2, .second = 1 } };
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 0), 0);
    assert_int_equal(kit_put_one(kit->sql, 2, "bob", 0), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&two[i].thread, NULL, cross, &two[i]), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(two[i].thread, NULL), 0);
    assert_int_equal(two[0].rc, 0);
    assert_int_equal(two[1].rc, 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT sum(n) FROM item"), 400);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_lone_caller_commits_inline),
        CASE(what_64_callers_were_told_is_what_the_file_holds),
        CASE(a_culprit_that_changed_rows_harms_nobody_else),
        CASE(a_statement_that_fails_half_way_harms_nobody_else),
        CASE(a_member_refused_before_it_changed_anything_costs_no_replay),
        CASE(a_group_that_is_refused_whole_commits_nothing),
        CASE(a_member_that_ends_the_transaction_harms_nobody_else),
        CASE(a_constraint_that_waits_for_commit_finds_its_member),
        CASE(the_lead_without_a_batch_waits_for_the_leader),
        CASE(a_wait_for_the_turn_is_bounded),
        CASE(a_foreign_writer_is_waited_for_and_then_busy),
        CASE(a_reader_that_pins_the_wal_stops_no_commit),
        CASE(short_lived_handles_keep_the_wal_short),
        CASE(who_comes_before_the_commit_goes_with_it),
        CASE(locks_in_key_order),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
