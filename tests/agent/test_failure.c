/* Every row of the failure table, with both facts: is it transient, is a repeat safe. */
#include <stdio.h>
#include <string.h>

#include "agent/kit.h"

static void end_by(const struct hf_codec *codec, int status, const char *body,
                   const char *retry_after, enum hf_http_fault fault, const char *end)
{
    static struct heard heard;
    struct hf_wire wire;
    struct hf_model_sink sink = { &heard, heard_event };
    struct hf_http_header headers[] = { { "retry-after", retry_after, NULL },
                                        { "content-type", "application/json", NULL } };
    memset(&heard, 0, sizeof(heard));
    hf_wire_init(&wire, hf_alloc_system(), codec, "r", &sink);
    if (status > 0)
        hf_wire_head(&wire, status, headers + !retry_after, 1 + !!retry_after,
                     1792567680000); /* 2026-10-21T07:28:00Z */
    if (body)
        hf_wire_body(&wire, body, strlen(body));
    hf_wire_end(&wire, fault);
    hf_wire_fini(&wire);
    const char *last = strstr(heard.text, "end ");
    assert_non_null(last);
    assert_string_equal(last, end);
}

/* The table is the same for both codecs. */
static void end_of(int status, const char *body, const char *retry_after,
                   enum hf_http_fault fault, const char *end)
{
    end_by(&hf_codec_chat, status, body, retry_after, fault, end);
    end_by(&hf_codec_messages, status, body, retry_after, fault, end);
}

static void a_failed_connection(void **state)
{
    (void)state;
    end_of(0, NULL, NULL, HF_HTTP_CONNECT, "end error transport connect_failed ts\n");
    end_of(0, NULL, NULL, HF_HTTP_TLS, "end error transport tls_untrusted s\n");
    end_of(0, NULL, NULL, HF_HTTP_CUT, "end error transport connection_lost ts\n");
    end_of(0, NULL, NULL, HF_HTTP_NOMEM, "end error unknown out_of_memory ts\n");
}

static void a_connection_lost_after_the_head_is_not_safe(void **state)
{
    (void)state;
    end_of(200, NULL, NULL, HF_HTTP_CUT, "end error transport connection_lost t\n");
    end_of(200, "{\"id\"", NULL, HF_HTTP_GAP, "end error timeout gap_timeout t\n");
    end_of(200, NULL, NULL, HF_HTTP_LARGE, "end error stream sse_response_too_large\n");
}

static void each_timeout(void **state)
{
    (void)state;
    end_of(0, NULL, NULL, HF_HTTP_START, "end error timeout start_timeout ts\n");
    end_of(0, NULL, NULL, HF_HTTP_GAP, "end error timeout gap_timeout ts\n");
    end_of(0, NULL, NULL, HF_HTTP_WHOLE, "end error timeout whole_timeout ts\n");
}

static void each_status(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *end;
    } rows[] = {
        { 408, "end error http server_error t\n" },
        { 409, "end error http server_error t\n" },
        { 425, "end error http server_error t\n" },
        { 500, "end error http server_error t\n" },
        { 502, "end error http server_error t\n" },
        { 503, "end error http server_error t\n" },
        { 504, "end error http server_error t\n" },
        { 529, "end error http server_error t\n" },
        { 429, "end error quota rate_limited t\n" },
        { 401, "end error auth auth_refused\n" },
        { 403, "end error auth auth_refused\n" },
        { 400, "end error validation request_refused\n" },
        { 413, "end error validation request_refused\n" },
        { 422, "end error validation request_refused\n" },
        { 404, "end error http unexpected_status\n" },
        { 418, "end error http unexpected_status\n" },
        { 301, "end error http redirected\n" },
        { 308, "end error http redirected\n" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        end_of(rows[i].status, "{}", NULL, HF_HTTP_NONE, rows[i].end);
}

#define ERROR(type, code, message)                                                       \
    "{\"error\":{\"type\":\"" type "\",\"code\":\"" code "\",\"message\":\"" message     \
    "\"}}"

static void each_word_of_an_error_object(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *word;
        const char *end;
    } rows[] = {
        { 429, "insufficient_quota", "end error quota quota_exhausted\n" },
        { 429, "billing_hard_limit_reached", "end error quota quota_exhausted\n" },
        { 429, "billing_not_active", "end error quota quota_exhausted\n" },
        { 400, "billing_error", "end error quota quota_exhausted\n" },
        { 429, "usage_limit_reached", "end error quota quota_exhausted\n" },
        { 429, "rate_limit_exceeded", "end error quota rate_limited ts\n" },
        { 429, "rate_limit_error", "end error quota rate_limited ts\n" },
        { 429, "tokens", "end error quota rate_limited ts\n" },
        { 429, "requests", "end error quota rate_limited ts\n" },
        { 400, "context_length_exceeded", "end error validation context_overflow\n" },
        { 400, "string_above_max_length", "end error validation context_overflow\n" },
        { 400, "content_filter", "end error validation content_filter\n" },
        { 400, "content_policy_violation", "end error validation content_filter\n" },
        { 404, "model_not_found", "end error unsupported model_unsupported\n" },
        { 400, "unsupported_model", "end error unsupported model_unsupported\n" },
        { 400, "unsupported_parameter", "end error unsupported model_unsupported\n" },
        { 400, "unsupported_value", "end error unsupported model_unsupported\n" },
        { 404, "not_found_error", "end error unsupported model_unsupported\n" },
        { 400, "invalid_api_key", "end error auth auth_refused\n" },
        { 500, "authentication_error", "end error auth auth_refused\n" },
        { 500, "permission_error", "end error auth auth_refused\n" },
        { 529, "overloaded_error", "end error http overloaded ts\n" },
        { 503, "engine_overloaded", "end error http overloaded ts\n" },
        { 503, "server_overloaded", "end error http overloaded ts\n" },
        { 413, "request_too_large", "end error validation request_refused\n" },
        { 500, "invalid_request_error", "end error validation request_refused\n" },
        { 504, "timeout_error", "end error timeout server_timeout t\n" },
        { 400, "api_error", "end error http server_error t\n" },
        { 400, "server_error", "end error http server_error t\n" },
        { 400, "internal_server_error", "end error http server_error t\n" },
    };
    char body[256];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(body, sizeof(body), ERROR("%s", "x", "y"), rows[i].word);
        end_of(rows[i].status, body, NULL, HF_HTTP_NONE, rows[i].end);
        snprintf(body, sizeof(body), ERROR("x", "%s", "y"), rows[i].word);
        end_of(rows[i].status, body, NULL, HF_HTTP_NONE, rows[i].end);
    }
}

