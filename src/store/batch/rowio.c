/* See rowio.h. */
#include "store/batch/rowio.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/fields.h"
#include "core/ledger/retry.h"
#include "store/batch/gates.h"

/* ---- reading ----------------------------------------------------------------------- */

struct inner {
    bool text;
    size_t offset;
};

/* What readers do not see; of each kind behind theirs in the fragment `row`. */
static const struct inner inner_columns[] = {
    { false, offsetof(struct hf_row, revision) },
    { false, offsetof(struct hf_row, lease_store) },
    { false, offsetof(struct hf_row, grace_ms) },
    { false, offsetof(struct hf_row, lease_check_at) },
    { false, offsetof(struct hf_row, session_fence) },
    { false, offsetof(struct hf_row, fair_tag) },
    { false, offsetof(struct hf_row, fair_weight) },
    { false, offsetof(struct hf_row, crashes) },
    { false, offsetof(struct hf_row, crashed_at) },
    { true, offsetof(struct hf_row, claim_group) },
    { true, offsetof(struct hf_row, settled_token) },
    { true, offsetof(struct hf_row, settled_verb) },
    { true, offsetof(struct hf_row, wake_session) },
};
#define INNER_COUNT (sizeof inner_columns / sizeof inner_columns[0])

/* Numbers, then texts. */
#define NUMBERS 31
#define TEXTS 39
#define PRIORITY 1
#define FAIR_TAG 27
const size_t hf_row_width = NUMBERS + TEXTS;

/* The next number's and the next text's column. */
struct next_columns {
    size_t number;
    size_t text;
};

