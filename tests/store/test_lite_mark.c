/* What a commit leaves in the store's row, by which it is found again, and ids that only rise. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/ledger/lease.h"
#include "support/unit.h"
#include "support/units.h"

static hf_ms lease_time;

static hf_ms wall_ms(void *user)
{
    (void)user;
    return 1700000000000;
}

static hf_ms mono_ms(void *user)
{
    (void)user;
    return lease_time;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user;
    (void)ms;
}

static const struct hf_clock still = { NULL, wall_ms, mono_ms, wait_ms };

struct place {
    char folder[64];
    char path[80];
    char copy[88];
    struct hf_store *store;
};

static void opened(struct place *place)
{
    struct hf_store_options options = { .size = sizeof(options),
                                        .inline_mode = true,
                                        .clock = &still };
    assert_int_equal(hf_store_open(place->path, &options, &place->store, NULL), 0);
}

static void closed(struct place *place)
{
    hf_store_close(place->store);
    place->store = NULL;
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    assert_non_null(place);
    lease_time = 5000;
    (void)snprintf(place->folder, sizeof(place->folder), "/tmp/hf-mark-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof(place->path), "%s/db", place->folder);
    (void)snprintf(place->copy, sizeof(place->copy), "%s/copy", place->folder);
    opened(place);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    static const char *const tails[] = { "", "-wal", "-shm", "-hf" };
    if (place->store)
        closed(place);
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "%s%s", place->path, tails[i]);
        (void)unlink(path); /* some are not there */
    }
    (void)unlink(place->copy);
    (void)rmdir(place->folder); /* a folder left behind harms no test */
    free(place);
    return 0;
}

static int64_t told(const struct place *place, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(st, 0);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

static int64_t commit_seq(const struct place *place)
{
    return told(place, "SELECT commit_seq FROM hf_store");
}

static void made(const struct place *place, const char *name, bool new_one)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec request = plain_unit(name);
    assert_int_equal(hf_work_create(place->store, NULL, &request, 1, 0, &answer, NULL),
                     0);
    assert_int_equal(hf_answer_at(answer, 0)->created, new_one);
    hf_answer_free(answer);
}

