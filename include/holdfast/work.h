/* The work ledger: one row per unit of work, one event per change of its status.
 *
 * A unit is created, claimed by an owner under a lease, and ends by an explicit close-out;
 * or it waits, retries, or is ended by a rule that was declared when it was created. Every
 * verb is one transaction: it happens whole or not at all, and a refused call changes no
 * row. The table of legal changes is data; docs/internals/lifecycle.md is printed from it.
 *
 * Threads: all functions may be called from any thread on one store handle.
 */
#ifndef HOLDFAST_WORK_H
#define HOLDFAST_WORK_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_store;

/* The words as they are in the database, in JSON and on the command line. */
#define HF_STATUSES(X)                                                                   \
    X(QUEUED, "queued")                                                                  \
    X(RUNNING, "running")                                                                \
    X(WAITING_USER, "waiting_user")                                                      \
    X(WAITING_EXTERNAL, "waiting_external")                                              \
    X(RETRY_SCHEDULED, "retry_scheduled")                                                \
    X(DONE, "done")                                                                      \
    X(FAILED, "failed")                                                                  \
    X(TIMEOUT, "timeout")                                                                \
    X(CANCELLED, "cancelled")                                                            \
    X(ABANDONED, "abandoned")

#define HF_SOURCES(X)                                                                    \
    X(CONVERSATION, "conversation")                                                      \
    X(CONTROL, "control")                                                                \
    X(SCHEDULER, "scheduler")                                                            \
    X(MANUAL, "manual")

/* The disposition of a running row whose lease has lapsed. */
#define HF_DISPOSITIONS(X)                                                               \
    X(EXPIRE, "expire")           /* ends as timeout after a grace             */        \
    X(RERUNNABLE, "rerunnable")   /* may be claimed again at once              */        \
    X(OWNER_BOUND, "owner_bound") /* stays; only proof of death ends it        */        \
    X(EXTERNALLY_OWNED,                                                                  \
      "externally_owned") /* never claimed; closed from outside        */

#define X(name, word) HF_STATUS_##name,
enum hf_status { HF_STATUS_NONE, HF_STATUSES(X) HF_STATUS_COUNT };
#undef X
#define X(name, word) HF_SOURCE_##name,
enum hf_source { HF_SOURCE_NONE, HF_SOURCES(X) HF_SOURCE_COUNT };
#undef X
#define X(name, word) HF_DISPOSITION_##name,
enum hf_disposition { HF_DISPOSITION_NONE, HF_DISPOSITIONS(X) HF_DISPOSITION_COUNT };
#undef X

HF_API const char *hf_status_word(enum hf_status status); /* NULL for NONE */
HF_API const char *hf_source_word(enum hf_source source);
HF_API const char *hf_disposition_word(enum hf_disposition disposition);
HF_API enum hf_status hf_status_of(const char *word); /* NONE when unknown */
HF_API enum hf_source hf_source_of(const char *word);
HF_API enum hf_disposition hf_disposition_of(const char *word);
HF_API bool hf_status_terminal(enum hf_status status);

/* One row as readers see it. Owned by the result that holds it. Texts are NULL where the
 * column is null; times and durations are 0. */
