/* The machine with the standard protocol: what comes out, in which order, and what is
 * refused. */
#include <string.h>

#include "turn/kit.h"

static void first_effect_is_the_model_call_with_id_1(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_expect(&kit, "progress 0-1\n"
                     "emit llm_request\n"
                     "llm 1 records=1\n");
    assert_string_equal(kit.effect.request->model, "model-1");
    assert_int_equal(kit.effect.request->attempt, 1);
    kit_expect(&kit, "none\n");
    kit_fini(&kit);
}

static void finish_through_an_empty_before_completion_checkpoint(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_text(&kit, "hello");
    kit_expect(&kit, "emit token_usage 10 of 10\nemit text_delta hello\n"
                     "emit llm_response hello\ncheckpoint 2 before_completion\n");
    kit_nothing(&kit);
    assert_false(hf_turn_is_done(kit.turn));
    kit_expect(&kit, "emit turn_outcome assistant_message\n"
                     "emit done\n"
                     "done assistant_message 1-1 hello\n");
    assert_true(hf_turn_is_done(kit.turn));
    kit_expect(&kit, "none\n");
    kit_fini(&kit);
}

static void done_carries_the_unreported_tail(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    assert_int_equal(hf_turn_fail(kit.turn, "host", "no", &kit.err), 0);
    kit_next(&kit);
    assert_int_equal(kit.effect.from, 0); /* the input was in no progress */
    assert_int_equal(kit.effect.to, 1);
    kit_fini(&kit);
}

static void progress_comes_before_the_effect_and_carries_only_new_records(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_expect(&kit, "emit token_usage 10 of 10\n"
                     "emit llm_response\n"
                     "progress 1-2\n"
                     "tools 2 c1:add\n");
    kit_success(&kit, "c1", "3");
    kit_expect(&kit,
               "emit tool_call c1 success\nprogress 2-3\ncheckpoint 3 after_work\n");
    kit_nothing(&kit);
    kit_expect(&kit, "emit llm_request\nllm 4 records=3\n");
    assert_int_equal(kit.effect.iteration, 1);
    kit_fini(&kit);
}

static void checkpoint_message_resumes_with_progress_before_the_next_call(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "one moment");
    kit_next(&kit);
    kit_forget(&kit);
    struct hf_part part = { .kind = HF_PART_TEXT, .content = kit_span("also this") };
    struct hf_message message = kit_message(NULL, HF_ROLE_USER, &part);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = 1 };
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err), 0);
    kit_expect(&kit, "progress 1-3\n"
                     "emit llm_request\n"
                     "llm 3 records=3\n");
    assert_int_equal(kit.effect.iteration, 1);
    assert_string_equal(kit_part(&kit, 1, 0), "one moment"); /* the answer is not lost */
    assert_string_equal(kit_part(&kit, 2, 0), "also this");
    assert_string_equal(hf_turn_record(kit.turn, 2)->message->id, "t1.0.checkpoint");
    kit_fini(&kit);
}

static void answer_with(struct kit *kit, enum hf_reason reason,
                        const struct hf_usage *usage)
{
    struct hf_part part = { .kind = HF_PART_TEXT, .content = kit_span("part") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &part,
                                        .part_count = 1,
                                        .reason = reason,
                                        .usage = *usage };
    assert_int_equal(hf_turn_llm_done(kit->turn, kit->effect.id, &response, &kit->err),
                     0);
}

static void output_limit_ends_incomplete_without_an_assistant_message(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    answer_with(&kit, HF_REASON_OUTPUT_LIMIT,
                &(struct hf_usage){ .input = 5, .output = 9 });
    kit_expect(&kit, "emit token_usage 5 of 5\n"
                     "emit text_delta part\n"
                     "emit llm_response\n"
                     "emit error llm_provider output_limit\n"
                     "emit turn_outcome incomplete\n"
                     "emit done\n"
                     "done incomplete 1-1 output_limit\n");
    assert_int_equal(hf_turn_record_count(kit.turn), 1);
    kit_fini(&kit);
}

