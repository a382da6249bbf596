/* The raw program on SQLite: what a queue reaches that is written by hand for this machine and
 * this work. One narrow row per job, full sync; a transaction inserts, claims or finishes a
 * batch by one prepared statement. */
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "bench.h"

static const char schema_sql[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL,"
    " due INTEGER NOT NULL, owner TEXT, fence INTEGER NOT NULL DEFAULT 0, payload TEXT);"
    "CREATE INDEX job_ready ON job (due, id) WHERE state = 0;";
/* "$" is replaced by as many rows as a statement has, each of the text below it. */
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
    sqlite3_stmt *insert, *claim, *finish;
    sqlite3_int64 ids[BENCH_BATCH], fences[BENCH_BATCH];
    int claimed;
};

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

/* A new table, and statements of `batch` rows. */
static bool raw_open(struct bench *bench, size_t batch, struct raw *raw)
{
    *raw = (struct raw){ 0 };
    (void)unlink(bench->url[BENCH_RAW]); /* it need not exist */
    return sqlite3_open(bench->url[BENCH_RAW], &raw->db) == SQLITE_OK &&
           sqlite3_exec(raw->db, schema_sql, NULL, NULL, NULL) == SQLITE_OK &&
           prepare_rows(raw, insert_sql, insert_row, batch, &raw->insert) &&
           prepare(raw, claim_sql, &raw->claim) &&
           prepare_rows(raw, finish_sql, finish_row, batch, &raw->finish);
}

/* Returns the outcome of the measurement. */
static int raw_close(struct bench *bench, struct raw *raw, bool good)
{
    int rc = good ? 0
                  : hf_fail(&bench->err, HF_ESTOREIO, NULL, "the raw program failed: %s",
                            raw->db ? sqlite3_errmsg(raw->db) : "out of memory");
    (void)sqlite3_finalize(raw->insert);
    (void)sqlite3_finalize(raw->claim);
    (void)sqlite3_finalize(raw->finish);
    (void)sqlite3_close(raw->db);
    return rc;
}

static bool step(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    return sqlite3_reset(stmt) == SQLITE_OK && rc == SQLITE_DONE;
}

/* Each statement is a transaction of its own. */
static bool insert(struct raw *raw, size_t batch)
{
    bool good = true;
    for (int i = 0; good && i < (int)batch; i++)
        good = sqlite3_bind_int64(raw->insert, 2 * i + 1, 1000) == SQLITE_OK &&
               sqlite3_bind_text(raw->insert, 2 * i + 2, "{\"n\":1}", -1,
                                 SQLITE_STATIC) == SQLITE_OK;
    return good && step(raw->insert);
}

