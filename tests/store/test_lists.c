/* What lists and counts cost on both engines: no page walks rows that have ended, or more than a
 * window of keys, and a brief page needs little memory. `test_lists N` measures with N rows that
 * ended and N / 100 open ones, and prints a table. */
#include "support/unit.h"

#include <libpq-fe.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/lite/lite.h"
#include "db/pg/pg.h"
#include "store/batch/sql_gen.h"
#include "support/pg.h"

static int ended = 20000; /* rows that were done from the first */
static int open_rows(void)
{
    return ended < 100000 ? 1000 : ended / 100;
}

/* ---- what is read ---------------------------------------------------------------------- */

#define MOST_ARGS 32
#define NEWEST 4611686018427387904
#define BYTES 4194304

/* Arguments that are not null: where, and which. A text is for `find`. */
struct argument {
    int place;
    int64_t number;
    const char *text;
};

struct reading {
    const char *label;
    enum hf_sql_id statement;
    bool
        bounded; /* it reads rows that ended, or another table for each row, up to a bound */
    struct argument args[12];
};

#define PAGE_ARGS(after, until)                                                          \
    { 1, (after), NULL }, { 8, 0, "0" }, { 10, 101, NULL }, { 21, 0, "0" },              \
        { 26, BYTES, NULL }, { 27, 1, NULL },                                            \
    {                                                                                    \
        28, (until), NULL                                                                \
    }

static const struct reading readings[] = {
    { "open, newest", HF_SQL_WORK_LIST_OPEN_NEWEST, false, { PAGE_ARGS(NEWEST, 0) } },
    { "open, newest, brief",
      HF_SQL_WORK_LIST_OPEN_NEWEST_BRIEF,
      false,
      { PAGE_ARGS(NEWEST, 0) } },
    { "open, oldest", HF_SQL_WORK_LIST_OPEN, false, { PAGE_ARGS(0, NEWEST) } },
    { "open, counted", HF_SQL_WORK_OPEN_COUNT, false, { { 1, 20001, NULL } } },
    { "any, newest", HF_SQL_WORK_LIST_ANY_NEWEST, false, { PAGE_ARGS(NEWEST, 0) } },
    { "any, newest, brief",
      HF_SQL_WORK_LIST_ANY_NEWEST_BRIEF,
      false,
      { PAGE_ARGS(NEWEST, 0) } },
    { "any, oldest", HF_SQL_WORK_LIST_ANY, false, { PAGE_ARGS(0, NEWEST) } },
    { "any, finds nothing",
      HF_SQL_WORK_LIST_ANY_BRIEF,
      true,
      { PAGE_ARGS(3999999, 4019999), { 25, 0, "nothing" } } },
    { "any, newest, finds nothing",
      HF_SQL_WORK_LIST_ANY_NEWEST,
      true,
      { PAGE_ARGS(4060000, 4040001), { 25, 0, "nothing" } } },
    { "window", HF_SQL_WORK_WINDOW, false, { { 1, 0, "0" } } },
    { "window, newest", HF_SQL_WORK_WINDOW_NEWEST, false, { { 1, NEWEST, NULL } } },
    { "queues", HF_SQL_OVERVIEW_QUEUES, false, { { 2, 1000, NULL } } },
    { "holders", HF_SQL_OVERVIEW_HOLDERS, false, { { 3, 1000, NULL } } },
    { "ages", HF_SQL_OVERVIEW_AGES, true, { { 0, 0, NULL } } },
    { "counts", HF_SQL_WORK_COUNTS, false, { { 0, 0, NULL } } },
    { "attention: silent", HF_SQL_SEEN_SILENT, false, { { 2, 201, NULL } } },
    { "attention: lapsing", HF_SQL_SEEN_LAPSING, false, { { 2, 201, NULL } } },
    { "attention: question", HF_SQL_SEEN_QUESTION, false, { { 2, 201, NULL } } },
    { "attention: approval", HF_SQL_SEEN_APPROVAL, false, { { 2, 201, NULL } } },
    { "attention: wait", HF_SQL_SEEN_WAIT, false, { { 2, 201, NULL } } },
    { "attention: held", HF_SQL_SEEN_HELD, false, { { 2, 201, NULL } } },
    { "attention: ended", HF_SQL_SEEN_ENDED, false, { { 2, 201, NULL } } },
    { "attention: claimable",
      HF_SQL_SEEN_CLAIMABLE,
      false,
      { { 2, 20001, NULL }, { 3, 1, NULL } } },
    { "attention: queues", HF_SQL_SEEN_QUEUES, false, { { 1, 1000, NULL } } },
    { "attention: front",
      HF_SQL_SEEN_FRONT,
      false,
      { { 2, 100, NULL }, { 3, 1, NULL }, { 4, 0, "q1" } } },
    { "attention: claimed", HF_SQL_SEEN_CLAIMED, false, { { 1, 20000, NULL } } },
    { "attention: sessions",
      HF_SQL_SEEN_SESSIONS,
      false,
      { { 2, 1, NULL }, { 3, 201, NULL } } },
    { "attention: ready",
      HF_SQL_SEEN_READY,
      false,
      { { 2, 20000, NULL }, { 3, 1, NULL } } },
    { "attention: taken", HF_SQL_SEEN_TAKEN, false, { { 1, 20000, NULL } } },
    { "attention: turn waits", HF_SQL_SEEN_TURN_WAIT, false, { { 2, 201, NULL } } },
    { "attention: schedules",
      HF_SQL_SEEN_SCHEDULES,
      false,
      { { 2, 1, NULL }, { 3, 201, NULL } } },
    { "attention: limits", HF_SQL_SEEN_LIMITS, false, { { 1, 20000, NULL } } },
    { "attention: running", HF_SQL_SEEN_RUNNING, false, { { 0, 0, NULL } } },
};
#define READINGS (sizeof(readings) / sizeof(readings[0]))

