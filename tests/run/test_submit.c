/* Submitted verbs: each operation is answered once, alone or in company. */
#include "support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/store.h>
#include <holdfast/submit.h>

#define CALLERS 50
#define EACH 40

struct world {
    struct hf_store *store;
    struct hf_submitter *submitter;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int open; /* operations without an answer */
    struct hf_err err;
};

/* One operation's answer, kept for the test. */
struct kept {
    struct world *world;
    int calls;
    int code;
    size_t count;
    bool created;
    int item_code;
    char field[64];
    char id[64];
    char token[200];
};

static int setup(void **state)
{
    static struct world world;
    world = (struct world){ 0 };
    assert_int_equal(pthread_mutex_init(&world.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&world.wake, NULL), 0);
    assert_int_equal(hf_store_open("sqlite::memory:", NULL, &world.store, &world.err), 0);
    assert_int_equal(hf_submitter_open(world.store, NULL, &world.submitter, &world.err),
                     0);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    hf_submitter_close(world->submitter);
    hf_store_close(world->store);
    (void)pthread_cond_destroy(&world->wake);
    (void)pthread_mutex_destroy(&world->lock);
    return 0;
}

static void copy(char *to, size_t room, const char *text)
{
    (void)snprintf(to, room, "%s", text ? text : "");
}

static void keep(void *user, const struct hf_submitted *outcome)
{
    struct kept *kept = user;
    (void)pthread_mutex_lock(&kept->world->lock);
    kept->calls++;
    kept->code = outcome->code;
    kept->count = outcome->count;
    if (outcome->code)
        copy(kept->field, sizeof kept->field, outcome->err->field);
    const struct hf_item *item = outcome->code ? NULL : hf_submitted_at(outcome, 0);
    if (item) {
        kept->created = item->created;
        kept->item_code = item->code;
        copy(kept->id, sizeof kept->id, item->work.work_id);
        copy(kept->token, sizeof kept->token, item->token);
    }
    kept->world->open--;
    (void)pthread_cond_signal(&kept->world->wake);
    (void)pthread_mutex_unlock(&kept->world->lock);
}

static void submit(struct world *world, const struct hf_operation *operation,
                   struct kept *kept)
{
    *kept = (struct kept){ .world = world };
    (void)pthread_mutex_lock(&world->lock);
    world->open++;
    (void)pthread_mutex_unlock(&world->lock);
    assert_int_equal(hf_submit(world->submitter, operation, keep, kept, &world->err), 0);
}

static void await(struct world *world)
{
    (void)pthread_mutex_lock(&world->lock);
    while (world->open > 0)
        (void)pthread_cond_wait(&world->wake, &world->lock);
    (void)pthread_mutex_unlock(&world->lock);
}

static struct hf_work_spec request(const char *source_id)
{
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = source_id,
                                  .disposition = HF_DISPOSITION_RERUNNABLE,
                                  .priority = -1 };
}

static struct hf_operation creation(const struct hf_work_spec *news, size_t n)
{
    return (struct hf_operation){ .size = sizeof(struct hf_operation),
                                  .create = news,
                                  .n = n };
}

static void a_unit_goes_its_way_by_submitted_verbs(void **state)
{
    struct world *world = *state;
    struct kept made, taken, renewed, closed;
    struct hf_work_spec new = request("one");
    struct hf_operation create = creation(&new, 1);
    submit(world, &create, &made);
    await(world);
    assert_true(made.created);

    struct hf_claim claim = { .size = sizeof claim, .owner = "w", .ttl_ms = 30000 };
    submit(world,
           &(struct hf_operation){ .size = sizeof(struct hf_operation), .claim = &claim },
           &taken);
    await(world);
    assert_int_equal(taken.count, 1);
    assert_string_equal(taken.id, made.id);

    struct hf_renew_all renew = { .size = sizeof renew, .owner = "w" };
    submit(world,
           &(struct hf_operation){ .size = sizeof(struct hf_operation), .renew = &renew },
           &renewed);
    await(world);
    assert_int_equal(renewed.count, 1);

    struct hf_change close = { .size = sizeof close,
                               .verb = HF_VERB_CLOSE_OUT,
                               .id = taken.id,
                               .token = taken.token,
                               .status = HF_STATUS_DONE };
    submit(world,
           &(struct hf_operation){
               .size = sizeof(struct hf_operation), .change = &close, .n = 1 },
           &closed);
    await(world);
    assert_int_equal(closed.code, 0);
    assert_int_equal(closed.item_code, 0);
}

