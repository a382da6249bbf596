/* The generated statements against the migrated schema, and what they must look like. */
#include "support/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/ledger/fields.h"
#include "core/schedule/schedule.h"
#include "core/trigger/trigger.h"
#include "db/lite/lite.h"
#include "db/pg/pg.h"
#include "store/batch/sql_gen.h"
#include "support/pg.h"

/* The ledger's statements, then those of the drivers. */
#define ALL (HF_SQL_COUNT + DB_OWN_COUNT)

static struct hf_sql *open_memory(void)
{
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL;
    assert_int_equal(hf_sqlite_open(":memory:", &options, &sql, NULL), 0);
    return sql;
}

/* How many arguments a caller passes is held against `params` whenever a statement runs
 * (store/lite_run: wrong_calls_are_internal_errors), so this is the other half. */
static void sql_prepares_everywhere(void **state)
{
    (void)state;
    struct hf_sql *sql = open_memory();
    sqlite3 *db = lite_of(sql)->writer.db;
    for (int i = 0; i < ALL; i++) {
        const struct hf_sql_text *one = lite_text_of(lite_of(sql), i);
        sqlite3_stmt *statement = NULL;
        if (!one->text)
            continue; /* of the other engine */
        if (sqlite3_prepare_v2(db, one->text, -1, &statement, NULL) != SQLITE_OK)
            fail_msg("%s: %s", one->name, sqlite3_errmsg(db));
        /* What the call before made is the driver's to say. */
        int params = sqlite3_bind_parameter_count(statement) -
                     (sqlite3_bind_parameter_index(statement, ":made") > 0);
        if (params != one->params)
            fail_msg("%s has %d parameters, the table says %d", one->name, params,
                     one->params);
        if (one->columns >= 0 && sqlite3_column_count(statement) != one->columns)
            fail_msg("%s returns %d columns, the table says %d", one->name,
                     sqlite3_column_count(statement), one->columns);
        assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    }
    sql->methods->close(sql);
}

/* A plan depends on no bound value: SQLite would make it anew at every execution. */
static void a_bound_value_prepares_no_statement_anew(void **state)
{
    (void)state;
    struct hf_sql *sql = open_memory();
    sqlite3 *db = lite_of(sql)->writer.db;
    for (int i = 0; i < ALL; i++) {
        const struct hf_sql_text *one = lite_text_of(lite_of(sql), i);
        sqlite3_stmt *statement = NULL;
        if (!one->text)
            continue;
        assert_int_equal(sqlite3_prepare_v2(db, one->text, -1, &statement, NULL),
                         SQLITE_OK);
        for (int slot = sqlite3_bind_parameter_count(statement); slot > 0; slot--)
            assert_int_equal(sqlite3_bind_int(statement, slot, 1), SQLITE_OK);
        if (sqlite3_expired(statement))
            fail_msg("%s is prepared anew whenever it is run", one->name);
        assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    }
    sql->methods->close(sql);
}

static bool is_name(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0' &&
           !isdigit((unsigned char)text[0]);
}

/* What SQLite returns under a name, PostgreSQL returns in the same place, so that C reads it by
 * the place that the build took from SQLite. */
static void same_columns(struct lite *lite, int i, const PGresult *told)
{
    sqlite3_stmt *statement = NULL;
    const struct hf_sql_text *one = lite_text_of(lite, i);
    if (!one->text)
        return;
    assert_int_equal(sqlite3_prepare_v2(lite->writer.db, one->text, -1, &statement, NULL),
                     SQLITE_OK);
    int count = sqlite3_column_count(statement);
    if (count != PQnfields(told))
        fail_msg("%s returns %d columns, and %d on SQLite", one->name, PQnfields(told),
                 count);
    for (int k = 0; k < count; k++) {
        const char *name = sqlite3_column_name(statement, k);
        if (is_name(name) && strcmp(name, PQfname(told, k)) != 0)
            fail_msg("%s: column %d is %s, and %s on SQLite", one->name, k,
                     PQfname(told, k), name);
    }
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
}

