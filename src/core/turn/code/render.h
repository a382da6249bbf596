/* How cells and steps are shown to a model. */
#ifndef HF_CORE_TURN_CODE_RENDER_H
#define HF_CORE_TURN_CODE_RENDER_H

#include "core/turn/code/code.h"

/* Which records of a history are not shown: corrections of other turns, and what a later step
 * of the same turn repaired. And from where on that may change: records [0, stable) are
 * shown alike by every later request of the turn. */
struct hf_code_view {
    struct hf_arena *arena;
    const struct hf_turn *turn;
    uint64_t count;
    uint8_t *hidden; /* a bit a record; NULL: all are shown */
    uint64_t stable;
    struct hf_span
        variables; /* of the last step that says: a raw JSON string, or empty */
};
HF_MUST_USE int hf_code_view(struct hf_code_view *view, struct hf_err *err);
bool hf_code_hides(const struct hf_code_view *view, uint64_t i);

/* The texts that a step is shown as: all output, an error, the final value; those that there
 * are. Its images come after them. HF_ENOMEM. */
struct hf_code_shown {
    struct hf_span texts[3];
    size_t count;
};
HF_MUST_USE int hf_code_show_step(struct hf_arena *arena, const struct hf_code_step *step,
                                  struct hf_code_shown *ret_shown);

/* A part of kind CODE that is a cell, as a model must write it; at NULL when out of memory. */
struct hf_span hf_code_show_cell(struct hf_arena *arena, const struct hf_part *part);

#endif
