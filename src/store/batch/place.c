/* Pages of lists whose rows are known by names: where a page begins, and with which row it ends at
 * the latest. A cursor has a time and the names, each after its length: "104,3:abc5:daily". */
#include "store/batch/place.h"

#include <holdfast/bounds.h>
#include <holdfast/sys/store.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define CURSOR_BYTES_MAX 1024 /* three names, their lengths and a time */

const char *sql_place_cursor(struct hf_arena *arena, const struct sql_named_list *list,
                             const struct sql_place *place)
{
    struct hf_buf text;
    hf_buf_init(&text, arena->alloc, CURSOR_BYTES_MAX);
    hf_buf_i64(&text, place->at);
    hf_buf_char(&text, ',');
    for (size_t i = 0; i < list->names; i++) {
        hf_buf_i64(&text, (int64_t)strlen(place->names[i]));
        hf_buf_char(&text, ':');
        hf_buf_text(&text, place->names[i]);
    }
    return hf_buf_keep(&text, arena);
}

/* Digits and the character that ends them. */
static bool read_number(const char **at, char end, int64_t *ret_number)
{
    int64_t number = 0;
    const char *c = *at;
    for (; *c >= '0' && *c <= '9' && number <= (INT64_MAX - 9) / 10; c++)
        number = number * 10 + (*c - '0');
    if (c == *at || *c != end)
        return false;
    *at = c + 1;
    *ret_number = number;
    return true;
}

/* 0, HF_EINVAL or HF_ENOMEM. */
static int read_place(struct hf_arena *arena, const struct sql_named_list *list,
                      struct sql_place *ret_place)
{
    struct sql_place place = { 0 };
    const char *at = list->cursor;
    int64_t len = 0;
    if (!read_number(&at, ',', &place.at))
        return HF_EINVAL;
    for (size_t i = 0; i < list->names; i++) {
        if (!read_number(&at, ':', &len) || len > HF_MAX_KEY_BYTES ||
            strnlen(at, (size_t)len) < (size_t)len || !hf_utf8_valid(at, (size_t)len))
            return HF_EINVAL;
        place.names[i] = hf_arena_copy(arena, at, (size_t)len);
        if (!place.names[i])
            return HF_ENOMEM;
        at += len;
    }
    *ret_place = place;
    return *at ? HF_EINVAL : 0;
}

static int begin(struct hf_arena *arena, const struct sql_named_list *list,
                 struct sql_place *ret_place, struct hf_err *err)
{
    struct sql_place first = { .at = list->newest ? INT64_MAX : 0 };
    for (size_t i = 0; i < list->names; i++)
        first.names[i] = "";
    if (!list->newest)
        first.names[0] = list->tenant;
    int rc = list->cursor ? read_place(arena, list, &first) : 0;
    if (rc == HF_EINVAL)
        return hf_fail(err, rc, "after", "after is no cursor of this list");
    *ret_place = first;
    return rc ? hf_fail_plain(err, rc) : 0;
}

/* The last row of the window; an empty table has none. */
static int take_last(struct hf_arena *arena, const struct sql_named_list *list,
                     const struct hf_call *found, struct sql_range *range)
{
    range->last = range->after;
    if (found->out_count == 0)
        return 0;
    for (size_t i = 0; i < list->names; i++) {
        range->last.names[i] = hf_arena_text(arena, hf_out_text(found, 0, i));
        if (!range->last.names[i])
            return HF_ENOMEM;
    }
    range->last.at = hf_out_i64(found, 0, list->names);
    range->more = hf_out_i64(found, 0, list->names + 1) != 0;
    /* In the order of names nothing of a tenant follows the rows of a later one. */
    if (!list->newest && *list->tenant && !hf_same(range->last.names[0], list->tenant))
        range->more = false;
    return 0;
}

int sql_range_read(struct hf_sql *sql, struct hf_arena *arena,
                   const struct sql_named_list *list, struct sql_range *ret_range,
                   struct hf_err *err)
{
    struct hf_ops ops;
    struct sql_range range = { .more = false };
    int rc = begin(arena, list, &range.after, err);
    if (rc)
        return rc;
    hf_ops_init(&ops, sql, arena->alloc);
    hf_ops_call(&ops, list->window, HF_ANY_COUNT);
    for (size_t i = 0; i < list->names; i++)
        hf_ops_text(&ops, range.after.names[i]);
    if (list->newest)
        hf_ops_i64(&ops, range.after.at);
    rc = hf_ops_read(&ops, err);
    if (rc == 0 && take_last(arena, list, hf_ops_result(&ops, 0), &range))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        *ret_range = range;
    hf_ops_fini(&ops);
    return rc;
}

void sql_range_names(struct hf_ops *ops, const struct sql_named_list *list,
                     const struct sql_range *range)
{
    for (size_t i = 0; i < list->names; i++)
        hf_ops_text(ops, range->after.names[i]);
    for (size_t i = 0; i < list->names; i++)
        hf_ops_text(ops, range->last.names[i]);
}

void sql_range_bounds(struct hf_ops *ops, const struct sql_named_list *list,
                      const struct sql_range *range, size_t limit)
{
    hf_ops_i64(ops, (int64_t)limit + 1);
    hf_ops_i64(ops, HF_PAGE_BYTES);
    hf_ops_bytes_max(ops, (size_t)HF_PAGE_BYTES);
    if (!list->newest)
        return;
    hf_ops_i64(ops, range->after.at);
    hf_ops_i64(ops, range->last.at);
}

int sql_range_show(const struct hf_call *found, size_t limit, sql_add_row *add,
                   void *answer, struct sql_range *range)
{
    int rc = 0;
    bool full = found->full || found->out_count > limit;
    for (size_t i = 0; rc == 0 && i < found->out_count && i < limit; i++) {
        struct sql_place place = { 0 };
        rc = add(answer, found, i, &place);
        if (full) {
            range->more = true;
            range->last = place;
        }
    }
    return rc;
}
