/* Effects of processes and operations. */

#include <string.h>

#include "base/err.h"
#include "model/inside.h"

static struct m_scope_effect *find(const struct m_call *call,
                                   const struct hf_journal_key *of)
{
    for (size_t i = 0; i < call->disk->scope_effects.count; i++) {
        struct m_scope_effect *one = &call->disk->scope_effects.at[i];
        if (one->scope == of->scope && m_same(one->scope_id, of->scope_id) &&
            m_same(one->key, of->key))
            return one;
    }
    return NULL;
}

static const char *token_of(struct model_disk *disk, const struct m_scope_effect *one)
{
    return m_say(disk, "hf1.%lld.%lld.%s", (long long)one->store, (long long)one->fence,
                 one->nonce);
}

static bool is_live(const struct m_call *call, const struct m_scope_effect *one)
{
    return one->status == HF_ENTRY_STARTED && one->expires_at > call->lease_now;
}

static const char *shown(struct hf_journal_answer *answer, const char *text)
{
    return hf_journal_answer_copy(answer, (struct hf_span){ text, strlen(text) });
}

static void lease_to(struct m_call *call, struct m_scope_effect *one,
                     const struct hf_journal_begin *request)
{
    one->owner = m_text(call->disk, request->owner);
    one->incarnation = m_text(call->disk, call->m->handle.incarnation);
    one->nonce = request->nonce
                     ? m_text(call->disk, request->nonce)
                     : m_say(call->disk, "n%zu-%lld", call->disk->scope_effects.count,
                             (long long)one->fence);
    one->fence++;
    one->store = call->disk->incarnation;
    one->ttl_ms = request->ttl_ms;
    one->expires_at = m_later(call->lease_now, request->ttl_ms);
}

static void show_held(struct m_call *call, const struct m_scope_effect *one,
                      bool can_probe, struct hf_journal_answer *answer)
{
    answer->decision = one->fence == 1 ? HF_DECISION_ABSENT : HF_DECISION_TAKE_OVER;
    answer->token = shown(answer, token_of(call->disk, one));
    answer->fence = one->fence;
    answer->act = HF_RECOVER_RUN;
    if (one->fence > 1 && one->recovery == HF_RECOVERY_ASK)
        answer->act = HF_RECOVER_UNKNOWN;
    if (one->fence > 1 && one->recovery == HF_RECOVERY_PROBE)
        answer->act = can_probe ? HF_RECOVER_PROBE : HF_RECOVER_UNKNOWN;
}

static int m_begin_effect(struct hf_store *store, const struct hf_caller *who,
                          const struct hf_journal_begin *request,
                          struct hf_journal_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct m_scope_effect *one = find(&call, &request->of);
    if (!one) {
        one = m_add(call.disk->scope_effects);
        *one =
            (struct m_scope_effect){ .scope = request->of.scope,
                                     .scope_id = m_text(call.disk, request->of.scope_id),
                                     .key = m_text(call.disk, request->of.key),
                                     .tenant = m_text(call.disk, who->tenant),
                                     .kind = m_text(call.disk, request->kind),
                                     .started_at = call.now,
                                     .recovery = request->recovery,
                                     .envelope = m_text(call.disk, request->envelope) };
        lease_to(&call, one, request);
        show_held(&call, one, request->can_probe, answer);
        return 0;
    }
    if (!m_same(one->envelope, request->envelope))
        return hf_effect_mismatch(
            request->of.key, (struct hf_span){ one->envelope, strlen(one->envelope) },
            (struct hf_span){ request->envelope, strlen(request->envelope) }, err);
    if (one->status != HF_ENTRY_STARTED) {
        answer->decision = HF_DECISION_REPLAY;
        answer->status = one->status;
        answer->outcome = shown(answer, one->outcome);
        return 0;
    }
    bool mine = m_same(one->owner, request->owner) &&
                m_same(one->nonce, request->nonce) &&
                m_same(one->incarnation, call.m->handle.incarnation) &&
                one->store == call.disk->incarnation;
    if (is_live(&call, one) && !(request->nonce && mine)) {
        answer->decision = HF_DECISION_BUSY;
        answer->busy_ms = one->expires_at - call.lease_now;
        return 0;
    }
    if (!is_live(&call, one))
        lease_to(&call, one, request);
    show_held(&call, one, request->can_probe, answer);
    return 0;
}

