/* The code protocol: what each reply comes to, how cells end turns, budgets, restores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "core/turn/code/code.h"
#include "turn/code_kit.h"

#define REQUIRED "{\"finish\": \"required\"}"
#define TYPED                                                                            \
    "{\"finish\": \"required\", \"schema\": {\"type\": \"object\", \"required\": "       \
    "[\"n\"], \"properties\": {\"n\": {\"type\": \"integer\"}}}}"

static bool told(struct code_kit *code, const char *text)
{
    return strstr(code_prompt(code), text) != NULL;
}

static enum hf_outcome_kind outcome(struct code_kit *code)
{
    assert_non_null(hf_turn_outcome(code->kit.turn));
    return hf_turn_outcome(code->kit.turn)->kind;
}

/* Options */

static int try_options(const char *options, struct hf_err *err)
{
    struct hf_protocol *protocol = NULL;
    int rc = hf_code_new(NULL, kit_span(options), &protocol, err);
    if (rc == 0)
        hf_code_free(protocol);
    return rc;
}

static void malformed_options_fail_before_any_model_call(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        { "null", "options" },
        { "{", "options" },
        { "[]", "options" },
        { " ", "options" },
        { "{\"finsh\": \"required\"}", "options" },
        { "{\"finish\": true}", "finish" },
        { "{\"finish\": \"maybe\"}", "finish" },
        { "{\"language\": \"cobol\"}", "language" },
        { "{\"language\": 1}", "language" },
        { "{\"schema\": {}}", "schema" },
        { "{\"finish\": \"required\", \"schema\": 1}", "schema" },
        { "{\"finish\": \"required\", \"schema\": {\"pattern\": \"x\"}}", "schema" },
        { "{\"finish\": \"required\", \"schema\": {\"type\": \"text\"}}", "schema" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_err err = { 0 };
        assert_int_equal(try_options(bad[i][0], &err), HF_EINVAL);
        assert_string_equal(err.field, bad[i][1]);
    }
}

static void options_have_a_limit(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    size_t max = (size_t)HF_MAX_CODE_OPTIONS_BYTES;
    char *text = malloc(max + 2);
    memset(text, ' ', max + 1);
    memcpy(text, "{}", 2);
    text[max] = '\0';
    assert_int_equal(try_options(text, &err), 0);
    text[max] = ' ';
    text[max + 1] = '\0';
    assert_int_equal(try_options(text, &err), HF_ETOOBIG);
    free(text);
}

static void empty_options_mean_natural(void **state)
{
    (void)state;
    static const char *const options[] = { "", "{}", "{\"finish\": \"optional\"}" };
    for (size_t i = 0; i < 3; i++) {
        struct code_kit code;
        code_start(&code, options[i]);
        code_reply(&code, "Hello.");
        code_nothing(&code);
        assert_int_equal(outcome(&code), HF_OUTCOME_ASSISTANT_MESSAGE);
        code_fini(&code);
    }
}

/* How turns end */

static void prose_ends_a_natural_turn(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "It is 4.");
    assert_string_equal(code.kit.log,
                        "emit token_usage 0 of 0\nemit text_delta It is 4.\nemit "
                        "llm_response It is 4.\ncheckpoint 2 before_completion\n");
    code_nothing(&code);
    assert_string_equal(code.kit.log,
                        "emit turn_outcome assistant_message\nemit done\ndone "
                        "assistant_message 1-1 It is 4.\n");
    code_fini(&code);
}

static void prose_is_asked_for_finish_where_that_is_required(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, REQUIRED);
    assert_true(told(&code, "The turn ends only when a cell calls finish(value)."));
    code_reply(&code, "It is 4.");
    assert_string_equal(code.kit.log,
                        "emit token_usage 0 of 0\nemit text_delta It is 4.\nemit "
                        "llm_response It is 4.\nprogress 1-3\ncheckpoint 2 after_work\n");
    assert_string_equal(code_fix(&code, 0), "no_finish fac85ff168cc876e 8");
    code_nothing(&code);
    assert_true(told(&code,
                     "assistant: It is 4.\nuser: [runtime note] This turn ends only "
                     "when a cell calls finish(value)"));
    code_fini(&code);
}

static void a_final_value_ends_a_natural_turn_too(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nfinish({n = 4})\n</lua>");
    code_finished(&code, "{\"n\": 4}");
    assert_string_equal(code.kit.log, "progress 2-3\ncheckpoint 3 before_completion\n");
    code_nothing(&code);
    assert_int_equal(outcome(&code), HF_OUTCOME_FINAL_VALUE);
    assert_string_equal(hf_turn_outcome(code.kit.turn)->value.at, "{\"n\": 4}");
    code_fini(&code);
}

