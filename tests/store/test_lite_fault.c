/* Failing disks and full ones: what was acknowledged is there, what was refused is not, and
 * what cannot be known is called so. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lite_kit.h"
#include "lite_vfs.h"
#include "support/fail_alloc.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PLAIN(name) cmocka_unit_test_setup_teardown(name, kit_setup_closed, kit_teardown)

struct faulty {
    struct kit kit; /* first */
    struct fault fault;
};

static int setup(void **state)
{
    struct faulty *faulty = malloc(sizeof(*faulty));
    assert_non_null(faulty);
    kit_make(&faulty->kit);
    assert_int_equal(fault_register(&faulty->fault, "faulty", SQLITE_OPEN_WAL),
                     SQLITE_OK);
    faulty->kit.under.vfs = "faulty";
    kit_open(&faulty->kit);
    assert_int_equal(kit_put_one(faulty->kit.sql, 0, "before", 1), 0);
    *state = faulty;
    return 0;
}

static int teardown(void **state)
{
    struct faulty *faulty = *state;
    kit_drop(&faulty->kit);
    assert_int_equal(sqlite3_vfs_unregister(&faulty->fault.vfs), SQLITE_OK);
    free(faulty);
    return 0;
}

/* The store works, and holds `rows`: now, and after a reopen. */
static void check_rows(struct faulty *faulty, int64_t rows)
{
    struct kit *kit = &faulty->kit;
    assert_int_equal(kit_rows(kit->sql), rows);
    assert_int_equal(kit_put_one(kit->sql, 1000, "after", 1), 0);
    kit_close(kit);
    kit_open(kit);
    assert_int_equal(kit_rows(kit->sql), rows + 1);
}

static void a_commit_whose_sync_failed_once_is_known_not_to_be(void **state)
{
    struct faulty *faulty = *state;
    fault_set(&faulty->fault, FAULT_SYNC, SQLITE_IOERR_FSYNC, 1);
    assert_int_equal(kit_put_one(faulty->kit.sql, 1, "ann", 1), HF_ESTOREIO);
    assert_int_equal(atomic_load(&faulty->fault.failed), 1);
    check_rows(faulty, 1);
    assert_int_equal(kit_put_one(faulty->kit.sql, 1, "ann", 1), 0);
}

static void a_commit_that_cannot_be_looked_at_is_uncertain(void **state)
{
    struct faulty *faulty = *state;
    fault_set(&faulty->fault, FAULT_SYNC, SQLITE_IOERR_FSYNC, -1);
    struct hf_err err = { 0 };
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, 1, "ann", 1);
    assert_int_equal(kit_run(faulty->kit.sql, &b, &err), HF_EUNCERTAIN);
    assert_int_equal(err.code, HF_EUNCERTAIN);
    /* Reads go on, and see only what was certain. */
    assert_int_equal(kit_rows(faulty->kit.sql), 1);
    fault_heal(&faulty->fault);
    check_rows(faulty, 1);
}

static void a_full_disk_is_certain_even_if_nothing_can_be_written(void **state)
{
    struct faulty *faulty = *state;
    fault_set(&faulty->fault, FAULT_WRITE, SQLITE_FULL, 1);
    assert_int_equal(kit_put_one(faulty->kit.sql, 1, "ann", 1), HF_EFULL);
    fault_set(&faulty->fault, FAULT_WRITE, SQLITE_FULL, -1);
    assert_int_equal(kit_put_one(faulty->kit.sql, 1, "ann", 1), HF_EFULL);
    assert_int_equal(kit_put_one(faulty->kit.sql, 2, "ann", 1), HF_EFULL);
    fault_heal(&faulty->fault);
    check_rows(faulty, 1);
}

/* It is there, or it failed, and nothing between. Returns whether it is there. */
static bool put_is_certain(struct faulty *faulty, int key, int64_t rows)
{
    int rc = kit_put_one(faulty->kit.sql, key, "ann", 1);
    fault_heal(&faulty->fault);
    assert_true(rc == 0 || rc == HF_ESTOREIO);
    assert_int_equal(kit_rows(faulty->kit.sql), rows + (rc == 0));
    return rc == 0;
}

