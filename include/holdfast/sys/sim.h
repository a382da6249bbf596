/* The simulator: whole fleets on one store, in one thread, in virtual time.
 *
 * For those who write a store (sys/store.h) or a SQL driver (sys/driver.h), and for our own
 * tests. One number, the seed of a schedule, decides what workers, sweepers, submitters and
 * operators do, in which order, and what goes wrong meanwhile; so a schedule that shows a
 * fault shows it again. Watched are the promises of docs/GUARANTEES.md: after every call the
 * rows and the event log are folded and compared with the answers to callers; in the end the
 * faults stop, and everything must come to its end.
 *
 *     struct hf_sim_options options = { .size = sizeof options, .seed = 1, .schedules = 100 };
 *     struct hf_sim_report report;
 *     int rc = hf_sim_run(&factory, &options, &report, NULL);
 *
 * The simulator is the archive libholdfast-sim.a; it uses public headers only. How to add a
 * workload or a fault: docs/internals/simulation.md.
 */
#ifndef HOLDFAST_SYS_SIM_H
#define HOLDFAST_SYS_SIM_H

#include <holdfast/sys/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Faults. The command line and the report show the words. */
#define HF_SIM_FAULTS(X)                                                                 \
    X(CRASH, "crash")               /* an actor dies and comes back as another boot */   \
    X(PAUSE, "pause")               /* an actor sleeps past its leases: a zombie    */   \
    X(LOST_REQUEST, "lost_request") /* never executed; the caller cannot know       */   \
    X(LOST_ANSWER, "lost_answer")   /* executed; the caller cannot know             */   \
    X(LATE_REQUEST, "late_request") /* executed later                               */   \
    X(LATE_ANSWER, "late_answer")   /* executed now, told later                     */   \
    X(DUPLICATE, "duplicate")       /* executed again later, no caller waits        */   \
    X(BUSY, "busy")                 /* the store is busy                            */   \
    X(STORE_ERROR, "store_error")   /* the store's disk fails                       */   \
    X(UNCERTAIN_DONE,                                                                    \
      "uncertain_done")               /* a commit that happened is called uncertain   */ \
    X(UNCERTAIN_NOT, "uncertain_not") /* a commit that did not happen is, too         */ \
    X(SKEW, "skew")                   /* an actor's wall clock is off                 */ \
    X(JUMP, "jump")                   /* all wall clocks jump, either way             */ \
    X(RATE, "rate")                   /* an actor's own timers run at another rate    */ \
    X(SUSPEND, "suspend")             /* the machine sleeps: all clocks jump ahead    */ \
    X(SWIZZLE, "swizzle")             /* some actors stop one by one, and come back   */ \
                                      /* in another order                             */ \
    X(PRUNE, "prune")                 /* maintenance in the middle                    */ \
    X(POLICY, "policy")               /* the same: other terms                        */ \
    X(BUMP, "bump")                   /* the same: a new store incarnation            */ \
    X(REOPEN, "reopen")               /* handles are closed and opened again          */ \
    X(NOMEM, "nomem")                 /* an allocation fails                          */ \
    X(POWER, "power")                 /* power loss: what was not synced may be gone  */ \
    X(MEANWHILE, "meanwhile")         /* others act between transactions of a call    */ \
    X(STALL, "stall")                 /* the store answers late: a call takes long    */

#define X(name, word) HF_SIM_##name,
enum hf_sim_fault { HF_SIM_FAULTS(X) HF_SIM_FAULT_COUNT };
#undef X

/* The work of the fleet. */
#define HF_SIM_WORKLOADS(X)                                                              \
    X(PLAIN, "plain")       /* units that end, fail, wait or are handed back       */    \
    X(CHAIN, "chain")       /* each makes the next, in one lane                    */    \
    X(FAN, "fan")           /* one makes three in one batch and waits for them     */    \
    X(RING, "ring")         /* a token is passed on: as many hops as were planned  */    \
    X(CANCEL, "cancel")     /* units that operators cancel and requeue meanwhile   */    \
    X(WAIT, "wait")         /* waits with deadlines and escalation, and resumes    */    \
    X(BOUND, "bound")       /* owner_bound units                                   */    \
    X(EXPIRE, "expire")     /* expire units that holders forget                    */    \
    X(EXTERNAL, "external") /* externally owned units                              */    \
    X(BUDGET, "budget")     /* failures against a bound                            */    \
    X(SESSION, "session")   /* session leases                                      */    \
    X(CRON, "cron")         /* schedules in a night when the clocks change, if any */    \
    X(LIMIT, "limit")       /* units under a cap, and units under a rate           */    \
    X(JOB, "job")           /* jobs with a dedup key, put off and made again       */    \
    X(TRIGGER, "trigger")   /* occurrences and their subscribers, if any           */    \
    X(PROCESS, "process")   /* processes of each disposition, if any               */    \
    X(TURN, "turn")         /* turns in which a model writes cells                 */    \
    X(TALK, "talk")         /* messages to sessions, and turns that commit         */    \
    X(EXTRA, "extra")       /* the store's own (hf_sim_factory.extra)              */