static void a_typed_finish_emits_outcome_and_done(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, TYPED);
    assert_true(told(&code, "must fit this JSON Schema: {\"type\": \"object\""));
    code_reply(&code, "<lua>finish({n = 4})</lua>");
    code_finished(&code, "{\"n\":4}");
    code_nothing(&code);
    assert_string_equal(
        code.kit.log, "emit turn_outcome final_value\nemit done\ndone final_value 3-3\n");
    code_fini(&code);
}

static void a_value_that_does_not_fit_loops_with_feedback(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, TYPED);
    code_reply(&code, "<lua>finish({})</lua>");
    code_finished(&code, "{}");
    assert_string_equal(code.kit.log, "progress 2-3\ncheckpoint 3 after_work\n");
    code_nothing(&code);
    assert_true(told(&code,
                     "error: finish was called with a value that does not fit: value "
                     "lacks the member n."));
    code_reply(&code, "<lua>finish({n = 'x'})</lua>");
    code_finished(&code, "{\"n\":\"x\"}");
    kit_cut(&code.kit); /* the repair survives a restore */
    kit_next(&code.kit);
    code_nothing(&code);
    assert_true(told(&code, "value.n must be of type integer"));
    code_reply(&code, "<lua>finish({n = 1})</lua>");
    code_finished(&code, "{\"n\":1}");
    code_nothing(&code);
    assert_int_equal(outcome(&code), HF_OUTCOME_FINAL_VALUE);
    code_fini(&code);
}

static void a_schema_of_alternatives_is_checked(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code,
               "{\"finish\":\"required\",\"schema\":{\"anyOf\":[{\"type\":\"string\"}"
               ",{\"type\":\"array\",\"items\":{\"type\":\"number\"}}]}}");
    code_reply(&code, "<lua>finish({true})</lua>");
    code_finished(&code, "[true]");
    code_nothing(&code);
    assert_true(told(&code, "value fits none of the alternatives"));
    code_reply(&code, "<lua>finish({1.5})</lua>");
    code_finished(&code, "[1.5]");
    code_nothing(&code);
    assert_int_equal(outcome(&code), HF_OUTCOME_FINAL_VALUE);
    code_fini(&code);
}

static void finish_required_at_the_limit_stops_without_a_correction(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, REQUIRED, 1, 0);
    code_reply(&code, "It is 4.");
    assert_int_equal(outcome(&code), HF_OUTCOME_MAX_TURNS);
    assert_int_equal(hf_turn_record_count(code.kit.turn), 2); /* input, prose */
    code_fini(&code);
    code_start_budget(&code, REQUIRED, 1, 0);
    code_reply(&code, "<lua>f()</lua>");
    code_error(&code, "no f");
    assert_int_equal(outcome(&code), HF_OUTCOME_MAX_TURNS);
    code_fini(&code);
}

static void a_natural_turn_at_its_limit_is_asked_once_more(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, NULL, 1, 0);
    code_reply(&code, "<lua>\nx = 1\n</lua>");
    code_printed(&code, "1");
    code_nothing(&code);
    assert_true(told(&code, "The limit of iterations for this turn is reached."));
    assert_true(told(&code, "Steps left after this one: 0."));
    kit_cut(&code.kit);
    kit_next(&code.kit);
    code_reply(&code, "<lua>\nx = 2\n</lua>");
    code_printed(&code, "2");
    assert_int_equal(outcome(&code), HF_OUTCOME_MAX_TURNS);
    code_fini(&code);
    code_start_budget(&code, NULL, 1, 0);
    code_reply(&code, "<lua>\nx"); /* the note is in place of the correction */
    code_nothing(&code);
    assert_false(told(&code, "did not close it"));
    code_reply(&code, "So be it.");
    code_nothing(&code);
    assert_int_equal(outcome(&code), HF_OUTCOME_ASSISTANT_MESSAGE);
    code_fini(&code);
}

/* The ladder */

static void a_cell_is_run_and_the_turn_goes_on(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "Let me see.\n<lua>\nprint(2 + 2)\n</lua>\nThen I will say.");
    assert_string_equal(code.kit.log,
                        "emit token_usage 0 of 0\nemit text_delta Let me see.\n\nemit "
                        "llm_response Let me see.\n\nemit custom print(2 + 2)\nprogress "
                        "1-2\nexec 2 lua\n");
    assert_string_equal(code.kit.effect.code.at, "print(2 + 2)");
    assert_string_equal(code.kit.effect.driver->owner, "code");
    assert_null(code.kit.effect.bindings);
    code_printed(&code, "4");
    assert_string_equal(code.kit.log, "progress 2-3\ncheckpoint 3 after_work\n");
    assert_string_equal(
        code_event(&code, HF_CODE_STEP, 0),
        "{\"step\":1,\"cell\":\"t1.0.cell\",\"output\":[{\"text\":\"4\"}]}");
    code_nothing(&code);
    assert_string_equal(code.kit.log, "emit llm_request\nllm 4 records=3\n");
    assert_string_equal(
        code_prompt(&code),
        "system: You help.\nuser: hi\nassistant: Let me see. / <lua>\nprint(2 + "
        "2)\n</lua>\nuser: 4\nuser: [turn state] This is step 2 of this turn. Steps left "
        "after this one: 6.\nWrite one <lua> cell to go on, or answer without a cell to "
        "end "
        "the turn.\n");
    code_fini(&code);
}