static const struct argument *argument_at(const struct reading *reading, int place)
{
    for (size_t i = 0; i < sizeof(reading->args) / sizeof(reading->args[0]); i++)
        if (reading->args[i].place == place)
            return &reading->args[i];
    return NULL;
}

static void judge(const char *engine, const int64_t few[READINGS],
                  const int64_t many[READINGS])
{
    bool good = true;
    for (size_t i = 0; i < READINGS; i++) {
        const struct reading *reading = &readings[i];
        double ratio = few[i] ? (double)many[i] / (double)few[i] : 1;
        /* The trees have some levels more, and a window has at most 20,000 rows. */
        bool holds = reading->bounded ? many[i] < 130000
                                      : many[i] * 10 <= few[i] * 13 + 60;
        print_message("# %-7s %-28s %8lld pages, %8lld next to %d that ended: %.2f%s\n",
                      engine, reading->label, (long long)few[i], (long long)many[i],
                      ended, ratio, holds ? "" : "  TOO MANY");
        good = good && holds;
    }
    assert_true(good);
}

/* ---- SQLite ---------------------------------------------------------------------------- */

static void execute(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
}

/* Rows by plain SQL: units that are queued, or that were done from the first. Four keys each, as
 * a unit has with its events. */
static const char *rows_text(char *sql, size_t size, bool done, const char *series)
{
    const char *status = done ? "done" : "queued";
    (void)snprintf(
        sql, size,
        "INSERT INTO work_spec (seq, created_at, work_id, source_system, source_id, "
        "request_hash, first_status, actor_kind, actor, payload) "
        "SELECT 4 * i, i, 'w' || (4 * i), 'manual', 's' || i, %s, '%s', 'system', "
        "'test', "
        "'{\"n\":' || i || '}' FROM %s;"
        "INSERT INTO work_state (seq, status, finished_at, due_at, priority, "
        "max_attempts, source_system, kind, queue, disposition, updated_at) "
        "SELECT 4 * i, '%s', %s, 1, 3, 1, 'manual', 'k' || i %% 7, 'q' || i %% 5, "
        "'expire', 1 FROM %s",
        *series == '(' ? "x'00'" : "'\\x00'", status, series, status, done ? "i" : "NULL",
        series);
    return sql;
}

static void lite_rows(sqlite3 *db, int from, int count, bool done)
{
    char series[200], sql[2000];
    (void)snprintf(series, sizeof(series),
                   "(WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n "
                   "WHERE i < %d) SELECT i FROM n)",
                   from, from + count - 1);
    execute(db, rows_text(sql, sizeof(sql), done, series));
}

