/* Limits and fair shares of the rows that a batch writes.
 *
 * Each write of a row notes what it changes about its limit; before the batch runs,
 * each name has two statements, which count, grant and let the granted continue. */
#ifndef HF_STORE_BATCH_GATES_H
#define HF_STORE_BATCH_GATES_H

#include "core/ledger/row.h"
#include "store/batch/rowio.h"

/* Note a write: `was` NULL for a new row. */
void hf_gates_note(struct hf_ops *ops, const struct hf_row *was,
                   const struct hf_row *row);

/* Note that something may continue by this name; borrowed like any argument. */
void hf_gates_note_name(struct hf_ops *ops, const char *name);

/* Before rows are made under limits without rates: takes places for those that find room, and
 * numbers them, so that they are written without a gate. All of them must come to be made
 * (hf_rows_expect_all), or places would be counted that no caller has. */
void hf_gates_admit(struct hf_ops *ops, struct hf_making *makings, size_t n);

/* Append the statements that grant what was noted, if anything was. Before reading back. */
void hf_gates_grant(struct hf_ops *ops);

/* After a batch: wake the caller that waits for the rows that may now be claimed.
 * hf_ops_write does this, and grants, by itself. */
void hf_gates_ring(struct hf_ops *ops);
/* How many there were. */
HF_MUST_USE int hf_gates_promoted(const struct hf_ops *ops, int64_t *promoted,
                                  struct hf_err *err);

/* Tags for rows with a fair key that come to their queue. `take` goes before the rows are
 * written, `tag` after. */
void hf_fair_take(struct hf_ops *ops, const struct hf_making *makings, size_t n);
void hf_fair_tag(struct hf_ops *ops, const struct hf_making *makings, size_t n);
/* Whether a write brings a row with a fair key to its queue. */
bool hf_fair_comes(const struct hf_row *was, const struct hf_row *row);

#endif
