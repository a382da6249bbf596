/* The driver's step machine: order of steps and effects, recovery by class, ways out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/drive_rig.h"
#include "base/ident.h"

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

/* ---- the order of things ------------------------------------------------------------ */

static void a_turn_with_one_model_call_takes_three_transactions(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    rig->now += 40;
    drig_say(rig, 1, "hello");
    drig_expect(rig, "store 1 settle 1:done\ncommit done records 1\nend\n");
    assert_true(rig->ended);
    assert_int_equal(rig->committed, 2);
    assert_int_equal(rig->active_ms, 40);
    assert_int_equal(rig->tokens, 5);
    assert_non_null(strstr(rig->records[1], "hello"));
}

static void an_effect_starts_only_after_its_intent_is_stored(void **state)
{
    (void)state;
    rig->hold_store = true;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\n");
    drig_pass(rig, 60000);
    drig_expect(rig, ""); /* not before the step is stored */
    drig_store(rig);
    drig_expect(rig, "model 1\n");
}

static void the_answers_of_a_batch_settle_one_by_one(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{\"a\":1}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/pay/1\n"
                     "tool 2/add/1 {\"a\":1}\ntool 2/pay/1 {}\n");
    drig_answer(rig, "pay", "\"paid\"");
    drig_expect(rig, "store 2 settle 2/pay/1:done\n");
    drig_answer(rig, "add", "2");
    drig_expect(rig, "store 3 records 1 settle 2/add/1:done begin 4\nmodel 4\n");
    drig_say(rig, 4, "done");
    drig_expect(rig, "store 4 settle 4:done\ncommit done records 1\nend\n");
}

static void answers_that_come_during_a_step_share_the_next_one(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "put", "{}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/put/1 2/pay/1\n"
                     "tool 2/add/1 {}\ntool 2/put/1 {}\ntool 2/pay/1 {}\n");
    rig->hold_store = true;
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 2 settle 2/add/1:done\n");
    drig_answer(rig, "put", "2");
    drig_answer(rig, "pay", "3");
    drig_expect(rig, "");
    drig_store(rig);
    drig_expect(rig, "store 3 records 1 settle 2/put/1:done 2/pay/1:done begin 4\n");
}

static void a_batch_runs_up_to_its_limit(void **state)
{
    (void)state;
    rig->config.tool_limit = 1;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1\ntool 2/add/1 {}\n");
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 2 settle 2/add/1:done begin 2/pay/1\ntool 2/pay/1 {}\n");
}

static void a_call_that_does_not_fit_goes_back_to_the_model(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{\"a\":\"x\"}", "none", "{}", NULL);
    drig_expect(rig, "store 1 records 2 settle 1:done begin 4\nmodel 4\n");
    assert_non_null(strstr(rig->records[2], "/a: must be of type integer"));
    assert_non_null(strstr(rig->records[2], "there is no tool named none"));
}

/* ---- failures ----------------------------------------------------------------------- */

static void a_recorded_failure_is_retried_under_a_new_attempt(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/put/1:failed\ntimer +1000\n");
    drig_pass(rig, 1000);
    drig_expect(rig, "store 3 begin 2/put/2\ntool 2/put/2 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 4 settle 2/put/2:failed\ntimer +2000\n");
    drig_pass(rig, 2000);
    drig_expect(rig, "store 5 begin 2/put/3\ntool 2/put/3 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 6 settle 2/put/3:failed\ntimer +4000\n");
    drig_pass(rig, 4000);
    drig_expect(rig, "store 7 begin 2/put/4\ntool 2/put/4 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE); /* three retries are all */
    drig_expect(rig, "store 8 records 1 settle 2/put/4:failed begin 4\nmodel 4\n");
}

/* The model's first answer asks for two tools, which are called. */
static void ask_for_two(const char *first, const char *second)
{
    char lines[200];
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, first, "{}", second, "{}", NULL);
    (void)snprintf(lines, sizeof(lines),
                   "store 1 records 1 settle 1:done begin 2/%s/1 2/%s/1\n"
                   "tool 2/%s/1 {}\ntool 2/%s/1 {}\n",
                   first, second, first, second);
    drig_expect(rig, lines);
}

