/* holdfast monitor --run: the worker that the monitor has as a child process, which runs the
 * commands that schedules create. It is started, watched, started again, and stopped here. */
#include "cli/cmd/monitor_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 16
#define JOBS_TEXT 24

/* The worker's own options, and those that the monitor got about the caller. The address of the
 * store goes by the environment: a command line can be read by every user. */
static void put_words(struct cli *cli, char jobs[JOBS_TEXT], const char *words[WORDS_MAX])
{
    size_t n = 0;
    words[n++] = "holdfast";
    if (cli->quiet || cli->json)
        words[n++] = "--quiet";
    if (cli_text(cli, "tenant")) {
        words[n++] = "--tenant";
        words[n++] = cli_text(cli, "tenant");
    }
    words[n++] = "run";
    words[n++] = "--worker";
    (void)snprintf(jobs, JOBS_TEXT, "%lld", (long long)cli_number(cli, "jobs", 1));
    words[n++] = "--jobs";
    words[n++] = jobs;
    if (cli_text(cli, "queue")) {
        words[n++] = "--queue";
        words[n++] = cli_text(cli, "queue");
    }
    words[n] = NULL;
}

/* In the child. Its standard output is not the monitor's, which prints one JSON object. */
static _Noreturn void become_worker(const char *const *words, pid_t monitor)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool ready = null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
                 dup2(null, STDOUT_FILENO) >= 0 &&
                 prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == monitor;
    if (ready)
        (void)execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    _exit(125);
}

static bool has_ended(struct monitor_worker *worker)
{
    if (worker->pid && waitpid(worker->pid, NULL, WNOHANG) != 0)
        worker->pid = 0;
    return worker->pid == 0;
}

int monitor_worker_tend(struct monitor_worker *worker)
{
    struct cli *cli = worker->cli;
    struct cli_place place;
    const char *words[WORDS_MAX];
    char jobs[JOBS_TEXT];
    if (!has_ended(worker))
        return 0;
    int rc = cli_store_place(cli, &place);
    if (rc)
        return rc;
    if (setenv("HOLDFAST_DB", place.url, 1) != 0)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    put_words(cli, jobs, words);
    pid_t monitor = getpid(), pid = fork();
    if (pid == 0)
        become_worker(words, monitor);
    if (pid < 0)
        return hf_fail(&cli->err, HF_EBUSY, NULL, "cannot start a worker: %s",
                       strerror(errno));
    worker->pid = pid;
    worker->starts++;
    return 0;
}

void monitor_worker_end(struct monitor_worker *worker)
{
    if (!worker->pid)
        return;
    (void)kill(worker->pid, SIGTERM); /* not reaped yet, so it is still that process */
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    worker->pid = 0;
}
