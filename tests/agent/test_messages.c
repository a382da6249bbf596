/* anthropic-messages: what is sent, what is heard. */
#include <string.h>

#include "agent/kit.h"

#define START                                                                            \
    "event: message_start\ndata: "                                                       \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"r1\","                            \
    "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"        \
    "\"stop_reason\":null,\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":"   \
    "60,"                                                                                \
    "\"cache_creation_input_tokens\":5,\"output_tokens\":1}}}\n\n"
#define BEGIN(n, block)                                                                  \
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":" #n  \
    ",\"content_block\":" block "}\n\n"
#define DELTA(n, delta)                                                                  \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":" #n  \
    ",\"delta\":" delta "}\n\n"
#define STOP(n) "data: {\"type\":\"content_block_stop\",\"index\":" #n "}\n\n"
#define PING "event: ping\ndata: {\"type\": \"ping\"}\n\n"
#define LAST(reason)                                                                     \
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason             \
    "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}\n\n"                   \
    "data: {\"type\":\"message_stop\"}\n\n"

#define TEXT(n) BEGIN(n, "{\"type\":\"text\",\"text\":\"\"}")
#define SAY(n, text) DELTA(n, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define FIRST "usage 10 1 60 5 0\n"
#define SECOND "usage 10 15 60 5 0\n"
#define EVIDENCE(finish) "evidence 200 req-1 r1 m " finish "\n"

static void a_plain_stop(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_messages,
        START TEXT(0) PING SAY(0, "Hel") SAY(0, "l\\u00f6") STOP(0) LAST("end_turn"),
        FIRST "text Hel\ntext l\xc3\xb6\n"
              "part text Hell\xc3\xb6\n" SECOND EVIDENCE("end_turn") "end stop 1\n");
}

static void an_output_that_was_capped(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_messages, START TEXT(0) SAY(0, "x") STOP(0) LAST("max_tokens"),
        FIRST
        "text x\npart text x\n" SECOND EVIDENCE("max_tokens") "end output_limit 1\n");
}

static void a_content_filter(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages, START LAST("refusal"),
                   FIRST SECOND EVIDENCE("refusal") "end content_filter 0\n");
    play_every_way(&hf_codec_messages, START LAST("safety"),
                   FIRST SECOND EVIDENCE("safety") "end content_filter 0\n");
}

static void other_stop_reasons_have_their_meaning(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages, START LAST("stop_sequence"),
                   FIRST SECOND EVIDENCE("stop_sequence") "end stop 0\n");
    play_every_way(&hf_codec_messages, START LAST("pause_turn"),
                   FIRST SECOND EVIDENCE("pause_turn") "end stop 0\n");
    play_every_way(&hf_codec_messages, START LAST("odd"),
                   FIRST SECOND EVIDENCE("odd") "end provider_error 0\n");
}

/* The second half of the usage has zeros where it says nothing. */
static void cache_hits_are_counted_and_split_usage_merges(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   START
                   "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                   "\"end_turn\"},\"usage\":{\"input_tokens\":0,\"output_tokens\":15,"
                   "\"cache_read_input_tokens\":0,\"cache_creation_input_tokens\":7}}\n\n"
                   "data: {\"type\":\"message_stop\"}\n\n",
                   FIRST "usage 10 15 60 7 0\n" EVIDENCE("end_turn") "end stop 0\n");
}

static void tool_arguments_are_merged(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_messages,
        START BEGIN(0,
                    "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"add\",\"input\":{}}")
            DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"\"}") DELTA(
                0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"}")
                DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\":1}\"}")
                    STOP(0)
                        BEGIN(1, "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"now\","
                                 "\"input\":{}}") STOP(1) LAST("tool_use"),
        FIRST
        "part tool_call c1 add {\"a\":1}\n"
        "part tool_call c2 now {}\n" SECOND EVIDENCE("tool_use") "end tool_use 2\n");
}

static void a_complete_call_is_told_at_once(void **state)
{
    (void)state;
    static struct heard heard;
    play(&hf_codec_messages, hf_alloc_system(), 200, "text/event-stream",
         START BEGIN(
             0, "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"add\",\"input\":{}}")
             STOP(0),
         0, &heard);
    heard_expect(&heard, FIRST "part tool_call c1 add {}\n"
                               "evidence 200 req-1 r1 m -\n"
                               "end error stream ended_early t\n");
}

