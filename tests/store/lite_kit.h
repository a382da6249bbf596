/* What the driver's tests share: a small schema of their own next to the driver's
 * statements, a scratch folder, and short ways to run one statement. */
#ifndef TESTS_STORE_LITE_KIT_H
#define TESTS_STORE_LITE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first. */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/lite/lite.h"
#include "db/lite/open.h"

enum {
    KIT_PUT,     /* $1 id, $2 owner, $3 n: the parameters are out of order on purpose */
    KIT_ADD,     /* $1 id, $2 by: n += by */
    KIT_ADD_IF,  /* the same, where n = $3 */
    KIT_GET,     /* $1 id -> owner, n */
    KIT_COUNT,   /* -> rows, sum of n */
    KIT_OF,      /* $1 owner -> id, n, in order */
    KIT_CLOCKS,  /* -> hf_now, hf_lease_now, hf_incarnation */
    KIT_EXPECT,  /* $1 n, $2 m: hf_expect of them */
    KIT_BLOB,    /* $1 id, $2 bytes */
    KIT_CHILD,   /* $1 id, $2 parent: a foreign key that waits for COMMIT */
    KIT_ENDS_TX, /* ends the transaction that runs it */
    KIT_REAL,    /* a real number, which no statement may return */
    KIT_PUTS,    /* $1 owner; a1 id, a2 n: all sets in one go */
    KIT_LAST_ID, /* -> the largest id */
    KIT_STATEMENTS
};

static const struct hf_sql_text kit_texts[KIT_STATEMENTS] = {
    [KIT_PUT] = { "put", "INSERT INTO item (n, owner, id) VALUES ($3, $2, $1)", 3, -1 },
    [KIT_ADD] = { "add", "UPDATE item SET n = n + $2 WHERE id = $1", 2, -1 },
    [KIT_ADD_IF] = { "add_if", "UPDATE item SET n = n + $2 WHERE id = $1 AND n = $3", 3,
                     -1 },
    [KIT_GET] = { "get", "SELECT owner, n FROM item WHERE id = $1", 1, -1 },
    [KIT_COUNT] = { "count", "SELECT count(*), coalesce(sum(n), 0) FROM item", 0, -1 },
    [KIT_OF] = { "of", "SELECT id, n FROM item WHERE owner = $1 ORDER BY id", 1, -1 },
    [KIT_CLOCKS] = { "clocks", "SELECT hf_now(), hf_lease_now(), hf_incarnation()", 0,
                     -1 },
    [KIT_EXPECT] = { "expect", "SELECT hf_expect($1, $2)", 2, -1 },
    [KIT_BLOB] = { "blob", "INSERT INTO bytes (id, body) VALUES ($1, $2)", 2, -1 },
    [KIT_CHILD] = { "child", "INSERT INTO child (id, parent) VALUES ($1, $2)", 2, -1 },
    [KIT_ENDS_TX] = { "ends_tx", "INSERT INTO bomb (id) VALUES ($1)", 1, -1 },
    [KIT_REAL] = { "real", "SELECT 0.5", 0, -1 },
    [KIT_PUTS] = { "puts",
                   "INSERT OR ROLLBACK INTO item (id, owner, n)"
                   " SELECT a.a1, $1, a.a2 FROM hf_args a",
                   1, -1 },
    [KIT_LAST_ID] = { "last_id", "SELECT coalesce(max(id), 0) FROM item", 0, -1 },
};

#define KIT_SCHEMA                                                                       \
    "CREATE TABLE hf_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL,"           \
    " applied_at INTEGER NOT NULL, checksum TEXT NOT NULL) STRICT;"                      \
    "CREATE TABLE hf_store (id INTEGER PRIMARY KEY CHECK (id = 1),"                      \
    " store_id TEXT NOT NULL, incarnation INTEGER NOT NULL, commit_seq INTEGER NOT "     \
    "NULL,"                                                                              \
    " boot_id TEXT NOT NULL, time_ns TEXT NOT NULL, lease_offset_ms INTEGER NOT NULL,"   \
    " lease_high_water INTEGER NOT NULL, created_at INTEGER NOT NULL) STRICT;"           \
    "CREATE TABLE hf_store_log (log_id INTEGER PRIMARY KEY, at INTEGER NOT NULL,"        \
    " what TEXT NOT NULL, detail TEXT) STRICT;"                                          \
    "CREATE TABLE item (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, n INTEGER NOT "     \
    "NULL,"                                                                              \
    " CHECK (n < 1000000)) STRICT;"                                                      \
    "CREATE TABLE bytes (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;"            \
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL"                \
    " REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED) STRICT;"                       \
    "CREATE TABLE bomb (id INTEGER PRIMARY KEY) STRICT;"                                 \
    "CREATE TRIGGER bomb_goes BEFORE INSERT ON bomb BEGIN"                               \
    " SELECT RAISE(ROLLBACK, 'boom'); END;"                                              \
    "CREATE TRIGGER item_guard BEFORE UPDATE ON item WHEN NEW.n < 0 BEGIN"               \
    " SELECT RAISE(ABORT, 'holdfast: n must not be negative'); END;"