static void only_the_first_cell_is_run_and_no_markup_is_shown(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "One.\n<lua>\na()\n</lua>\nTwo.\n<lua>\nb()\n</lua>\n");
    assert_string_equal(code.kit.effect.code.at, "a()");
    assert_null(strstr(code.kit.log, "<lua>"));
    assert_null(strstr(code.kit.log, "Two."));
    assert_null(strstr(code.kit.log, "b()"));
    code_fini(&code);
}

static void an_unclosed_cell_is_corrected_and_never_run_or_kept(void **state)
{
    (void)state;
    static const char *const modes[] = { "{}", REQUIRED };
    for (size_t i = 0; i < 2; i++) {
        struct code_kit code;
        code_start(&code, modes[i]);
        code_reply(&code, "Like this:\n<lua>\nprint(1)\n");
        assert_non_null(strstr(code.kit.log, "checkpoint 2 after_work"));
        assert_null(strstr(code.kit.log, "print(1)"));
        assert_string_equal(code_fix(&code, 0), "unclosed ba3bbeb18c2af0ff 26");
        code_nothing(&code);
        assert_true(told(&code,
                         "assistant: Like this:\nuser: [runtime note] Your last reply "
                         "opened a cell with <lua> and did not close it"));
        assert_false(told(&code, "print(1)"));
        code_fini(&code);
    }
}

static void the_providers_reason_to_stop_never_closes_a_cell(void **state)
{
    (void)state;
    static const enum hf_reason reasons[] = { HF_REASON_STOP, HF_REASON_UNKNOWN,
                                              HF_REASON_TOOL_USE };
    for (size_t i = 0; i < 3; i++) {
        struct code_kit code;
        struct hf_part part = { .content = kit_span("<lua>\nx = 1") };
        struct hf_llm_response response = { .size = sizeof(response),
                                            .parts = &part,
                                            .part_count = 1,
                                            .reason = reasons[i] };
        code_start(&code, NULL);
        assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err), 0);
        assert_int_equal(hf_turn_state(code.kit.turn), HF_TURN_WAITING_CHECKPOINT);
        code_fini(&code);
    }
}

static void a_cut_cell_and_cut_prose_have_corrections_of_their_own(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply_cut(&code, "<lua>\nx = 1\n");
    code_nothing(&code);
    assert_true(told(&code, "reached the output limit before its cell was closed"));
    code_reply_cut(&code, "A long story about");
    code_nothing(&code);
    assert_true(told(&code, "reached the output limit and was cut"));
    code_reply_cut(&code, "cells end with\n</lua>"); /* a mention, cut there */
    assert_memory_equal(code_fix(&code, 0), "cut ", 4);
    code_nothing(&code);
    code_reply_cut(&code, "<lua>\nx = 1\n</lua>\nand"); /* it was complete */
    assert_int_equal(code.kit.effect.kind, HF_EFFECT_EXEC_CODE);
    code_fini(&code);
}

static void a_cell_on_one_line_is_run(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>print(1)</lua>");
    assert_string_equal(code.kit.effect.code.at, "print(1)");
    code_fini(&code);
}

static void mentions_of_tags_are_a_natural_answer(void **state)
{
    (void)state;
    static const char *const texts[] = { "<lua> opens a cell and </lua> closes it.",
                                         "Write\n```lua\nprint(1)\n```\nthere.",
                                         "End it with\n</lua>" };
    for (size_t i = 0; i < 3; i++) {
        struct code_kit code;
        code_start(&code, NULL);
        code_reply(&code, texts[i]);
        code_nothing(&code);
        assert_int_equal(outcome(&code), HF_OUTCOME_ASSISTANT_MESSAGE);
        assert_string_equal(hf_turn_outcome(code.kit.turn)->text.at, texts[i]);
        code_fini(&code);
    }
}

static void a_malformed_cell_is_corrected_where_one_is_required(void **state)
{
    (void)state;
    static const char *const texts[] = { "<lua>x = 1\ny = 2\n</lua>",
                                         "```lua\nfinish(1)\n```" };
    for (size_t i = 0; i < 2; i++) {
        struct code_kit code;
        code_start(&code, REQUIRED);
        code_reply(&code, texts[i]);
        code_nothing(&code);
        assert_true(told(&code, "A cell begins with a line that is nothing but <lua>"));
        code_fini(&code);
    }
}

