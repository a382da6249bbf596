/* Damage to sessions that plain SQL without the guards has done is found by a check, on both
 * engines, and a store without damage has none. A commit does not build on it. */
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/pg.h"
#include "support/unit.h"

static struct pg_server server;
static char folder[64];

/* ---- a session with two turns ------------------------------------------------------- */

static struct hf_session_answer *begun(struct hf_store *store)
{
    static const char message[] =
        "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\",\"parts\":"
        "[{\"kind\":\"text\",\"content\":\"hi\"}]}}";
    const struct hf_session_send send = { .size = sizeof(send),
                                          .session_id = "s",
                                          .message = message };
    const struct hf_session_claim claim = { .size = sizeof(claim), .session_id = "s" };
    struct hf_answer *sent = NULL;
    struct hf_session_answer *held = NULL;
    assert_int_equal(hf_session_send(store, NULL, &send, &sent, NULL), 0);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    hf_answer_free(sent);
    return held;
}

static int committed(struct hf_store *store, const struct hf_session_answer *held,
                     const char *text, struct hf_err *err)
{
    const struct hf_part part = { .content = { text, strlen(text) } };
    const struct hf_message said = {
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &part, .part_count = 1
    };
    const struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    const struct hf_session_commit commit = {
        .size = sizeof(commit),
        .session_id = "s",
        .token = held->token,
        .turn_id = held->turn->turn_id,
        .head_revision = held->sessions[0].head_revision,
        .record_count = held->sessions[0].record_count,
        .chain = held->turn->chain,
        .records = &record,
        .added_count = 1,
        .status = HF_STATUS_DONE,
        .outcome = "{\"kind\":\"assistant_message\"}",
        .release = true,
    };
    struct hf_session_committed done;
    return hf_session_commit(store, NULL, &commit, &done, err);
}

static void commit_turn(struct hf_store *store, const char *text)
{
    struct hf_session_answer *held = begun(store);
    assert_int_equal(committed(store, held, text, NULL), 0);
    hf_session_answer_free(held);
}

static void make_session(const char *url)
{
    const struct hf_session_spec request = { .size = sizeof(request),
                                             .session_id = "s",
                                             .agent = "helper" };
    struct hf_session_answer *made = NULL;
    struct hf_store *store = NULL;
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    assert_int_equal(hf_session_create(store, NULL, &request, &made, NULL), 0);
    hf_session_answer_free(made);
    commit_turn(store, "one");
    commit_turn(store, "two");
    hf_store_close(store);
}

/* ---- what a check finds -------------------------------------------------------------- */

struct finds {
    int bad;
    char detail[400];
};

static void on_find(void *user, const struct hf_finding *finding)
{
    struct finds *finds = user;
    if (!finding->bad)
        return;
    finds->bad++;
    assert_string_equal(finding->what, "sessions");
    size_t len = strlen(finds->detail);
    (void)snprintf(finds->detail + len, sizeof(finds->detail) - len, "%s; ",
                   finding->detail);
}

static struct finds check(const char *url)
{
    struct finds finds = { .bad = 0 };
    struct hf_store *store = NULL;
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    assert_int_equal(hf_store_check(store, on_find, &finds, NULL), 0);
    hf_store_close(store);
    return finds;
}

static const struct {
    const char *damage, *detail;
} cases[] = {
    { "UPDATE node SET record = replace(record, 'one', 'won') WHERE ordinal = 0",
      "the chain of its records is broken at ordinal 0" },
    { "DELETE FROM node WHERE ordinal = 0", "head counts 2 records" },
    { "UPDATE session SET chain = (SELECT n.chain FROM node n WHERE n.ordinal = 0)",
      "digest of its head" },
    { "UPDATE session SET turn_key = (SELECT max(turn_key) FROM session_turn)",
      "its open turn is finished" },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void must_find(const char *url, size_t i)
{
    struct finds finds = check(url);
    if (finds.bad == 0 || !strstr(finds.detail, cases[i].detail))
        fail_msg("%s: %d findings: %s", cases[i].damage, finds.bad, finds.detail);
}

/* ---- the engines ---------------------------------------------------------------------- */

static void damage_file(const char *path, const char *sql)
{
    static const char guards[] =
        "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema "
        "WHERE type = 'trigger' AND (tbl_name = 'node' OR tbl_name = 'session')";
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, guards, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    char *drops = strdup((const char *)sqlite3_column_text(st, 0));
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, drops, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    free(drops);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void remove_store(const char *path)
{
    static const char *const ends[] = { "", "-hf", "-shm", "-wal" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[420];
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name); /* not each of them is there */
    }
}

static void damage_in_a_file_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "%s/%zu.db", folder, i);
        make_session(path);
        assert_int_equal(check(path).bad, 0);
        damage_file(path, cases[i].damage);
        must_find(path, i);
        remove_store(path);
    }
}

