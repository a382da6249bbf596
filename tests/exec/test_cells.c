/* Cells over the Lua engine: operations, answers, journals, ends. */
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

/* Runs the code whole and cut after every operation; both must say `expected`. */
static void check(const struct cellkit *kit, const char *expected)
{
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    cellkit_run(kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_reset(&text);
    cellkit_run_cut(kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_fini(&text);
}

static void check_code(const char *code, const char *expected)
{
    check(&(struct cellkit){ .code = code }, expected);
}

static void every_host_function_is_an_operation_with_canonical_arguments(void **state)
{
    (void)state;
    check_code("local r = call('echo', {b = {1, 2}, a = 'x'})\n"
               "print(r.a, r.b[2])\n"
               "print(now())\n"
               "sleep(1.5)\n"
               "print(wait_signal('go', 2).signal)\n"
               "wait_signal('stop')\n"
               "print(start_process('job', {n = 1}).id)\n"
               "print(random(6), random(6))\n",
               "1 call echo {\"a\":\"x\",\"b\":[1,2]}\n"
               "2 print x\t2\n"
               "3 now null\n"
               "4 print 1700000000.0\n"
               "5 sleep 1500\n"
               "6 wait_signal go 2000\n"
               "7 print go\n"
               "8 wait_signal stop null\n"
               "9 start_process job {\"n\":1}\n"
               "10 print p1\n"
               "11 random null\n"
               "12 print 1\t1\n"
               "done \nbindings {}\ndelta {}\n");
}

static void a_batch_answers_in_the_order_of_the_calls(void **state)
{
    (void)state;
    check_code("local r = call_batch{{'echo', {n = 1}}, {'fail'}, {tool = 'none'}}\n"
               "print(r[1].value.n, r[2].ok, r[2].error.code, r[3].ok, r[3].value)\n"
               "print(#call_batch{})\n",
               "1 call_batch [{\"args\":{\"n\":1},\"tool\":\"echo\"},"
               "{\"args\":{},\"tool\":\"fail\"},{\"args\":{},\"tool\":\"none\"}]\n"
               "2 print 1\tfalse\tnope\ttrue\tnil\n"
               "3 print 0\n"
               "done \nbindings {}\ndelta {}\n");
}

static void operations_work_inside_of_callbacks_and_protected_calls(void **state)
{
    (void)state;
    check_code(
        "local t = {3, 1, 2}\n"
        "table.sort(t, function(a, b) return call('echo', {x = a < b}).x end)\n"
        "print(table.concat(t, ' '))\n"
        "print((('a b'):gsub('%a', function(c) return call('echo', {c = c}).c end)))\n"
        "print(pcall(call, 'fail'))\n"
        "print(xpcall(function() call('fail') end, function(e) return now() end))\n",
        "1 call echo {\"x\":true}\n"
        "2 call echo {\"x\":false}\n"
        "3 call echo {\"x\":true}\n"
        "4 print 1 2 3\n"
        "5 call echo {\"c\":\"a\"}\n"
        "6 call echo {\"c\":\"b\"}\n"
        "7 print a b\n"
        "8 call fail {}\n"
        "9 print false\tthe call of 'fail' failed (nope): it said no\n"
        "10 call fail {}\n"
        "11 now null\n"
        "12 print false\t1700000000.0\n"
        "done \nbindings {}\ndelta {}\n");
}

static void finish_keeps_the_bindings_and_ends_the_cell(void **state)
{
    (void)state;
    check_code("x = 1\npcall(finish, {a = x})\nprint('never')\n",
               "finished \nfinish {\"a\":1}\nbindings {\"x\":1}\n"
               "delta {\"set\":{\"x\":1}}\n");
    check_code("finish()\n", "finished \nfinish null\nbindings {}\ndelta {}\n");
}

static void a_cell_that_raises_keeps_nothing(void **state)
{
    (void)state;
    check(&(struct cellkit){ .code = "y = 2\nx = nil\nlocal t = nil\nt.a = 1\n",
                             .bindings = "{\"x\":1}" },
          "error line 4: attempt to index a nil value (local 't'). "
          "Nothing that this cell assigned was kept\n"
          "bindings {\"x\":1}\ndelta {}\n");
    check_code("call('fail')\n",
               "1 call fail {}\n"
               "error line 1: the call of 'fail' failed (nope): it said no. "
               "Nothing that this cell assigned was kept\n"
               "bindings {}\ndelta {}\n");
}

static void fail_is_told_as_a_call_with_control(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = "x = 1\nfail({why = 'no'})\n" };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_null(op);
    const struct hf_exec_result *result = hf_cell_result(cell);
    assert_int_equal(hf_cell_end(cell, NULL), HF_CELL_FAILED);
    assert_int_equal(result->call_count, 1);
    assert_string_equal(result->calls[0].tool, "fail");
    assert_string_equal(result->calls[0].call_id, "7:fail");
    assert_int_equal(result->calls[0].control, HF_CONTROL_FAIL);
    assert_string_equal(result->calls[0].control_value.at, "{\"why\":\"no\"}");
    assert_string_equal(hf_cell_bindings(cell).at, "{}");
    hf_cell_free(cell);
}

static void an_unknown_tool_is_told_before_anything_runs(void **state)
{
    (void)state;
    static const char *const tools[] = { "echo", "list" };
    struct cellkit kit = { .tools = tools, .tool_count = 2 };
    kit.code = "call('echo')\ncall_batch{{'list'}, {'lost', {}}}\n";
    check(&kit, "unknown_tool line 2: there is no tool 'lost'; nothing was run. "
                "The tools are: echo, list\nbindings {}\ndelta {}\n");
    kit.code = "-- call('lost')\nlocal s = [[call('lost')]] call 'echo'\n";
    check(&kit, "1 call echo {}\ndone \nbindings {}\ndelta {}\n");
    kit.code = "local name = 'lo' .. 'st'\nprint(pcall(call, name))\n";
    check(&kit, "1 print false\tthere is no tool 'lost'; the tools are: echo, list\n"
                "done \nbindings {}\ndelta {}\n");
    kit.code = "local function call(x) return x end\nprint(call('lost'))\n";
    check(&kit, "1 print lost\ndone \nbindings {}\ndelta {}\n");
}

static void ids_are_stable_and_batches_are_answered_one_by_one(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    const struct hf_op *again = NULL;
    struct cellkit kit = { .code = "call_batch{{'a'}, {'b'}}" };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_string_equal(op->id, "7:1");
    assert_string_equal(op->calls[0].id, "7:1:1");
    assert_string_equal(op->calls[1].id, "7:1:2");
    struct hf_tool_result second = { .call_id = "7:1:2", .value = span("2") };
    struct hf_tool_result first = { .call_id = "7:1:1", .value = span("1") };
    struct hf_tool_result other = { .call_id = "7:9", .value = span("1") };
    struct hf_tool_result bad = { .call_id = "7:1:1", .value = span("{") };
    assert_int_equal(hf_cell_results(cell, 2, &second, 1, &err), HF_ESTALE);
    assert_int_equal(hf_cell_value(cell, 1, span("1"), &err), HF_ERESPONSE);
    assert_int_equal(hf_cell_results(cell, 1, NULL, 1, &err), HF_EINVAL);
    assert_int_equal(hf_cell_results(cell, 1, &second, 1, &err), 0);
    assert_int_equal(hf_cell_results(cell, 1, &second, 1, &err), HF_EANSWERED);
    assert_int_equal(hf_cell_results(cell, 1, &other, 1, &err), HF_ENOCALL);
    assert_int_equal(hf_cell_results(cell, 1, &bad, 1, &err), HF_EINVAL);
    assert_int_equal(hf_cell_poll(cell, &again, &err), 0);
    assert_ptr_equal(again, op);
    assert_false(op->calls[0].answered);
    assert_true(op->calls[1].answered);
    assert_int_equal(hf_cell_results(cell, 1, &first, 1, &err), 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_null(op);
    assert_int_equal(hf_cell_results(cell, 1, &first, 1, &err), HF_ESTALE);
    assert_int_equal(hf_cell_result(cell)->call_count, 2);
    assert_string_equal(hf_cell_result(cell)->calls[0].call_id, "7:1:1");
    assert_string_equal(hf_cell_result(cell)->calls[1].tool, "b");
    hf_cell_free(cell);
}

/* Runs over the journal; how it ended and what it said. */
static void check_replay(const char *code, const struct hf_op_record *journal,
                         size_t count, const char *expected)
{
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct hf_buf text;
    struct cellkit kit = { .code = code };
    struct hf_cell *cell = cellkit_new(&kit, journal, count);
    hf_buf_init(&text, hf_alloc_system(), 4096);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    if (op)
        cellkit_describe_op(op, &text);
    else
        cellkit_describe_end(cell, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_fini(&text);
    hf_cell_free(cell);
}

static void a_divergent_replay_is_named_and_never_served(void **state)
{
    (void)state;
    struct hf_tool_result results[2] = { { .call_id = "7:1", .value = span("1") },
                                         { .call_id = "7:2", .value = span("2") } };
    struct hf_op_record journal[2] = {
        { 1, HF_OP_CALL, "a", span("{\"n\":1}"), &results[0], 1, false, { "", 0 } },
        { 2, HF_OP_CALL, "b", span("{}"), &results[1], 1, false, { "", 0 } },
    };
    check_replay("call('a', {n = 1}) call('b') call('c')", journal, 2, "3 call c {}\n");
    check_replay(
        "call('a', {n = 2}) call('b')", journal, 2,
        "diverged operation 1 was recorded as call a {\"n\":1}, and is now call a "
        "{\"n\":2}\nbindings {}\ndelta {}\n");
    check_replay("call('a', {n = 1}) now()", journal, 2,
                 "diverged operation 2 was recorded as call b {}, and is now now null\n"
                 "bindings {}\ndelta {}\n");
    check_replay("call('a', {n = 1})", journal, 2,
                 "diverged operation 2 was recorded as call b {}, and the cell now ends "
                 "before it\nbindings {}\ndelta {}\n");
}

static void a_partly_answered_batch_asks_only_for_the_rest(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct hf_tool_result second = { .call_id = "7:1:2", .value = span("2") };
    struct hf_op_record journal = {
        1,       HF_OP_CALL_BATCH,
        NULL,    span("[{\"args\":{},\"tool\":\"a\"},{\"args\":{},\"tool\":\"b\"}]"),
        &second, 1,
        false,   { "", 0 }
    };
    struct cellkit kit = { .code = "print(call_batch{{'a'}, {'b'}})" };
    struct hf_cell *cell = cellkit_new(&kit, &journal, 1);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_false(op->calls[0].answered);
    assert_true(op->calls[1].answered);
    assert_string_equal(op->calls[1].result->value.at, "2");
    hf_cell_free(cell);
}

static void limits_on_operations_and_output_end_the_cell(void **state)
{
    (void)state;
    check(&(struct cellkit){ .code = "x = 1 for i = 1, 9 do call('a') end",
                             .limits = { .ops = 2 } },
          "1 call a {}\n2 call a {}\n"
          "over_ops the cell asked for more than 2 operations. Nothing that this cell "
          "assigned was kept\nbindings {}\ndelta {}\n");
    check(&(struct cellkit){ .code = "print('12345') print('6')",
                             .limits = { .output_bytes = 5 } },
          "1 print 12345\n"
          "over_output the cell printed more than 5 bytes of output. Nothing that this "
          "cell assigned was kept\nbindings {}\ndelta {}\n");
}

/* A clock that goes on by a second each time a caller looks. */
static hf_ms ticking(void *user)
{
    hf_ms *now = user;
    return *now += 1000;
}

static void time_is_a_limit_that_nothing_catches(void **state)
{
    (void)state;
    hf_ms now = 0;
    struct hf_clock clock = { .user = &now, .mono_ms = ticking };
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 4096);
    struct cellkit kit = { .code = "pcall(function() while true do end end) print(1)",
                           .limits = { .active_ms = 5000 },
                           .clock = &clock };
    assert_int_equal(cellkit_run(&kit, &text), HF_CELL_OVER_TIME);
    assert_string_equal(
        hf_buf_str(&text),
        "over_time line 1: the cell was running for more than 5000 ms; make "
        "its loops shorter, or leave the work to a tool. Nothing that this "
        "cell assigned was kept\nbindings {}\ndelta {}\n");
    hf_buf_fini(&text);
}

static void notes_are_few(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    const struct hf_op *op = NULL;
    struct cellkit kit = { .code = "for i = 10, 99 do _ENV['f' .. i] = print end" };
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    assert_int_equal(hf_cell_poll(cell, &op, &err), 0);
    assert_non_null(hf_cell_note(cell, 19));
    assert_null(hf_cell_note(cell, 20));
    assert_string_equal(hf_cell_note(cell, 19),
                        "`f29` is a function and was not kept: only data lasts until the "
                        "next cell; there are more like it");
    hf_cell_free(cell);
}

static void a_text_that_needs_too_much_to_be_parsed_is_over_memory(void **state)
{
    (void)state;
    struct hf_buf code;
    struct hf_buf text;
    hf_buf_init(&code, hf_alloc_system(), 262144);
    hf_buf_init(&text, hf_alloc_system(), 4096);
    hf_buf_text(&code, "local x = {");
    for (int i = 0; i < 30000; i++)
        hf_buf_text(&code, "i,");
    hf_buf_text(&code, "}");
    struct cellkit kit = { .code = hf_buf_str(&code),
                           .limits = { .memory_bytes = 100000 } };
    assert_int_equal(cellkit_run(&kit, &text), HF_CELL_OVER_MEMORY);
    hf_buf_fini(&code);
    hf_buf_fini(&text);
}

static void nul_bytes_in_the_text_do_no_harm(void **state)
{
    (void)state;
    check(&(struct cellkit){ .code = "x = 1\0print('alive')", .code_len = 21 },
          "syntax line 1: unexpected symbol\nbindings {}\ndelta {}\n");
}

static void bad_starts_name_the_field(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    struct hf_cell_start start = { .size = sizeof(start), .id = "7" };
    struct hf_cell_start bad = start;
    bad.size = 0;
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "size");
    bad = start;
    bad.id = "";
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "id");
    bad = start;
    bad.bindings = span("[1]");
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "bindings");
    bad.bindings = span("{\"a\":{\"$hex\":\"zz\"}}");
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "bindings");
    bad = start;
    bad.given = span("[]");
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "given");
    bad = start;
    bad.limits.steps = -1;
    assert_int_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), HF_EINVAL);
    assert_string_equal(err.field, "steps");
    bad = start;
    bad.limits.memory_bytes = 1000; /* not even an empty state */
    assert_int_not_equal(hf_cell_new(hf_engine_lua(), &bad, &cell, &err), 0);
    assert_null(cell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_host_function_is_an_operation_with_canonical_arguments),
        cmocka_unit_test(a_batch_answers_in_the_order_of_the_calls),
        cmocka_unit_test(operations_work_inside_of_callbacks_and_protected_calls),
        cmocka_unit_test(finish_keeps_the_bindings_and_ends_the_cell),
        cmocka_unit_test(a_cell_that_raises_keeps_nothing),
        cmocka_unit_test(fail_is_told_as_a_call_with_control),
        cmocka_unit_test(an_unknown_tool_is_told_before_anything_runs),
        cmocka_unit_test(ids_are_stable_and_batches_are_answered_one_by_one),
        cmocka_unit_test(a_divergent_replay_is_named_and_never_served),
        cmocka_unit_test(a_partly_answered_batch_asks_only_for_the_rest),
        cmocka_unit_test(limits_on_operations_and_output_end_the_cell),
        cmocka_unit_test(time_is_a_limit_that_nothing_catches),
        cmocka_unit_test(a_text_that_needs_too_much_to_be_parsed_is_over_memory),
        cmocka_unit_test(notes_are_few),
        cmocka_unit_test(nul_bytes_in_the_text_do_no_harm),
        cmocka_unit_test(bad_starts_name_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