static void a_cell_of_another_language_is_named_at_once(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<python>\nprint(1)\n</python>");
    code_nothing(&code);
    assert_true(
        told(&code, "Your last reply held a cell in python. Only lua can be run"));
    code_fini(&code);
    code_start(&code, "{\"language\": \"typescript\"}"); /* and the other way round */
    code_reply(&code, "<lua>\nprint(1)\n");
    code_nothing(&code);
    assert_true(told(&code, "held a cell in lua. Only typescript can be run"));
    code_reply(&code, "<typescript>f()</typescript>");
    assert_string_equal(code.kit.effect.language, "typescript");
    code_fini(&code);
}

static void fences_and_odd_lines_inside_a_cell_are_source(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "```\nfirst\n```\n  <lua>\n```\n%%% x\n<python>\n\t</lua>");
    assert_string_equal(code.kit.effect.code.at, "```\n%%% x\n<python>");
    assert_non_null(strstr(code.kit.log, "emit text_delta ```\nfirst\n```\n"));
    code_fini(&code);
}

static void an_empty_cell_is_run(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\n</lua>");
    assert_int_equal(code.kit.effect.kind, HF_EFFECT_EXEC_CODE);
    assert_int_equal(code.kit.effect.code.len, 0);
    code_result(&code, &(struct hf_exec_result){ 0 });
    code_nothing(&code);
    assert_true(told(&code, "user: [the cell ran and printed nothing]"));
    code_fini(&code);
}

static void a_cell_over_its_size_is_corrected_and_one_at_it_runs(void **state)
{
    (void)state;
    static char text[262144 + 32];
    for (size_t over = 0; over < 2; over++) {
        struct code_kit code;
        size_t len = (size_t)HF_MAX_CELL_BYTES + over;
        memcpy(text, "<lua>\n", 6);
        memset(text + 6, 'x', len);
        memcpy(text + 6 + len, "\n</lua>", 8);
        code_start(&code, NULL);
        struct hf_part part = { .content = kit_span(text) };
        struct hf_llm_response response = { .size = sizeof(response),
                                            .parts = &part,
                                            .part_count = 1 };
        assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err), 0);
        assert_int_equal(hf_turn_state(code.kit.turn),
                         over ? HF_TURN_WAITING_CHECKPOINT : HF_TURN_WAITING_EXEC);
        code_fini(&code);
    }
}

static void the_order_of_parts_does_not_matter(void **state)
{
    (void)state;
    const struct hf_part why = { .kind = HF_PART_REASONING, .content = kit_span("so") };
    static const char *const texts[] = { "Hm.\n<lua>\nx\n</lua>", "Hm.\n<lua>\nx\n",
                                         "<py>x</py>" };
    for (size_t t = 0; t < 3; t++) {
        const struct hf_part text = { .content = kit_span(texts[t]) };
        const struct hf_part orders[2][2] = { { text, why }, { why, text } };
        char logs[2][512];
        for (size_t i = 0; i < 2; i++) {
            struct code_kit code;
            code_start(&code, NULL);
            code_reply_parts(&code, orders[i], 2);
            snprintf(logs[i], sizeof(logs[i]), "%.500s", code.kit.log);
            const struct hf_message *said = hf_turn_record(code.kit.turn, 1)->message;
            assert_int_equal(said->parts[0].kind, HF_PART_REASONING);
            code_fini(&code);
        }
        assert_string_equal(logs[0], logs[1]);
    }
}

static void text_parts_are_joined_at_line_ends(void **state)
{
    (void)state;
    const struct hf_part parts[] = { { .content = kit_span("Hm.") },
                                     { .content = kit_span("<lua>\nx\n") },
                                     { .content = kit_span("</lua>") } };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply_parts(&code, parts, 3);
    assert_string_equal(code.kit.effect.code.at, "x");
    code_fini(&code);
}

static void text_over_its_limit_is_cut_and_the_turn_can_be_saved(void **state)
{
    (void)state;
    size_t len = (size_t)HF_MAX_TURN_TEXT_BYTES - 1;
    char *text = malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    const struct hf_part parts[] = { { .content = { text, len } },
                                     { .content = kit_span("\xc3\xa9\n<lua>x</lua>") } };
    struct code_kit code;
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = parts,
                                        .part_count = 2 };
    code_start(&code, REQUIRED);
    assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err), 0);
    assert_int_equal(hf_turn_state(code.kit.turn), HF_TURN_WAITING_CHECKPOINT);
    kit_cut(&code.kit);
    assert_int_equal(hf_turn_record(code.kit.turn, 1)->message->parts[0].content.len,
                     len);
    code_fini(&code);
    free(text);
}

