/* A scenario that goes through the ledger's verbs, for tests that cut it short. It is driven by
 * what is in the store, so it can be begun again at any point: each unit's next call
 * follows from its row. Who goes on has the same owner and incarnation, so it enters its own
 * leases again. However often it was cut, it ends as if nothing had happened. */
#ifndef HF_TESTS_SUPPORT_SCENARIO_H
#define HF_TESTS_SUPPORT_SCENARIO_H

#include <holdfast/sys/store.h>

#define SCENARIO_UNITS 9

/* In memory that a child shares: the time, and what was acknowledged. */
struct scenario {
    hf_ms wall;
    hf_ms mono;
    uint64_t random;
    int acked[SCENARIO_UNITS]; /* transitions of each unit that a caller was told of */
    bool unwatched;            /* note no more of those: it is dear */
};

/* From the beginning. One at a time: the functions below work on the last one. */
void scenario_begin(struct scenario *scenario);

/* Its time and chance, for opening stores; they live as long as the program. */
const struct hf_clock *scenario_clock(void);
const struct hf_random *scenario_random(void);

/* May the call be made again after this code? */
bool scenario_passes(int rc);

/* HF_CRASH_PART=K/N: which part of the places is tried, of how many. Without it 1 of 1. */
void scenario_part(int64_t *ret_part, int64_t *ret_parts);

/* From wherever the store is to the end. Returns 0, or the code of what passes. */
int scenario_play(struct hf_store *store);

/* All that any caller was told of is there. */
void scenario_check_acked(struct hf_store *store);

/* It is over: each unit as it must be, with as many transitions as without faults; and the
 * store's own check finds nothing. */
void scenario_check_end(struct hf_store *store);

#endif
