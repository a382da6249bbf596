/* Crash at every step: a scenario that goes through the ledger's verbs is cut at every I/O by
 * a power failure, has every I/O and every allocation fail once, and dies before, after and
 * in the middle of every transaction, in a process of its own. The caller that comes next
 * finishes it; it ends as if nothing had happened, and nothing that was acknowledged is
 * missing.
 *
 * By itself it takes some of the places; with HF_CRASH_ALL=1 all of them, and with
 * HF_CRASH_PART=K/N the K-th of N parts of SQLite's allocations, which are the most. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <holdfast/sys/store.h>

#include "base/err.h"
#include "db/lite/lite.h"
#include "sim/disk.h"
#include "store/schema.h"
#include "store/store.h"
#include "support/fail_alloc.h"
#include "support/mortal.h"
#include "support/scenario.h"

#define DISK "holdfast-crash"
#define TRIES 12 /* of the scenario, while faults strike */

/* ---- the world ------------------------------------------------------------------- */

/* In memory that a child shares. */
struct world {
    struct scenario scenario;
    struct mortal_plan death;
};

static struct world *world;
static struct fail_alloc fail;
static char folder[64];
static char path[80];
static int64_t lite_calls;
static int64_t lite_calls_played; /* of them, until the scenario was through */
static struct lite *opened;       /* the driver of the handle that is open */
static bool lite_child;           /* this process was forked to let one allocation fail */
static int64_t fork_every;        /* at how manieth allocation of SQLite's; 0: never */
static bool real_files;           /* SQLite's own VFS, for processes that share them */

static int die_in_commit(void *user)
{
    (void)user;
    mortal_die();
    return 0;
}

/* With its changes made and the COMMIT under way. */
static void kill_in_commit(struct hf_sql *real)
{
    (void)sqlite3_commit_hook(lite_of(real)->writer.db, die_in_commit, NULL);
}

static int open_store(struct hf_store **ret_store)
{
    const struct lite_under under = { &hf_ledger_schema, real_files ? NULL : DISK };
    struct hf_sql_options driver = { .size = sizeof(driver),
                                     .alloc = &fail.alloc,
                                     .clock = scenario_clock(),
                                     .random = scenario_random(),
                                     .inline_mode = true };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = &fail.alloc,
                                        .clock = driver.clock,
                                        .random = driver.random,
                                        .inline_mode = true };
    struct hf_sql *real = NULL;
    int rc = lite_open(path, &driver, &under, &real, NULL);
    if (rc)
        return rc;
    opened = lite_of(real);
    opened->pid = getpid(); /* it may be another one since the open began */
    struct hf_sql *mortal = mortal_over(real, &world->death);
    assert_non_null(mortal);
    rc = hf_sql_store_new(mortal, &options, ret_store, NULL);
    if (rc)
        mortal->methods->close(mortal);
    return rc;
}

/* ---- fixture ------------------------------------------------------------------------- */

static void remove_sidecar(void)
{
    char side[96];
    (void)snprintf(side, sizeof(side), "%s-hf", path);
    (void)unlink(side);
}

static void remove_files(void)
{
    char side[96];
    remove_sidecar();
    (void)unlink(path);
    (void)snprintf(side, sizeof(side), "%s-wal", path);
    (void)unlink(side);
    (void)snprintf(side, sizeof(side), "%s-shm", path);
    (void)unlink(side);
}

static void fresh(unsigned device)
{
    remove_files();
    disk_format(device);
    scenario_begin(&world->scenario);
    world->death = (struct mortal_plan){ .in_the_middle = kill_in_commit };
    fail_alloc_init(&fail, 0);
}

static void calm(void)
{
    disk_calm();
    fail.fail_at = 0;
    fork_every = 0;
    lite_calls_played = lite_calls;
}

/* Again and again until it is through. `again`: with a handle of its own each time. */
static void finish(bool again)
{
    struct hf_store *store = NULL;
    int rc = HF_EBUSY;
    for (int i = 0; i < TRIES && rc; i++) {
        if (!store)
            rc = open_store(&store);
        if (!store) {
            assert_true(scenario_passes(rc));
            continue;
        }
        scenario_check_acked(store);
        rc = scenario_play(store);
        if (rc && !scenario_passes(rc))
            print_error("the scenario ends with %s\n", hf_err_wire(rc));
        assert_true(rc == 0 || scenario_passes(rc));
        if (rc && again) {
            hf_store_close(store);
            store = NULL;
        }
    }
    assert_int_equal(rc, 0);
    calm(); /* what comes now is not part of the scenario */
    scenario_check_end(store);
    if (lite_child)
        _exit(0); /* what a close would let go of is its parent's */
    opened = NULL;
    hf_store_close(store);
}

