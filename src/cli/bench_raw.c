/* The engine's own limit: what a hand-written queue on SQLite reaches here and now. Prepared
 * statements and one narrow row per job. A transaction inserts, claims or finishes one job, or
 * 100 by one statement. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench.h"

static const char schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, due INTEGER NOT "
    "NULL,"
    " owner TEXT, fence INTEGER NOT NULL DEFAULT 0, payload TEXT);"
    "CREATE INDEX job_ready ON job (due, id) WHERE state = 0;";
/* Of so many rows: in each text "$" is one of the comma-separated parts of `row`. */
static const char insert_sql[] = "INSERT INTO job (state, due, payload) VALUES $";
static const char insert_row[] = "(0, ?, ?)";
static const char claim_sql[] =
    "UPDATE job SET state = 1, owner = ?1, fence = fence + 1 WHERE id IN"
    " (SELECT id FROM job WHERE state = 0 ORDER BY due, id LIMIT ?2) RETURNING id, fence";
static const char finish_sql[] =
    "UPDATE job SET state = 2, owner = NULL FROM (VALUES $) AS held"
    " WHERE job.id = held.column1 AND job.fence = held.column2 AND job.state = 1";
static const char finish_row[] = "(?, ?)";

struct raw {
    sqlite3 *db;
    sqlite3_stmt *insert, *claim, *finish, *begin, *commit;
    sqlite3_int64 ids[128], fences[128];
    int claimed;
};

double bench_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int raw_fail(struct bench *bench, struct raw *raw)
{
    return hf_fail(bench->err, HF_EINTERNAL, NULL, "the raw program failed: %s",
                   raw->db ? sqlite3_errmsg(raw->db) : "no memory");
}

static bool prepare(struct raw *raw, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v3(raw->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) ==
           SQLITE_OK;
}

static bool prepare_rows(struct raw *raw, const char *sql, const char *row, size_t rows,
                         sqlite3_stmt **ret)
{
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 8192);
    const char *mark = strchr(sql, '$');
    hf_buf_bytes(&text, sql, (size_t)(mark - sql));
    for (size_t i = 0; i < rows; i++) {
        hf_buf_text(&text, i > 0 ? "," : "");
        hf_buf_text(&text, row);
    }
    hf_buf_text(&text, mark + 1);
    bool good = hf_buf_state(&text) == 0 && prepare(raw, hf_buf_str(&text), ret);
    hf_buf_fini(&text);
    return good;
}

