/* The arena: alignment, zeroing, reuse, and every allocation failing once. */
#include "support/unit.h"

#include <stdalign.h>
#include <string.h>

#include "base/arena.h"
#include "support/fail_alloc.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct hf_arena arena;
    hf_arena_init(&arena, hf_alloc_system());
    unsigned char *last = NULL;
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *at = hf_arena_take(&arena, bytes);
        assert_non_null(at);
        assert_ptr_not_equal(at, last);
        assert_int_equal((uintptr_t)at % alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(at[i], 0);
        memset(at, 0xff, bytes); /* seen by the next one if they overlapped */
        last = at;
    }
    hf_arena_fini(&arena);
}

static void a_large_request_does_not_waste_the_block_in_use(void **state)
{
    (void)state;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    struct hf_arena arena;
    hf_arena_init(&arena, &fail.alloc);
    char *small = hf_arena_take(&arena, 16);
    assert_non_null(hf_arena_take(&arena, 1000000));
    assert_int_equal(fail.calls, 2);
    char *next = hf_arena_take(&arena, 16);
    assert_ptr_equal(next, small + 16);
    assert_int_equal(fail.calls, 2);
    hf_arena_fini(&arena);
    assert_int_equal(fail.live, 0);
}

static void a_large_first_request_is_served(void **state)
{
    (void)state;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    struct hf_arena arena;
    hf_arena_init(&arena, &fail.alloc);
    char *big = hf_arena_take(&arena, 300000);
    assert_non_null(big);
    big[299999] = 'x';
    assert_non_null(hf_arena_take(&arena, 1));
    hf_arena_fini(&arena);
    assert_int_equal(fail.live, 0);
}

static void many_small_requests_cost_few_allocations(void **state)
{
    (void)state;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    struct hf_arena arena;
    hf_arena_init(&arena, &fail.alloc);
    for (int i = 0; i < 4000; i++)
        assert_non_null(hf_arena_take(&arena, 64));
    assert_true(fail.calls <= 8); /* 4 + 8 + 16 + 32 KiB, then 64 KiB each */
    hf_arena_fini(&arena);
    assert_int_equal(fail.live, 0);
}

static void reset_keeps_one_block_and_zeroes_again(void **state)
{
    (void)state;
    struct fail_alloc fail;
    fail_alloc_init(&fail, 0);
    struct hf_arena arena;
    hf_arena_init(&arena, &fail.alloc);
    hf_arena_reset(&arena); /* of an empty arena */
    for (int i = 0; i < 100; i++)
        memset(hf_arena_take(&arena, 500), 0xff, 500);
    hf_arena_reset(&arena);
    assert_int_equal(fail.live, 1);
    int64_t calls = fail.calls;
    unsigned char *at = hf_arena_take(&arena, 500);
    assert_int_equal(fail.calls, calls);
    for (size_t i = 0; i < 500; i++)
        assert_int_equal(at[i], 0);
    hf_arena_fini(&arena);
    assert_int_equal(fail.live, 0);
}

static void copies_end_in_nul(void **state)
{
    (void)state;
    struct hf_arena arena;
    hf_arena_init(&arena, hf_alloc_system());
    char *copy = hf_arena_copy(&arena, "ab\0cd", 5);
    assert_memory_equal(copy, "ab\0cd", 6);
    assert_string_equal(hf_arena_copy(&arena, NULL, 0), "");
    assert_string_equal(hf_arena_text(&arena, "lease"), "lease");
    assert_string_equal(hf_arena_text(&arena, ""), "");
    assert_null(hf_arena_text(&arena, NULL));
    hf_arena_fini(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct hf_arena arena;
    hf_arena_init(&arena, hf_alloc_system());
    assert_null(hf_arena_take(&arena, SIZE_MAX));
    assert_null(hf_arena_take(&arena, SIZE_MAX - alignof(max_align_t)));
    assert_null(hf_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(hf_arena_copy(&arena, "", SIZE_MAX));
    assert_non_null(hf_arena_array(&arena, 3, 7));
    assert_non_null(hf_arena_array(&arena, 0, SIZE_MAX));
    hf_arena_fini(&arena);
}

/* Takes in which a block is begun, grown into and bypassed. */
static int64_t use_arena(int64_t fail_at)
{
    struct fail_alloc fail;
    fail_alloc_init(&fail, fail_at);
    struct hf_arena arena;
    hf_arena_init(&arena, &fail.alloc);
    int failures = 0;
    static const size_t sizes[] = { 10, 3000, 3000, 50000, 900, 900, 900, 7 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *at = hf_arena_take(&arena, sizes[i]);
        if (at)
            memset(at, 'x', sizes[i]);
        else
            failures++;
    }
    assert_int_equal(failures, fail_at > 0 ? 1 : 0);
    assert_non_null(hf_arena_text(&arena, "goes on after a failure"));
    hf_arena_fini(&arena);
    assert_int_equal(fail.live, 0);
    return fail.calls;
}

static void every_failed_allocation_is_told_once_and_harms_nothing(void **state)
{
    (void)state;
    int64_t calls = use_arena(0);
    assert_true(calls >= 4);
    for (int64_t i = 1; i <= calls; i++)
        (void)use_arena(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_large_request_does_not_waste_the_block_in_use),
        cmocka_unit_test(a_large_first_request_is_served),
        cmocka_unit_test(many_small_requests_cost_few_allocations),
        cmocka_unit_test(reset_keeps_one_block_and_zeroes_again),
        cmocka_unit_test(copies_end_in_nul),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(every_failed_allocation_is_told_once_and_harms_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
