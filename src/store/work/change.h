/* The parts of hf_work_change, shared by its files. */
#ifndef HF_STORE_WORK_CHANGE_H
#define HF_STORE_WORK_CHANGE_H

#include "store/store.h"

/* One change on its way. */
struct change_slot {
    struct hf_change own;           /* the request, its id made full */
    const struct hf_change *change; /* &own */
    struct hf_item *item;
    struct hf_row was;           /* as read; texts live in `seen` */
    const struct hf_batch *seen; /* the read it came from; NULL: not read */
    struct hf_ops *ops;          /* of a read of its own, by reference */
    struct hf_ops *signals;      /* of the read of a kept signal */
    struct hf_step step;
    int64_t signal;       /* that was kept, and is taken; 0: none */
    struct hf_row waited; /* if a wait went through it, the row between the two */
    size_t first_call;    /* of its writes */
    size_t
        performed; /* call that refuses a release which would repeat effects; 0: none */
    size_t read_back; /* call that reads the row after them; 0: the decided row is it */
    bool answered;    /* its item is answered */
    bool refused;
};

struct changing {
    struct sql_store *store;
    const struct hf_caller *who;
    struct change_slot *slots;
    size_t n;
    unsigned flags;
    struct hf_answer *answer;
    struct hf_arena arena;
    bool answered; /* every slot is */
};

/* store/work/change.c: read, decide, write. */
int change_slowly(struct changing *c, struct hf_err *err);
int change_refuse(struct changing *c, struct change_slot *slot, const struct hf_err *why);

/* store/work/fast.c: close-outs and renewals of holders, without reading first. Leaves what it did
 * not answer to the slow path. */
int change_fast(struct changing *c, struct hf_err *err);
/* A renewal in a batch that is not all renewals: the same two statements. */
void change_add_renewal(struct changing *c, struct hf_ops *ops,
                        const struct change_slot *slot);

/* store/work/receipt.c: operation ids. change_repeat answers a repeated operation. */
int change_repeat(struct changing *c, struct hf_err *err);
void change_add_receipt(struct changing *c, struct hf_ops *ops);
bool change_is_receipt(const struct changing *c, const struct hf_ops *ops);

/* store/work/receipt.c: one rate-limited event for what was refused (rule 14). */
void change_note_refusals(struct changing *c);

/* store/work/change.c: the row that a call of this batch read back, which must be as written.
 * HF_EINTERNAL: it is not, so the answer must not say so. HF_EUNCERTAIN: the answer was lost, and
 * others changed the row before it was read again. */
HF_MUST_USE int change_read_written(const struct hf_ops *ops, size_t call, size_t at,
                                    const struct hf_row *written, struct hf_row *ret_now,
                                    struct hf_err *err);
/* store/work/change.c: after a row that takes a lease was written: its term begins once all locks
 * were waited for. Returns the call that reads the row back. */
size_t change_begin_lease(struct hf_ops *ops, const struct hf_row *row);

#endif
