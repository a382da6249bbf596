/* The plan of a pass for the slots that are due. See schedule.h. */
#include "core/schedule/schedule.h"

#include <assert.h>

#include "base/err.h"
#include "base/text.h"

#define COUNT_MAX 10000 /* skipped slots are counted no further */
#define RETRY_FIRST_MS 60000
#define RETRY_MAX_MS 3600000

static_assert(sizeof(((struct hf_slot_plan *)0)->made) / sizeof(hf_ms) == 100,
              "as HF_MAX_SCHEDULE_SLOTS");

bool hf_slots_skip(const struct hf_timing *timing, hf_ms from, hf_ms until,
                   const char *reason, struct hf_slot_skips *ret_skips)
{
    hf_ms first = hf_timing_next(timing, from - 1);
    if (first == 0 || first > until)
        return false;
    int64_t slots = hf_timing_count(timing, first - 1, until, COUNT_MAX);
    *ret_skips = (struct hf_slot_skips){
        .first_at = first,
        .last_at = hf_timing_last(timing, first - 1, until),
        .slots = slots,
        .more = slots == COUNT_MAX,
        .reason = reason,
    };
    return true;
}

/* A schedule with its due slots, on its way through the two rules. */
struct planning {
    const struct hf_schedule *schedule;
    const struct hf_timing *timing;
    bool blocked;
    hf_ms now;
    struct hf_slot_plan *plan;
};

static void skip(struct planning *p, hf_ms from, hf_ms until, const char *reason)
{
    struct hf_slot_plan *plan = p->plan;
    hf_assert(plan->skip_count < HF_PLAN_SKIPS);
    if (hf_slots_skip(p->timing, from, until, reason, &plan->skips[plan->skip_count])) {
        plan->skipped += plan->skips[plan->skip_count].slots;
        plan->skip_count++;
    }
}

/* The catch-up rule: skips what is not made up for, and returns the first slot that is
 * left, or 0. */
static hf_ms catch_up(struct planning *p, hf_ms first)
{
    hf_ms missed_until = p->now - p->schedule->miss_threshold_ms;
    enum hf_catch_up rule = hf_catch_up_of(p->schedule->catch_up);
    if (rule == HF_CATCH_UP_ALL || first > missed_until)
        return first;
    hf_ms left = hf_timing_next(p->timing, missed_until); /* the first on time */
    bool any_left = left != 0 && left <= p->now;
    if (!any_left && rule == HF_CATCH_UP_LATEST)
        left = hf_timing_last(p->timing, first - 1, p->now);
    else if (!any_left)
        left = 0;
    skip(p, first, left ? left - 1 : p->now, "missed");
    return left;
}

/* Only the newest slot would not be replaced at once. Returns it. */
static hf_ms replace(struct planning *p, hf_ms first)
{
    hf_ms last = hf_timing_last(p->timing, first - 1, p->now);
    if (last > first)
        skip(p, first, last - 1, "replaced");
    p->plan->made[p->plan->made_count++] = last;
    return last;
}

/* The overlap rule over what is left, from `first` on. Returns the last slot that was
 * handled. */
static hf_ms overlap(struct planning *p, hf_ms first)
{
    struct hf_slot_plan *plan = p->plan;
    enum hf_overlap rule = hf_overlap_of(p->schedule->overlap);
    if (rule == HF_OVERLAP_REPLACE)
        return replace(p, first);
    size_t most = rule == HF_OVERLAP_ALLOW ? (size_t)HF_MAX_SCHEDULE_SLOTS
                  : p->blocked             ? 0
                                           : 1;
    hf_ms slot = first, last = 0;
    while (slot != 0 && slot <= p->now && plan->made_count < most) {
        plan->made[plan->made_count++] = last = slot;
        slot = hf_timing_next(p->timing, slot);
    }
    if (rule == HF_OVERLAP_ALLOW || slot == 0 || slot > p->now)
        return last;
    skip(p, slot, p->now, rule == HF_OVERLAP_SKIP ? "overlap" : "waiting");
    return p->now;
}

void hf_schedule_plan(const struct hf_schedule *schedule, const struct hf_timing *timing,
                      bool blocked, hf_ms now, struct hf_slot_plan *ret_plan)
{
    struct planning p = { schedule, timing, blocked, now, ret_plan };
    ret_plan->made_count = ret_plan->skip_count = 0;
    ret_plan->skipped = 0;
    hf_ms last = now;
    hf_ms left = catch_up(&p, schedule->next_at);
    if (left != 0)
        last = overlap(&p, left);
    ret_plan->next_at = hf_timing_next(timing, last);
}

hf_ms hf_schedule_retry_at(int64_t failures, hf_ms now)
{
    int64_t doubled = failures < 6 ? failures : 6;
    hf_ms wait = RETRY_FIRST_MS << (doubled > 0 ? doubled : 0);
    return now + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}
