/* One execution of a command: what execute.c, lease.c and settle.c share. */
#ifndef HF_RUN_EXECUTE_H
#define HF_RUN_EXECUTE_H

#include <holdfast/run.h>
#include <holdfast/sys/store.h>

#include "base/arena.h"
#include "run/capture.h"
#include "run/tree.h"

#define HF_RUN_LOOK_MS 500  /* how long a request to cancel may go unseen */
#define HF_RUN_FLUSH_MS 500 /* how long output may be missing in the store */
#define HF_RUN_KILL_MS 5000
#define HF_RELAY_BYTES 65536
#define HF_RELAY_ROOM                                                                    \
    (2 * HF_RELAY_BYTES) /* what a pipe holds at the end goes there too */

/* Output that waits for a slow reader. When there are HF_RELAY_BYTES the command waits too, but
 * the lease is renewed all the same. */
struct hf_relay {
    int fd; /* -1: nobody looks on, any more */
    size_t from, to;
    char bytes[HF_RELAY_ROOM];
};

enum hf_grip {
    HF_GRIP_HOLDS,   /* the unit runs under our lease */
    HF_GRIP_WAITS,   /* the command let it wait: nothing to renew */
    HF_GRIP_SETTLED, /* the command settled it itself */
    HF_GRIP_LOST
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
    struct hf_capture capture[HF_STREAM_COUNT];
    struct hf_relay relay[HF_STREAM_COUNT];
    enum hf_grip grip;
    bool terminal; /* is the command's: what is typed there reaches it alone */
    bool exited, told_exit, noted, settled, over, left;
    hf_ms started, ended;
    hf_ms renew_at, look_at, flush_at, timeout_at, kill_at, end_by;
    struct hf_run_result result;
};

hf_ms hf_run_now(const struct hf_run *run);

/* lease.c: renew when due, look at the row when due, and learn what became of the grip. */
void hf_run_tend(struct hf_run *run, hf_ms now);
void hf_run_look(struct hf_run *run);

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
