/* What the model reads of past cells, what a cell can read back, and what the surface says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/ident.h"
#include "base/json.h"
#include "base/json_get.h"
#include "core/turn/code/code.h"
#include "turn/code_kit.h"

static void assert_told(struct code_kit *code, const char *text)
{
    const char *prompt = code_prompt(code);
    if (!strstr(prompt, text))
        print_error("not told: %s\nin: %s\n", text, prompt);
    assert_non_null(strstr(prompt, text));
}

static void assert_not_told(struct code_kit *code, const char *text)
{
    assert_null(strstr(code_prompt(code), text));
}

/* Lanes */

static void a_cell_alone_is_recorded_without_reasoning_or_prose(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx = 1\n</lua>");
    const struct hf_message *cell = hf_turn_record(code.kit.turn, 1)->message;
    assert_string_equal(cell->id, "t1.0.cell");
    assert_int_equal(cell->role, HF_ROLE_ASSISTANT);
    assert_int_equal(cell->part_count, 1);
    assert_int_equal(cell->parts[0].kind, HF_PART_CODE);
    assert_string_equal(cell->parts[0].tool, "lua");
    assert_string_equal(cell->parts[0].content.at, "x = 1");
    code_fini(&code);
}

static void reasoning_prose_code_error_and_value_stay_apart(void **state)
{
    (void)state;
    const struct hf_part parts[] = {
        { .kind = HF_PART_REASONING,
          .content = kit_span("thinking"),
          .route = "prov/model-1",
          .replay = kit_span("signed") },
        { .content = kit_span("Look:\n```\nx\n```\n<lua>\nx = 1\n</lua>\nignored") },
    };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply_parts(&code, parts, 2);
    const struct hf_message *cell = hf_turn_record(code.kit.turn, 1)->message;
    assert_int_equal(cell->part_count, 3);
    assert_int_equal(cell->parts[0].kind, HF_PART_REASONING);
    assert_string_equal(cell->parts[0].content.at, "thinking");
    assert_string_equal(cell->parts[0].replay.at, "signed");
    assert_int_equal(cell->parts[1].kind, HF_PART_PROSE);
    assert_string_equal(cell->parts[1].content.at, "Look:\n```\nx\n```");
    assert_string_equal(cell->parts[2].content.at, "x = 1");
    struct hf_observation seen = { .text = kit_span("printed") };
    code_result(&code, &(struct hf_exec_result){ .observations = &seen,
                                                 .observation_count = 1,
                                                 .error = kit_span("line 1: no") });
    code_nothing(&code);
    assert_told(&code, "assistant: [reasoning] / Look:\n```\nx\n``` / <lua>\nx = "
                       "1\n</lua>\nuser: printed / error: line 1: no\n");
    code_fini(&code);
}

static void a_final_value_that_did_not_end_the_turn_is_shown(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_part part = { .content = kit_span("more") };
    struct hf_message message = kit_message(NULL, HF_ROLE_USER, &part);
    struct hf_turn_delivery delivery = { .size = sizeof(delivery),
                                         .messages = &message,
                                         .message_count = 1 };
    struct hf_observation seen = { .text = kit_span("printed") };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nfinish(1)\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .observations = &seen,
                                                 .observation_count = 1,
                                                 .finish = kit_span("[1]") });
    assert_int_equal(hf_turn_checkpoint_done(code.kit.turn, code.kit.effect.id, &delivery,
                                             &code.kit.err),
                     0);
    kit_next(&code.kit);
    assert_told(&code, "user: printed / finished with: [1]\nuser: more\n");
    code_fini(&code);
}

static void images_follow_the_text_of_a_step(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_attachment images[] = { { .ref = "b1" }, { .ref = "b2" } };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nplot()\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .images = images, .image_count = 2 });
    code_nothing(&code);
    assert_told(&code, "user: [the cell ran and printed nothing] / [attachment] / "
                       "[attachment]\n");
    code_fini(&code);
}

