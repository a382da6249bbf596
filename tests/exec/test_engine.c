/* The seam: a second language over the same cells, and memory that runs out in both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/engine_toy.h"
#include "exec/kit.h"
#include "support/fail_alloc.h"

static void check_toy(const char *code, const char *expected)
{
    struct hf_buf text;
    struct cellkit kit = { .code = code,
                           .engine = engine_toy(),
                           .bindings = "{\"old\":1}",
                           .limits = { .steps = 1000, .ops = 3 } };
    hf_buf_init(&text, hf_alloc_system(), 65536);
    cellkit_run(&kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_reset(&text);
    cellkit_run_cut(&kit, &text);
    assert_string_equal(hf_buf_str(&text), expected);
    hf_buf_fini(&text);
}

static void another_language_runs_over_the_same_cells(void **state)
{
    (void)state;
    check_toy("print hello\ncall echo {\"a\":1}\nset x last\nset y 2\n",
              "1 print hello\n2 call echo {\"a\":1}\ndone \n"
              "bindings {\"old\":1,\"x\":{\"a\":1},\"y\":2}\n"
              "delta {\"set\":{\"x\":{\"a\":1},\"y\":2}}\n");
    check_toy("set x 1\nfinish [1]\nprint never\n",
              "finished \nfinish [1]\nbindings {\"old\":1,\"x\":1}\n"
              "delta {\"set\":{\"x\":1}}\n");
    check_toy("set x 1\njump\n", "syntax there are call, print, set, finish and spin\n"
                                 "bindings {\"old\":1}\ndelta {}\n");
    check_toy("set x 1\nspin\n",
              "over_steps it went on for too long. Nothing that this cell assigned was "
              "kept\nbindings {\"old\":1}\ndelta {}\n");
    check_toy(
        "call a\ncall a\ncall a\ncall a\n",
        "1 call a {}\n2 call a {}\n3 call a {}\n"
        "over_ops the cell asked for more than 3 operations. Nothing that this cell "
        "assigned was kept\nbindings {\"old\":1}\ndelta {}\n");
}

static const char busy[] =
    "local r = call('echo', {a = {1, 2, 'x'}, b = ('long'):rep(30)})\n"
    "t = {r.a, [3] = 'c', z = 1.5} print(t, r.b)\n"
    "for k, v in pairs({b = 1, a = 2}) do print(k, v) end\n"
    "local b = call_batch{{'echo', {n = 1}}, {'fail'}} print(#b, b[2].error)\n"
    "table.sort(r.a, function(x, y) return tostring(x) < tostring(y) end)\n"
    "s = ('a b c'):gsub('%a', function(c) return call('echo', {c = c}).c .. '!' end)\n"
    "old = nil f = print\n"
    "print(pcall(error, 'x'), random(3), json.decode('[1,{\"q\":\"\\\\u00e4\"}]'))\n";

/* One run in which memory may fail. 0 and a transcript, or HF_ENOMEM. */
static int run_once(const struct cellkit *kit, struct hf_buf *text)
{
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .alloc = kit->alloc,
                                   .id = "7",
                                   .code = { kit->code, strlen(kit->code) },
                                   .bindings = { kit->bindings, strlen(kit->bindings) } };
    int rc = hf_cell_new(kit->engine, &start, &cell, &err);
    if (rc == 0)
        rc = hf_cell_poll(cell, &op, &err);
    while (rc == 0 && op) {
        cellkit_describe_op(op, text);
        rc = cellkit_answer(cell, op);
        if (rc == 0)
            rc = hf_cell_poll(cell, &op, &err);
    }
    if (rc == 0)
        cellkit_describe_end(cell, text);
    else
        assert_int_equal(rc, HF_ENOMEM);
    hf_cell_free(cell);
    return rc;
}

/* Lets each allocation fail, once or from then on: the run says so or is as ever, and
 * frees everything. */
static void check_memory(struct cellkit *kit, bool stays)
{
    struct hf_buf expected;
    struct hf_buf text;
    int64_t failures = 0;
    hf_buf_init(&expected, hf_alloc_system(), (size_t)1 << 20);
    hf_buf_init(&text, hf_alloc_system(), (size_t)1 << 20);
    kit->alloc = hf_alloc_system();
    assert_int_equal(run_once(kit, &expected), 0);
    for (int64_t n = 1;; n++) {
        struct fail_alloc fail;
        fail_alloc_init(&fail, n);
        fail.stays = stays;
        kit->alloc = &fail.alloc;
        hf_buf_reset(&text);
        int rc = run_once(kit, &text);
        if (rc == 0)
            assert_string_equal(hf_buf_str(&text), hf_buf_str(&expected));
        failures += rc != 0;
        assert_int_equal(fail.live, 0);
        if (fail.calls < n)
            break; /* there is no n-th allocation */
    }
    assert_true(failures > 0);
    hf_buf_fini(&expected);
    hf_buf_fini(&text);
}

static void running_out_of_memory_is_told_and_nothing_leaks(void **state)
{
    (void)state;
    struct cellkit lua = { .code = busy,
                           .engine = hf_engine_lua(),
                           .bindings = "{\"old\":[1,{\"$map\":[[2,1]]}]}" };
    check_memory(&lua, false);
    check_memory(&lua, true);
    struct cellkit toy = { .code = "print x\ncall echo {\"a\":1}\nset x last\n",
                           .engine = engine_toy(),
                           .bindings = "{\"old\":1}" };
    check_memory(&toy, true);
}

static void running_out_of_memory_in_bindings_is_told(void **state)
{
    (void)state;
    const struct hf_span json = { "{\"b\":[1,2,{\"a\":1.5}],\"a\":\"x\"}", 29 };
    for (int64_t n = 1; n < 100; n++) {
        struct fail_alloc fail;
        struct hf_bytes bytes = { 0 };
        struct hf_err err = { 0 };
        fail_alloc_init(&fail, n);
        fail.stays = true;
        int rc = hf_bindings_import(&fail.alloc, json, &bytes, &err);
        assert_true(rc == 0 || rc == HF_ENOMEM);
        hf_bytes_free(&bytes);
        assert_int_equal(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_language_runs_over_the_same_cells),
        cmocka_unit_test(running_out_of_memory_is_told_and_nothing_leaks),
        cmocka_unit_test(running_out_of_memory_in_bindings_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
