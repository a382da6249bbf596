/* The driver's waits: approvals, deferred calls, questions, long sleeps, and the end of a turn that
 * waits. Each line is what must happen, written by hand (drive_rig.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/drive_rig.h"

static struct drig *rig;

static int open_rig(void **state)
{
    (void)state;
    rig = calloc(1, sizeof(*rig));
    drig_init(rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    drig_fini(rig);
    free(rig);
    return 0;
}

/* A claim, the model's first call, and its answer. */
static void begin(void)
{
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
}

/* Whether the record of the calls' results has this text; ' is an escaped quote. */
static bool shown(const char *text)
{
    char wanted[512] = "";
    for (size_t len = 0; *text && len + 3 < sizeof(wanted); text++) {
        if (*text == '\'')
            wanted[len++] = '\\';
        wanted[len++] = *text == '\'' ? '"' : *text;
    }
    if (!strstr(rig->records[2], wanted))
        print_error("%s\nis not in\n%s\n", wanted, rig->records[2]);
    return strstr(rig->records[2], wanted) != NULL;
}

/* ---- approvals ---------------------------------------------------------------------- */

/* The turn waits for an approval of buy {"a":500}. */
static void wait_for_approval(void)
{
    begin();
    drig_ask(rig, 1, "buy", "{\"a\":500}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done ask approval:2/buy/1 away\nend\n");
}

static void a_call_that_needs_an_approval_puts_the_turn_away(void **state)
{
    (void)state;
    wait_for_approval();
    assert_string_equal(
        drig_wait(rig, "2/buy/1")->asked,
        "{\"question\":\"May buy be called?\",\"call\":{\"name\":\"buy\",\"arguments\":"
        "{\"a\":500}},\"edits\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
        "\"integer\"}}}}");
    assert_string_equal(drig_status(rig, "2/buy/1"), ""); /* nothing was begun */
    drig_resolve(rig, "2/buy/1", "anna", "{\"kind\":\"approve\"}");
    drig_claim(rig);
    drig_expect(rig, "store 2 begin 2/buy/1\ntool 2/buy/1 {\"a\":500}\n");
    drig_answer(rig, "buy", "7");
    drig_expect(rig, "store 3 records 1 settle 2/buy/1:done begin 4\nmodel 4\n");
    assert_true(shown("{'approved_by':'anna','result':7}"));
}

static void a_rule_looks_at_the_arguments(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "buy", "{\"a\":99}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/buy/1\n"
                     "tool 2/buy/1 {\"a\":99}\n");
    drig_answer(rig, "buy", "7");
    drig_expect(rig, "store 2 records 1 settle 2/buy/1:done begin 4\nmodel 4\n");
    drig_ask(rig, 4, "buy", "{}", NULL); /* what is missing counts as one that fits */
    drig_expect(rig, "store 3 records 1 settle 4:done ask approval:5/buy/1 away\nend\n");
}

static void edited_arguments_are_what_runs(void **state)
{
    (void)state;
    wait_for_approval();
    drig_resolve(rig, "2/buy/1", "anna",
                 "{\"kind\":\"approve\",\"arguments\":{\"a\":70}}");
    drig_claim(rig);
    drig_expect(rig, "store 2 begin 2/buy/1\ntool 2/buy/1 {\"a\":70}\n");
    drig_kill(rig);
    drig_claim(rig); /* another worker takes the edited call over, under its key */
    drig_expect(rig, "tool 2/buy/1 {\"a\":70}\n");
    drig_answer(rig, "buy", "7");
    drig_expect(rig, "store 3 records 1 settle 2/buy/1:done* begin 4\nmodel 4\n");
    assert_true(shown("{'approved_by':'anna','arguments':{'a':70},'result':7}"));
}

static void edited_arguments_that_do_not_fit_any_more_go_back_to_the_model(void **state)
{
    (void)state;
    wait_for_approval();
    drig_resolve(rig, "2/buy/1", "anna",
                 "{\"kind\":\"approve\",\"arguments\":{\"a\":\"x\"}}");
    drig_claim(rig);
    drig_expect(rig, "store 2 records 1 begin 4\nmodel 4\n");
    assert_non_null(strstr(rig->records[2], "/a: must be of type integer"));
}

