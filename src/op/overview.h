/* Counts by queue, holder and age, and the list of occurrences, as operations. */
#ifndef HF_OP_OVERVIEW_H
#define HF_OP_OVERVIEW_H

#include "op/op.h"

int op_run_queues(struct op_call *call);
int op_run_holders(struct op_call *call);
int op_run_ages(struct op_call *call);
int op_run_occurrences(struct op_call *call);

#endif
