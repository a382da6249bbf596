/* Which way claims go on PostgreSQL. Behind an old snapshot they go on where the last one came to,
 * and no row is forgotten for it; claims of one between two looks are one statement, which takes
 * nothing where that is not all there is to it. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/pg/pg.h"
#include "store/store.h"
#include "store/work/scan.h"
#include "support/pg.h"
#include "support/unit.h"

#define BATCH 100
#define WEAR                                                                             \
    (SCAN_WORN + 2 * BATCH) /* units that are claimed while the snapshot is open */

static struct pg_server server;
static hf_ms time_ms; /* both clocks */

static hf_ms same_ms(void *user)
{
    (void)user;
    return 1800000000000 + time_ms;
}

static void no_wait(void *user, hf_ms ms)
{
    (void)user;
    time_ms += ms;
}

static struct hf_clock stepped = { NULL, same_ms, same_ms, no_wait };

static struct hf_store *opened(const char *schema)
{
    char url[400];
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    struct hf_store_options options = { .size = sizeof(options),
                                        .clock = &stepped,
                                        .inline_mode = true };
    if (hf_store_open(pg_server_schema(server.url, schema, url), &options, &store, &err))
        fail_msg("%s", err.message);
    return store;
}

static void created(struct hf_store *store, const char *name, int count, int priority)
{
    static struct hf_work_spec units[BATCH];
    static char ids[BATCH][64];
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    for (int i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), count > 1 ? "%s%d" : "%s", name, i);
        units[i] = (struct hf_work_spec){ .size = sizeof(units[i]),
                                          .source = HF_SOURCE_MANUAL,
                                          .source_id = ids[i],
                                          .priority = priority,
                                          .disposition = HF_DISPOSITION_RERUNNABLE };
    }
    if (hf_work_create(store, NULL, units, (size_t)count, HF_BRIEF, &answer, &err))
        fail_msg("%s", err.message);
    hf_answer_free(answer);
}

struct held {
    char source[64]; /* "": nothing was there */
    char id[64];
    char token[300];
};

static struct held claimed(struct hf_store *store)
{
    struct held held = { .source = "" };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .ttl_ms = 3600000 };
    if (hf_work_claim(store, NULL, &claim, &answer, &err))
        fail_msg("%s", err.message);
    if (hf_answer_count(answer)) {
        const struct hf_item *item = hf_answer_at(answer, 0);
        (void)snprintf(held.source, sizeof(held.source), "%s", item->work.source_id);
        (void)snprintf(held.id, sizeof(held.id), "%s", item->work.work_id);
        (void)snprintf(held.token, sizeof(held.token), "%s", item->token);
    }
    hf_answer_free(answer);
    return held;
}

static void handed_back(struct hf_store *store, const struct held *held)
{
    struct hf_answer *answer = NULL;
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_HAND_BACK,
                                .id = held->id,
                                .token = held->token };
    assert_int_equal(hf_work_change(store, NULL, &change, 1, 0, &answer, NULL), 0);
    assert_int_equal(hf_answer_at(answer, 0)->code, 0);
    hf_answer_free(answer);
}

/* Takes and finishes WEAR units. */
static void worn(struct hf_store *store)
{
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .ttl_ms = 3600000, .limit = BATCH
    };
    for (int made = 0; made < WEAR; made += BATCH) {
        struct hf_change changes[BATCH];
        struct hf_answer *taken = NULL, *closed = NULL;
        char name[16];
        (void)snprintf(name, sizeof(name), "wear%d-", made);
        created(store, name, BATCH, 3);
        assert_int_equal(hf_work_claim(store, NULL, &claim, &taken, NULL), 0);
        assert_int_equal(hf_answer_count(taken), BATCH);
        for (size_t i = 0; i < BATCH; i++)
            changes[i] = (struct hf_change){ .size = sizeof(changes[i]),
                                             .verb = HF_VERB_CLOSE_OUT,
                                             .id = hf_answer_at(taken, i)->work.work_id,
                                             .token = hf_answer_at(taken, i)->token,
                                             .status = HF_STATUS_DONE };
        assert_int_equal(
            hf_work_change(store, NULL, changes, BATCH, HF_BRIEF, &closed, NULL), 0);
        hf_answer_free(closed);
        hf_answer_free(taken);
    }
}

