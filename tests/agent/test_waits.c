/* Turns that wait, on real stores and with real processes: only rows are kept between them.
 * Workers die at store calls, answers come from other processes, and each is told the same. */
#include "support/unit.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/actor.h"
#include "support/mortal.h"
#include "support/pg.h"

#define WAITS 10
#define ANSWERERS 4
#define ANSWERS (ANSWERERS * 2 * WAITS)

/* In memory that children share. */
static struct world {
    struct mortal_plan death;
    hf_ms offset; /* of the store's clock */
    atomic_int performed[WAITS];
    sem_t answers; /* one for each answer that may be sent */
    atomic_int answered;
    char key[HF_WAIT_KEY_TEXT]; /* that a deferred call took */
    int64_t calls;              /* store calls of the last worker, until its event */
    enum hf_status status;      /* of the turn's end */
    struct {
        bool accepted;
        char outcome[16];
    } told[ANSWERERS][2][WAITS];
    char transcript[65536];
    char text[256]; /* what a child has to say */
    int64_t number;
} * world;

static struct pg_server server;
static char lite_path[128];
static bool on_postgres;
static int sessions;
static char session[16];
static struct hf_err err;

static bool on_system_clock;
static bool immortal; /* the next children, while others die */

static struct hf_store *open_store(void)
{
    static struct mortal_plan never;
    char url[400];
    return actor_store(
        on_postgres ? pg_server_schema(server.url, "waits", url) : lite_path,
        immortal ? &never : &world->death, on_system_clock ? NULL : &world->offset);
}

/* ---- children -------------------------------------------------------------------------- */

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "child: %s\n", err.message);
    _exit(3);
}

static pid_t spawn(void (*run)(struct hf_store *store, int number), int number)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct hf_store *store = open_store();
        run(store, number);
        hf_store_close(store);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Whether it ended by itself; false: it was killed. */
static bool reap(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return !WIFSIGNALED(status);
}

static bool count_reads = true;

static void in_child(void (*run)(struct hf_store *store, int number), int number)
{
    world->death = (struct mortal_plan){ .reads_too = count_reads };
    assert_true(reap(spawn(run, number)));
}

/* ---- the agent ------------------------------------------------------------------------- */

static const char *const ten[] = {
    "call buy {\"n\":0}; buy {\"n\":1}; buy {\"n\":2}; buy "
    "{\"n\":3}; buy {\"n\":4}; buy {\"n\":5}; buy {\"n\":6}; "
    "buy {\"n\":7}; buy {\"n\":8}; buy {\"n\":9}",
    "done"
};
static const char *const one[] = { "call buy {\"n\":1}", "done", "done" };
static const char *const free_of_approval[] = { "call put {\"n\":1}", "done" };
static const char *const deferring[] = { "call later {\"n\":1}", "done" };
static const char *const shipping[] = { "call ship {\"n\":1}", "done" };
static const char *const hurried[] = { "call buy {\"n\":1}; urgent {\"n\":2}", "done" };
static const char *const flaky[] = { "call flaky {\"n\":1}", "done" };
static const char *const urgent[] = { "call urgent {\"n\":1}", "done" };
static const char *const silent[] = { "silence" };
static const char *const *script;

static int number_of(struct hf_invocation *call)
{
    struct hf_span args = hf_invocation_args(call);
    const char *text = args.at; /* {"n":N} */
    return args.len > 5 ? text[5] - '0' : 0;
}

static void perform(void *user, struct hf_invocation *call)
{
    (void)user;
    atomic_fetch_add(&world->performed[number_of(call)], 1);
    if (hf_invocation_value(call, hf_invocation_args(call)))
        _exit(3);
}

static void perform_later(void *user, struct hf_invocation *call)
{
    (void)user;
    atomic_fetch_add(&world->performed[number_of(call)], 1);
    must(hf_invocation_wait_key(call, world->key, &err));
    must(hf_invocation_defer(call, NULL, NULL));
}

/* Fails at first, and wants to be tried again a while later. */
static void perform_flaky(void *user, struct hf_invocation *call)
{
    struct hf_failure failure = { .code = "io", .retry = HF_RETRY_SAFE, .after_ms = 300 };
    if (atomic_load(&world->performed[number_of(call)]) > 0) {
        perform(user, call);
        return;
    }
    atomic_fetch_add(&world->performed[number_of(call)], 1);
    must(hf_invocation_fail(call, &failure));
}

