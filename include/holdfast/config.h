/* Configuration files: providers, models, agents and tools by name.
 *
 * A file is a subset of TOML (docs/configuration.md). Its tables become the structs that
 * hf_http_new, hf_endpoint_new, hf_model_new, hf_agent_new and hf_tools_new take.
 * examples/model_turn.c uses one.
 */
#ifndef HOLDFAST_CONFIG_H
#define HOLDFAST_CONFIG_H

#include <holdfast/model.h>
#include <holdfast/tools.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of tables: [provider.NAME], … */
#define HF_CONFIG_TABLES(X)                                                              \
    X(PROVIDER, provider)                                                                \
    X(MODEL, model)                                                                      \
    X(AGENT, agent)                                                                      \
    X(TOOL, tool)

#define X(name, word) HF_CONFIG_##name,
enum hf_config_table { HF_CONFIG_TABLES(X) HF_CONFIG_TABLE_COUNT };
#undef X

/* A key of a table, for people. */
struct hf_config_key {
    const char *table;
    const char *name;
    const char *type; /* "string", "integer", … */
    bool needed;
    const char *what;
};

/* All keys, table by table. */
HF_API const struct hf_config_key *hf_config_keys(size_t *ret_count);

struct hf_config;

/* Reads and checks a whole file. No key is read, and nothing is connected. HF_EINVAL has the
 * line and the table, and names the nearest known word for an unknown one; a message never
 * contains a value of the file. HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_config_read(struct hf_span text, struct hf_config **ret_config,
                                      struct hf_err *err);
HF_API void hf_config_free(struct hf_config *config); /* NULL is fine; zeroes the keys */

/* The name of the i-th table of a kind, in the order of the file; NULL after the last. */
HF_API const char *hf_config_name(const struct hf_config *config,
                                  enum hf_config_table table, size_t i);

/* The arguments of hf_http_new and hf_endpoint_new for [provider.NAME]. All of it is borrowed from
 * the configuration, which must outlive the provider. The key is read now, once. HF_ENOTFOUND:
 * there is no such provider, or its key is missing; HF_EINVAL, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_config_endpoint(struct hf_config *config, const char *name,
                                          struct hf_http_config *ret_http,
                                          struct hf_endpoint *ret_endpoint,
                                          struct hf_err *err);

/* A provider for people. */
struct hf_config_shown {
    const char *name;
    const char *kind;
    const char *base_url;
    const char *key; /* where it comes from: "env OPENAI_KEY", or "none" */
};
/* The i-th provider of the file; false after the last. Reads no key. */
HF_API bool hf_config_show(const struct hf_config *config, size_t i,
                           struct hf_config_shown *ret_shown);

/* The arguments of hf_model_new for [model.NAME], and the name of its provider. The caller sets
 * `provider` in it. Borrowed as above. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_config_model(const struct hf_config *config, const char *name,
                                       struct hf_model_config *ret_model,
                                       const char **ret_provider, struct hf_err *err);

/* An agent as the file has it. Texts and lists are NULL where there is none; lists end in NULL.
 * Relative paths are as they were written: the caller knows the folder of the file. */
struct hf_agent_entry {
    const char *name;
    const char *model; /* the NAME of a [model.NAME], which is there */
    const char *prompt;
    const char *prompt_file;
    const char *const *tools; /* each is a [tool.NAME] of the file or a built-in tool */
    const char *root;
    const char *const *allow;
    int64_t turn_budget; /* 0: not given */
    int64_t no_progress_budget;
};
/* [agent.NAME]; borrowed as above. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_config_agent(const struct hf_config *config, const char *name,
                                       struct hf_agent_entry *ret_agent,
                                       struct hf_err *err);
/* [tool.NAME] of a command; borrowed as above. HF_ENOTFOUND. */
HF_API HF_MUST_USE int hf_config_tool(const struct hf_config *config, const char *name,
                                      struct hf_shell_tool *ret_tool, struct hf_err *err);
/* The approval rules of [tool.NAME], also for a built-in tool; zero where there is no such table.
 * Borrowed as above. */
HF_API struct hf_approval hf_config_approval(const struct hf_config *config,
                                             const char *tool);

#ifdef __cplusplus
}
#endif
#endif