static void each_phrase_of_a_message(void **state)
{
    (void)state;
    static const struct {
        const char *phrase;
        const char *end;
    } rows[] = {
        { "You exceeded your current quota.", "end error quota quota_exhausted\n" },
        { "Your credit balance is too low", "end error quota quota_exhausted\n" },
        { "insufficient_quota", "end error quota quota_exhausted\n" },
        { "Usage limit reached", "end error quota quota_exhausted\n" },
        { "50 requests per day", "end error quota quota_exhausted\n" },
        { "your daily limit", "end error quota quota_exhausted\n" },
        { "This model's maximum context length is 9",
          "end error validation context_overflow\n" },
        { "over the context length", "end error validation context_overflow\n" },
        { "over the context window", "end error validation context_overflow\n" },
        { "exceeds the available context size",
          "end error validation context_overflow\n" },
        { "prompt is too long: 9 tokens", "end error validation context_overflow\n" },
        { "Input is too long", "end error validation context_overflow\n" },
        { "too many tokens", "end error validation context_overflow\n" },
        { "the content filter", "end error validation content_filter\n" },
        { "our content management policy", "end error validation content_filter\n" },
        { "our safety system", "end error validation content_filter\n" },
        { "Model not found", "end error unsupported model_unsupported\n" },
        { "Unknown model x", "end error unsupported model_unsupported\n" },
        { "unsupported model", "end error unsupported model_unsupported\n" },
    };
    char body[256];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(body, sizeof(body), ERROR("invalid_request_error", "", "%s"),
                 rows[i].phrase);
        end_of(400, body, NULL, HF_HTTP_NONE, rows[i].end);
        snprintf(body, sizeof(body), "{\"error\":\"%s\"}", rows[i].phrase);
        end_of(400, body, NULL, HF_HTTP_NONE, rows[i].end);
    }
}

static void a_rate_in_tokens_is_not_a_long_context(void **state)
{
    (void)state;
    end_of(429, ERROR("", "", "too many tokens per minute"), NULL, HF_HTTP_NONE,
           "end error quota rate_limited t\n");
}

static void structure_beats_text_and_text_beats_the_status(void **state)
{
    (void)state;
    end_of(400, ERROR("", "rate_limit_exceeded", "prompt is too long"), NULL,
           HF_HTTP_NONE, "end error quota rate_limited ts\n");
    end_of(500, "<html>maximum context length</html>", NULL, HF_HTTP_NONE,
           "end error validation context_overflow\n");
}

