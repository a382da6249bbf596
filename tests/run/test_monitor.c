/* Rule 13. The store is real; its clock is the test's, and its verbs can be made to stall:
 * each call then takes as long as the test says, on that clock, or fails after it. */
#include "support/unit.h"

#include <holdfast/monitor.h>
#include <holdfast/sys/store.h>
#include <stdio.h>
#include <stdlib.h>

#define TERM 45000

struct rig {
    hf_ms now;
    struct hf_clock clock;
    struct hf_store *store;
    const struct hf_store_methods *real;
    struct hf_store_methods slow;
    hf_ms pulse_takes;
    hf_ms sweep_takes;
    int pulse_fails; /* this many times */
    struct hf_monitor_witness witness;
    struct hf_monitor_report report;
    struct hf_err err;
};

/* One test at a time: methods get the store alone. */
static struct rig *rig_now;

static hf_ms now(void *user)
{
    return ((struct rig *)user)->now;
}

static void pass_time(void *user, hf_ms ms)
{
    ((struct rig *)user)->now += ms;
}

static int slow_pulse(struct hf_store *store, struct hf_err *err)
{
    rig_now->now += rig_now->pulse_takes;
    if (rig_now->pulse_fails > 0) {
        rig_now->pulse_fails--;
        return HF_EBUSY;
    }
    return rig_now->real->pulse(store, err);
}

/* The stall is over before it acts: what it finds then is what the rule is about. */
static int slow_sweep(struct hf_store *store, const struct hf_caller *who, size_t limit,
                      struct hf_sweep_report *ret_report, struct hf_err *err)
{
    int rc = rig_now->real->sweep(store, who, limit, ret_report, err);
    rig_now->now += rig_now->sweep_takes;
    return rc;
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig->now = 1000000;
    rig->clock = (struct hf_clock){ rig, now, now, pass_time };
    struct hf_store_options options = { .size = sizeof(options),
                                        .clock = &rig->clock,
                                        .inline_mode = true };
    assert_int_equal(hf_store_open("sqlite::memory:", &options, &rig->store, &rig->err),
                     0);
    rig->real = rig->store->methods;
    rig->slow = *rig->real;
    rig->slow.pulse = slow_pulse;
    rig->slow.sweep = slow_sweep;
    rig->store->methods = &rig->slow;
    rig_now = rig;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    hf_store_close(rig->store);
    free(rig);
    return 0;
}

static const char *run_one(struct rig *rig, char id[40])
{
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = "a",
                                    .disposition = HF_DISPOSITION_RERUNNABLE,
                                    .priority = -1 };
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .ttl_ms = TERM };
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_work_create(rig->store, NULL, &request, 1, 0, &answer, &rig->err),
                     0);
    hf_answer_free(answer);
    assert_int_equal(hf_work_claim(rig->store, NULL, &claim, &answer, &rig->err), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    (void)snprintf(id, 40, "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return id;
}

static int pass(struct rig *rig, bool continuous)
{
    struct hf_monitor_plan plan = { .size = sizeof(plan),
                                    .witness = continuous ? &rig->witness : NULL };
    return hf_monitor_pass(rig->store, NULL, &plan, &rig->report, &rig->err);
}

struct log {
    int entries;
    char what[32];
    char detail[128];
};

static void logged(void *user, const struct hf_store_log_entry *entry)
{
    struct log *log = user;
    if (log->entries++ > 0)
        return;
    (void)snprintf(log->what, sizeof(log->what), "%s", entry->what);
    (void)snprintf(log->detail, sizeof(log->detail), "%s",
                   entry->detail ? entry->detail : "");
}

static struct log read_log(struct rig *rig)
{
    struct log log = { 0 };
    assert_int_equal(hf_store_log(rig->store, 0, 0, logged, &log, &rig->err), 0);
    return log;
}

static void amnesty_only_for_a_witnessed_stall(void **state)
{
    struct rig *rig = *state;
    char id[40];
    run_one(rig, id);
    rig->now += TERM - 20000;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.stalled_ms, 0);
    /* For 25 s no caller gets through, the holder neither; its lease lapses meanwhile. */
    rig->pulse_takes = 25000;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.stalled_ms, 25000);
    assert_int_equal(rig->report.spared, 1);
    assert_int_equal(rig->report.sweep.requeued, 0);
    struct log log = read_log(rig);
    assert_int_equal(log.entries, 1);
    assert_string_equal(log.what, "amnesty");
    assert_string_equal(log.detail, "{\"stalled_ms\":25000,\"leases\":1}");
    /* One more term, and not two: the store is quick now, the holder still silent. */
    rig->pulse_takes = 0;
    rig->now += TERM - 1;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.sweep.requeued, 0);
    rig->now += 1;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.sweep.requeued, 1);
    assert_int_equal(read_log(rig).entries, 1);
}

