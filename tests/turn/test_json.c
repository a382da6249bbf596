/* The JSON form: levers, refusals, and that a refused text changes nothing. */
#include <string.h>

#include "base/json_walk.h"
#include "turn/kit.h"

static void text_that_is_no_response_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"response\":\"dance\",\"id\":1}",
        "{\"response\":7,\"id\":1}",
        "{\"response\":\"llm_done\",\"id\":1}",
        "{\"response\":\"llm_done\",\"id\":-1,\"reply\":{}}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":[]}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"colour\":1}}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"parts\":[{\"kind\":\"x\"}]}}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"parts\":{}}}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"text_streamed\":1}}",
        "{\"response\":\"llm_failed\",\"id\":1}",
        "{\"response\":\"cancel\"}",
        "{\"response\":\"finish\"}",
        "{\"response\":\"fail\",\"message\":\"no code\"}",
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{}} x",
    };
    struct kit kit;
    struct hf_bytes before = { 0 };
    struct hf_bytes after = { 0 };
    kit_init(&kit);
    kit_start(&kit);
    kit_next(&kit);
    kit_save(&kit, &before);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int rc = hf_turn_respond_json(kit.turn, kit_span(bad[i]), &kit.err);
        if (rc != HF_EINVAL)
            print_error("%s: %s\n", bad[i], hf_err_wire(rc));
        assert_int_equal(rc, HF_EINVAL);
    }
    assert_int_equal(
        hf_turn_respond_json(kit.turn, kit_span("{\"response\":\"sleep_over\",\"id\":1}"),
                             &kit.err),
        HF_ERESPONSE);
    assert_int_equal(
        hf_turn_respond_json(kit.turn, kit_span("{\"response\":\"sleep_over\",\"id\":9}"),
                             &kit.err),
        HF_ESTALE);
    kit_save(&kit, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    hf_bytes_free(&before);
    hf_bytes_free(&after);
    kit_fini(&kit);
}

static void levers_work_by_json_too(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum hf_outcome_kind kind;
    } cases[] = {
        { "{\"response\":\"cancel\",\"evidence\":{\"request_id\":\"r\"}}",
          HF_OUTCOME_CANCELLED },
        { "{\"response\":\"fail\",\"code\":\"c\",\"message\":\"m\"}",
          HF_OUTCOME_RUNTIME_ERROR },
        { "{\"response\":\"finish\",\"outcome\":{\"kind\":\"final_value\",\"value\":[1]}"
          "}",
          HF_OUTCOME_FINAL_VALUE },
    };
    for (size_t i = 0; i < 3; i++) {
        struct kit kit;
        kit_init(&kit);
        kit_start(&kit);
        kit_next(&kit);
        assert_int_equal(
            hf_turn_respond_json(kit.turn, kit_span(cases[i].json), &kit.err), 0);
        assert_int_equal(hf_turn_outcome(kit.turn)->kind, cases[i].kind);
        kit_fini(&kit);
    }
}

static void a_surface_given_by_json_belongs_to_the_turn(void **state)
{
    (void)state;
    struct kit kit;
    const char *json = NULL;
    kit_init(&kit);
    kit.config.sync = true;
    kit_start(&kit);
    assert_int_equal(hf_turn_poll_json(kit.turn, &json, &kit.err), 0);
    assert_string_equal(json, "{\"effect\":\"sync_execution_surface\",\"id\":1,"
                              "\"iteration\":0,\"update\":false}");
    assert_int_equal(
        hf_turn_respond_json(
            kit.turn,
            kit_span("{\"response\":\"synced\",\"id\":1,\"surface\":{"
                     "\"prompt\":\"P\\u00e9\",\"tools\":[{\"name\":\"x\"}]}}"),
            &kit.err),
        0);
    kit_next(&kit);
    assert_string_equal(kit.effect.request->prompt.at, "P\xc3\xa9");
    assert_string_equal(kit.effect.request->tools.at, "[{\"name\":\"x\"}]");
    kit_fini(&kit);
}

