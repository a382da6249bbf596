/* Futexes by the system call (contracts: os/futex.h). */
#include "os/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The results of the calls are discarded: callers look at the word again after a wait, however it
 * ended, and a wake that finds no waiter is no failure. */

void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void futex_wait_ms(_Atomic uint32_t *word, uint32_t seen, hf_ms ms)
{
    struct timespec most = { .tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000 };
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void futex_wait_shared(_Atomic uint32_t *word, uint32_t seen, uint32_t bits, hf_ms ms)
{
    /* The bitset form takes a point in time, of CLOCK_MONOTONIC. It is the machine's clock
     * and not the handle's on purpose: other processes wake us in real time. */
    const struct hf_clock *clock = hf_clock_system();
    hf_ms until = clock->mono_ms(clock->user) + ms;
    struct timespec at = { .tv_sec = (time_t)(until / 1000),
                           .tv_nsec = (long)(until % 1000) * 1000000 };
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, &at, NULL, bits);
}

void futex_wake_shared(_Atomic uint32_t *word, uint32_t bits, uint32_t count)
{
    int n = count < INT_MAX ? (int)count : INT_MAX;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET, n, NULL, NULL, bits);
}
