/* A protocol for tests in which the model writes code: the smallest one that uses every
 * part of the seam. A reply "run: X" runs X, "stall" is an attempt without progress, any
 * other one ends the turn at a checkpoint, with one grace turn at the limit.
 */
#ifndef TESTS_TURN_CELLS_H
#define TESTS_TURN_CELLS_H

#include <holdfast/sys/protocol.h>

const struct hf_protocol *cells_protocol(void);

#endif
