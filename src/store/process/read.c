/* Processes: lists, and records next to what their events alone tell. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/process/process.h"

static void add_filter(struct hf_ops *ops, const struct hf_caller *who,
                       const struct hf_process_filter *filter, const char *id,
                       const int64_t range[2])
{
    static const enum hf_sql_id statements[2][2] = {
        { HF_SQL_PROCESS_LIST, HF_SQL_PROCESS_LIST_BRIEF },
        { HF_SQL_PROCESS_LIST_NEWEST, HF_SQL_PROCESS_LIST_NEWEST_BRIEF },
    };
    bool any = filter->all || id || hf_status_terminal(filter->status);
    hf_ops_call(ops, statements[filter->newest][filter->brief], HF_ANY_COUNT);
    hf_ops_i64(ops, range[0]);
    hf_ops_i64(ops, any);
    hf_ops_text(ops, hf_status_word(filter->status));
    hf_ops_i64(ops, filter->waiting);
    hf_ops_text(ops, filter->originator);
    hf_ops_text(ops, filter->identity_kind);
    hf_ops_text(ops, filter->identity_label);
    hf_ops_text(ops, filter->definition);
    hf_ops_text(ops, filter->cause_occurrence);
    hf_ops_text(ops, filter->cause_subscription);
    hf_ops_text(ops, filter->observer);
    hf_ops_i64_opt(ops, filter->created_from);
    hf_ops_i64_opt(ops, filter->created_before);
    hf_ops_text(ops, who && *who->tenant ? who->tenant : NULL);
    hf_ops_text(ops, id);
    hf_ops_i64(ops, (int64_t)filter->limit + 1); /* one more tells that there is more */
    hf_ops_text(ops, filter->label);
    hf_ops_text(ops, filter->env_ref);
    hf_ops_i64(ops, range[1]);
    hf_ops_i64(ops, HF_PAGE_BYTES);
    hf_ops_bytes_max(ops, (size_t)HF_PAGE_BYTES);
}

static int process_at(const struct hf_call *rows, size_t i, struct hf_row *ret_row,
                      struct hf_process *ret_process, struct hf_err *err)
{
    int rc = hf_row_read(rows, i, ret_row, err);
    if (rc)
        return rc;
    *ret_process = (struct hf_process){ .work = ret_row->w };
    for (size_t f = 0; f < HF_PROCESS_COLUMNS; f++)
        *(const char **)(void *)((char *)ret_process + hf_process_fields[f].offset) =
            hf_out_text(rows, i, HF_COL_PROCESS_LIST_IDENTITY_KIND + f);
    return 0;
}

/* ---- observers ---------------------------------------------------------------------- */

static void add_observers(struct hf_ops *ops, const char *work_id)
{
    hf_ops_call(ops, HF_SQL_PROCESS_OBSERVERS, HF_ANY_COUNT);
    hf_ops_text(ops, work_id);
}

static const char *observers_of(struct hf_ops *ops, size_t call)
{
    const struct hf_call *rows = hf_ops_result(ops, call);
    const char **texts = hf_arena_array(&ops->arena, rows->out_count, sizeof *texts);
    for (size_t i = 0; texts && i < rows->out_count; i++)
        texts[i] = hf_out_text(rows, i, HF_COL_PROCESS_OBSERVERS_SESSION_ID);
    return texts ? hf_texts_json(&ops->arena, texts, rows->out_count) : NULL;
}

/* ---- one ---------------------------------------------------------------------------- */

/* Not among the living: pruned, or never there. */
static int gone(struct sql_store *store, const char *id, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_PROCESS_WAS, HF_ANY_COUNT);
    hf_ops_text(&ops, id);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (rc == 0 && rows->out_count > 0)
        rc = hf_fail(err, HF_ENOTFOUND, "retained",
                     "process %s ended as %s and was pruned: it is no longer retained",
                     id, hf_out_text(rows, 0, HF_COL_PROCESS_WAS_STATUS));
    else if (rc == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "id", "there is no process %s", id);
    hf_ops_fini(&ops);
    return rc;
}