static void a_native_tool_call_ends_the_turn_with_its_reply_shown(void **state)
{
    (void)state;
    const struct hf_part parts[] = { { .content = kit_span("Calling.") },
                                     { .kind = HF_PART_TOOL_CALL,
                                       .call_id = "c1",
                                       .tool = "add",
                                       .content = kit_span("{}") } };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply_parts(&code, parts, 2);
    assert_string_equal(code.kit.log,
                        "emit token_usage 0 of 0\nemit text_delta Calling.\nemit "
                        "llm_response Calling.\nemit error protocol native_tool_call\n"
                        "emit turn_outcome runtime_error\nemit done\ndone "
                        "runtime_error 1-1 the model made a native tool call, which the "
                        "code protocol does not offer\n");
    code_fini(&code);
}

static void a_reply_of_nothing_or_of_sealed_reasoning_only_is_empty(void **state)
{
    (void)state;
    const struct hf_part parts[] = { { .content = kit_span(" \n") },
                                     { .kind = HF_PART_REASONING,
                                       .route = "prov/model-1",
                                       .replay = kit_span("sealed") } };
    for (size_t count = 0; count <= 2; count++) {
        struct code_kit code;
        code_start(&code, NULL);
        code_reply_parts(&code, parts, count);
        assert_non_null(strstr(code.kit.log, "emit error llm_provider empty_response"));
        assert_int_equal(outcome(&code), HF_OUTCOME_PROVIDER_ERROR);
        code_fini(&code);
    }
}

static void streamed_text_is_not_shown_twice(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_part part = { .content = kit_span("Hm.\n<lua>\nx\n</lua>") };
    struct hf_llm_response response = {
        .size = sizeof(response), .parts = &part, .part_count = 1, .text_streamed = true
    };
    code_start(&code, NULL);
    assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err), 0);
    kit_expect(&code.kit, "emit token_usage 0 of 0\n"
                          "emit llm_response Hm.\n"
                          "\n"
                          "emit custom x\n"
                          "progress 1-2\n"
                          "exec 2 lua\n");
    code_fini(&code);
}

static void ends_by_the_provider_show_visible_prose_only(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_part part = { .content = kit_span("Hm.\n<lua>\nsecret()\n") };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &part,
                                        .part_count = 1,
                                        .reason = HF_REASON_CONTENT_FILTER };
    code_start(&code, NULL);
    assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err), 0);
    kit_next(&code.kit);
    assert_non_null(strstr(code.kit.log, "emit text_delta Hm.\n"));
    assert_null(strstr(code.kit.log, "secret"));
    assert_int_equal(outcome(&code), HF_OUTCOME_PROVIDER_ERROR);
    code_fini(&code);
}

/* What is written down of a reply that is not taken */

static void a_correction_tells_what_was_decided_of_which_reply(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, REQUIRED);
    code_reply(&code, "No cell.");
    kit_cut(&code.kit);
    kit_next(&code.kit);
    code_nothing(&code);
    code_reply(&code, "<py>x</py>");
    code_nothing(&code);
    code_reply_cut(&code, "<lua>\nx");
    assert_string_equal(code_fix(&code, 2), "no_finish b0353e0290b92d38 8");
    assert_string_equal(code_fix(&code, 1), "language 919e57eae76d3142 10");
    assert_string_equal(code_fix(&code, 0), "unclosed_cut 1a67803906fbe54d 7");
    code_fini(&code);
}

static void the_same_reply_has_the_same_fingerprint(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, REQUIRED);
    for (int i = 0; i < 3; i++) {
        code_reply(&code, "Again.");
        code_nothing(&code);
        assert_string_equal(code_fix(&code, 0), "no_finish bf0ac86a018962b3 6");
    }
    code_fini(&code);
}

/* Cells and what they came to */

static void rlm_checkpoint_redrives_pending_exec_code_with_driver_state(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx = 1\n</lua>");
    code_result(&code,
                &(struct hf_exec_result){ .bindings_before = "h0",
                                          .bindings_after = "h1",
                                          .bindings_delta = kit_span("{\"x\":1}") });
    code_nothing(&code);
    code_reply(&code, "<lua>\nprint(x)\n</lua>");
    kit_cut(&code.kit);
    kit_forget(&code.kit);
    kit_expect(&code.kit, "exec 5 lua\n");
    assert_string_equal(code.kit.effect.code.at, "print(x)");
    assert_string_equal(code.kit.effect.bindings, "h1");
    assert_string_equal(code.kit.effect.driver->owner, "code");
    assert_string_equal(code.kit.effect.driver->data.at, "step.2");
    code_printed(&code, "1");
    assert_string_equal(code_event(&code, HF_CODE_STEP, 0),
                        "{\"step\":2,\"cell\":\"t1.1.cell\",\"iteration\":1,\"before\":"
                        "\"h1\",\"after\":\"h1\",\"output\":[{\"text\":\"1\"}]}");
    code_fini(&code);
}

