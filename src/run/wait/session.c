/* Waiting for a session to claim: for the bell that every session rings, for the time when one
 * is ready or its lease lapses, and for the death of a process that holds one. */
#include "store/api/session.h"
#include "run/wait/watch.h"
#include "store/api/work.h"
#include "store/batch/ops.h"

/* Not every change of another process is told, so look once in a while. */
#define LOOK_MS 1000
#define SWEPT 64

/* How long to wait: until a claim has something to look at, at most `most`, at least 1 ms. */
static int pause_for(struct hf_store *store, const struct hf_session_claim *claim,
                     hf_ms most, hf_ms *ret_ms, struct hf_err *err)
{
    hf_ms at = 0;
    int rc = store->methods->sessions->next(store, claim, &at, err);
    hf_ms left = at ? at - store->clock->wall_ms(store->clock->user) : most;
    left = left < most ? left : most;
    *ret_ms = left > 0 ? left : 1;
    return rc;
}

static int wait_for_one(struct hf_death_watch *watch,
                        const struct hf_session_claim *claim, uint32_t seen, hf_ms most,
                        struct hf_err *err)
{
    struct hf_store *store = watch->store;
    struct hf_sweep_report report;
    struct hf_caller who = { .size = sizeof who };
    bool death = false;
    hf_ms ms = 0;
    int rc = pause_for(store, claim, most < LOOK_MS ? most : LOOK_MS, &ms, err);
    if (rc == 0)
        rc = hf_death_watch_wait(watch, hf_topic_of_queue("session"), seen, ms, &death,
                                 err);
    return rc || !death ? rc : hf_work_sweep(store, &who, SWEPT, &report, err);
}

int hf_session_claim(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_session_claim *wanted,
                     struct hf_session_answer **ret_answer, struct hf_err *err)
{
    struct hf_session_claim claim;
    struct hf_session_answer *answer = NULL;
    struct hf_death_watch watch;
    int rc = hf_session_claim_check(wanted, &claim, err);
    if (rc)
        return rc;
    hf_ms end = hf_store_mono(store) + claim.wait_ms;
    hf_death_watch_init(&watch, store);
    for (;;) {
        uint32_t seen = store->methods->bell_seen(store, hf_topic_of_queue("session"));
        rc = hf_session_claim_once(store, who, &claim, &answer, err);
        hf_ms left = end - hf_store_mono(store);
        if (rc || answer->session_count > 0 || left <= 0)
            break;
        hf_session_answer_free(answer);
        answer = NULL;
        rc = wait_for_one(&watch, &claim, seen, left, err);
        if (rc)
            break;
    }
    hf_death_watch_fini(&watch);
    if (rc == 0)
        *ret_answer = answer;
    return rc;
}

uint32_t hf_session_bell(struct hf_store *store)
{
    uint32_t topic = hf_topic_of_queue("session");
    uint32_t seen = store->methods->bell_seen(store, topic);
    /* A server's store begins to listen at its first wait; a worker that is full never waits. */
    (void)store->methods->bell_wait(store, topic, seen, 0);
    return seen;
}
