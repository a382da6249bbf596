/* Hostile cells: each comes to the end that its table says, within its limits, and is the
 * same again when it is cut after every operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/escape.h"
#include "exec/kit.h"

static const struct table {
    const struct escape *cases;
    const size_t *count;
} tables[] = {
    { escape_sandbox, &escape_sandbox_count }, { escape_values, &escape_values_count },
    { escape_steps, &escape_steps_count },     { escape_memory, &escape_memory_count },
    { escape_order, &escape_order_count },
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static bool holds(const struct hf_buf *text, const char *wanted)
{
    return memmem(hf_buf_str(text), text->len, wanted, strlen(wanted)) != NULL;
}

static void check_case(void **state)
{
    const struct escape *escape = *state;
    bool few_steps = escape->end == HF_CELL_OVER_STEPS;
    struct cellkit kit = { .code = escape->code,
                           .limits = { .steps = few_steps ? 300000 : 3000000,
                                       .memory_bytes = few_steps ? 16 << 20 : 8 << 20,
                                       .ops = 200,
                                       .active_ms = 30000 },
                           .clock = hf_clock_system() };
    struct hf_buf whole;
    struct hf_buf cut;
    hf_buf_init(&whole, hf_alloc_system(), (size_t)1 << 25);
    hf_buf_init(&cut, hf_alloc_system(), (size_t)1 << 25);
    enum hf_cell_end end = cellkit_run(&kit, &whole);
    const char *text = hf_buf_str(&whole);
    if (end != escape->end || !holds(&whole, escape->says) || holds(&whole, "alive"))
        fail_msg("ended %s, wanted %s with \"%s\":\n%.2000s", hf_cell_end_name(end),
                 hf_cell_end_name(escape->end), escape->says, text);
    bool some = holds(&whole, "1 ") && end != HF_CELL_OVER_OPS;
    if (some) { /* otherwise there is nothing to cut, or too much */
        cellkit_run_cut(&kit, &cut);
        assert_string_equal(hf_buf_str(&cut), text);
    }
    hf_buf_fini(&whole);
    hf_buf_fini(&cut);
}

int main(void)
{
    static struct CMUnitTest tests[512];
    size_t count = 0;
    for (size_t t = 0; t < TABLES; t++)
        for (size_t i = 0; i < *tables[t].count && count < 512; i++)
            tests[count++] = (struct CMUnitTest){
                .name = tables[t].cases[i].name,
                .test_func = check_case,
                .initial_state = (void *)(uintptr_t)&tables[t].cases[i]
            };
    return _cmocka_run_group_tests("escape", tests, count, NULL, NULL);
}
