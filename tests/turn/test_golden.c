/* Saves and a recording that were written once and must be read for ever. To write those of
 * a new version next to the old: HF_GOLDEN_WRITE=1, with HF_GOLDEN naming the folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "turn/cells.h"
#include "turn/code_kit.h"

static char *load(const char *name, size_t *ret_len)
{
    char path[4096];
    const char *folder = getenv("HF_GOLDEN");
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : "tests/turn/golden", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        print_error("no %s\n", path);
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    *ret_len = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void write_golden(const char *name, const void *bytes, size_t len)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", getenv("HF_GOLDEN"), name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

/* The turn's save is the golden one to the byte, and the golden one returns the same
 * turn. */
static void check(struct kit *kit, const char *name, enum hf_turn_state state)
{
    struct hf_bytes save = { 0 };
    struct hf_bytes again = { 0 };
    struct hf_turn *turn = NULL;
    size_t len = 0;
    kit_save(kit, &save);
    if (getenv("HF_GOLDEN_WRITE"))
        write_golden(name, save.at, save.len);
    char *golden = load(name, &len);
    assert_int_equal(save.len, len);
    assert_memory_equal(save.at, golden, len);
    assert_int_equal(hf_turn_restore(kit->setup, (struct hf_span){ golden, len }, NULL,
                                     &turn, &kit->err),
                     0);
    assert_int_equal(hf_turn_state(turn), state);
    assert_int_equal(hf_turn_save(turn, &again, &kit->err), 0);
    assert_int_equal(again.len, len);
    assert_memory_equal(again.at, golden, len);
    hf_turn_free(turn);
    hf_bytes_free(&save);
    hf_bytes_free(&again);
    free(golden);
}

static void saves_of_version_1_are_read_for_ever(void **state)
{
    (void)state;
    struct kit kit;
    struct hf_llm_error error = { .size = sizeof(error),
                                  .transient = true,
                                  .charge_safe = true };
    kit_init(&kit);
    kit.config.sync = true;
    kit_start(&kit);
    check(&kit, "v1-preparing.save", HF_TURN_PREPARING);
    kit_next(&kit);
    check(&kit, "v1-surface.save", HF_TURN_WAITING_SURFACE);
    assert_int_equal(hf_turn_synced(kit.turn, 1, NULL, &kit.err), 0);
    check(&kit, "v1-iteration.save", HF_TURN_PREPARE_ITERATION);
    kit_next(&kit);
    check(&kit, "v1-llm.save", HF_TURN_WAITING_LLM);
    assert_int_equal(hf_turn_llm_failed(kit.turn, 2, &error, &kit.err), 0);
    kit_next(&kit);
    assert_int_equal(hf_turn_sleep_noted(kit.turn, 3, 1700000000000, &kit.err), 0);
    check(&kit, "v1-sleep.save", HF_TURN_WAITING_SLEEP);
    assert_int_equal(hf_turn_sleep_over(kit.turn, 3, &kit.err), 0);
    kit_next(&kit);
    kit_reply_calls(&kit, "c1", "c2");
    check(&kit, "v1-tools-queued.save", HF_TURN_WAITING_TOOLS);
    kit_next(&kit);
    kit_success(&kit, "c2", "{\"n\":2.50}");
    check(&kit, "v1-tools-partial.save", HF_TURN_WAITING_TOOLS);
    kit_success(&kit, "c1", "1");
    kit_next(&kit);
    check(&kit, "v1-checkpoint.save", HF_TURN_WAITING_CHECKPOINT);
    assert_int_equal(hf_turn_fail(kit.turn, "stop", "enough", &kit.err), 0);
    check(&kit, "v1-finished.save", HF_TURN_FINISHED);
    kit_fini(&kit);

    kit_init(&kit);
    kit.config.protocol = cells_protocol();
    kit_start(&kit);
    kit_next(&kit);
    kit_reply_text(&kit, "run: x = 1");
    kit_next(&kit);
    check(&kit, "v1-exec.save", HF_TURN_WAITING_EXEC);
    kit_fini(&kit);
}