static void zero_output_at_95_percent_of_the_window_is_context_overflow(void **state)
{
    (void)state;
    static const struct {
        int64_t input;
        int64_t cached;
        int64_t output;
        enum hf_outcome_kind kind;
    } cases[] = {
        { 950, 0, 0, HF_OUTCOME_PROVIDER_ERROR },
        { 50, 900, 0, HF_OUTCOME_PROVIDER_ERROR }, /* cached input counts */
        { 949, 0, 0, HF_OUTCOME_INCOMPLETE },
        { 950, 0, 1, HF_OUTCOME_INCOMPLETE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kit kit;
        kit_init(&kit);
        kit.config.max_context_tokens = 1000;
        kit_start(&kit);
        kit_next(&kit);
        answer_with(&kit, HF_REASON_OUTPUT_LIMIT,
                    &(struct hf_usage){ .input = cases[i].input,
                                        .cache_read = cases[i].cached,
                                        .output = cases[i].output });
        assert_int_equal(hf_turn_outcome(kit.turn)->kind, cases[i].kind);
        kit_fini(&kit);
    }
}

static void context_overflow_filter_and_provider_error_end_as_provider_error(void **state)
{
    (void)state;
    static const enum hf_reason reasons[] = { HF_REASON_CONTEXT_OVERFLOW,
                                              HF_REASON_CONTENT_FILTER,
                                              HF_REASON_PROVIDER_ERROR };
    for (size_t i = 0; i < 3; i++) {
        struct kit kit;
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        answer_with(&kit, reasons[i], &(struct hf_usage){ .input = 1 });
        assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_PROVIDER_ERROR);
        kit_fini(&kit);
    }
}

static void prompt_overflow_with_negative_output_fails_without_a_usage_event(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    answer_with(&kit, HF_REASON_STOP,
                &(struct hf_usage){ .input = INT64_MAX, .cache_read = 1, .output = -5 });
    kit_expect(&kit, "emit error token_usage_accounting token_usage_overflow\n"
                     "emit turn_outcome runtime_error\n"
                     "emit done\n"
                     "done runtime_error 1-1 the token counter prompt overflows\n");
    assert_int_equal(hf_turn_usage(kit.turn)->input, 0);
    kit_fini(&kit);
}

static void usage_over_several_calls_overflows_as_an_outcome(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    struct hf_part call = { .kind = HF_PART_TOOL_CALL,
                            .call_id = "c1",
                            .tool = "add",
                            .content = kit_span("{}") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &call,
                                        .part_count = 1,
                                        .reason = HF_REASON_TOOL_USE,
                                        .usage = { .input = INT64_MAX } };
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &response, &kit.err), 0);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    assert_int_equal(hf_turn_llm_done(kit.turn, 4, &response, &kit.err), 0);
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_RUNTIME_ERROR);
    assert_string_equal(hf_turn_outcome(kit.turn)->text.at,
                        "the token counter input overflows");
    kit_fini(&kit);
}

static void usage_add_is_all_or_nothing(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_usage sum = { .input = 1, .reasoning = INT64_MAX };
    struct hf_usage more = { .input = 1, .reasoning = 1 };
    assert_int_equal(hf_usage_add(&sum, &more, &err), HF_EOVERFLOW);
    assert_string_equal(err.field, "reasoning");
    assert_int_equal(sum.input, 1);
    more.reasoning = 0;
    assert_int_equal(hf_usage_add(&sum, &more, &err), 0);
    assert_int_equal(sum.input, 2);
}

static void prompt_subtotal_is_checked_by_itself(void **state)
{
    (void)state;
    int64_t tokens = 7;
    struct hf_usage usage = { .input = INT64_MAX, .cache_write = 1, .output = -1 };
    assert_int_equal(hf_usage_total(&usage, &tokens, NULL), HF_EOVERFLOW);
    assert_int_equal(tokens, 7);
    usage.cache_write = 0;
    assert_int_equal(hf_usage_total(&usage, &tokens, NULL), 0);
    assert_int_equal(tokens, INT64_MAX - 1);
}

