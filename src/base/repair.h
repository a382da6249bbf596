/* Text from elsewhere: is it UTF-8 without NUL bytes, and what becomes of it if not. */
#ifndef HF_BASE_REPAIR_H
#define HF_BASE_REPAIR_H

#include "base/arena.h"

/* UTF-8 without NUL bytes; much faster than character by character on plain text. */
bool hf_text_clean(const void *bytes, size_t len);

/* Text with every byte that is not clean replaced by U+FFFD, cut to max bytes. */
HF_MUST_USE int hf_text_repair(struct hf_arena *arena, struct hf_span text, size_t max,
                               struct hf_span *ret_text);

#endif
