/* Names that the host passes to a cell: read, never written, never bindings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exec/kit.h"
#include "support/fail_alloc.h"

static const char given[] = "{\"g\":{\"list\":[3,1,[2]],\"name\":\"n\",\"none\":null},"
                            "\"n\":7,\"row\":[\"echo\",{\"a\":1}]}";
/* The kit's host answers to `echo` with the reference, and fails `broken`. */
static const char refs[] = "{\"echo\":{\"b\":[1,{\"c\":2}],\"a\":1.0},\"broken\":17,"
                           "\"none\":\"x\"}";

static struct hf_span span(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

/* Runs the code whole and cut after every operation; both must say `expected`. */
static void check(const char *code, const char *expected)
{
    struct cellkit kit = { .code = code, .given = given, .given_refs = refs };
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    cellkit_run(&kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_reset(&text);
    cellkit_run_cut(&kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_fini(&text);
}

#define DONE "done \nbindings {}\ndelta {}\n"

static void a_given_table_reads_like_any_other(void **state)
{
    (void)state;
    check("print(n, g.name, #g.list, g.list[3][1], g.none == null, g.other, type(g))",
          "1 print 7\tn\t3\t2\ttrue\tnil\ttable\n" DONE);
    check("for k, v in pairs(g) do print(k, v) end",
          "1 print list\t[3,1,[2]]\n2 print name\tn\n3 print none\tnull\n" DONE);
    check("for i, v in ipairs(g.list) do print(i, v) end",
          "1 print 1\t3\n2 print 2\t1\n3 print 3\t[2]\n" DONE);
    check("print(next(g), next(g, 'list'), rawget(g, 'name'), rawlen(g.list), "
          "rawequal(g, g), g.list == g.list)",
          "1 print list\tname\tn\t3\ttrue\ttrue\n" DONE);
    check("print(json.encode(g)) print(table.unpack(g.list, 1, 2)) "
          "print(table.concat(g.list[3]), select('#', table.unpack(row)))",
          "1 print {\"list\":[3,1,[2]],\"name\":\"n\",\"none\":null}\n2 print 3\t1\n"
          "3 print 2\t2\n" DONE);
    check("print(table.move(g.list, 1, 2, 1, {})) "
          "print((('n'):gsub('%w', {n = g.name}))) print(tostring(g))",
          "1 print [3,1]\n2 print n\n3 print table\n" DONE);
    check("print(setmetatable({}, {__index = g}).name, getmetatable(g))",
          "1 print n\tnil\n" DONE);
    check("print(call('echo', g).name, call_batch{row}[1].value.a)",
          "1 call echo {\"list\":[3,1,[2]],\"name\":\"n\",\"none\":null}\n"
          "2 call_batch [{\"args\":{\"a\":1},\"tool\":\"echo\"}]\n"
          "3 print n\t1\n" DONE);
}

/* Each of these must raise an error with the code read_only, and change nothing. */
static void nothing_writes_to_what_is_given(void **state)
{
    (void)state;
    static const char *const attempts[] = {
        "n = 1",
        "n = nil",
        "g = {}",
        "function g() end",
        "_ENV.g = 1",
        "_ENV['g'] = nil",
        "echo = 1",
        "broken = 1",
        "rawset(_ENV, 'g', 1)",
        "rawset(_ENV, 'echo', 1)",
        "setmetatable({}, {__newindex = _ENV}).g = 1",
        "g.name = 'm'",
        "g.name = nil",
        "g.new = 1",
        "g[1] = 1",
        "g.list[1] = 9",
        "g.list[3][1] = 9",
        "rawset(g, 'name', 'm')",
        "rawset(g.list, 1, 9)",
        "table.insert(g.list, 4)",
        "table.insert(g.list, 1, 4)",
        "table.remove(g.list)",
        "table.remove(g.list[3], 1)",
        "table.sort(g.list)",
        "table.sort(g.list, function() return false end)",
        "table.move({9}, 1, 1, 1, g.list)",
        "table.move(g.list, 1, 2, 2)",
        "setmetatable(g, {})",
        "setmetatable(g, nil)",
        "setmetatable(g.list, {__index = {}})",
        "list(g.list)",
        "local f, t = pairs(g) t.name = 'm'",
        "local f, t = ipairs(g.list) t[1] = 9",
        "for _, v in pairs(g) do if v ~= 'n' and v ~= null then v[1] = 9 end end",
        "local _, v = next(g) v[1] = 9",
        "rawget(g, 'list')[1] = 9",
        "({table.unpack(g.list)})[3][1] = 9",
        "table.move(g.list, 1, 3, 1, {})[3][1] = 9",
        "mine = g mine.name = 'm'",
        "setmetatable({}, {__index = g}).list[1] = 9",
        "setmetatable({}, {__newindex = g}).name = 'm'",
        "echo.a = 2",
        "echo.b[2].c = 3",
    };
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        char code[512];
        snprintf(code, sizeof(code),
                 "local ok, e = pcall(function() %s end) mine = nil "
                 "print(ok, e.code, g, n) print(echo)",
                 attempts[i]);
        struct cellkit kit = { .code = code, .given = given, .given_refs = refs };
        struct hf_buf text;
        hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
        cellkit_run(&kit, &text);
        bool fine = strstr(hf_buf_str(&text),
                           "print false\tread_only\t{\"list\":[3,1,[2]],\"name\":\"n\","
                           "\"none\":null}\t7\n") &&
                    strstr(hf_buf_str(&text), "print {\"a\":1,\"b\":[1,{\"c\":2}]}\n") &&
                    strstr(hf_buf_str(&text), DONE);
        if (!fine)
            fail_msg("%s: %s", attempts[i], hf_buf_str(&text));
        hf_buf_fini(&text);
    }
}

static void an_attempt_to_write_tells_the_model_what_to_do(void **state)
{
    (void)state;
    check(
        "x = 1\ng = 2\n",
        "error line 2: `g` is given by the host and can only be read; use another name. "
        "Nothing that this cell assigned was kept\nbindings {}\ndelta {}\n");
    check("\n\ng.list[1] = 2\n",
          "error line 3: this table is given by the host and can only be read; copy what "
          "you need into a table of your own. Nothing that this cell assigned was "
          "kept\nbindings {}\ndelta {}\n");
}

static void a_reference_is_one_operation_when_it_is_first_read(void **state)
{
    (void)state;
    check("print(1) local a = echo.a print(echo.b[2].c, a, _ENV.echo == echo)",
          "1 print 1\n2 read echo {\"a\":1,\"b\":[1,{\"c\":2}]}\n3 print "
          "2\t1\ttrue\n" DONE);
    check("local t = setmetatable({}, {__index = function(_, k) return echo.a end}) "
          "print(t.x, none == null, none)",
          "1 read echo {\"a\":1,\"b\":[1,{\"c\":2}]}\n2 read none \"x\"\n"
          "3 print 1\ttrue\tnull\n" DONE);
    check("print(n)", "1 print 7\n" DONE); /* what is not read is not asked for */
    check("table.sort({2, 1}, function(a, b) return a < b and echo end) print(1)",
          "1 read echo {\"a\":1,\"b\":[1,{\"c\":2}]}\n2 print 1\n" DONE);
}

static void a_reference_that_cannot_be_read_is_an_error_of_the_cell(void **state)
{
    (void)state;
    check("x = 1\nprint(broken)\n",
          "1 read broken 17\nerror line 2: `broken` cannot be read (nope): it said no. "
          "Nothing "
          "that this cell assigned was kept\nbindings {}\ndelta {}\n");
    check("for i = 1, 2 do local ok, e = pcall(function() return broken end) "
          "print(ok, e.name, e.code, e) end",
          "1 read broken 17\n2 print false\tbroken\tnope\t`broken` cannot be read "
          "(nope): it "
          "said "
          "no\n3 read broken 17\n4 print false\tbroken\tnope\t`broken` cannot be read "
          "(nope): it "
          "said no\n" DONE);
}

static void reads_are_no_calls_of_the_result(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = "print(echo.a) call('list')", .given_refs = refs };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_int_equal(op->kind, HF_OP_READ);
    assert_string_equal(op->id, "7:1");
    assert_string_equal(op->name, "echo");
    assert_int_equal(op->call_count, 1);
    assert_int_equal(hf_cell_value(cell, 1, span("1"), &err), HF_ERESPONSE);
    while (op) {
        assert_int_equal(cellkit_answer(cell, op), 0);
        assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    }
    const struct hf_exec_result *result = hf_cell_result(cell);
    assert_int_equal(result->call_count, 1);
    assert_string_equal(result->calls[0].call_id, "7:3");
    hf_cell_free(cell);
}

static void a_read_that_was_recorded_as_another_is_diverged(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct hf_tool_result result = { .call_id = "7:1", .value = span("1") };
    struct hf_op_record record = { .ordinal = 1,
                                   .kind = HF_OP_READ,
                                   .name = "echo",
                                   .args = span("\"an older one\""),
                                   .results = &result,
                                   .result_count = 1 };
    struct cellkit kit = { .code = "print(echo)", .given_refs = refs };
    struct hf_cell *cell = cellkit_new(&kit, &record, 1);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_null(op);
    assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_DIVERGED);
    assert_string_equal(
        (const char *)hf_cell_result(cell)->message.at,
        "operation 1 was recorded as read echo \"an older one\", and is now "
        "read echo {\"a\":1,\"b\":[1,{\"c\":2}]}");
    hf_cell_free(cell);
}

