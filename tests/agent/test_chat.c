/* openai-chat: what is sent, what is heard. The scenarios are those that every provider must
 * pass. */
#include <string.h>

#include "agent/kit.h"

#define SSE "text/event-stream"
#define HEAD                                                                             \
    "{\"id\":\"r1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":["
#define CHUNK(delta, finish)                                                             \
    "data: " HEAD "{\"index\":0,\"delta\":" delta ",\"finish_reason\":" finish "}]}\n\n"
#define DONE "data: [DONE]\n\n"
#define USAGE(text)                                                                      \
    "data: {\"id\":\"r1\",\"model\":\"m\",\"choices\":[],\"usage\":" text "}\n\n"
#define EVIDENCE(finish) "evidence 200 req-1 r1 m " finish "\n"

static void a_plain_stop(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"role\":\"assistant\",\"content\":\"\"}", "null")
                       CHUNK("{\"content\":\"Hel\"}", "null")
                           CHUNK("{\"content\":\"l\\u00f6 \\\"you\\\"\\n\"}", "null")
                               CHUNK("{}", "\"stop\"") DONE,
                   "text Hel\n"
                   "text l\xc3\xb6 \"you\"\n\n"
                   "part text Hell\xc3\xb6 \"you\"\n\n" EVIDENCE("stop") "end stop 1\n");
}

static void an_output_that_was_capped(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"Hel\"}", "null") CHUNK("{}", "\"length\"") DONE,
                   "text Hel\npart text Hel\n" EVIDENCE("length") "end output_limit 1\n");
}

static void a_content_filter(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat, CHUNK("{}", "\"content_filter\"") DONE,
                   EVIDENCE("content_filter") "end content_filter 0\n");
}

static void a_finish_that_is_not_known_is_the_provider_s_error(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat, CHUNK("{}", "\"odd\"") DONE,
                   EVIDENCE("odd") "end provider_error 0\n");
}

static void tool_arguments_are_merged_by_index(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_chat,
        CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\","
              "\"function\":{\"name\":\"add\",\"arguments\":\"\"}}]}",
              "null") CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
                            "\"{\\\"a\\\"\"}"
                            "}]}",
                            "null")
            CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}",
                  "null")
                CHUNK("{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{"
                      "\"name\":\"sub\",\"arguments\":\"{}\"}}]}",
                      "null") CHUNK("{}", "\"tool_calls\"") DONE,
        "part tool_call c1 add {\"a\":1}\n"
        "part tool_call c2 sub {}\n" EVIDENCE("tool_calls") "end tool_use 2\n");
}

static void a_complete_call_is_told_before_the_next_begins(void **state)
{
    (void)state;
    static struct heard heard;
    play(&hf_codec_chat, hf_alloc_system(), 200, SSE,
         CHUNK(
             "{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"add\","
             "\"arguments\":\"{}\"}}]}",
             "null")
             CHUNK("{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":"
                   "\"sub\",\"arguments\":\"{\"}}]}",
                   "null"),
         0, &heard);
    heard_expect(&heard, "part tool_call c1 add {}\n"
                         "evidence 200 req-1 r1 m -\n"
                         "end error stream ended_early t\n");
}

static void usage_comes_in_a_chunk_without_choices_and_splits(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"x\"}", "\"stop\"")
                       USAGE("{\"prompt_tokens\":100,\"completion_tokens\":7,"
                             "\"prompt_tokens_details\":{\"cached_tokens\":60},"
                             "\"completion_tokens_details\":{\"reasoning_tokens\":5}}")
                           USAGE("{\"prompt_tokens\":100,\"completion_tokens\":0,"
                                 "\"prompt_tokens_details\":{\"cached_tokens\":0,"
                                 "\"cache_write_tokens\":10}}") DONE,
                   "text x\n"
                   "part text x\n"
                   "usage 40 7 60 0 5\n"
                   "usage 30 7 60 10 5\n" EVIDENCE("stop") "end stop 1\n");
}