static const struct hf_failure disk = { .code = "disk",
                                        .class_ = HF_FAILURE_IO,
                                        .message = { "full", 4 } };
static const struct hf_tool_result fan_out[3] = {
    { .call_id = "2:1:1", .tool = "add", .value = { "1", 1 }, .duration_ms = 7 },
    { .call_id = "2:1:2", .tool = "sub", .outcome = HF_TOOL_FAILURE, .failure = &disk },
    { .call_id = "2:1:3",
      .tool = "add",
      .outcome = HF_TOOL_CANCELLED,
      .reason = { "not now", 7 } },
};

static void rlm_checkpoint_after_exec_parallel_tool_outputs_preserves_structured_outcomes(
    void **state)
{
    (void)state;
    static const char step[] =
        "{\"step\":1,\"cell\":\"t1.0.cell\",\"calls\":[{\"id\":\"2:1:1\",\"tool\":"
        "\"add\","
        "\"outcome\":\"success\",\"duration_ms\":7,\"value\":1},{\"id\":\"2:1:2\","
        "\"tool\":"
        "\"sub\",\"outcome\":\"failure\",\"code\":\"disk\",\"class\":\"io\",\"message\":"
        "\"full\"},{\"id\":\"2:1:3\",\"tool\":\"add\",\"outcome\":\"cancelled\","
        "\"message\":"
        "\"not now\"}]}";
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\ncall_batch(t)\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .calls = fan_out, .call_count = 3 });
    assert_string_equal(code_event(&code, HF_CODE_STEP, 0), step);
    kit_cut(&code.kit);
    assert_string_equal(code_event(&code, HF_CODE_STEP, 0), step);
    code_fini(&code);
}

static void rlm_exec_result_stores_tool_call_ids_without_replayed_tool_events(
    void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\ncall_batch(t)\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .calls = fan_out, .call_count = 3 });
    assert_string_equal(
        code.kit.log, "emit tool_call 2:1:1 success\nemit tool_call 2:1:2 failure\nemit "
                      "tool_call 2:1:3 cancelled\nprogress 2-3\ncheckpoint 3 "
                      "after_work\n");
    assert_non_null(strstr(code_event(&code, HF_CODE_STEP, 0), "\"id\":\"2:1:2\""));
    kit_cut(&code.kit);
    kit_forget(&code.kit);
    kit_expect(&code.kit, "checkpoint 3 after_work\n");
    code_fini(&code);
}

static void of_many_calls_the_last_128_are_told(void **state)
{
    (void)state;
    static struct hf_tool_result calls[130];
    static char ids[130][8];
    struct code_kit code;
    for (size_t i = 0; i < 130; i++) {
        ids[i][0] = (char)('a' + i / 26);
        ids[i][1] = (char)('a' + i % 26);
        calls[i] = (struct hf_tool_result){ .call_id = ids[i], .tool = "add" };
    }
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .calls = calls, .call_count = 130 });
    const char *step = code_event(&code, HF_CODE_STEP, 0);
    assert_null(strstr(step, "\"id\":\"ab\""));
    assert_non_null(strstr(step, "\"id\":\"ac\""));
    assert_non_null(strstr(step, "\"calls_omitted\":2"));
    assert_null(strstr(code.kit.log, "tool_call ab"));
    assert_non_null(strstr(code.kit.log, "tool_call ez success\nemit custom\nprogress"));
    code_fini(&code);
}

static void a_calls_control_ends_the_turn(void **state)
{
    (void)state;
    static const struct {
        struct hf_tool_result call;
        enum hf_outcome_kind kind;
    } cases[] = {
        { { .call_id = "2:1", .control = HF_CONTROL_FINISH, .control_value = { "1", 1 } },
          HF_OUTCOME_TOOL_VALUE },
        { { .call_id = "2:1", .control = HF_CONTROL_FAIL, .control_value = { "2", 1 } },
          HF_OUTCOME_TOOL_ERROR },
        { { .call_id = "2:1",
            .control = HF_CONTROL_SWITCH_FRAME,
            .frame_key = "k",
            .task = { "go", 2 } },
          HF_OUTCOME_FRAME_SWITCH },
    };
    for (size_t i = 0; i < 3; i++) {
        struct code_kit code;
        code_start(&code, REQUIRED);
        code_reply(&code, "<lua>\nf()\n</lua>");
        code_result(&code,
                    &(struct hf_exec_result){ .calls = &cases[i].call, .call_count = 1 });
        assert_int_equal(code.kit.effect.checkpoint, HF_CHECKPOINT_BEFORE_COMPLETION);
        kit_cut(&code.kit);
        kit_next(&code.kit);
        code_nothing(&code);
        assert_int_equal(outcome(&code), cases[i].kind);
        code_fini(&code);
    }
}

