/* Addresses and servers that are not as they should be: each a typed error that names what to
 * do, and nothing half written. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/pg.h"
#include "support/unit.h"

static struct pg_server server;

static int opened(const char *url, struct hf_err *err)
{
    struct hf_store *store = NULL;
    struct hf_store_options options = { .size = sizeof(options),
                                        .inline_mode = true,
                                        .busy_ms = 2000 };
    *err = (struct hf_err){ 0 };
    int rc = hf_store_open(url, &options, &store, err);
    if (rc == 0)
        hf_store_close(store);
    return rc;
}

static void refused(const char *url, int code, const char *words)
{
    struct hf_err err;
    int rc = opened(url, &err);
    if (rc != code)
        fail_msg("%s: %d %s", url, rc, err.message);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_null(strstr(err.message, "hidden-word"));
}

static void with(const char *more, char out[400])
{
    (void)snprintf(out, 400, "%s%s", server.url, more);
}

static void an_unknown_host_is_unreachable(void **state)
{
    (void)state;
    refused("postgres://missing:hidden-word@no-such-host.invalid/hf", HF_EUNREACHABLE,
            "host");
    refused("postgres:///hf?host=/nowhere&user=hf", HF_EUNREACHABLE, "/nowhere");
    refused("postgres://127.0.0.1:1/hf", HF_EUNREACHABLE, "refused");
}

static void a_wrong_password_is_told_and_never_shown(void **state)
{
    (void)state;
    char url[400];
    (void)pg_server_sql(&server, "CREATE ROLE locked LOGIN PASSWORD 'right'");
    (void)snprintf(url, sizeof(url), "postgres://locked:hidden-word@/hf?host=%s&port=%d",
                   server.folder, server.port);
    refused(url, HF_EUNREACHABLE, "password");
}

static void tls_that_the_server_has_not_is_refused(void **state)
{
    (void)state;
    char url[400];
    (void)snprintf(url, sizeof(url), "postgres://hf@127.0.0.1:%d/hf?sslmode=require",
                   server.port);
    refused(url, HF_EUNREACHABLE, "SSL");
}

static void a_database_that_is_none_is_no_store(void **state)
{
    (void)state;
    char url[400];
    (void)snprintf(url, sizeof(url), "postgres:///nothing?host=%s&port=%d&user=hf",
                   server.folder, server.port);
    refused(url, HF_ENOTSTORE, "nothing");
}

static void parameters_of_our_own_are_checked(void **state)
{
    (void)state;
    char url[400];
    static const char *const bad[] = { "&schema=A",          "&schema=1a",
                                       "&schema=pg_x",       "&schema=",
                                       "&pooler=maybe",      "&schema=%zz",
                                       "&schema=a&schema=b", "&schema=a%00b" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        with(bad[i], url);
        refused(url, HF_EINVAL, "");
    }
    with("&schema=caf%65", url);
    struct hf_err err;
    assert_int_equal(opened(url, &err), 0);
    assert_string_equal(
        pg_server_sql(&server, "SELECT count(*) FROM cafe.hf_schema"),
        pg_server_sql(&server, "SELECT max(version) FROM cafe.hf_schema"));
}

static void an_address_without_its_slashes_is_no_path(void **state)
{
    (void)state;
    refused("postgres:user:hidden-word@db.example/hf", HF_EINVAL, "postgres://");
    refused("postgresql:/hf?user=hf", HF_EINVAL, "postgres://");
}

/* ---- one that lets in and says nothing more, as a pooler without a server does ---- */

static int silent_listener(struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(at->sun_path, sizeof(at->sun_path), "%s/.s.PGSQL.7100", server.folder);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)at, sizeof(*at)), 0);
    assert_int_equal(listen(listener, 8), 0);
    return listener;
}

