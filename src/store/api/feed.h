/* Pages of the feed, for those who fill them. */
#ifndef HF_STORE_API_FEED_H
#define HF_STORE_API_FEED_H

#include <holdfast/sys/store.h>

/* One page, of a query and a caller that have been checked; does not wait. */
int hf_work_feed_once(struct hf_store *store, const struct hf_caller *who,
                      const struct hf_feed_query *query, struct hf_feed **ret_feed,
                      struct hf_err *err);

#endif
