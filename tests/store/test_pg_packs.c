/* Events that many units had together are one row on PostgreSQL; readers see them one by one. */
#include <holdfast/feed.h>
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

#define MANY 12

static struct pg_server server;

struct crowd {
    struct hf_store *store;
    const char *schema;
    char ids[MANY][40];
    char tokens[MANY][128];
};

/* The first cell of a statement about the crowd's schema, as a number. */
static long long number(const struct crowd *crowd, const char *sql)
{
    char text[600];
    (void)snprintf(text, sizeof(text), "SET search_path = %s; %s", crowd->schema, sql);
    return strtoll(pg_server_sql(&server, text), NULL, 10);
}

static void keep(struct crowd *crowd, const struct hf_answer *answer)
{
    assert_int_equal(hf_answer_count(answer), MANY);
    for (size_t i = 0; i < MANY; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        (void)snprintf(crowd->ids[i], sizeof(crowd->ids[i]), "%s", item->work.work_id);
        if (item->token)
            (void)snprintf(crowd->tokens[i], sizeof(crowd->tokens[i]), "%s", item->token);
    }
}

static void created(struct crowd *crowd, const char *schema)
{
    char names[MANY][16];
    struct hf_new news[MANY];
    struct hf_answer *answer = NULL;
    *crowd = (struct crowd){ .schema = schema,
                             .store = pg_server_store(&server, schema) };
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "unit %zu", i);
        news[i] = plain_unit(names[i]);
        news[i].kind = i == 3 ? "slow" : "quick";
    }
    assert_int_equal(hf_work_create(crowd->store, NULL, news, MANY, 0, &answer, NULL), 0);
    keep(crowd, answer);
    hf_answer_free(answer);
}

/* A hundred are one statement, and twelve are ten, one and one. */
static void claimed(struct crowd *crowd)
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .limit = MANY };
    assert_int_equal(hf_work_claim(crowd->store, NULL, &claim, &answer, NULL), 0);
    keep(crowd, answer);
    hf_answer_free(answer);
}

static void changed(struct crowd *crowd, enum hf_verb verb, const char *odd_output)
{
    struct hf_change changes[MANY];
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < MANY; i++) {
        changes[i] = (struct hf_change){ .size = sizeof(changes[i]),
                                         .verb = verb,
                                         .id = crowd->ids[i],
                                         .token = crowd->tokens[i] };
        if (verb == HF_VERB_CLOSE_OUT)
            changes[i].status = HF_DONE;
    }
    if (odd_output) {
        changes[5].outputs = &odd_output;
        changes[5].output_count = 1;
    }
    assert_int_equal(hf_work_change(crowd->store, NULL, changes, MANY, 0, &answer, NULL),
                     0);
    hf_answer_free(answer);
}

/* A unit's trail but for its ids, a line an event. */
static void trail(const struct crowd *crowd, size_t i, char *out, size_t size)
{
    struct hf_events *events = NULL;
    size_t at = 0;
    out[0] = '\0';
    assert_int_equal(
        hf_work_events(crowd->store, NULL, crowd->ids[i], 0, 100, &events, NULL), 0);
    for (size_t k = 0; k < hf_events_count(events); k++) {
        const struct hf_event *e = hf_events_at(events, k);
        at += (size_t)snprintf(
            out + at, size - at, "%s %s>%s g%lld a%lld f%lld %s:%s %s %s\n",
            e->event_type, e->from_status ? e->from_status : "-",
            e->to_status ? e->to_status : "-", (long long)e->generation,
            (long long)e->attempt, (long long)e->fence, e->actor_kind, e->actor,
            e->message ? e->message : "-", e->payload ? e->payload : "-");
    }
    assert_true(at < size);
    hf_events_free(events);
}

static void ended(struct crowd *crowd)
{
    hf_store_close(crowd->store);
}