static PGresult *prepares(PGconn *db, const struct hf_pg_text *one, const char *text,
                          int params)
{
    PGresult *made = PQprepare(db, "", text, 0, NULL);
    if (PQresultStatus(made) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", one->name, PQerrorMessage(db));
    PQclear(made);
    PGresult *told = PQdescribePrepared(db, "");
    if (PQnparams(told) != params)
        fail_msg("%s has %d parameters, the table says %d", one->name, PQnparams(told),
                 params);
    return told;
}

static void sql_prepares_on_postgres_as_on_sqlite(void **state)
{
    struct pg_server *server = *state;
    struct hf_sql_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql *sql = NULL, *lite = open_memory();
    assert_int_equal(hf_postgres_open(server->url, &options, &sql, NULL), 0);
    PGconn *db = pg_of(sql)->pool.free->db;
    for (int i = 0; i < ALL; i++) {
        const struct hf_pg_text *one = pg_text_of(pg_of(sql), i);
        /* What another text goes into is no statement yet. */
        if (!one->text || strchr(one->text, '@') || strstr(one->text, "LOCK TABLE"))
            continue;
        PGresult *told = prepares(db, one, one->text, one->params);
        if (one->columns >= 0 && !one->sets && PQnfields(told) != one->columns)
            fail_msg("%s returns %d columns, the table says %d", one->name,
                     PQnfields(told), one->columns);
        if (!one->sets)
            same_columns(lite_of(lite), i, told);
        PQclear(told);
        if (one->guarded)
            PQclear(prepares(db, one, one->guarded, one->params + 1));
    }
    lite->methods->close(lite);
    sql->methods->close(sql);
}

static int start(void **state)
{
    static struct pg_server server;
    pg_server_start(&server);
    *state = &server;
    return 0;
}

static int stop(void **state)
{
    pg_server_stop(*state);
    return 0;
}

/* Rule 9: a parameter for a batch's size would make PostgreSQL plan for a tenth of the
 * table. */
static void literal_batch_sizes(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < HF_SQL_COUNT; i++) {
        const struct hf_pg_text *one = &hf_sql_pg[i];
        static const char prefix[] = "work_claim_";
        size_t limits = 0;
        if (!one->text || strncmp(one->name, prefix, sizeof(prefix) - 1) != 0)
            continue;
        seen++;
        for (const char *at = one->text; (at = strstr(at, "LIMIT ")); at++, limits++)
            if (!isdigit((unsigned char)at[strlen("LIMIT ")]))
                fail_msg("%s: the size of a batch is no literal", one->name);
        if (limits == 0)
            fail_msg("%s takes no limited batch", one->name);
    }
    assert_true(seen >= 9); /* 100, 10 and 1, of any kind, of some, and going on */
}

/* The tables of fields are read in their order (store/batch/fieldio.h). */
static void in_order(sqlite3 *db, enum hf_sql_id id, const struct hf_field *fields,
                     size_t count)
{
    sqlite3_stmt *statement = NULL;
    int column = 0;
    assert_int_equal(sqlite3_prepare_v2(db, hf_sql_lite[id].text, -1, &statement, NULL),
                     SQLITE_OK);
    for (size_t f = 0; f < count; f++)
        if (strcmp(fields[f].name, "lease_remaining_ms") != 0) /* it comes last */
            assert_string_equal(sqlite3_column_name(statement, column++), fields[f].name);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
}

static void rows_have_their_fields_in_order(void **state)
{
    (void)state;
    struct hf_sql *sql = open_memory();
    sqlite3 *db = lite_of(sql)->writer.db;
    in_order(db, HF_SQL_WORK_BY_ID, hf_work_fields, hf_work_field_count);
    in_order(db, HF_SQL_EVENT_TRAIL, hf_event_fields, hf_event_field_count);
    in_order(db, HF_SQL_EVENT_DUMP, hf_event_fields, hf_event_field_count);
    in_order(db, HF_SQL_FEED_PAGE, hf_event_fields, hf_event_field_count);
    in_order(db, HF_SQL_SCHEDULE_GET, hf_schedule_fields, hf_schedule_field_count);
    in_order(db, HF_SQL_SUBSCRIPTION_GET, hf_subscription_fields,
             hf_subscription_field_count);
    sql->methods->close(sql);
}

/* A reader of the feed pays for its page, however large the store is. */
static void the_feed_walks_indexes(void **state)
{
    static const int walks[] = { HF_SQL_FEED_FACTS, HF_SQL_FEED_END, HF_SQL_FEED_PAGE };
    (void)state;
    struct hf_sql *sql = open_memory();
    sqlite3 *db = lite_of(sql)->writer.db;
    for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
        char text[4096];
        size_t searches = 0;
        sqlite3_stmt *plan = NULL;
        (void)snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s",
                       hf_sql_lite[walks[i]].text);
        assert_int_equal(sqlite3_prepare_v2(db, text, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            const char *line = (const char *)sqlite3_column_text(plan, 3);
            if (strncmp(line, "SCAN work_", 10) == 0 || strstr(line, "SCAN e") == line ||
                strstr(line, "SCAN s") == line || strstr(line, "SCAN w") == line)
                fail_msg("%s: %s", hf_sql_lite[walks[i]].name, line);
            searches += strncmp(line, "SEARCH ", 7) == 0;
        }
        assert_true(searches >= 2);
        assert_int_equal(sqlite3_finalize(plan), SQLITE_OK);
    }
    sql->methods->close(sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sql_prepares_everywhere),
        cmocka_unit_test(a_bound_value_prepares_no_statement_anew),
        cmocka_unit_test(sql_prepares_on_postgres_as_on_sqlite),
        cmocka_unit_test(rows_have_their_fields_in_order),
        cmocka_unit_test(literal_batch_sizes),
        cmocka_unit_test(the_feed_walks_indexes),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
