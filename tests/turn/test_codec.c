/* The JSON of stored values: exact text, both ways, and what is refused. */
#include <holdfast/turn_json.h>

#include <stdlib.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "support/unit.h"

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* One shape for all decoders: decode, and encode again. */
#define AGAIN(name, type)                                                                \
    static int name##_again(const struct hf_alloc *alloc, struct hf_span json,           \
                            struct hf_bytes *ret_json, struct hf_err *err)               \
    {                                                                                    \
        struct hf_decoded *owner = NULL;                                                 \
        const struct type *value = NULL;                                                 \
        int rc = hf_##name##_decode(alloc, json, &owner, &value, err);                   \
        if (rc == 0)                                                                     \
            rc = hf_##name##_encode(alloc, value, ret_json, err);                        \
        hf_decoded_free(owner);                                                          \
        return rc;                                                                       \
    }
AGAIN(record, hf_record)
AGAIN(tool_result, hf_tool_result)
AGAIN(outcome, hf_outcome)
AGAIN(llm_response, hf_llm_response)
AGAIN(llm_error, hf_llm_error)
AGAIN(exec_result, hf_exec_result)
AGAIN(turn_delivery, hf_turn_delivery)
AGAIN(base, hf_base)
AGAIN(turn_start, hf_turn_start)
AGAIN(restore, hf_restore)

static int journal_again(const struct hf_alloc *alloc, struct hf_span json,
                         struct hf_bytes *ret_json, struct hf_err *err)
{
    struct hf_decoded *owner = NULL;
    const struct hf_op_record *ops = NULL;
    size_t count = 0;
    int rc = hf_op_records_decode(alloc, json, &owner, &ops, &count, err);
    if (rc == 0)
        rc = hf_op_records_encode(alloc, ops, count, ret_json, err);
    hf_decoded_free(owner);
    return rc;
}

typedef int again_fn(const struct hf_alloc *alloc, struct hf_span json,
                     struct hf_bytes *ret_json, struct hf_err *err);

#define HASH "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"
#define CAUSE                                                                            \
    "{\"id\":\"c1\",\"event_type\":\"timer\",\"origin\":\"o\",\"text\":\"tick\"}"
#define MESSAGE                                                                          \
    "{\"id\":\"m\",\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"content\":\"hi\"}]" \
    "}"

