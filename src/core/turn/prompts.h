/* The texts that a model reads, which are in prompts/ and are put into the library by
 * tools/promptgen.py; and filling them in. Texts that hf_render_new shows are part of what a
 * request is: to change one that a released version has shown takes a new render version. */
#ifndef HF_CORE_TURN_PROMPTS_H
#define HF_CORE_TURN_PROMPTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/prompts_gen.h"

struct hf_piece {
    const char *text;
    size_t len;
    enum hf_fill_id
        fill; /* what comes after it; HF_FILL_COUNT: nothing, it is the last */
};

struct hf_prompt {
    const char *name;
    const struct hf_piece *pieces;
    size_t count;
    size_t bytes; /* of all pieces */
};
extern const struct hf_prompt hf_prompts[];

/* The value that replaces {{name}}. */
struct hf_fill {
    enum hf_fill_id id;
    struct hf_span text;
    uint64_t number; /* used when text is NULL */
};

/* Appends the text with all its names filled in; that each is given is the caller's promise. */
void hf_prompt_put(struct hf_buf *out, enum hf_prompt_id id, const struct hf_fill *fills,
                   size_t count);
/* The same as a text of its own, with a NUL after it; at is NULL when out of memory. */
struct hf_span hf_prompt_text(struct hf_arena *arena, enum hf_prompt_id id,
                              const struct hf_fill *fills, size_t count);

#endif
