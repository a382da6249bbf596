/* The active-work pointer: a small file that names the newest running unit of one owner,
 * for people and for programs that cannot ask the ledger. It is never authoritative: nothing
 * is decided by it, the ledger wins in every disagreement, and a lost or broken file costs
 * nothing but a rewrite.
 *
 * It is replaced by renaming a complete, synced file over it, so a reader sees the old
 * contents or the new, and a crash at any point leaves one of the two.
 */
#ifndef HF_RUN_MONITOR_POINTER_H
#define HF_RUN_MONITOR_POINTER_H

#include <holdfast/limits.h>
#include <holdfast/store.h>
#include <holdfast/work.h>

/* Moments of a write, for tests that end the process there. */
enum hf_pointer_moment {
    HF_POINTER_READ,    /* the ledger was read, the file not touched yet */
    HF_POINTER_WRITTEN, /* the new file is complete, under its temporary name */
    HF_POINTER_RENAMED  /* it has its name; the folder is not synced yet */
};

struct hf_pointer_plan {
    const char *path;
    const char *owner;       /* NULL: as the file says; without a file there is none */
    const char *incarnation; /* NULL: all incarnations of the owner are the present one */
    void (*at)(void *user, enum hf_pointer_moment moment); /* NULL: nobody looks */
    void *user;
};

/* What was done to the file. */
#define HF_POINTER_ACTIONS(X)                                                            \
    X(NOTHING, "nothing")     /* there is none, and there is nothing to name          */ \
    X(KEPT, "kept")           /* it says what is so                                   */ \
    X(WROTE, "wrote")         /* there was none                                       */ \
    X(REFRESHED, "refreshed") /* the same unit, newer facts                         */   \
    X(REPLACED, "replaced")   /* it named another unit                                */ \
    X(CLEARED, "cleared")     /* nothing of the owner runs                            */

#define X(name, word) HF_POINTER_##name,
enum hf_pointer_action { HF_POINTER_ACTIONS(X) HF_POINTER_ACTION_COUNT };
#undef X

struct hf_pointer_report {
    enum hf_pointer_action action;
    bool corrupt;           /* it could not be read, and was renamed to `aside` */
    bool row_missing;       /* it named a unit that the ledger does not have */
    bool older_incarnation; /* it named a running unit of an earlier boot of the owner */
    int64_t running;        /* units of the owner that run */
    char named[64];         /* unit that it named, "" where none */
    char names[64];         /* unit that it names now, "" where none */
    char aside[256];        /* where the corrupt one is; cut at the front if it must be */
};

/* The word of an action. */
const char *hf_pointer_word(enum hf_pointer_action action);

/* Bring the file in line with the ledger. A running unit of an older incarnation is first
 * given to one sweep, which does with it what its disposition and the proofs allow: no more
 * than that, since a file proves nobody's death.
 *   0            *ret_report says what was done
 *   HF_EINVAL    no owner is known, or the path is not that of a file
 *   HF_ESTOREIO  the file or its folder cannot be read or written; the old one stands
 *   or what the ledger's calls give                                                     */
HF_MUST_USE int hf_pointer_reconcile(struct hf_store *store, const struct hf_caller *who,
                                     const struct hf_pointer_plan *plan,
                                     struct hf_pointer_report *ret_report,
                                     struct hf_err *err);

#endif
