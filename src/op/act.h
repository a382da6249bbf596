/* An act of a finding (holdfast/attention.h) as a command of the shell and as JSON. */
#ifndef HF_OP_ACT_H
#define HF_OP_ACT_H

#include <holdfast/attention.h>

#include "op/op.h"

/* A word that a shell reads back as it was. */
void op_put_quoted(struct hf_buf *out, const char *text);
/* A command that can be pasted; `program` is its beginning, NULL: "holdfast". */
void op_put_command(struct hf_buf *out, const char *program,
                    const struct hf_attention_act *act);
/* {"op":…,"in":{…}}, as a line of `holdfast call --lines` takes it. */
void op_put_act(struct hf_json *json, const struct hf_attention_act *act);
void op_put_facts(struct hf_json *json, const struct hf_fact *facts, size_t count);

#endif
