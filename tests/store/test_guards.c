/* The guards refuse in plain SQL what the library refuses (R5, R13, R16, R20; rule 16). */

#include <dirent.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/pg.h"
#include "support/unit.h"

static struct pg_server server;

struct world {
    char folder[64];
    char path[80];
    struct hf_store *store;
    sqlite3 *db;
    PGconn *pg; /* instead of db */
};

/* ---- a store and a plain connection -------------------------------------------------------- */

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    assert_non_null(world);
    (void)snprintf(world->folder, sizeof(world->folder), "/tmp/hf-guards-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    (void)snprintf(world->path, sizeof(world->path), "%s/db", world->folder);
    assert_int_equal(hf_store_open(world->path, &options, &world->store, NULL), 0);
    assert_int_equal(sqlite3_open(world->path, &world->db), SQLITE_OK);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    assert_int_equal(sqlite3_close(world->db), SQLITE_OK);
    hf_store_close(world->store);
    DIR *folder = opendir(world->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[400];
        (void)snprintf(path, sizeof(path), "%s/%s", world->folder, entry->d_name);
        (void)unlink(path); /* "." and ".." stay, and go with the folder */
    }
    if (folder)
        (void)closedir(folder); /* read only: nothing to lose */
    (void)rmdir(world->folder); /* a folder left behind harms no test */
    free(world);
    return 0;
}

static int set_up_postgres(void **state)
{
    char url[400];
    struct world *world = calloc(1, sizeof(*world));
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    assert_non_null(world);
    assert_int_equal(hf_store_open(pg_server_schema(server.url, "guards", url), &options,
                                   &world->store, NULL),
                     0);
    world->pg = PQconnectdb(server.url);
    PQclear(
        PQexec(world->pg, "SET search_path = guards; SET client_min_messages = warning"));
    *state = world;
    return 0;
}

static int tear_down_postgres(void **state)
{
    struct world *world = *state;
    struct pg_place place = { .server = &server, .base = server.url, .schema = "guards" };
    PQclear(PQexec(world->pg, "DROP INDEX IF EXISTS alien"));
    PQfinish(world->pg);
    hf_store_close(world->store);
    pg_place_discard(&place);
    free(world);
    return 0;
}

/* 0: done, 1: a constraint or a guard refused, -1: something different. */
static int judged(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    return code && (strncmp(code, "23", 2) == 0 || strcmp(code, "HF002") == 0) ? 1 : -1;
}

/* A rule of rows is named as a CHECK would be. */
static void assert_named(const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (code && strcmp(code, "23514") == 0)
        assert_non_null(PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME));
}

static int tried_postgres(struct world *world, const char *sql)
{
    PQclear(PQexec(world->pg, "BEGIN"));
    PGresult *result = PQexec(world->pg, sql);
    int verdict = judged(result);
    assert_named(result);
    PQclear(result);
    PQclear(PQexec(world->pg, "ROLLBACK"));
    return verdict;
}

/* Runs the statement and rolls it back; returns its outcome, as above. */
static int tried(struct world *world, const char *sql)
{
    if (world->pg)
        return tried_postgres(world, sql);
    char *why = NULL;
    assert_int_equal(sqlite3_exec(world->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), 0);
    int rc = sqlite3_exec(world->db, sql, NULL, NULL, &why);
    sqlite3_free(why);
    if (!sqlite3_get_autocommit(world->db))
        assert_int_equal(sqlite3_exec(world->db, "ROLLBACK", NULL, NULL, NULL), 0);
    return rc == SQLITE_OK ? 0 : rc == SQLITE_CONSTRAINT ? 1 : -1;
}

static void refused(struct world *world, const char *sql)
{
    if (tried(world, sql) != 1)
        fail_msg("not refused: %s", sql);
}

static void allowed(struct world *world, const char *sql)
{
    if (tried(world, sql) != 0)
        fail_msg("refused: %s", sql);
}

/* Runs it for good. */
static void done(struct world *world, const char *sql)
{
    if (!world->pg) {
        assert_int_equal(sqlite3_exec(world->db, sql, NULL, NULL, NULL), SQLITE_OK);
        return;
    }
    PGresult *result = PQexec(world->pg, sql);
    assert_int_equal(judged(result), 0);
    PQclear(result);
}

