/* Reading units: one by its id, a part of it or a key; pages of rows; trails (the events of one
 * unit); counts. */
#include <holdfast/bounds.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "core/ledger/fields.h"
#include "store/batch/fieldio.h"
#include "store/store.h"

#define PART_MIN 4

/* ---- one row ----------------------------------------------------------------------- */

/* Ids that begin or end with the given part: at most two rows of each kind are read, enough
 * to tell "one" from "several". */
static int find_by_part(struct hf_ops *ops, const char *part, struct hf_row *ret_row,
                        struct hf_err *err)
{
    size_t len = strlen(part);
    if (len < PART_MIN)
        return hf_fail(err, HF_EINVAL, "id", "use at least %d characters of the id",
                       PART_MIN);
    char *past = hf_arena_copy(&ops->arena, part, len + 1);
    if (!past)
        return hf_fail_plain(err, HF_ENOMEM);
    past[len] = '\x7f'; /* past every character of an id */
    past[len + 1] = '\0';
    size_t first = hf_ops_call(ops, HF_SQL_WORK_BY_PREFIX, HF_ANY_COUNT);
    hf_ops_text(ops, part);
    hf_ops_text(ops, past);
    size_t last = hf_ops_call(ops, HF_SQL_WORK_BY_SUFFIX, HF_ANY_COUNT);
    hf_ops_text(ops, part);
    hf_ops_i64(ops, (int64_t)len);
    int rc = hf_ops_read(ops, err);
    if (rc)
        return rc;
    const struct hf_call *begin = hf_ops_result(ops, first);
    const struct hf_call *end = hf_ops_result(ops, last);
    if (begin->out_count + end->out_count == 0)
        return hf_fail(err, HF_ENOTFOUND, "id", "no unit's id begins or ends with %s",
                       part);
    if (begin->out_count + end->out_count > 1)
        return hf_fail(err, HF_EAMBIGUOUS, "id",
                       "several units' ids begin or end with %s", part);
    return hf_row_read(begin->out_count ? begin : end, 0, ret_row, err);
}

int sql_find(struct hf_ops *ops, const char *id, struct hf_row *ret_row,
             struct hf_err *err)
{
    if (!hf_uuid_valid(id))
        return find_by_part(ops, id, ret_row, err);
    size_t call = hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
    hf_ops_text(ops, id);
    int rc = hf_ops_read(ops, err);
    if (rc)
        return rc;
    if (hf_ops_result(ops, call)->out_count == 0)
        return hf_fail(err, HF_ENOTFOUND, "id", "there is no unit %s", id);
    return hf_row_read(hf_ops_result(ops, call), 0, ret_row, err);
}

static int add_item(struct hf_answer *answer, const struct hf_row *row,
                    struct hf_err *err)
{
    struct hf_item *item = hf_answer_add(answer);
    if (!item || hf_item_show(answer, item, row, false))
        return hf_fail_plain(err, HF_ENOMEM);
    return 0;
}

