/* Crash at every step: a scenario that goes through the ledger's verbs is cut at every I/O by
 * a power failure, has every I/O and every allocation fail once, and dies before, after and
 * in the middle of every transaction, in a process of its own. Whoever comes next finishes it;
 * it ends as if nothing had happened, and nothing that was acknowledged is missing.
 *
 * The scenario is driven by what stands in the store, so it can be begun again at any point:
 * each unit's next call follows from its row. Who goes on has the same owner and incarnation,
 * so it enters its own leases again. */
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
#include "sim/disk.h"
#include "store/lite.h"
#include "store/sqlstore.h"
#include "support/fail_alloc.h"

#define DISK "holdfast-crash"
#define TRIES 12 /* of one call, while faults strike */
#define ROUNDS 60

/* ---- the world ------------------------------------------------------------------- */

enum {
    DONE_UNIT,
    WAITS,
    RETRIES,
    LAPSES,
    CANCELLED,
    AGAIN,
    EXTERNAL,
    LANE_1,
    LANE_2,
    UNITS
};

/* In memory that a child shares: what was acknowledged, and the time. */
struct world {
    hf_ms wall;
    hf_ms mono;
    uint64_t random;
    int acked[UNITS]; /* transitions of each unit that a caller was told of */
    int64_t transactions;
    int64_t die_at; /* transaction, from 1; 0: none */
    int die_side;   /* before, in the middle of, after */
};

static struct world *world;
static struct fail_alloc fail;
static char folder[64];
static char path[80];
static int64_t lite_calls;
static int64_t lite_fail_at;
static bool real_files; /* SQLite's own VFS, for processes that share them */

static hf_ms wall_ms(void *user)
{
    return ((struct world *)user)->wall;
}

static hf_ms mono_ms(void *user)
{
    return ((struct world *)user)->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user;
    (void)ms;
}

static int fill(void *user, void *out, size_t bytes)
{
    struct world *w = user;
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++) {
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        at[i] = (unsigned char)(w->random >> 56);
    }
    return 0;
}

/* ---- a driver that dies at a given transaction --------------------------------------- */

struct mortal {
    struct hf_sql sql; /* first */
    struct hf_sql *real;
};

static struct hf_sql *real_of(struct hf_sql *sql)
{
    return ((struct mortal *)sql)->real;
}

static void die(void)
{
    (void)raise(SIGKILL);
}

/* With its changes made and the COMMIT under way. */
static int die_in_commit(void *user)
{
    (void)user;
    die();
    return 0;
}

static int run(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err)
{
    bool here = !batch->read_only && ++world->transactions == world->die_at;
    if (here && world->die_side == 0)
        die();
    if (here && world->die_side == 1)
        (void)sqlite3_commit_hook(lite_of(real_of(sql))->writer.db, die_in_commit, NULL);
    int rc = real_of(sql)->methods->run(real_of(sql), batch, err);
    if (here && world->die_side == 2)
        die();
    return rc;
}

static int submit(struct hf_sql *sql, struct hf_batch *batch, hf_batch_done *done,
                  void *user, struct hf_err *err)
{
    struct hf_err why = { 0 };
    (void)err;
    done(user, batch, run(sql, batch, &why), &why);
    return 0;
}

static void forget(struct hf_sql *sql, struct hf_batch *batch)
{
    real_of(sql)->methods->forget(real_of(sql), batch);
}

static uint32_t bell_seen(struct hf_sql *sql, uint32_t topic)
{
    return real_of(sql)->methods->bell_seen(real_of(sql), topic);
}

static bool bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms)
{
    return real_of(sql)->methods->bell_wait(real_of(sql), topic, seen, ms);
}

static int facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err)
{
    return real_of(sql)->methods->facts(real_of(sql), ret_json, err);
}

static void close_driver(struct hf_sql *sql)
{
    real_of(sql)->methods->close(real_of(sql));
    free(sql);
}

static const struct hf_sql_methods methods = {
    .name = "mortal",
    .run = run,
    .submit = submit,
    .forget = forget,
    .bell_seen = bell_seen,
    .bell_wait = bell_wait,
    .facts = facts,
    .close = close_driver,
};

