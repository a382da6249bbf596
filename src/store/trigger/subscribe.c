/* Verbs over subscriptions. Every change reads, decides and writes under a compare-and-set on
 * the revision that it read. With an operation id its outcome, a refusal too, is kept and
 * given again, whatever happened to the subscription since. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "store/batch/place.h"
#include "store/trigger/trigger.h"

/* One change at work. */
struct mutation {
    struct sql_store *store;
    const struct hf_caller *who;
    const char *owner_scope;
    const char *key;
    int64_t revision;                          /* 0: any */
    const struct hf_subscription_spec *wanted; /* subscribe and update */
    bool update;
    const struct hf_trigger_change *change; /* any other change */
    char id[HF_TRIGGER_ID];
    struct hf_arena arena;
    struct hf_ops look;
    struct hf_ops write;
    struct hf_subscription was;
    bool found;
    struct hf_subscription now;
    bool changed;
};

static int read_one(struct mutation *m, struct hf_err *err)
{
    hf_ops_reset(&m->look);
    hf_ops_reset(&m->write);
    hf_ops_call(&m->look, HF_SQL_SUBSCRIPTION_GET, HF_ANY_COUNT);
    hf_ops_text(&m->look, m->id);
    int rc = hf_ops_read(&m->look, err);
    if (rc)
        return rc;
    m->found = hf_ops_result(&m->look, 0)->out_count > 0;
    if (m->found)
        hf_fields_read(hf_ops_result(&m->look, 0), 0, hf_subscription_table, &m->was);
    return 0;
}

static bool deleted(const struct hf_subscription *subscription)
{
    return hf_same(subscription->state, "deleted");
}

/* ---- decisions --------------------------------------------------------------------- */

