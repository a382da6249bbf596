/* Crash points on PostgreSQL: a process that goes through the scenario is killed before and
 * after each call of its driver, and before and after each message of the wire gets through,
 * in both directions. The caller that comes next finishes the scenario; it ends as if
 * nothing had happened, and nothing that was acknowledged is missing.
 *
 * By itself it takes some of the places; with HF_CRASH_ALL=calls every call, with HF_CRASH_ALL=1
 * the messages too, and with HF_CRASH_PART=K/N also the K-th of N parts of the
 * messages alone. */
#include "support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "db/pg/pg.h"
#include "store/store.h"
#include "support/mortal.h"
#include "support/pg.h"
#include "support/scenario.h"
#include "support/wire.h"

#define PORT 5900
#define SCHEMA "crash"
#define SAMPLE 8 /* places of each kind */
#define TRIES 12

/* In memory that a child shares. */
struct world {
    struct scenario scenario;
    struct mortal_plan death;
};

static struct world *world;
static struct pg_server server;
static struct pg_place place;
static struct wire_proxy *proxy;
static char direct[400];  /* past the proxy */
static char through[400]; /* through it */

static int open_store(const char *url, struct hf_store **ret_store)
{
    struct hf_sql_options driver = { .size = sizeof(driver),
                                     .alloc = hf_alloc_system(),
                                     .clock = scenario_clock(),
                                     .random = scenario_random(),
                                     .inline_mode = true };
    struct hf_store_options options = { .size = sizeof(options),
                                        .alloc = driver.alloc,
                                        .clock = driver.clock,
                                        .random = driver.random,
                                        .inline_mode = true };
    struct hf_sql *real = NULL;
    int rc = hf_postgres_open(url, &driver, &real, NULL);
    if (rc)
        return rc;
    struct hf_sql *mortal = mortal_over(real, &world->death);
    assert_non_null(mortal);
    rc = hf_sql_store_new(mortal, &options, ret_store, NULL);
    if (rc)
        mortal->methods->close(mortal);
    return rc;
}

static void fresh(void)
{
    pg_place_discard(&place);
    scenario_begin(&world->scenario);
    world->death = (struct mortal_plan){ .reads_too = true };
}

/* From what is there to the end. */
static void finish(void)
{
    struct hf_store *store = NULL;
    int rc = open_store(direct, &store);
    assert_int_equal(rc, 0);
    scenario_check_acked(store);
    rc = HF_EBUSY;
    for (int i = 0; i < TRIES && rc; i++) {
        rc = scenario_play(store);
        if (rc && !scenario_passes(rc))
            fail_msg("the scenario ends with %s", hf_err_wire(rc));
    }
    assert_int_equal(rc, 0);
    scenario_check_end(store);
    hf_store_close(store);
}

static void live_and_die(void)
{
    struct hf_store *store = NULL;
    if (open_store(through, &store) == 0 && scenario_play(store) == 0)
        hf_store_close(store);
    _exit(0);
}

/* One life of a process through the proxy; true when it was killed. */
static bool live(void)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        live_and_die();
    wire_proxy_kills(proxy, pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    wire_proxy_quiet(proxy);
    wire_proxy_kills(proxy, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static int64_t stride(int64_t places, bool all)
{
    return all || places < SAMPLE ? 1 : places / SAMPLE;
}

/* ---- cases --------------------------------------------------------------------------- */

static void nothing_goes_wrong_where_nothing_strikes(void **state)
{
    (void)state;
    fresh();
    assert_false(live());
    finish();
}

static void a_process_may_die_before_and_after_every_call(void **state)
{
    (void)state;
    fresh();
    assert_false(live());
    int64_t calls = world->death.calls;
    int64_t deaths = 0, tried = 0;
    int64_t step = stride(calls, getenv("HF_CRASH_ALL") != NULL);
    assert_true(calls > 60);
    for (int side = MORTAL_BEFORE; side <= MORTAL_AFTER; side += MORTAL_AFTER) {
        for (int64_t at = 1 + side; at <= calls; at += step) {
            fresh();
            world->death.die_at = at;
            world->death.side = (enum mortal_side)side;
            deaths += live();
            world->death.die_at = 0;
            finish();
            tried++;
        }
    }
    print_message("# %lld deaths at %lld driver calls\n", (long long)deaths,
                  (long long)calls);
    assert_int_equal(deaths, tried);
}

/* Messages of a whole life, from the first to the last. */
static uint32_t messages_of_all(void)
{
    fresh();
    wire_proxy_arm(proxy, 0, WIRE_BEFORE, WIRE_BOTH);
    assert_false(live());
    (void)wire_proxy_disarm(proxy);
    return wire_proxy_seen(proxy);
}

static void a_process_may_die_at_every_message(void **state)
{
    (void)state;
    int64_t messages = messages_of_all();
    int64_t deaths = 0, tried = 0;
    const char *all = getenv("HF_CRASH_ALL");
    int64_t first, parts;
    scenario_part(&first, &parts);
    int64_t step = stride(messages, all && strcmp(all, "1") == 0) * parts;
    assert_true(messages > 500);
    for (int cut = WIRE_BEFORE; cut <= WIRE_AFTER; cut++) {
        for (int64_t at = first + cut; at < messages; at += step) {
            fresh();
            wire_proxy_arm(proxy, (uint32_t)at, (enum wire_act)cut, WIRE_BOTH);
            deaths += live();
            (void)wire_proxy_disarm(proxy);
            finish();
            tried++;
        }
    }
    print_message("# %lld deaths at %lld messages\n", (long long)deaths,
                  (long long)messages);
    /* The last messages are those of a close: the process may be gone before them. */
    assert_true(deaths + 8 >= tried);
}

/* ---- fixture ------------------------------------------------------------------------- */

static int setup(void **state)
{
    char socket_path[128];
    struct hf_store *store = NULL;
    (void)state;
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    assert_true(world != MAP_FAILED);
    pg_server_start(&server);
    place = (struct pg_place){ &server, server.url, SCHEMA };
    int port = PORT + (int)getpid() % 90;
    (void)snprintf(socket_path, sizeof(socket_path), "%s/.s.PGSQL.%d", server.folder,
                   server.port);
    proxy = wire_proxy_start(server.folder, port, socket_path);
    (void)pg_server_schema(server.url, SCHEMA, direct);
    (void)snprintf(through, sizeof(through),
                   "postgres:///hf?host=%s&port=%d&user=hf&schema=" SCHEMA, server.folder,
                   port);
    scenario_begin(&world->scenario);
    assert_int_equal(open_store(direct, &store), 0); /* makes the schema */
    hf_store_close(store);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wire_proxy_stop(proxy);
    pg_server_stop(&server);
    return munmap(world, sizeof(*world));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_goes_wrong_where_nothing_strikes),
        cmocka_unit_test(a_process_may_die_before_and_after_every_call),
        cmocka_unit_test(a_process_may_die_at_every_message),
    };
    const struct CMUnitTest part[] = {
        cmocka_unit_test(a_process_may_die_at_every_message),
    };
    return getenv("HF_CRASH_PART") ? cmocka_run_group_tests(part, setup, teardown)
                                   : cmocka_run_group_tests(tests, setup, teardown);
}
