/* Every allocation of a step, failed once: out of memory, no leak, nothing half made. */
#include "support/unit.h"

#include "support/fail_alloc.h"
#include "support/rig.h"

typedef int (*step_fn)(struct rig *rig);

/* Runs `act` with the first, second, … allocation failing until it needs no more. */
static void assert_survives(step_fn act)
{
    for (int64_t fail_at = 1; fail_at < 1000; fail_at++) {
        struct fail_alloc memory;
        struct rig rig;
        fail_alloc_init(&memory, fail_at);
        rig_init(&rig);
        rig_fini(&rig);
        hf_arena_init(&rig.arena, &memory.alloc);
        int rc = act(&rig);
        hf_arena_fini(&rig.arena);
        assert_int_equal(memory.live, 0);
        if (rc == 0) {
            assert_true(fail_at > 1); /* it did allocate */
            return;
        }
        assert_int_equal(rc, HF_ENOMEM);
        assert_int_equal(rig.err.code, HF_ENOMEM);
        assert_null(rig.step.row.event_type);
        assert_null(rig.made.event_type);
    }
    fail_msg("it never had enough");
}

static int create(struct rig *rig)
{
    struct hf_work_spec request = rig_new();
    request.retry_policy = "{\"backoff_multiplier\":1.5,\"retry_on\":[\"x\"]}";
    return rig_create(rig, &request);
}

static int claim(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_QUEUED, HF_DISPOSITION_EXPIRE);
    return rig_claim(rig, &row, "bob", "b1", "m1");
}

static int close_out(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    change.summary = "all is well";
    return rig_apply(rig, &row, &change);
}

static int fail_row(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_held(HF_VERB_FAIL);
    change.error_class = "rate_limit";
    return rig_apply(rig, &row, &change);
}

static int resume(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_WAITING_USER, HF_DISPOSITION_EXPIRE);
    struct hf_change change = rig_change(HF_VERB_RESUME);
    change.payload = "{\"b\":1,\"a\":[1.5,true]}";
    return rig_apply(rig, &row, &change);
}

static int take_signal(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_EXTERNAL;
    change.ref = "signal.go";
    return rig_signal(rig, &row, &change, "{\"b\":1,\"a\":[1.5,true]}");
}

static int request_cancel(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_OWNER_BOUND);
    struct hf_change change = rig_change(HF_VERB_CANCEL);
    change.reason = "stop it";
    return rig_apply(rig, &row, &change);
}

static int sweep(struct rig *rig)
{
    struct hf_row row = rig_row(HF_STATUS_RUNNING, HF_DISPOSITION_EXPIRE);
    return rig_sweep(rig, &row, "{\"how\":\"pidfd\"}");
}

static void steps_survive_every_failed_allocation(void **state)
{
    (void)state;
    static const step_fn steps[] = { create, claim,       close_out,      fail_row,
                                     resume, take_signal, request_cancel, sweep };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        assert_survives(steps[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