static void a_call_that_is_not_well_formed_is_refused(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_tool_result call = { .call_id = "2:1",
                                   .outcome = HF_TOOL_CANCELLED,
                                   .control = HF_CONTROL_FINISH };
    struct hf_exec_result result = { .size = sizeof(result),
                                     .calls = &call,
                                     .call_count = 1 };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    assert_int_equal(hf_turn_exec_done(code.kit.turn, 2, &result, &code.kit.err),
                     HF_EINVAL);
    assert_string_equal(code.kit.err.field, "outcome");
    code_fini(&code);
}

static void rlm_driver_state_with_wrong_plugin_id_fails_loudly(void **state)
{
    (void)state;
    const struct hf_protocol *protocol = hf_protocol_code();
    static const struct hf_driver_state bad[] = {
        { .owner = "other", .data = { "step.1", 6 } },
        { .owner = "code", .data = { "step.", 5 } },
        { .owner = "code", .data = { "step.0", 6 } },
        { .owner = "code", .data = { "cursor", 6 } },
    };
    struct hf_exec_result result = { .size = sizeof(result) };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_move move;
        hf_move_begin(&move, code.kit.turn);
        assert_int_equal(
            protocol->ops->exec_done(protocol, &move, &result, &bad[i], &code.kit.err),
            HF_EPROTOCOL);
        assert_string_equal(code.kit.err.field, "driver");
        hf_move_drop(&move);
    }
    code_fini(&code);
}

static void a_save_of_another_protocol_is_refused(void **state)
{
    (void)state;
    struct kit kit;
    struct code_kit code;
    struct hf_bytes save = { 0 };
    struct hf_turn *turn = NULL;
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    code_start(&code, NULL);
    kit_save(&code.kit, &save);
    assert_int_equal(hf_turn_restore(kit.setup, (struct hf_span){ save.at, save.len },
                                     NULL, &turn, &kit.err),
                     HF_EPROTOCOL);
    hf_bytes_free(&save);
    code_fini(&code);
    kit_fini(&kit);
}

static void a_forced_end_records_the_cell_as_unknown(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    assert_int_equal(hf_turn_fail(code.kit.turn, "stop", "now", &code.kit.err), 0);
    assert_string_equal(code_event(&code, HF_CODE_STEP, 0),
                        "{\"step\":1,\"cell\":\"t1.0.cell\",\"unknown\":true}");
    assert_int_equal(outcome(&code), HF_OUTCOME_RUNTIME_ERROR);
    code_fini(&code);
}

static void cancel_waits_for_the_cell_and_keeps_what_it_did(void **state)
{
    (void)state;
    struct hf_evidence evidence = { .request_id = "r1" };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    assert_int_equal(hf_turn_cancel(code.kit.turn, &evidence, &code.kit.err), 0);
    code_finished(&code, "1");
    assert_int_equal(outcome(&code), HF_OUTCOME_CANCELLED);
    assert_non_null(strstr(code_event(&code, HF_CODE_STEP, 0), "\"final\":1"));
    code_fini(&code);
}

static void input_before_the_end_goes_on_after_a_final_value(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_part part = { .content = kit_span("wait") };
    struct hf_message message = kit_message(NULL, HF_ROLE_USER, &part);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = 1 };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nfinish(1)\n</lua>");
    code_finished(&code, "1");
    assert_int_equal(hf_turn_checkpoint_done(code.kit.turn, code.kit.effect.id, &delivery,
                                             &code.kit.err),
                     0);
    kit_next(&code.kit);
    assert_true(told(&code, "user: finished with: 1\nuser: wait\n"));
    code_fini(&code);
}

/* Stalls */

static void replies_without_a_cell_stop_at_the_no_progress_budget(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, REQUIRED, HF_UNBOUNDED, 3);
    for (int i = 0; i < 2; i++) {
        code_reply(&code, "No.");
        code_nothing(&code);
    }
    code_reply(&code, "No.");
    assert_int_equal(outcome(&code), HF_OUTCOME_NO_PROGRESS);
    code_fini(&code);
}

static void cells_that_only_raise_stop_at_the_no_progress_budget(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, NULL, HF_UNBOUNDED, 2);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_error(&code, "no f");
    code_nothing(&code);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .failed = true,
                                                 .message = kit_span("no engine") });
    assert_int_equal(outcome(&code), HF_OUTCOME_NO_PROGRESS);
    code_fini(&code);
}

static void a_success_resets_the_stalls_also_across_a_restore(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, NULL, HF_UNBOUNDED, 2);
    for (int i = 0; i < 3; i++) {
        code_reply(&code, "<lua>\nf()\n</lua>");
        code_error(&code, "no f");
        kit_cut(&code.kit);
        kit_next(&code.kit);
        code_nothing(&code);
        code_reply(&code, "<lua>\ng()\n</lua>");
        code_printed(&code, "ok");
        code_nothing(&code);
    }
    code_fini(&code);
}