struct hf_work {
    const char *work_id;
    const char *tenant;
    const char *source_system;
    const char *source_id;
    const char *source_run_id;
    const char *kind;
    const char *queue;
    const char *lane_key;
    const char *dedup_key;
    const char *limit_name; /* the limit it is under: key:…, rate:… or kind:… */
    const char *fair_key;
    const char *idempotency_key;
    const char *ref;
    const char *parent_work_id;
    const char *correlation_id;
    const char *session_id;
    const char *status;
    const char *status_reason;
    const char *gate;        /* why a queued row cannot be claimed now */
    const char *disposition; /* NULL for session-bound rows */
    int64_t priority;
    int64_t generation;    /* how often it was requeued */
    int64_t attempt_count; /* executions begun; never falls */
    int64_t failures;      /* what max_attempts bounds */
    int64_t max_attempts;
    hf_ms due_at;
    hf_ms next_retry_at;
    hf_ms deadline_at; /* wall-clock deadline of the present status */
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char *owner;
    const char *owner_incarnation;
    int64_t lease_fence;
    hf_ms lease_ttl_ms;
    hf_ms lease_expires_at;   /* on the lease clock */
    hf_ms lease_remaining_ms; /* at the moment of reading; negative when lapsed */
    const char *holder;       /* JSON: the known facts about the holder's process */
    const char *waiting_kind;
    const char *waiting_ref;
    hf_ms escalate_at;
    const char *escalate;
    const char *resume_payload; /* JSON given by the last resume */
    const char *error_class;
    const char *result;  /* JSON: summary, outputs, evidence, reviewer */
    const char *payload; /* JSON as it was given */
    const char *payload_ref;
    const char *retry_policy;    /* JSON, as fixed at creation */
    const char *close_rule;      /* evidence | reviewer | NULL */
    const char *cancel_request;  /* JSON: who, when, why */
    const char *abandon_request; /* JSON: who, when, why */
    hf_ms active_at;             /* last reported activity */
    hf_ms first_started_at;
    hf_ms started_at;
    hf_ms finished_at;
    hf_ms acked_at; /* a person has seen that it ended badly */
    hf_ms created_at;
    hf_ms updated_at;
};

struct hf_event {
    int64_t event_id;
    const char *work_id;
    const char *event_type;
    const char *from_status; /* NULL unless the event is a transition */
    const char *to_status;
    int64_t generation;
    int64_t attempt;
    int64_t fence; /* of the row's lease: the one taken, held or let go */
    const char *actor_kind;
    const char *actor;
    const char *message;
    const char *payload; /* JSON */
    const char *correlation_id;
    hf_ms created_at;
};

/* The actor of a call and its tenant. All may be NULL: actor "system:holdfast", tenant
 * "". The operation id makes creates, and changes without a token, repeatable: applied
 * once; a call with the same id returns the answer again, with the row as it is by then.
 * Claims have a nonce for that. */
struct hf_caller {
    uint32_t size;
    const char *actor_kind; /* human | worker | schedule | webhook | system */
    const char *actor;
    const char *tenant;
    const char *operation_id;
    const char *correlation_id;
};

/* One item of an answer. `code` is 0 or HF_E*; `work` is the row after the call where it
 * is known; only the caller that acquired a lease gets its `token`. */
struct hf_item {
    int code;
    bool created;  /* create: false when the row existed */
    bool repeated; /* the same call was applied earlier; nothing was written now */
    const char *token;
    const char *field;   /* of a failure */
    const char *message; /* of a failure */
    struct hf_work work;
};

/* An answer owns all the memory it shows. Free it on any thread. */
struct hf_answer;
HF_API size_t hf_answer_count(const struct hf_answer *answer);
HF_API const struct hf_item *hf_answer_at(const struct hf_answer *answer, size_t i);
HF_API const char *hf_answer_next(const struct hf_answer *answer); /* cursor, or NULL */
HF_API void hf_answer_free(struct hf_answer *answer);              /* NULL is fine */

/* With this flag one refused item refuses the whole batch: the call returns its code and
 * nothing is written. Without it each item is accepted or refused for itself within the
 * one transaction. */
#define HF_ALL_OR_NONE 1u

/* With this flag items carry only the code, the token and work_id and status of the row:
 * for workers that settle many rows and need no more. */
#define HF_BRIEF 2u

/* ---- create ------------------------------------------------------------------------ */

struct hf_work_spec {
    uint32_t size;
    enum hf_source source;
    const char *source_id;
    const char *source_run_id; /* needed for HF_SOURCE_SCHEDULER */
    const char *kind;          /* default "work"; "hf." is reserved */
    const char *queue;         /* default "default" */
    const char *lane_key;      /* at most one running row per key */
    const char *dedup_key;     /* at most one open row per key */
    const char *idempotency_key;
    const char *ref;
    const char *parent_work_id;
    const char *payload; /* JSON; exclusive with payload_ref; both NULL means null */
    const char *payload_ref;
    enum hf_disposition disposition; /* NONE: the policy's, or expire */
    int priority;                    /* 0 to 9; -1 for the default, 3 */
    int max_attempts;                /* 0: the policy's */
    const char *retry_policy;        /* JSON, see docs/ledger.md */
    hf_ms delay_ms;
    hf_ms due_at; /* exclusive with delay_ms */
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char *close_rule; /* "evidence", "reviewer" or NULL */
    bool detached;          /* created as done: the work was its hand-off */
    /* A unit is under one limit at most: that of its key, otherwise that of its kind
     * where one is set. A lane is a limit of its own and excludes both keys. */
    const char *limit_key; /* under the limit key:LIMIT_KEY of its tenant */
    const char *rate_key;  /* under the limit rate:RATE_KEY of its tenant */
    const char *fair_key;  /* keys of one queue and priority take turns, by weight */
    int fair_weight;       /* 1 to 1000; 0: 1 */
    const char *reply_ref; /* of hf_work_deliver and ingress alone (holdfast/ingress.h) */
};

