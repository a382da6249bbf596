/* PostgreSQL's own limit here and now: hand-written prepared statements on one narrow row a
 * job, in the scratch schema. Enqueue by 16 connections, one a transaction; in bulk, by a client
 * that sends 100 rows of its own a transaction, a statement each, or all in one statement, which
 * is the best there is; and one connection that finishes its last batch and claims the next in
 * one trip. */
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench.h"

#define RAW_CALLERS 16
#define RAW_BATCH 100
#define SCHEMA "holdfast_bench"

static const char scratch_sql[] = "SET client_min_messages = warning;"
                                  "DROP SCHEMA IF EXISTS " SCHEMA " CASCADE";
static const char schema_sql[] =
    "CREATE SCHEMA IF NOT EXISTS " SCHEMA ";"
    "CREATE TABLE " SCHEMA ".job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " state smallint NOT NULL, due bigint NOT NULL, owner text, fence bigint NOT NULL"
    " DEFAULT 0, payload text);"
    "CREATE INDEX job_ready ON " SCHEMA ".job (due, id) WHERE state = 0";
static const char insert_sql[] = "INSERT INTO " SCHEMA
                                 ".job (state, due, payload) VALUES (0, 1, '{\"n\":1}')";
static const char bulk_sql[] = "INSERT INTO " SCHEMA ".job (state, due, payload)"
                               " SELECT 0, a.due, a.payload FROM unnest($1::bigint[], "
                               "$2::text[]) AS a(due, payload)";
static const char row_sql[] = "INSERT INTO " SCHEMA ".job (state, due, payload)"
                              " VALUES (0, $1, $2)";
static const char claim_sql[] =
    "WITH c AS MATERIALIZED (SELECT id FROM " SCHEMA ".job WHERE state = 0"
    " ORDER BY due, id LIMIT 100 FOR UPDATE SKIP LOCKED)"
    " UPDATE " SCHEMA ".job SET state = 1, owner = 'raw', fence = fence + 1 FROM c"
    " WHERE job.id = c.id RETURNING job.id";
static const char finish_sql[] = "UPDATE " SCHEMA ".job SET state = 2, owner = NULL"
                                 " WHERE id = ANY ($1::bigint[]) AND state = 1";
static const char lsn_sql[] = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn";
static const char one_sql[] =
    "WITH c AS MATERIALIZED (SELECT id FROM " SCHEMA ".job WHERE state = 0"
    " ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " UPDATE " SCHEMA ".job SET state = 1, owner = 'raw', fence = fence + 1 FROM c"
    " WHERE job.id = c.id RETURNING job.id";

