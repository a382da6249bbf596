/* A sweep, or a wait, that meets others at its rows: another store handle acts between its
 * reading and its write. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/process.h>
#include <holdfast/sys/store.h>
#include <holdfast/work.h>

#include "store/store.h"
#include "support/mortal.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

struct place {
    char folder[64];
    char path[80];
    struct mortal_plan plan;
    struct hf_store *sweeper; /* its first write waits for `plan.in_the_middle` */
};

static struct hf_store *other; /* who acts meanwhile */
static struct pg_server server;

/* ---- fixture ------------------------------------------------------------------------- */

static void open_sweeper(struct place *place, struct hf_sql *real)
{
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = hf_alloc_system(),
                                        .clock = hf_clock_system(),
                                        .random = hf_random_system(),
                                        .inline_mode = true };
    struct hf_sql *sql = mortal_over(real, &place->plan);
    assert_non_null(sql);
    assert_int_equal(hf_sql_store_new(sql, &options, &place->sweeper, NULL), 0);
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    struct hf_sql_options driver = { .size = sizeof(driver), .inline_mode = true };
    struct hf_sql *real = NULL;
    assert_non_null(place);
    (void)snprintf(place->folder, sizeof(place->folder), "/tmp/hf-race-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof(place->path), "%s/db", place->folder);
    assert_int_equal(hf_store_open(place->path, &options, &other, NULL), 0);
    assert_int_equal(hf_sqlite_open(place->path, &driver, &real, NULL), 0);
    open_sweeper(place, real);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    static const char *const tails[] = { "", "-wal", "-shm", "-hf" };
    hf_store_close(place->sweeper);
    hf_store_close(other);
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        char path[100];
        (void)snprintf(path, sizeof(path), "%s%s", place->path, tails[i]);
        (void)unlink(path); /* some are not there */
    }
    (void)rmdir(place->folder);
    free(place);
    return 0;
}

/* ---- steps --------------------------------------------------------------------------- */

static int64_t claimed_by(const char *owner, int pid)
{
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = owner, .incarnation = "boot-1", .pid = pid
    };
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_work_claim(other, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    int64_t fence = hf_answer_at(answer, 0)->work.lease_fence;
    hf_answer_free(answer);
    return fence;
}