static void a_denial_is_told_to_the_model_and_nothing_runs(void **state)
{
    (void)state;
    wait_for_approval();
    drig_resolve(rig, "2/buy/1", "anna", "{\"kind\":\"deny\",\"reason\":\"too dear\"}");
    drig_resolve(rig, "2/buy/1", "bert", "{\"kind\":\"approve\"}"); /* comes too late */
    drig_claim(rig);
    drig_expect(rig, "store 2 records 1 begin 4\nmodel 4\n");
    assert_non_null(strstr(rig->records[2], "anna denied the call: too dear"));
    assert_int_equal(drig_performed(rig, "2/buy/1"), 0);
    assert_string_equal(drig_status(rig, "2/buy/1"), "");
}

static void without_an_answer_a_call_is_not_approved(void **state)
{
    (void)state;
    wait_for_approval();
    drig_resolve(rig, "2/buy/1", "sweep", "{\"kind\":\"timeout\"}");
    drig_claim(rig);
    drig_expect(rig, "store 2 records 1 begin 4\nmodel 4\n");
    assert_non_null(strstr(rig->records[2], "no approval came in time"));
}

static void a_withdrawn_request_is_told_with_its_reason(void **state)
{
    (void)state;
    wait_for_approval();
    drig_resolve(rig, "2/buy/1", "anna",
                 "{\"kind\":\"cancelled\",\"reason\":\"asked by mistake\"}");
    drig_claim(rig);
    drig_expect(rig, "store 2 records 1 begin 4\nmodel 4\n");
    assert_non_null(strstr(rig->records[2],
                           "the request for approval was withdrawn: asked by mistake"));
}

static void other_calls_run_while_one_waits(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "add", "{}", "buy", "{\"a\":500}", NULL);
    drig_expect(rig,
                "store 1 records 1 settle 1:done begin 2/add/1 ask approval:2/buy/1\n"
                "tool 2/add/1 {}\n");
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 2 settle 2/add/1:done wait approval:2/buy/1 away\nend\n");
}

static void approvals_of_a_batch_come_in_any_order(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "buy", "{\"a\":500}", "put", "{}", NULL);
    drig_expect(rig,
                "store 1 records 1 settle 1:done begin 2/put/1 ask approval:2/buy/1\n"
                "tool 2/put/1 {}\n");
    drig_defer(rig, "put");
    drig_expect(rig, "store 2 wait approval:2/buy/1 ask tool:2/put/1 away\nend\n");
    drig_resolve(rig, "2/put/1", "ci", "{\"kind\":\"ok\",\"value\":[1]}");
    drig_claim(rig); /* one is answered; the other one is still open */
    drig_expect(rig, "store 3 settle 2/put/1:done* wait approval:2/buy/1 away\nend\n");
    drig_resolve(rig, "2/buy/1", "anna", "{\"kind\":\"approve\"}");
    drig_claim(rig);
    drig_expect(rig, "store 4 begin 2/buy/1\ntool 2/buy/1 {\"a\":500}\n");
    drig_answer(rig, "buy", "7");
    drig_expect(rig, "store 5 records 1 settle 2/buy/1:done begin 4\nmodel 4\n");
    assert_int_equal(drig_performed(rig, "2/put/1"), 1);
}

static void a_host_without_a_journal_refuses_what_needs_an_approval(void **state)
{
    (void)state;
    rig->config.host = hf_effect_host_inline();
    drig_claim(rig);
    drig_expect(rig, "model 1\n");
    drig_ask(rig, 1, "buy", "{\"a\":500}", NULL);
    drig_expect(rig, "model 4\n");
    drig_say(rig, 4, "so be it");
    drig_expect(rig, "commit done records 4\nend\n");
    assert_non_null(strstr(rig->records[2], "this host cannot wait for one"));
}

/* ---- deferred calls ----------------------------------------------------------------- */

/* put has started something outside, and the turn waits for its end. */
static void wait_for_end(void)
{
    begin();
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_defer(rig, "put");
    drig_expect(rig, "store 2 ask tool:2/put/1 away\nend\n");
}

