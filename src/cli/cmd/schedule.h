/* What the files of `holdfast schedule` share. */
#ifndef HF_CLI_CMD_SCHEDULE_H
#define HF_CLI_CMD_SCHEDULE_H

#include <holdfast/schedule.h>

struct cli;

/* The options of a timing into a request. */
void cli_schedule_timing(struct cli *cli, struct hf_schedule_new *wanted);

/* "schedule": {…} into the envelope that is open. */
void cli_json_schedule(struct cli *cli, const struct hf_schedule *schedule);

#endif
