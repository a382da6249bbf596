/* Counts by queue, holder and age, and the list of occurrences. */
#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "base/text.h"
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
        ages.leases[part] = hf_out_i64(rows, i, HF_COL_OVERVIEW_LEASES_UNITS);
    }
    if (rc == 0)
        *ret_ages = ages;
    hf_ops_fini(&ops);
    return rc;
}

/* ---- occurrences ---------------------------------------------------------------------------- */

/* "CREATED_AT ID" of the last one that was seen. */
static int read_cursor(struct hf_arena *arena, const char *after, int64_t *ret_at,
                       const char **ret_id, struct hf_err *err)
{
    *ret_at = INT64_MAX;
    *ret_id = "";
    if (!after)
        return 0;
    size_t len = strcspn(after, " ");
    char *at = hf_arena_copy(arena, after, len);
    if (!at)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_id = after + len + (after[len] == ' ');
    if (!**ret_id)
        return hf_fail(err, HF_EINVAL, "after", "after is no cursor of this list");
    return hf_parse_i64(at, 0, INT64_MAX, "after", ret_at, err);
}

static int show_occurrence(struct hf_arena *arena, const struct hf_call *rows, size_t i,
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
    };
    struct hf_buf cursor;
    hf_buf_init(&cursor, arena->alloc, 512);
    hf_buf_i64(&cursor, one.created_at);
    hf_buf_char(&cursor, ' ');
    hf_buf_text(&cursor, one.occurrence_id);
    int rc = hf_buf_state(&cursor);
    if (rc == 0)
        each(user, &one, hf_buf_str(&cursor));
    hf_buf_fini(&cursor);
    return rc;
}

int sql_occurrences(struct hf_store *handle, const struct hf_caller *who,
                    const struct hf_occurrence_filter *filter, hf_each_occurrence *each,
                    void *user, struct hf_err *err)
{
    struct hf_ops ops;
    int64_t at = 0;
    const char *id = NULL;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = read_cursor(&ops.arena, filter->after, &at, &id, err);
    hf_ops_call(&ops, HF_SQL_OCCURRENCE_LIST, HF_ANY_COUNT);
    hf_ops_text(&ops, tenant_of(who));
    hf_ops_text(&ops, filter->source_type);
    hf_ops_text(&ops, filter->source_key);
    hf_ops_i64(&ops, at);
    hf_ops_text(&ops, id);
    hf_ops_i64(&ops, (int64_t)filter->limit);
    if (rc == 0)
        rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++)
        if (show_occurrence(&ops.arena, hf_ops_result(&ops, 0), i, each, user))
            rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&ops);
    return rc;
}
