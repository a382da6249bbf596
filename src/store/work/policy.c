/* Policies in force, and the limits of kinds: small tables, read whole and kept for a second by the
 * handle (a set). A policy is stored per scope (default, a source, a kind); the one in force for a
 * unit is merged from its kind's, its source's, the default and the built-in one, the narrower
 * first. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/policy.h"
#include "store/store.h"

#define KEEP_MS 1000

struct entry {
    const char *scope;
    struct hf_policy policy;
};

struct policy_set {
    struct hf_arena arena;
    struct entry *entries;
    size_t count;
    const char **limited; /* names of limits of kinds */
    size_t limited_count;
    bool rated; /* some limit has a rate */
};

static void free_set(const struct hf_alloc *alloc, struct policy_set *set)
{
    if (!set)
        return;
    hf_arena_fini(&set->arena);
    alloc->free(alloc->user, set);
}

static const char *word(struct policy_set *set, const struct hf_val *cell, int *rc)
{
    if (cell->type != HF_VAL_TEXT)
        return NULL;
    const char *copy = hf_arena_text(&set->arena, cell->at);
    if (!copy)
        *rc = HF_ENOMEM;
    return copy;
}

/* Columns as in sql/policy.sql. An unset grace is told apart from none. */
static int read_entry(struct policy_set *set, const struct hf_call *call, size_t i)
{
    int rc = 0;
    struct entry *entry = &set->entries[i];
    bool has_grace = hf_out(call, i, HF_COL_POLICY_LIST_GRACE_MS)->type == HF_VAL_I64;
    entry->scope = word(set, hf_out(call, i, HF_COL_POLICY_LIST_SCOPE), &rc);
    entry->policy = (struct hf_policy){
        .size = sizeof(struct hf_policy),
        .ttl_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_TTL_MS),
        .renew_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_RENEW_MS),
        .grace_ms = has_grace ? hf_out_i64(call, i, HF_COL_POLICY_LIST_GRACE_MS) : -1,
        .wait_user_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_WAIT_USER_MS),
        .wait_external_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_WAIT_EXTERNAL_MS),
        .start_timeout_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_START_TIMEOUT_MS),
        .exec_timeout_ms = hf_out_i64(call, i, HF_COL_POLICY_LIST_EXEC_TIMEOUT_MS),
        .max_attempts = (int)hf_out_i64(call, i, HF_COL_POLICY_LIST_MAX_ATTEMPTS),
        .retry_policy = word(set, hf_out(call, i, HF_COL_POLICY_LIST_RETRY_POLICY), &rc),
        .close_rule = word(set, hf_out(call, i, HF_COL_POLICY_LIST_CLOSE_RULE), &rc),
        .wait_rule = word(set, hf_out(call, i, HF_COL_POLICY_LIST_WAIT_RULE), &rc),
    };
    const char *disposition = hf_out_text(call, i, HF_COL_POLICY_LIST_DISPOSITION);
    if (disposition)
        entry->policy.disposition = hf_disposition_of(disposition);
    return rc;
}

static int read_limited(struct policy_set *set, const struct hf_call *call,
                        struct hf_err *err)
{
    int rc = 0;
    set->limited_count = call->out_count;
    set->limited = hf_arena_array(&set->arena, call->out_count, sizeof *set->limited);
    for (size_t i = 0; set->limited && i < call->out_count; i++)
        set->limited[i] = word(set, hf_out(call, i, HF_COL_LIMIT_KINDS_NAME), &rc);
    return rc || !set->limited ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

static int load(struct sql_store *store, struct policy_set **ret_set, struct hf_err *err)
{
    const struct hf_alloc *alloc = store->handle.alloc;
    struct policy_set *set = alloc->realloc(alloc->user, NULL, sizeof *set);
    if (!set)
        return hf_fail_plain(err, HF_ENOMEM);
    *set = (struct policy_set){ 0 };
    hf_arena_init(&set->arena, alloc);

    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, alloc);
    hf_ops_call(&ops, HF_SQL_POLICY_LIST, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_LIMIT_KINDS, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_LIMIT_RATED, HF_ANY_COUNT);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        const struct hf_call *call = hf_ops_result(&ops, 0);
        set->count = call->out_count;
        set->entries = hf_arena_array(&set->arena, set->count, sizeof(struct entry));
        if (!set->entries)
            rc = hf_fail_plain(err, HF_ENOMEM);
        for (size_t i = 0; rc == 0 && i < set->count; i++)
            if (read_entry(set, call, i))
                rc = hf_fail_plain(err, HF_ENOMEM);
        if (rc == 0)
            rc = read_limited(set, hf_ops_result(&ops, 1), err);
        set->rated = hf_out_i64(hf_ops_result(&ops, 2), 0, HF_COL_LIMIT_RATED_RATED) != 0;
    }
    hf_ops_fini(&ops);
    if (rc)
        free_set(alloc, set);
    else
        *ret_set = set;
    return rc;
}

/* With the lock held. */
static int current(struct sql_store *store, struct hf_err *err)
{
    const struct hf_clock *clock = store->handle.clock;
    hf_ms now = clock->mono_ms(clock->user);
    if (store->policies && now - store->policies_at < KEEP_MS)
        return 0;
    struct policy_set *fresh = NULL;
    int rc = load(store, &fresh, err);
    if (rc)
        return rc;
    free_set(store->handle.alloc, store->policies);
    store->policies = fresh;
    store->policies_at = now;
    return 0;
}