static int64_t ios_of_all(void)
{
    fresh(0);
    disk_set_fault((struct disk_fault){ 0 }, 0);
    finish(false);
    return disk_ios();
}

static int setup(void **state)
{
    (void)state;
    bool shm = access("/dev/shm", W_OK) == 0;
    (void)snprintf(folder, sizeof(folder), "%s/holdfast-crash-XXXXXX",
                   shm ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/db", folder);
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    assert_true(world != MAP_FAILED);
    assert_int_equal(disk_register(DISK), SQLITE_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_files();
    (void)rmdir(folder);
    return munmap(world, sizeof(*world));
}

/* The distance between two places that are tried: 1 with HF_CRASH_ALL set, as the long form;
 * HF_CRASH_SPARSE times as far as otherwise in builds in which a fork costs much. */
static int64_t stride(int64_t least)
{
    const char *sparse = getenv("HF_CRASH_SPARSE");
    return getenv("HF_CRASH_ALL") ? 1 : least * (sparse ? strtoll(sparse, NULL, 10) : 1);
}

/* ---- cases --------------------------------------------------------------------------- */

static void nothing_goes_wrong_where_nothing_strikes(void **state)
{
    (void)state;
    assert_true(ios_of_all() > 300);
    assert_true(world->death.calls > 40);
}

static void power_may_fail_at_every_io(void **state)
{
    (void)state;
    int64_t ios = ios_of_all();
    int64_t cuts = 0;
    for (unsigned device = 0; device < 4; device++) {
        for (int64_t at = 1 + (int64_t)device; at <= ios; at += stride(37)) {
            fresh(device);
            disk_set_fault((struct disk_fault){ .at = at, .is_power = true },
                           (uint64_t)at * 31 + device);
            finish(true);
            cuts += disk_failed();
        }
    }
    print_message("# power failed %lld times in %lld I/Os\n", (long long)cuts,
                  (long long)ios);
    assert_true(cuts > 0);
}

static void fail_every_io(int code, bool stays)
{
    int64_t ios = ios_of_all();
    for (int64_t at = 1; at <= ios; at += stride(41)) {
        struct hf_store *store = NULL;
        fresh(0);
        disk_set_fault((struct disk_fault){ .at = at, .code = code, .stays = stays }, 0);
        int rc = open_store(&store);
        if (rc == 0)
            rc = scenario_play(store);
        if (rc && !scenario_passes(rc))
            print_error("I/O %lld: %s\n", (long long)at, hf_err_wire(rc));
        assert_true(rc == 0 || scenario_passes(rc) || !store);
        disk_set_fault((struct disk_fault){ 0 }, 0);
        if (store)
            hf_store_close(store);
        finish(false);
    }
}

static void every_io_may_fail_once(void **state)
{
    (void)state;
    fail_every_io(0, false); /* EIO, as read, write, sync or truncate report it */
}

static void every_io_may_find_the_disk_full(void **state)
{
    (void)state;
    fail_every_io(SQLITE_FULL, false);
}

static void the_disk_may_fail_for_good_at_every_io(void **state)
{
    (void)state;
    fail_every_io(0, true);
}

static void every_allocation_may_fail_once(void **state)
{
    (void)state;
    (void)ios_of_all();
    int64_t calls = fail.calls;
    for (int64_t at = 1; at <= calls; at += stride(43)) {
        fresh(0);
        fail_alloc_init(&fail, at);
        finish(false);
        assert_int_equal(fail.live, 0);
    }
    print_message("# %lld allocations of ours\n", (long long)calls);
}

/* ---- SQLite's allocations ------------------------------------------------------------- */

/* There are some forty thousand, so a run of the scenario for each would take long. Instead
 * one run forks at each of them: in the child it fails, and the child goes on to the end.
 * What processes share is put back when it has: the sidecar, and the world. */

#define SIDECAR_MAX 65536

static sqlite3_mem_methods real_memory;
static int64_t fork_first;
static int64_t forks, bad_forks;

static size_t sidecar(bool put_back, unsigned char *bytes, size_t len)
{
    char side[96];
    (void)snprintf(side, sizeof(side), "%s-hf", path);
    int fd = open(side, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return 0; /* not made yet */
    ssize_t moved = put_back ? pwrite(fd, bytes, len, 0) : pread(fd, bytes, len, 0);
    (void)close(fd); /* locks are of open file descriptions: this one had none */
    if (moved < 0)
        abort();
    return (size_t)moved;
}

/* True in the child. */
static bool fork_here(void)
{
    static unsigned char bytes[SIDECAR_MAX];
    struct world was = *world;
    size_t len = sidecar(false, bytes, sizeof(bytes));
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        lite_child = true;
        fork_every = 0;
        world->scenario.unwatched = true;
        if (opened) /* otherwise the handle refuses another process */
            opened->pid = getpid();
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure here ends this process */
        return true;
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    *world = was;
    if (len)
        (void)sidecar(true, bytes, len);
    else
        remove_sidecar(); /* the child's */
    forks++;
    if (status != 0) {
        bad_forks++;
        print_error("allocation %lld: the process ended with status %d\n",
                    (long long)lite_calls, status);
    }
    return false;
}

static bool fails_here(void)
{
    lite_calls++;
    return fork_every && lite_calls % fork_every == fork_first % fork_every &&
           fork_here();
}

static void *lite_malloc(int bytes)
{
    return fails_here() ? NULL : real_memory.xMalloc(bytes);
}

static void *lite_realloc(void *old, int bytes)
{
    return fails_here() ? NULL : real_memory.xRealloc(old, bytes);
}

static bool count_memory(bool on)
{
    (void)sqlite3_shutdown();
    if (on && !real_memory.xMalloc)
        (void)sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    sqlite3_mem_methods mine = real_memory;
    if (on) {
        mine.xMalloc = lite_malloc;
        mine.xRealloc = lite_realloc;
    }
    int rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
    if (rc == SQLITE_OK)
        rc = sqlite3_initialize();
    return rc == SQLITE_OK && disk_register(DISK) == SQLITE_OK;
}

static void every_allocation_of_sqlite_may_fail_once(void **state)
{
    (void)state;
    assert_true(count_memory(true));
    (void)ios_of_all(); /* what is allocated once for all is, from here on */
    lite_calls = 0;
    int64_t parts;
    scenario_part(&fork_first, &parts);
    int64_t every = stride(499) * parts;
    fork_every = every;
    fresh(0);
    finish(false);
    fork_every = 0;
    print_message("# %lld of %lld allocations of SQLite's\n", (long long)forks,
                  (long long)lite_calls_played);
    assert_true(lite_calls_played > 50000);
    assert_true((forks + 1) * every > lite_calls_played);
    assert_int_equal(bad_forks, 0);
    assert_true(count_memory(false));
}

/* ---- processes that die --------------------------------------------------------------- */

static void live_and_die(void)
{
    struct hf_store *store = NULL;
    if (open_store(&store) == 0 && scenario_play(store) == 0)
        hf_store_close(store);
    _exit(0);
}

static void a_process_may_die_at_every_transaction(void **state)
{
    (void)state;
    fresh(0);
    real_files = true;
    finish(false);
    int64_t all = world->death.calls;
    int64_t deaths = 0;
    for (int side = 0; side < 3; side++) {
        for (int64_t at = 1; at <= all; at += stride(5)) {
            fresh(0);
            world->death.die_at = at;
            world->death.side = (enum mortal_side)side;
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0)
                live_and_die();
            int status = 0;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            deaths += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            world->death.die_at = 0;
            finish(false);
        }
    }
    real_files = false;
    print_message("# %lld of %lld deaths\n", (long long)deaths, (long long)(3 * all));
    assert_true(deaths * stride(5) >= all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_goes_wrong_where_nothing_strikes),
        cmocka_unit_test(power_may_fail_at_every_io),
        cmocka_unit_test(every_io_may_fail_once),
        cmocka_unit_test(every_io_may_find_the_disk_full),
        cmocka_unit_test(the_disk_may_fail_for_good_at_every_io),
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(every_allocation_of_sqlite_may_fail_once),
        cmocka_unit_test(a_process_may_die_at_every_transaction),
    };
    const struct CMUnitTest part[] = {
        cmocka_unit_test(every_allocation_of_sqlite_may_fail_once),
    };
    return getenv("HF_CRASH_PART") ? cmocka_run_group_tests(part, setup, teardown)
                                   : cmocka_run_group_tests(tests, setup, teardown);
}
