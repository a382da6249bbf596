/* The raw program on PostgreSQL: prepared statements of 100 rows over one narrow table, as
 * arrays one way and SKIP LOCKED the other. A worker finishes its last batch and claims the
 * next in one trip and transaction; a producer has a batch under way while it makes the next. */
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "bench.h"

static const char *const schemas[BENCH_PLACES] = { "holdfast_bench",
                                                   "holdfast_bench_large",
                                                   "holdfast_bench_raw" };
#define JOB "holdfast_bench_raw.job"

/* Sessions plan once, and never for a table as small as it was then: as the ledger's do. */
static const char session_sql[] =
    "SET client_min_messages = warning; SET plan_cache_mode = force_generic_plan;"
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";
static const char may_create_sql[] =
    "SELECT has_database_privilege(current_database(), 'CREATE')";
static const char lock_sql[] = "SELECT pg_try_advisory_lock(hashtext('holdfast_bench'))";
static const char schema_sql[] =
    "CREATE SCHEMA holdfast_bench_raw;"
    "CREATE TABLE " JOB " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " state smallint NOT NULL, due bigint NOT NULL, owner text,"
    " fence bigint NOT NULL DEFAULT 0, payload text);"
    "CREATE INDEX job_ready ON " JOB " (due, id) WHERE state = 0";
static const char insert_one_sql[] =
    "INSERT INTO " JOB " (state, due, payload) VALUES (0, 1000, '{\"n\":1}')";
static const char insert_sql[] =
    "INSERT INTO " JOB " (state, due, payload) SELECT 0, new.due, new.payload"
    " FROM unnest($1::bigint[], $2::text[]) AS new(due, payload)";
static const char claim_sql[] = "UPDATE " JOB
                                " SET state = 1, owner = 'raw', fence = fence + 1"
                                " FROM (SELECT id FROM " JOB
                                " WHERE state = 0 ORDER BY due, id"
                                " LIMIT $1::int FOR UPDATE SKIP LOCKED) AS ready"
                                " WHERE job.id = ready.id RETURNING job.id, job.fence";
static const char finish_sql[] =
    "UPDATE " JOB " SET state = 2, owner = NULL"
    " FROM unnest($1::bigint[], $2::bigint[]) AS held(id, fence)"
    " WHERE job.id = held.id AND job.fence = held.fence AND job.state = 1";
static const char ring_sql[] = "SELECT pg_notify('holdfast_bench', '')";
static const char listen_sql[] = "LISTEN holdfast_bench";
static const char vacuum_sql[] =
    "SELECT format('VACUUM FULL %I.%I', schemaname, tablename) FROM pg_tables"
    " WHERE schemaname = $1";
static const char kept_sql[] =
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind = 'r' AND nspname = $1";

