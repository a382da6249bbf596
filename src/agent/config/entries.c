/* The rules of each kind of table: its own checks, and the structs that are made from its values.
 * */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/check.h"
#include "agent/config/config.h"
#include "agent/wire/codec.h"
#include "base/err.h"
#include "base/text.h"

/* ---- providers ------------------------------------------------------------------------- */

/* "env OPENAI_KEY": how people are told where a key is. */
static int name_source(const struct config_reading *reading, struct provider *provider)
{
    static const char *const words[] = { "file ", "env ", "command ", "credential " };
    struct hf_arena *arena = &reading->config->arena;
    provider->key_text = "none";
    int count = 0;
    for (int i = 0; i < KEY_SOURCES; i++)
        if (provider->key_from[i]) {
            provider->key_text = hf_arena_join(arena, words[i], provider->key_from[i]);
            count++;
        }
    if (count > 1)
        return config_fail(reading, reading->table->line,
                           "a provider can have only one of key_file, key_env, "
                           "key_command and key_credential");
    return provider->key_text ? 0 : hf_fail_plain(reading->err, HF_ENOMEM);
}

static int read_provider(struct config_reading *reading, struct provider *provider)
{
    struct hf_err why = { 0 };
    provider->http.size = sizeof(provider->http);
    provider->endpoint.size = sizeof(provider->endpoint);
    provider->endpoint.name = provider->entry.name;
    int rc = config_read_pairs(reading);
    if (rc == 0 && hf_endpoint_check(&provider->endpoint, &why))
        rc = config_fail(reading, reading->table->line, why.message);
    return rc ? rc : name_source(reading, provider);
}

/* ---- models ---------------------------------------------------------------------------- */

static void put_value(struct hf_json *json, const struct hf_toml_value *value)
{
    if (value->type == HF_TOML_STRING)
        hf_json_str(json, value->text);
    else
        hf_json_raw(json, value->text);
}

/* The options as the JSON that hf_model_new takes. */
static int write_options(const struct config_reading *reading, struct model *model)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, reading->config->arena.alloc, (size_t)HF_MAX_CONFIG_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    for (int i = 0; i < HF_OPTION_COUNT; i++) {
        const struct hf_toml_value *value = &model->options[i];
        if (value->line == 0)
            continue;
        hf_json_key(&json, hf_model_option_name((enum hf_model_option)i));
        if (value->type != HF_TOML_ARRAY) {
            put_value(&json, value);
            continue;
        }
        hf_json_array(&json);
        for (const struct hf_toml_value *item = value->items; item; item = item->next)
            put_value(&json, item);
        hf_json_end(&json);
    }
    hf_json_end(&json);
    size_t len = text.len;
    char *kept = hf_buf_keep(&text, &reading->config->arena);
    model->config.options = (struct hf_span){ kept, len };
    return kept ? 0 : hf_fail_plain(reading->err, HF_ENOMEM);
}

static int read_model(struct config_reading *reading, struct model *model)
{
    struct hf_err why = { 0 };
    model->config.size = sizeof(model->config);
    model->config.id = model->entry.name;
    int rc = config_read_pairs(reading);
    if (rc == 0)
        rc = write_options(reading, model);
    if (rc == 0 && hf_model_check(&model->config, &why))
        rc = config_fail(reading, reading->table->line, why.message);
    return rc;
}

/* ---- agents ---------------------------------------------------------------------------- */

static int check_twice(const struct config_reading *reading, const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        for (size_t j = 0; j < i; j++)
            if (hf_same(list[i], list[j]))
                return config_fail_word(reading, reading->table->line,
                                        "tools names this tool twice:", list[i]);
    return 0;
}

/* A built-in tool that works in a folder has one. */
static int check_root(const struct config_reading *reading, const struct agent *agent)
{
    for (size_t i = 0; agent->shown.tools && agent->shown.tools[i]; i++) {
        const char *name = agent->shown.tools[i];
        if (!agent->shown.root && config_is_builtin(name) && !hf_same(name, "fetch_url"))
            return config_fail_word(reading, reading->table->line,
                                    "the key root (a folder) is needed for the tool",
                                    name);
    }
    return 0;
}

static int read_agent(struct config_reading *reading, struct agent *agent)
{
    int line = reading->table->line;
    agent->shown.name = agent->entry.name;
    int rc = config_read_pairs(reading);
    if (rc == 0 && agent->shown.prompt && agent->shown.prompt_file)
        rc = config_fail(reading, line, "prompt and prompt_file exclude each other");
    if (rc == 0 && agent->protocol && !hf_same(agent->protocol, "standard"))
        rc = config_fail_word(reading, line,
                              "protocol must be standard; this program does not have",
                              agent->protocol);
    if (rc == 0 && (agent->shown.turn_budget < 0 || agent->shown.no_progress_budget < 0))
        rc = config_fail(reading, line, "a budget is above 0");
    if (rc == 0)
        rc = check_twice(reading, agent->shown.tools);
    return rc ? rc : check_root(reading, agent);
}

/* ---- tools ----------------------------------------------------------------------------- */

static void run_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
}

static enum hf_probe probe_nothing(void *user, struct hf_invocation *call)
{
    (void)user;
    (void)call;
    return HF_PROBE_CANNOT_TELL;
}

