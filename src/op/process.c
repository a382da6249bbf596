/* What the operations on processes do. What is done to one is done to its unit. */
#include "op/process.h"

#include <holdfast/process.h>

#include "op/work.h"

/* Of a unit that the ledger does not have, processes remember for a while how it ended. */
static int or_pruned(struct op_call *call, const char *id, int rc)
{
    struct hf_processes *processes = NULL;
    struct hf_err why = { 0 };
    struct hf_process_filter filter = { .size = sizeof(filter), .id = id, .limit = 1 };
    if (rc != HF_ENOTFOUND)
        return rc;
    if (hf_process_list(call->store, &call->who, &filter, &processes, &why) == rc)
        *call->err = why;
    hf_processes_free(processes);
    return rc;
}

int op_run_process_events(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    return or_pruned(call, in->id, op_run_events(call));
}

int op_run_process_change(struct op_call *call)
{
    const struct hf_change *in = call->in;
    const char *id = in->id;
    return or_pruned(call, id, op_run_change(call));
}

int op_run_complete(struct op_call *call)
{
    struct hf_complete_request *in = call->in;
    in->change.status = hf_status_of(in->status);
    return op_run_process_change(call);
}
