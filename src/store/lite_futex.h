/* Futexes, in the two kinds the driver uses: private words on which one thread of this
 * process waits, and shared words in the mapped sidecar. */
#ifndef HF_STORE_LITE_FUTEX_H
#define HF_STORE_LITE_FUTEX_H

#include <stdatomic.h>

#include <holdfast/types.h>

/* Waits while *word == seen. May return for nothing: callers loop. */
void lite_futex_wait(_Atomic uint32_t *word, uint32_t seen);

/* Wakes the thread that waits on the word. The word may be gone by now: that is harmless,
 * at worst somebody who loops wakes for nothing. */
void lite_futex_wake(_Atomic uint32_t *word);

/* The same between processes, for waiters whose bits overlap `bits`, waiting at most `ms`
 * milliseconds. */
void lite_futex_wait_shared(_Atomic uint32_t *word, uint32_t seen, uint32_t bits,
                            hf_ms ms);
void lite_futex_wake_shared(_Atomic uint32_t *word, uint32_t bits, uint32_t count);

#endif
