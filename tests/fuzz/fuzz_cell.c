/* The Lua seam: any bytes as a cell, with a host that answers. Whatever it is, it ends in a
 * typed way within its limits, the same way again when it is cut after every operation, and
 * what it leaves are bindings. */
#include <string.h>

#include "exec/kit.h"
#include "fuzz/fuzz.h"

static struct hf_buf whole;
static struct hf_buf cut;

/* Where memory or time ends is not the same twice; all other results are. */
static bool repeats(enum hf_cell_end end)
{
    return end != HF_CELL_OVER_MEMORY && end != HF_CELL_OVER_TIME;
}

static void check_cut(const struct cellkit *kit, enum hf_cell_end end)
{
    hf_buf_reset(&cut);
    enum hf_cell_end again = cellkit_run_cut(kit, &cut);
    if (!repeats(again))
        return;
    fuzz_require(end == again);
    fuzz_require(whole.len == cut.len);
    fuzz_require(memcmp(hf_buf_str(&whole), hf_buf_str(&cut), whole.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_err err = { 0 };
    if (!whole.alloc) {
        hf_buf_init(&whole, hf_alloc_system(), (size_t)1 << 24);
        hf_buf_init(&cut, hf_alloc_system(), (size_t)1 << 24);
    }
    struct cellkit kit = { .code = (const char *)data,
                           .code_len = size,
                           .bindings = "{\"n\":1,\"t\":{\"a\":[1,2]}}",
                           .given = "{\"g\":{\"a\":[1,{\"b\":2}],\"s\":\"x\"}}",
                           .given_refs = "{\"echo\":{\"r\":[1,[2]]},\"broken\":1}",
                           .limits = { .steps = 20000,
                                       .memory_bytes = 2 << 20,
                                       .ops = 12,
                                       .output_bytes = 10000 } };
    if (size == 0)
        return 0;
    hf_buf_reset(&whole);
    struct hf_cell *cell = cellkit_new(&kit, NULL, 0);
    const struct hf_op *op = NULL;
    do {
        fuzz_require(hf_cell_poll(cell, &op, &err) == 0);
        if (op) {
            cellkit_describe_op(op, &whole);
            fuzz_require(cellkit_answer(cell, op) == 0);
        }
    } while (op);
    cellkit_describe_end(cell, &whole);
    enum hf_cell_end end = hf_cell_end(cell, NULL);
    fuzz_require(end != HF_CELL_RUNNING && end != HF_CELL_DIVERGED);
    fuzz_require(hf_bindings_check(hf_cell_bindings(cell), &err) == 0);
    hf_cell_free(cell);
    if (end != HF_CELL_SYNTAX && repeats(end))
        check_cut(&kit, end);
    return 0;
}
