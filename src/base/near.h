/* The nearest of some candidates to a mistyped word. */
#ifndef HF_BASE_NEAR_H
#define HF_BASE_NEAR_H

#include <stddef.h>

struct hf_near {
    const char *typed;
    const char *best; /* borrowed; NULL while none is near */
    size_t distance;
};

/* `typed` stays borrowed. */
void hf_near_begin(struct hf_near *near, const char *typed);
/* Ignores "" and candidates that are too long. */
void hf_near_try(struct hf_near *near, const char *candidate);

#endif
