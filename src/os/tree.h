/* The processes of a unit's work on this machine: rule 6, a dead wrapper is not dead work.
 *
 * Before it starts anything a runner makes a lock file, takes its lock and names it when it
 * claims. A process that it starts inherits the descriptor, so the lock is free only when all of it
 * has gone. The file says whose it is, so that processes left behind are found on restart,
 * whatever became of the unit.
 *
 * A process belongs to the tree if it has the file open under that very lock, or if it is
 * in the tree's process group and has the file's name in its environment (HOLDFAST_LOCK): a
 * command may close descriptors it does not know. It is looked at behind a pidfd, so no
 * signal ever reaches a process that took over a number. */
#ifndef HF_OS_TREE_H
#define HF_OS_TREE_H

#include <holdfast/types.h>

#include "base/arena.h"
#include "os/liveness.h"

#define HF_LOCK_VARIABLE "HOLDFAST_LOCK"

struct hf_lockfile {
    int fd; /* -1: not open here */
    char path[HF_LOCK_PATH];
};

/* The content of a lock file. Texts are the arena's. A lock is of a unit of work (work_id) or of a
 * tool call (session, call, fence; holdfast/child.h); with neither, nothing was started. */
struct hf_lock_facts {
    const char *work_id;
    const char *session;
    const char *call;
    int64_t fence;
    int64_t attempt;
    const char *disposition;
    const char *holder; /* JSON of the runner, as os/liveness.h describes it */
    int64_t group;      /* 0: not known */
};

/* A fresh locked file in `folder`, which is made where it is missing (for this user alone).
 * It has its name only once it is locked. */
HF_MUST_USE int hf_lock_new(const char *folder, const struct hf_random *random,
                            struct hf_lockfile *ret_lock, struct hf_err *err);
HF_MUST_USE int hf_lock_write(const struct hf_lockfile *lock,
                              const struct hf_lock_facts *facts,
                              const struct hf_alloc *alloc, struct hf_err *err);
/* Closes this process's descriptor; the lock lives on in the process that inherited
 * it. */
void hf_lock_close(struct hf_lockfile *lock);
/* Removes the file too. Only when nothing runs under it. */
void hf_lock_remove(struct hf_lockfile *lock);

struct hf_tree {
    const char *path;
    uint64_t dev, ino;
    int64_t group;
    hf_ms touched; /* wall time */
    int64_t spare; /* pid that is not of the tree: the runner, who may have it open */
};

/* A claim is about to name the file: no process treats it as forgotten before
 * HF_LOCK_FRESH_MS have passed. */
void hf_lock_touch(const struct hf_lockfile *lock);
#define HF_LOCK_FRESH_MS 60000 /* longer than any claim is on its way */

enum hf_lock_look { HF_LOCK_GONE, HF_LOCK_FREE, HF_LOCK_HELD };

/* Looks at a lock file, and reads what it says. */
HF_MUST_USE enum hf_lock_look hf_lock_look(struct hf_arena *arena, const char *path,
                                           struct hf_lock_facts *ret_facts,
                                           struct hf_tree *ret_tree);

/* Sends a signal to every process of the tree; 0 only counts them. Returns how many. */
size_t hf_tree_signal(const struct hf_tree *tree, int signal);

/* Calls `each` for every lock file of the folder, also for those that never got their real
 * name since their maker died. */
typedef void hf_each_lock(void *user, const char *path);
void hf_lock_each(const char *folder, hf_each_lock *each, void *user);

#endif
