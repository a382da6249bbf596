/* The inside of struct hf_tools: tools.c makes it, declare.c checks commands, shell.c runs them,
 * files.c works on files, fetch.c fetches addresses. */
#ifndef HF_AGENT_TOOL_TOOLS_H
#define HF_AGENT_TOOL_TOOLS_H

#include <holdfast/tools.h>

#include "base/arena.h"

/* An asynchronous call that has not ended. */
struct tool_live {
    struct tool_live *next;
    struct tool_live *prev;
    void (*kill)(struct tool_live *live); /* ends it now, and releases it */
};

struct hf_tools {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    struct hf_tools_config config; /* copied */
    struct shell *shell;           /* shell tools, then run_command if it is on */
    size_t shell_count;
    struct tool_live *live;
    size_t live_count;
};

void tool_live_add(struct hf_tools *tools, struct tool_live *live);
void tool_live_remove(struct hf_tools *tools, struct tool_live *live);

/* One command as a tool. */
struct shell {
    struct hf_tools *tools;
    struct hf_shell_tool tool; /* copied; env is the whole environment */
    const char *const *flags;  /* names, NULL ends; NULL: arguments on standard input */
    bool line;                 /* run_command: the argument `command` for /bin/sh */
};

/* What the limits of a call are over those of its command: time to clear the way, for TERM and
 * KILL, and room for what an answer says in addition to the output. */
#define SHELL_SPARE_MS 30000
#define SHELL_SPARE_BYTES 4096

/* declare.c. The spec is lent. */
HF_MUST_USE int shell_init(struct shell *shell, struct hf_tools *tools,
                           const struct hf_shell_tool *spec, struct hf_err *err);
/* run_command. */
HF_MUST_USE int shell_init_line(struct shell *shell, struct hf_tools *tools,
                                struct hf_err *err);
/* shell.c */
HF_MUST_USE int shell_add(struct shell *shell, struct hf_toolset *into,
                          struct hf_err *err);

/* files.c: the four file tools; user is struct hf_tools. */
HF_MUST_USE int files_check_root(const char *root, struct hf_err *err);
void files_read(void *user, struct hf_invocation *call);
void files_write(void *user, struct hf_invocation *call);
void files_edit(void *user, struct hf_invocation *call);
enum hf_probe files_edit_probe(void *user, struct hf_invocation *call);
void files_list(void *user, struct hf_invocation *call);

/* fetch.c; user is struct hf_tools. */
void fetch_run(void *user, struct hf_invocation *call);
void fetch_stop(void *user, struct hf_invocation *call);

/* answer.c: answers that cannot be refused for their form. Without memory the call ends
 * without an answer, which is a failure too. */
void tool_say(struct hf_invocation *call, struct hf_span text);
void tool_fail(struct hf_invocation *call, enum hf_failure_class class_, const char *code,
               const char *message);
/* As above; it may be performed again. */
void tool_fail_again(struct hf_invocation *call, const char *code, const char *message);
void tool_unknown(struct hf_invocation *call, const char *why);

#endif
