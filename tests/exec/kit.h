/* Cells in tests: run one with a scripted host, and get everything it did as text. */
#ifndef TESTS_EXEC_KIT_H
#define TESTS_EXEC_KIT_H

#include <holdfast/exec.h>

#include "base/buf.h"

/* What a run is made of; zeroed, it has no bindings, any tool and the usual limits. */
struct cellkit {
    const char *code;
    size_t code_len; /* 0: strlen */
    const char *bindings;
    const char *given;
    const char *given_refs;
    const char *const *tools;
    size_t tool_count;
    struct hf_cell_limits limits;
    const struct hf_clock *clock;
    const struct hf_alloc *alloc;
    const struct hf_engine *engine; /* NULL: Lua */
};

/* Runs the cell to its end and appends a transcript:
 *
 *     1 call echo {"a":1}          every operation as it came
 *     2 print "hello"
 *     error line 3: …              how it ended, and what it said
 *     finish {"a":1}
 *     note …
 *     bindings {"x":1}
 *     delta {"set":{"x":1}}
 *
 * The host's answers: `echo` returns its arguments, `fail` and `broken` fail with "nope",
 * `list` returns [1,2,3], `none` returns null, other tools "ok"; so do names that are
 * read, with the reference as arguments; a process is {"id":"p1"}, a
 * signal {"signal":"go"}; it is 1700000000000; the random bits are 42. */
enum hf_cell_end cellkit_run(const struct cellkit *kit, struct hf_buf *transcript);

/* The same, and the cell is freed and started again from its journal after every
 * operation. */
enum hf_cell_end cellkit_run_cut(const struct cellkit *kit, struct hf_buf *transcript);

struct hf_cell *cellkit_new(const struct cellkit *kit, const struct hf_op_record *journal,
                            size_t count);

/* Answers the operation that is out. HF_ENOMEM comes back, other errors must not
 * happen. */
int cellkit_answer(struct hf_cell *cell, const struct hf_op *op);

/* Appends how the cell ended. */
void cellkit_describe_end(const struct hf_cell *cell, struct hf_buf *transcript);
void cellkit_describe_op(const struct hf_op *op, struct hf_buf *transcript);

#endif
