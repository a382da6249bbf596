/* Answers about schedules: each owns every byte it shows. */
#include "store/schedule/schedule.h"

struct hf_schedules {
    struct hf_arena arena;
    struct hf_schedule *items;
    size_t count;
    const char *next;
    bool changed;
};

struct hf_schedule_skips {
    struct hf_arena arena;
    struct hf_schedule_skip *items;
    size_t count;
};

struct hf_schedules *hf_schedules_new(const struct hf_alloc *alloc, size_t room)
{
    struct hf_schedules *made = alloc->realloc(alloc->user, NULL, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct hf_schedules){ 0 };
    hf_arena_init(&made->arena, alloc);
    made->items = hf_arena_array(&made->arena, room, sizeof *made->items);
    if (!made->items) {
        hf_schedules_free(made);
        return NULL;
    }
    return made;
}

void hf_schedules_free(struct hf_schedules *schedules)
{
    if (!schedules)
        return;
    const struct hf_alloc *alloc = schedules->arena.alloc;
    hf_arena_fini(&schedules->arena);
    alloc->free(alloc->user, schedules);
}

int hf_schedules_add(struct hf_schedules *schedules, const struct hf_schedule *schedule)
{
    struct hf_schedule *copy = &schedules->items[schedules->count];
    *copy = *schedule;
    if (hf_fields_keep(&schedules->arena, hf_schedule_table, copy))
        return HF_ENOMEM;
    schedules->count++;
    return 0;
}

void hf_schedules_set_changed(struct hf_schedules *schedules)
{
    schedules->changed = true;
}

int hf_schedules_set_next(struct hf_schedules *schedules, const char *cursor)
{
    schedules->next = hf_arena_text(&schedules->arena, cursor);
    return schedules->next ? 0 : HF_ENOMEM;
}

size_t hf_schedules_count(const struct hf_schedules *schedules)
{
    return schedules->count;
}

const struct hf_schedule *hf_schedules_at(const struct hf_schedules *schedules, size_t i)
{
    return i < schedules->count ? &schedules->items[i] : NULL;
}

const char *hf_schedules_next(const struct hf_schedules *schedules)
{
    return schedules->next;
}

bool hf_schedules_changed(const struct hf_schedules *schedules)
{
    return schedules->changed;
}

struct hf_schedule_skips *hf_schedule_skips_new(const struct hf_alloc *alloc, size_t room)
{
    struct hf_schedule_skips *made = alloc->realloc(alloc->user, NULL, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct hf_schedule_skips){ 0 };
    hf_arena_init(&made->arena, alloc);
    made->items = hf_arena_array(&made->arena, room, sizeof *made->items);
    if (!made->items) {
        hf_schedule_skips_free(made);
        return NULL;
    }
    return made;
}

int hf_schedule_skips_add(struct hf_schedule_skips *skips,
                          const struct hf_schedule_skip *skip)
{
    struct hf_schedule_skip *copy = &skips->items[skips->count];
    *copy = *skip;
    copy->reason = hf_arena_text(&skips->arena, skip->reason);
    copy->work_id = hf_arena_text(&skips->arena, skip->work_id);
    if (!copy->reason || (skip->work_id && !copy->work_id))
        return HF_ENOMEM;
    skips->count++;
    return 0;
}

size_t hf_schedule_skips_count(const struct hf_schedule_skips *skips)
{
    return skips->count;
}

const struct hf_schedule_skip *hf_schedule_skips_at(const struct hf_schedule_skips *skips,
                                                    size_t i)
{
    return i < skips->count ? &skips->items[i] : NULL;
}

void hf_schedule_skips_free(struct hf_schedule_skips *skips)
{
    if (!skips)
        return;
    const struct hf_alloc *alloc = skips->arena.alloc;
    hf_arena_fini(&skips->arena);
    alloc->free(alloc->user, skips);
}
