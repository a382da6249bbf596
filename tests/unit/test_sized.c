/* Structs that begin with their size. */
#include "support/unit.h"

#include <stddef.h>
#include <string.h>

#include "base/sized.h"

/* As callers of three versions see it. */
struct version_1 {
    uint32_t size;
    int64_t a;
};

struct version_2 {
    uint32_t size;
    int64_t a;
    const char *b;
};

struct version_3 {
    uint32_t size;
    int64_t a;
    const char *b;
    int64_t c;
};

static int take(const void *given, struct version_2 *ret_full, struct hf_err *err)
{
    return hf_sized_copy(given, offsetof(struct version_2, b), sizeof(*ret_full),
                         ret_full, err);
}

static void what_an_older_caller_does_not_know_is_zero(void **state)
{
    (void)state;
    struct version_1 old = { .size = sizeof(old), .a = 7 };
    struct version_2 full;
    memset(&full, 0x55, sizeof(full));
    assert_int_equal(take(&old, &full, NULL), 0);
    assert_int_equal(full.size, sizeof(full));
    assert_int_equal(full.a, 7);
    assert_null(full.b);
    struct version_2 same = { .size = sizeof(same), .a = 8, .b = "b" };
    assert_int_equal(take(&same, &full, NULL), 0);
    assert_int_equal(full.a, 8);
    assert_string_equal(full.b, "b");
}

static void other_sizes_are_refused(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 0,
                                      4,
                                      sizeof(struct version_1) - 1,
                                      sizeof(struct version_2) + 1,
                                      sizeof(struct version_3),
                                      UINT32_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct version_3 given = { .size = sizes[i], .a = 7 };
        struct version_2 full = { .a = 1 };
        struct hf_err err = { 0 };
        assert_int_equal(take(&given, &full, &err), HF_EINVAL);
        assert_string_equal(err.field, "size");
        assert_int_equal(full.a, 1); /* untouched */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_older_caller_does_not_know_is_zero),
        cmocka_unit_test(other_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