static struct m_scope_effect *held(struct m_call *call, const struct hf_journal_key *of,
                                   const char *token)
{
    struct m_scope_effect *one = find(call, of);
    bool same = one && one->store == call->disk->incarnation &&
                m_same(token, token_of(call->disk, one));
    return same ? one : NULL;
}

static int m_renew(struct hf_store *store, const struct hf_journal_key *of,
                   const char *token, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct m_scope_effect *one = held(&call, of, token);
    if (!one || !is_live(&call, one))
        return hf_fail(err, HF_ELEASELOST, "token", "lost");
    hf_ms until = m_later(call.lease_now, one->ttl_ms);
    one->expires_at = until > one->expires_at ? until : one->expires_at;
    return 0;
}

static int m_settle(struct hf_store *store, const struct hf_journal_key *of,
                    const char *token, enum hf_entry_status status, const char *outcome,
                    struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct m_scope_effect *one = held(&call, of, token);
    if (one && one->status != HF_ENTRY_STARTED)
        return one->status == status && m_same(one->outcome, outcome)
                   ? 0
                   : hf_fail(err, HF_ECONFLICT, "outcome", "settled otherwise");
    if (!one || !is_live(&call, one))
        return hf_fail(err, HF_ELEASELOST, "token", "lost");
    one->status = status;
    one->outcome = m_text(call.disk, outcome);
    one->settled_at = call.now;
    return 0;
}

static int64_t drop_scope(struct model_disk *disk, enum hf_scope scope,
                          const char *scope_id)
{
    size_t kept = 0, count = disk->scope_effects.count;
    struct m_scope_effect *all = disk->scope_effects.at;
    for (size_t i = 0; i < count; i++)
        if (all[i].scope != scope || !m_same(all[i].scope_id, scope_id))
            all[kept++] = all[i];
    disk->scope_effects.count = kept;
    return (int64_t)(count - kept);
}

void m_scope_effects_prune(struct model_disk *disk, const char *work_id)
{
    (void)drop_scope(disk, HF_SCOPE_PROCESS, work_id); /* how many is not told */
}

static int m_retire(struct hf_store *store, enum hf_scope scope, const char *scope_id,
                    int64_t *ret_count, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    const struct m_scope_effect *all = call.disk->scope_effects.at;
    for (size_t i = 0; i < call.disk->scope_effects.count; i++)
        if (all[i].scope == scope && m_same(all[i].scope_id, scope_id) &&
            is_live(&call, &all[i]))
            return hf_fail(err, HF_EHELD, "scope_id", "performed");
    *ret_count = drop_scope(call.disk, scope, scope_id);
    return 0;
}

/* ---- effects that need a person ------------------------------------------------------- */

/* A text of more than 2,048 characters is not shown. */
static const char *short_text(const char *text)
{
    size_t chars = 0;
    for (const char *at = text; at && *at; at++)
        chars += ((unsigned char)*at & 0xc0) != 0x80;
    return chars <= 2048 ? text : NULL;
}

static struct hf_journal_effect shown_effect(const struct m_scope_effect *one)
{
    return (struct hf_journal_effect){
        .scope = hf_scope_name(one->scope),
        .scope_id = one->scope_id,
        .key = one->key,
        .tenant = one->tenant,
        .kind = one->kind,
        .recovery = hf_recovery_name(one->recovery),
        .status = hf_entry_status_name(one->status),
        .owner = one->owner,
        .envelope = short_text(one->envelope),
        .outcome = short_text(one->outcome),
        .known = short_text(one->known),
        .started_at = one->started_at,
        .settled_at = one->settled_at,
        .resolved_at = one->resolved_at,
        .actor_kind = one->actor_kind,
        .actor = one->actor,
    };
}