/* A unit, running for "ann", a process that has died. */
static void hold_and_die(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    make_unit(other, "one");
    assert_int_equal(claimed_by("ann", child), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static struct hf_sweep_report swept(struct place *place,
                                    void (*meanwhile)(struct hf_sql *real))
{
    struct hf_sweep_report report = { 0 };
    place->plan = (struct mortal_plan){ .die_at = 1,
                                        .side = MORTAL_MIDDLE,
                                        .in_the_middle = meanwhile };
    assert_int_equal(hf_work_sweep(place->sweeper, NULL, 0, &report, NULL), 0);
    assert_true(place->plan.calls > 1);
    return report;
}

static void renew_for_ann(struct hf_sql *real)
{
    struct hf_renew_all renew = { .size = sizeof(renew),
                                  .owner = "ann",
                                  .incarnation = "boot-1" };
    struct hf_answer *answer = NULL;
    (void)real;
    assert_int_equal(hf_work_renew_all(other, NULL, &renew, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    hf_answer_free(answer);
}

static void take_over(struct hf_sql *real)
{
    struct hf_sweep_report report = { 0 };
    (void)real;
    assert_int_equal(hf_work_sweep(other, NULL, 0, &report, NULL), 0);
    assert_int_equal(report.requeued, 1);
    assert_int_equal(claimed_by("bob", getpid()), 2);
}

/* ---- tests --------------------------------------------------------------------------- */

/* A sidecar renews for its owner by name: it does not know that the worker has died. */
static void a_renewal_in_the_middle_of_a_sweep_does_not_keep_a_dead_holder(void **state)
{
    hold_and_die();
    struct hf_sweep_report report = swept(*state, renew_for_ann);
    assert_int_equal(report.requeued, 1);
    assert_int_equal(report.proven_dead, 1);
    assert_int_equal(claimed_by("bob", getpid()), 2);
}

static void a_proof_of_death_says_nothing_of_the_next_holder(void **state)
{
    hold_and_die();
    struct hf_sweep_report report = swept(*state, take_over);
    assert_int_equal(report.requeued, 0);
    assert_int_equal(report.proven_dead, 0);
    struct hf_sweep_report again = { 0 };
    assert_int_equal(hf_work_sweep(other, NULL, 0, &again, NULL), 0);
    assert_int_equal(again.requeued, 0);
}

static char process_id[40];

static void signal_it(struct hf_sql *real)
{
    struct hf_process_tell tell = { .size = sizeof(tell),
                                    .what = HF_TELL_SIGNAL,
                                    .id = process_id,
                                    .name = "go",
                                    .payload = "7" };
    bool repeated = false;
    (void)real;
    assert_int_equal(hf_process_tell(other, NULL, &tell, &repeated, NULL), 0);
}

/* Registers the process and claims it; the caller frees the answer. */
static struct hf_answer *taken_process(enum hf_disposition disposition)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec unit = plain_unit("waits");
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &unit,
                                       .identity_kind = "shell" };
    struct hf_claim claim = { .size = sizeof(claim), .owner = "ann" };
    unit.disposition = disposition;
    assert_int_equal(hf_process_register(other, NULL, &process, &answer, NULL), 0);
    (void)snprintf(process_id, sizeof(process_id), "%s",
                   hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    assert_int_equal(hf_work_claim(other, NULL, &claim, &answer, NULL), 0);
    return answer;
}

/* When the change is decided the signal is not there, and after it is written none comes. */
static void change_meets_signal(struct place *place, const struct hf_change *change,
                                const char *status)
{
    struct hf_answer *answer = NULL;
    place->plan = (struct mortal_plan){ .die_at = 1,
                                        .side = MORTAL_MIDDLE,
                                        .in_the_middle = signal_it };
    assert_int_equal(hf_work_change(place->sweeper, NULL, change, 1, 0, &answer, NULL),
                     0);
    assert_int_equal(place->plan.calls,
                     2); /* refused by the signal's revision, and done */
    assert_string_equal(hf_answer_at(answer, 0)->work.status, status);
    assert_string_equal(hf_answer_at(answer, 0)->work.resume_payload, "7");
    hf_answer_free(answer);
}

static void wait_meets_signal(struct place *place, enum hf_disposition disposition,
                              const char *status)
{
    struct hf_answer *held = taken_process(disposition);
    struct hf_change wait = { .size = sizeof(wait),
                              .verb = HF_VERB_WAIT,
                              .id = process_id,
                              .token = hf_answer_at(held, 0)->token,
                              .status = HF_STATUS_WAITING_EXTERNAL,
                              .ref = "signal.go" };
    change_meets_signal(place, &wait, status);
    hf_answer_free(held);
}

static void a_signal_in_the_middle_of_a_wait_ends_it(void **state)
{
    wait_meets_signal(*state, HF_DISPOSITION_RERUNNABLE, "queued");
}

static void a_signal_in_the_middle_of_a_bound_wait_ends_it(void **state)
{
    wait_meets_signal(*state, HF_DISPOSITION_OWNER_BOUND, "running");
}

static void a_signal_in_the_middle_of_a_resume_is_taken(void **state)
{
    struct hf_answer *held = taken_process(HF_DISPOSITION_OWNER_BOUND), *waits = NULL;
    struct hf_change wait = { .size = sizeof(wait),
                              .verb = HF_VERB_WAIT,
                              .id = process_id,
                              .token = hf_answer_at(held, 0)->token,
                              .status = HF_STATUS_WAITING_EXTERNAL,
                              .ref = "signal.go" };
    struct hf_change resume = { .size = sizeof(resume),
                                .verb = HF_VERB_RESUME,
                                .id = process_id,
                                .owner = "ann",
                                .incarnation =
                                    hf_answer_at(held, 0)->work.owner_incarnation };
    assert_int_equal(hf_work_change(other, NULL, &wait, 1, 0, &waits, NULL), 0);
    change_meets_signal(*state, &resume, "running");
    hf_answer_free(waits);
    hf_answer_free(held);
}

/* On PostgreSQL the clock goes on within a transaction: a statement may find what was not yet
 * due at the moment by which the sweep judges it. */
static void what_falls_due_within_a_sweep_is_not_put_off(void **state)
{
    (void)state;
    char url[400];
    struct hf_sql *real = NULL;
    struct hf_sql_options driver = { .size = sizeof(driver) };
    struct place place = { .plan = { .slow_ms = 3600000 } };
    struct hf_store *store = pg_server_store(&server, "due");
    struct hf_work_spec soon = plain_unit("soon");
    struct hf_answer *answer = NULL;
    struct hf_sweep_report report = { 0 };
    soon.delay_ms = 1;
    assert_int_equal(hf_work_create(store, NULL, &soon, 1, 0, &answer, NULL), 0);
    hf_answer_free(answer);
    pg_server_await(&server, "SELECT wake_at < due.hf_now() FROM due.work_state", "t");
    assert_int_equal(
        hf_postgres_open(pg_server_schema(server.url, "due", url), &driver, &real, NULL),
        0);
    open_sweeper(&place, real);
    assert_int_equal(hf_work_sweep(place.sweeper, NULL, 0, &report, NULL), 0);
    assert_int_equal(report.promoted, 0);
    place.plan.slow_ms = 0;
    assert_int_equal(hf_work_sweep(place.sweeper, NULL, 0, &report, NULL), 0);
    assert_int_equal(report.promoted, 1);
    hf_store_close(place.sweeper);
    hf_store_close(store);
}

#define RACE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RACE(a_renewal_in_the_middle_of_a_sweep_does_not_keep_a_dead_holder),
        RACE(a_proof_of_death_says_nothing_of_the_next_holder),
        RACE(a_signal_in_the_middle_of_a_wait_ends_it),
        RACE(a_signal_in_the_middle_of_a_bound_wait_ends_it),
        RACE(a_signal_in_the_middle_of_a_resume_is_taken),
        cmocka_unit_test(what_falls_due_within_a_sweep_is_not_put_off),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