static void a_host_that_could_not_run_a_cell_and_an_unknown_one_are_told_apart(
    void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .failed = true,
                                                 .message = kit_span("no engine") });
    code_nothing(&code);
    assert_told(&code, "user: error: the cell could not be run: no engine\n");
    code_fini(&code);
}

/* What was repaired */

static void a_failed_step_is_hidden_once_it_was_repaired(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "Try.\n<lua>\nbad()\n</lua>");
    code_error(&code, "no bad");
    code_nothing(&code);
    assert_told(&code, "bad()");
    code_reply(&code, "Hm.\n<lua>\nunclosed(");
    code_nothing(&code);
    assert_told(&code, "did not close it");
    assert_told(&code, "error: no bad"); /* a correction repairs nothing */
    code_reply(&code, "Now.\n<lua>\ngood()\n</lua>");
    code_printed(&code, "fine");
    code_nothing(&code);
    assert_not_told(&code, "bad()");
    assert_not_told(&code, "no bad");
    assert_not_told(&code, "did not close it");
    assert_not_told(&code, "Hm.");
    assert_told(&code, "user: hi\nassistant: Now. / <lua>\ngood()\n</lua>\nuser: fine\n");
    code_reply(&code, "<lua>\nworse()\n</lua>");
    code_error(&code, "no worse");
    code_nothing(&code);
    assert_told(&code, "error: no worse"); /* not repaired yet */
    code_fini(&code);
}

/* A history of three steps of an earlier turn, lent as a base. */
struct past {
    struct hf_message cells[2];
    struct hf_part parts[2];
    struct hf_record records[6];
    struct hf_message fix;
    struct hf_part fix_part;
    struct hf_origin origin;
};

static const struct hf_record *lend(void *user, uint64_t i)
{
    return &((struct past *)user)->records[i];
}

static struct hf_record event(const char *json)
{
    return (struct hf_record){ .kind = HF_RECORD_EVENT,
                               .name = HF_CODE_STEP,
                               .data = kit_span(json) };
}

static void start_over(struct code_kit *code, struct past *past, size_t count)
{
    struct hf_base base = { .id = "b", .count = count, .user = past, .get = lend };
    struct hf_turn_start start = {
        .size = sizeof(start), .session_id = "s1", .turn_id = "t9", .base = &base
    };
    memset(code, 0, sizeof(*code));
    kit_init(&code->kit);
    code->kit.config.protocol = hf_protocol_code();
    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            hf_record_chain(base.digest, &past->records[i], base.digest, &code->kit.err),
            0);
    kit_start_with(&code->kit, &start);
    kit_next(&code->kit);
}

static void fill_past(struct past *past)
{
    static const char *const sources[] = { "one()", "two()" };
    static const char *const ids[] = { "t8.0.cell", "t8.2.cell" };
    memset(past, 0, sizeof(*past));
    for (size_t i = 0; i < 2; i++) {
        past->parts[i] = (struct hf_part){ .kind = HF_PART_CODE,
                                           .tool = "lua",
                                           .content = kit_span(sources[i]) };
        past->cells[i] = kit_message(ids[i], HF_ROLE_ASSISTANT, &past->parts[i]);
    }
    past->origin =
        (struct hf_origin){ .kind = HF_ORIGIN_PLUGIN, .id = "code", .transient = true };
    past->fix_part = (struct hf_part){ .content = kit_span("correct it") };
    past->fix = kit_message("t8.1.fix", HF_ROLE_SYSTEM, &past->fix_part);
    past->fix.origin = &past->origin;
    past->records[0].message = &past->cells[0];
    past->records[1] = event(
        "{\"step\":4,\"cell\":\"t8.0.cell\",\"after\":\"h4\",\"error\":"
        "\"fault one\",\"output\":[{\"text\":\"a\"}]}");
    past->records[2].message = &past->fix;
    past->records[3].message = &past->cells[1];
    past->records[4] = event(
        "{\"step\":5,\"cell\":\"t8.2.cell\",\"iteration\":2,\"after\":\"h5\",\"error\":"
        "\"no two\"}");
}