/* Pages that were read: what is in the cache is dropped before each statement. */
static int fetched(sqlite3 *db)
{
    int misses = 0, unused = 0;
    assert_int_equal(
        sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &unused, 0), 0);
    return misses;
}

static int64_t lite_pages(struct lite *lite, const struct reading *reading)
{
    sqlite3 *db = lite->writer.db;
    const struct hf_sql_text *one = lite_text_of(lite, (int)reading->statement);
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, one->text, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", one->name, sqlite3_errmsg(db));
    for (int place = 1; place <= one->params; place++) {
        const struct argument *a = argument_at(reading, place);
        bool text = a && a->text && strcmp(a->text, "0") != 0;
        char name[16];
        (void)snprintf(name, sizeof(name), "$%d", place);
        int slot = sqlite3_bind_parameter_index(statement, name);
        if (text)
            (void)sqlite3_bind_text(statement, slot, a->text, -1, SQLITE_STATIC);
        else if (a)
            (void)sqlite3_bind_int64(statement, slot, a->number);
    }
    (void)sqlite3_db_release_memory(db);
    int before = fetched(db), rc = SQLITE_ROW;
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(statement);
    assert_int_equal(rc, SQLITE_DONE);
    int pages = fetched(db) - before;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return pages;
}

static void pages_on_sqlite_do_not_grow_with_rows_that_ended(void **state)
{
    (void)state;
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL;
    int64_t few[READINGS], many[READINGS];
    char folder[] = "/tmp/hf-lists-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/lists.db", folder);
    assert_int_equal(hf_sqlite_open(path, &options, &sql, NULL), 0);
    struct lite *lite = lite_of(sql);
    /* Half of the open rows are older than all that ended. */
    lite_rows(lite->writer.db, 1, open_rows() / 2, false);
    lite_rows(lite->writer.db, 10000000, open_rows() / 2, false);
    for (size_t i = 0; i < READINGS; i++)
        few[i] = lite_pages(lite, &readings[i]);
    lite_rows(lite->writer.db, 1000000, ended, true);
    for (size_t i = 0; i < READINGS; i++)
        many[i] = lite_pages(lite, &readings[i]);
    sql->methods->close(sql);
    static const char *const ends[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < 4; i++) {
        char file[80];
        (void)snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        (void)unlink(file);
    }
    assert_int_equal(rmdir(folder), 0);
    judge("SQLite", few, many);
}

/* ---- PostgreSQL ------------------------------------------------------------------------ */

static struct pg_server server;

static void pg_execute(PGconn *db, const char *sql)
{
    PGresult *done = PQexec(db, sql);
    if (PQresultStatus(done) != PGRES_COMMAND_OK &&
        PQresultStatus(done) != PGRES_TUPLES_OK)
        fail_msg("%.200s: %s", sql, PQerrorMessage(db));
    PQclear(done);
}

static void pg_rows(PGconn *db, int from, int count, bool done)
{
    char series[200], sql[2000];
    (void)snprintf(series, sizeof(series), "generate_series(%d, %d) AS n(i)", from,
                   from + count - 1);
    pg_execute(db, rows_text(sql, sizeof(sql), done, series));
}

/* The rows of a prepared statement, or with `explain` its plan; the caller frees them. */
static PGresult *pg_run(PGconn *db, const struct reading *reading, const char *explain)
{
    const struct hf_pg_text *one = &hf_sql_pg[reading->statement];
    char *text = malloc(strlen(one->text) + 400), execute_text[2000] = "";
    assert_non_null(text);
    (void)snprintf(text, strlen(one->text) + 400, "PREPARE p AS %s", one->text);
    pg_execute(db, text);
    free(text);
    size_t len = (size_t)snprintf(execute_text, sizeof(execute_text), "%sEXECUTE p%s",
                                  explain, one->params ? "(" : "");
    for (int place = 1; place <= one->params; place++) {
        const struct argument *a = argument_at(reading, place);
        char cell[64] = "NULL";
        if (a && a->text)
            (void)snprintf(cell, sizeof(cell), "'%s'", a->text);
        else if (a)
            (void)snprintf(cell, sizeof(cell), "%lld", (long long)a->number);
        len += (size_t)snprintf(execute_text + len, sizeof(execute_text) - len, "%s%s",
                                cell, place < one->params ? ", " : ")");
    }
    PGresult *rows = PQexec(db, execute_text);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", execute_text, PQerrorMessage(db));
    pg_execute(db, "DEALLOCATE p");
    return rows;
}

