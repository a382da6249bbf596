/* The operations that each engine performs in its own way: one const table per engine, in
 * plan_lite.c and plan_pg.c. No other code of the store asks which engine it has. */
#ifndef HF_STORE_BATCH_PLAN_H
#define HF_STORE_BATCH_PLAN_H

#include "store/batch/rowio.h"

/* No statement. */
#define HF_SQL_NONE HF_SQL_COUNT

/* Statements that claim a number of rows. */
struct hf_claim_size {
    size_t rows; /* 0: any number, which is the statement's last argument */
    enum hf_sql_id any_kind;
    enum hf_sql_id one_kind; /* NONE: one kind is claimed by some_kinds */
    enum hf_sql_id some_kinds;
    enum hf_sql_id
        from_key; /* on from the last claimed key; NONE: the engine has no fronts */
};

struct hf_plan {
    /* Append the calls that make one plain unit. */
    void (*insert_plain)(struct hf_ops *ops, const struct hf_making *making);
    /* Whether insert_alike takes the two in one statement; and append that statement's call. */
    bool (*alike)(const struct hf_making *a, const struct hf_making *b);
    void (*insert_alike)(struct hf_ops *ops, const struct hf_making *makings, size_t n);

    const struct hf_claim_size *claims; /* the largest first */
    size_t claim_count;
    enum hf_sql_id claim_lone; /* one row by one statement; NONE: there is none */
    enum hf_sql_id
        limit_rate; /* tokens are taken only where it returns rows; NONE: always */

    size_t
        settle_alike_min; /* close-outs that one statement takes when alike; 0: never */
    bool
        own_clock; /* the store's wall clock is not the caller's: due times are converted */
};

const struct hf_plan *hf_plan_of(const struct hf_sql *sql);

extern const struct hf_plan hf_plan_lite;
extern const struct hf_plan hf_plan_pg;

#endif
