/* Close-outs and a claim as one transaction, and a pool that works by it. */
#include "support/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/job.h>

#include "store/api/work.h"
#include "support/units.h"

#define MANY 600
#define HELD 20
#define PATIENCE_MS 20000

static struct hf_err err;

static int on_memory(void **state)
{
    return hf_store_open(":memory:", NULL, (struct hf_store **)state, &err);
}

static int closed(void **state)
{
    hf_store_close(*state);
    return 0;
}

static struct hf_claim claim_of(const char *nonce, size_t limit)
{
    return (struct hf_claim){
        .size = sizeof(struct hf_claim), .owner = "pool", .nonce = nonce, .limit = limit
    };
}

static void make_units(struct hf_store *store, int n)
{
    for (int i = 0; i < n; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "u%d", i);
        make_unit(store, name);
    }
}

static struct hf_answer *take(struct hf_store *store, const char *nonce, size_t limit)
{
    struct hf_claim claim = claim_of(nonce, limit);
    struct hf_answer *answer;
    assert_int_equal(hf_work_claim(store, NULL, &claim, &answer, &err), 0);
    assert_int_equal(hf_answer_count(answer), limit);
    return answer;
}

static void end_all(const struct hf_answer *held, struct hf_change *ret_changes)
{
    for (size_t i = 0; i < hf_answer_count(held); i++)
        ret_changes[i] = (struct hf_change){ .size = sizeof(struct hf_change),
                                             .verb = HF_VERB_CLOSE_OUT,
                                             .id = hf_answer_at(held, i)->work.work_id,
                                             .token = hf_answer_at(held, i)->token,
                                             .status = HF_DONE };
}

/* A number of the store's facts. */
static long fact(struct hf_store *store, const char *name)
{
    char *json, key[40];
    (void)snprintf(key, sizeof key, "\"%s\":", name);
    assert_int_equal(hf_store_facts(store, &json, &err), 0);
    const char *at = strstr(json, key);
    assert_non_null(at);
    long value = strtol(at + strlen(key), NULL, 10);
    free(json);
    return value;
}

static int64_t with_status(struct hf_store *store, enum hf_status status)
{
    struct hf_stats stats;
    assert_int_equal(hf_work_stats(store, NULL, &stats, &err), 0);
    return stats.by_status[status];
}

static void both_are_one_transaction(void **state)
{
    struct hf_store *store = *state;
    struct hf_change changes[HELD];
    make_units(store, 2 * HELD + 5);
    struct hf_answer *held = take(store, "nonce-1", HELD);
    struct hf_claim claim = claim_of("nonce-2", HELD);
    end_all(held, changes);
    struct hf_exchange both = { .changes = changes, .n = HELD, .claim = &claim };
    long before = fact(store, "groups");
    assert_int_equal(hf_work_exchange(store, NULL, &both, &err), 0);
    assert_int_equal(fact(store, "groups"), before + 1);
    assert_int_equal(hf_answer_count(both.settled), HELD);
    assert_int_equal(hf_answer_count(both.claimed), HELD);
    for (size_t i = 0; i < HELD; i++) {
        assert_int_equal(hf_answer_at(both.settled, i)->code, 0);
        assert_string_equal(hf_answer_at(both.settled, i)->work.status, "done");
        assert_string_equal(hf_answer_at(both.claimed, i)->work.status, "running");
        assert_non_null(hf_answer_at(both.claimed, i)->token);
    }
    assert_int_equal(with_status(store, HF_RUNNING), HELD);
    hf_answer_free(held);
    hf_answer_free(both.settled);
    hf_answer_free(both.claimed);
}

/* One token that is not its row's: nothing is written, and no answer is given. */
static void one_that_is_refused_leaves_all_as_it_was(void **state)
{
    struct hf_store *store = *state;
    struct hf_change changes[HELD];
    make_units(store, 2 * HELD);
    struct hf_answer *other = take(store, "nonce-0", 1);
    struct hf_answer *held = take(store, "nonce-1", HELD);
    struct hf_claim claim = claim_of("nonce-2", HELD);
    end_all(held, changes);
    changes[3].token = hf_answer_at(other, 0)->token;
    struct hf_exchange both = { .changes = changes, .n = HELD, .claim = &claim };
    assert_int_equal(hf_work_exchange(store, NULL, &both, &err), HF_EGUARD);
    assert_null(both.settled);
    assert_null(both.claimed);
    assert_int_equal(with_status(store, HF_RUNNING), HELD + 1);
    assert_int_equal(with_status(store, HF_QUEUED), HELD - 1);
    hf_answer_free(other);
    hf_answer_free(held);
}

/* A nonce that took rows before takes no others. */
static void a_claim_that_was_made_is_not_made_again(void **state)
{
    struct hf_store *store = *state;
    struct hf_change changes[HELD];
    make_units(store, 3 * HELD);
    struct hf_answer *held = take(store, "nonce-1", HELD);
    struct hf_answer *others = take(store, "nonce-2", HELD);
    struct hf_claim claim = claim_of("nonce-2", HELD);
    end_all(held, changes);
    struct hf_exchange both = { .changes = changes, .n = HELD, .claim = &claim };
    assert_int_equal(hf_work_exchange(store, NULL, &both, &err), HF_EGUARD);
    assert_int_equal(with_status(store, HF_RUNNING), 2 * HELD);
    hf_answer_free(held);
    hf_answer_free(others);
}

