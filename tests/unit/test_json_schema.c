/* JSON Schema: what fits, where it does not, and what is not checked. */
#include "support/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_get.h"
#include "base/json_schema.h"
#include "support/fail_alloc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROOM ((size_t)1 << 20)

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

static struct hf_json_schema *schema_of(const char *text)
{
    struct hf_json_schema *schema = NULL;
    struct hf_err err = { 0 };
    if (hf_json_schema_new(hf_alloc_system(), span_of(text), ROOM, &schema, &err))
        fail_msg("%s: %s", text, err.message);
    return schema;
}

/* "" when the value fits, otherwise what is said. */
static const char *said(const char *schema_text, const char *value_text)
{
    static struct hf_err err;
    struct hf_json_schema *schema = schema_of(schema_text);
    struct json_t *value = NULL;
    err = (struct hf_err){ 0 };
    assert_int_equal(hf_json_parse(span_of(value_text), ROOM, "value", &value, &err), 0);
    int rc = hf_json_schema_check(schema, value, &err);
    assert_int_equal(rc, err.code);
    hf_json_free(value);
    hf_json_schema_free(schema);
    return rc ? err.message : "";
}

/* schema, value, what is said; "" means that it fits */
static const char *const cases[][3] = {
    { "{}", "3", "" },
    { "true", "3", "" },
    { "false", "3", "value: is not allowed" },
    { "{\"type\":\"string\"}", "\"x\"", "" },
    { "{\"type\":\"string\"}", "3", "value: must be of type string" },
    { "{\"type\":\"integer\"}", "3.0", "" },
    { "{\"type\":\"integer\"}", "3.5", "value: must be of type integer" },
    { "{\"type\":\"number\"}", "3", "" },
    { "{\"type\":[\"null\",\"boolean\"]}", "true", "" },
    { "{\"type\":[\"null\",\"boolean\"]}", "[]",
      "value: has none of the types that are allowed" },
    { "{\"enum\":[1,\"a\",{\"x\":[1]}]}", "{\"x\":[1.0]}", "" },
    { "{\"enum\":[1,\"a\"]}", "2", "value: is none of the values that are allowed" },
    { "{\"const\":null}", "null", "" },
    { "{\"const\":null}", "0", "value: is not the one value that is allowed" },
    { "{\"minimum\":2,\"maximum\":4}", "2", "" },
    { "{\"minimum\":2}", "1.5", "value: must be at least 2" },
    { "{\"maximum\":4}", "5", "value: must be at most 4" },
    { "{\"exclusiveMinimum\":2}", "2", "value: must be above 2" },
    { "{\"exclusiveMaximum\":2}", "2", "value: must be below 2" },
    { "{\"multipleOf\":0.1}", "0.3", "" },
    { "{\"multipleOf\":2}", "3", "value: must be a multiple of 2" },
    { "{\"minimum\":2}", "\"no number\"", "" },
    { "{\"minLength\":2,\"maxLength\":2}", "\"\xc3\xa4\xe2\x82\xac\"", "" },
    { "{\"maxLength\":1}", "\"ab\"",
      "value: its number of characters must be at most 1" },
    { "{\"minLength\":1}", "\"\"", "value: its number of characters must be at least 1" },
    { "{\"properties\":{\"a\":{\"type\":\"object\",\"required\":[\"b\"]}}}", "{\"a\":{}}",
      "/a: must have the member b" },
    { "{\"properties\":{\"a\":{\"items\":{\"type\":\"string\"}}}}", "{\"a\":[\"x\",1]}",
      "/a/1: must be of type string" },
    { "{\"properties\":{\"a/b\":{\"type\":\"null\"}}}", "{\"a/b\":1}",
      "/a~1b: must be of type null" },
    { "{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"a\":1}", "" },
    { "{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"b\":1}",
      "/b: is a member that is not known" },
    { "{\"additionalProperties\":{\"type\":\"null\"}}", "{\"b\":1}",
      "/b: must be of type null" },
    { "{\"propertyNames\":{\"maxLength\":1}}", "{\"bb\":1}",
      "/bb: its number of characters must be at most 1" },
    { "{\"minProperties\":1}", "{}", "value: its number of members must be at least 1" },
    { "{\"maxProperties\":0}", "{\"a\":1}",
      "value: its number of members must be at most 0" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
      "value: must have the member b" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"c\":1}", "" },
    { "{\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"type\":\"string\"}}",
      "[null,\"x\"]", "" },
    { "{\"prefixItems\":[{\"type\":\"null\"}],\"items\":false}", "[null,1]",
      "/1: is not allowed" },
    { "{\"minItems\":1}", "[]", "value: its number of items must be at least 1" },
    { "{\"maxItems\":1}", "[1,2]", "value: its number of items must be at most 1" },
    { "{\"uniqueItems\":true}", "[1,{\"a\":1},1.0]", "value: has the same item twice" },
    { "{\"uniqueItems\":true}", "[1,\"1\",[1]]", "" },
    { "{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3", "value: must be at most 2" },
    { "{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":2}]}", "1",
      "value: fits none of the schemas of anyOf" },
    { "{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":2}]}", "2", "" },
    { "{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "1", "" },
    { "{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "2",
      "value: must fit exactly one of the schemas of oneOf" },
    { "{\"not\":{\"type\":\"null\"}}", "null", "value: fits the schema of not" },
    { "{\"if\":{\"minimum\":5},\"then\":{\"maximum\":6},\"else\":{\"maximum\":2}}", "7",
      "value: must be at most 6" },
    { "{\"if\":{\"minimum\":5},\"then\":{\"maximum\":6},\"else\":{\"maximum\":2}}", "3",
      "value: must be at most 2" },
    { "{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"type\":\"null\"}}}", "1",
      "value: must be of type null" },
    { "{\"$ref\":\"#/definitions/a~1b\",\"definitions\":{\"a/b\":false}}", "1",
      "value: is not allowed" },
    { "{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"required\":[\"v\"]}",
      "{\"v\":1,\"next\":{\"v\":2,\"next\":{}}}", "/next/next: must have the member v" },
    { "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/anyOf/0\"}]}", "null", "" },
};

