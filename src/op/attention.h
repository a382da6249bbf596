/* Findings as rows of an answer: what they say to people, and the command that deals with them. */
#ifndef HF_OP_ATTENTION_H
#define HF_OP_ATTENTION_H

#include <holdfast/attention.h>

#include "op/op.h"
#include "op/shapes/ledger.h"

int op_check_ack(struct op_call *call);
int op_run_attention(struct op_call *call);
int op_run_ack(struct op_call *call);

/* Reads what the call asks for. The answer is the caller's to free. */
HF_MUST_USE int op_attention_read(struct op_call *call, struct hf_attention **ret);

/* The row of a finding, and of those that are not shown; its texts live in the arena. */
HF_MUST_USE int op_attention_row(struct op_call *call, struct hf_arena *arena, hf_ms now,
                                 const struct hf_attention_item *item,
                                 struct hf_attention_row *ret_row);

#endif