static long counted(struct world *world, const char *sql)
{
    sqlite3_stmt *count = NULL;
    long number;
    if (world->pg) {
        PGresult *result = PQexec(world->pg, sql);
        assert_int_equal(PQntuples(result), 1);
        number = strtol(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
        return number;
    }
    assert_int_equal(sqlite3_prepare_v2(world->db, sql, -1, &count, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    number = sqlite3_column_int(count, 0);
    assert_int_equal(sqlite3_finalize(count), SQLITE_OK);
    return number;
}

/* ---- rows in every status, by the library ---------------------------------------------------- */

static void change(struct world *world, struct hf_change request)
{
    struct hf_answer *answer = NULL;
    request.size = sizeof(request);
    assert_int_equal(hf_work_change(world->store, NULL, &request, 1, 0, &answer, NULL),
                     0);
    assert_int_equal(hf_answer_at(answer, 0)->code, 0);
    hf_answer_free(answer);
}

static void made(struct world *world, const char *name, enum hf_disposition disposition,
                 char ret_id[64])
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = name,
                                    .priority = -1,
                                    .disposition = disposition };
    assert_int_equal(hf_work_create(world->store, NULL, &request, 1, 0, &answer, NULL),
                     0);
    (void)snprintf(ret_id, 64, "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
}

static void claimed(struct world *world, const char *id, char ret_token[300])
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "alice", .id = id };
    assert_int_equal(hf_work_claim(world->store, NULL, &claim, &answer, NULL), 0);
    (void)snprintf(ret_token, 300, "%s", hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
}

static void external_in_status(struct world *world, enum hf_status status, const char *id)
{
    struct hf_change request = { .id = id, .status = status };
    if (status == HF_STATUS_ABANDONED) {
        request.verb = HF_VERB_REQUEST_ABANDON;
        request.reason = "gone";
        request.status = HF_STATUS_NONE;
        change(world, request);
        struct hf_sweep_report report;
        assert_int_equal(hf_work_sweep(world->store, NULL, 0, &report, NULL), 0);
    } else if (status != HF_STATUS_WAITING_EXTERNAL) {
        request.verb = HF_VERB_CLOSE_OUT;
        request.authority = "engine";
        change(world, request);
    }
}

static void in_status_of(struct world *world, enum hf_disposition disposition,
                         enum hf_status status, char ret_id[64])
{
    char token[300], name[100];
    (void)snprintf(name, sizeof(name), "%s %s", hf_disposition_word(disposition),
                   hf_status_word(status));
    made(world, name, disposition, ret_id);
    if (disposition == HF_DISPOSITION_EXTERNALLY_OWNED) {
        external_in_status(world, status, ret_id);
        return;
    }
    if (status == HF_STATUS_QUEUED)
        return;
    claimed(world, ret_id, token);
    if (status == HF_STATUS_RUNNING)
        return;
    struct hf_change request = { .id = ret_id, .token = token, .status = status };
    if (status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL) {
        request.verb = HF_VERB_WAIT;
        request.ref = "r";
    } else if (status == HF_STATUS_RETRY_SCHEDULED) {
        request.verb = HF_VERB_FAIL;
        request.error_class = "rate_limit";
    } else if (status == HF_STATUS_ABANDONED) {
        request.verb = HF_VERB_ABANDON;
    } else {
        request.verb = HF_VERB_CLOSE_OUT;
    }
    change(world, request);
}

static void in_status(struct world *world, enum hf_status status, char ret_id[64])
{
    bool abandoned = status == HF_STATUS_ABANDONED;
    in_status_of(world,
                 abandoned ? HF_DISPOSITION_OWNER_BOUND : HF_DISPOSITION_RERUNNABLE,
                 status, ret_id);
}

/* The columns that go with a status, so that only the transition itself can be at fault. */
static const char *const belonging[HF_STATUS_COUNT] = {
    [HF_STATUS_QUEUED] = "",
    [HF_STATUS_RUNNING] =
        ", claim_group = 'n', owner = 'x', lease_expires_at = 9, lease_incarnation = 1, "
        "attempt_count = attempt_count + 1, lease_fence = lease_fence + 1",
    [HF_STATUS_WAITING_USER] = ", waiting_kind = 'user', waiting_ref = 'r'",
    [HF_STATUS_WAITING_EXTERNAL] = ", waiting_kind = 'external', waiting_ref = 'r'",
    [HF_STATUS_RETRY_SCHEDULED] = ", next_retry_at = 9",
    [HF_STATUS_DONE] = ", finished_at = 9",
    [HF_STATUS_FAILED] = ", finished_at = 9",
    [HF_STATUS_TIMEOUT] = ", finished_at = 9",
    [HF_STATUS_CANCELLED] = ", finished_at = 9",
    [HF_STATUS_ABANDONED] = ", finished_at = 9",
};

/* The design's table: rows from, columns to (q r wu we rs d f t c a). No line: units of this
 * disposition never have the status. */
static const char *const legal[HF_DISPOSITION_COUNT][HF_STATUS_COUNT] = {
    [HF_DISPOSITION_RERUNNABLE] = {
        [HF_STATUS_QUEUED] = "-r-----tc-",          [HF_STATUS_RUNNING] = "q-WXsdftc-",
        [HF_STATUS_WAITING_USER] = "qr---dftc-",    [HF_STATUS_WAITING_EXTERNAL] = "qr-----tc-",
        [HF_STATUS_RETRY_SCHEDULED] = "q-------c-", [HF_STATUS_DONE] = "q---------",
        [HF_STATUS_FAILED] = "q---------",          [HF_STATUS_TIMEOUT] = "q---------",
        [HF_STATUS_CANCELLED] = "q---------",
    },
    [HF_DISPOSITION_OWNER_BOUND] = {
        [HF_STATUS_QUEUED] = "-r-----tc-",          [HF_STATUS_RUNNING] = "--WX-dftca",
        [HF_STATUS_WAITING_USER] = "-r---df-ca",    [HF_STATUS_WAITING_EXTERNAL] = "-r------ca",
        [HF_STATUS_DONE] = "q---------",            [HF_STATUS_FAILED] = "q---------",
        [HF_STATUS_TIMEOUT] = "q---------",         [HF_STATUS_CANCELLED] = "q---------",
        [HF_STATUS_ABANDONED] = "q---------",
    },
    [HF_DISPOSITION_EXTERNALLY_OWNED] = {
        [HF_STATUS_WAITING_EXTERNAL] = "-----df-ca", [HF_STATUS_DONE] = "----------",
        [HF_STATUS_FAILED] = "----------",           [HF_STATUS_CANCELLED] = "----------",
        [HF_STATUS_ABANDONED] = "----------",
    },
};

static void try_move(struct world *world, const char *id, bool may, enum hf_status to,
                     const char *more)
{
    char sql[1000];
    bool runs = to == HF_STATUS_RUNNING;
    bool waits = to == HF_STATUS_WAITING_USER || to == HF_STATUS_WAITING_EXTERNAL;
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE work_state SET status = '%s'%s%s%s%s%s%s "
                   "WHERE seq = (SELECT seq FROM work_spec WHERE work_id = '%s')",
                   hf_status_word(to), belonging[to], more,
                   runs ? ""
                        : ", claim_group = NULL, owner = NULL, lease_expires_at = NULL"
                          ", lease_check_at = NULL",
                   waits ? "" : ", waiting_kind = NULL, waiting_ref = NULL",
                   to == HF_STATUS_RETRY_SCHEDULED ? "" : ", next_retry_at = NULL",
                   hf_status_terminal(to) ? "" : ", finished_at = NULL", id);
    if (may)
        allowed(world, sql);
    else
        refused(world, sql);
}

