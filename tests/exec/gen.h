/* Random cells: valid programs over all that a cell can do, the same for the same seed. */
#ifndef TESTS_EXEC_GEN_H
#define TESTS_EXEC_GEN_H

#include <stdint.h>

#include "base/buf.h"

void gen_cell(uint64_t seed, struct hf_buf *out);

#endif