static void other_failures_are_final(void **state)
{
    (void)state;
    ask_for_two("add", "pay");
    drig_fail_tool(rig, "add", HF_RETRY_NEVER);
    drig_expect(rig, "store 2 settle 2/add/1:failed\n");
    drig_fail_tool(rig, "pay", HF_RETRY_SAFE); /* ask is never repeated */
    drig_expect(rig, "store 3 records 1 settle 2/pay/1:failed begin 4\nmodel 4\n");
}

/* A retry has another key: a service behind `put` would do it twice. */
static void a_timeout_is_retried_of_a_safe_tool_and_not_of_a_keyed_one(void **state)
{
    (void)state;
    ask_for_two("add", "put");
    drig_cut_tool(rig, "add", true);
    drig_expect(rig, "store 2 settle 2/add/1:failed\ntimer +1000\n");
    drig_pass(rig, 1000);
    drig_expect(rig, "store 3 begin 2/add/2\ntool 2/add/2 {}\n");
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 4 settle 2/add/2:done\n");
    drig_cut_tool(rig, "put", true);
    drig_expect(rig, "store 5 records 1 settle 2/put/1:failed begin 4\nmodel 4\n");
}

static void a_timeout_of_an_ask_or_probe_tool_is_not_known(void **state)
{
    (void)state;
    ask_for_two("mail", "pay");
    drig_cut_tool(rig, "pay", true);
    drig_expect(rig, "store 2 ask approval:2/pay/1/happened\n");
    drig_cut_tool(rig, "mail", true);
    drig_expect(rig, "store 3 wait approval:2/pay/1/happened "
                     "ask approval:2/mail/1/happened away\nend\n");
    assert_non_null(strstr(drig_wait(rig, "2/pay/1/happened")->asked, "is not known"));
    assert_string_equal(drig_status(rig, "2/pay/1"), "started");
}

static void a_failed_model_call_sleeps_until_its_due_time(void **state)
{
    (void)state;
    char line[64];
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_model_fails(rig, 1);
    while (drig_act(rig))
        ;
    hf_ms due = rig->action.due_ms;
    assert_int_equal(rig->action.kind, HF_DRIVE_TIMER);
    assert_in_range(due - rig->now, 1500, 2000);
    snprintf(line, sizeof(line), "store 1 settle 1:failed\ntimer +%d\n",
             (int)(due - rig->now));
    assert_string_equal(rig->log, line);
    rig->log[0] = '\0';
    drig_kill(rig);
    rig->now += 500; /* a new owner does not begin the sleep again */
    drig_claim(rig);
    snprintf(line, sizeof(line), "timer +%d\n", (int)(due - rig->now));
    drig_expect(rig, line);
    drig_pass(rig, due - rig->now);
    drig_expect(rig, "store 2 begin 3\nmodel 3\n");
}

/* ---- recovery ----------------------------------------------------------------------- */

static void a_lost_model_call_is_made_again_under_its_key(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "model 1\n"); /* its intent is stored: no transaction before it */
    drig_say(rig, 1, "hello");
    drig_expect(rig, "store 1 settle 1:done*\ncommit done records 1\nend\n");
    assert_true(
        rig->entries[0].taken_over); /* a second generation may have been bought */
}

/* What came before is in the journal: a service that knew its keys meets others. */
static void a_turn_that_begins_anew_has_other_keys(void **state)
{
    (void)state;
    rig->effects_past = 7;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 8\nmodel 8\n");
    drig_ask(rig, 8, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 8:done begin 9/put/1\ntool 9/put/1 {}\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "tool 9/put/1 {}\n");
}

static void each_class_is_taken_over_as_declared(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "put", "{}", "mail", "{}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/put/1 2/mail/1 "
                     "2/pay/1\ntool 2/add/1 {}\ntool 2/put/1 {}\ntool 2/mail/1 {}\n"
                     "tool 2/pay/1 {}\n");
    drig_answer(rig, "put", "1");
    drig_expect(rig, "store 2 settle 2/put/1:done\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "store 3 ask approval:2/pay/1/happened\n"
                     "tool 2/add/1 {}\nprobe 2/mail/1\n");
    drig_probe(rig, "mail", HF_PROBE_HAPPENED, "\"sent\"");
    drig_expect(rig, "store 4 settle 2/mail/1:done* wait approval:2/pay/1/happened\n");
    drig_answer(rig, "add", "2");
    drig_expect(rig, "store 5 settle 2/add/1:done* wait approval:2/pay/1/happened away\n"
                     "end\n");
    assert_int_equal(drig_performed(rig, "2/add/1"), 2);
    assert_int_equal(drig_performed(rig, "2/put/1"), 1);
    assert_int_equal(drig_performed(rig, "2/mail/1"), 1);
    assert_int_equal(drig_performed(rig, "2/pay/1"), 1);
}

