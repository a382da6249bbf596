/* Answers about triggers: each owns every byte it shows. */
#include "store/trigger/trigger.h"

struct hf_subscriptions {
    struct hf_arena arena;
    struct hf_subscription *items;
    size_t count;
    const char *next;
    bool changed;
};

struct hf_emission {
    struct hf_arena arena;
    const char *occurrence_id;
    struct hf_delivery *items;
    size_t count;
    bool created;
};

/* ---- subscriptions ----------------------------------------------------------------- */

struct hf_subscriptions *hf_subscriptions_new(const struct hf_alloc *alloc, size_t room)
{
    struct hf_subscriptions *fresh = alloc->realloc(alloc->user, NULL, sizeof *fresh);
    if (!fresh)
        return NULL;
    *fresh = (struct hf_subscriptions){ 0 };
    hf_arena_init(&fresh->arena, alloc);
    fresh->items = hf_arena_array(&fresh->arena, room, sizeof *fresh->items);
    if (fresh->items)
        return fresh;
    hf_subscriptions_free(fresh);
    return NULL;
}

void hf_subscriptions_free(struct hf_subscriptions *subscriptions)
{
    if (!subscriptions)
        return;
    const struct hf_alloc *from = subscriptions->arena.alloc;
    hf_arena_fini(&subscriptions->arena);
    from->free(from->user, subscriptions);
}

int hf_subscriptions_add(struct hf_subscriptions *subscriptions,
                         const struct hf_subscription *subscription)
{
    struct hf_subscription *copy = &subscriptions->items[subscriptions->count];
    *copy = *subscription;
    int rc = hf_fields_keep(&subscriptions->arena, hf_subscription_table, copy);
    subscriptions->count += rc == 0;
    return rc;
}

void hf_subscriptions_set_changed(struct hf_subscriptions *subscriptions)
{
    subscriptions->changed = true;
}

int hf_subscriptions_set_next(struct hf_subscriptions *subscriptions, const char *cursor)
{
    subscriptions->next = hf_arena_text(&subscriptions->arena, cursor);
    return subscriptions->next ? 0 : HF_ENOMEM;
}

size_t hf_subscriptions_count(const struct hf_subscriptions *subscriptions)
{
    return subscriptions->count;
}

const struct hf_subscription *hf_subscriptions_at(
    const struct hf_subscriptions *subscriptions, size_t i)
{
    return i < subscriptions->count ? &subscriptions->items[i] : NULL;
}

const char *hf_subscriptions_next(const struct hf_subscriptions *subscriptions)
{
    return subscriptions->next;
}

bool hf_subscriptions_changed(const struct hf_subscriptions *subscriptions)
{
    return subscriptions->changed;
}

/* ---- emissions --------------------------------------------------------------------- */

struct hf_emission *hf_emission_new(const struct hf_alloc *alloc)
{
    struct hf_emission *emission = alloc->realloc(alloc->user, NULL, sizeof *emission);
    if (!emission)
        return NULL;
    *emission = (struct hf_emission){ 0 };
    hf_arena_init(&emission->arena, alloc);
    return emission;
}

int hf_emission_begin(struct hf_emission *emission, const char *occurrence_id,
                      size_t room)
{
    hf_arena_reset(&emission->arena);
    emission->count = 0;
    emission->occurrence_id = hf_arena_text(&emission->arena, occurrence_id);
    emission->items = hf_arena_array(&emission->arena, room, sizeof *emission->items);
    return emission->occurrence_id && emission->items ? 0 : HF_ENOMEM;
}

int hf_emission_add(struct hf_emission *emission, const struct hf_delivery *delivery)
{
    struct hf_delivery *copy = &emission->items[emission->count];
    *copy = *delivery;
    const char **texts[] = { &copy->delivery_id, &copy->subscription_id,
                             &copy->owner_scope, &copy->subscription_key,
                             &copy->incarnation, &copy->snapshot,
                             &copy->work_id,     &copy->wake_work_id };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!*texts[i])
            continue;
        *texts[i] = hf_arena_text(&emission->arena, *texts[i]);
        if (!*texts[i])
            return HF_ENOMEM;
    }
    emission->count++;
    return 0;
}

void hf_emission_set_created(struct hf_emission *emission)
{
    emission->created = true;
}

const char *hf_emission_occurrence(const struct hf_emission *emission)
{
    return emission->occurrence_id;
}

bool hf_emission_created(const struct hf_emission *emission)
{
    return emission->created;
}

size_t hf_emission_count(const struct hf_emission *emission)
{
    return emission->count;
}

const struct hf_delivery *hf_emission_at(const struct hf_emission *emission, size_t i)
{
    return i < emission->count ? &emission->items[i] : NULL;
}

void hf_emission_free(struct hf_emission *emission)
{
    if (!emission)
        return;
    const struct hf_alloc *from = emission->arena.alloc;
    hf_arena_fini(&emission->arena);
    from->free(from->user, emission);
}