static bool fine(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static bool plain(PGconn *db, const char *sql)
{
    return fine(PQexec(db, sql));
}

static bool prepare(PGconn *db, const char *name, const char *sql)
{
    return fine(PQprepare(db, name, sql, 0, NULL));
}

static PGconn *raw_connect(const struct bench *bench)
{
    PGconn *db = PQconnectdb(bench->url[BENCH_RAW]);
    if (PQstatus(db) == CONNECTION_OK)
        (void)plain(db, session_sql); /* what fails here fails below too */
    return db;
}

/* Ends the connection and returns the outcome of the measurement. */
static int raw_end(struct bench *bench, PGconn *db, bool good)
{
    int code = PQstatus(db) == CONNECTION_OK ? HF_EINTERNAL : HF_EUNREACHABLE;
    int rc = good ? 0
                  : hf_fail(&bench->err, code, "db", "the raw program failed: %.160s",
                            PQerrorMessage(db));
    PQfinish(db);
    return rc;
}

/* ---- schemas ---------------------------------------------------------------------------- */

/* Whether a question is answered "true". */
static bool is_true(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    bool yes = PQresultStatus(result) == PGRES_TUPLES_OK &&
               PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return yes;
}

int bench_pg_begin(struct bench *bench)
{
    PGconn *db = raw_connect(bench);
    if (PQstatus(db) != CONNECTION_OK)
        return raw_end(bench, db, false);
    bench->guard = db;
    if (!is_true(db, may_create_sql))
        return hf_fail(&bench->err, HF_EREADONLY, "db",
                       "privilege missing: CREATE on database %s, for the scratch schemas"
                       " (GRANT CREATE ON DATABASE)",
                       PQdb(db));
    if (!is_true(db, lock_sql))
        return hf_fail(&bench->err, HF_EBUSY, "db",
                       "another holdfast-bench is at work in database %s", PQdb(db));
    return 0;
}

void bench_pg_end(struct bench *bench)
{
    PQfinish(bench->guard); /* NULL is fine */
    bench->guard = NULL;
}

static bool drop(PGconn *db, enum bench_place place)
{
    char sql[100];
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", schemas[place]);
    return plain(db, sql);
}

int bench_pg_drop(struct bench *bench, enum bench_place place)
{
    PGconn *db = raw_connect(bench);
    return raw_end(bench, db, drop(db, place));
}

static PGresult *ask(PGconn *db, const char *sql, enum bench_place place)
{
    return PQexecParams(db, sql, 1, NULL, &schemas[place], NULL, NULL, 0);
}

/* The bytes of all tables and indexes, without what dead rows and free space take. */
int bench_pg_kept(struct bench *bench, enum bench_place place, double *ret_bytes)
{
    PGconn *db = raw_connect(bench);
    PGresult *result = ask(db, vacuum_sql, place);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
    for (int i = 0; good && i < PQntuples(result); i++)
        good = plain(db, PQgetvalue(result, i, 0));
    PQclear(result);
    result = good ? ask(db, kept_sql, place) : NULL;
    good = good && PQresultStatus(result) == PGRES_TUPLES_OK;
    if (good)
        *ret_bytes = strtod(PQgetvalue(result, 0, 0), NULL);
    PQclear(result);
    return raw_end(bench, db, good);
}

/* A connection to a new table; the caller ends it by raw_end in any case. */
static PGconn *raw_begin(const struct bench *bench, bool *ret_good)
{
    PGconn *db = raw_connect(bench);
    *ret_good = drop(db, BENCH_RAW) && plain(db, schema_sql);
    return db;
}

/* ---- create: each caller has a connection, and the server groups their commits ------------ */

struct caller {
    struct bench *bench;
    size_t jobs;
    size_t place; /* which of the callers it is */
    atomic_bool failed;
    pthread_t thread;
};

static void *insert_each(void *arg)
{
    struct caller *caller = arg;
    PGconn *db = raw_connect(caller->bench);
    bool good = prepare(db, "one", insert_one_sql);
    for (size_t i = 0; good && i < caller->jobs; i++)
        good = fine(PQexecPrepared(db, "one", 0, NULL, NULL, NULL, 0));
    atomic_store(&caller->failed, !good);
    PQfinish(db);
    return NULL;
}

/* So many threads, each with so many jobs; the seconds that all of them took. */
static bool run_callers(struct bench *bench, size_t callers, size_t each,
                        void *(*work)(void *), double *ret_seconds)
{
    struct caller all[BENCH_CALLERS];
    size_t started = 0;
    bool good = true;
    double start = bench_seconds();
    for (; good && started < callers; started += good) {
        all[started] = (struct caller){ .bench = bench, .jobs = each, .place = started };
        good = pthread_create(&all[started].thread, NULL, work, &all[started]) == 0;
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(all[i].thread, NULL);
        good = good && !atomic_load(&all[i].failed);
    }
    *ret_seconds = bench_seconds() - start;
    return good;
}

static int raw_create(struct bench *bench, size_t callers, double *ret_rate)
{
    size_t each = bench->jobs / (callers == 1 ? 5 : callers);
    double took = 0;
    bool good;
    PGconn *db = raw_begin(bench, &good);
    good = good && run_callers(bench, callers, each, insert_each, &took);
    *ret_rate = (double)(each * callers) / took;
    return raw_end(bench, db, good);
}

/* ---- batches ------------------------------------------------------------------------------- */

/* Two columns of a batch as array literals. */
struct arrays {
    char first[4096], second[4096];
    size_t first_len, second_len;
};

static void arrays_add(struct arrays *arrays, const char *first, const char *second)
{
    const char *before = arrays->first_len ? "," : "{";
    arrays->first_len += (size_t)snprintf(arrays->first + arrays->first_len,
                                          sizeof arrays->first - arrays->first_len,
                                          "%s%s", before, first);
    arrays->second_len += (size_t)snprintf(arrays->second + arrays->second_len,
                                           sizeof arrays->second - arrays->second_len,
                                           "%s%s", before, second);
    hf_assert(arrays->first_len < sizeof arrays->first - 2 &&
              arrays->second_len < sizeof arrays->second - 2);
}

static bool send_arrays(PGconn *db, const char *name, struct arrays *arrays)
{
    const char *args[] = { arrays->first, arrays->second };
    if (arrays->first_len == 0) {
        args[0] = args[1] = "{}";
    } else {
        memcpy(arrays->first + arrays->first_len, "}", 2);
        memcpy(arrays->second + arrays->second_len, "}", 2);
    }
    return PQsendQueryPrepared(db, name, 2, args, NULL, NULL, 0) == 1;
}

/* The next answer of the pipeline; the NULL between two answers is skipped. */
static PGresult *next_answer(PGconn *db)
{
    PGresult *result = PQgetResult(db);
    return result ? result : PQgetResult(db);
}

static bool expect(PGconn *db, ExecStatusType status)
{
    PGresult *result = next_answer(db);
    bool good = PQresultStatus(result) == status;
    PQclear(result);
    return good;
}

static bool send_insert(PGconn *db, size_t first)
{
    struct arrays rows = { .first_len = 0 };
    for (size_t i = 0; i < BENCH_BATCH; i++) {
        char due[24], payload[40];
        (void)snprintf(due, sizeof due, "%zu", first + i);
        (void)snprintf(payload, sizeof payload, "\"{\\\"n\\\":%zu}\"", first + i);
        arrays_add(&rows, due, payload);
    }
    return send_arrays(db, "insert", &rows) && PQpipelineSync(db);
}

static bool insert_answered(PGconn *db)
{
    return expect(db, PGRES_COMMAND_OK) && expect(db, PGRES_PIPELINE_SYNC);
}

/* Inserts `jobs` rows by transactions of 100, of which one is under way all the time. */
static bool produce(PGconn *db, size_t jobs)
{
    bool good = prepare(db, "insert", insert_sql) && PQenterPipelineMode(db) &&
                send_insert(db, 0);
    for (size_t i = BENCH_BATCH; good && i < jobs; i += BENCH_BATCH)
        good = send_insert(db, i) && PQflush(db) >= 0 && insert_answered(db);
    return good && insert_answered(db) && PQexitPipelineMode(db);
}

/* One trip: finishes the last batch, claims the next into it. */
static bool turn_over(PGconn *db, struct arrays *held, size_t *ret_claimed)
{
    const char *limit[] = { "100" };
    bool good = send_arrays(db, "finish", held) &&
                PQsendQueryPrepared(db, "claim", 1, limit, NULL, NULL, 0) &&
                PQpipelineSync(db) && expect(db, PGRES_COMMAND_OK);
    PGresult *claimed = good ? next_answer(db) : NULL;
    good = good && PQresultStatus(claimed) == PGRES_TUPLES_OK;
    *held = (struct arrays){ .first_len = 0 };
    *ret_claimed = good ? (size_t)PQntuples(claimed) : 0;
    for (size_t i = 0; i < *ret_claimed; i++)
        arrays_add(held, PQgetvalue(claimed, (int)i, 0), PQgetvalue(claimed, (int)i, 1));
    PQclear(claimed);
    return good && expect(db, PGRES_PIPELINE_SYNC);
}

/* Until `jobs` rows are finished, or their producer has failed. */
static bool consume(PGconn *db, size_t jobs, const atomic_bool *failed)
{
    struct arrays held = { .first_len = 0 };
    size_t claimed = 0, total = 0;
    bool good = prepare(db, "finish", finish_sql) && prepare(db, "claim", claim_sql) &&
                PQenterPipelineMode(db);
    while (good && (total < jobs || claimed > 0)) {
        good = turn_over(db, &held, &claimed) && !atomic_load(failed);
        total += claimed;
    }
    return good && PQexitPipelineMode(db);
}

static int raw_process(struct bench *bench, double *ret_rate, double *ret_kept)
{
    bool good;
    const atomic_bool never = false;
    PGconn *db = raw_begin(bench, &good);
    good = good && produce(db, bench->jobs);
    double start = bench_seconds();
    good = good && consume(db, bench->jobs, &never);
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    int rc = raw_end(bench, db, good);
    if (rc == 0)
        rc = bench_pg_kept(bench, BENCH_RAW, ret_kept);
    *ret_kept /= (double)bench->jobs;
    return rc;
}

static void *produce_all(void *arg)
{
    struct caller *caller = arg;
    PGconn *db = raw_connect(caller->bench);
    atomic_store(&caller->failed, !produce(db, caller->jobs));
    PQfinish(db);
    return NULL;
}

/* A producer and a worker at once, on a connection each. */
static int raw_end_to_end(struct bench *bench, double *ret_rate)
{
    struct caller producer = { .bench = bench, .jobs = bench->jobs };
    bool good;
    PGconn *db = raw_begin(bench, &good);
    double start = bench_seconds();
    good = good && pthread_create(&producer.thread, NULL, produce_all, &producer) == 0;
    if (good) {
        good = consume(db, bench->jobs, &producer.failed);
        (void)pthread_join(producer.thread, NULL);
        good = good && !atomic_load(&producer.failed);
    }
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    return raw_end(bench, db, good);
}

/* ---- pick-up --------------------------------------------------------------------------------- */

static bool await_notice(PGconn *db)
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

/* One trip and transaction: the row and the notice of it. */
static bool insert_and_ring(PGconn *db)
{
    return PQsendQueryPrepared(db, "one", 0, NULL, NULL, NULL, 0) &&
           PQsendQueryPrepared(db, "ring", 0, NULL, NULL, NULL, 0) &&
           PQpipelineSync(db) && expect(db, PGRES_COMMAND_OK) &&
           expect(db, PGRES_TUPLES_OK) && expect(db, PGRES_PIPELINE_SYNC);
}

static int raw_pickup(struct bench *bench, size_t count, double *took)
{
    const char *limit[] = { "1" };
    bool good;
    PGconn *db = raw_begin(bench, &good), *other = raw_connect(bench);
    good = good && plain(other, listen_sql) && prepare(other, "claim", claim_sql) &&
           prepare(db, "one", insert_one_sql) && prepare(db, "ring", ring_sql) &&
           PQenterPipelineMode(db);
    for (size_t i = 0; good && i < count; i++) {
        bench_rest(bench);
        double start = bench_seconds();
        good = insert_and_ring(db) && await_notice(other) &&
               fine(PQexecPrepared(other, "claim", 1, limit, NULL, NULL, 0));
        took[i] = (bench_seconds() - start) * 1e3;
    }
    PQfinish(other);
    return raw_end(bench, db, good);
}

/* ---- one fenced row -------------------------------------------------------------------------- */

#define DOC "holdfast_bench_raw.doc"
static const char doc_sql[] =
    "CREATE TABLE " DOC " (id bigint PRIMARY KEY, fence bigint NOT NULL,"
    " revision bigint NOT NULL, owner text, body text NOT NULL) WITH (fillfactor = 50);"
    "ALTER TABLE " DOC " ALTER body SET STORAGE EXTERNAL;"
    "INSERT INTO " DOC " SELECT i, 7, 0, 'w1', repeat('x', 2048)"
    " FROM generate_series(0, 999) AS i";
static const char put_sql[] = "UPDATE " DOC " SET body = $1, revision = revision + 1"
                              " WHERE id = $2::bigint AND fence = 7";
static const char get_sql[] = "SELECT revision, fence, owner FROM " DOC
                              " WHERE id = $1::bigint";

static bool put(PGconn *db, size_t i)
{
    char body[BENCH_PUT + 1], id[24];
    const char *args[] = { body, id };
    memset(body, 'y', BENCH_PUT);
    body[BENCH_PUT] = '\0';
    (void)snprintf(id, sizeof id, "%zu", i % BENCH_ROWS);
    PGresult *result = PQexecPrepared(db, "put", 2, args, NULL, NULL, 0);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK &&
                strcmp(PQcmdTuples(result), "1") == 0;
    PQclear(result);
    return good;
}

/* Each caller has rows of its own. */
static void *put_each(void *arg)
{
    struct caller *caller = arg;
    PGconn *db = raw_connect(caller->bench);
    bool good = prepare(db, "put", put_sql);
    for (size_t i = 0; good && i < caller->jobs; i++)
        good = put(db, caller->place + i * BENCH_CALLERS);
    atomic_store(&caller->failed, !good);
    PQfinish(db);
    return NULL;
}

static int raw_put(struct bench *bench, size_t callers, double *ret_rate)
{
    bool good;
    PGconn *db = raw_begin(bench, &good);
    good = good && plain(db, doc_sql);
    size_t each = bench->jobs / (callers == 1 ? 10 : callers);
    double took = 0;
    good = good && run_callers(bench, callers, each, put_each, &took);
    *ret_rate = (double)(each * callers) / took;
    return raw_end(bench, db, good);
}

static int raw_get(struct bench *bench, double *ret_rate)
{
    bool good;
    PGconn *db = raw_begin(bench, &good);
    good = good && plain(db, doc_sql) && prepare(db, "get", get_sql);
    double start = bench_seconds();
    for (size_t i = 0; good && i < bench->jobs; i++) {
        char id[24];
        const char *args[] = { id };
        (void)snprintf(id, sizeof id, "%zu", i % BENCH_ROWS);
        PGresult *result = PQexecPrepared(db, "get", 1, args, NULL, NULL, 0);
        good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
        PQclear(result);
    }
    *ret_rate = (double)bench->jobs / (bench_seconds() - start);
    return raw_end(bench, db, good);
}

const struct bench_raw bench_raw_pg = { raw_create, raw_process, raw_end_to_end,
                                        raw_pickup, raw_put,     raw_get };
