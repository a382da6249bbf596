/* Ready-made tools: checking what is declared, and the table of the built-in ones.
 *
 * A shell tool is a command of the host that is declared as a tool (struct shell, tool/shell.c); no
 * shell reads its arguments, except those of run_command. run_command is built in, and a shell tool
 * too: it is the last struct shell, and has no row in the table of built-in tools. */
#include "agent/tool/tools.h"

#include <string.h>

#include "agent/tool/approval.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"

#define FILE_MS 30000
#define FETCH_MS 30000
#define FILE_BYTES ((int64_t)65536)
#define FETCH_BYTES ((int64_t)65536)

#define PATH_PROPERTY                                                                    \
    "\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"relative to the "   \
    "root folder\"}"

/* A built-in tool; the class is in HF_BUILTIN_TOOLS. */
struct builtin {
    const char *description;
    const char *schema;
    hf_ms timeout_ms;
    int64_t output_bytes;
    void (*run)(void *user, struct hf_invocation *call);
    void (*stop)(void *user, struct hf_invocation *call);
    enum hf_probe (*probe)(void *user, struct hf_invocation *call);
};

/* By enum hf_builtin_tool. The row of run_command is empty. */
static const struct builtin builtins[HF_BUILTIN_COUNT] = {
    [HF_BUILTIN_READ_FILE] = {
        .description = "Reads a text file. Lines are counted from 1.",
        .schema = "{\"type\":\"object\",\"properties\":{" PATH_PROPERTY
                  ",\"from_line\":{\"type\":\"integer\",\"minimum\":1},"
                  "\"lines\":{\"type\":\"integer\",\"minimum\":1}},"
                  "\"required\":[\"path\"],\"additionalProperties\":false}",
        .timeout_ms = FILE_MS,
        .output_bytes = FILE_BYTES,
        .run = files_read,
    },
    [HF_BUILTIN_WRITE_FILE] = {
        .description = "Writes a whole text file; folders that are missing are made.",
        .schema = "{\"type\":\"object\",\"properties\":{" PATH_PROPERTY
                  ",\"content\":{\"type\":\"string\"}},"
                  "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
        .timeout_ms = FILE_MS,
        .run = files_write,
    },
    [HF_BUILTIN_EDIT_FILE] = {
        .description = "Replaces a text in a file. `old` must occur exactly once.",
        .schema = "{\"type\":\"object\",\"properties\":{" PATH_PROPERTY
                  ",\"old\":{\"type\":\"string\",\"minLength\":1},"
                  "\"new\":{\"type\":\"string\"}},"
                  "\"required\":[\"path\",\"old\",\"new\"],"
                  "\"additionalProperties\":false}",
        .timeout_ms = FILE_MS,
        .run = files_edit,
        .probe = files_edit_probe,
    },
    [HF_BUILTIN_LIST_FILES] = {
        .description = "Lists a folder: one entry per line, folders end in /.",
        .schema = "{\"type\":\"object\",\"properties\":{" PATH_PROPERTY "},"
                  "\"additionalProperties\":false}",
        .timeout_ms = FILE_MS,
        .output_bytes = FILE_BYTES,
        .run = files_list,
    },
    [HF_BUILTIN_FETCH_URL] = {
        .description = "Fetches a page by http or https (GET) and returns its text.",
        .schema = "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\","
                  "\"minLength\":1}},\"required\":[\"url\"],"
                  "\"additionalProperties\":false}",
        .timeout_ms = FETCH_MS,
        .output_bytes = FETCH_BYTES,
        .run = fetch_run,
        .stop = fetch_stop,
    },
};

#define X(name, word, recovery) #word,
static const char *const names[] = { HF_BUILTIN_TOOLS(X) };
#undef X
#define X(name, word, recovery) HF_RECOVERY_##recovery,
static const enum hf_recovery classes[] = { HF_BUILTIN_TOOLS(X) };
#undef X

const char *hf_builtin_tool_name(size_t i)
{
    return i < HF_BUILTIN_COUNT ? names[i] : NULL;
}

