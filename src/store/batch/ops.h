/* Building a batch: verbs append calls, a runner runs them. All memory of a batch under
 * construction, and the rows it brought, live until hf_ops_fini. One thread at a time.
 *
 * Errors stick: after a failed append nothing more is added, and hf_ops_write or hf_ops_read
 * reports it. */
#ifndef HF_STORE_BATCH_OPS_H
#define HF_STORE_BATCH_OPS_H

#include <holdfast/sys/driver.h>

#include "base/arena.h"
#include "store/batch/sql_gen.h"

/* The changes of a batch to the rows of one limit; see gates.h. */
struct hf_gate_note {
    const char *name;
    int64_t used;
    int64_t open;
    int64_t back;
};

struct hf_plan;

struct hf_ops {
    struct hf_sql *sql;
    const struct hf_plan *plan; /* of its engine */
    struct hf_arena arena;
    struct hf_batch batch;
    size_t call_room;
    struct hf_val *args; /* of all calls, in order */
    size_t arg_count;
    size_t arg_room;
    size_t ring_room;
    struct hf_gate_note *gates; /* in order of names */
    size_t gate_count;
    size_t gate_room;
    int state; /* 0 or HF_ENOMEM */
};

void hf_ops_init(struct hf_ops *ops, struct hf_sql *sql, const struct hf_alloc *alloc);
void hf_ops_fini(struct hf_ops *ops);

/* Forget calls and results, keep memory. */
void hf_ops_reset(struct hf_ops *ops);

/* Room for this many arguments more, so that a long call does not grow by doubling. */
void hf_ops_reserve(struct hf_ops *ops, size_t args);

/* A larger copy of an array that lives in the batch's arena; NULL: no memory, which sticks. */
void *hf_ops_grow(struct hf_ops *ops, void *old, size_t each, size_t *room);

/* Begin a call; the arguments that follow are its. Returns its index. */
size_t hf_ops_call(struct hf_ops *ops, enum hf_sql_id statement, int64_t expect);
/* The arguments so far are for all sets alike; now comes the first set. Only for statements of sets
 * with parameters of their own. */
void hf_ops_sets(struct hf_ops *ops);
/* The call begun last has nothing to do where that earlier one returned no rows. */
void hf_ops_only_if(struct hf_ops *ops, size_t call);
/* The rows of the call begun last end with the one whose values make this many bytes. */
void hf_ops_bytes_max(struct hf_ops *ops, size_t bytes);
/* After a write whose counts, or whose rows returned by a write, are the answer: HF_EUNCERTAIN
 * where they were lost. */
HF_MUST_USE int hf_ops_counted(const struct hf_ops *ops, struct hf_err *err);
/* Begin the next set of arguments of the same call. */
void hf_ops_again(struct hf_ops *ops);

void hf_ops_i64(struct hf_ops *ops, int64_t value);
void hf_ops_i64_opt(struct hf_ops *ops, int64_t value); /* 0 is null */
void hf_ops_text(struct hf_ops *ops, const char *text); /* borrowed; NULL is null */
void hf_ops_bytes(struct hf_ops *ops, const void *bytes, size_t len);
void hf_ops_null(struct hf_ops *ops);

/* Wake `count` waiters on a queue once the batch is durable. */
void hf_ops_ring_queue(struct hf_ops *ops, const char *queue, uint32_t count);
uint32_t hf_topic_of_queue(const char *queue);
/* Wake all who await the end of a unit. */
void hf_ops_ring_ended(struct hf_ops *ops, const char *work_id);
uint32_t hf_topic_of_end(const char *work_id);

/* Run: as one write transaction, or on a snapshot. */
int hf_ops_write(struct hf_ops *ops, struct hf_err *err);
int hf_ops_read(struct hf_ops *ops, struct hf_err *err);

/* Results. */
const struct hf_call *hf_ops_result(const struct hf_ops *ops, size_t call);
const struct hf_val *hf_out(const struct hf_call *call, size_t row, size_t column);
int64_t hf_out_i64(const struct hf_call *call, size_t row, size_t column); /* null is 0 */
const char *hf_out_text(const struct hf_call *call, size_t row, size_t column);

#endif
