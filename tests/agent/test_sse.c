/* The framer of server-sent events. */
#include <string.h>

#include "agent/wire/sse.h"
#include "support/unit.h"

struct got {
    char text[4096];
    size_t used;
};

static int on_event(void *user, struct hf_span data)
{
    struct got *got = user;
    got->text[got->used++] = '[';
    memcpy(got->text + got->used, data.at, data.len);
    got->used += data.len;
    got->text[got->used++] = ']';
    return 0;
}

static int frame(const char *bytes, size_t len, size_t cut, size_t max, struct got *got)
{
    struct hf_sse sse;
    memset(got, 0, sizeof(*got));
    hf_sse_init(&sse, hf_alloc_system(), max);
    sse.user = got;
    sse.event = on_event;
    int rc = hf_sse_feed(&sse, bytes, cut);
    if (rc == 0)
        rc = hf_sse_feed(&sse, bytes + cut, len - cut);
    if (rc == 0)
        rc = hf_sse_end(&sse);
    hf_sse_fini(&sse);
    return rc;
}

static void expect(const char *bytes, const char *events)
{
    struct got got;
    size_t len = strlen(bytes);
    for (size_t cut = 0; cut <= len; cut++) {
        assert_int_equal(frame(bytes, len, cut, 64, &got), 0);
        assert_string_equal(got.text, events);
    }
}

static void an_event_is_its_data(void **state)
{
    (void)state;
    expect("", "");
    expect("data: one\n\ndata: two\n\n", "[one][two]");
    expect("data:one\n\n", "[one]");
    expect("data:  one\n\n", "[ one]");
    expect("data\n\n", "[]");
    expect("data:\n\n", "[]");
}

static void all_three_line_ends_count(void **state)
{
    (void)state;
    expect("data: one\r\n\r\ndata: two\r\n\r\n", "[one][two]");
    expect("data: one\r\rdata: two\r\r", "[one][two]");
    expect("data: one\r\n\ndata: two\n\r\n", "[one][two]");
}

static void data_lines_are_joined(void **state)
{
    (void)state;
    expect("data: a\ndata: b\n\n", "[a\nb]");
    expect("data\ndata\n\n", "[\n]");
    expect("data: a\ndata:\ndata: c\n\n", "[a\n\nc]");
}

static void other_fields_are_passed_over(void **state)
{
    (void)state;
    expect(": ping\n\nevent: x\nid: 7\nretry: 3\ndata: a\n\nevent: y\n\n", "[a]");
    expect("datax: no\ndat: no\n\ndata: a\n\n", "[a]");
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    expect("\xef\xbb\xbf"
           "data: a\n\n",
           "[a]");
}

static void data_at_the_end_is_an_event(void **state)
{
    (void)state;
    expect("data: a\n\ndata: b", "[a][b]");
    expect("data: a\ndata: b\n", "[a\nb]");
}

static void an_event_at_the_limit_fits_and_one_more_byte_does_not(void **state)
{
    (void)state;
    struct got got;
    for (size_t cut = 0; cut <= 12; cut++) {
        assert_int_equal(frame("data: 12345678\n\n", 16, cut, 8, &got), 0);
        assert_string_equal(got.text, "[12345678]");
        assert_int_equal(frame("data: 123456789\n\n", 17, cut, 8, &got), HF_ETOOBIG);
        assert_int_equal(frame("data: 1234\ndata: 5678\n\n", 23, cut, 8, &got),
                         HF_ETOOBIG);
        assert_int_equal(frame(": 1234567890123\n\n", 17, cut, 8, &got), HF_ETOOBIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_its_data),
        cmocka_unit_test(all_three_line_ends_count),
        cmocka_unit_test(data_lines_are_joined),
        cmocka_unit_test(other_fields_are_passed_over),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(data_at_the_end_is_an_event),
        cmocka_unit_test(an_event_at_the_limit_fits_and_one_more_byte_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