static void signed_and_redacted_thinking_is_kept_for_replay(void **state)
{
    (void)state;
    play_every_way(
        &hf_codec_messages,
        START BEGIN(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
            DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"h\\\"m\"}")
                DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"si\"}")
                    DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"g\\/=\"}")
                        STOP(0)
                            BEGIN(1, "{\"type\":\"redacted_thinking\",\"data\":\"zz\"}")
                                STOP(1) TEXT(2) SAY(2, "x") STOP(2) LAST("end_turn"),
        FIRST "reasoning h\"m\n"
              "part reasoning h\"m prov/model-1 "
              "{\"type\":\"thinking\",\"thinking\":\"h\\\"m\",\"signature\":\"sig/=\"}\n"
              "part reasoning  prov/model-1 "
              "{\"type\":\"redacted_thinking\",\"data\":\"zz\"}\n"
              "text x\npart text x\n" SECOND EVIDENCE("end_turn") "end stop 3\n");
}

static void thinking_without_a_signature_cannot_go_back(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   START BEGIN(0, "{\"type\":\"thinking\",\"thinking\":\"\"}")
                       DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")
                           STOP(0) LAST("end_turn"),
                   FIRST "reasoning hm\npart reasoning hm\n" SECOND EVIDENCE(
                       "end_turn") "end stop 1\n");
}

static void blocks_of_other_kinds_are_left_out(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   START BEGIN(0, "{\"type\":\"server_tool_use\",\"id\":\"s\"}")
                       DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}")
                           STOP(0) TEXT(1) SAY(1, "x") STOP(1) LAST("end_turn"),
                   FIRST
                   "text x\npart text x\n" SECOND EVIDENCE("end_turn") "end stop 1\n");
}

static void a_body_that_is_no_stream(void **state)
{
    (void)state;
    static struct heard heard;
    static const char body[] =
        "{\"type\":\"message\",\"id\":\"r1\",\"model\":\"m\",\"content\":[{\"type\":"
        "\"text\","
        "\"text\":\"x\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"add\",\"input\":"
        "{"
        "\"a\": 1}}],\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":3,"
        "\"output_tokens\":2}}";
    for (size_t piece = 0; piece < 9; piece++) {
        play(&hf_codec_messages, hf_alloc_system(), 200, "application/json", body, piece,
             &heard);
        heard_expect(&heard, "text x\npart text x\npart tool_call c1 add {\"a\": 1}\n"
                             "usage 3 2 0 0 0\n" EVIDENCE("tool_use") "end tool_use 2\n");
    }
}

static void a_stream_without_message_stop_is_no_answer(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   START TEXT(0) SAY(0, "x") STOP(
                       0) "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                          "\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n",
                   FIRST "text x\npart text x\n" SECOND EVIDENCE(
                       "end_turn") "end error stream ended_early t\n");
}

static void a_stream_that_ends_at_any_byte_before_its_stop_is_no_answer(void **state)
{
    (void)state;
    static const char body[] = START TEXT(0) SAY(0, "x") STOP(0) LAST("end_turn");
    play_cut_anywhere(&hf_codec_messages, body, sizeof(body) - 1 - strlen("\n\n"));
}

static void a_second_identity_is_no_answer(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   START
                   "data: {\"type\":\"message_start\",\"message\":{\"id\":\"r2\"}}\n\n",
                   FIRST "evidence 200 req-1 r1 m -\n"
                         "end error stream identity_changed\n");
}

static void an_error_in_the_stream_ends_it(void **state)
{
    (void)state;
    play_every_way(&hf_codec_messages,
                   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                   "\"overloaded_error\",\"message\":\"CANARY\"}}\n\n",
                   "evidence 200 req-1 - - -\nend error http overloaded ts\n");
    play_every_way(
        &hf_codec_messages,
        START TEXT(0) SAY(
            0, "x") "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"
                    "\n\n",
        FIRST "text x\nevidence 200 req-1 r1 m -\nend error http overloaded t\n");
}

#define TOOLS "[{\"name\":\"add\",\"description\":\"Adds.\"},{\"name\":\"now\"}]"
#define MARK "\"cache_control\":{\"type\":\"ephemeral\"}"
#define SYSTEM "\"system\":[{\"type\":\"text\",\"text\":\"You help.\"," MARK "}]"
#define NO_ARGS "\"input_schema\":{\"type\":\"object\",\"properties\":{}}"