#define X(name, word) HF_SIM_OF_##name,
enum hf_sim_workload { HF_SIM_WORKLOADS(X) HF_SIM_WORKLOAD_COUNT };
#undef X

/* Paths that a run must have taken, or it has shown little. */
#define HF_SIM_MARKS(X)                                                                  \
    X(CLAIMED, "claimed")                                                                \
    X(CLAIM_REPEATED, "claim_repeated")                                                  \
    X(REENTERED, "reentered")                                                            \
    X(SETTLED, "settled")                                                                \
    X(SETTLE_REPEATED, "settle_repeated")                                                \
    X(SETTLED_LATE, "settled_late") /* after the lapse, before a peer acted */           \
    X(STALE_REFUSED, "stale_refused")                                                    \
    X(OLD_STORE_REFUSED, "old_store_refused")                                            \
    X(CREATE_REPEATED, "create_repeated")                                                \
    X(LAPSED, "lapsed")                                                                  \
    X(EXHAUSTED, "exhausted")                                                            \
    X(EXPIRED, "expired")                                                                \
    X(SILENT, "silent") /* an owner_bound unit outlives its lease */                     \
    X(RETRIED, "retried")                                                                \
    X(WAITED, "waited")                                                                  \
    X(WAIT_TIMED_OUT, "wait_timed_out")                                                  \
    X(RESUMED, "resumed")                                                                \
    X(CANCELLED, "cancelled")                                                            \
    X(REQUEUED, "requeued")                                                              \
    X(ABANDONED, "abandoned")                                                            \
    X(COMPLETED, "completed") /* from outside */                                         \
    X(PRUNED, "pruned")                                                                  \
    X(LANE_WAITED, "lane_waited")                                                        \
    X(SESSION_DISPLACED, "session_displaced")                                            \
    X(SLOT_MADE, "slot_made") /* these six where the store is whole */                   \
    X(SCHEDULE_RESUMED, "schedule_resumed")                                              \
    X(FANNED_OUT, "fanned_out")                                                          \
    X(EMIT_REPEATED, "emit_repeated")                                                    \
    X(REGISTERED, "registered")                                                          \
    X(REGISTER_REPEATED, "register_repeated")                                            \
    X(SPARED, "spared") /* a lease got amnesty; where the store has a monitor */         \
    X(LIMIT_WAITED, "limit_waited")                                                      \
    X(RATE_WAITED, "rate_waited")                                                        \
    X(JOB_PUT_OFF, "job_put_off")                                                        \
    X(TURN_RESUMED, "turn_resumed") /* by another holder */                              \
    X(TURN_CUT, "turn_cut")         /* before its last step was saved */                 \
    X(TALK_COMMITTED, "talk_committed")                                                  \
    X(TALK_COMMIT_REPEATED, "talk_commit_repeated")                                      \
    X(TALK_TAKEN_OVER, "talk_taken_over")                                                \
    X(TALK_REFUSED, "talk_refused") /* the writing of a holder that lost its lease */

#define X(name, word) HF_SIM_MARK_##name,
enum hf_sim_mark { HF_SIM_MARKS(X) HF_SIM_MARK_COUNT };
#undef X

/* The words of the lists above; static. */
HF_API const char *hf_sim_fault_word(enum hf_sim_fault fault);
/* Likewise. */
HF_API const char *hf_sim_workload_word(enum hf_sim_workload workload);
/* Likewise. */
HF_API const char *hf_sim_mark_word(enum hf_sim_mark mark);

