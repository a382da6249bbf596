/* holdfast config check, config keys: the configuration file. */
#include "cli/model/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The file of the user's configuration folder; NULL when that is not known. A relative
 * XDG_CONFIG_HOME is ignored, as its specification says. */
static int default_path(struct cli *cli, const char **ret_path)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const char *path = NULL;
    if (config && config[0] == '/')
        path = hf_arena_join(&cli->arena, config, "/holdfast/holdfast.toml");
    else if (home && home[0] == '/')
        path = hf_arena_join(&cli->arena, home, "/.config/holdfast/holdfast.toml");
    else
        return hf_fail(
            &cli->err, HF_EINVAL, "--config",
            "no configuration is named, and HOME is not set: use --config FILE");
    *ret_path = path;
    return path ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* The path before the message that only has the line. */
static int say_where(struct cli *cli, const char *path, int rc)
{
    struct hf_err why = cli->err;
    if (rc != HF_EINVAL && rc != HF_ETOOBIG)
        return rc;
    return hf_fail(&cli->err, rc, NULL, "%.100s: %s", path, why.message);
}

int cli_config_path(struct cli *cli, const char **ret_path)
{
    *ret_path = cli_text(cli, "config");
    return *ret_path ? 0 : default_path(cli, ret_path);
}

int cli_config_read(struct cli *cli, const char **ret_path, struct hf_config **ret_config)
{
    struct hf_span text = { 0 };
    const char *path = NULL;
    int rc = cli_config_path(cli, &path);
    if (rc == 0)
        rc = cli_read_file(cli, path, (size_t)HF_MAX_CONFIG_BYTES, &text);
    if (rc == HF_ENOTFOUND)
        cli->action = "write one with `holdfast config init`, or name another with "
                      "--config";
    if (rc)
        return rc;
    rc = hf_config_read(text, ret_config, &cli->err);
    *ret_path = path;
    return rc ? say_where(cli, path, rc) : 0;
}

/* ---- check --------------------------------------------------------------------------------- */

/* A table about a built-in tool declares none. */
static int64_t count(const struct hf_config *config, enum hf_config_table table)
{
    enum hf_builtin_tool builtin;
    const char *name = NULL;
    int64_t counted = 0;
    for (size_t i = 0; (name = hf_config_name(config, table, i)); i++)
        counted += table != HF_CONFIG_TOOL || !hf_builtin_tool_read(name, &builtin);
    return counted;
}

#define LINES 64

/* Lines about a file that is right, each once; those past the last place are left out. */
struct config_lines {
    const char *at[LINES];
    size_t count;
};

/* What the file refers to and does not have, and what no check looks at. */
struct missing {
    struct cli *cli;
    struct config_lines lines;
    struct config_lines notices;
};

static void add_line(struct cli *cli, struct config_lines *lines, const char *text)
{
    const char *kept = hf_arena_text(&cli->arena, text);
    for (size_t i = 0; i < lines->count; i++)
        if (hf_same(lines->at[i], kept))
            return;
    if (kept && lines->count < LINES)
        lines->at[lines->count++] = kept;
}

static void add_missing(struct missing *missing, const char *text)
{
    add_line(missing->cli, &missing->lines, text);
}

/* A key is not read: a variable is set or not, and a file is there or not. */
static void look_at_keys(struct missing *missing, const struct hf_config *config)
{
    struct hf_config_shown shown;
    struct hf_err said = { 0 };
    for (size_t i = 0; hf_config_show(config, i, &shown); i++) {
        if (!hf_starts_with(shown.key, "env ") || getenv(shown.key + strlen("env ")))
            continue;
        (void)hf_fail(&said, HF_ENOTFOUND, NULL,
                      "[provider.%.60s]: the variable %.100s with its key is not set",
                      shown.name, shown.key + strlen("env "));
        add_missing(missing, said.message);
    }
}

static int look_at_tools(struct missing *missing, struct hf_tools *tools)
{
    struct hf_toolset *toolset = NULL;
    const char *notice = NULL;
    int rc = cli_config_toolset(missing->cli, tools, &toolset);
    for (size_t i = 0; rc == 0 && (notice = hf_toolset_notice(toolset, i)); i++)
        add_line(missing->cli, &missing->notices, notice);
    hf_toolset_unref(toolset);
    return rc;
}

static int look_at_agents(struct missing *missing, const struct hf_config *config,
                          const char *folder)
{
    struct cli *cli = missing->cli;
    const struct cli_config_place place = { config, folder, "/tmp" };
    const char *name = NULL;
    for (size_t i = 0; (name = hf_config_name(config, HF_CONFIG_AGENT, i)); i++) {
        struct hf_agent_entry entry;
        struct hf_span prompt;
        struct hf_tools *tools = NULL;
        int rc = hf_config_agent(config, name, &entry, &cli->err);
        if (rc == 0)
            rc = cli_config_prompt(cli, folder, &entry, &prompt);
        if (rc == 0)
            rc = cli_config_tools(cli, &place, &entry, &tools);
        if (rc == 0)
            rc = look_at_tools(missing, tools);
        hf_tools_free(tools);
        if (rc == HF_ENOMEM)
            return rc;
        if (rc)
            add_missing(missing, cli->err.message);
    }
    return 0;
}

