/* Lock files of runners that died, with real processes: what a reaper may remove, and what a
 * proof of death still needs. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/process.h>
#include <holdfast/run.h>
#include <holdfast/store.h>

struct rig {
    char folder[64], db[96], locks[96];
    hf_ms ahead; /* of the real wall clock */
    struct hf_clock clock;
    struct hf_store *store;
    struct hf_reaper *reaper;
    struct hf_err err;
};

static hf_ms wall(void *user)
{
    const struct hf_clock *real = hf_clock_system();
    return real->wall_ms(real->user) + ((struct rig *)user)->ahead;
}

static hf_ms mono(void *user)
{
    const struct hf_clock *real = hf_clock_system();
    (void)user;
    return real->mono_ms(real->user);
}

static struct hf_store *opened(struct rig *rig)
{
    struct hf_store_options options = { .size = sizeof(options), .clock = &rig->clock };
    struct hf_store *store = NULL;
    if (hf_store_open(rig->db, &options, &store, &rig->err))
        fail_msg("%s", rig->err.message);
    return store;
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    (void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/hf-orphan-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    (void)snprintf(rig->db, sizeof(rig->db), "%s/work.db", rig->folder);
    (void)snprintf(rig->locks, sizeof(rig->locks), "%s/locks", rig->folder);
    rig->clock = (struct hf_clock){ .user = rig, .wall_ms = wall, .mono_ms = mono };
    hf_store_close(opened(rig));
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = { "", "-hf", "-shm", "-wal" };
    struct rig *rig = *state;
    hf_reaper_free(rig->reaper);
    hf_store_close(rig->store);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", rig->db, files[i]);
        (void)unlink(path); /* not all are there */
    }
    assert_int_equal(rmdir(rig->locks), 0); /* every lock was removed */
    assert_int_equal(rmdir(rig->folder), 0);
    free(rig);
    return 0;
}

/* A runner that makes its lock, claims with it if told to, and dies: nothing is started. */
static void runner_dies(struct rig *rig, bool claims)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct hf_store *store = opened(rig);
        struct hf_run *run = NULL;
        struct hf_answer *answer = NULL;
        if (hf_run_new(store, rig->locks, &run, NULL))
            _exit(1);
        struct hf_work_spec work = { .size = sizeof(work),
                                     .source = HF_SOURCE_MANUAL,
                                     .source_id = "one",
                                     .kind = HF_RUN_KIND,
                                     .disposition = HF_DISPOSITION_OWNER_BOUND,
                                     .priority = -1 };
        struct hf_claim claim = { .size = sizeof(claim),
                                  .owner = "runner",
                                  .pid = getpid(),
                                  .lock = hf_run_lock(run) };
        struct hf_process_spec process = { .size = sizeof(process),
                                           .work = &work,
                                           .identity_kind = HF_RUN_KIND,
                                           .claim = &claim };
        if (claims && hf_process_register(store, NULL, &process, &answer, NULL))
            _exit(2);
        _exit(0); /* nothing is closed or freed: as after kill -9 */
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    rig->store = opened(rig);
    if (hf_reaper_new(rig->store, rig->locks, &rig->reaper, &rig->err))
        fail_msg("%s", rig->err.message);
}

static void reap(struct rig *rig)
{
    int64_t ending = -1;
    if (hf_reaper_pass(rig->reaper, NULL, 1000, NULL, NULL, &ending, &rig->err))
        fail_msg("%s", rig->err.message);
    assert_int_equal(ending, 0);
}

static bool any_lock(const struct rig *rig)
{
    struct stat at;
    return stat(rig->locks, &at) == 0 && rmdir(rig->locks) != 0;
}

static void a_runner_that_died_between_claim_and_start_is_proven_dead(void **state)
{
    struct rig *rig = *state;
    struct hf_sweep_report report;
    runner_dies(rig, true);
    rig->ahead = 3600 *
                 1000; /* old enough to be forgotten, if the unit did not name it */
    reap(rig);
    assert_true(any_lock(rig));
    assert_int_equal(hf_work_sweep(rig->store, NULL, 0, &report, &rig->err), 0);
    assert_int_equal(report.abandoned, 1);
    reap(rig);
    assert_false(any_lock(rig));
    assert_int_equal(mkdir(rig->locks, 0700), 0);
}

static void a_lock_that_no_unit_names_is_removed_when_no_claim_can_come(void **state)
{
    struct rig *rig = *state;
    runner_dies(rig, false);
    reap(rig);
    assert_true(any_lock(rig)); /* its claim may be on its way to a server */
    rig->ahead = 61 * 1000;
    reap(rig);
    assert_false(any_lock(rig));
    assert_int_equal(mkdir(rig->locks, 0700), 0);
}

static void a_run_whose_claim_was_not_answered_leaves_its_lock(void **state)
{
    struct rig *rig = *state;
    struct hf_run *run = NULL;
    rig->store = opened(rig);
    assert_int_equal(hf_run_new(rig->store, rig->locks, &run, &rig->err), 0);
    char path[256];
    (void)snprintf(path, sizeof(path), "%s", hf_run_lock(run));
    hf_run_leave(run);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(hf_run_new(rig->store, rig->locks, &run, &rig->err), 0);
    (void)snprintf(path, sizeof(path), "%s", hf_run_lock(run));
    hf_run_free(run);
    assert_int_not_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_runner_that_died_between_claim_and_start_is_proven_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_lock_that_no_unit_names_is_removed_when_no_claim_can_come, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_run_whose_claim_was_not_answered_leaves_its_lock, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
