/* Emitting: the occurrence, its deliveries, the units of their targets, the wakes and the
 * grants are one transaction. It is guarded by the occurrence's own key and by each
 * subscription as it was read, so that two emitters start nothing twice, and no delivery is
 * made of what a caller has just disabled. */
#include <holdfast/bounds.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "core/trigger/template.h"
#include "store/process/process.h"
#include "store/trigger/trigger.h"

struct target {
    struct hf_subscription subscription;
    struct hf_delivery delivery;
    struct hf_making work;
    struct hf_making wake;  /* row NULL: no caller is woken */
    struct sql_facts facts; /* of a process */
};

struct emit {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_occurrence_spec *occurrence;
    char id[HF_TRIGGER_ID];
    uint8_t hash[32];
    struct hf_arena arena;
    struct hf_ops look;
    struct hf_ops write;
    struct target *targets;
    size_t count;
    bool exists;
};

/* ---- reading ----------------------------------------------------------------------- */

static int conflict(const struct emit *e, struct hf_err *err)
{
    return hf_fail(err, HF_ECONFLICT, "idempotency_key",
                   "key %s of %s %s was emitted earlier with other content",
                   e->occurrence->idempotency_key, e->occurrence->source_type,
                   e->occurrence->source_key);
}

static int read_targets(struct emit *e, const struct hf_call *found, struct hf_err *err)
{
    if (found->out_count > (size_t)HF_MAX_FANOUT)
        return hf_fail(err, HF_ETOOBIG, "source_key",
                       "more than %lld subscriptions match: nothing was emitted",
                       (long long)HF_MAX_FANOUT);
    e->count = found->out_count;
    e->targets = hf_arena_array(&e->arena, e->count, sizeof *e->targets);
    if (!e->targets)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < e->count; i++)
        hf_fields_read(found, i, hf_subscription_table, &e->targets[i].subscription);
    return 0;
}

static int read_all(struct emit *e, struct hf_err *err)
{
    const struct hf_occurrence_spec *o = e->occurrence;
    hf_ops_reset(&e->look);
    hf_ops_reset(&e->write);
    hf_arena_reset(&e->arena);
    hf_ops_call(&e->look, HF_SQL_OCCURRENCE_GET, HF_ANY_COUNT);
    hf_ops_text(&e->look, e->id);
    hf_ops_call(&e->look, HF_SQL_SUBSCRIPTION_MATCH, HF_ANY_COUNT);
    hf_ops_text(&e->look, e->who->tenant);
    hf_ops_text(&e->look, o->source_type);
    hf_ops_text(&e->look, o->source_key);
    hf_ops_text(&e->look, o->scope);
    hf_ops_i64(&e->look, HF_MAX_FANOUT + 1);
    int rc = hf_ops_read(&e->look, err);
    if (rc)
        return rc;
    const struct hf_call *known = hf_ops_result(&e->look, 0);
    e->exists = known->out_count > 0;
    if (!e->exists)
        return read_targets(e, hf_ops_result(&e->look, 1), err);
    const struct hf_val *hash = hf_out(known, 0, HF_COL_OCCURRENCE_GET_CONTENT_HASH);
    bool same = hash->type == HF_VAL_BYTES && hash->len == sizeof e->hash &&
                memcmp(hash->at, e->hash, sizeof e->hash) == 0;
    return same ? 0 : conflict(e, err);
}

/* ---- what each gets ---------------------------------------------------------------- */

static int make(struct emit *e, struct hf_env *env, const struct hf_work_spec *unit,
                struct hf_making *ret_making, struct hf_err *err)
{
    struct hf_row *row = hf_arena_new(&e->arena, struct hf_row);
    uint8_t *hash = hf_arena_take(&e->arena, 32);
    if (!row || !hash)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_work_spec_check(unit, err);
    if (rc == 0)
        rc = sql_make_row(e->store, &e->arena, e->who, env, unit, row, hash, err);
    if (rc == 0)
        *ret_making = (struct hf_making){ .row = row, .hash = hash };
    return rc;
}

