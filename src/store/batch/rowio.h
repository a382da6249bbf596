/* Rows between C and SQL. The order of arguments of work_write and work_insert_* is
 * written only here. */
#ifndef HF_STORE_BATCH_ROWIO_H
#define HF_STORE_BATCH_ROWIO_H

#include <holdfast/sys/store.h>

#include "core/ledger/row.h"
#include "store/batch/ops.h"

/* Read one row of a result; texts stay in the result's memory. Unknown words are
 * HF_ECORRUPT naming the column. */
int hf_row_read(const struct hf_call *call, size_t i, struct hf_row *ret_row,
                struct hf_err *err);
/* Its work id alone. */
const char *hf_row_id(const struct hf_call *call, size_t i);

/* Where a row of a result is in the order in which rows are claimed. */
struct hf_place {
    int64_t priority, fair_tag, seq;
    size_t row;
};
/* Fills one for each row of the result, in that order. */
void hf_rows_in_order(const struct hf_call *call, struct hf_place *ret_places);

/* Append the statements that make a new unit, or write a decided row over the one read, and
 * those that keep its lane in order. */
struct hf_making {
    const struct hf_row *row;
    const uint8_t *hash; /* 32 bytes: of the request */
    int64_t
        place; /* which row of its limit in this batch, from 1: it has no gate if there is
                      room for this many. 0: its gate is as the row says */
};
void hf_rows_insert(struct hf_ops *ops, const struct hf_making *makings, size_t n);
/* The same in fewer and smaller statements; but a key that exists may refuse the
 * whole batch with HF_ECONFLICT or HF_EGUARD, where it otherwise keeps out its own row
 * only. */
void hf_rows_insert_many(struct hf_ops *ops, const struct hf_making *makings, size_t n);
/* How many rows those statements made; and: refuse the batch unless they make all. */
int64_t hf_rows_inserted(const struct hf_ops *ops);
void hf_rows_expect_all(struct hf_ops *ops);
void hf_row_write(struct hf_ops *ops, const struct hf_row *was, const struct hf_row *row);

/* The next wall-clock moment at which a sweep must look at the row; leases have a clock and a
 * column of their own. */
hf_ms hf_row_next_at(const struct hf_row *row);
/* Append: lock the row's lane; and, after a write, pass the slot of the lane to its first row. */
void hf_lane_lock(struct hf_ops *ops, const struct hf_work *w);
void hf_lane_promote(struct hf_ops *ops, const struct hf_work *w);

/* Append an event that is no transition. */
void hf_event_append(struct hf_ops *ops, const struct hf_row *row, const char *type);

/* Show a row to a reader: copies into the answer. `brief`: id and status only. */
int hf_item_show(struct hf_answer *answer, struct hf_item *item, const struct hf_row *row,
                 bool brief);

/* Note a failure on an item. */
int hf_item_fail(struct hf_answer *answer, struct hf_item *item,
                 const struct hf_err *err);

#endif
