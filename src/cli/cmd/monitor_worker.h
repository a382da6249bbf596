/* holdfast monitor --run: the monitor has a worker, a child process. */
#ifndef HF_CLI_CMD_MONITOR_WORKER_H
#define HF_CLI_CMD_MONITOR_WORKER_H

#include "cli/cli.h"

struct monitor_worker {
    struct cli *cli;
    int pid;        /* 0: none runs */
    int64_t starts; /* how many were started */
};

/* Starts a worker where none runs. It takes commands (`holdfast run --worker`) until it is
 * told to end, or this process dies. */
HF_MUST_USE int monitor_worker_tend(struct monitor_worker *worker);

/* Tells it to end, and waits until it has handed back what it ran. */
void monitor_worker_end(struct monitor_worker *worker);

#endif