static void a_single_pass_and_a_plain_sweep_never_give_amnesty(void **state)
{
    struct rig *rig = *state;
    char id[40];
    run_one(rig, id);
    rig->now += TERM;
    rig->sweep_takes = rig->pulse_takes = 40000;
    assert_int_equal(pass(rig, false), 0);
    assert_int_equal(rig->report.spared, 0);
    assert_int_equal(rig->report.sweep.requeued, 1);
    assert_int_equal(read_log(rig).entries, 0);
}

static void a_stall_of_a_third_of_the_term_spares_nobody(void **state)
{
    struct rig *rig = *state;
    char id[40];
    run_one(rig, id);
    rig->now += TERM - TERM / 3;
    rig->pulse_takes = TERM / 3;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.spared, 0);
    assert_int_equal(rig->report.sweep.requeued, 1);
}

static void calls_that_fail_are_a_stall_until_one_works(void **state)
{
    struct rig *rig = *state;
    char id[40];
    run_one(rig, id);
    rig->now += TERM - 20000;
    rig->pulse_takes = 10000;
    rig->pulse_fails = 2;
    assert_int_equal(pass(rig, true), HF_EBUSY);
    assert_int_equal(pass(rig, true), HF_EBUSY);
    rig->pulse_takes = 0;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.stalled_ms, 20000);
    assert_int_equal(rig->report.spared, 1);
    assert_int_equal(rig->report.sweep.requeued, 0);
}

static void a_sweep_that_stalled_is_followed_by_amnesty(void **state)
{
    struct rig *rig = *state;
    char id[40];
    run_one(rig, id);
    rig->now += TERM - 10000;
    rig->sweep_takes = 20000;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.spared, 1);
    rig->sweep_takes = 0;
    assert_int_equal(pass(rig, true), 0);
    assert_int_equal(rig->report.sweep.requeued, 0);
}

static void a_plan_says_its_size(void **state)
{
    struct rig *rig = *state;
    struct hf_monitor_plan plan = { .size = 1 };
    struct hf_pointer_plan pointer = { .size = sizeof(pointer), .owner = "main" };
    struct hf_pointer_report report;
    assert_int_equal(hf_monitor_pass(rig->store, NULL, &plan, &rig->report, &rig->err),
                     HF_EINVAL);
    assert_string_equal(rig->err.field, "size");
    assert_int_equal(hf_monitor_pass(rig->store, NULL, NULL, &rig->report, &rig->err),
                     HF_EINVAL);
    assert_int_equal(hf_pointer_reconcile(rig->store, NULL, &pointer, &report, &rig->err),
                     HF_EINVAL);
    assert_string_equal(rig->err.field, "path");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(amnesty_only_for_a_witnessed_stall),
        CASE(a_single_pass_and_a_plain_sweep_never_give_amnesty),
        CASE(a_stall_of_a_third_of_the_term_spares_nobody),
        CASE(calls_that_fail_are_a_stall_until_one_works),
        CASE(a_plan_says_its_size),
        CASE(a_sweep_that_stalled_is_followed_by_amnesty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