static bool scope_is(const char *scope, const char *prefix, const char *name)
{
    return name && hf_starts_with(scope, prefix) && hf_same(scope + strlen(prefix), name);
}

/* The set may be read anew at any time, so what leaves it is copied. */
static int own_texts(struct hf_arena *arena, struct hf_policy *policy)
{
    const char **texts[] = { &policy->retry_policy, &policy->close_rule,
                             &policy->wait_rule };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!*texts[i])
            continue;
        *texts[i] = hf_arena_text(arena, *texts[i]);
        if (!*texts[i])
            return HF_ENOMEM;
    }
    return 0;
}

int sql_policy(struct sql_store *store, struct hf_arena *arena, enum hf_source source,
               const char *kind, struct hf_policy *ret_policy, struct hf_err *err)
{
    return sql_policy_over(store, arena, &hf_policy_builtin, source, kind, ret_policy,
                           err);
}

int sql_policy_over(struct sql_store *store, struct hf_arena *arena,
                    const struct hf_policy *last, enum hf_source source, const char *kind,
                    struct hf_policy *ret_policy, struct hf_err *err)
{
    const struct hf_policy unset = { .size = sizeof unset, .grace_ms = -1 };
    struct hf_policy of_kind = unset, of_source = unset, of_all = unset;
    hf_lock(&store->lock);
    int rc = current(store, err);
    for (size_t i = 0; rc == 0 && i < store->policies->count; i++) {
        const struct entry *entry = &store->policies->entries[i];
        if (hf_same(entry->scope, "default"))
            of_all = entry->policy;
        else if (scope_is(entry->scope, "source:", hf_source_word(source)))
            of_source = entry->policy;
        else if (scope_is(entry->scope, "kind:", kind))
            of_kind = entry->policy;
    }
    if (rc == 0) {
        struct hf_policy policy = hf_policy_merge(&of_all, last);
        policy = hf_policy_merge(&of_source, &policy);
        policy = hf_policy_merge(&of_kind, &policy);
        rc = own_texts(arena, &policy) ? hf_fail_plain(err, HF_ENOMEM) : 0;
        if (rc == 0)
            *ret_policy = policy;
    }
    hf_unlock(&store->lock);
    return rc;
}

int sql_kind_limited(struct sql_store *store, const char *kind, bool *ret_limited,
                     struct hf_err *err)
{
    hf_lock(&store->lock);
    int rc = current(store, err);
    *ret_limited = false;
    for (size_t i = 0; rc == 0 && i < store->policies->limited_count; i++)
        *ret_limited |= scope_is(store->policies->limited[i], "kind:", kind);
    hf_unlock(&store->lock);
    return rc;
}

int sql_limits_rated(struct sql_store *store, bool *ret_rated, struct hf_err *err)
{
    hf_lock(&store->lock);
    int rc = current(store, err);
    if (rc == 0)
        *ret_rated = store->policies->rated;
    hf_unlock(&store->lock);
    return rc;
}

void sql_policies_forget(struct sql_store *store)
{
    hf_lock(&store->lock);
    free_set(store->handle.alloc, store->policies);
    store->policies = NULL;
    hf_unlock(&store->lock);
}

int sql_policy_set(struct hf_store *handle, const char *scope,
                   const struct hf_policy *policy, struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_POLICY_WRITE, 1);
    hf_ops_text(&ops, scope);
    hf_ops_i64_opt(&ops, policy->ttl_ms);
    hf_ops_i64_opt(&ops, policy->renew_ms);
    if (policy->grace_ms >= 0)
        hf_ops_i64(&ops, policy->grace_ms);
    else
        hf_ops_null(&ops);
    hf_ops_i64_opt(&ops, policy->wait_user_ms);
    hf_ops_i64_opt(&ops, policy->wait_external_ms);
    hf_ops_i64_opt(&ops, policy->start_timeout_ms);
    hf_ops_i64_opt(&ops, policy->exec_timeout_ms);
    hf_ops_i64_opt(&ops, policy->max_attempts);
    hf_ops_text(&ops, policy->retry_policy);
    hf_ops_text(&ops, hf_disposition_word(policy->disposition));
    hf_ops_text(&ops, policy->close_rule);
    hf_ops_text(&ops, policy->wait_rule);
    int rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    sql_policies_forget(store);
    return rc;
}

int sql_policy_get(struct hf_store *handle, enum hf_source source, const char *kind,
                   struct hf_policy_answer **ret_answer, struct hf_err *err)
{
    struct hf_policy policy;
    struct hf_arena arena;
    hf_arena_init(&arena, handle->alloc);
    int rc = sql_policy(sql_store_of(handle), &arena, source, kind, &policy, err);
    if (rc == 0)
        rc = hf_policy_retry_text(&arena, &policy, &policy.retry_policy, err);
    struct hf_policy_answer *answer = rc == 0
                                          ? hf_policy_answer_new(handle->alloc, &policy)
                                          : NULL;
    hf_arena_fini(&arena);
    if (rc == 0 && !answer)
        return hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        *ret_answer = answer;
    return rc;
}