static void a_probe_decides_whether_a_call_runs_again(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "mail", "{}", NULL);
    drig_expect(rig,
                "store 1 records 1 settle 1:done begin 2/mail/1\ntool 2/mail/1 {}\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "probe 2/mail/1\n");
    drig_probe(rig, "mail", HF_PROBE_NOT_HAPPENED, NULL);
    drig_expect(rig, "tool 2/mail/1 {}\n"); /* the attempt is the same */
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "probe 2/mail/1\n");
    drig_probe(rig, "mail", HF_PROBE_CANNOT_TELL, NULL);
    drig_expect(rig, "store 2 ask approval:2/mail/1/happened away\nend\n");
}

static void a_retry_that_waits_survives_its_worker(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/put/1:failed\ntimer +1000\n");
    drig_kill(rig);
    rig->now += 400;
    drig_claim(rig);
    drig_expect(rig, "timer +600\n");
    drig_pass(rig, 600);
    drig_expect(rig, "store 3 begin 2/put/2\ntool 2/put/2 {}\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_expect(rig, "tool 2/put/2 {}\n"); /* a takeover keeps the attempt */
}

static void a_recorded_outcome_is_replayed_without_performing(void **state)
{
    (void)state;
    char save[sizeof(rig->save)];
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    memcpy(save, rig->save, rig->save_len);
    size_t len = rig->save_len;
    rig->hold_store = true;
    drig_say(rig, 1, "hello");
    drig_expect(rig, "store 1 settle 1:done\n");
    drig_store(rig);
    drig_kill(rig);
    memcpy(rig->save, save, len); /* the journal knows more than the save */
    rig->save_len = len;
    rig->hold_store = false;
    rig->log[0] = '\0';
    drig_claim(rig);
    drig_expect(rig, "store 2\ncommit done records 1\nend\n");
    assert_non_null(strstr(rig->records[1], "hello"));
}

static void another_effect_under_a_known_key_ends_the_turn(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    char *at = strstr(rig->entries[0].envelope, "\"records\":1");
    assert_non_null(at);
    at[10] = '7';
    drig_claim(rig);
    drig_expect(rig, "commit failed records 0\nend\n");
    assert_non_null(strstr(rig->outcome, "effect 1 was recorded with another /records"));
}

static void an_entry_of_a_later_claim_ends_this_one(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    rig->entries[0].entry.fence = 99;
    drig_claim(rig);
    drig_expect(rig, "end\n");
    assert_false(rig->ended);
}

static void a_changed_prompt_does_not_break_a_turn(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_surface *surface = NULL;
    struct hf_setup *old = rig->setup;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    assert_int_equal(hf_surface_new(NULL, (struct hf_span){ "Other.", 6 },
                                    hf_toolset_json(rig->tools), &surface, &err),
                     0);
    struct hf_turn_config config = { .size = sizeof(config),
                                     .alloc = &rig->memory.alloc,
                                     .protocol = hf_protocol_standard(),
                                     .surface = surface,
                                     .model = "model-1",
                                     .turn_budget = 8 };
    assert_int_equal(hf_setup_new(&config, &rig->setup, &err), 0);
    rig->config.setup = rig->setup;
    drig_claim(rig);
    drig_expect(rig, "blob\nmodel 1\n");
    assert_memory_equal(rig->action.request->prompt.at, "Be brief.", 9);
    drig_kill(rig);
    for (size_t i = 0; i < rig->blob_count; i++)
        rig->blobs[i].hash[0] ^= 1; /* they are gone: never silently the new prompt */
    drig_claim(rig);
    drig_expect(rig, "blob\nback +30000 not_found\nend\n");
    hf_setup_free(rig->setup);
    hf_surface_free(surface);
    rig->setup = old;
}

static void a_save_that_is_newer_waits_for_a_newer_worker(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    char *digest = rig->save + rig->save_len - 32;
    rig->save[9] = 2; /* the version */
    drig_claim(rig);
    drig_expect(rig, "back +30000 corrupt\nend\n"); /* its digest is wrong */
    assert_int_equal(hf_sha256(rig->save, rig->save_len - 32, (uint8_t *)digest), 0);
    drig_claim(rig);
    drig_expect(rig, "back +30000 save_newer\nend\n");
    assert_false(rig->ended);
}

/* ---- the store goes away ------------------------------------------------------------ */

static void a_step_waits_for_a_store_that_is_away(void **state)
{
    (void)state;
    rig->hold_store = true;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\n");
    drig_event(rig, HF_DRIVEN_STORED, HF_EUNREACHABLE);
    drig_expect(rig, "timer +100\n");
    drig_pass(rig, 100);
    drig_expect(rig, "store 0 records 1 begin 1\n"); /* the same step */
    drig_event(rig, HF_DRIVEN_STORED, HF_EUNCERTAIN);
    drig_expect(rig, "timer +200\n");
    drig_pass(rig, 200);
    drig_expect(rig, "store 0 records 1 begin 1\n");
    drig_store(rig);
    drig_expect(rig, "model 1\n");
}

static void a_step_that_can_never_be_stored_ends_the_drive(void **state)
{
    (void)state;
    rig->hold_store = true;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\n");
    drig_event(rig, HF_DRIVEN_STORED, HF_EFULL);
    drig_expect(rig, "back +30000 store_full\nend\n");
}

/* ---- ways out ----------------------------------------------------------------------- */

static void a_lost_lease_stops_what_runs_and_stores_nothing(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/pay/1\n"
                     "tool 2/add/1 {}\ntool 2/pay/1 {}\n");
    drig_answer(rig, "pay", "1"); /* answered, and not stored yet */
    drig_event(rig, HF_DRIVEN_LEASE_LOST, 0);
    drig_expect(rig, "stop tool 2/add/1\nend\n");
    assert_int_equal(rig->step, 2);
    assert_string_equal(drig_status(rig, "2/pay/1"), "started");
}

