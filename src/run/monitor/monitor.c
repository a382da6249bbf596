/* One pass of a monitor (holdfast/monitor.h): renewals for an owner, what dead runners left behind,
 * the sweep, the schedules that are due, and the pointer file, in this order. The caller waits
 * between passes. A witness remembers since when calls of the store have stalled; after a stall
 * leases get amnesty, one more term before a sweep acts on them. */
#include <holdfast/monitor.h>

#include "base/err.h"
#include "base/sized.h"
#include "store/api/work.h"

#include <holdfast/bounds.h>
#include <holdfast/sys/store.h>

#define SWEEPS_MAX 1000

static void add_report(struct hf_sweep_report *sum, const struct hf_sweep_report *one)
{
    sum->looked_at += one->looked_at;
    sum->requeued += one->requeued;
    sum->timed_out += one->timed_out;
    sum->failed += one->failed;
    sum->abandoned += one->abandoned;
    sum->promoted += one->promoted;
    sum->escalated += one->escalated;
    sum->pushed += one->pushed;
    sum->silent = one->silent; /* states, not deeds */
    sum->orphaned = one->orphaned;
    sum->proven_dead += one->proven_dead;
    sum->held += one->held;
    sum->more = one->more;
    sum->next_at = one->next_at;
}

int64_t hf_sweep_changes(const struct hf_sweep_report *report)
{
    return report->requeued + report->timed_out + report->failed + report->abandoned +
           report->promoted + report->escalated + report->held;
}

/* ---- stalls ---------------------------------------------------------------------------- */

/* A call that began at `begun` has ended with rc: was it, or were those that failed before
 * it, a stall? Only a call that works ends one. Returns rc, or why amnesty could not
 * be. */
static int look_back(struct hf_store *store, struct hf_monitor_witness *witness,
                     hf_ms begun, int rc, struct hf_monitor_report *report,
                     struct hf_err *err)
{
    if (!witness)
        return rc;
    hf_ms since = witness->since ? witness->since : begun;
    if (rc) {
        witness->since = hf_err_class(rc) == HF_CLASS_TERMINAL ? 0 : since;
        return rc;
    }
    witness->since = 0;
    hf_ms stalled = hf_store_mono(store) - since;
    int64_t spared = 0;
    if (3 * stalled <= HF_MAX_TTL_MIN_MS)
        return 0; /* no lease is so short */
    rc = store->methods->amnesty(store, stalled, &spared, err);
    if (rc) {
        witness->since = since; /* the store stalls again */
        return rc;
    }
    report->stalled_ms = stalled > report->stalled_ms ? stalled : report->stalled_ms;
    report->spared += spared;
    return 0;
}

static int pulse(struct hf_store *store, struct hf_monitor_witness *witness,
                 struct hf_monitor_report *report, struct hf_err *err)
{
    hf_ms begun = hf_store_mono(store);
    int rc = witness ? store->methods->pulse(store, err) : 0;
    return look_back(store, witness, begun, rc, report, err);
}

/* ---- sweeps ---------------------------------------------------------------------------- */

/* A sweep that stalled is followed by amnesty before the next one acts. */
static int sweep_all(struct hf_store *store, const struct hf_caller *who,
                     struct hf_monitor_witness *witness, struct hf_monitor_report *report,
                     struct hf_err *err)
{
    struct hf_sweep_report *sum = &report->sweep;
    for (int i = 0; i < SWEEPS_MAX && (i == 0 || sum->more); i++) {
        struct hf_sweep_report one;
        hf_ms begun = hf_store_mono(store);
        int rc = hf_work_sweep(store, who, 0, &one, err);
        rc = look_back(store, witness, begun, rc, report, err);
        if (rc)
            return rc;
        add_report(sum, &one);
    }
    return 0;
}

int hf_sweep_all(struct hf_store *store, const struct hf_caller *who,
                 struct hf_sweep_report *ret_report, struct hf_err *err)
{
    struct hf_monitor_report report = { 0 };
    int rc = sweep_all(store, who, NULL, &report, err);
    if (rc == 0)
        *ret_report = report.sweep;
    return rc;
}

/* ---- renewals -------------------------------------------------------------------------- */

/* Until the lease enters the last two thirds of its term, when it is to be renewed. */
static hf_ms until_renewal(const struct hf_work *work)
{
    hf_ms left = work->lease_remaining_ms - work->lease_ttl_ms / 3 * 2;
    return left > 0 ? left : 0;
}

