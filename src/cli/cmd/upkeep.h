/* How sweeps, passes over schedules and the pointer are shown: by their commands and by the
 * monitor. */
#ifndef HF_CLI_CMD_UPKEEP_H
#define HF_CLI_CMD_UPKEEP_H

#include "base/json.h"
#include "run/monitor/monitor.h"

/* Keys into an object that is open, and an object of its own. */
void cli_json_sweep(struct hf_json *json, const struct hf_sweep_report *report);
void cli_json_pass(struct hf_json *json, const struct hf_schedule_report *report);
void cli_json_pointer(struct hf_json *json, const struct hf_pointer_report *report);

/* One line; "" for a sweep that changed nothing. */
void cli_text_pass(const struct hf_schedule_report *report, char *out, size_t room);
void cli_text_pointer(const struct hf_pointer_report *report, char *out, size_t room);

#endif
