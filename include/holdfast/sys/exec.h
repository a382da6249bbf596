/* The engine seam: how a language for cells is added.
 *
 * An engine turns text into operations. Ids, ordinals, journals, partial batches, the delta
 * of the bindings, limits on operations and output, and the result are the business of
 * hf_cell_* (holdfast/exec.h), the same for every language. What an engine owes:
 *
 *   - It is deterministic: the same code, bindings and answers lead to the same
 *     operations, output and bindings, whatever the process, address, locale or hash seed.
 *   - Nothing of the machine is reached but through operations.
 *   - Its limits end the cell; code cannot catch, dodge or outlive them.
 *   - It takes memory from the given allocator only, and survives that there is none.
 *
 * docs/internals/cells.md walks through one. tests/exec/engine_toy.c is a second, small.
 */
#ifndef HOLDFAST_SYS_EXEC_H
#define HOLDFAST_SYS_EXEC_H

#include <holdfast/exec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An implementation's own; it begins with nothing that others know. */
struct hf_engine_run;

/* As struct hf_cell_start, checked: limits are set, bindings are canonical, `given` is an
 * object, as is `given_refs`, tool names are keys. Borrowed until start returns, but alloc
 * and clock. HF_EINVAL for a given name that the language has already. */
struct hf_engine_start {
    const struct hf_alloc *alloc;
    struct hf_span code;
    struct hf_span bindings;
    struct hf_span given;      /* and both in canonical form */
    struct hf_span given_refs; /* a read of such a name is HF_OP_READ, once */
    const char *const *tools;
    size_t tool_count;
    struct hf_cell_limits limits;
    const struct hf_clock *clock;
};

struct hf_engine_call {
    const char *tool;
    struct hf_span args;
};

/* Where a run stopped: an operation (end is HF_CELL_RUNNING), or its end. What it points to
 * is the run's and lives until the next step.
 *   kind, name, args   as in struct hf_op; args of a batch are empty
 *   calls              of call and read (one), and call_batch
 *   message            for the model, unless it ended well: what happened, where, and what
 *                      to do instead. line: in the code, 0 when not known
 *   value              of finished and failed: canonical JSON
 *   bindings           of done and finished: all of them, in canonical form
 *   notes              remarks for the model on a cell that ended well                    */
struct hf_engine_stop {
    enum hf_cell_end end;
    enum hf_op_kind kind;
    const char *name;
    struct hf_span args;
    const struct hf_engine_call *calls;
    size_t call_count;

    bool sliced; /* the bound of `slice` was reached: no operation, and no end */

    struct hf_span message;
    int64_t line;
    struct hf_span value;
    struct hf_span bindings;
    const char *const *notes;
    size_t note_count;
};

/* The answer to an operation: results in the order of the calls, or a value. */
struct hf_engine_answer {
    const struct hf_tool_result *results;
    size_t result_count;
    struct hf_span value;
};

struct hf_engine_ops {
    const char *language; /* as EXEC_CODE names it */
    const char *version;  /* of whatever could change what a cell does */

    /* Makes a run that is before its first instruction. Faults of the code come out of
     * the first step. HF_ENOMEM; HF_EINVAL for bindings that this engine cannot take. */
    int (*start)(const struct hf_engine *engine, const struct hf_engine_start *start,
                 struct hf_engine_run **ret_run, struct hf_err *err);

    /* Runs until the next stop. `answer` is that of the operation before, NULL at first and
     * after a print. After an end it is not called again. HF_ENOMEM when the allocator
     * failed: the run is then only good for free. The limit memory_bytes is an end, and no
     * error. */
    int (*step)(struct hf_engine_run *run, const struct hf_engine_answer *answer,
                struct hf_engine_stop *ret_stop, struct hf_err *err);

    /* Bounds the next step to about this many steps; it may stop with `sliced`, and the step
     * after it continues, with no answer. It must not change what the cell does. NULL: this
     * engine does not stop early. */
    void (*slice)(struct hf_engine_run *run, int64_t steps);

    /* steps, active_ms, memory_bytes and held_bytes; the rest is left alone. */
    void (*cost)(const struct hf_engine_run *run, struct hf_cell_cost *ret_cost);

    void (*free)(struct hf_engine_run *run);
};

/* An instance; implementations put it first into a struct of their own. */
struct hf_engine {
    const struct hf_engine_ops *ops;
};

#ifdef __cplusplus
}
#endif
#endif
