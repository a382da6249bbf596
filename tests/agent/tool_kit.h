/* Calling ready-made tools in tests: one loop, one set, one call at a time. */
#ifndef TESTS_AGENT_TOOL_KIT_H
#define TESTS_AGENT_TOOL_KIT_H

#include "support/unit.h"

#include <holdfast/tools.h>

/* What came of the last call. */
struct tool_said {
    bool done;
    bool timed_out;
    bool stopped;
    enum hf_probe probe;
    enum hf_tool_outcome outcome;
    enum hf_failure_class class_;
    char code[64];
    char *text; /* JSON of a success, message of a failure, reason of what is unknown */
};

struct tool_kit {
    struct hf_loop *loop;
    struct hf_tools *tools;
    struct hf_toolset *set;
    int64_t fence; /* of the calls */
    struct tool_said said;
};

/* The config must be accepted. */
void tool_kit_open(struct tool_kit *kit, const struct hf_tools_config *config);
/* Waits for what still runs. */
void tool_kit_close(struct tool_kit *kit);

struct hf_invocation *tool_kit_start(struct tool_kit *kit, const char *tool,
                                     const char *call_id, const char *args, bool probe);
const struct tool_said *tool_kit_wait(struct tool_kit *kit);
const struct tool_said *tool_kit_call(struct tool_kit *kit, const char *tool,
                                      const char *args);

/* A fresh folder below /tmp, and its end. */
void tool_kit_folder(char path[64]);
void tool_kit_remove(const char *path);

#endif
