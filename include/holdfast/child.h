/* Starting a command and following it: one process, in a process group of its own.
 *
 * Everything is explicit: the arguments, the whole environment, the folder. Nothing is
 * waited for with signals: whoever owns the loop polls a pidfd and two pipes. The library
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
    bool terminal; /* give it the terminal behind stdin_fd; ^Z is ignored there */
    /* Two descriptors that it writes to (HF_STREAM_COUNT, the caller's to close), whose other
     * ends the caller reads itself. NULL: pipes are made, for hf_child_read. */
    const int *output_fds;
};

struct hf_child;

/* Is there such a command? Gives its path, at most `room` bytes. HF_EINVAL naming "command"
 * says what is wrong with it. Nothing is started. */
HF_API HF_MUST_USE int hf_command_find(const char *name, const char *const *env,
                                       const char *cwd, size_t room, char *ret_path,
                                       struct hf_err *err);

/* Start it. When this returns 0 the command runs: a failure to execute it is reported here
 * (HF_EINVAL naming "command" or "cwd"), and nothing is left of it. */
HF_API HF_MUST_USE int hf_child_start(const struct hf_alloc *alloc,
                                      const struct hf_child_plan *plan,
                                      struct hf_child **ret_child, struct hf_err *err);

/* Whether the kernel would run the command: tried in a process that is ended before the command's
 * first instruction. 0 also where that cannot be tried: processes may not be traced here. */
HF_API HF_MUST_USE int hf_child_try(const struct hf_child_plan *plan, struct hf_err *err);

/* Become the command: this process, in a session of its own, without its descriptors and
 * with nothing to read or write (inherit_fd and terminal are not for this). Gives an error,
 * as hf_child_start does, or does not return. */
HF_API HF_MUST_USE int hf_child_become(const struct hf_child_plan *plan,
                                       struct hf_err *err);

/* Forgets the child; does not end it. NULL is fine. */
HF_API void hf_child_free(struct hf_child *child);

HF_API int hf_child_pid(const struct hf_child *child); /* also its process group */
/* Descriptors to poll for input, -1 when there is nothing more: the process itself, and what
 * it writes. They do not block. */
HF_API int hf_child_pidfd(const struct hf_child *child);
HF_API int hf_child_output_fd(const struct hf_child *child, enum hf_stream stream);

/* Read what it wrote: the number of bytes, 0 when there is none now. At the end, or after
 * hf_child_hang_up, the descriptor is closed and becomes -1. */
HF_API size_t hf_child_read(struct hf_child *child, enum hf_stream stream,
                            void *ret_bytes, size_t room);
HF_API void hf_child_hang_up(struct hf_child *child, enum hf_stream stream);

struct hf_child_exit {
    bool known;    /* false: somebody else reaped it */
    int exit_code; /* where signal is 0 */
    int signal;    /* that ended it */
};

/* Has it ended? True once and from then on; the first time reaps it. */
HF_API bool hf_child_exited(struct hf_child *child, struct hf_child_exit *ret_exit);

/* Signal its process group. Nothing once it has been reaped: the number may be another's. */
HF_API void hf_child_signal(const struct hf_child *child, int signal);

#ifdef __cplusplus
}
#endif
#endif
