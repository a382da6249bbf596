/* A pool of real threads over a real store. Nothing here sleeps to be in time: tests wait for
 * what a job, the listener or the ledger says, and a patience that is never used up in a run
 * that passes bounds each wait. Names of the job checklist (T…) are next to the cases. */
#include "run/pool_stage.h"

/* ---- jobs ---------------------------------------------------------------------------- */

static int plain(void *user, struct hf_job *job)
{
    struct stage *s = user;
    (void)job;
    bump(s, &s->returned, 1);
    return HF_JOB_DONE;
}

/* Runs until the test opens the gate, whatever the pool says. */
static int stubborn(void *user, struct hf_job *job)
{
    struct stage *s = user;
    (void)job;
    bump(s, &s->started, 1);
    await_count(s, &s->open, 1);
    bump(s, &s->returned, 1);
    return HF_JOB_DONE;
}

/* Runs until it is told to stop. */
static int obedient(void *user, struct hf_job *job)
{
    struct stage *s = user;
    bump(s, &s->started, 1);
    enum hf_job_stop why = hf_job_sleep(job, PATIENCE_MS);
    (void)pthread_mutex_lock(&s->lock);
    s->stop_seen = (int)why;
    s->returned++;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
    return HF_JOB_STOPPED;
}

static int failing(void *user, struct hf_job *job)
{
    struct stage *s = user;
    bump(s, &s->started, 1);
    return hf_job_fail(job, "service_unavailable", "the service said no");
}

static int invalid(void *user, struct hf_job *job)
{
    (void)user, (void)job;
    return HF_EINVAL;
}

static int lasting(void *user, struct hf_job *job)
{
    struct stage *s = user;
    (void)pthread_mutex_lock(&s->lock);
    (void)snprintf(s->id, sizeof s->id, "%s", hf_job_work(job)->work_id);
    (void)snprintf(s->token, sizeof s->token, "%s", hf_job_token(job));
    s->started++;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
    return HF_JOB_LATER;
}

/* Counts how many run at once; opens when the test says so. */
static int counting(void *user, struct hf_job *job)
{
    struct stage *s = user;
    (void)job;
    (void)pthread_mutex_lock(&s->lock);
    if (++s->inside > s->most_inside)
        s->most_inside = s->inside;
    s->started++;
    (void)pthread_cond_broadcast(&s->moved);
    (void)pthread_mutex_unlock(&s->lock);
    await_count(s, &s->open, 1);
    bump(s, &s->inside, -1);
    return HF_JOB_DONE;
}

static int proven(void *user, struct hf_job *job)
{
    struct stage *s = user;
    bump(s, &s->returned, 1);
    return hf_job_evidence(job, "report:4711", NULL) ? HF_EINVAL : HF_JOB_DONE;
}

/* Lets its unit wait itself, and returns as if it had ended. */
static int waiting(void *user, struct hf_job *job)
{
    struct stage *s = user;
    change(s, (struct hf_change){ .verb = HF_VERB_WAIT,
                                  .id = hf_job_work(job)->work_id,
                                  .token = hf_job_token(job),
                                  .status = HF_STATUS_WAITING_EXTERNAL,
                                  .ref = "invoice-1" });
    bump(s, &s->returned, 1);
    return HF_JOB_DONE;
}

/* ---- cases --------------------------------------------------------------------------- */

/* T15 */
static void a_job_runs_once_and_is_done(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "mail", plain);
    start(s);
    enqueue(s, "mail", (struct hf_job_spec){ .payload = "{\"to\":\"ann\"}" }, id);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "done");
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(s->returned, 1);
    assert_int_equal(s->told[HF_POOL_CLAIMED], 1);
    assert_int_equal(s->told[HF_POOL_STARTED], 1);
    struct hf_events *trail;
    assert_int_equal(hf_work_events(s->store, NULL, id, 0, 0, &trail, &s->err), 0);
    static const char *const wanted[] = { "work_created", "claimed", "lease_acquired",
                                          "close_out", "lease_released" };
    assert_int_equal(hf_events_count(trail), 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(hf_events_at(trail, i)->event_type, wanted[i]);
    hf_events_free(trail);
}

static void a_job_that_lets_its_unit_wait_is_not_lost(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "bill", waiting);
    start(s);
    enqueue(s, "bill", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, id).status, "waiting_external");
    assert_int_equal(stats(s).waiting, 1);
    assert_int_equal(stats(s).lost, 0);
    assert_int_equal(s->told[HF_POOL_LOST], 0);
}

