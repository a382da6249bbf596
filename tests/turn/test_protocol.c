/* The protocol seam: code cells, driver states, budgets, and protocols that break the
 * rules. */
#include <stdio.h>
#include <string.h>

#include "turn/cells.h"
#include "turn/kit.h"

static void start_cells(struct kit *kit)
{
    kit_init(kit);
    kit->config.protocol = cells_protocol();
    kit_start(kit);
    kit_next(kit);
}

static void answer_cell(struct kit *kit, const struct hf_exec_result *result)
{
    struct hf_exec_result whole = *result;
    whole.size = sizeof(whole);
    assert_int_equal(hf_turn_exec_done(kit->turn, kit->effect.id, &whole, &kit->err), 0);
}

static void exec_driver_state_reaches_the_protocol_again(void **state)
{
    (void)state;
    struct kit kit;
    start_cells(&kit);
    kit_reply_text(&kit, "run: print(1)");
    kit_forget(&kit);
    kit_expect(&kit, "emit token_usage 10 of 10\nexec 2 lua\n");
    assert_string_equal(kit.effect.code.at, "print(1)");
    assert_string_equal(kit.effect.driver->data.at, "ask 0");
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    kit_expect(&kit, "progress 1-2\n"
                     "checkpoint 3 after_work\n");
    assert_string_equal(hf_turn_record(kit.turn, 1)->data.at,
                        "{\"asked\":\"ask 0\",\"calls\":0,\"is\":\"ok\"}");
    kit_fini(&kit);
}

static void checkpoint_round_trips_waiting_exec_driver_state(void **state)
{
    (void)state;
    struct kit kit;
    start_cells(&kit);
    kit_cut(&kit);
    kit_next(&kit);
    assert_string_equal(kit.effect.request->driver->data.at, "ask 0");
    kit_reply_text(&kit, "run: x = 1");
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "exec 2 lua\n");
    assert_string_equal(kit.effect.code.at, "x = 1");
    assert_string_equal(kit.effect.bindings, "b0");
    assert_string_equal(kit.effect.driver->owner, "cells");
    assert_string_equal(kit.effect.driver->data.at, "ask 0");
    kit_fini(&kit);
}

static void an_exec_result_keeps_the_structure_of_its_tool_outcomes(void **state)
{
    (void)state;
    struct kit kit;
    start_cells(&kit);
    kit_reply_text(&kit, "run: f()");
    kit_next(&kit);
    struct hf_failure failure = { .code = "x" };
    struct hf_tool_result calls[3] = {
        { .call_id = "1:1", .tool = "add", .value = kit_span("1") },
        { .call_id = "1:2",
          .tool = "add",
          .outcome = HF_TOOL_FAILURE,
          .failure = &failure },
        { .call_id = "1:3", .tool = "add", .outcome = HF_TOOL_CANCELLED },
    };
    answer_cell(&kit, &(struct hf_exec_result){ .calls = calls, .call_count = 3 });
    kit_forget(&kit);
    kit_expect(&kit, "progress 1-2\n"
                     "checkpoint 3 after_work\n"); /* no tool events leak */
    kit_cut(&kit);
    assert_string_equal(hf_turn_record(kit.turn, 1)->data.at,
                        "{\"asked\":\"ask 0\",\"calls\":3,\"is\":\"ok\"}");
    kit_fini(&kit);
}

static void a_cells_final_value_ends_the_turn(void **state)
{
    (void)state;
    struct kit kit;
    start_cells(&kit);
    kit_reply_text(&kit, "run: finish(1)");
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ .finish = kit_span("{\"v\":1}") });
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_FINAL_VALUE);
    assert_string_equal(hf_turn_outcome(kit.turn)->value.at, "{\"v\":1}");
    kit_fini(&kit);
}

