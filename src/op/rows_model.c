/* The rows of `holdfast provider` and `holdfast config`. */
#include "op/op.h"

#define CONFIG_OPTION                                                                    \
    {                                                                                    \
        "config", "FILE", HF_IN_PATH, 0,                                                 \
            .help = "the configuration (default: holdfast/holdfast.toml in "             \
                    "XDG_CONFIG_HOME, or in ~/.config)"                                  \
    }

static const struct hf_input config_options[] = { CONFIG_OPTION, { .name = NULL } };
static const struct hf_input init_options[] = {
    CONFIG_OPTION,
    { "kind", "KIND", HF_IN_TEXT, 0,
      .help = "openai-chat (the default) or anthropic-messages" },
    { "base-url", "URL", HF_IN_TEXT, 0,
      .help = "base URL of the endpoint (default: the vendor's)" },
    { "model", "ID", HF_IN_TEXT, 0, .help = "name of the model at the endpoint" },
    { "key-env", "NAME", HF_IN_TEXT, 0,
      .help = "environment variable with the key (default: the vendor's; with --base-url "
              "none)" },
    { "root", "FOLDER", HF_IN_PATH, 0,
      .help = "root folder of the agent's file tools (default: the current folder)" },
    { "force", NULL, HF_IN_FLAG, 0, .help = "overwrite an existing file" },
    { .name = NULL },
};
static const struct hf_input no_options[] = { { .name = NULL } };
static const struct hf_input check_options[] = {
    { "name", "NAME", HF_IN_TEXT, HF_IN_NEEDED | HF_IN_BARE,
      .help = "the provider: the NAME of a [provider.NAME]" },
    CONFIG_OPTION,
    { "model", "NAME", HF_IN_TEXT, 0,
      .help = "one of its models (default: the first in the file)" },
    { "no-tools", NULL, HF_IN_FLAG, 0,
      .help = "offer no tool, to a model that refuses requests with tools" },
    { "record", "FILE", HF_IN_PATH, 0,
      .help = "write the exchange as a script that can be played offline; the key is "
              "not in it" },
    { .name = NULL },
};

const struct hf_input op_worker_inputs[] = {
    { "agent", "NAME", HF_IN_TEXTS, 0,
      .help = "an [agent.NAME] of the configuration (default: all of them)" },
    { "turns", "N", HF_IN_INT, 0, .help = "sessions held at once (default: 64)", .min = 1,
      .max = 10000 },
    { "grace", "DURATION", HF_IN_MS, 0,
      .help = "time that running turns have after SIGTERM before they are handed back "
              "(default: 30s)" },
    { "ttl", "DURATION", HF_IN_MS, 0,
      .help =
          "term of the leases of sessions, after which another worker takes over what "
          "a lost worker held (default: 30s)",
      .min = 1 },
    CONFIG_OPTION,
    { "scripted", NULL, HF_IN_FLAG, 0,
      .help = "use the built-in scripted model instead of a configuration; --agent names "
              "its agent" },
    { .name = NULL },
};

const struct op_example op_worker_examples[] = {
    { "drive the sessions of all configured agents", "holdfast worker" },
    { "only sessions of one agent, ten at a time",
      "holdfast worker --agent helper --turns 10" },
    { "without any configuration", "holdfast worker --scripted" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "every provider, and where its key comes from", "holdfast provider list" },
    { .what = NULL },
};
static const struct op_example provider_check_examples[] = {
    { "make one small call", "holdfast provider check main" },
    { "record the answer of the server",
      "holdfast provider check main --record main.script" },
    { .what = NULL },
};
static const struct op_example config_check_examples[] = {
    { "check a file before it is used", "holdfast config check --config new.toml" },
    { .what = NULL },
};
static const struct op_example init_examples[] = {
    { "default file, default endpoint", "holdfast config init" },
    { "for a server on this machine",
      "holdfast config init --base-url http://127.0.0.1:8080/v1 --model small" },
    { .what = NULL },
};
static const struct op_example keys_examples[] = {
    { "list the keys", "holdfast config keys" },
    { .what = NULL },
};

const struct op op_provider_rows[] = {
    { "provider.list", "list the providers of the configuration",
      "No provider is called, and no key is read.", config_options,
      .examples = list_examples, .exits = "3" },
    { "provider.check", "make one small call to a provider",
      "Requests a short answer and a tool call from one of its models, and prints the "
      "model "
      "that answered, the time, whether it streamed and called the tool, and the tokens "
      "used. The call is made once and is never repeated. Exits with 6 after a transient "
      "error, with 2 after any other.",
      check_options, .examples = provider_check_examples, .exits = "3 6" },
    { .name = NULL },
};

const struct op op_config_rows[] = {
    { "config.check", "check a configuration file",
      "Reads the whole file and reports the first line that is wrong. Then it lists "
      "missing files and variables that the configuration refers to, and prints an "
      "example if there is no agent. No provider is called, and no key is read; "
      "`provider check` does both.",
      config_options, .examples = config_check_examples, .exits = "3" },
    { "config.init", "write a first configuration file",
      "The file has one provider, one model, one agent and one tool, with the current "
      "folder as the root of the agent's file tools. An existing file is not changed.",
      init_options, .examples = init_examples, .exits = "7" },
    { "config.keys", "list every key of a configuration file", NULL, no_options,
      .examples = keys_examples },
    { .name = NULL },
};
