/* What the files of the changing commands share. */
#ifndef HF_CLI_CMD_CHANGE_H
#define HF_CLI_CMD_CHANGE_H

#include "cli/cli.h"

/* Applies one change in a transaction of its own and prints the row. The id may be a part
 * of one. `did` is what happened, for people. */
HF_MUST_USE int cli_apply(struct cli *cli, struct hf_change *change, const char *did);

/* The number of --pid, or 0; HF_EINVAL when there is no such process. */
HF_MUST_USE int cli_check_pid(struct cli *cli, int *ret_pid);

#endif