static void on_event(const struct hf_worker_event *event)
{
    if (event->kind != HF_WORKER_TURN_ENDED && event->kind != HF_WORKER_AWAY)
        return;
    world->calls = world->death.calls - world->death.renewals;
    world->status = event->status;
}

static void open_actor(struct actor *actor, struct hf_store *store)
{
    static const struct hf_tool_wait_terms at_once = {
        .within_ms = 1000, .at_deadline = HF_AT_DEADLINE_FAIL_TURN
    };
    struct hf_tool tool = { .size = sizeof(tool), .recovery = HF_RECOVERY_KEYED };
    tool.schema = ACTOR_TEXT("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                             "\"integer\"}}}");
    actor_open(actor, store, script);
    tool.name = "put";
    tool.run = perform;
    actor_add(actor, &tool);
    tool.name = "later";
    tool.run = perform_later;
    actor_add(actor, &tool);
    tool.name = "ship";
    tool.recovery = HF_RECOVERY_ASK;
    actor_add(actor, &tool);
    tool.recovery = HF_RECOVERY_KEYED;
    tool.name = "flaky";
    tool.run = perform_flaky;
    actor_add(actor, &tool);
    tool.run = perform;
    tool.name = "buy";
    tool.approval.rule = "always";
    actor_add(actor, &tool);
    tool.name = "urgent";
    tool.approval.terms = at_once;
    actor_add(actor, &tool);
    actor->on_event = on_event;
    actor->config.pid = getpid();
}

/* A worker until its turn has ended or is put away. */
static void work(struct hf_store *store, int number)
{
    struct actor actor;
    open_actor(&actor, store);
    if (number > 0) {
        actor.config.away_ms = number;
        actor.config.ttl_ms = 30000;
    }
    actor_start(&actor);
    while (actor.heard[HF_WORKER_TURN_ENDED] + actor.heard[HF_WORKER_AWAY] == 0)
        (void)hf_loop_step(actor.loop, -1);
    actor_close(&actor);
}

/* A worker until its turn has ended, however often it puts it away; that number. */
static void work_to_the_end(struct hf_store *store, int number)
{
    struct actor actor;
    open_actor(&actor, store);
    actor.config.away_ms = number;
    actor.config.ttl_ms = 30000;
    actor_start(&actor);
    actor_until(&actor, HF_WORKER_TURN_ENDED, 1);
    world->number = actor.heard[HF_WORKER_AWAY];
    actor_close(&actor);
}

static void send_hi(struct hf_store *store, int number)
{
    (void)number;
    actor_send(store, session, "hi");
}

/* A fresh session with one message, and no worker. */
static void begin(const char *const *lines)
{
    script = lines;
    snprintf(session, sizeof(session), "w%d", sessions++);
    memset(world, 0, sizeof(*world));
    in_child(send_hi, 0);
}

/* ---- what other processes do ----------------------------------------------------------- */

static struct hf_wait_answer *list(struct hf_store *store, bool closed)
{
    struct hf_wait_answer *answer = NULL;
    struct hf_wait_filter filter = { .size = sizeof(filter),
                                     .session_id = session,
                                     .closed = closed };
    must(hf_wait_list(store, NULL, &filter, &answer, &err));
    return answer;
}

static void approve_buy(struct hf_store *store, int number)
{
    struct hf_wait_answer *waits = list(store, false), *answer = NULL;
    size_t at = 0;
    (void)number;
    while (at < waits->wait_count && !strstr(waits->waits[at].asked, "\"buy\""))
        at++;
    must(at < waits->wait_count ? 0 : HF_ENOTFOUND);
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .wait_id = waits->waits[at].wait_id,
                                       .word = HF_ANSWER_APPROVE };
    must(hf_wait_resolve(store, NULL, &request, &answer, &err));
    hf_wait_answer_free(answer);
    hf_wait_answer_free(waits);
}

static void revoke_session(struct hf_store *store, int number)
{
    struct hf_wait_answer *answer = NULL;
    struct hf_wait_revoke request = { .size = sizeof(request), .session_id = session };
    (void)number;
    must(hf_wait_revoke(store, NULL, &request, &answer, &err));
    world->number = answer->revoked;
    hf_wait_answer_free(answer);
}