bool hf_builtin_tool_read(const char *word, enum hf_builtin_tool *ret_tool)
{
    for (size_t i = 0; word && i < HF_BUILTIN_COUNT; i++) {
        if (!hf_same(names[i], word))
            continue;
        *ret_tool = (enum hf_builtin_tool)i;
        return true;
    }
    return false;
}

static bool is_on(const struct hf_tools *tools, enum hf_builtin_tool tool)
{
    return (tools->config.builtins & (1U << tool)) != 0;
}

void tool_live_add(struct hf_tools *tools, struct tool_live *live)
{
    live->prev = NULL;
    live->next = tools->live;
    if (tools->live)
        tools->live->prev = live;
    tools->live = live;
    tools->live_count++;
}

void tool_live_remove(struct hf_tools *tools, struct tool_live *live)
{
    if (live->prev)
        live->prev->next = live->next;
    else
        tools->live = live->next;
    if (live->next)
        live->next->prev = live->prev;
    tools->live_count--;
}

/* ---- making ------------------------------------------------------------------------ */

static int copy_list(struct hf_arena *arena, const char *const **list)
{
    size_t count = 0;
    while (*list && (*list)[count])
        count++;
    const char **copy = hf_arena_array(arena, count + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = hf_arena_text(arena, (*list)[i])))
            return HF_ENOMEM;
    *list = copy;
    return copy ? 0 : HF_ENOMEM;
}

static int copy_approvals(struct hf_tools *tools)
{
    const struct hf_approval *given = tools->config.approvals;
    struct hf_approval *copy = hf_arena_array(&tools->arena, HF_BUILTIN_COUNT,
                                              sizeof(*copy));
    int rc = copy ? 0 : HF_ENOMEM;
    for (size_t i = 0; given && rc == 0 && i < HF_BUILTIN_COUNT; i++) {
        copy[i] = given[i];
        rc = approval_copy(&tools->arena, &copy[i]);
    }
    tools->config.approvals = copy;
    return rc;
}

static int copy_config(struct hf_tools *tools, const struct hf_tools_config *given,
                       struct hf_err *err)
{
    struct hf_tools_config *config = &tools->config;
    *config = *given;
    config->root = hf_arena_text(&tools->arena, given->root);
    config->lock_folder = hf_arena_text(&tools->arena, given->lock_folder);
    if ((given->root && !config->root) || (given->lock_folder && !config->lock_folder) ||
        copy_list(&tools->arena, &config->allow) ||
        copy_list(&tools->arena, &config->env) || copy_approvals(tools))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

/* HF_EINVAL naming the field. Commands need a folder for their locks: a command holds its lock
 * while it runs, so that no other worker runs the same call at the same time. File tools and
 * run_command need a root folder, which they do not leave; a declared command has a folder of its
 * own. */
static int check_config(const struct hf_tools_config *config, struct hf_err *err)
{
    bool runs = config->shell_count > 0 ||
                (config->builtins & (1U << HF_BUILTIN_RUN_COMMAND)) != 0;
    uint32_t rooted = (1U << HF_BUILTIN_READ_FILE) | (1U << HF_BUILTIN_WRITE_FILE) |
                      (1U << HF_BUILTIN_EDIT_FILE) | (1U << HF_BUILTIN_LIST_FILES) |
                      (1U << HF_BUILTIN_RUN_COMMAND);
    if (config->builtins >= (1U << HF_BUILTIN_COUNT))
        return hf_fail(err, HF_EINVAL, "builtins",
                       "builtins names a tool that is not built in");
    if (hf_sized_array(config->shell, config->shell_count, "shell", err))
        return HF_EINVAL;
    if (runs && (!config->lock_folder || config->lock_folder[0] != '/'))
        return hf_fail(err, HF_EINVAL, "lock_folder",
                       "commands need a lock_folder, an absolute path");
    if ((config->builtins & rooted) && !config->root)
        return hf_fail(err, HF_EINVAL, "root",
                       "file tools and run_command need a root folder");
    return config->root ? files_check_root(config->root, err) : 0;
}

static int make_shells(struct hf_tools *tools, const struct hf_tools_config *config,
                       struct hf_err *err)
{
    size_t count = config->shell_count + is_on(tools, HF_BUILTIN_RUN_COMMAND);
    int rc = 0;
    tools->shell = hf_arena_array(&tools->arena, count + 1, sizeof(*tools->shell));
    if (!tools->shell)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < config->shell_count; i++)
        rc = shell_init(&tools->shell[i], tools, &config->shell[i], err);
    if (rc == 0 && count > config->shell_count)
        rc = shell_init_line(&tools->shell[count - 1], tools, err);
    tools->shell_count = count;
    return rc;
}

