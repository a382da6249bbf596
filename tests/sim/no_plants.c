/* The tables of a program whose library has neither planted bugs nor marks. */
#include "sim/plants.h"

const struct sim_plant *const sim_plants = NULL;
const size_t sim_plant_count = 0;
const struct sim_rare *const sim_rares = NULL;
const size_t sim_rare_count = 0;

int hf_planted;
unsigned long long hf_rare_hits[1];