static void try_moves(struct world *world, enum hf_disposition disposition,
                      enum hf_status from)
{
    const char *line = legal[disposition][from];
    bool requeue = hf_status_terminal(from);
    char id[64];
    if (!line)
        return;
    in_status_of(world, disposition, from, id);
    for (int to = HF_STATUS_QUEUED; to < HF_STATUS_COUNT; to++)
        if ((int)from != to)
            try_move(world, id, line[to - 1] != '-', (enum hf_status)to,
                     requeue ? ", generation = generation + 1, failures = 0" : "");
}

static void r20_plain_sql_makes_no_illegal_transition(void **state)
{
    struct world *world = *state;
    for (int from = HF_STATUS_QUEUED; from < HF_STATUS_COUNT; from++)
        try_moves(world, HF_DISPOSITION_RERUNNABLE, (enum hf_status)from);
}

static void r22_plain_sql_makes_no_transition_that_the_disposition_forbids(void **state)
{
    struct world *world = *state;
    for (int from = HF_STATUS_QUEUED; from < HF_STATUS_COUNT; from++) {
        try_moves(world, HF_DISPOSITION_OWNER_BOUND, (enum hf_status)from);
        try_moves(world, HF_DISPOSITION_EXTERNALLY_OWNED, (enum hf_status)from);
    }
    refused(world, "INSERT INTO work_state (seq, due_at, max_attempts, kind, queue, "
                   "updated_at, status, source_system, priority, disposition) VALUES "
                   "(999999, 1, 1, 'k', 'q', 1, 'queued', 'manual', 5, "
                   "'externally_owned')");
}

/* What a row counts goes with its changes of status, by one, and only there. */
static void plain_sql_sets_no_count_of_an_unfinished_row(void **state)
{
    static const char *const counts[] = { "lease_fence", "attempt_count", "generation",
                                          "failures" };
    static const char *const by[] = { "+ 2", "- 1", "+ 2147483640", "+ 1" };
    struct world *world = *state;
    for (int status = HF_STATUS_QUEUED; status <= HF_STATUS_RETRY_SCHEDULED; status++) {
        char id[64], sql[300];
        in_status(world, (enum hf_status)status, id);
        for (size_t i = 0; i < 16; i++) {
            const char *count = counts[i / 4];
            (void)snprintf(sql, sizeof(sql),
                           "UPDATE work_state SET %s = %s %s WHERE status = '%s'", count,
                           count, by[i % 4], hf_status_word((enum hf_status)status));
            refused(world, sql);
        }
    }
}

static void a_start_counts_one_attempt_and_one_fence(void **state)
{
    struct world *world = *state;
    static const char start[] =
        "UPDATE work_state SET status = 'running', claim_group = 'n', owner = 'x', "
        "lease_expires_at = 9, lease_incarnation = 1";
    static const struct {
        const char *counts;
        bool may;
    } tries[] = {
        { ", attempt_count = attempt_count + 1, lease_fence = lease_fence + 1", true },
        { ", attempt_count = attempt_count + 1", false },
        { ", lease_fence = lease_fence + 1", false },
        { ", attempt_count = attempt_count + 2, lease_fence = lease_fence + 1", false },
        { ", attempt_count = attempt_count + 1, lease_fence = lease_fence + 2", false },
        { ", attempt_count = attempt_count + 1, lease_fence = lease_fence + 1, "
          "generation = 1",
          false },
        { ", attempt_count = attempt_count + 1, lease_fence = lease_fence + 1, "
          "failures = 2",
          false },
    };
    char id[64], sql[400];
    in_status(world, HF_STATUS_QUEUED, id);
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        (void)snprintf(sql, sizeof(sql), "%s%s", start, tries[i].counts);
        if (tries[i].may)
            allowed(world, sql);
        else
            refused(world, sql);
    }
}

