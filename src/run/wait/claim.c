/* Waiting: for work to claim, and for something to sweep.
 *
 * A waiter is woken by the bell of its queue, by the clock when something falls due, and by
 * the death of a process that holds a lease. */
#include "base/err.h"
#include "core/ledger/step.h"
#include "run/wait/watch.h"
#include "store/api/work.h"
#include "store/batch/ops.h"

/* No process is sure to be woken by what another process does, so look once in a while. */
#define LOOK_MS 1000

static hf_ms least(hf_ms a, hf_ms b)
{
    return a < b ? a : b;
}

static hf_ms until(struct hf_store *store, hf_ms at, hf_ms most)
{
    hf_ms left = at - store->clock->wall_ms(store->clock->user);
    return left < 0 ? 0 : least(left, most);
}

/* Milliseconds until a sweep has something to do, at most `most`. */
static int until_due(struct hf_store *store, hf_ms most, hf_ms *ret_ms,
                     struct hf_err *err)
{
    hf_ms at = 0;
    int rc = store->methods->next_due(store, &at, err);
    if (rc)
        return rc;
    *ret_ms = at ? until(store, at, most) : most;
    return 0;
}

static int sweep_some(struct hf_store *store, const struct hf_caller *who,
                      struct hf_err *err)
{
    struct hf_sweep_report report;
    return store->methods->sweep(store, who, 64, &report, err);
}

/* Try, wait, try again, until there is work or the time is up. */
static int claim_waiting(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_claim *claim, struct hf_answer **ret_answer,
                         struct hf_err *err)
{
    uint32_t topic = hf_topic_of_queue(claim->queue ? claim->queue : "default");
    hf_ms end = hf_store_mono(store) + claim->wait_ms;
    struct hf_death_watch watch;
    hf_death_watch_init(&watch, store);
    int rc = 0;
    for (;;) {
        uint32_t seen = store->methods->bell_seen(store, topic);
        rc = hf_work_claim_once(store, who, claim, ret_answer, err);
        hf_ms left = end - hf_store_mono(store);
        if (rc || hf_answer_count(*ret_answer) > 0 || left <= 0)
            break;
        bool death = false;
        hf_ms wait = 0;
        rc = until_due(store, least(left, LOOK_MS), &wait, err);
        if (rc == 0)
            rc = hf_death_watch_wait(&watch, topic, seen, wait > 0 ? wait : 1, &death,
                                     err);
        if (rc == 0 && death)
            rc = sweep_some(store, who, err);
        hf_answer_free(*ret_answer);
        *ret_answer = NULL;
        if (rc)
            break;
    }
    hf_death_watch_fini(&watch);
    return rc;
}

int hf_work_claim(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_claim *claim, struct hf_answer **ret_answer,
                  struct hf_err *err)
{
    struct hf_caller who;
    struct hf_answer *answer = NULL;
    int rc = hf_claim_check(claim, err);
    if (rc == 0)
        rc = hf_caller_complete(given, "worker", claim->owner, &who, err);
    if (rc == 0)
        rc = claim_waiting(store, &who, claim, &answer, err);
    if (rc == 0)
        *ret_answer = answer;
    return rc;
}

/* The same until a pass over the schedules has something to do. */
static int until_slot(struct hf_store *store, hf_ms most, hf_ms *ret_ms,
                      struct hf_err *err)
{
    hf_ms at = 0;
    *ret_ms = most;
    int rc = store->methods->schedules ? store->methods->schedules->next(store, &at, err)
                                       : 0;
    if (rc == 0 && at)
        *ret_ms = until(store, at, most);
    return rc;
}

int hf_work_await(struct hf_store *store, hf_ms most_ms, struct hf_err *err)
{
    bool death = false;
    hf_ms wait = 0;
    struct hf_death_watch watch;
    hf_death_watch_init(&watch, store);
    int rc = until_slot(store, most_ms, &most_ms, err);
    if (rc == 0)
        rc = until_due(store, most_ms, &wait, err);
    if (rc == 0 && wait > 0) {
        /* No process's end: only the clock and deaths. A bell that it shares may be
         * rung. */
        uint32_t topic = hf_topic_of_end("");
        hf_ms end = hf_store_mono(store) + wait;
        while (rc == 0 && !death && hf_store_mono(store) < end) {
            uint32_t seen = store->methods->bell_seen(store, topic);
            rc = hf_death_watch_wait(&watch, topic, seen, end - hf_store_mono(store),
                                     &death, err);
        }
    }
    hf_death_watch_fini(&watch);
    return rc;
}