static void a_job_whose_close_rule_is_not_met_waits_for_a_person(void **state)
{
    struct stage *s = *state;
    char bare[64], proof[64];
    struct hf_policy policy = { .size = sizeof policy,
                                .close_rule = "evidence",
                                .wait_rule = "escalation" };
    assert_int_equal(hf_policy_set(s->store, NULL, "default", &policy, &s->err), 0);
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "bare", plain);
    add_kind(s, "proof", proven);
    start(s);
    enqueue(s, "bare", (struct hf_job_spec){ 0 }, bare);
    enqueue(s, "proof", (struct hf_job_spec){ 0 }, proof);
    await_count(s, &s->told[HF_POOL_ENDED], 2);
    struct seen seen = look(s, bare);
    assert_string_equal(seen.status, "waiting_user");
    assert_string_equal(seen.reason,
                        "done needs evidence for this row: add a hash or a reference");
    assert_int_equal(seen.attempts, 1);
    assert_string_equal(look(s, proof).status, "done");
    assert_int_equal(s->returned, 2);
    assert_int_equal(stats(s).waiting, 1);
    assert_int_equal(stats(s).done, 1);
    assert_int_equal(stats(s).lost, 0);
}

static void evidence_of_a_job_that_ends_later_counts(void **state)
{
    struct stage *s = *state;
    static const char *const good[] = { "report:4711" };
    struct hf_policy policy = { .size = sizeof policy, .close_rule = "evidence" };
    assert_int_equal(hf_policy_set(s->store, NULL, "default", &policy, &s->err), 0);
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "later", lasting);
    start(s);
    enqueue(s, "later", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->started, 1);
    struct hf_job_end end = { .size = sizeof end, .evidence = good, .evidence_count = 1 };
    assert_int_equal(hf_pool_complete(s->pool, s->id, s->token, &end, &s->err), 0);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, s->id).status, "done");
}

/* T16 */
static void a_failure_waits_for_its_retry_and_the_last_one_is_final(void **state)
{
    struct stage *s = *state;
    char first[64], last[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "call", failing);
    start(s);
    enqueue(
        s, "call",
        (struct hf_job_spec){
            .max_attempts = 2,
            .retry_policy = "{\"initial_backoff_ms\":600000,\"max_backoff_ms\":600000,"
                            "\"jitter\":\"none\"}" },
        first);
    enqueue(s, "call", (struct hf_job_spec){ .max_attempts = 1 }, last);
    await_count(s, &s->told[HF_POOL_ENDED], 2);
    struct seen seen = look(s, first);
    assert_string_equal(seen.status, "retry_scheduled");
    assert_string_equal(seen.error_class, "service_unavailable");
    assert_int_equal(seen.failures, 1);
    assert_int_equal(seen.next_retry_at - seen.updated_at, 600000);
    assert_string_equal(look(s, last).status, "failed");
    assert_int_equal(stats(s).retried, 1);
    assert_int_equal(stats(s).failed, 1);
}

/* T17: by the design's one default policy; fixed and growing delays are stated. */
static void delays_are_fixed_or_double_as_the_job_asks(void **state)
{
    struct stage *s = *state;
    static const char *const policies[] = {
        "{\"initial_backoff_ms\":1,\"max_backoff_ms\":1,\"jitter\":\"none\","
        "\"backoff_multiplier\":1}",
        "{\"initial_backoff_ms\":1,\"max_backoff_ms\":100,\"jitter\":\"none\","
        "\"backoff_multiplier\":2}",
    };
    static const hf_ms delays[2][3] = { { 1, 1, 1 }, { 1, 2, 4 } };
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "call", failing);
    start(s);
    for (int p = 0; p < 2; p++) {
        char id[64];
        enqueue(s, "call",
                (struct hf_job_spec){ .max_attempts = 4, .retry_policy = policies[p] },
                id);
        await_count(s, &s->told[HF_POOL_ENDED], 4 * (p + 1));
        assert_string_equal(look(s, id).status, "failed");
        struct hf_events *trail;
        assert_int_equal(hf_work_events(s->store, NULL, id, 0, 0, &trail, &s->err), 0);
        int n = 0;
        for (size_t i = 0; i < hf_events_count(trail); i++) {
            const struct hf_event *event = hf_events_at(trail, i);
            char wanted[32];
            if (!event->to_status || strcmp(event->to_status, "retry_scheduled") != 0)
                continue;
            (void)snprintf(wanted, sizeof wanted, "\"delay_ms\":%lld,",
                           (long long)delays[p][n++]);
            assert_non_null(strstr(event->payload, wanted));
        }
        assert_int_equal(n, 3);
        hf_events_free(trail);
    }
}