static int fill_delivery(struct emit *e, struct target *target, struct hf_err *err)
{
    const struct hf_subscription *s = &target->subscription;
    char *id = hf_arena_take(&e->arena, HF_TRIGGER_ID);
    const char *snapshot = hf_subscription_json(&e->arena, s);
    if (!id || !snapshot || hf_delivery_id(e->id, s->subscription_id, id))
        return hf_fail_plain(err, HF_ENOMEM);
    target->delivery = (struct hf_delivery){
        .delivery_id = id,
        .subscription_id = s->subscription_id,
        .owner_scope = s->owner_scope,
        .subscription_key = s->subscription_key,
        .incarnation = s->incarnation,
        .revision = s->revision,
        .snapshot = snapshot,
        .work_id = target->work.row->w.work_id,
        .wake_work_id = target->wake.row ? target->wake.row->w.work_id : NULL,
        .created_at = e->look.batch.now,
    };
    return 0;
}

/* The owner of the subscription began it: a session by its id, otherwise the host. */
static const char *originator(const struct hf_subscription *s)
{
    return hf_starts_with(s->owner_scope, "session:")
               ? s->owner_scope + sizeof "session:" - 1
               : s->owner_scope;
}

/* A target that is a process: its facts. The session that it wakes may see it, too. */
static int fill_facts(struct emit *e, struct target *target, struct hf_err *err)
{
    const struct hf_subscription *s = &target->subscription;
    target->facts = (struct sql_facts){
        .process = { .identity_kind = s->process_kind,
                     .identity_label = s->process_name,
                     .originator = originator(s),
                     .wake_session = s->wake_session,
                     .cause_occurrence = e->id,
                     .cause_subscription = s->subscription_id },
        .observers = &target->subscription.wake_session,
        .observer_count = s->wake_session ? 1 : 0,
    };
    return sql_facts_fill(&e->arena, &target->facts, err);
}

static int prepare(struct emit *e, struct hf_env *env, struct target *target,
                   struct hf_err *err)
{
    const struct hf_subscription *s = &target->subscription;
    const char *payload = NULL;
    struct hf_work_spec unit;
    int rc = hf_template_fill(&e->arena, s->payload_template, e->occurrence->payload,
                              &payload, err);
    hf_subscription_unit(s, e->id, payload, &unit);
    if (rc == 0)
        rc = make(e, env, &unit, &target->work, err);
    if (rc == 0 && s->wake_session) {
        rc = hf_subscription_wake(&e->arena, s, e->id, target->work.row->w.work_id, &unit,
                                  err);
        if (rc == 0)
            rc = hf_work_spec_check(&unit, err);
        if (rc == 0)
            rc = sql_wake_row(e->store, &e->arena, e->who, env,
                              &(struct sql_waking){ s->wake_session, &unit },
                              &target->wake, err);
    }
    if (rc == 0 && s->process_kind)
        rc = fill_facts(e, target, err);
    return rc ? rc : fill_delivery(e, target, err);
}

static int prepare_all(struct emit *e, struct hf_err *err)
{
    struct hf_env env;
    int rc = sql_env(e->store, e->who, &e->look.batch, &env, err);
    for (size_t i = 0; rc == 0 && i < e->count; i++) {
        struct hf_err why = { 0 };
        const struct hf_subscription *s = &e->targets[i].subscription;
        rc = prepare(e, &env, &e->targets[i], &why);
        if (rc)
            rc = hf_fail(err, rc, why.field, "subscription %.60s of %.60s: %s",
                         s->subscription_key, s->owner_scope, why.message);
    }
    return rc;
}

/* ---- writing ----------------------------------------------------------------------- */

static void append_occurrence(struct emit *e)
{
    const struct hf_occurrence_spec *o = e->occurrence;
    struct hf_ops *ops = &e->write;
    hf_ops_call(ops, HF_SQL_OCCURRENCE_INSERT, 1);
    hf_ops_text(ops, e->id);
    hf_ops_text(ops, e->who->tenant);
    hf_ops_text(ops, o->source_type);
    hf_ops_text(ops, o->source_key);
    hf_ops_text(ops, o->idempotency_key);
    hf_ops_bytes(ops, e->hash, sizeof e->hash);
    hf_ops_text(ops, o->payload);
    hf_ops_text(ops, o->scope);
    hf_ops_i64(ops, o->occurred_at ? o->occurred_at : e->look.batch.now);
}