static bool claim(struct raw *raw)
{
    raw->claimed = 0;
    bool good = sqlite3_bind_text(raw->claim, 1, "w1", -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_int64(raw->claim, 2, BENCH_BATCH) == SQLITE_OK;
    while (good && sqlite3_step(raw->claim) == SQLITE_ROW) {
        raw->ids[raw->claimed] = sqlite3_column_int64(raw->claim, 0);
        raw->fences[raw->claimed++] = sqlite3_column_int64(raw->claim, 1);
    }
    return good && sqlite3_reset(raw->claim) == SQLITE_OK && raw->claimed == BENCH_BATCH;
}

static bool finish(struct raw *raw)
{
    bool good = true;
    for (int i = 0; good && i < raw->claimed; i++)
        good = sqlite3_bind_int64(raw->finish, 2 * i + 1, raw->ids[i]) == SQLITE_OK &&
               sqlite3_bind_int64(raw->finish, 2 * i + 2, raw->fences[i]) == SQLITE_OK;
    return good && step(raw->finish) && sqlite3_changes(raw->db) == raw->claimed;
}

/* Many callers: one transaction has a row of each, as a group commit would. */
static int raw_create(struct bench *bench, size_t callers, double *ret_rate)
{
    struct raw raw;
    size_t count = bench->jobs / (callers == 1 ? 5 : callers);
    bool good = raw_open(bench, callers, &raw);
    for (size_t i = 0; good && i < BENCH_WARM_UP; i++)
        good = insert(&raw, callers);
    double start = bench_seconds();
    for (size_t i = 0; good && i < count; i++)
        good = insert(&raw, callers);
    *ret_rate = (double)(count * callers) / (bench_seconds() - start);
    return raw_close(bench, &raw, good);
}

static int raw_process(struct bench *bench, double *ret_rate, double *ret_kept)
{
    struct raw raw;
    struct stat at = { 0 };
    bool good = raw_open(bench, BENCH_BATCH, &raw);
    for (size_t i = 0; good && i < bench->jobs; i += BENCH_BATCH)
        good = insert(&raw, BENCH_BATCH);
    double start = bench_seconds();
    for (size_t i = 0; good && i < bench->jobs; i += BENCH_BATCH)
        good = claim(&raw) && finish(&raw);
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    int rc = raw_close(bench, &raw, good);
    if (rc == 0 && stat(bench->url[BENCH_RAW], &at))
        rc = hf_fail(&bench->err, HF_ESTOREIO, NULL, "the raw file is gone");
    *ret_kept = (double)at.st_size / (double)bench->jobs;
    return rc;
}

static int raw_end_to_end(struct bench *bench, double *ret_rate)
{
    struct raw raw;
    bool good = raw_open(bench, BENCH_BATCH, &raw);
    double start = bench_seconds();
    for (size_t i = 0; good && i < bench->jobs; i += BENCH_BATCH)
        good = insert(&raw, BENCH_BATCH) && claim(&raw) && finish(&raw);
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    return raw_close(bench, &raw, good);
}

static bool write_and_sync(int fd)
{
    static const char block[4096];
    return pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block &&
           fdatasync(fd) == 0;
}

/* Two syncs in place after a rest, as a pick-up has them: a disk that has rested is slower
 * than one that is kept busy. */
static int raw_pickup(struct bench *bench, size_t count, double *took)
{
    (void)unlink(bench->url[BENCH_RAW]);
    int fd = open(bench->url[BENCH_RAW], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_and_sync(fd);
    for (size_t i = 0; good && i < count; i++) {
        bench_rest(bench);
        double start = bench_seconds();
        good = write_and_sync(fd) && write_and_sync(fd);
        took[i] = (bench_seconds() - start) * 1e3;
    }
    if (fd >= 0)
        (void)close(fd);
    return good ? 0
                : hf_fail(&bench->err, HF_ESTOREIO, "folder",
                          "the scratch folder cannot be written");
}

/* ---- one fenced row ------------------------------------------------------------------ */

static const char doc_sql[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE doc (id INTEGER PRIMARY KEY, fence INTEGER NOT NULL,"
    " revision INTEGER NOT NULL, owner TEXT, body TEXT NOT NULL);"
    "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
    " INSERT INTO doc SELECT i, 7, 0, 'w1', printf('%.2048c', 'x') FROM n;";
static const char put_sql[] =
    "UPDATE doc SET body = ?1, revision = revision + 1 WHERE id = ?2 AND fence = 7";
static const char get_sql[] = "SELECT revision, fence, owner FROM doc WHERE id = ?2";

static bool doc_open(struct bench *bench, const char *sql, struct raw *raw)
{
    *raw = (struct raw){ 0 };
    (void)unlink(bench->url[BENCH_RAW]); /* it need not exist */
    return sqlite3_open(bench->url[BENCH_RAW], &raw->db) == SQLITE_OK &&
           sqlite3_exec(raw->db, doc_sql, NULL, NULL, NULL) == SQLITE_OK &&
           prepare(raw, sql, &raw->insert);
}

static bool put(struct raw *raw, size_t i)
{
    static char body[BENCH_PUT];
    memset(body, 'y', sizeof body);
    return sqlite3_bind_text(raw->insert, 1, body, sizeof body, SQLITE_STATIC) ==
               SQLITE_OK &&
           sqlite3_bind_int64(raw->insert, 2, (sqlite3_int64)(i % BENCH_ROWS)) ==
               SQLITE_OK &&
           step(raw->insert) && sqlite3_changes(raw->db) == 1;
}

/* A file has one writer: there is one caller. */
static int raw_put(struct bench *bench, size_t callers, double *ret_rate)
{
    struct raw raw = { 0 };
    size_t count = bench->jobs / 10;
    bool good = callers == 1 && doc_open(bench, put_sql, &raw);
    for (size_t i = 0; good && i < BENCH_WARM_UP; i++)
        good = put(&raw, i);
    double start = bench_seconds();
    for (size_t i = 0; good && i < count; i++)
        good = put(&raw, i);
    *ret_rate = (double)count / (bench_seconds() - start);
    return raw_close(bench, &raw, good);
}

static bool get(struct raw *raw, size_t i)
{
    sqlite3_stmt *stmt = raw->insert;
    return sqlite3_bind_int64(stmt, 2, (sqlite3_int64)(i % BENCH_ROWS)) == SQLITE_OK &&
           sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int64(stmt, 1) == 7 &&
           sqlite3_column_text(stmt, 2) && sqlite3_reset(stmt) == SQLITE_OK;
}

static int raw_get(struct bench *bench, double *ret_rate)
{
    struct raw raw;
    bool good = doc_open(bench, get_sql, &raw);
    double start = bench_seconds();
    for (size_t i = 0; good && i < bench->jobs; i++)
        good = get(&raw, i);
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    return raw_close(bench, &raw, good);
}

const struct bench_raw bench_raw_lite = { raw_create, raw_process, raw_end_to_end,
                                          raw_pickup, raw_put,     raw_get };
