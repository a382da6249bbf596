/* The subset of TOML: what is read, and what is named when it is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml.h"
#include "support/fail_alloc.h"
#include "support/unit.h"

/* A file as a text of lines: "[a.b]", "key=s:text", "key=i:1", "key=[s:x i:2 ]". */
static char shown[4096];

static void put(const char *text)
{
    size_t used = strlen(shown);
    snprintf(shown + used, sizeof(shown) - used, "%s", text);
}

static void put_value(const struct hf_toml_value *value)
{
    static const char *const marks[] = { "s:", "i:", "f:", "b:" };
    if (value->type != HF_TOML_ARRAY) {
        put(marks[value->type]);
        put(value->text);
        return;
    }
    put("[");
    for (const struct hf_toml_value *item = value->items; item; item = item->next) {
        put_value(item);
        put(" ");
    }
    put("]");
}

static void expect(const char *text, const char *lines)
{
    struct hf_arena arena;
    struct hf_err err = { 0 };
    const struct hf_toml_table *table = NULL;
    hf_arena_init(&arena, hf_alloc_system());
    if (hf_toml_read(&arena, (struct hf_span){ text, strlen(text) }, &table, &err))
        fail_msg("%s", err.message);
    shown[0] = '\0';
    for (; table; table = table->next) {
        for (int i = 0; i < table->depth; i++) {
            put(i == 0 ? "[" : ".");
            put(table->path[i]);
        }
        put(table->depth ? "]\n" : "");
        for (const struct hf_toml_pair *pair = table->pairs; pair; pair = pair->next) {
            put(pair->key);
            put("=");
            put_value(&pair->value);
            put("\n");
        }
    }
    assert_string_equal(shown, lines);
    hf_arena_fini(&arena);
}

static void refuse(const char *text, const char *says)
{
    struct hf_arena arena;
    struct hf_err err = { 0 };
    const struct hf_toml_table *table = NULL;
    hf_arena_init(&arena, hf_alloc_system());
    assert_int_equal(
        hf_toml_read(&arena, (struct hf_span){ text, strlen(text) }, &table, &err),
        HF_EINVAL);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    hf_arena_fini(&arena);
}

static void tables_and_pairs_are_read_in_order(void **state)
{
    (void)state;
    expect("", "");
    expect("# only a comment", "");
    expect("a = 1\n[t]\nb=2 # why\r\n[ t . \"x y\" ]\n'c d' = 3\n",
           "a=i:1\n[t]\nb=i:2\n[t.x y]\nc d=i:3\n");
}

static void each_type_is_read(void **state)
{
    (void)state;
    expect("a = \"x\\t\\\"\\u00e4\\U0001F600\"", "a=s:x\t\"\xc3\xa4\xf0\x9f\x98\x80\n");
    expect("a = 'no \\escape'", "a=s:no \\escape\n");
    expect("a = -9223372036854775808\nb = +1_000\nc = 0",
           "a=i:-9223372036854775808\nb=i:1000\nc=i:0\n");
    expect("a = 0.5\nb = -1_0.2_5e+1_0\nc = 3E2", "a=f:0.5\nb=f:-10.25e+10\nc=f:3E2\n");
    expect("a = true\nb = false", "a=b:true\nb=b:false\n");
    expect("a = []\nb = [1, \"x\", true,]\nc = [ # one\n 1\n,\n\n2 ]",
           "a=[]\nb=[i:1 s:x b:true ]\nc=[i:1 i:2 ]\n");
}

