/* The work of a monitor: one pass brings a ledger up to date, and `holdfast monitor` repeats it.
 *
 * A pass holds no state and owns no signal, thread or clock. The caller decides when the next one
 * begins: after `renew_in_ms`, when hf_work_await returns, or after an interval. Any number of
 * monitors may work on one store at the same time.
 *
 * The pointer is a small file that names the newest running unit of one owner, for people and for
 * programs that cannot read the ledger. No decision depends on it: in a disagreement the ledger is
 * right, and a lost or broken file is written again. It is replaced by renaming a complete, synced
 * file over it, so a reader sees the old contents or the new.
 */
#ifndef HOLDFAST_MONITOR_H
#define HOLDFAST_MONITOR_H

#include <holdfast/run.h>
#include <holdfast/schedule.h>
#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sweeps -------------------------------------------------------------------------- */

/* Sweeps (hf_work_sweep) until nothing is left to do, and adds the reports up. `more` is set when
 * it stopped after 1,000 full sweeps. The errors are those of hf_work_sweep; rows that an
 * earlier sweep changed stay changed. */
HF_API HF_MUST_USE int hf_sweep_all(struct hf_store *store, const struct hf_caller *who,
                                    struct hf_sweep_report *ret_report,
                                    struct hf_err *err);

/* Returns how many units a sweep changed: those that it only looked at are not counted. */
HF_API int64_t hf_sweep_changes(const struct hf_sweep_report *report);

/* ---- the pointer --------------------------------------------------------------------- */

struct hf_pointer_plan {
    uint32_t size;
    const char *path;
    const char *owner;       /* NULL: the owner that the file names */
    const char *incarnation; /* NULL: all incarnations of the owner are the present one */
};

/* The changes to the file. */
/* clang-format off */
#define HF_POINTER_ACTIONS(X)                                                            \
    X(NOTHING, "nothing")     /* there is no file, and no unit to name */                \
    X(KEPT, "kept")           /* the file was right */                                   \
    X(WROTE, "wrote")         /* there was no file */                                    \
    X(REFRESHED, "refreshed") /* it names the same unit, with newer facts */             \
    X(REPLACED, "replaced")   /* it named another unit */                                \
    X(CLEARED, "cleared")     /* no unit of the owner runs */
/* clang-format on */

#define X(name, word) HF_POINTER_##name,
enum hf_pointer_action { HF_POINTER_ACTIONS(X) HF_POINTER_ACTION_COUNT };
#undef X

struct hf_pointer_report {
    enum hf_pointer_action action;
    bool corrupt;           /* it could not be read, and was renamed to `aside` */
    bool row_missing;       /* it named a unit that the ledger does not have */
    bool older_incarnation; /* it named a running unit of an earlier boot of the owner */
    int64_t running;        /* units of the owner that run */
    char named[64];         /* the unit that it named; "": none */
    char names[64];         /* the unit that it names now; "": none */
    char aside[256];        /* path of the corrupt file; a long one is cut at its front */
};

/* Returns the word of an action: static text. */
HF_API const char *hf_pointer_word(enum hf_pointer_action action);

/* Makes the file agree with the ledger. A running unit of an older incarnation is swept once
 * first, which does what its disposition and the proofs of death allow: a file proves no death.
 *   HF_EINVAL    no owner is known, the path is not that of a regular file, or `size`
 *   HF_ESTOREIO  the file or its folder cannot be read or written; the old file remains
 *   HF_EBUSY     another process is writing the file
 * and the errors of hf_work_sweep and hf_work_list. */
HF_API HF_MUST_USE int hf_pointer_reconcile(struct hf_store *store,
                                            const struct hf_caller *who,
                                            const struct hf_pointer_plan *plan,
                                            struct hf_pointer_report *ret_report,
                                            struct hf_err *err);

/* ---- a pass -------------------------------------------------------------------------- */

#define HF_MONITOR_FRESH_MS 120000
#define HF_MONITOR_KILL_MS 2000 /* from TERM to KILL of a process that was left behind */

/* The state that a monitor keeps about its own store calls from pass to pass. All zero at the
 * start; it belongs to one monitor, which keeps it between its passes. */
struct hf_monitor_witness {
    hf_ms
        since; /* monotonic: when the calls that fail began to; 0: the last one worked */
};

struct hf_monitor_plan {
    uint32_t size;
    const char *owner;       /* NULL: nothing is renewed, and no pointer is kept */
    const char *incarnation; /* NULL: any incarnation of the owner */
    hf_ms
        fresh_ms; /* activity younger than this is renewed for; 0: HF_MONITOR_FRESH_MS */
    const char *pointer;                /* path of the pointer file; NULL: none */
    struct hf_monitor_witness *witness; /* NULL: a single pass, which has seen no stall */
    struct hf_reaper *reaper; /* ends orphans before the sweep; NULL: orphans are left */
    hf_each_orphan *orphan;   /* called for each orphan that was found; NULL: none */
    void *user;               /* for `orphan` */
};

struct hf_monitor_report {
    struct hf_sweep_report sweep; /* of all sweeps of the pass together */
    struct hf_schedule_report schedules;
    int64_t renewed;
    hf_ms renew_in_ms; /* when the owner's next lease is to be renewed; -1: it has none */
    hf_ms stalled_ms;  /* the longest stall that was seen and acted upon; 0: none */
    int64_t spared;    /* leases that were extended by one term because of it */
    bool has_pointer;
    struct hf_pointer_report pointer;
    int64_t ending; /* process trees of orphans that got a signal and still run */
};

/* Makes one pass:
 *   1. renews the leases of `owner` that are near the last third of their term and whose units
 *      reported activity; this comes first, so that a monitor that was held up does not end its
 *      own healthy work;
 *   2. ends orphans, and sweeps until nothing is left to do;
 *   3. makes the slots of schedules whose time has come;
 *   4. reconciles the pointer.
 * With a witness it also times its store calls. After a stall that may have kept holders from
 * renewing, it extends their leases by one term before it acts on any.
 * When one step fails, the later ones are left out, and the effects of the earlier ones remain.
 *   HF_EINVAL  `size`, or a plan with a pointer for which no owner is known
 * and the errors of hf_work_renew_all, hf_reaper_pass, hf_work_sweep, hf_schedule_pass and
 * hf_pointer_reconcile. A monitor continues after an error whose class is not HF_CLASS_TERMINAL. */
HF_API HF_MUST_USE int hf_monitor_pass(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_monitor_plan *plan,
                                       struct hf_monitor_report *ret_report,
                                       struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