/* The next set of the call that is open, or the first of a new one. */
static void next_set(struct hf_ops *ops, enum hf_sql_id statement, size_t i, size_t count)
{
    if (i == 0)
        hf_ops_call(ops, statement, (int64_t)count);
    else
        hf_ops_again(ops);
}

static void append_deliveries(struct emit *e)
{
    struct hf_ops *ops = &e->write;
    for (size_t i = 0; i < e->count; i++) {
        next_set(ops, HF_SQL_SUBSCRIPTION_DELIVER, i, e->count);
        hf_ops_text(ops, e->targets[i].subscription.subscription_id);
        hf_ops_i64(ops, e->targets[i].subscription.revision);
    }
    for (size_t i = 0; i < e->count; i++) {
        const struct hf_delivery *d = &e->targets[i].delivery;
        next_set(ops, HF_SQL_DELIVERY_INSERT, i, e->count);
        hf_ops_text(ops, d->delivery_id);
        hf_ops_text(ops, e->id);
        hf_ops_text(ops, d->subscription_id);
        hf_ops_text(ops, d->incarnation);
        hf_ops_i64(ops, d->revision);
        hf_ops_text(ops, d->snapshot);
        hf_ops_text(ops, d->work_id);
        hf_ops_text(ops, d->wake_work_id);
    }
}

/* Who may see the targets, and the facts of those that are processes. */
static void append_grants(struct emit *e)
{
    struct hf_ops *ops = &e->write;
    for (size_t i = 0; i < e->count; i++) {
        const struct target *target = &e->targets[i];
        if (target->subscription.process_kind)
            sql_process_add(ops, e->who, target->delivery.work_id, &target->facts);
        if (!target->wake.row || target->subscription.process_kind)
            continue; /* a process brings its own */
        hf_ops_call(ops, HF_SQL_GRANT_ADD, HF_ANY_COUNT);
        hf_ops_text(ops, e->who->tenant);
        hf_ops_text(ops, target->subscription.wake_session);
        hf_ops_text(ops, target->delivery.work_id);
        hf_ops_text(ops, target->delivery.delivery_id);
    }
}

static void append_units(struct emit *e)
{
    struct hf_ops *ops = &e->write;
    struct hf_making *makings = hf_arena_array(&e->arena, 2 * e->count, sizeof *makings);
    size_t count = 0;
    if (!makings) {
        ops->state = HF_ENOMEM;
        return;
    }
    for (size_t i = 0; i < e->count; i++)
        makings[count++] = e->targets[i].work;
    hf_rows_insert(ops, makings, count);
    for (size_t i = 0; i < e->count; i++)
        if (e->targets[i].wake.row)
            makings[count++] = e->targets[i].wake;
    hf_rows_insert(ops, makings + e->count, count - e->count);
    hf_rows_expect_all(ops);
    for (size_t i = 0; i < count; i++)
        if (i >= e->count)
            sql_wake_input(ops, &makings[i]);
        else if (makings[i].row->status == HF_STATUS_QUEUED)
            hf_ops_ring_queue(ops, makings[i].row->w.queue, 1);
}

static int write_all(struct emit *e, struct hf_err *err)
{
    append_occurrence(e);
    append_deliveries(e);
    append_units(e);
    append_grants(e);
    int rc = hf_ops_write(&e->write, err);
    for (size_t i = 0; rc == 0 && i < e->count; i++) /* as they were written */
        e->targets[i].delivery.created_at = e->write.batch.now;
    return rc;
}

/* ---- answers ----------------------------------------------------------------------- */

