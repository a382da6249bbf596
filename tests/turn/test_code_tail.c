/* The end of a request, which is about that request alone: variables, what is given, and where
 * the part before it ends that a provider can keep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "turn/code_kit.h"

#define TAIL "[turn state] This is step"

static void assert_told(struct code_kit *code, const char *text)
{
    const char *prompt = code_prompt(code);
    if (!strstr(prompt, text))
        print_error("not told: %s\nin: %s\n", text, prompt);
    assert_non_null(strstr(prompt, text));
}

static void start_given(struct code_kit *code, const char *given, const char *refs)
{
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .given = kit_span(given),
                                   .given_refs = kit_span(refs) };
    memset(code, 0, sizeof(*code));
    kit_init(&code->kit);
    code->kit.config.protocol = hf_protocol_code();
    kit_start_with(&code->kit, &start);
    kit_next(&code->kit);
    kit_forget(&code->kit);
}

static char *variables_of(const char *bindings)
{
    struct hf_bytes text = { 0 };
    struct hf_err err = { 0 };
    assert_int_equal(hf_code_variables(NULL, kit_span(bindings), &text, &err), 0);
    char *copy = strndup(text.at ? text.at : "", text.len);
    hf_bytes_free(&text);
    return copy;
}

static void ran(struct code_kit *code, const char *before, const char *after,
                const char *variables)
{
    code_reply(code, "<lua>\nx()\n</lua>");
    code_result(code, &(struct hf_exec_result){ .bindings_before = before,
                                                .bindings_after = after,
                                                .variables = kit_span(variables) });
    code_nothing(code);
}

static void variables_are_shown_with_type_and_beginning(void **state)
{
    (void)state;
    char *text = variables_of(
        "{\"a\":true,\"b\":null,\"c\":-1.5,\"d\":\"a \\\"b\\\"\\n\",\"e\":[1,[2],{}],"
        "\"f\":{},\"g\":{\"x\":1,\"y\":{\"z\":[]}},\"h\":{\"$num\":\"inf\"},"
        "\"i\":{\"$hex\":\"00ff\"},\"j\":{\"$map\":[[1,2],[\"k\",3]]}}");
    assert_string_equal(text, "- a (boolean) = true\n"
                              "- b (null) = null\n"
                              "- c (number) = -1.5\n"
                              "- d (string) = \"a \\\"b\\\"\\n\"\n"
                              "- e (list of 3) = [1,[2],{}]\n"
                              "- f (table of 0) = {}\n"
                              "- g (table of 2) = {\"x\":1,\"y\":{\"z\":[]}}\n"
                              "- h (number) = {\"$num\":\"inf\"}\n"
                              "- i (string of bytes) = {\"$hex\":\"00ff\"}\n"
                              "- j (table of 2) = {\"$map\":[[1,2],[\"k\",3]]}");
    free(text);
    text = variables_of("{}");
    assert_string_equal(text, "");
    free(text);
}

/* 63 bytes and a character of two: it is not cut in the middle. */
static void a_long_value_is_cut_between_characters(void **state)
{
    (void)state;
    char *text = variables_of(
        "{\"s\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaa\xc3\xa9 and more\"}");
    assert_string_equal(text,
                        "- s (string) = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                        "aaaaaaaaaaaaaaa... (75 bytes as JSON)");
    free(text);
}

static void what_is_shown_of_variables_is_bounded(void **state)
{
    (void)state;
    static const size_t counts[] = { 1, 30, 200, 5000 };
    static const int widths[] = { 4, 191 };
    for (size_t i = 0; i < 8; i++) {
        size_t count = counts[i / 2];
        int width = widths[i % 2];
        char *bindings = malloc(count * 300 + 3);
        size_t len = 1;
        bindings[0] = '{';
        for (size_t n = 0; n < count; n++)
            len += (size_t)snprintf(bindings + len, 300, "%s\"v%0*zu\":\"%060zu\"",
                                    n > 0 ? "," : "", width - 1, n, n);
        memcpy(bindings + len, "}", 2);
        if (len < (size_t)HF_MAX_CELL_BINDINGS_BYTES) {
            char *text = variables_of(bindings);
            assert_true(strlen(text) <= (size_t)HF_MAX_CODE_VARIABLES_BYTES);
            assert_int_equal(strstr(text, "\n- and ") != NULL, count >= 30 && i > 2);
            free(text);
        }
        free(bindings);
    }
}

static void past_the_bound_there_are_names_and_then_a_number(void **state)
{
    (void)state;
    char bindings[16384] = "{";
    size_t len = 1;
    for (int i = 100; i < 300; i++)
        len += (size_t)snprintf(bindings + len, 100, "%s\"v%d\":\"%050d\"",
                                i > 100 ? "," : "", i, i);
    memcpy(bindings + len, "}", 2);
    char *text = variables_of(bindings);
    /* Lines of 70 bytes until 3,072 are passed: v100 to v143. */
    assert_non_null(strstr(text, "\n- v143 (string) = \"0"));
    assert_null(strstr(text, "\n- v144 "));
    assert_non_null(strstr(text, "\n- and 156 more: v144, v145, "));
    assert_string_equal(text + strlen(text) - 5, ", ...");
    free(text);
}

static void the_tail_shows_the_variables_of_the_last_step(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    assert_null(strstr(code_prompt(&code), "Variables"));
    ran(&code, "h0", "h1", "- x (number) = 1");
    assert_told(&code, "\nuser: Variables that cells have set and that a cell can use:\n"
                       "- x (number) = 1 / " TAIL);
    ran(&code, "h1", "h2", "- x (number) = 2");
    assert_told(&code, "use:\n- x (number) = 2 / " TAIL);
    assert_null(strstr(code_prompt(&code), "= 1"));
    kit_cut(&code.kit);
    kit_next(&code.kit);
    assert_told(&code, "use:\n- x (number) = 2 / " TAIL);
    code_fini(&code);
}

static void a_step_that_kept_nothing_leaves_the_variables_shown(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    ran(&code, "h0", "h1", "- x (number) = 1");
    code_reply(&code, "<lua>\nx(\n</lua>");
    code_error(&code, "line 1: no"); /* a host that says nothing of variables */
    code_nothing(&code);
    assert_told(&code, "- x (number) = 1 / " TAIL);
    ran(&code, "h1", "h2", ""); /* all gone */
    assert_null(strstr(code_prompt(&code), "Variables"));
    code_fini(&code);
}

/* What is given */

static void what_is_given_is_shown_and_comes_with_each_cell(void **state)
{
    (void)state;
    struct code_kit code;
    start_given(&code, "{\"user\": {\"name\":\"Ada\"}, \"limit\": 3.0}",
                "{\"report\": {\"about\":\"of the \\\"year\\\"\",\"url\":\"s3://x\"}, "
                "\"log\":17, \"odd\":{\"about\":1}}");
    assert_told(&code, "user: Names that are given to you: a cell can read them and not "
                       "assign to them or change what is in them. One of them hides a "
                       "variable of the same name:\n"
                       "- limit (number) = 3\n"
                       "- user (table of 1) = {\"name\":\"Ada\"}\n"
                       "- log: fetched when a cell first reads it\n"
                       "- odd: fetched when a cell first reads it\n"
                       "- report: of the \\\"year\\\" (fetched when a cell first reads "
                       "it) / " TAIL);
    assert_null(strstr(code_prompt(&code), "s3://"));
    code_reply(&code, "<lua>\nx()\n</lua>");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(code.kit.effect.given.at,
                            "{\"limit\":3,\"user\":{\"name\":\"Ada\"}}");
        assert_string_equal(
            code.kit.effect.given_refs.at,
            "{\"log\":17,\"odd\":{\"about\":1},\"report\":{\"about\":\"of "
            "the \\\"year\\\"\",\"url\":\"s3://x\"}}");
        kit_cut(&code.kit);
        kit_next(&code.kit);
    }
    code_printed(&code, "done");
    assert_int_equal(code.kit.effect.given.len, 0); /* of cells only */
    code_nothing(&code);
    assert_told(&code, "- limit (number) = 3\n");
    code_fini(&code);
}

