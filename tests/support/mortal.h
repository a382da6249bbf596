/* A driver that dies: its process is killed before, in the middle of or after a given call. */
#ifndef HF_TESTS_SUPPORT_MORTAL_H
#define HF_TESTS_SUPPORT_MORTAL_H

#include <holdfast/sys/driver.h>

enum mortal_side { MORTAL_BEFORE, MORTAL_MIDDLE, MORTAL_AFTER };

/* In memory that a child shares. */
struct mortal_plan {
    int64_t calls;      /* so far */
    int64_t statements; /* of those calls */
    int64_t renewals;   /* calls that renew sessions, whose number depends on time */
    int64_t die_at;     /* which, from 1; 0: none */
    enum mortal_side side;
    bool reads_too;                             /* count calls that only read as well */
    void (*in_the_middle)(struct hf_sql *real); /* see to it that the call dies inside */
    hf_ms slow_ms; /* this long a batch's moment was before its statements */
};

/* Over an open driver, which it closes with itself. NULL: no memory. */
struct hf_sql *mortal_over(struct hf_sql *real, struct mortal_plan *plan);
void mortal_die(void);

#endif