static void a_stop_lets_what_runs_end_and_begins_nothing(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_event(rig, HF_DRIVEN_STOP, 0);
    drig_expect(rig, "");
    drig_ask(rig, 1, "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done\nback +0\nend\n");
    assert_string_equal(drig_status(rig, "2/pay/1"), "");
    drig_claim(rig); /* the next owner begins the call: it is not unknown */
    drig_expect(rig, "store 2 begin 2/pay/1\ntool 2/pay/1 {}\n");
}

static void a_stop_at_the_last_reply_still_commits(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_event(rig, HF_DRIVEN_STOP, 0);
    drig_say(rig, 1, "hello");
    drig_expect(rig, "store 1 settle 1:done\ncommit done records 1\nend\n");
}

static void a_drive_that_gives_up_hands_back_with_the_effect_open(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    rig->now += 2100;
    drig_event(rig, HF_DRIVEN_GIVE_UP, 0);
    drig_expect(rig, "stop model 1\nback +0\nend\n");
    assert_int_equal(rig->active_ms, 2100); /* no step has reported it */
    drig_claim(rig);
    drig_expect(rig, "model 1\n");
}

static void a_sleep_is_handed_back_with_what_is_left_of_it(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_model_fails(rig, 1);
    while (drig_act(rig))
        ;
    hf_ms left = rig->action.due_ms - rig->now;
    char line[64];
    snprintf(line, sizeof(line), "back +%d\nend\n", (int)left);
    rig->log[0] = '\0';
    drig_event(rig, HF_DRIVEN_STOP, 0);
    drig_expect(rig, line);
}

static void a_cancelled_model_call_is_stopped_and_recorded(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_event(rig, HF_DRIVEN_CANCEL, 0);
    drig_expect(
        rig, "stop model 1\nstore 1 settle 1:failed\ncommit cancelled records 0\nend\n");
    assert_true(rig->ended);
}

