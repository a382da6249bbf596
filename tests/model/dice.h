/* Chance, drawn from one number. */
#ifndef TESTS_MODEL_DICE_H
#define TESTS_MODEL_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

/* 0 to n - 1. */
static inline unsigned roll(struct dice *dice, unsigned n)
{
    dice->state ^= dice->state << 13;
    dice->state ^= dice->state >> 7;
    dice->state ^= dice->state << 17;
    return (unsigned)((dice->state >> 11) % n);
}

static inline bool one_in(struct dice *dice, unsigned n)
{
    return roll(dice, n) == 0;
}

#define PICK(dice, list) ((list)[roll((dice), sizeof(list) / sizeof((list)[0]))])

#endif
