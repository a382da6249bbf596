/* What attention and the counts cost: statements read open rows and bad ends by their indexes, and
 * rows that ended well cost nothing. */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "db/lite/lite.h"
#include "store/batch/sql_gen.h"

#define OPEN 500
#define ENDED 50000

/* A part of each plan, and arguments; 0 is null. */
static const struct {
    enum hf_sql_id statement;
    const char *plan;
    int64_t args[7];
} reads[] = {
    { HF_SQL_SEEN_SILENT, "USING INDEX work_owner", { 0, 201 } },
    { HF_SQL_SEEN_LAPSING, "USING INDEX work_owner", { 0, 201 } },
    { HF_SQL_SEEN_QUESTION, "USING INDEX work_waiting", { 0, 201 } },
    { HF_SQL_SEEN_WAIT, "USING INDEX work_waiting", { 0, 201 } },
    { HF_SQL_SEEN_HELD, "USING INDEX work_gated", { 0, 201 } },
    { HF_SQL_SEEN_ENDED, "USING INDEX work_unacked", { 0, 201 } },
    { HF_SQL_SEEN_COUNTS, "USING INDEX work_owner", { 0, 20000 } },
    { HF_SQL_SEEN_ENDED_REST, "USING INDEX work_unacked", { 0, 20000, 200 } },
    { HF_SQL_WORK_UNACKED, "USING INDEX work_unacked", { 0, 0, 100 } },
    { HF_SQL_SEEN_SESSIONS, "USING INDEX session_lease", { 0, 1, 201 } },
    { HF_SQL_SEEN_APPROVAL, "USING INDEX wait_open", { 0, 201 } },
    { HF_SQL_SEEN_TURN_WAIT, "USING INDEX wait_open", { 0, 201 } },
    { HF_SQL_SEEN_CLAIMABLE, "USING INDEX work_claim", { 0, 20001, 1 } },
    { HF_SQL_SEEN_QUEUES, "USING INDEX work_claim (queue>?)", { 1000 } },
    { HF_SQL_SEEN_FRONT, "USING INDEX work_claim", { 0, 20000, 1, 1 } },
    { HF_SQL_SEEN_RUNNING, "USING INDEX work_owner", { 0, 0 } },
    { HF_SQL_SEEN_CLAIMED, "SEARCH w USING INTEGER PRIMARY KEY", { 20000 } },
    { HF_SQL_SEEN_READY, "USING INDEX session_ready", { 0, 20000, 1 } },
    { HF_SQL_SEEN_TAKEN, "SEARCH s USING INDEX session_id", { 20000 } },
    { HF_SQL_SEEN_SCHEDULES, "USING INDEX work_schedule_look", { 0, 1, 201 } },
    { HF_SQL_SEEN_LIMITS, "USING INDEX work_owner", { 20000 } },
    { HF_SQL_OCCURRENCE_WINDOW, "USING COVERING INDEX occurrence_made", { 0, 9 } },
    { HF_SQL_OCCURRENCE_LIST, "USING INDEX occurrence_made", { 0, 0, 0, 0, 0, 101, 1 } },
    { HF_SQL_OVERVIEW_QUEUES, "INDEX work_claim", { 0, 1000 } },
    { HF_SQL_OVERVIEW_HOLDERS, "USING INDEX work_owner", { 0, 0, 1000 } },
    { HF_SQL_OVERVIEW_AGES, "USING INDEX work_claim", { 0, 0 } },
    { HF_SQL_OVERVIEW_LEASES, "USING INDEX work_owner", { 0, 0 } },
    { HF_SQL_OVERVIEW_LEASES, "USING INDEX session_lease", { 0, 0 } },
};
#define READS (sizeof reads / sizeof reads[0])

static void execute(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
}