static void a_cancel_settles_the_model_call_of_a_lost_worker(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_kill(rig);
    drig_claim(rig);
    drig_event(rig, HF_DRIVEN_CANCEL, 0); /* before the drive has come to the call */
    drig_expect(rig, "store 1 settle 1:failed*\ncommit cancelled records 0\nend\n");
    assert_true(rig->ended);
}

static void cancelled_tools_say_what_is_known_of_them(void **state)
{
    (void)state;
    rig->config.tool_limit = 2;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "pay", "{}", "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/pay/1\n"
                     "tool 2/add/1 {}\ntool 2/pay/1 {}\n");
    drig_event(rig, HF_DRIVEN_CANCEL, 0);
    drig_expect(rig, "stop tool 2/add/1\nstop tool 2/pay/1\nstore 2\n");
    drig_cut_tool(rig, "add", false);
    drig_expect(rig, "store 3 settle 2/add/1:failed\n");
    drig_cut_tool(rig, "pay", false);
    drig_expect(rig, "store 4 records 1 settle 2/pay/1:unknown\n"
                     "commit cancelled records 0\nend\n");
}

/* The calls of the batch are in the history: one failed once, one was never begun. */
static void a_cancelled_retry_does_not_say_that_the_call_was_not_started(void **state)
{
    (void)state;
    ask_for_two("add", "put");
    drig_fail_tool(rig, "add", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/add/1:failed\ntimer +1000\n");
    drig_cancel(rig, HF_STATUS_NONE);
    drig_expect(rig, "stop tool 2/put/1\nstore 3\n");
    drig_cut_tool(rig, "put", false);
    drig_expect(rig, "store 4 records 1 settle 2/put/1:failed\n"
                     "commit cancelled records 0\nend\n");
    const char *told = rig->records[rig->record_count - 1];
    assert_non_null(strstr(told, "the call failed, and the turn was cancelled before"));
    assert_null(strstr(told, "not started"));
}

static void a_call_that_is_deferred_after_a_cancel_is_unknown(void **state)
{
    (void)state;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_event(rig, HF_DRIVEN_CANCEL, 0);
    drig_expect(rig, "stop tool 2/put/1\nstore 2\n");
    drig_defer(rig, "put");
    drig_expect(rig, "store 3 records 1 settle 2/put/1:unknown\n"
                     "commit cancelled records 0\nend\n");
}

static void what_is_begun_while_a_step_is_stored_waits_for_the_next(void **state)
{
    (void)state;
    rig->config.tool_limit = 2;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "put", "{}", "mail", "{}", "pay", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1 2/put/1\n"
                     "tool 2/add/1 {}\ntool 2/put/1 {}\n");
    rig->hold_store = true;
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 2 settle 2/add/1:done begin 2/mail/1\n");
    drig_answer(rig, "put", "1"); /* pay is begun, in the step after this one */
    drig_expect(rig, "");
    drig_store(rig);
    drig_expect(rig, "tool 2/mail/1 {}\nstore 3 settle 2/put/1:done begin 2/pay/1\n");
    drig_store(rig);
    drig_expect(rig, "tool 2/pay/1 {}\n");
}

static void a_retry_that_has_no_room_asks_for_no_timer(void **state)
{
    (void)state;
    rig->config.tool_limit = 1;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "add", "{}", "put", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/add/1\ntool 2/add/1 {}\n");
    drig_fail_tool(rig, "add", HF_RETRY_SAFE);
    drig_expect(rig, "store 2 settle 2/add/1:failed begin 2/put/1\ntool 2/put/1 {}\n");
    drig_pass(rig, 1000); /* the retry is due, and put still runs */
    drig_expect(rig, "");
    drig_answer(rig, "put", "1");
    drig_expect(rig, "store 3 settle 2/put/1:done begin 2/add/2\ntool 2/add/2 {}\n");
}

static void without_a_journal_only_the_commit_is_stored(void **state)
{
    (void)state;
    rig->config.host = hf_effect_host_inline();
    drig_claim(rig);
    drig_expect(rig, "model 1\n");
    drig_ask(rig, 1, "add", "{}", NULL);
    drig_expect(rig, "tool 2/add/1 {}\n");
    drig_answer(rig, "add", "1");
    drig_expect(rig, "model 4\n");
    drig_kill(rig);
    drig_claim(rig); /* from the last commit, and it says so */
    drig_expect(rig, "model 1\n");
    assert_non_null(strstr(hf_effect_host_inline()->promise, "begins again"));
    drig_say(rig, 1, "hello");
    drig_expect(rig, "commit done records 2\nend\n");
}