static void *let_one_in(void *arg)
{
    static const char welcome[] = "R\0\0\0\x08\0\0\0\0"
                                  "Z\0\0\0\x05I";
    char asked[1024];
    const int *listener = arg;
    int client = accept(*listener, NULL, NULL);
    if (client >= 0 && read(client, asked, sizeof(asked)) > 0)
        (void)!write(client, welcome, sizeof(welcome) - 1);
    while (client >= 0 && read(client, asked, sizeof(asked)) > 0)
        continue; /* until it goes */
    (void)close(client);
    return NULL;
}

static void a_server_that_answers_nothing_is_unreachable(void **state)
{
    (void)state;
    struct sockaddr_un at;
    pthread_t thread;
    char url[400];
    int listener = silent_listener(&at);
    assert_int_equal(pthread_create(&thread, NULL, let_one_in, &listener), 0);
    (void)snprintf(url, sizeof(url), "postgres:///hf?host=%s&port=7100&user=hf",
                   server.folder);
    refused(url, HF_EUNREACHABLE, "");
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(listener);
    (void)unlink(at.sun_path);
}

/* The address of another database of the server, freshly made. */
static void database(const char *name, const char *how, char out[400])
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s %s", name, how);
    (void)pg_server_sql(&server, sql);
    (void)snprintf(out, 400, "postgres:///%s?host=%s&port=%d&user=hf", name,
                   server.folder, server.port);
}

static void a_database_that_cannot_hold_every_text_is_refused(void **state)
{
    (void)state;
    char url[400];
    database("latin", "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", url);
    refused(url, HF_EINVAL, "LATIN1");
}

static void create_same(const char *url, bool created)
{
    struct hf_store *store = NULL;
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    const struct hf_work_spec request = { .size = sizeof(request),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = "same",
                                          .priority = -1,
                                          .payload = "{\"n\":1}",
                                          .disposition = HF_DISPOSITION_RERUNNABLE };
    assert_int_equal(hf_store_open(url, NULL, &store, &err), 0);
    int rc = hf_work_create(store, NULL, &request, 1, 0, &answer, &err);
    if (rc)
        fail_msg("%d %s", rc, err.message);
    assert_int_equal(hf_answer_at(answer, 0)->code, 0);
    assert_int_equal(hf_answer_at(answer, 0)->created, created);
    hf_answer_free(answer);
    hf_store_close(store);
}

/* A digest that was written in another way was another request's. */
static void how_the_database_writes_bytes_changes_no_answer(void **state)
{
    (void)state;
    char url[400], pooled[420];
    database("escaped", "", url);
    (void)pg_server_sql(&server, "ALTER DATABASE escaped SET bytea_output = 'escape'");
    create_same(url, true);
    create_same(url, false);
    (void)snprintf(pooled, sizeof(pooled), "%s&pooler=transaction", url);
    create_same(pooled, false);
}

static void *open_one(void *arg)
{
    struct hf_err err;
    int rc = opened(arg, &err);
    if (rc)
        (void)fprintf(stderr, "%d %s\n", rc, err.message);
    return rc ? arg : NULL;
}

/* In another one, the caller that waited for the migration would see the schema as it was
 * before. */
static void transactions_are_read_committed_whatever_the_default(void **state)
{
    (void)state;
    char url[400], pooled[420];
    pthread_t threads[6];
    database("repeatable", "", url);
    (void)pg_server_sql(&server, "ALTER DATABASE repeatable SET "
                                 "default_transaction_isolation = 'repeatable read'");
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_one, url), 0);
    for (size_t i = 0; i < 6; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    (void)snprintf(pooled, sizeof(pooled), "%s&pooler=transaction", url);
    refused(pooled, HF_EINVAL, "default_transaction_isolation");
}

static void a_database_that_is_set_read_only_is_told_from_a_standby(void **state)
{
    (void)state;
    char url[400];
    database("frozen", "", url);
    (void)pg_server_sql(&server,
                        "ALTER DATABASE frozen SET default_transaction_read_only = on");
    refused(url, HF_EREADONLY, "default_transaction_read_only");
}