static void more_cached_than_prompt_leaves_no_input(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_chat,
        CHUNK("{\"content\":\"x\"}", "\"stop\"")
            USAGE("{\"prompt_tokens\":10,\"completion_tokens\":1,"
                  "\"prompt_tokens_details\":{\"cached_tokens\":60}}") DONE,
        "text x\npart text x\nusage 0 1 60 0 0\n" EVIDENCE("stop") "end stop 1\n");
}

static void reasoning_has_three_names(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"reasoning_content\":\"a\"}",
                         "null") CHUNK("{\"reasoning\":\"b\"}", "null")
                       CHUNK("{\"reasoning_text\":\"c\"}", "null")
                           CHUNK("{\"reasoning_content\":\"dd\",\"reasoning\":\"dd\"}",
                                 "null") CHUNK("{\"content\":\"x\"}", "\"stop\"") DONE,
                   "reasoning a\nreasoning b\nreasoning c\nreasoning dd\ntext x\n"
                   "part reasoning abcdd\npart text x\n" EVIDENCE("stop") "end stop 2\n");
}

static void opaque_reasoning_items_are_kept_for_replay(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_chat,
        CHUNK("{\"reasoning\":\"a\",\"reasoning_details\":[{\"id\":\"x\"}]}", "null")
            CHUNK("{\"reasoning_details\":[{\"data\":\"s\\\"g\"}]}", "null")
                CHUNK("{\"content\":\"x\"}", "\"stop\"") DONE,
        "reasoning a\ntext x\n"
        "part reasoning a prov/model-1 [{\"id\":\"x\"},{\"data\":\"s\\\"g\"}]\n"
        "part text x\n" EVIDENCE("stop") "end stop 2\n");
}

/* Without an item there is nothing to send back, however the array is written. */
static void empty_reasoning_items_add_nothing(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"reasoning\":\"a\",\"reasoning_details\":[ ]}", "null")
                       CHUNK("{\"reasoning_details\":[ {\"id\":\"x\"} ]}", "null")
                           CHUNK("{\"reasoning_details\":[ ]}", "null")
                               CHUNK("{\"content\":\"x\"}", "\"stop\"") DONE,
                   "reasoning a\ntext x\n"
                   "part reasoning a prov/model-1 [ {\"id\":\"x\"} ]\n"
                   "part text x\n" EVIDENCE("stop") "end stop 2\n");
}

static void a_body_that_is_no_stream(void **state)
{
    (void)state;
    static struct heard heard;
    static const char body[] =
        "{\"id\":\"r1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
        "\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"},\"extra_"
        "content\":{"
        "\"google\":{\"thought_signature\":\"sig\"}}}]},\"finish_reason\":\"tool_calls\"}"
        "],"
        "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}";
    for (size_t piece = 0; piece < 9; piece++) {
        play(&hf_codec_chat, hf_alloc_system(), 200, "application/json", body, piece,
             &heard);
        heard_expect(&heard,
                     "part tool_call c1 add {\"a\":1} prov/model-1 "
                     "{\"google\":{\"thought_signature\":\"sig\"}}\n"
                     "usage 3 2 0 0 0\n" EVIDENCE("tool_calls") "end tool_use 1\n");
    }
}

static void an_end_without_done_is_fine_once_the_finish_was_told(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat, CHUNK("{\"content\":\"x\"}", "\"stop\""),
                   "text x\npart text x\n" EVIDENCE("stop") "end stop 1\n");
}

static void a_stream_without_its_end_is_no_answer(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat, CHUNK("{\"content\":\"x\"}", "null"),
                   "text x\n"
                   "evidence 200 req-1 r1 m -\n"
                   "end error stream ended_early t\n");
    play_every_way(&hf_codec_chat, CHUNK("{}", "null") "data: {\"id\":\"r1\",\"cho",
                   "evidence 200 req-1 r1 m -\n"
                   "end error stream ended_early t\n");
}