/* Buffers of the topmost node; a sequential scan of a unit's table fails the test where there are
 * many rows. */
static int64_t pg_buffers(PGconn *db, const struct reading *reading, bool pinned)
{
    PGresult *plan = pg_run(db, reading,
                            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) ");
    int64_t buffers = -1;
    bool scans = false;
    for (int i = 0; i < PQntuples(plan); i++) {
        const char *line = PQgetvalue(plan, i, 0), *at = strstr(line, "Buffers: shared");
        const char *hit = strstr(line, "hit="), *read = strstr(line, "read=");
        if (at && buffers < 0)
            buffers = (hit ? strtoll(hit + 4, NULL, 10) : 0) +
                      (read ? strtoll(read + 5, NULL, 10) : 0);
        scans = scans || strstr(line, "Seq Scan on work_state") ||
                strstr(line, "Seq Scan on work_spec");
    }
    if (pinned && scans) {
        for (int i = 0; i < PQntuples(plan); i++)
            print_message("%s\n", PQgetvalue(plan, i, 0));
        fail_msg("%s scans a whole table", reading->label);
    }
    PQclear(plan);
    return buffers < 0 ? 0 : buffers;
}

static void pages_on_postgres_do_not_grow_with_rows_that_ended(void **state)
{
    (void)state;
    int64_t few[READINGS], many[READINGS];
    hf_store_close(pg_server_store(&server, "lists"));
    PGconn *db = PQconnectdb(server.url);
    pg_execute(db, "SET search_path = lists; SET session_replication_role = replica;"
                   "SET plan_cache_mode = force_generic_plan");
    pg_rows(db, 1, open_rows() / 2, false);
    pg_rows(db, 10000000, open_rows() / 2, false);
    pg_execute(db, "VACUUM ANALYZE work_spec");
    pg_execute(db, "VACUUM ANALYZE work_state");
    for (size_t i = 0; i < READINGS; i++) {
        (void)pg_buffers(db, &readings[i], false); /* the catalogue is read once */
        few[i] = pg_buffers(db, &readings[i], false);
    }
    pg_rows(db, 1000000, ended, true);
    pg_execute(db, "VACUUM ANALYZE work_spec");
    pg_execute(db, "VACUUM ANALYZE work_state");
    for (size_t i = 0; i < READINGS; i++)
        many[i] = pg_buffers(db, &readings[i], true);
    PQfinish(db);
    judge("pg", few, many);
}

/* ---- memory ---------------------------------------------------------------------------- */

static int64_t live, most;

static void *counted(void *user, void *at, size_t bytes)
{
    (void)user;
    int64_t before = at ? (int64_t)malloc_usable_size(at) : 0;
    void *now = realloc(at, bytes);
    if (now) {
        live += (int64_t)malloc_usable_size(now) - before;
        most = live > most ? live : most;
    }
    return now;
}

static void uncounted(void *user, void *at)
{
    (void)user;
    live -= at ? (int64_t)malloc_usable_size(at) : 0;
    free(at);
}

