/* The functions behind the rows of `process`. */
#ifndef HF_OP_PROCESS_H
#define HF_OP_PROCESS_H

#include "op/op.h"

int op_run_process_events(struct op_call *call);
int op_run_process_change(
    struct op_call *call); /* any verb: the blank request names it */
int op_run_complete(struct op_call *call);
int op_check_process_start(struct op_call *call);
int op_run_process_start(struct op_call *call);
int op_run_process_list(struct op_call *call);
int op_run_process_show(struct op_call *call);
int op_check_retarget(struct op_call *call);
int op_run_tell(struct op_call *call); /* anything: the blank request names it */
int op_run_await(struct op_call *call);
int op_run_process_prune(struct op_call *call);
int op_run_drain(struct op_call *call);

#endif
