/* See scenario.h. */
#include "support/scenario.h"

#include <holdfast/session.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRIES 12 /* of one call, while faults strike */
#define ROUNDS 60

enum { DONE_UNIT, WAITS, RETRIES, LAPSES, CANCELLED, AGAIN, EXTERNAL, LANE_1, LANE_2 };

static struct scenario *world;

/* ---- time and chance ----------------------------------------------------------------- */

static hf_ms wall_ms(void *user)
{
    return ((struct scenario *)user)->wall;
}

static hf_ms mono_ms(void *user)
{
    return ((struct scenario *)user)->mono;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user;
    (void)ms;
}

static int fill(void *user, void *out, size_t bytes)
{
    struct scenario *w = user;
    unsigned char *at = out;
    for (size_t i = 0; i < bytes; i++) {
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        at[i] = (unsigned char)(w->random >> 56);
    }
    return 0;
}

void scenario_begin(struct scenario *scenario)
{
    world = scenario;
    *world = (struct scenario){ .wall = 1800000000000, .mono = 5000000, .random = 7 };
}

const struct hf_clock *scenario_clock(void)
{
    static struct hf_clock clock;
    clock = (struct hf_clock){ world, wall_ms, mono_ms, wait_ms };
    return &clock;
}

const struct hf_random *scenario_random(void)
{
    static struct hf_random random;
    random = (struct hf_random){ world, fill };
    return &random;
}

/* ---- the calls ----------------------------------------------------------------------- */

static const char *const names[SCENARIO_UNITS] = { "done",     "waits",     "retries",
                                                   "lapses",   "cancelled", "again",
                                                   "external", "lane-1",    "lane-2" };

static const enum hf_status wanted[SCENARIO_UNITS] = {
    HF_STATUS_DONE, HF_STATUS_DONE,   HF_STATUS_DONE, HF_STATUS_DONE, HF_STATUS_CANCELLED,
    HF_STATUS_DONE, HF_STATUS_FAILED, HF_STATUS_DONE, HF_STATUS_DONE,
};

/* Transitions of each when it is all over; creation is one. */
static const int transitions[SCENARIO_UNITS] = { 3, 6, 6, 5, 2, 6, 2, 3, 3 };

/* What a unit's row says. */
struct seen {
    enum hf_status status;
    int64_t attempts;
    int64_t generation;
    bool gated;
    char id[40];
    char token[200];
};

static int take(int rc, struct hf_answer *answer, int unit, struct seen *ret_seen)
{
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    rc = item ? item->code : HF_ENOTFOUND;
    if (rc == 0 && item->work.status) {
        ret_seen->status = hf_status_of(item->work.status);
        ret_seen->attempts = item->work.attempt_count;
        ret_seen->generation = item->work.generation;
        ret_seen->gated = item->work.gate != NULL;
        (void)snprintf(ret_seen->id, sizeof(ret_seen->id), "%s", item->work.work_id);
        (void)snprintf(ret_seen->token, sizeof(ret_seen->token), "%s",
                       item->token ? item->token : "");
    }
    (void)unit;
    hf_answer_free(answer);
    return rc;
}

static int create(struct hf_store *store, int unit, struct seen *ret_seen)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec new = { .size = sizeof(new),
                                .source = HF_SOURCE_MANUAL,
                                .priority = -1,
                                .disposition = HF_DISPOSITION_RERUNNABLE,
                                .max_attempts = 3 };
    new.source_id = names[unit];
    new.retry_policy = "{\"jitter\":\"none\",\"initial_backoff_ms\":1000}";
    if (unit == EXTERNAL) {
        new.disposition = HF_DISPOSITION_EXTERNALLY_OWNED;
        new.ref = "outside";
    }
    if (unit == LANE_1 || unit == LANE_2)
        new.lane_key = "lane";
    struct hf_process_spec process = { .size = sizeof(process),
                                       .work = &new,
                                       .identity_kind = "test",
                                       .wake_session = "w" };
    int rc = unit == EXTERNAL ? hf_process_register(store, NULL, &process, &answer, NULL)
                              : hf_work_create(store, NULL, &new, 1, 0, &answer, NULL);
    return take(rc, answer, unit, ret_seen);
}

