/* The public verbs over schedules, as steps of a call (call.h). A schedule creates a unit at set
 * times, its slots; a skip is the record of slots that were not made. A sync makes the schedules of
 * a tenant equal to a set. The last part computes slots to come, without a store. */
#include "core/schedule/schedule.h"
#include "base/text.h"
#include "core/schedule/file.h"
#include "store/api/call.h"
#include "store/api/page.h"
#include "store/schedule/schedule.h"

#define LIST_DEFAULT 100

static struct api_call begin(const struct hf_store *store, const struct hf_caller *given)
{
    struct api_call call = api_begin(given);
    API_STEP(call, store->methods->schedules
                       ? 0
                       : hf_fail(&call.why, HF_EINVAL, "store",
                                 "this store does not implement schedules"));
    return call;
}

/* An answer with room for this many. NULL where an earlier step failed, and without memory, which
 * is then the failed step. */
static struct hf_schedules *room_for(struct api_call *call, const struct hf_store *store,
                                     size_t count)
{
    struct hf_schedules *made = call->rc ? NULL : hf_schedules_new(store->alloc, count);
    API_STEP(*call, made ? 0 : HF_ENOMEM);
    return made;
}

static int check_name(const char *name, struct hf_err *err)
{
    return hf_check_key(name, (size_t)HF_MAX_SCHEDULE_NAME_BYTES, "name", err);
}

static int finish(const struct api_call *call, struct hf_schedules *made,
                  struct hf_schedules **ret_schedules, struct hf_err *err)
{
    if (call->rc)
        hf_schedules_free(made);
    else
        *ret_schedules = made;
    return api_end(call, err);
}

int hf_schedule_add(struct hf_store *store, const struct hf_caller *given,
                    const struct hf_schedule_spec *wanted,
                    struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_schedule_spec full;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &full);
    API_STEP(call, hf_schedule_check(&full, true, &call.why));
    struct hf_schedules *made = room_for(&call, store, 1);
    API_STEP(call,
             store->methods->schedules->add(store, &call.who, &full, made, &call.why));
    return finish(&call, made, ret_schedules, err);
}

int hf_schedule_update(struct hf_store *store, const struct hf_caller *given,
                       const struct hf_schedule_spec *wanted, int64_t revision,
                       struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_schedule_spec full;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &full);
    API_STEP(call, hf_schedule_check(&full, true, &call.why));
    struct hf_schedules *made = room_for(&call, store, 1);
    API_STEP(call, store->methods->schedules->update(store, &call.who, &full, revision,
                                                     made, &call.why));
    return finish(&call, made, ret_schedules, err);
}

static int change(struct hf_store *store, const struct hf_caller *given,
                  const struct hf_schedule_change *wanted,
                  struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, check_name(wanted->name, &call.why));
    API_STEP(call, hf_check_text(wanted->reason, (size_t)HF_MAX_REASON_BYTES, "reason",
                                 &call.why));
    struct hf_schedules *made = room_for(&call, store, 1);
    API_STEP(call, store->methods->schedules->change(store, &call.who, wanted, made,
                                                     &call.why));
    return finish(&call, made, ret_schedules, err);
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

int hf_schedule_run_now(struct hf_store *store, const struct hf_caller *given,
                        const char *name, struct hf_answer **ret_answer,
                        struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, check_name(name, &call.why));
    struct hf_answer *answer = api_answer(&call, store);
    API_STEP(call, store->methods->schedules->run_now(store, &call.who, name, answer,
                                                      &call.why));
    return api_answered(&call, answer, ret_answer, err);
}

int hf_schedule_get(struct hf_store *store, const struct hf_caller *given,
                    const char *name, struct hf_schedules **ret_schedules,
                    struct hf_err *err)
{
    struct api_call call = begin(store, given);
    API_STEP(call, check_name(name, &call.why));
    struct hf_schedules *made = room_for(&call, store, 1);
    API_STEP(call,
             store->methods->schedules->get(store, &call.who, name, made, &call.why));
    return finish(&call, made, ret_schedules, err);
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
    int rc = api_check_page(filter->limit, "schedules", err);
    if (filter->limit == 0)
        filter->limit = LIST_DEFAULT;
    return rc ? rc
              : hf_check_key_opt(filter->origin, (size_t)HF_MAX_KEY_BYTES, "origin", err);
}

/* The answer's cursor, with its mark. */
static int mark_next(struct hf_schedules *schedules, const struct api_page *page,
                     struct hf_arena *arena)
{
    const char *next = NULL;
    int rc = api_page_next(page, arena, hf_schedules_next(schedules), &next);
    return rc || !next ? rc : hf_schedules_set_next(schedules, next);
}

int hf_schedule_list(struct hf_store *store, const struct hf_caller *given,
                     const struct hf_schedule_filter *wanted,
                     struct hf_schedules **ret_schedules, struct hf_err *err)
{
    struct hf_schedule_filter filter;
    struct hf_arena arena;
    struct api_call call = begin(store, given);
    API_COPY(call, wanted, &filter);
    API_STEP(call, check_filter(&filter, &call.why));
    struct api_page page = { .what = "schedules" };
    if (call.rc == 0) {
        page.newest = filter.newest;
        api_page_text(&page, call.who.tenant);
        api_page_text(&page, filter.state);
        api_page_text(&page, filter.origin);
    }
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    struct hf_schedules *made = room_for(&call, store, call.rc ? 0 : filter.limit);
    API_STEP(call,
             store->methods->schedules->list(store, &call.who, &filter, made, &call.why));
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, mark_next(made, &page, &arena));
    hf_arena_fini(&arena);
    return finish(&call, made, ret_schedules, err);
}

int hf_schedule_skips(struct hf_store *store, const struct hf_caller *given,
                      const char *name, size_t limit,
                      struct hf_schedule_skips **ret_skips, struct hf_err *err)
{
    size_t most = limit ? limit : LIST_DEFAULT;
    struct api_call call = begin(store, given);
    API_STEP(call, check_name(name, &call.why));
    API_STEP(call, api_check_page(limit, "records", &call.why));
    struct hf_schedule_skips *made = call.rc ? NULL
                                             : hf_schedule_skips_new(store->alloc, most);
    API_STEP(call, made ? 0 : HF_ENOMEM);
    API_STEP(call, store->methods->schedules->skips(store, &call.who, name, most, made,
                                                    &call.why));
    if (call.rc)
        hf_schedule_skips_free(made);
    else
        *ret_skips = made;
    return api_end(&call, err);
}

int hf_schedule_sync(struct hf_store *store, const struct hf_caller *given,
                     const char *json, struct hf_sync_report *ret_report,
                     struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_schedule_set set;
    struct api_call call = begin(store, given);
    hf_arena_init(&arena, store->alloc);
    API_STEP(call, hf_schedule_file_read(&arena, json, &set, &call.why));
    API_STEP(call, store->methods->schedules->sync(store, &call.who, &set, ret_report,
                                                   &call.why));
    hf_arena_fini(&arena);
    return api_end(&call, err);
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

int hf_schedule_preview(const struct hf_schedule_spec *wanted, hf_ms from, size_t count,
                        hf_ms *ret_slots, size_t *ret_count, struct hf_err *err)
{
    struct hf_schedule_spec full;
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