/* Create n rows. Item i answers request i. A repeat of a source triple or idempotency key
 * returns the first row with created = false; with other content HF_ECONFLICT. */
HF_API HF_MUST_USE int hf_work_create(struct hf_store *store, const struct hf_caller *who,
                                      const struct hf_work_spec *news, size_t n,
                                      unsigned flags, struct hf_answer **ret_answer,
                                      struct hf_err *err);

/* ---- claim ------------------------------------------------------------------------- */

struct hf_claim {
    uint32_t size;
    const char *owner;
    const char *incarnation; /* NULL: this handle's own, fresh at each open */
    const char *nonce;       /* NULL: fresh; your own makes the claim repeatable */
    int pid;                 /* ties the lease to that local process; 0: opaque */
    const char *id;          /* claims only this row; NULL: by queue and kind */
    const char *queue;       /* default "default" */
    const char *const *kinds;
    size_t kind_count; /* 0: any */
    size_t limit;      /* 0: 1 */
    hf_ms ttl_ms;      /* 0: by policy */
    hf_ms wait_ms;     /* block up to this long until there is work */
    const char *lock;  /* needs pid: absolute path of the file whose lock the processes of
                          the work inherit; death is proven only when it is free too */
    hf_ms ttl_default_ms; /* where no policy says: 0: 45 s */
};

/* Take up to `limit` rows under a lease each. Nothing to do is no failure: 0 items. With
 * `work_id`: HF_ENOTFOUND, HF_EAMBIGUOUS, HF_ETRANSITION, HF_EHELD. HF_EINVAL names the field,
 * HF_ETOOBIG; HF_ECONFLICT: the nonce was used for another claim; and the errors of a store. */
HF_API HF_MUST_USE int hf_work_claim(struct hf_store *store, const struct hf_caller *who,
                                     const struct hf_claim *claim,
                                     struct hf_answer **ret_answer, struct hf_err *err);

/* ---- change ------------------------------------------------------------------------ */

enum hf_verb {
    HF_VERB_NONE,
    HF_VERB_RENEW,     /* id token [ttl_ms]                                             */
    HF_VERB_TOUCH,     /* id token                      activity, no renewal            */
    HF_VERB_APPEND,    /* id token type payload [reason]                                */
    HF_VERB_WAIT,      /* id token status(WAITING_*) ref [timeout_ms escalate*]         */
    HF_VERB_RESUME,    /* id | ref [status(WAITING_*)], [payload] [owner incarnation pid
                          nonce ttl_ms]                                                 */
    HF_VERB_CLOSE_OUT, /* id token|authority status [reason class summary outputs …]    */
    HF_VERB_FAIL,      /* id token class [reason]       the policy decides              */
    HF_VERB_HAND_BACK, /* id token [reason]                                             */
    HF_VERB_CANCEL,    /* id reason [token]                                             */
    HF_VERB_REQUEUE,   /* id reason                                                     */
    HF_VERB_REQUEST_ABANDON, /* id reason                                               */
    HF_VERB_ABANDON, /* id token                      a started owner_bound row's drain */
    HF_VERB_RESCHEDULE, /* id [timeout_ms] [reason]   due this much later, 0: now; for
                           rows that wait for their time or their retry                   */
    HF_VERB_RELEASE, /* id reason [anew]           what is held for an operator         */
    HF_VERB_COUNT
};

/* "close_out" and the like; NULL for NONE. */
HF_API const char *hf_verb_word(enum hf_verb verb);