static void put(const struct hf_call *call, size_t i, struct next_columns *next,
                bool text, void *at)
{
    if (text)
        *(const char **)at = hf_cell_text(call, i, next->text++);
    else
        *(int64_t *)at = hf_cell_i64(call, i, next->number++);
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
    struct next_columns next = { .text = NUMBERS };
    struct hf_row row = { 0 };
    put(call, i, &next, false, &row.seq);
    for (size_t f = 0; f < hf_work_field_count; f++)
        put(call, i, &next, hf_work_fields[f].kind != HF_FIELD_I64,
            (char *)&row.w + hf_work_fields[f].offset);
    for (size_t f = 0; f < INNER_COUNT; f++)
        put(call, i, &next, inner_columns[f].text,
            (char *)&row + inner_columns[f].offset);
    hf_assert(next.number == NUMBERS && next.text == NUMBERS + TEXTS);
    if (!row.w.retry_policy)
        row.w.retry_policy = hf_retry_default_text;
    int rc = read_words(&row, err);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

const char *hf_row_id(const struct hf_call *call, size_t i)
{
    return hf_cell_text(call, i, NUMBERS);
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
            .priority = hf_cell_i64(call, i, PRIORITY),
            .fair_tag = hf_cell_i64(call, i, FAIR_TAG),
            .seq = hf_cell_i64(call, i, 0),
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

/* The next wall-clock moment at which a sweep must look at the row; leases have a clock and
 * a column of their own. */
static hf_ms wake_at(const struct hf_row *row)
{
    if (row->w.finished_at)
        return 0;
    hf_ms at = sooner(row->w.deadline_at, row->w.escalate_at);
    at = sooner(at, row->w.next_retry_at);
    if (row->w.gate && hf_same(row->w.gate, "due"))
        at = sooner(at, row->w.due_at);
    if (row->w.abandon_request && row->w.waiting_kind)
        at = sooner(at, row->w.updated_at);
    return at;
}

static void lock_lane(struct hf_ops *ops, const struct hf_work *w)
{
    if (!w->lane_key)
        return;
    hf_ops_call(ops, HF_SQL_LANE_LOCK, HF_ANY_COUNT);
    hf_ops_text(ops, w->lane_key);
    hf_ops_text(ops, w->tenant);
}

/* After a write of a row with a lane key: the slot goes to whoever is first now. */
static void settle_lane(struct hf_ops *ops, const struct hf_work *w)
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
    if (!was->w.lane_key || row->status != HF_RUNNING || was->status == HF_RUNNING)
        return;
    hf_ops_call(ops, HF_SQL_LANE_YIELD, HF_ANY_COUNT);
    hf_ops_text(ops, was->w.lane_key);
    hf_ops_text(ops, was->w.tenant);
    hf_ops_i64(ops, was->seq);
}

#define SPEC_ARGS 18
#define STATE_ARGS 30 /* with a place under a limit */
#define PLAIN_ARGS 11
#define UNIT_ARGS 11
#define UNIT_ARGS_ONCE 14
#define ALIKE_ARGS 6 /* of both statements */
#define ALIKE_ARGS_ONCE 23

/* The default is not written: it would be a third of the row. */
static const char *own_retry_policy(const struct hf_work *w)
{
    return w->retry_policy == hf_retry_default_text ? NULL : w->retry_policy;
}

static bool on_server(const struct hf_ops *ops)
{
    return !hf_same(ops->sql->methods->name, "sqlite"); /* whatever stands before it */
}

static void add_spec(struct hf_ops *ops, const struct hf_making *making)
{
    const struct hf_work *w = &making->row->w;
    hf_ops_text(ops, w->work_id);
    hf_ops_text(ops, w->tenant);
    hf_ops_text(ops, w->source_system);
    hf_ops_text(ops, w->source_id);
    hf_ops_text(ops, w->source_run_id ? w->source_run_id : "");
    hf_ops_text(ops, w->idempotency_key);
    hf_ops_bytes(ops, making->hash, 32);
    hf_ops_text(ops, w->ref);
    hf_ops_text(ops, w->parent_work_id);
    hf_ops_text(ops, w->correlation_id);
    hf_ops_text(ops, w->payload);
    hf_ops_text(ops, w->payload_ref);
    hf_ops_text(ops, own_retry_policy(w));
    hf_ops_text(ops, w->status);
    hf_ops_text(ops, making->row->actor_kind);
    hf_ops_text(ops, making->row->actor);
    hf_ops_text(ops, making->row->note);
    hf_ops_i64(ops, w->created_at);
}

static void add_state(struct hf_ops *ops, const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    hf_ops_text(ops, w->work_id);
    hf_ops_text(ops, w->tenant);
    hf_ops_text(ops, w->source_system);
    hf_ops_text(ops, w->kind);
    hf_ops_text(ops, w->queue);
    hf_ops_i64(ops, w->priority);
    hf_ops_i64(ops, row->fair_tag);
    hf_ops_text(ops, w->lane_key);
    hf_ops_text(ops, w->dedup_key);
    hf_ops_text(ops, w->session_id);
    hf_ops_text(ops, w->disposition);
    hf_ops_text(ops, w->close_rule);
    hf_ops_text(ops, w->status);
    hf_ops_text(ops, w->status_reason);
    hf_ops_text(ops, w->gate);
    hf_ops_i64(ops, w->max_attempts);
    hf_ops_i64(ops, w->due_at);
    hf_ops_i64_opt(ops, w->deadline_at);
    hf_ops_i64_opt(ops, w->start_timeout_ms);
    hf_ops_i64_opt(ops, w->exec_timeout_ms);
    hf_ops_text(ops, w->waiting_kind);
    hf_ops_text(ops, w->waiting_ref);
    hf_ops_i64_opt(ops, w->finished_at);
    hf_ops_i64(ops, w->updated_at);
    hf_ops_text(ops, w->result);
    hf_ops_i64_opt(ops, wake_at(row));
    hf_ops_text(ops, w->limit_name);
    hf_ops_text(ops, w->fair_key);
    hf_ops_i64(ops, row->fair_weight ? row->fair_weight : 1);
}

/* Has nothing but what the plain statements write. */
static bool plain(const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    return !w->lane_key && !w->dedup_key && !w->session_id && !w->close_rule &&
           !w->status_reason && !w->gate && !w->deadline_at && !w->start_timeout_ms &&
           !w->exec_timeout_ms && !w->waiting_kind && !w->waiting_ref &&
           !w->finished_at && !w->result && !w->limit_name && !w->fair_key &&
           !row->fair_tag && row->fair_weight <= 1 && wake_at(row) == 0;
}

/* All but the key. */
static void add_plain_state(struct hf_ops *ops, const struct hf_work *w)
{
    hf_ops_text(ops, w->tenant);
    hf_ops_text(ops, w->source_system);
    hf_ops_text(ops, w->kind);
    hf_ops_text(ops, w->queue);
    hf_ops_i64(ops, w->priority);
    hf_ops_text(ops, w->disposition);
    hf_ops_text(ops, w->status);
    hf_ops_i64(ops, w->max_attempts);
    hf_ops_i64(ops, w->due_at);
    hf_ops_i64(ops, w->updated_at);
}

static void insert_spec(struct hf_ops *ops, const struct hf_making *making)
{
    const char *dedup_key = making->row->w.dedup_key;
    hf_ops_call(ops, dedup_key ? HF_SQL_WORK_INSERT_SPEC_DEDUP : HF_SQL_WORK_INSERT_SPEC,
                HF_ANY_COUNT);
    add_spec(ops, making);
    if (dedup_key)
        hf_ops_text(ops, dedup_key);
}

static void insert_one(struct hf_ops *ops, const struct hf_making *making)
{
    insert_spec(ops, making);
    hf_ops_call(ops,
                making->place ? HF_SQL_WORK_INSERT_LIMITED : HF_SQL_WORK_INSERT_STATE,
                HF_ANY_COUNT);
    add_state(ops, making->row);
    if (making->place)
        hf_ops_i64(ops, making->place);
}

/* Both rows by one statement. */
static void insert_unit(struct hf_ops *ops, const struct hf_making *making)
{
    const struct hf_work *w = &making->row->w;
    hf_ops_call(ops, HF_SQL_WORK_INSERT_UNIT, HF_ANY_COUNT);
    add_spec(ops, making);
    hf_ops_text(ops, w->kind);
    hf_ops_text(ops, w->queue);
    hf_ops_i64(ops, w->priority);
    hf_ops_text(ops, w->disposition);
    hf_ops_i64(ops, w->max_attempts);
    hf_ops_i64(ops, w->due_at);
    hf_ops_i64(ops, w->updated_at);
}

static void insert_plain(struct hf_ops *ops, const struct hf_making *making)
{
    if (on_server(ops)) {
        insert_unit(ops, making);
        return;
    }
    insert_spec(ops, making);
    hf_ops_call(ops, HF_SQL_WORK_INSERT_STATE_PLAIN, HF_ANY_COUNT);
    hf_ops_text(ops, making->row->w.work_id);
    add_plain_state(ops, &making->row->w);
}

/* The two may differ in names and contents only: as work_insert_units takes them. */
static bool alike(const struct hf_making *a, const struct hf_making *b)
{
    const struct hf_work *x = &a->row->w, *y = &b->row->w;
    return hf_same(x->tenant, y->tenant) && hf_same(x->source_system, y->source_system) &&
           hf_same(x->retry_policy, y->retry_policy) && hf_same(x->status, y->status) &&
           hf_same(x->kind, y->kind) && hf_same(x->queue, y->queue) &&
           x->priority == y->priority && hf_same(x->disposition, y->disposition) &&
           x->max_attempts == y->max_attempts && x->due_at == y->due_at &&
           x->created_at == y->created_at && x->updated_at == y->updated_at &&
           hf_same(a->row->actor_kind, b->row->actor_kind) &&
           hf_same(a->row->actor, b->row->actor);
}

/* And these not in their rarer names: as work_insert_specs_alike takes them. */
static bool alike_in_more(const struct hf_making *a, const struct hf_making *b)
{
    const struct hf_work *x = &a->row->w, *y = &b->row->w;
    return hf_same(x->source_run_id, y->source_run_id) && hf_same(x->ref, y->ref) &&
           hf_same(x->parent_work_id, y->parent_work_id) &&
           hf_same(x->correlation_id, y->correlation_id) &&
           hf_same(x->payload_ref, y->payload_ref) && hf_same(a->row->note, b->row->note);
}

static bool all_alike(const struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!alike(&makings[0], &makings[i]) ||
            (!on_server(ops) && !alike_in_more(&makings[0], &makings[i])))
            return false;
    return true;
}