static void what_many_did_together_is_one_row_and_reads_as_many(void **state)
{
    (void)state;
    struct crowd crowd;
    char first[4000], last[4000];
    created(&crowd, "together");
    claimed(&crowd);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 1);
    assert_int_equal(number(&crowd, "SELECT n FROM work_pack"), 10);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_event"), 2);
    changed(&crowd, HF_VERB_CLOSE_OUT, NULL);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 2);
    assert_int_equal(number(&crowd, "SELECT max(n) FROM work_pack"), 12);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_event"), 2);
    /* The first unit's claim is packed and the last one's is not. */
    trail(&crowd, 0, first, sizeof(first));
    trail(&crowd, 8, last, sizeof(last)); /* claimed by the same statement */
    assert_string_equal(first, last);
    assert_non_null(strstr(first, "claimed queued>running g0 a1 f1"));
    assert_non_null(strstr(first,
                           "close_out running>done g0 a1 f1 system:holdfast - "
                           "{\"lease_released\":{\"fence\":1},\"status\":\"done\"}"));
    assert_int_equal(number(&crowd, "SELECT count(DISTINCT event_id) FROM "
                                    "runtime_work_event WHERE part = 0"),
                     3 * MANY);
    ended(&crowd);
}

/* Pages that end in the middle of a pack. */
static void the_feed_gives_each_event_of_a_pack_once(void **state)
{
    (void)state;
    struct crowd crowd;
    char cursor[128] = "";
    int seen[3] = { 0 };
    created(&crowd, "paged");
    claimed(&crowd);
    changed(&crowd, HF_VERB_CLOSE_OUT, NULL);
    for (bool more = true; more;) {
        struct hf_feed *feed = NULL;
        struct hf_feed_query query = { .size = sizeof(query),
                                       .after = cursor[0] ? cursor : NULL,
                                       .limit = 5 };
        assert_int_equal(hf_work_feed(crowd.store, NULL, &query, &feed, NULL), 0);
        for (size_t i = 0; i < hf_feed_count(feed); i++) {
            const char *type = hf_feed_at(feed, i)->event.event_type;
            seen[strcmp(type, "work_created") == 0 ? 0
                 : strcmp(type, "claimed") == 0    ? 1
                                                   : 2]++;
        }
        more = hf_feed_count(feed) > 0;
        (void)snprintf(cursor, sizeof(cursor), "%s", hf_feed_next(feed));
        hf_feed_free(feed);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen[i], MANY);
    ended(&crowd);
}

static void a_second_claim_of_a_unit_stands_alone(void **state)
{
    (void)state;
    struct crowd crowd;
    char text[4000];
    created(&crowd, "twice");
    claimed(&crowd);
    changed(&crowd, HF_VERB_HAND_BACK, NULL);
    claimed(&crowd);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 1);
    changed(&crowd, HF_VERB_CLOSE_OUT, NULL);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 2);
    assert_int_equal(number(&crowd, "SELECT cardinality(fences) FROM work_pack"
                                    " WHERE event_type = 'close_out'"),
                     1); /* all of the second fence */
    trail(&crowd, 2, text, sizeof(text));
    assert_non_null(strstr(text, "claimed queued>running g0 a1 f1"));
    assert_non_null(strstr(text, "claimed queued>running g0 a2 f2"));
    assert_non_null(strstr(text, "close_out running>done g0 a2 f2"));
    ended(&crowd);
}

static void what_says_more_or_has_another_lease_stands_alone(void **state)
{
    (void)state;
    struct crowd crowd;
    struct hf_policy slow = { .size = sizeof(slow), .grace_ms = -1, .ttl_ms = 90000 };
    char text[4000];
    created(&crowd, "odd");
    assert_int_equal(hf_policy_set(crowd.store, NULL, "kind:slow", &slow, NULL), 0);
    claimed(&crowd);
    assert_int_equal(number(&crowd, "SELECT n FROM work_pack"), 9);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_event"), 3);
    trail(&crowd, 3, text, sizeof(text));
    assert_non_null(strstr(text, "\"ttl_ms\":90000"));
    changed(&crowd, HF_VERB_CLOSE_OUT, "file:answer"); /* they do not end alike */
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 1);
    trail(&crowd, 5, text, sizeof(text));
    assert_non_null(strstr(text, "file:answer"));
    ended(&crowd);
}

