/* Threads that meet at one wait, or at one turn: each race has one winner, and every caller is told
 * of it. On a SQLite file and on PostgreSQL. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/session.h>
#include <holdfast/store.h>

#include "support/pg.h"
#include "support/unit.h"

#define ROUNDS 12
#define RACERS 4

static struct pg_server server;
static struct hf_store *store;

/* One round: a session whose turn waits, or runs. */
struct round {
    char session_id[32];
    char turn_id[40];
    char wait_id[HF_WAIT_ID_TEXT];
    struct hf_session_answer *claimed;
    struct hf_session_stepped stepped;
    pthread_barrier_t start;
};

struct racer {
    struct round *round;
    int number;
    int code;
    bool won;
    char outcome[200];
    enum hf_session_turn_cancel cancel;
};

typedef void *race(void *racer);

static const char save[] = "a save of thirty-two bytes or more";

static void begin(struct round *round, int number)
{
    const char *agent = round->session_id;
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    (void)snprintf(round->session_id, sizeof(round->session_id), "r%d", number);
    struct hf_session_spec session = { .size = sizeof(session),
                                       .session_id = round->session_id,
                                       .agent = agent };
    struct hf_session_send message = {
        .size = sizeof(message),
        .session_id = round->session_id,
        .message = "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"go\"}]}}"
    };
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .session_id = round->session_id };
    assert_int_equal(hf_session_create(store, NULL, &session, &made, NULL), 0);
    assert_int_equal(hf_session_send(store, NULL, &message, &sent, NULL), 0);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &round->claimed, NULL), 0);
    (void)snprintf(round->turn_id, sizeof(round->turn_id), "%s",
                   round->claimed->turn->turn_id);
    hf_session_answer_free(made);
    hf_answer_free(sent);
    assert_int_equal(pthread_barrier_init(&round->start, NULL, RACERS), 0);
}

/* A step that opens one approval whose deadline is `deadline_at`. */
static void put_away(struct round *round, hf_ms deadline_at, bool away)
{
    const struct hf_session_turn *turn = round->claimed->turn;
    struct hf_wait_spec wait = { .size = sizeof(wait),
                                 .kind = HF_WAIT_APPROVAL,
                                 .name = "1/c/1",
                                 .deadline_at = deadline_at,
                                 .policy = HF_AT_DEADLINE_DENY };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = round->session_id,
                                    .token = round->claimed->token,
                                    .turn_id = round->turn_id,
                                    .chain = turn->chain,
                                    .save = { save, sizeof(save) },
                                    .waits = &wait,
                                    .wait_count = away ? 1 : 0,
                                    .away = away };
    assert_int_equal(hf_session_step(store, NULL, &step, &round->stepped, NULL), 0);
    assert_int_equal(
        hf_wait_id(round->turn_id, HF_WAIT_APPROVAL, "1/c/1", round->wait_id, NULL), 0);
}

static void run(struct round *round, race *const races[RACERS],
                struct racer racers[RACERS])
{
    pthread_t threads[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ .round = round, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, races[i], &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&round->start), 0);
    hf_session_answer_free(round->claimed);
}

static const char *state_of(const struct round *round, char outcome[200])
{
    static const char *const words[] = { "open", "resolved", "cancelled", "timed_out" };
    struct hf_wait_answer *answer = NULL;
    const char *found = NULL;
    assert_int_equal(hf_wait_get(store, NULL, round->wait_id, &answer, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(words[i], answer->waits->state) == 0)
            found = words[i];
    }
    (void)snprintf(outcome, 200, "%s",
                   answer->waits->outcome ? answer->waits->outcome : "");
    hf_wait_answer_free(answer);
    return found;
}

/* ---- racers ------------------------------------------------------------------------- */

static void *resolve(void *at)
{
    struct racer *racer = at;
    struct hf_wait_answer *answer = NULL;
    char why[16];
    (void)snprintf(why, sizeof(why), "by %d", racer->number);
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .wait_id = racer->round->wait_id,
                                       .word = HF_ANSWER_DENY,
                                       .reason = why };
    (void)pthread_barrier_wait(&racer->round->start);
    racer->code = hf_wait_resolve(store, NULL, &request, &answer, NULL);
    if (racer->code == 0) {
        racer->won = answer->accepted;
        (void)snprintf(racer->outcome, sizeof(racer->outcome), "%s",
                       answer->waits->outcome);
    }
    hf_wait_answer_free(answer);
    return NULL;
}

static void *sweep(void *at)
{
    struct racer *racer = at;
    struct hf_sweep_report report = { 0 };
    (void)pthread_barrier_wait(&racer->round->start);
    racer->code = hf_work_sweep(store, NULL, 0, &report, NULL);
    racer->won = report.timed_out > 0;
    return NULL;
}

