/* The wire is cut at every protocol message of every verb's exchange, in both directions,
 * before and after the message got through. Whatever the caller is told must be true: success
 * means done once, "nothing was written" means that, and an outcome that is not known is said
 * to be; the same call again then finishes it. A second handle that goes past the proxy is the
 * judge. And the wire is held up until the caller's lease has gone to another.
 *
 * By itself it tries the verbs that represent the others: a create, a claim, a settle with a
 * token, a change with an operation id. `test_proc_wire all` tries every verb (two minutes),
 * `test_proc_wire NAME` those whose names contain it. */
#include "support/unit.h"

#include <holdfast/lease.h>
#include <holdfast/store.h>
#include <holdfast/work.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cuts.h"
#include "support/pg.h"
#include "support/units.h"
#include "support/wire.h"

#define PORT 5499
#define CROWD 8

static struct cut_rig rig;
static struct hf_store *cut;   /* through the proxy */
static struct hf_store *judge; /* past it */
static PGconn *outside;        /* plain SQL */
static const char *wanted_verb;

/* One try: what was prepared, and what to call. */
struct
try {
    int number;
    char source[32];
    char operation[32];
    char id[40];
    char token[200];
    char nonce[32];
    char queue[32];
    char crowd[CROWD][40]; /* ids of many at once, and their tokens */
    char tokens[CROWD][200];
};

static struct hf_caller caller(const struct try *t)
{
    return (struct hf_caller){ .size = sizeof(struct hf_caller),
                               .operation_id = t->operation };
}

/* ---- preparing ----------------------------------------------------------------------- */

static struct hf_work_spec request(const struct try *t)
{
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = t->source,
                                  .queue = t->queue,
                                  .disposition = HF_DISPOSITION_RERUNNABLE,
                                  .priority = -1 };
}

static void make(struct try *t)
{
    struct hf_work_spec new = request(t);
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_create(judge, NULL, &new, 1, HF_ALL_OR_NONE, &answer, &err))
        fail_msg("preparing: %s", err.message);
    (void)snprintf(t->id, sizeof(t->id), "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
}

static void hold(struct try *t)
{
    struct hf_claim claim = { .size = sizeof(claim), .owner = "w", .queue = t->queue };
    struct hf_answer *answer = NULL;
    make(t);
    assert_int_equal(hf_work_claim(judge, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), 1);
    (void)snprintf(t->token, sizeof(t->token), "%s", hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
}

/* So many are held; the try's own unit is the first of them. */
static void hold_many(struct try *t)
{
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .queue = t->queue, .limit = CROWD
    };
    struct hf_answer *answer = NULL;
    char source[32];
    (void)snprintf(source, sizeof(source), "%s", t->source);
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(t->source, sizeof(t->source), "%.20s-%d", source, i);
        make(t);
    }
    (void)snprintf(t->source, sizeof(t->source), "%s", source);
    assert_int_equal(hf_work_claim(judge, NULL, &claim, &answer, NULL), 0);
    assert_int_equal(hf_answer_count(answer), CROWD);
    for (size_t i = 0; i < CROWD; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        (void)snprintf(t->crowd[i], sizeof(t->crowd[i]), "%s", item->work.work_id);
        (void)snprintf(t->tokens[i], sizeof(t->tokens[i]), "%s", item->token);
    }
    (void)snprintf(t->id, sizeof(t->id), "%s", t->crowd[0]);
    hf_answer_free(answer);
}

static int change(struct hf_store *store, struct try *t, struct hf_change wanted)
{
    struct hf_answer *answer = NULL;
    struct hf_caller who = caller(t);
    bool by_token = wanted.verb != HF_VERB_CANCEL && wanted.verb != HF_VERB_REQUEUE &&
                    wanted.verb != HF_VERB_RESUME;
    wanted.size = sizeof(wanted);
    wanted.id = t->id;
    wanted.token = by_token ? t->token : NULL;
    int rc = hf_work_change(store,
                            by_token && wanted.verb != HF_VERB_APPEND ? NULL : &who,
                            &wanted, 1, HF_ALL_OR_NONE, &answer, NULL);
    hf_answer_free(answer);
    return rc;
}

static void finish(struct try *t)
{
    hold(t);
    assert_int_equal(
        change(judge, t,
               (struct hf_change){ .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE }),
        0);
}

