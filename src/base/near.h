<<<<<<< HEAD
/* The nearest of some candidates to a mistyped word. */
=======
/* The nearest known word to one that was mistyped. */
>>>>>>> main
#ifndef HF_BASE_NEAR_H
#define HF_BASE_NEAR_H

#include <stddef.h>

<<<<<<< HEAD
struct hf_near {
    const char *typed;
    const char *best; /* borrowed; NULL while none is near */
    size_t distance;
};

/* `typed` stays borrowed. */
void hf_near_begin(struct hf_near *near, const char *typed);
/* Ignores "" and candidates that are too long. */
=======
/* Begin with the typed word, try each candidate, then read `best`: NULL when none is near.
 * Both texts are borrowed. */
struct hf_near {
    const char *typed;
    const char *best;
    size_t distance;
};

void hf_near_begin(struct hf_near *near, const char *typed);
>>>>>>> main
void hf_near_try(struct hf_near *near, const char *candidate);

#endif
