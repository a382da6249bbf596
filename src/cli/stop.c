/* Signals that end a command which runs until told. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int cli_stop_take(struct cli *cli, struct cli_stop *stop)
{
    sigset_t set;
    *stop = (struct cli_stop){ .fd = -1 };
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        stop->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop->fd < 0)
        return hf_fail(&cli->err, HF_EINTERNAL, NULL, "cannot receive signals: %s",
                       strerror(errno));
    return 0;
}

bool cli_stop_told(struct cli_stop *stop, hf_ms ms)
{
    struct pollfd fd = { .fd = stop->fd, .events = POLLIN };
    struct signalfd_siginfo info;
    if (!stop->by && poll(&fd, 1, (int)ms) > 0 &&
        read(stop->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        stop->by = info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
    return stop->by != NULL;
}

void cli_stop_end(struct cli_stop *stop)
{
    if (stop->fd >= 0)
        (void)close(stop->fd); /* a descriptor of the kernel's */
    stop->fd = -1;
}