static void cancel_waits_for_the_cell(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_evidence evidence = { .request_id = "r1" };
    start_cells(&kit);
    kit_reply_text(&kit, "run: f()");
    kit_next(&kit);
    assert_int_equal(hf_turn_cancel(kit.turn, &evidence, &kit.err), 0);
    assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_EXEC);
    kit_cut(&kit);
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_CANCELLED);
    assert_int_equal(hf_turn_record_count(kit.turn), 2); /* what it did is recorded */
    kit_fini(&kit);
}

static void a_forced_end_records_the_cell_as_unknown(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_exec_result lie = { .size = sizeof(lie), .unknown = true };
    start_cells(&kit);
    kit_reply_text(&kit, "run: f()");
    kit_next(&kit);
    assert_int_equal(hf_turn_exec_done(kit.turn, 2, &lie, &kit.err), HF_EINVAL);
    assert_int_equal(hf_turn_fail(kit.turn, "stop", "now", &kit.err), 0);
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_RUNTIME_ERROR);
    assert_string_equal(hf_turn_record(kit.turn, 1)->data.at,
                        "{\"asked\":\"ask 0\",\"calls\":0,\"is\":\"unknown\"}");
    kit_fini(&kit);
}

static void a_protocol_may_take_cut_replies(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = { .content = kit_span("cut") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &part,
                                        .part_count = 1,
                                        .reason = HF_REASON_OUTPUT_LIMIT };
    start_cells(&kit);
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &response, &kit.err), 0);
    assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_CHECKPOINT);
    kit_fini(&kit);
}

static void stall(struct kit *kit, bool cut)
{
    kit_reply_text(kit, "stall");
    if (cut)
        kit_cut(kit);
    kit_next(kit);
    if (kit->effect.kind == HF_EFFECT_CHECKPOINT) {
        kit_nothing(kit);
        kit_next(kit);
    }
}

static void the_no_progress_budget_is_12_by_default_and_survives_restore(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit.config.turn_budget = HF_UNBOUNDED;
    kit_start(&kit);
    kit_next(&kit);
    for (int i = 0; i < 11; i++) {
        stall(&kit, true);
        assert_int_equal(kit.effect.kind, HF_EFFECT_LLM_CALL);
    }
    stall(&kit, true);
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_NO_PROGRESS);
    kit_fini(&kit);
}

static void a_success_resets_the_no_progress_count_and_unbounded_never_ends(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit.config.turn_budget = HF_UNBOUNDED;
    kit.config.no_progress_budget = 2;
    kit_start(&kit);
    kit_next(&kit);
    stall(&kit, false);
    kit_reply_text(&kit, "run: ok");
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    stall(&kit, false);
    assert_null(hf_turn_outcome(kit.turn));
    stall(&kit, false);
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_NO_PROGRESS);
    kit_fini(&kit);

    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit.config.turn_budget = HF_UNBOUNDED;
    kit.config.no_progress_budget = HF_UNBOUNDED;
    kit_start(&kit);
    kit_next(&kit);
    for (int i = 0; i < 50; i++)
        stall(&kit, false);
    assert_null(hf_turn_outcome(kit.turn));
    kit_fini(&kit);
}

static void progress_is_empty_when_only_the_iteration_advanced(void **state)
{
    (void)state;
    struct kit kit;
    start_cells(&kit);
    kit_reply_text(&kit, "run: a");
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_text(&kit, "stall"); /* no record, but another iteration */
    kit_expect(&kit,
               "emit token_usage 10 of 20\nprogress 2-2\ncheckpoint 5 after_work\n");
    kit_fini(&kit);
}

static void the_grace_turn_is_given_once_also_across_a_restore(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit.config.turn_budget = 1;
    kit.config.limit_text = "Last one.";
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "run: a");
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    kit_cut(&kit);
    kit_next(&kit);
    assert_int_equal(hf_turn_record_count(kit.turn), 3);
    assert_string_equal(kit_part(&kit, 2, 0), "Last one.");
    assert_string_equal(hf_turn_record(kit.turn, 2)->message->id, "t1.1.limit");
    kit_nothing(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "run: b");
    kit_next(&kit);
    answer_cell(&kit, &(struct hf_exec_result){ 0 });
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_MAX_TURNS);
    kit_fini(&kit);
}