/* For a store that lets the simulator into its transactions. `before` and `after` each
 * transaction of a call: a code other than 0 is to be the transaction's answer, without
 * running it (before) or although it ran (after). `power_failed`: in this transaction. */
struct hf_sim_hooks {
    void *user;
    int (*before)(void *user, bool writes);
    int (*after)(void *user, bool writes);
    void (*power_failed)(void *user);
};

/* How the simulator comes by a store. `options` carries clock, randomness, allocator and
 * inline_mode; it must be obeyed. Handles are closed with hf_store_close.
 *   open     a new store, and the first handle on it
 *   again    another handle on it, next to open ones or after all closed; may be NULL
 *   discard  all handles are closed: remove the store; may be NULL
 *   power    the power fails: now (true), or in the middle of the next transaction that
 *            writes (false; then it calls the hook). No handle reaches the disk after that,
 *            and what was not synced may be lost, drawn from `chance`. The simulator closes
 *            all handles and calls `again`. May be NULL.
 *   spawn    a process that does nothing, to hold leases in its name; its pid, or 0
 *   kill     ends it, and returns when it is gone. Both or neither may be NULL.
 *   monitor  one pass of a monitor that keeps running; `io_since` is its own memory of calls
 *            that failed, 0 at first. May be NULL.
 *   extra    an act of the store's own, drawn from `chance`: NULL, or the fault */
struct hf_sim_factory {
    uint32_t size;
    const char *name;
    void *user;
    bool hooked;       /* it calls the hooks; false: faults are made around calls */
    bool memory;       /* a failed allocation is an error of the call */
    bool whole;        /* it has schedules, triggers and processes */
    size_t look_every; /* calls between two looks at everything; 0: 1 */
    int (*open)(void *user, const struct hf_store_options *options,
                const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                struct hf_err *err);
    int (*again)(void *user, const struct hf_store_options *options,
                 const struct hf_sim_hooks *hooks, struct hf_store **ret_store,
                 struct hf_err *err);
    void (*discard)(void *user);
    bool (*power)(void *user, uint64_t chance);
    int (*spawn)(void *user);
    void (*kill)(void *user, int pid);
    int (*monitor)(void *user, struct hf_store *store, hf_ms *io_since,
                   struct hf_err *err);
    const char *(*extra)(void *user, uint64_t chance);
};

struct hf_sim_report {
    uint64_t schedules;
    uint64_t steps;
    uint64_t calls;  /* of the store */
    uint64_t faults; /* injected */
    uint64_t violations;
    uint64_t hash; /* of all that happened: the same for the same options */
    uint64_t fault_schedules[HF_SIM_FAULT_COUNT]; /* in how many schedules each fired */
    uint64_t marks[HF_SIM_MARK_COUNT];
    uint64_t first_seed; /* of the first violation */
    uint64_t first_step;
    char first[600]; /* what it was */
    char low[200];   /* a floor of coverage that was not reached, or "" */
};

struct hf_sim_options {
    uint32_t size;
    uint64_t seed;
    uint64_t schedules;         /* with the seeds seed, seed + 1, … */
    uint32_t steps;             /* with faults, before the drain; 0: 200 */
    uint32_t workers;           /* 0: drawn, 2 to 5 */
    uint32_t without_faults;    /* bits of enum hf_sim_fault that stay away */
    uint32_t without_workloads; /* bits of enum hf_sim_workload */
    bool go_on;                 /* after a violation */
    void *user;
    void (*trace)(void *user, const char *line);                   /* may be NULL */
    bool (*progress)(void *user, const struct hf_sim_report *now); /* false: stop */
};

/* Run schedules. 0, also with violations; a code when a store could not be had. The floors
 * (every fault that the store can have in 1 % of schedules, every mark) are judged from
 * 1,000 schedules on. The errors are those of the factory. */
HF_API HF_MUST_USE int hf_sim_run(const struct hf_sim_factory *factory,
                                  const struct hf_sim_options *options,
                                  struct hf_sim_report *ret_report, struct hf_err *err);

/* Make the options of a failing schedule as small as they can be and still fail: fewer
 * steps, faults, workloads, workers. `io_options` has that one schedule. The
 * errors are those of the factory. */
HF_API HF_MUST_USE int hf_sim_shrink(const struct hf_sim_factory *factory,
                                     struct hf_sim_options *io_options,
                                     struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
