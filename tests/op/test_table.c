/* The table of operations as data: what C can see of it. tests/cli/call.py checks what
 * `holdfast call --list` prints. */
#include "support/unit.h"

#include <string.h>

#include "op/op.h"

typedef void check_fn(const struct op *op);

static void each(check_fn *check)
{
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            check(op);
}

static void check_inputs(const struct op *op)
{
    const struct hf_input *const tables[] = { op->in, op->more };
    size_t count = 0;
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *in = tables[t]; in && in->name; in++, count++) {
            /* Only what the command itself reads may have no place. */
            bool placed = in->width || in->flags & HF_IN_LOCAL;
            if (!in->help || (op->run && !placed) ||
                (op->run && in->offset + in->width > op->in_size))
                fail_msg("%s: %s has no help or no place", op->name, in->name);
            if (in->kind == HF_IN_PATH && op->run && !(in->flags & HF_IN_LOCAL))
                fail_msg("%s: %s is a path, and not local", op->name, in->name);
            if ((in->kind == HF_IN_WORD || in->kind == HF_IN_WORDS) && !in->words)
                fail_msg("%s: %s has no words", op->name, in->name);
        }
    if (count > 64)
        fail_msg("%s has %zu inputs: op_call.given has 64 bits", op->name, count);
}

static void every_input_has_help_and_a_place_in_its_request(void **state)
{
    (void)state;
    each(check_inputs);
}

static void check_reach(const struct op *op)
{
    bool listed = op_is_listed(op);
    if (listed != (op->route != NULL) || (listed && !op->run))
        fail_msg("%s: what is listed runs and has a route; other rows have none",
                 op->name);
    if (op->role == OP_LOCAL && op->run)
        fail_msg("%s is local, and has a function that every transport could call",
                 op->name);
    if (listed && !op->shape && !op->facts)
        fail_msg("%s answers nothing that is described", op->name);
}

static void nothing_local_can_be_reached_by_another_transport(void **state)
{
    (void)state;
    each(check_reach);
}

static size_t named(const char *name)
{
    size_t count = 0;
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            count += strcmp(op->name, name) == 0;
    return count;
}

static void check_name(const struct op *op)
{
    assert_int_equal(named(op->name), 1);
    assert_ptr_equal(op_find(op->name), op);
    assert_true(strlen(op->name) < OP_PATH);
    assert_true(op->flags & OP_HIDDEN || op->examples);
}

static void names_are_unique_and_found(void **state)
{
    (void)state;
    each(check_name);
    assert_null(op_find("work"));
    assert_null(op_find(""));
}

static void a_path_is_the_name_as_the_shell_writes_it(void **state)
{
    char path[OP_PATH];
    (void)state;
    assert_string_equal(op_path(op_find("work.hand_back"), path), "work hand-back");
    assert_string_equal(op_path(op_find("version"), path), "version");
    assert_string_equal(op_path(op_find("__man"), path), "__man");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_has_help_and_a_place_in_its_request),
        cmocka_unit_test(nothing_local_can_be_reached_by_another_transport),
        cmocka_unit_test(names_are_unique_and_found),
        cmocka_unit_test(a_path_is_the_name_as_the_shell_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