static void a_returned_code_is_the_class_that_the_policy_judges(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "bad", invalid);
    start(s);
    enqueue(s, "bad", (struct hf_job_spec){ .max_attempts = 5 }, id);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "failed");
    assert_string_equal(seen.error_class, "validation");
    assert_int_equal(seen.failures, 1);
}

/* T18, and G8: what no caller here can run is left to those who can. */
static void kinds_without_code_are_not_claimed(void **state)
{
    struct stage *s = *state;
    char other[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "mail", plain);
    start(s);
    enqueue(s, "other", (struct hf_job_spec){ .priority = 1 }, other);
    enqueue(s, "mail", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    struct seen seen = look(s, other);
    assert_string_equal(seen.status, "queued");
    assert_int_equal(seen.attempts, 0);
}

static void a_star_runs_every_kind(void **state)
{
    struct stage *s = *state;
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "*", plain);
    start(s);
    enqueue(s, "one", (struct hf_job_spec){ 0 }, NULL);
    enqueue(s, "two", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->told[HF_POOL_ENDED], 2);
    assert_int_equal(stats(s).done, 2);
}

/* T19 */
static void a_job_longer_than_its_lease_is_not_stolen(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ .ttl_ms = SHORT_TTL });
    add_kind(s, "long", stubborn);
    start(s);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    struct seen first = look(s, id);
    /* longer than two terms, by the renewals that were counted */
    while (stats(s).renewals < 7)
        assert_int_equal(hf_work_await(s->store, 20, &s->err), 0);
    struct seen later = look(s, id);
    assert_string_equal(later.status, "running");
    assert_int_equal(later.attempts, 1);
    assert_int_equal(later.fence, first.fence);
    assert_true(later.lease_expires_at > first.lease_expires_at + SHORT_TTL);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, id).status, "done");
}

static const struct hf_store_methods *real_methods; /* one test at a time */
static atomic_int renewals_to_fail;

static int failing_renewal(struct hf_store *store, const struct hf_caller *who,
                           const struct hf_renew_all *renew, struct hf_answer *answer,
                           struct hf_err *err)
{
    if (atomic_fetch_sub(&renewals_to_fail, 1) > 0)
        return HF_EBUSY;
    return real_methods->renew_all(store, who, renew, answer, err);
}

/* T20 */
static void a_renewal_that_fails_for_a_moment_costs_nothing(void **state)
{
    struct stage *s = *state;
    char id[64];
    struct hf_store_methods methods = *s->store->methods;
    real_methods = s->store->methods;
    methods.renew_all = failing_renewal;
    atomic_store(&renewals_to_fail, 1);
    s->store->methods = &methods;
    make_pool(s, (struct hf_pool_options){ .ttl_ms = 2 * SHORT_TTL });
    add_kind(s, "long", stubborn);
    start(s);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->told[HF_POOL_ERROR], 1); /* it is said */
    while (stats(s).renewals < 3)
        assert_int_equal(hf_work_await(s->store, 20, &s->err), 0);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "running");
    assert_int_equal(seen.attempts, 1);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, id).status, "done");
    assert_int_equal(stats(s).lost, 0);
    hf_pool_free(s->pool); /* its threads use the methods of this frame */
    s->pool = NULL;
    s->store->methods = real_methods;
}

/* T7, T22: the row stays as the operator left it, and the outcome counts for nothing. */
static void a_cancelled_job_is_told_and_its_outcome_is_refused(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ .ttl_ms = SHORT_TTL });
    add_kind(s, "long", obedient);
    start(s);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    change(s, (struct hf_change){ .verb = HF_VERB_CANCEL, .id = id, .reason = "enough" });
    await_count(s, &s->told[HF_POOL_LOST], 1);
    assert_int_equal(s->stop_seen, HF_JOB_CANCELLED);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "cancelled");
    assert_string_equal(seen.reason, "enough");
    assert_int_equal(stats(s).done, 0);
    assert_int_equal(stats(s).lost, 1);
}

