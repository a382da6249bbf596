/* What can be known of a holder's process: rule 5, proof of death.
 *
 * A holder is described when it claims: boot, pid namespace, time namespace, pid and start
 * time, as one JSON object. Only a pidfd proves death: none can be opened (ESRCH), it is
 * readable, or the process behind the number began at another time. A missing /proc entry
 * or state Z proves nothing, and neither does anything about another boot or namespace.
 */
#ifndef HF_STORE_LIVENESS_H
#define HF_STORE_LIVENESS_H

#include "base/arena.h"
#include "base/buf.h"

/* Describe process `pid` of this machine. HF_EINVAL naming "pid" when there is none. */
int hf_holder_describe(struct hf_arena *arena, int pid, const char **ret_json,
                       struct hf_err *err);

enum hf_life {
    HF_LIFE_UNKNOWN, /* alive, or not ours to judge */
    HF_LIFE_DEAD     /* proven */
};

/* Judge a holder. With DEAD, *ret_proof is the JSON to store. `now` is noted in it. */
enum hf_life hf_holder_judge(struct hf_arena *arena, const char *holder, hf_ms now,
                             const char **ret_proof);

/* A pidfd of the holder to wait on; -1 when it cannot be judged, or (*ret_gone) is proven
 * dead already. */
int hf_holder_pidfd(const char *holder, bool *ret_gone);

#endif
