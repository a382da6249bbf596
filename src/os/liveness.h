/* Facts about a holder's process: rule 5, proof of death.
 *
 * A holder is described when it claims: boot, pid namespace, time namespace, pid and start
 * time, as one JSON object. Only a pidfd proves death: none can be opened (ESRCH), it is
 * readable, or the process behind the number began at another time. A missing /proc entry
 * or state Z proves nothing, and neither does anything about another boot or namespace.
 *
 * A holder that starts processes names a lock file, whose lock they inherit (rule 6). Then
 * its death is proven only when the lock is free too: a dead wrapper is not dead work. The
 * same holds while the work's output is still being written to files next to the lock. */
#ifndef HF_OS_LIVENESS_H
#define HF_OS_LIVENESS_H

#include <holdfast/process.h>

#include "base/arena.h"
#include "base/buf.h"

#define HF_LOCK_PATH 1024 /* bytes of the longest path of a lock, with its NUL */

/* The file next to a lock that keeps a stream of the work's output, where there is one.
 * False when the path is too long. */
bool hf_lock_output(const char *lock, enum hf_stream stream, char ret_path[HF_LOCK_PATH]);

/* May a runner or a keeper (run/keeper.h) still write to these files? */
bool hf_lock_output_busy(const char *lock);

/* Describe process `pid` of this machine, and the lock file of its work (NULL: none).
 * HF_EINVAL naming "pid" or "lock" when there is none. */
int hf_life_describe(struct hf_arena *arena, int pid, const char *lock,
                     const char **ret_json, struct hf_err *err);

enum hf_life {
    HF_LIFE_UNKNOWN, /* alive, or not ours to judge */
    HF_LIFE_DEAD     /* proven */
};

/* Judge a holder. With DEAD, *ret_proof is the JSON to store. `now` is noted in it. */
enum hf_life hf_life_judge(struct hf_arena *arena, const char *holder, hf_ms now,
                           const char **ret_proof);

/* Is the process itself proven dead, whatever it left running? */
bool hf_life_dead(const char *holder);

/* The number of its process if that is here and not proven dead, otherwise 0. */
int64_t hf_life_living(const char *holder);

/* Is anything of its work known to run on this machine, be the holder alive or not? */
bool hf_life_busy(const char *holder);

/* Does the holder name this lock file? */
bool hf_life_names(const char *holder, const char *lock);

/* A pidfd of the holder to wait on; -1 when it cannot be judged, is dead while its work
 * continues, or (*ret_gone) is proven dead already. */
int hf_life_pidfd(const char *holder, bool *ret_gone);

#endif