/* A process that wakes its session: by an event of its own, then by its end. */
static int tell(struct hf_store *store, const struct seen *seen)
{
    bool repeated = false;
    struct hf_process_tell step = { .size = sizeof(step),
                                    .what = HF_TELL_APPEND,
                                    .id = seen->id,
                                    .name = "step",
                                    .key = "k",
                                    .wake = true };
    return hf_process_tell(store, NULL, &step, &repeated, NULL);
}

static int claim(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_answer *answer = NULL;
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = "worker",
                              .incarnation = "life",
                              .id = seen->id,
                              .ttl_ms = 3000 };
    int rc = hf_work_claim(store, NULL, &claim, &answer, NULL);
    return take(rc, answer, unit, seen);
}

static int change(struct hf_store *store, int unit, struct hf_change *change,
                  struct seen *seen)
{
    struct hf_answer *answer = NULL;
    struct seen now = *seen;
    change->size = sizeof(*change);
    change->id = seen->id;
    int rc = hf_work_change(store, NULL, change, 1, 0, &answer, NULL);
    return take(rc, answer, unit, &now);
}

static int close_out(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_change c = { .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE };
    c.token = seen->token;
    return change(store, unit, &c, seen);
}

static int sweep(struct hf_store *store)
{
    struct hf_sweep_report report;
    return hf_work_sweep(store, NULL, 0, &report, NULL);
}

/* With a token: by its own lease, entered again. */
static int work_on(struct hf_store *store, int unit, struct seen *seen)
{
    struct hf_change wait = { .verb = HF_VERB_WAIT,
                              .status = HF_STATUS_WAITING_USER,
                              .ref = "word" };
    struct hf_change failed = { .verb = HF_VERB_FAIL,
                                .error_class = "transient_network" };
    struct hf_change renew = { .verb = HF_VERB_RENEW };
    int rc = claim(store, unit, seen);
    if (rc)
        return rc;
    wait.token = failed.token = renew.token = seen->token;
    if (unit == WAITS && seen->attempts == 1)
        return change(store, unit, &wait, seen);
    if (unit == RETRIES && seen->attempts == 1)
        return change(store, unit, &failed, seen);
    if (unit == LAPSES && seen->attempts == 1) {
        world->mono += 3001;
        return sweep(store);
    }
    rc = change(store, unit, &renew, seen);
    return rc ? rc : close_out(store, unit, seen);
}

/* The next call for a unit; 1 when there is none. */
static int step(struct hf_store *store, int unit, struct seen *ret_seen)
{
    struct hf_change resume = { .verb = HF_VERB_RESUME, .payload = "1" };
    struct hf_change cancel = { .verb = HF_VERB_CANCEL, .reason = "no" };
    struct hf_change requeue = { .verb = HF_VERB_REQUEUE, .reason = "again" };
    struct hf_change outside = { .verb = HF_VERB_CLOSE_OUT,
                                 .status = HF_STATUS_FAILED,
                                 .authority = "engine" };
    int rc = create(store, unit, ret_seen);
    if (rc)
        return rc;
    if (ret_seen->status == HF_STATUS_DONE && unit == AGAIN && ret_seen->generation == 0)
        return change(store, unit, &requeue, ret_seen);
    if (hf_status_terminal(ret_seen->status))
        return 1;
    if (unit == CANCELLED)
        return change(store, unit, &cancel, ret_seen);
    if (unit == EXTERNAL) {
        rc = tell(store, ret_seen);
        return rc ? rc : change(store, unit, &outside, ret_seen);
    }
    if (ret_seen->status == HF_STATUS_WAITING_USER)
        return change(store, unit, &resume, ret_seen);
    if (ret_seen->status == HF_STATUS_RETRY_SCHEDULED) {
        world->wall += 1001;
        return sweep(store);
    }
    if (ret_seen->gated)
        return 1; /* the lane's other unit first */
    return work_on(store, unit, ret_seen);
}

/* Transitions in the trail of a unit, and whether each begins where the one before ended. */
static int trail(struct hf_store *store, const char *id)
{
    struct hf_events *events = NULL;
    const char *at = NULL;
    int count = 0;
    if (hf_work_events(store, NULL, id, 0, 1000, &events, NULL))
        return -1;
    for (size_t i = 0; i < hf_events_count(events); i++) {
        const struct hf_event *e = hf_events_at(events, i);
        if (!e->to_status ||
            (i > 0 && e->event_id == hf_events_at(events, i - 1)->event_id))
            continue;
        bool follows = at ? e->from_status && strcmp(at, e->from_status) == 0
                          : e->from_status == NULL;
        assert_true(follows);
        at = e->to_status;
        count++;
    }
    if (count == 0)
        assert_true(false);
    hf_events_free(events);
    return count;
}

