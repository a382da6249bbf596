/* Lost answers: the wire is cut at every message of an exchange, in both directions. What a
 * caller was told must be what the store holds: done is done once, refused is not done, and
 * unknown is said to be unknown. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"
#include "support/wire.h"

#define CUTS_MAX 200

static struct pg_server server;
static struct wire_proxy *proxy;

struct tally {
    size_t done;    /* cut, and resolved */
    size_t refused; /* nothing was written, and so it was said */
    size_t uncertain;
};

static struct hf_store *open_cut(bool pooled)
{
    char url[400];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    if (pooled) /* patience with transactions whose process is not known */
        options.busy_ms = 500;
    (void)snprintf(url, sizeof(url), "postgres:///hf?host=%s&port=7000&user=hf%s",
                   server.folder, pooled ? "&pooler=transaction" : "");
    if (hf_store_open(url, &options, &store, &err))
        fail_msg("%s", err.message);
    return store;
}

static long count_of(const char *sql)
{
    return strtol(pg_server_sql(&server, sql), NULL, 10);
}

static int create(struct hf_store *store, const char *name, bool *ret_created)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec request = plain_unit(name);
    int rc = hf_work_create(store, NULL, &request, 1, 0, &answer, NULL);
    *ret_created = rc == 0 && hf_answer_at(answer, 0)->created;
    if (rc == 0)
        hf_answer_free(answer);
    return rc;
}

static void told(struct tally *tally, int rc, bool happened, bool cut)
{
    if (rc == 0 && !happened)
        fail_msg("said to be done, and it is not");
    if (rc != 0 && rc != HF_EUNCERTAIN && happened)
        fail_msg("said to be refused (%d), and it is done", rc);
    tally->done += cut && rc == 0;
    tally->refused += rc != 0 && rc != HF_EUNCERTAIN;
    tally->uncertain += rc == HF_EUNCERTAIN;
}

/* Cuts later and later until the exchange is over before the cut comes. */
static void cut_creates(bool to_server, bool pooled, struct tally *tally)
{
    bool cut = true;
    size_t at = 0;
    for (; cut && at < CUTS_MAX; at++) {
        char name[64], sql[200];
        bool created, again;
        struct hf_store *store = open_cut(pooled);
        (void)snprintf(name, sizeof(name), "%s-%s-%zu", pooled ? "pooled" : "direct",
                       to_server ? "up" : "down", at);
        (void)snprintf(
            sql, sizeof(sql),
            "SELECT count(*) FROM holdfast.work_state w JOIN holdfast.work_spec s"
            " ON s.seq = w.seq WHERE s.source_id = '%s'",
            name);
        wire_proxy_arm(proxy, (uint32_t)at + 1, WIRE_BEFORE,
                       to_server ? WIRE_TO_SERVER : WIRE_TO_CLIENT);
        int rc = create(store, name, &created);
        cut = wire_proxy_disarm(proxy);
        long there = count_of(sql);
        told(tally, rc, there == 1, cut);
        if (rc == 0 && !created)
            fail_msg("cut %zu: this call made it, and was told that another did", at);
        assert_int_equal(create(store, name, &again), 0);
        assert_int_equal(count_of(sql), 1);
        if (rc != HF_EUNCERTAIN) /* otherwise the server may still have run it */
            assert_int_equal(again, there == 0);
        hf_store_close(store);
    }
    assert_true(at > 4 && at < CUTS_MAX);
}

static void show(const char *what, const struct tally *tally)
{
    print_message("# %s: %zu resolved, %zu not done, %zu uncertain\n", what, tally->done,
                  tally->refused, tally->uncertain);
}

static void a_create_is_told_as_it_is_wherever_the_wire_breaks(void **state)
{
    (void)state;
    struct tally down = { 0 }, up = { 0 };
    cut_creates(false, false, &down);
    cut_creates(true, false, &up);
    show("answers cut", &down);
    show("requests cut", &up);
    assert_true(down.done >= 10 && up.done >= 10);
    assert_int_equal(down.uncertain + up.uncertain,
                     0); /* its process is known and ends */
}

/* Which process runs it is known only from its first answer. */
static void behind_a_pooler_too(void **state)
{
    (void)state;
    struct tally down = { 0 };
    cut_creates(false, true, &down);
    show("answers cut, unnamed statements", &down);
    assert_true(down.done >= 2);
}

