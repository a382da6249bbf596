/* The texts that a model reads, which stand in prompts/ and are put into the library by
 * tools/promptgen.py; and filling them in. Texts that hf_render_new shows are part of what a
 * request is: to change one that a released version has shown takes a new render version.
 */
#ifndef HF_CORE_PROMPTS_H
#define HF_CORE_PROMPTS_H

#include "base/buf.h"
#include "core/prompts_gen.h"

struct hf_prompt {
    const char *name;
    const char *text;
    const char *takes; /* names of what is put in, with blanks between */
};
extern const struct hf_prompt hf_prompts[];

/* What is put in for {{name}}. */
struct hf_fill {
    const char *name;
    struct hf_span text;
    uint64_t number; /* used when text is NULL */
};

/* Appends the text with all its names filled in; that each is given is the caller's promise. */
void hf_prompt_put(struct hf_buf *out, enum hf_prompt_id id, const struct hf_fill *fills,
                   size_t count);

#endif
