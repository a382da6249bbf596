/* What can be typed after `holdfast provider` and `holdfast config`. */
#include "cli/cli.h"

#define END_OPTIONS                                                                      \
    {                                                                                    \
        .name = NULL                                                                     \
    }
#define END_EXAMPLES                                                                     \
    {                                                                                    \
        .what = NULL                                                                     \
    }

#define CONFIG_OPTION                                                                    \
    {                                                                                    \
        "config", "FILE", CLI_PATH, 0,                                                   \
            .help = "the configuration (default: holdfast/holdfast.toml in "             \
                    "XDG_CONFIG_HOME, or in ~/.config)"                                  \
    }

static const struct cli_option config_options[] = { CONFIG_OPTION, END_OPTIONS };
static const struct cli_option no_options[] = { END_OPTIONS };
static const struct cli_option check_options[] = {
    { "name", "NAME", CLI_TEXT, CLI_NEEDED | CLI_BARE,
      .help = "the provider: the NAME of a [provider.NAME]" },
    CONFIG_OPTION,
    { "model", "NAME", CLI_TEXT, 0,
      .help = "one of its models (default: the first in the file)" },
    { "record", "FILE", CLI_PATH, 0,
      .help = "write the exchange as a script that can be played offline; the key is "
              "not in it" },
    END_OPTIONS,
};

static const struct cli_example list_examples[] = {
    { "every provider, and where its key comes from", "holdfast provider list" },
    END_EXAMPLES,
};
static const struct cli_example provider_check_examples[] = {
    { "one tiny call", "holdfast provider check main" },
    { "keep what the server answered",
      "holdfast provider check main --record main.script" },
    END_EXAMPLES,
};
static const struct cli_example config_check_examples[] = {
    { "a file that is not in use yet", "holdfast config check --config new.toml" },
    END_EXAMPLES,
};
static const struct cli_example keys_examples[] = {
    { "what can be in a configuration", "holdfast config keys" },
    END_EXAMPLES,
};

const struct cli_command cli_provider_commands[] = {
    { "provider list", "list the providers of the configuration",
      "Nothing is called, and no key is read.", config_options, list_examples, 0, NULL,
      "3", cmd_provider_list, NULL },
    { "provider check", "make one small call to a provider",
      "Asks one of its models for a short answer and a call of a tool, and prints which "
      "model answered, how long it took, whether it streamed and called the tool, and "
      "the "
      "tokens used. The call is made once and is never repeated. An error that may pass "
      "exits with 6, any other with 2.",
      check_options, provider_check_examples, 0, NULL, "3 6", cmd_provider_check, NULL },
    { .path = NULL },
};

const struct cli_command cli_config_commands[] = {
    { "config check", "check a configuration file",
      "Reads all of it and names the first line that is wrong. Nothing is called, and no "
      "key is read; `provider check` does both.",
      config_options, config_check_examples, 0, NULL, "3", cmd_config_check, NULL },
    { "config keys", "list every key of a configuration file", NULL, no_options,
      keys_examples, 0, NULL, NULL, cmd_config_keys, NULL },
    { .path = NULL },
};
