/* Units with nothing special about them, for tests of something else. */
#ifndef TESTS_SUPPORT_UNITS_H
#define TESTS_SUPPORT_UNITS_H

#include <holdfast/work.h>

/* A request that asks for no more than it must; `name` is its source's id, and lives on. */
struct hf_new plain_unit(const char *name);

/* Makes one; anything but success fails the test. */
void make_unit(struct hf_store *store, const char *name);

#endif
