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
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.groups), 1);
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
    const struct lite_counts *counts = &lite_of(kit->sql)->counts;
    assert_int_equal(acknowledged, CALLERS * EACH);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), CALLERS * EACH);
    assert_int_equal(kit_counted(&counts->members), CALLERS * EACH);
    assert_true(kit_counted(&counts->groups) < CALLERS * EACH);
    /* One commit at open, then one a group. */
    assert_int_equal(kit_sql_int(kit->path, "SELECT commit_seq FROM hf_store"),
                     kit_counted(&counts->groups) + 1);
}

/* Submitted while the store's turn is held elsewhere, so all end in one group. */
struct sent {
    struct kit_batch b;
    _Atomic int calls;
    int rc;
    struct hf_err err;
    pthread_t by;
    _Atomic int *left;
};

static void note_done(void *user, struct hf_batch *batch, int rc,
                      const struct hf_err *err)
{
    struct sent *sent = user;
    assert_ptr_equal(batch, &sent->b.batch);
    sent->rc = rc;
    sent->err = *err;
    sent->by = pthread_self();
    (void)atomic_fetch_add(&sent->calls, 1);
    if (sent->left)
        (void)atomic_fetch_sub(sent->left, 1);
}

static void send(struct kit *kit, struct sent *sent)
{
    assert_int_equal(
        kit->sql->methods->submit(kit->sql, &sent->b.batch, note_done, sent, NULL), 0);
}

/* Runs all as one group, and waits until each was answered once. */
static void run_together(struct kit *kit, struct sent *sent, size_t count)
{
    _Atomic int left = (int)count;
    int held = kit_hold_turn(kit);
    for (size_t i = 0; i < count; i++) {
        sent[i].left = &left;
        send(kit, &sent[i]);
    }
    assert_int_equal(close(held), 0);
    while (atomic_load(&left) > 0)
        (void)sched_yield();
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(atomic_load(&sent[i].calls), 1);
        kit->sql->methods->forget(kit->sql, &sent[i].b.batch);
    }
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
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.groups), 1);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.replays), 1);
    free(sent);
}

/* Its first row stands, and SQLite counts no change. */
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

static void submitted_batches_are_answered_by_a_thread_of_the_driver(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(2);
    kit_put(&sent[0].b, 1, "ann", 1);
    kit_call(&sent[1].b, KIT_COUNT, 0, NULL, 1);
    sent[1].b.batch.read_only = true;
    run_together(kit, sent, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sent[i].rc, 0);
        assert_false(pthread_equal(sent[i].by, pthread_self()));
    }
    free(sent);
}

static void inline_mode_answers_before_it_returns(void **state)
{
    struct kit *kit = *state;
    kit_close(kit);
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    int before = thread_count();
    assert_int_equal(kit_try(kit, kit->path, &options, &kit->sql), 0);
    struct sent *sent = new_sent(1);
    kit_put(&sent->b, 1, "ann", 1);
    send(kit, sent);
    assert_int_equal(atomic_load(&sent->calls), 1);
    assert_int_equal(sent->rc, 0);
    assert_true(pthread_equal(sent->by, pthread_self()));
    assert_int_equal(thread_count(), before);
    free(sent);
}

struct chain {
    struct kit *kit;
    struct kit_batch b;
    int64_t next;
    _Atomic int left;
};

/* Each answer writes one row by a blocking call and submits the next. */
static void link_done(void *user, struct hf_batch *batch, int rc,
                      const struct hf_err *err)
{
    struct chain *chain = user;
    (void)batch;
    (void)err;
    assert_int_equal(rc, 0);
    assert_int_equal(kit_put_one(chain->kit->sql, chain->next++, "run", 1), 0);
    if (atomic_fetch_sub(&chain->left, 1) == 1)
        return;
    kit_begin(&chain->b);
    kit_put(&chain->b, chain->next++, "submit", 1);
    struct hf_sql *sql = chain->kit->sql;
    assert_int_equal(sql->methods->submit(sql, &chain->b.batch, link_done, chain, NULL),
                     0);
}