/* T21 */
static void a_lost_lease_stops_the_job(void **state)
{
    struct stage *s = *state;
    char id[64];
    int64_t incarnation;
    make_pool(s, (struct hf_pool_options){ .ttl_ms = SHORT_TTL });
    add_kind(s, "long", obedient);
    start(s);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    /* a new history of the store: no token of before is worth anything */
    assert_int_equal(hf_store_bump(s->store, &incarnation, &s->err), 0);
    await_count(s, &s->told[HF_POOL_LOST], 1);
    assert_int_equal(s->stop_seen, HF_JOB_LOST);
}

/* T25 */
static void a_drain_lets_jobs_end_first(void **state)
{
    struct stage *s = *state;
    char id[64];
    size_t left = 99;
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "brief", stubborn);
    start(s);
    enqueue(s, "brief", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    bump(s, &s->open, 1);
    assert_int_equal(hf_pool_drain(s->pool, PATIENCE_MS, 0, &left, &s->err), 0);
    assert_int_equal(left, 0);
    assert_string_equal(look(s, id).status, "done");
}

/* T24, T25: told to stop at once; handed back, and no attempt is spent on it. */
static void a_drain_without_time_stops_and_hands_back(void **state)
{
    struct stage *s = *state;
    char id[64];
    size_t left = 99;
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "long", obedient);
    start(s);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    assert_int_equal(hf_pool_drain(s->pool, 0, PATIENCE_MS, &left, &s->err), 0);
    assert_int_equal(left, 0);
    assert_int_equal(s->stop_seen, HF_JOB_DRAINED);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "queued");
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(seen.failures, 0);
}

/* T25: the drain's time is kept though the job ignores it; the lease stays. */
static void a_drain_gives_up_on_a_stubborn_job(void **state)
{
    struct stage *s = *state;
    char id[64];
    size_t left = 99;
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "deaf", stubborn);
    start(s);
    enqueue(s, "deaf", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    assert_int_equal(hf_pool_drain(s->pool, 10, 10, &left, &s->err), 0);
    assert_int_equal(left, 1);
    assert_string_equal(look(s, id).status, "running");
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, id).status, "done");
}

static void a_drain_hands_back_what_was_not_started(void **state)
{
    struct stage *s = *state;
    size_t left = 99;
    make_pool(s, (struct hf_pool_options){ .threads = 2, .batch = 50 });
    struct hf_job_kind one = {
        .size = sizeof one, .name = "deaf", .run = counting, .user = s, .concurrency = 1
    };
    assert_int_equal(hf_pool_add(s->pool, &one, &s->err), 0);
    char ids[4][64];
    for (int i = 0; i < 4; i++)
        enqueue(s, "deaf", (struct hf_job_spec){ 0 }, ids[i]);
    start(s);
    await_count(s, &s->started, 1);
    assert_int_equal(hf_pool_drain(s->pool, 0, 0, &left, &s->err), 0);
    assert_int_equal(left, 1);
    assert_int_equal(s->most_inside, 1);
    int queued = 0;
    for (int i = 0; i < 4; i++) {
        struct seen seen = look(s, ids[i]);
        queued += strcmp(seen.status, "queued") == 0;
        assert_int_equal(seen.failures, 0);
    }
    assert_int_equal(queued, 3);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], (int)stats(s).claimed);
}

static void concurrency_of_a_kind_holds(void **state)
{
    struct stage *s = *state;
    make_pool(s, (struct hf_pool_options){ .threads = 8 });
    struct hf_job_kind two = {
        .size = sizeof two, .name = "narrow", .run = counting, .user = s, .concurrency = 2
    };
    assert_int_equal(hf_pool_add(s->pool, &two, &s->err), 0);
    add_kind(s, "wide", plain);
    for (int i = 0; i < 20; i++)
        enqueue(s, "narrow", (struct hf_job_spec){ 0 }, NULL);
    enqueue(s, "wide", (struct hf_job_spec){ .priority = 9 }, NULL);
    start(s);
    await_count(s, &s->started, 2);
    await_count(s, &s->returned, 1); /* the wide one is not kept out */
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 21);
    assert_int_equal(s->most_inside, 2);
}

/* Workers call each other: each comes to run next to those that do not end. */
static void a_burst_gets_every_thread(void **state)
{
    struct stage *s = *state;
    make_pool(s, (struct hf_pool_options){ .threads = 24 });
    add_kind(s, "long", counting);
    for (int i = 0; i < 24; i++)
        enqueue(s, "long", (struct hf_job_spec){ 0 }, NULL);
    start(s);
    await_count(s, &s->started, 24);
    assert_int_equal(s->most_inside, 24);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 24);
}

