/* One execution of a command for a tool call, under the lock of the call: a machine that is
 * stepped, from a loop or from a thread that blocks.
 *
 * First what must not run at the same time is ended; then the command is started; when it has
 * ended, so is what it left behind. The machine is over when no process of the call is left.
 * One thread at a time. */
#ifndef HF_AGENT_TOOL_EXECUTION_H
#define HF_AGENT_TOOL_EXECUTION_H

#include <holdfast/child.h>
#include <holdfast/process.h>

#include "base/arena.h"
#include "base/buf.h"

/* The beginning and the end of a stream. */
struct tool_capture {
    char *memory; /* the head, then the tail, which is written round and round */
    size_t head_room;
    size_t tail_room;
    int64_t bytes; /* that were written to the stream */
};

/* The command to execute. All is lent for as long as the execution lives. */
struct tool_command {
    const char *const *argv;
    const char *const *env;
    const char *folder;
    struct hf_span input;
    hf_ms timeout_ms;
    size_t output_bytes;
    struct hf_child_lock_plan lock;
};

enum tool_phase { TOOL_CLEARING, TOOL_RUNNING, TOOL_ENDING, TOOL_OVER };

struct tool_execution {
    const struct hf_alloc *alloc;
    const struct hf_clock *clock;
    const struct tool_command *command;
    struct hf_arena arena;
    struct hf_child_lock *lock;
    struct hf_child *child;
    int output[HF_STREAM_COUNT]; /* -1: none */
    bool at_end[HF_STREAM_COUNT];
    struct tool_capture capture[HF_STREAM_COUNT];
    enum tool_phase phase;
    hf_ms begun;
    hf_ms term_at;  /* CLEARING: when others are asked to end again */
    hf_ms deadline; /* RUNNING: of the command */
    hf_ms kill_at;  /* 0: nothing is to be killed */
    bool timed_out;
    bool stopped;
    bool exited;
    struct hf_child_exit exit;
    int code; /* of a command that was not started */
    struct hf_err err;
};

/* Takes the lock. On failure nothing is left. */
HF_MUST_USE int tool_begin(struct tool_execution *run, const struct hf_alloc *alloc,
                           const struct hf_clock *clock,
                           const struct tool_command *command, struct hf_err *err);
/* Does what can be done now; true when the execution is over. */
bool tool_step(struct tool_execution *run);
/* How long the next step may wait if no descriptor becomes readable. */
hf_ms tool_wait(const struct tool_execution *run);
/* The processes get TERM, and KILL later. */
void tool_stop(struct tool_execution *run);
/* Kills what runs, without waiting, and releases all. */
void tool_fini(struct tool_execution *run);

/* Appends what was written, with the place and the size of the cut. */
void tool_put_output(const struct tool_execution *run, struct hf_buf *out);

#endif