/* SQLite: two units would change bodies, or states. */
static void no_other_name_of_the_key_changes_it(void **state)
{
    struct world *world = *state;
    static const char *const names[] = { "rowid", "_rowid_", "oid", "ROWID", "\"OID\"" };
    char one[64], two[64], sql[100];
    made(world, "one", HF_DISPOSITION_RERUNNABLE, one);
    made(world, "two", HF_DISPOSITION_RERUNNABLE, two);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        static const char *const tables[] = { "work_state", "work_spec" };
        for (size_t t = 0; t < 2; t++) {
            (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s = 5 - %s", tables[t],
                           names[i], names[i]);
            refused(world, sql);
        }
    }
}

/* SQLite: the id of an event comes with the update of its row. */
static void an_event_id_is_the_next_one_and_used_once(void **state)
{
    struct world *world = *state;
    static const char *const ways[] = { "", "OR IGNORE", "OR REPLACE", "OR FAIL",
                                        "OR ABORT" };
    static const char *const ids[] = {
        "(SELECT min(event_id) FROM work_event)",
        "(SELECT max(event_id) FROM work_event)",
        "9223372036854775807",
        "9223372036854775806",
        "1125899906842625",
    };
    char id[64], sql[300];
    in_status(world, HF_STATUS_DONE, id);
    in_status(world, HF_STATUS_QUEUED, id);
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
            (void)snprintf(sql, sizeof(sql),
                           "UPDATE %s work_state SET status = 'cancelled', finished_at = "
                           "9, event_id = %s WHERE status = 'queued'",
                           ways[w], ids[i]);
            refused(world, sql);
        }
    }
    allowed(world, "UPDATE work_state SET status = 'cancelled', finished_at = 9, "
                   "event_id = 2 + (SELECT max(seq) FROM work_spec) "
                   "WHERE status = 'queued'");
}

static void postgres_truncates_nothing(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_DONE, id);
    refused(world, "TRUNCATE work_event");
    refused(world, "TRUNCATE work_state");
    refused(world, "TRUNCATE work_spec");
    refused(world, "TRUNCATE work_spec, work_state, work_event CASCADE");
}

static void a03_a_requeue_begins_a_generation_or_is_refused(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_DONE, id);
    refused(world, "UPDATE work_state SET status = 'queued', finished_at = NULL");
    refused(world, "UPDATE work_state SET status = 'queued', finished_at = NULL, "
                   "generation = generation + 2");
    refused(world, "UPDATE work_state SET status = 'queued', finished_at = NULL, "
                   "generation = generation + 1, failures = 1");
    allowed(world, "UPDATE work_state SET status = 'queued', finished_at = NULL, "
                   "generation = generation + 1");
}

static void r05_a_row_is_whole_in_every_status(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_QUEUED, id);
    refused(world, "UPDATE work_state SET status = 'running'");
    refused(world, "UPDATE work_state SET status = 'running', claim_group = 'n'");
    refused(world, "UPDATE work_state SET status = 'running', claim_group = 'n', "
                   "owner = 'x'");
    refused(world, "UPDATE work_state SET claim_group = 'n', owner = 'x', "
                   "lease_expires_at = 9");
    refused(world, "UPDATE work_state SET status = 'cancelled'");
    refused(world, "UPDATE work_state SET finished_at = 9");
    refused(world, "UPDATE work_state SET next_retry_at = 9");
    refused(world, "UPDATE work_state SET waiting_kind = 'user'");
    refused(world, "UPDATE work_state SET status = 'asleep'");
    refused(world, "UPDATE work_state SET gate = 'moon'");
    refused(world, "UPDATE work_state SET priority = 10");
    refused(world, "UPDATE work_state SET failures = -1");
    refused(world, "UPDATE work_state SET owner = 'x'");
}

/* Of what goes with other statuses a row has nothing; only the queued may have a gate. */
static void r05_a_row_has_no_more_than_its_status_asks_for(void **state)
{
    static const char *const more[] = { "gate = 'due'", "waiting_kind = 'user'",
                                        "next_retry_at = 9", "finished_at = 9",
                                        "session_fence = 9" };
    struct world *world = *state;
    for (int status = HF_STATUS_QUEUED; status < HF_STATUS_COUNT; status++) {
        char id[64], sql[300];
        in_status(world, (enum hf_status)status, id);
        for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
            bool same = (i == 1 && status == HF_STATUS_WAITING_USER) ||
                        (i == 2 && status == HF_STATUS_RETRY_SCHEDULED);
            (void)snprintf(sql, sizeof(sql),
                           "UPDATE work_state SET %s WHERE status = '%s'", more[i],
                           hf_status_word((enum hf_status)status));
            if (same || (i == 0 && status == HF_STATUS_QUEUED))
                allowed(world, sql);
            else
                refused(world, sql);
        }
    }
}

