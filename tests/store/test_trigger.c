/* Triggers with memory that runs out: nothing half written, nothing leaked. */
#include "support/unit.h"

#include <holdfast/store.h>
#include <holdfast/trigger.h>

#include "support/fail_alloc.h"

static int subscribe(struct hf_store *store, const struct hf_caller *who, bool update)
{
    struct hf_subscriptions *found = NULL;
    struct hf_err err = { 0 };
    struct hf_subscription_spec wanted = {
        .size = sizeof(wanted),
        .key = "k",
        .source_type = "mail",
        .source_key = "inbox",
        .payload_template = "{\"from\":{\"$event\":\"from\"}}",
        .kind = update ? "b" : "a",
        .priority = -1,
        .wake_session = "s1",
    };
    int rc = update ? hf_trigger_update(store, who, &wanted, 1, &found, &err)
                    : hf_trigger_subscribe(store, who, &wanted, &found, &err);
    hf_subscriptions_free(found);
    return rc;
}

static int emit(struct hf_store *store, size_t *ret_count)
{
    struct hf_emission *emission = NULL;
    struct hf_err err = { 0 };
    struct hf_occurrence_spec occurrence = { .size = sizeof(occurrence),
                                             .source_type = "mail",
                                             .source_key = "inbox",
                                             .idempotency_key = "1",
                                             .payload = "{\"from\":\"ann\"}" };
    int rc = hf_trigger_emit(store, NULL, &occurrence, &emission, &err);
    if (rc == 0)
        *ret_count = hf_emission_count(emission);
    hf_emission_free(emission);
    return rc;
}

/* One life of a subscription; the first failure ends it. */
static int live(struct hf_store *store)
{
    struct hf_caller who = { .size = sizeof(who), .operation_id = "op-1" };
    struct hf_subscriptions *found = NULL;
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_trigger_filter filter = { .size = sizeof(filter), .limit = 1 };
    size_t count = 0;
    int rc = subscribe(store, &who, false);
    if (rc == 0)
        rc = subscribe(store, &who, false); /* from its receipt */
    if (rc == 0)
        rc = subscribe(store, NULL, true);
    if (rc == 0)
        rc = emit(store, &count);
    if (rc == 0)
        rc = emit(store, &count); /* what the first made */
    if (rc == 0)
        rc = hf_trigger_granted(store, NULL, "s1", 0, &answer, &err);
    hf_answer_free(answer);
    if (rc == 0)
        rc = hf_trigger_list(store, NULL, &filter, &found, &err);
    hf_subscriptions_free(found);
    return rc;
}

static void every_allocation_of_a_triggers_life_can_fail(void **state)
{
    (void)state;
    bool failed = true;
    for (int64_t at = 1; failed && at < 5000; at++) {
        struct fail_alloc failing;
        struct hf_store *store = NULL;
        size_t count = 0;
        fail_alloc_init(&failing, 0);
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
        /* Whatever was done, it goes on from there, and the target is started once. */
        if (subscribe(store, NULL, true) != 0)
            (void)subscribe(store, NULL, false); /* it was never made, or is updated */
        assert_int_equal(emit(store, &count), 0);
        assert_int_equal(count, 1);
        hf_store_close(store);
        assert_int_equal(failing.live, 0);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_triggers_life_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
