/* Units with nothing special about them, for tests of something different. */
#ifndef TESTS_SUPPORT_UNITS_H
#define TESTS_SUPPORT_UNITS_H

#include <holdfast/session.h>
#include <holdfast/work.h>

/* A request that asks for no more than it must; `name` is its source's id, and lives on. */
struct hf_work_spec plain_unit(const char *name);

/* Makes one; anything but success fails the test. */
void make_unit(struct hf_store *store, const char *name);

/* Makes a session of agent "a", unless there is one. */
void make_session(struct hf_store *store, const char *session_id);

#endif
