/* Pages of lists whose rows are known by names: where a page begins, and with which row it ends at
 * the latest. Lists of units have a key of their own and need none of this.
 *
 * A cursor has a time and the names, each after its length: "104,3:abc5:daily". */
#ifndef HF_STORE_BATCH_PLACE_H
#define HF_STORE_BATCH_PLACE_H

#include "store/batch/ops.h"

#define PLACE_NAMES 3

/* Where a row is: by its names, or with `newest` by when it was created and its names. */
struct sql_place {
    hf_ms at;
    const char *names[PLACE_NAMES];
};

/* A list, and from where it is read. */
struct sql_named_list {
    enum hf_sql_id window; /* names..., created_at, more: see schedule_window */
    size_t names;
    bool newest;
    const char *tenant; /* the first name; "": rows of all tenants */
    const char *cursor; /* NULL: from the first row */
};

/* The rows that a page looks at: those after one place up to another, which is included. */
struct sql_range {
    struct sql_place after;
    struct sql_place last;
    bool more; /* rows of the list may follow after `last` */
};

/* The range of a page, at most HF_PAGE_ROWS rows; its texts are in the arena. HF_EINVAL naming
 * "after", and the errors of a store. */
HF_MUST_USE int sql_range_read(struct hf_sql *sql, struct hf_arena *arena,
                               const struct sql_named_list *list,
                               struct sql_range *ret_range, struct hf_err *err);

/* Appends the names of both places. */
void sql_range_names(struct hf_ops *ops, const struct sql_named_list *list,
                     const struct sql_range *range);
/* Appends one row more than `limit`, which tells that there is more, HF_PAGE_BYTES and, if the list
 * is newest first, the times of both places. */
void sql_range_bounds(struct hf_ops *ops, const struct sql_named_list *list,
                      const struct sql_range *range, size_t limit);
/* Adds row i of a page to the answer of a verb, and returns where the row is; the names are
 * borrowed from `found`. Not 0: no memory. */
typedef int sql_add_row(void *answer, const struct hf_call *found, size_t i,
                        struct sql_place *ret_place);
/* Adds at most `limit` rows of a page. A full page ends the range with its last row. */
HF_MUST_USE int sql_range_show(const struct hf_call *found, size_t limit,
                               sql_add_row *add, void *answer, struct sql_range *range);

/* The cursor of a place, in the arena; NULL: no memory. */
const char *sql_place_cursor(struct hf_arena *arena, const struct sql_named_list *list,
                             const struct sql_place *place);

#endif