static void a_brief_page_needs_little_memory(void **state)
{
    (void)state;
    enum { UNITS = 1000, PAYLOAD = 100 << 10 };
    static char payload[PAYLOAD + 1];
    const struct hf_alloc alloc = { NULL, counted, uncounted };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = &alloc,
                                        .inline_mode = true };
    struct hf_store *store = NULL;
    struct hf_answer *answer = NULL;
    memset(payload, 'x', PAYLOAD);
    payload[0] = payload[PAYLOAD - 1] = '"';
    assert_int_equal(hf_store_open(":memory:", &options, &store, NULL), 0);
    for (int i = 0; i < UNITS; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "unit-%d", i);
        const struct hf_work_spec one = { .size = sizeof(one),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = name,
                                          .payload = payload };
        assert_int_equal(hf_work_create(store, NULL, &one, 1, 0, &answer, NULL), 0);
        hf_answer_free(answer);
    }
    struct hf_filter filter = { .size = sizeof(filter), .brief = true, .limit = UNITS };
    int64_t before = most = live;
    assert_int_equal(hf_work_list(store, NULL, &filter, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), UNITS);
    hf_answer_free(answer);
    print_message("a brief page of 1,000 rows: %lld KiB\n",
                  (long long)(most - before) >> 10);
    assert_true(most - before < 2 << 20);
    filter.brief = false;
    before = most = live;
    assert_int_equal(hf_work_list(store, NULL, &filter, &answer, NULL), 0);
    assert_true(hf_answer_count(answer) < UNITS && hf_answer_next(answer));
    hf_answer_free(answer);
    print_message("a page of large rows: %lld KiB\n", (long long)(most - before) >> 10);
    assert_true(most - before < 3 * BYTES);
    hf_store_close(store);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* Sessions, schedules and subscriptions with a text of 64 KiB each: 64 of them are 4 MiB. */
static void create_large(struct hf_store *store)
{
    enum { BYTES_OF_TEXT = 64 << 10, ROWS = 70 };
    static char text[BYTES_OF_TEXT + 1];
    memset(text, 'x', BYTES_OF_TEXT);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + BYTES_OF_TEXT - 2, "\"}", 2);
    for (int i = 0; i < ROWS; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "large-%d", i);
        const struct hf_session_spec session = {
            .size = sizeof(session), .session_id = name, .agent = "a", .config = text
        };
        const struct hf_schedule_spec schedule = { .size = sizeof(schedule),
                                                   .name = name,
                                                   .every_ms = 3600000,
                                                   .priority = -1,
                                                   .payload = text };
        const struct hf_subscription_spec subscription = { .size = sizeof(subscription),
                                                           .key = name,
                                                           .source_type = "t",
                                                           .source_key = "k",
                                                           .priority = -1,
                                                           .payload_template = text };
        struct hf_session_answer *created = NULL;
        struct hf_schedules *added = NULL;
        struct hf_subscriptions *subscribed = NULL;
        assert_int_equal(hf_session_create(store, NULL, &session, &created, NULL), 0);
        assert_int_equal(hf_schedule_add(store, NULL, &schedule, &added, NULL), 0);
        assert_int_equal(
            hf_trigger_subscribe(store, NULL, &subscription, &subscribed, NULL), 0);
        hf_session_answer_free(created);
        hf_schedules_free(added);
        hf_subscriptions_free(subscribed);
    }
}

static const struct reading large_pages[] = {
    { "sessions",
      HF_SQL_SESSION_LIST,
      false,
      { { 1, 0, "0" },
        { 5, 0, "0" },
        { 6, 100, NULL },
        { 7, NEWEST, NULL },
        { 8, BYTES, NULL } } },
    { "sessions, newest",
      HF_SQL_SESSION_LIST_NEWEST,
      false,
      { { 1, NEWEST, NULL },
        { 5, 0, "0" },
        { 6, 100, NULL },
        { 7, 0, "0" },
        { 8, BYTES, NULL } } },
    { "schedules",
      HF_SQL_SCHEDULE_LIST,
      false,
      { { 1, 0, "" },
        { 2, 0, "" },
        { 3, 0, "" },
        { 4, 0, "z" },
        { 5, 0, "" },
        { 8, 100, NULL },
        { 9, BYTES, NULL } } },
    { "schedules, newest",
      HF_SQL_SCHEDULE_LIST_NEWEST,
      false,
      { { 1, 0, "" },
        { 2, 0, "" },
        { 3, 0, "" },
        { 4, 0, "" },
        { 5, 0, "" },
        { 8, 100, NULL },
        { 9, BYTES, NULL },
        { 10, NEWEST, NULL },
        { 11, 0, "0" } } },
    { "subscriptions",
      HF_SQL_SUBSCRIPTION_LIST,
      false,
      { { 1, 0, "" },
        { 2, 0, "" },
        { 3, 0, "" },
        { 4, 0, "" },
        { 5, 0, "z" },
        { 6, 0, "z" },
        { 7, 0, "" },
        { 12, 100, NULL },
        { 13, BYTES, NULL } } },
    { "subscriptions, newest",
      HF_SQL_SUBSCRIPTION_LIST_NEWEST,
      false,
      { { 1, 0, "" },
        { 2, 0, "" },
        { 3, 0, "" },
        { 4, 0, "" },
        { 5, 0, "" },
        { 6, 0, "" },
        { 7, 0, "" },
        { 12, 100, NULL },
        { 13, BYTES, NULL },
        { 14, NEWEST, NULL },
        { 15, 0, "0" } } },
};

