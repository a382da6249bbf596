/* The functions behind the rows of `session`. */
#ifndef HF_OP_SESSION_H
#define HF_OP_SESSION_H

#include "op/op.h"

int op_check_say(struct op_call *call);
int op_run_session_create(struct op_call *call);
int op_run_session_send(struct op_call *call);
int op_run_session_list(struct op_call *call);
int op_run_session_show(struct op_call *call);
int op_run_session_turn(struct op_call *call);
int op_run_session_effects(struct op_call *call);
int op_run_session_log(struct op_call *call);
int op_run_session_inputs(struct op_call *call);

#endif