static void a_time_to_come_back_makes_a_refusal_safe(void **state)
{
    (void)state;
    end_of(429, "{}", "7", HF_HTTP_NONE, "end error quota rate_limited ts 7000\n");
    end_of(503, "{}", "7", HF_HTTP_NONE, "end error http server_error ts 7000\n");
    end_of(529, "{}", "7", HF_HTTP_NONE, "end error http server_error ts 7000\n");
    end_of(500, "{}", "7", HF_HTTP_NONE, "end error http server_error t 7000\n");
    end_of(429, ERROR("", "insufficient_quota", ""), "7", HF_HTTP_NONE,
           "end error quota quota_exhausted 7000\n");
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    (void)state;
    const hf_ms now = 1792567680000; /* Wed, 21 Oct 2026 07:28:00 GMT */
    assert_int_equal(hf_wire_retry_after("0", now), 0);
    assert_int_equal(hf_wire_retry_after("7", now), 7000);
    assert_int_equal(hf_wire_retry_after(" 7", now), 7000);
    assert_int_equal(hf_wire_retry_after("1.5", now), 1000);
    assert_int_equal(hf_wire_retry_after("3600", now), 3600000);
    assert_int_equal(hf_wire_retry_after("99999999999999999999", now), 3600000);
    assert_int_equal(hf_wire_retry_after("Wed, 21 Oct 2026 07:28:30 GMT", now), 30000);
    assert_int_equal(hf_wire_retry_after("Wed, 21 Oct 2026 07:27:30 GMT", now), 0);
    assert_int_equal(hf_wire_retry_after("Wed, 31 Feb 2026 07:27:30 GMT", now), 0);
    assert_int_equal(hf_wire_retry_after("soon", now), 0);
    assert_int_equal(hf_wire_retry_after("-5", now), 0);
    assert_int_equal(hf_wire_retry_after("", now), 0);
}

static void nothing_of_a_response_gets_into_an_error(void **state)
{
    (void)state;
    struct hf_llm_error error;
    struct hf_fault fault = { .source = HF_FAULT_STATUS,
                              .status = 401,
                              .type = span("\"CANARY\""),
                              .code = span("\"CANARY\""),
                              .text = span("\"Incorrect API key provided: CANARY\"") };
    hf_fault_judge(&fault, &error);
    assert_string_equal(error.code, "auth_refused");
    assert_string_equal(error.message.at, "the endpoint refused the key");
    assert_int_equal(error.raw.len, 0);
}

struct last_error {
    struct hf_llm_error error;
    char text[32];
    char request_id[32];
};

static void keep_error(void *user, const struct hf_model_event *event)
{
    struct last_error *last = user;
    if (!event->error)
        return;
    last->error = *event->error;
    if (event->error->part_count > 0)
        snprintf(last->text, sizeof(last->text), "%s",
                 (const char *)event->error->parts[0].content.at);
    if (event->error->request_id)
        snprintf(last->request_id, sizeof(last->request_id), "%s",
                 event->error->request_id);
}

/* Heads and bodies up to a cut: how far it came, and what had come. */
static void cut_after(int steps, struct last_error *last)
{
    static const char body[] =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    struct hf_wire wire;
    struct hf_model_sink sink = { last, keep_error };
    struct hf_http_header headers[] = { { "content-type", "text/event-stream", NULL },
                                        { "request-id", "req-7", NULL } };
    memset(last, 0, sizeof(*last));
    hf_wire_init(&wire, hf_alloc_system(), &hf_codec_chat, "r", &sink);
    if (steps > 0)
        hf_wire_head(&wire, 200, headers, 2, 0);
    if (steps > 1)
        hf_wire_body(&wire, body, strlen(body));
    hf_wire_end(&wire, HF_HTTP_CUT);
    hf_wire_fini(&wire);
}

static void an_error_says_how_far_the_call_came_and_what_had_come(void **state)
{
    (void)state;
    struct last_error last;
    cut_after(0, &last);
    assert_int_equal(last.error.position, HF_LLM_AT_NO_RESPONSE);
    assert_string_equal(last.request_id, "");
    cut_after(1, &last);
    assert_int_equal(last.error.position, HF_LLM_AT_RESPONSE_OBSERVED);
    assert_string_equal(last.request_id, "req-7");
    assert_int_equal(last.error.part_count, 0);
    cut_after(2, &last);
    assert_int_equal(last.error.position, HF_LLM_AT_OUTPUT_STARTED);
    assert_true(last.error.text_streamed);
    assert_string_equal(last.text, "x");
}

static void a_success_of_another_shape_is_bad_json(void **state)
{
    (void)state;
    end_of(200, "{}", NULL, HF_HTTP_NONE, "end error unknown bad_json\n");
    end_of(200, "[]", NULL, HF_HTTP_NONE, "end error unknown bad_json\n");
    end_of(200, "", NULL, HF_HTTP_NONE, "end error unknown bad_json\n");
    end_of(200, "<html>", NULL, HF_HTTP_NONE, "end error unknown bad_json\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_connection),
        cmocka_unit_test(a_connection_lost_after_the_head_is_not_safe),
        cmocka_unit_test(each_timeout),
        cmocka_unit_test(each_status),
        cmocka_unit_test(each_word_of_an_error_object),
        cmocka_unit_test(each_phrase_of_a_message),
        cmocka_unit_test(a_rate_in_tokens_is_not_a_long_context),
        cmocka_unit_test(structure_beats_text_and_text_beats_the_status),
        cmocka_unit_test(a_time_to_come_back_makes_a_refusal_safe),
        cmocka_unit_test(retry_after_is_seconds_or_a_date),
        cmocka_unit_test(nothing_of_a_response_gets_into_an_error),
        cmocka_unit_test(an_error_says_how_far_the_call_came_and_what_had_come),
        cmocka_unit_test(a_success_of_another_shape_is_bad_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