int sql_get(struct hf_store *handle, const char *id, struct hf_answer *answer,
            struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_row row;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_find(&ops, id, &row, err);
    if (rc == 0)
        rc = add_item(answer, &row, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_known(struct hf_store *handle, const char *tenant,
              const struct hf_work_spec *request, bool *ret_known, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    size_t call = hf_ops_call(&ops, HF_SQL_WORK_BY_SOURCE, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant);
    hf_ops_text(&ops, hf_source_word(request->source));
    hf_ops_text(&ops, request->source_id);
    hf_ops_text(&ops, request->source_run_id ? request->source_run_id : "");
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        *ret_known = hf_ops_result(&ops, call)->out_count > 0;
    hf_ops_fini(&ops);
    return rc;
}

/* ---- pages ------------------------------------------------------------------------- */

/* By whether a window is read, direction and brevity. */
static const enum hf_sql_id list_statements[2][2][2] = {
    { { HF_SQL_WORK_LIST_OPEN, HF_SQL_WORK_LIST_OPEN_BRIEF },
      { HF_SQL_WORK_LIST_OPEN_NEWEST, HF_SQL_WORK_LIST_OPEN_NEWEST_BRIEF } },
    { { HF_SQL_WORK_LIST_ANY, HF_SQL_WORK_LIST_ANY_BRIEF },
      { HF_SQL_WORK_LIST_ANY_NEWEST, HF_SQL_WORK_LIST_ANY_NEWEST_BRIEF } },
};

/* The statuses as a JSON array; NULL where there are none, or no memory. */
static const char *list_statuses(struct hf_arena *arena, const struct hf_filter *filter)
{
    struct hf_buf buf;
    struct hf_json json;
    if (!filter->status_count)
        return NULL;
    hf_buf_init(&buf, arena->alloc, 1024);
    hf_json_begin(&json, &buf);
    hf_json_array(&json);
    for (size_t i = 0; i < filter->status_count; i++)
        hf_json_str(&json, hf_status_word(filter->statuses[i]));
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

static void add_filter(struct hf_ops *ops, const struct hf_caller *who,
                       const struct hf_filter *filter, size_t limit, const char *statuses)
{
    hf_ops_text(ops, hf_source_word(filter->source));
    hf_ops_text(ops, filter->queue);
    hf_ops_text(ops, filter->kind);
    hf_ops_text(ops, filter->owner);
    hf_ops_text(ops, filter->ref);
    hf_ops_i64_opt(ops, filter->older_than_ms);
    hf_ops_i64(ops, filter->silent);
    hf_ops_text(ops, who->tenant[0] ? who->tenant : NULL);
    hf_ops_i64(ops, (int64_t)limit + 1); /* one more tells whether there is a next page */
    hf_ops_text(ops, statuses);
    hf_ops_text(ops, filter->gate);
    hf_ops_text(ops, filter->source_id);
    hf_ops_text(ops, filter->source_run_id);
    hf_ops_text(ops, filter->parent_work_id);
    hf_ops_text(ops, filter->session_id);
    hf_ops_text(ops, filter->lane_key);
    hf_ops_text(ops, filter->correlation_id);
    hf_ops_text(ops, filter->error_class);
    hf_ops_text(ops, hf_disposition_word(filter->disposition));
    hf_ops_i64(ops, filter->finished);
    hf_ops_i64_opt(ops, filter->since_ms);
    hf_ops_i64_opt(ops, filter->from);
    hf_ops_i64_opt(ops, filter->before);
    hf_ops_text(ops, filter->find);
}

/* A page under way. It is read in parts, so that it needs little memory next to its rows. */
#define PART_ROWS 128

struct listing {
    struct hf_store *handle;
    const struct hf_caller *who;
    const struct hf_filter *filter;
    struct hf_answer *answer;
    struct hf_err *err;
    const char *statuses;
    int64_t after; /* the last row that was looked at */
    int64_t until; /* the last one to look at */
    size_t limit;  /* of the page */
    size_t bytes;  /* of the rows so far */
    bool queued;   /* rows match that neither run nor wait */
    bool window;   /* a window of keys is read, and not the open rows alone */
    bool more;     /* there are rows behind the window */
};

/* Whether rows match that have ended, and such that neither run nor wait. */
static bool look_for(const struct hf_filter *filter, bool *ret_queued)
{
    bool ended = false, queued = filter->status_count == 0;
    for (size_t i = 0; i < filter->status_count; i++) {
        ended |= hf_status_terminal(filter->statuses[i]);
        queued |= filter->statuses[i] == HF_STATUS_QUEUED ||
                  filter->statuses[i] == HF_STATUS_RETRY_SCHEDULED;
    }
    *ret_queued = queued && !filter->owner && !filter->silent && !filter->ref;
    return ended;
}

/* One number is asked for; its row is passed to `take`. */
static int read_first(struct listing *list, enum hf_sql_id statement, int64_t argument,
                      void (*take)(struct listing *, const struct hf_call *))
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(list->handle)->sql, list->handle->alloc);
    hf_ops_call(&ops, statement, 1);
    hf_ops_i64(&ops, argument);
    int rc = hf_ops_read(&ops, list->err);
    if (rc == 0)
        take(list, hf_ops_result(&ops, 0));
    hf_ops_fini(&ops);
    return rc;
}

static void take_count(struct listing *list, const struct hf_call *found)
{
    list->window = hf_out_i64(found, 0, 0) > HF_PAGE_ROWS;
}

/* An empty table has no window: nothing is behind any key. */
static void take_window(struct listing *list, const struct hf_call *found)
{
    list->until = hf_out_i64(found, 0, HF_COL_WORK_WINDOW_LAST);
    list->more = hf_out_i64(found, 0, HF_COL_WORK_WINDOW_MORE);
}

/* Open rows are read without others where there are at most as many as a page looks at. */
static int choose_rows(struct listing *list)
{
    bool newest = list->filter->newest;
    int rc = 0;
    list->until = newest ? 0 : INT64_MAX;
    list->window = look_for(list->filter, &list->queued);
    if (!list->window)
        rc = read_first(list,
                        list->queued ? HF_SQL_WORK_OPEN_COUNT : HF_SQL_WORK_HELD_COUNT,
                        HF_PAGE_ROWS + 1, take_count);
    if (rc || !list->window)
        return rc;
    list->queued = true;
    return read_first(list, newest ? HF_SQL_WORK_WINDOW_NEWEST : HF_SQL_WORK_WINDOW,
                      list->after, take_window);
}

static int begin_list(struct listing *list, struct hf_arena *arena)
{
    static const enum hf_status open[] = { HF_STATUS_QUEUED, HF_STATUS_RUNNING,
                                           HF_STATUS_WAITING_USER,
                                           HF_STATUS_WAITING_EXTERNAL,
                                           HF_STATUS_RETRY_SCHEDULED };
    struct hf_filter filter = *list->filter;
    int rc = 0;
    list->limit = filter.limit ? filter.limit : 100;
    list->after = filter.newest ? INT64_MAX : 0;
    if (filter.after)
        rc = hf_parse_i64(filter.after, 0, INT64_MAX, "after", &list->after, list->err);
    if (rc == 0)
        rc = choose_rows(list);
    if (list->window && !filter.status_count) {
        filter.statuses = open;
        filter.status_count = sizeof(open) / sizeof(open[0]);
    }
    list->statuses = list_statuses(arena, &filter);
    if (rc == 0 && filter.status_count && !list->statuses)
        rc = hf_fail_plain(list->err, HF_ENOMEM);
    return rc;
}

static void add_part(struct hf_ops *ops, const struct listing *list, size_t rows)
{
    const struct hf_filter *filter = list->filter;
    hf_ops_call(ops, list_statements[list->window][filter->newest][filter->brief],
                HF_ANY_COUNT);
    hf_ops_i64(ops, list->after);
    add_filter(ops, list->who, filter, rows, list->statuses);
    hf_ops_i64(ops, (int64_t)((size_t)HF_PAGE_BYTES - list->bytes));
    hf_ops_bytes_max(ops, (size_t)HF_PAGE_BYTES - list->bytes);
    hf_ops_i64(ops, list->queued);
    hf_ops_i64(ops, list->until);
    hf_ops_i64_opt(ops, list->filter->unacked);
    hf_ops_text(ops, list->filter->limit_name);
}

static int set_cursor(struct listing *list, int64_t seq)
{
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), 32);
    hf_buf_i64(&buf, seq);
    const char *cursor = hf_answer_text(list->answer, hf_buf_str(&buf));
    hf_buf_fini(&buf);
    hf_answer_set_next(list->answer, cursor);
    return cursor ? 0 : hf_fail_plain(list->err, HF_ENOMEM);
}

