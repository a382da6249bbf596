/* The feed with waiting: by the bell of all that is committed, and by a look four times
 * per second for what no process rings: other programs' writes, and a bell that was
 * lost. */
#include "store/api/feed.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/api/call.h"
#include "store/api/work.h"
#include "store/batch/ops.h"

#include <holdfast/bounds.h>

#define LOOK_MS 250

static int check(const struct hf_feed_query *query, struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_KEY_BYTES;
    int rc = hf_check_key_opt(query->after, max, "after", err);
    if (rc == 0)
        rc = hf_check_key_opt(query->queue, max, "queue", err);
    if (rc == 0)
        rc = hf_check_key_opt(query->kind, max, "kind", err);
    if (rc == 0)
        rc = hf_check_key_opt(query->type, max, "type", err);
    if (rc == 0)
        rc = api_check_page(query->limit, "events", err);
    return rc ? rc : api_check_time(query->wait_ms, "wait_ms", err);
}

/* Whether a page is worth giving back before the time is up. */
static bool says_something(const struct hf_feed *feed)
{
    return hf_feed_count(feed) > 0 || hf_feed_notices(feed) != 0;
}

/* Looks, and looks again from where it came to, until there is something or `end`. */
static int read_waiting(struct hf_store *store, const struct hf_caller *who,
                        struct hf_feed_query query, hf_ms end, struct hf_feed **ret_feed,
                        struct hf_err *err)
{
    uint32_t topic = HF_TOPIC_ANY;
    struct hf_feed *last = NULL;
    int rc = 0;
    for (;;) {
        struct hf_feed *feed = NULL;
        uint32_t seen = store->methods->bell_seen(store, topic);
        rc = hf_work_feed_once(store, who, &query, &feed, err);
        hf_feed_free(last); /* the query's cursor was its */
        last = feed;
        hf_ms left = rc == 0 ? end - hf_store_mono(store) : 0;
        if (rc || says_something(feed) || (left <= 0 && !hf_feed_more(feed)))
            break;
        query.after = hf_feed_next(feed);
        if (!hf_feed_more(feed)) /* a hint either way: it looks again */
            (void)store->methods->bell_wait(store, topic, seen,
                                            left < LOOK_MS ? left : LOOK_MS);
    }
    if (rc == 0)
        *ret_feed = last;
    return rc;
}

int hf_work_feed(struct hf_store *store, const struct hf_caller *given,
                 const struct hf_feed_query *wanted, struct hf_feed **ret_feed,
                 struct hf_err *err)
{
    struct hf_caller who;
    struct hf_feed_query query;
    int rc = hf_caller_complete(given, "system", "holdfast", &who, err);
    if (rc == 0)
        rc = hf_sized_copy(wanted, sizeof query, sizeof query, &query, err);
    if (rc == 0)
        rc = check(&query, err);
    if (rc)
        return rc;
    query.limit = query.limit ? query.limit : 100;
    return read_waiting(store, &who, query, hf_store_mono(store) + query.wait_ms,
                        ret_feed, err);
}