struct hf_change {
    uint32_t size;
    enum hf_verb verb;
    const char *id;
    const char *token;
    const char
        *authority; /* who says so, of an externally owned row, or of one that waits for
                              what its close rule asks: a wait for a user under its own id */
    enum hf_status status; /* of a resume by ref: only rows that wait in this way */
    const char *reason;
    const char *error_class;
    const char *summary;
    const char *const *outputs;
    size_t output_count;
    const char *const *evidence;
    size_t evidence_count;
    const char *reviewer;
    const char *type;    /* of an appended event */
    const char *payload; /* JSON */
    const char *ref;
    hf_ms timeout_ms;        /* of a wait; 0: by policy. Of a reschedule; 0: now */
    hf_ms escalate_after_ms; /* 0: never */
    const char *escalate;    /* "event" or "work:KIND" */
    const char *owner;       /* resume straight into running */
    const char *incarnation;
    const char *nonce;
    int pid;
    hf_ms ttl_ms;
    /* Of a release of a session's input. If its turn cannot continue, it may begin anew even if it
     * has called a tool that is not safe. Without it such a release is HF_ETRANSITION, field
     * "anew". */
    bool anew;
};

/* Apply n changes in one transaction, in order. Item i answers change i. A batch may mix
 * verbs but may name a row only once, by id or by reference: otherwise HF_EINVAL naming
 * "id". A resume whose `ref` is the id of a turn's wait is HF_EINVAL naming "ref": such a wait
 * is answered with hf_wait_resolve. Apart from that and bad input the call fails as a whole only
 * when the store does, or under HF_ALL_OR_NONE. */
HF_API HF_MUST_USE int hf_work_change(struct hf_store *store, const struct hf_caller *who,
                                      const struct hf_change *changes, size_t n,
                                      unsigned flags, struct hf_answer **ret_answer,
                                      struct hf_err *err);

/* Renew every lease of one owner, or of one of its incarnations. With `fresh_within_ms`
 * above 0 only rows whose activity is that fresh. Items are the rows that were renewed; a
 * row that was lost is simply not among them. A row that was locked at that moment was
 * skipped, and its item says so (code HF_EBUSY). */
struct hf_renew_all {
    uint32_t size;
    const char *owner;
    const char *incarnation; /* NULL: any incarnation of the owner */
    hf_ms fresh_within_ms;
};
/* HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_renew_all(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_renew_all *renew,
                                         struct hf_answer **ret_answer,
                                         struct hf_err *err);

/* The holder's edges under one name: to a terminal status a close-out, to waiting_* a wait,
 * to queued a hand-back, to retry_scheduled a failure of class `error_class`. Any other
 * target is HF_ETRANSITION. `change->verb` is ignored. */
HF_API HF_MUST_USE int hf_work_transition(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const struct hf_change *change,
                                          struct hf_answer **ret_answer,
                                          struct hf_err *err);

/* ---- read -------------------------------------------------------------------------- */

/* One row by its id, or by a unique prefix or suffix of at least 4 characters. HF_EINVAL,
 * HF_ENOTFOUND, HF_EAMBIGUOUS, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_get(struct hf_store *store, const struct hf_caller *who,
                                   const char *id, struct hf_answer **ret_answer,
                                   struct hf_err *err);

struct hf_filter {
    uint32_t size;
    const enum hf_status *statuses;
    size_t status_count; /* 0: all that are not terminal */
    enum hf_source source;
    const char *queue;
    const char *kind;
    const char *owner;
    const char *ref;     /* waiting for this reference */
    hf_ms older_than_ms; /* age of updated_at */
    bool silent;         /* running with a lapsed lease */
    size_t limit;        /* 0: 100 */
    const char *after;   /* cursor of an earlier answer */
    const char *gate;    /* queued behind this gate: due, lane, limit, rate, held */
    bool newest;         /* from the newest down */
    bool brief;    /* without payload, resume_payload, result, retry_policy and holder */
    bool finished; /* since_ms, from and before are of the end, and not of the creation */
    hf_ms since_ms; /* at most this long ago */
    hf_ms from;     /* not before this time */
    hf_ms before;   /* before this time */
    const char *source_id;
    const char *source_run_id;
    const char *parent_work_id;
    const char *session_id;
    const char *lane_key;
    const char *correlation_id;
    const char *error_class;
    enum hf_disposition disposition;
    const char *find; /* an id, source id or waiting reference, or at least 4 bytes of its
                         beginning or end */
    bool
        unacked; /* bad ends that no person has acknowledged; without `statuses` all three */
    const char *limit_name; /* under this limit */
};

