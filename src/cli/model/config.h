/* The configuration file of the program. */
#ifndef HF_CLI_MODEL_CONFIG_H
#define HF_CLI_MODEL_CONFIG_H

#include <holdfast/config.h>

#include "cli/cli.h"

/* The path that --config names, or $XDG_CONFIG_HOME/holdfast/holdfast.toml; HF_EINVAL when no
 * folder is known. */
HF_MUST_USE int cli_config_path(struct cli *cli, const char **ret_path);

/* Reads what --config names, or $XDG_CONFIG_HOME/holdfast/holdfast.toml. HF_ENOTFOUND when
 * there is none; otherwise as hf_config_read. *ret_path is in the cli's arena. */
HF_MUST_USE int cli_config_read(struct cli *cli, const char **ret_path,
                                struct hf_config **ret_config);

/* The folder of a configuration file, absolute and with a slash at the end, in the cli's arena. */
HF_MUST_USE int cli_config_folder(struct cli *cli, const char *path,
                                  const char **ret_folder);

/* The prompt of an agent, from the configuration or from its file. HF_ENOTFOUND, HF_EINVAL,
 * HF_ETOOBIG. */
HF_MUST_USE int cli_config_prompt(struct cli *cli, const char *folder,
                                  const struct hf_agent_entry *entry,
                                  struct hf_span *ret_prompt);

struct cli_config_place {
    const struct hf_config *config;
    const char *folder;
    const char *locks; /* of the tools' processes; absolute */
};
/* The tools that an agent names. As hf_tools_new; the message names the agent. */
HF_MUST_USE int cli_config_tools(struct cli *cli, const struct cli_config_place *place,
                                 const struct hf_agent_entry *entry,
                                 struct hf_tools **ret_tools);

/* The same as a toolset, which says what no check looks at (hf_toolset_notice). The caller's. */
HF_MUST_USE int cli_config_toolset(struct cli *cli, struct hf_tools *tools,
                                   struct hf_toolset **ret_toolset);

/* The text of a configuration to begin with. A member that is NULL has a default. */
struct cli_config_wish {
    const char *kind;
    const char *base_url;
    const char *model;
    const char *key_env; /* NULL with a base_url: none */
    const char *root;    /* of the file tools */
};
/* Appends it. HF_EINVAL: an unknown kind. */
HF_MUST_USE int cli_config_example(struct cli *cli, const struct cli_config_wish *wish,
                                   struct hf_buf *buf);

#endif