static void a_simple_request_has_a_cap_and_the_system_text_apart(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    asked_simply(&asked, "", "");
    expect_request(&asked, &hf_codec_messages, &dialect,
                   "{\"model\":\"model-1\",\"max_tokens\":32768," SYSTEM
                   ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"hi\"," MARK "}]}],\"stream\":true}",
                   NULL);
    asked_fini(&asked);
}

static void options_that_the_endpoint_lacks_are_left_out_and_on_the_receipt(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_encode encode;
    struct hf_dialect dialect = { 0 };
    asked_simply(&asked, TOOLS,
                 "{\"max_output_tokens\":5000,\"temperature\":0.5,\"seed\":7,\"stop\":["
                 "\"END\"],\"parallel_tools\":false,\"tool_choice\":{\"name\":\"add\"},"
                 "\"output\":{\"type\":\"json_object\"},\"stream\":false}");
    expect_request(&asked, &hf_codec_messages, &dialect,
                   "{\"model\":\"model-1\",\"max_tokens\":5000," SYSTEM
                   ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"hi\"," MARK "}]}],\"tools\":[{\"name\":\"add\","
                   "\"description\":\"Adds.\"," NO_ARGS "},{\"name\":\"now\"," NO_ARGS
                   "}],\"tool_choice\":{\"type\":\"tool\",\"name\":\"add\","
                   "\"disable_parallel_tool_use\":true},\"temperature\":0.5,"
                   "\"stop_sequences\":[\"END\"]}",
                   &encode);
    assert_int_equal(encode.omitted, 1u << HF_OPTION_SEED | 1u << HF_OPTION_OUTPUT);
    asked_fini(&asked);
}

static void thinking_pins_temperature_and_choice(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_encode encode;
    struct hf_dialect dialect = { 0 };
    asked_simply(
        &asked, "[{\"name\":\"now\"}]",
        "{\"reasoning\":\"medium\",\"temperature\":0.5,\"tool_choice\":\"required\","
        "\"max_output_tokens\":6000,\"stream\":false}");
    expect_request(&asked, &hf_codec_messages, &dialect,
                   "{\"model\":\"model-1\",\"max_tokens\":6000,\"thinking\":{\"type\":"
                   "\"enabled\",\"budget_tokens\":5999}," SYSTEM
                   ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"hi\"," MARK "}]}],\"tools\":[{\"name\":\"now\"," NO_ARGS
                   "}]}",
                   &encode);
    assert_int_equal(encode.omitted,
                     1u << HF_OPTION_TEMPERATURE | 1u << HF_OPTION_TOOL_CHOICE);
    asked_fini(&asked);
}

static void roles_merge_results_come_first_and_empty_texts_go(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    struct hf_part question = { .content = span("hi") };
    struct hf_part said[] = {
        { .kind = HF_PART_REASONING,
          .route = "prov/model-1",
          .replay = span(
              "{\"type\":\"thinking\",\"thinking\":\"a\",\"signature\":\"s\"}") },
        { .kind = HF_PART_REASONING,
          .route = "prov/model-1",
          .replay = span("{\"type\":\"redacted_thinking\",\"data\":\"d\"}") },
        { .content = span(" \n") },
        { .kind = HF_PART_TOOL_CALL,
          .content = span("{\"a\":1}"),
          .call_id = "c1",
          .tool = "add" },
        { .kind = HF_PART_TOOL_CALL,
          .content = span("{bad"),
          .call_id = "c2",
          .tool = "now" },
    };
    struct hf_part answers[] = {
        { .content = span("go on") },
        { .kind = HF_PART_TOOL_RESULT, .content = span("2"), .call_id = "c1" },
        { .kind = HF_PART_TOOL_RESULT, .content = span(""), .call_id = "c2" },
    };
    struct hf_part note = { .content = span("and") };
    struct hf_message messages[] = {
        { .id = "m1", .parts = &question, .part_count = 1 },
        { .id = "m2", .role = HF_ROLE_ASSISTANT, .parts = said, .part_count = 5 },
        { .id = "m3", .parts = answers, .part_count = 3 },
        { .id = "m4", .parts = &note, .part_count = 1 },
    };
    asked_init(&asked, messages, 4, "", "{\"stream\":false}");
    expect_request(
        &asked, &hf_codec_messages, &dialect,
        "{\"model\":\"model-1\",\"max_tokens\":32768," SYSTEM
        ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
        "\"hi\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"a\","
        "\"signature\":\"s\"},{\"type\":\"redacted_thinking\",\"data\":\"d\"},"
        "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"add\",\"input\":{\"a\":1}},"
        "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"now\",\"input\":{\"arguments\":"
        "\"{bad\"}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
        "\"c1\","
        "\"content\":\"2\"},{\"type\":\"tool_result\",\"tool_use_id\":\"c2\"},"
        "{\"type\":\"text\",\"text\":\"go on\"},{\"type\":\"text\",\"text\":\"and\"," MARK
        "}]}]}",
        NULL);
    asked_fini(&asked);
}

