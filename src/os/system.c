/* The machine's own memory, time and randomness behind the seams of <holdfast/types.h>.
 * Only this file reads the clock. None of the three keeps state, so all
 * are safe from any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include <holdfast/types.h>

static void *system_realloc(void *user, void *old, size_t bytes)
{
    (void)user;
    /* realloc(p, 0) may free p and return NULL, which would read as "out of memory". */
    return realloc(old, bytes ? bytes : 1);
}

static void system_free(void *user, void *old)
{
    (void)user;
    free(old);
}

static hf_ms read_clock(clockid_t id)
{
    struct timespec now = { 0 };
    (void)clock_gettime(id, &now); /* fails only for an unknown clock */
    return (hf_ms)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static hf_ms system_wall_ms(void *user)
{
    (void)user;
    return read_clock(CLOCK_REALTIME);
}

static hf_ms system_mono_ms(void *user)
{
    (void)user;
    return read_clock(CLOCK_MONOTONIC);
}

static void system_wait_ms(void *user, hf_ms ms)
{
    (void)user;
    if (ms <= 0)
        return;
    struct timespec span = { .tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000 };
    /* A signal ends the wait early, so that a host that was told to stop notices. */
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
}

static int system_fill(void *user, void *out, size_t bytes)
{
    (void)user;
    unsigned char *at = out;
    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return HF_EINTERNAL;
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

const struct hf_alloc *hf_alloc_system(void)
{
    static const struct hf_alloc alloc = { .realloc = system_realloc,
                                           .free = system_free };
    return &alloc;
}

const struct hf_clock *hf_clock_system(void)
{
    static const struct hf_clock clock = { .wall_ms = system_wall_ms,
                                           .mono_ms = system_mono_ms,
                                           .wait_ms = system_wait_ms };
    return &clock;
}

const struct hf_random *hf_random_system(void)
{
    static const struct hf_random random = { .fill = system_fill };
    return &random;
}
