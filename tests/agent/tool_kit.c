/* See tool_kit.h. */
#include "agent/tool_kit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

void tool_kit_open(struct tool_kit *kit, const struct hf_tools_config *config)
{
    struct hf_err err = { 0 };
    *kit = (struct tool_kit){ .fence = 1 };
    assert_int_equal(hf_loop_new(NULL, &kit->loop, &err), 0);
    if (hf_tools_new(config, &kit->tools, &err) != 0)
        fail_msg("%s: %s", err.field, err.message);
    struct hf_tool_source source = hf_tools_source(kit->tools);
    assert_int_equal(hf_toolset_new(NULL, &kit->set, &err), 0);
    assert_int_equal(hf_toolset_ask(kit->set, &source, &err), 0);
}

void tool_kit_close(struct tool_kit *kit)
{
    for (int i = 0; i < 1000 && hf_tools_running(kit->tools) > 0; i++)
        (void)hf_loop_step(kit->loop, 20);
    assert_int_equal(hf_tools_running(kit->tools), 0);
    (void)hf_loop_step(kit->loop, 0); /* ends that were posted */
    hf_toolset_unref(kit->set);
    hf_tools_free(kit->tools);
    hf_loop_free(kit->loop);
    free(kit->said.text);
}

static char *copy(struct hf_span text)
{
    char *made = malloc(text.len + 1);
    assert_non_null(made);
    if (text.len > 0)
        memcpy(made, text.at, text.len);
    made[text.len] = '\0';
    return made;
}

static void on_done(void *user, const struct hf_invocation_result *result)
{
    struct tool_kit *kit = user;
    const struct hf_tool_result *answer = result->result;
    free(kit->said.text);
    kit->said = (struct tool_said){ .done = true,
                                    .timed_out = result->timed_out,
                                    .stopped = result->stopped,
                                    .probe = result->probe };
    if (!answer)
        return;
    kit->said.outcome = answer->outcome;
    if (answer->outcome == HF_TOOL_FAILURE) {
        kit->said.text = copy(answer->failure->message);
        size_t len = strlen(answer->failure->code);
        assert_true(len < sizeof kit->said.code);
        memcpy(kit->said.code, answer->failure->code, len + 1);
        kit->said.class_ = answer->failure->class_;
    } else {
        kit->said.text = copy(answer->outcome == HF_TOOL_UNKNOWN ? answer->reason
                                                                 : answer->value);
    }
}

struct hf_invocation *tool_kit_start(struct tool_kit *kit, const char *tool,
                                     const char *call_id, const char *args, bool probe)
{
    struct hf_err err = { 0 };
    struct hf_invocation *call = NULL;
    struct hf_invocation_request request = { .size = sizeof request,
                                             .tools = kit->set,
                                             .tool = tool,
                                             .key = { "session-1", "turn-1", 3, call_id,
                                                      1, kit->fence },
                                             .args = span_of(args),
                                             .probe = probe,
                                             .user = kit,
                                             .done = on_done };
    kit->said.done = false;
    if (hf_invocation_start(kit->loop, &request, &call, &err) != 0)
        fail_msg("%s", err.message);
    return call;
}

const struct tool_said *tool_kit_wait(struct tool_kit *kit)
{
    while (!kit->said.done)
        assert_true(hf_loop_step(kit->loop, -1) || kit->said.done);
    return &kit->said;
}

const struct tool_said *tool_kit_call(struct tool_kit *kit, const char *tool,
                                      const char *args)
{
    (void)tool_kit_start(kit, tool, "call-1", args, false);
    return tool_kit_wait(kit);
}

void tool_kit_folder(char path[64])
{
    memcpy(path, "/tmp/hf-tools-XXXXXX", sizeof "/tmp/hf-tools-XXXXXX");
    assert_non_null(mkdtemp(path));
}

void tool_kit_remove(const char *path)
{
    char command[128] = "rm -rf ";
    assert_true(strncmp(path, "/tmp/hf-tools-", 14) == 0 && strlen(path) < 64);
    memcpy(command + 7, path, strlen(path) + 1);
    assert_int_equal(system(command), 0);
}