static void corrections_of_other_turns_are_not_shown(void **state)
{
    (void)state;
    static struct past past;
    struct code_kit code;
    fill_past(&past);
    start_over(&code, &past, 5);
    assert_not_told(&code, "correct it");
    assert_told(&code, "one()"); /* it failed, and nothing repaired it */
    assert_told(&code, "error: no two");
    code_fini(&code);
}

static void steps_and_bindings_go_on_from_the_history(void **state)
{
    (void)state;
    static struct past past;
    struct code_kit code;
    fill_past(&past);
    start_over(&code, &past, 5);
    code_reply(&code, "<lua>\nthree()\n</lua>");
    assert_string_equal(code.kit.effect.bindings, "h5");
    assert_string_equal(code.kit.effect.driver->data.at, "step.6");
    code_fini(&code);
}

static void a_step_that_cannot_be_read_fails_loudly(void **state)
{
    (void)state;
    static const char *const bad[] = { "[]", "{}", "{\"step\":\"x\",\"cell\":\"c\"}",
                                       "{\"step\":1}", "{\"cell\":1,\"step\":1}" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        static struct past past;
        struct code_kit code;
        struct hf_render *render = NULL;
        struct hf_part part = { .content = kit_span("<lua>x</lua>") };
        struct hf_llm_response response = { .size = sizeof(response),
                                            .parts = &part,
                                            .part_count = 1 };
        fill_past(&past);
        past.records[1] = event(bad[i]);
        start_over(&code, &past, 2);
        assert_int_equal(
            hf_render_new(code.kit.turn, code.kit.effect.request, &render, &code.kit.err),
            HF_EBASE);
        assert_int_equal(hf_turn_llm_done(code.kit.turn, 1, &response, &code.kit.err),
                         HF_EBASE);
        code_fini(&code);
    }
}

/* Long output */

static void long_output_is_shown_in_part_with_a_way_to_all_of_it(void **state)
{
    (void)state;
    static char text[6001];
    static char want[8000];
    struct code_kit code;
    for (size_t over = 0; over < 2; over++) {
        memset(text, 'x', sizeof(text) - 1);
        text[4096 + over] = '\0';
        code_start(&code, NULL);
        code_reply(&code, "<lua>\nf()\n</lua>");
        struct hf_observation seen[] = { { .text = kit_span("short") },
                                         { .text = kit_span(text) } };
        code_result(&code, &(struct hf_exec_result){ .observations = seen,
                                                     .observation_count = 2 });
        code_nothing(&code);
        text[4096] = '\0';
        snprintf(want, sizeof(want), "user: short\n%s\n%s", text,
                 over
                     ? "[1 bytes are not shown. All of it: call(\"history\", { step = 1, "
                       "output = 2 })]\nuser: [turn state]"
                     : "user: [turn state]");
        assert_told(&code, want);
        code_fini(&code);
    }
}

static void much_output_is_shown_up_to_four_times_that(void **state)
{
    (void)state;
    static char text[4097];
    struct hf_observation seen[7];
    struct code_kit code;
    memset(text, 'x', 4096);
    for (size_t i = 0; i < 7; i++)
        seen[i] = (struct hf_observation){ .text = kit_span(text), .truncated = i == 0 };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_result(&code,
                &(struct hf_exec_result){ .observations = seen, .observation_count = 7 });
    code_nothing(&code);
    assert_told(&code, "x\n[cut: the output was over its limit]\nx");
    assert_told(&code,
                "[3 further outputs are not shown. All of them: call(\"history\", { "
                "step = 1 })]\n");
    code_fini(&code);
}

