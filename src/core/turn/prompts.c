/* Writing a text for a model: the pieces of a prompt with the values between them (prompts.h). */
#include "core/turn/prompts.h"

#include <string.h>

#include "base/err.h"

#define DIGITS 20

/* What replaces a name; a number is written into `digits`. */
static struct hf_span text_of(enum hf_fill_id id, const struct hf_fill *fills,
                              size_t count, char digits[DIGITS])
{
    size_t i = 0;
    while (i < count && fills[i].id != id)
        i++;
    hf_assert(i < count);
    if (fills[i].text.at)
        return fills[i].text;
    char *at = digits + DIGITS;
    uint64_t rest = fills[i].number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    return (struct hf_span){ at, (size_t)(digits + DIGITS - at) };
}

void hf_prompt_put(struct hf_buf *out, enum hf_prompt_id id, const struct hf_fill *fills,
                   size_t count)
{
    const struct hf_prompt *prompt = &hf_prompts[id];
    char digits[DIGITS];
    for (size_t i = 0; i < prompt->count; i++) {
        const struct hf_piece *piece = &prompt->pieces[i];
        hf_buf_bytes(out, piece->text, piece->len);
        if (piece->fill == HF_FILL_COUNT)
            continue;
        struct hf_span text = text_of(piece->fill, fills, count, digits);
        hf_buf_bytes(out, text.at, text.len);
    }
}

struct hf_span hf_prompt_text(struct hf_arena *arena, enum hf_prompt_id id,
                              const struct hf_fill *fills, size_t count)
{
    const struct hf_prompt *prompt = &hf_prompts[id];
    char digits[DIGITS];
    size_t len = prompt->bytes;
    for (size_t i = 0; i < prompt->count; i++)
        if (prompt->pieces[i].fill != HF_FILL_COUNT)
            len += text_of(prompt->pieces[i].fill, fills, count, digits).len;
    char *text = hf_arena_room(arena, len + 1, 1);
    char *at = text;
    for (size_t i = 0; text && i < prompt->count; i++) {
        const struct hf_piece *piece = &prompt->pieces[i];
        memcpy(at, piece->text, piece->len);
        at += piece->len;
        if (piece->fill == HF_FILL_COUNT)
            continue;
        struct hf_span fill = text_of(piece->fill, fills, count, digits);
        memcpy(at, fill.at, fill.len);
        at += fill.len;
    }
    if (text)
        *at = '\0';
    return (struct hf_span){ text, len };
}
