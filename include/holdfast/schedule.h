/* Schedules: work that is made at set times, each slot once.
 *
 * A schedule says when (cron in a time zone, an interval, or once) and what (the unit of
 * work that each slot makes). A pass makes them, which any number of processes may run:
 * the unit, the records of skipped slots and the schedule's next slot are written in one
 * transaction, and a slot is part of the unit's identity (source "scheduler", source id
 * the schedule's name, run id the slot), so that two passes never make one slot twice.
 *
 * Threads: all functions may be called from any thread on one store handle.
 */
#ifndef HOLDFAST_SCHEDULE_H
#define HOLDFAST_SCHEDULE_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A slot comes while a unit of an earlier one is not finished. */
#define HF_OVERLAPS(X)                                                                   \
    X(SKIP, "skip")               /* the slot is skipped                            */   \
    X(ONE_WAITING, "one_waiting") /* one unit may wait; units run one after another */   \
    X(ALLOW, "allow")             /* units may run at the same time                 */   \
    X(REPLACE, "replace")         /* the unfinished unit is cancelled, with the new one */

/* Slots were missed: no pass made them within the miss threshold. */
#define HF_CATCH_UPS(X)                                                                  \
    X(LATEST,                                                                            \
      "latest")     /* the newest one is made, if none is on time; others are skipped */ \
    X(ALL, "all")   /* all are made, the oldest first                                 */ \
    X(NONE, "none") /* all are skipped                                                */

#define X(name, word) HF_OVERLAP_##name,
enum hf_overlap { HF_OVERLAP_DEFAULT, HF_OVERLAPS(X) HF_OVERLAP_COUNT };
#undef X
#define X(name, word) HF_CATCH_UP_##name,
enum hf_catch_up { HF_CATCH_UP_DEFAULT, HF_CATCH_UPS(X) HF_CATCH_UP_COUNT };
#undef X

HF_API const char *hf_overlap_word(enum hf_overlap overlap); /* NULL for DEFAULT */
HF_API const char *hf_catch_up_word(enum hf_catch_up catch_up);
HF_API enum hf_overlap hf_overlap_of(const char *word); /* DEFAULT when unknown */
HF_API enum hf_catch_up hf_catch_up_of(const char *word);

/* One schedule as readers see it. Texts are NULL where the column is null; times and
 * durations are 0. */
struct hf_schedule {
    const char *name;
    const char *tenant;
    const char *state;        /* active | paused | finished */
    const char *state_reason; /* why it is paused */
    const char *timing;       /* cron | interval | once */
    const char *cron;
    hf_ms every_ms;
    hf_ms start_at; /* interval: slots are counted from here; once: the slot */
    const char *zone;
    const char *days; /* cron: day of month "or" | "and" day of week */
    const char *overlap;
    const char *catch_up;
    hf_ms miss_threshold_ms;
    const char *kind;
    const char *queue;
    const char *lane_key;
    const char *payload; /* JSON */
    int64_t priority;
    int64_t max_attempts;
    const char *retry_policy; /* JSON */
    const char *disposition;
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    const char *wake_session; /* its units are inputs of this session */
    const char *origin;       /* the set of the file that declares it; NULL: none does */
    int64_t revision;         /* raised by every change that a person makes */
    hf_ms next_at;            /* the next slot; 0: there is none */
    hf_ms last_slot_at;       /* the newest slot that was made */
    const char *last_work_id;
    int64_t made;     /* slots that became units */
    int64_t skipped;  /* slots that did not */
    int64_t failures; /* passes in a row that could not handle it */
    const char *last_error;
    hf_ms created_at;
    hf_ms updated_at;
};

/* A schedule to add. Exactly one of cron, every_ms and at. Times as text are RFC 3339; one
 * without an offset is a local time of the zone: in a gap the first instant after it, of two
 * the first. */