static int show_rows(struct listing *list, const struct hf_call *rows, size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct hf_row row;
        rc = hf_row_read(rows, i, &row, list->err);
        if (list->filter->brief)
            row.w.retry_policy = NULL;
        if (rc == 0)
            rc = add_item(list->answer, &row, list->err);
        list->after = row.seq;
        for (size_t k = 0; k < rows->out_width; k++)
            list->bytes += hf_out(rows, i, k)->len;
    }
    return rc;
}

/* Reads a part. *ret_ends: the page ends with it, and its cursor is set if the list continues. */
static int read_part(struct listing *list, bool *ret_ends)
{
    struct hf_ops ops;
    size_t left = list->limit - hf_answer_count(list->answer);
    size_t rows = left < PART_ROWS ? left : PART_ROWS;
    hf_ops_init(&ops, sql_store_of(list->handle)->sql, list->handle->alloc);
    add_part(&ops, list, rows);
    int rc = hf_ops_read(&ops, list->err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    bool more = found && found->out_count > rows, full = found && found->full;
    if (rc == 0)
        rc = show_rows(list, found, more ? rows : found->out_count);
    full |= list->bytes >= (size_t)HF_PAGE_BYTES;
    *ret_ends = full || !more || left == rows;
    if (rc == 0 && *ret_ends && (full || more))
        rc = set_cursor(list, list->after);
    else if (rc == 0 && *ret_ends && list->more)
        rc = set_cursor(list, list->until);
    hf_ops_fini(&ops);
    return rc;
}

int sql_list(struct hf_store *handle, const struct hf_caller *who,
             const struct hf_filter *filter, struct hf_answer *answer, struct hf_err *err)
{
    struct listing list = {
        .handle = handle, .who = who, .filter = filter, .answer = answer, .err = err
    };
    struct hf_arena arena;
    bool ends = false;
    hf_arena_init(&arena, handle->alloc);
    int rc = begin_list(&list, &arena);
    while (rc == 0 && !ends)
        rc = read_part(&list, &ends);
    hf_arena_fini(&arena);
    return rc;
}

/* ---- trails ------------------------------------------------------------------------ */

static int read_event(struct hf_events *events, const struct hf_call *rows, size_t i)
{
    struct hf_event *event = hf_events_add(events);
    if (!event)
        return HF_ENOMEM;
    for (size_t f = 0; f < hf_event_field_count; f++) {
        const struct hf_field *field = &hf_event_fields[f];
        void *at = (char *)event + field->offset;
        if (field->kind == HF_FIELD_I64) {
            *(int64_t *)at = hf_out_i64(rows, i, f);
            continue;
        }
        const char *text = hf_out_text(rows, i, f);
        *(const char **)at = hf_events_text(events, text);
        if (text && !*(const char **)at)
            return HF_ENOMEM;
    }
    return 0;
}

static int read_trail(struct hf_store *handle, const char *work_id, int64_t after,
                      size_t limit, struct hf_events *events, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_EVENT_TRAIL, HF_ANY_COUNT);
    hf_ops_text(&ops, work_id);
    hf_ops_i64(&ops, after);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        if (read_event(events, hf_ops_result(&ops, 0), i))
            rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&ops);
    return rc;
}

