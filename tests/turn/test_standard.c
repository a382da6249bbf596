/* The standard protocol: what a reply means, what the model sees, and what happens to the
 * model's own faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "turn/kit.h"

static void initial_request_is_projected(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_render *render = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.request->tool_choice, HF_TOOLS_AUTO);
    assert_int_equal(hf_render_new(kit.turn, kit.effect.request, &render, &kit.err), 0);
    const struct hf_rendered *system = hf_render_message(render, 0);
    const struct hf_rendered *user = hf_render_message(render, 1);
    assert_int_equal(system->role, HF_ROLE_SYSTEM);
    assert_string_equal(system->blocks[0].text.at, "You help.");
    assert_int_equal(user->role, HF_ROLE_USER);
    assert_int_equal(user->block_count, 1);
    assert_string_equal(user->blocks[0].text.at, "hi");
    assert_null(hf_render_message(render, 2));
    hf_render_free(render);
    kit_fini(&kit);
}

static void the_request_event_names_the_tools(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    do
        assert_int_equal(hf_turn_poll(kit.turn, &kit.effect, &kit.err), 0);
    while (kit.effect.kind == HF_EFFECT_PROGRESS);
    assert_int_equal(kit.effect.kind, HF_EFFECT_EMIT);
    assert_string_equal(kit.effect.emit->tools.at, "add,sub");
    assert_int_equal(kit.effect.emit->records, 1);
    kit_fini(&kit);
}

static void an_empty_reply_ends_as_provider_error(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part blank = { .content = kit_span(" \n\t ") };
    for (size_t parts = 0; parts < 2; parts++) {
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        kit_forget(&kit);
        kit_reply_parts(&kit, &blank, parts);
        kit_expect(&kit, "emit token_usage 10 of 10\n"
                         "emit llm_response\n"
                         "emit error llm_provider empty_response\n"
                         "emit turn_outcome provider_error\n"
                         "emit done\n"
                         "done provider_error 1-1 the model's reply was empty\n");
        kit_fini(&kit);
    }
}

static void a_provider_error_stops_without_a_checkpoint(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_llm_error error = { .size = sizeof(error),
                                  .kind = HF_LLM_AUTH,
                                  .code = "401",
                                  .message = kit_span("bad key") };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_llm_failed(kit.turn, 1, &error, &kit.err), 0);
    kit_expect(&kit, "emit error llm_provider 401\n"
                     "emit turn_outcome provider_error\n"
                     "emit done\n"
                     "done provider_error 1-1 bad key\n");
    kit_fini(&kit);
}

static void a_reply_of_reasoning_only_finishes_with_empty_text(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = { .kind = HF_PART_REASONING, .content = kit_span("hm") };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, &part, 1);
    kit_next(&kit);
    kit_nothing(&kit);
    kit_forget(&kit);
    kit_expect(&kit, "emit turn_outcome assistant_message\n"
                     "emit done\n"
                     "done assistant_message 1-1\n");
    kit_fini(&kit);
}

static void an_empty_final_after_a_tool_result_finishes_silently(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, NULL, 0);
    kit_next(&kit);
    assert_int_equal(kit.effect.kind, HF_EFFECT_CHECKPOINT);
    kit_nothing(&kit);
    kit_next(&kit);
    assert_int_equal(kit.effect.outcome->kind, HF_OUTCOME_ASSISTANT_MESSAGE);
    assert_int_equal(kit.effect.outcome->text.len, 0);
    kit_fini(&kit);
}

static void parallel_results_go_back_in_call_order_with_one_checkpoint(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    kit_success(&kit, "c2", "\"second\"");
    kit_success(&kit, "c1", "\"first\"");
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c2 success\n"
                     "emit tool_call c1 success\n"
                     "progress 2-3\n"
                     "checkpoint 3 after_work\n");
    assert_string_equal(kit_part(&kit, 2, 0), "first");
    assert_string_equal(kit_part(&kit, 2, 1), "second");
    assert_string_equal(hf_turn_record(kit.turn, 1)->message->id, "t1.0.calls");
    assert_string_equal(hf_turn_record(kit.turn, 2)->message->id, "t1.0.results");
    assert_int_equal(hf_turn_record(kit.turn, 2)->message->role, HF_ROLE_USER);
    kit_fini(&kit);
}

static void streamed_text_is_not_shown_twice(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = { .content = kit_span("hello") };
    struct hf_llm_response response = {
        .size = sizeof(response), .parts = &part, .part_count = 1, .text_streamed = true
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    assert_int_equal(hf_turn_llm_done(kit.turn, 1, &response, &kit.err), 0);
    kit_expect(&kit, "emit token_usage 0 of 0\nemit llm_response hello\n"
                     "checkpoint 2 before_completion\n");
    kit_fini(&kit);
}

static void text_parts_are_set_apart_and_commentary_yields_to_the_final_answer(
    void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[4] = { { .content = kit_span("one") },
                                { .content = kit_span("two\n") },
                                { .content = kit_span("\nthree\n\n") },
                                { .content = kit_span("four") } };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, 4);
    kit_next(&kit);
    kit_nothing(&kit);
    assert_string_equal(hf_turn_outcome(kit.turn)->text.at,
                        "one\n\ntwo\n\nthree\n\nfour");
    kit_fini(&kit);

    parts[1].phase = HF_PHASE_COMMENTARY;
    parts[3].phase = HF_PHASE_FINAL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts + 1, 3);
    kit_next(&kit);
    kit_nothing(&kit);
    assert_string_equal(hf_turn_outcome(kit.turn)->text.at, "\nthree\n\nfour");
    kit_fini(&kit);
}

static void calls_are_recorded_after_prose_each_with_its_reasoning(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[5] = {
        { .kind = HF_PART_REASONING, .content = kit_span("r1") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "a",
          .tool = "add",
          .content = kit_span("{}") },
        { .kind = HF_PART_TEXT, .content = kit_span("prose") },
        { .kind = HF_PART_REASONING, .content = kit_span("r2") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "b",
          .tool = "sub",
          .content = kit_span("{}") },
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, 5);
    const struct hf_message *message = hf_turn_record(kit.turn, 1)->message;
    static const enum hf_part_kind kinds[] = { HF_PART_PROSE, HF_PART_REASONING,
                                               HF_PART_TOOL_CALL, HF_PART_REASONING,
                                               HF_PART_TOOL_CALL };
    static const char *const texts[] = { "prose", "r1", "{}", "r2", "{}" };
    assert_int_equal(message->part_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(message->parts[i].kind, kinds[i]);
        assert_string_equal(message->parts[i].content.at, texts[i]);
    }
    kit_fini(&kit);
}

static void max_turns_comes_right_after_the_tool_result(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit.config.turn_budget = 1;
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    kit_success(&kit, "c1", "1");
    kit_forget(&kit);
    kit_expect(&kit, "emit tool_call c1 success\nprogress 2-4\n"
                     "emit turn_outcome max_turns\nemit done\ndone max_turns 4-4\n");
    assert_string_equal(hf_turn_record(kit.turn, 3)->message->id, "t1.1.limit");
    kit_fini(&kit);
}

static void control(enum hf_control kind, const char *task, enum hf_outcome_kind outcome,
                    bool ends)
{
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    kit_next(&kit);
    struct hf_tool_result results[2] = {
        { .call_id = "c1", .value = kit_span("1") },
        { .call_id = "c2",
          .value = kit_span("2"),
          .control = kind,
          .control_value = kit_span("[7]"),
          .frame_key = "coder",
          .task = kit_span(task) },
    };
    assert_int_equal(kit_results(&kit, 2, results, 2), 0);
    if (ends) {
        const struct hf_outcome *end = hf_turn_outcome(kit.turn);
        assert_non_null(end);
        assert_int_equal(end->kind, outcome);
        assert_string_equal(end->value.at, "[7]");
        assert_string_equal(end->tool, "sub");
    } else {
        assert_int_equal(hf_turn_state(kit.turn), HF_TURN_WAITING_CHECKPOINT);
    }
    kit_fini(&kit);
}

static void a_tools_control_decides_the_outcome(void **state)
{
    (void)state;
    control(HF_CONTROL_FINISH, "", HF_OUTCOME_TOOL_VALUE, true);
    control(HF_CONTROL_FAIL, "", HF_OUTCOME_TOOL_ERROR, true);
    control(HF_CONTROL_SWITCH_FRAME, "go on", HF_OUTCOME_FRAME_SWITCH, true);
    control(HF_CONTROL_SWITCH_FRAME, "  ", HF_OUTCOME_FRAME_SWITCH, false);
    control(HF_CONTROL_NONE, "", HF_OUTCOME_TOOL_VALUE, false);
}

static void a_control_without_a_success_is_the_hosts_mistake(void **state)
{
    (void)state;
    struct kit kit;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    struct hf_tool_result result = { .call_id = "c1",
                                     .outcome = HF_TOOL_CANCELLED,
                                     .control = HF_CONTROL_FINISH };
    assert_int_equal(kit_results(&kit, 2, &result, 1), HF_EINVAL);
    result = (struct hf_tool_result){ .call_id = "c1", .outcome = HF_TOOL_FAILURE };
    assert_int_equal(kit_results(&kit, 2, &result, 1), HF_EINVAL);
    result = (struct hf_tool_result){ .call_id = "c1", .value = kit_span("{broken") };
    assert_int_equal(kit_results(&kit, 2, &result, 1), HF_EINVAL);
    assert_string_equal(kit.err.field, "value");
    assert_int_equal(kit_results(&kit, 2, &result, 0), HF_EINVAL);
    kit_success(&kit, "c1", "1");
    kit_fini(&kit);
}

static void malformed_arguments_are_answered_and_never_an_empty_object(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[2] = {
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "a",
          .tool = "add",
          .content = kit_span("{\"x\":") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "b",
          .tool = "sub",
          .content = kit_span("{}") },
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_parts(&kit, parts, 2);
    kit_expect(&kit, "emit token_usage 10 of 10\n"
                     "emit llm_response\n"
                     "emit tool_call a failure\n"
                     "progress 1-2\n"
                     "tools 2 a:add* b:sub\n");
    assert_string_equal(kit.effect.calls[0].args.at, "{\"x\":");
    assert_int_equal(kit.effect.calls[0].result->failure->class_,
                     HF_FAILURE_INVALID_REQUEST);
    assert_string_equal(kit.effect.calls[0].result->failure->code, "invalid_arguments");
    kit_success(&kit, "b", "1");
    kit_expect(&kit, "emit tool_call b success\n"
                     "progress 2-3\n"
                     "checkpoint 3 after_work\n");
    kit_fini(&kit);
}

static void a_batch_that_is_born_answered_takes_no_effect_and_no_id(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = {
        .kind = HF_PART_TOOL_CALL, .call_id = "a", .tool = "add", .content = kit_span("")
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_forget(&kit);
    kit_reply_parts(&kit, &part, 1);
    kit_expect(&kit, "emit token_usage 10 of 10\n"
                     "emit llm_response\n"
                     "emit tool_call a failure\n"
                     "progress 1-3\n"
                     "checkpoint 2 after_work\n");
    kit_cut(&kit);
    bool safe = false;
    assert_int_equal(hf_turn_resumable(kit.turn, &safe, &kit.err), 0);
    assert_true(safe);
    kit_fini(&kit);
}

/* A server that numbers per reply says call_0 each time; some say nothing. */
static void every_call_has_an_id_of_its_own_that_providers_accept(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part parts[4];
    static const char *const given[] = { "call_0", "call_0", "", NULL };
    static const char *const ids[] = { "cjqysgh0iopgi1gvmrgcktefk",
                                       "ci0k1doencvsg2cwfpud2nzf4",
                                       "c0w3syn4vlumif3fhxy1zarqu",
                                       "csnyw05aufbpblttd4r35wfmh" };
    for (size_t i = 0; i < 4; i++)
        parts[i] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                     .call_id = given[i],
                                     .route = "prov/model-1",
                                     .tool = "add",
                                     .content = kit_span("{}") };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, 4);
    kit_next(&kit);
    const struct hf_message *message = hf_turn_record(kit.turn, 1)->message;
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(kit.effect.calls[i].call_id, ids[i]);
        assert_string_equal(message->parts[i].call_id, ids[i]);
    }
    /* The provider's own is replay data. */
    assert_string_equal(message->parts[1].provider_id, "call_0");
    assert_null(message->parts[2].provider_id);
    for (size_t i = 0; i < 4; i++)
        kit_success(&kit, ids[i], "1");
    kit_next(&kit);
    kit_nothing(&kit);
    kit_next(&kit);
    kit_cut(&kit);
    kit_next(&kit);
    struct hf_render *render = NULL;
    assert_int_equal(hf_render_new(kit.turn, kit.effect.request, &render, &kit.err), 0);
    const struct hf_block *block = &hf_render_message(render, 2)->blocks[0];
    assert_string_equal(block->call_id, ids[0]);
    assert_string_equal(block->provider_id, "call_0");
    hf_render_free(render);
    kit_reply_parts(&kit, parts, 1); /* the same again in a later iteration */
    kit_next(&kit);
    assert_string_equal(kit.effect.calls[0].call_id, "cohaejbkziqpvehkffl3fg2em");
    kit_fini(&kit);

    kit_init(&kit);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t2" };
    kit_start_with(&kit, &start);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, 1); /* and in the next turn of the session */
    kit_next(&kit);
    assert_string_equal(kit.effect.calls[0].call_id, "cc1jrkulrvelfwpremw2n53db");
    kit_fini(&kit);
}