static bool process_goes_on(const struct m_call *call, const char *work_id)
{
    for (size_t i = 0; i < call->disk->rows.count; i++) {
        const struct m_row *row = &call->disk->rows.at[i];
        if (m_same(row->w.work_id, work_id) && !row->w.finished_at)
            return true;
    }
    return false;
}

static bool needs_person(const struct m_call *call, const struct m_scope_effect *one)
{
    if (one->actor || one->status != HF_ENTRY_STARTED)
        return !one->actor && one->status == HF_ENTRY_UNKNOWN;
    if (is_live(call, one))
        return false;
    return one->recovery == HF_RECOVERY_ASK ||
           (one->scope == HF_SCOPE_PROCESS && one->recovery != HF_RECOVERY_SAFE &&
            !process_goes_on(call, one->scope_id));
}

/* Scopes are in the order of their words. */
static int order(const char *scope, const char *scope_id, const char *key,
                 const struct m_scope_effect *other)
{
    int by = strcmp(scope, hf_scope_name(other->scope));
    by = by ? by : strcmp(scope_id, other->scope_id);
    return by ? by : strcmp(key, other->key);
}

static int m_unknown(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_journal_key *after, size_t limit,
                     struct hf_journal_effects *effects, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    const char *scope = after ? hf_scope_name(after->scope) : "";
    const char *scope_id = after ? after->scope_id : "", *key = after ? after->key : "";
    while (effects->count < limit) {
        const struct m_scope_effect *next = NULL;
        for (size_t i = 0; i < call.disk->scope_effects.count; i++) {
            const struct m_scope_effect *one = &call.disk->scope_effects.at[i];
            if ((!who->tenant[0] || m_same(who->tenant, one->tenant)) &&
                needs_person(&call, one) && order(scope, scope_id, key, one) < 0 &&
                (!next ||
                 order(hf_scope_name(next->scope), next->scope_id, next->key, one) > 0))
                next = one;
        }
        if (!next)
            return 0;
        const struct hf_journal_effect shown = shown_effect(next);
        if (hf_journal_effects_add(effects, &shown))
            return hf_fail_plain(err, HF_ENOMEM);
        scope = hf_scope_name(next->scope);
        scope_id = next->scope_id;
        key = next->key;
    }
    return 0;
}

static int m_resolve(struct hf_store *store, const struct hf_caller *who,
                     const struct hf_journal_resolve *request,
                     struct hf_journal_effects *effects, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct m_scope_effect *one = find(&call, &request->of);
    if (!one)
        return hf_fail(err, HF_ENOTFOUND, "key", "no such effect");
    if (is_live(&call, one))
        return hf_fail(err, HF_EHELD, "key", "performed");
    bool open = one->status == HF_ENTRY_STARTED || one->status == HF_ENTRY_UNKNOWN;
    bool same = one->status == request->status && m_same(one->outcome, request->outcome);
    if ((one->actor || !open) && !same)
        return hf_fail(err, HF_ECONFLICT, "status", "settled otherwise");
    if (!one->actor && open) {
        one->known = one->outcome;
        one->status = request->status;
        one->outcome = m_text(call.disk, request->outcome);
        one->settled_at = one->settled_at ? one->settled_at : call.now;
        one->resolved_at = call.now;
        one->actor_kind = m_text(call.disk, who->actor_kind);
        one->actor = m_text(call.disk, who->actor);
    }
    const struct hf_journal_effect shown = shown_effect(one);
    return hf_journal_effects_add(effects, &shown) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

const struct hf_journal_methods m_journal_methods = {
    .begin = m_begin_effect,
    .renew = m_renew,
    .settle = m_settle,
    .retire = m_retire,
    .unknown = m_unknown,
    .resolve = m_resolve,
};
