/* The allocator of <holdfast/types.h> that fails on demand and counts what is not freed.
 * One thread at a time. */
#ifndef TESTS_SUPPORT_FAIL_ALLOC_H
#define TESTS_SUPPORT_FAIL_ALLOC_H

#include <holdfast/types.h>

struct fail_alloc {
    struct hf_alloc alloc;
    int64_t calls;   /* allocations asked for so far */
    int64_t fail_at; /* the call that fails, counted from 1; 0 for none */
    bool stays;      /* and all calls after it fail too */
    int64_t live;    /* allocations not freed */
};

/* `fail` must stay where it is as long as it is used. */
void fail_alloc_init(struct fail_alloc *fail, int64_t fail_at);

#endif