static void output_is_kept_up_to_its_limit_and_no_character_is_split(void **state)
{
    (void)state;
    static char text[524288 + 16];
    struct code_kit code;
    struct hf_bytes value = { 0 };
    memset(text, 'x', 524287);
    memcpy(text + 524287, "\xc3\xa9", 3);
    struct hf_observation seen[] = { { .text = kit_span(text) },
                                     { .text = kit_span("yz") } };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_result(&code,
                &(struct hf_exec_result){ .observations = seen, .observation_count = 2 });
    assert_int_equal(hf_code_history(code.kit.turn, kit_span("{\"step\":1,\"output\":1}"),
                                     &value, &code.kit.err),
                     0);
    assert_int_equal(value.len, 524287 + 2);
    hf_bytes_free(&value);
    assert_int_equal(hf_code_history(code.kit.turn, kit_span("{\"step\":1,\"output\":2}"),
                                     &value, &code.kit.err),
                     0);
    assert_string_equal(value.at, "\"y\"");
    hf_bytes_free(&value);
    assert_non_null(strstr(code_event(&code, HF_CODE_STEP, 0), "\"truncated\":true"));
    code_fini(&code);
}

static void assert_history(struct code_kit *code, const char *args, const char *want)
{
    struct hf_bytes value = { 0 };
    assert_int_equal(
        hf_code_history(code->kit.turn, kit_span(args), &value, &code->kit.err), 0);
    assert_string_equal(value.at, want);
    hf_bytes_free(&value);
}

static void a_cell_can_read_back_any_step_hidden_ones_too(void **state)
{
    (void)state;
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nbad('\"')\n</lua>");
    struct hf_observation seen[] = { { .text = kit_span("a\xc3\xa9"
                                                        "b") },
                                     { .text = { "", 0 } } };
    code_result(&code, &(struct hf_exec_result){ .observations = seen,
                                                 .observation_count = 2,
                                                 .error = kit_span("no bad") });
    code_nothing(&code);
    code_reply(&code, "<lua>finish({1.50})</lua>");
    code_finished(&code, "[1.50]");
    assert_history(&code, "{\"step\":1}",
                   "{\"code\":\"bad('\\\"')\",\"output\":[\"a\xc3\xa9"
                   "b\",\"\"],\"error\":\"no bad\"}");
    assert_history(&code, "{\"step\":2}",
                   "{\"code\":\"finish({1.50})\",\"output\":[],\"final\":[1.50]}");
    assert_history(&code, "{\"step\":1,\"output\":1}",
                   "\"a\xc3\xa9"
                   "b\"");
    assert_history(&code, "{\"step\":1,\"output\":2}", "\"\"");
    assert_history(&code, "{\"step\":1,\"output\":1,\"from\":1,\"bytes\":2}",
                   "\"\xc3\xa9\"");
    assert_history(&code, "{\"step\":1,\"output\":1,\"from\":2}",
                   "\"\xc3\xa9"
                   "b\"");
    assert_history(&code, "{\"step\":1,\"output\":1,\"bytes\":2}", "\"a\"");
    assert_history(&code, "{\"step\":1,\"output\":1,\"from\":99}", "\"\"");
    code_fini(&code);
}

static void what_cannot_be_read_back_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        int rc;
    } cases[] = {
        { "{\"step\":2}", HF_ENOTFOUND },
        { "{\"step\":1,\"output\":2}", HF_ENOTFOUND },
        { "{\"step\":0}", HF_EINVAL },
        { "{}", HF_EINVAL },
        { "{\"step\":1,\"output\":-1}", HF_EINVAL },
        { "{\"step\":1,\"from\":-1}", HF_EINVAL },
        { "{\"step\":\"1\"}", HF_EINVAL },
        { "{\"stp\":1}", HF_EINVAL },
        { "[1]", HF_EINVAL },
        { "", HF_EINVAL },
    };
    struct code_kit code;
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nf()\n</lua>");
    code_printed(&code, "1");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_bytes value = { 0 };
        assert_int_equal(hf_code_history(code.kit.turn, kit_span(cases[i].args), &value,
                                         &code.kit.err),
                         cases[i].rc);
        assert_null(value.at);
    }
    code_fini(&code);
}

