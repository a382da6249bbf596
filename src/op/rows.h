/* Common parts of the tables of rows: pieces of a row, and lists of errors. */
#ifndef HF_OP_ROWS_H
#define HF_OP_ROWS_H

#include "op/op.h"

extern const struct hf_input op_no_inputs[];

/* Lists of errors (table.c), named after those who meet them. */
extern const int op_read_errors[];     /* a list is read */
extern const int op_get_errors[];      /* one row is read */
extern const int op_write_errors[];    /* something is written that has no key */
extern const int op_create_errors[];   /* a row with keys is made */
extern const int op_change_errors[];   /* a definition is changed at a revision */
extern const int op_claim_errors[];    /* a lease is taken */
extern const int op_holder_errors[];   /* a holder changes its row */
extern const int op_settle_errors[];   /* a row is ended, by a holder or not */
extern const int op_operator_errors[]; /* an operator changes a row */
extern const int op_session_errors[];  /* something is added to sessions */
extern const int op_effect_errors[];   /* an effect is resolved */
extern const int op_answer_errors[];   /* a wait is answered or revoked */

/* clang-format off */
#define BLANK(type, ...)                                                                 \
    .blank = &(const struct type){ __VA_ARGS__ }, .in_size = sizeof(struct type)
#define VERB(name)                                                                       \
    BLANK(hf_change, .size = sizeof(struct hf_change), .verb = HF_VERB_##name)
#define UNIT .answer = OP_ROW, .shape = &hf_work_shape
#define UNITS .answer = OP_LIST, .shape = &hf_work_shape
#define HOLDER                                                                           \
    .role = OP_WORKER, .errors = op_holder_errors, .actor_kind = "worker",               \
    .flags = OP_MUST_EXIST | OP_SHELL
#define OPERATOR                                                                         \
    .role = OP_OPERATOR, .errors = op_operator_errors, .actor_kind = "human",            \
    .flags = OP_MUST_EXIST | OP_SHELL | OP_REPEATABLE
#define READER(more)                                                                     \
    .role = OP_READ, .actor_kind = "human", .flags = OP_READS | (more)
/* clang-format on */

#endif