/* The unit whose lane or limit the close-out leaves goes on in the same transaction. */
static void what_a_close_out_lets_go_on_is_claimed_with_it(void **state)
{
    struct hf_store *store = *state;
    struct hf_quota limit = { .size = sizeof limit, .name = "key:one", .max_running = 1 };
    struct hf_new news[] = { plain_unit("a"), plain_unit("b"), plain_unit("c"),
                             plain_unit("d") };
    struct hf_change changes[2];
    struct hf_answer *made;
    assert_int_equal(hf_quota_set(store, NULL, &limit, &err), 0);
    news[0].limit_key = news[1].limit_key = "one";
    news[2].lane_key = news[3].lane_key = "lane";
    assert_int_equal(hf_work_create(store, NULL, news, 4, 0, &made, &err), 0);
    struct hf_answer *held = take(store, "nonce-1", 2);
    struct hf_claim claim = claim_of("nonce-2", 4);
    end_all(held, changes);
    struct hf_exchange both = { .changes = changes, .n = 2, .claim = &claim };
    assert_int_equal(hf_work_exchange(store, NULL, &both, &err), 0);
    assert_int_equal(hf_answer_count(both.claimed), 2);
    assert_int_equal(with_status(store, HF_RUNNING), 2);
    hf_answer_free(made);
    hf_answer_free(held);
    hf_answer_free(both.settled);
    hf_answer_free(both.claimed);
}

/* ---- a pool -------------------------------------------------------------------------- */

static const struct hf_store_methods *real_methods; /* one test at a time */
static atomic_int exchanges, to_lose, to_refuse, runs;

/* Done, and its answer is lost; or not done at all. */
static int faulty_exchange(struct hf_store *store, const struct hf_caller *who,
                           const struct hf_exchange *exchange, struct hf_err *ret_err)
{
    if (atomic_fetch_sub(&to_refuse, 1) > 0)
        return HF_EGUARD;
    int rc = real_methods->exchange(store, who, exchange, ret_err);
    (void)atomic_fetch_add(&exchanges, rc == 0);
    return rc == 0 && atomic_fetch_sub(&to_lose, 1) > 0 ? HF_EUNCERTAIN : rc;
}

static int quick(void *user, struct hf_job *job)
{
    (void)user;
    (void)job;
    (void)atomic_fetch_add(&runs, 1);
    return HF_JOB_DONE;
}

static struct hf_pool_stats run_many(struct hf_store *store)
{
    struct hf_pool *pool;
    struct hf_pool_stats stats = { 0 };
    struct hf_job_kind kind = { .size = sizeof kind, .name = "*", .run = quick };
    struct hf_store_methods methods = *store->methods;
    real_methods = store->methods;
    methods.exchange = faulty_exchange;
    store->methods = &methods;
    atomic_store(&exchanges, 0);
    atomic_store(&runs, 0);
    make_units(store, MANY);
    assert_int_equal(hf_pool_new(store, NULL, &pool, &err), 0);
    assert_int_equal(hf_pool_add(pool, &kind, &err), 0);
    assert_int_equal(hf_pool_start(pool, &err), 0);
    for (int i = 0; stats.done < MANY && i < PATIENCE_MS / 5; i++) {
        assert_int_equal(hf_work_await(store, 5, &err), 0);
        hf_pool_stats(pool, &stats);
    }
    hf_pool_free(pool);
    store->methods = real_methods;
    return stats;
}

static void a_pool_settles_and_claims_at_once(void **state)
{
    atomic_store(&to_lose, 0);
    atomic_store(&to_refuse, 0);
    struct hf_pool_stats stats = run_many(*state);
    assert_int_equal(stats.done, MANY);
    assert_int_equal(stats.lost + stats.errors, 0);
    assert_int_equal(atomic_load(&runs), MANY);
    assert_true(atomic_load(&exchanges) > 0);
}

/* The rows are settled and others claimed: both are asked again, and nothing is done twice. */
static void a_lost_answer_of_both_is_made_good(void **state)
{
    atomic_store(&to_lose, 2);
    atomic_store(&to_refuse, 0);
    struct hf_pool_stats stats = run_many(*state);
    assert_int_equal(stats.done, MANY);
    assert_int_equal(stats.lost, 0);
    assert_true(stats.errors >= 2);
    assert_int_equal(atomic_load(&runs), MANY);
}

static void where_both_at_once_will_not_do_they_go_one_by_one(void **state)
{
    atomic_store(&to_lose, 0);
    atomic_store(&to_refuse, 1000);
    struct hf_pool_stats stats = run_many(*state);
    assert_int_equal(stats.done, MANY);
    assert_int_equal(stats.lost + stats.errors, 0);
    assert_int_equal(atomic_load(&runs), MANY);
    assert_int_equal(atomic_load(&exchanges), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, on_memory, closed)

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(both_are_one_transaction),
        CASE(one_that_is_refused_leaves_all_as_it_was),
        CASE(a_claim_that_was_made_is_not_made_again),
        CASE(what_a_close_out_lets_go_on_is_claimed_with_it),
        CASE(a_pool_settles_and_claims_at_once),
        CASE(a_lost_answer_of_both_is_made_good),
        CASE(where_both_at_once_will_not_do_they_go_one_by_one),
    };
    return cmocka_run_group_tests_name("exchange", cases, NULL, NULL);
}
