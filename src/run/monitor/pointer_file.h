/* The pointer as a file: reading it, replacing it, taking it away. Knows nothing about the
 * ledger. */
#ifndef HF_RUN_MONITOR_POINTER_FILE_H
#define HF_RUN_MONITOR_POINTER_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "run/monitor/pointer.h"

#define HF_POINTER_VERSION 1

/* The content of the file. Texts are the arena's. */
struct hf_pointer {
    const char *work_id;
    const char *source_system;
    const char *source_id;
    const char *source_run_id;
    const char *owner;
    const char *owner_incarnation;
    hf_ms lease_expires_at;
    hf_ms started_at;
    hf_ms updated_at;
    int64_t running;
};

enum hf_pointer_state { HF_POINTER_NONE, HF_POINTER_GOOD, HF_POINTER_CORRUPT };

/* HF_EINVAL when the path is no regular file, HF_ESTOREIO when it cannot be read. */
HF_MUST_USE int hf_pointer_read(const char *path, struct hf_arena *arena,
                                enum hf_pointer_state *ret_state,
                                struct hf_pointer *ret_pointer, struct hf_err *err);

/* Replaces the file: temporary file next to it (mode 0600), sync, rename, sync of the
 * folder. HF_EBUSY when another process is writing it at this moment. */
HF_MUST_USE int hf_pointer_write(const char *path, const struct hf_pointer *pointer,
                                 const struct hf_pointer_hook *hook, struct hf_err *err);

/* Takes it away; that it is not there is fine. */
HF_MUST_USE int hf_pointer_remove(const char *path, struct hf_err *err);

/* Renames it to PATH.corrupt-MS and appends that name to `aside`. */
HF_MUST_USE int hf_pointer_set_aside(const char *path, hf_ms now, struct hf_buf *aside,
                                     struct hf_err *err);

#endif
