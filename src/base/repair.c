/* Text from elsewhere: is it UTF-8 without NUL bytes, and what becomes of it if not (contracts:
 * repair.h). */
#include "base/repair.h"

#include <string.h>

#include "base/text.h"

static const char replacement[] = "\xef\xbf\xbd";

/* The first byte that is not clean, or len. Eight plain bytes are seen at once. */
static size_t dirty_at(const unsigned char *at, size_t len)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t i = 0;
    while (i < len) {
        uint64_t word = 0;
        while (len - i >= sizeof(word)) {
            memcpy(&word, at + i, sizeof(word));
            if (((word | ((word - ones) & ~word)) & (0x80 * ones)) != 0)
                break;
            i += sizeof(word);
        }
        while (i < len && at[i] - 1u < 0x7fu)
            i++;
        if (i == len || at[i] == 0)
            break;
        size_t step = hf_utf8_next(at + i, len - i);
        if (step == 0)
            break;
        i += step;
    }
    return i;
}

bool hf_text_clean(const void *bytes, size_t len)
{
    return len == 0 || dirty_at(bytes, len) == len;
}

int hf_text_repair(struct hf_arena *arena, struct hf_span text, size_t max,
                   struct hf_span *ret_text)
{
    const unsigned char *at = text.at;
    size_t dirty = 0;
    for (size_t i = text.len ? dirty_at(at, text.len) : 0; i < text.len;) {
        dirty++;
        i++;
        i += i < text.len ? dirty_at(at + i, text.len - i) : 0;
    }
    size_t grown = 0;
    if (__builtin_mul_overflow(dirty, sizeof(replacement) - 1, &grown) ||
        __builtin_add_overflow(grown, text.len, &grown))
        return HF_ENOMEM;
    char *out = hf_arena_take(arena, grown + 1);
    if (!out)
        return HF_ENOMEM;

    size_t used = 0;
    for (size_t i = 0; i < text.len;) {
        size_t clean = dirty_at(at + i, text.len - i);
        memcpy(out + used, at + i, clean);
        used += clean;
        i += clean;
        if (i < text.len) {
            memcpy(out + used, replacement, sizeof(replacement) - 1);
            used += sizeof(replacement) - 1;
            i++;
        }
    }
    if (used > max)
        used = hf_utf8_cut(out, max);
    out[used] = '\0';
    *ret_text = (struct hf_span){ out, used };
    return 0;
}