static void every_commit_is_counted(void **state)
{
    struct place *place = *state;
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "alice" };
    int64_t before = commit_seq(place);
    made(place, "one", true);
    assert_int_equal(hf_work_claim(place->store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    hf_answer_free(answer);
    assert_int_equal(commit_seq(place), before + 2);
}

static void a_commit_without_events_is_counted(void **state)
{
    struct place *place = *state;
    struct hf_policy policy = { .size = sizeof(policy), .ttl_ms = 90000 };
    int64_t before = commit_seq(place);
    assert_int_equal(hf_policy_set(place->store, NULL, "default", &policy, NULL), 0);
    assert_int_equal(commit_seq(place), before + 1);
}

static void a_call_that_took_an_id_and_wrote_nothing_commits_nothing(void **state)
{
    struct place *place = *state;
    made(place, "one", true);
    int64_t before = commit_seq(place);
    made(place, "one", false);
    assert_int_equal(commit_seq(place), before);
}

static void the_lease_clocks_high_water_is_written_with_each_commit(void **state)
{
    struct place *place = *state;
    int64_t before = told(place, "SELECT lease_high_water FROM hf_store");
    lease_time += 1;
    made(place, "one", true);
    assert_int_equal(told(place, "SELECT lease_high_water FROM hf_store"), before + 1);
}

static void copied(const char *from, const char *to)
{
    static char bytes[4096];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (size_t got; (got = fread(bytes, 1, sizeof(bytes), in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, got, out), got);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* The sidecar has seen a commit that the file put back does not have. */
static void an_older_file_put_back_is_a_new_history(void **state)
{
    struct place *place = *state;
    made(place, "one", true);
    closed(place);
    (void)told(place, "PRAGMA wal_checkpoint(TRUNCATE)");
    copied(place->path, place->copy);
    opened(place);
    int64_t incarnation = told(place, "SELECT incarnation FROM hf_store");
    made(place, "two", true);
    closed(place);
    (void)told(place, "PRAGMA wal_checkpoint(TRUNCATE)");

    opened(place);
    assert_int_equal(told(place, "SELECT incarnation FROM hf_store"), incarnation);
    closed(place);

    (void)told(place, "PRAGMA wal_checkpoint(TRUNCATE)");
    copied(place->copy, place->path);
    opened(place);
    assert_int_equal(told(place, "SELECT incarnation FROM hf_store"), incarnation + 1);
    closed(place);
    opened(place);
    assert_int_equal(told(place, "SELECT incarnation FROM hf_store"), incarnation + 1);
}

static void ids_go_on_behind_those_of_plain_sql(void **state)
{
    struct place *place = *state;
    sqlite3 *db = NULL;
    made(place, "one", true);
    made(place, "two", true);
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "UPDATE work_state SET status = 'cancelled', finished_at = 1,"
                     " updated_at = 1 WHERE seq = (SELECT max(seq) FROM work_state)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(told(place, "SELECT max(event_id) FROM work_event"), 3);
    made(place, "three", true);
    assert_int_equal(told(place, "SELECT max(seq) FROM work_spec"), 4);
}

/* The last id of a batch was taken for a unit that was there already. */
static void an_id_that_made_no_row_is_not_seen_as_the_last(void **state)
{
    struct place *place = *state;
    struct hf_work_spec requests[] = { plain_unit("two"), plain_unit("three"),
                                       plain_unit("one") };
    struct hf_answer *answer = NULL;
    int64_t incarnation = told(place, "SELECT incarnation FROM hf_store");
    made(place, "one", true);
    assert_int_equal(
        hf_work_create(place->store, NULL, requests, 3, HF_BRIEF, &answer, NULL), 0);
    assert_true(hf_answer_at(answer, 1)->created);
    assert_false(hf_answer_at(answer, 2)->created);
    hf_answer_free(answer);
    assert_int_equal(told(place, "SELECT max(seq) FROM work_spec"), 3);
    closed(place);
    opened(place);
    assert_int_equal(told(place, "SELECT incarnation FROM hf_store"), incarnation);
    made(place, "four", true);
    assert_int_equal(told(place, "SELECT max(seq) FROM work_spec"), 4);
}

/* A token names the history in which its claim was made. */
static int64_t history_of_a_claim(const struct place *place)
{
    struct hf_claim claim = { .size = sizeof(claim), .owner = "alice" };
    struct hf_answer *answer = NULL;
    struct hf_token token;
    assert_int_equal(hf_work_claim(place->store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    assert_int_equal(hf_token_read(hf_answer_at(answer, 0)->token, &token, NULL), 0);
    hf_answer_free(answer);
    return token.store;
}

static void a_history_that_others_began_is_seen_at_once(void **state)
{
    struct place *place = *state;
    made(place, "one", true);
    made(place, "two", true);
    int64_t before = history_of_a_claim(place);
    (void)told(place, "UPDATE hf_store SET incarnation = incarnation + 1 RETURNING 1");
    assert_int_equal(history_of_a_claim(place), before + 1);
}

static void a_history_that_we_began_is_seen_at_once(void **state)
{
    struct place *place = *state;
    int64_t now = 0;
    made(place, "one", true);
    made(place, "two", true);
    int64_t before = history_of_a_claim(place);
    assert_int_equal(hf_store_bump(place->store, &now, NULL), 0);
    assert_int_equal(now, before + 1);
    assert_int_equal(history_of_a_claim(place), before + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_commit_is_counted),
        CASE(a_commit_without_events_is_counted),
        CASE(a_call_that_took_an_id_and_wrote_nothing_commits_nothing),
        CASE(the_lease_clocks_high_water_is_written_with_each_commit),
        CASE(ids_go_on_behind_those_of_plain_sql),
        CASE(an_id_that_made_no_row_is_not_seen_as_the_last),
        CASE(a_history_that_others_began_is_seen_at_once),
        CASE(a_history_that_we_began_is_seen_at_once),
        CASE(an_older_file_put_back_is_a_new_history),
    };
    return cmocka_run_group_tests_name("lite_mark", tests, NULL, NULL);
}
