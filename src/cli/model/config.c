/* holdfast config check, config keys: the configuration file. */
#include "cli/model/config.h"

#include <stdlib.h>
#include <string.h>

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
        return hf_fail(&cli->err, HF_EINVAL, "--config",
                       "no configuration is named: use --config FILE (HOME is not set)");
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

int cli_config_read(struct cli *cli, const char **ret_path, struct hf_config **ret_config)
{
    struct hf_span text = { 0 };
    const char *path = cli_text(cli, "config");
    int rc = path ? 0 : default_path(cli, &path);
    if (rc == 0)
        rc = cli_read_file(cli, path, (size_t)HF_MAX_CONFIG_BYTES, &text);
    if (rc == HF_ENOTFOUND)
        cli->action = "write the file (docs/configuration.md has one to begin with), or "
                      "name another with --config";
    if (rc)
        return rc;
    rc = hf_config_read(text, ret_config, &cli->err);
    *ret_path = path;
    return rc ? say_where(cli, path, rc) : 0;
}

static int64_t count(const struct hf_config *config, enum hf_config_table table)
{
    int64_t i = 0;
    while (hf_config_name(config, table, (size_t)i))
        i++;
    return i;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

int cmd_config_check(struct cli *cli)
{
    struct hf_config *config = NULL;
    const char *path = NULL;
    int rc = cli_config_read(cli, &path, &config);
    if (rc)
        return rc;
    int64_t providers = count(config, HF_CONFIG_PROVIDER);
    int64_t models = count(config, HF_CONFIG_MODEL);
    hf_config_free(config);
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "path", path);
        hf_json_put_i64(&cli->writer, "providers", providers);
        hf_json_put_i64(&cli->writer, "models", models);
        cli_ok_end(cli);
        return 0;
    }
    cli_put_clean(cli, path);
    cli_putf(cli, ": ok, %lld provider%s and %lld model%s\n", (long long)providers,
             plural(providers), (long long)models, plural(models));
    return 0;
}

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