static void an_empty_object_gives_nothing(void **state)
{
    (void)state;
    struct code_kit code;
    start_given(&code, " { } ", "{}");
    assert_null(strstr(code_prompt(&code), "given"));
    code_reply(&code, "<lua>\nx()\n</lua>");
    assert_int_equal(code.kit.effect.given.len, 0);
    assert_int_equal(code.kit.effect.given_refs.len, 0);
    code_fini(&code);
}

static void refuse(const char *given, const char *refs, int code, const char *field)
{
    struct kit kit;
    kit_init(&kit);
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .given = kit_span(given),
                                   .given_refs = kit_span(refs) };
    struct hf_turn *turn = NULL;
    kit_start(&kit);
    assert_int_equal(hf_turn_new(kit.setup, &start, &turn, &kit.err), code);
    assert_string_equal(kit.err.field, field);
    assert_null(turn);
    kit_fini(&kit);
}

static void what_cannot_be_given_is_refused_before_the_turn_begins(void **state)
{
    (void)state;
    char *large = malloc(70000);
    memset(large, 'x', 70000);
    memcpy(large, "{\"a\":\"", 6);
    memcpy(large + 69996, "\"}", 3);
    refuse("[1]", "", HF_EINVAL, "given");
    refuse("{\"a\":1", "", HF_EINVAL, "given");
    refuse("{\"a\":1,\"a\":2}", "", HF_EINVAL, "given");
    refuse("{\"a b\":1}", "", HF_EINVAL, "given");
    refuse("{\"\":1}", "", HF_EINVAL, "given");
    refuse("{\"1a\":1}", "", HF_EINVAL, "given");
    refuse("", "17", HF_EINVAL, "given_refs");
    refuse("", "{\"a.b\":1}", HF_EINVAL, "given_refs");
    refuse("{\"a\":1,\"b\":2}", "{\"b\":1}", HF_EINVAL, "given_refs");
    refuse(large, "", HF_ETOOBIG, "given");
    refuse("", large, HF_ETOOBIG, "given_refs");
    free(large);
}

