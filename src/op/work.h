/* The functions behind the rows of `work`; operations on jobs and processes use some too. */
#ifndef HF_OP_WORK_H
#define HF_OP_WORK_H

#include <holdfast/process.h>

#include "op/op.h"

/* The output of a unit, also what no process has stored yet. */
int op_output(struct op_call *call, const char *work_id, int64_t attempt,
              struct hf_output **ret_output);

int op_check_create(struct op_call *call);
int op_check_renew(struct op_call *call);
int op_check_resume(struct op_call *call);
int op_check_close_out(struct op_call *call);
int op_check_enqueue(struct op_call *call);
int op_check_prune(struct op_call *call);
int op_run_create(struct op_call *call);
int op_run_enqueue(struct op_call *call);
int op_run_claim(struct op_call *call);
int op_run_change(struct op_call *call); /* any verb: the blank request names it */
int op_run_resume(struct op_call *call);
int op_run_renew(struct op_call *call);
int op_run_redrive(struct op_call *call);
/* A page of a list, or the first one after it that has rows. */
HF_MUST_USE int op_list_page(struct op_call *call, struct hf_filter *filter,
                             struct hf_answer **ret);
int op_run_list(struct op_call *call);
int op_run_show(struct op_call *call);
int op_run_events(struct op_call *call);
int op_run_output(struct op_call *call);
int op_run_stats(struct op_call *call);
int op_run_sweep(struct op_call *call);
int op_run_prune(struct op_call *call);

/* Says what a create found: also for units that took another way to the ledger. */
HF_MUST_USE int op_created(struct op_call *call, const struct hf_answer *answer,
                           bool resumed);

#endif
