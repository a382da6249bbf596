/* Answers about schedules, and what the verbs over them share. */
#ifndef HF_STORE_SCHEDULE_SCHEDULE_H
#define HF_STORE_SCHEDULE_SCHEDULE_H

#include "core/schedule/schedule.h"
#include "store/batch/fieldio.h"
#include "store/schedule/zonefile.h"
#include "store/store.h"

/* Room for `room` schedules; NULL: no memory. */
struct hf_schedules *hf_schedules_new(const struct hf_alloc *alloc, size_t room);
/* A copy of one more; 0 or HF_ENOMEM. */
int hf_schedules_add(struct hf_schedules *schedules, const struct hf_schedule *schedule);
void hf_schedules_set_changed(struct hf_schedules *schedules);
int hf_schedules_set_next(struct hf_schedules *schedules, const char *cursor);

struct hf_schedule_skips *hf_schedule_skips_new(const struct hf_alloc *alloc,
                                                size_t room);
int hf_schedule_skips_add(struct hf_schedule_skips *skips,
                          const struct hf_schedule_skip *skip);

/* ---- rows -------------------------------------------------------------------------- */

#define hf_schedule_table                                                                \
    ((struct hf_field_table){ hf_schedule_fields, hf_schedule_field_count })

/* One row of a result; texts stay in the result's memory. */
void schedule_read(const struct hf_call *call, size_t i, struct hf_schedule_row *ret_row);

/* Append the statement that makes the row, or writes it over the one with its tick. */
void schedule_insert(struct hf_ops *ops, const struct hf_schedule_row *row);
void schedule_write(struct hf_ops *ops, const struct hf_schedule_row *row);

/* Append the statements that remove the row with that tick, and its records. */
void schedule_delete(struct hf_ops *ops, const struct hf_schedule_row *row);

/* Append the record of slots that were not made. */
void schedule_skip(struct hf_ops *ops, const struct hf_schedule *schedule,
                   const struct hf_slot_skips *skips, const char *work_id);

/* ---- deciding ---------------------------------------------------------------------- */

/* A verb over schedules at work: reads into `ops`, appends to `ops` after a reset. */
struct schedule_call {
    struct sql_store *store;
    const struct hf_caller *who;
    struct hf_zones zones;
    struct hf_arena arena;
    struct hf_ops look;  /* what was read */
    struct hf_ops old;   /* units that are replaced */
    struct hf_ops write; /* what is written */
};

void schedule_begin(struct schedule_call *call, struct hf_store *store,
                    const struct hf_caller *who);
void schedule_end(struct schedule_call *call);

/* Read one; 1 when it is there, 0 when not. */
int schedule_find(struct schedule_call *call, const char *name,
                  struct hf_schedule_row *ret_row, struct hf_err *err);

/* The timing of a schedule, its zone loaded. */
int schedule_timing(struct schedule_call *call, const struct hf_schedule *schedule,
                    struct hf_timing *ret_timing, struct hf_err *err);

/* The unit that a slot makes, in the call's arena. One that wakes a session is an input of it:
 * sql_wake_input follows its insert. HF_ENOTFOUND: there is no such session. */
int schedule_make(struct schedule_call *call, const struct hf_caller *who,
                  struct hf_env *env, const struct hf_schedule *schedule,
                  const char *run_id, struct hf_making *ret_making, struct hf_err *err);
/* The same as the caller's act. */
int schedule_unit(struct schedule_call *call, const struct hf_schedule *schedule,
                  const char *run_id, struct hf_making *ret_making, struct hf_err *err);

/* The cancellation of an unfinished unit that the unit `run_id` replaces (overlap `replace`).
 * HF_ETRANSITION: it cannot be ended at once, as a started owner_bound one. */
int schedule_replace(struct schedule_call *call, const struct hf_env *env,
                     const struct hf_row *old, const char *run_id,
                     struct hf_step *ret_step, struct hf_err *err);
/* Append it; before the statement that makes the new unit. */
int schedule_replace_write(struct schedule_call *call, const struct hf_row *old,
                           const struct hf_step *step, struct hf_err *err);

/* The row that `wanted` asks for: a new one, or `was` with another definition. The unit that
 * it would make is tried under the policy in force. Appends records of slots that a changed
 * timing drops. */
int schedule_define(struct schedule_call *call, const struct hf_schedule_spec *wanted,
                    const struct hf_schedule_row *was, struct hf_schedule_row *ret_row,
                    struct hf_err *err);

/* Paused; active again, with records of the slots that passed. */
void schedule_pause(const struct hf_schedule_row *was, const char *reason, hf_ms now,
                    struct hf_schedule_row *ret_row);
int schedule_resume(struct schedule_call *call, const struct hf_schedule_row *was,
                    struct hf_schedule_row *ret_row, struct hf_err *err);

extern const struct hf_schedule_methods sql_schedule_methods;

int sql_schedule_sync(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_schedule_set *set,
                      struct hf_sync_report *ret_report, struct hf_err *err);
int sql_schedule_pass(struct hf_store *store, const struct hf_caller *who,
                      struct hf_schedule_report *ret_report, struct hf_err *err);
int sql_schedule_run_now(struct hf_store *store, const struct hf_caller *who,
                         const char *name, struct hf_answer *answer, struct hf_err *err);

#endif