/* The policy of approve_otherwise. */
static int read_approval(const struct config_reading *reading, struct config_tool *tool)
{
    struct hf_approval *approval = &tool->shown.approval;
    const struct hf_tool_wait_terms *terms = &approval->terms;
    int line = reading->table->line;
    const char *word = tool->approve_otherwise;
    if (!approval->rule &&
        (approval->question || terms->answerer || terms->within_ms || word))
        return config_fail(reading, line,
                           "approve_question, approve_by, approve_within and "
                           "approve_otherwise need the key approve");
    if (!word)
        return 0;
    for (int i = HF_AT_DEADLINE_RESULT; i < HF_AT_DEADLINE_NEXT; i++)
        if (hf_same(word, hf_wait_policy_word((enum hf_wait_policy)i)))
            approval->terms.at_deadline = (enum hf_wait_policy)i;
    return terms->at_deadline
               ? 0
               : config_fail_word(
                     reading, line,
                     "approve_otherwise is deny, approve, result or fail_turn, and not",
                     word);
}

/* Name, schema, limits and rule are checked by the toolset that will have the tool. */
static int check_tool(const struct config_reading *reading,
                      const struct hf_shell_tool *shell)
{
    struct hf_toolset *set = NULL;
    struct hf_err why = { 0 };
    struct hf_tool tool = { .size = sizeof(tool),
                            .name = shell->name,
                            .description = shell->description,
                            .schema = shell->schema,
                            .recovery = shell->recovery,
                            .timeout_ms = shell->timeout_ms,
                            .output_bytes = shell->output_bytes,
                            .run = run_nothing,
                            .approval = shell->approval };
    if (shell->recovery == HF_RECOVERY_PROBE)
        tool.probe = probe_nothing;
    int rc = hf_toolset_new(NULL, &set, reading->err);
    if (rc == 0 && (rc = hf_toolset_add(set, &tool, &why)))
        rc = hf_same(why.field, "approval")
                 ? config_fail(
                       reading, reading->table->line,
                       "approve is \"never\", \"always\", or a rule such as "
                       "'{\"/amount\":{\"minimum\":100}}': JSON pointers into the "
                       "arguments, each with a JSON Schema")
                 : config_fail(reading, reading->table->line, why.message);
    hf_toolset_unref(set);
    return rc;
}

/* The table of a built-in tool says only which of its calls need an approval. */
static int read_builtin(struct config_reading *reading, struct config_tool *tool)
{
    for (const struct hf_toml_pair *pair = reading->table->pairs; pair; pair = pair->next)
        if (!hf_starts_with(pair->key, "approve"))
            return config_fail_word(reading, pair->value.line,
                                    "a built-in tool has this name: its table takes "
                                    "approve and the like, and not",
                                    pair->key);
    reading->partial = true;
    int rc = config_read_pairs(reading);
    if (rc == 0)
        rc = read_approval(reading, tool);
    tool->shown.recovery = HF_RECOVERY_SAFE; /* for the check */
    return rc ? rc : check_tool(reading, &tool->shown);
}

static int read_command(struct config_reading *reading, struct config_tool *tool)
{
    struct hf_shell_tool *shown = &tool->shown;
    int line = reading->table->line;
    int rc = config_read_pairs(reading);
    if (rc)
        return rc;
    if (tool->schema)
        shown->schema = (struct hf_span){ tool->schema, strlen(tool->schema) };
    shown->flags = hf_same(tool->input, "flags");
    if (tool->input && !shown->flags && !hf_same(tool->input, "stdin"))
        return config_fail_word(reading, line, "input must be stdin or flags, not",
                                tool->input);
    if (!hf_recovery_read(tool->recovery, &shown->recovery))
        return config_fail_word(reading, line,
                                "recovery must be safe, keyed, probe or ask, not",
                                tool->recovery);
    if (!shown->argv[0])
        return config_fail(reading, line, "command names no program");
    if ((shown->recovery == HF_RECOVERY_PROBE) != (shown->probe_argv != NULL))
        return config_fail(reading, line,
                           "the class probe needs the key probe, and no other has it");
    rc = read_approval(reading, tool);
    return rc ? rc : check_tool(reading, shown);
}

static int read_tool(struct config_reading *reading, struct config_tool *tool)
{
    tool->shown.size = sizeof(tool->shown);
    tool->shown.name = tool->entry.name;
    return config_is_builtin(tool->entry.name) ? read_builtin(reading, tool)
                                               : read_command(reading, tool);
}

/* ---- all ------------------------------------------------------------------------------- */

int config_read_entry(struct config_reading *reading, enum hf_config_table kind)
{
    static const size_t sizes[] = { [HF_CONFIG_PROVIDER] = sizeof(struct provider),
                                    [HF_CONFIG_MODEL] = sizeof(struct model),
                                    [HF_CONFIG_AGENT] = sizeof(struct agent),
                                    [HF_CONFIG_TOOL] = sizeof(struct config_tool) };
    struct config_entry **tail = &reading->config->first[kind];
    struct config_entry *entry = hf_arena_take(&reading->config->arena, sizes[kind]);
    if (!entry)
        return hf_fail_plain(reading->err, HF_ENOMEM);
    entry->name = reading->table->path[1];
    entry->line = reading->table->line;
    reading->into = entry;
    while (*tail)
        tail = &(*tail)->next;
    *tail = entry;
    switch (kind) {
    case HF_CONFIG_PROVIDER: return read_provider(reading, (struct provider *)entry);
    case HF_CONFIG_MODEL: return read_model(reading, (struct model *)entry);
    case HF_CONFIG_AGENT: return read_agent(reading, (struct agent *)entry);
    case HF_CONFIG_TOOL: return read_tool(reading, (struct config_tool *)entry);
    case HF_CONFIG_TABLE_COUNT: break;
    }
    return HF_EINTERNAL;
}
