/* holdfast config init: a configuration to begin with. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/model/config.h"

/* What each kind of endpoint has when nothing is given. */
static const struct cli_config_wish kinds[] = {
    { "openai-chat", "https://api.openai.com/v1", "gpt-4.1-mini", "OPENAI_API_KEY",
      NULL },
    { "anthropic-messages", "https://api.anthropic.com", "claude-sonnet-4-5",
      "ANTHROPIC_API_KEY", NULL },
};

/* key = "value", quoted as TOML wants it: its escapes are those of JSON. */
static void put_pair(struct hf_buf *buf, const char *key, const char *value)
{
    struct hf_json json;
    hf_buf_text(buf, key);
    hf_buf_text(buf, " = ");
    hf_json_begin(&json, buf);
    hf_json_str(&json, value);
    hf_buf_char(buf, '\n');
}

int cli_config_example(struct cli *cli, const struct cli_config_wish *wish,
                       struct hf_buf *buf)
{
    const struct cli_config_wish *usual = &kinds[0];
    for (size_t i = 0; wish->kind && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (hf_same(wish->kind, kinds[i].kind))
            usual = &kinds[i];
    if (wish->kind && !hf_same(wish->kind, usual->kind))
        return hf_fail(&cli->err, HF_EINVAL, "--kind",
                       "--kind must be openai-chat or anthropic-messages");
    const char *key = wish->key_env || wish->base_url ? wish->key_env : usual->key_env;
    hf_buf_text(buf, "# `holdfast config keys` lists every key, `holdfast config check` "
                     "checks this file.\n\n[provider.main]\n");
    put_pair(buf, "kind", usual->kind);
    put_pair(buf, "base_url", wish->base_url ? wish->base_url : usual->base_url);
    if (key) {
        hf_buf_text(buf, "# The key is in this variable of the environment, and never "
                         "here.\n");
        put_pair(buf, "key_env", key);
    }
    hf_buf_text(buf, "\n[model.main]\nprovider = \"main\"\n");
    put_pair(buf, "id", wish->model ? wish->model : usual->model);
    hf_buf_text(buf, "context_tokens = 128_000\noutput_tokens = 8_192\n\n"
                     "[agent.helper]\nmodel = \"main\"\n"
                     "prompt = \"You are a helpful assistant. Be brief and precise.\"\n"
                     "# Nothing is on that is not named here.\n"
                     "tools = [\"list_files\", \"read_file\", \"today\"]\n");
    put_pair(buf, "root", wish->root);
    hf_buf_text(buf, "\n[tool.today]\ncommand = [\"/bin/date\", \"+%F %T\"]\n"
                     "description = \"Tells the date and the time.\"\n"
                     "recovery = \"safe\"\n");
    return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* The folders above a file, as far as they are missing. */
static int make_folders(struct cli *cli, const char *path)
{
    char *folder = hf_arena_text(&cli->arena, path);
    if (!folder)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0700) && errno != EEXIST)
            return hf_fail(&cli->err, HF_EINVAL, "--config", "%.150s: %s", folder,
                           strerror(errno));
        *at = '/';
    }
    return 0;
}

static int write_new(struct cli *cli, const char *path, const struct hf_buf *text)
{
    int how = O_WRONLY | O_CREAT | O_CLOEXEC |
              (cli_given(cli, "force") ? O_TRUNC : O_EXCL);
    int fd = open(path, how, 0600);
    if (fd < 0 && errno == EEXIST) {
        cli->action =
            "edit it, name another file with --config, or overwrite it with --force";
        return hf_fail(&cli->err, HF_ECONFLICT, "--config", "%.150s exists", path);
    }
    int rc = fd < 0 ? errno : cli_write(fd, text->at, text->len);
    if (fd >= 0 && fsync(fd) && rc == 0)
        rc = errno;
    if (fd >= 0 && close(fd) && rc == 0)
        rc = errno;
    return rc ? hf_fail(&cli->err, HF_EINVAL, "--config", "%.150s: %s", path,
                        strerror(rc))
              : 0;
}

static void say_next(struct cli *cli, const char *path, const char *key)
{
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "path", path);
        cli_ok_end(cli);
        return;
    }
    cli_put(cli, "wrote ");
    cli_put_clean(cli, path);
    cli_put(cli, "\nnext: ");
    if (key) {
        cli_put(cli, "set the variable ");
        cli_put_clean(cli, key);
        cli_put(cli, ", then ");
    }
    cli_put(cli, "`holdfast provider check main` and `holdfast chat`\n");
}

int cmd_config_init(struct cli *cli)
{
    struct cli_config_wish wish = { .kind = cli_text(cli, "kind"),
                                    .base_url = cli_text(cli, "base-url"),
                                    .model = cli_text(cli, "model"),
                                    .key_env = cli_text(cli, "key-env"),
                                    .root = cli_text(cli, "root") };
    const char *path = NULL;
    struct hf_config *config = NULL;
    struct hf_buf text;
    int rc = cli_config_path(cli, &path);
    if (rc == 0 && !wish.root)
        rc = cli_config_folder(cli, "here", &wish.root); /* of a file in this folder */
    hf_buf_init(&text, hf_alloc_system(), (size_t)HF_MAX_CONFIG_BYTES);
    if (rc == 0)
        rc = cli_config_example(cli, &wish, &text);
    if (rc == 0) /* what was given may be wrong: nothing is written then */
        rc = hf_config_read((struct hf_span){ hf_buf_str(&text), text.len }, &config,
                            &cli->err);
    if (rc == 0)
        rc = make_folders(cli, path);
    if (rc == 0)
        rc = write_new(cli, path, &text);
    struct hf_config_shown shown = { 0 };
    if (rc == 0 && hf_config_show(config, 0, &shown))
        say_next(cli, path,
                 hf_starts_with(shown.key, "env ") ? shown.key + strlen("env ") : NULL);
    hf_config_free(config);
    hf_buf_fini(&text);
    return rc;
}