static void a_schema_that_holds_something_else_is_left_alone(void **state)
{
    (void)state;
    char url[400];
    (void)pg_server_sql(&server,
                        "CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.t (a int)");
    with("&schema=foreign_one", url);
    refused(url, HF_ENOTSTORE, "foreign_one");
    (void)pg_server_sql(
        &server, "CREATE SCHEMA foreign_two; CREATE TABLE foreign_two.hf_schema (a int)");
    with("&schema=foreign_two", url);
    refused(url, HF_ENOTSTORE, "foreign_two");
    assert_string_equal(pg_server_sql(&server,
                                      "SELECT count(*) FROM pg_class WHERE "
                                      "relnamespace = 'foreign_one'::regnamespace"),
                        "1");
}

static void a_newer_schema_is_refused_and_the_next_one_is_not(void **state)
{
    (void)state;
    char url[400];
    struct hf_err err;
    with("&schema=newer", url);
    assert_int_equal(opened(url, &err), 0);
    (void)pg_server_sql(&server,
                        "INSERT INTO newer.hf_schema SELECT max(version) + 1, 'next', 1,"
                        " 'x' FROM newer.hf_schema");
    assert_int_equal(opened(url, &err), 0); /* old and new side by side */
    (void)pg_server_sql(&server,
                        "INSERT INTO newer.hf_schema SELECT max(version) + 1, 'later', "
                        "1, 'x' FROM newer.hf_schema");
    refused(url, HF_ESCHEMA, "version");
}

/* Only `holdfast migrate` changes a store that others may be using. */
static void an_older_schema_waits_for_migrate(void **state)
{
    (void)state;
    char url[400];
    struct hf_err err;
    struct hf_store *store = NULL;
    with("&schema=older", url);
    assert_int_equal(opened(url, &err), 0);
    (void)pg_server_sql(&server, "DELETE FROM older.hf_schema WHERE version > 1");
    refused(url, HF_ESCHEMAOLD, "has version 1");
    assert_string_equal(hf_err_action(HF_ESCHEMAOLD), "run `holdfast migrate`");
    struct hf_store_options options = { .size = sizeof(options),
                                        .migrate = HF_MIGRATE_UPGRADE };
    /* What is there already cannot be made again: nothing is left half done. */
    assert_int_not_equal(hf_store_open(url, &options, &store, &err), 0);
    assert_string_equal(pg_server_sql(&server, "SELECT count(*) FROM older.hf_schema"),
                        "1");
}

static void role_url(const char *role, const char *schema, char url[400])
{
    (void)snprintf(url, 400, "postgres:///hf?host=%s&user=%s&schema=%s&port=%d",
                   server.folder, role, schema, server.port);
}

static void a_role_that_may_not_make_a_schema_is_told(void **state)
{
    (void)state;
    char url[400];
    (void)pg_server_sql(&server, "CREATE ROLE maker LOGIN");
    role_url("maker", "mine", url);
    refused(url, HF_EREADONLY, "CREATE");
    assert_string_equal(
        pg_server_sql(&server,
                      "SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'"),
        "0");
}

static int read_with(const char *url, struct hf_err *err)
{
    struct hf_store_options options = { .size = sizeof(options), .read_only = true };
    struct hf_store *store = NULL;
    int rc = hf_store_open(url, &options, &store, err);
    if (rc == 0) {
        struct hf_filter all = { .size = sizeof(all) };
        struct hf_answer *answer = NULL;
        rc = hf_work_list(store, NULL, &all, &answer, err);
        hf_answer_free(answer);
        hf_store_close(store);
    }
    return rc;
}