/* ---- many callers, one operation in flight each ---------------------------------------- */

struct caller {
    struct world *world;
    int number, made, faults;
    char id[32];
    struct hf_work_spec new;
};

static void create_next(struct caller *caller);

static void created(void *user, const struct hf_submitted *outcome)
{
    struct caller *caller = user;
    const struct hf_item *item = outcome->code ? NULL : hf_submitted_at(outcome, 0);
    if (outcome->count != 1 || !item || !item->created)
        caller->faults++;
    if (++caller->made < EACH) {
        create_next(caller);
        return;
    }
    (void)pthread_mutex_lock(&caller->world->lock);
    caller->world->open--;
    (void)pthread_cond_signal(&caller->world->wake);
    (void)pthread_mutex_unlock(&caller->world->lock);
}

static void create_next(struct caller *caller)
{
    (void)snprintf(caller->id, sizeof caller->id, "%d-%d", caller->number, caller->made);
    caller->new = request(caller->id);
    struct hf_operation operation = creation(&caller->new, 1);
    if (hf_submit(caller->world->submitter, &operation, created, caller, NULL))
        caller->faults++;
}

static void many_callers_each_get_their_own_answers(void **state)
{
    struct world *world = *state;
    static struct caller callers[CALLERS];
    world->open = CALLERS;
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .world = world, .number = i };
        create_next(&callers[i]);
    }
    await(world);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].made, EACH);
        assert_int_equal(callers[i].faults, 0);
    }
    struct hf_stats stats;
    assert_int_equal(hf_work_stats(world->store, NULL, &stats, &world->err), 0);
    assert_int_equal(stats.by_status[HF_STATUS_QUEUED], 2000);
}

/* Company does not change an answer: the same unit twice is made once, other content is a
 * conflict, and neither touches the others. */
static void company_does_not_change_an_answer(void **state)
{
    struct world *world = *state;
    struct kept kept[40];
    struct hf_work_spec news[40];
    char ids[40][16];
    struct hf_operation operations[40];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "u%d", i % 20);
        news[i] = request(ids[i]);
        if (i == 25)
            news[i].payload = "{\"other\":1}";
        operations[i] = creation(&news[i], 1);
    }
    for (int i = 0; i < 40; i++)
        submit(world, &operations[i], &kept[i]);
    await(world);
    int made = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(kept[i].calls, 1);
        assert_int_equal(kept[i].code, 0);
        made += kept[i].created;
        if (i == 25)
            assert_int_equal(kept[i].item_code, HF_ECONFLICT);
        else
            assert_int_equal(kept[i].item_code, 0);
    }
    assert_int_equal(made, 20);
}

/* An owner_bound unit takes no execution timeout: known only once policy is, so the call is
 * refused as a whole. The others must not suffer from it. */
static void a_refused_operation_fails_alone(void **state)
{
    struct world *world = *state;
    struct kept kept[10];
    struct hf_work_spec news[10];
    char ids[10][16];
    struct hf_operation operations[10];
    for (int i = 0; i < 10; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "r%d", i);
        news[i] = request(ids[i]);
        operations[i] = creation(&news[i], 1);
    }
    news[4].disposition = HF_DISPOSITION_OWNER_BOUND;
    news[4].exec_timeout_ms = 1000;
    for (int i = 0; i < 10; i++)
        submit(world, &operations[i], &kept[i]);
    await(world);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(kept[i].calls, 1);
        assert_int_equal(kept[i].code, i == 4 ? HF_EINVAL : 0);
    }
    assert_string_equal(kept[4].field, "exec_timeout_ms");
}

static void never(void *user, const struct hf_submitted *outcome)
{
    (void)user;
    (void)outcome;
    fail();
}