static void insert_specs_alike(struct hf_ops *ops, const struct hf_making *makings,
                               size_t n)
{
    const struct hf_row *row = makings[0].row;
    const struct hf_work *w = &row->w;
    hf_ops_call(ops, HF_SQL_WORK_INSERT_SPECS_ALIKE, HF_ANY_COUNT);
    hf_ops_text(ops, w->tenant);
    hf_ops_text(ops, w->source_system);
    hf_ops_text(ops, w->source_run_id ? w->source_run_id : "");
    hf_ops_text(ops, w->ref);
    hf_ops_text(ops, w->parent_work_id);
    hf_ops_text(ops, w->correlation_id);
    hf_ops_text(ops, w->payload_ref);
    hf_ops_text(ops, own_retry_policy(w));
    hf_ops_text(ops, w->status);
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_text(ops, row->note);
    hf_ops_i64(ops, w->created_at);
    hf_ops_sets(ops);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, makings[i].row->w.work_id);
        hf_ops_text(ops, makings[i].row->w.source_id);
        hf_ops_text(ops, makings[i].row->w.idempotency_key);
        hf_ops_bytes(ops, makings[i].hash, 32);
        hf_ops_text(ops, makings[i].row->w.payload);
    }
}

static void insert_states_alike(struct hf_ops *ops, const struct hf_making *makings,
                                size_t n)
{
    const struct hf_work *w = &makings[0].row->w;
    hf_ops_call(ops, HF_SQL_WORK_INSERT_STATES_ALIKE, HF_ANY_COUNT);
    add_plain_state(ops, w);
    hf_ops_sets(ops);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, makings[i].row->w.work_id);
    }
}

