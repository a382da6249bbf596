/* The stores that the simulator is run on here. */
#ifndef TESTS_SIM_STORES_H
#define TESTS_SIM_STORES_H

#include <holdfast/sys/sim.h>

/* "model", "sqlite" (in memory) or "disk" (SQLite on a disk whose power fails); NULL for
 * another name. Static; one simulation at a time. */
const struct hf_sim_factory *sim_store(const char *name);

#endif
