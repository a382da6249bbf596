/* Counts by queue, holder and age, and the list of occurrences. */
#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"
#include "store/batch/place.h"
#include "store/watch/watch.h"

#define ROWS 1000
#define HOLDER_BYTES 8192

static const char *tenant_of(const struct hf_caller *who)
{
    return who->tenant[0] ? who->tenant : NULL;
}

/* ---- queues ---------------------------------------------------------------------------- */

#define COUNT(name) hf_out_i64(rows, i, HF_COL_OVERVIEW_QUEUES_##name)

static struct hf_queue queue_of(const struct hf_call *rows, size_t i, hf_ms now)
{
    hf_ms oldest = COUNT(OLDEST_AT);
    return (struct hf_queue){
        .queue = hf_out_text(rows, i, HF_COL_OVERVIEW_QUEUES_QUEUE),
        .claimable = COUNT(CLAIMABLE),
        .due = COUNT(DUE),
        .lane = COUNT(LANE),
        .limit = COUNT(LIMITED),
        .rate = COUNT(RATE),
        .held = COUNT(HELD),
        .running = COUNT(RUNNING),
        .waiting = COUNT(WAITING),
        .retry = COUNT(RETRY),
        .silent = COUNT(SILENT),
        .oldest_claimable_ms = oldest && oldest < now ? now - oldest : 0,
        .next_due_at = COUNT(NEXT_DUE_AT),
        .kinds = hf_out_text(rows, i, HF_COL_OVERVIEW_QUEUES_KINDS),
    };
}

int sql_queues(struct hf_store *handle, const struct hf_caller *who, hf_each_queue *each,
               void *user, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_OVERVIEW_QUEUES, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant_of(who));
    hf_ops_i64(&ops, ROWS);
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_queue queue = queue_of(hf_ops_result(&ops, 0), i, ops.batch.now);
        each(user, &queue);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- holders --------------------------------------------------------------------------- */

size_t watch_owner_end(const struct hf_call *rows, size_t from)
{
    size_t to = from;
    while (to < rows->out_count &&
           hf_same(hf_out_text(rows, from, HF_COL_OVERVIEW_HOLDERS_OWNER),
                   hf_out_text(rows, to, HF_COL_OVERVIEW_HOLDERS_OWNER)))
        to++;
    return to;
}

/* Two incarnations hold work at once if the one that began first renewed after the other had
 * begun. One that was replaced after a crash did not. Rows are in the order of beginnings. */
bool watch_is_twin(const struct hf_call *rows, size_t from, size_t to, size_t i)
{
    for (size_t k = from; k < to; k++) {
        size_t first = k < i ? k : i, second = k < i ? i : k;
        if (k != i && hf_out_i64(rows, first, HF_COL_OVERVIEW_HOLDERS_RENEWED_AT) >
                          hf_out_i64(rows, second, HF_COL_OVERVIEW_HOLDERS_SINCE))
            return true;
    }
    return false;
}

/* `boot` lives as long as *ret_json, which the caller frees. */
static void read_process(const char *text, struct hf_holder *holder,
                         struct json_t **ret_json)
{
    struct hf_span span = { text, text ? strlen(text) : 0 };
    if (!text || hf_json_parse(span, HOLDER_BYTES, "holder", ret_json, NULL))
        return;
    holder->boot = hf_json_as_text(hf_json_member(*ret_json, "boot"));
    holder->pid = hf_json_as_i64(hf_json_member(*ret_json, "pid"));
}

#define CELL(name) hf_out_i64(rows, i, HF_COL_OVERVIEW_HOLDERS_##name)

static void show_holder(const struct hf_call *rows, size_t i, bool twin,
                        hf_each_holder_row *each, void *user)
{
    struct json_t *json = NULL;
    struct hf_holder holder = {
        .owner = hf_out_text(rows, i, HF_COL_OVERVIEW_HOLDERS_OWNER),
        .incarnation = hf_out_text(rows, i, HF_COL_OVERVIEW_HOLDERS_OWNER_INCARNATION),
        .running = CELL(UNITS),
        .silent = CELL(SILENT),
        .started_at = CELL(SINCE),
        .least_left_ms = CELL(LEAST_MS),
        .most_left_ms = CELL(MOST_MS),
        .active_at = CELL(ACTIVE_AT),
        .twin = twin,
    };
    read_process(hf_out_text(rows, i, HF_COL_OVERVIEW_HOLDERS_HOLDER), &holder, &json);
    each(user, &holder);
    hf_json_free(json);
}

