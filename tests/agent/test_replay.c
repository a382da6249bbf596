/* There and back: what an answer left in the history goes out again as it came, on the route it
 * came from, and without the endpoint's own data on another. */
#include <stdlib.h>
#include <string.h>

#include "agent/kit.h"

/* The request that follows an answer and the results of its tools. */
struct next {
    const struct hf_codec *codec;
    const char *route; /* that the answer came from */
    const char *json;  /* of the request, by hand */
    bool seen;
};

static void on_event(void *user, const struct hf_model_event *event)
{
    struct next *next = user;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    if (event->kind != HF_MODEL_END)
        return;
    assert_non_null(event->response);
    struct hf_part question = { .content = span("hi") };
    struct hf_part results[] = {
        { .kind = HF_PART_TOOL_RESULT, .content = span("1"), .call_id = "c1" },
        { .kind = HF_PART_TOOL_RESULT, .content = span("2"), .call_id = "c2" },
    };
    struct hf_message messages[] = {
        { .id = "m1", .parts = &question, .part_count = 1 },
        { .id = "m2",
          .role = HF_ROLE_ASSISTANT,
          .parts = event->response->parts,
          .part_count = event->response->part_count },
        { .id = "m3", .parts = results, .part_count = 2 },
    };
    asked_init(&asked, messages, 3, "", "{\"stream\":false}");
    expect_request(&asked, next->codec, &dialect, next->json, NULL);
    asked_fini(&asked);
    next->seen = true;
}

/* asked_init makes requests of the route "prov/model-1". */
static void there_and_back(const struct hf_codec *codec, const char *route,
                           const char *body, const char *json)
{
    struct hf_wire wire;
    struct next next = { codec, route, json, false };
    struct hf_model_sink sink = { &next, on_event };
    struct hf_http_header header = { "content-type", "text/event-stream", NULL };
    hf_wire_init(&wire, hf_alloc_system(), codec, route, &sink);
    hf_wire_head(&wire, 200, &header, 1, 0);
    hf_wire_body(&wire, body, strlen(body));
    hf_wire_end(&wire, HF_HTTP_NONE);
    hf_wire_fini(&wire);
    assert_true(next.seen);
}

#define D(text) "data: {" text "}\n\n"
#define CHAT(delta) D("\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{" delta "}}]")
#define BLOCK(n, block)                                                                  \
    D("\"type\":\"content_block_start\",\"index\":" #n ",\"content_block\":{" block "}") \
    D("\"type\":\"content_block_stop\",\"index\":" #n)

static const char chat[] = CHAT("\"reasoning\":\"a\",\"reasoning_details\":[{\"id\":1}]")
    CHAT("\"reasoning_details\":[{\"data\":\"s=\"}]") CHAT("\"content\":\"On it.\"")
        CHAT("\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"add\","
             "\"arguments\":\"{\\\"n\\\":1}\"}}]")
            CHAT("\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":"
                 "\"now\",\"arguments\":\"{}\"}}]")
                D("\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{},"
                  "\"finish_reason\":\"tool_calls\"}]") "data: [DONE]\n\n";

static const char messages[] = D("\"type\":\"message_start\",\"message\":{\"id\":\"r1\"}")
    BLOCK(0, "\"type\":\"thinking\",\"thinking\":\"a\",\"signature\":\"s=\"")
        BLOCK(1, "\"type\":\"redacted_thinking\",\"data\":\"d=\"")
            BLOCK(2, "\"type\":\"text\",\"text\":\"On it.\"")
                BLOCK(3, "\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"add\","
                         "\"input\":{\"n\":1}")
                    BLOCK(4, "\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"now\","
                             "\"input\":{}")
                        D("\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                          "\"tool_use\"}") D("\"type\":\"message_stop\"");

/* The requests, around what the endpoint's own data is. */
#define CHAT_REQUEST(opaque)                                                             \
    "{\"model\":\"model-1\",\"messages\":[{\"role\":\"system\",\"content\":\"You "       \
    "help.\"},{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\","           \
    "\"content\":\"On it.\"," opaque "\"tool_calls\":[{\"id\":\"c1\",\"type\":"          \
    "\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"n\\\":1}\"}},{"    \
    "\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"now\",\"arguments\":"  \
    "\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"1\"},{"         \
    "\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"2\"}]}"
#define MARK "\"cache_control\":{\"type\":\"ephemeral\"}"
#define MESSAGES_REQUEST(opaque)                                                         \
    "{\"model\":\"model-1\",\"max_tokens\":32768,\"system\":[{\"type\":\"text\","        \
    "\"text\":\"You help.\"," MARK "}],\"messages\":[{\"role\":\"user\",\"content\":[{"  \
    "\"type\":\"text\",\"text\":\"hi\"}]},{\"role\":\"assistant\",\"content\":[" opaque  \
    "{\"type\":\"text\",\"text\":\"On it.\"},{\"type\":\"tool_use\",\"id\":\"c1\","      \
    "\"name\":\"add\",\"input\":{\"n\":1}},{\"type\":\"tool_use\",\"id\":\"c2\","        \
    "\"name\":\"now\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"        \
    "\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"1\"},{\"type\":"               \
    "\"tool_result\",\"tool_use_id\":\"c2\",\"content\":\"2\"," MARK "}]}]}"

static void two_reasoning_items_and_two_calls_go_back_to_a_chat_endpoint(void **state)
{
    (void)state;
    there_and_back(&hf_codec_chat, "prov/model-1", chat,
                   CHAT_REQUEST("\"reasoning_details\":[{\"id\":1},{\"data\":\"s=\"}],"));
}

static void another_route_gets_a_chat_history_without_opaque_data(void **state)
{
    (void)state;
    there_and_back(&hf_codec_chat, "prov/other", chat, CHAT_REQUEST(""));
}

static void two_reasoning_items_and_two_calls_go_back_to_a_messages_endpoint(void **state)
{
    (void)state;
    there_and_back(&hf_codec_messages, "prov/model-1", messages,
                   MESSAGES_REQUEST(
                       "{\"type\":\"thinking\",\"thinking\":\"a\",\"signature\":\"s=\"},"
                       "{\"type\":\"redacted_thinking\",\"data\":\"d=\"},"));
}

static void another_route_gets_a_messages_history_without_opaque_data(void **state)
{
    (void)state;
    there_and_back(&hf_codec_messages, "prov/other", messages, MESSAGES_REQUEST(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_reasoning_items_and_two_calls_go_back_to_a_chat_endpoint),
        cmocka_unit_test(another_route_gets_a_chat_history_without_opaque_data),
        cmocka_unit_test(
            two_reasoning_items_and_two_calls_go_back_to_a_messages_endpoint),
        cmocka_unit_test(another_route_gets_a_messages_history_without_opaque_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
