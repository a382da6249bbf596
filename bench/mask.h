/* The part of bench_cells about the stream mask. */
#ifndef BENCH_MASK_H
#define BENCH_MASK_H

#include <stdbool.h>

/* Prints its table; false when a limit of the project is passed. */
bool bench_mask(void);

#endif
