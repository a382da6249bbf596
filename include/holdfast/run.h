/* Running commands as leased work.
 *
 * A unit of kind "run" holds a command in its payload. A run is one execution of it: the
 * lease is renewed while the command lives, its output is shown and captured, timeouts
 * and requests to cancel reach it, and its end is recorded. The run never makes an
 * outcome up: an outcome that the command recorded itself is kept, and a run that lost
 * its lease only ends the processes that it started.
 *
 * A run has no thread: its owner polls its descriptors and steps it, so that many may share a
 * loop. Threads: a run is one thread's at a time.
 */
#ifndef HOLDFAST_RUN_H
#define HOLDFAST_RUN_H

#include <holdfast/child.h>
#include <holdfast/work.h>

#include <poll.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_RUN_KIND "run"
#define HF_RUN_TTL_MS 30000 /* of leases, where no policy says */

/* Classes of the failure of a command that ended with exit code 0. */
#define HF_RUN_NO_EVIDENCE "evidence_missing"
#define HF_RUN_NOT_CLOSED "close_out_missing"

/* The command of a unit, in its payload: an object with the members argv, cwd, env,
 * secrets, timeout_ms, kill_after_ms, require_close_out, evidence and input. It decides what is
 * executed on the machines of the workers, so it must never be taken from a network. */
struct hf_command {
    uint32_t size;
    const char *const *argv; /* NULL ends */
    const char *cwd;         /* absolute */
    const char *const *env;  /* "NAME=value", NULL ends: stored with the unit */
    const char *const
        *secrets;           /* names, NULL ends: taken from the runner's environment */
    hf_ms timeout_ms;       /* 0: none; then TERM, and KILL after kill_after_ms */
    hf_ms kill_after_ms;    /* 0: 5 s */
    bool require_close_out; /* its exit says nothing: it must close out itself */
    /* Files, NULL ends: when the command has ended with 0 the unit is closed with their
     * SHA-256 as evidence. A path that is not absolute begins in `cwd`. One that cannot be
     * read then is a failure of class HF_RUN_NO_EVIDENCE. */
    const char *const *evidence;
    const char *input; /* JSON that the command gets as HOLDFAST_INPUT; NULL: none */
};

/* The payload of a command; free it with hf_store_text_free of any store, or hf_alloc_system.
 * HF_EINVAL or HF_ETOOBIG names what cannot be stored. */
HF_API HF_MUST_USE int hf_command_write(const struct hf_command *command,
                                        char **ret_payload, struct hf_err *err);

/* A command read from a payload owns its memory. */
struct hf_command_text;
/* HF_EINVAL names the member; HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_command_read(const char *payload,
                                       struct hf_command_text **ret_text,
                                       struct hf_err *err);
HF_API const struct hf_command *hf_command_of(const struct hf_command_text *text);
HF_API void hf_command_free(struct hf_command_text *text); /* NULL is fine */

struct hf_run;

/* Prepare a run: its lock is made in `lock_folder` and held. Claim a unit with this lock and
 * this process's pid, then begin. A run that was not begun can be prepared for one claim
 * after another. HF_EINVAL, HF_ETOOBIG for the folder; HF_EFULL, HF_EREADONLY, HF_ESTOREIO for
 * the lock; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_run_new(struct hf_store *store, const char *lock_folder,
                                  struct hf_run **ret_run, struct hf_err *err);
HF_API const char *hf_run_lock(const struct hf_run *run);

struct hf_run_plan {
    uint32_t size;
    const struct hf_caller *who;
    const struct hf_item *item; /* as of the claim or register: with its token */
    const struct hf_command *command;
    const char *db;              /* what the command gets as HOLDFAST_DB */
    const char *const *base_env; /* environment beneath the command's own, NULL ends */
    int stdin_fd;                /* -1: /dev/null */
    bool terminal;
    int show[HF_STREAM_COUNT]; /* where its output is shown too; -1: nowhere */
};

/* Start the command under the unit's lease. Other processes of the same unit on this machine
 * are ended first if the unit is rerunnable; otherwise the start is refused with HF_EHELD. On
 * failure the unit has been settled as failed (class "spawn_failed"), as far as possible. While
 * the command runs a thread of the run asks the store, so that a store that hangs delays neither
 * hf_run_step nor what it does; hf_run_free waits for the thread's last call. For an owner_bound
 * unit a process is forked that keeps the command's output when this one dies. It remains as long
 * as any process of the command can write, and is not this process's child.
 * HF_EINVAL for the plan; HF_EHELD: processes of the unit still run; HF_ELEASELOST; HF_EBUSY,
 * HF_EFULL: no process or file can be made now; HF_ENOMEM; and the errors of a store. */