static void a_deferred_call_is_completed_from_outside(void **state)
{
    (void)state;
    wait_for_end();
    assert_string_equal(drig_status(rig, "2/put/1"), "started");
    drig_resolve(rig, "2/put/1", "ci", "{\"kind\":\"ok\",\"value\":{\"n\":1}}");
    drig_claim(rig);
    drig_expect(rig, "store 3 records 1 settle 2/put/1:done* begin 4\nmodel 4\n");
    assert_true(shown("{'n':1}"));
    assert_int_equal(drig_performed(rig, "2/put/1"), 1);
}

static void a_deferred_call_may_fail_or_never_end(void **state)
{
    (void)state;
    static const char *const outcomes[][2] = {
        { "{\"kind\":\"error\",\"message\":\"the build broke\"}", "the build broke" },
        { "{\"kind\":\"timeout\"}", "the call was not completed in time" },
        { "{\"kind\":\"cancelled\",\"reason\":\"no runner\"}",
          "the call was withdrawn: no runner" },
    };
    for (size_t i = 0; i < 3; i++) {
        drig_fini(rig);
        drig_init(rig);
        wait_for_end();
        drig_resolve(rig, "2/put/1", "ci", outcomes[i][0]);
        drig_claim(rig);
        drig_expect(rig, "store 3 records 1 settle 2/put/1:failed* begin 4\nmodel 4\n");
        assert_non_null(strstr(rig->records[2], outcomes[i][1]));
    }
}

static void a_deferral_that_was_not_stored_is_made_again_under_its_key(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    rig->hold_store = true;
    drig_defer(rig, "put");
    drig_expect(rig, "store 2 ask tool:2/put/1 away\n");
    drig_kill(rig); /* the step never came to the store */
    rig->hold_store = false;
    drig_claim(rig);
    drig_expect(rig, "tool 2/put/1 {}\n");
    drig_defer(rig, "put");
    drig_expect(rig, "store 2 ask tool:2/put/1 away\nend\n");
}

static void a_deferral_that_was_not_stored_keeps_the_answer_that_came_for_it(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/pay/1\ntool 2/pay/1 {}\n");
    drig_kill(rig); /* it has deferred, and its step never came to the store */
    drig_resolve_early(rig, 2, "pay", "{\"kind\":\"ok\",\"value\":{\"n\":1}}");
    drig_claim(rig); /* no person is asked whether the call happened */
    drig_expect(rig, "store 2 records 1 settle 2/pay/1:done* begin 4\nmodel 4\n");
    assert_true(shown("{'n':1}"));
    assert_int_equal(drig_performed(rig, "2/pay/1"), 1);
}

/* ---- questions ---------------------------------------------------------------------- */

