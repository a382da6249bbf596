/* Bindings: what lasts from one cell to the next, as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/kit.h"

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* The bindings that the code leaves, and that a cell which does nothing leaves them so. */
static void check_left(const char *code, const char *before, const char *expected)
{
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = code, .bindings = before };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_null(op);
    assert_string_equal(hf_cell_bindings(cell).at, expected);
    if (hf_bindings_check(hf_cell_bindings(cell), &err))
        fail_msg("%s", err.message);

    struct cellkit idle = { .code = "", .bindings = hf_cell_bindings(cell).at };
    struct hf_cell *next = cellkit_new(&idle, NULL, 0);
    assert_int_equal(hf_cell_poll(next, &op, &err), 0);
    assert_string_equal(hf_cell_bindings(next).at, expected);
    assert_string_equal(hf_cell_result(next)->bindings_delta.at, "{}");
    assert_string_equal(hf_cell_result(next)->bindings_after,
                        hf_cell_result(cell)->bindings_after);

    /* The recorded delta leads to the same bytes without running anything. */
    struct hf_bytes applied = { 0 };
    const struct hf_exec_result *result = hf_cell_result(cell);
    assert_int_equal(
        hf_bindings_apply(NULL, span(before), result->bindings_delta, &applied, &err), 0);
    assert_string_equal(applied.at, expected);
    hf_bytes_free(&applied);
    hf_cell_free(next);
    hf_cell_free(cell);
}

static void plain_data_comes_back_as_it_was(void **state)
{
    (void)state;
    check_left("b, i, f, s = true, 42, 1.5, 'text'", "{}",
               "{\"b\":true,\"f\":1.5,\"i\":42,\"s\":\"text\"}");
    check_left("whole, zero, big, small = 5.0, -0.0, 1e300, 5e-324", "{}",
               "{\"big\":1e300,\"small\":5e-324,\"whole\":5.0,\"zero\":-0.0}");
    check_left("most, least = math.maxinteger, math.mininteger", "{}",
               "{\"least\":-9223372036854775808,\"most\":9223372036854775807}");
    check_left("x = {math.huge, -math.huge, 0/0}", "{}",
               "{\"x\":[{\"$num\":\"inf\"},{\"$num\":\"-inf\"},{\"$num\":\"nan\"}]}");
    check_left("x = {'\\0', '\\xff\\xfe', 'é', '\"\\n'}", "{}",
               "{\"x\":[{\"$hex\":\"00\"},{\"$hex\":\"fffe\"},\"é\",\"\\\"\\n\"]}");
    check_left("x = {{}, list(), {list()}, null}", "{}", "{\"x\":[{},[],[[]],null]}");
    check_left("x = {[3] = 'c', [1] = 'a', z = 0, [1.5] = 'f', [true] = 1}", "{}",
               "{\"x\":{\"$map\":[[1,\"a\"],[1.5,\"f\"],[3,\"c\"],[\"z\",0],[true,1]]}}");
    check_left("x = {['$hex'] = '00'} y = {['$map'] = 1, a = 2}", "{}",
               "{\"x\":{\"$map\":[[\"$hex\",\"00\"]]},\"y\":{\"$map\":1,\"a\":2}}");
    check_left("x = {['\\xff'] = 1}", "{}", "{\"x\":{\"$map\":[[{\"$hex\":\"ff\"},1]]}}");
}

static void a_delta_has_what_changed_and_no_more(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = "a = nil b.x = 2 d = 1 c = c",
                           .bindings = "{\"a\":1,\"b\":{\"x\":1},\"c\":[1]}" };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_string_equal(hf_cell_result(cell)->bindings_delta.at,
                        "{\"set\":{\"b\":{\"x\":2},\"d\":1},\"unset\":[\"a\"]}");
    hf_cell_free(cell);
    check_left("a = nil b.x = 2 d = 1 c = c", "{\"a\":1,\"b\":{\"x\":1},\"c\":[1]}",
               "{\"b\":{\"x\":2},\"c\":[1],\"d\":1}");
    check_left("a = nil", "{\"a\":1}", "{}");
}

static void aliases_are_copied(void **state)
{
    (void)state;
    check_left("local t = {1} x = {t, t}", "{}", "{\"x\":[[1],[1]]}");
}

static void check_refused(const char *code, const char *message)
{
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = code, .bindings = "{\"kept\":1}" };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_UNKEEPABLE);
    const char *said = hf_cell_result(cell)->error.at;
    if (strncmp(said, message, strlen(message)) != 0)
        fail_msg("%s", said);
    assert_string_equal(hf_cell_bindings(cell).at, "{\"kept\":1}");
    assert_string_equal(hf_cell_result(cell)->bindings_delta.at, "{}");
    hf_cell_free(cell);
}

