/* JSON: strict reading, canonical form, the writer, and memory that runs out. */
#include "support/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <holdfast/bounds.h>

#include "base/json.h"
#include "base/json_read.h"
#include "support/fail_alloc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROOM ((size_t)1 << 20)

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* Both ways of reading must agree. */
static int read_both(struct hf_span text, struct hf_err *err)
{
    int checked = hf_json_check(text, ROOM, "payload", err);
    json_t *value = NULL;
    int parsed = hf_json_parse(text, ROOM, "payload", &value, NULL);
    assert_int_equal(checked, parsed);
    assert_int_equal(parsed == 0, value != NULL);
    json_decref(value);
    return checked;
}

static void accepts(const char *text)
{
    struct hf_err err = { 0 };
    assert_int_equal(read_both(span_of(text), &err), 0);
    assert_int_equal(err.code, 0);
}

static void refuses(struct hf_span text, const char *message)
{
    struct hf_err err = { 0 };
    assert_int_equal(read_both(text, &err), HF_EINVAL);
    assert_int_equal(err.code, HF_EINVAL);
    assert_string_equal(err.field, "payload");
    assert_string_equal(err.message, message);
}

static const char *const good[] = {
    "{}",
    "[]",
    " \t\r\n{ \"a\" : [ 1 , -2.5e+3 , true , false , null ] , \"b\" : { } } \n",
    "null",
    "\"text\"",
    "-0",
    "0.5",
    "1E5",
    "1e-300",
    "123456789012345678901.5",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"",
    "\"\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"",
    "[[[]],[{}],{\"a\":{\"a\":{\"a\":[]}}}]",
    "{\"a\":{\"x\":1},\"b\":{\"x\":1},\"c\":[{\"x\":1},{\"x\":1}]}",
    "{\"\":1,\" \":2,\"\\u0061\":3}",
    "9223372036854775807",
    "-9223372036854775808",
};

static void one_value_of_any_kind_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++)
        accepts(good[i]);
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"a\":}",    "{\"a\" 1}", "{a:1}",       "[1,]",
        "{\"a\":1,}",  "[,1]",      "'a'",         "01",
        "1.",          ".5",        "+1",          "1e",
        "NaN",         "Infinity",  "True",        "nul",
        "[1 2]",       "\"\\x\"",   "\"\\u12g4\"", "\"\\ud800\"",
        "\"\\udc00\"", "\"\n\"",    "\"\t\"",      "// c\n1",
        "[1]]",        "{\"a\":1]", "[1}",         "\xef\xbb\xbf[]",
        "-",           "{1:2}",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(read_both(span_of(bad[i]), NULL), HF_EINVAL);
}

static void errors_say_what_and_where_but_never_quote(void **state)
{
    (void)state;
    refuses(span_of("{\"token\":s3cret}"), "payload is not valid JSON (byte 9)");
    refuses(span_of(""), "payload is JSON that ends too early (byte 0)");
    refuses(span_of("[1"), "payload is JSON that ends too early (byte 2)");
    refuses((struct hf_span){ NULL, 0 }, "payload is JSON that ends too early (byte 0)");
}

static void duplicate_keys_are_refused(void **state)
{
    (void)state;
    refuses(span_of("{\"a\":1,\"a\":2}"), "payload has a duplicate key (byte 8)");
    refuses(span_of("{\"a\":1,\"\\u0061\":2}"), "payload has a duplicate key (byte 8)");
    refuses(span_of("[{\"k\":{\"a\":1,\"b\":{},\"a\":2}}]"),
            "payload has a duplicate key (byte 21)");
}

static void duplicate_keys_are_found_in_large_objects(void **state)
{
    (void)state;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    for (int twice = 0; twice < 2; twice++) {
        hf_buf_reset(&buf);
        hf_json_begin(&json, &buf);
        hf_json_object(&json);
        for (char i = 0; i < 80; i++)
            for (char j = 0; j < 3; j++)
                hf_json_put_i64(&json,
                                (char[]){ 'k', (char)(' ' + i), (char)('a' + j), 0 }, 1);
        if (twice)
            hf_json_put_i64(&json, "kZb", 1);
        hf_json_end(&json);
        assert_int_equal(read_both((struct hf_span){ buf.at, buf.len }, NULL),
                         twice ? HF_EINVAL : 0);
    }
    hf_buf_fini(&buf);
}