/* A prefix or suffix becomes the full id; it lives in `ops`. */
static int full_id(struct sql_store *store, struct hf_ops *ops, const char *id,
                   const char **ret_id, struct hf_err *err)
{
    struct hf_row row;
    struct hf_err why = { 0 };
    int rc = sql_find(ops, id, &row, &why);
    if (rc == HF_ENOTFOUND)
        return gone(store, id, err);
    if (rc)
        return hf_fail_as(err, rc, &why);
    *ret_id = hf_arena_text(&ops->arena, row.w.work_id);
    return *ret_id ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* The process with this id: its row, then its grants. */
static int read_one(struct hf_ops *ops, const char *id, struct hf_row *ret_row,
                    struct hf_process *ret_process, struct hf_err *err)
{
    int rc = hf_ops_read(ops, err);
    if (rc == 0 && hf_ops_result(ops, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "id", "unit %s is no process", id);
    if (rc == 0)
        rc = process_at(hf_ops_result(ops, 0), 0, ret_row, ret_process, err);
    if (rc == 0) {
        ret_process->observers = observers_of(ops, 1);
        rc = ret_process->observers ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    return rc;
}

static void add_one(struct hf_ops *ops, const char *id)
{
    static const struct hf_process_filter one = { .all = true, .limit = 1 };
    static const int64_t all[2] = { 0, INT64_MAX };
    add_filter(ops, NULL, &one, id, all);
    add_observers(ops, id);
}

int sql_process_find(struct sql_store *store, struct hf_ops *ops, const char *id,
                     struct hf_row *ret_row, struct hf_process *ret_process,
                     struct hf_err *err)
{
    struct hf_ops find;
    const char *full = NULL;
    hf_ops_init(&find, store->sql, store->handle.alloc);
    int rc = full_id(store, &find, id, &full, err);
    hf_ops_reset(ops);
    if (rc == 0) {
        add_one(ops, full);
        rc = read_one(ops, full, ret_row, ret_process, err);
    }
    hf_ops_fini(&find);
    return rc;
}

/* ---- lists -------------------------------------------------------------------------- */

/* The observers of a page are one more read. */
static int show_page(struct sql_store *store, const struct hf_call *rows, size_t count,
                     bool brief, struct hf_processes *processes, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = 0;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    for (size_t i = 0; i < count; i++)
        add_observers(&ops, hf_row_id(rows, i));
    if (count > 0)
        rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct hf_row row;
        struct hf_process process;
        rc = process_at(rows, i, &row, &process, err);
        if (rc)
            break;
        process.observers = observers_of(&ops, i);
        if (brief)
            process.work.retry_policy = NULL;
        if (!process.observers || hf_processes_add(processes, &process))
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int set_next(struct hf_processes *processes, const struct hf_alloc *alloc,
                    int64_t seq)
{
    struct hf_buf cursor;
    hf_buf_init(&cursor, alloc, 32);
    hf_buf_i64(&cursor, seq);
    int rc = hf_buf_state(&cursor);
    if (rc == 0)
        rc = hf_processes_set_next(processes, hf_buf_str(&cursor));
    hf_buf_fini(&cursor);
    return rc;
}

/* The keys after which a page begins, and with which it ends at the latest. */
static int read_range(struct sql_store *store, const struct hf_process_filter *filter,
                      int64_t ret_range[2], bool *ret_more, struct hf_err *err)
{
    struct hf_ops ops;
    int64_t after = filter->newest ? INT64_MAX : 0;
    int rc = filter->after
                 ? hf_parse_i64(filter->after, 0, INT64_MAX, "after", &after, err)
                 : 0;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    hf_ops_call(&ops,
                filter->newest ? HF_SQL_PROCESS_WINDOW_NEWEST : HF_SQL_PROCESS_WINDOW, 1);
    hf_ops_i64(&ops, after);
    if (rc == 0)
        rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        const struct hf_call *found = hf_ops_result(&ops, 0);
        ret_range[0] = after;
        ret_range[1] = hf_out_i64(found, 0, HF_COL_PROCESS_WINDOW_LAST);
        *ret_more = hf_out_i64(found, 0, HF_COL_PROCESS_WINDOW_LOOKED) == HF_PAGE_ROWS;
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_process_list(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_process_filter *filter,
                     struct hf_processes *processes, struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct hf_ops find, ops;
    const char *id = NULL;
    int64_t range[2] = { 0 };
    bool goes_on = false;
    hf_ops_init(&find, store->sql, handle->alloc);
    hf_ops_init(&ops, store->sql, handle->alloc);
    int rc = filter->id ? full_id(store, &find, filter->id, &id, err) : 0;
    if (rc == 0)
        rc = read_range(store, filter, range, &goes_on, err);
    if (rc == 0 && id)
        range[1] = filter->newest ? 0 : INT64_MAX;
    if (rc == 0) {
        add_filter(&ops, who, filter, id, range);
        rc = hf_ops_read(&ops, err);
    }
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (rc == 0 && id && rows->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "id", "unit %s is no process", id);
    if (rc == 0) {
        bool more = rows->out_count > filter->limit;
        size_t count = more ? filter->limit : rows->out_count;
        rc = show_page(store, rows, count, filter->brief, processes, err);
        if (rc == 0 && (more || rows->full))
            rc = set_next(processes, handle->alloc,
                          hf_out_i64(rows, count - 1, HF_COL_PROCESS_LIST_SEQ));
        else if (rc == 0 && goes_on && !id)
            rc = set_next(processes, handle->alloc, range[1]);
    }
    hf_ops_fini(&ops);
    hf_ops_fini(&find);
    return rc;
}

/* ---- records ------------------------------------------------------------------------ */

static int fold_all(const struct hf_call *rows, struct hf_fold *fold, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        struct hf_event event = { 0 };
        hf_fields_read(rows, i,
                       (struct hf_field_table){ hf_event_fields, hf_event_field_count },
                       &event);
        rc = hf_fold_event(fold, &event, err);
    }
    return rc;
}

/* The caller's own copy of both texts. */
static int give(const struct hf_alloc *alloc, const char *const texts[2],
                char **ret_texts[2])
{
    char *copies[2] = { NULL, NULL };
    bool good = texts[0] && texts[1];
    for (int i = 0; good && i < 2; i++) {
        size_t bytes = strlen(texts[i]) + 1;
        copies[i] = alloc->realloc(alloc->user, NULL, bytes);
        good = copies[i] != NULL;
        if (good)
            memcpy(copies[i], texts[i], bytes);
    }
    for (int i = 0; i < 2; i++) {
        if (good)
            *ret_texts[i] = copies[i];
        else if (copies[i])
            alloc->free(alloc->user, copies[i]);
    }
    return good ? 0 : HF_ENOMEM;
}

/* Row, grants and events are of one moment: one read. */
static int read_both(struct hf_ops *ops, const char *id, struct hf_process *ret_process,
                     struct hf_fold *fold, struct hf_err *err)
{
    struct hf_row row;
    add_one(ops, id);
    size_t trail = hf_ops_call(ops, HF_SQL_EVENT_TRAIL, HF_ANY_COUNT);
    hf_ops_text(ops, id);
    hf_ops_i64(ops, 0);
    hf_ops_i64(ops, INT64_MAX);
    int rc = read_one(ops, id, &row, ret_process, err);
    return rc ? rc : fold_all(hf_ops_result(ops, trail), fold, err);
}

int sql_process_records(struct hf_store *handle, const char *id, char **ret_stored,
                        char **ret_folded, struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct hf_ops find, ops;
    struct hf_process process;
    struct hf_fold fold;
    const char *full = NULL;
    hf_ops_init(&find, store->sql, handle->alloc);
    hf_ops_init(&ops, store->sql, handle->alloc);
    hf_fold_begin(&fold, &find.arena);
    int rc = full_id(store, &find, id, &full, err);
    if (rc == 0)
        rc = read_both(&ops, full, &process, &fold, err);
    if (rc == 0) {
        const char *const texts[2] = { hf_process_record(&find.arena, &process),
                                       hf_process_record(&find.arena, &fold.process) };
        if (give(handle->alloc, texts, (char **[2]){ ret_stored, ret_folded }))
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    hf_ops_fini(&find);
    return rc;
}
