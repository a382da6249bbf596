/* The memory of a batch's results, for both drivers: an arena of the batch's own allocator. */
#ifndef HF_DB_BATCH_H
#define HF_DB_BATCH_H

#include <holdfast/sys/driver.h>

#include "base/arena.h"

/* NULL when out of memory. */
struct hf_arena *hf_results_of(struct hf_batch *batch);
void hf_results_forget(struct hf_sql *sql, struct hf_batch *batch);
/* Make room for `more` rows of out_width values behind those there are. */
int hf_results_grow(struct hf_batch *batch, struct hf_call *call, size_t more);
/* After a row was added: whether the call's rows end with it. *bytes is what they have so far. */
bool hf_results_full(struct hf_call *call, size_t *bytes);

#endif
