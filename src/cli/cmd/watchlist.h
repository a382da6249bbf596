/* What an operator looks at, read in one go: for top. */
#ifndef HF_CLI_CMD_WATCHLIST_H
#define HF_CLI_CMD_WATCHLIST_H

#include <holdfast/schedule.h>

#include "cli/cli.h"

#define WATCH_ROWS 200 /* more than a terminal shows; attention reads all pages */
#define WATCH_ROWS_TEXT "200"

struct watchlist {
    hf_ms now;
    struct hf_stats stats;
    struct hf_answer *running;
    struct hf_answer *silent;
    struct hf_answer *waiting;
    struct hf_answer *held;
    struct hf_schedules *schedules; /* active ones */
};

HF_MUST_USE int cli_watchlist_read(struct cli *cli, struct watchlist *ret_list);
void cli_watchlist_free(struct watchlist *list);

/* A schedule whose slot has not been made though its time, and what it may miss, is over. */
bool cli_schedule_late(hf_ms now, const struct hf_schedule *schedule);

/* The last eight digits of an id: what people type. */
const char *cli_short_id(const char *id);

#endif
