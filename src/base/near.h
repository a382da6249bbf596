/* The nearest known word to one that was mistyped. */
#ifndef HF_BASE_NEAR_H
#define HF_BASE_NEAR_H

#include <stddef.h>

/* Begin with the typed word, try each candidate, then read `best`: NULL when none is near.
 * Both texts are borrowed. */
struct hf_near {
    const char *typed;
    const char *best;
    size_t distance;
};

void hf_near_begin(struct hf_near *near, const char *typed);
void hf_near_try(struct hf_near *near, const char *candidate);

#endif
