/* One scenario on both engines leaves the same rows in the tables of events, as plain SQL reads
 * them: one row per event, with JSON that a person can read. */
#include <jansson.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/store.h>

#include "base/buf.h"
#include "support/pg.h"
#include "support/scenario.h"
#include "support/unit.h"

static struct pg_server server;

/* Ids of rows are numbers of each store's own; the unit is named by its source instead. */
static bool compared(const char *column)
{
    return strcmp(column, "event_id") != 0 && strcmp(column, "xid") != 0 &&
           strcmp(column, "seq") != 0;
}

static const char events[] =
    "SELECT (SELECT s.source_id FROM work_spec s WHERE s.seq = e.seq) AS unit, e.*"
    " FROM work_event e ORDER BY e.event_id";
static const char births[] =
    "SELECT source_id, first_status, actor_kind, actor, note, correlation_id, created_at"
    " FROM work_spec ORDER BY seq";

static void put_cell(struct hf_buf *out, const char *column, const char *value)
{
    if (!compared(column))
        return;
    if (value && (strcmp(column, "payload") == 0 || strcmp(column, "note") == 0)) {
        json_t *json = json_loads(value, 0, NULL);
        if (!json_is_object(json))
            fail_msg("no JSON object: %s", value);
        json_decref(json);
    }
    hf_buf_text(out, column);
    hf_buf_text(out, "=");
    hf_buf_text(out, value ? value : "(null)");
    hf_buf_text(out, " ");
}

static void read_lite(const char *path, const char *sql, struct hf_buf *out)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *rows = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(rows); i++)
            put_cell(out, sqlite3_column_name(rows, i),
                     (const char *)sqlite3_column_text(rows, i));
        hf_buf_text(out, "\n");
    }
    assert_int_equal(sqlite3_finalize(rows), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void read_server(const char *sql, struct hf_buf *out)
{
    PGconn *db = PQconnectdb(server.url);
    PQclear(PQexec(db, "SET search_path = rows"));
    PGresult *rows = PQexec(db, sql);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(db));
    for (int row = 0; row < PQntuples(rows); row++) {
        for (int i = 0; i < PQnfields(rows); i++)
            put_cell(out, PQfname(rows, i),
                     PQgetisnull(rows, row, i) ? NULL : PQgetvalue(rows, row, i));
        hf_buf_text(out, "\n");
    }
    PQclear(rows);
    PQfinish(db);
}

static void play(const char *url)
{
    static struct scenario scenario;
    scenario = (struct scenario){ 0 };
    scenario_begin(&scenario);
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_store_options options = { .size = sizeof(options),
                                        .clock = scenario_clock(),
                                        .random = scenario_random(),
                                        .inline_mode = true };
    if (hf_store_open(url, &options, &store, &err))
        fail_msg("%s", err.message);
    assert_int_equal(scenario_play(store), 0);
    hf_store_close(store);
}

static void agree(const char *path, const char *sql)
{
    struct hf_buf lite, pg;
    hf_buf_init(&lite, hf_alloc_system(), 1 << 20);
    hf_buf_init(&pg, hf_alloc_system(), 1 << 20);
    read_lite(path, sql, &lite);
    read_server(sql, &pg);
    assert_int_equal(hf_buf_state(&lite), 0);
    assert_int_equal(hf_buf_state(&pg), 0);
    assert_true(strlen(hf_buf_str(&lite)) > 1000);
    assert_string_equal(hf_buf_str(&lite), hf_buf_str(&pg));
    hf_buf_fini(&lite);
    hf_buf_fini(&pg);
}

static void plain_sql_reads_the_same_events_on_both_engines(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-rows-XXXXXX", path[64], url[400];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/db", folder);
    play(path);
    play(pg_server_schema(server.url, "rows", url));
    agree(path, events);
    agree(path, births);
    static const char *const files[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char name[80];
        (void)snprintf(name, sizeof(name), "%s%s", path, files[i]);
        (void)unlink(name); /* some are not there */
    }
    (void)rmdir(folder); /* a file that is left shows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_sql_reads_the_same_events_on_both_engines),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("rows of events", tests, NULL, NULL);
}