static void a_value_fits_or_is_told_where_it_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *got = said(cases[i][0], cases[i][1]);
        if (strcmp(got, cases[i][2]) != 0)
            fail_msg("%s of %s: \"%s\"", cases[i][1], cases[i][0], got);
    }
}

static void a_bad_schema_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        { "3", "# must be an object, true or false" },
        { "{\"properties\":{\"a\":3}}", "#/a must be an object, true or false" },
        { "{\"type\":\"text\"}", "#/type must be a type's word or an array of them" },
        { "{\"items\":{\"required\":\"a\"}}",
          "#/items/required must be an array of strings" },
        { "{\"minLength\":-1}", "#/minLength must be a whole number of at least 0" },
        { "{\"minimum\":\"1\"}", "#/minimum must be a number" },
        { "{\"multipleOf\":0}", "#/multipleOf must be a number above 0" },
        { "{\"uniqueItems\":1}", "#/uniqueItems must be true or false" },
        { "{\"enum\":[]}", "#/enum must be an array that is not empty" },
        { "{\"anyOf\":[]}", "#/anyOf must be an array of schemas that is not empty" },
        { "{\"properties\":[]}", "#/properties must be an object of schemas" },
        { "{\"$ref\":3}", "#/$ref must be a string" },
        { "{\"$ref\":\"#/$defs/none\"}", "#/$ref leads nowhere" },
        { "{\"$ref\":\"#/type\",\"type\":\"null\"}", "#/$ref does not lead to a schema" },
        { "{\"$ref\":\"#\"}", "#/$ref leads back to itself" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_json_schema *schema = NULL;
        struct hf_err err = { 0 };
        int rc = hf_json_schema_new(hf_alloc_system(), span_of(bad[i][0]), ROOM, &schema,
                                    &err);
        if (rc != HF_EINVAL || strcmp(err.message, bad[i][1]) != 0)
            fail_msg("%s: %d \"%s\"", bad[i][0], rc, err.message);
    }
}

static void what_is_not_checked_is_noted(void **state)
{
    (void)state;
    struct hf_json_schema *schema = schema_of(
        "{\"title\":\"x\",\"format\":\"date\",\"properties\":{\"a\":{\"pattern\":\"^a\"},"
        "\"b\":{\"$ref\":\"other.json\"}}}");
    const char *one = hf_json_schema_notice(schema, 0),
               *two = hf_json_schema_notice(schema, 1);
    bool swapped = strncmp(one, "#/b", 3) == 0; /* members have no order */
    assert_string_equal(swapped ? two : one,
                        "#/a/pattern is a keyword that is not checked");
    assert_string_equal(swapped ? one : two,
                        "#/b/$ref leads out of the schema and is not followed");
    assert_null(hf_json_schema_notice(schema, 2));
    hf_json_schema_free(schema);
}

static void an_endless_check_is_ended(void **state)
{
    (void)state;
    static struct hf_err err;
    struct json_t *value = NULL;
    static const char *const endless[] = {
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},{\"$ref\":\"#/$defs/"
        "b\"}]},"
        "\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}},"
        "\"$ref\":\"#/$defs/a\"}",
    };
    assert_int_equal(hf_json_parse(span_of("1"), ROOM, "value", &value, &err), 0);
    for (size_t i = 0; i < COUNT(endless); i++) {
        struct hf_json_schema *schema = schema_of(endless[i]);
        assert_int_equal(hf_json_schema_check(schema, value, &err), HF_ETOOBIG);
        assert_string_equal(err.message, "the check takes too many steps");
        hf_json_schema_free(schema);
    }
    hf_json_free(value);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    static const char text[] = "{\"x-a\":1,\"properties\":{\"a\":{\"enum\":[1,2]}}}";
    struct json_t *value = NULL;
    assert_int_equal(hf_json_parse(span_of("{\"a\":3}"), ROOM, "value", &value, NULL), 0);
    bool failed = true;
    for (int64_t at = 1; failed; at++) {
        struct fail_alloc memory;
        struct hf_json_schema *schema = NULL;
        struct hf_err err = { 0 };
        fail_alloc_init(&memory, at);
        int rc = hf_json_schema_new(&memory.alloc, span_of(text), ROOM, &schema, &err);
        if (rc == 0)
            rc = hf_json_schema_check(schema, value, &err);
        hf_json_schema_free(schema);
        assert_int_equal(memory.live, 0);
        failed = memory.calls >= at;
        assert_true(rc == HF_EINVAL || (failed && rc == HF_ENOMEM));
    }
    hf_json_free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_fits_or_is_told_where_it_does_not),
        cmocka_unit_test(a_bad_schema_is_refused_with_its_place),
        cmocka_unit_test(what_is_not_checked_is_noted),
        cmocka_unit_test(an_endless_check_is_ended),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
