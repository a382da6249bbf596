/* PostgreSQL's plan: one statement for both rows of a unit, literal sizes of claims. */
#include "base/text.h"
#include "store/batch/insert.h"
#include "store/batch/plan.h"

#define UNIT_ARGS 11
#define UNIT_ARGS_ONCE 14

static void insert_plain(struct hf_ops *ops, const struct hf_making *making)
{
    const struct hf_work *w = &making->row->w;
    hf_ops_call(ops, HF_SQL_WORK_INSERT_UNIT, HF_ANY_COUNT);
    hf_put_work_spec(ops, making);
    hf_ops_text(ops, w->kind);
    hf_ops_text(ops, w->queue);
    hf_ops_i64(ops, w->priority);
    hf_ops_text(ops, w->disposition);
    hf_ops_i64(ops, w->max_attempts);
    hf_ops_i64(ops, w->due_at);
    hf_ops_i64(ops, w->updated_at);
}

static void insert_alike(struct hf_ops *ops, const struct hf_making *makings, size_t n)
{
    const struct hf_row *row = makings[0].row;
    hf_ops_reserve(ops, UNIT_ARGS_ONCE + n * UNIT_ARGS);
    hf_ops_call(ops, HF_SQL_WORK_INSERT_UNITS, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.tenant);
    hf_ops_text(ops, row->w.source_system);
    hf_ops_text(ops, hf_own_retry_policy(&row->w));
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

/* Sizes are literals in the statements: a parameter would make PostgreSQL plan for a tenth of
 * the table. */
static const struct hf_claim_size claims[] = {
    { 100, HF_SQL_WORK_CLAIM_100, HF_SQL_NONE, HF_SQL_WORK_CLAIM_KINDS_100,
      HF_SQL_WORK_CLAIM_ON_100 },
    { 10, HF_SQL_WORK_CLAIM_10, HF_SQL_NONE, HF_SQL_WORK_CLAIM_KINDS_10,
      HF_SQL_WORK_CLAIM_ON_10 },
    { 1, HF_SQL_WORK_CLAIM_1, HF_SQL_NONE, HF_SQL_WORK_CLAIM_KINDS_1,
      HF_SQL_WORK_CLAIM_ON_1 },
};

const struct hf_plan hf_plan_pg = {
    .insert_plain = insert_plain,
    .alike = hf_makings_alike,
    .insert_alike = insert_alike,
    .claims = claims,
    .claim_count = sizeof claims / sizeof claims[0],
    .claim_lone = HF_SQL_WORK_CLAIM_LONE,
    .limit_rate = HF_SQL_NONE,
    .own_clock = true,
};