/* Trajectories */

static void a_saves_trajectory_shows_cells_steps_and_what_is_running(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_bytes save = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_tool_result call = { .call_id = "2:1",
                                   .tool = "add",
                                   .value = kit_span("1") };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx = call('add', {})\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .calls = &call,
                                                 .call_count = 1,
                                                 .bindings_after = "h1",
                                                 .bindings_delta = kit_span("{\"x\":1}"),
                                                 .duration_ms = 3 });
    code_nothing(&code);
    code_reply(&code, "<lua>\nprint(x)\n</lua>");
    kit_save(&code.kit, &save);
    struct hf_span bytes = { save.at, save.len };
    assert_int_equal(hf_code_trajectory(NULL, bytes, &json, &code.kit.err), 0);
    assert_string_equal(
        json.at,
        "[{\"language\":\"lua\",\"code\":\"x = call('add', "
        "{})\",\"step\":1,\"cell\":\"t1.0."
        "cell\",\"after\":\"h1\",\"calls\":[{\"id\":\"2:1\",\"tool\":\"add\",\"outcome\":"
        "\"success\",\"value\":1}],\"delta\":{\"x\":1},\"duration_ms\":3},{\"language\":"
        "\"lua\","
        "\"code\":\"print(x)\",\"running\":true}]");
    hf_bytes_free(&json);
    bytes.len--;
    assert_int_equal(hf_code_trajectory(NULL, bytes, &json, &code.kit.err), HF_ECORRUPT);
    hf_bytes_free(&save);
    code_fini(&code);
}

/* Changes each place of `word` in turn, with a digest that is right: what is found to be wrong
 * must be the save's fault. Returns how many were refused. */
static int refused_without(const struct hf_bytes *save, const char *word)
{
    int refused = 0;
    uint8_t *bytes = save->at;
    const struct hf_span whole = { save->at, save->len };
    for (size_t i = 0; i + strlen(word) + 32 < save->len; i++) {
        struct hf_bytes text = { 0 };
        struct hf_err err = { 0 };
        if (memcmp(bytes + i, word, strlen(word)) != 0)
            continue;
        bytes[i + 1] ^= 1;
        assert_int_equal(hf_sha256(bytes, save->len - 32, bytes + save->len - 32), 0);
        int rc = hf_turn_describe(NULL, whole, &text, &err);
        hf_bytes_free(&text);
        text = (struct hf_bytes){ 0 };
        int steps = hf_code_trajectory(NULL, whole, &text, &err);
        hf_bytes_free(&text);
        assert_true(rc == 0 || rc == HF_ECORRUPT);
        assert_true(steps == 0 || steps == HF_ECORRUPT);
        refused += rc == HF_ECORRUPT || steps == HF_ECORRUPT;
        bytes[i + 1] ^= 1;
    }
    return refused;
}

static void a_save_that_contradicts_itself_is_corrupt(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_bytes save = { 0 };
    code_start(&code, NULL);
    code_reply(&code, "<lua>\nx = 1\n</lua>");
    code_result(&code, &(struct hf_exec_result){ .bindings_after = "h1",
                                                 .bindings_delta = kit_span("{}"),
                                                 .duration_ms = 3 });
    code_nothing(&code);
    kit_save(&code.kit, &save);
    assert_true(refused_without(&save, "duration_ms") > 0); /* a member of the step */
    hf_bytes_free(&save);
    code_reply(&code, "<lua>\nprint(x)\n</lua>");
    kit_save(&code.kit, &save);
    assert_true(refused_without(&save, "code") > 0); /* whose driver state it is */
    hf_bytes_free(&save);
    code_fini(&code);
}