/* Calls of tools that were begun, and whose end is not recorded. */
static void look_at_effects(struct hf_store *store, int number)
{
    struct hf_session_answer *answer = NULL;
    (void)number;
    int rc = hf_session_turn(store, session, NULL, &answer, &err);
    must(rc == HF_ENOTFOUND ? 0 : rc); /* no turn has begun yet */
    world->number = 0;
    for (size_t i = 0; rc == 0 && i < answer->effect_count; i++)
        world->number += strcmp(answer->effects[i].kind, "tool_call") == 0 &&
                         strcmp(answer->effects[i].status, "started") == 0;
    hf_session_answer_free(answer);
}

/* The only wait, by its id. */
static void resolve(struct hf_store *store, enum hf_wait_word word, const char *actor)
{
    struct hf_wait_answer *waits = list(store, true), *answer = NULL;
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "human", .actor = actor };
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .wait_id = waits->waits[0].wait_id,
                                       .word = word };
    must(waits->wait_count == 1 ? 0 : HF_ENOTFOUND);
    must(hf_wait_resolve(store, &who, &request, &answer, &err));
    world->number = answer->accepted;
    snprintf(world->text, sizeof(world->text), "%s", answer->waits[0].outcome);
    hf_wait_answer_free(answer);
    hf_wait_answer_free(waits);
}

static void approve(struct hf_store *store, int number)
{
    (void)number;
    resolve(store, HF_ANSWER_APPROVE, "anna");
}

static void deny(struct hf_store *store, int number)
{
    (void)number;
    resolve(store, HF_ANSWER_DENY, "bert");
}

static void approve_if_open(struct hf_store *store, int number)
{
    struct hf_wait_answer *waits = list(store, false);
    if (waits->wait_count > 0)
        approve(store, number);
    hf_wait_answer_free(waits);
}

static void cancel(struct hf_store *store, int number)
{
    struct hf_session_answer *head = NULL, *inputs = NULL;
    enum hf_session_turn_cancel answer = HF_TURN_CANCEL_COUNT;
    (void)number;
    must(hf_session_inputs(store, session, NULL, 0, &inputs, &err));
    struct hf_session_cancel request = { .size = sizeof(request),
                                         .session_id = session,
                                         .turn_id = inputs->inputs[0].work_id,
                                         .reason = "enough" };
    must(hf_session_cancel_turn(store, NULL, &request, &answer, &err));
    world->number = answer;
    hf_session_answer_free(inputs);
    hf_session_answer_free(head);
}

/* The history, the status of the first input, and how many waits there were. */
static void look(struct hf_store *store, int number)
{
    struct hf_session_answer *inputs = NULL;
    (void)number;
    (void)actor_transcript(store, session, world->transcript, sizeof(world->transcript));
    must(hf_session_inputs(store, session, NULL, 0, &inputs, &err));
    snprintf(world->text, sizeof(world->text), "%s", inputs->inputs[0].status);
    hf_session_answer_free(inputs);
    struct hf_wait_answer *waits = list(store, true);
    world->number = (int64_t)waits->wait_count;
    hf_wait_answer_free(waits);
}

static void sweep(struct hf_store *store, int number)
{
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "system",
                             .actor = "sweep" };
    struct hf_sweep_report report;
    (void)number;
    must(hf_work_sweep(store, &who, 64, &report, &err));
}

/* ---- approvals ------------------------------------------------------------------------- */

static void a_turn_waits_an_hour_with_no_worker_alive(void **state)
{
    (void)state;
    on_postgres = false; /* a server has its own clock */
    begin(one);
    in_child(work, 0);
    in_child(look, 0);
    assert_string_equal(world->text, "waiting_user");
    world->offset = 3600000;
    in_child(sweep, 0);
    in_child(look, 0);
    assert_string_equal(world->text, "waiting_user");
    in_child(approve, 0);
    in_child(work, 0);
    assert_int_equal(world->status, HF_STATUS_DONE);
    assert_int_equal(world->performed[1], 1);
    in_child(look, 0);
    assert_non_null(strstr(world->transcript, "approved_by\\\":\\\"anna"));
}

/* Store calls of the same turn without and with a wait. */
static void count_calls(bool reads, int64_t *ret_plain, int64_t *ret_waiting)
{
    count_reads = reads;
    begin(free_of_approval);
    in_child(work, 0);
    *ret_plain = world->calls;
    begin(one);
    in_child(work, 0);
    *ret_waiting = world->calls;
    in_child(approve, 0);
    in_child(work, 0);
    *ret_waiting += world->calls;
    count_reads = true;
}