static void every_write_of_a_commit_can_fail(void **state)
{
    struct faulty *faulty = *state;
    int refused = 0;
    for (int after = 0; after < 8; after++) {
        fault_set(&faulty->fault, FAULT_WRITE, SQLITE_IOERR_WRITE, 1);
        atomic_store(&faulty->fault.after[FAULT_WRITE], after);
        int64_t rows = kit_rows(faulty->kit.sql);
        refused += put_is_certain(faulty, 10 + after, rows) ? 0 : 1;
    }
    assert_true(refused >=
                4); /* a frame is two writes, and a commit has two frames or more */
}

/* A commit of many pages has many writes, each of which can fail. */
static void every_write_of_a_large_commit_can_fail(void **state)
{
    struct faulty *faulty = *state;
    char *text = malloc(40001);
    assert_non_null(text);
    memset(text, 'x', 40000);
    text[40000] = 0;
    int refused = 0;
    for (int after = 0; after < 8; after++) {
        struct kit_batch b;
        kit_begin(&b);
        for (int i = 0; i < 6; i++)
            kit_put(&b, 100 * (after + 1) + i, text, 1);
        fault_set(&faulty->fault, FAULT_WRITE, SQLITE_IOERR_WRITE, 1);
        atomic_store(&faulty->fault.after[FAULT_WRITE], after);
        int64_t rows = kit_rows(faulty->kit.sql);
        int rc = kit_run(faulty->kit.sql, &b, NULL);
        faulty->kit.sql->methods->forget(faulty->kit.sql, &b.batch);
        fault_heal(&faulty->fault);
        assert_true(rc == 0 || rc == HF_ESTOREIO);
        assert_int_equal(kit_rows(faulty->kit.sql), rc == 0 ? rows + 6 : rows);
        refused += rc != 0;
    }
    assert_true(refused >= 3);
    free(text);
}

/* A refusal that rested on what another member wrote falls with it. */
static void a_failed_commit_is_the_answer_of_the_whole_group(void **state)
{
    struct faulty *faulty = *state;
    struct kit *kit = &faulty->kit;
    struct sent *told = calloc(3, sizeof(*told));
    assert_non_null(told);
    int held = kit_hold_turn(kit);
    for (int i = 0; i < 3; i++) {
        kit_begin(&told[i].b);
        kit_put(&told[i].b, i == 2 ? 1 : i + 1, "ann",
                1); /* the third repeats the first */
        kit_send(kit, &told[i], (size_t)i);
    }
    fault_set(&faulty->fault, FAULT_SYNC, SQLITE_IOERR_FSYNC, 1);
    assert_int_equal(close(held), 0);
    for (int i = 0; i < 3; i++) {
        kit_sent_end(kit, &told[i]);
        assert_int_equal(told[i].rc, HF_ESTOREIO);
    }
    kit_close(kit);
    kit_open(kit);
    check_rows(faulty, 1);
    free(told);
}

static void damage_is_reported_as_damage(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(kit_put_one(kit->sql, i, "a longer owner to fill pages", 1), 0);
    kit_close(kit);
    kit_sql(kit->path, "PRAGMA wal_checkpoint(TRUNCATE)");
    struct stat at;
    assert_int_equal(stat(kit->path, &at), 0);
    FILE *file = fopen(kit->path, "r+");
    assert_non_null(file);
    char junk[4096];
    memset(junk, 0x5a, sizeof(junk));
    for (long page = at.st_size / 4096 - 8; page < at.st_size / 4096; page++) {
        assert_int_equal(fseek(file, page * 4096, SEEK_SET), 0);
        assert_int_equal(fwrite(junk, 1, sizeof(junk), file), sizeof(junk));
    }
    assert_int_equal(fclose(file), 0);
    kit_open(kit);
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    kit_call(&b, KIT_COUNT, 0, NULL, 1);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_ECORRUPT);
    kit->sql->methods->forget(kit->sql, &b.batch);
}

/* Puts rows of 8 KB until one is refused: returns its code and how many were told. */
static int fill(struct hf_sql *sql, int64_t from, int64_t *ret_told)
{
    char bytes[8192];
    memset(bytes, 'x', sizeof(bytes));
    for (int64_t id = from; id < from + 10000; id++) {
        struct kit_batch b;
        kit_begin(&b);
        struct hf_val body = { .type = HF_VAL_BYTES, .at = bytes, .len = sizeof(bytes) };
        kit_call(&b, KIT_BLOB, 2, (struct hf_val[]){ kit_i(id), body }, 1);
        int rc = kit_run(sql, &b, NULL);
        if (rc != 0) {
            *ret_told = id - from;
            return rc;
        }
    }
    *ret_told = 10000;
    return 0;
}

