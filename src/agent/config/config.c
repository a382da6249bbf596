/* Configuration files: their tables, the links between them, and looking them up. */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/config/config.h"
#include "base/err.h"
#include "base/text.h"

static const char *const table_words[] = {
#define X(name, word) #word,
    HF_CONFIG_TABLES(X)
#undef X
};

#define X(name, word, recovery) #word,
static const char *const builtins[] = { HF_BUILTIN_TOOLS(X) };
#undef X

bool config_is_builtin(const char *name)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
        if (hf_same(builtins[i], name))
            return true;
    return false;
}

struct config_entry *config_find(const struct hf_config *config,
                                 enum hf_config_table kind, const char *name)
{
    struct config_entry *entry = config->first[kind];
    while (entry && !hf_same(entry->name, name))
        entry = entry->next;
    return entry;
}

/* The entry of a kind whose name is nearest. */
static struct hf_near nearest(const struct hf_config *config, enum hf_config_table kind,
                              const char *name)
{
    struct hf_near near;
    hf_near_begin(&near, name);
    for (const struct config_entry *entry = config->first[kind]; entry;
         entry = entry->next)
        hf_near_try(&near, entry->name);
    return near;
}

/* ---- links ----------------------------------------------------------------------------- */

/* A table that names another one, which is not there. */
static int no_link(const struct hf_config *config, const char *from,
                   enum hf_config_table kind, const char *name, struct hf_err *err)
{
    struct hf_near near = nearest(config, kind, name);
    return hf_fail(err, HF_EINVAL, "config",
                   near.best ? "[%.70s]: there is no [%s.%.60s]; did you mean %.60s?"
                             : "[%.70s]: there is no [%s.%.60s]%s",
                   from, table_words[kind], name, near.best ? near.best : "");
}

static int check_tools(const struct hf_config *config, const struct agent *agent,
                       struct hf_err *err)
{
    for (size_t i = 0; agent->shown.tools && agent->shown.tools[i]; i++) {
        const char *name = agent->shown.tools[i];
        struct hf_near near = nearest(config, HF_CONFIG_TOOL, name);
        if (config_is_builtin(name) || config_find(config, HF_CONFIG_TOOL, name))
            continue;
        for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
            hf_near_try(&near, builtins[k]);
        if (near.best)
            return hf_fail(err, HF_EINVAL, "config",
                           "[agent.%.60s]: there is no tool %.60s; did you mean %.60s?",
                           agent->entry.name, name, near.best);
        return hf_fail(err, HF_EINVAL, "config",
                       "[agent.%.60s]: there is no tool %.60s: write a [tool.%.60s], or "
                       "name a built-in tool (read_file, write_file, edit_file, "
                       "list_files, run_command, fetch_url)",
                       agent->entry.name, name, name);
    }
    return 0;
}

/* Tables may be in any order, so this waits until all were read. */
static int check_links(const struct hf_config *config, struct hf_err *err)
{
    struct hf_err from = { 0 };
    int rc = 0;
    for (struct config_entry *at = config->first[HF_CONFIG_MODEL]; at && rc == 0;
         at = at->next) {
        const struct model *model = (const struct model *)at;
        (void)hf_fail(&from, HF_EINVAL, NULL, "model.%.60s", at->name);
        if (!config_find(config, HF_CONFIG_PROVIDER, model->provider))
            rc = no_link(config, from.message, HF_CONFIG_PROVIDER, model->provider, err);
    }
    for (struct config_entry *at = config->first[HF_CONFIG_AGENT]; at && rc == 0;
         at = at->next) {
        const struct agent *agent = (const struct agent *)at;
        (void)hf_fail(&from, HF_EINVAL, NULL, "agent.%.60s", at->name);
        if (!config_find(config, HF_CONFIG_MODEL, agent->shown.model))
            rc = no_link(config, from.message, HF_CONFIG_MODEL, agent->shown.model, err);
        else
            rc = check_tools(config, agent, err);
    }
    return rc;
}

/* ---- the file -------------------------------------------------------------------------- */

static int read_table(struct hf_config *config, const struct hf_toml_table *table,
                      struct hf_err *err)
{
    struct config_reading reading = { .config = config, .table = table, .err = err };
    struct hf_near near;
    hf_near_begin(&near, table->path[0]);
    for (int i = 0; i < HF_CONFIG_TABLE_COUNT; i++) {
        hf_near_try(&near, table_words[i]);
        if (!hf_same(table->path[0], table_words[i]))
            continue;
        if (table->depth < HF_TOML_DEPTH)
            return hf_fail(err, HF_EINVAL, "config",
                           "line %d: write [%s.NAME]: a table of this kind has a name",
                           table->line, table_words[i]);
        return config_read_entry(&reading, (enum hf_config_table)i);
    }
    return hf_fail(err, HF_EINVAL, "config",
                   near.best
                       ? "line %d: unknown table [%.60s]; did you mean [%s.NAME]?"
                       : "line %d: unknown table [%.60s]; there are [provider.NAME], "
                         "[model.NAME], [agent.NAME] and [tool.NAME]%s",
                   table->line, table->path[0], near.best ? near.best : "");
}

