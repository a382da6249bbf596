/* The operations on effects of processes and operations. */
#include "op/effect.h"

#include <holdfast/journal.h>

#include "op/shapes/effect.h"

int op_run_effect_list(struct op_call *call)
{
    const struct hf_effect_page *in = call->in;
    const struct op_sink *sink = call->out->sink;
    struct hf_journal_effects *found = NULL;
    struct op_list list = { .key = "items",
                            .shape = &hf_effect_shape,
                            .none = "the outcome of each effect is known",
                            .paged = true };
    int rc = hf_journal_unknown(call->store, &call->who, in->after, (size_t)in->limit,
                                &found, call->err);
    if (rc == 0) {
        list.next = found->next;
        sink->begin(call->out, &list);
    }
    for (size_t i = 0; rc == 0 && i < found->count; i++)
        rc = sink->item(call->out, &(struct op_row){ .shape = &hf_effect_shape,
                                                     .at = &found->items[i] });
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_journal_effects_free(found);
    return rc;
}

int op_check_effect_resolve(struct op_call *call)
{
    const struct hf_journal_resolve *in = call->in;
    if ((in->outcome == NULL) == (in->reason == NULL))
        return op_fail(call, HF_EINVAL, NULL,
                       "{outcome} or {reason} is required, and only one of the two");
    return 0;
}

int op_run_effect_resolve(struct op_call *call)
{
    struct hf_journal_effects *resolved = NULL;
    int rc = hf_journal_resolve(call->store, &call->who, call->in, &resolved, call->err);
    if (rc == 0)
        rc = op_row(call, resolved->items);
    hf_journal_effects_free(resolved);
    return rc;
}