/* After quick jobs the settling thread claims; one that stays must not keep it from that, and
 * no thread of the pool may leave it to another that never comes. */
static void a_job_that_stays_keeps_no_other_from_being_claimed(void **state)
{
    struct stage *s = *state;
    make_pool(s, (struct hf_pool_options){ .threads = 2 });
    add_kind(s, "quick", plain);
    add_kind(s, "long", stubborn);
    for (int i = 0; i < 100; i++)
        enqueue(s, "quick", (struct hf_job_spec){ 0 }, NULL);
    start(s);
    await_count(s, &s->told[HF_POOL_ENDED], 100);
    enqueue(s, "long", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->started, 1);
    for (int i = 1; i <= 20; i++) { /* one by one, and then many */
        enqueue(s, "quick", (struct hf_job_spec){ 0 }, NULL);
        await_count(s, &s->told[HF_POOL_ENDED], 100 + i);
    }
    for (int i = 0; i < 100; i++)
        enqueue(s, "quick", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->told[HF_POOL_ENDED], 220);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 221);
}

static atomic_int answers_to_lose;

static bool lose_answer(void)
{
    return atomic_fetch_sub(&answers_to_lose, 1) > 0;
}

static int failing_claim(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_claim *claim, struct hf_answer *answer,
                         struct hf_err *err)
{
    int rc = real_methods->claim(store, who, claim, answer, err);
    return rc == 0 && hf_answer_count(answer) > 0 && lose_answer() ? HF_EUNCERTAIN : rc;
}

static int failing_change(struct hf_store *store, const struct hf_caller *who,
                          const struct hf_change *changes, size_t n, unsigned flags,
                          struct hf_answer *answer, struct hf_err *err)
{
    int rc = real_methods->change(store, who, changes, n, flags, answer, err);
    return rc == 0 && lose_answer() ? HF_EUNCERTAIN : rc;
}

static void run_sixty_with(struct stage *s, const struct hf_store_methods *faulty)
{
    make_pool(s, (struct hf_pool_options){ .threads = 2 });
    add_kind(s, "quick", plain);
    real_methods = s->store->methods;
    s->store->methods = faulty;
    atomic_store(&answers_to_lose, 3);
    for (int i = 0; i < 60; i++)
        enqueue(s, "quick", (struct hf_job_spec){ 0 }, NULL);
    start(s);
    await_count(s, &s->told[HF_POOL_ENDED], 60);
    assert_int_equal(s->returned, 60);
    assert_int_equal(stats(s).done, 60);
    assert_int_equal(stats(s).lost, 0);
    assert_true(atomic_load(&answers_to_lose) <= 0);
    size_t left = 1;
    assert_int_equal(hf_pool_drain(s->pool, 0, 0, &left, &s->err), 0);
    assert_int_equal(left, 0);
    hf_pool_free(s->pool);
    s->pool = NULL;
    s->store->methods = real_methods;
}

/* The claim took its jobs: asked again it returns these and no others. */
static void jobs_of_a_claim_whose_answer_was_lost_run_once(void **state)
{
    struct stage *s = *state;
    struct hf_store_methods faulty = *s->store->methods;
    faulty.claim = failing_claim;
    run_sixty_with(s, &faulty);
}

/* The outcomes are written: the same close-outs again are answered as done. */
static void outcomes_whose_answer_was_lost_are_settled_again(void **state)
{
    struct stage *s = *state;
    struct hf_store_methods faulty = *s->store->methods;
    faulty.change = failing_change;
    run_sixty_with(s, &faulty);
}

static void a_job_may_be_completed_later_from_another_thread(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ .threads = 1, .ttl_ms = SHORT_TTL });
    add_kind(s, "async", lasting);
    start(s);
    enqueue(s, "async", (struct hf_job_spec){ 0 }, id);
    await_count(s, &s->started, 1);
    while (stats(s).renewals < 4) /* renewed though no thread runs it */
        assert_int_equal(hf_work_await(s->store, 20, &s->err), 0);
    assert_string_equal(look(s, id).status, "running");
    struct hf_job_end end = { .size = sizeof end,
                              .verdict = HF_JOB_DONE,
                              .summary = "at last" };
    assert_int_equal(hf_pool_complete(s->pool, id, "hf1.1.1.x", &end, &s->err),
                     HF_ELEASELOST);
    assert_int_equal(hf_pool_complete(s->pool, id, s->token, &end, &s->err), 0);
    assert_int_equal(hf_pool_complete(s->pool, id, s->token, &end, &s->err),
                     HF_ENOTFOUND);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    assert_string_equal(look(s, id).status, "done");
}

