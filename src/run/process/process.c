/* Processes: waiting for one, and draining an owner's. */
#include <holdfast/bounds.h>
#include <holdfast/process.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/api/call.h"
#include "store/api/work.h"
#include "store/batch/ops.h"

#define LOOK_MS 250 /* a bell may be lost */
#define REST_MS 20  /* between looks where every commit rings */
#define SWEEP_MS 1000
#define SWEPT 64 /* rows, as a claim sweeps them */

/* The row by its id; where there is none, why: it may be a process that was pruned. */
static int look(struct hf_store *store, const struct hf_caller *who, const char *id,
                struct hf_answer **ret_answer, struct hf_err *err)
{
    struct hf_err why = { 0 };
    struct hf_processes *processes = NULL;
    struct hf_process_filter filter = { .size = sizeof filter, .id = id };
    int rc = hf_work_get(store, who, id, ret_answer, &why);
    if (rc != HF_ENOTFOUND || !store->methods->process)
        return hf_fail_as(err, rc, &why);
    rc = hf_process_list(store, who, &filter, &processes, err);
    hf_processes_free(processes);
    return rc ? rc : hf_fail_as(err, HF_ENOTFOUND, &why);
}

/* The end of a process rings a bell of its own. That of other work does not, so that closing it
 * out stays cheap: the process that awaits it is woken by every commit. */
static int topic_of(struct hf_store *store, const struct hf_caller *who, const char *id,
                    uint32_t *ret_topic, struct hf_err *err)
{
    struct hf_err why = { 0 };
    struct hf_processes *processes = NULL;
    struct hf_process_filter filter = { .size = sizeof filter, .id = id };
    int rc = HF_ENOTFOUND;
    if (store->methods->process)
        rc = hf_process_list(store, who, &filter, &processes, &why);
    hf_processes_free(processes);
    *ret_topic = rc == 0 ? hf_topic_of_end(id) : HF_TOPIC_ANY;
    return rc == HF_ENOTFOUND ? 0 : hf_fail_as(err, rc, &why);
}

/* A hint either way: the process that waited looks again. Under load every commit rings,
 * so it rests. */
static void wait_for_end(struct hf_store *store, uint32_t topic, uint32_t seen, hf_ms ms)
{
    hf_ms began = hf_store_mono(store);
    bool rung = store->methods->bell_wait(store, topic, seen, ms);
    hf_ms left = began + (ms < REST_MS ? ms : REST_MS) - hf_store_mono(store);
    if (rung && topic == HF_TOPIC_ANY && left > 0)
        store->clock->wait_ms(store->clock->user, left);
}

/* The holder may be dead and no monitor may run: then only a sweep ends the unit. A caller that
 * may not write, or that another one is ahead of, just waits. */
static void sweep_some(struct hf_store *store, const struct hf_caller *who)
{
    struct hf_sweep_report report;
    struct hf_err ignored;
    int rc = hf_work_sweep(store, who, SWEPT, &report, &ignored);
    (void)rc; /* the row is looked at all the same */
}

/* Looks, and waits for the bell of this unit's end, which was heard before the look. */
static int await(struct hf_store *store, const struct hf_caller *who, const char *id,
                 hf_ms end, struct hf_answer **ret_answer, struct hf_err *err)
{
    uint32_t topic = HF_TOPIC_ANY;
    hf_ms sweep_at = 0;
    int rc = topic_of(store, who, id, &topic, err);
    if (rc)
        return rc;
    for (;;) {
        struct hf_answer *answer = NULL;
        uint32_t seen = store->methods->bell_seen(store, topic);
        rc = look(store, who, id, &answer, err);
        if (rc)
            return rc;
        const struct hf_work *work = &hf_answer_at(answer, 0)->work;
        if (hf_status_terminal(hf_status_of(work->status))) {
            *ret_answer = answer;
            return 0;
        }
        hf_ms left = end - hf_store_mono(store);
        rc = left > 0 ? 0
                      : hf_fail(err, HF_EBUSY, "id", "%s has not ended: it is %s", id,
                                work->status);
        hf_answer_free(answer);
        if (rc)
            return rc;
        if (hf_store_mono(store) >= sweep_at) {
            sweep_at = hf_store_mono(store) + SWEEP_MS;
            sweep_some(store, who);
            continue; /* it may have ended the unit */
        }
        wait_for_end(store, topic, seen, left < LOOK_MS ? left : LOOK_MS);
    }
}

int hf_process_await(struct hf_store *store, const struct hf_caller *who, const char *id,
                     hf_ms wait_ms, struct hf_answer **ret_answer, struct hf_err *err)
{
    struct hf_answer *found = NULL;
    int rc = api_check_time(wait_ms, "wait_ms", err);
    if (rc)
        return rc;
    hf_ms end = hf_store_mono(store) + wait_ms;
    rc = look(store, who, id, &found, err); /* a prefix becomes the whole id */
    if (rc == 0)
        rc = await(store, who, hf_answer_at(found, 0)->work.work_id, end, ret_answer,
                   err);
    hf_answer_free(found);
    return rc;
}