static void a_variable_of_a_given_name_is_hidden_and_stays_as_it_is(void **state)
{
    (void)state;
    static const char bindings[] = "{\"a\":1,\"echo\":{\"mine\":[1]},\"g\":2.5,\"z\":[]}";
    struct cellkit kit = { .code = "print(g.name, a) a = nil b = 2",
                           .bindings = bindings,
                           .given = given,
                           .given_refs = refs };
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    cellkit_run(&kit, &text);
    assert_string_equal(hf_buf_str(&text),
                        "1 print n\t1\ndone \n"
                        "bindings {\"b\":2,\"echo\":{\"mine\":[1]},\"g\":2.5,\"z\":[]}\n"
                        "delta {\"set\":{\"b\":2},\"unset\":[\"a\"]}\n");
    hf_buf_reset(&text);
    kit.code = "x = g y = echo z = nil"; /* copies are the cell's own */
    cellkit_run(&kit, &text);
    assert_non_null(
        strstr(hf_buf_str(&text),
               "delta {\"set\":{\"x\":{\"list\":[3,1,[2]],\"name\":\"n\",\"none\":"
               "null},\"y\":{\"a\":1,\"b\":[1,{\"c\":2}]}},\"unset\":[\"z\"]}"));
    hf_buf_fini(&text);
}

