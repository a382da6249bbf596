/* Cursors of lists, as callers see them: LIST DIRECTION SUM '.' and the store's own cursor, for
 * example "won0badcafe.104": two letters of the list, n or o for the direction, eight digits for
 * the filter. So a cursor that is used with another list, direction or filter is refused. */
#include "store/api/page.h"

#include <string.h>

#include "base/err.h"
#include "base/ident.h"

#define SUM_TEXT 8
#define MARK_TEXT (3 + SUM_TEXT + 1) /* with the dot */

void api_page_text(struct api_page *page, const char *text)
{
    /* The end of a text is part of it, and no text differs from an empty one. */
    page->filter = hf_crc32c(page->filter, text ? text : "\xff",
                             text ? strlen(text) + 1 : 1);
}

void api_page_number(struct api_page *page, int64_t number)
{
    page->filter = hf_crc32c(page->filter, &number, sizeof(number));
}

static void write_mark(const struct api_page *page, char out[MARK_TEXT + 1])
{
    static const char digits[] = "0123456789abcdef";
    out[0] = page->what[0];
    out[1] = page->what[1];
    out[2] = page->newest ? 'n' : 'o';
    for (int i = 0; i < SUM_TEXT; i++)
        out[3 + i] = digits[page->filter >> (28 - 4 * i) & 15];
    out[MARK_TEXT - 1] = '.';
    out[MARK_TEXT] = '\0';
}

int api_page_open(const struct api_page *page, const char *after, const char **ret_own,
                  struct hf_err *err)
{
    char mark[MARK_TEXT + 1];
    *ret_own = NULL;
    if (!after)
        return 0;
    write_mark(page, mark);
    if (strlen(after) <= MARK_TEXT || memcmp(after, mark, 2) != 0 ||
        after[MARK_TEXT - 1] != '.')
        return hf_fail(err, HF_EINVAL, "after", "after is no cursor of a list of %s",
                       page->what);
    if (after[2] != mark[2])
        return hf_fail(err, HF_EINVAL, "after",
                       "after is a cursor of this list in the other direction");
    if (memcmp(after, mark, MARK_TEXT) != 0)
        return hf_fail(err, HF_EINVAL, "after",
                       "after is a cursor of this list with another filter");
    *ret_own = after + MARK_TEXT;
    return 0;
}

const char *api_page_close(const struct api_page *page, struct hf_arena *arena,
                           const char *own)
{
    char mark[MARK_TEXT + 1];
    write_mark(page, mark);
    return hf_arena_join(arena, mark, own);
}

int api_page_next(const struct api_page *page, struct hf_arena *arena, const char *own,
                  const char **ret_next)
{
    const char *next = own ? api_page_close(page, arena, own) : NULL;
    if (own && !next)
        return HF_ENOMEM;
    *ret_next = next;
    return 0;
}
