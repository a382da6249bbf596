/* The common parts of `holdfast run` and its worker. */
#ifndef HF_CLI_CMD_RUNNER_H
#define HF_CLI_CMD_RUNNER_H

#include "cli/cli.h"

#define RUN_QUEUE "run"

struct runner {
    struct cli *cli;
    struct cli_place place;
    const char *owner;
    int signals; /* descriptor */
    int told;    /* the last signal that came, 0: none */
};

/* Begins to take signals, and opens the store. runner_end is called after a failure too: it closes
 * the descriptor of the signals. */
HF_MUST_USE int runner_begin(struct runner *runner, struct cli *cli);
void runner_end(struct runner *runner);

/* Waits for the descriptors and for signals; signals are noted. */
void runner_wait(struct runner *runner, struct pollfd *fds, size_t count, hf_ms ms);

/* The plan of a run of a claimed unit. */
struct hf_run_plan runner_plan(const struct runner *runner, const struct hf_item *item,
                               const struct hf_command *command);

/* Why a signal stops a run. */
enum hf_run_stop runner_why(int signal);

/* The values of the options: the command, the unit, its owner. The unit's source id is its name;
 * runs of one name are told apart by `run_id`. */
HF_MUST_USE int run_command(struct cli *cli, struct hf_command *ret_command);
struct hf_work_spec run_unit(struct cli *cli, const char *run_id, const char *payload);
const char *run_owner(struct cli *cli); /* NULL: no memory */
const char *const *run_environment(void);

/* holdfast run --detach */
HF_MUST_USE int run_detached(struct cli *cli);

/* holdfast run --worker */
HF_MUST_USE int run_worker(struct runner *runner);

#endif