int sql_events(struct hf_store *handle, const char *id, int64_t after, size_t limit,
               struct hf_events **ret_events, struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_row row;
    struct hf_events *events = hf_events_new(handle->alloc);
    if (!events)
        return hf_fail_plain(err, HF_ENOMEM);
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_find(&ops, id, &row, err);
    if (rc == 0)
        rc = read_trail(handle, row.w.work_id, after, limit, events, err);
    hf_ops_fini(&ops);
    if (rc)
        hf_events_free(events);
    else
        *ret_events = events;
    return rc;
}

/* ---- counts ------------------------------------------------------------------------ */

static void add_counts(struct hf_stats *stats, const struct hf_call *counts)
{
    for (size_t i = 0; i < counts->out_count; i++) {
        enum hf_status status = hf_status_of(
            hf_out_text(counts, i, HF_COL_WORK_COUNTS_STATUS));
        enum hf_source source = hf_source_of(
            hf_out_text(counts, i, HF_COL_WORK_COUNTS_SOURCE_SYSTEM));
        stats->by_status[status] += hf_out_i64(counts, i, HF_COL_WORK_COUNTS_UNITS);
        stats->by_source[source] += hf_out_i64(counts, i, HF_COL_WORK_COUNTS_UNITS);
        stats->gated += hf_out_i64(counts, i, HF_COL_WORK_COUNTS_GATED);
        stats->silent += hf_out_i64(counts, i, HF_COL_WORK_COUNTS_SILENT);
        stats->lapsing += hf_out_i64(counts, i, HF_COL_WORK_COUNTS_LAPSING);
    }
}

static hf_ms age(hf_ms now, hf_ms since)
{
    return since && now > since ? now - since : 0;
}