/* Rows in order of creation, or from the newest down, a page at a time. A page ends after `limit`
 * rows, with the row that brings its texts to 4 MiB, or after 20,000 rows were looked at: it may
 * have fewer rows than asked for, or none, and still a next one. hf_answer_next is the cursor of
 * the next page; NULL: this was the last. It continues this list only, with the same filter and in
 * the same direction; another `limit` is allowed. No row is shown twice within one walk, and each
 * that matches from its beginning to its end is shown.
 * HF_EINVAL names the field, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_list(struct hf_store *store, const struct hf_caller *who,
                                    const struct hf_filter *filter,
                                    struct hf_answer **ret_answer, struct hf_err *err);

/* A trail owns all the memory it shows. */
struct hf_events;
HF_API size_t hf_events_count(const struct hf_events *events);
HF_API const struct hf_event *hf_events_at(const struct hf_events *events, size_t i);
HF_API void hf_events_free(struct hf_events *events);

/* The trail of one row (by id, prefix or suffix): at most `limit` events after event
 * `after`, oldest first. An event that acquired or released a lease is followed by a row
 * that says so under the same event_id, so a page always ends with a whole event. HF_EINVAL,
 * HF_ENOTFOUND, HF_EAMBIGUOUS, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_events(struct hf_store *store, const struct hf_caller *who,
                                      const char *id, int64_t after, size_t limit,
                                      struct hf_events **ret_events, struct hf_err *err);

/* Counts of open rows, and the ages an operator looks at first: of the caller's
 * tenant, or of all where it names none. Terminal rows are never counted on request. */
struct hf_stats {
    int64_t by_status[HF_STATUS_COUNT];
    int64_t by_source[HF_SOURCE_COUNT];
    int64_t gated;          /* queued but not claimable now */
    int64_t silent;         /* running, lease lapsed */
    int64_t lapsing;        /* running, less than a third of the term left */
    hf_ms oldest_queued_ms; /* age of the oldest claimable row, 0 when none */
    hf_ms oldest_running_ms;
    hf_ms next_wait_deadline_at;
    hf_ms next_retry_at;
    int64_t ended_badly; /* failed, timeout or abandoned within the last hour, and not
                            acknowledged; at most 20,000 are counted */
};
/* Counts the units of the tenant, or of all where `who` names none. HF_EINVAL, and the errors of
 * a store. */
HF_API HF_MUST_USE int hf_work_stats(struct hf_store *store, const struct hf_caller *who,
                                     struct hf_stats *ret_stats, struct hf_err *err);

/* ---- upkeep ------------------------------------------------------------------------ */

struct hf_sweep_report {
    int64_t looked_at;
    int64_t requeued;  /* lapsed or dead, rerunnable */
    int64_t timed_out; /* by lease, start, execution or wait */
    int64_t failed;    /* attempts exhausted */
    int64_t abandoned;
    int64_t promoted; /* due or retry time reached */
    int64_t escalated;
    int64_t pushed; /* live leases looked at again later */
    int64_t silent; /* owner_bound rows left alone */
    int64_t proven_dead;
    int64_t held;     /* crashed too often in too short a time: held for an operator */
    bool more;        /* the bound was reached: sweep again */
    hf_ms next_at;    /* wall time at which there may be work for a sweep, 0: unknown */
    int64_t orphaned; /* due, but left alone while processes of the work still run here */
};

/* One bounded sweep. Any number of processes may sweep at the same time. HF_EINVAL for the
 * caller, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_sweep(struct hf_store *store, const struct hf_caller *who,
                                     size_t limit, struct hf_sweep_report *ret_report,
                                     struct hf_err *err);

/* Wait, at most most_ms, until a sweep or a pass over the schedules has something to do: a
 * time has come, or a process that holds a lease has died. For monitors. The errors of a store. */