/* All at once: a role that lacks one after the other asks its owner only once. */
static void missing_privileges_are_named_together(void **state)
{
    (void)state;
    char url[400];
    struct hf_err err;
    with("&schema=shared", url);
    assert_int_equal(opened(url, &err), 0);
    (void)pg_server_sql(&server, "CREATE ROLE reader LOGIN");
    role_url("reader", "shared", url);
    assert_int_equal(read_with(url, &err), HF_EREADONLY);
    assert_string_equal(err.message, "role reader lacks privileges; GRANT it USAGE on "
                                     "schema shared; SELECT on all tables");
    assert_int_equal(opened(url, &err), HF_EREADONLY);
    assert_string_equal(
        err.message,
        "role reader lacks privileges; GRANT it USAGE on schema shared; "
        "USAGE on all sequences; SELECT, INSERT, UPDATE, DELETE on all tables");
    (void)pg_server_sql(&server,
                        "GRANT USAGE ON SCHEMA shared TO reader;"
                        " GRANT SELECT ON ALL TABLES IN SCHEMA shared TO reader");
    assert_int_equal(read_with(url, &err), 0);
    refused(url, HF_EREADONLY, "INSERT, UPDATE, DELETE on all tables");
}

/* As of default privileges that grant nothing to every role. */
static void functions_views_and_the_database_are_named_too(void **state)
{
    (void)state;
    char url[400];
    struct hf_err err;
    with("&schema=closed", url);
    assert_int_equal(opened(url, &err), 0);
    (void)pg_server_sql(
        &server, "CREATE ROLE closed LOGIN; GRANT USAGE ON SCHEMA closed TO closed;"
                 " GRANT ALL ON ALL TABLES IN SCHEMA closed TO closed;"
                 " GRANT ALL ON ALL SEQUENCES IN SCHEMA closed TO closed;"
                 " REVOKE ALL ON closed.work_limit, closed.runtime_work FROM closed;"
                 " REVOKE SELECT ON closed.runtime_work_event FROM closed;"
                 " REVOKE EXECUTE ON FUNCTION closed.hf_now FROM PUBLIC");
    role_url("closed", "closed", url);
    assert_int_equal(opened(url, &err), HF_EREADONLY);
    assert_string_equal(err.message,
                        "role closed lacks privileges; GRANT it EXECUTE on function "
                        "hf_now; SELECT on table runtime_work_event, work_limit; "
                        "INSERT, UPDATE, DELETE on table work_limit");
    (void)pg_server_sql(&server, "GRANT ALL ON closed.work_limit,"
                                 " closed.runtime_work_event TO closed;"
                                 " GRANT EXECUTE ON FUNCTION closed.hf_now TO closed");
    assert_int_equal(opened(url, &err), 0);
    (void)pg_server_sql(&server, "REVOKE CONNECT ON DATABASE hf FROM PUBLIC");
    refused(url, HF_EREADONLY, "GRANT CONNECT");
    (void)pg_server_sql(&server, "GRANT CONNECT ON DATABASE hf TO PUBLIC");
}

static void too_many_connections_is_busy(void **state)
{
    (void)state;
    char url[400];
    (void)pg_server_sql(&server,
                        "CREATE ROLE one LOGIN CONNECTION LIMIT 0; GRANT CREATE ON "
                        "DATABASE hf TO one");
    (void)snprintf(url, sizeof(url), "postgres:///hf?host=%s&port=%d&user=one",
                   server.folder, server.port);
    refused(url, HF_EBUSY, "pooler");
}

static void a_standby_is_read_only_and_says_what_to_add(void **state)
{
    (void)state;
    char url[500];
    struct hf_err err;
    struct hf_store *store = NULL;
    struct hf_answer *answer = NULL;
    with("&schema=both", url);
    assert_int_equal(opened(url, &err), 0);
    pg_server_standby(&server);
    (void)snprintf(url, sizeof(url), "%s&schema=nothing_here", server.standby);
    refused(url, HF_EREADONLY, "target_session_attrs");
    (void)snprintf(url, sizeof(url), "%s&schema=both", server.standby);
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    assert_int_equal(hf_store_open(url, &options, &store, &err), 0);
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = "a",
                                    .priority = -1,
                                    .disposition = HF_DISPOSITION_RERUNNABLE };
    assert_int_equal(hf_work_create(store, NULL, &request, 1, 0, &answer, &err),
                     HF_EREADONLY);
    assert_non_null(strstr(err.message, "target_session_attrs"));
    hf_store_close(store);
}