static void first_sync_is_host_only_and_later_ones_replace_prompt_and_tools(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_surface *next = NULL;
    kit_init(&kit);
    kit.config.sync = true;
    kit_start(&kit);
    kit_expect(&kit, "sync 1 update=0\n");
    assert_int_equal(hf_turn_synced(kit.turn, 1, NULL, &kit.err), 0);
    kit_expect(&kit, "progress 0-1\n"
                     "emit llm_request\n"
                     "llm 2 records=1\n");
    assert_string_equal(kit.effect.request->prompt.at, "You help.");
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "sync 5 update=1\n");
    assert_int_equal(hf_surface_new(&kit.memory.alloc, kit_span("New."),
                                    kit_span("[{\"name\":\"only\"}]"), &next, &kit.err),
                     0);
    assert_int_equal(hf_turn_synced(kit.turn, 5, next, &kit.err), 0);
    kit_expect(&kit, "emit llm_request\nllm 6 records=3\n");
    assert_string_equal(kit.effect.request->prompt.at, "New.");
    assert_string_equal(kit.effect.request->tools.at, "[{\"name\":\"only\"}]");
    hf_surface_free(next);
    kit_fini(&kit);
}

static void a_failed_sync_ends_as_runtime_error(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.sync = true;
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_sync_failed(kit.turn, 1, "no tools today", &kit.err), 0);
    kit_expect(&kit, "emit error execution_surface sync_failed\n"
                     "emit turn_outcome runtime_error\nemit done\n"
                     "done runtime_error 0-1 no tools today\n");
    kit_fini(&kit);
}

static void a_bounded_budget_ends_exactly_at_n(void **state)
{
    (void)state;
    for (int64_t budget = 1; budget <= 3; budget++) {
        struct kit kit;
        int64_t calls = 0;
        kit_init(&kit);
        kit.config.turn_budget = budget;
        kit_start(&kit);
        for (kit_next(&kit); kit.effect.kind == HF_EFFECT_LLM_CALL; kit_next(&kit)) {
            char id[8] = { 'c', (char)('0' + calls++), 0 };
            kit_reply_calls(&kit, id, NULL);
            kit_next(&kit);
            kit_success(&kit, id, "1");
            kit_next(&kit);
            if (kit.effect.kind == HF_EFFECT_CHECKPOINT)
                kit_nothing(&kit);
        }
        assert_int_equal(calls, budget);
        assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_MAX_TURNS);
        kit_fini(&kit);
    }
}

static void an_unbounded_budget_never_ends_the_turn(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.turn_budget = HF_UNBOUNDED;
    kit_start(&kit);
    for (int i = 0; i < 300; i++) {
        char id[8] = { 'c', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                       (char)('0' + i % 10), 0 };
        kit_next(&kit);
        assert_int_equal(kit.effect.kind, HF_EFFECT_LLM_CALL);
        kit_reply_calls(&kit, id, NULL);
        kit_next(&kit);
        kit_success(&kit, id, "1");
        kit_next(&kit);
        kit_nothing(&kit);
        kit_forget(&kit);
    }
    kit_fini(&kit);
}

static void a_budget_must_be_chosen_and_sane(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_setup *setup = NULL;
    kit_init(&kit);
    kit_start(&kit);
    static const int64_t bad[] = { 0, -2, INT64_MIN };
    for (size_t i = 0; i < 3; i++) {
        kit.config.turn_budget = bad[i];
        assert_int_equal(hf_setup_new(&kit.config, &setup, &kit.err), HF_EINVAL);
        assert_string_equal(kit.err.field, "turn_budget");
    }
    kit_fini(&kit);
}

static void a_response_that_does_not_match_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes before = { 0 };
    struct hf_bytes after = { 0 };
    kit_init(&kit);
    kit_start(&kit);
    struct hf_llm_response response = { .size = sizeof(response) };
    struct hf_tool_result result = { .call_id = "c1" };
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &response, &kit.err), HF_ESTALE);
    kit_next(&kit);
    kit_save(&kit, &before);
    assert_int_equal(hf_turn_llm_done(kit.turn, 2, &response, &kit.err), HF_ESTALE);
    assert_int_equal(hf_turn_llm_done(kit.turn, 0, &response, &kit.err), HF_ESTALE);
    assert_int_equal(kit_results(&kit, 1, &result, 1), HF_ERESPONSE);
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 1, NULL, &kit.err), HF_ERESPONSE);
    assert_int_equal(hf_turn_synced(kit.turn, 1, NULL, &kit.err), HF_ERESPONSE);
    assert_int_equal(hf_turn_sleep_over(kit.turn, 1, &kit.err), HF_ERESPONSE);
    kit_save(&kit, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    hf_bytes_free(&before);
    hf_bytes_free(&after);
    kit_reply_text(&kit, "fine");
    kit_fini(&kit);
}

