/* The declarative file of a set of schedules, as JSON. Pure. */
#ifndef HF_CORE_SCHEDULE_FILE_H
#define HF_CORE_SCHEDULE_FILE_H

#include <holdfast/sys/store.h>

#include "base/arena.h"

/* Read and check a whole file; what is returned lives in the arena. A fault names the
 * entry and the field. Zones are looked up by who adds the schedules. */
HF_MUST_USE int hf_schedule_file_read(struct hf_arena *arena, const char *json,
                                      struct hf_schedule_set *ret_set,
                                      struct hf_err *err);

#endif