static void damage_schema(const char *schema, const char *damage)
{
    char sql[600];
    (void)snprintf(sql, sizeof(sql),
                   "SET session_replication_role = replica; SET search_path = %s; %s",
                   schema, damage);
    (void)pg_server_sql(&server, sql);
}

static void damage_on_a_server_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char url[400], schema[24];
        (void)snprintf(schema, sizeof(schema), "damaged%zu", i);
        (void)pg_server_schema(server.url, schema, url);
        make_session(url);
        assert_int_equal(check(url).bad, 0);
        damage_schema(schema, cases[i].damage);
        must_find(url, i);
    }
}

/* A turn is begun, before or after the damage, and its commit is refused and writes nothing. */
static void refused(bool postgres, const char *damage, bool before, int code,
                    const char *field)
{
    static int number;
    char at[400], name[24];
    struct hf_store *store = NULL;
    struct hf_session_answer *held = NULL, *now = NULL;
    struct hf_err err = { 0 };
    (void)snprintf(name, sizeof(name), "refused%d", number++);
    if (postgres)
        (void)pg_server_schema(server.url, name, at);
    else
        (void)snprintf(at, sizeof(at), "%s/%s.db", folder, name);
    make_session(at);
    assert_int_equal(hf_store_open(at, NULL, &store, NULL), 0);
    if (!before)
        held = begun(store);
    if (postgres)
        damage_schema(name, damage);
    else
        damage_file(at, damage);
    if (before)
        held = begun(store);
    assert_int_equal(committed(store, held, "three", &err), code);
    assert_string_equal(err.field, field);
    assert_int_equal(hf_session_head(store, "s", &now, NULL), 0);
    assert_int_equal(now->sessions->record_count, 2);
    assert_int_equal(now->sessions->head_revision, held->sessions->head_revision);
    assert_string_equal(now->sessions->turn_id, held->turn->turn_id);
    hf_session_answer_free(now);
    hf_session_answer_free(held);
    hf_store_close(store);
    if (!postgres)
        remove_store(at);
}

static void a_commit_refuses_what_it_cannot_build_on(void **state)
{
    static const char full[] = "UPDATE session SET head_revision = 9223372036854775807";
    static const char taken[] =
        "UPDATE work_state SET claim_group = 'another' WHERE status = 'running'";
    (void)state;
    for (int postgres = 0; postgres < 2; postgres++) {
        refused(postgres, full, true, HF_EOVERFLOW, "head_revision");
        refused(postgres, taken, false, HF_ESUPERSEDED, "turn_id");
    }
}

/* The session is claimed, and its owner can end that; only the records are left out. */
static void a_claim_does_not_load_a_damaged_history(void **state)
{
    (void)state;
    char path[100];
    struct hf_store *store = NULL;
    struct hf_session_answer *held = NULL, *loaded = NULL;
    const struct hf_session_claim claim = { .size = sizeof(claim),
                                            .session_id = "s",
                                            .records = 10 };
    const struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    (void)snprintf(path, sizeof(path), "%s/claimed.db", folder);
    make_session(path);
    damage_file(path, cases[0].damage);
    assert_int_equal(hf_store_open(path, NULL, &store, NULL), 0);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    assert_false(held->loaded);
    assert_int_equal(held->node_count, 0);
    assert_int_equal(hf_session_load(store, &load, &loaded, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_release(store, NULL, "s", held->token, NULL), 0);
    hf_session_answer_free(held);
    hf_store_close(store);
    remove_store(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_in_a_file_is_found),
        cmocka_unit_test(a_claim_does_not_load_a_damaged_history),
        cmocka_unit_test(damage_on_a_server_is_found),
        cmocka_unit_test(a_commit_refuses_what_it_cannot_build_on),
    };
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-session-doctor-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    pg_server_start(&server);
    int rc = cmocka_run_group_tests_name("session_doctor", tests, NULL, NULL);
    (void)rmdir(folder);
    return rc;
}