static void nothing_may_follow_the_value(void **state)
{
    (void)state;
    refuses(span_of("{} {}"), "payload has further text after its JSON value (byte 3)");
    refuses(span_of("1x"), "payload has further text after its JSON value (byte 1)");
    assert_int_equal(read_both((struct hf_span){ "[]\0", 3 }, NULL), HF_EINVAL);
    assert_int_equal(read_both((struct hf_span){ "1\0x", 3 }, NULL), HF_EINVAL);
    accepts("[]  \n");
}

static void bad_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\"\x80\"",             /* lone continuation byte */
        "\"\xc0\xaf\"",         /* overlong */
        "\"\xe0\x80\xaf\"",     /* overlong */
        "\"\xed\xa0\x80\"",     /* surrogate */
        "\"\xf4\x90\x80\x80\"", /* past the last character */
        "\"\xe2\x82\"",         /* truncated */
        "{\"\xff\":1}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_err err = { 0 };
        assert_int_equal(read_both(span_of(bad[i]), &err), HF_EINVAL);
        assert_memory_equal(err.message, "payload is not valid UTF-8 (byte ", 33);
    }
}

static void nul_in_a_string_is_refused(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(read_both(span_of("\"a\\u0000b\""), &err), HF_EINVAL);
    assert_memory_equal(err.message, "payload has a NUL in a string", 29);
    assert_int_equal(read_both(span_of("{\"\\u0000\":1}"), &err), HF_EINVAL);
    assert_int_equal(read_both((struct hf_span){ "\"a\0b\"", 5 }, &err), HF_EINVAL);
    assert_int_equal(read_both((struct hf_span){ "{\"\0\":1}", 7 }, &err), HF_EINVAL);
}

static void numbers_that_would_be_rounded_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "9223372036854775808", "-9223372036854775809",
                                       "123456789012345678901234567890", "1e999",
                                       "-1e309" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_err err = { 0 };
        assert_int_equal(read_both(span_of(bad[i]), &err), HF_EINVAL);
        assert_memory_equal(err.message, "payload has a number that is out of range", 41);
    }
}

static void size_at_the_limit_passes_and_one_byte_more_does_not(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    json_t *value = NULL;
    assert_int_equal(hf_json_check(span_of("[123]"), 5, "result", &err), 0);
    assert_int_equal(hf_json_check(span_of("[1234]"), 5, "result", &err), HF_ETOOBIG);
    assert_string_equal(err.field, "result");
    assert_string_equal(err.message, "result must be at most 5 bytes");
    assert_int_equal(hf_json_parse(span_of("[1234]"), 5, NULL, &value, &err), HF_ETOOBIG);
    assert_string_equal(err.message, "JSON must be at most 5 bytes");
    assert_null(value);
}

/* `open` `levels` times, `inner`, then `close` as often. */
static void nest(struct hf_buf *buf, const char *open, const char *inner,
                 const char *close, int levels)
{
    hf_buf_reset(buf);
    for (int i = 0; i < levels; i++)
        hf_buf_text(buf, open);
    hf_buf_text(buf, inner);
    for (int i = 0; i < levels; i++)
        hf_buf_text(buf, close);
    assert_int_equal(hf_buf_state(buf), 0);
}

static void depth_at_the_limit_passes_and_one_level_more_does_not(void **state)
{
    (void)state;
    assert_int_equal(HF_MAX_JSON_DEPTH, 64);
    struct hf_err err = { 0 };
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    nest(&buf, "[", "1", "]", 64);
    accepts(hf_buf_str(&buf));
    nest(&buf, "{\"a\":", "{}", "}", 63);
    accepts(hf_buf_str(&buf));
    nest(&buf, "[", "", "]", 65);
    assert_int_equal(read_both(span_of(hf_buf_str(&buf)), &err), HF_ETOOBIG);
    assert_string_equal(err.message, "payload is nested deeper than 64 levels (byte 64)");
    nest(&buf, "{\"a\":", "{}", "}", 64);
    assert_int_equal(read_both(span_of(hf_buf_str(&buf)), NULL), HF_ETOOBIG);
    hf_buf_fini(&buf);
}