/* The breakpoint */

/* The request that is out up to its breakpoint; which message that is. */
static size_t cached(struct code_kit *code, char *out, size_t room)
{
    struct hf_render *render = NULL;
    const struct hf_rendered *message = NULL;
    size_t used = 0;
    assert_int_equal(
        hf_render_new(code->kit.turn, code->kit.effect.request, &render, &code->kit.err),
        0);
    for (size_t i = 0; (message = hf_render_message(render, i)) != NULL; i++) {
        for (size_t b = 0; b < message->block_count; b++)
            used += (size_t)snprintf(out + used, room - used, "%s: %s\n",
                                     hf_role_name(message->role),
                                     (const char *)message->blocks[b].text.at);
        if (message->cache_breakpoint) {
            hf_render_free(render);
            return i;
        }
    }
    fail_msg("no breakpoint");
    return 0;
}

static void check_next(struct code_kit *code, size_t message)
{
    static char before[65536];
    char now[65536];
    assert_int_equal(cached(code, now, sizeof(now)), message);
    if (message > 1)
        assert_memory_equal(now, before, strlen(before));
    memcpy(before, now, sizeof(now));
}

/* The prompt is message 0, the user's 1; a cell and its step are two more. */
static void the_breakpoint_stands_before_what_a_later_cell_may_repair(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    check_next(&code, 1);
    code_reply(&code, "One.\n<lua>\none()\n</lua>");
    code_printed(&code, "first");
    code_nothing(&code);
    check_next(&code, 3);
    code_reply(&code, "Two.\n<lua>\ntwo()\n</lua>");
    code_error(&code, "line 1: no");
    code_nothing(&code);
    check_next(&code, 3); /* the failed cell will go once another succeeds */
    code_reply(&code, "Then\n<lua>\nx");
    code_nothing(&code);
    check_next(&code, 3); /* so will the correction, and the prose before it */
    code_reply(&code, "<lua>\nthree()\n</lua>");
    code_printed(&code, "third");
    code_nothing(&code);
    check_next(&code, 5);
    code_fini(&code);
}

