/* Cells of the random host that a real engine runs: everything they are answered is a function
 * of the seed and the operation, so a cell that is cut and run again over its journal must come
 * out the same.
 */
#ifndef TESTS_TURN_LUA_CELLS_H
#define TESTS_TURN_LUA_CELLS_H

#include <holdfast/turn_json.h>

#define LUA_CELL_COUNT 13

/* A reply with a cell; from the count on, one of the first five, which end well. */
const char *lua_cell_reply(size_t n);

/* Runs the cell of an effect to its end, from the bindings that its turn's records lead to.
 * cut: the cell is dropped after every answer, and run again from its journal, which goes
 * through JSON. The caller frees the cell. */
struct hf_cell *lua_cell_run(struct hf_turn *turn, const struct hf_effect *effect,
                             uint64_t seed, bool cut);

#endif