int sql_stats(struct hf_store *handle, const struct hf_caller *who,
              struct hf_stats *ret_stats, struct hf_err *err)
{
    const char *tenant = who->tenant[0] ? who->tenant : NULL;
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    size_t counts = hf_ops_call(&ops, HF_SQL_WORK_COUNTS, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant);
    size_t ages = hf_ops_call(&ops, HF_SQL_WORK_AGES, 1);
    hf_ops_text(&ops, tenant);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        struct hf_stats stats = { 0 };
        const struct hf_call *at = hf_ops_result(&ops, ages);
        add_counts(&stats, hf_ops_result(&ops, counts));
        stats.oldest_queued_ms = age(ops.batch.now,
                                     hf_out_i64(at, 0, HF_COL_WORK_AGES_DUE_AT));
        stats.oldest_running_ms = age(ops.batch.now,
                                      hf_out_i64(at, 0, HF_COL_WORK_AGES_STARTED_AT));
        stats.next_wait_deadline_at = hf_out_i64(at, 0, HF_COL_WORK_AGES_DEADLINE_AT);
        stats.next_retry_at = hf_out_i64(at, 0, HF_COL_WORK_AGES_NEXT_RETRY_AT);
        stats.ended_badly = hf_out_i64(at, 0, HF_COL_WORK_AGES_ENDED_BADLY);
        *ret_stats = stats;
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- everything, for comparing stores ---------------------------------------------- */

static int dump_rows(const struct hf_call *rows, const struct hf_dump *dump,
                     struct hf_err *err)
{
    for (size_t i = 0; i < rows->out_count; i++) {
        struct hf_row row;
        int rc = hf_row_read(rows, i, &row, err);
        if (rc)
            return rc;
        dump->row(dump->user, &row.w, row.settled_verb, row.lease_check_at,
                  row.lease_incarnation);
    }
    return 0;
}

/* Texts are borrowed from the results. */
static void dump_events(const struct hf_call *rows, const struct hf_dump *dump)
{
    for (size_t i = 0; i < rows->out_count; i++) {
        struct hf_event event = { 0 };
        hf_fields_read(rows, i,
                       (struct hf_field_table){ hf_event_fields, hf_event_field_count },
                       &event);
        dump->event(dump->user, &event);
    }
}

int sql_dump(struct hf_store *handle, const struct hf_dump *dump, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    size_t rows = hf_ops_call(&ops, HF_SQL_WORK_DUMP, HF_ANY_COUNT);
    size_t events = hf_ops_call(&ops, HF_SQL_EVENT_DUMP, HF_ANY_COUNT);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        rc = dump_rows(hf_ops_result(&ops, rows), dump, err);
    if (rc == 0)
        dump_events(hf_ops_result(&ops, events), dump);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- an owner's rows --------------------------------------------------------------- */

static void add_owner(struct hf_ops *ops, const struct hf_renew_all *renew)
{
    hf_ops_text(ops, renew->owner);
    hf_ops_text(ops, renew->incarnation);
    hf_ops_i64_opt(ops, renew->fresh_within_ms);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The keys of the rows that were renewed, in order; NULL when out of memory. */
static const int64_t *renewed_seqs(struct hf_ops *ops, const struct hf_call *renewed)
{
    int64_t *seqs = hf_arena_array(&ops->arena, renewed->out_count + 1, sizeof *seqs);
    for (size_t i = 0; seqs && i < renewed->out_count; i++)
        seqs[i] = hf_out_i64(renewed, i, HF_COL_WORK_RENEW_ALL_SEQ);
    if (seqs)
        qsort(seqs, renewed->out_count, sizeof *seqs, by_number);
    return seqs;
}

/* Rows that another caller had locked just then were left out, and that is told: their
 * leases are not lost, and not renewed either. */
static int show_renewed(struct hf_answer *answer, struct hf_ops *ops,
                        const struct hf_call *renewed, const struct hf_call *owned,
                        struct hf_err *err)
{
    const int64_t *seqs = renewed_seqs(ops, renewed);
    int rc = seqs ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < owned->out_count; i++) {
        struct hf_row row;
        struct hf_err why;
        struct hf_item *item = hf_answer_add(answer);
        rc = hf_row_read(owned, i, &row, err);
        if (rc == 0 && (!item || hf_item_show(answer, item, &row, false)))
            rc = hf_fail_plain(err, HF_ENOMEM);
        if (rc || bsearch(&row.seq, seqs, renewed->out_count, sizeof *seqs, by_number))
            continue;
        (void)hf_fail(&why, HF_EBUSY, "id",
                      "skipped: another transaction has locked the row");
        rc = hf_item_fail(answer, item, &why) ? hf_fail_plain(err, HF_ENOMEM) : 0;
    }
    return rc;
}

int sql_renew_all(struct hf_store *handle, const struct hf_caller *who,
                  const struct hf_renew_all *renew, struct hf_answer *answer,
                  struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_WORK_RENEW_ALL, HF_ANY_COUNT);
    add_owner(&ops, renew);
    hf_ops_call(&ops, HF_SQL_EVENT_RENEWED_ALL, HF_ANY_COUNT);
    add_owner(&ops, renew);
    hf_ops_text(&ops, who->actor_kind);
    hf_ops_text(&ops, who->actor);
    hf_ops_text(&ops, who->correlation_id);
    size_t owned = hf_ops_call(&ops, HF_SQL_WORK_OWNED, HF_ANY_COUNT);
    add_owner(&ops, renew);
    int rc = hf_ops_write(&ops, err);
    if (rc == 0)
        rc = hf_ops_counted(&ops, err);
    if (rc == 0)
        rc = show_renewed(answer, &ops, hf_ops_result(&ops, 0),
                          hf_ops_result(&ops, owned), err);
    hf_ops_fini(&ops);
    return rc;
}
