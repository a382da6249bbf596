/* Rows that are tables of fields (core/ledger/fields.h), between C, SQL and answers. */
#ifndef HF_STORE_BATCH_FIELDIO_H
#define HF_STORE_BATCH_FIELDIO_H

#include "core/ledger/fields.h"
#include "store/batch/ops.h"

struct hf_field_table {
    const struct hf_field *fields;
    size_t count;
};

/* Row i of a result, whose first columns are the fields; texts stay in the result. */
void hf_fields_read(const struct hf_call *call, size_t i, struct hf_field_table table,
                    void *ret_row);

/* The fields as arguments of the call that is open. */
void hf_fields_append(struct hf_ops *ops, struct hf_field_table table, const void *row);

/* Copies the row's texts into the arena: 0 or HF_ENOMEM. */
HF_MUST_USE int hf_fields_keep(struct hf_arena *arena, struct hf_field_table table,
                               void *row);

#endif
