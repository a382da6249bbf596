/* The public verbs over schedules: check the input, complete the caller, hand over. */
#include "core/schedule/schedule.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/schedule/file.h"
#include "store/api/work.h"
#include "store/schedule/schedule.h"

#define LIST_DEFAULT 100

static int begin(struct hf_store *store, const struct hf_caller *given,
                 struct hf_caller *ret_who, struct hf_err *err)
{
    int rc = hf_caller_complete(given, "system", "holdfast", ret_who, err);
    if (rc == 0 && !store->methods->schedules)
        rc = hf_fail(err, HF_EINVAL, "store", "this store has no schedules");
    return rc;
}

static int check_name(const char *name, struct hf_err *err)
{
    return hf_check_key(name, (size_t)HF_MAX_SCHEDULE_NAME_BYTES, "name", err);
}

static int new_answer(struct hf_store *store, size_t room, struct hf_schedules **ret,
                      struct hf_err *err)
{
    *ret = hf_schedules_new(store->alloc, room);
    return *ret ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int finish(int rc, struct hf_schedules *made, struct hf_schedules **ret_schedules)
{
    if (rc)
        hf_schedules_free(made);
    else
        *ret_schedules = made;
    return rc;
}

/* What adding and updating check alike. */
static int begin_define(struct hf_store *store, const struct hf_schedule_new *wanted,
                        struct hf_schedule_new *ret_full, struct hf_schedules **ret_made,
                        struct hf_err *err)
{
    int rc = hf_sized_copy(wanted, sizeof *ret_full, sizeof *ret_full, ret_full, err);
    if (rc == 0)
        rc = hf_schedule_check(ret_full, true, err);
    return rc ? rc : new_answer(store, 1, ret_made, err);
}

int hf_schedule_add(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_schedule_new *wanted,
                    struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedule_new full;
    struct hf_schedules *made = NULL;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = begin_define(store, wanted, &full, &made, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->add(store, &who, &full, made, &why);
    return finish(hf_fail_as(err, rc, &why), made, ret_schedules);
}

int hf_schedule_update(struct hf_store *store, const struct hf_caller *given,
                       const struct hf_schedule_new *wanted, int64_t revision,
                       struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedule_new full;
    struct hf_schedules *made = NULL;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = begin_define(store, wanted, &full, &made, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->update(store, &who, &full, revision, made, &why);
    return finish(hf_fail_as(err, rc, &why), made, ret_schedules);
}

static int change(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_schedule_change *wanted,
                  struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedules *made = NULL;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = check_name(wanted->name, err);
    if (rc == 0)
        rc = hf_check_text(wanted->reason, (size_t)HF_MAX_REASON_BYTES, "reason", err);
    if (rc == 0)
        rc = new_answer(store, 1, &made, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->change(store, &who, wanted, made, &why);
    return finish(hf_fail_as(err, rc, &why), made, ret_schedules);
}

int hf_schedule_pause(struct hf_store *store, const struct hf_caller *who,
                      const char *name, const char *reason, int64_t revision,
                      struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_schedule_change wanted = { HF_SCHEDULE_PAUSE, name, reason, revision };
    return change(store, who, &wanted, ret_schedules, err);
}

int hf_schedule_resume(struct hf_store *store, const struct hf_caller *who,
                       const char *name, int64_t revision,
                       struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_schedule_change wanted = { HF_SCHEDULE_RESUME, name, NULL, revision };
    return change(store, who, &wanted, ret_schedules, err);
}

int hf_schedule_remove(struct hf_store *store, const struct hf_caller *who,
                       const char *name, int64_t revision, struct hf_err *err)
{
    struct hf_schedule_change wanted = { HF_SCHEDULE_REMOVE, name, NULL, revision };
    struct hf_schedules *removed = NULL;
    int rc = change(store, who, &wanted, &removed, err);
    if (rc == 0)
        hf_schedules_free(removed);
    return rc;
}

int hf_schedule_trigger(struct hf_store *store, const struct hf_caller *given,
                        const char *name, struct hf_answer **ret_answer,
                        struct hf_err *err)
{
    struct hf_caller who;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = check_name(name, err);
    struct hf_answer *answer = rc == 0 ? hf_answer_new(store->alloc) : NULL;
    if (rc == 0 && !answer)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->trigger(store, &who, name, answer, &why);
    if (rc)
        hf_answer_free(answer);
    else
        *ret_answer = answer;
    return hf_fail_as(err, rc, &why);
}

int hf_schedule_get(struct hf_store *store, const struct hf_caller *given,
                    const char *name, struct hf_schedules **ret_schedules,
                    struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedules *made = NULL;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = check_name(name, err);
    if (rc == 0)
        rc = new_answer(store, 1, &made, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->get(store, &who, name, made, &why);
    return finish(hf_fail_as(err, rc, &why), made, ret_schedules);
}

static int check_filter(struct hf_schedule_filter *filter, struct hf_err *err)
{
    static const char *const states[] = { "active", "paused", "finished" };
    bool known = !filter->state;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        known = known || hf_same(filter->state, states[i]);
    if (!known)
        return hf_fail(err, HF_EINVAL, "state",
                       "state must be active, paused or finished");
    if (filter->limit > (size_t)HF_MAX_PAGE)
        return hf_fail(err, HF_ETOOBIG, "limit",
                       "a page must hold at most %lld schedules", (long long)HF_MAX_PAGE);
    if (filter->limit == 0)
        filter->limit = LIST_DEFAULT;
    int rc = hf_check_key_opt(filter->origin, (size_t)HF_MAX_KEY_BYTES, "origin", err);
    return rc ? rc
              : hf_check_key_opt(filter->after, SCHEDULE_CURSOR_BYTES - 1, "after", err);
}

int hf_schedule_list(struct hf_store *store, const struct hf_caller *given,
                     const struct hf_schedule_filter *wanted,
                     struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_schedule_filter filter;
    struct hf_schedules *made = NULL;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof filter, sizeof filter, &filter, err);
    if (rc == 0)
        rc = check_filter(&filter, err);
    if (rc == 0)
        rc = new_answer(store, filter.limit, &made, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    rc = store->methods->schedules->list(store, &who, &filter, made, &why);
    return finish(hf_fail_as(err, rc, &why), made, ret_schedules);
}

int hf_schedule_skips(struct hf_store *store, const struct hf_caller *given,
                      const char *name, size_t limit,
                      struct hf_schedule_skips **ret_skips, struct hf_err *err)
{
    struct hf_caller who;
    int rc = begin(store, given, &who, err);
    if (rc == 0)
        rc = check_name(name, err);
    if (rc == 0 && limit > (size_t)HF_MAX_PAGE)
        rc = hf_fail(err, HF_ETOOBIG, "limit", "a page must hold at most %lld records",
                     (long long)HF_MAX_PAGE);
    if (rc)
        return rc;
    limit = limit ? limit : LIST_DEFAULT;
    struct hf_schedule_skips *made = hf_schedule_skips_new(store->alloc, limit);
    if (!made)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_err why = { 0 };
    rc = store->methods->schedules->skips(store, &who, name, limit, made, &why);
    if (rc)
        hf_schedule_skips_free(made);
    else
        *ret_skips = made;
    return hf_fail_as(err, rc, &why);
}

int hf_schedule_sync(struct hf_store *store, const struct hf_caller *given,
                     const char *json, struct hf_sync_report *ret_report,
                     struct hf_err *err)
{
    struct hf_caller who;
    struct hf_arena arena;
    struct hf_schedule_set set;
    int rc = begin(store, given, &who, err);
    if (rc)
        return rc;
    struct hf_err why = { 0 };
    hf_arena_init(&arena, store->alloc);
    rc = hf_schedule_file_read(&arena, json, &set, &why);
    if (rc == 0)
        rc = store->methods->schedules->sync(store, &who, &set, ret_report, &why);
    hf_arena_fini(&arena);
    return hf_fail_as(err, rc, &why);
}

/* ---- slots to come ----------------------------------------------------------------- */

int hf_schedule_upcoming(const struct hf_schedule *schedule, hf_ms from, size_t count,
                         hf_ms *ret_slots, size_t *ret_count, struct hf_err *err)
{
    struct hf_zones zones;
    struct hf_timing timing;
    const struct hf_zone *zone = NULL;
    hf_zones_init(&zones, hf_alloc_system());
    int rc = hf_zones_get(&zones, schedule->zone, &zone, err);
    if (rc == 0)
        rc = hf_schedule_timing(schedule, zone, &timing, err);
    if (rc == 0) {
        size_t found = 0;
        hf_ms slot = hf_timing_next(&timing, from);
        for (; slot != 0 && found < count; slot = hf_timing_next(&timing, slot))
            ret_slots[found++] = slot;
        *ret_count = found;
    }
    hf_zones_fini(&zones);
    return rc;
}

int hf_schedule_preview(const struct hf_schedule_new *wanted, hf_ms from, size_t count,
                        hf_ms *ret_slots, size_t *ret_count, struct hf_err *err)
{
    struct hf_schedule_new full;
    struct hf_schedule schedule;
    struct hf_zones zones;
    const struct hf_zone *zone = NULL;
    int rc = hf_sized_copy(wanted, sizeof full, sizeof full, &full, err);
    if (rc == 0)
        rc = hf_schedule_check(&full, false, err);
    if (rc)
        return rc;
    hf_zones_init(&zones, hf_alloc_system());
    rc = hf_zones_get(&zones, full.zone ? full.zone : "UTC", &zone, err);
    if (rc == 0)
        rc = hf_schedule_build(&full, zone, from, &schedule, err);
    if (rc == 0)
        rc = hf_schedule_upcoming(&schedule, from, count, ret_slots, ret_count, err);
    hf_zones_fini(&zones);
    return rc;
}