static void count_transactions(void)
{
    int64_t plain = 0, waiting = 0, plain_all = 0, waiting_all = 0;
    count_calls(false, &plain, &waiting);
    count_calls(true, &plain_all, &waiting_all);
    print_message("# %lld transactions that write without a wait, %lld with one; with "
                  "reads %lld and %lld\n",
                  (long long)plain, (long long)waiting, (long long)plain_all,
                  (long long)waiting_all);
    assert_int_equal(waiting - plain, 2); /* the second claim, and the step after it */
    /* Reads: the look for the session; and the policies, which a process reads now and then. */
    assert_int_equal(waiting_all - plain_all, 3 + 1);
}

static void a_wait_takes_three_more_transactions(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        count_transactions();
    }
}

static void what_comes_too_late_runs_nothing_and_says_so(void **state)
{
    (void)state;
    on_postgres = false;
    begin(one);
    in_child(work, 0);
    in_child(deny, 0);
    assert_int_equal(world->number, 1);
    in_child(approve, 0); /* after a denial */
    assert_int_equal(world->number, 0);
    assert_non_null(strstr(world->text, "\"deny\""));
    in_child(work, 0);
    in_child(approve, 0); /* after the end of the turn */
    assert_int_equal(world->number, 0);
    assert_non_null(strstr(world->text, "\"deny\""));
    in_child(cancel, 0);
    assert_int_equal(world->number, HF_TURN_CANCEL_COMPLETED);
    assert_int_equal(world->performed[1], 0);
    in_child(look, 0);
    assert_non_null(strstr(world->transcript, "bert denied the call"));
    assert_string_equal(world->text, "done");
}

/* ---- ten waits, four answerers --------------------------------------------------------- */

/* Every wait twice, in an order of this process's own. */
static void answer_all(struct hf_store *store, int number)
{
    char name[32];
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "human", .actor = name };
    struct hf_wait_answer *waits = list(store, true);
    uint64_t dice = (uint64_t)(number + 1) * 0x9e3779b97f4a7c15u;
    snprintf(name, sizeof(name), "person-%d", number);
    must(waits->wait_count == WAITS ? 0 : HF_ENOTFOUND);
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < WAITS; i++) {
            struct hf_wait_answer *answer = NULL;
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            size_t at = (i * 7 + (size_t)(dice >> 60)) % WAITS;
            for (size_t k = 0; k < WAITS && world->told[number][round][at].outcome[0];
                 k++)
                at = (at + 1) % WAITS;
            bool yes = ((dice >> 33) & 1) != 0;
            struct hf_wait_resolve request = { .size = sizeof(request),
                                               .wait_id = waits->waits[at].wait_id,
                                               .word = yes ? HF_ANSWER_APPROVE
                                                           : HF_ANSWER_DENY };
            while (sem_wait(&world->answers)) /* a signal */
                ;
            must(hf_wait_resolve(store, &who, &request, &answer, &err));
            atomic_fetch_add(&world->answered, 1);
            world->told[number][round][at].accepted = answer->accepted;
            snprintf(world->told[number][round][at].outcome, 16, "%.15s",
                     answer->waits[0].outcome);
            hf_wait_answer_free(answer);
        }
    hf_wait_answer_free(waits);
}

/* A worker that dies at some call, or ends with its turn. True: the turn has ended. */
static bool work_and_die(int64_t die_at)
{
    world->status = HF_STATUS_NONE;
    world->death = (struct mortal_plan){ .die_at = die_at, .reads_too = true };
    (void)reap(spawn(work, 0));
    if (world->status != HF_STATUS_DONE) { /* it may have died after its commit */
        in_child(look, 0);
        if (strcmp(world->text, "done") == 0)
            world->status = HF_STATUS_DONE;
    }
    return world->status == HF_STATUS_DONE;
}