/* The language may have got the name since the variable was kept. */
static void a_variable_with_a_name_of_the_language_is_not_lost(void **state)
{
    (void)state;
    struct cellkit kit = { .code = "print(type(list)) list = 5 read = 1",
                           .bindings = "{\"list\":[1,2]}" };
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    cellkit_run(&kit, &text);
    assert_string_equal(hf_buf_str(&text), "1 print function\ndone \n"
                                           "bindings {\"list\":[1,2],\"read\":1}\n"
                                           "delta {\"set\":{\"read\":1}}\n");
    hf_buf_fini(&text);
}

static void a_limit_that_is_too_small_to_begin_is_told(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = "7",
                                   .code = span("x = 1"),
                                   .limits = { .memory_bytes = 1000 } };
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "memory_bytes");
    start.limits.memory_bytes = 10000;
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "memory_bytes");
    start.bindings = span("{\"a\":[1,2,3,4,5,6,7]}");
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), HF_ETOOBIG);
    assert_string_equal(err.field, "bindings");
}

static void refuse(const char *values, const char *references, int code,
                   const char *field)
{
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = "7",
                                   .code = span("x = 1"),
                                   .given = span(values),
                                   .given_refs = span(references) };
    assert_int_equal(hf_cell_new(hf_engine_lua(), &start, &cell, &err), code);
    assert_string_equal(err.field, field);
    assert_null(cell);
}

static void what_cannot_be_given_is_refused(void **state)
{
    (void)state;
    refuse("[]", "", HF_EINVAL, "given");
    refuse("{\"a-b\":1}", "", HF_EINVAL, "given");
    refuse("{\"print\":1}", "", HF_EINVAL, "given");
    refuse("", "{\"call\":1}", HF_EINVAL, "given");
    refuse("", "{\"string\":1}", HF_EINVAL, "given");
    refuse("{\"a\":1}", "{\"a\":1}", HF_EINVAL, "given_refs");
    refuse("", "{\"a\":", HF_EINVAL, "given_refs");
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    struct cellkit kit = { .code = "print(g.list[1], echo.a)",
                           .bindings = "{\"g\":1}",
                           .given = given,
                           .given_refs = refs };
    size_t failures = 0;
    for (int64_t at = 1;; at++) {
        struct fail_alloc memory;
        struct hf_err err = { 0 };
        struct hf_cell *cell = NULL;
        const struct hf_op *op = NULL;
        fail_alloc_init(&memory, at);
        struct hf_cell_start start = { .size = sizeof(start),
                                       .alloc = &memory.alloc,
                                       .id = "7",
                                       .code = span(kit.code),
                                       .bindings = span(kit.bindings),
                                       .given = span(given),
                                       .given_refs = span(refs) };
        int rc = hf_cell_new(hf_engine_lua(), &start, &cell, &err);
        while (rc == 0 && (rc = hf_cell_poll(cell, &op, &err)) == 0 && op)
            rc = cellkit_answer(cell, op);
        bool failed = rc != 0;
        if (failed)
            assert_int_equal(rc, HF_ENOMEM);
        else
            assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_DONE);
        hf_cell_free(cell);
        assert_int_equal(memory.live, 0);
        failures += failed;
        if (memory.calls < at)
            break;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_given_table_reads_like_any_other),
        cmocka_unit_test(nothing_writes_to_what_is_given),
        cmocka_unit_test(an_attempt_to_write_tells_the_model_what_to_do),
        cmocka_unit_test(a_reference_is_one_operation_when_it_is_first_read),
        cmocka_unit_test(a_reference_that_cannot_be_read_is_an_error_of_the_cell),
        cmocka_unit_test(reads_are_no_calls_of_the_result),
        cmocka_unit_test(a_read_that_was_recorded_as_another_is_diverged),
        cmocka_unit_test(a_variable_of_a_given_name_is_hidden_and_stays_as_it_is),
        cmocka_unit_test(a_variable_with_a_name_of_the_language_is_not_lost),
        cmocka_unit_test(a_limit_that_is_too_small_to_begin_is_told),
        cmocka_unit_test(what_cannot_be_given_is_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("exec/given", tests, NULL, NULL);
}