static int open_store(struct hf_store **ret_store)
{
    static struct hf_clock clock;
    static struct hf_random random;
    clock = (struct hf_clock){ world, wall_ms, mono_ms, wait_ms };
    random = (struct hf_random){ world, fill };
    const struct lite_tables tables = { hf_sql_lite, HF_SQL_COUNT, hf_migrations,
                                        hf_migration_count };
    const struct lite_inner inner = { &tables, real_files ? NULL : DISK };
    struct hf_sql_options driver = { .size = sizeof(driver),
                                     .alloc = &fail.alloc,
                                     .clock = &clock,
                                     .random = &random,
                                     .inline_mode = true };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = &fail.alloc,
                                        .clock = &clock,
                                        .random = &random,
                                        .inline_mode = true };
    struct mortal *mortal = calloc(1, sizeof(*mortal));
    assert_non_null(mortal);
    mortal->sql.methods = &methods;
    int rc = lite_open_with(path, &driver, &inner, &mortal->real, NULL);
    if (rc) {
        free(mortal);
        return rc;
    }
    rc = hf_sql_store_new(&mortal->sql, &options, ret_store, NULL);
    if (rc)
        close_driver(&mortal->sql);
    return rc;
}

/* ---- the scenario -------------------------------------------------------------------- */

static const char *const names[UNITS] = { "done",     "waits",     "retries",
                                          "lapses",   "cancelled", "again",
                                          "external", "lane-1",    "lane-2" };

static const enum hf_status wanted[UNITS] = {
    HF_DONE, HF_DONE,   HF_DONE, HF_DONE, HF_CANCELLED,
    HF_DONE, HF_FAILED, HF_DONE, HF_DONE,
};

/* Transitions of each when it is all over; creation is one. */
static const int transitions[UNITS] = { 3, 6, 6, 5, 2, 6, 2, 3, 3 };

/* What a unit's row says. */
struct seen {
    enum hf_status status;
    int64_t attempts;
    int64_t generation;
    bool gated;
    char id[40];
    char token[200];
};

static int take(int rc, struct hf_answer *answer, int unit, struct seen *ret_seen)
{
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    rc = item ? item->code : HF_ENOTFOUND;
    if (rc == 0 && item->work.status) {
        ret_seen->status = hf_status_of(item->work.status);
        ret_seen->attempts = item->work.attempt_count;
        ret_seen->generation = item->work.generation;
        ret_seen->gated = item->work.gate != NULL;
        (void)snprintf(ret_seen->id, sizeof(ret_seen->id), "%s", item->work.work_id);
        (void)snprintf(ret_seen->token, sizeof(ret_seen->token), "%s",
                       item->token ? item->token : "");
    }
    (void)unit;
    hf_answer_free(answer);
    return rc;
}

static int create(struct hf_store *store, int unit, struct seen *ret_seen)
{
    struct hf_answer *answer = NULL;
    struct hf_new new = { .size = sizeof(new),
                          .source = HF_SOURCE_MANUAL,
                          .priority = -1,
                          .disposition = HF_RERUNNABLE,
                          .max_attempts = 3 };
    new.source_id = names[unit];
    new.retry_policy = "{\"jitter\":\"none\",\"initial_backoff_ms\":1000}";
    if (unit == EXTERNAL) {
        new.disposition = HF_EXTERNALLY_OWNED;
        new.ref = "outside";
    }
    if (unit == LANE_1 || unit == LANE_2)
        new.lane_key = "lane";
    int rc = hf_work_create(store, NULL, &new, 1, 0, &answer, NULL);
    return take(rc, answer, unit, ret_seen);
}

static int claim(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = "worker",
                              .incarnation = "life",
                              .id = seen->id,
                              .ttl_ms = 3000 };
    int rc = hf_work_claim(store, NULL, &claim, &answer, NULL);
    return take(rc, answer, unit, seen);
}

static int change(struct hf_store *store, int unit, struct hf_change *change,
                  struct seen *seen)
{
    struct hf_answer *answer = NULL;
    struct seen now = *seen;
    change->size = sizeof(*change);
    change->id = seen->id;
    int rc = hf_work_change(store, NULL, change, 1, 0, &answer, NULL);
    return take(rc, answer, unit, &now);
}

static int close_out(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_change c = { .verb = HF_VERB_CLOSE_OUT, .status = HF_DONE };
    c.token = seen->token;
    return change(store, unit, &c, seen);
}

static int sweep(struct hf_store *store)
{
    struct hf_sweep_report report;
    return hf_work_sweep(store, NULL, 0, &report, NULL);
}

