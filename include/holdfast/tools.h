/* Ready-made tools for an agent: commands of the host (shell tools) and built-in tools.
 *
 * Nothing is on unless it is named. A shell tool is an argument vector that the configuration
 * declares with its recovery class; a built-in tool is named by its name. How each behaves, and
 * what it refuses, is in docs/tools.md.
 *
 * The processes of a call hold a lock. Before a call starts, processes that a dead worker left of
 * the same session on this machine are ended, and so is any other execution of the same call. So no
 * two copies of a call run at the same time.
 *
 * Threads: hf_tools_running and hf_tools_free belong to the thread of the loop on which the
 * calls run; a set of tools is used with one loop.
 */
#ifndef HOLDFAST_TOOLS_H
#define HOLDFAST_TOOLS_H

#include <holdfast/tool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One shell tool. Lists end in NULL; a NULL list is empty.
 *   schema        JSON Schema of the arguments; required with `flags`
 *   argv          the command; argv[0] is found on the PATH of the tool's environment
 *   probe_argv    the class probe, and only it: a command that gets the same input. It exits 0
 *                 if the call happened (its output is the answer), 1 if it did not; any other
 *                 end cannot tell
 *   flags         arguments are appended as --NAME=VALUE, in the order of the schema's
 *                 properties: true is --NAME, false and null are left out, an array is one flag
 *                 per item, an object is its JSON. false: arguments are JSON on standard input
 *   env           NAME=VALUE
 *   pass_env      names that are taken from the environment of struct hf_tools_config
 *   folder        absolute; NULL: the root of struct hf_tools_config, otherwise "/"
 *   timeout_ms    0: 60,000. Then its processes get TERM, and KILL five seconds later
 *   output_bytes  of both streams together; 0: 16,384. The beginning and the end are kept
 *   approval      which calls need one (holdfast/tool.h); zero: none
 * In addition to these the command has HOLDFAST_CALL, the key of the call, and HOLDFAST_LOCK. */
struct hf_shell_tool {
    size_t size;
    const char *name;
    const char *description;
    struct hf_span schema;
    enum hf_recovery recovery;
    const char *const *argv;
    const char *const *probe_argv;
    bool flags;
    const char *const *env;
    const char *const *pass_env;
    const char *folder;
    hf_ms timeout_ms;
    int64_t output_bytes;
    struct hf_approval approval;
};

/* The built-in tools, with their recovery classes. */
#define HF_BUILTIN_TOOLS(X)                                                              \
    X(READ_FILE, read_file, SAFE)                                                        \
    X(WRITE_FILE, write_file, SAFE)                                                      \
    X(EDIT_FILE, edit_file, PROBE)                                                       \
    X(LIST_FILES, list_files, SAFE)                                                      \
    X(RUN_COMMAND, run_command, ASK)                                                     \
    X(FETCH_URL, fetch_url, SAFE)

#define X(name, word, recovery) HF_BUILTIN_##name,
enum hf_builtin_tool { HF_BUILTIN_TOOLS(X) HF_BUILTIN_COUNT };
#undef X

/* The i-th name; NULL past the last. */
HF_API const char *hf_builtin_tool_name(size_t i);
/* The tool of that name; false for a word that is none. */
HF_API bool hf_builtin_tool_read(const char *word, enum hf_builtin_tool *ret_tool);

/* The tools of one agent. All is copied.
 *   shell        in the order in which the model sees them; built-in tools follow
 *   builtins     bit (1 << enum hf_builtin_tool) per tool that is on
 *   approvals    of the built-in tools: HF_BUILTIN_COUNT of them; NULL: none
 *   root         absolute; required by file tools and run_command. No path leads out of it
 *   allow        hosts (NAME, NAME:PORT or an address) that fetch_url may reach although a rule
 *                refuses their addresses; link-local and metadata addresses only as addresses
 *   lock_folder  absolute; required by shell tools and run_command. All workers of a machine
 *                that share a store share it
 *   env          NAME=VALUE: what pass_env takes from, and run_command's environment */
struct hf_tools_config {
    size_t size;
    const struct hf_alloc *alloc; /* NULL: the system's */
    const struct hf_shell_tool *shell;
    size_t shell_count;
    uint32_t builtins;
    const struct hf_approval *approvals;
    const char *root;
    const char *const *allow;
    const char *lock_folder;
    const char *const *env;
};

struct hf_tools;

/* Checks and copies. HF_EINVAL names the field, and the message the tool: no command, no class,
 * a probe command without the class probe or the class without one, flags without a schema, a
 * folder that is none, a variable of pass_env that is not set. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_tools_new(const struct hf_tools_config *config,
                                    struct hf_tools **ret_tools, struct hf_err *err);
/* The source of tools for an agent. It is valid until hf_tools_free. */
HF_API struct hf_tool_source hf_tools_source(struct hf_tools *tools);
/* Calls whose processes or requests have not ended. */
HF_API size_t hf_tools_running(const struct hf_tools *tools);
/* Releases the tools, after the toolsets that have them, and before the loop. A call that still
 * runs is killed. NULL is fine. */
HF_API void hf_tools_free(struct hf_tools *tools);

#ifdef __cplusplus
}
#endif
#endif