static void check_ten(void)
{
    int approved = 0;
    for (int at = 0; at < WAITS; at++) {
        const char *first = world->told[0][0][at].outcome;
        int accepted = 0;
        for (int who = 0; who < ANSWERERS; who++)
            for (int round = 0; round < 2; round++) {
                accepted += world->told[who][round][at].accepted;
                assert_string_equal(world->told[who][round][at].outcome, first);
            }
        assert_int_equal(accepted, 1); /* one outcome, which all are told */
        approved += strncmp(first, "{\"kind\":\"approv", 15) == 0;
    }
    int ran = 0;
    for (int n = 0; n < WAITS; n++)
        ran += world->performed[n] > 0;
    assert_int_equal(ran, approved);
    in_child(look, 0);
    assert_int_equal(world->number, WAITS);
}

static int permitted; /* answers */

static void permit(int count)
{
    for (int i = 0; i < count && permitted < ANSWERS; i++, permitted++)
        assert_int_equal(sem_post(&world->answers), 0);
}

/* A worker that dies while answers come: one more per store call of it, and where it makes none,
 * since it waits for one. True: it was killed. */
static bool die_among_answers(int64_t die_at)
{
    int status = 0, idle = 0;
    int64_t seen = 0;
    world->status = HF_STATUS_NONE;
    world->death = (struct mortal_plan){ .die_at = die_at, .reads_too = true };
    pid_t pid = spawn(work, 0);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        int64_t calls = world->death.calls;
        if (calls != seen || ++idle > 20000) {
            permit(1);
            seen = calls;
            idle = 0;
        }
        (void)sched_yield();
    }
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void answer_ten_among_deaths(void)
{
    pid_t pids[ANSWERERS];
    int deaths = 0, first = 0, last = 0; /* answers before the first death and the last */
    begin(ten);
    in_child(work, 0);
    permitted = 0;
    assert_int_equal(sem_init(&world->answers, 1, 0), 0);
    immortal = true;
    for (int i = 0; i < ANSWERERS; i++)
        pids[i] = spawn(answer_all, i);
    immortal = false;
    for (int64_t at = 3; at < 9 && world->status != HF_STATUS_DONE; at++) {
        if (!die_among_answers(at))
            continue;
        last = atomic_load(&world->answered);
        first = deaths++ == 0 ? last : first;
    }
    assert_true(deaths >= 2 && first < last && last > 0 && first < ANSWERS);
    permit(ANSWERS);
    for (int i = 0; i < ANSWERERS; i++)
        assert_true(reap(pids[i]));
    for (int i = 0; i < 6 && world->status != HF_STATUS_DONE; i++)
        (void)work_and_die(0);
    check_ten();
}

static void ten_waits_are_answered_by_four_processes_while_workers_die(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        answer_ten_among_deaths();
    }
}

/* ---- deaths ---------------------------------------------------------------------------- */

/* Whether the tool was called, and the worker died before it recorded what came of it: only such a
 * call is made again. */
static bool died_in_between(int called_before)
{
    in_child(look_at_effects, 0);
    return world->number > 0 && world->performed[1] > called_before;
}

/* The first worker dies at a store call, or the one that finds the answer; 0: none does. Returns
 * how often a call was begun that had been made before. */
static int die_around(int64_t first, int64_t second)
{
    int again = 0;
    begin(one);
    bool done = work_and_die(first);
    for (int i = 0; i < 6 && !done; i++) {
        in_child(approve_if_open, 0);
        int before = world->performed[1];
        done = work_and_die(i == 0 ? second : 0);
        again += !done && died_in_between(before);
    }
    assert_true(done);
    assert_int_equal(world->performed[1], 1 + again);
    in_child(look, 0);
    assert_int_equal(world->number, 1); /* nothing is asked twice */
    return again;
}

static void die_around_a_wait(void)
{
    static char golden[sizeof(world->transcript)];
    int again = 0;
    (void)die_around(0, 0);
    memcpy(golden, world->transcript, sizeof(golden));
    for (int64_t at = 1; at < 7; at++)
        for (int after = 0; after < 2; after++) { /* the answer */
            again += die_around(after ? 0 : at, after ? at : 0);
            assert_string_equal(world->transcript, golden);
        }
    assert_int_equal(again, 1); /* the death between the call and its recorded end */
}

static void a_death_around_a_wait_asks_nothing_twice(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        die_around_a_wait();
    }
}

/* ---- timers ---------------------------------------------------------------------------- */

static void look_at_timer(struct hf_store *store, int number)
{
    struct hf_wait_answer *waits = list(store, true);
    (void)number;
    must(waits->wait_count == 1 ? 0 : HF_ENOTFOUND);
    world->number = waits->waits[0].deadline_at;
    snprintf(world->text, sizeof(world->text), "%s", waits->waits[0].kind);
    hf_wait_answer_free(waits);
}

