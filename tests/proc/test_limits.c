/* Limits under eight processes, on both engines: an outside reader, by plain SQL in snapshots of
 * its own, never sees more units of a key claimable or running than its limit allows, and in
 * the end nothing waits and nothing is counted that is not there. */
#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/job.h>
#include <holdfast/store.h>
#include <holdfast/work.h>

#include "support/pg.h"
#include "support/unit.h"

#define PROCESSES 8
#define KEYS 4
#define CAP 3
#define UNITS 40 /* of each process */

static struct pg_server server;

/* ---- one of the processes ------------------------------------------------------------------ */

static void make_units(struct hf_store *store, int number)
{
    for (int i = 0; i < UNITS; i += 2) {
        char ids[2][32], keys[2][8];
        struct hf_work_spec news[2];
        struct hf_answer *answer = NULL;
        for (int k = 0; k < 2; k++) {
            (void)snprintf(ids[k], sizeof(ids[k]), "%d-%d", number, i + k);
            (void)snprintf(keys[k], sizeof(keys[k]), "k%d", (i / 2 + k * i) % KEYS);
            news[k] = (struct hf_work_spec){ .size = sizeof(news[k]),
                                             .source = HF_SOURCE_MANUAL,
                                             .source_id = ids[k],
                                             .limit_key = keys[k],
                                             .priority = (i + k) % 10,
                                             .max_attempts = 2,
                                             .retry_policy = "{\"initial_backoff_ms\":1}",
                                             .disposition = HF_DISPOSITION_RERUNNABLE };
        }
        if (hf_work_create(store, NULL, news, 2, 0, &answer, NULL))
            _exit(2);
        hf_answer_free(answer);
    }
}

/* Most are done, some are handed back, some fail and are tried again. */
static struct hf_change end_of(const struct hf_item *item, int roll)
{
    struct hf_change change = { .size = sizeof(change),
                                .id = item->work.work_id,
                                .token = item->token };
    if (roll % 7 == 0) {
        change.verb = HF_VERB_HAND_BACK;
    } else if (roll % 11 == 0) {
        change.verb = HF_VERB_FAIL;
        change.error_class = "odd";
    } else {
        change.verb = HF_VERB_CLOSE_OUT;
        change.status = HF_STATUS_DONE;
    }
    return change;
}

static bool all_ended(struct hf_store *store)
{
    struct hf_filter filter = { .size = sizeof(filter), .limit = 1 };
    struct hf_answer *page = NULL;
    if (hf_work_list(store, NULL, &filter, &page, NULL))
        _exit(3);
    bool none = hf_answer_count(page) == 0;
    hf_answer_free(page);
    return none;
}

static void work_off(struct hf_store *store, int number)
{
    char owner[16];
    (void)snprintf(owner, sizeof(owner), "w%d", number);
    for (int roll = number;; roll++) {
        struct hf_claim claim = { .size = sizeof(claim),
                                  .owner = owner,
                                  .limit = (size_t)(1 + roll % 3),
                                  .wait_ms = 20 };
        struct hf_answer *taken = NULL;
        if (hf_work_claim(store, NULL, &claim, &taken, NULL))
            _exit(4);
        size_t n = hf_answer_count(taken);
        for (size_t i = 0; i < n; i++) {
            struct hf_change change = end_of(hf_answer_at(taken, i), roll + (int)i);
            struct hf_answer *answer = NULL;
            if (hf_work_change(store, NULL, &change, 1, 0, &answer, NULL) ||
                hf_answer_at(answer, 0)->code)
                _exit(5);
            hf_answer_free(answer);
        }
        hf_answer_free(taken);
        if (n == 0 && all_ended(store))
            return;
    }
}

static pid_t start(const char *url, int number)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct hf_store *store = NULL;
        if (hf_store_open(url, NULL, &store, NULL))
            _exit(1);
        make_units(store, number);
        work_off(store, number);
        hf_store_close(store);
        _exit(0);
    }
    return pid;
}