static void r05_a_new_row_is_whole(void **state)
{
    static const char *const wrong[][2] = {
        { "status", "'asleep'" },
        { "status", "'queued:'" },
        { "status", "'running'" },
        { "disposition", "'often'" },
        { "source_system", "'moon'" },
        { "priority", "-1" },
        { "priority", "10" },
        { "attempt_count", "-1" },
        { "generation", "-1" },
        { "lease_fence", "-1" },
        { "failures", "-1" },
        { "owner", "'x'" },
        { "gate", "'moon'" },
        { "gate", "':due'" },
        { "session_fence", "1" },
        { "lease_expires_at", "9" },
        { "lane_key, session_id", "'l', 's'" },
        { "disposition, session_id", "'expire', 's'" },
        { "waiting_kind", "'user'" },
        { "finished_at", "9" },
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *column = wrong[i][0];
        char sql[600];
        (void)snprintf(sql, sizeof(sql),
                       "INSERT INTO work_state (seq, due_at, max_attempts, kind, queue, "
                       "updated_at%s%s%s, %s) "
                       "VALUES (999999, 1, 1, 'k', 'q', 1%s%s%s, %s)",
                       strcmp(column, "status") ? ", status" : "",
                       strcmp(column, "source_system") ? ", source_system" : "",
                       strcmp(column, "priority") ? ", priority" : "", column,
                       strcmp(column, "status") ? ", 'queued'" : "",
                       strcmp(column, "source_system") ? ", 'manual'" : "",
                       strcmp(column, "priority") ? ", 5" : "", wrong[i][1]);
        refused(world, sql);
    }
    allowed(world,
            "INSERT INTO work_state (seq, due_at, max_attempts, kind, queue, updated_at, "
            "status, source_system, priority, session_id) "
            "VALUES (999999, 1, 1, 'k', 'q', 1, 'queued', 'manual', 9, 's')");
}

/* PostgreSQL looks at a request when its unit's other row comes. */
static void r05_a_new_request_is_whole(void **state)
{
    static const char begin[] =
        "INSERT INTO work_spec (seq, created_at, work_id, source_id, "
        "request_hash, actor_kind, actor, source_system, first_status, "
        "source_run_id, payload, payload_ref) "
        "VALUES (999999, 1, 'w', 's', '', 'system', 'a', ";
    static const char other[] =
        "; INSERT INTO work_state (seq, due_at, max_attempts, kind, queue, updated_at, "
        "status, source_system, priority) "
        "VALUES (999999, 1, 1, 'k', 'q', 1, 'queued', 'manual', 9)";
    static const struct {
        const char *end;
        bool fits;
    } rows[] = {
        { "'manual', 'queued', '', '1', NULL)", true },
        { "'scheduler', 'done', 'r', NULL, 'f')", true },
        { "'scheduler', 'queued', '', NULL, NULL)", false },
        { "'manual', 'running', '', NULL, NULL)", false },
        { "'manual', 'queued', '', '1', 'f')", false },
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char sql[700];
        (void)snprintf(sql, sizeof(sql), "%s%s%s", begin, rows[i].end, other);
        if (world->db) { /* a blob is written so there */
            char *hash = strstr(sql, "''");
            memmove(hash + 1, hash, strlen(hash) + 1);
            hash[0] = 'x';
        }
        if (rows[i].fits)
            allowed(world, sql);
        else
            refused(world, sql);
    }
}

static void nothing_runs_without_a_lease_and_nothing_else_has_one(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_RUNNING, id);
    allowed(world, "UPDATE work_state SET lease_expires_at = lease_expires_at + 1");
    refused(world, "UPDATE work_state SET lease_expires_at = NULL");
    refused(world,
            "UPDATE work_state SET lease_expires_at = NULL, lease_check_at = NULL");
    refused(world, "UPDATE work_state SET claim_group = NULL");
    refused(world, "UPDATE work_state SET owner = NULL");
    refused(world, "UPDATE work_state SET session_fence = 1");
    in_status(world, HF_STATUS_QUEUED, id);
    refused(world, "UPDATE work_state SET lease_expires_at = 9 WHERE status = 'queued'");
    refused(world, "UPDATE work_state SET owner = 'x' WHERE status = 'queued'");
    refused(world, "UPDATE work_state SET claim_group = 'x' WHERE status = 'queued'");
}

static void identity_columns_never_change(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_QUEUED, id);
    static const char *const columns[] = { "seq",        "tenant",   "source_system",
                                           "kind",       "lane_key", "dedup_key",
                                           "disposition" };
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        char sql[100];
        (void)snprintf(sql, sizeof(sql), "UPDATE work_state SET %s = %s", columns[i],
                       i == 0 ? "99" : "'manual'");
        refused(world, sql);
    }
    refused(world, "UPDATE work_spec SET payload = '1'");
    refused(world, "UPDATE work_spec SET work_id = 'x'");
    refused(world, "UPDATE work_spec SET source_id = 'x'");
}

