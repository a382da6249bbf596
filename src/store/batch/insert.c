/* Making units: the calls that insert a unit's two rows, and keep its lane and limit in order. */
#include "store/batch/insert.h"

#include "base/text.h"
#include "core/ledger/retry.h"
#include "store/batch/gates.h"
#include "store/batch/plan.h"

#define SPEC_ARGS 18
#define STATE_ARGS 30 /* with a place under a limit */
#define PLAIN_ARGS 11

const char *hf_own_retry_policy(const struct hf_work *w)
{
    return w->retry_policy == hf_retry_default_text ? NULL : w->retry_policy;
}

void hf_put_work_spec(struct hf_ops *ops, const struct hf_making *making)
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
    hf_ops_text(ops, hf_own_retry_policy(w));
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
    hf_ops_i64_opt(ops, hf_row_next_at(row));
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
           !row->fair_tag && row->fair_weight <= 1 && hf_row_next_at(row) == 0;
}

void hf_put_plain_state(struct hf_ops *ops, const struct hf_work *w)
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

void hf_insert_work_spec(struct hf_ops *ops, const struct hf_making *making)
{
    const char *dedup_key = making->row->w.dedup_key;
    hf_ops_call(ops, dedup_key ? HF_SQL_WORK_INSERT_SPEC_DEDUP : HF_SQL_WORK_INSERT_SPEC,
                HF_ANY_COUNT);
    hf_put_work_spec(ops, making);
    if (dedup_key)
        hf_ops_text(ops, dedup_key);
}

static void insert_one(struct hf_ops *ops, const struct hf_making *making)
{
    hf_insert_work_spec(ops, making);
    hf_ops_call(ops,
                making->place ? HF_SQL_WORK_INSERT_LIMITED : HF_SQL_WORK_INSERT_STATE,
                HF_ANY_COUNT);
    add_state(ops, making->row);
    if (making->place)
        hf_ops_i64(ops, making->place);
}

bool hf_makings_alike(const struct hf_making *a, const struct hf_making *b)
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

static bool all_alike(const struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!ops->plan->alike(&makings[0], &makings[i]))
            return false;
    return true;
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
        ops->plan->insert_alike(ops, makings, n);
        return;
    }
    hf_ops_reserve(ops, n * (size_t)(SPEC_ARGS + (small ? PLAIN_ARGS : STATE_ARGS)));
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            hf_ops_call(ops, HF_SQL_WORK_INSERT_SPECS, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_put_work_spec(ops, &makings[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0)
            hf_ops_call(ops, states, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        if (small) {
            hf_ops_text(ops, makings[i].row->w.work_id);
            hf_put_plain_state(ops, &makings[i].row->w);
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
        hf_lane_lock(ops, &makings[i].row->w);
    hf_fair_take(ops, makings, n);
    if (together)
        insert_many(ops, makings, n);
    for (size_t i = 0; !together && i < n; i++)
        insert_one(ops, &makings[i]);
    hf_fair_tag(ops, makings, n);
    for (size_t i = 0; i < n; i++) {
        hf_lane_promote(ops, &makings[i].row->w);
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
        ops->plan->insert_plain(ops, &makings[0]);
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