static void let_wait(struct try *t)
{
    hold(t);
    assert_int_equal(change(judge, t,
                            (struct hf_change){ .verb = HF_VERB_WAIT,
                                                .status = HF_STATUS_WAITING_USER,
                                                .ref = t->source }),
                     0);
}

static void nothing(struct try *t)
{
    (void)t;
}

/* ---- calling ------------------------------------------------------------------------- */

static int do_create(struct try *t)
{
    struct hf_work_spec new = request(t);
    struct hf_answer *answer = NULL;
    int rc = hf_work_create(cut, NULL, &new, 1, HF_ALL_OR_NONE, &answer, NULL);
    if (rc == 0)
        (void)snprintf(t->id, sizeof(t->id), "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return rc;
}

static int do_create_many(struct try *t)
{
    struct hf_work_spec news[3];
    char ids[3][40];
    struct hf_answer *answer = NULL;
    struct hf_caller who = caller(t);
    for (size_t i = 0; i < 3; i++) {
        news[i] = request(t);
        (void)snprintf(ids[i], sizeof(ids[i]), "%s-%zu", t->source, i);
        news[i].source_id = ids[i];
    }
    int rc = hf_work_create(cut, &who, news, 3, HF_ALL_OR_NONE, &answer, NULL);
    if (rc == 0)
        (void)snprintf(t->id, sizeof(t->id), "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return rc;
}

static int claim(struct try *t, const char *id, size_t limit)
{
    struct hf_claim wanted = { .size = sizeof(wanted),
                               .owner = "w",
                               .incarnation = "boot",
                               .nonce = t->nonce,
                               .id = id,
                               .limit = limit,
                               .queue = t->queue };
    struct hf_answer *answer = NULL;
    int rc = hf_work_claim(cut, NULL, &wanted, &answer, NULL);
    if (rc == 0 && hf_answer_count(answer) != 1)
        rc = HF_ENOTFOUND;
    if (rc == 0 && !hf_answer_at(answer, 0)->token)
        fail_msg("a claim returned no token");
    if (rc == 0)
        (void)snprintf(t->token, sizeof(t->token), "%s", hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
    return rc;
}

static int do_claim(struct try *t)
{
    return claim(t, NULL, 1);
}

/* By the statement for ten. */
static int do_claim_many(struct try *t)
{
    return claim(t, NULL, 10);
}

static int do_claim_by_id(struct try *t)
{
    return claim(t, t->id, 1);
}

static int do_renew(struct try *t)
{
    return change(cut, t, (struct hf_change){ .verb = HF_VERB_RENEW });
}

static int do_touch(struct try *t)
{
    return change(cut, t, (struct hf_change){ .verb = HF_VERB_TOUCH });
}

static int do_append(struct try *t)
{
    return change(
        cut, t,
        (struct hf_change){ .verb = HF_VERB_APPEND, .type = "note", .payload = "1" });
}

static int do_wait(struct try *t)
{
    return change(cut, t,
                  (struct hf_change){ .verb = HF_VERB_WAIT,
                                      .status = HF_STATUS_WAITING_USER,
                                      .ref = t->source });
}

static int do_resume(struct try *t)
{
    return change(cut, t, (struct hf_change){ .verb = HF_VERB_RESUME });
}

static int do_close_out(struct try *t)
{
    return change(
        cut, t,
        (struct hf_change){ .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE });
}

static int do_close_many(struct try *t)
{
    struct hf_change ends[CROWD];
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < CROWD; i++)
        ends[i] = (struct hf_change){ .size = sizeof(ends[i]),
                                      .verb = HF_VERB_CLOSE_OUT,
                                      .status = HF_STATUS_DONE,
                                      .id = t->crowd[i],
                                      .token = t->tokens[i] };
    int rc = hf_work_change(cut, NULL, ends, CROWD, HF_ALL_OR_NONE, &answer, NULL);
    hf_answer_free(answer);
    return rc;
}

static int do_fail(struct try *t)
{
    return change(
        cut, t, (struct hf_change){ .verb = HF_VERB_FAIL, .error_class = "validation" });
}

static int do_hand_back(struct try *t)
{
    return change(cut, t, (struct hf_change){ .verb = HF_VERB_HAND_BACK });
}

static int do_cancel(struct try *t)
{
    return change(cut, t,
                  (struct hf_change){ .verb = HF_VERB_CANCEL, .reason = "not wanted" });
}

static int do_requeue(struct try *t)
{
    return change(cut, t,
                  (struct hf_change){ .verb = HF_VERB_REQUEUE, .reason = "once more" });
}

static int do_lease(struct try *t)
{
    struct hf_lease_claim wanted = { .size = sizeof(wanted),
                                     .leased = HF_LEASED_SESSION,
                                     .key = t->source,
                                     .owner = "w",
                                     .incarnation = "boot",
                                     .nonce = t->nonce };
    struct hf_lease_info info;
    make_session(judge, t->source);
    int rc = hf_lease_take(cut, &wanted, &info, NULL);
    if (rc == 0 && info.fence != 1)
        fail_msg("a lease was taken twice: fence %lld", (long long)info.fence);
    return rc;
}

/* ---- what must hold after it ------------------------------------------------------------ */

struct verb {
    const char *name;
    void (*prepare)(struct try *t);
    int (*call)(struct try *t);
    const char *mark; /* the event that it writes, once */
    int64_t rows;     /* that a create makes */
    bool brief;       /* one of those that represent the others */
};

/* clang-format off */
static const struct verb verbs[] = {
    { "create",      nothing,  do_create,      NULL,                               1, true },
    { "create_many", nothing,  do_create_many, NULL,                               3, false },
    { "claim",       make,     do_claim,       "to_status = 'running'",            0, true },
    { "claim_many",  make,     do_claim_many,  "to_status = 'running'",            0, false },
    { "claim_by_id", make,     do_claim_by_id, "to_status = 'running'",            0, false },
    { "renew",       hold,     do_renew,       NULL,                               0, false },
    { "touch",       hold,     do_touch,       NULL,                               0, false },
    { "append",      hold,     do_append,      "event_type = 'note'",              0, false },
    { "wait",        hold,     do_wait,        "to_status = 'waiting_user'",       0, false },
    { "resume",      let_wait, do_resume,      "from_status = 'waiting_user'",     0, false },
    { "close_out",   hold,     do_close_out,   "to_status = 'done'",               0, true },
    { "close_many",  hold_many, do_close_many, "to_status = 'done'",               0, false },
    { "fail",        hold,     do_fail,        "to_status = 'failed'",             0, false },
    { "hand_back",   hold,     do_hand_back,   "from_status = 'running'",          0, false },
    { "cancel",      make,     do_cancel,      "to_status = 'cancelled'",          0, false },
    { "requeue",     finish,   do_requeue,     "from_status = 'done'",             0, true },
    { "lease_take",  nothing,  do_lease,       NULL,                               0, false },
};
/* clang-format on */

static int64_t number_of(const char *sql)
{
    PGresult *result = PQexec(outside, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(outside));
    int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

/* How often the verb happened, by plain SQL past all code of ours; -1: it leaves nothing that
 * could be counted. */
static int64_t times(const struct verb *verb, const struct try *t)
{
    char sql[400];
    if (verb->rows)
        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM wire.runtime_work WHERE queue = '%s'",
                       t->queue);
    else if (verb->mark)
        (void)snprintf(
            sql, sizeof(sql),
            "SELECT count(*) FROM wire.runtime_work_event WHERE work_id = '%s' "
            "AND %s",
            t->id, verb->mark);
    return verb->rows || verb->mark ? number_of(sql) : -1;
}

/* A verb and the try of it that is under way. */
struct attempt {
    const struct verb *verb;
    struct try t;
};

static struct try named_try(int number, const char *prefix)
{
    struct try t = { .number = number };
    (void)snprintf(t.source, sizeof(t.source), "%ss%d", prefix, number);
    (void)snprintf(t.operation, sizeof(t.operation), "%sop%d", prefix, number);
    (void)snprintf(t.nonce, sizeof(t.nonce), "%sn%d", prefix, number);
    (void)snprintf(t.queue, sizeof(t.queue), "%sq%d", prefix, number);
    return t;
}

static void prepare_attempt(void *user, int number)
{
    struct attempt *attempt = user;
    attempt->t = named_try(number, "");
    attempt->verb->prepare(&attempt->t);
}

static int call_attempt(void *user)
{
    struct attempt *attempt = user;
    return attempt->verb->call(&attempt->t);
}

static int64_t times_attempt(void *user)
{
    struct attempt *attempt = user;
    return times(attempt->verb, &attempt->t);
}

static void every_message_of_every_verb_can_be_the_last(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        if (wanted_verb
                ? strcmp(wanted_verb, "all") != 0 && !strstr(verbs[v].name, wanted_verb)
                : !verbs[v].brief)
            continue;
        struct attempt attempt = { .verb = &verbs[v] };
        cut_everywhere(rig.proxy,
                       &(struct cut_case){ .name = verbs[v].name,
                                           .prepare = prepare_attempt,
                                           .call = call_attempt,
                                           .times = times_attempt,
                                           .once = verbs[v].rows ? verbs[v].rows : 1 },
                       &attempt);
    }
}

/* ---- paused past the lease ----------------------------------------------------------------
 * The caller is held up on its way to the server, or before it hears the answer, until its
 * lease has lapsed and another has taken the unit. `late` is that other: its clock is a day
 * ahead, so no process waits. */

static struct hf_store *late;
static const struct verb *paused_verb;
static struct try paused_try;

static void *call_paused(void *user)
{
    int *rc = user;
    *rc = paused_verb->call(&paused_try);
    return NULL;
}

/* Takes the unit over; false where it is none to take. */
static bool taken_over(const struct try *t, char token[200])
{
    struct hf_claim wanted = { .size = sizeof(wanted),
                               .owner = "late",
                               .queue = t->queue };
    struct hf_sweep_report report;
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_sweep(late, NULL, 1000, &report, &err) ||
        hf_work_claim(late, NULL, &wanted, &answer, &err))
        fail_msg("%s: taking over: %s", paused_verb->name, err.message);
    bool taken = hf_answer_count(answer) == 1;
    if (taken)
        (void)snprintf(token, 200, "%s", hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
    return taken;
}

/* No fence falls along the trail, and each status follows from the one before. */
static void check_trail(const struct try *t, const char *when)
{
    char sql[700];
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM (SELECT fence, from_status, lag(fence) OVER trail AS "
        "fence_before,"
        " lag(to_status) OVER trail AS status_before FROM wire.runtime_work_event"
        " WHERE work_id = '%s' AND part = 0 AND to_status IS NOT NULL"
        " WINDOW trail AS (ORDER BY event_id)) AS e"
        " WHERE fence < fence_before OR from_status IS DISTINCT FROM status_before",
        t->id);
    if (number_of(sql) != 0)
        fail_msg("%s, paused %s: the trail is no chain", paused_verb->name, when);
}

static void finish_late(const struct try *t, char token[200], const char *when)
{
    struct try over = *t;
    memcpy(over.token, token, sizeof(over.token));
    int rc = change(
        late, &over,
        (struct hf_change){ .verb = HF_VERB_CLOSE_OUT, .status = HF_STATUS_DONE });
    if (rc)
        fail_msg("%s, paused %s: the new holder cannot finish: %s", paused_verb->name,
                 when, hf_err_wire(rc));
}

/* The verb, held up at the n-th message of that kind while another takes over. */
static int paused(const struct verb *verb, enum wire_way way, uint32_t n, bool *ret_taken,
                  char token[200])
{
    static int number;
    pthread_t thread;
    int rc = 0;
    number++;
    paused_verb = verb;
    paused_try = named_try(number, "p");
    verb->prepare(&paused_try);
    struct try before = paused_try;
    wire_proxy_arm(rig.proxy, n, WIRE_HOLD, way);
    assert_int_equal(pthread_create(&thread, NULL, call_paused, &rc), 0);
    if (!wire_proxy_await(rig.proxy))
        fail_msg("%s: nothing passed", verb->name);
    *ret_taken = taken_over(&before, token);
    (void)wire_proxy_disarm(rig.proxy);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return rc;
}

static bool by_holder(const struct verb *verb)
{
    return verb->prepare == hold;
}

static void a_holder_paused_past_its_lease_is_refused_in_every_verb(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        char token[200];
        bool taken = false;
        if (!by_holder(&verbs[v]))
            continue;
        int rc = paused(&verbs[v], WIRE_TO_SERVER, 1, &taken, token);
        if (!taken || rc != HF_ELEASELOST)
            fail_msg("%s: paused past its lease it was told %s", verbs[v].name,
                     rc ? hf_err_wire(rc) : "done");
        check_trail(&paused_try, "before");
        finish_late(&paused_try, token, "before");
        tried++;
    }
    assert_int_equal(tried, 7);
}

