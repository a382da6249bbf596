/* One line of `holdfast call --lines` on a store that is given, without the program around it. */
#ifndef TESTS_OP_LINES_H
#define TESTS_OP_LINES_H

#include "op/op.h"

static inline int lines_open(struct op_call *call)
{
    (void)call; /* the store is open */
    return 0;
}

/* Serves the line: the answer is in `out`, whole. Works in memory of the arena's allocator. */
static inline int lines_serve(struct hf_store *store, struct hf_arena *arena,
                              struct hf_span text, struct hf_buf *out, struct hf_err *err)
{
    struct op_json_out json;
    struct op_line line = { 0 };
    struct op_call call = { .store = store,
                            .who = { .size = sizeof(call.who) },
                            .arena = arena,
                            .err = err,
                            .out = &json.out,
                            .open = lines_open };
    op_json_init(&json, &call, out);
    int rc = op_line_read(&call, text, &line);
    if (rc == 0)
        rc = op_line_begin(&call, &line);
    if (rc == 0) {
        call.who.tenant = line.tenant;
        call.who.operation_id = line.operation_id;
        call.who.correlation_id = line.correlation_id;
        rc = op_perform(&call);
    }
    if (line.id)
        json.id = (struct hf_span){ line.id, strlen(line.id) };
    if (rc)
        op_json_fail(&json, rc);
    else
        op_json_end(&json);
    return rc;
}

#endif