static void completing_later_can_fail_and_retry_too(void **state)
{
    struct stage *s = *state;
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "async", lasting);
    start(s);
    enqueue(s, "async", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->started, 1);
    while (stats(s).later == 0)
        assert_int_equal(hf_work_await(s->store, 5, &s->err), 0);
    struct hf_job_end end = { .size = sizeof end, .verdict = HF_EBUSY };
    assert_int_equal(hf_pool_complete(s->pool, s->id, s->token, &end, &s->err), 0);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    struct seen seen = look(s, s->id);
    assert_string_equal(seen.status, "retry_scheduled");
    assert_string_equal(seen.error_class, "busy");
}

/* T26, T1, T2 */
static void two_pools_run_each_job_once(void **state)
{
    struct stage *s = *state;
    struct hf_pool *other;
    struct hf_pool_options options = {
        .size = sizeof options, .owner = "other", .listener = on_event, .listener_user = s
    };
    make_pool(s, (struct hf_pool_options){ .owner = "one" });
    add_kind(s, "mail", plain);
    assert_int_equal(hf_pool_new(s->store, &options, &other, &s->err), 0);
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "mail", .run = plain, .user = s
    };
    assert_int_equal(hf_pool_add(other, &kind, &s->err), 0);
    start(s);
    assert_int_equal(hf_pool_start(other, &s->err), 0);
    for (int i = 0; i < 300; i++)
        enqueue(s, "mail", (struct hf_job_spec){ 0 }, NULL);
    await_count(s, &s->told[HF_POOL_ENDED], 300);
    hf_pool_free(other);
    assert_int_equal(s->returned, 300);
    assert_int_equal(s->told[HF_POOL_LOST], 0);
}

/* T14 */
static void falsy_payloads_come_through(void **state)
{
    struct stage *s = *state;
    static const char *const payloads[] = { "0", "false", "\"\"", "null" };
    for (size_t i = 0; i < 4; i++) {
        char id[64];
        struct hf_answer *answer;
        enqueue(s, "mail", (struct hf_job_spec){ .payload = payloads[i] }, id);
        assert_int_equal(hf_work_get(s->store, NULL, id, &answer, &s->err), 0);
        assert_string_equal(hf_answer_at(answer, 0)->work.payload, payloads[i]);
        assert_string_equal(hf_answer_at(answer, 0)->work.disposition, "rerunnable");
        hf_answer_free(answer);
    }
}

/* T11 */
static void a_dedup_key_allows_one_unfinished_job(void **state)
{
    struct stage *s = *state;
    char first[64], second[64], third[64];
    struct hf_job_spec job = { .dedup_key = "report:7" };
    enqueue(s, "report", job, first);
    enqueue(s, "report", job, second);
    assert_string_equal(first, second);
    change(s, (struct hf_change){ .verb = HF_VERB_CANCEL, .id = first, .reason = "x" });
    enqueue(s, "report", job, third);
    assert_string_not_equal(first, third);
}

static void a_debounced_job_is_due_after_the_last_call(void **state)
{
    struct stage *s = *state;
    char first[64], second[64];
    struct hf_job_spec job = { .dedup_key = "index:7", .debounce_ms = 60000 };
    enqueue(s, "index", job, first);
    job.debounce_ms = 3600000;
    enqueue(s, "index", job, second);
    assert_string_equal(first, second);
    struct hf_answer *answer;
    assert_int_equal(hf_work_get(s->store, NULL, first, &answer, &s->err), 0);
    const struct hf_work *work = &hf_answer_at(answer, 0)->work;
    assert_string_equal(work->gate, "due");
    assert_true(work->due_at - work->created_at >= 3600000);
    hf_answer_free(answer);
    job = (struct hf_job_spec){
        .size = sizeof job, .kind = "index", .priority = -1, .debounce_ms = 5
    };
    assert_int_equal(hf_job_enqueue(s->store, NULL, &job, &answer, &s->err), HF_EINVAL);
    assert_string_equal(s->err.field, "debounce_ms");
}

