/* A cell as its host sees it, over any engine. See holdfast/exec.h. */
#ifndef HF_EXEC_CELL_CELL_H
#define HF_EXEC_CELL_CELL_H

#include <holdfast/sys/exec.h>

#include "base/arena.h"
#include "base/buf.h"

#define HF_CELL_DONE_ITEMS 8
struct hf_cell_done {
    struct hf_cell_done *before;
    size_t count;
    uint64_t ordinals[HF_CELL_DONE_ITEMS]; /* not 0: the id is made of it at the end */
    struct hf_tool_result results[HF_CELL_DONE_ITEMS];
};

#define HF_OP_ID_BYTES 240 /* a key, a colon, an ordinal; and in a batch once more */

struct hf_cell {
    const struct hf_alloc *alloc;
    const struct hf_engine *engine;
    struct hf_engine_run *run;
    struct hf_cell_limits limits;
    struct hf_arena arena; /* all that lasts as long as the cell */
    const char *id;
    size_t id_len;
    struct hf_span before;
    struct hf_span after;
    char hash_before[65];
    char hash_after[65];

    /* The operation that is out: `open` calls of it are not answered yet. */
    bool broken; /* memory ran out; only good for free */
    bool is_out;
    size_t open;
    struct hf_op op;
    struct hf_engine_stop stop;
    struct hf_op_call *calls;
    struct hf_op_call one;
    struct hf_tool_result *results; /* of `calls`, in their order */
    struct hf_tool_result one_result;
    struct hf_span value;
    struct hf_buf batch; /* the arguments of a batch, as one */
    char op_id[HF_OP_ID_BYTES];

    uint64_t ordinal;
    int64_t ops;
    int64_t output;
    const struct hf_op_record *journal;
    size_t journal_count;
    size_t journal_next;

    enum hf_cell_end end;
    int64_t line;
    struct hf_buf delta;
    struct hf_exec_result result;
    struct hf_cell_done *done; /* calls that were answered, the last ones first */
    size_t done_count;
    const char *done_tool;       /* name of the last of them */
    struct hf_observation *seen; /* what was printed */
    size_t seen_count;
    size_t seen_room;
};

/* exec/cell/seal.c: what the cell starts from; borrowed. */
HF_MUST_USE int hf_cell_find_bindings(const struct hf_engine *engine,
                                      const struct hf_cell_start *start,
                                      struct hf_span *ret_bindings, struct hf_err *err);

/* exec/cell/journal.c */
HF_MUST_USE int hf_cell_keep_journal(struct hf_cell *cell,
                                     const struct hf_cell_start *start,
                                     struct hf_err *err);
/* Answers the operation that came out from the journal, as far as it has answers. An
 * operation that is another one ends the cell as diverged. */
HF_MUST_USE int hf_cell_replay(struct hf_cell *cell, struct hf_err *err);
/* The end of a cell whose journal has operations that it did not come to. */
HF_MUST_USE int hf_cell_ends_early(struct hf_cell *cell, struct hf_err *err);
/* True if a print of this ordinal was shown before. */
bool hf_cell_was_shown(const struct hf_cell *cell, uint64_t ordinal);

/* exec/cell/result.c: what happened, kept for the result. */
HF_MUST_USE int hf_cell_saw(struct hf_cell *cell, struct hf_span text);
/* ordinal: of a call that is an operation of its own, whose id is not kept; otherwise
 * 0. */
HF_MUST_USE int hf_cell_did(struct hf_cell *cell, const struct hf_tool_result *result,
                            uint64_t ordinal);
/* The end, with a message for the model where it did not end well. */
HF_MUST_USE int hf_cell_close(struct hf_cell *cell, enum hf_cell_end end,
                              struct hf_span message);

/* cell.c: "<id>:<ordinal>", and in a batch ":<child>" after it; the length. */
size_t hf_cell_put_id(const struct hf_cell *cell, uint64_t ordinal, size_t child,
                      char ret_id[HF_OP_ID_BYTES]);
/* Puts an answer in its place; it is copied. */
HF_MUST_USE int hf_cell_take_results(struct hf_cell *cell,
                                     const struct hf_tool_result *results, size_t count,
                                     struct hf_err *err);
HF_MUST_USE int hf_cell_take_value(struct hf_cell *cell, struct hf_span json,
                                   struct hf_err *err);

#endif
