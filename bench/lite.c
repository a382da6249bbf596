/* The SQLite driver next to SQLite itself: what the driver adds to one commit, and what
 * group commit returns. Ratios within one run are the result; the disk decides the rest.
 *
 *     bench/lite FOLDER [SECONDS]
 *
 * Each row is one small insert, fully synced on both sides. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "db/lite/open.h"

#define SCHEMA                                                                           \
    "CREATE TABLE hf_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL,"           \
    " applied_at INTEGER NOT NULL, checksum TEXT NOT NULL) STRICT;"                      \
    "CREATE TABLE hf_store (id INTEGER PRIMARY KEY CHECK (id = 1),"                      \
    " store_id TEXT NOT NULL, incarnation INTEGER NOT NULL, commit_seq INTEGER NOT "     \
    "NULL,"                                                                              \
    " boot_id TEXT NOT NULL, time_ns TEXT NOT NULL, lease_offset_ms INTEGER NOT NULL,"   \
    " lease_high_water INTEGER NOT NULL, created_at INTEGER NOT NULL) STRICT;" ITEM

#define ITEM                                                                             \
    "CREATE TABLE item (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, n INTEGER NOT "     \
    "NULL)"                                                                              \
    " STRICT;"

/* Commits before the clock starts: until the WAL has grown to its size and is rewritten in
 * place, which syncs about twice as fast. */
#define WARM_UP 2500

#define INSERT "INSERT INTO item (owner, n) VALUES ($1, $2)"

struct bench {
    char path[256];
    double seconds;
    struct hf_sql *sql;
    _Atomic bool stop;
    _Atomic int64_t rows;
    int batch;
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void must(int ok, const char *what)
{
    if (!ok)
        die(what);
}

static void clean(struct bench *bench)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char path[300];
        (void)snprintf(path, sizeof(path), "%s%s", bench->path, ends[i]);
        (void)unlink(path);
    }
}

/* Rows a second of plain SQLite with `batch` rows a transaction. */
static double raw(struct bench *bench, int batch)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    clean(bench);
    must(sqlite3_open(bench->path, &db) == SQLITE_OK, "open");
    must(sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" ITEM,
                      NULL, NULL, NULL) == SQLITE_OK,
         "schema");
    must(sqlite3_prepare_v2(db, INSERT, -1, &st, NULL) == SQLITE_OK, "prepare");
    double start = now_s();
    int64_t rows = 0;
    int64_t warm = WARM_UP / batch;
    for (int64_t done = 0; done <= warm || now_s() - start < bench->seconds; done++) {
        if (done == warm) {
            start = now_s();
            rows = 0;
        }
        must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "begin");
        for (int i = 0; i < batch; i++, rows++) {
            (void)sqlite3_bind_text(st, 1, "owner", 5, SQLITE_STATIC);
            (void)sqlite3_bind_int64(st, 2, rows);
            must(sqlite3_step(st) == SQLITE_DONE, "step");
            (void)sqlite3_reset(st);
        }
        must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK, "commit");
    }
    double rate = (double)rows / (now_s() - start);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return rate;
}

static void put_one(struct bench *bench, int64_t n)
{
    const struct hf_val args[2] = { { .type = HF_VAL_TEXT, .at = "owner", .len = 5 },
                                    { .type = HF_VAL_I64, .i = n } };
    struct hf_call call = { .width = 2, .rows = 1, .args = args, .expect = 1 };
    struct hf_batch batch = { .alloc = hf_alloc_system(),
                              .calls = &call,
                              .call_count = 1 };
    must(bench->sql->methods->run(bench->sql, &batch, NULL) == 0, "run");
}

static void put_loop(struct bench *bench)
{
    int64_t rows = 0;
    while (!atomic_load_explicit(&bench->stop, memory_order_relaxed))
        put_one(bench, rows++);
    (void)atomic_fetch_add(&bench->rows, rows);
}

static void *caller_main(void *arg)
{
    put_loop(arg);
    return NULL;
}

static void open_store(struct bench *bench)
{
    static const struct hf_migration first = { 1, "bench", SCHEMA, NULL };
    static const struct hf_sql_text put = { "put", INSERT, 2, -1 };
    static const struct db_schema schema = {
        .lite = &put, .statement_count = 1, .migrations = &first, .migration_count = 1
    };
    struct lite_under under = { .schema = &schema };
    struct hf_err err = { 0 };
    must(lite_open(bench->path, NULL, &under, &bench->sql, &err) == 0, err.message);
}