/* Of two times of which -1 is none. */
static hf_ms sooner(hf_ms a, hf_ms b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static hf_ms first_renewal(const struct hf_answer *page)
{
    hf_ms first = -1;
    for (size_t i = 0; i < hf_answer_count(page); i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        if (work->lease_expires_at) /* otherwise it is under a session's lease */
            first = sooner(first, until_renewal(work));
    }
    return first;
}

/* The owner's leases: in how many ms the first wants renewing, -1 when there is none. */
static int next_renewal(struct hf_store *store, const struct hf_caller *who,
                        const struct hf_monitor_plan *plan, hf_ms *ret_ms,
                        struct hf_err *err)
{
    static const enum hf_status running = HF_STATUS_RUNNING;
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = &running,
                                .status_count = 1,
                                .owner = plan->owner,
                                .limit = (size_t)HF_MAX_PAGE };
    struct hf_answer *page = NULL;
    hf_ms first = -1;
    int rc = 0;
    do {
        struct hf_answer *before = page; /* whose cursor it continues from */
        page = NULL;
        filter.after = before ? hf_answer_next(before) : NULL;
        rc = hf_work_list(store, who, &filter, &page, err);
        hf_answer_free(before);
        first = rc == 0 ? sooner(first, first_renewal(page)) : first;
    } while (rc == 0 && first != 0 && hf_answer_next(page));
    hf_answer_free(page);
    if (rc == 0)
        *ret_ms = first;
    return rc;
}

static int renew(struct hf_store *store, const struct hf_caller *who,
                 const struct hf_monitor_plan *plan, struct hf_monitor_report *report,
                 struct hf_err *err)
{
    struct hf_renew_all wanted = { .size = sizeof(wanted),
                                   .owner = plan->owner,
                                   .incarnation = plan->incarnation,
                                   .fresh_within_ms = plan->fresh_ms
                                                          ? plan->fresh_ms
                                                          : HF_MONITOR_FRESH_MS };
    struct hf_answer *renewed = NULL;
    int rc = next_renewal(store, who, plan, &report->renew_in_ms, err);
    if (rc || report->renew_in_ms != 0)
        return rc;
    rc = hf_work_renew_all(store, who, &wanted, &renewed, err);
    if (rc)
        return rc;
    report->renewed = (int64_t)hf_answer_count(renewed);
    report->renew_in_ms = -1;
    for (size_t i = 0; i < hf_answer_count(renewed); i++) {
        hf_ms in = hf_answer_at(renewed, i)->work.lease_ttl_ms / 3;
        if (report->renew_in_ms < 0 || in < report->renew_in_ms)
            report->renew_in_ms = in;
    }
    hf_answer_free(renewed);
    return 0;
}

static int pass(struct hf_store *store, const struct hf_caller *who,
                const struct hf_monitor_plan *plan, struct hf_monitor_report *ret_report,
                struct hf_err *err)
{
    struct hf_monitor_report report = { .renew_in_ms = -1 };
    int rc = pulse(store, plan->witness, &report, err);
    hf_ms begun = hf_store_mono(store);
    if (rc == 0 && plan->owner) {
        rc = renew(store, who, plan, &report, err);
        rc = look_back(store, plan->witness, begun, rc, &report, err);
    }
    if (rc == 0 && plan->reaper)
        rc = hf_reaper_pass(plan->reaper, who, HF_MONITOR_KILL_MS, plan->orphan,
                            plan->user, &report.ending, err);
    if (rc == 0)
        rc = sweep_all(store, who, plan->witness, &report, err);
    if (rc == 0 && plan->reaper && report.sweep.abandoned) /* its last output */
        rc = hf_reaper_pass(plan->reaper, who, HF_MONITOR_KILL_MS, plan->orphan,
                            plan->user, &report.ending, err);
    if (rc == 0)
        rc = hf_schedule_pass(store, who, &report.schedules, err);
    if (rc == 0 && plan->pointer) {
        struct hf_pointer_plan pointer = { .size = sizeof(pointer),
                                           .path = plan->pointer,
                                           .owner = plan->owner,
                                           .incarnation = plan->incarnation };
        report.has_pointer = true;
        rc = hf_pointer_reconcile(store, who, &pointer, &report.pointer, err);
    }
    if (rc == 0)
        *ret_report = report;
    return rc;
}

int hf_monitor_pass(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_monitor_plan *given,
                    struct hf_monitor_report *ret_report, struct hf_err *err)
{
    struct hf_monitor_plan plan;
    struct hf_err why = { 0 };
    int rc = hf_sized_copy(given, sizeof(plan), sizeof(plan), &plan, &why);
    return rc ? hf_fail_as(err, rc, &why) : pass(store, who, &plan, ret_report, err);
}