static void bad_utf8_and_nul_in_a_reply_are_repaired(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_part part = { .content = { "a\xff\0b\xe2\x82", 6 } };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, &part, 1);
    kit_next(&kit);
    kit_nothing(&kit);
    assert_string_equal(hf_turn_outcome(kit.turn)->text.at, "a\xef\xbf\xbd\xef\xbf\xbd"
                                                            "b\xef\xbf\xbd\xef\xbf\xbd");
    kit_fini(&kit);
}

static void half_an_attachment_in_a_reply_is_not_kept(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_attachment none = { .media_type = "image/png" };
    struct hf_part parts[3] = {
        { .content = kit_span("see"), .attachment = &none },
        { .kind = HF_PART_ATTACHMENT, .attachment = &none },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "c",
          .tool = "add",
          .content = kit_span("{}") },
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, 3);
    kit_cut(&kit); /* what was kept can be saved and read */
    assert_int_equal(hf_turn_record(kit.turn, 1)->message->part_count, 2);
    kit_fini(&kit);
}

static void oversize_text_is_cut_at_the_limit(void **state)
{
    (void)state;
    struct kit kit;
    size_t limit = (size_t)HF_MAX_TURN_TEXT_BYTES;
    char *text = malloc(limit + 1);
    memset(text, 'x', limit + 1);
    for (size_t over = 0; over < 2; over++) {
        struct hf_part part = { .content = { text, limit + over } };
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        kit_reply_parts(&kit, &part, 1);
        assert_int_equal(kit.turn != NULL, 1);
        struct hf_effect effect = { 0 };
        do
            assert_int_equal(hf_turn_poll(kit.turn, &effect, &kit.err), 0);
        while (effect.kind != HF_EFFECT_CHECKPOINT);
        assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, NULL, &kit.err), 0);
        assert_int_equal(hf_turn_outcome(kit.turn)->text.len, limit);
        kit_fini(&kit);
    }
    free(text);
}