/* An earlier worker started pay. */
static void wait_for_truth(void)
{
    begin();
    drig_ask(rig, 1, "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/pay/1\ntool 2/pay/1 {}\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "store 2 ask approval:2/pay/1/happened away\nend\n");
}

static void a_call_that_may_have_happened_becomes_a_question(void **state)
{
    (void)state;
    static const char *const outcomes[][3] = {
        { "{\"kind\":\"approve\",\"arguments\":{\"id\":7}}", "done",
          "{'happened':true,'said_by':'anna','result':{'id':7}}" },
        { "{\"kind\":\"approve\"}", "done", "{'happened':true,'said_by':'anna'}" },
        { "{\"kind\":\"deny\",\"reason\":\"no such payment\"}", "failed",
          "anna says that the call did not happen: no such payment" },
        { "{\"kind\":\"timeout\"}", "unknown", "no answer came" },
        { "{\"kind\":\"cancelled\"}", "unknown", "no answer came" },
    };
    for (size_t i = 0; i < 5; i++) {
        char line[100];
        drig_fini(rig);
        drig_init(rig);
        wait_for_truth();
        drig_resolve(rig, "2/pay/1/happened", "anna", outcomes[i][0]);
        drig_claim(rig);
        snprintf(line, sizeof(line),
                 "store 3 records 1 settle 2/pay/1:%s* begin 4\nmodel 4\n",
                 outcomes[i][1]);
        drig_expect(rig, line);
        assert_true(shown(outcomes[i][2]));
        assert_int_equal(drig_performed(rig, "2/pay/1"), 1); /* never a second time */
    }
}

/* ---- sleeps ------------------------------------------------------------------------- */

static void a_long_sleep_puts_the_turn_away_and_is_not_begun_again(void **state)
{
    (void)state;
    rig->config.away_ms = 1000;
    begin();
    drig_model_fails(rig, 1);
    drig_expect(rig, "store 1 settle 1:failed wait timer:2 away\nend\n");
    hf_ms due = drig_wait(rig, "2")->wait.deadline_at;
    assert_in_range(due - rig->now, 1500, 2000);
    rig->now += 1000; /* claimed early: what is left is short enough to stay */
    drig_claim(rig);
    char line[64];
    snprintf(line, sizeof(line), "timer +%d\n", (int)(due - rig->now));
    drig_expect(rig, line);
    drig_pass(rig, due - rig->now);
    drig_expect(rig, "store 2 begin 3\nmodel 3\n");
}

static void a_retry_that_is_far_away_is_a_timer(void **state)
{
    (void)state;
    rig->config.away_ms = 500;
    begin();
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/put/1:failed wait timer:2/put/2 away\nend\n");
    assert_int_equal(drig_wait(rig, "2/put/2")->wait.deadline_at, rig->now + 1000);
    rig->now += 1000;
    drig_claim(rig);
    drig_expect(rig, "store 3 begin 2/put/2\ntool 2/put/2 {}\n");
}

static void a_pause_that_is_over_by_the_stores_clock_is_over(void **state)
{
    (void)state;
    rig->config.away_ms = 1000;
    begin();
    drig_model_fails(rig, 1);
    drig_expect(rig, "store 1 settle 1:failed wait timer:2 away\nend\n");
    drig_resolve(rig, "2", "claim", "{\"kind\":\"ok\",\"value\":null}");
    drig_claim(rig); /* by this worker's clock it is not */
    drig_expect(rig, "timer +0\n");
    drig_pass(rig, 0);
    drig_expect(rig, "store 2 begin 3\nmodel 3\n");
}

static void a_retry_that_is_due_by_the_stores_clock_is_due(void **state)
{
    (void)state;
    rig->config.away_ms = 500;
    begin();
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/put/1:failed wait timer:2/put/2 away\nend\n");
    drig_resolve(rig, "2/put/2", "claim", "{\"kind\":\"ok\",\"value\":null}");
    drig_claim(rig);
    drig_expect(rig, "store 3 begin 2/put/2\ntool 2/put/2 {}\n");
}

/* ---- ends --------------------------------------------------------------------------- */

static void a_turn_that_waits_is_cancelled_by_its_next_owner(void **state)
{
    (void)state;
    wait_for_approval();
    drig_claim(rig);
    drig_cancel(rig, HF_STATUS_CANCELLED);
    drig_expect(rig, "store 2 records 1\ncommit cancelled records 0\nend\n");
    assert_non_null(strstr(rig->records[2], "the call was not started"));
    assert_int_equal(drig_performed(rig, "2/buy/1"), 0);
}

static void a_turn_whose_inputs_timed_out_is_committed_as_timeout(void **state)
{
    (void)state;
    wait_for_end();
    drig_resolve(rig, "2/put/1", "sweep", "{\"kind\":\"timeout\"}");
    drig_claim(rig);
    drig_cancel(rig, HF_STATUS_TIMEOUT);
    drig_expect(rig, "store 3 records 1 settle 2/put/1:failed*\n"
                     "commit timeout records 0\nend\n");
}

static void a_deadline_that_fails_the_turn_does_so_after_another_answer(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "buy", "{\"a\":500}", "put", "{}", NULL);
    drig_expect(rig,
                "store 1 records 1 settle 1:done begin 2/put/1 ask approval:2/buy/1\n"
                "tool 2/put/1 {}\n");
    drig_defer(rig, "put");
    drig_expect(rig, "store 2 wait approval:2/buy/1 ask tool:2/put/1 away\nend\n");
    drig_resolve(rig, "2/buy/1", "anna", "{\"kind\":\"approve\"}");
    drig_fail_turn(rig, "2/put/1"); /* the inputs are queued then, and have not ended */
    drig_claim(rig);
    drig_expect(rig, "store 3 records 1 settle 2/put/1:failed*\n"
                     "commit timeout records 0\nend\n");
    assert_int_equal(drig_performed(rig, "2/buy/1"), 0);
}

