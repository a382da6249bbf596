/* A store of version 1 with a unit in it is brought to the newest version, on both engines: the
 * unit is still there and can be claimed, and the schema is that of a new store. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/lite/open.h"
#include "db/pg/open.h"
#include "store/schema.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

static struct pg_server server;

static struct db_schema version_1(void)
{
    struct db_schema schema = hf_ledger_schema;
    schema.migration_count = 1;
    return schema;
}

/* Takes the driver, and closes it. */
static void make_unit_of_version_1(struct hf_sql *sql)
{
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = hf_alloc_system(),
                                        .clock = hf_clock_system(),
                                        .random = hf_random_system(),
                                        .inline_mode = true };
    struct hf_store *store = NULL;
    assert_int_equal(hf_sql_store_new(sql, &options, &store, NULL), 0);
    make_unit(store, "before");
    hf_store_close(store);
}

static void refused_as_older(const char *url, struct hf_store_options options)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_store_open(url, &options, &store, &err), HF_ESCHEMAOLD);
    assert_non_null(strstr(err.message, "version 1, and this program needs 2"));
}

static void the_unit_can_be_claimed(const char *url, struct hf_store_options options)
{
    struct hf_store *store = NULL;
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "alice" };
    assert_int_equal(hf_store_open(url, &options, &store, NULL), 0);
    assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    assert_string_equal(hf_answer_at(answer, 0)->work.source_id, "before");
    hf_answer_free(answer);
    hf_store_close(store);
}

/* The texts of all tables, indexes, guards and views. The caller frees it. */
static char *lite_schema(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT group_concat(sql, ';') FROM (SELECT sql "
                                        "FROM sqlite_schema ORDER BY type, name)",
                                        -1, &st, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(st, 0));
    assert_non_null(text);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return text;
}

static void a_file_of_version_1_is_upgraded_with_its_units(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-upgrade-XXXXXX", old[64], new[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(old, sizeof(old), "%s/old", folder);
    (void)snprintf(new, sizeof(new), "%s/new", folder);

    const struct db_schema schema = version_1();
    const struct lite_under under = { .schema = &schema };
    struct hf_sql *sql = NULL;
    assert_int_equal(lite_open(old, NULL, &under, &sql, NULL), 0);
    make_unit_of_version_1(sql);

    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_store_options as_it_is = options;
    as_it_is.migrate = HF_MIGRATE_NEVER;
    refused_as_older(old, as_it_is);
    the_unit_can_be_claimed(old, options);

    struct hf_store *fresh = NULL;
    assert_int_equal(hf_store_open(new, &options, &fresh, NULL), 0);
    hf_store_close(fresh);
    char *upgraded = lite_schema(old), *made = lite_schema(new);
    assert_string_equal(upgraded, made);
    free(upgraded);
    free(made);
    static const char *const files[] = { "old", "old-wal", "old-shm", "old-hf",
                                         "new", "new-wal", "new-shm", "new-hf" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char name[80];
        (void)snprintf(name, sizeof(name), "%s/%s", folder, files[i]);
        (void)unlink(name); /* some are not there */
    }
    (void)rmdir(folder); /* a file that is left shows */
}

/* All columns of all tables and views, and the indexes. The caller frees it. */
static char *server_schema(const char *schema)
{
    char sql[600];
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT string_agg(d, ';' ORDER BY d) FROM (SELECT table_name || '.' || "
        "column_name || ' ' || data_type FROM information_schema.columns WHERE "
        "table_schema = '%s' UNION ALL SELECT replace(indexdef, '%s.', '') FROM "
        "pg_indexes WHERE schemaname = '%s' UNION ALL SELECT event_object_table || '!' "
        "|| trigger_name FROM information_schema.triggers WHERE trigger_schema = '%s') "
        "AS t(d)",
        schema, schema, schema, schema);
    char *text = strdup(pg_server_sql(&server, sql));
    assert_non_null(text);
    return text;
}

static void a_schema_of_version_1_is_upgraded_with_its_units(void **state)
{
    (void)state;
    char old[400], new[400];
    pg_server_schema(server.url, "old", old);
    pg_server_schema(server.url, "new", new);
    const struct db_schema schema = version_1();
    struct hf_sql *sql = NULL;
    assert_int_equal(pg_open(old, NULL, &schema, &sql, NULL), 0);
    make_unit_of_version_1(sql);

    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_store_options migrating = options;
    migrating.migrate = HF_MIGRATE_UPGRADE;
    refused_as_older(old, options);
    the_unit_can_be_claimed(old, migrating);

    hf_store_close(pg_server_store(&server, "new"));
    char *upgraded = server_schema("old"), *made = server_schema("new");
    assert_true(strlen(made) > 1000);
    assert_string_equal(upgraded, made);
    free(upgraded);
    free(made);
}

static int start(void **state)
{
    (void)state;
    pg_server_start(&server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    pg_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_version_1_is_upgraded_with_its_units),
        cmocka_unit_test(a_schema_of_version_1_is_upgraded_with_its_units),
    };
    return cmocka_run_group_tests_name("upgrade", tests, start, stop);
}