static void depth_counts_no_brackets_in_strings(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    nest(&buf, "[", "\"\\\"[[{{\\\\\"", "]", 64);
    accepts(hf_buf_str(&buf));
    nest(&buf, "", "[[],[],[],[],[[]]]", "", 1);
    accepts(hf_buf_str(&buf));
    hf_buf_fini(&buf);
}

static void a_million_brackets_are_refused_without_recursion(void **state)
{
    (void)state;
    char *text = malloc(ROOM);
    assert_non_null(text);
    memset(text, '[', ROOM);
    assert_int_equal(read_both((struct hf_span){ text, ROOM }, NULL), HF_ETOOBIG);
    free(text);
}

/* jansson's own reader is a second opinion. */
static void agrees_with_jansson(struct hf_span text)
{
    json_t *theirs = json_loadb(text.at, text.len,
                                JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    json_t *ours = NULL;
    int parsed = hf_json_parse(text, ROOM, NULL, &ours, NULL);
    assert_int_equal(parsed, theirs ? 0 : HF_EINVAL);
    assert_int_equal(hf_json_check(text, ROOM, NULL, NULL), parsed);
    if (theirs)
        assert_true(json_equal(ours, theirs));
    json_decref(theirs);
    json_decref(ours);
}

static void reading_agrees_with_jansson_on_texts_with_a_byte_changed(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[]:,0123-+.eEudD \n\x01\x80\xc3\xff"
                                "atn";
    for (size_t i = 0; i < COUNT(good); i++) {
        size_t len = strlen(good[i]);
        char text[128];
        assert_true(len < sizeof(text));
        for (size_t at = 0; at < len; at++) {
            for (size_t b = 0; b < strlen(bytes);
                 b++) { /* jansson takes NUL for the end */
                memcpy(text, good[i], len);
                text[at] = bytes[b];
                agrees_with_jansson((struct hf_span){ text, len });
                agrees_with_jansson((struct hf_span){ text, at + 1 });
            }
        }
    }
}

static void reading_agrees_with_jansson_on_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0.1",
        "-12.5e3",
        "1E+2",
        "123456789.123456789e-7",
        "1e308",
        "1.8e308",
        "-1.8e308",
        "4.9e-324",
        "2e-324",
        "1e-9999",
        "1e9999",
        "179769313486231570000e288",
        "1.0e0000001",
        "1e-0",
        "0e999999999999999999999",
        "0.0000000000000000000000000000000000000000000000000000000001e60",
        "999999999999999999999999999999999999999999999999999999999999.9e200",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        agrees_with_jansson(span_of(texts[i]));
}

/* A fraction that only its exponent brings back, longer than any buffer on a stack. */
static void long_numbers_are_read_exactly(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_buf_text(&buf, "0.");
    for (int i = 0; i < 99999; i++)
        hf_buf_char(&buf, '0');
    hf_buf_text(&buf, "25e100000");
    json_t *value = NULL;
    assert_int_equal(hf_json_parse(span_of(hf_buf_str(&buf)), ROOM, NULL, &value, NULL),
                     0);
    assert_true(json_real_value(value) == 2.5);
    json_decref(value);
    hf_buf_fini(&buf);
}

static void escapes_are_read_as_the_bytes_they_mean(void **state)
{
    (void)state;
    json_t *value = NULL;
    assert_int_equal(
        hf_json_parse(span_of("{\"k\\u00e9\\n\":\"\\u0041\\u07ff\\u0800\\uFFFF"
                              "\\uD834\\uDD1E\\/\\b\\f\\r\\t\\\"\\\\z\"}"),
                      ROOM, NULL, &value, NULL),
        0);
    assert_string_equal(
        json_string_value(json_object_get(value, "k\xc3\xa9\n")),
        "A\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x9d\x84\x9e/\b\f\r\t\"\\z");
    json_decref(value);
}