static void an_exports_trajectory_has_the_history_too(void **state)
{
    (void)state;
    static struct past past;
    struct code_kit code;
    struct hf_bytes save = { 0 };
    struct hf_bytes json = { 0 };
    fill_past(&past);
    start_over(&code, &past, 5);
    assert_int_equal(hf_turn_export(code.kit.turn, &save, &code.kit.err), 0);
    assert_int_equal(hf_code_trajectory(NULL, (struct hf_span){ save.at, save.len },
                                        &json, &code.kit.err),
                     0);
    assert_string_equal(
        json.at,
        "[{\"language\":\"lua\",\"code\":\"one()\",\"step\":4,\"cell\":\"t8.0.cell\","
        "\"after\":\"h4\",\"error\":\"fault "
        "one\",\"output\":[{\"text\":\"a\"}]},{\"language\":"
        "\"lua\",\"code\":\"two()\",\"step\":5,\"cell\":\"t8.2.cell\",\"iteration\":2,"
        "\"after\":\"h5\",\"error\":\"no two\"}]");
    hf_bytes_free(&json);
    hf_bytes_free(&save);
    code_fini(&code);
}

/* Surfaces */

static char *surface_text(const char *options, const char *prompt, const char *tools)
{
    struct hf_err err = { 0 };
    struct hf_protocol *protocol = NULL;
    struct hf_surface *surface = NULL;
    assert_int_equal(hf_code_new(NULL, kit_span(options), &protocol, &err), 0);
    int rc = hf_code_surface(NULL, protocol, kit_span(prompt), kit_span(tools), &surface,
                             &err);
    if (rc)
        print_error("%s\n", err.message);
    assert_int_equal(rc, 0);
    char *text = strdup(surface->face.prompt.at);
    assert_string_equal(surface->face.tools.at, tools);
    hf_surface_free(surface);
    hf_code_free(protocol);
    return text;
}

static void tools_are_shown_as_calls_with_what_their_schemas_say(void **state)
{
    (void)state;
    char *text = surface_text(
        "", "You help.",
        "[{\"name\":\"search\",\"description\":\"Finds "
        "pages.\\nSlowly.\",\"parameters\":{"
        "\"type\":\"object\",\"required\":[\"query\"],\"properties\":{\"query\":{"
        "\"type\":"
        "\"string\",\"description\":\"words\"},\"limit\":{\"type\":\"integer\"},\"in\":{"
        "\"enum\":[\"web\",\"mail\"]},\"tags\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"string\"}},\"a-b\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":["
        "\"number\""
        ",\"null\"]}}},\"any\":{}}}},{\"name\":\"stop\\\"now\",\"input_schema\":{}},{"
        "\"name\":"
        "\"bare\"}]");
    assert_non_null(strstr(
        text,
        "\n- call(\"search\", { query = string, limit? = integer, in? = \"web\" | "
        "\"mail\", tags? = {string, ...}, [\"a-b\"]? = { x? = number }, any? = any }): "
        "Finds pages. …\n  query: words\n- call(\"stop\\\"now\", {})\n- call(\"bare\", "
        "{})"));
    assert_int_equal(strncmp(text, "You help.\n\n# Working with code", 30), 0);
    assert_non_null(strstr(text, "\n<lua>\nyour program\n</lua>\n"));
    assert_non_null(strstr(text, "Lua 5.4"));
    free(text);
}

static void a_surface_without_tools_or_of_another_language_says_so(void **state)
{
    (void)state;
    char *text = surface_text("{\"language\":\"python\"}", "", "[]");
    assert_int_equal(strncmp(text, "# Working with code", 19), 0);
    assert_non_null(strstr(text, "There are no tools to call."));
    assert_non_null(strstr(text, "<python>\nyour program\n</python>"));
    assert_null(strstr(text, "Lua"));
    free(text);
}

static void a_surface_that_is_not_well_formed_is_refused(void **state)
{
    (void)state;
    struct hf_surface *surface = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_code_surface(NULL, hf_protocol_standard(), kit_span(""),
                                     kit_span(""), &surface, &err),
                     HF_EPROTOCOL);
    assert_int_equal(hf_code_surface(NULL, hf_protocol_code(), kit_span("\xff"),
                                     kit_span(""), &surface, &err),
                     HF_EINVAL);
    assert_int_equal(hf_code_surface(NULL, hf_protocol_code(), kit_span(""),
                                     kit_span("{}"), &surface, &err),
                     HF_EINVAL);
}