/* The finish is the last that is needed: [DONE] may be missing. */
static void a_stream_that_ends_at_any_byte_before_its_finish_is_no_answer(void **state)
{
    (void)state;
    static const char finish[] = CHUNK("{}", "\"stop\"");
    static const char body[] = CHUNK("{\"content\":\"x\"}", "null")
        CHUNK("{}", "\"stop\"") "data: [DONE]\n\n";
    size_t before = sizeof(CHUNK("{\"content\":\"x\"}", "null")) - 1;
    size_t needed = before + sizeof(finish) - 1 - strlen("\n\n");
    play_cut_anywhere(&hf_codec_chat, body, needed);
}

static void an_id_or_model_that_changes_is_no_answer(void **state)
{
    (void)state;
    static const char changed[] = "text x\nevidence 200 req-1 r1 m -\n"
                                  "end error stream identity_changed\n";
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"x\"}", "null") "data: {\"id\":\"r2\"}\n\n",
                   changed);
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"x\"}", "null") "data: {\"model\":\"n\"}\n\n",
                   changed);
}

static void a_call_that_changes_its_id_is_no_answer(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_chat,
        CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{}}]}", "null")
            CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"c2\",\"function\":{}}]}",
                  "null"),
        "evidence 200 req-1 r1 m -\nend error stream identity_changed\n");
}

static void an_error_in_the_stream_ends_it(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"x\"}",
                         "null") "data: {\"error\":{\"message\":\"CANARY\",\"code\":"
                                 "\"rate_limit_exceeded\"}}\n\n" DONE,
                   "text x\nevidence 200 req-1 r1 m -\n"
                   "end error quota rate_limited t\n");
    play_every_way(&hf_codec_chat,
                   "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n",
                   "evidence 200 req-1 - - -\nend error quota rate_limited ts\n");
}

static void an_event_that_is_no_json_ends_it(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat, "data: {\"id\":\n\n",
                   "evidence 200 req-1 - - -\nend error unknown bad_json\n");
    play_every_way(&hf_codec_chat, "data: 7\n\n",
                   "evidence 200 req-1 - - -\nend error unknown bad_json\n");
}

static void broken_characters_are_repaired(void **state)
{
    (void)state;
    play_every_way(&hf_codec_chat,
                   CHUNK("{\"content\":\"a\xff\\u0000\\ud83d\\\\u0000\"}", "\"stop\"")
                       DONE,
                   "text a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\\u0000\n"
                   "part text a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\\u0000\n"
                   "evidence 200 req-1 r1 m stop repaired\nend stop 1\n");
}

#define TOOLS                                                                            \
    "[{\"name\":\"add\",\"description\":\"Adds.\",\"parameters\":{\"type\":\"object\"}}" \
    ","                                                                                  \
    "{\"name\":\"now\"}]"
#define SYSTEM "{\"role\":\"system\",\"content\":\"You help.\"}"
#define STREAM "\"stream\":true,\"stream_options\":{\"include_usage\":true}}"

static void a_simple_request(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    asked_simply(&asked, "", "");
    expect_request(&asked, &hf_codec_chat, &dialect,
                   "{\"model\":\"model-1\",\"messages\":[" SYSTEM
                   ",{\"role\":\"user\",\"content\":\"hi\"}]," STREAM,
                   NULL);
    asked_fini(&asked);
}

