/* Processes that die: a worker is killed before, in the middle of and after each store call of
 * one turn, on real stores. Another process finishes the turn: the transcript is that of an
 * undisturbed run, no effect with a recorded result is performed again, and the transactions
 * are as few as promised. */
#include "support/unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/actor.h"
#include "db/lite/lite.h"
#include "support/mortal.h"
#include "support/pg.h"

/* One turn: a batch of two keyed calls, a call of a tool that has a probe, and an answer. */
static const char *const turn_script[] = { "call put {\"n\":0}; put {\"n\":1}",
                                           "call mail {\"n\":2}", "done" };
static const char *const plain_script[] = { "hello" };
#define CALLS 3

/* In memory that children share. */
static struct world {
    struct mortal_plan death;
    atomic_int performed[CALLS];
    atomic_int asked[4]; /* model calls by iteration */
    atomic_int lethal;   /* the iteration whose model call kills its worker; 0: none */
    char transcript[32768];
    int64_t transactions;
} * world;

static struct pg_server server;
static char lite_path[128];
static bool on_postgres;
static int sessions; /* made so far: each run has its own */

/* ---- the store ------------------------------------------------------------------------ */

static int die_in_commit(void *user)
{
    (void)user;
    mortal_die();
    return 0;
}

/* With its changes made and the COMMIT under way. */
static void kill_in_commit(struct hf_sql *real)
{
    (void)sqlite3_commit_hook(lite_of(real)->writer.db, die_in_commit, NULL);
}

static struct hf_store *open_store(void)
{
    char url[400];
    return actor_store(on_postgres ? pg_server_schema(server.url, "death", url)
                                   : lite_path,
                       &world->death, NULL);
}

/* ---- the agent ------------------------------------------------------------------------ */

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
        _exit(2);
}

static enum hf_probe was_performed(void *user, struct hf_invocation *call)
{
    (void)user;
    if (atomic_load(&world->performed[number_of(call)]) == 0)
        return HF_PROBE_NOT_HAPPENED;
    if (hf_invocation_value(call, hf_invocation_args(call)))
        _exit(2);
    return HF_PROBE_HAPPENED;
}

static void on_model(uint64_t iteration)
{
    atomic_fetch_add(&world->asked[iteration % 4], 1);
    if (iteration > 0 && iteration == (uint64_t)atomic_load(&world->lethal))
        mortal_die();
}

/* Before the next claim: the worker holds at most one turn. */
static void on_event(const struct hf_worker_event *event)
{
    if (event->kind == HF_WORKER_TURN_ENDED)
        world->transactions = world->death.calls - world->death.renewals;
}

static void work(struct hf_store *store, const char *const *script)
{
    struct actor actor;
    struct hf_tool put = {
        .size = sizeof(put), .name = "put", .recovery = HF_RECOVERY_KEYED, .run = perform
    };
    struct hf_tool mail = { .size = sizeof(mail),
                            .name = "mail",
                            .recovery = HF_RECOVERY_PROBE,
                            .run = perform,
                            .probe = was_performed };
    actor_open(&actor, store, script);
    actor_add(&actor, &put);
    actor_add(&actor, &mail);
    actor.on_model = on_model;
    actor.on_event = on_event;
    actor.config.pid = getpid(); /* its death is proven at once */
    actor_start(&actor);
    actor_until(&actor, HF_WORKER_TURN_ENDED, 1);
    actor_close(&actor);
}

/* ---- lives ---------------------------------------------------------------------------- */