static void what_cannot_be_kept_is_named_by_its_path_and_nothing_is(void **state)
{
    (void)state;
    check_refused("kept = 2 t = {a = {1, {f = print}}}", "`t.a[2].f` is a function");
    check_refused("kept = 2 t = {} t.t = t", "`t.t` contains itself");
    check_refused("kept = 2 t = setmetatable({}, {})", "`t` has a metatable");
    check_refused("kept = 2 t = {[{}] = 1}",
                  "`t.?` has a table or a function as its key");
    check_refused("kept = 2 _ENV['a b'] = 1", "a global's name must be a word");
    check_refused("kept = 2 _ENV[1] = 1", "a global's name must be a word");
    check_refused("kept = 2 t = {} local at = t "
                  "for i = 1, 60 do at.a = {} at = at.a end",
                  "`t.a.a.a");
    check_refused("kept = 2 t = {} for i = 1, 20 do t[i] = ('x'):rep(100000) end",
                  "`t` makes the bindings larger than 1048576 bytes");
}

static void only_canonical_bindings_are_bindings(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"a\": 1}",
        "{\"b\":1,\"a\":1}",
        "{\"a\":1,\"a\":1}",
        "{\"a b\":1}",
        "{\"a\":1e0}",
        "{\"a\":1.50}",
        "{\"a\":{\"$hex\":\"61\"}}",
        "{\"a\":{\"$hex\":\"FF\"}}",
        "{\"a\":{\"$hex\":\"f\"}}",
        "{\"a\":{\"$num\":\"one\"}}",
        "{\"a\":{\"$map\":[[1,2]]}}",
        "{\"a\":{\"$map\":[[3,1],[2,1]]}}",
        "{\"a\":{\"$map\":[[{},1],[2,1]]}}",
        "{\"a\":{\"z\":1,\"y\":2}}",
        "{\"a\":\"\\u0041\"}",
        "[]",
        "1",
        "{",
    };
    struct hf_err err = { 0 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (hf_bindings_check(span(bad[i]), &err) != HF_EINVAL)
            fail_msg("accepted: %s", bad[i]);
    assert_int_equal(hf_bindings_check(span(""), &err), 0);
    assert_int_equal(hf_bindings_check(span("{\"a\":{\"$num\":\"inf\"}}"), &err), 0);
}

static void plain_json_is_imported(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes bindings = { 0 };
    assert_int_equal(
        hf_bindings_import(NULL,
                           span("{ \"b\": 1.0, \"a\": {\"$hex\": \"x\"}, \"c\": [] }"),
                           &bindings, &err),
        0);
    assert_string_equal(bindings.at,
                        "{\"a\":{\"$map\":[[\"$hex\",\"x\"]]},\"b\":1.0,\"c\":[]}");
    hf_bytes_free(&bindings);
    assert_int_equal(hf_bindings_import(NULL, span("{\"a b\":1}"), &bindings, &err),
                     HF_EINVAL);
    assert_int_equal(hf_bindings_import(NULL, span("[1]"), &bindings, &err), HF_EINVAL);
}

static void a_delta_of_other_bindings_is_a_conflict(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes bindings = { 0 };
    assert_int_equal(hf_bindings_apply(NULL, span("{\"a\":1}"),
                                       span("{\"unset\":[\"b\"]}"), &bindings, &err),
                     HF_ECONFLICT);
    assert_int_equal(hf_bindings_apply(NULL, span("{\"a\":1}"), span("{\"other\":[]}"),
                                       &bindings, &err),
                     HF_EINVAL);
    assert_null(bindings.at);
}

static void the_hash_of_no_bindings_is_fixed(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    char none[65];
    char empty[65];
    assert_int_equal(hf_bindings_hash(span(""), none, &err), 0);
    assert_int_equal(hf_bindings_hash(span("{}"), empty, &err), 0);
    assert_string_equal(none, empty);
    assert_string_equal(
        none, "face7c27c69dde318a4611e93f3c2f7adf3c322b9b7c4a52d906c08b73c89899");
}

/* Stored bindings, by their hash. */
struct shelf {
    const char *hash;
    struct hf_span sealed;
    int answer;
};