static int list(void *user, struct hf_toolset *into, struct hf_err *err);

/* Adds all of them once, so that what a toolset refuses is refused here. */
static int try_all(struct hf_tools *tools, struct hf_err *err)
{
    struct hf_toolset *trial = NULL;
    int rc = hf_toolset_new(tools->alloc, &trial, err);
    if (rc == 0)
        rc = list(tools, trial, err);
    hf_toolset_unref(trial);
    return rc;
}

int hf_tools_new(const struct hf_tools_config *config, struct hf_tools **ret_tools,
                 struct hf_err *err)
{
    int rc = hf_sized_check(config->size, sizeof(*config), sizeof(*config), err);
    if (rc == 0)
        rc = check_config(config, err);
    if (rc)
        return rc;
    const struct hf_alloc *alloc = config->alloc ? config->alloc : hf_alloc_system();
    struct hf_tools *tools = alloc->realloc(alloc->user, NULL, sizeof(*tools));
    if (!tools)
        return hf_fail_plain(err, HF_ENOMEM);
    *tools = (struct hf_tools){ .alloc = alloc };
    hf_arena_init_small(&tools->arena, alloc, 1024, 8192);
    rc = copy_config(tools, config, err);
    if (rc == 0)
        rc = make_shells(tools, config, err);
    if (rc == 0)
        rc = try_all(tools, err);
    if (rc)
        hf_tools_free(tools);
    else
        *ret_tools = tools;
    return rc;
}

static int add_builtin(struct hf_tools *tools, enum hf_builtin_tool which,
                       struct hf_toolset *into, struct hf_err *err)
{
    const struct builtin *builtin = &builtins[which];
    struct hf_tool tool = { .size = sizeof tool,
                            .name = names[which],
                            .description = builtin->description,
                            .schema = { builtin->schema, strlen(builtin->schema) },
                            .recovery = classes[which],
                            .timeout_ms = builtin->timeout_ms,
                            .output_bytes = builtin->output_bytes,
                            .user = tools,
                            .run = builtin->run,
                            .asynchronous = builtin->stop != NULL,
                            .stop = builtin->stop,
                            .probe = builtin->probe,
                            .approval = tools->config.approvals[which] };
    return hf_toolset_add(into, &tool, err);
}

static int list(void *user, struct hf_toolset *into, struct hf_err *err)
{
    struct hf_tools *tools = user;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < tools->shell_count; i++)
        rc = shell_add(&tools->shell[i], into, err);
    for (size_t i = 0; rc == 0 && i < HF_BUILTIN_COUNT; i++)
        if (builtins[i].run && is_on(tools, (enum hf_builtin_tool)i))
            rc = add_builtin(tools, (enum hf_builtin_tool)i, into, err);
    return rc;
}

struct hf_tool_source hf_tools_source(struct hf_tools *tools)
{
    return (struct hf_tool_source){ tools, list };
}

size_t hf_tools_running(const struct hf_tools *tools)
{
    return tools->live_count;
}

void hf_tools_free(struct hf_tools *tools)
{
    if (!tools)
        return;
    while (tools->live)
        tools->live->kill(tools->live);
    hf_arena_fini(&tools->arena);
    tools->alloc->free(tools->alloc->user, tools);
}