static void canonical_is(const char *text, const char *expected)
{
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    assert_int_equal(hf_json_canonical_text(&buf, span_of(text)), 0);
    assert_string_equal(hf_buf_str(&buf), expected);
    hf_buf_fini(&buf);
}

static void canonical_form_has_sorted_keys_and_no_space(void **state)
{
    (void)state;
    canonical_is(
        " { \"b\" : [ 1 , { } , [ ] ] ,\n\"a\" : { \"y\" : null , \"x\" : true } } ",
        "{\"a\":{\"x\":true,\"y\":null},\"b\":[1,{},[]]}");
    canonical_is(
        "{\"\xc3\xa9\":1,\"aa\":2,\"B\":3,\"a\":4,\"\":5,\"\xf0\x9f\x98\x80\":6}",
        "{\"\":5,\"B\":3,\"a\":4,\"aa\":2,\"\xc3\xa9\":1,\"\xf0\x9f\x98\x80\":6}");
    canonical_is("false", "false");
}

static void canonical_form_escapes_as_little_as_it_may(void **state)
{
    (void)state;
    canonical_is("\"\\u0061\\/\\u00e9\\ud83d\\ude00\\u007f\"",
                 "\"a/\xc3\xa9\xf0\x9f\x98\x80\x7f\"");
    canonical_is("\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u000b\"",
                 "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u000b\"");
}

static const struct {
    const char *text;
    const char *expected;
} numbers[] = {
    { "0", "0" },
    { "-0", "0" },
    { "-0.0", "0" },
    { "0e10", "0" },
    { "1.0", "1" },
    { "1e0", "1" },
    { "10E-1", "1" },
    { "-100.0", "-100" },
    { "9007199254740993", "9007199254740993" },
    { "9223372036854775807", "9223372036854775807" },
    { "-9223372036854775808.0", "-9223372036854775808" },
    { "1152921504606846976.0", "1152921504606846976" },
    { "1e18", "1000000000000000000" },
    { "1e19", "1e19" },
    { "9223372036854775808.0", "9.223372036854776e18" },
    { "-1e21", "-1e21" },
    { "1.5E300", "1.5e300" },
    { "1.7976931348623157e308", "1.7976931348623157e308" },
    { "0.1", "0.1" },
    { "0.10000000000000000555", "0.1" },
    { "0.30000000000000004", "0.30000000000000004" },
    { "123.4560", "123.456" },
    { "-4.35", "-4.35" },
    { "3.141592653589793", "3.141592653589793" },
    { "100000000000000.5", "100000000000000.5" },
    { "0.000001", "0.000001" },
    { "0.00000123", "0.00000123" },
    { "0.0000001", "1e-7" },
    { "-1.25e-9", "-1.25e-9" },
    { "5.6843418860808015e-14", "5.684341886080802e-14" }, /* 2^-44: see shortest() */
    { "2.2250738585072014e-308", "2.2250738585072014e-308" },
    { "4.9406564584124654e-324", "5e-324" },
    { "1e-400", "0" },
};

static void canonical_numbers_are_shortest(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++)
        canonical_is(numbers[i].text, numbers[i].expected);
}

static void canonical_form_is_its_own_canonical_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++)
        canonical_is(numbers[i].expected, numbers[i].expected);
    canonical_is("{\"\":5,\"B\":[1.5,\"\\u0001\"],\"a\":{}}",
                 "{\"\":5,\"B\":[1.5,\"\\u0001\"],\"a\":{}}");
}

static void canonical_text_refuses_what_is_not_json(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 8);
    assert_int_equal(hf_json_canonical_text(&buf, span_of("{")), HF_EINVAL);
    assert_int_equal(hf_json_canonical_text(&buf, span_of("{\"a\":1,\"a\":1}")),
                     HF_EINVAL);
    assert_string_equal(hf_buf_str(&buf), "");
    assert_int_equal(hf_buf_state(&buf), 0);
    assert_int_equal(hf_json_canonical_text(&buf, span_of("[1,2,3,4]")), HF_ETOOBIG);
    hf_buf_fini(&buf);
}