static void done_may_submit_and_run(void **state)
{
    struct kit *kit = *state;
    struct chain chain = { .kit = kit, .next = 1, .left = 50 };
    kit_begin(&chain.b);
    kit_put(&chain.b, chain.next++, "submit", 1);
    assert_int_equal(
        kit->sql->methods->submit(kit->sql, &chain.b.batch, link_done, &chain, NULL), 0);
    while (atomic_load(&chain.left) > 0)
        assert_int_not_equal(kit_put_one(kit->sql, 1, "x", 0), 0);
    kit_close(kit);
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 100);
}

static void close_answers_what_was_submitted(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(500);
    for (int i = 0; i < 500; i++) {
        kit_put(&sent[i].b, i, "ann", 1);
        send(kit, &sent[i]);
    }
    kit_close(kit);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(atomic_load(&sent[i].calls), 1);
        assert_int_equal(sent[i].rc, 0);
    }
    assert_int_equal(kit_sql_int(kit->path, "SELECT count(*) FROM item"), 500);
    free(sent);
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
    while (kit_counted(&lite->counts.checkpoints_in_turn) < 2)
        assert_int_equal(kit_put_one(kit->sql, id++, "ann", 1), 0);
    assert_true(atomic_load(&lite->checkpoint.wal_pages) > due);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    /* Nobody pins it now: the WAL starts over by itself. */
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
    crossing->rc = lite_open_with(crossing->kit->path, NULL, &crossing->kit->inner, &sql,
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
    const struct lite_counts *counts = &lite_of(kit->sql)->counts;
    int made = 0;
    for (int i = 0; kit_counted(&counts->late) == 0 && i < ROUNDS_MOST; i++) {
        struct caller caller = { .kit = kit, .number = made };
        assert_int_equal(pthread_create(&caller.thread, NULL, put_long, &caller), 0);
        int other = 100000000 + i;
        assert_int_equal(kit_put_one(kit->sql, other, "late", 1), 0);
        assert_int_equal(pthread_join(caller.thread, NULL), 0);
        assert_int_equal(caller.acknowledged, LONG_ROWS);
        made += LONG_ROWS;
        assert_int_equal(kit_rows(kit->sql), made + i + 1);
    }
    assert_true(kit_counted(&counts->late) > 0);
    assert_true(kit_counted(&counts->groups) < kit_counted(&counts->members));
}

/* ---- patience ------------------------------------------------------------------------ */

struct crowd {
    struct kit *kit;
    _Atomic bool over;
    int made;
    pthread_t thread;
};

static void *commit_on(void *arg)
{
    struct crowd *crowd = arg;
    while (!atomic_load(&crowd->over))
        crowd->made += kit_put_one(crowd->kit->sql, 1000000 + crowd->made, "crowd", 1) ==
                       0;
    return NULL;
}

static int put_patiently(struct kit *kit, int64_t id)
{
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, id, "patient", 1);
    b.batch.patient = true;
    int rc = kit_run(kit->sql, &b, NULL);
    kit->sql->methods->forget(kit->sql, &b.batch);
    return rc;
}

static void a_patient_batch_goes_with_others(void **state)
{
    struct kit *kit = *state;
    const struct lite_counts *counts = &lite_of(kit->sql)->counts;
    struct crowd crowd = { .kit = kit };
    assert_int_equal(pthread_create(&crowd.thread, NULL, commit_on, &crowd), 0);
    int made = 0;
    while (kit_counted(&counts->carried) < 20 && made < ROUNDS_MOST)
        assert_int_equal(put_patiently(kit, ++made), 0);
    atomic_store(&crowd.over, true);
    assert_int_equal(pthread_join(crowd.thread, NULL), 0);
    assert_true(kit_counted(&counts->carried) >= 20);
    assert_int_equal(kit_counted(&counts->members), made + crowd.made);
    assert_true(kit_counted(&counts->groups) <= made + crowd.made - 20);
    assert_int_equal(kit_rows(kit->sql), made + crowd.made);
}