static void a_host_may_ask_for_segments_and_one_effect_at_a_time(void **state)
{
    (void)state;
    static const struct hf_effect_host host = { .name = "engine",
                                                .journaled = true,
                                                .retries = true,
                                                .serial = true,
                                                .segment_steps = 3 };
    rig->config.host = &host;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    drig_ask(rig, 1, "put", "{}", "add", "{}", NULL);
    drig_expect(rig, "store 1 records 1 settle 1:done begin 2/put/1\ntool 2/put/1 {}\n");
    drig_fail_tool(rig, "put", HF_RETRY_SAFE); /* the engine retries, so this is final */
    drig_expect(rig, "store 2 settle 2/put/1:failed begin 2/add/1\ntool 2/add/1 {}\n");
    drig_answer(rig, "add", "1");
    drig_expect(rig, "store 3 records 1 settle 2/add/1:done\nback +0\nend\n");
}

/* ---- deaths and memory --------------------------------------------------------------- */

/* Answers whatever the drive asks for; the same question has the same answer. */
static void serve(void)
{
    const struct hf_drive_action *action = &rig->action;
    if (action->kind == HF_DRIVE_MODEL && action->request->iteration == 0)
        drig_ask(rig, action->id, "add", "{\"a\":1}", "put", "{}", NULL);
    else if (action->kind == HF_DRIVE_MODEL && action->request->iteration == 1)
        drig_ask(rig, action->id, "mail", "{}", NULL);
    else if (action->kind == HF_DRIVE_MODEL)
        drig_say(rig, action->id, "all is done");
    else if (action->kind == HF_DRIVE_TOOL && action->call->probe &&
             drig_performed(rig, "5/mail/1"))
        drig_probe(rig, "mail", HF_PROBE_HAPPENED, "\"mail\"");
    else if (action->kind == HF_DRIVE_TOOL && action->call->probe)
        drig_probe(rig, "mail", HF_PROBE_NOT_HAPPENED, NULL);
    else if (action->kind == HF_DRIVE_TOOL) {
        char json[64];
        snprintf(json, sizeof(json), "\"%s\"", action->call->tool);
        drig_answer(rig, action->call->tool, json);
    } else if (action->kind == HF_DRIVE_TIMER)
        drig_pass(rig, action->due_ms - rig->now);
}

/* Runs the reference turn; the worker dies at its `death`-th action (from 1; 0: never), before
 * or after the store took a step of that action. Returns the number of actions. */
static int run_turn(int death, bool after)
{
    int count = 0;
    rig->hold_store = true;
    for (int guard = 0; !rig->ended && guard < 1000; guard++) {
        if (!rig->drive)
            drig_claim(rig);
        if (!drig_act(rig))
            fail_msg("the turn is stuck");
        count++;
        if (count == death) {
            bool stores = rig->waiting;
            if (stores && after)
                drig_store(rig);
            drig_kill(rig);
            continue;
        }
        if (rig->waiting)
            drig_store(rig);
        else if (rig->drive)
            serve();
    }
    assert_true(rig->ended);
    return count;
}

static void join_records(char *out, size_t room)
{
    out[0] = '\0';
    for (size_t i = 0; i < rig->record_count; i++) {
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s\n", rig->records[i]);
    }
}

static void a_death_at_any_action_changes_no_transcript(void **state)
{
    (void)state;
    static char want[65536], got[65536];
    int total = run_turn(0, false);
    join_records(want, sizeof(want));
    assert_int_equal(rig->record_count, 6);
    for (int death = 1; death <= total; death++)
        for (int after = 0; after < 2; after++) {
            drig_fini(rig);
            drig_init(rig);
            (void)run_turn(death, after);
            join_records(got, sizeof(got));
            if (strcmp(want, got) != 0)
                fail_msg("death at action %d (%s)\n%s", death, after ? "after" : "before",
                         got);
            if (drig_performed(rig, "5/mail/1") != 1)
                fail_msg("death at action %d (%s)\n%s", death, after ? "after" : "before",
                         rig->log);
            assert_true(drig_performed(rig, "2/put/1") <= 2);
        }
}

