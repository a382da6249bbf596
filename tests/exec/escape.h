/* Hostile cells, each with the end it must come to. */
#ifndef TESTS_EXEC_ESCAPE_H
#define TESTS_EXEC_ESCAPE_H

#include <holdfast/exec.h>

/* The transcript (exec/kit.h) must hold `says`. Whatever the cell does, it must never come
 * to print the word "alive". */
struct escape {
    const char *name;
    enum hf_cell_end end;
    const char *says;
    const char *code;
};

extern const struct escape escape_sandbox[];
extern const struct escape escape_values[];
extern const struct escape escape_steps[];
extern const struct escape escape_memory[];
extern const struct escape escape_order[];
extern const size_t escape_sandbox_count;
extern const size_t escape_values_count;
extern const size_t escape_steps_count;
extern const size_t escape_memory_count;
extern const size_t escape_order_count;

#endif
