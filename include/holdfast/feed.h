/* The change feed: every event of every unit, once, in one order, from any point on.
 *
 * A reader asks for what comes after its cursor, keeps the cursor that is returned, and
 * continues from there, in another process or after a restart. Nothing is skipped, whatever
 * writers do at the same time: an event is given only when no earlier one can appear any
 * more. A reader is never left without notice of a gap: events that were pruned
 * before it came (HF_FEED_GAP), and a history that was begun anew (HF_FEED_HISTORY).
 */
#ifndef HOLDFAST_FEED_H
#define HOLDFAST_FEED_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_feed_query {
    uint32_t size;
    const char *after; /* a cursor; NULL: from the oldest event that is kept; "end": only
                          what comes from now on */
    size_t limit;      /* events; 0: 100 */
    const char *queue; /* NULL: any, for each of the three */
    const char *kind;
    const char *type; /* of the event */
    hf_ms wait_ms;    /* wait up to this long for the first event */
};

struct hf_feed_item {
    struct hf_event event;
    const char *tenant;
    const char *queue;
    const char *kind;
    const char *cursor; /* from the events after this one */
};

/* Events after the cursor were pruned before they were read: the next ones follow a hole. */
#define HF_FEED_GAP 1u
/* The store began another history since the cursor was given (a restore, a failover that
 * lost something, `store bump`). The events that follow are those of the new history from
 * where it began, or from the cursor if that is earlier: later ones of the old history,
 * which the reader has seen, are no longer true. */
#define HF_FEED_HISTORY 2u

/* One page; it owns all the memory it shows. */
struct hf_feed;
HF_API size_t hf_feed_count(const struct hf_feed *feed);
HF_API const struct hf_feed_item *hf_feed_at(const struct hf_feed *feed, size_t i);
HF_API unsigned hf_feed_notices(const struct hf_feed *feed);    /* before its events */
HF_API int64_t hf_feed_incarnation(const struct hf_feed *feed); /* of the store */
/* The cursor to continue from, also after a page without events. Never NULL. */
HF_API const char *hf_feed_next(const struct hf_feed *feed);
/* True when the page ended before the feed did: ask again at once. */
HF_API bool hf_feed_more(const struct hf_feed *feed);
HF_API void hf_feed_free(struct hf_feed *feed); /* NULL is fine */

/* A page of the feed of the caller's tenant, or of all where it names none. The events are
 * those of hf_work_events without the rows that only show a lease. HF_EINVAL naming "after":
 * no cursor, or one of a later history than this store's. */
HF_API HF_MUST_USE int hf_work_feed(struct hf_store *store, const struct hf_caller *who,
                                    const struct hf_feed_query *query,
                                    struct hf_feed **ret_feed, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