static void calls_past_the_limit_are_answered_and_not_run(void **state)
{
    (void)state;
    struct kit kit;
    size_t limit = (size_t)HF_MAX_TURN_CALLS;
    struct hf_part *parts = calloc(limit + 1, sizeof(*parts));
    for (size_t i = 0; i <= limit; i++)
        parts[i] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                     .tool = "add",
                                     .content = kit_span("{}") };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, limit + 1);
    kit_next(&kit);
    assert_int_equal(kit.effect.call_count, limit + 1);
    assert_false(kit.effect.calls[limit - 1].answered);
    assert_true(kit.effect.calls[limit].answered);
    assert_string_equal(kit.effect.calls[limit].result->failure->code, "too_many_calls");
    free(parts);
    kit_fini(&kit);
}

static void parts_and_deliveries_past_their_limits(void **state)
{
    (void)state;
    struct kit kit;
    size_t limit = (size_t)HF_MAX_TURN_PARTS;
    struct hf_part *parts = calloc(limit + 1, sizeof(*parts));
    struct hf_message *messages = calloc(limit + 1, sizeof(*messages));
    assert_int_equal(limit, HF_MAX_TURN_LIST);
    for (size_t i = 0; i <= limit; i++) {
        parts[i].content = kit_span("x");
        messages[i] = kit_message(NULL, HF_ROLE_USER, &parts[i]);
    }
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, parts, limit + 1); /* the model's fault: cut */
    struct hf_effect effect = { 0 };
    size_t deltas = 0;
    do {
        assert_int_equal(hf_turn_poll(kit.turn, &effect, &kit.err), 0);
        deltas += effect.kind == HF_EFFECT_EMIT &&
                  effect.emit->kind == HF_EMIT_TEXT_DELTA;
    } while (effect.kind != HF_EFFECT_CHECKPOINT);
    assert_int_equal(deltas, limit);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = messages,
                                         .message_count = limit + 1 };
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err),
                     HF_ETOOBIG);
    assert_string_equal(kit.err.field, "messages");
    assert_string_equal(kit.err.message, "messages must have at most 1024 entries");
    delivery.message_count = limit;
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, &delivery, &kit.err), 0);
    free(parts);
    free(messages);
    kit_fini(&kit);
}

