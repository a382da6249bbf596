/* The cells of a saved turn, for `turn inspect`. */
#ifndef HF_CLI_CMD_TURN_CELLS_H
#define HF_CLI_CMD_TURN_CELLS_H

#include "cli/cli.h"

/* Prints them after what was printed so far; as JSON, a member "cells" of the open object. */
HF_MUST_USE int cli_turn_cells(struct cli *cli, struct hf_span save);

#endif