static void a_fence_never_falls(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_RUNNING, id);
    refused(world, "UPDATE work_state SET lease_fence = 0");
    refused(world, "UPDATE work_state SET lease_fence = lease_fence + 1");
}

static void r16_events_never_change_and_go_only_with_finished_work(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_RUNNING, id);
    refused(world, "UPDATE work_event SET message = 'forged'");
    refused(world, "UPDATE work_event SET to_status = 'done'");
    refused(world, "DELETE FROM work_event");
    refused(world, "DELETE FROM work_event WHERE event_id = 2");
    refused(world, "UPDATE work_spec SET actor = 'forged'"); /* the first event */
}

static void only_finished_work_is_deleted_and_only_whole(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_RUNNING, id);
    refused(world, "DELETE FROM work_state");
    refused(world, "DELETE FROM work_spec");
    in_status(world, HF_STATUS_DONE, id);
    refused(world, "DELETE FROM work_state WHERE status = 'done'");
    refused(world, "DELETE FROM work_spec WHERE source_id = 'rerunnable done'");
}

static void r13_a_finished_row_keeps_its_outcome(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_FAILED, id);
    refused(world, "UPDATE work_state SET result = '{}'");
    refused(world, "UPDATE work_state SET status_reason = 'other'");
    refused(world, "UPDATE work_state SET error_class = 'other'");
    refused(world, "UPDATE work_state SET finished_at = 1");
    refused(world, "UPDATE work_state SET priority = 10");
    allowed(world, "UPDATE work_state SET priority = 9"); /* it is no outcome */
}

static void r09_a_plain_update_writes_its_event(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_QUEUED, id);
    done(world, "UPDATE work_state SET status = 'cancelled', finished_at = 9, "
                "event_type = 'transition'");
    assert_int_equal(counted(world, "SELECT count(*) FROM work_event WHERE from_status = "
                                    "'queued' AND to_status = 'cancelled'"),
                     1);
}

/* Claims and close-outs write theirs themselves on PostgreSQL: one each, and no second one by
 * the guard; and a plain update after them is not taken for one of theirs. */
static void every_transition_has_one_event(void **state)
{
    struct world *world = *state;
    char id[64];
    in_status(world, HF_STATUS_DONE, id);
    assert_int_equal(counted(world, "SELECT count(*) FROM work_event"), 2);
    done(world, "UPDATE work_state SET status = 'queued', finished_at = NULL, "
                "generation = generation + 1");
    assert_int_equal(counted(world, "SELECT count(*) FROM work_event"), 3);
}

#define BORN(status, more, values)                                                       \
    "INSERT INTO work_spec (seq, work_id, source_system, source_id, request_hash,"       \
    " first_status, actor_kind, actor, created_at)"                                      \
    " SELECT 1000, 'born', 'manual', 'born', request_hash, 'queued', 'human', 'x', 1"    \
    "   FROM work_spec;"                                                                 \
    "INSERT INTO work_state (seq, source_system, kind, queue, priority, max_attempts,"   \
    " due_at, updated_at, status" more ")"                                               \
    " VALUES (1000, 'manual', 'k', 'q', 5, 3, 1, 1, '" status "'" values ")"

static void r20_a_unit_is_born_only_as_the_law_says(void **state)
{
    struct world *world = *state;
    char id[64];
    made(world, "first", HF_DISPOSITION_RERUNNABLE, id);
    allowed(world, BORN("queued", "", ""));
    allowed(world, BORN("done", ", finished_at", ", 1"));
    refused(world, BORN("failed", ", finished_at", ", 1"));
    refused(world, BORN("running",
                        ", owner, claim_group, lease_fence, lease_incarnation, "
                        "lease_ttl_ms, lease_expires_at",
                        ", 'o', 'g', 1, 1, 1000, 5000"));
    refused(world, BORN("retry_scheduled", ", next_retry_at", ", 5"));
    refused(world, BORN("waiting_external", ", waiting_kind", ", 'external'"));
}

/* Only the lane's slot and a dedup key are answers to a caller; any other key that refuses
 * a change is told as the fault it is. */
static void a_key_that_is_no_lane_and_no_dedup_key_is_not_taken_for_one(void **state)
{
    struct world *world = *state;
    char one[64], two[64];
    struct hf_err err = { 0 };
    struct hf_answer *answer = NULL;
    made(world, "alien-1", HF_DISPOSITION_RERUNNABLE, one);
    made(world, "alien-2", HF_DISPOSITION_RERUNNABLE, two);
    done(world, "CREATE UNIQUE INDEX alien ON work_state (status_reason)"
                " WHERE status = 'cancelled'");
    change(world, (struct hf_change){ .verb = HF_VERB_CANCEL, .id = one, .reason = "x" });
    struct hf_change again = {
        .size = sizeof(again), .verb = HF_VERB_CANCEL, .id = two, .reason = "x"
    };
    assert_int_equal(hf_work_change(world->store, NULL, &again, 1, 0, &answer, &err),
                     HF_EINTERNAL);
    assert_non_null(strstr(err.message, "status_reason"));
}

/* ---- sessions -------------------------------------------------------------------------------- */