static void input_after_the_grace_turn_ends_at_the_limit(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = { .content = kit_span("more") };
    struct hf_message message = kit_message(NULL, HF_ROLE_USER, &part);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = 1 };
    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit.config.turn_budget = 1;
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "one");
    kit_next(&kit);
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err), 0);
    kit_forget(&kit);
    kit_expect(&kit, "progress 1-4\n"
                     "emit llm_request\n"
                     "llm 3 records=4\n"); /* grace */
    kit_reply_text(&kit, "two");
    kit_next(&kit);
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 4, &delivery, &kit.err), 0);
    kit_forget(&kit);
    kit_expect(&kit, "progress 4-6\nemit turn_outcome max_turns\nemit done\n"
                     "done max_turns 6-6\n");
    kit_fini(&kit);
}

/* Protocols that break the rules */

static int do_nothing(const struct hf_protocol *protocol, struct hf_move *move,
                      struct hf_err *err)
{
    (void)protocol;
    (void)move;
    (void)err;
    return 0;
}

static int start_twice(const struct hf_protocol *protocol, struct hf_move *move,
                       struct hf_err *err)
{
    (void)protocol;
    int rc = hf_act_start_llm(move, true, NULL, err);
    return rc ? rc : hf_act_checkpoint(move, HF_CHECKPOINT_AFTER_WORK, NULL, err);
}

static int append_late(const struct hf_protocol *protocol, struct hf_move *move,
                       struct hf_err *err)
{
    (void)protocol;
    int rc = hf_act_start_llm(move, true, NULL, err);
    return rc ? rc : hf_act_event(move, "late", kit_span("{}"), err);
}

static int lend_state(const struct hf_protocol *protocol, struct hf_move *move,
                      struct hf_err *err)
{
    (void)protocol;
    struct hf_driver_state driver = { .owner = "another", .data = kit_span("x") };
    return hf_act_start_llm(move, true, &driver, err);
}

static void a_protocol_that_breaks_the_rules_is_refused_and_harms_nothing(void **state)
{
    (void)state;
    static int (*const prepares[])(const struct hf_protocol *, struct hf_move *,
                                   struct hf_err *) = { do_nothing, start_twice,
                                                        append_late, lend_state };
    for (size_t i = 0; i < 4; i++) {
        struct kit kit;
        struct hf_protocol_ops ops = *hf_protocol_standard()->ops;
        struct hf_protocol protocol = { .ops = &ops };
        ops.prepare = prepares[i];
        kit_init(&kit);
        kit.config.protocol = &protocol;
        kit_start(&kit);
        for (int again = 0; again < 2; again++)
            assert_int_equal(hf_turn_poll(kit.turn, &kit.effect, &kit.err), HF_EPROTOCOL);
        assert_int_equal(hf_turn_state(kit.turn), HF_TURN_PREPARING);
        assert_int_equal(hf_turn_record_count(kit.turn), 1);
        assert_int_equal(hf_turn_fail(kit.turn, "protocol", "broken", &kit.err), 0);
        kit_expect(&kit, "emit error host protocol\nemit turn_outcome runtime_error\n"
                         "emit done\ndone runtime_error 0-1 broken\n");
        kit_fini(&kit);
    }
}

static int break_results(const struct hf_protocol *protocol, struct hf_move *move,
                         const struct hf_tool_call *calls, size_t count,
                         struct hf_err *err)
{
    (void)protocol;
    (void)move;
    (void)calls;
    (void)count;
    (void)err;
    return 0;
}

static void a_lever_works_even_when_the_protocol_does_not(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_protocol_ops ops = *hf_protocol_standard()->ops;
    struct hf_protocol protocol = { .ops = &ops };
    ops.tools_done = break_results;
    kit_init(&kit);
    kit.config.protocol = &protocol;
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    struct hf_tool_result result = { .call_id = "c1", .value = kit_span("1") };
    assert_int_equal(kit_results(&kit, 2, &result, 1), HF_EPROTOCOL);
    assert_false(kit.effect.calls[0].answered);
    assert_int_equal(hf_turn_fail(kit.turn, "x", "y", &kit.err), 0);
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_DONE);
    kit_fini(&kit);
}