static void what_is_wrong_is_named_by_its_line(void **state)
{
    (void)state;
    refuse("a = 1\nb", "line 2: a key is followed by =");
    refuse("\n\n= 1", "line 3: a key is expected");
    refuse("a = 1 b = 2", "line 1: text follows");
    refuse("a = \"x", "line 1: a string has no end on its line");
    refuse("a = \"\\q\"", "after a backslash comes one of");
    refuse("a = \"\\ud800\"", "\\u and \\U name");
    refuse("a = \"\\u0000\"", "\\u and \\U name");
    refuse("a = \"\\u00g0\"", "\\u has 4");
    refuse("a = \"\x01\"", "control character");
    refuse("a = 1 # \x01", "control character");
    refuse("a = [1 2]", "separated by commas");
    refuse("a = [1,\n2", "line 2: the items of an array");
    refuse("[a\nb = 1", "line 1: the name of a table ends in ]");
    refuse("a = 9223372036854775808", "at most 64 bits");
    refuse("a = \xff", "not UTF-8");
    refuse("a = 1\r", "line 1: text follows");
}

static void a_name_is_in_a_file_once(void **state)
{
    (void)state;
    refuse("a = 1\na = 2", "line 2: this key is in its table twice");
    refuse("[a]\n[b]\n[a]", "line 3: this table is in the file twice");
    refuse("a = 1\n[a]", "line 2: this name is a key");
    refuse("[a]\nb = 1\n[a.b]", "line 3: this name is a key");
    refuse("a = 1\n[a.b]", "line 2: this name is a key");
    refuse("[a.b]\n[a]\nb = 1", "line 3: this key is a table");
}

static void what_the_subset_leaves_out_is_named(void **state)
{
    (void)state;
    refuse("a = \"\"\"x\"\"\"", "strings of several lines");
    refuse("a = '''x'''", "strings of several lines");
    refuse("a = { b = 1 }", "inline tables");
    refuse("a = [[1]]", "another array");
    refuse("[[a]]", "arrays of tables");
    refuse("[a.b.c]", "at most two parts");
    refuse("a.b = 1", "dotted keys");
    static const char *const words[] = { "1979-05-27", "07:32:00", "0x1f", "0o7", "0b1",
                                         "inf",        "nan",      "01",   "1.",  ".5",
                                         "1__0",       "_1",       "1_",   "yes", "" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "a = %s", words[i]);
        refuse(text, "line 1: ");
    }
}

static void a_file_has_so_many_entries_and_no_more(void **state)
{
    (void)state;
    struct hf_arena arena;
    struct hf_err err = { 0 };
    const struct hf_toml_table *table = NULL;
    static char text[HF_TOML_ITEMS_MAX * 2 + 64];
    for (int extra = 0; extra < 2; extra++) {
        size_t used = (size_t)snprintf(text, sizeof(text), "a = [");
        for (int i = 1; i < HF_TOML_ITEMS_MAX + extra; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "1,");
        snprintf(text + used, sizeof(text) - used, "]");
        hf_arena_init(&arena, hf_alloc_system());
        assert_int_equal(
            hf_toml_read(&arena, (struct hf_span){ text, strlen(text) }, &table, &err),
            extra ? HF_ETOOBIG : 0);
        hf_arena_fini(&arena);
    }
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    static const char text[] = "a = \"x\"\n[t.u]\nb = [1, 'y']\n'c' = 2.5\n";
    for (int64_t i = 1;; i++) {
        struct fail_alloc memory;
        struct hf_arena arena;
        struct hf_err err = { 0 };
        const struct hf_toml_table *table = NULL;
        fail_alloc_init(&memory, i);
        hf_arena_init_small(&arena, &memory.alloc, 64, 64);
        int rc = hf_toml_read(&arena, (struct hf_span){ text, sizeof(text) - 1 }, &table,
                              &err);
        hf_arena_fini(&arena);
        assert_int_equal(memory.live, 0);
        if (memory.calls < i) {
            assert_int_equal(rc, 0);
            assert_true(i > 5);
            return;
        }
        assert_int_equal(rc, HF_ENOMEM);
        assert_null(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_pairs_are_read_in_order),
        cmocka_unit_test(each_type_is_read),
        cmocka_unit_test(what_is_wrong_is_named_by_its_line),
        cmocka_unit_test(a_name_is_in_a_file_once),
        cmocka_unit_test(what_the_subset_leaves_out_is_named),
        cmocka_unit_test(a_file_has_so_many_entries_and_no_more),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
