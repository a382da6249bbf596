/* One call of an operation as a line of JSON: {"op":…,"in":{…},"id":…}. The line is read first, and
 * its inputs by the operation's table afterwards, so that an error can be answered under the line's
 * id. */
#include <string.h>

#include "base/near.h"
#include "base/text.h"
#include "op/op.h"

/* clang-format off */
static const struct hf_input line_inputs[] = {
    { "op", "OP", HF_IN_TEXT, HF_IN_NEEDED, "the operation", HF_IN_AT(op_line, op) },
    { "in", "JSON", HF_IN_JSON, 0, "its inputs, one object",
      .bound = HF_BOUND_CALL_LINE_BYTES, HF_IN_AT(op_line, in) },
    { "id", "JSON", HF_IN_JSON, 0, "repeated in the answer", .max = 1024,
      HF_IN_AT(op_line, id) },
    { "tenant", "T", HF_IN_TEXT, 0, "the tenant that is meant", HF_IN_AT(op_line, tenant) },
    { "actor", "KIND:NAME", HF_IN_TEXT, 0, "who acts", HF_IN_AT(op_line, actor) },
    { "operation_id", "ID", HF_IN_TEXT, 0, "makes the call repeatable",
      HF_IN_AT(op_line, operation_id) },
    { "correlation_id", "ID", HF_IN_TEXT, 0, "kept with the events",
      HF_IN_AT(op_line, correlation_id) },
    { .name = NULL },
};
/* clang-format on */

int op_line_read(struct op_call *call, struct hf_span text, struct op_line *line)
{
    const struct hf_input_part parts[] = { { line_inputs, line }, { NULL, NULL } };
    struct hf_input_reading reading = { .parts = parts,
                                        .arena = call->arena,
                                        .local = true,
                                        .unknown = "is not a member of a line",
                                        .err = call->err };
    int rc = hf_json_check(text, (size_t)HF_MAX_CALL_LINE_BYTES, "line", call->err);
    return rc ? rc : hf_inputs_read(text, &reading);
}

static int unknown_op(struct op_call *call, const char *name)
{
    struct hf_near near;
    hf_near_begin(&near, name);
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            hf_near_try(&near, op_is_listed(op) ? op->name : "");
    return hf_fail(
        call->err, HF_EINVAL, "op",
        near.best
            ? "op: there is no operation %.60s; did you mean %s?"
            : "op: there is no operation %.60s; `holdfast call --list` prints them%s",
        name, near.best ? near.best : "");
}

int op_line_begin(struct op_call *call, const struct op_line *line)
{
    const struct op *op = op_find(line->op);
    const char *in = line->in ? line->in : "{}";
    if (op && op->role == OP_LOCAL && !(op->flags & OP_HIDDEN))
        return hf_fail(call->err, HF_EINVAL, "op",
                       "op: %s can be used on the command line only", line->op);
    if (!op || !op_is_listed(op))
        return unknown_op(call, line->op);
    call->op = op;
    int rc = op_begin(call);
    return rc ? rc : op_read(call, (struct hf_span){ in, strlen(in) });
}

const char *op_owner(const struct op_call *call)
{
    for (const struct hf_input *input = call->op->in; input->name; input++)
        if (hf_same(input->name, "owner") && input->width == sizeof(char *))
            return hf_input_text(input, call->in);
    return NULL;
}
