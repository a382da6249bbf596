/* What both drivers do with a batch in the same way: the memory of its results, which is an
 * arena of the batch's own allocator, and the wake-ups that follow its commit. */
#ifndef HF_DB_BATCH_H
#define HF_DB_BATCH_H

#include <holdfast/sys/driver.h>

#include "base/arena.h"

/* NULL when out of memory. */
struct hf_arena *hf_results_of(struct hf_batch *batch);
void hf_results_forget(struct hf_sql *sql, struct hf_batch *batch);
/* Make room for `more` rows of out_width values behind those there are. */
int hf_results_grow(struct hf_batch *batch, struct hf_call *call, size_t more);

/* The topic of a name, and one more wake-up on a topic. A batch that rings more topics than
 * HF_BATCH_RINGS drops the rest: their waiters look again by themselves. */
uint32_t hf_topic_of_name(const char *name);
void hf_batch_ring(struct hf_batch *batch, uint32_t topic, uint32_t count);

#endif
