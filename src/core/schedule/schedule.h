/* Schedules, and the effect of a pass on one that is due. Pure: zones come in decoded,
 * the moment as a value. */
#ifndef HF_CORE_SCHEDULE_SCHEDULE_H
#define HF_CORE_SCHEDULE_SCHEDULE_H

#include <holdfast/bounds.h>
#include <holdfast/schedule.h>

#include "base/arena.h"
#include "core/ledger/fields.h"
#include "core/schedule/timing.h"

/* All of struct hf_schedule, in the order of sql/schedule.sql's columns. */
extern const struct hf_field hf_schedule_fields[];
extern const size_t hf_schedule_field_count;
extern const struct hf_shape hf_schedule_shape;

struct hf_schedule_row {
    struct hf_schedule s;
    hf_ms look_at; /* when a pass looks at it; 0: never */
    int64_t tick;  /* raised by every write */
};

/* Input that needs no zone: name (unless it is for a preview), timing, and the unit of work
 * that a slot would make. */
HF_MUST_USE int hf_schedule_check(const struct hf_schedule_spec *wanted, bool named,
                                  struct hf_err *err);

/* The schedule that a request asks for: active or paused, revision 1, nothing made. Texts
 * are borrowed from the request. `now` is where an interval without a start begins. The
 * request has been checked. */
HF_MUST_USE int hf_schedule_build(const struct hf_schedule_spec *wanted,
                                  const struct hf_zone *zone, hf_ms now,
                                  struct hf_schedule *ret_schedule, struct hf_err *err);

/* Whether both define the same: all that a request says, but not paused. */
bool hf_schedule_same(const struct hf_schedule *a, const struct hf_schedule *b);
/* Whether both have the same slots. */
bool hf_schedule_same_timing(const struct hf_schedule *a, const struct hf_schedule *b);

/* Its slots, ready to be asked for. `zone` is borrowed. */
HF_MUST_USE int hf_schedule_timing(const struct hf_schedule *schedule,
                                   const struct hf_zone *zone,
                                   struct hf_timing *ret_timing, struct hf_err *err);

/* The first slot from now on that was never made; what passed unseen is left to the caller.
 * 0: none. */
hf_ms hf_schedule_first(const struct hf_schedule *schedule,
                        const struct hf_timing *timing, hf_ms now);

/* The unit that a slot makes, under this run id. Keys come from the arena. */
HF_MUST_USE int hf_schedule_unit(struct hf_arena *arena,
                                 const struct hf_schedule *schedule, const char *run_id,
                                 struct hf_work_spec *ret_new, struct hf_err *err);

/* ---- a pass ------------------------------------------------------------------------ */

struct hf_slot_skips {
    hf_ms first_at;
    hf_ms last_at;
    int64_t slots;
    bool more;
    const char *reason;
};

#define HF_PLAN_SKIPS 2

/* The plan for the slots that are due: created, in order, and skipped; then the next one. */
struct hf_slot_plan {
    hf_ms made[100]; /* HF_MAX_SCHEDULE_SLOTS */
    size_t made_count;
    struct hf_slot_skips skips[HF_PLAN_SKIPS];
    size_t skip_count;
    int64_t skipped; /* slots of all skips */
    hf_ms next_at;   /* 0: none is left */
};

/* `blocked`: a unit is in the way of one more, by the overlap rule; `replace` makes a new
 * one all the same, and the caller ends the other. next_at must be
 * due. Slots later than the miss threshold are missed and fall under the catch-up rule; of
 * what is left the overlap rule decides. Slots that one transaction does not hold stay due. */
void hf_schedule_plan(const struct hf_schedule *schedule, const struct hf_timing *timing,
                      bool blocked, hf_ms now, struct hf_slot_plan *ret_plan);

/* The slots from `from` up to `until` as one record; false when there are none. */
bool hf_slots_skip(const struct hf_timing *timing, hf_ms from, hf_ms until,
                   const char *reason, struct hf_slot_skips *ret_skips);

/* When a schedule that failed this many times in a row is looked at again. */
hf_ms hf_schedule_retry_at(int64_t failures, hf_ms now);

#endif
