/* One execution of a command: what execute.c, lease.c and settle.c share. */
#ifndef HF_RUN_COMMAND_EXECUTE_H
#define HF_RUN_COMMAND_EXECUTE_H

#include <holdfast/run.h>
#include <holdfast/sys/store.h>

#include "base/arena.h"
#include "os/threads.h"
#include "os/tree.h"
#include "run/command/capture.h"
#include "run/command/keeper.h"

#define HF_RUN_LOOK_MS 500  /* how long a request to cancel may go unseen */
#define HF_RUN_FLUSH_MS 500 /* how long output may be missing in the store */
#define HF_RUN_KILL_MS 5000
#define HF_RELAY_BYTES 65536
#define HF_RELAY_ROOM                                                                    \
    (2 * HF_RELAY_BYTES) /* what a pipe holds at the end goes there too */

/* Output that waits for a slow reader. When there are HF_RELAY_BYTES the command waits too, but
 * the lease is renewed all the same. */
struct hf_relay {
    int fd; /* -1: no process looks on, any more */
    size_t from, to;
    char bytes[HF_RELAY_ROOM];
};

enum hf_grip {
    HF_GRIP_HOLDS,   /* the unit runs under our lease */
    HF_GRIP_WAITS,   /* the command let it wait: nothing to renew */
    HF_GRIP_SETTLED, /* the command settled it itself */
    HF_GRIP_LOST
};

/* The state of the unit in the store; nothing where it does not answer. */
struct hf_seen {
    bool told, gone; /* gone: there is no such unit */
    bool ours;       /* it runs under our owner and incarnation */
    bool itself;     /* of our attempt, and settled by the command */
    bool cancel;     /* a process asks for its end */
    enum hf_status status;
    int64_t attempt;
    hf_ms next_retry_at;
};

/* Asks the store while a command runs, on a thread of its own: a store that does not answer
 * holds up neither what the command writes nor timeouts nor signals. One question at a time;
 * between ask and answer the question is the thread's, otherwise all of it is the stepper's. */
struct hf_asker {
    pthread_mutex_t lock;
    struct hf_threads thread;
    bool started, busy, answered;
    int bell; /* an eventfd: there is an answer */
    bool look, renew, flush;
    int64_t attempt;
    struct hf_output_add add;
    struct hf_output_chunk chunks[HF_STREAM_COUNT * HF_CAPTURE_SLOTS];
    char *memory; /* of the chunks: the capture's own keeps changing */
    int64_t bytes[HF_STREAM_COUNT];
    struct hf_seen seen;
    bool stored;
};

struct hf_run {
    struct hf_store *store;
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    struct hf_lockfile lock;
    /* of the plan, copied */
    struct hf_caller who;
    const struct hf_command *command;
    const char *work_id, *token, *owner, *incarnation;
    enum hf_disposition disposition;
    int64_t attempt;      /* of this execution: its output is kept under this number */
    int64_t grip_attempt; /* of the lease: a resume by the command is a new one */
    int64_t failures, max_attempts;
    hf_ms ttl_ms;
    const char *holder; /* JSON of this process */

    struct hf_child *child;
    struct hf_tree tree;
    struct hf_keeper keeper; /* of an owner_bound unit's output */
    struct hf_capture capture[HF_STREAM_COUNT];
    struct hf_relay relay[HF_STREAM_COUNT];
    enum hf_grip grip;
    bool terminal; /* is the command's: what is typed there reaches it alone */
    bool exited, told_exit, noted, settled, over, left;
    hf_ms started, ended;
    hf_ms renew_at, look_at, flush_at, timeout_at, kill_at, end_by;
    struct hf_run_result result;
    const char *const *evidence; /* hashes of the command's files; NULL: none yet */
    size_t evidence_count;
    struct hf_asker asker;
};

hf_ms hf_run_mono(const struct hf_run *run);

/* lease.c: what the store says, by any thread; what follows from it, by the stepper. A lease
 * that is not found among the renewed ones is looked at. */
struct hf_seen hf_run_seen(const struct hf_run *run, int64_t attempt);
struct hf_seen hf_run_renew(const struct hf_run *run, int64_t attempt);
void hf_run_judge(struct hf_run *run, const struct hf_seen *seen);
void hf_run_look(struct hf_run *run);

/* asker.c: without a thread of its own it asks at once. */
HF_MUST_USE int hf_asker_start(struct hf_run *run, struct hf_err *err);
void hf_asker_end(struct hf_run *run);
/* Takes in what was answered. */
void hf_asker_take(struct hf_run *run);
/* Asks what is due. Nothing while a question is out. */
void hf_asker_ask(struct hf_run *run, hf_ms now);

/* evidence.c: reads the files that the command names, once. HF_EINVAL: one cannot be read. */
HF_MUST_USE int hf_run_evidence(struct hf_run *run, struct hf_err *err);

/* settle.c */
int hf_run_flush(struct hf_run *run, const char *event, const char *payload);
void hf_run_note_start(struct hf_run *run);
/* Records the end; true when that is done, or cannot be done. */
bool hf_run_settle(struct hf_run *run, hf_ms now);
/* Nothing was started: settle as failed. */
void hf_run_fail_start(struct hf_run *run, const struct hf_err *why);

/* The trees of other executions of the same unit on this machine: ends them, within
 * `most_ms`. HF_EHELD when one may not be ended, or is still there. */
HF_MUST_USE int hf_run_clear_way(struct hf_run *run, hf_ms most_ms, struct hf_err *err);

#endif
