/* Inside the code protocol: its options, its records, and what a reply is taken for.
 *
 * Records of a turn, in order: for a reply with a cell a message "<turn>.<iteration>.cell"
 * (reasoning, prose, source), before the cell is run; when it ended an event hf.code.step
 * with everything that came of it. A reply that is not taken is a message ".prose" with what
 * people saw of it and a message ".fix", for this turn only, that tells the model why; its
 * origin says what was decided, and has a fingerprint of the reply. */
#ifndef HF_CORE_TURN_CODE_CODE_H
#define HF_CORE_TURN_CODE_CODE_H

#include <holdfast/code.h>

#include "base/json_walk.h"
#include "core/turn/machine.h"
#include "core/turn/prompts.h"

#define HF_CODE_ID "code"
#define HF_CODE_STEP "hf.code.step"
#define HF_CODE_CALLS 128 /* calls of a cell that are shown and recorded */

struct hf_code_protocol {
    struct hf_protocol protocol;
    const struct hf_alloc *alloc; /* NULL: the static one */
    enum hf_code_language language;
    bool finish_required;
    struct json_t *schema;       /* NULL: any value fits */
    struct hf_span schema_text;  /* as it was given */
    struct hf_span options_text; /* as they were given */
};

extern const struct hf_protocol_ops hf_code_ops;

/* The protocol as ours; NULL when it is another. */
const struct hf_code_protocol *hf_code_of(const struct hf_protocol *protocol);

/* "<lua>" and "</lua>". */
struct hf_code_tags {
    char open[16];
    char close[16];
};
void hf_code_tags(enum hf_code_language language, struct hf_code_tags *ret_tags);

/* Steps: core/turn/code/step.c. */
struct hf_code_call {
    const char *id;
    const char *tool;
    enum hf_tool_outcome outcome;
    enum hf_control control;
    const char *code; /* of a failure */
    hf_ms duration_ms;
    enum hf_failure_class class_; /* of a failure */
    struct hf_span message;       /* of a failure; the reason of what was cancelled */
    struct hf_span value;         /* JSON of a success, unless there was no room for it */
    uint64_t value_bytes;         /* of a value that is left out */
};

struct hf_code_step {
    uint64_t step; /* number in the history, from 1 */
    const char *cell;
    uint64_t iteration;
    bool failed;  /* the host could not run it */
    bool unknown; /* no caller knows what became of it */
    bool cancelled;
    struct hf_span error;
    const struct hf_observation *output;
    size_t output_count;
    const struct hf_code_call *calls;
    size_t call_count;
    uint64_t calls_omitted;
    const struct hf_attachment *images;
    size_t image_count;
    struct hf_span final; /* JSON */
    const char *before;   /* hashes of the bindings */
    const char *after;
    struct hf_span delta; /* JSON */
    hf_ms duration_ms;
    struct hf_span variables; /* what a model is shown of the bindings after it */
};
extern const struct hf_schema hf_s_code_step;

/* A step that neither failed nor was cut off: what it repaired need not be shown. */
bool hf_code_step_good(const struct hf_code_step *step);

/* Reads the step of a record; *ret_is is false for another record. HF_EBASE when the record is
 * a step that cannot be read. */
HF_MUST_USE int hf_code_read_step(struct hf_arena *arena, const struct hf_record *record,
                                  struct hf_code_step *ret_step, bool *ret_is,
                                  struct hf_err *err);

/* Questions about many steps, answered without building them. */
struct hf_code_peek {
    int64_t step;
    const char *cell;
    const char *after;
    struct hf_span variables; /* a raw JSON string, or empty */
    bool changed;             /* it left other bindings than it found */
    bool good;
};
HF_MUST_USE int hf_code_peek_step(struct hf_arena *arena, const struct hf_record *record,
                                  struct hf_code_peek *ret_peek, bool *ret_is,
                                  struct hf_err *err);

/* The number of the last step (0: none yet) and the hash of the bindings it left (NULL: none).
 * Each step has the hash of the one before it unless the host says another, so only the last
 * one is read. HF_EBASE. */
HF_MUST_USE int hf_code_last(struct hf_move *move, uint64_t *ret_step,
                             const char **ret_bindings, struct hf_err *err);

/* Appends a struct as an event, whose name lives for ever. HF_ETOOBIG names the result: only a
 * host's own values can be that large. */
HF_MUST_USE int hf_code_event(struct hf_move *move, const char *name,
                              const struct hf_schema *schema, const void *from,
                              struct hf_err *err);

/* The source of a cell in the form in which a model must write it. */
void hf_code_put_cell(struct hf_buf *out, const char *language, struct hf_span code);

/* After a cell: core/turn/code/exec.c. */
HF_MUST_USE int hf_code_exec_done(const struct hf_protocol *protocol,
                                  struct hf_move *move,
                                  const struct hf_exec_result *result,
                                  const struct hf_driver_state *driver,
                                  struct hf_err *err);

/* Plans the step after an iteration; one without progress spends the budget for that. */
HF_MUST_USE int hf_code_go_on(const struct hf_code_protocol *code, struct hf_move *move,
                              bool stalled, struct hf_err *err);

/* Whether a value fits a schema (fit.c). check: HF_EINVAL for a schema with a keyword that
 * is not known, or one that is malformed. fit: *ret_why stays empty when it fits; the text is
 * for the model. HF_ENOMEM. */
HF_MUST_USE int hf_fit_check(const struct json_t *schema, struct hf_err *err);
HF_MUST_USE int hf_fit(const struct hf_alloc *alloc, const struct json_t *schema,
                       struct hf_span value, struct hf_buf *ret_why, struct hf_err *err);

#endif
