/* How sweeps, passes over schedules and the pointer are shown: by their commands and by the
 * monitor. */
#ifndef HF_CLI_CMD_UPKEEP_H
#define HF_CLI_CMD_UPKEEP_H

#include "base/json.h"
#include <holdfast/monitor.h>

/* The counts of a report into the object that is open. */
struct hf_shape;
void cli_json_counts(struct hf_json *json, const struct hf_shape *shape,
                     const void *report);
void cli_json_pointer(struct hf_json *json, const struct hf_pointer_report *report);

/* One line. */
void cli_text_pointer(const struct hf_pointer_report *report, char *out, size_t room);

#endif