/* Values and schemas */

static void values_fit_schemas_as_they_should(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        const char *value;
        const char *why;
    } cases[] = {
        { "{}", "1", "" },
        { "true", "[]", "" },
        { "false", "[]", "value is not allowed" },
        { "{\"type\":\"integer\"}", "2", "" },
        { "{\"type\":\"integer\"}", "2.0", "" },
        { "{\"type\":\"integer\"}", "2.5", "value must be of type integer" },
        { "{\"type\":\"number\"}", "2", "" },
        { "{\"type\":[\"string\",\"null\"]}", "null", "" },
        { "{\"type\":[\"string\",\"null\"]}", "1", "value must be of type null" },
        { "{\"type\":\"boolean\"}", "false", "" },
        { "{\"enum\":[1,\"a\"]}", "1.0", "" },
        { "{\"enum\":[1,\"a\"]}", "\"b\"",
          "value must be one of the values of its enum" },
        { "{\"const\":{\"a\":1,\"b\":2}}", "{\"b\":2,\"a\":1}", "" },
        { "{\"const\":1}", "2", "value must be the value of its const" },
        { "{\"required\":[\"a\"]}", "{\"a\":null}", "" },
        { "{\"required\":[\"a\"]}", "{}", "value lacks the member a" },
        { "{\"required\":[\"a\"]}", "1", "" },
        { "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}",
          "value.a must be of type string" },
        { "{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"b\":1}",
          "value.b is not allowed" },
        { "{\"additionalProperties\":{\"type\":\"string\"}}", "{\"b\":1}",
          "value.b must be of type string" },
        { "{\"items\":{\"type\":\"string\"}}", "[\"a\",1]",
          "value[1] must be of type string" },
        { "{\"minItems\":1}", "[]", "value must have at least this many items: 1" },
        { "{\"maxItems\":1}", "[1,2]", "value must have at most this many items: 1" },
        { "{\"minLength\":2}", "\"\xc3\xa9\"",
          "value must be of a length of at least 2" },
        { "{\"maxLength\":1}", "\"\xc3\xa9\"", "" },
        { "{\"maxLength\":1}", "\"ab\"", "value must be of a length of at most 1" },
        { "{\"minimum\":1.5}", "1", "value must be at least 1.5" },
        { "{\"maximum\":3}", "3", "" },
        { "{\"maximum\":3}", "3.1", "value must be at most 3" },
        { "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "1",
          "value fits more than one of the alternatives" },
        { "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "1.5", "" },
        { "{\"anyOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "1", "" },
        { "{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3",
          "value must be at most 2" },
        { "{\"title\":\"x\",\"description\":\"y\",\"default\":1}", "\"z\"", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_err err = { 0 };
        struct hf_buf why;
        struct json_t *schema = NULL;
        hf_buf_init(&why, hf_alloc_system(), 1000);
        assert_int_equal(
            hf_json_parse(kit_span(cases[i].schema), 1000, "schema", &schema, &err), 0);
        assert_int_equal(hf_fit_check(schema, &err), 0);
        assert_int_equal(
            hf_fit(hf_alloc_system(), schema, kit_span(cases[i].value), &why, &err), 0);
        assert_string_equal(hf_buf_str(&why), cases[i].why);
        hf_json_free(schema);
        hf_buf_fini(&why);
    }
}

static void schemas_that_are_not_understood_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "1",
        "[]",
        "{\"pattern\":\"x\"}",
        "{\"type\":\"text\"}",
        "{\"type\":[]}",
        "{\"type\":1}",
        "{\"enum\":1}",
        "{\"anyOf\":[]}",
        "{\"anyOf\":{}}",
        "{\"allOf\":[1]}",
        "{\"properties\":[]}",
        "{\"properties\":{\"a\":{\"$ref\":\"#\"}}}",
        "{\"required\":\"a\"}",
        "{\"required\":[1]}",
        "{\"items\":[{}]}",
        "{\"minItems\":-1}",
        "{\"maxLength\":1.5}",
        "{\"minimum\":\"1\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_err err = { 0 };
        struct json_t *schema = NULL;
        assert_int_equal(hf_json_parse(kit_span(bad[i]), 1000, "schema", &schema, &err),
                         0);
        assert_int_equal(hf_fit_check(schema, &err), HF_EINVAL);
        assert_string_equal(err.field, "schema");
        hf_json_free(schema);
    }
}