struct hf_schedule_spec {
    uint32_t size;
    const char *name;
    const char *cron; /* docs/schedules.md has the grammar */
    hf_ms every_ms;   /* at least 1 s */
    const char
        *start; /* of an interval; NULL: now, so that the first slot is one later */
    const char *at;
    const char *zone;          /* IANA; NULL: UTC */
    bool both_days;            /* day of month and day of week must both match */
    enum hf_overlap overlap;   /* default skip */
    enum hf_catch_up catch_up; /* default latest */
    hf_ms miss_threshold_ms;   /* 0: 60 s */
    const char *kind;          /* these as in struct hf_work_spec */
    const char *queue;
    const char *lane_key;
    const char *payload;
    int priority;
    int max_attempts;
    const char *retry_policy;
    enum hf_disposition disposition; /* NONE: rerunnable */
    hf_ms start_timeout_ms;
    hf_ms exec_timeout_ms;
    /* A session that exists: each unit is an input of it, and wakes its agent, instead of waiting
     * in a queue. For overlap skip and allow, without a lane. NULL: none */
    const char *wake_session;
    bool paused; /* at first */
};

/* Schedules that were read own all the memory they show. */
struct hf_schedules;
HF_API size_t hf_schedules_count(const struct hf_schedules *schedules);
HF_API const struct hf_schedule *hf_schedules_at(const struct hf_schedules *schedules,
                                                 size_t i);
HF_API const char *hf_schedules_next(const struct hf_schedules *schedules); /* or NULL */
HF_API bool hf_schedules_changed(const struct hf_schedules *schedules); /* by this call */
HF_API void hf_schedules_free(struct hf_schedules *schedules);          /* NULL is fine */

/* Add one. The same name with the same definition returns the one that is there,
 * unchanged; with another one HF_ECONFLICT. */
HF_API HF_MUST_USE int hf_schedule_add(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_schedule_spec *wanted,
                                       struct hf_schedules **ret_schedules,
                                       struct hf_err *err);

/* Replace the definition of one. `revision` must be the present one, otherwise
 * HF_ECONFLICT; 0 is any. Its next slot stays unless its timing changed; then it is the
 * first one after now that has not been made. `wanted->paused` is ignored. */
HF_API HF_MUST_USE int hf_schedule_update(struct hf_store *store,
                                          const struct hf_caller *who,
                                          const struct hf_schedule_spec *wanted,
                                          int64_t revision,
                                          struct hf_schedules **ret_schedules,
                                          struct hf_err *err);

/* Pause: no slot is made until it is resumed; those in between are recorded as skipped.
 * Repeated it changes nothing. `reason` may be NULL. A finished one is HF_ETRANSITION. */
HF_API HF_MUST_USE int hf_schedule_pause(struct hf_store *store,
                                         const struct hf_caller *who, const char *name,
                                         const char *reason, int64_t revision,
                                         struct hf_schedules **ret_schedules,
                                         struct hf_err *err);
HF_API HF_MUST_USE int hf_schedule_resume(struct hf_store *store,
                                          const struct hf_caller *who, const char *name,
                                          int64_t revision,
                                          struct hf_schedules **ret_schedules,
                                          struct hf_err *err);

/* Removes a schedule with its records of skipped slots. Units that it made remain. `revision` is as
 * of hf_schedule_update. HF_EINVAL, HF_ENOTFOUND, HF_ECONFLICT for another revision, and the errors
 * of a store. */
HF_API HF_MUST_USE int hf_schedule_remove(struct hf_store *store,
                                          const struct hf_caller *who, const char *name,
                                          int64_t revision, struct hf_err *err);

/* Make a unit now, in addition to the slots: its run id is "manual:" and the caller's
 * operation id, or a fresh one. The schedule's next slot stays. Where its overlap rule
 * forbids it: HF_ECONFLICT naming "overlap". Under the rule "replace" the unfinished unit
 * is cancelled. Works on a paused or finished one too. */
HF_API HF_MUST_USE int hf_schedule_run_now(struct hf_store *store,
                                           const struct hf_caller *who, const char *name,
                                           struct hf_answer **ret_answer,
                                           struct hf_err *err);

/* One by its name; HF_ENOTFOUND when there is none. */
HF_API HF_MUST_USE int hf_schedule_get(struct hf_store *store,
                                       const struct hf_caller *who, const char *name,
                                       struct hf_schedules **ret_schedules,
                                       struct hf_err *err);

struct hf_schedule_filter {
    uint32_t size;
    const char *state;  /* NULL: any */
    const char *origin; /* NULL: any */
    size_t limit;       /* 0: 100 */
    const char *after;  /* cursor of an earlier answer */
    bool newest;        /* in the order of creation, the newest first */
};