static void a_cancelled_wait_says_what_is_known(void **state)
{
    (void)state;
    wait_for_truth();
    drig_claim(rig);
    drig_cancel(rig, HF_STATUS_NONE);
    drig_expect(rig, "store 3 records 1 settle 2/pay/1:unknown*\n"
                     "commit cancelled records 0\nend\n");
}

static void a_long_sleep_is_cancelled_at_once(void **state)
{
    (void)state;
    rig->config.away_ms = 1000;
    begin();
    drig_model_fails(rig, 1);
    drig_expect(rig, "store 1 settle 1:failed wait timer:2 away\nend\n");
    drig_claim(rig);
    drig_cancel(rig, HF_STATUS_CANCELLED);
    drig_expect(rig, "store 2\ncommit cancelled records 0\nend\n");
}

static void a_commit_that_a_cancel_came_before_is_made_as_cancelled(void **state)
{
    (void)state;
    begin();
    drig_say(rig, 1, "hello");
    rig->hold_store = true;
    drig_expect(rig, "store 1 settle 1:done\n");
    drig_store(rig);
    drig_expect(rig, "commit done records 1\n");
    rig->waiting = false; /* the store refuses it */
    drig_event(rig, HF_DRIVEN_STORED, HF_ECANCELASKED);
    drig_expect(rig, "commit cancelled records 0\n");
    drig_store(rig);
    drig_expect(rig, "end\n");
    assert_non_null(strstr(rig->outcome, "cancelled"));
}

static void a_worker_that_stops_puts_a_waiting_turn_away(void **state)
{
    (void)state;
    begin();
    drig_ask(rig, 1, "add", "{}", "buy", "{\"a\":500}", NULL);
    drig_expect(rig,
                "store 1 records 1 settle 1:done begin 2/add/1 ask approval:2/buy/1\n"
                "tool 2/add/1 {}\n");
    drig_event(rig, HF_DRIVEN_STOP, 0);
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 2 settle 2/add/1:done wait approval:2/buy/1 away\nend\n");
}

/* ---- deaths ------------------------------------------------------------------------- */

/* The world answers: an approved call, a deferred one, and a question that is denied. */
static void serve(void)
{
    const struct hf_drive_action *action = &rig->action;
    if (action->kind == HF_DRIVE_MODEL && action->request->iteration == 0)
        drig_ask(rig, action->id, "buy", "{\"a\":500}", "put", "{}", "add", "{}", NULL);
    else if (action->kind == HF_DRIVE_MODEL)
        drig_say(rig, action->id, "all is done");
    else if (action->kind == HF_DRIVE_TOOL && strcmp(action->call->tool, "put") == 0)
        drig_defer(rig, "put");
    else if (action->kind == HF_DRIVE_TOOL)
        drig_answer(rig, action->call->tool, "1");
    else if (action->kind == HF_DRIVE_TIMER)
        drig_pass(rig, action->due_ms - rig->now);
}

static void answer_waits(void)
{
    for (size_t i = 0; i < rig->wait_count; i++) {
        struct hf_wait *wait = &rig->waits[i].wait;
        if (strcmp(wait->state, "open") != 0)
            continue;
        wait->state = "resolved";
        wait->actor = "anna";
        wait->outcome = strcmp(wait->kind, "tool") == 0 ? "{\"kind\":\"ok\",\"value\":2}"
                                                        : "{\"kind\":\"approve\"}";
        return; /* one at a time */
    }
}

