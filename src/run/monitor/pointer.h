/* The pointer of a monitor (holdfast/monitor.h) with a hook for tests. */
#ifndef HF_RUN_MONITOR_POINTER_H
#define HF_RUN_MONITOR_POINTER_H

#include <holdfast/bounds.h>
#include <holdfast/monitor.h>

/* Moments of a write, for tests that end the process there. */
enum hf_pointer_moment {
    HF_POINTER_READ,    /* the ledger was read, the file not touched yet */
    HF_POINTER_WRITTEN, /* the new file is complete, under its temporary name */
    HF_POINTER_RENAMED  /* it has its name; the folder is not synced yet */
};

struct hf_pointer_hook {
    void (*at)(void *user, enum hf_pointer_moment moment); /* NULL: not called */
    void *user;
};

/* As hf_pointer_reconcile, and calls the hook. */
HF_MUST_USE int hf_pointer_reconcile_at(struct hf_store *store,
                                        const struct hf_caller *who,
                                        const struct hf_pointer_plan *plan,
                                        const struct hf_pointer_hook *hook,
                                        struct hf_pointer_report *ret_report,
                                        struct hf_err *err);

#endif