/* What was done in time stays done, though its caller hears of it late. */
static void a_holder_that_hears_late_harms_nobody(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        char token[200];
        bool taken = false;
        if (!by_holder(&verbs[v]))
            continue;
        int rc = paused(&verbs[v], WIRE_READY, 1, &taken, token);
        if (rc && rc != HF_ELEASELOST)
            fail_msg("%s, heard late: %s", verbs[v].name, hf_err_wire(rc));
        check_trail(&paused_try, "after");
        if (taken)
            finish_late(&paused_try, token, "after");
        check_trail(&paused_try, "after");
    }
}

/* The claim, held up when the server has answered it, while another takes over. An exchange of
 * another thread, such as a ring, may pass first: then it is held up before its write, finds
 * another's unit, and is tried again. */
static void claim_answered_late(const struct verb *verb, char token[200])
{
    bool taken = false;
    uint32_t ready = verb->call == do_claim_by_id ? 2 : 1; /* it reads before it writes */
    int rc = HF_EHELD;
    for (int i = 0; rc == HF_EHELD && i < 3; i++) {
        rc = paused(verb, WIRE_READY, ready, &taken, token);
        assert_true(taken);
        if (rc)
            finish_late(&paused_try, token, "before");
    }
    assert_int_equal(rc, 0);
}

