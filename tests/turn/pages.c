#include "turn/pages.h"

#include <string.h>

#include "support/unit.h"

static const struct hf_record *get(void *user, uint64_t i)
{
    struct pages *pages = user;
    if (++pages->gets == pages->gone_at)
        return NULL;
    assert_true(i < pages->stored);
    struct hf_span json = { pages->records[i].at, pages->records[i].len };
    if (pages->pins[i] == 0)
        assert_int_equal(
            hf_record_decode(NULL, json, &pages->owners[i], &pages->lent[i], NULL), 0);
    pages->pins[i]++;
    pages->pinned++;
    return pages->lent[i];
}

static void put(void *user, uint64_t i, const struct hf_record *record)
{
    struct pages *pages = user;
    assert_true(i < pages->stored);
    assert_true(pages->pins[i] > 0);
    assert_ptr_equal(record, pages->lent[i]);
    pages->pinned--;
    if (--pages->pins[i] == 0)
        hf_decoded_free(pages->owners[i]);
}

void pages_open(struct pages *pages)
{
    memset(pages, 0, sizeof(*pages));
}

void pages_close(struct pages *pages)
{
    assert_int_equal(pages->pinned, 0);
    for (uint64_t i = 0; i < pages->stored; i++)
        hf_bytes_free(&pages->records[i]);
}

void pages_store(struct pages *pages, const struct hf_record *record)
{
    uint64_t i = pages->stored;
    assert_true(i < PAGES_MAX);
    assert_int_equal(hf_record_encode(NULL, record, &pages->records[i], NULL), 0);
    assert_int_equal(
        hf_record_chain(pages->digests[i], record, pages->digests[i + 1], NULL), 0);
    pages->last_steps[i + 1] = hf_record_is_step(record) ? i + 1 : pages->last_steps[i];
    pages->stored++;
}

struct hf_base pages_base(struct pages *pages, uint64_t count)
{
    struct hf_base base = {
        .id = "history", .count = count, .user = pages, .get = get, .put = put
    };
    memcpy(base.digest, pages->digests[count], 32);
    base.last_step_known = pages->tells_steps;
    base.last_step = pages->tells_steps ? pages->last_steps[count] : 0;
    return base;
}