static void tools_and_options_are_in_the_request_and_on_the_receipt(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_encode encode;
    struct hf_dialect dialect = { .token_field = "max_completion_tokens",
                                  .omit = 1u << HF_OPTION_SEED };
    asked_simply(
        &asked, TOOLS,
        "{\"max_output_tokens\":50,\"temperature\":0.5,\"seed\":7,\"stop\":[\"END\"],"
        "\"reasoning\":\"low\",\"parallel_tools\":false,\"tool_choice\":"
        "\"required\",\"output\":{\"type\":\"json_schema\",\"name\":\"n\","
        "\"schema\":{\"type\":\"object\"},\"strict\":true},\"stream\":false}");
    expect_request(
        &asked, &hf_codec_chat, &dialect,
        "{\"model\":\"model-1\",\"messages\":[" SYSTEM
        ",{\"role\":\"user\",\"content\":\"hi\"}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\","
        "\"description\":"
        "\"Adds.\",\"parameters\":{\"type\":\"object\"}}},{\"type\":\"function\","
        "\"function\":{\"name\":\"now\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{}}}}],\"tool_choice\":\"required\",\"parallel_tool_calls\":"
        "false,"
        "\"max_completion_tokens\":50,\"temperature\":0.5,\"stop\":[\"END\"],"
        "\"reasoning_effort\":\"low\",\"response_format\":{\"type\":\"json_schema\","
        "\"json_schema\":{\"name\":\"n\",\"schema\":{\"type\":\"object\"},\"strict\":"
        "true}}}",
        &encode);
    assert_int_equal(encode.omitted, 1u << HF_OPTION_SEED);
    assert_int_equal(encode.honoured,
                     ((1u << HF_OPTION_IMAGES) - 1) & ~(1u << HF_OPTION_SEED));
    asked_fini(&asked);
}

static void calls_results_and_replay_go_back(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { .no_stream_usage = true };
    struct hf_part said[] = {
        { .kind = HF_PART_REASONING,
          .content = span("hm"),
          .route = "prov/model-1",
          .replay = span("[{\"id\":1},{\"id\":2}]") },
        { .kind = HF_PART_REASONING,
          .content = span("hm"),
          .route = "other/route",
          .replay = span("[{\"id\":3}]") },
        { .kind = HF_PART_TOOL_CALL,
          .content = span("{\"a\":1}"),
          .call_id = "c1",
          .tool = "add",
          .route = "prov/model-1",
          .replay = span("{\"sig\":\"x\"}") },
        { .kind = HF_PART_TOOL_CALL,
          .content = span("{"),
          .call_id = "c2",
          .tool = "now" },
    };
    struct hf_part answers[] = {
        { .kind = HF_PART_TOOL_RESULT, .content = span("2"), .call_id = "c1" },
        { .kind = HF_PART_TOOL_RESULT, .content = span("noon"), .call_id = "c2" },
        { .content = span("go on") },
    };
    struct hf_part question = { .content = span("hi") };
    struct hf_message messages[] = {
        { .id = "m1", .parts = &question, .part_count = 1 },
        { .id = "m2", .role = HF_ROLE_ASSISTANT, .parts = said, .part_count = 4 },
        { .id = "m3", .parts = answers, .part_count = 3 },
    };
    asked_init(&asked, messages, 3, "", "");
    expect_request(
        &asked, &hf_codec_chat, &dialect,
        "{\"model\":\"model-1\",\"messages\":[" SYSTEM
        ",{\"role\":\"user\",\"content\":\"hi\"},"
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_details\":[{\"id\":1},{"
        "\"id\":"
        "2}],\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":"
        "\"add\",\"arguments\":\"{\\\"a\\\":1}\"},\"extra_content\":{\"sig\":\"x\"}},"
        "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"now\","
        "\"arguments\":"
        "\"{\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"2\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"noon\"},"
        "{\"role\":\"user\",\"content\":\"go on\"}],\"stream\":true}",
        NULL);
    asked_fini(&asked);
}