static PGconn *pinned(void)
{
    PGconn *db = PQconnectdb(server.url);
    PQclear(PQexec(db, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    PGresult *result = PQexec(db, "SELECT 1");
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    return db;
}

/* Behind a snapshot, with one unit ("first") at the very front that was handed back. */
static struct held first_and_wear(struct hf_store *store)
{
    created(store, "first", 1, 3);
    struct held first = claimed(store);
    assert_string_equal(first.source, "first");
    worn(store);
    created(store, "second", 1, 3);
    time_ms += SCAN_LOOK_MS; /* a look, which finds the wear */
    struct held second = claimed(store);
    assert_string_equal(second.source, "second");
    handed_back(store, &first);
    return first;
}

static void a_worn_queue_is_gone_on_with_and_nothing_starves(void **state)
{
    (void)state;
    struct hf_store *store = opened("front");
    PGconn *snapshot = pinned();
    struct held first = first_and_wear(store);
    created(store, "third", 1, 3);
    created(store, "fourth", 1, 3);
    assert_string_equal(claimed(store).source, "third"); /* past what came back */
    created(store, "urgent", 1, 0);
    assert_string_equal(claimed(store).source, "urgent");
    assert_string_equal(claimed(store).source, "fourth");
    first = claimed(store); /* nothing behind: it looks from the start */
    assert_string_equal(first.source, "first");

    created(store, "fifth", 1, 3);
    assert_string_equal(claimed(store).source, "fifth");
    handed_back(store, &first);
    created(store, "sixth", 1, 3);
    time_ms += SCAN_LOOK_MS * 100;                       /* whatever the last look took */
    assert_string_equal(claimed(store).source, "first"); /* the look */
    assert_string_equal(claimed(store).source, "sixth");
    PQfinish(snapshot);
    hf_store_close(store);
}

static void without_wear_claims_take_the_first_always(void **state)
{
    (void)state;
    struct hf_store *store = opened("fresh");
    created(store, "first", 1, 3);
    created(store, "second", 1, 3);
    struct held first = claimed(store);
    assert_string_equal(claimed(store).source, "second");
    handed_back(store, &first);
    created(store, "third", 1, 3);
    assert_string_equal(claimed(store).source, "first");
    assert_string_equal(claimed(store).source, "third");
    hf_store_close(store);
}

/* Pages that a statement touches, as EXPLAIN counts them. */
static long pages_of(PGconn *db, enum hf_sql_id id, const char *args)
{
    char sql[600];
    PGresult *made = PQprepare(db, "plan", hf_sql_pg[id].text, 0, NULL);
    if (PQresultStatus(made) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", hf_sql_pg[id].name, PQerrorMessage(db));
    PQclear(made);
    PQclear(PQexec(db, "BEGIN"));
    (void)snprintf(sql, sizeof(sql), "EXPLAIN (ANALYZE, BUFFERS) EXECUTE plan (%s)",
                   args);
    PGresult *plan = PQexec(db, sql);
    const char *hits = NULL;
    for (int i = 0;
         PQresultStatus(plan) == PGRES_TUPLES_OK && !hits && i < PQntuples(plan); i++)
        hits = strstr(PQgetvalue(plan, i, 0), "shared hit=");
    if (!hits)
        fail_msg("%s: %s", hf_sql_pg[id].name, PQerrorMessage(db));
    long pages = strtol(hits + strlen("shared hit="), NULL, 10);
    PQclear(plan);
    PQclear(PQexec(db, "ROLLBACK"));
    PQclear(PQexec(db, "DEALLOCATE plan"));
    return pages;
}

#define CLAIM_ARGS                                                                       \
    "'default', 'w', 'i', 'n', NULL, NULL, 'worker', 'w', '', NULL, 30000, 30000"

static void a_claim_that_goes_on_does_not_pay_for_the_wear(void **state)
{
    (void)state;
    struct hf_store *store = opened("cost");
    PGconn *snapshot = pinned();
    (void)first_and_wear(store);
    (void)claimed(store); /* what was handed back */
    created(store, "last", 1, 3);
    PGconn *db = PQconnectdb(server.url);
    PQclear(PQexec(db, "SET search_path = cost; SET enable_seqscan = off;"
                       "SET enable_hashjoin = off; SET enable_mergejoin = off;"
                       "SET plan_cache_mode = force_generic_plan"));
    char args[300];
    (void)snprintf(args, sizeof(args), CLAIM_ARGS ", 3, 0, %s",
                   pg_server_sql(&server, "SELECT max(seq) FROM cost.work_state"));
    long from_start = pages_of(db, HF_SQL_WORK_CLAIM_1, CLAIM_ARGS);
    long goes_on = pages_of(db, HF_SQL_WORK_CLAIM_ON_1, args);
    if (from_start < 5 * goes_on)
        fail_msg("a claim touches %ld pages from the start and %ld where it goes on",
                 from_start, goes_on);
    PQfinish(db);
    PQfinish(snapshot);
    hf_store_close(store);
}

/* ---- the short way ----------------------------------------------------------------------- */

/* How often the statement ran; each test has a schema of its own. */
static long short_claims(struct hf_store *store)
{
    return pg_store_ran(store, "WITH picked %");
}

/* One row, whichever way it came. */
struct shown {
    char source[64];
    hf_ms ttl_ms;
    char event[300]; /* its claim in the trail, except for the unit's own name */
};

static struct shown shown_of(const char *schema, const char *source)
{
    struct shown shown = { .source = "" };
    char sql[600];
    (void)snprintf(shown.source, sizeof(shown.source), "%s", source);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT lease_ttl_ms FROM %s.runtime_work WHERE source_id = '%s'",
                   schema, source);
    shown.ttl_ms = strtol(pg_server_sql(&server, sql), NULL, 10);
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT concat_ws(' ', event_type, from_status, to_status, attempt, fence, "
        "e.actor_kind, e.actor, e.payload, e.created_at) FROM %s.runtime_work_event e"
        " JOIN %s.work_spec s USING (work_id) WHERE source_id = '%s'"
        " AND event_type = 'claimed'",
        schema, schema, source);
    (void)snprintf(shown.event, sizeof(shown.event), "%s", pg_server_sql(&server, sql));
    return shown;
}

static void the_short_way_leaves_what_the_long_one_leaves(void **state)
{
    (void)state;
    struct hf_store *store = opened("short");
    created(store, "late", 1, 5);
    created(store, "long", 1, 3);
    created(store, "short", 1, 3);
    assert_string_equal(claimed(store).source, "long"); /* the first looks */
    assert_int_equal(short_claims(store), 0);
    struct held held = claimed(store);
    assert_string_equal(held.source, "short");
    assert_int_equal(short_claims(store), 1);
    struct shown a = shown_of("short", "long"), b = shown_of("short", "short");
    assert_int_equal(b.ttl_ms, 3600000);
    assert_string_equal(a.event, b.event);
    assert_non_null(strstr(b.event, "claimed queued running 1 1 "));
    assert_non_null(strstr(b.event, "{\"lease\":{\"expires_at\":1800003"));
    handed_back(store, &held); /* its token is good */
    assert_string_equal(claimed(store).source, "short");
    assert_string_equal(claimed(store).source, "late");
    assert_int_equal(short_claims(store), 3);
    assert_string_equal(claimed(store).source, "");
    hf_store_close(store);
}

static hf_ms term_of_next(struct hf_store *store)
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w" };
    assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    hf_ms term = hf_answer_at(answer, 0)->work.lease_ttl_ms;
    hf_answer_free(answer);
    return term;
}

static void a_policy_of_a_moment_ago_holds_for_the_next_claim(void **state)
{
    (void)state;
    struct hf_store *store = opened("policed"), *other = opened("policed");
    struct hf_policy policy = { .size = sizeof(policy), .ttl_ms = 7000, .grace_ms = -1 };
    created(store, "p", 5, 3);
    (void)term_of_next(store);
    hf_ms usual = term_of_next(store);
    assert_int_equal(short_claims(store), 1);
    assert_true(usual > 0 && usual != 7000);
    assert_int_equal(hf_policy_set(other, NULL, "default", &policy, NULL), 0);
    assert_int_equal(term_of_next(store), 7000);
    assert_int_equal(short_claims(store), 2); /* in vain, and not again: */
    assert_int_equal(term_of_next(store), 7000);
    assert_int_equal(short_claims(store), 2);
    assert_string_equal(pg_server_sql(&server, "SELECT policies FROM policed.hf_store"),
                        "t");
    (void)pg_server_sql(&server, "DELETE FROM policed.work_policy");
    assert_string_equal(pg_server_sql(&server, "SELECT policies FROM policed.hf_store"),
                        "f");
    hf_store_close(other);
    hf_store_close(store);
}

static void created_under_rate(struct hf_store *store, const char *name)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = name,
                                 .rate_key = "api",
                                 .priority = 3,
                                 .disposition = HF_DISPOSITION_RERUNNABLE };
    assert_int_equal(hf_work_create(store, NULL, &unit, 1, HF_BRIEF, &answer, NULL), 0);
    hf_answer_free(answer);
}