static void a_long_pause_is_a_timer_that_survives_its_owners(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        begin(flaky);
        in_child(work, 50); /* stays resident for 50 ms; the pause is 300 */
        in_child(look_at_timer, 0);
        assert_string_equal(world->text, "timer");
        hf_ms due = world->number;
        (void)work_and_die(4); /* an owner that dies while it looks, or once it is due */
        in_child(work, 50);
        assert_int_equal(world->status, HF_STATUS_DONE);
        in_child(look_at_timer, 0);
        assert_int_equal(world->number, due); /* it was not begun again */
        assert_in_range(world->performed[1], 2, 3);
    }
}

static void a_revocation_leaves_a_timer_and_no_worker_spins(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        begin(flaky);
        in_child(work, 50);
        in_child(revoke_session, 0);
        assert_int_equal(world->number, 0);
        in_child(look_at_timer, 0);
        hf_ms due = world->number;
        in_child(work_to_the_end, 50);
        assert_in_range(world->number, 0, 1); /* claimed once before its time */
        assert_int_equal(world->status, HF_STATUS_DONE);
        in_child(look_at_timer, 0);
        assert_int_equal(world->number, due);
    }
}

/* ---- deferred calls -------------------------------------------------------------------- */

static void complete(struct hf_store *store, int tampered)
{
    struct hf_wait_answer *answer = NULL;
    char key[HF_WAIT_KEY_TEXT];
    memcpy(key, world->key, sizeof(key));
    if (tampered) {
        char *last = key + strlen(key) - 1;
        *last = *last == 'a' ? 'b' : 'a';
    }
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .key = key,
                                       .word = HF_ANSWER_OK,
                                       .value = "{\"built\":true}" };
    world->number = hf_wait_resolve(store, NULL, &request, &answer, &err);
    hf_wait_answer_free(answer);
}

static void a_deferred_call_is_completed_by_its_key(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        begin(deferring);
        in_child(work, 0);
        in_child(look, 0);
        assert_string_equal(world->text, "waiting_external");
        in_child(complete, 1);
        assert_int_equal(world->number, HF_EWAITKEY);
        in_child(complete, 0);
        assert_int_equal(world->number, 0);
        in_child(work, 0);
        assert_int_equal(world->status, HF_STATUS_DONE);
        assert_int_equal(world->performed[1], 1);
        in_child(look, 0);
        assert_non_null(strstr(world->transcript, "built"));
    }
}

/* The only worker dies after the call was deferred and before that is stored. */
static void die_deferring(void)
{
    for (int64_t at = 3; at < 9; at++) {
        begin(shipping);
        (void)work_and_die(at);
        in_child(look, 0);
        if (world->performed[1] == 1 && world->key[0] && world->number == 0)
            return;
        in_child(cancel, 0); /* no worker of the next try may find it */
        in_child(work, 0);
    }
    fail_msg("no worker died between the call and its step");
}

static void a_deferral_that_is_lost_asks_no_person_what_its_key_has_told(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        die_deferring();
        in_child(complete, 0);
        assert_int_equal(world->number, 0);
        in_child(work, 0);
        assert_int_equal(world->status, HF_STATUS_DONE);
        assert_int_equal(world->performed[1], 1);
        in_child(look, 0);
        assert_non_null(strstr(world->transcript, "built"));
        assert_int_equal(world->number, 1); /* the answer, and no question */
    }
}

/* ---- cancel, fail_turn ----------------------------------------------------------------- */

static void a_turn_that_waits_is_cancelled_and_the_session_goes_on(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        begin(one);
        in_child(work, 0);
        in_child(cancel, 0);
        assert_int_equal(world->number, HF_TURN_CANCEL_REQUESTED);
        in_child(look, 0);
        assert_string_equal(world->text, "cancelled"); /* at once */
        in_child(cancel, 0);
        assert_int_equal(world->number, HF_TURN_CANCEL_ALREADY);
        (void)work_and_die(5); /* also if its next owner dies */
        in_child(send_hi, 0);
        if (world->status == HF_STATUS_NONE)
            in_child(work, 0);
        assert_int_equal(world->status, HF_STATUS_CANCELLED);
        in_child(look, 0);
        assert_non_null(strstr(world->transcript, "the call was not started"));
        assert_int_equal(world->performed[1], 0);
        script = &one[1]; /* the next message is answered */
        in_child(work, 0);
        assert_int_equal(world->status, HF_STATUS_DONE);
    }
}