static void a_large_reply_leaves_no_scraps(void **state)
{
    (void)state;
    struct kit kit;
    size_t records = 0;
    size_t large = 1 << 20;
    char *text = malloc(large);
    memset(text, 'x', large);
    struct hf_part part = { .content = { text, large } };
    struct hf_effect effect = { 0 };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_parts(&kit, &part, 1);
    do
        assert_int_equal(hf_turn_poll(kit.turn, &effect, &kit.err), 0);
    while (effect.kind != HF_EFFECT_CHECKPOINT);
    size_t bytes = hf_turn_bytes(kit.turn, &records);
    assert_in_range(bytes - records, 2 * large,
                    2 * large + 4096); /* the answer: as text and as a message */
    assert_int_equal(hf_turn_checkpoint_done(kit.turn, 2, NULL, &kit.err), 0);
    assert_int_equal(hf_turn_outcome(kit.turn)->text.len, large);
    free(text);
    kit_fini(&kit);
}

static void intents_are_all_shown_to_the_model(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_intent intents[2] = {
        { .name = "start_process", .text = kit_span("p1") },
        { .name = "emit_event", .failed = true, .text = kit_span("no such event") },
    };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", NULL);
    kit_next(&kit);
    struct hf_tool_result result = {
        .call_id = "c1", .value = kit_span("1"), .intents = intents, .intent_count = 2
    };
    assert_int_equal(kit_results(&kit, 2, &result, 1), 0);
    assert_string_equal(kit_part(&kit, 2, 0), "1");
    assert_string_equal(kit_part(&kit, 2, 1), "done.1.start_process: p1");
    assert_string_equal(kit_part(&kit, 2, 2), "failed.2.emit_event: no such event");
    kit_fini(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_request_is_projected),
        cmocka_unit_test(the_request_event_names_the_tools),
        cmocka_unit_test(an_empty_reply_ends_as_provider_error),
        cmocka_unit_test(a_provider_error_stops_without_a_checkpoint),
        cmocka_unit_test(a_reply_of_reasoning_only_finishes_with_empty_text),
        cmocka_unit_test(an_empty_final_after_a_tool_result_finishes_silently),
        cmocka_unit_test(parallel_results_go_back_in_call_order_with_one_checkpoint),
        cmocka_unit_test(streamed_text_is_not_shown_twice),
        cmocka_unit_test(
            text_parts_are_set_apart_and_commentary_yields_to_the_final_answer),
        cmocka_unit_test(calls_are_recorded_after_prose_each_with_its_reasoning),
        cmocka_unit_test(max_turns_comes_right_after_the_tool_result),
        cmocka_unit_test(a_tools_control_decides_the_outcome),
        cmocka_unit_test(a_control_without_a_success_is_the_hosts_mistake),
        cmocka_unit_test(malformed_arguments_are_answered_and_never_an_empty_object),
        cmocka_unit_test(a_batch_that_is_born_answered_takes_no_effect_and_no_id),
        cmocka_unit_test(every_call_has_an_id_of_its_own_that_providers_accept),
        cmocka_unit_test(bad_utf8_and_nul_in_a_reply_are_repaired),
        cmocka_unit_test(half_an_attachment_in_a_reply_is_not_kept),
        cmocka_unit_test(oversize_text_is_cut_at_the_limit),
        cmocka_unit_test(calls_past_the_limit_are_answered_and_not_run),
        cmocka_unit_test(parts_and_deliveries_past_their_limits),
        cmocka_unit_test(a_large_reply_leaves_no_scraps),
        cmocka_unit_test(intents_are_all_shown_to_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
