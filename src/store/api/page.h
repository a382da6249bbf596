/* Cursors of lists: what a list continues with, tied to the list that it came from.
 *
 * A store has cursors of its own, which say where a page ended. Callers see them behind a mark of
 * the list, its direction and its filter, so that a cursor continues no other list. */
#ifndef HF_STORE_API_PAGE_H
#define HF_STORE_API_PAGE_H

#include <holdfast/sys/store.h>

#include "base/arena.h"

struct api_page {
    const char *what; /* the list; its first two letters are part of the cursor */
    bool newest;
    uint32_t filter; /* a sum of all that the filter says, except limit and cursor */
};

/* Adds a part of the filter to the sum. Parts are added in a fixed order, those that are not given
 * included. */
void api_page_text(struct api_page *page, const char *text);
void api_page_number(struct api_page *page, int64_t number);

/* The store's own cursor of a caller's; NULL stays NULL. HF_EINVAL naming "after". */
HF_MUST_USE int api_page_open(const struct api_page *page, const char *after,
                              const char **ret_own, struct hf_err *err);

/* A caller's cursor of the store's own, in the arena; NULL: no memory. */
const char *api_page_close(const struct api_page *page, struct hf_arena *arena,
                           const char *own);

/* The same for an answer that may have no cursor: then *ret_next becomes NULL. HF_ENOMEM. */
HF_MUST_USE int api_page_next(const struct api_page *page, struct hf_arena *arena,
                              const char *own, const char **ret_next);

/* Puts the mark before an answer's cursor, if it has one; false: no memory. */
bool hf_answer_mark_next(struct hf_answer *answer, const struct api_page *page);

#endif
