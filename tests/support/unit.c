#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

bool unit_aborts(void (*act)(void))
{
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = { 0 };
        (void)setrlimit(RLIMIT_CORE, &none); /* only to keep the folder clean */
        int quiet = open("/dev/null", O_WRONLY);
        if (quiet < 0 || dup2(quiet, STDERR_FILENO) < 0)
            _exit(1);
        (void)signal(SIGABRT, SIG_DFL); /* cmocka and sanitizers may hold it */
        act();
        _exit(0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}