/* ---- drain ------------------------------------------------------------------------- */

struct draining {
    struct hf_store *store;
    const struct hf_caller *who;
    struct hf_drain wanted;
    struct hf_drain_report report;
};

/* A token of our own for the row: by coming in again, or out of its wait. */
static int take(const struct draining *d, const struct hf_work *work,
                struct hf_answer **ret_answer, struct hf_err *err)
{
    bool runs = hf_status_of(work->status) == HF_STATUS_RUNNING;
    struct hf_claim claim = { .size = sizeof claim,
                              .owner = d->wanted.owner,
                              .incarnation = d->wanted.incarnation,
                              .id = work->work_id };
    struct hf_change resume = { .size = sizeof resume,
                                .verb = HF_VERB_RESUME,
                                .id = work->work_id,
                                .owner = d->wanted.owner,
                                .incarnation = d->wanted.incarnation };
    return runs ? hf_work_claim(d->store, d->who, &claim, ret_answer, err)
                : hf_work_change(d->store, d->who, &resume, 1, HF_ALL_OR_NONE, ret_answer,
                                 err);
}

static int drain_one(struct draining *d, const struct hf_work *work, struct hf_err *err)
{
    struct hf_answer *taken = NULL, *ended = NULL;
    int rc = take(d, work, &taken, err);
    const struct hf_item *item = rc == 0 && hf_answer_count(taken) == 1
                                     ? hf_answer_at(taken, 0)
                                     : NULL;
    if (rc == 0 && (!item || item->code || !item->token))
        rc = hf_fail(err, item && item->code ? item->code : HF_EHELD, "id",
                     "it could not be claimed");
    if (rc == 0) {
        struct hf_change abandon = { .size = sizeof abandon,
                                     .verb = HF_VERB_ABANDON,
                                     .id = work->work_id,
                                     .token = item->token,
                                     .reason = "its owner drains" };
        rc = hf_work_change(d->store, d->who, &abandon, 1, HF_ALL_OR_NONE, &ended, err);
    }
    hf_answer_free(ended);
    hf_answer_free(taken);
    return rc;
}

/* What cannot be ended now is said, and does not keep the others from their end. */
static void drain_or_defer(struct draining *d, const struct hf_work *work)
{
    struct hf_err why = { 0 };
    if (drain_one(d, work, &why) == 0) {
        d->report.ended++;
        return;
    }
    d->report.deferred++;
    if (d->wanted.deferred)
        d->wanted.deferred(d->wanted.user, work->work_id, &why);
}

static bool is_ours(const struct draining *d, const struct hf_work *work)
{
    return hf_disposition_of(work->disposition) == HF_DISPOSITION_OWNER_BOUND &&
           work->first_started_at && hf_same(work->owner, d->wanted.owner) &&
           hf_same(work->owner_incarnation, d->wanted.incarnation);
}

/* One page of the owner's rows; the cursor of the next, or NULL. */
static int drain_page(struct draining *d, struct hf_answer **page, struct hf_err *err)
{
    static const enum hf_status statuses[] = { HF_STATUS_RUNNING, HF_STATUS_WAITING_USER,
                                               HF_STATUS_WAITING_EXTERNAL };
    struct hf_filter filter = { .size = sizeof filter,
                                .statuses = statuses,
                                .status_count = 3,
                                .owner = d->wanted.owner,
                                .limit = (size_t)HF_MAX_PAGE,
                                .after = *page ? hf_answer_next(*page) : NULL };
    struct hf_answer *next = NULL;
    int rc = hf_work_list(d->store, d->who, &filter, &next, err);
    if (rc)
        return rc;
    hf_answer_free(*page); /* the cursor was its */
    *page = next;
    for (size_t i = 0; i < hf_answer_count(next); i++) {
        const struct hf_work *work = &hf_answer_at(next, i)->work;
        if (is_ours(d, work))
            drain_or_defer(d, work);
    }
    return 0;
}

int hf_process_drain(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_drain *drain, struct hf_drain_report *ret_report,
                     struct hf_err *err)
{
    struct draining d = { .store = store, .who = who };
    struct hf_answer *page = NULL;
    int rc = hf_sized_copy(drain, sizeof d.wanted, sizeof d.wanted, &d.wanted, err);
    if (rc == 0 && (!d.wanted.owner || !d.wanted.incarnation))
        rc = hf_fail(err, HF_EINVAL, d.wanted.owner ? "incarnation" : "owner",
                     "a drain ends the units of one owner: set owner and incarnation");
    while (rc == 0) {
        rc = drain_page(&d, &page, err);
        if (rc == 0 && !hf_answer_next(page))
            break;
    }
    hf_answer_free(page);
    if (rc == 0)
        *ret_report = d.report;
    return rc;
}