static void every_allocation_of_a_turn_may_fail(void **state)
{
    (void)state;
    static char want[65536], got[65536];
    (void)run_turn(0, false);
    int64_t total = rig->memory.calls;
    join_records(want, sizeof(want));
    assert_true(total > 100);
    for (int64_t at = 1; at <= total; at++) {
        drig_fini(rig);
        drig_init(rig);
        rig->memory.fail_at = rig->memory.calls + at;
        for (struct hf_err err = { 0 }; !rig->drive;)
            if (drig_try_claim(rig, &err))
                assert_int_equal(err.code, HF_ENOMEM);
        (void)run_turn(0, false);
        join_records(got, sizeof(got));
        if (strcmp(want, got) != 0)
            fail_msg("allocation %d\n%s", (int)at, got);
    }
}

static void a_turn_with_a_model_call_out_is_small(void **state)
{
    (void)state;
    size_t records = 0;
    drig_claim(rig);
    drig_expect(rig, "store 0 records 1 begin 1\nmodel 1\n");
    size_t bytes = hf_drive_bytes(rig->drive, &records);
    assert_in_range(bytes - records, 1, 8192);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_turn_with_one_model_call_takes_three_transactions),
        CASE(an_effect_starts_only_after_its_intent_is_stored),
        CASE(the_answers_of_a_batch_settle_one_by_one),
        CASE(answers_that_come_during_a_step_share_the_next_one),
        CASE(a_batch_runs_up_to_its_limit),
        CASE(a_call_that_does_not_fit_goes_back_to_the_model),
        CASE(a_recorded_failure_is_retried_under_a_new_attempt),
        CASE(other_failures_are_final),
        CASE(a_timeout_is_retried_of_a_safe_tool_and_not_of_a_keyed_one),
        CASE(a_timeout_of_an_ask_or_probe_tool_is_not_known),
        CASE(a_failed_model_call_sleeps_until_its_due_time),
        CASE(a_lost_model_call_is_made_again_under_its_key),
        CASE(a_turn_that_begins_anew_has_other_keys),
        CASE(each_class_is_taken_over_as_declared),
        CASE(a_probe_decides_whether_a_call_runs_again),
        CASE(a_retry_that_waits_survives_its_worker),
        CASE(a_recorded_outcome_is_replayed_without_performing),
        CASE(another_effect_under_a_known_key_ends_the_turn),
        CASE(an_entry_of_a_later_claim_ends_this_one),
        CASE(a_changed_prompt_does_not_break_a_turn),
        CASE(a_save_that_is_newer_waits_for_a_newer_worker),
        CASE(a_step_waits_for_a_store_that_is_away),
        CASE(a_step_that_can_never_be_stored_ends_the_drive),
        CASE(a_lost_lease_stops_what_runs_and_stores_nothing),
        CASE(a_stop_lets_what_runs_end_and_begins_nothing),
        CASE(a_stop_at_the_last_reply_still_commits),
        CASE(a_drive_that_gives_up_hands_back_with_the_effect_open),
        CASE(a_sleep_is_handed_back_with_what_is_left_of_it),
        CASE(a_cancelled_model_call_is_stopped_and_recorded),
        CASE(a_cancel_settles_the_model_call_of_a_lost_worker),
        CASE(cancelled_tools_say_what_is_known_of_them),
        CASE(a_cancelled_retry_does_not_say_that_the_call_was_not_started),
        CASE(a_call_that_is_deferred_after_a_cancel_is_unknown),
        CASE(what_is_begun_while_a_step_is_stored_waits_for_the_next),
        CASE(a_retry_that_has_no_room_asks_for_no_timer),
        CASE(without_a_journal_only_the_commit_is_stored),
        CASE(a_host_may_ask_for_segments_and_one_effect_at_a_time),
        CASE(a_death_at_any_action_changes_no_transcript),
        CASE(every_allocation_of_a_turn_may_fail),
        CASE(a_turn_with_a_model_call_out_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