/* Rows by plain SQL: units that are queued, or that were done from the first. */
static void add_rows(sqlite3 *db, int from, int count, bool ended)
{
    char sql[1600];
    (void)snprintf(
        sql, sizeof(sql),
        "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "INSERT INTO work_spec (seq, created_at, work_id, source_system, source_id, "
        "request_hash, first_status, actor_kind, actor) "
        "SELECT i, i, printf('%%036d', i), 'manual', 's' || i, x'00', '%s', 'system', "
        "'test' "
        "FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "INSERT INTO work_state (seq, status, finished_at, due_at, priority, "
        "max_attempts, "
        "source_system, kind, queue, disposition, updated_at) "
        "SELECT i, '%s', %s, 1, 3, 1, 'manual', 'k' || i %% 7, 'q' || i %% 5, 'expire', "
        "1 FROM n",
        from, from + count - 1, ended ? "done" : "queued", from, from + count - 1,
        ended ? "done" : "queued", ended ? "i" : "NULL");
    execute(db, sql);
}

static int fetched(sqlite3 *db)
{
    int hits = 0, misses = 0, most = 0;
    assert_int_equal(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_HIT, &hits, &most, 0),
                     SQLITE_OK);
    assert_int_equal(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &most, 0),
                     SQLITE_OK);
    return hits + misses;
}

/* Pages that the statement fetches. */
static int pages_of(struct lite *lite, size_t i)
{
    sqlite3 *db = lite->writer.db;
    const struct hf_sql_text *one = lite_text_of(lite, (int)reads[i].statement);
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, one->text, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", one->name, sqlite3_errmsg(db));
    for (int k = 0; k < one->params; k++)
        if (reads[i].args[k])
            assert_int_equal(sqlite3_bind_int64(statement, k + 1, reads[i].args[k]),
                             SQLITE_OK);
    int before = fetched(db), rc = SQLITE_ROW;
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(statement);
    assert_int_equal(rc, SQLITE_DONE);
    int pages = fetched(db) - before;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return pages;
}

static struct hf_sql *open_memory(void)
{
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL;
    assert_int_equal(hf_sqlite_open(":memory:", &options, &sql, NULL), 0);
    return sql;
}

static void rows_that_ended_well_cost_nothing(void **state)
{
    (void)state;
    struct hf_sql *sql = open_memory();
    struct lite *lite = lite_of(sql);
    int few[READS];
    add_rows(lite->writer.db, 1, OPEN, false);
    for (size_t i = 0; i < READS; i++)
        few[i] = pages_of(lite, i);
    add_rows(lite->writer.db, OPEN + 1, ENDED, true);
    for (size_t i = 0; i < READS; i++) {
        int many = pages_of(lite, i);
        if (many * 10 > few[i] * 13 + 40) /* the tables have one level more */
            fail_msg("%s fetches %d pages next to finished rows, and %d without",
                     lite_text_of(lite, (int)reads[i].statement)->name, many, few[i]);
    }
    sql->methods->close(sql);
}

static void each_plan_begins_with_its_index(void **state)
{
    (void)state;
    struct hf_sql *sql = open_memory();
    struct lite *lite = lite_of(sql);
    for (size_t i = 0; i < READS; i++) {
        const struct hf_sql_text *one = lite_text_of(lite, (int)reads[i].statement);
        char text[16384], plan[8192] = "";
        sqlite3_stmt *statement = NULL;
        (void)snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", one->text);
        if (sqlite3_prepare_v2(lite->writer.db, text, -1, &statement, NULL) != SQLITE_OK)
            fail_msg("%s: %s", one->name, sqlite3_errmsg(lite->writer.db));
        while (sqlite3_step(statement) == SQLITE_ROW) {
            size_t len = strlen(plan);
            (void)snprintf(plan + len, sizeof(plan) - len, "%s\n",
                           (const char *)sqlite3_column_text(statement, 3));
        }
        assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
        bool indexed = strstr(plan, reads[i].plan);
        /* Rows that a compound query collects by indexes are scanned under its name: as they come,
         * or, where each is joined with a row of another table, from where they were collected. */
        bool collected = strstr(plan, "CO-ROUTINE w\n") ||
                         strstr(plan, "MATERIALIZE w\n");
        bool scans = strstr(plan, "SCAN w\n") && !collected;
        if (!indexed || scans || strstr(plan, "SCAN work_state\n"))
            fail_msg("%s: %s", one->name, plan);
    }
    sql->methods->close(sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_ended_well_cost_nothing),
        cmocka_unit_test(each_plan_begins_with_its_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