static double through_driver(struct bench *bench, int callers)
{
    pthread_t threads[256];
    clean(bench);
    open_store(bench);
    for (int64_t i = 0; callers == 1 && i < WARM_UP; i++)
        put_one(bench, i);
    atomic_store(&bench->stop, false);
    atomic_store(&bench->rows, 0);
    double start = now_s();
    for (int i = 0; i < callers; i++)
        must(pthread_create(&threads[i], NULL, caller_main, bench) == 0, "thread");
    struct timespec span = {
        .tv_sec = (time_t)bench->seconds,
        .tv_nsec = (long)((bench->seconds - (double)(time_t)bench->seconds) * 1e9)
    };
    (void)nanosleep(&span, NULL);
    atomic_store(&bench->stop, true);
    for (int i = 0; i < callers; i++)
        (void)pthread_join(threads[i], NULL);
    double rate = (double)atomic_load(&bench->rows) / (now_s() - start);
    struct hf_span facts;
    if (getenv("BENCH_FACTS") &&
        bench->sql->methods->facts(bench->sql, &facts, NULL) == 0) {
        (void)printf("%s\n", (const char *)facts.at);
        free((void *)(uintptr_t)facts.at);
    }
    bench->sql->methods->close(bench->sql);
    return rate;
}

#define PROCESSES 8

/* Rows a second of processes that take turns, and the least busy one's share of them. */
static double processes(struct bench *bench, double *ret_least)
{
    _Atomic int64_t *by = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES];
    must(by != MAP_FAILED, "mmap");
    clean(bench);
    open_store(bench);
    bench->sql->methods->close(bench->sql);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        must(children[i] >= 0, "fork");
        if (children[i] > 0)
            continue;
        open_store(bench);
        double start = now_s();
        while (now_s() - start < bench->seconds) {
            put_one(bench, by[i]);
            (void)atomic_fetch_add(&by[i], 1);
        }
        bench->sql->methods->close(bench->sql);
        _exit(0);
    }
    int64_t all = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < PROCESSES; i++) {
        (void)waitpid(children[i], NULL, 0);
        all += by[i];
        least = by[i] < least ? by[i] : least;
    }
    *ret_least = (double)least / (double)all;
    (void)munmap((void *)(uintptr_t)by, 4096);
    return (double)all / bench->seconds;
}

static double middle(const double of[3])
{
    double low = of[0] < of[1] ? of[0] : of[1];
    double high = of[0] < of[1] ? of[1] : of[0];
    return of[2] < low ? low : of[2] > high ? high : of[2];
}

int main(int argc, char **argv)
{
    struct bench bench = { .seconds = argc > 2 ? strtod(argv[2], NULL) : 3.0 };
    const char *folder = argc > 1 ? argv[1] : ".";
    int n = snprintf(bench.path, sizeof(bench.path), "%s/bench_lite.db", folder);
    must(n > 0 && (size_t)n < sizeof(bench.path), "the folder's name is too long");

    /* In turns, since the disk's speed may change from second to second. */
    double raws[3];
    double ones[3];
    for (int i = 0; i < 3; i++) {
        raws[i] = raw(&bench, 1);
        ones[i] = through_driver(&bench, 1);
    }
    double raw1 = middle(raws);
    double one = middle(ones);
    (void)printf("raw, 1 row per transaction      %10.0f /s\n", raw1);
    (void)printf("driver, 1 caller                %10.0f /s  %3.0f %% of raw\n", one,
                 100 * one / raw1);
    double raw100 = raw(&bench, 100);
    (void)printf("raw, 100 rows per transaction   %10.0f /s\n", raw100);
    static const int callers[] = { 4, 16, 64 };
    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        double rate = through_driver(&bench, callers[i]);
        (void)printf("driver, %2d callers, 1 row each  %10.0f /s  %3.0f %% of raw 100\n",
                     callers[i], rate, 100 * rate / raw100);
    }
    double least;
    double rate = processes(&bench, &least);
    (void)printf(
        "driver, %2d processes, 1 caller   %10.0f /s  the least busy did %.1f %%\n",
        PROCESSES, rate, 100 * least);
    clean(&bench);
    return 0;
}