static int fresh_incarnation(struct mutation *m, struct hf_err *err)
{
    char nonce[HF_NONCE_TEXT];
    int rc = hf_nonce(m->store->handle.random, nonce, err);
    if (rc)
        return rc;
    m->now.incarnation = hf_arena_text(&m->arena, nonce);
    return m->now.incarnation ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* Does the policy in force let an occurrence become a unit at all? */
static int try_unit(struct mutation *m, struct hf_err *err)
{
    struct hf_env env;
    struct hf_work_spec unit;
    struct hf_row row;
    uint8_t hash[32];
    hf_subscription_unit(&m->now, "occurrence", NULL, &unit);
    int rc = sql_env(m->store, m->who, &m->look.batch, &env, err);
    if (rc == 0)
        rc = sql_make_row(m->store, &m->arena, m->who, &env, &unit, &row, hash, err);
    return rc;
}

static int decide_subscribe(struct mutation *m, struct hf_err *err)
{
    if (m->found && deleted(&m->was))
        return hf_fail(err, HF_ECONFLICT, "key",
                       "subscription %s was removed; revive it to use it again", m->key);
    if (m->found && !hf_subscription_same(&m->was, &m->now))
        return hf_fail(err, HF_ECONFLICT, "key",
                       "subscription %s exists with another definition; update it",
                       m->key);
    if (m->found) {
        m->now = m->was;
        return 0;
    }
    m->changed = true;
    return fresh_incarnation(m, err);
}

static void keep_facts(struct mutation *m)
{
    m->now.state = m->was.state;
    m->now.incarnation = m->was.incarnation;
    m->now.revision = m->was.revision;
    m->now.deliveries = m->was.deliveries;
    m->now.last_at = m->was.last_at;
    m->now.created_at = m->was.created_at;
}

static int decide_update(struct mutation *m, struct hf_err *err)
{
    if (deleted(&m->was))
        return hf_fail(err, HF_ETRANSITION, "state",
                       "subscription %s was removed; revive it first", m->key);
    keep_facts(m);
    m->changed = !hf_subscription_same(&m->was, &m->now);
    if (!m->changed)
        m->now = m->was;
    return 0;
}

static int decide_change(struct mutation *m, struct hf_err *err)
{
    static const char *const states[] = { [HF_TRIGGER_ENABLE] = "enabled",
                                          [HF_TRIGGER_DISABLE] = "disabled",
                                          [HF_TRIGGER_REMOVE] = "deleted",
                                          [HF_TRIGGER_REVIVE] = "enabled" };
    bool revive = m->change->verb == HF_TRIGGER_REVIVE;
    bool again = m->change->verb == HF_TRIGGER_REMOVE && deleted(&m->was);
    if (deleted(&m->was) != revive && !again)
        return hf_fail(err, HF_ETRANSITION, "state",
                       revive ? "subscription %s was not removed"
                              : "subscription %s was removed; revive it first",
                       m->key);
    m->now = m->was;
    m->changed = !hf_same(m->was.state, states[m->change->verb]);
    m->now.state = states[m->change->verb];
    return revive ? fresh_incarnation(m, err) : 0;
}

static int decide(struct mutation *m, struct hf_err *err)
{
    hf_ms now = m->look.batch.now;
    bool must_exist = m->update || m->change;
    m->changed = false;
    if (must_exist && !m->found)
        return hf_fail(err, HF_ENOTFOUND, "key", "there is no subscription %s of %s",
                       m->key, m->owner_scope);
    if (m->found && m->revision && m->revision != m->was.revision)
        return hf_fail(err, HF_ECONFLICT, "revision",
                       "subscription %s has revision %lld, not %lld: read it again",
                       m->key, (long long)m->was.revision, (long long)m->revision);
    if (m->wanted) {
        hf_subscription_build(m->wanted, now, &m->now);
        m->now.subscription_id = m->id;
        m->now.tenant = m->who->tenant;
    }
    int rc = m->wanted ? try_unit(m, err) : 0;
    if (rc == 0)
        rc = m->change   ? decide_change(m, err)
             : m->update ? decide_update(m, err)
                         : decide_subscribe(m, err);
    if (rc == 0 && m->changed) {
        struct hf_buf name;
        m->now.revision = m->found ? m->was.revision + 1 : 1;
        m->now.updated_at = now;
        hf_buf_init(&name, m->arena.alloc, 1024);
        hf_buf_text(&name, m->who->actor_kind);
        hf_buf_text(&name, ":");
        hf_buf_text(&name, m->who->actor);
        m->now.registrant = hf_buf_keep(&name, &m->arena);
        rc = m->now.registrant ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    return rc;
}

/* ---- receipts ---------------------------------------------------------------------- */

static const char *receipt_scope(struct mutation *m)
{
    struct hf_buf text;
    hf_buf_init(&text, m->arena.alloc, 512);
    hf_buf_text(&text, "trigger:");
    hf_buf_text(&text, m->owner_scope);
    return hf_buf_keep(&text, &m->arena);
}

static int request_hash(const struct mutation *m, uint8_t *ret_hash)
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "trigger.change", 1);
    hf_digest_text(&digest, m->id);
    hf_digest_i64(&digest, m->revision);
    hf_digest_i64(&digest, m->change ? (int64_t)m->change->verb : m->update ? 100 : 101);
    if (m->wanted) {
        struct hf_subscription asked;
        hf_subscription_build(m->wanted, 1, &asked);
        for (size_t i = 0; i < hf_subscription_field_count; i++) {
            const struct hf_field *field = &hf_subscription_fields[i];
            if (field->kind == HF_FIELD_I64)
                hf_digest_i64(&digest, hf_field_i64(field, &asked));
            else
                hf_digest_text(&digest, hf_field_text(field, &asked));
        }
    }
    return hf_digest_end(&digest, ret_hash);
}