static void saves_of_code_turns_are_read_for_ever(void **state)
{
    (void)state;
    struct code_kit code;
    struct hf_observation seen[] = { { .text = kit_span("1\n\"two\"") },
                                     { .text = kit_span("…"), .truncated = true } };
    struct hf_failure failure = { .code = "disk" };
    struct hf_tool_result calls[] = {
        { .call_id = "2:1", .tool = "add", .value = kit_span("1.50"), .duration_ms = 4 },
        { .call_id = "2:2",
          .tool = "sub",
          .outcome = HF_TOOL_FAILURE,
          .failure = &failure },
    };
    struct hf_attachment image = { .ref = "b1", .media_type = "image/png" };
    code_start(&code, NULL);
    check(&code.kit, "v1-code-llm.save", HF_TURN_WAITING_LLM);
    code_reply(&code, "Let me see.\n<lua>\nx = 1\nprint(x)\n</lua>\n");
    check(&code.kit, "v1-code-exec.save", HF_TURN_WAITING_EXEC);
    code_result(&code, &(struct hf_exec_result){ .observations = seen,
                                                 .observation_count = 2,
                                                 .calls = calls,
                                                 .call_count = 2,
                                                 .images = &image,
                                                 .image_count = 1,
                                                 .error = kit_span("line 2: no"),
                                                 .bindings_before = "h0",
                                                 .bindings_after = "h0",
                                                 .duration_ms = 12 });
    check(&code.kit, "v1-code-step.save", HF_TURN_WAITING_CHECKPOINT);
    code_nothing(&code);
    code_reply(&code, "<lua>\nunclosed");
    code_nothing(&code);
    check(&code.kit, "v1-code-fix.save", HF_TURN_WAITING_LLM);
    code_reply(&code, "<lua>finish({n = 1.50})</lua>");
    code_result(&code,
                &(struct hf_exec_result){ .finish = kit_span("{\"n\": 1.50}"),
                                          .bindings_after = "h1",
                                          .bindings_delta = kit_span("{\"y\":2}") });
    code_nothing(&code);
    check(&code.kit, "v1-code-finished.save", HF_TURN_FINISHED);
    code_fini(&code);
}

static void put(char *text, size_t *used, const char *line)
{
    size_t len = strlen(line);
    assert_true(*used + len + 1 < 65536);
    memcpy(text + *used, line, len);
    text[*used + len] = '\n';
    *used += len + 1;
}

/* Polls all that is there, as lines. */
static void drain(struct kit *kit, char *text, size_t *used)
{
    const char *json = NULL;
    for (;;) {
        assert_int_equal(hf_turn_poll_json(kit->turn, &json, &kit->err), 0);
        if (!json)
            return;
        put(text, used, json);
    }
}

static void say(struct kit *kit, char *text, size_t *used, const char *json)
{
    assert_int_equal(hf_turn_respond_json(kit->turn, kit_span(json), &kit->err), 0);
    put(text, used, json);
    drain(kit, text, used);
}

/* Begins a turn whose recording goes to `text`. */
static void begin_recording(struct kit *kit, char *text, size_t *used)
{
    struct hf_bytes head = { 0 };
    struct hf_part part = { .content = kit_span("hi") };
    struct hf_message message = kit_message("m1", HF_ROLE_USER, &part);
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    kit_start_with(kit, &start);
    assert_int_equal(hf_recording_head(kit->setup, &start, &head, &kit->err), 0);
    put(text, used, head.at);
    hf_bytes_free(&head);
    drain(kit, text, used);
}

static void check_recording(struct kit *kit, const char *name, const char *text,
                            size_t used)
{
    size_t len = 0;
    assert_true(hf_turn_is_done(kit->turn));
    if (getenv("HF_GOLDEN_WRITE"))
        write_golden(name, text, used);
    char *golden = load(name, &len);
    assert_int_equal(used, len);
    assert_memory_equal(text, golden, len);
    free(golden);
}