/* Every member of every kind, in the order and form in which it is stored. */
static const struct {
    again_fn *again;
    const char *json;
} forms[] = {
    { record_again,
      "{\"kind\":\"message\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\",\"parts\":"
      "["
      "{\"kind\":\"text\",\"phase\":\"commentary\",\"content\":\"a\\n\\\"b\\\" "
      "\xc3\xa9\"},"
      "{\"kind\":\"tool_call\",\"content\":\"{oops\",\"call_id\":\"c1\",\"tool\":\"add\","
      "\"route\":\"r\",\"replay\":\"sig\"},"
      "{\"kind\":\"attachment\",\"pruned\":true,\"attachment\":{\"ref\":\"b\","
      "\"media_type\":\"image/png\",\"name\":\"n\",\"bytes\":7}}],"
      "\"origin\":{\"kind\":\"process\",\"transient\":true,\"id\":\"o\",\"event_type\":"
      "\"e\","
      "\"cause\":\"c\",\"sequence\":-3}}}" },
    { record_again,
      "{\"kind\":\"event\",\"name\":\"n\",\"data\":{\"b\": 1.50,\"a\":[]}}" },
    { tool_result_again,
      "{\"call_id\":\"c1\",\"tool\":\"add\",\"outcome\":\"success\",\"control\":"
      "\"finish\","
      "\"value\":{\"n\": 1e2},\"control_value\":[1],\"frame_key\":\"f\",\"task\":\"t\","
      "\"parts\":[{\"kind\":\"text\",\"content\":\"x\"}],\"intents\":[{\"name\":\"note\","
      "\"failed\":true,\"text\":\"k\"}],\"duration_ms\":12}" },
    { tool_result_again,
      "{\"call_id\":\"c1\",\"outcome\":\"failure\",\"failure\":{\"class\":\"io\","
      "\"source\":\"runtime\",\"retry\":\"exhausted\",\"after_ms\":5,\"attempts\":2,"
      "\"code\":\"disk\",\"message\":\"full\",\"raw\":{\"errno\":28}}}" },
    { tool_result_again,
      "{\"call_id\":\"c1\",\"outcome\":\"unknown\",\"reason\":\"cut off\"}" },
    { outcome_again, "{\"kind\":\"cancelled\",\"text\":\"t\",\"value\":1,\"tool\":\"x\","
                     "\"frame_key\":\"f\","
                     "\"task\":\"k\",\"evidence\":{\"request_id\":\"r\",\"origin\":\"o\","
                     "\"reason\":\"y\"}}" },
    { llm_response_again,
      "{\"parts\":[{\"kind\":\"reasoning\",\"content\":\"why\",\"route\":\"r\","
      "\"replay\":\"s\"}],\"reason\":\"tool_use\",\"text_streamed\":true,\"usage\":{"
      "\"input\":1,\"output\":-2,\"cache_read\":3,\"cache_write\":4,\"reasoning\":5},"
      "\"response_id\":\"i\",\"model\":\"m\",\"raw\":\"text\"}" },
    { llm_error_again,
      "{\"kind\":\"quota\",\"transient\":true,\"charge_safe\":true,\"cancelled\":true,"
      "\"text_streamed\":true,\"retry_after_ms\":9,\"code\":\"429\",\"message\":\"slow\","
      "\"raw\":\"body\",\"usage\":{\"input\":1}}" },
    { exec_result_again,
      "{\"failed\":true,\"message\":\"m\",\"error\":\"e\",\"observations\":[{\"text\":"
      "\"1\","
      "\"truncated\":true}],\"calls\":[{\"call_id\":\"1:1\",\"outcome\":\"success\"}],"
      "\"images\":[{\"ref\":\"b\"}],\"finish\":{\"v\": "
      "1},\"bindings_delta\":{\"set\":{}},"
      "\"bindings_before\":\"h1\",\"bindings_after\":\"h2\",\"duration_ms\":5,"
      "\"variables\":\"x: number\"}" },
    { turn_delivery_again,
      "{\"committed\":[" MESSAGE "],\"messages\":[{\"role\":\"system\"}],\"transient\":["
      "{\"role\":\"user\"}],\"causes\":[" CAUSE "]}" },
    { base_again, "{\"id\":\"history\",\"count\":3,\"digest\":\"" HASH "\"}" },
    { base_again, "{\"id\":\"history\",\"count\":3,\"digest\":\"" HASH
                  "\",\"last_step_known\":true,\"last_step\":2}" },
    { base_again, "{}" },
    { turn_start_again,
      "{\"session_id\":\"s\",\"turn_id\":\"t\",\"base\":{\"id\":\"h\",\"count\":1,"
      "\"digest\":\"" HASH "\"},\"inputs\":[{\"kind\":\"message\",\"message\":" MESSAGE
      "}],\"causes\":[" CAUSE "],\"run_offset\":2,\"given\":{\"a\":1},\"given_refs\":{"
      "\"doc\":{\"about\":\"x\"}}}" },
    { restore_again, "{\"session_id\":\"s\",\"turn_id\":\"t\",\"base\":{\"id\":\"h\"}}" },
    { restore_again, "{}" },
    { journal_again,
      "{\"ops\":[{\"ordinal\":1,\"kind\":\"print\",\"text\":\"not {json\"},"
      "{\"ordinal\":3,\"kind\":\"call\",\"name\":\"add\",\"args\":{\"n\":1},\"results\":["
      "{\"call_id\":\"7:3\",\"outcome\":\"success\",\"value\":2}]},"
      "{\"ordinal\":4,\"kind\":\"now\",\"args\":null,\"answered\":true,\"value\":"
      "1700000000000}]}" },
    { journal_again, "{}" },
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static void every_value_is_the_same_text_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        struct hf_err err = { 0 };
        struct hf_bytes json = { 0 };
        int rc = forms[i].again(NULL, span(forms[i].json), &json, &err);
        if (rc)
            print_error("%s: %s (%s)\n", forms[i].json, err.message, err.field);
        assert_int_equal(rc, 0);
        assert_string_equal((const char *)json.at, forms[i].json);
        assert_int_equal(json.len, strlen(forms[i].json));
        hf_bytes_free(&json);
    }
}