int sql_holder_list(struct hf_store *handle, const struct hf_caller *who,
                    const char *owner, hf_each_holder_row *each, void *user,
                    struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_OVERVIEW_HOLDERS, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant_of(who));
    hf_ops_text(&ops, owner);
    hf_ops_i64(&ops, ROWS);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *rows = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t from = 0, to = 0; rows && from < rows->out_count; from = to) {
        to = watch_owner_end(rows, from);
        for (size_t i = from; i < to; i++)
            show_holder(rows, i, watch_is_twin(rows, from, to, i), each, user);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- ages -------------------------------------------------------------------------------- */

int sql_ages(struct hf_store *handle, const struct hf_caller *who,
             struct hf_age_table *ret_ages, struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_age_table ages = { 0 };
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_OVERVIEW_AGES, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant_of(who));
    hf_ops_call(&ops, HF_SQL_OVERVIEW_LEASES, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant_of(who));
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        enum hf_status status = hf_status_of(
            hf_out_text(rows, i, HF_COL_OVERVIEW_AGES_STATUS));
        size_t age = (size_t)hf_out_i64(rows, i, HF_COL_OVERVIEW_AGES_AGE);
        ages.open[status][age] = hf_out_i64(rows, i, HF_COL_OVERVIEW_AGES_UNITS);
    }
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 1)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 1);
        size_t part = (size_t)hf_out_i64(rows, i, HF_COL_OVERVIEW_LEASES_PART);
        ages.leases[part] = hf_out_i64(rows, i, HF_COL_OVERVIEW_LEASES_LEASES);
    }
    if (rc == 0)
        *ret_ages = ages;
    hf_ops_fini(&ops);
    return rc;
}

/* ---- occurrences ---------------------------------------------------------------------------- */

struct shown_page {
    hf_each_occurrence *each;
    void *user;
    struct hf_occurrence_next *next;
};

static int keep_place(void *unused, const struct hf_call *rows, size_t i,
                      struct sql_place *ret_place)
{
    (void)unused; /* rows are passed on after the page has ended */
    *ret_place = (struct sql_place){
        .at = hf_out_i64(rows, i, HF_COL_OCCURRENCE_LIST_CREATED_AT),
        .names = { hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_OCCURRENCE_ID) }
    };
    return 0;
}

static void show_occurrence(const struct hf_call *rows, size_t i,
                            hf_each_occurrence *each, void *user)
{
    const struct hf_occurrence one = {
        .occurrence_id = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_OCCURRENCE_ID),
        .tenant = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_TENANT),
        .source_type = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_SOURCE_TYPE),
        .source_key = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_SOURCE_KEY),
        .idempotency_key = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_IDEMPOTENCY_KEY),
        .occurred_at = hf_out_i64(rows, i, HF_COL_OCCURRENCE_LIST_OCCURRED_AT),
        .created_at = hf_out_i64(rows, i, HF_COL_OCCURRENCE_LIST_CREATED_AT),
        .deliveries = hf_out_text(rows, i, HF_COL_OCCURRENCE_LIST_DELIVERIES),
        .deliveries_more = hf_out_i64(rows, i, HF_COL_OCCURRENCE_LIST_DELIVERIES_MORE),
    };
    each(user, &one);
}

/* Passes the rows of a page on; where it ended is written down. */
static int show_page(struct hf_ops *ops, const struct sql_named_list *list,
                     struct sql_range *range, size_t limit, struct shown_page *page)
{
    const struct hf_call *rows = hf_ops_result(ops, 0);
    int rc = sql_range_show(rows, limit, keep_place, NULL, range);
    for (size_t i = 0; rc == 0 && i < rows->out_count && i < limit; i++)
        show_occurrence(rows, i, page->each, page->user);
    const char *next = rc == 0 && range->more
                           ? sql_place_cursor(&ops->arena, list, &range->last)
                           : "";
    if (rc || !next || strlen(next) >= sizeof(page->next->cursor))
        return HF_ENOMEM;
    memcpy(page->next->cursor, next, strlen(next) + 1);
    return 0;
}

int sql_occurrences(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_occurrence_filter *filter, hf_each_occurrence *each,
                    void *user, struct hf_occurrence_next *ret_next, struct hf_err *err)
{
    struct hf_ops ops;
    struct sql_range range;
    struct shown_page page = { .each = each, .user = user, .next = ret_next };
    const struct sql_named_list list = { .window = HF_SQL_OCCURRENCE_WINDOW,
                                         .names = 1,
                                         .newest = true,
                                         .tenant = "",
                                         .cursor = filter->after };
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_range_read(ops.sql, &ops.arena, &list, &range, err);
    if (rc == 0) {
        hf_ops_call(&ops, HF_SQL_OCCURRENCE_LIST, HF_ANY_COUNT);
        sql_range_names(&ops, &list, &range);
        hf_ops_text(&ops, tenant_of(who));
        hf_ops_text(&ops, filter->source_type);
        hf_ops_text(&ops, filter->source_key);
        sql_range_bounds(&ops, &list, &range, filter->limit);
        rc = hf_ops_read(&ops, err);
    }
    if (rc == 0 && show_page(&ops, &list, &range, filter->limit, &page))
        rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&ops);
    return rc;
}