HF_API HF_MUST_USE int hf_work_await(struct hf_store *store, hf_ms most_ms,
                                     struct hf_err *err);

/* Delete terminal rows that finished before now - older_than_ms, with their events, in
 * chunks, at most `limit` rows (0: all of them). HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_work_prune(struct hf_store *store, const struct hf_caller *who,
                                     hf_ms older_than_ms, size_t limit, int64_t *ret_rows,
                                     struct hf_err *err);

/* A limit on rows of one name: "key:K" and "rate:K" of the caller's tenant, "kind:K" of
 * all. With max_running at most this many are claimable or running at once. With rate_count
 * and rate_ms at most burst + rate_count * T / rate_ms start in any time T (a token
 * bucket; a row takes its token when it becomes claimable, and the bucket holds no more
 * than `burst` together with the tokens of those that are not claimed yet). Rows beyond a
 * limit wait behind the gate `limit` or `rate`, and continue in the transaction that makes
 * room for them. All 0: no limit; waiting rows continue.
 *
 * Limits of keys and rates hold at once. That of a kind is for rows without a key or lane,
 * created from now on (other processes see it within a second). A resume straight into
 * running counts, but is not refused. */
struct hf_limit {
    uint32_t size;
    const char *name;
    int64_t max_running; /* 0: any number */
    int64_t rate_count;  /* 0: at any rate */
    hf_ms rate_ms;
    int64_t burst; /* 0: rate_count */
};
/* Sets the limit of a name; it replaces an earlier one, and with all 0 it ends it. HF_EINVAL names
 * the field, and the errors of a store. */
HF_API HF_MUST_USE int hf_limit_set(struct hf_store *store, const struct hf_caller *who,
                                    const struct hf_limit *limit, struct hf_err *err);

/* A limit and its present state. Texts live until the callback returns. */
struct hf_limit_state {
    struct hf_limit limit;
    const char *tenant;
    int64_t used;    /* claimable or running */
    int64_t open;    /* of them claimable, where there is a rate */
    int64_t waiting; /* behind the gate */
    hf_ms next_at;   /* when the next may start by the rate, 0: not waiting for that */
};
typedef void hf_each_limit(void *user, const struct hf_limit_state *state);

/* All limits that were set or are in use, in order of their names. HF_EINVAL, and the errors of
 * a store. */
HF_API HF_MUST_USE int hf_limit_list(struct hf_store *store, const struct hf_caller *who,
                                     hf_each_limit *each, void *user, struct hf_err *err);

/* Policy of a scope: "default", "source:NAME" or "kind:NAME". Fields that are 0 or NULL
 * fall back to the next wider scope. */
struct hf_policy {
    uint32_t size;
    hf_ms ttl_ms;
    hf_ms renew_ms; /* 0: a third of the term; ttl_ms must be at least 3 * renew_ms */
    hf_ms grace_ms; /* -1: not set */
    hf_ms wait_user_ms;
    hf_ms wait_external_ms;
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    int max_attempts;
    const char *retry_policy; /* JSON */
    enum hf_disposition disposition;
    const char *close_rule;
    const char
        *wait_rule; /* "escalation": every wait must bring one; HF_EPOLICY without */
};
/* Stores the policy of a scope. HF_EINVAL and HF_ETOOBIG name the field; and the errors of a
 * store. */
HF_API HF_MUST_USE int hf_policy_set(struct hf_store *store, const struct hf_caller *who,
                                     const char *scope, const struct hf_policy *policy,
                                     struct hf_err *err);

/* The policy in force for a unit of this source and kind (either may be NULL/NONE), all
 * fields filled, retry_policy as a unit would get it; a timeout of 0 and a rule of NULL
 * mean that there is none. Texts live as long as the returned answer handle. */
struct hf_policy_answer;
/* HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_policy_get(struct hf_store *store, enum hf_source source,
                                     const char *kind,
                                     struct hf_policy_answer **ret_answer,
                                     struct hf_err *err);
HF_API const struct hf_policy *hf_policy_answer_get(
    const struct hf_policy_answer *answer);
HF_API void hf_policy_answer_free(struct hf_policy_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