static void white_space_and_order_do_not_matter(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    assert_int_equal(record_again(NULL,
                                  span(" { \"data\" : [ 1 ] ,\n\"kind\":\"event\", "
                                       "\"name\":\"n\" } "),
                                  &json, &err),
                     0);
    assert_string_equal((const char *)json.at,
                        "{\"kind\":\"event\",\"name\":\"n\",\"data\":[ 1 ]}");
    hf_bytes_free(&json);
}

/* What a struct says is what is stored and read back, by a store that knows no JSON. */
static void a_record_survives_its_store(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_record *back = NULL;
    uint8_t digests[2][32] = { 0 };
    struct hf_part parts[2] = { { .content = span("hi") },
                                { .kind = HF_PART_TOOL_CALL,
                                  .call_id = "c1",
                                  .tool = "add",
                                  .content = span("{\"n\": 1.50}") } };
    struct hf_message message = {
        .id = "m1", .role = HF_ROLE_ASSISTANT, .parts = parts, .part_count = 2
    };
    struct hf_record record = { .message = &message };
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), 0);
    assert_int_equal(hf_record_decode(NULL, (struct hf_span){ json.at, json.len }, &owner,
                                      &back, &err),
                     0);
    assert_string_equal(back->message->parts[1].content.at, "{\"n\": 1.50}");
    assert_int_equal(hf_record_chain(digests[0], &record, digests[0], &err), 0);
    assert_int_equal(hf_record_chain(digests[1], back, digests[1], &err), 0);
    assert_memory_equal(digests[0], digests[1], 32);
    hf_bytes_free(&json);
    hf_decoded_free(owner);
}

static void decoded_structs_have_their_size(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_turn_start *start = NULL;
    assert_int_equal(
        hf_turn_start_decode(NULL, span("{\"session_id\":\"s\",\"turn_id\":\"t\"}"),
                             &owner, &start, &err),
        0);
    assert_int_equal(start->size, sizeof(*start));
    assert_null(start->base);
    hf_decoded_free(owner);
    const struct hf_llm_response *reply = NULL;
    assert_int_equal(hf_llm_response_decode(NULL, span("{}"), &owner, &reply, &err), 0);
    assert_int_equal(reply->size, sizeof(*reply));
    hf_decoded_free(owner);
}

