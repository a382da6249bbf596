/* Commands as tools: checking and copying what is declared. */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/tool/approval.h"
#include "agent/tool/tools.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_walk.h"
#include "base/sized.h"
#include "base/text.h"

#define TIMEOUT_MS 60000
#define LINE_TIMEOUT_MS 120000
#define OUTPUT_BYTES 16384
#define OUTPUT_LEAST 256

static const char *const *copy_list(struct hf_arena *arena, const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    const char **copy = hf_arena_array(arena, count + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = hf_arena_text(arena, list[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

static const char *variable(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; env && *env; env++)
        if (hf_starts_with(*env, name) && (*env)[len] == '=')
            return *env;
    return NULL;
}

/* What the tool declares and what it takes from the host, with room for HOLDFAST_CALL. */
static int make_env(struct shell *shell, const struct hf_shell_tool *spec,
                    struct hf_err *err)
{
    struct hf_arena *arena = &shell->tools->arena;
    size_t count = 0, passed = 0;
    while (spec->env && spec->env[count])
        count++;
    while (spec->pass_env && spec->pass_env[passed])
        passed++;
    const char **env = hf_arena_array(arena, count + passed + 1, sizeof(*env));
    if (!env)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < count + passed; i++) {
        const char *from = i < count ? spec->env[i]
                                     : variable(shell->tools->config.env,
                                                spec->pass_env[i - count]);
        if (!from)
            return hf_fail(err, HF_EINVAL, "pass_env",
                           "tool %.64s: the variable %.80s is not set here", spec->name,
                           spec->pass_env[i - count]);
        if (!strchr(from, '='))
            return hf_fail(err, HF_EINVAL, "env", "tool %.64s: %.80s is not NAME=VALUE",
                           spec->name, from);
        env[i] = hf_arena_text(arena, from);
        if (!env[i])
            return hf_fail_plain(err, HF_ENOMEM);
    }
    shell->tool.env = env;
    return 0;
}

static bool is_flag(struct hf_span name)
{
    const char *at = name.at;
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
                    at[i]))
            return false;
    return name.len > 0 && at[0] != '-';
}

/* Walks to the members of "properties"; false when there are none. */
static bool enter_properties(struct hf_walk *walk, struct hf_span schema)
{
    hf_walk_begin(walk, schema);
    if (!hf_walk_enter(walk, '{'))
        return false;
    while (hf_walk_more(walk)) {
        if (hf_walk_is(hf_walk_key(walk), "properties"))
            return hf_walk_enter(walk, '{');
        (void)hf_walk_value(walk);
    }
    return false;
}

/* The names of the schema's properties, in its order. A call may have no others. */
static int read_flags(struct shell *shell, struct hf_err *err)
{
    struct hf_arena *arena = &shell->tools->arena;
    const struct hf_shell_tool *tool = &shell->tool;
    struct hf_walk walk;
    size_t count = 0;
    if (tool->schema.len == 0)
        return hf_fail(err, HF_EINVAL, "schema", "tool %.64s: flags need a schema",
                       tool->name);
    int rc = hf_json_check(tool->schema, (size_t)HF_MAX_PAYLOAD_BYTES, "schema", err);
    const char **names = rc ? NULL
                            : hf_arena_array(arena, (size_t)HF_MAX_COMMAND_ARGS + 1,
                                             sizeof(*names));
    if (!names)
        return rc ? rc : hf_fail_plain(err, HF_ENOMEM);
    bool object = enter_properties(&walk, tool->schema);
    while (object && hf_walk_more(&walk)) {
        struct hf_span name = hf_walk_key(&walk);
        (void)hf_walk_value(&walk);
        name = (struct hf_span){ (const char *)name.at + 1, name.len - 2 }; /* quotes */
        if (!is_flag(name) || count == (size_t)HF_MAX_COMMAND_ARGS)
            return hf_fail(err, HF_EINVAL, "schema",
                           "tool %.64s: the property %.*s cannot be a flag", tool->name,
                           (int)name.len, (const char *)name.at);
        names[count] = hf_arena_copy(arena, name.at, name.len);
        if (!names[count++])
            return hf_fail_plain(err, HF_ENOMEM);
    }
    if (count == 0)
        return hf_fail(err, HF_EINVAL, "schema",
                       "tool %.64s: flags need a schema with properties", tool->name);
    shell->flags = names;
    return 0;
}

