/* Rows of units between C and SQL: read from a result, and appended as the arguments of a write or
 * an insert. The order of these arguments is written only here. */
#include "store/batch/rowio.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/fields.h"
#include "core/ledger/retry.h"
#include "store/batch/gates.h"

/* ---- reading ----------------------------------------------------------------------- */

/* Every statement that returns units has the columns of work_by_id, and its own behind them. */
#define COL(name) HF_COL_WORK_BY_ID_##name

/* Columns that come behind those of struct hf_work. */
static const struct {
    size_t column;
    bool text;
    size_t offset;
} more_columns[] = {
    { COL(SEQ), false, offsetof(struct hf_row, seq) },
    { COL(REVISION), false, offsetof(struct hf_row, revision) },
    { COL(LEASE_INCARNATION), false, offsetof(struct hf_row, lease_incarnation) },
    { COL(GRACE_MS), false, offsetof(struct hf_row, grace_ms) },
    { COL(LEASE_CHECK_AT), false, offsetof(struct hf_row, lease_check_at) },
    { COL(SESSION_FENCE), false, offsetof(struct hf_row, session_fence) },
    { COL(FAIR_TAG), false, offsetof(struct hf_row, fair_tag) },
    { COL(FAIR_WEIGHT), false, offsetof(struct hf_row, fair_weight) },
    { COL(CRASHES), false, offsetof(struct hf_row, crashes) },
    { COL(CRASHED_AT), false, offsetof(struct hf_row, crashed_at) },
    { COL(CLAIM_GROUP), true, offsetof(struct hf_row, claim_group) },
    { COL(SETTLED_TOKEN), true, offsetof(struct hf_row, settled_token) },
    { COL(SETTLED_VERB), true, offsetof(struct hf_row, settled_verb) },
    { COL(WAKE_SESSION), true, offsetof(struct hf_row, wake_session) },
    { COL(LEASE_REMAINING_MS), false, offsetof(struct hf_row, w.lease_remaining_ms) },
};
#define MORE_COUNT (sizeof more_columns / sizeof more_columns[0])

static void put(const struct hf_call *call, size_t i, size_t column, bool text, void *at)
{
    if (text)
        *(const char **)at = hf_out_text(call, i, column);
    else
        *(int64_t *)at = hf_out_i64(call, i, column);
}

static int read_words(struct hf_row *row, struct hf_err *err)
{
    row->status = hf_status_of(row->w.status);
    if (row->status == HF_STATUS_NONE)
        return hf_fail(err, HF_ECORRUPT, "status", "row %lld has an unknown status",
                       (long long)row->seq);
    row->source = hf_source_of(row->w.source_system);
    if (row->source == HF_SOURCE_NONE)
        return hf_fail(err, HF_ECORRUPT, "source_system",
                       "row %lld has an unknown source system", (long long)row->seq);
    if (row->w.disposition)
        row->disposition = hf_disposition_of(row->w.disposition);
    if (row->w.disposition && row->disposition == HF_DISPOSITION_NONE)
        return hf_fail(err, HF_ECORRUPT, "disposition",
                       "row %lld has an unknown disposition", (long long)row->seq);
    if (row->w.lease_fence < 0 || row->w.generation < 0 || row->w.attempt_count < 0)
        return hf_fail(err, HF_ECORRUPT, "lease_fence", "row %lld has a negative counter",
                       (long long)row->seq);
    return 0;
}