/* In a child: exit codes name the first thing that was wrong. */
static int fill_and_look(struct kit *kit)
{
    int64_t told = 0;
    struct hf_sql *sql = NULL;
    if (kit_try(kit, kit->path, NULL, &sql) != 0)
        return 1;
    if (fill(sql, 0, &told) != HF_EFULL || told == 0)
        return 2;
    if (kit_sql_int(kit->path, "SELECT count(*) FROM bytes") != told)
        return 3;
    int64_t more = 0;
    if (fill(sql, 100000, &more) != HF_EFULL) /* still full, still certain */
        return 4;
    sql->methods->close(sql);
    return kit_sql_int(kit->path, "SELECT count(*) FROM bytes") == told + more ? 0 : 5;
}

static int in_child(int (*run)(struct kit *), struct kit *kit)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run(kit));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int with_small_files(struct kit *kit)
{
    struct rlimit limit = { .rlim_cur = 300000, .rlim_max = 300000 };
    if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 10;
    return fill_and_look(kit);
}

static void a_limit_on_file_sizes_is_a_full_disk_and_loses_nothing(void **state)
{
    struct kit *kit = *state;
    assert_int_equal(in_child(with_small_files, kit), 0);
    kit_open(kit);
    assert_int_equal(kit_put_one(kit->sql, 1, "there is room again", 1), 0);
}

/* A file system of 1 MB in a mount namespace of the child's own. */
static int with_small_disk(struct kit *kit)
{
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", kit->folder, "tmpfs", 0, "size=1m") != 0)
        return 77;
    return fill_and_look(kit);
}

static void a_full_disk_loses_nothing(void **state)
{
    struct kit *kit = *state;
    int code = in_child(with_small_disk, kit);
    if (code == 77)
        print_message("# may not mount here: only the limit on file sizes was tried\n");
    else
        assert_int_equal(code, 0);
}

static int open_run_read(struct kit *kit, const struct hf_alloc *alloc)
{
    struct hf_sql_options options = { .size = sizeof(options),
                                      .alloc = alloc,
                                      .inline_mode = true };
    struct hf_sql *sql = NULL;
    int rc = kit_try(kit, kit->path, &options, &sql);
    if (rc != 0)
        return rc;
    struct kit_batch b;
    kit_begin(&b);
    b.batch.alloc = alloc;
    b.batch.read_only = true;
    kit_call(&b, KIT_OF, 1, (struct hf_val[]){ kit_t("ann") }, HF_ANY_COUNT);
    rc = kit_run(sql, &b, NULL);
    sql->methods->forget(sql, &b.batch);
    struct hf_span facts = { 0 };
    if (rc == 0)
        rc = sql->methods->facts(sql, &facts, NULL);
    if (rc == 0)
        alloc->free(alloc->user, (void *)(uintptr_t)facts.at);
    sql->methods->close(sql);
    return rc;
}

static void every_allocation_can_fail(void **state)
{
    struct kit *kit = *state;
    kit_open(kit);
    for (int i = 0; i < 50; i++)
        assert_int_equal(kit_put_one(kit->sql, i, "ann", 1), 0);
    kit_close(kit);
    struct fail_alloc fail;
    int rc = HF_ENOMEM;
    int64_t at = 0;
    while (rc != 0) {
        fail_alloc_init(&fail, ++at);
        rc = open_run_read(kit, &fail.alloc);
        assert_true(rc == 0 || rc == HF_ENOMEM);
        assert_int_equal(fail.live, 0);
        assert_true(at < 1000);
    }
    assert_true(at > 10);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_commit_whose_sync_failed_once_is_known_not_to_be),
        CASE(a_commit_that_cannot_be_looked_at_is_uncertain),
        CASE(a_full_disk_is_certain_even_if_nothing_can_be_written),
        CASE(every_write_of_a_commit_can_fail),
        CASE(every_write_of_a_large_commit_can_fail),
        CASE(a_failed_commit_is_the_answer_of_the_whole_group),
        PLAIN(damage_is_reported_as_damage),
        PLAIN(a_limit_on_file_sizes_is_a_full_disk_and_loses_nothing),
        PLAIN(a_full_disk_loses_nothing),
        PLAIN(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