int sql_trigger_deliveries(struct hf_store *handle, const struct hf_caller *who,
                           const char *occurrence_id, struct hf_emission *emission,
                           struct hf_err *err)
{
    (void)who; /* an occurrence's id is its tenant's already */
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_OCCURRENCE_GET, HF_ANY_COUNT);
    hf_ops_text(&ops, occurrence_id);
    hf_ops_call(&ops, HF_SQL_DELIVERY_LIST, HF_ANY_COUNT);
    hf_ops_text(&ops, occurrence_id);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "occurrence_id", "there is no occurrence %.100s",
                     occurrence_id);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 1) : NULL;
    if (rc == 0 && hf_emission_begin(emission, occurrence_id, found->out_count))
        rc = hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < found->out_count; i++) {
        struct hf_delivery d = {
            .delivery_id = hf_out_text(found, i, HF_COL_DELIVERY_LIST_DELIVERY_ID),
            .subscription_id = hf_out_text(found, i,
                                           HF_COL_DELIVERY_LIST_SUBSCRIPTION_ID),
            .owner_scope = hf_out_text(found, i, HF_COL_DELIVERY_LIST_OWNER_SCOPE),
            .subscription_key = hf_out_text(found, i,
                                            HF_COL_DELIVERY_LIST_SUBSCRIPTION_KEY),
            .incarnation = hf_out_text(found, i, HF_COL_DELIVERY_LIST_INCARNATION),
            .revision = hf_out_i64(found, i, HF_COL_DELIVERY_LIST_REVISION),
            .snapshot = hf_out_text(found, i, HF_COL_DELIVERY_LIST_SNAPSHOT),
            .work_id = hf_out_text(found, i, HF_COL_DELIVERY_LIST_WORK_ID),
            .wake_work_id = hf_out_text(found, i, HF_COL_DELIVERY_LIST_WAKE_WORK_ID),
            .created_at = hf_out_i64(found, i, HF_COL_DELIVERY_LIST_CREATED_AT),
        };
        rc = hf_emission_add(emission, &d) ? hf_fail_plain(err, HF_ENOMEM) : 0;
    }
    hf_ops_fini(&ops);
    return rc;
}

static int answer_made(const struct emit *e, struct hf_emission *emission,
                       struct hf_err *err)
{
    int rc = hf_emission_begin(emission, e->id, e->count);
    for (size_t i = 0; rc == 0 && i < e->count; i++)
        rc = hf_emission_add(emission, &e->targets[i].delivery);
    if (rc == 0)
        hf_emission_set_created(emission);
    return rc ? hf_fail_plain(err, rc) : 0;
}

static int attempt(struct emit *e, struct hf_emission *emission, struct hf_err *err)
{
    int rc = read_all(e, err);
    if (rc)
        return rc;
    if (e->exists)
        return sql_trigger_deliveries(&e->store->handle, e->who, e->id, emission, err);
    rc = prepare_all(e, err);
    if (rc)
        return rc;
    rc = write_all(e, err);
    if (rc == HF_ECONFLICT)
        return HF_EGUARD; /* the same occurrence at the same moment, or a lane: look again */
    return rc ? rc : answer_made(e, emission, err);
}

int sql_trigger_emit(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_occurrence_spec *occurrence,
                     struct hf_emission *emission, struct hf_err *err)
{
    struct emit e = { .store = sql_store_of(handle),
                      .who = who,
                      .occurrence = occurrence };
    int rc = hf_occurrence_id(who->tenant, occurrence, e.id);
    if (rc == 0)
        rc = hf_occurrence_hash(occurrence, e.hash);
    if (rc)
        return hf_fail_plain(err, rc);
    hf_arena_init(&e.arena, handle->alloc);
    hf_ops_init(&e.look, e.store->sql, handle->alloc);
    hf_ops_init(&e.write, e.store->sql, handle->alloc);
    rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = attempt(&e, emission, err);
    if (rc == HF_EGUARD)
        rc = hf_fail_plain(err, HF_EBUSY);
    hf_ops_fini(&e.write);
    hf_ops_fini(&e.look);
    hf_arena_fini(&e.arena);
    return rc;
}
