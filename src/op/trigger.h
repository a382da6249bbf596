/* The functions behind the rows of `trigger`. */
#ifndef HF_OP_TRIGGER_H
#define HF_OP_TRIGGER_H

#include "op/op.h"

int op_check_subscribe(struct op_call *call);
int op_run_subscribe(struct op_call *call);
int op_run_trigger_update(struct op_call *call);
int op_run_trigger_change(
    struct op_call *call); /* any verb: the blank request names it */
int op_run_trigger_list(struct op_call *call);
int op_run_trigger_show(struct op_call *call);
int op_run_emit(struct op_call *call);
int op_run_deliveries(struct op_call *call);
int op_run_granted(struct op_call *call);

#endif