static void canonical_form_of_a_value_too_deep_is_refused(void **state)
{
    (void)state;
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    json_t *value = json_array();
    for (int i = 1; i < 64; i++)
        value = json_pack("[o]", value);
    assert_int_equal(hf_json_canonical(&buf, value), 0);
    assert_int_equal(buf.len, 128);
    value = json_pack("{s:o}", "k", value);
    hf_buf_reset(&buf);
    assert_int_equal(hf_json_canonical(&buf, value), HF_ETOOBIG);
    json_decref(value);
    hf_buf_fini(&buf);
}

static void writer_puts_commas_and_quotes(void **state)
{
    (void)state;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_put_str(&json, "id", "a\"b");
    hf_json_put_i64(&json, "n", -5);
    hf_json_put_bool(&json, "ok", true);
    hf_json_put_raw(&json, "raw", "{\"x\":1}");
    hf_json_put_raw(&json, "none", "");
    hf_json_key(&json, "list");
    hf_json_array(&json);
    hf_json_i64(&json, 1);
    hf_json_null(&json);
    hf_json_object(&json);
    hf_json_end(&json);
    hf_json_array(&json);
    hf_json_end(&json);
    hf_json_strn(&json, "cut here", 3);
    hf_json_bool(&json, false);
    hf_json_end(&json);
    hf_json_put_str(&json, "last", NULL);
    hf_json_end(&json);
    assert_string_equal(hf_buf_str(&buf),
                        "{\"id\":\"a\\\"b\",\"n\":-5,\"ok\":true,\"raw\":{\"x\":1},"
                        "\"none\":null,\"list\":[1,null,{},[],\"cut\",false],"
                        "\"last\":null}");
    accepts(hf_buf_str(&buf));
    hf_buf_fini(&buf);
}

static void writer_leaves_out_what_is_optional(void **state)
{
    (void)state;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_opt_str(&json, "a", NULL);
    hf_json_opt_i64(&json, "b", 0);
    hf_json_opt_str(&json, "c", "");
    hf_json_opt_i64(&json, "d", 4);
    hf_json_end(&json);
    assert_string_equal(hf_buf_str(&buf), "{\"c\":\"\",\"d\":4}");
    hf_buf_fini(&buf);
}

static void written_string_is(const char *text, size_t len, const char *expected)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_json_begin(&json, &buf);
    hf_json_strn(&json, text, len);
    assert_string_equal(hf_buf_str(&buf), expected);
    hf_buf_fini(&buf);
}

static void writer_output_is_valid_whatever_the_bytes(void **state)
{
    (void)state;
    written_string_is("", 0, "\"\"");
    written_string_is("a\0b", 3, "\"a\\u0000b\"");
    written_string_is("\x1b[0m\n", 5, "\"\\u001b[0m\\n\"");
    written_string_is("\xc3\xa9\xf0\x9f\x98\x80\x7f", 7,
                      "\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"");
    written_string_is("a\xff\xc0\xaf", 4, "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    written_string_is("\xe2\x82\xac", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void writer_reaches_64_levels(void **state)
{
    (void)state;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_json_begin(&json, &buf);
    for (int i = 0; i < 32; i++) {
        hf_json_object(&json);
        hf_json_key(&json, "a");
        hf_json_array(&json);
    }
    for (int i = 0; i < 32; i++) {
        hf_json_end(&json);
        hf_json_put_i64(&json, "b", i);
        hf_json_end(&json);
    }
    accepts(hf_buf_str(&buf));
    hf_buf_fini(&buf);
}

static void writer_keeps_the_error_of_its_buffer(void **state)
{
    (void)state;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), 10);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_put_str(&json, "key", "too long for it");
    hf_json_put_i64(&json, "k", 1);
    hf_json_end(&json);
    assert_int_equal(hf_buf_state(&buf), HF_ETOOBIG);
    assert_string_equal(hf_buf_str(&buf), "");
    hf_buf_fini(&buf);
}

/* Each runs on a fresh writer, in a process that ends. */
static struct hf_json *fresh(bool object)
{
    static struct hf_buf buf;
    static struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), ROOM);
    hf_json_begin(&json, &buf);
    if (object)
        hf_json_object(&json);
    return &json;
}