static const char text[] = "{\"message\":{\"id\":\"m\",\"parts\":[{\"content\":\"x\"}]}}";

/* A session with one committed record, an open turn with a provisional one, and a message behind
 * it. */
static void talked(struct world *world)
{
    struct hf_session_spec made_so = { .size = sizeof(made_so),
                                       .session_id = "s",
                                       .agent = "a" };
    struct hf_session_send sent = { .size = sizeof(sent),
                                    .session_id = "s",
                                    .message = text };
    struct hf_session_claim claim = { .size = sizeof(claim), .session_id = "s" };
    struct hf_session_answer *answer = NULL;
    struct hf_answer *units = NULL;
    struct hf_message said = { .id = "m", .role = HF_ROLE_ASSISTANT };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    assert_int_equal(hf_session_create(world->store, NULL, &made_so, &answer, NULL), 0);
    hf_session_answer_free(answer);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_session_send(world->store, NULL, &sent, &units, NULL), 0);
        hf_answer_free(units);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_session_claim(world->store, NULL, &claim, &answer, NULL), 0);
        struct hf_session_spent spent = { "model", "m", { .input = 1 } };
        struct hf_session_blob blob = {
            .hash = { 0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
                      0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
                      0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55 },
            .bytes = { "", 0 }
        };
        struct hf_session_commit commit = { .size = sizeof(commit),
                                            .session_id = "s",
                                            .token = answer->token,
                                            .turn_id = answer->turn->turn_id,
                                            .chain = answer->turn->chain,
                                            .records = &record,
                                            .added_count = 1,
                                            .status = HF_STATUS_DONE,
                                            .outcome = "{}",
                                            .blobs = &blob,
                                            .blob_count = 1,
                                            .spent = &spent,
                                            .spent_count = 1,
                                            .release = true };
        struct hf_session_step step = { .size = sizeof(step),
                                        .session_id = "s",
                                        .token = answer->token,
                                        .turn_id = answer->turn->turn_id,
                                        .chain = answer->turn->chain,
                                        .records = &record,
                                        .record_count = 1,
                                        .save = { "save", 4 } };
        struct hf_session_committed committed;
        struct hf_session_stepped stepped;
        assert_int_equal(
            i == 0 ? hf_session_commit(world->store, NULL, &commit, &committed, NULL)
                   : hf_session_step(world->store, NULL, &step, &stepped, NULL),
            0);
        hf_session_answer_free(answer);
    }
}

static void plain_sql_edits_no_history_and_moves_no_head_back(void **state)
{
    struct world *world = *state;
    talked(world);
    assert_int_equal(counted(world, "SELECT count(*) FROM node"), 2);
    refused(world, "UPDATE node SET record = '{}' WHERE ordinal = 0");
    refused(world, "UPDATE node SET record = '{}' WHERE ordinal = 1");
    refused(world, "DELETE FROM node WHERE ordinal = 0");
    allowed(world, "DELETE FROM node WHERE ordinal = 1"); /* provisional */
    refused(world, "UPDATE session SET head_revision = 0, record_count = 0");
    refused(world, "UPDATE session SET head_revision = head_revision + 2");
    refused(world, "UPDATE session SET record_count = record_count + 1");
    refused(world, "UPDATE session SET lease_fence = lease_fence - 1");
    refused(world, "UPDATE session SET session_id = 'other'");
    refused(world, "UPDATE session SET claim_group = NULL");
    refused(world, "UPDATE session SET ready_at = 1"); /* it is leased */
    refused(world, "DELETE FROM session");
    refused(world, "UPDATE session_meta SET relation = 'fork', parent_id = 'p'");
    refused(world, "DELETE FROM session_meta");
    refused(world,
            "UPDATE session_turn SET outcome = '{}' WHERE finished_at IS NOT NULL");
    refused(world, "UPDATE session_turn SET step = -1 WHERE finished_at IS NULL");
    refused(world, "DELETE FROM session_turn");
    refused(world, "UPDATE session_input SET kind = 'wake'");
    refused(world, "DELETE FROM session_input");
    refused(world, "UPDATE blob SET bytes = hash");
    refused(world, "DELETE FROM blob");
    refused(world, "UPDATE usage SET input = 0");
    refused(world, "DELETE FROM usage");
}

static void plain_sql_runs_no_session_row_without_its_pin(void **state)
{
    struct world *world = *state;
    talked(world);
    assert_int_equal(counted(world, "SELECT count(*) FROM work_state WHERE status = "
                                    "'running' AND session_fence IS NOT NULL"),
                     1);
    refused(world, "UPDATE work_state SET session_fence = NULL WHERE status = 'running'");
    refused(world, "UPDATE work_state SET session_fence = NULL, lease_expires_at = 9,"
                   " lease_check_at = 9 WHERE status = 'running'");
    refused(world, "UPDATE work_state SET status = 'running', gate = NULL, owner = 'o',"
                   " claim_group = 'n', lease_expires_at = 9, lease_check_at = 9,"
                   " lease_fence = 1, attempt_count = 1 WHERE status = 'queued'");
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "o", .queue = "session" };
    assert_int_equal(hf_work_claim(world->store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 0);
    hf_answer_free(answer);
}