/* A whole turn by JSON alone: what this build writes is the golden recording. */
static void a_recorded_turn_comes_out_the_same(void **state)
{
    (void)state;
    static char text[65536];
    size_t used = 0;
    struct kit kit;
    kit_init(&kit);
    begin_recording(&kit, text, &used);
    say(&kit, text, &used,
        "{\"response\":\"llm_failed\",\"id\":1,\"error\":{\"kind\":\"timeout\","
        "\"transient\":"
        "true,\"charge_safe\":true,\"message\":\"slow\"}}");
    say(&kit, text, &used,
        "{\"response\":\"sleep_noted\",\"id\":2,\"due_ms\":1700000000000}");
    say(&kit, text, &used, "{\"response\":\"sleep_over\",\"id\":2}");
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":3,\"reply\":{\"parts\":[{\"kind\":\"tool_"
        "call\","
        "\"call_id\":\"c1\",\"tool\":\"add\",\"content\":\"{\\\"n\\\":1.50}\"},{\"kind\":"
        "\"tool_call\",\"call_id\":\"c2\",\"tool\":\"sub\",\"content\":\"{oops\"}],"
        "\"reason\":"
        "\"tool_use\",\"usage\":{\"input\":7}}}");
    say(&kit, text, &used,
        "{\"response\":\"tool_results\",\"id\":4,\"results\":[{\"call_id\":"
        "\"cjqysgh0iopgi1gvmrgcktefk\","
        "\"value\":"
        "{\"sum\":  1.50}}]}");
    say(&kit, text, &used,
        "{\"response\":\"checkpoint_done\",\"id\":5,\"delivery\":{\"messages\":[{"
        "\"role\":"
        "\"user\",\"parts\":[{\"kind\":\"text\",\"content\":\"and?\"}]}]}}");
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":6,\"reply\":{\"parts\":[{\"kind\":\"text\","
        "\"content\":\"1.50\"}],\"reason\":\"stop\"}}");
    say(&kit, text, &used, "{\"response\":\"checkpoint_done\",\"id\":7}");
    check_recording(&kit, "v1-turn.jsonl", text, used);
    kit_fini(&kit);
}

static void a_recorded_code_turn_comes_out_the_same(void **state)
{
    (void)state;
    static char text[65536];
    size_t used = 0;
    struct kit kit;
    struct hf_protocol *protocol = NULL;
    kit_init(&kit);
    assert_int_equal(hf_code_new(&kit.memory.alloc,
                                 kit_span("{\"finish\":\"required\",\"schema\":{\"type\":"
                                          "\"object\",\"required\":[\"n\"]}}"),
                                 &protocol, &kit.err),
                     0);
    kit.config.protocol = protocol;
    begin_recording(&kit, text, &used);
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":1,\"reply\":{\"parts\":[{\"kind\":\"text\","
        "\"content\":\"It is 1.50.\"}],\"reason\":\"stop\"}}");
    say(&kit, text, &used, "{\"response\":\"checkpoint_done\",\"id\":2}");
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":3,\"reply\":{\"parts\":[{\"kind\":\"text\","
        "\"content\":\"Yes.\\n<lua>\\nx = call('add', {n = 1.5})\\nprint(x)\\n</lua>\\n"
        "more\"}],\"reason\":\"stop\"}}");
    say(&kit, text, &used,
        "{\"response\":\"exec_done\",\"id\":4,\"result\":{\"observations\":[{\"text\":"
        "\"1.5\"}],\"calls\":[{\"call_id\":\"4:1\",\"tool\":\"add\",\"value\":1.50}],"
        "\"bindings_after\":\"h1\",\"bindings_delta\":{\"x\":1.5}}}");
    say(&kit, text, &used, "{\"response\":\"checkpoint_done\",\"id\":5}");
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":6,\"reply\":{\"parts\":[{\"kind\":\"text\","
        "\"content\":\"<lua>finish({m = x})</lua>\"}],\"reason\":\"stop\"}}");
    say(&kit, text, &used,
        "{\"response\":\"exec_done\",\"id\":7,\"result\":{\"finish\":{\"m\":1.5}}}");
    say(&kit, text, &used, "{\"response\":\"checkpoint_done\",\"id\":8}");
    say(&kit, text, &used,
        "{\"response\":\"llm_done\",\"id\":9,\"reply\":{\"parts\":[{\"kind\":\"text\","
        "\"content\":\"<lua>finish({n = x})</lua>\"}],\"reason\":\"stop\"}}");
    say(&kit, text, &used,
        "{\"response\":\"exec_done\",\"id\":10,\"result\":{\"finish\":{\"n\":1.5}}}");
    say(&kit, text, &used, "{\"response\":\"checkpoint_done\",\"id\":11}");
    check_recording(&kit, "v1-code.jsonl", text, used);
    hf_turn_free(kit.turn);
    kit.turn = NULL;
    hf_code_free(protocol);
    kit_fini(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_of_version_1_are_read_for_ever),
        cmocka_unit_test(saves_of_code_turns_are_read_for_ever),
        cmocka_unit_test(a_recorded_turn_comes_out_the_same),
        cmocka_unit_test(a_recorded_code_turn_comes_out_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