static void value_without_key(void)
{
    hf_json_i64(fresh(true), 1);
}

static void key_outside_an_object(void)
{
    hf_json_key(fresh(false), "k");
}

static void key_after_key(void)
{
    struct hf_json *json = fresh(true);
    hf_json_key(json, "k");
    hf_json_key(json, "l");
}

static void end_after_key(void)
{
    struct hf_json *json = fresh(true);
    hf_json_key(json, "k");
    hf_json_end(json);
}

static void end_without_begin(void)
{
    hf_json_end(fresh(false));
}

static void two_values(void)
{
    struct hf_json *json = fresh(true);
    hf_json_end(json);
    hf_json_i64(json, 1);
}

static void level_65(void)
{
    struct hf_json *json = fresh(false);
    for (int i = 0; i < 65; i++)
        hf_json_array(json);
}

static void writer_misuse_aborts(void **state)
{
    (void)state;
    assert_true(unit_aborts(value_without_key));
    assert_true(unit_aborts(key_outside_an_object));
    assert_true(unit_aborts(key_after_key));
    assert_true(unit_aborts(end_after_key));
    assert_true(unit_aborts(end_without_begin));
    assert_true(unit_aborts(two_values));
    assert_true(unit_aborts(level_65));
}

/* jansson's hooks have no place for a pointer of ours. */
static int64_t jansson_calls;
static int64_t jansson_fail_at;
static int64_t jansson_live;

static void *jansson_malloc(size_t bytes)
{
    if (++jansson_calls == jansson_fail_at)
        return NULL;
    jansson_live++;
    return malloc(bytes);
}

static void jansson_free(void *at)
{
    if (at)
        jansson_live--;
    free(at);
}

static void fail_jansson(int64_t at)
{
    jansson_calls = 0;
    jansson_fail_at = at;
    jansson_live = 0;
}

static int hook_jansson(void **state)
{
    (void)state;
    json_set_alloc_funcs(jansson_malloc, jansson_free);
    return 0;
}

static int unhook_jansson(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free);
    return 0;
}

static const char everything[] =
    "{\"a\":[1,2.5,0.30000000000000004,5e-324,\"x\",true],\"b\\u0062\":{\"c\":null,"
    "\"long\":\"a string with a \\n that outgrows every first buffer, whatever its "
    "size\"}}";

/* One of the two sources of memory fails at its n-th call; counts the calls of both. */
struct shortage {
    int64_t scratch_at;
    int64_t jansson_at;
    int64_t scratch_calls;
    int64_t jansson_calls;
};

static int read_in(struct shortage *shortage)
{
    struct fail_alloc fail;
    struct hf_err err = { 0 };
    json_t *value = NULL;
    fail_alloc_init(&fail, shortage->scratch_at);
    fail_jansson(shortage->jansson_at);
    int rc = hf_json_read(span_of(everything), &fail.alloc, "p", &value, &err);
    assert_int_equal(rc == 0, value != NULL);
    if (rc)
        assert_string_equal(err.message, "out of memory reading p");
    json_decref(value);
    assert_int_equal(fail.live, 0);
    assert_int_equal(jansson_live, 0);
    shortage->scratch_calls = fail.calls;
    shortage->jansson_calls = jansson_calls;
    return rc;
}

static int canonical_in(struct shortage *shortage)
{
    struct fail_alloc fail;
    struct hf_buf buf;
    fail_alloc_init(&fail, shortage->scratch_at);
    fail_jansson(shortage->jansson_at);
    hf_buf_init(&buf, &fail.alloc, ROOM);
    int rc = hf_json_canonical_text(&buf, span_of(everything));
    if (rc == 0)
        assert_memory_equal(hf_buf_str(&buf),
                            "{\"a\":[1,2.5,0.30000000000000004,5e-324,\"x\",true],", 48);
    hf_buf_fini(&buf);
    assert_int_equal(fail.live, 0);
    assert_int_equal(jansson_live, 0);
    shortage->scratch_calls = fail.calls;
    shortage->jansson_calls = jansson_calls;
    return rc;
}