/* SQLite's driver stops at a row; a server sends what the statement returns. */
static void a_server_sends_no_more_than_the_bytes_of_a_page(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "large");
    create_large(store);
    hf_store_close(store);
    PGconn *db = PQconnectdb(server.url);
    pg_execute(db, "SET search_path = large");
    for (size_t i = 0; i < sizeof(large_pages) / sizeof(large_pages[0]); i++) {
        PGresult *rows = pg_run(db, &large_pages[i], "");
        if (PQntuples(rows) != 64)
            fail_msg("%s: %d rows of 64 KiB", large_pages[i].label, PQntuples(rows));
        PQclear(rows);
    }
    PQfinish(db);
}

/* ---- lists by name ----------------------------------------------------------------------- */

#define SERIES_LITE                                                                      \
    "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000) "  \
    "SELECT i FROM n)"
#define SERIES_PG "generate_series(1, 45000) AS n(i)"

/* Schedules, subscriptions and occurrences by plain SQL, created one after another. The first of
 * each is of the origin or source type "first", the last is paused or disabled. */
#define NAMED_ROWS(series, name, hash)                                                   \
    "INSERT INTO work_schedule (name, state, timing, every_ms, start_at, zone, days, "   \
    "overlap, catch_up, miss_threshold_ms, kind, queue, priority, max_attempts, "        \
    "disposition, revision, next_at, made, skipped, failures, created_at, updated_at, "  \
    "look_at, tick, origin) "                                                            \
    "SELECT " name ", coalesce(CASE WHEN i = 45000 THEN 'paused' END, 'active'), "       \
    "'interval', 1000, 1, 'UTC', 'or', 'skip', 'latest', 1, 'k', 'q', 1, 1, "            \
    "'rerunnable', 1, 9, 0, 0, 0, i, i, CASE WHEN i < 45000 THEN 9 END, 1, "             \
    "CASE WHEN i = 1 THEN 'first' END FROM " series ";"                                  \
    "INSERT INTO subscription (subscription_id, tenant, owner_scope, subscription_key, " \
    "state, incarnation, revision, source_type, source_key, kind, queue, priority, "     \
    "max_attempts, disposition, registrant, deliveries, created_at, updated_at) "        \
    "SELECT " name ", '', 'host', " name ", "                                            \
    "coalesce(CASE WHEN i = 45000 THEN 'disabled' END, 'enabled'), 'i', 1, "             \
    "coalesce(CASE WHEN i = 1 THEN 'first' END, 'other'), 'k', 'k', 'q', 1, 1, "         \
    "'rerunnable', 'r', 0, i, i FROM " series ";"                                        \
    "INSERT INTO occurrence (occurrence_id, tenant, source_type, source_key, "           \
    "idempotency_key, content_hash, occurred_at, created_at) "                           \
    "SELECT " name                                                                       \
    ", '', coalesce(CASE WHEN i = 1 THEN 'first' END, 'other'), 'k', " name ", " hash    \
    ", i, i FROM " series

/* Reads pages: the first `empty` have no row and are continued, the next has one and ends it. */
static void read_schedules(struct hf_store *store, struct hf_schedule_filter filter,
                           int empty)
{
    struct hf_schedules *found = NULL, *before = NULL;
    filter.size = sizeof(filter);
    for (int page = 0; page <= empty; page++) {
        filter.after = before ? hf_schedules_next(before) : NULL;
        assert_int_equal(hf_schedule_list(store, NULL, &filter, &found, NULL), 0);
        assert_int_equal(hf_schedules_count(found), page == empty ? 1 : 0);
        assert_true((hf_schedules_next(found) != NULL) == (page < empty));
        hf_schedules_free(before);
        before = found;
    }
    hf_schedules_free(before);
}