static int find(void *user, const char *hash, struct hf_span *ret_sealed)
{
    const struct shelf *shelf = user;
    if (shelf->answer)
        return shelf->answer;
    if (strcmp(hash, shelf->hash) != 0)
        return HF_EBLOB;
    *ret_sealed = shelf->sealed;
    return 0;
}

static int start_from(struct shelf *shelf, const char *hash, struct hf_err *err)
{
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = "1",
                                   .code = span("y = x + 1"),
                                   .bindings_hash = hash,
                                   .user = shelf,
                                   .resolve = find };
    int rc = hf_cell_new(hf_engine_lua(), &start, &cell, err);
    if (rc)
        return rc;
    assert_int_equal(hf_cell_poll(cell, &op, err), 0);
    assert_string_equal(hf_cell_bindings(cell).at, "{\"x\":1,\"y\":2}");
    hf_cell_free(cell);
    return 0;
}

static void a_cell_starts_from_bindings_that_are_found_by_hash(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_bytes sealed = { 0 };
    char hash[65];
    assert_int_equal(hf_bindings_hash(span("{\"x\":1}"), hash, &err), 0);
    assert_int_equal(
        hf_bindings_seal(NULL, hf_engine_lua(), span("{\"x\":1}"), &sealed, &err), 0);
    assert_memory_equal(sealed.at, "{\"engine\":\"lua\",\"version\":\"", 27);
    struct shelf shelf = { hash, { sealed.at, sealed.len }, 0 };
    assert_int_equal(start_from(&shelf, hash, &err), 0);
    hf_bytes_free(&sealed);
}

static void bindings_that_are_gone_or_of_another_engine_are_a_typed_error(void **state)
{
    (void)state;
    static const struct {
        const char *sealed;
        int code;
        const char *field;
    } bad[] = {
        { "{\"engine\":\"toy\",\"version\":\"1\",\"bindings\":{}}", HF_EBLOB, "engine" },
        { "{\"engine\":\"lua\",\"version\":\"0\",\"bindings\":{}}", HF_EBLOB, "version" },
        { "{\"engine\":\"lua\",\"version\":\"0\"}", HF_EINVAL, "bindings" },
        { "{\"x\":1}", HF_EINVAL, "bindings" },
        { "[]", HF_EINVAL, "bindings" },
        { "{", HF_EINVAL, "bindings" },
    };
    struct hf_err err = { 0 };
    struct hf_bytes sealed = { 0 };
    char hash[65];
    assert_int_equal(hf_bindings_hash(span("{\"x\":1}"), hash, &err), 0);
    struct shelf shelf = { .hash = hash };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        shelf.sealed = span(bad[i].sealed);
        assert_int_equal(start_from(&shelf, hash, &err), bad[i].code);
        assert_string_equal(err.field, bad[i].field);
    }
    assert_int_equal(start_from(&shelf, "another", &err), HF_EBLOB);
    assert_string_equal(err.field, "bindings_hash");
    shelf.answer = HF_EBUSY; /* a store that is busy is not one that forgot */
    assert_int_equal(start_from(&shelf, hash, &err), HF_EBUSY);
    shelf.answer = 0;
    assert_int_equal(
        hf_bindings_seal(NULL, hf_engine_lua(), span("{\"x\":2}"), &sealed, &err), 0);
    shelf.sealed = (struct hf_span){ sealed.at, sealed.len };
    assert_int_equal(start_from(&shelf, hash, &err), HF_EBLOB);
    assert_string_equal(err.field, "bindings_hash");
    hf_bytes_free(&sealed);
    assert_int_equal(hf_bindings_seal(NULL, hf_engine_lua(), span("[]"), &sealed, &err),
                     HF_EINVAL);
    struct hf_cell *cell = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = "1",
                                   .bindings_hash = hash };
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "resolve");
    start.resolve = find;
    start.bindings = span("{}");
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "bindings");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_data_comes_back_as_it_was),
        cmocka_unit_test(a_delta_has_what_changed_and_no_more),
        cmocka_unit_test(aliases_are_copied),
        cmocka_unit_test(what_cannot_be_kept_is_named_by_its_path_and_nothing_is),
        cmocka_unit_test(only_canonical_bindings_are_bindings),
        cmocka_unit_test(plain_json_is_imported),
        cmocka_unit_test(a_delta_of_other_bindings_is_a_conflict),
        cmocka_unit_test(the_hash_of_no_bindings_is_fixed),
        cmocka_unit_test(a_cell_starts_from_bindings_that_are_found_by_hash),
        cmocka_unit_test(bindings_that_are_gone_or_of_another_engine_are_a_typed_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