static int wait_for(pid_t pid)
{
    int status = 0;
    assert_true(pid >= 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* A process that sends a message and works until the turn ends, or it dies. */
static bool live(const char *session, const char *const *script, int64_t die_at,
                 enum mortal_side side)
{
    pid_t pid = fork();
    if (pid == 0) {
        world->death = (struct mortal_plan){ .reads_too = true };
        struct hf_store *store = open_store();
        actor_send(store, session, "hi");
        world->death = (struct mortal_plan){ .die_at = die_at,
                                             .side = side,
                                             .reads_too = side != MORTAL_MIDDLE,
                                             .in_the_middle = kill_in_commit };
        work(store, script);
        hf_store_close(store);
        _exit(0);
    }
    int status = wait_for(pid);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    assert_true(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return killed;
}

static bool committed(struct hf_store *store, const char *session)
{
    struct hf_session_answer *answer = NULL;
    if (hf_session_head(store, session, &answer, NULL))
        _exit(2);
    bool done = answer->sessions[0].head_revision == 1;
    hf_session_answer_free(answer);
    return done;
}

static void count_finding(void *user, const struct hf_finding *finding)
{
    int *count = user;
    if (!finding->bad)
        return;
    fprintf(stderr, "doctor: %s: %s\n", finding->what, finding->detail);
    (*count)++;
}

/* Another process finishes what is open and says what the session holds. */
static void finish(const char *session)
{
    pid_t pid = fork();
    if (pid == 0) {
        int found = 0;
        world->death = (struct mortal_plan){ .reads_too = true };
        struct hf_store *store = open_store();
        if (!committed(store, session))
            work(store, turn_script);
        (void)actor_transcript(store, session, world->transcript,
                               sizeof(world->transcript));
        if (hf_store_check(store, count_finding, &found, NULL))
            _exit(2);
        hf_store_close(store);
        _exit(found ? 2 : 0);
    }
    assert_int_equal(wait_for(pid), 0);
}

/* A process that continues with the turn, and dies in its last model call. */
static void die_in_last_call(const char *session, bool first)
{
    pid_t pid = fork();
    if (pid == 0) {
        world->death = (struct mortal_plan){ .reads_too = true };
        struct hf_store *store = open_store();
        if (first)
            actor_send(store, session, "hi");
        work(store, turn_script);
        _exit(3); /* it should have died */
    }
    int status = wait_for(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* An operator finds that the input is held, and releases it. */
static void release_input(const char *session)
{
    pid_t pid = fork();
    if (pid == 0) {
        const char *agents[] = { "a" };
        struct hf_session_answer *found = NULL;
        struct hf_answer *done = NULL;
        struct hf_session_claim claim = { .size = sizeof(claim),
                                          .agents = agents,
                                          .agent_count = 1 };
        struct hf_change change = { .size = sizeof(change),
                                    .verb = HF_VERB_RELEASE,
                                    .reason = "mended" };
        world->death = (struct mortal_plan){ .reads_too = true };
        struct hf_store *store = open_store();
        int rc = hf_session_claim(store, NULL, &claim, &found, NULL);
        bool none = rc == 0 && found->session_count == 0;
        hf_session_answer_free(found);
        if (!none || hf_session_inputs(store, session, NULL, 0, &found, NULL))
            _exit(2);
        change.id = found->inputs[0].work_id;
        bool held = found->inputs[0].gate && strcmp(found->inputs[0].gate, "held") == 0;
        rc = hf_work_change(store, NULL, &change, 1, HF_ALL_OR_NONE, &done, NULL);
        hf_answer_free(done);
        hf_session_answer_free(found);
        hf_store_close(store);
        _exit(held && rc == 0 ? 0 : 2);
    }
    assert_int_equal(wait_for(pid), 0);
}

static const char *fresh_session(void)
{
    static char name[16];
    snprintf(name, sizeof(name), "s%d", sessions++);
    memset(world->performed, 0, sizeof(world->performed));
    memset(world->asked, 0, sizeof(world->asked));
    return name;
}

/* ---- cases ---------------------------------------------------------------------------- */

static void count_transactions(void)
{
    assert_false(live(fresh_session(), plain_script, 0, MORTAL_BEFORE));
    assert_int_equal(world->transactions, 5); /* look, claim, two steps, commit */
    int64_t plain = world->transactions;
    assert_false(live(fresh_session(), turn_script, 0, MORTAL_BEFORE));
    print_message("# %lld transactions without tools, %lld with %d calls\n",
                  (long long)plain, (long long)world->transactions, CALLS);
    assert_true(world->transactions <= 5 + 2 * CALLS);
}

static void check_world(const char *golden)
{
    assert_string_equal(world->transcript, golden);
    for (int i = 0; i < 2;
         i++) { /* keyed: made again at most by the one that came next */
        assert_true(world->performed[i] >= 1);
        assert_true(world->performed[i] <= 2);
    }
    assert_int_equal(world->performed[2], 1); /* the probe knows */
    for (int i = 0; i < 3; i++) {
        assert_true(world->asked[i] >= 1);
        assert_true(world->asked[i] <= 2);
    }
    /* One process died, so that what was open at one moment is all that may be made again. */
    int again = world->asked[0] + world->asked[1] + world->asked[2] - 3;
    assert_true(again <= 1);
    assert_true(again == 0 || world->performed[0] + world->performed[1] == 2);
}

static void die_everywhere(enum mortal_side side)
{
    static char golden[sizeof(world->transcript)];
    const char *session = fresh_session();
    assert_false(live(session, turn_script, 0, side));
    int64_t calls = world->transactions, deaths = 0;
    finish(session);
    memcpy(golden, world->transcript, sizeof(golden));
    assert_non_null(strstr(golden, "done"));
    for (int64_t at = 1; at <= calls; at++) {
        session = fresh_session();
        deaths += live(session, turn_script, at, side);
        finish(session);
        check_world(golden);
    }
    print_message("# %lld deaths at %lld calls\n", (long long)deaths, (long long)calls);
    /* The answers of the batch share a step, or take one each. */
    assert_true(deaths + 1 >= calls);
    assert_true(calls >= (side == MORTAL_MIDDLE ? 8 : 9));
}

/* The first death is forgiven, since a step was stored; `poison_crashes` more hold the input. */
static void hold_and_release(void)
{
    const char *session = fresh_session();
    atomic_store(&world->lethal, 2);
    for (int i = 0; i <= HF_MAX_POISON_CRASHES; i++)
        die_in_last_call(session, i == 0);
    atomic_store(&world->lethal, 0);
    release_input(session);
    finish(session);
    assert_non_null(strstr(world->transcript, "done"));
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(world->performed[i], 1);
    assert_int_equal(world->asked[0], 1);
    assert_int_equal(world->asked[1], 1);
    assert_int_equal(world->asked[2], HF_MAX_POISON_CRASHES + 2);
}

static void a_released_turn_performs_no_recorded_effect_again_on_a_file(void **state)
{
    (void)state;
    on_postgres = false;
    hold_and_release();
}

static void a_released_turn_performs_no_recorded_effect_again_on_postgres(void **state)
{
    (void)state;
    on_postgres = true;
    hold_and_release();
}

static void a_turn_takes_few_transactions_on_a_file(void **state)
{
    (void)state;
    on_postgres = false;
    count_transactions();
}

static void a_turn_takes_few_transactions_on_postgres(void **state)
{
    (void)state;
    on_postgres = true;
    count_transactions();
}

static void a_process_may_die_around_every_call_on_a_file(void **state)
{
    (void)state;
    on_postgres = false;
    die_everywhere(MORTAL_BEFORE);
    die_everywhere(MORTAL_MIDDLE);
    die_everywhere(MORTAL_AFTER);
}

/* A server finishes or rolls back what it was told, so that there is no middle of its own. */
static void a_process_may_die_around_every_call_on_postgres(void **state)
{
    (void)state;
    on_postgres = true;
    die_everywhere(MORTAL_BEFORE);
    die_everywhere(MORTAL_AFTER);
}

/* ---- fixture -------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    assert_true(world != MAP_FAILED);
    snprintf(lite_path, sizeof(lite_path), "/tmp/hf-death-%d.db", (int)getpid());
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_takes_few_transactions_on_a_file),
        cmocka_unit_test(a_turn_takes_few_transactions_on_postgres),
        cmocka_unit_test(a_process_may_die_around_every_call_on_a_file),
        cmocka_unit_test(a_process_may_die_around_every_call_on_postgres),
        cmocka_unit_test(a_released_turn_performs_no_recorded_effect_again_on_a_file),
        cmocka_unit_test(a_released_turn_performs_no_recorded_effect_again_on_postgres),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
