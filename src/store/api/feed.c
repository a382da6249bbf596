/* The change feed: a page of it as an answer, and the call that returns one page without waiting.
 * A page has the events after a cursor in the order of their commit, the cursor that continues it,
 * and notices about the feed itself (that a cursor is of another history, for example). */
#include "store/api/feed.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"

struct hf_feed {
    struct hf_arena arena;
    struct hf_feed_item *items;
    size_t count;
    size_t room;
    const char *next;
    int64_t incarnation;
    unsigned notices;
    bool more;
};

struct hf_feed *hf_feed_new(const struct hf_alloc *alloc)
{
    struct hf_feed *feed = alloc->realloc(alloc->user, NULL, sizeof *feed);
    if (!feed)
        return NULL;
    *feed = (struct hf_feed){ .next = "" };
    hf_arena_init(&feed->arena, alloc);
    return feed;
}

void hf_feed_free(struct hf_feed *feed)
{
    if (!feed)
        return;
    const struct hf_alloc *alloc = feed->arena.alloc;
    hf_arena_fini(&feed->arena);
    alloc->free(alloc->user, feed);
}

struct hf_feed_item *hf_feed_add(struct hf_feed *feed)
{
    if (feed->count == feed->room) {
        size_t room = feed->room ? 2 * feed->room : 64;
        struct hf_feed_item *items = hf_arena_array(&feed->arena, room, sizeof *items);
        if (!items)
            return NULL;
        if (feed->count)
            memcpy(items, feed->items, feed->count * sizeof *items);
        feed->items = items;
        feed->room = room;
    }
    return &feed->items[feed->count++];
}

const char *hf_feed_text(struct hf_feed *feed, const char *text)
{
    return hf_arena_text(&feed->arena, text);
}

void hf_feed_set(struct hf_feed *feed, const char *next, int64_t incarnation,
                 unsigned notices, bool more)
{
    feed->next = next;
    feed->incarnation = incarnation;
    feed->notices = notices;
    feed->more = more;
}

size_t hf_feed_count(const struct hf_feed *feed)
{
    return feed->count;
}

const struct hf_feed_item *hf_feed_at(const struct hf_feed *feed, size_t i)
{
    return i < feed->count ? &feed->items[i] : NULL;
}

unsigned hf_feed_notices(const struct hf_feed *feed)
{
    return feed->notices;
}

int64_t hf_feed_incarnation(const struct hf_feed *feed)
{
    return feed->incarnation;
}

const char *hf_feed_next(const struct hf_feed *feed)
{
    return feed->next;
}

bool hf_feed_more(const struct hf_feed *feed)
{
    return feed->more;
}

int hf_work_feed_once(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_feed_query *query, struct hf_feed **ret_feed,
                      struct hf_err *err)
{
    struct hf_err why = { 0 };
    struct hf_feed *feed = hf_feed_new(store->alloc);
    if (!feed)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = store->methods->feed(store, who, query, feed, &why);
    if (rc)
        hf_feed_free(feed);
    else
        *ret_feed = feed;
    return hf_fail_as(err, rc, &why);
}
