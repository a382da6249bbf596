/* The functions behind the rows of limits, policies, the store, and what an operator looks at. */
#ifndef HF_OP_STORE_H
#define HF_OP_STORE_H

#include <holdfast/schedule.h>

#include "op/op.h"

int op_check_limit(struct op_call *call);
int op_run_limit(struct op_call *call);
int op_run_limit_list(struct op_call *call);
int op_run_policy(struct op_call *call);
int op_run_policy_show(struct op_call *call);
int op_run_log(struct op_call *call);
int op_run_facts(struct op_call *call);
int op_run_doctor(struct op_call *call);
int op_run_bounds(struct op_call *call);
int op_run_version(struct op_call *call);
int op_run_overview(struct op_call *call);

/* ---- watch.c: what an operator looks at, read in one go ------------------------------ */

#define OP_WATCH_ROWS 200 /* more than a terminal shows; attention reads all pages */
#define OP_WATCH_ROWS_TEXT "200"

struct op_watch {
    hf_ms now;
    struct hf_stats stats;
    struct hf_answer *running;
    struct hf_answer *silent;
    struct hf_answer *waiting;
    struct hf_answer *held;
    struct hf_answer *oldest; /* the unit that has been queued the longest, if any */
    struct hf_schedules *schedules;     /* active ones */
    struct hf_session_answer *sessions; /* with an open turn */
    struct hf_arena arena;              /* of what follows */
    struct hf_queue *queues;
    size_t queue_count;
    struct hf_holder *holders;
    size_t holder_count;
    bool failed; /* there was no memory */
};

HF_MUST_USE int op_watch_read(struct op_call *call, struct op_watch *ret_watch);
void op_watch_free(struct op_watch *watch);

/* A schedule whose slot was not made although its time, and what it may miss, is over. */
bool op_schedule_late(hf_ms now, const struct hf_schedule *schedule);

#endif