static void insert_units(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    const struct hf_row *row = makings[0].row;
    hf_ops_reserve(ops, UNIT_ARGS_ONCE + n * UNIT_ARGS);
    hf_ops_call(ops, HF_SQL_WORK_INSERT_UNITS, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.tenant);
    hf_ops_text(ops, row->w.source_system);
    hf_ops_text(ops, own_retry_policy(&row->w));
    hf_ops_text(ops, row->w.status);
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_i64(ops, row->w.created_at);
    hf_ops_text(ops, row->w.kind);
    hf_ops_text(ops, row->w.queue);
    hf_ops_i64(ops, row->w.priority);
    hf_ops_text(ops, row->w.disposition);
    hf_ops_i64(ops, row->w.max_attempts);
    hf_ops_i64(ops, row->w.due_at);
    hf_ops_i64(ops, row->w.updated_at);
    hf_ops_sets(ops);
    for (size_t i = 0; i < n; i++) {
        const struct hf_work *w = &makings[i].row->w;
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, w->work_id);
        hf_ops_text(ops, w->source_id);
        hf_ops_text(ops, w->source_run_id ? w->source_run_id : "");
        hf_ops_text(ops, w->idempotency_key);
        hf_ops_bytes(ops, makings[i].hash, 32);
        hf_ops_text(ops, w->ref);
        hf_ops_text(ops, w->parent_work_id);
        hf_ops_text(ops, w->correlation_id);
        hf_ops_text(ops, w->payload);
        hf_ops_text(ops, w->payload_ref);
        hf_ops_text(ops, makings[i].row->note);
    }
}

static void insert_alike(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    if (on_server(ops)) {
        insert_units(ops, makings, n);
        return;
    }
    hf_ops_reserve(ops, ALIKE_ARGS_ONCE + n * ALIKE_ARGS);
    insert_specs_alike(ops, makings, n);
    insert_states_alike(ops, makings, n);
}