void scenario_check_acked(struct hf_store *store)
{
    struct seen seen;
    for (int unit = 0; unit < SCENARIO_UNITS; unit++) {
        if (world->acked[unit] == 0)
            continue;
        int rc = HF_ENOMEM;
        for (int i = 0; i < TRIES && rc; i++)
            rc = create(store, unit, &seen);
        assert_int_equal(rc, 0);
        assert_true(trail(store, seen.id) >= world->acked[unit]);
    }
}

bool scenario_passes(int rc)
{
    return rc == HF_EUNREACHABLE || rc == HF_ESTOREIO || rc == HF_EFULL ||
           rc == HF_EUNCERTAIN || rc == HF_ENOMEM || rc == HF_EBUSY;
}

static int session(struct hf_store *store)
{
    struct hf_lease_info info;
    struct hf_lease_claim take_it = { .size = sizeof(take_it),
                                      .key = "s",
                                      .owner = "worker",
                                      .incarnation = "life",
                                      .nonce = "n" };
    struct hf_session_answer *made = NULL;
    struct hf_session_spec session = { .size = sizeof(session),
                                       .session_id = "s",
                                       .agent = "a" };
    int rc = hf_session_create(store, NULL, &session, &made, NULL);
    hf_session_answer_free(made);
    if (rc == 0)
        rc = hf_lease_take(store, &take_it, &info, NULL);
    if (rc == 0)
        rc = hf_lease_renew(store, HF_LEASED_SESSION, "s", info.token, &info, NULL);
    if (rc == 0)
        rc = hf_lease_release(store, HF_LEASED_SESSION, "s", info.token, NULL);
    return rc;
}

void scenario_part(int64_t *ret_part, int64_t *ret_parts)
{
    const char *text = getenv("HF_CRASH_PART");
    char *slash = NULL, *end = NULL;
    *ret_part = *ret_parts = 1;
    if (!text)
        return;
    *ret_part = strtol(text, &slash, 10);
    *ret_parts = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
    if (*ret_part < 1 || *ret_part > *ret_parts || *end)
        fail_msg("HF_CRASH_PART is K/N, from 1/N to N/N");
}

int scenario_play(struct hf_store *store)
{
    int left = SCENARIO_UNITS;
    int rc = session(store);
    for (int round = 0; rc == 0 && left > 0 && round < ROUNDS; round++) {
        left = 0;
        for (int unit = 0; unit < SCENARIO_UNITS; unit++) {
            struct seen seen = { 0 };
            rc = step(store, unit, &seen);
            if (rc == 1)
                left += !hf_status_terminal(seen.status);
            else if (rc)
                return rc;
            else
                left++;
            if (rc == 0 && !world->unwatched)
                world->acked[unit] = trail(store, seen.id);
            rc = 0;
        }
    }
    if (rc == 0)
        assert_int_equal(left, 0);
    return rc;
}

static void found(void *user, const struct hf_finding *finding)
{
    (void)user;
    if (finding->bad)
        print_error("%s: %s\n", finding->what, finding->detail);
    assert_false(finding->bad);
}

void scenario_check_end(struct hf_store *store)
{
    struct seen seen;
    for (int unit = 0; unit < SCENARIO_UNITS; unit++) {
        assert_int_equal(create(store, unit, &seen), 0);
        assert_int_equal(seen.status, wanted[unit]);
        assert_int_equal(trail(store, seen.id), transitions[unit]);
    }
    struct hf_answer *wakes = NULL; /* one of the event, one of the end */
    struct hf_filter filter = { .size = sizeof(filter), .queue = "session:w" };
    assert_int_equal(hf_work_list(store, NULL, &filter, &wakes, NULL), 0);
    assert_int_equal(hf_answer_count(wakes), 2);
    hf_answer_free(wakes);
    assert_int_equal(hf_store_check(store, found, NULL, NULL), 0);
}
