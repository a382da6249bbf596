/* The stream mask: whatever the text and wherever it is cut, the same cell, the same prose, and
 * nothing shown that is taken back; what is rendered of a cell is found again. The first byte of
 * an input says how long the pieces are, the rest is the text. */
#include <string.h>

#include <holdfast/code.h>

#include "core/turn/code/code.h"
#include "fuzz/fuzz.h"

static struct hf_mask whole(const void *text, size_t len)
{
    struct hf_mask mask;
    hf_mask_init(&mask);
    (void)hf_mask_feed(&mask, text, len);
    hf_mask_end(&mask);
    return mask;
}

static void require_same(const struct hf_mask *a, const struct hf_mask *b)
{
    fuzz_require(a->state == b->state && a->visible == b->visible &&
                 a->stray == b->stray);
    if (a->state != HF_MASK_PROSE)
        fuzz_require(a->language == b->language && a->code_from == b->code_from &&
                     a->code_to == b->code_to && a->end == b->end);
}

static void cut_up(const char *text, size_t len, size_t piece, const struct hf_mask *want)
{
    struct hf_mask mask;
    uint64_t shown = 0;
    hf_mask_init(&mask);
    for (size_t at = 0; at < len; at += piece) {
        size_t now = piece < len - at ? piece : len - at;
        if (hf_mask_feed(&mask, text + at, now))
            break;
        fuzz_require(mask.visible >= shown && mask.visible <= want->visible);
        shown = mask.visible;
    }
    hf_mask_end(&mask);
    require_same(&mask, want);
}

static void render_again(const char *text, const struct hf_mask *mask)
{
    struct hf_buf out;
    struct hf_span code = { text + mask->code_from,
                            (size_t)(mask->code_to - mask->code_from) };
    hf_buf_init(&out, hf_alloc_system(), 1 << 20);
    hf_code_put_cell(&out, hf_code_language_name(mask->language), code);
    struct hf_mask again = whole(out.at, out.len);
    fuzz_require(again.state == HF_MASK_COMPLETE && again.visible == 0 &&
                 again.code_to - again.code_from == code.len);
    fuzz_require(memcmp(out.at + again.code_from, code.at, code.len) == 0);
    hf_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    struct hf_mask mask = whole(text, len);
    fuzz_require(mask.visible <= len && mask.code_from <= len + 1);
    cut_up(text, len, 1, &mask);
    cut_up(text, len, 1 + data[0] % 7, &mask);
    if (mask.state == HF_MASK_COMPLETE) {
        fuzz_require(mask.code_from <= mask.code_to && mask.code_to < mask.end &&
                     mask.end <= len);
        struct hf_mask kept = whole(text, (size_t)mask.end);
        require_same(&kept, &mask);
        render_again(text, &mask);
    }
    return 0;
}