/* Texts */

#define SYSTEM_MAX 2048
#define TEXT_MAX 320

static void every_text_is_within_its_bound(void **state)
{
    (void)state;
    for (int i = 0; i < HF_PROMPT_COUNT; i++) {
        const struct hf_prompt *prompt = &hf_prompts[i];
        size_t max = i == HF_PROMPT_CODE_SYSTEM || i == HF_PROMPT_CODE_LUA ? SYSTEM_MAX
                                                                           : TEXT_MAX;
        size_t bytes = 0;
        for (size_t n = 0; n < prompt->count; n++) {
            const struct hf_piece *piece = &prompt->pieces[n];
            assert_int_equal(strlen(piece->text), piece->len);
            assert_true(hf_text_clean(piece->text, piece->len));
            bytes += piece->len;
        }
        if (bytes > max || bytes == 0)
            print_error("%s has %zu bytes\n", prompt->name, bytes);
        assert_in_range(bytes, 1, max);
        assert_int_equal(prompt->bytes, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_alone_is_recorded_without_reasoning_or_prose),
        cmocka_unit_test(reasoning_prose_code_error_and_value_stay_apart),
        cmocka_unit_test(a_final_value_that_did_not_end_the_turn_is_shown),
        cmocka_unit_test(images_follow_the_text_of_a_step),
        cmocka_unit_test(
            a_host_that_could_not_run_a_cell_and_an_unknown_one_are_told_apart),
        cmocka_unit_test(a_failed_step_is_hidden_once_it_was_repaired),
        cmocka_unit_test(corrections_of_other_turns_are_not_shown),
        cmocka_unit_test(steps_and_bindings_go_on_from_the_history),
        cmocka_unit_test(a_step_that_cannot_be_read_fails_loudly),
        cmocka_unit_test(long_output_is_shown_in_part_with_a_way_to_all_of_it),
        cmocka_unit_test(much_output_is_shown_up_to_four_times_that),
        cmocka_unit_test(output_is_kept_up_to_its_limit_and_no_character_is_split),
        cmocka_unit_test(a_cell_can_read_back_any_step_hidden_ones_too),
        cmocka_unit_test(what_cannot_be_read_back_says_why),
        cmocka_unit_test(a_saves_trajectory_shows_cells_steps_and_what_is_running),
        cmocka_unit_test(a_save_that_contradicts_itself_is_corrupt),
        cmocka_unit_test(an_exports_trajectory_has_the_history_too),
        cmocka_unit_test(tools_are_shown_as_calls_with_what_their_schemas_say),
        cmocka_unit_test(a_surface_without_tools_or_of_another_language_says_so),
        cmocka_unit_test(a_surface_that_is_not_well_formed_is_refused),
        cmocka_unit_test(values_fit_schemas_as_they_should),
        cmocka_unit_test(schemas_that_are_not_understood_are_refused),
        cmocka_unit_test(every_text_is_within_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