static void a_pooler_that_nobody_mentioned_is_noticed(void **state)
{
    (void)state;
    char url[400];
    struct hf_err err;
    pg_server_pooler(&server);
    (void)snprintf(url, sizeof(url),
                   "postgres:///hf?host=%s&port=6432&user=hf&schema=pooled",
                   server.folder);
    refused(url, HF_EUNREACHABLE, "pooler=transaction");
    (void)snprintf(url, sizeof(url), "%s&schema=pooled", server.pooled);
    assert_int_equal(opened(url, &err), 0);
}

static void a_pooler_in_statement_mode_is_refused(void **state)
{
    (void)state;
    char url[400], wrong[256];
    struct hf_err err;
    with("&schema=modes", url);
    assert_int_equal(opened(url, &err), 0); /* it is there, so nothing needs to be made */
    pg_server_wrong_pooler(&server, wrong);
    (void)snprintf(url, sizeof(url), "%s&schema=modes", wrong);
    refused(url, HF_EUNREACHABLE, "pool_mode");
    (void)snprintf(url, sizeof(url), "%s&schema=not_there", wrong);
    refused(url, HF_EUNREACHABLE, "pool_mode");
    assert_string_equal(
        pg_server_sql(&server,
                      "SELECT count(*) FROM pg_namespace WHERE nspname = 'not_there'"),
        "0");
}

/* With what a session keeps, the schema, it would be given to the next one's store. */
static void a_pooler_that_keeps_no_session_is_refused_as_one(void **state)
{
    (void)state;
    char url[400], keeps[256];
    struct hf_err err;
    with("&schema=kept", url);
    assert_int_equal(opened(url, &err), 0);
    if (!server.pooled[0])
        pg_server_pooler(&server);
    char *mode = strstr(server.pooled, "&pooler=transaction");
    assert_non_null(mode);
    (void)snprintf(url, sizeof(url), "%.*s&pooler=session&schema=kept",
                   (int)(mode - server.pooled), server.pooled);
    refused(url, HF_EUNREACHABLE, "pooler=transaction");
    (void)snprintf(url, sizeof(url), "%s&schema=kept", server.pooled);
    assert_int_equal(opened(url, &err), 0);
    pg_server_session_pooler(&server, keeps);
    (void)snprintf(url, sizeof(url), "%s&schema=kept", keeps);
    assert_int_equal(opened(url, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_host_is_unreachable),
        cmocka_unit_test(a_server_that_answers_nothing_is_unreachable),
        cmocka_unit_test(a_wrong_password_is_told_and_never_shown),
        cmocka_unit_test(tls_that_the_server_has_not_is_refused),
        cmocka_unit_test(a_database_that_is_none_is_no_store),
        cmocka_unit_test(parameters_of_our_own_are_checked),
        cmocka_unit_test(an_address_without_its_slashes_is_no_path),
        cmocka_unit_test(a_database_that_cannot_hold_every_text_is_refused),
        cmocka_unit_test(how_the_database_writes_bytes_changes_no_answer),
        cmocka_unit_test(transactions_are_read_committed_whatever_the_default),
        cmocka_unit_test(a_database_that_is_set_read_only_is_told_from_a_standby),
        cmocka_unit_test(a_schema_that_holds_something_else_is_left_alone),
        cmocka_unit_test(a_newer_schema_is_refused_and_the_next_one_is_not),
        cmocka_unit_test(an_older_schema_waits_for_migrate),
        cmocka_unit_test(a_role_that_may_not_make_a_schema_is_told),
        cmocka_unit_test(missing_privileges_are_named_together),
        cmocka_unit_test(functions_views_and_the_database_are_named_too),
        cmocka_unit_test(too_many_connections_is_busy),
        cmocka_unit_test(a_standby_is_read_only_and_says_what_to_add),
        cmocka_unit_test(a_pooler_that_nobody_mentioned_is_noticed),
        cmocka_unit_test(a_pooler_in_statement_mode_is_refused),
        cmocka_unit_test(a_pooler_that_keeps_no_session_is_refused_as_one),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("opening on PostgreSQL", tests, NULL, NULL);
}