static int look(struct missing *missing, const struct hf_config *config, const char *path)
{
    const char *folder = NULL;
    int rc = cli_config_folder(missing->cli, path, &folder);
    look_at_keys(missing, config);
    if (rc == 0)
        rc = look_at_agents(missing, config, folder);
    if (!hf_config_name(config, HF_CONFIG_AGENT, 0))
        add_missing(missing, "there is no [agent.NAME]: `chat` and `worker` need one");
    missing->cli->action = NULL;
    return rc;
}

static void put_count(struct cli *cli, const char *before, int64_t n, const char *what)
{
    cli_putf(cli, "%s%lld %s%s", before, (long long)n, what, n == 1 ? "" : "s");
}

static void put_lines(struct cli *cli, const char *before,
                      const struct config_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        cli_put(cli, before);
        cli_put_clean(cli, lines->at[i]);
        cli_put(cli, "\n");
    }
}

static void write_lines(struct cli *cli, const char *key,
                        const struct config_lines *lines)
{
    hf_json_key(&cli->writer, key);
    hf_json_array(&cli->writer);
    for (size_t i = 0; i < lines->count; i++)
        hf_json_str(&cli->writer, lines->at[i]);
    hf_json_end(&cli->writer);
}

static int say_missing(struct cli *cli, const struct missing *missing, bool example)
{
    const struct cli_config_wish wish = { .root = "/the/folder/of/your/files" };
    struct hf_buf text;
    put_lines(cli, "missing: ", &missing->lines);
    put_lines(cli, "notice: ", &missing->notices);
    if (!example)
        return 0;
    hf_buf_init(&text, hf_alloc_system(), (size_t)HF_MAX_CONFIG_BYTES);
    int rc = cli_config_example(cli, &wish, &text);
    if (rc == 0) {
        cli_put(cli, "a configuration that works, once its key is set:\n\n");
        cli_put(cli, hf_buf_str(&text));
    }
    hf_buf_fini(&text);
    return rc;
}

int cmd_config_check(struct cli *cli)
{
    struct hf_config *config = NULL;
    const char *path = NULL;
    struct missing missing = { .cli = cli };
    int64_t counts[HF_CONFIG_TABLE_COUNT];
    int rc = cli_config_read(cli, &path, &config);
    if (rc)
        return rc;
    for (int i = 0; i < HF_CONFIG_TABLE_COUNT; i++)
        counts[i] = count(config, (enum hf_config_table)i);
    rc = look(&missing, config, path);
    hf_config_free(config);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "path", path);
        hf_json_put_i64(&cli->writer, "providers", counts[HF_CONFIG_PROVIDER]);
        hf_json_put_i64(&cli->writer, "models", counts[HF_CONFIG_MODEL]);
        hf_json_put_i64(&cli->writer, "agents", counts[HF_CONFIG_AGENT]);
        hf_json_put_i64(&cli->writer, "tools", counts[HF_CONFIG_TOOL]);
        write_lines(cli, "missing", &missing.lines);
        write_lines(cli, "notices", &missing.notices);
        cli_ok_end(cli);
        return 0;
    }
    cli_put_clean(cli, path);
    put_count(cli, ": ok, ", counts[HF_CONFIG_PROVIDER], "provider");
    put_count(cli, ", ", counts[HF_CONFIG_MODEL], "model");
    put_count(cli, ", ", counts[HF_CONFIG_AGENT], "agent");
    put_count(cli, ", ", counts[HF_CONFIG_TOOL], "tool");
    cli_put(cli, "\n");
    return say_missing(cli, &missing, counts[HF_CONFIG_AGENT] == 0);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void put_key(struct cli *cli, const struct hf_config_key *key)
{
    hf_json_object(&cli->writer);
    hf_json_put_str(&cli->writer, "table", key->table);
    hf_json_put_str(&cli->writer, "key", key->name);
    hf_json_put_str(&cli->writer, "type", key->type);
    hf_json_put_bool(&cli->writer, "required", key->needed);
    hf_json_put_str(&cli->writer, "meaning", key->what);
    hf_json_end(&cli->writer);
}

int cmd_config_keys(struct cli *cli)
{
    static const struct cli_column columns[] = {
        { .title = "table" },
        { .title = "key" },
        { .title = "type", .rank = 2 },
        { .title = "required", .rank = 1 },
        { .title = "meaning", .least = 20 },
    };
    size_t key_count = 0;
    const struct hf_config_key *keys = hf_config_keys(&key_count);
    struct cli_table table;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "keys");
        hf_json_array(&cli->writer);
        for (size_t i = 0; i < key_count; i++)
            put_key(cli, &keys[i]);
        hf_json_end(&cli->writer);
        cli_ok_end(cli);
        return 0;
    }
    cli_table_begin(&table, cli, columns, 5);
    for (size_t i = 0; i < key_count; i++) {
        const char *row[] = { keys[i].table, keys[i].name, keys[i].type,
                              keys[i].needed ? "yes" : NULL, keys[i].what };
        cli_table_row(&table, row, 0, CLI_PLAIN);
    }
    return cli_table_end(&table);
}
