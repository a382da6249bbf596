/* Processes of one machine count the leases they take, so that a caller that waits need
 * not ask the server all the time which holders to watch. */
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/pg/pg.h"
#include "run/wait/watch.h"
#include "store/store.h"
#include "support/pg.h"
#include "support/unit.h"
#include "support/units.h"

static struct pg_server server;

/* A page of the test's own, and a word: other tests count in the user's. */
static struct hf_store *opened(const char *schema, size_t word)
{
    static _Atomic uint32_t page[1024];
    struct hf_store *store = pg_server_store(&server, schema);
    struct pg *pg = pg_of(sql_store_of(store)->sql);
    assert_non_null(pg->local_page); /* the user's */
    pg_local_close(pg);
    pg->local_page = page;
    pg->local_word = word;
    return store;
}

static void closed(struct hf_store *store)
{
    pg_of(sql_store_of(store)->sql)->local_page = NULL; /* it is no mapping */
    hf_store_close(store);
}

static uint32_t taken(struct hf_store *store)
{
    uint32_t count = 0;
    assert_true(store->methods->taken_here(store, &count));
    return count;
}

static void claimed(struct hf_store *store, const char *unit, int pid)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec request = plain_unit(unit);
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .pid = pid };
    assert_int_equal(hf_work_create(store, NULL, &request, 1, HF_BRIEF, &answer, NULL),
                     0);
    hf_answer_free(answer);
    assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    hf_answer_free(answer);
}

static void handles_of_one_store_share_a_word(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "shared"),
                    *peer = pg_server_store(&server, "shared");
    assert_int_equal(pg_of(sql_store_of(store)->sql)->local_word,
                     pg_of(sql_store_of(peer)->sql)->local_word);
    hf_store_close(peer);
    hf_store_close(store);
}

static void a_lease_that_names_a_process_is_counted(void **state)
{
    (void)state;
    struct hf_store *store = opened("counted", 1), *peer = opened("counted", 1),
                    *other = opened("another", 2);
    uint32_t before = taken(store), elsewhere = taken(other);
    claimed(store, "without-pid", 0);
    assert_int_equal(taken(peer), before);
    claimed(store, "ours", getpid());
    assert_int_equal(taken(peer), before + 1);
    assert_int_equal(taken(other), elsewhere);
    closed(other);
    closed(peer);
    closed(store);
}

static long asked(struct hf_death_watch *watch)
{
    static const char holders[] = "%UNION SELECT holder FROM session%";
    long before = pg_store_ran(watch->store, holders);
    watch->look_at = 0; /* whatever the last one took */
    assert_int_equal(hf_death_watch_refresh(watch, NULL), 0);
    return pg_store_ran(watch->store, holders) - before;
}

static void whom_to_watch_is_asked_when_somebody_took_a_lease(void **state)
{
    (void)state;
    struct hf_store *store = opened("watched", 3), *peer = opened("watched", 3);
    struct hf_death_watch watch;
    hf_death_watch_init(&watch, store);
    assert_int_equal(asked(&watch), 1); /* the first always */
    watch.sure_to = INT64_MAX;          /* however slow this machine is */
    assert_int_equal(asked(&watch), 0);
    claimed(peer, "new", getpid());
    assert_int_equal(asked(&watch), 1);
    assert_int_equal(watch.count, 1);
    watch.sure_to = INT64_MAX;
    assert_int_equal(asked(&watch), 0);
    watch.sure_to = 0; /* a second later */
    assert_int_equal(asked(&watch), 1);
    hf_death_watch_fini(&watch);
    closed(peer);
    closed(store);
}

static void after_a_death_it_is_asked_again(void **state)
{
    (void)state;
    struct hf_store *store = opened("bereft", 4), *peer = opened("bereft", 4);
    struct hf_death_watch watch;
    struct hf_sweep_report report;
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    claimed(peer, "held", child);
    hf_death_watch_init(&watch, store);
    assert_int_equal(asked(&watch), 1);
    assert_int_equal(watch.count, 1);
    assert_false(hf_death_watch_died(&watch));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(hf_death_watch_died(&watch));
    assert_int_equal(hf_work_sweep(peer, NULL, 10, &report, NULL), 0);
    assert_int_equal(report.proven_dead, 1);
    assert_int_equal(asked(&watch), 1);
    assert_int_equal(watch.count, 0);
    assert_false(hf_death_watch_died(&watch));
    hf_death_watch_fini(&watch);
    closed(peer);
    closed(store);
}

static void without_the_page_it_is_asked_each_time(void **state)
{
    (void)state;
    struct hf_store *store = pg_server_store(&server, "alone");
    struct hf_death_watch watch;
    pg_local_close(pg_of(sql_store_of(store)->sql));
    uint32_t count = 7;
    assert_false(store->methods->taken_here(store, &count));
    claimed(store, "unit", getpid());
    hf_death_watch_init(&watch, store);
    for (int i = 0; i < 3; i++)
        assert_int_equal(asked(&watch), 1);
    hf_death_watch_fini(&watch);
    hf_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_one_store_share_a_word),
        cmocka_unit_test(a_lease_that_names_a_process_is_counted),
        cmocka_unit_test(whom_to_watch_is_asked_when_somebody_took_a_lease),
        cmocka_unit_test(after_a_death_it_is_asked_again),
        cmocka_unit_test(without_the_page_it_is_asked_each_time),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests_name("leases counted on a machine", tests, NULL, NULL);
}