static int raw_open(struct bench *bench, size_t batch, struct raw *raw)
{
    char path[320];
    bench_path(bench, "raw.db", path);
    (void)unlink(path);
    *raw = (struct raw){ 0 };
    if (sqlite3_open(path, &raw->db) != SQLITE_OK ||
        sqlite3_exec(raw->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        !prepare_rows(raw, insert_sql, insert_row, batch, &raw->insert) ||
        !prepare(raw, claim_sql, &raw->claim) ||
        !prepare_rows(raw, finish_sql, finish_row, batch, &raw->finish) ||
        !prepare(raw, "BEGIN IMMEDIATE", &raw->begin) ||
        !prepare(raw, "COMMIT", &raw->commit))
        return raw_fail(bench, raw);
    return 0;
}

static void raw_close(struct bench *bench, struct raw *raw)
{
    char path[320];
    sqlite3_finalize(raw->insert);
    sqlite3_finalize(raw->claim);
    sqlite3_finalize(raw->finish);
    sqlite3_finalize(raw->begin);
    sqlite3_finalize(raw->commit);
    (void)sqlite3_close(raw->db);
    bench_path(bench, "raw.db", path);
    (void)unlink(path);
}

static bool step(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    return sqlite3_reset(stmt) == SQLITE_OK && rc == SQLITE_DONE;
}

static bool enqueue(struct raw *raw, size_t batch)
{
    bool good = step(raw->begin);
    for (int i = 0; good && i < (int)batch; i++)
        good = sqlite3_bind_int64(raw->insert, 2 * i + 1, 1000) == SQLITE_OK &&
               sqlite3_bind_text(raw->insert, 2 * i + 2, "{\"n\":1}", -1,
                                 SQLITE_STATIC) == SQLITE_OK;
    return good && step(raw->insert) && step(raw->commit);
}

static bool claim(struct raw *raw, size_t batch)
{
    raw->claimed = 0;
    bool good = step(raw->begin) &&
                sqlite3_bind_text(raw->claim, 1, "w1", -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_int64(raw->claim, 2, (sqlite3_int64)batch) == SQLITE_OK;
    while (good && sqlite3_step(raw->claim) == SQLITE_ROW) {
        raw->ids[raw->claimed] = sqlite3_column_int64(raw->claim, 0);
        raw->fences[raw->claimed++] = sqlite3_column_int64(raw->claim, 1);
    }
    return good && sqlite3_reset(raw->claim) == SQLITE_OK && step(raw->commit);
}

static bool finish(struct raw *raw)
{
    bool good = step(raw->begin);
    for (int i = 0; good && i < raw->claimed; i++)
        good = sqlite3_bind_int64(raw->finish, 2 * i + 1, raw->ids[i]) == SQLITE_OK &&
               sqlite3_bind_int64(raw->finish, 2 * i + 2, raw->fences[i]) == SQLITE_OK;
    return good && step(raw->finish) && sqlite3_changes(raw->db) == raw->claimed &&
           step(raw->commit);
}

int bench_raw(struct bench *bench, size_t batch, struct bench_raw *ret_raw)
{
    struct raw raw;
    size_t rounds = (batch == 1 ? bench->jobs / 5 : bench->jobs) / batch;
    double jobs = (double)(rounds * batch);
    int rc = raw_open(bench, batch, &raw);
    bool good = rc == 0;
    for (size_t i = 0; good && batch == 1 && i < BENCH_WARM_UP; i++)
        good = enqueue(&raw, 1);
    double start = bench_seconds();
    for (size_t i = 0; good && i < rounds; i++)
        good = enqueue(&raw, batch);
    double enqueued = bench_seconds();
    for (size_t i = 0; good && i < rounds; i++)
        good = claim(&raw, batch) && finish(&raw);
    double processed = bench_seconds();
    if (rc == 0 && !good)
        rc = raw_fail(bench, &raw);
    raw_close(bench, &raw);
    if (rc == 0)
        *ret_raw = (struct bench_raw){ jobs / (enqueued - start),
                                       jobs / (processed - enqueued),
                                       jobs / (processed - start) };
    return rc;
}

int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool write_and_sync(int fd)
{
    static const char block[4096];
    return pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block &&
           fdatasync(fd) == 0;
}

/* `pair`: two at a time, after a pause. In seconds each. */
static int time_syncs(struct bench *bench, size_t count, bool pair, double *took)
{
    char path[320];
    bench_path(bench, "sync", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_and_sync(fd); /* from then on in place */
    for (size_t i = 0; good && i < count; i++) {
        struct timespec pause = { 0, BENCH_IDLE_NS };
        if (pair)
            (void)nanosleep(&pause, NULL);
        double start = bench_seconds();
        good = write_and_sync(fd) && (!pair || write_and_sync(fd));
        took[i] = bench_seconds() - start;
    }
    if (fd >= 0)
        (void)close(fd);
    (void)unlink(path);
    return good ? 0
                : hf_fail(bench->err, HF_ESTOREIO, NULL,
                          "the scratch folder cannot be written");
}

int bench_fsync(struct bench *bench, double *ret_seconds)
{
    enum { ROUNDS = 201 };
    double took[ROUNDS];
    int rc = time_syncs(bench, ROUNDS, false, took);
    if (rc)
        return rc;
    qsort(took, ROUNDS, sizeof took[0], bench_by_value);
    *ret_seconds = took[ROUNDS / 2];
    return 0;
}

int bench_sync_pairs(struct bench *bench, size_t count, double *took)
{
    int rc = time_syncs(bench, count, true, took);
    for (size_t i = 0; rc == 0 && i < count; i++)
        took[i] *= 1e3;
    return rc;
}
