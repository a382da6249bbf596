/* Starting a command and following it: one process, in a process group of its own.
 *
 * Everything is explicit: the arguments, the whole environment, the folder. Nothing is
 * waited for with signals: the owner of the loop polls a pidfd and two pipes. The library
 * installs no SIGCHLD handler and reaps only what it started, by its pidfd.
 *
 * Threads: a child is one thread's at a time.
 */
#ifndef HOLDFAST_CHILD_H
#define HOLDFAST_CHILD_H

#include <holdfast/process.h>
#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_child_plan {
    uint32_t size;
    const char *const *argv; /* NULL ends; argv[0] is found on the environment's PATH */
    const char *const *env;  /* NULL ends; all of it: "NAME=value" */
    const char *cwd;         /* absolute */
    int stdin_fd;            /* the child's standard input; -1: /dev/null */
    int inherit_fd;          /* stays open in the child, for a lock; -1: none */
    bool terminal; /* it gets the terminal behind stdin_fd; ^Z is ignored there */
    /* Two descriptors that it writes to (HF_STREAM_COUNT, the caller's to close), whose other
     * ends the caller reads itself. NULL: pipes are made, for hf_child_read. */
    const int *output_fds;
};

struct hf_child;

/* Is there such a command? Stores its path, at most `room` bytes. HF_EINVAL naming
 * "command" names the fault. Nothing is started. */
HF_API HF_MUST_USE int hf_child_find(const char *name, const char *const *env,
                                     const char *cwd, size_t room, char *ret_path,
                                     struct hf_err *err);

/* Start it. When this returns 0 the command runs: a failure to execute it is reported here
 * (HF_EINVAL naming "command" or "cwd"), and nothing is left of it. */
HF_API HF_MUST_USE int hf_child_start(const struct hf_alloc *alloc,
                                      const struct hf_child_plan *plan,
                                      struct hf_child **ret_child, struct hf_err *err);

/* Whether the kernel would run the command: tried in a process that is ended before the command's
 * first instruction. 0 also where that cannot be tried: processes may not be traced here.
 * HF_EINVAL and HF_ETOOBIG name what cannot be run; HF_EBUSY: no process can be made now. */
HF_API HF_MUST_USE int hf_child_try(const struct hf_child_plan *plan, struct hf_err *err);

/* Become the command: this process, in a session of its own, without its descriptors and
 * with nothing to read or write (inherit_fd and terminal are not for this). Either does not
 * return, or returns one of the errors of hf_child_start. */
HF_API HF_MUST_USE int hf_child_become(const struct hf_child_plan *plan,
                                       struct hf_err *err);

/* Forgets the child; does not end it. NULL is fine. */
HF_API void hf_child_free(struct hf_child *child);

HF_API int hf_child_pid(const struct hf_child *child); /* also its process group */
/* Descriptors to poll for input, -1 when there is nothing more: the process itself, and what
 * it writes. They do not block. */
HF_API int hf_child_pidfd(const struct hf_child *child);
HF_API int hf_child_output_fd(const struct hf_child *child, enum hf_stream stream);

/* Read its output: the number of bytes, 0 when there is none now. At the end, or after
 * hf_child_hang_up, the descriptor is closed and becomes -1. */
HF_API size_t hf_child_read(struct hf_child *child, enum hf_stream stream,
                            void *ret_bytes, size_t room);
HF_API void hf_child_hang_up(struct hf_child *child, enum hf_stream stream);

struct hf_child_exit {
    bool known;    /* false: other code reaped it */
    int exit_code; /* where signal is 0 */
    int signal;    /* that ended it */
};

/* Has it ended? True once and from then on; the first time reaps it. */
HF_API bool hf_child_exited(struct hf_child *child, struct hf_child_exit *ret_exit);

/* Signal its process group. Nothing once it has been reaped: the number may be another's. */
HF_API void hf_child_signal(const struct hf_child *child, int signal);

/* ---- locks of tool calls --------------------------------------------------------------
 *
 * The processes of a tool call outlive a worker that is killed. A worker that takes the call
 * over on the same machine must end them before it starts the call again. It finds them by a
 * lock file: all processes of the call inherit the lock, so that it is held until the last of
 * them has gone (docs/internals/processes.md).
 *
 * Order: new, clear until nothing is left, hf_child_start with the descriptor and the path,
 * pass, then held or signal, then free. One thread at a time. */
struct hf_child_lock;

/* How a lock is made. All is copied.
 *   folder   absolute; it is made where it is missing. All workers of a machine share it
 *   session  whose call it is
 *   call     names the call; the same for every execution of it
 *   fence    of the session's claim: the execution of a later claim replaces that of an
 *            earlier one, never the other way round */
struct hf_child_lock_plan {
    size_t size;
    const char *folder;
    const char *session;
    const char *call;
    int64_t fence;
};

/* Makes a lock and takes it. HF_EINVAL, HF_ETOOBIG, HF_EREADONLY, HF_EFULL, HF_ESTOREIO. */
HF_API HF_MUST_USE int hf_child_lock_new(const struct hf_alloc *alloc,
                                         const struct hf_child_lock_plan *plan,
                                         struct hf_child_lock **ret_lock,
                                         struct hf_err *err);

/* Sends the signal (0: none) to what must not run next to the call: other processes of the same
 * call, and processes of calls of the same session whose worker is proven dead. *ret_left is
 * the number of their locks that are still held. HF_EHELD: a later claim executes the call. */
HF_API HF_MUST_USE int hf_child_lock_clear(struct hf_child_lock *lock, int signal,
                                           size_t *ret_left, struct hf_err *err);

#define HF_CHILD_LOCK_VARIABLE "HOLDFAST_LOCK"
/* The value of HF_CHILD_LOCK_VARIABLE in the command's environment. */
HF_API const char *hf_child_lock_path(const struct hf_child_lock *lock);
/* The command's inherit_fd. */
HF_API int hf_child_lock_fd(const struct hf_child_lock *lock);

/* The command has started: from now on the lock is held by its processes only. */
HF_API void hf_child_lock_pass(struct hf_child_lock *lock, const struct hf_child *child);
/* Whether a process of the call may still run. */
HF_API bool hf_child_lock_held(const struct hf_child_lock *lock);
/* Signals all processes of the call, 0: none. Returns how many there are. */
HF_API size_t hf_child_lock_signal(const struct hf_child_lock *lock, int signal);

/* Releases the lock; its file is removed unless processes hold it. NULL is fine. */
HF_API void hf_child_lock_free(struct hf_child_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
