/* One batch through the SQLite driver: arguments, results, refusals. */
#include "lite_kit.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

static void parameters_are_bound_by_their_number(void **state)
{
    struct kit *kit = *state;
    assert_int_equal(kit_put_one(kit->sql, 7, "ann", 3), 0);
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    struct hf_call *call = kit_call(&b, KIT_GET, 1, (struct hf_val[]){ kit_i(7) },
                                    HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(call->out_count, 1);
    assert_int_equal(call->out_width, 2);
    assert_int_equal(call->out[0].type, HF_VAL_TEXT);
    assert_string_equal(call->out[0].at, "ann");
    assert_int_equal(call->out[0].len, 3);
    assert_int_equal(call->out[1].i, 3);
    kit->sql->methods->forget(kit->sql, &b.batch);
    assert_null(call->out);
    kit->sql->methods->forget(kit->sql, &b.batch); /* again: nothing left */
}

static void many_argument_sets_are_one_call(void **state)
{
    struct kit *kit = *state;
    struct hf_val args[100][3];
    for (int i = 0; i < 100; i++) {
        args[i][0] = kit_i(i);
        args[i][1] = kit_t(i % 2 ? "odd" : "even");
        args[i][2] = kit_i(i);
    }
    struct kit_batch b;
    kit_begin(&b);
    struct hf_call *put = kit_call(&b, KIT_PUT, 3, args[0], 100);
    put->args = args[0];
    put->rows = 100;
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(put->changed, 100);

    kit_begin(&b);
    struct hf_call *of = kit_call(&b, KIT_OF, 1, (struct hf_val[]){ kit_t("odd") }, 50);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(of->out_count, 50);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(of->out[2 * i].i, 2 * (int)i + 1);
    kit->sql->methods->forget(kit->sql, &b.batch);
}

static void bytes_and_empty_values_survive(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    struct hf_val body = { .type = HF_VAL_BYTES, .at = "a\0b", .len = 3 };
    struct hf_val none = { .type = HF_VAL_BYTES, .at = NULL, .len = 0 };
    kit_call(&b, KIT_BLOB, 2, (struct hf_val[]){ kit_i(1), body }, 1);
    kit_call(&b, KIT_BLOB, 2, (struct hf_val[]){ kit_i(2), none }, 1);
    kit_put(&b, 1, "", 0);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT hex(body) = '610062' FROM bytes"), 1);
    assert_int_equal(
        kit_sql_int(kit->path, "SELECT length(body) FROM bytes WHERE id = 2"), 0);
    assert_int_equal(kit_sql_int(kit->path, "SELECT owner = '' FROM item"), 1);
}

static void unmet_expectation_writes_nothing(void **state)
{
    struct kit *kit = *state;
    struct hf_err err = { 0 };
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, 1, "ann", 1);
    kit_add(&b, 99, 1); /* no such row: 0 changed, 1 expected */
    assert_int_equal(kit_run(kit->sql, &b, &err), HF_EGUARD);
    assert_int_equal(b.batch.failed_call, 1);
    assert_non_null(strstr(err.message, "add"));
    assert_int_equal(kit_rows(kit->sql), 0);
}

static void hf_expect_fails_the_batch(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, 1, "ann", 1);
    kit_call(&b, KIT_EXPECT, 2, (struct hf_val[]){ kit_i(2), kit_i(3) }, HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EGUARD);
    assert_int_equal(kit_rows(kit->sql), 0);
    kit_begin(&b);
    kit_put(&b, 1, "ann", 1);
    kit_call(&b, KIT_EXPECT, 2, (struct hf_val[]){ kit_i(3), kit_i(3) }, HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    kit->sql->methods->forget(kit->sql, &b.batch);
    assert_int_equal(kit_rows(kit->sql), 1);
}

static void a_refused_row_is_a_conflict_without_its_values(void **state)
{
    struct kit *kit = *state;
    struct hf_err err = { 0 };
    assert_int_equal(kit_put_one(kit->sql, 1, "secret-owner", 1), 0);
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, 2, "bob", 1);
    kit_put(&b, 1, "secret-owner", 1);
    assert_int_equal(kit_run(kit->sql, &b, &err), HF_ECONFLICT);
    assert_int_equal(b.batch.failed_call, 1);
    assert_string_equal(err.field, "item.id");
    assert_null(strstr(err.message, "secret"));
    assert_int_equal(kit_rows(kit->sql), 1);
}

static void a_constraint_that_is_no_key_is_our_own_fault(void **state)
{
    struct kit *kit = *state;
    struct hf_err err = { 0 };
    struct kit_batch b;
    kit_begin(&b);
    kit_put(&b, 3, "secret-owner", 1000000); /* a CHECK refuses it */
    assert_int_equal(kit_run(kit->sql, &b, &err), HF_EINTERNAL);
    assert_non_null(strstr(err.message, "CHECK constraint failed"));
    assert_null(strstr(err.message, "secret"));
    assert_int_equal(kit_rows(kit->sql), 0);
}

static void a_guard_answers_with_its_text(void **state)
{
    struct kit *kit = *state;
    struct hf_err err = { 0 };
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    struct kit_batch b;
    kit_begin(&b);
    kit_add(&b, 1, -5);
    assert_int_equal(kit_run(kit->sql, &b, &err), HF_EINTERNAL);
    assert_string_equal(err.message, "a guard refused it: n must not be negative");
}

