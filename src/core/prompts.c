#include "core/prompts.h"

#include <string.h>

#include "base/err.h"

static const struct hf_fill *find(const struct hf_fill *fills, size_t count,
                                  const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(fills[i].name) == len && memcmp(fills[i].name, name, len) == 0)
            return &fills[i];
    return NULL;
}

void hf_prompt_put(struct hf_buf *out, enum hf_prompt_id id, const struct hf_fill *fills,
                   size_t count)
{
    const char *at = hf_prompts[id].text;
    const char *mark = NULL;
    while ((mark = strstr(at, "{{")) != NULL) {
        const char *end = strstr(mark, "}}");
        hf_assert(end != NULL); /* the generator saw to it */
        const struct hf_fill *fill = find(fills, count, mark + 2,
                                          (size_t)(end - mark) - 2);
        hf_assert(fill != NULL);
        hf_buf_bytes(out, at, (size_t)(mark - at));
        if (fill->text.at)
            hf_buf_bytes(out, fill->text.at, fill->text.len);
        else
            hf_buf_i64(out, (int64_t)fill->number);
        at = end + 2;
    }
    hf_buf_text(out, at);
}