static int loaded(struct world *world, struct hf_err *err)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    int rc = hf_session_load(world->store, &load, &answer, err);
    hf_session_answer_free(answer);
    return rc;
}

/* As a tool would do it that goes past the guards. */
static void unguarded(struct world *world, const char *guard, const char *table,
                      const char *sql)
{
    char drop[100];
    if (world->pg)
        (void)snprintf(drop, sizeof(drop), "DROP TRIGGER %s ON %s", guard, table);
    else
        (void)snprintf(drop, sizeof(drop), "DROP TRIGGER %s", guard);
    done(world, drop);
    done(world, sql);
}

static void a_broken_chain_is_corruption_and_stays_as_it_is(void **state)
{
    struct world *world = *state;
    struct hf_err err = { 0 };
    struct hf_session_answer *answer = NULL;
    talked(world);
    assert_int_equal(loaded(world, &err), 0);
    unguarded(
        world, "node_frozen", "node",
        "UPDATE node SET record = '{\"message\":{\"id\":\"x\"}}' WHERE ordinal = 0");
    assert_int_equal(loaded(world, &err), HF_ECORRUPT);
    assert_string_equal(err.field, "chain");
    assert_int_equal(hf_session_node(world->store, "s", 0, &answer, &err), HF_ECORRUPT);
    assert_int_equal(loaded(world, &err), HF_ECORRUPT); /* nothing was mended */
    done(world, "UPDATE node SET record = 'no record' WHERE ordinal = 0");
    assert_int_equal(loaded(world, &err), HF_ECORRUPT);
    unguarded(world, "node_delete", "node", "DELETE FROM node WHERE ordinal = 0");
    assert_int_equal(loaded(world, &err), HF_ECORRUPT); /* and not an empty history */
}

/* There is no verb for it yet; the column is what all verbs look at. */
static void a_deleted_session_is_told_by_every_verb(void **state)
{
    struct world *world = *state;
    struct hf_session_answer *answer = NULL;
    struct hf_answer *units = NULL;
    struct hf_session_spec again = { .size = sizeof(again),
                                     .session_id = "s",
                                     .agent = "a" };
    struct hf_session_claim claim = { .size = sizeof(claim), .session_id = "s" };
    struct hf_session_send sent = { .size = sizeof(sent),
                                    .session_id = "s",
                                    .message = text };
    talked(world);
    done(world, "UPDATE session SET deleted_at = 1");
    assert_int_equal(hf_session_create(world->store, NULL, &again, &answer, NULL),
                     HF_ESESSIONDELETED);
    assert_int_equal(hf_session_claim(world->store, NULL, &claim, &answer, NULL),
                     HF_ESESSIONDELETED);
    assert_int_equal(hf_session_send(world->store, NULL, &sent, &units, NULL),
                     HF_ESESSIONDELETED);
    assert_int_equal(hf_session_release(world->store, NULL, "s", "hf1.1.2.x", NULL),
                     HF_ESESSIONDELETED);
    assert_int_equal(counted(world, "SELECT count(*) FROM session_input"), 3);
}

/* Each on both engines. */
#define GUARD(name)                                                                      \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down),                            \
    {                                                                                    \
#        name " (PostgreSQL)", name, set_up_postgres, tear_down_postgres, NULL           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        GUARD(a_key_that_is_no_lane_and_no_dedup_key_is_not_taken_for_one),
        GUARD(r20_plain_sql_makes_no_illegal_transition),
        GUARD(r22_plain_sql_makes_no_transition_that_the_disposition_forbids),
        GUARD(plain_sql_sets_no_count_of_an_unfinished_row),
        GUARD(a_start_counts_one_attempt_and_one_fence),
        cmocka_unit_test_setup_teardown(no_other_name_of_the_key_changes_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_event_id_is_the_next_one_and_used_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(postgres_truncates_nothing, set_up_postgres,
                                        tear_down_postgres),
        GUARD(r20_a_unit_is_born_only_as_the_law_says),
        GUARD(a03_a_requeue_begins_a_generation_or_is_refused),
        GUARD(r05_a_row_is_whole_in_every_status),
        GUARD(r05_a_row_has_no_more_than_its_status_asks_for),
        GUARD(r05_a_new_row_is_whole),
        GUARD(r05_a_new_request_is_whole),
        GUARD(nothing_runs_without_a_lease_and_nothing_else_has_one),
        GUARD(identity_columns_never_change),
        GUARD(a_fence_never_falls),
        GUARD(r16_events_never_change_and_go_only_with_finished_work),
        GUARD(only_finished_work_is_deleted_and_only_whole),
        GUARD(r13_a_finished_row_keeps_its_outcome),
        GUARD(r09_a_plain_update_writes_its_event),
        GUARD(every_transition_has_one_event),
        GUARD(plain_sql_edits_no_history_and_moves_no_head_back),
        GUARD(plain_sql_runs_no_session_row_without_its_pin),
        GUARD(a_broken_chain_is_corruption_and_stays_as_it_is),
        GUARD(a_deleted_session_is_told_by_every_verb),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("guards", tests, NULL, NULL);
}
