/* Answers, trails and policies: what the read and write verbs over units return. Each owns every
 * byte it shows, in memory of its own, and is freed by the caller. An answer has one item per unit,
 * with the unit's row or the error of that item; a trail is the events of one unit. */
#include <holdfast/sys/store.h>

#include <string.h>

#include "base/arena.h"
#include "store/api/page.h"

/* Items are kept in chunks, so that adding one never moves another. Most answers have one
 * item, so the first chunk holds one; each further one is twice as large, up to a bound. */
#define CHUNK_MAX 64

struct item_chunk {
    struct item_chunk *next;
    size_t room;
    struct hf_item items[];
};

struct hf_answer {
    struct hf_arena arena;
    struct item_chunk *first;
    struct item_chunk *last;
    size_t used; /* of the last chunk */
    size_t count;
    const char *next;
};

struct hf_answer *hf_answer_new(const struct hf_alloc *alloc)
{
    struct hf_answer *answer = alloc->realloc(alloc->user, NULL, sizeof *answer);
    if (!answer)
        return NULL;
    *answer = (struct hf_answer){ 0 };
    hf_arena_init(&answer->arena, alloc);
    return answer;
}

void hf_answer_free(struct hf_answer *answer)
{
    if (!answer)
        return;
    const struct hf_alloc *alloc = answer->arena.alloc;
    hf_arena_fini(&answer->arena);
    alloc->free(alloc->user, answer);
}

static bool add_chunk(struct hf_answer *answer)
{
    size_t room = answer->last ? 2 * answer->last->room : 1;
    if (room > CHUNK_MAX)
        room = CHUNK_MAX;
    struct item_chunk *chunk = hf_arena_take(
        &answer->arena, sizeof *chunk + room * sizeof(struct hf_item));
    if (!chunk)
        return false;
    chunk->room = room;
    if (answer->last)
        answer->last->next = chunk;
    else
        answer->first = chunk;
    answer->last = chunk;
    answer->used = 0;
    return true;
}

struct hf_item *hf_answer_add(struct hf_answer *answer)
{
    bool full = !answer->last || answer->used == answer->last->room;
    if (full && !add_chunk(answer))
        return NULL;
    answer->count++;
    return &answer->last->items[answer->used++];
}

void *hf_answer_memory(struct hf_answer *answer, size_t bytes)
{
    return hf_arena_take(&answer->arena, bytes);
}

const char *hf_answer_text(struct hf_answer *answer, const char *text)
{
    return text ? hf_arena_copy(&answer->arena, text, strlen(text)) : NULL;
}

void hf_answer_set_next(struct hf_answer *answer, const char *cursor)
{
    answer->next = cursor;
}

bool hf_answer_mark_next(struct hf_answer *answer, const struct api_page *page)
{
    if (answer->next)
        answer->next = api_page_close(page, &answer->arena, answer->next);
    else
        return true;
    return answer->next != NULL;
}

size_t hf_answer_count(const struct hf_answer *answer)
{
    return answer->count;
}

const struct hf_item *hf_answer_at(const struct hf_answer *answer, size_t i)
{
    if (i >= answer->count)
        return NULL;
    const struct item_chunk *chunk = answer->first;
    for (; i >= chunk->room; chunk = chunk->next)
        i -= chunk->room;
    return &chunk->items[i];
}

const char *hf_answer_next(const struct hf_answer *answer)
{
    return answer->next;
}

struct event_link {
    struct event_link *next;
    struct hf_event event;
};

struct hf_events {
    struct hf_arena arena;
    struct event_link *first;
    struct event_link *last;
    size_t count;
};

struct hf_events *hf_events_new(const struct hf_alloc *alloc)
{
    struct hf_events *events = alloc->realloc(alloc->user, NULL, sizeof *events);
    if (!events)
        return NULL;
    *events = (struct hf_events){ 0 };
    hf_arena_init(&events->arena, alloc);
    return events;
}

void hf_events_free(struct hf_events *events)
{
    if (!events)
        return;
    const struct hf_alloc *alloc = events->arena.alloc;
    hf_arena_fini(&events->arena);
    alloc->free(alloc->user, events);
}

struct hf_event *hf_events_add(struct hf_events *events)
{
    struct event_link *link = hf_arena_new(&events->arena, struct event_link);
    if (!link)
        return NULL;
    if (events->last)
        events->last->next = link;
    else
        events->first = link;
    events->last = link;
    events->count++;
    return &link->event;
}

const char *hf_events_text(struct hf_events *events, const char *text)
{
    return text ? hf_arena_copy(&events->arena, text, strlen(text)) : NULL;
}

size_t hf_events_count(const struct hf_events *events)
{
    return events->count;
}

const struct hf_event *hf_events_at(const struct hf_events *events, size_t i)
{
    if (i >= events->count)
        return NULL;
    struct event_link *link = events->first;
    for (; i > 0; i--)
        link = link->next;
    return &link->event;
}

struct hf_policy_answer {
    struct hf_arena arena;
    struct hf_policy policy;
};

struct hf_policy_answer *hf_policy_answer_new(const struct hf_alloc *alloc,
                                              const struct hf_policy *policy)
{
    struct hf_policy_answer *answer = alloc->realloc(alloc->user, NULL, sizeof *answer);
    if (!answer)
        return NULL;
    hf_arena_init(&answer->arena, alloc);
    answer->policy = *policy;
    answer->policy.retry_policy = hf_arena_text(&answer->arena, policy->retry_policy);
    answer->policy.close_rule = hf_arena_text(&answer->arena, policy->close_rule);
    answer->policy.wait_rule = hf_arena_text(&answer->arena, policy->wait_rule);
    if ((policy->retry_policy && !answer->policy.retry_policy) ||
        (policy->close_rule && !answer->policy.close_rule) ||
        (policy->wait_rule && !answer->policy.wait_rule)) {
        hf_policy_answer_free(answer);
        return NULL;
    }
    return answer;
}

const struct hf_policy *hf_policy_answer_get(const struct hf_policy_answer *answer)
{
    return &answer->policy;
}

void hf_policy_answer_free(struct hf_policy_answer *answer)
{
    if (!answer)
        return;
    const struct hf_alloc *alloc = answer->arena.alloc;
    hf_arena_fini(&answer->arena);
    alloc->free(alloc->user, answer);
}
