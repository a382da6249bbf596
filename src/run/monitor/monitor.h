/* One pass of a monitor: what a runtime must do again and again so that its ledger stays
 * true. Holds no state and owns no signal, thread or clock: the caller decides when the next
 * pass is. Any number of monitors may work on one store. */
#ifndef HF_RUN_MONITOR_MONITOR_H
#define HF_RUN_MONITOR_MONITOR_H

#include <holdfast/run.h>
#include <holdfast/schedule.h>

#include "run/monitor/pointer.h"

#define HF_MONITOR_FRESH_MS 120000

/* What a monitor that keeps running knows of its own store calls (rule 13). Zero at the
 * start; one monitor's, between its passes. */
struct hf_witness {
    hf_ms
        since; /* monotonic: when the calls that failed began to; 0: the last one worked */
};

struct hf_monitor_plan {
    const char *owner;          /* NULL: nothing is renewed, no pointer is kept */
    const char *incarnation;    /* NULL: any of the owner's */
    hf_ms fresh_ms;             /* 0: HF_MONITOR_FRESH_MS */
    const char *pointer;        /* path, or NULL */
    struct hf_witness *witness; /* NULL: a single pass, which has seen no stall */
    struct hf_reaper *reaper;   /* ends orphans before the sweep; NULL: nobody does */
    hf_each_orphan *orphan;     /* told of each that was found, or NULL */
    void *user;
};

#define HF_MONITOR_KILL_MS 2000 /* from TERM to KILL of an orphan */

struct hf_monitor_report {
    struct hf_sweep_report sweep; /* of all sweeps of the pass together */
    struct hf_schedule_report schedules;
    int64_t renewed;
    hf_ms renew_in_ms; /* when the owner's next lease wants renewing; -1: none in sight */
    hf_ms stalled_ms;  /* the longest stall that was seen and acted upon; 0: none */
    int64_t spared;    /* leases that got one more term for it */
    bool has_pointer;
    struct hf_pointer_report pointer;
    int64_t ending; /* trees of orphans that were told to end, and have not */
};

/* With a witness: first times a write, and whenever a call stalled for so long that holders
 * may have been kept from renewing, gives their leases one more term before it acts.
 * Renews what is healthy and near the last third of its term, sweeps until there is nothing
 * more to do, makes the slots of schedules that have come, then brings the pointer in line.
 * Renewal comes first: a monitor that was held up must not end its own healthy work. On
 * failure what was done before stays done. */
HF_MUST_USE int hf_monitor_pass(struct hf_store *store, const struct hf_caller *who,
                                const struct hf_monitor_plan *plan,
                                struct hf_monitor_report *ret_report, struct hf_err *err);

/* Sweeps until there is nothing more to do, and adds the reports up. `more` is set when it
 * gave up after many full sweeps: others make work faster than it can look. */
HF_MUST_USE int hf_sweep_all(struct hf_store *store, const struct hf_caller *who,
                             struct hf_sweep_report *ret_report, struct hf_err *err);

/* What the sweeps changed: everything but the rows that were only looked at. */
int64_t hf_sweep_changes(const struct hf_sweep_report *report);

#endif