static void each_shortage_is_told(int (*act)(struct shortage *))
{
    struct shortage none = { 0 };
    assert_int_equal(act(&none), 0);
    assert_true(none.scratch_calls > 0);
    assert_true(none.jansson_calls > 10);
    for (int64_t i = 1; i <= none.scratch_calls; i++)
        assert_int_equal(act(&(struct shortage){ .scratch_at = i }), HF_ENOMEM);
    for (int64_t i = 1; i <= none.jansson_calls; i++)
        assert_int_equal(act(&(struct shortage){ .jansson_at = i }), HF_ENOMEM);
}

static void parse_reports_every_failed_allocation(void **state)
{
    (void)state;
    each_shortage_is_told(read_in);
}

static void canonical_form_reports_every_failed_allocation(void **state)
{
    (void)state;
    each_shortage_is_told(canonical_in);
}

static void check_of_an_everyday_text_needs_no_memory(void **state)
{
    (void)state;
    static const char *const everyday[] = {
        "{}",
        "null",
        "{\"prompt\":\"\\\"\xc3\xa9t\xc3\xa9\\\"\\n\\ud83d\\ude00\",\"n\":3,\"t\":0.7}",
        "{\"items\":[{\"id\":1,\"ok\":true},{\"id\":2,\"ok\":false}],\"next\":null}",
        " [ 1 , 2.5e-3 , 1e-300, 9223372036854775807, \"x\" ] ",
    };
    for (size_t i = 0; i < COUNT(everyday); i++) {
        fail_jansson(1);
        assert_int_equal(hf_json_check(span_of(everyday[i]), ROOM, "p", NULL), 0);
        assert_int_equal(jansson_calls, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_of_any_kind_is_accepted),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(errors_say_what_and_where_but_never_quote),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(duplicate_keys_are_found_in_large_objects),
        cmocka_unit_test(nothing_may_follow_the_value),
        cmocka_unit_test(bad_utf8_is_refused),
        cmocka_unit_test(nul_in_a_string_is_refused),
        cmocka_unit_test(numbers_that_would_be_rounded_are_refused),
        cmocka_unit_test(size_at_the_limit_passes_and_one_byte_more_does_not),
        cmocka_unit_test(depth_at_the_limit_passes_and_one_level_more_does_not),
        cmocka_unit_test(depth_counts_no_brackets_in_strings),
        cmocka_unit_test(a_million_brackets_are_refused_without_recursion),
        cmocka_unit_test(reading_agrees_with_jansson_on_texts_with_a_byte_changed),
        cmocka_unit_test(reading_agrees_with_jansson_on_numbers),
        cmocka_unit_test(long_numbers_are_read_exactly),
        cmocka_unit_test(escapes_are_read_as_the_bytes_they_mean),
        cmocka_unit_test(canonical_form_has_sorted_keys_and_no_space),
        cmocka_unit_test(canonical_form_escapes_as_little_as_it_may),
        cmocka_unit_test(canonical_numbers_are_shortest),
        cmocka_unit_test(canonical_form_is_its_own_canonical_form),
        cmocka_unit_test(canonical_text_refuses_what_is_not_json),
        cmocka_unit_test(canonical_form_of_a_value_too_deep_is_refused),
        cmocka_unit_test(writer_puts_commas_and_quotes),
        cmocka_unit_test(writer_leaves_out_what_is_optional),
        cmocka_unit_test(writer_output_is_valid_whatever_the_bytes),
        cmocka_unit_test(writer_reaches_64_levels),
        cmocka_unit_test(writer_keeps_the_error_of_its_buffer),
        cmocka_unit_test(writer_misuse_aborts),
        cmocka_unit_test_setup_teardown(parse_reports_every_failed_allocation,
                                        hook_jansson, unhook_jansson),
        cmocka_unit_test_setup_teardown(check_of_an_everyday_text_needs_no_memory,
                                        hook_jansson, unhook_jansson),
        cmocka_unit_test_setup_teardown(canonical_form_reports_every_failed_allocation,
                                        hook_jansson, unhook_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