static const struct hf_migration kit_migrations[] = {
    { 1, "first", KIT_SCHEMA, NULL },
    { 2, "second", "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;", NULL },
    { 3, "third", "CREATE TABLE broken (id INTEGER; ", NULL },
    { 4, "fourth", "CREATE TABLE never (id INTEGER PRIMARY KEY) STRICT;", NULL },
};

struct kit {
    char folder[64];
    char path[128];
    struct db_schema tables;
    struct lite_under under;
    struct hf_sql *sql; /* NULL until kit_open */
    struct hf_err err;
};

static inline void kit_name(char *out, size_t room, const char *folder, const char *name)
{
    int n = snprintf(out, room, "%s/%s", folder, name);
    assert_true(n > 0 && (size_t)n < room);
}

/* Memory file systems sync for nothing, so tests are quick there; what a test says about
 * durability is said by what another connection sees. */
static inline void kit_make(struct kit *kit)
{
    *kit = (struct kit){ 0 };
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    kit_name(kit->folder, sizeof(kit->folder), base, "hf-lite-XXXXXX");
    assert_non_null(mkdtemp(kit->folder));
    kit_name(kit->path, sizeof(kit->path), kit->folder, "test.db");
    kit->tables = (struct db_schema){ .lite = kit_texts,
                                      .statement_count = KIT_STATEMENTS,
                                      .migrations = kit_migrations,
                                      .migration_count = 2,
                                      .last_id = KIT_LAST_ID };
    kit->under = (struct lite_under){ .schema = &kit->tables };
}

static inline int kit_try(struct kit *kit, const char *path,
                          const struct hf_sql_options *options, struct hf_sql **ret_sql)
{
    memset(&kit->err, 0, sizeof(kit->err));
    return lite_open(path, options, &kit->under, ret_sql, &kit->err);
}

static inline void kit_open(struct kit *kit)
{
    int rc = kit_try(kit, kit->path, NULL, &kit->sql);
    if (rc != 0)
        fail_msg("open: %d %s", rc, kit->err.message);
}

static inline void kit_close(struct kit *kit)
{
    if (kit->sql)
        kit->sql->methods->close(kit->sql);
    kit->sql = NULL;
}

static inline void kit_drop(struct kit *kit)
{
    kit_close(kit);
    DIR *dir = opendir(kit->folder);
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at; at = readdir(dir)) {
        char path[400];
        kit_name(path, sizeof(path), kit->folder, at->d_name);
        if (at->d_name[0] != '.')
            (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(kit->folder);
}

static inline struct hf_val kit_i(int64_t value)
{
    return (struct hf_val){ .type = HF_VAL_I64, .i = value };
}

static inline struct hf_val kit_t(const char *text)
{
    return (struct hf_val){ .type = HF_VAL_TEXT, .at = text, .len = strlen(text) };
}

/* One batch of a few calls. */
struct kit_batch {
    struct hf_batch batch;
    struct hf_call calls[8];
    struct hf_val args[8][5];
};

static inline void kit_begin(struct kit_batch *b)
{
    *b = (struct kit_batch){ 0 };
    b->batch.alloc = hf_alloc_system();
    b->batch.calls = b->calls;
}

static inline struct hf_call *kit_call(struct kit_batch *b, int statement, uint32_t width,
                                       const struct hf_val *args, int64_t expect)
{
    size_t i = b->batch.call_count++;
    assert_true(i < 8 && width <= 4);
    if (width > 0)
        memcpy(b->args[i], args, width * sizeof(*args));
    b->calls[i] = (struct hf_call){ .statement = statement,
                                    .width = width,
                                    .rows = 1,
                                    .args = b->args[i],
                                    .expect = expect };
    return &b->calls[i];
}

static inline void kit_put(struct kit_batch *b, int64_t id, const char *owner, int64_t n)
{
    kit_call(b, KIT_PUT, 3, (struct hf_val[]){ kit_i(id), kit_t(owner), kit_i(n) }, 1);
}

static inline void kit_add(struct kit_batch *b, int64_t id, int64_t by)
{
    kit_call(b, KIT_ADD, 2, (struct hf_val[]){ kit_i(id), kit_i(by) }, 1);
}

/* One row of `owner` a set: first ids, then what they count. At most two, in the batch's room. */
static inline struct hf_call *kit_puts(struct kit_batch *b, const char *owner,
                                       const struct hf_val *sets, uint32_t rows)
{
    assert_true(rows <= 2);
    struct hf_call *call = kit_call(b, KIT_PUTS, 0, NULL, HF_ANY_COUNT);
    struct hf_val *args = b->args[call - b->calls];
    args[0] = kit_t(owner);
    memcpy(args + 1, sets, rows * 2 * sizeof(*sets));
    call->once = 1;
    call->width = 2;
    call->rows = rows;
    return call;
}

static inline int kit_run(struct hf_sql *sql, struct kit_batch *b, struct hf_err *err)
{
    return sql->methods->run(sql, &b->batch, err);
}

/* Puts one row, as a transaction. */
static inline int kit_put_one(struct hf_sql *sql, int64_t id, const char *owner,
                              int64_t n)
{
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, id, owner, n);
    int rc = kit_run(sql, &b, NULL);
    sql->methods->forget(sql, &b.batch);
    return rc;
}

