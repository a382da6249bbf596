/* The configuration file of the program. */
#ifndef HF_CLI_MODEL_CONFIG_H
#define HF_CLI_MODEL_CONFIG_H

#include <holdfast/config.h>

#include "cli/cli.h"

/* Reads what --config names, or $XDG_CONFIG_HOME/holdfast/holdfast.toml. HF_ENOTFOUND when
 * there is none; otherwise as hf_config_read. *ret_path is in the cli's arena. */
HF_MUST_USE int cli_config_read(struct cli *cli, const char **ret_path,
                                struct hf_config **ret_config);

#endif