/* A claim that the server gets too late finds another's unit; one whose answer comes too late
 * returns a token that is worth nothing. */
static void a_claim_paused_past_its_lease_is_none(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        char token[200];
        bool taken = false;
        if (verbs[v].call != do_claim && verbs[v].call != do_claim_by_id)
            continue;
        int rc = paused(&verbs[v], WIRE_TO_SERVER, 1, &taken, token);
        assert_true(taken);
        if (rc != HF_ENOTFOUND && rc != HF_EHELD)
            fail_msg("%s, paused before: %s", verbs[v].name, hf_err_wire(rc));
        finish_late(&paused_try, token, "before");

        claim_answered_late(&verbs[v], token);
        assert_int_equal(change(cut, &paused_try,
                                (struct hf_change){ .verb = HF_VERB_CLOSE_OUT,
                                                    .status = HF_STATUS_DONE }),
                         HF_ELEASELOST);
        finish_late(&paused_try, token, "after");
        check_trail(&paused_try, "after");
    }
}

static void a_session_paused_past_its_lease_is_refused(void **state)
{
    (void)state;
    struct hf_lease_claim wanted = {
        .size = sizeof(wanted), .leased = HF_LEASED_SESSION, .key = "paused", .owner = "w"
    };
    struct hf_lease_claim other = wanted;
    struct hf_lease_info mine, theirs, again;
    other.owner = "late";
    make_session(judge, "paused");
    assert_int_equal(hf_lease_take(cut, &wanted, &mine, NULL), 0);
    assert_int_equal(hf_lease_take(late, &other, &theirs, NULL), 0);
    assert_int_equal(theirs.fence, mine.fence + 1);
    assert_int_equal(
        hf_lease_renew(cut, HF_LEASED_SESSION, "paused", mine.token, &again, NULL),
        HF_ELEASELOST);
    assert_int_equal(hf_lease_release(cut, HF_LEASED_SESSION, "paused", mine.token, NULL),
                     HF_ELEASELOST);
    assert_int_equal(
        hf_lease_renew(late, HF_LEASED_SESSION, "paused", theirs.token, &again, NULL), 0);
}

static int setup(void **state)
{
    (void)state;
    cut_rig_start(&rig, "wire", PORT);
    cut = rig.cut;
    judge = rig.judge;
    late = rig.late;
    outside = rig.outside;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cut_rig_stop(&rig);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_of_every_verb_can_be_the_last),
        cmocka_unit_test(a_holder_paused_past_its_lease_is_refused_in_every_verb),
        cmocka_unit_test(a_holder_that_hears_late_harms_nobody),
        cmocka_unit_test(a_claim_paused_past_its_lease_is_none),
        cmocka_unit_test(a_session_paused_past_its_lease_is_refused),
    };
    wanted_verb = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, setup, teardown);
}