static void a_replay_names_the_first_divergence(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_bytes head = { 0 };
    struct hf_bytes actual = { 0 };
    struct hf_replay *replay = NULL;
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1" };
    kit_init(&kit);
    kit_start_with(&kit, &start);
    assert_int_equal(hf_recording_head(kit.setup, &start, &head, &kit.err), 0);
    struct hf_span first = { head.at, head.len };
    assert_int_equal(hf_replay_new(NULL, first, NULL, &replay, &kit.err), 0);
    assert_int_equal(
        hf_replay_line(replay,
                       kit_span("{ \"iteration\": 0, \"effect\": \"emit\", \"emit\": {"
                                "\"tools\": \"add,sub\", \"kind\": \"llm_request\"} }"),
                       &actual, &kit.err),
        0); /* the order of keys does not matter */
    assert_int_equal(hf_replay_line(replay, kit_span("{\"effect\":\"sleep\",\"id\":1}"),
                                    &actual, &kit.err),
                     HF_ECONFLICT);
    assert_non_null(strstr(actual.at, "\"effect\":\"llm_call\""));
    hf_bytes_free(&actual);
    assert_int_equal(
        hf_replay_line(replay, kit_span("{\"effect\":\"done\"}"), &actual, &kit.err),
        HF_ECONFLICT);
    assert_int_equal(actual.len, 0);
    hf_bytes_free(&actual);
    assert_int_equal(hf_replay_line(replay, kit_span("{\"other\":1}"), &actual, &kit.err),
                     HF_EINVAL);
    hf_replay_free(replay);
    assert_int_equal(
        hf_replay_new(NULL, kit_span("{\"recording\":2}"), NULL, &replay, &kit.err),
        HF_ENEWER);
    assert_int_equal(hf_replay_new(NULL, kit_span("{}"), NULL, &replay, &kit.err),
                     HF_EINVAL);
    hf_bytes_free(&head);
    kit_fini(&kit);
}

static void walking_keeps_the_bytes_of_values(void **state)
{
    (void)state;
    struct hf_walk walk;
    struct hf_arena arena;
    struct hf_span text = { 0 };
    int64_t number = 0;
    hf_arena_init(&arena, hf_alloc_system());
    hf_walk_begin(&walk,
                  kit_span(" { \"a\" : [1, {\"b\":\"]\\\"}\"}] , \"c\":-1.50e3 } "));
    assert_true(hf_walk_enter(&walk, '{'));
    assert_true(hf_walk_more(&walk));
    assert_true(hf_walk_is(hf_walk_key(&walk), "a"));
    struct hf_span value = hf_walk_value(&walk);
    assert_int_equal(value.len, strlen("[1, {\"b\":\"]\\\"}\"}]"));
    assert_true(hf_walk_more(&walk));
    assert_true(hf_walk_is(hf_walk_key(&walk), "c"));
    value = hf_walk_value(&walk);
    assert_memory_equal(value.at, "-1.50e3", 7);
    assert_int_equal(value.len, 7);
    assert_false(hf_walk_i64(value, &number));
    assert_false(hf_walk_more(&walk));
    assert_int_equal(hf_walk_next(&walk), '\0');
    assert_int_equal(
        hf_walk_text(&arena, kit_span("\"a\\n\\u00e9\\ud83c\\udf31\""), &text), 0);
    assert_string_equal(text.at, "a\n\xc3\xa9\xf0\x9f\x8c\xb1");
    assert_int_equal(hf_walk_text(&arena, kit_span("12"), &text), HF_EINVAL);
    assert_true(hf_walk_i64(kit_span("-12"), &number));
    assert_int_equal(number, -12);
    hf_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_is_no_response_is_refused),
        cmocka_unit_test(levers_work_by_json_too),
        cmocka_unit_test(a_surface_given_by_json_belongs_to_the_turn),
        cmocka_unit_test(a_replay_names_the_first_divergence),
        cmocka_unit_test(walking_keeps_the_bytes_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