/* {"changed":…,"subscription":{…}} or {"code":…,"field":…,"message":…}. */
static const char *outcome_json(struct mutation *m, int rc, const struct hf_err *why)
{
    struct hf_buf text;
    struct hf_json json;
    const char *record = rc ? NULL : hf_subscription_json(&m->arena, &m->now);
    if (rc == 0 && !record)
        return NULL;
    hf_buf_init(&text, m->arena.alloc, (size_t)4 << 20);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    if (rc) {
        hf_json_put_i64(&json, "code", rc);
        hf_json_put_str(&json, "field", why->field);
        hf_json_put_str(&json, "message", why->message);
    } else {
        hf_json_put_bool(&json, "changed", m->changed);
        hf_json_put_raw(&json, "subscription", record);
    }
    hf_json_end(&json);
    return hf_buf_keep(&text, &m->arena);
}

static int read_field(struct mutation *m, const struct hf_field *field,
                      const struct json_t *value, void *row)
{
    char *at = (char *)row + field->offset;
    const char *text = NULL;
    if (field->kind == HF_FIELD_I64) {
        *(int64_t *)(void *)at = hf_json_as_i64(value);
        return 0;
    }
    if (hf_json_type_of(value) != HF_JSON_NULL && field->kind == HF_FIELD_JSON) {
        struct hf_buf out;
        hf_buf_init(&out, m->arena.alloc, (size_t)4 << 20);
        if (hf_json_canonical(&out, value) == 0)
            text = hf_buf_keep(&out, &m->arena);
        else
            hf_buf_fini(&out);
        if (!text)
            return HF_ENOMEM;
    } else if (hf_json_as_text(value)) {
        text = hf_arena_text(&m->arena, hf_json_as_text(value));
        if (!text)
            return HF_ENOMEM;
    }
    *(const char **)(void *)at = text;
    return 0;
}

/* The outcome of the first time, from its receipt. */
static int replay(struct mutation *m, const char *result, struct hf_err *err)
{
    struct json_t *value = NULL;
    int rc = hf_json_parse((struct hf_span){ result, strlen(result) }, (size_t)4 << 20,
                           "receipt", &value, err);
    if (rc)
        return rc;
    const struct json_t *record = hf_json_member(value, "subscription");
    if (!record) {
        rc = hf_fail(err, (int)hf_json_as_i64(hf_json_member(value, "code")),
                     hf_json_as_text(hf_json_member(value, "field")), "%s",
                     hf_json_as_text(hf_json_member(value, "message")));
    } else {
        m->changed = hf_json_as_bool(hf_json_member(value, "changed"));
        for (size_t i = 0; rc == 0 && i < hf_subscription_field_count; i++) {
            const struct hf_field *field = &hf_subscription_fields[i];
            if (read_field(m, field, hf_json_member(record, field->name), &m->now))
                rc = hf_fail_plain(err, HF_ENOMEM);
        }
    }
    hf_json_free(value);
    return rc;
}