static void bad_input_is_answered_at_once_and_never_done(void **state)
{
    struct world *world = *state;
    struct hf_work_spec new = request(NULL);
    struct hf_claim claim = { .size = sizeof claim, .owner = "w", .wait_ms = 5 };
    const struct {
        struct hf_operation operation;
        const char *field;
    } cases[] = {
        { creation(&new, 1), "source_id" },
        { creation(&new, 0), "n" },
        { { .size = sizeof(struct hf_operation) }, "operation" },
        { { .size = sizeof(struct hf_operation), .create = &new, .claim = &claim },
          "operation" },
        { { .size = sizeof(struct hf_operation), .claim = &claim }, "wait_ms" },
        { { .size = sizeof(struct hf_operation), .claim = &claim, .flags = 64 },
          "flags" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            hf_submit(world->submitter, &cases[i].operation, never, NULL, &world->err),
            HF_EINVAL);
        assert_string_equal(world->err.field, cases[i].field);
    }
    struct hf_work_spec fine = request("told-none");
    struct hf_operation quiet = creation(&fine, 1);
    assert_int_equal(hf_submit(world->submitter, &quiet, NULL, NULL, &world->err),
                     HF_EINVAL);
    assert_string_equal(world->err.field, "done");
    struct hf_submitter *other = NULL;
    struct hf_submitter_options options = { .size = sizeof options, .threads = 17 };
    assert_int_equal(hf_submitter_open(world->store, &options, &other, &world->err),
                     HF_EINVAL);
    assert_string_equal(world->err.field, "threads");
}

static void closing_waits_for_what_was_taken(void **state)
{
    struct world *world = *state;
    struct kept kept[100];
    struct hf_work_spec news[100];
    char ids[100][16];
    struct hf_submitter *other = NULL;
    struct hf_submitter_options options = { .size = sizeof options, .threads = 3 };
    assert_int_equal(hf_submitter_open(world->store, &options, &other, &world->err), 0);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "z%d", i);
        news[i] = request(ids[i]);
        kept[i] = (struct kept){ .world = world };
        struct hf_operation operation = creation(&news[i], 1);
        assert_int_equal(hf_submit(other, &operation, keep, &kept[i], &world->err), 0);
    }
    hf_submitter_close(other);
    for (int i = 0; i < 100; i++)
        assert_int_equal(kept[i].calls, 1);
    hf_submitter_close(NULL);
}

/* The first operation's answer is held back until the queue is over its bound. */
static void hold(void *user, const struct hf_submitted *outcome)
{
    struct kept *kept = user;
    (void)pthread_mutex_lock(&kept->world->lock);
    while (kept->world->open > 0)
        (void)pthread_cond_wait(&kept->world->wake, &kept->world->lock);
    kept->calls += outcome->code == 0;
    (void)pthread_mutex_unlock(&kept->world->lock);
}

static void more_than_the_bound_is_busy(void **state)
{
    struct world *world = *state;
    struct kept kept = { .world = world };
    struct hf_work_spec news[8];
    char ids[8][16];
    struct hf_submitter *other = NULL;
    struct hf_submitter_options options = { .size = sizeof options, .max_queued = 2 };
    assert_int_equal(hf_submitter_open(world->store, &options, &other, &world->err), 0);
    world->open = 1;
    int rc = 0, taken = 0;
    for (int i = 0; i < 8 && rc == 0; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "b%d", i);
        news[i] = request(ids[i]);
        struct hf_operation operation = creation(&news[i], 1);
        rc = hf_submit(other, &operation, hold, &kept, &world->err);
        taken += rc == 0;
    }
    assert_int_equal(rc, HF_EBUSY);
    (void)pthread_mutex_lock(&world->lock);
    world->open = 0;
    (void)pthread_cond_broadcast(&world->wake);
    (void)pthread_mutex_unlock(&world->lock);
    hf_submitter_close(other);
    assert_int_equal(kept.calls, taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_unit_goes_its_way_by_submitted_verbs, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_callers_each_get_their_own_answers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(company_does_not_change_an_answer, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_refused_operation_fails_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_input_is_answered_at_once_and_never_done,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(closing_waits_for_what_was_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(more_than_the_bound_is_busy, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
