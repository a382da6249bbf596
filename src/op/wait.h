/* The functions behind the rows of `wait`, and the cancel of a turn. */
#ifndef HF_OP_WAIT_H
#define HF_OP_WAIT_H

#include "op/op.h"

/* The whole id of a wait that is named by a part of it; NULL is NULL. A whole id may be of a wait
 * that its turn has not opened yet. The errors of hf_wait_get. */
int op_wait_id(struct op_call *call, const char *given, const char **ret_id,
               struct hf_err *err);

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
