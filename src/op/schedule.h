/* The functions behind the rows of `schedule`. */
#ifndef HF_OP_SCHEDULE_H
#define HF_OP_SCHEDULE_H

#include "op/op.h"

int op_check_schedule_add(struct op_call *call);
int op_check_schedule_update(struct op_call *call);
int op_check_preview(struct op_call *call);
int op_run_schedule_add(struct op_call *call);
int op_run_schedule_update(struct op_call *call);
int op_run_schedule_pause(struct op_call *call);
int op_run_schedule_resume(struct op_call *call);
int op_run_schedule_remove(struct op_call *call);
int op_run_schedule_run_now(struct op_call *call);
int op_run_schedule_list(struct op_call *call);
int op_run_schedule_show(struct op_call *call);
int op_run_preview(struct op_call *call);
int op_check_sync(struct op_call *call);
int op_run_sync(struct op_call *call);
int op_run_schedule_pass(struct op_call *call);

#endif
