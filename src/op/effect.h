/* The functions behind the rows of `effect`. */
#ifndef HF_OP_EFFECT_H
#define HF_OP_EFFECT_H

#include "op/op.h"

int op_run_effect_list(struct op_call *call);
int op_check_effect_resolve(struct op_call *call);
int op_run_effect_resolve(struct op_call *call);

#endif
