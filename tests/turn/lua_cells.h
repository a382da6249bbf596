/* Cells of the random host that a real engine runs: everything they are answered is a function
 * of the seed and the operation, so a cell that is cut and run again over its journal must come
 * out the same.
 */
#ifndef TESTS_TURN_LUA_CELLS_H
#define TESTS_TURN_LUA_CELLS_H

#include <holdfast/turn.h>

#define LUA_CELL_COUNT 13

/* A reply with a cell; from the count on, one of the first five, which end well. */
const char *lua_cell_reply(size_t n);

/* Runs the cell of an effect from the bindings that its turn's records lead to, and answers the
 * turn. cut: the cell is dropped before and after every answer, and run again from its
 * journal. 0 or HF_ENOMEM, which only the turn can say. */
int lua_cell_run(struct hf_turn *turn, const struct hf_effect *effect, uint64_t seed,
                 bool cut, struct hf_err *err);

#endif
