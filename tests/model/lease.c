/* The lease on the session lane: its holder must be live. */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

#define TERM_MS 30000

static void show(const struct m_call *call, const struct m_session *s,
                 struct hf_lease_info *info)
{
    *info = (struct hf_lease_info){ .fence = s->fence };
    info->held = s->nonce != NULL;
    if (!s->nonce)
        return;
    (void)snprintf(info->owner, sizeof(info->owner), "%s", s->owner);
    (void)snprintf(info->incarnation, sizeof(info->incarnation), "%s", s->incarnation);
    info->ttl_ms = s->ttl_ms;
    info->claimed_at = s->claimed_at;
    info->expires_at = s->expires_at;
    info->remaining_ms = s->expires_at - call->lease_now;
}

static void show_token(const struct m_call *call, const struct m_session *s,
                       struct hf_lease_info *info)
{
    (void)snprintf(info->token, sizeof(info->token), "%s",
                   m_session_token(call->disk, s));
}

static int take(struct m_call *call, const char *key, const struct m_taker *taker,
                struct hf_lease_info *ret_info)
{
    struct m_session *s = m_session_of(call->disk, key);
    if (!s)
        return hf_fail_plain(call->err, HF_ENOTFOUND);
    struct m_session was = *s;
    bool live = m_session_live(call, s);
    if (live && !m_session_mine(call, s, taker)) {
        show(call, s, ret_info);
        return hf_fail_plain(call->err, HF_EHELD);
    }
    if (live)
        m_session_enter_again(call, s, taker);
    else
        m_session_acquire(call, s, taker);
    show(call, s, ret_info);
    show_token(call, s, ret_info);
    if (!live && was.nonce) {
        ret_info->displaced = true;
        (void)snprintf(ret_info->displaced_owner, sizeof(ret_info->displaced_owner), "%s",
                       was.owner);
        ret_info->displaced_fence = was.fence;
        ret_info->displaced_expires_at = was.expires_at;
    }
    return 0;
}

int m_lease_take(struct hf_store *store, const struct hf_lease_claim *claim,
                 struct hf_lease_info *ret_info, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    char fresh[HF_NONCE_TEXT];
    int rc = claim->nonce ? 0 : hf_nonce(store->random, fresh, err);
    if (rc)
        return rc;
    struct m_taker taker = {
        .owner = claim->owner,
        .incarnation = claim->incarnation ? claim->incarnation : store->incarnation,
        .nonce = claim->nonce ? claim->nonce : fresh,
        .ttl_ms = claim->ttl_ms ? claim->ttl_ms : TERM_MS,
    };
    return take(&call, claim->key, &taker, ret_info);
}

/* The session, if the token is its own. */
static struct m_session *held_by(struct m_call *call, const char *key, const char *token)
{
    struct m_session *s = m_session_of(call->disk, key);
    if (!s || !s->nonce || s->store != call->disk->incarnation ||
        !m_same(token, m_session_token(call->disk, s)))
        return NULL;
    return s;
}

int m_lease_renew(struct hf_store *store, enum hf_leased leased, const char *key,
                  const char *token, struct hf_lease_info *ret_info, struct hf_err *err)
{
    (void)leased;
    struct m_call call = m_begin(store, NULL, err);
    struct m_session *s = held_by(&call, key, token);
    if (!s || s->expires_at <= call.lease_now)
        return hf_fail_plain(err, HF_ELEASELOST);
    m_session_extend(&call, s);
    show(&call, s, ret_info);
    show_token(&call, s, ret_info);
    return 0;
}

int m_lease_release(struct hf_store *store, enum hf_leased leased, const char *key,
                    const char *token, struct hf_err *err)
{
    (void)leased;
    struct m_call call = m_begin(store, NULL, err);
    struct m_session *s = held_by(&call, key, token);
    if (!s)
        return hf_fail_plain(err, HF_ELEASELOST);
    m_session_free(&call, s, s->s.waiting_until);
    return 0;
}

int m_lease_look(struct hf_store *store, enum hf_leased leased, const char *key,
                 struct hf_lease_info *ret_info, struct hf_err *err)
{
    (void)leased;
    struct m_call call = m_begin(store, NULL, err);
    const struct m_session *s = m_session_of(call.disk, key);
    if (!s)
        return hf_fail_plain(err, HF_ENOTFOUND);
    show(&call, s, ret_info);
    return 0;
}