static void a_debounce_leaves_a_retry_its_time(void **state)
{
    struct stage *s = *state;
    char id[64], again[64];
    struct hf_answer *answer;
    struct hf_job_spec job = { .dedup_key = "index:7", .debounce_ms = 1 };
    struct hf_claim claim = { .size = sizeof claim, .owner = "w" };
    job.retry_policy = "{\"jitter\":\"none\",\"initial_backoff_ms\":60000}";
    enqueue(
        s, "index",
        (struct hf_job_spec){ .dedup_key = "index:7", .retry_policy = job.retry_policy },
        id);
    claim.id = id;
    assert_int_equal(hf_work_claim(s->store, NULL, &claim, &answer, &s->err), 0);
    change(s, (struct hf_change){ .verb = HF_VERB_FAIL,
                                  .id = id,
                                  .token = hf_answer_at(answer, 0)->token,
                                  .error_class = "transient_network" });
    hf_answer_free(answer);
    enqueue(s, "index", job, again);
    assert_string_equal(id, again);
    assert_int_equal(hf_work_get(s->store, NULL, id, &answer, &s->err), 0);
    const struct hf_work *work = &hf_answer_at(answer, 0)->work;
    assert_string_equal(work->status, "retry_scheduled");
    assert_true(work->next_retry_at - work->created_at >= 60000);
    hf_answer_free(answer);
}

/* The limit is the store's: both pools together run no more. */
static void a_limit_holds_over_all_pools(void **state)
{
    struct stage *s = *state;
    struct hf_pool *other;
    struct hf_limit limit = { .size = sizeof limit,
                              .name = "key:acme",
                              .max_running = 2 };
    struct hf_pool_options options = {
        .size = sizeof options, .owner = "other", .listener = on_event, .listener_user = s
    };
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "call", .run = counting, .user = s
    };
    assert_int_equal(hf_limit_set(s->store, NULL, &limit, &s->err), 0);
    make_pool(s, (struct hf_pool_options){ .owner = "one" });
    add_kind(s, "call", counting);
    assert_int_equal(hf_pool_new(s->store, &options, &other, &s->err), 0);
    assert_int_equal(hf_pool_add(other, &kind, &s->err), 0);
    for (int i = 0; i < 40; i++)
        enqueue(s, "call", (struct hf_job_spec){ .limit_key = "acme" }, NULL);
    start(s);
    assert_int_equal(hf_pool_start(other, &s->err), 0);
    await_count(s, &s->started, 2);
    bump(s, &s->open, 1);
    await_count(s, &s->told[HF_POOL_ENDED], 40);
    assert_int_equal(s->most_inside, 2);
    hf_pool_free(other);
}

static void the_code_of_a_kind_sets_its_policy(void **state)
{
    struct stage *s = *state;
    char id[64];
    struct hf_answer *answer;
    make_pool(s, (struct hf_pool_options){ 0 });
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "mail", .run = plain, .user = s, .max_attempts = 7
    };
    assert_int_equal(hf_pool_add(s->pool, &kind, &s->err), 0);
    enqueue(s, "mail", (struct hf_job_spec){ 0 }, id);
    assert_int_equal(hf_work_get(s->store, NULL, id, &answer, &s->err), 0);
    assert_int_equal(hf_answer_at(answer, 0)->work.max_attempts, 7);
    hf_answer_free(answer);
}

/* T29 by the design: what is wrong is an error, and nothing starts. */
static void bad_kinds_and_options_are_refused(void **state)
{
    struct stage *s = *state;
    struct hf_pool *pool = NULL;
    struct hf_pool_options bad = { .size = sizeof bad, .ttl_ms = 100 };
    assert_int_equal(hf_pool_new(s->store, &bad, &pool, &s->err), HF_EINVAL);
    assert_string_equal(s->err.field, "ttl_ms");
    bad = (struct hf_pool_options){ .size = sizeof bad, .threads = 5000 };
    assert_int_equal(hf_pool_new(s->store, &bad, &pool, &s->err), HF_ETOOBIG);
    make_pool(s, (struct hf_pool_options){ 0 });
    assert_int_equal(hf_pool_start(s->pool, &s->err), HF_EINVAL); /* no kind */
    struct hf_job_kind kind = {
        .size = sizeof kind, .name = "hf.own", .run = plain, .user = s
    };
    assert_int_equal(hf_pool_add(s->pool, &kind, &s->err), HF_EINVAL);
    assert_string_equal(s->err.field, "name");
    kind.name = "mail";
    kind.run = NULL;
    assert_int_equal(hf_pool_add(s->pool, &kind, &s->err), HF_EINVAL);
    assert_string_equal(s->err.field, "run");
    add_kind(s, "mail", plain);
    kind.run = plain;
    assert_int_equal(hf_pool_add(s->pool, &kind, &s->err), HF_EINVAL);
    struct hf_job_spec reserved = { .size = sizeof reserved,
                                    .kind = "hf.x",
                                    .priority = -1 };
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_job_enqueue(s->store, NULL, &reserved, &answer, &s->err),
                     HF_EINVAL);
    assert_string_equal(s->err.field, "kind");
}

