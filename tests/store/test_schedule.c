/* Schedules in a file that others have damaged, and with memory that runs out. */
#include "support/unit.h"

#include <holdfast/schedule.h>
#include <holdfast/store.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fail_alloc.h"

#define PAST "2026-01-01T00:00:00Z"

static struct hf_schedule_spec once(const char *name)
{
    return (struct hf_schedule_spec){ .size = sizeof(struct hf_schedule_spec),
                                      .name = name,
                                      .at = PAST,
                                      .zone = "Europe/Berlin",
                                      .priority = -1 };
}

static int add(struct hf_store *store, const char *name)
{
    struct hf_schedules *made = NULL;
    struct hf_schedule_spec wanted = once(name);
    struct hf_err err = { 0 };
    int rc = hf_schedule_add(store, NULL, &wanted, &made, &err);
    if (rc == 0)
        hf_schedules_free(made);
    return rc;
}

static void run_sql(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
}

static struct hf_schedule_report pass(struct hf_store *store)
{
    struct hf_schedule_report report;
    struct hf_err err = { 0 };
    if (hf_schedule_pass(store, NULL, &report, &err))
        fail_msg("%s", err.message);
    return report;
}

/* T37, G4: an impossible row is set aside with its error and does not stop the others. */
static void t37_a_schedule_that_cannot_be_handled_does_not_stop_others(void **state)
{
    (void)state;
    char path[] = "/tmp/hf-schedule-XXXXXX";
    assert_true(close(mkstemp(path)) == 0 && unlink(path) == 0);
    struct hf_store *store = NULL;
    struct hf_schedules *found = NULL;
    sqlite3 *db = NULL;
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    assert_int_equal(hf_store_open(path, &options, &store, NULL), 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(add(store, "bad-cron"), 0);
    assert_int_equal(add(store, "bad-zone"), 0);
    assert_int_equal(add(store, "good"), 0);
    run_sql(db, "UPDATE work_schedule SET timing = 'cron', cron = '0 0 30 2 *',"
                " start_at = NULL WHERE name = 'bad-cron'");
    run_sql(db, "UPDATE work_schedule SET zone = 'Gone/Away' WHERE name = 'bad-zone'");
    struct hf_schedule_report report = pass(store);
    assert_int_equal(report.made, 1);
    assert_int_equal(report.failed, 2);
    assert_int_equal(pass(store).looked_at, 0); /* set aside for a minute */
    assert_int_equal(hf_schedule_get(store, NULL, "bad-cron", &found, NULL), 0);
    const struct hf_schedule *bad = hf_schedules_at(found, 0);
    assert_string_equal(bad->state, "active");
    assert_int_equal(bad->failures, 1);
    assert_non_null(strstr(bad->last_error, "never fires"));
    hf_schedules_free(found);
    /* The same definition once more changes nothing, and its answer shows what is stored. */
    run_sql(db,
            "UPDATE work_schedule SET zone = 'Europe/Berlin' WHERE name = 'bad-zone'");
    struct hf_schedule_spec same = once("bad-zone");
    assert_int_equal(hf_schedule_update(store, NULL, &same, 1, &found, NULL), 0);
    assert_false(hf_schedules_changed(found));
    assert_int_equal(hf_schedules_at(found, 0)->failures, 1);
    assert_non_null(hf_schedules_at(found, 0)->last_error);
    hf_schedules_free(found);
    /* Mended, it goes on: the zone is back, the minute is over. */
    run_sql(db,
            "UPDATE work_schedule SET zone = 'UTC', look_at = 1 WHERE name = 'bad-zone'");
    assert_int_equal(pass(store).made, 1);
    assert_int_equal(hf_schedule_get(store, NULL, "bad-zone", &found, NULL), 0);
    assert_null(hf_schedules_at(found, 0)->last_error);
    hf_schedules_free(found);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    hf_store_close(store);
    char side[64];
    static const char *const suffixes[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(side, sizeof(side), "%s%s", path, suffixes[i]);
        (void)unlink(side); /* some are gone already */
    }
}

/* One life of a schedule; the first failure ends it. */
static int live(struct hf_store *store)
{
    struct hf_schedule_report report;
    struct hf_schedules *found = NULL;
    struct hf_schedule_skips *skips = NULL;
    struct hf_sync_report synced;
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    int rc = add(store, "s");
    if (rc == 0)
        rc = hf_schedule_sync(store, NULL,
                              "{\"set\":\"c\",\"schedules\":[{\"name\":\"t\",\"every\":"
                              "\"5m\",\"payload\":{\"a\":[1]}}]}",
                              &synced, &err);
    if (rc == 0)
        rc = hf_schedule_pass(store, NULL, &report, &err);
    if (rc == 0)
        rc = hf_schedule_run_now(store, NULL, "t", &answer, &err);
    hf_answer_free(answer);
    if (rc == 0)
        rc = hf_schedule_pause(store, NULL, "t", "r", 0, &found, &err);
    hf_schedules_free(found);
    if (rc == 0)
        rc = hf_schedule_skips(store, NULL, "t", 0, &skips, &err);
    hf_schedule_skips_free(skips);
    return rc;
}

static void every_allocation_of_a_schedules_life_can_fail(void **state)
{
    (void)state;
    bool failed = true;
    for (int64_t at = 1; failed && at < 5000; at++) {
        struct fail_alloc failing;
        fail_alloc_init(&failing, 0);
        struct hf_store *store = NULL;
        struct hf_store_options options = { .size = sizeof(options),
                                            .alloc = &failing.alloc,
                                            .inline_mode = true };
        assert_int_equal(hf_store_open("sqlite::memory:", &options, &store, NULL), 0);
        failing.fail_at = failing.calls + at;
        int rc = live(store);
        failed = rc != 0;
        if (failed)
            assert_int_equal(rc, HF_ENOMEM);
        failing.fail_at = 0;
        hf_store_close(store);
        assert_int_equal(failing.live, 0);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t37_a_schedule_that_cannot_be_handled_does_not_stop_others),
        cmocka_unit_test(every_allocation_of_a_schedules_life_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