static void an_image_is_sent_and_other_attachments_are_named(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    asked_image(&asked, "image/png", "{\"stream\":false}");
    expect_request(
        &asked, &hf_codec_chat, &dialect,
        "{\"model\":\"model-1\",\"messages\":[" SYSTEM
        ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look\"},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":"
        "\"data:image/png;base64,AAH+/w==\"}}]}]}",
        NULL);
    asked_fini(&asked);
    asked_image(&asked, "text/plain", "{\"stream\":false}");
    expect_request(
        &asked, &hf_codec_chat, &dialect,
        "{\"model\":\"model-1\",\"messages\":[" SYSTEM
        ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look\"},"
        "{\"type\":\"text\",\"text\":\"File note:\\na \\\"b\\\"\\n\"}]}]}",
        NULL);
    asked_fini(&asked);
    asked_image(&asked, "image/png", "{\"stream\":false,\"images\":false}");
    expect_request(
        &asked, &hf_codec_chat, &dialect,
        "{\"model\":\"model-1\",\"messages\":[" SYSTEM
        ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look\"},"
        "{\"type\":\"text\",\"text\":\"File note:\\n(an image; it cannot be shown to "
        "this "
        "model)\"}]}]}",
        NULL);
    asked_fini(&asked);
    struct hf_err err = { 0 };
    struct hf_buf out;
    asked_image(&asked, "audio/wav", "{\"stream\":false}");
    struct hf_encode encode = { .call = &asked.call,
                                .dialect = &dialect,
                                .alloc = hf_alloc_system() };
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&encode.json, &out);
    assert_int_equal(hf_codec_chat.encode(&encode, &err), HF_EINVAL);
    assert_string_equal(err.field, "attachment");
    assert_non_null(strstr(err.message, "audio/wav"));
    hf_buf_fini(&out);
    asked_fini(&asked);
}

static void an_option_that_is_not_known_or_not_right_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *field;
    } bad[] = {
        { "{\"tempperature\":1}", "options" },
        { "[]", "options" },
        { "{\"max_output_tokens\":0}", "max_output_tokens" },
        { "{\"temperature\":-1}", "temperature" },
        { "{\"seed\":1.5}", "seed" },
        { "{\"stop\":[]}", "stop" },
        { "{\"stop\":\"x\"}", "stop" },
        { "{\"reasoning\":\"much\"}", "reasoning" },
        { "{\"output\":{\"type\":\"json_schema\"}}", "output" },
        { "{\"tool_choice\":\"auto\"}", "tool_choice" },
        { "{\"parallel_tools\":1}", "parallel_tools" },
        { "{\"stream\":\"yes\"}", "stream" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_err err = { 0 };
        struct hf_options options;
        assert_int_equal(hf_options_read(span(bad[i].json), &options, &err), HF_EINVAL);
        assert_string_equal(err.field, bad[i].field);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_stop),
        cmocka_unit_test(an_output_that_was_capped),
        cmocka_unit_test(a_content_filter),
        cmocka_unit_test(a_finish_that_is_not_known_is_the_provider_s_error),
        cmocka_unit_test(tool_arguments_are_merged_by_index),
        cmocka_unit_test(a_complete_call_is_told_before_the_next_begins),
        cmocka_unit_test(usage_comes_in_a_chunk_without_choices_and_splits),
        cmocka_unit_test(more_cached_than_prompt_leaves_no_input),
        cmocka_unit_test(reasoning_has_three_names),
        cmocka_unit_test(opaque_reasoning_items_are_kept_for_replay),
        cmocka_unit_test(empty_reasoning_items_add_nothing),
        cmocka_unit_test(a_body_that_is_no_stream),
        cmocka_unit_test(an_end_without_done_is_fine_once_the_finish_was_told),
        cmocka_unit_test(a_stream_without_its_end_is_no_answer),
        cmocka_unit_test(a_stream_that_ends_at_any_byte_before_its_finish_is_no_answer),
        cmocka_unit_test(an_id_or_model_that_changes_is_no_answer),
        cmocka_unit_test(a_call_that_changes_its_id_is_no_answer),
        cmocka_unit_test(an_error_in_the_stream_ends_it),
        cmocka_unit_test(an_event_that_is_no_json_ends_it),
        cmocka_unit_test(broken_characters_are_repaired),
        cmocka_unit_test(a_simple_request),
        cmocka_unit_test(tools_and_options_are_in_the_request_and_on_the_receipt),
        cmocka_unit_test(calls_results_and_replay_go_back),
        cmocka_unit_test(an_image_is_sent_and_other_attachments_are_named),
        cmocka_unit_test(an_option_that_is_not_known_or_not_right_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