/* A claim and its close-out, cut at every answer. */
static void a_close_out_is_told_as_it_is_wherever_the_wire_breaks(void **state)
{
    (void)state;
    struct tally tally = { 0 };
    bool cut = true;
    size_t at = 0;
    for (; cut && at < CUTS_MAX; at++) {
        char name[64], id[64], token[300], sql[200];
        bool created;
        struct hf_answer *answer = NULL;
        struct hf_store *store = open_cut(false);
        (void)snprintf(name, sizeof(name), "close-%zu", at);
        assert_int_equal(create(store, name, &created), 0);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT work_id FROM holdfast.work_spec WHERE "
                       "source_id = '%s'",
                       name);
        (void)snprintf(id, sizeof(id), "%s", pg_server_sql(&server, sql));
        struct hf_claim claim = { .size = sizeof(claim), .owner = "a", .id = id };
        assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, NULL), 0);
        (void)snprintf(token, sizeof(token), "%s", hf_answer_at(answer, 0)->token);
        hf_answer_free(answer);
        struct hf_change done = { .size = sizeof(done),
                                  .verb = HF_VERB_CLOSE_OUT,
                                  .id = id,
                                  .token = token,
                                  .status = HF_STATUS_DONE };
        wire_proxy_arm(proxy, (uint32_t)at + 1, WIRE_BEFORE, WIRE_TO_CLIENT);
        int rc = hf_work_change(store, NULL, &done, 1, HF_BRIEF, &answer, NULL);
        cut = wire_proxy_disarm(proxy);
        if (rc == 0) {
            assert_int_equal(hf_answer_at(answer, 0)->code, 0);
            hf_answer_free(answer);
        }
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM holdfast.runtime_work WHERE "
                       "work_id = '%s' AND status = 'done'",
                       id);
        told(&tally, rc, count_of(sql) == 1, cut);
        /* Repeated, it answers as the first did, and there is one event. */
        assert_int_equal(hf_work_change(store, NULL, &done, 1, 0, &answer, NULL), 0);
        assert_int_equal(hf_answer_at(answer, 0)->code, 0);
        hf_answer_free(answer);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM holdfast.runtime_work_event "
                       "WHERE work_id = '%s' AND to_status = 'done'",
                       id);
        assert_int_equal(count_of(sql), 1);
        hf_store_close(store);
    }
    show("close-outs", &tally);
    assert_true(tally.done >= 2 && at < CUTS_MAX);
}

static int claim_of(struct hf_store *store, const char *queue,
                    struct hf_answer **ret_answer)
{
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "a", .queue = queue, .ttl_ms = 60000
    };
    return hf_work_claim(store, NULL, &claim, ret_answer, NULL);
}

/* A claim of one, whose statement returns the row that it took: where that was lost it is
 * read again. */
static void a_claim_has_its_row_wherever_the_wire_breaks(void **state)
{
    (void)state;
    struct tally tally = { 0 };
    bool cut = true;
    size_t at = 0;
    for (; cut && at < CUTS_MAX; at++) {
        char name[64], sql[200];
        struct hf_answer *answer = NULL;
        struct hf_store *store = open_cut(false);
        (void)snprintf(name, sizeof(name), "lone-%zu", at);
        struct hf_work_spec requests[] = { plain_unit(name), plain_unit("other") };
        requests[0].queue = requests[1].queue = requests[1].source_run_id = name;
        assert_int_equal(claim_of(store, name, &answer),
                         0); /* looks, and finds nothing */
        assert_int_equal(hf_answer_count(answer), 0);
        hf_answer_free(answer);
        assert_int_equal(hf_work_create(store, NULL, requests, 2, 0, &answer, NULL), 0);
        hf_answer_free(answer);
        wire_proxy_arm(proxy, (uint32_t)at + 1, WIRE_BEFORE, WIRE_TO_CLIENT);
        int rc = claim_of(store, name, &answer);
        cut = wire_proxy_disarm(proxy);
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM holdfast.runtime_work WHERE "
                       "queue = '%s' AND status = 'running'",
                       name);
        told(&tally, rc, count_of(sql) == 1, cut);
        if (rc == 0) {
            assert_int_equal(hf_answer_count(answer), 1);
            assert_string_equal(hf_answer_at(answer, 0)->work.source_id, name);
            assert_non_null(hf_answer_at(answer, 0)->token);
            hf_answer_free(answer);
        }
        hf_store_close(store);
    }
    show("claims", &tally);
    assert_true(tally.done >= 2 && at < CUTS_MAX);
}