static void a_row_under_a_limit_is_counted_and_not_passed_over(void **state)
{
    (void)state;
    struct hf_store *store = opened("limited");
    struct hf_limit limit = {
        .size = sizeof(limit), .name = "rate:api", .rate_count = 2, .rate_ms = 60000
    };
    assert_int_equal(hf_limit_set(store, NULL, &limit, NULL), 0);
    created(store, "plain", 2, 3);
    assert_string_equal(claimed(store).source, "plain0");
    assert_string_equal(claimed(store).source, "plain1");
    created_under_rate(store, "a");
    created(store, "behind", 1, 3);
    assert_string_equal(pg_server_sql(&server, "SELECT reserved FROM limited.work_limit"),
                        "1");
    assert_string_equal(claimed(store).source, "a");
    assert_string_equal(pg_server_sql(&server, "SELECT reserved FROM limited.work_limit"),
                        "0");
    assert_string_equal(claimed(store).source, "behind");
    hf_store_close(store);
}

/* What lapsed is swept by the caller that finds nothing, and by a look at the latest. */
static void the_short_way_does_not_keep_lapsed_leases(void **state)
{
    (void)state;
    struct hf_store *store = opened("lapsing");
    created(store, "lapses", 1, 0);
    (void)term_of_next(store);
    time_ms += 3600000;
    created(store, "next", 3, 3);
    assert_string_equal(claimed(store).source, "next0"); /* a look, and then a sweep */
    assert_string_equal(claimed(store).source, "lapses");
    time_ms += 3600000;
    assert_string_equal(claimed(store).source, "next1"); /* a look again */
    hf_store_close(store);
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
        cmocka_unit_test(a_worn_queue_is_gone_on_with_and_nothing_starves),
        cmocka_unit_test(without_wear_claims_take_the_first_always),
        cmocka_unit_test(a_claim_that_goes_on_does_not_pay_for_the_wear),
        cmocka_unit_test(the_short_way_leaves_what_the_long_one_leaves),
        cmocka_unit_test(a_policy_of_a_moment_ago_holds_for_the_next_claim),
        cmocka_unit_test(a_row_under_a_limit_is_counted_and_not_passed_over),
        cmocka_unit_test(the_short_way_does_not_keep_lapsed_leases),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