/* ---- the reader, who uses nothing of ours --------------------------------------------------- */

static const char most_sql[] =
    "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM work_state"
    " WHERE limit_name IS NOT NULL AND gate IS NULL"
    " AND (status = 'queued' OR status = 'running') GROUP BY limit_name) AS t";
static const char left_sql[] =
    "SELECT (SELECT count(*) FROM work_state WHERE finished_at IS NULL)"
    " + (SELECT count(*) FROM work_limit WHERE used <> 0 OR granted <> 0)";
static const char done_sql[] = "SELECT count(*) FROM work_state WHERE status = 'done'";

struct reader {
    sqlite3 *lite;
    PGconn *pg;
};

static long asked(const struct reader *reader, const char *sql)
{
    long number = -1;
    if (reader->pg) {
        PGresult *rows = PQexec(reader->pg, sql);
        if (PQresultStatus(rows) != PGRES_TUPLES_OK)
            fail_msg("%s", PQerrorMessage(reader->pg));
        number = strtol(PQgetvalue(rows, 0, 0), NULL, 10);
        PQclear(rows);
    } else {
        sqlite3_stmt *st = NULL;
        assert_int_equal(sqlite3_prepare_v2(reader->lite, sql, -1, &st, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        number = (long)sqlite3_column_int64(st, 0);
        assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    }
    return number;
}

static void run_all(const char *url, const struct reader *reader)
{
    pid_t pids[PROCESSES];
    int left = PROCESSES, looks = 0;
    long most = 0;
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start(url, i);
    while (left > 0) { /* each look is a snapshot; there is nothing to wait for */
        int how = 0;
        long now = asked(reader, most_sql);
        assert_in_range(now, 0, CAP);
        most = now > most ? now : most;
        looks++;
        if (waitpid(-1, &how, WNOHANG) > 0) {
            assert_int_equal(how, 0);
            left--;
        }
    }
    (void)pids;
    assert_int_equal(most, CAP); /* it was full, so the limit mattered */
    assert_true(looks > 20);
    assert_int_equal(asked(reader, left_sql), 0);
    assert_true(asked(reader, done_sql) > PROCESSES * UNITS / 2);
}

static void set_limits(const char *url)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (hf_store_open(url, NULL, &store, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "key:k%d", i);
        struct hf_limit limit = { .size = sizeof(limit),
                                  .name = name,
                                  .max_running = CAP };
        assert_int_equal(hf_limit_set(store, NULL, &limit, &err), 0);
    }
    hf_store_close(store);
}

static void no_limit_is_passed_by_eight_processes_on_postgres(void **state)
{
    (void)state;
    char url[400];
    struct reader reader = { .pg = NULL };
    pg_server_schema(server.url, "limits", url);
    set_limits(url);
    reader.pg = PQconnectdb(server.url);
    assert_int_equal(PQstatus(reader.pg), CONNECTION_OK);
    PQclear(PQexec(reader.pg, "SET search_path = limits"));
    run_all(url, &reader);
    PQfinish(reader.pg);
}

static void no_limit_is_passed_by_eight_processes_on_sqlite(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-limits-XXXXXX", url[64];
    static const char *const files[] = { "", "-hf", "-shm", "-wal" };
    struct reader reader = { .pg = NULL };
    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, sizeof(url), "%s/work.db", folder);
    set_limits(url);
    assert_int_equal(sqlite3_open_v2(url, &reader.lite, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    (void)sqlite3_busy_timeout(reader.lite, 20000);
    run_all(url, &reader);
    (void)sqlite3_close(reader.lite);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[96];
        (void)snprintf(path, sizeof(path), "%s%s", url, files[i]);
        (void)unlink(path); /* not all are there */
    }
    assert_int_equal(rmdir(folder), 0);
}

static int start_server(void **state)
{
    (void)state;
    pg_server_start(&server);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    pg_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_passed_by_eight_processes_on_sqlite),
        cmocka_unit_test(no_limit_is_passed_by_eight_processes_on_postgres),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
