/* Conventions and seams shared by all public headers.
 *
 * Strings are NUL-terminated UTF-8. NULL for an optional string means "not given".
 * Input is borrowed: it must stay valid until the call returns, and no longer, unless the
 * comment says otherwise. Out-parameters come last, are named ret_*, and are untouched on
 * failure. Ownership moves only on success. Times are milliseconds since the Unix epoch;
 * 0 means "none". A struct that a caller fills begins with `size`, set to its sizeof, so
 * that it may grow without a new name: fields that a caller's version does not have are
 * zero. A size of 0, below that of the first version or above the library's is HF_EINVAL
 * naming "size".
 */
#ifndef HOLDFAST_TYPES_H
#define HOLDFAST_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t hf_ms;

/* A borrowed run of bytes. */
struct hf_span {
    const void *at;
    size_t len;
};

/* Memory for one handle. realloc(NULL) allocates; free(NULL) is nothing. Any may fail by
 * returning NULL. All three must be safe to call from the threads that use the handle. */
struct hf_alloc {
    void *user;
    void *(*realloc)(void *user, void *old, size_t bytes);
    void (*free)(void *user, void *old);
};

/* Time. Both are read often and must not block.
 *   wall_ms  civil time, may jump
 *   mono_ms  never goes back while the machine is up; its zero is arbitrary
 *   wait_ms  waits up to `ms` milliseconds; a simulator advances its clock instead      */
struct hf_clock {
    void *user;
    hf_ms (*wall_ms)(void *user);
    hf_ms (*mono_ms)(void *user);
    void (*wait_ms)(void *user, hf_ms ms);
};

/* Unpredictable bytes. Returns 0 or HF_EINTERNAL. */
struct hf_random {
    void *user;
    int (*fill)(void *user, void *out, size_t bytes);
};

/* The machine's own: malloc, clock_gettime and getrandom. */
HF_API const struct hf_alloc *hf_alloc_system(void);
HF_API const struct hf_clock *hf_clock_system(void);
HF_API const struct hf_random *hf_random_system(void);

#ifdef __cplusplus
}
#endif
#endif