static void clocks_are_fixed_within_a_batch(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    struct hf_call *first = kit_call(&b, KIT_CLOCKS, 0, NULL, 1);
    struct hf_call *second = kit_call(&b, KIT_CLOCKS, 0, NULL, 1);
    kit_put(&b, 1, "ann", 1);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(first->out[i].i, second->out[i].i);
    assert_int_equal(first->out[0].i, b.batch.now);
    assert_int_equal(first->out[1].i, b.batch.lease_now);
    assert_int_equal(first->out[2].i, 1);
    assert_int_equal(b.batch.incarnation, 1);
    kit->sql->methods->forget(kit->sql, &b.batch);
}

static void wrong_calls_are_internal_errors(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    kit_call(&b, KIT_GET, 2, (struct hf_val[]){ kit_i(1), kit_i(2) }, HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EINTERNAL);
    kit_begin(&b);
    kit_call(&b, 9999, 0, NULL, HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EINTERNAL);
    kit_begin(&b);
    kit_puts(&b, "ann", (struct hf_val[]){ kit_i(1), kit_i(1) }, 1)->once = 0;
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EINTERNAL);
    kit_begin(&b);
    kit_call(&b, KIT_GET, 1, (struct hf_val[]){ kit_i(1) }, HF_ANY_COUNT)->once = 1;
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EINTERNAL);
    kit_begin(&b);
    kit_call(&b, KIT_REAL, 0, NULL, HF_ANY_COUNT);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EINTERNAL);
    kit->sql->methods->forget(kit->sql, &b.batch);
}

static void what_is_alike_for_all_sets_is_given_once(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    struct hf_call *puts = kit_puts(
        &b, "ann", (struct hf_val[]){ kit_i(1), kit_i(10), kit_i(2), kit_i(20) }, 2);
    struct hf_call *of = kit_call(&b, KIT_OF, 1, (struct hf_val[]){ kit_t("ann") }, 2);
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    assert_int_equal(puts->changed, 2);
    assert_int_equal(of->out[0].i, 1);
    assert_int_equal(of->out[1].i, 10);
    assert_int_equal(of->out[2].i, 2);
    assert_int_equal(of->out[3].i, 20);
    kit->sql->methods->forget(kit->sql, &b.batch);
}

static void reads_refuse_to_write(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    kit_put(&b, 1, "ann", 1);
    assert_int_equal(kit_run(kit->sql, &b, NULL), HF_EREADONLY);
    assert_int_equal(kit_rows(kit->sql), 0);
}

static void a_batch_can_run_again(void **state)
{
    struct kit *kit = *state;
    struct kit_batch b;
    assert_int_equal(kit_put_one(kit->sql, 1, "ann", 0), 0);
    kit_begin(&b);
    kit_add(&b, 1, 1);
    struct hf_call *get = kit_call(&b, KIT_GET, 1, (struct hf_val[]){ kit_i(1) }, 1);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
        assert_int_equal(get->out_count, 1);
        assert_int_equal(get->out[1].i, i);
    }
    kit->sql->methods->forget(kit->sql, &b.batch);
}

static void memory_store_reads_and_writes(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *sql = NULL;
    assert_int_equal(kit_try(kit, ":memory:", NULL, &sql), 0);
    assert_int_equal(kit_put_one(sql, 1, "ann", 5), 0);
    assert_int_equal(kit_put_one(sql, 1, "ann", 5), HF_ECONFLICT);
    int64_t rows;
    int64_t sum;
    kit_count(sql, &rows, &sum);
    assert_int_equal(rows, 1);
    assert_int_equal(sum, 5);
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    kit_put(&b, 2, "bob", 1);
    assert_int_equal(kit_run(sql, &b, NULL), HF_EREADONLY);
    assert_int_equal(kit_rows(sql), 1);
    sql->methods->close(sql);
}

/* What another call did not find, this one need not look for. */
static void a_call_is_left_out_where_the_one_it_asks_found_nothing(void **state)
{
    struct kit *kit = *state;
    for (int there = 0; there < 2; there++) {
        struct kit_batch b;
        kit_begin(&b);
        kit_call(&b, KIT_OF, 1, (struct hf_val[]){ kit_t("ann") }, HF_ANY_COUNT);
        kit_put(&b, 2 + there, "bob", 1);
        b.calls[1].expect = HF_ANY_COUNT;
        b.calls[1].only_if = 1;
        assert_int_equal(kit_run(kit->sql, &b, &kit->err), 0);
        assert_int_equal(b.calls[1].changed, there);
        kit->sql->methods->forget(kit->sql, &b.batch);
        if (!there)
            assert_int_equal(kit_put_one(kit->sql, 1, "ann", 1), 0);
    }
    assert_int_equal(kit_rows(kit->sql), 2);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(parameters_are_bound_by_their_number),
        CASE(many_argument_sets_are_one_call),
        CASE(bytes_and_empty_values_survive),
        CASE(unmet_expectation_writes_nothing),
        CASE(hf_expect_fails_the_batch),
        CASE(a_refused_row_is_a_conflict_without_its_values),
        CASE(a_constraint_that_is_no_key_is_our_own_fault),
        CASE(a_guard_answers_with_its_text),
        CASE(clocks_are_fixed_within_a_batch),
        CASE(wrong_calls_are_internal_errors),
        CASE(what_is_alike_for_all_sets_is_given_once),
        CASE(reads_refuse_to_write),
        CASE(a_batch_can_run_again),
        CASE(memory_store_reads_and_writes),
        CASE(a_call_is_left_out_where_the_one_it_asks_found_nothing),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