static void a_response_after_the_end_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    assert_int_equal(hf_turn_fail(kit.turn, "boom", "it broke", &kit.err), 0);
    struct hf_llm_response response = { .size = sizeof(response) };
    struct hf_evidence evidence = { .request_id = "r" };
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &response, &kit.err), HF_EFINISHED);
    assert_int_equal(hf_turn_cancel(kit.turn, &evidence, &kit.err), HF_EFINISHED);
    assert_int_equal(hf_turn_fail(kit.turn, "x", "y", &kit.err), HF_EFINISHED);
    kit_fini(&kit);
}

static void a_mismatched_response_keeps_the_redelivery(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_forget(&kit);
    struct hf_llm_response response = { .size = sizeof(response) };
    assert_int_equal(hf_turn_llm_done(kit.turn, 9, &response, &kit.err), HF_ESTALE);
    kit_expect(&kit, "emit attempt_reset the turn was restored\n"
                     "llm 1 records=1\n");
    kit_fini(&kit);
}

static void an_effect_need_not_be_polled_to_be_answered(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    struct hf_tool_result result = { .call_id = "c1", .value = kit_span("1") };
    assert_int_equal(kit_results(&kit, 2, &result, 1), 0);
    kit_forget(&kit);
    kit_expect(&kit, "emit token_usage 10 of 10\n"
                     "emit llm_response\n"
                     "progress 1-2\n"
                     "emit tool_call c1 success\n"
                     "progress 2-3\n"
                     "checkpoint 3 after_work\n");
    kit_fini(&kit);
}

static struct hf_llm_error transient(void)
{
    return (struct hf_llm_error){ .size = sizeof(struct hf_llm_error),
                                  .kind = HF_LLM_TRANSPORT,
                                  .transient = true,
                                  .charge_safe = true,
                                  .message = kit_span("reset") };
}

static void a_transient_failure_sleeps_and_repeats_the_request_under_a_new_id(
    void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    struct hf_llm_error error = transient();
    error.text_streamed = true;
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_SLEEP);
    assert_int_equal(kit.effect.id, 2);
    assert_in_range(kit.effect.duration_ms, 1500, 2000);
    assert_non_null(strstr(kit.log, "emit attempt_reset reset\nsleep 2 "));
    assert_int_equal(hf_turn_sleep_noted(kit.turn, 2, 1000000, &kit.err), 0);
    assert_int_equal(hf_turn_sleep_noted(kit.turn, 2, 1000000, &kit.err), 0);
    assert_int_equal(hf_turn_sleep_noted(kit.turn, 2, 2000000, &kit.err), HF_EANSWERED);
    kit_cut(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.due_ms, 1000000); /* noted once, kept for ever */
    assert_int_equal(hf_turn_sleep_over(kit.turn, 2, &kit.err), 0);
    kit_forget(&kit);
    kit_expect(&kit, "llm 3 records=1\n");
    assert_int_equal(kit.effect.request->attempt, 2);
    assert_int_equal(kit.effect.iteration, 0); /* a retry spends no turn budget */
    kit_fini(&kit);
}

static void retries_end_after_four_attempts_with_growing_sleeps(void **state)
{
    (void)state;
    struct kit kit;
    static const int64_t most[] = { 2000, 4000, 8000 };
    kit_init(&kit);
    kit_start(&kit);
    struct hf_llm_error error = transient();
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kit_next(&kit), 2 * i + 1);
        assert_int_equal(hf_turn_llm_failed(kit.turn, 2 * i + 1, &error, &kit.err), 0);
        kit_next(&kit);
        assert_in_range(kit.effect.duration_ms, most[i] - most[i] / 4, most[i]);
        assert_int_equal(hf_turn_sleep_over(kit.turn, 2 * i + 2, &kit.err), 0);
    }
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_llm_failed(kit.turn, 7, &error, &kit.err), 0);
    kit_expect(&kit, "emit error llm_provider -\n"
                     "emit turn_outcome provider_error\n"
                     "emit done\n"
                     "done provider_error 1-1 reset\n");
    kit_fini(&kit);
}

