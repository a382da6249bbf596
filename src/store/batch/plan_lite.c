/* SQLite's plan: one writer, statements of any size, two statements per unit. */
#include "base/text.h"
#include "store/batch/insert.h"
#include "store/batch/plan.h"

#define ALIKE_ARGS 6 /* of both statements */
#define ALIKE_ARGS_ONCE 23

static void insert_plain(struct hf_ops *ops, const struct hf_making *making)
{
    hf_insert_work_spec(ops, making);
    hf_ops_call(ops, HF_SQL_WORK_INSERT_STATE_PLAIN, HF_ANY_COUNT);
    hf_ops_text(ops, making->row->w.work_id);
    hf_put_plain_state(ops, &making->row->w);
}

/* As work_insert_specs_alike takes them: equal in their rarer names too. */
static bool alike(const struct hf_making *a, const struct hf_making *b)
{
    const struct hf_work *x = &a->row->w, *y = &b->row->w;
    return hf_makings_alike(a, b) && hf_same(x->source_run_id, y->source_run_id) &&
           hf_same(x->ref, y->ref) && hf_same(x->parent_work_id, y->parent_work_id) &&
           hf_same(x->correlation_id, y->correlation_id) &&
           hf_same(x->payload_ref, y->payload_ref) && hf_same(a->row->note, b->row->note);
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
    hf_ops_text(ops, hf_own_retry_policy(w));
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
    hf_put_plain_state(ops, w);
    hf_ops_sets(ops);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            hf_ops_again(ops);
        hf_ops_text(ops, makings[i].row->w.work_id);
    }
}

static void insert_alike(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    hf_ops_reserve(ops, ALIKE_ARGS_ONCE + n * ALIKE_ARGS);
    insert_specs_alike(ops, makings, n);
    insert_states_alike(ops, makings, n);
}

/* SQLite plans alike for all numbers of rows, so any number is one statement. */
static const struct hf_claim_size claims[] = {
    { 0, HF_SQL_WORK_CLAIM_SOME, HF_SQL_WORK_CLAIM_SOME_KIND,
      HF_SQL_WORK_CLAIM_SOME_KINDS, HF_SQL_NONE },
};

const struct hf_plan hf_plan_lite = {
    .insert_plain = insert_plain,
    .alike = alike,
    .insert_alike = insert_alike,
    .claims = claims,
    .claim_count = sizeof claims / sizeof claims[0],
    .claim_lone = HF_SQL_NONE,
    .limit_rate = HF_SQL_LIMIT_RATE,
    .settle_alike_min = 8, /* below it the statement costs more than it saves */
};
