/* Futexes, in the two kinds that the drivers use: private words on which one thread of this
 * process waits, and shared words in SQLite's mapped sidecar. */
#ifndef HF_OS_FUTEX_H
#define HF_OS_FUTEX_H

#include <stdatomic.h>

#include <holdfast/types.h>

/* Waits while *word == seen. May return for nothing: callers loop. */
void futex_wait(_Atomic uint32_t *word, uint32_t seen);
/* The same, for at most `ms` milliseconds. */
void futex_wait_ms(_Atomic uint32_t *word, uint32_t seen, hf_ms ms);

/* Wakes the thread that waits on the word. The word may be gone by now: that is harmless,
 * at worst a process that loops wakes for nothing. */
void futex_wake(_Atomic uint32_t *word);

/* The same between processes, for waiters whose bits overlap `bits`, waiting at most `ms`
 * milliseconds. */
void futex_wait_shared(_Atomic uint32_t *word, uint32_t seen, uint32_t bits, hf_ms ms);
void futex_wake_shared(_Atomic uint32_t *word, uint32_t bits, uint32_t count);

#endif
