/* Runs the conformance suite as one cmocka group: each case is one test of that name. */
#ifndef TESTS_SUPPORT_CONFORM_H
#define TESTS_SUPPORT_CONFORM_H

#include <holdfast/sys/conformance.h>

/* Every case whose needs the factory meets. With an argument only the cases whose names
 * contain it. Returns main's exit code. */
int conform_main(const char *group, const struct hf_conform_factory *factory, int argc,
                 char **argv);

#endif