static const struct {
    again_fn *again;
    const char *json;
    const char *field;
} bad[] = {
    { record_again, "", "hf_record" },
    { record_again, "{", "hf_record" },
    { record_again, "[]", "hf_record" },
    { record_again, "{\"kind\":\"event\",\"kind\":\"event\"}", "hf_record" },
    { record_again, "{} x", "hf_record" },
    { record_again, "{\"colour\":1}", "colour" },
    { record_again, "{\"kind\":\"song\"}", "kind" },
    { record_again, "{\"kind\":1}", "kind" },
    { record_again, "{\"kind\":\"message\"}", "record" },
    { record_again, "{\"kind\":\"event\",\"name\":\"n\"}", "record" },
    { record_again, "{\"message\":{\"role\":\"user\"}}", "id" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":{}}}", "parts" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":[1]}}", "hf_part" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":[{\"kind\":\"tool_call\"}]}}",
      "call_id" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":[{\"kind\":\"attachment\"}]}}",
      "attachment" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":[{\"content\":7}]}}",
      "content" },
    { record_again, "{\"message\":{\"id\":\"m\",\"parts\":[{\"pruned\":1}]}}", "pruned" },
    { tool_result_again, "{\"outcome\":\"success\"}", "call_id" },
    { tool_result_again, "{\"call_id\":\"c\",\"outcome\":\"failure\"}", "failure" },
    { tool_result_again, "{\"call_id\":\"c\",\"outcome\":\"cancelled\",\"value\":1}",
      "outcome" },
    { tool_result_again, "{\"call_id\":\"c\",\"duration_ms\":1.5}", "duration_ms" },
    { outcome_again, "{\"evidence\":{}}", "request_id" },
    { base_again, "{\"count\":1}", "id" },
    { base_again, "{\"count\":-1}", "count" },
    { base_again, "{\"digest\":\"00\"}", "digest" },
    { base_again,
      "{\"digest\":"
      "\"zz00000000000000000000000000000000000000000000000000000000000000\"}",
      "digest" },
    { base_again, "{\"get\":1}", "get" },
    { base_again, "{\"id\":\"h\",\"count\":1,\"last_step\":1}", "last_step" },
    { base_again, "{\"id\":\"h\",\"count\":1,\"last_step_known\":true,\"last_step\":2}",
      "last_step" },
    { turn_start_again, "{\"turn_id\":\"t\"}", "session_id" },
    { turn_start_again, "{\"session_id\":\"s\",\"turn_id\":\"t\",\"inputs\":[{}]}",
      "record" },
    { turn_start_again, "{\"session_id\":\"s\",\"turn_id\":\"t\",\"size\":1}", "size" },
    { restore_again, "{\"base\":{\"count\":1}}", "id" },
    { restore_again, "{\"resolve\":1}", "resolve" },
    { journal_again, "[]", "journal" },
    { journal_again, "{\"ops\":[{\"kind\":\"now\"}]}", "ordinal" },
    { journal_again, "{\"ops\":[{\"ordinal\":2},{\"ordinal\":2}]}", "ordinal" },
    { journal_again, "{\"ops\":[{\"ordinal\":1,\"kind\":\"dance\"}]}", "kind" },
    { journal_again, "{\"ops\":[{\"ordinal\":1,\"kind\":\"print\",\"args\":1}]}",
      "args" },
    { journal_again, "{\"ops\":[{\"ordinal\":1,\"kind\":\"now\",\"text\":\"x\"}]}",
      "text" },
};

static void what_is_no_value_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_err err = { 0 };
        struct hf_bytes json = { 0 };
        int rc = bad[i].again(NULL, span(bad[i].json), &json, &err);
        if (rc != HF_EINVAL || strcmp(err.field, bad[i].field) != 0)
            print_error("%s: %s %s (%s)\n", bad[i].json, hf_err_wire(rc), err.message,
                        err.field);
        assert_int_equal(rc, HF_EINVAL);
        assert_string_equal(err.field, bad[i].field);
        assert_null(json.at);
    }
}

/* The out-parameters of a call that failed are as they were. */
static void a_value_that_the_machine_would_refuse_is_not_encoded(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_part part = { .content = span("bad \xff bytes") };
    struct hf_message message = { .id = "m", .parts = &part, .part_count = 1 };
    struct hf_record record = { .message = &message };
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "content");
    part = (struct hf_part){ .kind = (enum hf_part_kind)99 };
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "kind");
    message.parts = NULL;
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "parts");
    assert_int_equal(hf_record_encode(NULL, NULL, &json, &err), HF_EINVAL);
    record =
        (struct hf_record){ .kind = HF_RECORD_EVENT, .name = "n", .data = span("{1}") };
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "data");

    struct hf_turn_start start = { .size = sizeof(start), .session_id = "s" };
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "turn_id");
    start.turn_id = "t";
    start.run_offset = (uint64_t)INT64_MAX + 1;
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "run_offset");
    start.run_offset = (uint64_t)INT64_MAX;
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), 0);
    hf_bytes_free(&json);
    start.size = 0;
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "size");
    start.size = sizeof(start) + 8;
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), HF_EINVAL);
    assert_int_equal(hf_op_records_encode(NULL, NULL, 1, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "ops");
    assert_null(json.at);
}

static void a_models_faults_are_repaired_as_the_machine_does(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_part part = { .content = span("odd \xff") };
    struct hf_llm_response reply = { .size = sizeof(reply),
                                     .parts = &part,
                                     .part_count = 1 };
    assert_int_equal(hf_llm_response_encode(NULL, &reply, &json, &err), 0);
    assert_string_equal((const char *)json.at,
                        "{\"parts\":[{\"kind\":\"text\",\"content\":\"odd "
                        "\xef\xbf\xbd\"}],\"reason\":\"unknown\"}");
    hf_bytes_free(&json);
}

