/* Codecs under pressure: every allocation fails once, and every limit is met. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/kit.h"

static const char chat[] =
    "data: {\"id\":\"r1\",\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\xff\","
    "\"reasoning\":\"b\",\"reasoning_details\":[{\"x\":1}],\"tool_calls\":[{\"index\":0,"
    "\"id\":\"c1\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}}]},"
    "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

static const char messages[] =
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"r1\",\"model\":\"m\"}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
    "\"thinking\",\"thinking\":\"a\",\"signature\":\"s\"}}\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":"
    "\"tool_use\",\"id\":\"c1\",\"name\":\"n\",\"input\":{}}}\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n";

static void fail_each(const struct hf_codec *codec, const char *body, const char *type)
{
    static struct heard heard;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    play(codec, &fail.alloc, 200, type, body, 7, &heard);
    int64_t calls = fail.calls;
    assert_int_equal(fail.live, 0);
    assert_true(calls > 3);
    for (int64_t i = 1; i <= calls; i++) {
        fail_alloc_init(&fail, i);
        play(codec, &fail.alloc, 200, type, body, 7, &heard);
        assert_int_equal(fail.live, 0);
        /* Either the whole answer, where only evidence was lost, or the error. */
        assert_true(strstr(heard.text, "end error unknown out_of_memory") ||
                    strstr(heard.text, "end stop") || strstr(heard.text, "end unknown"));
    }
}

static void every_allocation_of_an_answer_fails_once(void **state)
{
    (void)state;
    fail_each(&hf_codec_chat, chat, "text/event-stream");
    fail_each(&hf_codec_messages, messages, "text/event-stream");
    fail_each(
        &hf_codec_chat,
        "{\"id\":\"r\",\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":"
        "\"stop\"}]}",
        "application/json");
}

static void every_allocation_of_a_request_fails_once(void **state)
{
    (void)state;
    struct asked asked;
    struct hf_dialect dialect = { 0 };
    const struct hf_codec *codecs[] = { &hf_codec_chat, &hf_codec_messages };
    asked_simply(&asked, "[{\"name\":\"add\"}]", "{\"temperature\":1}");
    for (size_t c = 0; c < 2; c++)
        for (int64_t i = 1; i < 4; i++) {
            struct fail_alloc fail;
            struct hf_buf out;
            struct hf_err err = { 0 };
            fail_alloc_init(&fail, i);
            struct hf_encode encode = { .call = &asked.call,
                                        .dialect = &dialect,
                                        .alloc = &fail.alloc };
            hf_buf_init(&out, &fail.alloc, 1 << 20);
            hf_json_begin(&encode.json, &out);
            int rc = codecs[c]->encode(&encode, &err);
            assert_true(rc == 0 || rc == HF_ENOMEM);
            if (fail.calls >= i)
                assert_true(rc == HF_ENOMEM || hf_buf_state(&out) == HF_ENOMEM);
            hf_buf_fini(&out);
            assert_int_equal(fail.live, 0);
        }
    asked_fini(&asked);
}

/* A stream of one event of `len` bytes of data, filled with blanks. */
static void play_event(size_t len, struct heard *heard)
{
    static const char event[] = "{\"id\":\"r1\"}";
    char *body = malloc(len + 10);
    memcpy(body, "data: ", 6);
    memset(body + 6, ' ', len);
    memcpy(body + 6, event, sizeof(event) - 1);
    memcpy(body + 6 + len, "\n\n", 3);
    play(&hf_codec_chat, hf_alloc_system(), 200, "text/event-stream", body, 1 << 20,
         heard);
    free(body);
}

static void an_event_at_the_limit_is_read_and_one_byte_more_is_not(void **state)
{
    (void)state;
    static struct heard heard;
    play_event((size_t)HF_MAX_MODEL_EVENT_BYTES, &heard);
    heard_expect(&heard, "evidence 200 req-1 r1 - -\nend error stream ended_early t\n");
    play_event((size_t)HF_MAX_MODEL_EVENT_BYTES + 1, &heard);
    heard_expect(&heard,
                 "evidence 200 req-1 - - -\nend error stream sse_event_too_large\n");
}

static void a_response_over_the_limit_is_given_up(void **state)
{
    (void)state;
    static struct heard heard;
    static const char line[] = ": nothing\n";
    size_t lines = (size_t)HF_MAX_MODEL_RESPONSE_BYTES / (sizeof(line) - 1) + 1;
    char *body = malloc(lines * (sizeof(line) - 1) + 1);
    for (size_t i = 0; i < lines; i++)
        memcpy(body + i * (sizeof(line) - 1), line, sizeof(line));
    play(&hf_codec_chat, hf_alloc_system(), 200, "text/event-stream", body, 1 << 20,
         &heard);
    heard_expect(&heard,
                 "evidence 200 req-1 - - -\nend error stream sse_response_too_large\n");
    free(body);
}

static void too_many_parts_are_given_up(void **state)
{
    (void)state;
    static struct heard heard;
    size_t room = 200 * ((size_t)HF_MAX_TURN_PARTS + 1);
    char *body = malloc(room);
    size_t used = 0;
    for (int i = 0; i <= HF_MAX_TURN_PARTS; i++)
        used += (size_t)snprintf(body + used, room - used,
                                 "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{"
                                 "\"index\":%d}]}}]}\n\n",
                                 i);
    struct hf_wire wire;
    struct hf_model_sink sink = { &heard, heard_event };
    struct hf_http_header header = { "content-type", "text/event-stream", NULL };
    hf_wire_init(&wire, hf_alloc_system(), &hf_codec_chat, "r", &sink);
    hf_wire_head(&wire, 200, &header, 1, 0);
    hf_wire_body(&wire, body, used);
    assert_true(hf_wire_is_over(&wire));
    assert_string_equal(wire.error.code, "too_many_parts");
    hf_wire_fini(&wire);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_an_answer_fails_once),
        cmocka_unit_test(every_allocation_of_a_request_fails_once),
        cmocka_unit_test(an_event_at_the_limit_is_read_and_one_byte_more_is_not),
        cmocka_unit_test(a_response_over_the_limit_is_given_up),
        cmocka_unit_test(too_many_parts_are_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