static void read_subscriptions(struct hf_store *store, struct hf_trigger_filter filter,
                               int empty)
{
    struct hf_subscriptions *found = NULL, *before = NULL;
    filter.size = sizeof(filter);
    for (int page = 0; page <= empty; page++) {
        filter.after = before ? hf_subscriptions_next(before) : NULL;
        assert_int_equal(hf_trigger_list(store, NULL, &filter, &found, NULL), 0);
        assert_int_equal(hf_subscriptions_count(found), page == empty ? 1 : 0);
        assert_true((hf_subscriptions_next(found) != NULL) == (page < empty));
        hf_subscriptions_free(before);
        before = found;
    }
    hf_subscriptions_free(before);
}

static void count_row(void *count, const struct hf_occurrence *unused)
{
    (void)unused;
    ++*(int *)count;
}

static void read_occurrences(struct hf_store *store, int empty)
{
    struct hf_occurrence_next next = { "" };
    struct hf_occurrence_filter filter = { .size = sizeof(filter),
                                           .source_type = "first" };
    for (int page = 0; page <= empty; page++) {
        int count = 0;
        char after[sizeof(next.cursor)];
        memcpy(after, next.cursor, sizeof(after));
        filter.after = *after ? after : NULL;
        assert_int_equal(
            hf_occurrence_list(store, NULL, &filter, count_row, &count, &next, NULL), 0);
        assert_int_equal(count, page == empty);
        assert_int_equal(*next.cursor != 0, page < empty);
    }
}

/* 45,000 rows are two windows of 20,000 and a rest. */
static void read_named(struct hf_store *store)
{
    read_schedules(store, (struct hf_schedule_filter){ .state = "paused" }, 2);
    read_schedules(store,
                   (struct hf_schedule_filter){ .origin = "first", .newest = true }, 2);
    read_subscriptions(store, (struct hf_trigger_filter){ .state = "disabled" }, 2);
    read_subscriptions(
        store, (struct hf_trigger_filter){ .source_type = "first", .newest = true }, 2);
    read_occurrences(store, 2);
    /* Of a tenant that has none, no page looks on. */
    const struct hf_caller other = { .size = sizeof(other), .tenant = "other" };
    struct hf_schedules *none = NULL;
    const struct hf_schedule_filter all = { .size = sizeof(all) };
    assert_int_equal(hf_schedule_list(store, &other, &all, &none, NULL), 0);
    assert_int_equal(hf_schedules_count(none), 0);
    assert_null(hf_schedules_next(none));
    hf_schedules_free(none);
}