static void only_transient_and_charge_safe_failures_are_repeated(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct kit kit;
        struct hf_llm_error error = transient();
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        error.transient = i != 0;
        error.charge_safe = i != 1;
        error.retry_after_ms = i == 2 ? 60001 : 0;
        assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
        assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_PROVIDER_ERROR);
        kit_fini(&kit);
    }
}

static void a_provider_may_ask_for_a_longer_wait(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_llm_error error = transient();
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    error.retry_after_ms = 60000;
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
    kit_next(&kit);
    assert_int_equal(kit.effect.duration_ms, 60000);
    kit_fini(&kit);
}

static void a_failed_call_that_was_cancelled_ends_cancelled(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_llm_error error = transient();
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    error.cancelled = true;
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
    assert_int_equal(hf_turn_outcome(kit.turn)->kind, HF_OUTCOME_CANCELLED);
    assert_string_equal(hf_turn_outcome(kit.turn)->evidence->request_id,
                        "provider_cancelled.0");
    kit_fini(&kit);
}

static const struct hf_evidence by_user = { .request_id = "r7", .origin = "user" };

static void cancel_gives_up_a_model_call_that_is_out(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
    kit_expect(&kit, "cancel_llm 1\n"
                     "emit turn_outcome cancelled\n"
                     "emit done\n"
                     "done cancelled 1-1\n");
    assert_string_equal(kit.effect.outcome->evidence->request_id, "r7");
    struct hf_llm_response late = { .size = sizeof(late) };
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &late, &kit.err), HF_EFINISHED);
    kit_fini(&kit);
}

static void cancel_waits_for_tools_and_keeps_their_results(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
    assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), HF_EANSWERED);
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c1 success\n"
                     "cancel_tools 2\n"
                     "none\n");
    kit_cut(&kit); /* the request is saved */
    kit_expect(&kit, "tools 2 c1:add* c2:sub\n");
    kit_success(&kit, "c2", "2");
    kit_expect(&kit, "emit tool_call c2 success\n"
                     "progress 2-3\n"
                     "emit turn_outcome cancelled\n"
                     "emit done\n"
                     "done cancelled 3-3\n");
    bool safe = false;
    assert_int_equal(hf_turn_resumable(kit.turn, &safe, &kit.err), 0);
    assert_true(safe);
    kit_fini(&kit);
}

static void cancel_ends_a_sleep_and_a_checkpoint_and_a_new_turn_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct kit kit;
        struct hf_llm_error error = transient();
        kit_init(&kit);
        kit_start(&kit);
        if (i > 0)
            kit_next(&kit);
        if (i == 1)
            assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
        if (i == 2)
            kit_reply_text(&kit, "hello");
        if (i > 0)
            kit_next(&kit);
        kit_forget(&kit);
        assert_int_equal(hf_turn_cancel(kit.turn, &by_user, &kit.err), 0);
        kit_expect(&kit, i == 0 ? "emit turn_outcome cancelled\n"
                                  "emit done\n"
                                  "done cancelled 0-1\n"
                                : "emit turn_outcome cancelled\n"
                                  "emit done\n"
                                  "done cancelled 1-1\n");
        kit_fini(&kit);
    }
}

static void a_forced_end_marks_open_calls_unknown(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_success(&kit, "c2", "2");
    kit_forget(&kit);
    assert_int_equal(hf_turn_fail(kit.turn, "shutdown", "host stops", &kit.err), 0);
    kit_expect(&kit, "emit tool_call c2 success\n"
                     "cancel_tools 2\n"
                     "emit error host shutdown\n"
                     "emit tool_call c1 unknown\n"
                     "progress 2-3\n"
                     "emit turn_outcome runtime_error\n"
                     "emit done\n"
                     "done runtime_error 3-3 host stops\n");
    assert_string_equal(kit_part(&kit, 2, 0),
                        "outcome unknown: the turn was ended before the tool answered");
    assert_string_equal(kit_part(&kit, 2, 1), "2");
    kit_fini(&kit);
}

static void finish_with_a_call_out_gives_it_up(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    struct hf_outcome outcome = { .kind = HF_OUTCOME_FINAL_VALUE,
                                  .value = kit_span("42") };
    assert_int_equal(hf_turn_finish(kit.turn, &outcome, &kit.err), 0);
    kit_expect(&kit, "cancel_llm 1\n"
                     "emit turn_outcome final_value\n"
                     "emit done\n"
                     "done final_value 1-1\n");
    assert_string_equal(kit.effect.outcome->value.at, "42");
    kit_fini(&kit);
}

