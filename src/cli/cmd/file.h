/* Whole files, for commands that are given paths. */
#ifndef HF_CLI_CMD_FILE_H
#define HF_CLI_CMD_FILE_H

#include "cli/cli.h"

/* All of a file, in the cli's arena and NUL-terminated; "-" is standard input. HF_ENOTFOUND
 * when there is none, HF_EINVAL when it cannot be read, HF_ETOOBIG. */
HF_MUST_USE int cli_read_file(struct cli *cli, const char *path, size_t max,
                              struct hf_span *ret_bytes);

#endif