static void a_request_without_history_keeps_its_prompt(void **state)
{
    (void)state;
    struct code_kit code;
    start_given(&code, "", "");
    char out[4096];
    assert_int_equal(cached(&code, out, sizeof(out)), 0);
    assert_string_equal(out, "system: You help.\n");
    code_fini(&code);
}

/* A step wraps the value; its record must still be one that a save can be restored with. */
static void a_deep_final_value_survives_the_cut(void **state)
{
    (void)state;
    struct code_kit code;
    char json[256] = { 0 };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx()\n</lua>");
    memset(json, '[', 57);
    memset(json + 57, ']', 57);
    struct hf_exec_result result = { .size = sizeof(result), .finish = { json, 114 } };
    assert_int_equal(
        hf_turn_exec_done(code.kit.turn, code.kit.effect.id, &result, &code.kit.err),
        HF_ETOOBIG);
    assert_string_equal(code.kit.err.field, "finish");
    result.finish = (struct hf_span){ json + 1, 112 };
    code_result(&code, &result);
    kit_cut(&code.kit);
    code_fini(&code);
}

/* 65,536 bytes of one value, eight times that of all: JSON is kept whole or not at all. */
static void a_step_says_how_long_a_value_was_that_it_does_not_keep(void **state)
{
    (void)state;
    struct code_kit code;
    size_t most = 65536;
    char *value = malloc(most + 2);
    memset(value, '1', most + 1);
    struct hf_tool_result calls[10];
    for (int i = 0; i < 10; i++)
        calls[i] = (struct hf_tool_result){ .call_id = "2:1",
                                            .tool = "add",
                                            .value = { value, most } };
    calls[0].value.len = most + 1;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx()\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .calls = calls, .call_count = 10 });
    const char *step = code_event(&code, "hf.code.step", 0);
    size_t kept = 0;
    for (const char *at = step; (at = strstr(at, "\"value\":1")) != NULL; at++)
        kept++;
    assert_int_equal(kept, 8);
    assert_non_null(strstr(step, "\"value_bytes\":65537"));
    assert_non_null(strstr(step, "\"value_bytes\":65536"));
    kit_cut(&code.kit);
    code_fini(&code);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_shown_with_type_and_beginning),
        cmocka_unit_test(a_long_value_is_cut_between_characters),
        cmocka_unit_test(what_is_shown_of_variables_is_bounded),
        cmocka_unit_test(past_the_bound_there_are_names_and_then_a_number),
        cmocka_unit_test(the_tail_shows_the_variables_of_the_last_step),
        cmocka_unit_test(a_step_that_kept_nothing_leaves_the_variables_shown),
        cmocka_unit_test(what_is_given_is_shown_and_comes_with_each_cell),
        cmocka_unit_test(an_empty_object_gives_nothing),
        cmocka_unit_test(what_cannot_be_given_is_refused_before_the_turn_begins),
        cmocka_unit_test(the_breakpoint_stands_before_what_a_later_cell_may_repair),
        cmocka_unit_test(a_request_without_history_keeps_its_prompt),
        cmocka_unit_test(a_deep_final_value_survives_the_cut),
        cmocka_unit_test(a_step_says_how_long_a_value_was_that_it_does_not_keep),
    };
    return cmocka_run_group_tests_name("turn/code_tail", tests, NULL, NULL);
}
