/* Templates of payloads. */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/trigger/template.h"

static struct hf_arena arena;

static int open_arena(void **state)
{
    (void)state;
    hf_arena_init(&arena, hf_alloc_system());
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    hf_arena_fini(&arena);
    return 0;
}

static const char *filled(const char *template, const char *values)
{
    const char *json = NULL;
    struct hf_err err = { 0 };
    if (hf_template_check(template, &err) ||
        hf_template_fill(&arena, template, values, &json, &err))
        fail_msg("%s: %s", template, err.message);
    return json;
}

static void members_are_put_in_their_places(void **state)
{
    (void)state;
    static const char values[] = "{\"a\":{\"b\":[10,{\"c\":\"x\"}]},\"n\":null,\"\":1}";
    assert_string_equal(filled("{\"$event\":\"a.b.0\"}", values), "10");
    assert_string_equal(filled("{\"$event\":\"a.b.1.c\"}", values), "\"x\"");
    assert_string_equal(filled("[{\"$event\":\"a.b\"},2]", values),
                        "[[10,{\"c\":\"x\"}],2]");
    assert_string_equal(filled("{\"z\":{\"$event\":\"n\"},\"a\":true}", values),
                        "{\"a\":true,\"z\":null}");
    assert_string_equal(filled("{\"$event\":\"\"}", "[1]"), "[1]");
    assert_string_equal(filled("{\"$event\":\"\"}", NULL), "null");
    assert_string_equal(filled("\"fixed\"", values), "\"fixed\"");
    assert_string_equal(filled("{}", values), "{}");
    assert_string_equal(filled("[]", values), "[]");
}

static void a_default_stands_for_what_is_missing(void **state)
{
    (void)state;
    assert_string_equal(filled("{\"$event\":\"x\",\"default\":[1]}", "{}"), "[1]");
    assert_string_equal(filled("{\"$event\":\"x\",\"default\":[1]}", "{\"x\":2}"), "2");
    assert_string_equal(filled("{\"$event\":\"x\",\"default\":null}", NULL), "null");
}

static void no_template_gives_the_values(void **state)
{
    (void)state;
    const char *json = "";
    struct hf_err err = { 0 };
    assert_int_equal(hf_template_fill(&arena, NULL, "{ \"a\" : 1 }", &json, &err), 0);
    assert_string_equal(json, "{ \"a\" : 1 }");
    assert_int_equal(hf_template_fill(&arena, NULL, NULL, &json, &err), 0);
    assert_null(json);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const paths[] = { "x",      "a.x",  "a.b.2", "a.b.x",
                                         "a.b.-1", "a..b", ".a",    "a.b.99999999" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char template[80];
        (void)snprintf(template, sizeof(template), "{\"$event\":\"%s\"}", paths[i]);
        const char *json = NULL;
        struct hf_err err = { 0 };
        if (hf_template_fill(&arena, template, "{\"a\":{\"b\":[1,2]}}", &json, &err) !=
            HF_EINVAL)
            fail_msg("%s was found", paths[i]);
        assert_string_equal(err.field, "template");
        assert_non_null(strstr(err.message, paths[i]));
    }
}

static void templates_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "{",
                                       "{\"$event\":1}",
                                       "{\"$event\":null}",
                                       "[[{\"$event\":\"a\",\"b\":1}]]",
                                       "{\"a\":{\"$event\":{}}}" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_err err = { 0 };
        assert_int_equal(hf_template_check(bad[i], &err), HF_EINVAL);
        assert_string_equal(err.field, "template");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_put_in_their_places),
        cmocka_unit_test(a_default_stands_for_what_is_missing),
        cmocka_unit_test(no_template_gives_the_values),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(templates_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
