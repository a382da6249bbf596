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
                                     .recovery = request->recovery,
                                     .envelope = m_text(call.disk, request->envelope) };
        lease_to(&call, one, request);
        show_held(&call, one, request->can_probe, answer);
        return 0;
    }
    if (!m_same(one->envelope, request->envelope))
        return hf_fail(err, HF_EEFFECT, "effect", "another effect");
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

const struct hf_journal_methods m_journal_methods = {
    .begin = m_begin_effect,
    .renew = m_renew,
    .settle = m_settle,
    .retire = m_retire,
};
