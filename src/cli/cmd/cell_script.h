/* The host of `holdfast cell run`: answers come from a script. */
#ifndef HF_CLI_CMD_CELL_SCRIPT_H
#define HF_CLI_CMD_CELL_SCRIPT_H

#include <holdfast/exec.h>

#include "cli/cli.h"

struct cell_script;

/* Reads the script; NULL text: no script. HF_EINVAL naming "tools". Free it. */
HF_MUST_USE int cell_script_new(struct cli *cli, const char *text,
                                struct cell_script **ret_script);
void cell_script_free(struct cell_script *script);

/* Names of the tools that it has, the cli's; NULL without a script. */
HF_MUST_USE int cell_script_tools(struct cli *cli, const struct cell_script *script,
                                  const char *const **ret_names, size_t *ret_count);

/* The answer of the script to a call of an operation of that kind. Texts are the cli's. */
HF_MUST_USE int cell_script_call(struct cli *cli, const struct cell_script *script,
                                 enum hf_op_kind kind, const struct hf_op_call *call,
                                 struct hf_tool_result *ret_result);

/* Its answer to another operation, as JSON: time and random bits are the machine's where
 * it says nothing. */
HF_MUST_USE int cell_script_value(struct cli *cli, const struct cell_script *script,
                                  const struct hf_op *op, const char **ret_json);

#endif