int hf_row_read(const struct hf_call *call, size_t i, struct hf_row *ret_row,
                struct hf_err *err)
{
    struct hf_row row = { 0 };
    size_t column = 0;
    for (size_t f = 0; f < hf_work_field_count; f++) {
        const struct hf_field *field = &hf_work_fields[f];
        if (field->offset != offsetof(struct hf_work, lease_remaining_ms))
            put(call, i, column++, field->kind != HF_FIELD_I64,
                (char *)&row.w + field->offset);
    }
    hf_assert(column == COL(SEQ));
    for (size_t f = 0; f < MORE_COUNT; f++)
        put(call, i, more_columns[f].column, more_columns[f].text,
            (char *)&row + more_columns[f].offset);
    if (!row.w.retry_policy)
        row.w.retry_policy = hf_retry_default_text;
    int rc = read_words(&row, err);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

const char *hf_row_id(const struct hf_call *call, size_t i)
{
    return hf_out_text(call, i, COL(WORK_ID));
}

static int by_place(const void *a, const void *b)
{
    const struct hf_place *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->fair_tag != y->fair_tag)
        return x->fair_tag < y->fair_tag ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

void hf_rows_in_order(const struct hf_call *call, struct hf_place *ret_places)
{
    bool sorted = true;
    for (size_t i = 0; i < call->out_count; i++) {
        ret_places[i] = (struct hf_place){
            .priority = hf_out_i64(call, i, COL(PRIORITY)),
            .fair_tag = hf_out_i64(call, i, COL(FAIR_TAG)),
            .seq = hf_out_i64(call, i, COL(SEQ)),
            .row = i,
        };
        sorted = sorted && (i == 0 || by_place(&ret_places[i - 1], &ret_places[i]) < 0);
    }
    if (!sorted)
        qsort(ret_places, call->out_count, sizeof ret_places[0], by_place);
}

/* ---- writing ----------------------------------------------------------------------- */

static hf_ms sooner(hf_ms a, hf_ms b)
{
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

hf_ms hf_row_next_at(const struct hf_row *row)
{
    /* A sweep never acts on a session's unit: it acts on the waits of its turn. */
    if (row->w.finished_at || row->w.session_id)
        return 0;
    hf_ms at = sooner(row->w.deadline_at, row->w.escalate_at);
    at = sooner(at, row->w.next_retry_at);
    if (row->w.gate && hf_same(row->w.gate, "due"))
        at = sooner(at, row->w.due_at);
    if (row->w.abandon_request && row->w.waiting_kind)
        at = sooner(at, row->w.updated_at);
    return at;
}

void hf_lane_lock(struct hf_ops *ops, const struct hf_work *w)
{
    if (!w->lane_key)
        return;
    hf_ops_call(ops, HF_SQL_LANE_LOCK, HF_ANY_COUNT);
    hf_ops_text(ops, w->lane_key);
    hf_ops_text(ops, w->tenant);
}

void hf_lane_promote(struct hf_ops *ops, const struct hf_work *w)
{
    if (!w->lane_key)
        return;
    hf_ops_call(ops, HF_SQL_LANE_DISPLACE, HF_ANY_COUNT);
    hf_ops_text(ops, w->lane_key);
    hf_ops_text(ops, w->tenant);
    hf_ops_call(ops, HF_SQL_LANE_PROMOTE, HF_ANY_COUNT);
    hf_ops_text(ops, w->lane_key);
    hf_ops_text(ops, w->tenant);
}

static void yield_lane(struct hf_ops *ops, const struct hf_row *was,
                       const struct hf_row *row)
{
    if (!was->w.lane_key || row->status != HF_STATUS_RUNNING ||
        was->status == HF_STATUS_RUNNING)
        return;
    hf_ops_call(ops, HF_SQL_LANE_YIELD, HF_ANY_COUNT);
    hf_ops_text(ops, was->w.lane_key);
    hf_ops_text(ops, was->w.tenant);
    hf_ops_i64(ops, was->seq);
}

static void write_lease(struct hf_ops *ops, const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    hf_ops_text(ops, w->owner);
    hf_ops_text(ops, w->owner_incarnation);
    hf_ops_text(ops, row->claim_group);
    hf_ops_i64(ops, w->lease_fence);
    hf_ops_i64_opt(ops, row->lease_incarnation);
    hf_ops_i64_opt(ops, w->lease_ttl_ms);
    if (row->claim_group)
        hf_ops_i64(ops, row->grace_ms);
    else
        hf_ops_null(ops);
    hf_ops_i64_opt(ops, w->lease_expires_at);
    hf_ops_i64_opt(ops, row->lease_check_at);
    hf_ops_text(ops, w->holder);
    ops->batch.holds |= w->holder != NULL;
}

static void write_facts(struct hf_ops *ops, const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    hf_ops_text(ops, w->waiting_kind);
    hf_ops_text(ops, w->waiting_ref);
    hf_ops_i64_opt(ops, w->escalate_at);
    hf_ops_text(ops, w->escalate);
    hf_ops_text(ops, w->resume_payload);
    hf_ops_text(ops, w->error_class);
    hf_ops_text(ops, w->result);
    hf_ops_text(ops, w->cancel_request);
    hf_ops_text(ops, w->abandon_request);
    hf_ops_i64_opt(ops, w->active_at);
    hf_ops_i64_opt(ops, w->first_started_at);
    hf_ops_i64_opt(ops, w->started_at);
    hf_ops_i64_opt(ops, w->finished_at);
    hf_ops_text(ops, row->settled_token);
    hf_ops_text(ops, row->settled_verb);
    hf_ops_i64(ops, w->updated_at);
}

/* A row that comes to its queue again, as the fair shares want it. */
static const struct hf_making *coming_row(struct hf_ops *ops, const struct hf_row *row)
{
    struct hf_making *making = hf_arena_new(&ops->arena, struct hf_making);
    if (making)
        making->row = row;
    else
        ops->state = HF_ENOMEM;
    return making;
}

void hf_row_write(struct hf_ops *ops, const struct hf_row *was, const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    const struct hf_making *coming = hf_fair_comes(was, row) ? coming_row(ops, row)
                                                             : NULL;
    if (coming)
        hf_fair_take(ops, coming, 1);
    hf_lane_lock(ops, &was->w);
    yield_lane(ops, was, row);
    hf_ops_call(ops, HF_SQL_WORK_WRITE, 1);
    hf_ops_i64(ops, was->seq);
    hf_ops_i64(ops, was->revision);
    hf_ops_i64_opt(ops, was->w.lease_expires_at);
    hf_ops_text(ops, hf_status_word(row->status));
    hf_ops_text(ops, w->status_reason);
    hf_ops_text(ops, w->gate);
    hf_ops_i64(ops, w->generation);
    hf_ops_i64(ops, w->attempt_count);
    hf_ops_i64(ops, w->failures);
    hf_ops_i64(ops, w->due_at);
    hf_ops_i64_opt(ops, w->next_retry_at);
    hf_ops_i64_opt(ops, w->deadline_at);
    write_lease(ops, row);
    write_facts(ops, row);
    hf_ops_text(ops, row->event_type ? row->event_type : "transition");
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_text(ops, row->message);
    hf_ops_text(ops, row->note);
    hf_ops_text(ops, row->event_correlation_id);
    hf_ops_i64_opt(ops, hf_row_next_at(row));
    hf_ops_i64(ops, row->crashes);
    hf_ops_i64_opt(ops, row->crashed_at);
    if (coming)
        hf_fair_tag(ops, coming, 1);
    hf_gates_note(ops, was, row);
    hf_lane_promote(ops, &was->w);
}

void hf_event_append(struct hf_ops *ops, const struct hf_row *row, const char *type)
{
    hf_ops_call(ops, HF_SQL_EVENT_APPEND, 1);
    hf_ops_i64(ops, row->seq);
    hf_ops_text(ops, type);
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_text(ops, row->message);
    hf_ops_text(ops, row->note);
    hf_ops_text(ops, row->event_correlation_id);
}

/* ---- showing ----------------------------------------------------------------------- */

int hf_item_show(struct hf_answer *answer, struct hf_item *item, const struct hf_row *row,
                 bool brief)
{
    if (brief) {
        item->work = (struct hf_work){ .work_id = hf_answer_text(answer, row->w.work_id),
                                       .status = hf_status_word(row->status) };
        return item->work.work_id ? 0 : HF_ENOMEM;
    }
    struct hf_work work = row->w;
    work.status = hf_status_word(row->status);
    for (size_t f = 0; f < hf_work_field_count; f++) {
        const struct hf_field *field = &hf_work_fields[f];
        const char **text = (const char **)(void *)((char *)&work + field->offset);
        if (field->kind == HF_FIELD_I64 || !*text || *text == work.status)
            continue;
        *text = hf_answer_text(answer, *text);
        if (!*text)
            return HF_ENOMEM;
    }
    item->work = work;
    return 0;
}

int hf_item_fail(struct hf_answer *answer, struct hf_item *item, const struct hf_err *err)
{
    item->code = err->code;
    item->field = hf_answer_text(answer, err->field);
    item->message = hf_answer_text(answer, err->message);
    return item->field && item->message ? 0 : HF_ENOMEM;
}