static int check_spec(const struct hf_shell_tool *spec, struct hf_err *err)
{
    int rc = hf_sized_check(spec->size, sizeof(*spec), sizeof(*spec), err);
    if (rc)
        return rc;
    const char *name = spec->name ? spec->name : "?";
    if (!spec->name)
        return hf_fail(err, HF_EINVAL, "name", "a shell tool needs a name");
    if (!spec->argv || !spec->argv[0])
        return hf_fail(err, HF_EINVAL, "command", "tool %.64s has no command", name);
    bool probes = spec->probe_argv && spec->probe_argv[0];
    if ((spec->recovery == HF_RECOVERY_PROBE) != probes)
        return hf_fail(err, HF_EINVAL, "probe",
                       "tool %.64s: the class probe, and only it, has a probe command",
                       name);
    if (spec->folder && spec->folder[0] != '/')
        return hf_fail(err, HF_EINVAL, "folder",
                       "tool %.64s: the folder must be an absolute path", name);
    if (spec->output_bytes && spec->output_bytes < OUTPUT_LEAST)
        return hf_fail(err, HF_EINVAL, "output_bytes",
                       "tool %.64s: at least %d bytes of output are kept", name,
                       OUTPUT_LEAST);
    if (spec->output_bytes > HF_MAX_PAYLOAD_BYTES - SHELL_SPARE_BYTES ||
        spec->timeout_ms < 0 ||
        spec->timeout_ms > HF_MAX_DURATION_MAX_MS - SHELL_SPARE_MS)
        return hf_fail(err, HF_EINVAL,
                       spec->output_bytes > HF_MAX_PAYLOAD_BYTES - SHELL_SPARE_BYTES
                           ? "output_bytes"
                           : "timeout",
                       "tool %.64s: the limit is out of range", name);
    return 0;
}

static int copy_texts(struct shell *shell, const struct hf_shell_tool *spec,
                      struct hf_err *err)
{
    struct hf_arena *arena = &shell->tools->arena;
    const char *root = shell->tools->config.root;
    struct hf_shell_tool *tool = &shell->tool;
    const char *folder = spec->folder ? spec->folder : root ? root : "/";
    tool->name = hf_arena_text(arena, spec->name);
    tool->description = hf_arena_text(arena, spec->description);
    tool->folder = hf_arena_text(arena, folder);
    tool->argv = copy_list(arena, spec->argv);
    tool->probe_argv = copy_list(arena, spec->probe_argv);
    if (spec->schema.len > 0)
        tool->schema.at = hf_arena_copy(arena, spec->schema.at, spec->schema.len);
    if (!tool->name || (spec->description && !tool->description) || !tool->folder ||
        !tool->argv || !tool->probe_argv || (spec->schema.len > 0 && !tool->schema.at) ||
        approval_copy(arena, &tool->approval))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

int shell_init(struct shell *shell, struct hf_tools *tools,
               const struct hf_shell_tool *spec, struct hf_err *err)
{
    int rc = check_spec(spec, err);
    if (rc)
        return rc;
    *shell = (struct shell){ .tools = tools, .tool = *spec };
    shell->tool.timeout_ms = spec->timeout_ms ? spec->timeout_ms : TIMEOUT_MS;
    shell->tool.output_bytes = spec->output_bytes ? spec->output_bytes : OUTPUT_BYTES;
    rc = copy_texts(shell, spec, err);
    if (rc == 0)
        rc = make_env(shell, spec, err);
    if (rc == 0 && spec->flags)
        rc = read_flags(shell, err);
    return rc;
}

int shell_init_line(struct shell *shell, struct hf_tools *tools, struct hf_err *err)
{
    static const char *const argv[] = { "/bin/sh", "-c", NULL };
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\","
        "\"minLength\":1,\"description\":\"for /bin/sh\"}},\"required\":[\"command\"],"
        "\"additionalProperties\":false}";
    struct hf_shell_tool spec = {
        .size = sizeof spec,
        .name = hf_builtin_tool_name(HF_BUILTIN_RUN_COMMAND),
        .description = "Runs a command line with /bin/sh in the root folder and returns "
                       "what it wrote. It is ended after two minutes.",
        .schema = { schema, sizeof schema - 1 },
        .recovery = HF_RECOVERY_ASK,
        .argv = argv,
        .env = tools->config.env,
        .timeout_ms = LINE_TIMEOUT_MS,
        .approval = tools->config.approvals[HF_BUILTIN_RUN_COMMAND],
    };
    int rc = shell_init(shell, tools, &spec, err);
    shell->line = true;
    return rc;
}
