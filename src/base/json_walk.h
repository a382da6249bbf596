/* Walking over JSON text that hf_json_check accepted, without building it: values keep the
 * bytes they were written with. On other text the results are meaningless, but nothing past
 * its end is read.
 *
 *     hf_walk_begin(&walk, text);
 *     if (hf_walk_enter(&walk, '{'))
 *         while (hf_walk_more(&walk)) {
 *             struct hf_span key = hf_walk_key(&walk);
 *             struct hf_span value = hf_walk_value(&walk);
 *         } */
#ifndef HF_BASE_JSON_WALK_H
#define HF_BASE_JSON_WALK_H

#include "base/arena.h"

struct hf_walk {
    const char *at;
    const char *end;
};

void hf_walk_begin(struct hf_walk *walk, struct hf_span text);

/* The next character: one of { [ " t f n - 0 (any digit) } ] or NUL at the end. */
char hf_walk_next(struct hf_walk *walk);

/* Steps into an object or array; false when something different comes next. */
bool hf_walk_enter(struct hf_walk *walk, char bracket);

/* Another item is to come; false steps out of the object or array. */
bool hf_walk_more(struct hf_walk *walk);

/* The raw key, with its quotes, and past the colon. */
struct hf_span hf_walk_key(struct hf_walk *walk);

/* The raw value, whole. */
struct hf_span hf_walk_value(struct hf_walk *walk);

/* The text of a raw string, in the arena and NUL-terminated. HF_ENOMEM; HF_EINVAL when it is
 * no string. */
HF_MUST_USE int hf_walk_text(struct hf_arena *arena, struct hf_span raw,
                             struct hf_span *ret_text);

/* True for a whole number within int64_t. */
bool hf_walk_i64(struct hf_span raw, int64_t *ret_value);

/* True when the raw string, which has no escapes, is that word. */
bool hf_walk_is(struct hf_span raw, const char *word);

#endif