HF_API HF_MUST_USE int hf_run_begin(struct hf_run *run, const struct hf_run_plan *plan,
                                    struct hf_err *err);

#define HF_RUN_FDS 6
/* Fill at most HF_RUN_FDS descriptors to wait for; returns how many, and for how long at
 * most. */
HF_API size_t hf_run_poll(struct hf_run *run, struct pollfd fds[HF_RUN_FDS],
                          hf_ms *ret_wait_ms);

/* Take the steps that are due. True when the run is over: all its processes have gone, and its end
 * is recorded as far as it can be. */
HF_API bool hf_run_step(struct hf_run *run);

/* Why to stop, and so how the end is recorded. */
enum hf_run_stop {
    HF_RUN_GOES_ON,
    HF_RUN_INTERRUPT, /* SIGINT; ends as cancelled */
    HF_RUN_DRAIN, /* SIGTERM; rerunnable: handed back; owner_bound: abandoned, by drain */
    HF_RUN_CANCEL, /* a cancel was requested */
    HF_RUN_TIMEOUT,
    HF_RUN_LOST /* the lease is another owner's: nothing is recorded */
};

/* Ask it to stop: the signal goes to the process group, and KILL to all of it when the
 * command's kill_after_ms have passed. Asked again: KILL at once. */
HF_API void hf_run_stop(struct hf_run *run, enum hf_run_stop why);

enum hf_run_end {
    HF_RUN_OPEN,       /* not over yet */
    HF_RUN_SETTLED,    /* by this run */
    HF_RUN_ITSELF,     /* the command settled the unit, or left it waiting */
    HF_RUN_TAKEN,      /* the lease was lost */
    HF_RUN_UNRECORDED, /* the store did not accept the outcome; `err` says why */
    HF_RUN_UNMET /* the command ended with 0, but the unit's close rule asks for what a run
                    does not have: the unit waits for a person; `err` says for what */
};

struct hf_run_result {
    enum hf_run_end end;
    enum hf_run_stop stop;
    struct hf_child_exit exit;
    int exit_code;       /* as a shell has it: 128 + n for signal n */
    const char *status;  /* of the unit, when last seen; static text */
    int64_t left_behind; /* processes that outlived the command and were ended */
    hf_ms next_retry_at;
    struct hf_err err;
};
/* How it goes; complete once the run is over. Lives as long as the run. */
HF_API const struct hf_run_result *hf_run_result(const struct hf_run *run);

/* Forget the run. One that is not over is left as it is: its processes continue under their
 * lock, its lease lapses. NULL is fine. */
HF_API void hf_run_free(struct hf_run *run);

/* The same for a run whose claim may have been made though it was not answered
 * (HF_EUNCERTAIN): its lock stays, so that its death can be proven. A reaper removes it when no
 * unit names it. */
HF_API void hf_run_leave(struct hf_run *run);

/* ---- processes left behind ----------------------------------------------------------- */

struct hf_orphan {
    const char *work_id;
    const char *status; /* of the unit; NULL: there is none */
    const char *disposition;
    int64_t attempt;
    int64_t processes;
    const char *lock;
    bool ending; /* signalled */
};
typedef void hf_each_orphan(void *user, const struct hf_orphan *orphan);

/* As hf_output_read, by the whole id; of an execution on this machine also what is in its files
 * only, as after the death of its runner. Nothing is stored. `lock_folder` as for hf_run_new, or
 * NULL: only what the store has. The errors of hf_output_read. */
HF_API HF_MUST_USE int hf_run_output(struct hf_store *store, const char *lock_folder,
                                     const char *id, int64_t attempt,
                                     struct hf_output **ret_output, struct hf_err *err);

/* Looks at every lock of the folder. Trees of work that may run again, or has ended,
 * whose runner is dead or lost its lease, get TERM, and KILL when they are found again
 * `kill_after_ms` later by the same `reaper`; owner_bound ones are only shown. Files of
 * trees that have gone are removed. `each` (may be NULL) is called for each that was
 * found. */
struct hf_reaper;
/* HF_EINVAL without a folder; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_reaper_new(struct hf_store *store, const char *lock_folder,
                                     struct hf_reaper **ret_reaper, struct hf_err *err);
HF_API void hf_reaper_free(struct hf_reaper *reaper); /* NULL is fine */
/* Returns how many trees are being ended and not gone yet. HF_ESTOREIO for the folder,
 * and the errors of a store. */
HF_API HF_MUST_USE int hf_reaper_pass(struct hf_reaper *reaper,
                                      const struct hf_caller *who, hf_ms kill_after_ms,
                                      hf_each_orphan *each, void *user,
                                      int64_t *ret_ending, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
