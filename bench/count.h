/* What the benchmarks of turns and cells share: instructions, memory, verdicts. */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include <stdbool.h>

/* Instructions that `function` of this program, and what it calls, take when the program is
 * run with `args` (argv[1] on, NULL at the end): counted by callgrind in another process, so
 * the same every time on one machine. Ends the program when valgrind does not run. */
double bench_instructions(const char *function, const char *const *args);
/* The same without those of the functions in `apart` (NULL at the end, at most 16) and of what they
 * call. None of them may call another one. */
double bench_instructions_apart(const char *function, const char *const *apart,
                                const char *const *args);

/* What the process holds in memory now. */
long bench_resident_kb(void);

/* Ends the line with the verdict. bench_passed says whether all were fine. */
void bench_check(bool fine);
bool bench_passed(void);

#endif
