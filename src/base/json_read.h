/* The reader behind hf_json_parse, for tests that let its memory run out. */
#ifndef HF_BASE_JSON_READ_H
#define HF_BASE_JSON_READ_H

#include <holdfast/types.h>

struct json_t;

/* As hf_json_parse without its limit on size; works in memory from `alloc`, which it
 * frees before it returns. */
HF_MUST_USE int hf_json_read(struct hf_span text, const struct hf_alloc *alloc,
                             const char *field, struct json_t **ret_value,
                             struct hf_err *err);

/* The double nearest to digits * 10^exponent; an infinity past DBL_MAX. `digits` ends in a
 * NUL and has room for 24 bytes after it, which are written to. */
double hf_json_real(char *digits, int64_t exponent);

#endif
