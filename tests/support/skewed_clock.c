/* For LD_PRELOAD: a machine whose wall clock is SKEW_SECONDS ahead. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ret_at)
{
    const char *skew = getenv("SKEW_SECONDS");
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_at);
    if (rc == 0 && clock == CLOCK_REALTIME && skew)
        ret_at->tv_sec += strtol(skew, NULL, 10);
    return rc;
}