static int start_doubled(const struct hf_protocol *protocol, struct hf_move *move,
                         const struct hf_llm_response *response,
                         const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)protocol;
    (void)driver;
    (void)response;
    static const struct hf_tool_result known = { .call_id = "x", .value = { "1", 1 } };
    struct hf_tool_call calls[6] = {
        { .call_id = "same", .tool = "add", .args = kit_span("{}") },
        { .call_id = "same", .tool = "add", .args = kit_span("{}") },
        { .tool = "sub", .args = kit_span("{broken") },
        { .call_id = hf_move_call_id(move), .args = kit_span("{}") },
        { .call_id = hf_move_call_id(move), .tool = "sub", .args = kit_span("1e400") },
        { .call_id = "x", .tool = "add", .answered = true, .result = &known },
    };
    return hf_act_start_tools(move, calls, 6, err);
}

static void calls_that_a_protocol_made_are_repaired_too(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_protocol_ops ops = *hf_protocol_standard()->ops;
    struct hf_protocol protocol = { .ops = &ops };
    ops.llm_done = start_doubled;
    kit_init(&kit);
    kit.config.protocol = &protocol;
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "go");
    kit_next(&kit);
    const struct hf_tool_call *calls = kit.effect.calls;
    assert_int_equal(kit.effect.call_count, 6);
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(calls[i].call_id, calls[j].call_id);
    assert_false(calls[0].answered || calls[1].answered || calls[4].answered);
    assert_string_equal(calls[2].result->failure->code, "invalid_arguments");
    assert_string_equal(calls[3].result->failure->code, "tool_name_missing");
    /* Two were asked for by the protocol, and stay: the first ids of the turn. */
    assert_string_equal(calls[3].call_id, "cjqysgh0iopgi1gvmrgcktefk");
    assert_string_equal(calls[4].call_id, "ci0k1doencvsg2cwfpud2nzf4");
    assert_string_equal(calls[0].call_id, "c0w3syn4vlumif3fhxy1zarqu");
    assert_string_equal(calls[5].result->call_id, calls[5].call_id);
    char ids[3][32];
    for (size_t i = 0; i < 3; i++)
        snprintf(ids[i], sizeof(ids[i]), "%s", calls[i < 2 ? i : 4].call_id);
    kit_cut(&kit);
    kit_next(&kit);
    for (size_t i = 0; i < 3; i++)
        kit_success(&kit, ids[i], "1");
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_CHECKPOINT);
    kit_fini(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_driver_state_reaches_the_protocol_again),
        cmocka_unit_test(checkpoint_round_trips_waiting_exec_driver_state),
        cmocka_unit_test(an_exec_result_keeps_the_structure_of_its_tool_outcomes),
        cmocka_unit_test(a_cells_final_value_ends_the_turn),
        cmocka_unit_test(cancel_waits_for_the_cell),
        cmocka_unit_test(a_forced_end_records_the_cell_as_unknown),
        cmocka_unit_test(a_protocol_may_take_cut_replies),
        cmocka_unit_test(the_no_progress_budget_is_12_by_default_and_survives_restore),
        cmocka_unit_test(a_success_resets_the_no_progress_count_and_unbounded_never_ends),
        cmocka_unit_test(progress_is_empty_when_only_the_iteration_advanced),
        cmocka_unit_test(the_grace_turn_is_given_once_also_across_a_restore),
        cmocka_unit_test(input_after_the_grace_turn_ends_at_the_limit),
        cmocka_unit_test(a_protocol_that_breaks_the_rules_is_refused_and_harms_nothing),
        cmocka_unit_test(calls_that_a_protocol_made_are_repaired_too),
        cmocka_unit_test(a_lever_works_even_when_the_protocol_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
