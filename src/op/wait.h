/* The functions behind the rows of `wait`, and the cancel of a turn. */
#ifndef HF_OP_WAIT_H
#define HF_OP_WAIT_H

#include "op/op.h"

int op_run_wait_list(struct op_call *call);
int op_run_wait_show(struct op_call *call);
int op_run_wait_resolve(struct op_call *call);
int op_run_approve(struct op_call *call);
int op_run_deny(struct op_call *call);
int op_run_wait_revoke(struct op_call *call);
int op_run_wait_key(struct op_call *call);
int op_run_wait_rotate(struct op_call *call);
int op_run_cancel_turn(struct op_call *call);

#endif
