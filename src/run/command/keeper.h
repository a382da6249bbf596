/* The output of an owner_bound command outlives its runner.
 *
 * Such a command writes to pipes, as every command does. The runner moves what they hold
 * into one file per stream, next to the lock of the execution, before it looks at the
 * bytes.
 * A second process, the keeper, also has the read ends. It sleeps until the runner has
 * gone, then moves the rest itself until all writers have gone. So the command never writes
 * into a closed pipe, and no byte that was written is lost with the runner.
 *
 * A file keeps the offsets of its stream. Its first and its last 64 KiB stay, the blocks
 * between them are freed in the file system. Where that cannot be done, a file ends at
 * HF_KEEPER_FILE_MAX bytes and what follows is read and dropped.
 *
 * The file of standard output is locked as long as a runner or a keeper may write to it. The
 * reaper stores what the files of a dead runner hold, and removes them when nothing more can
 * come. */
#ifndef HF_RUN_COMMAND_KEEPER_H
#define HF_RUN_COMMAND_KEEPER_H

#include <holdfast/process.h>

#include "os/tree.h"

#define HF_KEEPER_FILE_MAX ((int64_t)256 << 20)

/* A stream on its way from its pipe into its file. */
struct hf_keeper_stream {
    int pipe; /* -1: at its end */
    int file; /* -1: none, or it could not be written: the pipe is read without it */
    int64_t bytes;
    int64_t punched; /* bytes when the middle was last freed */
};

struct hf_keeper {
    bool started;
    struct hf_keeper_stream kept[HF_STREAM_COUNT];
    int alive; /* closing it tells the keeper that the runner has gone */
};

/* Makes pipes and files for the execution under `lock`, and forks the keeper. The write ends
 * are the caller's to close when the command has them. */
HF_MUST_USE int hf_keeper_start(struct hf_keeper *keeper, const struct hf_lockfile *lock,
                                int ret_write[HF_STREAM_COUNT], struct hf_err *err);

/* As hf_child_read: at most `room` bytes, 0 when there are none now. */
size_t hf_keeper_read(struct hf_keeper *keeper, enum hf_stream stream, char *ret_bytes,
                      size_t room);

/* Closes everything here. The keeper continues while there are writers. */
void hf_keeper_end(struct hf_keeper *keeper);

/* Removes the files of an execution, where there are any. */
void hf_keeper_remove(const char *lock_path);

/* ---- by other processes, after the runner's death ---- */

/* Are there files of output that a dead runner left? */
bool hf_keeper_left(const char *lock_path);

/* Puts what the files hold now in the place of what `output` has of the same attempt or an earlier
 * one, where they hold more. A file that changes too fast is left out; HF_ENOMEM. */
HF_MUST_USE int hf_keeper_show(const struct hf_alloc *alloc, const char *lock_path,
                               int64_t attempt, struct hf_output *output);

/* Stores what the files hold now, except what was stored when the streams had `*bytes`
 * bytes each; then sets them. HF_ENOTFOUND where the unit has gone. */
HF_MUST_USE int hf_keeper_collect(struct hf_store *store, const struct hf_caller *who,
                                  const char *lock_path,
                                  const struct hf_lock_facts *facts,
                                  int64_t bytes[HF_STREAM_COUNT], struct hf_err *err);

#endif