/* The server ends the connection between two calls: no caller notices. */
static void a_connection_that_died_idle_is_replaced(void **state)
{
    (void)state;
    bool created;
    struct hf_store *store = open_cut(false);
    assert_int_equal(create(store, "idle-1", &created), 0);
    (void)pg_server_sql(&server,
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE application_name = 'holdfast'");
    while (count_of("SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                    "'holdfast'") > 0)
        continue;
    assert_int_equal(create(store, "idle-2", &created), 0);
    assert_true(created);
    hf_store_close(store);
}

struct closing {
    struct hf_store *store;
    char id[64];
    char token[300];
    int rc;
};

static void *close_out(void *arg)
{
    struct closing *closing = arg;
    struct hf_answer *answer = NULL;
    struct hf_change done = { .size = sizeof(done),
                              .verb = HF_VERB_CLOSE_OUT,
                              .id = closing->id,
                              .token = closing->token,
                              .status = HF_STATUS_DONE };
    closing->rc = hf_work_change(closing->store, NULL, &done, 1, 0, &answer, NULL);
    if (closing->rc == 0) {
        closing->rc = hf_answer_at(answer, 0)->code;
        hf_answer_free(answer);
    }
    return NULL;
}

static struct closing claimed_one(const char *name)
{
    bool created;
    char sql[120];
    struct hf_answer *answer = NULL;
    struct closing closing = { .store = open_cut(false), .rc = -1 };
    struct hf_claim claim = { .size = sizeof(claim), .owner = "a", .ttl_ms = 60000 };
    assert_int_equal(create(closing.store, name, &created), 0);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT work_id FROM holdfast.work_spec WHERE source_id = '%s'", name);
    (void)snprintf(closing.id, sizeof(closing.id), "%s", pg_server_sql(&server, sql));
    claim.id = closing.id;
    assert_int_equal(hf_work_claim(closing.store, NULL, &claim, &answer, NULL), 0);
    (void)snprintf(closing.token, sizeof(closing.token), "%s",
                   hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
    return closing;
}

/* ---- evidence ------------------------------------------------------------------------------ */

static const char nowhere[] = "00000000000000000000000000000000";

static struct pg_trace trace_of(const struct pg *pg, const char *nonce)
{
    struct pg_trace trace = { .epoch = atomic_load(&pg->epoch),
                              .process = pg->pool.free->process };
    (void)snprintf(trace.nonce, sizeof(trace.nonce), "%s", nonce);
    return trace;
}

static const char *last_nonce(void)
{
    return pg_server_sql(&server, "SELECT replace(nonce::text, '-', '') FROM "
                                  "holdfast.hf_commit ORDER BY ctid DESC LIMIT 1");
}

/* A row that is there is proof, however old or far away its process is. */
static void what_is_found_was_committed(void **state)
{
    (void)state;
    bool created;
    struct hf_store *store = open_cut(false);
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    assert_int_equal(create(store, "found", &created), 0);
    struct pg_trace trace = trace_of(pg, last_nonce());
    assert_int_equal(pg_outcome_of(pg, &trace), PG_COMMITTED); /* its process lives */
    trace.process.timeline--;
    assert_int_equal(pg_outcome_of(pg, &trace), PG_COMMITTED);
    trace.process = (struct pg_process){ 0 };
    assert_int_equal(pg_outcome_of(pg, &trace), PG_COMMITTED);
    hf_store_close(store);
}

/* A row that is missing proves something only if it cannot come any more, cannot have been lost
 * with another history, and cannot have been deleted. */
static void what_is_missing_was_not_written_if_it_cannot_come_any_more(void **state)
{
    (void)state;
    bool created;
    struct hf_store *store = open_cut(false);
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    assert_int_equal(create(store, "missing", &created), 0);
    const struct pg_trace alive = trace_of(pg, nowhere);
    struct pg_trace other = alive;
    pg->busy_ms = 200;
    assert_int_equal(pg_outcome_of(pg, &alive), PG_UNKNOWN);
    other.process = (struct pg_process){ 0 };
    assert_int_equal(pg_outcome_of(pg, &other), PG_UNKNOWN);
    struct pg_trace ended = alive;
    ended.process.began--; /* another process had the same number */
    assert_int_equal(pg_outcome_of(pg, &ended), PG_NOTHING);
    other = ended;
    other.process.timeline--;
    assert_int_equal(pg_outcome_of(pg, &other), PG_UNKNOWN);
    other = ended;
    other.process.system_id--;
    assert_int_equal(pg_outcome_of(pg, &other), PG_UNKNOWN);
    other = ended;
    other.epoch = alive.epoch - 2; /* it may have been deleted by now */
    assert_int_equal(pg_outcome_of(pg, &other), PG_UNKNOWN);
    hf_store_close(store);
}

static void forget(struct pg *pg)
{
    struct pg_conn *conn;
    assert_int_equal(pg_pool_take(pg, &conn, NULL), 0);
    pg_forget_commits(conn);
    assert_false(conn->lost);
    pg_pool_give(conn);
}

/* Rows are deleted an epoch late, so that a transaction that is on its way is still found. */
static void proofs_are_kept_for_an_epoch_and_then_deleted(void **state)
{
    (void)state;
    bool created;
    struct hf_store *store = open_cut(false);
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    pg->busy_ms = 200;
    assert_int_equal(create(store, "kept", &created), 0);
    struct pg_trace kept = trace_of(pg, last_nonce());
    struct pg_trace none = trace_of(pg, nowhere);
    none.process.began--;
    forget(pg);
    assert_int_equal(pg_outcome_of(pg, &kept), PG_COMMITTED);
    assert_int_equal(pg_outcome_of(pg, &none), PG_NOTHING);
    forget(pg);
    kept.process.began--; /* its process has ended too */
    assert_int_equal(pg_outcome_of(pg, &kept), PG_UNKNOWN);
    assert_int_equal(pg_outcome_of(pg, &none), PG_UNKNOWN);
    assert_int_equal(count_of("SELECT count(*) FROM holdfast.hf_commit"), 0);
    hf_store_close(store);
}

/* It says that its history is another one, and is gone before that is over. */
static void a_new_history_on_a_wire_that_breaks_is_found_on_another(void **state)
{
    (void)state;
    bool created;
    struct hf_store *store = open_cut(false);
    (void)pg_server_sql(&server, "UPDATE holdfast.hf_store SET timeline = timeline - 1");
    wire_proxy_arm(proxy, 1, WIRE_BEFORE, WIRE_READY);
    assert_int_equal(create(store, "another", &created), HF_EBUSY);
    assert_true(wire_proxy_disarm(proxy));
    assert_int_equal(create(store, "another", &created), 0);
    assert_true(created);
    hf_store_close(store);
}

/* ---- a failover that loses the commit whose answer was lost -------------------------------- */

/* A standby that has all that was committed so far, and gets nothing more. */
static struct pg_server left_behind(void)
{
    char sql[120];
    pg_server_standby(&server);
    struct pg_server standby = server;
    (void)snprintf(standby.url, sizeof(standby.url), "%s", server.standby);
    (void)snprintf(sql, sizeof(sql), "SELECT pg_last_wal_replay_lsn() >= '%s'::pg_lsn",
                   pg_server_sql(&server, "SELECT pg_current_wal_lsn()"));
    pg_server_await(&standby, sql, "t");
    (void)pg_server_sql(&standby, "ALTER SYSTEM SET primary_conninfo = ''");
    (void)pg_server_sql(&standby, "SELECT pg_reload_conf()");
    pg_server_await(&standby, "SELECT count(*) FROM pg_stat_wal_receiver", "0");
    return standby;
}

static void lead_to(const struct pg_server *to)
{
    char behind[120];
    const char *port = strstr(to->url, "port=");
    assert_non_null(port);
    (void)snprintf(behind, sizeof(behind), "%s/.s.PGSQL.%d", to->folder,
                   (int)strtol(port + 5, NULL, 10));
    wire_proxy_stop(proxy);
    proxy = wire_proxy_start(to->folder, 7000, behind);
}

/* The close-out is committed, its answer is held up; a standby without it is promoted and
 * returns the same transaction id to another caller, who commits. The caller that asks
 * the new server by the id alone is told "committed". */
static void a_commit_that_a_failover_lost_is_not_taken_for_anothers(void **state)
{
    (void)state;
    pthread_t thread;
    char sql[300];
    struct closing closing = claimed_one("failover");
    struct pg_server standby = left_behind();
    wire_proxy_arm(proxy, 1, WIRE_HOLD, WIRE_READY);
    assert_int_equal(pthread_create(&thread, NULL, close_out, &closing), 0);
    assert_true(wire_proxy_await(proxy));
    long lost = count_of(
        "SELECT max(xid) FROM holdfast.work_event WHERE to_status = 'done'");
    pg_server_promote(&server);
    (void)snprintf(
        sql, sizeof(sql),
        "DO $$ BEGIN WHILE txid_current() <= %ld LOOP COMMIT; END LOOP; END $$", lost);
    (void)pg_server_sql(&standby, sql);
    (void)snprintf(sql, sizeof(sql), "SELECT pg_xact_status('%ld'::xid8)", lost);
    assert_string_equal(pg_server_sql(&standby, sql), "committed"); /* another's */
    lead_to(&standby);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(closing.rc, HF_EUNCERTAIN);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT status FROM holdfast.runtime_work WHERE work_id = '%s'",
                   closing.id);
    assert_string_equal(pg_server_sql(&standby, sql), "running");
    (void)close_out(&closing); /* the first call of the new history says that it is one */
    if (closing.rc == HF_EBUSY)
        (void)close_out(&closing);
    assert_int_equal(closing.rc, HF_ELEASELOST);
    hf_store_close(closing.store);
}

struct creating {
    struct hf_store *store;
    bool created;
    int rc;
};

static void *create_one(void *arg)
{
    struct creating *creating = arg;
    creating->rc = create(creating->store, "pooled", &creating->created);
    return NULL;
}

/* It is committed, waits for a standby, and its connection is ended: the server answers nothing
 * more, and PgBouncer says in its own words that the connection broke. */
static void the_words_of_a_pooler_are_no_answer(void **state)
{
    (void)state;
    pthread_t thread;
    char sql[200];
    struct hf_err err = { 0 };
    struct creating creating = { .rc = -1 };
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    pg_server_pooler(&server);
    if (hf_store_open(server.pooled, &options, &creating.store, &err))
        fail_msg("%s", err.message);
    PGconn *first = PQconnectdb(server.url);
    PQclear(PQexec(first, "CREATE TABLE any_table (a int)"));
    pg_server_stick(&server, first, "INSERT INTO any_table VALUES (1)");
    assert_int_equal(pthread_create(&thread, NULL, create_one, &creating), 0);
    pg_server_await(&server,
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                    "2");
    (void)snprintf(sql, sizeof(sql),
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE wait_event = 'SyncRep' AND pid <> %d",
                   PQbackendPID(first));
    (void)pg_server_sql(&server, sql);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pg_server_unstick(&server, first);
    PQfinish(first);
    assert_int_equal(count_of("SELECT count(*) FROM holdfast.work_spec WHERE source_id ="
                              " 'pooled'"),
                     1);
    assert_int_equal(creating.rc, 0);
    assert_true(creating.created);
    hf_store_close(creating.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_is_told_as_it_is_wherever_the_wire_breaks),
        cmocka_unit_test(a_close_out_is_told_as_it_is_wherever_the_wire_breaks),
        cmocka_unit_test(a_claim_has_its_row_wherever_the_wire_breaks),
        cmocka_unit_test(behind_a_pooler_too),
        cmocka_unit_test(the_words_of_a_pooler_are_no_answer),
        cmocka_unit_test(a_connection_that_died_idle_is_replaced),
        cmocka_unit_test(what_is_found_was_committed),
        cmocka_unit_test(what_is_missing_was_not_written_if_it_cannot_come_any_more),
        cmocka_unit_test(proofs_are_kept_for_an_epoch_and_then_deleted),
        cmocka_unit_test(a_new_history_on_a_wire_that_breaks_is_found_on_another),
        cmocka_unit_test(a_commit_that_a_failover_lost_is_not_taken_for_anothers),
    };
    pg_server_start(&server);
    char behind[120];
    (void)snprintf(behind, sizeof(behind), "%s/.s.PGSQL.%d", server.folder, server.port);
    proxy = wire_proxy_start(server.folder, 7000, behind);
    int failed = cmocka_run_group_tests_name("lost answers", tests, NULL, NULL);
    wire_proxy_stop(proxy);
    return failed;
}