static void a_result_that_cannot_be_stored_is_a_failure_that_says_so(void **state)
{
    struct stage *s = *state;
    char id[64];
    make_pool(s, (struct hf_pool_options){ 0 });
    add_kind(s, "async", lasting);
    start(s);
    enqueue(s, "async", (struct hf_job_spec){ .max_attempts = 1 }, id);
    await_count(s, &s->started, 1);
    struct hf_job_end end = { .size = sizeof end,
                              .verdict = HF_JOB_DONE,
                              .summary = "\xff" };
    while (hf_pool_complete(s->pool, id, s->token, &end, &s->err) != 0)
        assert_int_equal(hf_work_await(s->store, 5, &s->err), 0);
    await_count(s, &s->told[HF_POOL_ENDED], 1);
    struct seen seen = look(s, id);
    assert_string_equal(seen.status, "failed");
    assert_string_equal(seen.error_class, "invalid_result");
}

/* Every case on both engines. */
#define CASES(X)                                                                         \
    X(a_job_runs_once_and_is_done)                                                       \
    X(a_failure_waits_for_its_retry_and_the_last_one_is_final)                           \
    X(delays_are_fixed_or_double_as_the_job_asks)                                        \
    X(a_returned_code_is_the_class_that_the_policy_judges)                               \
    X(kinds_without_code_are_not_claimed)                                                \
    X(a_star_runs_every_kind)                                                            \
    X(a_job_longer_than_its_lease_is_not_stolen)                                         \
    X(a_cancelled_job_is_told_and_its_outcome_is_refused)                                \
    X(a_lost_lease_stops_the_job)                                                        \
    X(a_drain_lets_jobs_end_first)                                                       \
    X(a_drain_without_time_stops_and_hands_back)                                         \
    X(a_drain_gives_up_on_a_stubborn_job)                                                \
    X(a_drain_hands_back_what_was_not_started)                                           \
    X(concurrency_of_a_kind_holds)                                                       \
    X(a_burst_gets_every_thread)                                                         \
    X(a_job_that_stays_keeps_no_other_from_being_claimed)                                \
    X(jobs_of_a_claim_whose_answer_was_lost_run_once)                                    \
    X(outcomes_whose_answer_was_lost_are_settled_again)                                  \
    X(a_job_may_be_completed_later_from_another_thread)                                  \
    X(completing_later_can_fail_and_retry_too)                                           \
    X(a_renewal_that_fails_for_a_moment_costs_nothing)                                   \
    X(two_pools_run_each_job_once)                                                       \
    X(falsy_payloads_come_through)                                                       \
    X(a_dedup_key_allows_one_unfinished_job)                                             \
    X(a_debounce_leaves_a_retry_its_time)                                                \
    X(a_debounced_job_is_due_after_the_last_call)                                        \
    X(a_limit_holds_over_all_pools)                                                      \
    X(a_job_that_lets_its_unit_wait_is_not_lost)                                         \
    X(a_job_whose_close_rule_is_not_met_waits_for_a_person)                              \
    X(evidence_of_a_job_that_ends_later_counts)                                          \
    X(the_code_of_a_kind_sets_its_policy)                                                \
    X(bad_kinds_and_options_are_refused)                                                 \
    X(a_result_that_cannot_be_stored_is_a_failure_that_says_so)

int main(void)
{
    static struct pg_server server;
    struct pg_place place = { .server = &server, .base = server.url, .schema = "pool" };
    pg_server_start(&server);
    const struct CMUnitTest cases[] = {
#define X(name) cmocka_unit_test_setup_teardown(name, on_sqlite, teardown),
        CASES(X)
#undef X
#define X(name) { #name " (PostgreSQL)", name, on_postgres, teardown, &place },
            CASES(X)
#undef X
    };
    int failed = cmocka_run_group_tests_name("pool", cases, NULL, NULL);
    pg_server_stop(&server);
    return failed;
}