static void an_unbounded_no_progress_budget_keeps_asking(void **state)
{
    (void)state;
    struct code_kit code;
    code_start_budget(&code, REQUIRED, HF_UNBOUNDED, HF_UNBOUNDED);
    for (int i = 0; i < 40; i++) {
        code_reply(&code, "No.");
        code_nothing(&code);
    }
    code_fini(&code);
}

static void one_turns_stalls_are_not_the_next_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct code_kit code;
        code_start_budget(&code, REQUIRED, HF_UNBOUNDED, 2);
        code_reply(&code, "No.");
        code_nothing(&code);
        assert_int_equal(code.kit.effect.kind, HF_EFFECT_LLM_CALL);
        code_fini(&code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_options_fail_before_any_model_call),
        cmocka_unit_test(options_have_a_limit),
        cmocka_unit_test(empty_options_mean_natural),
        cmocka_unit_test(prose_ends_a_natural_turn),
        cmocka_unit_test(prose_is_asked_for_finish_where_that_is_required),
        cmocka_unit_test(a_final_value_ends_a_natural_turn_too),
        cmocka_unit_test(a_typed_finish_emits_outcome_and_done),
        cmocka_unit_test(a_value_that_does_not_fit_loops_with_feedback),
        cmocka_unit_test(a_schema_of_alternatives_is_checked),
        cmocka_unit_test(finish_required_at_the_limit_stops_without_a_correction),
        cmocka_unit_test(a_natural_turn_at_its_limit_is_asked_once_more),
        cmocka_unit_test(a_cell_is_run_and_the_turn_goes_on),
        cmocka_unit_test(only_the_first_cell_is_run_and_no_markup_is_shown),
        cmocka_unit_test(an_unclosed_cell_is_corrected_and_never_run_or_kept),
        cmocka_unit_test(the_providers_reason_to_stop_never_closes_a_cell),
        cmocka_unit_test(a_cut_cell_and_cut_prose_have_corrections_of_their_own),
        cmocka_unit_test(a_cell_on_one_line_is_run),
        cmocka_unit_test(mentions_of_tags_are_a_natural_answer),
        cmocka_unit_test(a_malformed_cell_is_corrected_where_one_is_required),
        cmocka_unit_test(a_cell_of_another_language_is_named_at_once),
        cmocka_unit_test(fences_and_odd_lines_inside_a_cell_are_source),
        cmocka_unit_test(an_empty_cell_is_run),
        cmocka_unit_test(a_cell_over_its_size_is_corrected_and_one_at_it_runs),
        cmocka_unit_test(the_order_of_parts_does_not_matter),
        cmocka_unit_test(text_parts_are_joined_at_line_ends),
        cmocka_unit_test(text_over_its_limit_is_cut_and_the_turn_can_be_saved),
        cmocka_unit_test(a_native_tool_call_ends_the_turn_with_its_reply_shown),
        cmocka_unit_test(a_reply_of_nothing_or_of_sealed_reasoning_only_is_empty),
        cmocka_unit_test(streamed_text_is_not_shown_twice),
        cmocka_unit_test(ends_by_the_provider_show_visible_prose_only),
        cmocka_unit_test(a_correction_tells_what_was_decided_of_which_reply),
        cmocka_unit_test(the_same_reply_has_the_same_fingerprint),
        cmocka_unit_test(rlm_checkpoint_redrives_pending_exec_code_with_driver_state),
        cmocka_unit_test(
            rlm_checkpoint_after_exec_parallel_tool_outputs_preserves_structured_outcomes),
        cmocka_unit_test(
            rlm_exec_result_stores_tool_call_ids_without_replayed_tool_events),
        cmocka_unit_test(of_many_calls_the_last_128_are_told),
        cmocka_unit_test(a_calls_control_ends_the_turn),
        cmocka_unit_test(a_call_that_is_not_well_formed_is_refused),
        cmocka_unit_test(rlm_driver_state_with_wrong_plugin_id_fails_loudly),
        cmocka_unit_test(a_save_of_another_protocol_is_refused),
        cmocka_unit_test(a_forced_end_records_the_cell_as_unknown),
        cmocka_unit_test(cancel_waits_for_the_cell_and_keeps_what_it_did),
        cmocka_unit_test(input_before_the_end_goes_on_after_a_final_value),
        cmocka_unit_test(replies_without_a_cell_stop_at_the_no_progress_budget),
        cmocka_unit_test(cells_that_only_raise_stop_at_the_no_progress_budget),
        cmocka_unit_test(a_success_resets_the_stalls_also_across_a_restore),
        cmocka_unit_test(an_unbounded_no_progress_budget_keeps_asking),
        cmocka_unit_test(one_turns_stalls_are_not_the_next_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