static void refuses(struct asked *asked, const struct hf_dialect *dialect,
                    const char *message)
{
    struct hf_err err = { 0 };
    struct hf_buf out;
    struct hf_encode encode = { .call = &asked->call,
                                .dialect = dialect,
                                .alloc = hf_alloc_system() };
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_json_begin(&encode.json, &out);
    assert_int_equal(hf_codec_messages.encode(&encode, &err), HF_EINVAL);
    assert_string_equal(err.field, "attachment");
    assert_string_equal(err.message, message);
    hf_buf_fini(&out);
    asked_fini(asked);
}

static void an_image_is_sent_and_other_attachments_are_named(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    asked_image(&asked, "image/png", "{\"stream\":false}");
    expect_request(&asked, &hf_codec_messages, &dialect,
                   "{\"model\":\"model-1\",\"max_tokens\":32768," SYSTEM
                   ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"look\"},{\"type\":\"image\",\"source\":{\"type\":"
                   "\"base64\",\"media_type\":\"image/png\",\"data\":\"AAH+/w==\"}," MARK
                   "}]}]}",
                   NULL);
    asked_fini(&asked);
    asked_image(&asked, "text/plain", "{\"stream\":false}");
    expect_request(&asked, &hf_codec_messages, &dialect,
                   "{\"model\":\"model-1\",\"max_tokens\":32768," SYSTEM
                   ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"look\"},{\"type\":\"text\",\"text\":"
                   "\"File note:\\na \\\"b\\\"\\n\"," MARK "}]}]}",
                   NULL);
    asked_fini(&asked);
    asked_image(&asked, "text/html", "{\"stream\":false}"); /* its bytes are no text */
    refuses(&asked, &dialect, "the attachment note is no UTF-8 text");
    asked_image(&asked, "audio/wav", "{\"stream\":false}");
    refuses(
        &asked, &dialect,
        "an attachment of type audio/wav cannot be sent: only image/* and text/* can");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_stop),
        cmocka_unit_test(an_output_that_was_capped),
        cmocka_unit_test(a_content_filter),
        cmocka_unit_test(other_stop_reasons_have_their_meaning),
        cmocka_unit_test(cache_hits_are_counted_and_split_usage_merges),
        cmocka_unit_test(tool_arguments_are_merged),
        cmocka_unit_test(a_complete_call_is_told_at_once),
        cmocka_unit_test(signed_and_redacted_thinking_is_kept_for_replay),
        cmocka_unit_test(thinking_without_a_signature_cannot_go_back),
        cmocka_unit_test(blocks_of_other_kinds_are_left_out),
        cmocka_unit_test(a_body_that_is_no_stream),
        cmocka_unit_test(a_stream_without_message_stop_is_no_answer),
        cmocka_unit_test(a_stream_that_ends_at_any_byte_before_its_stop_is_no_answer),
        cmocka_unit_test(a_second_identity_is_no_answer),
        cmocka_unit_test(an_error_in_the_stream_ends_it),
        cmocka_unit_test(a_simple_request_has_a_cap_and_the_system_text_apart),
        cmocka_unit_test(options_that_the_endpoint_lacks_are_left_out_and_on_the_receipt),
        cmocka_unit_test(thinking_pins_temperature_and_choice),
        cmocka_unit_test(roles_merge_results_come_first_and_empty_texts_go),
        cmocka_unit_test(an_image_is_sent_and_other_attachments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