static bool fine(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int raw_fail(struct bench *bench, PGconn *db)
{
    return hf_fail(bench->err, HF_EUNREACHABLE, "db", "the raw program failed: %.160s",
                   PQerrorMessage(db));
}

static PGconn *raw_connect(const struct bench *bench)
{
    return PQconnectdb(bench->raw_url);
}

static bool plain(PGconn *db, const char *sql)
{
    return fine(PQexec(db, sql));
}

int bench_pg_scratch(struct bench *bench)
{
    PGconn *db = raw_connect(bench);
    int rc = plain(db, scratch_sql) ? 0 : raw_fail(bench, db);
    PQfinish(db);
    return rc;
}

int bench_pg_wal(struct bench *bench, double *ret_bytes)
{
    PGconn *db = raw_connect(bench);
    PGresult *result = PQexec(db, lsn_sql);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (good)
        *ret_bytes = strtod(PQgetvalue(result, 0, 0), NULL);
    int rc = good ? 0 : raw_fail(bench, db);
    PQclear(result);
    PQfinish(db);
    return rc;
}

/* ---- enqueue ----------------------------------------------------------------------- */

struct caller {
    struct bench *bench;
    size_t jobs;
    bool good;
    pthread_t thread;
};

static void *insert_jobs(void *arg)
{
    struct caller *caller = arg;
    PGconn *db = raw_connect(caller->bench);
    caller->good = fine(PQprepare(db, "i", insert_sql, 0, NULL));
    for (size_t i = 0; caller->good && i < caller->jobs; i++)
        caller->good = fine(PQexecPrepared(db, "i", 0, NULL, NULL, NULL, 0));
    PQfinish(db);
    return NULL;
}

static int raw_enqueue(struct bench *bench, double *ret_rate)
{
    struct caller callers[RAW_CALLERS];
    size_t each = bench->jobs / 2 / RAW_CALLERS;
    double start = bench_seconds();
    bool good = true;
    for (size_t i = 0; i < RAW_CALLERS; i++) {
        callers[i] = (struct caller){ .bench = bench, .jobs = each };
        if (pthread_create(&callers[i].thread, NULL, insert_jobs, &callers[i]))
            return hf_fail(bench->err, HF_ENOMEM, NULL, "no thread could be had");
    }
    for (size_t i = 0; i < RAW_CALLERS; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        good = good && callers[i].good;
    }
    *ret_rate = (double)(each * RAW_CALLERS) / (bench_seconds() - start);
    return good ? 0
                : hf_fail(bench->err, HF_EUNREACHABLE, "db", "the raw program failed");
}

/* The next batch as two arrays: when each is due, and a payload of its own. */
static void next_batch(size_t first, char *dues, char *payloads, size_t room)
{
    size_t due = 0, payload = 0;
    for (size_t i = 0; i < RAW_BATCH; i++) {
        char before = i ? ',' : '{';
        due += (size_t)snprintf(dues + due, room - due, "%c%zu", before, first + i);
        payload += (size_t)snprintf(payloads + payload, room - payload,
                                    "%c\"{\\\"n\\\":%zu}\"", before, first + i);
    }
    (void)snprintf(dues + due, room - due, "}");
    (void)snprintf(payloads + payload, room - payload, "}");
}

static bool raw_bulk(PGconn *db, size_t jobs, double *ret_rate)
{
    char dues[4096], payloads[4096];
    const char *args[] = { dues, payloads };
    bool good = fine(PQprepare(db, "b", bulk_sql, 0, NULL));
    double start = bench_seconds();
    for (size_t i = 0; good && i < jobs; i += RAW_BATCH) {
        next_batch(i, dues, payloads, sizeof dues);
        good = fine(PQexecPrepared(db, "b", 2, args, NULL, NULL, 0));
    }
    *ret_rate = (double)jobs / (bench_seconds() - start);
    return good;
}

/* The answers up to the Sync's. */
static bool all_fine(PGconn *db)
{
    bool good = true;
    for (;;) {
        PGresult *result = PQgetResult(db);
        ExecStatusType status = result ? PQresultStatus(result) : PGRES_COMMAND_OK;
        PQclear(result); /* NULL between two answers */
        if (status == PGRES_PIPELINE_SYNC)
            return good;
        good = good && status == PGRES_COMMAND_OK;
        if (PQstatus(db) != CONNECTION_OK)
            return false;
    }
}

static bool send_row(PGconn *db, size_t number)
{
    char due[24], payload[40];
    const char *args[] = { due, payload };
    (void)snprintf(due, sizeof due, "%zu", number);
    (void)snprintf(payload, sizeof payload, "{\"n\":%zu}", number);
    return PQsendQueryPrepared(db, "r", 2, args, NULL, NULL, 0) == 1;
}

static bool raw_rows(PGconn *db, size_t jobs, double *ret_rate)
{
    bool good = fine(PQprepare(db, "r", row_sql, 0, NULL)) && PQenterPipelineMode(db);
    double start = bench_seconds();
    for (size_t i = 0; good && i < jobs; i += RAW_BATCH) {
        for (size_t k = 0; good && k < RAW_BATCH; k++)
            good = send_row(db, i + k);
        good = good && PQpipelineSync(db) && all_fine(db);
    }
    *ret_rate = (double)jobs / (bench_seconds() - start);
    return good && PQexitPipelineMode(db);
}

int bench_pg_bulk(struct bench *bench, bool one_statement, double *ret_rate)
{
    PGconn *db = raw_connect(bench);
    bool good = plain(db, scratch_sql) && plain(db, schema_sql) &&
                (one_statement ? raw_bulk(db, bench->jobs, ret_rate)
                               : raw_rows(db, bench->jobs, ret_rate)) &&
                plain(db, scratch_sql);
    int rc = good ? 0 : raw_fail(bench, db);
    PQfinish(db);
    return rc;
}

/* ---- process ----------------------------------------------------------------------- */

/* The ids of a claim's answer as an array for the next finish. */
static size_t ids_of(const PGresult *result, char *out, size_t room)
{
    size_t at = 0;
    out[at++] = '{';
    for (int i = 0; i < PQntuples(result); i++) {
        const char *id = PQgetvalue(result, i, 0);
        size_t len = strlen(id);
        if (at + len + 3 > room)
            return 0;
        if (i)
            out[at++] = ',';
        memcpy(out + at, id, len);
        at += len;
    }
    out[at++] = '}';
    out[at] = '\0';
    return (size_t)PQntuples(result);
}

/* One trip: finish the last batch, claim the next. False on failure. */
static bool turn_over(PGconn *db, char *ids, size_t room, size_t *ret_claimed)
{
    const char *args[] = { ids };
    bool good = PQsendQueryPrepared(db, "f", 1, args, NULL, NULL, 0) &&
                PQsendQueryPrepared(db, "c", 0, NULL, NULL, NULL, 0) &&
                PQpipelineSync(db);
    PGresult *finished = good ? PQgetResult(db) : NULL;
    good = good && PQresultStatus(finished) == PGRES_COMMAND_OK;
    PQclear(finished);
    PQclear(PQgetResult(db));
    PGresult *claimed = PQgetResult(db);
    good = good && PQresultStatus(claimed) == PGRES_TUPLES_OK;
    *ret_claimed = good ? ids_of(claimed, ids, room) : 0;
    PQclear(claimed);
    PQclear(PQgetResult(db));
    PQclear(PQgetResult(db)); /* the Sync's */
    return good;
}

static bool raw_process(PGconn *db, double *ret_rate)
{
    char ids[4096] = "{}";
    size_t claimed = 1, total = 0;
    bool good = fine(PQprepare(db, "f", finish_sql, 0, NULL)) &&
                fine(PQprepare(db, "c", claim_sql, 0, NULL)) && PQenterPipelineMode(db);
    double start = bench_seconds();
    while (good && claimed > 0) {
        good = turn_over(db, ids, sizeof ids, &claimed);
        total += claimed;
    }
    *ret_rate = (double)total / (bench_seconds() - start);
    return good && PQexitPipelineMode(db);
}

/* ---- pick-up ----------------------------------------------------------------------- */

static bool wait_notice(PGconn *db)
{
    for (;;) {
        PGnotify *notice = PQnotifies(db);
        if (notice) {
            PQfreemem(notice);
            return true;
        }
        struct pollfd at = { .fd = PQsocket(db), .events = POLLIN };
        if (poll(&at, 1, 10000) <= 0 || !PQconsumeInput(db))
            return false;
    }
}

struct bench_pg_picker {
    struct bench *bench;
    PGconn *db;
    PGconn *other; /* that listens */
};

/* Its table is beside ours, in the scratch schema. */
int bench_pg_picker_new(struct bench *bench, struct bench_pg_picker **ret_picker)
{
    struct bench_pg_picker *picker = malloc(sizeof(*picker));
    if (!picker)
        return hf_fail(bench->err, HF_ENOMEM, NULL, "no memory");
    *picker = (struct bench_pg_picker){ bench, raw_connect(bench), raw_connect(bench) };
    *ret_picker = picker;
    bool good = plain(picker->db, "SET client_min_messages = warning") &&
                plain(picker->db, schema_sql) &&
                plain(picker->other, "LISTEN holdfast_bench") &&
                fine(PQprepare(picker->other, "o", one_sql, 0, NULL)) &&
                fine(PQprepare(picker->db, "p", insert_sql, 0, NULL));
    return good ? 0 : raw_fail(bench, picker->db);
}

void bench_pg_picker_free(struct bench_pg_picker *picker)
{
    if (!picker)
        return;
    PQfinish(picker->db);
    PQfinish(picker->other);
    free(picker);
}

/* Insert, then notify, then a claim by the one that listens. */
int bench_pg_pick(struct bench_pg_picker *picker, size_t count, double *took)
{
    PGconn *db = picker->db, *other = picker->other;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        struct timespec pause = { 0, BENCH_PG_IDLE_NS };
        (void)nanosleep(&pause, NULL);
        double start = bench_seconds();
        good = fine(PQexecPrepared(db, "p", 0, NULL, NULL, NULL, 0)) &&
               plain(db, "NOTIFY holdfast_bench") && wait_notice(other) &&
               fine(PQexecPrepared(other, "o", 0, NULL, NULL, NULL, 0));
        took[i] = (bench_seconds() - start) * 1e3;
    }
    return good ? 0 : raw_fail(picker->bench, db);
}

int bench_pg_raw(struct bench *bench, struct bench_pg_raw *ret_raw)
{
    double wal[3], bulk;
    struct bench_pg_raw raw = { 0 };
    PGconn *db = raw_connect(bench);
    bool good = plain(db, scratch_sql) && plain(db, schema_sql);
    int rc = good ? raw_enqueue(bench, &raw.enqueue) : raw_fail(bench, db);
    if (rc == 0)
        good = plain(db, scratch_sql) && plain(db, schema_sql) &&
               bench_pg_wal(bench, &wal[0]) == 0 && raw_bulk(db, bench->jobs, &bulk) &&
               bench_pg_wal(bench, &wal[1]) == 0 && raw_process(db, &raw.process) &&
               bench_pg_wal(bench, &wal[2]) == 0 && plain(db, scratch_sql);
    if (rc == 0 && !good)
        rc = raw_fail(bench, db);
    if (rc == 0) {
        raw.e2e = 1 / (1 / bulk + 1 / raw.process);
        raw.wal_create = (wal[1] - wal[0]) / (double)bench->jobs;
        raw.wal_drain = (wal[2] - wal[1]) / (double)bench->jobs;
        *ret_raw = raw;
    }
    PQfinish(db);
    return rc;
}
