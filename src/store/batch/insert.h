/* Common parts of the engines' ways to create units. See plan.h. */
#ifndef HF_STORE_BATCH_INSERT_H
#define HF_STORE_BATCH_INSERT_H

#include "store/batch/rowio.h"

/* The unit's own retry policy. The default is stored as NULL: its text would be a third of the
 * row. */
const char *hf_own_retry_policy(const struct hf_work *w);

/* Append arguments: of work_insert_spec; and of a plain state, without its key. */
void hf_put_work_spec(struct hf_ops *ops, const struct hf_making *making);
void hf_put_plain_state(struct hf_ops *ops, const struct hf_work *w);

/* Append the call that inserts the request's row. */
void hf_insert_work_spec(struct hf_ops *ops, const struct hf_making *making);

/* Whether the two differ in names and contents only. */
bool hf_makings_alike(const struct hf_making *a, const struct hf_making *b);

#endif
