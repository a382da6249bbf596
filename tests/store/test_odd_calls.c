/* Calls that were not given what they need: each is bad input that names what is missing, and
 * none of them ends the host. */
#include <holdfast/job.h>
#include <holdfast/process.h>
#include <holdfast/run.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <string.h>

#include "support/unit.h"

struct rig {
    struct hf_store *store;
    struct hf_err err;
    struct hf_answer *answer;
};

static int begin(void **state)
{
    static struct rig rig;
    memset(&rig, 0, sizeof(rig));
    *state = &rig;
    return hf_store_open("sqlite::memory:", NULL, &rig.store, &rig.err);
}

static int end(void **state)
{
    struct rig *rig = *state;
    hf_store_close(rig->store);
    return 0;
}

/* The call was refused as bad input, naming the field. */
static void refused(struct rig *rig, int code, const char *field)
{
    assert_int_equal(code, HF_EINVAL);
    assert_string_equal(rig->err.field, field);
    assert_true(rig->err.message[0]);
    assert_null(rig->answer);
}

static const struct hf_work_spec unit = {
    .size = sizeof(unit), .source = HF_SOURCE_MANUAL, .source_id = "a", .priority = -1
};

static void a_batch_that_is_counted_and_not_given(void **state)
{
    struct rig *r = *state;
    refused(r, hf_work_create(r->store, NULL, NULL, 1, 0, &r->answer, &r->err), "news");
    refused(r, hf_work_change(r->store, NULL, NULL, 2, 0, &r->answer, &r->err),
            "changes");
    refused(r, hf_work_claim(r->store, NULL, NULL, &r->answer, &r->err), "claim");
    refused(r, hf_work_list(r->store, NULL, NULL, &r->answer, &r->err), "size");
    refused(r, hf_work_renew_all(r->store, NULL, NULL, &r->answer, &r->err), "size");
}

static void a_list_that_is_counted_and_not_given(void **state)
{
    struct rig *r = *state;
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .kind_count = 1 };
    refused(r, hf_work_claim(r->store, NULL, &claim, &r->answer, &r->err), "kinds");
    struct hf_filter filter = { .size = sizeof(filter), .status_count = 1 };
    refused(r, hf_work_list(r->store, NULL, &filter, &r->answer, &r->err), "statuses");
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = "01234567",
                                .authority = "ci",
                                .status = HF_STATUS_DONE,
                                .output_count = 1 };
    refused(r, hf_work_change(r->store, NULL, &change, 1, 0, &r->answer, &r->err),
            "outputs");
    change.output_count = 0;
    change.evidence_count = 1;
    refused(r, hf_work_change(r->store, NULL, &change, 1, 0, &r->answer, &r->err),
            "evidence");
    struct hf_work_spec bound = unit;
    bound.disposition = HF_DISPOSITION_OWNER_BOUND;
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &bound,
                                       .identity_kind = "shell",
                                       .observer_count = 1 };
    refused(r, hf_process_register(r->store, NULL, &process, &r->answer, &r->err),
            "observers");
    process.observer_count = 0;
    process.event_type_count = 1;
    refused(r, hf_process_register(r->store, NULL, &process, &r->answer, &r->err),
            "event_types");
    struct hf_output_add add = {
        .size = sizeof(add), .id = "01234567", .attempt = 1, .chunk_count = 1
    };
    refused(r, hf_output_add(r->store, NULL, &add, &r->err), "chunks");
    refused(r, hf_session_renew_all(r->store, NULL, 1, &r->err), "renewals");
}

static void nobody_to_tell(void **state)
{
    struct rig *r = *state;
    struct hf_reaper *reaper = NULL;
    refused(r, hf_store_log(r->store, 0, 0, NULL, NULL, &r->err), "each");
    refused(r, hf_store_check(r->store, NULL, NULL, &r->err), "found");
    refused(r, hf_limit_list(r->store, NULL, NULL, NULL, &r->err), "each");
    refused(r, hf_reaper_new(r->store, NULL, &reaper, &r->err), "lock_folder");
    refused(r, hf_store_open(NULL, NULL, &r->store, &r->err), "url");
}

static void flags_that_nobody_knows(void **state)
{
    struct rig *r = *state;
    refused(r, hf_work_create(r->store, NULL, &unit, 1, 4, &r->answer, &r->err), "flags");
    struct hf_change change = {
        .size = sizeof(change), .verb = HF_VERB_CANCEL, .id = "01234567", .reason = "r"
    };
    refused(
        r, hf_work_change(r->store, NULL, &change, 1, HF_BRIEF | 8u, &r->answer, &r->err),
        "flags");
    struct hf_stats stats;
    assert_int_equal(hf_work_stats(r->store, NULL, &stats, &r->err), 0);
    assert_int_equal(stats.by_status[HF_STATUS_QUEUED], 0);
}

static void a_job_is_told_of_its_own_fields(void **state)
{
    struct rig *r = *state;
    char key[300];
    struct hf_job_spec job = {
        .size = sizeof(job), .kind = "k", .priority = -1, .at = -1
    };
    refused(r, hf_job_check(&job, &r->err), "at");
    job.at = 253402300800000; /* the first moment of the year 10000 */
    refused(r, hf_job_check(&job, &r->err), "at");
    job.at--;
    assert_int_equal(hf_job_check(&job, &r->err), 0);
    job.delay_ms = 1;
    refused(r, hf_job_check(&job, &r->err), "at");
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = 0;
    job.delay_ms = 0;
    job.idempotency_key = key;
    assert_int_equal(hf_job_check(&job, &r->err), HF_ETOOBIG);
    assert_string_equal(r->err.field, "idempotency_key");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_batch_that_is_counted_and_not_given),
        CASE(a_list_that_is_counted_and_not_given),
        CASE(nobody_to_tell),
        CASE(flags_that_nobody_knows),
        CASE(a_job_is_told_of_its_own_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