static void limits_hold_at_their_edge(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    size_t max = 8388608;
    char *text = malloc(max + 1);
    memset(text, 'x', max + 1);
    struct hf_part part = { .content = { text, max } };
    struct hf_message message = { .id = "m", .parts = &part, .part_count = 1 };
    struct hf_record record = { .message = &message };
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), 0);
    struct hf_bytes again = { 0 };
    assert_int_equal(
        record_again(NULL, (struct hf_span){ json.at, json.len }, &again, &err), 0);
    assert_int_equal(again.len, json.len);
    hf_bytes_free(&json);
    hf_bytes_free(&again);
    part.content.len++;
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "content");
    part.content.len = 1;
    text[191] = '\0';
    struct hf_base base = { .id = text };
    assert_int_equal(hf_base_encode(NULL, &base, &json, &err), 0);
    hf_bytes_free(&json);
    text[191] = 'x';
    text[192] = '\0';
    assert_int_equal(hf_base_encode(NULL, &base, &json, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "id");
    free(text);
}

/* "[[…]]", `levels` deep. */
static struct hf_span nested(char *text, size_t levels)
{
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    return (struct hf_span){ text, 2 * levels };
}

/* What the machine takes, a store can keep: values of 56 levels, events of 60. */
static void nesting_that_is_accepted_can_be_read_again(void **state)
{
    (void)state;
    char text[256];
    struct hf_err err = { 0 };
    struct hf_bytes json = { 0 };
    struct hf_bytes again = { 0 };
    struct hf_record record = { .kind = HF_RECORD_EVENT, .name = "n" };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s",
                                   .turn_id = "t",
                                   .inputs = &record,
                                   .input_count = 1 };
    record.data = nested(text, 60);
    assert_int_equal(hf_turn_start_encode(NULL, &start, &json, &err), 0);
    assert_int_equal(
        turn_start_again(NULL, (struct hf_span){ json.at, json.len }, &again, &err), 0);
    assert_int_equal(json.len, again.len);
    hf_bytes_free(&json);
    hf_bytes_free(&again);
    record.data = nested(text, 61);
    assert_int_equal(hf_record_encode(NULL, &record, &json, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "data");

    struct hf_tool_result result = { .call_id = "1:1", .value = nested(text, 56) };
    struct hf_op_record op = { .ordinal = 1, .results = &result, .result_count = 1 };
    assert_int_equal(hf_op_records_encode(NULL, &op, 1, &json, &err), 0);
    assert_int_equal(
        journal_again(NULL, (struct hf_span){ json.at, json.len }, &again, &err), 0);
    hf_bytes_free(&json);
    hf_bytes_free(&again);
    result.value = nested(text, 57);
    assert_int_equal(hf_op_records_encode(NULL, &op, 1, &json, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "value");
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        bool reached = true;
        for (int64_t at = 1; reached; at++) {
            struct fail_alloc memory;
            struct hf_err err = { 0 };
            struct hf_bytes json = { 0 };
            fail_alloc_init(&memory, at);
            int rc = forms[i].again(&memory.alloc, span(forms[i].json), &json, &err);
            reached = rc != 0;
            assert_int_equal(rc, reached ? HF_ENOMEM : 0);
            hf_bytes_free(&json);
            assert_int_equal(memory.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_the_same_text_both_ways),
        cmocka_unit_test(white_space_and_order_do_not_matter),
        cmocka_unit_test(a_record_survives_its_store),
        cmocka_unit_test(decoded_structs_have_their_size),
        cmocka_unit_test(what_is_no_value_is_refused_by_name),
        cmocka_unit_test(a_value_that_the_machine_would_refuse_is_not_encoded),
        cmocka_unit_test(a_models_faults_are_repaired_as_the_machine_does),
        cmocka_unit_test(limits_hold_at_their_edge),
        cmocka_unit_test(nesting_that_is_accepted_can_be_read_again),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
