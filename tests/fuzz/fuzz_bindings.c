/* The decoder of bindings: what is accepted comes back the same from a cell that does
 * nothing, has a hash, and takes deltas; what is not is refused. The same bytes as plain JSON
 * become bindings or are refused. */
#include <string.h>

#include <holdfast/exec.h>

#include "fuzz/fuzz.h"

static void check_cell(struct hf_span bindings)
{
    struct hf_err err = { 0 };
    struct hf_cell *cell = NULL;
    const struct hf_op *op = NULL;
    struct hf_cell_start start = { .size = sizeof(start),
                                   .id = "1",
                                   .bindings = bindings };
    fuzz_require(hf_cell_new(hf_engine_lua(), &start, &cell, &err) == 0);
    fuzz_require(hf_cell_poll(cell, &op, &err) == 0 && !op);
    enum hf_cell_end end = hf_cell_end(cell, NULL);
    struct hf_span after = hf_cell_bindings(cell);
    /* A name of the language itself is not kept, whether a host or a cell assigned it. */
    if (end == HF_CELL_DONE && !hf_cell_note(cell, 0)) {
        fuzz_require(after.len == bindings.len || bindings.len == 0);
        fuzz_require(memcmp(after.at, bindings.at, bindings.len) == 0);
    }
    hf_cell_free(cell);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_err err = { 0 };
    struct hf_span bytes = { data, size };
    struct hf_bytes made = { 0 };
    char hash[65];
    if (hf_bindings_check(bytes, &err) == 0) {
        check_cell(bytes);
        fuzz_require(hf_bindings_hash(bytes, hash, &err) == 0);
    }
    if (hf_bindings_import(NULL, bytes, &made, &err) == 0) {
        fuzz_require(hf_bindings_check((struct hf_span){ made.at, made.len }, &err) == 0);
        hf_bytes_free(&made);
    }
    const uint8_t *half = memchr(data, '\n', size);
    if (half) {
        struct hf_span delta = { half + 1, size - (size_t)(half + 1 - data) };
        struct hf_span before = { data, (size_t)(half - data) };
        if (hf_bindings_apply(NULL, before, delta, &made, &err) == 0)
            hf_bytes_free(&made);
    }
    return 0;
}
