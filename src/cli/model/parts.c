/* The parts of an agent that are outside of the configuration: its prompt file and its tools. */
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/model/config.h"

#define PROMPT_BYTES_MAX ((size_t)256 * 1024)

extern char **environ;

int cli_config_folder(struct cli *cli, const char *path, const char **ret_folder)
{
    char *here = NULL;
    const char *folder = NULL;
    const char *slash = strrchr(path, '/');
    if (path[0] == '/')
        folder = hf_arena_copy(&cli->arena, path, (size_t)(slash + 1 - path));
    else if ((here = getcwd(NULL, 0))) {
        const char *base = hf_arena_join(&cli->arena, here, "/");
        const char *rest = hf_arena_copy(&cli->arena, path,
                                         slash ? (size_t)(slash + 1 - path) : 0);
        folder = base && rest ? hf_arena_join(&cli->arena, base, rest) : NULL;
    }
    hf_alloc_system()->free(hf_alloc_system()->user, here);
    *ret_folder = folder;
    return folder ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* A path of the configuration; a relative one begins at the folder of its file. */
static const char *resolved(struct cli *cli, const char *folder, const char *path)
{
    if (!path || path[0] == '/')
        return path;
    return hf_arena_join(&cli->arena, folder, path);
}

int cli_config_prompt(struct cli *cli, const char *folder,
                      const struct hf_agent_entry *entry, struct hf_span *ret_prompt)
{
    if (entry->prompt)
        *ret_prompt = (struct hf_span){ entry->prompt, strlen(entry->prompt) };
    if (!entry->prompt_file)
        return 0;
    const char *path = resolved(cli, folder, entry->prompt_file);
    int rc = path ? cli_read_file(cli, path, PROMPT_BYTES_MAX, ret_prompt)
                  : hf_fail_plain(&cli->err, HF_ENOMEM);
    if (rc) {
        struct hf_err why = cli->err;
        cli->action = "correct prompt_file in the configuration, or write that file";
        return hf_fail(&cli->err, rc, "prompt_file", "[agent.%.60s]: prompt_file: %s",
                       entry->name, why.message);
    }
    return 0;
}

int cli_config_tools(struct cli *cli, const struct cli_config_place *place,
                     const struct hf_agent_entry *entry, struct hf_tools **ret_tools)
{
    struct hf_tools_config config = { .size = sizeof(config),
                                      .root = resolved(cli, place->folder, entry->root),
                                      .allow = entry->allow,
                                      .lock_folder = place->locks,
                                      .env = (const char *const *)environ };
    struct hf_approval approvals[HF_BUILTIN_COUNT] = { 0 };
    enum hf_builtin_tool builtin;
    size_t count = 0;
    while (entry->tools && entry->tools[count])
        count++;
    struct hf_shell_tool *shell = hf_arena_array(&cli->arena, count + 1, sizeof(*shell));
    if (!shell || (entry->root && !config.root))
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    config.shell = shell;
    config.approvals = approvals;
    for (size_t i = 0; i < count; i++) {
        if (hf_builtin_tool_read(entry->tools[i], &builtin)) {
            config.builtins |= 1u << builtin;
            approvals[builtin] = hf_config_approval(place->config, entry->tools[i]);
            continue;
        }
        struct hf_shell_tool *tool = &shell[config.shell_count++];
        int rc = hf_config_tool(place->config, entry->tools[i], tool, &cli->err);
        if (rc)
            return rc;
        tool->folder = resolved(cli, place->folder, tool->folder);
    }
    int rc = hf_tools_new(&config, ret_tools, &cli->err);
    if (rc == HF_EINVAL) {
        struct hf_err why = cli->err;
        (void)hf_fail(&cli->err, rc, why.field, "[agent.%.60s]: %s", entry->name,
                      why.message);
    }
    return rc;
}

int cli_config_toolset(struct cli *cli, struct hf_tools *tools,
                       struct hf_toolset **ret_toolset)
{
    const struct hf_tool_source source = hf_tools_source(tools);
    struct hf_toolset *toolset = NULL;
    int rc = hf_toolset_new(NULL, &toolset, &cli->err);
    if (rc == 0)
        rc = hf_toolset_ask(toolset, &source, &cli->err);
    if (rc)
        hf_toolset_unref(toolset);
    else
        *ret_toolset = toolset;
    return rc;
}
