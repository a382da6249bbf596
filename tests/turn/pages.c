#include "turn/pages.h"

#include <stdlib.h>
#include <string.h>

#include "core/turn/schema.h"
#include "support/unit.h"

struct page {
    struct hf_record record; /* first: it is what get returns */
    struct hf_arena arena;
};

static const struct hf_record *get(void *user, uint64_t i)
{
    struct pages *pages = user;
    if (++pages->gets == pages->gone_at)
        return NULL;
    struct page *page = calloc(1, sizeof(*page));
    hf_arena_init(&page->arena, hf_alloc_system());
    assert_int_equal(hf_copy(&page->arena, &hf_s_record, HF_COPY_STRICT,
                             &pages->records[i], &page->record, NULL),
                     0);
    pages->pinned++;
    return &page->record;
}

static void put(void *user, uint64_t i, const struct hf_record *record)
{
    struct pages *pages = user;
    struct page *page = NULL;
    assert_true(i < pages->stored);
    memcpy(&page, &record, sizeof(page));
    hf_arena_fini(&page->arena);
    free(page);
    assert_true(pages->pinned > 0);
    pages->pinned--;
}

void pages_open(struct pages *pages)
{
    memset(pages, 0, sizeof(*pages));
    hf_arena_init(&pages->arena, hf_alloc_system());
}

void pages_close(struct pages *pages)
{
    assert_int_equal(pages->pinned, 0);
    hf_arena_fini(&pages->arena);
}

void pages_store(struct pages *pages, const struct hf_record *record)
{
    uint64_t i = pages->stored;
    assert_true(i < PAGES_MAX);
    assert_int_equal(hf_copy(&pages->arena, &hf_s_record, HF_COPY_STRICT, record,
                             &pages->records[i], NULL),
                     0);
    assert_int_equal(
        hf_record_chain(pages->digests[i], record, pages->digests[i + 1], NULL), 0);
    pages->stored++;
}

struct hf_base pages_base(struct pages *pages, uint64_t count)
{
    struct hf_base base = {
        .id = "history", .count = count, .user = pages, .get = get, .put = put
    };
    memcpy(base.digest, pages->digests[count], 32);
    return base;
}