/* A transaction with a lower number than that of a unit's last event: 0001_ledger, work_guard. */
static void an_event_with_a_later_place_stands_alone_at_it(void **state)
{
    (void)state;
    struct crowd crowd;
    char sql[300];
    created(&crowd, "late");
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE work_state SET logged = logged + 4096000000 WHERE seq ="
                   " (SELECT seq FROM work_spec WHERE work_id = '%s')",
                   crowd.ids[4]);
    (void)number(&crowd, sql);
    claimed(&crowd);
    changed(&crowd, HF_VERB_CLOSE_OUT, NULL);
    assert_int_equal(number(&crowd, "SELECT sum(n) FROM work_pack"), 9 + 11);
    assert_int_equal(number(&crowd, "SELECT count(DISTINCT xid) FROM work_event e"
                                    " WHERE xid > (SELECT max(xid) FROM work_pack)"),
                     1);
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM runtime_work_event WHERE part = 0 AND work_id = '%s'",
        crowd.ids[4]);
    assert_int_equal(number(&crowd, sql), 3);
    ended(&crowd);
}

static void a_pack_goes_with_the_last_of_its_units(void **state)
{
    (void)state;
    struct crowd crowd;
    char before[4000], after[4000];
    int64_t rows = 0;
    created(&crowd, "pruned");
    claimed(&crowd);
    changed(&crowd, HF_VERB_CLOSE_OUT, NULL);
    trail(&crowd, MANY - 1, before, sizeof(before));
    (void)number(&crowd,
                 "ALTER TABLE work_state DISABLE TRIGGER USER; UPDATE work_state SET"
                 " finished_at = finished_at - 5000; ALTER TABLE work_state ENABLE"
                 " TRIGGER USER");
    assert_int_equal(hf_work_prune(crowd.store, NULL, 1000, MANY - 1, &rows, NULL), 0);
    assert_int_equal(rows, MANY - 1);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 1);
    trail(&crowd, MANY - 1, after, sizeof(after));
    assert_string_equal(after, before);
    assert_int_equal(hf_work_prune(crowd.store, NULL, 1000, 0, &rows, NULL), 0);
    assert_int_equal(rows, 1);
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 0);
    ended(&crowd);
}

/* Plain SQL cannot forge or lose what is packed. */
static void packs_never_change_and_go_only_with_their_units(void **state)
{
    (void)state;
    static const char *const forged[] = {
        "UPDATE work_pack SET actor = 'forged'",
        "DELETE FROM work_pack",
    };
    struct crowd crowd;
    created(&crowd, "frozen");
    claimed(&crowd);
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        char sql[400];
        (void)snprintf(
            sql, sizeof(sql),
            "DO $$ BEGIN %s; RAISE 'it was let through'; EXCEPTION WHEN SQLSTATE"
            " 'HF002' THEN NULL; END $$",
            forged[i]);
        (void)number(&crowd, sql);
    }
    assert_int_equal(number(&crowd, "SELECT count(*) FROM work_pack"), 1);
    ended(&crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_many_did_together_is_one_row_and_reads_as_many),
        cmocka_unit_test(the_feed_gives_each_event_of_a_pack_once),
        cmocka_unit_test(a_second_claim_of_a_unit_stands_alone),
        cmocka_unit_test(what_says_more_or_has_another_lease_stands_alone),
        cmocka_unit_test(an_event_with_a_later_place_stands_alone_at_it),
        cmocka_unit_test(a_pack_goes_with_the_last_of_its_units),
        cmocka_unit_test(packs_never_change_and_go_only_with_their_units),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("packs of events", tests, NULL, NULL);
}