static inline void kit_count(struct hf_sql *sql, int64_t *ret_rows, int64_t *ret_sum)
{
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    struct hf_call *call = kit_call(&b, KIT_COUNT, 0, NULL, 1);
    struct hf_err err = { 0 };
    int rc = kit_run(sql, &b, &err);
    if (rc != 0)
        fail_msg("count: %d %s", rc, err.message);
    *ret_rows = call->out[0].i;
    if (ret_sum)
        *ret_sum = call->out[1].i;
    sql->methods->forget(sql, &b.batch);
}

static inline int64_t kit_rows(struct hf_sql *sql)
{
    int64_t rows;
    kit_count(sql, &rows, NULL);
    return rows;
}

/* A look past the driver: one integer by plain SQL. */
static inline int64_t kit_sql_int(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t value = INT64_MIN;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        value = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

static inline void kit_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Holds the store's turn as another process would, until the descriptor is closed. */
static inline int kit_hold_turn(const struct kit *kit)
{
    char path[140];
    int n = snprintf(path, sizeof(path), "%s-hf", kit->path);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LITE_WRITE_BYTE, .l_len = 1
    };
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static inline int64_t kit_counted(const _Atomic int64_t *count)
{
    return atomic_load(count);
}

/* For groups of cases: *state is a kit, with the store open. */
static inline int kit_setup_closed(void **state)
{
    struct kit *kit = malloc(sizeof(*kit));
    assert_non_null(kit);
    kit_make(kit);
    *state = kit;
    return 0;
}

static inline int kit_setup(void **state)
{
    kit_setup_closed(state);
    kit_open(*state);
    return 0;
}

static inline int kit_teardown(void **state)
{
    kit_drop(*state);
    free(*state);
    return 0;
}

/* A batch that a thread of its own runs. */
struct sent {
    struct kit_batch b;
    struct hf_sql *sql;
    int rc;
    struct hf_err err;
    pthread_t thread;
};

static inline void *kit_run_sent(void *arg)
{
    struct sent *sent = arg;
    sent->rc = sent->sql->methods->run(sent->sql, &sent->b.batch, &sent->err);
    return NULL;
}

/* Starts it, and waits until the group has it and the `before` that came before it. */
static inline void kit_send(struct kit *kit, struct sent *sent, size_t before)
{
    struct db_group *group = &lite_of(kit->sql)->group;
    sent->sql = kit->sql;
    assert_int_equal(pthread_create(&sent->thread, NULL, kit_run_sent, sent), 0);
    for (size_t there = 0; there <= before; (void)sched_yield()) {
        assert_int_equal(pthread_mutex_lock(&group->lock), 0);
        there = group->queued + group->leaders; /* a leader has taken its own batch */
        assert_int_equal(pthread_mutex_unlock(&group->lock), 0);
    }
}

static inline void kit_sent_end(struct kit *kit, struct sent *sent)
{
    assert_int_equal(pthread_join(sent->thread, NULL), 0);
    kit->sql->methods->forget(kit->sql, &sent->b.batch);
}

#endif
