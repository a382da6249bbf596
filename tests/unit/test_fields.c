/* The tables of fields against the structs and against the views that readers query. */
#include "support/unit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/store.h>

#include "core/ledger/fields.h"

/* The columns of a view of the shipped schema, in order. Returns their count. */
static size_t columns_of(sqlite3 *db, const char *pragma, char names[][40], size_t room)
{
    sqlite3_stmt *rows = NULL;
    size_t count = 0;
    assert_int_equal(sqlite3_prepare_v2(db, pragma, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(rows, 1);
        assert_true(count < room && strlen(name) < 40);
        memcpy(names[count++], name, strlen(name) + 1);
    }
    assert_int_equal(sqlite3_finalize(rows), SQLITE_OK);
    return count;
}

static void nothing(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    (void)values;
    sqlite3_result_int(context, 0);
}

static sqlite3 *open_schema(void)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    const char *const functions[] = { "hf_now", "hf_lease_now", "hf_incarnation",
                                      "hf_expect" };
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        assert_int_equal(sqlite3_create_function(db, functions[i], -1, SQLITE_UTF8, NULL,
                                                 nothing, NULL, NULL),
                         SQLITE_OK);
    int rc = sqlite3_exec(db, hf_store_schema_sql(NULL), NULL, NULL, &message);
    if (rc != SQLITE_OK)
        fail_msg("%s", message);
    return db;
}

static void every_column_of_runtime_work_is_a_field_in_the_same_order(void **state)
{
    (void)state;
    char names[80][40];
    sqlite3 *db = open_schema();
    size_t count = columns_of(db, "PRAGMA table_info(runtime_work)", names, 80), at = 0;
    for (size_t i = 0; i < hf_work_field_count; i++) {
        if (strcmp(hf_work_fields[i].name, "lease_remaining_ms") == 0)
            continue; /* reckoned when a row is read */
        assert_true(at < count);
        assert_string_equal(hf_work_fields[i].name, names[at++]);
    }
    assert_string_equal(names[at++],
                        "retry_policy_json"); /* another name of retry_policy */
    assert_int_equal(at, count);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void every_field_of_an_event_is_a_column_of_runtime_work_event(void **state)
{
    (void)state;
    char names[80][40];
    sqlite3 *db = open_schema();
    size_t count = columns_of(db, "PRAGMA table_info(runtime_work_event)", names, 80);
    size_t at = 0;
    for (size_t i = 0; i < hf_event_field_count; i++) {
        while (at < count && strcmp(hf_event_fields[i].name, names[at]) != 0) {
            assert_true(strcmp(names[at], "part") == 0 ||
                        strcmp(names[at], "fence") == 0);
            at++;
        }
        assert_true(at++ < count);
    }
    assert_string_equal(names[at++], "payload_json"); /* another name of payload */
    assert_int_equal(at, count);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void offsets_are_in_the_order_of_the_structs_without_a_gap(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_work_field_count; i++)
        assert_int_equal(hf_work_fields[i].offset, i * 8);
    assert_int_equal(hf_work_field_count * 8, sizeof(struct hf_work));
    for (size_t i = 0; i < hf_event_field_count; i++)
        assert_int_equal(hf_event_fields[i].offset, i * 8);
    assert_int_equal(hf_event_field_count * 8, sizeof(struct hf_event));
}

static void values_are_read_by_their_kind(void **state)
{
    (void)state;
    const struct hf_work work = { .work_id = "w", .payload = "{}", .priority = 3 };
    for (size_t i = 0; i < hf_work_field_count; i++) {
        const struct hf_field *field = &hf_work_fields[i];
        bool given = strcmp(field->name, "work_id") == 0 ||
                     strcmp(field->name, "payload") == 0 ||
                     strcmp(field->name, "priority") == 0;
        bool counts = field->kind == HF_FIELD_I64 && !field->zero_is_null &&
                      !field->null_by; /* no lease, no time left on it */
        assert_int_equal(hf_field_null(field, &work), !given && !counts);
    }
    assert_string_equal(hf_field_text(&hf_work_fields[0], &work), "w");
    assert_int_equal(hf_field_i64(&hf_work_fields[0], &work), 0);
}

static void assert_columns(const char *pragma, const char *expected)
{
    char names[80][40], all[2000] = "";
    sqlite3 *db = open_schema();
    size_t count = columns_of(db, pragma, names, 80);
    for (size_t i = 0, at = 0; i < count; i++)
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? " " : "",
                               names[i]);
    assert_string_equal(all, expected);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void the_columns_of_the_views_of_sessions_are_these(void **state)
{
    (void)state;
    assert_columns(
        "PRAGMA table_info(runtime_session)",
        "session_id tenant agent relation parent_id cause labels head_revision "
        "record_count chain config turn_id step ready_at waiting_until owner "
        "owner_incarnation lease_fence lease_ttl_ms lease_claimed_at "
        "lease_expires_at holder cancel_request deleted_at created_at updated_at");
    assert_columns("PRAGMA table_info(runtime_turn)",
                   "session_id turn_id tenant base_revision step node_count started_at "
                   "finished_at active_ms outcome result save_bytes");
}

static void the_columns_of_the_view_of_waits_are_these(void **state)
{
    (void)state;
    assert_columns("PRAGMA table_info(runtime_wait)",
                   "wait_id session_id turn_id tenant agent kind name state asked "
                   "answerer deadline_at policy next_answerer next_policy next_ms "
                   "escalate_at escalate outcome actor_kind actor opened_at closed_at");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_of_runtime_work_is_a_field_in_the_same_order),
        cmocka_unit_test(every_field_of_an_event_is_a_column_of_runtime_work_event),
        cmocka_unit_test(offsets_are_in_the_order_of_the_structs_without_a_gap),
        cmocka_unit_test(values_are_read_by_their_kind),
        cmocka_unit_test(the_columns_of_the_views_of_sessions_are_these),
        cmocka_unit_test(the_columns_of_the_view_of_waits_are_these),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
