/* Threads of an owner: what is set before a wake-up is seen, and a stop joins all. */
#include "support/unit.h"

#include <time.h>

#include "os/threads.h"

#define MANY 4

/* An owner with a count of things to do. */
struct owner {
    pthread_mutex_t lock;
    struct hf_threads threads;
    pthread_t ids[MANY];
    int to_do, done, alive;
};

static void *work(void *user)
{
    struct owner *owner = user;
    hf_lock(&owner->lock);
    owner->alive++;
    for (;;) {
        while (owner->to_do == 0 && !owner->threads.stopping)
            (void)hf_threads_sleep(&owner->threads, HF_NO_END);
        if (owner->to_do == 0)
            break;
        owner->to_do--;
        owner->done++;
    }
    owner->alive--;
    hf_unlock(&owner->lock);
    return NULL;
}

static void begin(struct owner *owner, bool many)
{
    *owner = (struct owner){ 0 };
    hf_lock_init(&owner->lock);
    hf_threads_init(&owner->threads, &owner->lock, many ? owner->ids : NULL);
}

static void end(struct owner *owner)
{
    hf_threads_fini(&owner->threads);
    hf_lock_fini(&owner->lock);
}

static void what_waits_is_done_before_a_stop_returns(void **state)
{
    (void)state;
    struct owner owner;
    begin(&owner, true);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_threads_start(&owner.threads, work, &owner), 0);
    for (int i = 0; i < 1000; i++) {
        hf_lock(&owner.lock);
        owner.to_do++;
        hf_threads_wake(&owner.threads);
        hf_unlock(&owner.lock);
    }
    hf_threads_stop(&owner.threads);
    assert_int_equal(owner.done, 1000);
    assert_int_equal(owner.alive, 0);
    assert_int_equal(owner.threads.count, 0);
    end(&owner);
}

static void a_stop_is_fine_without_threads_and_again(void **state)
{
    (void)state;
    struct owner owner;
    begin(&owner, false);
    hf_threads_stop(&owner.threads);
    hf_threads_stop(&owner.threads);
    assert_true(owner.threads.stopping);
    end(&owner);
    begin(&owner, false);
    assert_int_equal(hf_threads_start(&owner.threads, work, &owner), 0);
    hf_threads_stop(&owner.threads);
    hf_threads_stop(&owner.threads);
    assert_int_equal(owner.alive, 0);
    end(&owner);
}

static void threads_that_were_stopped_start_again(void **state)
{
    (void)state;
    struct owner owner;
    begin(&owner, false);
    hf_threads_stop(&owner.threads);
    assert_int_equal(hf_threads_start(&owner.threads, work, &owner), 0);
    hf_lock(&owner.lock);
    assert_false(owner.threads.stopping);
    owner.to_do = 1;
    hf_threads_wake(&owner.threads);
    hf_unlock(&owner.lock);
    hf_threads_stop(&owner.threads);
    assert_int_equal(owner.done, 1);
    end(&owner);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void a_wait_ends_when_its_time_has_passed(void **state)
{
    (void)state;
    struct owner owner;
    begin(&owner, false);
    hf_lock(&owner.lock);
    int64_t start = now_ms();
    while (hf_threads_sleep(&owner.threads, 20)) /* again where it was woken by chance */
        continue;
    assert_true(now_ms() - start >= 19);
    assert_false(hf_threads_sleep(&owner.threads, 0));
    assert_false(hf_threads_sleep(&owner.threads, -5)); /* it is over already */
    hf_unlock(&owner.lock);
    end(&owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_done_before_a_stop_returns),
        cmocka_unit_test(a_stop_is_fine_without_threads_and_again),
        cmocka_unit_test(threads_that_were_stopped_start_again),
        cmocka_unit_test(a_wait_ends_when_its_time_has_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