static void a_wait_that_fails_its_turn_ends_it_as_timeout(void **state)
{
    (void)state;
    on_postgres = false; /* a server has its own clock */
    begin(urgent);
    in_child(work, 0);
    world->offset = 2000;
    in_child(sweep, 0);
    in_child(work, 0);
    assert_int_equal(world->status, HF_STATUS_TIMEOUT);
    in_child(look, 0);
    assert_string_equal(world->text, "timeout");
    assert_int_equal(world->performed[1], 0);
}

static void a_wait_that_fails_its_turn_does_so_after_another_was_answered(void **state)
{
    (void)state;
    on_postgres = false; /* a server has its own clock */
    begin(hurried);
    in_child(work, 0);
    in_child(approve_buy, 0);
    world->offset = 2000;
    in_child(sweep, 0);
    in_child(look, 0);
    assert_string_equal(world->text, "queued");
    in_child(work, 0);
    assert_int_equal(world->status, HF_STATUS_TIMEOUT);
    in_child(look, 0);
    assert_string_equal(world->text, "timeout");
    assert_int_equal(world->performed[1], 0);
}

static void cancel_soon(struct hf_store *store, int number)
{
    cancel(store, number);
}

static hf_ms mono_ms(void)
{
    const struct hf_clock *clock = hf_clock_system();
    return clock->mono_ms(clock->user);
}

/* Only the bell can tell so soon: the lease is renewed every 100 s. */
static void work_in_silence(struct hf_store *store, int number)
{
    struct actor actor;
    (void)number;
    open_actor(&actor, store);
    actor.config.ttl_ms = 300000;
    actor_start(&actor);
    while (actor.model_calls == 0)
        (void)hf_loop_step(actor.loop, -1);
    hf_ms began = mono_ms();
    pid_t pid = spawn(cancel_soon, 0); /* another process, another handle */
    actor_until(&actor, HF_WORKER_TURN_ENDED, 1);
    if (mono_ms() - began > 60000)
        _exit(1);
    (void)reap(pid);
    actor_close(&actor);
}

static void a_running_turn_is_cancelled_by_the_bell(void **state)
{
    (void)state;
    for (int engine = 0; engine < 2; engine++) {
        on_postgres = engine == 1;
        begin(silent);
        on_system_clock = true;
        in_child(work_in_silence, 0);
        on_system_clock = false;
        assert_int_equal(world->status, HF_STATUS_CANCELLED);
    }
}

/* ---- fixture --------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    assert_true(world != MAP_FAILED);
    snprintf(lite_path, sizeof(lite_path), "/tmp/hf-waits-%d.db", (int)getpid());
    pg_server_start(&server);
    return 0;
}

static int teardown(void **state)
{
    static const char *const sides[] = { "", "-wal", "-shm", "-hf" };
    char path[160];
    (void)state;
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", lite_path, sides[i]);
        (void)unlink(path);
    }
    pg_server_stop(&server);
    return munmap(world, sizeof(*world));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_waits_an_hour_with_no_worker_alive),
        cmocka_unit_test(a_wait_takes_three_more_transactions),
        cmocka_unit_test(what_comes_too_late_runs_nothing_and_says_so),
        cmocka_unit_test(ten_waits_are_answered_by_four_processes_while_workers_die),
        cmocka_unit_test(a_death_around_a_wait_asks_nothing_twice),
        cmocka_unit_test(a_long_pause_is_a_timer_that_survives_its_owners),
        cmocka_unit_test(a_revocation_leaves_a_timer_and_no_worker_spins),
        cmocka_unit_test(a_deferred_call_is_completed_by_its_key),
        cmocka_unit_test(a_deferral_that_is_lost_asks_no_person_what_its_key_has_told),
        cmocka_unit_test(a_turn_that_waits_is_cancelled_and_the_session_goes_on),
        cmocka_unit_test(a_wait_that_fails_its_turn_ends_it_as_timeout),
        cmocka_unit_test(a_wait_that_fails_its_turn_does_so_after_another_was_answered),
        cmocka_unit_test(a_running_turn_is_cancelled_by_the_bell),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, setup, teardown);
}
