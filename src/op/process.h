/* The functions behind the rows of `process`. */
#ifndef HF_OP_PROCESS_H
#define HF_OP_PROCESS_H

#include "op/op.h"

int op_run_process_events(struct op_call *call);
int op_run_process_change(
    struct op_call *call); /* any verb: the blank request names it */
int op_run_complete(struct op_call *call);

#endif