/* Actions until the turn is committed; the worker ends at action `death` (0: never). */
static int run_turn(int death, bool after)
{
    int count = 0;
    for (int guard = 0; !rig->ended && guard < 400; guard++) {
        if (!rig->drive) {
            answer_waits();
            drig_claim(rig);
        }
        rig->hold_store = count + 1 == death && !after;
        if (!drig_act(rig))
            continue;
        count++;
        if (count == death && rig->drive)
            drig_kill(rig);
        else if (rig->drive)
            serve();
    }
    assert_true(rig->ended);
    return count;
}

static void a_death_at_any_action_of_a_turn_that_waits_changes_nothing(void **state)
{
    (void)state;
    char want[3][4096];
    int total = run_turn(0, false);
    assert_int_equal(rig->record_count, 4);
    memcpy(want, rig->records[1], sizeof(want));
    for (int death = 1; death <= total; death++)
        for (int after = 0; after < 2; after++) {
            drig_fini(rig);
            drig_init(rig);
            (void)run_turn(death, after);
            for (int i = 0; i < 3; i++)
                if (strcmp(want[i], rig->records[1 + i]) != 0)
                    fail_msg("death at %d (%s): %s\n%s", death,
                             after ? "after" : "before", rig->records[1 + i], rig->log);
            assert_int_equal(rig->wait_count, 2); /* nothing is asked twice */
            assert_true(drig_performed(rig, "2/buy/1") <= 2);
        }
}

static void every_allocation_of_a_turn_that_waits_may_fail(void **state)
{
    (void)state;
    (void)run_turn(0, false);
    int64_t total = rig->memory.calls;
    assert_true(total > 100);
    for (int64_t at = 1; at <= total; at++) {
        drig_fini(rig);
        drig_init(rig);
        struct hf_err err = { 0 };
        rig->memory.fail_at = rig->memory.calls + at;
        for (int guard = 0; !rig->ended && guard < 600; guard++) {
            if (!rig->drive) {
                answer_waits();
                if (drig_try_claim(rig, &err))
                    continue;
            }
            if (drig_act(rig) && rig->drive)
                serve();
        }
        assert_true(rig->ended);
        assert_int_equal(rig->record_count, 4);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_call_that_needs_an_approval_puts_the_turn_away),
        CASE(a_rule_looks_at_the_arguments),
        CASE(edited_arguments_are_what_runs),
        CASE(edited_arguments_that_do_not_fit_any_more_go_back_to_the_model),
        CASE(a_denial_is_told_to_the_model_and_nothing_runs),
        CASE(without_an_answer_a_call_is_not_approved),
        CASE(a_withdrawn_request_is_told_with_its_reason),
        CASE(other_calls_run_while_one_waits),
        CASE(approvals_of_a_batch_come_in_any_order),
        CASE(a_host_without_a_journal_refuses_what_needs_an_approval),
        CASE(a_deferred_call_is_completed_from_outside),
        CASE(a_deferred_call_may_fail_or_never_end),
        CASE(a_deferral_that_was_not_stored_is_made_again_under_its_key),
        CASE(a_deferral_that_was_not_stored_keeps_the_answer_that_came_for_it),
        CASE(a_call_that_may_have_happened_becomes_a_question),
        CASE(a_long_sleep_puts_the_turn_away_and_is_not_begun_again),
        CASE(a_retry_that_is_far_away_is_a_timer),
        CASE(a_pause_that_is_over_by_the_stores_clock_is_over),
        CASE(a_retry_that_is_due_by_the_stores_clock_is_due),
        CASE(a_turn_that_waits_is_cancelled_by_its_next_owner),
        CASE(a_turn_whose_inputs_timed_out_is_committed_as_timeout),
        CASE(a_deadline_that_fails_the_turn_does_so_after_another_answer),
        CASE(a_cancelled_wait_says_what_is_known),
        CASE(a_long_sleep_is_cancelled_at_once),
        CASE(a_commit_that_a_cancel_came_before_is_made_as_cancelled),
        CASE(a_worker_that_stops_puts_a_waiting_turn_away),
        CASE(a_death_at_any_action_of_a_turn_that_waits_changes_nothing),
        CASE(every_allocation_of_a_turn_that_waits_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