static void a_page_by_name_looks_at_20000_rows_on_sqlite(void **state)
{
    (void)state;
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_store *store = NULL;
    sqlite3 *db = NULL;
    char folder[] = "/tmp/hf-named-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/named.db", folder);
    assert_int_equal(hf_store_open(path, &options, &store, NULL), 0);
    hf_store_close(store);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    execute(db, NAMED_ROWS(SERIES_LITE, "printf('n%05d', i)", "x'00'"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(hf_store_open(path, &options, &store, NULL), 0);
    read_named(store);
    hf_store_close(store);
    static const char *const ends[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < 4; i++) {
        char file[80];
        (void)snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        (void)unlink(file);
    }
    assert_int_equal(rmdir(folder), 0);
}

#define KEYED_ROWS                                                                       \
    "INSERT INTO session (session_id, tenant, agent, created_at, updated_at, chain) "    \
    "SELECT 's' || i, '', 'a', i, i, decode(repeat('00', 32), 'hex') FROM " SERIES_PG    \
    ";INSERT INTO session_meta (session_key, relation, request_hash) "                   \
    "SELECT session_key, 'root', '\\x00' FROM session;"                                  \
    "INSERT INTO process (seq, identity_kind, originator, created_at) "                  \
    "SELECT 4 * i, 'k', 'host', i FROM " SERIES_PG

#define PROCESS_ARGS                                                                     \
    { 2, 1, NULL }, { 4, 0, "0" }, { 16, 101, NULL },                                    \
    {                                                                                    \
        20, BYTES, NULL                                                                  \
    }
#define PROCESS_LOW { 1, 0, "0" }, { 19, 20000, NULL }, PROCESS_ARGS
#define PROCESS_HIGH { 1, NEWEST, NULL }, { 19, 160001, NULL }, PROCESS_ARGS
#define SESSION_ARGS                                                                     \
    { 5, 0, "0" }, { 6, 101, NULL },                                                     \
    {                                                                                    \
        8, BYTES, NULL                                                                   \
    }

static const struct reading planned[] = {
    { "sessions",
      HF_SQL_SESSION_LIST,
      false,
      { { 1, 0, "0" }, { 7, 20000, NULL }, SESSION_ARGS } },
    { "sessions, newest",
      HF_SQL_SESSION_LIST_NEWEST,
      false,
      { { 1, NEWEST, NULL }, { 7, 25001, NULL }, SESSION_ARGS } },
    { "sessions, window", HF_SQL_SESSION_WINDOW, false, { { 1, 0, "0" } } },
    { "sessions, window, newest",
      HF_SQL_SESSION_WINDOW_NEWEST,
      false,
      { { 1, NEWEST, NULL } } },
    { "processes", HF_SQL_PROCESS_LIST, false, { PROCESS_LOW } },
    { "processes, brief", HF_SQL_PROCESS_LIST_BRIEF, false, { PROCESS_LOW } },
    { "processes, newest", HF_SQL_PROCESS_LIST_NEWEST, false, { PROCESS_HIGH } },
    { "processes, newest, brief",
      HF_SQL_PROCESS_LIST_NEWEST_BRIEF,
      false,
      { PROCESS_HIGH } },
    { "occurrences",
      HF_SQL_OCCURRENCE_LIST,
      false,
      { { 1, 0, "" },
        { 2, 0, "" },
        { 6, 101, NULL },
        { 7, BYTES, NULL },
        { 8, NEWEST, NULL },
        { 9, 25001, NULL } } },
    { "occurrences, window",
      HF_SQL_OCCURRENCE_WINDOW,
      false,
      { { 1, 0, "" }, { 2, NEWEST, NULL } } },
};

/* With 45,000 rows each a plan that scans a table is a wrong one. */
static void check_plans(PGconn *db)
{
    pg_execute(db, "SET session_replication_role = replica;"
                   "SET plan_cache_mode = force_generic_plan");
    pg_execute(db, KEYED_ROWS);
    pg_rows(db, 1, 45000, true);
    pg_execute(db, "ANALYZE");
    for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
        PGresult *plan = pg_run(db, &planned[i], "EXPLAIN ");
        bool indexed = false;
        for (int k = 0; k < PQntuples(plan); k++) {
            const char *line = PQgetvalue(plan, k, 0);
            if (strstr(line, "Seq Scan on session ") ||
                strstr(line, "Seq Scan on session_meta") ||
                strstr(line, "Seq Scan on process ") ||
                strstr(line, "Seq Scan on occurrence") ||
                strstr(line, "Seq Scan on work_"))
                fail_msg("%s: %s", planned[i].label, line);
            indexed = indexed || strstr(line, "Index");
        }
        if (!indexed)
            fail_msg("%s reads no index", planned[i].label);
        PQclear(plan);
    }
}

static void a_page_by_name_looks_at_20000_rows_on_postgres(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "named");
    PGconn *db = PQconnectdb(server.url);
    pg_execute(db, "SET search_path = named");
    pg_execute(db, NAMED_ROWS(SERIES_PG, "'n' || lpad(i::text, 5, '0')", "'\\x00'"));
    read_named(store);
    check_plans(db);
    PQfinish(db);
    hf_store_close(store);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_brief_page_needs_little_memory),
        cmocka_unit_test(pages_on_sqlite_do_not_grow_with_rows_that_ended),
        cmocka_unit_test(pages_on_postgres_do_not_grow_with_rows_that_ended),
        cmocka_unit_test(a_server_sends_no_more_than_the_bytes_of_a_page),
        cmocka_unit_test(a_page_by_name_looks_at_20000_rows_on_sqlite),
        cmocka_unit_test(a_page_by_name_looks_at_20000_rows_on_postgres),
    };
    if (argc > 1)
        ended = (int)strtol(argv[1], NULL, 10);
    pg_server_start(&server);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    pg_server_stop(&server);
    return rc;
}
