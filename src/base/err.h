/* Filling in a caller's struct hf_err. */
#ifndef HF_BASE_ERR_H
#define HF_BASE_ERR_H

#include <holdfast/err.h>

/* Record a failure and return its code, so that a caller can `return hf_fail(...)`.
 * `field` may be NULL. Control bytes in the formatted text are replaced by '?', and text
 * that does not fit is cut at a character's end. */
int hf_fail(struct hf_err *err, int code, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As hf_fail, with the table's own text. */
int hf_fail_plain(struct hf_err *err, int code);

/* The end of a call that worked with a record of its own, zeroed at first: `code` 0 leaves
 * `err` untouched, otherwise it gets the texts of `why` for that code. Returns `code`. */
int hf_fail_as(struct hf_err *err, int code, const struct hf_err *why);

/* A broken promise inside the library: says where, then aborts. On in every build. */
#define hf_assert(cond) ((cond) ? (void)0 : hf_assert_failed(#cond, __FILE__, __LINE__))
_Noreturn void hf_assert_failed(const char *cond, const char *file, int line);

#endif