/* 1: this operation was done before, and m holds its outcome. */
static int done_before(struct mutation *m, const char *scope, const uint8_t *hash,
                       struct hf_err *err)
{
    struct hf_ops ops;
    const char *result = NULL;
    if (!m->who->operation_id)
        return 0;
    hf_ops_init(&ops, m->store->sql, m->arena.alloc);
    int rc = sql_receipt_find(&ops, m->who, scope, hash, &result, err);
    if (rc == 1) {
        int replayed = replay(m, result ? result : "", err);
        rc = replayed ? replayed : 1;
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- the change -------------------------------------------------------------------- */

static void append_row(struct mutation *m)
{
    struct hf_ops *ops = &m->write;
    if (!m->changed)
        return;
    if (!m->found) {
        hf_ops_call(ops, HF_SQL_SUBSCRIPTION_INSERT, 1);
        hf_fields_append(ops, hf_subscription_table, &m->now);
        return;
    }
    hf_ops_call(ops, HF_SQL_SUBSCRIPTION_WRITE, 1);
    hf_ops_text(ops, m->id);
    hf_ops_i64(ops, m->was.revision);
    hf_fields_append(
        ops,
        (struct hf_field_table){ &hf_subscription_fields[HF_SUBSCRIPTION_MUTABLE],
                                 HF_SUBSCRIPTION_MUTABLE_COUNT },
        &m->now);
    hf_ops_i64(ops, m->now.updated_at);
}

static bool refusal(int rc)
{
    return rc == HF_ECONFLICT || rc == HF_ETRANSITION;
}

/* HF_EGUARD: a caller was faster, in the row or with the same operation. */
static int attempt(struct mutation *m, const char *scope, const uint8_t *hash,
                   struct hf_err *err)
{
    struct hf_err why = { 0 };
    int rc = done_before(m, scope, hash, err);
    if (rc)
        return rc == 1 ? 0 : rc;
    rc = read_one(m, err);
    if (rc)
        return rc;
    int refused = decide(m, &why);
    if (refused && !(m->who->operation_id && refusal(refused)))
        return hf_fail_as(err, refused, &why);
    if (refused == 0)
        append_row(m);
    if (m->who->operation_id) {
        const char *result = outcome_json(m, refused, &why);
        if (!result)
            return hf_fail_plain(err, HF_ENOMEM);
        sql_receipt_add(&m->write, m->who, scope, hash, result);
    }
    if (m->write.batch.call_count > 0 || m->write.state)
        rc = hf_ops_write(&m->write, err);
    if (rc == HF_ECONFLICT)
        return HF_EGUARD;
    return rc ? rc : hf_fail_as(err, refused, &why);
}

static int run(struct mutation *m, struct hf_store *handle,
               struct hf_subscriptions *subscriptions, struct hf_err *err)
{
    uint8_t hash[HF_DIGEST_BYTES];
    m->store = sql_store_of(handle);
    hf_arena_init(&m->arena, handle->alloc);
    hf_ops_init(&m->look, m->store->sql, handle->alloc);
    hf_ops_init(&m->write, m->store->sql, handle->alloc);
    const char *scope = receipt_scope(m);
    int rc = hf_subscription_id(m->who->tenant, m->owner_scope, m->key, m->id);
    if (rc == 0)
        rc = request_hash(m, hash);
    rc = rc || !scope ? hf_fail_plain(err, HF_ENOMEM) : HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = attempt(m, scope, hash, err);
    if (rc == HF_EGUARD)
        rc = hf_fail_plain(err, HF_EBUSY);
    if (rc == 0 && m->changed)
        hf_subscriptions_set_changed(subscriptions);
    if (rc == 0 && hf_subscriptions_add(subscriptions, &m->now))
        rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&m->write);
    hf_ops_fini(&m->look);
    hf_arena_fini(&m->arena);
    return rc;
}

static int sql_trigger_define(struct hf_store *handle, const struct hf_caller *who,
                              const struct hf_subscription_spec *wanted, int64_t revision,
                              struct hf_subscriptions *subscriptions, struct hf_err *err)
{
    struct mutation m = { .who = who,
                          .owner_scope = wanted->owner_scope ? wanted->owner_scope
                                                             : "host",
                          .key = wanted->key,
                          .wanted = wanted,
                          .update = revision != 0,
                          .revision = revision };
    return run(&m, handle, subscriptions, err);
}

static int sql_trigger_change(struct hf_store *handle, const struct hf_caller *who,
                              const struct hf_trigger_change *change,
                              struct hf_subscriptions *subscriptions, struct hf_err *err)
{
    struct mutation m = { .who = who,
                          .owner_scope = change->owner_scope ? change->owner_scope
                                                             : "host",
                          .key = change->key,
                          .change = change,
                          .revision = change->revision };
    return run(&m, handle, subscriptions, err);
}

/* ---- reading ----------------------------------------------------------------------- */

static int sql_trigger_get(struct hf_store *handle, const struct hf_caller *who,
                           const char *owner_scope, const char *key,
                           struct hf_subscriptions *subscriptions, struct hf_err *err)
{
    struct hf_ops ops;
    char id[HF_TRIGGER_ID];
    if (hf_subscription_id(who->tenant, owner_scope, key, id))
        return hf_fail_plain(err, HF_ENOMEM);
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SUBSCRIPTION_GET, HF_ANY_COUNT);
    hf_ops_text(&ops, id);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "key", "there is no subscription %s of %s", key,
                     owner_scope);
    if (rc == 0) {
        struct hf_subscription one;
        hf_fields_read(hf_ops_result(&ops, 0), 0, hf_subscription_table, &one);
        rc = hf_subscriptions_add(subscriptions, &one) ? hf_fail_plain(err, HF_ENOMEM)
                                                       : 0;
    }
    hf_ops_fini(&ops);
    return rc;
}

