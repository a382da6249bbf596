/* Strict text: UTF-8, numbers, durations. No locale anywhere. */
#ifndef HF_BASE_TEXT_H
#define HF_BASE_TEXT_H

#include <holdfast/types.h>

#include "base/civil.h" /* times as text */

/* True for well-formed UTF-8 (no overlong forms, surrogates or values past U+10FFFF). */
bool hf_utf8_valid(const void *bytes, size_t len);

/* Bytes of the well-formed character at the start (1 to 4), or 0 where there is none. */
size_t hf_utf8_next(const void *bytes, size_t len);

/* The largest n <= len at which the bytes can be cut without splitting a character. */
size_t hf_utf8_cut(const char *text, size_t len);

/* A key: UTF-8 of 1..max bytes without NUL or other control bytes. On failure the error
 * names `field` and the rule. NULL counts as missing. */
HF_MUST_USE int hf_check_key(const char *value, size_t max, const char *field,
                             struct hf_err *err);

/* As hf_check_key, but NULL is fine and "" is refused. */
HF_MUST_USE int hf_check_key_opt(const char *value, size_t max, const char *field,
                                 struct hf_err *err);

/* Free text: UTF-8 of 0..max bytes; line ends and tabs are allowed, other control bytes
 * are not. NULL is fine. */
HF_MUST_USE int hf_check_text(const char *value, size_t max, const char *field,
                              struct hf_err *err);

/* A whole decimal number in [min, max], nothing before or after it. */
HF_MUST_USE int hf_parse_i64(const char *text, int64_t min, int64_t max,
                             const char *field, int64_t *ret_value, struct hf_err *err);

/* "250ms", "45s", "5m", "2h", "7d", or a bare number of seconds; decimal fractions such as
 * "1.5h" are allowed down to a millisecond; negative, empty, overflowing and unknown units
 * are refused. */
HF_MUST_USE int hf_parse_duration(const char *text, const char *field, hf_ms *ret_ms,
                                  struct hf_err *err);

/* "45s", "1m 30s", "2h", "3d 4h", "250ms": two units at most; for people. Writes at most
 * `room` bytes with the NUL (24 is enough). Returns `out`. */
const char *hf_duration_text(hf_ms ms, char *out, size_t room);

/* Does `text` begin with `prefix`? Neither is NULL. */
bool hf_starts_with(const char *text, const char *prefix);

/* Byte-wise equality with NULL equal only to NULL. */
bool hf_same(const char *a, const char *b);

/* Byte-wise order, as SQL's binary collation has it: below, at or above 0. */
int hf_text_order(const char *a, const char *b);

/* A word as programs have names: letters, digits and _, and no digit first. */
bool hf_text_is_word(const char *text, size_t len);

/* The place of a word in a list. False, and *ret_at as it was, if the list has it not. */
bool hf_word_find(const char *const *words, unsigned count, const char *word,
                  unsigned *ret_at);

/* Both hex digits of each byte; `out` has room for 2 * len + 1. */
void hf_hex(const void *bytes, size_t len, char *out);

/* A copy, which the caller frees by the same allocator. NULL: no memory, or no text. */
char *hf_text_copy(const struct hf_alloc *alloc, const char *text);

#endif
