/* Planted bugs and marks on rare paths, as the simulator's program sees them. The tables are
 * made by tools/plantgen.py from kit/sim/plants and kit/sim/rare and are linked into
 * holdfast-sim-planted; holdfast-sim has none (no_plants.c). */
#ifndef HF_TESTS_SIM_PLANTS_H
#define HF_TESTS_SIM_PLANTS_H

#include <stdbool.h>
#include <stddef.h>

struct sim_statement {
    const char *name; /* NULL: the end */
    const char *text; /* with the mistake in it */
};

struct sim_plant {
    const char *name;
    const char *store; /* on which it shows */
    const char *what;
    const char *schema; /* SQL that runs when the store is opened, or NULL */
    const struct sim_statement *statements;
};

struct sim_rare {
    const char *name;
    const char *store; /* on which the simulator gets there */
};

extern const struct sim_plant *const sim_plants;
extern const size_t sim_plant_count;
extern const struct sim_rare *const sim_rares;
extern const size_t sim_rare_count;

extern int hf_planted; /* the plant that is on, counted from 1; 0: none */
extern unsigned long long hf_rare_hits[]; /* of each mark */

/* What PLANTED and REACHED become in the copies. */
bool hf_plant_is_on(int number);
void hf_rare_reached(int number);

/* The plant that is on, or NULL. */
const struct sim_plant *sim_planted(void);

#endif