static void insert_many(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    enum hf_sql_id states = HF_SQL_WORK_INSERT_STATES_PLAIN;
    for (size_t i = 0; i < n && states != HF_SQL_WORK_INSERTS_LIMITED; i++) {
        if (makings[i].place)
            states = HF_SQL_WORK_INSERTS_LIMITED;
        else if (!plain(makings[i].row))
            states = HF_SQL_WORK_INSERT_STATES;
    }
    bool small = states == HF_SQL_WORK_INSERT_STATES_PLAIN;
    if (small && all_alike(ops, makings, n)) {
        insert_alike(ops, makings, n);
        return;
    }
    hf_ops_reserve(ops, n * (size_t)(SPEC_ARGS + (small ? PLAIN_ARGS : STATE_ARGS)));
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            hf_ops_call(ops, HF_SQL_WORK_INSERT_SPECS, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        add_spec(ops, &makings[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            hf_ops_call(ops, states, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        if (small) {
            hf_ops_text(ops, makings[i].row->w.work_id);
            add_plain_state(ops, &makings[i].row->w);
        } else {
            add_state(ops, makings[i].row);
        }
        if (states == HF_SQL_WORK_INSERTS_LIMITED)
            hf_ops_i64_opt(ops, makings[i].place);
    }
}

/* The rows of one statement do not see each other's keys, so rows with a lane or dedup key
 * are made one by one. */
static void insert_rows(struct hf_ops *ops, const struct hf_making *makings, size_t n,
                        bool together)
{
    for (size_t i = 0; together && i < n; i++)
        together = !makings[i].row->w.lane_key && !makings[i].row->w.dedup_key;
    for (size_t i = 0; i < n; i++)
        lock_lane(ops, &makings[i].row->w);
    hf_fair_take(ops, makings, n);
    if (together)
        insert_many(ops, makings, n);
    for (size_t i = 0; !together && i < n; i++)
        insert_one(ops, &makings[i]);
    hf_fair_tag(ops, makings, n);
    for (size_t i = 0; i < n; i++) {
        settle_lane(ops, &makings[i].row->w);
        if (!makings[i].place)
            hf_gates_note(ops, NULL, makings[i].row);
    }
}

void hf_rows_insert(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    insert_rows(ops, makings, n, false);
}

void hf_rows_insert_many(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    if (n == 1 && plain(makings[0].row))
        insert_plain(ops, &makings[0]);
    else
        insert_rows(ops, makings, n, n > 1);
}

static bool makes_rows(const struct hf_call *call)
{
    return call->statement == HF_SQL_WORK_INSERT_STATE ||
           call->statement == HF_SQL_WORK_INSERT_STATES ||
           call->statement == HF_SQL_WORK_INSERT_STATE_PLAIN ||
           call->statement == HF_SQL_WORK_INSERT_STATES_PLAIN ||
           call->statement == HF_SQL_WORK_INSERT_STATES_ALIKE ||
           call->statement == HF_SQL_WORK_INSERT_UNIT ||
           call->statement == HF_SQL_WORK_INSERT_UNITS ||
           call->statement == HF_SQL_WORK_INSERT_LIMITED ||
           call->statement == HF_SQL_WORK_INSERTS_LIMITED;
}

int64_t hf_rows_inserted(const struct hf_ops *ops)
{
    int64_t made = 0;
    for (size_t i = 0; i < ops->batch.call_count; i++)
        if (makes_rows(&ops->batch.calls[i]))
            made += ops->batch.calls[i].changed;
    return made;
}

void hf_rows_expect_all(struct hf_ops *ops)
{
    for (size_t i = 0; i < ops->batch.call_count; i++) {
        struct hf_call *call = &ops->batch.calls[i];
        if (makes_rows(call))
            call->expect = call->rows;
    }
}

static void write_lease(struct hf_ops *ops, const struct hf_row *row)
{
    const struct hf_work *w = &row->w;
    hf_ops_text(ops, w->owner);
    hf_ops_text(ops, w->owner_incarnation);
    hf_ops_text(ops, row->claim_group);
    hf_ops_i64(ops, w->lease_fence);
    hf_ops_i64_opt(ops, row->lease_store);
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
    lock_lane(ops, &was->w);
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
    hf_ops_i64_opt(ops, wake_at(row));
    hf_ops_i64(ops, row->crashes);
    hf_ops_i64_opt(ops, row->crashed_at);
    if (coming)
        hf_fair_tag(ops, coming, 1);
    hf_gates_note(ops, was, row);
    settle_lane(ops, &was->w);
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