/* Nobody comes: after one that waited in vain, and alone from the first. */
static void a_patient_batch_that_nobody_comes_for_goes_alone(void **state)
{
    struct kit *kit = *state;
    const struct lite_counts *counts = &lite_of(kit->sql)->counts;
    for (int i = 0; i < 100; i++)
        assert_int_equal(put_patiently(kit, i), 0);
    assert_int_equal(kit_put_one(kit->sql, 1000, "other", 1), 0);
    assert_int_equal(put_patiently(kit, 1001), 0);
    assert_int_equal(put_patiently(kit, 1002), 0);
    assert_int_equal(kit_counted(&counts->carried), 0);
    assert_int_equal(kit_counted(&counts->groups), 103);
}

static void *put_one_patiently(void *arg)
{
    struct caller *caller = arg;
    caller->acknowledged = put_patiently(caller->kit, caller->number) == 0;
    return NULL;
}

/* Until somebody leads, and with `patient` until somebody is patient too. */
static void await_group(struct kit *kit, bool patient)
{
    struct lite_group *group = &lite_of(kit->sql)->group;
    for (bool there = false; !there; (void)sched_yield()) {
        assert_int_equal(pthread_mutex_lock(&group->lock), 0);
        there = group->leading && (group->patient || !patient);
        assert_int_equal(pthread_mutex_unlock(&group->lock), 0);
    }
}

/* As many wait as a group holds, and still there is a place in the first one. */
static void a_full_queue_does_not_leave_a_patient_batch_behind(void **state)
{
    struct kit *kit = *state;
    struct sent *sent = new_sent(LITE_GROUP_MAX);
    struct caller caller = { .kit = kit, .number = 1000 };
    _Atomic int left = LITE_GROUP_MAX;
    int held = kit_hold_turn(kit);
    for (int i = 0; i < LITE_GROUP_MAX; i++) {
        kit_put(&sent[i].b, i, "sent", 1);
        sent[i].left = &left;
        send(kit, &sent[i]);
    }
    await_group(kit, false); /* while somebody leads, nobody waits in vain */
    assert_int_equal(pthread_create(&caller.thread, NULL, put_one_patiently, &caller), 0);
    await_group(kit, true);
    assert_int_equal(close(held), 0);
    assert_int_equal(pthread_join(caller.thread, NULL), 0);
    while (atomic_load(&left) > 0)
        (void)sched_yield();
    assert_true(caller.acknowledged);
    assert_int_equal(kit_counted(&lite_of(kit->sql)->counts.carried), 1);
    assert_int_equal(kit_rows(kit->sql), LITE_GROUP_MAX + 1);
    for (size_t i = 0; i < LITE_GROUP_MAX; i++)
        kit->sql->methods->forget(kit->sql, &sent[i].b.batch);
    free(sent);
}

/* A patient one that is refused harms nobody, and the other way round. */
static void a_patient_batch_is_refused_alone(void **state)
{
    struct kit *kit = *state;
    const struct lite_counts *counts = &lite_of(kit->sql)->counts;
    struct crowd crowd = { .kit = kit };
    assert_int_equal(put_patiently(kit, 1), 0);
    assert_int_equal(pthread_create(&crowd.thread, NULL, commit_on, &crowd), 0);
    for (int i = 0; kit_counted(&counts->carried) < 20 && i < ROUNDS_MOST; i++)
        assert_int_equal(put_patiently(kit, 1), HF_ECONFLICT);
    atomic_store(&crowd.over, true);
    assert_int_equal(pthread_join(crowd.thread, NULL), 0);
    assert_true(crowd.made > 0);
    assert_int_equal(kit_rows(kit->sql), 1 + crowd.made);
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
        CASE(submitted_batches_are_answered_by_a_thread_of_the_driver),
        CASE(inline_mode_answers_before_it_returns),
        CASE(done_may_submit_and_run),
        CASE(close_answers_what_was_submitted),
        CASE(a_wait_for_the_turn_is_bounded),
        CASE(a_foreign_writer_is_waited_for_and_then_busy),
        CASE(a_reader_that_pins_the_wal_stops_no_commit),
        CASE(short_lived_handles_keep_the_wal_short),
        CASE(who_comes_before_the_commit_goes_with_it),
        CASE(a_patient_batch_goes_with_others),
        CASE(a_patient_batch_that_nobody_comes_for_goes_alone),
        CASE(a_full_queue_does_not_leave_a_patient_batch_behind),
        CASE(a_patient_batch_is_refused_alone),
        CASE(locks_in_key_order),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