static int read_tables(struct hf_config *config, struct hf_span text, struct hf_err *err)
{
    const struct hf_toml_table *table = NULL;
    int rc = hf_toml_read(&config->arena, text, &table, err);
    if (rc)
        return rc;
    if (table->pairs)
        return hf_fail(err, HF_EINVAL, "config",
                       "line %d: the key %.60s is in no table; write it below a table "
                       "such as [provider.NAME] or [agent.NAME]",
                       table->pairs->value.line, table->pairs->key);
    for (table = table->next; table && rc == 0; table = table->next)
        rc = read_table(config, table, err);
    return rc ? rc : check_links(config, err);
}

int hf_config_read(struct hf_span text, struct hf_config **ret_config, struct hf_err *err)
{
    struct hf_arena arena;
    if (text.len > (size_t)HF_MAX_CONFIG_BYTES)
        return hf_fail(err, HF_ETOOBIG, "config",
                       "a configuration has at most %lld bytes",
                       (long long)HF_MAX_CONFIG_BYTES);
    hf_arena_init(&arena, hf_alloc_system());
    struct hf_config *config = hf_arena_new(&arena, struct hf_config);
    if (!config)
        return hf_fail_plain(err, HF_ENOMEM);
    config->arena = arena;
    int rc = read_tables(config, text, err);
    if (rc)
        hf_config_free(config);
    else
        *ret_config = config;
    return rc;
}

void hf_config_free(struct hf_config *config)
{
    if (!config)
        return;
    for (struct config_entry *at = config->first[HF_CONFIG_PROVIDER]; at; at = at->next)
        hf_secret_free(((struct provider *)at)->key);
    struct hf_arena arena = config->arena;
    hf_arena_fini(&arena);
}

/* ---- looking up ------------------------------------------------------------------------ */

static struct config_entry *entry_at(const struct hf_config *config,
                                     enum hf_config_table kind, size_t i)
{
    struct config_entry *entry = config->first[kind];
    for (; entry && i > 0; i--)
        entry = entry->next;
    return entry;
}

const char *hf_config_name(const struct hf_config *config, enum hf_config_table table,
                           size_t i)
{
    const struct config_entry *entry = entry_at(config, table, i);
    return entry ? entry->name : NULL;
}

static int find(const struct hf_config *config, enum hf_config_table kind,
                const char *name, struct config_entry **ret_entry, struct hf_err *err)
{
    struct hf_near near = nearest(config, kind, name);
    *ret_entry = config_find(config, kind, name);
    if (*ret_entry)
        return 0;
    return hf_fail(err, HF_ENOTFOUND, table_words[kind],
                   near.best ? "the configuration has no [%s.%.60s]; did you mean %.60s?"
                             : "the configuration has no [%s.%.60s]%s",
                   table_words[kind], name, near.best ? near.best : "");
}

int hf_config_endpoint(struct hf_config *config, const char *name,
                       struct hf_http_config *ret_http, struct hf_endpoint *ret_endpoint,
                       struct hf_err *err)
{
    struct config_entry *entry = NULL;
    int rc = find(config, HF_CONFIG_PROVIDER, name, &entry, err);
    struct provider *provider = (struct provider *)entry;
    for (int i = 0; i < KEY_SOURCES && rc == 0; i++)
        if (provider->key_from[i] && !provider->key)
            rc = hf_secret_new(name, (enum hf_secret_source)i, provider->key_from[i],
                               &provider->key, err);
    if (rc)
        return rc;
    provider->endpoint.key = provider->key;
    *ret_http = provider->http;
    *ret_endpoint = provider->endpoint;
    return 0;
}

bool hf_config_show(const struct hf_config *config, size_t i,
                    struct hf_config_shown *ret_shown)
{
    const struct provider *provider = (const struct provider *)entry_at(
        config, HF_CONFIG_PROVIDER, i);
    if (provider)
        *ret_shown = (struct hf_config_shown){ provider->entry.name,
                                               provider->endpoint.kind,
                                               provider->endpoint.base_url,
                                               provider->key_text };
    return provider != NULL;
}

int hf_config_model(const struct hf_config *config, const char *name,
                    struct hf_model_config *ret_model, const char **ret_provider,
                    struct hf_err *err)
{
    struct config_entry *entry = NULL;
    int rc = find(config, HF_CONFIG_MODEL, name, &entry, err);
    if (rc)
        return rc;
    *ret_model = ((struct model *)entry)->config;
    *ret_provider = ((struct model *)entry)->provider;
    return 0;
}

int hf_config_agent(const struct hf_config *config, const char *name,
                    struct hf_agent_entry *ret_agent, struct hf_err *err)
{
    struct config_entry *entry = NULL;
    int rc = find(config, HF_CONFIG_AGENT, name, &entry, err);
    if (rc == 0)
        *ret_agent = ((struct agent *)entry)->shown;
    return rc;
}

int hf_config_tool(const struct hf_config *config, const char *name,
                   struct hf_shell_tool *ret_tool, struct hf_err *err)
{
    struct config_entry *entry = NULL;
    int rc = find(config, HF_CONFIG_TOOL, name, &entry, err);
    if (rc == 0)
        *ret_tool = ((struct config_tool *)entry)->shown;
    return rc;
}

struct hf_approval hf_config_approval(const struct hf_config *config, const char *tool)
{
    const struct config_tool *entry = (const struct config_tool *)config_find(
        config, HF_CONFIG_TOOL, tool);
    return entry ? entry->shown.approval : (struct hf_approval){ 0 };
}
