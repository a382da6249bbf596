/* Passes over the schedules: one transaction after another until nothing is due. */
#include "base/err.h"
#include "store/api/work.h"

#define BATCHES_MAX 1000 /* of one pass; then others get their turn */

static void add_report(struct hf_schedule_report *sum,
                       const struct hf_schedule_report *one)
{
    sum->looked_at += one->looked_at;
    sum->made += one->made;
    sum->skipped += one->skipped;
    sum->failed += one->failed;
    sum->races += one->races;
    sum->more = one->more;
    sum->next_at = one->next_at;
}

int hf_schedule_pass(struct hf_store *store, const struct hf_caller *given,
                     struct hf_schedule_report *ret_report, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedule_report sum = { 0 };
    int rc = hf_caller_complete(given, "system", "scheduler", &who, err);
    if (rc)
        return rc;
    if (!store->methods->schedules) {
        *ret_report = sum;
        return 0;
    }
    for (int i = 0; i < BATCHES_MAX && (i == 0 || sum.more); i++) {
        struct hf_schedule_report one;
        struct hf_err why = { 0 };
        rc = store->methods->schedules->pass(store, &who, &one, &why);
        if (rc)
            return hf_fail_as(err, rc, &why);
        add_report(&sum, &one);
    }
    *ret_report = sum;
    return 0;
}