static void *revoke_all(void *at)
{
    struct racer *racer = at;
    struct hf_wait_answer *answer = NULL;
    struct hf_wait_revoke request = { .size = sizeof(request),
                                      .session_id = racer->round->session_id };
    (void)pthread_barrier_wait(&racer->round->start);
    racer->code = hf_wait_revoke(store, NULL, &request, &answer, NULL);
    racer->won = racer->code == 0 && answer->revoked > 0;
    hf_wait_answer_free(answer);
    return NULL;
}

static void *cancel(void *at)
{
    struct racer *racer = at;
    struct hf_session_cancel request = { .size = sizeof(request),
                                         .session_id = racer->round->session_id,
                                         .turn_id = racer->round->turn_id };
    (void)pthread_barrier_wait(&racer->round->start);
    racer->code = hf_session_cancel_turn(store, NULL, &request, &racer->cancel, NULL);
    return NULL;
}

static void *complete(void *at)
{
    struct racer *racer = at;
    const struct round *round = racer->round;
    struct hf_session_committed committed;
    struct hf_session_commit commit = { .size = sizeof(commit),
                                        .session_id = round->session_id,
                                        .token = round->claimed->token,
                                        .turn_id = round->turn_id,
                                        .step = round->stepped.step,
                                        .chain = round->stepped.chain,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{\"kind\":\"assistant_message\"}",
                                        .release = true };
    (void)pthread_barrier_wait(&racer->round->start);
    racer->code = hf_session_commit(store, NULL, &commit, &committed, NULL);
    racer->won = racer->code == 0;
    return NULL;
}

/* ---- races -------------------------------------------------------------------------- */

static int winners(const struct racer racers[RACERS])
{
    int count = 0;
    for (int i = 0; i < RACERS; i++)
        count += racers[i].won;
    return count;
}

/* All answers that were told an outcome were told the one that is stored. */
static void told_alike(const struct round *round, const struct racer racers[RACERS])
{
    char outcome[200];
    assert_string_not_equal(state_of(round, outcome), "open");
    for (int i = 0; i < RACERS; i++) {
        assert_int_equal(racers[i].code, 0);
        if (racers[i].outcome[0])
            assert_string_equal(racers[i].outcome, outcome);
    }
}

/* Rounds in which one of the racers ends the wait; due_ms: its deadline, from now. */
static void end_races(int first, race *const races[RACERS], hf_ms due_ms)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct round round;
        struct racer racers[RACERS];
        begin(&round, first + i);
        put_away(&round, hf_store_now(store) + due_ms, true);
        run(&round, races, racers);
        assert_int_equal(winners(racers), 1);
        told_alike(&round, racers);
    }
}

static void answers_race(int first)
{
    race *const races[RACERS] = { resolve, resolve, resolve, resolve };
    end_races(first, races, 3600000);
}

static void deadline_races(int first)
{
    race *const races[RACERS] = { resolve, sweep, resolve, sweep };
    end_races(first, races, -1);
}

static void revocation_races(int first)
{
    race *const races[RACERS] = { resolve, revoke_all, resolve, revoke_all };
    end_races(first, races, 3600000);
}

static void completion_races(int first)
{
    race *const races[RACERS] = { cancel, complete, cancel, cancel };
    for (int i = 0; i < ROUNDS; i++) {
        struct round round;
        struct racer racers[RACERS];
        int requested = 0, completed = 0;
        begin(&round, first + i);
        put_away(&round, 0, false);
        run(&round, races, racers);
        for (int k = 0; k < RACERS; k++) {
            if (k == 1)
                continue;
            assert_int_equal(racers[k].code, 0);
            requested += racers[k].cancel == HF_TURN_CANCEL_REQUESTED;
            completed += racers[k].cancel == HF_TURN_CANCEL_COMPLETED;
        }
        assert_int_equal(requested, racers[1].won ? 0 : 1);
        assert_int_equal(completed, racers[1].won ? RACERS - 1 : 0);
        assert_int_equal(racers[1].code, racers[1].won ? 0 : HF_ECANCELASKED);
    }
}

static void all_races(void)
{
    answers_race(0);
    deadline_races(100);
    revocation_races(200);
    completion_races(300);
    hf_store_close(store);
}

static void each_race_has_one_winner_on_sqlite(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-wait-race-XXXXXX", path[64], command[80];
    struct hf_store_options options = { .size = sizeof(options) };
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/db", folder);
    assert_int_equal(hf_store_open(path, &options, &store, NULL), 0);
    all_races();
    static const char *const tails[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        (void)snprintf(command, sizeof(command), "%s%s", path, tails[i]);
        (void)unlink(command); /* some are not there */
    }
    (void)rmdir(folder);
}

static void each_race_has_one_winner_on_postgres(void **state)
{
    (void)state;
    store = pg_server_store(&server, "race");
    all_races();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_race_has_one_winner_on_sqlite),
        cmocka_unit_test(each_race_has_one_winner_on_postgres),
    };
    pg_server_start(&server);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