static void a_trace_yields_logs(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.trace = true;
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_text(&kit, "hello");
    kit_expect(&kit, "emit token_usage 10 of 10\nlog\nemit text_delta hello\n"
                     "emit llm_response hello\ncheckpoint 2 before_completion\n");
    kit_fini(&kit);
}

static void misuse_at_a_checkpoint_is_refused_and_harmless(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "hello");
    kit_next(&kit);
    struct hf_part part = { .kind = HF_PART_TEXT, .content = kit_span("x") };
    struct hf_part bad = { .kind = HF_PART_TEXT, .content = { "\xff", 1 } };
    struct hf_message message = kit_message(NULL, HF_ROLE_ASSISTANT, &part);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = 1 };
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err),
                     HF_EINVAL);
    assert_string_equal(kit.err.field, "role");
    message.role = (enum hf_role)9;
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err),
                     HF_EINVAL);
    message = kit_message(NULL, HF_ROLE_USER, &bad);
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err),
                     HF_EINVAL);
    assert_string_equal(kit.err.field, "content");
    delivery.size = 3;
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err),
                     HF_EINVAL);
    assert_int_equal(hf_turn_record_count(kit.turn), 1);
    kit_nothing(&kit);
    kit_fini(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_effect_is_the_model_call_with_id_1),
        cmocka_unit_test(finish_through_an_empty_before_completion_checkpoint),
        cmocka_unit_test(done_carries_the_unreported_tail),
        cmocka_unit_test(progress_comes_before_the_effect_and_carries_only_new_records),
        cmocka_unit_test(checkpoint_message_resumes_with_progress_before_the_next_call),
        cmocka_unit_test(output_limit_ends_incomplete_without_an_assistant_message),
        cmocka_unit_test(zero_output_at_95_percent_of_the_window_is_context_overflow),
        cmocka_unit_test(
            context_overflow_filter_and_provider_error_end_as_provider_error),
        cmocka_unit_test(
            prompt_overflow_with_negative_output_fails_without_a_usage_event),
        cmocka_unit_test(usage_over_several_calls_overflows_as_an_outcome),
        cmocka_unit_test(usage_add_is_all_or_nothing),
        cmocka_unit_test(prompt_subtotal_is_checked_by_itself),
        cmocka_unit_test(first_sync_is_host_only_and_later_ones_replace_prompt_and_tools),
        cmocka_unit_test(a_failed_sync_ends_as_runtime_error),
        cmocka_unit_test(a_bounded_budget_ends_exactly_at_n),
        cmocka_unit_test(an_unbounded_budget_never_ends_the_turn),
        cmocka_unit_test(a_budget_must_be_chosen_and_sane),
        cmocka_unit_test(a_response_that_does_not_match_is_refused_and_changes_nothing),
        cmocka_unit_test(a_response_after_the_end_is_refused),
        cmocka_unit_test(a_mismatched_response_keeps_the_redelivery),
        cmocka_unit_test(an_effect_need_not_be_polled_to_be_answered),
        cmocka_unit_test(
            a_transient_failure_sleeps_and_repeats_the_request_under_a_new_id),
        cmocka_unit_test(retries_end_after_four_attempts_with_growing_sleeps),
        cmocka_unit_test(only_transient_and_charge_safe_failures_are_repeated),
        cmocka_unit_test(a_provider_may_ask_for_a_longer_wait),
        cmocka_unit_test(a_failed_call_that_was_cancelled_ends_cancelled),
        cmocka_unit_test(cancel_gives_up_a_model_call_that_is_out),
        cmocka_unit_test(cancel_waits_for_tools_and_keeps_their_results),
        cmocka_unit_test(cancel_ends_a_sleep_and_a_checkpoint_and_a_new_turn_at_once),
        cmocka_unit_test(a_forced_end_marks_open_calls_unknown),
        cmocka_unit_test(finish_with_a_call_out_gives_it_up),
        cmocka_unit_test(a_trace_yields_logs),
        cmocka_unit_test(misuse_at_a_checkpoint_is_refused_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