/* With a token: by its own lease, entered again. */
static int work_on(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_change wait = { .verb = HF_VERB_WAIT,
                              .status = HF_WAITING_USER,
                              .ref = "word" };
    struct hf_change failed = { .verb = HF_VERB_FAIL,
                                .error_class = "transient_network" };
    struct hf_change renew = { .verb = HF_VERB_RENEW };
    int rc = claim(store, unit, seen);
    if (rc)
        return rc;
    wait.token = failed.token = renew.token = seen->token;
    if (unit == WAITS && seen->attempts == 1)
        return change(store, unit, &wait, seen);
    if (unit == RETRIES && seen->attempts == 1)
        return change(store, unit, &failed, seen);
    if (unit == LAPSES && seen->attempts == 1) {
        world->mono += 3001;
        return sweep(store);
    }
    rc = change(store, unit, &renew, seen);
    return rc ? rc : close_out(store, unit, seen);
}

/* The next call for a unit; 1 when there is none. */
static int step(struct hf_store *store, int unit, struct seen *ret_seen)
{
    struct hf_change resume = { .verb = HF_VERB_RESUME, .payload = "1" };
    struct hf_change cancel = { .verb = HF_VERB_CANCEL, .reason = "no" };
    struct hf_change requeue = { .verb = HF_VERB_REQUEUE, .reason = "again" };
    struct hf_change outside = { .verb = HF_VERB_CLOSE_OUT,
                                 .status = HF_FAILED,
                                 .authority = "engine" };
    int rc = create(store, unit, ret_seen);
    if (rc)
        return rc;
    if (ret_seen->status == HF_DONE && unit == AGAIN && ret_seen->generation == 0)
        return change(store, unit, &requeue, ret_seen);
    if (hf_status_terminal(ret_seen->status))
        return 1;
    if (unit == CANCELLED)
        return change(store, unit, &cancel, ret_seen);
    if (unit == EXTERNAL)
        return change(store, unit, &outside, ret_seen);
    if (ret_seen->status == HF_WAITING_USER)
        return change(store, unit, &resume, ret_seen);
    if (ret_seen->status == HF_RETRY_SCHEDULED) {
        world->wall += 1001;
        return sweep(store);
    }
    if (ret_seen->gated)
        return 1; /* the lane's other unit first */
    return work_on(store, unit, ret_seen);
}

/* Transitions in the trail of a unit, and whether each begins where the one before ended. */
static int trail(struct hf_store *store, const char *id)
{
    struct hf_events *events = NULL;
    const char *at = NULL;
    int count = 0;
    if (hf_work_events(store, NULL, id, 0, 1000, &events, NULL))
        return -1;
    for (size_t i = 0; i < hf_events_count(events); i++) {
        const struct hf_event *e = hf_events_at(events, i);
        if (!e->to_status ||
            (i > 0 && e->event_id == hf_events_at(events, i - 1)->event_id))
            continue;
        bool follows = at ? e->from_status && strcmp(at, e->from_status) == 0
                          : e->from_status == NULL;
        assert_true(follows);
        at = e->to_status;
        count++;
    }
    if (count == 0)
        assert_true(false);
    hf_events_free(events);
    return count;
}

/* All that anybody was told of is there. */
static void check_acked(struct hf_store *store)
{
    struct seen seen;
    for (int unit = 0; unit < UNITS; unit++) {
        if (world->acked[unit] == 0)
            continue;
        int rc = HF_ENOMEM;
        for (int i = 0; i < TRIES && rc; i++)
            rc = create(store, unit, &seen);
        assert_int_equal(rc, 0);
        assert_true(trail(store, seen.id) >= world->acked[unit]);
    }
}

static bool passes(int rc)
{
    return rc == HF_ESTOREIO || rc == HF_EFULL || rc == HF_EUNCERTAIN ||
           rc == HF_ENOMEM || rc == HF_EBUSY;
}

static int session(struct hf_store *store)
{
    struct hf_lease_info info;
    struct hf_lease_claim take_it = { .size = sizeof(take_it),
                                      .key = "s",
                                      .owner = "worker",
                                      .incarnation = "life",
                                      .nonce = "n" };
    int rc = hf_lease_take(store, &take_it, &info, NULL);
    if (rc == 0)
        rc = hf_lease_renew(store, HF_LANE_SESSION, "s", info.token, &info, NULL);
    if (rc == 0)
        rc = hf_lease_release(store, HF_LANE_SESSION, "s", info.token, NULL);
    return rc;
}