static void add_list(struct hf_ops *ops, const struct sql_named_list *list,
                     const struct sql_range *range,
                     const struct hf_trigger_filter *filter)
{
    hf_ops_call(ops,
                list->newest ? HF_SQL_SUBSCRIPTION_LIST_NEWEST : HF_SQL_SUBSCRIPTION_LIST,
                HF_ANY_COUNT);
    sql_range_names(ops, list, range);
    hf_ops_text(ops, list->tenant);
    hf_ops_text(ops, filter->owner_scope);
    hf_ops_text(ops, filter->source_type);
    hf_ops_text(ops, filter->source_key);
    hf_ops_text(ops, filter->state);
    sql_range_bounds(ops, list, range, filter->limit);
}

static int add_row(void *subscriptions, const struct hf_call *found, size_t i,
                   struct sql_place *ret_place)
{
    struct hf_subscription one;
    hf_fields_read(found, i, hf_subscription_table, &one);
    *ret_place = (struct sql_place){
        one.created_at, { one.tenant, one.owner_scope, one.subscription_key }
    };
    return hf_subscriptions_add(subscriptions, &one);
}

static int sql_trigger_list(struct hf_store *handle, const struct hf_caller *who,
                            const struct hf_trigger_filter *filter,
                            struct hf_subscriptions *subscriptions, struct hf_err *err)
{
    struct hf_ops ops;
    struct sql_range range;
    const struct sql_named_list list = { .window = filter->newest
                                                       ? HF_SQL_SUBSCRIPTION_WINDOW_NEWEST
                                                       : HF_SQL_SUBSCRIPTION_WINDOW,
                                         .names = 3,
                                         .newest = filter->newest,
                                         .tenant = who->tenant,
                                         .cursor = filter->after };
    const char *next = NULL;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_range_read(ops.sql, &ops.arena, &list, &range, err);
    if (rc == 0) {
        add_list(&ops, &list, &range, filter);
        rc = hf_ops_read(&ops, err);
    }
    if (rc == 0 && sql_range_show(hf_ops_result(&ops, 0), filter->limit, add_row,
                                  subscriptions, &range))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && range.more) {
        next = sql_place_cursor(&ops.arena, &list, &range.last);
        if (!next || hf_subscriptions_set_next(subscriptions, next))
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int sql_trigger_granted(struct hf_store *handle, const struct hf_caller *who,
                               const char *session_id, size_t limit,
                               struct hf_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_GRANT_UNITS, HF_ANY_COUNT);
    hf_ops_text(&ops, who->tenant);
    hf_ops_text(&ops, session_id);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < found->out_count; i++) {
        struct hf_row row;
        rc = hf_row_read(found, i, &row, err);
        struct hf_item *item = rc == 0 ? hf_answer_add(answer) : NULL;
        if (rc == 0 && (!item || hf_item_show(answer, item, &row, false)))
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    hf_ops_fini(&ops);
    return rc;
}

const struct hf_trigger_methods sql_trigger_methods = {
    .define = sql_trigger_define,
    .change = sql_trigger_change,
    .get = sql_trigger_get,
    .list = sql_trigger_list,
    .emit = sql_trigger_emit,
    .deliveries = sql_trigger_deliveries,
    .granted = sql_trigger_granted,
};