/* Schedules of the caller's tenant, or of all tenants if it names none, in the order of tenants and
 * names, a page at a time. A page ends after `limit` schedules, after 4 MiB of texts or after
 * 20,000 schedules were examined, so it may have fewer than `limit`, or none, and a cursor. A
 * cursor continues the list that it came from, with the same filter and direction. HF_EINVAL names
 * the field, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_schedule_list(struct hf_store *store,
                                        const struct hf_caller *who,
                                        const struct hf_schedule_filter *filter,
                                        struct hf_schedules **ret_schedules,
                                        struct hf_err *err);

/* Slots that were not made: `slots` of them from first_at to last_at, or more than that. */
struct hf_schedule_skip {
    hf_ms first_at;
    hf_ms last_at;
    int64_t slots;
    bool more;           /* they were counted no further */
    const char *reason;  /* missed overlap waiting replaced duplicate paused updated */
    const char *work_id; /* the unit in the way; NULL: none */
    hf_ms created_at;
};

/* The newest `limit` records, newest first. They live as long as the answer. */
struct hf_schedule_skips;
/* HF_EINVAL, HF_ETOOBIG for `limit`, and the errors of a store. */
HF_API HF_MUST_USE int hf_schedule_skips(struct hf_store *store,
                                         const struct hf_caller *who, const char *name,
                                         size_t limit,
                                         struct hf_schedule_skips **ret_skips,
                                         struct hf_err *err);
HF_API size_t hf_schedule_skips_count(const struct hf_schedule_skips *skips);
HF_API const struct hf_schedule_skip *hf_schedule_skips_at(
    const struct hf_schedule_skips *skips, size_t i);
HF_API void hf_schedule_skips_free(struct hf_schedule_skips *skips);

/* The first `count` slots after `from` that a timing (cron, every_ms, at, zone, start,
 * both_days) has; fewer where there are no more. Needs no store; `wanted` needs no name.
 * ret_slots has room for `count`. HF_EINVAL names the field; HF_ECORRUPT, HF_ESTOREIO for
 * the data of the zone; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_schedule_preview(const struct hf_schedule_spec *wanted,
                                           hf_ms from, size_t count, hf_ms *ret_slots,
                                           size_t *ret_count, struct hf_err *err);

/* The same for a schedule that was read. The errors of hf_schedule_preview. */
HF_API HF_MUST_USE int hf_schedule_upcoming(const struct hf_schedule *schedule,
                                            hf_ms from, size_t count, hf_ms *ret_slots,
                                            size_t *ret_count, struct hf_err *err);

/* ---- a declared set ---------------------------------------------------------------- */

struct hf_sync_report {
    int64_t added;
    int64_t updated;
    int64_t unchanged;
    int64_t kept;    /* orphans, and existing ones under "existing": "keep" that differ */
    int64_t paused;  /* orphans */
    int64_t removed; /* orphans */
};

/* Bring the schedules of one set in line with a JSON text (docs/schedules.md): those it
 * names are added or updated, those of the set that it does not name are orphans, which are
 * kept, paused (the default) or removed. All in one transaction; a fault in one entry names
 * it and changes nothing. HF_EINVAL, HF_ETOOBIG, HF_ECONFLICT for a schedule of another origin,
 * HF_EBUSY, and the errors of a store. */
HF_API HF_MUST_USE int hf_schedule_sync(struct hf_store *store,
                                        const struct hf_caller *who, const char *json,
                                        struct hf_sync_report *ret_report,
                                        struct hf_err *err);

/* ---- passes ------------------------------------------------------------------------ */

struct hf_schedule_report {
    int64_t looked_at;
    int64_t made;    /* units */
    int64_t skipped; /* slots, with a record each or for a run of them */
    int64_t failed;  /* schedules that could not be handled and are looked at later */
    int64_t races;   /* batches that another pass changed meanwhile */
    bool more;       /* the bound was reached: do it again */
    hf_ms next_at;   /* when a pass has something to do next, 0: nothing in sight */
};

/* Create the units that are due now. Any number of processes may do so at the same time. HF_EINVAL
 * for the caller, and the errors of a store; a fault of one schedule is counted in `failed`. */
HF_API HF_MUST_USE int hf_schedule_pass(struct hf_store *store,
                                        const struct hf_caller *who,
                                        struct hf_schedule_report *ret_report,
                                        struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