/* From wherever the store stands to the end. Gives 0, or the code of what passes. */
static int play(struct hf_store *store)
{
    int left = UNITS;
    int rc = session(store);
    for (int round = 0; rc == 0 && left > 0 && round < ROUNDS; round++) {
        left = 0;
        for (int unit = 0; unit < UNITS; unit++) {
            struct seen seen = { 0 };
            rc = step(store, unit, &seen);
            if (rc == 1)
                left += !hf_status_terminal(seen.status);
            else if (rc)
                return rc;
            else
                left++;
            if (rc == 0)
                world->acked[unit] = trail(store, seen.id);
            rc = 0;
        }
    }
    if (rc == 0)
        assert_int_equal(left, 0);
    return rc;
}

static void check_end(struct hf_store *store)
{
    struct seen seen;
    for (int unit = 0; unit < UNITS; unit++) {
        assert_int_equal(create(store, unit, &seen), 0);
        assert_int_equal(seen.status, wanted[unit]);
        assert_int_equal(trail(store, seen.id), transitions[unit]);
    }
}

static void found(void *user, const struct hf_finding *finding)
{
    (void)user;
    if (finding->bad)
        print_error("%s: %s\n", finding->what, finding->detail);
    assert_false(finding->bad);
}

/* ---- fixture ------------------------------------------------------------------------- */

static void remove_files(void)
{
    char side[96];
    (void)snprintf(side, sizeof(side), "%s-hf", path);
    (void)unlink(path);
    (void)unlink(side);
    (void)snprintf(side, sizeof(side), "%s-wal", path);
    (void)unlink(side);
    (void)snprintf(side, sizeof(side), "%s-shm", path);
    (void)unlink(side);
}

static void fresh(unsigned device)
{
    remove_files();
    disk_format(device);
    *world = (struct world){ .wall = 1800000000000, .mono = 5000000, .random = 7 };
    fail_alloc_init(&fail, 0);
}

static void calm(void)
{
    disk_calm();
    fail.fail_at = 0;
    lite_fail_at = 0;
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
            assert_true(passes(rc));
            continue;
        }
        check_acked(store);
        rc = play(store);
        if (rc && !passes(rc))
            print_error("the scenario ends with %s\n", hf_err_wire(rc));
        assert_true(rc == 0 || passes(rc));
        if (rc && again) {
            hf_store_close(store);
            store = NULL;
        }
    }
    assert_int_equal(rc, 0);
    calm(); /* what comes now is not part of the scenario */
    check_end(store);
    assert_int_equal(hf_store_check(store, found, NULL, NULL), 0);
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

/* Every how manieth place is tried: all of them with HF_CRASH_ALL set, as the long form. */
static int64_t stride(int64_t least)
{
    return getenv("HF_CRASH_ALL") ? 1 : least;
}

/* ---- cases --------------------------------------------------------------------------- */

static void nothing_goes_wrong_where_nothing_strikes(void **state)
{
    (void)state;
    assert_true(ios_of_all() > 300);
    assert_true(world->transactions > 40);
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
            rc = play(store);
        if (rc && !passes(rc))
            print_error("I/O %lld: %s\n", (long long)at, hf_err_wire(rc));
        assert_true(rc == 0 || passes(rc) || !store);
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

static sqlite3_mem_methods real_memory;

static void *lite_malloc(int bytes)
{
    return ++lite_calls == lite_fail_at ? NULL : real_memory.xMalloc(bytes);
}

static void *lite_realloc(void *old, int bytes)
{
    return ++lite_calls == lite_fail_at ? NULL : real_memory.xRealloc(old, bytes);
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
    (void)ios_of_all();
    lite_calls = 0;
    (void)ios_of_all();
    int64_t calls = lite_calls;
    assert_true(calls > 1000);
    for (int64_t at = 1; at <= calls; at += stride(499)) {
        fresh(0);
        lite_calls = 0;
        lite_fail_at = at;
        finish(false);
        lite_fail_at = 0;
    }
    print_message("# %lld allocations of SQLite's\n", (long long)calls);
    assert_true(count_memory(false));
}

/* ---- processes that die --------------------------------------------------------------- */

static void live_and_die(void)
{
    struct hf_store *store = NULL;
    if (open_store(&store) == 0 && play(store) == 0)
        hf_store_close(store);
    _exit(0);
}

static void a_process_may_die_at_every_transaction(void **state)
{
    (void)state;
    fresh(0);
    real_files = true;
    finish(false);
    int64_t all = world->transactions;
    int64_t deaths = 0;
    for (int side = 0; side < 3; side++) {
        for (int64_t at = 1; at <= all; at += stride(5)) {
            fresh(0);
            world->die_at = at;
            world->die_side = side;
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0)
                live_and_die();
            int status = 0;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            deaths += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            world->die_at = 0;
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
    return cmocka_run_group_tests(tests, setup, teardown);
}
